//! Prints the C++ syntax tree as text: lines of 100 columns, indentation of two spaces. Equal trees
//! give equal bytes, so that a printed file can be compared with an earlier one.

use super::ast::{Assign, Declare, For, Item, Kernel, Piece, Stmt, StmtKind, Type, Unary, Word};
use super::print_asm::asm;
use super::print_expr::{Doc, Level, expr, separated, type_text};
use crate::cpp::ast::Expr;
use pretty::{Arena, DocAllocator};

/// The columns of a line.
const WIDTH: usize = 100;
/// The spaces of one indentation level.
const INDENT: isize = 2;

/// The text of a file.
pub fn file(items: &[Item]) -> String {
    let a = Arena::new();
    let docs = items.iter().map(|i| item(&a, i));
    let doc = a.intersperse(docs, a.hardline().append(a.hardline())).append(a.hardline());
    // Removes the indentation of empty lines.
    let text = doc.pretty(WIDTH).to_string();
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The text of statements at the top level.
pub fn statements(stmts: &[Stmt]) -> String {
    let a = Arena::new();
    block_lines(&a, stmts).pretty(WIDTH).to_string()
}

fn item<'a>(a: &'a Arena<'a>, item: &Item) -> Doc<'a> {
    match item {
        Item::Comment(lines) => {
            a.intersperse(lines.iter().map(|l| a.text(comment(l))), a.hardline())
        }
        Item::Includes(names) => {
            let lines = names.iter().map(|n| a.text(format!("#include <{n}>")));
            a.intersperse(lines, a.hardline())
        }
        Item::Helper(text) => a.intersperse(text.lines().map(|l| a.text(l)), a.hardline()),
        Item::Kernel(k) => kernel(a, k),
        Item::Function(f) => {
            let comment = f.comment.iter().map(|l| a.text(comment(l)).append(a.hardline()));
            let head = a.concat(comment).append(format!("{} ", f.head));
            function(a, head, &f.name, &f.params, block_lines(a, &f.body))
        }
    }
}

/// `name(params) { body }` after a head.
fn function<'a>(
    a: &'a Arena<'a>,
    head: Doc<'a>,
    name: &Word,
    params: &[(Type, Word)],
    body: Doc<'a>,
) -> Doc<'a> {
    let params = params.iter().map(|(ty, name)| a.text(format!("{} {name}", type_text(ty))));
    let params = a.intersperse(params, a.text(",").append(a.line()));
    head.append(a.text(name.to_string()))
        .append("(")
        .append(a.line_().append(params).nest(4).group())
        .append(") {")
        .append(a.hardline().append(body).nest(INDENT))
        .append(a.hardline())
        .append("}")
}

fn kernel<'a>(a: &'a Arena<'a>, k: &Kernel) -> Doc<'a> {
    let cluster = k.cluster.map(|n| format!(" __cluster_dims__({n}, 1, 1)")).unwrap_or_default();
    let alone = if k.alone { ", 1" } else { "" };
    let bounds = format!("__launch_bounds__({}{alone})", k.threads);
    let head = a.text(format!("extern \"C\" __global__ void{cluster} {bounds}"));
    function(a, head.append(a.hardline()), &k.name, &k.params, kernel_lines(a, k))
}

fn kernel_lines<'a>(a: &'a Arena<'a>, k: &Kernel) -> Doc<'a> {
    let shared = k
        .shared_align
        .map(|n| a.text(format!("extern __shared__ __align__({n}) unsigned char smem[];")));
    a.intersperse(shared.into_iter().chain(k.body.iter().map(|s| stmt(a, s))), a.hardline())
}

/// Statements in braces, with a comment after the opening brace.
fn braces<'a>(a: &'a Arena<'a>, stmts: &[Stmt], said: Option<&str>) -> Doc<'a> {
    let said = said.map(|c| a.text("  ").append(comment(c)));
    let inside = stmts.iter().map(|s| a.hardline().append(stmt(a, s)));
    let inside = a.concat(said).append(a.concat(inside)).nest(INDENT);
    a.text("{").append(inside).append(a.hardline()).append("}")
}

fn block_lines<'a>(a: &'a Arena<'a>, stmts: &[Stmt]) -> Doc<'a> {
    a.intersperse(stmts.iter().map(|s| stmt(a, s)), a.hardline())
}

fn stmt<'a>(a: &'a Arena<'a>, s: &Stmt) -> Doc<'a> {
    let said = s.comment.as_ref().map(ToString::to_string);
    let said = said.as_deref();
    let doc = match &s.kind {
        StmtKind::Comment(said) => a.text(comment(&said.to_string())),
        StmtKind::Line { line, file } => a.text(format!("#line {line} {file}")),
        StmtKind::Declare(d) => declare(a, d),
        StmtKind::Filled(pieces) => filled(a, pieces),
        StmtKind::Expr(e) => expr(a, e, Level::Any).nest(4).append(";"),
        StmtKind::Assign { to, op, value } => {
            let op = match op {
                Assign::Set => " = ",
                Assign::Add => " += ",
                Assign::Xor => " ^= ",
            };
            let to = expr(a, to, Level::Any).append(op);
            to.append(expr(a, value, Level::Any).nest(4)).append(";")
        }
        StmtKind::Asm(x) if x.outputs.is_empty() && x.inputs.is_empty() => asm(a, x),
        // The comment of a statement of several lines stands above it or after the brace.
        StmtKind::Asm(x) => {
            let above = said.map(|c| a.text(comment(c)).append(a.hardline()));
            return a.concat(above).append(asm(a, x));
        }
        StmtKind::For(f) => return for_loop(a, f, said),
        StmtKind::If { cond, then, otherwise } => {
            let head = a.text("if (").append(expr(a, cond, Level::Any).nest(4));
            let doc = head.append(") ").append(braces(a, then, said));
            return if otherwise.is_empty() {
                doc
            } else {
                doc.append(" else ").append(braces(a, otherwise, None))
            };
        }
        StmtKind::Block(stmts) => return braces(a, stmts, said),
    };
    match said {
        // At the end of the line if it fits, else above.
        Some(c) => {
            let above = a.text(comment(c)).append(a.hardline()).flat_alt(a.nil());
            let behind = a.nil().flat_alt(a.text("  ").append(comment(c)));
            above.append(doc).append(behind).group()
        }
        None => doc,
    }
}

fn for_loop<'a>(a: &'a Arena<'a>, f: &For, said: Option<&str>) -> Doc<'a> {
    let head = a
        .text(format!("for ({} {} = ", type_text(&f.ty), f.var))
        .append(expr(a, &f.start, Level::Any))
        .append(format!("; {} < ", f.var))
        .append(expr(a, &f.end, Level::Sum))
        .append(match &f.also {
            Some(also) => a.text(" && ").append(expr(a, also, Level::Any)),
            None => a.nil(),
        })
        .append(format!("; {} += {}) ", f.var, f.step))
        .group();
    let pragma = f.pragma.map(|p| a.text(format!("#{p}")).append(a.hardline()));
    a.concat(pragma).append(head).append(braces(a, &f.body, said))
}

fn declare<'a>(a: &'a Arena<'a>, d: &Declare) -> Doc<'a> {
    let mut doc = a.nil();
    if let Some(n) = d.align {
        doc = doc.append(format!("alignas({n}) "));
    }
    doc = doc.append(format!("{} {}", type_text(&d.ty), d.name));
    if let Some(n) = d.array {
        doc = doc.append(format!("[{n}]"));
    }
    if let Some(e) = &d.init {
        doc = doc.append(" = ").append(expr(a, e, Level::Any).nest(4));
    }
    doc.append(";")
}

/// A statement of an atom. Lines may break after an equals sign or a comma of its text.
fn filled<'a>(a: &'a Arena<'a>, pieces: &[Piece]) -> Doc<'a> {
    // The sides of `=`, each split at commas.
    let mut sides = vec![vec![a.nil()]];
    let push = |sides: &mut Vec<Vec<Doc<'a>>>, doc: Doc<'a>| {
        let last = sides.last_mut().and_then(|s| s.pop()).unwrap_or_else(|| a.nil());
        if let Some(side) = sides.last_mut() {
            side.push(last.append(doc));
        }
    };
    for (i, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Text(text) => {
                for part in text.split_inclusive(' ') {
                    match part {
                        "= " => {
                            push(&mut sides, a.text("="));
                            sides.push(vec![a.nil()]);
                        }
                        _ if part.ends_with(", ") => {
                            push(&mut sides, a.text(&part[..part.len() - 2]));
                            if let Some(side) = sides.last_mut() {
                                side.push(a.nil());
                            }
                        }
                        _ => push(&mut sides, a.text(part)),
                    }
                }
            }
            Piece::Operand(e) => {
                // Between `=`, commas and brackets, any expression may stand. `{S}.x` needs a
                // postfix expression, and next to other operators `*p` needs no parentheses.
                let before = i.checked_sub(1).and_then(|i| text_of(pieces.get(i)));
                let after = text_of(pieces.get(i + 1));
                let alone = before.is_none_or(|t| t.ends_with(['(', '{', ' ']) && !is_operator(t))
                    && after.is_none_or(|t| t.starts_with([';', ',', ')', '}']));
                let member = after.is_some_and(|t| t.starts_with(['.', '[', '(', '-']));
                let deref = matches!(e, Expr::Unary(Unary::Deref, _));
                let at = match (alone, deref && !member) {
                    (true, _) => Level::And,
                    (false, true) => Level::Prefix,
                    (false, false) => Level::Postfix,
                };
                push(&mut sides, expr(a, e, at).nest(4));
            }
        }
    }
    let mut doc = a.nil();
    for (i, side) in sides.into_iter().enumerate() {
        let side = separated(a, side).nest(4);
        doc = match i {
            0 => side,
            _ => doc.append(a.line().append(side).nest(4).group()),
        };
    }
    doc
}

fn text_of(piece: Option<&Piece>) -> Option<&'static str> {
    match piece {
        Some(Piece::Text(text)) => Some(text),
        Some(Piece::Operand(_)) | None => None,
    }
}

/// Whether the text of an atom ends in an operator other than `=`.
fn is_operator(text: &str) -> bool {
    let word = text.trim_end().rsplit(' ').next().unwrap_or("");
    word != "=" && word != "return" && !word.ends_with(['(', '{', ',']) && !word.is_empty()
}

/// A comment line. The comment cannot escape its line: control characters and a final backslash are
/// removed.
fn comment(text: &str) -> String {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("// {}", clean.trim_end_matches(['\\', ' ']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_end_at_their_line() {
        for text in ["x\n#define y", "x \\", "x\\\\ ", "x\u{2028}", "??/"] {
            let shown = comment(text);
            assert!(!shown.contains('\n') && !shown.ends_with('\\'), "{shown}");
        }
    }
}
