//! Tests the schedules of loops that are written as text.

use crate::schedule::modulo::Proof;
use crate::schedule::report::{LoopSchedule, Steady, schedules};
use carbyne_atoms::{Arch, AtomTable, machine};
use carbyne_ir::{resolve, text};

fn all(src: &str, arch: Arch) -> Vec<LoopSchedule> {
    let module = text::parse(src).expect("parses");
    let module = resolve::elaborate(&module, src).expect("is well-formed");
    let p = crate::checked(&module, src).expect("is well-formed");
    let (table, machine) = (AtomTable::new(arch), machine(arch));
    let target = crate::tricks::target(&table, &machine);
    p.kernels.iter().flat_map(|k| schedules(&p, *k, &target)).collect()
}

fn only(src: &str, arch: Arch) -> Steady {
    let all = all(src, arch);
    let [one] = &all[..] else { panic!("{all:?}") };
    one.steady.clone().unwrap_or_else(|e| panic!("{e}"))
}

const GEMM: &str = "\
carbyne 2

%A:[1024,1024].f16.GL
%B:[1024,1024].f16.GL
%C:[1024,1024].f16.GL

MatMul.set @gemm <<<#grid:[@bm < 8, @bn < 8], #cta:[128]>>> (%A, %B) -> (%C) acc=f32 {
  %c:[128,128].f32 = 0
  for (k = 0; k < 16; k += 1) stages=4 {
    Move (%A.tile([128,64])[@bm, k]) -> (%sA:SH)
    Move (%B.tile([64,128])[k, @bn]) -> (%sB:SH)
    MatMul (%sA, %sB) -> (%c)
  }
  %C.tile([128,128])[@bm, @bn] = cast(%c, f16)
}
";

const ATTENTION: &str = "\
carbyne 2

let S = 1024, T = 1024, D = 128
let BS = 64, BT = 128

%Q:[S,D].f16.GL
%K:[(D,T):(1,D)].f16.GL
%V:[T,D].f16.GL
%O:[S,D].f16.GL

Spec @attention <<<#grid:[@i < S / BS], #cta:[128]>>> (%Q, %K, %V) -> (%O) {
  Move (%Q.tile([BS,D])[@i, 0]) -> (%q:SH)
  %max:[BS,1].f32 = -inf
  %sum:[BS,1].f32 = 0
  %o:[BS,D].f32 = 0
  for (t = 0; t < T / BT; t += 1) stages=2 {
    Move (%K.tile([D,BT])[0, t]) -> (%k:SH)
    Move (%V.tile([BT,D])[t, 0]) -> (%v:SH)
    %s = matmul(%q, %k) / sqrt(D)
    %top = max(max(%s, axis=1), %max)
    %p = exp(%s - %top)
    %old = exp(%max - %top)
    %sum = %sum * %old + sum(%p, axis=1)
    %o = %o * %old
    %half = cast(%p, f16)
    MatMul (%half, %v) -> (%o)
    %max = move(%top)
  }
  %O.tile([BS,D])[@i, 0] = cast(%o / %sum, f16)
}
";

/// The stages of operations, by their names.
fn stages(s: &Steady) -> Vec<(&str, i64)> {
    s.operations.iter().map(|o| (o.name.as_str(), o.stage)).collect()
}

#[test]
fn a_ring_as_deep_as_the_latency_of_copies_keeps_the_units_busy() {
    // From a copy by way of the product to the next copy into its stage, in four iterations.
    let few = only(GEMM, Arch::Sm90a);
    // One thread asks for both copies, the second a cycle after the first, which the bound does not
    // know.
    assert!((0..=1).contains(&(few.ii - few.recurrence_bound)), "{few:?}");
    assert_eq!((few.least_ii, few.proof), (few.ii, Proof::Starts));
    assert!(few.recurrence_bound > few.resource_bound);
    let many = only(&GEMM.replace("stages=4", "stages=6"), Arch::Sm90a);
    assert_eq!((many.ii, many.proof), (many.resource_bound, Proof::Starts));
    assert!(many.recurrence_bound <= many.resource_bound);
    assert!(many.nodes < 20 && many.as_written > 4 * many.ii);
    let order = ["Move %sA", "Move %sB", "MatMul %c"];
    assert!(order.iter().all(|name| stages(&many).iter().any(|(own, _)| own == name)));
    let copies = many.operations.iter().filter(|o| o.name.starts_with("Move"));
    assert!(copies.map(|o| o.stage).eq([0, 0]));
    // The mbarriers of stages say what has come; one product is left under way while copies fill
    // the stage of the one before it.
    assert!(many.waits.iter().all(|w| w.queue == "products"), "{:?}", many.waits);
    assert!(many.rings.iter().all(|r| r.needed <= 6 && r.needed > many.stages - 1));

    // Threads that multiply themselves issue copies besides.
    let ampere = only(GEMM, Arch::Sm80);
    assert!(ampere.ii < ampere.as_written && ampere.stages == 2);
    assert_eq!(ampere.waits.len(), 1);
    assert_eq!((ampere.waits[0].before.as_str(), ampere.waits[0].left), ("MatMul %c", 2));
}

#[test]
fn products_of_attention_go_on_while_threads_exponentiate() {
    let s = only(ATTENTION, Arch::Sm90a);
    assert_eq!((s.ii, s.proof), (s.resource_bound, Proof::Starts));
    assert!(s.nodes < 200, "{}", s.nodes);
    assert!(4 * s.ii < s.as_written);
    let of = |name: &str| s.operations.iter().find(|o| o.name == name).expect("an operation");
    let (qk, exp, pv) = (of("MatMul.set %s"), of("UnaryPointwise.exp %p"), of("MatMul %o"));
    // Q K of an iteration is multiplied while others exponentiate.
    assert!(qk.stage < exp.stage, "{s:?}");
    assert!(pv.begin >= pv.start && exp.begin == exp.start);
}

#[test]
fn distances_follow_from_offsets() {
    // Stages that are written out: what is copied is multiplied two iterations later.
    let src = GEMM
        .replace(
            "  for (k",
            "  Allocate %sA:[3].[128,64].f16.SH\n  Allocate %sB:[3].[64,128].f16.SH\n  for (k",
        )
        .replace("-> (%sA:SH)", "-> (%sA[(k + 2) % 3])")
        .replace("-> (%sB:SH)", "-> (%sB[(k + 2) % 3])")
        .replace("(%sA, %sB)", "(%sA[k % 3], %sB[k % 3])");
    let written = only(&src, Arch::Sm80);
    let ring = only(&GEMM.replace("stages=4", "stages=3"), Arch::Sm80);
    assert_eq!(written.ii, ring.ii);
    // Copies of two iterations later are in the same stage of the schedule.
    assert!(written.stages < ring.stages, "{written:?}");
}

#[test]
fn what_cannot_be_followed_is_said() {
    let src = GEMM.replace("    MatMul (", "    barrier\n    MatMul (");
    let why = |src: &str| match &all(src, Arch::Sm80)[..] {
        [one] => one.steady.clone().unwrap_err().to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(why(&src), "line 12 has its own synchronization");
    let src = GEMM.replace("-> (%sB:SH)", "-> (%sB:SH)\n    Allocate %x:[64].f16.SH{at=0}");
    assert!(why(&src).contains("`%x`"));
    assert!(all(&GEMM.replace(" stages=4", ""), Arch::Sm80).is_empty());
}
