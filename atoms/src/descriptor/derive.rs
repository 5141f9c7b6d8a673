//! Derives the fields of `wgmma`'s matrix descriptor from the layout of a tile in shared memory
//! ([`derive`]), and makes the densest layout that a descriptor can describe, which messages
//! suggest ([`canonical`]).
//!
//! The distances between a few elements determine the only possible descriptor. The formulas in the
//! header of [`super`] then check it element by element.

use super::DescriptorMismatch;
use super::matrix::{Descriptor, MAX_OFFSET, Major, MatrixRule, ROWS, SwizzleMode, UNIT};
use carbyne_ir::layout::{Layout, Swizzle};
use carbyne_ir::tuple::IntTuple;
use std::fmt;

/// The descriptor of a layout. `layout` maps the column-major index over the modes of `tile` to an
/// offset in elements of `bits` bits. `swizzle` is that of the buffer, on byte addresses.
///
/// # Errors
/// The nearest canonical layout, and the first difference from it.
pub fn derive(
    layout: &Layout,
    swizzle: Option<Swizzle>,
    bits: i64,
    tile: &[i64],
    rule: &MatrixRule,
) -> Result<Descriptor, DescriptorMismatch> {
    let shape = || DescriptorMismatch::Shape {
        want: tile.iter().map(i64::to_string).collect::<Vec<_>>().join("x"),
        found: layout.to_string(),
    };
    let extents = Extents::new(tile, bits, rule).filter(|e| layout.size() == e.mn * e.k);
    let view = View { layout, extents: extents.ok_or_else(shape)? };
    let Some(mode) = SwizzleMode::from_swizzle(swizzle) else {
        let found = swizzle.unwrap_or_default();
        let found = format!("({},{},{})", found.bits(), found.base(), found.shift());
        return Err(DescriptorMismatch::Swizzle { found });
    };
    let major = match (view.at(0, 1), view.at(1, 0)) {
        (1, _) => Major::K,
        (_, 1) => Major::Mn,
        _ => {
            let major = rule.majors.first().copied().unwrap_or(Major::K);
            return Err(DescriptorMismatch::Scattered {
                vector: view.extents.vector,
                found: layout.to_string(),
                canonical: view.extents.advice(major, mode),
            });
        }
    };
    if !rule.majors.contains(&major) {
        return Err(DescriptorMismatch::Major { found: major });
    }
    match major {
        Major::K => view.k_major(mode),
        Major::Mn => view.mn_major(mode),
    }
}

/// The densest layout of a tile with this major and mode that a descriptor can describe. If an
/// MN-major tile does not fill rows of this width, the layout has the widest mode whose rows the
/// tile fills. `None` if no descriptor can describe such a tile.
pub fn canonical(
    tile: &[i64],
    bits: i64,
    rule: &MatrixRule,
    major: Major,
    mode: SwizzleMode,
) -> Option<Canonical> {
    Extents::new(tile, bits, rule)?.canonical(major, mode)
}

/// A layout that a descriptor can describe. Messages show it as `` `((8,8),16):((64,512),1)` with
/// `swizzle=(3,4,3)` ``.
#[derive(Clone, Debug, PartialEq)]
pub struct Canonical {
    /// Offsets are in elements.
    pub layout: Layout,
    /// The swizzle that the tensor needs.
    pub mode: SwizzleMode,
}

impl fmt::Display for Canonical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` with {}", self.layout, self.mode.attribute())
    }
}

/// The extents of a tile, in elements.
#[derive(Copy, Clone)]
struct Extents {
    mn: i64,
    k: i64,
    /// Elements of one 16-byte unit.
    vector: i64,
    /// Bytes of one element.
    size: i64,
    /// Whether k is the first mode of the tile.
    k_first: bool,
}

/// A tile in memory.
struct View<'a> {
    layout: &'a Layout,
    extents: Extents,
}

impl Extents {
    /// The extents of a tile with whole units along k and whole groups of rows along mn. `None` for
    /// other tiles.
    fn new(tile: &[i64], bits: i64, rule: &MatrixRule) -> Option<Self> {
        let &[first, second] = tile else { return None };
        let k_first = rule.k_mode == 0;
        let (mn, k) = if k_first { (second, first) } else { (first, second) };
        let (vector, size) = match bits {
            8 | 16 | 32 | 64 => (UNIT * 8 / bits, bits / 8),
            _ => return None,
        };
        let small = (1..=MAX_OFFSET).contains(&mn) && (1..=MAX_OFFSET).contains(&k);
        let whole = small && mn % ROWS == 0 && k % vector == 0;
        whole.then_some(Extents { mn, k, vector, size, k_first })
    }

    /// The widest mode up to `mode` whose rows the tile fills along mn.
    fn filled(&self, mode: SwizzleMode) -> SwizzleMode {
        let fills = |m: &SwizzleMode| {
            m.width() <= mode.width() && self.mn % (m.width() / self.size).max(1) == 0
        };
        SwizzleMode::ALL.into_iter().rev().find(fills).unwrap_or(SwizzleMode::None)
    }

    /// The layout that a message suggests.
    fn advice(&self, major: Major, mode: SwizzleMode) -> String {
        self.canonical(major, mode).map(|c| c.to_string()).unwrap_or_default()
    }

    /// The densest canonical layout of the tile, in elements.
    fn canonical(&self, major: Major, mode: SwizzleMode) -> Option<Canonical> {
        let mode = if major == Major::Mn { self.filled(mode) } else { mode };
        let (rows, vector, groups) = (mode.width() / self.size, self.vector, self.mn / ROWS);
        let pair = |a: i64, b: i64| IntTuple::from(vec![a, b]);
        let one = IntTuple::Leaf;
        let (mn, k) = match (major, mode) {
            (Major::K, SwizzleMode::None) => (
                (pair(8, groups), pair(vector, vector * ROWS)),
                (pair(vector, self.k / vector), pair(1, vector * self.mn)),
            ),
            (Major::K, _) => ((pair(8, groups), pair(rows, rows * ROWS)), (one(self.k), one(1))),
            (Major::Mn, _) => {
                ((pair(rows, self.mn / rows), pair(1, rows * self.k)), (one(self.k), one(rows)))
            }
        };
        let ((s, d), (t, e)) = if self.k_first { (k, mn) } else { (mn, k) };
        let layout = Layout::new(vec![s, t], vec![d, e]).ok()?;
        Some(Canonical { layout, mode })
    }
}

impl View<'_> {
    /// The offset of an element, in elements.
    fn at(&self, mn: i64, k: i64) -> i64 {
        let Extents { mn: rows, k: columns, k_first, .. } = self.extents;
        let index = if k_first { k + columns * mn } else { mn + rows * k };
        self.layout.at(index)
    }

    /// The offset of an element, in bytes.
    fn byte(&self, mn: i64, k: i64) -> i64 {
        self.at(mn, k).saturating_mul(self.extents.size)
    }

    fn k_major(&self, mode: SwizzleMode) -> Result<Descriptor, DescriptorMismatch> {
        let row = self.byte(1, 0);
        let of = self.extents;
        let group = if of.mn > ROWS { self.byte(ROWS, 0) } else { 0 };
        let unit = if of.k > of.vector { self.byte(0, of.vector) } else { UNIT };
        self.rows_fit(Major::K, mode, row)?;
        if mode != SwizzleMode::None && unit != UNIT {
            return Err(self.stride(Major::K, mode, "16-byte units along k", UNIT, unit));
        }
        let leading = if mode == SwizzleMode::None { field("leading", unit, UNIT)? } else { UNIT };
        let stride = field("stride", group, mode.period())?;
        self.regular(Major::K, mode, |mn, k| {
            row * (mn % ROWS)
                + group * (mn / ROWS)
                + unit * (k / of.vector)
                + of.size * (k % of.vector)
        })?;
        Ok(Descriptor { major: Major::K, swizzle: mode, leading, stride })
    }

    fn mn_major(&self, mode: SwizzleMode) -> Result<Descriptor, DescriptorMismatch> {
        let of = self.extents;
        let c = mode.width() / of.size;
        let row = self.byte(0, 1);
        let group = if of.k > ROWS { self.byte(0, ROWS) } else { 0 };
        self.rows_fit(Major::Mn, mode, row)?;
        if of.mn % c != 0 {
            let fits = of.filled(mode);
            return Err(DescriptorMismatch::Partial { extent: of.mn, row: c, fits });
        }
        let along = if of.mn > c { self.byte(c, 0) } else { 0 };
        let (leading, stride) =
            if mode == SwizzleMode::None { (group, along) } else { (along, group) };
        let leading = field("leading", leading, mode.period())?;
        let stride = field("stride", stride, mode.period())?;
        self.regular(Major::Mn, mode, |mn, k| {
            of.size * (mn % c) + along * (mn / c) + row * (k % ROWS) + group * (k / ROWS)
        })?;
        Ok(Descriptor { major: Major::Mn, swizzle: mode, leading, stride })
    }

    /// Checks that the distance of rows is the width of the mode.
    fn rows_fit(
        &self,
        major: Major,
        mode: SwizzleMode,
        found: i64,
    ) -> Result<(), DescriptorMismatch> {
        if found == mode.width() {
            return Ok(());
        }
        if let Some(want) = SwizzleMode::ALL.into_iter().find(|m| m.width() == found) {
            return Err(DescriptorMismatch::OtherMode { want, found: mode });
        }
        // Wide rows without a swizzle are nearest to rows of the widest mode.
        let nearest = match (mode, major) {
            (SwizzleMode::None, Major::K) => SwizzleMode::B128,
            (SwizzleMode::None, Major::Mn) => self.extents.filled(SwizzleMode::B128),
            _ => mode,
        };
        Err(self.stride(major, nearest, "rows", nearest.width(), found))
    }

    fn stride(
        &self,
        major: Major,
        mode: SwizzleMode,
        what: &'static str,
        want: i64,
        found: i64,
    ) -> DescriptorMismatch {
        let canonical = self.extents.advice(major, mode);
        DescriptorMismatch::Stride { what, nearest: (major, mode), want, found, canonical }
    }

    /// Checks that every element is at the offset that the formula gives.
    fn regular(
        &self,
        major: Major,
        mode: SwizzleMode,
        formula: impl Fn(i64, i64) -> i64,
    ) -> Result<(), DescriptorMismatch> {
        for k in 0..self.extents.k {
            for mn in 0..self.extents.mn {
                if self.byte(mn, k) != formula(mn, k) {
                    let canonical = self.extents.advice(major, mode);
                    let (at, nearest) = ((mn, k), (major, mode));
                    return Err(DescriptorMismatch::Irregular { at, nearest, canonical });
                }
            }
        }
        Ok(())
    }
}

/// Checks that a field can hold the offset.
fn field(field: &'static str, found: i64, multiple: i64) -> Result<i64, DescriptorMismatch> {
    if (0..=MAX_OFFSET).contains(&found) && found % multiple == 0 {
        return Ok(found);
    }
    Err(DescriptorMismatch::Field { field, found, multiple })
}
