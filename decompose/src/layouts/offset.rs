//! Computes how many elements of a view are contiguous and aligned where its vectors begin, in the
//! tensor that it is a part of ([`together`]).
//!
//! A run gives digits of a tensor's column-major index strides 1, n₀, n₀·n₁, ...: elements that
//! differ in these digits alone lie side by side. The vectors of a view begin at its offset and at
//! multiples of the steps between them; each is a whole run, aligned to its own size, where all
//! digits of the run are 0 there.

use super::smem::Run;
use carbyne_ir::expr::{Dim, ExprArena};

/// How many elements of the run lie side by side behind every place at which a vector begins,
/// aligned to as many: all of them, or a power of two. `steps` are extents and steps of these
/// places, from `offset` on.
pub(super) fn together(cx: &ExprArena, offset: Dim, steps: &[(i64, i64)], run: &Run) -> i64 {
    let mut all = 1i64;
    for &(n, s) in run {
        if !is_zero(cx, offset, steps, (n, s)) {
            let parts = std::iter::successors(Some(1i64), |p| p.checked_mul(2));
            let clear = |p: &i64| n % p == 0 && is_zero(cx, offset, steps, (*p, s));
            return all
                .saturating_mul(parts.take_while(|p| *p < n).filter(clear).last().unwrap_or(1));
        }
        all = all.saturating_mul(n);
    }
    all
}

/// Whether the digit of extent `n` and step `s` is 0 at all places.
fn is_zero(cx: &ExprArena, offset: Dim, steps: &[(i64, i64)], (n, s): (i64, i64)) -> bool {
    let Some(unit) = n.checked_mul(s).filter(|u| *u > 0) else { return false };
    // What the steps that are no multiples of the whole digit add together.
    let mut below = 0i64;
    for &(extent, step) in steps.iter().filter(|(extent, step)| *extent > 1 && step % unit != 0) {
        let most = step.checked_mul(extent - 1).filter(|m| *m >= 0);
        let Some(sum) = most.and_then(|m| below.checked_add(m)) else { return false };
        below = sum;
    }
    let zero = || {
        let digits = cx.div(offset, Dim::Const(s)).ok()?;
        let rest = cx.rem(offset, Dim::Const(s)).ok()?;
        let most = cx.range(rest).1?.checked_add(below)?;
        Some(cx.divisor(digits) % n == 0 && most < s)
    };
    zero().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use carbyne_ir::expr::VarInfo;

    #[test]
    fn vectors_begin_where_their_digits_are_zero() {
        let cx = ExprArena::new();
        let of = |offset: i64, steps: &[(i64, i64)], run: &[(i64, i64)]| {
            together(&cx, Dim::Const(offset), steps, &run.to_vec())
        };
        // Along the first mode of [28, 32].
        assert_eq!(of(0, &[(7, 4), (32, 28)], &[(4, 1)]), 4);
        assert_eq!(of(4, &[(6, 4), (32, 28)], &[(4, 1)]), 4);
        assert_eq!(of(3, &[(6, 4), (32, 28)], &[(4, 1)]), 1);
        assert_eq!(of(2, &[(6, 4), (32, 28)], &[(4, 1)]), 2);
        // Along the second of [32, 8], whatever the row is.
        assert_eq!(of(9, &[(4, 1), (1, 128)], &[(4, 32)]), 4);
        assert_eq!(of(9 + 32, &[(4, 1)], &[(4, 32)]), 1);
        assert_eq!(of(9 + 64, &[(4, 1)], &[(4, 32)]), 2);
        // Rows from 30 on are followed by the next column.
        assert_eq!(of(30, &[(4, 1)], &[(4, 32)]), 1);
        // Two digits.
        assert_eq!(of(64, &[], &[(2, 1), (4, 16)]), 8);
        assert_eq!(of(32, &[], &[(2, 1), (4, 16)]), 4);
        assert_eq!(of(1, &[], &[(2, 1), (4, 16)]), 1);
    }

    #[test]
    fn offsets_may_be_symbols() {
        let cx = ExprArena::new();
        let i = cx.var(VarInfo::index("i", 4)).expect("a variable");
        let times = |k| cx.mul(i, Dim::Const(k)).expect("fits");
        let of = |offset: Dim, steps: &[(i64, i64)], run: (i64, i64)| {
            together(&cx, offset, steps, &vec![run])
        };
        // Rows 16 i of 64, vectors along the columns; and columns 8 i.
        assert_eq!(of(times(16), &[(16, 1)], (8, 64)), 8);
        assert_eq!(of(times(512), &[(64, 1)], (8, 64)), 8);
        assert_eq!(of(times(4 * 64), &[(64, 1)], (8, 64)), 4);
        assert_eq!(of(times(17), &[(16, 1)], (8, 64)), 1);
        assert_eq!(of(times(2), &[(4, 8)], (8, 1)), 2);
    }
}
