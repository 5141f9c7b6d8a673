//! By which strategies kernels could get their dataflow: which was chosen, and why others were not.

use crate::sanitize::sanitize;
use carbyne_decompose::{Ranked, Ranking};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// What it takes, or why it cannot be.
fn cost(one: &Ranked) -> String {
    match (one.cycles, one.bound, &one.refused) {
        (_, _, Some(why)) => sanitize(why),
        (Some(cycles), _, _) => format!("{cycles:.0} cycles"),
        (None, Some(bound), _) => format!("at least {bound:.0} cycles"),
        (None, None, None) => String::new(),
    }
}

/// Why an instance that may take fewer cycles comes behind the first.
fn behind(ranking: &Ranking, one: &Ranked) -> &'static str {
    let first = ranking.instances.first().is_some_and(|first| first.spills);
    match (one.cycles, one.bound) {
        _ if one.spills && !first => ", its threads hold more than their registers",
        (None, Some(_)) if one.partial => {
            ", without the kernels that it leaves to other strategies: it is solved only where nothing else is left; \
             `by=` of the spec takes it"
        }
        (None, Some(bound)) if ranking.instances[0].cycles.is_some_and(|best| bound < best) => {
            ", not solved: as many as are tried had smaller bounds or better tiles before it"
        }
        _ => "",
    }
}

/// The best instances, and why strategies have none.
pub(super) fn top(ranking: &Ranking, most: usize, out: &mut String) {
    for (i, one) in ranking.instances.iter().take(most).enumerate() {
        let _ = writeln!(out, "  {}: {}: {}{}", i + 1, one.by, cost(one), behind(ranking, one));
    }
    others(ranking, out);
}

/// How many instances were looked at.
pub(super) fn counted(ranking: &Ranking) -> String {
    let (all, solved) = ranking.counts;
    let name = if ranking.kernel.is_empty() { "kernel" } else { &ranking.kernel };
    format!("{name}: {all} instances of strategies, layouts of {solved} solved")
}

fn others(ranking: &Ranking, out: &mut String) {
    // Strategies that are out for one reason are said together.
    let mut reasons: Vec<(&String, Vec<&String>)> = vec![];
    for (name, why) in &ranking.others {
        match reasons.iter_mut().find(|(other, _)| *other == why) {
            Some((_, names)) => names.push(name),
            None => reasons.push((why, vec![name])),
        }
    }
    for (why, names) in reasons {
        let names: Vec<String> = names.iter().map(|n| format!("@{n}")).collect();
        let _ = writeln!(out, "  no {}: {}", names.join(", "), sanitize(why));
    }
}

/// What was chosen, and the best of a few other strategies.
pub(super) fn brief(ranking: &Ranking, at: usize, most: usize, out: &mut String) {
    let _ = writeln!(out, "line {at}: {}", counted(ranking));
    strategies(ranking, most, out);
}

/// Why what was chosen was: the best of each strategy, larger tiles, and strategies that have no
/// instance.
pub(super) fn explained(ranking: &Ranking, at: usize, out: &mut String) {
    let _ = writeln!(out, "line {at}: {}", counted(ranking));
    strategies(ranking, usize::MAX, out);
    for (tile, why) in &ranking.larger {
        let _ = writeln!(out, "  tile {tile}: {}", sanitize(why));
    }
    others(ranking, out);
}

/// What was chosen, and the best of so many other strategies.
fn strategies(ranking: &Ranking, most: usize, out: &mut String) {
    let mut seen = BTreeSet::new();
    for (i, one) in ranking.instances.iter().enumerate() {
        let name = one.by.split('[').next().unwrap_or_default();
        // What has no instance is said below.
        if one.refused.is_some()
            && ranking.others.iter().any(|(n, _)| name.strip_prefix('@') == Some(n))
        {
            continue;
        }
        if !seen.insert(name) {
            continue;
        }
        if seen.len() > most.saturating_add(1) {
            break;
        }
        let word = if i == 0 { "chosen" } else { "or" };
        let more = match (ranking.instances[0].cycles, one.cycles.or(one.bound)) {
            // The bound covers a part of the work: a difference would mislead.
            _ if one.partial && one.cycles.is_none() => String::new(),
            (Some(best), Some(own)) if i > 0 && one.refused.is_none() => {
                format!(" ({:+.0})", own - best)
            }
            _ => String::new(),
        };
        let behind = behind(ranking, one);
        let _ = writeln!(out, "  {word}: {}: {}{more}{behind}", one.by, cost(one));
    }
}

/// The same as an object.
pub(super) fn object(ranking: &Ranking) -> Value {
    let instance = |one: &Ranked| json!({"by": one.by, "at_least_cycles": one.bound, "cycles": one.cycles, "spills": one.spills, "refused": one.refused});
    let refused = |(name, why): &(String, String)| json!({"strategy": name, "refused": why});
    let tile = |(tile, why): &(String, String)| json!({"tile": tile, "why_not": why});
    json!({
        "kernel": ranking.kernel,
        "instances": ranking.counts.0,
        "solved": ranking.counts.1,
        "ranked": ranking.instances.iter().map(instance).collect::<Vec<_>>(),
        "larger_tiles": ranking.larger.iter().map(tile).collect::<Vec<_>>(),
        "strategies_without": ranking.others.iter().map(refused).collect::<Vec<_>>(),
    })
}
