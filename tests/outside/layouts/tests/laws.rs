//! Tests the library with carbyne's property tests of layout algebra. They hold for the library,
//! and they detect a variant with 32-bit indices, which overflow.

use carbyne_ir::kit::suite::{self, Settings, Verdict};
use carbyne_ir::kit::{Answer, Bounds, LayoutLike, layout_laws};
use carbyne_ir::tuple::IntTuple;
use outside_layouts::Flat;

/// An adapter of the library to the kit. With `NARROW` it computes indices in 32 bits.
#[derive(Clone, Debug)]
struct Seen<const NARROW: bool>(Flat);

impl<const NARROW: bool> LayoutLike for Seen<NARROW> {
    fn build(shape: &IntTuple, stride: &IntTuple) -> Answer<Self> {
        // The library does not support nesting, nor tuples of one element.
        if shape.depth() > 1 || (shape.depth() == 1 && shape.rank() < 2) {
            return Answer::Unsupported;
        }
        let leaves = shape.flatten().into_iter().zip(stride.flatten());
        Answer::Got(Seen(Flat::new(leaves.collect::<Vec<_>>())))
    }
    fn shape(&self) -> IntTuple {
        match self.0.leaves() {
            [] => 1.into(),
            [leaf] => leaf.0.into(),
            leaves => leaves.iter().map(|leaf| leaf.0).collect::<Vec<_>>().into(),
        }
    }
    fn stride(&self) -> IntTuple {
        match self.0.leaves() {
            [] => 0.into(),
            [leaf] => leaf.1.into(),
            leaves => leaves.iter().map(|leaf| leaf.1).collect::<Vec<_>>().into(),
        }
    }
    fn eval(&self, i: i64) -> Answer<i64> {
        let index = self.0.at(i);
        Answer::Got(if NARROW { i64::from(index as i32) } else { index })
    }
    fn coalesce(&self) -> Answer<Self> {
        Answer::Got(Seen(self.0.coalesce()))
    }
    fn complement(&self, cotarget: i64) -> Answer<Self> {
        self.0.complement(cotarget).map(Seen).ok_or("leaves overlap").into()
    }
}

layout_laws!(
    Seen<false>,
    cases = 512,
    bounds = Bounds { rank: 4, depth: 1, ..Bounds::default() },
    regressions = "tests/regressions",
);

#[test]
fn an_index_in_32_bits_is_caught() {
    let only = Some(vec!["eval".to_owned(), "eval_large".to_owned()]);
    let settings = Settings { cases: 512, only, ..Settings::default() };
    let summary = suite::run::<Seen<true>>(&settings).unwrap();
    let verdicts: Vec<_> = summary.reports.iter().map(|report| report.verdict()).collect();
    assert_eq!(verdicts, [Verdict::Holds, Verdict::Broken], "{summary}");
}
