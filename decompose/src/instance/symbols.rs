//! Symbols, as strategies see them: numbers that stand for them, near to what they usually are and divided by no more than
//! all of their values, so that matching and ranking are those of constant sizes. What is written of a strategy names the symbols again.
//!
//! Invariant: no two extents of a module that may differ have the same number.

use super::choose::Match;
use super::padded;
use super::params::{self, Numbers};
use carbyne_ir::ast::visit::{Part, Walk, parts};
use carbyne_ir::ast::{BinOp, CmpOp, Compare, Expr, ExprKind, Module, Stmt, StmtKind, ViewOp};
use carbyne_ir::expr::VarId;
use carbyne_ir::program::{MeansInput, Operand, Program};
use std::collections::{BTreeMap, BTreeSet};

/// A size of which nothing else is said.
const USUAL: i64 = 4096;
/// How far numbers are put apart.
const APART: i64 = 64;
/// How many numbers are tried for one symbol.
const MOST_TRIED: i64 = 64;
/// How many tiles there may be in tests of conditions: they hold for all numbers of tiles, or for few of these.
const TILES: [i64; 8] = [1, 2, 3, 5, 7, 12, 31, 64];

/// Numbers that stand for symbols.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    /// What each number stands for, and the most that can be.
    of: BTreeMap<i64, (Expr, Option<i64>)>,
    values: BTreeMap<VarId, i64>,
}

impl Symbols {
    /// For a program; none where it has no symbols, or where no numbers do.
    pub(crate) fn of(p: &Program) -> Option<Self> {
        if p.symbols.is_empty() {
            return None;
        }
        // What is computed of symbols has no number of its own.
        let sizes = p.specs.iter().filter_map(|(_, s)| s.means.as_ref()).flat_map(|m| &m.steps);
        let mut sizes = sizes.flat_map(|s| &s.inputs).filter_map(|input| match input {
            MeansInput::Size(d) => Some(*d),
            MeansInput::Value(_) | MeansInput::Number(_) => None,
        });
        if sizes.any(|d| p.arena.var_id(d).is_none()) {
            return None;
        }
        let mut taken = constants(p);
        let mut all = Symbols::default();
        for symbol in &p.symbols {
            let info = p.arena.var_info(*symbol);
            let typical = p.typical.iter().find(|(v, _)| v == symbol).map(|(_, n)| *n);
            let first = typical.unwrap_or(USUAL);
            let most = info.hi.unwrap_or(i64::MAX / 2);
            let fits = |n: &i64, all: &Symbols| {
                *n >= info.lo.max(1)
                    && *n <= most
                    && n % info.div.max(1) == 0
                    && !taken.contains(n)
                    && p.check_facts(&|v| {
                        if v == *symbol { Some(*n) } else { all.values.get(&v).copied() }
                    })
                    .is_ok()
            };
            // Nothing divides them but what divides all values, so that what is chosen for them is for all.
            let unit = info.div.clamp(1, i64::MAX / 4);
            let step = (APART as u64).next_multiple_of(2 * unit as u64) as i64;
            let multiple = first.min(most) / unit;
            let start = (multiple - 1 + multiple % 2) * unit;
            let near = (0..MOST_TRIED).flat_map(|k| {
                let apart = k.saturating_mul(step);
                [start.saturating_add(apart), start.saturating_sub(apart)]
            });
            let small = (1..=MOST_TRIED).map(|k| k.saturating_mul(unit));
            let n = near.chain(small).find(|n| fits(n, &all))?;
            taken.insert(n);
            all.values.insert(*symbol, n);
            all.of.insert(n, (Expr::name(info.name), info.hi));
        }
        Some(all)
    }

    /// The module with numbers in the places of the symbols.
    pub(crate) fn put(&self, p: &Program, module: &Module) -> Module {
        let mut module = module.clone();
        let number = |name: &str| {
            let symbol = p.symbols.iter().find(|s| p.arena.var_info(**s).name == name)?;
            self.values.get(symbol).copied()
        };
        for stmt in &mut module.items {
            let names = match &stmt.kind {
                StmtKind::Sym(sym) => vec![sym.name.clone()],
                StmtKind::Symbols(all) => all.names.clone(),
                _ => continue,
            };
            let defined = names.into_iter().filter_map(|name| {
                let n = number(&name.text)?;
                Some((name, Expr::int(n)))
            });
            stmt.kind = StmtKind::Let(defined.collect());
        }
        module
    }

    /// What a number stands for, if it does.
    pub(crate) fn expression(&self, n: i64) -> Option<&Expr> {
        self.of.get(&n).map(|(e, _)| e)
    }

    /// The most that each number that stands for a symbol can be.
    pub(crate) fn bounds(&self) -> BTreeMap<i64, Option<i64>> {
        self.of.iter().map(|(n, (_, most))| (*n, *most)).collect()
    }

    /// Whether a statement has a view whose extents are numbers that stand for symbols.
    pub(crate) fn are_in(&self, stmt: &Stmt) -> bool {
        let mut found = false;
        let inner = Walk::new(std::slice::from_ref(stmt)).stmts();
        for stmt in inner {
            parts(stmt, &mut |part| {
                let Part::View(view, _) = part else { return };
                let shapes = view.ops.iter().filter_map(|op| match op {
                    ViewOp::Reshape(layout) => Some(&layout.shape),
                    _ => None,
                });
                for e in shapes.flat_map(params::leaves) {
                    found |= matches!(e.kind, ExprKind::Int(n) if self.of.contains_key(&n));
                }
            });
        }
        found
    }

    /// What the numbers of a strategy are written as where they stand for symbols: extents are rounded up to whole tiles.
    /// None where a condition that makes tiles whole does not hold for every number of tiles.
    pub(super) fn written(
        &self,
        m: &Match<'_>,
        numbers: &Numbers,
    ) -> Option<BTreeMap<String, Expr>> {
        let extents = padded::extents_of(m.def);
        let mut out = BTreeMap::new();
        let strategy = m.def.strategy.as_deref()?;
        for (name, n) in &m.found.numbers {
            let Some(e) = self.expression(*n) else { continue };
            if !extents.contains(name) {
                out.insert(name.clone(), e.clone());
                continue;
            }
            let chosen = m.def.params.iter().filter(|p| p.choices.is_some());
            let mut units: Vec<i64> =
                chosen.filter_map(|p| numbers.get(&p.name.text)).copied().collect();
            units.extend([16, 32, 64, 128, 256, 512, 1024]);
            units.retain(|u| (1..=8192).contains(u));
            units.sort_unstable();
            units.dedup();
            let about: Vec<&Compare> = strategy
                .conditions
                .iter()
                .filter(|c| c.op == CmpOp::Eq && names(c, name))
                .collect();
            let whole = |u: &i64| {
                about.iter().all(|c| {
                    TILES.iter().all(|tiles| {
                        let mut numbers = numbers.clone();
                        numbers.insert(name.clone(), u * tiles);
                        let side = |e| params::eval(e, &numbers);
                        side(&c.lhs).is_some() && side(&c.lhs) == side(&c.rhs)
                    })
                })
            };
            let unit = units.into_iter().find(whole)?;
            let tiles = Expr::bin(BinOp::CeilDiv, e.clone(), Expr::int(unit));
            out.insert(name.clone(), Expr::bin(BinOp::Mul, tiles, Expr::int(unit)));
        }
        Some(out)
    }
}

fn names(c: &Compare, name: &str) -> bool {
    params::names(&c.lhs, name) || params::names(&c.rhs, name)
}

/// Constant extents and strides of tensors, and whole numbers among operands.
fn constants(p: &Program) -> BTreeSet<i64> {
    let layouts = p.tensors.iter().map(|(_, t)| t.concat());
    let mut all = BTreeSet::new();
    for layout in layouts {
        for (extent, stride) in layout.leaves() {
            all.extend(extent.as_const());
            all.extend(stride.as_const());
        }
    }
    let inputs = p.specs.iter().flat_map(|(_, spec)| {
        let own = spec.inputs.iter().filter_map(|input| match input {
            Operand::Number(n) => Some(*n),
            Operand::Tensor(_) => None,
        });
        let means = spec.means.iter().flat_map(|m| &m.steps).flat_map(|s| &s.inputs);
        own.chain(means.filter_map(|input| match input {
            MeansInput::Number(n) => Some(*n),
            MeansInput::Value(_) | MeansInput::Size(_) => None,
        }))
    });
    all.extend(inputs.filter(|n| n.fract() == 0.0 && n.abs() < 1e15).map(|n| n as i64));
    all
}
