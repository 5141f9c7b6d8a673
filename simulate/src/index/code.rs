//! Represents an integer expression as postfix code (steps on a stack of integers), and evaluates
//! it. Each index of a kernel is compiled to such code once, because threads evaluate it at every
//! access.

use crate::plan::Mask;

/// An index without a value: a sum or product exceeds 64 bits, or a divisor is below 1.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an index exceeds 64 bits or divides by a number below 1")]
pub(crate) struct BadIndex;

/// The value of a loop variable.
#[derive(Clone, Debug)]
pub(crate) enum LoopValue {
    /// One value for all threads.
    Uniform(i64),
    /// One value for each thread of the block.
    ByThread(Vec<i64>),
}

impl LoopValue {
    /// Takes the values of some threads from another variable.
    pub(crate) fn take(&mut self, other: &LoopValue, threads: &Mask) {
        match (&mut *self, other) {
            (LoopValue::Uniform(a), LoopValue::Uniform(b)) if a == b => {}
            (LoopValue::ByThread(mine), LoopValue::ByThread(theirs)) => {
                for t in threads.threads() {
                    mine[t] = theirs[t];
                }
            }
            // The values are no longer needed: both sides have left the loop.
            _ => *self = other.clone(),
        }
    }
}

/// The values of the variables at a statement.
#[derive(Clone, Debug)]
pub(crate) struct Env {
    /// The block index, `blockIdx.x`.
    pub block: i64,
    /// The values of the loop variables, by slot.
    pub loops: Vec<LoopValue>,
}

impl Env {
    /// The environment for expressions that depend only on the thread.
    pub(crate) fn none() -> Self {
        Env { block: 0, loops: Vec::new() }
    }
}

/// One step on a stack of integers.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Op {
    Const(i64),
    Thread,
    Block,
    Loop(usize),
    Add,
    Mul,
    Div,
    Mod,
    CeilDiv,
    Min,
    Max,
}

/// Steps that compute one integer.
#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    ops: Vec<Op>,
}

impl Code {
    /// Whether the code depends on the loop variable of this slot.
    pub(super) fn mentions(&self, slot: usize) -> bool {
        self.ops.contains(&Op::Loop(slot))
    }

    pub(super) fn constant(v: i64) -> Self {
        Code { ops: vec![Op::Const(v)] }
    }

    pub(super) fn push(&mut self, op: Op) {
        self.ops.push(op);
    }

    pub(super) fn ops(&self) -> &[Op] {
        &self.ops
    }

    pub(super) fn len(&self) -> usize {
        self.ops.len()
    }

    /// Multiplies the result of the code.
    pub(super) fn scale(&mut self, by: i64) {
        if by != 1 {
            self.ops.extend([Op::Const(by), Op::Mul]);
        }
    }

    /// Adds the result of other code.
    pub(super) fn plus(&mut self, other: Code) {
        self.ops.extend(other.ops);
        self.ops.push(Op::Add);
    }

    pub(super) fn known(&self) -> Option<i64> {
        match self.ops[..] {
            [Op::Const(v)] => Some(v),
            _ => None,
        }
    }

    pub(super) fn eval(&self, env: &Env, thread: usize) -> Result<i64, BadIndex> {
        if let [Op::Const(v)] = self.ops[..] {
            return Ok(v);
        }
        let mut stack = Stack { small: [0; SMALL], n: 0, large: Vec::new() };
        for op in &self.ops {
            let value = match *op {
                Op::Const(v) => v,
                Op::Thread => thread as i64,
                Op::Block => env.block,
                Op::Loop(slot) => match env.loops.get(slot) {
                    Some(LoopValue::Uniform(v)) => *v,
                    Some(LoopValue::ByThread(vs)) => vs.get(thread).copied().ok_or(BadIndex)?,
                    None => return Err(BadIndex),
                },
                op => {
                    let (b, a) = (stack.pop()?, stack.pop()?);
                    apply(op, a, b).ok_or(BadIndex)?
                }
            };
            stack.push(value);
        }
        stack.pop()
    }
}

fn apply(op: Op, a: i64, b: i64) -> Option<i64> {
    let divisor = |b: i64| (b > 0).then_some(b);
    match op {
        Op::Add => a.checked_add(b),
        Op::Mul => a.checked_mul(b),
        Op::Div => Some(a.div_euclid(divisor(b)?)),
        Op::Mod => Some(a.rem_euclid(divisor(b)?)),
        Op::CeilDiv => {
            let b = divisor(b)?;
            Some(a.div_euclid(b) + i64::from(a.rem_euclid(b) != 0))
        }
        Op::Min => Some(a.min(b)),
        Op::Max => Some(a.max(b)),
        Op::Const(_) | Op::Thread | Op::Block | Op::Loop(_) => None,
    }
}

const SMALL: usize = 12;

/// A stack that needs no heap memory while it is small.
struct Stack {
    small: [i64; SMALL],
    n: usize,
    large: Vec<i64>,
}

impl Stack {
    fn push(&mut self, v: i64) {
        match self.small.get_mut(self.n) {
            Some(slot) => *slot = v,
            None => self.large.push(v),
        }
        self.n += 1;
    }

    fn pop(&mut self) -> Result<i64, BadIndex> {
        self.n = self.n.checked_sub(1).ok_or(BadIndex)?;
        match self.small.get(self.n) {
            Some(v) => Ok(*v),
            None => self.large.pop().ok_or(BadIndex),
        }
    }
}
