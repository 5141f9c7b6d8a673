//! Defines limits on texts and programs, for example on the length and nesting of texts, the
//! numbers of errors, threads and stages, the expansion of sub-specs, and the steps of proofs. Most
//! of them apply in several files or crates. Other files have further limits as constants of their
//! own.
//!
//! Invariant: no input exhausts memory or the stack. Code that reads text, nests, or allocates by a
//! number from the text checks this number against one of these constants or a constant of its own.

/// Maximum length of a text, in bytes.
pub const MAX_TEXT_BYTES: usize = 2 << 20;
/// Maximum nesting of brackets, parentheses and braces.
pub const MAX_NESTING: usize = 128;
/// Maximum number of operators in one integer expression.
pub const MAX_EXPR_OPERATORS: usize = 256;
/// Maximum number of errors that one run reports.
pub const MAX_ERRORS: usize = 20;
/// Maximum number of threads of a block (CUDA C++ Programming Guide, technical specifications per
/// compute capability).
pub const MAX_BLOCK_THREADS: i64 = 1024;
/// Maximum number of 32-bit registers of one thread (same table).
pub const MAX_THREAD_REGISTERS: i64 = 255;
/// Maximum size of one register tensor in one thread, in bits: four times the registers of a
/// thread. The part beyond the registers spills to local memory, which must not hold most of a
/// kernel's data.
pub const MAX_THREAD_BITS: i64 = 4 * MAX_THREAD_REGISTERS * 32;
/// Maximum value of `stages=`, the count of loop iterations in flight. Shared memory cannot hold
/// more buffers.
pub const MAX_STAGES: i64 = 64;
/// The largest value of a counter, so that printed code computes with it in 32 bits.
pub const MAX_COUNTER: i64 = 1 << 30;
/// Maximum number of names, numbers, views and statements that the expansion of all sub-spec uses
/// of a module yields.
pub const MAX_WRITTEN_OUT: usize = 1 << 18;
/// Maximum number of statements of one strategy, including its `means` block and nested bodies.
pub const MAX_STRATEGY_STMTS: usize = 256;
/// Maximum depth of sub-specs that use each other.
pub const MAX_CALLS: usize = 32;
/// Maximum length of a chain of imports.
pub const MAX_IMPORTS: usize = 32;
/// Maximum number of facts about symbols (`where`) in one module.
pub const MAX_FACTS: usize = 1024;
/// Maximum number of steps of all proofs of a module that its indices are in range. A step is one
/// operation on a coefficient.
pub const MAX_PROOF_STEPS: usize = 40_000_000;
/// Maximum number of cells of one picture: 256 × 256.
pub const MAX_PICTURE_CELLS: i64 = 65_536;
