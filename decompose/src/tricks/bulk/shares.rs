//! Finds the tiles that several blocks of a cluster copy alike ([`Shares`]).

use super::rings::Outer;
use crate::access::increments::{Drift, drift};
use crate::access::ops;
use carbyne_ir::expr::{Dim, VarId, VarInfo};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{self, Program, SpecId, TensorId, VarKind};
use std::collections::HashMap;

/// Iterations of loops that are looked at, of all blocks together.
const MOST: usize = 1 << 17;

/// The iterations of a loop with stages, of all blocks of a kernel whose clusters are several
/// neighbors.
pub(crate) struct Shares<'p> {
    p: &'p Program,
    /// Blocks of a cluster.
    size: i64,
    block: VarId,
    /// The loop, and where it begins.
    inner: (VarId, i64),
    /// The loop around, and its values, by clusters and their blocks.
    outer: Option<VarId>,
    values: Vec<Vec<Vec<i64>>>,
    /// Clusters.
    number: i64,
    /// Of each block of any cluster, what is put in the place of variables in any iteration of the
    /// loop around, where how many there are depends on symbols.
    symbolic: Vec<HashMap<VarId, Dim>>,
}

impl<'p> Shares<'p> {
    /// None where clusters are single blocks, or their blocks do not have as many iterations.
    pub(crate) fn of(
        p: &'p Program,
        kernel: SpecId,
        (stmt, start, trips): (&program::Stmt, Option<i64>, Option<i64>),
        outer: Option<(&program::Stmt, &Outer)>,
    ) -> Option<Self> {
        let size = p.cluster_size(kernel).filter(|n| *n > 1)?;
        let exec = p.specs[kernel].exec?;
        let blocks = &p.threads[exec.blocks];
        let levels: Option<Vec<Layout>> = blocks.levels.iter().map(Layout::to_fixed).collect();
        // Block number c·size + r is block r of cluster c.
        let (clusters, number) = match &levels?[..] {
            [outer, inner] => match (outer.leaves(), inner.leaves()) {
                (&[(clusters, step)], &[(number, 1)]) if clusters == 1 || step == number => {
                    (clusters, number)
                }
                _ => return None,
            },
            _ => return None,
        };
        let (block, program::StmtKind::For { var, .. }) = (blocks.var?, &stmt.kind) else {
            return None;
        };
        let program::StmtKind::For { end, .. } = &stmt.kind else { return None };
        let (inner, values, symbolic) = ((*var, start?), vec![], vec![]);
        let mut out =
            Shares { p, size, block, inner, outer: None, values, number: clusters, symbolic };
        if number != size || clusters.saturating_mul(size) > MOST as i64 {
            return None;
        }
        let symbols = |dim: Dim| p.vars_in(dim).iter().all(|v| p.symbols.contains(v));
        if trips.is_none() && !symbols(*end) {
            return None;
        }
        let around = match outer {
            None => None,
            Some((stmt, of)) => {
                let program::StmtKind::For { var, start, end, .. } = &stmt.kind else {
                    return None;
                };
                out.outer = Some(*var);
                Some((*start, *end, of.step))
            }
        };
        if trips.is_none() || around.is_some_and(|(_, end, _)| end.as_const().is_none()) {
            out.symbolic = out.by_symbols(around)?;
            return Some(out);
        }
        let mut seen = 0;
        for cluster in 0..clusters {
            let mut all: Vec<Vec<i64>> = vec![];
            for rank in 0..size {
                let own = match around {
                    None => vec![0],
                    Some(around) => out.turns(cluster * size + rank, around, &mut seen)?,
                };
                if all.first().is_some_and(|first| first.len() != own.len()) {
                    return None;
                }
                all.push(own);
            }
            out.values.push(all);
        }
        Some(out)
    }

    /// The values of the loop around in a block; none where they are not known, or too many.
    fn turns(
        &self,
        block: i64,
        (start, end, step): (Dim, Dim, i64),
        seen: &mut usize,
    ) -> Option<Vec<i64>> {
        let known = HashMap::from([(self.block, block)]);
        let (start, end) = (self.p.value_at(start, 0, &known)?, self.p.value_at(end, 0, &known)?);
        let n = ops::trips(Dim::Const(start), Dim::Const(end), step)?;
        *seen = seen.checked_add(usize::try_from(n).ok()?).filter(|n| *n <= MOST)?;
        Some((0..n).map(|i| start + i * step).collect())
    }

    /// Block r of any cluster, in any iteration of the loop around; none where its blocks may have
    /// different numbers of iterations.
    fn by_symbols(&self, around: Option<(Dim, Dim, i64)>) -> Option<Vec<HashMap<VarId, Dim>>> {
        let arena = &self.p.arena;
        let cluster = arena.var(VarInfo::index("cluster", self.number)).ok()?;
        let turn = arena.var(VarInfo { lo: 0, ..VarInfo::size("turn") }).ok()?;
        let (mut out, mut all) = (vec![], None);
        for rank in 0..self.size {
            let first = arena.mul(cluster, Dim::Const(self.size)).ok()?;
            let block = arena.add(first, Dim::Const(rank)).ok()?;
            let mut known = HashMap::from([(self.block, block)]);
            if let (Some((start, end, step)), Some(var)) = (around, self.outer) {
                let (start, end) = (self.put(start, &known)?, self.put(end, &known)?);
                let turns = arena.ceil_div(arena.sub(end, start).ok()?, Dim::Const(step)).ok()?;
                if *all.get_or_insert(turns) != turns {
                    return None;
                }
                let moved = arena.mul(turn, Dim::Const(step)).ok()?;
                known.insert(var, arena.add(start, moved).ok()?);
            }
            out.push(known);
        }
        Some(out)
    }

    /// An expression with what is known in the place of variables.
    fn put(&self, dim: Dim, known: &HashMap<VarId, Dim>) -> Option<Dim> {
        let at = |v: VarId| match self.p.vars.get(&v) {
            Some(VarKind::Index(definition)) => self.put(*definition, known),
            _ => known.get(&v).copied(),
        };
        self.p.arena.substitute(dim, &at).ok()
    }

    /// Blocks of a cluster.
    pub(crate) fn size(&self) -> i64 {
        self.size
    }

    /// Clusters.
    pub(crate) fn number(&self) -> i64 {
        self.number
    }

    /// Whether all blocks of a cluster read the same elements of a tensor in the same iteration.
    pub(crate) fn same(&self, t: TensorId) -> bool {
        if let Some((first, others)) = self.symbolic.split_first() {
            let offset = self.p.tensors[t].offset;
            let own = self.put(offset, first);
            return own.is_some() && others.iter().all(|known| self.put(offset, known) == own);
        }
        self.period(t).is_some_and(|period| self.is_same(t, period))
    }

    /// After how many values of the loop an offset has moved by the same for all.
    fn period(&self, t: TensorId) -> Option<i64> {
        let tensor = &self.p.tensors[t];
        let fixed = tensor.levels.iter().all(|l| l.to_fixed().is_some());
        match drift(self.p, tensor.offset, self.inner.0) {
            Drift::Regular { period, .. } if fixed => Some(period),
            _ => None,
        }
    }

    fn is_same(&self, t: TensorId, period: i64) -> bool {
        let offset = self.p.tensors[t].offset;
        let mut known = HashMap::new();
        for (cluster, blocks) in (0i64..).zip(&self.values) {
            let turns = blocks.first().map_or(0, Vec::len);
            for turn in 0..turns {
                for k in 0..period {
                    known.insert(self.inner.0, self.inner.1 + k);
                    let mut first = None;
                    for (rank, own) in (0i64..).zip(blocks) {
                        known.insert(self.block, cluster * self.size + rank);
                        if let Some(var) = self.outer {
                            known.insert(var, own[turn]);
                        }
                        let Some(at) = self.p.value_at(offset, 0, &known) else { return false };
                        if *first.get_or_insert(at) != at {
                            return false;
                        }
                    }
                }
            }
        }
        true
    }
}
