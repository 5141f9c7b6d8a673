//! Makes the scheduling problem of an innermost loop with `stages=` from its text ([`Graph`]).
//!
//! Operations are the statements of the body that contain specs: a leaf, or a statement with a body
//! as a whole. Rows of the table tell which of them are asynchronous: a MatMul by an instruction
//! that takes descriptors ([`Target::by_descriptors`]), and a copy from global to shared memory.
//! Such a copy uses the copy engine if only such MatMuls read its tensor, and asynchronous copies
//! by threads otherwise.
//!
//! Dependences follow from accesses to the same buffer. A tensor that is declared in the body is a
//! new one in each iteration, but its places are limited: the stages of a ring, or a single place.
//! For other buffers the offsets tell how many iterations lie between two accesses
//! ([`crate::access::distance`]).

use super::Target;
use super::durations::{Takes, Taking};
use super::problem::{Dependence, Kind, MOST_OPERATIONS, Operation, Problem, Unsolvable, Use};
use crate::access::distance::{Counter, distance};
use crate::access::leaves;
use crate::access::ops;
use crate::access::ops::Op;
use crate::access::staged_loops::Loop;
use crate::access::staged_loops::is_asynchronous;
use carbyne_ir::ast::{NodeKey, SpecKind, Unroll};
use carbyne_ir::program::{BufferId, Program, SpecId, Stmt, StmtKind, TensorId};
use std::collections::{BTreeMap, BTreeSet};

/// A loop as a problem, and what its parts are in the program.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    /// The problem.
    pub problem: Problem,
    /// The statements that its operations are, in the same order.
    pub operations: Vec<NodeKey>,
    /// The allocations of its rings, in the same order.
    pub rings: Vec<NodeKey>,
    /// Which operations are MatMuls that go on while others are issued.
    pub products: Vec<usize>,
}

/// Why a loop has no modulo schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unscheduled {
    /// The number of threads of the kernel depends on a symbol.
    #[error("the threads of the block are not known")]
    Threads,
    /// The text synchronizes the loop itself.
    #[error("line {0} has its own synchronization")]
    Synchronized(u32),
    /// The threads that execute a statement are not one group.
    #[error("several groups of threads execute line {0}")]
    Parted(u32),
    /// The place of a tensor is stated, so it may share it with others.
    #[error("the place of `%{0}` is stated")]
    Placed(String),
    /// A statement is never executed, as far as is known.
    #[error("line {0} is never executed")]
    Never(u32),
    /// The problem cannot be solved.
    #[error(transparent)]
    Unsolvable(#[from] Unsolvable),
}

/// The innermost loops with `stages=` of a kernel, in text order. Loops over slices, which are
/// unrolled, are no such loops.
pub(crate) fn loops(p: &Program, kernel: SpecId) -> Vec<&Stmt> {
    let staged = |s: &&Stmt| match s.kind {
        StmtKind::For { stages: 2.., unroll, .. } => unroll != Unroll::Full,
        _ => false,
    };
    let inner = |s: &&Stmt| p.walk(p.inside(s).0).stmts().any(|s| staged(&s));
    p.walk_body(kernel).stmts().filter(staged).filter(|s| !inner(s)).collect()
}

impl Graph {
    /// The problem of a loop of a kernel.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) fn of(
        p: &Program,
        kernel: SpecId,
        stmt: &Stmt,
        target: &Target<'_>,
    ) -> Result<Graph, Unscheduled> {
        let StmtKind::For { var, start, end, step, body, .. } = &stmt.kind else {
            return Err(Unscheduled::Unsolvable(Unsolvable::Empty));
        };
        let taking =
            Taking::new(p, kernel, target.table, target.machine).ok_or(Unscheduled::Threads)?;
        let mut build = Build {
            p,
            target: *target,
            kernel,
            body,
            counter: Counter {
                var: *var,
                start: start.as_const(),
                step: *step,
                trips: ops::trips(*start, *end, *step),
            },
            ops: ops::collect(p, kernel),
            taking,
            own: BTreeMap::new(),
            statements: vec![],
            agents: BTreeMap::new(),
            units: vec![],
            queues: BTreeMap::new(),
            graph: Graph::default(),
        };
        build.places(stmt)?;
        build.operations()?;
        build.dependences();
        build.graph.problem.checked()?;
        Ok(build.graph)
    }
}

impl Graph {
    /// The same without some operations, which wait for nothing and let nothing wait: copies that
    /// rings make run far enough ahead.
    pub(crate) fn without(&self, some: &BTreeSet<NodeKey>) -> Graph {
        let n = self.operations.len();
        let left: Vec<usize> = (0..n).filter(|o| !some.contains(&self.operations[*o])).collect();
        let place = |o: usize| left.binary_search(&o).ok();
        let dependences = self.problem.dependences.iter().filter_map(|d| {
            let (from, to) = (place(d.from)?, place(d.to)?);
            Some(Dependence { from, to, ..*d })
        });
        let problem = Problem {
            operations: left.iter().map(|o| self.problem.operations[*o].clone()).collect(),
            dependences: dependences.collect(),
            ..self.problem.clone()
        };
        Graph {
            problem,
            operations: left.iter().map(|o| self.operations[*o]).collect(),
            rings: self.rings.clone(),
            products: self.products.iter().filter_map(|o| place(*o)).collect(),
        }
    }
}

/// A statement of the body that is an operation.
struct Statement<'p> {
    stmt: &'p Stmt,
    /// Its leaves, and how often each is executed.
    leaves: Vec<(SpecId, f64)>,
}

/// Where the iterations of a tensor lie that the body declares.
#[derive(Copy, Clone, Debug)]
struct Place {
    /// So many of them have places of their own.
    stages: i64,
    /// The ring, where it is one.
    ring: Option<usize>,
}

struct Build<'p> {
    p: &'p Program,
    target: Target<'p>,
    kernel: SpecId,
    body: &'p [Stmt],
    counter: Counter,
    ops: Vec<Op>,
    taking: Taking<'p>,
    /// Tensors that the body declares.
    own: BTreeMap<BufferId, Place>,
    statements: Vec<Statement<'p>>,
    /// Agents by their threads: the first, and how many; none of a producer.
    agents: BTreeMap<Option<(i64, i64)>, usize>,
    /// Resources, as [`UNITS`].
    units: Vec<usize>,
    queues: BTreeMap<(usize, Engine), usize>,
    graph: Graph,
}

/// What works on after an instruction.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Engine {
    /// The units that multiply what descriptors say.
    Products,
    /// The copy engine.
    Bulk,
    /// Copies of each thread.
    Copies,
}

/// Leaves of a loop whose accesses are compared.
const MOST_LEAVES: usize = 256;

/// Resources, and whether they serve one operation at a time.
const UNITS: [(&str, bool); 5] = [
    ("matrix units", true),
    ("issue slots", false),
    ("special functions", false),
    ("shared memory", false),
    ("global memory", false),
];

impl<'p> Build<'p> {
    /// Finds the tensors that the body declares, and which of them are rings.
    fn places(&mut self, stmt: &Stmt) -> Result<(), Unscheduled> {
        let p = self.p;
        self.units = UNITS.map(|(name, serial)| self.graph.problem.resource(name, serial)).into();
        let asynchronous = is_asynchronous(self.target.table);
        let facts = Loop::of(p, stmt, &leaves::of_blocks(p), asynchronous);
        for own in p.walk(self.body).stmts() {
            let StmtKind::Allocate(t) = own.kind else { continue };
            let id = p.tensors[t].buffer;
            let buffer = &p.buffers[id];
            if buffer.reuses.is_some() || buffer.at.is_some() {
                return Err(Unscheduled::Placed(buffer.name.clone()));
            }
            let mut place = Place { stages: 1, ring: None };
            if let Some(facts) = &facts
                && facts.fills().contains_key(&own.node.key())
            {
                place.stages = facts.trips.map_or(facts.stages, |n| n.min(facts.stages)).max(1);
                place.ring = Some(self.graph.problem.ring(&buffer.name, place.stages));
                self.graph.rings.push(own.node.key());
            }
            self.own.insert(id, place);
        }
        let staged = |b: BufferId| p.buffers[b].reuses.is_some() || p.buffers[b].at.is_some();
        let placed = self.touched().into_iter().find(|b| staged(*b));
        placed.map_or(Ok(()), |b| Err(Unscheduled::Placed(p.buffers[b].name.clone())))
    }

    /// Buffers that the body touches.
    fn touched(&self) -> BTreeSet<BufferId> {
        let specs = self.p.walk(self.body).specs().map(|id| &self.p.specs[id]);
        let tensors = specs.flat_map(|s| s.input_tensors().chain(s.outputs.iter().copied()));
        tensors.map(|t| self.p.tensors[t].buffer).collect()
    }

    /// The leaves of statements, each with the number of its executions.
    fn leaves(
        &self,
        stmts: &'p [Stmt],
        times: f64,
        out: &mut Vec<(SpecId, f64)>,
    ) -> Result<(), Unscheduled> {
        // The parser bounds how deep statements lie in one another.
        for stmt in stmts {
            let mut times = times;
            match &stmt.kind {
                StmtKind::Spec(id) if self.p.specs[*id].body.is_none() => out.push((*id, times)),
                StmtKind::For { start, end, step, .. } => {
                    times *= ops::trips(*start, *end, *step).unwrap_or(1) as f64;
                }
                StmtKind::Barrier(_) | StmtKind::Sync(_) => {
                    return Err(Unscheduled::Synchronized(stmt.line));
                }
                StmtKind::Spec(_)
                | StmtKind::If { .. }
                | StmtKind::Allocate(_)
                | StmtKind::Indices(_)
                | StmtKind::Step { .. }
                | StmtKind::Element { .. } => {}
            }
            let (first, second) = self.p.inside(stmt);
            self.leaves(first, times, out)?;
            self.leaves(second, times, out)?;
        }
        Ok(())
    }

    fn operations(&mut self) -> Result<(), Unscheduled> {
        for stmt in self.body {
            let mut leaves = vec![];
            self.leaves(std::slice::from_ref(stmt), 1.0, &mut leaves)?;
            if !leaves.is_empty() {
                self.statements.push(Statement { stmt, leaves });
            }
        }
        let leaves = self.statements.iter().map(|s| s.leaves.len()).sum();
        let counted = [
            (self.statements.len(), "operations", MOST_OPERATIONS),
            (leaves, "leaves", MOST_LEAVES),
        ];
        if let Some((n, what, most)) = counted.into_iter().find(|(n, _, most)| n > most) {
            return Err(Unsolvable::TooMany(n, what, most).into());
        }
        let products: Vec<bool> = self.statements.iter().map(|s| self.is_product(s)).collect();
        self.graph.products = (0..products.len()).filter(|at| products[*at]).collect();
        for (at, product) in products.iter().enumerate() {
            let Statement { stmt, leaves } = &self.statements[at];
            let mut by: Option<(i64, i64)> = None;
            let mut takes = Takes::default();
            for (id, times) in leaves {
                let leaf = self.taking.leaf(*id).ok_or(Unscheduled::Never(stmt.line))?;
                let own = (leaf.by.first, leaf.by.threads);
                if *by.get_or_insert(own) != own {
                    return Err(Unscheduled::Parted(stmt.line));
                }
                let own = self.taking.of(*id).ok_or(Unscheduled::Never(stmt.line))?;
                takes = takes.then(own, *times);
            }
            let by = by.ok_or(Unscheduled::Never(stmt.line))?;
            let engine = match product {
                true => Some(Engine::Products),
                false => self.copies(&self.statements[at], &products),
            };
            let name = self.name(&self.statements[at]);
            self.graph.operations.push(stmt.node.key());
            self.operation(name, by, takes, engine);
        }
        Ok(())
    }

    /// Whether a statement is a MatMul that goes on while others are issued.
    fn is_product(&self, s: &Statement<'p>) -> bool {
        let StmtKind::Spec(id) = s.stmt.kind else { return false };
        let spec = &self.p.specs[id];
        let multiplies = spec.kind.is_product();
        let op = self.ops.iter().find(|op| op.spec == id);
        multiplies
            && spec.body.is_none()
            && op.is_some_and(|op| (self.target.by_descriptors)(self.p, self.target.table, op))
    }

    /// What makes the copy from global to shared memory that a statement is; none where it is none,
    /// or threads wait for it.
    fn copies(&self, s: &Statement<'p>, products: &[bool]) -> Option<Engine> {
        let p = self.p;
        let StmtKind::Spec(id) = s.stmt.kind else { return None };
        let spec = &p.specs[id];
        let (from, to) = (spec.input_tensors().next()?, *spec.outputs.first()?);
        let copies = spec.kind == SpecKind::Move
            && spec.body.is_none()
            && p.buffer_of(from).is_global()
            && p.buffer_of(to).is_shared();
        if !copies {
            return None;
        }
        let buffer = p.tensors[to].buffer;
        let reads = |s: &Statement<'p>| {
            let mut inputs = s.leaves.iter().flat_map(|(id, _)| p.specs[*id].input_tensors());
            inputs.any(|t| p.tensors[t].buffer == buffer)
        };
        let bulk = self.target.table.atoms().iter().any(|a| a.visibility.names_barrier());
        let mut readers = self.statements.iter().zip(products).filter(|(s, _)| reads(s));
        if bulk && readers.all(|(_, product)| *product) {
            return Some(Engine::Bulk);
        }
        is_asynchronous(self.target.table).then_some(Engine::Copies)
    }

    /// What a statement is called: its kind, and the tensor that it writes, of several leaves the
    /// last.
    fn name(&self, s: &Statement<'p>) -> String {
        let last = s.leaves.last().map(|(id, _)| &self.p.specs[*id]);
        let kind = match &s.stmt.kind {
            StmtKind::Spec(id) => self.p.specs[*id].kind.to_string(),
            StmtKind::For { .. } => "for".to_owned(),
            _ => "if".to_owned(),
        };
        match last.and_then(|spec| spec.outputs.first()) {
            Some(to) => format!("{kind} %{}", self.p.buffer_of(*to).name),
            None => kind,
        }
    }

    /// Adds an operation of these threads.
    fn operation(&mut self, name: String, by: (i64, i64), takes: Takes, engine: Option<Engine>) {
        // Where a producer copies for consumers, it asks.
        let producer = engine == Some(Engine::Bulk) && self.taking.outline.consumers > 0;
        let agent = self.agent((!producer).then_some(by));
        let problem = &mut self.graph.problem;
        let queue = engine.map(|engine| {
            let (name, groups) = match engine {
                Engine::Products => ("products", true),
                Engine::Bulk => ("bulk copies", false),
                Engine::Copies => ("copies", true),
            };
            *self.queues.entry((agent, engine)).or_insert_with(|| problem.queue(name, groups))
        });
        let far = |bulk| self.taking.far(bulk) + takes.global;
        let (issue, held, latency) = match engine {
            Some(Engine::Products) => {
                let issue = takes.issue;
                (issue, issue, takes.matrix + self.taking.timing.wgmma_cycles)
            }
            // One thread asks for a tile.
            Some(Engine::Bulk) => (0.0, 1.0, far(true)),
            Some(Engine::Copies) => (takes.issue, takes.issue, far(false)),
            None => (takes.issue, takes.held(), takes.held() + takes.completion),
        };
        let all = [takes.matrix, issue, takes.special, takes.shared, takes.global];
        let uses = self.units.iter().zip(all).map(|(unit, n)| (*unit, cycles(n)));
        let uses = uses.filter(|(_, cycles)| *cycles > 0);
        problem.operation(Operation {
            name,
            agent,
            held: cycles(held).max(1),
            uses: uses.map(|(resource, cycles)| Use { resource, cycles }).collect(),
            latency: cycles(latency),
            queue,
        });
    }

    /// The agent that these threads are; none stands for a producer.
    fn agent(&mut self, by: Option<(i64, i64)>) -> usize {
        let (p, kernel) = (self.p, self.kernel);
        let whole = (0, self.taking.outline.threads);
        let problem = &mut self.graph.problem;
        *self.agents.entry(by).or_insert_with(|| {
            let name = match by {
                None => "producer".to_owned(),
                Some(by) if by == whole => ops::block_name(p, kernel),
                Some(by) => ops::name_of(p, kernel, by),
            };
            let unnamed = || by.map(|(first, n)| format!("threads {first} to {}", first + n - 1));
            let name = Some(name).filter(|name| !name.is_empty()).or_else(unnamed);
            problem.agent(name.unwrap_or_default())
        })
    }

    fn dependences(&mut self) {
        let all = self.accesses();
        let mut found: BTreeMap<(usize, usize, Option<usize>, u8, i64), Dependence> =
            BTreeMap::new();
        for (at, x) in all.iter().enumerate() {
            for (other, y) in all.iter().enumerate() {
                if x.buffer != y.buffer || !(x.writes || y.writes) {
                    continue;
                }
                for d in self.between(x, y, at < other) {
                    let ring = match d.kind {
                        Kind::Anti { ring } => ring,
                        _ => None,
                    };
                    let kind = match d.kind {
                        Kind::True => 0,
                        Kind::Anti { .. } => 1,
                        Kind::Output => 2,
                    };
                    let known = found.entry((d.from, d.to, ring, kind, d.distance)).or_insert(d);
                    known.latency = known.latency.max(d.latency);
                }
            }
        }
        self.graph.problem.dependences = found.into_values().collect();
    }

    fn accesses(&self) -> Vec<Access> {
        let p = self.p;
        let mut out = vec![];
        for (operation, s) in self.statements.iter().enumerate() {
            for (id, _) in &s.leaves {
                let spec = &p.specs[*id];
                let adds = spec.kind.reads_output();
                let of = |tensor: TensorId, reads: bool, writes: bool| Access {
                    operation,
                    tensor,
                    buffer: p.tensors[tensor].buffer,
                    reads,
                    writes,
                };
                out.extend(spec.input_tensors().map(|t| of(t, true, false)));
                out.extend(spec.outputs.iter().map(|t| of(*t, adds, true)));
            }
        }
        for access in out.clone() {
            // What is found through a tensor of integers lies in another.
            if let Some(gather) = p.buffers[access.buffer].gather {
                let (reads, writes) = (true, false);
                out.push(Access { buffer: gather.index, reads, writes, ..access });
                out.push(Access { buffer: gather.source, ..access });
            }
        }
        out
    }

    /// How an access depends on another; `first`: whether that comes before it in the text.
    fn between(&self, x: &Access, y: &Access, first: bool) -> Vec<Dependence> {
        let problem = &self.graph.problem;
        let (from, to) = (x.operation, y.operation);
        let within = from < to;
        let mut out = vec![];
        let place = self.own.get(&x.buffer);
        let distances: Vec<(i64, Option<usize>, bool)> = match place {
            // Another iteration has another tensor, which lies in the same place after so many.
            Some(place) => {
                let again = (place.stages, place.ring, false);
                (within && first).then_some((0, None, true)).into_iter().chain([again]).collect()
            }
            None => {
                let least = i64::from(!within);
                let d = distance(self.p, self.counter, (x.tensor, y.tensor), least);
                d.map(|d| (d, None, true)).into_iter().collect()
            }
        };
        let (a, b) = (&problem.operations[from], &problem.operations[to]);
        let read = if a.queue.is_some() { a.latency.max(a.held) } else { a.held };
        // Products that are added to in the order of issue do not wait for each other.
        let busy = a.uses.iter().find(|u| problem.resources[u.resource].serial);
        let in_order = a.queue.is_some() && a.queue == b.queue && x.writes && y.writes && y.reads;
        let done = match busy {
            Some(busy) if in_order => busy.cycles,
            _ => a.latency,
        };
        for (distance, ring, same) in distances {
            // An operation orders its own accesses.
            if from == to && distance == 0 {
                continue;
            }
            let new = |latency, kind| Dependence { from, to, latency, distance, kind };
            if x.writes && y.reads && same {
                out.push(new(done, Kind::True));
            }
            if x.reads && y.writes {
                out.push(new(if in_order { done } else { read }, Kind::Anti { ring }));
            }
            if x.writes && y.writes {
                out.push(new(if a.queue.is_some() { done } else { a.held }, Kind::Output));
            }
        }
        out
    }
}

/// An operand of a leaf.
#[derive(Copy, Clone, Debug)]
struct Access {
    operation: usize,
    tensor: TensorId,
    buffer: BufferId,
    reads: bool,
    writes: bool,
}

/// Whole cycles.
fn cycles(n: f64) -> i64 {
    // What is larger than any problem may have is refused there.
    n.ceil().clamp(0.0, 1e12) as i64
}
