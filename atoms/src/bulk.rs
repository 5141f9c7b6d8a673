//! Whether a bulk atom moves what a spec says, and what it moves: the one place that matcher,
//! printer and simulator ask.
//!
//! A bulk copy is issued by one thread and moves as much as its operands hold. What differs from
//! atom to atom is read from fields: [`Extent`], [`crate::Visibility`], the cache hint, whether
//! `{mask}` is a number of the atom.

use crate::atom::{Atom, Extent, OperandAccess};
use crate::missing;
use crate::tensor_map::{self, NoMap, describe};
use carbyne_ir::ast::CacheHint;
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::{Layout, Swizzle};
use carbyne_ir::leaf::{Fact, listed};
use carbyne_ir::program::{MapId, Operand, Program, Spec, TensorId, TensorMap};
use carbyne_ir::scalar::Memory;
use std::fmt;

/// What a bulk atom moves.
#[derive(Clone, Debug, PartialEq)]
pub struct BulkCopy {
    /// What is read.
    pub source: TensorId,
    /// What is written.
    pub target: TensorId,
    /// How many bytes, those outside of a map's tensor included.
    pub bytes: i64,
    /// The map, and where its box begins, the fastest mode first.
    pub boxed: Option<(MapId, Vec<Dim>)>,
    /// The mbarrier that counts the bytes.
    pub bar: Option<TensorId>,
    /// Blocks of the cluster that get them.
    pub mask: Option<Dim>,
}

/// Why a bulk atom does not move what a spec says.
#[derive(Clone, Debug, PartialEq)]
pub enum BulkMismatch {
    /// It takes one source and one target.
    Operands,
    /// It completes otherwise: whether the atom takes `bar=`.
    Bar(bool),
    /// Whether the atom takes `multicast=`.
    Multicast(bool),
    /// How long the atom lets caches keep what it touches.
    Cache(CacheHint),
    /// Whether the atom takes `valid=`.
    Valid(bool),
    /// An operand lies in another block's shared memory.
    Peer,
    /// An operand lies elsewhere.
    Memory {
        /// The name of the atom's operand.
        operand: &'static str,
        /// Where the atom wants it.
        want: Memory,
    },
    /// Whether the atom moves boxes of a tensor map.
    Box(bool),
    /// The map has another number of modes.
    Modes {
        /// The atom's.
        want: usize,
        /// The map's.
        found: usize,
    },
    /// Hardware has no such tensor map.
    Map(NoMap),
    /// The elements of an operand are no contiguous vector.
    Scattered {
        /// The view's layout.
        found: String,
    },
    /// The atom does not move so many bytes.
    Bytes {
        /// What it moves.
        want: String,
        /// What the operands hold.
        found: i64,
    },
    /// The tensor in shared memory does not hold its elements as a box does.
    Order {
        /// The box.
        want: String,
        /// The view's layout.
        found: String,
    },
    /// The swizzles of the map and of the tensor in shared memory differ.
    Swizzle {
        /// The map's, or none for consecutive bytes.
        want: Option<Swizzle>,
        /// The tensor's.
        found: Option<Swizzle>,
    },
    /// An address is not known to be aligned.
    Align {
        /// The name of the atom's operand.
        operand: &'static str,
        /// The alignment in bytes that the atom demands.
        want: i64,
        /// Bytes that are known.
        found: i64,
        /// What would have to be stated of symbols for it to be aligned, where that would do.
        facts: Vec<Fact>,
    },
}

fn swizzle_text(s: &Option<Swizzle>) -> String {
    match s {
        None => "no swizzle".to_owned(),
        Some(s) => format!("`swizzle=({},{},{})`", s.bits(), s.base(), s.shift()),
    }
}

impl BulkMismatch {
    /// An action that would make the atom fit.
    pub fn help(&self) -> String {
        let add = |wanted: bool, what: &str| match wanted {
            true => format!("add `{what}`"),
            false => format!("remove `{what}`"),
        };
        match self {
            BulkMismatch::Operands => "give it one source and one target".to_owned(),
            BulkMismatch::Bar(wanted) => add(*wanted, "bar=%full[s]"),
            BulkMismatch::Multicast(wanted) => add(*wanted, "multicast=MASK"),
            BulkMismatch::Cache(want) => format!("write `cache={want}`, or choose another atom"),
            BulkMismatch::Memory { operand, want } => format!("move operand {operand} to {want}"),
            BulkMismatch::Valid(wanted) => add(*wanted, "valid=COUNT"),
            BulkMismatch::Peer => "remove `.peer`, and name the blocks by `multicast=`".to_owned(),
            BulkMismatch::Box(true) => {
                "copy a box of a tensor map: `%mA = %A.tensormap([128,64])`, `%mA[i,j]`".to_owned()
            }
            BulkMismatch::Box(false) => "copy the tensor itself, not a box of a map".to_owned(),
            BulkMismatch::Modes { found, .. } => format!("choose the atom for {found} modes"),
            BulkMismatch::Map(no) => no.help(),
            BulkMismatch::Scattered { .. } => {
                "copy a part that lies together in memory, `n:1`".to_owned()
            }
            BulkMismatch::Bytes { want, .. } => format!("copy {want}"),
            BulkMismatch::Order { want, .. } => {
                format!("lay the tensor in SH out as `{want}`, or change the map's box")
            }
            BulkMismatch::Swizzle { want, .. } => {
                format!("allocate the tensor in SH with {}", swizzle_text(want))
            }
            BulkMismatch::Align { operand, want, facts, .. } => match &facts[..] {
                [] => {
                    format!(
                        "align operand {operand} to {want} bytes: `align={want}`, and its index"
                    )
                }
                facts => format!("state `where {}`, if it is so", listed(facts)),
            },
        }
    }
}

impl fmt::Display for BulkMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BulkMismatch::Operands => f.write_str("copies one tensor to one other"),
            BulkMismatch::Bar(true) => f.write_str("completes on an mbarrier, and none is named"),
            BulkMismatch::Bar(false) => f.write_str("does not complete on an mbarrier"),
            BulkMismatch::Multicast(true) => f.write_str("copies to the blocks of a mask"),
            BulkMismatch::Multicast(false) => f.write_str("copies to one block"),
            BulkMismatch::Cache(want) => write!(f, "is `cache={want}`"),
            BulkMismatch::Memory { operand, want } => write!(f, "operand {operand} lies in {want}"),
            BulkMismatch::Valid(true) => f.write_str("reads as many elements as `valid=` says"),
            BulkMismatch::Valid(false) => f.write_str("reads all of its source"),
            BulkMismatch::Peer => f.write_str("copies to the own block, or to those of a mask"),
            BulkMismatch::Box(true) => f.write_str("copies a box of a tensor map"),
            BulkMismatch::Box(false) => f.write_str("copies consecutive bytes, not a box"),
            BulkMismatch::Modes { want, found } => {
                write!(f, "copies boxes of {want} modes, the map has {found}")
            }
            BulkMismatch::Map(no) => write!(f, "{no}"),
            BulkMismatch::Scattered { found } => {
                write!(f, "copies consecutive bytes, the view is {found}")
            }
            BulkMismatch::Bytes { want, found } => write!(f, "copies {want}, here are {found}"),
            BulkMismatch::Order { want, found } => {
                write!(f, "lays a box out as {want}, the tensor in SH is {found}")
            }
            BulkMismatch::Swizzle { want, found } => write!(
                f,
                "moves {}, the tensor in SH has {}",
                swizzle_text(want),
                swizzle_text(found)
            ),
            BulkMismatch::Align { operand, want, found, .. } => {
                write!(f, "operand {operand} is aligned to {want} bytes, known are {found}")
            }
        }
    }
}

/// What `atom`, a bulk atom, moves for `spec`.
///
/// # Errors
/// The first thing in which they differ.
pub fn bulk_copy(p: &Program, spec: &Spec, atom: &Atom) -> Result<BulkCopy, BulkMismatch> {
    let ([Operand::Tensor(source)], [target]) = (&spec.inputs[..], &spec.outputs[..]) else {
        return Err(BulkMismatch::Operands);
    };
    let bar = atom.visibility.names_barrier();
    if bar != spec.bar.is_some() {
        return Err(BulkMismatch::Bar(bar));
    }
    let multicast = atom.number("mask").is_some();
    if multicast != spec.multicast.is_some() {
        return Err(BulkMismatch::Multicast(multicast));
    }
    if spec.valid.is_some() {
        return Err(BulkMismatch::Valid(false));
    }
    if atom.cache != spec.cache {
        return Err(BulkMismatch::Cache(atom.cache));
    }
    let mut sides = vec![];
    for operand in &atom.operands {
        let t = if operand.access == OperandAccess::Read { *source } else { *target };
        let memory = p.buffer_of(t).memory;
        if !memory.is_some_and(|m| operand.allows(m)) {
            let want = operand.memory.first().copied().unwrap_or(Memory::Gl);
            return Err(BulkMismatch::Memory { operand: operand.name, want });
        }
        sides.push((operand, t, memory));
    }
    let Some(&(_, global, _)) = sides.iter().find(|(.., m)| m.is_some_and(Memory::is_global))
    else {
        return Err(BulkMismatch::Operands);
    };
    let boxed = match (&p.tensors[global].map, atom.extent) {
        (Some(view), Extent::Box(modes)) => {
            let map = &p.maps[view.map];
            if map.sizes.len() != modes {
                return Err(BulkMismatch::Modes { want: modes, found: map.sizes.len() });
            }
            describe(p, map).map_err(BulkMismatch::Map)?;
            if *target == global {
                tensor_map::stores(p, map).map_err(BulkMismatch::Map)?;
            }
            let at = view.at.clone().ok_or(BulkMismatch::Box(true))?;
            Some((view.map, at))
        }
        (None, Extent::Vector) => None,
        (map, _) => return Err(BulkMismatch::Box(map.is_none())),
    };
    if sides.iter().any(|(_, t, _)| p.tensors[*t].peer.is_some()) {
        return Err(BulkMismatch::Peer);
    }
    for &(operand, t, memory) in &sides {
        match (&boxed, memory) {
            (None, _) => contiguous(p, t)?,
            (Some((map, _)), Some(Memory::Sh)) => box_in_shared(p, &p.maps[*map], t)?,
            (Some(_), _) => continue,
        }
        aligned(p, t, operand.name, operand.align)?;
    }
    let found = bytes(p, *target);
    if let Some(n) = atom.number("bytes")
        && !n.takes(Some(found), Some(found), found)
    {
        return Err(BulkMismatch::Bytes { want: n.to_string(), found });
    }
    let (source, target) = (*source, *target);
    Ok(BulkCopy { source, target, bytes: found, boxed, bar: spec.bar, mask: spec.multicast })
}

/// Bytes that a view holds.
fn bytes(p: &Program, t: TensorId) -> i64 {
    let n = p.tensors[t].concat().size_in(&p.arena).ok().and_then(Dim::as_const).unwrap_or(0);
    n.saturating_mul(p.scalar_of(t).bits()) / 8
}

/// Checks that the elements of the view are one contiguous vector.
fn contiguous(p: &Program, t: TensorId) -> Result<(), BulkMismatch> {
    let layout = p.tensors[t].concat();
    let fixed = layout.to_fixed();
    let plain = fixed
        .as_ref()
        .is_some_and(|l| l.coalesce().leaves().iter().all(|(n, s)| *n == 1 || *s == 1));
    if !plain {
        return Err(BulkMismatch::Scattered { found: layout.display_in(&p.arena).to_string() });
    }
    match p.buffer_of(t).swizzle {
        Some(s) if !s.is_none() => Err(BulkMismatch::Swizzle { want: None, found: Some(s) }),
        _ => Ok(()),
    }
}

/// The view holds its elements as a box lies in shared memory.
fn box_in_shared(p: &Program, map: &TensorMap, t: TensorId) -> Result<(), BulkMismatch> {
    let found = p.buffer_of(t).swizzle.filter(|s| !s.is_none());
    if found != map.swizzle {
        return Err(BulkMismatch::Swizzle { want: map.swizzle, found });
    }
    let mut modes = vec![];
    let mut stride = 1i64;
    for &n in &map.sizes {
        modes.push((n, stride));
        stride = stride.saturating_mul(n);
    }
    if !map.first_fastest {
        modes.reverse();
    }
    let modes: Option<Vec<Layout>> =
        modes.into_iter().map(|(n, s)| Layout::new(n, s).ok()).collect();
    let want = modes.and_then(|m| Layout::concat(&m).ok());
    let layout = p.tensors[t].concat();
    let same = match (&want, layout.to_fixed()) {
        (Some(want), Some(found)) => want.coalesce() == found.coalesce(),
        _ => false,
    };
    if same {
        return Ok(());
    }
    let want = want.map_or(String::new(), |l| l.to_string());
    Err(BulkMismatch::Order { want, found: layout.display_in(&p.arena).to_string() })
}

/// The first byte of the view, and of the swizzle's pattern, is known to be aligned.
fn aligned(
    p: &Program,
    t: TensorId,
    operand: &'static str,
    align: i64,
) -> Result<(), BulkMismatch> {
    let buffer = p.buffer_of(t);
    let want = align.max(buffer.swizzle.filter(|s| !s.is_none()).map_or(1, Swizzle::period));
    let offset = p.arena.divisor(p.tensors[t].offset).saturating_mul(buffer.scalar.bits()) / 8;
    let found = match offset {
        0 => buffer.align,
        n => buffer.align.min(1 << n.trailing_zeros().min(30)),
    };
    if found >= want {
        return Ok(());
    }
    let facts = missing::begins_aligned(p, t, want);
    Err(BulkMismatch::Align { operand, want, found, facts })
}
