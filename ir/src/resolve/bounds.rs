//! Whether indices stay in their modes: by the ranges of what they are made of, or because the loops,
//! coordinates and `if`s around them say so.

use super::{Fallible, Resolver, fail};
use crate::ast::{self, CmpOp};
use crate::diag::{Code, Diagnostic};
use crate::expr::{Dim, ExprArena, Node};
use crate::leaf::Leaf;
use crate::span::Span;

/// Conditions that are looked at for one index, the innermost first.
const MAX_LOOKED_AT: usize = 256;
/// Of these two are added up.
const MAX_SUMMED: usize = 8;

impl Resolver {
    /// An index must be proven to lie in its mode.
    pub(super) fn check_range(&self, i: Dim, size: Dim, span: Span) -> Fallible<()> {
        let cx = &self.p.arena;
        let (lo, hi) = cx.range(i);
        let inside = lo.is_some_and(|l| l >= 0)
            && (Dim::lt(cx, i, size).is_true()
                || matches!((hi, cx.range(size).0), (Some(h), Some(s)) if h < s));
        if inside {
            return Ok(());
        }
        // Or by what the `if`s around it ask for, and symbolic extents of loops and coordinates: what is at least a difference of at least zero is, too.
        let below =
            |n: i64| Dim::sub(cx, size, i).and_then(|room| Dim::sub(cx, room, Dim::Const(n)));
        let near = self.holds.iter().rev().take(MAX_LOOKED_AT);
        // Or at least the sum of two: `t < @i + 1` where `@i < n`.
        let nearest = self.holds.iter().rev().take(MAX_SUMMED);
        let sums = |d: Dim| {
            nearest.clone().any(|h| {
                let rest = Dim::sub(cx, d, *h);
                rest.is_ok_and(|rest| nearest.clone().any(|h| at_least(cx, rest, *h)))
            })
        };
        let one = |d: Dim, h: Dim| {
            at_least(cx, d, h) || times(cx, d, h).is_some_and(|h| at_least(cx, d, h))
        };
        let proven = |d: Dim| near.clone().any(|h| one(d, *h)) || sums(d);
        let holds = |d: Dim| proven(d) || undivided(cx, d).is_some_and(proven);
        let from_zero = lo.is_some_and(|l| l >= 0) || holds(i);
        let to_end = matches!((hi, cx.range(size).0), (Some(h), Some(s)) if h < s)
            || below(1).is_ok_and(holds);
        if from_zero && to_end {
            return Ok(());
        }
        // Or by the ranges that parts of it have then: `t / 4` where `t < n`.
        let near: Vec<Dim> = near.copied().collect();
        if let ((Some(0..), Some(h)), (Some(s), _)) = (cx.range_where(i, &near), cx.range(size))
            && h < s
        {
            return Ok(());
        }
        let range = match (lo, hi) {
            (Some(lo), Some(hi)) => format!("ranges over {lo}..={hi}"),
            (Some(lo), None) => format!("ranges over {lo} and all above"),
            (None, Some(hi)) => format!("ranges over {hi} and all below"),
            (None, None) => "may be any number".to_owned(),
        };
        let missing = match (from_zero, to_end) {
            (true, _) => format!("{} < {}", cx.display(i), cx.display(size)),
            (false, true) => format!("{} >= 0", cx.display(i)),
            (false, false) => {
                format!("{0} >= 0 && {0} < {1}", cx.display(i), cx.display(size))
            }
        };
        fail(
            Diagnostic::new(
                Code::IndexRange,
                span,
                format!("index `{}` can leave its mode", cx.display(i)),
            )
            .label(format!("{range}, the mode has extent {}", cx.display(size)))
            .help(match (i, size) {
                (Dim::Const(_), Dim::Const(n)) => format!("write an index from 0 to {}", n - 1),
                _ => format!(
                    "bound the loop or the coordinate by the extent, or ask with an \
                     `if ({missing}) {{`"
                ),
            }),
        )
    }

    /// Notes that a loop variable stays below its end, and where that is a minimum below both of its numbers.
    pub(super) fn stays_below_end(&mut self, i: Dim, end: &ast::Expr) -> Fallible<()> {
        let mut ends = vec![end];
        while let Some(end) = ends.pop() {
            if let ast::ExprKind::Bin(ast::BinOp::Min, a, b) = &end.kind {
                ends.extend([&**a, &**b]);
            } else {
                let end = self.expr(end)?;
                self.stays_below(i, end);
            }
        }
        Ok(())
    }

    /// Notes that a coordinate or a loop variable stays below an extent of which only the name is known.
    pub(super) fn stays_below(&mut self, i: Dim, extent: Dim) {
        if let Dim::Expr(_) = extent {
            self.assume(i, CmpOp::Lt, extent);
        }
    }

    /// Notes what holds where a condition does.
    pub(super) fn assume(&mut self, lhs: Dim, op: CmpOp, rhs: Dim) {
        let cx = &self.p.arena;
        let less = |a: Dim, b: Dim, by: i64| {
            Dim::sub(cx, b, a).and_then(|d| Dim::sub(cx, d, Dim::Const(by))).ok()
        };
        let found = match op {
            CmpOp::Lt => [less(lhs, rhs, 1), None],
            CmpOp::Le => [less(lhs, rhs, 0), None],
            CmpOp::Gt => [less(rhs, lhs, 1), None],
            CmpOp::Ge => [less(rhs, lhs, 0), None],
            CmpOp::Eq => [less(lhs, rhs, 0), less(rhs, lhs, 0)],
            CmpOp::Ne => [None, None],
        };
        let found: Vec<Dim> = found.into_iter().flatten().map(|d| lowered(cx, d)).collect();
        self.holds.extend(found);
    }
}

/// Of a sum that is at least zero, what is left of it without the least that its terms leave over zero: `5 - k` of a `k` that
/// is a multiple of 3 is at least 2.
fn lowered(cx: &ExprArena, d: Dim) -> Dim {
    let Dim::Expr(id) = d else { return d };
    let Node::Linear { constant, .. } = cx.node(id) else { return d };
    let own = Dim::Const(constant);
    let least = Dim::sub(cx, d, own).map(|terms| constant.rem_euclid(cx.divisor(terms).max(1)));
    least.and_then(|least| Dim::sub(cx, d, Dim::Const(least))).unwrap_or(d)
}

/// A multiple of the second sum in which a term has the factor that it has in the first, if there is one: of
/// `5 - 4 k` and `1 - k` it is `4 - 4 k`.
fn times(cx: &ExprArena, d: Dim, h: Dim) -> Option<Dim> {
    let (Dim::Expr(a), Dim::Expr(b)) = (d, h) else { return None };
    let terms = |id| match cx.node(id) {
        Node::Linear { terms, .. } => terms.to_vec(),
        _ => vec![(id, 1)],
    };
    let own = terms(b);
    let by = terms(a).into_iter().find_map(|(term, factor)| {
        let (_, once) = own.iter().find(|(other, _)| *other == term)?;
        let by = factor.checked_div(*once)?;
        (by > 1 && once.checked_mul(by)? == factor).then_some(by)
    })?;
    cx.mul(h, Dim::Const(by)).ok()
}

/// For a sum with a quotient `a / n`, one without that is at least zero where the sum is: `a / n + r >= 0` is
/// `a + n r >= 0`, and `r - a / n >= 0` is `n r + n - 1 - a >= 0`.
fn undivided(cx: &ExprArena, d: Dim) -> Option<Dim> {
    let Dim::Expr(id) = d else { return None };
    let terms = match cx.node(id) {
        Node::Linear { terms, .. } => terms.to_vec(),
        _ => vec![(id, 1)],
    };
    let quotient = |&(term, sign): &(_, i64)| match cx.node(term) {
        Node::Div(a, Dim::Const(n)) if sign.abs() == 1 => Some((Dim::Expr(term), a, n, sign)),
        _ => None,
    };
    let (term, a, n, sign) = terms.iter().find_map(quotient)?;
    let by = Dim::Const(n);
    if sign == 1 {
        let rest = Dim::sub(cx, d, term).ok()?;
        return cx.add(cx.mul(rest, by).ok()?, a).ok();
    }
    let rest = cx.add(d, term).ok()?;
    let most = cx.add(cx.mul(rest, by).ok()?, Dim::Const(n - 1)).ok()?;
    Dim::sub(cx, most, a).ok()
}

/// Whether `a - b` is proven to be at least zero.
fn at_least(cx: &ExprArena, a: Dim, b: Dim) -> bool {
    Dim::sub(cx, a, b).is_ok_and(|d| cx.range(d).0.is_some_and(|lo| lo >= 0))
}
