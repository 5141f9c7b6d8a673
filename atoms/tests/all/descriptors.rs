//! Compares `wgmma`'s matrix descriptors with a model of addresses that is written from the PTX
//! ISA, and with examples of the PTX ISA. Other tests check suggested layouts, and the help of
//! refusals.
//!
//! The model follows the section "Asynchronous Warpgroup Level Matrix Shared Memory Layout" in its
//! own terms: a matrix normalized to elements of 128 bits, swizzle atoms of 8 rows or columns, two
//! offsets. It shares no code with the derivation, and uses no swizzle function: units move within
//! a swizzle atom as the figures of the section show.

use carbyne_atoms::descriptor::{MatrixRule, canonical, derive};
use carbyne_atoms::{Descriptor, DescriptorMismatch, Major, SwizzleMode};
use carbyne_ir::layout::{Layout, Swizzle};
use carbyne_ir::testing;
use proptest::prelude::*;
use std::cell::Cell;

const BOTH: &[Major] = &[Major::K, Major::Mn];

/// A tile of `mn` by `k` elements of `bits` bits, in the order of A or, with k first, of B.
#[derive(Copy, Clone, Debug)]
struct Tile {
    mn: i64,
    k: i64,
    bits: i64,
    k_first: bool,
}

impl Tile {
    fn new(mn: i64, bits: i64, k_first: bool) -> Self {
        Tile { mn, k: 256 / bits, bits, k_first }
    }

    fn rule(self) -> MatrixRule {
        MatrixRule { k_mode: usize::from(!self.k_first), majors: BOTH }
    }

    fn extents(self) -> [i64; 2] {
        if self.k_first { [self.k, self.mn] } else { [self.mn, self.k] }
    }

    fn derive(
        self,
        layout: &Layout,
        swizzle: Option<Swizzle>,
    ) -> Result<Descriptor, DescriptorMismatch> {
        derive(layout, swizzle, self.bits, &self.extents(), &self.rule())
    }

    fn index(self, mn: i64, k: i64) -> i64 {
        if self.k_first { k + self.k * mn } else { mn + self.mn * k }
    }
}

/// The byte address of an element according to the encoded fields.
fn address(bits: u64, major: Major, start: i64, tile: Tile, mn: i64, k: i64) -> i64 {
    let field = |low: u32| ((bits >> low & 0x3fff) << 4) as i64;
    let (leading, stride) = (field(16), field(32));
    let swizzle_bytes = match bits >> 62 {
        0 => 16,
        1 => 128,
        2 => 64,
        _ => 32,
    };
    let swizzled = swizzle_bytes > 16;
    // Elements of 128 bits: row, column, and the byte within the element.
    let t = 128 / tile.bits;
    let (row, column, byte) = match major {
        Major::K => (mn, k / t, k % t * tile.bits / 8),
        Major::Mn => (mn / t, k, mn % t * tile.bits / 8),
    };
    // Lines of a swizzle atom, and units of a line.
    let units = swizzle_bytes / 16;
    let (line, unit, atom) = match major {
        Major::K if swizzled => (row % 8, column, row / 8 * stride),
        Major::K => (row % 8, 0, row / 8 * stride + column * leading),
        Major::Mn if swizzled => {
            (column % 8, row % units, row / units * leading + column / 8 * stride)
        }
        Major::Mn => (column % 8, 0, column / 8 * leading + row * stride),
    };
    // The tile may begin within the first line of a swizzle atom.
    let period = if swizzled { 8 * swizzle_bytes } else { 16 };
    let (pattern, within) = (start / period * period, start % period / 16);
    assert!(start % 16 == 0 && within < units);
    let unit = unit + within;
    // Units are exchanged within a line of 128 bytes. Several narrower lines share one.
    let unit = unit ^ (line / (8 / units) % units);
    pattern + atom + line * swizzle_bytes + unit * 16 + byte
}

fn swizzle(mode: SwizzleMode) -> Option<Swizzle> {
    let bits = (mode.width() / 16).trailing_zeros();
    (bits > 0).then(|| Swizzle::new(bits, 4, 3).expect("a swizzle"))
}

/// Asserts that descriptor and layout give the same byte for every element.
fn names_the_same_bytes(
    tile: Tile,
    layout: &Layout,
    swizzle: Option<Swizzle>,
    found: &Descriptor,
    start: i64,
) {
    let swizzle = swizzle.unwrap_or_default();
    for mn in 0..tile.mn {
        for k in 0..tile.k {
            let offset = layout.at(tile.index(mn, k)) * tile.bits / 8;
            let want = swizzle.apply(start + offset);
            let got = address(found.bits(), found.major, start, tile, mn, k);
            assert_eq!(
                got, want,
                "({mn},{k}) of {tile:?} {layout} {swizzle} from {start}: {found:?}"
            );
        }
    }
}

/// A layout from leaves (extent, stride) along mn and along k.
fn layout(tile: Tile, mn: &[(i64, i64)], k: &[(i64, i64)]) -> Layout {
    let mode = |leaves: &[(i64, i64)]| {
        let list = |f: &dyn Fn(&(i64, i64)) -> i64| {
            leaves.iter().map(|l| f(l).to_string()).collect::<Vec<_>>().join(",")
        };
        (format!("({})", list(&|l| l.0)), format!("({})", list(&|l| l.1)))
    };
    let (mn, k) = (mode(mn), mode(k));
    let (a, b) = if tile.k_first { (k, mn) } else { (mn, k) };
    format!("({},{}):({},{})", a.0, b.0, a.1, b.1).parse().expect("a layout")
}

#[test]
fn every_canonical_layout_has_a_descriptor() {
    let mut n = 0;
    for (bits, k_first, mode) in [8, 16, 32]
        .into_iter()
        .flat_map(|b| [false, true].map(|f| (b, f)))
        .flat_map(|(b, f)| SwizzleMode::ALL.map(|m| (b, f, m)))
    {
        for groups in 1..=32 {
            let tile = Tile::new(8 * groups, bits, k_first);
            let (t, width) = (128 / bits, mode.width() * 8 / bits);
            for pad in [0, mode.period() * 8 / bits] {
                let group = 8 * width + pad;
                let along = if mode == SwizzleMode::None { group * groups + pad } else { t };
                let k_major = layout(tile, &[(8, width), (groups, group)], &[(t, 1), (2, along)]);
                let found = tile.derive(&k_major, swizzle(mode)).expect("K-major");
                assert_eq!((found.major, found.swizzle), (Major::K, mode));
                for unit in 0..mode.width() / 16 - i64::from(mode != SwizzleMode::None) {
                    let start = 3 * mode.period() + 16 * unit;
                    assert!(found.may_start_at(start));
                    names_the_same_bytes(tile, &k_major, swizzle(mode), &found, start);
                }
                // From the last unit of a line the tile would leave the line.
                let last = 3 * mode.period() + mode.width() - 16;
                assert_eq!(found.may_start_at(last), mode == SwizzleMode::None);
                let depth = [(8, width), (tile.k / 8, group)];
                if tile.mn % width != 0 {
                    let found = tile.derive(&layout(tile, &[(tile.mn, 1)], &depth), swizzle(mode));
                    assert!(matches!(found, Err(DescriptorMismatch::Partial { .. })), "{found:?}");
                    continue;
                }
                let mn = [(width, 1), (tile.mn / width, group * tile.k / 8)];
                let mn_major = layout(tile, &mn, &depth);
                let found = tile.derive(&mn_major, swizzle(mode)).expect("MN-major");
                assert_eq!((found.major, found.swizzle), (Major::Mn, mode));
                names_the_same_bytes(tile, &mn_major, swizzle(mode), &found, mode.period());
                assert!(!found.may_start_at(mode.period() + 8));
                assert!(
                    !found.may_start_at(mode.period() + mode.width()) || mode == SwizzleMode::None
                );
                n += 1;
            }
        }
    }
    assert!(n > 500, "{n} layouts");
}

#[test]
fn the_examples_of_the_isa() {
    // Exact layout, bits, swizzle; major, LBO and SBO as encoded.
    for (text, bits, mode, major, leading, stride) in [
        ("((8,2),(4,2)):((4,32),(1,64))", 32, SwizzleMode::None, Major::K, 16, 8),
        ("((8,2),(4,2)):((8,64),(1,4))", 32, SwizzleMode::B32, Major::K, 1, 16),
        ("((8,1,2),(8,2)):((1,8,64),(8,128))", 16, SwizzleMode::None, Major::Mn, 16, 8),
        ("((8,2,2),(8,2)):((1,8,128),(16,256))", 16, SwizzleMode::B32, Major::Mn, 16, 32),
        ("((8,4,2),(8,2)):((1,8,256),(32,512))", 16, SwizzleMode::B64, Major::Mn, 32, 64),
    ] {
        let exact: Layout = text.parse().expect("a layout");
        let tile = Tile::new(exact.mode(0).expect("two modes").size(), bits, false);
        let found = tile.derive(&exact, swizzle(mode)).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!((found.major, found.swizzle), (major, mode), "{text}");
        assert_eq!((found.leading >> 4, found.stride >> 4), (leading, stride), "{text}");
    }
    // Rows of 64 f16 with the 128B swizzle, the most common tile of Hopper kernels.
    let tile = Tile::new(64, 16, false);
    let found =
        tile.derive(&"((8,8),16):((64,512),1)".parse().unwrap(), swizzle(SwizzleMode::B128));
    assert_eq!(found.unwrap().bits(), 1 << 16 | 64 << 32 | 1 << 62);
}

/// Suggested layouts have descriptors.
#[test]
fn suggested_layouts_have_descriptors() {
    for (bits, k_first, mode) in [8, 16, 32]
        .into_iter()
        .flat_map(|b| [false, true].map(|f| (b, f)))
        .flat_map(|(b, f)| SwizzleMode::ALL.map(|m| (b, f, m)))
    {
        for (groups, major) in (1..=32).flat_map(|g| [(g, Major::K), (g, Major::Mn)]) {
            let tile = Tile::new(8 * groups, bits, k_first);
            if tile.mn % (128 / bits) != 0 {
                continue;
            }
            let one = canonical(&tile.extents(), bits, &tile.rule(), major, mode).expect("a tile");
            let told = one.mode;
            let found =
                tile.derive(&one.layout, swizzle(told)).unwrap_or_else(|e| panic!("{one}: {e}"));
            assert_eq!((found.major, found.swizzle), (major, told), "{one}");
            assert!(told == mode || (major == Major::Mn && told.width() < mode.width()), "{one}");
        }
    }
}

/// Errors state the reason and a fix.
#[test]
fn refusals_say_what_to_change() {
    let tile = Tile::new(64, 16, false);
    let sw = |b, m, s| Some(Swizzle::new(b, m, s).unwrap());
    let k_only = MatrixRule { k_mode: 1, majors: &[Major::K] };
    let refuse = |text: &str, swizzle, rule: &MatrixRule| {
        let e = derive(&text.parse().unwrap(), swizzle, 16, &tile.extents(), rule).unwrap_err();
        format!("{e}; {}", e.help())
    };
    let both = tile.rule();
    for (text, swizzle, rule, message) in [
        (
            "(64,16):(64,1)",
            None,
            &both,
            "rows of 128 bytes need 128B swizzle, but the tensor has no swizzle; allocate the \
             tensor with `swizzle=(3,4,3)`",
        ),
        (
            "(64,16):(64,1)",
            sw(3, 4, 4),
            &both,
            "descriptors do not support the swizzle (3,4,4); use `swizzle=(3,4,3)`, `(2,4,3)`, \
             `(1,4,3)`, or no swizzle",
        ),
        (
            "(64,16):(128,1)",
            sw(3, 4, 3),
            &both,
            "the distance of rows is 256 bytes, but 128 in a K-major tile with 128B swizzle; \
             change the layout of the tile to `((8,8),16):((64,512),1)` with `swizzle=(3,4,3)`",
        ),
        (
            "(64,16):(1,64)",
            sw(3, 4, 3),
            &k_only,
            "the instruction does not take MN-major tiles; store the operand with consecutive \
             elements along k",
        ),
        (
            "(64,16):(2,128)",
            None,
            &both,
            "a descriptor needs 8 consecutive elements along k, m or n, found `(64,16):(2,128)`; \
             change the layout of the tile to `((8,8),(8,2)):((8,64),(1,512))` with no swizzle",
        ),
        (
            "((8,8),16):((64,520),1)",
            sw(3, 4, 3),
            &both,
            "the stride byte offset is 1040, but must be a multiple of 1024 up to 262128; make \
             the offset a multiple of 1024 bytes, at most 262128",
        ),
        (
            "((8,2,4),16):((64,512,2048),1)",
            sw(3, 4, 3),
            &both,
            "the layout differs from a K-major tile with 128B swizzle at element (16,0) along mn \
             and k; change the layout of the tile to `((8,8),16):((64,512),1)` with \
             `swizzle=(3,4,3)`",
        ),
        (
            "(32,16):(64,1)",
            sw(3, 4, 3),
            &both,
            "the descriptor needs a view of 64x16 elements, found `(32,16):(64,1)`; give the \
             instruction a view of 64x16 elements with a constant layout",
        ),
    ] {
        assert_eq!(refuse(text, swizzle, rule), message, "{text}");
    }
    let narrow = Tile::new(96, 16, false);
    let e = narrow.derive(&"(96,16):(1,64)".parse().unwrap(), sw(3, 4, 3)).unwrap_err();
    let want = "96 elements do not fill rows of 64 elements; allocate the tensor with \
                `swizzle=(2,4,3)`, in rows of 64 bytes";
    assert_eq!(format!("{e}; {}", e.help()), want);
}

/// Layouts with two leaves along mn and two along k, which follow each other in some order, with
/// gaps.
fn layouts() -> impl Strategy<Value = (Tile, Layout, Option<Swizzle>, i64)> {
    let swizzles = [(0, 4, 3), (1, 4, 3), (2, 4, 3), (3, 4, 3), (3, 4, 3), (3, 4, 4)];
    let swizzle = prop::sample::select(swizzles.to_vec())
        .prop_map(|(b, m, s)| (b > 0).then(|| Swizzle::new(b, m, s).expect("a swizzle")));
    let bits = prop::sample::select(vec![8, 16, 32]);
    let groups = prop_oneof![1..=32i64, prop::sample::select(vec![8, 16, 32])];
    let gaps = prop::array::uniform3(prop::sample::select(vec![1, 1, 1, 2, 4]));
    let along = (any::<bool>(), 0..6usize, prop::sample::select(vec![8, 16, 32, 64]));
    (groups, bits, any::<bool>(), swizzle, along, gaps, 0..128i64).prop_map(
        |(groups, bits, k_first, swizzle, (along_k, order, c), gaps, start)| {
            let tile = Tile::new(8 * groups, bits, k_first);
            // Extents of leaves. The innermost two are T consecutive elements along k and 8 along
            // mn, or vice versa.
            let c = if along_k || tile.mn % c != 0 { 8 } else { c };
            let d = if along_k { 128 / bits } else { 8 };
            let extents = [c, tile.mn / c, d, tile.k / d];
            let inner = if along_k { 2 } else { 0 };
            let mut rest: Vec<usize> = (0..4).filter(|i| *i != inner).collect();
            let first = rest.remove(order % 3);
            rest.insert(order / 3, first);
            let (mut strides, mut next) = ([0; 4], extents[inner]);
            strides[inner] = 1;
            for (leaf, gap) in rest.into_iter().zip(gaps) {
                next *= gap;
                strides[leaf] = next;
                next *= extents[leaf];
            }
            let leaf = |i: usize| (extents[i], strides[i]);
            (tile, layout(tile, &[leaf(0), leaf(1)], &[leaf(2), leaf(3)]), swizzle, 16 * start)
        },
    )
}

#[test]
fn descriptors_give_the_bytes_of_their_layouts() {
    // Numbers of refused, K-major and MN-major layouts.
    let counts = [const { Cell::new(0) }; 3];
    let mut runner = testing::runner(testing::config(1 << 14));
    let done = runner.run(&layouts(), |(tile, layout, swizzle, start)| {
        let Ok(found) = tile.derive(&layout, swizzle) else {
            counts[0].update(|n| n + 1);
            return Ok(());
        };
        let period = found.swizzle.period();
        let start = if found.may_start_at(start) { start } else { start / period * period };
        names_the_same_bytes(tile, &layout, swizzle, &found, start);
        counts[if found.major == Major::K { 1 } else { 2 }].update(|n| n + 1);
        Ok(())
    });
    done.unwrap_or_else(|e| panic!("{e}"));
    // The strategy generates enough of each.
    assert!(counts.iter().all(|n| n.get() > 200), "{counts:?}");
}
