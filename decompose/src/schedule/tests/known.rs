//! Tests the search on problems whose schedules are known.

use crate::schedule::modulo::{Proof, Wait};
use crate::schedule::problem::{Operation, Problem, Use};
use crate::schedule::solve::{identity, solve};

/// An operation that its threads execute.
fn by_threads(name: &str, held: i64, latency: i64) -> Operation {
    Operation { name: name.to_owned(), held, latency, ..Operation::default() }
}

/// An asynchronous operation.
fn by_engine(name: &str, queue: usize, uses: Use, latency: i64) -> Operation {
    let name = name.to_owned();
    Operation { name, held: 1, latency, queue: Some(queue), uses: vec![uses], agent: 0 }
}

/// Two copies, a product that lasts `cycles`, and the release of its stage.
fn gemm(cycles: i64, latency: i64, stages: i64) -> Problem {
    let mut p = Problem::default();
    p.agent("warps");
    let unit = p.resource("matrix", true);
    let engine = p.resource("global", false);
    let (products, copies) = (p.queue("products", true), p.queue("copies", true));
    let rings = ["A", "B"].map(|name| p.ring(name, stages));
    let copy = Use { resource: engine, cycles: 40 };
    let loads = ["A", "B"].map(|name| p.operation(by_engine(name, copies, copy, latency)));
    let multiplied = Use { resource: unit, cycles };
    let product = p.operation(by_engine("product", products, multiplied, cycles + 16));
    let release = p.operation(by_threads("release", 1, 1));
    for (load, ring) in loads.into_iter().zip(rings) {
        p.flow(load, product, 0);
        p.reuse(release, load, ring, 0);
    }
    // What is released the engine has read.
    p.flow(product, release, 0);
    p.output(product, product, 1);
    // Sums are added to in the order of issue.
    p.dependences.last_mut().expect("that").latency = cycles;
    p
}

#[test]
fn copies_of_a_product_run_ahead_and_it_is_under_way_when_the_next_begins() {
    let p = gemm(128, 500, 6);
    let found = solve(&p, 1000).expect("a schedule");
    found.check(&p).expect("it is one");
    assert_eq!((found.ii, found.resource_bound, found.recurrence_bound), (128, 128, 128));
    assert_eq!(found.proof, Proof::Starts);
    // The copies are the iterations ahead that their latency takes, and a stage is released when
    // the next product has been issued.
    assert_eq!(found.stage(2) - found.stage(0), 500 / 128);
    assert_eq!(found.start[3], found.start[2] + 128 + 16);
    assert_eq!(found.order(&p), [vec![0, 1, 3, 2]]);
    let wait = |operation, queue, in_flight| Wait { operation, queue, in_flight };
    // Of copies those of the three iterations after it.
    assert_eq!(found.waits(&p), [wait(2, 1, 6), wait(3, 0, 1)]);
    assert_eq!(found.depths(&p), [6, 6]);
    let written = identity(&p).expect("a schedule");
    assert_eq!(written.ii, 500 + 500 + 144 + 1);
    assert!(found.nodes < 20, "{}", found.nodes);
}

#[test]
fn a_ring_that_is_too_short_for_the_latency_sets_the_interval() {
    let p = gemm(128, 500, 3);
    let found = solve(&p, 1000).expect("a schedule");
    found.check(&p).expect("it is one");
    // From the first copy by way of the second, the product and the release, in three iterations.
    let cycles = 1 + 500 + 144 + 1;
    assert_eq!((found.ii, found.resource_bound), ((cycles + 2) / 3, 128));
    assert_eq!(found.proof, Proof::Starts);
    assert_eq!(found.depths(&p), [3, 3]);
}

/// Softmax of a product between two: O = O·scale + softmax(Q·K)·V. Sums of Q·K lie in so many
/// register tensors.
fn attention(scores: i64) -> Problem {
    let mut p = Problem::default();
    p.agent("warps");
    let unit = p.resource("matrix", true);
    let engine = p.resource("global", false);
    let (products, copies) = (p.queue("products", true), p.queue("copies", true));
    let (ring_k, ring_v) = (p.ring("K", 2), p.ring("V", 2));
    let ring_s = p.ring("S", scores);
    let copy = Use { resource: engine, cycles: 80 };
    let multiplied = Use { resource: unit, cycles: 256 };
    let k = p.operation(by_engine("K", copies, copy, 600));
    let v = p.operation(by_engine("V", copies, copy, 600));
    let qk = p.operation(by_engine("S = Q K", products, multiplied, 272));
    let max = p.operation(by_threads("max", 60, 64));
    let exp = p.operation(by_threads("P = exp(S - max)", 200, 204));
    let sum = p.operation(by_threads("sum", 40, 44));
    let cast = p.operation(by_threads("cast", 50, 54));
    let scale = p.operation(by_threads("O = O scale", 60, 64));
    let pv = p.operation(by_engine("O = O + P V", products, multiplied, 272));
    for (from, to) in [(k, qk), (qk, max), (max, exp), (exp, sum), (exp, cast), (max, scale)] {
        p.flow(from, to, 0);
    }
    for (from, to) in [(v, pv), (cast, pv), (scale, pv)] {
        p.flow(from, to, 0);
    }
    for (from, to) in [(max, max), (sum, sum), (pv, scale)] {
        p.flow(from, to, 1);
    }
    p.reuse(qk, k, ring_k, 0);
    p.reuse(pv, v, ring_v, 0);
    for reader in [max, exp] {
        p.reuse(reader, qk, ring_s, 0);
    }
    for (reader, writer) in [(sum, exp), (cast, exp), (pv, cast), (exp, max)] {
        p.anti(reader, writer, 1);
    }
    p
}

#[test]
fn attention_multiplies_for_one_iteration_while_threads_exponentiate_for_the_next() {
    let [qk, max, exp, pv] = [2, 3, 4, 8];
    let p = attention(1);
    let found = solve(&p, 10_000).expect("a schedule");
    found.check(&p).expect("it is one");
    // Sums of Q K are there, have been read, and are overwritten.
    assert_eq!((found.ii, found.recurrence_bound, found.resource_bound), (536, 536, 512));
    assert_eq!(found.proof, Proof::Starts);
    assert!(found.nodes < 50, "{}", found.nodes);
    let written = identity(&p).expect("a schedule");
    assert!(written.ii > 3 * found.ii, "{}", written.ii);
    // P V of an iteration is under way when the maximum of the next is looked for.
    let next = found.start[max] + found.ii;
    assert!(found.begin[pv] < next && next < found.begin[pv] + 256, "{found:?}");
    // It has been issued behind Q K of the next, which is waited for while it is left in flight.
    assert!(found.start[qk] + found.ii < found.start[pv], "{found:?}");
    let waits = found.waits(&p);
    assert!(waits.contains(&Wait { operation: max, queue: 0, in_flight: 1 }), "{waits:?}");

    // With a second tensor for these sums the unit that multiplies is never idle.
    let p = attention(2);
    let found = solve(&p, 10_000).expect("a schedule");
    found.check(&p).expect("it is one");
    assert_eq!((found.ii, found.proof), (512, Proof::Starts));
    assert!(found.nodes < 50, "{}", found.nodes);
    assert!(found.depths(&p)[2] <= 2);
    assert!(found.start[exp] < found.start[qk] + 2 * found.ii);
}
