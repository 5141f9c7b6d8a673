//! Evaluates the bounds of a partial tile ([`Limit`]): a view whose elements beyond the end of a
//! mode do not exist. No thread accesses those.
//!
//! Whether an element exists is a comparison that may depend on the block, the thread, a loop or a
//! symbol. The checker leaves an access out only if the element is known not to exist.

use crate::expr::{Env, Exprs};
use crate::value::{NOTHING, Value};
use carbyne_ir::expr::{Dim, ExprArena};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::Bound;

/// A mode whose end a view may exceed. Elements exist if their coordinate is below the extent.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    /// The coordinate of element 0.
    pub(crate) offset: Dim,
    pub(crate) extent: Dim,
    /// For each element, its coordinate relative to the offset.
    pub(crate) at: Vec<i64>,
    /// The least of these coordinates, and one more than the largest.
    pub(crate) least: i64,
    pub(crate) end: i64,
    /// A number of at least 1 that divides the extent minus the offset for all values of the
    /// symbols.
    divisor: i64,
}

impl Limit {
    /// `along` is the layout of the bound, evaluated for the values of symbols.
    pub(crate) fn new(arena: &ExprArena, bound: &Bound, along: &Layout<i64>) -> Limit {
        let at: Vec<i64> = (0..along.size()).map(|e| along.at(e)).collect();
        let least = at.iter().copied().min().unwrap_or(0);
        let end = at.iter().copied().max().map_or(least, |most| most.saturating_add(1));
        let (offset, extent) = (bound.offset, bound.extent);
        let divisor = arena.sub(extent, offset).map_or(1, |room| arena.divisor(room).max(1));
        Limit { offset, extent, at, least, end, divisor }
    }

    /// The number of coordinates from the offset to the extent.
    pub(crate) fn room(&self, exprs: &Exprs<'_>, env: &Env) -> Value {
        exprs.value(self.extent, env).less(&exprs.value(self.offset, env))
    }

    /// The room, clamped to the values that make a difference to the elements of the view.
    pub(crate) fn clamped(&self, exprs: &Exprs<'_>, env: &Env) -> Value {
        self.room(exprs, env).map(|room| match room {
            NOTHING => NOTHING,
            room => room.clamp(self.least, self.end),
        })
    }

    /// The class of an element. Either all elements of a class are below the extent, or none is.
    pub(crate) fn class(&self, element: usize) -> i64 {
        self.at.get(element).map_or(0, |at| at.div_euclid(self.divisor))
    }
}
