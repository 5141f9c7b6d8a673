//! Where the tile is that a strategy's sub-spec is used on, and what lies there of other operands.

use super::chain::Unwritten;
use super::graph::Source;
use super::params::{Numbers, eval};
use carbyne_ir::ast::{CmpOp, Compare, Expr, Tiler, View, ViewOp};

/// Where a tile is: of each mode the extent of the tile and which one it is, once for every `.tile` and index.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Of the operand that is tiled.
    pub(super) extents: Vec<i64>,
    /// The tile within the one before.
    pub(super) cuts: Vec<Vec<(i64, Expr)>>,
}

impl Place {
    /// Of a view that has these operations behind the operand's own.
    pub(super) fn of(ops: &[ViewOp], extents: &[i64]) -> Option<Self> {
        let mut cuts = vec![];
        let mut left = extents.to_vec();
        let mut at = 0;
        while at < ops.len() {
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
                let size = match size {
                    Some(e) => eval(e, &Numbers::new())?,
                    None => *left,
                };
                *left = size;
                cut.push((size, i.clone()?));
            }
            cuts.push(cut);
            at += 2;
        }
        Some(Place { extents: extents.to_vec(), cuts })
    }

    /// Extents of the tile.
    pub(super) fn tile(&self) -> Vec<i64> {
        self.cuts
            .last()
            .map_or_else(|| self.extents.clone(), |c| c.iter().map(|(n, _)| *n).collect())
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
        for cut in &self.cuts {
            let (mut sizes, mut index) = (vec![], vec![]);
            for (m, (size, at)) in cut.iter().enumerate() {
                if own[m] == self.extents[m] {
                    sizes.push(Some(Expr::int(*size)));
                    index.push(Some(at.clone()));
                } else {
                    // One element, which is broadcast, or all of a mode that the strategy's operand has not.
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
        let tile = self.tile();
        (0..own.len()).map(|m| if own[m] == self.extents[m] { tile[m] } else { own[m] }).collect()
    }

    /// What holds for one of the blocks that have an operand at this place in common, and for no other.
    pub(super) fn first_of(&self, own: &[i64], once: &[String]) -> Vec<Compare> {
        let mut left = self.extents.clone();
        let mut out: Vec<Expr> = once.iter().map(Expr::name).collect();
        for cut in &self.cuts {
            for (m, (size, at)) in cut.iter().enumerate() {
                if own.get(m).is_some_and(|e| *e != self.extents[m]) && *size < left[m] {
                    out.push(at.clone());
                }
                left[m] = *size;
            }
        }
        out.into_iter().map(|lhs| Compare { lhs, op: CmpOp::Eq, rhs: Expr::int(0) }).collect()
    }
}
