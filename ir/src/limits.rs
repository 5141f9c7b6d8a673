//! The sizes that bound every input, in one place.
//!
//! Invariant: no input may exhaust memory or the stack. Whoever reads text, nests, or allocates by
//! a number from the text checks it against a constant of this file.

/// Longest accepted text, in bytes.
pub const MAX_TEXT_BYTES: usize = 2 << 20;
/// Deepest accepted nesting of brackets, parentheses and braces.
pub const MAX_NESTING: usize = 128;
/// Most operators in one integer expression.
pub const MAX_EXPR_OPERATORS: usize = 256;
/// Most errors that one run reports.
pub const MAX_ERRORS: usize = 20;
/// Most threads of a thread block (CUDA C++ Programming Guide, technical specifications per
/// compute capability).
pub const MAX_BLOCK_THREADS: i64 = 1024;
/// Most 32-bit registers of one thread (same table).
pub const MAX_THREAD_REGISTERS: i64 = 255;
/// Most bits of one register tensor in one thread: what does not fit into registers lies in memory
/// of the thread's own, which a kernel is not to be made of.
pub const MAX_THREAD_BITS: i64 = 4 * MAX_THREAD_REGISTERS * 32;
/// Most iterations of a loop that may be under way at a time (`stages=`): more buffers than shared
/// memory holds.
pub const MAX_STAGES: i64 = 64;
/// Most names, numbers, views and statements that uses of sub-specs are written out to, all of a
/// module together.
pub const MAX_WRITTEN_OUT: usize = 1 << 18;
/// Most statements of one strategy, those of its `means` block and of bodies within bodies
/// included.
pub const MAX_STRATEGY_STMTS: usize = 256;
/// Deepest nesting of sub-specs that use each other.
pub const MAX_CALLS: usize = 32;
/// Deepest chain of files that import each other.
pub const MAX_IMPORTS: usize = 32;
/// Most facts about symbols (`where`) in one module.
pub const MAX_FACTS: usize = 1024;
/// Most steps of all proofs of one module that indices stay in their modes; each is an operation on
/// a coefficient.
pub const MAX_PROOF_STEPS: usize = 40_000_000;
/// Most cells of one picture: 256 × 256.
pub const MAX_PICTURE_CELLS: i64 = 65_536;
