//! Calls that the simulator executes, on tensors of the CPU.

use carbyne_embed::{Array, AtomTable, Inputs, Options, Program};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::scalar::Scalar;
use carbyne_launch::call::{Device, Given, Parameter, View, Word};
use std::collections::BTreeMap;

/// A program and the table of its instructions.
pub(crate) struct Simulator {
    pub(crate) program: Program,
    pub(crate) table: AtomTable,
}

impl Simulator {
    /// Executes the program on tensors that fit it, and writes results into them.
    pub(crate) fn run(
        &self,
        parameters: &[Parameter],
        given: &[Given<'_>],
        words: &[Word],
        symbols: BTreeMap<String, i64>,
    ) -> Result<(), Vec<Diagnostic>> {
        let mut arrays = BTreeMap::new();
        for ((parameter, given), word) in parameters.iter().zip(given).zip(words) {
            let scalar = parameter.scalar;
            let array = match given {
                Given::Nothing => continue,
                Given::Number => Array { scalar, shape: vec![], values: vec![*word] },
                Given::Tensor(view) => {
                    simulated(parameter, view)?;
                    // Results hold nothing yet.
                    if parameter.is_result {
                        continue;
                    }
                    read(scalar, view)
                }
            };
            arrays.insert(parameter.name.clone(), array);
        }
        let options = Options { arrays, symbols, inputs: Inputs::Seed(0), ..Options::default() };
        let report = carbyne_simulate::simulate(&self.program, &self.table, &options);
        let report = report.map_err(|e| vec![*e])?;
        for (parameter, given) in parameters.iter().zip(given) {
            let Given::Tensor(view) = given else { continue };
            if parameter.is_written
                && let Some(array) = report.outputs.get(&parameter.name)
            {
                write(&array.values, view);
            }
        }
        Ok(())
    }
}

/// That the simulator takes a tensor.
fn simulated(parameter: &Parameter, view: &View<'_>) -> Result<(), Vec<Diagnostic>> {
    let name = &parameter.name;
    let (what, help) = if view.device.kind != Device::CPU {
        let what = format!("`%{name}` lies on {}, and the simulator runs on the CPU", view.device);
        (what, "move the tensors to the CPU")
    } else if parameter.scalar.bits() < 8 || parameter.is_flat() {
        let what = format!(
            "`%{name}`: the simulator takes no tensor that is packed, or whose mode has several strides"
        );
        (what, "give its elements by coordinates to `decomposed.simulate`")
    } else {
        return Ok(());
    };
    Err(vec![Diagnostic::new(Code::BadInput, Default::default(), what).help(help)])
}

/// The addresses of elements, the last mode the fastest.
fn addresses(view: &View<'_>) -> impl Iterator<Item = usize> {
    let (shape, strides, width) = (view.shape.to_vec(), view.strides(), view.element.bytes());
    let begin = view.address;
    (0..view.elements()).map(move |i| {
        let (mut rest, mut at) = (i, 0);
        for (extent, stride) in shape.iter().zip(&strides).rev() {
            at += rest % extent * stride;
            rest /= extent;
        }
        begin.wrapping_add(at.cast_unsigned().wrapping_mul(width)) as usize
    })
}

#[expect(unsafe_code, reason = "tensors of other libraries")]
fn read(scalar: Scalar, view: &View<'_>) -> Array {
    let width = view.element.bytes().min(8) as usize;
    let one = |address: usize| {
        let mut bytes = [0; 8];
        let from = std::ptr::with_exposed_provenance::<u8>(address);
        // SAFETY: the caller keeps the tensor's elements while the call lasts, each of `width` bytes.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), width) };
        let word = u64::from_le_bytes(bytes);
        if scalar == Scalar::Bool { u64::from(word != 0) } else { word }
    };
    let shape = view.shape.iter().map(|n| n.cast_unsigned()).collect();
    Array { scalar, shape, values: addresses(view).map(one).collect() }
}

#[expect(unsafe_code, reason = "tensors of other libraries")]
fn write(values: &[Word], view: &View<'_>) {
    let width = view.element.bytes().min(8) as usize;
    for (value, address) in values.iter().zip(addresses(view)) {
        let to = std::ptr::with_exposed_provenance_mut::<u8>(address);
        // SAFETY: as above; the tensor may be written, and shares no memory with another one.
        unsafe { std::ptr::copy_nonoverlapping(value.to_le_bytes().as_ptr(), to, width) };
    }
}
