//! The value of an expression, given those of its variables.

use super::{Dim, ExprArena, Node, VarId};
use crate::layout::LayoutError;
use crate::leaf::Leaf;

impl ExprArena {
    /// The value of `dim` where `value` gives that of each variable.
    ///
    /// # Errors
    /// [`LayoutError::Variable`] for a variable without a value, [`LayoutError::Divisor`],
    /// overflow.
    pub fn eval(&self, dim: Dim, value: &dyn Fn(VarId) -> Option<i64>) -> Result<i64, LayoutError> {
        // Recursion ends: the arena bounds the depth and the size of an expression.
        let id = match dim {
            Dim::Const(v) => return Ok(v),
            Dim::Expr(id) => id,
        };
        let eval = |dim| self.eval(dim, value);
        match self.node(id) {
            Node::Var(var) => value(var).ok_or_else(|| LayoutError::Variable {
                name: self.var_info(var).name,
                reason: "has no value",
            }),
            Node::Linear { terms, constant } => {
                // Wide, so that a sum is an error only if its value does not fit.
                let overflow = LayoutError::Overflow { what: "a sum" };
                let mut total = i128::from(constant);
                for &(term, coef) in terms.iter() {
                    let term = i128::from(eval(Dim::Expr(term))?) * i128::from(coef);
                    total = total.checked_add(term).ok_or_else(|| overflow.clone())?;
                }
                i64::try_from(total).map_err(|_| overflow)
            }
            Node::Mul(a, b) => i64::mul(&(), eval(a)?, eval(b)?),
            Node::Div(a, b) => i64::div(&(), eval(a)?, eval(b)?),
            Node::Mod(a, b) => i64::rem(&(), eval(a)?, eval(b)?),
            Node::CeilDiv(a, b) => i64::ceil_div(&(), eval(a)?, eval(b)?),
            Node::Min(a, b) => <i64 as Leaf>::min(&(), eval(a)?, eval(b)?),
            Node::Max(a, b) => <i64 as Leaf>::max(&(), eval(a)?, eval(b)?),
        }
    }
}
