//! Resolves numbers that a kernel reads from a tensor of the caller, `@n = %sizes[@g]`, and then
//! uses in indices, bounds of loops and extents. The tensor must state the range of its elements
//! (`in 0..N`), because index checks rely on it; every thread of a block reads the same number.

use super::ranges_and_gathers::is_of_integers;
use super::scope::{Binding, Sigil};
use super::{Fallible, Resolver, fail};
use crate::ast::{self, CmpOp, Elements};
use crate::diag::{Code, Diagnostic, count};
use crate::expr::{Dim, VarInfo};
use crate::layout::Layout;
use crate::leaf::Leaf;
use crate::program::{BufferId, StmtKind, Tensor, TensorId, VarKind};
use crate::scalar::Memory;
use crate::span::Span;

/// An element of a tensor that is used as a number.
pub(super) struct Known {
    /// The buffer.
    buffer: BufferId,
    /// The offset of the element.
    offset: Dim,
    /// The variable for its value.
    value: Dim,
}

impl Resolver {
    /// `@n = %sizes[@g]`
    pub(super) fn element(
        &mut self,
        name: &ast::Name,
        view: &ast::View,
        span: Span,
    ) -> Fallible<StmtKind> {
        let tensor = match self.is_element(view) {
            Ok(tensor) => tensor,
            Err(e) => {
                self.bind(Sigil::Index, name, Binding::Broken)?;
                return Err(e);
            }
        };
        let (buffer, offset) = (tensor.buffer, tensor.offset);
        self.read.insert(buffer);
        let of = &self.p.buffers[buffer];
        let (from, to) = of.range.unwrap_or((Dim::Const(0), Dim::Const(1)));
        let splits = of.splits;
        let cx = &self.p.arena;
        let held = of.scalar.int_range().unwrap_or((0, 0));
        let lo = cx.range(from).0.or(i64::try_from(held.0).ok());
        let most = i64::try_from(held.1).ok();
        let hi = match cx.range(to).1.map(|hi| hi - 1) {
            Some(hi) => Some(most.map_or(hi, |most| most.min(hi))),
            None => most,
        };
        let lo = lo.unwrap_or(i64::MIN);
        let info = VarInfo { name: name.text.clone(), lo, hi, div: 1 };
        let tensor = self.p.tensors.push(tensor);
        let (dim, var) = self.variable(info, VarKind::Element(tensor), span)?;
        self.assume(from, CmpOp::Le, dim);
        self.assume(dim, CmpOp::Lt, to);
        if splits {
            self.never_falls(buffer, offset, dim)?;
        }
        self.elements.push(Known { buffer, offset, value: dim });
        self.bind(Sigil::Index, name, Binding::Index(dim))?;
        Ok(StmtKind::Element { var, tensor })
    }

    /// Assumes that elements of a tensor with `splits` do not decrease.
    fn never_falls(&mut self, buffer: BufferId, offset: Dim, value: Dim) -> Fallible<()> {
        /// The number of earlier elements to compare.
        const NEIGHBORS: usize = 8;
        let others: Vec<(Dim, Dim)> = self
            .elements
            .iter()
            .rev()
            .filter(|known| known.buffer == buffer)
            .map(|known| (known.offset, known.value))
            .take(NEIGHBORS)
            .collect();
        for (at, other) in others {
            let cx = &self.p.arena;
            let Some(apart) = Dim::sub(cx, offset, at).ok() else { continue };
            let (below, above) = match cx.range(apart) {
                (Some(0..), _) => (other, value),
                (_, Some(..=0)) => (value, other),
                _ => continue,
            };
            cx.order(below, above);
            self.assume(below, CmpOp::Le, above);
        }
        Ok(())
    }

    /// Checks a view of one element: an integer of the caller with a known range, at an offset that
    /// is equal for all threads of a block.
    fn is_element(&mut self, view: &ast::View) -> Fallible<Tensor> {
        let t = self.viewed(view)?;
        let of = &self.p.buffers[t.buffer];
        let refuse = |message: String, label: String, help: String| {
            fail(Diagnostic::new(Code::DataIndex, view.span, message).label(label).help(help))
        };
        if !is_of_integers(of) || of.scalar.bits() < 8 {
            return refuse(
                format!("an element of `%{}` cannot be a number", of.name),
                format!("it is {} in {}", of.scalar, of.memory.map_or("no memory", Memory::as_str)),
                "use an integer tensor of the caller: `%sizes:[G].i32.GL in 0..M + 1`".to_owned(),
            );
        }
        let rank: usize = t.levels.iter().map(Layout::rank).sum();
        if rank > 0 {
            return refuse(
                format!("`%{}` has {}, expected one element", of.name, count(rank, "mode")),
                "several elements".to_owned(),
                "give an index for each mode: `@n = %sizes[0]`".to_owned(),
            );
        }
        if of.range.is_none() {
            return refuse(
                format!("the range of the elements of `%{}` is unknown", of.name),
                "this may be any number".to_owned(),
                format!("declare their range: `%{}:[..].{}.GL in 0..N`", of.name, of.scalar),
            );
        }
        if !t.bounds.is_empty() {
            return refuse(
                format!("the element may be outside of `%{}`", of.name),
                "an element of a partial tile".to_owned(),
                "index the tensor itself".to_owned(),
            );
        }
        Ok(t)
    }

    /// The elements in expressions: their names and tensors.
    fn elements_of(&self, dims: &[Dim]) -> Vec<(String, TensorId)> {
        let mut found: Vec<(String, TensorId)> = vec![];
        for var in dims.iter().flat_map(|d| self.p.arena.vars_of(*d)) {
            let Some(VarKind::Element(tensor)) = self.p.vars.get(&var) else { continue };
            let name = self.p.arena.var_info(var).name;
            if !found.iter().any(|(other, _)| *other == name) {
                found.push((name, *tensor));
            }
        }
        found
    }

    /// A part of a label that explains elements in expressions:
    /// `; `@n` is an element of `%sizes`, in 0..M`. Empty without elements.
    pub(super) fn of_elements(&self, dims: &[Dim]) -> String {
        let cx = &self.p.arena;
        let mut of_tensors: Vec<(BufferId, Vec<String>)> = vec![];
        for (name, tensor) in self.elements_of(dims) {
            let (buffer, name) = (self.p.tensors[tensor].buffer, format!("`{name}`"));
            match of_tensors.iter_mut().find(|(of, _)| *of == buffer) {
                Some((_, names)) => names.push(name),
                None => of_tensors.push((buffer, vec![name])),
            }
        }
        let one = |(buffer, names): (BufferId, Vec<String>)| {
            let of = &self.p.buffers[buffer];
            let said = match of.range {
                Some((_, to)) if of.splits => Dim::sub(cx, to, Dim::Const(1))
                    .map_or(String::new(), |n| format!(", which splits {}", cx.display(n))),
                Some((from, to)) => format!(", in {}..{}", cx.display(from), cx.display(to)),
                None => String::new(),
            };
            let are = if names.len() == 1 { "is an element" } else { "are elements" };
            format!("; {} {are} of `%{}`{said}", names.join(" and "), of.name)
        };
        of_tensors.into_iter().map(one).collect()
    }

    /// A help: the range to declare for a tensor, so that its element can be an index of a mode.
    pub(super) fn element_wanted(&self, i: Dim, size: Dim) -> Option<String> {
        let (_, tensor) = self.is_one_element(i)?;
        let of = self.p.buffer_of(tensor);
        (!of.splits).then(|| {
            let size = self.p.arena.display(size);
            format!("declare `%{}:[..].{}.GL in 0..{size}`", of.name, of.scalar)
        })
    }

    /// A help: the declaration of a tensor with which two of its elements delimit a part of a mode.
    pub(super) fn splits_wanted(&self, first: Dim, last: Dim, size: Dim) -> Option<String> {
        let (from, to) = (self.is_one_element(first)?.1, self.is_one_element(last)?.1);
        let of = self.p.buffer_of(from);
        let whole = &self.p.tensors[of.tensor];
        let modes: usize = whole.levels.iter().map(Layout::rank).sum();
        let same = self.p.tensors[from].buffer == self.p.tensors[to].buffer;
        if !same || of.splits || modes != 1 {
            return None;
        }
        let cx = &self.p.arena;
        let apart = Dim::sub(cx, self.p.tensors[to].offset, self.p.tensors[from].offset).ok()?;
        let behind = cx.range(apart).0.is_some_and(|lo| lo > 0);
        behind.then(|| {
            let (name, scalar, size) = (&of.name, of.scalar, cx.display(size));
            format!(
                "declare `%{name}:[..].{scalar}.GL splits {size}`, if its elements never decrease \
                 and end with {size}"
            )
        })
    }

    /// The element that an expression is, if it is one.
    fn is_one_element(&self, dim: Dim) -> Option<(String, TensorId)> {
        self.p.arena.var_id(dim)?;
        self.elements_of(&[dim]).pop()
    }

    /// The range of the elements of a tensor with `splits n`.
    pub(super) fn splits(
        &self,
        elements: &Elements,
        ty: &ast::TensorType,
        levels: &[Layout<Dim>],
    ) -> Fallible<(Dim, Dim)> {
        let (from, to) = match elements {
            Elements::Within(from, to) | Elements::Distinct(from, to) => {
                return Ok((self.expr(from)?, self.expr(to)?));
            }
            Elements::Splits(n) => (Dim::Const(0), n),
        };
        let n = self.expr(to)?;
        let cx = &self.p.arena;
        let one_mode = match levels {
            [level] if level.rank() == 1 => match level.leaves() {
                [(_, stride)] => cx.range(*stride).0.is_some_and(|lo| lo > 0),
                _ => false,
            },
            _ => false,
        };
        let two = levels.first().and_then(|l| l.size_in(cx).ok());
        if !one_mode || two.is_none_or(|n| cx.range(n).0.is_none_or(|lo| lo < 1)) {
            return fail(
                Diagnostic::new(Code::DataIndex, ty.span, "the tensor cannot have `splits`")
                    .label("expected one mode, with one stride and at least 1 element")
                    .help(
                        "declare one more element than there are parts: \
                         `%offsets:[G + 1].i32.GL splits N`",
                    ),
            );
        }
        if cx.range(n).0.is_none_or(|lo| lo < 0) {
            return fail(
                Diagnostic::new(
                    Code::DataIndex,
                    to.span,
                    "the number of split elements is negative",
                )
                .label(format!("this is {}", cx.display(n)))
                .help("write the total number of elements of the parts"),
            );
        }
        let to = Dim::add(cx, n, Dim::Const(1)).map_err(|e| super::exprs::overflow(to.span, &e))?;
        Ok((from, to))
    }
}
