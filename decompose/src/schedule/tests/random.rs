//! Tests that most random loops of twenty operations are solved to a proved optimum in few nodes.
//! Also tests problems with numbers as large as they may be.

use crate::schedule::modulo::Proof;
use crate::schedule::problem::{Operation, Problem, Use};
use crate::schedule::solve::{solve, usual_nodes};

/// Numbers that look random, the same on every machine (Knuth's MMIX generator).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n) as usize
    }

    fn cycles(&mut self, low: u64, high: u64) -> i64 {
        self.below(high - low) as i64 + low as i64
    }
}

/// A loop of so many operations: a third by engines, the others by threads of one role or two. Each
/// reads what one or two of the five before it wrote, or what the first ones have loaded; of what
/// is in registers half is overwritten in the next iteration, and three are carried from one
/// iteration to one of the next two.
fn random(seed: u64, n: usize) -> Problem {
    let mut r = Numbers(seed);
    r.below(2);
    let mut p = Problem::default();
    let agents = 1 + r.below(2);
    (0..agents).for_each(|i| {
        p.agent(format!("role {i}"));
    });
    let unit = p.resource("matrix", true);
    let special = p.resource("special", false);
    let queue = p.queue("products", true);
    for i in 0..n {
        let by_engine = r.below(3) == 0;
        let cycles = r.cycles(1, 20) * 16;
        let latency = cycles + r.cycles(4, 40);
        let agent = r.below(agents as u64);
        let name = i.to_string();
        let operation = match by_engine {
            true => {
                let uses = vec![Use { resource: unit, cycles }];
                Operation { name, agent, held: 4, uses, latency, queue: Some(queue) }
            }
            false => {
                let uses = vec![Use { resource: special, cycles: cycles / 4 }];
                Operation { name, agent, held: cycles, uses, latency, queue: None }
            }
        };
        p.operation(operation);
    }
    for to in 1..n {
        for _ in 0..=r.below(2) {
            let from = to - 1 - r.below(to.min(5) as u64);
            p.flow(from, to, 0);
            if r.below(2) == 0 {
                p.anti(to, from, 1);
            }
        }
    }
    for _ in 0..3 {
        let (a, b) = (r.below(n as u64), r.below(n as u64));
        p.flow(a.max(b), a.min(b), 1 + r.below(2) as i64);
    }
    p
}

#[test]
fn twenty_operations_are_proved_within_few_nodes() {
    // Both the initiation interval and the depth of all but the hardest, whose threads and units
    // are never idle.
    const SEEDS: u64 = 32;
    let proved = |limit: u64| {
        let all = (0..SEEDS).map(|seed| {
            let p = random(seed, 20);
            let found = solve(&p, limit).expect("a schedule");
            found.check(&p).unwrap_or_else(|e| panic!("{seed}: {e}"));
            assert!(found.nodes <= limit);
            assert!(found.proof != Proof::Nothing || found.least_ii < found.ii);
            found.proof >= Proof::Depth
        });
        all.filter(|proved| *proved).count()
    };
    let counts = [300, 1000].map(proved);
    assert!(counts[0] >= 20 && counts[1] >= 28, "{counts:?}");
}

#[test]
fn numbers_as_large_as_they_may_be_are_followed() {
    for (seed, n) in (0..40).map(|seed| (seed, 2 + seed as usize % 14)).chain([(40, 64)]) {
        let mut p = random(seed, n);
        let mut r = Numbers(!seed);
        for o in &mut p.operations {
            let large = 1 << r.below(27);
            (o.held, o.latency) = (o.held.min(large), large);
            o.uses.iter_mut().for_each(|u| u.cycles = 1 << r.below(27));
        }
        for d in &mut p.dependences {
            d.latency = 1 << r.below(27);
            d.distance *= 1 << r.below(10);
        }
        let found = solve(&p, usual_nodes(n) / 8).expect("a schedule");
        for d in &p.dependences {
            let after = found.start[d.to] + d.distance * found.ii;
            assert!(after >= found.begin[d.from] + d.latency, "{seed}: {d:?}");
        }
        assert_eq!(found.order(&p).concat().len(), n);
        assert!(found.waits(&p).iter().all(|w| w.in_flight >= 0));
    }
}
