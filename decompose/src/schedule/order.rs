//! Barriers, commits and waits from dependences.
//!
//! Between two accesses that depend on each other, by different threads, stands a barrier: on every way from one to the
//! other, where all threads of the block pass. Barriers are put where the fewest are executed: one serves every
//! dependence whose ways it is on ([`cover`]). What an asynchronous copy writes is there once its group is waited for
//! and a barrier has passed the news on; till then nothing else may touch it, and nobody may write what the copy reads.
//! The wait stands before the barrier and leaves in flight what every iteration allows.
//!
//! Groups are committed where a run of copies ends, outside of an `if` around them, so that every iteration of a loop
//! commits one; where that is too late, because the copy is needed before, the group ends there. Nothing is in flight
//! when the block ends.
//!
//! Leaves that a person wrote for single threads are ordered as they are written, by barriers of the text and by
//! operations of the block between them, which come after everything before them: the latter are gone once the operation
//! is decomposed, so that a barrier takes their place where one is needed. No statement is put inside of what has no
//! operation of the block in it, save waits for copies that the text does not call asynchronous; and a barrier stands
//! only where all threads of the block pass. Where that is impossible the operation is refused.

use super::access::{Mask, members};
use super::cover;
use super::depend::{Access, Dependence, Dependences};
use super::facts::{Asynchronous, Facts};
use super::paths::{Commits, Passed, Side, Step};
use super::roles::Roles;
use super::tree::{At, Tree, Turns, synchronizes, waits};
use super::{Arrival, Barrier, Place, Sync};
use crate::solve::{Solution, ops};
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::SyncOp;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Program, SpecId, StmtKind};
use carbyne_ir::span::Span;
use std::collections::{BTreeMap, BTreeSet, HashMap};

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
    // Where no operation of the block has been taken apart, the text orders all but what it does not call
    // asynchronous.
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
            return Err(diverged(&facts, &tree, at));
        }
    }
    let mut found =
        Dependences { facts: &facts, tree: &tree, found: Default::default(), overtaken: None };
    let accesses = found.accesses();
    let dependences = found.all(&accesses);
    if let Some((from, to)) = found.overtaken {
        return Err(overtaken(&facts, &tree, from, to));
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

struct Planner<'a, 'p> {
    facts: &'a Facts<'p>,
    kernel: SpecId,
    tree: &'a Tree<'p>,
    accesses: &'a [Access],
    dependences: &'a [Dependence],
    /// Statements inside of which groups are committed, and not after them.
    inside: BTreeSet<At>,
    /// Statements after which a group ends.
    ends: BTreeSet<At>,
}

/// A place where a wait may stand, and how many groups it may leave in flight.
type Wait = (At, i64);

/// Where a wait for a copy may stand: at one of these places.
struct Need {
    places: Vec<Wait>,
    /// Whether a barrier must follow before the second access.
    barrier: bool,
    /// The copy, where the wait is for one.
    copy: Option<At>,
}

/// What a dependence takes.
enum Taken {
    /// What stands there already.
    Nothing,
    /// A barrier at one of these, with a wait before it for an asynchronous access.
    Barrier(Vec<At>, Vec<Wait>),
    /// A wait alone at one of these, in the order of the way.
    Wait(Vec<Wait>),
}

impl Need {
    /// The places after which a barrier follows, where one must.
    fn before(&self, barriers: &BTreeSet<At>) -> &[Wait] {
        let last = self.places.iter().rposition(|(at, _)| barriers.contains(at));
        match last.filter(|_| self.barrier) {
            Some(last) => &self.places[..=last],
            None => &self.places,
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
                        return Err(self.unordered(d));
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
                return Err(diverged(self.facts, self.tree, *at));
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

    /// Where barriers are put, and waits with what they leave in flight.
    fn chosen(
        &self,
        barriers: &[(Vec<At>, Mask)],
        waits: &[Need],
    ) -> (BTreeSet<At>, BTreeMap<At, i64>) {
        /// Places that a first choice is made with.
        const STARTS: usize = 256;
        let barriers: Vec<Vec<At>> = barriers.iter().map(|(gaps, _)| gaps.clone()).collect();
        let chosen = cover::cheapest(&barriers, |at| self.tree.times(at));
        // A barrier elsewhere, or one more, pays where waits then leave more in flight.
        let candidates: BTreeSet<At> = barriers.iter().flatten().copied().collect();
        let with = |at: &At| -> BTreeSet<At> {
            let rest: Vec<Vec<At>> =
                barriers.iter().filter(|gaps| !gaps.contains(at)).cloned().collect();
            let rest = cover::cheapest(&rest, |at| self.tree.times(at));
            rest.into_iter().chain([*at]).collect()
        };
        let starts = candidates.iter().take(STARTS).map(with);
        let starts = std::iter::once(chosen).chain(starts);
        // How much is executed between barriers and what they are for, in statements.
        let early = |places: &BTreeSet<At>| -> usize {
            let of =
                |gaps: &Vec<At>| gaps.iter().rev().take_while(|at| !places.contains(at)).count();
            barriers.iter().map(of).sum()
        };
        let of = |places: BTreeSet<At>| (self.waits(&places, waits).0, early(&places), places);
        // Of equals those that come late: threads and copies have the most time until then.
        let better = |a: &(f64, usize, _), b: &(f64, usize, _)| {
            a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1))
        };
        let best = starts.map(of).min_by(better);
        let (_, _, places) = best.unwrap_or_default();
        self.improved(places, &barriers, waits)
    }

    /// A set of barriers that none of its neighbors is cheaper than, with the waits: a neighbor does without one, or has
    /// it at another place.
    fn improved(
        &self,
        mut places: BTreeSet<At>,
        barriers: &[Vec<At>],
        waits: &[Need],
    ) -> (BTreeSet<At>, BTreeMap<At, i64>) {
        /// Sets whose cost is computed.
        const LOOK: usize = 2048;
        let (mut cost, mut left) = self.waits(&places, waits);
        let mut looked = 0;
        loop {
            let mut best: Option<(f64, BTreeSet<At>, BTreeMap<At, i64>)> = None;
            for at in places.clone() {
                let mut rest = places.clone();
                rest.remove(&at);
                let unhit = |gaps: &&Vec<At>| !gaps.iter().any(|at| rest.contains(at));
                let mut unhit = barriers.iter().filter(unhit);
                // Places that serve all that this one alone serves.
                let instead: Vec<Option<At>> = match unhit.next() {
                    None => vec![None],
                    Some(first) => {
                        let more: Vec<&Vec<At>> = unhit.collect();
                        let serves = |b: &&At| **b != at && more.iter().all(|g| g.contains(b));
                        let own: BTreeSet<At> = first.iter().filter(serves).copied().collect();
                        own.into_iter().map(Some).collect()
                    }
                };
                for other in instead {
                    looked += 1;
                    if looked > LOOK {
                        break;
                    }
                    let set: BTreeSet<At> = rest.iter().copied().chain(other).collect();
                    let (sum, waits) = self.waits(&set, waits);
                    if sum < best.as_ref().map_or(cost, |(least, ..)| *least) {
                        best = Some((sum, set, waits));
                    }
                }
            }
            match best {
                Some(better) => (cost, places, left) = better,
                None => return (places, left),
            }
        }
    }

    /// Leaves out waits outside of loops for copies that others have waited for by then.
    fn without_idle(
        &self,
        barriers: &BTreeSet<At>,
        needs: &[Need],
        commits: &Commits,
        left: &mut BTreeMap<At, i64>,
    ) {
        let outside: Vec<At> =
            left.keys().copied().filter(|at| self.tree.loops(*at).is_empty()).collect();
        for at in outside {
            let mut others = left.clone();
            others.remove(&at);
            let done = |need: &Need| {
                let places = need.before(barriers);
                !places.iter().any(|(place, _)| *place == at)
                    || places.iter().any(|(w, n)| others.get(w).is_some_and(|m| m <= n))
                    || need.copy.is_some_and(|copy| self.is_done(copy, &others, at, commits))
            };
            if needs.iter().all(done) {
                *left = others;
            }
        }
    }

    /// What is put at a statement.
    fn put<'s>(&self, plan: &'s mut BTreeMap<Place, Sync>, at: At) -> &'s mut Sync {
        plan.entry(self.tree.key(at)).or_default()
    }

    /// What a wait costs: how often it is executed, and more the fewer groups it leaves.
    fn stall(&self, (at, n): Wait) -> f64 {
        /// A wait for the last group, in units of one that nothing is left to wait for.
        const STALL: f64 = 9.0;
        self.tree.times(at) * (1.0 + (STALL - 1.0) / (n + 1) as f64)
    }

    /// How many groups waits leave in flight, and where: for every access at one of its places, which is followed by a
    /// barrier where one is needed. With what these waits and the barriers cost.
    fn waits(&self, barriers: &BTreeSet<At>, needs: &[Need]) -> (f64, BTreeMap<At, i64>) {
        let mut open: Vec<(&[Wait], f64)> = vec![];
        for need in needs {
            let places = need.before(barriers);
            let least = places.iter().map(|w| self.stall(*w)).fold(f64::INFINITY, f64::min);
            open.push((places, least));
        }
        // What costs most first: where that stands much of the rest is served.
        open.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.len().cmp(&b.len())));
        let mut left: BTreeMap<At, i64> = BTreeMap::new();
        for (places, _) in open {
            let more = |(at, n): Wait| match left.get(&at) {
                Some(m) => self.stall((at, n.min(*m))) - self.stall((at, *m)),
                None => self.stall((at, n)),
            };
            let best = places.iter().rev().min_by(|a, b| more(**a).total_cmp(&more(**b)));
            if let Some((at, n)) = best {
                let known = left.entry(*at).or_insert(*n);
                *known = (*known).min(*n);
            }
        }
        let cost: f64 = barriers.iter().map(|at| self.tree.times(*at)).sum();
        (cost + left.iter().map(|(at, n)| self.stall((*at, *n))).sum::<f64>(), left)
    }

    /// The threads that a barrier for a dependence is for.
    fn scope(&self, d: &Dependence) -> Mask {
        self.who(d.from).or(&self.who(d.to))
    }

    /// The threads that execute a statement.
    fn who(&self, at: At) -> Mask {
        self.tree.who(self.facts, at)
    }

    /// The barrier before a statement for these threads: of the fewest warps that have a name; none where no name stands
    /// for those that are there.
    fn barrier(&self, at: At, threads: &Mask) -> Option<Barrier> {
        let here = self.tree.node(at).threads.clone()?;
        let (whole, here) = ((0, self.facts.threads), (here.warps()?, here));
        let own = threads.warps()?;
        let everybody = here.1.count() == self.facts.threads;
        if own == whole || everybody && threads.count() == self.facts.threads {
            return Some(Barrier::Block);
        }
        let named = |range: (i64, i64)| {
            let name = ops::name_of(self.facts.p, self.kernel, range);
            (!name.is_empty()).then_some(name)
        };
        match named(own) {
            Some(name) if own == here.0 && !everybody => Some(Barrier::Here(name)),
            Some(threads) => {
                let p = self.facts.p;
                let blocks = p.threads[p.specs[self.kernel].exec?.blocks].root;
                Some(Barrier::Of { blocks: p.threads[blocks].name.clone()?, threads })
            }
            None if everybody => Some(Barrier::Block),
            None => named(here.0).map(Barrier::Here),
        }
    }

    /// Whether a barrier of the text, or in the body of an operation, stands there for all these threads.
    fn is_barrier(&self, at: At, scope: &Mask) -> bool {
        let node = self.tree.node(at);
        match &node.stmt.kind {
            StmtKind::Barrier(threads) => {
                let all = Mask::first(self.facts.threads);
                let waiting =
                    threads.map_or(Some(all), |t| members(self.facts.p, t, &HashMap::new()));
                // Groups that wait each for itself are no barrier of all of them.
                let whole = threads.is_none_or(|t| self.facts.p.threads[t].own == 0);
                whole && waiting.is_some_and(|w| w.covers(scope) && self.tree.meet(at, &w))
            }
            StmtKind::Spec(id) => self.facts.exchanges(*id) && self.who(at).covers(scope),
            StmtKind::Allocate(_)
            | StmtKind::Indices(_)
            | StmtKind::For { .. }
            | StmtKind::If { .. }
            | StmtKind::Sync(_) => false,
        }
    }

    /// Whether a barrier for these threads may be put before a statement.
    fn takes_barrier(&self, at: At, scope: &Mask) -> bool {
        let node = self.tree.node(at);
        node.place
            && self.tree.meet(at, scope)
            && !self.facts.roles.beside.contains(&self.tree.key(at))
            && node.by_hand.is_none_or(|outermost| outermost == at)
    }

    /// Whether a wait for a copy may be: also inside of what a person wrote, for a copy in there.
    fn takes_wait(&self, d: &Dependence, at: At) -> bool {
        let node = self.tree.node(at);
        let beside = || {
            node.by_hand.is_some_and(|outermost| self.tree.holds(outermost, d.from)) && at == d.to
        };
        self.takes_barrier(at, &self.who(d.from)) || node.place && beside()
    }

    /// How many groups are committed after that of an access, where it has one by then.
    fn flying(&self, d: &Dependence, step: Step, commits: &Commits) -> Option<i64> {
        let waits = d.waits.as_ref()?;
        let of = |(x, y): &(Turns, Turns)| {
            let there = self.tree.turns_at(d, step, (x, y));
            commits.between(self.tree, (d.from, x), (step.at, &there))
        };
        let n = waits.iter().map(of).min()? - 1;
        (n >= 0).then_some(n)
    }

    /// What a dependence takes; none where its copy has no group in time.
    fn taken(&self, d: &Dependence, commits: &Commits) -> Result<Option<Taken>, Box<Diagnostic>> {
        let way = self.tree.way(d);
        let scope = self.scope(d);
        let barrier = |p: &Passed| matches!(p, Passed::Whole(s) if self.is_barrier(s.at, &scope));
        let takes_barrier = |at: At| self.takes_barrier(at, &scope);
        let gaps = || way.iter().filter_map(Passed::gap);
        let open: Vec<At> = gaps().map(|s| s.at).filter(|at| takes_barrier(*at)).collect();
        if d.waits.is_none() {
            if way.iter().any(barrier) {
                return Ok(Some(Taken::Nothing));
            }
            if open.is_empty() {
                return Err(self.unordered(d));
            }
            return Ok(Some(Taken::Barrier(open, vec![])));
        }
        // Where the text waits for it.
        let waited = way.iter().position(|p| {
            let Passed::Whole(step) = p else { return false };
            let StmtKind::Sync(s) = &self.tree.node(step.at).stmt.kind else { return false };
            let n = s.number.map_or(Some(i64::MAX), |n| n.as_const());
            s.op == SyncOp::AsyncWait
                && self.tree.meet(step.at, &self.who(d.from))
                && self.flying(d, *step, commits).zip(n).is_some_and(|(all, n)| n <= all)
        });
        if let Some(i) = waited {
            if !d.threads || way[i..].iter().any(barrier) {
                return Ok(Some(Taken::Nothing));
            }
            let later = way[i..].iter().filter_map(Passed::gap).map(|s| s.at);
            let later: Vec<At> = later.filter(|at| takes_barrier(*at)).collect();
            return match later.is_empty() {
                true => Err(self.unordered(d)),
                false => Ok(Some(Taken::Barrier(later, vec![]))),
            };
        }
        let in_time = |s: Step| Some((s.at, self.flying(d, s, commits)?));
        if !d.threads {
            let waits: Vec<Wait> =
                gaps().filter(|s| self.takes_wait(d, s.at)).filter_map(in_time).collect();
            if waits.is_empty() && !gaps().any(|s| self.takes_wait(d, s.at)) {
                return Err(self.unordered(d));
            }
            return Ok((!waits.is_empty()).then_some(Taken::Wait(waits)));
        }
        // Before a barrier that stands there.
        if let Some(last) = way.iter().rposition(barrier) {
            let places = way[..last].iter().filter_map(Passed::gap);
            let places: Vec<Wait> =
                places.filter(|s| self.takes_wait(d, s.at)).filter_map(in_time).collect();
            if !places.is_empty() {
                return Ok(Some(Taken::Wait(places)));
            }
        }
        if open.is_empty() {
            return Err(self.unordered(d));
        }
        let waits: Vec<Wait> = gaps().filter(|s| takes_barrier(s.at)).filter_map(in_time).collect();
        let gaps = waits.iter().map(|(at, _)| *at).collect();
        Ok((!waits.is_empty()).then_some(Taken::Barrier(gaps, waits)))
    }

    /// The error for a dependence that nothing can order.
    fn unordered(&self, d: &Dependence) -> Box<Diagnostic> {
        if self.who(d.from) == self.who(d.to) {
            return diverged(self.facts, self.tree, d.to);
        }
        let (first, _) = place(self.facts, self.tree, d.from);
        let (span, kind) = place(self.facts, self.tree, d.to);
        let message = format!("nothing orders this {kind} with what other threads execute");
        let parted = [d.from, d.to].iter().all(|at| {
            self.tree.chain(*at).any(|a| self.facts.roles.loops.contains(&self.tree.key(a)))
        });
        let code = if parted { Code::Role } else { Code::NotDecomposed };
        Box::new(
            Diagnostic::new(code, span, message)
                .label("it touches what they touch")
                .related(first, "there")
                .help("put a statement to which all threads of the block come between both"),
        )
    }

    /// What arrivals at the mbarriers of stages are: of asynchronous copies, or of the threads themselves.
    fn arrivals(&self, plan: &mut BTreeMap<Place, Sync>) {
        for handed in &self.facts.roles.handed {
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

    /// The last place for a wait before the second access.
    fn last_gap(&self, d: &Dependence) -> Option<At> {
        let way = self.tree.way(d);
        let mut gaps = way.iter().filter_map(Passed::gap).map(|step| step.at);
        let fits = |at: &At| match d.threads {
            true => self.takes_barrier(*at, &self.scope(d)),
            false => self.takes_wait(d, *at),
        };
        gaps.rfind(fits)
    }

    /// Ends the group of a copy before a statement that needs it; whether that is news.
    fn end_group(&mut self, d: &Dependence) -> bool {
        if self.facts.by_hand {
            return false;
        }
        let path = |at: At| {
            let mut out: Vec<At> =
                self.tree.chain(at).filter(|a| self.tree.node(*a).place).collect();
            out.reverse();
            out
        };
        let (issuer, needs) = (path(d.from), path(d.to));
        let common = issuer.iter().zip(&needs).take_while(|(a, b)| a == b).count();
        let mut news = false;
        for at in &issuer[..common.min(issuer.len().saturating_sub(1))] {
            news |= self.inside.insert(*at);
        }
        if let Some(own) = issuer.get(common) {
            news |= self.ends.insert(*own);
        }
        news
    }

    /// Whether a statement issues asynchronous copies, other than in loops of its own.
    fn issues(&self, at: At) -> bool {
        if self.inside.contains(&at) {
            return false;
        }
        let node = self.tree.node(at);
        match &node.stmt.kind {
            StmtKind::Spec(id) if self.facts.p.specs[*id].body.is_none() => {
                self.facts.issues_copy(*id)
            }
            StmtKind::For { .. } if node.operation => false,
            _ => node.lists.iter().flatten().any(|s| self.issues(*s)),
        }
    }

    /// Commits after every run of statements that issue asynchronous copies.
    fn commits(&self, list: &[At], plan: &mut BTreeMap<Place, Sync>) {
        if self.facts.by_hand {
            return;
        }
        for (i, &at) in list.iter().enumerate() {
            let node = self.tree.node(at);
            if node.place && self.issues(at) {
                // An allocation does nothing.
                let mut rest = list[i + 1..].iter();
                let next =
                    rest.find(|s| !matches!(self.tree.node(**s).stmt.kind, StmtKind::Allocate(_)));
                let goes_on = next.is_some_and(|next| self.issues(*next));
                if !goes_on || self.ends.contains(&at) {
                    self.put(plan, at).commit = true;
                }
                continue;
            }
            node.lists.iter().for_each(|list| self.commits(list, plan));
        }
    }

    /// Waits where threads tell others of what they have done: what the text does not call asynchronous is done there.
    fn told(&self, commits: &Commits, plan: &mut BTreeMap<Place, Sync>) -> Vec<Wait> {
        let mut out = vec![];
        for at in 0..self.tree.nodes.len() {
            let stmt = self.tree.node(at).stmt;
            let commits_only =
                matches!(&stmt.kind, StmtKind::Sync(s) if s.op == SyncOp::AsyncCommit);
            let tells = synchronizes(stmt) && !waits(stmt) && !commits_only;
            if !tells {
                continue;
            }
            let unsaid = self.accesses.iter().filter(|a| a.asynchronous && a.by_hand && a.write);
            for a in unsaid {
                let loops = self.tree.loops(at);
                let of = self.tree.loops(a.leaf);
                let both = of.iter().zip(&loops).take_while(|(x, y)| x == y).map(|(x, _)| *x);
                let same = self.tree.common(a.leaf, at).filter(|(x, y)| x < y).map(|_| None);
                for carried in both.map(Some).chain(same) {
                    let d = Dependence {
                        from: a.leaf,
                        to: at,
                        carried,
                        wraps: false,
                        enters: None,
                        threads: false,
                        waits: Some(vec![self.tree.nearest(a.leaf, at, carried)]),
                    };
                    let step = Step { at, side: Side::Second };
                    let n = self.flying(&d, step, commits);
                    if n.is_none() {
                        self.put(plan, at).commit_before = true;
                    }
                    out.push((at, n.unwrap_or(0)));
                }
            }
        }
        out
    }

    /// Nothing is in flight when the block ends: after the last statement a wait, unless every copy has been waited for.
    fn end(&self, waits: &BTreeMap<At, i64>, plan: &mut BTreeMap<Place, Sync>) {
        let commits = Commits::new(self.tree, plan);
        let copies: BTreeSet<At> =
            self.accesses.iter().filter(|a| a.asynchronous).map(|a| a.leaf).collect();
        if copies.iter().all(|at| self.is_done(*at, waits, self.tree.nodes.len(), &commits)) {
            return;
        }
        let last = self
            .tree
            .roots
            .iter()
            .rev()
            .find(|at| self.facts.first(self.tree.node(**at).stmt).is_some());
        let Some(&last) = last else { return };
        let open = copies.iter().any(|at| !self.is_committed(*at, &commits));
        let put = self.put(plan, last);
        put.drain = true;
        put.commit |= open;
    }

    /// Whether a copy belongs to a group when the block ends.
    fn is_committed(&self, at: At, commits: &Commits) -> bool {
        let turns = self.last_turns(at);
        turns.is_none_or(|turns| commits.to_end(self.tree, (at, &turns)) > 0)
    }

    /// The last iterations in which a copy is issued, as far as they are known; none where it never is.
    fn last_turns(&self, at: At) -> Option<Turns> {
        /// Iterations that are looked at from the end of a loop.
        const LOOK: i64 = 64;
        let loops = self.tree.loops(at);
        let mut turns: Turns = HashMap::new();
        for l in &loops {
            let n = self.tree.node(*l).of_loop.and_then(|l| l.trips).unwrap_or(1);
            turns.insert(*l, (n - 1).max(0));
        }
        // Conditions mostly depend on the innermost loop.
        let Some(inner) = loops.last() else {
            let env = self.tree.values(&turns);
            return self.tree.mask(self.facts, at, &env).map(|_| turns);
        };
        let from = turns[inner];
        for turn in (0..=from).rev().take(LOOK as usize) {
            turns.insert(*inner, turn);
            let env = self.tree.values(&turns);
            if self.tree.mask(self.facts, at, &env).is_some() {
                return Some(turns);
            }
        }
        turns.insert(*inner, from);
        Some(turns)
    }

    /// Whether a copy is waited for on every way to a statement, or to the end of the block.
    fn is_done(&self, at: At, waits: &BTreeMap<At, i64>, end: At, commits: &Commits) -> bool {
        let Some(turns) = self.last_turns(at) else { return true };
        let who = self.who(at);
        let of_text = |at: At| match &self.tree.node(at).stmt.kind {
            StmtKind::Sync(s) if s.op == SyncOp::AsyncWait && self.tree.meet(at, &who) => {
                Some(s.number.map_or(Some(0), |n| n.as_const()).unwrap_or(i64::MAX))
            }
            _ => None,
        };
        let all = (0..end).filter_map(|w| {
            let own = waits.get(&w).copied();
            let text = of_text(w);
            own.into_iter().chain(text).min().map(|n| (w, n))
        });
        all.into_iter().any(|(w, n)| {
            [true, false]
                .into_iter()
                .filter_map(|last| self.passes(at, &turns, w, last))
                .any(|there| commits.between(self.tree, (at, &turns), (w, &there)) > n)
        })
    }

    /// The iterations in which a statement is passed for certain after a copy in these: the last of loops, or the same.
    fn passes(&self, from: At, turns: &Turns, to: At, last: bool) -> Option<Turns> {
        if !self.tree.meet(to, &self.who(from)) {
            return None;
        }
        let mut there = Turns::new();
        let mut after = false;
        for l in self.tree.loops(to) {
            let own = turns.get(&l).filter(|_| self.tree.holds(l, from));
            let turn = match (self.tree.node(l).of_loop?.trips, own) {
                (Some(n), Some(_)) if n > 0 && last => n - 1,
                (Some(n), None) if n > 0 => n - 1,
                (_, Some(turn)) => *turn,
                _ => return None,
            };
            after |= own.is_some_and(|t| *t < turn);
            there.insert(l, turn);
        }
        // Under no condition but those that the copy stands under, in the same iteration.
        let certain = self.tree.chain(to).skip(1).all(|a| {
            let is_if = matches!(self.tree.node(a).stmt.kind, StmtKind::If { .. });
            let same = || self.tree.loops(a).iter().all(|l| there.get(l) == turns.get(l));
            !is_if || self.tree.holds(a, from) && same()
        });
        let later = self.tree.common(from, to).is_some_and(|(x, y)| x < y);
        (certain && (after || later)).then_some(there)
    }
}

/// What a statement is for errors: where it stands, and its kind.
fn place(facts: &Facts<'_>, tree: &Tree<'_>, at: At) -> (Span, String) {
    let stmt = tree.node(at).stmt;
    match tree.spec(at).or_else(|| facts.first(stmt)) {
        Some(id) => (facts.p.specs[id].span, facts.p.specs[id].kind.to_string()),
        None => (stmt.span, "statement".to_owned()),
    }
}

/// The error for a copy into a stage that the same threads touch again before they hand it over.
fn overtaken(facts: &Facts<'_>, tree: &Tree<'_>, from: At, to: At) -> Box<Diagnostic> {
    let (copy, _) = place(facts, tree, from);
    let (span, kind) = place(facts, tree, to);
    let message = format!("this {kind} touches what a copy to the same stage is still to write");
    Box::new(
        Diagnostic::new(Code::NotDecomposed, span, message)
            .label("asynchronous copies of a stage are waited for by those who read it alone")
            .related(copy, "the copy")
            .help("copy to other elements, or leave out `stages=`"),
    )
}

fn diverged(facts: &Facts<'_>, tree: &Tree<'_>, at: At) -> Box<Diagnostic> {
    let (span, kind) = place(facts, tree, at);
    let message = format!(
        "this {kind} needs a barrier, which may not stand inside of a condition on threads"
    );
    Box::new(
        Diagnostic::new(Code::NotDecomposed, span, message)
            .label("the whole block executes it")
            .help("take it out of the condition, which holds for all threads or for none"),
    )
}
