//! Compares the search with an enumeration of all starts, on small random problems.

use crate::schedule::modulo::{Proof, Schedule};
use crate::schedule::problem::{Kind, Operation, Problem, Use};
use crate::schedule::solve::{identity, solve};
use carbyne_ir::testing;
use proptest::prelude::*;

/// Small problems: operations of two agents and resources, some asynchronous, forward dependences
/// within an iteration, any across.
fn problems() -> impl Strategy<Value = Problem> {
    let operation = (0..2usize, 0..3i64, 0..5i64, (0..3usize, 0..3usize), 0..4i64);
    let dependence = (0..5usize, 0..5usize, 0..7i64, 0..3i64);
    let operations = proptest::collection::vec(operation, 1..=5);
    let dependences = proptest::collection::vec(dependence, 0..7);
    (operations, dependences).prop_map(|(operations, dependences)| {
        let mut p = Problem::default();
        p.agent("a");
        p.agent("b");
        p.resource("unit", true);
        p.resource("bandwidth", false);
        p.queue("engine", true);
        for (agent, held, latency, (resource, queue), cycles) in operations {
            let uses = (resource < 2).then_some(Use { resource, cycles }).into_iter().collect();
            let name = format!("{}", p.operations.len());
            let queue = (queue == 0).then_some(0);
            p.operation(Operation { name, agent, held, uses, latency, queue });
        }
        let n = p.operations.len();
        for (from, to, latency, distance) in dependences {
            let (from, to) = (from % n, to % n);
            let distance = if from < to { distance } else { distance.max(1) };
            let kind = Kind::True;
            p.dependences.push(crate::schedule::problem::Dependence {
                from,
                to,
                latency,
                distance,
                kind,
            });
        }
        p
    })
}

/// All lists of numbers, each below its own.
fn all(below: Vec<i64>) -> impl Iterator<Item = Vec<i64>> {
    let count: i64 = below.iter().product();
    (0..count).map(move |mut i| {
        let mut digit = |below: &i64| {
            let digit = i % below;
            i /= below;
            digit
        };
        below.iter().map(&mut digit).collect()
    })
}

/// All schedules at an initiation interval whose starts are below a number: none where there are
/// too many.
fn schedules(p: &Problem, ii: i64, below: i64) -> Option<impl Iterator<Item = Schedule>> {
    const MOST: i64 = 400_000;
    let n = p.operations.len();
    // How long engines let operations wait.
    let waits = p.operations.iter().map(|o| if o.queue.is_some() { ii } else { 1 });
    let below: Vec<i64> = std::iter::repeat_n(below, n).chain(waits).collect();
    let count = below.iter().try_fold(1i64, |all, n| all.checked_mul(*n));
    count.filter(|count| *count < MOST)?;
    Some(all(below).map(move |numbers| {
        let (start, waits) = numbers.split_at(n);
        Schedule {
            ii,
            resource_bound: 1,
            recurrence_bound: 1,
            least_ii: 1,
            proof: Proof::Nothing,
            start: start.to_vec(),
            begin: start.iter().zip(waits).map(|(start, wait)| start + wait).collect(),
            nodes: 0,
        }
    }))
}

/// Whether there is a schedule at an initiation interval, of any depth: cycles in the period are
/// tried, and stages are longest paths. None where there are too many.
fn is_feasible(p: &Problem, ii: i64) -> Option<bool> {
    let busy = |resource: usize| -> i64 {
        let uses = p.operations.iter().flat_map(|o| &o.uses);
        uses.filter(|u| u.resource == resource).map(|u| u.cycles).sum()
    };
    if (0..p.resources.len()).any(|r| busy(r) > ii) {
        return Some(false);
    }
    let n = p.operations.len();
    let alone = Problem { dependences: vec![], ..p.clone() };
    let apart = |s: &Schedule| s.check(&alone).is_ok();
    Some(schedules(p, ii, ii)?.filter(apart).any(|s| {
        let mut stages = vec![0i64; n];
        (0..=n).any(|_| {
            let before = stages.clone();
            for d in &p.dependences {
                let cycles = d.latency + s.begin[d.from] - s.start[d.to];
                let least = stages[d.from] + (cycles + ii - 1).div_euclid(ii) - d.distance;
                stages[d.to] = stages[d.to].max(least);
            }
            stages == before
        })
    }))
}

proptest! {
    #![proptest_config(testing::config(300))]

    #[test]
    fn nothing_is_better_than_what_the_search_finds(p in problems()) {
        let found = solve(&p, 100_000).expect("a schedule");
        found.check(&p).expect("it is one");
        prop_assert_eq!(found.proof, Proof::Starts);
        prop_assert_eq!(found.least_ii, found.ii);
        prop_assert!(found.resource_bound.max(found.recurrence_bound) <= found.ii);
        let written = identity(&p).expect("a schedule");
        written.check(&p).expect("it is one");
        prop_assert!(found.ii <= written.ii);
        // Feasible intervals are all from the least one on, so that the one below it suffices.
        if found.ii > 1 {
            prop_assert_ne!(is_feasible(&p, found.ii - 1), Some(true));
        }
        if let Some(all) = schedules(&p, found.ii, found.depth() * found.ii) {
            let rank = |s: &Schedule| (s.depth(), s.start.iter().sum::<i64>());
            let best = all.filter(|s| s.check(&p).is_ok()).map(|s| rank(&s)).min();
            prop_assert_eq!(best, Some(rank(&found)));
        }
    }
}

#[test]
fn what_is_no_problem_is_said() {
    let mut p = Problem::default();
    assert_eq!(solve(&p, 10).unwrap_err().to_string(), "the loop has no operations");
    p.operation(Operation { name: "a".to_owned(), held: -1, ..Operation::default() });
    assert_eq!(solve(&p, 10).unwrap_err().to_string(), "the operation `a` has held cycles of -1");
    p.operations[0].held = 1;
    assert_eq!(solve(&p, 10).unwrap_err().to_string(), "the problem has no agent 0");
    p.agent("threads");
    p.flow(0, 0, 0);
    let circular = "the operation `a` waits for itself within one iteration";
    assert_eq!(solve(&p, 10).unwrap_err().to_string(), circular);
}
