//! Prints guards: the `if` around a spec that only a part of the enclosing threads or blocks
//! executes, such as `if (threadIdx.x < 32)`.
//!
//! In this file, `x` is `threadIdx.x` (or `blockIdx.x`). A thread tensor contains the indices
//! `offset + c · s` over its leaves `n:s`, which are sorted and coalesced. The verifier has checked
//! that the leaves form a mixed radix, so membership is a condition on the digits of `x - offset`.

use super::state::Lowering;
use crate::cpp::ast::{Binary, Expr};
use crate::{Fallible, errors};
use carbyne_ir::ast::CmpOp;
use carbyne_ir::expr::Dim;
use carbyne_ir::limits::MAX_BLOCK_THREADS;
use carbyne_ir::program::{Exec, ThreadsId};

/// The threads and blocks that execute a statement.
#[derive(Clone, Debug)]
pub(super) struct Executors {
    blocks: Option<Set>,
    threads: Option<Set>,
    /// Whether these are elected threads of groups.
    elected: bool,
}

/// The indices of a thread tensor, as described above.
#[derive(Clone, Debug, PartialEq)]
struct Set {
    offset: Dim,
    leaves: Vec<(i64, i64)>,
}

impl Set {
    /// One more than the largest index relative to the offset.
    fn reach(&self) -> i64 {
        self.leaves.iter().fold(1, |r, (n, s)| r.saturating_add((n - 1).saturating_mul(*s)))
    }
}

impl Executors {
    /// Whether these are elected threads of groups.
    pub(super) fn elected(&self) -> bool {
        self.elected
    }

    /// Whether these are whole groups of `n` threads, each starting at a multiple of `n`.
    pub(super) fn fills(&self, n: i64) -> bool {
        let Some(Set { offset: Dim::Const(offset), leaves }) = &self.threads else { return n == 1 };
        let whole = |(extent, stride): &(i64, i64)| match stride {
            1 => extent % n == 0,
            s => s % n == 0,
        };
        n == 1
            || (offset % n == 0
                && leaves.first().is_some_and(|(_, s)| *s == 1)
                && leaves.iter().all(whole))
    }
}

impl Lowering<'_> {
    /// The threads and blocks of an executor.
    pub(super) fn executors(&self, exec: Exec) -> Executors {
        let elected = self.p.threads[exec.threads].elect.is_some();
        Executors { blocks: self.set(exec.blocks), threads: self.set(exec.threads), elected }
    }

    /// The condition that selects the threads of `exec` among those of `outer`; none if all are
    /// selected.
    pub(super) fn guard(&mut self, outer: &Executors, exec: Exec) -> Fallible<Option<Expr>> {
        let mut conditions = vec![];
        self.part(&outer.blocks, exec.blocks, &mut conditions)?;
        self.part(&outer.threads, exec.threads, &mut conditions)?;
        Ok(conditions.into_iter().reduce(|a, b| a.binary(Binary::And, b)))
    }

    fn part(&mut self, outer: &Option<Set>, id: ThreadsId, out: &mut Vec<Expr>) -> Fallible<()> {
        let t = &self.p.threads[id];
        let Some(inner) = self.set(id) else {
            // With symbolic extents, only the whole tensor is certainly the same set.
            let root = &self.p.threads[t.root];
            if t.levels == root.levels && t.offset == root.offset {
                return Ok(());
            }
            return Err(errors::unprintable(
                "the set of executing threads or blocks depends on a symbol",
                "use all of them, or give the thread tensor constant extents",
            ));
        };
        if outer.as_ref() == Some(&inner) {
            return Ok(());
        }
        let cx = &self.p.arena;
        let (x, offset) = (t.index, inner.offset);
        let whole = |e| errors::layout(e);
        let (first, last) = match outer {
            Some(Set { offset: Dim::Const(o), .. }) => {
                (*o, o + outer.as_ref().map_or(0, |s| s.reach()) - 1)
            }
            _ => (0, i64::MAX),
        };
        match (&inner.leaves[..], offset) {
            ([], _) => out.push(self.compare(x, CmpOp::Eq, offset)?),
            (&[(n, 1)], Dim::Const(o)) => {
                if o > first {
                    out.push(self.compare(x, CmpOp::Ge, offset)?);
                }
                if o + n - 1 < last {
                    out.push(self.compare(x, CmpOp::Lt, Dim::Const(o + n))?);
                }
            }
            (leaves, _) if self.only_gaps(leaves, offset)? => {
                // The digits of `x` between the leaves, and above them, equal those of the offset.
                let mut radix = 1i64;
                for &(n, s) in leaves {
                    if s > radix {
                        self.same_digit(x, offset, radix, Some(s / radix), out)?;
                    }
                    radix = s.saturating_mul(n);
                }
                if cx.range(x).1.is_none_or(|hi| hi >= radix) {
                    self.same_digit(x, offset, radix, None, out)?;
                }
            }
            (leaves, _) => {
                let at = cx.sub(x, offset).map_err(whole)?;
                if offset != Dim::Const(0) {
                    out.push(self.compare(x, CmpOp::Ge, offset)?);
                }
                let mut radix = 1i64;
                for &(n, s) in leaves {
                    if s % radix != 0 {
                        return Err(errors::unprintable(
                            "a set of threads does not follow from digits of the thread index",
                            "choose threads by tiles whose strides divide one another",
                        ));
                    }
                    if s > radix {
                        let digit = cx.div(at, Dim::Const(radix)).map_err(whole)?;
                        let digit = cx.rem(digit, Dim::Const(s / radix)).map_err(whole)?;
                        out.push(self.compare(digit, CmpOp::Eq, Dim::Const(0))?);
                    }
                    radix = s.saturating_mul(n);
                }
                // The last digit is bounded by the reach of the tensor.
                if cx.range(at).1.is_none_or(|hi| hi >= radix) {
                    out.push(self.compare(at, CmpOp::Lt, Dim::Const(radix))?);
                }
            }
        }
        Ok(())
    }

    /// Whether the leaves are a mixed radix and the offset has zeros in their digits.
    fn only_gaps(&self, leaves: &[(i64, i64)], offset: Dim) -> Fallible<bool> {
        let cx = &self.p.arena;
        let mut radix = 1i64;
        for &(n, s) in leaves {
            let digit = cx.div(offset, Dim::Const(s)).and_then(|d| cx.rem(d, Dim::Const(n)));
            if s % radix != 0 || digit.map_err(errors::layout)? != Dim::Const(0) {
                return Ok(false);
            }
            radix = s.saturating_mul(n);
        }
        Ok(cx.range(offset).0.is_some_and(|lo| lo >= 0))
    }

    /// `(x / radix) % extent == (offset / radix) % extent`
    fn same_digit(
        &mut self,
        x: Dim,
        offset: Dim,
        radix: i64,
        extent: Option<i64>,
        out: &mut Vec<Expr>,
    ) -> Fallible<()> {
        let cx = &self.p.arena;
        let digit = |of: Dim| {
            let above = cx.div(of, Dim::Const(radix))?;
            extent.map_or(Ok(above), |n| cx.rem(above, Dim::Const(n)))
        };
        let (x, offset) =
            (digit(x).map_err(errors::layout)?, digit(offset).map_err(errors::layout)?);
        out.push(self.compare(x, CmpOp::Eq, offset)?);
        Ok(())
    }

    /// The set of a thread tensor; none if its extents depend on symbols.
    fn set(&self, id: ThreadsId) -> Option<Set> {
        let t = &self.p.threads[id];
        let mut leaves: Vec<(i64, i64)> =
            t.concat().to_fixed()?.leaves().iter().copied().filter(|(n, _)| *n > 1).collect();
        leaves.sort_by_key(|(_, s)| *s);
        let mut coalesced: Vec<(i64, i64)> = vec![];
        for (n, s) in leaves {
            match coalesced.last_mut() {
                Some((m, r)) if m.checked_mul(*r) == Some(s) => *m = m.checked_mul(n)?,
                _ => coalesced.push((n, s)),
            }
        }
        Some(Set { offset: t.offset, leaves: coalesced })
    }

    /// The sorted thread indices of a tensor; none if they depend on a variable.
    pub(super) fn members(&self, id: ThreadsId) -> Option<Vec<i64>> {
        let t = &self.p.threads[id];
        let Dim::Const(offset) = t.offset else { return None };
        let layout = t.concat().to_fixed()?;
        if layout.size() > MAX_BLOCK_THREADS {
            return None;
        }
        let mut all: Vec<i64> =
            (0..layout.size()).map(|i| offset.saturating_add(layout.at(i))).collect();
        all.sort_unstable();
        Some(all)
    }
}
