//! Computes the complement of a layout: a layout of the indices that it leaves out. Division uses
//! it to iterate over tiles.
//!
//! Invariant: the complement is ordered (its indices increase), and its image shares only 0 with
//! the image of the layout. All sums of one index of each are different. If every stride is a
//! multiple of the reach (extent times stride) of the mode before it, the layout and its complement
//! together are a bijection onto a range that contains `0..cotarget`.

use super::shapes::ceil_div_in;
use super::{Layout, LayoutError, Leaves};
use crate::leaf::Leaf;
use crate::tuple::IntTuple;

impl<L: Leaf> Layout<L> {
    /// The complement with respect to `0..cotarget`. A tuple `cotarget` is divided mode by mode,
    /// and each quotient is rounded up: `complement(8:1, (3,5,32))` is `64:8`.
    ///
    /// # Errors
    /// [`LayoutError::NotInjective`] if modes overlap, [`LayoutError::NegativeStride`], and
    /// [`LayoutError::NeedsFact`] if the order of the strides depends on symbols.
    #[inline]
    pub fn complement_in(
        &self,
        cx: &L::Cx,
        cotarget: impl Into<IntTuple<L>>,
    ) -> Result<Layout<L>, LayoutError> {
        let mut gaps = Leaves::new();
        let reach = self.gaps(cx, &mut gaps)?;
        match cotarget.into() {
            IntTuple::Leaf(target) => {
                let rest = L::max(cx, L::constant(1), L::ceil_div(cx, target, reach)?)?;
                push(cx, &mut gaps, rest, reach)?;
            }
            target => {
                let mut stride = reach;
                for rest in ceil_div_in(cx, &target, reach)?.flatten() {
                    push(cx, &mut gaps, rest, stride)?;
                    stride = L::mul(cx, stride, rest)?;
                }
            }
        }
        let layout = Layout::trusted(gaps);
        layout.check_constants()?;
        Ok(layout)
    }

    /// Collects the gaps between the modes by increasing stride. Returns the reach of the last
    /// mode.
    #[inline]
    pub(crate) fn gaps(&self, cx: &L::Cx, gaps: &mut Leaves<L>) -> Result<L, LayoutError> {
        let mut modes = Leaves::new();
        self.moving_leaves(cx, &mut modes)?;
        sort(cx, &mut modes)?;
        let mut current = L::constant(1);
        for &(extent, stride) in &modes {
            // A stride below the reach of the modes before would hit their indices again.
            if L::lt(cx, stride, current).require()? {
                return Err(LayoutError::NotInjective { layout: self.display_in(cx) });
            }
            push(cx, gaps, L::div(cx, stride, current)?, current)?;
            current = L::mul(cx, extent, stride)?;
        }
        Ok(current)
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
        let next = L::mul(cx, last.0, last.1)?;
        if <L as Leaf>::eq(cx, next, stride).is_true() {
            last.0 = L::mul(cx, last.0, extent)?;
            return Ok(());
        }
    }
    modes.push((extent, stride));
    Ok(())
}

/// Sorts the moving leaves by increasing stride. There are few.
#[inline]
fn sort<L: Leaf>(cx: &L::Cx, leaves: &mut [(L, L)]) -> Result<(), LayoutError> {
    for k in 0..leaves.len() {
        let leaf = leaves[k];
        if L::lt(cx, leaf.1, L::constant(0)).require()? {
            let mode = format!("{}:{}", leaf.0.show(cx), leaf.1.show(cx));
            return Err(LayoutError::NegativeStride { mode });
        }
        let mut place = k;
        while place > 0 && L::lt(cx, leaf.1, leaves[place - 1].1).require()? {
            leaves[place] = leaves[place - 1];
            place -= 1;
        }
        leaves[place] = leaf;
    }
    Ok(())
}

impl Layout<i64> {
    /// The complement with respect to `0..cotarget`. A tuple `cotarget` is divided mode by mode,
    /// and each quotient is rounded up: `complement(8:1, (3,5,32))` is `64:8`.
    ///
    /// ```
    /// # use carbyne_ir::layout::Layout;
    /// let a: Layout = "(2,2):(1,6)".parse()?;
    /// assert_eq!(a.complement(24)?.to_string(), "(3,2):(2,12)");
    /// # Ok::<(), carbyne_ir::layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// [`LayoutError::NotInjective`] if modes overlap, [`LayoutError::NegativeStride`].
    pub fn complement(&self, cotarget: impl Into<IntTuple>) -> Result<Layout<i64>, LayoutError> {
        self.complement_in(&(), cotarget)
    }
}
