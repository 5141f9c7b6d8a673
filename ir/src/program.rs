//! Defines [`Program`], the resolved form of a module, in which all names are resolved and all
//! types are known.
//!
//! [`crate::resolve`] makes it from the syntax tree. Verifier, simulator, matcher and code
//! generator read it, and infer no types themselves. Typed ids index its tables, in text order, so
//! every traversal is deterministic.
//!
//! A tensor is a *view*: a buffer, an offset, and levels of layouts (outermost first). Offset and
//! strides count scalars of the buffer. The program's [`ExprArena`] contains the index expressions;
//! their variables ([`Program::vars`]) are thread and block indices, loop variables, coordinates,
//! counters, integers read from the caller's memory, and symbols.
//!
//! [`walk`] iterates over statements, [`samples`] chooses values of symbols for test runs. The
//! other files add methods about facts, casts and ranges of integers.

mod casts;
mod fact_checks;
mod facts;
mod ranges;
pub mod samples;

pub mod walk;

pub use casts::{CastRole, RoundedTypes};
pub use facts::{Fact, Residue, differences};

use crate::ast::{self, Attr, CmpOp, Key, NodeId, SpecKind, Unroll};
use crate::expr::{Dim, ExprArena, Node, VarId};
use crate::layout::{Layout, LayoutError, Swizzle};
use crate::leaf::Leaf;
use crate::scalar::{Memory, Scalar};
use crate::span::Span;
use std::collections::HashMap;
use std::fmt;
use std::ops::{Index, IndexMut};

macro_rules! ids {
    ($($(#[$meta:meta])* $name:ident $prefix:literal),* $(,)?) => {$(
        $(#[$meta])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl From<usize> for $name {
            fn from(i: usize) -> Self { $name(i as u32) }
        }
        impl From<$name> for usize {
            fn from(i: $name) -> usize { i.0 as usize }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    )*};
}

ids! {
    /// The id of an entry of [`Program::buffers`].
    BufferId "buf",
    /// The id of an entry of [`Program::tensors`].
    TensorId "%",
    /// The id of an entry of [`Program::threads`].
    ThreadsId "#",
    /// The id of an entry of [`Program::specs`].
    SpecId "@s",
    /// The id of an entry of [`Program::maps`].
    MapId "map",
}

/// A vector indexed by a typed id.
#[derive(Clone, Debug, PartialEq)]
pub struct Table<I, T> {
    items: Vec<T>,
    id: std::marker::PhantomData<I>,
}

impl<I, T> Default for Table<I, T> {
    fn default() -> Self {
        Table { items: Vec::new(), id: std::marker::PhantomData }
    }
}

impl<I: From<usize> + Into<usize> + Copy, T> Table<I, T> {
    /// Appends an entry and returns its id.
    pub fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::from(self.items.len() - 1)
    }
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.items.len()
    }
    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    /// The entries with their ids, in order.
    pub fn iter(&self) -> impl Iterator<Item = (I, &T)> {
        self.items.iter().enumerate().map(|(i, t)| (I::from(i), t))
    }
}

impl<I: Into<usize>, T> Index<I> for Table<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        &self.items[id.into()]
    }
}

impl<I: Into<usize>, T> IndexMut<I> for Table<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        &mut self.items[id.into()]
    }
}

/// A resolved module.
#[derive(Clone, Debug)]
pub struct Program {
    /// All index expressions.
    pub arena: ExprArena,
    /// The kind of each variable of the arena.
    pub vars: HashMap<VarId, VarKind>,
    /// The storage of tensors.
    pub buffers: Table<BufferId, Buffer>,
    /// All tensor values: named ones, and views written as operands.
    pub tensors: Table<TensorId, Tensor>,
    /// All thread tensor values.
    pub threads: Table<ThreadsId, Threads>,
    /// All specs, from kernels to leaves, in text order.
    pub specs: Table<SpecId, Spec>,
    /// All tensor maps, in text order.
    pub maps: Table<MapId, TensorMap>,
    /// The buffers that the caller provides, in text order.
    pub params: Vec<BufferId>,
    /// The top-level specs, in text order.
    pub kernels: Vec<SpecId>,
    /// The symbols, in text order.
    pub symbols: Vec<VarId>,
    /// The facts that hold at every launch (`where`), in text order. The variables' bounds and
    /// divisors include those that follow from facts.
    pub facts: Vec<Fact>,
    /// Usual values of symbols (`typical`), in text order.
    pub typical: Vec<(VarId, i64)>,
    /// The parts that views take of shared tensors with open layouts, one entry for each operation.
    pub taken: Vec<Taken>,
    /// For each counter, by the variable of its declaration: the variables, other than counters, on
    /// which its values depend. They occur in the values of steps, and in the bounds and conditions
    /// that decide how often steps are executed.
    pub counters: HashMap<VarId, Vec<VarId>>,
    /// The first value of each loop variable, if it is not constant.
    pub starts: HashMap<VarId, Dim>,
}

/// The part that one operation of a view takes of a tensor whose layout is open. The layout that
/// the solver chooses must have this part, too. An intermediate part of a longer view has no tensor
/// of its own, so this list records it.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// The viewed buffer.
    pub buffer: BufferId,
    /// The remaining levels: column-major positions in the tensor.
    pub left: Vec<Layout<Dim>>,
    /// The ranges of modes that the operation takes.
    pub ranges: Vec<Range>,
}

/// The elements `first` to `first + n - 1` of a mode.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// The mode.
    pub mode: Layout<Dim>,
    /// The first element of the range.
    pub first: Dim,
    /// The number of elements.
    pub n: Dim,
}

impl Range {
    /// Whether the range is its mode's first `n` elements, shifted: for every `i < n`, the distance
    /// from element `first` to element `first + i` equals the distance from element 0 to element
    /// `i`.
    ///
    /// A coordinate of a nested mode is a mixed-radix number. The sum `first + i` has no carry if
    /// at some digit position three conditions hold: all lower digits of `first` are 0, all higher
    /// digits of `i` are 0, and the sum of the digits at this position is below the radix.
    ///
    /// # Errors
    /// Overflow.
    pub fn is_straight(&self, cx: &ExprArena) -> Result<bool, LayoutError> {
        let (first, n) = (self.first, self.n);
        let extents = self.mode.coalesce_in(cx)?.shape().flatten();
        let mut below = Dim::Const(1);
        for (k, extent) in extents.iter().enumerate() {
            if !Dim::divides(cx, below, first).is_true() {
                return Ok(false);
            }
            // At the last digit, the sum stays below the radix: the range ends within the mode.
            if k + 1 == extents.len() {
                return Ok(true);
            }
            let above = Dim::mul(cx, below, *extent)?;
            let in_parts =
                Dim::divides(cx, n, above).is_true() && Dim::divides(cx, n, first).is_true();
            let spare = Dim::rem(cx, first, above)
                .and_then(|first| Dim::add(cx, first, n))
                .and_then(|end| Dim::sub(cx, above, end));
            if in_parts || spare.is_ok_and(|d| cx.range(d).0.is_some_and(|lo| lo >= 0)) {
                return Ok(true);
            }
            below = above;
        }
        // The mode has one element.
        Ok(true)
    }
}

/// The kinds of variables.
#[derive(Clone, Debug, PartialEq)]
pub enum VarKind {
    /// `threadIdx.x` of the kernel: one variable for each root thread tensor.
    Thread(ThreadsId),
    /// `blockIdx.x` of the kernel.
    Block(ThreadsId),
    /// A loop variable.
    Loop,
    /// A coordinate bound by `indices()`, with the expression over thread or block indices that it
    /// abbreviates. Views keep the variable, so that indices print as written.
    Index(Dim),
    /// An integer that [`StmtKind::Element`] reads from the caller's memory. All threads of a block
    /// read the same value; each iteration of an enclosing loop reads a new one.
    Element(TensorId),
    /// The value of a counter between two of its steps. The variable is that of the counter's
    /// declaration; a variable of this kind has the counter's current value.
    Counter(VarId),
    /// A size known at launch.
    Symbol,
}

/// Storage for scalars of one type.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// The name of the declaring tensor.
    pub name: String,
    /// The memory; `None` if it is not chosen yet.
    pub memory: Option<Memory>,
    /// The type of its elements.
    pub scalar: Scalar,
    /// The number of scalars: the largest offset plus 1. For registers, those of one thread.
    pub cosize: Dim,
    /// The swizzle of byte-address bits; shared memory only.
    pub swizzle: Option<Swizzle>,
    /// The alignment of the first byte; a power of two.
    pub align: i64,
    /// The pinned byte address in shared memory.
    pub at: Option<i64>,
    /// A buffer that it may overlap in shared memory.
    pub reuses: Option<BufferId>,
    /// Whether the layout is open (`{?}`).
    pub open: bool,
    /// The stated range of the integers in a tensor of the caller (`in 0..N`, `in 0..N distinct`,
    /// `splits N`).
    pub range: Option<(Dim, Dim)>,
    /// Whether the elements of the caller's one-mode tensor begin with the lower bound of `range`,
    /// never decrease, and end with the upper one (`splits N`).
    pub splits: bool,
    /// Whether all elements of the caller's tensor differ (`in 0..N distinct`).
    pub distinct: bool,
    /// The indirection, if a tensor of integers selects the elements (`%A[%rows, _]`).
    pub gather: Option<Gather>,
    /// The tensor that declares it.
    pub tensor: TensorId,
    /// The place of the declaration.
    pub span: Span,
    /// The declaring statement of the syntax tree.
    pub node: NodeId,
}

/// Properties of the buffer's memory. They are false if the memory is not chosen yet.
impl Buffer {
    /// [`Memory::is_per_thread`].
    pub fn is_per_thread(&self) -> bool {
        self.memory.is_some_and(Memory::is_per_thread)
    }

    /// [`Memory::is_of_block`].
    pub fn is_of_block(&self) -> bool {
        self.memory.is_some_and(Memory::is_of_block)
    }

    /// [`Memory::is_shared`].
    pub fn is_shared(&self) -> bool {
        self.memory.is_some_and(Memory::is_shared)
    }

    /// [`Memory::is_global`].
    pub fn is_global(&self) -> bool {
        self.memory.is_some_and(Memory::is_global)
    }

    /// [`Memory::is_number`].
    pub fn is_number(&self) -> bool {
        self.memory.is_some_and(Memory::is_number)
    }

    /// [`Memory::is_computed`].
    pub fn is_computed(&self) -> bool {
        self.memory.is_some_and(Memory::is_computed)
    }
}

/// An indirection: a tensor of integers gives one coordinate of each element. Offset `p·unit + r`
/// of the buffer with this gather, with `r < unit`, denotes offset `index[p]·stride + r` of
/// `source`.
///
/// Elements with different `p` are never adjacent, so layouts and vectors work as for other
/// buffers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Gather {
    /// The buffer with the elements.
    pub source: BufferId,
    /// The buffer with the coordinates.
    pub index: BufferId,
    /// The distance in `source` between neighboring coordinates, in scalars.
    pub stride: i64,
    /// The distance in this buffer between neighboring elements of `index`, in scalars. It has as
    /// many factors of two as `stride`.
    pub unit: i64,
}

/// A view of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// The name, without `%`; `None` for an operand written in place.
    pub name: Option<String>,
    /// The viewed buffer.
    pub buffer: BufferId,
    /// The levels, outermost first; empty for a scalar. Strides count scalars of the buffer. For a
    /// distributed tensor: its logical shape with column-major strides. Those count positions in
    /// the logical shape, not registers.
    pub levels: Vec<Layout<Dim>>,
    /// The offset of the first element, in scalars of the buffer.
    pub offset: Dim,
    /// How a register tensor is distributed over threads; `None` for plain tensors.
    pub dist: Option<Dist>,
    /// The block of the cluster whose shared memory holds it (`.peer(r)`); `None` for the own
    /// block.
    pub peer: Option<Dim>,
    /// Set for a view of a tensor map or of a box of it. Elements of a box outside the map's tensor
    /// read as zero and are not written.
    pub map: Option<MapView>,
    /// The bounds of partial tiles: elements outside of them read as zero and are not written. No
    /// memory access happens for them.
    pub bounds: Vec<Bound>,
    /// Its place in the text.
    pub span: Span,
}

/// The bound of a mode that has a partial tile (Graphene, section 3.4).
///
/// `offset` and `levels` result from the same view of the mode's identity tensor. They give the
/// coordinate along the mode for each element of the view. Elements with a coordinate below
/// `extent` exist.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// The levels, congruent with those of the tensor.
    pub levels: Vec<Layout<Dim>>,
    /// The coordinate of element zero.
    pub offset: Dim,
    /// The number of elements of the mode.
    pub extent: Dim,
    /// Whether outside elements count as zeros, as with `.pad([0,1], 0)`. Otherwise they do not
    /// exist, and a reduction ignores them.
    pub filled: bool,
}

impl Bound {
    /// All levels as one layout, outermost modes first; rank 0 for a scalar.
    pub fn concat(&self) -> Layout<Dim> {
        concat_levels(&self.levels)
    }
}

/// The description of a tensor in global memory that tensor-map instructions use to copy boxes.
/// Modes are listed fastest in memory first. All fields are known before the launch.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMap {
    /// The name of the declaring view, if it has one.
    pub name: Option<String>,
    /// The described buffer.
    pub buffer: BufferId,
    /// The offset of the tensor, in scalars of the buffer.
    pub offset: Dim,
    /// The extents of the tensor.
    pub extents: Vec<Dim>,
    /// The strides in scalars; the first one is 1.
    pub strides: Vec<Dim>,
    /// The extents of a box.
    pub sizes: Vec<i64>,
    /// The swizzle of byte-address bits of boxes in shared memory.
    pub swizzle: Option<Swizzle>,
    /// Whether the first mode of the text is the fastest in memory; otherwise the last one is.
    pub first_fastest: bool,
    /// The place of the declaration.
    pub span: Span,
}

/// A view of a tensor map.
#[derive(Clone, Debug, PartialEq)]
pub struct MapView {
    /// The viewed map.
    pub map: MapId,
    /// The coordinates of the box's first element, in the map's order of modes; `None` if no box is
    /// chosen.
    pub at: Option<Vec<Dim>>,
}

/// A thread-value layout.
#[derive(Clone, Debug, PartialEq)]
pub struct Dist {
    /// Two modes (T, V), mapped to the column-major index in the tensor's logical shape; `None`
    /// while open.
    pub tv: Option<Layout<Dim>>,
    /// The threads that T counts, in the column-major order of their concatenated levels.
    pub threads: Option<ThreadsId>,
    /// The operations that made this view from the declared tensor: transposing, permuting, tiling
    /// or indexing. `tv` is the layout of the declared tensor, whose positions the levels of the
    /// view denote.
    pub ops: Vec<ast::ViewOp>,
}

/// A tensor of threads or blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Threads {
    /// The name, without `#`.
    pub name: Option<String>,
    /// The declared tensor that it views (itself for a declaration).
    pub root: ThreadsId,
    /// Whether the elements are threads or blocks.
    pub scalar: ast::ThreadScalar,
    /// The levels, outermost first; empty for `[].thread`. They map to the linear index in the
    /// block or grid.
    pub levels: Vec<Layout<Dim>>,
    /// The number of outermost levels that the executing thread's own coordinates index (`#w[@w]`).
    /// Each thread then refers to its own group; together they refer to the whole tensor.
    pub own: usize,
    /// The column-major number of the executing thread's own group among those groups, as written.
    pub own_number: Dim,
    /// The linear index of coordinate zero. It may depend on loop variables, but not on the thread.
    pub offset: Dim,
    /// For a result of `.scalar()`: the tensor whose threads form groups of one.
    pub each: Option<ThreadsId>,
    /// For a result of `.elect()`: the tensor that has one elected thread in each innermost group.
    /// Levels and offset name the first thread of each group.
    pub elect: Option<ThreadsId>,
    /// The variable of the root: `threadIdx.x` or `blockIdx.x`.
    pub var: Option<VarId>,
    /// This variable as an expression.
    pub index: Dim,
    /// Its place in the text.
    pub span: Span,
}

/// The two thread tensors of `<<<#blocks, #threads>>>`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Exec {
    /// Blocks.
    pub blocks: ThreadsId,
    /// Threads.
    pub threads: ThreadsId,
}

/// A resolved spec.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// The computation.
    pub kind: SpecKind,
    /// The name of a kernel.
    pub name: Option<String>,
    /// The executor; `None` only for a kernel-level spec that the solver decomposes.
    pub exec: Option<Exec>,
    /// Read operands.
    pub inputs: Vec<Operand>,
    /// Written operands.
    pub outputs: Vec<TensorId>,
    /// Attributes in text order.
    pub attrs: Vec<Attr>,
    /// The constants of `axis=`, `tile=` and `warps=`, by key.
    pub ints: Vec<(Key, Vec<i64>)>,
    /// The accumulator type of a MatMul; by default the type of the output.
    pub acc: Option<Scalar>,
    /// The pinned or chosen atom.
    pub atom: Option<String>,
    /// The mbarrier that signals the completion of a copy into shared memory (`bar=`).
    pub bar: Option<TensorId>,
    /// A bit mask of the blocks of the cluster that receive the copy (`multicast=`).
    pub multicast: Option<Dim>,
    /// How long caches keep the copied data.
    pub cache: ast::CacheHint,
    /// The number of elements that a Move reads from its operand, from the first on (`valid=`); the
    /// other elements of the output become 0 without an access. `None` stands for all.
    pub valid: Option<Dim>,
    /// The meaning of a generic spec, if stated.
    pub means: Option<Means>,
    /// The decomposition.
    pub body: Option<Vec<Stmt>>,
    /// The place of the head.
    pub span: Span,
    /// The 1-based line of the head in the resolved text; 0 without a text.
    pub line: u32,
    /// The statement of the syntax tree.
    pub node: NodeId,
}

/// The meaning of a generic spec: steps on whole tensors, in text order. Each value is the result
/// of one step, or an operand as it is when the spec begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Means {
    /// The values: operands first, then results.
    pub values: Vec<MeansValue>,
    /// The steps in text order; a step reads earlier values.
    pub steps: Vec<MeansStep>,
    /// The final value of each output of the spec, as an index into `values`.
    pub outputs: Vec<usize>,
}

/// A tensor of a `means` block.
#[derive(Clone, Debug, PartialEq)]
pub struct MeansValue {
    /// The name, without `%`; `None` for a view written in place.
    pub name: Option<String>,
    /// The type: for an operand its own. A result of floats is a real number, represented as `f64`,
    /// unless it is an output.
    pub scalar: Scalar,
    /// The extent of each mode.
    pub extents: Vec<Dim>,
    /// The operand, if it is one.
    pub operand: Option<TensorId>,
}

/// A step of a `means` block.
#[derive(Clone, Debug, PartialEq)]
pub struct MeansStep {
    /// The operation.
    pub op: MeansOp,
    /// The read values and numbers.
    pub inputs: Vec<MeansInput>,
    /// The index of the resulting value.
    pub output: usize,
    /// Its place in the text.
    pub span: Span,
    /// The 1-based line; 0 without a text.
    pub line: u32,
}

/// The operations of steps in `means` blocks.
#[derive(Clone, Debug, PartialEq)]
pub enum MeansOp {
    /// A spec. A MatMul sets its result. Inputs are broadcast along modes of extent 1.
    Spec {
        /// The kind of the spec.
        kind: SpecKind,
        /// The modes that a Reduction removes, or along which an Iota counts.
        axes: Vec<usize>,
        /// The stated type: the result of a cast, or the accumulator of a MatMul.
        scalar: Option<Scalar>,
    },
    /// Takes the elements of the first input whose coordinates along a mode are in the second. A
    /// second input without modes removes the mode; otherwise its extent replaces that of the mode.
    Gather {
        /// The mode of the first input.
        axis: usize,
    },
    /// Adds elements around those of the first input.
    Pad {
        /// The number of added elements before the first one of each mode.
        before: Vec<Dim>,
        /// The value of the added elements.
        value: f64,
        /// The operation in the syntax tree.
        pad: Box<ast::Pad>,
    },
    /// Takes the elements of the input at column-major indices.
    View {
        /// The layout from coordinates to indices.
        layout: Box<Layout<Dim>>,
        /// The index of coordinate zero.
        offset: Dim,
        /// The operations in the syntax tree.
        ops: Vec<ast::ViewOp>,
    },
}

/// An input of a step of a `means` block.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum MeansInput {
    /// An index into [`Means::values`].
    Value(usize),
    /// A literal.
    Number(f64),
    /// A number known at launch.
    Size(Dim),
}

/// A read operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A tensor.
    Tensor(TensorId),
    /// A literal.
    Number(f64),
}

impl Operand {
    /// The tensor; `None` for a literal.
    #[must_use]
    pub fn tensor(&self) -> Option<TensorId> {
        match self {
            Operand::Tensor(t) => Some(*t),
            Operand::Number(_) => None,
        }
    }
}

/// The number of a statement, unique in its program.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StmtId(pub(crate) u32);

impl StmtId {
    /// The number; it is less than the number of statements of the program.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A statement with an effect. Views and constants are resolved and do not occur.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// The number in the program.
    pub id: StmtId,
    /// The statement itself.
    pub kind: StmtKind,
    /// Its place in the text.
    pub span: Span,
    /// The 1-based line; 0 without a text.
    pub line: u32,
    /// The statement of the syntax tree.
    pub node: NodeId,
}

/// Kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// A nested spec.
    Spec(SpecId),
    /// Storage that lives to the end of the block.
    Allocate(TensorId),
    /// `@m, @n = #t.indices()`: variables of kind [`VarKind::Index`], bound to the end of the
    /// block.
    Indices(Vec<VarId>),
    /// `@n = %sizes[@g]`: a variable of kind [`VarKind::Element`], bound to the end of the block.
    Element {
        /// The variable.
        var: VarId,
        /// One integer in global memory, which the kernel does not write.
        tensor: TensorId,
    },
    /// `counter @q = 0`, `@q += 1`: gives a counter a value, computed from its previous one.
    Step {
        /// The variable of the declaration.
        counter: VarId,
        /// The variable of kind [`VarKind::Counter`] for the new value. In the declaration it is
        /// `counter` itself.
        var: VarId,
        /// The new value.
        value: Dim,
    },
    /// A counted loop.
    For {
        /// The loop variable.
        var: VarId,
        /// First value.
        start: Dim,
        /// Exclusive bound.
        end: Dim,
        /// Further conditions of an iteration.
        also: Vec<Condition>,
        /// Positive step.
        step: i64,
        /// How the loop is unrolled.
        unroll: Unroll,
        /// The number of iterations that may be in flight together; 1 by default. The meaning stays
        /// sequential.
        stages: i64,
        /// The statements of the loop.
        body: Vec<Stmt>,
    },
    /// A condition with its two branches.
    If {
        /// The comparisons, all of which must hold.
        cond: Vec<Condition>,
        /// The branch executed if all hold.
        then: Vec<Stmt>,
        /// The branch executed if one of them does not hold.
        otherwise: Vec<Stmt>,
    },
    /// A barrier of these threads; `None` for all threads of the block.
    Barrier(Option<ThreadsId>),
    /// Another synchronization statement.
    Sync(Sync),
}

/// A comparison of two indices.
pub type Condition = (Dim, CmpOp, Dim);

/// Both sides of each comparison, in the order of the text.
pub fn sides(conditions: &[Condition]) -> impl Iterator<Item = Dim> + '_ {
    conditions.iter().flat_map(|(lhs, _, rhs)| [*lhs, *rhs])
}

/// A synchronization statement. [`ast::SyncOp::signature`] describes its operands.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Sync {
    /// The operation.
    pub op: ast::SyncOp,
    /// The mbarriers, or the tensor map.
    pub tensor: Option<TensorId>,
    /// The number; 1 if omitted.
    pub number: Option<Dim>,
    /// A register that must have its value before the statement is executed.
    pub after: Option<TensorId>,
}

impl Program {
    /// The variables in an expression, each once, in order of first occurrence.
    pub fn vars_in(&self, dim: Dim) -> Vec<VarId> {
        let mut out = vec![];
        let mut stack = vec![dim];
        while let Some(d) = stack.pop() {
            let Dim::Expr(id) = d else { continue };
            match self.arena.node(id) {
                Node::Var(v) if !out.contains(&v) => out.push(v),
                node => stack.extend(node.operands().into_iter().rev()),
            }
        }
        out
    }
    /// Whether the value of an expression can differ between threads of one block.
    pub fn thread_dependent(&self, dim: Dim) -> bool {
        let mut seen = vec![];
        let mut todo = self.vars_in(dim);
        while let Some(var) = todo.pop() {
            if seen.contains(&var) {
                continue;
            }
            seen.push(var);
            match self.vars.get(&var) {
                Some(VarKind::Thread(_)) => return true,
                Some(VarKind::Index(def)) => todo.extend(self.vars_in(*def)),
                Some(VarKind::Counter(id)) => {
                    todo.extend(self.counters.get(id).into_iter().flatten());
                }
                Some(VarKind::Loop) => {
                    todo.extend(self.starts.get(&var).into_iter().flat_map(|d| self.vars_in(*d)));
                }
                Some(VarKind::Block(_) | VarKind::Element(_) | VarKind::Symbol) | None => {}
            }
        }
        false
    }
    /// Replaces bound coordinates in an expression by the thread and block indices that they
    /// abbreviate.
    ///
    /// # Errors
    /// The limits of the arena.
    pub fn unfolded(&self, mut dim: Dim) -> Result<Dim, LayoutError> {
        let is_index = |v: &VarId| matches!(self.vars.get(v), Some(VarKind::Index(_)));
        while self.vars_in(dim).iter().any(is_index) {
            dim = self.arena.substitute(dim, &|v| match self.vars.get(&v) {
                Some(VarKind::Index(def)) => Some(*def),
                _ => None,
            })?;
        }
        Ok(dim)
    }
    /// Whether an expression has one value in each of these groups of threads of a block. False if
    /// this is unknown.
    pub fn same_in_groups(&self, dim: Dim, groups: &[Vec<i64>]) -> bool {
        let Some(parts) = self.thread_parts(dim) else { return false };
        parts.into_iter().all(|part| {
            let at = |x: i64| self.arena.eval(part, &|_| Some(x)).ok();
            groups.iter().all(|group| {
                let Some((first, rest)) = group.split_first() else { return true };
                at(*first).is_some_and(|v| rest.iter().all(|x| at(*x) == Some(v)))
            })
        })
    }
    /// The largest subexpressions that depend only on the thread index. If they agree for two
    /// threads, so does the expression. `None` if subexpressions mix the thread index with other
    /// variables.
    pub fn thread_parts(&self, dim: Dim) -> Option<Vec<Dim>> {
        let mut todo = vec![self.unfolded(dim).ok()?];
        let mut parts = vec![];
        while let Some(dim) = todo.pop() {
            let Dim::Expr(id) = dim else { continue };
            if !self.thread_dependent(dim) {
                continue;
            }
            if self.by_thread_alone(dim) {
                parts.push(dim);
                continue;
            }
            match self.arena.node(id) {
                // In an iteration, threads differ in a loop variable as in its first value.
                Node::Var(var) => todo.push(self.unfolded(*self.starts.get(&var)?).ok()?),
                // Add up the terms that depend on the thread only: their sum may agree where the
                // single terms do not.
                Node::Linear { terms, .. } => {
                    let (alone, other): (Vec<_>, Vec<_>) =
                        terms.iter().partition(|(t, _)| self.by_thread_alone(Dim::Expr(*t)));
                    let mut sum = Dim::Const(0);
                    for (t, c) in alone {
                        let term = Dim::mul(&self.arena, Dim::Expr(t), Dim::Const(c)).ok()?;
                        sum = Dim::add(&self.arena, sum, term).ok()?;
                    }
                    parts.extend(Some(sum).filter(|sum| sum.as_const().is_none()));
                    todo.extend(other.iter().map(|(t, _)| Dim::Expr(*t)));
                }
                Node::Mul(a, b)
                | Node::Div(a, b)
                | Node::Mod(a, b)
                | Node::CeilDiv(a, b)
                | Node::Min(a, b)
                | Node::Max(a, b) => todo.extend([a, b]),
            }
        }
        Some(parts)
    }
    /// The value of an expression for each of the first `n` threads of a block; `None` if it
    /// depends on other variables.
    pub fn by_threads(&self, dim: Dim, n: i64) -> Option<Vec<i64>> {
        let dim = self.unfolded(dim).ok()?;
        if dim.as_const().is_none() && !self.by_thread_alone(dim) {
            return None;
        }
        (0..n).map(|x| self.arena.eval(dim, &|_| Some(x)).ok()).collect()
    }
    /// Whether an unfolded expression depends only on the thread index.
    fn by_thread_alone(&self, dim: Dim) -> bool {
        let vars = self.vars_in(dim);
        !vars.is_empty()
            && vars.iter().all(|v| matches!(self.vars.get(v), Some(VarKind::Thread(_))))
    }
    /// The viewed buffer of a tensor.
    pub fn buffer_of(&self, t: TensorId) -> &Buffer {
        &self.buffers[self.tensors[t].buffer]
    }
    /// The number of blocks in a cluster of a kernel: the size of the innermost level of a block
    /// tensor with several levels. 1 without clusters, `None` if the size depends on symbols.
    pub fn cluster_size(&self, kernel: SpecId) -> Option<i64> {
        let Some(exec) = self.specs[kernel].exec else { return Some(1) };
        match &self.threads[exec.blocks].levels[..] {
            [_, .., cluster] => cluster.to_fixed().map(|l| l.size()),
            _ => Some(1),
        }
    }
    /// The scalar type of a tensor.
    pub fn scalar_of(&self, t: TensorId) -> Scalar {
        self.buffer_of(t).scalar
    }
    /// `%As`, or a description for an operand written in place: `a view of %A`.
    pub fn tensor_name(&self, t: TensorId) -> String {
        let article = if self.tensors[t].name.is_some() { "" } else { "a " };
        format!("{article}{}", self.tensor_title(t))
    }
    /// [`Program::tensor_name`] without an article, for lists: `view of %A`.
    pub fn tensor_title(&self, t: TensorId) -> String {
        match &self.tensors[t].name {
            Some(n) => format!("%{n}"),
            None => format!("view of %{}", self.buffer_of(t).name),
        }
    }
    /// The value of an index for a thread, with loop variables and block indices at their first
    /// values; `None` if it depends on a symbol.
    pub fn first_value(&self, d: Dim, thread: i64) -> Option<i64> {
        self.value_at(d, thread, &HashMap::new())
    }
    /// Like [`Program::first_value`], with these values for loop variables and block indices.
    pub fn value_at(&self, d: Dim, thread: i64, loops: &HashMap<VarId, i64>) -> Option<i64> {
        self.value_with(d, &|v| match self.vars.get(&v)? {
            VarKind::Thread(_) => Some(thread),
            VarKind::Block(_) => Some(loops.get(&v).copied().unwrap_or(0)),
            VarKind::Loop | VarKind::Element(_) | VarKind::Counter(_) => {
                Some(loops.get(&v).copied().unwrap_or_else(|| self.arena.var_info(v).lo))
            }
            VarKind::Index(_) | VarKind::Symbol => None,
        })
    }
    /// The value of an index, with these values of variables; `None` if one of them has none. Named
    /// coordinates are evaluated by their definitions.
    pub fn value_with(&self, d: Dim, of: &dyn Fn(VarId) -> Option<i64>) -> Option<i64> {
        let value = |v: VarId| match self.vars.get(&v) {
            Some(VarKind::Index(def)) => self.value_with(*def, of),
            _ => of(v),
        };
        self.arena.eval(d, &value).ok()
    }
    /// Whether the tensor is in the registers of one thread.
    pub fn is_private(&self, t: TensorId) -> bool {
        self.buffer_of(t).is_per_thread() && self.tensors[t].dist.is_none()
    }
}

/// The modes of all levels as one layout, outermost first. Resolving guarantees that the total
/// stays within the limits of the layout algebra.
pub(crate) fn concat_levels(levels: &[Layout<Dim>]) -> Layout<Dim> {
    let modes: Vec<Layout<Dim>> = levels.iter().flat_map(Layout::modes).collect();
    Layout::concat(&modes).expect("resolve checked the limits")
}

/// Levels in the text format, `[2,2].[(8,8):(8,1)]`. A level of one nested mode keeps its
/// parentheses, `[((4,2)):((1,16))]`; without them it would be two modes.
pub fn show_levels(cx: &ExprArena, levels: &[Layout<Dim>]) -> String {
    if levels.is_empty() {
        return "[]".to_owned();
    }
    let one = |l: &Layout<Dim>| match l.modes().as_slice() {
        [only] if only.depth() == 0 => format!("[{}]", only.display_in(cx)),
        _ => format!("[{}]", l.display_in(cx)),
    };
    levels.iter().map(one).collect::<Vec<_>>().join(".")
}

impl Tensor {
    /// All levels as one layout, outermost modes first; rank 0 for a scalar.
    pub fn concat(&self) -> Layout<Dim> {
        concat_levels(&self.levels)
    }
    /// The indices that select the elements of the view: its offset, its bounds, its block of the
    /// cluster and its coordinates in a tensor map.
    pub fn indices(&self) -> impl Iterator<Item = Dim> + '_ {
        let bounds = self.bounds.iter().flat_map(|b| [b.offset, b.extent]);
        let map = self.map.iter().flat_map(|m| m.at.iter().flatten().copied());
        [self.offset].into_iter().chain(bounds).chain(self.peer).chain(map)
    }
}

impl Threads {
    /// All levels as one layout, outermost modes first; rank 0 for `[].thread`.
    pub fn concat(&self) -> Layout<Dim> {
        concat_levels(&self.levels)
    }
    /// The levels of one group, without those that the executing thread's coordinates index: for
    /// `#w[@w]` one warp.
    pub fn inner(&self) -> &[Layout<Dim>] {
        self.levels.get(self.own..).unwrap_or_default()
    }
    /// For each coordinate of the `outer` outermost levels, the indices of the threads below it, in
    /// the order of the levels. `None` if they depend on symbols or loop variables, or exceed the
    /// number of threads of a block.
    pub fn groups_below(&self, outer: usize) -> Option<Vec<Vec<i64>>> {
        let offset = self.offset.as_const()?;
        let (outer, inner) = self.levels.split_at_checked(outer)?;
        let (outer, inner) = (concat_levels(outer).to_fixed()?, concat_levels(inner).to_fixed()?);
        let most = crate::limits::MAX_BLOCK_THREADS;
        if outer.size().checked_mul(inner.size()).is_none_or(|n| n > most) {
            return None;
        }
        let thread =
            |g: i64, i: i64| offset.saturating_add(outer.at(g)).saturating_add(inner.at(i));
        let group = |g: i64| (0..inner.size()).map(|i| thread(g, i)).collect();
        Some((0..outer.size()).map(group).collect())
    }
    /// The groups of threads that refer to the same part: for `#w[@w]`, each thread refers to its
    /// own group. A single group, the whole tensor, if no coordinate of the thread is an index.
    /// `None` as in [`Threads::groups_below`].
    pub fn own_groups(&self) -> Option<Vec<Vec<i64>>> {
        self.groups_below(self.own)
    }
}

impl Spec {
    /// The tensors among the inputs.
    pub fn input_tensors(&self) -> impl Iterator<Item = TensorId> + '_ {
        self.inputs.iter().filter_map(Operand::tensor)
    }
    /// The attribute with this key.
    pub fn attr(&self, key: Key) -> Option<&Attr> {
        Attr::among(&self.attrs, key)
    }
    /// The constants of an attribute.
    pub fn ints(&self, key: Key) -> Option<&[i64]> {
        self.ints.iter().find(|(k, _)| *k == key).map(|(_, v)| v.as_slice())
    }
    /// The modes that a reduction removes; `None` without a valid `axis=`.
    pub fn axes(&self) -> Option<Vec<usize>> {
        self.ints(Key::Axis)?.iter().map(|a| usize::try_from(*a).ok()).collect()
    }
    /// The lane, distance or mask of a Shfl (`lane=`), if constant.
    pub fn lane(&self) -> Option<i64> {
        self.ints(Key::Lane)?.first().copied()
    }
    /// The place in the source program from which the spec was made (`loc=`).
    pub fn loc(&self) -> Option<&str> {
        Attr::loc_of(&self.attrs)
    }
    /// The place of an attribute's value, `f32` in `acc=f32`, if it is a word.
    pub fn word(&self, key: Key) -> Option<Span> {
        let attr = self.attr(key)?;
        let start = attr.name.span.end as usize + 1;
        Some(Span::new(start, start + attr.as_word()?.len()))
    }
}
