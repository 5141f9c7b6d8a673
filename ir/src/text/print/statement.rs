//! Prints statements, and the heads of those with a body (everything up to the opening brace), with
//! line breaks where a line would be too long.
//!
//! A head that does not fit breaks before its operands and results. A list that still does not fit
//! breaks between its members. Words are never broken.

use super::expr::{expr, tuple};
use super::tensor::{attribute, data_type, result_type, thread_type, view};
use super::tensors::tensors;
use crate::ast::{
    Call, Choices, Compare, Def, Elements, Exec, Expr, Group, Name, Operand, ResultType, Spec,
    StmtKind, SymDecl, Symbols, SyncArg, TensorExpr, TensorType, ThreadType, View,
};
use pretty::{Arena, DocAllocator, DocBuilder};

type Doc<'a> = DocBuilder<'a, Arena<'a>>;

/// The indentation of a continued head. It is larger than that of a body to tell them apart.
const CONTINUED: isize = 4;

/// Prints a statement, or its head up to `{`, at the given depth.
pub(super) fn head(out: &mut String, depth: usize, kind: &StmtKind) {
    let arena = Arena::new();
    // Leading blanks stand for the columns already printed; they are cut off below.
    let doc = arena.text(" ".repeat(depth)).append(statement(&arena, kind)).nest(depth as isize);
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = doc.render_fmt(WIDTH, &mut text);
    out.push_str(text.get(depth..).unwrap_or(""));
}

fn statement<'a>(arena: &'a Arena<'a>, kind: &StmtKind) -> Doc<'a> {
    match kind {
        StmtKind::Let(bindings) => constants(arena, bindings),
        StmtKind::Sym(sym) => arena.text(symbol(sym)),
        StmtKind::Symbols(all) => symbols(arena, all),
        StmtKind::DataDecl { name, ty, range } => {
            let mut text = data(&name.text, Some(ty));
            elements(&mut text, range.as_ref());
            arena.text(text)
        }
        StmtKind::Assign { target, ty, value } => assignment(arena, target, ty.as_ref(), value),
        StmtKind::Import(path) => arena.text(format!("import \"{}\"", path.text)),
        StmtKind::Def(d) => def(arena, d),
        StmtKind::Call(c) => call(arena, c),
        StmtKind::DataDef { name, ty, view } => {
            definition(arena, data(&name.text, ty.as_ref()), '%', view)
        }
        StmtKind::ThreadDecl { name, ty } => arena.text(threads(&name.text, Some(ty))),
        StmtKind::ThreadDef { name, ty, view } => {
            definition(arena, threads(&name.text, ty.as_ref()), '#', view)
        }
        StmtKind::Indices { names, threads } => {
            let names = names.iter().map(|name| arena.text(name.text.clone()));
            list(arena, names, arena.softline())
                .append(" = ")
                .append(with(|out| view(out, '#', threads)))
                .append(".indices()")
                .nest(CONTINUED)
        }
        StmtKind::Element { name, view: of } => {
            arena.text(format!("{} = ", name.text)).append(with(|out| view(out, '%', of)))
        }
        StmtKind::Counter { name, start } => arena.text(with(|out| {
            out.push_str(&format!("counter {} = ", name.text));
            expr(out, start);
        })),
        StmtKind::Step { name, adds, value } => arena.text(with(|out| {
            out.push_str(&format!("{} {} ", name.text, if *adds { "+=" } else { "=" }));
            expr(out, value);
        })),
        StmtKind::Allocate { name, ty } => {
            arena.text("Allocate ").append(data(&name.text, Some(ty)))
        }
        StmtKind::Spec(s) => spec(arena, s),
        StmtKind::For { var, start, end, also, step, unroll, stages, body: _ } => {
            let mut behind = String::new();
            if !unroll.as_str().is_empty() {
                behind.push(' ');
                behind.push_str(unroll.as_str());
            }
            if let Some(stages) = stages {
                behind.push_str(" stages=");
                expr(&mut behind, stages);
            }
            for_head(arena, &var.text, [start, end, step], also, &behind)
        }
        StmtKind::If { cond, then: _, otherwise: _ } => {
            let all = cond.iter().map(|c| arena.text(compare(c)));
            arena
                .text("if (")
                .append(arena.intersperse(all, arena.text(" &&").append(arena.softline())))
                .append(") {")
                .nest(CONTINUED)
        }
        StmtKind::Barrier(None) => arena.text("barrier"),
        StmtKind::Barrier(Some(of)) => arena.text(with(|out| {
            out.push_str("barrier(");
            view(out, '#', of);
            out.push(')');
        })),
        StmtKind::Sync { op, args } if args.is_empty() => arena.text(op.as_str()),
        StmtKind::Sync { op, args } => {
            let args = args.iter().map(|arg| {
                arena.text(with(|out| match arg {
                    SyncArg::View(v) => view(out, '%', v),
                    SyncArg::Number(e) => expr(out, e),
                    SyncArg::After(v) => {
                        out.push_str("after=");
                        view(out, '%', v);
                    }
                }))
            });
            arena.text(op.as_str()).append(parenthesized(arena, args)).group()
        }
    }
}

/// `let N = 4, M = 2 * N`
fn constants<'a>(arena: &'a Arena<'a>, bindings: &[(Name, Expr)]) -> Doc<'a> {
    let all = bindings.iter().map(|(name, e)| {
        arena.text(with(|out| {
            out.push_str(&name.text);
            out.push_str(" = ");
            expr(out, e);
        }))
    });
    arena.text("let ").append(list(arena, all, arena.softline())).nest(CONTINUED)
}

/// ` in 0..N distinct`
fn elements(out: &mut String, range: Option<&Elements>) {
    match range {
        Some(are @ (Elements::Within(from, to) | Elements::Distinct(from, to))) => {
            out.push_str(" in ");
            expr(out, from);
            out.push_str("..");
            expr(out, to);
            if matches!(are, Elements::Distinct(..)) {
                out.push_str(" distinct");
            }
        }
        Some(Elements::Splits(n)) => {
            out.push_str(" splits ");
            expr(out, n);
        }
        None => {}
    }
}

/// `%x:SH = %a + %b`
fn assignment<'a>(
    arena: &'a Arena<'a>,
    target: &View,
    ty: Option<&ResultType>,
    value: &TensorExpr,
) -> Doc<'a> {
    let mut to = with(|out| view(out, '%', target));
    if let Some(ty) = ty {
        to.push(':');
        result_type(&mut to, ty);
    }
    arena
        .text(to)
        .append(" =")
        .append(arena.line())
        .append(tensors(arena, value))
        .nest(CONTINUED)
        .group()
}

/// `for (k = 0; k < N; k += 1) unroll {`
fn for_head<'a>(
    arena: &'a Arena<'a>,
    var: &str,
    [start, end, step]: [&Expr; 3],
    also: &[Compare],
    behind: &str,
) -> Doc<'a> {
    let below = format!("{var} < {}", number(end));
    let conditions = std::iter::once(below).chain(also.iter().map(compare));
    let conditions = conditions.map(|condition| arena.text(condition));
    let parts = [
        arena.text(format!("{var} = {}", number(start))),
        arena.intersperse(conditions, arena.text(" &&").append(arena.softline())),
        arena.text(format!("{var} += {}", number(step))),
    ];
    arena
        .text("for (")
        .append(arena.intersperse(parts, arena.text(";").append(arena.softline())))
        .append(format!("){behind} {{"))
        .nest(CONTINUED)
}

/// `@w < 2`
pub(super) fn compare(c: &Compare) -> String {
    format!("{} {} {}", number(&c.lhs), c.op, number(&c.rhs))
}

fn spec<'a>(arena: &'a Arena<'a>, spec: &Spec) -> Doc<'a> {
    let mut operands = operands(arena, &spec.inputs, &spec.outputs, &spec.declared);
    for attr in &spec.attrs {
        operands = operands.append(arena.softline()).append(with(|out| attribute(out, attr)));
    }
    let head = with(|out| {
        out.push_str(&spec.kind.to_string());
        if let Some(name) = &spec.name {
            out.push_str(" @");
            out.push_str(&name.text);
        }
        if let Some(exec) = &spec.exec {
            out.push(' ');
            executors(out, exec);
        }
    });
    let body = match (&spec.means, &spec.body) {
        (Some(_), _) => " means {",
        (None, Some(_)) => " {",
        (None, None) => "",
    };
    arena.text(head).append(operands.nest(CONTINUED)).append(body).group()
}

/// `(%a, %b) -> (%c:SH)`
fn operands<'a>(
    arena: &'a Arena<'a>,
    inputs: &[Operand],
    outputs: &[View],
    declared: &[Option<ResultType>],
) -> Doc<'a> {
    let inputs = inputs.iter().map(|input| {
        arena.text(match input {
            Operand::View(v) => with(|out| view(out, '%', v)),
            Operand::Number(number) => number.text.clone(),
            Operand::Value(e) => number(e),
        })
    });
    let outputs = outputs.iter().enumerate().map(|(i, v)| {
        arena.text(with(|out| {
            view(out, '%', v);
            if let Some(Some(ty)) = declared.get(i) {
                out.push(':');
                result_type(out, ty);
            }
        }))
    });
    arena
        .line()
        .append(parenthesized(arena, inputs))
        .append(arena.line())
        .append("-> ")
        .append(parenthesized(arena, outputs))
}

/// `<<<#grid, #cta>>>`
fn executors(out: &mut String, exec: &Exec) {
    out.push_str("<<<");
    match exec {
        Exec::Both(blocks, threads) => {
            view(out, '#', blocks);
            out.push_str(", ");
            view(out, '#', threads);
        }
        Exec::Threads(threads) => view(out, '#', threads),
        Exec::Launch(launch) => {
            group(out, &launch.blocks);
            out.push_str(", ");
            group(out, &launch.threads);
        }
    }
    out.push_str(">>>");
}

/// `#grid:[@i < M / BM, 8]`
fn group(out: &mut String, group: &Group) {
    match group {
        Group::Of(v) => view(out, '#', v),
        Group::New { name, modes } => {
            out.push('#');
            out.push_str(&name.text);
            out.push_str(":[");
            for (i, (index, extent)) in modes.iter().enumerate() {
                out.push_str(if i == 0 { "" } else { ", " });
                if let Some(index) = index {
                    out.push_str(&index.text);
                    out.push_str(" < ");
                }
                expr(out, extent);
            }
            out.push(']');
        }
    }
}

/// `def @scale[N, T:type] (%x) -> (%y) {`
fn def<'a>(arena: &'a Arena<'a>, def: &Def) -> Doc<'a> {
    let formals = |all: &[(Name, Option<ResultType>)]| {
        let texts: Vec<_> = all
            .iter()
            .map(|(name, ty)| {
                arena.text(with(|out| {
                    out.push('%');
                    out.push_str(&name.text);
                    if let Some(ty) = ty {
                        out.push(':');
                        result_type(out, ty);
                    }
                }))
            })
            .collect();
        parenthesized(arena, texts.into_iter())
    };
    let word = if def.strategy.is_some() { "strategy @" } else { "def @" };
    let params = def.params.iter().map(|param| {
        arena.text(with(|out| {
            out.push_str(&param.name.text);
            out.push_str(if param.is_type { ":type" } else { "" });
            if let Some(all) = &param.choices {
                out.push_str(" in ");
                choices(out, all);
            }
        }))
    });
    let params = match def.params.is_empty() {
        true => arena.nil(),
        false => {
            let all = arena.line_().append(list(arena, params, arena.line())).nest(CONTINUED);
            arena.text("[").append(all).append("]").group()
        }
    };
    let head = arena.text(word).append(def.name.text.clone()).append(params);
    let mut operands = arena.nil();
    if let Some(exec) = def.strategy.as_ref().and_then(|s| s.exec.as_ref()) {
        operands = operands.append(arena.line()).append(with(|out| executors(out, exec)));
    }
    operands = operands
        .append(arena.line())
        .append(formals(&def.inputs))
        .append(arena.line())
        .append("-> ")
        .append(formals(&def.outputs));
    if let Some(strategy) = &def.strategy {
        for attr in &strategy.attrs {
            operands = operands.append(arena.softline()).append(with(|out| attribute(out, attr)));
        }
        for (word, all) in [("where ", &strategy.conditions), ("usually ", &strategy.habits)] {
            operands = operands.append(clause(arena, word, all.iter().map(compare)));
        }
    }
    let brace = if def.means.is_some() { " means {" } else { " {" };
    head.append(operands.nest(CONTINUED)).append(brace).group()
}

/// `(64, 128)`, `16..256 step 16`
fn choices(out: &mut String, all: &Choices) {
    match all {
        Choices::Among(values) => tuple(out, values),
        Choices::Range { start, end, step } => {
            expr(out, start);
            out.push_str("..");
            expr(out, end);
            if let Some(step) = step {
                out.push_str(" step ");
                expr(out, step);
            }
        }
    }
}

/// `@scale[128] (%a) -> (%b)`
fn call<'a>(arena: &'a Arena<'a>, call: &Call) -> Doc<'a> {
    let head = with(|out| {
        out.push('@');
        out.push_str(&call.name.text);
        for (i, arg) in call.args.iter().enumerate() {
            out.push_str(if i == 0 { "[" } else { ", " });
            expr(out, arg);
        }
        out.push_str(if call.args.is_empty() { "" } else { "]" });
    });
    let operands = operands(arena, &call.inputs, &call.outputs, &call.declared);
    arena.text(head).append(operands.nest(CONTINUED)).group()
}

/// `(a, b)`, with one member a line if it does not fit.
fn parenthesized<'a>(arena: &'a Arena<'a>, members: impl Iterator<Item = Doc<'a>>) -> Doc<'a> {
    let members = arena.line_().append(list(arena, members, arena.line())).nest(CONTINUED);
    arena.text("(").append(members).append(")").group()
}

fn list<'a>(arena: &'a Arena<'a>, all: impl Iterator<Item = Doc<'a>>, gap: Doc<'a>) -> Doc<'a> {
    arena.intersperse(all, arena.text(",").append(gap))
}

fn definition<'a>(arena: &'a Arena<'a>, name: String, sigil: char, of: &View) -> Doc<'a> {
    arena
        .text(name)
        .append(" =")
        .append(arena.line())
        .append(with(|out| view(out, sigil, of)))
        .nest(CONTINUED)
        .group()
}

fn data(name: &str, ty: Option<&TensorType>) -> String {
    with(|out| {
        out.push('%');
        out.push_str(name);
        if let Some(ty) = ty {
            out.push(':');
            data_type(out, ty);
        }
    })
}

fn threads(name: &str, ty: Option<&ThreadType>) -> String {
    with(|out| {
        out.push('#');
        out.push_str(name);
        if let Some(ty) = ty {
            out.push(':');
            thread_type(out, ty);
        }
    })
}

/// A keyword with its parts, on a separate line if everything does not fit on one. Nothing if there
/// are no parts.
fn clause<'a>(
    arena: &'a Arena<'a>,
    word: &'static str,
    parts: impl Iterator<Item = String>,
) -> Doc<'a> {
    let mut doc = arena.nil();
    for (i, part) in parts.enumerate() {
        let first = arena.line().append(word);
        let gap = if i == 0 { first } else { arena.text(",").append(arena.softline()) };
        doc = doc.append(gap).append(part);
    }
    doc
}

fn symbols<'a>(arena: &'a Arena<'a>, all: &Symbols) -> Doc<'a> {
    let names = all.names.iter().map(|name| arena.text(name.text.clone()));
    let typical = all.typical.iter().map(|(name, v)| format!("{}={v}", name.text));
    arena
        .text("sym ")
        .append(list(arena, names, arena.softline()))
        .append(clause(arena, "where ", all.facts.iter().map(compare)))
        .append(clause(arena, "typical ", typical))
        .nest(CONTINUED)
        .group()
}

fn symbol(sym: &SymDecl) -> String {
    let facts = [("min", sym.min), ("max", sym.max), ("div", sym.div)];
    let facts: Vec<_> =
        facts.iter().filter_map(|(key, v)| v.map(|v| format!("{key}={v}"))).collect();
    let name = &sym.name.text;
    if facts.is_empty() {
        format!("sym {name}")
    } else {
        format!("sym {name}{{{}}}", facts.join(", "))
    }
}

pub(super) fn number(e: &Expr) -> String {
    with(|out| expr(out, e))
}

/// The text that `f` writes.
fn with(f: impl FnOnce(&mut String)) -> String {
    let mut out = String::new();
    f(&mut out);
    out
}

/// The preferred maximum width of a line.
const WIDTH: usize = 100;
