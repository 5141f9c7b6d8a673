//! [`Strategies`] is the list of available strategies: the built-in ones and those of users.

use carbyne_ir::ast::visit::{PartMut, parts_mut};
use carbyne_ir::ast::{Def, Module, Stmt, StmtKind};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::link::{self, File, LoadError, Loader};
use carbyne_ir::span::{LineIndex, Span};
use carbyne_ir::{resolve, text};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Ours, by file name.
const OWN: &[(&str, &str)] = &include!("../../strategies/list.in");

/// Strategies that give kernel-level specs their dataflow.
#[derive(Clone, Debug)]
pub struct Strategies {
    files: Vec<Arc<Source>>,
}

/// A strategy of a user, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Theirs {
    /// The name without `@`.
    pub name: String,
    /// The name of its file in messages; `None` for the text that is decomposed.
    pub file: Option<String>,
    /// Its line, or the line of the `import` that brings it.
    pub line: usize,
}

impl fmt::Display for Theirs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the strategy `@{}` at line {}", self.name, self.line)?;
        self.file.iter().try_for_each(|file| write!(f, " of `{file}`"))
    }
}

/// A file of strategies.
#[derive(Debug)]
pub(crate) struct Source {
    /// Its sub-specs and constants.
    pub parts: Vec<Stmt>,
    /// Its strategies.
    pub strategies: Vec<Def>,
    /// What stands above each of them, without `//`.
    pub comments: Vec<Vec<String>>,
    /// Whose each of them is; empty where they are ours.
    theirs: Vec<Theirs>,
}

impl Source {
    /// Where the strategy of that name stands, if it is a user's.
    pub(crate) fn theirs(&self, name: &str) -> Option<&Theirs> {
        self.theirs.iter().find(|t| t.name == name)
    }
}

/// Ours, read once.
fn read() -> &'static Vec<Arc<Source>> {
    // Work that is cancelled here is done by the next one.
    static READ: OnceLock<Vec<Arc<Source>>> = OnceLock::new();
    let read = |(name, text): &(&str, &str)| {
        let module = text::parse(text).ok()?;
        let module = link::link(&module, name, &mut ours).ok()?;
        Some(Arc::new(source(module, None)))
    };
    READ.get_or_init(|| OWN.iter().filter_map(read).collect())
}

impl Default for Strategies {
    fn default() -> Self {
        Strategies { files: read().clone() }
    }
}

impl Strategies {
    /// A set without strategies, to which some can be added.
    pub fn none() -> Self {
        Strategies { files: vec![] }
    }

    /// Adds the strategies of a text. `loader` reads the files that it imports; `id` is the id of
    /// the text.
    ///
    /// # Errors
    /// Errors of the text; V0237 if it has statements other than strategies, sub-specs and
    /// constants.
    pub fn add(&mut self, src: &str, id: &str, loader: &mut Loader<'_>) -> Result<(), Diagnostics> {
        self.add_as(src, (id, id), loader)
    }

    /// Adds the strategies of a text whose name in messages is not its id.
    ///
    /// # Errors
    /// Those of [`Strategies::add`].
    pub fn add_as(
        &mut self,
        src: &str,
        (id, name): (&str, &str),
        loader: &mut Loader<'_>,
    ) -> Result<(), Diagnostics> {
        let module = text::parse(src)?;
        let module = link::link(&module, id, loader)?;
        resolve::resolve_read(&module, src)?;
        let other = |s: &&Stmt| !matches!(s.kind, StmtKind::Def(_) | StmtKind::Let(_));
        if let Some(stmt) = module.items.iter().find(other) {
            let message =
                "a file of strategies contains more than strategies, sub-specs and constants";
            let mut errors = Diagnostics::default();
            errors.push(
                Diagnostic::new(Code::SubSpec, stmt.span, message)
                    .label("neither `strategy`, `def`, `let` nor `import`")
                    .help("move it into the file that is decomposed"),
            );
            return Err(errors);
        }
        self.files.insert(0, Arc::new(source(module, Some((src, Some(name))))));
        Ok(())
    }

    /// Adds those that a module defines itself; `src` is its text.
    pub(crate) fn with_those_of(&self, module: &Module, src: &str) -> Self {
        let defines = |s: &Stmt| matches!(&s.kind, StmtKind::Def(def) if def.strategy.is_some());
        let mut all = self.clone();
        if module.items.iter().any(defines) {
            all.files.insert(0, Arc::new(source(module.clone(), Some((src, None)))));
        }
        all
    }

    /// The definition of each strategy, and the lines of the comment above it, without `//`.
    pub fn iter(&self) -> impl Iterator<Item = (&Def, &[String])> {
        let of = |f: &'_ Arc<Source>| f.strategies.len();
        self.files
            .iter()
            .flat_map(move |f| (0..of(f)).map(move |i| (&f.strategies[i], &f.comments[i][..])))
    }

    /// The strategy with this name, if it is a user's.
    #[must_use]
    pub fn theirs(&self, name: &str) -> Option<&Theirs> {
        let of = |f: &&Arc<Source>| f.strategies.iter().any(|def| def.name.text == name);
        self.files.iter().find(of)?.theirs(name)
    }

    pub(crate) fn files(&self) -> &[Arc<Source>] {
        &self.files
    }
}

/// The texts of the strategies of this library, with the names of their files.
pub fn own_texts() -> &'static [(&'static str, &'static str)] {
    OWN
}

/// Reads files of ours.
fn ours(path: &str, _: &str) -> Result<File, LoadError> {
    let found = OWN.iter().find(|(name, _)| *name == path).ok_or(LoadError::Missing)?;
    Ok(File { id: found.0.to_owned(), text: found.1.to_owned() })
}

/// The definitions of a module. Those that are no strategies, and constants, stand where they are
/// used. Of users there is the text, and what messages call its file.
fn source(module: Module, from: Option<(&str, Option<&str>)>) -> Source {
    let mut out = Source { parts: vec![], strategies: vec![], comments: vec![], theirs: vec![] };
    let lines = from.map(|(src, file)| (LineIndex::new(src), file));
    let mut comments = module.header;
    for mut stmt in module.items {
        comments.append(&mut stmt.leading);
        match stmt.kind {
            StmtKind::Def(mut def) if def.strategy.is_some() => {
                // Errors point at the spec that is decomposed, not into this file.
                let blocks = def.means.iter_mut().chain([&mut def.body]);
                blocks.for_each(|block| nowhere(&mut block.stmts));
                out.theirs.extend(lines.as_ref().map(|(lines, file)| Theirs {
                    name: def.name.text.clone(),
                    file: file.map(str::to_owned),
                    line: lines.line(stmt.span.start),
                }));
                out.strategies.push(def);
                out.comments.push(std::mem::take(&mut comments));
            }
            StmtKind::Def(_) | StmtKind::Let(_) => {
                comments.clear();
                let mut stmts = vec![stmt];
                nowhere(&mut stmts);
                out.parts.append(&mut stmts);
            }
            _ => comments.clear(),
        }
    }
    out
}

/// Forgets where statements stand.
fn nowhere(stmts: &mut [Stmt]) {
    let mut todo: Vec<&mut Stmt> = stmts.iter_mut().collect();
    while let Some(stmt) = todo.pop() {
        stmt.span = Span::default();
        match &mut stmt.kind {
            StmtKind::Spec(spec) => spec.span = Span::default(),
            StmtKind::Call(call) => call.span = Span::default(),
            StmtKind::Def(def) => def.span = Span::default(),
            _ => {}
        }
        parts_mut(stmt, &mut |part: &mut PartMut<'_>| {
            if let Some(span) = part.span_mut() {
                *span = Span::default();
            }
        });
        todo.extend(stmt.kind.blocks_mut().flat_map(|b| &mut b.stmts));
    }
}
