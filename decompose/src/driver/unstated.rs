//! Warns about faster kernels that were not written because a fact about symbols is not stated:
//! about factors that are copied first, about better instances of strategies, and about copies that
//! could be wider. The facts are found by trying them.

use super::decomposed::Unstated;
use super::unstated_facts;
use super::wider::Widening;
use super::wider::Width;
use crate::cost::constants::WORSE;
use crate::driver::decomposed::{Decomposed, Options};
use crate::driver::generated::Generated;
use crate::driver::kernels::ranked;
use crate::resolved::elaborated;
use crate::strategies::candidates::{GivenUp, Ranking};
use carbyne_atoms::{AtomTable, missing_facts, tensor_map};
use carbyne_ir::ast::{Key, Module, Spec, SpecKind, StmtKind};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::VarInfo;
use carbyne_ir::leaf::Fact;
use carbyne_ir::program::{Program, SpecId};
use carbyne_ir::span::Span;
use std::collections::BTreeMap;

/// What factors that strategies copy before a product lack, and the warnings that say so. `planned`
/// is the module with the bodies of its kernels.
pub(super) fn of_copied(
    generated: &Generated<'_>,
    program: &Program,
    planned: &Module,
) -> (Vec<Unstated>, Vec<Diagnostic>) {
    let (mut all, mut warnings) = (vec![], vec![]);
    if program.symbols.is_empty() {
        return (all, warnings);
    }
    for Copied { spec, names, facts } in copied(generated, planned) {
        // Who pins a strategy knows what it does.
        if facts.is_empty() || spec.attr(Key::By).is_some() {
            continue;
        }
        let message = match &names[..] {
            [one] => format!("{one} is copied first, by a kernel of its own"),
            all => format!("{} are copied first, by kernels of their own", all.join(" and ")),
        };
        let (unit, how) = (tensor_map::UNIT, unstated_facts::said(generated.module, &facts));
        let d = Diagnostic::warning(Code::Unstated, spec.span, message)
            .label(format!("rows are not known to begin at multiples of {unit} bytes"))
            .help(format!("state {how} if it holds: then nothing is copied to align rows"));
        warnings.push(d);
        all.push(Unstated { span: spec.span, facts });
    }
    (all, warnings)
}

/// What symbols would be divided by.
const DIVISORS: [i64; 3] = [8, 64, 256];
/// How often strategies are chosen with facts, for the sake of all instances.
const MOST_CHOSEN: usize = 12;

/// The same program, with a warning for each instance that is better than what is written.
pub(crate) fn with_given_up(
    module: &Module,
    src: &str,
    mut d: Decomposed,
    (table, options): (&AtomTable, &Options),
) -> Decomposed {
    let (mut seen, mut left): (Vec<Span>, usize) = (vec![], MOST_CHOSEN);
    for i in 0..d.rankings.len() {
        let ranking = &d.rankings[i];
        let Some(given_up) = ranking.given_up.clone() else { continue };
        // What was looked at for a kernel of a spec is said of the spec once.
        if seen.iter().any(|span| span.is_at(ranking.span)) {
            continue;
        }
        let span = ranking.span;
        seen.push(span);
        let facts = chosen_with(module, src, ranking, (table, options), &mut left);
        let given_up = GivenUp { facts: facts.unwrap_or_default(), ..given_up };
        let warning = of_given_up(module, ranking, &given_up);
        d.warnings.push(d.tile.noted(warning));
        if !given_up.facts.is_empty() {
            d.unstated.push(Unstated { span, facts: given_up.facts.clone() });
        }
        d.rankings[i].given_up = Some(given_up);
    }
    d
}

/// Facts about symbols, that they are positive and what divides them, with which a better instance
/// than the one that is written is chosen, and can be written.
fn chosen_with(
    module: &Module,
    src: &str,
    ranking: &Ranking,
    (table, options): (&AtomTable, &Options),
    left: &mut usize,
) -> Option<Vec<Fact>> {
    let p = elaborated(module, src).ok()?;
    let own = ranking.instances.first()?.cycles?;
    let mut does = |facts: &[Fact]| {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        let Some(stated) = unstated_facts::with(module, facts) else { return false };
        let Ok(all) = ranked(&stated, src, table, options) else { return false };
        let own_kernel = |r: &&Ranking| r.span.is_at(ranking.span) && r.kernel == ranking.kernel;
        let found = all.iter().find(own_kernel);
        let best = found.filter(|r| r.given_up.is_none()).and_then(|r| r.instances.first()?.cycles);
        best.is_some_and(|cycles| cycles * WORSE < own)
    };
    // Other facts, and what a symbol usually is, may not allow it.
    let allowed = |fact: &Fact| {
        let stated = unstated_facts::with(module, std::slice::from_ref(fact));
        stated.is_some_and(|module| elaborated(&module, src).is_ok())
    };
    let of = |fact: &dyn Fn(VarInfo) -> Option<Fact>| -> Vec<Fact> {
        let infos = p.symbols.iter().map(|symbol| p.arena.var_info(*symbol));
        infos.filter_map(fact).filter(&allowed).collect()
    };
    let positive = of(&|info| {
        let (smaller, larger) = ("0".to_owned(), info.name);
        (info.lo < 1).then_some(Fact::Less { smaller, larger })
    });
    let divided = |by: i64| {
        of(&|info| {
            let (divisor, value) = (by.to_string(), info.name);
            (info.div % by != 0).then_some(Fact::Divides { divisor, value })
        })
    };
    let mut sets = vec![positive.clone()];
    sets.extend(DIVISORS.map(|by| [positive.clone(), divided(by)].concat()));
    sets.retain(|facts| !facts.is_empty());
    sets.dedup();
    let mut facts = sets.into_iter().find(|facts| does(facts))?;
    let mut at = 0;
    while at < facts.len() && facts.len() > 1 {
        let mut less = facts.clone();
        less.remove(at);
        match does(&less) {
            true => facts = less,
            false => at += 1,
        }
    }
    Some(facts)
}

/// The same program, with a warning for each place where factors of a product are read a few bytes
/// at once that could be copied as vectors if more were stated of symbols.
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
    let mut all: Vec<Narrow> = vec![];
    let mut widening = Widening::new(module, src, &d, table);
    for best in &d.chosen {
        let kind = |(id, _): &(SpecId, String)| p.specs[*id].kind;
        let multiplies = |kind: SpecKind| kind.is_product();
        if !best.choices.iter().map(kind).any(multiplies) {
            continue;
        }
        for (id, _) in best.choices.iter().filter(|c| kind(c) == SpecKind::Move) {
            let Some(t) = p.specs[*id].input_tensors().next() else { continue };
            if !p.buffer_of(t).is_global() {
                continue;
            }
            let Some(Width::With(wider)) = widening.of(*id) else { continue };
            let span = d.origins.span(p.specs[*id].node);
            let name = p.tensor_name(p.buffer_of(t).tensor);
            match all.iter_mut().find(|narrow| narrow.span.is_at(span)) {
                Some(narrow) => {
                    add(&mut narrow.names, [name]);
                    add(&mut narrow.facts, wider.facts);
                }
                None => {
                    let (bytes, facts) = ((wider.instead_of, wider.bytes), wider.facts);
                    all.push(Narrow { span, names: vec![name], bytes, facts });
                }
            }
        }
    }
    for Narrow { span, names, bytes: (now, then), facts } in all {
        let be = if names.len() == 1 { "is" } else { "are" };
        let names = names.join(" and ");
        let message = match now == then {
            true => format!("vectors of {names} are read by two loads each"),
            false => format!("{names} {be} read {now} bytes at once"),
        };
        let warning = Diagnostic::warning(Code::Unstated, span, message)
            .label(format!("vectors of {then} bytes are not known to be aligned and whole"))
            .help(format!("state {} if it holds", unstated_facts::said(module, &facts)));
        d.warnings.push(d.tile.noted(warning));
        d.unstated.push(Unstated { span, facts });
    }
    d
}

/// Factors that are read a few bytes at once, by what stands in one place.
struct Narrow {
    span: Span,
    names: Vec<String>,
    /// How many at once, and how many could be.
    bytes: (i64, i64),
    facts: Vec<Fact>,
}

/// Adds what is not there yet.
fn add<T: PartialEq>(all: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}

fn of_given_up(module: &Module, ranking: &Ranking, given_up: &GivenUp) -> Diagnostic {
    let GivenUp { by, cycles, why, facts } = given_up;
    let message = format!("{by} does not work for all sizes of the symbols");
    let d = Diagnostic::warning(Code::Unstated, ranking.span, message).label(why.clone());
    let Some(own) = ranking.instances.first() else { return d };
    let takes = own.cycles.or(own.bound).unwrap_or_default();
    let name = own.by.split('[').next().unwrap_or_default();
    d.note(format!(
        "{} is used instead: it takes an estimated {takes:.0} cycles, the other {cycles:.0}",
        own.by
    ))
    .help(match &facts[..] {
        [] => {
            format!("define constant sizes by `let`, or accept the used strategy with `by={name}`")
        }
        facts => format!("state {} if it holds", unstated_facts::said(module, facts)),
    })
}

/// Tensors that strategies copy by a kernel of its own, for a spec of the module.
struct Copied<'m> {
    spec: &'m Spec,
    names: Vec<String>,
    /// What would have to be stated of symbols for the copy engine to read all of them as they lie.
    facts: Vec<Fact>,
}

fn copied<'m>(generated: &Generated<'m>, planned: &Module) -> Vec<Copied<'m>> {
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
    let Ok(program) = generated.checked(planned) else { return vec![] };
    let ids = program.specs_by_node();
    let mut out: Vec<Copied<'_>> = vec![];
    for (node, spec) in made {
        let input = ids.get(&node).and_then(|id| program.specs[*id].input_tensors().next());
        let Some(t) = input else { continue };
        let facts = missing_facts::aligned(&program, t, tensor_map::UNIT);
        // One that no fact would align, or that is copied for another reason, is not spoken of.
        if facts.is_empty() {
            continue;
        }
        let name = program.tensor_name(t);
        match out.iter_mut().find(|of| of.spec.span.is_at(spec.span)) {
            Some(of) => {
                add(&mut of.names, [name]);
                add(&mut of.facts, facts);
            }
            None => out.push(Copied { spec, names: vec![name], facts }),
        }
    }
    out
}
