//! Calls the kernels of a program as one function on tensors that the caller already has: tensors
//! of PyTorch, CuPy or JAX, or any others that DLPack (the standard C structure of a tensor)
//! describes.
//!
//! Reading order: [`DlTensor`] and [`View`] (a tensor), [`Call`] (the parameters of a program's
//! kernels), `bind` (solves for sizes, and checks the tensors against the program), [`Plan`] (here:
//! the prepared launches for tensors with certain shapes).
//!
//! [`Cache`] keeps recent plans by the types, shapes, strides and devices of tensors. A later call
//! with such tensors only checks and fills in addresses, and fills in numbers. [`Kernels`] combine
//! a call with the GPUs or the simulator that execute it; front ends build their functions on it.
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
    /// A number, whose bytes are filled in at the launch.
    Number,
    /// Nothing: the tensor is a result, and the plan returns its shape.
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

/// The device and stream of a launch.
#[derive(Copy, Clone, Debug)]
pub struct Place {
    /// The device of the tensors.
    pub device: Device,
    /// A stream of the device; 0 is the legacy default stream.
    pub stream: u64,
}

/// A parameter of a call.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// The tensor's name, without `%`.
    pub name: String,
    /// Type of its elements.
    pub scalar: Scalar,
    /// Whether it is a number instead of a tensor.
    pub is_number: bool,
    /// Whether a kernel writes it.
    pub is_written: bool,
    /// Whether kernels write all of it before they read it. A caller may then omit it and gets a
    /// new tensor.
    pub is_result: bool,
    buffer: BufferId,
    form: Form,
    /// The alignment of its address, in bytes.
    align: u64,
    /// The number of bytes from its first element to the end of its last one.
    bytes: Dim,
}

impl Parameter {
    /// Whether the argument is a contiguous tensor of one mode, because a mode of the program's
    /// tensor has several strides.
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
    /// Takes all kernels of a decomposed program, with their printed CUDA C++. `declared` are the
    /// tensors that the source text declares.
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

    /// The parameters in the order of the text.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// The kernels in the order in which they are launched.
    #[must_use]
    pub fn kernels(&self) -> &[CudaKernel] {
        &self.kernels
    }

    /// The symbol with this name: a size that the program leaves open.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<VarId> {
        let named = |v: &&VarId| self.program.arena.var_info(**v).name == name;
        self.program.symbols.iter().find(named).copied()
    }

    /// The sizes that no shape or stride of a tensor determines, in the order of the text.
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
