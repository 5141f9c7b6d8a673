//! Divides the tensors in global memory that some kernels of a program use into those that the
//! caller passes and those in a workspace, where they lie one after another. In the workspace are
//! tensors that `decompose` added, and tensors only between kernels: the first kernel that uses
//! them writes them whole, and the last one only reads them. If the kernels are not all kernels of
//! the program, the caller passes every tensor. Host functions and launchers follow this division.
//!
//! It also computes the size, the form (extents and strides) and the alignment of such tensors, and
//! which of them kernels write as a whole before they read them.

use super::cuda_kernel::CudaKernel;
use crate::scalars::{storage, storage_bits};
use crate::{Fallible, errors};
use carbyne_atoms::smem::MIN_ALIGN;
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{BufferId, Program, SpecId};
use carbyne_ir::scalar::Memory;
use std::collections::{BTreeSet, HashMap};

/// The buffers that a sequence of kernels takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The tensors and numbers that the caller passes, in the order of the program.
    pub caller: Vec<BufferId>,
    /// The tensors in the workspace.
    pub workspace: Vec<BufferId>,
}

impl Interface {
    /// The interface of these kernels. `declared` are the tensors that the text declared before it
    /// was decomposed. All other tensors are in the workspace, and so are tensors that only the
    /// kernels use. If only some kernels of the program are given, the caller passes the tensors
    /// between kernels.
    #[must_use]
    pub fn of(
        program: &Program,
        kernels: &[&CudaKernel],
        declared: &BTreeSet<String>,
    ) -> Interface {
        let takes = |k: &CudaKernel, b| k.params.iter().any(|p| p.buffer() == Some(b));
        let used = |b: &&BufferId| kernels.iter().any(|k| takes(k, **b));
        let whole = kernels.len() == program.kernels.len();
        let handed_on = handed_on(program);
        let within = |b: &BufferId| {
            let buffer = &program.buffers[*b];
            let handed_on = handed_on.contains(b) || !declared.contains(&buffer.name);
            whole && handed_on && buffer.memory == Some(Memory::Gl)
        };
        let used = program.params.iter().filter(used).copied();
        let (workspace, caller) = used.partition(within);
        Interface { caller, workspace }
    }

    /// The beginning of each tensor in the workspace, in bytes, and the size of the workspace.
    ///
    /// # Errors
    /// Sizes beyond 64 bits.
    pub fn places(&self, program: &Program) -> Fallible<(Vec<Dim>, Dim)> {
        let (cx, unit) = (&program.arena, Dim::Const(self.unit(program)));
        let (mut starts, mut at) = (vec![], Dim::Const(0));
        for b in &self.workspace {
            starts.push(at);
            let bytes = bytes(program, *b)?;
            let rounded = cx.ceil_div(bytes, unit).and_then(|n| cx.mul(n, unit));
            at = rounded.and_then(|n| cx.add(at, n)).map_err(errors::layout)?;
        }
        Ok((starts, at))
    }

    /// The alignment of tensors in the workspace, in bytes. It is that of `cudaMalloc`, unless a
    /// tensor needs more.
    #[must_use]
    pub fn unit(&self, program: &Program) -> i64 {
        const OF_MALLOC: i64 = 256;
        self.workspace.iter().map(|b| program.buffers[*b].align).fold(OF_MALLOC, i64::max)
    }
}

/// The bytes from a buffer's first element to the end of its last one.
///
/// # Errors
/// Sizes beyond 64 bits.
pub fn bytes(program: &Program, buffer: BufferId) -> Fallible<Dim> {
    let (cx, buffer) = (&program.arena, &program.buffers[buffer]);
    // If an extent is 0, there are no elements, and the offset after the last one may be negative.
    let elements = cx.max(buffer.cosize, Dim::Const(0));
    elements
        .and_then(|n| cx.ceil_div(n, Dim::Const(storage(buffer.scalar).packed)))
        .and_then(|n| cx.mul(n, Dim::Const(storage_bits(buffer.scalar) / 8)))
        .map_err(errors::layout)
}

/// The memory layout of a tensor that the caller passes.
#[derive(Clone, Debug)]
pub enum Form {
    /// The extent and stride of each mode, in scalars.
    Modes(Vec<(Dim, Dim)>),
    /// The number of scalars, which are contiguous. One of the tensor's modes has several strides.
    Flat(Dim),
}

impl Form {
    /// The form of a tensor of the program.
    ///
    /// # Errors
    /// Sizes beyond 64 bits.
    pub fn of(program: &Program, buffer: BufferId) -> Fallible<Form> {
        let (buffer, cx) = (&program.buffers[buffer], &program.arena);
        let levels = &program.tensors[buffer.tensor].levels;
        let one = |mode: Layout<Dim>| match mode.coalesce_in(cx).ok()?.leaves() {
            [] => Some((Dim::Const(1), Dim::Const(0))),
            [(extent, stride)] => Some((*extent, *stride)),
            _ => None,
        };
        let modes: Option<Vec<_>> = levels.iter().flat_map(Layout::modes).map(one).collect();
        match modes {
            Some(modes) => Ok(Form::Modes(modes)),
            None => cx.max(buffer.cosize, Dim::Const(0)).map(Form::Flat).map_err(errors::layout),
        }
    }
}

/// The required alignment of a caller's tensor in bytes: the widest access of any kernel may begin
/// at its address.
#[must_use]
pub fn alignment(program: &Program, buffer: BufferId) -> i64 {
    program.buffers[buffer].align.max(MIN_ALIGN)
}

/// The tensors that kernels pass on to later kernels. The first kernel that uses such a tensor has
/// the whole tensor as an output and reads nothing of it; the last one reads it and does not write
/// it. The contents before the first launch and after the last one do not matter.
#[must_use]
pub fn handed_on(program: &Program) -> BTreeSet<BufferId> {
    let mut first: HashMap<BufferId, bool> = HashMap::new();
    let mut handed_on = BTreeSet::new();
    for kernel in &program.kernels {
        let (reads, writes) = uses(program, *kernel);
        let read_now = reads.iter().filter(|b| first.get(b) == Some(&true));
        handed_on.extend(read_now.copied());
        // A result to which the last kernel adds belongs to the caller.
        handed_on.retain(|b| !writes.contains(b));
        first_uses(program, *kernel, &mut first);
    }
    handed_on
}

/// The tensors that kernels write.
#[must_use]
pub fn written_buffers(program: &Program) -> BTreeSet<BufferId> {
    let outputs = program.kernels.iter().flat_map(|k| &program.specs[*k].outputs);
    outputs.map(|t| program.tensors[*t].buffer).collect()
}

/// The tensors that kernels write as a whole before they read them. Their contents before the first
/// launch do not matter.
#[must_use]
pub fn results(program: &Program) -> BTreeSet<BufferId> {
    let mut first = HashMap::new();
    program.kernels.iter().for_each(|kernel| first_uses(program, *kernel, &mut first));
    first.into_iter().filter_map(|(b, whole)| whole.then_some(b)).collect()
}

/// Records for each buffer whether the first kernel that uses it has the whole buffer as an output
/// and reads nothing of it.
fn first_uses(program: &Program, kernel: SpecId, first: &mut HashMap<BufferId, bool>) {
    let (reads, writes) = uses(program, kernel);
    for buffer in reads.union(&writes) {
        let tensor = program.buffers[*buffer].tensor;
        let whole = || program.specs[kernel].outputs.contains(&tensor);
        first.entry(*buffer).or_insert_with(|| !reads.contains(buffer) && whole());
    }
}

/// The buffers that a kernel reads, and those that it writes. An accumulated output counts as read.
fn uses(program: &Program, kernel: SpecId) -> (BTreeSet<BufferId>, BTreeSet<BufferId>) {
    let (mut reads, mut writes) = (BTreeSet::new(), BTreeSet::new());
    let leaves = program.leaves(kernel).into_iter().map(|(leaf, _)| leaf);
    for id in std::iter::once(kernel).chain(leaves) {
        let spec = &program.specs[id];
        let buffer = |t| program.tensors[t].buffer;
        reads.extend(spec.input_tensors().map(buffer));
        writes.extend(spec.outputs.iter().map(|t| buffer(*t)));
        let adds = spec.kind.reads_output();
        // A product with a body counts through its leaves.
        if adds && spec.body.is_none() {
            reads.extend(spec.outputs.iter().map(|t| buffer(*t)));
        }
    }
    let sources = reads.iter().filter_map(|b| Some(program.buffers[*b].gather?.source));
    let sources: Vec<BufferId> = sources.collect();
    reads.extend(sources);
    (reads, writes)
}
