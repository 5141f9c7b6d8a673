//! Writes the short answer of `explain FILE`: the chosen strategies, the instruction of each leaf,
//! the reason why a copy is not wider, and the estimated cycles.

use super::super::strategy_ranking;
use super::common::{conflicts, head, width};
use crate::failure::Source;
use crate::sanitize::sanitize;
use carbyne_atoms::{Atom, AtomTable};
use carbyne_decompose::explain::{Considered, Explained, Explanation};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::span::{LineIndex, Span};
use indexmap::IndexSet;
use std::fmt::Write;

/// Maximum number of other strategies for a kernel.
const STRATEGIES: usize = 2;
/// Maximum number of reasons for a leaf without an instruction.
const REASONS: usize = 3;
/// The minimum nearness of a mismatch that says something about the leaf, not only about the atom.
const NEAR: u32 = 3;

pub(super) fn text(found: &Explanation, source: &Source, table: &AtomTable) -> String {
    let lines = LineIndex::new(&source.text);
    let line = |span: Span| lines.line(span.start);
    let mut out = head(found, line);
    for one in &found.rankings {
        strategy_ranking::brief(one, line(one.span), STRATEGIES, &mut out);
    }
    if let Some(first) = found.choices.first() {
        // The cycles of kernels with strategies are printed above, for the whole grid.
        let whole = found.choices.iter().all(|c| c.cycles == first.cycles);
        let cycles = match found.rankings.is_empty() && whole {
            true => format!(", together {:.0} cycles of a full GPU", first.cycles),
            false => String::new(),
        };
        let _ = writeln!(out, "operations on tiles{cycles}:");
    }
    // Print equal lines only once.
    let mut said: IndexSet<String> = IndexSet::new();
    for c in &found.choices {
        let mut own = format!("  line {}: {}: {}\n", line(c.origin), sanitize(&c.text), c.chosen);
        if let Some(w) = &c.wider {
            let _ = writeln!(own, "    {}", width(w));
        }
        if let Some(w) = &c.conflicts {
            let _ = writeln!(own, "    {}", conflicts(w));
        }
        said.insert(own);
    }
    let leaves = found.leaves.iter().filter(|leaf| !leaf.chosen || leaf.atom.is_none());
    for leaf in leaves {
        said.insert(format!("line {}: {}", line(leaf.origin), of_leaf(leaf, table)));
    }
    said.iter().for_each(|own| out.push_str(own));
    out.push_str(
        "use `--all` for all candidates, `--at LINE` for one line, `--why ATOM` for an \
         instruction\n",
    );
    out
}

/// The instruction of a leaf, or the reasons why it has none.
fn of_leaf(leaf: &Explained, table: &AtomTable) -> String {
    let mut out = sanitize(&leaf.text);
    let mut mismatches = leaf.considered.iter().filter_map(|c| Some((c, c.mismatch.as_ref()?)));
    // A pinned atom that does not implement the leaf is not its instruction.
    let row =
        leaf.atom.as_deref().and_then(|name| table.get(name)).filter(|row| {
            leaf.considered.iter().any(|c| c.atom == row.name && c.mismatch.is_none())
        });
    if let Some(own) = row {
        // A text with `atom=` already names the instruction.
        let named = leaf.text.contains(&format!("atom={}", own.name));
        out.push_str(&if named { String::new() } else { format!(": {}", own.name) });
        out.push('\n');
        let wider = |c: &Considered| {
            table.get(c.atom).is_some_and(|row| bytes(row).is_some_and(|n| Some(n) > bytes(own)))
        };
        let near = mismatches.find(|(c, m)| m.nearness().0 >= NEAR && wider(c));
        if let Some((c, m)) = near.filter(|_| !leaf.generated && bytes(own).is_some()) {
            let _ = writeln!(out, "  no {}: {}", c.atom, sanitize(&m.to_string()));
            if !m.facts().is_empty() {
                let _ = writeln!(out, "  {}", sanitize(&m.help()));
            }
        }
        return out;
    }
    out.push('\n');
    let mut reasons: IndexSet<String> = IndexSet::new();
    for (c, m) in mismatches {
        if reasons.len() == REASONS || !reasons.insert(m.to_string()) {
            continue;
        }
        let _ = writeln!(out, "  no {}: {}", c.atom, sanitize(&m.to_string()));
        if let Some(fix) = &c.fix {
            let _ = writeln!(out, "    to make it match: {}", sanitize(&fix.steps.join(", then ")));
        }
    }
    let matching = leaf.considered.iter().find(|c| c.mismatch.is_none());
    if let Some(c) = matching {
        let _ = writeln!(out, "  matches: {}", c.atom);
    }
    out
}

/// The number of bytes that a thread moves with an atom; `None` if the atom is not a copy.
fn bytes(row: &Atom) -> Option<i64> {
    let first = row.operands.first()?;
    let moves = row.op.spec_kind() == Some(SpecKind::Move);
    moves.then(|| first.n_values().checked_mul(first.elem.bits()).map(|bits| bits / 8))?
}
