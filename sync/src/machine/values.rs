//! What expressions are, and for how long what is decided by them lasts. Nothing else here evaluates an expression.

use super::*;
use crate::limits::{Kept, Limit};
use crate::plan::View;

impl<'p, 'a> Machine<'p, 'a> {
    /// A value that decides what is done: it stays what it is.
    pub(super) fn fixed(&mut self, dim: Dim, env: &Env) -> Value {
        self.watch.still(self.exprs, dim, env, 1);
        self.exprs.value(dim, env)
    }

    /// Such a value of one thread; none where it has none.
    pub(super) fn fixed_at(&mut self, dim: Dim, env: &Env, thread: usize) -> Option<i64> {
        Some(self.fixed(dim, env).of(thread)).filter(|v| *v != NOTHING)
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
        let value = self.exprs.value(dim, env);
        if !self.watch.is_idle() {
            let mask = Mask::first(self.n_threads);
            for n in [all as i64, 0] {
                let most = Value::Same(n);
                let exprs = self.exprs;
                // More than all are as good as all, fewer than none as none.
                let is_beyond = |v: i64| if n == 0 { v <= 0 } else { v >= n };
                if mask.threads().all(|t| is_beyond(value.of(t))) {
                    let op = if n == 0 { CmpOp::Le } else { CmpOp::Ge };
                    self.watch.compares(&mask, (&value, &most), op, |along| {
                        (exprs.motion(dim, env, along), Motion::STILL)
                    });
                    return value;
                }
            }
            self.watch.still(self.exprs, dim, env, 1);
        }
        value
    }

    /// Which elements of a view there are.
    pub(super) fn kept(&mut self, view: &'a View, env: &Env) -> Kept<'a> {
        if !self.watch.is_idle() {
            view.limits.iter().for_each(|limit| self.watch_limit(limit, env));
        }
        view.kept(self.exprs, env)
    }

    /// For how long the elements stay below the extent that are, and the others beyond it.
    fn watch_limit(&mut self, limit: &Limit, env: &Env) {
        let exprs = self.exprs;
        let (extent, offset) = (exprs.value(limit.extent, env), exprs.value(limit.offset, env));
        let room = extent.less(&offset);
        let mask = Mask::first(self.n_threads);
        for (op, edge) in [(CmpOp::Ge, limit.end), (CmpOp::Le, limit.least)] {
            let is_beyond = |v: i64| v != NOTHING && crate::expr::holds(v, op, edge);
            if mask.threads().all(|t| is_beyond(room.of(t))) {
                self.watch.compares(&mask, (&extent, &offset.plus(edge)), op, |along| {
                    let motion = |dim: Dim| exprs.motion(dim, env, along);
                    (motion(limit.extent), motion(limit.offset))
                });
                return;
            }
        }
        self.watch.still(exprs, limit.extent, env, 1);
        self.watch.still(exprs, limit.offset, env, 1);
    }

    /// How a bound of a loop moves, along each way.
    pub(super) fn steps_of(&mut self, dim: Dim, env: &Env, is_start: bool) -> Steps {
        if self.watch.is_idle() {
            return Steps::default();
        }
        let exprs = self.exprs;
        self.watch.note(|along| exprs.motion(dim, env, along).rounds);
        let by = |along| {
            let m = exprs.motion(dim, env, along);
            // A variable that begins at another place in each outer turn is not known to be of an outer loop.
            let is_known = m.is_even() && !(m.is_outer && (is_start || m.by != 0));
            if is_known { m.by } else { NOTHING }
        };
        let nests = [Nest::Outer, Nest::Inner];
        let number = nests.map(|nest| by(Along::Number(nest)));
        let beside = |nest: Nest| match (by(Along::Inserted(nest)), number[nest as usize]) {
            (NOTHING, _) | (_, NOTHING) => NOTHING,
            (all, by) => all.checked_sub(by).unwrap_or(NOTHING),
        };
        let round = exprs.motion(dim, env, Along::Rounds).by;
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
        let mut holding = Mask::default();
        let is_tested = matches!(right, Dim::Expr(id) if self.exprs.given.exprs.contains(&id));
        for t in mask.threads() {
            let (a, b) = (a.of(t), b.of(t));
            if a == NOTHING || b == NOTHING {
                return None;
            }
            if is_tested {
                self.tested = self.tested.max(a);
            }
            if crate::expr::holds(a, op, b) {
                holding.insert(t);
            }
        }
        let exprs = self.exprs;
        self.watch.compares(mask, (a, b), op, |along| {
            (exprs.motion(left, env, along), exprs.motion(right, env, along))
        });
        Some(holding)
    }
}
