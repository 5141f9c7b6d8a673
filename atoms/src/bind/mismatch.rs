//! Defines [`Mismatch`], a difference between an atom and a leaf spec, which converts to the text
//! and the help of an error message. [`super::bind()`] returns the first difference. `decompose`
//! adds two kinds that concern several specs: `FromMemory` and `Relation`. [`Mismatch::nearness`]
//! orders differences, so that messages name the atoms that almost fit. [`Why`] is the reason why
//! an atom cannot access a partial tile.

use crate::Atom;
use crate::bulk::BulkMismatch;
use crate::descriptor::DescriptorMismatch;
use crate::operand::Divisor;
use crate::operand::memory_names;
use crate::tensor_map::NoMap;
use crate::threads::ThreadsMismatch;
use carbyne_ir::leaf::{Fact, listed};
use carbyne_ir::scalar::Memory;
use std::fmt;

/// The first difference between an atom and a spec. [`Mismatch::nearness`] orders them.
#[derive(Clone, Debug, PartialEq)]
pub enum Mismatch {
    /// The atom computes another operation.
    Op {
        /// The operation of the atom.
        want: String,
    },
    /// The atom has another number of operands.
    Arity {
        /// How many operands the atom reads and writes.
        want: (usize, usize),
        /// How many operands the spec reads and writes.
        found: (usize, usize),
    },
    /// An operand has another scalar type.
    Scalar {
        /// The atom's operand.
        operand: &'static str,
        /// The unit of the operand.
        want: String,
        /// The scalar type of the tensor.
        found: String,
        /// The difference of the widths in bits, plus 128 between a float and an integer. It tells
        /// which of several wrong types is nearest.
        apart: i64,
        /// Whether the atom reads the operand, and its type can represent all values of the
        /// tensor's type.
        holds: bool,
    },
    /// An operand lies in another memory.
    Memory {
        /// The atom's operand.
        operand: &'static str,
        /// The memories that the atom allows.
        want: String,
        /// The memory of the tensor.
        found: String,
    },
    /// The atom reads an operand from memory, but the decomposition of MatMuls loads it to
    /// registers. Not found by [`super::bind()`], which does not decompose.
    FromMemory {
        /// The atom's operand.
        operand: &'static str,
        /// The memories from which the atom reads it.
        want: String,
        /// The number of threads that execute the atom together.
        threads: i64,
    },
    /// The threads of the spec are not groups of the atom.
    Threads {
        /// The threads that the atom needs.
        want: String,
        /// The threads of the spec.
        found: String,
    },
    /// A thread holds another number of values.
    Values {
        /// The atom's operand.
        operand: &'static str,
        /// The number of values of one thread in the atom.
        want: i64,
        /// The number of values of one thread in the spec.
        found: i64,
        /// Whether several threads share the values of the tensor.
        shared: bool,
    },
    /// The spec has a literal, which is one value, for an operand of several values.
    Literal {
        /// The atom's operand.
        operand: &'static str,
        /// The number of values of one thread in the atom.
        want: i64,
    },
    /// The atom multiplies by the reciprocal of a literal, but the spec has another operand.
    Divisor {
        /// The atom's operand.
        operand: &'static str,
        /// The literals that the atom takes.
        want: Divisor,
        /// The operand of the spec.
        found: String,
    },
    /// The values of a thread are in another order than the atom needs.
    Order {
        /// The atom's operand.
        operand: &'static str,
        /// The order that the atom needs.
        want: String,
        /// The layout of the view.
        found: String,
    },
    /// No descriptor describes the operand.
    Descriptor {
        /// The atom's operand.
        operand: &'static str,
        /// The reason.
        why: DescriptorMismatch,
    },
    /// An operand with one descriptor differs between the threads of a group.
    Uniform {
        /// The atom's operand.
        operand: &'static str,
        /// The first thread of a group whose operand begins at another address.
        thread: i64,
    },
    /// The address may not be aligned.
    Align {
        /// The atom's operand.
        operand: &'static str,
        /// The alignment that the atom needs, in bytes.
        want: i64,
        /// The known alignment, in bytes.
        found: i64,
        /// Facts about symbols under which it would be aligned. Empty if there are none, or if
        /// nobody has looked for them.
        facts: Vec<Fact>,
    },
    /// A tile may be partial, and the atom cannot access only the elements inside.
    Partial {
        /// The tensor with the partial tile.
        tensor: String,
        /// The reason.
        why: Why,
    },
    /// The atom moves another amount of data, or completes in another way.
    Bulk(BulkMismatch),
    /// Elements would end up in other places than the enclosing Move says. Not found by
    /// [`super::bind()`], which considers no other spec.
    Relation {
        /// The first wrong element, as text.
        detail: String,
    },
    /// Everything else fits, but the atom adds to its output, and the spec sets it.
    Accumulates,
}

impl Mismatch {
    /// The mismatch for an atom that reads an operand from memory only. `None` for other atoms.
    pub fn from_memory(atom: &Atom) -> Option<Self> {
        let operand = atom.operands.iter().find(|o| !o.allows(Memory::Rf))?;
        let (want, threads) = (memory_names(operand.memory), atom.group);
        Some(Mismatch::FromMemory { operand: operand.name, want, threads })
    }

    /// Adds the facts under which the atom would match, if the mismatch is about alignment and has
    /// none yet.
    #[must_use]
    pub fn lacking(mut self, missing: impl FnOnce() -> Vec<Fact>) -> Self {
        if let Mismatch::Align { facts, .. } = &mut self
            && facts.is_empty()
        {
            *facts = missing();
        }
        self
    }

    /// The facts about symbols that would make the atom match.
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

    /// How near the atom is to a match, as an ordered pair. Larger is nearer.
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
            // The atom copies boxes by a tensor map, and the hardware has no such tensor map.
            Mismatch::Bulk(BulkMismatch::Map(_)) => 6,
            Mismatch::Bulk(_) => 4,
            Mismatch::Relation { .. } => 7,
            Mismatch::Accumulates => 8,
        }
    }

    /// The help: an action that would make the atom match.
    pub fn help(&self) -> String {
        match self {
            Mismatch::Op { want } => format!("write the spec as {want}"),
            Mismatch::Arity { want: (reads, writes), .. } => {
                format!("give the spec {reads} inputs and {writes} outputs")
            }
            Mismatch::Scalar { want, found, holds: true, .. } => {
                format!("convert {found} to {want} without loss: `cast(%x, {want})`")
            }
            Mismatch::Scalar { operand, want, .. } => {
                format!("declare operand {operand} as {want}, or compute in another type")
            }
            Mismatch::Memory { operand, want, found } => match want.contains("GL") {
                // Moving data to global memory for the sake of one instruction never pays.
                true => format!("remove `atom=`, or name an atom for operands in {found}"),
                false => format!("move operand {operand} to {want} first, by a separate Move"),
            },
            Mismatch::FromMemory { want, threads, .. } => format!(
                "leave the factors of the MatMul of tiles in {want}, and give it a multiple of \
                 {threads} threads and tiles that are multiples of the instruction's tile"
            ),
            Mismatch::Threads { want, .. } => format!("run the spec on {want}"),
            Mismatch::Values { operand, shared: true, .. } => {
                format!(
                    "write `.mine` after operand {operand} for the part of one thread, or let all \
                     threads that share it execute the Move together"
                )
            }
            Mismatch::Values { operand, want, .. } => {
                format!("give each thread {want} values of operand {operand}")
            }
            Mismatch::Literal { .. } => {
                "initialize a register tensor with the literal by an Init, and use this tensor"
                    .to_owned()
            }
            Mismatch::Order { operand, want, .. } => {
                format!("change the layout of operand {operand} so that its values are {want}")
            }
            Mismatch::Divisor { .. } => "remove `atom=`, or divide by such a literal".to_owned(),
            Mismatch::Descriptor { why, .. } => why.help(),
            Mismatch::Uniform { operand, .. } => {
                format!("give all threads of a group the same view of operand {operand}")
            }
            Mismatch::Align { operand, want, facts, .. } => match &facts[..] {
                [] => format!("align base, strides and index of operand {operand} to {want} bytes"),
                facts => format!("state `where {}` if this always holds", listed(facts)),
            },
            Mismatch::Partial { why, .. } => match why {
                Why::Cut { n: ..=1, .. } => "give the tensor constant extents".to_owned(),
                Why::Cut { n, fact: None } => format!(
                    "move fewer than {n} elements at once, or pad the tensor to a multiple of {n}"
                ),
                Why::Cut { fact: Some(fact), .. } => {
                    format!("state `where {fact}`, or move fewer elements at once")
                }
                Why::Registers => {
                    "copy to registers first, or use an atom with a byte count (`valid=`)"
                        .to_owned()
                }
                Why::Copy => "copy the elements to registers first, by a separate Move".to_owned(),
                Why::Whole => "copy a box of a tensor map, which ends where the tensor ends: \
                               `%A.tensormap([128,64])`"
                    .to_owned(),
            },
            Mismatch::Bulk(mismatch) => mismatch.help(),
            Mismatch::Relation { .. } => {
                "change the view of the source, or the thread-value layout of the destination"
                    .to_owned()
            }
            Mismatch::Accumulates => {
                "set the output by an Init first, and write MatMul instead of MatMul.set".to_owned()
            }
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
                write!(f, "operand {operand} must be {want}, but is {found}")
            }
            Mismatch::Memory { operand, want, found } => {
                write!(f, "operand {operand} must lie in {want}, but lies in {found}")
            }
            Mismatch::FromMemory { operand, want, threads } => write!(
                f,
                "reads operand {operand} from {want} by {threads} threads together, but the body \
                 that decompose has written loads both factors to registers"
            ),
            Mismatch::Threads { want, found } => write!(f, "needs {want}, found {found}"),
            Mismatch::Values { operand, want, found, shared } => {
                let of = if *shared { ", which threads share" } else { "" };
                write!(f, "operand {operand} needs {want} values per thread, found {found}{of}")
            }
            Mismatch::Literal { operand, want } => {
                write!(f, "operand {operand} needs {want} values per thread, but a literal is one")
            }
            Mismatch::Divisor { operand, want, found } => {
                write!(f, "operand {operand} must be {want}, but is {found}")
            }
            Mismatch::Order { operand, want, found } => {
                write!(f, "values of operand {operand} must be {want}, but are {found}")
            }
            Mismatch::Descriptor { operand, why } => write!(f, "operand {operand}: {why}"),
            Mismatch::Uniform { operand, thread } => {
                write!(f, "operand {operand} begins elsewhere for thread {thread} of its group")
            }
            Mismatch::Align { operand, want, found, .. } => {
                write!(
                    f,
                    "operand {operand} must be aligned to {want} bytes, but is known to be aligned \
                     to {found} only"
                )
            }
            Mismatch::Partial { tensor, why } => match why {
                Why::Cut { n, .. } => {
                    write!(
                        f,
                        "accesses {n} elements of {tensor} at once, but the tensor may end between \
                         them"
                    )
                }
                Why::Registers => {
                    write!(
                        f,
                        "elements of {tensor} may be outside of it, and the atom cannot write \
                         zeros for them"
                    )
                }
                Why::Copy => write!(f, "elements of {tensor} may be outside of it"),
                Why::Whole => {
                    write!(f, "moves whole tiles, but tiles of {tensor} may be partial")
                }
            },
            Mismatch::Bulk(mismatch) => write!(f, "{mismatch}"),
            Mismatch::Relation { detail } => f.write_str(detail),
            Mismatch::Accumulates => f.write_str("adds to its output, but the spec sets it"),
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

/// Why a leaf cannot access a tensor with partial tiles.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// Some of the values that one access covers may be inside, and others outside.
    Cut {
        /// The number of values of one access.
        n: i64,
        /// A fact under which all values are inside or outside together.
        fact: Option<Fact>,
    },
    /// Elements outside are replaced by zeros, which is possible in registers only.
    Registers,
    /// Elements outside are replaced by zeros, which is possible in copies only.
    Copy,
    /// The atom copies whole vectors.
    Whole,
}
