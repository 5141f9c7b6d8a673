//! Tests distributed shared memory: threads of a cluster read and write each other's shared memory.
//! The barrier of one block, or a relaxed arrival at the cluster's barrier, does not order these
//! accesses. A block may not end before the others have accessed its memory.

use crate::support::program;
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_simulate::{Options, Report, simulate};

/// Four blocks in two clusters; each block writes its part to shared memory, and reads the part of
/// the other block from there.
fn exchange(first: &str, last: &str) -> String {
    format!(
        "carbyne 2
%A:[4,64].f32.GL
%B:[4,64].f32.GL
#grid:[4].block
#clusters:[2].[2].block = #grid.tile([2])
#cta:[64].thread
Spec @swap <<<#clusters, #cta>>> (%A) -> (%B) {{
  @b = #grid.indices()
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  Allocate %s:[64].f32.SH
  Move <<<#grid, #one>>> (%A[@b, @t]) -> (%s[@t])
  {first}
  Move <<<#grid, #one>>> (%s.peer((@b + 1) % 2)[63 - @t]) -> (%B[@b, @t])
  {last}
}}
"
    )
}

const SYNC: &str = "cluster.arrive\n  cluster.wait";

fn run(text: &str) -> Result<Report, Box<Diagnostic>> {
    simulate(&program(text), &AtomTable::new(Arch::Sm90a), &Options::default())
}

#[test]
fn blocks_read_each_others_shared_memory() {
    let report = run(&exchange(SYNC, SYNC)).unwrap_or_else(|e| panic!("{e}: {}", e.label));
    let inputs = run(&exchange(SYNC, SYNC).replace("%s.peer((@b + 1) % 2)[63 - @t]", "%s[@t]"));
    let (swapped, own) = (report.outputs, inputs.ok().unwrap().outputs);
    for (b, t) in (0..4).flat_map(|b| (0..64).map(move |t| (b, t))) {
        let want = own.element("B", &[b ^ 1, 63 - t]);
        assert!(want.is_some() && swapped.element("B", &[b, t]) == want, "{b} {t}");
    }
}

#[test]
fn a_barrier_of_the_block_does_not_order_the_cluster() {
    for weak in ["barrier", "cluster.arrive_relaxed\n  cluster.wait"] {
        let e = run(&exchange(weak, SYNC)).err().unwrap();
        assert!(matches!(e.code, Code::Race | Code::Uninitialized), "{weak}: {e}");
        assert!(!e.message.contains("copy"), "{weak}: {e}");
    }
}

#[test]
fn a_block_waits_for_readers_of_its_memory() {
    let e = run(&exchange(SYNC, "")).err().unwrap();
    assert_eq!(e.code, Code::Race);
    assert!(
        e.message.contains("block 1 may end while block 0 still accesses")
            || e.message.contains("block 0 may end while block 1"),
        "{e}"
    );
    // A barrier of the block alone has no effect.
    assert_eq!(run(&exchange(SYNC, "barrier")).err().unwrap().code, Code::Race);
}

#[test]
fn writes_to_another_block_are_ordered_too() {
    let text = exchange(SYNC, SYNC).replace("(%s[@t])", "(%s.peer((@b + 1) % 2)[@t])");
    let text = text.replace("(%s.peer((@b + 1) % 2)[63 - @t]) -> (%B", "(%s[63 - @t]) -> (%B");
    // The shared memory of a block may be accessed once all blocks have started.
    let begun =
        text.replace("Allocate %s:[64].f32.SH\n", &format!("Allocate %s:[64].f32.SH\n  {SYNC}\n"));
    run(&begun).unwrap_or_else(|e| panic!("{e}: {}", e.label));
    let e = run(&begun.replace(
        &format!("{SYNC}\n  Move <<<#grid, #one>>> (%s"),
        "barrier\n  Move <<<#grid, #one>>> (%s",
    ))
    .err()
    .unwrap();
    assert!(matches!(e.code, Code::Race | Code::Uninitialized), "{e}");
}
