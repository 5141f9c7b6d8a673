//! Defines the colors of pictures. Each has a variant for light and for dark screens.
//!
//! The eight hues distinguish things; people with red-green blindness can tell them apart, too.
//! They are Paul Tol's qualitative scheme "light" (technical note SRON/EPS/TN/09-002), made for
//! labeled cells with black text. On dark screens with white text the hues are the same, at
//! lightnesses that are far apart. The eight shades show a quantity: they go from pale to strong in
//! one hue.
//!
//! Invariant: text has a contrast of at least 4.5 to every fill in both modes; the tests compute
//! it.

/// A fill color for light and for dark screens, as 0xRRGGBB.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Color {
    /// For dark text.
    pub light: u32,
    /// For light text.
    pub dark: u32,
    /// The nearest of the 256 terminal colors, for black text.
    pub terminal: u8,
}

const fn color(light: u32, dark: u32, terminal: u8) -> Color {
    Color { light, dark, terminal }
}

/// Colors for distinct things.
pub const HUES: [Color; 8] = [
    color(0x77AADD, 0x0C3856, 110),
    color(0xEE8866, 0x975F3C, 209),
    color(0xEEDD88, 0x403B1B, 222),
    color(0x44BB99, 0x1A796B, 72),
    color(0xFFAABB, 0xC63264, 217),
    color(0x99DDFF, 0x3F719A, 117),
    color(0xBBCC33, 0x746F05, 149),
    color(0xDDDDDD, 0x323232, 253),
];

/// Colors for a quantity.
pub const SHADES: [Color; 8] = [
    color(0xF7FBFF, 0x18222D, 231),
    color(0xE9F2FA, 0x1A2B3C, 255),
    color(0xDAE8F5, 0x1B344B, 195),
    color(0xC9DDF0, 0x1C3E5A, 189),
    color(0xB4D1E9, 0x1C4769, 153),
    color(0x9CC3E2, 0x1B5178, 117),
    color(0x82B3DA, 0x185B88, 111),
    color(0x66A2D1, 0x126598, 75),
];

/// The background and the text color of light screens.
pub(crate) const LIGHT: (u32, u32) = (0xFFFFFF, 0x111111);
/// The background and the text color of dark screens.
pub(crate) const DARK: (u32, u32) = (0x14171A, 0xF5F5F5);

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "colors are judged with room for rounding")]
mod tests {
    use super::*;

    fn channels(color: u32) -> [f64; 3] {
        [16, 8, 0]
            .map(|shift| f64::from(color >> shift & 255) / 255.0)
            .map(|c| if c <= 0.04045 { c / 12.92 } else { ((c + 0.055) / 1.055).powf(2.4) })
    }

    fn luminance(color: u32) -> f64 {
        let [r, g, b] = channels(color);
        0.2126 * r + 0.7152 * g + 0.0722 * b
    }

    fn contrast(a: u32, b: u32) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    #[test]
    fn text_is_legible_on_every_fill() {
        for c in HUES.iter().chain(&SHADES) {
            assert!(contrast(c.light, LIGHT.1) >= 4.5, "{c:x?}");
            assert!(contrast(c.dark, DARK.1) >= 4.5, "{c:x?} {}", contrast(c.dark, DARK.1));
        }
        assert!(contrast(LIGHT.0, LIGHT.1) > 12.0 && contrast(DARK.0, DARK.1) > 12.0);
    }

    /// A color as people with red-green blindness see it, in L*a*b* (after Viénot, Brettel and
    /// Mollon, 1999).
    fn seen(color: u32, matrix: [[f64; 3]; 3]) -> [f64; 3] {
        let rgb = channels(color);
        let rgb = matrix.map(|row| row.iter().zip(rgb).map(|(m, c)| m * c).sum::<f64>());
        let xyz = [
            (0.4124 * rgb[0] + 0.3576 * rgb[1] + 0.1805 * rgb[2]) / 0.9505,
            0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2],
            (0.0193 * rgb[0] + 0.1192 * rgb[1] + 0.9505 * rgb[2]) / 1.089,
        ]
        .map(|t| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 });
        [116.0 * xyz[1] - 16.0, 500.0 * (xyz[0] - xyz[1]), 200.0 * (xyz[1] - xyz[2])]
    }

    #[test]
    fn hues_differ_for_color_blind_people() {
        let normal = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let protan = [[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]];
        let deutan = [[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]];
        let dist = |a: [f64; 3], b: [f64; 3]| {
            a.iter().zip(b).map(|(x, y)| (x - y).powi(2)).sum::<f64>().sqrt()
        };
        let mut close = vec![];
        for matrix in [normal, protan, deutan] {
            for mode in [|c: &Color| c.light, |c: &Color| c.dark] {
                for (i, a) in HUES.iter().enumerate() {
                    for b in &HUES[..i] {
                        let d = dist(seen(mode(a), matrix), seen(mode(b), matrix));
                        if d < 10.0 {
                            close.push(format!("{:06x} {:06x}: {d:.1}", mode(a), mode(b)));
                        }
                    }
                }
            }
        }
        assert!(close.is_empty(), "{close:#?}");
    }
}
