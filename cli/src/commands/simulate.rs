//! `carbyne simulate`: executes a program and compares it with what its specs mean.
//!
//! Arrays come from and go to `.npy` files; the report is on standard error.

use crate::args::{MessageFormat, Simulate};
use crate::failure::{Failure, Outcome, Source};
use crate::{Io, input, output, pipeline};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::Program;
use carbyne_simulate::{Array, Inputs, KernelReport, Options, Report, simulate};
use serde_json::json;
use std::io::Read;
use std::path::Path;

pub(super) fn run(args: &Simulate, format: MessageFormat, io: &mut Io<'_>) -> Outcome {
    let arch = args.arch.as_deref().map(pipeline::table).transpose()?;
    let source = input::read(&args.file, io)?;
    let (source, program) = match &arch {
        Some(table) => {
            let decomposed = pipeline::decomposed(&source, table)?;
            (decomposed.source, decomposed.program)
        }
        None => {
            let program = pipeline::verified(&source)?.1;
            (source, program)
        }
    };
    // As written, a program may name the atoms of any architecture; the newest table has most.
    let table = arch.or_else(|| Arch::ALL.last().map(|a| AtomTable::new(*a)));
    let table = table.ok_or_else(|| Failure::usage("there are no architectures"))?;
    let options = options(args, &program, &source)?;
    let wanted = args
        .outputs
        .iter()
        .map(|o| assignment(o, "--out").and_then(|(name, path)| known(&program, name, path)))
        .collect::<Result<Vec<_>, _>>()?;
    let report = simulate(&program, &table, &options).map_err(|d| Failure::one(&source, *d))?;
    let text = match format {
        MessageFormat::Human => report.kernels.iter().map(human).collect::<String>(),
        MessageFormat::Json => report.kernels.iter().map(json).collect(),
    };
    output::say(&text, io);
    wanted.iter().try_for_each(|(name, path)| save(&report, name, path, io))
}

fn options(args: &Simulate, program: &Program, source: &Source) -> Result<Options, Failure> {
    let mut options = Options { blocks: args.blocks, ..Options::default() };
    options.inputs = match args.ints {
        Some(seed) => Inputs::Ints(seed),
        None => Inputs::Seed(args.seed.unwrap_or(0)),
    };
    options.budget = args.budget.unwrap_or(options.budget);
    for given in &args.symbols {
        let (name, value) = assignment(given, "--sym")?;
        if !program.symbols.iter().any(|v| program.arena.var_info(*v).name == name) {
            return Err(Failure::usage(format!("the program has no symbol `{}`", short(name))));
        }
        let value = value.parse().map_err(|_| {
            Failure::usage(format!("`--sym {}` does not give a number", short(given)))
        })?;
        options.symbols.insert(name.to_owned(), value);
    }
    for given in &args.inputs {
        let (name, path) = assignment(given, "--in")?;
        let (name, path) = known(program, name, path)?;
        let array = load(program, source, name, path)?;
        options.arrays.insert(name.to_owned(), array);
    }
    Ok(options)
}

/// `NAME=VALUE`, the name with or without its `%`.
fn assignment<'a>(given: &'a str, option: &str) -> Result<(&'a str, &'a str), Failure> {
    match given.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.strip_prefix('%').unwrap_or(name), value))
        }
        _ => Err(Failure::usage(format!("`{option} {}` is not NAME=VALUE", short(given)))),
    }
}

/// The name of a tensor of the caller, with what is assigned to it.
fn known<'a>(
    program: &Program,
    name: &'a str,
    path: &'a str,
) -> Result<(&'a str, &'a str), Failure> {
    let names: Vec<&str> =
        program.params.iter().map(|b| program.buffers[*b].name.as_str()).collect();
    if names.contains(&name) {
        return Ok((name, path));
    }
    let names: Vec<String> = names.iter().map(|n| format!("`%{n}`")).collect();
    Err(Failure::usage_help(
        format!("the program has no tensor `%{}`", short(name)),
        format!("it has {}", names.join(", ")),
    ))
}

/// Elements that an array may have, as many as the simulator gives back.
const MAX_ELEMENTS: u64 = 1 << 28;
/// Bytes of a `.npy` file besides its elements.
const MAX_HEADER: u64 = 1 << 16;

fn load(program: &Program, source: &Source, name: &str, path: &str) -> Result<Array, Failure> {
    let unreadable = |e: std::io::Error| {
        Failure::usage(format!("`{path}` cannot be read: {}", input::reason(&e)))
    };
    let Some(buffer) = program.params.iter().map(|b| &program.buffers[*b]).find(|b| b.name == name)
    else {
        return Err(Failure::usage(format!("the program has no tensor `%{}`", short(name))));
    };
    let misfit = |why: String| {
        let text = format!("`{path}` does not fit `%{name}`");
        Failure::one(source, Diagnostic::new(Code::BadInput, buffer.span, text).label(why))
    };
    if Path::new(path).is_dir() {
        return Err(Failure::usage(format!("`{path}` cannot be read: it is a directory")));
    }
    let limit = MAX_ELEMENTS * (buffer.scalar.bits().max(8) as u64 / 8) + MAX_HEADER;
    let mut bytes = vec![];
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(misfit(format!("arrays of up to {MAX_ELEMENTS} elements are read")));
    }
    Array::from_npy(&bytes, buffer.scalar).map_err(|e| misfit(e.to_string()))
}

fn save(report: &Report, name: &str, path: &str, io: &mut Io<'_>) -> Outcome {
    let Some(array) = report.outputs.get(name) else {
        let partial = report.kernels.iter().any(|k| !k.complete);
        return Err(Failure::usage_help(
            format!("`%{name}` cannot be written: not all of its elements are known"),
            match partial {
                true => "run all blocks: leave out `--blocks`, raise `--budget`",
                false => "no kernel writes all of it, or it has more than 2^28 elements",
            },
        ));
    };
    let bytes =
        array.to_npy().map_err(|e| Failure::usage(format!("`%{name}` cannot be written: {e}")))?;
    output::write(Some(Path::new(path)), &bytes, io)
}

/// Up to ten conflicting statements are named, the worst first.
const MAX_CONFLICTS: usize = 10;

/// A report in a few lines.
fn human(k: &KernelReport) -> String {
    let name = if k.name.is_empty() { "kernel" } else { &k.name };
    if k.blocks_run.is_empty() && k.complete {
        return format!(
            "{name}: has no body; executed by its meaning, there is nothing to compare\n"
        );
    }
    let n = k.blocks_run.len();
    let which = match k.blocks_run.as_slice() {
        _ if k.complete => format!("all {n} blocks ran"),
        [only] => format!("block {only} ran, of {}", k.n_blocks),
        [first, .., last] => format!("{n} of {} blocks ran, from {first} to {last}", k.n_blocks),
        [] => format!("none of {} blocks ran", k.n_blocks),
    };
    let mut text = format!("{name}: {which}\n");
    let whole = if k.checked { "the kernel and " } else { "" };
    text.push_str(&format!(
        "  compared with what they mean: {whole}{} executions of specs inside, {} elements\n",
        k.specs, k.elements
    ));
    text.push_str(&match k.max_error {
        0.0 => "  no difference\n".to_owned(),
        e => format!(
            "  largest difference {e:.3e}, {:.1} % of what is allowed\n",
            100.0 * k.max_ratio
        ),
    });
    text.push_str(&format!("  multiply-adds: {}\n", k.multiply_adds));
    let mut conflicts: Vec<_> = k.banks.iter().filter(|(_, b)| b.wavefronts > b.ideal).collect();
    if !k.banks.is_empty() && conflicts.is_empty() {
        text.push_str("  shared memory: no bank conflicts\n");
    }
    conflicts.sort_by_key(|(line, b)| (std::cmp::Reverse(b.wavefronts - b.ideal), *line));
    for (line, b) in conflicts.into_iter().take(MAX_CONFLICTS) {
        text.push_str(&format!(
            "  line {line}: bank conflicts, {} wavefronts where {} would do\n",
            b.wavefronts, b.ideal
        ));
    }
    for (line, why) in &k.unchecked {
        text.push_str(&format!("  line {line}: not compared, {why}\n"));
    }
    text
}

/// The same as one object.
fn json(k: &KernelReport) -> String {
    let banks: Vec<_> = k
        .banks
        .iter()
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
        "complete": k.complete,
        "kernel_compared": k.checked,
        "specs_compared": k.specs,
        "elements_compared": k.elements,
        "max_error": k.max_error,
        "max_error_of_allowed": k.max_ratio,
        "multiply_adds": k.multiply_adds,
        "steps_per_block": k.steps_per_block,
        "banks": banks,
        "not_compared": unchecked,
    });
    format!("{object}\n")
}

/// A name from the command line, cut to a length for messages.
fn short(text: &str) -> String {
    text.chars().take(64).collect()
}
