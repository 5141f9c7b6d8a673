//! Draws a warp's access to shared memory: which lane accesses which bank. If the tile has a
//! swizzle, the picture shows the access without and with it. There is one panel per phase, that
//! is, per part of the warp that the banks serve at once. Small tiles of up to two modes are drawn
//! below the phases.
//!
//! The caller may pass the layout of lanes. By default lanes access the tile as `ldmatrix` does:
//! each lane accesses one vector along the mode that is contiguous in memory, and consecutive lanes
//! have consecutive coordinates in the other mode.
//!
//! Invariant: phases, words, banks and wavefronts are those of [`carbyne_atoms::banks`].

use crate::error::DrawError;
use crate::field::{Field, extents, flat_coordinate, join};
use crate::picture::{Cell, Fill, Panel, Picture, bounded};
use carbyne_atoms::BANKS;
use carbyne_ir::diag::count;
use carbyne_ir::layout::Layout;

/// Lanes of a warp.
const LANES: i64 = 32;
/// Maximum number of rows of a tile that is drawn below its phases.
const MAX_MAP_ROWS: i64 = 128;

/// An access of a warp.
struct WarpAccess {
    /// The column-major index of each lane's first element.
    starts: Vec<i64>,
    /// The distance between consecutive elements of a vector, in column-major indices.
    step: i64,
    /// Elements per vector.
    elements: i64,
    /// Bytes per lane.
    bytes: i64,
    /// The mode along which vectors extend.
    mode: usize,
}

/// The picture of a warp's access to a tile with `bytes` bytes per lane. `lanes` maps lanes to
/// column-major indices of the tile.
///
/// # Errors
/// [`DrawError::AccessWidth`], [`DrawError::NotConsecutive`], [`DrawError::LaneOutside`],
/// [`DrawError::TooManyCells`].
pub fn banks(field: &Field, bytes: i64, lanes: Option<&Layout>) -> Result<Picture, DrawError> {
    let extents = extents(&field.layout);
    bounded("the tile", &extents)?;
    let access = access(field, &extents, bytes, lanes)?;
    let swizzled = !field.swizzle().is_none();
    let sides: &[bool] = if swizzled { &[false, true] } else { &[false] };
    let mut addresses = vec![];
    for side in sides {
        addresses.push(bytes_of(field, &access, *side)?);
    }

    let mut notes = vec![format!(
        "a warp accesses {bytes} bytes per lane of a tile of {}-bit elements: {} of up to {} \
         lanes; {} banks of {} bytes",
        field.bits,
        count(access.starts.len().div_ceil(BANKS.lanes_per_phase(bytes)), "phase"),
        BANKS.lanes_per_phase(bytes),
        BANKS.n,
        BANKS.bytes
    )];
    let phases: Vec<Vec<Phase>> = addresses.iter().map(|a| phases(a, bytes)).collect();
    let n_phases = phases.first().map_or(0, Vec::len);
    let mut lines: Vec<Vec<Panel>> = vec![];
    for n in 0..n_phases {
        let panel = |(phases, side): (&Vec<Phase>, &bool)| {
            phases[n].panel(&format!("{}phase {n}", side_name(field, *side)))
        };
        lines.push(phases.iter().zip(sides).map(panel).collect());
    }
    notes.push(
        "phases: a column is a bank, a row is a wavefront, a cell is the served lane".to_owned(),
    );
    if extents.len() <= 2 && extents.first().is_none_or(|r| *r <= MAX_MAP_ROWS) {
        let map = |side: &bool| map(field, &extents, &access, *side);
        lines.push(sides.iter().map(map).collect());
        notes.push(
            "tile: a cell is a vector with its lane and the bank of its first byte, which is also \
             its color"
                .to_owned(),
        );
    }
    for (side, phases) in sides.iter().zip(&phases) {
        let total: i64 = phases.iter().map(|p| p.ways).sum();
        let worst = match phases.iter().map(|p| p.ways).max() {
            None | Some(0 | 1) => "no conflicts".to_owned(),
            Some(worst) => format!("conflicts up to {worst}-way"),
        };
        notes.push(format!(
            "{}{} for {}, {worst}",
            side_name(field, *side),
            count(total as usize, "wavefront"),
            count(n_phases, "phase")
        ));
    }
    Ok(Picture { title: field.notation(), notes, lines })
}

/// The title prefix of a panel: with or without swizzle. Empty if the field has no swizzle.
fn side_name(field: &Field, swizzled: bool) -> String {
    match (field.swizzle().is_none(), swizzled) {
        (true, _) => String::new(),
        (_, false) => "without swizzle: ".to_owned(),
        (_, true) => format!("{}: ", field.swizzle()),
    }
}

fn access(
    field: &Field,
    extents: &[i64],
    bytes: i64,
    lanes: Option<&Layout>,
) -> Result<WarpAccess, DrawError> {
    let width = DrawError::AccessWidth { bytes, bits: field.bits };
    if ![1, 2, 4, 8, 16].contains(&bytes) || bytes * 8 % field.bits != 0 {
        return Err(width);
    }
    let elements = bytes * 8 / field.bits;
    let size: i64 = extents.iter().product();
    let step = |mode: usize| extents[..mode].iter().product::<i64>();
    // The last contiguous mode, so that vectors of one element extend along rows.
    let near = |m: &usize| {
        let apart = field.bit(step(*m), false).wrapping_sub(field.bit(0, false));
        extents[*m] % elements == 0 && (extents[*m] == 1 || apart == field.bits)
    };
    let mode = (0..extents.len()).rev().find(|m| extents[*m] > 1 && near(m));
    let mode = mode.or((elements == 1).then_some(extents.len().saturating_sub(1)));
    let Some(mode) = mode else {
        return Err(DrawError::NotConsecutive { lane: 0, element: 0, bytes });
    };
    let vectors: Vec<i64> = match lanes {
        Some(lanes) => (0..lanes.size().min(LANES)).map(|l| lanes.at(l)).collect(),
        None => {
            // Vectors are numbered along the other modes first.
            let n = size / elements;
            (0..n.min(LANES)).map(|l| start(extents, mode, elements, l)).collect()
        }
    };
    for (lane, element) in vectors.iter().enumerate() {
        if !(0..size).contains(element) {
            return Err(DrawError::LaneOutside { lane, element: *element, size });
        }
    }
    Ok(WarpAccess { starts: vectors, step: step(mode), elements, bytes, mode })
}

/// The first element of the `n`-th vector.
fn start(extents: &[i64], mode: usize, elements: i64, n: i64) -> i64 {
    let mut rest = n;
    let mut index = 0;
    let mut stride = 1;
    for (m, extent) in extents.iter().enumerate() {
        if m != mode {
            index += rest % extent * stride;
            rest /= extent;
        }
        stride *= extent;
    }
    let along: i64 = extents.get(..mode).unwrap_or(&[]).iter().product();
    index + rest * elements * along
}

/// The byte address of each lane's vector. The vector must be contiguous and aligned to its size.
fn bytes_of(field: &Field, access: &WarpAccess, swizzled: bool) -> Result<Vec<i64>, DrawError> {
    let one = |(lane, first): (usize, &i64)| {
        let bit = field.bit(*first, swizzled);
        let last = first + (access.elements - 1) * access.step;
        let inside = last < field.layout.size();
        let whole = (0..access.elements).all(|j| {
            let next = field.bit(first + j * access.step, swizzled);
            next.checked_sub(bit) == Some(j * field.bits)
        });
        if !inside || !whole || bit % (access.bytes * 8) != 0 {
            let (element, bytes) = (*first, access.bytes);
            return Err(DrawError::NotConsecutive { lane, element, bytes });
        }
        Ok(bit / 8)
    };
    access.starts.iter().enumerate().map(one).collect()
}

/// The panel of the tile, with one cell per vector.
fn map(field: &Field, extents: &[i64], access: &WarpAccess, swizzled: bool) -> Panel {
    let in_vectors: Vec<i64> = extents
        .iter()
        .enumerate()
        .map(|(m, e)| if m == access.mode { e / access.elements } else { *e })
        .collect();
    let (rows, cols) = match in_vectors.as_slice() {
        [] => (1, 1),
        [n] => (1, *n),
        [rows, cols, ..] => (*rows, *cols),
    };
    let mut cells = vec![];
    for r in 0..rows {
        for c in 0..cols {
            let mut at = flat_coordinate(&in_vectors, r + rows * c);
            if let Some(along) = at.get_mut(access.mode) {
                *along *= access.elements;
            }
            let index = at.iter().zip(extents).rev().fold(0, |n, (c, e)| n * e + c);
            let byte = field.bit(index, swizzled).div_euclid(8);
            let bank = BANKS.bank(*BANKS.words(byte, access.bytes).start());
            let lanes: Vec<String> = access
                .starts
                .iter()
                .enumerate()
                .filter(|(_, s)| **s == index)
                .map(|(l, _)| format!("L{l}"))
                .collect();
            let mut hover = format!("({}) -> byte {byte}, bank {bank}", join(&at));
            if !lanes.is_empty() {
                hover.push_str(&format!(", {}", lanes.join(" ")));
            }
            let text = match lanes.as_slice() {
                [] => format!("b{bank}"),
                [lane] => format!("{lane} b{bank}"),
                [lane, more @ ..] => format!("{lane}+{} b{bank}", more.len()),
            };
            let place = bank as i64 * BANKS.bytes / access.bytes.max(BANKS.bytes);
            let fill = Fill::hue(place);
            cells.push(Cell { text: vec![text], hover, fill, ..Cell::default() });
        }
    }
    let title = format!("{}tile", side_name(field, swizzled));
    let mut panel = Panel::numbered(title, rows as usize, cols as usize, cells);
    let numbers = |n: i64, mode: usize| -> Vec<String> {
        let scale = if mode == access.mode { access.elements } else { 1 };
        (0..n).map(|i| (i * scale).to_string()).collect()
    };
    match in_vectors.len() {
        0 | 1 => {
            panel.row_labels = vec![String::new()];
            panel.col_labels = numbers(cols, 0);
        }
        _ => {
            panel.row_labels = numbers(rows, 0);
            panel.col_labels = numbers(cols, 1);
        }
    }
    panel
}

/// The lanes that the banks serve together.
struct Phase {
    lanes: std::ops::Range<usize>,
    /// Each word with the lanes that need it, in the order in which its bank serves it.
    words: Vec<(i64, Vec<usize>)>,
    ways: i64,
}

fn phases(addresses: &[i64], bytes: i64) -> Vec<Phase> {
    let each = BANKS.lanes_per_phase(bytes);
    let mut out = vec![];
    for (n, chunk) in addresses.chunks(each).enumerate() {
        let first = n * each;
        let mut words: Vec<(i64, Vec<usize>)> = vec![];
        for (l, address) in chunk.iter().enumerate() {
            for word in BANKS.words(*address, bytes) {
                match words.iter_mut().find(|(w, _)| *w == word) {
                    Some((_, lanes)) => lanes.push(first + l),
                    None => words.push((word, vec![first + l])),
                }
            }
        }
        let distinct: Vec<i64> = words.iter().map(|(w, _)| *w).collect();
        let ways = BANKS.wavefronts(&distinct);
        out.push(Phase { lanes: first..first + chunk.len(), words, ways });
    }
    out
}

impl Phase {
    fn panel(&self, name: &str) -> Panel {
        let (rows, cols) = (self.ways.max(1) as usize, BANKS.n as usize);
        let mut cells = vec![Cell::default(); rows * cols];
        let mut used = vec![0usize; cols];
        for (word, lanes) in &self.words {
            let bank = BANKS.bank(*word);
            let row = used[bank];
            used[bank] += 1;
            let Some(cell) = cells.get_mut(row * cols + bank) else { continue };
            let (first, others) = (lanes.first().copied().unwrap_or(0), lanes.len() - 1);
            let names: Vec<String> = lanes.iter().map(usize::to_string).collect();
            cell.text = vec![match others {
                0 => first.to_string(),
                _ => format!("{first}+{others}"),
            }];
            cell.hover = format!(
                "bank {bank}, bytes from {} -> lane {}",
                word * BANKS.bytes,
                names.join(", ")
            );
            cell.fill = Fill::hue(first as i64);
        }
        let how = match self.ways {
            0 | 1 => "no conflict".to_owned(),
            ways => format!("{ways}-way conflict"),
        };
        let (first, last) = (self.lanes.start, self.lanes.end.saturating_sub(1));
        let title = format!("{name}, lanes {first} to {last}: {how}");
        Panel::numbered(title, rows, cols, cells)
    }
}
