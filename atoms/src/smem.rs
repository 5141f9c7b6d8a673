//! Gives each shared buffer of a kernel an offset in the block's one allocation of dynamic shared
//! memory.
//!
//! - A buffer with `at=` lies at this offset.
//! - A buffer with `reuses=%x` and without `at=` begins where `%x` begins. If `%x` has `at=`, its
//!   offset is rounded up to the alignment of the buffer. Otherwise `%x` is placed so that it is
//!   aligned as all buffers that reuse it need.
//! - The other buffers follow in text order. Each begins after the previous one, at the first
//!   address at which it overlaps no buffer with `at=`. So it may lie before, between or after
//!   those. A buffer ends where the longest buffer that reuses it ends.
//!
//! Example: `%p` has `at=256`, and `%a`, `%p` and `%b` have 256 bytes each. `%a` begins at 0, `%b`
//! at 512.
//!
//! Invariant: the offset of every buffer is a multiple of its alignment, of its swizzle's period
//! and of [`MIN_ALIGN`], the widest access of the atom table. Two buffers share memory only if the
//! program says so, even if they are in bodies that never execute together. Invariant: the printer,
//! the simulator and the synchronization checker place buffers with this file. `decompose` checks
//! with it that they fit in the shared memory that the architecture gives a block.

use crate::limits::limits;
use crate::table::AtomTable;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::Dim;
use carbyne_ir::program::{Buffer, BufferId, Program, SpecId, StmtKind};
use indexmap::IndexMap;
use std::collections::HashMap;

type Fallible<T> = Result<T, Box<Diagnostic>>;

/// Minimum alignment of every buffer, in bytes.
pub const MIN_ALIGN: i64 = 16;
/// Minimum alignment of the block's allocation, in bytes: the widest swizzle and the descriptors of
/// Hopper need it.
pub const BASE_ALIGN: i64 = 1024;

/// The byte offsets of buffers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arena {
    offsets: HashMap<BufferId, i64>,
    /// Size of the whole allocation in bytes.
    pub bytes: i64,
    /// Alignment of its first byte.
    pub align: i64,
}

impl Arena {
    /// Places the buffers, which are in text order.
    ///
    /// # Errors
    /// [`Code::SharedTooLarge`] if the limit of the architecture is exceeded, [`Code::Symbolic`]
    /// for an unknown size, [`Code::Alignment`] for an address that is not aligned.
    pub fn place(p: &Program, buffers: &[BufferId], atoms: &AtomTable) -> Fallible<Arena> {
        let mut arena = Arena { align: BASE_ALIGN, ..Arena::default() };
        let rooms = rooms(p, buffers)?;
        let mut pinned = vec![];
        for (id, room) in &rooms {
            if let Some(at) = p.buffers[*id].at {
                pinned
                    .push((at, at.checked_add(room.bytes).ok_or_else(|| beyond(&p.buffers[*id]))?));
            }
        }
        let mut next = 0;
        for &id in buffers {
            let b = &p.buffers[id];
            let align = alignment(b);
            let reused = b.reuses.and_then(|r| arena.offsets.get(&r).copied());
            let offset = match (b.at, reused) {
                (Some(at), _) if at % align != 0 => {
                    return Err(Box::new(
                        Diagnostic::new(
                            Code::Alignment,
                            b.span,
                            format!("address {at} of `%{}` is not a multiple of {align}", b.name),
                        )
                        .help(format!(
                            "move it up to the next multiple: `at={}`",
                            at / align * align + align
                        )),
                    ));
                }
                (Some(at), _) => at,
                (None, Some(at)) => round_up(at, align, b)?,
                (None, None) => {
                    let room = rooms.get(&id).copied().unwrap_or_default();
                    let at = free(next, room, b, &pinned)?;
                    next = at.checked_add(room.bytes).ok_or_else(|| beyond(b))?;
                    at
                }
            };
            arena.align = arena.align.max(align);
            arena.bytes = arena.bytes.max(end(offset, b)?);
            arena.offsets.insert(id, offset);
        }
        arena.check_limit(p, buffers, atoms)?;
        Ok(arena)
    }

    /// The byte offset of a buffer that was placed.
    pub fn offset(&self, id: BufferId) -> Option<i64> {
        self.offsets.get(&id).copied()
    }

    /// Refuses more memory than a block can have. The help says what would fit.
    fn check_limit(&self, p: &Program, buffers: &[BufferId], atoms: &AtomTable) -> Fallible<()> {
        let most = limits(atoms.arch).max_smem_per_block;
        if self.bytes <= most {
            return Ok(());
        }
        let mut sizes = vec![];
        for id in buffers {
            sizes.push((*id, end(0, &p.buffers[*id])?));
        }
        // The first of the largest.
        let Some(&(id, bytes)) = sizes.iter().rev().max_by_key(|(_, bytes)| *bytes) else {
            return Ok(());
        };
        let b = &p.buffers[id];
        let room = most - (self.bytes - bytes);
        let own = stages(p, id).map(|n| (n, room / (bytes / n).max(1)));
        let help = match (fewer_stages(p, &sizes, self.bytes, most), own) {
            (Some((n, fits)), _) => format!("use {} instead of {n}", of_stages(fits)),
            (None, Some((n, fits))) if (1..n).contains(&fits) => {
                format!("use {} of `%{}` instead of {n}", of_stages(fits), b.name)
            }
            (None, _) if room > 0 => format!(
                "make its tile smaller ({room} bytes would fit), or share memory with `reuses=` \
                 between tensors that are not live together"
            ),
            (None, _) => "make the tiles smaller, or share memory with `reuses=` between tensors \
                          that are not live together"
                .to_owned(),
        };
        Err(Box::new(
            Diagnostic::new(
                Code::SharedTooLarge,
                b.span,
                format!(
                    "the block needs {} bytes of shared memory, but {} allows at most {most}",
                    self.bytes, atoms.arch
                ),
            )
            .label(format!("`%{}` takes {bytes} bytes", b.name))
            .help(help),
        ))
    }
}

fn of_stages(n: i64) -> String {
    if n == 1 { "1 stage".to_owned() } else { format!("{n} stages") }
}

/// The number of stages of a tensor: the size of its outer level, if the tensor has several levels
/// and the size is greater than 1.
fn stages(p: &Program, id: BufferId) -> Option<i64> {
    let levels = &p.tensors[p.buffers[id].tensor].levels;
    let outer = levels.first().filter(|_| levels.len() > 1)?;
    outer.size_in(&p.arena).ok().and_then(Dim::as_const).filter(|n| *n > 1)
}

/// If all tensors with stages have the same number of stages: this number, and a smaller number
/// that would fit.
fn fewer_stages(p: &Program, sizes: &[(BufferId, i64)], all: i64, most: i64) -> Option<(i64, i64)> {
    let staged: Vec<(i64, i64)> =
        sizes.iter().filter_map(|(id, bytes)| Some((stages(p, *id)?, *bytes))).collect();
    let n = staged.first()?.0;
    if staged.iter().any(|(other, _)| *other != n) {
        return None;
    }
    let of_all: i64 = staged.iter().map(|(_, bytes)| *bytes).sum();
    let (each, rest) = ((of_all + n - 1) / n, all - of_all);
    let fits = (most - rest) / each.max(1);
    (1..n).contains(&fits).then_some((n, fits))
}

/// The shared buffers of a kernel, in text order.
pub fn buffers(p: &Program, kernel: SpecId) -> Vec<BufferId> {
    let allocated = p.walk_body(kernel).stmts().filter_map(|stmt| match stmt.kind {
        StmtKind::Allocate(t) => Some(p.tensors[t].buffer),
        _ => None,
    });
    allocated.filter(|id| p.buffers[*id].is_shared()).collect()
}

/// The memory for a buffer and all buffers that reuse it.
#[derive(Copy, Clone, Debug, Default)]
struct Room {
    align: i64,
    bytes: i64,
}

/// The memory for each buffer that reuses no other.
fn rooms(p: &Program, buffers: &[BufferId]) -> Fallible<IndexMap<BufferId, Room>> {
    let mut first: HashMap<BufferId, BufferId> = HashMap::new();
    let mut out: IndexMap<BufferId, Room> = IndexMap::new();
    for &id in buffers {
        let b = &p.buffers[id];
        let reused = b.reuses.filter(|_| b.at.is_none()).and_then(|r| first.get(&r).copied());
        let own = reused.unwrap_or(id);
        first.insert(id, own);
        let room = out.entry(own).or_default();
        // A buffer that reuses one with `at=` may begin at a higher address, because of its
        // alignment.
        let from = p.buffers[own].at.filter(|_| reused.is_some());
        let up = from.map_or(Ok(0), |at| round_up(at, alignment(b), b).map(|to| to - at))?;
        room.align = room.align.max(alignment(b));
        room.bytes = room.bytes.max(end(up, b)?);
    }
    Ok(out)
}

/// The first address from `next` on at which the memory of a buffer overlaps no buffer with `at=`.
fn free(next: i64, room: Room, b: &Buffer, pinned: &[(i64, i64)]) -> Fallible<i64> {
    let mut at = round_up(next, room.align, b)?;
    let ends = |at: i64| at.checked_add(room.bytes).unwrap_or(i64::MAX);
    // Each step passes at least one buffer.
    while let Some((_, stop)) = pinned.iter().find(|(start, stop)| at < *stop && *start < ends(at))
    {
        at = round_up(*stop, room.align, b)?;
    }
    Ok(at)
}

fn alignment(b: &Buffer) -> i64 {
    let period = b.swizzle.map_or(1, |s| s.period());
    b.align.max(period).max(MIN_ALIGN)
}

fn end(at: i64, b: &Buffer) -> Fallible<i64> {
    let Some(cosize) = b.cosize.as_const() else {
        return Err(Box::new(
            Diagnostic::new(
                Code::Symbolic,
                b.span,
                format!("the size of the shared tensor `%{}` must be constant", b.name),
            )
            .help("give the shared tensor constant extents"),
        ));
    };
    // Elements of less than one byte share bytes.
    let bits = cosize.checked_mul(b.scalar.bits()).and_then(|bits| bits.checked_add(7));
    bits.and_then(|bits| at.checked_add(bits / 8)).ok_or_else(|| beyond(b))
}

/// The error for a size or an address beyond 64 bits.
fn beyond(b: &Buffer) -> Box<Diagnostic> {
    let message = format!("the address or size of `%{}` overflows 64 bits", b.name);
    Box::new(
        Diagnostic::new(Code::Overflow, b.span, message)
            .help("make the shared tensors smaller, or lower the address of `at=`"),
    )
}

fn round_up(at: i64, align: i64, b: &Buffer) -> Fallible<i64> {
    at.checked_add(align - 1).map(|a| a / align * align).ok_or_else(|| beyond(b))
}
