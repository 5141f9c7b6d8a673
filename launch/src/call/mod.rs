//! Calls of a program's kernels on tensors that the caller has already: of PyTorch, CuPy, JAX, or
//! of anything else that DLPack describes.
//!
//! Reading order: [`DlTensor`] and [`View`] (a tensor), [`Call`] (the parameters of a program's
//! kernels), `bind` (sizes from shapes, and whether all that the program says of its tensors
//! holds), [`Plan`] (what is launched for tensors of such shapes).
//!
//! A [`Plan`] is made once, and kept by [`Cache`], for tensors of the same types, shapes and
//! strides. A further call only fills in addresses and numbers. [`Kernels`] are a call with the
//! GPUs or the simulator that execute it: front ends make their functions of it.
//!
//! Invariant: nothing is launched before all arguments are checked.

mod bind;
mod cache;
mod dlpack;
mod kernels;
mod plan;
mod simulator;
mod view;

pub use cache::Cache;
pub use carbyne_codegen::Element;
pub use dlpack::{DlDataType, DlDevice, DlTensor, NoTensor};
pub use kernels::{Kernels, RunsOn};
pub use plan::{Plan, Shape, Word};
pub use simulator::Simulator;
pub use view::{Device, View};

use crate::Fallible;
use carbyne_codegen::{CudaKernel, Form, Interface, open_sizes, results, written_buffers};
use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::program::{BufferId, Program};
use carbyne_ir::scalar::{Memory, Scalar};
use std::collections::BTreeSet;

/// An argument of a call.
#[derive(Copy, Clone, Debug)]
pub enum Given<'a> {
    /// A tensor.
    Tensor(View<'a>),
    /// A number: its bytes are filled in at the launch.
    Number,
    /// Nothing: the tensor is a result, and its shape is asked for.
    Nothing,
}

impl Given<'_> {
    /// The device of a tensor.
    #[must_use]
    pub fn device(&self) -> Option<Device> {
        match self {
            Given::Tensor(view) => Some(view.device),
            Given::Number | Given::Nothing => None,
        }
    }
}

/// Where a call is launched.
#[derive(Copy, Clone, Debug)]
pub struct Place {
    /// The device on which the tensors lie.
    pub device: Device,
    /// A stream of it; 0 is the legacy default stream.
    pub stream: u64,
}

/// A parameter of a call.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The tensor's name, without `%`.
    pub name: String,
    /// Type of its elements.
    pub scalar: Scalar,
    /// Whether it is a number and no tensor.
    pub is_number: bool,
    /// Whether a kernel writes it.
    pub is_written: bool,
    /// Whether all of it is written before it is read: a caller may leave it out, and gets a new
    /// one.
    pub is_result: bool,
    buffer: BufferId,
    form: Form,
    /// Bytes that its address is a multiple of.
    align: u64,
    /// Bytes from its first element to the end of its last one.
    bytes: Dim,
}

impl Parameter {
    /// Whether it is given as its elements side by side, in one mode: one of the tensor's own modes
    /// has several strides.
    #[must_use]
    pub fn is_flat(&self) -> bool {
        matches!(self.form, Form::Flat(_))
    }
}

/// The kernels of a program as one function of the caller's tensors.
pub struct Call {
    program: Program,
    kernels: Vec<CudaKernel>,
    interface: Interface,
    parameters: Vec<Parameter>,
}

impl Call {
    /// Takes all kernels of a decomposed program, as they are printed. `declared` are the tensors
    /// that the source text declares.
    ///
    /// # Errors
    /// Sizes beyond 64 bits.
    pub fn new(
        program: Program,
        kernels: Vec<CudaKernel>,
        declared: &BTreeSet<String>,
    ) -> Fallible<Call> {
        let interface = Interface::of(&program, &kernels.iter().collect::<Vec<_>>(), declared);
        let (results, written) = (results(&program), written_buffers(&program));
        let parameter = |buffer: &BufferId| {
            let b = &program.buffers[*buffer];
            Ok(Parameter {
                name: b.name.clone(),
                scalar: b.scalar,
                is_number: b.memory == Some(Memory::Pm),
                is_written: written.contains(buffer),
                is_result: results.contains(buffer),
                buffer: *buffer,
                form: Form::of(&program, *buffer)?,
                align: carbyne_codegen::alignment(&program, *buffer).cast_unsigned(),
                bytes: carbyne_codegen::bytes(&program, *buffer)?,
            })
        };
        let parameters = interface.caller.iter().map(parameter).collect::<Fallible<_>>()?;
        Ok(Call { program, kernels, interface, parameters })
    }

    /// Parameters in the order of the text.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The kernels in the order in which they are launched.
    #[must_use]
    pub fn kernels(&self) -> &[CudaKernel] {
        &self.kernels
    }

    /// The symbol of that name, a size that the program leaves open.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<VarId> {
        let named = |v: &&VarId| self.program.arena.var_info(**v).name == name;
        self.program.symbols.iter().find(named).copied()
    }

    /// The sizes that no tensor states by its shape or its strides, in the order of the text.
    ///
    /// # Errors
    /// Sizes beyond 64 bits.
    pub fn open_sizes(&self) -> Fallible<Vec<VarId>> {
        open_sizes(&self.program, &self.interface.caller)
    }

    /// The name of a symbol.
    #[must_use]
    pub fn name(&self, symbol: VarId) -> String {
        self.program.arena.var_info(symbol).name
    }
}
