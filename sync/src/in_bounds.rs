//! Which elements of a view are accessed: those that there are.

use crate::expr::{Env, Exprs};
use crate::plan::View;
use crate::value::{NOTHING, Value};
use crate::view_bounds::Limit;

/// Which elements of a view are accessed.
pub(crate) struct InBounds<'v> {
    view: &'v View,
    /// The room below each limit.
    rooms: Vec<Value>,
}

impl View {
    /// Which elements there are, for the threads of a block.
    pub(crate) fn in_bounds(&self, exprs: &Exprs<'_>, env: &Env) -> InBounds<'_> {
        InBounds { view: self, rooms: self.limits.iter().map(|l| l.room(exprs, env)).collect() }
    }
}

impl InBounds<'_> {
    /// Whether a thread accesses all elements.
    pub(crate) fn has_all(&self, thread: usize) -> bool {
        let has_all = |(limit, room): (&Limit, &Value)| {
            let room = room.of(thread);
            room == NOTHING || room >= limit.end
        };
        self.view.limits.iter().zip(&self.rooms).all(has_all)
    }

    /// Whether a thread may access an element.
    #[inline]
    pub(crate) fn has(&self, thread: usize, element: u32) -> bool {
        let has = |(limit, room): (&Limit, &Value)| {
            let room = room.of(thread);
            room == NOTHING || limit.at.get(element as usize).is_none_or(|at| *at < room)
        };
        self.view.limits.iter().zip(&self.rooms).all(has)
    }

    /// Whether it is not known which elements a thread accesses.
    pub(crate) fn is_unsure(&self, thread: usize) -> bool {
        self.view.is_open_ended || self.rooms.iter().any(|room| room.of(thread) == NOTHING)
    }
}
