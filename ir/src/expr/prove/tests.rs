//! Tests of the prover: examples it must prove, and comparisons of its answers with enumeration.

use super::*;
use crate::expr::VarInfo;
use crate::layout::LayoutError;
use crate::testing;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

fn var(cx: &ExprArena, name: &str, lo: i64, hi: Option<i64>, div: i64) -> Dim {
    cx.var(VarInfo { name: name.to_owned(), lo, hi, div }).unwrap()
}

fn size(cx: &ExprArena, name: &str) -> Dim {
    var(cx, name, 0, None, 1)
}

const fn c(v: i64) -> Dim {
    Dim::Const(v)
}

/// `a < b` as an assumption.
fn below(cx: &ExprArena, a: Dim, b: Dim) -> Dim {
    cx.sub(cx.sub(b, a).unwrap(), c(1)).unwrap()
}

fn assumed(cx: &ExprArena, holds: &[Dim], symbols: &[Dim]) -> Assumptions {
    let mut all = Assumptions::new(cx, holds.iter().copied());
    symbols.iter().filter_map(|s| cx.var_id(*s)).for_each(|v| all.about(v));
    all
}

#[track_caller]
fn needs(answer: Decision, fact: &str) {
    match answer {
        Decision::Needs(needed) => assert_eq!(needed.to_string(), fact),
        known => panic!("{known:?}, not in need of {fact}"),
    }
}

#[test]
fn a_remainder_is_below_a_symbolic_divisor() {
    let cx = ExprArena::new();
    let (m, b) = (size(&cx, "M"), size(&cx, "b"));
    let tiles = cx.div(cx.add(m, c(127)).unwrap(), c(128)).unwrap();
    let i = cx.rem(b, tiles).unwrap();
    assert!(less(&cx, i, tiles, &Assumptions::default()).is_true());
    assert!(
        less(&cx, cx.add(i, c(1)).unwrap(), tiles, &Assumptions::default())
            != Decision::Known(true)
    );
}

/// If values at the end of a range refute the claim, the prover takes no steps except those that
/// select the relevant assumptions.
#[cfg(feature = "text")]
#[test]
fn what_is_wrong_at_the_end_of_a_range_is_not_looked_for() {
    let cx = ExprArena::new();
    let (b, k) = (var(&cx, "b", 0, Some(8449), 1), var(&cx, "k", 0, Some(96), 32));
    let first = cx.mul(cx.div(b, c(1040)).unwrap(), c(16)).unwrap();
    let high = cx.min(cx.sub(c(130), first).unwrap(), c(16)).unwrap();
    let i = cx.add(first, cx.rem(cx.rem(b, c(1040)).unwrap(), high).unwrap()).unwrap();
    let steps = |a: Dim, b: Dim, holds: &[Dim]| {
        let mut budget = Budget::new(MAX_STEPS);
        let proven = proves(&cx, (a, b, 1), &assumed(&cx, holds, &[]), &mut budget);
        (proven, MAX_STEPS - budget.left)
    };
    let (proven, taken) = steps(i, c(129), &[]);
    assert!(!proven && taken < 10, "{taken}");
    assert!(steps(i, c(130), &[]).0);
    // Values that violate an assumption or a divisor refute nothing.
    assert!(steps(i, c(129), &[below(&cx, b, c(8000))]).0);
    assert!(steps(k, c(97), &[]).0);
    assert!(!steps(k, c(96), &[]).0);
}

/// Tiles in groups of `G` rows, as in tile orders for the L2 cache.
#[test]
fn the_grouped_order_of_tiles_stays_in_the_grid() {
    let cx = ExprArena::new();
    let (m, n) = (size(&cx, "M"), size(&cx, "N"));
    let b = size(&cx, "b");
    let up = |s: Dim| cx.div(cx.add(s, c(127)).unwrap(), c(128)).unwrap();
    let (tm, tn) = (up(m), up(n));
    let group = cx.mul(tn, c(8)).unwrap();
    let g = cx.div(b, group).unwrap();
    let first = cx.mul(g, c(8)).unwrap();
    let size = cx.min(cx.sub(tm, first).unwrap(), c(8)).unwrap();
    let rest = cx.rem(b, group).unwrap();
    let i = cx.add(first, cx.rem(rest, size).unwrap()).unwrap();
    let j = cx.div(rest, size).unwrap();
    let known = assumed(&cx, &[below(&cx, b, cx.mul(tm, tn).unwrap())], &[]);
    assert!(less(&cx, i, tm, &known).is_true(), "rows");
    assert!(nonnegative(&cx, i, &known).is_true(), "rows from zero");
    assert!(less(&cx, j, tn, &known).is_true(), "columns");
    assert!(nonnegative(&cx, j, &known).is_true(), "columns from zero");
    assert!(!less(&cx, j, tn, &Assumptions::default()).is_true());
}

#[test]
fn a_tile_and_its_elements_are_in_what_they_tile() {
    let cx = ExprArena::new();
    let (k, t, e) = (size(&cx, "K"), size(&cx, "k"), var(&cx, "c", 0, Some(63), 1));
    let at = cx.add(cx.mul(t, c(64)).unwrap(), e).unwrap();
    let known = assumed(&cx, &[below(&cx, t, cx.div(k, c(64)).unwrap())], &[]);
    assert!(less(&cx, at, k, &known).is_true());
    assert!(!less(&cx, cx.add(at, c(1)).unwrap(), k, &known).is_true());
    let last = cx.add(cx.mul(t, c(64)).unwrap(), c(64)).unwrap();
    assert!(at_most(&cx, last, k, &known).is_true());
}

#[test]
fn divisors_that_are_assumed_divide() {
    let cx = ExprArena::new();
    let k = size(&cx, "K");
    let zero = cx.sub(c(0), cx.rem(k, c(64)).unwrap()).unwrap();
    let known = assumed(&cx, &[zero], &[]);
    assert!(divides(&cx, 64, k, &known).is_true());
    assert!(divides(&cx, 16, cx.add(k, c(32)).unwrap(), &known).is_true());
    assert!(divides(&cx, 8, cx.div(k, c(8)).unwrap(), &known).is_true());
    assert!(divides(&cx, 16, cx.add(k, c(8)).unwrap(), &known).is_false());
    assert!(!divides(&cx, 128, k, &known).is_true());
    let whole = cx.mul(cx.div(k, c(64)).unwrap(), c(64)).unwrap();
    assert!(equal(&cx, whole, k, &known).is_true());
    let up = cx.mul(cx.div(cx.add(k, c(63)).unwrap(), c(64)).unwrap(), c(64)).unwrap();
    assert!(equal(&cx, up, k, &known).is_true());
    assert!(!equal(&cx, up, k, &Assumptions::default()).is_true());
}

#[test]
fn divisors_that_are_missing_are_named_together() {
    let cx = ExprArena::new();
    let (m, n, k) = (size(&cx, "M"), size(&cx, "N"), size(&cx, "K"));
    let i = size(&cx, "i");
    let known = assumed(&cx, &[], &[m, n, k]);
    let times = |a, b| cx.mul(a, b).unwrap();
    let missing = |dims: &[Dim]| {
        let facts = divisors_missing(&cx, 8, dims, &known)?;
        Some(facts.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
    };
    let said = |text: &str| Some(text.to_owned());
    assert_eq!(missing(&[c(16), times(i, c(8))]), said(""));
    assert_eq!(missing(&[times(i, n)]), said("N % 8 == 0"));
    assert_eq!(missing(&[n, times(i, k), times(n, c(2))]), said("N % 8 == 0, K % 8 == 0"));
    // A divisor of one factor is sufficient for a product.
    assert_eq!(missing(&[times(m, n)]), said("N % 8 == 0"));
    // The facts are no stronger than needed.
    assert_eq!(missing(&[times(n, c(2)), times(k, c(4))]), said("N % 4 == 0, K % 2 == 0"));
    assert_eq!(missing(&[times(m, n), times(m, k)]), said("N % 8 == 0, K % 8 == 0"));
    // No divisor of a symbol makes these multiples of 8.
    assert_eq!(missing(&[n, c(4)]), None);
    assert_eq!(missing(&[n, i]), None);
    assert_eq!(missing(&[cx.add(n, c(1)).unwrap()]), None);
}

#[test]
fn what_is_missing_is_named() {
    let cx = ExprArena::new();
    let (m, b) = (size(&cx, "M"), size(&cx, "b"));
    let r = var(&cx, "r", 0, Some(127), 1);
    let tiles = cx.div(cx.add(m, c(127)).unwrap(), c(128)).unwrap();
    let at = cx.add(cx.mul(b, c(128)).unwrap(), r).unwrap();
    let known = assumed(&cx, &[below(&cx, b, tiles)], &[m]);
    needs(less(&cx, at, m, &known), "M % 128 == 0");
    needs(less(&cx, m, c(65537), &known), "M <= 65536");
    needs(at_most(&cx, c(64), m, &known), "64 <= M");
    needs(divides(&cx, 64, m, &known), "M % 64 == 0");
    needs(divides(&cx, 64, cx.add(m, cx.mul(b, c(64)).unwrap()).unwrap(), &known), "M % 64 == 0");
    needs(less(&cx, b, r, &known), "b < r");
}

#[test]
fn rows_and_columns_are_one_index() {
    let cx = ExprArena::new();
    let [m, n, p, i, j, k] = ["M", "N", "P", "i", "j", "k"].map(|name| size(&cx, name));
    let at = cx.add(cx.mul(i, n).unwrap(), j).unwrap();
    let all = cx.mul(m, n).unwrap();
    let holds = [below(&cx, i, m), below(&cx, j, n), below(&cx, k, p)];
    let known = assumed(&cx, &holds, &[]);
    assert!(less(&cx, at, all, &known).is_true());
    assert!(nonnegative(&cx, at, &known).is_true());
    assert!(!less(&cx, at, cx.sub(all, c(1)).unwrap(), &known).is_true());
    let at = cx.add(cx.mul(at, p).unwrap(), k).unwrap();
    assert!(less(&cx, at, cx.mul(all, p).unwrap(), &known).is_true());
}

#[test]
fn facts_of_several_symbols_are_used() {
    let cx = ExprArena::new();
    let [k, lda, i] = ["K", "LDA", "i"].map(|name| size(&cx, name));
    let known = assumed(&cx, &[cx.sub(lda, k).unwrap(), below(&cx, i, k)], &[]);
    assert!(less(&cx, i, lda, &known).is_true());
    let least = cx.min(k, lda).unwrap();
    assert!(equal(&cx, least, k, &known).is_true());
    assert!(less(&cx, lda, k, &known).is_false());
    let ceil = cx.ceil_div(k, lda).unwrap();
    assert!(at_most(&cx, ceil, c(1), &known).is_true());
}

/// A row of blocks; a quotient of the block index selects the tile row.
#[test]
fn a_row_of_blocks_tiles_two_modes() {
    let cx = ExprArena::new();
    let (m, n) = (size(&cx, "M"), var(&cx, "N", 64, None, 64));
    let (b, t) = (size(&cx, "b"), var(&cx, "t", 0, Some(127), 1));
    let columns = cx.div(n, c(64)).unwrap();
    let rows = cx.div(cx.add(m, c(127)).unwrap(), c(128)).unwrap();
    let at = cx.add(cx.mul(cx.div(b, columns).unwrap(), c(128)).unwrap(), t).unwrap();
    let known = assumed(&cx, &[below(&cx, b, cx.mul(rows, columns).unwrap())], &[m, n]);
    assert!(less(&cx, cx.div(b, columns).unwrap(), rows, &known).is_true());
    needs(less(&cx, at, m, &known), "M % 128 == 0");
    let m = var(&cx, "M", 0, None, 128);
    let rows = cx.div(m, c(128)).unwrap();
    let known = assumed(&cx, &[below(&cx, b, cx.mul(rows, columns).unwrap())], &[]);
    assert!(less(&cx, at, m, &known).is_true());
}

/// Bounds of quotients whose dividends are sums are integers.
#[test]
fn a_bounded_dividend_bounds_its_quotient() {
    let cx = ExprArena::new();
    let (t, k) = (var(&cx, "t", 0, None, 1), var(&cx, "k", 0, Some(7), 1));
    let turn = cx.div(cx.add(k, c(3)).unwrap(), c(4)).unwrap();
    let u = cx.add(t, cx.mul(turn, c(3)).unwrap()).unwrap();
    let row = cx.add(cx.mul(cx.div(u, c(4)).unwrap(), c(2)).unwrap(), cx.rem(u, c(2)).unwrap());
    let known = assumed(&cx, &[below(&cx, u, c(8))], &[]);
    assert!(less(&cx, row.clone().unwrap(), c(4), &known).is_true());
    assert!(!less(&cx, row.unwrap(), c(3), &known).is_true());
}

#[test]
fn numbers_at_the_ends_are_no_proofs() {
    let cx = ExprArena::new();
    let far = var(&cx, "far", i64::MIN, Some(i64::MAX), 1);
    let ends = [c(i64::MIN), c(i64::MAX), far];
    for (a, b) in ends.iter().flat_map(|a| ends.map(|b| (*a, b))) {
        let known = Assumptions::default();
        let expected = matches!((a, b), (Dim::Const(a), Dim::Const(b)) if a < b);
        assert_eq!(less(&cx, a, b, &known).is_true(), expected);
        let _ = divides(&cx, i64::MAX, a, &known);
        let _ = divides(&cx, i64::MIN, a, &known);
    }
}

/// One step of a generated expression. Operands are taken from earlier steps.
#[derive(Clone, Debug)]
enum Op {
    Add(usize, usize),
    Sub(usize, usize),
    Mul(usize, usize),
    Scaled(usize, i64),
    Div(usize, i64),
    Mod(usize, i64),
    DivBy(usize, usize),
    ModBy(usize, usize),
    CeilDiv(usize, usize),
    Min(usize, usize),
    Max(usize, usize),
    Shifted(usize, i64),
}

#[derive(Clone, Debug)]
struct Case {
    /// Smallest value, number of further values, divisor.
    vars: Vec<(i64, i64, i64)>,
    ops: Vec<Op>,
    assumed: Vec<(usize, usize, i64)>,
    goal: (usize, usize, i64),
    divisor: i64,
}

fn case() -> impl Strategy<Value = Case> {
    let i = || 0usize..16;
    let n = || select(vec![2i64, 3, 4, 8]);
    let op = prop_oneof![
        4 => (i(), i()).prop_map(|(a, b)| Op::Add(a, b)),
        3 => (i(), i()).prop_map(|(a, b)| Op::Sub(a, b)),
        2 => (i(), i()).prop_map(|(a, b)| Op::Mul(a, b)),
        3 => (i(), -3i64..9).prop_map(|(a, k)| Op::Scaled(a, k)),
        3 => (i(), n()).prop_map(|(a, n)| Op::Div(a, n)),
        3 => (i(), n()).prop_map(|(a, n)| Op::Mod(a, n)),
        1 => (i(), i()).prop_map(|(a, b)| Op::DivBy(a, b)),
        1 => (i(), i()).prop_map(|(a, b)| Op::ModBy(a, b)),
        1 => (i(), i()).prop_map(|(a, b)| Op::CeilDiv(a, b)),
        1 => (i(), i()).prop_map(|(a, b)| Op::Min(a, b)),
        1 => (i(), i()).prop_map(|(a, b)| Op::Max(a, b)),
        2 => (i(), -9i64..9).prop_map(|(a, k)| Op::Shifted(a, k)),
    ];
    let of = (-2i64..3, 0i64..7, select(vec![1i64, 1, 1, 2, 4]));
    let vars = proptest::collection::vec(of, 3..5);
    let compared = || (i(), i(), -2i64..3);
    (
        vars,
        proptest::collection::vec(op, 2..9),
        proptest::collection::vec(compared(), 0..4),
        compared(),
        n(),
    )
        .prop_map(|(vars, ops, assumed, goal, divisor)| Case {
            vars,
            ops,
            assumed,
            goal,
            divisor,
        })
}

struct Made {
    cx: ExprArena,
    vars: Vec<Dim>,
    all: Vec<Dim>,
}

fn made(case: &Case) -> Made {
    let cx = ExprArena::new();
    let vars: Vec<Dim> = case
        .vars
        .iter()
        .enumerate()
        .map(|(k, (lo, more, div))| {
            let lo = lo * div;
            var(&cx, &format!("v{k}"), lo, Some(lo + more * div), *div)
        })
        .collect();
    let mut all = vars.clone();
    for op in &case.ops {
        let at = |k: &usize| all[k % all.len()];
        let new: Result<Dim, LayoutError> = match op {
            Op::Add(a, b) => cx.add(at(a), at(b)),
            Op::Sub(a, b) => cx.sub(at(a), at(b)),
            Op::Mul(a, b) => cx.mul(at(a), at(b)),
            Op::Scaled(a, k) => cx.mul(at(a), c(*k)),
            Op::Div(a, n) => cx.div(at(a), c(*n)),
            Op::Mod(a, n) => cx.rem(at(a), c(*n)),
            Op::DivBy(a, b) => cx.div(at(a), at(b)),
            Op::ModBy(a, b) => cx.rem(at(a), at(b)),
            Op::CeilDiv(a, b) => cx.ceil_div(at(a), at(b)),
            Op::Min(a, b) => cx.min(at(a), at(b)),
            Op::Max(a, b) => cx.max(at(a), at(b)),
            Op::Shifted(a, k) => cx.add(at(a), c(*k)),
        };
        all.extend(new);
    }
    Made { cx, vars, all }
}

/// The result of enumeration over all values that satisfy the assumptions and give all sides a
/// value: whether the answer is yes for some, and no for some.
fn counted(m: &Made, holds: &[Dim], sides: &[Dim], yes: impl Fn(&[i64]) -> bool) -> (bool, bool) {
    let values: Vec<Vec<i64>> = m
        .vars
        .iter()
        .map(|v| {
            let (lo, hi) = m.cx.range(*v);
            (lo.unwrap()..=hi.unwrap()).step_by(m.cx.divisor(*v).max(1) as usize).collect()
        })
        .collect();
    let ids: Vec<VarId> = m.vars.iter().map(|v| m.cx.var_id(*v).unwrap()).collect();
    let (mut any_yes, mut any_no) = (false, false);
    let total: usize = values.iter().map(Vec::len).product();
    for mut number in 0..total {
        let at: Vec<i64> = values
            .iter()
            .map(|all| {
                let v = all[number % all.len()];
                number /= all.len();
                v
            })
            .collect();
        let value = |var: VarId| ids.iter().position(|id| *id == var).map(|k| at[k]);
        let of = |dims: &[Dim]| {
            dims.iter().map(|d| m.cx.eval(*d, &value)).collect::<Result<Vec<i64>, _>>().ok()
        };
        let (Some(kept), Some(sides)) = (of(holds), of(sides)) else { continue };
        if kept.iter().all(|v| *v >= 0) {
            match yes(&sides) {
                true => any_yes = true,
                false => any_no = true,
            }
        }
    }
    (any_yes, any_no)
}

/// An answer of the prover, and the result of enumeration.
type Answered = (Decision, (bool, bool));

fn answers(case: &Case) -> [Answered; 2] {
    let m = made(case);
    let at = |k: usize| m.all[k % m.all.len()];
    let holds: Vec<Dim> = case
        .assumed
        .iter()
        .filter_map(|(a, b, by)| {
            let room = m.cx.sub(at(*b), at(*a)).ok()?;
            m.cx.sub(room, c(*by)).ok()
        })
        .collect();
    let known = assumed(&m.cx, &holds, &m.vars);
    let (a, b, by) = case.goal;
    let a = m.cx.add(at(a), c(by)).unwrap();
    let (b, n) = (at(b), case.divisor);
    [
        (less(&m.cx, a, b, &known), counted(&m, &holds, &[a, b], |s| s[0] < s[1])),
        (divides(&m.cx, n, b, &known), counted(&m, &holds, &[b], |s| s[0] % n == 0)),
    ]
}

proptest! {
    #![proptest_config(testing::config(2000))]

    /// Answers of the prover agree with enumeration.
    #[test]
    fn what_is_known_holds(case in case()) {
        for (answer, (any_yes, any_no)) in answers(&case) {
            match answer {
                Decision::Known(true) => prop_assert!(!any_no, "not true"),
                Decision::Known(false) => prop_assert!(!any_yes, "not false"),
                Decision::Needs(_) => {}
            }
        }
    }
}

/// The prover decides most small questions with a definite answer. `cargo test -- --nocapture`
/// shows the rates.
#[test]
fn most_truths_are_proven() {
    let mut runner = TestRunner::deterministic();
    let cases = case();
    // By question and answer: the number of questions with a definite answer, and of those that the
    // prover decided.
    let mut of = [[[0usize; 2]; 2]; 2];
    for _ in 0..3000 {
        let case = cases.new_tree(&mut runner).unwrap().current();
        for (k, (answer, (any_yes, any_no))) in answers(&case).into_iter().enumerate() {
            if any_yes != any_no {
                let of = &mut of[k][usize::from(any_yes)];
                of[0] += 1;
                of[1] += usize::from(answer == Decision::Known(any_yes));
            }
        }
    }
    let percent = |[all, proven]: [usize; 2]| proven as f64 * 100.0 / all as f64;
    let words = ["less, never", "less, always", "divides, never", "divides, always"];
    let lines = words
        .iter()
        .zip(of.iter().flatten())
        .map(|(word, of)| format!("{word}: {:.1} % of {} answered\n", percent(*of), of[0]));
    let line: String = lines.collect();
    std::io::Write::write_all(&mut std::io::stdout(), line.as_bytes()).unwrap();
    let least = [95.0; 4];
    assert!(of.iter().flatten().zip(least).all(|(of, least)| percent(*of) > least), "{line}");
}
