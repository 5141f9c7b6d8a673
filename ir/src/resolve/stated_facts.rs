//! Rewrites the helps of errors that ask for a missing fact about a symbol. If the text already
//! states facts about the symbol, the help shows the missing fact in one list with them:
//! `state `where N > 0`` becomes `write `where N <= 4096, N > 0``.

use crate::ast::{Module, StmtKind};
use crate::diag::Diagnostic;
use crate::text::print_compare;

const STATE: &str = "state `where ";

/// The diagnostics, with helps that contain the stated facts of the symbols that they name.
pub fn joined<D: FromIterator<Diagnostic>>(
    module: &Module,
    all: impl IntoIterator<Item = Diagnostic>,
) -> D {
    let one = |mut d: Diagnostic| {
        let texts = d.help.iter_mut().chain(&mut d.notes);
        for text in texts.filter(|text| text.contains(STATE)) {
            *text = with_stated(module, text);
        }
        d
    };
    all.into_iter().map(one).collect()
}

fn with_stated(module: &Module, text: &str) -> String {
    let mut parts = text.split(STATE);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let facts = part.split('`').next().unwrap_or_default();
        match stated(module, facts) {
            Some(all) => out += &format!("write `where {all}, {part}"),
            None => out += &format!("{STATE}{part}"),
        }
    }
    out
}

/// The facts beside which new ones belong.
fn stated(module: &Module, facts: &str) -> Option<String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: Vec<&str> = facts.split(|c| !is_word(c)).collect();
    let named = module.items.iter().find_map(|stmt| match &stmt.kind {
        StmtKind::Symbols(all) => {
            all.names.iter().any(|n| words.contains(&n.text.as_str())).then_some(&all.facts)
        }
        _ => None,
    })?;
    let all: Vec<String> = named.iter().map(print_compare).collect();
    (!all.is_empty()).then(|| all.join(", "))
}
