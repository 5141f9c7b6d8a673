//! Draws tiled layouts: cells show offsets, a color is the outermost tile that contains the
//! element, and outlines separate tiles and inner tiles. A cell that is pointed at names its tile
//! at every level.
//!
//! Invariant: tiles come from [`Layout::logical_divide`] of each mode, so that a strided or nested
//! tiler is drawn as the algebra defines it. A tile that does not divide its mode is refused.

use crate::error::DrawError;
use crate::field::{Field, Page, Unit, extents, flat_coordinate, join};
use crate::grid::{LINE, cells_hold, hover, page_note};
use crate::parse::Tilers;
use crate::picture::{Cell, Fill, Panel, Picture, bounded};
use carbyne_ir::layout::{Layout, LayoutError, Tiler};

/// Maximum number of nested tilings.
const MAX_LEVELS: usize = 8;

/// For each index of a mode: the tile at each level, and the position in the innermost tile.
type Places = Vec<Vec<i64>>;

/// The picture of a layout with nested tilings, outermost first.
///
/// # Errors
/// [`DrawError::Ragged`], [`DrawError::TooManyCells`], and those of the algebra.
pub fn tiled(field: &Field, tilings: &[Tilers], unit: Unit) -> Result<Picture, DrawError> {
    let extents = extents(&field.layout);
    bounded("the layout", &extents)?;
    if tilings.len() > MAX_LEVELS {
        return Err(LayoutError::TooLarge { what: "a list of tilings", limit: MAX_LEVELS }.into());
    }
    if let Some(long) = tilings.iter().find(|t| t.len() > extents.len()) {
        return Err(LayoutError::Rank { mode: long.len() - 1, rank: extents.len() }.into());
    }
    let modes: Vec<Places> = extents
        .iter()
        .enumerate()
        .map(|(m, extent)| {
            let tilers: Vec<Option<&Layout>> =
                tilings.iter().map(|t| t.get(m).and_then(Option::as_ref)).collect();
            places(m, *extent, &tilers)
        })
        .collect::<Result<_, _>>()?;

    let page = Page::new(&extents);
    // The coordinate of an element's tile at a level, or the position in the innermost tile.
    let at = |i: i64, level: usize| -> Vec<i64> {
        let coordinate = flat_coordinate(&extents, i);
        modes.iter().zip(coordinate).map(|(m, c)| m[c as usize][level]).collect()
    };
    let grid = tile_counts(&modes);
    let mut panels = vec![];
    for p in 0..page.panels {
        let mut cells = vec![];
        for r in 0..page.rows {
            for c in 0..page.cols {
                let i = page.index(r, c, p);
                let mut said = hover(field, i);
                for level in 0..tilings.len() {
                    let what = if level == 0 { "tile" } else { "inner tile" };
                    said.push_str(&format!(", {what} ({})", join(&at(i, level))));
                }
                said.push_str(&format!(", element ({})", join(&at(i, tilings.len()))));
                let fill = match tilings.len() {
                    0 => Fill::Empty,
                    _ => color(&at(i, 0), &grid),
                };
                cells.push(Cell {
                    text: vec![field.show(i, unit)],
                    hover: said,
                    fill,
                    ..Cell::default()
                });
            }
        }
        let title = page.title(&extents, p);
        let mut panel = Panel::numbered(title, page.rows as usize, page.cols as usize, cells);
        if page.rank < 2 {
            panel.row_labels = vec![String::new()];
        }
        let mut id = vec![0i64; panel.cells.len()];
        for level in 0..tilings.len() {
            // Distinguishes the tiles of this level within each tile of the level above.
            for (cell, id) in id.iter_mut().enumerate() {
                let (r, c) = (cell as i64 / page.cols, cell as i64 % page.cols);
                let tile = at(page.index(r, c, p), level);
                *id = tile.iter().fold(*id, |n, t| n.wrapping_mul(65_537).wrapping_add(*t + 1));
            }
            let cols = panel.cols;
            panel.outline(if level == 0 { 2 } else { 1 }, |r, c| id[r * cols + c]);
        }
        panels.push(panel);
    }
    let mut notes = vec![format!("tiled: {}", notation(field, tilings)?), cells_hold(field, unit)];
    notes.push("a color is a tile".to_owned());
    notes.extend(page_note(page));
    Ok(Picture { title: field.notation(), notes, lines: Picture::arrange(panels, LINE) })
}

/// The number of outermost tiles along each mode.
fn tile_counts(modes: &[Places]) -> Vec<i64> {
    modes.iter().map(|m| m.iter().map(|p| p[0] + 1).max().unwrap_or(1)).collect()
}

/// The color of a tile. Few tiles have distinct colors; of many tiles, neighbors have distinct
/// colors.
pub(crate) fn color(tile: &[i64], grid: &[i64]) -> Fill {
    if grid.iter().product::<i64>() <= crate::palette::HUES.len() as i64 {
        let number = tile.iter().zip(grid).rev().fold(0, |n, (t, g)| n * g + t);
        return Fill::hue(number);
    }
    Fill::hue(tile.iter().zip([1, 3, 5, 7].iter().cycle()).map(|(t, k)| t * k).sum())
}

fn places(mode: usize, extent: i64, tilers: &[Option<&Layout>]) -> Result<Places, DrawError> {
    let mut out: Places = (0..extent).map(|i| vec![i]).collect();
    let mut size = extent;
    for tiler in tilers {
        let Some(tiler) = tiler else {
            // The whole mode is one tile.
            out.iter_mut().for_each(|p| p.insert(p.len() - 1, 0));
            continue;
        };
        let ragged = || DrawError::Ragged { tile: tiler.to_string(), extent: size, mode };
        let inner = tiler.size();
        if inner > size || size % inner != 0 {
            return Err(ragged());
        }
        let divided = Layout::new(size, 1)?.logical_divide(*tiler)?;
        let mut split: Vec<Option<(i64, i64)>> = vec![None; size as usize];
        for k in 0..size {
            let index = usize::try_from(divided.at(k)).ok();
            match index.and_then(|i| split.get_mut(i)) {
                Some(place @ None) => *place = Some((k / inner, k % inner)),
                _ => return Err(ragged()),
            }
        }
        for place in &mut out {
            let last = place.pop().unwrap_or(0);
            let (tile, rest) = split[last as usize].unwrap_or((0, 0));
            place.extend([tile, rest]);
        }
        size = inner;
    }
    Ok(out)
}

/// The tiled type, with strides in elements: `[(2,2):(2,16)].[(2,4):(1,4)]`.
fn notation(field: &Field, tilings: &[Tilers]) -> Result<String, DrawError> {
    let show = |modes: &[Layout]| -> Result<String, DrawError> {
        Ok(match modes {
            [one] => format!("[{one}]"),
            _ => format!("[{}]", Layout::concat(modes)?),
        })
    };
    let mut inner = field.layout.modes();
    let mut levels = vec![];
    for tilers in tilings {
        let mut rests = vec![];
        for (m, mode) in inner.iter_mut().enumerate() {
            let Some(tiler) = tilers.get(m).and_then(Option::as_ref) else {
                rests.push(Layout::new(1, 0)?);
                continue;
            };
            let divided = mode.logical_divide(Tiler::from(tiler))?;
            rests.push(divided.mode(1)?.coalesce());
            *mode = divided.mode(0)?.coalesce();
        }
        levels.push(show(&rests)?);
    }
    levels.push(show(&inner)?);
    Ok(levels.join("."))
}
