//! Compares cycles: [`grade`] treats estimates as equal that differ by less than the model can
//! tell, and [`rearranging`] estimates a detour before it is written.

use crate::access::ops;
use carbyne_ir::program::{Program, TensorId};

/// A whole number that grows with the cycles, the same for cycles that differ by less than the
/// estimate can tell: some 2 percent.
pub(crate) fn grade(cycles: f64) -> i64 {
    (libm::log(cycles.max(1.0)) / 0.02) as i64
}

/// Cycles until a register tensor has gone through shared memory, roughly.
pub(super) fn rearranging(p: &Program, t: TensorId) -> f64 {
    let bits = ops::whole(p, t).map_or(0, |l| l.size()).saturating_mul(p.scalar_of(t).bits());
    100.0 + bits as f64 / 8.0 / 32.0
}
