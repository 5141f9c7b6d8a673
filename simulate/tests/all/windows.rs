//! Tests tensors whose elements overlap, such as the windows of a convolution: two elements at one
//! offset have one value, and their copies are compared.

use carbyne_simulate::{Inputs, Options};

/// Copies all windows of 3x3 pixels of an image, with one place of the window for each block;
/// windows move by `step` pixels.
fn windows(step: i64) -> String {
    let width = (64 - 1) * step + 3;
    format!(
        "carbyne 2
%X:[((64,64),(64,3,3)):(({},{}),(1,64,{}))].f32.GL
%Y:[4096,576].f32.GL
#grid:[4096].block
#cta:[64].thread
Move @windows <<<#grid, #cta>>> (%X) -> (%Y) {{
  @b = #grid.indices()
  @t = #cta.indices()
  for (i = 0; i < 9; i += 1) {{
    Move <<<#grid, #cta.scalar()>>> (%X[@b, i * 64 + @t]) -> (%Y[@b, i * 64 + @t])
  }}
}}
",
        64 * step,
        64 * step * width,
        64 * width
    )
}

#[test]
fn windows_that_move_by_one_pixel_or_two() {
    for step in 1..=4 {
        let options = Options { blocks: Some(8), inputs: Inputs::Seed(2), ..Options::default() };
        let report = crate::support::good(&windows(step), &options);
        assert!(report.kernels[0].elements >= 8 * 576, "{step}");
        // If two windows contain one pixel, they have one value.
        let places = || (0..6).flat_map(|q| (0..3).map(move |s| (q, s)));
        let value = |q: i64, s: i64| report.outputs.element("X", &[q, 64 * s]);
        let mut pixels = std::collections::BTreeMap::new();
        for (q, s) in places() {
            let first = *pixels.entry(q * step + s).or_insert(value(q, s));
            assert!(first.is_some() && value(q, s) == first, "{step}: {q} {s}");
        }
        let different: std::collections::BTreeSet<_> = pixels.values().collect();
        assert!(2 * different.len() > pixels.len(), "{step}: {pixels:?}");
    }
}
