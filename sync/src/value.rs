//! Values of expressions: one for all threads, or one for each.

use std::rc::Rc;

/// Stands for a number that does not fit 64 bits, or is divided by none above 0.
pub(crate) const NOTHING: i64 = i64::MIN;

/// The power of a warp's threads.
const WARP: u8 = 5;

/// The value of an expression.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    /// One value for all threads.
    Same(i64),
    /// One for each of so many consecutive threads of the block: 2 to this power, a thread or a
    /// warp.
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

    /// A function of it.
    pub(crate) fn map(&self, f: impl Fn(i64) -> i64) -> Value {
        match self {
            Value::Same(v) => Value::Same(f(*v)),
            Value::Each(all, width) => {
                Value::Each(Rc::new(all.iter().map(|v| f(*v)).collect()), *width)
            }
        }
    }

    /// One value for each warp, where all threads of each have the same.
    pub(crate) fn narrowed(self) -> Value {
        let Value::Each(all, 0) = &self else { return self };
        let warps = || all.chunks(1 << WARP);
        match warps().all(|w| w.iter().all(|v| *v == w[0])) {
            true => Value::Each(Rc::new(warps().map(|w| w[0]).collect()), WARP),
            false => self,
        }
    }

    /// The value and a number.
    pub(crate) fn plus(&self, n: i64) -> Value {
        each(self, &Value::Same(n), i64::checked_add)
    }

    /// By how much it is more than another value.
    pub(crate) fn less(&self, other: &Value) -> Value {
        each(self, other, i64::checked_sub)
    }

    /// By how much another value is more, where that is the same for all threads.
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

    /// The value, where all threads have one.
    pub(crate) fn same(&self) -> Option<i64> {
        match self {
            Value::Same(v) if *v != NOTHING => Some(*v),
            _ => None,
        }
    }
}

/// A function of two numbers, if both are known.
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
