//! Tests that the random generators of the kit shrink a failing operand to one of a leaf or two,
//! and that every operand on the way is valid.

use carbyne_ir::kit::{Demand, LawResult, Outcome, Plain, Tiling, laws, strategies as s};
use carbyne_ir::layout::Layout;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// Always fails, so that every value shrinks as far as possible. Checks that all values on the way
/// are admissible.
fn shrinks<S: Strategy>(
    strategy: S,
    admissible: impl Fn(&S::Value) -> LawResult,
    leaves: impl Fn(&S::Value) -> usize,
) {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut steps = 0;
    for _ in 0..50 {
        let mut tree = strategy.new_tree(&mut runner).unwrap();
        loop {
            let value = tree.current();
            assert_eq!(admissible(&value), Ok(Outcome::Holds), "{value:?}");
            if !tree.simplify() {
                break;
            }
            steps += 1;
        }
        let least = tree.current();
        assert!(leaves(&least) <= 2, "{least:?}");
    }
    assert!(steps > 50, "only {steps} steps: nothing was there to shrink");
}

/// Fails for operands with at least `wanted` leaves. Shrinking turns back at inadmissible operands,
/// and must end near the bound.
fn shrinks_to<S: Strategy>(
    strategy: S,
    wanted: usize,
    admissible: impl Fn(&S::Value) -> LawResult,
    leaves: impl Fn(&S::Value) -> usize,
) {
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[11; 32]);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let mut found = 0;
    for _ in 0..400 {
        let mut tree = strategy.new_tree(&mut runner).unwrap();
        if leaves(&tree.current()) < wanted {
            continue;
        }
        found += 1;
        loop {
            let value = tree.current();
            assert_eq!(admissible(&value), Ok(Outcome::Holds), "{value:?}");
            let moved = if leaves(&value) >= wanted { tree.simplify() } else { tree.complicate() };
            if !moved {
                break;
            }
        }
        let least = leaves(&tree.current());
        assert!(least <= wanted + 1, "{least} leaves for {wanted}");
    }
    assert!(found > 10, "only {found} operands have {wanted} leaves");
}

fn count(p: &Plain) -> usize {
    p.leaves().len()
}

fn tiling(t: &Tiling<Plain>) -> usize {
    match t {
        Tiling::Layout(p) => count(p),
        Tiling::Modes(modes) => modes.iter().map(tiling).sum(),
        Tiling::Keep => 1,
    }
}

#[test]
fn compositions() {
    let law = |(a, b): &(Plain, Plain)| laws::law_composition::<Layout>(a, b, Demand::Answer);
    shrinks(s::composition(256), law, |(a, b)| count(a).max(count(b)));
    shrinks_to(s::composition(256), 5, law, |(a, b)| count(a) + count(b));
    let law = |(a, t): &(Plain, Tiling<Plain>)| laws::law_composition_by_mode::<Layout>(a, t);
    shrinks(s::composition_by_mode(256), law, |(a, t)| count(a).max(tiling(t)));
}

#[test]
fn divisions() {
    let law = |(a, t): &(Plain, Tiling<Plain>)| laws::law_logical_divide::<Layout>(a, t);
    shrinks(s::division(256), law, |(a, t)| count(a).max(tiling(t)));
    shrinks_to(s::division(256), 5, law, |(a, t)| count(a) + tiling(t));
    shrinks(s::division_by_mode(256), law, |(a, t)| count(a).max(tiling(t)));
}

#[test]
fn products() {
    let law = |(a, b): &(Plain, Plain)| {
        laws::law_logical_product::<Layout>(a, &Tiling::Layout(b.clone()))
    };
    shrinks(s::product(32), law, |(a, b)| count(a).max(count(b)));
    shrinks_to(s::product(32), 5, law, |(a, b)| count(a) + count(b));
    let law = |(a, t): &(Plain, Tiling<Plain>)| laws::law_logical_product::<Layout>(a, t);
    shrinks(s::product_by_mode(24), law, |(a, t)| count(a).max(tiling(t)));
}

#[test]
fn complements_and_inverses() {
    let law = |(a, n): &(Plain, i64)| laws::law_complement::<Layout>(a, *n, Demand::Answer);
    shrinks(s::complement(256), law, |(a, _)| count(a));
    shrinks_to(s::complement(256), 4, law, |(a, _)| count(a));
    let law = |a: &Plain| laws::law_left_inverse::<Layout>(a, Demand::Answer);
    shrinks(s::padded(256), law, count);
    shrinks_to(s::padded(256), 4, law, count);
}

#[test]
fn reshapes_and_thread_values() {
    let law = |(a, shape): &(Plain, _)| laws::law_with_shape::<Layout>(a, shape);
    shrinks(s::with_shape(256), law, |(a, shape)| count(a).max(shape.flatten().len()));
    let law = |tv: &s::ThreadValue| laws::law_thread_value::<Layout>(tv);
    shrinks(s::thread_value(256), law, |tv| count(&tv.layout));
    shrinks(s::replicated_thread_value(256), law, |tv| count(&tv.layout));
}

#[test]
fn nothing_exceeds_its_budget() {
    let mut runner = TestRunner::deterministic();
    for budget in [1, 2, 7, 64, 500] {
        for _ in 0..200 {
            let a = s::layout(budget).new_tree(&mut runner).unwrap().current();
            assert!(a.size().is_some_and(|size| size <= budget), "{a} for {budget}");
        }
    }
}

#[test]
fn every_kind_of_layout_occurs() {
    let mut runner = TestRunner::deterministic();
    let mut seen = [0; 6];
    for _ in 0..1000 {
        let a = s::layout(256).new_tree(&mut runner).unwrap().current();
        let leaves = a.leaves();
        let kinds = [
            a.injective() && a.cosize() == a.size().unwrap_or(0),
            leaves.windows(2).any(|pair| pair[0].1 > pair[1].1),
            a.injective() && a.cosize() > a.size().unwrap_or(0),
            leaves.iter().any(|&(extent, stride)| extent > 1 && stride == 0),
            leaves.iter().any(|&(extent, _)| extent.count_ones() > 1),
            a.shape.depth() > 1,
        ];
        kinds.iter().zip(&mut seen).for_each(|(is, n)| *n += i32::from(*is));
    }
    assert!(seen.iter().all(|n| *n >= 100), "{seen:?}");
}
