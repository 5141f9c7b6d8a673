//! Runs the kernels of a program one after the other.
//!
//! Blocks run in parallel and do not see each other's writes; where two touch one element and one writes
//! it, that is a race, as nothing orders them. Results do not depend on how many run at once: blocks are
//! taken in order, and the first error in that order is reported.

use crate::exec::{Counts, Finished, Mode, Numerics, elected_lane, run_cluster};
use crate::grid::{Grid, MAX_PAGES};
use crate::inputs::{Initial, Inputs};
use crate::options::Options;
use crate::plan::{
    Checked, Inverse, Kernel, Leaf, Space, block_steps, live_registers, lower, not_decomposed,
};
use crate::report::{KernelReport, LeafReport, OutputTensor, Outputs, Report, SpecReport};
use crate::root::{Oracle, check_block, check_sums, offset};
use crate::state::banks::LeafCount;
use crate::state::{GlobalMemory, PAGE, Written};
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::SpecKind;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::VarId;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{BufferId, Program, SpecId};
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Runs every kernel of a program.
///
/// # Errors
/// The first error: in the order of kernels, of blocks, and of the program.
pub fn simulate(program: &Program, atoms: &AtomTable, options: &Options) -> Checked<Report> {
    let symbols = symbols(program, options)?;
    let mut memory = Memory::new(program, options, &symbols)?;
    let mut kernels = Vec::new();
    for (i, id) in program.kernels.iter().enumerate() {
        let kernel = lower(program, *id, atoms, &symbols, elected_lane(options.schedule))?;
        let later = touched(program, &program.kernels[i + 1..]);
        let needed = touched(program, &[*id]).iter().any(|b| later.contains(b));
        let sample = options.sample.filter(|_| !needed);
        kernels.push(run_kernel(&kernel, &mut memory, options, sample)?);
    }
    let complete = kernels.iter().all(|k| k.complete);
    Ok(Report { kernels, outputs: memory.into_outputs(complete) })
}

pub(crate) fn symbols(program: &Program, options: &Options) -> Checked<HashMap<VarId, i64>> {
    let mut values = HashMap::new();
    for var in &program.symbols {
        let info = program.arena.var_info(*var);
        let Some(value) = options.symbols.get(&info.name) else { continue };
        let fits =
            *value >= info.lo && info.hi.is_none_or(|hi| *value <= hi) && value % info.div == 0;
        if !fits {
            let text = format!("`{}` cannot be {value}", info.name);
            return Err(Box::new(
                Diagnostic::new(Code::BadInput, carbyne_ir::span::Span::default(), text)
                    .help("keep to the range and divisor that `sym` states"),
            ));
        }
        values.insert(*var, *value);
    }
    Ok(values)
}

/// The caller's tensors.
pub(crate) struct Memory {
    pub(crate) order: Vec<BufferId>,
    pub(crate) tensors: HashMap<BufferId, (GlobalMemory, Layout<i64>)>,
}

impl Memory {
    pub(crate) fn new(
        program: &Program,
        options: &Options,
        symbols: &HashMap<VarId, i64>,
    ) -> Checked<Self> {
        for name in options.arrays.keys() {
            if !program.params.iter().any(|b| program.buffers[*b].name == *name) {
                let text = format!("the program has no tensor `%{name}`");
                return Err(Box::new(Diagnostic::new(Code::BadInput, Default::default(), text)));
            }
        }
        let read = read_first(program);
        let mut memory = Memory { order: Vec::new(), tensors: HashMap::new() };
        for id in &program.params {
            let buffer = &program.buffers[*id];
            let unknown = |why: String| {
                Box::new(
                    Diagnostic::new(
                        Code::Symbolic,
                        buffer.span,
                        format!("the shape of %{} is not known", buffer.name),
                    )
                    .label(why)
                    .help("give every symbol a value"),
                )
            };
            let value = |v: VarId| symbols.get(&v).copied();
            let layout = program.tensors[buffer.tensor].concat().eval(&program.arena, &value);
            let layout = layout.map_err(|e| unknown(e.to_string()))?;
            let len =
                program.arena.eval(buffer.cosize, &value).map_err(|e| unknown(e.to_string()))?;
            let Some(inverse) = Inverse::new(layout.leaves()) else {
                let text =
                    format!("the strides of %{} interleave in too many elements", buffer.name);
                return Err(Box::new(Diagnostic::new(Code::TooLarge, buffer.span, text)));
            };
            let modes: Vec<i64> = layout.modes().iter().map(Layout::size).collect();
            let initial = match options.arrays.get(&buffer.name) {
                Some(array) => {
                    let extents: Vec<i64> =
                        array.shape.iter().map(|n| i64::try_from(*n).unwrap_or(-1)).collect();
                    let size = modes.iter().try_fold(1i64, |p, n| p.checked_mul(*n));
                    let full = size.is_some_and(|n| n as usize == array.values.len());
                    if extents != modes || array.scalar != buffer.scalar || !full {
                        return Err(Box::new(
                            Diagnostic::new(
                                Code::BadInput,
                                buffer.span,
                                format!("the array given for %{} does not fit it", buffer.name),
                            )
                            .label(format!(
                                "the array is {extents:?} of {}, the tensor {modes:?} of {}",
                                array.scalar, buffer.scalar
                            ))
                            .help("give one extent a mode of the tensor, in order"),
                        ));
                    }
                    Initial::Array(Arc::new(array.clone()), modes)
                }
                None if read.contains(id) => Initial::generated(options.inputs, &buffer.name),
                None => Initial::Undefined,
            };
            let (name, scalar) = (buffer.name.clone(), buffer.scalar);
            let pages = BTreeMap::new();
            memory.order.push(*id);
            let image = None;
            let tensor = GlobalMemory { name, scalar, len, inverse, initial, pages, image };
            memory.tensors.insert(*id, (tensor, layout));
        }
        Ok(memory)
    }

    /// The tensors as they are now.
    pub(crate) fn into_outputs(mut self, complete: bool) -> Outputs {
        let tensors = self
            .order
            .iter()
            .filter_map(|id| self.tensors.remove(id))
            .map(|(memory, layout)| OutputTensor {
                memory,
                modes: layout.modes().iter().map(Layout::size).collect(),
                leaves: layout.leaves().to_vec(),
                complete,
            })
            .collect();
        Outputs { tensors }
    }

    /// The kernel's buffers in its order.
    pub(crate) fn of(&self, kernel: &Kernel<'_>) -> Checked<Vec<&GlobalMemory>> {
        let find = |b: BufferId| {
            self.tensors.get(&b).map(|(m, _)| m).ok_or_else(|| {
                let text = "a buffer in global memory is none of the caller's";
                let span = kernel.program.buffers[b].span;
                Box::new(Diagnostic::new(Code::MemoryMismatch, span, text))
            })
        };
        kernel.globals.iter().map(|g| find(g.buffer)).collect()
    }
}

/// The buffers that kernels name.
fn touched(program: &Program, kernels: &[SpecId]) -> HashSet<BufferId> {
    let specs = kernels.iter().map(|k| &program.specs[*k]);
    let tensors = specs.flat_map(|s| s.input_tensors().chain(s.outputs.iter().copied()));
    tensors.map(|t| program.tensors[t].buffer).collect()
}

/// Buffers that the first kernel to touch them reads: inputs, and accumulators.
fn read_first(program: &Program) -> HashSet<BufferId> {
    let (mut read, mut touched) = (HashSet::new(), HashSet::new());
    for id in &program.kernels {
        let spec = &program.specs[*id];
        let mut inputs: Vec<BufferId> =
            spec.input_tensors().map(|t| program.tensors[t].buffer).collect();
        let outputs: Vec<BufferId> =
            spec.outputs.iter().map(|t| program.tensors[*t].buffer).collect();
        if matches!(spec.kind, SpecKind::MatMul | SpecKind::Accumulate(_)) {
            inputs.extend(&outputs);
        }
        read.extend(inputs.iter().filter(|b| !touched.contains(*b)).copied());
        touched.extend(inputs);
        touched.extend(outputs);
    }
    read
}

fn run_kernel(
    kernel: &Kernel<'_>,
    memory: &mut Memory,
    options: &Options,
    sample: Option<u64>,
) -> Checked<KernelReport> {
    let spec = &kernel.program.specs[kernel.spec];
    let mut report = KernelReport {
        name: spec.name.clone().unwrap_or_default(),
        n_blocks: kernel.n_blocks,
        unchecked: kernel.unchecked.clone(),
        ..KernelReport::default()
    };
    let buffers = memory.of(kernel)?;
    if spec.body.is_none() {
        let written = by_meaning(kernel, &buffers, options)?;
        let output = kernel.root.as_ref().map(|r| kernel.views[r.outputs[0]].space);
        if let Some(Space::Global(i)) = output {
            merge_into(memory, kernel.globals[i].buffer, written);
        }
        report.complete = true;
        return Ok(report);
    }
    report.steps_per_block = steps(kernel, options);
    report.blocks_run = chosen_blocks(kernel, report.steps_per_block, options, sample)?;
    report.complete = report.blocks_run.len() as i64 == kernel.n_blocks;
    report.sampled = !report.complete && options.blocks.is_none();
    let root = kernel.root.as_ref().filter(|_| options.check);
    let inverse = root.and_then(|r| Inverse::new(&kernel.views[r.outputs[0]].leaves));
    let root = root.filter(|_| inverse.is_some());
    report.checked = root.is_some();
    let small_ints = matches!(options.inputs, Inputs::Ints(_));
    let mode = Mode { check: options.check, small_ints, schedule: options.schedule };
    let one = |block: i64, mut finished: Finished| -> Checked<Finished> {
        if let (Some(root), Some(inverse)) = (root, &inverse)
            && let Space::Global(i) = kernel.views[root.outputs[0]].space
        {
            let mut oracle = Oracle::new(kernel, &buffers, root);
            let Finished { pages, counts } = &mut finished;
            check_block(&mut oracle, inverse, &pages[i], block, mode.small_ints, counts)?;
            counts.numerics.resize(kernel.checks.len() + 1, Numerics::default());
            counts.numerics[kernel.checks.len()].executions += 1;
        }
        Ok(finished)
    };
    let cluster = |blocks: &[i64]| -> Checked<Vec<Finished>> {
        let first = blocks.first().copied().unwrap_or(0);
        let all = run_cluster(kernel, &buffers, first, mode)?;
        blocks.iter().zip(all).map(|(block, finished)| one(*block, finished)).collect()
    };
    let mut counts = Counts::default();
    let mut grid = Grid::new(kernel);
    // Few blocks at a time: each may hold much, and the first error ends it all.
    for chunk in report.blocks_run.chunks(2 * rayon::current_num_threads() * kernel.cluster) {
        let results: Vec<Checked<Vec<Finished>>> =
            chunk.par_chunks(kernel.cluster).map(cluster).collect();
        let results = results.into_iter().flat_map(|all| match all {
            Ok(all) => all.into_iter().map(Ok).collect(),
            Err(e) => vec![Err(e)],
        });
        for (block, result) in chunk.iter().zip(results) {
            let finished: Finished = result?;
            counts.merge(&finished.counts);
            grid.add(kernel, *block, finished)?;
            if grid.n_pages > MAX_PAGES {
                let text = "the blocks write more than can be kept";
                return Err(Box::new(
                    Diagnostic::new(Code::TooLarge, spec.span, text)
                        .help("run fewer blocks: `--blocks`"),
                ));
            }
        }
    }
    if let Some(root) = root.filter(|_| report.complete) {
        grid.all_written(kernel, root)?;
        if let (Some(inverse), Space::Global(i)) = (&inverse, kernel.views[root.outputs[0]].space) {
            let mut oracle = Oracle::new(kernel, &buffers, root);
            check_sums(&mut oracle, inverse, grid.sums(i), mode.small_ints, &mut counts)?;
        }
    }
    for (global, pages) in kernel.globals.iter().zip(grid.into_written()) {
        merge_into(memory, global.buffer, pages);
    }
    report.unchecked.extend(counts.skipped.iter().map(|site| {
        let why = "each thread of a group has its own view of an operand";
        (kernel.sites[*site as usize].line, why.to_owned())
    }));
    report.unchecked.sort();
    report.specs = counts.specs;
    report.elements = counts.elements;
    report.max_error = counts.max_error;
    report.max_ratio = counts.max_ratio;
    report.multiply_adds = counts.multiply_adds;
    report.leaves = leaves(kernel, &counts);
    report.numerics = numerics(kernel, &counts);
    report.repeated =
        counts.repeated.iter().map(|site| kernel.sites[*site as usize].line).collect();
    Ok(report)
}

/// What was counted of each leaf and synchronization, in text order.
fn leaves(kernel: &Kernel<'_>, counts: &Counts) -> Vec<LeafReport> {
    let registers = live_registers(kernel);
    let leaf = |(i, leaf): (usize, &Leaf)| {
        let kind = kernel.program.specs[leaf.spec].kind.to_string();
        let registers = registers.as_ref().map(|r| r[i]);
        let count = counts.leaves.get(i).copied().unwrap_or_default();
        (leaf.site, kind, leaf.atom.clone(), registers, count)
    };
    let sync = |(site, kind): &(u32, String)| {
        let executions = counts.syncs.get(site).copied().unwrap_or(0);
        (*site, kind.clone(), None, None, LeafCount { executions, ..LeafCount::default() })
    };
    let leaves = kernel.leaves.iter().enumerate().map(leaf);
    let mut all: Vec<_> = leaves.chain(kernel.syncs.iter().map(sync)).collect();
    all.sort_by_key(|(site, ..)| *site);
    all.into_iter()
        .map(|(site, kind, atom, registers, count)| LeafReport {
            line: kernel.sites[site as usize].line,
            kind,
            atom,
            registers,
            count,
        })
        .collect()
}

/// What was compared, the kernel first.
fn numerics(kernel: &Kernel<'_>, counts: &Counts) -> Vec<SpecReport> {
    let report = |site: u32, spec: SpecId, n: &Numerics| SpecReport {
        line: kernel.sites[site as usize].line,
        kind: kernel.program.specs[spec].kind.to_string(),
        executions: n.executions,
        elements: n.elements,
        max_error: n.max_error,
        max_ratio: n.max_ratio,
        max_ulp: n.max_ulp,
        relative_norm: match n.squares {
            (0.0, _) => Some(0.0),
            (error, all) => Some((error / all).sqrt()).filter(|r| r.is_finite()),
        },
    };
    let root = kernel.root.iter().zip(counts.numerics.last());
    let root = root.map(|(root, n)| report(root.site, kernel.spec, n));
    let checks = kernel.checks.iter().zip(&counts.numerics);
    let mut checks: Vec<_> = checks.map(|(c, n)| (c.site, report(c.site, c.spec, n))).collect();
    checks.sort_by_key(|(site, _)| *site);
    root.chain(checks.into_iter().map(|(_, r)| r)).filter(|r| r.executions > 0).collect()
}

fn merge_into(memory: &mut Memory, buffer: BufferId, pages: BTreeMap<u64, Written>) {
    let Some((tensor, _)) = memory.tensors.get_mut(&buffer) else { return };
    for (number, page) in pages {
        let to = tensor.pages.entry(number).or_default();
        for i in (0..PAGE).filter(|i| page.mask >> i & 1 == 1) {
            to.values[i] = page.values[i];
        }
        to.mask |= page.mask;
    }
}

/// An upper bound of the steps of a block, its share of comparing the kernel's outputs included.
fn steps(kernel: &Kernel<'_>, options: &Options) -> u64 {
    let steps = block_steps(kernel, options.check, options.schedule.is_some());
    let Some(root) = kernel.root.as_ref().filter(|_| options.check) else { return steps };
    let size = kernel.views[root.outputs[0]].size.unsigned_abs().saturating_mul(10);
    let all = (root.meaning.multiply_adds() / 8).saturating_add(size);
    steps.saturating_add(all / kernel.n_blocks.unsigned_abs().max(1))
}

/// Which blocks run: all, or some spread evenly, whole clusters.
fn chosen_blocks(
    kernel: &Kernel<'_>,
    steps: u64,
    options: &Options,
    sample: Option<u64>,
) -> Checked<Vec<i64>> {
    let span = kernel.program.specs[kernel.spec].span;
    if steps > options.budget {
        let many = if steps == u64::MAX { "2^64 or more".to_owned() } else { steps.to_string() };
        return Err(Box::new(
            Diagnostic::new(
                Code::StepBudget,
                span,
                format!("one block takes up to {many} steps, the budget is {}", options.budget),
            )
            .label("too long to simulate")
            .help("raise `--budget`, or choose smaller sizes"),
        ));
    }
    let size = kernel.cluster as u64;
    let fits = options.budget / steps.max(1) / size;
    let n_blocks = kernel.n_blocks.unsigned_abs() / size;
    let kept = sample_that_can_be_kept(kernel, kernel.n_blocks.unsigned_abs()) / size;
    let of_sample = sample.map_or(u64::MAX, |sample| sample / steps.max(1) / size);
    let most = options.blocks.map_or(kept.min(of_sample), |blocks| blocks.div_ceil(size));
    // The list itself is bounded: a block takes some hundred steps at least.
    let wanted = most.max(1).min(n_blocks).min(fits.max(1));
    let block = |i: u64| (u128::from(i) * u128::from(n_blocks) / u128::from(wanted)) as i64;
    let cluster = |first: i64| (0..size as i64).map(move |rank| first * size as i64 + rank);
    Ok((0..wanted).flat_map(|i| cluster(block(i))).collect())
}

/// How many blocks write no more than can be kept, if all write alike.
fn sample_that_can_be_kept(kernel: &Kernel<'_>, n_blocks: u64) -> u64 {
    let Some(root) = &kernel.root else { return n_blocks };
    let elements = kernel.views[root.outputs[0]].size.unsigned_abs();
    let room = (MAX_PAGES * PAGE / 2) as u64;
    if elements <= room {
        return n_blocks;
    }
    (u128::from(n_blocks) * u128::from(room) / u128::from(elements)) as u64
}

/// Executes a kernel without a body.
fn by_meaning(
    kernel: &Kernel<'_>,
    buffers: &[&GlobalMemory],
    options: &Options,
) -> Checked<BTreeMap<u64, Written>> {
    let span = kernel.program.specs[kernel.spec].span;
    let Some(root) = &kernel.root else { return Err(not_decomposed(span)) };
    let view = &kernel.views[root.outputs[0]];
    let work = root.meaning.multiply_adds().max(view.size.unsigned_abs());
    let inputs = root.inputs.iter().map(|s| match s {
        crate::plan::Source::View(v) => kernel.views[*v].size.unsigned_abs(),
        crate::plan::Source::Number(_) => 0,
    });
    let work = inputs.fold(work, u64::saturating_add);
    if work > options.budget {
        return Err(not_decomposed(span));
    }
    let mut oracle = Oracle::new(kernel, buffers, root);
    let mut written: BTreeMap<u64, Written> = BTreeMap::new();
    for e in 0..view.size {
        let raw = oracle.want(e)?.rounded(&root.meaning, view.scalar);
        let Ok(at) = u64::try_from(offset(view, e)) else { continue };
        let page = written.entry(at / PAGE as u64).or_default();
        page.values[at as usize % PAGE] = raw;
        page.mask |= 1 << (at as usize % PAGE);
    }
    Ok(written)
}
