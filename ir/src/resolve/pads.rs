//! Resolves `.pad([1,1], [1,1], 0)`, a view with additional elements around those of a tensor, as
//! the border of a convolution. In a body, the tensor must be in global memory. The view gets
//! bounds, and only elements within them are accessed. With the value 0 the added elements count as
//! zeros; without a value they do not exist, so that a reduction ignores them. Another value is an
//! error in a body; a `means` block takes any value (`means/mod.rs`).

use super::exprs::{overflow, refused};
use super::{Fallible, Resolver, fail};
use crate::ast::{self, Expr, View};
use crate::diag::{Code, Diagnostic, count};
use crate::expr::Dim;
use crate::layout::Layout;
use crate::leaf::Leaf;
use crate::program::{Bound, Tensor};
use crate::scalar::Memory;
use crate::span::Span;
use crate::text::print_number;
use crate::tuple::IntTuple;
use std::iter;

/// The numbers of elements to add before and after each mode.
pub(super) struct PadSizes {
    pub(super) before: Vec<Dim>,
    pub(super) behind: Vec<Dim>,
}

/// One end of a mode.
#[derive(Copy, Clone)]
enum End {
    First,
    Last,
}

impl Resolver {
    /// Evaluates the numbers of a pad for a tensor with this many modes. Each must be at least 0.
    pub(super) fn pad_sizes(&self, pad: &ast::Pad, modes: usize, span: Span) -> Fallible<PadSizes> {
        let behind = Some(&pad.behind).filter(|list| !list.is_empty());
        if let Some(list) = iter::once(&pad.before).chain(behind).find(|l| l.len() != modes) {
            let message = format!("`.pad` has {} in a list", count(list.len(), "number"));
            return fail(
                Diagnostic::new(Code::WrongRank, span, message)
                    .label(format!("the tensor has {}", count(modes, "mode")))
                    .help("write one number for each mode in each list; 0 adds nothing"),
            );
        }
        let sizes = |list: &[Expr]| -> Fallible<Vec<Dim>> {
            list.iter().map(|n| self.pad_size(n)).collect()
        };
        let before = sizes(&pad.before)?;
        let behind = behind.map_or(Ok(vec![Dim::Const(0); modes]), |list| sizes(list))?;
        Ok(PadSizes { before, behind })
    }

    fn pad_size(&self, written: &Expr) -> Fallible<Dim> {
        let cx = &self.p.arena;
        let n = self.expr(written)?;
        if cx.range(n).0.is_some_and(|least| least >= 0) || self.proves(Dim::Const(0), n, 0) {
            return Ok(n);
        }
        let d = match n {
            Dim::Const(n) => {
                let message = format!("a pad adds {n} elements");
                Diagnostic::new(Code::IndexRange, written.span, message).help(
                    "write a number of at least 0; a range, `%A[1..N, _]`, leaves elements out",
                )
            }
            _ => {
                let message = format!("cannot prove that {} is at least 0", cx.display(n));
                Diagnostic::new(Code::IndexRange, written.span, message)
                    .help("state a bound of the symbol, or take a remainder: `r * N % 8`")
            }
        };
        fail(d.label("a number of added elements"))
    }

    /// The extent of a mode with the added elements.
    pub(super) fn pad_extent(
        &self,
        extent: Dim,
        (before, behind): (Dim, Dim),
        span: Span,
    ) -> Fallible<Dim> {
        let cx = &self.p.arena;
        let longer = Dim::add(cx, extent, before).and_then(|n| Dim::add(cx, n, behind));
        longer.map_err(|e| overflow(span, &e))
    }

    /// Applies a pad in a body, and adds bounds. The bound for coordinates of at least zero is
    /// written as one for coordinates below an extent: counted down from the first element, the
    /// existing elements are below 1.
    pub(super) fn padded(&self, t: &mut Tensor, pad: &ast::Pad, view: &View) -> Fallible<()> {
        let span = view.span;
        self.is_padded_memory(t, view)?;
        if t.levels.len() > 1 {
            let tiled = "`.pad` is applied to a tensor of tiles";
            return fail(
                Diagnostic::new(Code::WrongRank, span, tiled)
                    .label(format!("the tensor has {} levels", t.levels.len()))
                    .help("write `.pad` before `.tile`, or index one tile first: `[i, j].pad(..)`"),
            );
        }
        let filled = self.is_filled(pad, &view.base.text)?;
        let modes = self.outermost(&t.levels, span)?.rank();
        let sizes = self.pad_sizes(pad, modes, span)?;
        for i in 0..modes {
            for (n, end) in [(sizes.before[i], End::First), (sizes.behind[i], End::Last)] {
                if n != Dim::Const(0) {
                    let bound = self.pad_mode(t, (i, n), end, span)?;
                    t.bounds.push(Bound { filled, ..bound });
                }
            }
        }
        Ok(())
    }

    fn is_padded_memory(&self, t: &Tensor, view: &View) -> Fallible<()> {
        let buffer = &self.p.buffers[t.buffer];
        if buffer.is_global() && buffer.gather.is_none() {
            return Ok(());
        }
        let place = buffer.memory.map_or("no memory", Memory::as_str);
        fail(
            Diagnostic::new(
                Code::Placement,
                view.span,
                "only a tensor of the caller can be padded",
            )
            .label(match buffer.gather {
                Some(_) => "a tensor indexes one of its modes".to_owned(),
                None => format!("`%{}` is in {place}", view.base.text),
            })
            .help("pad a tensor in GL, before a tensor indexes its modes"),
        )
    }

    /// Whether the elements added in a body count like others. They read as zero, so other values
    /// are refused.
    fn is_filled(&self, pad: &ast::Pad, name: &str) -> Fallible<bool> {
        let Some(value) = &pad.value else { return Ok(false) };
        if self.real(value)? == 0.0 {
            return Ok(true);
        }
        let written = print_number(value);
        let message = format!("in a body, `.pad` adds zeros only, found {written}");
        fail(
            Diagnostic::new(Code::Placement, value.span, message)
                .label("elements outside of a tensor read as zero; only `means` has other values")
                .help(format!(
                    "declare a larger tensor in RF, `%x:[..].f32 = {written}`, and move `%{name}` \
                     into a part of it; or replace the zeros of a tile by their coordinates: \
                     `select(%tile.iota(0) < 1, {written}, %tile)` replaces its first row"
                )),
        )
    }

    /// Adds `n` elements at one end of a mode. Returns the bound of the existing elements.
    fn pad_mode(
        &self,
        t: &mut Tensor,
        (i, n): (usize, Dim),
        end: End,
        span: Span,
    ) -> Fallible<Bound> {
        let cx = &self.p.arena;
        let modes = t.levels[0].modes();
        let size = modes[i].size_in(cx).map_err(|e| refused(span, &e))?;
        self.lengthen(&mut t.levels, &mut t.offset, (i, n), end, span)?;
        for bound in &mut t.bounds {
            self.lengthen(&mut bound.levels, &mut bound.offset, (i, n), end, span)?;
        }
        let step = match end {
            End::First => -1,
            End::Last => 1,
        };
        let mut along = vec![];
        for (k, mode) in t.levels[0].modes().iter().enumerate() {
            let stride = Dim::Const(if i == k { step } else { 0 });
            let stride = mode.shape().map(&mut |_| stride);
            along.push(Layout::new_in(cx, mode.shape(), stride).map_err(|e| refused(span, &e))?);
        }
        let levels = vec![self.joined(&along, span)?];
        let (offset, extent) = match end {
            End::First => (n, Dim::Const(1)),
            End::Last => (Dim::Const(0), size),
        };
        Ok(Bound { levels, offset, extent, filled: false })
    }

    /// Adds elements to a mode. If they come before the first element, that one becomes element
    /// `n`.
    fn lengthen(
        &self,
        levels: &mut [Layout<Dim>],
        offset: &mut Dim,
        (i, n): (usize, Dim),
        end: End,
        span: Span,
    ) -> Fallible<()> {
        let cx = &self.p.arena;
        let e = |e: crate::layout::LayoutError| overflow(span, &e);
        let mut modes = levels[0].modes();
        let [(extent, stride)] = *modes[i].leaves() else {
            return fail(
                Diagnostic::new(Code::LayoutRefused, span, "a nested mode cannot be padded")
                    .label(format!("the mode is {}", modes[i].display_in(cx)))
                    .help("tile the mode first, and pad one tile"),
            );
        };
        let longer = IntTuple::Leaf(Dim::add(cx, extent, n).map_err(e)?);
        modes[i] = Layout::new_in(cx, longer, IntTuple::Leaf(stride)).map_err(e)?;
        if let End::First = end {
            let back = Dim::mul(cx, n, stride).map_err(e)?;
            *offset = Dim::sub(cx, *offset, back).map_err(e)?;
        }
        levels[0] = self.joined(&modes, span)?;
        Ok(())
    }
}
