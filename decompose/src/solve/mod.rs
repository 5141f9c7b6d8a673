//! Solves a tile-level body: thread-value layouts, shared-memory layouts, instructions, barriers.
//!
//! The search (Hexcute, algorithm 1, with backtracking over every choice):
//!
//! 1. MatMuls are anchors: atom and spread of the threads over the block, cheapest first; Fig. 19(b) gives
//!    f_a, f_b, f_c. One that follows another takes what is known of its operands in any order of values.
//! 2. Layouts spread through operations between registers: equal, repeated or projected (Fig. 19(c), (d)).
//!    A part of a tensor is spread as its tensor is ([`views`]).
//! 3. What is then open is anchored by its largest copy, from or to global memory if there is one.
//! 4. With all registers known, every copy gets candidates, one per row, with the other side by Fig. 19(a);
//!    for each shared tensor the choice whose runs unify and that costs least, by counted conflicts.
//! 5. A leaf of the search is ranked by its detours, then costed by [`cost`]. The branch that cannot be
//!    better is left out.
//! 6. Barriers and waits from dependences, for the best leaf.
//!
//! What cannot be solved as it is written is asked for as a [`Want`]: a copy through registers, a detour by
//! exchanges between lanes or through shared memory. The module is rewritten so and solved again.
//!
//! Invariant: every layout that a person wrote stands in the solution as written, or the solver says
//! which of them cannot hold.

pub(crate) mod certificate;
pub mod copy;
pub(crate) mod cost;
pub(crate) mod digits;
pub(crate) mod exchange;
mod held;
mod leaf;
pub(crate) mod matmul;
mod offset;
pub(crate) mod ops;
mod parts;
pub(crate) mod pointwise;
mod pressure;
pub(crate) mod reduce;
mod shared;
pub mod smem;
pub mod tv;
mod uneven;
mod unfit;
pub(crate) mod views;

use crate::certificate::Certificate;
use crate::matching::{self, Mismatch};
use crate::schedule::roles::Roles;
use carbyne_atoms::AtomTable;
use carbyne_ir::ast::SpecKind;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::layout::{Layout, Swizzle};
use carbyne_ir::program::{BufferId, Program, SpecId, TensorId};
use carbyne_ir::scalar::Memory;
use copy::{Candidate, Side};
use cost::Estimate;
use held::Held;
use ops::Op;
use shared::Budget;
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Thread-value layouts of register tensors.
pub(crate) type Known = BTreeMap<BufferId, Layout>;

/// A change of the module without which it is not solved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// A body for the spec that takes its operands through register tensors.
    ThroughRegisters(SpecId),
    /// A body for the Move that goes through a shared tensor.
    ThroughShared(SpecId),
    /// A copy of the operand before the spec, in the layout that the spec needs.
    Rearranged {
        /// Which.
        spec: SpecId,
        /// Its input.
        input: usize,
        /// That layout, where exchanges between lanes are cheaper than shared memory.
        by_lanes: Option<Layout>,
    },
    /// A body for the spec that has tensors of its own for operands that are parts of others.
    Own(SpecId),
    /// A copy of an input that is a part of a tensor, by way of all of the tensor in shared memory.
    OfShared {
        /// Which.
        spec: SpecId,
        /// Its input.
        input: usize,
    },
    /// A body for the Reduction whose result is spread as its input is, and goes from there to the output.
    Spread(SpecId),
    /// A register of every thread for an input of one element and no modes, which is broadcast.
    Single {
        /// Which.
        spec: SpecId,
        /// Its input.
        input: usize,
    },
    /// A body for the Move that broadcasts its input between registers.
    Broadcast(SpecId),
    /// A body for the `MatMul.set` that starts from zero.
    FromZero(SpecId),
    /// A body for the MatMul that sums in the accumulator's type, which is not that of the output.
    Converted(SpecId),
}

/// How long to search.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// Choices to look at, each a fraction of a millisecond.
    pub budget: u64,
    /// Leaves to keep, best first.
    pub top: usize,
    /// Whether to look at branches that cannot be cheaper, too.
    pub exhaustive: bool,
}

impl Default for Search {
    fn default() -> Self {
        Search { budget: 20_000, top: 1, exhaustive: false }
    }
}

/// What the solver found for one kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Solution {
    /// Thread-value layouts of open register tensors, and the name of the threads they count.
    pub tv: BTreeMap<BufferId, (Layout, String)>,
    /// Layouts and swizzles of open shared tensors.
    pub shared: BTreeMap<BufferId, (Layout, Option<Swizzle>)>,
    /// How each copy between memory and registers, or within memory, is implemented.
    pub copies: BTreeMap<SpecId, Candidate>,
    /// How each operation between registers is implemented, an Init included.
    pub pointwise: BTreeMap<SpecId, pointwise::Choice>,
    /// How each Reduction is done.
    pub reductions: BTreeMap<SpecId, reduce::Choice>,
    /// How each Move from one thread-value layout to another is done by exchanges between lanes.
    pub exchanges: BTreeMap<SpecId, exchange::Choice>,
    /// How each MatMul is implemented.
    pub matmuls: BTreeMap<SpecId, matmul::Choice>,
    /// Barriers and waits, and where they are put.
    pub before: BTreeMap<crate::schedule::Place, crate::schedule::Sync>,
    /// One per relation.
    pub certificates: Vec<Certificate>,
    /// What it costs.
    pub estimate: Estimate,
    /// The best leaves, best first: what was chosen, and its cost.
    pub leaves: Vec<Leaf>,
    /// How far the search went.
    pub searched: Searched,
    /// What may not be as wanted.
    pub warnings: Vec<Diagnostic>,
}

/// A leaf of the search, in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Leaf {
    /// What it costs.
    pub estimate: Estimate,
    /// Operation and choice, in text order.
    pub choices: Vec<(SpecId, String)>,
}

/// How far a search went.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Searched {
    /// Complete assignments that were costed.
    pub leaves: u64,
    /// Branches that could not be cheaper.
    pub pruned: u64,
    /// Branches that no row implements.
    pub dead: u64,
    /// Whether it ended at its budget, with choices that were not looked at.
    pub cut_off: bool,
}

impl Searched {
    /// Adds another search.
    pub fn add(&mut self, other: Searched) {
        self.leaves += other.leaves;
        self.pruned += other.pruned;
        self.dead += other.dead;
        self.cut_off |= other.cut_off;
    }
}

/// What became of a kernel.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// Everything is chosen.
    Solved(Box<Solution>),
    /// To be rewritten and solved again.
    Wants(Vec<Want>),
}

/// Solves the tile operations of a kernel; an empty solution where it has none.
///
/// # Errors
/// The first operation that cannot be implemented, with the nearest atoms; pins that conflict; a budget
/// that was too small.
pub(crate) fn solve(
    p: &Program,
    kernel: SpecId,
    table: &AtomTable,
    search: Search,
    roles: &Roles,
) -> Result<Outcome, Box<Diagnostic>> {
    let ops = ops::collect(p, kernel);
    if ops.is_empty() {
        let mut out = Solution::default();
        out.before = crate::schedule::plan(p, kernel, &out, table, roles)?;
        return Ok(Outcome::Solved(Box::new(out)));
    }
    let held = held::by(p, &ops)?;
    let parts = parts::split(p, &ops);
    let mut s = Solver {
        p,
        table,
        ops: &ops,
        held: &held,
        kernel,
        search,
        budget: Budget { left: 0, cut_off: false },
        best: vec![],
        settled: Finished::default(),
        failure: None,
        searched: Searched::default(),
        found: HashMap::new(),
        layouts: HashMap::new(),
        of_parts: RefCell::default(),
    };
    s.check_block()?;
    let wants = s.shapes()?;
    if !wants.is_empty() {
        return Ok(Outcome::Wants(wants));
    }
    let mut left = search.budget;
    let mut found: Vec<Vec<Finished>> = vec![];
    for (i, ops) in parts.iter().enumerate() {
        s.ops = ops;
        // What one part leaves of its share goes to the next.
        let share = left.div_ceil((parts.len() - i) as u64);
        s.budget = Budget { left: share, cut_off: false };
        s.branch(State { known: s.pins(), ..State::default() });
        s.searched.cut_off |= s.budget.cut_off;
        left -= share - s.budget.left;
        let Some(best) = s.best.first() else { return Err(s.nothing()) };
        s.settled.merge(best.clone());
        found.push(std::mem::take(&mut s.best));
    }
    let searched = s.searched;
    let best = parts::together(&found, search.top, |f| s.estimate(f));
    let leaves: Vec<Leaf> = best.iter().map(|f| f.leaf(p)).collect();
    let Some(best) = best.into_iter().next() else { return Err(s.nothing()) };
    if !best.wants.is_empty() {
        return Ok(Outcome::Wants(best.wants));
    }
    if let Some(id) = best.solution.whole_warps(table)
        && p.specs[kernel].exec.is_some_and(|e| p.threads[e.threads].concat().modes().len() > 1)
    {
        let message =
            format!("this {} takes whole warps, of a block of several modes", p.specs[id].kind);
        let help = "declare the block's threads as `[n].thread`";
        return Err(Box::new(
            Diagnostic::new(Code::NoStrategy, p.specs[id].span, message).help(help),
        ));
    }
    let matmuls = !best.solution.matmuls.is_empty();
    let uneven = uneven::warnings(p, &ops, &best, matmuls);
    let mut out = best.solution;
    out.warnings = uneven;
    for (b, tv) in &best.known {
        if let Some(group) = held.get(b).filter(|_| p.buffers[*b].open) {
            out.tv.insert(*b, (tv.clone(), group.name.clone()));
        }
    }
    (out.leaves, out.searched) = (leaves, searched);
    if searched.cut_off {
        let message = format!("the search ended at its budget of {} choices", search.budget);
        out.warnings.push(
            Diagnostic::warning(Code::Budget, p.specs[kernel].span, message)
                .label("the best choice so far is taken; others were not looked at")
                .help("raise `--budget`, or pin an atom or a layout in the text"),
        );
    }
    out.before = crate::schedule::plan(p, kernel, &out, table, roles)?;
    certificate::certify(p, &best.known, &mut out, table);
    Ok(Outcome::Solved(Box::new(out)))
}

impl Solution {
    /// Adds what was found for another kernel.
    pub(crate) fn merge(&mut self, other: Solution) {
        self.tv.extend(other.tv);
        self.shared.extend(other.shared);
        self.copies.extend(other.copies);
        self.pointwise.extend(other.pointwise);
        self.reductions.extend(other.reductions);
        self.exchanges.extend(other.exchanges);
        self.matmuls.extend(other.matmuls);
        self.before.extend(other.before);
        self.certificates.extend(other.certificates);
        self.warnings.extend(other.warnings);
        if self.leaves.is_empty() {
            (self.leaves, self.estimate) = (other.leaves, other.estimate);
        }
        self.searched.add(other.searched);
    }

    /// An operation whose body takes the threads of a block by warps.
    fn whole_warps(&self, table: &AtomTable) -> Option<SpecId> {
        let group = |atom: &str| table.get(atom).map_or(1, |a| a.group);
        let copies = self.copies.iter().filter(|(_, c)| c.group > 1).map(|(id, _)| id);
        let matmuls = self.matmuls.iter().filter(|(_, c)| group(c.atom) > 1).map(|(id, _)| id);
        let reductions = self.reductions.iter().filter(|(_, c)| !c.masks.is_empty());
        let exchanges = self.exchanges.iter().filter(|(_, c)| !c.steps.is_empty());
        let lanes = reductions.map(|(id, _)| id).chain(exchanges.map(|(id, _)| id));
        copies.chain(matmuls).chain(lanes).min().copied()
    }

    /// Whether it implements the spec.
    pub(crate) fn implements(&self, id: SpecId) -> bool {
        self.copies.contains_key(&id)
            || self.pointwise.contains_key(&id)
            || self.reductions.contains_key(&id)
            || self.exchanges.contains_key(&id)
            || self.matmuls.contains_key(&id)
    }
}

struct Solver<'a> {
    p: &'a Program,
    table: &'a AtomTable,
    ops: &'a [Op],
    /// Who holds each register tensor.
    held: &'a Held,
    kernel: SpecId,
    search: Search,
    budget: Budget,
    /// Best first.
    best: Vec<Finished>,
    /// What was chosen for the parts before this one.
    settled: Finished,
    /// Why the first dead branch was dead.
    failure: Option<Box<Diagnostic>>,
    searched: Searched,
    /// Candidates of copies, by what is known of their ends.
    found: HashMap<Ends, Rc<Vec<Candidate>>>,
    /// Layouts of parts of register tensors, by those of the tensors.
    of_parts: RefCell<HashMap<(TensorId, Layout), Option<Layout>>>,
    /// Layouts found for shared tensors, by what accesses them.
    layouts: HashMap<Accesses, Result<Rc<shared::Found>, unfit::Unfit>>,
}

/// A copy, and what is known of its source and destination.
type Ends = (SpecId, (Side, Side));

/// f and g of each candidate.
type Sides = Vec<(Layout, Layout)>;

/// A shared tensor, and what may access it how.
type Accesses = (BufferId, Vec<(SpecId, Sides)>);

fn sides(list: &[Candidate]) -> Sides {
    list.iter().map(|c| (c.f.clone(), c.g.clone())).collect()
}

/// A node of the search.
#[derive(Clone, Default)]
struct State {
    known: Known,
    matmuls: BTreeMap<SpecId, matmul::Choice>,
    wants: Vec<Want>,
    /// Copies by which register tensors were spread.
    anchors: Vec<SpecId>,
    /// Cycles of what was chosen, and of the detours it needs.
    bound: f64,
}

/// A leaf of the search.
#[derive(Clone, Default)]
struct Finished {
    known: Known,
    wants: Vec<Want>,
    solution: Solution,
    /// What each operation costs.
    work: BTreeMap<SpecId, cost::Work>,
    /// Cycles of the detours.
    detours: f64,
    /// Copies by which register tensors were spread.
    anchors: Vec<SpecId>,
}

impl Finished {
    /// Adds what was found for another part.
    fn merge(&mut self, other: Finished) {
        self.known.extend(other.known);
        self.wants.extend(other.wants);
        self.solution.merge(other.solution);
        self.work.extend(other.work);
        self.detours += other.detours;
        self.anchors.extend(other.anchors);
    }

    /// Detours first: a choice that does without is taken where there is one. Then cycles, as exactly as
    /// they are estimated, and among equals the fewest instructions.
    fn rank(&self) -> (usize, i64, f64, f64) {
        let e = &self.solution.estimate;
        (self.wants.len(), cost::grade(e.cycles), e.instructions, e.cycles)
    }

    fn leaf(&self, p: &Program) -> Leaf {
        let s = &self.solution;
        let mut choices: BTreeMap<SpecId, String> = BTreeMap::new();
        for (id, c) in &s.copies {
            choices.insert(*id, format!("{} x{}", c.atom, c.instructions));
        }
        for (id, c) in &s.pointwise {
            choices.insert(*id, format!("{} of {}", c.atom, c.n));
        }
        for (id, c) in &s.reductions {
            let through = if c.shared.is_some() { ", through SH" } else { "" };
            choices.insert(*id, format!("{} exchanges{through}", c.masks.len()));
        }
        for (id, c) in &s.exchanges {
            choices.insert(*id, format!("{} exchanges", c.steps.len()));
        }
        for (id, c) in &s.matmuls {
            let spread = match c.gemm.groups {
                (m, n, 1) => format!("({m},{n})"),
                (m, n, k) => format!("({m},{n},{k})"),
            };
            choices.insert(*id, format!("{} warps {spread}", c.atom));
        }
        for want in &self.wants {
            if let Want::Rearranged { spec, input, .. } = want {
                let e = choices.entry(*spec).or_default();
                let name = p.specs[*spec].input_tensors().nth(*input).map(|t| p.tensor_name(t));
                e.push_str(&format!(", {} rearranged", name.unwrap_or_default()));
            }
        }
        Leaf { estimate: s.estimate, choices: choices.into_iter().collect() }
    }
}

type Fallible<T> = Result<T, Box<Diagnostic>>;

impl<'a> Solver<'a> {
    fn error(&self, code: Code, spec: SpecId, message: String, help: &str) -> Box<Diagnostic> {
        Box::new(Diagnostic::new(code, self.p.specs[spec].span, message).help(help))
    }

    fn buffer(&self, t: TensorId) -> BufferId {
        self.p.tensors[t].buffer
    }

    fn rf(&self, t: TensorId) -> bool {
        self.p.buffer_of(t).memory == Some(Memory::Rf)
    }

    fn tensors(&self, id: SpecId) -> Vec<TensorId> {
        let spec = &self.p.specs[id];
        spec.input_tensors().chain(spec.outputs.iter().copied()).collect()
    }

    /// Threads must be numbered as the hardware numbers them.
    fn check_block(&self) -> Fallible<()> {
        let whole = self.p.specs[self.kernel]
            .exec
            .and_then(|e| self.p.threads[e.threads].concat().to_fixed());
        if whole.is_some_and(|l| (0..l.size()).all(|i| l.at(i) == i)) {
            return Ok(());
        }
        Err(self.error(
            Code::NoStrategy,
            self.kernel,
            "tile operations need threads in the hardware's order".to_owned(),
            "declare the block's threads as `[n].thread`, or first mode fastest",
        ))
    }

    /// Detours that follow from where the operands lie, whatever their layouts are.
    fn shapes(&self) -> Fallible<Vec<Want>> {
        let mut wants = vec![];
        for op in self.ops {
            let spec = &self.p.specs[op.spec];
            if spec.outputs.len() != 1 {
                return Err(self.error(
                    Code::NotDecomposed,
                    op.spec,
                    format!(
                        "a {} of {} outputs has no decomposition",
                        spec.kind,
                        spec.outputs.len()
                    ),
                    "write its body, or a spec for each output",
                ));
            }
            if spec.valid.is_some() {
                return Err(self.error(
                    Code::NotDecomposed,
                    op.spec,
                    "a Move of the whole block reads all of its source".to_owned(),
                    "write its body, with `valid=` at the Move of each thread",
                ));
            }
            if let Some(t) =
                self.tensors(op.spec).into_iter().find(|t| ops::whole(self.p, *t).is_none())
            {
                return Err(self.error(
                    Code::NotDecomposed,
                    op.spec,
                    format!("the extents of {} are not known", self.p.tensor_name(t)),
                    "go over it in a loop of tiles of known extents: `%A.tile([64,32])[@i, k]`",
                ));
            }
            let scalar = |t: &TensorId| self.p.tensors[*t].levels.is_empty() && !self.rf(*t);
            let is_broadcast = matches!(
                spec.kind,
                SpecKind::Move | SpecKind::Unary(_) | SpecKind::Binary(_) | SpecKind::Select
            );
            let singles = spec.input_tensors().enumerate().filter(|(_, t)| scalar(t));
            let before = wants.len();
            if is_broadcast && !spec.outputs.iter().any(scalar) {
                wants.extend(singles.map(|(input, _)| Want::Single { spec: op.spec, input }));
                if wants.len() > before {
                    continue;
                }
            }
            if let Some(t) = self.tensors(op.spec).into_iter().find(scalar) {
                let name = self.p.tensor_name(t);
                return Err(self.error(
                    Code::NotDecomposed,
                    op.spec,
                    format!(
                        "{name} is a single element, and the whole block executes this {}",
                        spec.kind
                    ),
                    "let one thread execute it, `#cta[0]`, or write a tile, `.tile([1])[i]`",
                ));
            }
            let inside = self.tensors(op.spec).iter().all(|t| self.rf(*t));
            // What lies in memory is brought to registers, where parts of others can stay.
            let direct = inside || spec.kind != SpecKind::Move;
            if self.has_parts(op.spec) && !(direct && self.takes_parts(op.spec)) {
                wants.push(Want::Own(op.spec));
                continue;
            }
            if let SpecKind::MatMul | SpecKind::MatMulSet = spec.kind
                && let Some(input) = self.overwritten(op.spec)
            {
                wants.push(Want::Rearranged { spec: op.spec, input, by_lanes: None });
                continue;
            }
            match spec.kind {
                SpecKind::Move => {
                    let Some((src, dst)) = shared::ends(self.p, op) else { continue };
                    let size = |t| ops::whole(self.p, t).map(|l| l.size());
                    if !inside && size(src) != size(dst) {
                        wants.push(Want::Broadcast(op.spec));
                        continue;
                    }
                    if self.rf(src) || self.rf(dst) {
                        continue;
                    }
                    let sides = (Side::Memory, Side::Memory);
                    let found = copy::candidates(
                        self.p,
                        op.spec,
                        sides.0,
                        sides.1,
                        self.table,
                        op.group.threads,
                    );
                    if let Err(rejected) = found {
                        if spec.atom.is_some() {
                            return Err(self.unmatched(op.spec, &rejected));
                        }
                        wants.push(Want::ThroughRegisters(op.spec));
                    }
                }
                SpecKind::MatMulSet => wants.push(Want::FromZero(op.spec)),
                SpecKind::MatMul
                    if inside
                        && spec.acc.is_some_and(|a| a != self.p.scalar_of(spec.outputs[0])) =>
                {
                    wants.push(Want::Converted(op.spec));
                }
                SpecKind::Unary(_)
                | SpecKind::Binary(_)
                | SpecKind::Select
                | SpecKind::Reduction(_)
                | SpecKind::MatMul
                | SpecKind::Init
                    if !inside =>
                {
                    wants.push(Want::ThroughRegisters(op.spec));
                }
                SpecKind::Unary(_)
                | SpecKind::Binary(_)
                | SpecKind::Select
                | SpecKind::Reduction(_)
                | SpecKind::MatMul
                | SpecKind::Init => {}
                SpecKind::Accumulate(_) => {
                    return Err(self.by_hand(op.spec, "let single threads add what they have: a Move to a tensor in SH, then `Move.add <<<#grid, #cta.scalar()>>>` of the elements of each thread"));
                }
                SpecKind::Generic | SpecKind::Iota => {
                    let help = "write its body: nothing else says what a Spec computes";
                    return Err(self.by_hand(op.spec, help));
                }
                SpecKind::Shfl(_) => {
                    let help = "let warps exchange registers of their lanes: `#cta.tile([32])` and `.mine`; \
                                or write a Move between two thread-value layouts";
                    return Err(self.by_hand(op.spec, help));
                }
            }
        }
        Ok(wants)
    }

    fn by_hand(&self, id: SpecId, help: &str) -> Box<Diagnostic> {
        let message =
            format!("a {} of the whole block has no decomposition", self.p.specs[id].kind);
        self.error(Code::NotDecomposed, id, message, help)
    }

    /// Whether operands are parts of tensors in registers.
    fn has_parts(&self, id: SpecId) -> bool {
        self.tensors(id).into_iter().any(|t| views::is_part(self.p, t))
    }

    /// Whether each thread can do it on the registers that it has, whatever they are parts of.
    fn takes_parts(&self, id: SpecId) -> bool {
        let spec = &self.p.specs[id];
        let pointwise = matches!(
            spec.kind,
            SpecKind::Move
                | SpecKind::Unary(_)
                | SpecKind::Binary(_)
                | SpecKind::Select
                | SpecKind::Init
        );
        let mut pairs =
            spec.outputs.iter().flat_map(|o| spec.input_tensors().map(move |i| (i, *o)));
        pointwise && !pairs.any(|(i, o)| views::overlap(self.p, i, o))
    }

    /// The thread-value layout of a register tensor, or of a part of one.
    fn layout_of(&self, known: &Known, t: TensorId) -> Option<Layout> {
        let whole = known.get(&self.buffer(t))?;
        if !views::is_part(self.p, t) {
            return Some(whole.clone());
        }
        let key = (t, whole.clone());
        if let Some(found) = self.of_parts.borrow().get(&key) {
            return found.clone();
        }
        let found = views::part(self.p, t, whole).ok().map(|(tv, _)| tv);
        self.of_parts.borrow_mut().insert(key, found.clone());
        found
    }

    /// Takes down the layout of a register tensor, or of the one that this is a part of; whether that is new.
    fn learn(&self, known: &mut Known, t: TensorId, tv: Layout) -> bool {
        if known.contains_key(&self.buffer(t)) {
            return false;
        }
        let whole = match views::is_part(self.p, t) {
            true => views::whole(self.p, t, &tv),
            false => Some(tv),
        };
        whole.is_some_and(|tv| known.insert(self.buffer(t), tv).is_none())
    }

    /// The first input in registers that the spec writes.
    fn overwritten(&self, id: SpecId) -> Option<usize> {
        let spec = &self.p.specs[id];
        let written = |t: TensorId| {
            self.rf(t) && spec.outputs.iter().any(|o| self.buffer(*o) == self.buffer(t))
        };
        spec.input_tensors().position(written)
    }

    fn pins(&self) -> Known {
        let mut known = Known::new();
        for op in self.ops {
            for t in self.tensors(op.spec) {
                let dist = self.p.tensors[t].dist.as_ref();
                if let Some(tv) = dist.and_then(|d| d.tv.as_ref()).and_then(|tv| tv.to_fixed()) {
                    known.insert(self.buffer(t), tv);
                }
            }
        }
        known
    }

    fn undecided(&self, state: &State) -> Option<&'a Op> {
        self.ops.iter().find(|op| {
            self.p.specs[op.spec].kind == SpecKind::MatMul && !state.matmuls.contains_key(&op.spec)
        })
    }

    /// Spreads what is known as far as it goes. A Move to registers of a stated layout may be an exchange: it
    /// says nothing of its source while a MatMul may.
    fn spread(&self, state: &mut State) {
        let open = self.undecided(state).is_some();
        let known = &mut state.known;
        loop {
            let mut progress = false;
            for op in self.ops {
                let spec = &self.p.specs[op.spec];
                let Some(&out) = spec.outputs.first() else { continue };
                if !self.tensors(op.spec).iter().all(|t| self.rf(*t)) {
                    continue;
                }
                let of = |known: &Known, t: TensorId| self.layout_of(known, t);
                match spec.kind {
                    SpecKind::Move
                    | SpecKind::Unary(_)
                    | SpecKind::Binary(_)
                    | SpecKind::Select => {
                        if of(known, out).is_none() {
                            let full = spec.input_tensors().find_map(|t| {
                                let kept = pointwise::kept(self.p, t, out)?;
                                if kept.iter().all(|k| *k) { of(known, t) } else { None }
                            });
                            if let Some(tv) = full {
                                progress |= self.learn(known, out, tv);
                            }
                        }
                        let Some(tv) = of(known, out) else { continue };
                        let stated = !self.p.buffer_of(out).open;
                        if open && stated && spec.kind == SpecKind::Move {
                            continue;
                        }
                        let whole = pointwise::whole(self.p, op.spec);
                        for t in spec.input_tensors() {
                            if of(known, t).is_some() {
                                continue;
                            }
                            let full = pointwise::kept(self.p, t, out)
                                .is_some_and(|k| k.iter().all(|k| *k));
                            let follows = if full {
                                Some(tv.clone())
                            } else {
                                pointwise::operand(self.p, t, out, &tv, whole).ok().map(|p| p.tv)
                            };
                            if let Some(tv) = follows {
                                progress |= self.learn(known, t, tv);
                            }
                        }
                    }
                    SpecKind::Reduction(_) => {
                        let input = spec.input_tensors().next().and_then(|t| of(known, t));
                        if let (Some(tv), None) = (input, of(known, out))
                            && let Ok(p) = pointwise::reduced(self.p, op.spec, &tv)
                        {
                            known.insert(self.buffer(out), p.tv);
                            progress = true;
                        }
                    }
                    _ => {}
                }
            }
            if !progress {
                return;
            }
        }
    }

    /// Why there is no solution.
    fn nothing(&mut self) -> Box<Diagnostic> {
        if self.searched.cut_off {
            return self.error(
                Code::Budget,
                self.kernel,
                format!("no solution among the first {} choices", self.search.budget),
                "raise `--budget`, or pin an atom or a layout in the text",
            );
        }
        self.failure.take().unwrap_or_else(|| {
            let message = "no choice implements the body".to_owned();
            self.error(Code::NoAtom, self.kernel, message, "pin fewer layouts")
        })
    }

    /// What a choice for all operations costs.
    fn estimate(&self, f: &Finished) -> Estimate {
        let (p, kernel, table) = (self.p, self.kernel, self.table);
        let mut e = cost::estimate(p, kernel, table, &f.work, &f.known, &f.solution.shared);
        e.cycles += f.detours;
        e
    }

    /// Looks at everything below a node.
    fn branch(&mut self, mut state: State) {
        if !self.budget.take() {
            return;
        }
        self.spread(&mut state);
        let worst = self.best.get(self.search.top.max(1) - 1).map(Finished::rank);
        let least = (state.wants.len(), cost::grade(state.bound));
        if worst.is_some_and(|w| least > (w.0, w.1)) && !self.search.exhaustive {
            self.searched.pruned += 1;
            return;
        }
        if let Some(op) = self.undecided(&state) {
            let options =
                matmul::options(self.p, self.table, op.spec, op.group.threads, &state.known);
            match options {
                Ok(options) => {
                    let schedulers = carbyne_atoms::limits(self.table.arch).timing.schedulers;
                    for o in options {
                        let mut next = state.clone();
                        // No leaf below is cheaper than its multiplications and detours.
                        let w = cost::matmul(self.table, &o.choice).unwrap_or_default();
                        next.bound += (w.issue / schedulers + o.detours) * op.trips as f64;
                        for (t, tv) in self.tensors(op.spec).into_iter().zip(&o.layouts) {
                            next.known.entry(self.buffer(t)).or_insert_with(|| tv.clone());
                        }
                        next.wants.extend(o.wants);
                        next.matmuls.insert(op.spec, o.choice);
                        self.branch(next);
                    }
                }
                Err(d) => self.dead(d),
            }
            return;
        }
        if let Some((op, t)) = self.anchor(&state.known) {
            let Some((src, dst)) = shared::ends(self.p, op) else { return };
            match self.candidates(op, src, dst, &state.known) {
                Ok(list) => {
                    let mut any = false;
                    for c in list.iter() {
                        let tv = if t == src { &c.f } else { &c.g };
                        // Every thread must own some of it.
                        let Ok(tv) = tv::replicated(tv, op.group.threads) else { continue };
                        any = true;
                        let mut next = state.clone();
                        next.known.insert(self.buffer(t), tv);
                        next.anchors.push(op.spec);
                        self.branch(next);
                    }
                    if !any {
                        let d = self.error(
                            Code::NoAtom,
                            op.spec,
                            format!("{} threads cannot share the tensor evenly", op.group.threads),
                            "choose a number of threads that divides the tensor's vectors",
                        );
                        self.dead(d);
                    }
                }
                Err(d) => self.dead(d),
            }
            return;
        }
        // What no copy brings from or to memory is spread evenly.
        if let Some((t, tv)) = self.loose(&state.known) {
            state.known.insert(self.buffer(t), tv);
            self.branch(state);
            return;
        }
        match self.leaf(state) {
            Ok(found) => {
                self.searched.leaves += 1;
                let at = self.best.partition_point(|b| b.rank() <= found.rank());
                self.best.insert(at, found);
                self.best.truncate(self.search.top.max(1));
            }
            Err(d) => self.dead(d),
        }
    }

    fn dead(&mut self, d: Box<Diagnostic>) {
        self.searched.dead += 1;
        self.failure.get_or_insert(d);
    }

    /// The copy that spreads an open register tensor: of those with global memory the largest, else of all.
    fn anchor(&self, known: &Known) -> Option<(&'a Op, TensorId)> {
        let mut best: Option<((bool, i64), &Op, TensorId)> = None;
        for op in self.ops {
            if self.p.specs[op.spec].kind != SpecKind::Move {
                continue;
            }
            let Some((src, dst)) = shared::ends(self.p, op) else { continue };
            let (t, memory) = match (self.rf(src), self.rf(dst)) {
                (true, false) => (src, dst),
                (false, true) => (dst, src),
                _ => continue,
            };
            if known.contains_key(&self.buffer(t)) {
                continue;
            }
            let size = ops::whole(self.p, t).map_or(0, |l| l.size());
            let bits = size.saturating_mul(self.p.scalar_of(t).bits());
            let global = self.p.buffer_of(memory).memory == Some(Memory::Gl);
            if best.as_ref().is_none_or(|(rank, ..)| (global, bits) > *rank) {
                best = Some(((global, bits), op, t));
            }
        }
        best.map(|(_, op, t)| (op, t))
    }

    /// A register tensor of which nothing is known, and a layout for it.
    fn loose(&self, known: &Known) -> Option<(TensorId, Layout)> {
        let all = self.ops.iter().flat_map(|op| self.tensors(op.spec));
        let t = all.into_iter().find(|t| self.rf(*t) && !known.contains_key(&self.buffer(*t)))?;
        let whole = ops::whole(self.p, self.p.buffer_of(t).tensor)?;
        let threads = self.held.get(&self.buffer(t))?.threads;
        Some((t, tv::spread_evenly(&whole, threads)?))
    }

    fn side(&self, t: TensorId, known: &Known) -> Side {
        if !self.rf(t) {
            return Side::Memory;
        }
        known.get(&self.buffer(t)).map_or(Side::Open, |tv| Side::Registers(tv.clone()))
    }

    fn unmatched(&self, id: SpecId, rejected: &[(&'static str, Mismatch)]) -> Box<Diagnostic> {
        let spec = &self.p.specs[id];
        let Some(atom) = spec.atom.as_ref().and_then(|name| self.table.get(name)) else {
            return Box::new(matching::no_atom(self.p, id, self.table, rejected));
        };
        // Rows of other operations are not compared.
        let own = rejected.iter().find(|(name, _)| *name == atom.name).map(|(_, m)| m.clone());
        let m = own.unwrap_or_else(|| Mismatch::Op { want: atom.op.to_string() });
        Box::new(matching::not_by(self.p, id, atom.name, &m))
    }

    fn candidates(
        &mut self,
        op: &Op,
        src: TensorId,
        dst: TensorId,
        known: &Known,
    ) -> Fallible<Rc<Vec<Candidate>>> {
        let sides = (self.side(src, known), self.side(dst, known));
        let key = (op.spec, sides);
        if let Some(list) = self.found.get(&key) {
            return Ok(Rc::clone(list));
        }
        let (src, dst) = key.1.clone();
        let list = copy::candidates(self.p, op.spec, src, dst, self.table, op.group.threads)
            .map_err(|r| self.unmatched(op.spec, &r))?;
        let list = Rc::new(list);
        self.found.insert(key, Rc::clone(&list));
        Ok(list)
    }
}
