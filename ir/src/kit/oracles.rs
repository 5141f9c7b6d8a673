//! Implements the fuzz targets that are about layouts and texts. The targets in `fuzz/` and the
//! tests of this crate call these functions.
//!
//! Each function takes any bytes and returns an error if something is wrong.
//! [`algebra_against_brute_force`] decodes the bytes to operands by `choices.rs`, so that mutations
//! yield valid operands; for some first bytes it decodes arbitrary numbers, for which a coded
//! refusal or an exact answer is correct. The other functions take the bytes as a text.

use super::bounds::Bounds;
use super::choices::{self, DigitChoice, LayoutChoice, LeafChoice, Style};
use super::error::{Demand, LawResult};
use super::plain::Plain;
use super::tiling::Tiling;
use super::{laws, like::Bits};
use crate::layout::{Layout, LayoutError, Tiler};
use crate::tuple::IntTuple;

/// Decodes choices from bytes; after the end it yields zeros.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl Reader<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        first
    }

    fn list<T>(&mut self, most: u8, item: impl Fn(&mut Self) -> T) -> Vec<T> {
        let n = self.byte() % (most + 1);
        (0..n).map(|_| item(self)).collect()
    }

    fn layout(&mut self) -> LayoutChoice {
        let leaves = self.list(6, |r| LeafChoice {
            extent: r.byte() % 16,
            order: r.byte() % 16,
            spread: r.byte() % 16,
        });
        LayoutChoice { leaves, nesting: self.list(3, |r| r.byte() % 24) }
    }

    fn digits(&mut self) -> DigitChoice {
        let cuts = self.list(3, |r| (r.byte() % 16, r.byte() % 16));
        let uses = self.list(7, |r| (r.byte() % 18, r.byte() % 16, r.byte() % 16));
        DigitChoice { cuts, uses, nesting: self.list(2, |r| r.byte() % 24) }
    }

    /// A number of any magnitude, often near a power of two.
    fn number(&mut self) -> i64 {
        let (kind, low) = (self.byte(), i64::from(self.byte()));
        match kind % 4 {
            0 => low,
            1 => low - 128,
            2 => (1i64 << (kind / 4)).saturating_sub(low - 128),
            _ => i64::from_le_bytes(std::array::from_fn(|_| self.byte())),
        }
    }

    /// A layout of arbitrary numbers, if they are a layout.
    fn hostile(&mut self) -> Result<Layout, LayoutError> {
        let leaves = self.list(5, |r| (r.number(), r.number()));
        let free = Bounds { rank: usize::MAX, depth: usize::MAX, ..Bounds::default() };
        let p = choices::nest(&leaves, &self.list(3, |r| r.byte()), &free);
        Layout::new(p.shape, p.stride)
    }
}

/// A defect that an oracle found.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OracleError {
    /// A law is broken.
    #[error(transparent)]
    Law(#[from] Box<super::LawError>),
    /// An operation returns a wrong value.
    #[error("{what} of {} and {} is {}, wrong at {at}", of[0], of[1], of[2])]
    Value {
        /// The operation.
        what: &'static str,
        /// The operand, the second operand or a placeholder, and the result.
        of: Box<[Layout; 3]>,
        /// The place of the wrong value.
        at: i64,
    },
    /// A printed layout parses to another one.
    #[error("`{0}` does not parse to itself")]
    NotItself(String),
    /// A layout without elements.
    #[error("`{of}` has size {size} and cosize {cosize}")]
    Size {
        /// The layout.
        of: String,
        /// Its size.
        size: i64,
        /// Its cosize.
        cosize: i64,
    },
    /// A coalesced layout that is not coalesced or has another size.
    #[error("`{of}` coalesces to `{to}`")]
    Coalesce {
        /// The layout.
        of: String,
        /// The coalesced layout.
        to: Box<Layout>,
    },
    /// An error whose place is outside of its text.
    #[cfg(feature = "text")]
    #[error("{0:?} lies outside the text")]
    Outside(Box<crate::diag::Diagnostic>),
    /// A printed text that does not parse.
    #[cfg(feature = "text")]
    #[error("printed text does not parse: {0:?}\n{1}")]
    NotParsed(crate::diag::Diagnostics, String),
    /// A printed text that parses to another module.
    #[cfg(feature = "text")]
    #[error("printed text is another module:\n{0}")]
    OtherModule(String),
    /// A printed text that is printed differently after parsing.
    #[cfg(feature = "text")]
    #[error("printed again, the text differs:\n{0}")]
    OtherText(String),
}

/// Applies an operation, chosen by the first byte, to operands chosen by the others. Valid operands
/// must give an exact answer, all others an exact answer or a refusal. No operands cause a panic.
///
/// # Errors
/// The violated law.
pub fn algebra_against_brute_force(bytes: &[u8]) -> Result<(), OracleError> {
    let mut r = Reader { bytes };
    let operation = r.byte();
    if operation >= 192 {
        return numbers_as_they_come(&mut r);
    }
    Ok(admissible(&mut r, operation % 40).map(drop)?)
}

fn admissible(r: &mut Reader<'_>, operation: u8) -> LawResult {
    let (b, b32, b64) = (&Bounds::from(512), &Bounds::from(32), &Bounds::from(64));
    type T = Layout;
    type Tile = fn(&Plain, &DigitChoice, &Bounds) -> Plain;
    let choice = r.layout();
    let styled = |style| choices::layout(&choice, style, b);
    let any = styled(Style::ANY);
    let small = choices::layout(&choice, Style::NESTED, b32);
    let by_mode = |r: &mut Reader<'_>, whole: &Plain, tile: Tile| {
        let digits = r.list(3, Reader::digits);
        choices::tiling_of(whole, &digits, |whole, choice| tile(whole, choice, b))
    };
    match operation {
        0 => laws::law_build::<T>(&any),
        1 => laws::law_eval::<T>(&any),
        2 => laws::law_eval_at::<T>(&any),
        3 => laws::law_coalesce::<T>(&any),
        4 => laws::law_filter::<T>(&any),
        5 => laws::law_flatten::<T>(&any),
        6 | 7 => {
            let inner = choices::inner_of(&any, &r.digits(), b);
            laws::law_composition::<T>(&any, &inner, Demand::Answer)
        }
        8 | 9 => {
            let other = choices::layout(&r.layout(), Style::ANY, b);
            laws::law_composition::<T>(&any, &other, Demand::ExactOrRefuse)
        }
        10 => {
            let whole = choices::with_modes(any);
            let tiling = by_mode(r, &whole, choices::inner_of);
            laws::law_composition_by_mode::<T>(&whole, &tiling)
        }
        11 => {
            let target = 1 + i64::from(r.byte()) * i64::from(r.byte() % 8);
            laws::law_complement::<T>(&styled(Style::NESTED), target, Demand::Answer)
        }
        12 => {
            let target = 1 + i64::from(r.byte()) * i64::from(r.byte() % 8);
            laws::law_complement::<T>(&any, target, Demand::ExactOrRefuse)
        }
        13 => laws::law_right_inverse::<T>(&any),
        14 => laws::law_left_inverse::<T>(&styled(Style::PADDED), Demand::Answer),
        15 => laws::law_left_inverse::<T>(&any, Demand::ExactOrRefuse),
        16 => {
            let tile = choices::tile_of(&any, &r.digits(), b);
            laws::law_logical_divide::<T>(&any, &Tiling::Layout(tile))
        }
        17 | 18 => {
            let whole = choices::with_modes(any);
            let tiling = by_mode(r, &whole, choices::tile_of);
            if operation == 17 {
                laws::law_logical_divide::<T>(&whole, &tiling)
            } else {
                laws::law_zipped_divide::<T>(&whole, &tiling)
            }
        }
        19 | 20 => {
            let top = r.layout();
            let tiler = choices::copies_of(&small, &top.leaves, &r.digits(), 1024, b);
            let tiling = Tiling::Layout(tiler);
            if operation == 19 {
                laws::law_logical_product::<T>(&small, &tiling)
            } else {
                laws::law_zipped_product::<T>(&small, &tiling)
            }
        }
        21 => {
            let shape = choices::shape_of(&any, &r.digits(), b).shape;
            laws::law_with_shape::<T>(&any, &shape)
        }
        22 => {
            let other = choices::layout(&r.layout(), Style::ANY, b64);
            laws::law_concat::<T>(&small, &other)
        }
        23 => laws::law_nullspace::<T>(&any),
        24 | 25 => {
            let whole = choices::with_modes(any);
            let tiling = by_mode(r, &whole, choices::tile_of);
            if operation == 24 {
                laws::law_tiled_divide::<T>(&whole, &tiling)
            } else {
                laws::law_flat_divide::<T>(&whole, &tiling)
            }
        }
        26..=29 => {
            let top = r.layout();
            let tiler = choices::copies_of(&small, &top.leaves, &r.digits(), 1024, b);
            match operation {
                26 => laws::law_tiled_product::<T>(&small, &Tiling::Layout(tiler)),
                27 => laws::law_flat_product::<T>(&small, &Tiling::Layout(tiler)),
                28 => laws::law_blocked_product::<T>(&small, &tiler),
                _ => laws::law_raked_product::<T>(&small, &tiler),
            }
        }
        30..=32 => {
            let large = styled(Style::NESTED);
            let n = 1i64 << (r.byte() % 4);
            match operation {
                30 => laws::law_upcast::<T>(&choices::parts_of(&large, n, 1, b), n),
                31 => laws::law_downcast::<T>(&choices::parts_of(&large, 1, 1, b), n),
                _ => laws::law_recast::<T>(&choices::parts_of(&large, n, n, b), 4, 4 * n),
            }
        }
        33 | 34 => {
            let other = choices::layout(&choice, Style::PERMUTED, b);
            let padded = styled(Style::PADDED);
            if operation == 33 {
                laws::law_max_common_layout::<T>(&padded, &other)
            } else {
                laws::law_max_common_vector::<T>(&padded, &other)
            }
        }
        35 | 36 => {
            let a = choices::with_modes(any);
            let coord = holes(r, &a.shape);
            if operation == 35 {
                laws::law_slice::<T>(&a, &coord)
            } else {
                laws::law_dice::<T>(&a, &coord)
            }
        }
        37 => {
            let a = choices::with_modes(any);
            let profile = IntTuple::Tuple(vec![IntTuple::Leaf(1); a.shape.rank()]);
            laws::law_coalesce_by::<T>(&a, &profile)
        }
        38 => {
            let a = choices::with_modes(any);
            let (begin, end) = (usize::from(r.byte()), usize::from(r.byte()));
            let rank = a.shape.rank();
            let begin = begin % (rank + 1);
            laws::law_group::<T>(&a, begin, begin + end % (rank - begin + 1))
        }
        _ => {
            let (bits, base) = (u32::from(r.byte() % 4), u32::from(r.byte() % 5));
            let swizzle = Bits { bits, base, shift: bits + u32::from(r.byte() % 4) };
            laws::law_swizzled_eval::<T>(swizzle, i64::from(r.byte()), &any)
        }
    }
}

/// A coordinate of the outermost modes with some holes.
fn holes(r: &mut Reader<'_>, shape: &IntTuple) -> IntTuple<Option<i64>> {
    let mut modes = vec![];
    for mode in shape.modes() {
        let pick = r.byte();
        let size = super::plain::size_of(mode).unwrap_or(1);
        let at = i64::from(pick / 2) % size;
        modes.push(IntTuple::Leaf((pick % 2 == 1).then_some(at)));
    }
    IntTuple::Tuple(modes)
}

/// Applies every operation to two layouts of arbitrary numbers: it must answer or refuse.
/// Compositions are compared at a few points, in 128 bits.
fn numbers_as_they_come(r: &mut Reader<'_>) -> Result<(), OracleError> {
    let (Ok(a), Ok(b)) = (r.hostile(), r.hostile()) else { return Ok(()) };
    let target = r.number();
    let points = [0, 1, 2, 3, b.size() / 2, b.size() - 1].map(|i| i.clamp(0, b.size() - 1));
    let show = |what: &'static str, c: &Layout, at: i64| {
        Err(OracleError::Value { what, of: Box::new([a.clone(), b.clone(), c.clone()]), at })
    };
    if let Ok(c) = a.compose(&b) {
        for i in points {
            let at = value(&b, i.into());
            if value(&c, i.into()) != value(&a, at) {
                return show("composition", &c, i);
            }
        }
    }
    for (c, what) in [(a.coalesce(), "coalesce"), (a.flatten(), "flatten")] {
        for i in points.map(|i| i % a.size()) {
            if value(&c, i.into()) != value(&a, i.into()) {
                return show(what, &c, i);
            }
        }
    }
    let inverse = a.right_inverse();
    for i in points.map(|i| i % inverse.size()) {
        if value(&a, value(&inverse, i.into())) != i.into() {
            return show("right inverse", &inverse, i);
        }
    }
    if let Ok(left) = a.left_inverse() {
        for i in points.map(|i| i128::from(i % a.size())) {
            if value(&a, value(&left, value(&a, i))) != value(&a, i) {
                return show("left inverse", &left, i as i64);
            }
        }
    }
    let _ = (a.filter_zeros(), a.complement(target), a.cosize(), a.is_bijective_onto(target));
    let _ = (a.logical_divide(&b), a.logical_product(&b), a.with_shape(b.shape()));
    let tiler = Tiler::Modes(vec![Tiler::from(&b), Tiler::Keep]);
    let _ = (a.zipped_divide(tiler.clone()), a.zipped_product(tiler), a.coord(target));
    let _ = (a.blocked_product(&b), a.raked_product(&b), a.tile_to_shape(&b.shape(), None));
    let _ = (a.max_common_layout(&b), a.recast(target, r.number()), a.max_alignment());
    let _ = (a.nullspace(), a.make_like(), a.flat_divide(&b), Layout::tv(&a, &b));
    let _ = (a.group(0, 1), Layout::concat(&[a.clone(), b.clone()]), a.at(target));
    Ok(())
}

/// The index of a coordinate; the last leaf continues.
fn value(a: &Layout, i: i128) -> i128 {
    let (shape, stride) = (a.shape().flatten(), a.stride().flatten());
    let (mut rest, mut index) = (i, 0i128);
    for (k, (&extent, &stride)) in shape.iter().zip(&stride).enumerate() {
        let last = k + 1 == shape.len();
        // Rounds towards zero: below zero, a layout is the mirror image.
        let digit = if last { rest } else { rest % i128::from(extent) };
        rest /= i128::from(extent);
        index = index.saturating_add(digit.saturating_mul(stride.into()));
    }
    index
}

/// A text must be refused, or be a layout that prints to an equal layout and that every operation
/// on one layout answers.
///
/// # Errors
/// The defect.
pub fn layout_text_never_panics(bytes: &[u8]) -> Result<(), OracleError> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Ok(()) };
    if let Ok(tuple) = text.parse::<IntTuple>()
        && tuple.to_string().parse().as_ref() != Ok(&tuple)
    {
        return Err(OracleError::NotItself(tuple.to_string()));
    }
    let Ok(a) = text.parse::<Layout>() else { return Ok(()) };
    let printed = a.to_string();
    if printed.parse().as_ref() != Ok(&a) {
        return Err(OracleError::NotItself(printed));
    }
    if a.size() < 1 || a.cosize() < 1 {
        return Err(OracleError::Size { of: printed, size: a.size(), cosize: a.cosize() });
    }
    let c = a.coalesce();
    if c.coalesce() != c || c.size() != a.size() {
        return Err(OracleError::Coalesce { of: printed, to: Box::new(c) });
    }
    let _ = (a.flatten(), a.filter_zeros(), a.right_inverse(), a.left_inverse(), a.complement(64));
    let _ = (a.at(a.size() - 1), a.coord(a.size() - 1), a.modes(), a.compose(&a));
    Ok(())
}

/// Every byte string must give a module, or errors whose places are within it.
///
/// # Errors
/// The error whose place is outside.
#[cfg(feature = "text")]
pub fn parse_never_panics(bytes: &[u8]) -> Result<(), OracleError> {
    let Err(errors) = crate::text::parse_bytes(bytes) else { return Ok(()) };
    let inside = |s: crate::span::Span| s.start <= s.end && s.end as usize <= bytes.len();
    match errors.iter().find(|e| !inside(e.span)) {
        Some(e) => Err(OracleError::Outside(Box::new(e.clone()))),
        None => Ok(()),
    }
}

/// A parsed module must print to a text that parses to an equal module and prints as itself.
///
/// # Errors
/// The difference.
#[cfg(feature = "text")]
pub fn print_parse_identity(bytes: &[u8]) -> Result<(), OracleError> {
    let Ok(module) = crate::text::parse_bytes(bytes) else { return Ok(()) };
    let printed = crate::text::print(&module);
    if printed.len() > crate::limits::MAX_TEXT_BYTES {
        return Ok(()); // Spaces can push a dense text over the limit.
    }
    match crate::text::parse(&printed) {
        Err(errors) => Err(OracleError::NotParsed(errors, printed)),
        Ok(again) if again != module => Err(OracleError::OtherModule(printed)),
        Ok(again) if crate::text::print(&again) != printed => Err(OracleError::OtherText(printed)),
        Ok(_) => Ok(()),
    }
}
