//! Executes carbyne programs on the CPU, thread by thread: the meaning of the IR.
//!
//! [`simulate`] takes a resolved program and says that it ran and computed what its specs mean, or the
//! first thing that is wrong, with the element, the thread and the lines. It runs specs and layouts; it
//! never reads CUDA text. What follows is the semantics, enough to write it again.
//!
//! # Who executes
//! A kernel is a top-level spec `<<<#grid, #threads>>>`: as many blocks as `#grid` has elements, as many
//! threads a block as `#threads` has. A statement of a body is executed by the threads of the innermost
//! enclosing spec: all levels of its thread tensor, intersected with the threads that conditions and loops
//! around it left active. `if` and `for` are evaluated by each thread for itself; a thread whose condition
//! fails, or whose loop has ended, is inactive until the others are through.
//!
//! The *group* of a spec is the innermost level of its thread tensor; outer levels repeat it. `[4].[32]`
//! is four groups of 32. `.scalar()`, or a tensor without levels, makes every thread a group of its own.
//! A group is active as a whole or not at all; else the run ends with `S0505`.
//!
//! # Where elements are
//! A view's element `e` (column-major over the modes of all levels, outermost level first) is at
//! `offset + Σ layout(coordinate)` in its buffer, counted in scalars. The offset is evaluated for each
//! thread. In shared memory the byte address relative to the buffer is then swizzled. Each thread has its
//! own copy of a register buffer. A distributed register tensor has no addresses: its element `i` is held
//! by register `v` of thread `t` for every (t,v) with `tv(t,v) = i`, where `t` counts the threads of its
//! thread tensor column-major over all levels; writing an element writes all its copies.
//!
//! # What a leaf does
//! A spec without a body is executed
//! - by the *row* of its atom. Rows of one thread run for each active thread. Rows of several need whole
//!   warps: each warp (four for a row of 128) is filled with groups as the row places them, and `t` is the
//!   position in the group, for a warp the lane. Operand element `v` of thread `t` is element `v` of that
//!   thread's view; a unit of `n` bits is `n / bits` consecutive elements. Read tiles take each place from
//!   the first (t,v) that names it, so addresses of idle lanes are never used; written tiles go to every
//!   (t,v). A Move keeps bits; arithmetic is that of the instruction (`exec/arith.rs`). Addresses are
//!   multiples of the row's alignment (`S0508`), and what one access takes lies together (`D0302`);
//! - else by its *meaning* ([`denote`]), group by group, in binary64, rounded to the accumulator's type and
//!   then to the output's. Operands in memory must be one view for the whole group, and plain registers
//!   have a meaning for single threads only (`S0506`). A Shfl moves each lane's own registers within a
//!   group of at most 32; a lane whose source does not exist keeps its own values.
//!
//! All lanes of a warp read before any of them writes. A row whose visibility is an asynchronous group
//! reads at once and writes later: `async.commit` closes the thread's open group, `async.wait(n)` lets the
//! oldest groups arrive until `n` are left. Until then its destination may be neither read (`S0503`) nor
//! written (`S0502`): late completion is the only schedule. What is never waited for never arrives.
//!
//! # Order and races
//! Statements run one after the other, each for the whole block. That is one schedule of many, so every
//! access to memory that the kernel writes is checked against the others: two accesses of different warps
//! to one element, one of them writing, are a race (`S0502`) unless barriers order them. Warps carry vector
//! clocks; a barrier, named or of the block, joins those of its warps, and is an error where a thread that
//! it names is inactive (`S0505`). Lanes of one warp are in lockstep. A copy's arrival counts as a write by
//! the waiting thread at its wait: another warp needs the wait and then a barrier. A program without a race
//! computes the same under every schedule; one that runs without error has none on these inputs.
//!
//! A group of several warps that executes a spec by its meaning does not say which thread touches what.
//! Where an operand is distributed and the spec works element by element, the element's owner does. Else
//! the accesses belong to the *collective*, an agent of its own: ordered with a warp's by a barrier of all
//! its warps only, and with each other always. What the whole block executes by its meaning comes after
//! everything before it: barriers may be left out at the tile level, where the solver places them.
//!
//! Blocks see the memory as it was before the kernel and their own writes. Two blocks that touch one
//! element, one writing, are a race. Kernels run in text order and see what earlier ones wrote.
//!
//! Registers, shared memory and tensors that a program only writes begin undefined; reading what nobody
//! wrote is `S0503`. `Allocate` makes registers undefined again. An access outside its buffer is `S0504`.
//!
//! # What is compared
//! When the body of a spec that has a meaning begins, the meaning is evaluated for each group, from
//! everything that was written so far, visible or not; when it ends every element of the outputs is
//! compared, each copy of a distributed one, copies under way as if they had arrived. A kernel is compared
//! with its spec by the elements that its blocks wrote; when all blocks ran, all of the output must have
//! been written. The reference uses binary64 and shares no arithmetic with what instructions do.
//! Moves and Init must agree bit by bit; what else may differ by follows from types and magnitudes alone,
//! see [`mod@denote`] and its `tolerance.rs`. With [`Inputs::Ints`] sums that stay exact must be exact.
//! The first wrong element (`S0501`) is the first in the order of blocks, of the program (inner bodies end
//! before outer ones), and column-major. Bodies without a meaning (generic specs, groups over plain
//! registers, groups of which each thread has its own view) are executed and not compared; the report
//! lists those.
//!
//! # Limits
//! Before a block runs its steps are bounded from the trip counts; a block over the budget is refused
//! (`X0006`), and of a larger grid an evenly spread sample runs. Shared memory is limited to 256 KiB, and
//! what is kept of written memory to some 32 million elements.
//!
//! Invariant: every input ends in an answer: no panic, no endless run, memory bounded by the limits.
//! Invariant: results are deterministic, however many cores there are.
//! Invariant: nothing here depends on an atom's name or on an architecture; rows are read by their fields.

#![warn(missing_docs)]

pub mod array;
pub mod conformance;
pub mod denote;
pub mod device;
mod exec;
mod grid;
mod index;
mod inputs;
mod launch;
pub mod num;
mod options;
mod plan;
mod report;
mod root;
mod state;

pub use array::{Array, ArrayError};
pub use inputs::Inputs;
pub use launch::simulate;
pub use options::{DEFAULT_BUDGET, Options};
pub use report::{KernelReport, Outputs, Report};
pub use state::banks::BankCount;
