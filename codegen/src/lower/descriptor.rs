//! Operands that an instruction finds through a matrix descriptor.
//!
//! The fields are those that the atom table derives from the view. The start address is that before
//! swizzling: the hardware swizzles what it computes from it.

use super::Lowering;
use super::kernel::Helper;
use super::storage::Stored;
use crate::cpp::ast::Expr;
use crate::{Fallible, errors};
use carbyne_atoms::{AtomOperand, Descriptor, descriptor};
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Swizzle;
use carbyne_ir::program::TensorId;

/// A tile in shared memory.
#[derive(Clone, Debug)]
pub(super) struct Described {
    /// Without its swizzle.
    stored: Stored,
    /// Where the tile begins, in scalars of the buffer.
    at: Dim,
    pub(super) descriptor: Descriptor,
}

impl Lowering<'_> {
    pub(super) fn described(&self, t: TensorId, operand: &AtomOperand) -> Fallible<Described> {
        let tensor = &self.p.tensors[t];
        let (stored, text) = self.storage_of(t)?;
        let descriptor = descriptor::of_operand(self.p, t, operand)
            .map_err(|e| errors::unprintable(format!("{text} has no descriptor: {e}"), e.help()))?;
        let stored = Stored { swizzle: Swizzle::none(), ..stored };
        Ok(Described { stored, at: tensor.offset, descriptor })
    }

    /// `matrix_descriptor(&a[64 * k], 16, 1024, 1)`
    pub(super) fn descriptor_of(&mut self, d: &Described) -> Fallible<Expr> {
        self.helpers.extend([Helper::SharedAddress, Helper::MatrixDescriptor]);
        let start = self.address(&d.stored, d.at)?;
        let Descriptor { leading, stride, swizzle, .. } = d.descriptor;
        let mode = swizzle.code() as i64;
        let args = [start, Expr::Int(leading), Expr::Int(stride), Expr::Int(mode)];
        Ok(Expr::call("matrix_descriptor", args))
    }
}
