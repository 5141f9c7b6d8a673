//! Control flow, for the blocks of a cluster side by side: each statement is executed by every block before
//! the next one begins, so that what blocks do to each other happens in the order of the text.

use super::check::Expectation;
use super::{Runner, blame};
use crate::index::{BadIndex, LoopValue};
use crate::plan::{Checked, Kernel, Mask, Node};
use crate::state::Arrival;

/// The blocks of a cluster, in the order of their ranks.
pub(super) struct Cluster<'k> {
    pub(super) kernel: &'k Kernel<'k>,
    pub(super) runners: Vec<Runner<'k>>,
}

/// What a statement of one block does to another.
pub(super) struct Outgoing {
    /// The other block.
    pub(super) rank: usize,
    /// The statement and the thread.
    pub(super) site: u32,
    pub(super) thread: usize,
    /// The mbarrier's byte in shared memory, and its name.
    pub(super) byte: usize,
    pub(super) name: String,
    /// What arrives there.
    pub(super) arrival: Arrival,
}

impl<'k> Cluster<'k> {
    pub(super) fn nodes(&mut self, nodes: &'k [Node], active: &[Mask]) -> Checked<()> {
        nodes.iter().try_for_each(|node| self.node(node, active))
    }

    /// Blocks of which some thread is active, with those threads.
    fn each<'m>(
        &mut self,
        active: &'m [Mask],
    ) -> impl Iterator<Item = (usize, &mut Runner<'k>, &'m Mask)> + use<'_, 'm, 'k> {
        let all = self.runners.iter_mut().zip(active).enumerate();
        all.filter(|(_, (_, mask))| !mask.is_empty()).map(|(i, (runner, mask))| (i, runner, mask))
    }

    fn node(&mut self, node: &'k Node, active: &[Mask]) -> Checked<()> {
        let nobody = || vec![Mask::NONE; active.len()];
        match node {
            Node::Leaf(i) => {
                self.each(active).try_for_each(|(_, runner, mask)| runner.leaf(*i, mask))?;
                self.deliver()
            }
            Node::Body { crew, site, check, body } => {
                let kernel = self.kernel;
                let mut inner = nobody();
                let mut expected: Vec<(usize, Vec<Expectation>)> = Vec::new();
                let check = check.map(|i| &kernel.checks[i]);
                for (rank, runner, mask) in self.each(active) {
                    let squad = kernel.crews[*crew].squad(&runner.block.env)?;
                    inner[rank] = mask.and(&squad.mask);
                    if let Some(check) = check.filter(|_| runner.mode.check)
                        && !inner[rank].is_empty()
                    {
                        let values = runner.expect(check, &squad, &inner[rank], *site)?;
                        expected.push((rank, values));
                    }
                }
                if inner.iter().all(Mask::is_empty) {
                    return Ok(());
                }
                self.nodes(body, &inner)?;
                let Some(check) = check else { return Ok(()) };
                let compare = |(rank, values): &(usize, Vec<Expectation>)| {
                    self.runners[*rank].compare(check, values)
                };
                expected.iter().try_for_each(compare)
            }
            Node::Allocate(buffer) => {
                for (_, runner, mask) in self.each(active) {
                    if let Some(i) = buffer {
                        mask.threads().for_each(|t| runner.block.registers[*i].clear(t));
                    }
                }
                Ok(())
            }
            Node::For { slot, start, end, step, site, body, .. } => {
                let kernel = self.kernel;
                let bad = |e: BadIndex| blame::bad_index(kernel, *site, e);
                let uniform = start.is_uniform() && end.is_uniform();
                let mut counters = Vec::with_capacity(active.len());
                for (runner, mask) in self.runners.iter().zip(active) {
                    counters.push(match (mask.is_empty(), uniform) {
                        (true, _) => (LoopValue::Uniform(0), LoopValue::Uniform(0)),
                        (false, true) => {
                            let first = start.base(&runner.block.env).map_err(bad)?;
                            let last = end.base(&runner.block.env).map_err(bad)?;
                            (LoopValue::Uniform(first), LoopValue::Uniform(last))
                        }
                        (false, false) => {
                            let mut values = vec![0i64; kernel.n_threads];
                            let mut ends = vec![0i64; kernel.n_threads];
                            for t in mask.threads() {
                                values[t] = runner.index(start, t, *site)?;
                                ends[t] = runner.index(end, t, *site)?;
                            }
                            (LoopValue::ByThread(values), LoopValue::ByThread(ends))
                        }
                    });
                }
                loop {
                    let mut going = nobody();
                    for ((mask, all), counter) in going.iter_mut().zip(active).zip(&counters) {
                        *mask = still_going(counter, all);
                    }
                    if going.iter().all(Mask::is_empty) {
                        return Ok(());
                    }
                    for (rank, runner, _) in self.each(&going) {
                        runner.block.env.loops[*slot] = counters[rank].0.clone();
                    }
                    self.nodes(body, &going)?;
                    for (value, _) in &mut counters {
                        match value {
                            LoopValue::Uniform(v) => *v = v.saturating_add(*step),
                            LoopValue::ByThread(all) => {
                                all.iter_mut().for_each(|v| *v = v.saturating_add(*step));
                            }
                        }
                    }
                }
            }
            Node::If { cond, site, then, otherwise } => {
                let kernel = self.kernel;
                let (mut yes, mut no) = (nobody(), nobody());
                for (rank, runner, mask) in self.each(active) {
                    for t in mask.threads() {
                        let mut all = true;
                        for c in cond {
                            let holds = c.holds(&runner.block.env, t);
                            all = all && holds.map_err(|e| blame::bad_index(kernel, *site, e))?;
                        }
                        if all {
                            yes[rank].insert(t);
                        }
                    }
                    no[rank] = mask.without(&yes[rank]);
                }
                for (side, nodes) in [(yes, then), (no, otherwise)] {
                    if side.iter().any(|mask| !mask.is_empty()) {
                        self.nodes(nodes, &side)?;
                    }
                }
                Ok(())
            }
            Node::Barrier { crew, site } => self
                .each(active)
                .try_for_each(|(_, runner, mask)| runner.barrier(*crew, *site, mask)),
            Node::Sync(sync) => {
                self.each(active).try_for_each(|(_, runner, mask)| runner.sync(sync, mask))?;
                self.deliver()?;
                let full = self.runners.iter().all(|r| r.block.cluster_is_full());
                if full {
                    self.runners.iter_mut().for_each(|r| r.block.cluster_completes());
                }
                Ok(())
            }
        }
    }

    /// Hands on what the last statement does to other blocks.
    fn deliver(&mut self) -> Checked<()> {
        for rank in 0..self.runners.len() {
            for out in std::mem::take(&mut self.runners[rank].outgoing) {
                let Some(other) = self.runners.get_mut(out.rank) else { continue };
                let name = format!("{} of block {}", out.name, other.block.env.block);
                let done = other.block.remote_arrives(out.byte, out.arrival);
                done.map_err(|fault| {
                    self.runners[rank].barrier_fault(out.site, out.thread, &name, fault)
                })?;
            }
        }
        Ok(())
    }
}

/// The threads whose counter is below its end.
fn still_going((value, end): &(LoopValue, LoopValue), active: &Mask) -> Mask {
    match (value, end) {
        (LoopValue::Uniform(v), LoopValue::Uniform(e)) => {
            if v < e {
                *active
            } else {
                Mask::NONE
            }
        }
        (LoopValue::ByThread(v), LoopValue::ByThread(e)) => {
            let mut going = Mask::NONE;
            active.threads().filter(|t| v[*t] < e[*t]).for_each(|t| going.insert(t));
            going
        }
        _ => Mask::NONE,
    }
}
