//! Chooses the tiles of a kernel at the tile level for an operation of TEIR (the Tiled Execution
//! IR): their modes, their extents, and the number of threads that hold them. Extents of products
//! are rounded up to multiples that instructions have, and a large tile is taken in parts. It
//! refuses a product whose tile is too large for a block. For both ways of lowering, it also
//! refuses an operation without a primitive, or with tensors, loops or a grid that are too large
//! for any kernel.

use crate::check::Checked;
use crate::record::{Axis, Dim, Exec, First, Last, Main, Tensor};
use crate::violation::{Code, Field, Place, Violation};

/// Most axes larger than 1 of an operation that is lowered. Each may be a loop, and carbyne takes
/// minutes for a program in which 25 of them nest.
const MAX_AXES: usize = 16;
/// Most bits of a tensor, gaps included.
const MAX_BITS: u64 = 1 << 50;
/// Most blocks of a grid (CUDA C++ Programming Guide, technical specifications per compute
/// capability).
const MAX_BLOCKS: u64 = (1 << 31) - 1;
/// Most threads of a block of a product.
const MAX_THREADS: u128 = 256;
/// Most bytes of a tile of the output in the registers of one thread.
const THREAD_BYTES: u128 = 256;
/// Most bytes of the tiles of both inputs in shared memory. A warp can hold as many in registers.
const MAX_SHARED_BYTES: u128 = 64 << 10;
/// Most of K that is in shared memory at a time.
const MAX_DEPTH: u64 = 64;
/// The fastest of two K axes is taken as a whole up to this size, where no part of 8 or more fits.
const MAX_WHOLE: u64 = 256;
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
    let loops = axes.iter().filter(|a| a.size > 1).count();
    if loops > MAX_AXES {
        let found = format!("{loops} axes larger than 1");
        let (place, wanted) = (Place::Field(Field::DimSizes), format!("at most {MAX_AXES}"));
        return unsuited(place, found, wanted, "merge axes that are contiguous");
    }
    let most = MAX_BITS / primitives.data_type.scalar().bits().unsigned_abs();
    for tensor in Tensor::ALL.into_iter().filter(|t| operation.uses(*t)) {
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

/// The axes of a tile. Along those of size 1 it does not extend, unless there are no others.
fn of_tile(axes: &[Axis], suits: impl Fn(&Axis) -> bool) -> Vec<Axis> {
    let mut found: Vec<Axis> =
        axes.iter().filter(|a| a.exec == Exec::Prim && suits(a)).copied().collect();
    let largest = found.iter().map(|a| a.size).max();
    if largest > Some(1) {
        found.retain(|a| a.size > 1);
    } else {
        found.truncate(1);
    }
    found
}

/// The part of K that a tile holds at a time: at most `room`. A tile of a hierarchical mode divides
/// its fastest axis, or is made of whole ones.
fn slice(k: &Mode, room: u64) -> u64 {
    let most = room.min(MAX_DEPTH);
    let fast = match k.axes.as_slice() {
        [fast, _] => fast.size,
        _ => 1,
    };
    let unit = fast.saturating_mul(8 >> fast.trailing_zeros().min(3));
    if unit <= most {
        // Parts of about one size, as few as possible.
        let parts = k.size().div_ceil(most / unit * unit);
        return k.size().div_ceil(parts).next_multiple_of(unit);
    }
    let valid = (1..=most).filter(|s| fast.is_multiple_of(*s) || s.is_multiple_of(fast));
    let best = valid.max_by_key(|s| (s.is_multiple_of(8), *s)).unwrap_or(1);
    if best < 8 && fast <= room.min(MAX_WHOLE) { fast } else { best }
}

/// Tiles of a product, and threads. Tiles are rounded up to what instructions for f32 and f64
/// divide.
pub(crate) fn products(operation: &Checked) -> Result<([Vec<Mode>; 3], u64), Violation> {
    let prim = |dim| {
        let mut axes = of_tile(operation.axes(), |a| a.dim == dim);
        axes.reverse();
        axes
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
    let (rows, columns) = (u128::from(m().extent), u128::from(n().extent));
    let tile = rows * columns * bytes;
    if tile > MAX_THREADS * THREAD_BYTES {
        let found = format!("a tile of {rows} by {columns}");
        let wanted = format!("at most {} elements", MAX_THREADS * THREAD_BYTES / bytes);
        let place = Place::Field(Field::DimSizes);
        let help = "split prim axes of M or N into a seq or shared axis and a smaller prim one";
        return Err(Violation::new(Code::Unsuited, place, found, wanted, help));
    }
    // At least 15, as both sides are 8 or more and the tile is not larger.
    let room = MAX_SHARED_BYTES / ((rows + columns) * bytes);
    let room = u64::try_from(room).unwrap_or(MAX_DEPTH);
    let k = || mode(Dim::K, &|k| slice(k, room));
    let tiles = [vec![m(), k()], vec![k(), n()], vec![m(), n()]];
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
    let of_tile = of_tile(axes, |a| a.dim != Dim::K);
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
