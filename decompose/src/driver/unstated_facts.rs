//! States facts about symbols that the text does not state: in a module ([`with`]), as edits of its
//! text ([`edits`]), and in the words of a message ([`said`]).

use carbyne_ir::ast::{Compare, Module, Stmt, StmtKind, SymDecl};
use carbyne_ir::leaf::{Fact, listed};
use carbyne_ir::span::Span;
use carbyne_ir::text;
use num_integer::Integer;

/// The module with more facts about its symbols; none where one of them is about no symbol that the
/// module declares.
pub(crate) fn with(module: &Module, facts: &[Fact]) -> Option<Module> {
    let mut module = module.clone();
    facts.iter().try_for_each(|fact| state(&mut module.items, fact))?;
    Some(module)
}

fn state(items: &mut [Stmt], fact: &Fact) -> Option<()> {
    let name = subject(fact)?;
    let stmt = items.iter_mut().find(|stmt| declares(stmt, name))?;
    match (&mut stmt.kind, fact) {
        (StmtKind::Symbols(all), _) => all.facts.push(parsed(name, fact)?),
        // Of such a symbol it is said what divides it and from where on it is.
        (StmtKind::Sym(sym), fact) => sym.div = Some(divided(sym, fact)?),
        _ => return None,
    }
    Some(())
}

/// What divides a symbol that a fact says divides it.
fn divided(sym: &SymDecl, fact: &Fact) -> Option<i64> {
    let Fact::Divides { divisor, .. } = fact else { return None };
    let (own, more) = (sym.div.unwrap_or(1), divisor.parse::<i64>().ok()?);
    (own / own.gcd(&more)).checked_mul(more)
}

/// The symbol that a fact is about.
fn subject(fact: &Fact) -> Option<&str> {
    let name = match fact {
        Fact::Divides { value, .. } => value,
        Fact::Less { smaller, larger } if smaller == "0" => larger,
        Fact::Less { .. } | Fact::AtMost { .. } | Fact::Equal { .. } => return None,
    };
    Some(name)
}

fn declares(stmt: &Stmt, name: &str) -> bool {
    match &stmt.kind {
        StmtKind::Sym(sym) => sym.name.text == name,
        StmtKind::Symbols(all) => all.names.iter().any(|n| n.text == name),
        _ => false,
    }
}

fn parsed(name: &str, fact: &Fact) -> Option<Compare> {
    let module = text::parse(&format!("carbyne 2\nsym {name} where {fact}\n")).ok()?;
    module.items.into_iter().find_map(|stmt| match stmt.kind {
        StmtKind::Symbols(mut all) => all.facts.pop(),
        _ => None,
    })
}

/// Changes of the module's text that state facts; none where one is about a symbol of which no
/// facts are stated there.
pub(crate) fn edits(module: &Module, facts: &[Fact]) -> Option<Vec<(Span, String)>> {
    let one = |fact: &Fact| {
        let name = subject(fact)?;
        let all = module.items.iter().find_map(|stmt| match &stmt.kind {
            StmtKind::Symbols(all) if declares(stmt, name) => Some(all),
            _ => None,
        })?;
        let (end, word) = match (all.facts.last(), all.names.last()) {
            (Some(last), _) => (last.rhs.span.end, ","),
            (None, last) => (last?.span.end, " where"),
        };
        Some((Span { start: end, end }, word))
    };
    let mut out: Vec<(Span, String)> = vec![];
    for fact in facts {
        let (at, word) = one(fact)?;
        match out.iter_mut().find(|(span, _)| span.is_at(at)) {
            Some((_, text)) => text.push_str(&format!(", {fact}")),
            None => out.push((at, format!("{word} {fact}"))),
        }
    }
    Some(out)
}

/// Facts in the words of the text that declares their symbols: `where N % 8 == 0`, or
/// `sym N{div=8}`.
pub(crate) fn said(module: &Module, facts: &[Fact]) -> String {
    let (mut all, mut wheres) = (vec![], vec![]);
    for fact in facts {
        let ranged = module.items.iter().find_map(|stmt| match &stmt.kind {
            StmtKind::Sym(sym) if subject(fact) == Some(&sym.name.text) => Some(sym),
            _ => None,
        });
        match (ranged.and_then(|sym| divided(sym, fact)), ranged) {
            (Some(div), Some(sym)) => all.push(format!("`sym {}{{div={div}}}`", sym.name.text)),
            _ => wheres.push(fact.clone()),
        }
    }
    if !wheres.is_empty() {
        all.push(format!("`where {}`", listed(&wheres)));
    }
    all.join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn divides(divisor: i64, value: &str) -> Fact {
        Fact::Divides { divisor: divisor.to_string(), value: value.to_owned() }
    }

    #[test]
    fn facts_stand_where_their_symbols_are_declared() {
        let src = "carbyne 2\nsym M, N where M > 0\nsym K{div=4}\n%A:[M,N].f16.GL\n";
        let module = text::parse(src).expect("parses");
        let positive = Fact::Less { smaller: "0".to_owned(), larger: "N".to_owned() };
        let facts = [divides(8, "N"), positive, divides(6, "K")];
        let text = text::print(&with(&module, &facts).expect("both are declared"));
        assert!(text.contains("sym M, N where M > 0, N % 8 == 0, N > 0"), "{text}");
        assert!(text.contains("sym K{div=12}"), "{text}");
        assert_eq!(said(&module, &facts), "`sym K{div=12}` and `where N % 8 == 0, N > 0`");
        // What is not declared, and what is about no symbol alone.
        assert_eq!(with(&module, &[divides(8, "L")]), None);
        let (left, right) = ("M".to_owned(), "N".to_owned());
        assert_eq!(with(&module, &[Fact::Equal { left, right }]), None);
    }

    #[test]
    fn facts_are_changes_of_the_text() {
        let changed = |src: &str, facts: &[Fact]| {
            let module = text::parse(src).expect("parses");
            let mut text = src.to_owned();
            for (span, more) in edits(&module, facts)? {
                text.insert_str(span.start as usize, &more);
            }
            Some(text)
        };
        let both = [divides(8, "N"), divides(4, "M")];
        assert_eq!(
            changed("carbyne 2\nsym M, N where M > 0 typical M=8\n", &both).as_deref(),
            Some("carbyne 2\nsym M, N where M > 0, N % 8 == 0, M % 4 == 0 typical M=8\n")
        );
        assert_eq!(
            changed("carbyne 2\nsym M, N typical M=8\n", &both[..1]).as_deref(),
            Some("carbyne 2\nsym M, N where N % 8 == 0 typical M=8\n")
        );
        assert_eq!(changed("carbyne 2\nsym M, N\n", &[divides(8, "L")]), None);
    }
}
