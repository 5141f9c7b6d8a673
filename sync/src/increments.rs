//! Computes how the values of expressions change from one round of a loop to the next, and for how
//! many rounds a decision, such as the outcome of a condition, remains the same. So the machine can
//! skip rounds that repeat. It does the same from one trip count to the next, for proofs about all
//! trip counts ([`Along`]).
//!
//! A *round* is the stretch of iterations between two states of a loop that differ only in loop
//! variables. In round *r*, a loop variable is affine in *r*. An expression of loop variables is
//! affine in *r*, too, if every dividend grows by multiples of its divisor. Otherwise the
//! expression may be affine for a limited number of rounds, which [`Increment::rounds`] states.

use crate::expr::{Env, Ex, Exprs, Kind, Op};
use crate::gcd::gcd;
use crate::steps::{Along, Nest, Steps};
use crate::threads::Mask;
use crate::value::{NOTHING, Value};
use carbyne_ir::ast::CmpOp;
use carbyne_ir::expr::Dim;

/// The increment of a value per round, and the number of rounds for which it is known to be
/// constant.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Increment {
    pub(crate) by: i64,
    /// The increment also contains an unknown multiple of this number, which depends on the
    /// iteration of an outer loop.
    multiple: i64,
    pub(crate) rounds: u64,
    /// Whether the value depends on the iteration of an outer loop.
    pub(crate) is_outer: bool,
}

/// An unlimited number of rounds.
pub(crate) const FOREVER: u64 = u64::MAX;

impl Increment {
    pub(crate) const STILL: Increment =
        Increment { by: 0, multiple: 0, rounds: FOREVER, is_outer: false };
    const UNKNOWN: Increment = Increment { rounds: 0, ..Increment::STILL };

    /// The increment of a value with these steps.
    pub(crate) fn along(by: Steps, along: Along) -> Increment {
        Increment::of(by.along(along), FOREVER)
    }

    fn of(by: Option<i64>, rounds: u64) -> Increment {
        by.map_or(Increment::UNKNOWN, |by| Increment { by, rounds, ..Increment::STILL })
    }

    fn is_still(&self) -> bool {
        self.by == 0 && self.multiple == 0
    }

    /// Whether the increment is the same in all rounds.
    pub(crate) fn is_even(&self) -> bool {
        self.multiple == 0 && self.rounds == FOREVER
    }

    /// Whether the increment is a multiple of a number.
    fn is_whole(&self, modulus: i64) -> bool {
        self.by % modulus == 0 && self.multiple % modulus == 0
    }

    /// The number of rounds for which the value remains the same, modulo a number.
    pub(crate) fn still(&self, modulus: i64) -> u64 {
        if self.is_still() || modulus > 1 && self.is_whole(modulus) { self.rounds } else { 0 }
    }
}

impl Exprs<'_> {
    /// Whether a nest contains the loops along whose trip count values are compared.
    fn is_outer(&self, nest: Option<Nest>, along: Along) -> bool {
        matches!(along, Along::Number(Nest::Inner) | Along::Inserted(Nest::Inner))
            && nest == Some(Nest::Outer)
    }

    /// The increment of an expression.
    pub(crate) fn increment(&self, dim: Dim, env: &Env, along: Along) -> Increment {
        match dim {
            Dim::Const(_) => Increment::STILL,
            Dim::Expr(_) => self.increment_of(&self.ready(dim), env, along),
        }
    }

    pub(crate) fn increment_of(&self, ex: &Ex, env: &Env, along: Along) -> Increment {
        if !ex.loops {
            return Increment::STILL;
        }
        match &ex.kind {
            Kind::Const(_) | Kind::Thread | Kind::Block | Kind::Unknown => Increment::STILL,
            Kind::Loop(var) => {
                let moved =
                    env.get(*var).map_or(Increment::STILL, |held| Increment::along(held.by, along));
                Increment { is_outer: self.is_outer(self.nest_of(*var), along), ..moved }
            }
            Kind::Given(nest) => {
                let mut by = Steps::default();
                by.number[*nest as usize] = self.given(*nest).by;
                Increment {
                    is_outer: self.is_outer(Some(*nest), along),
                    ..Increment::along(by, along)
                }
            }
            Kind::Drawn(of, _) => match self.increment_of(of, env, along) {
                still if still.is_still() => still,
                _ => Increment::UNKNOWN,
            },
            Kind::Sum(parts, _) => {
                let mut sum = Increment::STILL;
                for (by, part) in parts {
                    let m = self.increment_of(part, env, along);
                    let new = m.by.checked_mul(*by).and_then(|by| by.checked_add(sum.by));
                    let multiple = m.multiple.checked_mul(*by).map(|n| gcd(n, sum.multiple));
                    let Some((by, multiple)) = new.zip(multiple) else { return Increment::UNKNOWN };
                    let rounds = sum.rounds.min(m.rounds);
                    sum = Increment { by, multiple, rounds, is_outer: sum.is_outer || m.is_outer };
                }
                sum
            }
            Kind::Bin(op, a, b) => self.increment_of_two(*op, a, b, env, along),
        }
    }

    fn increment_of_two(&self, op: Op, a: &Ex, b: &Ex, env: &Env, along: Along) -> Increment {
        let (ma, mb) = (self.increment_of(a, env, along), self.increment_of(b, env, along));
        let rounds = ma.rounds.min(mb.rounds);
        let is_outer = ma.is_outer || mb.is_outer;
        let still = Increment { rounds, is_outer, ..Increment::STILL };
        if ma.is_still() && mb.is_still() {
            return still;
        }
        let (va, vb) = (self.eval(a, env), self.eval(b, env));
        match op {
            Op::Mul => {
                let (moving, other, value) =
                    if mb.is_still() { (ma, mb, vb) } else { (mb, ma, va) };
                let Some(v) = value.same().filter(|_| other.is_still()) else {
                    return Increment::UNKNOWN;
                };
                // The factor depends on the iteration of the outer loop, so only a multiple of the
                // increment is known.
                let times = |n: i64| n.checked_mul(v);
                let both = match other.is_outer {
                    true => Some((0, gcd(moving.by, moving.multiple))),
                    false => times(moving.by).zip(times(moving.multiple)),
                };
                both.map_or(Increment::UNKNOWN, |(by, multiple)| Increment {
                    by,
                    multiple,
                    ..still
                })
            }
            Op::Div | Op::Mod | Op::CeilDiv if mb.is_still() => {
                let Some(by) = vb.same().filter(|v| *v > 0) else { return Increment::UNKNOWN };
                if ma.is_whole(by) && !mb.is_outer {
                    let step = |n: i64| if op == Op::Mod { 0 } else { n / by };
                    return Increment { by: step(ma.by), multiple: step(ma.multiple), ..still };
                }
                if ma.multiple != 0 || is_outer {
                    return Increment::UNKNOWN;
                }
                // The quotient remains until the dividend passes the next multiple of the divisor.
                let shift = if op == Op::CeilDiv { by - 1 } else { 0 };
                let left = self.least(&va, |v| {
                    let at = v.checked_add(shift)?.rem_euclid(by);
                    Some(if ma.by > 0 {
                        (by - 1 - at) / ma.by
                    } else {
                        at / ma.by.checked_neg()?
                    })
                });
                let step = if op == Op::Mod { ma.by } else { 0 };
                Increment::of(Some(step), rounds.min(left))
            }
            Op::Div | Op::Mod => match (va.same(), vb.same()) {
                (Some(a), Some(b)) if b > 0 && mb.by > 0 && ma.multiple == 0 && !is_outer => {
                    let moved = quotient(op, (a, ma.by), (b, mb.by));
                    moved.map_or(Increment::UNKNOWN, |m| Increment {
                        rounds: m.rounds.min(rounds),
                        ..m
                    })
                }
                _ => Increment::UNKNOWN,
            },
            Op::CeilDiv => Increment::UNKNOWN,
            Op::Min | Op::Max => match ma.multiple == 0 && mb.multiple == 0 && !is_outer {
                true => self.increment_of_chosen(op, (&va, ma), (&vb, mb)),
                false => Increment::UNKNOWN,
            },
        }
    }

    /// The increment of a minimum or maximum, if all threads choose the same operand.
    fn increment_of_chosen(
        &self,
        op: Op,
        a: (&Value, Increment),
        b: (&Value, Increment),
    ) -> Increment {
        let rounds = a.1.rounds.min(b.1.rounds);
        if a.1.by == b.1.by {
            return Increment::of(Some(a.1.by), rounds);
        }
        let Some(by) = a.1.by.checked_sub(b.1.by) else { return Increment::UNKNOWN };
        let is_first = |t: usize| (a.0.of(t) <= b.0.of(t)) == (op == Op::Min);
        let all = match (a.0, b.0) {
            (Value::Same(_), Value::Same(_)) => 1,
            _ => self.n_threads,
        };
        if (1..all).any(|t| is_first(t) != is_first(0)) {
            return Increment::UNKNOWN;
        }
        let left = (0..all).map(|t| stays((a.0.of(t), b.0.of(t)), by, CmpOp::Le)).min();
        let by = if is_first(0) { a.1.by } else { b.1.by };
        Increment::of(Some(by), rounds.min(left.unwrap_or(0)))
    }

    /// The least result of `f` over the values of all threads.
    fn least(&self, value: &Value, f: impl Fn(i64) -> Option<i64>) -> u64 {
        let one = |v: i64| match v {
            NOTHING => 0,
            v => f(v).and_then(|n| u64::try_from(n).ok()).unwrap_or(0),
        };
        match value {
            Value::Same(v) => one(*v),
            Value::Each(all, _) => all.iter().map(|v| one(*v)).min().unwrap_or(0),
        }
    }
}

/// The increment of a quotient or remainder whose divisor changes, too: *a* = *q·b* + *r*. While
/// *q* remains, *r* grows by the increment of *a* less *q* times the increment of *b*.
fn quotient(op: Op, (a, a_by): (i64, i64), (b, b_by): (i64, i64)) -> Option<Increment> {
    let (q, r) = (a.div_euclid(b), a.rem_euclid(b));
    let by = a_by.checked_sub(q.checked_mul(b_by)?)?;
    let rounds = match by {
        _ if (0..=b_by).contains(&by) => FOREVER,
        _ if by > b_by => ((b - 1 - r) / (by - b_by)).unsigned_abs(),
        _ => r.unsigned_abs() / by.unsigned_abs(),
    };
    Some(Increment::of(Some(if op == Op::Mod { by } else { 0 }), rounds))
}

/// The number of rounds for which a comparison keeps its result, if the difference of its sides
/// grows by `by` per round.
fn stays((a, b): (i64, i64), by: i64, op: CmpOp) -> u64 {
    if by == 0 {
        return FOREVER;
    }
    let Some(d) = a.checked_sub(b).filter(|_| a != NOTHING && b != NOTHING) else { return 0 };
    // The result is the same for all differences up to `most`, and for all from `least` on.
    let (most, least) = match op {
        CmpOp::Lt | CmpOp::Ge => (-1, 0),
        CmpOp::Le | CmpOp::Gt => (0, 1),
        CmpOp::Eq | CmpOp::Ne if d == 0 => return 0,
        CmpOp::Eq | CmpOp::Ne => (-1, 1),
    };
    let is_below = d <= most;
    if is_below != (by > 0) {
        return FOREVER;
    }
    let room = if is_below { most.checked_sub(d) } else { d.checked_sub(least) };
    room.map_or(0, |room| room.unsigned_abs() / by.unsigned_abs())
}

/// The limits within which all decisions so far remain the same.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    /// While a round is followed that others may repeat: the number of rounds that repeat it.
    pub(crate) rounds: Option<u64>,
    /// For each nest, while other trip counts may behave like the current one: the number of larger
    /// trip counts for which all decisions so far hold.
    pub(crate) number: [Option<u64>; 2],
    /// For each nest, `number` after iterations that are inserted into the stretch being followed.
    pub(crate) inserted: [Option<u64>; 2],
}

impl Watch {
    /// Watches the trip counts of the given nests.
    pub(crate) fn new(of: [bool; 2]) -> Self {
        Watch { number: of.map(|is| is.then_some(FOREVER)), ..Watch::default() }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.rounds.is_none() && self.number == [None; 2]
    }

    /// Records for how long one decision remains the same, along each direction being watched.
    pub(crate) fn note(&mut self, lasts: impl Fn(Along) -> u64) {
        let note = |all: &mut Option<u64>, along: Along| {
            if let Some(all) = all.as_mut().filter(|n| **n > 0) {
                *all = lasts(along).min(*all);
            }
        };
        note(&mut self.rounds, Along::Rounds);
        for nest in [Nest::Outer, Nest::Inner] {
            note(&mut self.number[nest as usize], Along::Number(nest));
            note(&mut self.inserted[nest as usize], Along::Inserted(nest));
        }
    }

    /// Records that a value must not change, except by multiples of a modulus.
    pub(crate) fn still(&mut self, exprs: &Exprs<'_>, dim: Dim, env: &Env, modulus: i64) {
        if !self.is_idle() && !matches!(dim, Dim::Const(_)) {
            self.note(|along| exprs.increment(dim, env, along).still(modulus));
        }
    }

    /// Records that two values are compared.
    pub(crate) fn compares(
        &mut self,
        mask: &Mask,
        (a, b): (&Value, &Value),
        op: CmpOp,
        increment: impl Fn(Along) -> (Increment, Increment),
    ) {
        if self.is_idle() {
            return;
        }
        self.note(|along| {
            let (ma, mb) = increment(along);
            let rounds = ma.rounds.min(mb.rounds);
            let Some(by) = ma.by.checked_sub(mb.by) else { return 0 };
            if ma.multiple != 0 || mb.multiple != 0 {
                return 0;
            }
            if by == 0 || rounds == 0 {
                return rounds;
            }
            // The comparison may differ in another iteration of the outer loops.
            if ma.is_outer || mb.is_outer {
                return 0;
            }
            let stays = |t: usize| stays((a.of(t), b.of(t)), by, op);
            let left = match (a, b) {
                (Value::Same(_), Value::Same(_)) => stays(0),
                _ => mask.threads().map(stays).min().unwrap_or(FOREVER),
            };
            rounds.min(left)
        });
    }
}
