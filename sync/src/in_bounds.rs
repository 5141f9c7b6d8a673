//! Tells for each thread of a block which elements of a partial tile exist. The checker records no
//! accesses to elements beyond the end of a tensor.

use crate::expr::{Env, Exprs};
use crate::plan::View;
use crate::value::{NOTHING, Value};
use crate::view_bounds::Limit;

/// The existing elements of a view.
pub(crate) struct InBounds<'v> {
    view: &'v View,
    /// The room below each limit.
    rooms: Vec<Value>,
}

impl View {
    /// Evaluates the bounds of the view for the threads of a block.
    pub(crate) fn in_bounds(&self, exprs: &Exprs<'_>, env: &Env) -> InBounds<'_> {
        InBounds { view: self, rooms: self.limits.iter().map(|l| l.room(exprs, env)).collect() }
    }
}

impl InBounds<'_> {
    /// Whether all elements exist for a thread. An unknown bound counts as not exceeded.
    pub(crate) fn has_all(&self, thread: usize) -> bool {
        let has_all = |(limit, room): (&Limit, &Value)| {
            let room = room.of(thread);
            room == NOTHING || room >= limit.end
        };
        self.view.limits.iter().zip(&self.rooms).all(has_all)
    }

    /// Whether an element may exist for a thread.
    #[inline]
    pub(crate) fn has(&self, thread: usize, element: u32) -> bool {
        let has = |(limit, room): (&Limit, &Value)| {
            let room = room.of(thread);
            room == NOTHING || limit.at.get(element as usize).is_none_or(|at| *at < room)
        };
        self.view.limits.iter().zip(&self.rooms).all(has)
    }

    /// Whether the existing elements are unknown for a thread.
    pub(crate) fn is_unsure(&self, thread: usize) -> bool {
        self.view.is_open_ended || self.rooms.iter().any(|room| room.of(thread) == NOTHING)
    }
}
