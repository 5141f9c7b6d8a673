//! Executes carbyne programs on the CPU, thread by thread: the meaning of the IR.
//!
//! [`simulate`] takes a resolved program and says that it ran and computed what its specs mean, or
//! the first thing that is wrong, with the element, the thread and the lines. It runs specs and
//! layouts; it never reads CUDA text. What follows is the semantics, enough to write it again.
//!
//! # Who executes
//! A kernel is a top-level spec `<<<#grid, #threads>>>`: as many blocks as `#grid` has elements, as
//! many threads a block as `#threads` has. A statement of a body is executed by the threads of the
//! innermost enclosing spec: all levels of its thread tensor, intersected with the threads that
//! conditions and loops around it left active. `if` and `for` are evaluated by each thread for
//! itself; a thread whose condition fails, or whose loop has ended, is inactive until the others
//! are through.
//!
//! The *group* of a spec is the innermost level of its thread tensor; outer levels repeat it.
//! `[4].[32]` is four groups of 32. `.scalar()`, or a tensor without levels, makes every thread a
//! group of its own. A group is active as a whole or not at all; else the run ends with `S0505`.
//! `.elect()` takes the same lane of every warp throughout a run: the last, under a drawn schedule
//! any but the first.
//!
//! # Where elements are
//! A view's element `e` (column-major over the modes of all levels, outermost level first) is at
//! `offset + Σ layout(coordinate)` in its buffer, counted in scalars. The offset is evaluated for
//! each thread. In shared memory the byte address relative to the buffer is then swizzled. Each
//! thread has its own copy of a register buffer. A distributed register tensor has no addresses:
//! its element `i` is held by register `v` of thread `t` for every (t,v) with `tv(t,v) = i`, where
//! `t` counts the threads of its thread tensor column-major over all levels; writing an element
//! writes all its copies. A view of one, transposed or a part, names such elements, and whoever
//! holds them holds it.
//!
//! # What a leaf does
//! A spec without a body is executed
//! - by the *atom* that it names. Atoms of one thread run for each active thread. Atoms of several
//!   need whole warps: each warp (four for an atom of 128) is filled with groups as the atom places
//!   them, and `t` is the position in the group, for a warp the lane. Operand element `v` of thread
//!   `t` is element `v` of that thread's view; a unit of `n` bits is `n / bits` consecutive
//!   elements. Read tiles take each place from the first (t,v) that names it, so addresses of idle
//!   lanes are never used; written tiles go to every (t,v). A Move keeps bits; arithmetic is that
//!   of the instruction (`exec/arith.rs`). Addresses are multiples of the atom's alignment
//!   (`S0508`), and what one access takes is contiguous (`D0302`). A tile that a descriptor names
//!   is read by every warp of the group, through its view; it is one view for all threads, and one
//!   that has a descriptor (`D0302`);
//! - else by its *meaning* ([`denote`]), in which modes of extent 1 of a Move and a BinaryPointwise
//!   are broadcast over the output's; group by group, in binary64, rounded to the accumulator's
//!   type and then to the output's. Operands in memory must be one view for the whole group, and
//!   plain registers have a meaning for single threads only (`S0506`). A Shfl moves each lane's own
//!   registers within a group of at most 32; a lane whose source does not exist keeps its own
//!   values. Of `lane=`, which the verifier bounds by the group, an atom takes the low bits.
//!
//! All lanes of a warp read before any of them writes. Two lanes that write different values to one
//! element in one execution are an error (`S0511`); the same value is counted as a warning.
//!
//! # What completes later
//! Asynchronous instructions do their work between their issue and a wait, and here as late as they
//! can: what they write may till then be neither read (`S0503`) nor written (`S0502`), what they
//! read not be written; be it in registers, shared or global memory (PTX ISA, Data Movement and
//! Conversion Instructions: Asynchronous copy, Completion Mechanisms).
//! - `cp.async`: the thread's group, closed by `async.commit`, until `async.wait(n)`; or the phase
//!   of an mbarrier, after `mbarrier.async_arrive`.
//! - Bulk copies and tensor maps: into shared memory until a wait for the phase of the mbarrier
//!   that counts their bytes; out of it the source until the thread's `bulk.wait_read(n)` or
//!   `bulk.wait(n)`, the destination until its `bulk.wait(n)` or the end of the kernel. Those that
//!   accumulate into memory by one operation need not wait for each other.
//! - `wgmma`: registers and shared memory until `wgmma.wait(n)` of the warp. What it read of shared
//!   memory may be written by who comes after any lane's wait. Registers that other instructions
//!   touched it takes only behind a `wgmma.fence` (`S0512`), save as accumulators of the same
//!   shape.
//!
//! Bulk copies and `wgmma` reach shared memory by the asynchronous proxy: what threads wrote they
//! may access only where a `fence.async` stands between (`S0512`). What is never waited for never
//! arrives, and a block does not end before it has been waited for (`S0502`): `cp.async`, what an
//! mbarrier counts, and what bulk copies read of shared memory.
//!
//! An mbarrier counts arrivals and bytes of a phase; a wait lets its threads go on when the phase
//! is complete. Waits that nothing can end any more are an error with everybody who waits and what
//! is missing (`S0509`).
//!
//! A *bulk copy* reads its source at its issue. Into shared memory it completes on an mbarrier: its
//! bytes arrive when no thread can go on without them, the oldest copy first, and its elements
//! become visible when somebody waits for the phase that counts them; till then they are pending as
//! above. Out of shared memory its elements are pending until its thread waits. Of a box of a
//! tensor map elements outside of the tensor read as zero and are not written; their bytes count. A
//! multicast copy writes the same offsets of each block that its mask names, and counts on the same
//! mbarrier of each.
//!
//! # Barrier objects
//! An mbarrier counts phases from 0. A phase is complete when its arrivals and bytes are there, and
//! the next begins. A wait for a parity passes while the current phase has the other one; else its
//! warps wait, and the others go on. Every use must come after the init (`S0502`, `S0503`), and a
//! copy's after a fence behind it (`S0510`). A second init, more arrivals than a phase takes, and
//! data where an mbarrier is, which nothing ends once it has been made ready, are errors (`S0510`;
//! PTX ISA, Parallel Synchronization and Communication Instructions: mbarrier).
//!
//! An arrival counts in the phase that runs when it comes. It is sure of its phase only if
//! everything that completed the phase before happened before it: else the threads may go on in
//! another order, in which it comes first and counts there. That is an error (`S0510`), whichever
//! way it went here; so is a copy whose bytes may count in another phase, and a wait that may pass
//! two phases early, as the parity is the same. *Happened before* is what coming after is, save
//! that a copy's issue happened before its arrival.
//!
//! The blocks of a cluster run side by side, statement by statement; each may arrive at the
//! mbarriers of the others, copy to their shared memory, and read and write it by single threads.
//! Some thread of a block must come after the last of that (`S0502`). The cluster's barrier counts
//! all their threads.
//!
//! `registers.inc` waits until the block's registers, which are divided evenly at its start, have
//! enough that others have released; requests that nothing grants are `S0509`. `grid.*` and
//! `prefetch` do nothing here.
//!
//! # Order and races
//! Threads at one statement execute it together; where they part, whole warps go their own ways,
//! and the ones farthest behind go first. That is one schedule of many, so every access to memory
//! that the kernel writes is checked against the others: two accesses of different threads to one
//! element, one of them writing, are a race (`S0502`) unless the second comes after the first. A
//! thread comes after what it did itself, and by a barrier or a wait after what those did and came
//! after who passed the barrier or arrived: a barrier of the block or of named threads,
//! `barrier(#w)` for the lanes of a warp, an mbarrier, the barrier of a cluster. `barrier(#w[@w])`
//! is a barrier of the group of `#w` that the thread is in, of each group by itself. Lanes of one
//! warp are threads like others. Their accesses in one execution of a statement are no race, be it
//! a Move from memory to memory; with what other lanes did in statements before they are. A copy
//! counts as a write at its wait, by who waited or by its mbarrier: another thread needs that wait
//! and then a barrier, or a wait of its own. A barrier that cannot be passed is an error (`S0505`).
//! A program without a race computes the same under every schedule; one that runs without error has
//! none on these inputs.
//!
//! A group of several warps that executes a spec by its meaning does not say which thread touches
//! what. Where an operand is distributed and the spec works element by element, the element's owner
//! does. Else the accesses belong to the *collective*, an agent of its own: ordered with a warp's
//! by a barrier of all its warps only, and with each other always. What the whole block, or
//! consecutive warps of it as one group, execute by its meaning comes after everything that the
//! threads that are there together did before: barriers may be left out at the tile level, where
//! the solver places them.
//!
//! Blocks see the memory as it was before the kernel and their own writes. Two blocks that touch
//! one element, one writing, are a race. Kernels run in text order and see what earlier ones wrote.
//!
//! Registers, shared memory and tensors that a program only writes begin undefined; reading what
//! nobody wrote is `S0503`. `Allocate` makes registers undefined again, and shared memory in each
//! turn of the loops around it: what another turn wrote, or what was written as another tensor that
//! lies in the same bytes (`reuses=`, `at=`), is `S0503`, too. An access outside its buffer is
//! `S0504`.
//!
//! # What is compared
//! When the body of a spec that has a meaning begins, the meaning is evaluated for each group, from
//! everything that was written so far, visible or not; when it ends every element of the outputs is
//! compared, each copy of a distributed one, copies under way as if they had arrived. Groups that
//! share one output are compared when all of them have ended. A kernel is compared with its spec by
//! the elements that its blocks wrote; when all blocks ran, all of the output must have been
//! written, whether or not the spec has a meaning, save what the spec also reads.
//!
//! The meaning of a generic spec is its `means` block, a chain of steps on whole tensors
//! ([`denote::Chain`]).
//!
//! *Shadows.* With every value goes its shadow: what it would be had nothing been rounded. Every
//! operation computes it from the shadows of its operands, in binary64; casts between floats keep
//! it where the number is within the range of their type, and make of it what the type has there
//! where it is not; memory holds it beside the bits, from kernel to kernel. It begins as the number
//! itself where the caller gives it, and begins again where bits are read as another type than they
//! were written as. What makes integers of floats, and comparisons, decide for the shadow by
//! shadows. So the shadow of an output is what the algorithm computes, whatever the types, and it
//! must be the meaning of the shadows that were read, to 2^-30 of its scale: the sum of the
//! magnitudes that are added up to make it, carried through functions by their derivatives.
//!
//! *Values.* Specs that are named by what they compute are held to the values, too: Moves and Init
//! bit by bit; what else may differ by follows from types and magnitudes alone, see [`mod@denote`]
//! and its `tolerance.rs`. That reference shares no arithmetic with what instructions do. With
//! [`Inputs::Ints`] sums that stay exact must be exact. A value that is infinite or no number where
//! its shadow is a number of the type is wrong. What the types round away otherwise is the distance
//! of value and shadow: it is reported, not judged.
//!
//! The first wrong element (`S0501`) is the first in the order of blocks, of the program (inner
//! bodies end before outer ones), and column-major. Bodies without a meaning (generic specs that do
//! not say what they mean, groups over plain registers, groups of which each thread has its own
//! view) are executed and not compared; the report lists those.
//!
//! # Limits
//! Before a block runs its steps are bounded from the trip counts; a block over the budget is
//! refused (`X0006`), and of a larger grid an evenly spread sample runs. Shared memory is limited
//! to what a block of the architecture can ask for (`X0004`), and what is kept of written memory to
//! some 32 million elements, asynchronous work under way to 4096 MatMuls of a warp and some million
//! elements of bulk copies (`X0007`). Memory grows with the blocks in flight and what they touched:
//! inputs are computed where they are read.
//!
//! Invariant: every input ends in an answer: no panic, no endless run, memory bounded by the
//! limits. Invariant: results are deterministic, however many cores there are. Invariant: nothing
//! here depends on an atom's name or on an architecture; atoms are read by their fields.

#![warn(missing_docs)]

mod against;
pub mod array;
pub mod conformance;
mod decisions;
pub mod denote;
pub mod device;
mod exec;
mod grid;
mod index;
mod inputs;
mod launch;
pub mod num;
mod options;
mod packed;
mod plan;
mod report;
mod root;
mod state;
mod workers;

pub use against::{Compared, against};
pub use array::{Array, ArrayError};
pub use decisions::Decisions;
pub use inputs::Inputs;
pub use launch::simulate;
pub use options::{Between, DEFAULT_BUDGET, Options, SECOND};
pub use report::{KernelReport, LeafReport, Outputs, Report, Rounding, Short, SpecReport};
pub use state::banks::{BankCount, LeafCount, SectorCount};
