//! Chooses the tiles of the kernel for an operation of TEIR: their modes, their extents, and the
//! number of threads that hold them. It refuses an operation whose tiles or grid no kernel can
//! have.

use crate::check::Checked;
use crate::record::{Axis, Dim, Exec, First, Last, Main, Tensor};
use crate::violation::{Code, Field, Place, Violation};

/// Most axes of an operation that is lowered: loops nest so deep.
const MAX_AXES: usize = 64;
/// Most blocks of a grid (CUDA C++ Programming Guide, technical specifications per compute
/// capability).
const MAX_BLOCKS: u64 = (1 << 31) - 1;
/// Most threads of a block of a product.
const MAX_THREADS: u128 = 256;
/// Most bytes of a tile of the output in the registers of one thread.
const THREAD_BYTES: u128 = 256;
/// Most bytes of the tiles of both inputs in shared memory.
const MAX_SHARED_BYTES: u128 = 96 << 10;
/// Elements that a copy moves at a time, or a primitive without products changes.
const PART: u64 = 4096;

/// One mode of a tile.
pub(crate) struct Mode {
    /// Axes, the fastest first.
    pub(crate) axes: Vec<Axis>,
    /// So much of it is held at a time.
    pub(crate) extent: u64,
}

impl Mode {
    pub(crate) fn size(&self) -> u64 {
        self.axes.iter().map(|a| a.size).product()
    }

    pub(crate) fn parts(&self) -> u64 {
        self.size().div_ceil(self.extent)
    }
}

/// Refuses an operation that is too much for any kernel.
pub(crate) fn admit(operation: &Checked) -> Result<(), Violation> {
    let axes = operation.axes();
    let unsuited = |place, found: String, wanted: String, help: &str| {
        Err(Violation::new(Code::Unsuited, place, found, wanted, help))
    };
    let primitives = operation.primitives();
    let (first, last) = (primitives.prim_first, primitives.prim_last);
    if (first, primitives.prim_main, last) == (First::None, Main::None, Last::None) {
        let (found, wanted) = ("no primitive".to_owned(), "at least one".to_owned());
        return unsuited(Place::Field(Field::PrimMain), found, wanted, "leave the operation out");
    }
    if axes.len() > MAX_AXES {
        let (found, wanted) = (format!("{} axes", axes.len()), format!("at most {MAX_AXES}"));
        let place = Place::Field(Field::DimTypes);
        return unsuited(place, found, wanted, "merge axes that are contiguous");
    }
    for tensor in Tensor::ALL.into_iter().filter(|t| operation.uses(*t)) {
        let most = i64::MAX.unsigned_abs() / 8;
        if operation.span(tensor) > most {
            let found = format!("{} elements", operation.span(tensor));
            let place = Place::Field(tensor.strides());
            return unsuited(place, found, format!("at most {most}"), "make strides smaller");
        }
    }
    let large = |a: &&Axis| a.exec == Exec::Shared;
    let blocks: u64 = axes.iter().filter(large).map(|a| a.size).product();
    if blocks > MAX_BLOCKS || operation.steps() > i64::MAX.unsigned_abs() {
        let found = format!("{blocks} blocks of {} iterations in all", operation.steps());
        let wanted = format!("at most {MAX_BLOCKS} blocks and {} iterations", i64::MAX);
        let place = Place::Field(Field::DimSizes);
        return unsuited(place, found, wanted, "make shared axes seq, or sizes smaller");
    }
    Ok(())
}

/// Tiles of a product, and threads. Tiles are rounded up to what instructions for f32 and f64
/// divide.
pub(crate) fn products(operation: &Checked) -> Result<([Vec<Mode>; 3], u64), Violation> {
    let axes = operation.axes();
    let prim = |dim| {
        let of = axes.iter().rev().filter(move |a| a.exec == Exec::Prim && a.dim == dim);
        of.copied().collect::<Vec<_>>()
    };
    let bytes = u128::from(operation.primitives().data_type.scalar().bits().unsigned_abs() / 8);
    let side = |size: u64| if size <= 8 { 8 } else { size.next_multiple_of(16) };
    // Sizes are below half of what 64 bits hold, by `admit`.
    let mode = |dim, round: &dyn Fn(&Mode) -> u64| {
        let mode = Mode { axes: prim(dim), extent: 0 };
        Mode { extent: round(&mode), ..mode }
    };
    let of_output = [Dim::M, Dim::N].map(|dim| mode(dim, &|m| side(m.size())).extent);
    // A narrow tile is that of one warp, unless it is too long for its registers.
    let narrow = of_output.contains(&8)
        && u128::from(of_output[0]) * u128::from(of_output[1]) * bytes <= 32 * THREAD_BYTES;
    let extent = |m: &Mode| if narrow { side(m.size()) } else { m.size().next_multiple_of(16) };
    let (m, n) = (|| mode(Dim::M, &extent), || mode(Dim::N, &extent));
    let k = || {
        mode(Dim::K, &|k| match k.axes.as_slice() {
            // A tile of a hierarchical mode is made of whole fastest axes.
            [fast, slow] => {
                let eights = 8 >> fast.size.trailing_zeros().min(3);
                fast.size.saturating_mul(slow.size.next_multiple_of(eights))
            }
            _ => k.size().next_multiple_of(8),
        })
    };
    let tiles = [vec![m(), k()], vec![k(), n()], vec![m(), n()]];
    let (rows, columns, depth) = (m().extent, n().extent, k().extent);
    let shared = (u128::from(rows) + u128::from(columns)) * u128::from(depth) * bytes;
    let tile = u128::from(rows) * u128::from(columns) * bytes;
    if tile > MAX_THREADS * THREAD_BYTES || shared > MAX_SHARED_BYTES {
        let found = format!("a tile of {rows} by {columns}, K {depth}");
        let wanted = format!(
            "at most {} elements of the output and {MAX_SHARED_BYTES} bytes of inputs",
            MAX_THREADS * THREAD_BYTES / bytes
        );
        let place = Place::Field(Field::DimSizes);
        let help = "split prim axes of M, N or K into a seq or shared axis and a smaller prim one";
        return Err(Violation::new(Code::Unsuited, place, found, wanted, help));
    }
    let threads = match narrow {
        true => 32,
        false if tile <= 64 * THREAD_BYTES => 128,
        false => 256,
    };
    Ok((tiles, threads))
}

/// Tiles without products, and threads. A tile is taken in parts, along the smallest strides of the
/// output first.
pub(crate) fn elements(axes: &[Axis]) -> ([Vec<Mode>; 3], u64) {
    let of_tile = axes.iter().filter(|a| a.exec == Exec::Prim && a.dim != Dim::K);
    let of_tile: Vec<Axis> = of_tile.copied().collect();
    let mut order: Vec<usize> = (0..of_tile.len()).collect();
    order.sort_by_key(|i| of_tile[*i].stride(Tensor::Out));
    let mut extents = vec![1; of_tile.len()];
    let mut room = PART;
    for i in order {
        extents[i] = of_tile[i].size.checked_next_power_of_two().unwrap_or(room).min(room);
        room /= extents[i];
    }
    let modes = || {
        let both = of_tile.iter().zip(&extents);
        both.map(|(axis, extent)| Mode { axes: vec![*axis], extent: *extent }).collect()
    };
    ([modes(), vec![], modes()], (PART / room).clamp(32, 128))
}
