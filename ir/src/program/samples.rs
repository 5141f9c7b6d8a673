//! Chooses sample values of the symbols of a kernel, for test runs and counterexamples: small
//! values, values with partial tiles, and values with enough iterations that rings of tiles wrap
//! around. All samples satisfy the facts. [`with_turns`] changes a sample so that given
//! expressions, such as trip counts, have given values.

use super::{Program, SpecId, Stmt, StmtKind, VarKind};
use crate::expr::{Dim, Node, VarId};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The maximal number of assignments that the search tries.
const MAX_LOOKS: usize = 1 << 10;
/// The largest tile that influences the values.
const MAX_TILE: i64 = 1 << 10;

/// Samples: values of all symbols that satisfy the facts. There are up to three:
/// - values with several tiles along each mode, the last of them partial if possible;
/// - small values;
/// - values for which a block that takes every n-th tile takes two of them.
///
/// Empty if there are no symbols, or if the search finds no values.
pub fn samples(p: &Program, kernel: SpecId) -> Vec<HashMap<VarId, i64>> {
    if p.symbols.is_empty() {
        let of_data = |s: &Stmt| matches!(s.kind, StmtKind::Element { .. });
        return match p.walk_body(kernel).stmts().any(of_data) {
            true => vec![HashMap::new()],
            false => vec![],
        };
    }
    let tiles = tiles(p, kernel);
    let batches = batches(p, kernel);
    let turns = turns(p, kernel);
    // Choose the symbols that are divided into tiles first: other symbols follow from their values.
    let mut order = p.symbols.clone();
    order.sort_by_key(|symbol| !tiles.contains_key(symbol));
    let again = again(p, kernel, &turns);
    let mut found = vec![];
    for (tiled, turns) in [(true, &turns), (false, &turns), (true, &again)] {
        let mut search = Search {
            p,
            tiles: &tiles,
            batches: &batches,
            turns,
            tiled,
            looks: 0,
            values: HashMap::new(),
        };
        if search.choose(&order) && !found.contains(&search.values) {
            found.push(search.values);
        }
    }
    found
}

/// Changes a sample so that each expression, such as a loop's number of iterations, has the given
/// value in the first block. `None` if no such values satisfy the facts.
pub fn with_turns(
    p: &Program,
    sample: &HashMap<VarId, i64>,
    numbers: &[(Dim, i64)],
) -> Option<HashMap<VarId, i64>> {
    /// The number of values that are tried for a symbol.
    const MAX_VALUES: i64 = 1 << 12;
    let mut found = sample.clone();
    for (expr, n) in numbers {
        let symbols = || p.arena.vars_of(*expr).into_iter().filter(|v| p.symbols.contains(v));
        let gives = |values: &HashMap<VarId, i64>| {
            let of = |v: VarId| match p.vars.get(&v) {
                Some(VarKind::Block(_)) => Some(0),
                _ => values.get(&v).copied(),
            };
            p.arena.eval(*expr, &of) == Ok(*n)
                && p.check_facts(&|v| values.get(&v).copied()).is_ok()
        };
        let tried = symbols().find_map(|symbol| {
            let info = p.arena.var_info(symbol);
            let first = info.multiple_from(info.lo)?;
            let value = |i: i64| first.checked_add(i.checked_mul(info.div.max(1))?);
            let mut values = found.clone();
            let holds = (0..MAX_VALUES).map_while(value).find(|v| {
                values.insert(symbol, *v);
                gives(&values)
            });
            holds.map(|_| values)
        });
        found = tried?;
    }
    (!numbers.is_empty()).then_some(found)
}

struct Search<'a> {
    p: &'a Program,
    tiles: &'a BTreeMap<VarId, i64>,
    batches: &'a BTreeSet<VarId>,
    /// The minimal number of complete tiles along symbols that bound loops.
    turns: &'a BTreeMap<VarId, i64>,
    /// Whether to try values with partial tiles first.
    tiled: bool,
    looks: usize,
    values: HashMap<VarId, i64>,
}

impl Search<'_> {
    /// Chooses values of these symbols; returns whether it found some.
    fn choose(&mut self, symbols: &[VarId]) -> bool {
        let Some((symbol, others)) = symbols.split_first() else { return true };
        for value in self.candidates(*symbol) {
            self.looks += 1;
            if self.looks > MAX_LOOKS {
                return false;
            }
            self.values.insert(*symbol, value);
            let keeps = self.p.check_facts(&|v| self.values.get(&v).copied()).is_ok();
            if keeps && self.choose(others) {
                return true;
            }
            self.values.remove(symbol);
        }
        false
    }

    /// Candidate values of a symbol, best first.
    fn candidates(&self, symbol: VarId) -> Vec<i64> {
        /// Multiple of the divisor that lets loops iterate and gives blocks neighbors.
        const MULTIPLE: i64 = 4;
        /// Multiple of the divisor for symbols that only count blocks.
        const OF_BATCHES: i64 = 2;
        /// Number of small values that are tried.
        const FEW: i64 = 16;
        let info = self.p.arena.var_info(symbol);
        let (lo, hi, div) = (info.lo, info.hi, info.div.max(1));
        let up = |v: i64| info.multiple_from(v);
        let tile = self.tiles.get(&symbol).copied();
        let turns = self.turns.get(&symbol).copied().unwrap_or(2);
        let partial = tile.and_then(|tile| up(turns * tile + 1));
        let multiple = if self.batches.contains(&symbol) { OF_BATCHES } else { MULTIPLE };
        let usual = div.checked_mul(multiple).and_then(|v| up(v.max(lo)));
        let most = hi.and_then(|hi| hi.checked_sub(hi.rem_euclid(div)));
        // Values of other symbols, which may have to be equal, and slightly larger ones.
        let mut chosen: Vec<i64> = self.values.values().copied().collect();
        chosen.sort_unstable_by(|a, b| b.cmp(a));
        chosen.dedup();
        let fitting: Vec<i64> = chosen.into_iter().take(FEW as usize).filter_map(up).collect();
        let mut all = vec![];
        if self.tiled {
            all.extend(partial);
            all.extend(fitting.iter().flat_map(|v| [v.checked_add(div), Some(*v)]).flatten());
        }
        all.extend(usual);
        all.extend((0..FEW).filter_map(|i| up(lo)?.checked_add(i.checked_mul(div)?)));
        all.extend(partial);
        all.extend(fitting);
        all.extend(most);
        info.in_range(all)
    }
}

/// Numbers of iterations for symbols that bound loops but not the grid. They let the largest ring
/// of tiles in shared memory wrap around, so that tiles overwritten too early show.
fn turns(p: &Program, kernel: SpecId) -> BTreeMap<VarId, i64> {
    /// The deepest ring that is considered.
    const DEEPEST: i64 = 16;
    let stages = p.walk_body(kernel).stmts().filter_map(|stmt| match stmt.kind {
        StmtKind::Allocate(t) => {
            let tensor = &p.tensors[t];
            let shared = p.buffers[tensor.buffer].is_shared();
            let stages = tensor.levels.first()?.size_in(&p.arena).ok()?.as_const()?;
            (shared && tensor.levels.len() > 1).then_some(stages)
        }
        _ => None,
    });
    let deepest = stages.filter(|n| (2..=DEEPEST).contains(n)).max().unwrap_or(1);
    let grid: BTreeSet<VarId> = grid(p, kernel).into_iter().flat_map(|n| p.vars_in(n)).collect();
    let ends = p.walk_body(kernel).stmts().filter_map(|stmt| match &stmt.kind {
        StmtKind::For { end, .. } => Some(*end),
        _ => None,
    });
    let bounds = ends.flat_map(|end| p.vars_in(end));
    let symbols = bounds.filter(|v| p.symbols.contains(v) && !grid.contains(v));
    symbols.map(|v| (v, deepest + 1)).collect()
}

/// Numbers of iterations as in `turns`, and for symbols that bound loops starting at the block's
/// number, numbers that give each block two iterations.
fn again(p: &Program, kernel: SpecId, turns: &BTreeMap<VarId, i64>) -> BTreeMap<VarId, i64> {
    let mut all = turns.clone();
    for stmt in p.walk_body(kernel).stmts() {
        let StmtKind::For { start, end, step, .. } = &stmt.kind else { continue };
        if *step < 2 || !is_of_block(p, *start, 0) {
            continue;
        }
        let symbols: Vec<VarId> =
            p.vars_in(*end).into_iter().filter(|v| p.symbols.contains(v)).collect();
        // The product over all symbols must be large enough.
        let enough = (1..=2 * step + 1)
            .find(|n| n.checked_pow(symbols.len() as u32).is_none_or(|all| all > 2 * step));
        let wanted = symbols.into_iter().zip(enough.into_iter().cycle());
        all.extend(wanted);
    }
    all
}

/// The symbols that are extents of the grid by themselves.
fn batches(p: &Program, kernel: SpecId) -> BTreeSet<VarId> {
    grid(p, kernel).into_iter().filter_map(|extent| p.arena.var_id(extent)).collect()
}

/// The extents of a kernel's grid.
fn grid(p: &Program, kernel: SpecId) -> Vec<Dim> {
    let Some(exec) = p.specs[kernel].exec else { return vec![] };
    p.threads[exec.blocks].concat().leaves().iter().map(|(extent, _)| *extent).collect()
}

/// The largest constant that divides each symbol in an expression for the number of blocks or
/// iterations.
fn tiles(p: &Program, kernel: SpecId) -> BTreeMap<VarId, i64> {
    let mut found: BTreeMap<VarId, i64> = BTreeMap::new();
    let mut stack = grid(p, kernel);
    for stmt in p.walk_body(kernel).stmts() {
        if let StmtKind::For { start, end, .. } = &stmt.kind {
            stack.extend([*start, *end]);
        }
    }
    while let Some(dim) = stack.pop() {
        let Dim::Expr(id) = dim else { continue };
        let node = p.arena.node(id);
        if let Node::Div(a, b) | Node::Mod(a, b) | Node::CeilDiv(a, b) = node
            && let Dim::Const(tile @ 2..=MAX_TILE) = b
        {
            for var in p.vars_in(a).into_iter().filter(|v| p.symbols.contains(v)) {
                let most = found.entry(var).or_insert(tile);
                *most = tile.max(*most);
            }
        }
        stack.extend(node.operands());
    }
    found
}

/// Whether an expression depends on the block.
fn is_of_block(p: &Program, dim: Dim, depth: usize) -> bool {
    p.vars_in(dim).into_iter().any(|v| match p.vars.get(&v) {
        Some(VarKind::Block(_)) => true,
        Some(VarKind::Index(of)) if depth < 64 => is_of_block(p, *of, depth + 1),
        _ => false,
    })
}
