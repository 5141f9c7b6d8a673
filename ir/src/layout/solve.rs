//! The equation of a copy, `f∘p⁻¹ = g∘q⁻¹`, solved for `g`.
//!
//! It is Hexcute's constraint of a copy (CGO 2026, section IV, Fig. 19a). An instruction holds the
//! elements of its tile, by thread and value, as `p` at its source and as `q` at its destination;
//! `f` and `g` send the same threads and values to elements of the tensors. The equation says that
//! both sides name the same element of the copy. With `f` given, `g = f∘p⁻¹∘q`; with `g` given,
//! exchange the sides.
//!
//! Invariant: for every `j` below the size of `q`, `g(j) == f(i)` where `p(i) == q(j)`; there is
//! just one such `i`, unless `p` and `q` are the same layout.

use super::{Layout, LayoutError};
use crate::leaf::{Decision, Leaf};

/// The layout `g` with `f∘p⁻¹ = g∘q⁻¹`: it has the size of `q`, and its modes refine those of `q`.
/// If `p` and `q` are the same layout, `g` is `f`, without further requirements.
///
/// # Errors
/// [`LayoutError::NoInverse`] where `p` is not one-to-one onto `0..size`, [`LayoutError::Argument`]
/// where `f` is smaller than `p` or where `q` has elements that `p` lacks,
/// [`LayoutError::Indivisible`] where `f∘p⁻¹∘q` is a function but no layout,
/// [`LayoutError::NeedsFact`].
pub fn solve_in<L: Leaf>(
    cx: &L::Cx,
    f: &Layout<L>,
    p: &Layout<L>,
    q: &Layout<L>,
) -> Result<Layout<L>, LayoutError> {
    if p == q {
        return Ok(f.clone());
    }
    let size = p.size_in(cx)?;
    require(L::lt(cx, f.size_in(cx)?, size).not(), || LayoutError::Argument {
        what: "the size of `f`",
        found: f.display_in(cx),
        wanted: "that of `p` at least",
    })?;
    let inverse = p.right_inverse_in(cx)?;
    require(<L as Leaf>::eq(cx, inverse.size_in(cx)?, size), || LayoutError::NoInverse {
        layout: p.display_in(cx),
    })?;
    // The inverse is also defined behind the last element of `p`, but means nothing there.
    require(L::lt(cx, size, q.cosize_in(cx)?).not(), || LayoutError::Argument {
        what: "every element of `q`",
        found: q.display_in(cx),
        wanted: "one of `p`",
    })?;
    f.compose_in(cx, &inverse.compose_in(cx, q)?)
}

fn require(decision: Decision, refused: impl Fn() -> LayoutError) -> Result<(), LayoutError> {
    if decision.require()? { Ok(()) } else { Err(refused()) }
}

/// As [`solve_in`], over plain numbers.
///
/// ```
/// # use carbyne_ir::layout::{Layout, LayoutError, solve};
/// // `ldmatrix`: lane l reads row l of a 32x8 tile and receives pairs of four rows.
/// let p: Layout = "(32,8):(1,32)".parse()?;
/// let q: Layout = "((4,8),(2,4)):((64,1),(32,8))".parse()?;
/// // The tensor at the source, by lane and value, is row-major.
/// let f: Layout = "(32,8):(8,1)".parse()?;
/// let g = solve(&f, &p, &q)?;
/// assert_eq!(g.to_string(), "((4,8),(2,4)):((2,8),(1,64))");
/// assert!((0..256).all(|j| (0..256).any(|i| p.at(i) == q.at(j) && f.at(i) == g.at(j))));
/// // A source that every lane holds has no inverse.
/// let all: Layout = "(32,8):(0,1)".parse()?;
/// assert!(matches!(solve(&f, &all, &q), Err(LayoutError::NoInverse { .. })));
/// # Ok::<(), LayoutError>(())
/// ```
///
/// # Errors
/// The errors of [`solve_in`].
pub fn solve(f: &Layout, p: &Layout, q: &Layout) -> Result<Layout, LayoutError> {
    solve_in(&(), f, p, q)
}
