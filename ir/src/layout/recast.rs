//! Recasts layouts: views the memory of a layout as elements of another width, for example halves
//! as vectors of 128 bits.
//!
//! Invariant: let `w = a.upcast(n)`, and let `c'` be the coordinate `c` with every digit divided by
//! the number of its steps that one wide element holds. Then `w.at(c') == a.at(c) / n`, rounded
//! down: the wide element that holds the narrow one. `downcast(n)` addresses the `n` narrow
//! elements of each wide one: it multiplies the digit of the mode of stride 1 by `n`. Widths are in
//! bits, so elements can be smaller than a byte.

use super::{Layout, LayoutError, Leaves};
use crate::leaf::{Leaf, gcd};

impl<L: Leaf> Layout<L> {
    /// The layout of elements that are `n` times as wide.
    ///
    /// # Errors
    /// [`LayoutError::Recast`] if a wide element would be split, [`LayoutError::NeedsFact`].
    pub fn upcast_in(&self, cx: &L::Cx, n: i64) -> Result<Layout<L>, LayoutError> {
        positive(n)?;
        let (factor, zero, one) = (L::constant(n), L::constant(0), L::constant(1));
        // The offset of the modes so far within a wide element.
        let mut inside = zero;
        let mut leaves = Leaves::new();
        for &(extent, stride) in &self.leaves {
            if stride.known() == Some(0) {
                leaves.push((extent, stride));
                continue;
            }
            let refuse = |reason| self.recast_error(cx, (extent, stride), n, reason);
            let down = L::lt(cx, stride, zero).require()?;
            let size = if down { L::sub(cx, zero, stride)? } else { stride };
            let whole = L::divides(cx, factor, size);
            let (extent, size) = if whole.is_true() {
                (extent, L::div(cx, size, factor)?)
            } else if !L::divides(cx, size, factor).is_true() {
                whole.require()?;
                return Err(refuse("its stride is neither a multiple nor a divisor of the factor"));
            } else {
                if down && extent.known() != Some(1) {
                    return Err(refuse("it steps downwards within a wide element"));
                }
                // The number of steps within a wide element.
                let steps = L::div(cx, factor, size)?;
                let turns = L::divides(cx, steps, extent);
                let (outer, within) = if turns.is_true() {
                    (L::div(cx, extent, steps)?, steps)
                } else if L::divides(cx, extent, steps).is_true() {
                    (one, extent)
                } else {
                    turns.require()?;
                    return Err(refuse("its extent does not fill whole wide elements"));
                };
                let reach = L::mul(cx, size, L::sub(cx, within, one)?)?;
                inside = L::add(cx, inside, reach)?;
                if !L::lt(cx, inside, factor).require()? {
                    return Err(refuse("modes together leave the wide element"));
                }
                (outer, one)
            };
            leaves.push((extent, if down { L::sub(cx, zero, size)? } else { size }));
        }
        Layout::checked(self.profile.clone(), leaves)
    }

    /// The layout of elements that are `1/n` as wide.
    ///
    /// # Errors
    /// [`LayoutError::Recast`] where no mode has stride 1; overflow.
    pub fn downcast_in(&self, cx: &L::Cx, n: i64) -> Result<Layout<L>, LayoutError> {
        positive(n)?;
        if n == 1 {
            return Ok(self.clone());
        }
        let factor = L::constant(n);
        // The parts of an element become steps of the first mode of stride 1; a mode that moves
        // takes precedence.
        let unit = |moves: bool| {
            let fits = |(n, d): &(L, L)| d.known() == Some(1) && (n.known() != Some(1) || !moves);
            self.leaves.iter().position(fits)
        };
        let Some(unit) = unit(true).or_else(|| unit(false)) else {
            let first = self.leaves.first().copied();
            let first = first.unwrap_or((L::constant(1), L::constant(0)));
            let reason = "no mode has stride 1, so the parts of an element have no coordinate";
            return Err(self.recast_error(cx, first, n, reason));
        };
        let mut leaves = Leaves::new();
        for (k, &(extent, stride)) in self.leaves.iter().enumerate() {
            leaves.push(match k == unit {
                true => (L::mul(cx, extent, factor)?, stride),
                false => (extent, L::mul(cx, stride, factor)?),
            });
        }
        Layout::checked(self.profile.clone(), leaves)
    }

    /// The layout of elements of `new` bits for a layout of elements of `old` bits.
    ///
    /// # Errors
    /// [`LayoutError::Argument`] for widths below 1, and those of [`Layout::upcast_in`] and
    /// [`Layout::downcast_in`].
    pub fn recast_in(&self, cx: &L::Cx, old: i64, new: i64) -> Result<Layout<L>, LayoutError> {
        positive(old)?;
        positive(new)?;
        let common = gcd(old, new);
        // The step to wider elements comes first: after it, no element is split without need.
        self.upcast_in(cx, new / common)?.downcast_in(cx, old / common)
    }

    #[cold]
    fn recast_error(&self, cx: &L::Cx, mode: (L, L), n: i64, reason: &'static str) -> LayoutError {
        let mode = format!("{}:{}", mode.0.show(cx), mode.1.show(cx));
        LayoutError::Recast { mode, factor: n.to_string(), reason }
    }
}

fn positive(n: i64) -> Result<(), LayoutError> {
    if n >= 1 {
        return Ok(());
    }
    let found = n.to_string();
    Err(LayoutError::Argument { what: "the factor or width", found, wanted: "1 or more" })
}

impl Layout<i64> {
    /// The layout of elements that are `n` times as wide.
    ///
    /// ```
    /// # use carbyne_ir::layout::Layout;
    /// let halves: Layout = "(8,4):(1,16)".parse()?;
    /// assert_eq!(halves.upcast(8)?.to_string(), "(1,4):(1,2)");
    /// # Ok::<(), carbyne_ir::layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// [`LayoutError::Recast`] if a wide element would be split.
    pub fn upcast(&self, n: i64) -> Result<Layout, LayoutError> {
        self.upcast_in(&(), n)
    }

    /// The layout of elements that are `1/n` as wide.
    ///
    /// # Errors
    /// [`LayoutError::Recast`] where no mode has stride 1; overflow.
    pub fn downcast(&self, n: i64) -> Result<Layout, LayoutError> {
        self.downcast_in(&(), n)
    }

    /// The layout of elements of `new` bits for a layout of elements of `old` bits.
    ///
    /// ```
    /// # use carbyne_ir::layout::Layout;
    /// let nibbles: Layout = "(32,2):(1,64)".parse()?;
    /// assert_eq!(nibbles.recast(4, 16)?.to_string(), "(8,2):(1,16)");
    /// # Ok::<(), carbyne_ir::layout::LayoutError>(())
    /// ```
    ///
    /// # Errors
    /// [`LayoutError::Argument`] for widths below 1, and those of [`Layout::upcast`] and
    /// [`Layout::downcast`].
    pub fn recast(&self, old: i64, new: i64) -> Result<Layout, LayoutError> {
        self.recast_in(&(), old, new)
    }
}
