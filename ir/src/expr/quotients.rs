//! Proves bounds of symbolic expressions that contain quotients, by the dividends and divisors:
//! `a/b < c` follows from `a < b*c`. The prover ([`prove`]) knows a quotient only by the laws of
//! its rounding, which do not always suffice for this step. The synchronization check uses these
//! proofs for numbers of iterations and for the owners of elements.
//!
//! An answer `true` holds for all values that satisfy the assumptions and for which the expressions
//! have a value. An answer `false` proves nothing. These proofs create expressions in the arena;
//! the prover does not.

use super::prove::{self, Assumptions};
use super::{Dim, ExprArena, ExprId, Node};
use std::collections::HashSet;

/// The maximum depth of an expression to decompose.
const MAX_DEPTH: usize = 32;
/// The maximum nesting of minima and maxima whose operands are checked separately.
const MAX_SPLITS: usize = 3;

/// Whether an expression is at least zero, by its parts or by the prover.
#[must_use]
pub fn is_natural(arena: &ExprArena, dim: Dim, holds: &Assumptions) -> bool {
    is_natural_at(arena, dim, holds, 0)
}

fn is_natural_at(arena: &ExprArena, dim: Dim, holds: &Assumptions, depth: usize) -> bool {
    if depth > MAX_DEPTH || arena.range(dim).0.is_some_and(|lo| lo >= 0) {
        return depth <= MAX_DEPTH;
    }
    let is = |dim: Dim| is_natural_at(arena, dim, holds, depth + 1);
    let by_parts = match dim {
        Dim::Const(n) => n >= 0,
        Dim::Expr(id) => match arena.node(id) {
            Node::Var(_) => false,
            Node::Linear { terms, constant } => {
                constant >= 0 && terms.iter().all(|(term, by)| *by > 0 && is(Dim::Expr(*term)))
            }
            Node::Mul(a, b) | Node::Min(a, b) => is(a) && is(b),
            Node::Div(a, _) | Node::CeilDiv(a, _) => is(a),
            Node::Mod(..) => true,
            Node::Max(a, b) => is(a) || is(b),
        },
    };
    by_parts || prove::nonnegative(arena, dim, holds).is_true()
}

/// The quotients and remainders by non-constant divisors within an expression, as (dividend,
/// divisor).
#[must_use]
pub fn quotients(arena: &ExprArena, dim: Dim) -> Vec<(Dim, Dim)> {
    let (mut found, mut seen, mut todo) = (vec![], HashSet::new(), vec![dim]);
    while let Some(dim) = todo.pop() {
        let Dim::Expr(id) = dim else { continue };
        if !seen.insert(id) {
            continue;
        }
        let node = arena.node(id);
        if let Node::Div(x, by @ Dim::Expr(_)) | Node::Mod(x, by @ Dim::Expr(_)) = node
            && !found.contains(&(x, by))
        {
            found.push((x, by));
        }
        todo.extend(node.operands());
    }
    found
}

/// The constant factor of a product, and its other factors.
#[must_use]
pub fn factors(arena: &ExprArena, dim: Dim) -> (i64, Vec<ExprId>) {
    let (mut times, mut ids, mut todo) = (1i64, vec![], vec![dim]);
    while let Some(dim) = todo.pop() {
        let id = match dim {
            Dim::Const(n) => {
                times = times.saturating_mul(n);
                continue;
            }
            Dim::Expr(id) => id,
        };
        match arena.node(id) {
            Node::Mul(a, b) => todo.extend([a, b]),
            Node::Linear { terms, constant: 0 } if terms.len() == 1 => {
                times = times.saturating_mul(terms[0].1);
                todo.push(Dim::Expr(terms[0].0));
            }
            _ => ids.push(id),
        }
    }
    ids.sort_unstable();
    (times, ids)
}

/// Whether an expression is at most another one. A quotient is below a number if its dividend is
/// below the product of the number and the divisor. For a minimum or maximum as divisor, both
/// operands are checked.
#[must_use]
pub fn at_most(arena: &ExprArena, a: Dim, b: Dim, holds: &Assumptions) -> bool {
    at_most_at(arena, a, b, holds, 0)
}

fn at_most_at(arena: &ExprArena, a: Dim, b: Dim, holds: &Assumptions, splits: usize) -> bool {
    if prove::at_most(arena, a, b, holds).is_true() {
        return true;
    }
    if let Dim::Expr(id) = b
        && let Node::Min(x, y) = arena.node(id)
    {
        return [x, y].into_iter().all(|b| at_most_at(arena, a, b, holds, splits + 1));
    }
    let chosen = quotients(arena, a).into_iter().find_map(|(_, by)| match by {
        Dim::Expr(id) => match arena.node(id) {
            Node::Min(x, y) => Some((id, [(x, y, x), (y, x, y)])),
            Node::Max(x, y) => Some((id, [(y, x, x), (x, y, y)])),
            _ => None,
        },
        Dim::Const(_) => None,
    });
    if let Some((id, cases)) = chosen.filter(|_| splits < MAX_SPLITS) {
        let sure = cases.iter().find(|c| at_most_at(arena, c.0, c.1, holds, splits + 1)).copied();
        return cases.into_iter().filter(|case| sure.is_none_or(|c| c == *case)).all(|case| {
            let (small, large, value) = case;
            let (Ok(more), Some(a)) = (arena.sub(large, small), put(arena, a, id, value, 0)) else {
                return false;
            };
            let mut holds = holds.clone();
            holds.push(arena, more);
            at_most_at(arena, a, b, &holds, splits + 1)
        });
    }
    let Dim::Expr(id) = a else { return false };
    let Node::Div(x, by) = arena.node(id) else { return false };
    let Ok(end) = arena.add(b, Dim::Const(1)).and_then(|n| arena.mul(n, by)) else { return false };
    let below = |x: Dim, end: Dim| prove::less(arena, x, end, holds).is_true();
    // A remainder is the dividend minus a multiple of the divisor.
    let of_whole = || match x {
        Dim::Expr(id) => match arena.node(id) {
            Node::Mod(whole, by) => {
                let less = arena.div(whole, by).and_then(|q| arena.mul(q, by)).ok()?;
                Some(below(whole, arena.add(end, less).ok()?))
            }
            _ => None,
        },
        Dim::Const(_) => None,
    };
    below(x, end) || of_whole() == Some(true)
}

/// Replaces the expression `id` within `dim` by `value`.
fn put(arena: &ExprArena, dim: Dim, id: ExprId, value: Dim, depth: usize) -> Option<Dim> {
    let Dim::Expr(own) = dim else { return Some(dim) };
    if own == id {
        return Some(value);
    }
    let put = |d: Dim| (depth < MAX_DEPTH).then(|| put(arena, d, id, value, depth + 1)).flatten();
    match arena.node(own) {
        Node::Var(_) => Some(dim),
        Node::Linear { terms, constant } => {
            terms.iter().try_fold(Dim::Const(constant), |sum, (term, by)| {
                arena.add(sum, arena.mul(put(Dim::Expr(*term))?, Dim::Const(*by)).ok()?).ok()
            })
        }
        Node::Mul(a, b) => arena.mul(put(a)?, put(b)?).ok(),
        Node::Div(a, b) => arena.div(put(a)?, put(b)?).ok(),
        Node::Mod(a, b) => arena.rem(put(a)?, put(b)?).ok(),
        Node::CeilDiv(a, b) => arena.ceil_div(put(a)?, put(b)?).ok(),
        Node::Min(a, b) => arena.min(put(a)?, put(b)?).ok(),
        Node::Max(a, b) => arena.max(put(a)?, put(b)?).ok(),
    }
}
