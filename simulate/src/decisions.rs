//! What a program decides by its inputs, as far as its kernels say what they mean: comparisons,
//! extremes, functions that overflow. Inputs are drawn so that these are seen to be right
//! ([`crate::inputs`]).

use carbyne_ir::ast::{BinaryOp, ReduceOp, SpecKind, UnaryOp};
use carbyne_ir::program::{Means, MeansInput, MeansOp, Operand, Program, Spec, TensorId};
use std::collections::BTreeMap;

/// What a program decides by the elements of each of the caller's tensors.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decisions(BTreeMap<String, Decides>);

/// What is decided by the elements of one tensor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decides {
    /// Whether they are compared, or the smaller or larger one is taken.
    pub(crate) compared: bool,
    /// Literals that they are compared with.
    pub(crate) literals: Vec<f64>,
    /// Modes along which the largest of them is found.
    pub(crate) largest: Vec<usize>,
    /// Modes along which the smallest is found.
    pub(crate) smallest: Vec<usize>,
    /// Whether an exponential is taken of them.
    pub(crate) exponential: bool,
    /// Whether one is taken of them less the largest of their row, so that it never overflows.
    pub(crate) shifted: bool,
    /// By what they are multiplied before the exponential.
    pub(crate) scale: f64,
    /// Whether they may be what is divided by, or what a logarithm is taken of: none is zero then.
    pub(crate) divides: bool,
}

impl Default for Decides {
    fn default() -> Self {
        let (literals, largest, smallest) = (vec![], vec![], vec![]);
        let (compared, exponential, shifted, divides) = (false, false, false, false);
        Decides { compared, literals, largest, smallest, exponential, shifted, scale: 1.0, divides }
    }
}

/// From which tensors the elements of a value are, and whether each stands where the tensor has it.
type Sources = BTreeMap<String, bool>;

/// One operation.
struct Operation<'a> {
    kind: SpecKind,
    /// Of each operand where it is from; of a number nothing.
    from: &'a [Option<&'a Sources>],
    literals: &'a [f64],
    axes: &'a [usize],
    /// Whether it makes integers.
    integral: bool,
    /// Whether its operand is less the largest of its row.
    shifted: bool,
    /// By what its operand is multiplied.
    scale: f64,
}

impl Decisions {
    /// Those of a program.
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

    /// Those of both programs, which are to be given the same inputs.
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
        // What a value is the largest of.
        let mut largest: Vec<Option<usize>> = vec![None; means.values.len()];
        let mut shifted = vec![false; means.values.len()];
        // By what the elements of a tensor are multiplied in it.
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

    /// A kernel that is one operation.
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

    /// What one operation decides by its operands.
    fn operation(&mut self, of: &Operation<'_>) {
        let all = || of.from.iter().flatten().flat_map(|s| s.iter());
        match of.kind {
            SpecKind::Binary(op) => {
                let extreme = matches!(
                    op,
                    BinaryOp::Min | BinaryOp::Max | BinaryOp::Minimum | BinaryOp::Maximum
                );
                if op.compares() || extreme {
                    // What they are multiplied by first decides, too.
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
            // Half way between two integers.
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

/// Whether the elements of a result are those of its operands in another form, rather than sums of
/// many.
fn passes(kind: SpecKind) -> bool {
    let extreme = matches!(
        kind,
        SpecKind::Reduction(ReduceOp::Min | ReduceOp::Max | ReduceOp::Minimum | ReduceOp::Maximum)
    );
    extreme || kind.is_pointwise()
}

/// The tensor of the caller that an operand is of, and whether it is all of it.
fn source(program: &Program, t: TensorId) -> (String, bool) {
    let buffer = &program.buffers[program.tensors[t].buffer];
    (buffer.name.clone(), buffer.tensor == t)
}
