//! Evaluates the meanings of specs by plain loops over coordinates, in binary64. These results are
//! the reference with which the results of bodies and of devices are compared.
//!
//! Elements are numbered column-major over an operand's modes. A MatMul is C\[m,n\] += Σ_k
//! A\[m,k\]·B\[k,n\]; at rank 3, the batch l is the first mode of all three operands. An input of a
//! Move or of a pointwise function of two operands is broadcast over the modes in which the input
//! has extent 1 and the output has extent n.
//!
//! Invariant: this module shares no arithmetic of floats with the code that executes atoms
//! (`exec/arith.rs`), so that each checks the other. They share the decoding of stored bits
//! ([`crate::num::decode`]) and the functions of two integers. Shadows in `exec/` and leaves
//! without an atom use the functions of this module, in the order of the body.

mod chain;
mod exact;
mod pointwise;
mod region;
mod tolerance;

pub use chain::{Chain, Input, Shape, Step, StepOp};
pub(crate) use exact::is_beyond;
pub use exact::{Exact, SLACK, narrowed};
pub use pointwise::{binary, fold, integers, integers_of_bits, quotient, unary};
pub use region::{Axis, Region, cover};
pub use tolerance::tolerance;

use carbyne_ir::ast::{AccumulateOp, BinaryOp, ReduceOp, SpecKind, UnaryOp};
use carbyne_ir::scalar::Scalar;

/// The meaning of a spec on operands of known shapes.
#[derive(Clone, Debug, PartialEq)]
pub enum Meaning {
    /// Copies the bits of the input.
    Move,
    /// Combines output and input, of this type, element by element.
    Accumulate(AccumulateOp, Scalar),
    /// The bits of the second operand where the first is true, else those of the third.
    Select,
    /// C = A·B, added to C unless `set`.
    MatMul {
        /// The number of batches.
        l: usize,
        /// Rows of A and C.
        m: usize,
        /// Columns of B and C.
        n: usize,
        /// Columns of A, rows of B.
        k: usize,
        /// Whether the output is overwritten instead of added to.
        set: bool,
        /// The type of the sum.
        acc: Scalar,
    },
    /// A function of one operand, element by element.
    Unary(UnaryOp),
    /// A function of two operands, element by element.
    Binary(BinaryOp),
    /// A function of two integers of this type, element by element.
    Integers(BinaryOp, Scalar),
    /// A reduction over some modes.
    Reduction {
        /// The operation.
        op: ReduceOp,
        /// The extents of the input's modes.
        modes: Vec<usize>,
        /// For each mode, whether the reduction removes it.
        removed: Vec<bool>,
        /// The type of the output.
        acc: Scalar,
    },
    /// Sets every element to the literal.
    Init,
}

/// The result of a spec.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Computed {
    /// The elements of the output.
    pub values: Vec<f64>,
    /// For each element, the sum of the added magnitudes, to which rounding errors are relative.
    /// For a pointwise function, the magnitude of its first operand.
    pub magnitudes: Vec<f64>,
    /// Whether all added numbers are integers.
    pub integers: bool,
}

/// Whether all numbers are integers.
pub(crate) fn are_integers(numbers: &[f64]) -> bool {
    numbers.iter().all(|x| x.fract() == 0.0)
}

/// The reason why a spec has no meaning of its own.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoMeaning {
    /// The number of outputs is not one.
    #[error("it has {0} outputs")]
    Outputs(usize),
    /// The number of inputs is not that of the spec's kind.
    #[error("it has {0} inputs")]
    Inputs(usize),
    /// An input and the output have different numbers of elements.
    #[error("it reads {read} and writes {written} elements")]
    Sizes {
        /// The elements of the input.
        read: i64,
        /// The elements of the output.
        written: i64,
    },
    /// The modes of A, B and C do not match.
    #[error("the shapes of A{:?}, B{:?} and C{:?} do not match", .0[0], .0[1], .0[2])]
    Matrices([Vec<i64>; 3]),
    /// The extents exceed the limit.
    #[error("it is too large")]
    TooLarge,
    /// The input does not have this axis.
    #[error("axis {axis} does not exist: the input has {of} modes")]
    Axis {
        /// The axis.
        axis: usize,
        /// The number of modes of the input.
        of: usize,
    },
    /// The output of a Reduction does not have the size of the result.
    #[error("its result has {left} elements, its output {of}")]
    Left {
        /// The elements of the result.
        left: i64,
        /// The elements of the output.
        of: i64,
    },
    /// The spec is a Shfl.
    #[error("it exchanges registers between lanes")]
    Lanes,
    /// The spec is an Iota.
    #[error("it may occur in `means` blocks only")]
    InMeans,
    /// The spec is a generic `Spec`.
    #[error("a generic spec has no meaning besides its body")]
    Generic,
    /// A literal in the place of a tensor, or a tensor in the place of a literal.
    #[error("a literal is in the place of a tensor, or a tensor in the place of a literal")]
    Literal,
    /// The spec is a Move between types of different size.
    #[error("a Move from {0} to {1} cannot keep the bits")]
    Bits(Scalar, Scalar),
    /// An operand has more elements than an evaluation can hold.
    #[error("{name} has more than {most} elements")]
    Elements {
        /// The name of the operand.
        name: String,
        /// The limit.
        most: i64,
    },
}

impl Meaning {
    /// The meaning of a spec whose tensor operands have these modes. Literals are omitted from the
    /// inputs. A broadcast input has the modes that it is broadcast to. `acc` is the accumulator's
    /// type; without an accumulator, the output's type.
    ///
    /// # Errors
    /// The reason why the shapes have no meaning together.
    pub fn new(
        kind: SpecKind,
        axes: &[usize],
        acc: Scalar,
        inputs: &[&[i64]],
        outputs: &[&[i64]],
    ) -> Result<Meaning, NoMeaning> {
        let [output] = outputs else {
            return Err(NoMeaning::Outputs(outputs.len()));
        };
        let size = |modes: &[i64]| modes.iter().fold(1i64, |p, n| p.saturating_mul(*n));
        let elementwise = |meaning: Meaning, n: usize| {
            if inputs.len() != n {
                return Err(NoMeaning::Inputs(inputs.len()));
            }
            match inputs.iter().find(|i| size(i) != size(output)) {
                Some(i) => Err(NoMeaning::Sizes { read: size(i), written: size(output) }),
                None => Ok(meaning),
            }
        };
        match kind {
            SpecKind::Move => elementwise(Meaning::Move, 1),
            SpecKind::Accumulate(op) => elementwise(Meaning::Accumulate(op, acc), 1),
            SpecKind::Select => elementwise(Meaning::Select, 3),
            SpecKind::Unary(op) => elementwise(Meaning::Unary(op), 1),
            SpecKind::Binary(op) if !op.compares() && !acc.is_float() => {
                elementwise(Meaning::Integers(op, acc), inputs.len().clamp(1, 2))
            }
            SpecKind::Binary(op) => elementwise(Meaning::Binary(op), inputs.len().clamp(1, 2)),
            SpecKind::Init => elementwise(Meaning::Init, 0),
            SpecKind::MatMul | SpecKind::MatMulSet => {
                let [a, b] = inputs else { return Err(NoMeaning::Inputs(inputs.len())) };
                let (l, m, n, k) = match_modes(a, b, output).ok_or_else(|| {
                    NoMeaning::Matrices([a, b, output].map(|modes| modes.to_vec()))
                })?;
                let fits = [l, m, n, k].iter().all(|n| *n <= u32::MAX as usize);
                if !fits {
                    return Err(NoMeaning::TooLarge);
                }
                Ok(Meaning::MatMul { l, m, n, k, set: kind == SpecKind::MatMulSet, acc })
            }
            SpecKind::Reduction(op) => {
                let [input] = inputs else { return Err(NoMeaning::Inputs(inputs.len())) };
                if let Some(axis) = axes.iter().find(|a| **a >= input.len()) {
                    return Err(NoMeaning::Axis { axis: *axis, of: input.len() });
                }
                let removed: Vec<bool> = (0..input.len()).map(|i| axes.contains(&i)).collect();
                let kept = |i: &usize| !removed[*i];
                let left =
                    (0..input.len()).filter(kept).fold(1, |p: i64, i| p.saturating_mul(input[i]));
                if left != size(output) {
                    return Err(NoMeaning::Left { left, of: size(output) });
                }
                let modes = input.iter().map(|n| *n as usize).collect();
                Ok(Meaning::Reduction { op, modes, removed, acc })
            }
            SpecKind::Shfl(_) => Err(NoMeaning::Lanes),
            SpecKind::Iota => Err(NoMeaning::InMeans),
            SpecKind::Generic => Err(NoMeaning::Generic),
        }
    }

    /// Whether each element of the output depends on one element of each input.
    pub fn is_elementwise(&self) -> bool {
        self.terms().is_none()
    }

    /// The number of terms that an element of the output combines; `None` if the element depends on
    /// one element of each input.
    pub fn terms(&self) -> Option<usize> {
        match self {
            Meaning::MatMul { k, .. } => Some(*k),
            Meaning::Reduction { modes, removed, .. } => {
                let gone = modes.iter().zip(removed).filter(|(_, removed)| **removed);
                Some(gone.fold(1, |n: usize, (extent, _)| n.saturating_mul(*extent)))
            }
            _ => None,
        }
    }

    /// Whether each element of the output is a copy of an operand's element or of the literal.
    pub fn copies(&self) -> bool {
        matches!(self, Meaning::Move | Meaning::Select | Meaning::Init)
    }

    /// Whether the result depends on the previous elements of the output.
    pub fn reads_output(&self) -> bool {
        matches!(self, Meaning::MatMul { set: false, .. } | Meaning::Accumulate(..))
    }

    /// Whether [`Meaning::bits`] computes the spec: it copies bits, or computes integers of 64
    /// bits, which binary64 cannot hold exactly.
    pub fn is_of_bits(&self) -> bool {
        match self {
            Meaning::Move | Meaning::Select => true,
            Meaning::Integers(_, scalar) => scalar.bits() > 53,
            _ => false,
        }
    }

    /// The bits of the output from those of its inputs; none if [`Meaning::is_of_bits`] is false.
    pub fn bits(&self, inputs: &[Vec<u64>]) -> Option<Vec<u64>> {
        match (self, inputs) {
            (Meaning::Move, [x]) => Some(x.clone()),
            (Meaning::Select, [p, x, y]) => {
                let of = |((p, x), y): ((&u64, &u64), &u64)| if *p == 0 { *y } else { *x };
                Some(p.iter().zip(x).zip(y).map(of).collect())
            }
            (Meaning::Integers(op, scalar), [x, y]) if self.is_of_bits() => {
                let of = |(x, y): (&u64, &u64)| integers_of_bits(*op, *scalar, *scalar, *x, *y);
                Some(x.iter().zip(y).map(of).collect())
            }
            _ => None,
        }
    }

    /// The number of multiply-adds of one evaluation.
    pub fn multiply_adds(&self) -> u64 {
        match self {
            Meaning::MatMul { l, m, n, k, .. } => {
                [*l, *m, *n, *k].iter().fold(1u64, |p, x| p.saturating_mul(*x as u64))
            }
            _ => 0,
        }
    }

    /// The value of a multiply-add of scalars; none for any other meaning.
    pub fn multiply_add(&self, inputs: &[Vec<f64>], before: &[f64]) -> Option<f64> {
        match (self, inputs) {
            (Meaning::MatMul { l: 1, m: 1, n: 1, k: 1, set, .. }, [a, b]) => {
                let c = if *set { 0.0 } else { *before.first()? };
                Some(c + a.first()? * b.first()?)
            }
            _ => None,
        }
    }

    /// The elements of the output. `inputs` are the tensors and literals in order, `before` the
    /// previous elements of the output if [`Meaning::reads_output`].
    pub fn compute(&self, inputs: &[Vec<f64>], before: &[f64], n_out: usize) -> Computed {
        let integers =
            self.adds() && inputs.iter().all(|x| are_integers(x)) && are_integers(before);
        Computed { integers, ..self.computed(inputs, before, n_out) }
    }

    /// Whether the spec adds up elements.
    fn adds(&self) -> bool {
        !self.is_elementwise() || matches!(self, Meaning::Accumulate(..))
    }

    fn computed(&self, inputs: &[Vec<f64>], before: &[f64], n_out: usize) -> Computed {
        let none = Vec::new();
        let input = |i: usize| inputs.get(i).unwrap_or(&none);
        match self {
            Meaning::Move => plain(input(0).clone()),
            Meaning::Select => {
                let of = |(i, p): (usize, &f64)| {
                    let from = if *p == 0.0 { input(2) } else { input(1) };
                    from.get(i).copied().unwrap_or(0.0)
                };
                plain(input(0).iter().enumerate().map(of).collect())
            }
            Meaning::Accumulate(op, scalar) => {
                let both = || before.iter().zip(input(0));
                let of = |(x, y): (&f64, &f64)| match scalar.is_float() {
                    true => binary(op.binary(), *x, *y),
                    false => integers(op.binary(), *scalar, *x, *y),
                };
                let values = both().map(of).collect();
                let magnitudes = both().map(|(x, y)| x.abs() + y.abs()).collect();
                Computed { values, magnitudes, integers: false }
            }
            Meaning::Init => plain(vec![input(0).first().copied().unwrap_or(0.0); n_out]),
            Meaning::Unary(op) => of_operand(input(0), |_, x| unary(*op, x)),
            Meaning::Binary(_) | Meaning::Integers(..) => {
                // A literal is used for every element.
                let all = |x: &[f64]| match x {
                    [one] => vec![*one; n_out],
                    _ => x.to_vec(),
                };
                let (x, y) = (all(input(0)), all(input(1)));
                let n = x.len().min(y.len());
                of_operand(&x[..n], |i, x| match self {
                    Meaning::Integers(op, scalar) => integers(*op, *scalar, x, y[i]),
                    Meaning::Binary(op) => binary(*op, x, y[i]),
                    _ => x,
                })
            }
            Meaning::MatMul { l, m, n, k, set, acc } => {
                let (values, magnitudes) = (vec![0.0; l * m * n], vec![0.0; l * m * n]);
                let mut out = Computed { values, magnitudes, integers: false };
                if !set {
                    out.values.copy_from_slice(before);
                    out.magnitudes.iter_mut().zip(before).for_each(|(to, c)| *to = c.abs());
                }
                matmul((*l * *m, *n, *k, *l), input(0), input(1), &mut out);
                if !acc.is_float() {
                    let wrapped = |v: &mut f64| *v = integers(BinaryOp::Add, *acc, *v, 0.0);
                    out.values.iter_mut().for_each(wrapped);
                }
                out
            }
            Meaning::Reduction { op, modes, removed, acc } => {
                reduce(*op, *acc, modes, removed, input(0))
            }
        }
    }
}

/// Applies a function to each element of the first operand.
fn of_operand(x: &[f64], f: impl Fn(usize, f64) -> f64) -> Computed {
    let values = x.iter().enumerate().map(|(i, x)| f(i, *x)).collect();
    Computed { values, magnitudes: x.iter().map(|x| x.abs()).collect(), integers: false }
}

fn plain(values: Vec<f64>) -> Computed {
    let magnitudes = values.iter().map(|v| v.abs()).collect();
    Computed { values, magnitudes, integers: false }
}

/// The extents l, m, n, k, if the modes match.
fn match_modes(a: &[i64], b: &[i64], c: &[i64]) -> Option<(usize, usize, usize, usize)> {
    let extents = match (a, b, c) {
        ([], [], []) => Some((1, 1, 1, 1)),
        ([l @ .., m, k], [l2 @ .., k2, n], [l3 @ .., m2, n2])
            if l == l2 && l == l3 && m == m2 && n == n2 && k == k2 =>
        {
            // Several batch modes count as one.
            let batches = l.iter().try_fold(1i64, |p, n| p.checked_mul(*n))?;
            Some((batches, *m, *n, *k))
        }
        // Scalars of one thread, written with any number of modes of extent 1.
        _ => [a, b, c].iter().all(|s| s.iter().all(|n| *n == 1)).then_some((1, 1, 1, 1)),
    };
    extents.map(|(l, m, n, k)| (l as usize, m as usize, n as usize, k as usize))
}

/// With batches, (l, m) together count the rows, and each batch has its own columns of B.
fn matmul((rows, n, k, l): (usize, usize, usize, usize), a: &[f64], b: &[f64], out: &mut Computed) {
    let Computed { values, magnitudes, .. } = out;
    if l == 1 {
        return exact::products([rows, n, k], a, b, (values, magnitudes));
    }
    for col in 0..n {
        let of_column = col * rows..(col + 1) * rows;
        for i in 0..k {
            let both = values[of_column.clone()].iter_mut().zip(&mut magnitudes[of_column.clone()]);
            for (r, ((v, s), x)) in both.zip(&a[i * rows..(i + 1) * rows]).enumerate() {
                let product = x * b[r % l + l * (i + k * col)];
                *v += product;
                *s += product.abs();
            }
        }
    }
}

fn reduce(op: ReduceOp, acc: Scalar, modes: &[usize], removed: &[bool], input: &[f64]) -> Computed {
    let n_out: usize = modes.iter().zip(removed).filter(|(_, r)| !**r).map(|(n, _)| n).product();
    let mut values: Vec<Option<f64>> = vec![None; n_out];
    let mut magnitudes = vec![0.0; n_out];
    for (e, x) in input.iter().enumerate() {
        let at = exact::reduced_to(e, modes, removed);
        values[at] = Some(values[at].map_or(*x, |v| pointwise::fold(op, acc, v, *x)));
        magnitudes[at] += x.abs();
    }
    let none = pointwise::of_none(op, acc);
    let values = values.into_iter().map(|v| v.unwrap_or(none)).collect();
    Computed { values, magnitudes, integers: false }
}

/// Σ x·y, and Σ |x·y|.
pub fn dot(left: &[f64], right: &[f64]) -> (f64, f64) {
    let (mut sums, mut sizes) = ([0.0; 4], [0.0; 4]);
    let (a, b) = (left.chunks_exact(4), right.chunks_exact(4));
    let rest = a.remainder().iter().zip(b.remainder());
    let (mut sum, mut size) = (0.0, 0.0);
    for (x, y) in rest {
        sum += x * y;
        size += (x * y).abs();
    }
    for (x, y) in a.zip(b) {
        for i in 0..4 {
            let product = x[i] * y[i];
            sums[i] += product;
            sizes[i] += product.abs();
        }
    }
    (sum + sums.iter().sum::<f64>(), size + sizes.iter().sum::<f64>())
}
