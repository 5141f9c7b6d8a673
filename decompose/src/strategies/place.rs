//! [`Place`] says where the tile lies on which a strategy's sub-spec is used, and makes the views
//! of other operands at that place.

use super::graph::Source;
use crate::numbers::{Numbers, eval};
use crate::strategies::unwritten::Unwritten;
use carbyne_ir::ast::{BinOp, CmpOp, Compare, Expr, ExprKind, Pad, Tiler, View, ViewOp};

/// Where a tile is: what is cut from the operand that is tiled, one after the other.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Of the operand that is tiled.
    extents: Vec<i64>,
    cuts: Vec<Cut>,
    /// Extents of the tile.
    tile: Vec<i64>,
    /// The same less what a mode may have before its first element.
    held: Vec<i64>,
}

#[derive(Clone, Debug)]
enum Cut {
    /// Of each mode the extent of a tile, all where there is none, and which one it is.
    Tile(Vec<(Option<i64>, Expr)>),
    /// Elements before the first of each mode; none behind.
    Pad(Vec<Expr>),
}

impl Place {
    /// All of an operand.
    pub(super) fn whole(extents: &[i64]) -> Self {
        let extents = extents.to_vec();
        Place { cuts: vec![], tile: extents.clone(), held: extents.clone(), extents }
    }

    /// Of a view that has these operations behind the operand's own.
    pub(super) fn of(ops: &[ViewOp], extents: &[i64]) -> Option<Self> {
        let mut cuts = vec![];
        let (mut left, mut before) = (extents.to_vec(), vec![0; extents.len()]);
        let mut at = 0;
        while at < ops.len() {
            if let ViewOp::Pad(pad) = &ops[at] {
                let numbers = &pad.before;
                if numbers.len() != left.len() || !pad.behind.is_empty() || pad.value.is_some() {
                    return None;
                }
                for ((n, left), before) in numbers.iter().zip(&mut left).zip(&mut before) {
                    let most = most_of(n)?;
                    *before += most;
                    *left = left.checked_add(most)?;
                }
                cuts.push(Cut::Pad(numbers.clone()));
                at += 1;
                continue;
            }
            let (ViewOp::Tile(Tiler::Sizes(sizes)), Some(ViewOp::Index(index))) =
                (&ops[at], ops.get(at + 1))
            else {
                return None;
            };
            if sizes.len() != left.len() || index.len() != left.len() {
                return None;
            }
            let mut cut = vec![];
            for ((size, i), left) in sizes.iter().zip(index).zip(&mut left) {
                let size = size.as_ref().map(|e| eval(e, &Numbers::new()));
                if let Some(size) = size {
                    *left = size?;
                }
                cut.push((size.flatten(), i.clone()?));
            }
            cuts.push(Cut::Tile(cut));
            at += 2;
        }
        let held = left.iter().zip(&before).map(|(left, before)| left - before).collect();
        Some(Place { extents: extents.to_vec(), cuts, tile: left, held })
    }

    /// Of an operand of these extents the tile at the same place.
    pub(super) fn view(&self, source: &Source, own: &[i64]) -> Result<View, Unwritten> {
        let mut view = source.view.clone();
        if own.is_empty() {
            return Ok(view);
        }
        if own.len() != self.extents.len() {
            return Err(Unwritten::Modes);
        }
        let is_whole = |m: usize| own[m] == self.extents[m];
        for cut in &self.cuts {
            let cut = match cut {
                Cut::Tile(cut) => cut,
                Cut::Pad(numbers) => {
                    let of = |(m, n): (usize, &Expr)| match is_whole(m) {
                        true => n.clone(),
                        false => Expr::int(0),
                    };
                    let before = numbers.iter().enumerate().map(of).collect();
                    view.ops.push(ViewOp::Pad(Box::new(Pad {
                        before,
                        behind: vec![],
                        value: None,
                    })));
                    continue;
                }
            };
            let (mut sizes, mut index) = (vec![], vec![]);
            for (m, (size, at)) in cut.iter().enumerate() {
                if is_whole(m) {
                    sizes.push(size.map(Expr::int));
                    index.push(Some(at.clone()));
                } else {
                    // One element, which is broadcast, or all of a mode that the strategy's operand
                    // has not.
                    sizes.push((own[m] == 1).then(|| Expr::int(1)));
                    index.push(Some(Expr::int(0)));
                }
            }
            view.ops.extend([ViewOp::Tile(Tiler::Sizes(sizes)), ViewOp::Index(index)]);
        }
        Ok(view)
    }

    /// Extents of the tile of a value.
    pub(super) fn extents_of(&self, own: &[i64]) -> Vec<i64> {
        self.of_value(&self.tile, own)
    }

    /// How many elements of each mode of a value the tile has at least, from the first.
    pub(super) fn held_of(&self, own: &[i64]) -> Vec<i64> {
        self.of_value(&self.held, own)
    }

    /// Whether its operand is that of another place, with more elements where that has one along a
    /// mode.
    pub(super) fn is_wider_than(&self, other: &Place) -> bool {
        let modes = || self.extents.iter().zip(&other.extents);
        self.extents.len() == other.extents.len()
            && modes().all(|(own, other)| own == other || *other == 1)
            && modes().any(|(own, other)| own != other)
    }

    /// Whether the tile has several elements along a mode of extent 1.
    pub(super) fn is_padded(&self, mode: usize) -> bool {
        self.extents.get(mode) == Some(&1) && self.tile.get(mode).is_some_and(|n| *n > 1)
    }

    fn of_value(&self, tile: &[i64], own: &[i64]) -> Vec<i64> {
        let whole = self.extents.iter().zip(tile);
        own.iter()
            .zip(whole)
            .map(|(own, (of, tile))| if own == of { *tile } else { *own })
            .collect()
    }

    /// What holds for one of the blocks that have an operand at this place in common, and for no
    /// other.
    pub(super) fn first_of(&self, own: &[i64], once: &[String]) -> Vec<Compare> {
        let mut left = self.extents.clone();
        let mut out: Vec<Expr> = once.iter().map(Expr::name).collect();
        for cut in &self.cuts {
            let Cut::Tile(cut) = cut else { continue };
            for (m, (size, at)) in cut.iter().enumerate() {
                let size = size.unwrap_or(left[m]);
                if own.get(m).is_some_and(|e| *e != self.extents[m]) && size < left[m] {
                    out.push(at.clone());
                }
                left[m] = size;
            }
        }
        out.into_iter().map(|lhs| Compare { lhs, op: CmpOp::Eq, rhs: Expr::int(0) }).collect()
    }
}

/// How large a number of elements before the first may be: a constant, or a remainder of one.
fn most_of(n: &Expr) -> Option<i64> {
    let constant = |e: &Expr| eval(e, &Numbers::new());
    match &n.kind {
        ExprKind::Bin(BinOp::Mod, _, by) => constant(by)?.checked_sub(1),
        _ => constant(n),
    }
}
