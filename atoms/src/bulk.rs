//! Decides whether a bulk atom (`cp.async.bulk`, `cp.reduce.async.bulk`) implements a spec, and
//! which bytes it moves ([`BulkCopy`]). The first difference is a [`BulkMismatch`]. Matcher,
//! printer and simulator call [`bulk_copy`] through [`crate::bind`], and the synchronization
//! checker calls it itself, so that they agree.
//!
//! One thread issues a bulk copy, which copies as much as its operands hold. Fields of the atom
//! describe the differences between atoms: [`Extent`], [`crate::Visibility`], the cache hint, and
//! whether the atom has the number `{mask}`, the mask of the blocks that receive the bytes.

use crate::atom::{Atom, Extent, OperandAccess};
use crate::missing_facts;
use crate::tensor_map::{self, NoMap, describe};
use carbyne_ir::ast::CacheHint;
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::{Layout, Swizzle};
use carbyne_ir::leaf::{Fact, listed};
use carbyne_ir::program::{MapId, Operand, Program, Spec, TensorId, TensorMap};
use carbyne_ir::scalar::Memory;
use std::fmt;

/// The copy that a bulk atom makes.
#[derive(Clone, Debug, PartialEq)]
pub struct BulkCopy {
    /// The tensor that is read.
    pub source: TensorId,
    /// The tensor that is written.
    pub target: TensorId,
    /// The number of bytes, including those outside of a tensor map's tensor.
    pub bytes: i64,
    /// The tensor map, and the coordinates of the box's first element, the fastest mode first.
    pub boxed: Option<(MapId, Vec<Dim>)>,
    /// The mbarrier that counts the bytes.
    pub bar: Option<TensorId>,
    /// The mask of the cluster's blocks that receive the bytes.
    pub mask: Option<Dim>,
}

/// Why a bulk atom does not implement a spec. A `bool` tells whether the atom has the property.
#[derive(Clone, Debug, PartialEq)]
pub enum BulkMismatch {
    /// The spec does not have one source and one target.
    Operands,
    /// Whether the atom completes on an mbarrier (`bar=`).
    Bar(bool),
    /// Whether the atom takes `multicast=`.
    Multicast(bool),
    /// The cache hint of the atom.
    Cache(CacheHint),
    /// Whether the atom takes `valid=`.
    Valid(bool),
    /// An operand lies in the shared memory of another block.
    Peer,
    /// An operand lies in another memory.
    Memory {
        /// The memory that the atom needs.
        operand: &'static str,
        /// Where the atom wants it.
        want: Memory,
    },
    /// Whether the atom copies boxes of a tensor map.
    Box(bool),
    /// The tensor map has another number of modes.
    Modes {
        /// The number of modes of the atom.
        want: usize,
        /// The number of modes of the tensor map.
        found: usize,
    },
    /// The hardware does not support the tensor map.
    Map(NoMap),
    /// The elements of an operand are not contiguous.
    Scattered {
        /// The layout of the view.
        found: String,
    },
    /// The atom does not support this number of bytes.
    Bytes {
        /// The numbers of bytes that the atom supports.
        want: String,
        /// The number of bytes of the operands.
        found: i64,
    },
    /// The layout of the tensor in shared memory is not that of a box.
    Order {
        /// The layout of the box.
        want: String,
        /// The layout of the view.
        found: String,
    },
    /// The swizzles of the tensor map and of the tensor in shared memory differ.
    Swizzle {
        /// The swizzle of the tensor map. `None` for copies without a tensor map.
        want: Option<Swizzle>,
        /// The swizzle of the tensor.
        found: Option<Swizzle>,
    },
    /// An address may not be aligned.
    Align {
        /// The name of the atom's operand.
        operand: &'static str,
        /// The alignment that the atom needs, in bytes.
        want: i64,
        /// The known alignment, in bytes.
        found: i64,
        /// Facts about symbols under which it would be aligned. Empty if there are none.
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
    /// The help: an action that would make the atom fit.
    pub fn help(&self) -> String {
        let add = |wanted: bool, what: &str| match wanted {
            true => format!("add `{what}`"),
            false => format!("remove `{what}`"),
        };
        match self {
            BulkMismatch::Operands => "give the spec one source and one target".to_owned(),
            BulkMismatch::Bar(wanted) => add(*wanted, "bar=%full[0]"),
            BulkMismatch::Multicast(wanted) => add(*wanted, "multicast=MASK"),
            BulkMismatch::Cache(want) => format!("write `cache={want}`, or use another atom"),
            BulkMismatch::Memory { operand, want } => format!("move operand {operand} to {want}"),
            BulkMismatch::Valid(wanted) => add(*wanted, "valid=COUNT"),
            BulkMismatch::Peer => {
                "remove `.peer`, and select the blocks with `multicast=`".to_owned()
            }
            BulkMismatch::Box(true) => {
                "copy a box of a tensor map: `%mA = %A.tensormap([128,64])`, `%mA[i,j]`".to_owned()
            }
            BulkMismatch::Box(false) => {
                "copy the tensor itself instead of a box of a tensor map".to_owned()
            }
            BulkMismatch::Modes { found, .. } => format!("use the atom for {found} modes"),
            BulkMismatch::Map(no) => no.help(),
            BulkMismatch::Scattered { .. } => {
                "copy a contiguous part of the tensor, with layout `n:1`".to_owned()
            }
            BulkMismatch::Bytes { want, .. } => format!("copy {want}"),
            BulkMismatch::Order { want, .. } => {
                format!("change the layout of the tensor in SH to `{want}`, or change the box")
            }
            BulkMismatch::Swizzle { want, .. } => {
                format!("allocate the tensor in SH with {}", swizzle_text(want))
            }
            BulkMismatch::Align { operand, want, facts, .. } => match &facts[..] {
                [] => format!(
                    "align operand {operand} to {want} bytes: write `align={want}`, and check its \
                     index"
                ),
                facts => format!("state `where {}` if this always holds", listed(facts)),
            },
        }
    }
}

impl fmt::Display for BulkMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BulkMismatch::Operands => f.write_str("copies one tensor to one other tensor"),
            BulkMismatch::Bar(true) => {
                f.write_str("completes on an mbarrier, but the spec names none")
            }
            BulkMismatch::Bar(false) => {
                f.write_str("does not complete on an mbarrier, but the spec names one")
            }
            BulkMismatch::Multicast(true) => {
                f.write_str("copies to several blocks, but the spec has no `multicast=`")
            }
            BulkMismatch::Multicast(false) => {
                f.write_str("copies to one block, but the spec has `multicast=`")
            }
            BulkMismatch::Cache(want) => write!(f, "needs `cache={want}`"),
            BulkMismatch::Memory { operand, want } => {
                write!(f, "operand {operand} must lie in {want}")
            }
            BulkMismatch::Valid(true) => {
                f.write_str("reads a number of elements, which `valid=` must state")
            }
            BulkMismatch::Valid(false) => {
                f.write_str("reads its whole source, but the spec has `valid=`")
            }
            BulkMismatch::Peer => {
                f.write_str("cannot copy to the shared memory of a single other block")
            }
            BulkMismatch::Box(true) => {
                f.write_str("copies a box of a tensor map, but the operand is none")
            }
            BulkMismatch::Box(false) => {
                f.write_str("copies contiguous bytes, but the operand is a box of a tensor map")
            }
            BulkMismatch::Modes { want, found } => {
                write!(f, "copies boxes of {want} modes, but the tensor map has {found}")
            }
            BulkMismatch::Map(no) => write!(f, "{no}"),
            BulkMismatch::Scattered { found } => {
                write!(f, "copies contiguous bytes, but the layout is {found}")
            }
            BulkMismatch::Bytes { want, found } => {
                write!(f, "copies {want}, but the operands have {found} bytes")
            }
            BulkMismatch::Order { want, found } => {
                write!(f, "a box has the layout {want}, but the tensor in SH has {found}")
            }
            BulkMismatch::Swizzle { want, found } => write!(
                f,
                "copies with {}, but the tensor in SH has {}",
                swizzle_text(want),
                swizzle_text(found)
            ),
            BulkMismatch::Align { operand, want, found, .. } => {
                write!(
                    f,
                    "operand {operand} must be aligned to {want} bytes, but is known to be aligned \
                     to {found} only"
                )
            }
        }
    }
}

/// The copy that `atom`, a bulk atom, makes for `spec`.
///
/// # Errors
/// The first difference.
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

/// The number of bytes in a view.
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

/// Checks that the layout of the view is that of a box in shared memory.
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

/// Checks that the first byte of the view is aligned, and the swizzle's pattern begins there.
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
    let facts = missing_facts::begins_aligned(p, t, want);
    Err(BulkMismatch::Align { operand, want, found, facts })
}
