//! Plans barriers, commits and waits from dependences ([`plan`]).
//!
//! A barrier stands between two accesses of different threads that depend on each other: on every
//! way from one to the other, where all threads of the block pass. Barriers are put where the
//! fewest are executed: one serves every dependence whose ways it is on
//! ([`hitting_set`](super::hitting_set)). The elements that an asynchronous copy writes are there
//! once its group is waited for and a barrier has followed; until then nothing else may touch them,
//! and nothing may write the elements that the copy reads. The wait stands before the barrier and
//! leaves as many groups in flight as every iteration allows.
//!
//! Groups are committed where a run of copies ends, outside of an `if` around them, so that every
//! iteration of a loop commits one; where that is too late, because the copy is needed before, the
//! group ends there. Nothing is in flight when the block ends.
//!
//! Leaves that a user wrote for single threads are ordered by the barriers of the text and by the
//! operations of the block between them. Such an operation comes after everything before it; it is
//! gone once it is decomposed, so a barrier takes its place if one is needed. No statement is put
//! inside of a statement without an operation of the block, except waits for copies that the text
//! does not call asynchronous. A barrier stands only where all threads of the block pass; if that
//! is impossible, the operation is refused.

use super::dependences::Dependences;
use super::facts::{Asynchronous, Facts};
use super::gaps::Taken;
use super::paths::Commits;
use super::planner::{Need, Planner};
use super::refusal;
use super::tree::Tree;
use crate::plan::roles::Roles;
use crate::plan::solution::Solution;
use crate::plan::sync::{Arrival, Place, Sync};
use carbyne_atoms::AtomTable;
use carbyne_ir::diag::Diagnostic;
use carbyne_ir::program::{Program, SpecId};
use std::collections::{BTreeMap, BTreeSet};

/// The synchronization that the chosen instructions need.
///
/// # Errors
/// A barrier is needed where not all threads of the block pass.
pub(crate) fn plan(
    p: &Program,
    kernel: SpecId,
    solution: &Solution,
    table: &AtomTable,
    roles: &Roles,
) -> Result<BTreeMap<Place, Sync>, Box<Diagnostic>> {
    let Some(body) = &p.specs[kernel].body else { return Ok(BTreeMap::new()) };
    let facts = Facts::new(p, kernel, solution, table, roles);
    // Where no operation of the block has been taken apart, the text orders all but what it does
    // not call asynchronous.
    let unsaid = facts.asynchronous.values().any(|a| *a == Asynchronous::Unsaid);
    let alone = roles.handed.is_empty();
    if alone && !unsaid && !body.iter().any(|s| facts.has_operation(s)) {
        return Ok(BTreeMap::new());
    }
    let tree = Tree::new(&facts, body);
    // Barriers inside of operations stand wherever these do.
    for at in 0..tree.nodes.len() {
        if tree.spec(at).is_some_and(|id| facts.exchanges(id))
            && !tree.meet(at, &tree.who(&facts, at))
        {
            return Err(refusal::diverged(&facts, &tree, at));
        }
    }
    let mut found = Dependences {
        facts: &facts,
        tree: &tree,
        found: Default::default(),
        masks: Default::default(),
        offsets: Default::default(),
        overtaken: None,
    };
    let accesses = found.accesses();
    let dependences = found.all(&accesses);
    if let Some((from, to)) = found.overtaken {
        return Err(refusal::overtaken(&facts, &tree, from, to));
    }
    let mut planner = Planner {
        facts: &facts,
        kernel,
        tree: &tree,
        accesses: &accesses,
        dependences: &dependences,
        inside: BTreeSet::new(),
        ends: BTreeSet::new(),
    };
    // Every round ends a group earlier, or is the last.
    loop {
        if let Some(plan) = planner.settle()? {
            return Ok(plan);
        }
    }
}

impl Planner<'_, '_> {
    /// A plan; none where a group must end earlier, which is noted.
    fn settle(&mut self) -> Result<Option<BTreeMap<Place, Sync>>, Box<Diagnostic>> {
        let mut plan = BTreeMap::new();
        self.commits(&self.tree.roots, &mut plan);
        let mut commits = Commits::new(self.tree, &plan);
        let mut barriers = vec![];
        let mut waits = vec![];
        for d in self.dependences {
            let taken = match self.taken(d, &commits)? {
                Some(taken) => taken,
                None if self.end_group(d) => return Ok(None),
                // The group ends where it is needed.
                None => {
                    let Some(at) = self.last_gap(d) else {
                        return Err(refusal::unordered(self, d));
                    };
                    self.put(&mut plan, at).commit_before = true;
                    commits = Commits::new(self.tree, &plan);
                    if d.threads {
                        Taken::Barrier(vec![at], vec![(at, 0)])
                    } else {
                        Taken::Wait(vec![(at, 0)])
                    }
                }
            };
            match taken {
                Taken::Nothing => {}
                Taken::Barrier(gaps, at) => {
                    let copy = Some(d.from);
                    let need = Need { places: at, barrier: true, copy };
                    waits.extend((!need.places.is_empty()).then_some(need));
                    barriers.push((gaps, self.scope(d)));
                }
                Taken::Wait(places) => {
                    waits.push(Need { places, barrier: false, copy: Some(d.from) });
                }
            }
        }
        let told = self.told(&commits, &mut plan).into_iter();
        waits.extend(told.map(|at| Need { places: vec![at], barrier: false, copy: None }));
        let (chosen, mut left) = self.chosen(&barriers, &waits);
        self.without_idle(&chosen, &waits, &commits, &mut left);
        for at in &chosen {
            let served = barriers.iter().filter(|(gaps, _)| gaps.contains(at));
            let all = served.map(|(_, scope)| scope.clone()).reduce(|a, b| a.or(&b));
            let Some(barrier) = all.and_then(|all| self.barrier(*at, &all)) else {
                return Err(refusal::diverged(self.facts, self.tree, *at));
            };
            self.put(&mut plan, *at).barrier = Some(barrier);
        }
        for (at, n) in &left {
            self.put(&mut plan, *at).wait = Some(*n);
        }
        self.end(&left, &mut plan);
        self.arrivals(&mut plan);
        Ok(Some(plan))
    }

    /// What arrivals at the mbarriers of stages are: of asynchronous copies, or of the threads
    /// themselves.
    fn arrivals(&self, plan: &mut BTreeMap<Place, Sync>) {
        for handed in &self.facts.roles.handed {
            // Those of another kernel are planned with it.
            let here = (0..self.tree.nodes.len()).any(|at| self.tree.key(at) == handed.init);
            // Where the copy engine fills stages it says so itself.
            if !here || handed.arrivals.is_empty() {
                continue;
            }
            let mut all = 0;
            for by in &handed.arrivals {
                let (mut asynchronous, mut plain) = (false, false);
                for at in 0..self.tree.nodes.len() {
                    let fills = self.tree.spec(at).filter(|id| self.facts.fills(*id, handed));
                    let own = self.tree.chain(at).any(|a| self.tree.key(a) == by.within);
                    if let Some(id) = fills.filter(|_| own) {
                        let text = self.facts.asynchronous.get(&id);
                        let copies = self.facts.copies.contains(&id) || text.is_some();
                        asynchronous |= copies;
                        // Of what the text does not call asynchronous it is not certain.
                        plain |= !copies || text == Some(&Asynchronous::Unsaid);
                    }
                }
                all += by.threads * (i64::from(asynchronous) + i64::from(plain)).max(1);
                plan.entry(by.at).or_default().arrival = match (asynchronous, plain) {
                    (true, false) => None,
                    (true, true) => Some(Arrival::Both),
                    (false, _) => Some(Arrival::Plain),
                };
            }
            plan.entry(handed.init).or_default().count = Some(all);
        }
    }
}
