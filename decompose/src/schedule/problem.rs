//! [`Problem`] is a scheduling problem: the operations of one iteration of a loop, the resources
//! that they use, and their dependences.
//!
//! All times are integer cycles. Nothing here depends on a certain kernel, instruction or
//! architecture.

/// Operations that a problem may have.
pub(crate) const MOST_OPERATIONS: usize = 64;
/// Dependences, and uses of resources, that a problem may have.
const MOST_DEPENDENCES: usize = 1 << 12;
/// Cycles of a use or of a latency, at most.
const MOST_CYCLES: i64 = 1 << 26;
/// Iterations that a dependence spans, at most.
const MOST_DISTANCE: i64 = 1 << 12;

/// What a modulo schedule is sought for. Operations, agents, resources, queues and rings are named
/// by their places in these lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Who issues operations: the threads of a role, which issue one operation after the other and
    /// block in waits.
    pub agents: Vec<String>,
    /// What operations keep busy.
    pub resources: Vec<Resource>,
    /// Engines that work on after an instruction of an agent, each in the order of issue: its
    /// copies, its products.
    pub queues: Vec<Queue>,
    /// Buffers that hold several iterations at once.
    pub rings: Vec<Ring>,
    /// The operations of one iteration, in the order of the text.
    pub operations: Vec<Operation>,
    /// What must hold between their starts.
    pub dependences: Vec<Dependence>,
}

/// What operations keep busy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Resource {
    /// Its name.
    pub name: String,
    /// Whether it serves one operation at a time, as a matrix unit does. Another is shared out
    /// among all that use it, so that only the sum of the uses in an iteration is bounded, by the
    /// initiation interval.
    pub serial: bool,
}

/// An engine that works on after an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queue {
    /// Its name.
    pub name: String,
    /// Whether agents wait for it by groups, which complete in the order of issue: for all but the
    /// last so many. Of another each operation says itself that it is done, as copies do that an
    /// mbarrier counts.
    pub groups: bool,
}

/// A buffer that holds several iterations at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ring {
    /// Its name.
    pub name: String,
    /// How many: an anti dependence through it spans as many iterations. Of a register tensor it is
    /// one.
    pub stages: i64,
}

/// One operation of an iteration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Operation {
    /// Its name.
    pub name: String,
    /// The agent that issues it.
    pub agent: usize,
    /// Cycles for which it holds that agent: an asynchronous operation while it is issued, another
    /// until it is done.
    pub held: i64,
    /// What it keeps busy from its start on.
    pub uses: Vec<Use>,
    /// Cycles from its start until its result is there.
    pub latency: i64,
    /// The engine that works on it, where it is asynchronous.
    pub queue: Option<usize>,
}

/// A use of a resource.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Use {
    /// Which.
    pub resource: usize,
    /// For how long.
    pub cycles: i64,
}

/// Why an operation waits for another.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It reads what the other has written.
    True,
    /// It overwrites what the other has read, through a ring or in place.
    Anti {
        /// The ring, of which each iteration uses another stage.
        ring: Option<usize>,
    },
    /// It overwrites what the other has written.
    Output,
}

/// A dependence: σ(to) + distance·II ≥ σ(from) + latency.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dependence {
    /// The operation that comes first.
    pub from: usize,
    /// The one that waits for it.
    pub to: usize,
    /// Cycles from the start of the first until the second may start.
    pub latency: i64,
    /// How many iterations later that is.
    pub distance: i64,
    /// Why.
    pub kind: Kind,
}

/// Why a problem has no schedule, or is not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsolvable {
    /// The loop has no operations.
    #[error("the loop has no operations")]
    Empty,
    /// The problem is larger than the solver accepts.
    #[error("the loop has {0} {1}, but at most {2} are allowed")]
    TooMany(usize, &'static str, usize),
    /// A number is out of range.
    #[error("the operation `{operation}` has {what} of {value}")]
    OutOfRange {
        /// The operation.
        operation: String,
        /// The name of the number.
        what: &'static str,
        /// The number.
        value: i64,
    },
    /// The problem refers to something that it does not contain.
    #[error("the problem has no {0} {1}")]
    Unknown(&'static str, usize),
    /// An operation would wait for itself within one iteration.
    #[error("the operation `{0}` waits for itself within one iteration")]
    Circular(String),
}

impl Problem {
    /// Adds an agent.
    pub(crate) fn agent(&mut self, name: impl Into<String>) -> usize {
        self.agents.push(name.into());
        self.agents.len() - 1
    }

    /// Adds a resource.
    pub(crate) fn resource(&mut self, name: impl Into<String>, serial: bool) -> usize {
        self.resources.push(Resource { name: name.into(), serial });
        self.resources.len() - 1
    }

    /// Adds a queue.
    pub(crate) fn queue(&mut self, name: impl Into<String>, groups: bool) -> usize {
        self.queues.push(Queue { name: name.into(), groups });
        self.queues.len() - 1
    }

    /// Adds a ring.
    pub(crate) fn ring(&mut self, name: impl Into<String>, stages: i64) -> usize {
        self.rings.push(Ring { name: name.into(), stages });
        self.rings.len() - 1
    }

    /// Adds an operation.
    pub(crate) fn operation(&mut self, operation: Operation) -> usize {
        self.operations.push(operation);
        self.operations.len() - 1
    }

    /// The operations in an order in which each comes after those that it waits for within an
    /// iteration: that of the text, where it is one.
    ///
    /// # Errors
    /// What is wrong with the problem.
    pub(crate) fn checked(&self) -> Result<Vec<usize>, Unsolvable> {
        let n = self.operations.len();
        if n == 0 {
            return Err(Unsolvable::Empty);
        }
        let uses = self.operations.iter().map(|o| o.uses.len()).sum();
        let counted = [
            (n, "operations", MOST_OPERATIONS),
            (self.dependences.len(), "dependences", MOST_DEPENDENCES),
            (uses, "uses of resources", MOST_DEPENDENCES),
        ];
        if let Some((n, what, most)) = counted.into_iter().find(|(n, _, most)| n > most) {
            return Err(Unsolvable::TooMany(n, what, most));
        }
        for o in &self.operations {
            self.check_operation(o)?;
        }
        for d in &self.dependences {
            self.check_dependence(d)?;
        }
        self.ordered()
    }

    fn check_operation(&self, o: &Operation) -> Result<(), Unsolvable> {
        let cycles = |what, value| within(o, what, value, MOST_CYCLES);
        cycles("held cycles", o.held)?;
        cycles("a latency", o.latency)?;
        known("agent", o.agent, self.agents.len())?;
        if let Some(queue) = o.queue {
            known("queue", queue, self.queues.len())?;
        }
        for u in &o.uses {
            known("resource", u.resource, self.resources.len())?;
            cycles("a use", u.cycles)?;
        }
        Ok(())
    }

    fn check_dependence(&self, d: &Dependence) -> Result<(), Unsolvable> {
        for end in [d.from, d.to] {
            known("operation", end, self.operations.len())?;
        }
        let from = &self.operations[d.from];
        within(from, "a dependence", d.latency, MOST_CYCLES)?;
        within(from, "a distance", d.distance, MOST_DISTANCE)?;
        match d.kind {
            Kind::Anti { ring: Some(ring) } => known("ring", ring, self.rings.len()),
            _ => Ok(()),
        }
    }

    /// Kahn's algorithm, the first of the text first.
    fn ordered(&self) -> Result<Vec<usize>, Unsolvable> {
        let n = self.operations.len();
        let within: Vec<&Dependence> =
            self.dependences.iter().filter(|d| d.distance == 0).collect();
        let mut waits = vec![0usize; n];
        within.iter().for_each(|d| waits[d.to] += 1);
        let mut out = vec![];
        let mut left: Vec<usize> = (0..n).collect();
        while let Some(at) = left.iter().position(|o| waits[*o] == 0) {
            let next = left.remove(at);
            within.iter().filter(|d| d.from == next).for_each(|d| waits[d.to] -= 1);
            out.push(next);
        }
        match left.first() {
            Some(o) => Err(Unsolvable::Circular(self.operations[*o].name.clone())),
            None => Ok(out),
        }
    }
}

fn within(o: &Operation, what: &'static str, value: i64, most: i64) -> Result<(), Unsolvable> {
    let operation = || o.name.clone();
    let wrong = || Unsolvable::OutOfRange { operation: operation(), what, value };
    if (0..=most).contains(&value) { Ok(()) } else { Err(wrong()) }
}

fn known(what: &'static str, id: usize, n: usize) -> Result<(), Unsolvable> {
    if id < n { Ok(()) } else { Err(Unsolvable::Unknown(what, id)) }
}
