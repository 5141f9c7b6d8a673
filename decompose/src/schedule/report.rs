//! Describes the schedules of the loops of a decomposed program, for users ([`LoopSchedule`]).

use super::Target;
use super::graph::{Graph, Unscheduled, loops};
use super::modulo::{Proof, Schedule};
use super::solve::{identity, solve, usual_nodes};
use carbyne_ir::ast::NodeId;
use carbyne_ir::program::{Program, SpecId};

/// A loop with `stages=`, and the way in which its iterations can overlap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopSchedule {
    /// The loop.
    pub node: NodeId,
    /// Its schedule, or the reason why it has none.
    pub steady: Result<Steady, Unscheduled>,
}

/// The modulo schedule of a loop: each iteration starts `ii` cycles after the one before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steady {
    /// The initiation interval, in cycles of a multiprocessor.
    pub ii: i64,
    /// A lower bound of `ii`, from resources.
    pub resource_bound: i64,
    /// A lower bound of `ii`, from cycles of dependences.
    pub recurrence_bound: i64,
    /// A proven lower bound of `ii`.
    pub least_ii: i64,
    /// What the search has proved about the schedule.
    pub proof: Proof,
    /// Cycles of an iteration in which each operation waits for the one before it.
    pub as_written: i64,
    /// Nodes that the search visited.
    pub nodes: u64,
    /// The number of stages; each takes `ii` cycles of an iteration.
    pub stages: i64,
    /// The operations of an iteration by agent, in the order in which the steady state issues them.
    pub operations: Vec<Timed>,
    /// The tensors that are held for several iterations at once.
    pub rings: Vec<RingDepth>,
    /// Waits, and the asynchronous operations that may still be under way after them.
    pub waits: Vec<InFlight>,
}

/// The times of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// The name of the operation: its kind, and the tensor that it writes.
    pub name: String,
    /// The agent that issues it.
    pub agent: String,
    /// The cycle of the iteration in which it is issued.
    pub start: i64,
    /// The cycle in which its engine begins, if it is asynchronous.
    pub begin: i64,
    /// The stage that contains its start.
    pub stage: i64,
}

/// The number of stages of a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingDepth {
    /// The tensor.
    pub name: String,
    /// The number that the loop states.
    pub stages: i64,
    /// The number that the schedule needs.
    pub needed: i64,
}

/// How many asynchronous operations may be under way when an operation starts that waits for
/// others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFlight {
    /// The operation that waits.
    pub before: String,
    /// The kind of the asynchronous operations.
    pub queue: String,
    /// How many of them may be under way: those that were issued last.
    pub left: i64,
}

/// The schedules of all innermost loops with `stages=`.
pub(crate) fn schedules(p: &Program, kernel: SpecId, target: &Target<'_>) -> Vec<LoopSchedule> {
    let of = |stmt| Graph::of(p, kernel, stmt, target).and_then(|graph| steady(&graph));
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
