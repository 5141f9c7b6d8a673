//! Checks and prints trees that were generated from a module. Errors of such a tree, except those
//! of limits, are defects of this crate.

use crate::resolved::elaborated;
use carbyne_ir::ast::{Module, StmtKind};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::program::Program;
use carbyne_ir::span::Span;
use carbyne_ir::{resolve, text};

/// A module from which programs are generated. Errors of a generated program, except those of
/// limits, are our defects.
pub(super) struct Generated<'a> {
    pub(super) module: &'a Module,
    /// Its text.
    pub(super) src: &'a str,
}

impl Generated<'_> {
    /// Resolves and verifies a tree that was made from the module.
    pub(super) fn checked(&self, tree: &Module) -> Result<Program, Diagnostics> {
        elaborated(tree, self.src).map_err(|errors| {
            // The printed text has lines, so that its errors name lines.
            let text = text::print(tree);
            let again = text::parse(&text).and_then(|parsed| elaborated(&parsed, &text));
            let lines = again.err().into_iter().flatten().map(|d| line_of(&text, d.span));
            let lines = lines.map(Some).chain(std::iter::repeat(None));
            errors.into_iter().zip(lines).map(|(d, line)| self.refused(d, line)).collect()
        })
    }

    /// Prints a tree and reads its text again: the same tree, with its ids, whose spans are into
    /// the text.
    pub(super) fn read_again(
        &self,
        tree: &Module,
    ) -> Result<(Module, String, Program), Diagnostics> {
        let text = text::print(tree);
        let ours = |errors: Diagnostics| -> Diagnostics {
            let refused = |d: Diagnostic| {
                let line = line_of(&text, d.span);
                self.refused(Diagnostic { span: Span::default(), related: vec![], ..d }, Some(line))
            };
            errors.into_iter().map(refused).collect()
        };
        let mut module = text::parse(&text).map_err(ours)?;
        // A text does not tell all comments and empty lines of a tree that was built in memory.
        if module != *tree && bare(&module) != bare(tree) {
            let message = "the generated text reads back as another tree";
            let d = Diagnostic::new(Code::Internal, self.kernel(), message);
            return Err(one(d.help("please report this with the file")));
        }
        module.take_ids(tree);
        let program = resolve::resolve_elaborated(&module, &text).map_err(ours)?;
        Ok((module, text, program))
    }

    pub(super) fn refused(&self, d: Diagnostic, line: Option<(usize, String)>) -> Diagnostic {
        let mut d = match d.code {
            // Limits of the hardware and of the input are the program's own.
            c if c.as_str().starts_with('X') => d,
            _ => {
                let message = format!("the generated text is refused: {d}");
                Diagnostic::new(Code::Internal, d.span, message)
                    .help("please report this with the file")
            }
        };
        if d.span.is_nowhere() {
            d.span = self.kernel();
        }
        match line {
            Some((line, text)) => d.note(format!("generated line {line}: {text}")),
            None => d,
        }
    }

    /// Where the first kernel stands.
    pub(super) fn kernel(&self) -> Span {
        let kernel = self.module.items.iter().find_map(|s| match &s.kind {
            StmtKind::Spec(spec) => Some(spec.span),
            _ => None,
        });
        kernel.unwrap_or_default()
    }
}

/// A module without its comments and empty lines.
pub(super) fn bare(module: &Module) -> Module {
    let (header, footer) = (vec![], vec![]);
    let mut out = Module { header, footer, ..module.clone() };
    let mut lists = vec![&mut out.items];
    while let Some(list) = lists.pop() {
        for stmt in list {
            (stmt.blank_above, stmt.trailing) = (false, None);
            stmt.leading.clear();
            for block in stmt.kind.blocks_mut() {
                block.footer.clear();
                lists.push(&mut block.stmts);
            }
        }
    }
    out
}

/// The line of a text where a span begins: its number and what stands there.
pub(super) fn line_of(text: &str, span: Span) -> (usize, String) {
    let (line, _) = span.line_col(text);
    (line, text.lines().nth(line.saturating_sub(1)).unwrap_or("").trim().to_owned())
}

pub(super) fn one(d: Diagnostic) -> Diagnostics {
    let mut out = Diagnostics::default();
    out.push(d);
    out
}
