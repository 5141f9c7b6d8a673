//! Tests that the laws of the kit (`ir/src/kit`, which tests any implementation of layouts) find
//! bugs: each case breaks one operation of this crate's layouts, and a law about large layouts,
//! negative strides, symbolic strides or swizzles must fail. `kit_laws` tests that the laws hold
//! for correct operations.

use carbyne_ir::kit::ours::OverSymbols;
use carbyne_ir::kit::suite::{self, Settings, Verdict};
use carbyne_ir::kit::{Answer, Bits, LayoutLike, Plain, Symbolic, Tiling};
use carbyne_ir::layout::Layout;
use carbyne_ir::tuple::IntTuple;
use std::cell::Cell;

thread_local! {
    /// The broken operation. It is thread-local, because each law runs on one thread.
    static BENT: Cell<&'static str> = const { Cell::new("") };
}

fn is_bent(what: &str) -> bool {
    BENT.get() == what
}

fn to_i32(n: i64) -> i64 {
    i64::from(n as i32)
}

/// This crate's layouts with one broken operation, which computes in 32 bits or ignores the signs
/// of strides.
#[derive(Clone, Debug)]
struct Bent(Layout);

impl Bent {
    fn bend(name: &str, answer: Answer<Layout>) -> Answer<Bent> {
        let p = match answer {
            Answer::Got(layout) => layout.plain(),
            Answer::Refused(why) => return Answer::Refused(why),
            Answer::Unsupported => return Answer::Unsupported,
        };
        let stride = if is_bent(name) {
            p.stride.map(&mut |&s| to_i32(s))
        } else if BENT.get().strip_suffix(" without signs") == Some(name) {
            p.stride.map(&mut |s| s.abs())
        } else {
            p.stride
        };
        Answer::from(Layout::new(p.shape, stride)).map(Bent)
    }
}

impl LayoutLike for Bent {
    fn build(shape: &IntTuple, stride: &IntTuple) -> Answer<Self> {
        Bent::bend("build", LayoutLike::build(shape, stride))
    }
    fn shape(&self) -> IntTuple {
        self.0.shape()
    }
    fn stride(&self) -> IntTuple {
        self.0.stride()
    }
    fn eval(&self, i: i64) -> Answer<i64> {
        let index = self.0.at(i);
        Answer::Got(match BENT.get() {
            "eval" => to_i32(index),
            "eval without signs" => index.abs(),
            _ => index,
        })
    }
    fn eval_at(&self, coord: &IntTuple) -> Answer<i64> {
        Answer::from(self.0.at_coord(coord)).map(|index| match BENT.get() {
            "eval_at" => to_i32(index),
            "eval_at without signs" => index.abs(),
            _ => index,
        })
    }
    fn coalesce(&self) -> Answer<Self> {
        Bent::bend("coalesce", LayoutLike::coalesce(&self.0))
    }
    fn filter(&self) -> Answer<Self> {
        Bent::bend("filter", LayoutLike::filter(&self.0))
    }
    fn flatten(&self) -> Answer<Self> {
        Bent::bend("flatten", LayoutLike::flatten(&self.0))
    }
    fn composition(&self, inner: &Tiling<Self>) -> Answer<Self> {
        let Tiling::Layout(inner) = inner else { return Answer::Unsupported };
        let inner = Tiling::Layout(inner.0.clone());
        Bent::bend("composition", LayoutLike::composition(&self.0, &inner))
    }
    fn complement(&self, cotarget: i64) -> Answer<Self> {
        Bent::bend("complement", LayoutLike::complement(&self.0, cotarget))
    }
    fn right_inverse(&self) -> Answer<Self> {
        Bent::bend("right_inverse", LayoutLike::right_inverse(&self.0))
    }
    fn left_inverse(&self) -> Answer<Self> {
        Bent::bend("left_inverse", LayoutLike::left_inverse(&self.0))
    }
    fn logical_divide(&self, tiler: &Tiling<Self>) -> Answer<Self> {
        let Tiling::Layout(tile) = tiler else { return Answer::Unsupported };
        let tile = Tiling::Layout(tile.0.clone());
        Bent::bend("logical_divide", LayoutLike::logical_divide(&self.0, &tile))
    }
    fn logical_product(&self, tiler: &Tiling<Self>) -> Answer<Self> {
        let Tiling::Layout(tile) = tiler else { return Answer::Unsupported };
        let tile = Tiling::Layout(tile.0.clone());
        Bent::bend("logical_product", LayoutLike::logical_product(&self.0, &tile))
    }
    fn upcast(&self, n: i64) -> Answer<Self> {
        Bent::bend("cast", LayoutLike::upcast(&self.0, n))
    }
    fn downcast(&self, n: i64) -> Answer<Self> {
        Bent::bend("cast", LayoutLike::downcast(&self.0, n))
    }
    fn swizzle(swizzle: Bits, index: i64) -> Answer<i64> {
        match BENT.get() {
            "swizzle_involution" => <Layout as LayoutLike>::swizzle(swizzle, to_i32(index)),
            // This sets bits that it should flip.
            "swizzle_bijection" => {
                <Layout as LayoutLike>::swizzle(swizzle, index).map(|i| i | index)
            }
            _ => <Layout as LayoutLike>::swizzle(swizzle, index),
        }
    }
    fn swizzle_recast(swizzle: Bits, old_bits: u32, new_bits: u32) -> Answer<Bits> {
        if is_bent("swizzle_recast") {
            return Answer::Got(swizzle); // As if its fields counted bytes.
        }
        <Layout as LayoutLike>::swizzle_recast(swizzle, old_bits, new_bits)
    }
    fn swizzled_composition(
        &self,
        swizzle: Bits,
        offset: i64,
        inner: &Self,
        i: i64,
    ) -> Answer<i64> {
        if is_bent("swizzled_composition") {
            // This adds the offset after the swizzle.
            let moved = LayoutLike::swizzled_composition(&self.0, swizzle, 0, &inner.0, i);
            return moved.map(|index| index + offset);
        }
        LayoutLike::swizzled_composition(&self.0, swizzle, offset, &inner.0, i)
    }
    fn has_negative_strides() -> bool {
        true
    }
}

/// Layouts over symbols with one operation that substitutes numbers too early.
#[derive(Clone, Debug)]
struct Early {
    symbolic: Option<Symbolic>,
    layout: OverSymbols,
}

impl Early {
    /// The input of the operation.
    fn operand(&self, operation: &str) -> OverSymbols {
        match &self.symbolic {
            Some(symbolic) if is_bent(operation) => {
                let p = symbolic.at(&[]);
                match OverSymbols::build(&p.shape, &p.stride) {
                    Answer::Got(layout) => layout,
                    _ => self.layout.clone(),
                }
            }
            _ => self.layout.clone(),
        }
    }
}

fn known(layout: OverSymbols) -> Early {
    Early { symbolic: None, layout }
}

impl LayoutLike for Early {
    fn build(shape: &IntTuple, stride: &IntTuple) -> Answer<Self> {
        OverSymbols::build(shape, stride).map(known)
    }
    fn shape(&self) -> IntTuple {
        self.layout.shape()
    }
    fn stride(&self) -> IntTuple {
        self.layout.stride()
    }
    fn coalesce(&self) -> Answer<Self> {
        self.operand("coalesce_symbolic").coalesce().map(known)
    }
    fn flatten(&self) -> Answer<Self> {
        self.operand("flatten_symbolic").flatten().map(known)
    }
    fn composition(&self, inner: &Tiling<Self>) -> Answer<Self> {
        let Tiling::Layout(inner) = inner else { return Answer::Unsupported };
        let inner = Tiling::Layout(inner.layout.clone());
        self.operand("composition_symbolic").composition(&inner).map(known)
    }
    fn build_symbolic(symbolic: &Symbolic) -> Answer<Self> {
        OverSymbols::build_symbolic(symbolic).map(|layout| {
            let early = Early { symbolic: Some(symbolic.clone()), layout };
            Early { layout: early.operand("build_symbolic"), ..early }
        })
    }
    fn substitute(&self, values: &[i64]) -> Answer<Plain> {
        self.layout.substitute(values)
    }
}

/// The report of a law with the broken operation `what`.
fn fares<T: LayoutLike>(what: &'static str, law: &str) -> suite::Report {
    BENT.set(what);
    let laws = suite::laws::<T>();
    let law = laws.iter().find(|l| l.name == law).unwrap_or_else(|| panic!("no law `{law}`"));
    let report = law.run(Settings::from(1024));
    BENT.set("");
    report
}

#[test]
fn operations_in_32_bits_are_caught() {
    for operation in [
        "build",
        "eval",
        "eval_at",
        "coalesce",
        "filter",
        "flatten",
        "composition",
        "complement",
        "right_inverse",
        "left_inverse",
        "logical_divide",
        "logical_product",
        "cast",
    ] {
        let law = format!("{operation}_large");
        let report = fares::<Bent>(operation, &law);
        assert_eq!(report.verdict(), Verdict::Broken, "{report}");
        // The operands of these laws are too small to reveal a truncation.
        if operation != "cast" {
            let report = fares::<Bent>(operation, operation);
            assert_eq!(report.verdict(), Verdict::Holds, "{report}");
        }
        assert_eq!(fares::<Bent>("", &law).verdict(), Verdict::Holds);
    }
}

#[test]
fn what_breaks_in_32_bits_is_shown_small() {
    let report = fares::<Bent>("eval", "eval_large");
    let error = report.failure.and_then(|failure| failure.error).expect("an error");
    let a: Layout = error.inputs[0].1.parse().expect("a layout");
    assert!(a.leaves().len() <= 2 && a.cosize() > i64::from(i32::MAX), "{error}");
    assert!(error.found.starts_with('-') || error.found == "0", "{error}");
}

#[test]
fn forgotten_signs_are_caught() {
    let operations =
        ["build", "eval", "eval_at", "coalesce", "flatten", "composition", "logical_divide"];
    let bent = [
        "build without signs",
        "eval without signs",
        "eval_at without signs",
        "coalesce without signs",
        "flatten without signs",
        "composition without signs",
        "logical_divide without signs",
    ];
    for (operation, bent) in operations.into_iter().zip(bent) {
        let law = format!("{operation}_negative");
        let report = fares::<Bent>(bent, &law);
        assert_eq!(report.verdict(), Verdict::Broken, "{report}");
        assert_eq!(fares::<Bent>(bent, operation).verdict(), Verdict::Holds);
        assert_eq!(fares::<Bent>("", &law).verdict(), Verdict::Holds);
    }
}

#[test]
fn numbers_put_in_too_early_are_caught() {
    for law in ["build_symbolic", "coalesce_symbolic", "flatten_symbolic", "composition_symbolic"] {
        let report = fares::<Early>(law, law);
        assert_eq!(report.verdict(), Verdict::Broken, "{report}");
        let report = fares::<Early>("", law);
        assert_eq!((report.verdict(), report.refused), (Verdict::Holds, 0), "{report}");
    }
}

#[test]
fn wrong_swizzles_are_caught() {
    for law in ["swizzle_involution", "swizzle_bijection", "swizzle_recast", "swizzled_composition"]
    {
        let report = fares::<Bent>(law, law);
        assert_eq!(report.verdict(), Verdict::Broken, "{report}");
        assert_eq!(fares::<Bent>("", law).verdict(), Verdict::Holds);
    }
}
