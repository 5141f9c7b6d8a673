//! Allocates the tensors of a program in GPU memory, and loads its kernels with their launch
//! arguments. Guard bytes after each tensor detect kernels that write beyond its end.

use super::Built;
use carbyne_codegen::{CudaKernel, Param};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{BufferId, SpecId};
use carbyne_launch::{
    Arguments, Buffer, Fallible, Function, Gpu, Launch, MapValues, Module, Sequence, TensorMap,
};
use carbyne_simulate::device::{POISON, Trial};
use std::collections::BTreeMap;

/// Bytes after every tensor that no kernel may write.
const GUARD: usize = 256;

/// GPU memory of the tensors of one program, each with guard bytes at its end.
#[derive(Default)]
pub(in crate::commands) struct Memory {
    buffers: BTreeMap<BufferId, Buffer>,
}

impl Memory {
    /// The memory of a tensor, if it is allocated here.
    pub(in crate::commands) fn buffer(&self, buffer: BufferId) -> Option<&Buffer> {
        self.buffers.get(&buffer)
    }
}

/// The number of blocks of a launch.
pub(in crate::commands) fn blocks_of(
    trial: &Trial<'_>,
    kernel: &CudaKernel,
    spec: SpecId,
) -> Fallible<i64> {
    trial.n_blocks(spec).ok_or_else(|| {
        let text = format!("the number of blocks of the kernel `{}` is unknown", kernel.name);
        let d = Diagnostic::new(Code::Symbolic, Default::default(), text);
        Box::new(d.help("give every symbol a value with `--sym NAME=VALUE`"))
    })
}

/// The content of a buffer, if its guard bytes are unchanged. `name` is the name of its tensor.
pub(in crate::commands) fn unguarded(buffer: &Buffer, who: &str, name: &str) -> Fallible<Vec<u8>> {
    let mut bytes = vec![0; buffer.len()];
    buffer.read(&mut bytes)?;
    let guard = bytes.split_off(bytes.len().saturating_sub(GUARD));
    match guard.iter().all(|b| *b == POISON) {
        true => Ok(bytes),
        false => {
            let text = format!("{who} writes beyond the end of `%{name}`");
            let d = Diagnostic::new(Code::SimOutOfBounds, Default::default(), text);
            Err(Box::new(d.help("run `carbyne simulate`, which names the access")))
        }
    }
}

/// The addresses of tensors that the caller has allocated, by name.
pub(in crate::commands) type Given<'a> = &'a dyn Fn(&str) -> Option<u64>;

/// Kernels of a program on the GPU, with their launch arguments.
pub(in crate::commands) struct Loaded {
    modules: Vec<Module>,
    calls: Vec<(Launch, Arguments)>,
}

impl Loaded {
    /// Loads the kernels. Allocates the tensors that are not `given`, with the initial data of the
    /// trial.
    pub(in crate::commands) fn new(
        gpu: &Gpu,
        built: &Built,
        trial: &Trial<'_>,
        (given, memory): (Given<'_>, &mut Memory),
    ) -> Fallible<Loaded> {
        let (mut modules, mut calls) = (vec![], vec![]);
        for compiled in &built.kernels {
            let kernel = &compiled.kernel;
            let mut addresses = BTreeMap::new();
            for param in &kernel.params {
                let buffer = match param {
                    Param::Pointer { buffer, .. } | Param::TensorMap { buffer, .. } => *buffer,
                    Param::Scalar { .. } | Param::Symbol { .. } => continue,
                };
                if let Some(at) = given(&built.program.buffers[buffer].name) {
                    addresses.insert(buffer, at);
                    continue;
                }
                if let (None, Some(bytes)) = (memory.buffers.get(&buffer), trial.image(buffer)) {
                    memory.buffers.insert(buffer, guarded(gpu, &bytes)?);
                }
                if let Some(own) = memory.buffers.get(&buffer) {
                    addresses.insert(buffer, own.address());
                }
            }
            let arguments = Arguments::for_kernel(
                kernel,
                &built.program.arena,
                |b| addresses.get(&b).copied(),
                |b| trial.image(b),
                |v| trial.symbol(v),
                |map: &MapValues| TensorMap::encode(map).map(|map| map.words()),
            )?;
            let launch = Launch::of_kernel(kernel, blocks_of(trial, kernel, compiled.spec)?)?;
            modules.push(gpu.load(&compiled.binary)?);
            calls.push((launch, arguments));
        }
        Ok(Loaded { modules, calls })
    }

    /// The launch of each kernel.
    pub(in crate::commands) fn calls(&self) -> &[(Launch, Arguments)] {
        &self.calls
    }

    /// The kernels as functions.
    pub(in crate::commands) fn functions(&self, built: &Built) -> Fallible<Vec<Function<'_>>> {
        let all = self.modules.iter().zip(&self.calls).zip(&built.kernels);
        all.map(|((module, (launch, _)), c)| module.function(&c.kernel, *launch)).collect()
    }

    /// All kernels in order.
    pub(in crate::commands) fn sequence<'f>(
        &self,
        functions: &'f [Function<'f>],
    ) -> Fallible<Sequence<'f>> {
        let mut all = functions.iter().zip(&self.calls);
        let Some((first, (launch, arguments))) = all.next() else {
            let d = Diagnostic::new(Code::LaunchFailed, Default::default(), "there are no kernels");
            return Err(Box::new(d.help("add a spec at the top level of the file")));
        };
        let sequence = Sequence::new(first, *launch, arguments)?;
        all.try_fold(sequence, |sequence, (function, (launch, arguments))| {
            sequence.then(function, *launch, arguments)
        })
    }
}

/// Allocates GPU memory with these bytes, followed by guard bytes.
pub(in crate::commands) fn guarded(gpu: &Gpu, bytes: &[u8]) -> Fallible<Buffer> {
    let mut buffer = gpu.allocate(bytes.len() + GUARD)?;
    refill(&mut buffer, bytes)?;
    Ok(buffer)
}

/// Writes these bytes, and guard bytes after them.
pub(in crate::commands) fn refill(buffer: &mut Buffer, bytes: &[u8]) -> Fallible<()> {
    let mut all = Vec::with_capacity(bytes.len() + GUARD);
    all.extend_from_slice(bytes);
    all.resize(bytes.len() + GUARD, POISON);
    buffer.write(&all)
}
