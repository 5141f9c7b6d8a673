//! Evaluates the integer expressions, tuples and layouts of a text to symbolic numbers ([`Dim`]),
//! and makes the errors for arithmetic and layouts without a result.

use super::scope::{Binding, Sigil};
use super::{Fallible, Resolver, fail};
use crate::ast::{self, Expr, ExprKind, LayoutExpr, TupleExpr};
use crate::diag::{Code, Diagnostic};
use crate::expr::Dim;
use crate::layout::{Layout, LayoutError};
use crate::leaf::Leaf;
use crate::span::Span;
use crate::tuple::IntTuple;

/// The error for arithmetic without a result.
pub(super) fn overflow(span: Span, e: &LayoutError) -> Box<Diagnostic> {
    Box::new(match e {
        LayoutError::Overflow { .. } => {
            Diagnostic::new(Code::Overflow, span, "the result does not fit 64 bits")
                .label("integers go from -9223372036854775808 to 9223372036854775807")
                .help("choose smaller numbers")
        }
        _ => {
            let mut d = Diagnostic::new(Code::Overflow, span, e.to_string());
            d.help = e.help();
            d
        }
    })
}

/// The error for a refusal by the layout algebra.
pub(super) fn refused(span: Span, e: &LayoutError) -> Box<Diagnostic> {
    let mut d = Diagnostic::new(Code::LayoutRefused, span, e.to_string());
    if e.code() != d.code.as_str() {
        d = d.note(format!("`carbyne explain {}` says more about this error", e.code()));
    }
    d.help = e.help();
    Box::new(d)
}

/// The error for a real number where an integer is expected.
fn no_integer(span: Span, text: &str) -> Box<Diagnostic> {
    let message = format!("expected an integer, found `{text}`");
    Box::new(
        Diagnostic::new(Code::NumberKind, span, message)
            .label("extents, strides, indices and bounds of loops are integers")
            .help("write an integer; only operands of specs are real numbers"),
    )
}

impl Resolver {
    pub(super) fn expr(&self, e: &Expr) -> Fallible<Dim> {
        match &e.kind {
            ExprKind::Int(v) => Ok(Dim::Const(*v)),
            ExprKind::Name(n) => match self.scopes.get(Sigil::Index, n) {
                Some(Binding::Index(d)) => self.is_current([d].into_iter(), n, e.span).map(|()| d),
                Some(Binding::Constant(i)) => self.constants.integer(i, n, e.span),
                Some(_) => Err(Box::new(self.silent(e.span))),
                None if matches!(n.as_str(), "inf" | "nan") => Err(no_integer(e.span, n)),
                None => Err(self.unknown(Sigil::Index, n, e.span)),
            },
            ExprKind::Real(text) => Err(no_integer(e.span, text)),
            ExprKind::Sqrt(_) => Err(no_integer(e.span, "sqrt(..)")),
            ExprKind::Neg(a) => {
                let a = self.expr(a)?;
                Dim::sub(&self.p.arena, Dim::Const(0), a).map_err(|err| overflow(e.span, &err))
            }
            ExprKind::Bin(op, a, b) => {
                let (a, b) = (self.expr(a)?, self.expr(b)?);
                let r = op.apply(&self.p.arena, a, b);
                r.map_err(|err| overflow(e.span, &err))
            }
        }
    }

    /// Evaluates an expression that must be a constant.
    pub(super) fn constant(&self, e: &Expr, what: &str) -> Fallible<i64> {
        match self.expr(e)? {
            Dim::Const(v) => Ok(v),
            dim @ Dim::Expr(_) => fail(
                Diagnostic::new(Code::Symbolic, e.span, format!("{what} is not a constant"))
                    .label(match self.of_elements(&[dim]).strip_prefix("; ") {
                        Some(of_data) => of_data.to_owned(),
                        None => "it depends on a symbol, a loop or a coordinate".to_owned(),
                    })
                    .help("write a number or a `let` constant"),
            ),
        }
    }

    pub(super) fn tuple(&self, t: &TupleExpr) -> Fallible<IntTuple<Dim>> {
        Ok(match t {
            TupleExpr::Leaf(e) => IntTuple::Leaf(self.expr(e)?),
            TupleExpr::Tuple(ts) => {
                IntTuple::Tuple(ts.iter().map(|t| self.tuple(t)).collect::<Fallible<_>>()?)
            }
        })
    }

    /// Evaluates `shape:stride`.
    pub(super) fn layout(&self, l: &LayoutExpr) -> Fallible<Layout<Dim>> {
        let (shape, stride) = (self.tuple(&l.shape)?, self.tuple(&l.stride)?);
        self.make_layout(shape, stride, l.span)
    }

    /// Checks extents and strides, then makes the layout.
    pub(super) fn make_layout(
        &self,
        shape: IntTuple<Dim>,
        stride: IntTuple<Dim>,
        span: Span,
    ) -> Fallible<Layout<Dim>> {
        for (what, tuple) in [("an extent", &shape), ("a stride", &stride)] {
            for leaf in tuple.flatten() {
                // Symbolic extents may be 0.
                let least = i64::from(what == "an extent" && matches!(leaf, Dim::Const(_)));
                if self.p.arena.range(leaf).0.is_none_or(|lo| lo < least) {
                    return fail(
                        Diagnostic::new(
                            Code::ShapeMismatch,
                            span,
                            format!("{what} is `{}`, below {least}", self.p.arena.display(leaf)),
                        )
                        .help(match (what, least) {
                            (_, 1) => "make every extent at least 1",
                            ("an extent", _) => "state `min=` for the symbol, or `where M >= 0`",
                            _ => "make every stride at least 0",
                        }),
                    );
                }
            }
        }
        let layout = Layout::new_in(&self.p.arena, shape, stride).map_err(|e| refused(span, &e))?;
        for check in [layout.size_in(&self.p.arena), layout.cosize_in(&self.p.arena)] {
            check.map_err(|e| overflow(span, &e))?;
        }
        Ok(layout)
    }

    /// The error for an undefined name.
    pub(super) fn unknown(&self, sigil: Sigil, name: &str, span: Span) -> Box<Diagnostic> {
        let d = Diagnostic::new(
            Code::UnknownName,
            span,
            format!("`{}{name}` is not defined here", sigil.as_str()),
        )
        .label("unknown name");
        if let Some(span) = self.scopes.ended_at(sigil, name) {
            return Box::new(d.related(span, "a definition in a block that has ended").help(
                match sigil {
                    Sigil::Data => format!(
                        "declare it before the block, `%{name}:[..].f32 = 0`, and write it there"
                    ),
                    _ => "define it outside of the block".to_owned(),
                },
            ));
        }
        let is_bound = |sigil, name: &str| self.scopes.get(sigil, name).is_some();
        let help = match self.scopes.nearest(sigil, name) {
            _ if sigil == Sigil::Index
                && name.strip_prefix('@').is_some_and(|name| is_bound(Sigil::Data, name)) =>
            {
                let tensor = name.trim_start_matches('@');
                format!("read an element of `%{tensor}` as a number first: `@n = %{tensor}[0]`")
            }
            _ if sigil == Sigil::Data && is_bound(Sigil::Index, &format!("@{name}")) => {
                format!(
                    "`@{name}` is a number: write it where a number is expected, or name a tensor"
                )
            }
            Some(n) => return Box::new(d.did_you_mean(&format!("{}{n}", sigil.as_str()))),
            None if sigil == Sigil::Index && self.depth == 0 && name.starts_with('@') => format!(
                "define it in this body: a counter by `counter {name} = 0`, a coordinate by \
                 `{name} = #cta.indices()`"
            ),
            None if sigil == Sigil::Index && self.depth == 0 => {
                format!(
                    "define it above: `let {name} = 8`, or `sym {name}` for a size of the caller"
                )
            }
            None => DEFINE_ABOVE.to_owned(),
        };
        Box::new(d.help(help))
    }

    /// An error without a message. The definition of the name has already reported its error.
    pub(super) fn silent(&self, span: Span) -> Diagnostic {
        Diagnostic::new(Code::UnknownName, span, "")
    }
}

/// The help for a name that resembles no other.
pub(super) const DEFINE_ABOVE: &str = "define it above, in this body or an enclosing one";

/// The name of a view, and its place.
pub(super) fn base(view: &ast::View) -> (&str, Span) {
    (&view.base.text, view.base.span)
}
