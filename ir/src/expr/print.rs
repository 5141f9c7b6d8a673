//! Prints symbolic expressions: `bid*64 + tid/8*2 + tid % 8`, `ceil_div(M, N)`, `min(M - i, 64)`.
//!
//! Operators have the precedences of C; division rounds down. Coefficients come last, so `x/8*8`
//! needs no parentheses. Invariant: equal expressions print alike in all arenas whose expressions
//! were created in the same order.

use super::{Dim, ExprArena, Node};

/// The precedence of the outermost operator.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Sum,
    Product,
    Atom,
}

impl ExprArena {
    /// The text of an expression.
    #[must_use]
    pub fn display(&self, dim: Dim) -> String {
        self.text(dim).0
    }

    fn text(&self, dim: Dim) -> (String, Level) {
        // The recursion is bounded: the arena limits the depth and the size of an expression.
        let id = match dim {
            Dim::Const(v) if v < 0 => return (v.to_string(), Level::Sum),
            Dim::Const(v) => return (v.to_string(), Level::Atom),
            Dim::Expr(id) => id,
        };
        let binary = |a: Dim, op: &str, b: Dim| {
            (
                format!("{}{op}{}", self.at(a, Level::Product), self.at(b, Level::Atom)),
                Level::Product,
            )
        };
        let call = |name: &str, a: Dim, b: Dim| {
            (format!("{name}({}, {})", self.display(a), self.display(b)), Level::Atom)
        };
        match self.node(id) {
            Node::Var(var) => (self.var_info(var).name, Level::Atom),
            Node::Mul(a, b) => binary(a, "*", b),
            Node::Div(a, b) => binary(a, "/", b),
            Node::Mod(a, b) => binary(a, " % ", b),
            Node::CeilDiv(a, b) => call("ceil_div", a, b),
            Node::Min(a, b) => call("min", a, b),
            Node::Max(a, b) => call("max", a, b),
            Node::Linear { terms, constant } => {
                let mut parts: Vec<(bool, String)> = terms
                    .iter()
                    .map(|&(id, coef)| {
                        let factor = coef.unsigned_abs();
                        let term = self.at(Dim::Expr(id), Level::Product);
                        let text = if factor == 1 { term } else { format!("{term}*{factor}") };
                        (coef < 0, text)
                    })
                    .collect();
                if constant != 0 {
                    parts.push((constant < 0, constant.unsigned_abs().to_string()));
                }
                let alone = parts.len() == 1;
                // A positive term comes first: a leading minus is harder to read.
                if let Some(at) = parts.iter().position(|(negative, _)| !negative) {
                    let first = parts.remove(at);
                    parts.insert(0, first);
                }
                let mut text = String::new();
                for (k, (negative, part)) in parts.iter().enumerate() {
                    text.push_str(match (k, negative) {
                        (0, false) => "",
                        (0, true) => "-",
                        (_, false) => " + ",
                        (_, true) => " - ",
                    });
                    text.push_str(part);
                }
                let positive = !text.starts_with('-');
                (text, if alone && positive { Level::Product } else { Level::Sum })
            }
        }
    }

    /// The text, in parentheses if its operator binds weaker than `level`.
    fn at(&self, dim: Dim, level: Level) -> String {
        let (text, own) = self.text(dim);
        if own < level { format!("({text})") } else { text }
    }
}
