//! Checks the layout of each buffer, once where it is declared.
//!
//! - V0209: no two coordinates of a buffer in global or shared memory are one element.
//! - V0210: registers are compact.
//! - V0215: a thread-value layout covers its tensor exactly.
//! - V0222: buffers at fixed addresses (`at=`) do not overlap, unless one reuses the other.
//! - V0224, V0242: an alignment covers the period of its swizzle, and a swizzle moves whole
//!   elements within the buffer.

use super::state::Verifier;
use crate::diag::{Code, Diagnostic, count};
use crate::layout::{Layout, Swizzle};
use crate::program::{Buffer, BufferId, Dist, Tensor, concat_levels};

/// The largest thread-value layout that is checked by enumeration.
const MAX_COUNTED: i64 = 1 << 20;

impl Verifier<'_> {
    pub(super) fn storage(&mut self) {
        let mut pinned: Vec<(BufferId, i64, i64)> = vec![];
        for (id, buffer) in self.p.buffers.iter() {
            let tensor = &self.p.tensors[buffer.tensor];
            if buffer.is_per_thread() && !buffer.open {
                match &tensor.dist {
                    Some(dist) => self.distribution(buffer, tensor, dist),
                    None => self.compact(buffer, tensor),
                }
            } else if !buffer.open {
                self.one_to_one(buffer, tensor);
            }
            self.swizzle(buffer, tensor);
            self.mbarriers(buffer);
            if let (Some(at), Some(cosize)) = (buffer.at, buffer.cosize.as_const()) {
                let end = at + (cosize * buffer.scalar.bits() + 7) / 8;
                for &(other, start, stop) in &pinned {
                    let reused = buffer.reuses == Some(other);
                    if at < stop && start < end && !reused {
                        self.errors.push(
                            Diagnostic::new(
                                Code::Alias,
                                buffer.span,
                                format!(
                                    "`%{}` overlaps `%{}` in shared memory",
                                    buffer.name, self.p.buffers[other].name
                                ),
                            )
                            .label(format!("bytes {at}..{end}"))
                            .related(self.p.buffers[other].span, format!("bytes {start}..{stop}"))
                            .help(format!(
                                "move it to {stop}, or write `reuses=%{}`",
                                self.p.buffers[other].name
                            )),
                        );
                    }
                }
                pinned.push((id, at, end));
            }
        }
    }

    /// V0224, V0242 for the swizzle of a buffer.
    fn swizzle(&mut self, buffer: &Buffer, tensor: &Tensor) {
        let Some(sw) = buffer.swizzle else { return };
        let of_element = buffer.scalar.bits() / 8;
        if 1 << sw.base() < of_element {
            let least = of_element.ilog2();
            let message = format!("the swizzle of `%{}` splits elements", buffer.name);
            self.errors.push(
                Diagnostic::new(Code::Swizzled, buffer.span, message)
                    .label(format!(
                        "an element has {of_element} bytes, but the swizzle moves runs of {}",
                        count(1 << sw.base(), "byte")
                    ))
                    .help(format!("write a base of at least {least}, such as `swizzle=(3,4,3)`")),
            );
            return;
        }
        let bits = buffer.cosize.as_const().and_then(|n| n.checked_mul(buffer.scalar.bits()));
        let (low, bytes) = (sw.base() + sw.shift().unsigned_abs(), bits.map(|bits| bits / 8));
        // Tensor maps and descriptors demand a shift of 3, whatever the size.
        if bytes.is_some_and(|bytes| bytes <= 1 << low.min(62)) && sw.shift() > 3 {
            let message = format!("the swizzle of `%{}` has no effect", buffer.name);
            let bytes = bytes.unwrap_or(0);
            self.errors.push(
                Diagnostic::new(Code::Swizzled, buffer.span, message)
                    .label(format!(
                        "it reads the bits of addresses from bit {low} on, which are equal in all \
                         {bytes} bytes"
                    ))
                    .help(format!("remove it, or write `swizzle=({},{},3)`", sw.bits(), sw.base())),
            );
            return;
        }
        if let Some((from, to, bytes)) = leaves_its_buffer(buffer, tensor, sw) {
            let whole = whole(sw);
            let message =
                format!("the swizzle of `%{}` moves elements out of the buffer", buffer.name);
            self.errors.push(
                Diagnostic::new(Code::Swizzled, buffer.span, message)
                    .label(format!("byte {from} moves to byte {to}; the buffer has {bytes} bytes"))
                    .help(format!(
                        "make its size a multiple of {whole} bytes, or choose a smaller swizzle"
                    )),
            );
        }
        if buffer.align < sw.period() || buffer.at.is_some_and(|at| at % sw.period() != 0) {
            let period = sw.period();
            let message = format!(
                "`%{}` is not aligned to the {period} bytes after which its swizzle repeats",
                buffer.name
            );
            self.errors.push(
                Diagnostic::new(Code::Alignment, buffer.span, message)
                    .label(match buffer.at {
                        Some(at) => format!("it begins at byte {at}"),
                        None => format!("it is aligned to {} bytes", buffer.align),
                    })
                    .help(match buffer.at {
                        Some(at) => {
                            format!(
                                "choose a multiple of {period}: `at={}`",
                                at / period * period + period
                            )
                        }
                        None => format!("write `align={period}`, or remove `align=`"),
                    }),
            );
        }
    }

    /// V0210 for a register buffer.
    fn compact(&mut self, buffer: &Buffer, tensor: &Tensor) {
        let Some(layout) = tensor.concat().to_fixed() else { return };
        if !layout.is_bijective_onto(layout.size()) {
            self.errors.push(
                Diagnostic::new(
                    Code::NotCompact,
                    buffer.span,
                    format!("the registers of `%{}` are not compact", buffer.name),
                )
                .label(format!(
                    "{layout} maps {} values to {} registers",
                    layout.size(),
                    layout.cosize()
                ))
                .help("omit the strides, or permute them so that every register is used once"),
            );
        }
    }

    /// V0209 for whole buffers in GL and SH.
    fn one_to_one(&mut self, buffer: &Buffer, tensor: &Tensor) {
        let Some(layout) = tensor.concat().to_fixed() else { return };
        // The caller may pass a broadcast view as a parameter if no spec writes it. Written
        // operands are checked separately.
        if buffer.memory.is_some_and(|m| !m.is_allocated()) {
            return;
        }
        if let Ok(false) = layout.is_injective() {
            self.errors.push(
                Diagnostic::new(
                    Code::NotInjective,
                    buffer.span,
                    format!("two coordinates of `%{}` share an element", buffer.name),
                )
                .label(format!(
                    "{layout} maps {} coordinates to {} offsets",
                    layout.size(),
                    layout.cosize()
                ))
                .help("enlarge a stride, or omit the strides"),
            );
        }
    }

    /// V0215 for a distributed register tensor.
    fn distribution(&mut self, buffer: &Buffer, tensor: &Tensor, dist: &Dist) {
        let (Some(tv), Some(threads)) = (&dist.tv, dist.threads) else { return };
        let threads = &self.p.threads[threads];
        let (Some(tv), Some(shape), Some(group)) =
            (tv.to_fixed(), tensor.concat().to_fixed(), concat_levels(threads.inner()).to_fixed())
        else {
            return;
        };
        let (Ok(t_mode), Ok(v_mode)) = (tv.mode(0), tv.mode(1)) else { return };
        let wrong = |label: String, help: &str| {
            Diagnostic::new(
                Code::TvLayout,
                buffer.span,
                format!("the thread-value layout does not fit `%{}`", buffer.name),
            )
            .label(label)
            .help(help)
            .note(
                "layouts of a decomposed text fit one tile: for another tile, decompose the source \
                 again with `by=@map[BM=2]`, or with another strategy and parameter",
            )
        };
        if t_mode.size() != group.size() {
            self.errors.push(wrong(
                format!("it has {} threads, the thread tensor has {}", t_mode.size(), group.size()),
                &format!("make the size of the first mode {}", group.size()),
            ));
            return;
        }
        if let Some((n, _)) = v_mode.leaves().iter().find(|(n, s)| *n > 1 && *s == 0) {
            self.errors.push(wrong(
                format!("a thread holds {n} copies of one value"),
                "remove the value mode of stride 0: only modes of threads may replicate values",
            ));
            return;
        }
        if let Err(why) = covers(&tv, shape.size()) {
            self.errors.push(wrong(
                why.to_string(),
                "give every element exactly one owner; a thread mode of stride 0 replicates it",
            ));
        }
    }
}

/// Reasons why a thread-value layout does not cover a tensor.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
enum Uncovered {
    #[error("it covers {named} elements, the tensor has {of}")]
    Count { named: i64, of: i64 },
    #[error("its strides interleave, and it is too large to enumerate")]
    TooLarge,
    #[error("it refers to element {element} of a tensor of {of}")]
    Outside { element: i64, of: i64 },
    #[error("no thread has element {0}")]
    Unowned(usize),
}

/// The bytes of the smallest unit that a swizzle permutes within itself.
fn whole(sw: Swizzle) -> i64 {
    if sw.shift() < 0 { sw.period() } else { 1 << (sw.base() + sw.bits()) }
}

/// An element that its swizzle moves out of its buffer: its byte, the byte to which it moves, and
/// the size of the buffer in bytes.
fn leaves_its_buffer(buffer: &Buffer, tensor: &Tensor, sw: Swizzle) -> Option<(i64, i64, i64)> {
    let bits = buffer.scalar.bits();
    let bytes = (buffer.cosize.as_const()? * bits + 7) / 8;
    let layout = tensor.concat().to_fixed()?;
    if bytes % whole(sw) == 0 || layout.size() > MAX_COUNTED {
        return None;
    }
    let place = |i: i64| layout.at(i) * bits / 8;
    let from = (0..layout.size()).map(place).find(|byte| sw.apply(*byte) >= bytes)?;
    Some((from, sw.apply(from), bytes))
}

/// Whether the layout without its modes of stride 0 is a bijection onto `0..n`.
fn covers(tv: &Layout<i64>, n: i64) -> Result<(), Uncovered> {
    let mut leaves: Vec<(i64, i64)> =
        tv.leaves().iter().copied().filter(|(n, s)| *n > 1 && *s != 0).collect();
    leaves.sort_by_key(|(_, s)| *s);
    let size = leaves.iter().fold(1i64, |a, (n, _)| a.saturating_mul(*n));
    if size != n {
        return Err(Uncovered::Count { named: size, of: n });
    }
    let mut radix = 1;
    if leaves.iter().all(|(n, s)| {
        let fits = *s == radix;
        radix = s.saturating_mul(*n);
        fits
    }) {
        return Ok(());
    }
    if size > MAX_COUNTED {
        return Err(Uncovered::TooLarge);
    }
    let mut seen = vec![false; n as usize];
    for i in 0..tv.size() {
        let e = tv.at(i);
        if e < 0 || e >= n {
            return Err(Uncovered::Outside { element: e, of: n });
        }
        seen[e as usize] = true;
    }
    match seen.iter().position(|s| !s) {
        Some(e) => Err(Uncovered::Unowned(e)),
        None => Ok(()),
    }
}
