//! Implements operations on shapes and coordinates that take no layout: quotients, inner products,
//! sizes of modes, whether a tiler cuts a shape into whole tiles, and which layout of `n`
//! coordinates tiles a shape from the first mode on (`domain_distribute`).
//!
//! Invariant: a quotient of a tuple by a number starts at the first mode, and each mode takes as
//! much of the divisor as it can. `ceil_div` rounds up in every mode; `shape_div` requires exact
//! quotients.

use super::{Layout, LayoutError, Leaves, Tiler};
use crate::leaf::{Decision, Leaf, gcd};
use crate::tuple::IntTuple;

/// `shape / divisor` with every quotient rounded up: `(10,7) / 3 = (4,7)`.
///
/// # Errors
/// Overflow, divisors that are not positive, and limits.
pub fn ceil_div_in<L: Leaf>(
    cx: &L::Cx,
    shape: &IntTuple<L>,
    divisor: L,
) -> Result<IntTuple<L>, LayoutError> {
    let mut rest = divisor;
    shape.try_map(&mut |extent| {
        let quotient = L::ceil_div(cx, *extent, rest)?;
        rest = L::ceil_div(cx, rest, *extent)?;
        Ok(quotient)
    })
}

/// `shape / divisor`. Each mode must divide the rest of the divisor or be divisible by it:
/// `(3,4) / 6 = (1,2)`.
///
/// # Errors
/// [`LayoutError::Indivisible`], [`LayoutError::NeedsFact`], divisors that are not positive.
pub fn shape_div_in<L: Leaf>(
    cx: &L::Cx,
    shape: &IntTuple<L>,
    divisor: L,
) -> Result<IntTuple<L>, LayoutError> {
    if L::lt(cx, L::constant(0), divisor).is_false() {
        return Err(LayoutError::Divisor { divisor: divisor.show(cx) });
    }
    let mut rest = divisor;
    shape.try_map(&mut |extent| {
        let (quotient, next) = quotients(cx, *extent, rest)?;
        rest = next;
        Ok(quotient)
    })
}

/// `(a / b, b / a)` if one divides the other; the smaller quotient is 1.
pub(crate) fn quotients<L: Leaf>(cx: &L::Cx, a: L, b: L) -> Result<(L, L), LayoutError> {
    let one = L::constant(1);
    let down = L::divides(cx, b, a);
    if down.is_true() {
        return Ok((L::div(cx, a, b)?, one));
    }
    let up = L::divides(cx, a, b);
    if up.is_true() {
        return Ok((one, L::div(cx, b, a)?));
    }
    match (down, up) {
        (Decision::Needs(fact), _) | (_, Decision::Needs(fact)) => {
            Err(LayoutError::NeedsFact { fact })
        }
        _ => {
            let (a, b) = (a.show(cx), b.show(cx));
            let fix = format!("make {a} a multiple or a divisor of {b}");
            Err(LayoutError::clash(a, b, fix))
        }
    }
}

/// `shape / divisor` mode by mode, each exact. The tuples have equal nesting, or a number stands
/// over a tuple.
///
/// # Errors
/// The errors of [`shape_div_in`], and [`LayoutError::Incongruent`].
pub fn shape_div_by_in<L: Leaf>(
    cx: &L::Cx,
    shape: &IntTuple<L>,
    divisor: &IntTuple<L>,
) -> Result<IntTuple<L>, LayoutError> {
    by_mode(cx, shape, divisor, &|shape, divisor| match divisor {
        IntTuple::Leaf(divisor) => shape_div_in(cx, shape, *divisor),
        // A number over a tuple is divided by the size of the tuple.
        tuple => shape_div_in(cx, shape, tuple.size_in(cx)?),
    })
}

/// `shape / divisor` mode by mode, rounded up. If the divisor has fewer modes, the others stay
/// unchanged.
///
/// # Errors
/// The errors of [`ceil_div_in`], and [`LayoutError::Incongruent`].
pub fn ceil_div_by_in<L: Leaf>(
    cx: &L::Cx,
    shape: &IntTuple<L>,
    divisor: &IntTuple<L>,
) -> Result<IntTuple<L>, LayoutError> {
    by_mode(cx, shape, divisor, &|shape, divisor| match divisor {
        IntTuple::Leaf(divisor) => ceil_div_in(cx, shape, *divisor),
        tuple => ceil_div_in(cx, shape, tuple.size_in(cx)?),
    })
}

fn by_mode<L: Leaf>(
    cx: &L::Cx,
    a: &IntTuple<L>,
    b: &IntTuple<L>,
    leaf: &impl Fn(&IntTuple<L>, &IntTuple<L>) -> Result<IntTuple<L>, LayoutError>,
) -> Result<IntTuple<L>, LayoutError> {
    match (a, b) {
        (IntTuple::Tuple(a), IntTuple::Tuple(b)) if b.len() <= a.len() => {
            let mut out = Vec::with_capacity(a.len());
            for (k, a) in a.iter().enumerate() {
                out.push(b.get(k).map_or_else(|| Ok(a.clone()), |b| by_mode(cx, a, b, leaf))?);
            }
            Ok(IntTuple::Tuple(out))
        }
        (IntTuple::Tuple(_), IntTuple::Tuple(_)) => {
            Err(LayoutError::Incongruent { shape: a.display_in(cx), other: b.display_in(cx) })
        }
        _ => leaf(a, b),
    }
}

/// The sum of the products of corresponding leaves: `((2,3),4) · ((2,1),2) = 15`.
///
/// # Errors
/// [`LayoutError::Incongruent`] and overflow.
pub fn inner_product_in<L: Leaf>(
    cx: &L::Cx,
    a: &IntTuple<L>,
    b: &IntTuple<L>,
) -> Result<L, LayoutError> {
    if !a.congruent(b) {
        return Err(LayoutError::Incongruent { shape: a.display_in(cx), other: b.display_in(cx) });
    }
    let mut sum = L::constant(0);
    for (a, b) in a.flatten().into_iter().zip(b.flatten()) {
        sum = L::add(cx, sum, L::mul(cx, a, b)?)?;
    }
    Ok(sum)
}

/// The size of every mode: `(6,4)` for `((2,3),4)`. A number stays.
///
/// # Errors
/// Overflow.
pub fn product_each_in<L: Leaf>(
    cx: &L::Cx,
    shape: &IntTuple<L>,
) -> Result<IntTuple<L>, LayoutError> {
    match shape {
        IntTuple::Leaf(_) => Ok(shape.clone()),
        IntTuple::Tuple(modes) => {
            let sizes = modes.iter().map(|m| m.size_in(cx)).collect::<Result<Vec<L>, _>>()?;
            Ok(sizes.into())
        }
    }
}

/// Whether the tiler cuts a shape into whole tiles.
///
/// # Errors
/// Overflow, and the errors of the complement of a tiler.
pub fn evenly_divides_in<L: Leaf>(
    cx: &L::Cx,
    shape: &IntTuple<L>,
    tiler: &Tiler<L>,
) -> Result<Decision, LayoutError> {
    match tiler {
        Tiler::Keep => Ok(Decision::Known(true)),
        Tiler::Layout(tile) => {
            let rest = tile.complement_in(cx, shape.clone())?;
            let tiled = L::mul(cx, tile.size_in(cx)?, rest.size_in(cx)?)?;
            Ok(<L as Leaf>::eq(cx, shape.size_in(cx)?, tiled))
        }
        Tiler::Modes(tilers) => {
            if tilers.len() > shape.rank() {
                return Ok(Decision::Known(false));
            }
            let mut all = Decision::Known(true);
            for (mode, tiler) in shape.modes().iter().zip(tilers) {
                match evenly_divides_in(cx, mode, tiler)? {
                    Decision::Known(true) => {}
                    Decision::Known(false) => return Ok(Decision::Known(false)),
                    needs @ Decision::Needs(_) => all = needs,
                }
            }
            Ok(all)
        }
    }
}

/// A layout of at most `n` coordinates of a shape, distributed over its modes from the first on.
/// Tiling by this layout gives tiles of this size at every origin.
///
/// # Errors
/// [`LayoutError::Argument`] for `n` below 1, overflow.
pub fn domain_distribute(shape: &IntTuple, n: i64) -> Result<Layout, LayoutError> {
    if n < 1 {
        let found = n.to_string();
        return Err(LayoutError::Argument { what: "the number", found, wanted: "1 or more" });
    }
    let (mut rest, mut before) = (n, 1i64);
    let mut leaves = Leaves::new();
    for extent in shape.flatten() {
        if extent < 1 {
            return Err(LayoutError::Extent { extent });
        }
        let part = gcd(extent, rest);
        leaves.push((part, before));
        rest /= part;
        before = before
            .checked_mul(extent)
            .ok_or(LayoutError::Overflow { what: "the size of a shape" })?;
    }
    Layout::from_leaves(&leaves).map(|l| l.coalesce())
}
