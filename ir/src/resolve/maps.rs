//! Resolves `.tensormap([128,64])`: divides the modes of a tensor in global memory into boxes, the
//! tiles that TMA copies, and checks that a tensor map can describe them. It also resolves the
//! index that chooses one box, and the numbers of a swizzle.

use super::exprs::{overflow, refused};
use super::{Fallible, Resolver, fail};
use crate::ast::{Expr, ViewOp};
use crate::diag::{Code, Diagnostic, count};
use crate::expr::Dim;
use crate::layout::{Layout, Swizzle};
use crate::leaf::Leaf;
use crate::program::{MapId, MapView, Tensor, TensorMap, VarKind};
use crate::span::Span;
use crate::tuple::IntTuple;

/// The modes of a tensor, divided into boxes.
#[derive(Default)]
struct Boxes {
    extents: Vec<Dim>,
    strides: Vec<Dim>,
    /// The extents of a box.
    sizes: Vec<i64>,
    /// The modes that count boxes.
    outer: Vec<Layout<Dim>>,
    /// The modes inside a box.
    inner: Vec<Layout<Dim>>,
}

impl Resolver {
    /// Evaluates `swizzle=(3,4,3)`, which consists of constants.
    pub(super) fn swizzle(&self, of: &[Expr; 3], span: Span) -> Fallible<Swizzle> {
        let number = |e: &Expr| -> Fallible<u32> {
            let n = self.constant(e, "a number of the swizzle")?;
            u32::try_from(n).or_else(|_| {
                let message = format!("a number of the swizzle is {n}");
                fail(
                    Diagnostic::new(Code::LayoutRefused, e.span, message)
                        .label("it must be a valid number of address bits")
                        .help("write `swizzle=(bits,base,shift)`, such as `swizzle=(3,4,3)`"),
                )
            })
        };
        let [b, m, s] = of;
        Swizzle::new(number(b)?, number(m)?, number(s)?).map_err(|e| refused(span, &e))
    }

    /// Applies `.tensormap([128,64], swizzle=(3,4,3))`: declares the map, and gives the tensor its
    /// two levels.
    pub(super) fn tensor_map(
        &mut self,
        t: &mut Tensor,
        sizes: &[Expr],
        swizzle: Option<&[Expr; 3]>,
        span: Span,
    ) -> Fallible<()> {
        let level = self.level_to_map(t, sizes.len(), span)?;
        let Boxes { mut extents, mut strides, sizes: mut boxes, outer, inner } =
            self.boxes(level, sizes, span)?;
        let cx = &self.p.arena;
        let is_one = |d: Option<&Dim>| d.is_some_and(|d| Leaf::eq(cx, *d, Dim::Const(1)).is_true());
        let first_fastest = !is_one(strides.last());
        if first_fastest && !is_one(strides.first()) {
            return refuse_map(
                span,
                "neither the first nor the last mode is contiguous in memory",
                "give one of them stride 1",
            );
        }
        if !self.is_known_at_launch(t.offset) {
            let help = "declare the map of the whole tensor, and choose boxes by its indices";
            return refuse_map(
                span,
                "the offset of the tensor is not known before the launch",
                help,
            );
        }
        if !first_fastest {
            extents.reverse();
            strides.reverse();
            boxes.reverse();
        }
        let swizzle = match swizzle {
            None => None,
            Some(of) => {
                let swizzle = self.swizzle(of, span)?;
                (!swizzle.is_none()).then_some(swizzle)
            }
        };
        let levels = vec![self.joined(&outer, span)?, self.joined(&inner, span)?];
        let map: MapId = self.p.maps.push(TensorMap {
            name: None,
            buffer: t.buffer,
            offset: t.offset,
            extents,
            strides,
            sizes: boxes,
            swizzle,
            first_fastest,
            span,
        });
        t.levels = levels;
        t.map = Some(MapView { map, at: None });
        Ok(())
    }

    /// The only level of a tensor; an error if the tensor cannot have a map.
    fn level_to_map<'t>(
        &self,
        t: &'t Tensor,
        n_sizes: usize,
        span: Span,
    ) -> Fallible<&'t Layout<Dim>> {
        if !t.bounds.is_empty() {
            return fail(
                Diagnostic::new(Code::TensorMapUse, span, "a tensor map of partial tiles")
                    .label("a map has the bounds of its tensor only")
                    .help("declare the map of the whole tensor, and choose boxes by its indices"),
            );
        }
        let buffer = &self.p.buffers[t.buffer];
        if !buffer.is_global() {
            return refuse_map(
                span,
                format!("`%{}` is not in GL, so it cannot have a tensor map", buffer.name),
                "declare maps of tensors of the caller",
            );
        }
        let [level] = &t.levels[..] else {
            let help = "declare the map of the whole tensor, before `.tile`";
            return refuse_map(
                span,
                format!("a tensor of {} levels cannot have a map", t.levels.len()),
                help,
            );
        };
        if n_sizes != level.rank() {
            return fail(
                Diagnostic::new(
                    Code::WrongRank,
                    span,
                    format!("{} for {}", count(n_sizes, "box extent"), count(level.rank(), "mode")),
                )
                .label(format!("the tensor is {}", level.display_in(&self.p.arena)))
                .help("write one extent for each mode"),
            );
        }
        Ok(level)
    }

    /// Divides the modes of `level` into boxes with these extents.
    fn boxes(&self, level: &Layout<Dim>, sizes: &[Expr], span: Span) -> Fallible<Boxes> {
        let cx = &self.p.arena;
        let mut all = Boxes::default();
        for (mode, size) in level.modes().iter().zip(sizes) {
            let (IntTuple::Leaf(extent), IntTuple::Leaf(stride)) = (mode.shape(), mode.stride())
            else {
                let help = "give the tensor plain modes, each with one extent and one stride";
                return refuse_map(
                    span,
                    format!("the mode {} is nested", mode.display_in(cx)),
                    help,
                );
            };
            if !self.is_known_at_launch(extent) || !self.is_known_at_launch(stride) {
                let help = "declare the map of a tensor of the caller";
                return refuse_map(span, "the tensor is not known before the launch", help);
            }
            let n = self.constant(size, "the extent of a box")?;
            if n < 1 {
                return refuse_map(
                    span,
                    format!("a box has extent {n}"),
                    "write box extents of at least 1",
                );
            }
            let e = |e: crate::layout::LayoutError| overflow(size.span, &e);
            let size = Dim::Const(n);
            let count = Dim::ceil_div(cx, extent, size).map_err(e)?;
            let apart = Dim::mul(cx, stride, size).map_err(e)?;
            let plain = |n: Dim, s: Dim| {
                Layout::new_in(cx, IntTuple::Leaf(n), IntTuple::Leaf(s))
                    .map_err(|e| refused(span, &e))
            };
            all.outer.push(plain(count, apart)?);
            all.inner.push(plain(size, stride)?);
            all.extents.push(extent);
            all.strides.push(stride);
            all.sizes.push(n);
        }
        Ok(all)
    }

    /// Whether an expression contains only constants and symbols.
    fn is_known_at_launch(&self, d: Dim) -> bool {
        let vars = self.p.vars_in(d);
        vars.iter().all(|v| matches!(self.p.vars.get(v), Some(VarKind::Symbol)))
    }

    /// Chooses a box, the only operation on a tensor map.
    pub(super) fn map_box(&mut self, t: &mut Tensor, op: &ViewOp, span: Span) -> Fallible<()> {
        let Some(MapView { map, at: None }) = t.map else {
            return refuse_map(
                span,
                "a box of a tensor map cannot be indexed or tiled",
                "declare the map with smaller boxes: a copy moves a box as a whole",
            );
        };
        let ViewOp::Index(args) = op else {
            return refuse_map(
                span,
                "a tensor map can only be indexed",
                "index it: `%mA[i,j]`, and tile or reshape the tensor before `.tensormap`",
            );
        };
        let (offset, kept) = self.index_where(t.levels.first(), args, span, |_, _, _, _| Ok(()))?;
        if kept.is_some() {
            return refuse_map(
                span,
                "an index of a tensor map is `_`",
                "write an index for each mode in place of `_`",
            );
        }
        let cx = &self.p.arena;
        let e = |e: crate::layout::LayoutError| overflow(span, &e);
        let TensorMap { extents, sizes, first_fastest, .. } = &self.p.maps[map];
        let mut indices: Vec<&Expr> = args.iter().flatten().collect();
        if !first_fastest {
            indices.reverse();
        }
        let mut at = vec![];
        for (index, (size, extent)) in indices.into_iter().zip(sizes.iter().zip(extents)) {
            let (i, size) = (self.expr(index)?, Dim::Const(*size));
            let first = Dim::mul(cx, i, size).map_err(e)?;
            let count = Dim::ceil_div(cx, *extent, size).map_err(e)?;
            self.check_box((i, count), first, index.span)?;
            at.push(first);
        }
        t.offset = Dim::add(cx, t.offset, offset).map_err(e)?;
        t.levels.remove(0);
        t.map = Some(MapView { map, at: Some(at) });
        Ok(())
    }
}

fn refuse_map<T>(span: Span, message: impl Into<String>, help: &str) -> Fallible<T> {
    fail(Diagnostic::new(Code::TensorMapUse, span, message).help(help))
}
