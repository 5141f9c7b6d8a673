//! Puts numbers in the places of a program's symbols for the strategies ([`Symbols`]), so that
//! matching and ranking are those of constant sizes. The numbers are near to the usual values and
//! divided by no more than all values of the symbol. The statements that a strategy writes name the
//! symbols again.
//!
//! Invariant: no two extents of a module that may differ have the same number.

use super::extents;
use super::params::{self};
use super::sizes::{Said, Sizes, Unsized};
use crate::numbers::Numbers;
use crate::numbers::eval;
use crate::strategies::extents::is_apart;
use crate::strategies::matched::Match;
use carbyne_ir::ast::visit::{Part, Walk, parts};
use carbyne_ir::ast::{
    self, BinOp, Call, CmpOp, Compare, Expr, ExprKind, Module, Spec, Stmt, StmtKind, ViewOp,
};
use carbyne_ir::diag::Diagnostics;
use carbyne_ir::expr::{Dim, VarId};
use carbyne_ir::program::{MeansInput, Operand, Program};
use carbyne_ir::text::print_number;
use std::collections::{BTreeMap, BTreeSet};

/// The largest numbers that are tried, one after the other: of large ones a tensor may have more
/// elements than can be counted, and what is computed of some may be a number that stands for
/// something else.
const LARGEST: [i64; 6] = [i64::MAX, 1 << 20, 4096, 3000, 1000, 250];
/// How many tiles there may be in tests of conditions: they hold for all numbers of tiles, or for
/// few of these.
const TILES: [i64; 8] = [1, 2, 3, 5, 7, 12, 31, 64];

/// What is computed of symbols and has fewer values than this may have none that is its own.
const FEW: i64 = 64;

/// Numbers that stand for symbols.
#[derive(Clone, Debug, Default)]
pub(crate) struct Symbols {
    /// What each number stands for, and the most that can be.
    of: BTreeMap<i64, (Expr, Option<i64>)>,
    /// The least that what it stands for can be.
    least: BTreeMap<i64, i64>,
    values: BTreeMap<VarId, i64>,
}

impl Symbols {
    /// The best for a program of those that are of use: such that all facts hold, or else others.
    /// None where it has no symbols.
    ///
    /// # Errors
    /// Why there are none.
    pub(crate) fn find<T>(
        p: &Program,
        of_use: impl Fn(&Self) -> Result<T, Diagnostics>,
    ) -> Result<Option<(Self, T)>, Unsized> {
        if p.symbols.is_empty() {
            return Ok(None);
        }
        let constants = constants(p);
        let said = Said::of(p)?;
        let ways = [true, false].into_iter().flat_map(|kept| LARGEST.map(|n| (kept, n)));
        let mut refused = None;
        for (kept, largest) in ways {
            let sizes = match kept {
                true => said.kept(&constants, largest),
                false => said.free(&constants, largest),
            };
            let found = sizes.and_then(|sizes| Symbols::of(p, sizes, &constants));
            let Some(symbols) = found else { continue };
            match of_use(&symbols) {
                Ok(made) => return Ok(Some((symbols, made))),
                Err(errors) => {
                    let first = errors.into_iter().next();
                    refused = refused.or(first.map(|d| Unsized::Refused(Box::new(d))));
                }
            }
        }
        let ambiguous = || {
            let of_few = |d: &&Dim| match p.arena.range(**d) {
                (Some(least), Some(most)) => most.saturating_sub(least) < FEW,
                _ => false,
            };
            let all = computed_of(p);
            let few = all.iter().find(of_few).and_then(|d| p.expression(*d));
            few.map_or(Unsized::Ambiguous, |e| Unsized::Few(print_number(&e)))
        };
        Err(refused.unwrap_or_else(ambiguous))
    }

    /// With these numbers; none where one would stand for two things.
    fn of(p: &Program, sizes: Sizes, constants: &BTreeSet<i64>) -> Option<Self> {
        let mut all = Symbols::default();
        for symbol in &p.symbols {
            let n = *sizes.values.get(symbol)?;
            // What a symbol always is may stand in the text for itself.
            let stands_for_itself = constants.contains(&n) || (-1..=1).contains(&n);
            if !(sizes.fixed.contains(symbol) && stands_for_itself) {
                let info = p.arena.var_info(*symbol);
                let name = Expr::name(info.name);
                all.least.entry(n).or_insert(info.lo);
                all.of.entry(n).or_insert((name, sizes.most.get(symbol).copied()));
            }
            all.values.insert(*symbol, n);
        }
        // What is computed of symbols has a number of its own.
        let mut computed: BTreeMap<i64, Dim> = BTreeMap::new();
        for d in computed_of(p) {
            let n = p.arena.eval(d, &|v| all.values.get(&v).copied()).ok()?;
            if computed.get(&n) == Some(&d) {
                continue;
            }
            if (-1..=1).contains(&n) || constants.contains(&n) || all.of.contains_key(&n) {
                return None;
            }
            let (least, most) = p.arena.range(d);
            all.least.extend(least.map(|least| (n, least)));
            all.of.insert(n, (p.expression(d)?, most));
            computed.insert(n, d);
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
        let known = self.values.iter().map(|(symbol, n)| (p.arena.var_info(*symbol).name, *n));
        whole(&mut module.items, known.collect());
        module
    }

    /// What a number stands for, if it does.
    pub(crate) fn expression(&self, n: i64) -> Option<&Expr> {
        self.of.get(&n).map(|(e, _)| e)
    }

    /// The least that what a number stands for can be.
    pub(crate) fn least(&self, n: i64) -> Option<i64> {
        self.least.get(&n).copied()
    }

    /// What the symbols are without an upper bound, else the first of all; as text.
    pub(crate) fn unbounded(&self) -> Option<(String, bool)> {
        let found = self.of.values().find(|(_, most)| most.is_none());
        let (of, most) = found.or_else(|| self.of.values().next())?;
        Some((print_number(of), most.is_none()))
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

    /// What the numbers of a strategy are written as where they stand for symbols: extents are
    /// rounded up to whole tiles, if it has tiles. None where a condition that makes tiles whole
    /// does not hold for every number of tiles.
    pub(super) fn written(
        &self,
        m: &Match<'_>,
        numbers: &Numbers,
    ) -> Option<BTreeMap<String, Expr>> {
        let (extents, apart) = (extents::extents_of(m.def), is_apart(m.def));
        let mut out = BTreeMap::new();
        let strategy = m.def.strategy.as_deref()?;
        for (name, n) in &m.found.numbers {
            let Some(e) = self.expression(*n) else { continue };
            let is_extent = extents.contains(name) && !apart;
            if !is_extent || !extents::is_tiled(m.def, name) {
                // A tile that holds the longest row has a number of elements.
                let most = self.of.get(n).and_then(|(_, most)| *most);
                let is_longest = |own: &i64| own != n || most == Some(*n);
                if !(is_extent && numbers.get(name).is_some_and(is_longest)) {
                    out.insert(name.clone(), e.clone());
                }
                continue;
            }
            let chosen = m.def.params.iter().filter(|p| p.choices.is_some());
            let mut units: Vec<i64> =
                chosen.filter_map(|p| numbers.get(&p.name.text)).copied().collect();
            units.extend([16, 32, 64, 128, 256, 512, 1024]);
            units.retain(|u| (1..=extents::LONGEST).contains(u));
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
                        let side = |e| eval(e, &numbers);
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

/// Evaluates what operands and definitions compute of symbols: with these it is an integer, of
/// constants it would be a real number where a spec takes one.
fn whole(stmts: &mut [Stmt], mut known: Numbers) {
    let mut symbolic: BTreeSet<String> = known.keys().cloned().collect();
    let number = |e: &Expr, known: &Numbers, symbolic: &BTreeSet<String>| {
        let of_symbols = symbolic.iter().any(|name| params::names(e, name));
        eval(e, known).map(|n| (n, of_symbols))
    };
    let mut todo: Vec<&mut Stmt> = stmts.iter_mut().rev().collect();
    while let Some(stmt) = todo.pop() {
        match &mut stmt.kind {
            StmtKind::Let(defs) => {
                for (name, e) in defs {
                    let Some((n, of_symbols)) = number(e, &known, &symbolic) else { continue };
                    known.insert(name.text.clone(), n);
                    if of_symbols {
                        symbolic.insert(name.text.clone());
                        *e = Expr::int(n);
                    }
                }
            }
            StmtKind::Spec(Spec { inputs, .. }) | StmtKind::Call(Call { inputs, .. }) => {
                for input in inputs {
                    if let ast::Operand::Value(e) = &*input
                        && let Some((n, true)) = number(e, &known, &symbolic)
                    {
                        let span = e.span;
                        *input = ast::Operand::Number(ast::Number { text: n.to_string(), span });
                    }
                }
            }
            _ => {}
        }
        let at = todo.len();
        todo.extend(stmt.kind.blocks_mut().flat_map(|b| &mut b.stmts));
        todo[at..].reverse();
    }
}

fn names(c: &Compare, name: &str) -> bool {
    params::names(&c.lhs, name) || params::names(&c.rhs, name)
}

/// Sizes in `means` blocks and extents of tensors that are neither symbols nor numbers.
fn computed_of(p: &Program) -> Vec<Dim> {
    let steps = p.specs.iter().filter_map(|(_, s)| s.means.as_ref()).flat_map(|m| &m.steps);
    let sizes = steps.flat_map(|s| &s.inputs).filter_map(|input| match input {
        MeansInput::Size(d) => Some(*d),
        MeansInput::Value(_) | MeansInput::Number(_) => None,
    });
    let mut all: Vec<Dim> = sizes.collect();
    for (_, tensor) in p.tensors.iter() {
        all.extend(tensor.concat().leaves().iter().map(|(extent, _)| *extent));
    }
    let is_symbol = |d: &Dim| p.arena.var_id(*d).is_some();
    all.retain(|d| d.as_const().is_none() && !is_symbol(d));
    let only_symbols = |d: &Dim| p.arena.vars_of(*d).iter().all(|v| p.symbols.contains(v));
    all.retain(only_symbols);
    all.dedup();
    all
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
