//! Where shared buffers lie in the block's one dynamic allocation.
//!
//! - A buffer with `at=` lies there.
//! - One with `reuses=%x` and no address begins where `%x` begins, moved up to its alignment.
//! - The others follow each other in text order, past whatever is pinned.
//!
//! Invariant: every buffer begins at a multiple of its alignment, of its swizzle's period and of
//! [`MIN_ALIGN`], the widest access of the atom table. Buffers that lie in blocks of statements of
//! which only one is live do not share memory unless the program says so.

use crate::errors;
use crate::scalars::storage_bits;
use crate::{Fallible, errors::unprintable};
use carbyne_atoms::{AtomTable, limits::limits};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Buffer, BufferId, Program};
use std::collections::HashMap;

/// Alignment that every buffer has, in bytes.
pub const MIN_ALIGN: i64 = 16;
/// Alignment of the block's allocation that is asked for at least, in bytes: what the widest swizzle
/// and the descriptors of Hopper want.
pub const BASE_ALIGN: i64 = 1024;

/// Byte offsets of buffers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arena {
    offsets: HashMap<BufferId, i64>,
    /// Bytes of the whole allocation.
    pub bytes: i64,
    /// Alignment of its first byte.
    pub align: i64,
}

impl Arena {
    /// Places the buffers, which come in text order.
    ///
    /// # Errors
    /// [`Code::SharedTooLarge`] over the limit of the architecture, [`Code::Symbolic`] for a size that
    /// is not known, [`Code::Alignment`] for an address that is not aligned.
    pub fn place(p: &Program, buffers: &[BufferId], atoms: &AtomTable) -> Fallible<Arena> {
        let mut arena = Arena { align: BASE_ALIGN, ..Arena::default() };
        let mut pinned = vec![];
        for &id in buffers {
            let b = &p.buffers[id];
            if let Some(at) = b.at {
                pinned.push((at, end(at, b)?));
            }
        }
        let mut next = 0;
        for &id in buffers {
            let b = &p.buffers[id];
            let align = alignment(b);
            let reused = b.reuses.and_then(|r| arena.offsets.get(&r).copied());
            let offset = match (b.at, reused) {
                (Some(at), _) if at % align != 0 => {
                    return Err(errors::new(
                        Code::Alignment,
                        b.span,
                        format!("address {at} of `%{}` is not a multiple of {align}", b.name),
                        &format!(
                            "move it up to the next multiple: `at={}`",
                            at / align * align + align
                        ),
                    ));
                }
                (Some(at), _) => at,
                (None, Some(at)) => round_up(at, align)?,
                (None, None) => {
                    let at = free(next, align, b, &pinned)?;
                    next = end(at, b)?;
                    at
                }
            };
            arena.align = arena.align.max(align);
            arena.bytes = arena.bytes.max(end(offset, b)?);
            arena.offsets.insert(id, offset);
            check_limit(b, arena.bytes, atoms)?;
        }
        Ok(arena)
    }

    /// The byte offset of a buffer that was placed.
    pub fn offset(&self, id: BufferId) -> Option<i64> {
        self.offsets.get(&id).copied()
    }
}

/// The first address from `next` on where the buffer overlaps nothing pinned.
fn free(next: i64, align: i64, b: &Buffer, pinned: &[(i64, i64)]) -> Fallible<i64> {
    let mut at = round_up(next, align)?;
    // Each step passes at least one of them.
    while let Some((_, stop)) =
        pinned.iter().find(|(start, stop)| at < *stop && end(at, b).is_ok_and(|e| *start < e))
    {
        at = round_up(*stop, align)?;
    }
    Ok(at)
}

fn alignment(b: &Buffer) -> i64 {
    let period = b.swizzle.map_or(1, |s| s.period());
    b.align.max(period).max(MIN_ALIGN)
}

/// What to do where memory is counted beyond all bounds.
const SMALLER: &str = "make the shared tensors smaller, or lower the address of `at=`";

fn end(at: i64, b: &Buffer) -> Fallible<i64> {
    let too_large = || unprintable(format!("`%{}` reaches beyond 64 bits", b.name), SMALLER);
    let Some(cosize) = b.cosize.as_const() else {
        return Err(errors::new(
            Code::Symbolic,
            b.span,
            format!("the size of `%{}` must be known", b.name),
            "give the shared tensor constant extents",
        ));
    };
    // Types below a byte share bytes.
    let bits = if b.scalar.bits() < 8 { b.scalar.bits() } else { storage_bits(b.scalar) };
    let bytes = cosize.checked_mul(bits).and_then(|b| b.checked_add(7)).ok_or_else(too_large)? / 8;
    at.checked_add(bytes).ok_or_else(too_large)
}

fn round_up(at: i64, align: i64) -> Fallible<i64> {
    at.checked_add(align - 1)
        .map(|a| a / align * align)
        .ok_or_else(|| unprintable("shared memory reaches beyond 64 bits", SMALLER))
}

fn check_limit(b: &Buffer, bytes: i64, atoms: &AtomTable) -> Fallible<()> {
    let most = limits(atoms.arch).max_smem_per_block;
    if bytes <= most {
        return Ok(());
    }
    Err(Box::new(
        Diagnostic::new(
            Code::SharedTooLarge,
            b.span,
            format!("shared memory {bytes} > {most} bytes for {}", atoms.arch),
        )
        .label(format!("`%{}` ends at byte {bytes}", b.name))
        .help("make tiles or the number of stages smaller, or let buffers that are not live together share memory with `reuses=`"),
    ))
}
