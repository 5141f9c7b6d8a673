//! Tests atomic accumulation into memory (`Move.add`), and copies that fill a part with zeros
//! (`valid=`): races under every schedule and in a cluster, and the counts of bytes.

use crate::support::program;
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_simulate::{Inputs, Options, Report, simulate};

fn under(text: &str, schedule: Option<u64>) -> Result<Report, Box<Diagnostic>> {
    let options = Options { schedule, inputs: Inputs::Ints(3), ..Options::default() };
    simulate(&program(text), &AtomTable::new(Arch::Sm90a), &options)
}

fn array(report: &Report, name: &str) -> Vec<u64> {
    report.outputs.get(name).unwrap().values
}

/// Pairs of 64 threads accumulate into one element of shared memory, three times; then all elements
/// are copied out.
fn sums(atom: &str, between: &str) -> String {
    format!(
        "carbyne 2
%A:[64].f32.GL
%B:[64].f32.GL
#grid:[1].block
#cta:[64].thread
Spec @k <<<#grid, #cta>>> (%A) -> (%B) {{
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  Allocate %v:[1].f32.RF
  Allocate %s:[64].f32.SH
  Move <<<#grid, #one>>> (%A.tile([1])[@t]) -> (%v)
  Init <<<#grid, #one>>> (0) -> (%s.tile([1])[@t])
  barrier
  for (i = 0; i < 3; i += 1) {{
    Move.add <<<#grid, #one>>> (%v) -> (%s.tile([1])[@t / 2]){atom}
  }}
  {between}
  Move <<<#grid, #one>>> (%s[63 - @t]) -> (%B[63 - @t])
}}
"
    )
}

const ATOM: &str = " atom=red.shared.add.f32";

#[test]
fn the_order_of_sums_does_not_count() {
    let wanted = {
        let report = under(&sums("", "barrier"), None).unwrap();
        array(&report, "B")
    };
    assert!(wanted.iter().any(|v| *v != 0));
    for atom in ["", ATOM] {
        for seed in 0..12 {
            let report = under(&sums(atom, "barrier"), Some(seed));
            let report = report.unwrap_or_else(|e| panic!("{atom} {seed}: {e} {}", e.label));
            assert_eq!(array(&report, "B"), wanted, "{atom} {seed}");
        }
    }
}

#[test]
fn a_plain_access_races_with_sums_and_both_iterations_are_named() {
    for atom in ["", ATOM] {
        let text = sums(atom, "");
        let e = under(&text, None).err().unwrap();
        assert_eq!(e.code, Code::Race, "{e}");
        let line = |what: &str| text.lines().position(|l| l.contains(what)).unwrap() + 1;
        assert!(e.message.contains(&format!("line {}", line("Move.add"))), "{e}");
        let (_, earlier) = &e.related[0];
        assert!(earlier.contains("i = 2"), "{earlier}");
        for seed in 0..12 {
            let e = under(&text, Some(seed)).err().unwrap();
            assert_eq!(e.code, Code::Race, "{atom} {seed}: {e}");
        }
    }
}

#[test]
fn other_operations_do_not_commute_with_sums() {
    let text = sums("", "Move.max <<<#grid, #one>>> (%v) -> (%s.tile([1])[@t % 32])\n  barrier");
    let e = under(&text, None).err().unwrap();
    assert_eq!(e.code, Code::Race, "{e}");
    let text = text.replace("Move.max", "barrier\n  Move.max");
    under(&text, None).unwrap_or_else(|e| panic!("{e}: {}", e.label));
}

/// Two blocks accumulate into the shared memory of the first one.
fn cluster(first: &str, last: &str) -> String {
    format!(
        "carbyne 2
%A:[2,64].f32.GL
%B:[64].f32.GL
#grid:[2].block
#clusters:[1].[2].block = #grid.tile([2])
#cta:[64].thread
Spec @k <<<#clusters, #cta>>> (%A) -> (%B) {{
  @b = #grid.indices()
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  Allocate %s:[64].f32.SH
  Init <<<#grid, #one>>> (0) -> (%s[@t])
  {first}
  Move.add <<<#grid, #one>>> (%A[@b, @t]) -> (%s.peer(0)[@t])
  {last}
  if (@b == 0) {{
    Move <<<#grid, #one>>> (%s[@t]) -> (%B[@t])
  }}
}}
"
    )
}

const SYNC: &str = "cluster.arrive\n  cluster.wait";

#[test]
fn blocks_of_a_cluster_add_to_one_element() {
    let report = under(&cluster(SYNC, SYNC), None).unwrap_or_else(|e| panic!("{e}: {}", e.label));
    let value =
        |name: &str, at: &[i64]| f32::from_bits(report.outputs.element(name, at).unwrap() as u32);
    for t in 0..64 {
        assert_eq!(value("B", &[t]), value("A", &[0, t]) + value("A", &[1, t]), "{t}");
    }
    for (first, last) in [("barrier", SYNC), (SYNC, "barrier")] {
        let e = under(&cluster(first, last), None).err().unwrap();
        assert!(matches!(e.code, Code::Race | Code::Uninitialized), "{e}");
    }
}

/// Each of 32 threads copies four numbers, and reads `valid` of them.
fn copy(valid: &str) -> String {
    format!(
        "carbyne 2
%A:[128].f32.GL
%B:[128].f32.GL
#grid:[1].block
#cta:[32].thread
Spec @k <<<#grid, #cta>>> (%A) -> (%B) {{
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  Allocate %s:[128].f32.SH
  Move <<<#grid, #one>>> (%A.tile([4])[@t]) -> (%s.tile([4])[@t])
      valid={valid} atom=cp.async.cg.b128.zfill
  async.commit
  async.wait(0)
  Move <<<#grid, #one>>> (%s.tile([4])[@t]) -> (%B.tile([4])[@t])
}}
"
    )
}

#[test]
fn unread_elements_are_zero_and_not_counted() {
    // Cases: no number of each sixteen bytes is read, or one, two or three.
    let report = under(&copy("@t % 4"), None).unwrap_or_else(|e| panic!("{e}: {}", e.label));
    let (a, b) = (array(&report, "A"), array(&report, "B"));
    for e in 0..128 {
        assert_eq!(b[e], if e % 4 < e / 4 % 4 { a[e] } else { 0 }, "{e}");
    }
    let count = report.kernels[0].leaves[0].count;
    assert_eq!((count.global.accesses, count.global.bytes), (1, 8 * (4 + 8 + 12)));
    assert_eq!((count.global.sectors, count.shared.bytes), (16, 512));
    let none = under(&copy("0"), None).unwrap_or_else(|e| panic!("{e}: {}", e.label));
    let count = none.kernels[0].leaves[0].count;
    assert_eq!((count.global.bytes, count.global.sectors, count.shared.bytes), (0, 0, 512));
}
