//! Executes a call on the simulator, on tensors in memory of the CPU. The elements of the tensors
//! are copied to arrays before the run, except those of results. If the run succeeds, written
//! tensors are copied back.
#![allow(unsafe_code, reason = "memory of other libraries")]

use super::{Call, Device, Given, Parameter, View, Word};
use crate::{Fallible, refused};
use carbyne_atoms::AtomTable;
use carbyne_ir::diag::Code;
use carbyne_ir::scalar::Scalar;
use carbyne_simulate::{Array, ArrayError, Options, simulate};
use std::collections::BTreeMap;

/// Maximum number of elements of a tensor for the simulator.
const MAX_ELEMENTS: i64 = 1 << 28;

/// The simulator with an atom table.
pub struct Simulator {
    table: AtomTable,
}

impl Simulator {
    pub(super) fn new(table: AtomTable) -> Simulator {
        Simulator { table }
    }

    /// Executes the program on tensors that fit it, and writes the results to them.
    ///
    /// # Safety
    /// Tensors lie at their addresses, and nothing else accesses them until it returns.
    pub(super) unsafe fn run(
        &self,
        call: &Call,
        given: &[Given<'_>],
        words: &[Word],
        symbols: BTreeMap<String, i64>,
    ) -> Fallible<()> {
        let parameters = call.parameters();
        let mut arrays = BTreeMap::new();
        for ((parameter, given), word) in parameters.iter().zip(given).zip(words) {
            let (name, scalar) = (&parameter.name, parameter.scalar);
            let array = match given {
                Given::Nothing => continue,
                Given::Number => Array { scalar, shape: vec![], values: vec![*word] },
                Given::Tensor(view) => {
                    takes(parameter, view)?;
                    // Results have no contents yet.
                    if parameter.is_result {
                        continue;
                    }
                    // SAFETY: the caller guarantees it.
                    let read = unsafe { view.read(scalar) };
                    read.map_err(|e| {
                        let text = format!("`%{name}` cannot be read: {e}");
                        refused(Code::BadInput, text, "correct its elements")
                    })?
                }
            };
            arrays.insert(name.clone(), array);
        }
        let options = Options { arrays, symbols, ..Options::default() };
        let report = simulate(&call.program, &self.table, &options)?;
        for (parameter, given) in parameters.iter().zip(given).filter(|(p, _)| p.is_written) {
            if let Given::Tensor(view) = given
                && let Some(array) = report.outputs.get(&parameter.name)
            {
                // SAFETY: the caller guarantees it; the tensor may be written, and shares no memory
                // with another one.
                unsafe { view.write(&array) };
            }
        }
        Ok(())
    }
}

/// Refuses a tensor that the simulator does not support.
fn takes(parameter: &Parameter, view: &View<'_>) -> Fallible<()> {
    let name = &parameter.name;
    let (what, help) = if view.device.kind != Device::CPU {
        let what = format!("`%{name}` lies on {}, but the simulator runs on the CPU", view.device);
        (what, "move the tensors to the CPU")
    } else if parameter.scalar.bits() < 8 || parameter.is_flat() {
        let what = format!(
            "`%{name}` is packed or has a mode of several strides, which the simulator does not \
             support in calls"
        );
        (what, "simulate the program by `carbyne simulate`, with elements by coordinates")
    } else if view.elements() > MAX_ELEMENTS {
        let what = format!("`%{name}` has {} elements", view.elements());
        (what, "pass tensors of at most 2^28 elements to the simulator")
    } else {
        return Ok(());
    };
    Err(refused(Code::BadInput, what, help))
}

impl View<'_> {
    /// Reads the elements of a tensor in memory of the CPU. Its [`Element`](super::Element) must
    /// hold the scalar type.
    ///
    /// # Safety
    /// All elements lie where the view says.
    ///
    /// # Errors
    /// An invalid value of a `bool` or of an integer of less than 8 bits.
    pub unsafe fn read(&self, scalar: Scalar) -> Result<Array, ArrayError> {
        let width = self.element.bytes() as usize;
        let mut data = vec![0; width * self.elements() as usize];
        for (to, from) in data.chunks_exact_mut(width).zip(self.addresses()) {
            // SAFETY: the caller guarantees that an element lies there.
            unsafe { std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), width) };
        }
        Array::from_bytes(scalar, &self.extents(), &data)
    }

    /// Writes the elements of an array to a tensor in memory of the CPU. The array has the extents
    /// and the type of the view.
    ///
    /// # Safety
    /// All elements lie where the view says, and may be written.
    pub unsafe fn write(&self, array: &Array) {
        let width = self.element.bytes() as usize;
        for (from, to) in array.to_bytes().chunks_exact(width).zip(self.addresses()) {
            // SAFETY: the caller guarantees that an element lies there.
            unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to, width) };
        }
    }

    /// The extents in the type that arrays use.
    #[must_use]
    pub fn extents(&self) -> Vec<u64> {
        self.shape.iter().map(|n| n.cast_unsigned()).collect()
    }

    /// The addresses of all elements, the last mode the fastest.
    fn addresses(&self) -> impl Iterator<Item = *mut u8> {
        let (strides, width) = (self.strides(), self.element.bytes());
        (0..self.elements()).map(move |i| {
            let (mut rest, mut at) = (i, 0i64);
            for (extent, stride) in self.shape.iter().zip(&strides).rev() {
                at = at.wrapping_add((rest % extent).wrapping_mul(*stride));
                rest /= extent;
            }
            let bytes = at.cast_unsigned().wrapping_mul(width);
            std::ptr::with_exposed_provenance_mut(self.address.wrapping_add(bytes) as usize)
        })
    }
}
