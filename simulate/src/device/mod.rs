//! Memory of a real device: what it holds before a program runs, and whether it holds what the specs mean
//! afterwards.
//!
//! A [`Trial`] gives every tensor of the caller as bytes, equal to what [`crate::simulate`] would read for
//! the same options. Whoever runs the kernels brings back bytes; [`Trial::judge`] compares them with the
//! meaning of the kernel's spec on the memory before it, by the same references and tolerances, and
//! [`Trial::advance`] makes them the memory before the next kernel.
//!
//! Scalars are little-endian; those below a byte share bytes, the first in the lowest bits. What is
//! undefined, and gaps between elements, are filled with [`POISON`]: a NaN in every floating-point type.
//! A gap that holds anything else afterwards was written by mistake.
//!
//! Where a comparison of all elements would take more than some 2^31 multiply-adds, a sample is compared:
//! whole crossings of rows and columns for MatMul, spread over all tiles.
//!
//! Invariant: what is compared depends on program and options alone, never on how many cores there are.

mod near;
mod sample;

pub use near::{Near, near};

use crate::Inputs;
use crate::denote::Meaning;
use crate::exec::{Counts, value_text};
use crate::launch::{Memory, symbols};
use crate::options::Options;
use crate::plan::{
    Checked, Kernel, RootSpec, Source, Space, View, coordinates, coordinates_text, lower,
};
use crate::report::Outputs;
use crate::root::{Oracle, offset};
use crate::state::GlobalMemory;
use crate::workers::Workers;
use carbyne_atoms::AtomTable;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::VarId;
use carbyne_ir::program::{BufferId, Program, SpecId};
use carbyne_ir::scalar::Scalar;
use rayon::prelude::*;
use std::collections::{BTreeMap, HashMap};

/// The byte that undefined memory is filled with.
pub const POISON: u8 = 0xff;

/// Most bytes of all tensors of a program.
const MAX_BYTES: u64 = 1 << 34;

/// Bytes of the caller's tensors, by buffer.
pub type Images = BTreeMap<BufferId, Vec<u8>>;

/// A program about to run on a device.
pub struct Trial<'p> {
    program: &'p Program,
    kernels: Vec<Kernel<'p>>,
    memory: Memory,
    symbols: HashMap<VarId, i64>,
    small_ints: bool,
}

/// How a kernel's output compares with what its spec means.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judged {
    /// Elements of the output; 0 where the spec has no meaning of its own and nothing is compared.
    pub elements: u64,
    /// Elements compared.
    pub compared: u64,
    /// Largest difference from the reference.
    pub max_error: f64,
    /// Largest difference in units of what is allowed.
    pub max_ratio: f64,
}

impl<'p> Trial<'p> {
    /// Makes the memory that a program begins with.
    ///
    /// # Errors
    /// As [`crate::simulate`]: arrays that do not fit, symbols without a value, kernels that cannot run.
    pub fn new(program: &'p Program, atoms: &AtomTable, options: &Options) -> Checked<Self> {
        let symbols = symbols(program, options)?;
        let memory = Memory::new(program, options, &symbols)?;
        let kernels = program
            .kernels
            .iter()
            .map(|id| lower(program, *id, atoms, &symbols))
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

    /// Blocks of a kernel's grid.
    #[must_use]
    pub fn n_blocks(&self, kernel: SpecId) -> Option<i64> {
        self.kernel(kernel).map(|k| k.n_blocks)
    }

    /// Multiply-adds that a kernel's spec means; 0 for what is no MatMul.
    #[must_use]
    pub fn multiply_adds(&self, kernel: SpecId) -> u64 {
        let root = self.kernel(kernel).and_then(|k| k.root.as_ref());
        root.map_or(0, |r| r.meaning.multiply_adds())
    }

    /// Bytes that a kernel's spec reads and writes at least.
    #[must_use]
    pub fn bytes_moved(&self, kernel: SpecId) -> u64 {
        let Some(kernel) = self.kernel(kernel) else { return 0 };
        let Some(root) = &kernel.root else { return 0 };
        let of = |view: usize| {
            let view = &kernel.views[view];
            // What stands for several elements is read once.
            let size = view.leaves.iter().filter(|(_, stride)| *stride != 0);
            bytes_of(view.scalar, size.map(|(n, _)| n).product()).unwrap_or(0)
        };
        let inputs = root.inputs.iter().map(|s| match s {
            Source::View(v) => of(*v),
            Source::Number(_) => 0,
        });
        let written = of(root.outputs[0]);
        let before = if root.meaning.reads_output() { written } else { 0 };
        inputs.fold(written.saturating_add(before), u64::saturating_add)
    }

    /// A tensor of the caller as it is before the next kernel.
    #[must_use]
    pub fn image(&self, buffer: BufferId) -> Option<Vec<u8>> {
        let (memory, _) = self.memory.tensors.get(&buffer)?;
        if let Some(image) = &memory.image {
            return Some(image.to_vec());
        }
        let bits = memory.scalar.bits() as usize;
        let mut bytes = vec![POISON; usize::try_from(bytes_of(memory.scalar, memory.len)?).ok()?];
        // Chunks begin at whole bytes for every width.
        const CHUNK: usize = 1 << 16;
        bytes.par_chunks_mut(CHUNK).enumerate().for_each(|(i, chunk)| {
            let first = (i * CHUNK * 8 / bits) as i64;
            let n = (chunk.len() * 8 / bits) as i64;
            for at in first..(first + n).min(memory.len) {
                if let Some(raw) = memory.read(at) {
                    pack(chunk, memory.scalar, (at - first) as usize, raw);
                }
            }
        });
        Some(bytes)
    }

    /// Compares what a kernel left behind with what its spec means. At most `most` elements are compared;
    /// none: as many as a few seconds allow.
    ///
    /// # Errors
    /// `S0501` for the first wrong element, column-major, with how many there are; `S0504` for a gap that
    /// was written.
    pub fn judge(&self, kernel: SpecId, after: &Images, most: Option<u64>) -> Checked<Judged> {
        let Some(kernel) = self.kernel(kernel) else { return Ok(Judged::default()) };
        for (buffer, bytes) in after {
            if let Some((memory, _)) = self.memory.tensors.get(buffer) {
                gaps(self.program, *buffer, memory, bytes)?;
            }
        }
        let Some(root) = &kernel.root else { return Ok(Judged::default()) };
        let view = &kernel.views[root.outputs[0]];
        let Space::Global(i) = view.space else { return Ok(Judged::default()) };
        let Some(bytes) = after.get(&kernel.globals[i].buffer) else {
            return Ok(Judged::default());
        };
        let memory = self.memory.of(kernel)?;
        let elements = sample::elements(&root.meaning, view.size, most);
        // Few chunks: each reads the rows that it needs anew.
        let workers = Workers::get()?;
        let chunk = elements.len().div_ceil(2 * workers.count()).max(1 << 12);
        let compare = |chunk: &[i64]| self.compare(kernel, &memory, root, (view, bytes), chunk);
        let parts: Vec<Checked<Part>> =
            workers.run(|| elements.par_chunks(chunk).map(compare).collect());
        let mut judged = Judged { elements: view.size.unsigned_abs(), ..Judged::default() };
        let (mut n_wrong, mut first) = (0, None);
        for part in parts {
            let part = part?;
            judged.compared += part.counts.elements + part.n_wrong;
            judged.max_error = judged.max_error.max(part.counts.max_error);
            judged.max_ratio = judged.max_ratio.max(part.counts.max_ratio);
            n_wrong += part.n_wrong;
            first = first.or(part.first);
        }
        match first {
            None => Ok(judged),
            Some(d) => Err(Box::new(
                d.note(format!("{n_wrong} of {} elements compared are wrong", judged.compared)),
            )),
        }
    }

    /// Takes what a kernel left behind as the memory before the next one.
    pub fn advance(&mut self, after: Images) {
        for (buffer, bytes) in after {
            if let Some((memory, _)) = self.memory.tensors.get_mut(&buffer) {
                memory.pages.clear();
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

    fn compare(
        &self,
        kernel: &Kernel<'_>,
        memory: &[&GlobalMemory],
        root: &RootSpec,
        (view, bytes): (&View, &[u8]),
        elements: &[i64],
    ) -> Checked<Part> {
        let mut part = Part::default();
        let mut oracle = Oracle::new(kernel, memory, root);
        for e in elements {
            let raw = unpacked(bytes, view.scalar, offset(view, *e));
            let want = oracle.want(*e)?;
            match want.compare(&root.meaning, view.scalar, self.small_ints, &root.stated, 0, raw) {
                Ok(near) => part.counts.compared(0, &near),
                Err(wrong) => {
                    part.n_wrong += 1;
                    let slack = match wrong.allowed {
                        0.0 => String::new(),
                        allowed => format!(" ± {allowed:.1e}"),
                    };
                    let of = || {
                        let at = coordinates_text(&coordinates(&view.modes, *e));
                        let name = kernel.view_name(root.outputs[0]);
                        let is = raw.map_or("missing".to_owned(), |r| value_text(view.scalar, r));
                        let untouched = raw == Some(u64::MAX >> (64 - view.scalar.bits()));
                        let d = Diagnostic::new(
                            Code::WrongElement,
                            kernel.sites[root.site as usize].span,
                            format!(
                                "{name}{at} is `{is}` on the GPU, the spec means `{}`{slack}",
                                wrong.expected
                            ),
                        )
                        .label("the kernel does not compute what this spec means")
                        .help(
                            "`carbyne simulate` says whether the text or its translation is wrong",
                        );
                        match untouched {
                            true => {
                                d.note("nothing wrote it: it holds what memory was filled with")
                            }
                            false => d,
                        }
                    };
                    part.first.get_or_insert_with(of);
                }
            }
        }
        Ok(part)
    }
}

/// What one chunk of elements gave.
#[derive(Default)]
struct Part {
    counts: Counts,
    n_wrong: u64,
    first: Option<Diagnostic>,
}

/// Nothing may be written between elements.
fn gaps(program: &Program, buffer: BufferId, memory: &GlobalMemory, bytes: &[u8]) -> Checked<()> {
    let found = match &memory.image {
        // What a kernel found there was judged already.
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
            .help("`carbyne simulate` names the access"),
    ))
}

/// Bytes that so many scalars take.
fn bytes_of(scalar: Scalar, len: i64) -> Option<u64> {
    u64::try_from(len).ok()?.checked_mul(scalar.bits().unsigned_abs()).map(|bits| bits.div_ceil(8))
}

/// The scalar at an offset.
pub(crate) fn unpacked(bytes: &[u8], scalar: Scalar, at: i64) -> Option<u64> {
    let (at, bits) = (usize::try_from(at).ok()?, scalar.bits() as usize);
    if bits < 8 {
        let byte = *bytes.get(at * bits / 8)?;
        return Some(u64::from(byte >> (at * bits % 8)) & ((1 << bits) - 1));
    }
    let width = bits / 8;
    let found = bytes.get(at * width..(at + 1) * width)?;
    let mut le = [0; 8];
    le[..width].copy_from_slice(found);
    Some(u64::from_le_bytes(le))
}

fn pack(bytes: &mut [u8], scalar: Scalar, at: usize, raw: u64) {
    let bits = scalar.bits() as usize;
    if bits < 8 {
        let mask = ((1u32 << bits) - 1) as u8;
        let shift = at * bits % 8;
        if let Some(byte) = bytes.get_mut(at * bits / 8) {
            *byte = *byte & !(mask << shift) | (raw as u8 & mask) << shift;
        }
    } else if let Some(to) = bytes.get_mut(at * bits / 8..(at + 1) * bits / 8) {
        to.copy_from_slice(&raw.to_le_bytes()[..bits / 8]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_of_every_width_are_packed() {
        for scalar in Scalar::ALL {
            let bits = scalar.bits();
            let mut bytes = vec![POISON; 64];
            let value = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits);
            (0..8).for_each(|i| pack(&mut bytes, *scalar, i as usize, value(i)));
            for i in 0..8 {
                assert_eq!(unpacked(&bytes, *scalar, i), Some(value(i as u64)), "{scalar}");
            }
            let poison = u64::MAX >> (64 - bits);
            let last = 64 * 8 / bits - 1;
            let untouched = if last >= 8 { poison } else { value(last as u64) };
            assert_eq!(unpacked(&bytes, *scalar, last), Some(untouched), "{scalar}");
            assert_eq!(unpacked(&bytes, *scalar, last + 1), None);
            assert_eq!(unpacked(&bytes, *scalar, -1), None);
        }
    }
}
