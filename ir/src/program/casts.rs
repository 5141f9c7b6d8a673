//! Classifies casts to floats: some round in the meaning of a spec, others only in its body. The
//! simulator uses this when it compares the results of a body with the meaning.
//!
//! A cast in a `means` block rounds if its type does not contain every value of its operand
//! ([`Means::roundings`]). [`Program::casts`] gives the role of each such cast in a body. It may
//! implement a rounding of the meaning. It may be a step that the meaning does not mention:
//! probabilities rounded to halves for a tensor core, or a tile that is stored. Or it splits a
//! number: the body adds the rounding error of the cast elsewhere, as in a product of f32 values by
//! bf16 products.

use super::{BufferId, Means, MeansInput, MeansOp, Operand, Program, Spec, SpecId, TensorId, walk};
use crate::ast::{Attr, BinaryOp, Key, SpecKind, UnaryOp};
use crate::scalar::Scalar;
use std::collections::{BTreeMap, BTreeSet};

/// The role of a rounding cast in a body. A cast rounds if its float type does not contain every
/// value of its operand.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum CastRole {
    /// A step of the implementation that the meaning does not mention.
    Staged,
    /// The meaning rounds here, too.
    Meant,
    /// The body computes the rounding error of the cast, to add it elsewhere: for example, a
    /// product of f32 values as a sum of bf16 products.
    Split,
}

impl Means {
    /// For each step the type to which it rounds, as [`Means::casts`], except for a cast to the
    /// type of an output that no other step reads: the store rounds it anyway.
    #[must_use]
    pub fn roundings(&self) -> Vec<Option<Scalar>> {
        let mut roundings = self.casts();
        for (step, rounds) in self.steps.iter().zip(&mut roundings) {
            let read =
                |v: usize| self.steps.iter().any(|s| s.inputs.contains(&MeansInput::Value(v)));
            let stored = self.outputs.contains(&step.output) && !read(step.output);
            if stored && *rounds == Some(self.values[step.output].scalar) {
                *rounds = None;
            }
        }
        roundings
    }

    /// For each step the type to which it rounds: the type of a cast to a float that does not
    /// contain every value of its operand.
    ///
    /// An operand has the values of its type, and a cast those of the type it casts to. An
    /// operation that only selects values keeps their type. Other results of floats have the values
    /// of `f32`, or of `f64` if an operand is `f64`.
    #[must_use]
    pub fn casts(&self) -> Vec<Option<Scalar>> {
        let mut types: Vec<Scalar> = self.values.iter().map(|v| v.scalar).collect();
        let mut roundings = vec![None; self.steps.len()];
        for (step, rounds) in self.steps.iter().zip(&mut roundings) {
            let read = |i: &MeansInput| match i {
                MeansInput::Value(v) => types.get(*v).copied(),
                MeansInput::Number(_) | MeansInput::Size(_) => None,
            };
            let of: Vec<Scalar> = step.inputs.iter().filter_map(read).collect();
            let literal = of.len() < step.inputs.len();
            let joined = of.iter().copied().reduce(join);
            let float = self.values[step.output].scalar.is_float();
            let own = match &step.op {
                MeansOp::View { .. } | MeansOp::Gather { .. } => of.first().copied(),
                // Every float type contains zeros and infinities.
                MeansOp::Pad { value, .. } if *value == 0.0 || value.is_infinite() => {
                    of.first().copied()
                }
                MeansOp::Pad { .. } => joined.map(computed),
                MeansOp::Spec { kind: SpecKind::Unary(UnaryOp::Cast), scalar, .. } => {
                    let to = scalar.unwrap_or(self.values[step.output].scalar);
                    match of.first() {
                        Some(from) if to.holds(*from) => Some(*from),
                        _ if !to.is_float() => Some(to),
                        _ => {
                            *rounds = Some(to);
                            Some(to)
                        }
                    }
                }
                MeansOp::Spec { kind, .. } if keeps_values(*kind) && !literal => match kind {
                    // The first operand of a Select is not among the selected values.
                    SpecKind::Select => {
                        of.get(1..).unwrap_or_default().iter().copied().reduce(join)
                    }
                    _ => joined,
                },
                MeansOp::Spec { .. } => joined.map(computed),
            };
            if float {
                types[step.output] = own.unwrap_or(Scalar::F32);
            }
        }
        roundings
    }
}

/// Whether every result is the value of an operand, up to the sign.
fn keeps_values(kind: SpecKind) -> bool {
    use crate::ast::ReduceOp;
    match kind {
        SpecKind::Move | SpecKind::Select | SpecKind::Shfl(_) => true,
        SpecKind::Unary(op) => matches!(op, UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Relu),
        SpecKind::Binary(op) => {
            matches!(op, BinaryOp::Min | BinaryOp::Max | BinaryOp::Minimum | BinaryOp::Maximum)
        }
        SpecKind::Reduction(op) => {
            matches!(op, ReduceOp::Min | ReduceOp::Max | ReduceOp::Minimum | ReduceOp::Maximum)
        }
        _ => false,
    }
}

/// The type of results computed from values of a type.
fn computed(of: Scalar) -> Scalar {
    if of == Scalar::F64 { Scalar::F64 } else { Scalar::F32 }
}

/// A type that contains the values of both.
fn join(a: Scalar, b: Scalar) -> Scalar {
    match (a.holds(b), b.holds(a)) {
        (true, _) => a,
        (false, true) => b,
        (false, false) => computed(if a == Scalar::F64 { a } else { b }),
    }
}

/// The types to which casts in the `means` blocks of kernels round. They include casts to the type
/// of an output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoundedTypes {
    /// All types.
    pub all: BTreeSet<Scalar>,
    /// The types to which floats are rounded. A rounding of an integer to `f32`, for example, does
    /// not concern other numbers of that type.
    pub of_floats: BTreeSet<Scalar>,
}

impl Program {
    /// The types to which casts in the `means` blocks of kernels round.
    #[must_use]
    pub fn rounded_types(&self) -> RoundedTypes {
        let mut types = RoundedTypes::default();
        for means in self.kernels.iter().filter_map(|k| self.specs[*k].means.as_ref()) {
            for (step, to) in means.steps.iter().zip(means.casts()) {
                let of_float = step.inputs.iter().any(|i| match i {
                    MeansInput::Value(v) => means.values[*v].scalar.is_float(),
                    MeansInput::Number(_) | MeansInput::Size(_) => false,
                });
                types.all.extend(to);
                types.of_floats.extend(to.filter(|_| of_float));
            }
        }
        types
    }

    /// Whether a kernel's output is the result of a cast in its `means` block that rounds to the
    /// type of the output.
    #[must_use]
    pub fn is_rounded(&self, kernel: SpecId, output: usize) -> bool {
        let Some(means) = &self.specs[kernel].means else { return false };
        let Some(&value) = means.outputs.get(output) else { return false };
        let maker = means.steps.iter().position(|s| s.output == value);
        let to = maker.and_then(|step| *means.casts().get(step)?);
        to == Some(means.values[value].scalar)
    }

    /// The rounding casts to floats in a kernel's body, with their roles. They include specs with
    /// bodies and leaves.
    ///
    /// - Meant: the cast has `meant=yes`, or an enclosing spec rounds to its type in its `means`
    ///   block.
    /// - Split: the body computes the difference of the cast's operand and result, and no meaning
    ///   rounds to the type.
    /// - Staged: all others, and casts with `meant=no`.
    ///
    /// A cast inside the body of a cast has the role of the outer one.
    #[must_use]
    pub fn casts(&self, kernel: SpecId) -> BTreeMap<SpecId, CastRole> {
        let mut all: Vec<(SpecId, Option<CastRole>)> = vec![];
        // For each enclosing spec: the types to which it rounds, and the enclosing cast.
        let mut around: Vec<(BTreeSet<Scalar>, Option<SpecId>)> =
            vec![(self.rounds_to(kernel), None)];
        let mut inside: BTreeMap<SpecId, SpecId> = BTreeMap::new();
        let body = self.specs[kernel].body.as_deref().unwrap_or(&[]);
        for step in self.walk(body) {
            let (enters, stmt) = match step {
                walk::Step::Enter(stmt) => (true, stmt),
                walk::Step::Leave(stmt) => (false, stmt),
            };
            let super::StmtKind::Spec(id) = stmt.kind else { continue };
            if !enters {
                around.pop();
                continue;
            }
            let (mut types, mut outer) = around.last().cloned().unwrap_or_default();
            let spec = &self.specs[id];
            if self.narrows(spec) {
                let to = spec.outputs.first().map(|t| self.scalar_of(*t));
                let said = match spec.attr(Key::Meant).map(Attr::as_word) {
                    Some(Some("yes")) => Some(CastRole::Meant),
                    Some(_) => Some(CastRole::Staged),
                    None if to.is_some_and(|t| types.contains(&t)) => Some(CastRole::Meant),
                    None => None,
                };
                match outer {
                    Some(cast) if spec.attr(Key::Meant).is_none() => drop(inside.insert(id, cast)),
                    _ => {
                        all.push((id, said));
                        outer = Some(id);
                    }
                }
            }
            types.extend(self.rounds_to(id));
            around.push((types, outer));
        }
        if all.is_empty() {
            return BTreeMap::new();
        }
        let split = match all.iter().any(|(_, role)| role.is_none()) {
            true => self.splits(kernel),
            false => BTreeSet::new(),
        };
        let mut roles: BTreeMap<SpecId, CastRole> = BTreeMap::new();
        for (id, said) in all {
            let splits = || self.between(id).is_some_and(|ends| split.contains(&ends));
            let other = || if splits() { CastRole::Split } else { CastRole::Staged };
            roles.insert(id, said.unwrap_or_else(other));
        }
        for (id, outer) in inside {
            roles.extend(roles.get(&outer).copied().map(|role| (id, role)));
        }
        roles
    }

    fn rounds_to(&self, id: SpecId) -> BTreeSet<Scalar> {
        let means = self.specs[id].means.as_ref();
        means.map(Means::roundings).into_iter().flatten().flatten().collect()
    }

    /// Whether a spec is a cast to a float that does not contain every value of its operand.
    fn narrows(&self, spec: &Spec) -> bool {
        let from = spec.input_tensors().next().map(|t| self.scalar_of(t));
        let to = spec.outputs.first().map(|t| self.scalar_of(*t));
        let cast = spec.kind == SpecKind::Unary(UnaryOp::Cast);
        cast && from.zip(to).is_some_and(|(from, to)| to.is_float() && !to.holds(from))
    }

    /// The input and output buffers of a spec with one operand.
    fn between(&self, id: SpecId) -> Option<(BufferId, BufferId)> {
        let spec = &self.specs[id];
        let buffer = |t: TensorId| self.tensors[t].buffer;
        Some((buffer(spec.input_tensors().next()?), buffer(*spec.outputs.first()?)))
    }

    /// The casts of values from which the body subtracts a cast of the same value to the same type,
    /// or the reverse. A cast is identified by its input and output buffers. Copies, negations and
    /// lossless casts of a buffer stand for the buffer.
    fn splits(&self, kernel: SpecId) -> BTreeSet<(BufferId, BufferId)> {
        let (mut narrow, mut differences) = (BTreeSet::new(), vec![]);
        // `onward`: the buffers to which a buffer is moved, negated or widened. `alike`: the same
        // without casts, and with moves in both directions. The flag tells whether the sign
        // changes.
        let mut onward: Edges = BTreeMap::new();
        let mut alike: Edges = BTreeMap::new();
        let body = self.specs[kernel].body.as_deref().unwrap_or(&[]);
        for id in self.walk(body).specs() {
            let spec = &self.specs[id];
            match (spec.kind, self.between(id)) {
                (SpecKind::Unary(UnaryOp::Cast), Some(ends)) if self.narrows(spec) => {
                    narrow.insert(ends);
                }
                (SpecKind::Unary(UnaryOp::Cast), Some((from, to))) => {
                    onward.entry(from).or_default().insert((to, false));
                }
                (SpecKind::Unary(UnaryOp::Neg), Some((from, to))) => {
                    onward.entry(from).or_default().insert((to, true));
                    alike.entry(from).or_default().insert((to, true));
                }
                // Tensors stored to one tensor in global memory are not copies of one another.
                (SpecKind::Move, Some((_, to))) if self.buffers[to].is_global() => {}
                (SpecKind::Move, Some((from, to))) => {
                    onward.entry(from).or_default().insert((to, false));
                    alike.entry(from).or_default().insert((to, false));
                    alike.entry(to).or_default().insert((from, false));
                }
                (SpecKind::Binary(op @ (BinaryOp::Sub | BinaryOp::Add)), _) => {
                    let buffer = |o: &Operand| Some(self.tensors[o.tensor()?].buffer);
                    let both: Vec<_> = spec.inputs.iter().map(buffer).collect();
                    if let [Some(a), Some(b)] = both[..] {
                        differences.push((a, b, op == BinaryOp::Add));
                    }
                }
                _ => {}
            }
        }
        let splits = |(from, to): &(BufferId, BufferId)| {
            let (sources, results) = (reached(*from, &alike), reached(*to, &onward));
            differences.iter().any(|(a, b, adds)| {
                let cancels = |x: BufferId, y: BufferId| {
                    [false, true].into_iter().any(|sign| {
                        sources.contains(&(x, sign)) && results.contains(&(y, sign ^ adds))
                    })
                };
                cancels(*a, *b) || cancels(*b, *a)
            })
        };
        let found: BTreeSet<_> = narrow.iter().copied().filter(splits).collect();
        // Another cast of the same value to the same type counts as the same cast.
        let same = |(from, to): &(BufferId, BufferId)| {
            let sources = reached(*from, &alike);
            let typed = |b: BufferId| self.buffers[b].scalar;
            found.iter().any(|(f, t)| sources.contains(&(*f, false)) && typed(*t) == typed(*to))
        };
        narrow.iter().copied().filter(|ends| found.contains(ends) || same(ends)).collect()
    }
}

/// For each buffer its successors, and whether the sign changes.
type Edges = BTreeMap<BufferId, BTreeSet<(BufferId, bool)>>;

/// All buffers reachable from a buffer, including itself.
fn reached(from: BufferId, along: &Edges) -> BTreeSet<(BufferId, bool)> {
    let (mut found, mut todo) = (BTreeSet::from([(from, false)]), vec![(from, false)]);
    while let Some((b, sign)) = todo.pop() {
        for (next, turns) in along.get(&b).into_iter().flatten() {
            let next = (*next, sign ^ turns);
            if found.insert(next) {
                todo.push(next);
            }
        }
    }
    found
}
