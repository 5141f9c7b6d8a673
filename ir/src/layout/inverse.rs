//! Computes left and right inverses of layouts. The inverse of a thread-value layout says which
//! thread holds an element, and as which of its values.
//!
//! Invariant: let `r = a.right_inverse()`. Then `a.at(r.at(i)) == i` for every `i < r.size()`; if
//! `a` is a bijection onto `0..n`, `r` is its inverse. Let `l = a.left_inverse()`. Then
//! `a.at(l.at(a.at(i))) == a.at(i)` for every `i < a.size()`, so `l` inverts an injective `a`.

use super::{Layout, LayoutError, Leaves};
use crate::leaf::Leaf;
use smallvec::SmallVec;

/// A leaf and the product of the extents of the leaves before.
#[derive(Copy, Clone)]
struct Step<L> {
    extent: L,
    stride: L,
    before: L,
}

impl<L: Leaf> Layout<L> {
    /// A layout `r` with `self.at(r.at(i)) == i` below its size. It consists of whole modes of this
    /// layout, as many as possible, or is `1:0`.
    ///
    /// # Errors
    /// [`LayoutError::NeedsFact`] if symbols decide whether a mode continues the others.
    #[inline]
    pub fn right_inverse_in(&self, cx: &L::Cx) -> Result<Layout<L>, LayoutError> {
        let moving = self.leaves.iter().filter(|l| l.0.known() != Some(1));
        let mut modes = super::coalesce::merge(cx, moving)?;
        let mut before: SmallVec<[L; 8]> = SmallVec::from_elem(L::constant(1), modes.len());
        let mut size = L::constant(1);
        for (before, mode) in before.iter_mut().zip(&modes) {
            *before = size;
            size = L::mul(cx, size, mode.0)?;
        }
        let mut next = L::constant(1);
        let mut inverse = Leaves::new();
        // Each round takes the mode that continues the modes taken so far.
        while let Some(k) = modes.iter().position(|m| <L as Leaf>::eq(cx, m.1, next).is_true()) {
            let (extent, stride) = modes[k];
            modes[k].1 = L::constant(0); // Marks the mode as taken.
            // Only adjacent modes could continue each other, and these are coalesced.
            inverse.push((extent, before[k]));
            // A reach that does not fit is not the stride of a mode.
            match L::mul(cx, extent, stride) {
                Ok(reach) => next = reach,
                Err(LayoutError::Overflow { .. }) => return Ok(Layout::trusted(inverse)),
                Err(error) => return Err(error),
            }
        }
        // The remaining modes must be known to continue nothing.
        for mode in modes.iter().filter(|m| m.1.known().is_none() || next.known().is_none()) {
            <L as Leaf>::eq(cx, mode.1, next).require()?;
        }
        Ok(Layout::trusted(inverse))
    }

    /// The layout that inverts this one on its image. An index of several coordinates (stride 0)
    /// maps to the first of them.
    ///
    /// # Errors
    /// [`LayoutError::NotInjective`] if modes overlap, [`LayoutError::Indivisible`] if the strides
    /// do not divide each other, [`LayoutError::NegativeStride`] if strides have both signs,
    /// [`LayoutError::NeedsFact`].
    pub fn left_inverse_in(&self, cx: &L::Cx) -> Result<Layout<L>, LayoutError> {
        let zero = L::constant(0);
        let mut steps: SmallVec<[Step<L>; 8]> = SmallVec::new();
        let mut down = None;
        for step in self.steps(cx)? {
            let negative = L::lt(cx, step.stride, zero).require()?;
            if down.replace(negative).is_some_and(|before| before != negative) {
                let mode = format!("{}:{}", step.extent.show(cx), step.stride.show(cx));
                return Err(LayoutError::NegativeStride { mode });
            }
            let stride = if negative { L::sub(cx, zero, step.stride)? } else { step.stride };
            let mut place = steps.len();
            while place > 0 && L::lt(cx, stride, steps[place - 1].stride).require()? {
                place -= 1;
            }
            steps.insert(place, Step { stride, ..step });
        }
        if steps.is_empty() {
            // Every index is the index of the first coordinate.
            return Layout::of_mode(self.size_in(cx)?, zero);
        }
        // Adjacent strides delimit the digit of a mode; its radix is their quotient.
        let one = L::constant(1);
        let mut last = Step { extent: one, stride: one, before: zero };
        let mut inverse = Leaves::new();
        for step in steps {
            let divides = L::divides(cx, last.stride, step.stride);
            let radix =
                if divides.is_true() { Some(L::div(cx, step.stride, last.stride)?) } else { None };
            let overlaps = match radix {
                Some(radix) => L::lt(cx, radix, last.extent).require()?,
                None => L::lt(cx, step.stride, L::mul(cx, last.stride, last.extent)?).require()?,
            };
            if overlaps {
                return Err(LayoutError::NotInjective { layout: self.display_in(cx) });
            }
            let Some(radix) = radix else {
                divides.require()?;
                let mode = |s: &Step<L>| format!("{}:{}", s.extent.show(cx), s.stride.show(cx));
                let (below, above) = (last.stride.show(cx), mode(&step));
                let fix = format!("make the stride of `{above}` a multiple of {below}");
                return Err(LayoutError::clash(above, mode(&last), fix));
            };
            push(cx, &mut inverse, radix, last.before)?;
            last = step;
        }
        push(cx, &mut inverse, last.extent, last.before)?;
        if down == Some(true) {
            for mode in &mut inverse {
                mode.1 = L::sub(cx, zero, mode.1)?;
            }
        }
        Layout::from_leaves(&inverse)
    }

    /// The coalesced leaves that move, each with the product of the extents before.
    #[inline]
    fn steps(&self, cx: &L::Cx) -> Result<SmallVec<[Step<L>; 8]>, LayoutError> {
        let moving = self.leaves.iter().filter(|l| l.0.known() != Some(1));
        let mut before = L::constant(1);
        let mut steps = SmallVec::new();
        for (extent, stride) in super::coalesce::merge(cx, moving)? {
            if stride.known() != Some(0) {
                steps.push(Step { extent, stride, before });
            }
            before = L::mul(cx, before, extent)?;
        }
        Ok(steps)
    }
}

/// Appends a mode and coalesces.
#[inline]
fn push<L: Leaf>(
    cx: &L::Cx,
    modes: &mut Leaves<L>,
    extent: L,
    stride: L,
) -> Result<(), LayoutError> {
    if extent.known() == Some(1) {
        return Ok(());
    }
    if let Some(last) = modes.last_mut() {
        let next = L::mul(cx, last.0, last.1);
        if next.is_ok_and(|next| <L as Leaf>::eq(cx, next, stride).is_true()) {
            last.0 = L::mul(cx, last.0, extent)?;
            return Ok(());
        }
    }
    modes.push((extent, stride));
    Ok(())
}

impl Layout<i64> {
    /// A layout `r` with `self.at(r.at(i)) == i` below its size. It consists of whole modes of this
    /// layout, as many as possible, or is `1:0`.
    ///
    /// ```
    /// # use carbyne_ir::layout::Layout;
    /// let a: Layout = "(4,8):(8,1)".parse()?;
    /// assert_eq!(a.right_inverse().to_string(), "(8,4):(4,1)");
    /// # Ok::<(), carbyne_ir::layout::LayoutError>(())
    /// ```
    #[must_use]
    pub fn right_inverse(&self) -> Layout<i64> {
        // Cannot fail: the inverse reaches no index beyond the size.
        self.right_inverse_in(&()).unwrap_or_else(|_| Layout::trivial())
    }

    /// The layout that inverts this one on its image. An index of several coordinates (stride 0)
    /// maps to the first of them.
    ///
    /// ```
    /// # use carbyne_ir::layout::Layout;
    /// let a: Layout = "4:2".parse()?;
    /// assert_eq!(a.left_inverse()?.to_string(), "(2,4):(0,1)");
    /// # Ok::<(), carbyne_ir::layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// [`LayoutError::NotInjective`] if modes overlap, [`LayoutError::Indivisible`] if the strides
    /// do not divide each other, [`LayoutError::NegativeStride`] for strides of both signs.
    pub fn left_inverse(&self) -> Result<Layout<i64>, LayoutError> {
        self.left_inverse_in(&())
    }
}
