//! Computes the cycles that a kernel takes from the clock values that its warps have written. The
//! result is the time of the median block in the fastest of several launches.

use carbyne_ir::scalar::Scalar;
use carbyne_launch::{Buffer, Fallible};
use carbyne_simulate::conformance::unpack;

/// The cycles of the median block, from the start of its first warp to the end of its last warp, in
/// the fastest of `launches` launches. `clocks` contains the clock values of each warp of each
/// block.
pub(super) fn fastest_cycles(
    launches: usize,
    launched: impl Fn() -> Fallible<()>,
    clocks: Option<&Buffer>,
    warps: i64,
) -> Fallible<f64> {
    let mut fastest = f64::INFINITY;
    for _ in 0..launches {
        launched()?;
        let Some(clocks) = clocks else { break };
        let mut bytes = vec![0; clocks.len()];
        clocks.read(&mut bytes)?;
        let values = unpack(&bytes, Scalar::I64, bytes.len() / 8);
        let of_block = |of: &[u64]| {
            let began = of.iter().step_by(2).min().copied().unwrap_or(0);
            let ended = of.iter().skip(1).step_by(2).max().copied().unwrap_or(0);
            ended.saturating_sub(began)
        };
        let warps = usize::try_from(warps).unwrap_or(1).max(1);
        let mut blocks: Vec<u64> = values.chunks(2 * warps).map(of_block).collect();
        blocks.sort_unstable();
        if let Some(median) = blocks.get(blocks.len() / 2) {
            fastest = fastest.min(*median as f64);
        }
    }
    Ok(fastest)
}
