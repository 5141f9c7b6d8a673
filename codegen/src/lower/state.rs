//! Defines [`Lowering`], the state while one kernel is lowered: the C++ names of its buffers, the
//! loops around the current statement, pointers and variables that loops carry, and the errors so
//! far. Most files of this folder add methods to it.

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

/// The number of threads of a warp.
pub(super) const WARP: i64 = 32;

/// The state of lowering a kernel.
pub(super) struct Lowering<'p> {
    pub(super) p: &'p Program,
    pub(super) atoms: &'p AtomTable,
    pub(super) namer: Namer,
    pub(super) indices: Indices<'p>,
    /// Index variables in terms of CUDA's built-in variables, for definitions.
    pub(super) definitions: Indices<'p>,
    pub(super) buffers: HashMap<BufferId, Stored>,
    /// The buffers of the kernel that asynchronous atoms use.
    pub(super) asynchronous: HashSet<BufferId>,
    /// The registers in scope that asynchronous atoms use, in order of declaration.
    pub(super) in_flight: Vec<BufferId>,
    /// The loops around the current statement that are not unrolled, outermost first.
    pub(super) advances: Vec<Advance>,
    /// Registers that hold coordinates.
    pub(super) coordinates: Coordinates,
    /// Buffers that exactly one leaf writes.
    pub(super) written_once: HashSet<BufferId>,
    /// The loops around the current statement, outermost first.
    pub(super) outers: Vec<Outer>,
    /// Pointers that are set before unrolled loops.
    pub(super) bases: Bases,
    /// The parameters for tensor maps.
    pub(super) maps: HashMap<MapId, String>,
    pub(super) arena: Arena,
    /// Coordinates that are printed as uniform in each warp.
    pub(super) uniform: HashSet<VarId>,
    /// The number of conditions around the current statement at which lanes of a warp may diverge.
    pub(super) diverged: usize,
    /// The sets of threads at named barriers, in order of first appearance.
    pub(super) barriers: Vec<Vec<i64>>,
    pub(super) headers: BTreeSet<&'static str>,
    pub(super) helpers: BTreeSet<Helper>,
    pub(super) errors: Diagnostics,
}

/// A buffer with a name in C++.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub(super) name: String,
    pub(super) memory: Memory,
    pub(super) scalar: Scalar,
    pub(super) storage: Storage,
    pub(super) is_const: bool,
    /// A swizzle of indices of array elements.
    pub(super) swizzle: Swizzle,
    /// The names of views of the registers as registers of inline PTX.
    pub(super) words: Vec<(AsmClass, String)>,
    /// For a gathered view, the tensor of coordinates.
    pub(super) gather: Option<Through>,
}

/// A tensor of coordinates that selects elements; see [`carbyne_ir::program::Gather`].
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
    /// A tensor of coordinates, which are computed and have no storage and no name.
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

/// Registers that hold coordinates: the elements of each buffer; none for elements that are written
/// several times.
pub(super) type Coordinates = HashMap<BufferId, HashMap<i64, Option<Dim>>>;

/// A loop around the current statement, as needed by loops in its body.
pub(super) struct Outer {
    pub(super) var: VarId,
    pub(super) start: Dim,
    pub(super) step: i64,
    /// The values of its variable, if the loop is unrolled and the values are constant.
    pub(super) iterations: Option<StepBy<Range<i64>>>,
    /// The variables known before the loop.
    pub(super) known: HashSet<VarId>,
    /// The scope of names around the loop.
    pub(super) scope: usize,
    /// The variables of the loops that each of its iterations executes once.
    pub(super) loops: Vec<VarId>,
    /// Statements before the loop.
    pub(super) before: Vec<Stmt>,
}

/// A loop that is not unrolled, while its body is lowered.
pub(super) struct Advance {
    pub(super) var: VarId,
    /// The variables known before the loop.
    pub(super) known: HashSet<VarId>,
    /// The variables of unrolled loops in its body.
    pub(super) unrolled: HashSet<VarId>,
    pub(super) pointers: Vec<Pointer>,
}

/// Pointers into arrays in global memory, to which unrolled loops add strides that are known only
/// at run time. They are set before the outermost of these loops; otherwise the compiler would
/// compute them again under the condition of each access.
#[derive(Default)]
pub(super) struct Bases {
    /// The variables known before the loops.
    pub(super) known: HashSet<VarId>,
    /// The number of enclosing unrolled loops.
    pub(super) depth: usize,
    /// For each pointer: the array, the type, the index at which it points, and its name.
    pub(super) pointers: Vec<(String, Type, Dim, String)>,
}

/// A pointer into an array that a loop advances.
pub(super) struct Pointer {
    pub(super) array: String,
    pub(super) name: String,
    /// The first use: the type, the index, and the growth of the index per unit of the variable.
    pub(super) used: Option<(Type, Dim, i64)>,
}
