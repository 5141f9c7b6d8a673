//! Defines Python functions for layouts: `calculate` answers a JSON request of the calculator, and
//! `draw` draws a layout as SVG.

use carbyne::documents;
use carbyne_draw::{DrawError, Field, Unit, elide, grid, parse, svg, tv};
use carbyne_ir::layout::ComposedLayout;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Answers a request of layout algebra. Request and answer are JSON.
#[pyfunction]
pub(crate) fn calculate(request: &str) -> String {
    documents::calculated(request).to_string()
}

/// Draws a layout as SVG; with the shape of a tile, a thread-value layout of the tile.
#[pyfunction]
#[pyo3(signature = (layout, tile=None))]
pub(crate) fn draw(layout: &str, tile: Option<&str>) -> PyResult<String> {
    let refused = |e: DrawError| {
        let help = e.help().map(|help| format!("; {help}")).unwrap_or_default();
        PyValueError::new_err(format!("{e}{help}"))
    };
    let layout = layout.parse::<ComposedLayout>();
    let layout = layout.map_err(|e| PyValueError::new_err(e.to_string()))?;
    let picture = match tile {
        Some(tile) => {
            let plain = layout.plain();
            let plain = plain
                .ok_or_else(|| PyValueError::new_err("a thread-value layout has no swizzle"))?;
            tv::tv(plain, &parse::shape(tile).map_err(refused)?)
        }
        None => grid::layout(&Field::new(&layout, 8), Unit::Element),
    };
    Ok(svg::svg(&elide::elide(picture.map_err(refused)?, "`carbyne draw --whole`")))
}
