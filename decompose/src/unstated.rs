//! What is said where a faster kernel is not written since a fact about symbols is not stated.

use crate::explain::Width;
use crate::explain::wider::Widening;
use crate::stated;
use crate::{Decomposed, Generated, GivenUp, Ranking};
use carbyne_atoms::{AtomTable, missing, tensor_map};
use carbyne_ir::ast::{FORMAT_VERSION, Module, Spec, SpecKind, StmtKind};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::leaf::Fact;
use carbyne_ir::program::{Program, SpecId};
use carbyne_ir::scalar::Memory;
use carbyne_ir::span::Span;
use std::collections::BTreeMap;

/// Facts about symbols that nobody has stated, and with which the kernels of a spec would be faster.
#[derive(Clone, Debug, PartialEq)]
pub struct Unstated {
    /// Where the spec stands.
    pub span: Span,
    /// The facts.
    pub facts: Vec<Fact>,
}

/// What a choice of strategies for a module lacks, and the warnings that say so. `planned` is the module with their bodies.
pub(crate) fn of(
    generated: &Generated<'_>,
    program: &Program,
    planned: &Module,
    rankings: &[Ranking],
) -> (Vec<Unstated>, Vec<Diagnostic>) {
    if program.symbols.is_empty() {
        return (vec![], vec![]);
    }
    let (mut all, mut warnings) = (vec![], vec![]);
    for (i, ranking) in rankings.iter().enumerate() {
        let Some(given_up) = &ranking.given_up else { continue };
        // What was looked at for a kernel of a spec is said of the spec once.
        if rankings[..i].iter().any(|r| r.given_up.is_some() && r.span.is_at(ranking.span)) {
            continue;
        }
        warnings.push(of_given_up(generated.module, ranking, given_up));
        if !given_up.facts.is_empty() {
            all.push(Unstated { span: ranking.span, facts: given_up.facts.clone() });
        }
    }
    for (spec, copied) in copied(generated, planned) {
        let pinned = spec.attrs.iter().any(|a| a.key.text == "by");
        let mut facts: Vec<Fact> = vec![];
        for fact in copied.iter().flat_map(|(_, facts)| facts) {
            if !facts.contains(fact) {
                facts.push(fact.clone());
            }
        }
        if facts.is_empty() || pinned {
            continue;
        }
        let names: Vec<&str> = copied.iter().map(|(name, _)| name.as_str()).collect();
        let message = match &names[..] {
            [one] => format!("{one} is copied by a kernel of its own before it is multiplied"),
            all => format!("{} are copied by kernels of their own before they are multiplied", all.join(" and ")),
        };
        let how = stated::said(generated.module, &facts);
        let d = Diagnostic::warning(Code::Unstated, spec.span, message)
            .label(format!("rows are not known to begin at multiples of {} bytes", tensor_map::UNIT))
            .help(format!("state {how}, if it is so: nothing has to be copied then"));
        warnings.push(d);
        all.push(Unstated { span: spec.span, facts });
    }
    (all, warnings)
}

/// The same program, with a warning for each place where factors of a product are read a few bytes at once that could be
/// copied as vectors if more were stated of symbols.
pub(crate) fn with_narrow(
    module: &Module,
    src: &str,
    mut d: Decomposed,
    table: &AtomTable,
) -> Decomposed {
    let p = &d.tile;
    if p.symbols.is_empty() {
        return d;
    }
    // Where each stands, what is read, its bytes now and then, and the facts.
    let mut all: Vec<(Span, Vec<String>, (i64, i64), Vec<Fact>)> = vec![];
    let mut widening = Widening::new(module, src, &d, table);
    for best in &d.chosen {
        let kind = |(id, _): &(SpecId, String)| p.specs[*id].kind;
        let multiplies = |kind| matches!(kind, SpecKind::MatMul | SpecKind::MatMulSet);
        if !best.choices.iter().map(kind).any(multiplies) {
            continue;
        }
        for (id, _) in best.choices.iter().filter(|c| kind(c) == SpecKind::Move) {
            let Some(t) = p.specs[*id].input_tensors().next() else { continue };
            if p.buffer_of(t).memory != Some(Memory::Gl) {
                continue;
            }
            let Some(Width::With(wider)) = widening.of(*id) else { continue };
            let (span, name) =
                (d.origins.span(p.specs[*id].node), p.tensor_name(p.buffer_of(t).tensor));
            let own = match all.iter_mut().find(|(at, ..)| at.is_at(span)) {
                Some(own) => own,
                None => {
                    all.push((span, vec![], (wider.instead_of, wider.bytes), vec![]));
                    let Some(own) = all.last_mut() else { continue };
                    own
                }
            };
            if !own.1.contains(&name) {
                own.1.push(name);
            }
            let more = wider.facts.into_iter().filter(|fact| !own.3.contains(fact));
            own.3.extend(more.collect::<Vec<_>>());
        }
    }
    for (span, names, (now, then), facts) in all {
        let message = format!("{} {} read {now} bytes at once", names.join(" and "), be(&names));
        let warning = Diagnostic::warning(Code::Unstated, span, message)
            .label(format!("vectors of {then} bytes are not known to be aligned and whole"))
            .help(format!("state {}, if it is so", stated::said(module, &facts)));
        d.warnings.push(d.tile.noted(warning));
        d.unstated.push(Unstated { span, facts });
    }
    d
}

fn be(names: &[String]) -> &'static str {
    if names.len() == 1 { "is" } else { "are" }
}

fn of_given_up(module: &Module, ranking: &Ranking, given_up: &GivenUp) -> Diagnostic {
    let GivenUp { by, cycles, why, facts } = given_up;
    let message = format!("{by} cannot be written for all sizes of the symbols");
    let d = Diagnostic::warning(Code::Unstated, ranking.span, message).label(why.clone());
    let Some(own) = ranking.instances.first() else { return d };
    let takes = own.cycles.or(own.bound).unwrap_or_default();
    let name = own.by.split('[').next().unwrap_or_default();
    d.note(format!(
        "{} is written instead: {takes:.0} cycles are estimated, {cycles:.0} of the other",
        own.by
    ))
    .help(match &facts[..] {
        [] => format!(
            "define sizes that are always the same by `let`; to take what is written, pin `by={name}`"
        ),
        facts => format!("state {}, if it is so", stated::said(module, facts)),
    })
}

/// Factors that strategies copy by a kernel before that of the product, of each spec of the module: the name, and what would
/// have to be stated of symbols for the copy engine to read it as it lies.
fn copied<'m>(
    generated: &Generated<'m>,
    planned: &Module,
) -> Vec<(&'m Spec, Vec<(String, Vec<Fact>)>)> {
    let mut specs = BTreeMap::new();
    for stmt in &generated.module.items {
        if let StmtKind::Spec(spec) = &stmt.kind {
            specs.insert(stmt.id.key(), spec);
        }
    }
    let made = planned.items.iter().filter_map(|stmt| match &stmt.kind {
        StmtKind::Spec(spec) if spec.kind == SpecKind::Move => {
            let from = stmt.from.filter(|from| !from.same(stmt.id))?;
            Some((stmt.id.key(), *specs.get(&from.key())?))
        }
        _ => None,
    });
    let made: Vec<_> = made.collect();
    if made.is_empty() {
        return vec![];
    }
    let planned = Module { version: FORMAT_VERSION, ..planned.clone() };
    let Ok(program) = generated.checked(&planned) else { return vec![] };
    let ids = program.specs_by_node();
    let mut out: Vec<(&Spec, Vec<(String, Vec<Fact>)>)> = vec![];
    for (node, spec) in made {
        let Some(t) = ids.get(&node).and_then(|id| program.specs[*id].input_tensors().next()) else {
            continue;
        };
        let one = (program.tensor_name(t), missing::aligned(&program, t, tensor_map::UNIT));
        match out.iter_mut().find(|(of, _)| of.span.is_at(spec.span)) {
            Some((_, all)) => all.push(one),
            None => out.push((spec, vec![one])),
        }
    }
    out
}
