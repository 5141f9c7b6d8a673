//! Finds the decisions of a program that depend on its inputs, as far as the meanings of the
//! kernels show them. For each tensor of the caller, it records whether its elements are compared
//! (or converted to integers) and with which literals, along which modes a largest or smallest
//! element is computed, and whether its elements are arguments of an exponential, divisors or
//! arguments of a logarithm. Uniform random inputs rarely test such decisions; the generated inputs
//! do ([`crate::inputs`]).

use carbyne_ir::ast::{BinaryOp, ReduceOp, SpecKind, UnaryOp};
use carbyne_ir::program::{Means, MeansInput, MeansOp, Operand, Program, Spec, TensorId};
use std::collections::BTreeMap;

/// The decisions that depend on the elements of each tensor of the caller.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decisions(BTreeMap<String, Decides>);

/// The decisions that depend on the elements of one tensor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decides {
    /// Whether the elements are compared, or are operands of a minimum or maximum.
    pub(crate) compared: bool,
    /// The literals that the elements are compared with.
    pub(crate) literals: Vec<f64>,
    /// The modes along which the largest element is computed.
    pub(crate) largest: Vec<usize>,
    /// The modes along which the smallest element is computed.
    pub(crate) smallest: Vec<usize>,
    /// Whether the elements are arguments of an exponential.
    pub(crate) exponential: bool,
    /// Whether the argument of the exponential is the difference to the row's largest element,
    /// which never overflows.
    pub(crate) shifted: bool,
    /// The factor of the elements in the argument of the exponential.
    pub(crate) scale: f64,
    /// Whether the elements may be divisors or arguments of a logarithm, so that none may be zero.
    pub(crate) divides: bool,
}

impl Default for Decides {
    fn default() -> Self {
        let (literals, largest, smallest) = (vec![], vec![], vec![]);
        let (compared, exponential, shifted, divides) = (false, false, false, false);
        Decides { compared, literals, largest, smallest, exponential, shifted, scale: 1.0, divides }
    }
}

/// The tensors that the elements of a value come from, and whether each element keeps its place in
/// the tensor.
type Sources = BTreeMap<String, bool>;

/// One operation of a meaning.
struct Operation<'a> {
    kind: SpecKind,
    /// The sources of each operand; none for a number.
    from: &'a [Option<&'a Sources>],
    literals: &'a [f64],
    axes: &'a [usize],
    /// Whether the result is an integer.
    integral: bool,
    /// Whether the operand is the difference to the row's largest element.
    shifted: bool,
    /// The factor of the operand.
    scale: f64,
}

impl Decisions {
    /// The decisions of a program.
    #[must_use]
    pub fn of(program: &Program) -> Self {
        let mut found = Decisions::default();
        for kernel in &program.kernels {
            let spec = &program.specs[*kernel];
            match &spec.means {
                Some(means) => found.means(program, means),
                None => found.single(program, spec),
            }
        }
        found
    }

    /// The decisions of two programs, for runs with equal inputs.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for (tensor, theirs) in other.0 {
            self.compares_if(&tensor, theirs.compared, &theirs.literals);
            let own = self.entry(&tensor);
            let either = |own: &mut Vec<usize>, theirs: Vec<usize>| {
                if own.is_empty() {
                    *own = theirs;
                }
            };
            either(&mut own.largest, theirs.largest);
            either(&mut own.smallest, theirs.smallest);
            if !own.exponential {
                own.scale = theirs.scale;
            }
            own.exponential |= theirs.exponential;
            own.shifted |= theirs.shifted;
            own.divides |= theirs.divides;
        }
        self
    }

    pub(crate) fn by(&self, tensor: &str) -> Option<&Decides> {
        self.0.get(tensor)
    }

    fn means(&mut self, program: &Program, means: &Means) {
        let operand = |t: Option<TensorId>| t.map(|t| source(program, t)).into_iter().collect();
        let mut sources: Vec<Sources> = means.values.iter().map(|v| operand(v.operand)).collect();
        // For each value that is a largest element, the value that it is the largest of.
        let mut largest: Vec<Option<usize>> = vec![None; means.values.len()];
        let mut shifted = vec![false; means.values.len()];
        // The factor of a tensor's elements in each value.
        let mut scales = vec![1.0; means.values.len()];
        for step in &means.steps {
            let value = |i: &MeansInput| match i {
                MeansInput::Value(v) => Some(*v),
                MeansInput::Number(_) | MeansInput::Size(_) => None,
            };
            let values: Vec<usize> = step.inputs.iter().filter_map(value).collect();
            let output = &means.values[step.output];
            let mut joined = Sources::new();
            for v in &values {
                let same = means.values[*v].extents == output.extents;
                for (name, stays) in &sources[*v] {
                    *joined.entry(name.clone()).or_default() |= *stays && same;
                }
            }
            let (kind, axes) = match &step.op {
                MeansOp::Spec { kind, axes, .. } => (*kind, &axes[..]),
                MeansOp::View { .. } | MeansOp::Gather { .. } | MeansOp::Pad { .. } => {
                    joined.values_mut().for_each(|stays| *stays = false);
                    sources[step.output] = joined;
                    continue;
                }
            };
            let literal = |i: &MeansInput| match i {
                MeansInput::Number(n) => Some(*n),
                MeansInput::Value(_) | MeansInput::Size(_) => None,
            };
            let literals: Vec<f64> = step.inputs.iter().filter_map(literal).collect();
            let scale = values.first().map_or(1.0, |v| scales[*v]);
            self.operation(&Operation {
                kind,
                from: &step.inputs.iter().map(|i| Some(&sources[value(i)?])).collect::<Vec<_>>(),
                literals: &literals,
                axes,
                integral: !output.scalar.is_float(),
                shifted: values.first().is_some_and(|v| shifted[*v]),
                scale,
            });
            scales[step.output] = match (kind, &literals[..]) {
                (SpecKind::Binary(BinaryOp::Mul), [by]) => scale * by,
                (SpecKind::Binary(BinaryOp::Div), [by]) => scale / by,
                (SpecKind::Select, _) => values.get(1).map_or(scale, |v| scales[*v]),
                _ => scale,
            };
            match (kind, &values[..]) {
                (SpecKind::Reduction(ReduceOp::Max | ReduceOp::Maximum), [v]) => {
                    largest[step.output] = Some(*v);
                }
                (SpecKind::Binary(BinaryOp::Sub), [a, b]) => {
                    shifted[step.output] = largest[*b] == Some(*a);
                }
                _ => {}
            }
            sources[step.output] = if passes(kind) { joined } else { Sources::new() };
        }
    }

    /// Records a kernel that is a single operation.
    fn single(&mut self, program: &Program, spec: &Spec) {
        let from = |o: &Operand| match o {
            Operand::Number(_) => None,
            Operand::Tensor(t) => Some([source(program, *t)].into_iter().collect::<Sources>()),
        };
        let from: Vec<Option<Sources>> = spec.inputs.iter().map(from).collect();
        let literal = |o: &Operand| match o {
            Operand::Number(n) => Some(*n),
            Operand::Tensor(_) => None,
        };
        let output = spec.outputs.first();
        self.operation(&Operation {
            kind: spec.kind,
            from: &from.iter().map(Option::as_ref).collect::<Vec<_>>(),
            literals: &spec.inputs.iter().filter_map(literal).collect::<Vec<_>>(),
            axes: &spec.axes().unwrap_or_default(),
            integral: output.is_some_and(|t| !program.scalar_of(*t).is_float()),
            shifted: false,
            scale: 1.0,
        });
    }

    /// Records the decisions of one operation.
    fn operation(&mut self, of: &Operation<'_>) {
        let all = || of.from.iter().flatten().flat_map(|s| s.iter());
        match of.kind {
            SpecKind::Binary(op) => {
                let extreme = matches!(
                    op,
                    BinaryOp::Min | BinaryOp::Max | BinaryOp::Minimum | BinaryOp::Maximum
                );
                if op.compares() || extreme {
                    // A literal divided by the factor of the elements is a boundary, too.
                    let by = Some(of.scale).filter(|by| *by != 1.0 && by.is_finite() && *by != 0.0);
                    let scaled =
                        by.into_iter().flat_map(|by| of.literals.iter().map(move |n| n / by));
                    let literals: Vec<f64> = of.literals.iter().copied().chain(scaled).collect();
                    all().for_each(|(name, _)| self.compares(name, &literals));
                }
                if let (BinaryOp::Div, Some(Some(by))) = (op, of.from.last()) {
                    by.keys().for_each(|name| self.entry(name).divides = true);
                }
            }
            // The middle between two integers.
            SpecKind::Unary(UnaryOp::Cast) if of.integral => {
                all().for_each(|(name, _)| self.compares(name, &[0.5, 1.5]));
            }
            SpecKind::Unary(UnaryOp::Exp | UnaryOp::Exp2) => all().for_each(|(name, _)| {
                let decides = self.entry(name);
                decides.exponential = true;
                decides.shifted |= of.shifted;
                if of.scale.is_finite() && of.scale != 0.0 {
                    decides.scale = of.scale;
                }
            }),
            SpecKind::Unary(UnaryOp::Log | UnaryOp::Rsqrt | UnaryOp::Rcp) => {
                all().for_each(|(name, _)| self.entry(name).divides = true);
            }
            SpecKind::Reduction(op) => {
                let most = matches!(op, ReduceOp::Max | ReduceOp::Maximum);
                let least = matches!(op, ReduceOp::Min | ReduceOp::Minimum);
                for (name, stays) in all().filter(|_| most || least) {
                    self.compares(name, &[]);
                    let decides = self.entry(name);
                    let modes = if most { &mut decides.largest } else { &mut decides.smallest };
                    if *stays && modes.is_empty() {
                        *modes = of.axes.to_vec();
                    }
                }
            }
            _ => {}
        }
    }

    fn entry(&mut self, name: &str) -> &mut Decides {
        self.0.entry(name.to_owned()).or_default()
    }

    fn compares(&mut self, name: &str, literals: &[f64]) {
        self.compares_if(name, true, literals);
    }

    fn compares_if(&mut self, name: &str, compared: bool, literals: &[f64]) {
        let decides = self.entry(name);
        decides.compared |= compared;
        for n in literals {
            if n.is_finite() && !decides.literals.contains(n) {
                decides.literals.push(*n);
            }
        }
    }
}

/// Whether each element of a result is an element of the operands in another form, rather than a
/// sum of many.
fn passes(kind: SpecKind) -> bool {
    let extreme = matches!(
        kind,
        SpecKind::Reduction(ReduceOp::Min | ReduceOp::Max | ReduceOp::Minimum | ReduceOp::Maximum)
    );
    extreme || kind.is_pointwise()
}

/// The tensor of the caller that an operand belongs to, and whether the operand is the complete
/// tensor.
fn source(program: &Program, t: TensorId) -> (String, bool) {
    let buffer = &program.buffers[program.tensors[t].buffer];
    (buffer.name.clone(), buffer.tensor == t)
}
