//! Defines [`Value`], the value of an expression for the threads of a block: one number for all
//! threads, one for each warp, or one for each thread. So an expression that does not depend on the
//! thread is computed once.

use crate::threads::Mask;
use carbyne_ir::limits::MAX_BLOCK_THREADS;
use std::rc::Rc;

/// An unknown value: the number does not fit 64 bits, or a divisor is not positive.
pub(crate) const NOTHING: i64 = i64::MIN;

/// The binary logarithm of the number of threads of a warp.
const WARP: u8 = 5;

/// The value of an expression.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// One value for all threads.
    Same(i64),
    /// One value for each 2^*n* consecutive threads, for *n* = 0 (a thread) or 5 (a warp).
    Each(Rc<Vec<i64>>, u8),
}

impl Value {
    #[inline]
    pub(crate) fn of(&self, thread: usize) -> i64 {
        match self {
            Value::Same(v) => *v,
            Value::Each(all, width) => all.get(thread >> width).copied().unwrap_or(NOTHING),
        }
    }

    /// Applies a function to the value.
    pub(crate) fn map(&self, f: impl Fn(i64) -> i64) -> Value {
        match self {
            Value::Same(v) => Value::Same(f(*v)),
            Value::Each(all, width) => {
                Value::Each(Rc::new(all.iter().map(|v| f(*v)).collect()), *width)
            }
        }
    }

    /// Stores one value per warp, if all threads of each warp have the same value.
    pub(crate) fn narrowed(self) -> Value {
        let Value::Each(all, 0) = &self else { return self };
        let warps = || all.chunks(1 << WARP);
        match warps().all(|w| w.iter().all(|v| *v == w[0])) {
            true => Value::Each(Rc::new(warps().map(|w| w[0]).collect()), WARP),
            false => self,
        }
    }

    /// Adds a number.
    pub(crate) fn plus(&self, n: i64) -> Value {
        each(self, &Value::Same(n), i64::checked_add)
    }

    /// Subtracts another value.
    pub(crate) fn less(&self, other: &Value) -> Value {
        each(self, other, i64::checked_sub)
    }

    /// This value for all threads but those of a set, which have another one.
    pub(crate) fn with(&self, other: &Value, theirs: &Mask) -> Value {
        if let (Value::Same(a), Value::Same(b)) = (self, other)
            && a == b
        {
            return self.clone();
        }
        let n = match (self, other) {
            (Value::Each(a, width), _) | (_, Value::Each(a, width)) => a.len() << width,
            _ => MAX_BLOCK_THREADS as usize,
        };
        let of = |t: usize| if theirs.has(t) { other.of(t) } else { self.of(t) };
        Value::Each(Rc::new((0..n).map(of).collect()), 0).narrowed()
    }

    /// The difference of a later value to this one, if it is the same for all threads.
    pub(crate) fn until(&self, later: &Value) -> Option<i64> {
        match (self, later) {
            (Value::Same(a), Value::Same(b)) => b.checked_sub(*a),
            (Value::Each(a, n), Value::Each(b, m)) if n == m => {
                let by = b.first()?.checked_sub(*a.first()?)?;
                let same = a.iter().zip(b.iter()).all(|(a, b)| b.checked_sub(*a) == Some(by));
                same.then_some(by)
            }
            _ => None,
        }
    }

    /// The common value of all threads.
    pub(crate) fn same(&self) -> Option<i64> {
        match self {
            Value::Same(v) if *v != NOTHING => Some(*v),
            _ => None,
        }
    }
}

/// Applies a function to two numbers, if both are known.
fn known(a: i64, b: i64, f: impl Fn(i64, i64) -> Option<i64>) -> i64 {
    if a == NOTHING || b == NOTHING { NOTHING } else { f(a, b).unwrap_or(NOTHING) }
}

pub(crate) fn each(a: &Value, b: &Value, f: impl Fn(i64, i64) -> Option<i64>) -> Value {
    let one = |a: i64, b: i64| known(a, b, &f);
    match (a, b) {
        (Value::Same(a), b) => b.map(|b| one(*a, b)),
        (a, Value::Same(b)) => a.map(|a| one(a, *b)),
        (Value::Each(all, n), Value::Each(others, m)) if n == m => {
            let both = all.iter().zip(others.iter());
            Value::Each(Rc::new(both.map(|(a, b)| one(*a, *b)).collect()), *n)
        }
        (Value::Each(all, n), Value::Each(others, m)) => {
            let threads = if n < m { all.len() } else { others.len() };
            Value::Each(Rc::new((0..threads).map(|t| one(a.of(t), b.of(t))).collect()), 0)
        }
    }
}
