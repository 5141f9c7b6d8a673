//! Infers the scalar types and the extents of the results of steps in `means` blocks, where floats
//! are real numbers without a precision.

use super::super::specs::Attributes;
use super::super::{Fallible, Resolver, fail};
use super::{Chain, Found};
use crate::ast::{self, BinaryOp, ExtentRule, ReduceOp, SpecKind, UnaryOp};
use crate::diag::{Code, Diagnostic};
use crate::expr::Dim;
use crate::scalar::Scalar;
use crate::verify::{no_nan, view_that_fits};

impl Resolver {
    /// The type of a step's result. Results of floats are real numbers.
    pub(super) fn means_scalar(
        &self,
        c: &Chain,
        spec: &ast::Spec,
        found: &Found,
        attributes: &Attributes,
        target: Option<&(Scalar, Vec<Dim>)>,
    ) -> Fallible<Scalar> {
        let scalars: Vec<Scalar> = found.values.iter().map(|v| c.means.values[*v].scalar).collect();
        let real = |s: Scalar| if s.is_float() { Scalar::F64 } else { s };
        let mismatch = |message: String, help: &str| {
            fail(Diagnostic::new(Code::ScalarMismatch, spec.span, message).help(help))
        };
        let kinds: Vec<Scalar> = scalars.iter().copied().map(real).collect();
        let first = kinds.first().copied();
        let cast = spec.kind == SpecKind::Unary(UnaryOp::Cast);
        if attributes.to.is_some() && !cast {
            return fail(
                Diagnostic::new(Code::Attribute, spec.span, "`to` at a spec that is not a cast")
                    .help("write `cast(%x, i8)`, or `UnaryPointwise.cast (%x) -> (%y) to=i8`"),
            );
        }
        let same = |list: &[Scalar]| list.windows(2).all(|w| w[0] == w[1]);
        let result = match spec.kind {
            SpecKind::Init => target.map_or(Scalar::F64, |t| real(t.0)),
            SpecKind::Iota => Scalar::I32,
            SpecKind::Select => {
                let chosen = kinds.get(1..).unwrap_or_default();
                if first != Some(Scalar::Bool) || !same(chosen) {
                    return mismatch(
                        "the types do not fit a Select".to_owned(),
                        "make the first operand `bool`, and the others of one type",
                    );
                }
                chosen.first().copied().unwrap_or(Scalar::F64)
            }
            SpecKind::Unary(UnaryOp::Cast) => match (attributes.to, target) {
                (Some(to), _) => real(to),
                (None, Some((to, _))) => real(*to),
                (None, None) => Scalar::F64,
            },
            SpecKind::Unary(op) => {
                let integral = matches!(op, UnaryOp::Neg | UnaryOp::Abs | UnaryOp::Relu);
                if first != Some(Scalar::F64) && !integral {
                    return mismatch(
                        format!(
                            "the type does not fit {}: {}",
                            spec.kind.with_article(),
                            scalars[0]
                        ),
                        "convert with `cast` first",
                    );
                }
                kinds[0]
            }
            SpecKind::Binary(_) | SpecKind::MatMul | SpecKind::MatMulSet if !same(&kinds) => {
                return mismatch(
                    format!(
                        "the types do not fit {}: {} and {}",
                        spec.kind.with_article(),
                        scalars[0],
                        scalars[1]
                    ),
                    "convert with `cast`: all floats fit together, but integers must have one \
                     type",
                );
            }
            SpecKind::Binary(op) if op.compares() => Scalar::Bool,
            SpecKind::MatMul | SpecKind::MatMulSet if kinds[0] == Scalar::F64 => Scalar::F64,
            SpecKind::MatMul | SpecKind::MatMulSet => {
                let stated = target.map(|t| t.0).filter(|t| !t.is_float());
                attributes.acc.or(stated).unwrap_or(Scalar::I32)
            }
            SpecKind::Binary(BinaryOp::Minimum | BinaryOp::Maximum)
            | SpecKind::Reduction(ReduceOp::Minimum | ReduceOp::Maximum)
                if kinds[0] != Scalar::F64 =>
            {
                let (message, help) = no_nan(spec.kind, scalars[0]);
                return mismatch(message, help);
            }
            SpecKind::Reduction(ReduceOp::And | ReduceOp::Or | ReduceOp::Xor)
                if kinds[0] == Scalar::F64 =>
            {
                return mismatch(
                    format!("the type does not fit {}: {}", spec.kind.with_article(), scalars[0]),
                    "use an integer type: floats have no bitwise reductions",
                );
            }
            _ => first.unwrap_or(Scalar::F64),
        };
        match target {
            Some((to, _)) if real(*to) != result => mismatch(
                format!("a result of {} is assigned to {to}", shown(result)),
                "convert with `cast` first",
            ),
            Some((to, _)) => Ok(*to),
            None => Ok(result),
        }
    }

    /// The extents of a step's result.
    pub(super) fn means_extents(
        &self,
        c: &Chain,
        spec: &ast::Spec,
        found: &Found,
        axes: &[usize],
        target: Option<&(Scalar, Vec<Dim>)>,
    ) -> Fallible<Vec<Dim>> {
        let values = found.values.iter().map(|v| &c.means.values[*v].extents[..]);
        let operands = Operands {
            resolver: self,
            spec,
            given: values.collect(),
            wanted: target.map(|(_, extents)| &extents[..]),
        };
        match spec.kind.extents() {
            ExtentRule::Any => match operands.wanted {
                Some(extents) => Ok(extents.to_vec()),
                None => operands.refuse(
                    "write the number where it is used, `1.0 + %x`, or assign it to an output",
                ),
            },
            ExtentRule::Counted | ExtentRule::Reduced => operands.along_axes(axes),
            ExtentRule::Product => operands.product(),
            ExtentRule::Same | ExtentRule::Broadcast => operands.pointwise(),
        }
    }
}

/// The extents of the operands of a step.
struct Operands<'a> {
    resolver: &'a Resolver,
    spec: &'a ast::Spec,
    /// The extents of each tensor input.
    given: Vec<&'a [Dim]>,
    /// The extents of the assigned output, if the result is assigned to one.
    wanted: Option<&'a [Dim]>,
}

impl Operands<'_> {
    fn refuse<T>(&self, help: &str) -> Fallible<T> {
        let all = self.given.iter().copied().chain(self.wanted);
        let all: Vec<String> = all.map(|extents| self.resolver.shown_extents(extents)).collect();
        fail(
            Diagnostic::new(
                Code::ShapeMismatch,
                self.spec.span,
                format!("the extents do not fit {}", self.spec.kind.with_article()),
            )
            .label(match all.is_empty() {
                true => "a number alone does not say how many elements there are".to_owned(),
                false => format!("operands have extents {}", all.join(", ")),
            })
            .help(help),
        )
    }

    /// Compares the extents of the result with those of the assigned output, if there is one.
    fn fits(&self, own: Vec<Dim>, help: &str) -> Fallible<Vec<Dim>> {
        match self.wanted {
            Some(extents) if !self.resolver.same_extents(&own, extents) => {
                let mut pairs = own.iter().zip(extents);
                let differ = pairs.find(|(a, b)| !self.resolver.is_equal(**a, **b));
                let pair = differ.filter(|_| own.len() == extents.len());
                let fact = pair.map_or(String::new(), |(a, b)| self.resolver.state_equal(*a, *b));
                self.refuse(&format!("{fact}{help}"))
            }
            _ => Ok(own),
        }
    }

    /// The extents of a reduction, or of coordinates along a mode. A reduction may keep the reduced
    /// modes with extent 1.
    fn along_axes(&self, axes: &[usize]) -> Fallible<Vec<Dim>> {
        let from = self.given[0];
        if axes.is_empty() || axes.iter().any(|a| *a >= from.len()) {
            return self.refuse("name the mode with `axis=`, counted from 0");
        }
        let one = Dim::Const(1);
        let is_kept = |i: usize| axes.contains(&i) == (self.spec.kind == SpecKind::Iota);
        let ones: Vec<Dim> =
            (0..from.len()).map(|i| if is_kept(i) { from[i] } else { one }).collect();
        let kept: Vec<Dim> = (0..from.len()).filter(|i| is_kept(*i)).map(|i| from[i]).collect();
        match self.wanted {
            Some(extents) if self.resolver.same_extents(&kept, extents) => Ok(kept),
            _ => self.fits(ones, "remove the modes of `axis=`, or give them extent 1"),
        }
    }

    /// The extents of a matrix product.
    fn product(&self) -> Fallible<Vec<Dim>> {
        let help = "make A[m,k], B[k,n] and C[m,n] agree, with batches first in all or none; \
                    batches of 1 are broadcast. If B is stored as N×K, use a view, \
                    `%B.reshape([K,N]:[N,1])`";
        let own = match (self.given[0], self.given[1]) {
            ([m, k], [k2, n]) if self.resolver.is_equal(*k, *k2) => vec![*m, *n],
            ([l @ .., m, k], [l2 @ .., k2, n])
                if self.resolver.same_extents(l, l2) && self.resolver.is_equal(*k, *k2) =>
            {
                l.iter().chain([m, n]).copied().collect()
            }
            ([m, k], [k2, n]) if k != n => {
                return self.refuse(&format!("{}{help}", self.resolver.state_equal(*k, *k2)));
            }
            _ => return self.refuse(help),
        };
        self.fits(own, help)
    }

    /// The extents of an elementwise spec.
    fn pointwise(&self) -> Fallible<Vec<Dim>> {
        let help = "give all operands the same extents; an input may have extent 1 to broadcast a \
                    mode, or no modes at all";
        let mut own: Vec<Dim> = match self.wanted {
            Some(extents) => extents.to_vec(),
            None => {
                // The extents of the first input with the most modes.
                let most = self.given.iter().map(|from| from.len()).max().unwrap_or(0);
                let first = self.given.iter().find(|from| from.len() == most);
                first.map_or(vec![], |from| from.to_vec())
            }
        };
        for from in &self.given {
            if from.is_empty() {
                continue;
            }
            let texts = |extents: &[Dim]| -> Vec<String> {
                extents.iter().map(|d| self.resolver.p.arena.display(*d)).collect()
            };
            let view = view_that_fits(&texts(from), &texts(&own));
            let view = view.map_or(String::new(), |view| format!("{view}; or "));
            if from.len() != own.len() {
                return self.refuse(&format!("{view}{help}"));
            }
            for (mine, theirs) in own.iter_mut().zip(*from) {
                let is_one = |d: Dim| d == Dim::Const(1);
                if is_one(*mine) && self.wanted.is_none() {
                    *mine = *theirs;
                } else if !is_one(*theirs) && !self.resolver.is_equal(*mine, *theirs) {
                    let state = self.resolver.state_equal(*mine, *theirs);
                    return self.refuse(&format!("{view}{state}{help}"));
                }
            }
        }
        Ok(own)
    }
}

/// The name of a result's type for a person.
fn shown(scalar: Scalar) -> String {
    if scalar.is_float() { "real numbers".to_owned() } else { scalar.to_string() }
}
