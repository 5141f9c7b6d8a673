//! Solves the equation of a copy, `f∘p⁻¹ = g∘q⁻¹`, for `g`: computes the thread-value layout of one
//! side of a copy instruction from that of the other side.
//!
//! This is Hexcute's constraint of a copy (CGO 2026, section IV, Fig. 19a). The layouts `p`
//! (source) and `q` (destination) map the threads and values of an instruction to elements of its
//! tile. The layouts `f` and `g` map the same threads and values to elements of the tensors. The
//! equation says that both sides name the same element of the copy. For a given `f`, `g = f∘p⁻¹∘q`.
//! For a given `g`, exchange the sides.
//!
//! Invariant: for every `j` below the size of `q`, `g(j) == f(i)` where `p(i) == q(j)`. There is
//! exactly one such `i`, unless `p` and `q` are the same layout.

use super::{Layout, LayoutError};
use crate::leaf::{Decision, Leaf};

/// The layout `g` with `f∘p⁻¹ = g∘q⁻¹`. It has the size of `q`, and its modes refine those of `q`.
/// If `p` equals `q`, `g` is `f`, without further requirements.
///
/// # Errors
/// [`LayoutError::NoInverse`] if `p` is not one-to-one onto `0..size`. [`LayoutError::Argument`] if
/// `f` is smaller than `p`, or if `q` has elements outside of `p`. [`LayoutError::Indivisible`] if
/// `f∘p⁻¹∘q` is a function but not a layout. [`LayoutError::NeedsFact`].
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
        wanted: "at least the size of `p`",
    })?;
    let inverse = p.right_inverse_in(cx)?;
    require(<L as Leaf>::eq(cx, inverse.size_in(cx)?, size), || LayoutError::NoInverse {
        layout: p.display_in(cx),
    })?;
    // The inverse is also defined beyond the last element of `p`, but has no meaning there.
    require(L::lt(cx, size, q.cosize_in(cx)?).not(), || LayoutError::Argument {
        what: "every element of `q`",
        found: q.display_in(cx),
        wanted: "an element of `p`",
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
/// // If all lanes hold one source element, there is no inverse.
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
