//! Checks that the operands of a spec fit its kind: their number and which of them are literals
//! (V0217), scalar types (V0207), memories (V0206) and extents (V0208), and the `valid=` of a Move,
//! the number of elements that it copies (V0218). It also refuses a generic Spec without meaning
//! and body (V0217), and an Iota outside of `means` blocks (V0221).

use super::extents::Value;
use super::state::{Asked, Verifier};
use crate::ast::{BinaryOp, ExtentRule, Numbers, ReduceOp, SpecKind, UnaryOp};
use crate::diag::{Code, Diagnostic, count};
use crate::expr::Dim;
use crate::program::{Operand, Program, SpecId, TensorId};
use crate::scalar::Scalar;
use std::fmt::Display;

/// The message and help for `minimum` or `maximum` of integers.
pub(crate) fn no_nan(kind: SpecKind, scalar: Scalar) -> (String, &'static str) {
    let help = match kind {
        SpecKind::Binary(BinaryOp::Minimum) | SpecKind::Reduction(ReduceOp::Minimum) => {
            "write `min`, which is the same for integers"
        }
        _ => "write `max`, which is the same for integers",
    };
    (format!("{} takes floats, found {scalar}: it keeps NaN", kind.with_article()), help)
}

/// The message and help for a literal that the type of the tensor beside it cannot represent.
pub(crate) fn no_literal(number: f64, scalar: Scalar) -> (String, &'static str) {
    let help = "write a number that the type can represent, or convert the tensor with `cast`";
    (format!("{scalar} cannot represent {number}"), help)
}

/// The view of an operand with the extents `given` that has the extents `wanted`, as an action.
pub(crate) fn view_that_fits(given: &[String], wanted: &[String]) -> Option<String> {
    let number = |n: &String| n.parse::<i64>().ok();
    match (given, wanted) {
        ([n], [outer @ .., last]) if n == last && !outer.is_empty() => {
            let (ones, zeros) = ("1,".repeat(outer.len()), "0,".repeat(outer.len()));
            Some(format!("view the vector as a row: `.reshape([{ones}{n}]:[{zeros}1])`"))
        }
        ([n], [first, _]) if n == first => {
            Some(format!("view the vector as a column: `.reshape([{n},1]:[1,0])`"))
        }
        ([m, n], [a, b]) if m == b && n == a => {
            Some("exchange the modes of the input: write `.transpose()` after it".to_owned())
        }
        _ if given.len() == wanted.len() => {
            let kept = given.iter().zip(wanted).map(|(n, part)| {
                let fewer = number(part)? < number(n)?;
                (fewer || n == part).then(|| if fewer { format!("0..{part}") } else { "_".into() })
            });
            let kept: Vec<String> = kept.collect::<Option<_>>()?;
            Some(format!("take a part of the input: write `[{}]` after it", kept.join(", ")))
        }
        _ => None,
    }
}

impl Verifier<'_> {
    pub(super) fn operands(&mut self, id: SpecId, asked: &[Asked]) {
        let spec = &self.p.specs[id];
        let (n_in, n_out) = (spec.inputs.len(), spec.outputs.len());
        if let Some(i) = spec.kind.n_inputs()
            && (i, 1) != (n_in, n_out)
        {
            self.errors.push(
                Diagnostic::new(
                    Code::Arity,
                    spec.span,
                    format!(
                        "{} takes {} and 1 output, found {n_in} and {n_out}",
                        name(spec.kind),
                        count(i, "input")
                    ),
                )
                .label(format!("{n_in} before `->`, {n_out} after it"))
                .help(format!("write `{}`", usage(spec.kind))),
            );
            return;
        }
        if spec.kind == SpecKind::Generic && spec.body.is_none() && spec.means.is_none() {
            self.error(
                Code::Arity,
                spec.span,
                "a generic `Spec` has neither a `means` block nor a body",
                "state its meaning, `means { .. }`, or write the computation: Move, MatMul, ...",
            );
        }
        if spec.kind == SpecKind::Iota {
            self.error(
                Code::Placement,
                spec.span,
                "an Iota is allowed in `means` blocks only",
                "let threads fill a tensor from their `indices()`, or pass coordinates as an \
                 input tensor",
            );
        }
        for (i, input) in spec.inputs.iter().enumerate() {
            let number = matches!(input, Operand::Number(_));
            let numbers = spec.kind.numbers();
            let constant = numbers == Numbers::Beside && spec.input_tensors().next().is_some();
            if number != (numbers == Numbers::Alone) && !(number && constant) {
                let (found, wanted) = match (number, numbers) {
                    (true, Numbers::Beside) => ("a number", "at most one number and a tensor"),
                    (true, _) => ("a number", "a tensor"),
                    (false, _) => ("a tensor", "a number"),
                };
                self.errors.push(
                    Diagnostic::new(
                        Code::Arity,
                        spec.span,
                        format!("operand {i} of {} is {found}", name(spec.kind)),
                    )
                    .label(format!("{} takes {wanted} there", name(spec.kind)))
                    .help(match number {
                        true => "fill a tensor with the number, with an Init, and use the tensor"
                            .to_owned(),
                        false => format!("write `{}`", usage(spec.kind)),
                    }),
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
        self.shapes(id, asked);
        self.valid(id);
        self.lane(id);
    }

    /// V0218 for the `valid=` of a Move: at most its number of elements, for all values of indices.
    fn valid(&mut self, id: SpecId) {
        let spec = &self.p.specs[id];
        let Some(valid) = spec.valid else { return };
        if spec.body.is_some() {
            let help = "write it at the Moves of the body";
            let message = "`valid=` is not allowed at a Move with a body";
            return self.error(Code::Attribute, spec.span, message, help);
        }
        let Some(Operand::Tensor(source)) = spec.inputs.first() else { return };
        let size = self.p.tensors[*source].concat().size_in(&self.p.arena).ok();
        let Some(n) = size.and_then(Dim::as_const) else { return };
        let (least, most) = self.p.arena.range(valid);
        if least.is_none_or(|l| l < 0) || most.is_none_or(|m| m > n) {
            let message = format!("cannot prove that `valid=` is between 0 and {n}");
            let help = "bound it, for example `valid=max(0, min(8, N - k))`";
            self.error(Code::Attribute, spec.span, message, help);
        }
    }

    /// V0207 for a literal that the type beside it cannot represent.
    fn literal(&mut self, id: SpecId) {
        let spec = &self.p.specs[id];
        let beside = spec.input_tensors().next().or(spec.outputs.first().copied());
        let Some(scalar) = beside.map(|t| self.p.scalar_of(t)) else { return };
        let wrong = |o: &&Operand| matches!(o, Operand::Number(n) if !scalar.takes(*n));
        if scalar == Scalar::Mbarrier {
            // `no_mbarriers` refuses the spec.
            return;
        }
        if let Some(Operand::Number(n)) = spec.inputs.iter().find(wrong) {
            let (message, help) = no_literal(*n, scalar);
            self.error(Code::ScalarMismatch, spec.span, message, help);
        }
    }

    fn scalars(&mut self, id: SpecId) {
        self.literal(id);
        let spec = &self.p.specs[id];
        let s = |t: TensorId| self.p.scalar_of(t);
        let ins: Vec<Scalar> = spec.input_tensors().map(s).collect();
        let Some(&out) = spec.outputs.first() else { return };
        let out = s(out);
        let message = match spec.kind {
            SpecKind::Move | SpecKind::Accumulate(_) | SpecKind::Shfl(_) if ins[0] != out => {
                Some((
                    format!(
                        "the types do not fit {}: from {} to {out}",
                        spec.kind.with_article(),
                        ins[0]
                    ),
                    "convert with `cast`, or use a tensor of the same type",
                ))
            }
            SpecKind::MatMul | SpecKind::MatMulSet
                if ins[0] != ins[1] && !multiply_mixed(ins[0], ins[1]) =>
            {
                Some((
                    format!("the types do not fit a MatMul: {} by {}", ins[0], ins[1]),
                    "convert one factor with `cast`, such as `%h = cast(%b, f16)`: both must have \
                     one type; only two integers of 8 bits, or two floats of 8 bits, may have \
                     different types",
                ))
            }
            SpecKind::MatMul | SpecKind::MatMulSet
                if spec.acc.is_some_and(|a| a.is_float() != ins[0].is_float()) =>
            {
                Some((
                    format!("a MatMul of {} accumulates in another kind of type", ins[0]),
                    "accumulate floats in a float type and integers in an integer type",
                ))
            }
            SpecKind::Binary(op)
                if op.compares() && (ins.iter().any(|s| *s != ins[0]) || out != Scalar::Bool) =>
            {
                Some((
                    format!(
                        "the types do not fit {}: {} to {out}",
                        spec.kind.with_article(),
                        listed(&ins)
                    ),
                    match out == Scalar::Bool {
                        true => "give all inputs one scalar type, with `cast`",
                        false => "make the output `bool`, and the inputs of one scalar type",
                    },
                ))
            }
            SpecKind::Select if ins[0] != Scalar::Bool || ins[1] != ins[2] || ins[1] != out => {
                Some((
                    format!("a Select of {}, {} and {} to {out}", ins[0], ins[1], ins[2]),
                    match ins[0] == Scalar::Bool {
                        true => "give the other operands and the output one scalar type",
                        false => {
                            "make the first operand `bool`, and the others of the output's type"
                        }
                    },
                ))
            }
            SpecKind::Binary(op) if !op.compares() && ins.iter().any(|s| *s != out) => Some((
                format!(
                    "the types do not fit {}: {} to {out}",
                    spec.kind.with_article(),
                    listed(&ins)
                ),
                "convert with `cast`: all operands must have one scalar type",
            )),
            SpecKind::Unary(UnaryOp::Cast) if ins[0] == out => Some((
                format!("a cast from {out} to {out} converts nothing"),
                "write a `Move`, or `move(..)`",
            )),
            SpecKind::Unary(op) if op != UnaryOp::Cast && ins[0] != out => Some((
                format!(
                    "the types do not fit {}: from {} to {out}",
                    spec.kind.with_article(),
                    ins[0]
                ),
                "convert with `cast`: both operands must have one scalar type",
            )),
            SpecKind::Reduction(op) if op.keeps_nan() && !ins[0].is_float() => {
                Some(no_nan(spec.kind, ins[0]))
            }
            SpecKind::Binary(BinaryOp::Minimum | BinaryOp::Maximum) if !out.is_float() => {
                Some(no_nan(spec.kind, out))
            }
            SpecKind::Reduction(ReduceOp::And | ReduceOp::Or | ReduceOp::Xor)
                if ins[0].is_float() || out.is_float() =>
            {
                Some((
                    format!("{} takes integers, found {}", spec.kind.with_article(), ins[0]),
                    "use sum, prod, min or max: only integers have bitwise reductions",
                ))
            }
            _ => None,
        };
        if let Some((message, help)) = message {
            self.error(Code::ScalarMismatch, spec.span, message, help);
        }
    }

    /// V0208 for operands that are logical tensors. Operands of atoms are compared with the atom
    /// elsewhere.
    fn shapes(&mut self, id: SpecId, asked: &[Asked]) {
        let p = self.p;
        let spec = &p.specs[id];
        let collective = spec.exec.is_some_and(|e| p.threads[e.threads].each.is_none());
        let fragments = spec
            .input_tensors()
            .chain(spec.outputs.iter().copied())
            .any(|t| p.is_private(t) && collective);
        // Operands of one thread, or of a group with private registers, are fragments that the atom
        // defines.
        if spec.body.is_none() && (spec.atom.is_some() && !collective || fragments) {
            return;
        }
        let all = spec.input_tensors().chain(spec.outputs.iter().copied());
        let Some(shapes) = all.map(|t| self.extents(t)).collect::<Option<Vec<_>>>() else { return };
        self.fit(id, &shapes, asked);
        if spec
            .input_tensors()
            .chain(spec.outputs.iter().copied())
            .any(|t| p.buffer_of(t).memory.is_none() && spec.body.is_some())
        {
            self.error(
                Code::MemoryMismatch,
                spec.span,
                "an operand of a spec with a body has no memory",
                "state its memory, or remove the body and let the solver decompose the spec",
            );
        }
    }

    /// V0208 for operands with these extents; the output is last.
    fn fit(&mut self, id: SpecId, shapes: &[Vec<Dim>], asked: &[Asked]) {
        let p = self.p;
        let (kind, axes) = (p.specs[id].kind, p.specs[id].axes());
        if kind.extents() == ExtentRule::Any {
            return;
        }
        let number = |shape: &Vec<Dim>| shape.iter().map(|d| d.as_const()).collect();
        if let Some(numbers) = shapes.iter().map(number).collect::<Option<Vec<Vec<i64>>>>() {
            if !fits(kind, axes.as_deref(), &numbers) {
                self.refuse_numbers(id, &numbers);
            }
            return;
        }
        if fits(kind, axes.as_deref(), &self.unified(shapes, asked)) {
            return;
        }
        let with = |numbers: &[Vec<i64>]| fits(kind, axes.as_deref(), numbers);
        let values = self.misfit(shapes, asked, &with);
        let pairs = pairs(kind, axes.as_deref(), shapes);
        let value = |v| values.as_ref()?.iter().find(|(of, _)| *of == v).map(|(_, n)| *n);
        let differ = |(_, x, y): &&(_, Dim, Dim)| match &values {
            Some(_) => p.arena.eval(*x, &value).ok() != p.arena.eval(*y, &value).ok(),
            None => self.unsaid(*x, *y, asked),
        };
        let pair = pairs.iter().find(differ).copied();
        if values.is_some() || pair.is_some() && kind.is_product() {
            self.refuse_symbols(id, shapes, values.as_deref(), pair);
        }
    }

    /// Whether these are two symbols that are not known to be equal.
    fn unsaid(&mut self, x: Dim, y: Dim, asked: &[Asked]) -> bool {
        let is_symbol = |d| self.p.arena.var_id(d).is_some_and(|v| self.p.symbols.contains(&v));
        is_symbol(x) && is_symbol(y) && !self.is_equal(x, y, asked) && !self.has_decided_enough()
    }

    /// The shapes of inputs and outputs by name: `%A is [64,32]; the output %B is [64,32]`.
    fn shapes_text(&self, id: SpecId, shapes: &[String]) -> String {
        let spec = &self.p.specs[id];
        let tensors = spec.input_tensors().chain(spec.outputs.iter().copied());
        let is = |(t, shape): (TensorId, &String)| format!("{} is {shape}", self.p.tensor_name(t));
        let all: Vec<String> = tensors.zip(shapes).map(is).collect();
        match all.split_last() {
            Some((output, inputs)) if !inputs.is_empty() => {
                format!("{}; the output {output}", inputs.join(", "))
            }
            _ => all.join(", "),
        }
    }

    fn refuse_numbers(&mut self, id: SpecId, shapes: &[Vec<i64>]) {
        let spec = &self.p.specs[id];
        let list: Vec<String> = shapes.iter().map(|s| bracketed(&texts(self.p, s))).collect();
        let help = match (spec.kind.extents(), shapes) {
            (ExtentRule::Product, [a, b, c]) => matmul_help(self.p, a, b, c),
            (ExtentRule::Reduced, [from, .., to]) => self.reduction_help(id, from, to),
            (rule, _) => elementwise_help(self.p, rule, shapes),
        };
        self.errors.push(
            Diagnostic::new(
                Code::ShapeMismatch,
                spec.span,
                format!("the shapes do not fit {}", spec.kind.with_article()),
            )
            .label(self.shapes_text(id, &list))
            .help(help),
        );
    }

    /// Refuses extents over symbols, with values for which they do not fit, and two extents that
    /// differ.
    fn refuse_symbols(
        &mut self,
        id: SpecId,
        shapes: &[Vec<Dim>],
        values: Option<&[Value]>,
        pair: Option<(&'static str, Dim, Dim)>,
    ) {
        let p = self.p;
        let spec = &p.specs[id];
        let text = |d: Dim| p.arena.display(d).to_string();
        let all: Vec<String> = shapes.iter().map(|s| bracketed(&texts(p, s))).collect();
        let found = match pair {
            Some((what, x, y)) if !what.is_empty() => {
                format!("{what} is {} and {}", text(x), text(y))
            }
            _ => self.shapes_text(id, &all),
        };
        let about = pair.map(|(_, x, y)| [p.arena.vars_of(x), p.arena.vars_of(y)].concat());
        let example = values.map_or(String::new(), |values| {
            let of_pair = |(v, _): &&Value| about.as_ref().is_none_or(|vars| vars.contains(v));
            let one = |(v, n): &Value| format!("{} = {n}", p.arena.var_info(*v).name);
            let values: Vec<String> = values.iter().filter(of_pair).map(one).collect();
            format!("; they differ, for example, if {}", values.join(", "))
        });
        let fact = pair.and_then(|(_, x, y)| p.may_state_equal(x, y));
        let state = fact.map_or(String::new(), |fact| format!("state `where {fact}`, or "));
        let help = match (spec.kind.extents(), shapes) {
            (ExtentRule::Product, [a, b, _]) => match (&a[..], &b[..]) {
                ([.., k], [.., k2, n]) if k2 != k && n == k => exchanged(&text(*k), &text(*k2)),
                _ => format!("{state}make A[m,k], B[k,n] and C[m,n] agree"),
            },
            (ExtentRule::Reduced, [from, .., to]) => {
                format!("{state}{}", self.reduction_help(id, from, to))
            }
            (rule, _) => format!("{state}{}", elementwise_help(p, rule, shapes)),
        };
        self.errors.push(
            Diagnostic::new(
                Code::ShapeMismatch,
                spec.span,
                format!("the shapes do not fit {}", spec.kind.with_article()),
            )
            .label(format!("{found}{example}"))
            .help(help),
        );
    }

    /// The extents of all modes, outermost level first.
    fn extents(&self, t: TensorId) -> Option<Vec<Dim>> {
        let modes = self.p.tensors[t].concat().modes();
        modes.iter().map(|m| m.size_in(&self.p.arena).ok()).collect()
    }

    fn reduction_help<E: Extent>(&self, id: SpecId, from: &[E], to: &[E]) -> String {
        let axes = self.p.specs[id].axes().unwrap_or_default();
        if axes.is_empty() || axes.iter().any(|a| *a >= from.len()) {
            let last = from.len().saturating_sub(1);
            return format!("name the modes to remove, 0 to {last}, with `axis=`");
        }
        let show = |shape: Vec<E>| bracketed(&texts(self.p, &shape));
        let (kept, ones) = reduced(from, &axes);
        let out = self.p.specs[id].outputs.first().copied();
        let name = out.map_or("the output".to_owned(), |t| self.p.tensor_name(t));
        let other = (0..from.len()).find(|axis| {
            let (kept, ones) = reduced(from, &[*axis]);
            to == kept || to == ones
        });
        let axis = other.map_or(String::new(), |axis| format!(", or write `axis={axis}`"));
        format!("give {name} the extents {} or {}{axis}", show(kept), show(ones))
    }
}

/// An extent: a number, or an expression over symbols.
trait Extent: Copy + PartialEq {
    const ONE: Self;
    /// The number of elements; `None` if unknown.
    fn size(extents: &[Self]) -> Option<i64>;
    /// The extent as text.
    fn shown(self, program: &Program) -> String;
}

impl Extent for i64 {
    const ONE: i64 = 1;
    fn size(extents: &[i64]) -> Option<i64> {
        Some(extents.iter().fold(1i64, |p, n| p.saturating_mul(*n)))
    }
    fn shown(self, _: &Program) -> String {
        self.to_string()
    }
}

impl Extent for Dim {
    const ONE: Dim = Dim::Const(1);
    fn size(_: &[Dim]) -> Option<i64> {
        None
    }
    fn shown(self, program: &Program) -> String {
        program.arena.display(self)
    }
}

/// Whether operands fit a spec; the last shape is the output.
fn fits<E: Extent>(kind: SpecKind, axes: Option<&[usize]>, shapes: &[Vec<E>]) -> bool {
    let Some((out, ins)) = shapes.split_last() else { return true };
    let alike = |i: &Vec<E>| same_shape(i, out);
    match (kind.extents(), ins) {
        (ExtentRule::Any, _) => true,
        (ExtentRule::Product, [a, b]) => matmul_fits(a, b, out),
        (ExtentRule::Product, _) => false,
        (ExtentRule::Reduced, _) => {
            let fits = |from: &Vec<E>| reduction_fits(from, axes?, out);
            ins.first().and_then(fits) == Some(true)
        }
        (ExtentRule::Broadcast, _) => ins.iter().all(|i| alike(i) || stands_for(i, out)),
        (ExtentRule::Same | ExtentRule::Counted, _) => ins.iter().all(alike),
    }
}

/// The pairs of extents that must be equal, if the ranks fit. The pairs of a MatMul have names.
fn pairs(
    kind: SpecKind,
    axes: Option<&[usize]>,
    shapes: &[Vec<Dim>],
) -> Vec<(&'static str, Dim, Dim)> {
    let Some((out, ins)) = shapes.split_last() else { return vec![] };
    let along = |from: &[Dim]| {
        let same = from.len() == out.len();
        from.iter().zip(out).filter(|_| same).map(|(x, y)| ("", *x, *y)).collect::<Vec<_>>()
    };
    match (kind.extents(), ins) {
        (ExtentRule::Product, [a, b]) => match (&a[..], &b[..], &out[..]) {
            ([.., m, k], [.., k2, n], [.., m2, n2]) => {
                vec![("M", *m, *m2), ("K", *k, *k2), ("N", *n, *n2)]
            }
            _ => vec![],
        },
        (ExtentRule::Reduced, [from]) => match axes {
            Some(axes) => {
                let (kept, ones) = reduced(from, axes);
                [along(&kept), along(&ones)].concat()
            }
            None => vec![],
        },
        _ => ins.iter().flat_map(|from| along(from)).filter(|p| p.1 != Dim::ONE).collect(),
    }
}

/// The extents without the axes, and the extents with 1 at the axes.
fn reduced<E: Extent>(from: &[E], axes: &[usize]) -> (Vec<E>, Vec<E>) {
    let modes = || from.iter().enumerate();
    let kept = modes().filter(|(i, _)| !axes.contains(i)).map(|(_, n)| *n).collect();
    let ones = modes().map(|(i, n)| if axes.contains(&i) { E::ONE } else { *n }).collect();
    (kept, ones)
}

/// Whether the output lacks the reduced modes, or has extent 1 there; `None` if an axis is not a
/// mode.
fn reduction_fits<E: Extent>(from: &[E], axes: &[usize], to: &[E]) -> Option<bool> {
    if axes.iter().any(|a| *a >= from.len()) {
        return None;
    }
    let (kept, ones) = reduced(from, axes);
    Some(to == kept || to == ones)
}

/// Whether a MatMul takes factors of two different types: up to 8 bits, of equal width, both
/// integers or both floats; for example, `i4` and `u4`.
fn multiply_mixed(a: Scalar, b: Scalar) -> bool {
    a.bits() <= 8 && a.bits() == b.bits() && a.is_float() == b.is_float()
}

/// Whether the shapes are A[m,k], B[k,n], C[m,n], also with equal leading batches, or all scalars.
fn matmul_fits<E: Extent>(a: &[E], b: &[E], c: &[E]) -> bool {
    match (a, b, c) {
        ([], [], []) => true,
        ([l @ .., m, k], [l2 @ .., k2, n], [l3 @ .., m2, n2]) => {
            l == l2 && l == l3 && m == m2 && n == n2 && k == k2
        }
        _ => false,
    }
}

/// The help for a second factor that is declared in the order of its storage.
fn exchanged(k: &dyn Display, n: &dyn Display) -> String {
    format!(
        "view B as [{k},{n}]: if B is stored as N×K, exchange its strides, `[({k},{n}):(1,{k})]`"
    )
}

fn matmul_help(program: &Program, a: &[i64], b: &[i64], c: &[i64]) -> String {
    let (a, b, c) = match (a, b, c) {
        (&[m, k], &[n2, k2], &[m2, n]) if (m, k, n) == (m2, k2, n2) => {
            return exchanged(&k, &n);
        }
        all => all,
    };
    if a.len() > 2
        && a.len() == b.len()
        && (&a[..a.len() - 2], a.len()) != (&b[..b.len() - 2], c.len())
    {
        return "give all operands the same batches, or write a `Spec` that means `matmul(..)`, \
                which broadcasts batches of extent 1"
            .to_owned();
    }
    let [a, b, c] = [a, b, c].map(|s| bracketed(&texts(program, s)));
    format!("make A[m,k], B[k,n] and C[m,n] agree: they are {a}, {b} and {c}")
}

/// The extents as texts.
fn texts<E: Extent>(program: &Program, shape: &[E]) -> Vec<String> {
    shape.iter().map(|n| n.shown(program)).collect()
}

/// Extents as a type has them.
fn bracketed(extents: &[String]) -> String {
    format!("[{}]", extents.join(","))
}

/// The help for operands that do not fit elementwise; the last shape is the output.
fn elementwise_help<E: Extent>(program: &Program, rule: ExtentRule, shapes: &[Vec<E>]) -> String {
    let Some((out, inputs)) = shapes.split_last() else { return String::new() };
    let misfit = inputs.iter().find(|i| !same_shape(i, out) && !stands_for(i, out));
    let (misfit, wanted) = (misfit.map(|i| texts(program, i)), texts(program, out));
    let view = misfit.and_then(|given| view_that_fits(&given, &wanted));
    let out = bracketed(&wanted);
    match (rule, view) {
        (_, Some(view)) => format!("{view}; or give all operands the extents {out}"),
        (ExtentRule::Broadcast, None) => format!(
            "give the inputs the extents {out}, or extent 1 to broadcast a mode; a tensor without \
             modes is broadcast, too"
        ),
        _ => format!("give all operands the same extents, such as {out}"),
    }
}

/// An example of a spec of this kind, without executor.
fn usage(kind: SpecKind) -> String {
    format!("{kind} {}", kind.operands())
}

/// Whether shapes are equal except for modes of extent 1, or one of them is one-dimensional with
/// the same number of elements.
fn same_shape<E: Extent>(a: &[E], b: &[E]) -> bool {
    let real = |s: &[E]| s.iter().copied().filter(|n| *n != E::ONE).collect::<Vec<_>>();
    let (a, b) = (real(a), real(b));
    let as_large = || E::size(&a).is_some_and(|n| E::size(&b) == Some(n));
    a == b || ((a.len() <= 1 || b.len() <= 1) && as_large())
}

/// Whether an input is broadcast: equal rank with some extents 1, or no modes.
fn stands_for<E: Extent>(a: &[E], out: &[E]) -> bool {
    a.is_empty() || a.len() == out.len() && a.iter().zip(out).all(|(a, n)| a == n || *a == E::ONE)
}

/// A list as text: `f32 and f16`.
fn listed(scalars: &[Scalar]) -> String {
    scalars.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(" and ")
}

/// The name of the spec in the text format.
fn name(kind: SpecKind) -> String {
    kind.to_string()
}
