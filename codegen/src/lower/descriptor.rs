//! Lowers operands of `wgmma` in shared memory: computes the matrix descriptor by which the
//! instruction finds the tile.
//!
//! The atom table derives the fields from the view. The start address is the address before
//! swizzling, since the hardware swizzles the addresses that it computes from it.

use super::helper::Helper;
use super::state::{Lowering, Stored};
use crate::cpp::ast::{Binary, Expr};
use crate::{Fallible, errors};
use carbyne_atoms::{AtomOperand, Descriptor, descriptor};
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Swizzle;
use carbyne_ir::program::TensorId;
use carbyne_ir::scalar::Scalar;

/// The unit of the start address in bytes (PTX ISA, Matrix Descriptor).
const UNIT: i64 = 16;

/// A tile in shared memory.
#[derive(Clone, Debug)]
pub(super) struct Described {
    /// The buffer without its swizzle.
    stored: Stored,
    /// The beginning of the tile in scalars of the buffer, and their type.
    at: Dim,
    scalar: Scalar,
    pub(super) descriptor: Descriptor,
}

impl Lowering<'_> {
    pub(super) fn described(&self, t: TensorId, operand: &AtomOperand) -> Fallible<Described> {
        let tensor = &self.p.tensors[t];
        let (stored, text) = self.storage_of(t)?;
        let descriptor = descriptor::of_operand(self.p, t, operand)
            .map_err(|e| errors::unprintable(format!("{text} has no descriptor: {e}"), e.help()))?;
        let stored = Stored { swizzle: Swizzle::none(), ..stored };
        let scalar = self.p.scalar_of(t);
        Ok(Described { stored, at: tensor.offset, scalar, descriptor })
    }

    /// `matrix_descriptor(shared_address(a, 64 * k), 16, 1024, 1)`, with `+ 2 * i` at the end if
    /// `i` is the variable of an unrolled loop.
    pub(super) fn descriptor_of(&mut self, d: &Described) -> Fallible<Expr> {
        self.helpers.insert(Helper::MatrixDescriptor);
        // Unrolled loops add a constant, in units of the lowest field.
        let units = |d: Dim, bits: i64| {
            let all = self.p.arena.mul(d, Dim::Const(bits)).ok()?;
            let whole = self.p.arena.divisor(all) % (8 * UNIT) == 0;
            self.p.arena.div(all, Dim::Const(8 * UNIT)).ok().filter(|_| whole)
        };
        let parts = self.written_out(d.at);
        let parts = parts.and_then(|(part, rest)| Some((units(part, d.scalar.bits())?, rest)));
        let start = self.shared_address(&d.stored, parts.map_or(d.at, |(_, rest)| rest))?;
        let Descriptor { leading, stride, swizzle, .. } = d.descriptor;
        let mode = swizzle.code() as i64;
        let args = [start, Expr::Int(leading), Expr::Int(stride), Expr::Int(mode)];
        let first = Expr::call("matrix_descriptor", args);
        match parts {
            None => Ok(first),
            Some((more, _)) => Ok(first.binary(Binary::Add, self.index(more)?)),
        }
    }
}
