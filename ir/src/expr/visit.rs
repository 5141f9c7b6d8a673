//! Lists the variables of a symbolic expression, and substitutes expressions for them.

use super::{Dim, ExprArena, Node, VarId};
use crate::layout::LayoutError;
use std::collections::BTreeSet;

impl ExprArena {
    /// The variables that an expression depends on, in order of creation.
    #[must_use]
    pub fn vars_of(&self, dim: Dim) -> Vec<VarId> {
        let (mut vars, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut todo = vec![dim];
        while let Some(dim) = todo.pop() {
            let Dim::Expr(id) = dim else { continue };
            if !seen.insert(id) {
                continue;
            }
            match self.node(id) {
                Node::Var(var) => {
                    vars.insert(var);
                }
                node => super::arena::for_each_operand(&node, &mut |operand| todo.push(operand)),
            }
        }
        vars.into_iter().collect()
    }

    /// The expression with variables replaced by the results of `value`, simplified again.
    ///
    /// The caller guarantees that the values are within the ranges and divisors of the variables.
    ///
    /// # Errors
    /// The errors of the arithmetic: overflow, limits, a divisor that is not positive.
    pub fn substitute(
        &self,
        dim: Dim,
        value: &dyn Fn(VarId) -> Option<Dim>,
    ) -> Result<Dim, LayoutError> {
        // The recursion is bounded: the arena limits the depth and the size of an expression.
        let Dim::Expr(id) = dim else { return Ok(dim) };
        let put = |dim| self.substitute(dim, value);
        match self.node(id) {
            Node::Var(var) => Ok(value(var).unwrap_or(dim)),
            Node::Linear { terms, constant } => {
                terms.iter().try_fold(Dim::Const(constant), |total, &(term, coef)| {
                    self.add(total, self.mul(put(Dim::Expr(term))?, Dim::Const(coef))?)
                })
            }
            Node::Mul(a, b) => self.mul(put(a)?, put(b)?),
            Node::Div(a, b) => self.div(put(a)?, put(b)?),
            Node::Mod(a, b) => self.rem(put(a)?, put(b)?),
            Node::CeilDiv(a, b) => self.ceil_div(put(a)?, put(b)?),
            Node::Min(a, b) => self.min(put(a)?, put(b)?),
            Node::Max(a, b) => self.max(put(a)?, put(b)?),
        }
    }
}
