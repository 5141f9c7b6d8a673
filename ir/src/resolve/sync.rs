//! Resolves synchronization statements, such as `mbarrier.wait(%full[s], k % 2)`. Their operands
//! must be those that the table in `ast/sync.rs` lists for the operation (V0228).

use super::{Fallible, Resolver, fail};
use crate::ast::{SyncArg, SyncNumber, SyncOp, SyncTensor};
use crate::diag::{Code, Diagnostic};
use crate::expr::Dim;
use crate::program::Sync;
use crate::span::Span;

impl Resolver {
    pub(super) fn sync(&mut self, op: SyncOp, args: &[SyncArg], span: Span) -> Fallible<Sync> {
        let signature = op.signature();
        let wrong = |label: String| {
            fail(
                Diagnostic::new(
                    Code::SyncOperands,
                    span,
                    format!("the operands do not fit `{op}`"),
                )
                .label(label)
                .help(format!("write `{}`", op.usage())),
            )
        };
        let mut after = None;
        for arg in args {
            match arg {
                SyncArg::After(_) if !op.takes_after() => {
                    return wrong(format!("`{op}` takes no `after=`"));
                }
                SyncArg::After(_) if after.is_some() => {
                    return wrong("`after=` is given twice".to_owned());
                }
                SyncArg::After(view) => after = Some(self.operand(view)?),
                SyncArg::View(_) | SyncArg::Number(_) => {}
            }
        }
        let given: Vec<&SyncArg> =
            args.iter().filter(|arg| !matches!(arg, SyncArg::After(_))).collect();
        let mut rest = given.iter().copied();
        let tensor = match (signature.tensor, given.first().copied()) {
            (SyncTensor::None, _) => None,
            (_, Some(SyncArg::View(view))) => {
                rest.next();
                Some(self.operand(view)?)
            }
            (SyncTensor::Mbarrier | SyncTensor::Mbarriers, _) => {
                return wrong("expected an mbarrier as first operand".to_owned());
            }
            (SyncTensor::TensorMap, _) => return wrong("expected a tensor map".to_owned()),
        };
        let number = match (signature.number, rest.next()) {
            (SyncNumber::None, None) => None,
            (SyncNumber::OrOne(_), None) => Some(Dim::Const(1)),
            (SyncNumber::Any(_) | SyncNumber::OrOne(_), Some(SyncArg::Number(e))) => {
                Some(self.expr(e)?)
            }
            (SyncNumber::Constant(what), Some(SyncArg::Number(e))) => {
                Some(Dim::Const(self.constant(e, &format!("the number of {what}"))?))
            }
            (SyncNumber::Any(what) | SyncNumber::Constant(what), None) => {
                return wrong(format!("`{what}` is missing"));
            }
            (_, Some(SyncArg::View(_) | SyncArg::After(_))) => {
                return wrong("found a tensor in place of a number".to_owned());
            }
            (SyncNumber::None, Some(SyncArg::Number(_))) => {
                return wrong("found an unexpected number".to_owned());
            }
        };
        if rest.next().is_some() {
            return wrong(format!("too many operands: {}", given.len()));
        }
        if let Some(n) = number
            && self.p.arena.range(n).1.is_some_and(|most| most < 0)
        {
            return wrong(format!("`{}` is negative", self.p.arena.display(n)));
        }
        if let Some(t) = after {
            self.read.insert(self.p.tensors[t].buffer);
        }
        Ok(Sync { op, tensor, number, after })
    }
}
