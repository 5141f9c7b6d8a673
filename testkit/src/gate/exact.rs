//! Finds the tensors whose elements do not depend on how their operations are carried out. They
//! hold small integers throughout, or numbers that only pass through copies, casts, changes of
//! sign, minima and maxima, which give one result in every order. The gate (the test of
//! decomposition on random programs) demands equal elements of these tensors before and after
//! decomposition. It compares the others by their values without rounding, within a small
//! tolerance.

use carbyne_ir::ast::{BinaryOp, UnaryOp};
use carbyne_ir::scalar::Scalar;
use std::collections::BTreeMap;

/// The data flow of a program, without places.
#[derive(Clone, Debug)]
pub(super) enum Flow {
    /// An operation.
    Op {
        /// The function.
        op: Function,
        /// The operands.
        inputs: Vec<Source>,
        /// The tensor and the type of the result.
        output: (usize, Scalar),
        /// Whether the result replaces the whole tensor.
        all: bool,
    },
    /// A loop with a number of iterations.
    Loop(i64, Vec<Flow>),
    /// A branch.
    Either(Vec<Flow>, Vec<Flow>),
}

/// An operand.
#[derive(Copy, Clone, Debug)]
pub(super) enum Source {
    /// A tensor.
    Tensor(usize),
    /// A literal.
    Number(f64),
}

/// The function of an operation.
#[derive(Copy, Clone, Debug)]
pub(super) enum Function {
    /// One of the operands.
    Same,
    /// A function of one operand, element by element.
    Unary(UnaryOp),
    /// A function of two operands, element by element.
    Binary(BinaryOp),
    /// The sum or an extreme value of `n` elements.
    Reduce { sum: bool, n: i64 },
    /// Several operations; the magnitude of the result is at most `most`.
    Chain { most: f64 },
    /// Sums of `k` products in type `acc`.
    MatMul { k: i64, set: bool, acc: Scalar },
}

/// Known properties of all elements of a tensor.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Value {
    /// The way in which the elements were computed.
    kind: Kind,
    /// An upper bound of magnitudes. Infinite if an element may have overflowed.
    most: f64,
}

/// The way in which the elements of a tensor were computed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Integers that the type represents exactly.
    Integers,
    /// Numbers without rounding.
    Numbers,
    /// Numbers that depend on the rounding of operations.
    Rounded,
}

impl Value {
    const ZERO: Value = Value { kind: Kind::Integers, most: 0.0 };

    fn join(self, other: Value) -> Value {
        Value { kind: self.kind.max(other.kind), most: self.most.max(other.most) }
    }

    /// The value after conversion to a type.
    fn of(self, scalar: Scalar) -> Value {
        let exact = carbyne_simulate::num::exact_integers(scalar);
        if !scalar.is_float() {
            // Integers wrap or saturate in the same way in all implementations.
            return Value { most: self.most.min(exact), ..self };
        }
        let kind = match self.kind {
            Kind::Integers if self.most > exact => Kind::Rounded,
            kind => kind,
        };
        let most = if self.most > largest(scalar) { f64::INFINITY } else { self.most };
        Value { kind, most }
    }
}

/// A magnitude up to which sums of the type do not overflow, even with rounding errors.
fn largest(scalar: Scalar) -> f64 {
    match scalar {
        Scalar::F16 => 60_000.0,
        Scalar::F64 => 1e300,
        _ => 1e38,
    }
}

/// Tracks the values of tensors through a program.
pub(super) struct Exact {
    values: BTreeMap<usize, Value>,
    integers: bool,
    /// Whether an operation may have overflowed.
    pub(super) overflows: bool,
}

impl Exact {
    /// The initial state. The caller's tensors hold small integers, or any numbers.
    pub(super) fn new(integers: bool) -> Self {
        Exact { values: BTreeMap::new(), integers, overflows: false }
    }

    /// Whether the bits of a tensor are independent of rounding.
    pub(super) fn is_exact(&self, tensor: usize) -> bool {
        self.values.get(&tensor).is_none_or(|v| v.kind != Kind::Rounded)
    }

    /// Declares an input tensor, before its first use.
    pub(super) fn input(&mut self, tensor: usize, scalar: Scalar) {
        let kind = match self.integers || !scalar.is_float() {
            true => Kind::Integers,
            false => Kind::Numbers,
        };
        self.values.entry(tensor).or_insert(Value { kind, most: 3.0 });
    }

    /// Applies statements.
    pub(super) fn follow(&mut self, flow: &[Flow]) {
        for f in flow {
            match f {
                Flow::Loop(n, body) => (0..*n).for_each(|_| self.follow(body)),
                Flow::Either(then, otherwise) => {
                    let before = self.values.clone();
                    self.follow(then);
                    let after = std::mem::replace(&mut self.values, before);
                    self.follow(otherwise);
                    for (tensor, value) in after {
                        self.values
                            .entry(tensor)
                            .and_modify(|v| *v = v.join(value))
                            .or_insert(value);
                    }
                }
                Flow::Op { op, inputs, output: (tensor, scalar), all } => {
                    let mut value = self.result(*op, inputs, *tensor).of(*scalar);
                    self.overflows |= value.most == f64::INFINITY;
                    if let (false, Some(before)) = (*all, self.values.get(tensor)) {
                        value = value.join(*before);
                    }
                    self.values.insert(*tensor, value);
                }
            }
        }
    }

    fn result(&self, op: Function, inputs: &[Source], output: usize) -> Value {
        let unknown = Value { kind: Kind::Rounded, most: f64::INFINITY };
        let of = |t: &usize| self.values.get(t).copied().unwrap_or(unknown);
        let values: Vec<Value> = inputs
            .iter()
            .map(|s| match s {
                Source::Tensor(t) => of(t),
                Source::Number(n) if n.fract() == 0.0 => {
                    Value { kind: Kind::Integers, most: n.abs() }
                }
                Source::Number(n) => Value { kind: Kind::Numbers, most: n.abs() },
            })
            .collect();
        let joined = values.iter().copied().reduce(Value::join).unwrap_or(Value::ZERO);
        let (Some(a), Some(b)) = (values.first(), values.last()) else { return joined };
        let (a, b) = (a.most, b.most);
        // Results on integers are integers. Other results are rounded.
        let computed = |most: f64| Value {
            kind: if joined.kind == Kind::Integers { Kind::Integers } else { Kind::Rounded },
            most,
        };
        match op {
            Function::Same | Function::Reduce { sum: false, .. } => joined,
            Function::Unary(op) => match op {
                // A conversion rounds once, in every implementation.
                UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Relu | UnaryOp::Cast => joined,
                UnaryOp::Exp => Value { kind: Kind::Rounded, most: libm::exp(a) },
                _ => Value { kind: Kind::Rounded, most: 1.0 },
            },
            Function::Binary(op) => match op {
                BinaryOp::Min | BinaryOp::Max | BinaryOp::Minimum | BinaryOp::Maximum => joined,
                BinaryOp::Add | BinaryOp::Sub => computed(a + b),
                BinaryOp::Mul => computed(a * b),
                BinaryOp::Div => unknown,
                _ => Value { most: 1.0, ..computed(1.0) },
            },
            Function::Chain { most } => Value { kind: Kind::Rounded, most },
            Function::Reduce { n, .. } => computed(a * n as f64),
            Function::MatMul { k, set, acc } => {
                let before = if set { Value::ZERO } else { of(&output) };
                let sum = computed(a * b * k as f64 + before.most);
                let kind = match (sum.kind, before.kind) {
                    (Kind::Integers, Kind::Integers) => Kind::Integers,
                    _ => Kind::Rounded,
                };
                Value { kind, ..sum }.of(acc)
            }
        }
    }
}
