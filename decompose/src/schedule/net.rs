//! [`Net`] holds difference constraints between starts, closed under paths: σ(j) − σ(i) ≥
//! longest(i, j).
//!
//! A system of difference constraints has a solution if and only if its graph has no cycle of
//! positive weight (Bellman 1958; Cormen et al., Introduction to Algorithms, chapter 24). All
//! longest paths are kept, so that a constraint is added, or found to be impossible, in time
//! quadratic in the number of operations, and the window of any two starts is read off.

/// No constraint.
const NONE: i64 = i64::MIN;

/// All longest paths between operations, and from and to the origin, the cycle 0 that no operation
/// starts before.
#[derive(Clone, Debug)]
pub(super) struct Net {
    /// Operations and the origin, which is the last.
    n: usize,
    longest: Vec<i64>,
}

impl Net {
    /// The net of these constraints (from, to, cycles) between so many operations; none where they
    /// contradict each other.
    pub(super) fn new(
        operations: usize,
        constraints: impl IntoIterator<Item = (usize, usize, i64)>,
    ) -> Option<Net> {
        let n = operations + 1;
        let mut net = Net { n, longest: vec![NONE; n * n] };
        for i in 0..n {
            net.longest[i * n + i] = 0;
            net.longest[operations * n + i] = 0;
        }
        for (from, to, cycles) in constraints {
            let known = &mut net.longest[from * n + to];
            *known = (*known).max(cycles);
        }
        // Floyd and Warshall.
        for via in 0..n {
            for from in 0..n {
                let first = net.longest[from * n + via];
                net.raise(from, first, via);
            }
        }
        (0..n).all(|i| net.longest[i * n + i] <= 0).then_some(net)
    }

    /// Raises all paths from an operation that may go on from `via`, where so many cycles lead.
    fn raise(&mut self, from: usize, first: i64, via: usize) {
        if first == NONE {
            return;
        }
        for to in 0..self.n {
            let second = self.longest[via * self.n + to];
            let known = &mut self.longest[from * self.n + to];
            if second != NONE {
                *known = (*known).max(first + second);
            }
        }
    }

    pub(super) fn origin(&self) -> usize {
        self.n - 1
    }

    /// At least so many cycles lie between two starts; none where nothing is known.
    pub(super) fn least(&self, from: usize, to: usize) -> Option<i64> {
        let known = self.longest[from * self.n + to];
        (known != NONE).then_some(known)
    }

    /// The earliest start of an operation.
    pub(super) fn earliest(&self, operation: usize) -> i64 {
        self.longest[self.origin() * self.n + operation]
    }

    /// The earliest starts of all, which together are a solution: of all solutions the one in which
    /// each start is least.
    pub(super) fn starts(&self) -> Vec<i64> {
        (0..self.origin()).map(|i| self.earliest(i)).collect()
    }

    /// Adds that at least so many cycles lie between two starts; false where that is impossible.
    pub(super) fn add(&mut self, from: usize, to: usize, cycles: i64) -> bool {
        if self.least(from, to).is_some_and(|known| known >= cycles) {
            return true;
        }
        if self.least(to, from).is_some_and(|back| back + cycles > 0) {
            return false;
        }
        for i in 0..self.n {
            if let Some(before) = self.least(i, from) {
                self.raise(i, before + cycles, to);
            }
        }
        true
    }
}
