//! Whether indices stay in their modes: by the ranges of what they are made of, or because the
//! loops, coordinates and `if`s around them say so.

use super::{Fallible, Resolver, fail};
use crate::ast::{self, CmpOp};
use crate::diag::{Code, Diagnostic};
use crate::expr::{Dim, prove};
use crate::leaf::Leaf;
use crate::program::differences;
use crate::span::Span;

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
        // Or by what the `if`s around it ask for, the extents of loops and coordinates, and facts
        // about symbols.
        let from_zero = lo.is_some_and(|l| l >= 0) || self.proves(Dim::Const(0), i, 0);
        let to_end = matches!((hi, cx.range(size).0), (Some(h), Some(s)) if h < s)
            || self.proves(i, size, 1);
        if from_zero && to_end {
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
            .label(format!(
                "{range}, the mode has extent {}{}",
                cx.display(size),
                self.of_elements(&[i, size])
            ))
            .help(match (i, size, self.element_wanted(i, size)) {
                (Dim::Const(_), Dim::Const(n), _) => format!("write an index from 0 to {}", n - 1),
                (_, _, Some(declare)) => format!("{declare}, or ask with an `if ({missing}) {{`"),
                (Dim::Const(_), ..) if self.of_elements(&[size]).is_empty() => {
                    format!(
                        "state what is known of the symbols, or ask with an `if ({missing}) {{`{}",
                        self.fact_wanted(from_zero, to_end, i, size)
                    )
                }
                (Dim::Const(_), ..) => format!("ask with an `if ({missing}) {{`"),
                _ => format!(
                    "bound the loop or the coordinate by the extent, or ask with an \
                     `if ({missing}) {{`{}",
                    self.fact_wanted(from_zero, to_end, i, size)
                ),
            }),
        )
    }

    /// A box of a tensor map may lie beyond the end of its tensor, where it reads zeros and writes
    /// nothing, as its other parts do that lie there; but not always, nor where its first
    /// coordinate may leave 32 bits, which come around. Extents of tensors that have maps are below
    /// 2^31 at launch, so that a coordinate not much above one comes around to what lies outside,
    /// too.
    pub(super) fn check_box(&self, (i, count): (Dim, Dim), first: Dim, span: Span) -> Fallible<()> {
        let ends = self.p.arena.range(first);
        /// Boxes beyond the end that are not many: a box has 256 elements at most.
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

    /// Whether `a + by <= b` follows from what holds here.
    pub(super) fn proves(&self, a: Dim, b: Dim, by: i64) -> bool {
        let mut budget = self.proofs.get();
        let proven = prove::proves(&self.p.arena, (a, b, by), &self.holds, &mut budget);
        self.proofs.set(budget);
        proven
    }

    /// Whether a fact contradicts what holds here.
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

    /// The fact about one symbol that an index lacks to stay in its mode, as a further way out.
    fn fact_wanted(&self, from_zero: bool, to_end: bool, i: Dim, size: Dim) -> String {
        let question = match (from_zero, to_end) {
            (true, _) => (i, size, 1),
            (false, true) => (Dim::Const(0), i, 0),
            (false, false) => return String::new(),
        };
        let mut budget = self.proofs.get();
        let fact = prove::missing(&self.p.arena, question, &self.holds, &mut budget);
        self.proofs.set(budget);
        fact.map_or_else(String::new, |fact| {
            format!("; with `where {fact}` of the symbol it stays inside")
        })
    }

    /// Notes that a loop variable stays below its end, and where that is a minimum below both of
    /// its numbers.
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

    /// Notes that a coordinate or a loop variable stays below an extent of which only the name is
    /// known.
    pub(super) fn stays_below(&mut self, i: Dim, extent: Dim) {
        if let Dim::Expr(_) = extent {
            self.assume(i, CmpOp::Lt, extent);
        }
    }

    /// Notes what holds where a condition does.
    pub(super) fn assume(&mut self, lhs: Dim, op: CmpOp, rhs: Dim) {
        let cx = &self.p.arena;
        let found = differences(cx, lhs, op, rhs);
        for difference in found {
            // What is at least zero by itself says nothing more.
            if cx.range(difference).0.is_none_or(|lo| lo < 0) {
                self.holds.push(cx, difference);
            }
        }
    }
}
