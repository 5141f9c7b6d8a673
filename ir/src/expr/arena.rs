//! Stores each symbolic expression once, with its known range and divisor ([`ExprArena`]). Equal
//! expressions therefore have equal handles, and range and divisor are computed once.
//!
//! Invariant: the operands of a node are older than the node, so walks end. Limits on the number of
//! nodes and on the size of one expression bound every walk and every printed line.

use super::facts::{Facts, facts_of};
use super::{Dim, ExprId, Node, VarId, VarInfo};
use crate::cancel;
use crate::layout::LayoutError;
use crate::leaf::gcd;
use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

/// The maximum number of nodes of one arena.
const MAX_NODES: usize = 1 << 20;
/// The maximum number of nodes of one expression, counted as a tree.
const MAX_WEIGHT: u32 = 1 << 12;
/// The maximum depth of an expression.
const MAX_EXPR_DEPTH: u32 = 128;

/// A store of expressions. Methods take `&self`; threads can share it.
#[derive(Default, Debug)]
pub struct ExprArena {
    inner: RwLock<Inner>,
}

#[derive(Default, Debug, Clone)]
pub(super) struct Inner {
    pub(super) entries: Vec<Entry>,
    index: HashMap<Node, ExprId>,
    vars: Vec<VarInfo>,
    /// Pairs of variables whose second one is never below the first one.
    ordered: HashSet<(ExprId, ExprId)>,
}

#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) node: Node,
    pub(super) facts: Facts,
    depth: u32,
    weight: u32,
}

impl ExprArena {
    /// An arena without expressions.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A new variable, different from all others even if they share its name.
    ///
    /// # Errors
    /// [`LayoutError::Variable`] for a divisor below 1 or an empty range, and the arena's limit.
    pub fn var(&self, info: VarInfo) -> Result<Dim, LayoutError> {
        let refuse =
            |name: &str, reason| Err(LayoutError::Variable { name: name.to_owned(), reason });
        if info.div < 1 {
            return refuse(&info.name, "has a divisor below 1");
        }
        let facts = Facts::of_var(&info);
        if facts.lo.is_none() || facts.hi.is_some_and(|hi| facts.lo > Some(hi)) {
            return refuse(&info.name, "has an empty range");
        }
        let mut inner = self.write();
        if inner.entries.len() >= MAX_NODES {
            return Err(LayoutError::TooLarge { what: "an arena", limit: MAX_NODES });
        }
        let var = VarId(inner.vars.len() as u32);
        inner.vars.push(info);
        Ok(Dim::Expr(inner.push(Node::Var(var), facts, 1, 1)))
    }

    /// The variable, if the expression is a variable.
    #[must_use]
    pub fn var_id(&self, dim: Dim) -> Option<VarId> {
        match dim {
            Dim::Const(_) => None,
            Dim::Expr(id) => match self.node(id) {
                Node::Var(var) => Some(var),
                _ => None,
            },
        }
    }

    /// The expression of a variable. `None` for a variable of another arena.
    #[must_use]
    pub fn dim_of(&self, var: VarId) -> Option<Dim> {
        self.expr_of(var).map(Dim::Expr)
    }

    /// The expression of a variable.
    pub(super) fn expr_of(&self, var: VarId) -> Option<ExprId> {
        self.read().index.get(&Node::Var(var)).copied()
    }

    /// The known bounds of a variable.
    ///
    /// # Panics
    /// If the variable is of another arena.
    #[must_use]
    pub fn var_info(&self, var: VarId) -> VarInfo {
        self.read().vars[var.0 as usize].clone()
    }

    /// The number of variables.
    #[must_use]
    pub fn n_vars(&self) -> usize {
        self.read().vars.len()
    }

    /// The number of expressions.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.read().entries.len()
    }

    /// The node of an expression. Cheap, because long sums are shared.
    ///
    /// # Panics
    /// If the expression is of another arena.
    #[must_use]
    pub fn node(&self, id: ExprId) -> Node {
        self.read().entries[id.0 as usize].node.clone()
    }

    /// The smallest and largest value, where bounded. The bounds hold, but the expression may not
    /// reach them.
    #[must_use]
    pub fn range(&self, dim: Dim) -> (Option<i64>, Option<i64>) {
        let facts = self.facts(dim);
        (facts.lo, facts.hi)
    }

    /// The largest known divisor of every value; 0 for the constant zero.
    #[must_use]
    pub fn divisor(&self, dim: Dim) -> i64 {
        self.facts(dim).div
    }

    /// Records that `below <= above` for these variables. The caller guarantees this for all values
    /// that they have together. It affects the bounds of sums that are created later.
    pub fn order(&self, below: Dim, above: Dim) {
        if let (Dim::Expr(below), Dim::Expr(above)) = (below, above) {
            self.write().ordered.insert((below, above));
        }
    }

    /// Whether variables are recorded as ordered.
    #[cfg(feature = "text")]
    pub(super) fn has_order(&self) -> bool {
        !self.read().ordered.is_empty()
    }

    pub(super) fn facts(&self, dim: Dim) -> Facts {
        self.read().facts(dim)
    }

    /// The handle of an existing node.
    pub(super) fn find(&self, node: &Node) -> Option<Dim> {
        self.read().index.get(node).map(|&id| Dim::Expr(id))
    }

    /// The handle of a node, created if needed. The operands must be of this arena, and the node
    /// simplified.
    pub(super) fn intern(&self, node: Node) -> Result<Dim, LayoutError> {
        if let Some(known) = self.find(&node) {
            return Ok(known);
        }
        cancel::point();
        let mut inner = self.write();
        if let Some(&id) = inner.index.get(&node) {
            return Ok(Dim::Expr(id)); // Another thread was faster.
        }
        let (mut depth, mut weight) = (0, 1u32);
        for_each_operand(&node, &mut |dim| {
            if let Dim::Expr(id) = dim {
                let entry = &inner.entries[id.0 as usize];
                depth = depth.max(entry.depth);
                weight = weight.saturating_add(entry.weight);
            }
        });
        if weight > MAX_WEIGHT {
            let limit = MAX_WEIGHT as usize;
            return Err(LayoutError::TooLarge { what: "an expression", limit });
        }
        if depth >= MAX_EXPR_DEPTH {
            return Err(LayoutError::TooDeep { limit: MAX_EXPR_DEPTH as usize });
        }
        if inner.entries.len() >= MAX_NODES {
            return Err(LayoutError::TooLarge { what: "an arena", limit: MAX_NODES });
        }
        let mut facts = facts_of(&node, &|dim| inner.facts(dim));
        if let Node::Linear { terms, constant } = &node {
            facts.lo = facts.lo.max(inner.least_ordered(terms, *constant));
            facts.div = facts.div.max(inner.divisor_by_remainders(terms, *constant));
        }
        Ok(Dim::Expr(inner.push(node, facts, depth + 1, weight)))
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        // A panic in another thread leaves the tables consistent: entries are only appended.
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn facts(&self, dim: Dim) -> Facts {
        match dim {
            Dim::Const(v) => Facts::of_const(v),
            Dim::Expr(id) => self.entries[id.0 as usize].facts,
        }
    }

    /// A divisor of a sum with remainders: `x - x % 8` is a multiple of 8, because a remainder
    /// differs from its dividend by a multiple of the divisor. At least 1.
    fn divisor_by_remainders(&self, terms: &[(ExprId, i64)], constant: i64) -> i64 {
        /// Longer sums are skipped.
        const MOST: usize = 16;
        if terms.len() > MOST {
            return 1;
        }
        let of_one = |at: usize| -> Option<i64> {
            let (id, factor) = terms[at];
            let Node::Mod(of, Dim::Const(by)) = self.entries[id.0 as usize].node else {
                return None;
            };
            let (own, offset) = match of {
                Dim::Const(n) => (vec![], n),
                Dim::Expr(of) => match &self.entries[of.0 as usize].node {
                    Node::Linear { terms, constant } => (terms.to_vec(), *constant),
                    _ => (vec![(of, 1)], 0),
                },
            };
            let mut sum: Vec<(ExprId, i64)> = terms.to_vec();
            sum.remove(at);
            for (id, times) in own {
                let times = times.checked_mul(factor)?;
                match sum.iter_mut().find(|(known, _)| *known == id) {
                    Some((_, known)) => *known = known.checked_add(times)?,
                    None => sum.push((id, times)),
                }
            }
            let constant = constant.checked_add(offset.checked_mul(factor)?)?;
            let mut divisor = gcd(factor.checked_mul(by)?.checked_abs()?, constant.checked_abs()?);
            for (id, factor) in sum.iter().filter(|(_, factor)| *factor != 0) {
                let own = self.entries[id.0 as usize].facts.div;
                divisor = gcd(divisor, factor.checked_mul(own)?.checked_abs()?);
            }
            Some(divisor)
        };
        (0..terms.len()).filter_map(of_one).max().unwrap_or(1).max(1)
    }

    /// A lower bound of a sum that contains differences of ordered variables. `None` without such
    /// differences.
    fn least_ordered(&self, terms: &[(ExprId, i64)], constant: i64) -> Option<i64> {
        /// Longer sums are skipped.
        const MOST: usize = 16;
        if self.ordered.is_empty() || terms.len() > MOST {
            return None;
        }
        let mut left: Vec<(ExprId, i64)> = terms.to_vec();
        let mut found = false;
        for above in 0..left.len() {
            for below in 0..left.len() {
                if !self.ordered.contains(&(left[below].0, left[above].0)) {
                    continue;
                }
                let times = left[above].1.min(left[below].1.checked_neg()?);
                if times > 0 {
                    found = true;
                    left[above].1 -= times;
                    left[below].1 += times;
                }
            }
        }
        let rest = left.into_iter().filter(|(_, factor)| *factor != 0).collect();
        found.then(|| facts_of(&Node::Linear { terms: rest, constant }, &|d| self.facts(d)).lo)?
    }

    fn push(&mut self, node: Node, facts: Facts, depth: u32, weight: u32) -> ExprId {
        let id = ExprId(self.entries.len() as u32);
        self.index.insert(node.clone(), id);
        self.entries.push(Entry { node, facts, depth, weight });
        id
    }
}

impl Clone for ExprArena {
    fn clone(&self) -> Self {
        ExprArena { inner: RwLock::new(self.read().clone()) }
    }
}

impl Node {
    /// The operands in the order in which they are written. Empty for a variable.
    #[must_use]
    pub fn operands(&self) -> Vec<Dim> {
        let mut all = vec![];
        for_each_operand(self, &mut |dim| all.push(dim));
        all
    }
}

/// Calls `f` on the operands of a node.
pub(super) fn for_each_operand(node: &Node, f: &mut impl FnMut(Dim)) {
    match node {
        Node::Var(_) => {}
        Node::Linear { terms, .. } => terms.iter().for_each(|&(id, _)| f(Dim::Expr(id))),
        Node::Mul(a, b)
        | Node::Div(a, b)
        | Node::Mod(a, b)
        | Node::CeilDiv(a, b)
        | Node::Min(a, b)
        | Node::Max(a, b) => {
            f(*a);
            f(*b);
        }
    }
}
