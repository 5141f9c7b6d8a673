//! Tests modulo schedules, the estimated overlap of a loop's iterations. The schedule of a
//! decomposed loop is reported for its line in the source text, and has the initiation interval of
//! the schedule of the source text.
//!
//! The test is not in `src`, where it would compile the whole crate once more.

use carbyne_atoms::{Arch, AtomTable, machine};
use carbyne_decompose::internals::schedules;
use carbyne_decompose::{Options, checked, decompose_by};
use carbyne_ir::{resolve, text};

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

#[test]
fn loops_of_what_was_decomposed_are_those_of_the_text() {
    let module = text::parse(GEMM).expect("parses");
    let (table, machine) = (AtomTable::new(Arch::Sm80), machine(Arch::Sm80));
    let options = Options::default();
    let found = decompose_by(&module, GEMM, &table, &options).expect("decomposes");
    let loops = found.schedules(GEMM, &table, &options);
    let [one] = &loops[..] else { panic!("{loops:?}") };
    assert_eq!(found.origins.span(one.node).line_col(GEMM).0, 9);
    let module = resolve::elaborate(&module, GEMM).expect("is well-formed");
    let p = checked(&module, GEMM).expect("is well-formed");
    let written = schedules(&p, p.kernels[0], &table, &machine);
    let [own] = &written[..] else { panic!("{written:?}") };
    assert_eq!(one.steady.as_ref().map(|s| s.ii), own.steady.as_ref().map(|s| s.ii));
    assert!(own.steady.is_ok());
}
