//! Tests a small layout library, which has two bugs, with the kit. The program prints which laws
//! catch the bugs, and the operands that show them.
//!
//! `cargo run -p carbyne-ir --features proptest --example broken_layout`
//!
//! People make such bugs: `composition` divides strides and extents without asking whether they
//! divide, and `complement` forgets the gap below the smallest stride.

#![expect(clippy::print_stdout, reason = "an example prints")]

use carbyne_ir::kit::{Answer, LayoutLike, Tiling, suite};
use carbyne_ir::tuple::IntTuple;

/// A flat layout: leaves of (extent, stride).
#[derive(Clone, Debug)]
pub struct Flat(Vec<(i64, i64)>);

impl Flat {
    fn tuple(&self, part: impl Fn(&(i64, i64)) -> i64, none: i64) -> IntTuple {
        match self.0.as_slice() {
            [] => none.into(),
            [leaf] => part(leaf).into(),
            leaves => leaves.iter().map(part).collect::<Vec<_>>().into(),
        }
    }
}

impl LayoutLike for Flat {
    fn build(shape: &IntTuple, stride: &IntTuple) -> Answer<Self> {
        // This library knows no nesting, and a tuple of one is a number to it.
        if shape.depth() > 1 || (shape.depth() == 1 && shape.rank() < 2) {
            return Answer::Unsupported;
        }
        Answer::Got(Flat(shape.flatten().into_iter().zip(stride.flatten()).collect()))
    }

    fn shape(&self) -> IntTuple {
        self.tuple(|leaf| leaf.0, 1)
    }

    fn stride(&self) -> IntTuple {
        self.tuple(|leaf| leaf.1, 0)
    }

    fn coalesce(&self) -> Answer<Self> {
        let mut merged: Vec<(i64, i64)> = vec![];
        for &(extent, stride) in self.0.iter().filter(|leaf| leaf.0 != 1) {
            match merged.last_mut() {
                Some(last) if last.0 * last.1 == stride => last.0 *= extent,
                _ => merged.push((extent, stride)),
            }
        }
        Answer::Got(Flat(merged))
    }

    fn composition(&self, inner: &Tiling<Self>) -> Answer<Self> {
        let Tiling::Layout(Flat(inner)) = inner else { return Answer::Unsupported };
        let &[(mut extent, mut rate)] = inner.as_slice() else { return Answer::Unsupported };
        let mut leaves = vec![];
        let last = self.0.len().saturating_sub(1);
        for (k, &(outer, stride)) in self.0.iter().enumerate() {
            // BUG: neither `rate` against `outer` nor `taken` against `extent` is asked to divide.
            let taken = if k == last { extent } else { extent.min((outer / rate.max(1)).max(1)) };
            leaves.push((taken, stride * rate));
            rate = (rate / outer).max(i64::from(rate > 0));
            extent /= taken;
        }
        Answer::Got(Flat(leaves))
    }

    fn complement(&self, cotarget: i64) -> Answer<Self> {
        let mut modes = self.0.clone();
        modes.retain(|&(extent, stride)| extent > 1 && stride > 0);
        modes.sort_by_key(|mode| mode.1);
        // BUG: beginning at the smallest stride forgets what lies below it.
        let mut reach = modes.first().map_or(1, |mode| mode.1);
        let mut gaps = vec![];
        for (extent, stride) in modes {
            if stride < reach || stride % reach != 0 {
                return Answer::Refused(format!("{extent}:{stride} overlaps"));
            }
            gaps.push((stride / reach, reach));
            reach = extent * stride;
        }
        gaps.push(((cotarget + reach - 1) / reach, reach));
        Answer::Got(Flat(gaps))
    }
}

/// The reports of the laws that do not hold.
#[must_use]
pub fn broken(cases: u32) -> Vec<suite::Report> {
    let reports = suite::laws::<Flat>().into_iter().map(|law| law.run(cases));
    reports.filter(|report| report.failure.is_some()).collect()
}

fn main() {
    match suite::run::<Flat>(&carbyne_ir::testing::cases(1000).into()) {
        Ok(summary) => println!("{summary}"),
        Err(why) => println!("{why}"),
    }
}
