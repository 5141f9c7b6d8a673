//! Prints the instances of strategies (strategies with numbers for their parameters) for a kernel,
//! the best one first, and the reasons why the others were not chosen. `decompose --top`,
//! `decompose --stats` and `explain` use it.

use crate::sanitize::sanitize;
use carbyne_decompose::{Ranked, Ranking};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The cost of an instance, or the reason why it is impossible.
fn cost(one: &Ranked) -> String {
    match (one.cycles, one.bound, &one.refused) {
        (_, _, Some(why)) => sanitize(why),
        (Some(cycles), _, _) => format!("{cycles:.0} cycles"),
        (None, Some(bound), _) => format!("at least {bound:.0} cycles"),
        (None, None, None) => String::new(),
    }
}

/// The reason why an instance is ranked below the first one although it may take fewer cycles.
fn behind(ranking: &Ranking, one: &Ranked) -> &'static str {
    let first = ranking.instances.first().is_some_and(|first| first.spills);
    match (one.cycles, one.bound) {
        _ if one.spills && !first => ", the threads need more registers than they have",
        (None, Some(_)) if one.partial => {
            ", without the kernels that it leaves to other strategies: it is solved only if no \
             other instance is left; `by=` of the spec selects it"
        }
        (None, Some(bound)) if ranking.instances[0].cycles.is_some_and(|best| bound < best) => {
            ", not solved: the solved instances have smaller bounds or better tiles"
        }
        _ => "",
    }
}

/// The best instances, and the reasons why strategies have no instance.
pub(super) fn top(ranking: &Ranking, most: usize, out: &mut String) {
    for (i, one) in ranking.instances.iter().take(most).enumerate() {
        let _ = writeln!(out, "  {}: {}: {}{}", i + 1, one.by, cost(one), behind(ranking, one));
    }
    others(ranking, out);
}

/// The number of instances, and of solved instances.
pub(super) fn counted(ranking: &Ranking) -> String {
    let (all, solved) = ranking.counts;
    let name = if ranking.kernel.is_empty() { "kernel" } else { &ranking.kernel };
    format!("{name}: {all} instances of strategies, layouts of {solved} solved")
}

fn others(ranking: &Ranking, out: &mut String) {
    // Print strategies that fail for the same reason together.
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

/// The chosen instance, and the best of a few other strategies.
pub(super) fn brief(ranking: &Ranking, at: usize, most: usize, out: &mut String) {
    let _ = writeln!(out, "line {at}: {}", counted(ranking));
    strategies(ranking, most, out);
}

/// The reasons for the choice: the best instance of each strategy, larger tiles, and strategies
/// that have no instance.
pub(super) fn explained(ranking: &Ranking, at: usize, out: &mut String) {
    let _ = writeln!(out, "line {at}: {}", counted(ranking));
    strategies(ranking, usize::MAX, out);
    for (tile, why) in &ranking.larger {
        let _ = writeln!(out, "  tile {tile}: {}", sanitize(why));
    }
    others(ranking, out);
}

/// The chosen instance, and the best instances of at most `most` other strategies.
fn strategies(ranking: &Ranking, most: usize, out: &mut String) {
    let mut seen = BTreeSet::new();
    for (i, one) in ranking.instances.iter().enumerate() {
        let name = one.by.split('[').next().unwrap_or_default();
        // Strategies without an instance are listed below.
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
            // The bound covers only a part of the work, so a difference would be misleading.
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

/// The ranking as a JSON object.
pub(super) fn object(ranking: &Ranking) -> Value {
    let instance = |one: &Ranked| {
        json!({
            "by": one.by,
            "at_least_cycles": one.bound,
            "cycles": one.cycles,
            "spills": one.spills,
            "refused": one.refused,
        })
    };
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
