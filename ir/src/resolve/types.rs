//! Makes layouts from stated types, with row-major strides where none are stated, and compares
//! stated types with inferred ones (V0205, a written type differs from the type of the view).

use super::exprs::{overflow, refused};
use super::{Fallible, Resolver, fail};
use crate::ast::{Dims, TensorType, TupleExpr};
use crate::diag::{Code, Diagnostic};
use crate::expr::Dim;
use crate::layout::Layout;
use crate::leaf::Leaf;
use crate::span::Span;
use crate::tuple::IntTuple;

impl Resolver {
    /// The levels of a declared data tensor. Omitted strides are row-major inside each level, and
    /// outer levels follow inner ones.
    pub(super) fn declared_levels(&self, levels: &[Dims]) -> Fallible<Vec<Layout<Dim>>> {
        let mut inner = Dim::Const(1);
        let mut out = vec![];
        for dims in levels.iter().rev() {
            let shape = IntTuple::Tuple(self.modes(&dims.modes)?);
            let cx = &self.p.arena;
            let layout = match &dims.strides {
                Some(strides) => {
                    self.make_layout(shape, IntTuple::Tuple(self.modes(strides)?), dims.span)?
                }
                None => {
                    let stride = self.row_major(&shape, inner, dims.span)?;
                    self.make_layout(shape, stride, dims.span)?
                }
            };
            let e = |e: crate::layout::LayoutError| overflow(dims.span, &e);
            // Elements of outer levels are offset by complete copies of the inner levels.
            let reach = match &dims.strides {
                Some(_) => layout.cosize_in(cx).map_err(e)?,
                None => Dim::mul(cx, inner, layout.size_in(cx).map_err(e)?).map_err(e)?,
            };
            inner = Dim::max(cx, inner, reach).map_err(e)?;
            out.push(layout);
        }
        out.reverse();
        Ok(out)
    }

    /// Row-major strides over the leaves of `shape`; the last stride is `unit`.
    pub(super) fn row_major(
        &self,
        shape: &IntTuple<Dim>,
        unit: Dim,
        span: Span,
    ) -> Fallible<IntTuple<Dim>> {
        let leaves = shape.flatten();
        let mut strides = vec![unit; leaves.len()];
        let mut next = unit;
        for (stride, extent) in strides.iter_mut().zip(&leaves).rev() {
            *stride = next;
            next = Dim::mul(&self.p.arena, next, *extent).map_err(|e| overflow(span, &e))?;
        }
        let mut it = strides.into_iter();
        Ok(shape.map(&mut |_| it.next().unwrap_or(unit)))
    }

    /// A level with these modes.
    pub(super) fn joined(&self, modes: &[Layout<Dim>], span: Span) -> Fallible<Layout<Dim>> {
        Layout::concat(modes).map_err(|e| refused(span, &e))
    }

    /// Checks that later operations can concatenate all levels.
    pub(super) fn check_joined(&self, levels: &[Layout<Dim>], span: Span) -> Fallible<()> {
        let modes: Vec<_> = levels.iter().flat_map(Layout::modes).collect();
        let whole = self.joined(&modes, span)?;
        whole.size_in(&self.p.arena).map_err(|e| overflow(span, &e))?;
        Ok(())
    }

    pub(super) fn modes(&self, modes: &[TupleExpr]) -> Fallible<Vec<IntTuple<Dim>>> {
        modes.iter().map(|m| self.tuple(m)).collect()
    }

    /// Compares stated levels with inferred ones. Extents must agree mode by mode; stated strides
    /// must define the same function.
    pub(super) fn check_levels(
        &self,
        written: &[Dims],
        inferred: &[Layout<Dim>],
        span: Span,
        what: &str,
    ) -> Fallible<()> {
        let cx = &self.p.arena;
        // `[]` stands for no level.
        let written: Vec<&Dims> = written.iter().filter(|d| !d.modes.is_empty()).collect();
        let shown = || crate::program::show_levels(cx, inferred);
        let mismatch = |span: Span, label: String| {
            Diagnostic::new(
                Code::TypeMismatch,
                span,
                format!("the stated type of `{what}` contradicts its view"),
            )
            .label(label)
            .help(format!("write `{}`, or remove the type", shown()))
        };
        if written.len() != inferred.len() {
            return fail(mismatch(
                span,
                format!("{} levels are stated, the view has {}", written.len(), inferred.len()),
            ));
        }
        for (dims, layout) in written.iter().zip(inferred) {
            let shapes = self.modes(&dims.modes)?;
            if shapes.len() != layout.rank() {
                return fail(mismatch(
                    dims.span,
                    format!("{} modes are stated, the view has {}", shapes.len(), layout.rank()),
                ));
            }
            let strides = dims.strides.as_ref().map(|s| self.modes(s)).transpose()?;
            for (i, (shape, mode)) in shapes.iter().zip(layout.modes()).enumerate() {
                let size = |t: &IntTuple<Dim>| t.size_in(cx).map_err(|e| overflow(dims.span, &e));
                let (w, f) = (size(shape)?, size(&mode.shape())?);
                if !Leaf::eq(cx, w, f).is_true() {
                    return fail(mismatch(
                        dims.span,
                        format!(
                            "mode {i} is stated as {}, the view has {}",
                            cx.display(w),
                            cx.display(f)
                        ),
                    ));
                }
                let Some(stride) = strides.as_ref().and_then(|s| s.get(i)) else { continue };
                let written = self.make_layout(shape.clone(), stride.clone(), dims.span)?;
                let plain = |l: &Layout<Dim>| l.coalesce_in(cx).map_err(|e| refused(dims.span, &e));
                if plain(&written)? != plain(&mode)? {
                    return fail(mismatch(
                        dims.span,
                        format!(
                            "mode {i} is stated as {}, the view has {}",
                            written.display_in(cx),
                            mode.display_in(cx)
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Compares scalar type and memory, then levels.
    pub(super) fn check_type(
        &self,
        written: &TensorType,
        scalar: crate::scalar::Scalar,
        memory: Option<crate::scalar::Memory>,
        inferred: &[Layout<Dim>],
        what: &str,
    ) -> Fallible<()> {
        let text = |m: Option<crate::scalar::Memory>| m.map_or("none", |m| m.as_str());
        if written.scalar != scalar || written.memory != memory {
            return fail(
                Diagnostic::new(
                    Code::TypeMismatch,
                    written.span,
                    format!("the stated type of `{what}` contradicts its view"),
                )
                .label(format!(
                    "stated {} in {}, the view has {scalar} in {}",
                    written.scalar,
                    text(written.memory),
                    text(memory)
                ))
                .help("correct or remove the stated type"),
            );
        }
        if let Some(attr) = written.attrs.first() {
            let _ = attr;
            return fail(
                Diagnostic::new(
                    Code::Attribute,
                    written.span,
                    format!("attributes at the view `{what}`"),
                )
                .help("write the attributes where the storage is allocated: a view has none"),
            );
        }
        self.check_levels(&written.levels, inferred, written.span, what)
    }
}
