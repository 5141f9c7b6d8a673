//! Executes carbyne programs on the CPU, thread by thread. This defines the semantics of the IR.
//!
//! [`simulate`] runs a resolved program and compares the results with the meanings of its specs. It
//! returns a report, or the first error with the element, the thread and the lines of text: a wrong
//! result, a race, a missing wait. Programs are therefore checked without a GPU. The simulator
//! executes specs and layouts; it does not read CUDA text. The sections below describe the
//! semantics completely: a second implementation needs nothing else.
//!
//! # Threads
//! A kernel is a top-level spec `<<<#grid, #threads>>>`. It has one block for each element of
//! `#grid`, and each block has one thread for each element of `#threads`. The threads of the
//! innermost enclosing spec execute a statement: all levels of its thread tensor (each bracket of
//! `[4].[32].thread` is a level), without the threads that enclosing conditions and loops made
//! inactive. Each thread evaluates `if` and `for` for itself. A thread whose condition fails, or
//! whose loop has ended, is inactive until the other threads have finished the body.
//!
//! The *group* of a spec is the innermost level of its thread tensor; outer levels repeat the
//! group. `[4].[32]` is four groups of 32 threads. `.scalar()`, or a tensor without levels, makes
//! every thread a group of its own. Either all threads of a group are active or none; otherwise the
//! run ends with `S0505`. `.elect()` selects one lane of every warp, always the same one within a
//! run: the last lane by default, and any lane except the first under a random schedule.
//!
//! # Elements
//! Element `e` of a view (column-major over the modes of all levels, outermost level first) lies at
//! `offset + Σ layout(coordinate)` in its buffer, counted in scalars. Each thread evaluates the
//! offset for itself. In shared memory, the swizzle then applies to the byte address relative to
//! the buffer. Each thread has its own copy of a register buffer. A distributed register tensor has
//! no addresses: register `v` of thread `t` holds element `i` for every (t,v) with `tv(t,v) = i`,
//! where `t` counts the threads of the tensor's thread tensor column-major over all levels. A write
//! of an element writes all of its copies. A transposed or partial view of a distributed tensor
//! names elements of that tensor, and the same threads hold them.
//!
//! # Leaves
//! The simulator executes a spec without a body in one of two ways:
//! - With the *atom* that the spec names. An atom of one thread runs for each active thread. An
//!   atom of several threads needs whole warps: groups fill each warp (four warps for an atom of
//!   128 threads) as the atom places them, and `t` is the position in the group, for a warp the
//!   lane. Operand element `v` of thread `t` is element `v` of that thread's view; a unit of `n`
//!   bits is `n / bits` consecutive elements. A tile that the atom reads takes each element from
//!   the first (t,v) that names it, so the addresses of idle lanes are never used. A tile that the
//!   atom writes goes to every (t,v) in registers, and in memory to the first (t,v) that names each
//!   element. A Move keeps bits; other arithmetic is that of the instruction (`exec/arith.rs`).
//!   Addresses must be multiples of the atom's alignment (`S0508`), and the elements of one access
//!   must be contiguous (`D0302`). Every warp of the group reads a tile that a descriptor names
//!   through its own view; the view must be the same for all threads and must have a descriptor
//!   (`D0302`).
//! - Without an atom, by its *meaning* ([`denote`]): group by group, in binary64, rounded to the
//!   accumulator's type and then to the output's. Modes of extent 1 of the inputs of a Move or a
//!   BinaryPointwise are broadcast over the modes of the output. Operands in memory must be one
//!   view for the whole group, and plain registers have a meaning for single threads only
//!   (`S0506`). A Shfl moves the registers of each lane within a group of at most 32; a lane whose
//!   source does not exist keeps its own values. The verifier bounds `lane=` by the group; an atom
//!   uses its low bits.
//!
//! All lanes of a warp read before any of them writes. If two lanes write different values to one
//! element in one execution, that is an error (`S0511`); equal values are counted as a warning.
//!
//! # Asynchronous instructions
//! An asynchronous instruction works between its issue and a wait; the simulator completes it as
//! late as it can. Until then, no thread may read (`S0503`) or write (`S0502`) its destination, and
//! no thread may write its source. This holds for registers, shared and global memory (PTX ISA,
//! Data Movement and Conversion Instructions: Asynchronous copy, Completion Mechanisms).
//! - `cp.async` is complete after the `async.wait(n)` that covers its group, which the thread
//!   closed with `async.commit`; or after the phase of an mbarrier, if `mbarrier.async_arrive`
//!   follows.
//! - Bulk copies, with or without a tensor map: a copy into shared memory is complete after a wait
//!   for the phase of the mbarrier that counts its bytes. A copy out of shared memory releases its
//!   source at the thread's `bulk.wait_read(n)` or `bulk.wait(n)`, and its destination at the
//!   thread's `bulk.wait(n)` or at the end of the kernel. Copies that accumulate into memory with
//!   one operation need not wait for each other.
//! - `wgmma` is complete in registers and shared memory after the warp's `wgmma.wait(n)`. A thread
//!   that comes after the wait of any lane may write the shared memory that it read. A `wgmma` may
//!   use registers that other instructions touched only after a `wgmma.fence` (`S0512`);
//!   accumulators of the same shape are excepted.
//!
//! Bulk copies and `wgmma` access shared memory through the asynchronous proxy. They may access
//! data that threads wrote only after a `fence.async` (`S0512`). Asynchronous work without a wait
//! never completes. A block must not end before waits for `cp.async`, for everything that an
//! mbarrier counts, and for the reads of shared memory by bulk copies (`S0502`).
//!
//! An mbarrier counts the arrivals and bytes of a phase; a wait returns when the phase is complete.
//! When no remaining work can end the waits, that is an error that lists all waiting threads and
//! what is missing (`S0509`).
//!
//! A *bulk copy* reads its source at its issue. A copy into shared memory completes on an mbarrier.
//! Its bytes arrive when no thread can continue without them, the oldest copy first; its elements
//! become visible when a thread waits for the phase that counts them, and are pending until then. A
//! copy out of shared memory leaves its elements pending until its thread waits. Elements of a box
//! outside the tensor of a tensor map read as zero and are not written; their bytes count. A
//! multicast copy writes the same offsets in each block that its mask names, and counts on the same
//! mbarrier of each of these blocks.
//!
//! # mbarriers
//! An mbarrier counts phases from 0. When the arrivals and bytes of a phase are complete, the next
//! phase begins. A wait for a parity returns while the current phase has the other parity;
//! otherwise its warps wait, and other warps continue. Every use must come after the
//! initialization (`S0502`, `S0503`), and the use by a copy after a fence that follows the
//! initialization (`S0510`). Errors are also: a second initialization, more arrivals than a phase
//! counts, and data in the bytes of an mbarrier, which stays valid until the block ends (`S0510`;
//! PTX ISA, Parallel Synchronization and Communication Instructions: mbarrier).
//!
//! An arrival counts in the phase that is current when it executes. Its phase is certain only if
//! everything that completed the previous phase happened before the arrival. Otherwise another
//! schedule may execute the arrival first and count it in the previous phase. Such an arrival is an
//! error (`S0510`) in every schedule. A copy whose bytes may count in another phase is this error,
//! too, and so is a wait that may return two phases early because the parity is equal. *Happened
//! before* is the order of the section on races, with one addition: the issue of a copy happened
//! before its arrival.
//!
//! The blocks of a cluster run side by side, statement by statement. Each block may arrive at the
//! mbarriers of the others and copy to their shared memory; single threads may read and write it.
//! Some thread of a block must come after the last such access to that block (`S0502`). The barrier
//! of the cluster counts all threads of all its blocks.
//!
//! The block's registers are divided evenly among its warps at the start. `registers.inc` waits
//! until other warps have released enough registers; requests that can never be met are `S0509`.
//! `grid.*` and `prefetch` have no effect here.
//!
//! # Order and races
//! Threads at one statement execute it together. Where they diverge, whole warps run separately,
//! and the warps that are farthest behind run first. This is one of many schedules. Therefore every
//! access to memory that the kernel writes is checked against the others: two accesses by different
//! threads to one element, at least one of them a write, are a race (`S0502`) unless the second
//! comes after the first. A thread comes after its own earlier accesses. At a barrier or a wait, it
//! also comes after everything that the threads which passed the barrier or arrived did or came
//! after. Such barriers are: a barrier of the block or of named threads, `barrier(#w)` for the
//! lanes of a warp, an mbarrier, and the barrier of a cluster. `barrier(#w[@w])` synchronizes each
//! group of `#w` separately. Lanes of one warp are ordinary threads: their accesses in one
//! execution of a statement are no race, even in a Move from memory to memory, but accesses in
//! different statements are. A copy counts as a write at its wait, by the waiting thread or by its
//! mbarrier: another thread needs that wait and then a barrier, or its own wait. A barrier that
//! cannot complete is an error (`S0505`). A program without a race computes the same results under
//! every schedule, and a run without an error proves that there is no race on these inputs.
//!
//! When a group of several warps executes a spec by its meaning, no thread is assigned to each
//! element. If an operand is distributed and the spec works element by element, the owner of the
//! element makes the access. Otherwise the accesses belong to the *collective*, an agent of its
//! own. Only a barrier of all warps of the group orders the accesses of the collective with those
//! of a warp; accesses of collectives are always ordered with each other. A spec that the whole
//! block, or consecutive warps as one group, executes by its meaning comes after all earlier
//! accesses of its threads. A text at the tile level may therefore omit barriers; the solver places
//! them.
//!
//! A block sees the memory before the kernel and its own writes. Two blocks that access one
//! element, at least one of them with a write, are a race. Kernels run in text order and see the
//! writes of earlier kernels.
//!
//! Registers, shared memory, and tensors that a program only writes begin undefined; a read of an
//! element that was never written is `S0503`. `Allocate` makes registers undefined again, and
//! shared memory in each iteration of the enclosing loops. Reads of data from another iteration, or
//! of data that another tensor in the same bytes (`reuses=`, `at=`) holds, are also `S0503`. An
//! access outside its buffer is `S0504`.
//!
//! # Comparison with meanings
//! When the body of a spec with a meaning begins, the simulator evaluates the meaning for each
//! group, from all earlier writes, visible or not. When the body ends, it compares every element of
//! the outputs, with each copy of a distributed element, and treats pending copies as complete.
//! Groups that share one output are compared when all of them have ended. A kernel is compared with
//! its spec on the elements that its blocks wrote. If all blocks ran, all elements of the output
//! must have been written, with or without a meaning; elements that the spec also reads are
//! excepted.
//!
//! The meaning of a generic spec is its `means` block, a chain of steps on whole tensors
//! ([`denote::Chain`]).
//!
//! *Shadows.* Each value has a shadow: the value without rounding to its type. Every operation
//! computes the shadow of its result from the shadows of its operands, in binary64. A cast between
//! floats rounds the shadow only if the meaning states this cast. Any other cast keeps the shadow
//! if the number is within the range of the type; otherwise the shadow becomes the number that the
//! type has there. Memory stores shadows beside the bits. Each kernel begins with the stored values
//! as shadows, unless the run is compared with a parent ([`Between`]). The shadow of an input is
//! the input itself. When bits are read as another type than they were written, the shadow starts
//! again from the number. Casts from floats to integers, and comparisons, use the shadows to decide
//! the shadow of their result. So the shadow of an output is the result of the algorithm, whatever
//! the types. It must equal the meaning of the shadows that were read, to 2^-30 of its scale: the
//! sum of the magnitudes that are added, carried through functions by their derivatives.
//!
//! *Values.* For a spec with a specific kind (not `Spec`), the values are compared as well: bit by
//! bit for Moves and Init, and for the others within a tolerance that follows from types and
//! magnitudes alone, see [`mod@denote`] and its `tolerance.rs`. The reference shares no arithmetic
//! of floats with the instructions. With [`Inputs::Ints`], sums that stay exact must match exactly.
//! An infinite or NaN value is wrong where the type can hold its shadow. All other rounding is the
//! distance between value and shadow; the report states it, and it is never an error.
//!
//! The first wrong element (`S0501`) is the first in the order of blocks, then of the program
//! (inner bodies end before outer ones), then column-major. Bodies without a meaning are executed
//! and not compared: generic specs without `means`, groups over plain registers, and groups whose
//! threads have different views. The report lists them.
//!
//! # Limits
//! Before a block runs, the simulator bounds its steps from the trip counts. A block over the
//! budget is refused (`X0006`); of a grid over the budget, an evenly spread sample runs. If only
//! loops that may end early exceed the budget, their steps are counted when they run. Shared
//! memory is limited to the maximum of a block of the architecture (`X0004`). Limited as well
//! (`X0007`) are the stored elements of written memory, to about 32 million; pending asynchronous
//! MatMuls of the warps of a block, to 4096 in total; and the elements of pending bulk copies, to a
//! few million. Memory use grows with the blocks that run at once and with the memory that they
//! touch; inputs are computed when they are read.
//!
//! Invariant: every input ends in an answer: no panic, no endless run, and memory bounded by the
//! limits. Invariant: results are deterministic, for any number of cores. Invariant: no code here
//! depends on the name of an atom or on an architecture; it reads the fields of atoms.

#![warn(missing_docs)]

pub mod array;
pub mod conformance;
mod decisions;
pub mod denote;
pub mod device;
mod exec;
mod grid;
mod index;
mod inputs;
mod kernel_results;
mod launch;
pub mod num;
mod options;
mod packed;
mod parent;
mod plan;
mod report;
mod state;
mod workers;

pub use array::{Array, ArrayError};
pub use decisions::Decisions;
pub use inputs::Inputs;
pub use launch::simulate;
pub use options::{Between, DEFAULT_BUDGET, Options, SECOND};
pub use parent::{Compared, compare_with_parent};
pub use report::{KernelReport, LeafReport, Outputs, Report, Rounding, Short, SpecReport};
pub use state::banks::{BankCount, LeafCount, SectorCount};
