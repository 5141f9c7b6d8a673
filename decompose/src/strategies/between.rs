//! Divides a spec into several kernels ([`cut`]): two with a result between them, for example one
//! that is read as another shape, or one for each output ([`of_each_output`]).

use super::graph::products;
use super::write::number;
use crate::names::{Names, given};
use crate::origins;
use carbyne_ir::ast::visit::{Of, Part, parts};
use carbyne_ir::ast::{
    Block, Dims, Elements, Key, Name, Operand, Spec, SpecKind, Stmt, StmtKind, TensorType,
    TupleExpr, View,
};
use carbyne_ir::expr::Dim;
use carbyne_ir::program::{Means, MeansInput, MeansOp, MeansStep, Program, SpecId};
use carbyne_ir::scalar::{Memory, Scalar};
use carbyne_ir::span::Span;
use std::collections::BTreeSet;

/// The declaration of a tensor and two kernels: the first computes `value` of the `means` block,
/// the second the rest. None if the spec says how it is executed, if the value is no result or an
/// output, and if its extents, or the bounds of coordinates, are no constants.
pub(super) fn kernels(
    program: &Program,
    id: SpecId,
    stmt: &Stmt,
    value: usize,
    names: &mut Names,
) -> Option<Vec<Stmt>> {
    let StmtKind::Spec(spec) = &stmt.kind else { return None };
    let (means, block) = (program.specs[id].means.as_ref()?, spec.means.as_ref()?);
    if !is_free(spec) {
        return None;
    }
    let seen = means.values.get(value).filter(|v| v.operand.is_none())?;
    let name = seen.name.as_ref()?;
    let extents: Option<Vec<i64>> = seen.extents.iter().map(|e| e.as_const()).collect();
    let modes = extents?.iter().map(|n| TupleExpr::Leaf(number(*n))).collect();
    // A rounded result is stored in the type that it is rounded to.
    let mut rounded = means.steps.iter().zip(means.roundings());
    let rounded = rounded.find(|(s, _)| s.output == value).and_then(|(_, to)| to);
    let of_f64 = means.values.iter().any(|v| v.operand.is_some() && v.scalar == Scalar::F64);
    let scalar = match (rounded, seen.scalar) {
        (Some(to), _) => to,
        (None, Scalar::F64) if !of_f64 => Scalar::F32,
        (None, scalar) => scalar,
    };
    let between = names.fresh_outside(name);

    let outputs: BTreeSet<&String> = spec.outputs.iter().map(|o| &o.base.text).collect();
    let (mut first, read) = needed(&block.stmts, [name].into());
    if first.iter().filter_map(given).any(|name| outputs.contains(name)) {
        return None;
    }
    let store = Spec {
        inputs: vec![Operand::View(View::of(name))],
        outputs: vec![View::of(&between)],
        ..Spec::new(SpecKind::Move)
    };
    first.push(Stmt::new(StmtKind::Spec(store)));
    // The old value of an output.
    let old = spec.outputs.iter().filter(|o| read.contains(&o.base.text)).cloned().collect();
    let first = part(spec, names, "first", (first, &read), old, vec![View::of(&between)]);

    let view = View::of(&between);
    let alias = Stmt::new(StmtKind::DataDef { name: Name::new(name), ty: None, view });
    let stmts = block.stmts.iter();
    let stmts: Vec<Stmt> =
        stmts.map(|s| if given(s) == Some(name) { &alias } else { s }).cloned().collect();
    let (rest, read) = needed(&stmts, outputs);
    let more = vec![View::of(&between)];
    let rest = part(spec, names, "rest", (rest, &read), more, spec.outputs.clone());

    let ty = TensorType {
        levels: vec![Dims { modes, strides: None, span: Span::default() }],
        scalar,
        memory: Some(Memory::Gl),
        attrs: vec![],
        span: Span::default(),
    };
    let known = program.range_of(means, value);
    let is_integer = scalar.int_range().is_some();
    let range = match is_integer && known != (None, None) && finds_elements(means, value) {
        true => Some(bounds(known, scalar)?),
        false => None,
    };
    let declared = StmtKind::DataDecl { name: Name::new(between), ty, range };
    let mut out = vec![Stmt::new(declared), first, rest];
    keep_unread(spec, &mut out[1..]);
    out[0].leading.clone_from(&stmt.leading);
    origins::inherit(&mut out, stmt.id, spec.span);
    Some(out)
}

/// One kernel for each output. None if the spec says how it is executed, and if an output depends
/// on another one.
pub(super) fn of_each_output(
    program: &Program,
    id: SpecId,
    stmt: &Stmt,
    names: &mut Names,
) -> Option<Vec<Stmt>> {
    let StmtKind::Spec(spec) = &stmt.kind else { return None };
    let (means, block) = (program.specs[id].means.as_ref()?, spec.means.as_ref()?);
    let several = spec.outputs.len() > 1 && means.steps.iter().filter_map(reduced).count() > 1;
    if !several || !is_free(spec) {
        return None;
    }
    let outputs: BTreeSet<&String> = spec.outputs.iter().map(|o| &o.base.text).collect();
    let mut out = vec![];
    for output in &spec.outputs {
        let name = &output.base.text;
        let (stmts, read) = needed(&block.stmts, [name].into());
        // The new value of another output, or its old one, which another kernel may have replaced.
        let mut needs = stmts.iter().filter_map(given).chain(&read);
        if needs.any(|other| other != name && outputs.contains(other)) {
            return None;
        }
        out.push(part(spec, names, name, (stmts, &read), vec![], vec![output.clone()]));
    }
    keep_unread(spec, &mut out);
    out[0].leading.clone_from(&stmt.leading);
    origins::inherit(&mut out, stmt.id, spec.span);
    Some(out)
}

/// A kernel that computes some statements of a spec. Its inputs are those of the spec that they
/// read, and `more`.
fn part(
    spec: &Spec,
    names: &mut Names,
    what: &str,
    (stmts, read): (Vec<Stmt>, &BTreeSet<String>),
    more: Vec<View>,
    outputs: Vec<View>,
) -> Stmt {
    let base = spec.name.as_ref().map_or("kernel", |n| &n.text);
    let is_read = |o: &&Operand| matches!(o, Operand::View(v) if read.contains(&v.base.text));
    let own = spec.inputs.iter().filter(is_read).cloned();
    let kernel = Spec {
        name: Some(Name::new(names.fresh_kernel(&format!("{base}_{what}")))),
        means: Some(Block { stmts, footer: vec![] }),
        attrs: spec.attrs.clone(),
        inputs: own.chain(more.into_iter().map(Operand::View)).collect(),
        outputs,
        ..Spec::new(SpecKind::Generic)
    };
    let mut stmt = Stmt::new(StmtKind::Spec(kernel));
    stmt.blank_above = true;
    stmt
}

/// Gives the first kernel the inputs that none of them reads, as a caller passes these, too.
fn keep_unread(spec: &Spec, kernels: &mut [Stmt]) {
    let of = |stmt: &Stmt| match &stmt.kind {
        StmtKind::Spec(kernel) => kernel.inputs.clone(),
        _ => vec![],
    };
    let is_passed: Vec<Operand> = kernels.iter().flat_map(of).collect();
    let unread = spec.inputs.iter().filter(|o| !is_passed.contains(o)).cloned();
    if let Some(Stmt { kind: StmtKind::Spec(first), .. }) = kernels.first_mut() {
        first.inputs.extend(unread);
    }
}

/// The modes that a step reduces.
pub(super) fn reduced(step: &MeansStep) -> Option<&Vec<usize>> {
    match &step.op {
        MeansOp::Spec { kind: SpecKind::Reduction(_), axes, .. } => Some(axes),
        _ => None,
    }
}

/// Several kernels for a spec that no strategy means: cut at a reduction that another one along
/// other modes reads, at one that is broadcast again, or by outputs.
pub(super) fn cut(
    program: &Program,
    id: SpecId,
    stmt: &Stmt,
    names: &mut Names,
) -> Option<Vec<Stmt>> {
    let means = program.specs[id].means.as_ref();
    let value = means.and_then(|means| crossed(means).or_else(|| broadcast(program, id, means)));
    let at_value = value.and_then(|value| kernels(program, id, stmt, value, names));
    at_value.or_else(|| of_each_output(program, id, stmt, names))
}

/// The value of the first reduction on which a reduction along other modes depends: nothing before
/// it has to be cut.
fn crossed(means: &Means) -> Option<usize> {
    let mut reductions = means.steps.iter().filter_map(|s| Some((s.output, reduced(s)?)));
    let crosses = |(value, own): &(usize, &Vec<usize>)| {
        behind(means, *value).into_iter().filter_map(reduced).any(|other| other != *own)
    };
    reductions.find(crosses).map(|(value, _)| value)
}

/// The value of the first reduction that is broadcast again, as the maximum of a softmax is over
/// its row. None if there is a product, which both kernels would compute.
fn broadcast(program: &Program, id: SpecId, means: &Means) -> Option<usize> {
    let extents = |value: usize| means.values.get(value).map(|v| &v.extents);
    let mut reductions = means.steps.iter().filter(|s| reduced(s).is_some()).map(|s| s.output);
    let is_broadcast = |value: &usize| {
        behind(means, *value).into_iter().any(|s| extents(s.output) != extents(*value))
    };
    (products(program, id) == 0).then(|| reductions.find(is_broadcast)).flatten()
}

/// The steps that depend on a value.
fn behind(means: &Means, value: usize) -> Vec<&MeansStep> {
    let mut reached = BTreeSet::from([value]);
    let mut depends = |s: &&MeansStep| {
        let reads =
            |input: &MeansInput| matches!(input, MeansInput::Value(v) if reached.contains(v));
        let depends = s.inputs.iter().any(reads);
        if depends {
            reached.insert(s.output);
        }
        depends
    };
    means.steps.iter().filter(|s| depends(s)).collect()
}

/// Whether a gather takes its coordinates from a value, or computes them from it.
fn finds_elements(means: &Means, value: usize) -> bool {
    let behind = behind(means, value);
    let depends = |v: usize| v == value || behind.iter().any(|s| s.output == v);
    behind.iter().any(|s| match (&s.op, s.inputs.get(1)) {
        (MeansOp::Gather { .. }, Some(MeansInput::Value(index))) => depends(*index),
        _ => false,
    })
}

/// The known bounds of integers, for their declaration. The type gives a missing bound. None if a
/// bound is no constant.
fn bounds((lo, hi): (Option<Dim>, Option<Dim>), scalar: Scalar) -> Option<Elements> {
    let (least, most) = scalar.int_range()?;
    let bound = |known: Option<Dim>, of_type: i128| match known {
        Some(known) => known.as_const(),
        None => i64::try_from(of_type).ok(),
    };
    Some(Elements::Within(number(bound(lo, least)?), number(bound(hi, most + 1)?)))
}

/// Whether a spec leaves to us how it is executed.
fn is_free(spec: &Spec) -> bool {
    spec.exec.is_none() && spec.attrs.iter().all(|a| matches!(a.key, Some(Key::Math | Key::Loc)))
}

/// The statements that some values need, and what they read. Constants stay.
fn needed(stmts: &[Stmt], of: BTreeSet<&String>) -> (Vec<Stmt>, BTreeSet<String>) {
    let mut read: BTreeSet<String> = of.into_iter().cloned().collect();
    let mut out = vec![];
    for stmt in stmts.iter().rev() {
        if let Some(name) = given(stmt) {
            if !read.remove(name) {
                continue;
            }
            let mut own = 0;
            parts(stmt, &mut |part| match part {
                Part::View(view, Of::Data) if view.base.text == *name => own += 1,
                Part::View(view, Of::Data) => drop(read.insert(view.base.text.clone())),
                Part::Referred(of, Of::Data) => drop(read.insert(of.text.clone())),
                _ => {}
            });
            // A spec may read the old value under the name that it gives to its result.
            if own > 1 {
                read.insert(name.clone());
            }
        }
        out.push(stmt.clone());
    }
    out.reverse();
    (out, read)
}
