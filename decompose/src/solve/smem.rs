//! Shared-memory layouts: M = S∘m (Hexcute, section V).
//!
//! Every access wants the values of one instruction side by side: a *run*, digits of the tensor's index
//! space that take the strides 1, n₀, n₀·n₁, ... Unifying runs splits the modes where runs begin and
//! end and gives each digit one stride; a digit with two strides, or two digits with one, is a
//! conflict. Digits that no run names follow compactly. Then the swizzle S is chosen that gives the
//! fewest wavefronts over all accesses, weighted by how often they run.

use super::tv::mode;
use carbyne_ir::layout::{Layout, Swizzle};

pub use carbyne_atoms::Banks;

/// Digits (extent, step in the column-major index) that must be consecutive in memory.
pub type Run = Vec<(i64, i64)>;

/// One access of a warp to the tensor.
#[derive(Clone, Debug)]
pub struct Access {
    /// Column-major index that each lane addresses: one list a warp and instruction.
    pub lanes: Vec<Vec<i64>>,
    /// Bytes of one lane.
    pub bytes: i64,
    /// Executions of the whole list in one block; not whole where the lists are a sample.
    pub weight: f64,
}

/// A digit of a mode: (extent, step within the column-major index, stride in memory).
type Digit = (i64, i64, Option<i64>);

/// A compact layout of `shape` in which every run is consecutive.
///
/// # Errors
/// A sentence naming the two runs that clash.
pub fn unify(shape: &[i64], runs: &[Run]) -> Result<Layout, String> {
    let mut modes: Vec<Vec<Digit>> = vec![];
    let mut step = 1i64;
    for &extent in shape {
        modes.push(vec![(extent, step, None)]);
        step *= extent;
    }
    // Split digits at the ends of runs, run digits at the ends of modes.
    let mut pieces: Vec<Run> = vec![];
    for run in runs {
        let mut run_pieces = vec![];
        for &(n, s) in run {
            cut(&mut modes, n, s, &mut run_pieces)?;
        }
        pieces.push(run_pieces);
    }
    for run in &pieces {
        let mut stride = 1;
        for &(n, s) in run {
            assign(&mut modes, n, s, &mut stride)?;
        }
    }
    let mut taken: Vec<(i64, i64)> =
        modes.iter().flatten().filter_map(|&(n, _, s)| s.map(|s| (s, n))).collect();
    taken.sort_unstable();
    let mut next = 1;
    for (s, n) in taken {
        if s != next {
            return Err(format!(
                "two directions of the tensor would both be consecutive (stride {s})"
            ));
        }
        next = s * n;
    }
    // The mode of the first run goes on, then the others in order.
    let first = runs.iter().flatten().next().map_or(0, |r| mode_of(shape, r.1));
    let order: Vec<usize> =
        std::iter::once(first).chain((0..shape.len()).filter(|m| *m != first)).collect();
    for m in order {
        for digit in modes.get_mut(m).into_iter().flatten() {
            if digit.2.is_none() {
                digit.2 = Some(next);
                next *= digit.0;
            }
        }
    }
    let parts: Result<Vec<Layout>, _> = modes
        .iter()
        .map(|digits| {
            let list: Vec<Layout> =
                digits.iter().map(|&(n, _, s)| mode(n, s.unwrap_or(0))).collect();
            Layout::concat(&list).map(|l| l.coalesce())
        })
        .collect();
    parts.and_then(|p| Layout::concat(&p)).map_err(|e| e.to_string())
}

fn mode_of(shape: &[i64], step: i64) -> usize {
    let mut s = 1;
    for (i, extent) in shape.iter().enumerate() {
        if step < s * extent {
            return i;
        }
        s *= extent;
    }
    shape.len().saturating_sub(1)
}

/// Splits the digits so that (n, s) is a sequence of whole digits, which are appended to `out`.
fn cut(modes: &mut [Vec<Digit>], n: i64, s: i64, out: &mut Run) -> Result<(), String> {
    let (mut n, mut s) = (n, s);
    while n > 1 {
        let Some((m, i)) = modes.iter().enumerate().find_map(|(m, ds)| {
            ds.iter().position(|&(e, step, _)| step <= s && s < step * e).map(|i| (m, i))
        }) else {
            return Err(format!("a run of step {s} leaves the tensor"));
        };
        let (extent, step, _) = modes[m][i];
        if s % step != 0 || extent % (s / step) != 0 {
            return Err(format!("a run of step {s} does not fit the mode {extent}:{step}"));
        }
        let before = s / step;
        let here = extent / before; // From s to the end of the digit.
        let take = if n <= here { n } else { here };
        if here % take != 0 || n % take != 0 {
            return Err(format!("runs of {n} do not divide the mode {extent}:{step}"));
        }
        let after = here / take;
        let parts = [(before, step), (take, s), (after, s * take)];
        let digits = parts.into_iter().filter(|(e, _)| *e > 1).map(|(e, st)| (e, st, None));
        modes[m].splice(i..=i, digits);
        out.push((take, s));
        n /= take;
        s *= take;
    }
    Ok(())
}

fn assign(modes: &mut [Vec<Digit>], n: i64, s: i64, stride: &mut i64) -> Result<(), String> {
    let (mut n, mut s) = (n, s);
    while n > 1 {
        let Some(digit) = modes.iter_mut().flatten().find(|d| d.0 > 1 && d.1 == s) else {
            return Err(format!("a run of step {s} was split by another"));
        };
        if n % digit.0 != 0 {
            return Err(format!("a run of {n} ends inside a digit of {}", digit.0));
        }
        match digit.2 {
            Some(other) if other != *stride => {
                return Err(format!(
                    "elements {s} apart would need the strides {other} and {stride} at once"
                ));
            }
            _ => digit.2 = Some(*stride),
        }
        *stride *= digit.0;
        n /= digit.0;
        s *= digit.0;
    }
    Ok(())
}

/// Byte addresses of an access under a layout, before swizzling.
struct Addresses {
    lanes: Vec<Vec<i64>>,
    bytes: i64,
    weight: f64,
}

/// Wavefronts of all accesses under a layout and swizzle, weighted; `bits` of one element.
pub fn wavefronts(
    layout: &Layout,
    swizzle: Option<Swizzle>,
    bits: i64,
    accesses: &[Access],
    banks: Banks,
) -> f64 {
    count(&addresses(layout, bits, accesses), swizzle, banks)
}

fn addresses(layout: &Layout, bits: i64, accesses: &[Access]) -> Vec<Addresses> {
    accesses
        .iter()
        .map(|a| Addresses {
            lanes: a
                .lanes
                .iter()
                .map(|l| {
                    let mut out: Vec<i64> = vec![];
                    for &i in l {
                        let address = layout.at(i) * bits / 8;
                        // Lanes of a matrix load that repeat an address cost nothing.
                        if a.bytes < 16 || !out.contains(&address) {
                            out.push(address);
                        }
                    }
                    out
                })
                .collect(),
            bytes: a.bytes,
            weight: a.weight,
        })
        .collect()
}

fn count(accesses: &[Addresses], swizzle: Option<Swizzle>, banks: Banks) -> f64 {
    let mut total = 0.0;
    let mut phase = vec![];
    for access in accesses {
        let lanes_each = banks.lanes_per_phase(access.bytes);
        let mut sum = 0i64;
        for lanes in &access.lanes {
            for chunk in lanes.chunks(lanes_each) {
                phase.clear();
                phase.extend(chunk.iter().map(|a| swizzle.map_or(*a, |s| s.apply(*a))));
                sum += conflicts(&phase, access.bytes, banks);
            }
        }
        total += sum as f64 * access.weight;
    }
    total
}

/// The most distinct words that one bank serves.
fn conflicts(addresses: &[i64], bytes: i64, banks: Banks) -> i64 {
    let mut words: Vec<i64> = Vec::with_capacity(addresses.len() * 4);
    for a in addresses {
        for w in banks.words(*a, bytes) {
            if !words.contains(&w) {
                words.push(w);
            }
        }
    }
    banks.wavefronts(&words).max(1)
}

/// The swizzle with the fewest wavefronts; the smallest among equals, none if none helps.
pub fn best_swizzle(
    layout: &Layout,
    bits: i64,
    accesses: &[Access],
    banks: Banks,
) -> (Option<Swizzle>, f64) {
    let at = addresses(layout, bits, accesses);
    let mut best = (None, count(&at, None, banks));
    let widest = accesses.iter().map(|a| a.bytes).max().unwrap_or(1).max(1);
    let ideal: f64 = at
        .iter()
        .map(|a| {
            let each = banks.lanes_per_phase(a.bytes);
            a.lanes.iter().map(|l| l.len().div_ceil(each) as f64).sum::<f64>() * a.weight
        })
        .sum();
    let base = 63 - widest.leading_zeros().min(63);
    let total = layout.cosize() * bits / 8;
    // Bits that choose a bank, and the byte in it.
    let row = 63 - (banks.n * banks.bytes).leading_zeros();
    for bits in 1..=row.saturating_sub(base) {
        for shift in bits..=8 {
            if best.1 <= ideal * (1.0 + 1e-12) {
                return best;
            }
            // Every swizzled address stays inside, and the bits that are mixed in exist.
            if total % (1 << (base + bits)) != 0 || (1i64 << (base + shift)) >= total {
                continue;
            }
            let Ok(s) = Swizzle::new(bits, base, shift) else { continue };
            let w = count(&at, Some(s), banks);
            if w < best.1 {
                best = (Some(s), w);
            }
        }
    }
    best
}
