//! [`Want`] is a rewrite that the solver asks for if a module cannot be solved as it stands.
//! [`crate::emit::detours`] applies it.

use carbyne_ir::layout::Layout;
use carbyne_ir::program::SpecId;

/// A change of the module without which it is not solved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// A body for the spec that takes its operands through register tensors.
    ThroughRegisters(SpecId),
    /// A body for the Move that goes through a shared tensor.
    ThroughShared(SpecId),
    /// A copy of the operand before the spec, in the layout that the spec needs.
    Rearranged {
        /// Which.
        spec: SpecId,
        /// Its input.
        input: usize,
        /// That layout, where exchanges between lanes are cheaper than shared memory.
        by_lanes: Option<Layout>,
    },
    /// A body for the spec that has tensors of its own for operands that are parts of others.
    Own(SpecId),
    /// A copy of an input that is a part of a tensor, by way of all of the tensor in shared memory.
    OfShared {
        /// Which.
        spec: SpecId,
        /// Its input.
        input: usize,
    },
    /// A body for the Reduction whose result is spread as its input is, and goes from there to the
    /// output.
    Spread(SpecId),
    /// A register of every thread for an input of one element and no modes, which is broadcast.
    Single {
        /// Which.
        spec: SpecId,
        /// Its input.
        input: usize,
    },
    /// A body for the Move that broadcasts its input between registers.
    Broadcast(SpecId),
    /// A body for the `MatMul.set` that starts from zero.
    FromZero(SpecId),
    /// A body for the MatMul that sums in the accumulator's type, which is not that of the output.
    Converted(SpecId),
}

impl Want {
    /// Which spec asks, and for what of its operands: an input, its output, or the spec itself.
    pub(crate) fn asks(&self) -> (SpecId, Asked) {
        match self {
            Want::Rearranged { spec, input, .. }
            | Want::OfShared { spec, input }
            | Want::Single { spec, input } => (*spec, Asked::Input(*input)),
            Want::Spread(spec) | Want::Converted(spec) => (*spec, Asked::Output),
            Want::ThroughRegisters(spec)
            | Want::ThroughShared(spec)
            | Want::Own(spec)
            | Want::Broadcast(spec)
            | Want::FromZero(spec) => (*spec, Asked::Input(0)),
        }
    }
}

/// An operand that does not lie as a spec wants it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The input of that number.
    Input(usize),
    /// The output.
    Output,
}
