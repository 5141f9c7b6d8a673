//! Checks the tensors that the specs of a body read and write.
//!
//! - V0227: a body writes only outputs of its spec and its own allocations, and reads only operands
//!   of its spec and its own allocations.
//! - V0209: no two coordinates of a written tensor are one element; otherwise two threads could
//!   write one element.
//! - V0206: a written tensor is not read-only.
//! - V0239: a gather (elements that a tensor of coordinates selects) is not written, and the kernel
//!   does not write a tensor from which it reads indices.

use super::state::{Around, Verifier};
use crate::diag::{Code, Diagnostic};
use crate::expr::Dim;
use crate::layout::Layout;
use crate::program::{BufferId, SpecId, TensorId};
use crate::span::Span;

impl Verifier<'_> {
    pub(super) fn access(&mut self, id: SpecId, around: &Around) {
        let spec = &self.p.specs[id];
        for t in spec.input_tensors() {
            // Every spec may use coordinates. In a kernel with a number of the caller as operand,
            // every spec may use the number.
            let buffer = self.p.buffer_of(t);
            if buffer.is_number() {
                let number = self.p.tensors[t].buffer;
                let mut named = self.p.specs[around.kernel].input_tensors();
                if !named.any(|t| self.p.tensors[t].buffer == number) {
                    let kernel = Around { spec: around.kernel, ..around.clone() };
                    self.stray_buffer(number, spec.span, &kernel, ("spec", "reads"));
                }
                continue;
            }
            if buffer.is_computed() {
                continue;
            }
            if let Some(gather) = buffer.gather {
                self.written_coordinates(gather.index, spec.span, around);
            }
            let named = around.readable.contains(&self.p.tensors[t].buffer);
            if let Some(gather) = buffer.gather.filter(|_| !named) {
                for (id, what) in [(gather.source, "reads"), (gather.index, "is indexed by")] {
                    if !around.readable.contains(&id) {
                        self.stray_buffer(id, spec.span, around, ("spec", what));
                    }
                }
                continue;
            }
            if !named {
                self.stray(id, t, around, "reads", "an input");
            }
        }
        for &t in &spec.outputs {
            let buffer = self.p.tensors[t].buffer;
            let of = &self.p.buffers[buffer];
            if of.memory.is_some_and(|m| !m.is_writable()) || of.gather.is_some() {
                // `written` refuses these outputs.
                continue;
            }
            if !around.writable.contains(&buffer) {
                self.stray(id, t, around, "writes", "an output");
            }
        }
    }

    /// V0227 for indexed operands of a kernel. The caller must pass both tensors, the elements and
    /// the coordinates, so both must be operands.
    pub(super) fn found_through(&mut self, id: SpecId) {
        let spec = &self.p.specs[id];
        let named = |b: BufferId| spec.input_tensors().any(|t| self.p.tensors[t].buffer == b);
        let lacking = spec.input_tensors().find_map(|t| {
            let gather = self.p.buffer_of(t).gather?;
            (!named(gather.index) || !named(gather.source)).then_some(gather)
        });
        let Some(gather) = lacking else { return };
        let [source, index] = [gather.source, gather.index].map(|b| &self.p.buffers[b].name);
        let name = spec.name.as_ref().map_or(String::new(), |n| format!("@{n} "));
        let outputs: Vec<String> = spec.outputs.iter().map(|t| self.p.tensor_name(*t)).collect();
        let to = outputs.first().map_or("%out", String::as_str);
        // The mode that the coordinates index.
        let whole = self.p.tensors[self.p.buffers[gather.source].tensor].concat();
        let along = |m: &Layout<Dim>| {
            m.stride().flatten().iter().any(|s| s.as_const() == Some(gather.stride))
        };
        let mode = whole.modes().iter().position(along).unwrap_or(0);
        let picks: Vec<String> = (0..whole.modes().len())
            .map(|m| if m == mode { format!("%{index}") } else { "_".to_owned() })
            .collect();
        let message = format!(
            "an operand is indexed by `%{index}`, but the kernel does not name both tensors"
        );
        self.errors.push(
            Diagnostic::new(Code::ReadOnly, spec.span, message)
                .label(format!("elements of `%{source}` at the coordinates in `%{index}`"))
                .help(format!(
                    "name `%{source}` and `%{index}` as inputs, and index inside the spec: \
                     `Spec {name}(%{source}, %{index}) -> ({}) means \
                     {{ {to} = move(%{source}[{}]) }}`",
                    outputs.join(", "),
                    picks.join(", "),
                )),
        );
    }

    /// V0239 for coordinates that the kernel itself writes: they must be checked before the kernel
    /// starts.
    fn written_coordinates(&mut self, index: BufferId, span: Span, around: &Around) {
        let kernel = &self.p.specs[around.kernel];
        if !kernel.outputs.iter().any(|t| self.p.tensors[*t].buffer == index) {
            return;
        }
        let name = &self.p.buffers[index].name;
        self.errors.push(
            Diagnostic::new(
                Code::DataIndex,
                span,
                format!("`%{name}` is used as an index, but this kernel writes it"),
            )
            .label(format!("indexed by `%{name}`"))
            .related(kernel.span, format!("`%{name}` is an output of the kernel"))
            .help("write it in an earlier kernel: its range is checked between the kernels"),
        );
    }

    /// Checks the tensor of a number read from memory: the enclosing spec must name it, and the
    /// kernel must not write it.
    pub(super) fn element(&mut self, t: TensorId, span: Span, around: &Around) {
        let buffer = self.p.tensors[t].buffer;
        self.written_coordinates(buffer, span, around);
        let at = self.p.tensors[t].offset;
        if self.p.thread_dependent(at) {
            self.errors.push(
                Diagnostic::new(
                    Code::DataIndex,
                    span,
                    "the threads of a block would read different numbers",
                )
                .label(format!("its offset is {}", self.p.arena.display(at)))
                .help(
                    "index by blocks, loops and symbols only, so that all threads read one number",
                ),
            );
        }
        if around.readable.contains(&buffer) {
            return;
        }
        self.stray_buffer(buffer, span, around, ("statement", "reads"));
    }

    /// V0227 for a buffer that an indexed operand or a number read from memory uses.
    fn stray_buffer(
        &mut self,
        id: BufferId,
        span: Span,
        around: &Around,
        (who, verb): (&str, &str),
    ) {
        let name = &self.p.buffers[id].name;
        self.errors.push(
            Diagnostic::new(
                Code::ReadOnly,
                span,
                format!("the {who} {verb} `%{name}`, which the enclosing spec does not name"),
            )
            .label(format!("{verb} `%{name}`"))
            .related(self.p.specs[around.spec].span, "the enclosing spec")
            .help(format!("make `%{name}` an input of the enclosing spec")),
        );
    }

    pub(super) fn stray(
        &mut self,
        id: SpecId,
        t: TensorId,
        around: &Around,
        verb: &str,
        role: &str,
    ) {
        let name = &self.p.buffer_of(t).name;
        self.errors.push(
            Diagnostic::new(
                Code::ReadOnly,
                self.p.specs[id].span,
                format!("the spec {verb} `%{name}`, which the enclosing spec does not name"),
            )
            .label(format!("{verb} `%{name}`"))
            .related(self.p.specs[around.spec].span, "the enclosing spec")
            .help(format!("make `%{name}` {role} of the enclosing spec")),
        );
    }

    /// V0209 for written operands.
    pub(super) fn written(&mut self, t: TensorId, span: crate::span::Span) {
        let buffer = self.p.buffer_of(t);
        let tensor = &self.p.tensors[t];
        if buffer.gather.is_some() {
            self.errors.push(
                Diagnostic::new(
                    Code::DataIndex,
                    span,
                    "the written elements are indexed by a tensor",
                )
                .label("two coordinates may be the same element")
                .help(
                    "write the rows one by one: in a loop over `r`, read `@n = %rows[r]` and write \
                     the tile of the row, `Move.add (%x) -> (%Y.tile([1,D])[@n, 0])`; Move.add is \
                     atomic, so rows may occur twice",
                ),
            );
            return;
        }
        if buffer.memory.is_some_and(|m| !m.is_writable()) {
            let what = match buffer.is_computed() {
                true => "the output of a spec is a tensor of coordinates",
                false => "the output of a spec is a number that the caller passes",
            };
            self.errors.push(
                Diagnostic::new(Code::MemoryMismatch, span, what)
                    .label(format!("`%{}` is read-only", buffer.name))
                    .help("write another tensor"),
            );
            return;
        }
        if buffer.open || tensor.dist.is_some() || buffer.is_per_thread() {
            return;
        }
        let Some(layout) = tensor.concat().to_fixed() else {
            return self.written_over_symbols(t, span);
        };
        // Partial tiles: the layout of the tensor, instead of that of the view, decides whether
        // elements differ.
        let shares = if tensor.bounds.is_empty() {
            layout.is_injective() == Ok(false)
        } else {
            let whole = self.p.tensors[buffer.tensor].concat().to_fixed();
            whole.is_some_and(|whole| whole.is_injective() == Ok(false))
                || layout.leaves().iter().any(|(extent, stride)| *extent > 1 && *stride == 0)
        };
        if shares {
            let name = self.p.tensor_name(t);
            self.errors.push(
                Diagnostic::new(
                    Code::NotInjective,
                    span,
                    format!("two coordinates of {name} share an element"),
                )
                .label(format!("{name} is written, with layout {layout}"))
                .help(
                    "choose strides so that no two coordinates of a written tensor share an \
                     element",
                ),
            );
        }
    }
}
