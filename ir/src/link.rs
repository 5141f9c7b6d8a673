//! Replaces the `import` statements of a module by the definitions of the imported files: sub-specs
//! (specs with parameters, used like functions) and strategies.
//!
//! The library reads no files. The caller of [`link`] passes a function that reads files and
//! decides which files may be read.
//!
//! An import brings the definitions of a file, and transitively those of its own imports, each file
//! once. Constants of a file stay private: they are renamed to unused names. A file with other
//! statements is an error. Imported statements get the place of the `import`, and their specs name
//! the original file and line (`loc=`).
//!
//! Invariant: for one module, each file is linked at most once, and the linked files have at most
//! [`MAX_TEXT_BYTES`] in all. A file that imports itself, also through others, is an error.

use crate::ast::visit::{Of, Part, Walk, each_mut, parts};
use crate::ast::{
    Attr, AttrValue, ExprKind, Module, Stmt, StmtKind, Substitution, TensorExpr, Text, Unfit,
};
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::limits::{MAX_IMPORTS, MAX_TEXT_BYTES};
use crate::span::{LineIndex, Span};
use crate::{resolve, text};
use std::collections::{HashMap, HashSet};

/// A file that was read.
#[derive(Clone, Debug)]
pub struct File {
    /// The identity of the file: equal for all paths to this file, different from that of all other
    /// files.
    pub id: String,
    /// The whole text.
    pub text: String,
}

/// Why a file was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The file does not exist.
    Missing,
    /// The file lies outside of the folder of the file that imports it, and must not be read.
    Outside,
    /// The file cannot be read, for this reason.
    Unreadable(String),
}

/// Reads the file at a path. The arguments are the path as the `import` writes it and the
/// [id](File::id) of the importing file.
pub type Loader<'a> = dyn FnMut(&str, &str) -> Result<File, LoadError> + 'a;

/// Replaces the imports of a module by the sub-specs of the imported files. `id` is the id of the
/// module's own file.
///
/// # Errors
/// V0238 for every file that cannot be imported, at its `import`.
pub fn link(module: &Module, id: &str, loader: &mut Loader<'_>) -> Result<Module, Diagnostics> {
    if !module.items.iter().any(|s| matches!(s.kind, StmtKind::Import(_))) {
        return Ok(module.clone());
    }
    let mut linker = Linker {
        loader,
        files: vec![],
        known: HashMap::new(),
        open: vec![(id.to_owned(), "this file".to_owned())],
        taken: HashSet::new(),
        bytes: 0,
    };
    linker.names_of(&module.items);
    let mut errors = Diagnostics::default();
    let mut brought = HashSet::new();
    let mut items = vec![];
    // Comments of imports that add no statement.
    let mut comments: Vec<String> = vec![];
    for stmt in &module.items {
        let StmtKind::Import(path) = &stmt.kind else {
            let mut stmt = stmt.clone();
            stmt.leading.splice(0..0, comments.drain(..));
            items.push(stmt);
            continue;
        };
        comments.extend(stmt.leading.iter().chain(&stmt.trailing).cloned());
        match linker.file(path, id) {
            Ok(file) => {
                let new = linker.bring(file, path.span, &mut brought);
                for mut stmt in new {
                    stmt.leading.splice(0..0, comments.drain(..));
                    items.push(stmt);
                }
            }
            Err(d) => errors.push(*d),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let footer = comments.into_iter().chain(module.footer.iter().cloned()).collect();
    Ok(Module { header: module.header.clone(), items, footer })
}

/// A file whose sub-specs are valid.
struct Linked {
    /// Its own sub-specs and the constants that they need, without comments.
    items: Vec<Stmt>,
    /// The numbers of the files that it imports.
    imports: Vec<usize>,
}

struct Linker<'l, 'f> {
    loader: &'l mut Loader<'f>,
    files: Vec<Linked>,
    /// The number of each file, by id.
    known: HashMap<String, usize>,
    /// The files whose import is in progress: ids, and paths as written.
    open: Vec<(String, String)>,
    /// Names that constants of files must not have.
    taken: HashSet<String>,
    /// The count of bytes read so far.
    bytes: usize,
}

type Fallible<T> = Result<T, Box<Diagnostic>>;

fn fail<T>(path: &Text, message: String, label: &str, help: &str) -> Fallible<T> {
    Err(Box::new(Diagnostic::new(Code::Import, path.span, message).label(label).help(help)))
}

impl Linker<'_, '_> {
    /// The number of a file; a new file is read first.
    fn file(&mut self, path: &Text, from: &str) -> Fallible<usize> {
        let shown: String = path.text.chars().take(128).collect();
        let label = "imported here";
        let file = match (self.loader)(&path.text, from) {
            Ok(file) => file,
            Err(LoadError::Missing) => {
                let help = "correct the path: it is relative to the folder of the importing file";
                return fail(path, format!("there is no file `{shown}`"), label, help);
            }
            Err(LoadError::Outside) => {
                return fail(
                    path,
                    format!("`{shown}` is outside of the folder of the importing file"),
                    label,
                    "move the file below that folder, or allow its folder: `--allow-import DIR`",
                );
            }
            Err(LoadError::Unreadable(why)) => {
                let why: String = why.chars().take(128).collect();
                let help = "import a readable text file";
                return fail(path, format!("`{shown}` cannot be read: {why}"), label, help);
            }
        };
        if let Some(at) = self.open.iter().position(|(id, _)| *id == file.id) {
            let way: Vec<&str> = self.open[at..].iter().map(|(_, p)| p.as_str()).collect();
            let label = match way.len() {
                1 => label.to_owned(),
                _ => format!("through {}", way.join(", ")),
            };
            return fail(
                path,
                match at {
                    0 => format!("`{shown}` is the importing file itself"),
                    _ => format!("`{shown}` imports itself"),
                },
                &label,
                "move the shared sub-specs into a third file",
            );
        }
        if let Some(number) = self.known.get(&file.id) {
            return Ok(*number);
        }
        if self.open.len() > MAX_IMPORTS {
            let message = format!("more than {MAX_IMPORTS} files import each other in a chain");
            return fail(path, message, label, "import the needed files directly");
        }
        self.bytes = self.bytes.saturating_add(file.text.len());
        if self.bytes > MAX_TEXT_BYTES {
            let message = format!("the imported files have more than {MAX_TEXT_BYTES} bytes");
            return fail(path, message, label, "import fewer or shorter files");
        }
        self.open.push((file.id.clone(), shown.clone()));
        let linked = self.read(&file);
        self.open.pop();
        let linked = linked.map_err(|d| {
            let line = d.span.line_col(&file.text).0;
            let wrong = Diagnostic::new(Code::Import, path.span, format!("`{shown}` has errors"))
                .label(label)
                .note(format!("{shown}:{line}: {}: {}", d.code, d.message))
                .help("correct the imported file first");
            // Errors of files further down the chain of imports.
            Box::new(d.notes.iter().fold(wrong, |wrong, note| wrong.note(note.clone())))
        })?;
        self.files.push(linked);
        let number = self.files.len() - 1;
        self.known.insert(file.id, number);
        Ok(number)
    }

    /// Reads a file and checks its sub-specs.
    fn read(&mut self, file: &File) -> Fallible<Linked> {
        let first = |errors: Diagnostics| {
            let internal =
                || Diagnostic::new(Code::Internal, Span::default(), "an error list is empty");
            Box::new(errors.into_iter().next().unwrap_or_else(internal))
        };
        let mut module = text::parse(&file.text).map_err(first)?;
        self.names_of(&module.items);
        let mut imports = vec![];
        let mut whole = vec![];
        let mut brought = HashSet::new();
        for stmt in &mut module.items {
            match &mut stmt.kind {
                StmtKind::Import(path) => {
                    let number = self.file(path, &file.id)?;
                    imports.push(number);
                    whole.extend(self.bring(number, path.span, &mut brought));
                }
                StmtKind::Let(_) | StmtKind::Def(_) => {
                    stmt.leading.clear();
                    stmt.trailing = None;
                    whole.push(stmt.clone());
                }
                _ => {
                    return Err(Box::new(
                        Diagnostic::new(
                            Code::Import,
                            stmt.span,
                            "an imported file has more than sub-specs, constants and imports",
                        )
                        .label("neither `def`, `let` nor `import`")
                        .help("move this statement into the importing file"),
                    ));
                }
            }
        }
        let checked = Module { items: whole, ..module.clone() };
        resolve::resolve_read(&checked, &file.text).map_err(first)?;
        module.items.retain(|s| !matches!(s.kind, StmtKind::Import(_)));
        let shown = self.open.last().map_or("", |(_, shown)| shown.as_str());
        let lines = LineIndex::new(&file.text);
        each_mut(&mut module.items, &mut |stmt| {
            let line = lines.line(stmt.span.start);
            comes_from(stmt, &format!("{shown}:{line}"));
        });
        let items = self.with_own_constants(needed(module.items), &file.id)?;
        Ok(Linked { items, imports })
    }

    /// The statements of a file and of its imports, definitions before their uses. Files in
    /// `brought` are left out.
    fn bring(&self, number: usize, at: Span, brought: &mut HashSet<usize>) -> Vec<Stmt> {
        let mut out = vec![];
        let mut todo = vec![(number, false)];
        while let Some((number, ready)) = todo.pop() {
            let file = &self.files[number];
            if ready {
                out.extend(file.items.iter().map(|stmt| moved(stmt, at)));
            } else if brought.insert(number) {
                todo.push((number, true));
                todo.extend(file.imports.iter().rev().map(|n| (*n, false)));
            }
        }
        out
    }

    /// Renames the constants to unused names.
    fn with_own_constants(&mut self, items: Vec<Stmt>, id: &str) -> Fallible<Vec<Stmt>> {
        let file = id.rsplit(['/', '\\']).next().unwrap_or(id);
        let stem = file.split('.').next().unwrap_or(file);
        let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        let stem: String = stem.chars().take(64).map(word).collect();
        let mut by = Substitution { budget: usize::MAX, ..Substitution::default() };
        for name in items.iter().flat_map(bindings) {
            let plain = format!("{name}_{stem}");
            let others = (2_usize..).map(|n| format!("{plain}_{n}"));
            let free =
                std::iter::once(plain.clone()).chain(others).find(|n| !self.taken.contains(n));
            let free = free.unwrap_or(plain);
            self.taken.insert(free.clone());
            by.rename_number(name, &free);
        }
        items.into_iter().map(|stmt| replaced(stmt, &mut by).map_err(unexpected)).collect()
    }

    /// Reserves all names of numbers in these statements, so that no constant of another file gets
    /// one.
    fn names_of(&mut self, items: &[Stmt]) {
        each_number(items, &mut |name| {
            if !self.taken.contains(name) {
                self.taken.insert(name.to_owned());
            }
        });
    }
}

fn unexpected(_: Unfit) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(Code::Internal, Span::default(), "a generated name is not valid"))
}

/// Adds `loc=` to a spec, or to the applications of an expression, unless it has one.
fn comes_from(stmt: &mut Stmt, place: &str) {
    if stmt.loc().is_some() {
        return;
    }
    let attr = || Attr::loc(place);
    match &mut stmt.kind {
        StmtKind::Spec(spec) => spec.attrs.push(attr()),
        StmtKind::Assign { value, .. } => {
            let mut todo = vec![value];
            while let Some(value) = todo.pop() {
                if let TensorExpr::Apply(apply) = value {
                    apply.attrs.push(attr());
                    todo.extend(&mut apply.args);
                }
            }
        }
        _ => {}
    }
}

/// Calls `visit` with all names of numbers, and with attribute words, which may be such names.
fn each_number(items: &[Stmt], visit: &mut dyn FnMut(&str)) {
    for stmt in Walk::new(items).with_means().stmts() {
        parts(stmt, &mut |part| match part {
            Part::Defined(name, Of::Number) | Part::Referred(name, Of::Number) => visit(&name.text),
            Part::Expr(e) => {
                if let ExprKind::Name(name) = &e.kind {
                    visit(name);
                }
            }
            Part::Attr(attr) => {
                if let AttrValue::Word(word) = &attr.value {
                    visit(word);
                }
            }
            _ => {}
        });
    }
}

fn bindings(stmt: &Stmt) -> impl Iterator<Item = &str> {
    let all = match &stmt.kind {
        StmtKind::Let(all) => all.as_slice(),
        _ => &[],
    };
    all.iter().map(|(name, _)| name.text.as_str())
}

/// The statements, except constants that no sub-spec uses.
fn needed(items: Vec<Stmt>) -> Vec<Stmt> {
    let mut used: HashSet<String> = HashSet::new();
    let mut out = vec![];
    for mut stmt in items.into_iter().rev() {
        if let StmtKind::Let(all) = &mut stmt.kind {
            let mut kept = vec![];
            while let Some((name, value)) = all.pop() {
                if used.contains(&name.text) {
                    let one = Stmt::new(StmtKind::Let(vec![(name.clone(), value.clone())]));
                    each_number(std::slice::from_ref(&one), &mut |n| used.extend([n.to_owned()]));
                    kept.push((name, value));
                }
            }
            kept.reverse();
            *all = kept;
            if all.is_empty() {
                continue;
            }
        }
        each_number(std::slice::from_ref(&stmt), &mut |n| used.extend([n.to_owned()]));
        out.push(stmt);
    }
    out.reverse();
    out
}

/// A statement with a substitution applied to its head and to its bodies.
fn replaced(mut stmt: Stmt, by: &mut Substitution) -> Result<Stmt, Unfit> {
    by.head(&mut stmt)?;
    for block in stmt.kind.blocks_mut() {
        *block = by.block(block)?;
    }
    Ok(stmt)
}

/// A copy of a statement at another place.
fn moved(stmt: &Stmt, at: Span) -> Stmt {
    let mut by = Substitution { budget: usize::MAX, span: Some(at), ..Substitution::default() };
    let copy = Stmt::derived(stmt.kind.clone(), stmt);
    replaced(copy.clone(), &mut by).unwrap_or(copy)
}
