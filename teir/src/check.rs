//! Checks that an operation of TEIR (the Tiled Execution IR) is well formed. Where the
//! specification leaves something open, such as strides by which two coordinates of an output name
//! one element, this file decides; `README.md` gives the reasons.
//!
//! The schedule has an axis, each axis has a size above 0, and only tensors that take part in an
//! axis have a stride along it. The product of all sizes, and the number of elements that a tensor
//! spans, fit 64 bits. Each stride of the output reaches beyond all elements of the smaller
//! strides, so that no two coordinates name one element. Copies to one output element have an
//! order. The specification adds three rules. An axis is `prim` if it lies inside of the tile.
//!
//! - R1: `Copy`, `Zero` and `ReLU` need a `prim` axis of C, M or N.
//! - R2: a GEMM has one `prim` axis of each of M, N and K, and none of C.
//! - R3: a BRGEMM (a sum of products of matrices) has one `prim` axis of each of M and N, two of K,
//!   and none of C.

use crate::record::{Axis, Dim, Exec, First, Last, Main, Operation, Primitives, Tensor};
use crate::violation::{Code, Field, MAX_VIOLATIONS, Place, Violation, Violations};

/// An operation that is well formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    axes: Vec<Axis>,
    primitives: Primitives,
    /// Elements from the first to the last of each tensor, gaps included.
    spans: [u64; 3],
    steps: u64,
}

impl Checked {
    /// Its axes, in the order of the schedule.
    #[must_use]
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// Primitives, which are applied to tiles.
    #[must_use]
    pub fn primitives(&self) -> &Primitives {
        &self.primitives
    }

    /// The number of elements from the first to the last of a tensor, gaps included: at least 1.
    #[must_use]
    pub fn span(&self, tensor: Tensor) -> u64 {
        self.spans[tensor as usize]
    }

    /// Whether a primitive reads or writes a tensor.
    #[must_use]
    pub fn uses(&self, tensor: Tensor) -> bool {
        match tensor {
            Tensor::In0 => self.primitives.prim_main != Main::None,
            Tensor::In1 => self.primitives.prim_main.multiplies(),
            Tensor::Out => true,
        }
    }

    /// The product of all sizes.
    #[must_use]
    pub fn steps(&self) -> u64 {
        self.steps
    }
}

impl Operation {
    /// Checks the operation.
    ///
    /// # Errors
    /// The violations, in the order of the specification. `TEIR09` is checked only if the
    /// rules before hold, and `TEIR10` only if it holds, too.
    pub fn check(&self) -> Result<Checked, Violations> {
        let axes = self.schedule.axes()?;
        if axes.is_empty() {
            let help = "add an axis of size 1 where a single element is meant";
            let place = Place::Field(Field::DimTypes);
            return Err(Violation::new(Code::NoAxes, place, "no axes", "at least one", help).into());
        }
        let entries = axes.iter().enumerate().flat_map(|(i, axis)| entries(i, axis));
        let rules = rules(&axes, &self.primitives);
        let mut wrong: Vec<_> = entries.chain(rules).take(MAX_VIOLATIONS).collect();
        if !wrong.is_empty() {
            return Err(Violations(wrong));
        }
        let mut spans = [0; 3];
        for (span, tensor) in spans.iter_mut().zip(Tensor::ALL) {
            match elements(&axes, tensor) {
                Ok(n) => *span = n,
                Err(violation) => wrong.push(violation),
            }
        }
        let steps = product(&axes).unwrap_or_else(|violation| {
            wrong.push(violation);
            0
        });
        if wrong.is_empty() {
            wrong.extend(alias(&axes));
        }
        match wrong.is_empty() {
            true => Ok(Checked { axes, primitives: self.primitives.clone(), spans, steps }),
            false => Err(Violations(wrong)),
        }
    }
}

/// A size of 0, and strides of tensors that do not take part.
fn entries(i: usize, axis: &Axis) -> Vec<Violation> {
    let mut wrong = vec![];
    if axis.size == 0 {
        let place = Place::Axis(i, Field::DimSizes);
        let help = "give the axis a size, or leave it out";
        wrong.push(Violation::new(Code::Size, place, "0", "at least 1", help));
    }
    for tensor in Tensor::ALL {
        let stride = axis.stride(tensor);
        if stride != 0 && !axis.dim.has(tensor) {
            let place = Place::Axis(i, tensor.strides());
            let wanted = format!("0, since {} has no {} axes", tensor.as_str(), axis.dim);
            let help = "set the stride to 0, or give the axis another role";
            wrong.push(Violation::new(Code::Stride, place, stride.to_string(), wanted, help));
        }
    }
    wrong
}

/// R1 to R3, and copies of several inputs to one output.
fn rules(axes: &[Axis], primitives: &Primitives) -> Vec<Violation> {
    let Primitives { prim_first, prim_main, prim_last, .. } = primitives;
    let prim = |dim| axes.iter().filter(|a| a.exec == Exec::Prim && a.dim == dim).count();
    let [c, m, n, k] = [Dim::C, Dim::M, Dim::N, Dim::K].map(prim);
    let mut wrong = vec![];
    let asks = match (prim_first, prim_main, prim_last) {
        (_, Main::Copy, _) => Some((Field::PrimMain, "Copy")),
        (First::Zero | First::Relu, ..) => Some((Field::PrimFirst, prim_first.as_str())),
        (.., Last::Relu) => Some((Field::PrimLast, "ReLU")),
        _ => None,
    };
    if let Some((field, name)) = asks.filter(|_| c + m + n == 0) {
        let found = format!("{name}, and no prim axis of C, M or N");
        let help = "make an axis of C, M or N prim; one of size 1 is enough";
        let wanted = "at least one such axis (R1)";
        wrong.push(Violation::new(Code::R1, Place::Field(field), found, wanted, help));
    }
    let product = match prim_main {
        Main::Gemm => Some((Code::R2, "R2", 1)),
        Main::Brgemm => Some((Code::R3, "R3", 2)),
        _ => None,
    };
    if let Some((code, rule, wanted)) = product.filter(|p| (c, m, n, k) != (0, 1, 1, p.2)) {
        let place = match axes.iter().position(|a| a.exec == Exec::Prim && a.dim == Dim::C) {
            Some(axis) => Place::Axis(axis, Field::ExecTypes),
            None => Place::Field(Field::ExecTypes),
        };
        let found = format!("{prim_main} with prim axes {c} C, {m} M, {n} N, {k} K");
        let wanted = format!("0 C, 1 M, 1 N, {wanted} K ({rule})");
        let help = "make other axes seq, or add axes of size 1 that are prim";
        wrong.push(Violation::new(code, place, found, wanted, help));
    }
    if *prim_main == Main::Copy {
        let several = |a: &Axis| a.dim == Dim::K && a.exec != Exec::Seq && a.size > 1;
        for (i, axis) in axes.iter().enumerate().filter(|(_, a)| several(a)) {
            let place = Place::Axis(i, Field::ExecTypes);
            let found = format!("Copy along a {} K axis of size {}", axis.exec, axis.size);
            let wanted = "one input for each output, or an order in which they come";
            let help = "make the axis seq, of which the last copy stays, or leave it out";
            wrong.push(Violation::new(Code::Copy, place, found, wanted, help));
        }
    }
    wrong
}

/// How many elements lie from the first to the last of a tensor.
fn elements(axes: &[Axis], tensor: Tensor) -> Result<u64, Violation> {
    let mut n = 1u64;
    for (i, axis) in axes.iter().enumerate() {
        let more = axis.stride(tensor).checked_mul(axis.size - 1);
        n = more.and_then(|more| n.checked_add(more)).ok_or_else(|| {
            let found = format!("size {} and stride {}", axis.size, axis.stride(tensor));
            let wanted = format!("at most {} elements from first to last", u64::MAX);
            let help = "make the size or the stride smaller";
            let place = Place::Axis(i, tensor.strides());
            Violation::new(Code::Overflow, place, found, wanted, help)
        })?;
    }
    Ok(n)
}

/// The product of all sizes.
fn product(axes: &[Axis]) -> Result<u64, Violation> {
    let mut n = 1u64;
    for (i, axis) in axes.iter().enumerate() {
        n = n.checked_mul(axis.size).ok_or_else(|| {
            let found = format!("{n} iterations times {}", axis.size);
            let wanted = format!("at most {} iterations", u64::MAX);
            let place = Place::Axis(i, Field::DimSizes);
            Violation::new(Code::Overflow, place, found, wanted, "make the size smaller")
        })?;
    }
    Ok(n)
}

/// The first axis of the output whose stride does not reach over what the axes of smaller strides
/// span.
fn alias(axes: &[Axis]) -> Option<Violation> {
    let of_output = |a: &Axis| a.dim.has(Tensor::Out) && a.size > 1;
    let mut order: Vec<_> = axes.iter().enumerate().filter(|(_, a)| of_output(a)).collect();
    order.sort_by_key(|(_, a)| a.stride(Tensor::Out));
    let mut largest = 0;
    for (i, axis) in order {
        let stride = axis.stride(Tensor::Out);
        if stride <= largest {
            let place = Place::Axis(i, Field::StridesOut);
            let wanted = format!("more than {largest}, where the axes of smaller strides end");
            // Behind the last element that the other axes reach.
            let others = axes.iter().enumerate().filter(|(j, a)| *j != i && of_output(a));
            let end: u64 = others.map(|(_, a)| a.stride(Tensor::Out) * (a.size - 1)).sum();
            let help = format!("set the stride to {} or more", end.saturating_add(1));
            return Some(Violation::new(Code::Alias, place, stride.to_string(), wanted, help));
        }
        // Checked by the span of the output.
        largest += stride * (axis.size - 1);
    }
    None
}
