//! [`Plan`] holds the prepared launches of a call, for tensors with certain types, shapes and
//! strides. Only the addresses of tensors and the values of numbers are still open. The plan states
//! which results and how much workspace the caller must allocate. [`Plan::check`] checks that
//! addresses are aligned and that written tensors share no memory with others. [`Plan::launch`]
//! fills in addresses and numbers; functions that the caller passes encode tensor maps and launch
//! the kernels. Encoded maps are kept for later calls.

use crate::{Fallible, Launch, MapValues, refused};
use carbyne_codegen::Element;
use carbyne_ir::diag::Code;
use carbyne_ir::expr::VarId;
use smallvec::SmallVec;
use std::ffi::c_void;

/// The launches of a call. Only the addresses of tensors and the values of numbers are open.
pub struct Plan {
    launches: Vec<Planned>,
    tensors: Vec<Tensor>,
    /// Indices in `tensors` of tensors that kernels write.
    written: Vec<usize>,
    results: Vec<(usize, Shape)>,
    sizes: Vec<(VarId, i64)>,
    workspace: u64,
    unit: u64,
    /// The arguments of the kernel that is being launched.
    words: Vec<u64>,
}

/// Type, extents and strides of a tensor that the caller must allocate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Type of its elements.
    pub element: Element,
    /// Extents, the outermost first.
    pub extents: Vec<i64>,
    /// Strides in elements.
    pub strides: Vec<i64>,
}

/// An argument of a call: the address of a tensor, or the bytes of a number in little-endian order.
pub type Word = u64;

/// The place of a buffer.
#[derive(Copy, Clone, Debug)]
pub(super) enum Place {
    /// The argument with this index.
    Given(usize),
    /// This byte offset in the workspace.
    Workspace(u64),
}

/// A parameter of a kernel.
pub(super) enum Slot {
    Address(Place),
    Number(Place),
    Word(u64),
    Map(Box<Map>),
}

/// A tensor map.
pub(super) struct Map {
    pub place: Place,
    /// The address is relative to the place.
    pub values: MapValues,
    /// Encoded maps, by the address of the place.
    pub encoded: Vec<(u64, [u64; 16])>,
}

/// A kernel launch without addresses.
pub(super) struct Planned {
    pub kernel: usize,
    pub launch: Launch,
    pub slots: Vec<Slot>,
}

/// The conditions on the address of a tensor.
pub(super) struct Tensor {
    pub name: String,
    /// The number of bytes from the first element to the end of the last one.
    pub bytes: u64,
    pub align: u64,
    pub is_written: bool,
    /// The distance of rows and the length of a row, in bytes.
    pub rows: Option<(u64, u64)>,
}

/// Maximum number of encoded maps per parameter.
const KEPT_MAPS: usize = 16;

impl Map {
    fn words(
        &mut self,
        address: u64,
        encode: &impl Fn(&MapValues) -> Fallible<[u64; 16]>,
    ) -> Fallible<[u64; 16]> {
        if let Some((_, words)) = self.encoded.iter().find(|(of, _)| *of == address) {
            return Ok(*words);
        }
        let begin = address.wrapping_add(self.values.address);
        let words = encode(&MapValues { address: begin, ..self.values.clone() })?;
        self.encoded.truncate(KEPT_MAPS - 1);
        self.encoded.insert(0, (address, words));
        Ok(words)
    }
}

impl Plan {
    pub(super) fn new(
        launches: Vec<Planned>,
        tensors: Vec<Tensor>,
        results: Vec<(usize, Shape)>,
        sizes: Vec<(VarId, i64)>,
        (workspace, unit): (u64, u64),
    ) -> Plan {
        let written = (0..tensors.len()).filter(|i| tensors[*i].is_written).collect();
        Plan { launches, tensors, written, results, sizes, workspace, unit, words: vec![] }
    }

    /// The results that the caller omitted, with the indices of their parameters.
    #[must_use]
    pub fn results(&self) -> &[(usize, Shape)] {
        &self.results
    }

    /// The values of the program's symbols.
    #[must_use]
    pub fn sizes(&self) -> &[(VarId, i64)] {
        &self.sizes
    }

    /// Size and alignment of the workspace, in bytes.
    #[must_use]
    pub fn workspace(&self) -> (u64, u64) {
        (self.workspace, self.unit)
    }

    /// Checks that tensors are aligned, and that written tensors share no memory with others.
    ///
    /// # Errors
    /// [`Code::BadInput`] with the parameter.
    pub fn check(&self, given: &[Word]) -> Fallible<()> {
        for (tensor, address) in self.tensors.iter().zip(given) {
            if tensor.bytes > 0 && address & (tensor.align - 1) != 0 {
                let Tensor { name, align, .. } = tensor;
                let text =
                    format!("`%{name}` begins at {address:#x}, which is not a multiple of {align}");
                return Err(refused(Code::BadInput, text, "copy it to a new tensor"));
            }
        }
        for w in &self.written {
            for other in 0..self.tensors.len() {
                if other != *w && self.overlap((*w, given[*w]), (other, given[other])) {
                    let (name, with) = (&self.tensors[*w].name, &self.tensors[other].name);
                    let text = format!("`%{name}` is written, but shares memory with `%{with}`");
                    return Err(refused(Code::BadInput, text, "pass a copy of one of them"));
                }
            }
        }
        Ok(())
    }

    /// Whether two tensors may have a byte in common, judged by their extents and rows.
    fn overlap(&self, a: (usize, Word), b: (usize, Word)) -> bool {
        let (first, second) = if a.1 <= b.1 { (a, b) } else { (b, a) };
        let (below, above) = (&self.tensors[first.0], &self.tensors[second.0]);
        let apart = second.1 - first.1;
        if below.bytes == 0 || above.bytes == 0 || apart >= below.bytes {
            return false;
        }
        // Two column ranges of one matrix: their rows have equal distance and lie beside each
        // other.
        match (below.rows, above.rows) {
            (Some((pitch, row)), Some((other, width))) if pitch == other => {
                let into = apart % pitch;
                into < row || into + width > pitch
            }
            _ => true,
        }
    }

    /// Launches all kernels. `go` launches one kernel with its index, its launch configuration, and
    /// one pointer per argument. `encode` encodes a tensor map.
    ///
    /// # Errors
    /// The errors of `encode` and `go`.
    pub fn launch(
        &mut self,
        given: &[Word],
        workspace: u64,
        encode: impl Fn(&MapValues) -> Fallible<[u64; 16]>,
        mut go: impl FnMut(usize, Launch, &mut [*mut c_void]) -> Fallible<()>,
    ) -> Fallible<()> {
        let at = |place: &Place| match place {
            Place::Given(i) => given[*i],
            Place::Workspace(offset) => workspace + offset,
        };
        for Planned { kernel, launch, slots } in &mut self.launches {
            let mut starts: SmallVec<[usize; 32]> = SmallVec::new();
            self.words.clear();
            for slot in slots {
                starts.push(self.words.len());
                match slot {
                    Slot::Address(place) | Slot::Number(place) => self.words.push(at(place)),
                    Slot::Word(word) => self.words.push(*word),
                    Slot::Map(map) => {
                        let address = at(&map.place);
                        self.words.extend(map.words(address, &encode)?);
                    }
                }
            }
            let base = self.words.as_mut_ptr();
            let mut pointers: SmallVec<[*mut c_void; 32]> =
                starts.iter().map(|i| base.wrapping_add(*i).cast()).collect();
            go(*kernel, *launch, &mut pointers)?;
        }
        Ok(())
    }
}
