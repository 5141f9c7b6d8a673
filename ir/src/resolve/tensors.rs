//! Resolves declarations, allocations and views of data tensors: each tensor becomes an offset into
//! a buffer and levels of layouts, the bracketed parts of its type such as `[4,4].[32,32]`. It
//! applies the operations of views, such as `.tile`, `.reshape`, `.permute`, `.tv`, `.mine` and
//! plain indices; other files resolve `.pad` (`pads`), `.tensormap` (`maps`), ranges, gathers and
//! `.iota` (`ranges_and_gathers`). A tile that its tensor does not divide gets a bound, beyond
//! which its elements do not exist.

use super::exprs::{base, overflow, refused};
use super::scope::{Binding, Sigil};
use super::{Fallible, Resolver, fail};
use crate::ast::{self, Elements, Expr, LayoutExpr, TensorType, Tiler, TypeAttr, ViewOp};
use crate::diag::{Code, Diagnostic, count};
use crate::expr::Dim;
use crate::layout::Layout;
use crate::leaf::Leaf;
use crate::limits;
use crate::program::{Bound, Buffer, BufferId, Dist, Taken, Tensor, TensorId};
use crate::scalar::{Memory, Scalar};
use crate::span::Span;
use crate::tuple::IntTuple;

impl Resolver {
    pub(super) fn data_decl(
        &mut self,
        name: &ast::Name,
        ty: &TensorType,
        range: Option<&Elements>,
    ) -> Fallible<TensorId> {
        let place = |message: String, help: &str| {
            fail(Diagnostic::new(Code::Placement, ty.span, message).help(help))
        };
        if self.depth > 0 {
            return place(
                format!("`%{}` is declared inside a body", name.text),
                "write `Allocate` before it, or move the declaration to the top",
            );
        }
        let number = ty.memory.is_none() && ty.levels.iter().all(|l| l.modes.is_empty());
        let mut placed = ty.clone();
        if number {
            placed.memory = Some(Memory::Pm);
        }
        let ty = &placed;
        if !ty.memory.is_some_and(Memory::is_global) && !number {
            return fail(
                Diagnostic::new(
                    Code::MemoryMismatch,
                    ty.span,
                    format!("`%{}` is a tensor of the caller, but not in GL", name.text),
                )
                .label(match ty.memory {
                    Some(memory) => format!("it is in {memory}"),
                    None => "it has no memory".to_owned(),
                })
                .help("write `.GL`, or `Allocate` it in the body of a spec"),
            );
        }
        if number
            && (ty.scalar.bits() < 8 && ty.scalar != Scalar::Bool || ty.scalar == Scalar::Mbarrier)
        {
            return fail(
                Diagnostic::new(
                    Code::MemoryMismatch,
                    ty.span,
                    format!("`%{}` is passed by value, but has type {}", name.text, ty.scalar),
                )
                .label("a number of the caller has at least 8 bits")
                .help(format!("declare it as `i8`, and convert it, `cast(%n, {})`", ty.scalar)),
            );
        }
        let id = self.storage(name, ty)?;
        let buffer = self.p.tensors[id].buffer;
        if let Some(elements) = range {
            let range = self.splits(elements, ty, &self.p.tensors[id].levels)?;
            let (from, to) = match elements {
                Elements::Within(from, to) | Elements::Distinct(from, to) => (from, to),
                Elements::Splits(n) => (n, n),
            };
            self.p.buffers[buffer].splits = matches!(elements, Elements::Splits(_));
            self.p.buffers[buffer].distinct = matches!(elements, Elements::Distinct(..));
            let Some(held) = ty.scalar.int_range() else {
                return fail(
                    Diagnostic::new(
                        Code::DataIndex,
                        from.span,
                        format!("elements of type {} cannot have a range", ty.scalar),
                    )
                    .label("only integers have a range")
                    .help("remove the range, or make the elements integers"),
                );
            };
            let (lo, hi) = (range.0.as_const(), range.1.as_const());
            let span = Span::new(from.span.start as usize, to.span.end as usize);
            if let (Some(lo), Some(hi)) = (lo, hi)
                && lo >= hi
            {
                return fail(
                    Diagnostic::new(Code::DataIndex, span, "the range is empty")
                        .label(format!("from {lo}, and below {hi}"))
                        .help(
                            "write the smallest element and one more than the largest: `in 0..N`",
                        ),
                );
            }
            let below = lo.is_some_and(|lo| i128::from(lo) < held.0);
            if below || hi.is_some_and(|hi| i128::from(hi) - 1 > held.1) {
                return fail(
                    Diagnostic::new(
                        Code::DataIndex,
                        span,
                        format!("the range exceeds the type {}", ty.scalar),
                    )
                    .label(format!("the type has numbers from {} to {}", held.0, held.1))
                    .help("give the tensor a wider type, or narrow the range"),
                );
            }
            self.p.buffers[buffer].range = Some(range);
        }
        self.p.params.push(buffer);
        Ok(id)
    }

    pub(super) fn allocate(&mut self, name: &ast::Name, ty: &TensorType) -> Fallible<TensorId> {
        let what = match ty.memory {
            Some(Memory::Gl) => "global memory cannot be allocated",
            Some(Memory::Pm) => "a number of the caller cannot be allocated",
            Some(Memory::Ix) => "coordinates cannot be allocated",
            Some(Memory::Sh | Memory::Rf) | None => return self.storage(name, ty),
        };
        let help = match ty.memory.is_some_and(Memory::is_computed) {
            true => "use the coordinates of a tensor: `%A.iota(0)`",
            false => "declare it at the top: the caller provides it",
        };
        fail(Diagnostic::new(Code::MemoryMismatch, ty.span, what).help(help))
    }

    /// Creates the buffer, and the tensor with all of its elements.
    fn storage(&mut self, name: &ast::Name, ty: &TensorType) -> Fallible<TensorId> {
        let mut levels = self.declared_levels(&ty.levels)?;
        levels.retain(|l| l.rank() > 0);
        self.check_joined(&levels, ty.span)?;
        let mut buffer = Buffer {
            name: name.text.clone(),
            memory: ty.memory,
            scalar: ty.scalar,
            cosize: self.cosize(&levels, ty.span)?,
            swizzle: None,
            align: (ty.scalar.bits() / 8).max(1),
            at: None,
            reuses: None,
            open: false,
            range: None,
            splits: false,
            distinct: false,
            gather: None,
            tensor: TensorId(0),
            span: ty.span,
            node: self.node,
        };
        if ty.memory.is_some_and(Memory::is_addressable) {
            // The widest access of a thread. Allocators of the caller align to more bytes, and the
            // code generator places shared tensors.
            buffer.align = buffer.align.max(16);
        }
        let mut dist = None;
        no_contradiction(ty)?;
        for attr in &ty.attrs {
            self.attribute(attr, ty, &mut buffer, &mut dist)?;
        }
        if buffer.open && buffer.is_per_thread() {
            let threads = self.one_group(name)?;
            dist = Some(Dist { tv: None, threads, ops: vec![] });
        }
        if buffer.open && buffer.is_of_block() {
            // Positions in the logical shape, until the solver chooses strides.
            levels = self.logical(&levels, ty.span)?;
            buffer.cosize = self.cosize(&levels, ty.span)?;
        }
        if let Some(Dist { tv: Some(tv), .. }) = &dist {
            let v = tv.mode(1).map_err(|e| refused(ty.span, &e))?;
            buffer.cosize = v.size_in(&self.p.arena).map_err(|e| overflow(ty.span, &e))?;
            levels = self.logical(&levels, ty.span)?;
        }
        if let Some(sw) = buffer.swizzle {
            buffer.align = buffer.align.max(sw.period());
        }
        // Each thread has the whole tensor in its registers.
        let private = buffer.is_per_thread() && dist.is_none();
        self.check_size(&buffer, ty.span, private)?;
        let tensor = Tensor {
            name: Some(name.text.clone()),
            buffer: BufferId::from(self.p.buffers.len()),
            levels,
            offset: Dim::Const(0),
            dist,
            peer: None,
            map: None,
            bounds: vec![],
            span: ty.span,
        };
        buffer.tensor = TensorId::from(self.p.tensors.len());
        self.p.buffers.push(buffer);
        Ok(self.p.tensors.push(tensor))
    }

    fn attribute(
        &mut self,
        attr: &TypeAttr,
        ty: &TensorType,
        buffer: &mut Buffer,
        dist: &mut Option<Dist>,
    ) -> Fallible<()> {
        let only = |memory: Memory, what: &str| {
            if ty.memory == Some(memory) {
                return Ok(());
            }
            fail(
                Diagnostic::new(
                    Code::Attribute,
                    ty.span,
                    format!("`{what}` is an attribute of tensors in {memory}"),
                )
                .help("remove the attribute or change the memory"),
            )
        };
        match attr {
            TypeAttr::Open if ty.memory.is_some_and(Memory::is_global) => {
                return fail(
                    Diagnostic::new(
                        Code::Attribute,
                        ty.span,
                        "the layout of the caller's memory cannot be open",
                    )
                    .help("write or omit its strides; omitted ones are row-major"),
                );
            }
            TypeAttr::Open => buffer.open = true,
            TypeAttr::Scalar(name) => {
                return fail(super::subspecs::no_type(name, ty.span));
            }
            TypeAttr::Tv(layout, threads) => {
                only(Memory::Rf, "tv")?;
                let tv = self.layout(layout)?;
                if tv.rank() != 2 {
                    return fail(
                        Diagnostic::new(
                            Code::TvLayout,
                            layout.span,
                            "a thread-value layout does not have two modes",
                        )
                        .label(format!("it has {}", count(tv.rank(), "mode")))
                        .help("write `(threads, values):(.., ..)`"),
                    );
                }
                let threads = self.threads_named(threads)?;
                *dist = Some(Dist { tv: Some(tv), threads: Some(threads), ops: vec![] });
            }
            TypeAttr::Swizzle(of) => {
                only(Memory::Sh, "swizzle")?;
                // A swizzle of no bits has no effect.
                buffer.swizzle = Some(self.swizzle(of, ty.span)?).filter(|sw| sw.bits() > 0);
            }
            TypeAttr::Align(e) => {
                let align = self.constant(e, "the alignment")?;
                if align < 1 || align & (align - 1) != 0 || align > 1 << 16 {
                    return fail(
                        Diagnostic::new(
                            Code::Alignment,
                            e.span,
                            format!("the alignment is {align} bytes"),
                        )
                        .label("not a power of two from 1 to 65536")
                        .help("write a power of two: `align=128`"),
                    );
                }
                buffer.align = align;
            }
            TypeAttr::At(e) => {
                only(Memory::Sh, "at")?;
                let at = self.constant(e, "the address")?;
                if !(0..=1 << 24).contains(&at) {
                    return fail(
                        Diagnostic::new(
                            Code::Alignment,
                            e.span,
                            format!("address {at} is not in shared memory"),
                        )
                        .label("addresses are byte numbers from 0 to 16777216")
                        .help("write a byte address in the block's shared memory: `at=4096`"),
                    );
                }
                buffer.at = Some(at);
            }
            TypeAttr::Reuses(name) => {
                only(Memory::Sh, "reuses")?;
                let other = self.tensor_named(&name.text, name.span)?;
                buffer.reuses = Some(self.p.tensors[other].buffer);
            }
        }
        Ok(())
    }

    fn check_size(&self, buffer: &Buffer, span: Span, private: bool) -> Fallible<()> {
        let cap = match buffer.memory {
            Some(Memory::Rf) if buffer.open => 1 << 24,
            Some(Memory::Rf) => limits::MAX_THREAD_BITS,
            Some(Memory::Sh) => 8 << 24,
            Some(Memory::Gl | Memory::Ix | Memory::Pm) | None => 1 << 50,
        };
        let bits = Dim::mul(&self.p.arena, buffer.cosize, Dim::Const(buffer.scalar.bits()))
            .map_err(|e| overflow(span, &e))?;
        if self.p.arena.range(bits).1.is_some_and(|hi| hi > cap) {
            let name = &buffer.name;
            let (most, help) = match buffer.memory {
                Some(Memory::Rf) if buffer.open => ("of 2 MiB", "make the tensor smaller"),
                // Without `?` or `tv=`, every thread has the whole tensor.
                Some(Memory::Rf) if private => (
                    "four times the 255 registers of 32 bits of one thread",
                    "write `{?}` after `RF`, to distribute it over the threads",
                ),
                Some(Memory::Rf) => (
                    "four times the 255 registers of 32 bits of one thread",
                    "make the tensor smaller, or distribute it over more threads",
                ),
                Some(Memory::Sh) => ("of shared memory", "make the tensor smaller, or tile it"),
                Some(Memory::Gl | Memory::Ix | Memory::Pm) | None => {
                    ("the most that an address reaches", "make the tensor smaller")
                }
            };
            return fail(
                Diagnostic::new(
                    Code::TooLarge,
                    span,
                    format!("`%{name}` takes {} bits", self.p.arena.display(bits)),
                )
                .label(match private {
                    true => format!("each thread would have all of it, but at most {cap} bits fit"),
                    false => format!("at most {cap} bits fit, {most}"),
                })
                .help(help),
            );
        }
        Ok(())
    }

    /// The largest offset of the levels, plus 1.
    fn cosize(&self, levels: &[Layout<Dim>], span: Span) -> Fallible<Dim> {
        let cx = &self.p.arena;
        let mut last = Dim::Const(0);
        for level in levels {
            let cosize = level.cosize_in(cx).map_err(|e| overflow(span, &e))?;
            last = Dim::add(cx, last, cosize).map_err(|e| overflow(span, &e))?;
            last = Dim::sub(cx, last, Dim::Const(1)).map_err(|e| overflow(span, &e))?;
        }
        Dim::add(cx, last, Dim::Const(1)).map_err(|e| overflow(span, &e))
    }

    /// These shapes with column-major strides through all levels, outermost modes first: positions
    /// in the logical shape.
    fn logical(&self, levels: &[Layout<Dim>], span: Span) -> Fallible<Vec<Layout<Dim>>> {
        let cx = &self.p.arena;
        let mut next = Dim::Const(1);
        let mut out = vec![];
        for level in levels {
            let mut strides = vec![];
            for extent in level.shape().flatten() {
                strides.push(next);
                next = Dim::mul(cx, next, extent).map_err(|e| overflow(span, &e))?;
            }
            let mut it = strides.into_iter();
            let stride = level.shape().map(&mut |_| it.next().unwrap_or(Dim::Const(0)));
            out.push(
                Layout::new_in(cx, level.shape().clone(), stride).map_err(|e| refused(span, &e))?,
            );
        }
        Ok(out)
    }

    pub(super) fn data_def(
        &mut self,
        name: &ast::Name,
        ty: Option<&TensorType>,
        view: &ast::View,
    ) -> Fallible<TensorId> {
        let mut tensor = self.data_view(view)?;
        if let Some(ty) = ty {
            let buffer = &self.p.buffers[tensor.buffer];
            let what = format!("%{}", name.text);
            self.check_type(ty, buffer.scalar, buffer.memory, &tensor.levels, &what)?;
        }
        tensor.name = Some(name.text.clone());
        if let (Some(map), Some(ViewOp::TensorMap { .. })) = (&tensor.map, view.ops.last()) {
            self.p.maps[map.map].name = Some(name.text.clone());
        }
        Ok(self.p.tensors.push(tensor))
    }

    /// An operand: the named tensor, or a new tensor for a view.
    pub(super) fn operand(&mut self, view: &ast::View) -> Fallible<TensorId> {
        if view.ops.is_empty() {
            return self.tensor_named(&view.base.text, view.base.span);
        }
        let tensor = self.data_view(view)?;
        Ok(self.p.tensors.push(tensor))
    }

    pub(super) fn tensor_named(&self, name: &str, span: Span) -> Fallible<TensorId> {
        match self.scopes.get(Sigil::Data, name) {
            Some(Binding::Tensor(id)) => {
                let dims = self.p.tensors[id].indices();
                self.is_current(dims, format_args!("%{name}"), span).map(|()| id)
            }
            Some(_) => Err(Box::new(self.silent(span))),
            None => Err(self.unknown(Sigil::Data, name, span)),
        }
    }

    /// A view that is not added to the program.
    pub(super) fn viewed(&mut self, view: &ast::View) -> Fallible<Tensor> {
        match view.ops.is_empty() {
            true => Ok(self.p.tensors[self.tensor_named(&view.base.text, view.base.span)?].clone()),
            false => self.data_view(view),
        }
    }

    pub(super) fn data_view(&mut self, view: &ast::View) -> Fallible<Tensor> {
        let (name, span) = base(view);
        let id = self.tensor_named(name, span)?;
        let mut t = self.p.tensors[id].clone();
        t.name = None;
        t.span = view.span;
        for (i, op) in view.ops.iter().enumerate() {
            let open = self.p.buffers[t.buffer].open && t.dist.is_none();
            let ranges = match op {
                ViewOp::Pick(picks) if open => self.ranges(t.levels.first(), picks)?,
                _ => vec![],
            };
            // Operations on complete tiles are less restricted, so drop bounds that provably hold.
            if matches!(op, ViewOp::Tv(..) | ViewOp::Reshape(_) | ViewOp::TensorMap { .. }) {
                t.bounds.retain(|bound| !self.is_kept(bound));
            }
            let n_bounds = t.bounds.len();
            self.apply(&mut t, op, view).map_err(|d| in_mode(d, view, i))?;
            self.strongest(&mut t, n_bounds);
            self.align_bounds(&mut t, view.span)?;
            if open {
                self.p.taken.push(Taken { buffer: t.buffer, left: t.levels.clone(), ranges });
            }
        }
        self.check_joined(&t.levels, view.span)?;
        self.is_known_part(&t, view.span)?;
        t.bounds.retain(|bound| !self.is_kept(bound));
        Ok(t)
    }

    pub(super) fn apply(&mut self, t: &mut Tensor, op: &ViewOp, view: &ast::View) -> Fallible<()> {
        let span = view.span;
        if let ViewOp::Iota(axis) = op {
            return self.coordinates_of(t, axis, span);
        }
        if t.dist.is_some() && !matches!(op, ViewOp::Mine) {
            self.of_threads(t, op, view)?;
        }
        self.check_layout_known(t, op, view)?;
        if t.map.is_some() {
            return self.map_box(t, op, span);
        }
        match op {
            ViewOp::Peer(rank) => self.in_peer(t, rank, view)?,
            ViewOp::TensorMap { sizes, swizzle } => {
                self.tensor_map(t, sizes, swizzle.as_deref(), span)?
            }
            ViewOp::Tile(tiler) => self.tiled_with_bounds(t, tiler, span)?,
            ViewOp::Reshape(l) => {
                for levels in all_levels(t) {
                    let level = self.outermost(levels, span)?.clone();
                    levels[0] = self.reshape(&level, l)?;
                }
            }
            ViewOp::Index(args) => {
                self.indexed(&mut t.offset, &mut t.levels, args, span)?;
                for bound in &mut t.bounds {
                    self.indexed(&mut bound.offset, &mut bound.levels, args, span)?;
                }
            }
            ViewOp::Permute(order) => {
                for levels in all_levels(t) {
                    let level = self.outermost(levels, span)?.clone();
                    levels[0] = self.permuted(&level, order, span)?;
                }
            }
            ViewOp::Pick(picks) => self.picked(t, picks, span)?,
            ViewOp::Pad(pad) => self.padded(t, pad, view)?,
            ViewOp::Plus(number) => self.plus(t, number, span)?,
            // Applied before the other operations.
            ViewOp::Iota(_) => {}
            ViewOp::Mine => self.values_of_one_thread(t, view)?,
            ViewOp::Tv(l, threads) => self.thread_values(t, l, threads, span)?,
            ViewOp::Scalar | ViewOp::Elect => {
                return fail(
                    Diagnostic::new(
                        Code::Placement,
                        span,
                        "the operation applies to thread tensors only",
                    )
                    .help("index the tensor down to one element"),
                );
            }
        }
        Ok(())
    }

    /// Refuses operations that need to know an open layout, and tensor maps of gathered elements.
    fn check_layout_known(&self, t: &Tensor, op: &ViewOp, view: &ast::View) -> Fallible<()> {
        let span = view.span;
        if self.p.buffers[t.buffer].gather.is_some() && matches!(op, ViewOp::TensorMap { .. }) {
            return fail(
                Diagnostic::new(Code::TensorMapUse, span, "a tensor map of gathered elements")
                    .help("declare the map of the caller's tensor, and copy its boxes"),
            );
        }
        if self.p.buffers[t.buffer].open && matches!(op, ViewOp::Tv(..) | ViewOp::Reshape(_)) {
            return fail(
                Diagnostic::new(
                    Code::OpenLayout,
                    span,
                    format!("the layout of `%{}` is open", view.base.text),
                )
                .label("this operation needs the layout")
                .help(
                    "write strides in place of `{?}`, as in `[(8,8):(8,1)]`; or delete the bodies \
                     of the statements that use the tensor: the solver writes them again",
                ),
            );
        }
        Ok(())
    }

    /// Applies `.peer(rank)`: the tensor in another block of the cluster.
    fn in_peer(&self, t: &mut Tensor, rank: &Expr, view: &ast::View) -> Fallible<()> {
        let span = view.span;
        let what = format!("`%{}`", view.base.text);
        let misplaced = |message: String, help: &str| {
            fail(Diagnostic::new(Code::Placement, span, message).help(help))
        };
        if !self.p.buffers[t.buffer].is_shared() {
            let message = format!("{what} is not in SH, so other blocks have no such tensor");
            return misplaced(message, "remove `.peer`");
        }
        if t.peer.is_some() {
            let message = format!("{what} is already in another block");
            return misplaced(message, "use `.peer` once");
        }
        t.peer = Some(self.expr(rank)?);
        Ok(())
    }

    /// Tiles the outermost level, and the corresponding levels of the bounds.
    fn tiled_with_bounds(&mut self, t: &mut Tensor, tiler: &Tiler, span: Span) -> Fallible<()> {
        let may_be_partial = self.may_be_partial(t);
        if may_be_partial {
            self.bound_by_tiles(t, tiler, span)?;
        }
        self.tiled(&mut t.levels, tiler, may_be_partial, span)?;
        for bound in &mut t.bounds {
            self.tiled(&mut bound.levels, tiler, may_be_partial, span)?;
        }
        Ok(())
    }

    /// Applies `.plus(number)` to coordinates.
    fn plus(&mut self, t: &mut Tensor, number: &Expr, span: Span) -> Fallible<()> {
        if !self.p.buffers[t.buffer].is_computed() {
            return fail(
                Diagnostic::new(
                    Code::Placement,
                    span,
                    "`.plus` of a tensor that does not contain coordinates",
                )
                .help("write the sum, `%x + 1`; for coordinates use `.iota(axis)`"),
            );
        }
        let number = self.expr(number)?;
        let cx = &self.p.arena;
        t.offset = Dim::add(cx, t.offset, number).map_err(|e| overflow(span, &e))?;
        self.fits_32_bits(t, span)?;
        self.count_on(t);
        Ok(())
    }

    /// Applies `.mine`: the registers that hold the values of one thread.
    fn values_of_one_thread(&self, t: &mut Tensor, view: &ast::View) -> Fallible<()> {
        let span = view.span;
        if t.dist.as_ref().is_some_and(|d| !d.ops.is_empty()) {
            return fail(
                Diagnostic::new(
                    Code::Placement,
                    span,
                    format!("`.mine` is applied to a part of `%{}`", view.base.text),
                )
                .help("apply `.mine` to the whole tensor, and index its registers"),
            );
        }
        let Some(Dist { tv, .. }) = t.dist.take() else {
            return fail(
                Diagnostic::new(
                    Code::Placement,
                    span,
                    format!("`%{}` is not distributed over threads", view.base.text),
                )
                .help("remove `.mine`"),
            );
        };
        let Some(tv) = tv else {
            return fail(
                Diagnostic::new(
                    Code::OpenLayout,
                    span,
                    format!("the thread-value layout of `%{}` is open", view.base.text),
                )
                .label("`.mine` needs the layout")
                .help(
                    "write `{tv=(..):(..) over #cta}` in place of `{?}`; or delete the bodies of \
                     the statements that use the tensor: the solver writes them again",
                ),
            );
        };
        let values = tv.mode(1).map_err(|e| refused(span, &e))?;
        let modes: Vec<IntTuple<Dim>> = values.modes().iter().map(|m| m.shape().clone()).collect();
        let shape = Layout::col_major_in(&self.p.arena, IntTuple::Tuple(modes))
            .map_err(|e| refused(span, &e))?;
        t.levels = vec![shape];
        Ok(())
    }

    /// Creates a buffer for coordinates that exceed the range of the buffer's elements.
    fn count_on(&mut self, t: &mut Tensor) {
        let counts = self.p.buffers[t.buffer].clone();
        t.buffer = BufferId::from(self.p.buffers.len());
        self.p.buffers.push(Buffer { range: None, splits: false, distinct: false, ..counts });
    }

    /// Checks that coordinates with an added number fit 32 bits.
    fn fits_32_bits(&self, t: &Tensor, span: Span) -> Fallible<()> {
        let cx = &self.p.arena;
        let (lo, hi) = cx.range(t.offset);
        let last = t.concat().cosize_in(cx).ok().and_then(|n| cx.range(n).1);
        let most = hi.zip(last).and_then(|(hi, last)| hi.checked_add(last));
        let fits = |n: Option<i64>| n.is_some_and(|n| i32::try_from(n).is_ok());
        if fits(lo) && fits(most) {
            return Ok(());
        }
        fail(
            Diagnostic::new(Code::TooLarge, span, "the coordinates do not fit i32")
                .label(format!("the first one is {}", cx.display(t.offset)))
                .help("bound the symbols, `where N <= 65536`, or the number, `min(N, 65536)`"),
        )
    }

    fn indexed(
        &self,
        offset: &mut Dim,
        levels: &mut Vec<Layout<Dim>>,
        args: &[Option<Expr>],
        span: Span,
    ) -> Fallible<()> {
        let (at, kept) = self.index(levels.first(), args, span)?;
        *offset = Dim::add(&self.p.arena, *offset, at).map_err(|e| overflow(span, &e))?;
        replace_outermost(levels, kept);
        Ok(())
    }

    fn tiled(
        &self,
        levels: &mut Vec<Layout<Dim>>,
        tiler: &Tiler,
        may_be_partial: bool,
        span: Span,
    ) -> Fallible<()> {
        let level = self.outermost(levels, span)?.clone();
        let (rest, tile) = self.tile(&level, tiler, may_be_partial, span)?;
        levels.splice(0..1, [rest, tile]);
        Ok(())
    }

    /// Prepares a distributed tensor for an operation that selects elements, independent of the
    /// threads that hold them.
    fn of_threads(&self, t: &mut Tensor, op: &ViewOp, view: &ast::View) -> Fallible<()> {
        let from_data = |p: &ast::Pick| matches!(p, ast::Pick::From(_));
        let takes = match op {
            ViewOp::Permute(_) | ViewOp::Tile(_) | ViewOp::Index(_) => true,
            ViewOp::Pick(picks) => !picks.iter().any(from_data),
            _ => false,
        };
        if !takes {
            return fail(
                Diagnostic::new(
                    Code::Placement,
                    view.span,
                    format!(
                        "`%{}` is distributed over threads, which this operation cannot change",
                        view.base.text
                    ),
                )
                .label("only transposing, permuting, tiling and indexing are possible")
                .help("get the values of one thread with `.mine` first"),
            );
        }
        let Some(dist) = t.dist.as_mut().filter(|d| d.ops.is_empty()) else {
            t.dist.iter_mut().for_each(|d| d.ops.push(op.clone()));
            return Ok(());
        };
        dist.ops.push(op.clone());
        // Registers have no strides: after this operation, the levels are positions.
        t.levels = self.logical(&t.levels, view.span)?;
        Ok(())
    }

    /// Checks that a part of a distributed tensor is constant, so that the threads that hold it are
    /// known.
    fn is_known_part(&self, t: &Tensor, span: Span) -> Fallible<()> {
        let part = t.dist.as_ref().is_some_and(|d| !d.ops.is_empty());
        if !part || t.offset.as_const().is_some() && t.concat().to_fixed().is_some() {
            return Ok(());
        }
        let name = &self.p.buffers[t.buffer].name;
        fail(
            Diagnostic::new(
                Code::Placement,
                span,
                format!("the part of `%{name}` is known only at run time"),
            )
            .label("different threads would hold it while the kernel runs")
            .help("index by constants, or keep the tensor in SH"),
        )
    }

    /// Reorders the modes: mode i of the result is mode `order[i]`. An empty order exchanges the
    /// last two.
    pub(super) fn permuted(
        &self,
        level: &Layout<Dim>,
        order: &[Expr],
        span: Span,
    ) -> Fallible<Layout<Dim>> {
        let mut modes = level.modes();
        let n = modes.len();
        if order.is_empty() {
            if n < 2 {
                return fail(
                    Diagnostic::new(Code::WrongRank, span, "`.transpose()` needs two modes")
                        .label(format!("the outermost level has {}", count(n, "mode")))
                        .help("remove `.transpose()`, or apply it before the index"),
                );
            }
            modes.swap(n - 2, n - 1);
            return self.joined(&modes, span);
        }
        let order: Vec<i64> = order
            .iter()
            .map(|e| self.constant(e, "a mode of the permutation"))
            .collect::<Fallible<_>>()?;
        let mut seen = order.clone();
        seen.sort_unstable();
        if !seen.iter().copied().eq(0..n as i64) {
            return fail(
                Diagnostic::new(
                    Code::WrongRank,
                    span,
                    format!("{order:?} is not an order of {n} modes"),
                )
                .label(format!("the outermost level is {}", level.display_in(&self.p.arena)))
                .help("name every mode once, counted from 0: `.permute([1,0])`"),
            );
        }
        let modes: Vec<_> = order
            .iter()
            .filter_map(|i| usize::try_from(*i).ok().and_then(|i| modes.get(i).cloned()))
            .collect();
        self.joined(&modes, span)
    }

    pub(super) fn outermost<'a>(
        &self,
        levels: &'a [Layout<Dim>],
        span: Span,
    ) -> Fallible<&'a Layout<Dim>> {
        match levels.first() {
            Some(l) => Ok(l),
            None => fail(
                Diagnostic::new(Code::WrongRank, span, "an operation on a tensor without modes")
                    .label("all modes are already indexed")
                    .help("remove the operation, or keep a mode with `_`"),
            ),
        }
    }

    /// Divides each mode by its tiler, and returns (tiles, inside a tile). Graphene, section 3.3;
    /// CuTe's zipped_divide with the two results exchanged.
    pub(super) fn tile(
        &self,
        level: &Layout<Dim>,
        tiler: &Tiler,
        may_be_partial: bool,
        span: Span,
    ) -> Fallible<(Layout<Dim>, Layout<Dim>)> {
        let cx = &self.p.arena;
        let n = match tiler {
            Tiler::Sizes(s) => s.len(),
            Tiler::Modes(m) => m.len(),
        };
        if n != level.rank() {
            return fail(
                Diagnostic::new(
                    Code::WrongRank,
                    span,
                    format!("{} for {}", count(n, "tile size"), count(level.rank(), "mode")),
                )
                .label(format!("the outermost level is {}", level.display_in(cx)))
                .help("write one tile size for each mode; `_` takes the whole mode"),
            );
        }
        let (mut rest, mut tile) = (vec![], vec![]);
        for (i, mode) in level.modes().into_iter().enumerate() {
            let size = mode.size_in(cx).map_err(|e| overflow(span, &e))?;
            let by = match tiler {
                Tiler::Sizes(s) => match &s[i] {
                    None => None,
                    Some(e) => {
                        let extent = self.tile_size(e)?;
                        // Also for modes that may be empty: the number of tiles is the quotient.
                        let exact = Dim::divides(cx, extent, size).is_true()
                            && cx.range(size).0.is_some_and(|lo| lo > 0);
                        if may_be_partial && !exact {
                            let (others, own) = self.covered(&mode, size, extent, e.span)?;
                            rest.push(others);
                            tile.push(own);
                            continue;
                        }
                        self.check_divides(extent, size, e.span)?;
                        Some((
                            Layout::new_in(
                                cx,
                                IntTuple::Leaf(extent),
                                IntTuple::Leaf(Dim::Const(1)),
                            )
                            .map_err(|e| refused(span, &e))?,
                            e.span,
                        ))
                    }
                },
                Tiler::Modes(m) => match &m[i] {
                    None => None,
                    Some(l) => {
                        let layout = self.layout(l)?;
                        let extent = layout.size_in(cx).map_err(|e| overflow(l.span, &e))?;
                        self.check_divides(extent, size, l.span)?;
                        Some((layout, l.span))
                    }
                },
            };
            let Some((by, at)) = by else {
                rest.push(unit(cx, at_err(span))?);
                tile.push(mode);
                continue;
            };
            let e = |e: crate::layout::LayoutError| refused(at, &e);
            let others = by.complement_in(cx, size).map_err(e)?;
            let whole = Dim::mul(cx, by.size_in(cx).map_err(e)?, others.size_in(cx).map_err(e)?)
                .map_err(e)?;
            if !Leaf::eq(cx, whole, size).is_true() {
                return fail(
                    Diagnostic::new(
                        Code::TileDivides,
                        at,
                        format!(
                            "tile {} does not divide the extent {}",
                            by.display_in(cx),
                            cx.display(size)
                        ),
                    )
                    .label("its copies do not cover the mode exactly")
                    .help("choose a tile whose copies cover the mode exactly"),
                );
            }
            tile.push(mode.compose_in(cx, &by).map_err(e)?);
            rest.push(mode.compose_in(cx, &others).map_err(e)?);
        }
        Ok((self.joined(&rest, span)?, self.joined(&tile, span)?))
    }

    /// The extent of a tile, at least 1.
    fn tile_size(&self, e: &Expr) -> Fallible<Dim> {
        let extent = self.expr(e)?;
        if self.p.arena.range(extent).0.is_none_or(|lo| lo < 1) {
            let shown = self.p.arena.display(extent);
            let of_data = self.of_elements(&[extent]);
            let help = match (extent, &of_data[..]) {
                (Dim::Const(_), _) => "write a size of at least 1".to_owned(),
                (_, "") => {
                    format!("write a size of at least 1, or state `where {shown} > 0`")
                }
                (_, _) => {
                    format!("use the range `0..{shown}`, and tiles of a constant size of it")
                }
            };
            let message = match extent {
                Dim::Const(_) => "a tile has no elements",
                Dim::Expr(_) => "a tile may have no elements",
            };
            return fail(
                Diagnostic::new(Code::TileDivides, e.span, message)
                    .label(format!("its size is {shown}{of_data}"))
                    .help(help),
            );
        }
        Ok(extent)
    }

    /// Divides a mode into tiles, the last of them possibly partial. Returns the mode that counts
    /// tiles and the mode in a tile.
    fn covered(
        &self,
        mode: &Layout<Dim>,
        size: Dim,
        tile: Dim,
        span: Span,
    ) -> Fallible<(Layout<Dim>, Layout<Dim>)> {
        let cx = &self.p.arena;
        let e = |e: crate::layout::LayoutError| overflow(span, &e);
        let plain = |n: Dim, s: Dim| {
            Layout::new_in(cx, IntTuple::Leaf(n), IntTuple::Leaf(s)).map_err(|e| refused(span, &e))
        };
        let count = Dim::ceil_div(cx, size, tile).map_err(e)?;
        // The rounded extent must not overflow either.
        Dim::mul(cx, count, tile).map_err(e)?;
        let is_one = count == Dim::Const(1);
        if let IntTuple::Leaf(stride) = mode.stride() {
            let apart =
                if is_one { Dim::Const(0) } else { Dim::mul(cx, stride, tile).map_err(e)? };
            return Ok((plain(count, apart)?, plain(tile, stride)?));
        }
        // The outermost part of a nested mode is extended. Both results are computed together,
        // because a position in a tile may carry into the next part.
        let pair = |a: Dim, b: Dim| IntTuple::Tuple(vec![IntTuple::Leaf(a), IntTuple::Leaf(b)]);
        let apart = if is_one { Dim::Const(0) } else { tile };
        let both = Layout::new_in(cx, pair(tile, count), pair(Dim::Const(1), apart))
            .map_err(|e| refused(span, &e))?;
        let parts = mode.compose_in(cx, &both).and_then(|l| Ok((l.mode(1)?, l.mode(0)?)));
        parts.or_else(|e| {
            self.check_divides(tile, size, span)?;
            Err(refused(span, &e))
        })
    }

    /// Whether a view may have partial tiles: reads outside of the caller's tensors give zeros.
    fn may_be_partial(&self, t: &Tensor) -> bool {
        let buffer = &self.p.buffers[t.buffer];
        // Coordinates have no bounds and simply continue. So the tiles of a mode may be partial,
        // but not tiles of such tiles.
        let is_given = buffer.is_global() || buffer.is_computed() && t.levels.len() == 1;
        is_given && t.dist.is_none() && t.map.is_none()
    }

    /// Adds a bound to the untiled view for each mode that the tiles do not divide. Coordinates
    /// continue without a bound.
    fn bound_by_tiles(&mut self, t: &mut Tensor, tiler: &Tiler, span: Span) -> Fallible<()> {
        let Tiler::Sizes(sizes) = tiler else { return Ok(()) };
        let level = self.outermost(&t.levels, span)?.clone();
        let cx = &self.p.arena;
        let modes = level.modes();
        let mut moved = modes.clone();
        for (i, (mode, by)) in modes.iter().zip(sizes).enumerate() {
            let Some(by) = by else { continue };
            let extent = mode.size_in(cx).map_err(|e| overflow(span, &e))?;
            if Dim::divides(cx, self.tile_size(by)?, extent).is_true() {
                continue;
            }
            if self.p.buffers[t.buffer].is_computed() {
                self.count_on(t);
                return Ok(());
            }
            let mut identity = vec![];
            for (k, mode) in modes.iter().enumerate() {
                identity.push(match i == k {
                    true => self.counting(mode, span)?,
                    false => self.constant_over(mode, span)?,
                });
            }
            let mut levels = vec![self.joined(&identity, span)?];
            for inner in t.levels.iter().skip(1) {
                levels.push(self.constant_over(inner, span)?);
            }
            t.bounds.push(Bound { levels, offset: Dim::Const(0), extent, filled: false });
            // In a mode of one element, the other positions of the tile must not coincide with the
            // element, so the stride must not be 0.
            let only = (IntTuple::Leaf(Dim::Const(1)), IntTuple::Leaf(Dim::Const(0)));
            if (mode.shape(), mode.stride()) == only {
                let one = IntTuple::Leaf(Dim::Const(1));
                moved[i] = Layout::new_in(cx, one.clone(), one).map_err(|e| refused(span, &e))?;
            }
        }
        if moved != modes {
            t.levels[0] = self.joined(&moved, span)?;
        }
        Ok(())
    }

    /// Splits the modes of a view and of its bounds until all have equal extents. They can differ
    /// because an operation merges modes whose strides continue each other, which may hold only for
    /// the view or only for a bound.
    fn align_bounds(&self, t: &mut Tensor, span: Span) -> Fallible<()> {
        for i in 0..t.levels.len() {
            let bounds = t.bounds.iter().filter_map(|bound| bound.levels.get(i));
            let all: Vec<Layout<Dim>> =
                std::iter::once(&t.levels[i]).chain(bounds).cloned().collect();
            if all.iter().all(|level| level.shape() == all[0].shape()) {
                continue;
            }
            let aligned = self.aligned(&all, span)?;
            for (levels, level) in all_levels(t).zip(aligned) {
                levels[i] = level;
            }
        }
        Ok(())
    }

    /// These layouts with a common shape, grouped by the modes of the first one.
    fn aligned(&self, all: &[Layout<Dim>], span: Span) -> Fallible<Vec<Layout<Dim>>> {
        let cx = &self.p.arena;
        let one = Dim::Const(1);
        // The remaining modes of each layout, fastest last. `of_mode` tells for the first layout
        // which mode each belongs to.
        let mut rest: Vec<Vec<(Dim, Dim)>> = vec![];
        for layout in all {
            let leaves = layout.leaves().iter().rev().copied();
            rest.push(leaves.filter(|(extent, _)| *extent != one).collect());
        }
        let modes = all[0].modes();
        let mut of_mode: Vec<usize> = vec![];
        for (i, mode) in modes.iter().enumerate() {
            let moving = mode.leaves().iter().filter(|(extent, _)| *extent != one);
            of_mode.extend(moving.map(|_| i));
        }
        of_mode.reverse();
        // The modes that are already split off, by mode of the first layout.
        let mut parts: Vec<Vec<Vec<(Dim, Dim)>>> = vec![vec![vec![]; modes.len()]; all.len()];
        while let Some(mode) = of_mode.pop() {
            let heads: Option<Vec<(Dim, Dim)>> =
                rest.iter_mut().map(|left: &mut Vec<(Dim, Dim)>| left.pop()).collect();
            let heads = heads.unwrap_or_default();
            let divides_all = |by: &&(Dim, Dim)| {
                let divides = |of: Dim| of == by.0 || Dim::divides(cx, by.0, of).is_true();
                heads.iter().all(|(of, _)| divides(*of))
            };
            let Some((by, _)) = heads.iter().find(divides_all) else {
                return Err(self.unaligned(all, span));
            };
            for ((&(extent, stride), left), parts) in heads.iter().zip(&mut rest).zip(&mut parts) {
                parts[mode].push((*by, stride));
                if extent != *by {
                    let e = |e: crate::layout::LayoutError| overflow(span, &e);
                    let others = Dim::div(cx, extent, *by).map_err(e)?;
                    left.push((others, Dim::mul(cx, stride, *by).map_err(e)?));
                }
            }
            if heads.first().is_some_and(|(extent, _)| extent != by) {
                of_mode.push(mode);
            }
        }
        if rest.iter().any(|left| !left.is_empty()) {
            return Err(self.unaligned(all, span));
        }
        let made = |leaves: &Vec<(Dim, Dim)>| match leaves.as_slice() {
            [] => unit(cx, at_err(span)),
            leaves => {
                let (shape, stride): (Vec<_>, Vec<_>) =
                    leaves.iter().map(|(n, s)| (IntTuple::Leaf(*n), IntTuple::Leaf(*s))).unzip();
                let nest = |mut all: Vec<IntTuple<Dim>>| match all.len() {
                    1 => all.remove(0),
                    _ => IntTuple::Tuple(all),
                };
                Layout::new_in(cx, nest(shape), nest(stride)).map_err(|e| refused(span, &e))
            }
        };
        let mut aligned = vec![];
        for modes in &parts {
            let modes = modes.iter().map(made).collect::<Fallible<Vec<_>>>()?;
            aligned.push(self.joined(&modes, span)?);
        }
        Ok(aligned)
    }

    fn unaligned(&self, all: &[Layout<Dim>], span: Span) -> Box<Diagnostic> {
        let shown: Vec<_> =
            all.iter().map(|level| level.display_in(&self.p.arena).to_string()).collect();
        let message = "the modes of the view do not determine which of its elements exist";
        let refused = Diagnostic::new(Code::LayoutRefused, span, message)
            .label(format!("the layouts of offsets and coordinates are {}", shown.join(" and ")))
            .help("apply the operations in another order, or use tiles that divide the tensor");
        Box::new(refused)
    }

    /// A layout of this shape that numbers the elements, also beyond its end: modes of extent 1
    /// have nonzero strides.
    pub(super) fn counting(&self, of: &Layout<Dim>, span: Span) -> Fallible<Layout<Dim>> {
        let cx = &self.p.arena;
        let shape = of.shape();
        let mut strides = vec![];
        let mut next = Dim::Const(1);
        for extent in shape.flatten() {
            strides.push(next);
            next = Dim::mul(cx, next, extent).map_err(|e| overflow(span, &e))?;
        }
        let mut strides = strides.into_iter();
        let stride = shape.map(&mut |_| strides.next().unwrap_or(Dim::Const(0)));
        Layout::new_in(cx, shape, stride).map_err(|e| refused(span, &e))
    }

    /// A layout of this shape that is zero everywhere.
    pub(super) fn constant_over(&self, of: &Layout<Dim>, span: Span) -> Fallible<Layout<Dim>> {
        let shape = of.shape();
        let stride = shape.map(&mut |_| Dim::Const(0));
        Layout::new_in(&self.p.arena, shape, stride).map_err(|e| refused(span, &e))
    }

    /// Removes bounds that follow from others: among bounds with equal layouts, the strongest one
    /// remains. This keeps the number of bounds small in views with many tilings or pads.
    fn strongest(&self, t: &mut Tensor, n_before: usize) {
        let cx = &self.p.arena;
        // The distance from the offset to the extent.
        let room = |bound: &Bound| cx.sub(bound.extent, bound.offset);
        let mut next = n_before;
        while next < t.bounds.len() {
            let of_new = &t.bounds[next];
            // Whether the other bound follows from the new one (`true`), or the reverse.
            let follows = (0..next).find_map(|i| {
                let other = &t.bounds[i];
                if other.levels != of_new.levels {
                    return None;
                }
                let more = cx.sub(room(other).ok()?, room(of_new).ok()?).ok()?;
                // A filled bound never replaces one that is not filled: elements outside of the
                // latter do not exist.
                match cx.range(more) {
                    (Some(0..), _) if other.filled || !of_new.filled => Some((i, true)),
                    (_, Some(..=0)) if of_new.filled || !other.filled => Some((i, false)),
                    _ => None,
                }
            });
            match follows {
                Some((other, true)) => {
                    t.bounds.remove(other);
                    next -= 1;
                }
                Some((_, false)) => drop(t.bounds.remove(next)),
                None => next += 1,
            }
        }
    }

    /// Whether all elements of a view are provably inside of a bound.
    fn is_kept(&self, bound: &Bound) -> bool {
        let cx = &self.p.arena;
        let last = || -> Option<Dim> {
            let mut last = bound.offset;
            for (extent, stride) in bound.concat().leaves() {
                // Decreasing coordinates start with the largest one.
                match cx.range(*stride) {
                    (Some(0..), _) => {}
                    (_, Some(..=0)) => continue,
                    _ => return None,
                }
                let steps = cx.sub(*extent, Dim::Const(1)).ok()?;
                last = cx.add(last, cx.mul(steps, *stride).ok()?).ok()?;
            }
            Some(last)
        };
        last().is_some_and(|last| {
            Dim::lt(cx, last, bound.extent).is_true() || self.proves(last, bound.extent, 1)
        })
    }

    fn check_divides(&self, extent: Dim, size: Dim, span: Span) -> Fallible<()> {
        let cx = &self.p.arena;
        let decision = Dim::divides(cx, extent, size);
        if decision.is_true() {
            return Ok(());
        }
        let mut d = Diagnostic::new(
            Code::TileDivides,
            span,
            format!("{} does not divide {}", cx.display(extent), cx.display(size)),
        )
        .label(format!("the mode has extent {}", cx.display(size)));
        d.help = Some(match decision {
            crate::leaf::Decision::Needs(fact) => format!("state `where {fact}`"),
            crate::leaf::Decision::Known(_) => match (extent, size) {
                (Dim::Const(t), Dim::Const(n)) if t > 0 && n > 0 => {
                    let tiles = || (1..=t.min(n).min(1 << 20)).rev().filter(|c| n % c == 0);
                    let best = tiles().next().unwrap_or(1);
                    // Matrix instructions need tiles that are multiples of 8.
                    let eights = tiles().find(|c| c % 8 == 0);
                    match (t % 8 == 0 && best % 8 != 0, t.checked_mul((n - 1) / t + 1)) {
                        (true, Some(next)) => {
                            let pad = format!("pad the extent to {next} with zeros");
                            eights.map_or(pad.clone(), |c| {
                                format!(
                                    "{pad}, or write {c}: the largest smaller multiple of 8 that \
                                     divides {n}"
                                )
                            })
                        }
                        _ => {
                            format!("write {best}: the largest smaller tile that divides {n}")
                        }
                    }
                }
                _ => "choose a tile that divides the extent".to_owned(),
            },
        });
        fail(d)
    }

    /// Composes the outermost level with a layout over its column-major index.
    pub(super) fn reshape(&self, level: &Layout<Dim>, l: &LayoutExpr) -> Fallible<Layout<Dim>> {
        let cx = &self.p.arena;
        let by = self.layout(l)?;
        let size = |l: &Layout<Dim>, s: Span| l.size_in(cx).map_err(|e| overflow(s, &e));
        let cosize = by.cosize_in(cx).map_err(|e| overflow(l.span, &e))?;
        let (have, want) = (size(level, l.span)?, size(&by, l.span)?);
        if !Leaf::eq(cx, have, want).is_true() || Dim::lt(cx, have, cosize).is_true() {
            return fail(
                Diagnostic::new(
                    Code::ShapeMismatch,
                    l.span,
                    format!("a reshape of {} elements to {}", cx.display(have), by.display_in(cx)),
                )
                .label(format!(
                    "the new layout has {} elements, with indices below {}",
                    cx.display(want),
                    cx.display(cosize)
                ))
                .help(format!(
                    "use each of the {} elements once: a reshape keeps all of them",
                    cx.display(have)
                )),
            );
        }
        level.compose_in(cx, &by).map_err(|e| {
            let d = refused(l.span, &e);
            let Ok(same) = Layout::col_major_in(cx, level.shape()) else { return d };
            let same = same.display_in(cx);
            let note =
                format!("strides count elements, first mode fastest: `{same}` changes nothing");
            Box::new(d.note(note))
        })
    }

    /// Returns the offset of the indexed modes, and a level with the others.
    pub(super) fn index(
        &self,
        level: Option<&Layout<Dim>>,
        args: &[Option<Expr>],
        span: Span,
    ) -> Fallible<(Dim, Option<Layout<Dim>>)> {
        self.index_where(level, args, span, Self::check_range)
    }

    /// Like [`Resolver::index`], with another check of the indices.
    pub(super) fn index_where(
        &self,
        level: Option<&Layout<Dim>>,
        args: &[Option<Expr>],
        span: Span,
        check: fn(&Self, Dim, Dim, Span) -> Fallible<()>,
    ) -> Fallible<(Dim, Option<Layout<Dim>>)> {
        let cx = &self.p.arena;
        let rank = level.map_or(0, Layout::rank);
        if args.len() != rank {
            return fail(
                Diagnostic::new(
                    Code::WrongRank,
                    span,
                    match args.len() {
                        1 => format!("1 index for {}", count(rank, "mode")),
                        n => format!("{n} indices for {}", count(rank, "mode")),
                    },
                )
                .label(match level {
                    Some(level) => format!("the outermost level is {}", level.display_in(cx)),
                    None => "it is a scalar".to_owned(),
                })
                .help("write one index for each mode; `_` keeps a mode"),
            );
        }
        let mut offset = Dim::Const(0);
        let mut kept = vec![];
        for (arg, mode) in args.iter().zip(level.into_iter().flat_map(Layout::modes)) {
            let Some(e) = arg else {
                kept.push(mode);
                continue;
            };
            let i = self.expr(e)?;
            let size = mode.size_in(cx).map_err(|err| overflow(e.span, &err))?;
            check(self, i, size, e.span)?;
            let at = mode.at_in(cx, i).map_err(|err| overflow(e.span, &err))?;
            offset = Dim::add(cx, offset, at).map_err(|err| overflow(e.span, &err))?;
        }
        let kept = if kept.is_empty() { None } else { Some(self.joined(&kept, span)?) };
        Ok((offset, kept))
    }

    /// Applies `.tv(L over #w)`: the values of the executing thread under the layout `L`.
    fn thread_values(
        &mut self,
        t: &mut Tensor,
        l: &LayoutExpr,
        threads: &ast::Name,
        span: Span,
    ) -> Fallible<()> {
        let level = self.outermost(&t.levels, span)?.clone();
        let tv = self.layout(l)?;
        let threads = self.threads_named(threads)?;
        let cx = &self.p.arena;
        let e = |e: crate::layout::LayoutError| refused(l.span, &e);
        if tv.rank() != 2 {
            return fail(
                Diagnostic::new(Code::TvLayout, l.span, "a thread-value layout needs two modes")
                    .label(format!("it has {}", count(tv.rank(), "mode")))
                    .help("write `(threads, values):(.., ..)`"),
            );
        }
        let size = level.size_in(cx).map_err(e)?;
        let cosize = tv.cosize_in(cx).map_err(e)?;
        if !Dim::lt(cx, size, cosize).is_false() {
            return fail(
                Diagnostic::new(
                    Code::TvLayout,
                    l.span,
                    format!(
                        "the thread-value layout reaches element {} of {}",
                        cx.display(cosize),
                        cx.display(size)
                    ),
                )
                .label("its strides count elements of the outermost level, column-major")
                .help("decrease extents or strides, so that it stays in the tensor"),
            );
        }
        let position = self.position(threads, span)?;
        let cx = &self.p.arena;
        let t_mode = tv.mode(0).map_err(e)?;
        let n = t_mode.size_in(cx).map_err(e)?;
        let count = self.thread_count(threads, span)?;
        if !Leaf::eq(cx, n, count).is_true() {
            return fail(
                Diagnostic::new(
                    Code::TvLayout,
                    l.span,
                    format!(
                        "the layout has {} threads, the thread tensor has {}",
                        cx.display(n),
                        cx.display(count)
                    ),
                )
                .label(format!("its first mode is {}", t_mode.display_in(cx)))
                .help(format!("make the size of its first mode {}", cx.display(count))),
            );
        }
        let own_values = |offset: &mut Dim, levels: &mut Vec<Layout<Dim>>| -> Fallible<()> {
            let whole = self.outermost(levels, span)?.compose_in(cx, &tv).map_err(e)?;
            let (own, values) = (whole.mode(0).map_err(e)?, whole.mode(1).map_err(e)?);
            let at = own.at_in(cx, position).map_err(|err| overflow(span, &err))?;
            *offset = Dim::add(cx, *offset, at).map_err(|err| overflow(span, &err))?;
            levels[0] = self.joined(&values.modes(), span)?;
            Ok(())
        };
        own_values(&mut t.offset, &mut t.levels)?;
        for bound in &mut t.bounds {
            own_values(&mut bound.offset, &mut bound.levels)?;
        }
        Ok(())
    }
}

/// The levels of a view, and those of its bounds.
fn all_levels(t: &mut Tensor) -> impl Iterator<Item = &mut Vec<Layout<Dim>>> {
    let bounds = t.bounds.iter_mut().map(|bound| &mut bound.levels);
    std::iter::once(&mut t.levels).chain(bounds)
}

/// Replaces or removes the outermost level.
pub(super) fn replace_outermost(levels: &mut Vec<Layout<Dim>>, by: Option<Layout<Dim>>) {
    levels.splice(0..usize::from(!levels.is_empty()), by);
}

fn at_err(span: Span) -> impl Fn(&crate::layout::LayoutError) -> Box<Diagnostic> {
    move |e| refused(span, e)
}

/// A mode of one element.
fn unit(
    cx: &crate::expr::ExprArena,
    err: impl Fn(&crate::layout::LayoutError) -> Box<Diagnostic>,
) -> Fallible<Layout<Dim>> {
    Layout::new_in(cx, IntTuple::Leaf(Dim::Const(1)), IntTuple::Leaf(Dim::Const(0)))
        .map_err(|e| err(&e))
}

/// Refuses repeated attributes, and stated layouts of a type with `?`.
fn no_contradiction(ty: &TensorType) -> Fallible<()> {
    let refuse = |message: String, help: &str| {
        fail(Diagnostic::new(Code::Attribute, ty.span, message).help(help))
    };
    let name = |attr: &TypeAttr| match attr {
        TypeAttr::Open => "?",
        TypeAttr::Tv(..) => "tv",
        TypeAttr::Swizzle(..) => "swizzle",
        TypeAttr::Align(_) => "align",
        TypeAttr::At(_) => "at",
        TypeAttr::Reuses(_) => "reuses",
        TypeAttr::Scalar(_) => "type",
    };
    for (i, attr) in ty.attrs.iter().enumerate() {
        if ty.attrs[..i].iter().any(|other| name(other) == name(attr)) {
            return refuse(
                format!("`{}` is written twice in one type", name(attr)),
                "remove one of them",
            );
        }
    }
    if !ty.attrs.contains(&TypeAttr::Open) {
        return Ok(());
    }
    if ty.attrs.iter().any(|a| matches!(a, TypeAttr::Tv(..))) {
        return refuse(
            "`tv=` contradicts the open layout, `?`".to_owned(),
            "remove `?` to keep the layout, or `tv=` to let the solver choose",
        );
    }
    if ty.levels.iter().any(|level| level.strides.is_some()) {
        return refuse(
            "the strides contradict the open layout, `?`".to_owned(),
            "remove `?` to keep the strides, or the strides to let the solver choose",
        );
    }
    Ok(())
}

/// Adds the mode and the tensor to an error about an index or range.
pub(super) fn in_mode(mut d: Box<Diagnostic>, view: &ast::View, op: usize) -> Box<Diagnostic> {
    let mode = match view.ops.get(op) {
        Some(ViewOp::Index(args)) => {
            args.iter().position(|e| e.as_ref().is_some_and(|e| e.span.is_at(d.span)))
        }
        Some(ViewOp::Pick(picks)) => picks.iter().position(|pick| match pick {
            ast::Pick::At(e) => e.span.is_at(d.span),
            ast::Pick::Range(from, to) => from.span.to(to.span).is_at(d.span),
            ast::Pick::From(_) | ast::Pick::Keep => false,
        }),
        _ => None,
    };
    if let Some(mode) = mode.filter(|_| d.code == Code::IndexRange) {
        let of = if op == 0 { "" } else { "a view of " };
        d.message.push_str(&format!(" in mode {mode} of {of}`%{}`", view.base.text));
    }
    d
}
