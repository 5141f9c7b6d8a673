//! Why no choice is as asked, and what would be.

use super::{Extents, MOST_THREADS, Problem, SMALLEST, TooMuch, WIDEST};
use crate::matching::Mismatch;
use crate::solve::ops;
use carbyne_atoms::bind;
use carbyne_atoms::{Atom, AtomOp, AtomTable};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Program, SpecId};
use carbyne_ir::scalar::Memory;

/// What the text states of the choice.
pub(super) struct Pins {
    /// `tile=`
    pub(super) tile: Option<Vec<i64>>,
    /// `warps=`
    warps: Option<Vec<i64>>,
    /// Blocks along the modes of the grid.
    pub(super) grid: Option<Vec<i64>>,
    /// Threads of a block.
    threads: Option<i64>,
}

impl Pins {
    pub(super) fn of(p: &Program, id: SpecId) -> Self {
        let spec = &p.specs[id];
        let grid = spec.exec.map(|e| {
            let grid = p.threads[e.blocks].concat();
            grid.modes().iter().filter_map(|m| m.to_fixed().map(|m| m.size())).collect()
        });
        Pins {
            tile: spec.ints("tile").map(<[i64]>::to_vec),
            warps: spec.ints("warps").map(<[i64]>::to_vec),
            grid,
            threads: spec.exec.map(|_| ops::block_threads(p, id)),
        }
    }

    /// Whether they allow these groups, of so many threads each.
    pub(super) fn allow(&self, groups: (i64, i64), group: i64) -> bool {
        let warps = match self.warps.as_deref() {
            None => true,
            Some([w]) => groups.0 * groups.1 == *w,
            Some([a, b]) => groups == (*a, *b),
            Some(_) => false,
        };
        warps && self.threads.is_none_or(|n| n == groups.0 * groups.1 * group)
    }
}

/// `64, 32`
fn list(numbers: &[i64]) -> String {
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(", ")
}

impl Problem<'_> {
    fn refused(&self, code: Code, message: String, label: String, help: String) -> Diagnostic {
        Diagnostic::new(code, self.p.specs[self.id].span, message).label(label).help(help)
    }

    /// A row is pinned that the strategy cannot use: in what it differs, and which it can.
    pub(super) fn not_by(&self, name: &str, rows: &[&Atom], table: &AtomTable) -> Diagnostic {
        let differs = |atom: &Atom| {
            if let Err(m) = bind::operation(SpecKind::MatMul, atom) {
                return m.to_string();
            }
            let apart = atom.operands.iter().find(|o| !o.allows(Memory::Rf));
            let from = apart.map(Mismatch::from_memory);
            let m = self.scalar_mismatch(atom).or(from);
            m.map_or_else(|| "its threads are not neighbors".to_owned(), |m| m.to_string())
        };
        let can: Vec<String> = rows.iter().map(|r| format!("`{}`", r.name)).collect();
        let message =
            format!("no strategy decomposes this {} with `{name}`", self.p.specs[self.id].kind);
        let help = format!("pin {}, or write the body", can.join(" or "));
        let label = table.get(name).map(differs).unwrap_or_default();
        self.refused(Code::AtomMismatch, message, label, help)
    }

    /// No tile is as asked; `why` is what was wrong with the last that had the right extents.
    pub(super) fn no_tile(&self, rows: &[&Atom], pins: &Pins, why: Option<TooMuch>) -> Diagnostic {
        let (m, n, k) = self.size;
        let inst = |atom: &Atom| match atom.op {
            AtomOp::MatMul { m, n, k, .. } => (m, n, k),
            AtomOp::Move
            | AtomOp::Accumulate(_)
            | AtomOp::Unary(_)
            | AtomOp::Binary(_)
            | AtomOp::Select
            | AtomOp::Reduction(_)
            | AtomOp::Shfl(_)
            | AtomOp::Init
            | AtomOp::Sync(_)
            | AtomOp::Barrier(_)
            | AtomOp::Elect => (1, 1, 1),
        };
        // The row that the fewest extents do not fit, the smallest of several.
        let near = |atom: &&&Atom| {
            let (m, n, k) = inst(atom);
            (self.odd((m, n, k)).len(), m * n * k)
        };
        let Some(atom) = rows.iter().min_by_key(near) else {
            let label = why.map(|why| why.to_string()).unwrap_or_default();
            return self.refused(Code::NoStrategy, "it has no rows".into(), label, String::new());
        };
        let (inst, name) = (inst(atom), atom.name);
        let odd = self.odd(inst);
        if !odd.is_empty() && pins.tile.is_none() {
            let said =
                odd.iter().map(|(name, size, u)| format!("{name} = {size} is no multiple of {u}"));
            let near = odd.iter().map(|(name, size, u)| format!("{name} = {}", (size / u + 1) * u));
            return self.refused(
                Code::PinsConflict,
                format!("no tiles of `{name}` fill a MatMul of {m}x{n}x{k}"),
                said.collect::<Vec<_>>().join(", "),
                format!(
                    "pad with zeros: the next that fits is {}",
                    near.collect::<Vec<_>>().join(", ")
                ),
            );
        }
        let message =
            format!("no block tile of a MatMul of {m}x{n}x{k} satisfies all that is asked");
        let (label, help) = self
            .pinned_tile(inst, name, pins)
            .or_else(|| self.pinned_grid(inst, pins))
            .or_else(|| {
                let help = "choose a smaller tile, or more threads".to_owned();
                why.map(|why| (why.to_string(), help))
            })
            .unwrap_or_else(|| threads(pins, atom));
        self.refused(Code::PinsConflict, message, label, help)
    }

    /// Extents that no tile of the instruction divides: name, size, and what they must be a multiple of.
    fn odd(&self, inst: Extents) -> Vec<(&'static str, i64, i64)> {
        let (m, n, k) = self.size;
        let all = [("M", m, inst.0), ("N", n, inst.1), ("K", k, inst.2)];
        let units = all.into_iter().map(|(name, size, i)| (name, size, i.max(SMALLEST)));
        units.filter(|(_, size, u)| size % u != 0).collect()
    }

    /// What is wrong with `tile=`, and what to write.
    fn pinned_tile(&self, inst: Extents, atom: &str, pins: &Pins) -> Option<(String, String)> {
        let tile = pins.tile.as_ref()?;
        let (m, n, k) = self.size;
        let of = [("M", m, inst.0), ("N", n, inst.1), ("K", k, inst.2)];
        let wrong = if tile.len() == of.len() {
            of.iter().zip(tile).find_map(|((name, size, i), t)| {
                if *t < 1 || size % t != 0 {
                    return Some(format!("{t} does not divide {name} = {size}"));
                }
                let odd = t % i != 0;
                odd.then(|| {
                    format!("{t} along {name} is no multiple of {i}, the extent of `{atom}`")
                })
            })?
        } else {
            format!("`tile=({})` has not three numbers", list(tile))
        };
        let (im, inn, ik) = inst;
        let help = format!(
            "write `tile=(m,n,k)`: the tile must divide the problem and be a multiple of ({im},{inn},{ik}), the \
             extents of `{atom}`, times the warps along m and n"
        );
        Some((wrong, help))
    }

    /// What is wrong with the grid, and what to write.
    fn pinned_grid(&self, inst: Extents, pins: &Pins) -> Option<(String, String)> {
        let grid = pins.grid.as_ref()?;
        let tiles = self.tiles(inst, pins.tile.as_deref());
        if tiles.iter().any(|tile| self.grid(*tile) == *grid) {
            return None;
        }
        let label = format!("no tile of C leaves a grid of ({})", list(grid));
        let help = match tiles.last() {
            Some(tile) if pins.tile.is_some() => {
                format!("with this tile the grid is ({})", list(&self.grid(*tile)))
            }
            _ => format!(
                "the grid is (M / m, N / n) of a tile of m by n, a multiple of ({},{}) of at most {WIDEST} each; \
                 without `<<<..>>>` it is chosen",
                inst.0, inst.1
            ),
        };
        Some((label, help))
    }
}

/// That the threads do not share a tile, and how many would.
fn threads(pins: &Pins, atom: &Atom) -> (String, String) {
    let label = match (&pins.warps, pins.threads) {
        (Some(w), Some(n)) => format!("{n} threads are not those of `warps=({})`", list(w)),
        (Some(w), None) => format!("no tile comes apart for `warps=({})`", list(w)),
        (None, Some(n)) => format!("no tile comes apart for {n} threads"),
        (None, None) => String::new(),
    };
    let help = format!(
        "take a multiple of {} threads, at most {MOST_THREADS}, of which as many stand along m and n as divide \
         the tile",
        atom.group.max(32)
    );
    (label, help)
}
