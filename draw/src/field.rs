//! Defines [`Field`], the positions of a tile's elements in memory, in elements and in bytes. It is
//! a layout with offset and swizzle. All pictures of memory read positions from it.
//!
//! Invariant: a field of rank 1 is drawn as a row, one of rank 2 as rows and columns. Coordinates
//! of further modes are panels, or additional columns if there would be more than [`MAX_PANELS`]
//! panels.

use carbyne_ir::layout::{ComposedLayout, Layout, Swizzle};

/// Maximum number of panels for modes after the second.
pub const MAX_PANELS: i64 = 64;

/// The unit of offsets.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Unit {
    /// Elements.
    #[default]
    Element,
    /// Bytes.
    Byte,
}

impl Unit {
    /// The name of the unit in texts.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Unit::Element => "elements",
            Unit::Byte => "bytes",
        }
    }
}

/// A tile in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The map from coordinates to elements.
    pub layout: Layout,
    /// Swizzles of element indices, each with the offset that is added before it, outermost first.
    pub twists: Vec<(Swizzle, i64)>,
    /// The swizzle of byte addresses, as tensors in shared memory have one. It is applied last.
    pub on_bytes: Swizzle,
    /// Bits of one element.
    pub bits: i64,
}

impl Field {
    /// The tile of a layout, with elements of `bits` bits.
    #[must_use]
    pub fn new(layout: &ComposedLayout, bits: i64) -> Self {
        Field {
            layout: layout.layout().clone(),
            twists: layout.twists().to_vec(),
            on_bytes: Swizzle::none(),
            bits: bits.clamp(1, 1 << 20),
        }
    }

    /// The swizzle that is applied last. [`Swizzle::none`] if the field has none.
    #[must_use]
    pub fn swizzle(&self) -> Swizzle {
        let all = std::iter::once(self.on_bytes).chain(self.twists.iter().map(|t| t.0));
        all.into_iter().find(|s| !s.is_none()).unwrap_or(Swizzle::none())
    }

    /// The index of the `i`-th element before the swizzle of bytes.
    fn element(&self, i: i64, swizzled: bool) -> i64 {
        self.twists.iter().rev().fold(self.layout.at(i), |at, (swizzle, offset)| {
            let at = at.saturating_add(*offset);
            if swizzled { swizzle.apply(at) } else { at }
        })
    }

    /// The bit at which the `i`-th element begins.
    #[must_use]
    pub fn bit(&self, i: i64, swizzled: bool) -> i64 {
        let linear = self.element(i, swizzled).saturating_mul(self.bits);
        if !swizzled || self.on_bytes.is_none() {
            return linear;
        }
        let byte = self.on_bytes.apply(linear.div_euclid(8));
        byte.saturating_mul(8).saturating_add(linear.rem_euclid(8))
    }

    /// The position of the `i`-th element as a cell shows it.
    #[must_use]
    pub fn show(&self, i: i64, unit: Unit) -> String {
        let bit = self.bit(i, true);
        let of = match unit {
            Unit::Element => self.bits,
            Unit::Byte => 8,
        };
        match (bit.rem_euclid(of), unit) {
            (0, _) | (_, Unit::Element) => bit.div_euclid(of).to_string(),
            // Elements narrower than a byte: halves, quarters or eighths.
            (rest, Unit::Byte) => {
                let eighths = format!("{:03}", rest * 125);
                format!("{}.{}", bit.div_euclid(8), eighths.trim_end_matches('0'))
            }
        }
    }

    /// The layout with its offset and swizzle, as text.
    #[must_use]
    pub fn notation(&self) -> String {
        let mut out = String::new();
        if !self.on_bytes.is_none() {
            out.push_str(&format!("{} on bytes o ", self.on_bytes));
        }
        for (swizzle, offset) in &self.twists {
            match swizzle.is_none() {
                true if *offset == 0 => {}
                true => out.push_str(&format!("{offset} o ")),
                false => out.push_str(&format!("{swizzle} o {offset} o ")),
            }
        }
        out.push_str(&self.layout.to_string());
        out
    }

    /// The coordinate of the `i`-th element: `(1,3)`, and the nested coordinate if modes are
    /// nested.
    #[must_use]
    pub fn coordinate(&self, i: i64) -> String {
        let flat = flat_coordinate(&extents(&self.layout), i);
        let nested = self.layout.coord(i).to_string();
        let flat = match flat.as_slice() {
            [one] => one.to_string(),
            _ => format!("({})", join(&flat)),
        };
        if flat == nested || format!("({flat})") == nested {
            flat
        } else {
            format!("{flat} = {nested}")
        }
    }
}

/// Numbers separated by commas.
pub(crate) fn join(numbers: &[i64]) -> String {
    numbers.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// The sizes of the modes.
pub(crate) fn extents(layout: &Layout) -> Vec<i64> {
    layout.modes().iter().map(Layout::size).collect()
}

/// The coordinate of a column-major index.
pub(crate) fn flat_coordinate(extents: &[i64], index: i64) -> Vec<i64> {
    let mut rest = index;
    let digit = |e: &i64| {
        let digit = rest.rem_euclid(*e);
        rest = rest.div_euclid(*e);
        digit
    };
    extents.iter().map(digit).collect()
}

/// The arrangement of modes on a page.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) rows: i64,
    pub(crate) cols: i64,
    pub(crate) panels: i64,
    pub(crate) rank: usize,
}

impl Page {
    /// The arrangement for these extents. The caller has checked their product.
    pub(crate) fn new(extents: &[i64]) -> Self {
        let rank = extents.len();
        let (rows, cols, rest) = match extents {
            [] => (1, 1, 1),
            [n] => (1, *n, 1),
            [rows, cols, rest @ ..] => (*rows, *cols, rest.iter().product()),
        };
        if rest > MAX_PANELS {
            return Page { rows, cols: cols * rest, panels: 1, rank };
        }
        Page { rows, cols, panels: rest, rank }
    }

    /// The column-major index of a cell.
    pub(crate) fn index(self, row: i64, col: i64, panel: i64) -> i64 {
        row + self.rows * (col + self.cols * panel)
    }

    /// The title above a panel.
    pub(crate) fn title(self, extents: &[i64], panel: i64) -> String {
        if self.panels == 1 {
            return String::new();
        }
        let coordinate = flat_coordinate(extents.get(2..).unwrap_or(&[]), panel);
        format!("(_,_,{})", join(&coordinate))
    }
}
