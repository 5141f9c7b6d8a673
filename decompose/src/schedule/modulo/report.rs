//! The schedules of the loops of what was decomposed, for people.

use super::graph::{Graph, Unscheduled, loops};
use super::schedule::{Proof, Schedule};
use super::solve::{identity, solve, usual_nodes};
use carbyne_atoms::{AtomTable, Machine};
use carbyne_ir::ast::NodeId;
use carbyne_ir::program::{Program, SpecId};

/// A loop with `stages=`, and how its iterations may follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopSchedule {
    /// The loop.
    pub node: NodeId,
    /// Its schedule, or why it has none.
    pub steady: Result<Steady, Unscheduled>,
}

/// The modulo schedule of a loop: each iteration starts `ii` cycles after the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steady {
    /// The initiation interval, in cycles of a multiprocessor.
    pub ii: i64,
    /// The lower bound of it from resources.
    pub resource_bound: i64,
    /// The lower bound of it from cycles of dependences.
    pub recurrence_bound: i64,
    /// It was proved that none is less than this.
    pub least_ii: i64,
    /// What was proved.
    pub proof: Proof,
    /// Cycles of an iteration in which each operation waits for the one before it.
    pub as_written: i64,
    /// Nodes that the search visited.
    pub nodes: u64,
    /// Stages, of which each is `ii` cycles of an iteration.
    pub stages: i64,
    /// The operations of an iteration, by agent, in the order in which a period of the steady state
    /// issues them.
    pub operations: Vec<Timed>,
    /// The tensors of which several iterations are held at once.
    pub rings: Vec<RingDepth>,
    /// What asynchronous operations are left under way at waits.
    pub waits: Vec<InFlight>,
}

/// When an operation is executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// What it is called: its kind, and what it writes.
    pub name: String,
    /// Who issues it.
    pub agent: String,
    /// The cycle of the iteration in which it is issued.
    pub start: i64,
    /// The cycle in which its engine begins, where it is asynchronous.
    pub begin: i64,
    /// The stage that the start lies in.
    pub stage: i64,
}

/// How many stages a ring has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingDepth {
    /// The tensor.
    pub name: String,
    /// As the loop says.
    pub stages: i64,
    /// As many as the schedule needs.
    pub needed: i64,
}

/// How many asynchronous operations may be left under way when an operation starts that waits for
/// others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// Which waits.
    pub before: String,
    /// What they are.
    pub queue: String,
    /// How many, the last that were issued.
    pub left: i64,
}

/// The schedules of all innermost loops with `stages=`.
pub fn schedules(
    p: &Program,
    kernel: SpecId,
    table: &AtomTable,
    machine: &Machine,
) -> Vec<LoopSchedule> {
    let of = |stmt| Graph::of(p, kernel, stmt, table, machine).and_then(|graph| steady(&graph));
    let found = loops(p, kernel).into_iter();
    found.map(|stmt| LoopSchedule { node: stmt.node, steady: of(stmt) }).collect()
}

fn steady(graph: &Graph) -> Result<Steady, Unscheduled> {
    let problem = &graph.problem;
    let found: Schedule = solve(problem, usual_nodes(problem.operations.len()))?;
    let timed = found.order(problem).into_iter().flatten().map(|o| {
        let of = &problem.operations[o];
        Timed {
            name: of.name.clone(),
            agent: problem.agents[of.agent].clone(),
            start: found.start[o],
            begin: found.begin[o],
            stage: found.stage(o),
        }
    });
    let rings = problem.rings.iter().zip(found.depths(problem));
    let waits = found.waits(problem).into_iter().map(|w| InFlight {
        before: problem.operations[w.operation].name.clone(),
        queue: problem.queues[w.queue].name.clone(),
        left: w.in_flight,
    });
    Ok(Steady {
        ii: found.ii,
        resource_bound: found.resource_bound,
        recurrence_bound: found.recurrence_bound,
        least_ii: found.least_ii,
        proof: found.proof,
        as_written: identity(problem)?.ii,
        nodes: found.nodes,
        stages: found.depth(),
        operations: timed.collect(),
        rings: rings
            .map(|(r, needed)| RingDepth { name: r.name.clone(), stages: r.stages, needed })
            .collect(),
        waits: waits.collect(),
    })
}
