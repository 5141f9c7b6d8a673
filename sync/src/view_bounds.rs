//! Elements of views that there are not: tiles may reach over the end of a mode, and nothing is
//! accessed there.
//!
//! Whether an element is one of the tensor's is a comparison of numbers that may depend on the
//! block, the thread, a loop or a symbol. An access is left out only where it is known not to be
//! made.

use crate::expr::{Env, Exprs};
use crate::value::{NOTHING, Value};
use carbyne_ir::expr::{Dim, ExprArena};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::Bound;

/// A mode that a view may reach over the end of: elements are accessed whose coordinate is below
/// its extent.
#[derive(Clone, Debug)]
pub(crate) struct Limit {
    /// The coordinate of element zero.
    pub(crate) offset: Dim,
    pub(crate) extent: Dim,
    /// Of each element, the coordinate from the offset.
    pub(crate) at: Vec<i64>,
    /// The least of these, and one more than the largest.
    pub(crate) least: i64,
    pub(crate) end: i64,
    /// What divides the extent less the offset, whatever they are; at least 1.
    divisor: i64,
}

impl Limit {
    /// `along` is the bound's layout where symbols have their values.
    pub(crate) fn new(arena: &ExprArena, bound: &Bound, along: &Layout<i64>) -> Limit {
        let at: Vec<i64> = (0..along.size()).map(|e| along.at(e)).collect();
        let least = at.iter().copied().min().unwrap_or(0);
        let end = at.iter().copied().max().map_or(least, |most| most.saturating_add(1));
        let (offset, extent) = (bound.offset, bound.extent);
        let divisor = arena.sub(extent, offset).map_or(1, |room| arena.divisor(room).max(1));
        Limit { offset, extent, at, least, end, divisor }
    }

    /// How many coordinates from the offset on are below the extent.
    pub(crate) fn room(&self, exprs: &Exprs<'_>, env: &Env) -> Value {
        exprs.value(self.extent, env).less(&exprs.value(self.offset, env))
    }

    /// The same up to what makes no difference to the elements of the view.
    pub(crate) fn clamped(&self, exprs: &Exprs<'_>, env: &Env) -> Value {
        self.room(exprs, env).map(|room| match room {
            NOTHING => NOTHING,
            room => room.clamp(self.least, self.end),
        })
    }

    /// Elements with the same number are all below the extent, or none is.
    pub(crate) fn class(&self, element: usize) -> i64 {
        self.at.get(element).map_or(0, |at| at.div_euclid(self.divisor))
    }
}
