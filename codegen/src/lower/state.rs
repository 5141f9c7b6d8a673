//! The state of lowering one kernel: its buffers, and the loops around what is lowered.

use super::helper::Helper;
use crate::cpp::ast::{Stmt, Type};
use crate::index::Indices;
use crate::namer::Namer;
use crate::scalars::{Storage, storage};
use carbyne_atoms::smem::Arena;
use carbyne_atoms::{AsmClass, AtomTable};
use carbyne_ir::diag::Diagnostics;
use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::layout::Swizzle;
use carbyne_ir::program::{BufferId, MapId, Program};
use carbyne_ir::scalar::{Memory, Scalar};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::iter::StepBy;
use std::ops::Range;

/// The state of lowering one kernel.
pub(super) struct Lowering<'p> {
    pub(super) p: &'p Program,
    pub(super) atoms: &'p AtomTable,
    pub(super) namer: Namer,
    pub(super) indices: Indices<'p>,
    /// How index variables are spelled where they are defined: by CUDA's own variables.
    pub(super) definitions: Indices<'p>,
    pub(super) buffers: HashMap<BufferId, Stored>,
    /// Buffers of the kernel that asynchronous atoms use.
    pub(super) asynchronous: HashSet<BufferId>,
    /// Registers in scope that they use, in order of declaration.
    pub(super) in_flight: Vec<BufferId>,
    /// Loops that are being lowered and are not unrolled, outermost first.
    pub(super) advances: Vec<Advance>,
    /// Registers that hold coordinates.
    pub(super) coordinates: Coordinates,
    /// Buffers that one leaf alone writes.
    pub(super) written_once: HashSet<BufferId>,
    /// Loops that are being lowered, outermost first.
    pub(super) outers: Vec<Outer>,
    /// Pointers before loops that are written out.
    pub(super) bases: Bases,
    /// Parameters that are tensor maps.
    pub(super) maps: HashMap<MapId, String>,
    pub(super) arena: Arena,
    /// Sets of threads that wait at named barriers, in order of first appearance.
    pub(super) barriers: Vec<Vec<i64>>,
    pub(super) headers: BTreeSet<&'static str>,
    pub(super) helpers: BTreeSet<Helper>,
    pub(super) errors: Diagnostics,
}

/// A buffer that has a name in C++.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) name: String,
    pub(super) memory: Memory,
    pub(super) scalar: Scalar,
    pub(super) storage: Storage,
    pub(super) is_const: bool,
    /// On indices of array elements.
    pub(super) swizzle: Swizzle,
    /// Names of the registers seen as registers of inline PTX.
    pub(super) words: Vec<(AsmClass, String)>,
    /// How elements are found whose coordinate stands in another tensor.
    pub(super) gather: Option<Through>,
}

/// A tensor of coordinates through which elements are found: see [`carbyne_ir::program::Gather`].
#[derive(Clone, Debug)]
pub(super) struct Through {
    /// The array of coordinates.
    pub(super) index: String,
    pub(super) stride: i64,
    pub(super) unit: i64,
    /// Whether offsets of elements need 64 bits.
    pub(super) wide: bool,
}

impl Stored {
    /// Coordinates, which lie nowhere and have no name.
    pub(super) fn computed(scalar: Scalar) -> Self {
        Stored {
            name: String::new(),
            memory: Memory::Ix,
            scalar,
            storage: storage(scalar),
            is_const: true,
            swizzle: Swizzle::none(),
            words: vec![],
            gather: None,
        }
    }
}

/// Registers that hold coordinates: of each buffer, what its elements are; none for what is written
/// several times.
pub(super) type Coordinates = HashMap<BufferId, HashMap<i64, Option<Dim>>>;

/// A loop whose body is lowered, for loops that stand in it.
pub(super) struct Outer {
    pub(super) var: VarId,
    pub(super) start: Dim,
    pub(super) step: i64,
    /// The values of its variable, where it is written out and they are known.
    pub(super) turns: Option<StepBy<Range<i64>>>,
    /// Variables that are known before it.
    pub(super) known: HashSet<VarId>,
    /// The scope of names around it.
    pub(super) scope: usize,
    /// Variables of the loops that each of its iterations executes once.
    pub(super) loops: Vec<VarId>,
    /// Statements before it.
    pub(super) before: Vec<Stmt>,
}

/// A loop that is not written out, while its body is lowered.
pub(super) struct Advance {
    pub(super) var: VarId,
    /// Variables that are known before it.
    pub(super) known: HashSet<VarId>,
    /// Variables of the loops in it that are written out.
    pub(super) unrolled: HashSet<VarId>,
    pub(super) pointers: Vec<Pointer>,
}

/// Pointers into arrays in global memory, to which unrolled loops add strides that are known at run
/// time alone. They are set before the outermost of these loops, since under the condition of each
/// access they would be computed again.
#[derive(Default)]
pub(super) struct Bases {
    /// Variables that are known before it.
    pub(super) known: HashSet<VarId>,
    /// How many such loops there are around.
    pub(super) depth: usize,
    /// The array, its type, where in it the pointer points, and its name.
    pub(super) pointers: Vec<(String, Type, Dim, String)>,
}

/// The pointer into one array.
pub(super) struct Pointer {
    pub(super) array: String,
    pub(super) name: String,
    /// Its first use: its type, the index, and by how much that grows with the variable.
    pub(super) used: Option<(Type, Dim, i64)>,
}
