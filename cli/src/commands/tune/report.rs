//! Writes the report of `carbyne tune` about a kernel-level spec: one line per candidate, the
//! fastest first.

use super::measurement::Candidate;
use crate::sanitize::sanitize;
use crate::tuned::Key;
use serde_json::{Value, json};
use std::fmt::Write;

/// Candidates with their ranks in the cost model; the measured ones first, sorted by time.
fn ordered(candidates: &[Candidate]) -> Vec<(usize, &Candidate)> {
    let mut all: Vec<(usize, &Candidate)> = candidates.iter().enumerate().collect();
    let key = |c: &Candidate| c.median().unwrap_or(f64::INFINITY);
    all.sort_by(|(_, a), (_, b)| key(a).total_cmp(&key(b)));
    all
}

/// The additional time of the cost model's choice, relative to the best candidate.
fn behind(candidates: &[Candidate]) -> Option<f64> {
    let model = candidates.first()?.median()?;
    let best = candidates.iter().filter_map(Candidate::median).min_by(f64::total_cmp)?;
    (best > 0.0).then(|| model / best - 1.0)
}

pub(super) fn text(name: &str, key: &Key, candidates: &[Candidate]) -> String {
    let measured = candidates.iter().filter(|c| c.times.is_some()).count();
    let mut out = format!(
        "@{name}: {measured} of {} candidates measured on {} for {}\n  {}\n",
        candidates.len(),
        key.card,
        key.arch,
        key.problem
    );
    let _ = writeln!(
        out,
        "{:>4} {:>10} {:<21} {:>12} {:>5}  candidate",
        "", "us", "quartiles", "estimated us", "rank"
    );
    for (i, (rank, c)) in ordered(candidates).into_iter().enumerate() {
        let estimated = c.built.as_ref().map_or(String::new(), |b| format!("{:.2}", b.estimate));
        let (us, quartiles) = match &c.times {
            Some(times) => {
                let all = times.all();
                let quartile = |part| 1e6 * all.quantile(part);
                (
                    format!("{:.2}", 1e6 * all.median()),
                    format!("({:.2}..{:.2})", quartile(0.25), quartile(0.75)),
                )
            }
            None => (String::new(), String::new()),
        };
        let why = match (&c.refused, &c.times) {
            (Some(why), _) => format!(": {}", sanitize(why)),
            (None, None) => ": not measured".to_owned(),
            (None, Some(_)) => String::new(),
        };
        let _ = writeln!(
            out,
            "{:>4} {us:>10} {quartiles:<21} {estimated:>12} {:>5}  {}{why}",
            i + 1,
            rank + 1,
            c.by
        );
    }
    if let Some(behind) = behind(candidates) {
        let _ = writeln!(
            out,
            "the model's choice takes {:.1} % more than the best: {}",
            100.0 * behind,
            candidates.first().map_or("", |c| &c.by)
        );
    }
    out
}

/// The report as a JSON object.
pub(super) fn json(name: &str, key: &Key, candidates: &[Candidate]) -> Value {
    let candidate = |(rank, c): (usize, &Candidate)| {
        let all = c.times.as_ref().map(|t| t.all());
        let us = |part: f64| all.as_ref().map(|t| 1e6 * t.quantile(part));
        json!({
            "by": c.by,
            "rank": rank + 1,
            "estimated_us": c.built.as_ref().map(|b| b.estimate),
            "registers": c.built.as_ref().map(|b| b.registers()),
            "spill_bytes": c.built.as_ref().map(|b| b.spills()),
            "median_us": us(0.5),
            "first_quartile_us": us(0.25),
            "third_quartile_us": us(0.75),
            "launches": all.as_ref().map(carbyne_launch::Timing::n_launches),
            "refused": c.refused,
        })
    };
    json!({
        "kernel": name,
        "problem": key.problem,
        "candidates": ordered(candidates).into_iter().map(candidate).collect::<Vec<_>>(),
        "model_behind": behind(candidates),
    })
}
