//! Parses statements up to their opening brace; `spec.rs` parses specs, definitions and uses of
//! sub-specs. Bodies stay empty here: the reader in `mod.rs` fills them, without recursion.

use super::Rule;
use super::errors::{one_of, short};
use super::expr::{compare, comparisons, expr, int};
use super::spec::{call, def, spec, strategy};
use super::tensor::{data_type, result_type, thread_type, view, view_op};
use super::tensors::tensors;
use super::tree::{Answer, Node, Parts, internal};
use crate::ast::{
    Block, Elements, Name, StmtKind, SymDecl, Symbols, SyncArg, SyncOp, TensorExpr, TensorType,
    Text, TypeAttr, Unroll, View,
};
use crate::diag::{Code, Diagnostic};
use crate::scalar::Scalar;
use crate::span::Span;

/// Whether the statement ended with `{`.
pub(super) fn opens_body(kind: &StmtKind) -> bool {
    match kind {
        StmtKind::Spec(spec) => spec.means.is_some() || spec.body.is_some(),
        StmtKind::For { .. } | StmtKind::If { .. } | StmtKind::Def(_) => true,
        _ => false,
    }
}

/// Parses the statement in `node`.
pub(super) fn statement(node: Node<'_, '_>) -> Answer<StmtKind> {
    let node = node.parts().some()?;
    let (rule, span) = (node.rule(), node.span());
    match rule {
        Rule::spec => return spec(node).map(StmtKind::Spec),
        Rule::call_stmt => return call(node).map(StmtKind::Call),
        Rule::def_head => return def(node).map(StmtKind::Def),
        Rule::strategy_head => return strategy(node).map(StmtKind::Def),
        _ => {}
    }
    let parts = node.parts();
    match rule {
        Rule::data_stmt => data_stmt(parts, span),
        Rule::store => store(parts),
        Rule::import_stmt => import(parts),
        Rule::thread_stmt => thread_stmt(parts, span),
        Rule::indices => indices(parts),
        Rule::element => element(parts),
        Rule::counter => counter(parts),
        Rule::step_stmt => step(parts),
        Rule::allocate => allocate(parts),
        Rule::for_head => for_head(parts),
        Rule::if_head => if_head(parts),
        Rule::barrier => barrier(parts),
        Rule::sync => sync(parts),
        Rule::let_stmt => let_stmt(parts),
        Rule::sym_stmt => symbols(parts),
        _ => Err(internal(span, "a statement")),
    }
}

/// A declaration, a definition or an assignment of a data tensor.
fn data_stmt(mut parts: Parts<'_, '_>, span: Span) -> Answer<StmtKind> {
    let name = parts.next(Rule::data_name)?.without_sigil();
    let whole = parts.take(Rule::data_type);
    let is_whole = whole.is_some();
    let ty = whole.or_else(|| parts.take(Rule::short_type)).map(result_type).transpose()?;
    let range = parts.take(Rule::data_range).map(data_range).transpose()?;
    let stray = |what: &str, help: &str| {
        Box::new(
            Diagnostic::new(Code::Syntax, span, what)
                .label("not allowed in this statement")
                .help(help),
        )
    };
    let full = |ty: crate::ast::ResultType| -> Answer<TensorType> {
        let param = matches!(ty.attrs.first(), Some(TypeAttr::Scalar(_)));
        let scalar = ty.scalar.or(param.then_some(Scalar::F32));
        let (true, Some(scalar)) = (is_whole, scalar) else {
            return Err(stray(
                "this declaration has only a part of a type",
                "write the extents, too: `%A:[8,8].f16.GL`",
            ));
        };
        let crate::ast::ResultType { levels, memory, attrs, span, .. } = ty;
        Ok(TensorType { levels, scalar, memory, attrs, span })
    };
    let Some(def) = parts.take(Rule::data_def) else {
        let Some(ty) = ty else { return Err(internal(span, "a type or a view")) };
        return Ok(StmtKind::DataDecl { name, ty: full(ty)?, range });
    };
    if range.is_some() {
        return Err(stray(
            "a definition has a range of elements",
            "state the range in the declaration of the caller's tensor",
        ));
    }
    Ok(match tensors(def.parts().next(Rule::tensors)?)? {
        TensorExpr::View(view) => {
            if ty.as_ref().is_some_and(|ty| ty.levels.is_empty()) {
                return Err(stray(
                    "a view has a part of a type",
                    "remove the type, or copy: `%x:SH = move(%A)`",
                ));
            }
            StmtKind::DataDef { name, ty: ty.map(full).transpose()?, view }
        }
        value => {
            let span = name.span;
            StmtKind::Assign { target: View { base: name, ops: vec![], span }, ty, value }
        }
    })
}

/// The range of the elements of a declared tensor.
fn data_range(node: Node<'_, '_>) -> Answer<Elements> {
    let mut ends = node.parts();
    let first = expr(ends.next(Rule::value)?)?;
    Ok(match ends.take(Rule::value).map(expr).transpose()? {
        Some(to) if ends.take(Rule::kw_distinct).is_some() => Elements::Distinct(first, to),
        Some(to) => Elements::Within(first, to),
        None => Elements::Splits(first),
    })
}

/// An assignment to a part of a tensor.
fn store(mut parts: Parts<'_, '_>) -> Answer<StmtKind> {
    let base = parts.next(Rule::data_name)?.without_sigil();
    let mut span = base.span;
    let mut ops = Vec::new();
    let value = loop {
        let part = parts.some()?;
        match part.rule() {
            Rule::tensors => break tensors(part)?,
            _ => {
                span = span.to(part.span());
                ops.push(view_op(part)?);
            }
        }
    };
    Ok(StmtKind::Assign { target: View { base, ops, span }, ty: None, value })
}

fn import(mut parts: Parts<'_, '_>) -> Answer<StmtKind> {
    let path = parts.next(Rule::string)?;
    let text = path.text().trim_matches('"').to_owned();
    Ok(StmtKind::Import(Text { text, span: path.span() }))
}

/// A declaration or a definition of a thread tensor.
fn thread_stmt(mut parts: Parts<'_, '_>, span: Span) -> Answer<StmtKind> {
    let name = parts.next(Rule::thread_name)?.without_sigil();
    let ty = parts.take(Rule::thread_type).map(thread_type).transpose()?;
    Ok(match (parts.take(Rule::thread_def), ty) {
        (Some(def), ty) => StmtKind::ThreadDef { name, ty, view: view(def.parts().some()?)? },
        (None, Some(ty)) => StmtKind::ThreadDecl { name, ty },
        (None, None) => return Err(internal(span, "a type or a view")),
    })
}

fn indices(mut parts: Parts<'_, '_>) -> Answer<StmtKind> {
    let mut names = Vec::new();
    while let Some(name) = parts.take(Rule::index_name) {
        names.push(name.name());
    }
    Ok(StmtKind::Indices { names, threads: view(parts.next(Rule::thread_view)?)? })
}

fn element(mut parts: Parts<'_, '_>) -> Answer<StmtKind> {
    let name = parts.next(Rule::index_name)?.name();
    Ok(StmtKind::Element { name, view: view(parts.next(Rule::data_view)?)? })
}

fn counter(mut parts: Parts<'_, '_>) -> Answer<StmtKind> {
    let name = parts.next(Rule::index_name)?.name();
    Ok(StmtKind::Counter { name, start: expr(parts.next(Rule::value)?)? })
}

fn step(mut parts: Parts<'_, '_>) -> Answer<StmtKind> {
    let name = parts.next(Rule::index_name)?.name();
    let added = parts.take(Rule::added);
    let adds = added.is_some();
    let value = match added {
        Some(added) => added.parts().next(Rule::value)?,
        None => parts.next(Rule::value)?,
    };
    Ok(StmtKind::Step { name, adds, value: expr(value)? })
}

fn allocate(mut parts: Parts<'_, '_>) -> Answer<StmtKind> {
    let name = parts.next(Rule::data_name)?.without_sigil();
    Ok(StmtKind::Allocate { name, ty: data_type(parts.next(Rule::data_type)?)? })
}

fn if_head(mut parts: Parts<'_, '_>) -> Answer<StmtKind> {
    let mut cond = Vec::new();
    while let Some(node) = parts.take(Rule::compare) {
        cond.push(compare(node)?);
    }
    Ok(StmtKind::If { cond, then: Block::default(), otherwise: None })
}

fn barrier(mut parts: Parts<'_, '_>) -> Answer<StmtKind> {
    let of = parts.take(Rule::barrier_of);
    Ok(StmtKind::Barrier(of.map(|n| view(n.parts().some()?)).transpose()?))
}

fn sync(mut parts: Parts<'_, '_>) -> Answer<StmtKind> {
    let op = sync_op(&parts.next(Rule::sync_op)?)?;
    let mut args = Vec::new();
    if let Some(list) = parts.take(Rule::sync_args) {
        let mut list = list.parts();
        while let Some(arg) = list.any() {
            args.push(match arg.rule() {
                Rule::data_view => SyncArg::View(view(arg)?),
                Rule::after => SyncArg::After(view(arg.parts().next(Rule::data_view)?)?),
                _ => SyncArg::Number(expr(arg)?),
            });
        }
    }
    Ok(StmtKind::Sync { op, args })
}

fn sync_op(node: &Node<'_, '_>) -> Answer<SyncOp> {
    let word = node.text();
    word.parse().map_err(|()| {
        let family = word.split('.').next().unwrap_or("");
        let all = SyncOp::ALL.iter().map(|op| op.as_str());
        let own = all.filter(|op| op.split('.').next() == Some(family));
        let message = format!("unknown synchronization `{}`", short(word));
        let d = Diagnostic::new(Code::Syntax, node.span(), message);
        Box::new(one_of(d.label("expected a synchronization"), word, own))
    })
}

fn for_head(mut parts: Parts<'_, '_>) -> Answer<StmtKind> {
    let var = parts.next(Rule::name)?.name();
    let start = expr(parts.next(Rule::value)?)?;
    let same = |parts: &mut Parts<'_, '_>| -> Answer<()> {
        let again = parts.next(Rule::name)?.name();
        if again.text == var.text {
            return Ok(());
        }
        let (found, wanted) = (short(&again.text), short(&var.text));
        Err(Box::new(
            Diagnostic::new(
                Code::Syntax,
                again.span,
                format!("`{found}` is not the variable of this loop"),
            )
            .label(format!("expected `{wanted}`"))
            .related(var.span, "the loop's variable")
            .help(format!("write `{wanted}` in all three places")),
        ))
    };
    same(&mut parts)?;
    let end = expr(parts.next(Rule::value)?)?;
    let mut also = Vec::new();
    while let Some(node) = parts.take(Rule::compare) {
        also.push(compare(node)?);
    }
    same(&mut parts)?;
    let step = expr(parts.next(Rule::value)?)?;
    let unroll = match parts.take(Rule::unroll) {
        Some(word) => word.text().parse().map_err(|()| internal(word.span(), "`unroll`"))?,
        None => Unroll::Default,
    };
    let stages = match parts.take(Rule::stages) {
        Some(node) => Some(expr(node.parts().next(Rule::value)?)?),
        None => None,
    };
    let body = Block::default();
    Ok(StmtKind::For { var, start, end, also, step, unroll, stages, body })
}

fn let_stmt(mut parts: Parts<'_, '_>) -> Answer<StmtKind> {
    let mut bindings = Vec::new();
    while let Some(binding) = parts.take(Rule::binding) {
        let mut parts = binding.parts();
        let name = parts.next(Rule::ident)?.name();
        bindings.push((name, expr(parts.next(Rule::value)?)?));
    }
    Ok(StmtKind::Let(bindings))
}

fn symbols(mut parts: Parts<'_, '_>) -> Answer<StmtKind> {
    let name = parts.next(Rule::ident)?.name();
    if parts.is_empty() {
        return Ok(StmtKind::Sym(SymDecl { name, min: None, max: None, div: None }));
    }
    if let Some(facts) = parts.take(Rule::sym_facts) {
        return sym(name, facts.parts()).map(StmtKind::Sym);
    }
    let mut all = Symbols { names: vec![name], facts: vec![], typical: vec![] };
    while let Some(name) = parts.take(Rule::ident) {
        all.names.push(name.name());
    }
    all.facts = comparisons(&mut parts, Rule::conditions)?;
    if let Some(list) = parts.take(Rule::typical) {
        let mut list = list.parts();
        while let Some(value) = list.take(Rule::usual) {
            let mut value = value.parts();
            let name = value.next(Rule::ident)?.name();
            all.typical.push((name, int(&value.next(Rule::int)?, 64)?));
        }
    }
    Ok(StmtKind::Symbols(all))
}

fn sym(name: Name, mut facts: Parts<'_, '_>) -> Answer<SymDecl> {
    let mut decl = SymDecl { name, min: None, max: None, div: None };
    while let Some(fact) = facts.take(Rule::sym_fact) {
        let mut fact = fact.parts();
        let key = fact.next(Rule::ident)?.name();
        let value = int(&fact.next(Rule::int)?, 64)?;
        let place = match key.text.as_str() {
            "min" => &mut decl.min,
            "max" => &mut decl.max,
            "div" => &mut decl.div,
            other => {
                let message = format!("a symbol has no `{}`", short(other));
                let d = Diagnostic::new(Code::Syntax, key.span, message)
                    .label("expected `min`, `max` or `div`");
                return Err(Box::new(one_of(d, other, ["min", "max", "div"].into_iter())));
            }
        };
        if place.replace(value).is_some() {
            return Err(Box::new(
                Diagnostic::new(Code::Syntax, key.span, format!("`{}` is given twice", key.text))
                    .label("this is the second one")
                    .help("remove one of them"),
            ));
        }
    }
    Ok(decl)
}
