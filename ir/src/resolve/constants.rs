//! Evaluates the constants of `let`, as integers and as real numbers, and literals that are
//! computed from them.
//!
//! A `let` is an integer in extents, indices and loops, and a binary64 number in literals of specs.
//! If the two values differ, as for `1 / 2`, a module may use only one of them.

use super::scope::{Binding, Sigil};
use super::{Fallible, Resolver, fail};
use crate::ast::{self, BinOp, Expr, ExprKind};
use crate::diag::{Code, Diagnostic};
use crate::expr::Dim;
use crate::program::VarKind;
use crate::span::Span;
use crate::text::print_number;
use std::cell::Cell;

/// Constants whose values as an integer and as a real number differ.
#[derive(Default)]
pub(super) struct Constants {
    list: Vec<Constant>,
    /// Whether a definition of a constant is being evaluated. Its constants do not count as used
    /// yet.
    is_defining: Cell<bool>,
    /// Values of `let` constants that are quotients of symbols, rounded down.
    rounded: Vec<Dim>,
}

struct Constant {
    /// The value as an integer; `None` if the constant is a real number.
    integer: Option<Dim>,
    real: f64,
    /// The places where it was used as an integer and as a real number.
    used: [Cell<Option<Span>>; 2],
}

impl Constants {
    fn used(&self, i: usize, name: &str, span: Span, kind: usize) -> Fallible<&Constant> {
        let c = &self.list[i];
        if self.is_defining.get() {
            return Ok(c);
        }
        if let Some(other) = c.used[1 - kind].get() {
            let kinds = ["an integer", "a real number"];
            return fail(
                Diagnostic::new(
                    Code::NumberKind,
                    span,
                    format!("`{name}` is used as {} and as {}", kinds[0], kinds[1]),
                )
                .label(format!("as {}", kinds[kind]))
                .related(other, format!("as {}", kinds[1 - kind]))
                .help("define two constants with `let`: only the integer division rounds down"),
            );
        }
        c.used[kind].set(Some(span));
        Ok(c)
    }

    /// The value as an integer.
    pub(super) fn integer(&self, i: usize, name: &str, span: Span) -> Fallible<Dim> {
        match self.list[i].integer {
            Some(_) => Ok(self.used(i, name, span, 0)?.integer.unwrap_or(Dim::Const(0))),
            None => fail(
                Diagnostic::new(Code::NumberKind, span, format!("`{name}` is not an integer"))
                    .label("defined as a real number")
                    .help("define it with integers only, or use another constant"),
            ),
        }
    }
}

impl Resolver {
    /// Binds the name of a `let`.
    pub(super) fn bind_constant(&mut self, name: &ast::Name, value: &Expr) -> Fallible<()> {
        self.constants.is_defining.set(true);
        let integer = if self.is_integer(value) { self.expr(value).map(Some) } else { Ok(None) };
        let real = self.real(value);
        self.constants.is_defining.set(false);
        let integer = match integer {
            Ok(i) => i,
            Err(e) => {
                self.bind(Sigil::Index, name, Binding::Broken)?;
                return Err(e);
            }
        };
        let binding = match integer {
            // Symbols, loop variables and coordinates have no value as a real number.
            Some(d @ Dim::Expr(_)) => {
                if self.rounds(value).is_some() && !self.constants.rounded.contains(&d) {
                    self.constants.rounded.push(d);
                }
                Binding::Index(d)
            }
            _ => match real {
                Ok(real) => match integer {
                    Some(Dim::Const(n)) if n as f64 == real => Binding::Index(Dim::Const(n)),
                    _ => {
                        let used = [Cell::new(None), Cell::new(None)];
                        self.constants.list.push(Constant { integer, real, used });
                        Binding::Constant(self.constants.list.len() - 1)
                    }
                },
                Err(_) if integer.is_some() => Binding::Index(integer.unwrap_or(Dim::Const(0))),
                Err(e) => {
                    self.bind(Sigil::Index, name, Binding::Broken)?;
                    return Err(e);
                }
            },
        };
        self.bind(Sigil::Index, name, binding)
    }

    /// Whether the expression contains no real number.
    pub(super) fn is_integer(&self, e: &Expr) -> bool {
        let mut todo = vec![e];
        while let Some(e) = todo.pop() {
            match &e.kind {
                ExprKind::Int(_) => {}
                ExprKind::Name(name) => match self.scopes.get(Sigil::Index, name) {
                    Some(Binding::Constant(i)) if self.constants.list[i].integer.is_none() => {
                        return false;
                    }
                    None if matches!(name.as_str(), "inf" | "nan") => return false,
                    _ => {}
                },
                ExprKind::Real(_) | ExprKind::Sqrt(_) => return false,
                ExprKind::Neg(a) => todo.push(a),
                ExprKind::Bin(_, a, b) => todo.extend([&**a, &**b]),
            }
        }
        true
    }

    /// A computed literal.
    pub(super) fn computed(&self, e: &Expr) -> Fallible<ast::Number> {
        Ok(ast::Number { text: literal(self.real(e)?), span: e.span })
    }

    /// A number as an operand: a literal, or an index expression.
    pub(super) fn number(&self, e: &Expr) -> Fallible<ast::Operand> {
        match self.computed(e) {
            Ok(number) => Ok(ast::Operand::Number(number)),
            Err(_) if self.varies(e) && self.counts(e) => Ok(ast::Operand::Value(e.clone())),
            Err(refused) => Err(refused),
        }
    }

    /// Whether an expression contains a symbol, loop variable, coordinate or element.
    fn varies(&self, e: &Expr) -> bool {
        match &e.kind {
            ExprKind::Int(_) | ExprKind::Real(_) => false,
            ExprKind::Name(name) => {
                matches!(self.scopes.get(Sigil::Index, name), Some(Binding::Index(Dim::Expr(_))))
            }
            ExprKind::Neg(a) | ExprKind::Sqrt(a) => self.varies(a),
            ExprKind::Bin(_, a, b) => self.varies(a) || self.varies(b),
        }
    }

    /// Whether an expression is an integer expression, whose value is known when the kernel runs.
    fn counts(&self, e: &Expr) -> bool {
        self.expr(e).is_ok()
    }

    /// The value of an expression that contains symbols, but no other variables.
    pub(super) fn size(&self, e: &Expr) -> Option<Dim> {
        self.expr(e).ok().filter(|d| {
            let vars = self.p.vars_in(*d);
            vars.iter().all(|v| matches!(self.p.vars.get(v), Some(VarKind::Symbol)))
        })
    }

    /// A quotient of symbols that rounds down, if there is one.
    fn rounds<'e>(&self, e: &'e Expr) -> Option<&'e Expr> {
        match &e.kind {
            ExprKind::Int(_) | ExprKind::Real(_) | ExprKind::Sqrt(_) => None,
            ExprKind::Name(name) => match self.scopes.get(Sigil::Index, name) {
                Some(Binding::Index(d)) if self.constants.rounded.contains(&d) => Some(e),
                _ => None,
            },
            ExprKind::Neg(a) => self.rounds(a),
            ExprKind::Bin(op, a, b) => {
                let within = self.rounds(a).or_else(|| self.rounds(b));
                within.or_else(|| (*op == BinOp::Div && !self.divides(e, a, b)).then_some(e))
            }
        }
    }

    /// Whether a quotient of symbols and constants is exact. True for quotients with other
    /// variables.
    fn divides(&self, quotient: &Expr, a: &Expr, b: &Expr) -> bool {
        match (self.size(quotient), self.size(a), self.size(b)) {
            (Some(quotient), Some(a), Some(b)) => {
                let whole = self.p.arena.mul(quotient, b);
                whole.is_ok_and(|whole| self.is_equal(whole, a))
            }
            _ => true,
        }
    }

    /// Refuses a rounded quotient of symbols, such as `L / 3`, as an operand of floats. A quotient
    /// of constants would not be rounded.
    pub(super) fn unrounded(&self, e: &Expr) -> Fallible<()> {
        let Some(quotient) = self.rounds(e) else { return Ok(()) };
        let bin = |op, a: &Expr, b: &Expr| Expr::bin(op, a.clone(), b.clone());
        let x = Expr::name("x");
        let of_x = |op, a: &Expr| bin(op, &x, a);
        let help = match &quotient.kind {
            ExprKind::Bin(BinOp::Div, a, b) if a.kind == ExprKind::Int(1) => {
                let divided = print_number(&of_x(BinOp::Div, b));
                let product = print_number(&of_x(BinOp::Mul, quotient));
                format!("divide the tensor: write `%{divided}` in place of `%{product}`")
            }
            ExprKind::Bin(BinOp::Div, a, b) => {
                let rest = bin(BinOp::Mod, a, b);
                let exact = print_number(&bin(BinOp::Div, &of_x(BinOp::Mul, b), a));
                let rounded = print_number(&of_x(BinOp::Div, quotient));
                let down = print_number(&bin(BinOp::Div, &bin(BinOp::Sub, a, &rest), b));
                let rest = print_number(&rest);
                format!(
                    "multiply and divide the tensor, `%{exact}` in place of `%{rounded}`; or \
                     state `where {rest} == 0`; or round explicitly, `{down}`"
                )
            }
            _ => "multiply and divide the tensor, `%x * 3 / L` in place of `%x / (L / 3)`; or \
                  state `where L % 3 == 0`; or round explicitly, `(L - L % 3) / 3`"
                .to_owned(),
        };
        fail(
            Diagnostic::new(
                Code::NumberKind,
                quotient.span,
                "a quotient of symbols is an operand of floats".to_owned(),
            )
            .label("it rounds down, in contrast to a quotient of constants")
            .help(help),
        )
    }

    /// The value of a number as a literal, in binary64.
    pub(super) fn real(&self, e: &Expr) -> Fallible<f64> {
        let of = |text: &str, span: Span| match text.parse::<f64>() {
            Ok(v) => Ok(v),
            Err(_) => fail(
                Diagnostic::new(Code::Syntax, span, format!("`{text}` is not a number"))
                    .label("expected a decimal number, `inf` or `nan`")
                    .help("write a decimal number"),
            ),
        };
        Ok(match &e.kind {
            ExprKind::Int(v) => *v as f64,
            ExprKind::Real(text) => finite(e.span, of(text, e.span)?, &[])?,
            ExprKind::Name(name) => match self.scopes.get(Sigil::Index, name) {
                Some(Binding::Index(Dim::Const(v))) => v as f64,
                Some(Binding::Index(dim @ Dim::Expr(_))) => {
                    let of_data = self.of_elements(&[dim]);
                    if let Some(of_data) = of_data.strip_prefix("; ") {
                        let help = format!("combine it with a tensor directly: `%x * {name}`");
                        return fail(
                            Diagnostic::new(
                                Code::NumberKind,
                                e.span,
                                format!("`{name}` is not a constant"),
                            )
                            .label(of_data)
                            .help(help),
                        );
                    }
                    return fail(
                        Diagnostic::new(
                            Code::NumberKind,
                            e.span,
                            format!("`{name}` is not a constant"),
                        )
                        .label("a symbol, a loop or a coordinate")
                        .help(
                            "combine it with a tensor, `%x / N`; for coordinates use the elements \
                             of `.iota(axis)`; for other values known at launch declare a number, \
                             `%n:[].f32`",
                        ),
                    );
                }
                Some(Binding::Constant(i)) => self.constants.used(i, name, e.span, 1)?.real,
                Some(_) => return Err(Box::new(self.silent(e.span))),
                None if matches!(name.as_str(), "inf" | "nan") => of(name, e.span)?,
                None => return Err(self.unknown(Sigil::Index, name, e.span)),
            },
            ExprKind::Neg(a) => -self.real(a)?,
            ExprKind::Sqrt(a) => {
                let a = self.real(a)?;
                finite(e.span, a.sqrt(), &[a])?
            }
            ExprKind::Bin(op, a, b) => {
                let (a, b) = (self.real(a)?, self.real(b)?);
                let v = match op {
                    BinOp::Add => a + b,
                    BinOp::Sub => a - b,
                    BinOp::Mul => a * b,
                    BinOp::Div => a / b,
                    BinOp::Mod => a - b * (a / b).floor(),
                    BinOp::Min => a.min(b),
                    BinOp::Max => a.max(b),
                    BinOp::CeilDiv => (a / b).ceil(),
                };
                finite(e.span, v, &[a, b])?
            }
        })
    }
}

/// Refuses infinite or NaN results from finite numbers, which are mistakes such as a division by 0.
fn finite(span: Span, v: f64, of: &[f64]) -> Fallible<f64> {
    let meant = |x: &f64| if v.is_nan() { x.is_nan() } else { !x.is_finite() };
    if v.is_finite() || of.iter().any(meant) {
        return Ok(v);
    }
    let what = if v.is_nan() { "not a number" } else { "too large for binary64" };
    fail(
        Diagnostic::new(Code::NumberKind, span, format!("the constant is {what}"))
            .label(format!("gives {}", literal(v)))
            .help("correct it, or write `inf`, `-inf` or `nan` explicitly"),
    )
}

/// A number as a literal that parses to the same value.
pub(crate) fn literal(v: f64) -> String {
    let whole = v.fract() == 0.0 && v.abs() < 1e15 && !(v == 0.0 && v.is_sign_negative());
    match v {
        _ if v.is_nan() => "nan".to_owned(),
        _ if whole => format!("{}", v as i64),
        _ => format!("{v:?}"),
    }
}
