//! A program whose every type is known: what [`crate::resolve`] makes of a module.
//!
//! Verifier, simulator, matcher and code generator all read this form; nobody infers a type again.
//! Tables are indexed by typed ids, in text order, so every traversal is deterministic.
//!
//! A tensor is a *view*: a buffer, an offset, and levels of layouts (outermost first) whose strides
//! and offset count scalars of the buffer. Index expressions live in the program's [`ExprArena`];
//! their variables ([`Program::vars`]) are thread and block indices, loop variables and symbols.

mod casts;
mod facts;
pub mod samples;
mod stated;
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
    /// Names an entry of [`Program::buffers`].
    BufferId "buf",
    /// Names an entry of [`Program::tensors`].
    TensorId "%",
    /// Names an entry of [`Program::threads`].
    ThreadsId "#",
    /// Names an entry of [`Program::specs`].
    SpecId "@s",
    /// Names an entry of [`Program::maps`].
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
    /// Appends; the new id.
    pub fn push(&mut self, item: T) -> I {
        self.items.push(item);
        I::from(self.items.len() - 1)
    }
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.items.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    /// Entries with ids, in order.
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
    /// Owns every index expression.
    pub arena: ExprArena,
    /// What each variable of the arena is.
    pub vars: HashMap<VarId, VarKind>,
    /// Storage.
    pub buffers: Table<BufferId, Buffer>,
    /// Every tensor value: named ones and operands written in place.
    pub tensors: Table<TensorId, Tensor>,
    /// Every thread tensor value.
    pub threads: Table<ThreadsId, Threads>,
    /// Every spec, kernels and leaves alike, in text order.
    pub specs: Table<SpecId, Spec>,
    /// Every tensor map, in text order.
    pub maps: Table<MapId, TensorMap>,
    /// Buffers that the caller provides, in text order.
    pub params: Vec<BufferId>,
    /// Top-level specs, in text order.
    pub kernels: Vec<SpecId>,
    /// Symbolic sizes in text order.
    pub symbols: Vec<VarId>,
    /// What holds of symbols at every launch (`where`), in text order. Ranges and divisors that
    /// follow are those of the variables.
    pub facts: Vec<Fact>,
    /// Values that symbols often have (`typical`), in text order.
    pub typical: Vec<(VarId, i64)>,
    /// What views take of shared tensors whose layouts are open, operation by operation.
    pub taken: Vec<Taken>,
}

/// What one operation of a view takes of a tensor whose layout is open. A layout that is found for
/// the tensor must have these parts, too: those of a view that is taken apart further are no
/// tensors of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct Taken {
    /// Of which.
    pub buffer: BufferId,
    /// The levels that are left: positions in the tensor, column-major.
    pub left: Vec<Layout<Dim>>,
    /// The ranges among what is taken.
    pub ranges: Vec<Range>,
}

/// `first..first + n` of a mode.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// The mode.
    pub mode: Layout<Dim>,
    /// Its first element that is in the range.
    pub first: Dim,
    /// How many are.
    pub n: Dim,
}

impl Range {
    /// Whether element `first + i` of the mode, for every `i < n`, lies as far behind element
    /// `first` as element `i` behind element 0: then `n` elements from 0 on, shifted, are the
    /// range.
    ///
    /// A coordinate of a nested mode is a number of mixed radix. The sum of `first` and `i` has no
    /// carry where all digits of `first` below some place are 0, `i` has none above it, and the
    /// digits at it stay below the radix.
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
            // The range ends within the mode.
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
        // A mode of one element.
        Ok(true)
    }
}

/// What a variable stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum VarKind {
    /// `threadIdx.x` of the kernel: one variable a root thread tensor.
    Thread(ThreadsId),
    /// `blockIdx.x` of the kernel.
    Block(ThreadsId),
    /// A loop variable.
    Loop,
    /// A coordinate bound by `indices()`: the expression over thread or block indices that it
    /// names. Views keep the variable, so that printed indices read as they were written.
    Index(Dim),
    /// An integer that is read from the caller's memory ([`StmtKind::Element`]), where its
    /// statement stands. The same for all threads of a block; another in each turn of the loops
    /// around.
    Element(TensorId),
    /// A size known at launch.
    Symbol,
}

/// Storage for scalars of one type.
#[derive(Clone, Debug, PartialEq)]
pub struct Buffer {
    /// Of the declaring tensor.
    pub name: String,
    /// Where it lives.
    pub memory: Option<Memory>,
    /// Of its elements.
    pub scalar: Scalar,
    /// Scalars it holds: one past the largest offset (of one thread, for registers).
    pub cosize: Dim,
    /// On byte-address bits; shared memory only.
    pub swizzle: Option<Swizzle>,
    /// Of the first byte; a power of two.
    pub align: i64,
    /// Byte address in shared memory where pinned.
    pub at: Option<i64>,
    /// Buffers it may overlap in shared memory.
    pub reuses: Option<BufferId>,
    /// Whether the layout is still to be found (`{?}`).
    pub open: bool,
    /// The range of its elements, where the caller's tensor states one (`in 0..N`,
    /// `in 0..N distinct`, `splits N`).
    pub range: Option<(Dim, Dim)>,
    /// Whether the elements of the caller's tensor, of one mode, begin with the first number of
    /// `range`, never fall, and end with the last one (`splits N`).
    pub splits: bool,
    /// Whether no two elements of the caller's tensor are equal (`in 0..N distinct`).
    pub distinct: bool,
    /// Of one whose elements are found through a tensor of integers (`%A[%rows, _]`).
    pub gather: Option<Gather>,
    /// The tensor that declares it.
    pub tensor: TensorId,
    /// The declaration.
    pub span: Span,
    /// The statement of the tree that declares it.
    pub node: NodeId,
}

/// Questions about the memory of a buffer. Where none is written yet, the answer is no.
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

/// Elements of a buffer, one coordinate of which is read from a tensor of integers. Offset
/// `p·unit + r` of the buffer that has this is offset `index[p]·stride + r` of `source`; what
/// stands for one `p` is less than `unit` and no neighbor of what stands for another, so that
/// layouts and vectors are those of any other buffer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Gather {
    /// Where the elements are.
    pub source: BufferId,
    /// Where the coordinates are.
    pub index: BufferId,
    /// Scalars of `source` from one coordinate to the next.
    pub stride: i64,
    /// Of this buffer, from one element of `index` to the next. As often divisible by two as
    /// `stride`.
    pub unit: i64,
}

/// A view of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// As written, without `%`; none for an operand written in place.
    pub name: Option<String>,
    /// What it views.
    pub buffer: BufferId,
    /// Outermost first; empty for a scalar. Strides in scalars of the buffer. Of a distributed
    /// tensor: its logical shape with column-major strides (positions in the logical shape, not
    /// registers).
    pub levels: Vec<Layout<Dim>>,
    /// In scalars of the buffer.
    pub offset: Dim,
    /// How a register tensor is spread over threads; none for plain tensors.
    pub dist: Option<Dist>,
    /// The block of the cluster in whose shared memory it lies (`.peer(r)`); none for the own
    /// block.
    pub peer: Option<Dim>,
    /// Of a view of a tensor map, or of one of its boxes. Elements of a box at an edge may lie
    /// outside of the map's tensor: they read as zero and are not written.
    pub map: Option<MapView>,
    /// Of a view of tiles that reach over the end of a mode: which of its elements there are. The
    /// others read as zero and are not written; nothing is accessed for them.
    pub bounds: Vec<Bound>,
    /// Where it is written.
    pub span: Span,
}

/// A mode that tiles reach over the end of (Graphene, section 3.4). It is the mode's part of the
/// identity tensor, of which the same view was taken: `offset` and `levels` give the coordinate
/// along the mode of each element of the view, and elements exist whose coordinate is below
/// `extent`.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// Congruent with the levels of the tensor.
    pub levels: Vec<Layout<Dim>>,
    /// The coordinate of element zero.
    pub offset: Dim,
    /// How many elements the mode has.
    pub extent: Dim,
    /// Whether elements outside are zeros that count like others, `.pad([0,1], 0)`. Others are
    /// none: where elements meet, they change nothing.
    pub filled: bool,
}

impl Bound {
    /// All levels as one layout, outermost modes first; rank 0 for a scalar.
    pub fn concat(&self) -> Layout<Dim> {
        concat_levels(&self.levels)
    }
}

/// A tensor in global memory as boxes: what tensor-map instructions are told of it. Modes are
/// listed the fastest in memory first; everything is known before the launch.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorMap {
    /// Of the view that declares it, where that has one.
    pub name: Option<String>,
    /// What it is a map of.
    pub buffer: BufferId,
    /// Where the tensor begins, in scalars of the buffer.
    pub offset: Dim,
    /// Extents of the tensor.
    pub extents: Vec<Dim>,
    /// Scalars from one element to the next; the first is 1.
    pub strides: Vec<Dim>,
    /// Extents of a box.
    pub sizes: Vec<i64>,
    /// Of boxes in shared memory, on byte-address bits.
    pub swizzle: Option<Swizzle>,
    /// Whether the first mode of the text is the fastest; else the last one is.
    pub first_fastest: bool,
    /// Where it is declared.
    pub span: Span,
}

/// A view of a tensor map.
#[derive(Clone, Debug, PartialEq)]
pub struct MapView {
    /// Of which.
    pub map: MapId,
    /// Coordinates of the box's first element, in the map's order of modes; none before a box is
    /// chosen.
    pub at: Option<Vec<Dim>>,
}

/// A thread-value layout.
#[derive(Clone, Debug, PartialEq)]
pub struct Dist {
    /// Two modes (T, V): to the column-major index in the tensor's logical shape. None while open.
    pub tv: Option<Layout<Dim>>,
    /// The threads T counts, in the column-major order of its concatenated levels.
    pub threads: Option<ThreadsId>,
    /// What was done to the declared tensor to make this view of it: transposed, permuted, tiled or
    /// indexed. The layout stays that of the declared tensor, whose positions the levels of the
    /// view name.
    pub ops: Vec<ast::ViewOp>,
}

/// A tensor of threads or blocks.
#[derive(Clone, Debug, PartialEq)]
pub struct Threads {
    /// As written, without `#`.
    pub name: Option<String>,
    /// The declared tensor it is a view of (itself for a declaration).
    pub root: ThreadsId,
    /// Threads or blocks.
    pub scalar: ast::ThreadScalar,
    /// Outermost first; empty for `[].thread`. To the linear index in the block (grid).
    pub levels: Vec<Layout<Dim>>,
    /// Of the levels, how many outermost ones the executing thread's own coordinates choose
    /// (`#w[@w]`): each thread means the group that it is in, and all of them together mean the
    /// whole tensor.
    pub own: usize,
    /// The column-major number among those groups of the one that the executing thread is in, as it
    /// is written.
    pub own_number: Dim,
    /// The linear index of coordinate zero. May depend on loop variables, never on the thread
    /// itself.
    pub offset: Dim,
    /// Made by `.scalar()`: every thread of `each`, each for itself.
    pub each: Option<ThreadsId>,
    /// Made by `.elect()`: the tensor of whose innermost groups one thread each is elected. The
    /// levels and the offset name the first of each group.
    pub elect: Option<ThreadsId>,
    /// The variable of the root: `threadIdx.x` or `blockIdx.x`.
    pub var: Option<VarId>,
    /// The same as an expression.
    pub index: Dim,
    /// Where it is written.
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
    /// What it computes.
    pub kind: SpecKind,
    /// Kernel name.
    pub name: Option<String>,
    /// None only on kernel-level specs that the solver is to configure.
    pub exec: Option<Exec>,
    /// Read operands.
    pub inputs: Vec<Operand>,
    /// Written operands.
    pub outputs: Vec<TensorId>,
    /// Attributes in text order.
    pub attrs: Vec<Attr>,
    /// The constants of `axis=`, `tile=` and `warps=`, by key.
    pub ints: Vec<(Key, Vec<i64>)>,
    /// Accumulator type of a MatMul; the output's type where not stated.
    pub acc: Option<Scalar>,
    /// The pinned or chosen atom.
    pub atom: Option<String>,
    /// The mbarrier that a copy into shared memory completes on (`bar=`).
    pub bar: Option<TensorId>,
    /// Blocks of the cluster that get the copy, one bit each (`multicast=`).
    pub multicast: Option<Dim>,
    /// How long caches keep what it touches.
    pub cache: ast::CacheHint,
    /// How many elements of its operand a Move reads, from the first on; the others become 0 and
    /// are not accessed (`valid=`). All where not stated.
    pub valid: Option<Dim>,
    /// What a generic spec computes, where it says so.
    pub means: Option<Means>,
    /// The decomposition.
    pub body: Option<Vec<Stmt>>,
    /// The head.
    pub span: Span,
    /// 1-based line of the head in the resolved text; 0 where there is no text.
    pub line: u32,
    /// The statement of the tree.
    pub node: NodeId,
}

/// What a generic spec computes: steps on whole tensors, in the order of the text. Each value is
/// made by one step, or is an operand of the spec as it is when the spec begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Means {
    /// Operands first, then results.
    pub values: Vec<MeansValue>,
    /// In text order; a step reads values of earlier ones.
    pub steps: Vec<MeansStep>,
    /// What each output of the spec becomes, an index into `values`.
    pub outputs: Vec<usize>,
}

/// A tensor of a `means` block.
#[derive(Clone, Debug, PartialEq)]
pub struct MeansValue {
    /// Without `%`; none for a view written in place.
    pub name: Option<String>,
    /// Of an operand its type. A result of floats is a real number, `f64` here, unless it is an
    /// output.
    pub scalar: Scalar,
    /// Of each mode.
    pub extents: Vec<Dim>,
    /// The operand that it is.
    pub operand: Option<TensorId>,
}

/// A step of a `means` block.
#[derive(Clone, Debug, PartialEq)]
pub struct MeansStep {
    /// What it does.
    pub op: MeansOp,
    /// What it reads.
    pub inputs: Vec<MeansInput>,
    /// The value that it makes.
    pub output: usize,
    /// Its place in the text.
    pub span: Span,
    /// 1-based; 0 where there is no text.
    pub line: u32,
}

/// What a step of a `means` block does.
#[derive(Clone, Debug, PartialEq)]
pub enum MeansOp {
    /// What the spec means; a MatMul sets. Inputs are broadcast along modes of extent 1.
    Spec {
        /// What kind of spec.
        kind: SpecKind,
        /// The modes that a Reduction removes, or along which an Iota counts.
        axes: Vec<usize>,
        /// The type that a cast gives, or in which a MatMul accumulates, where the block says so.
        scalar: Option<Scalar>,
    },
    /// The elements of the first input whose coordinate along a mode stands in the second. Where
    /// that has no modes, the mode is gone, else it has the extent of that one's mode.
    Gather {
        /// Which mode of the first input.
        axis: usize,
    },
    /// The first input, with more elements around those that it has.
    Pad {
        /// How many before the first of each mode.
        before: Vec<Dim>,
        /// Their value.
        value: f64,
        /// As it is written.
        pad: Box<ast::Pad>,
    },
    /// The elements of the input at these column-major indices.
    View {
        /// From coordinates to indices.
        layout: Box<Layout<Dim>>,
        /// The index of coordinate zero.
        offset: Dim,
        /// The same as written.
        ops: Vec<ast::ViewOp>,
    },
}

/// What a step of a `means` block reads.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum MeansInput {
    /// An index into [`Means::values`].
    Value(usize),
    /// A literal.
    Number(f64),
    /// A number that is known at launch.
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
    /// The tensor; none of a literal.
    #[must_use]
    pub fn tensor(&self) -> Option<TensorId> {
        match self {
            Operand::Tensor(t) => Some(*t),
            Operand::Number(_) => None,
        }
    }
}

/// The number of a statement in its program. No two statements have the same one.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StmtId(pub(crate) u32);

impl StmtId {
    /// The number, less than the number of statements of the program.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A statement that does something. Views and constants have been resolved away.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// Its number in the program.
    pub id: StmtId,
    /// What it does.
    pub kind: StmtKind,
    /// Its place in the text.
    pub span: Span,
    /// 1-based line; 0 where there is no text.
    pub line: u32,
    /// The statement of the tree.
    pub node: NodeId,
}

/// Kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// A nested spec.
    Spec(SpecId),
    /// New storage for the rest of the block.
    Allocate(TensorId),
    /// `@m, @n = #t.indices()`: variables of kind [`VarKind::Index`], bound from here to the
    /// block's end.
    Indices(Vec<VarId>),
    /// `@n = %sizes[@g]`: a variable of kind [`VarKind::Element`], bound from here to the block's
    /// end.
    Element {
        /// The variable.
        var: VarId,
        /// One integer in global memory, which the kernel does not write.
        tensor: TensorId,
    },
    /// A counted loop.
    For {
        /// Its variable.
        var: VarId,
        /// First value.
        start: Dim,
        /// Exclusive bound.
        end: Dim,
        /// Positive step.
        step: i64,
        /// As written.
        unroll: Unroll,
        /// How many iterations may be under way at a time; 1 where nothing is said. They mean what
        /// they mean one after the other.
        stages: i64,
        /// Repeated.
        body: Vec<Stmt>,
    },
    /// Both sides of a condition.
    If {
        /// All must hold.
        cond: Vec<(Dim, CmpOp, Dim)>,
        /// When they do.
        then: Vec<Stmt>,
        /// When one does not.
        otherwise: Vec<Stmt>,
    },
    /// All threads named (none: of the block) arrive.
    Barrier(Option<ThreadsId>),
    /// A synchronization of another kind.
    Sync(Sync),
}

/// A synchronization statement, its operands as [`ast::SyncOp::signature`] says.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Sync {
    /// What is done.
    pub op: ast::SyncOp,
    /// The mbarriers, or the tensor map.
    pub tensor: Option<TensorId>,
    /// The number; 1 where it was left out.
    pub number: Option<Dim>,
}

impl Program {
    /// The variables that an expression mentions, each once, in order of first mention.
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
    /// Whether a value differs between threads of one block.
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
                Some(VarKind::Block(_) | VarKind::Loop | VarKind::Element(_) | VarKind::Symbol)
                | None => {}
            }
        }
        false
    }
    /// The expression with coordinates replaced by what they stand for, in terms of thread and
    /// block indices.
    ///
    /// # Errors
    /// Limits of the arena.
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
    /// Whether a value is the same for all threads of each of these groups: sets of indices of one
    /// block. False where that is not known.
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
    /// The largest parts of a value that depend on the thread's index and nothing else: where they
    /// are the same for two threads, so is the value. None where parts that depend on the thread
    /// cannot be told from others.
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
                Node::Var(_) => return None,
                // Terms of the thread alone are added up: their sum may be the same where they are
                // not.
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
    /// The value for each of the first `n` threads of a block; none where it depends on more than
    /// the thread.
    pub fn by_threads(&self, dim: Dim, n: i64) -> Option<Vec<i64>> {
        let dim = self.unfolded(dim).ok()?;
        if dim.as_const().is_none() && !self.by_thread_alone(dim) {
            return None;
        }
        (0..n).map(|x| self.arena.eval(dim, &|_| Some(x)).ok()).collect()
    }
    /// Whether an unfolded expression depends on the index of the thread and nothing else.
    fn by_thread_alone(&self, dim: Dim) -> bool {
        let vars = self.vars_in(dim);
        !vars.is_empty()
            && vars.iter().all(|v| matches!(self.vars.get(v), Some(VarKind::Thread(_))))
    }
    /// The buffer that a tensor views.
    pub fn buffer_of(&self, t: TensorId) -> &Buffer {
        &self.buffers[self.tensors[t].buffer]
    }
    /// Blocks of a cluster of a kernel: the innermost level of a block tensor of several. 1 where
    /// there are no clusters, none where their size depends on symbols.
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
    /// `%As`, or a description for an operand written in place.
    pub fn tensor_name(&self, t: TensorId) -> String {
        match &self.tensors[t].name {
            Some(n) => format!("%{n}"),
            None => format!("view of %{}", self.buffer_of(t).name),
        }
    }
    /// The value of an index for a thread, loops and blocks at their first values; none where it
    /// depends on a symbol.
    pub fn first_value(&self, d: Dim, thread: i64) -> Option<i64> {
        self.value_at(d, thread, &HashMap::new())
    }
    /// The same, where these variables of loops and blocks have these values.
    pub fn value_at(&self, d: Dim, thread: i64, loops: &HashMap<VarId, i64>) -> Option<i64> {
        let value = |v: VarId| match self.vars.get(&v)? {
            VarKind::Thread(_) => Some(thread),
            VarKind::Block(_) => Some(loops.get(&v).copied().unwrap_or(0)),
            VarKind::Loop => {
                Some(loops.get(&v).copied().unwrap_or_else(|| self.arena.var_info(v).lo))
            }
            VarKind::Index(def) => self.value_at(*def, thread, loops),
            VarKind::Element(_) => {
                Some(loops.get(&v).copied().unwrap_or_else(|| self.arena.var_info(v).lo))
            }
            VarKind::Symbol => None,
        };
        self.arena.eval(d, &value).ok()
    }
    /// Whether the tensor is one thread's own registers.
    pub fn is_private(&self, t: TensorId) -> bool {
        self.buffer_of(t).is_per_thread() && self.tensors[t].dist.is_none()
    }
}

/// The modes of all levels as one layout, outermost first. Resolving has checked that the sum of
/// the levels stays within the limits of the algebra.
pub(crate) fn concat_levels(levels: &[Layout<Dim>]) -> Layout<Dim> {
    let modes: Vec<Layout<Dim>> = levels.iter().flat_map(Layout::modes).collect();
    Layout::concat(&modes).expect("resolve checked the limits")
}

/// `[2,2].[(8,8):(8,1)]`: levels in the text format. A level of one nested mode keeps its
/// parentheses, `[((4,2)):((1,16))]`, without which it would be two modes.
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
}

impl Threads {
    /// All levels as one layout, outermost modes first; rank 0 for `[].thread`.
    pub fn concat(&self) -> Layout<Dim> {
        concat_levels(&self.levels)
    }
    /// The levels below those that the executing thread's own coordinates choose: of `#w[@w]` one
    /// warp.
    pub fn inner(&self) -> &[Layout<Dim>] {
        self.levels.get(self.own..).unwrap_or_default()
    }
    /// The indices of the threads below each coordinate of so many outermost levels, in the order
    /// of the levels. None where symbols or loop variables decide, or where there are more than a
    /// block has.
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
    /// The groups one of which each executing thread means (`#w[@w]`); one, the whole tensor, where
    /// the threads' own coordinates choose nothing. As [`Threads::groups_below`].
    pub fn own_groups(&self) -> Option<Vec<Vec<i64>>> {
        self.groups_below(self.own)
    }
}

impl Spec {
    /// The tensors among the inputs.
    pub fn input_tensors(&self) -> impl Iterator<Item = TensorId> + '_ {
        self.inputs.iter().filter_map(Operand::tensor)
    }
    /// The attribute of this key.
    pub fn attr(&self, key: Key) -> Option<&Attr> {
        Attr::among(&self.attrs, key)
    }
    /// The constants of an attribute.
    pub fn ints(&self, key: Key) -> Option<&[i64]> {
        self.ints.iter().find(|(k, _)| *k == key).map(|(_, v)| v.as_slice())
    }
    /// The modes that a reduction removes; none without a usable `axis=`.
    pub fn axes(&self) -> Option<Vec<usize>> {
        self.ints(Key::Axis)?.iter().map(|a| usize::try_from(*a).ok()).collect()
    }
    /// Lane, distance or mask of a Shfl (`lane=`), where it is a constant.
    pub fn lane(&self) -> Option<i64> {
        self.ints(Key::Lane)?.first().copied()
    }
    /// Where the spec comes from in a program that this one was made of (`loc=`).
    pub fn loc(&self) -> Option<&str> {
        Attr::loc_of(&self.attrs)
    }
    /// Where the word stands that an attribute is given, `f32` of `acc=f32`.
    pub fn word(&self, key: Key) -> Option<Span> {
        let attr = self.attr(key)?;
        let start = attr.name.span.end as usize + 1;
        Some(Span::new(start, start + attr.as_word()?.len()))
    }
}
