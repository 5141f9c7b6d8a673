//! `carbyne simulate`: executes a program on the CPU and compares the results with the meaning of
//! its specs. With `--arch` it decomposes the program first, and with `--against` it also compares
//! the results with another program.
//!
//! Tensors are read from and written to `.npy` files. The report goes to standard error, and the
//! listing of `--report` to standard output.

use super::line_report;
use crate::args::{Blocks, MessageFormat, ReportFormat, Simulate};
use crate::failure::{Failure, Given, Outcome};
use crate::pipeline::How;
use crate::tuned::Tuning;
use crate::{Io, data, input, output, pipeline};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::diag::Code;
use carbyne_simulate::{
    BankCount, Between, Compared, Decisions, KernelReport, Options, SECOND, Short, SpecReport,
    compare_with_parent, simulate,
};
use indexmap::IndexMap;
use serde_json::json;
use std::collections::BTreeSet;

pub(super) fn run(args: &Simulate, format: MessageFormat, io: &mut Io<'_>) -> Outcome {
    let arch = args.arch.as_deref().map(pipeline::table).transpose()?;
    let source = input::read(&args.file, io)?;
    // The source program, if its kernels were decomposed to more kernels: their joint meaning.
    let mut whole = None;
    // Inputs are drawn for the source text, independent of its decomposition.
    let mut decisions = None;
    let (source, program) = match &arch {
        Some(table) => {
            let tuning = Tuning::from_file(args.tuned.as_deref(), None)?;
            let how = How { tuning: tuning.as_ref(), ..How::default() };
            let decomposed = pipeline::tuned(&source, table, how)?;
            output::warn(&source, &decomposed.warnings, format, io);
            decomposed.notes.say(&source, format, io);
            let meant = pipeline::verified(&source)?.1;
            decisions = Some(Decisions::of(&meant));
            if decomposed.program.kernels.len() > meant.kernels.len() {
                whole = Some((source.clone(), meant));
            }
            (decomposed.source, decomposed.program)
        }
        None => {
            let program = pipeline::verified(&source)?.1;
            (source, program)
        }
    };
    pipeline::has_kernel(&source, &program)?;
    // A complete program may use the atoms of any architecture; the newest table has the most.
    let table = arch.or_else(|| Arch::ALL.last().map(|a| AtomTable::new(*a)));
    let table = table.ok_or_else(|| Failure::usage("there are no architectures"))?;
    let mut options = data::options(&args.data.given, &program, &source)?;
    options.decisions = decisions;
    options.blocks = match args.blocks {
        Some(Blocks::Some(n)) => Some(n),
        Some(Blocks::All) | None => None,
    };
    // With outputs or a budget, run all blocks that the budget allows.
    let all = args.blocks == Some(Blocks::All) || args.budget.is_some();
    options.sample = (!all && args.data.outputs.is_empty()).then_some(SECOND);
    options.budget = args.budget.unwrap_or(options.budget);
    options.check = !args.no_check;
    options.shadow = !args.no_shadow;
    options.statements = args.report.is_some();
    if args.against.is_some() && (args.no_check || args.no_shadow) {
        return Err(Failure::usage_help(
            "`--against` needs the shadow values that `--no-check` and `--no-shadow` turn off",
            "remove `--no-check` and `--no-shadow`",
        ));
    }
    options.schedule = args.schedule;
    let parent = match &args.against {
        Some(parent) => {
            let source = input::read(parent, io)?;
            let program = pipeline::verified(&source)?.1;
            Some((source, program))
        }
        None => None,
    };
    if let Some(parent) = parent.as_ref().or(whole.as_ref()).map(|(_, program)| program) {
        options.between = Between::for_parent(parent);
        // Inputs must test the decisions of both programs.
        let own = options.decisions.take().unwrap_or_else(|| Decisions::of(&program));
        options.decisions = Some(own.and(Decisions::of(parent)));
    }
    let wanted = data::wanted(&args.data, &program)?;
    let report = simulate(&program, &table, &options).map_err(|d| Failure::one(&source, *d))?;
    let text: String = match format {
        MessageFormat::Human => {
            report.kernels.iter().map(|k| human(k, &options, &source.given)).collect()
        }
        MessageFormat::Json => report.kernels.iter().map(|k| json(k, &source.given)).collect(),
    };
    output::say(&text, io);
    if let Some((of_meant, meant)) = whole.filter(|_| options.check && options.shadow) {
        let text = match compare_with_parent(&meant, &table, &options, (&program, &report)) {
            Ok(all) => of_whole(&of_meant.name, &all, format),
            // Too few blocks ran for a comparison.
            Err(d) if d.code == Code::OtherSpec => String::new(),
            Err(d) => return Err(Failure::one(&source, *d)),
        };
        output::say(&text, io);
    }
    if let Some((parent, of_parent)) = parent {
        let same = compare_with_parent(&of_parent, &table, &options, (&program, &report));
        let all = same.map_err(|d| match d.code {
            // These errors are about the program, not about its parent.
            Code::OtherSpec | Code::WrongElement => Failure::one(&source, *d),
            _ => Failure::one(&parent, *d),
        })?;
        output::say(&of_whole(&parent.name, &all, format), io);
    }
    let listing = match args.report {
        Some(ReportFormat::Text) => line_report::text(&source.text, &report.kernels),
        Some(ReportFormat::Json) => line_report::json(&report.kernels),
        None => String::new(),
    };
    output::write(None, listing.as_bytes(), io)?;
    let complete = report.kernels.iter().all(|k| k.complete);
    wanted.iter().try_for_each(|(name, path)| data::save(&report.outputs, complete, name, path, io))
}

/// The comparison of a program with another program as a whole.
fn of_whole(name: &str, all: &[Compared], format: MessageFormat) -> String {
    match format {
        MessageFormat::Human => {
            let elements: Vec<String> =
                all.iter().map(|c| format!("{} elements of %{}", c.elements, c.tensor)).collect();
            let mut text = format!("equal to `{name}`: {}\n", elements.join(", "));
            for c in all.iter().filter(|c| c.max_ulp > 0.0) {
                let nearness = super::line_report::distance(c.max_ulp, c.relative_norm);
                text.push_str(&format!(
                    "  rounding: %{}, {nearness}: within the tolerance\n",
                    c.tensor
                ));
            }
            text
        }
        MessageFormat::Json => {
            let tensors: serde_json::Map<String, serde_json::Value> =
                all.iter().map(|c| (c.tensor.clone(), c.elements.into())).collect();
            let rounding: serde_json::Map<String, serde_json::Value> = all
                .iter()
                .map(|c| {
                    let of = json!({ "max_ulp": c.max_ulp, "relative_norm": c.relative_norm });
                    (c.tensor.clone(), of)
                })
                .collect();
            let object = json!({ "kind": "against", "tensors": tensors, "rounding": rounding });
            format!("{object}\n")
        }
    }
}

/// Maximum number of statements with bank conflicts in the report, the worst first.
const MAX_CONFLICTS: usize = 10;

/// The budget for all blocks of a kernel.
fn budget_for_all_blocks(k: &KernelReport) -> u64 {
    k.steps_per_block.saturating_mul(k.n_blocks.unsigned_abs())
}

/// The report as text.
fn human(k: &KernelReport, options: &Options, given: &Given) -> String {
    let name = if k.name.is_empty() { "kernel" } else { &k.name };
    if k.by_meaning {
        return format!("{name}: has no body; executed by its meaning, nothing to compare\n");
    }
    let others = match (k.sampled, options.sample) {
        (true, None) => format!("`--budget {}`", budget_for_all_blocks(k)),
        _ => "`--blocks all`".to_owned(),
    };
    let mut text = format!("{name}: {}{}\n", which_ran(k), why_not_all(k, options));
    text.push_str(&idle(k, options));
    if k.filled {
        text.push_str(
            "  later kernels read the elements of other blocks by this kernel's meaning\n",
        );
    }
    text.push_str(&compared(k, options));
    for Short { tensor, written, share, size } in &k.short {
        text.push_str(&format!(
            "  {written} of {size} elements of {tensor} were written; the share of these blocks is \
             {share}; use {others} to check the rest\n"
        ));
    }
    if k.added_to {
        text.push_str("  not compared: outputs to which other blocks add; ");
        text.push_str(&format!("use {others} to compare them\n"));
    }
    if options.check && !options.shadow {
        text.push_str(
            "  `--no-shadow`: `means` blocks are not checked, and errors below the rounding of the \
             types are not found\n",
        );
    }
    if k.elements > 0 && k.numerics.iter().all(|n| n.max_error == 0.0) {
        text.push_str("  no difference\n");
    }
    if k.max_error > 0.0 {
        text.push_str(&format!(
            "  largest difference from the reference {:.3e}: {}\n",
            k.max_error,
            super::line_report::judged(k.max_ratio)
        ));
    }
    rounding(&mut text, k, given);
    text.push_str(&format!("  multiply-adds: {}\n", k.multiply_adds));
    bank_conflicts(&mut text, k, given);
    warnings(&mut text, k, given);
    unchecked(&mut text, k, given);
    text
}

/// Describes the blocks that ran: `all 16 blocks ran`.
fn which_ran(k: &KernelReport) -> String {
    let n = k.blocks_run.len();
    match k.blocks_run.as_slice() {
        [] if k.complete => "the grid has no blocks, nothing ran".to_owned(),
        _ if k.complete && n == 1 => "its block ran".to_owned(),
        _ if k.complete => format!("all {n} blocks ran"),
        [only] => format!("1 of {} blocks ran, block {only}", k.n_blocks),
        [first, .., last] => format!("{n} of {} blocks ran, from {first} to {last}", k.n_blocks),
        [] => format!("none of {} blocks ran", k.n_blocks),
    }
}

/// The reason why not all blocks ran, and an option to run them.
fn why_not_all(k: &KernelReport, options: &Options) -> String {
    match (k.sampled, options.sample) {
        (false, _) if k.complete => String::new(),
        (false, _) => "; `--blocks all` runs all".to_owned(),
        (true, Some(_)) => {
            format!("; {}, `--blocks all` runs all that the budget allows", estimated(k))
        }
        (true, None) => {
            let all = budget_for_all_blocks(k);
            format!("; the other blocks exceed the budget: raise it to `--budget {all}`")
        }
    }
}

/// The number of blocks without work.
fn idle(k: &KernelReport, options: &Options) -> String {
    let n = k.blocks_run.len();
    let idle = usize::try_from(k.idle).unwrap_or(usize::MAX);
    match idle {
        0 => String::new(),
        _ if idle == n && options.blocks.is_some() && !k.complete => {
            "  none of them had work: nothing was written; without `--blocks`, others are tried\n"
                .to_owned()
        }
        _ if idle == n => "  none of them had work: nothing was written\n".to_owned(),
        1 => "  1 of them had no work and wrote nothing\n".to_owned(),
        _ => format!("  {idle} of them had no work and wrote nothing\n"),
    }
}

/// The results that were compared with their meaning.
fn compared(k: &KernelReport, options: &Options) -> String {
    match (options.check, k.elements) {
        (false, _) => "  nothing compared: `--no-check`\n".to_owned(),
        (true, 0) => "  nothing compared with the meaning\n".to_owned(),
        (true, elements) => {
            let of_specs = match k.specs {
                0 => None,
                1 => Some("1 result of an inner spec".to_owned()),
                results => Some(format!("{results} results of inner specs")),
            };
            let of_kernel = match (k.complete, k.blocks_run.len()) {
                _ if !k.checked => None,
                (_, 0) => Some("the unchanged tensors".to_owned()),
                (_, 1) => Some("the elements that the block wrote".to_owned()),
                (true, _) => Some("the elements that the blocks wrote".to_owned()),
                (false, _) => Some("the elements that these blocks wrote".to_owned()),
            };
            let both: Vec<String> = of_kernel.into_iter().chain(of_specs).collect();
            format!("  compared with the meaning: {}; {elements} elements\n", both.join(", and "))
        }
    }
}

/// The rounding of the whole kernel if it was compared, otherwise of the spec with the largest
/// distance from its meaning.
fn rounding(text: &mut String, k: &KernelReport, given: &Given) {
    let at = |line: u32| given.name(line as usize);
    let norm = |n: &SpecReport| n.relative_norm.unwrap_or(0.0);
    let farthest = k.numerics.iter().max_by(|a, b| norm(a).total_cmp(&norm(b)));
    let shown = if k.checked { k.numerics.first() } else { farthest };
    if let Some(n) = shown.filter(|n| n.max_error > 0.0) {
        let nearness = super::line_report::nearness(n);
        text.push_str(&format!("  rounding: {}, {nearness}\n", at(n.line)));
    }
    if let Some((line, atom, ulp)) = stated(k) {
        text.push_str(&format!(
            "  not included: {}, {atom} states an error of up to {ulp:.1} ulp for its results\n",
            at(line)
        ));
    }
}

fn bank_conflicts(text: &mut String, k: &KernelReport, given: &Given) {
    let banks: Vec<(u32, BankCount)> = banks(k).collect();
    let mut conflicts: Vec<_> = banks.iter().filter(|(_, b)| b.wavefronts > b.ideal).collect();
    if !banks.is_empty() && conflicts.is_empty() {
        text.push_str("  shared memory: no bank conflicts\n");
    }
    conflicts.sort_by_key(|(line, b)| (std::cmp::Reverse(b.wavefronts - b.ideal), *line));
    for (line, b) in conflicts.into_iter().take(MAX_CONFLICTS) {
        text.push_str(&format!(
            "  {}: bank conflicts, {} wavefronts, at least {} needed\n",
            given.name(*line as usize),
            b.wavefronts,
            b.ideal
        ));
    }
}

/// Lines whose results depend on the order of threads, or on rounding.
fn warnings(text: &mut String, k: &KernelReport, given: &Given) {
    let at = |line: u32| given.name(line as usize);
    for line in &k.repeated {
        text.push_str(&format!(
            "  {}: warning, several threads write equal values to one element\n",
            at(*line)
        ));
    }
    for n in k.numerics.iter().filter(|n| n.undecided > 0) {
        let verb = if n.undecided == 1 { "element is" } else { "elements are" };
        text.push_str(&format!(
            "  {}: {} {verb} accepted as one of several possible values: a comparison is too close \
             to decide, or an integer exceeds 2^53\n",
            at(n.line),
            n.undecided
        ));
    }
    for (line, n) in &k.turned {
        text.push_str(&format!(
            "  {}: {n} comparisons or conversions have another result without rounding\n",
            at(*line)
        ));
    }
}

/// The lines that were not compared, grouped by reason.
fn unchecked(text: &mut String, k: &KernelReport, given: &Given) {
    let mut lines: IndexMap<&str, BTreeSet<usize>> = IndexMap::new();
    for (line, why) in &k.unchecked {
        let line = *line as usize;
        lines.entry(why).or_default().insert(given.line(line).unwrap_or(line));
    }
    for (why, lines) in lines {
        let lines: Vec<String> = lines.iter().map(usize::to_string).collect();
        let word = if lines.len() == 1 { "line" } else { "lines" };
        text.push_str(&format!("  {word} {}: not compared, {why}\n", lines.join(", ")));
    }
}

/// The estimated time of the blocks that ran, on two cores.
fn estimated(k: &KernelReport) -> String {
    let of_core = k.blocks_run.len().div_ceil(2) as f64 * k.steps_per_block as f64;
    match (of_core / (SECOND / 2) as f64).round() {
        seconds if seconds > 1.0 => format!("estimated to take {seconds} seconds"),
        _ => "they take about one second".to_owned(),
    }
}

/// The instruction with the largest stated error of its results, in ulp, and its line. Errors up to
/// 0.5 ulp are the rounding of the result and are ignored.
fn stated(k: &KernelReport) -> Option<(u32, &str, f64)> {
    let of = k.leaves.iter().filter_map(|l| Some((l.line, l.atom.as_deref()?, l.stated_ulp?)));
    of.filter(|(.., ulp)| *ulp > 0.5).reduce(|most, next| if next.2 > most.2 { next } else { most })
}

/// The shared-memory accesses of leaves, by line.
fn banks(k: &KernelReport) -> impl Iterator<Item = (u32, BankCount)> {
    let of = k.leaves.iter().map(|l| (l.line, l.count.shared));
    of.filter(|(_, count)| count.accesses > 0)
}

/// The report as a JSON object.
pub(crate) fn json(k: &KernelReport, given: &Given) -> String {
    let banks: Vec<_> = banks(k)
        .map(|(line, b)| {
            json!({
                "line": line,
                "accesses": b.accesses,
                "wavefronts": b.wavefronts,
                "ideal_wavefronts": b.ideal,
            })
        })
        .collect();
    let unchecked: Vec<_> =
        k.unchecked.iter().map(|(line, why)| json!({ "line": line, "reason": why })).collect();
    let object = json!({
        "kind": "report",
        "kernel": k.name,
        "blocks": k.n_blocks,
        "blocks_run": k.blocks_run,
        "blocks_without_work": k.idle,
        "complete": k.complete,
        "kernel_compared": k.checked,
        "specs_compared": k.specs,
        "elements_compared": k.elements,
        "max_error": k.max_error,
        "max_error_of_allowed": k.max_ratio,
        "stated_ulp": stated(k).map(|(.., ulp)| ulp),
        "multiply_adds": k.multiply_adds,
        "steps_per_block": k.steps_per_block,
        "sampled": k.sampled,
        "filled_by_meaning": k.filled,
        "decided_otherwise_without_rounding": k.turned,
        "undecided": k.numerics.iter()
            .filter(|n| n.undecided > 0)
            .map(|n| (n.line, n.undecided))
            .collect::<Vec<_>>(),
        "banks": banks,
        "not_compared": unchecked,
        "repeated_writes": k.repeated,
        "lines_of_decomposed_text": !given.lines.is_empty(),
        "given_lines": given.lines,
    });
    format!("{object}\n")
}
