//! What expressions are, and for how long what is decided by them lasts. Nothing else here
//! evaluates an expression.

use super::*;
use crate::expr;
use crate::in_bounds::InBounds;
use crate::plan::View;

impl<'p, 'a> Machine<'p, 'a> {
    /// A value that decides what is done: it stays what it is.
    pub(super) fn fixed(&mut self, dim: Dim, env: &Env) -> Value {
        self.watch.still(self.exprs, dim, env, 1);
        self.exprs.value(dim, env)
    }

    /// A place in a buffer.
    pub(super) fn place(&mut self, dim: Dim, env: &Env, space: Space) -> Value {
        if space != Space::Free {
            self.watch.still(self.exprs, dim, env, 1);
        }
        self.exprs.value(dim, env)
    }

    /// How many elements are valid, of so many that are looked at.
    pub(super) fn valid(&mut self, dim: Dim, env: &Env, all: usize) -> Value {
        // More than all are as good as all, fewer than none as none.
        self.watch_room((dim, Dim::Const(0)), (0, all as i64), env);
        self.exprs.value(dim, env)
    }

    /// Which elements of a view there are.
    pub(super) fn in_bounds(&mut self, view: &'a View, env: &Env) -> InBounds<'a> {
        for limit in &view.limits {
            self.watch_room((limit.extent, limit.offset), (limit.least, limit.end), env);
        }
        view.in_bounds(self.exprs, env)
    }

    /// For how long an extent stays so far above an offset as it is: as far as the one number, or
    /// less, or as far as the other, or more, is all the same.
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

    /// How a bound of a loop moves, along each way.
    pub(super) fn steps_of(&mut self, dim: Dim, env: &Env, is_start: bool) -> Steps {
        if self.watch.is_idle() {
            return Steps::default();
        }
        let exprs = self.exprs;
        self.watch.note(|along| exprs.increment(dim, env, along).rounds);
        let by = |along| {
            let m = exprs.increment(dim, env, along);
            // A variable that begins at another place in each outer turn is not known to be of an
            // outer loop.
            let is_known = m.is_even() && !(m.is_outer && (is_start || m.by != 0));
            if is_known { m.by } else { NOTHING }
        };
        let nests = [Nest::Outer, Nest::Inner];
        let number = nests.map(|nest| by(Along::Number(nest)));
        let beside = |nest: Nest| match (by(Along::Inserted(nest)), number[nest as usize]) {
            (NOTHING, _) | (_, NOTHING) => NOTHING,
            (all, by) => all.checked_sub(by).unwrap_or(NOTHING),
        };
        let round = exprs.increment(dim, env, Along::Rounds).by;
        Steps { round, number, inserted: nests.map(beside) }
    }

    /// The threads for which a comparison holds; none where a side is not known.
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
