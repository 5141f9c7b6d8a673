//! Parses the text format: makes a [`Module`] from a text, statement by statement.
//!
//! [`pest`] reads one `step` of `grammar.pest` at a time: a statement, the head of a statement with
//! a body, or a closing brace. The functions of `statement`, `spec`, `tensor`, `tensors` and `expr`
//! convert the step to the syntax tree. This module keeps the stack of open bodies, without
//! recursion, and gives each statement its comments. After an error the reader continues at the
//! next statement ([`recover`]), up to [`crate::limits::MAX_ERRORS`] errors. `errors`,
//! `common_mistakes` and `foreign_syntax` make the messages.
//!
//! Invariant: only this folder uses pest and its `Rule`. Invariant: every step takes at least one
//! character, so reading terminates.

mod common_mistakes;
#[cfg(feature = "proptest")]
mod coverage;
mod errors;
mod expr;
mod foreign_syntax;
mod functions;
mod generated;
mod recover;
mod spec;
mod statement;
mod tensor;
mod tensors;
mod tree;

use super::comments::Comments;
use super::scan::{scan, too_long};
use crate::ast::{Block, Def, FORMAT_VERSION, Module, Spec, Stmt, StmtKind};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::limits::MAX_TEXT_BYTES;
use crate::span::Span;
use pest::Parser;
use tree::{Answer, Tree};

use generated::{Grammar, Rule};

#[cfg(feature = "proptest")]
pub use coverage::rules;

/// Parses a module.
///
/// # Errors
/// Up to [`crate::limits::MAX_ERRORS`] errors of the families `P` and `X`, in text order.
pub fn parse(text: &str) -> Result<Module, Diagnostics> {
    parse_up_to(text, MAX_TEXT_BYTES)
}

/// As [`parse`], for a text of at most `most` bytes.
pub(super) fn parse_up_to(text: &str, most: usize) -> Result<Module, Diagnostics> {
    let comments = scan(text, most).map_err(|d| only(*d))?;
    Reader::new(text, comments).module()
}

/// Parses a module from bytes that may not be UTF-8.
///
/// # Errors
/// As [`parse`], and `P0005` at the first byte that is not UTF-8.
pub fn parse_bytes(bytes: &[u8]) -> Result<Module, Diagnostics> {
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(only(too_long(bytes.len(), MAX_TEXT_BYTES)));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let at = e.valid_up_to();
        only(
            Diagnostic::new(Code::NotUtf8, Span::new(at, at + 1), "the text is not UTF-8")
                .label("this byte is not part of a character")
                .help("save the file as UTF-8"),
        )
    })?;
    parse(text)
}

fn only(d: Diagnostic) -> Diagnostics {
    let mut errors = Diagnostics::default();
    errors.push(d);
    errors
}

/// The block of a statement that a brace opens.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Part {
    /// The body, or the first branch of an `if`.
    Body,
    /// The branch after `else`.
    Else,
    /// The `means` block of a spec.
    Means,
}

/// An open block.
struct Frame {
    /// The statement of the block. `None` if its head could not be parsed.
    stmt: Option<Stmt>,
    part: Part,
    /// The opening brace.
    brace: Span,
    /// The statements so far.
    stmts: Vec<Stmt>,
}

/// Reads a text in one pass.
struct Reader<'s> {
    text: &'s str,
    comments: Comments<'s>,
    errors: Diagnostics,
    /// Whether text was skipped, so that braces may not match.
    skipped: bool,
    items: Vec<Stmt>,
    open: Vec<Frame>,
    /// The block that the last step closed, if another block of its statement may follow.
    closed: Option<Part>,
    /// The first block whose closing brace is indented less than its first line, and this brace:
    /// the block's own brace may be missing.
    outdented: Option<(Span, Span)>,
}

impl<'s> Reader<'s> {
    fn new(text: &'s str, comments: Vec<Span>) -> Self {
        Reader {
            text,
            comments: Comments::new(text, comments),
            errors: Diagnostics::default(),
            skipped: false,
            items: vec![],
            open: vec![],
            closed: None,
            outdented: None,
        }
    }

    fn module(mut self) -> Result<Module, Diagnostics> {
        let bom = if self.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let gap = self.comments.gap(bom);
        let mut header = gap.comments;
        let mut at = match self.version(gap.end) {
            Ok(end) => end,
            Err(d) => {
                // Another version may have another grammar. A text without version may still be
                // valid.
                let found = errors::found(self.text, gap.end).words;
                self.errors.push(*d);
                if found.eq_ignore_ascii_case("`carbyne`") {
                    return Err(self.errors);
                }
                gap.end
            }
        };
        header.extend(self.comments.inside(at));
        header.extend(self.comments.trailing(at));
        at = self.comments.end_after(at);
        let footer = loop {
            let gap = self.comments.gap(at);
            if gap.end >= self.text.len() {
                break gap.comments;
            }
            if self.errors.is_full() {
                return Err(self.errors);
            }
            at = self.step(gap);
        };
        self.check_closed();
        if !self.errors.is_empty() {
            return Err(self.errors);
        }
        Ok(Module { header, items: self.items, footer })
    }

    /// Reads `carbyne 2`.
    fn version(&self, at: usize) -> Answer<usize> {
        let Ok(pairs) = Grammar::parse(Rule::version, &self.text[at..]) else {
            if self.text.trim().is_empty() {
                let help = format!(
                    "begin it with `carbyne {FORMAT_VERSION}`; if a command wrote it, see its \
                     errors"
                );
                let d = Diagnostic::new(Code::Version, Span::new(0, 0), "the text is empty");
                return Err(Box::new(d.label("nothing stands here").help(help)));
            }
            let found = errors::found(self.text, at);
            let place = match found.words.eq_ignore_ascii_case("`carbyne`") {
                true => "in its place",
                false => "above the first statement",
            };
            return Err(Box::new(
                Diagnostic::new(
                    Code::Version,
                    found.span,
                    "the text does not begin with a format version",
                )
                .label(format!("expected `carbyne {FORMAT_VERSION}`, found {}", found.words))
                .help(format!("write `carbyne {FORMAT_VERSION}` {place}")),
            ));
        };
        let tree = Tree { base: at, comments: &self.comments, params: &[] };
        let mut parts = tree.first(pairs)?.parts();
        let number = parts.next(Rule::int)?;
        let end = number.span().end as usize;
        let found = errors::short(number.text());
        let (message, help) = match number.text().parse() {
            Ok(FORMAT_VERSION) => return Ok(end),
            Ok(1) => (
                "this build does not read texts of version 1: see docs/version1.md".to_owned(),
                "in its place",
            ),
            _ => (
                format!("this build does not read format version `{found}`"),
                "in its place, or use the version of carbyne that wrote the text",
            ),
        };
        let help = format!("write `carbyne {FORMAT_VERSION}` {help}");
        Err(Box::new(Diagnostic::new(Code::Version, number.span(), message).help(help)))
    }

    /// Reads one statement, head or brace. Returns its end.
    fn step(&mut self, gap: super::comments::Gap) -> usize {
        let at = gap.end;
        let closed = self.closed.take();
        let pairs = match Grammar::parse(Rule::step, &self.text[at..]) {
            Ok(pairs) => pairs,
            Err(e) => {
                let d = errors::syntax(self.text, at, e, !self.open.is_empty());
                return self.recover(at, d);
            }
        };
        let params = match self.open.first() {
            Some(Frame { stmt: Some(Stmt { kind: StmtKind::Def(def), .. }), .. }) => {
                &def.params[..]
            }
            _ => &[],
        };
        let tree = Tree { base: at, comments: &self.comments, params };
        let step = match tree.first(pairs) {
            Ok(step) => step,
            Err(d) => return self.recover(at, *d),
        };
        let (rule, span) = (step.rule(), step.span());
        let end = span.end as usize;
        match rule {
            Rule::block_end => self.close(gap.comments, span),
            Rule::else_head | Rule::body_head => {
                let (before, part) = match rule {
                    Rule::else_head => (Part::Body, Part::Else),
                    _ => (Part::Means, Part::Body),
                };
                let stmts = self.open.last_mut().map_or(&mut self.items, |f| &mut f.stmts);
                let Some(mut stmt) = stmts.pop_if(|_| closed == Some(before)) else {
                    if self.skipped && rule == Rule::body_head {
                        // The body of a head that could not be parsed.
                        self.open_body(None, part, end);
                        return end;
                    }
                    let d = match rule {
                        Rule::else_head => {
                            let word = Span::new(at, at + "else".len());
                            Diagnostic::new(Code::Syntax, word, "`else` without `if`")
                                .label("no `if` ends directly before it")
                                .help("write `else` directly after the `}` of an `if`")
                        }
                        _ => Diagnostic::new(Code::Syntax, span, "`{` without a head")
                            .label("no head and no `means` block ends directly before it")
                            .help("write the head of a spec, a loop or an `if` before it"),
                    };
                    return self.recover(at, d);
                };
                let mut above = gap.comments;
                above.extend(self.comments.inside(end));
                match &mut stmt.kind {
                    StmtKind::If { then, .. } => then.footer.extend(above),
                    StmtKind::Spec(Spec { means: Some(means), .. })
                    | StmtKind::Def(Def { means: Some(means), .. }) => means.footer.extend(above),
                    _ => {}
                }
                self.open_body(Some(stmt), part, end);
                end
            }
            _ => {
                let kind = match statement::statement(step) {
                    Ok(kind) => kind,
                    Err(d) => return self.recover_after(end, *d),
                };
                let mut leading = gap.comments;
                leading.extend(self.comments.inside(end));
                let trailing = self.comments.trailing(end);
                let first = self.open.last().is_some_and(|f| f.stmts.is_empty());
                let blank_above = gap.blank && !first;
                let stmt = Stmt { blank_above, leading, trailing, span, ..Stmt::new(kind) };
                let behind = self.comments.end_after(end);
                if statement::opens_body(&stmt.kind) {
                    let part = match &stmt.kind {
                        StmtKind::Spec(Spec { means: Some(_), .. })
                        | StmtKind::Def(Def { means: Some(_), .. }) => Part::Means,
                        _ => Part::Body,
                    };
                    self.open_body(Some(stmt), part, end);
                } else {
                    self.push(stmt);
                }
                behind
            }
        }
    }

    /// The start of the line of a place.
    fn line(&self, at: Span) -> usize {
        self.text.get(..at.start as usize).and_then(|t| t.rfind('\n')).map_or(0, |n| n + 1)
    }

    /// The indentation of the line of a place.
    fn indent(&self, at: Span) -> usize {
        let line = self.text.get(self.line(at)..).unwrap_or("");
        line.len() - line.trim_start_matches([' ', '\t']).len()
    }

    fn push(&mut self, stmt: Stmt) {
        self.open.last_mut().map_or(&mut self.items, |f| &mut f.stmts).push(stmt);
    }

    /// Opens a body whose brace ends at `end`.
    fn open_body(&mut self, stmt: Option<Stmt>, part: Part, end: usize) {
        let brace = Span::new(end.saturating_sub(1), end);
        self.open.push(Frame { stmt, part, brace, stmts: vec![] });
    }

    /// Closes the innermost body with the brace at `brace`.
    fn close(&mut self, mut footer: Vec<String>, brace: Span) -> usize {
        let end = brace.end as usize;
        let Some(frame) = self.open.pop() else {
            if !self.skipped {
                self.errors.push(
                    Diagnostic::new(Code::Syntax, brace, "`}` without a `{`")
                        .label("no body is open here")
                        .help("remove it, or add the missing `{`"),
                );
            }
            return end;
        };
        let before = self.text.get(..brace.start as usize).unwrap_or("");
        if self.outdented.is_none()
            && before.trim_end_matches([' ', '\t']).ends_with('\n')
            && self.indent(brace) < self.indent(frame.brace)
        {
            self.outdented = Some((frame.brace, brace));
        }
        footer.extend(self.comments.trailing(end));
        let Some(mut stmt) = frame.stmt else { return self.comments.end_after(end) };
        stmt.span = stmt.span.to(brace);
        let block = Block { stmts: frame.stmts, footer };
        match &mut stmt.kind {
            StmtKind::Spec(spec) if frame.part == Part::Means => {
                spec.means = Some(block);
                self.closed = Some(Part::Means);
            }
            StmtKind::Spec(spec) => spec.body = Some(block),
            StmtKind::Def(def) if frame.part == Part::Means => {
                def.means = Some(block);
                self.closed = Some(Part::Means);
            }
            StmtKind::Def(def) => def.body = block,
            StmtKind::For { body, .. } => *body = block,
            StmtKind::If { otherwise, .. } if frame.part == Part::Else => *otherwise = Some(block),
            StmtKind::If { then, .. } => {
                *then = block;
                self.closed = Some(Part::Body);
            }
            _ => {}
        }
        self.push(stmt);
        self.comments.end_after(end)
    }

    /// Reports a body that is still open at the end of the text.
    fn check_closed(&mut self) {
        if self.skipped && !self.errors.is_empty() {
            return;
        }
        if let Some(frame) = self.open.last() {
            let whole = self.text.len();
            let (brace, at, why) = match self.outdented {
                Some((open, close)) => (open, close, "this `}` closes an outer body"),
                None => (frame.brace, Span::new(whole, whole), "the text ends here"),
            };
            // The missing brace goes to the end of the text, or before the line of the other `}`.
            let end = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
            let (start, before) = match self.outdented {
                Some(_) => (self.line(at), ""),
                None => (whole, if self.text.ends_with('\n') { "" } else { end }),
            };
            let indent = " ".repeat(self.indent(brace));
            self.errors.push(
                Diagnostic::new(Code::Syntax, brace, "this body is not closed")
                    .label("opened here")
                    .related(at, why)
                    .help("add `}`")
                    .edit(Span::new(start, start), format!("{before}{indent}}}{end}")),
            );
        }
    }
}
