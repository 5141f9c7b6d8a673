//! `carbyne atoms calibrate --device`: measures the cycles of atoms on a GPU, for the cost model,
//! and writes them to a file of costs.
//!
//! An atom is executed on its own results (`carbyne_atoms::probe::chain`). One warp gives the
//! cycles to completion; a multiprocessor full of warps gives the cycles to issue. For each of the
//! two, kernels with chains of two lengths are timed. Their difference counts, so the time around
//! the chain cancels out. All operands are ones.
//!
//! An atom that has no chain, or whose longer chain takes no longer, is not measured, and the
//! reason is printed. An atom is not measured in three more cases, either:
//!
//! - The machine code of the longer chain shows that the CUDA compiler folded the chain.
//! - The architecture emulates the atom. Then work that depends only on the factors is done once.
//! - The chain of a sequence (an atom of several instructions) has reached zero, infinity or NaN,
//!   for which it may take another path.

use super::compile::{compile_text, outside};
use super::fastest_launch::fastest_cycles;
use super::report::today;
use crate::args::CalibrateAtoms;
use crate::failure::{Failure, Outcome, Source};
use crate::{Io, output, pipeline};
use carbyne_atoms::probe::{Probe, Repeat, chain};
use carbyne_atoms::{Arch, Atom, AtomKind, AtomTable, limits};
use carbyne_codegen::nvrtc::{self, Emit, n_instructions};
use carbyne_codegen::{CudaKernel, Param, print_clocked};
use carbyne_ir::program::{BufferId, Program};
use carbyne_launch::{
    Arguments, Binary, Buffer, Fallible, Gpu, Launch, MapValues, Module, TensorMap,
};
use carbyne_simulate::Options;
use carbyne_simulate::conformance::{self, Case, Data, unpack};
use carbyne_simulate::device::Trial;
use carbyne_simulate::num::decode;
use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// Iterations of every chain.
const ROUNDS: i64 = 64;
/// Threads of a full multiprocessor: 8 warps per scheduler.
const FULL: i64 = 1024;
/// Launches of a kernel; the fastest counts.
const LAUNCHES: usize = 3;
/// Kernels per compilation.
const BATCH: usize = 16;

/// A kernel to time.
struct Chain {
    atom: usize,
    /// The index among the four kernels of an atom: shorter or longer chain, one warp or many.
    part: usize,
    probe: Probe,
    program: Program,
}

/// The results of the four kernels of an atom.
#[derive(Clone, Default)]
struct Measured {
    cycles: [Option<f64>; 4],
    instructions: [Option<usize>; 4],
    /// Whether a result is zero, infinite or NaN.
    special: bool,
    error: Option<String>,
}

pub(super) fn run(args: &CalibrateAtoms, io: &mut Io<'_>) -> Outcome {
    let gpu = Gpu::open(args.gpu).map_err(|d| outside(*d))?;
    let capability = gpu.info().capability;
    let own = Arch::ALL.iter().rev().find(|a| a.runs_on(capability, true));
    let table = match (&args.atoms.arch, own) {
        (Some(name), _) => pipeline::table(name)?,
        (None, Some(arch)) => AtomTable::new(*arch),
        (None, None) => return Err(Failure::usage("the atom table has no data about this GPU")),
    };
    if args.machine {
        return super::machine::run(args, &gpu, &table, io);
    }
    if let Some(name) = args.atoms.names.iter().find(|n| table.get(n).is_none()) {
        return Err(super::check_names::unknown_atom(name, std::slice::from_ref(&table)));
    }
    let only = &args.atoms.names;
    let atoms: Vec<&Atom> = table
        .atoms()
        .iter()
        .filter(|r| only.is_empty() || only.iter().any(|n| n == r.name))
        .collect();
    let (chains, mut unmeasured) = chains(&atoms, &table)?;
    let measured = measure(args, &gpu, &table, &chains, atoms.len())?;
    let schedulers = limits(table.arch).timing.schedulers;
    let mut found = serde_json::Map::new();
    let mut text = String::new();
    for (atom, m) in atoms.iter().zip(&measured) {
        if unmeasured.iter().any(|(name, _)| *name == atom.name) {
            continue;
        }
        match cycles(atom, m, schedulers) {
            Ok((issue, completion, instructions)) => {
                let old = atom.cost;
                // Writing to a string cannot fail.
                let _ = writeln!(
                    text,
                    "{}: issue {issue} (was {:.2}), completion {completion} (was {:.2}), \
                     {instructions} instructions",
                    atom.name, old.issue_cycles, old.completion_cycles
                );
                found.insert(
                    atom.name.to_owned(),
                    json!({
                        "issue_cycles": issue,
                        "completion_cycles": completion,
                        "instructions": instructions,
                    }),
                );
            }
            Err(why) => unmeasured.push((atom.name, why)),
        }
    }
    for (name, why) in &unmeasured {
        let _ = writeln!(text, "{name}: not measured: {why}");
    }
    let _ = writeln!(text, "{} atoms measured, {} not", found.len(), unmeasured.len());
    output::write(None, text.as_bytes(), io)?;
    match &args.output {
        Some(path) => write_costs(path, &gpu, &table, found, io),
        None => Ok(()),
    }
}

/// Times the chains. Returns one result for each of the `n_atoms` atoms.
fn measure(
    args: &CalibrateAtoms,
    gpu: &Gpu,
    table: &AtomTable,
    chains: &[Chain],
    n_atoms: usize,
) -> Result<Vec<Measured>, Failure> {
    let nvrtc = nvrtc::find().map_err(|d| outside(*d))?;
    let mut measured = vec![Measured::default(); n_atoms];
    for batch in chains.chunks(BATCH) {
        let kernels: Vec<_> = batch
            .iter()
            .filter_map(|c| c.program.kernels.first().map(|k| (&c.program, *k)))
            .collect();
        let source = Source {
            name: format!("chains for {}", table.arch),
            text: String::new(),
            ..Source::default()
        };
        let (text, kernels) =
            print_clocked(&kernels, table).map_err(|e| Failure::program(&source, e))?;
        let binary =
            compile_text(nvrtc, &text, table.arch, Emit::Cubin).map_err(|d| outside(*d))?;
        let module = gpu.load(&binary).map_err(|d| outside(*d))?;
        for (chain, kernel) in batch.iter().zip(&kernels) {
            let patience = Duration::from_secs(args.timeout.into());
            let to = &mut measured[chain.atom];
            if let Binary::Cubin(bytes) = &binary {
                to.instructions[chain.part] = n_instructions(bytes, &kernel.name);
            }
            match timed(gpu, &module, chain, kernel, table, patience) {
                Ok((cycles, ordinary)) => {
                    to.cycles[chain.part] = Some(cycles);
                    to.special |= !ordinary;
                }
                Err(d) => to.error = Some(d.to_string()),
            }
        }
    }
    Ok(measured)
}

/// Writes a file of costs for all architectures of the chip.
fn write_costs(
    path: &Path,
    gpu: &Gpu,
    table: &AtomTable,
    found: serde_json::Map<String, serde_json::Value>,
    io: &mut Io<'_>,
) -> Outcome {
    let info = gpu.info();
    let same = |a: &&Arch| limits(**a) == limits(table.arch);
    let architectures: Vec<&str> = Arch::ALL.iter().filter(same).map(|a| a.as_str()).collect();
    let file = json!({
        "format": 1,
        "architectures": architectures,
        "device": info.name,
        "driver": format!("{}.{}", info.driver.0, info.driver.1),
        "date": today(),
        "rows": found,
    });
    let text = serde_json::to_string_pretty(&file).map_err(|e| Failure::usage(e.to_string()))?;
    output::write(Some(path), format!("{text}\n").as_bytes(), io)
}

type Unmeasured = Vec<(&'static str, String)>;

/// The lengths of an atom's two chains. A long sequence must fit the instruction cache.
fn lengths(atom: &Atom) -> [i64; 2] {
    match atom.kind {
        AtomKind::Instruction => [8, 40],
        AtomKind::Sequence { .. } => [2, 10],
    }
}

/// The kernels of all atoms, and the atoms without kernels.
fn chains(atoms: &[&Atom], table: &AtomTable) -> Result<(Vec<Chain>, Unmeasured), Failure> {
    let (mut chains, mut unmeasured) = (vec![], vec![]);
    for (i, atom) in atoms.iter().enumerate() {
        if atom.cost.emulated {
            unmeasured.push((atom.name, "the architecture emulates it".to_owned()));
            continue;
        }
        let [short, long] = lengths(atom);
        let parts = [(short, 32), (long, 32), (short, FULL), (long, FULL)];
        for (part, (times, threads)) in parts.into_iter().enumerate() {
            let made = match chain(atom, table, threads, Repeat { rounds: ROUNDS, times }) {
                Ok(made) => made,
                Err(e) => {
                    unmeasured.push((atom.name, e.to_string()));
                    break;
                }
            };
            let name = format!("chain of {}", atom.name);
            let source = Source { name, text: made.text.clone(), ..Source::default() };
            let program = pipeline::decomposed(&source, table)?.program;
            chains.push(Chain { atom: i, part, probe: made, program });
        }
    }
    Ok((chains, unmeasured))
}

/// The cycles from the start of the first warp to the end of the last warp, in the fastest launch;
/// and whether the result of the chain is an ordinary number.
fn timed(
    gpu: &Gpu,
    module: &Module,
    chain: &Chain,
    kernel: &CudaKernel,
    table: &AtomTable,
    patience: Duration,
) -> Fallible<(f64, bool)> {
    let case = Case { data: Data::Ones, seed: 0 };
    let arrays = conformance::given(&chain.probe, case);
    let trial = Trial::new(&chain.program, table, &Options { arrays, ..Options::default() })?;
    let mut buffers = vec![];
    let mut clocks = None;
    for param in &kernel.params {
        let Param::Pointer { buffer, .. } = param else { continue };
        let Some(bytes) = trial.image(*buffer) else { continue };
        let mut on_gpu = gpu.allocate(bytes.len())?;
        on_gpu.write(&bytes)?;
        if chain.program.buffers[*buffer].name == "cycles" {
            clocks = Some(buffers.len());
        }
        buffers.push((*buffer, on_gpu));
    }
    let address = |b| buffers.iter().find(|(id, _)| *id == b).map(|(_, on)| on.address());
    let encode = |map: &MapValues| TensorMap::encode(map).map(|map| map.words());
    let arena = &chain.program.arena;
    let number = |b| trial.image(b);
    let arguments =
        Arguments::for_kernel(kernel, arena, address, number, |v| trial.symbol(v), encode)?;
    let launch = Launch::of_kernel(kernel, 1)?;
    let function = module.function(kernel, launch)?;
    let clocks = clocks.and_then(|i| buffers.get(i)).map(|(_, on_gpu)| on_gpu);
    let launched = || gpu.launch(&function, launch, &arguments, patience);
    let fastest = fastest_cycles(LAUNCHES, launched, clocks, kernel.block / 32)?;
    let mut ordinary = true;
    for o in chain.probe.operands.iter().filter(|o| o.scalar.is_float()) {
        let of = |(id, _): &&(BufferId, Buffer)| {
            Some(&chain.program.buffers[*id].name) == o.output.as_ref()
        };
        let Some((_, on_gpu)) = buffers.iter().find(of) else { continue };
        let mut bytes = vec![0; on_gpu.len()];
        on_gpu.read(&mut bytes)?;
        let first = unpack(&bytes, o.scalar, 1).first().map_or(0.0, |raw| decode(o.scalar, *raw));
        ordinary &= first.is_normal();
    }
    Ok((fastest, ordinary))
}

/// Issue and completion cycles and machine instructions of one execution, rounded to two decimals.
fn cycles(atom: &Atom, m: &Measured, schedulers: f64) -> Result<(f64, f64, f64), String> {
    if let Some(e) = &m.error {
        return Err(e.clone());
    }
    if m.special && matches!(atom.kind, AtomKind::Sequence { .. }) {
        return Err("the result of a chain is zero, infinite or NaN".to_owned());
    }
    let [short, long] = lengths(atom);
    let more = (long - short) as f64;
    let [Some(a), Some(b), Some(c), Some(d)] = m.cycles else {
        return Err("a kernel is missing".to_owned());
    };
    let (Some(n), Some(n_long)) = (m.instructions[0], m.instructions[1]) else {
        return Err("the machine code cannot be read".to_owned());
    };
    let instructions = (n_long as f64 - n as f64) / more;
    if instructions < 0.9 {
        return Err("the compiler folded a chain".to_owned());
    }
    let warps = FULL as f64 / 32.0 / schedulers;
    let per_execution = |cycles: f64| cycles / (ROUNDS as f64 * more);
    let (completion, issue) = (per_execution(b - a), per_execution(d - c) / warps);
    if !(issue >= 0.01 && completion >= 0.01) {
        return Err("the longer chain takes no longer".to_owned());
    }
    let rounded = |v: f64| (100.0 * v).round() / 100.0;
    Ok((rounded(issue), rounded(completion), rounded(instructions)))
}
