//! The frame of a kernel whose blocks take tiles: who executes it, which tile is a block's.

use super::tiling::{Choice, Problem};
use crate::build::{Writer, declare, dims};
use crate::names::Names;
use carbyne_ir::ast::*;

/// A kernel that is being written.
pub(super) struct Blocks<'c> {
    choice: &'c Choice,
    problem: &'c Problem<'c>,
    /// Declarations before the kernel.
    items: Vec<Stmt>,
    /// Its body.
    pub(super) body: Vec<Stmt>,
    /// Writes leaves of the whole block.
    pub(super) writer: Writer,
    /// Index of the block's tile along each mode.
    index: Vec<Expr>,
}

impl<'c> Blocks<'c> {
    /// Declares threads where the spec has none, and names the block's coordinates.
    pub(super) fn new(
        problem: &'c Problem<'c>,
        choice: &'c Choice,
        spec: &Spec,
        names: &mut Names,
    ) -> Self {
        let counts = |m: &usize| problem.extents[*m] / choice.tile[*m];
        let grid: Vec<i64> = choice.grid.iter().map(counts).collect();
        let mut items = vec![];
        let written = spec.both().map(|(g, t)| (g.clone(), t.clone()));
        let exec = written.unwrap_or_else(|| {
            let (g, t) = (names.fresh("grid"), names.fresh("cta"));
            let all = if grid.is_empty() { vec![1] } else { grid.clone() };
            items.push(declare(&g, dims(&all, all.len() > 1), ThreadScalar::Block));
            items.push(declare(&t, dims(&[choice.threads], false), ThreadScalar::Thread));
            (View::of(g), View::of(t))
        });
        if let Some(first) = items.first_mut() {
            first.blank_above = true;
        }
        let mut index = vec![Expr::int(0); choice.tile.len()];
        let mut body = vec![];
        if !grid.is_empty() {
            let mut indices = vec![];
            for m in &choice.grid {
                let name = names.fresh(["@i", "@j"].get(indices.len()).unwrap_or(&"@k"));
                index[*m] = Expr::name(&name);
                indices.push(Name::new(name));
            }
            let threads = exec.0.clone();
            body.push(Stmt::new(StmtKind::Indices { names: indices, threads }));
        }
        Blocks { choice, problem, items, body, writer: Writer { exec }, index }
    }

    /// The block's tile of a tensor of these extents, at `walk` along the modes that are walked along. A mode
    /// of extent 1 that the space has more of stands for all.
    pub(super) fn tile(&self, view: &View, extents: &[i64], walk: &[(usize, Expr)]) -> View {
        let size = |m: usize| Some(Expr::int(self.choice.tile[m].min(extents[m])));
        let at = |m: usize| {
            let walked = walk.iter().find(|(w, _)| *w == m).map(|(_, e)| e.clone());
            let one = extents[m] == 1;
            Some(if one { Expr::int(0) } else { walked.unwrap_or_else(|| self.index[m].clone()) })
        };
        let modes = 0..extents.len();
        view.clone()
            .then(ViewOp::Tile(Tiler::Sizes(modes.clone().map(size).collect())))
            .then(ViewOp::Index(modes.map(at).collect()))
    }

    /// The block's tile of a tensor whose modes are these of the space.
    pub(super) fn tile_of(&self, view: &View, modes: impl Iterator<Item = usize> + Clone) -> View {
        let size = |m: usize| Some(Expr::int(self.choice.tile[m]));
        let at = |m: usize| Some(self.index[m].clone());
        view.clone()
            .then(ViewOp::Tile(Tiler::Sizes(modes.clone().map(size).collect())))
            .then(ViewOp::Index(modes.map(at).collect()))
    }

    /// Tiles that a block walks over along a mode.
    pub(super) fn steps(&self, mode: usize) -> i64 {
        self.problem.extents[mode] / self.choice.tile[mode]
    }

    /// The statements that replace the kernel-level one. What was chosen stands in its head.
    pub(super) fn finish(self, stmt: &Stmt) -> Vec<Stmt> {
        let mut kernel = stmt.clone();
        if let StmtKind::Spec(s) = &mut kernel.kind {
            s.exec = Some(crate::build::both(&self.writer.exec));
            s.attrs.retain(|a| !matches!(a.key.text.as_str(), "tile" | "warps" | "atom"));
            let number = |v: &i64| TupleExpr::Leaf(Expr::int(*v));
            let tile = TupleExpr::Tuple(self.choice.tile.iter().map(number).collect());
            s.attrs.push(Attr { key: Name::new("tile"), value: AttrValue::Tuple(tile) });
            s.body = Some(Block { stmts: self.body, footer: vec![] });
        }
        let mut items = self.items;
        items.push(kernel);
        items
    }
}
