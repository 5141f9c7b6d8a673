//! Evaluates the expressions that decide what the machine does (offsets, conditions, numbers), and
//! records for how many rounds of the loop each decision remains the same. All files of the machine
//! record their decisions, most of them through this one, so that no decision is missed when rounds
//! are skipped.

use super::*;
use crate::expr::{self, Ex};
use crate::in_bounds::InBounds;
use crate::plan::View;

impl<'p, 'a> Machine<'p, 'a> {
    /// Evaluates an expression whose exact value matters: the value must remain the same.
    pub(super) fn fixed(&mut self, dim: Dim, env: &Env) -> Value {
        self.watch.still(self.exprs, dim, env, 1);
        self.exprs.value(dim, env)
    }

    /// Evaluates an offset in a buffer.
    pub(super) fn place(&mut self, dim: Dim, env: &Env, space: Space) -> Value {
        if space != Space::Free {
            self.watch.still(self.exprs, dim, env, 1);
        }
        self.exprs.value(dim, env)
    }

    /// Evaluates a number of valid elements, of which `all` are considered.
    pub(super) fn valid(&mut self, dim: Dim, env: &Env, all: usize) -> Value {
        // Numbers of at least `all` are equivalent, and so are numbers of at most 0.
        self.watch_room((dim, Dim::Const(0)), (0, all as i64), env);
        self.exprs.value(dim, env)
    }

    /// The existing elements of a view.
    pub(super) fn in_bounds(&mut self, view: &'a View, env: &Env) -> InBounds<'a> {
        for limit in &view.limits {
            self.watch_room((limit.extent, limit.offset), (limit.least, limit.end), env);
        }
        view.in_bounds(self.exprs, env)
    }

    /// Records for how long `extent - offset` remains the same. All values of at least `end` are
    /// equivalent, and so are all values of at most `least`.
    fn watch_room(&mut self, (extent, offset): (Dim, Dim), (least, end): (i64, i64), env: &Env) {
        if self.watch.is_idle() {
            return;
        }
        let exprs = self.exprs;
        let (to, from) = (exprs.value(extent, env), exprs.value(offset, env));
        let room = to.less(&from);
        let mask = Mask::first(self.n_threads);
        for (op, edge) in [(CmpOp::Ge, end), (CmpOp::Le, least)] {
            if expr::holding(&mask, &room, op, &Value::Same(edge)) == Some(mask) {
                self.watch.compares(&mask, (&to, &from.plus(edge)), op, |along| {
                    let increment = |dim: Dim| exprs.increment(dim, env, along);
                    (increment(extent), increment(offset))
                });
                return;
            }
        }
        self.watch.still(exprs, extent, env, 1);
        self.watch.still(exprs, offset, env, 1);
    }

    /// The steps of a loop bound, or of the value of a counter, along each direction.
    pub(super) fn steps_of(&mut self, ex: &Ex, env: &Env, is_start: bool) -> Steps {
        if self.watch.is_idle() {
            return Steps::default();
        }
        let exprs = self.exprs;
        self.watch.note(|along| exprs.increment_of(ex, env, along).rounds);
        let by = |along| {
            let m = exprs.increment_of(ex, env, along);
            // A variable whose start differs between iterations of an outer loop may itself depend
            // on that loop.
            let is_known = m.is_even() && !(m.is_outer && (is_start || m.by != 0));
            if is_known { m.by } else { NOTHING }
        };
        let nests = [Nest::Outer, Nest::Inner];
        let number = nests.map(|nest| by(Along::Number(nest)));
        let beside = |nest: Nest| match (by(Along::Inserted(nest)), number[nest as usize]) {
            (NOTHING, _) | (_, NOTHING) => NOTHING,
            (all, by) => all.checked_sub(by).unwrap_or(NOTHING),
        };
        let round = exprs.increment_of(ex, env, Along::Rounds).by;
        Steps { round, number, inserted: nests.map(beside) }
    }

    /// The threads for which a comparison holds; none if a side is unknown.
    pub(super) fn holding(
        &mut self,
        env: &Env,
        mask: &Mask,
        (left, a): (Dim, &Value),
        op: CmpOp,
        (right, b): (Dim, &Value),
    ) -> Option<Mask> {
        let holding = expr::holding(mask, a, op, b)?;
        if matches!(right, Dim::Expr(id) if self.exprs.is_number(id)) {
            self.tested = mask.threads().map(|t| a.of(t)).fold(self.tested, i64::max);
        }
        let exprs = self.exprs;
        self.watch.compares(mask, (a, b), op, |along| {
            (exprs.increment(left, env, along), exprs.increment(right, env, along))
        });
        Some(holding)
    }
}
