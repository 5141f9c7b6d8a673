//! Proves that an index stays within the extent of its mode. An index for which there is no proof
//! is an error (V0212). Proofs use the ranges of variables, enclosing loops and `if`s, and facts
//! about symbols; this file also records these assumptions.
//!
//! A box of a tensor map is the exception: it may lie outside of its tensor, where it reads zeros
//! and writes nothing. A box that always lies outside is refused, and so is one whose coordinate
//! may exceed 32 bits.

use super::{Fallible, Resolver, fail};
use crate::ast::{self, CmpOp};
use crate::diag::{Code, Diagnostic};
use crate::expr::{Dim, prove};
use crate::leaf::Leaf;
use crate::program::differences;
use crate::span::Span;

impl Resolver {
    /// Proves that an index is in its mode.
    pub(super) fn check_range(&self, i: Dim, size: Dim, span: Span) -> Fallible<()> {
        let cx = &self.p.arena;
        let (lo, hi) = cx.range(i);
        let inside = lo.is_some_and(|l| l >= 0)
            && (Dim::lt(cx, i, size).is_true()
                || matches!((hi, cx.range(size).0), (Some(h), Some(s)) if h < s));
        if inside {
            return Ok(());
        }
        // Otherwise, try assumptions: enclosing `if`s, extents of loops and coordinates, and facts
        // about symbols.
        let from_zero = lo.is_some_and(|l| l >= 0) || self.proves(Dim::Const(0), i, 0);
        let to_end = matches!((hi, cx.range(size).0), (Some(h), Some(s)) if h < s)
            || self.proves(i, size, 1);
        if from_zero && to_end {
            return Ok(());
        }
        let range = match (lo, hi) {
            (Some(lo), Some(hi)) => format!("it goes from {lo} to {hi}"),
            (Some(lo), None) => format!("it is at least {lo}"),
            (None, Some(hi)) => format!("it is at most {hi}"),
            (None, None) => "it may be any number".to_owned(),
        };
        let (first, last) = ((Dim::Const(0), i, CmpOp::Le), (i, size, CmpOp::Lt));
        let missing = [(!from_zero).then_some(first), (!to_end).then_some(last)];
        let missing = missing.into_iter().flatten();
        let never = missing.clone().any(|(a, b, op)| self.is_refuted(a, op, b));
        let asked: Vec<String> = missing
            .map(|(a, b, op)| match a {
                Dim::Const(0) if op == CmpOp::Le => format!("{} >= 0", cx.display(b)),
                _ => format!("{} {op} {}", cx.display(a), cx.display(b)),
            })
            .collect();
        let asked = asked.join(" && ");
        let add = format!("add a condition, `if ({asked}) {{`");
        let (out, range) = match (i, size) {
            (Dim::Const(_), Dim::Const(_)) => ("is", String::new()),
            _ => ("may be", format!("{range}, but ")),
        };
        fail(
            Diagnostic::new(
                Code::IndexRange,
                span,
                format!("index `{}` {out} out of range", cx.display(i)),
            )
            .label(format!(
                "{range}the mode has extent {}{}",
                cx.display(size),
                self.of_elements(&[i, size])
            ))
            .help(match (i, size, self.element_wanted(i, size)) {
                (Dim::Const(_), Dim::Const(n), _) => format!("write an index from 0 to {}", n - 1),
                (_, _, Some(declare)) => format!("{declare}, or {add}"),
                _ if never => {
                    format!(
                        "correct the index, or the condition around it: `{asked}` never holds here"
                    )
                }
                (Dim::Const(_), ..) if self.of_elements(&[size]).is_empty() => format!(
                    "state facts about the symbols, or {add}{}",
                    self.fact_wanted(from_zero, to_end, i, size)
                ),
                (Dim::Const(_), ..) => add,
                _ => format!(
                    "bound the loop or the coordinate by the extent, or {add}{}",
                    self.fact_wanted(from_zero, to_end, i, size)
                ),
            }),
        )
    }

    /// Checks the coordinate of a box of a tensor map. A box may be outside of its tensor: it reads
    /// zeros and writes nothing there. Refused are boxes that are always outside, and boxes whose
    /// first coordinate may overflow 32 bits, because such a coordinate wraps around. At launch,
    /// tensors with maps have extents below 2^31. A coordinate slightly above the extent therefore
    /// wraps around to one that is also outside.
    pub(super) fn check_box(&self, (i, count): (Dim, Dim), first: Dim, span: Span) -> Fallible<()> {
        let ends = self.p.arena.range(first);
        /// The number of boxes beyond the end that counts as slightly: a box has at most 256
        /// elements per mode.
        const FEW: i64 = 1 << 16;
        let fits = |end: Option<i64>| end.is_some_and(|end| i32::try_from(end).is_ok());
        let outside =
            self.is_refuted(i, CmpOp::Ge, Dim::Const(0)) || self.is_refuted(i, CmpOp::Lt, count);
        let near = || self.proves(i, count, 1 - FEW);
        match !outside && fits(ends.0) && (fits(ends.1) || near()) {
            true => Ok(()),
            false => self.check_range(i, count, span),
        }
    }

    /// Whether the assumptions prove `a + by <= b`.
    pub(super) fn proves(&self, a: Dim, b: Dim, by: i64) -> bool {
        let mut budget = self.proofs.get();
        let proven = prove::proves(&self.p.arena, (a, b, by), &self.holds, &mut budget);
        self.proofs.set(budget);
        proven
    }

    /// Whether the assumptions contradict a comparison.
    pub(super) fn is_refuted(&self, lhs: Dim, op: CmpOp, rhs: Dim) -> bool {
        let below = |a: Dim, b: Dim| self.proves(a, b, 1);
        match op {
            CmpOp::Lt => self.proves(rhs, lhs, 0),
            CmpOp::Le => below(rhs, lhs),
            CmpOp::Gt => self.proves(lhs, rhs, 0),
            CmpOp::Ge => below(lhs, rhs),
            CmpOp::Eq => below(lhs, rhs) || below(rhs, lhs),
            CmpOp::Ne => self.proves(lhs, rhs, 0) && self.proves(rhs, lhs, 0),
        }
    }

    /// A suggestion for the help: the fact about one symbol that would keep the index in its mode.
    fn fact_wanted(&self, from_zero: bool, to_end: bool, i: Dim, size: Dim) -> String {
        let question = match (from_zero, to_end) {
            (true, _) => (i, size, 1),
            (false, true) => (Dim::Const(0), i, 0),
            (false, false) => return String::new(),
        };
        let mut budget = self.proofs.get();
        let fact = prove::missing(&self.p.arena, question, &self.holds, &mut budget);
        self.proofs.set(budget);
        fact.map_or_else(String::new, |fact| format!("; `where {fact}` would also prove the range"))
    }

    /// Assumes that a loop variable is below its end. If the end is a minimum, it is below both
    /// operands.
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

    /// Assumes that a coordinate or loop variable is below a symbolic extent.
    pub(super) fn stays_below(&mut self, i: Dim, extent: Dim) {
        if let Dim::Expr(_) = extent {
            self.assume(i, CmpOp::Lt, extent);
        }
    }

    /// Assumes a comparison.
    pub(super) fn assume(&mut self, lhs: Dim, op: CmpOp, rhs: Dim) {
        let cx = &self.p.arena;
        let found = differences(cx, lhs, op, rhs);
        for difference in found {
            // Differences that are always at least zero give no information.
            if cx.range(difference).0.is_none_or(|lo| lo < 0) {
                self.holds.push(cx, difference);
            }
        }
    }
}
