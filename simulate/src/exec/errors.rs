//! Converts failed accesses and waits of a run into diagnostics that name the element, the thread
//! and the lines.

use crate::index::BadIndex;
use crate::plan::{Checked, Kernel, Mask, SharedBuffer, Site, Space};
use crate::state::clash::Clash;
use crate::state::{Failure, Shared, Who};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::limits::MAX_COUNTER;
use carbyne_ir::program::SpecId;

/// Size of an mbarrier (PTX ISA, Parallel Synchronization and Communication Instructions: mbarrier,
/// Size and alignment of mbarrier object).
const MBARRIER_BYTES: usize = 8;

pub(super) fn bad_index(kernel: &Kernel<'_>, site: u32, e: BadIndex) -> Box<Diagnostic> {
    let span = kernel.sites[site as usize].span;
    let help = "choose smaller extents and strides, and divisors of at least 1";
    Box::new(Diagnostic::new(Code::Overflow, span, e.to_string()).help(help))
}

/// An integer that contradicts the declaration of its tensor.
pub(super) fn no_such_number(
    kernel: &Kernel<'_>,
    site: u32,
    (view, at, value): (usize, i64, i64),
    why: String,
) -> Box<Diagnostic> {
    let element = kernel.element_name(view, at);
    let (p, span) = (kernel.program, kernel.sites[site as usize].span);
    let d = Diagnostic::new(Code::SimOutOfBounds, span, format!("{element} is {value}")).label(why);
    let Space::Global(i) = kernel.views[view].space else { return Box::new(d) };
    let buffer = kernel.globals[i].buffer;
    let writes = |k: &&SpecId| p.specs[**k].outputs.iter().any(|t| p.tensors[*t].buffer == buffer);
    // Kernels run in the order of the text.
    let before = p.kernels.iter().take_while(|k| **k != kernel.spec).filter(writes).last();
    Box::new(match before.map(|k| &p.specs[*k]) {
        Some(writer) => {
            let name = writer.name.as_deref().unwrap_or_default();
            d.related(writer.span, "this kernel writes the tensor").help(format!(
                "correct `@{name}`, which writes the element, or `in` of the tensor's declaration"
            ))
        }
        None => d.help("correct the element that the caller passes, or the tensor's declaration"),
    })
}

/// A counter that leaves its range.
pub(super) fn no_counter(kernel: &Kernel<'_>, site: u32, value: i64) -> Box<Diagnostic> {
    let span = kernel.sites[site as usize].span;
    Box::new(
        Diagnostic::new(Code::SimOutOfBounds, span, format!("the counter would be {value}"))
            .label(format!("a counter has values from 0 to {MAX_COUNTER}"))
            .help("count in smaller steps, and compute larger numbers from the counter"),
    )
}

/// A loop with further conditions that does not end within the budget.
pub(super) fn too_many_steps(kernel: &Kernel<'_>, site: u32, most: u64) -> Box<Diagnostic> {
    let (span, text) = (kernel.sites[site as usize].span, "the loop takes too long to simulate");
    Box::new(
        Diagnostic::new(Code::StepBudget, span, text)
            .label(format!("its block takes more than {most} steps, its part of the budget"))
            .help("raise `--budget`, run fewer blocks by `--blocks`, or choose smaller sizes"),
    )
}

/// A barrier at which some threads never arrive.
pub(super) fn deadlock(kernel: &Kernel<'_>, site: u32, absent: &Mask) -> Box<Diagnostic> {
    let first = absent.threads().next().unwrap_or(0);
    let n = absent.threads().count();
    Box::new(
        Diagnostic::new(
            Code::Deadlock,
            kernel.sites[site as usize].span,
            "not all threads of a barrier arrive",
        )
        .label(format!("{n} threads do not arrive, for example thread {first}"))
        .help(
            "move the barrier out of the condition, or name the threads that execute it: \
             `barrier(#w)`",
        ),
    )
}

/// An access of a thread to one element of a view.
pub(super) struct ElementAccess {
    /// The accessed view.
    pub(super) view: usize,
    /// The offset in the buffer.
    pub(super) at: i64,
    /// Whether the access is a write.
    pub(super) write: bool,
    /// The thread in the block.
    pub(super) thread: usize,
}

/// The diagnostic of a failed access.
pub(super) fn failed<T>(
    kernel: &Kernel<'_>,
    block: i64,
    who: &Who,
    access: &ElementAccess,
    failure: &Failure,
) -> Checked<T> {
    let site = kernel.sites[who.site as usize];
    let element = kernel.element_name(access.view, access.at);
    let by = if who.thread == u16::MAX {
        format!("block {block}")
    } else {
        format!("block {block}, thread {}", access.thread)
    };
    let verb = if access.write { "writes" } else { "reads" };
    let diagnostic = match failure {
        Failure::Outside => Diagnostic::new(
            Code::SimOutOfBounds,
            site.span,
            format!("an access {verb} outside its buffer"),
        )
        .label(format!("{by}: {element}, through {}", kernel.view_name(access.view)))
        .help("compare the view's offset and extents with the buffer's"),
        Failure::Undefined => Diagnostic::new(
            Code::Uninitialized,
            site.span,
            format!("{element} is read and was never written"),
        )
        .label(by)
        .help(match kernel.views[access.view].space {
            // Outputs of a kernel are undefined before it; inputs are defined.
            Space::Global(_) => format!(
                "write it first; or, if the kernel adds to the previous elements, name the tensor \
                 as an input as well: `%{0}` in both lists",
                kernel.program.buffer_of(kernel.views[access.view].tensor).name
            ),
            _ => "write it first: with Init for an accumulator, with Move for data".to_owned(),
        }),
        Failure::Pending(issued) => pending(kernel, site, &element, by, access, *issued),
        Failure::TooMuch => Diagnostic::new(
            Code::TooLarge,
            site.span,
            "a block accesses more elements of global memory than the simulator can track",
        )
        .label(by)
        .help("choose smaller sizes, or more blocks"),
        Failure::Clash(clash) => race(kernel, (site, block), &element, by, access, who, *clash),
        Failure::Busy(issued) => {
            let from = kernel.sites[*issued as usize];
            Diagnostic::new(
                Code::Race,
                site.span,
                format!(
                    "{element} is overwritten while an asynchronous instruction may still read it"
                ),
            )
            .label(by)
            .related(from.span, format!("issued here, {}", crate::plan::line_text(&from)))
            .help(match kernel.views[access.view].space {
                Space::Global(_) => {
                    "wait for the copy first: `async.commit`, `async.wait(0)`, or the mbarrier \
                     that counts it; and a barrier for other threads"
                }
                _ => {
                    "wait for the instruction first: `wgmma.wait(0)`, or `bulk.wait_read(0)` and \
                     a barrier for other threads"
                }
            })
        }
        Failure::Unfenced => Diagnostic::new(
            Code::MissingFence,
            site.span,
            format!(
                "{element} was accessed by other instructions since the warp's last `wgmma.fence`"
            ),
        )
        .label(by)
        .help("write `wgmma.fence` after the accesses to these registers, before the MatMul"),
        Failure::Mbarrier => over_mbarrier(kernel, site, &element, by, access),
        Failure::Other(wrote) | Failure::Earlier(wrote) => {
            let from = kernel.sites[*wrote as usize];
            let (why, help) = match failure {
                Failure::Other(_) => (
                    "its bytes were last written as another tensor",
                    "read it before the other tensor is written, or give the tensors separate \
                     memory: remove `reuses=`",
                ),
                _ => (
                    "no thread wrote it since this iteration of the loop allocated it",
                    "write it in every iteration before it is read, or allocate it before the loop",
                ),
            };
            Diagnostic::new(Code::Uninitialized, site.span, format!("{element} is read, and {why}"))
                .label(by)
                .related(from.span, format!("written here, {}", crate::plan::line_text(&from)))
                .help(help)
        }
        Failure::Overlap(other) => Diagnostic::new(
            Code::Overlap,
            site.span,
            format!("thread {other} and thread {} write different values to {element}", who.thread),
        )
        .label(format!("block {block}: both threads write in one execution of this statement"))
        .help("let one thread own each element: compare the view's strides with the threads'"),
    };
    Err(Box::new(diagnostic))
}

/// An access to data in the bytes of a live mbarrier.
fn over_mbarrier(
    kernel: &Kernel<'_>,
    site: Site,
    element: &str,
    by: String,
    access: &ElementAccess,
) -> Diagnostic {
    let byte = match kernel.views[access.view].space {
        Space::Shared(i) => Shared::address(&kernel.shared.buffers[i], access.at),
        _ => None,
    };
    let there = byte.and_then(|(byte, _)| {
        let n = |b: &SharedBuffer| usize::try_from(b.len).unwrap_or(0) * MBARRIER_BYTES;
        let holds = |b: &&SharedBuffer| b.mbarriers && (b.at..b.at + n(b)).contains(&byte);
        let buffer = kernel.shared.buffers.iter().find(holds)?;
        Some(buffer.names.element(((byte - buffer.at) / MBARRIER_BYTES) as i64))
    });
    let there = there.map_or("a live mbarrier".to_owned(), |n| format!("the live mbarrier {n}"));
    let verb = if access.write { "written" } else { "read" };
    let text = format!("{element} is {verb}, and its bytes belong to {there}");
    Diagnostic::new(Code::BarrierMisuse, site.span, text).label(by).help(
        "give the tensor and the mbarrier separate memory: an mbarrier stays live until the \
             block ends",
    )
}

/// More asynchronous instructions are pending than the simulator can track.
pub(super) fn too_many_pending(kernel: &Kernel<'_>, site: u32) -> Box<Diagnostic> {
    let text = "more asynchronous work is pending than the simulator can track";
    Box::new(
        Diagnostic::new(Code::TooLarge, kernel.sites[site as usize].span, text)
            .label("no thread has waited for the earlier executions of this statement")
            .help("write a commit and a wait, at least every few iterations of a loop"),
    )
}

/// A thread ends while a copy that it issued may still read shared memory.
pub(super) fn ends_early(kernel: &Kernel<'_>, site: u32, thread: usize) -> Box<Diagnostic> {
    let text = "the block may end while an asynchronous copy still reads its shared memory";
    Box::new(
        Diagnostic::new(Code::Race, kernel.sites[site as usize].span, text)
            .label(format!("thread {thread} issues it here, and does not wait for its group"))
            .help("write `bulk.commit` and `bulk.wait_read(0)` before the thread ends"),
    )
}

/// A warp ends while a MatMul that it issued may still read shared memory.
pub(super) fn ends_while_multiplying(kernel: &Kernel<'_>, site: u32) -> Box<Diagnostic> {
    let text = "the block may end while an asynchronous MatMul still reads its shared memory";
    Box::new(
        Diagnostic::new(Code::Race, kernel.sites[site as usize].span, text)
            .label("it is issued here, and no thread waits for its group")
            .help("write `wgmma.commit` and `wgmma.wait(0)` before the threads end"),
    )
}

/// A thread ends while a copy that it issued to shared memory is pending and no mbarrier counts the
/// copy.
pub(super) fn ends_while_copied(kernel: &Kernel<'_>, site: u32, thread: usize) -> Box<Diagnostic> {
    let text = "the block may end while an asynchronous copy to its shared memory is pending";
    Box::new(
        Diagnostic::new(Code::Race, kernel.sites[site as usize].span, text)
            .label(format!("thread {thread} issues it here, and does not wait for its group"))
            .help(
                "write `async.commit` and `async.wait(0)` before the thread ends, or remove \
                 the copy",
            ),
    )
}

/// All threads end while a copy to shared memory is pending.
pub(super) fn ends_before(kernel: &Kernel<'_>, site: u32) -> Box<Diagnostic> {
    let text = "the block may end while an asynchronous copy to its shared memory is pending";
    Box::new(
        Diagnostic::new(Code::Race, kernel.sites[site as usize].span, text)
            .label("no thread waits for the copy")
            .help("wait for the mbarrier that `bar=` names before the threads end"),
    )
}

/// A block ends while a thread of another block may still access its shared memory.
pub(super) fn ends_while_accessed(
    kernel: &Kernel<'_>,
    site: u32,
    thread: usize,
    [by, of]: [i64; 2],
) -> Box<Diagnostic> {
    let text = format!("block {of} may end while block {by} still accesses its shared memory");
    Box::new(
        Diagnostic::new(Code::Race, kernel.sites[site as usize].span, text)
            .label(format!("block {by}, thread {thread}"))
            .help("write `cluster.arrive` and `cluster.wait` after the last such access"),
    )
}

/// A MatMul of a warp that has never executed a fence.
pub(super) fn never_fenced(kernel: &Kernel<'_>, site: u32) -> Box<Diagnostic> {
    let span = kernel.sites[site as usize].span;
    Box::new(
        Diagnostic::new(Code::MissingFence, span, "an asynchronous MatMul without a fence before")
            .label("no `wgmma.fence` precedes it")
            .help("write `wgmma.fence` before the first MatMul"),
    )
}

/// A tile that one descriptor names starts at different addresses for different threads.
pub(super) fn several_tiles<T>(
    kernel: &Kernel<'_>,
    who: &Who,
    view: usize,
    thread: usize,
) -> Checked<T> {
    Err(Box::new(
        Diagnostic::new(
            Code::AtomMismatch,
            kernel.sites[who.site as usize].span,
            format!("{} is not the same tile for all threads of the group", kernel.view_name(view)),
        )
        .label(format!("it starts at another address for thread {thread}"))
        .help("use only indices that are equal for all threads of the group"),
    ))
}

fn pending(
    kernel: &Kernel<'_>,
    site: Site,
    element: &str,
    by: String,
    access: &ElementAccess,
    issued: u32,
) -> Diagnostic {
    let from = kernel.sites[issued as usize];
    let (code, verb) =
        if access.write { (Code::Race, "overwritten") } else { (Code::Uninitialized, "read") };
    let (what, help) = match kernel.views[access.view].space {
        Space::Registers(_) => {
            ("MatMul", "wait for the MatMul's group first: `wgmma.commit`, `wgmma.wait(0)`")
        }
        Space::Shared(_) => (
            "copy",
            "wait for the copy's group first: `async.commit`, `async.wait(0)`, and a barrier for \
             other warps",
        ),
        _ => (
            "copy",
            "wait until the copy has written: `bulk.commit`, `bulk.wait(0)`, and a barrier for \
             other threads; `bulk.wait_read` waits only until it has read its source",
        ),
    };
    let text = format!("{element} is {verb} while an asynchronous {what} to it is pending");
    Diagnostic::new(code, site.span, text)
        .label(by)
        .related(from.span, format!("the {what} is issued here, {}", crate::plan::line_text(&from)))
        .help(help)
}

fn race(
    kernel: &Kernel<'_>,
    (site, block): (Site, i64),
    element: &str,
    by: String,
    access: &ElementAccess,
    who: &Who,
    clash: Clash,
) -> Diagnostic {
    let within = clash.agent == who.agent;
    let n_warps = kernel.n_warps * kernel.cluster;
    let base = block - block.rem_euclid(kernel.cluster as i64);
    let agent = |a: u16, lane: u8| {
        let a = usize::from(a);
        let (rank, warp) = (a / kernel.n_warps.max(1), a % kernel.n_warps.max(1));
        let of_block = match base + rank as i64 {
            other if a < n_warps && other != block => format!(" of block {other}"),
            _ => String::new(),
        };
        if a >= n_warps + kernel.cluster {
            "an asynchronous copy".to_owned()
        } else if a >= n_warps {
            "a group of warps".to_owned()
        } else if lane < 32 {
            format!("thread {}{of_block}", warp * 32 + usize::from(lane))
        } else if !within {
            format!("a thread of warp {warp}{of_block}")
        } else {
            format!("another thread of warp {warp}")
        }
    };
    let (first, second) = (agent(clash.agent, clash.lane), agent(who.agent, who.lane()));
    let (earlier, verb) = (
        if clash.wrote { "writes" } else { "reads" },
        if access.write { "writes" } else { "reads" },
    );
    let other = kernel.sites[clash.site as usize];
    if clash.unfenced {
        return Diagnostic::new(
            Code::MissingFence,
            site.span,
            format!(
                "{first} writes {element} ({}), an asynchronous instruction accesses it ({}), and \
                 no proxy fence is between the accesses",
                crate::plan::line_text(&other),
                crate::plan::line_text(&site),
            ),
        )
        .label(by)
        .related(other.span, format!("{first} writes it here"))
        .help(match kernel.views[access.view].space {
            Space::Global(_) => {
                "copy the tensor with threads, or write it in an earlier kernel: `fence.async` \
                 applies to shared memory only"
            }
            _ => "write `fence.async` after the write, before the next barrier",
        });
    }
    Diagnostic::new(
        Code::Race,
        site.span,
        format!(
            "{first} {earlier} {element} ({}), {second} {verb} it ({}), and no barrier is between \
             the accesses",
            crate::plan::line_text(&other),
            crate::plan::line_text(&site),
        ),
    )
    .label(by)
    .related(other.span, format!("{first} {earlier} it here"))
    .help(match within {
        true => {
            "write a `barrier` between the two accesses, or `barrier(#w)` if only the threads of \
             `#w` execute it"
        }
        false => "write a `barrier` between the two accesses",
    })
}

/// An address that is not a multiple of the atom's alignment.
pub(super) fn misaligned<T>(
    kernel: &Kernel<'_>,
    who: &Who,
    access: &ElementAccess,
    align: i64,
    byte: i64,
) -> Checked<T> {
    let site = kernel.sites[who.site as usize];
    Err(Box::new(
        Diagnostic::new(
            Code::Misaligned,
            site.span,
            format!(
                "{} is accessed {align} bytes at a time",
                kernel.element_name(access.view, access.at)
            ),
        )
        .label(format!(
            "thread {}: byte {byte} of the buffer is not a multiple of {align}",
            access.thread
        ))
        .help("align the view, or choose an atom with narrower accesses"),
    ))
}
