//! Tests the settings of the kit (the choice of laws, bounds of operands, files for seeds of
//! failures), and its reports about operations that a library does not have.

use carbyne_ir::kit::suite::{self, Settings, UnknownLaw, Verdict};
use carbyne_ir::kit::{Answer, Bounds, LayoutLike, Plain, strategies as s};
use carbyne_ir::layout::Layout;
use carbyne_ir::tuple::IntTuple;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::sync::atomic::{AtomicU32, Ordering};

/// Layouts of up to two modes without nesting; they support evaluation only.
#[derive(Clone, Debug)]
struct Matrix(Plain);

/// The number of evaluations of a matrix.
static EVALUATED: AtomicU32 = AtomicU32::new(0);

impl LayoutLike for Matrix {
    fn build(shape: &IntTuple, stride: &IntTuple) -> Answer<Self> {
        if shape.depth() > 1 || shape.rank() > 2 {
            return Answer::Unsupported;
        }
        Answer::Got(Matrix(Plain::new(shape.clone(), stride.clone())))
    }
    fn shape(&self) -> IntTuple {
        self.0.shape.clone()
    }
    fn stride(&self) -> IntTuple {
        self.0.stride.clone()
    }
    fn eval(&self, i: i64) -> Answer<i64> {
        EVALUATED.fetch_add(1, Ordering::Relaxed);
        Answer::Got(self.0.index(i).unwrap_or(-1))
    }
}

/// Odd bounds, so that the test notices if they are ignored.
fn bounds() -> Bounds {
    Bounds { rank: 2, depth: 1, extents: 3..=7, size: 49 }
}

fn settings() -> Settings {
    Settings { cases: 300, bounds: bounds(), ..Settings::default() }
}

mod by_macro {
    use carbyne_ir::kit::{Bounds, layout_laws};
    use carbyne_ir::layout::Layout;

    mod chosen {
        use super::*;
        layout_laws!(
            Layout,
            only = [eval, composition],
            cases = 64,
            regressions = "tests/regressions"
        );
    }
    mod others {
        use super::*;
        layout_laws!(
            Layout,
            cases = 64,
            except = [eval, composition],
            bounds = Bounds { rank: 3, depth: 2, extents: 2..=9, size: 500 },
        );
    }
}

/// The largest bounds for which results of two operands can be enumerated.
#[test]
fn laws_hold_of_the_largest_operands() {
    let bounds = Bounds { rank: 10, depth: 4, extents: 1..=200, size: i64::MAX };
    let settings = Settings { cases: 200, bounds, ..Settings::default() };
    let summary = suite::run::<Layout>(&settings).expect("laws");
    assert!(summary.with(Verdict::Broken).next().is_none(), "{summary}");
}

#[test]
fn laws_are_chosen_by_name() {
    let names = |settings: Settings| {
        let summary = suite::run::<Layout>(&Settings { cases: 1, ..settings })?;
        Ok::<_, UnknownLaw>(summary.reports.iter().map(|report| report.law).collect::<Vec<_>>())
    };
    let only = Some(vec!["slice".to_owned(), "eval".to_owned()]);
    assert_eq!(names(Settings { only, ..settings() }), Ok(vec!["eval", "slice"]));
    let all = names(settings()).expect("all laws");
    let except = vec!["eval".to_owned()];
    let others = names(Settings { except, ..settings() }).expect("all but one");
    assert_eq!(others.len() + 1, all.len());
    assert!(!others.contains(&"eval") && all.contains(&"eval"));
    let unknown = names(Settings { except: vec!["evil".to_owned()], ..settings() });
    let why = unknown.expect_err("no such law");
    assert!(
        why.to_string().starts_with("there is no law `evil`; the laws are build, eval, "),
        "{why}"
    );
}

#[test]
fn what_is_not_implemented_neither_holds_nor_fails() {
    let summary = suite::run::<Matrix>(&settings());
    let summary = summary.expect("laws with these names");
    let held: Vec<_> = summary.with(Verdict::Holds).map(|report| report.law).collect();
    assert_eq!(held, ["build", "eval", "build_large", "eval_large"], "{summary}");
    assert!(summary.with(Verdict::Broken).next().is_none(), "{summary}");
    // All operands within the bounds are matrices.
    let built = summary.reports.iter().find(|report| report.law == "build");
    assert_eq!(built.map(|report| report.held), Some(300));
    let text = summary.to_string();
    let missing = text.lines().find(|line| line.starts_with("  not implemented, so not asked: "));
    let missing = missing.expect("a line on what is not implemented");
    for law in ["composition", "slice", "swizzle", "build_negative", "build_symbolic"] {
        assert!(missing.contains(law), "{text}");
    }
    assert!(EVALUATED.load(Ordering::Relaxed) > 300);
}

#[test]
fn operands_keep_to_their_bounds() {
    let mut runner = TestRunner::deterministic();
    let choices = [
        bounds(),
        Bounds { rank: 3, depth: 2, extents: 2..=100, size: 1000 },
        Bounds { rank: 1, depth: 0, extents: 5..=5, size: 30 },
        Bounds { rank: 12, depth: 1, extents: 1..=2, size: 1 << 40 },
        Bounds { rank: 0, depth: 9, extents: std::ops::RangeInclusive::new(9, 2), size: -1 },
    ];
    for bounds in choices {
        let (low, high) = (*bounds.extents.start(), *bounds.extents.end());
        let within = |p: &Plain, extents: bool| {
            let (rank, depth) = (bounds.rank.max(1), bounds.depth.max(usize::from(!extents)));
            assert!(p.shape.rank() <= rank && p.shape.depth() <= depth, "{p} for {bounds:?}");
            assert!(p.size().is_some_and(|n| n <= bounds.size.max(1)), "{p} for {bounds:?}");
            let fits = |e: i64| e == 1 || (low..=high).contains(&e) || !extents;
            assert!(p.leaves().iter().all(|leaf| fits(leaf.0)), "{p} for {bounds:?}");
        };
        for _ in 0..300 {
            within(&s::layout(&bounds).new_tree(&mut runner).unwrap().current(), true);
            let (a, b) = s::composition(&bounds).new_tree(&mut runner).unwrap().current();
            within(&a, true);
            assert!(b.shape.rank() <= bounds.rank.max(1) && b.shape.depth() <= bounds.depth);
        }
    }
    let wide = Bounds { rank: 12, depth: 1, extents: 2..=2, size: 1024 };
    let deep = |a: Plain| a.shape.rank();
    let ranks = (0..300).map(|_| deep(s::layout(&wide).new_tree(&mut runner).unwrap().current()));
    assert!(ranks.max().is_some_and(|rank| rank >= 8));
}

#[test]
fn large_layouts_exceed_31_and_32_bits() {
    let mut runner = TestRunner::deterministic();
    let (mut reach, mut size, mut extent) = ([0; 2], [0; 2], [0; 2]);
    for _ in 0..1000 {
        let a = s::large(192).new_tree(&mut runner).unwrap().current();
        let total = a.total().expect("a size of less than 2^63");
        assert!(a.cosize() <= 1 << 61 && total <= 1 << 61, "{a}");
        let most = a.leaves().iter().map(|leaf| leaf.0).max().unwrap_or(1);
        for (k, bits) in [31, 32].into_iter().enumerate() {
            reach[k] += i32::from(a.cosize() > 1 << bits);
            size[k] += i32::from(total > 1 << bits);
            extent[k] += i32::from(most > 1 << bits);
        }
    }
    assert!(reach.iter().all(|n| *n > 500), "{reach:?}");
    assert!(size.iter().all(|n| *n > 250), "{size:?}");
    assert!(extent.iter().all(|n| *n > 100), "{extent:?}");
}

/// Layouts that are wrong for exactly one size, which a variable contains.
#[derive(Clone, Debug)]
struct Fickle(Plain);

/// The wrong size, and the number of layouts built.
static WRONG: AtomicU32 = AtomicU32::new(0);
static BUILT: AtomicU32 = AtomicU32::new(0);

impl LayoutLike for Fickle {
    fn build(shape: &IntTuple, stride: &IntTuple) -> Answer<Self> {
        BUILT.fetch_add(1, Ordering::Relaxed);
        Answer::Got(Fickle(Plain::new(shape.clone(), stride.clone())))
    }
    fn shape(&self) -> IntTuple {
        self.0.shape.clone()
    }
    fn stride(&self) -> IntTuple {
        self.0.stride.clone()
    }
    fn flatten(&self) -> Answer<Self> {
        if self.0.size() == Some(WRONG.load(Ordering::Relaxed).into()) {
            return Answer::Refused("this size".to_owned());
        }
        Answer::Got(Fickle(Plain::flat(&self.0.leaves())))
    }
}

#[test]
fn seeds_of_failures_are_kept_and_read_back() {
    let folder = std::env::temp_dir().join(format!("carbyne-kit-{}", std::process::id()));
    let settings = Settings {
        cases: 2000,
        only: Some(vec!["flatten".to_owned()]),
        regressions: Some(folder.clone()),
        ..Settings::default()
    };
    let run = |settings: &Settings| suite::run::<Fickle>(settings).expect("a law of this name");
    // Fewer than one in a hundred operands have this size.
    WRONG.store(70, Ordering::Relaxed);
    let summary = run(&settings);
    assert_eq!(summary.reports[0].verdict(), Verdict::Broken, "{summary}");
    let file = folder.join("flatten.txt");
    let text = std::fs::read_to_string(&file).expect("a file of seeds");
    assert!(text.lines().any(|line| line.starts_with("cc ")), "{text}");
    // A single case does not find it, but the kept seed does.
    let few = Settings { cases: 1, ..settings };
    assert_eq!(run(&few).reports[0].verdict(), Verdict::Broken);
    let unaided = Settings { regressions: None, ..few.clone() };
    assert_eq!(run(&unaided).reports[0].verdict(), Verdict::Holds);
    // After the repair the law holds, and the kept seed is tried again: one more operand than
    // without it.
    WRONG.store(0, Ordering::Relaxed);
    let built = |settings: &Settings| {
        let before = BUILT.load(Ordering::Relaxed);
        assert_eq!(run(settings).reports[0].verdict(), Verdict::Holds);
        BUILT.load(Ordering::Relaxed) - before
    };
    assert_eq!((built(&few), built(&unaided)), (2, 1));
    std::fs::remove_dir_all(&folder).expect("the folder of this test");
}
