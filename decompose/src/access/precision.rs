//! Decides how exact each result of a kernel must be ([`Precision`]), and so which operations may
//! use instructions that approximate.
//!
//! A value that is rounded to a narrower type hides an error below half a unit in the last place of
//! that type. The value is followed forward to every cast that it reaches, through operations that
//! pass a relative error on unchanged: Move, neg, abs, relu, rcp, min, max, products and quotients,
//! sqrt and rsqrt, Select, and sums of numbers that cannot be negative. Everything else may amplify
//! the error without bound (differences, sums of both signs, exp, comparisons, MatMuls), or show it
//! (f32 in global memory): the operands of such an operation are computed as exactly as the table
//! can. A square counts twice, and a product that a loop multiplies repeatedly counts without
//! bound.
//!
//! `math=exact` at an operation, or at a spec around it, asks for the smallest error in any case,
//! `math=fast` for the fewest cycles whatever the error. A quotient by a literal is a product by
//! its reciprocal unless `math=exact` is stated.

use super::ops;
use carbyne_atoms::Atom;
use carbyne_ir::ast::{BinaryOp, Key, ReduceOp, SpecKind, UnaryOp};
use carbyne_ir::expr::VarId;
use carbyne_ir::program::{BufferId, Operand, Program, Spec, SpecId, Stmt, StmtKind, TensorId};
use carbyne_ir::scalar::{Memory, Scalar};
use std::collections::{BTreeMap, BTreeSet};

/// How exact an operation must be.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Math {
    /// As the table can: the text says so.
    Exact,
    /// A relative error below this is not seen.
    Below(f64),
    /// Whatever the error.
    Fast,
}

/// What is asked of an operation.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Accuracy {
    math: Math,
    /// Whether it is a product that one sum or difference alone reads, or that.
    fuses: bool,
}

impl Accuracy {
    /// The rank of a row: whether it fuses where that is wanted, and its error, 0 where that is not
    /// seen.
    pub(crate) fn rank(self, atom: &Atom) -> (bool, f64) {
        let fuses = atom.contracts == self.fuses;
        let Some(bound) = atom.error_bound() else { return (!fuses, 0.0) };
        let hidden = match self.math {
            Math::Exact => false,
            Math::Below(most) => {
                atom.divides_by_literal() || bound.of_results().is_some_and(|e| e < most)
            }
            Math::Fast => true,
        };
        // Of a result near 1, of an operand near 1.
        (!fuses, if hidden { 0.0 } else { bound.at(1.0, 1.0) })
    }
}

/// How exact each leaf of a kernel must be.
#[derive(Clone, Debug, Default)]
pub(crate) struct Precision {
    /// Those of which something is said, or of which some error is not seen.
    math: BTreeMap<SpecId, Math>,
    /// Products that one sum or difference alone reads, and these.
    fused: BTreeSet<SpecId>,
}

impl Precision {
    pub(crate) fn of(&self, id: SpecId) -> Accuracy {
        let math = self.math.get(&id).copied().unwrap_or(Math::Below(0.0));
        Accuracy { math, fuses: self.fused.contains(&id) }
    }

    /// Whether the text asks for the smallest error.
    pub(crate) fn is_exact(&self, id: SpecId) -> bool {
        self.of(id).math == Math::Exact
    }

    /// Whether nothing sees a relative error below this.
    pub(crate) fn hides(&self, id: SpecId, error: f64) -> bool {
        match self.of(id).math {
            Math::Exact => false,
            Math::Below(most) => error < most,
            Math::Fast => true,
        }
    }
}

/// Rounds after which what still changes is taken for unbounded.
const MAX_ROUNDS: usize = 64;

/// Looks at all leaves of a kernel.
pub(crate) fn of(p: &Program, kernel: SpecId) -> Precision {
    flow(p, kernel).precision(kernel)
}

/// What goes from leaf to leaf of a kernel.
pub(crate) fn flow(p: &Program, kernel: SpecId) -> Flow<'_> {
    let mut flow = Flow {
        p,
        reads: BTreeMap::new(),
        carried: BTreeMap::new(),
        repeated: BTreeSet::new(),
        after: BTreeMap::new(),
    };
    let body = p.specs[kernel].body.as_deref().unwrap_or(&[]);
    loop {
        let before = flow.carried.clone();
        flow.follow(body, &mut Values::new(), false);
        if flow.carried == before {
            break;
        }
    }
    for (&to, inputs) in &flow.reads {
        flow.after.entry(to).or_default();
        for &from in inputs.iter().flatten() {
            flow.after.entry(from).or_default().insert(to);
        }
    }
    flow
}

/// What the text says of a spec.
fn said_of(spec: &Spec) -> Option<Math> {
    match spec.attr(Key::Math)?.as_word()? {
        "exact" => Some(Math::Exact),
        "fast" => Some(Math::Fast),
        _ => None,
    }
}

/// Half a unit in the last place of a type, relative to a result; none of what is no float.
fn half_unit(scalar: Scalar) -> Option<f64> {
    scalar.float().map(|f| 0.5f64.powi(f.digits))
}

/// Of each buffer the specs whose values it may hold at a place of the text.
type Values = BTreeMap<BufferId, BTreeSet<SpecId>>;

/// What goes from leaf to leaf.
pub(crate) struct Flow<'p> {
    p: &'p Program,
    /// The leaves whose values each leaf reads: of each input, and then of the output before.
    reads: BTreeMap<SpecId, Vec<BTreeSet<SpecId>>>,
    /// What buffers may hold behind a turn of each loop.
    carried: BTreeMap<VarId, Values>,
    /// Those that a loop repeats.
    repeated: BTreeSet<SpecId>,
    /// The leaves that read values of each.
    after: BTreeMap<SpecId, BTreeSet<SpecId>>,
}

impl Flow<'_> {
    /// How exact each leaf must be.
    pub(crate) fn precision(&self, kernel: SpecId) -> Precision {
        let hidden = self.hidden();
        let mut out = Precision::default();
        for (id, around) in self.p.leaves(kernel) {
            let said = std::iter::once(&id).chain(around.iter().rev());
            let said = said.into_iter().find_map(|s| said_of(&self.p.specs[*s]));
            let below = hidden.get(&id).copied().filter(|e| *e > 0.0 && e.is_finite());
            out.math.extend(said.or(below.map(Math::Below)).map(|math| (id, math)));
        }
        for (product, sum) in self.products() {
            if !out.is_exact(product) && !out.is_exact(sum) {
                out.fused.extend([product, sum]);
            }
        }
        out
    }

    /// The leaves whose values an input of a leaf may hold.
    pub(crate) fn read(&self, id: SpecId, input: usize) -> Option<&BTreeSet<SpecId>> {
        self.reads.get(&id)?.get(input)
    }

    /// The leaves that read values of one.
    pub(crate) fn readers(&self, id: SpecId) -> impl Iterator<Item = SpecId> {
        self.after.get(&id).into_iter().flatten().copied()
    }

    /// Follows the values through statements.
    fn follow(&mut self, stmts: &[Stmt], values: &mut Values, repeated: bool) {
        for stmt in stmts {
            let (first, second) = self.p.inside(stmt);
            match &stmt.kind {
                StmtKind::Spec(id) if self.p.specs[*id].body.is_none() => {
                    self.leaf(*id, values, repeated);
                }
                StmtKind::For { var, .. } => {
                    // What the turn before leaves is known from the time before.
                    join(values, self.carried.get(var).unwrap_or(&Values::new()));
                    let before = values.clone();
                    self.follow(first, values, true);
                    join(values, &before);
                    self.carried.insert(*var, values.clone());
                }
                StmtKind::If { .. } => {
                    let mut other = values.clone();
                    self.follow(first, values, repeated);
                    self.follow(second, &mut other, repeated);
                    join(values, &other);
                }
                _ => self.follow(first, values, repeated),
            }
        }
    }

    /// What a leaf reads, and writes.
    fn leaf(&mut self, id: SpecId, values: &mut Values, repeated: bool) {
        let spec = &self.p.specs[id];
        let of = |b: BufferId| values.get(&b).cloned().unwrap_or_default();
        let buffer = |t: TensorId| self.p.tensors[t].buffer;
        let inputs = spec.inputs.iter().map(|o| match o {
            Operand::Tensor(t) => of(buffer(*t)),
            Operand::Number(_) => BTreeSet::new(),
        });
        let mut found: Vec<BTreeSet<SpecId>> = inputs.collect();
        if spec.kind.reads_output() {
            found.push(spec.outputs.iter().flat_map(|t| of(buffer(*t))).collect());
        }
        let known = self.reads.entry(id).or_default();
        known.resize(found.len().max(known.len()), BTreeSet::new());
        known.iter_mut().zip(found).for_each(|(k, f)| k.extend(f));
        if repeated {
            self.repeated.insert(id);
        }
        for t in &spec.outputs {
            let all = values.entry(buffer(*t)).or_default();
            if *t == self.p.buffer_of(*t).tensor || ops::is_whole(self.p, *t) {
                all.clear();
            }
            all.insert(id);
        }
    }

    /// The relative error of the values of each leaf that is not seen; unbounded where nothing
    /// reads it.
    fn hidden(&self) -> BTreeMap<SpecId, f64> {
        let unsigned = self.unsigned();
        let inside = |id: &SpecId| {
            self.p.specs[*id].outputs.iter().all(|t| {
                let buffer = self.p.buffer_of(*t);
                let alone = buffer.at.is_none() && buffer.reuses.is_none();
                buffer.is_per_thread() || buffer.is_shared() && alone
            })
        };
        let start = |id: &SpecId| if inside(id) { f64::INFINITY } else { 0.0 };
        let mut hidden: BTreeMap<SpecId, f64> =
            self.after.keys().map(|id| (*id, start(id))).collect();
        for round in 0..=MAX_ROUNDS {
            let mut next = hidden.clone();
            for (&id, inputs) in &self.reads {
                for (i, from) in inputs.iter().enumerate() {
                    let most = self.reader(id, i, &hidden, &unsigned);
                    for d in from {
                        next.entry(*d).and_modify(|own| *own = own.min(most));
                    }
                }
            }
            if next == hidden {
                break;
            }
            if round == MAX_ROUNDS {
                for (id, e) in &mut next {
                    *e = if hidden.get(id) == Some(e) { *e } else { 0.0 };
                }
            }
            hidden = next;
        }
        hidden
    }

    /// The relative error of input `i` that is not seen after this leaf.
    fn reader(
        &self,
        id: SpecId,
        i: usize,
        hidden: &BTreeMap<SpecId, f64>,
        unsigned: &BTreeSet<SpecId>,
    ) -> f64 {
        let spec = &self.p.specs[id];
        let through = hidden.get(&id).copied().unwrap_or(0.0);
        let (Some(Operand::Tensor(own)), Some(&to)) = (spec.inputs.get(i), spec.outputs.first())
        else {
            return 0.0;
        };
        let positive = (0..spec.inputs.len()).all(|i| self.is_positive(id, i, unsigned));
        match spec.kind {
            SpecKind::Move | SpecKind::Shfl(_) => through,
            SpecKind::Select => {
                if i == 0 {
                    0.0
                } else {
                    through
                }
            }
            SpecKind::Unary(op) => match op {
                UnaryOp::Cast => {
                    let (from, to) = (self.p.scalar_of(*own), self.p.scalar_of(to));
                    match (half_unit(from), half_unit(to)) {
                        (Some(from), Some(to)) if to > from => to,
                        (Some(_), Some(_)) => through,
                        _ => 0.0,
                    }
                }
                UnaryOp::Neg
                | UnaryOp::Abs
                | UnaryOp::Relu
                | UnaryOp::Rcp
                | UnaryOp::Sqrt
                | UnaryOp::Rsqrt => through,
                UnaryOp::Exp
                | UnaryOp::Exp2
                | UnaryOp::Log
                | UnaryOp::Tanh
                | UnaryOp::Sigmoid
                | UnaryOp::Gelu
                | UnaryOp::Silu => 0.0,
            },
            SpecKind::Binary(op) => match op {
                BinaryOp::Mul | BinaryOp::Div => {
                    let of = |j: usize| self.reads.get(&id).and_then(|r| r.get(j));
                    let other = of(1 - i.min(1));
                    let same = spec.inputs.iter().enumerate().any(|(j, o)| match o {
                        Operand::Tensor(t) => {
                            j != i && self.p.tensors[*t].buffer == self.p.tensors[*own].buffer
                        }
                        Operand::Number(_) => false,
                    });
                    // What it is multiplied with holds the same error from the turn before.
                    let again = self.repeated.contains(&id)
                        && other.into_iter().flatten().any(|d| self.reaches(id, *d));
                    match (again, same) {
                        (true, _) => 0.0,
                        (false, true) => through / 2.0,
                        (false, false) => through,
                    }
                }
                BinaryOp::Add => {
                    if positive {
                        through
                    } else {
                        0.0
                    }
                }
                BinaryOp::Min | BinaryOp::Max | BinaryOp::Minimum | BinaryOp::Maximum => through,
                BinaryOp::Sub
                | BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Eq
                | BinaryOp::Ne
                | BinaryOp::Ge
                | BinaryOp::Gt => 0.0,
            },
            SpecKind::Reduction(op) => match op {
                ReduceOp::Sum => {
                    if positive {
                        through
                    } else {
                        0.0
                    }
                }
                ReduceOp::Min | ReduceOp::Max | ReduceOp::Minimum | ReduceOp::Maximum => through,
                ReduceOp::Prod | ReduceOp::And | ReduceOp::Or | ReduceOp::Xor => 0.0,
            },
            // Nothing is known about other kinds.
            _ => 0.0,
        }
    }

    /// Products of registers, each with the one sum or difference of the same shape that alone
    /// reads it.
    fn products(&self) -> impl Iterator<Item = (SpecId, SpecId)> + '_ {
        self.after.iter().filter_map(|(&id, readers)| {
            let mut readers = readers.iter();
            let (Some(&reader), None) = (readers.next(), readers.next()) else { return None };
            let (spec, sum) = (&self.p.specs[id], &self.p.specs[reader]);
            let kinds = matches!(
                (spec.kind, sum.kind),
                (SpecKind::Binary(BinaryOp::Mul), SpecKind::Binary(BinaryOp::Add | BinaryOp::Sub))
            );
            let (&from, &to) = (spec.outputs.first()?, sum.outputs.first()?);
            let inside = |t| self.p.buffer_of(t).is_per_thread();
            let same = inside(from) && ops::extents(self.p, from) == ops::extents(self.p, to);
            let once = self.reads.get(&reader)?.iter().filter(|d| d.contains(&id)).count() == 1;
            let alone = self.reads.get(&reader)?.iter().any(|d| d.len() == 1 && d.contains(&id));
            (kinds && same && once && alone).then_some((id, reader))
        })
    }

    /// Whether values of one leaf go into those of another, or are the same.
    fn reaches(&self, from: SpecId, to: SpecId) -> bool {
        let (mut seen, mut todo) = (BTreeSet::from([from]), vec![from]);
        while let Some(at) = todo.pop() {
            if at == to {
                return true;
            }
            todo.extend(self.after.get(&at).into_iter().flatten().filter(|b| seen.insert(**b)));
        }
        false
    }

    /// Whether an input cannot be negative.
    fn is_positive(&self, id: SpecId, i: usize, unsigned: &BTreeSet<SpecId>) -> bool {
        let spec = &self.p.specs[id];
        match spec.inputs.get(i) {
            Some(Operand::Number(n)) => *n >= 0.0,
            Some(Operand::Tensor(t)) => {
                let inside = self.p.buffer_of(*t).memory.is_some_and(Memory::is_allocated);
                let from = self.reads.get(&id).and_then(|r| r.get(i));
                inside && from.is_some_and(|d| !d.is_empty() && d.is_subset(unsigned))
            }
            None => false,
        }
    }

    /// The leaves none of whose values can be negative.
    fn unsigned(&self) -> BTreeSet<SpecId> {
        let mut all: BTreeSet<SpecId> = self.reads.keys().copied().collect();
        loop {
            let left: BTreeSet<SpecId> =
                all.iter().copied().filter(|id| self.is_unsigned(*id, &all)).collect();
            if left.len() == all.len() {
                return all;
            }
            all = left;
        }
    }

    /// Whether what a leaf writes cannot be negative.
    fn is_unsigned(&self, id: SpecId, unsigned: &BTreeSet<SpecId>) -> bool {
        let spec = &self.p.specs[id];
        let of = |i: usize| self.is_positive(id, i, unsigned);
        let inputs = || 0..spec.inputs.len();
        let all = || inputs().all(of);
        match spec.kind {
            SpecKind::Unary(op) => match op {
                UnaryOp::Exp
                | UnaryOp::Exp2
                | UnaryOp::Sqrt
                | UnaryOp::Rsqrt
                | UnaryOp::Sigmoid
                | UnaryOp::Abs
                | UnaryOp::Relu => true,
                UnaryOp::Cast | UnaryOp::Rcp => all(),
                UnaryOp::Neg | UnaryOp::Log | UnaryOp::Tanh | UnaryOp::Gelu | UnaryOp::Silu => {
                    false
                }
            },
            SpecKind::Binary(op) => match op {
                BinaryOp::Mul => all() || square(self.p, spec),
                BinaryOp::Add
                | BinaryOp::Div
                | BinaryOp::Min
                | BinaryOp::Minimum
                | BinaryOp::Maximum => all(),
                BinaryOp::Max => inputs().any(of),
                BinaryOp::Sub => false,
                BinaryOp::Lt
                | BinaryOp::Le
                | BinaryOp::Eq
                | BinaryOp::Ne
                | BinaryOp::Ge
                | BinaryOp::Gt => true,
            },
            SpecKind::Select => inputs().skip(1).all(of),
            SpecKind::Reduction(
                ReduceOp::Sum
                | ReduceOp::Prod
                | ReduceOp::Min
                | ReduceOp::Max
                | ReduceOp::Minimum
                | ReduceOp::Maximum,
            )
            | SpecKind::Move
            | SpecKind::Shfl(_)
            | SpecKind::Init => all(),
            SpecKind::Iota => true,
            _ => false,
        }
    }
}

/// Whether both inputs are the same elements of a tensor.
fn square(p: &Program, spec: &Spec) -> bool {
    let tensors: Vec<_> = spec.input_tensors().map(|t| &p.tensors[t]).collect();
    let [a, b] = tensors[..] else { return false };
    a.buffer == b.buffer && a.levels == b.levels && a.offset == b.offset && a.dist == b.dist
}

/// Adds what a buffer may hold on another way.
fn join(values: &mut Values, other: &Values) {
    for (b, list) in other {
        values.entry(*b).or_default().extend(list);
    }
}
