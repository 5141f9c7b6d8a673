//! Defines the strides of layouts ([`Stride`]): a number of elements, or a number of steps along an
//! axis of a coordinate (`2@1`, two steps along axis 1).
//!
//! Layouts whose strides are basis elements return coordinates: `(4,5):(1@0,1@1)` is the identity.
//! Predicates and TMA use such coordinate tensors, as TMA instructions take coordinates instead of
//! addresses.
//!
//! Invariant: strides are a module over the leaves: `times` distributes over `plus`. A sum of steps
//! along two axes is not a stride, and is refused.

use super::LayoutError;
use crate::leaf::{Decision, Leaf};
use crate::tuple::IntTuple;
use std::fmt;
use std::hash::Hash;

/// The value of one step along a mode.
pub trait Stride<L: Leaf>: Copy + Eq + Hash + fmt::Debug + Send + Sync + 'static {
    /// No step.
    fn zero() -> Self;
    /// Whether the stride is known to be zero.
    fn is_zero(self) -> bool;
    /// The constant, if the stride is a constant number.
    fn number(self) -> Option<i64>;
    /// The stride of a constant number.
    fn from_number(v: i64) -> Self;
    /// `self * by`. Errors: overflow, arena limits.
    fn times(cx: &L::Cx, a: Self, by: L) -> Result<Self, LayoutError>;
    /// `a + b`. Errors: overflow, arena limits, steps along two axes.
    fn plus(cx: &L::Cx, a: Self, b: Self) -> Result<Self, LayoutError>;
    /// Whether the two are equal.
    fn same(cx: &L::Cx, a: Self, b: Self) -> Decision;
    /// The text of the stride.
    fn text_in(self, cx: &L::Cx) -> String;
}

impl<L: Leaf> Stride<L> for L {
    #[inline]
    fn zero() -> Self {
        <L as Leaf>::constant(0)
    }
    #[inline]
    fn is_zero(self) -> bool {
        self.known() == Some(0)
    }
    #[inline]
    fn number(self) -> Option<i64> {
        self.known()
    }
    #[inline]
    fn from_number(v: i64) -> Self {
        <L as Leaf>::constant(v)
    }
    #[inline]
    fn times(cx: &L::Cx, a: Self, by: L) -> Result<Self, LayoutError> {
        L::mul(cx, a, by)
    }
    #[inline]
    fn plus(cx: &L::Cx, a: Self, b: Self) -> Result<Self, LayoutError> {
        L::add(cx, a, b)
    }
    #[inline]
    fn same(cx: &L::Cx, a: Self, b: Self) -> Decision {
        <L as Leaf>::eq(cx, a, b)
    }
    #[inline]
    fn text_in(self, cx: &L::Cx) -> String {
        <L as Leaf>::show(self, cx)
    }
}

impl LayoutError {
    /// The error for a mode `inner` that straddles the end of mode `outer`. `part` is (steps,
    /// extent).
    #[cold]
    pub(crate) fn indivisible<L: Leaf, D: Stride<L>>(
        cx: &L::Cx,
        outer: (L, D),
        inner: (L, L),
        part: (L, L),
    ) -> Self {
        let (s, m) = (outer.0.show(cx), part.0.show(cx));
        let inner_text = format!("{}:{}", inner.0.show(cx), inner.1.show(cx));
        let fix = match (outer.0.known(), part.0.known()) {
            (Some(s), Some(m)) if m > 0 && s % m == 0 => {
                let turn = s / m;
                format!("make the extent of `{inner_text}` a multiple or a divisor of {turn}")
            }
            (Some(s), Some(m)) if m > 0 => format!(
                "make the stride of `{inner_text}` a divisor or a multiple of {s}, or its extent \
                 at most {}",
                (s - 1) / m + 1
            ),
            _ => format!("make one of `{m}` and `{s}` a multiple of the other, with equal signs"),
        };
        let outer = format!("{s}:{}", outer.1.text_in(cx));
        LayoutError::clash(outer, inner_text, fix)
    }
}

/// The longest path of an axis, `1@a@b@c@d`.
pub const MAX_AXES: usize = 4;

/// `value` steps along an axis, or a plain number without an axis. `2@1@0` is two steps along mode
/// 1 of mode 0.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Basis<L = i64> {
    value: L,
    /// The path of the axis, outermost mode first: the text has the reverse order.
    path: [u16; MAX_AXES],
    depth: u8,
}

impl<L: Leaf> Basis<L> {
    /// `value` steps along the mode at the end of the path, outermost mode first.
    ///
    /// # Errors
    /// [`LayoutError::TooDeep`] for more than [`MAX_AXES`] modes, [`LayoutError::TooLarge`] for a
    /// mode beyond 65535.
    pub fn along(value: L, path: &[usize]) -> Result<Self, LayoutError> {
        if path.len() > MAX_AXES {
            return Err(LayoutError::TooDeep { limit: MAX_AXES });
        }
        let mut out = Basis { value, path: [0; MAX_AXES], depth: path.len() as u8 };
        for (to, from) in out.path.iter_mut().zip(path) {
            *to = u16::try_from(*from).map_err(|_| LayoutError::TooLarge {
                what: "the number of a mode",
                limit: usize::from(u16::MAX),
            })?;
        }
        Ok(out)
    }

    /// A plain number.
    #[must_use]
    pub fn plain(value: L) -> Self {
        Basis { value, path: [0; MAX_AXES], depth: 0 }
    }

    /// The number of steps.
    #[must_use]
    pub fn value(self) -> L {
        self.value
    }

    /// The path of the axis, outermost mode first. Empty for a plain number.
    #[must_use]
    pub fn path(&self) -> Vec<usize> {
        self.path[..usize::from(self.depth)].iter().map(|p| usize::from(*p)).collect()
    }

    fn text(self, value: &str) -> String {
        let mut out = value.to_owned();
        for axis in self.path[..usize::from(self.depth)].iter().rev() {
            out.push('@');
            out.push_str(&axis.to_string());
        }
        out
    }
}

impl<L: Leaf> Stride<L> for Basis<L> {
    fn zero() -> Self {
        Basis::plain(<L as Leaf>::constant(0))
    }
    fn is_zero(self) -> bool {
        self.value.known() == Some(0)
    }
    fn number(self) -> Option<i64> {
        if self.depth == 0 || self.is_zero() { self.value.known() } else { None }
    }
    fn from_number(v: i64) -> Self {
        Basis::plain(<L as Leaf>::constant(v))
    }
    fn times(cx: &L::Cx, a: Self, by: L) -> Result<Self, LayoutError> {
        Ok(Basis { value: L::mul(cx, a.value, by)?, ..a })
    }
    fn plus(cx: &L::Cx, a: Self, b: Self) -> Result<Self, LayoutError> {
        if a.is_zero() {
            return Ok(b);
        }
        if b.is_zero() {
            return Ok(a);
        }
        if (a.path, a.depth) != (b.path, b.depth) {
            let (a, b) = (a.text_in(cx), b.text_in(cx));
            return Err(LayoutError::TwoAxes { a, b });
        }
        Ok(Basis { value: L::add(cx, a.value, b.value)?, ..a })
    }
    fn same(cx: &L::Cx, a: Self, b: Self) -> Decision {
        if (a.path, a.depth) != (b.path, b.depth) {
            return Decision::Known(a.is_zero() && b.is_zero());
        }
        <L as Leaf>::eq(cx, a.value, b.value)
    }
    fn text_in(self, cx: &L::Cx) -> String {
        self.text(&self.value.show(cx))
    }
}

impl<L: Leaf + fmt::Display> fmt::Display for Basis<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(&self.value.to_string()))
    }
}

/// The basis elements of a shape, at all depths: `1@k` for mode `k`.
///
/// # Errors
/// As [`Basis::along`].
pub fn basis_like<L: Leaf>(shape: &IntTuple<L>) -> Result<IntTuple<Basis<L>>, LayoutError> {
    fn walk<L: Leaf>(
        shape: &IntTuple<L>,
        path: &mut Vec<usize>,
    ) -> Result<IntTuple<Basis<L>>, LayoutError> {
        match shape {
            IntTuple::Leaf(_) => Ok(IntTuple::Leaf(Basis::along(<L as Leaf>::constant(1), path)?)),
            IntTuple::Tuple(modes) => {
                let mut out = Vec::with_capacity(modes.len());
                for (k, mode) in modes.iter().enumerate() {
                    path.push(k);
                    // Checked before the descent, so no path exceeds the limit.
                    if path.len() > MAX_AXES {
                        return Err(LayoutError::TooDeep { limit: MAX_AXES });
                    }
                    out.push(walk(mode, path)?);
                    path.pop();
                }
                Ok(IntTuple::Tuple(out))
            }
        }
    }
    walk(shape, &mut vec![])
}

/// A sum of steps along several axes: a coordinate of several modes.
pub(crate) enum CoordSum<L> {
    Number(L),
    Modes(Vec<CoordSum<L>>),
}

impl<L: Leaf> CoordSum<L> {
    /// Adds `digit` steps of a stride.
    pub(crate) fn add(&mut self, cx: &L::Cx, digit: L, step: Basis<L>) -> Result<(), LayoutError> {
        let amount = L::mul(cx, digit, step.value)?;
        let mut here = self;
        for axis in step.path[..usize::from(step.depth)].iter().map(|a| usize::from(*a)) {
            if let CoordSum::Number(n) = here {
                let first = CoordSum::Number(*n);
                *here = CoordSum::Modes(vec![first]);
            }
            let CoordSum::Modes(modes) = here else { return Ok(()) };
            while modes.len() <= axis {
                modes.push(CoordSum::Number(<L as Leaf>::constant(0)));
            }
            here = &mut modes[axis];
        }
        // A plain number goes to the first mode.
        while let CoordSum::Modes(modes) = here {
            here = &mut modes[0];
        }
        if let CoordSum::Number(n) = here {
            *n = L::add(cx, *n, amount)?;
        }
        Ok(())
    }

    pub(crate) fn tuple(&self) -> IntTuple<L> {
        match self {
            CoordSum::Number(n) => IntTuple::Leaf(*n),
            CoordSum::Modes(modes) => IntTuple::Tuple(modes.iter().map(CoordSum::tuple).collect()),
        }
    }
}
