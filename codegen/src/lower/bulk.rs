//! Lowers bulk copies and bulk accumulations (`cp.async.bulk`, `cp.reduce.async.bulk`) to inline
//! PTX. One instruction moves the whole operands, so it takes their first addresses or tensor maps
//! in place of the values of each thread.

use super::access::Values;
use super::state::{Lowering, Stored};
use crate::cpp::ast::{Expr, Stmt};
use crate::{Fallible, errors};
use carbyne_atoms::bulk::BulkCopy;
use carbyne_atoms::{Atom, OperandAccess};
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Swizzle;
use carbyne_ir::program::{MapId, TensorId};

impl Lowering<'_> {
    pub(super) fn bulk(&mut self, atom: &Atom, copy: BulkCopy) -> Fallible<Stmt> {
        let BulkCopy { source, target, bytes, boxed, bar, mask } = copy;
        let mut given = vec![];
        for operand in &atom.operands {
            let t = if operand.access == OperandAccess::Read { source } else { target };
            let register = match &self.p.tensors[t].map {
                Some(view) => self.map_address(view.map)?,
                None => self.first(t)?,
            };
            given.push((operand.name, register));
        }
        if let Some(bar) = bar {
            given.push(("bar", self.first(bar)?));
        }
        let mut at = boxed.map_or(vec![], |(_, at)| at).into_iter();
        let mut numbers = vec![];
        for number in &atom.numbers {
            let value = match number.name {
                "bytes" => Dim::Const(bytes),
                "mask" => mask.unwrap_or(Dim::Const(0)),
                // The other numbers are coordinates, in order.
                _ => at.next().unwrap_or(Dim::Const(0)),
            };
            numbers.push((number.name, value));
        }
        self.ptx(atom, &[], &numbers, given, false)
    }

    /// The register with the address of a tensor map.
    pub(super) fn map_address(&self, map: MapId) -> Fallible<(String, Expr)> {
        match self.maps.get(&map) {
            Some(name) => Ok(("l".to_owned(), Expr::name(name.clone()).address())),
            None => Err(errors::unprintable(
                "a tensor map is not a parameter of the kernel",
                "make the map from a tensor that the caller provides",
            )),
        }
    }

    /// The register with the address of a view's first element.
    fn first(&mut self, t: TensorId) -> Fallible<(String, Expr)> {
        let tensor = &self.p.tensors[t];
        let text = self.p.tensor_name(t);
        let Some(stored) = self.buffers.get(&tensor.buffer).cloned() else {
            return Err(errors::undeclared(&text));
        };
        // Bulk copies begin at a whole period of the swizzle, where the swizzle changes nothing.
        let stored = Stored { swizzle: Swizzle::none(), ..stored };
        self.address_register(&Values { stored, at: vec![tensor.offset], text }, false)
    }
}
