//! Prints a [`Module`] as a text, and so formats texts, with one statement a line, an indentation
//! of two spaces for each body, and at most 100 columns if possible.
//!
//! Invariant: equal modules give equal texts, which end with a line break. Printing does not
//! recurse, and indentation is limited to the maximum nesting of a text.

mod expr;
mod statement;
mod tensor;
mod tensors;

use crate::ast::{Block, Compare, Expr, FORMAT_VERSION, Module, Stmt, StmtKind, View};
use crate::limits::MAX_NESTING;

/// The indentation of a body, in columns.
const INDENT: usize = 2;

/// The text of a module.
pub fn print(module: &Module) -> String {
    print_indented(module, INDENT).0
}

/// The text of a module without indentation, and the start of each statement.
pub(super) fn print_plain(module: &Module) -> (String, Vec<(usize, &Stmt)>) {
    print_indented(module, 0)
}

fn print_indented(module: &Module, indent: usize) -> (String, Vec<(usize, &Stmt)>) {
    let mut out = String::new();
    comments(&mut out, 0, &module.header);
    out.push_str(&format!("carbyne {FORMAT_VERSION}\n"));
    let places = stmts(&mut out, &module.items, indent);
    comments(&mut out, 0, &module.footer);
    (out, places)
}

/// The text of a statement up to `{`, without comments.
pub(super) fn print_head(stmt: &Stmt) -> String {
    let mut out = String::new();
    statement::head(&mut out, 0, &stmt.kind);
    out
}

/// The text of a number.
pub fn print_number(e: &Expr) -> String {
    statement::number(e)
}

/// The text of a view of a tensor: `%A.tile([64,32])[0,0]`
pub fn print_view(view: &View) -> String {
    let mut out = String::new();
    tensor::view(&mut out, '%', view);
    out
}

/// The text of an attribute: `axis=1`
pub fn print_attribute(attr: &crate::ast::Attr) -> String {
    let mut out = String::new();
    tensor::attribute(&mut out, attr);
    out
}

/// The text of a comparison.
pub fn print_compare(c: &Compare) -> String {
    statement::compare(c)
}

/// A partly printed list of statements.
struct Open<'m> {
    rest: std::slice::Iter<'m, Stmt>,
    /// The block of the statements. `None` for a module.
    block: Option<&'m Block>,
    /// The other block of the statement, and the text between the two blocks.
    next: Option<(&'static str, &'m Block)>,
}

/// Prints statements. Returns the start of each.
fn stmts<'m>(out: &mut String, items: &'m [Stmt], by: usize) -> Vec<(usize, &'m Stmt)> {
    let mut places = vec![];
    // The indentation is limited to the maximum nesting of a text.
    let columns = |bodies: usize| by * bodies.min(MAX_NESTING);
    let mut stack = vec![Open { rest: items.iter(), block: None, next: None }];
    while let Some(top) = stack.last_mut() {
        let stmt = top.rest.next();
        let (block, next) = (top.block, top.next);
        let depth = columns(stack.len() - 1);
        if let Some(stmt) = stmt {
            places.push((out.len(), stmt));
            one(out, depth, stmt);
            if let Some((block, next)) = blocks(&stmt.kind) {
                stack.push(Open { rest: block.stmts.iter(), block: Some(block), next });
            }
            continue;
        }
        stack.pop();
        let Some(block) = block else { continue };
        comments(out, depth, &block.footer);
        indent(out, columns(stack.len() - 1));
        match next {
            Some((between, other)) => {
                out.push_str(between);
                stack.push(Open { rest: other.stmts.iter(), block: Some(other), next: None });
            }
            None => out.push_str("}\n"),
        }
    }
    places
}

/// The first block of a statement, and if there is another one, the text between them and this
/// block.
fn blocks(kind: &StmtKind) -> Option<(&Block, Option<(&'static str, &Block)>)> {
    match kind {
        StmtKind::Spec(spec) => match (&spec.means, &spec.body) {
            (Some(means), body) => Some((means, body.as_ref().map(|body| ("} {\n", body)))),
            (None, body) => body.as_ref().map(|body| (body, None)),
        },
        StmtKind::Def(def) => Some(match &def.means {
            Some(means) => (means, Some(("} {\n", &def.body))),
            None => (&def.body, None),
        }),
        StmtKind::For { body, .. } => Some((body, None)),
        StmtKind::If { then, otherwise, .. } => {
            Some((then, otherwise.as_ref().map(|other| ("} else {\n", other))))
        }
        _ => None,
    }
}

/// A statement, or its head up to `{`, with its comments.
fn one(out: &mut String, depth: usize, stmt: &Stmt) {
    if stmt.blank_above {
        out.push('\n');
    }
    comments(out, depth, &stmt.leading);
    indent(out, depth);
    statement::head(out, depth, &stmt.kind);
    if let Some(text) = &stmt.trailing {
        out.push(' ');
        comment(out, &text.replace('\n', " "));
    }
    out.push('\n');
}

fn comments(out: &mut String, depth: usize, texts: &[String]) {
    for line in texts.iter().flat_map(|text| text.split('\n')) {
        indent(out, depth);
        comment(out, line);
        out.push('\n');
    }
}

fn comment(out: &mut String, text: &str) {
    out.push_str("//");
    if !text.is_empty() {
        out.push(' ');
        out.push_str(text);
    }
}

fn indent(out: &mut String, depth: usize) {
    out.extend(std::iter::repeat_n(' ', depth));
}
