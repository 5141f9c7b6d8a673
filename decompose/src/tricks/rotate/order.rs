//! Derives the order of a loop's operations from a modulo schedule ([`Order`]), for loops in which
//! a product is to be under way while operations of another iteration are executed.
//!
//! An iteration has two stages. The loop's body executes the first one, which begins with the
//! product, of the next iteration, and the second one of its own: each operation at σ mod II. At
//! the end of the body all products are done, so that none is in flight where the loop begins anew:
//! `ptxas` does not follow accumulators around a loop that others read.
//!
//! Among all schedules of the least initiation interval, the one is taken in which products have
//! the most cycles until they are awaited: how long they take where blocks share a multiprocessor
//! is not known.

use crate::schedule::Find;
use crate::schedule::problem::{Dependence, Kind, Problem};
use crate::schedule::solve::usual_nodes;
use std::collections::BTreeSet;

/// The operations of a loop's body, in the order of issue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) sequence: Vec<usize>,
    /// Of each operation, whether the body executes that of the next iteration.
    pub(crate) ahead: Vec<bool>,
}

/// What an order is sought for.
pub(crate) struct Asked<'a> {
    /// The operations that are put in order; copies that run ahead by rings are none of them.
    pub(crate) problem: &'a Problem,
    /// The product that begins an iteration: no other operation of the iteration comes before it.
    pub(crate) first: usize,
    /// All products.
    pub(crate) products: &'a [usize],
    /// Of each operation, whether what it writes outlives an iteration: the next iteration may not
    /// exist.
    pub(crate) kept: &'a [bool],
}

/// Parts of the initiation interval to which the time that products have is found.
const PARTS: i64 = 32;

impl Asked<'_> {
    /// The order, if it lets the product be under way meanwhile.
    pub(crate) fn order(&self, find: Find) -> Option<Order> {
        let (ii, mut starts, ranks) = self.starts(find)?;
        if !self.overlaps(ii, &starts) {
            return None;
        }
        let n = self.problem.operations.len();
        let mut line: Vec<usize> = (0..n).collect();
        line.sort_by_key(|o| (starts[*o], ranks[*o], *o));
        self.sink(&mut line, &mut starts);
        self.keep(&line, &mut starts, ii);
        if line.first() != Some(&self.first) {
            return None;
        }
        let ahead = starts.iter().map(|s| *s < ii).collect();
        let mut places: Vec<(i64, usize, usize)> =
            line.iter().enumerate().map(|(i, o)| (starts[*o].rem_euclid(ii), i, *o)).collect();
        places.sort_unstable();
        let mut order = Order { sequence: places.into_iter().map(|(.., o)| o).collect(), ahead };
        self.hoist(&mut order);
        order.holds(self.problem).then_some(order)
    }

    /// The initiation interval, starts, and ranks of operations that start at once.
    fn starts(&self, find: Find) -> Option<(i64, Vec<i64>, Vec<usize>)> {
        let nodes = usual_nodes(self.problem.operations.len());
        let mut problem = self.asked(0)?;
        let mut found = find(&problem, nodes).ok()?;
        let ii = found.ii;
        let (mut enough, mut most) = (0, ii);
        while most - enough > (ii / PARTS).max(1) {
            let middle = enough + (most - enough) / 2;
            let longer = self.asked(middle)?;
            match find(&longer, nodes) {
                Ok(other) if other.ii <= ii => {
                    (enough, found, problem) = (middle, other, longer);
                }
                _ => most = middle,
            }
        }
        Some((found.ii, found.start.clone(), found.ranks(&problem)))
    }

    /// The problem in which products take so many cycles more, and in which they are done when an
    /// iteration begins.
    fn asked(&self, more: i64) -> Option<Problem> {
        let mut out = self.problem.clone();
        for d in &mut out.dependences {
            let latency = self.problem.operations[d.from].latency;
            // Products that are added to in the order of issue do not wait for each other.
            if self.products.contains(&d.from) && d.latency >= latency {
                d.latency = d.latency.checked_add(more)?;
            }
        }
        let first = self.first;
        let kind = Kind::True;
        let others = (0..out.operations.len()).filter(|o| *o != first);
        let behind = others.map(|to| Dependence { from: first, to, latency: 0, distance: 0, kind });
        let done = self.products.iter().filter(|q| **q != first).map(|&from| {
            let latency = self.problem.operations[from].latency.saturating_add(more);
            Dependence { from, to: first, latency, distance: 2, kind }
        });
        let added: Vec<Dependence> = behind.chain(done).collect();
        out.dependences.extend(added);
        Some(out)
    }

    /// Whether the schedule has operations of another iteration between the product and what needs
    /// it.
    fn overlaps(&self, ii: i64, starts: &[i64]) -> bool {
        let needs = self.problem.dependences.iter().filter(|d| d.from == self.first);
        let needed = needs.filter(|d| d.to != self.first).map(|d| starts[d.to] + d.distance * ii);
        let until = needed.min().unwrap_or(ii);
        starts.iter().any(|s| *s >= ii && *s - ii < until)
    }

    /// Products are issued as soon as what they read is there, and before threads wait for the
    /// first one.
    fn hoist(&self, order: &mut Order) {
        let of = |order: &Order, o: usize| order.sequence.iter().position(|other| *other == o);
        let same = |order: &Order, d: &Dependence| {
            d.distance + i64::from(order.ahead[d.from]) == i64::from(order.ahead[d.to])
        };
        for &q in self.products.iter().filter(|q| **q != self.first) {
            let awaits = |o: &usize| {
                let mut all = self.problem.dependences.iter().filter(|d| d.to == *o);
                all.any(|d| d.from == self.first && same(order, d)) && *o != q
            };
            let awaited = order.sequence.iter().position(awaits);
            let own = of(order, q);
            if let (Some(awaited), Some(own)) = (awaited, own)
                && awaited < own
            {
                // With what it needs, which is none of what waits.
                let mut needed = vec![q];
                for o in order.sequence[awaited..own].iter().rev() {
                    let mut all = self.problem.dependences.iter().filter(|d| d.from == *o);
                    if all.any(|d| needed.contains(&d.to) && same(order, d)) {
                        needed.push(*o);
                    }
                }
                needed.reverse();
                let mut earlier = order.clone();
                earlier.sequence.retain(|o| !needed.contains(o));
                earlier.sequence.splice(awaited..awaited, needed);
                if earlier.holds(self.problem) {
                    *order = earlier;
                }
            }
            let Some(own) = of(order, q) else { continue };
            for at in 1..own {
                let mut earlier = order.clone();
                earlier.sequence.remove(own);
                earlier.sequence.insert(at, q);
                if earlier.holds(self.problem) {
                    *order = earlier;
                    break;
                }
            }
        }
    }

    /// What does not depend on the product is executed right before what needs it, and holds no
    /// registers until then.
    fn sink(&self, line: &mut Vec<usize>, starts: &mut [i64]) {
        let within: Vec<&Dependence> =
            self.problem.dependences.iter().filter(|d| d.distance == 0).collect();
        let mut behind = BTreeSet::from([self.first]);
        for o in line.iter() {
            if within.iter().any(|d| d.to == *o && behind.contains(&d.from)) {
                behind.insert(*o);
            }
        }
        for o in line.clone().into_iter().rev() {
            if behind.contains(&o) || self.products.contains(&o) {
                continue;
            }
            let needs = |other: &usize| within.iter().any(|d| d.from == o && d.to == *other);
            let Some(at) = line.iter().position(needs) else { continue };
            let Some(own) = line.iter().position(|other| *other == o).filter(|own| *own < at)
            else {
                continue;
            };
            starts[o] = starts[line[at]];
            line.remove(own);
            line.insert(at - 1, o);
        }
    }

    /// What outlives an iteration is written by one that exists, and so is all that follows from
    /// it. There is no third stage.
    fn keep(&self, line: &[usize], starts: &mut [i64], ii: i64) {
        let mut late = BTreeSet::new();
        for &o in line {
            let mut within = self.problem.dependences.iter().filter(|d| d.distance == 0);
            if self.kept[o] || within.any(|d| d.to == o && late.contains(&d.from)) {
                late.insert(o);
                starts[o] = starts[o].max(ii);
            }
            starts[o] = starts[o].min(2 * ii - 1);
        }
    }
}

impl Order {
    /// In which body an operation of an iteration is executed, counted from that of the iteration,
    /// and where.
    fn at(&self, o: usize, iteration: i64) -> (i64, usize) {
        let place = self.sequence.iter().position(|other| *other == o).unwrap_or(0);
        (iteration - i64::from(self.ahead[o]), place)
    }

    /// Whether all operations come after those that they depend on.
    fn holds(&self, problem: &Problem) -> bool {
        let after = |d: &Dependence| self.at(d.from, -d.distance) < self.at(d.to, 0);
        let own = |d: &&Dependence| d.from != d.to || d.distance == 0;
        problem.dependences.iter().filter(own).all(after)
    }

    /// The waits for products that a list of operations of one body needs: before which of them,
    /// and for all but the last so many products. `waits` says of a product and a later one whether
    /// that waits for it.
    pub(crate) fn waits(
        &self,
        problem: &Problem,
        products: &[usize],
        list: &[usize],
        waits: impl Fn(usize, usize) -> bool,
    ) -> Vec<(usize, usize)> {
        let mut out: Vec<(usize, usize)> = vec![];
        // How many may be in flight, of the last ones.
        let mut flying = 0;
        for (at, &x) in list.iter().enumerate() {
            let mut left = usize::MAX;
            for d in problem.dependences.iter().filter(|d| d.to == x && products.contains(&d.from))
            {
                let body = |o: usize| i64::from(self.ahead[o]);
                let same = d.distance + body(d.from) - body(x) == 0;
                let place = list[..at].iter().position(|o| *o == d.from).filter(|_| same);
                let Some(place) = place else { continue };
                if !products.contains(&x) || waits(d.from, x) {
                    let later = list[place + 1..at].iter().filter(|o| products.contains(o));
                    left = left.min(later.count());
                }
            }
            if left < flying {
                out.push((x, left));
                flying = left;
            }
            flying += usize::from(products.contains(&x));
        }
        out
    }
}
