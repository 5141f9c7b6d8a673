//! Resolves the entries of `[..]` that are not plain indices: ranges (`0..64`) and gathers
//! (`[%rows, _]`, where a tensor of integers contains the coordinates of a mode). Also resolves
//! `.iota`, whose elements are the coordinates of a tensor along a mode.

use super::exprs::{overflow, refused};
use super::tensors::replace_outermost;
use super::{Fallible, Resolver, fail};
use crate::ast::{self, CmpOp, Expr};
use crate::diag::{Code, Diagnostic, count};
use crate::expr::Dim;
use crate::layout::{Layout, LayoutError};
use crate::leaf::Leaf;
use crate::program::{Bound, Buffer, BufferId, Gather, Range, Tensor, TensorId};
use crate::scalar::{Memory, Scalar};
use crate::span::Span;
use crate::tuple::IntTuple;

/// The rest of a level after indexing: its offset, and the kept modes, each with the tensor that
/// indexes it.
type Entries<'a> = (Dim, Vec<(Layout<Dim>, Option<&'a ast::Name>)>);

impl Resolver {
    /// Replaces a tensor by the coordinates of its elements along a mode of the outermost level.
    /// The new tensor is computed and has no memory.
    pub(super) fn coordinates_of(
        &mut self,
        t: &mut Tensor,
        axis: &Expr,
        span: Span,
    ) -> Fallible<()> {
        let axis = self.constant(axis, "the mode of the coordinates")?;
        let level = self.outermost(&t.levels, span)?.clone();
        let modes = level.modes();
        let Some(mode) = usize::try_from(axis).ok().and_then(|a| modes.get(a)) else {
            return fail(
                Diagnostic::new(Code::WrongRank, span, format!("mode {axis} does not exist"))
                    .label(format!("the outermost level is {}", level.display_in(&self.p.arena)))
                    .help("name a mode of the tensor, counted from 0"),
            );
        };
        if t.levels.len() > 1 {
            return fail(
                Diagnostic::new(Code::WrongRank, span, "`.iota` of a tensor of tiles")
                    .label(format!("it has {} levels", t.levels.len()))
                    .help("apply `.iota(axis)` before `.tile`, or to one tile"),
            );
        }
        let cx = &self.p.arena;
        let size = mode.size_in(cx).map_err(|e| overflow(span, &e))?;
        if self.p.arena.range(size).1.is_none_or(|n| n > i64::from(i32::MAX)) {
            return fail(
                Diagnostic::new(Code::TooLarge, span, "the coordinates do not fit i32")
                    .label(format!("the mode has {} elements", cx.display(size)))
                    .help(format!("{}, or apply `.iota` to a tile", self.bound_wanted(&[size]))),
            );
        }
        let mut counted = vec![];
        for (i, mode) in modes.iter().enumerate() {
            counted.push(match i as i64 == axis {
                true => self.counting(mode, span)?,
                false => self.constant_over(mode, span)?,
            });
        }
        let counted = self.joined(&counted, span)?;
        // Repeated `.iota` counts in the original tensor.
        let name = self.p.buffers[t.buffer].name.split(".iota").next().unwrap_or_default();
        let name = format!("{name}.iota({axis})");
        let buffer = Buffer {
            name,
            memory: Some(Memory::Ix),
            scalar: Scalar::I32,
            cosize: size,
            swizzle: None,
            align: 4,
            at: None,
            reuses: None,
            open: false,
            range: Some((Dim::Const(0), size)),
            splits: false,
            distinct: false,
            gather: None,
            tensor: TensorId::from(self.p.tensors.len()),
            span,
            node: self.node,
        };
        let whole = Tensor {
            name: None,
            buffer: BufferId::from(self.p.buffers.len()),
            levels: vec![counted],
            offset: Dim::Const(0),
            dist: None,
            peer: None,
            map: None,
            bounds: vec![],
            span,
        };
        self.p.buffers.push(buffer);
        self.p.tensors.push(whole.clone());
        *t = whole;
        Ok(())
    }

    /// Applies `[%rows, 0..64, @i]`.
    pub(super) fn picked(
        &mut self,
        t: &mut Tensor,
        picks: &[ast::Pick],
        span: Span,
    ) -> Fallible<()> {
        let (offset, entries) = self.entries(t.levels.first(), picks, span)?;
        t.offset = Dim::add(&self.p.arena, t.offset, offset).map_err(|e| overflow(span, &e))?;
        let (mut modes, from): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
        // Apply the same entries to the bounds.
        let mut of_bounds = vec![];
        for bound in &mut t.bounds {
            let (at, entries) = self.entries(bound.levels.first(), picks, span)?;
            bound.offset =
                Dim::add(&self.p.arena, bound.offset, at).map_err(|e| overflow(span, &e))?;
            of_bounds.push(entries.into_iter().map(|(mode, _)| mode).collect());
        }
        let mut gathered = from.into_iter().enumerate().filter_map(|(i, name)| Some((i, name?)));
        let first = gathered.next();
        if gathered.next().is_some() {
            return fail(
                Diagnostic::new(Code::DataIndex, span, "tensors index two modes")
                    .label("a tensor may index one mode only")
                    .help("combine the coordinates in one tensor of integers"),
            );
        }
        if let Some((i, name)) = first {
            self.gathered(t, &mut modes, i, name, span)?;
            self.gathered_bounds(t, &mut of_bounds, &modes, i, name, span)?;
        }
        let level = |modes: &[Layout<Dim>]| {
            (!modes.is_empty()).then(|| self.joined(modes, span)).transpose()
        };
        for (bound, modes) in t.bounds.iter_mut().zip(&of_bounds) {
            replace_outermost(&mut bound.levels, level(modes)?);
        }
        replace_outermost(&mut t.levels, level(&modes)?);
        Ok(())
    }

    /// Updates the bounds of a view for a gather along mode `i`. The view also gets the bounds of
    /// the indexing tensor.
    fn gathered_bounds(
        &self,
        t: &mut Tensor,
        of_bounds: &mut Vec<Vec<Layout<Dim>>>,
        modes: &[Layout<Dim>],
        i: usize,
        name: &ast::Name,
        span: Span,
    ) -> Fallible<()> {
        let index = self.tensor_named(&name.text, name.span)?;
        let index = &self.p.tensors[index];
        // The mode that replaces mode `i`; `None` if the index is a single coordinate.
        let own = index.levels.iter().flat_map(Layout::modes).next();
        for bound in of_bounds.iter_mut() {
            let moves =
                bound.get(i).is_some_and(|m| m.leaves().iter().any(|l| l.1 != Dim::Const(0)));
            if moves {
                return fail(
                    Diagnostic::new(
                        Code::DataIndex,
                        name.span,
                        "the indexed mode has partial tiles",
                    )
                    .label("the coordinates would determine which elements exist")
                    .help("index the tensor before tiling it"),
                );
            }
            match &own {
                None => drop(bound.remove(i)),
                Some(own) => bound[i] = self.constant_over(own, span)?,
            }
        }
        for bound in &index.bounds {
            let own = bound.levels.iter().flat_map(Layout::modes).next();
            let mut all = vec![];
            for (k, mode) in modes.iter().enumerate() {
                all.push(match own.clone().filter(|_| k == i) {
                    Some(own) => own,
                    None => self.constant_over(mode, span)?,
                });
            }
            let mut levels = vec![];
            for level in &t.levels {
                levels.push(self.constant_over(level, span)?);
            }
            t.bounds.push(Bound { levels, ..bound.clone() });
            of_bounds.push(all);
        }
        Ok(())
    }

    /// The ranges among the entries.
    pub(super) fn ranges(
        &self,
        level: Option<&Layout<Dim>>,
        picks: &[ast::Pick],
    ) -> Fallible<Vec<Range>> {
        let cx = &self.p.arena;
        let mut ranges = vec![];
        for (pick, mode) in picks.iter().zip(level.into_iter().flat_map(Layout::modes)) {
            let ast::Pick::Range(from, to) = pick else { continue };
            let (first, last) = (self.expr(from)?, self.expr(to)?);
            let n = Dim::sub(cx, last, first).map_err(|e| overflow(from.span.to(to.span), &e))?;
            ranges.push(Range { mode, first, n });
        }
        Ok(ranges)
    }

    /// Applies plain indices and ranges to a level. Modes that a tensor indexes stay complete.
    pub(super) fn entries<'a>(
        &self,
        level: Option<&Layout<Dim>>,
        picks: &'a [ast::Pick],
        span: Span,
    ) -> Fallible<Entries<'a>> {
        let plain: Vec<Option<Expr>> = picks
            .iter()
            .map(|p| match p {
                ast::Pick::At(e) => Some(e.clone()),
                _ => None,
            })
            .collect();
        let (mut offset, kept) = self.index(level, &plain, span)?;
        let rest = picks.iter().filter(|p| !matches!(p, ast::Pick::At(_)));
        let mut entries = vec![];
        for (pick, mode) in rest.zip(kept.map_or(vec![], |l| l.modes())) {
            entries.push(match pick {
                ast::Pick::Range(from, to) => {
                    let (mode, at) = self.ranged(&mode, from, to)?;
                    offset = Dim::add(&self.p.arena, offset, at).map_err(|e| overflow(span, &e))?;
                    (mode, None)
                }
                ast::Pick::From(name) => (mode, Some(name)),
                ast::Pick::Keep | ast::Pick::At(_) => (mode, None),
            });
        }
        Ok((offset, entries))
    }

    /// The part of a mode from `from` to `to` (exclusive), and its offset.
    fn ranged(&self, mode: &Layout<Dim>, from: &Expr, to: &Expr) -> Fallible<(Layout<Dim>, Dim)> {
        let span = from.span.to(to.span);
        let cx = &self.p.arena;
        let e = |e: LayoutError| overflow(span, &e);
        let (first, last) = (self.expr(from)?, self.expr(to)?);
        let size = mode.size_in(cx).map_err(e)?;
        let n = Dim::sub(cx, last, first).map_err(e)?;
        let beyond = Dim::sub(cx, size, last).map_err(e)?;
        // A range may be empty if its ends are not constants.
        let least = i64::from(n.as_const().is_some());
        let known = |d: Dim, least: i64| cx.range(d).0.is_some_and(|lo| lo >= least);
        let begins = known(first, 0) || self.proves(Dim::Const(0), first, 0);
        let ends = known(beyond, 0) || self.proves(last, size, 0);
        let rises = known(n, least) || self.proves(first, last, least);
        if !begins || !ends || !rises {
            let show = |d: Dim| cx.display(d);
            let (from, to) = (show(first), show(last));
            let zero = Dim::Const(0);
            let rising = if least == 1 { CmpOp::Lt } else { CmpOp::Le };
            let asked = [
                (!begins).then_some((first, CmpOp::Ge, zero)),
                (!rises).then_some((first, rising, last)),
                (!ends).then_some((last, CmpOp::Le, size)),
            ];
            let asked = asked.into_iter().flatten();
            let never = asked.clone().any(|(a, op, b)| self.is_refuted(a, op, b));
            let asked: Vec<String> =
                asked.map(|(a, op, b)| format!("{} {op} {}", show(a), show(b))).collect();
            let label = format!("from {from} to {to}{}", self.of_elements(&[first, last]));
            let unproved = format!("cannot prove that the range lies within 0..{}", show(size));
            let (message, label, help) = match (first, last, size) {
                (Dim::Const(a), Dim::Const(b), Dim::Const(n)) => {
                    let (label, start) = match (a, b) {
                        (..0, _) => ("starts below 0".to_owned(), 0),
                        _ if b <= a => ("has no element: it ends at its start".to_owned(), a),
                        _ => (format!("ends beyond the {n} elements of the mode"), a),
                    };
                    let help = match start < n {
                        true => {
                            format!("write `{start}..{}`", if b > start { b.min(n) } else { n })
                        }
                        false => format!("start below {n}"),
                    };
                    (format!("the range `{from}..{to}` is not within `0..{n}`"), label, help)
                }
                _ => {
                    let splits = self.splits_wanted(first, last, size).filter(|_| !rises);
                    let back = Dim::sub(cx, first, last).map_err(e)?;
                    let ask = format!("add a condition, `if ({}) {{`", asked.join(" && "));
                    let help = match splits {
                        None if !rises && known(back, 0) => {
                            format!("exchange the ends: `{to}..{from}`")
                        }
                        Some(declare) => format!("{declare}; or {ask}"),
                        None if never && !ends && begins && rises => {
                            format!(
                                "end within the mode: write `{}` in place of `{to}`",
                                show(size)
                            )
                        }
                        None if never => {
                            format!("correct the range: `{}` never holds here", asked.join(" && "))
                        }
                        None if ends => ask,
                        None => {
                            let size = show(size);
                            format!("{ask}, or end within the mode: `min({to}, {size})`")
                        }
                    };
                    (unproved, label, help)
                }
            };
            return fail(Diagnostic::new(Code::IndexRange, span, message).label(label).help(help));
        }
        // A proof about the ends does not change the bounds of their difference; `max` makes them
        // known.
        let n = if known(n, least) { n } else { Dim::max(cx, n, Dim::Const(0)).map_err(e)? };
        let part = Layout::new_in(cx, IntTuple::Leaf(n), IntTuple::Leaf(Dim::Const(1)))
            .map_err(|e| refused(span, &e))?;
        let part = mode.compose_in(cx, &part).map_err(|e| refused(span, &e))?;
        let at = mode.at_in(cx, first).map_err(|e| refused(span, &e))?;
        let range = Range { mode: mode.clone(), first, n };
        if !range.is_straight(cx).map_err(e)? {
            return fail(
                Diagnostic::new(
                    Code::LayoutRefused,
                    span,
                    "the range is part of a mode with several strides",
                )
                .label(format!("the mode is {}", mode.display_in(cx)))
                .help("tile the mode first, and take complete tiles"),
            );
        }
        Ok((part, at))
    }

    /// Applies a gather: the tensor `name` contains the coordinates of mode `i` of `modes`.
    fn gathered(
        &mut self,
        t: &mut Tensor,
        modes: &mut Vec<Layout<Dim>>,
        i: usize,
        name: &ast::Name,
        span: Span,
    ) -> Fallible<()> {
        let index = self.tensor_named(&name.text, name.span)?;
        let index = self.p.tensors[index].clone();
        let of = self.p.buffers[index.buffer].clone();
        self.read.insert(index.buffer);
        self.check_gather(t, &index, name)?;
        let cx = &self.p.arena;
        self.check_coordinates(&of, &modes[i], name, span)?;
        let stride = self.constant_stride(&modes[i], name)?;
        let most = self.largest_offset_beside(t, modes, i, name)?;
        // An odd multiple of the stride, so that different coordinates are neither aligned nor
        // adjacent.
        let times = (most / stride + 1).max(3) | 1;
        let unit = times.checked_mul(stride);
        let Some(unit) = unit else {
            return refuse_index(
                name,
                "the tensor is too large for an index by a tensor",
                format!("one coordinate has {most} elements"),
                "index a part of it",
            );
        };
        let positions = cx.range(of.cosize).1;
        let cosize = positions.and_then(|n| n.checked_mul(unit)).filter(|n| *n < 1 << 56);
        let Some(cosize) = cosize else {
            return refuse_index(
                name,
                format!("`%{}` has too many elements", of.name),
                "or an extent has no upper bound",
                &format!("{}, or use a part of it as the index", self.bound_wanted(&[of.cosize])),
            );
        };
        let scaled = |d: Dim| Dim::mul(cx, d, Dim::Const(unit)).map_err(|e| overflow(span, &e));
        let offset =
            Dim::add(cx, t.offset, scaled(index.offset)?).map_err(|e| overflow(span, &e))?;
        match index.levels.iter().flat_map(Layout::modes).next() {
            None => drop(modes.remove(i)),
            Some(own) => {
                let strides: Vec<Dim> =
                    own.stride().flatten().into_iter().map(scaled).collect::<Fallible<_>>()?;
                let mut next = strides.into_iter();
                let stride = own.stride().map(&mut |_| next.next().unwrap_or(Dim::Const(0)));
                modes[i] = Layout::new_in(cx, own.shape().clone(), stride)
                    .map_err(|e| refused(span, &e))?;
            }
        }
        let gather = Gather { source: t.buffer, index: index.buffer, stride, unit };
        let buffer = self.gather_buffer(gather, cosize, span);
        (t.buffer, t.offset) = (buffer, offset);
        Ok(())
    }

    /// Refuses a tensor `t` that a tensor cannot index, and an `index` that is not a tensor of
    /// coordinates.
    fn check_gather(&self, t: &Tensor, index: &Tensor, name: &ast::Name) -> Fallible<()> {
        let (from, of) = (&self.p.buffers[t.buffer], &self.p.buffers[index.buffer]);
        if !from.is_global() || from.gather.is_some() || t.map.is_some() {
            return refuse_index(
                name,
                format!("a tensor cannot index `%{}`", from.name),
                match from.gather {
                    Some(_) => "one of its modes is already indexed by a tensor".to_owned(),
                    None => "it is not in GL".to_owned(),
                },
                "index the tensor of the caller itself",
            );
        }
        if !is_of_integers(of) {
            return refuse_index(
                name,
                format!("`%{}` is not a tensor of coordinates", of.name),
                format!("it is {} in {}", of.scalar, of.memory.map_or("no memory", Memory::as_str)),
                "use integers in GL: `%rows:[64].i32.GL in 0..N`",
            );
        }
        let rank: usize = index.levels.iter().map(Layout::rank).sum();
        if rank > 1 {
            return refuse_index(
                name,
                format!("`%{}` has {}; an index has at most one", of.name, count(rank, "mode")),
                "used as an index",
                &format!(
                    "write indices for all modes but one, such as `%{}[{}_]`",
                    of.name,
                    "0, ".repeat(rank - 1)
                ),
            );
        }
        Ok(())
    }

    /// Refuses coordinates that may be outside of `mode`.
    fn check_coordinates(
        &self,
        of: &Buffer,
        mode: &Layout<Dim>,
        name: &ast::Name,
        span: Span,
    ) -> Fallible<()> {
        let cx = &self.p.arena;
        let size = mode.size_in(cx).map_err(|e| overflow(span, &e))?;
        if !self.is_within(of.range, size) {
            let n = cx.display(size).to_string();
            return fail(
                Diagnostic::new(
                    Code::DataIndex,
                    name.span,
                    format!("cannot prove that the elements of `%{}` are below {n}", of.name),
                )
                .label(format!("they index a mode of extent {n}"))
                .related(of.span, "declared here")
                .help(format!(
                    "declare their range: `%{}:[..].{}.GL in 0..{n}`",
                    of.name, of.scalar
                )),
            );
        }
        Ok(())
    }

    /// The stride of a mode that a tensor indexes.
    fn constant_stride(&self, mode: &Layout<Dim>, name: &ast::Name) -> Fallible<i64> {
        match (mode.stride().flatten().as_slice(), mode.shape().flatten().len()) {
            (&[Dim::Const(s)], 1) if s > 0 => Ok(s),
            _ => refuse_index(
                name,
                "the indexed mode does not have one constant stride",
                format!("the mode is {}", mode.display_in(&self.p.arena)),
                "index a mode with one constant stride",
            ),
        }
    }

    /// The largest offset of an element relative to its coordinate in mode `i`, which results from
    /// the other modes and the offset of the view.
    fn largest_offset_beside(
        &self,
        t: &Tensor,
        modes: &[Layout<Dim>],
        i: usize,
        name: &ast::Name,
    ) -> Fallible<i64> {
        let from = &self.p.buffers[t.buffer].name;
        let cx = &self.p.arena;
        let mut most = cx.range(t.offset).1;
        let others = modes[..i].iter().chain(&modes[i + 1..]).chain(t.levels.iter().skip(1));
        for other in others {
            let last = other.cosize_in(cx).ok().and_then(|c| cx.range(c).1);
            most = most.zip(last).and_then(|(a, b)| a.checked_add(b - 1));
        }
        let (Some(most), Some(lo)) = (most, cx.range(t.offset).0) else {
            return refuse_index(
                name,
                "the other modes have no known extents",
                "an extent has no upper bound",
                &self.bound_wanted(&others_of(t, modes, i)),
            );
        };
        if lo < 0 {
            return refuse_index(
                name,
                "a tensor indexes a padded view",
                format!("the view begins before the first element of `%{from}`"),
                &format!(
                    "index `%{from}` without `.pad`, or copy the padded view to a tensor in GL \
                     and index that"
                ),
            );
        }
        Ok(most)
    }

    /// The buffer of this gather; created on first use.
    fn gather_buffer(&mut self, gather: Gather, cosize: i64, span: Span) -> BufferId {
        let known = self.p.buffers.iter().find(|(_, b)| b.gather == Some(gather));
        if let Some((id, _)) = known {
            return id;
        }
        let from = self.p.buffers[gather.source].clone();
        let id = BufferId::from(self.p.buffers.len());
        self.p.buffers.push(Buffer {
            cosize: Dim::Const(cosize),
            gather: Some(gather),
            range: from.range,
            splits: false,
            distinct: false,
            tensor: TensorId::from(self.p.tensors.len()),
            span,
            node: self.node,
            ..from
        });
        self.p.tensors.push(Tensor {
            name: None,
            buffer: id,
            levels: vec![],
            offset: Dim::Const(0),
            dist: None,
            peer: None,
            map: None,
            bounds: vec![],
            span,
        });
        id
    }

    /// A help that asks for the missing upper bound of a symbol.
    pub(super) fn bound_wanted(&self, dims: &[Dim]) -> String {
        let cx = &self.p.arena;
        let unbounded = dims
            .iter()
            .flat_map(|d| cx.vars_of(*d))
            .map(|v| cx.var_info(v))
            .find(|info| info.hi.is_none());
        match unbounded {
            Some(info) => format!("state an upper bound, `where {} <= 65536`", info.name),
            None => "make it smaller".to_owned(),
        }
    }

    /// Whether all integers in `range` are coordinates of a mode of `size` elements.
    pub(super) fn is_within(&self, range: Option<(Dim, Dim)>, size: Dim) -> bool {
        let cx = &self.p.arena;
        let known = |d: Dim| cx.range(d).0.is_some_and(|lo| lo >= 0);
        range.is_some_and(|(lo, hi)| known(lo) && Dim::sub(cx, size, hi).is_ok_and(known))
    }
}

/// The error for `name` as the index of a mode.
fn refuse_index<T>(
    name: &ast::Name,
    message: impl Into<String>,
    label: impl Into<String>,
    help: &str,
) -> Fallible<T> {
    fail(Diagnostic::new(Code::DataIndex, name.span, message).label(label).help(help))
}

/// The extents and strides on which the offsets in one coordinate of mode `i` depend.
fn others_of(t: &Tensor, modes: &[Layout<Dim>], i: usize) -> Vec<Dim> {
    let others = modes[..i].iter().chain(&modes[i + 1..]).chain(t.levels.iter().skip(1));
    let leaves =
        others.flat_map(|other| other.leaves().iter().flat_map(|(n, stride)| [*n, *stride]));
    leaves.chain([t.offset]).collect()
}

/// Whether a buffer has integers of the caller, which can be coordinates or numbers.
pub(super) fn is_of_integers(of: &Buffer) -> bool {
    let integer = of.scalar.int_range().is_some() && of.scalar != Scalar::Bool;
    of.is_global() && of.gather.is_none() && integer
}
