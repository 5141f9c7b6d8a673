//! Makes layouts and other operands from lists of small independent numbers, the choices. Property
//! tests draw the choices at random and shrink them; fuzz targets decode them from bytes.
//!
//! Invariant: every function is total. For all choices, the result is valid as the function states,
//! so shrinking the choices yields valid operands only. Invariant: choices of 0 and missing choices
//! give the simplest result.

use super::bounds::Bounds;
use super::plain::Plain;
use super::tiling::Tiling;

/// Maximum ratio of the reach of a layout to its size, so that its inverse and complement can be
/// enumerated.
const MAX_GAPS: i64 = 32;

/// The choices of one leaf; all numbers are below 16.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct LeafChoice {
    pub(crate) extent: u8,
    pub(crate) order: u8,
    pub(crate) spread: u8,
}

/// The choices of one layout.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct LayoutChoice {
    pub(crate) leaves: Vec<LeafChoice>,
    pub(crate) nesting: Vec<u8>,
}

/// The choices of a layout that consists of digits of another one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct DigitChoice {
    /// The digits to split in two, and where.
    pub(crate) cuts: Vec<(u8, u8)>,
    /// For each digit: its use, its position, its truncation.
    pub(crate) uses: Vec<(u8, u8, u8)>,
    pub(crate) nesting: Vec<u8>,
}

/// The kinds of strides that a layout may have.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Style {
    pub(crate) permuted: bool,
    pub(crate) padded: bool,
    pub(crate) broadcast: bool,
    pub(crate) wild: bool,
}

impl Style {
    pub(crate) const COMPACT: Style =
        Style { permuted: false, padded: false, broadcast: false, wild: false };
    pub(crate) const PERMUTED: Style = Style { permuted: true, ..Style::COMPACT };
    pub(crate) const PADDED: Style = Style { padded: true, ..Style::PERMUTED };
    pub(crate) const BROADCAST: Style = Style { broadcast: true, ..Style::PERMUTED };
    pub(crate) const NESTED: Style = Style { broadcast: true, ..Style::PADDED };
    pub(crate) const ANY: Style = Style { wild: true, ..Style::NESTED };
}

/// Extents whose product is at most `size`. A leaf without room for the smallest extent gets 1.
fn extents(choices: &[LeafChoice], size: i64, bounds: &Bounds) -> Vec<i64> {
    let mut left = size.max(1);
    let fit = |choice: &LeafChoice| {
        let extent = bounds.extent(choice.extent).min(left);
        let extent = if extent < *bounds.extents.start() { 1 } else { extent };
        left /= extent;
        extent
    };
    choices.iter().map(fit).collect()
}

/// The leaves of a layout within bounds. Unless the style is wild, they nest: every stride except 0
/// is a multiple of the reach of the leaf before.
pub(crate) fn leaves(choices: &[LeafChoice], style: Style, bounds: &Bounds) -> Vec<(i64, i64)> {
    let extents = extents(choices, bounds.points(), bounds);
    let mut leaves: Vec<_> = extents.into_iter().map(|e| (e, 0)).collect();
    let mut order: Vec<usize> = (0..leaves.len()).collect();
    if style.permuted {
        order.sort_by_key(|&k| choices[k].order);
    }
    let (mut next, mut gaps) = (1, 1);
    for k in order {
        let extent = leaves[k].0;
        let spread = i64::from(choices[k].spread % 16);
        leaves[k].1 = match spread {
            9..=11 if style.padded && gaps * (spread - 7) <= MAX_GAPS => {
                gaps *= spread - 7;
                next *= spread - 7;
                next
            }
            12 | 13 if style.broadcast => 0,
            14 | 15 if style.wild => i64::from(choices[k].order % 16) * (1 + (spread - 14) * 6),
            _ => next,
        };
        if leaves[k].1 == next {
            next *= extent;
        }
    }
    leaves
}

/// Nests leaves as chosen: each choice other than 0 groups up to four adjacent modes. An empty list
/// gives `1:0`; a single leaf is a number until it is grouped. If there are more modes than the
/// bounds allow, the last ones are grouped, or dropped if no nesting is allowed.
pub(crate) fn nest(leaves: &[(i64, i64)], nesting: &[u8], bounds: &Bounds) -> Plain {
    let most = match bounds.depth {
        0 => 1,
        1 => bounds.rank.max(1),
        _ => usize::MAX,
    };
    let leaves = leaves.get(..most).unwrap_or(leaves);
    let nested = nest_freely(leaves, nesting);
    let mut modes = nested.modes();
    if modes.len() > bounds.rank.max(1) {
        let rest = modes.split_off(bounds.rank.max(1) - 1);
        modes.push(Plain::concat(&rest));
        return shallow(Plain::concat(&modes), bounds.depth);
    }
    shallow(nested, bounds.depth)
}

/// The leaves of `a`, nested at most `depth` levels deep. A tuple of several leaves stays a tuple.
fn shallow(a: Plain, depth: usize) -> Plain {
    match depth {
        _ if a.shape.depth() <= depth => a,
        0 if a.leaves().len() == 1 => {
            let (extent, stride) = a.leaves()[0];
            Plain::new(extent, stride)
        }
        0 | 1 => Plain::flat(&a.leaves()),
        _ => {
            let modes: Vec<_> = a.modes().into_iter().map(|m| shallow(m, depth - 1)).collect();
            Plain::concat(&modes)
        }
    }
}

fn nest_freely(leaves: &[(i64, i64)], nesting: &[u8]) -> Plain {
    let mut modes: Vec<_> =
        leaves.iter().map(|&(extent, stride)| Plain::new(extent, stride)).collect();
    if modes.is_empty() {
        modes.push(Plain::new(1, 0));
    }
    for &choice in nesting.iter().filter(|c| **c > 0).take(4) {
        let begin = usize::from(choice / 4) % modes.len();
        let end = (begin + 1 + usize::from(choice % 4)).min(modes.len());
        let inner: Vec<_> = modes.drain(begin..end).collect();
        modes.insert(begin, Plain::concat(&inner));
    }
    if modes.len() == 1 { modes.swap_remove(0) } else { Plain::concat(&modes) }
}

/// A layout within bounds.
pub(crate) fn layout(choice: &LayoutChoice, style: Style, bounds: &Bounds) -> Plain {
    nest(&leaves(&choice.leaves, style, bounds), &choice.nesting, bounds)
}

/// Maximum reach of the indices of a large layout. Sums of two indices fit in 64 bits.
const LARGE: i64 = 1 << 60;

/// A layout whose extents are those of `bounds` times powers of two, and whose gaps are powers of
/// two, chosen for each leaf (`wide`, `far`). Its size and its indices are at most 2^60, and its
/// leaves nest.
pub(crate) fn large(
    choice: &LayoutChoice,
    scale: &[(u8, u8)],
    style: Style,
    bounds: &Bounds,
) -> Plain {
    let mut leaves: Vec<(i64, i64)> = vec![(1, 0); choice.leaves.len()];
    let mut order: Vec<usize> = (0..leaves.len()).collect();
    if style.permuted {
        order.sort_by_key(|&k| choice.leaves[k].order);
    }
    let (mut next, mut size) = (1i64, 1i64);
    for k in order {
        let leaf = choice.leaves[k];
        let (wide, far) = scale.get(k).copied().unwrap_or((0, 0));
        let extent = bounds.extent(leaf.extent) << (wide % 40);
        let gap = if style.padded { 1i64 << (far % 40) } else { 1 };
        let fits = |n: i64, by: i64| n.checked_mul(by).is_some_and(|n| n <= LARGE);
        if extent == 1 || !fits(size, extent) {
            continue;
        }
        if style.broadcast && matches!(leaf.spread % 16, 12 | 13) {
            size *= extent;
            leaves[k] = (extent, 0);
        } else if fits(next, gap) && fits(next * gap, extent) {
            size *= extent;
            leaves[k] = (extent, next * gap);
            next *= gap * extent;
        }
    }
    nest(&leaves, &choice.nesting, bounds)
}

/// The layout with the strides of the chosen leaves negated.
pub(crate) fn negated(a: &Plain, which: u8) -> Plain {
    let mut k = 0;
    let stride = a.stride.map(&mut |&stride| {
        k += 1;
        if which >> ((k - 1) % 8) & 1 == 1 { -stride } else { stride }
    });
    Plain::new(a.shape.clone(), stride)
}

/// The layout as a tuple: a number becomes a tuple of one number.
pub(crate) fn with_modes(a: Plain) -> Plain {
    if a.shape.is_leaf() { Plain::concat(&[a]) } else { a }
}

/// The extents after merging adjacent modes that continue each other: the radices in which the
/// layout writes an index.
fn radices(a: &Plain) -> Vec<i64> {
    let mut merged: Vec<(i64, i64)> = vec![];
    for (extent, stride) in a.leaves() {
        match merged.last_mut() {
            _ if extent == 1 => {}
            Some(last) if last.0.checked_mul(last.1) == Some(stride) => last.0 *= extent,
            _ => merged.push((extent, stride)),
        }
    }
    merged.into_iter().map(|(extent, _)| extent).collect()
}

/// The divisors of a number except 1 and itself, smallest first. For a large number only those
/// below 64 and their cofactors.
fn divisors(n: i64) -> Vec<i64> {
    let low: Vec<i64> = (2..n.min(64)).filter(|d| n % d == 0).collect();
    let mut all: Vec<i64> = low.iter().map(|d| n / d).chain(low.iter().copied()).collect();
    all.retain(|&d| 1 < d && d < n);
    all.sort_unstable();
    all.dedup();
    all
}

/// The radices, some of them split into two factors.
fn cut(mut radices: Vec<i64>, cuts: &[(u8, u8)]) -> Vec<i64> {
    for &(which, place) in cuts {
        if radices.is_empty() || place == 0 {
            continue;
        }
        let k = usize::from(which) % radices.len();
        let radix = radices[k];
        let divisors = divisors(radix);
        if !divisors.is_empty() {
            let inner = divisors[usize::from(place - 1) % divisors.len()];
            radices[k] = inner;
            radices.insert(k + 1, radix / inner);
        }
    }
    radices
}

/// Runs of adjacent digits as leaves (extent, stride) over the index. Each digit occurs in at most
/// one leaf. With `truncate`, the highest digit of a run may be truncated, and leaves of stride 0
/// may be added.
fn runs(radices: &[i64], choice: &DigitChoice, truncate: bool) -> Vec<(i64, i64)> {
    let mut leaves: Vec<(u8, i64, i64)> = vec![];
    let (mut prefix, mut open) = (1i64, false);
    for (&radix, &(used, order, short)) in radices.iter().zip(&choice.uses) {
        let shorter = truncate && short >= 13 && radix > 2;
        let extent = if shorter { 1 + i64::from(order) % (radix - 1) } else { radix };
        match (used % 16, leaves.last_mut()) {
            (0..=2, _) => open = false,
            (12.., Some(last)) if open => {
                last.1 *= extent;
                open = !shorter;
            }
            _ => {
                leaves.push((order, extent, prefix));
                open = !shorter;
            }
        }
        prefix *= radix;
    }
    if truncate && let Some(&(16.., order, short)) = choice.uses.last() {
        leaves.push((order, 2 + i64::from(short % 3), 0));
    }
    leaves.sort_by_key(|&(order, ..)| order);
    leaves.into_iter().map(|(_, extent, stride)| (extent, stride)).collect()
}

/// An inner layout that composes with `outer`: its leaves are runs of digits of `outer`.
pub(crate) fn inner_of(outer: &Plain, choice: &DigitChoice, bounds: &Bounds) -> Plain {
    let digits = cut(radices(outer), &choice.cuts);
    nest(&runs(&digits, choice, true), &choice.nesting, bounds)
}

/// A tile that divides `whole` evenly: it consists of whole digits, each at most once.
pub(crate) fn tile_of(whole: &Plain, choice: &DigitChoice, bounds: &Bounds) -> Plain {
    let digits = cut(radices(whole), &choice.cuts);
    nest(&runs(&digits, choice, false), &choice.nesting, bounds)
}

/// A tiling of the modes of the tuple `whole`. The choices are distributed over the modes.
pub(crate) fn tiling_of(
    whole: &Plain,
    choices: &[DigitChoice],
    tile: impl Fn(&Plain, &DigitChoice) -> Plain,
) -> Tiling<Plain> {
    let tile = |(mode, choice): (&Plain, &DigitChoice)| match choice.cuts.first() {
        Some((15, _)) => Tiling::Keep,
        _ => Tiling::Layout(tile(mode, choice)),
    };
    Tiling::Modes(whole.modes().iter().zip(choices).map(tile).collect())
}

/// A tiler that repeats the nesting layout `block` at most `most` times, and whose product exists:
/// runs of digits of the complement of the block; the last digit is unbounded.
pub(crate) fn copies_of(
    block: &Plain,
    top: &[LeafChoice],
    choice: &DigitChoice,
    most: i64,
    bounds: &Bounds,
) -> Plain {
    let mut digits = block.gaps().map_or(vec![], |(gaps, _)| gaps);
    digits.extend(extents(top, most, bounds).into_iter().filter(|extent| *extent > 1));
    let mut size = 1i64;
    // Only leading digits are kept: after the product becomes too large it stays too large.
    digits.retain(|digit| {
        size = size.saturating_mul(*digit);
        size <= most
    });
    nest(&runs(&digits, choice, false), &choice.nesting, bounds)
}

/// A shape in which `a` is an equal function: consecutive digits in order.
pub(crate) fn shape_of(a: &Plain, choice: &DigitChoice, bounds: &Bounds) -> Plain {
    let digits = cut(radices(a), &choice.cuts);
    let mut leaves: Vec<(i64, i64)> = vec![];
    for (k, digit) in digits.into_iter().enumerate() {
        match (choice.uses.get(k), leaves.last_mut()) {
            (Some((used, ..)), Some(last)) if used % 16 >= 12 => last.0 *= digit,
            _ => leaves.push((digit, 0)),
        }
    }
    nest(&leaves, &choice.nesting, bounds)
}

/// The layout of small elements for a layout of elements that are `n` times as large: strides are
/// multiplied by `n`, and the leaf of stride 1, or a new one, counts the parts with stride
/// `n / parts`.
pub(crate) fn parts_of(large: &Plain, n: i64, parts: i64, bounds: &Bounds) -> Plain {
    let mut leaves = large.leaves();
    let unit = leaves.iter().position(|&(extent, stride)| extent > 1 && stride == 1);
    for leaf in &mut leaves {
        leaf.1 *= n;
    }
    match unit {
        Some(k) => leaves[k] = (leaves[k].0 * parts, n / parts),
        None => leaves.insert(0, (parts, n / parts)),
    }
    leaves.retain(|&(extent, _)| extent > 1);
    nest(&leaves, &[], bounds)
}
