//! Types and extents of what the steps of a `means` block give.

use super::super::specs::Attributes;
use super::super::{Fallible, Resolver, fail};
use super::{Chain, Found};
use crate::ast::{self, BinaryOp, ReduceOp, SpecKind, UnaryOp};
use crate::diag::{Code, Diagnostic};
use crate::expr::Dim;
use crate::scalar::Scalar;
use crate::verify::NAN_OF_FLOATS;

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
                Diagnostic::new(Code::Attribute, spec.span, "`to` belongs to a cast")
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
                        "a Select of other types".to_owned(),
                        "the first operand is `bool`, the others have one type",
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
                        format!("a {} of {}", spec.kind, scalars[0]),
                        "convert with `cast` first",
                    );
                }
                kinds[0]
            }
            SpecKind::Binary(_) | SpecKind::MatMul | SpecKind::MatMulSet if !same(&kinds) => {
                return mismatch(
                    format!("a {} of {} and {}", spec.kind, scalars[0], scalars[1]),
                    "convert with `cast`: floats of any width go together, an \
                     integer with integers of its type",
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
                return mismatch(format!("a {} of {}", spec.kind, scalars[0]), NAN_OF_FLOATS);
            }
            SpecKind::Reduction(ReduceOp::And | ReduceOp::Or | ReduceOp::Xor)
                if kinds[0] == Scalar::F64 =>
            {
                return mismatch(
                    format!("a {} of {}", spec.kind, scalars[0]),
                    "bits are reduced of integers",
                );
            }
            SpecKind::Move
            | SpecKind::Accumulate(_)
            | SpecKind::Binary(_)
            | SpecKind::Reduction(_)
            | SpecKind::Shfl(_)
            | SpecKind::Generic => first.unwrap_or(Scalar::F64),
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
        let of = |i: usize| &c.means.values[found.values[i]].extents[..];
        let same = |a: &[Dim], b: &[Dim]| self.same_extents(a, b);
        let wanted = target.map(|(_, extents)| &extents[..]);
        let show = |extents: &[Dim]| self.shown_extents(extents);
        let refuse = |help: &str| {
            let mut all: Vec<String> =
                found.values.iter().map(|v| show(&c.means.values[*v].extents)).collect();
            all.extend(wanted.map(show));
            fail(
                Diagnostic::new(
                    Code::ShapeMismatch,
                    spec.span,
                    format!("the extents do not fit a {}", spec.kind),
                )
                .label(match all.is_empty() {
                    true => "nothing says how many elements it has".to_owned(),
                    false => format!("operands have extents {}", all.join(", ")),
                })
                .help(help),
            )
        };
        let fits = |own: Vec<Dim>, help: &str| match wanted {
            Some(extents) if !same(&own, extents) => {
                let differ = own.iter().zip(extents).find(|(a, b)| !self.is_equal(**a, **b));
                let pair = differ.filter(|_| own.len() == extents.len());
                let fact = pair.map_or(String::new(), |(a, b)| self.state_equal(*a, *b));
                refuse(&format!("{fact}{help}"))
            }
            _ => Ok(own),
        };
        match spec.kind {
            SpecKind::Init => match wanted {
                Some(extents) => Ok(extents.to_vec()),
                None => refuse(
                    "an Init gives an output of the spec; write the literal where it is used",
                ),
            },
            SpecKind::Iota | SpecKind::Reduction(_) => {
                let from = of(0);
                if axes.is_empty() || axes.iter().any(|a| *a >= from.len()) {
                    return refuse("name the mode with `axis=`, counted from 0");
                }
                let one = Dim::Const(1);
                let is_kept = |i: usize| axes.contains(&i) == (spec.kind == SpecKind::Iota);
                let ones: Vec<Dim> =
                    (0..from.len()).map(|i| if is_kept(i) { from[i] } else { one }).collect();
                let kept: Vec<Dim> =
                    (0..from.len()).filter(|i| is_kept(*i)).map(|i| from[i]).collect();
                match wanted {
                    Some(extents) if same(&kept, extents) => Ok(kept),
                    _ => fits(
                        ones,
                        "modes named by `axis=` are removed or become 1; the others stay",
                    ),
                }
            }
            SpecKind::MatMul | SpecKind::MatMulSet => {
                let help = "A[m,k], B[k,n], C[m,n], with batches first in all or none, of which one of 1 is \
                            broadcast; B stored N×K is a view, `%B.reshape([K,N]:[N,1])`";
                let own = match (of(0), of(1)) {
                    ([m, k], [k2, n]) if self.is_equal(*k, *k2) => vec![*m, *n],
                    ([l @ .., m, k], [l2 @ .., k2, n]) if same(l, l2) && self.is_equal(*k, *k2) => {
                        l.iter().chain([m, n]).copied().collect()
                    }
                    ([m, k], [k2, n]) if k != n => {
                        return refuse(&format!("{}{help}", self.state_equal(*k, *k2)));
                    }
                    _ => return refuse(help),
                };
                fits(own, help)
            }
            SpecKind::Move
            | SpecKind::Accumulate(_)
            | SpecKind::Unary(_)
            | SpecKind::Binary(_)
            | SpecKind::Select
            | SpecKind::Shfl(_)
            | SpecKind::Generic => {
                let help = "all operands have the same extents, mode by mode; an input of as many \
                            modes may have extent 1 where it is broadcast, and one without modes is";
                let mut own: Vec<Dim> = match wanted {
                    Some(extents) => extents.to_vec(),
                    None => {
                        // The first of the most modes; what has none is broadcast.
                        let ranks = (0..found.values.len()).map(|i| of(i).len());
                        let most = ranks.max().unwrap_or(0);
                        let first = (0..found.values.len()).find(|i| of(*i).len() == most);
                        first.map_or(vec![], |i| of(i).to_vec())
                    }
                };
                for i in 0..found.values.len() {
                    let from = of(i);
                    if from.is_empty() {
                        continue;
                    }
                    if from.len() != own.len() {
                        return refuse(help);
                    }
                    for (mine, theirs) in own.iter_mut().zip(from) {
                        let is_one = |d: Dim| d == Dim::Const(1);
                        if is_one(*mine) && wanted.is_none() {
                            *mine = *theirs;
                        } else if !is_one(*theirs) && !self.is_equal(*mine, *theirs) {
                            return refuse(&format!("{}{help}", self.state_equal(*mine, *theirs)));
                        }
                    }
                }
                Ok(own)
            }
        }
    }
}

/// A result's type as a person reads it.
fn shown(scalar: Scalar) -> String {
    if scalar.is_float() { "real numbers".to_owned() } else { scalar.to_string() }
}
