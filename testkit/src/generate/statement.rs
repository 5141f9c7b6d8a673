//! Generates statements, and lists of statements in braces (proptest strategies).

use super::expr::expr;
use super::spec::{inputs, outputs, spec};
use super::tensor::{data_view, result_type, tensor_type, thread_type, thread_view};
use super::tensors::tensors;
use super::words::{comment, comments, ident, index, index_or_constant, named, tensor_name};
use carbyne_ir::ast::{
    self, Block, Call, Choices, CmpOp, Compare, Def, Elements, Param, Stmt, StmtKind, SymDecl,
    Symbols, SyncArg, SyncOp, TensorExpr, Text, TypeAttr, Unroll, View,
};
use carbyne_ir::scalar::{Memory, Scalar};
use carbyne_ir::span::Span;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// A statement whose bodies nest at most `depth` deep.
pub fn stmt(depth: u32) -> BoxedStrategy<Stmt> {
    let kind = if depth == 0 {
        simple().boxed()
    } else {
        prop_oneof![3 => simple(), 1 => with_body(depth - 1)].boxed()
    };
    let trailing = option::weighted(0.2, comment());
    (any::<bool>(), comments(), trailing, kind)
        .prop_map(|(blank_above, leading, trailing, kind)| Stmt {
            blank_above,
            leading,
            trailing,
            ..Stmt::new(kind)
        })
        .boxed()
}

/// A block whose bodies nest at most `depth` deep.
pub fn block(depth: u32) -> impl Strategy<Value = Block> {
    (stmts(4, depth), comments())
        .prop_map(|(mut stmts, footer)| {
            if let Some(first) = stmts.first_mut() {
                first.blank_above = false;
            }
            Block { stmts, footer }
        })
        .boxed()
}

/// Fewer than `most` statements.
pub(super) fn stmts(most: usize, depth: u32) -> impl Strategy<Value = Vec<Stmt>> {
    vec(stmt(depth), 0..most).boxed()
}

/// A statement without a body.
fn simple() -> impl Strategy<Value = StmtKind> {
    let data_name = || named(tensor_name());
    prop_oneof![
        vec((named(ident()), expr()), 1..4).prop_map(StmtKind::Let),
        prop_oneof![symbol().prop_map(StmtKind::Sym), symbols()],
        (data_name(), tensor_type(), option::weighted(0.2, elements()))
            .prop_map(|(name, ty, range)| StmtKind::DataDecl { name, ty, range }),
        (data_view(), option::weighted(0.3, result_type()), tensors()).prop_map(assign),
        call().prop_map(StmtKind::Call),
        "[a-z./_-]{0,8}".prop_map(|text| StmtKind::Import(Text { text, span: Span::default() })),
        (data_name(), option::of(tensor_type()), data_view())
            .prop_map(|(name, ty, view)| StmtKind::DataDef { name, ty, view }),
        (data_name(), thread_type()).prop_map(|(name, ty)| StmtKind::ThreadDecl { name, ty }),
        (data_name(), option::of(thread_type()), thread_view())
            .prop_map(|(name, ty, view)| StmtKind::ThreadDef { name, ty, view }),
        (vec(named(index()), 1..4), thread_view())
            .prop_map(|(names, threads)| StmtKind::Indices { names, threads }),
        (named(index()), data_view()).prop_map(|(name, view)| StmtKind::Element { name, view }),
        (data_name(), tensor_type()).prop_map(|(name, ty)| StmtKind::Allocate { name, ty }),
        (named(index()), expr()).prop_map(|(name, start)| StmtKind::Counter { name, start }),
        (named(index()), any::<bool>(), expr()).prop_map(|(name, adds, value)| StmtKind::Step {
            name,
            adds,
            value
        }),
        spec(Just((None, None))).prop_map(StmtKind::Spec),
        option::of(thread_view()).prop_map(StmtKind::Barrier),
        (select(SyncOp::ALL), vec(sync_arg(), 0..3))
            .prop_map(|(op, args)| StmtKind::Sync { op, args }),
    ]
    .boxed()
}

fn elements() -> impl Strategy<Value = Elements> {
    prop_oneof![
        (expr(), expr()).prop_map(|(from, to)| Elements::Within(from, to)),
        (expr(), expr()).prop_map(|(from, to)| Elements::Distinct(from, to)),
        expr().prop_map(Elements::Splits),
    ]
    .boxed()
}

/// An assignment. A type is optional; written views have none, and a name with a view is a
/// definition.
fn assign(
    (target, ty, value): (View, Option<carbyne_ir::ast::ResultType>, TensorExpr),
) -> StmtKind {
    match value {
        TensorExpr::View(view) if target.ops.is_empty() => {
            StmtKind::DataDef { name: target.base, ty: None, view }
        }
        value => StmtKind::Assign { ty: ty.filter(|_| target.ops.is_empty()), target, value },
    }
}

fn call() -> impl Strategy<Value = Call> {
    (named(ident()), vec(expr(), 0..3), inputs(), outputs())
        .prop_map(|(name, args, inputs, (outputs, declared))| Call {
            name,
            args,
            inputs,
            outputs,
            declared,
            span: Span::default(),
        })
        .boxed()
}

fn def(depth: u32) -> impl Strategy<Value = Def> {
    let param = (named(ident()), any::<bool>()).prop_map(|(name, is_type)| {
        let reserved = name.text.parse::<Scalar>().is_ok() || name.text.parse::<Memory>().is_ok();
        Param { is_type: is_type && !reserved, name, choices: None }
    });
    let formals = || vec((named(tensor_name()), option::weighted(0.4, result_type())), 0..3);
    let means = option::weighted(0.3, block(depth));
    (named(ident()), vec(param, 0..3), (formals(), formals()), means, block(depth))
        .prop_map(|(name, params, (mut inputs, outputs), means, body)| {
            // A type parameter replaces a scalar type.
            let param = params.iter().find(|p: &&Param| p.is_type);
            if let (Some(param), Some((_, Some(ty)))) = (param, inputs.first_mut()) {
                ty.scalar = None;
                ty.attrs.insert(0, TypeAttr::Scalar(param.name.clone()));
            }
            let span = Span::default();
            Def { name, params, inputs, outputs, means, body, strategy: None, span }
        })
        .boxed()
}

fn compare() -> impl Strategy<Value = Compare> {
    (expr(), select(CmpOp::ALL), expr()).prop_map(|(lhs, op, rhs)| Compare { lhs, op, rhs }).boxed()
}

/// The definition of a decomposition strategy.
fn strategy(depth: u32) -> impl Strategy<Value = Def> {
    let choices = prop_oneof![
        1 => super::expr::tuple().prop_map(Choices::Among),
        2 => (expr(), expr(), option::weighted(0.75, expr()))
            .prop_map(|(start, end, step)| Choices::Range { start, end, step }),
    ];
    let more = (
        vec(option::of(choices), 3),
        (vec(compare(), 0..3), vec(compare(), 0..3)),
        spec(Just((None, None))),
    );
    (def(depth), more, block(depth))
        .prop_map(|(mut def, (choices, (conditions, habits), spec), means)| {
            for (param, choices) in def.params.iter_mut().zip(choices) {
                param.choices = choices.filter(|_| !param.is_type);
            }
            def.means.get_or_insert(means);
            let (exec, attrs) = (spec.exec, spec.attrs);
            def.strategy = Some(Box::new(ast::Strategy { exec, attrs, conditions, habits }));
            def
        })
        .boxed()
}

/// The operands may not fit the statement, as the grammar accepts any.
fn sync_arg() -> impl Strategy<Value = SyncArg> {
    prop_oneof![
        data_view().prop_map(SyncArg::View),
        expr().prop_map(SyncArg::Number),
        data_view().prop_map(SyncArg::After),
    ]
    .boxed()
}

/// A statement with a body.
fn with_body(depth: u32) -> impl Strategy<Value = StmtKind> {
    let bounds = (expr(), expr(), expr());
    prop_oneof![
        2 => spec(spec_blocks(depth)).prop_map(StmtKind::Spec),
        1 => (
            named(index_or_constant()),
            bounds,
            vec(compare(), 0..3),
            select(Unroll::ALL),
            option::weighted(0.3, expr()),
            block(depth),
        ).prop_map(
            |(var, (start, end, step), also, unroll, stages, body)| StmtKind::For {
                var,
                start,
                end,
                also,
                step,
                unroll,
                stages,
                body,
            }
        ),
        1 => def(depth).prop_map(StmtKind::Def),
        1 => strategy(depth).prop_map(StmtKind::Def),
        1 => (vec(compare(), 1..4), block(depth), option::of(block(depth)))
            .prop_map(|(cond, then, otherwise)| StmtKind::If { cond, then, otherwise }),
    ]
    .boxed()
}

/// A body, a `means` block, or both.
fn spec_blocks(depth: u32) -> impl Strategy<Value = (Option<Block>, Option<Block>)> {
    prop_oneof![
        4 => block(depth).prop_map(|body| (None, Some(body))),
        1 => block(depth).prop_map(|means| (Some(means), None)),
        1 => (block(depth), block(depth)).prop_map(|(means, body)| (Some(means), Some(body))),
    ]
}

fn symbols() -> impl Strategy<Value = StmtKind> {
    let typical = vec((named(ident()), 0..=i64::MAX), 0..3);
    (vec(named(ident()), 1..4), vec(compare(), 0..3), typical).prop_map(
        |(names, facts, typical)| match &names[..] {
            [name] if facts.is_empty() && typical.is_empty() => {
                StmtKind::Sym(SymDecl { name: name.clone(), min: None, max: None, div: None })
            }
            _ => StmtKind::Symbols(Symbols { names, facts, typical }),
        },
    )
}

fn symbol() -> impl Strategy<Value = SymDecl> {
    let fact = || option::of(prop_oneof![4 => 0i64..5000, 1 => 0..=i64::MAX]);
    (named(ident()), fact(), fact(), fact())
        .prop_map(|(name, min, max, div)| SymDecl { name, min, max, div })
        .boxed()
}
