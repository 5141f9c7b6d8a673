//! Runs the kernels of a program one after the other, and returns a report ([`Report`]). It first
//! creates the caller's tensors, and refuses arrays and symbols that contradict the program. For
//! each kernel it chooses the blocks that run, merges their writes into the caller's tensors, and
//! compares the results.
//!
//! Blocks run in parallel and do not see each other's writes. Nothing orders blocks, so two blocks
//! that access one element, at least one of them a write, are a race. Results do not depend on the
//! number of blocks that run at once: the results of blocks are merged in block order, and the
//! first error in that order is reported.

use crate::Array;
use crate::decisions::Decisions;
use crate::denote::{Region, narrowed};
use crate::exec::{Counts, Finished, Mode, Numerics, elected_lane, run_cluster};
use crate::grid::{Grid, MAX_PAGES};
use crate::index::Sizes;
use crate::inputs::{Initial, Inputs};
use crate::kernel_results::{Oracle, Output, by_meaning, check_block, check_sums, check_unwritten};
use crate::num::decode;
use crate::options::{Between, Options};
use crate::plan::{
    Checked, Counted, Inverse, Kernel, LeafSpec, RootSpec, Space, block_steps, live_registers,
    lower, not_decomposed,
};
use crate::report::{
    KernelReport, LeafReport, OutputTensor, Outputs, Report, Rounding, Short, SpecReport,
};
use crate::state::banks::LeafCount;
use crate::state::{GlobalMemory, PAGE, Pages, Value};
use crate::workers::Workers;
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::SpecKind;
use carbyne_ir::cancel;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::VarId;
use carbyne_ir::layout::LayoutError;
use carbyne_ir::program::{Buffer, BufferId, CastRole, MeansInput, Program, SpecId, TensorId};
use carbyne_ir::progress::Stage;
use indexmap::IndexMap;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Runs every kernel of a program.
///
/// # Errors
/// The first error, in the order of kernels, then of blocks, then of the program.
pub fn simulate(program: &Program, atoms: &AtomTable, options: &Options) -> Checked<Report> {
    run(program, atoms, options).map_err(|d| Box::new(program.noted(*d)))
}

fn run(program: &Program, atoms: &AtomTable, options: &Options) -> Checked<Report> {
    let symbols = symbols(program, options)?;
    let mut memory = Memory::new(program, options, &symbols)?;
    let mut kernels = Vec::new();
    for (i, id) in program.kernels.iter().enumerate() {
        let kernel = lower(program, *id, atoms, &symbols, elected_lane(options.schedule))?;
        let later = read(program, &program.kernels[i + 1..]);
        let needed =
            program.specs[*id].outputs.iter().any(|t| later.contains(&buffer(program, *t)));
        kernels.push(run_kernel(&kernel, &mut memory, options, needed)?);
    }
    let complete = kernels.iter().all(|k| k.complete);
    Ok(Report { kernels, outputs: memory.into_outputs(complete) })
}

/// The values of the symbols, checked against all conditions of the program. A symbol without a
/// value is reported at its first use.
pub(crate) fn symbols(program: &Program, options: &Options) -> Checked<HashMap<VarId, i64>> {
    let value = |var: &VarId| options.symbols.get(&program.arena.var_info(*var).name).copied();
    let values: HashMap<VarId, i64> =
        program.symbols.iter().filter_map(|var| Some((*var, value(var)?))).collect();
    program.check_facts(&|var| values.get(&var).copied())?;
    Ok(values)
}

/// The caller's tensors.
pub(crate) struct Memory {
    /// The tensors with their sizes, in the order of the program's parameters.
    pub(crate) tensors: IndexMap<BufferId, (GlobalMemory, Sizes)>,
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
                let help = "name one that the program declares in GL";
                let d = Diagnostic::new(Code::BadInput, Default::default(), text);
                return Err(Box::new(d.help(help)));
            }
        }
        let read = read_first(program);
        let own;
        let decisions = match &options.decisions {
            Some(decisions) => decisions,
            None => {
                own = Decisions::of(program);
                &own
            }
        };
        let declared = Declared { program, options, symbols, decisions, read };
        let mut memory = Memory { tensors: IndexMap::new() };
        for id in &program.params {
            memory.tensors.insert(*id, declared.tensor(*id)?);
        }
        Ok(memory)
    }

    /// The tensors in their present state.
    pub(crate) fn into_outputs(self, complete: bool) -> Outputs {
        let tensors = self
            .tensors
            .into_values()
            .map(|(memory, sizes)| OutputTensor {
                memory,
                modes: sizes.extents(),
                leaves: sizes.leaves(),
                complete,
            })
            .collect();
        Outputs { tensors }
    }

    /// The kernel's buffers, in the order of [`Kernel::globals`].
    pub(crate) fn of(&self, kernel: &Kernel<'_>) -> Checked<Vec<&GlobalMemory>> {
        let find = |b: BufferId| {
            self.tensors.get(&b).map(|(m, _)| m).ok_or_else(|| {
                let text = "this buffer in global memory is not a tensor of the caller";
                let span = kernel.program.buffers[b].span;
                let help = "declare the tensor at the top of the text: the caller provides it";
                Box::new(Diagnostic::new(Code::MemoryMismatch, span, text).help(help))
            })
        };
        kernel.globals.iter().map(|g| find(g.buffer)).collect()
    }
}

/// The tensors that a program declares, with their initial elements.
struct Declared<'a> {
    program: &'a Program,
    options: &'a Options,
    symbols: &'a HashMap<VarId, i64>,
    decisions: &'a Decisions,
    /// The tensors that are read before they are written.
    read: HashSet<BufferId>,
}

impl Declared<'_> {
    fn tensor(&self, id: BufferId) -> Checked<(GlobalMemory, Sizes)> {
        let Declared { program, options, symbols, .. } = *self;
        let buffer = &program.buffers[id];
        let unknown = |why: LayoutError| {
            if let LayoutError::Overflow { .. } = why {
                let text = format!("the shape of %{} does not fit 64 bits", buffer.name);
                let d = Diagnostic::new(Code::TooLarge, buffer.span, text);
                let help = "give the symbols of its extents smaller values";
                return Box::new(d.label(why.to_string()).help(help));
            }
            Box::new(
                Diagnostic::new(
                    Code::Symbolic,
                    buffer.span,
                    format!("the shape of %{} is not known", buffer.name),
                )
                .label(why.to_string())
                .help("give every symbol a value: `--sym NAME=VALUE`"),
            )
        };
        let value = |v: VarId| symbols.get(&v).copied();
        let declared = program.tensors[buffer.tensor].concat();
        let sizes = Sizes::eval(&declared, &program.arena, &value).map_err(unknown)?;
        let len = match sizes.size {
            0 => 0,
            _ => program.arena.eval(buffer.cosize, &value).map_err(unknown)?,
        };
        let Some(inverse) = Inverse::new(&sizes.leaves()) else {
            let text = format!("the strides of %{} interleave in too many elements", buffer.name);
            let help = "give it strides each of which exceeds the reach of all smaller ones";
            let d = Diagnostic::new(Code::TooLarge, buffer.span, text);
            return Err(Box::new(d.help(help)));
        };
        let modes = sizes.extents();
        let range = match buffer.range {
            None => None,
            Some((lo, hi)) => {
                let known = |d| program.arena.eval(d, &value).map_err(unknown);
                Some(within(buffer, (known(lo)?, known(hi)?))?)
            }
        };
        let initial = match options.arrays.get(&buffer.name) {
            Some(array) => {
                check_array(buffer, array, &modes, range)?;
                Initial::Array(Arc::new(array.clone()), modes)
            }
            None if self.read.contains(&id) => self.generated(buffer, range, &sizes)?,
            None => Initial::Undefined,
        };
        let (name, scalar) = (buffer.name.clone(), buffer.scalar);
        let pages = Pages::default();
        let image = None;
        let shadows = options.shadow && options.check;
        let tensor = GlobalMemory { name, scalar, len, inverse, initial, pages, image, shadows };
        Ok((tensor, sizes))
    }

    /// The generated elements of a tensor for which the caller gives no array.
    fn generated(
        &self,
        buffer: &Buffer,
        range: Option<(i64, i64)>,
        sizes: &Sizes,
    ) -> Checked<Initial> {
        let number = buffer.is_number();
        let initial = Initial::generated(self.options.inputs, &buffer.name, number);
        Ok(match range {
            Some((_, end)) if buffer.splits => initial.splitting(end - 1, sizes.size - 1),
            Some(range) if buffer.distinct => {
                fits_distinct(buffer, range, sizes.size)?;
                initial.distinct(range)
            }
            Some(range) => initial.within(range),
            None if number => initial,
            None => match self.decisions.by(&buffer.name) {
                Some(decides) => initial.deciding(decides, buffer.scalar, &sizes.extents()),
                None => initial,
            },
        })
    }
}

/// Refuses an array whose shape or type differs from its tensor, or whose elements contradict the
/// declarations of the tensor.
fn check_array(
    buffer: &Buffer,
    array: &Array,
    modes: &[i64],
    range: Option<(i64, i64)>,
) -> Checked<()> {
    let extents: Vec<i64> = array.shape.iter().map(|n| i64::try_from(*n).unwrap_or(-1)).collect();
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
            .help("give one extent for each mode of the tensor, in order"),
        ));
    }
    if let Some(range) = range {
        in_range(buffer, array, range)?;
        if buffer.splits {
            splits(buffer, array, range.1 - 1)?;
        }
        if buffer.distinct {
            distinct(buffer, array)?;
        }
    }
    Ok(())
}

fn buffer(program: &Program, t: TensorId) -> BufferId {
    program.tensors[t].buffer
}

/// The buffers whose previous elements affect one of these kernels.
fn read(program: &Program, kernels: &[SpecId]) -> HashSet<BufferId> {
    kernels.iter().flat_map(|k| reads(program, *k)).collect()
}

/// The buffers whose previous elements affect a kernel: its inputs, and the outputs that it adds
/// to. For a generic spec, only the `means` block tells whether an output is added to.
pub(crate) fn reads(program: &Program, kernel: SpecId) -> Vec<BufferId> {
    let spec = &program.specs[kernel];
    let adds = match (&spec.kind, &spec.means) {
        (kind, _) if kind.reads_output() => spec.outputs.clone(),
        (SpecKind::Generic, Some(means)) => {
            let used =
                |v: usize| means.steps.iter().any(|s| s.inputs.contains(&MeansInput::Value(v)));
            let values = means.values.iter().enumerate().filter(|(i, _)| used(*i));
            values.filter_map(|(_, v)| v.operand).collect()
        }
        _ => Vec::new(),
    };
    spec.input_tensors().chain(adds).map(|t| buffer(program, t)).collect()
}

/// The integers of a range that the type can hold.
fn within(buffer: &Buffer, (lo, hi): (i64, i64)) -> Checked<(i64, i64)> {
    let (least, most) = buffer.scalar.int_range().unwrap_or_default();
    let held = |n: i64, d: i128| i64::try_from(i128::from(n).clamp(least, most + d)).unwrap_or(n);
    let (from, below) = (held(lo, 0), held(hi, 1));
    match from < below {
        true => Ok((from, below)),
        false => bad(
            buffer,
            format!("the type of %{} has no number in the tensor's range", buffer.name),
            format!("from {lo}, and below {hi}, of {}", buffer.scalar),
            "change the values of the symbols in the range",
        ),
    }
}

/// Refuses integers of a tensor.
fn bad<T>(buffer: &Buffer, message: String, label: impl Into<String>, help: &str) -> Checked<T> {
    let d = Diagnostic::new(Code::BadInput, buffer.span, message);
    Err(Box::new(d.label(label).help(help)))
}

/// Refuses an array with an integer outside the range that the tensor declares.
fn in_range(buffer: &Buffer, array: &Array, (lo, hi): (i64, i64)) -> Checked<()> {
    let number = |bits: &u64| decode(buffer.scalar, *bits);
    let wrong = |v: &f64| *v < lo as f64 || *v >= hi as f64;
    let outside = array.values.iter().map(number).enumerate().find(|(_, v)| wrong(v));
    let Some((i, v)) = outside else { return Ok(()) };
    bad(
        buffer,
        format!("the array given for %{} holds {v}, at place {i}", buffer.name),
        format!("its elements are from {lo} and below {hi}"),
        "correct the array, or the range that the tensor states",
    )
}

/// Refuses an array that does not split `n` elements into consecutive parts.
fn splits(buffer: &Buffer, array: &Array, n: i64) -> Checked<()> {
    let value = |i: usize| array.values.get(i).map(|bits| decode(buffer.scalar, *bits));
    let last = array.values.len().saturating_sub(1);
    let falls = |i: &usize| value(*i).zip(value(i + 1)).is_some_and(|(a, b)| b < a);
    let (i, wanted) = match (value(0), value(last), (0..last).find(falls)) {
        (Some(first), ..) if first != 0.0 => (0, "0".to_owned()),
        (.., Some(i)) => (i + 1, "a number that is at least the previous one".to_owned()),
        (_, Some(end), _) if end != n as f64 => (last, n.to_string()),
        _ => return Ok(()),
    };
    let v = value(i).unwrap_or_default();
    bad(
        buffer,
        format!("the array given for %{} holds {v}, at place {i}", buffer.name),
        format!("the tensor splits {n} elements: this place needs {wanted}"),
        "give the start of each consecutive part, and finally the end of the last part",
    )
}

/// Refuses an array with two equal elements.
fn distinct(buffer: &Buffer, array: &Array) -> Checked<()> {
    let mut seen = HashMap::new();
    for (i, bits) in array.values.iter().enumerate() {
        if let Some(before) = seen.insert(*bits, i) {
            let v = decode(buffer.scalar, *bits);
            return bad(
                buffer,
                format!(
                    "the array given for %{} holds {v} at places {before} and {i}",
                    buffer.name
                ),
                "the tensor is declared `distinct`: no two elements may be equal",
                "correct the array, or remove `distinct` from the tensor",
            );
        }
    }
    Ok(())
}

/// Refuses a tensor of distinct integers that has more elements than its range has integers.
fn fits_distinct(buffer: &Buffer, (lo, hi): (i64, i64), n: i64) -> Checked<()> {
    if i128::from(n) <= i128::from(hi) - i128::from(lo) {
        return Ok(());
    }
    bad(
        buffer,
        format!("%{} has {n} distinct elements, more than its range has integers", buffer.name),
        format!("its elements are from {lo} and below {hi}"),
        "change the values of the symbols in the range",
    )
}

/// The buffers whose first access in the program is a read: inputs, and accumulators.
fn read_first(program: &Program) -> HashSet<BufferId> {
    let (mut read, mut touched) = (HashSet::new(), HashSet::new());
    for id in &program.kernels {
        let inputs = reads(program, *id);
        let outputs: Vec<BufferId> =
            program.specs[*id].outputs.iter().map(|t| buffer(program, *t)).collect();
        read.extend(inputs.iter().filter(|b| !touched.contains(*b)).copied());
        touched.extend(inputs);
        touched.extend(outputs);
    }
    read
}

/// The seed of the second schedule.
const ANOTHER: u64 = 1;
/// The number of leaf executions without a write after which no more replacement blocks are tried.
const MOST_IN_VAIN: u64 = 1 << 14;

fn run_kernel(
    kernel: &Kernel<'_>,
    memory: &mut Memory,
    options: &Options,
    needed: bool,
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
        let written = meant(kernel, &buffers, options)?;
        merge_into(memory, kernel, written);
        if needed {
            begin_again(memory, kernel, &options.between);
        }
        report.complete = true;
        report.by_meaning = true;
        return Ok(report);
    }
    let whole = needed && kernel.root.is_none();
    let mut run = Run::new(kernel, buffers, options);
    (report.blocks_run, run.mode, report.steps_per_block) =
        chosen_blocks(kernel, &run.buffers, run.mode, options, whole)?;
    report.complete = report.blocks_run.len() as i64 == kernel.n_blocks;
    report.sampled = !report.complete && options.blocks.is_none();
    let (mut counts, grid) = run.blocks(&mut report)?;
    run.check(&grid, &mut counts, &mut report)?;
    let mut written: Vec<Pages> = grid.into_written(report.complete).collect();
    if needed && !report.complete {
        run.fill(&mut written)?;
        report.filled = true;
    }
    merge_into(memory, kernel, written);
    if needed {
        begin_again(memory, kernel, &options.between);
    }
    count(kernel, counts, &mut report);
    Ok(report)
}

/// Adds the counts to the report.
fn count(kernel: &Kernel<'_>, counts: Counts, report: &mut KernelReport) {
    report.unchecked.extend(counts.skipped.iter().map(|site| {
        let why = "the threads of a group have different views of an operand";
        (kernel.sites[*site as usize].line, why.to_owned())
    }));
    report.unchecked.sort();
    report.leaves = leaves(kernel, &counts);
    report.numerics = numerics(kernel, &counts);
    let turned = counts.turned.iter().map(|(site, n)| (kernel.sites[*site as usize].line, *n));
    report.turned = turned.collect();
    report.repeated =
        counts.repeated.iter().map(|site| kernel.sites[*site as usize].line).collect();
    report.specs = counts.specs;
    report.elements = counts.elements;
    report.max_error = counts.max_error;
    report.max_ratio = counts.max_ratio;
    report.multiply_adds = counts.multiply_adds;
}

/// A kernel whose blocks run, with the options of the run.
struct Run<'a> {
    kernel: &'a Kernel<'a>,
    buffers: Vec<&'a GlobalMemory>,
    options: &'a Options,
    mode: Mode,
    /// The meaning that the results are compared with, if any.
    root: Option<&'a RootSpec>,
    /// The outputs that have a meaning.
    outputs: Vec<Output>,
}

impl<'a> Run<'a> {
    fn new(kernel: &'a Kernel<'a>, buffers: Vec<&'a GlobalMemory>, options: &'a Options) -> Self {
        let shadows = options.shadow && options.check;
        let root = kernel
            .root
            .as_ref()
            .filter(|r| options.check && (shadows || r.reference.meaning.is_some()));
        let outputs = root.map(|root| Output::all(kernel, root)).unwrap_or_default();
        let root = root.filter(|_| !outputs.is_empty());
        let mode = Mode {
            check: options.check,
            small_ints: matches!(options.inputs, Inputs::Ints(_)),
            schedule: options.schedule,
            shadows,
            statements: options.statements && shadows,
            most: None,
        };
        Run { kernel, buffers, options, mode, root, outputs }
    }

    /// Compares the elements that a block wrote with their meaning.
    fn judge(&self, block: i64, finished: &mut Finished) -> Checked<()> {
        let Some(root) = self.root else { return Ok(()) };
        let oracle = Oracle::new(self.kernel, &self.buffers, root);
        let Finished { pages, counts } = finished;
        for output in &self.outputs {
            let pages = &pages[output.global];
            check_block(&oracle, output, pages, block, self.mode.small_ints, counts)?;
        }
        let n_checks = self.kernel.checks.len();
        counts.numerics.resize(n_checks + 1, Numerics::default());
        counts.numerics[n_checks].executions += 1;
        Ok(())
    }

    /// Runs the chosen blocks, and replaces blocks that find no work.
    fn blocks(&self, report: &mut KernelReport) -> Checked<(Counts, Grid)> {
        let Run { kernel, mode, .. } = *self;
        let one = |block: i64, finished: &mut Finished| self.judge(block, finished);
        let mut ran = Ran::new(kernel, mode);
        let chosen = &report.blocks_run;
        let token = cancel::current();
        let again = || cancel::under(token.as_ref(), || self.again(chosen));
        let (done, done_again) = Workers::get()?
            .run(|| rayon::join(|| ran.blocks(kernel, &self.buffers, chosen, mode, &one), again));
        done?;
        if report.sampled {
            self.spare(&mut ran, report)?;
        }
        report.idle = ran.idle as u64;
        report.complete = report.blocks_run.len() as i64 == kernel.n_blocks;
        report.sampled &= !report.complete;
        done_again?;
        Ok((ran.counts, ran.grid))
    }

    /// Runs the first cluster under a second schedule if its threads hand over stages through
    /// mbarriers: threads may be faster or slower than in the order of the text.
    fn again(&self, chosen: &[i64]) -> Checked<()> {
        let Run { kernel, options, mode, .. } = *self;
        if !options.check || options.schedule.is_some() || !kernel.waits_for_mbarriers() {
            return Ok(());
        }
        let first = &chosen[..kernel.cluster.min(chosen.len())];
        // A cluster executes the same iterations under every schedule.
        let (schedule, most) = (Some(ANOTHER), None);
        let drawn = Mode { schedule, check: false, shadows: false, most, ..mode };
        execute(kernel, &self.buffers, first, drawn, |_, _| Ok(())).map(drop)
    }

    /// Runs replacements for the blocks that find no work, until [`MOST_IN_VAIN`] leaves were
    /// executed without a write.
    fn spare(&self, ran: &mut Ran, report: &mut KernelReport) -> Checked<()> {
        let Run { kernel, options, mode, .. } = *self;
        let one = |block: i64, finished: &mut Finished| self.judge(block, finished);
        let chosen: HashSet<i64> = report.blocks_run.iter().copied().collect();
        let most = spare_clusters(kernel, report, options);
        let mut spare = spare_blocks(kernel, chosen, most);
        let (missing, mut busy) = (ran.idle_clusters, 0);
        while missing > busy && ran.in_vain <= MOST_IN_VAIN {
            let more: Vec<i64> = spare.by_ref().take((missing - busy) * kernel.cluster).collect();
            if more.is_empty() {
                break;
            }
            let before = ran.idle_clusters;
            ran.blocks(kernel, &self.buffers, &more, mode, &one)?;
            busy += more.len() / kernel.cluster - (ran.idle_clusters - before);
            report.blocks_run.extend(more);
        }
        report.blocks_run.sort_unstable();
        Ok(())
    }

    /// Checks the elements that all blocks wrote together.
    fn check(&self, grid: &Grid, counts: &mut Counts, report: &mut KernelReport) -> Checked<()> {
        let Run { kernel, root, mode, .. } = *self;
        if self.options.check {
            grid.only_outputs(kernel)?;
            match report.complete {
                false => report.short = shares(kernel, grid, report.blocks_run.len())?,
                true => {
                    for (output, _) in kernel.outputs.iter().filter(|(_, is_read)| !is_read) {
                        grid.all_written(kernel, *output)?;
                    }
                }
            }
        }
        if let Some(root) = root.filter(|_| report.complete) {
            let oracle = Oracle::new(kernel, &self.buffers, root);
            for output in &self.outputs {
                let sums = grid.sums(output.global);
                check_sums(&oracle, output, sums, mode.small_ints, counts)?;
                let is_read = kernel.outputs.iter().any(|(v, read)| *v == output.view && *read);
                if !is_read {
                    continue;
                }
                let left: Vec<i64> = grid.unwritten(kernel, output.view).collect();
                let before = self.buffers[output.global];
                check_unwritten(&oracle, output, before, &left, mode.small_ints, counts)?;
            }
        }
        let adds = |o: &Output| grid.sums(o.global).next().is_some();
        report.added_to = root.is_some() && !report.complete && self.outputs.iter().any(adds);
        report.checked = root.is_some()
            && counts.numerics.last().is_some_and(|of_kernel| of_kernel.elements > 0);
        Ok(())
    }

    /// Adds the elements that the blocks which did not run would write.
    fn fill(&self, written: &mut [Pages]) -> Checked<()> {
        let others = meant(self.kernel, &self.buffers, self.options)?;
        for (pages, others) in written.iter_mut().zip(others) {
            pages.merge(&others, self.mode.shadows, false);
        }
        Ok(())
    }
}

/// Runs blocks of a kernel; `ended` inspects the result of each block.
pub(crate) fn execute(
    kernel: &Kernel<'_>,
    buffers: &[&GlobalMemory],
    blocks: &[i64],
    mode: Mode,
    ended: impl Fn(i64, &mut Finished) -> Checked<()> + Sync,
) -> Checked<(Counts, Grid)> {
    let mut ran = Ran::new(kernel, mode);
    ran.blocks(kernel, buffers, blocks, mode, &ended)?;
    Ok((ran.counts, ran.grid))
}

/// The results of the blocks that ran.
struct Ran {
    counts: Counts,
    grid: Grid,
    /// The number of blocks that wrote nothing.
    idle: usize,
    /// The number of clusters that wrote nothing.
    idle_clusters: usize,
    /// The number of leaf executions in these clusters.
    in_vain: u64,
}

impl Ran {
    fn new(kernel: &Kernel<'_>, mode: Mode) -> Self {
        let (counts, grid) = (Counts::default(), Grid::new(kernel, mode.shadows));
        Ran { counts, grid, idle: 0, idle_clusters: 0, in_vain: 0 }
    }

    /// Runs more blocks, in complete clusters; `ended` inspects the result of each block.
    fn blocks(
        &mut self,
        kernel: &Kernel<'_>,
        buffers: &[&GlobalMemory],
        blocks: &[i64],
        mode: Mode,
        ended: &(impl Fn(i64, &mut Finished) -> Checked<()> + Sync),
    ) -> Checked<()> {
        type Ended = (Finished, Checked<()>);
        let cluster = |blocks: &[i64]| -> Checked<Vec<Ended>> {
            let first = blocks.first().copied().unwrap_or(0);
            let all = run_cluster(kernel, buffers, first, mode)?;
            let judged = |(block, mut finished): (&i64, Finished)| {
                let judged = ended(*block, &mut finished);
                (finished, judged)
            };
            Ok(blocks.iter().zip(all).map(judged).collect())
        };
        // Few blocks at a time: each may need much memory, and the first error ends the run.
        let workers = Workers::get()?;
        let stage = Stage::new("simulating", Some(blocks.len() as u64));
        stage.kernel(kernel.program.specs[kernel.spec].name.as_deref());
        for chunk in blocks.chunks(2 * workers.count() * kernel.cluster) {
            let clusters: Vec<&[i64]> = chunk.chunks(kernel.cluster).collect();
            let results: Vec<Checked<Vec<Ended>>> = workers.map(&clusters, |c| cluster(c));
            // A race of blocks is the cause of a wrong element, so the race is reported first.
            let mut wrong = None;
            for (blocks, results) in chunk.chunks(kernel.cluster).zip(results) {
                let (mut idle, mut executions) = (0, 0u64);
                for (block, (finished, judged)) in blocks.iter().zip(results?) {
                    wrong = wrong.or(judged.err());
                    idle += usize::from(!finished.has_written());
                    let leaves = finished.counts.leaves.iter().map(|leaf| leaf.executions);
                    executions = leaves.fold(executions, u64::saturating_add);
                    self.counts.merge(&finished.counts);
                    self.grid.add(kernel, *block, finished)?;
                    if self.grid.n_pages > MAX_PAGES {
                        return Err(too_much_written(kernel, "run fewer blocks: `--blocks`"));
                    }
                }
                self.idle += idle;
                if idle == blocks.len() {
                    self.idle_clusters += 1;
                    self.in_vain = self.in_vain.saturating_add(executions);
                }
            }
            if let Some(wrong) = wrong {
                return Err(wrong);
            }
            stage.steps(chunk.len() as u64);
        }
        Ok(())
    }
}

/// The error for results that exceed the memory of the simulator.
fn too_much_written(kernel: &Kernel<'_>, help: &str) -> Box<Diagnostic> {
    let span = kernel.program.specs[kernel.spec].span;
    let text = "the blocks write more elements than the simulator can store";
    Box::new(Diagnostic::new(Code::TooLarge, span, text).help(help))
}

/// The number of clusters that may replace the clusters of a sample that find no work: some for
/// each of them, and no more than the budget allows.
fn spare_clusters(kernel: &Kernel<'_>, report: &KernelReport, options: &Options) -> u64 {
    const FOR_EACH: u64 = 16;
    const LEAST: u64 = 64;
    const MOST: u64 = 1 << 10;
    let size = kernel.cluster as u64;
    let chosen = report.blocks_run.len() as u64 / size.max(1);
    let fits = options.budget / report.steps_per_block.max(1) / size.max(1);
    chosen.saturating_mul(FOR_EACH).clamp(LEAST, MOST).min(fits.saturating_sub(chosen))
}

/// Replacements for the blocks of a sample that find no work: complete clusters, spread evenly. The
/// blocks of one cluster are adjacent.
fn spare_blocks(
    kernel: &Kernel<'_>,
    chosen: HashSet<i64>,
    most: u64,
) -> impl Iterator<Item = i64> + use<> {
    let size = kernel.cluster as i64;
    let n = kernel.n_blocks / size.max(1);
    let tried = n.min(i64::try_from(most).unwrap_or(i64::MAX));
    let first = move |i: i64| (i128::from(i) * i128::from(n) / i128::from(tried)) as i64 * size;
    let others = (0..tried).map(first).filter(move |block| !chosen.contains(block));
    others.flat_map(move |first| first..first + size)
}

/// The counts of each leaf and each synchronization statement, in text order.
fn leaves(kernel: &Kernel<'_>, counts: &Counts) -> Vec<LeafReport> {
    let registers = live_registers(kernel);
    let leaf = |(i, leaf): (usize, &LeafSpec)| {
        let kind = kernel.program.specs[leaf.spec].kind.to_string();
        let registers = registers.as_ref().map(|r| r[i]);
        let count = counts.leaves.get(i).copied().unwrap_or_default();
        let rounding = counts.rounding.get(i).filter(|n| n.elements > 0);
        let rounding =
            rounding.map(|n| Rounding { max_ulp: n.max_ulp, relative_norm: n.relative_norm() });
        let stated = counts.stated.get(&i).copied();
        (leaf.site, kind, leaf.atom.clone(), registers, count, rounding, stated)
    };
    let sync = |(site, kind): &(u32, String)| {
        let executions = counts.syncs.get(site).copied().unwrap_or(0);
        let count = LeafCount { executions, ..LeafCount::default() };
        (*site, kind.clone(), None, None, count, None, None)
    };
    let leaves = kernel.leaves.iter().enumerate().map(leaf);
    let mut all: Vec<_> = leaves.chain(kernel.syncs.iter().map(sync)).collect();
    all.sort_by_key(|(site, ..)| *site);
    all.into_iter()
        .map(|(site, kind, atom, registers, count, rounding, stated_ulp)| LeafReport {
            line: kernel.sites[site as usize].line,
            kind,
            atom,
            registers,
            count,
            rounding,
            stated_ulp,
        })
        .collect()
}

/// The deviations of the compared specs, the kernel first.
fn numerics(kernel: &Kernel<'_>, counts: &Counts) -> Vec<SpecReport> {
    let report = |site: u32, spec: SpecId, n: &Numerics| SpecReport {
        line: kernel.sites[site as usize].line,
        kind: kernel.program.specs[spec].kind.to_string(),
        executions: n.executions,
        elements: n.elements,
        undecided: n.undecided,
        max_error: n.max_error,
        max_ratio: n.max_ratio,
        max_ulp: n.max_ulp,
        relative_norm: n.relative_norm(),
    };
    let root = kernel.root.iter().zip(counts.numerics.last());
    let root = root.map(|(root, n)| report(root.site, kernel.spec, n));
    let checks = kernel.checks.iter().zip(&counts.numerics);
    let mut checks: Vec<_> = checks.map(|(c, n)| (c.site, report(c.site, c.spec, n))).collect();
    checks.sort_by_key(|(site, _)| *site);
    root.chain(checks.into_iter().map(|(_, r)| r)).filter(|r| r.executions > 0).collect()
}

/// Merges the written pages into the memory, by the kernel's buffers.
pub(crate) fn merge_into(memory: &mut Memory, kernel: &Kernel<'_>, written: Vec<Pages>) {
    for (global, pages) in kernel.globals.iter().zip(written) {
        let Some((tensor, _)) = memory.tensors.get_mut(&global.buffer) else { continue };
        tensor.pages.merge(&pages, tensor.shadows, true);
    }
}

/// Sets the shadows of the kernel's outputs with which the next kernel begins.
pub(crate) fn begin_again(memory: &mut Memory, kernel: &Kernel<'_>, between: &Between) {
    for (number, (output, _)) in kernel.outputs.iter().enumerate() {
        let Space::Global(i) = kernel.views[*output].space else { continue };
        let buffer = kernel.globals[i].buffer;
        let Some((tensor, _)) = memory.tensors.get_mut(&buffer) else { continue };
        let scalar = tensor.scalar;
        match between {
            Between::Begin => tensor.pages.each_shadow(|value| decode(scalar, value.bits)),
            Between::GoOn(types)
                if types.of_floats.contains(&scalar)
                    || types.all.contains(&scalar)
                        && kernel.program.is_rounded(kernel.spec, number) =>
            {
                tensor.pages.each_shadow(|value| narrowed(CastRole::Meant, scalar, value.shadow));
            }
            Between::GoOn(_) => {}
        }
    }
}

/// The blocks to run, how they run, and an upper bound of the steps of a block, including its
/// share of the comparison of the kernel's outputs.
///
/// If only loops that may end early make the bound exceed the budget, the steps of the first
/// cluster are counted instead. All blocks together then take at most a few times the budget.
///
/// # Errors
/// A block takes more steps than the budget. Errors of the first cluster.
pub(crate) fn chosen_blocks(
    kernel: &Kernel<'_>,
    buffers: &[&GlobalMemory],
    mode: Mode,
    options: &Options,
    whole: bool,
) -> Checked<(Vec<i64>, Mode, u64)> {
    let shared = match kernel.root.as_ref().filter(|_| mode.check) {
        Some(root) => meaning_steps(kernel, root) / kernel.n_blocks.unsigned_abs().max(1),
        None => 0,
    };
    let drawn = mode.schedule.is_some();
    let bound = block_steps(kernel, mode.check, drawn).saturating_add(shared);
    let all_counted = || Ok((evenly_chosen(kernel, bound, options, whole)?, mode, bound));
    if bound <= options.budget {
        return all_counted();
    }
    let counted = Counted::new(kernel, mode.check, drawn);
    let fixed = counted.fixed.saturating_add(shared);
    if counted.turns.is_empty() || fixed > options.budget {
        return all_counted();
    }
    let first = run_cluster(kernel, buffers, 0, Mode { most: Some(options.budget), ..mode })?;
    let took = first.iter().map(|block| block.counts.steps).fold(0, u64::saturating_add);
    let took = took.div_ceil(kernel.cluster as u64);
    let steps = fixed.saturating_add(took);
    let blocks = evenly_chosen(kernel, steps.min(options.budget), options, whole)?;
    let most = (options.budget / blocks.len().max(1) as u64).max(took.saturating_mul(4));
    Ok((blocks, Mode { most: Some(most), ..mode }, steps))
}

/// The steps that an evaluation of the kernel's complete meaning takes.
fn meaning_steps(kernel: &Kernel<'_>, root: &RootSpec) -> u64 {
    let chain = &root.reference.chain;
    let of = |(i, view): (usize, &usize)| {
        let modes = &kernel.views[*view].modes;
        (chain.work(i, &Region::whole(modes)) / 8)
            .saturating_add(kernel.views[*view].size.unsigned_abs().saturating_mul(10))
    };
    root.reference.outputs.iter().enumerate().map(of).fold(0, u64::saturating_add)
}

/// The outputs of which the blocks of a sample wrote less than an even share. Outputs that the
/// kernel also reads, and outputs that other blocks add to, are excluded.
///
/// # Errors
/// `S0501` for an output that no statement writes.
fn shares(kernel: &Kernel<'_>, grid: &Grid, n_ran: usize) -> Checked<Vec<Short>> {
    let mut short = Vec::new();
    for (output, _) in kernel.outputs.iter().filter(|(_, is_read)| !is_read) {
        let Space::Global(global) = kernel.views[*output].space else { continue };
        if grid.sums(global).next().is_some() {
            continue;
        }
        let written = grid.n_written(kernel, *output);
        if written == 0 && !writes(kernel, *output) {
            let label = "no statement of the body writes it";
            return Err(grid.never_written(kernel, *output, 0, label));
        }
        let size = u128::from(kernel.views[*output].n_known());
        let share = size * n_ran as u128 / u128::from(kernel.n_blocks.unsigned_abs());
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        if written < share {
            let size = u64::try_from(size).unwrap_or(u64::MAX);
            short.push(Short { tensor: kernel.view_name(*output), written, share, size });
        }
    }
    Ok(short)
}

/// Whether a statement of the body writes to the buffer of an output.
fn writes(kernel: &Kernel<'_>, output: usize) -> bool {
    let space = kernel.views[output].space;
    kernel.leaves.iter().any(|l| l.outputs.iter().any(|v| kernel.views[*v].space == space))
}

/// The blocks to run: all, or a sample of complete clusters, spread evenly.
fn evenly_chosen(
    kernel: &Kernel<'_>,
    steps: u64,
    options: &Options,
    whole: bool,
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
    let all = steps.saturating_mul(kernel.n_blocks.unsigned_abs());
    if (whole || options.all_blocks) && all > options.budget {
        let (text, help) = match whole {
            true => (
                "a later kernel reads the output of this kernel, and running all blocks of this \
                 kernel takes too long",
                "raise `--budget`, choose smaller sizes, or state the meaning of this kernel with \
                 `means { .. }`: then a sample of blocks is enough",
            ),
            false => (
                "running all blocks of this kernel takes too long",
                "raise `--budget`, or choose smaller sizes",
            ),
        };
        return Err(Box::new(
            Diagnostic::new(Code::StepBudget, span, text)
                .label(format!("up to {all} steps, the budget is {}", options.budget))
                .help(help),
        ));
    }
    let size = kernel.cluster as u64;
    let fits = options.budget / steps.max(1) / size;
    let n_blocks = kernel.n_blocks.unsigned_abs() / size;
    let kept = sample_that_can_be_kept(kernel, kernel.n_blocks.unsigned_abs()) / size;
    if options.all_blocks && kept < n_blocks {
        return Err(too_much_written(kernel, "choose smaller sizes"));
    }
    let of_sample = options.sample.map_or(u64::MAX, |sample| sample / steps.max(1) / size);
    let most = match options.blocks {
        _ if whole || options.all_blocks => n_blocks,
        Some(blocks) => blocks.div_ceil(size),
        None => kept.min(of_sample),
    };
    // The list itself is bounded: a block takes at least about a hundred steps.
    let wanted = most.max(1).min(n_blocks).min(fits.max(1));
    let block = |i: u64| (u128::from(i) * u128::from(n_blocks) / u128::from(wanted)) as i64;
    let cluster = |first: i64| (0..size as i64).map(move |rank| first * size as i64 + rank);
    Ok((0..wanted).flat_map(|i| cluster(block(i))).collect())
}

/// The number of blocks whose writes the simulator can store, if all blocks write equally many
/// elements.
fn sample_that_can_be_kept(kernel: &Kernel<'_>, n_blocks: u64) -> u64 {
    let size = |(view, _): &(usize, bool)| kernel.views[*view].size.unsigned_abs();
    let elements = kernel.outputs.iter().map(size).fold(0u64, u64::saturating_add);
    let room = (MAX_PAGES * PAGE / 2) as u64;
    if elements <= room {
        return n_blocks;
    }
    (u128::from(n_blocks) * u128::from(room) / u128::from(elements)) as u64
}

/// The elements that a kernel writes according to its meaning, for each of its buffers.
pub(crate) fn meant(
    kernel: &Kernel<'_>,
    buffers: &[&GlobalMemory],
    options: &Options,
) -> Checked<Vec<Pages>> {
    let span = kernel.program.specs[kernel.spec].span;
    let Some(root) = &kernel.root else { return Err(not_decomposed(span)) };
    let inputs = root.reference.operands.iter().map(|v| kernel.views[*v].size.unsigned_abs());
    if inputs.fold(meaning_steps(kernel, root), u64::saturating_add) > options.budget {
        return Err(not_decomposed(span));
    }
    let mut oracle = Oracle::new(kernel, buffers, root);
    if options.between != Between::Begin {
        oracle = oracle.by_both();
    }
    let shadows = options.shadow && options.check;
    let mut written: Vec<Pages> = kernel.globals.iter().map(|_| Pages::default()).collect();
    by_meaning(&oracle, |view, at, value: Value| {
        if let Space::Global(i) = kernel.views[view].space {
            written[i].set(at, value, shadows);
        }
    })?;
    Ok(written)
}
