//! Kernels that differ in the number of turns of their loops alone: what a block coordinate or a symbol decides.
//!
//! One expression *E* stands for all that differs. A kernel is followed for one value of it, while it is noted for how many
//! others, at equal distances, all is decided alike ([`crate::motion::Watch`]): the loops turn some rounds more, and every state before and
//! behind those is the same. So for a symbol every value is decided once each class of equal distance has a member that stands
//! for all larger ones.

use crate::expr::{Env, Exprs};
use crate::motion::FOREVER;
use crate::turns::{has, is_open};
use carbyne_ir::expr::{Dim, ExprId, Node};
use carbyne_ir::program::{Program, VarKind};
use std::collections::{BTreeMap, BTreeSet};

/// The values of what differs.
#[derive(Clone, Debug)]
pub(crate) enum Members {
    /// Each with a block that has it.
    Blocks(BTreeMap<i64, i64>),
    /// From a number on, each so many.
    From { first: i64, step: i64, last: Option<i64> },
}

/// Values at which kernels go different ways.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    pub(crate) exprs: Vec<ExprId>,
    pub(crate) members: Members,
}

/// Longest distance between members that are alike.
const MAX_DISTANCE: i64 = 1 << 12;

/// The parts of an expression that differ and depend on nothing else: the largest ones, or single variables.
fn parts(p: &Program, dim: Dim, whole: bool, depth: usize, out: &mut BTreeSet<usize>) {
    let Dim::Expr(id) = dim else { return };
    if depth > 64 || !is_open(p, dim) {
        return;
    }
    let pure = !has(p, dim, 0).turn;
    let mut all = |dims: &[Dim]| dims.iter().for_each(|d| parts(p, *d, whole, depth + 1, out));
    match p.arena.node(id) {
        Node::Linear { terms, .. } => {
            all(&terms.iter().map(|(t, _)| Dim::Expr(*t)).collect::<Vec<_>>());
        }
        Node::Var(v) => match p.vars.get(&v) {
            Some(VarKind::Index(of)) if !pure => all(&[*of]),
            _ => drop(out.insert(id.index())),
        },
        _ if pure && whole => drop(out.insert(id.index())),
        Node::Mul(a, b)
        | Node::Div(a, b)
        | Node::Mod(a, b)
        | Node::CeilDiv(a, b)
        | Node::Min(a, b)
        | Node::Max(a, b) => all(&[a, b]),
    }
}

/// The one part that differs of expressions; none where there are several.
fn the_part(p: &Program, open: &[Dim]) -> Option<Dim> {
    [true, false].into_iter().find_map(|whole| {
        let mut found = BTreeSet::new();
        open.iter().for_each(|d| parts(p, *d, whole, 0, &mut found));
        let [id] = found.into_iter().collect::<Vec<_>>()[..] else { return None };
        open.iter().find_map(|d| within(p, *d, id, 0))
    })
}

/// The expression of an index within another.
fn within(p: &Program, dim: Dim, id: usize, depth: usize) -> Option<Dim> {
    let Dim::Expr(own) = dim else { return None };
    if own.index() == id {
        return Some(dim);
    }
    let find = |d: Dim| (depth < 64).then(|| within(p, d, id, depth + 1)).flatten();
    match p.arena.node(own) {
        Node::Linear { terms, .. } => terms.iter().find_map(|(t, _)| find(Dim::Expr(*t))),
        Node::Var(v) => match p.vars.get(&v) {
            Some(VarKind::Index(of)) => find(*of),
            _ => None,
        },
        Node::Mul(a, b)
        | Node::Div(a, b)
        | Node::Mod(a, b)
        | Node::CeilDiv(a, b)
        | Node::Min(a, b)
        | Node::Max(a, b) => find(a).or_else(|| find(b)),
    }
}

impl Family {
    /// The family of these blocks, if one number makes the difference, or of all values of a symbol.
    pub(crate) fn of(exprs: &Exprs<'_>, open: &[Dim], blocks: &[i64]) -> Option<Family> {
        let p = exprs.program;
        let part = the_part(p, open)?;
        let Dim::Expr(id) = part else { return None };
        // An integer that each turn reads anew has no one value.
        if has(p, part, 0).turn {
            return None;
        }
        if has(p, part, 0).symbol {
            // All blocks alike.
            let [_] = blocks else { return None };
            let (first, last) = p.arena.range(part);
            let step = p.arena.divisor(part).max(1);
            // Small enough that some thousand steps from it are numbers.
            let small = |v: i64| v.saturating_abs() < 1 << 40;
            let first = first.filter(|first| small(*first) && small(step))?;
            let first = first.checked_add((-first).rem_euclid(step))?;
            let members = Members::From { first, step, last };
            return Some(Family { exprs: vec![id], members });
        }
        let mut members = BTreeMap::new();
        for block in blocks {
            let env = Env { block: *block, loops: vec![] };
            if members.insert(exprs.value(part, &env).same()?, *block).is_some() {
                return None;
            }
        }
        Some(Family { exprs: vec![id], members: Members::Blocks(members) })
    }
}

/// Which members are decided.
#[derive(Clone, Debug, Default)]
pub(crate) struct Covered {
    /// Distance between members that are alike.
    pub(crate) distance: i64,
    /// First member and how many behind it.
    runs: Vec<(i64, u64)>,
}

impl Covered {
    /// With the distance at which loops that move by these strides are alike.
    pub(crate) fn new(strides: &[i64]) -> Option<Covered> {
        let lcm = |a: i64, b: i64| {
            let (mut x, mut y) = (a, b);
            while y != 0 {
                (x, y) = (y, x % y);
            }
            a / x.max(1) * b
        };
        let mut distance = 1;
        for s in strides {
            distance = Some(lcm(distance, *s)).filter(|d| (1..=MAX_DISTANCE).contains(d))?;
        }
        Some(Covered { distance, runs: vec![] })
    }

    pub(crate) fn add(&mut self, first: i64, more: u64) {
        self.runs.push((first, more));
    }

    pub(crate) fn has(&self, member: i64) -> bool {
        self.runs.iter().any(|(first, more)| {
            let by = member.saturating_sub(*first);
            by >= 0 && by % self.distance == 0 && (by / self.distance) as u64 <= *more
        })
    }

    /// Whether everything from a member on is.
    pub(crate) fn has_all_from(&self, member: i64, step: i64) -> bool {
        (0..self.distance).all(|i| {
            let member = member + i * step;
            self.runs.iter().any(|(first, more)| {
                *more == FOREVER && *first <= member && (member - first) % self.distance == 0
            })
        })
    }
}
