//! V0206, V0207, V0208, V0217, V0218: whether operands fit their spec.

use super::Verifier;
use crate::ast::{ReduceOp, SpecKind, UnaryOp};
use crate::diag::{Code, Diagnostic};
use crate::expr::Dim;
use crate::program::{Operand, SpecId, TensorId};
use crate::scalar::Scalar;

impl Verifier<'_> {
    pub(super) fn operands(&mut self, id: SpecId) {
        let spec = &self.p.specs[id];
        let (n_in, n_out) = (spec.inputs.len(), spec.outputs.len());
        let wanted = match spec.kind {
            SpecKind::Move
            | SpecKind::Accumulate(_)
            | SpecKind::Unary(_)
            | SpecKind::Reduction(_)
            | SpecKind::Shfl(_)
            | SpecKind::Init => Some((1, 1)),
            SpecKind::MatMul | SpecKind::MatMulSet | SpecKind::Binary(_) => Some((2, 1)),
            SpecKind::Select => Some((3, 1)),
            SpecKind::Generic => None,
        };
        if let Some((i, o)) = wanted
            && (i, o) != (n_in, n_out)
        {
            self.error(
                Code::Arity,
                spec.span,
                format!(
                    "{} takes {i} and gives {o} operands, here are {n_in} and {n_out}",
                    name(spec.kind)
                ),
                "correct the operands",
            );
            return;
        }
        if spec.kind == SpecKind::Generic && spec.body.is_none() {
            self.error(
                Code::Arity,
                spec.span,
                "a generic `Spec` means what its body does, and has none",
                "give it a body, or name the computation: Move, MatMul, ...",
            );
        }
        for (i, input) in spec.inputs.iter().enumerate() {
            let number = matches!(input, Operand::Number(_));
            let constant =
                matches!(spec.kind, SpecKind::Binary(_)) && spec.input_tensors().next().is_some();
            if number != (spec.kind == SpecKind::Init) && !(number && constant) {
                self.error(
                    Code::Arity,
                    spec.span,
                    format!("operand {} of {} is of the wrong sort", i, name(spec.kind)),
                    "Init takes a number, a BinaryPointwise may take one beside a tensor, every \
                     other spec takes tensors",
                );
                return;
            }
        }
        for &t in &spec.outputs {
            self.written(t, spec.span);
        }
        self.no_mbarriers(id);
        if !self.boxes(id) {
            return;
        }
        self.scalars(id);
        self.shapes(id);
        self.valid(id);
    }

    /// V0218 for the `valid=` of a Move: a number of its elements, whatever the indices are.
    fn valid(&mut self, id: SpecId) {
        let spec = &self.p.specs[id];
        let Some(valid) = spec.valid else { return };
        if spec.body.is_some() {
            let help = "give it to the Moves of the body";
            let message = "`valid=` stands at a Move with a body";
            return self.error(Code::Attribute, spec.span, message, help);
        }
        let Some(Operand::Tensor(source)) = spec.inputs.first() else { return };
        let size = self.p.tensors[*source].concat().size_in(&self.p.arena).ok();
        let Some(n) = size.and_then(Dim::as_const) else { return };
        let (least, most) = self.p.arena.range(valid);
        if least.is_none_or(|l| l < 0) || most.is_none_or(|m| m > n) {
            let message = format!("`valid=` is not known to be from 0 to {n}");
            let help = "bound it: `valid=max(0, min(8, N - k))`, say";
            self.error(Code::Attribute, spec.span, message, help);
        }
    }

    fn scalars(&mut self, id: SpecId) {
        let spec = &self.p.specs[id];
        let s = |t: TensorId| self.p.scalar_of(t);
        let ins: Vec<Scalar> = spec.input_tensors().map(s).collect();
        let Some(&out) = spec.outputs.first() else { return };
        let out = s(out);
        let message = match spec.kind {
            SpecKind::Move | SpecKind::Accumulate(_) | SpecKind::Shfl(_) if ins[0] != out => {
                Some((
                    format!("a {} from {} to {out}", name(spec.kind), ins[0]),
                    "convert with `UnaryPointwise.cast`",
                ))
            }
            SpecKind::MatMul | SpecKind::MatMulSet
                if ins[0] != ins[1] && !multiply_mixed(ins[0], ins[1]) =>
            {
                Some((
                    format!("a MatMul of {} by {}", ins[0], ins[1]),
                    "both factors have one scalar type; integers or floats of up to 8 bits may \
                     differ in sign or format",
                ))
            }
            SpecKind::MatMul | SpecKind::MatMulSet
                if spec.acc.is_some_and(|a| a.is_float() != ins[0].is_float()) =>
            {
                Some((
                    format!("a MatMul of {} accumulates in another kind of number", ins[0]),
                    "accumulate floats in a float type and integers in an integer type",
                ))
            }
            SpecKind::Binary(op)
                if op.compares() && (ins.iter().any(|s| *s != ins[0]) || out != Scalar::Bool) =>
            {
                Some((
                    format!("a {} of {} to {out}", name(spec.kind), listed(&ins)),
                    "all inputs have one scalar type, and the output is `bool`",
                ))
            }
            SpecKind::Select if ins[0] != Scalar::Bool || ins[1] != ins[2] || ins[1] != out => {
                Some((
                    format!("a Select of {}, {} and {} to {out}", ins[0], ins[1], ins[2]),
                    "the first operand is `bool`, the others and the output have one scalar type",
                ))
            }
            SpecKind::Binary(op) if !op.compares() && ins.iter().any(|s| *s != out) => Some((
                format!("a {} of {} to {out}", name(spec.kind), listed(&ins)),
                "all operands have one scalar type; convert with `UnaryPointwise.cast`",
            )),
            SpecKind::Unary(UnaryOp::Cast) if ins[0] == out => {
                Some((format!("a cast from {out} to {out} converts nothing"), "write a `Move`"))
            }
            SpecKind::Unary(op) if op != UnaryOp::Cast && ins[0] != out => Some((
                format!("a {} from {} to {out}", name(spec.kind), ins[0]),
                "both operands have one scalar type; convert with `UnaryPointwise.cast`",
            )),
            SpecKind::Reduction(ReduceOp::And | ReduceOp::Or | ReduceOp::Xor)
                if ins[0].is_float() || out.is_float() =>
            {
                Some((
                    format!("a {} of {}", name(spec.kind), ins[0]),
                    "bits are reduced of integers; floats have sum, prod, min and max",
                ))
            }
            _ => None,
        };
        if let Some((message, help)) = message {
            self.error(Code::ScalarMismatch, spec.span, message, help);
        }
    }

    /// V0208, where operands denote logical tensors. Operands of an atom are compared by its row.
    fn shapes(&mut self, id: SpecId) {
        let spec = &self.p.specs[id];
        let collective = spec.exec.is_some_and(|e| self.p.threads[e.threads].each.is_none());
        let fragments = spec
            .input_tensors()
            .chain(spec.outputs.iter().copied())
            .any(|t| self.p.is_private(t) && collective);
        if spec.body.is_none() && (spec.atom.is_some() || fragments) {
            return;
        }
        let shape = |t: TensorId| self.extents(t);
        let ins: Option<Vec<Vec<i64>>> = spec.input_tensors().map(shape).collect();
        let outs: Option<Vec<Vec<i64>>> = spec.outputs.iter().map(|t| shape(*t)).collect();
        let (Some(ins), Some(outs)) = (ins, outs) else { return };
        let fits = match spec.kind {
            SpecKind::Generic | SpecKind::Init => true,
            SpecKind::MatMul | SpecKind::MatMulSet => matmul_fits(&ins[0], &ins[1], &outs[0]),
            SpecKind::Reduction(_) => self.reduction_fits(id, &ins[0], &outs[0]),
            SpecKind::Move | SpecKind::Binary(_) => {
                ins.iter().all(|i| same_shape(i, &outs[0]) || stands_for(i, &outs[0]))
            }
            _ => ins.iter().all(|i| same_shape(i, &outs[0])),
        };
        if !fits {
            let list: Vec<String> = ins.iter().chain(&outs).map(|s| format!("{s:?}")).collect();
            let mut d = Diagnostic::new(
                Code::ShapeMismatch,
                spec.span,
                format!("the shapes do not fit a {}", name(spec.kind)),
            )
            .label(format!("operands have shapes {}", list.join(", ")));
            d = d.help(match spec.kind {
                SpecKind::MatMul | SpecKind::MatMulSet => {
                    "A[m,k], B[k,n], C[m,n]; B stored N×K is a view with exchanged strides"
                }
                SpecKind::Reduction(_) => {
                    "name the removed modes with `axis=`; the others stay, or become 1"
                }
                SpecKind::Move | SpecKind::Binary(_) => {
                    "all operands have the same extents, mode by mode; an input of as many modes may \
                     have extent 1 where it stands for all"
                }
                _ => "all operands have the same extents, mode by mode",
            });
            self.errors.push(d);
        }
        if spec
            .input_tensors()
            .chain(spec.outputs.iter().copied())
            .any(|t| self.p.buffer_of(t).memory.is_none() && spec.body.is_some())
        {
            self.error(
                Code::MemoryMismatch,
                spec.span,
                "a value without memory is an operand of a spec with a body",
                "give it a memory, or leave the body to the solver",
            );
        }
    }

    /// Constant extents of all modes, outermost level first.
    fn extents(&self, t: TensorId) -> Option<Vec<i64>> {
        let whole = self.p.tensors[t].concat();
        whole
            .modes()
            .iter()
            .map(|m| m.size_in(&self.p.arena).ok().and_then(Dim::as_const))
            .collect()
    }

    fn reduction_fits(&self, id: SpecId, from: &[i64], to: &[i64]) -> bool {
        let Some(axes) = self.p.specs[id].axes() else { return false };
        if axes.iter().any(|a| *a >= from.len()) {
            return false;
        }
        let kept: Vec<i64> =
            (0..from.len()).filter(|i| !axes.contains(i)).map(|i| from[i]).collect();
        let ones: Vec<i64> =
            (0..from.len()).map(|i| if axes.contains(&i) { 1 } else { from[i] }).collect();
        to == kept || to == ones
    }
}

/// Whether factors of two types may be multiplied: small ones of one kind and width, `i4` by `u4`.
fn multiply_mixed(a: Scalar, b: Scalar) -> bool {
    a.bits() <= 8 && a.bits() == b.bits() && a.is_float() == b.is_float()
}

/// A[m,k], B[k,n], C[m,n]; all scalars; or with a leading batch mode.
fn matmul_fits(a: &[i64], b: &[i64], c: &[i64]) -> bool {
    match (a, b, c) {
        ([], [], []) => true,
        ([m, k], [k2, n], [m2, n2]) => m == m2 && n == n2 && k == k2,
        ([l, m, k], [l2, k2, n], [l3, m2, n2]) => {
            l == l2 && l == l3 && m == m2 && n == n2 && k == k2
        }
        _ => false,
    }
}

/// Equal mode by mode, up to modes of extent 1; or one of them one-dimensional and as large.
fn same_shape(a: &[i64], b: &[i64]) -> bool {
    let real = |s: &[i64]| s.iter().copied().filter(|n| *n != 1).collect::<Vec<_>>();
    let (a, b) = (real(a), real(b));
    let size = |s: &[i64]| s.iter().fold(1i64, |p, n| p.saturating_mul(*n));
    a == b || ((a.len() <= 1 || b.len() <= 1) && size(&a) == size(&b))
}

/// Modes of extent 1 stand for all of the output's; the rank is the same.
fn stands_for(a: &[i64], out: &[i64]) -> bool {
    a.len() == out.len() && a.iter().zip(out).all(|(a, n)| a == n || *a == 1)
}

/// `f32 and f16`
fn listed(scalars: &[Scalar]) -> String {
    scalars.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(" and ")
}

/// The spec's name in the text format.
fn name(kind: SpecKind) -> String {
    kind.to_string()
}
