//! Why an atom does not implement a spec: what differs, how near it came, what would fix it.

use crate::Atom;
use crate::bulk::BulkMismatch;
use crate::descriptor::DescriptorMismatch;
use crate::operand::Divisor;
use crate::operand::places;
use crate::tensor_map::NoMap;
use crate::threads::ThreadsMismatch;
use carbyne_ir::leaf::{Fact, listed};
use carbyne_ir::scalar::Memory;
use std::fmt;

/// The first thing in which an atom differs from a spec. Ordered by nearness: later variants came
/// closer to a match.
#[derive(Clone, Debug, PartialEq)]
pub enum Mismatch {
    /// It computes something else.
    Op {
        /// What the row computes.
        want: String,
    },
    /// It has another number of operands.
    Arity {
        /// How many the row reads and writes.
        want: (usize, usize),
        /// How many the spec reads and writes.
        found: (usize, usize),
    },
    /// An operand has another scalar type.
    Scalar {
        /// The row's operand.
        operand: &'static str,
        /// The row's unit.
        want: String,
        /// The tensor's scalar.
        found: String,
        /// By how many bits they differ, and by 128 more a float and an integer: which of several
        /// wrong types is nearest.
        apart: i64,
        /// Whether the row reads it, and its type has all values of the tensor's.
        holds: bool,
    },
    /// An operand lies elsewhere.
    Memory {
        /// The row's operand.
        operand: &'static str,
        /// Where the row allows.
        want: String,
        /// Where the tensor lies.
        found: String,
    },
    /// An operand is read from memory by the row, and what decomposes MatMuls brings it to
    /// registers. Not found by [`super::bind`], which asks for no body.
    FromMemory {
        /// The row's operand.
        operand: &'static str,
        /// Where the row reads it.
        want: String,
        /// Threads that execute it together.
        threads: i64,
    },
    /// It is executed by another number of threads.
    Threads {
        /// The row's.
        want: String,
        /// The spec's.
        found: String,
    },
    /// A thread holds another number of values.
    Values {
        /// The row's operand.
        operand: &'static str,
        /// Values of one thread in the row.
        want: i64,
        /// In the spec.
        found: i64,
        /// Whether they are those of threads together, each of which has a part.
        shared: bool,
    },
    /// A literal, which is one value, stands where the row takes several.
    Literal {
        /// The row's operand.
        operand: &'static str,
        /// Values of one thread in the row.
        want: i64,
    },
    /// The row multiplies by the reciprocal of a literal, and something else stands there.
    Divisor {
        /// The row's operand.
        operand: &'static str,
        /// Which literals it takes.
        want: Divisor,
        /// The operand that was found.
        found: String,
    },
    /// The values of a thread are not where the row wants them.
    Order {
        /// The row's operand.
        operand: &'static str,
        /// What is wanted.
        want: String,
        /// What the view has.
        found: String,
    },
    /// No descriptor describes the operand.
    Descriptor {
        /// The row's operand.
        operand: &'static str,
        /// Why not.
        why: DescriptorMismatch,
    },
    /// An operand that one descriptor names is not the same for every thread.
    Uniform {
        /// The row's operand.
        operand: &'static str,
        /// The first thread of a group whose operand begins elsewhere.
        thread: i64,
    },
    /// The address is not known to be aligned.
    Align {
        /// The row's operand.
        operand: &'static str,
        /// Bytes.
        want: i64,
        /// Bytes that are known.
        found: i64,
        /// What would have to be stated of symbols for it to be aligned, where that would do and
        /// was looked for.
        facts: Vec<Fact>,
    },
    /// Tiles reach over the end of a mode, and the row does not access what is inside alone.
    Partial {
        /// The tensor of which some elements are not there.
        tensor: String,
        /// What is wrong.
        why: Why,
    },
    /// It moves another amount, or completes otherwise.
    Bulk(BulkMismatch),
    /// Elements would end in other places than the enclosing Move says. Not found by
    /// [`super::bind`], which looks at no other spec.
    Relation {
        /// What goes wrong first.
        detail: String,
    },
    /// All else fits, but it adds to what the spec sets.
    Accumulates,
}

impl Mismatch {
    /// Of a row that reads an operand from memory alone.
    pub fn from_memory(atom: &Atom) -> Option<Self> {
        let operand = atom.operands.iter().find(|o| !o.allows(Memory::Rf))?;
        let (want, threads) = (places(operand.memory), atom.group);
        Some(Mismatch::FromMemory { operand: operand.name, want, threads })
    }

    /// With the facts that would make it match, where they are about alignment and not known yet.
    #[must_use]
    pub fn lacking(mut self, missing: impl FnOnce() -> Vec<Fact>) -> Self {
        if let Mismatch::Align { facts, .. } = &mut self
            && facts.is_empty()
        {
            *facts = missing();
        }
        self
    }

    /// Facts about symbols that are not stated, and that stand between the atom and the spec.
    pub fn facts(&self) -> &[Fact] {
        match self {
            Mismatch::Align { facts, .. }
            | Mismatch::Bulk(
                BulkMismatch::Align { facts, .. }
                | BulkMismatch::Map(NoMap::Unaligned { facts, .. }),
            ) => facts,
            Mismatch::Partial { why: Why::Cut { fact, .. }, .. } => fact.as_slice(),
            _ => &[],
        }
    }

    /// Larger came nearer.
    pub fn nearness(&self) -> (u32, i64) {
        let apart = match self {
            Mismatch::Scalar { apart, .. } => *apart,
            Mismatch::Values { want, found, .. } => (want - found).abs(),
            Mismatch::Memory { want, .. } => i64::from(want.contains("GL")),
            _ => 0,
        };
        (self.rank(), -apart)
    }

    fn rank(&self) -> u32 {
        match self {
            Mismatch::Op { .. } | Mismatch::Arity { .. } => 0,
            Mismatch::Scalar { .. } => 1,
            Mismatch::Memory { .. } | Mismatch::FromMemory { .. } => 2,
            Mismatch::Threads { .. } => 3,
            Mismatch::Values { .. } | Mismatch::Literal { .. } | Mismatch::Divisor { .. } => 4,
            Mismatch::Order { .. } | Mismatch::Descriptor { .. } | Mismatch::Uniform { .. } => 5,
            Mismatch::Align { .. } | Mismatch::Partial { .. } => 6,
            // It is a copy of boxes by a map, and hardware has no such map.
            Mismatch::Bulk(BulkMismatch::Map(_)) => 6,
            Mismatch::Bulk(_) => 4,
            Mismatch::Relation { .. } => 7,
            Mismatch::Accumulates => 8,
        }
    }

    /// An action that would make the atom match.
    pub fn help(&self) -> String {
        match self {
            Mismatch::Op { want } => format!("write the spec as {want}"),
            Mismatch::Arity { want: (reads, writes), .. } => {
                format!("give it {reads} inputs and {writes} outputs")
            }
            Mismatch::Scalar { want, found, holds: true, .. } => {
                format!("convert {found} to {want}, which loses nothing: `cast(%x, {want})`")
            }
            Mismatch::Scalar { operand, want, .. } => {
                format!("declare operand {operand} as {want}, or compute in another type")
            }
            Mismatch::Memory { operand, want, found } => match want.contains("GL") {
                // Nobody moves data to global memory for the sake of an instruction.
                true => format!("leave `atom=` out, or name an instruction for {found}"),
                false => format!("put operand {operand} in {want}, by a Move of its own"),
            },
            Mismatch::FromMemory { want, threads, .. } => format!(
                "leave the factors of the MatMul of tiles in {want}, and give it a multiple of {threads} threads and \
                 tiles that the instruction's extents divide"
            ),
            Mismatch::Threads { want, .. } => format!("run the spec on {want}"),
            Mismatch::Values { operand, shared: true, .. } => {
                format!(
                    "write `.mine` behind operand {operand}, a thread's own values, or move it by all threads that share it"
                )
            }
            Mismatch::Values { operand, want, .. } => {
                format!("give each thread {want} values of operand {operand}")
            }
            Mismatch::Literal { .. } => {
                "fill a register tensor with the literal by an Init, and name the tensor".to_owned()
            }
            Mismatch::Order { operand, want, .. } => {
                format!("lay operand {operand} out so that its values are {want}")
            }
            Mismatch::Divisor { .. } => {
                "leave `atom=` out, or divide by such a literal".to_owned()
            }
            Mismatch::Descriptor { why, .. } => why.help(),
            Mismatch::Uniform { operand, .. } => {
                format!("give all threads of a group the same view of operand {operand}")
            }
            Mismatch::Align { operand, want, facts, .. } => match &facts[..] {
                [] => format!("align operand {operand} to {want} bytes: base, strides and index"),
                facts => format!("state `where {}`, if it is so", listed(facts)),
            },
            Mismatch::Partial { why, .. } => match why {
                Why::Cut { n: ..=1, .. } => "give the tensor extents that are known".to_owned(),
                Why::Cut { n, fact: None } => {
                    format!("move fewer than {n} elements at once, or pad the tensor so that {n} divide it")
                }
                Why::Cut { fact: Some(fact), .. } => {
                    format!("state `where {fact}` of the symbol, or move fewer elements at once")
                }
                Why::Registers => {
                    "copy to registers first, or by an atom that counts its bytes".to_owned()
                }
                Why::Copy => "copy the elements to registers by a Move of its own".to_owned(),
                Why::Whole => {
                    "copy a box of a tensor map, `%A.tensormap([128,64])`, which ends where the tensor does".to_owned()
                }
            },
            Mismatch::Bulk(mismatch) => mismatch.help(),
            Mismatch::Relation { .. } => {
                "change the view of the source, or the thread-value layout of the destination"
                    .to_owned()
            }
            Mismatch::Accumulates => "set the output with an Init, then write MatMul".to_owned(),
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Op { want } => write!(f, "computes {want}"),
            Mismatch::Arity { want, found } => write!(
                f,
                "reads {} and writes {} operands, found {} and {}",
                want.0, want.1, found.0, found.1
            ),
            Mismatch::Scalar { operand, want, found, .. } => {
                write!(f, "operand {operand} is {want}, found {found}")
            }
            Mismatch::Memory { operand, want, found } => {
                write!(f, "operand {operand} lies in {want}, found {found}")
            }
            Mismatch::FromMemory { operand, want, threads } => write!(
                f,
                "reads operand {operand} from {want}, by {threads} threads together; the body that decompose has \
                 written brings both factors to registers"
            ),
            Mismatch::Threads { want, found } => write!(f, "needs {want}, found {found}"),
            Mismatch::Values { operand, want, found, shared } => {
                let of = if *shared { ", which threads share" } else { "" };
                write!(f, "operand {operand} has {want} values a thread, found {found}{of}")
            }
            Mismatch::Literal { operand, want } => {
                write!(f, "operand {operand} is {want} values of a thread, a literal is one")
            }
            Mismatch::Divisor { operand, want, found } => {
                write!(f, "operand {operand} is {want}, found {found}")
            }
            Mismatch::Order { operand, want, found } => {
                write!(f, "values of operand {operand} are {want}, found {found}")
            }
            Mismatch::Descriptor { operand, why } => write!(f, "operand {operand}: {why}"),
            Mismatch::Uniform { operand, thread } => {
                write!(f, "operand {operand} begins elsewhere for thread {thread} of its group")
            }
            Mismatch::Align { operand, want, found, .. } => {
                write!(f, "operand {operand} is aligned to {want} bytes, known are {found}")
            }
            Mismatch::Partial { tensor, why } => match why {
                Why::Cut { n, .. } => {
                    write!(
                        f,
                        "accesses {n} elements of {tensor} at once, which may end between them"
                    )
                }
                Why::Registers => {
                    write!(f, "elements of {tensor} may not be there, for which it writes no zeros")
                }
                Why::Copy => write!(f, "elements of {tensor} may not be there"),
                Why::Whole => write!(f, "moves all of {tensor}, of which a part may not be there"),
            },
            Mismatch::Bulk(mismatch) => write!(f, "{mismatch}"),
            Mismatch::Relation { detail } => f.write_str(detail),
            Mismatch::Accumulates => f.write_str("adds to its output and never sets it"),
        }
    }
}

impl std::error::Error for Mismatch {}

impl From<ThreadsMismatch> for Mismatch {
    fn from(ThreadsMismatch { want, found }: ThreadsMismatch) -> Self {
        Mismatch::Threads { want, found }
    }
}

impl From<BulkMismatch> for Mismatch {
    fn from(mismatch: BulkMismatch) -> Self {
        Mismatch::Bulk(mismatch)
    }
}

/// Why a leaf cannot access a tensor of which some elements are not there.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// Some of the values that are accessed at once may be inside and others not.
    Cut {
        /// How many there are.
        n: i64,
        /// A fact that would keep them together.
        fact: Option<Fact>,
    },
    /// Zeros are written for elements that are not there, and only to registers.
    Registers,
    /// Zeros stand for elements that are not there, in copies.
    Copy,
    /// The atom copies whole vectors.
    Whole,
}
