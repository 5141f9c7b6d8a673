//! Checks the run of a program on a real device: provides the contents of the device's memory
//! before the run, and compares the contents afterwards with the meanings of the specs. The
//! commands `carbyne run`, `bench` and `tune` use it.
//!
//! A [`Trial`] provides every tensor of the caller as bytes, equal to the inputs of
//! [`crate::simulate`] with equal options. The caller runs the kernels and returns bytes.
//! [`Trial::judge`] compares the bytes with the meaning of the kernel's spec on the memory before
//! it, and [`Trial::advance`] makes them the memory before the next kernel. Specs with a specific
//! kind (not `Spec`) have the tolerances of the simulator. A `means` block states the result
//! without rounding, the shadow. A device may differ from it by an error that follows from the
//! types and the number of operations (`plan/rounding.rs`), relative to the scale: the sum of the
//! magnitudes that are added. A kernel without a meaning is compared with the results of the
//! simulator, for as many blocks as run in some seconds, with an equal tolerance relative to the
//! tensor's largest element.
//!
//! Scalars are little-endian. Scalars smaller than a byte are packed, the first in the lowest bits.
//! Undefined elements, and gaps between elements, are filled with [`POISON`]: a NaN in every
//! floating-point type. A gap with any other contents afterwards is an error (`S0504`).
//!
//! If a comparison of all elements would take more than about 2^31 multiply-adds, a sample is
//! compared: the intersections of selected indices of each mode, spread over all tiles.
//!
//! Invariant: the selection of compared elements depends on program and options only, not on the
//! number of cores.

mod sample;

use crate::Inputs;
use crate::denote::{Region, SLACK};
use crate::exec::{Mode, elected_lane, value_text};
use crate::kernel_results::{Oracle, offset};
use crate::launch::{Memory, chosen_blocks, execute, symbols};
use crate::num::{decode, encode, ulp};
use crate::options::{DEFAULT_BUDGET, Options};
use crate::packed::{pack, unpacked};
use crate::plan::{
    Checked, Kernel, RootSpec, Source, Space, View, coordinates, coordinates_text, lower,
};
use crate::report::Outputs;
use crate::state::{GlobalMemory, Pages, Value};
use crate::workers::Workers;
use carbyne_atoms::AtomTable;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::VarId;
use carbyne_ir::program::{BufferId, Program, SpecId};
use carbyne_ir::scalar::Scalar;
use carbyne_ir::span::Span;
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap};

/// The byte that fills undefined memory.
pub const POISON: u8 = 0xff;

/// The largest number of bytes of all tensors of a program.
const MAX_BYTES: u64 = 1 << 34;

/// The bytes of the caller's tensors, by buffer.
pub type Images = BTreeMap<BufferId, Vec<u8>>;

/// A run of a program on a device.
pub struct Trial<'p> {
    program: &'p Program,
    kernels: Vec<Kernel<'p>>,
    memory: Memory,
    symbols: HashMap<VarId, i64>,
    small_ints: bool,
}

/// The comparison of a kernel's outputs with its meaning, or with the results of the simulator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// Whether the reference is the meaning of the spec; otherwise it is the result of the
    /// simulator.
    pub by_meaning: bool,
    /// The number of elements of the outputs.
    pub elements: u64,
    /// The number of compared elements; 0 without a reference.
    pub compared: u64,
    /// The largest difference from the reference.
    pub max_error: f64,
    /// The largest ratio of a difference to the allowed difference.
    pub max_ratio: f64,
}

impl<'p> Trial<'p> {
    /// The memory at the start of a program.
    ///
    /// # Errors
    /// The errors of [`crate::simulate`]: arrays that do not fit, symbols without a value, kernels
    /// that cannot run.
    pub fn new(program: &'p Program, atoms: &AtomTable, options: &Options) -> Checked<Self> {
        let symbols = symbols(program, options)?;
        let memory = Memory::new(program, options, &symbols)?;
        let kernels = program
            .kernels
            .iter()
            .map(|id| lower(program, *id, atoms, &symbols, elected_lane(options.schedule)))
            .collect::<Checked<Vec<_>>>()?;
        let small_ints = matches!(options.inputs, Inputs::Ints(_));
        let trial = Trial { program, kernels, memory, symbols, small_ints };
        let total = trial.memory.tensors.values().fold(0u64, |sum, (m, _)| {
            sum.saturating_add(bytes_of(m.scalar, m.len).unwrap_or(u64::MAX))
        });
        match total <= MAX_BYTES {
            true => Ok(trial),
            false => Err(Box::new(
                Diagnostic::new(
                    Code::TooLarge,
                    program.params.first().map(|b| program.buffers[*b].span).unwrap_or_default(),
                    format!("the tensors take more than {} GiB", MAX_BYTES >> 30),
                )
                .help("choose smaller sizes"),
            )),
        }
    }

    /// The value of a symbolic size.
    #[must_use]
    pub fn symbol(&self, var: VarId) -> Option<i64> {
        self.symbols.get(&var).copied()
    }

    /// The number of blocks of a kernel's grid.
    #[must_use]
    pub fn n_blocks(&self, kernel: SpecId) -> Option<i64> {
        self.kernel(kernel).map(|k| k.n_blocks)
    }

    /// The multiply-adds in the meaning of a kernel's spec; 0 without a MatMul.
    #[must_use]
    pub fn multiply_adds(&self, kernel: SpecId) -> u64 {
        let root = self.kernel(kernel).and_then(|k| k.root.as_ref());
        root.map_or(0, |r| r.reference.chain.multiply_adds())
    }

    /// The least number of bytes that a kernel's spec must read and write.
    #[must_use]
    pub fn bytes_moved(&self, kernel: SpecId) -> u64 {
        let Some(kernel) = self.kernel(kernel) else { return 0 };
        let Some(root) = &kernel.root else { return 0 };
        let of = |view: usize| {
            let view = &kernel.views[view];
            // A broadcast element is read once.
            let size = view.leaves.iter().filter(|(_, stride)| *stride != 0);
            bytes_of(view.scalar, size.map(|(n, _)| n).product()).unwrap_or(0)
        };
        let reference = &root.reference;
        let inputs = reference.inputs.iter().map(|s| match s {
            Source::View(v) => of(*v),
            Source::Number(_) => 0,
        });
        let written = reference.outputs.iter().map(|v| {
            let is_input = reference.inputs.iter().any(|s| matches!(s, Source::View(i) if i == v));
            if reference.reads(*v) && !is_input { 2 * of(*v) } else { of(*v) }
        });
        inputs.chain(written).fold(0, u64::saturating_add)
    }

    /// The bytes of a caller's tensor before the next kernel.
    #[must_use]
    pub fn image(&self, buffer: BufferId) -> Option<Vec<u8>> {
        let (memory, _) = self.memory.tensors.get(&buffer)?;
        if let Some(image) = &memory.image {
            return Some(image.to_vec());
        }
        let bits = memory.scalar.bits() as usize;
        let mut bytes = vec![POISON; usize::try_from(bytes_of(memory.scalar, memory.len)?).ok()?];
        // Chunks begin at complete bytes for every width.
        const CHUNK: usize = 1 << 16;
        let fill = |(i, chunk): (usize, &mut [u8])| {
            let first = (i * CHUNK * 8 / bits) as i64;
            let n = (chunk.len() * 8 / bits) as i64;
            for at in first..(first + n).min(memory.len) {
                if let Some(value) = memory.read(at) {
                    pack(chunk, memory.scalar, (at - first) as usize, value.bits);
                }
            }
        };
        let workers = Workers::get().ok()?;
        workers.run(|| bytes.par_chunks_mut(CHUNK).enumerate().for_each(fill));
        Some(bytes)
    }

    /// Compares the memory after a kernel with the meaning of its spec. `most` limits the number of
    /// compared elements of each output; none: as many as a comparison of a few seconds allows.
    ///
    /// # Errors
    /// `S0501` for the first wrong element, column-major, with the number of wrong elements;
    /// `S0504` for a gap that was written.
    pub fn judge(&self, kernel: SpecId, after: &Images, most: Option<u64>) -> Checked<Judged> {
        let Some(kernel) = self.kernel(kernel) else { return Ok(Judged::default()) };
        for (buffer, bytes) in after {
            if let Some((memory, _)) = self.memory.tensors.get(buffer) {
                gaps(self.program, *buffer, memory, bytes)?;
            }
        }
        let memory = self.memory.of(kernel)?;
        let mut tally = Tally::default();
        match &kernel.root {
            Some(root) => self.by_meaning(kernel, &memory, root, after, most, &mut tally)?,
            None => self.by_simulator(kernel, &memory, after, &mut tally)?,
        }
        let outputs = kernel.outputs.iter().map(|(v, _)| kernel.views[*v].size.unsigned_abs());
        let judged = Judged {
            by_meaning: kernel.root.is_some(),
            elements: outputs.fold(0, u64::saturating_add),
            ..tally.judged
        };
        match tally.first {
            None => Ok(judged),
            Some(d) => Err(Box::new(d.note(format!(
                "{} of {} elements compared are wrong",
                tally.n_wrong, judged.compared
            )))),
        }
    }

    fn by_meaning(
        &self,
        kernel: &Kernel<'_>,
        memory: &[&GlobalMemory],
        root: &RootSpec,
        after: &Images,
        most: Option<u64>,
        tally: &mut Tally,
    ) -> Checked<()> {
        for (number, output) in root.reference.outputs.iter().enumerate() {
            let view = &kernel.views[*output];
            let Space::Global(i) = view.space else { continue };
            let Some(bytes) = after.get(&kernel.globals[i].buffer) else { continue };
            let region = sample::region(&root.reference.chain, number, &view.modes, most);
            let oracle = Oracle::new(kernel, memory, root).within(kernel.roundings.max(SLACK));
            let parts = oracle.parts(number, region);
            // Few parts at a time: each holds the rows and columns that it needs.
            let workers = Workers::get()?;
            for some in parts.chunks(2 * workers.count()) {
                let compare = |part: &Region| {
                    self.compare(kernel, &oracle, root, (number, view, bytes), part)
                };
                let tallies: Vec<Checked<Tally>> =
                    workers.run(|| some.par_iter().map(compare).collect());
                for of_part in tallies {
                    tally.merge(of_part?);
                }
            }
        }
        Ok(())
    }

    fn compare(
        &self,
        kernel: &Kernel<'_>,
        oracle: &Oracle<'_>,
        root: &RootSpec,
        (number, view, bytes): (usize, &View, &[u8]),
        part: &Region,
    ) -> Checked<Tally> {
        let mut tally = Tally::default();
        let (reference, scalar) = (&root.reference, view.scalar);
        let mut wanted = oracle.wanted(number, part)?;
        if reference.meaning.is_some() {
            // Only values are compared.
            wanted.exact = None;
        }
        for (i, e) in part.elements(&view.modes).enumerate() {
            let raw = unpacked(bytes, scalar, offset(view, e));
            let (error, allowed, expected) = match (&wanted.exact, raw) {
                (None, raw) => {
                    let value = raw.map(|bits| Value { bits, shadow: 0.0 });
                    match wanted.compare(reference, scalar, self.small_ints, i, value) {
                        Ok(near) => (near.error, near.allowed, None),
                        Err(wrong) => (f64::INFINITY, wrong.allowed, Some(wrong.expected)),
                    }
                }
                (Some(exact), raw) => {
                    let want = exact.numbers.get(i).copied().unwrap_or(f64::NAN);
                    let scale = exact.scales.get(i).copied().unwrap_or(0.0);
                    let allowed = allowed(scalar, want, scale, kernel.roundings);
                    let error = distance(scalar, raw, want);
                    (error, allowed, (error > allowed).then(|| format!("{want}")))
                }
            };
            tally.counts(error, allowed);
            if let Some(expected) = expected {
                let name = format!(
                    "{}{}",
                    kernel.view_name(reference.outputs[number]),
                    coordinates_text(&coordinates(&view.modes, e))
                );
                let span = kernel.sites[root.site as usize].span;
                let says = ("the spec means", "the kernel does not compute what this spec means");
                tally.wrong(|| different(span, &name, (scalar, raw), &expected, allowed, says));
            }
        }
        Ok(tally)
    }

    /// Compares with the results of the simulator, for a sample of blocks.
    fn by_simulator(
        &self,
        kernel: &Kernel<'_>,
        memory: &[&GlobalMemory],
        after: &Images,
        tally: &mut Tally,
    ) -> Checked<()> {
        let budget = DEFAULT_BUDGET;
        let options =
            Options { check: false, sample: Some(budget / 2), budget, ..Options::default() };
        let mode = Mode {
            check: false,
            small_ints: self.small_ints,
            schedule: None,
            shadows: false,
            statements: false,
            most: None,
        };
        let (blocks, mode, _) = chosen_blocks(kernel, memory, mode, &options, false)?;
        let complete = blocks.len() as i64 == kernel.n_blocks;
        let (_, grid) = execute(kernel, memory, &blocks, mode, |_, _| Ok(()))?;
        for (global, pages) in kernel.globals.iter().zip(grid.into_written(complete)) {
            let Some(bytes) = after.get(&global.buffer) else { continue };
            let scalar = self.program.buffers[global.buffer].scalar;
            let numbers = pages.elements().map(|(_, v)| decode(scalar, v.bits).abs());
            let largest = numbers.filter(|v| v.is_finite()).fold(0.0, f64::max);
            for (at, value) in pages.elements() {
                let raw = unpacked(bytes, scalar, at);
                let want = decode(scalar, value.bits);
                let (error, allowed) = (
                    distance(scalar, raw, want),
                    allowed(scalar, largest, largest, kernel.roundings),
                );
                tally.counts(error, allowed);
                if error > allowed {
                    let span = self.program.specs[kernel.spec].span;
                    let expected = value_text(scalar, value.bits);
                    let name = global.names.element(at);
                    let says = ("the simulator computes", "the kernel computes something else");
                    tally.wrong(|| different(span, &name, (scalar, raw), &expected, allowed, says));
                }
            }
        }
        Ok(())
    }

    /// Makes the results of a kernel the memory before the next kernel.
    pub fn advance(&mut self, after: Images) {
        for (buffer, bytes) in after {
            if let Some((memory, _)) = self.memory.tensors.get_mut(&buffer) {
                memory.pages = Pages::default();
                memory.image = Some(bytes.into());
            }
        }
    }

    /// The tensors as arrays.
    #[must_use]
    pub fn into_outputs(self) -> Outputs {
        self.memory.into_outputs(true)
    }

    fn kernel(&self, id: SpecId) -> Option<&Kernel<'p>> {
        self.kernels.iter().find(|k| k.spec == id)
    }
}

/// The results of the comparison so far.
#[derive(Default)]
struct Tally {
    judged: Judged,
    n_wrong: u64,
    first: Option<Diagnostic>,
}

impl Tally {
    fn counts(&mut self, error: f64, allowed: f64) {
        self.judged.compared += 1;
        if error <= allowed {
            self.judged.max_error = self.judged.max_error.max(error);
            let ratio = if error > 0.0 { error / allowed } else { 0.0 };
            self.judged.max_ratio = self.judged.max_ratio.max(ratio);
        }
    }

    fn wrong(&mut self, of: impl FnOnce() -> Diagnostic) {
        self.n_wrong += 1;
        self.first.get_or_insert_with(of);
    }

    fn merge(&mut self, other: Tally) {
        self.judged.compared += other.judged.compared;
        self.judged.max_error = self.judged.max_error.max(other.judged.max_error);
        self.judged.max_ratio = self.judged.max_ratio.max(other.judged.max_ratio);
        self.n_wrong += other.n_wrong;
        self.first = self.first.take().or(other.first);
    }
}

/// The largest allowed difference from a number without rounding: the error of the roundings, plus
/// the rounding of the result. For integers, the numbers in doubt.
fn allowed(scalar: Scalar, want: f64, scale: f64, roundings: f64) -> f64 {
    match scalar.is_float() {
        true => {
            let spread = roundings * scale;
            // The result is rounded at its own magnitude, which may differ from `want` by the
            // error.
            let farthest = (want.abs() + spread).min(f64::MAX);
            spread + ulp(scalar, farthest)
        }
        false => roundings.max(SLACK) * scale,
    }
}

/// The distance of stored bits from a number; 0 if the bits are the rounded number.
fn distance(scalar: Scalar, raw: Option<u64>, want: f64) -> f64 {
    let Some(raw) = raw else { return f64::INFINITY };
    let got = decode(scalar, raw);
    match raw == encode(scalar, want) || (got.is_nan() && want.is_nan()) {
        true => 0.0,
        false => Some((got - want).abs()).filter(|d| !d.is_nan()).unwrap_or(f64::INFINITY),
    }
}

/// `S0501` for an element of a device's memory.
fn different(
    span: Span,
    name: &str,
    (scalar, raw): (Scalar, Option<u64>),
    expected: &str,
    allowed: f64,
    (says, label): (&str, &'static str),
) -> Diagnostic {
    let slack = if allowed > 0.0 { format!(" ± {allowed:.1e}") } else { String::new() };
    let is = raw.map_or("missing".to_owned(), |r| value_text(scalar, r));
    let text = format!("{name} is `{is}` on the GPU, {says} `{expected}`{slack}");
    let d = Diagnostic::new(Code::WrongElement, span, text)
        .label(label)
        .help("run `carbyne simulate`: it shows whether the text or its translation is wrong");
    match raw == Some(u64::MAX >> (64 - scalar.bits())) {
        true => d.note("no thread wrote it: it still holds the byte that memory was filled with"),
        false => d,
    }
}

/// Checks that no gap between elements was written.
fn gaps(program: &Program, buffer: BufferId, memory: &GlobalMemory, bytes: &[u8]) -> Checked<()> {
    let found = match &memory.image {
        // Earlier comparisons have judged the gaps already.
        Some(before) if before.len() == bytes.len() => None,
        _ => {
            let poison = u64::MAX >> (64 - memory.scalar.bits());
            let stray = |at: &i64| {
                memory.inverse.element(*at).is_none()
                    && unpacked(bytes, memory.scalar, *at) != Some(poison)
            };
            Workers::get()?.run(|| (0..memory.len).into_par_iter().find_first(stray))
        }
    };
    let Some(at) = found else { return Ok(()) };
    let text = format!("`%{}` is written at offset {at}, where it has no element", memory.name);
    Err(Box::new(
        Diagnostic::new(Code::SimOutOfBounds, program.buffers[buffer].span, text)
            .label("strides of this tensor leave gaps")
            .help("run `carbyne simulate`: it names the access"),
    ))
}

/// The bytes of `len` scalars.
fn bytes_of(scalar: Scalar, len: i64) -> Option<u64> {
    u64::try_from(len).ok()?.checked_mul(scalar.bits().unsigned_abs()).map(|bits| bits.div_ceil(8))
}
