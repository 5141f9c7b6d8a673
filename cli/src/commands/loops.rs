//! Prints the modulo schedules of loops with `stages=` (how iterations overlap, and how many cycles
//! each takes), as text and as JSON, for `decompose --stats` and `--emit json`.

use carbyne_decompose::{Decomposed, LoopSchedule, Proof, Steady, Timed};
use serde_json::{Value, json};
use std::fmt::Write;

/// Two lines for each loop.
pub(super) fn text(loops: &[LoopSchedule], found: &Decomposed, src: &str) -> String {
    let mut out = String::new();
    for one in loops {
        let line = line(one, found, src);
        match &one.steady {
            Ok(steady) => written(line, steady, &mut out),
            Err(why) => {
                let _ = writeln!(out, "loop at line {line}: no schedule: {why}");
            }
        }
    }
    out
}

fn written(line: usize, s: &Steady, out: &mut String) {
    let proved = match s.proof {
        Proof::Nothing => format!("at least {} needed", s.least_ii),
        Proof::Interval | Proof::Depth | Proof::Starts => "proved minimal".to_owned(),
    };
    let _ = writeln!(
        out,
        "loop at line {line}: an iteration every {} cycles, {proved} (bounds: resources {}, \
         recurrences {}; as written {}); {} stages{}; {} nodes",
        s.ii,
        s.resource_bound,
        s.recurrence_bound,
        s.as_written,
        s.stages,
        if s.proof >= Proof::Depth { ", proved minimal" } else { "" },
        s.nodes
    );
    let mut parts = vec![];
    for operations in s.operations.chunk_by(|a, b| a.agent == b.agent) {
        let each: Vec<String> =
            operations.iter().map(|o| format!("{} {}", o.name, o.stage)).collect();
        let agent = operations.first().map_or("", |o| &o.agent);
        parts.push(format!("stages of {agent}: {}", each.join(", ")));
    }
    let rings = s.rings.iter().map(|r| format!("%{} {} of {}", r.name, r.needed, r.stages));
    let rings: Vec<String> = rings.collect();
    if !rings.is_empty() {
        parts.push(format!("rings: {}", rings.join(", ")));
    }
    let waits = s.waits.iter().map(|w| format!("{} {} before {}", w.queue, w.left, w.before));
    let waits: Vec<String> = waits.collect();
    if !waits.is_empty() {
        parts.push(format!("left in flight: {}", waits.join(", ")));
    }
    let _ = writeln!(out, "   {}", parts.join("; "));
}

/// The schedules as JSON.
pub(super) fn json(loops: &[LoopSchedule], found: &Decomposed, src: &str) -> Value {
    let of = |one: &LoopSchedule| {
        let mut object = match &one.steady {
            Ok(steady) => steady_json(steady),
            Err(why) => json!({ "no_schedule": why.to_string() }),
        };
        object["line"] = json!(line(one, found, src));
        object
    };
    loops.iter().map(of).collect()
}

fn steady_json(s: &Steady) -> Value {
    let timed = |o: &Timed| {
        json!({
            "operation": o.name,
            "agent": o.agent,
            "start": o.start,
            "begin": o.begin,
            "stage": o.stage,
        })
    };
    let rings = s.rings.iter();
    let waits = s.waits.iter();
    json!({
        "initiation_interval": s.ii,
        "resource_bound": s.resource_bound,
        "recurrence_bound": s.recurrence_bound,
        "proved_bound": s.least_ii,
        "proved": match s.proof {
            Proof::Nothing => "nothing",
            Proof::Interval => "interval",
            Proof::Depth => "depth",
            Proof::Starts => "starts",
        },
        "as_written": s.as_written,
        "stages": s.stages,
        "nodes": s.nodes,
        "operations": s.operations.iter().map(timed).collect::<Vec<_>>(),
        "rings": rings
            .map(|r| json!({ "name": r.name, "stages": r.stages, "needed": r.needed }))
            .collect::<Vec<_>>(),
        "in_flight": waits
            .map(|w| json!({ "before": w.before, "queue": w.queue, "left": w.left }))
            .collect::<Vec<_>>(),
    })
}

/// The source line that a loop was written on or generated for.
fn line(one: &LoopSchedule, found: &Decomposed, src: &str) -> usize {
    found.origins.span(one.node).line_col(src).0
}
