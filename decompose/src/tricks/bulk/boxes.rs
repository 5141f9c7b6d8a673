//! Computes boxes ([`Boxes`]): how tiles of global memory lie in shared memory, and the views of
//! them by which tensor maps are accessed.

use crate::access::ops;
use crate::build::{counted, when};
use crate::layouts::tv::{join, mode};
use crate::names::Names;
use crate::numbers::{Numbers, eval};
use crate::tricks::turns::{count, modulo, plus, sum, times};
use carbyne_atoms::tensor_map;
use carbyne_ir::ast::visit::Walk;
use carbyne_ir::ast::*;
use carbyne_ir::layout::{Layout, Swizzle};
use carbyne_ir::program::{Program, TensorId};
use carbyne_ir::scalar::Scalar;
use std::collections::HashMap;

/// What names of a module stand for.
pub(crate) struct Known<'m> {
    /// How often each name is defined.
    defined: HashMap<&'m str, usize>,
    /// Views that are defined once.
    views: HashMap<&'m str, &'m View>,
    /// Numbers.
    numbers: Numbers,
}

impl<'m> Known<'m> {
    pub(crate) fn of(module: &'m Module) -> Self {
        let defined = count(&module.items);
        let once = |name: &str| defined.get(name) == Some(&1);
        let (views, numbers) = (HashMap::new(), Numbers::new());
        let mut out = Known { defined: HashMap::new(), views, numbers };
        for stmt in Walk::new(&module.items).stmts() {
            match &stmt.kind {
                StmtKind::DataDef { name, view, .. } if once(&name.text) => {
                    out.views.insert(&name.text, view);
                }
                StmtKind::Let(list) => {
                    for (name, e) in list.iter().filter(|(name, _)| once(&name.text)) {
                        if let Some(n) = eval(e, &out.numbers) {
                            out.numbers.insert(name.text.clone(), n);
                        }
                    }
                }
                _ => {}
            }
        }
        Known { defined, ..out }
    }

    /// How often a name is defined.
    pub(crate) fn defined(&self, name: &str) -> usize {
        self.defined.get(name).copied().unwrap_or(0)
    }

    /// The extents of the boxes of a tensor, and the coordinates, in boxes, of the first that a
    /// view of tiles, by these operations, begins with: terms of sums. None where the view is not
    /// made of tiles, or they of boxes.
    pub(crate) fn boxes(
        &self,
        mut ops: &[ViewOp],
        boxes: &Boxes,
    ) -> Option<(Vec<i64>, Vec<Vec<Expr>>)> {
        // A slice of a tensor of more modes.
        let mut slice = None;
        if let [ViewOp::Index(at), rest @ ..] = ops {
            slice = Some(at);
            ops = rest;
        }
        let extents = boxes.extents_of_box();
        let mut own: [Vec<Expr>; 2] = Default::default();
        let mut last = None;
        while let [ViewOp::Tile(Tiler::Sizes(sizes)), ViewOp::Index(at), rest @ ..] = ops {
            let ([Some(m), Some(k)], [Some(i), Some(j)]) = (&sizes[..], &at[..]) else {
                return None;
            };
            let tile = [eval(m, &self.numbers)?, eval(k, &self.numbers)?];
            for (mode, index) in [i, j].into_iter().enumerate() {
                if tile[mode] % extents[mode] != 0 {
                    return None;
                }
                if !matches!(index.kind, ExprKind::Int(0)) {
                    own[mode].push(times(index.clone(), tile[mode] / extents[mode]));
                }
            }
            last = Some(tile);
            ops = rest;
        }
        if !ops.is_empty() || last? != boxes.extents {
            return None;
        }
        let Some(slice) = slice else { return Some((extents.to_vec(), own.to_vec())) };
        let mut left = extents.into_iter().zip(own);
        let (mut sizes, mut at) = (vec![], vec![]);
        for e in slice {
            let (size, terms) = match e {
                Some(e) => (1, vec![e.clone()]),
                None => left.next()?,
            };
            sizes.push(size);
            at.push(terms);
        }
        // The modes of a slice come first, so that the others are those of the tile.
        let [.., None, None] = &slice[..] else { return None };
        left.next().is_none().then_some((sizes, at))
    }

    /// A view with what its base is a view of before it.
    pub(crate) fn whole(&self, view: &View) -> View {
        let mut out = view.clone();
        // A chain of views is no longer than there are names.
        for _ in 0..self.views.len() {
            let Some(of) = self.views.get(out.base.text.as_str()) else { break };
            let mut base = (*of).clone();
            base.ops.append(&mut out.ops);
            out = base;
        }
        out
    }
}

/// How a tile lies in shared memory so that boxes of global memory fit it.
#[derive(Clone)]
pub(crate) struct Boxes {
    /// The tile's extents.
    pub(crate) extents: [i64; 2],
    scalar: Scalar,
    layout: Layout,
    swizzle: Option<Swizzle>,
    /// Which mode is contiguous in global memory, and how much of it is a box.
    row: (usize, i64),
    /// How many blocks of a cluster copy a part of it each, for all of them.
    share: Share,
}

/// What a block of a cluster copies of a tile.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Share {
    /// All of it.
    All,
    /// One of so many equal numbers of boxes.
    Boxes(i64),
    /// Of each box some of its slices, which are equal numbers of lines.
    Lines(Slices),
}

/// The slices of a box, which blocks of a cluster copy for each other: each as many, and those that
/// are left in turn, so that in so many iterations as there are blocks all of them copy as much.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Slices {
    blocks: i64,
    /// Lines of a slice.
    lines: i64,
    /// Slices that each block copies, and those that are left.
    each: i64,
    left: i64,
}

impl Slices {
    /// Of a box of so many lines: as few slices as there can be; none where blocks would have none.
    fn of(lines: i64, blocks: i64) -> Option<Self> {
        let units = (lines % SWIZZLED_LINES == 0).then_some(lines / SWIZZLED_LINES)?;
        let of_units = (1..=units / blocks).filter(|n| units % n == 0);
        let all = of_units.map(|n| {
            let slices = units / n;
            let (each, left) = (slices / blocks, slices % blocks);
            Slices { blocks, lines: n * SWIZZLED_LINES, each, left }
        });
        all.min_by_key(|s| (s.each + s.left, s.left))
    }
}

/// Bits of narrow rows of a box, at most.
const NARROW: i64 = 256;
/// What boxes in shared memory begin at multiples of, in bytes (PTX ISA, Data Movement and
/// Conversion Instructions: cp.async.bulk.tensor).
const SHARED_ALIGN: i64 = 128;
/// Bits of the unit of strides, and of what a box without a swizzle has rows of.
const UNIT: i64 = 8 * tensor_map::UNIT;
/// Lines after which every swizzle begins anew.
const SWIZZLED_LINES: i64 = 8;
/// Extents of a box, at most (PTX ISA, Tensor Size, Traversal Stride and Bounding Box).
const MOST_OF_BOX: i64 = tensor_map::MOST_BOX;

impl Boxes {
    /// Those of a tile in global memory, in one of the layouts.
    pub(crate) fn of(
        p: &Program,
        tile: TensorId,
        extents: [i64; 2],
        layouts: Vec<(Layout, Option<Swizzle>)>,
    ) -> Option<Self> {
        let scalar = p.scalar_of(tile);
        let row = contiguous(p, tile, extents, scalar)?;
        let lies = |l: &Layout| l.mode(row).is_ok_and(|m| m.size() == 1 || m.at(1) == 1);
        let (layout, swizzle) = layouts.into_iter().find(|(layout, _)| lies(layout))?;
        let width = match layout.mode(row).ok()?.leaves() {
            [(n, _)] | [(n, _), _] => *n,
            _ => return None,
        };
        let lines = extents[1 - row];
        let sizes = width <= MOST_OF_BOX && lines <= MOST_OF_BOX && extents[row] % width == 0;
        let whole = p.tensors[p.buffer_of(tile).tensor].concat();
        let reached = whole.leaves().iter().all(|(n, _)| tensor_map::reaches(&p.arena, *n));
        // Without a swizzle a box is a unit of 16 bytes wide, and there are many.
        let row = (row, width);
        let share = Share::All;
        (sizes && reached && swizzle.is_some()).then_some(Boxes {
            extents,
            scalar,
            layout,
            swizzle,
            row,
            share,
        })
    }

    /// One of so many parts of the tile along its rows; none where boxes would be cut.
    pub(crate) fn part(&self, parts: i64) -> Option<Self> {
        let (row, width) = self.row;
        if parts < 1 || self.number() % parts != 0 {
            return None;
        }
        let (lines, boxes) = (self.extents[1 - row], self.number() / parts);
        let of_row = join(&[mode(width, 1), mode(boxes, width.checked_mul(lines)?)]).ok()?;
        let mut modes = [mode(lines, width), of_row];
        let mut extents = [lines, width * boxes];
        if row == 0 {
            modes.swap(0, 1);
            extents.swap(0, 1);
        }
        let layout = Layout::concat(&modes).ok()?;
        Some(Boxes { extents, layout, ..self.clone() })
    }

    /// The same where each of so many blocks copies a part; none where it has no such parts.
    pub(crate) fn shared(&self, blocks: i64) -> Option<Self> {
        let lines = self.extents[1 - self.row.0];
        let share = match () {
            () if self.number() % blocks == 0 => Share::Boxes(blocks),
            () => Share::Lines(Slices::of(lines, blocks)?),
        };
        Some(Boxes { share, ..self.clone() })
    }

    /// Boxes of a tile along the contiguous mode, and which mode that is.
    pub(crate) fn along(&self) -> (i64, usize) {
        (self.number(), self.row.0)
    }

    pub(crate) fn bytes(&self) -> i64 {
        self.extents[0] * self.extents[1] * self.scalar.bits() / 8
    }

    /// The tile in wider boxes without a swizzle, where rows of its boxes are narrow: the copy
    /// engine takes as long for each of them as for a whole line. Rows are odd numbers of units of
    /// 16 bytes, so that eight of them begin at different banks. None where rows are wide already.
    pub(crate) fn widened(&self) -> Option<Self> {
        let (row, width) = self.row;
        let (length, lines) = (self.extents[row], self.extents[1 - row]);
        let bits = self.scalar.bits();
        let units = length.checked_mul(bits)? / UNIT;
        let wide = units.checked_shr(units.trailing_zeros())?.checked_mul(UNIT)? / bits;
        if width * bits > NARROW || wide <= width || wide > MOST_OF_BOX || length % wide != 0 {
            return None;
        }
        let of_row = [mode(wide, 1), mode(length / wide, wide.checked_mul(lines)?)];
        let mut modes = [mode(lines, wide), join(&of_row).ok()?];
        if row == 0 {
            modes.swap(0, 1);
        }
        let layout = Layout::concat(&modes).ok()?;
        Some(Boxes { layout, swizzle: None, row: (row, wide), ..self.clone() })
    }

    /// Boxes of a tile along the contiguous mode.
    fn number(&self) -> i64 {
        self.extents[self.row.0] / self.row.1
    }

    /// The extents of a box.
    fn extents_of_box(&self) -> [i64; 2] {
        let mut out = self.extents;
        out[self.row.0] = self.row.1;
        if let Share::Lines(slices) = self.share {
            out[1 - self.row.0] = slices.lines;
        }
        out
    }

    /// The type of a tensor in shared memory that lies so.
    pub(crate) fn lay_out(&self, ty: &mut TensorType) -> Option<()> {
        let level = ty.levels.first_mut()?;
        let (shape, stride) = (self.layout.shape(), self.layout.stride());
        level.modes = shape.modes().iter().map(TupleExpr::constant).collect();
        level.strides = Some(stride.modes().iter().map(TupleExpr::constant).collect());
        ty.attrs.retain(|a| *a != TypeAttr::Open && !matches!(a, TypeAttr::Swizzle(..)));
        // Swizzled tensors begin where their swizzle does.
        ty.attrs.push(match self.swizzle_numbers() {
            Some(swizzle) => TypeAttr::Swizzle(swizzle),
            None => TypeAttr::Align(Expr::int(SHARED_ALIGN)),
        });
        Some(())
    }

    fn swizzle_numbers(&self) -> Option<Box<[Expr; 3]>> {
        self.swizzle.map(|s| Expr::swizzle(s.bits(), s.base(), s.shift().unsigned_abs()))
    }

    /// Whether a tensor map of so many modes takes the tile's two in the other order: its first or
    /// its last is contiguous.
    fn is_turned(&self, modes: usize) -> bool {
        modes > 2 && self.row.0 == 0
    }

    /// The tensor map of a tensor, or of its transpose, that is accessed by boxes of these extents.
    pub(crate) fn map(&self, mut base: View, sizes: &[i64]) -> View {
        let mut sizes = sizes.to_vec();
        if self.is_turned(sizes.len()) {
            // Twice transposed it is as it was.
            if base.ops.pop().is_none() {
                base = base.then(ViewOp::Permute(vec![]));
            }
            let last = sizes.len() - 1;
            sizes.swap(last - 1, last);
        }
        base.then(ViewOp::TensorMap {
            sizes: sizes.iter().map(|n| Expr::int(*n)).collect(),
            swizzle: self.swizzle_numbers(),
        })
    }

    /// How many boxes of a tile a block copies.
    fn own(&self) -> i64 {
        match self.share {
            Share::Boxes(n) => self.number() / n,
            Share::All | Share::Lines(_) => self.number(),
        }
    }

    /// What is done with each box of a tile that a block copies: `each` is given a view in the
    /// tensor map of this name, of which the first box of the tile is `at`, and one of the tile
    /// itself. Where blocks of a cluster copy a part each, boxes are those of the block of this
    /// rank in the iteration of this number.
    pub(crate) fn each(
        &self,
        (map, at, tile): (&str, &[Vec<Expr>], &View),
        rank: Option<(&Expr, &Expr)>,
        names: &mut Names,
        mut each: impl FnMut(View, View) -> Stmt,
    ) -> Vec<Stmt> {
        let own = self.own();
        let var = (own > 1).then(|| names.fresh("i"));
        let i = var.as_ref().map_or(Expr::int(0), Expr::name);
        let mut copy = |along: &Expr, line: Expr| {
            let (index, own_view) = self.views(at, tile, along, line);
            let stmt = each(View::of(map).then(ViewOp::Index(index)), own_view);
            match &var {
                None => stmt,
                Some(var) => counted(var, (0, own), Unroll::Full, vec![stmt]),
            }
        };
        match (self.share, rank) {
            (Share::Boxes(_), Some((rank, _))) => {
                vec![copy(&sum(times(rank.clone(), own), i), Expr::int(0))]
            }
            (Share::Lines(slices), Some((rank, turn))) => {
                let Slices { blocks, each, left, .. } = slices;
                let of_all = (0..each).map(|j| copy(&i, plus(rank.clone(), j * blocks)));
                let mut out: Vec<Stmt> = of_all.collect();
                out.extend((0..left).map(|j| {
                    let own = modulo(plus(turn.clone(), j), blocks);
                    let slice = copy(&i, Expr::int(each * blocks + j));
                    when(own, CmpOp::Eq, rank.clone(), vec![slice])
                }));
                out
            }
            _ => vec![copy(&i, Expr::int(0))],
        }
    }

    /// The box of a tile with this number along its rows and this one across them: its coordinates
    /// in a tensor map, and the view of the tile.
    fn views(
        &self,
        at: &[Vec<Expr>],
        tile: &View,
        along: &Expr,
        across: Expr,
    ) -> (Vec<Option<Expr>>, View) {
        let first = at.len() - 2;
        let (row, line) = (first + self.row.0, first + 1 - self.row.0);
        let index = at.iter().enumerate().map(|(mode, terms)| {
            let own = terms.iter().cloned().reduce(sum).unwrap_or_else(|| Expr::int(0));
            Some(match mode {
                _ if mode == row => sum(own, along.clone()),
                _ if mode == line => sum(own, across.clone()),
                _ => own,
            })
        });
        let mut index: Vec<Option<Expr>> = index.collect();
        let mut own_view = tile.clone();
        if self.extents_of_box() != self.extents {
            let sizes = self.extents_of_box().map(|n| Some(Expr::int(n))).to_vec();
            let mut at = vec![Some(across); 2];
            at[self.row.0] = Some(along.clone());
            own_view = own_view.then(ViewOp::Tile(Tiler::Sizes(sizes))).then(ViewOp::Index(at));
        }
        if self.is_turned(index.len()) {
            let last = index.len() - 1;
            index.swap(last - 1, last);
            own_view = own_view.then(ViewOp::Permute(vec![]));
        }
        (index, own_view)
    }
}

/// Of a view of tiles the tensor, or its transpose, and what the view takes of that. A transpose of
/// a slice of all of the last two modes is a slice of the transpose.
pub(crate) fn mapped(view: &View) -> (View, Vec<ViewOp>) {
    let mut base = View::of(&view.base.text);
    let mut ops = view.ops.clone();
    let at = match &ops[..] {
        [ViewOp::Index(slice), ViewOp::Permute(order), ..] => {
            let whole =
                matches!(&slice[..], [first @ .., None, None] if first.iter().all(Option::is_some));
            (whole && order.is_empty()).then_some(1)
        }
        [ViewOp::Permute(order), ..] => order.is_empty().then_some(0),
        _ => None,
    };
    if let Some(at) = at {
        base.ops.push(ops.remove(at));
    }
    (base, ops)
}

/// The mode of a tile in global memory whose elements are neighbors, where the others are whole
/// units of 16 bytes apart.
fn contiguous(p: &Program, t: TensorId, extents: [i64; 2], scalar: Scalar) -> Option<usize> {
    if !p.buffer_of(t).is_global() || ops::extents(p, t)? != extents {
        return None;
    }
    let modes: Vec<_> = p.tensors[t].levels.iter().flat_map(Layout::modes).collect();
    let stride = |mode: &Layout<carbyne_ir::expr::Dim>| match mode.leaves() {
        [(_, s)] => Some(*s),
        _ => None,
    };
    let [first, second] = &modes[..] else { return None };
    let strides = [stride(first)?, stride(second)?];
    let row = strides.iter().position(|s| s.as_const() == Some(1))?;
    let apart = p.arena.divisor(strides[1 - row]).checked_mul(scalar.bits())?;
    (apart % UNIT == 0).then_some(row)
}
