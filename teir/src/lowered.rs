//! Holds the program to which an operation of TEIR (the Tiled Execution IR) was lowered. For each
//! tensor, it computes where a caller of the kernel finds the elements: the program may declare
//! other modes than the operation. It also declares tensors for both ways of lowering.

use crate::record::{Axis, Tensor};
use crate::violation::{Code, Place, Violation};
use carbyne_embed::build::{Builder, Num, Tensor as View};
use carbyne_embed::{Checked as Program, Diagnostics, Scalar};

/// The name of the kernel.
pub const NAME: &str = "teir";

/// A violation for what carbyne refuses.
pub(crate) fn refused(errors: &Diagnostics) -> Violation {
    let mut lines: Vec<String> = vec![];
    for line in errors.to_string().lines() {
        if !lines.iter().any(|said| said == line) {
            lines.push(line.to_owned());
        }
    }
    let found = lines.join("\n");
    let wanted = "a program that carbyne takes";
    let help = "make sizes smaller, or report the operation: it is a defect of carbyne-teir";
    Violation::new(Code::Refused, Place::Operation, found, wanted, help)
}

/// An operation as a program.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The program.
    pub program: Program,
    /// Parts of the schedule that the program does not pin, with the reasons.
    pub open: Vec<String>,
    pub(crate) modes: [Modes; 3],
}

/// Modes of a tensor: size and stride of each axis of each mode, the fastest first.
pub(crate) type Modes = Vec<Vec<(u64, u64)>>;

impl Lowered {
    /// The extents of a tensor as the program declares it.
    #[must_use]
    pub fn shape(&self, tensor: Tensor) -> Vec<u64> {
        let extent = |mode: &Vec<(u64, u64)>| mode.iter().map(|(size, _)| size).product();
        self.modes[tensor as usize].iter().map(extent).collect()
    }

    /// Where the elements of a tensor lie that a caller passes, in the row-major order of its
    /// shape.
    pub fn offsets(&self, tensor: Tensor) -> impl Iterator<Item = u64> {
        let shape = self.shape(tensor);
        let modes = &self.modes[tensor as usize];
        let n: u64 = shape.iter().product();
        (0..n).map(move |mut at| {
            let mut offset = 0;
            for (mode, extent) in modes.iter().zip(&shape).rev() {
                let mut within = at % extent;
                at /= extent;
                for (size, stride) in mode {
                    offset += within % size * stride;
                    within /= size;
                }
            }
            offset
        })
    }
}

/// The size and the stride of an axis. The stride of an axis of size 1 is never used.
pub(crate) fn entry(axis: &Axis, tensor: Tensor) -> (u64, u64) {
    (axis.size, if axis.size == 1 { 1 } else { axis.stride(tensor) })
}

/// Declares a tensor with these modes.
pub(crate) fn declare(
    builder: &mut Builder,
    tensor: Tensor,
    modes: &Modes,
    scalar: Scalar,
) -> View {
    let number = |n: &u64| Num::from(signed(*n));
    let entries = modes
        .iter()
        .map(|mode| mode.iter().map(|(size, stride)| (number(size), number(stride))).collect());
    builder.strided(tensor.as_str(), entries, scalar)
}

/// A size as carbyne has it. [`crate::tiles::admit`] refuses larger ones.
pub(crate) fn signed(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
