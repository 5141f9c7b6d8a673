//! `carbyne decompose`: decomposes a program down to atoms and prints its text, or as JSON its text
//! with the solver's choices and the certificates that prove them. It also proves that the accesses
//! of the result are ordered.
//!
//! Warnings, the best solutions and the extent of the solver's search are printed on standard
//! error.

use super::certificates::{self, Lines};
use super::estimate;
use super::loops;
use super::strategy_ranking;
use crate::args::{Decompose, Decomposition, MessageFormat, SearchArgs};
use crate::failure::{Failure, Outcome};
use crate::progress::shown;
use crate::tuned::{self, Tuning};
use crate::{Io, access_order, annotate, input, output, pipeline};
use carbyne_atoms::{Arch, machine};
use carbyne_decompose::{Decomposed, Estimate, Leaf, LoopSchedule, Search};
use carbyne_ir::diag::{Code, Diagnostic, Diagnostics};
use carbyne_ir::program::SpecId;
use serde_json::json;
use std::fmt::Write;

pub(super) fn run(args: &Decompose, format: MessageFormat, io: &mut Io<'_>) -> Outcome {
    let table = pipeline::costed(&args.arch, args.costs.as_deref())?;
    let all = table.atoms().len();
    let table = pipeline::without(table, &args.forbid)
        .map_err(|e| Failure::usage_help(format!("{}: {e}", Code::UnknownAtom), e.help()))?;
    let fewer = all - table.atoms().len();
    let source = input::read(&args.file, io)?;
    let module = pipeline::parsed(&source)?;
    let options = pipeline::options(&source, search(&args.search))?;
    let tuning = Tuning::from_file(args.tuned.as_deref(), None)?;
    let (found, notes) = shown(io.progress, |_| {
        tuned::decomposed(&source, &module, &table, &options, tuning.as_ref())
            .map_err(|e| pipeline::refused(&source, forbidden(e, &args.forbid, fewer)))
    })?;
    pipeline::has_kernel(&source, &found.program)?;
    let (mut reports, unknown) =
        shown(io.progress, |_| access_order::checked(&source.text, &found, &table))
            .map_err(|e| Failure::program(&source, e))?;
    let wanted = args.search.stats || args.emit == Decomposition::Json;
    let loops = if wanted { found.schedules(&source.text, &table, &options) } else { vec![] };
    let printed = match args.emit {
        Decomposition::Ir if args.annotate => {
            access_order::complete(&mut reports, &found.program, &table);
            annotate::annotated(&found.text, &found.module, &found.program, &reports)
        }
        Decomposition::Ir => found.text.clone(),
        Decomposition::Json => {
            certificates::document(&found, (&reports, &loops), &source.text, table.arch.as_str())
        }
    };
    output::write(args.output.as_deref(), printed.as_bytes(), io)?;
    output::warn(&source, &found.warnings, format, io);
    output::warn(&source, &unknown, format, io);
    notes.say(&source, format, io);
    let report = match format {
        MessageFormat::Human => said(&args.search, (&found, &loops), &source.text, table.arch),
        MessageFormat::Json => object(&args.search, (&found, &loops), &source.text),
    };
    output::say(&report, io);
    Ok(())
}

/// Adds a hint to errors that `--forbid` may cause.
fn forbidden(errors: Diagnostics, patterns: &[String], fewer: usize) -> Diagnostics {
    if patterns.is_empty() {
        return errors;
    }
    let given: Vec<String> = patterns.iter().map(|p| format!("`--forbid {p}`")).collect();
    let one = |mut d: Diagnostic| {
        if matches!(
            d.code,
            Code::NoAtom | Code::NoStrategy | Code::NotDecomposed | Code::PinsConflict
        ) {
            let less =
                format!("leave out {}, which forbids {fewer} instructions", given.join(" or "));
            d.help = Some(match d.help.take().filter(|h| !h.is_empty()) {
                Some(help) => format!("{less}; or else {help}"),
                None => less,
            });
        }
        d
    };
    errors.into_iter().map(one).collect()
}

fn search(args: &SearchArgs) -> Search {
    let usual = Search::default();
    Search {
        budget: args.budget.unwrap_or(usual.budget),
        top: args.top.map_or(usual.top, usize::from),
        exhaustive: args.exhaustive,
        sms: args.sms,
    }
}

/// An explanation of the numbers of `--top`.
const UNITS: &str = "cycles are estimates for a grid that fills the GPU, with all data in the L2 \
    cache; `--estimate` shows the kernel's own grid. Solutions whose cycles differ by less than \
    about 2 % count as equal; the one with fewer instructions comes first.\n\
    `xN`: N instructions of all warps of a block together; `of N`: N elements per instruction; \
    `warps (M,N)`: warps along m and n\n";

fn said(
    args: &SearchArgs,
    (found, loops): (&Decomposed, &[LoopSchedule]),
    src: &str,
    arch: Arch,
) -> String {
    let mut out = String::new();
    if args.top.is_some() || args.stats {
        let s = &found.searched;
        let _ = writeln!(
            out,
            "search: {} solutions costed, {} branches pruned, {} dead{}",
            s.leaves,
            s.pruned,
            s.dead,
            if s.cut_off { "; stopped at the budget" } else { "" }
        );
    }
    if args.estimate {
        let machine = machine(arch);
        let machine = match args.sms {
            Some(sms) => machine.with_sms(i64::from(sms)),
            None => machine,
        };
        for (id, e) in &found.estimates {
            out.push_str(&estimate::table(&kernel(found, *id), e, &machine));
        }
    }
    strategies(args, found, &mut out);
    if args.stats {
        out.push_str(&loops::text(loops, found, src));
    }
    if args.top.is_none() {
        return out;
    }
    if !found.leaves.is_empty() {
        out.push_str(UNITS);
    }
    for (i, leaf) in found.leaves.iter().enumerate() {
        let e = &leaf.estimate;
        let _ = writeln!(
            out,
            "{}: {:.0} cycles, {} registers, {} bytes shared, {} blocks per multiprocessor",
            i + 1,
            e.cycles,
            e.registers,
            e.shared_bytes,
            e.blocks_per_sm
        );
        match found.leaves.first() {
            Some(best) if i > 0 => differences(best, leaf, found, src, &mut out),
            _ => all(leaf, found, src, &mut out),
        }
    }
    out
}

/// The number of examined strategy instances for each kernel; with `--top`, the best instances, and
/// the reasons why the others were not chosen.
fn strategies(args: &SearchArgs, found: &Decomposed, out: &mut String) {
    if args.top.is_none() && !args.stats {
        return;
    }
    for one in &found.rankings {
        let _ = writeln!(out, "{}", strategy_ranking::counted(one));
        if let Some(top) = args.top {
            strategy_ranking::top(one, usize::from(top), out);
        }
    }
}

/// The extent of the search as a JSON object.
fn object(args: &SearchArgs, (found, loops): (&Decomposed, &[LoopSchedule]), src: &str) -> String {
    if args.top.is_none() && !args.stats && !args.estimate {
        return String::new();
    }
    let mut object = certificates::searched(&found.searched);
    object["kind"] = json!("report");
    if args.stats {
        object["loops"] = loops::json(loops, found, src);
    }
    if args.estimate {
        let one = |(id, e): &(SpecId, Estimate)| estimate::json(&kernel(found, *id), e);
        object["estimates"] = found.estimates.iter().map(one).collect();
    }
    if args.top.is_some() {
        let lines = Lines::new(found, src);
        object["solutions"] =
            found.leaves.iter().map(|leaf| certificates::solution(leaf, &lines)).collect();
        object["rankings"] = found.rankings.iter().map(strategy_ranking::object).collect();
    }
    format!("{object}\n")
}

/// The name of a kernel.
fn kernel(found: &Decomposed, id: SpecId) -> String {
    found.tile.specs[id].name.clone().unwrap_or_else(|| "kernel".to_owned())
}

/// The source line that an operation was written on or generated for.
fn place(found: &Decomposed, id: SpecId, source: &str) -> usize {
    found.origins.span(found.tile.specs[id].node).line_col(source).0
}

fn all(leaf: &Leaf, found: &Decomposed, src: &str, out: &mut String) {
    for (id, choice) in &leaf.choices {
        let _ = writeln!(out, "   line {}: {choice}", place(found, *id, src));
    }
}

/// The choices of a solution that differ from the best solution.
fn differences(best: &Leaf, leaf: &Leaf, found: &Decomposed, src: &str, out: &mut String) {
    for (id, choice) in &leaf.choices {
        let same = best.choices.iter().find(|(o, _)| o == id).map(|(_, c)| c);
        if same != Some(choice) {
            let line = place(found, *id, src);
            let instead = same.map_or(String::new(), |s| format!(" instead of {s}"));
            let _ = writeln!(out, "   line {line}: {choice}{instead}");
        }
    }
}
