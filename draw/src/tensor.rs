//! Draws tensors and thread tensors of a program, and the operands of an atom. A layout that is
//! open or contains symbols is an error; an offset with symbols counts as 0, and a note says so.
//!
//! A register tensor that is distributed over threads is drawn by owner, any other tensor by
//! offset. A tiled view is drawn over its root tensor, of which it is a view, if the root is small
//! enough and its layout is constant, as in Graphene, Fig. 4. Otherwise, and for thread tensors,
//! levels (the parts of a tiled layout, one per pair of brackets) are drawn inside of each other:
//! rectangles of cells are the outer level.

use crate::error::DrawError;
use crate::field::{Field, Page, Unit, extents, flat_coordinate, join};
use crate::grid::{self, LINE};
use crate::picture::{Cell, Fill, Panel, Picture, bounded};
use crate::tiling::color;
use crate::tv;
use carbyne_atoms::{Atom, Elem};
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::{Layout, Swizzle};
use carbyne_ir::leaf::Leaf;
use carbyne_ir::limits::MAX_PICTURE_CELLS;
use carbyne_ir::program::{Program, TensorId, ThreadsId, show_levels};
use carbyne_ir::scalar::Memory;
use std::collections::BTreeMap;

/// The field of a tensor, for drawing by offset, and notes.
///
/// # Errors
/// [`DrawError::Open`], [`DrawError::Symbolic`], and those of the algebra.
pub fn field(p: &Program, id: TensorId) -> Result<(Field, Vec<String>), DrawError> {
    let (tensor, buffer) = (&p.tensors[id], p.buffer_of(id));
    let name = p.tensor_name(id);
    if buffer.open {
        return Err(DrawError::Open { name });
    }
    let levels = fixed(p, &name, &tensor.levels)?;
    let modes: Vec<Layout> = levels.iter().flat_map(Layout::modes).collect();
    let (offset, notes) = offset(p, tensor.offset, "elements");
    let field = Field {
        layout: if let [one] = levels.as_slice() { one.clone() } else { Layout::concat(&modes)? },
        twists: if offset == 0 { vec![] } else { vec![(Swizzle::none(), offset)] },
        on_bytes: buffer.swizzle.unwrap_or(Swizzle::none()),
        bits: buffer.scalar.bits(),
    };
    Ok((field, notes))
}

/// The field of the first tile of a tensor with several levels: its innermost level, for example
/// one stage of a ring. For a tensor of one level, the field of the whole tensor.
///
/// # Errors
/// The errors of [`field`].
pub fn innermost(p: &Program, id: TensorId) -> Result<(Field, Vec<String>), DrawError> {
    let (mut field, mut notes) = field(p, id)?;
    let levels = fixed(p, &p.tensor_name(id), &p.tensors[id].levels)?;
    if let [outer @ .., inner] = levels.as_slice()
        && !outer.is_empty()
    {
        field.layout = inner.clone();
        let tiles: i64 = outer.iter().map(Layout::size).product();
        notes.push(format!("this is the first of {tiles} tiles, such as the stages of a ring"));
    }
    Ok((field, notes))
}

fn fixed(p: &Program, name: &str, levels: &[Layout<Dim>]) -> Result<Vec<Layout>, DrawError> {
    let all: Option<Vec<Layout>> = levels.iter().map(Layout::to_fixed).collect();
    all.ok_or_else(|| DrawError::Symbolic {
        name: name.to_owned(),
        layout: show_levels(&p.arena, levels),
    })
}

/// The value of an offset. An offset that is not constant becomes 0 with a note.
fn offset(p: &Program, offset: Dim, of: &str) -> (i64, Vec<String>) {
    match offset.known() {
        Some(offset) => (offset, vec![]),
        None => {
            let shown: String = offset.show(&p.arena).chars().take(80).collect();
            (0, vec![format!("the offset in {of}, {shown}, is assumed to be 0")])
        }
    }
}

/// The picture of a tensor of a program.
///
/// # Errors
/// [`DrawError::Open`], [`DrawError::Symbolic`], [`DrawError::TooManyCells`].
pub fn tensor(p: &Program, id: TensorId, unit: Unit) -> Result<Picture, DrawError> {
    let (tensor, buffer) = (&p.tensors[id], p.buffer_of(id));
    let name = p.tensor_name(id);
    let memory = buffer.memory.map_or(String::new(), |m| format!(".{m}"));
    let kind = format!("{}{memory}", buffer.scalar);
    if let Some(dist) = &tensor.dist {
        let Some(layout) = &dist.tv else { return Err(DrawError::Open { name }) };
        let layout = fixed(p, &name, std::slice::from_ref(layout))?.remove(0);
        let levels = fixed(p, &name, &tensor.levels)?;
        let shape: Vec<i64> = levels.iter().flat_map(extents).collect();
        let mut picture = match (dist.ops.is_empty(), tensor.offset.known()) {
            (false, Some(offset)) => {
                let root = &p.tensors[buffer.tensor].levels;
                let all =
                    fixed(p, &name, root)?.iter().fold(1i64, |n, l| n.saturating_mul(l.size()));
                let modes: Vec<Layout> = levels.iter().flat_map(Layout::modes).collect();
                let view = Layout::concat(&modes)?;
                tv::part(&layout, all, &|i| view.at(i).saturating_add(offset), &shape)?
            }
            _ => tv::tv(&layout, &shape)?,
        };
        let over = dist.threads.and_then(|t| p.threads[t].name.clone());
        let over = over.map_or(String::new(), |n| format!(" over #{n}"));
        picture.title = format!("{name}:[{}].{kind}{{tv={layout}{over}}}", join(&shape));
        return Ok(picture);
    }
    let (field, notes) = field(p, id)?;
    bounded(&format!("`{name}`"), &extents(&field.layout))?;
    let levels = fixed(p, &name, &tensor.levels)?;
    let mut picture = match levels.len() {
        0 | 1 => grid::layout(&field, unit)?,
        _ => match over_root(p, id, &levels, &field, unit)? {
            Some(picture) => picture,
            None => {
                let hover = |i: i64| grid::hover(&field, i);
                let shown = |i: i64| field.show(i, unit);
                let mut picture = nested(&levels, &shown, &hover);
                picture.notes.push(grid::cells_hold(&field, unit));
                picture
            }
        },
    };
    let swizzle = match field.on_bytes.is_none() {
        true => String::new(),
        false => {
            let s = field.on_bytes;
            format!("{{swizzle=({},{},{})}}", s.bits(), s.base(), s.shift())
        }
    };
    picture.title = format!("{name}:{}.{kind}{swizzle}", show_levels(&p.arena, &tensor.levels));
    picture.notes.extend(notes);
    Ok(picture)
}

/// The picture of a thread tensor.
///
/// # Errors
/// [`DrawError::Symbolic`], [`DrawError::TooManyCells`].
pub fn threads(p: &Program, id: ThreadsId) -> Result<Picture, DrawError> {
    let threads = &p.threads[id];
    let name = threads.name.as_ref().map_or("threads".to_owned(), |n| format!("#{n}"));
    let levels = fixed(p, &name, &threads.levels)?;
    let all: Vec<i64> = levels.iter().flat_map(extents).collect();
    bounded(&format!("`{name}`"), &all)?;
    let what = threads.scalar.to_string();
    let (offset, notes) = offset(p, threads.offset, &format!("{what}s"));
    let modes: Vec<Layout> = levels.iter().flat_map(Layout::modes).collect();
    let layout = Layout::concat(&modes)?;
    let index = |i: i64| layout.at(i).saturating_add(offset);
    let hover = |i: i64| format!("({}) -> {what} {}", join(&flat_coordinate(&all, i)), index(i));
    let mut picture = nested(&levels, &|i| index(i).to_string(), &hover);
    picture.title = format!("{name}:{}.{what}", show_levels(&p.arena, &threads.levels));
    picture.notes.insert(0, format!("cells hold the linear index of a {what}"));
    picture.notes.extend(notes);
    Ok(picture)
}

/// The picture of a tiled view over its root tensor. `None` if the view cannot be placed there.
fn over_root(
    p: &Program,
    id: TensorId,
    levels: &[Layout],
    field: &Field,
    unit: Unit,
) -> Result<Option<Picture>, DrawError> {
    let tensor = &p.tensors[id];
    let root = &p.tensors[p.buffer_of(id).tensor];
    let ([layout], Some(0), Some(offset)) =
        (root.levels.as_slice(), root.offset.known(), tensor.offset.known())
    else {
        return Ok(None);
    };
    let Some(layout) = layout.to_fixed() else { return Ok(None) };
    if layout.size() > MAX_PICTURE_CELLS || layout.rank() > 2 {
        return Ok(None);
    }
    let root = Field { layout, twists: vec![], ..field.clone() };
    let page = Page::new(&extents(&root.layout));
    let mut at = BTreeMap::new();
    for i in 0..root.layout.size() {
        if at.insert(root.layout.at(i), i).is_some() {
            return Ok(None);
        }
    }
    let outer = levels.first().map(extents).unwrap_or_default();
    let n_outer: i64 = outer.iter().product();
    // The tile of each element of the root.
    let mut tiles: Vec<Option<i64>> = vec![None; root.layout.size() as usize];
    for i in 0..field.layout.size() {
        let Some(place) = at.get(&field.layout.at(i).saturating_add(offset)) else {
            return Ok(None);
        };
        tiles[*place as usize] = Some(i % n_outer);
    }
    let mut cells = vec![];
    for r in 0..page.rows {
        for c in 0..page.cols {
            let i = page.index(r, c, 0);
            let tile = tiles[i as usize].map(|t| flat_coordinate(&outer, t));
            let mut hover = grid::hover(&root, i);
            if let Some(tile) = &tile {
                hover.push_str(&format!(", tile ({})", join(tile)));
            }
            let fill = tile.map_or(Fill::Empty, |t| color(&t, &outer));
            let text = vec![root.show(i, unit)];
            cells.push(Cell { text, hover, fill, ..Cell::default() });
        }
    }
    let mut panel = Panel::numbered(String::new(), page.rows as usize, page.cols as usize, cells);
    if page.rank < 2 {
        panel.row_labels = vec![String::new()];
    }
    panel.outline(2, |r, c| tiles[page.index(r as i64, c as i64, 0) as usize].unwrap_or(-1));
    let notes = vec![
        format!("drawn over %{}; a color is a tile", p.buffer_of(id).name),
        grid::cells_hold(&root, unit),
    ];
    Ok(Some(Picture { title: String::new(), notes, lines: vec![vec![panel]] }))
}

/// The panel of several levels inside of each other. A level of rank 1 extends along the side that
/// is shorter so far. Modes after the second continue in the columns. The functions take the
/// column-major index over all levels, outermost first.
fn nested(
    levels: &[Layout],
    shown: &dyn Fn(i64) -> String,
    hover: &dyn Fn(i64) -> String,
) -> Picture {
    // Rows and columns of each level, innermost last.
    let mut sides = vec![];
    let (mut rows, mut cols) = (1i64, 1i64);
    for level in levels.iter().rev() {
        let extents = extents(level);
        let side = match extents.as_slice() {
            [] => (1, 1),
            [n] if cols > 1 && rows <= cols => (*n, 1),
            [n] => (1, *n),
            [r, rest @ ..] => (*r, rest.iter().product()),
        };
        rows *= side.0;
        cols *= side.1;
        sides.insert(0, side);
    }
    // The coordinate of each level along a side, outermost first.
    let split = |mut i: i64, extent: fn(&(i64, i64)) -> i64| -> Vec<i64> {
        let mut out = vec![];
        for side in sides.iter().rev() {
            out.insert(0, i % extent(side));
            i /= extent(side);
        }
        out
    };
    let (row_of, col_of) = (|i: i64| split(i, |s| s.0), |i: i64| split(i, |s| s.1));
    let outer_grid = sides.first().map_or(vec![1, 1], |s| vec![s.0, s.1]);
    let mut cells = vec![];
    for r in 0..rows {
        let at_row = row_of(r);
        for c in 0..cols {
            let at_col = col_of(c);
            let (mut index, mut stride) = (0, 1);
            for (k, side) in sides.iter().enumerate() {
                index += stride * (at_row[k] + side.0 * at_col[k]);
                stride *= side.0 * side.1;
            }
            let fill = match levels.len() {
                0 | 1 => Fill::shade(index, rows * cols),
                _ => color(&[at_row[0], at_col[0]], &outer_grid),
            };
            cells.push(Cell {
                text: vec![shown(index)],
                hover: hover(index),
                fill,
                ..Cell::default()
            });
        }
    }
    let mut panel = Panel::numbered(String::new(), rows as usize, cols as usize, cells);
    let label = |n: i64, at: &dyn Fn(i64) -> Vec<i64>, extent: fn(&(i64, i64)) -> i64| {
        let one = |i: i64| {
            let digits = at(i).into_iter().zip(&sides).filter(|(_, s)| extent(s) > 1);
            digits.map(|(d, _)| d.to_string()).collect::<Vec<_>>().join(".")
        };
        (0..n).map(one).collect::<Vec<String>>()
    };
    panel.row_labels = label(rows, &row_of, |s| s.0);
    panel.col_labels = label(cols, &col_of, |s| s.1);
    for depth in 1..levels.len() {
        let id = |r: usize, c: usize| {
            let (r, c) = (row_of(r as i64), col_of(c as i64));
            (0..depth).fold(0i64, |n, k| (n * sides[k].0 + r[k]) * sides[k].1 + c[k])
        };
        panel.outline(if depth == 1 { 2 } else { 1 }, id);
    }
    let mut notes = vec![];
    if levels.len() > 1 {
        notes.push("a color is a tile; margins count outer.inner".to_owned());
    }
    Picture { title: String::new(), notes, lines: vec![vec![panel]] }
}

/// The picture of an atom's operands.
///
/// # Errors
/// The errors of [`tv::tv`].
pub fn atom(atom: &Atom) -> Result<Picture, DrawError> {
    let mut panels = vec![];
    // All threads share the tile of a descriptor.
    let (spread, whole): (Vec<_>, Vec<_>) =
        atom.operands.iter().partition(|o| o.matrix_rule().is_none());
    for operand in spread {
        let elem = match operand.elem {
            Elem::Scalar(s) => s.to_string(),
            Elem::Bits(n) => format!("{n}-bit units"),
        };
        let memory: Vec<String> = operand.memory.iter().map(Memory::to_string).collect();
        let tile: Vec<String> = operand.tile.iter().map(i64::to_string).collect();
        let tile = if tile.is_empty() { "1".to_owned() } else { tile.join("×") };
        let title = format!("{}: {tile} {elem} in {}", operand.name, memory.join(" or "));
        panels.extend(tv::panels(&operand.tv, &operand.tile, &title)?);
    }
    let mut notes: Vec<String> =
        atom.operands.iter().map(|o| format!("{}: tv={}", o.name, o.tv)).collect();
    for operand in whole {
        notes.push(format!("{}: read as a whole through a descriptor; not drawn", operand.name));
    }
    notes.push(
        "rows are the first mode of a tile; a color is a thread, repeating every 8".to_owned(),
    );
    let title = format!("{}: {}, {}", atom.name, atom.op, atom.req);
    Ok(Picture { title, notes, lines: Picture::arrange(panels, LINE / 2) })
}
