//! Evaluates a symbolic expression for given values of its variables, as at a launch or in the
//! simulator.

use super::{Dim, ExprArena, Node, VarId};
use crate::layout::LayoutError;
use crate::leaf::Leaf;

impl ExprArena {
    /// The value of `dim`. `value` supplies the values of the variables.
    ///
    /// # Errors
    /// [`LayoutError::Variable`] for a variable without a value, [`LayoutError::Divisor`],
    /// overflow.
    pub fn eval(&self, dim: Dim, value: &dyn Fn(VarId) -> Option<i64>) -> Result<i64, LayoutError> {
        // The recursion is bounded: the arena limits the depth and the size of an expression.
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
                // A wide sum, so that only a final value that does not fit is an error.
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
