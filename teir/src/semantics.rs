//! Executes an operation of TEIR (the Tiled Execution IR) as TEIR's specification describes it, on
//! arrays of the caller. An axis is `prim` if it lies inside of the tile. All other axes are loops,
//! which are traversed in their order, and primitives are applied to the tiles that each iteration
//! accesses. Kernels are compared with this execution ([`crate::compare()`]).

use crate::check::Checked;
use crate::record::{Axis, DataType, Dim, Exec, First, Last, Main, Tensor};
use crate::violation::{Code, Field, Place, Violation, Violations};
use std::ops::{Add, Mul};

/// Most iterations of all axes that [`execute`] takes: it refuses a larger operation.
pub const MAX_STEPS: u64 = 1 << 24;

/// A type of elements.
pub trait Element: Copy + Default + PartialOrd + Add<Output = Self> + Mul<Output = Self> {
    /// Its name in an operation.
    const TYPE: DataType;
}

impl Element for f32 {
    const TYPE: DataType = DataType::Fp32;
}

impl Element for f64 {
    const TYPE: DataType = DataType::Fp64;
}

/// The larger of an element and 0; 0 of a NaN.
fn relu<T: Element>(x: T) -> T {
    if x > T::default() { x } else { T::default() }
}

/// All coordinates of some axes, the last one the fastest.
fn for_each(axes: &[&Axis], mut visit: impl FnMut(&[u64])) {
    let mut at = vec![0; axes.len()];
    loop {
        visit(&at);
        let Some(i) = (0..axes.len()).rev().find(|i| at[*i] + 1 < axes[*i].size) else { return };
        at[i] += 1;
        at[i + 1..].fill(0);
    }
}

/// Changes each element of an output tile, which begins at `base`.
fn change<T: Element>(out: &mut [T], base: usize, tile: &[&Axis], by: impl Fn(T) -> T) {
    for_each(tile, |at| {
        let element = &mut out[base + offset(tile, at, Tensor::Out)];
        *element = by(*element);
    });
}

/// The element of a tensor at these coordinates; it is below the tensor's span.
fn offset(axes: &[&Axis], at: &[u64], tensor: Tensor) -> usize {
    axes.iter().zip(at).map(|(axis, i)| axis.stride(tensor) * i).sum::<u64>() as usize
}

/// Executes an operation. Each tensor begins with its first element and holds at least
/// [`Checked::span`] elements; an input that no primitive reads may be empty. Shared axes are
/// traversed in their places, one of the orders that the specification allows.
///
/// # Errors
/// `TEIR12` for more than [`MAX_STEPS`] iterations, `TEIR13` for a tensor that does not
/// suit.
pub fn execute<T: Element>(
    operation: &Checked,
    in0: &[T],
    in1: &[T],
    out: &mut [T],
) -> Result<(), Violations> {
    suits(operation, [in0, in1, out])?;
    // Axes of size 1 change nothing; without them there are at most as many as `MAX_STEPS` has
    // bits.
    let (prim, outer): (Vec<&Axis>, Vec<&Axis>) =
        operation.axes().iter().filter(|a| a.size > 1).partition(|a| a.exec == Exec::Prim);
    let tile: Vec<&Axis> = prim.iter().copied().filter(|a| a.dim != Dim::K).collect();
    let primitives = operation.primitives();
    let n_tiles: u64 = outer.iter().filter(|a| a.dim != Dim::K).map(|a| a.size).product();
    let per_tile: u64 = outer.iter().filter(|a| a.dim == Dim::K).map(|a| a.size).product();
    let mut accesses = vec![0; n_tiles as usize];
    for_each(&outer, |at| {
        let [base0, base1, base] = Tensor::ALL.map(|t| offset(&outer, at, t));
        let of_output = outer.iter().zip(at).filter(|(a, _)| a.dim != Dim::K);
        let number = of_output.fold(0, |n, (a, i)| n * a.size + i) as usize;
        if accesses[number] == 0 {
            match primitives.prim_first {
                First::None => {}
                First::Zero => change(out, base, &tile, |_| T::default()),
                First::Relu => change(out, base, &tile, relu),
            }
        }
        if primitives.prim_main != Main::None {
            for_each(&prim, |at| {
                let a = in0[base0 + offset(&prim, at, Tensor::In0)];
                let element = &mut out[base + offset(&prim, at, Tensor::Out)];
                *element = match primitives.prim_main {
                    Main::None | Main::Copy => a,
                    Main::Gemm | Main::Brgemm => {
                        *element + a * in1[base1 + offset(&prim, at, Tensor::In1)]
                    }
                };
            });
        }
        accesses[number] += 1;
        if accesses[number] == per_tile && primitives.prim_last == Last::Relu {
            change(out, base, &tile, relu);
        }
    });
    Ok(())
}

/// Whether an operation is small enough, and its tensors are long enough and of its type.
fn suits<T: Element>(operation: &Checked, tensors: [&[T]; 3]) -> Result<(), Violation> {
    let data_type = operation.primitives().data_type;
    if T::TYPE != data_type {
        let (place, help) = (Place::Field(Field::DataType), "pass elements of that type");
        let (found, wanted) = (format!("elements of {}", T::TYPE), data_type.as_str());
        return Err(Violation::new(Code::Tensors, place, found, wanted, help));
    }
    is_small(operation)?;
    for (tensor, elements) in Tensor::ALL.into_iter().zip(tensors) {
        let wanted = operation.span(tensor);
        if (elements.len() as u64) < wanted && operation.uses(tensor) {
            let found = format!("{} elements of {}", elements.len(), tensor.as_str());
            let (place, help) = (Place::Field(tensor.strides()), "pass the whole tensor");
            let wanted = format!("at least {wanted}");
            return Err(Violation::new(Code::Tensors, place, found, wanted, help));
        }
    }
    Ok(())
}

/// Refuses more than [`MAX_STEPS`] iterations.
pub(crate) fn is_small(operation: &Checked) -> Result<(), Violation> {
    if operation.steps() <= MAX_STEPS {
        return Ok(());
    }
    let found = format!("{} iterations", operation.steps());
    Err(too_large(Field::DimSizes, found, MAX_STEPS))
}

/// The violation for an operation that is too large.
pub(crate) fn too_large(field: Field, found: String, most: u64) -> Violation {
    let (wanted, help) = (format!("at most {most}"), "make sizes or strides smaller");
    Violation::new(Code::TooLarge, Place::Field(field), found, wanted, help)
}
