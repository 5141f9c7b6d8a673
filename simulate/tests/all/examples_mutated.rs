//! Tests that errors in nine examples, whose kernels are generic specs, are found: each statement
//! of their bodies is removed or changed. Parser, verifier or simulator must report each mutation
//! that is not listed as one without an effect.

use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::ast::{
    BinaryOp, Expr, Module, Number, Operand, ReduceOp, Spec, SpecKind, Stmt, StmtKind, UnaryOp,
    View, ViewOp,
};
use carbyne_ir::program::Program;
use carbyne_ir::{resolve, text, verify};
use carbyne_simulate::num::encode;
use carbyne_simulate::{Array, Options, simulate};
use rayon::prelude::*;

macro_rules! examples {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../examples/", $name, ".cby")))),*]
    };
}

/// Every example whose kernel is a generic spec.
const EXAMPLES: [(&str, &str); 9] = examples![
    "tile/attention",
    "gemm_bias_relu",
    "tile/hexcute_fig9_gemms",
    "tile/int4_gemm",
    "tile/layernorm",
    "moe_gemm",
    "tile/rearrange",
    "tile/rmsnorm",
    "softmax",
];

/// Mutations without an effect: example, mutation, and reason. At most one in twenty of an
/// example's mutations, and never one of a MatMul, of a Reduction, or of a statement that stores a
/// result.
const NEUTRAL: [(&str, &str, &str); 2] = [
    ("tile/attention", "Init of %sum with 1", "the first step multiplies it by e^-inf, which is 0"),
    ("tile/attention", "Init of %o with 1", "the first step multiplies it by e^-inf, which is 0"),
];

/// The usual inputs, and inputs a thousand times as large, for algorithms that keep numbers small.
fn inputs(program: &Program) -> [Options; 2] {
    let wide = program.params.iter().filter_map(|b| {
        let buffer = &program.buffers[*b];
        let shape: Vec<u64> = program.tensors[buffer.tensor]
            .concat()
            .modes()
            .iter()
            .map(|m| m.to_fixed().unwrap().size() as u64)
            .collect();
        let read = program
            .kernels
            .iter()
            .any(|k| program.specs[*k].input_tensors().any(|t| program.tensors[t].buffer == *b));
        if !read || !buffer.scalar.is_float() {
            return None;
        }
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let value = |_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let unit = (state >> 33) as f64 / (1u64 << 30) as f64 - 1.0;
            encode(buffer.scalar, 1000.0 * unit)
        };
        let values = (0..shape.iter().product()).map(value).collect();
        Some((buffer.name.clone(), Array { scalar: buffer.scalar, shape, values }))
    });
    [Options::default(), Options { arrays: wide.collect(), ..Options::default() }]
}

/// Whether any stage reports an error of the module.
fn is_reported(module: &Module) -> bool {
    let src = text::print(module);
    let Ok(module) = text::parse(&src) else { return true };
    let Ok(program) = resolve::resolve(&module, &src) else { return true };
    if !verify::verify(&program).is_empty() {
        return true;
    }
    let table = AtomTable::new(Arch::Sm80);
    inputs(&program).iter().any(|options| simulate(&program, &table, options).is_err())
}

/// Visits the statements of kernels' bodies, with their number. `edit` may change the list that
/// contains the statement.
fn visit(
    stmts: &mut Vec<Stmt>,
    number: &mut usize,
    at: usize,
    edit: &mut dyn FnMut(&mut Vec<Stmt>, usize),
) {
    let mut i = 0;
    while i < stmts.len() {
        if *number == at {
            *number += 1;
            edit(stmts, i);
            return;
        }
        *number += 1;
        for block in stmts[i].kind.bodies_mut() {
            visit(&mut block.stmts, number, at, edit);
            if *number > at {
                return;
            }
        }
        i += 1;
    }
}

/// The statement with a number; none after the last statement.
fn statement(module: &Module, at: usize) -> Option<Stmt> {
    let (mut copy, mut found) = (module.clone(), None);
    edited(&mut copy, at, &mut |stmts, i| found = Some(stmts[i].clone()));
    found
}

fn edited(module: &mut Module, at: usize, edit: &mut dyn FnMut(&mut Vec<Stmt>, usize)) {
    let mut number = 0;
    for item in &mut module.items {
        if let StmtKind::Spec(Spec { body: Some(body), .. }) = &mut item.kind {
            visit(&mut body.stmts, &mut number, at, edit);
        }
    }
}

/// The mutations of a statement, each with its name; none to remove the statement.
fn changes(stmt: &Stmt) -> Vec<(String, Option<Vec<Stmt>>)> {
    let with = |kind: StmtKind| Some(vec![Stmt::new(kind)]);
    let mut out = vec![("left out".to_owned(), None)];
    match &stmt.kind {
        StmtKind::Spec(spec) if spec.body.is_none() => {
            let changed = |edit: &dyn Fn(&mut Spec)| {
                let mut spec = spec.clone();
                edit(&mut spec);
                with(StmtKind::Spec(spec))
            };
            let output = spec.outputs.first().map(|v| &v.base.text);
            let reads_output = spec.inputs.iter().any(|o| match o {
                Operand::View(v) => Some(&v.base.text) == output,
                Operand::Number(_) | Operand::Value(_) => false,
            });
            // Executing these twice changes nothing.
            let again = matches!(
                spec.kind,
                SpecKind::Binary(BinaryOp::Max | BinaryOp::Min)
                    | SpecKind::Unary(UnaryOp::Relu | UnaryOp::Abs)
            );
            if (reads_output && !again) || spec.kind == SpecKind::MatMul {
                out.push(("twice".to_owned(), Some(vec![stmt.clone(), stmt.clone()])));
            }
            for kind in others(spec.kind) {
                out.push((format!("as {kind}"), changed(&|s| s.kind = kind)));
            }
            let ordered = matches!(spec.kind, SpecKind::Binary(BinaryOp::Sub | BinaryOp::Div));
            if ordered && spec.inputs.iter().all(|o| matches!(o, Operand::View(_))) {
                out.push((
                    "with its operands exchanged".to_owned(),
                    changed(&|s| s.inputs.reverse()),
                ));
            }
            for (i, operand) in spec.inputs.iter().enumerate() {
                let Operand::Number(n) = operand else { continue };
                let value: f64 = n.text.parse().unwrap();
                let text = if value == 0.0 { "1".to_owned() } else { format!("{}", value * 1.001) };
                let edit = |s: &mut Spec| {
                    s.inputs[i] = Operand::Number(Number { text: text.clone(), span: n.span });
                };
                out.push((format!("with {text}"), changed(&edit)));
            }
            let views = spec.inputs.iter().filter_map(|o| match o {
                Operand::View(v) => Some(v),
                Operand::Number(_) | Operand::Value(_) => None,
            });
            for (v, view) in views.chain(&spec.outputs).enumerate() {
                for index in indices(view) {
                    let edit = |s: &mut Spec| {
                        let views = s.inputs.iter_mut().filter_map(|o| match o {
                            Operand::View(v) => Some(v),
                            Operand::Number(_) | Operand::Value(_) => None,
                        });
                        let mut views: Vec<&mut View> = views.chain(&mut s.outputs).collect();
                        zero(views[v], index);
                    };
                    out.push((format!("with index {index} of operand {v} as 0"), changed(&edit)));
                }
            }
        }
        StmtKind::For { var, start, end, also, step, unroll, stages, body } => {
            let (one, var, step, unroll, body) =
                (Expr::int(1), var.clone(), step.clone(), *unroll, body.clone());
            let changed = |start: Expr, end: Expr| {
                let (var, step, body) = (var.clone(), step.clone(), body.clone());
                let (also, stages) = (also.clone(), stages.clone());
                with(StmtKind::For { var, start, end, also, step, unroll, stages, body })
            };
            let bin = carbyne_ir::ast::BinOp::Sub;
            out.push(("from 1".to_owned(), changed(one.clone(), end.clone())));
            let less = Expr::bin(bin, end.clone(), one);
            out.push(("one turn less".to_owned(), changed(start.clone(), less)));
        }
        _ => {}
    }
    out
}

/// Other kinds of specs with an equal number of operands.
fn others(kind: SpecKind) -> Vec<SpecKind> {
    use SpecKind::{Binary, MatMul, MatMulSet, Reduction, Unary};
    match kind {
        Binary(BinaryOp::Add) => vec![Binary(BinaryOp::Sub), Binary(BinaryOp::Mul)],
        Binary(BinaryOp::Sub) => vec![Binary(BinaryOp::Add)],
        Binary(BinaryOp::Mul) => vec![Binary(BinaryOp::Div), Binary(BinaryOp::Add)],
        Binary(BinaryOp::Div) => vec![Binary(BinaryOp::Mul)],
        Binary(BinaryOp::Max) => vec![Binary(BinaryOp::Min)],
        Binary(BinaryOp::Min) => vec![Binary(BinaryOp::Max)],
        Unary(UnaryOp::Exp) => vec![Unary(UnaryOp::Exp2), Unary(UnaryOp::Abs)],
        Unary(UnaryOp::Rsqrt) => vec![Unary(UnaryOp::Sqrt), Unary(UnaryOp::Rcp)],
        Unary(UnaryOp::Relu) => {
            vec![Unary(UnaryOp::Neg), Unary(UnaryOp::Abs), Unary(UnaryOp::Gelu)]
        }
        Reduction(ReduceOp::Sum) => vec![Reduction(ReduceOp::Max), Reduction(ReduceOp::Prod)],
        Reduction(ReduceOp::Max) => vec![Reduction(ReduceOp::Min), Reduction(ReduceOp::Sum)],
        MatMul => vec![MatMulSet],
        MatMulSet => vec![MatMul],
        _ => vec![],
    }
}

/// The positions of the indices of a view that are not constant.
fn indices(view: &View) -> Vec<usize> {
    let all = view.ops.iter().filter_map(|op| match op {
        ViewOp::Index(list) => Some(list),
        _ => None,
    });
    let named = |e: &Option<Expr>| e.as_ref().is_some_and(|e| *e != Expr::int(0));
    let list = all.flatten().enumerate();
    list.filter(|(_, e)| {
        named(e) && !matches!(e, Some(e) if matches!(e.kind, carbyne_ir::ast::ExprKind::Int(_)))
    })
    .map(|(i, _)| i)
    .collect()
}

fn zero(view: &mut View, index: usize) {
    let all = view.ops.iter_mut().filter_map(|op| match op {
        ViewOp::Index(list) => Some(list),
        _ => None,
    });
    if let Some(e) = all.flatten().nth(index) {
        *e = Some(Expr::int(0));
    }
}

/// The name of a mutation's statement, `Reduction.max of %top`.
fn name(stmt: &Stmt) -> String {
    match &stmt.kind {
        StmtKind::Spec(spec) => {
            let output = spec.outputs.first().map_or("", |v| &v.base.text);
            format!("{} of %{output}", spec.kind)
        }
        StmtKind::For { var, .. } => format!("for {}", var.text),
        StmtKind::Allocate { name, .. } => format!("Allocate %{}", name.text),
        StmtKind::Indices { .. } => "indices".to_owned(),
        _ => "statement".to_owned(),
    }
}

#[test]
#[expect(clippy::print_stdout, reason = "figures for people who run it by hand")]
fn every_change_of_an_example_is_reported() {
    let mut wrong = vec![];
    let mut used = vec![false; NEUTRAL.len()];
    for (example, src) in EXAMPLES {
        // Every operation becomes a separate statement.
        let written = text::parse(src).unwrap_or_else(|e| panic!("{example}: {e:?}"));
        let module = resolve::elaborate(&written, src).expect("an example");
        assert!(!is_reported(&module), "{example}");
        let mut mutants = vec![];
        for at in 0.. {
            let Some(stmt) = statement(&module, at) else { break };
            // A result without its allocation declares the tensor, and an equal number is no
            // mutation.
            let same = |with: &Option<Vec<Stmt>>| match with {
                None => matches!(stmt.kind, StmtKind::Allocate { .. }),
                Some(with) => with.len() == 1 && with[0] == stmt,
            };
            for (how, with) in changes(&stmt).into_iter().filter(|(_, with)| !same(with)) {
                let mut copy = module.clone();
                edited(&mut copy, at, &mut |stmts, i| {
                    stmts.splice(i..=i, with.clone().unwrap_or_default());
                });
                mutants.push((format!("{at}: {} {how}", name(&stmt)), copy));
            }
        }
        let silent: Vec<&String> =
            mutants.par_iter().filter(|(_, m)| !is_reported(m)).map(|(name, _)| name).collect();
        println!("{example}: {} changes, {} reported", mutants.len(), mutants.len() - silent.len());
        let mut neutral = 0;
        for change in silent {
            let known =
                NEUTRAL.iter().position(|(of, what, _)| *of == example && change.ends_with(what));
            match known {
                Some(i) => (used[i], neutral) = (true, neutral + 1),
                None => wrong.push(format!("{example}: {change}")),
            }
        }
        assert!(20 * neutral <= mutants.len(), "{example}: {neutral} changes are neutral");
    }
    assert!(wrong.is_empty(), "not reported:\n{}", wrong.join("\n"));
    assert!(used.iter().all(|u| *u), "no longer neutral: {used:?}");
}
