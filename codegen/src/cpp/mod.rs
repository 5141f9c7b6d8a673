//! Represents CUDA C++ as a syntax tree, transforms the tree, and prints it as text.
//!
//! Reading order: [`ast`] (the tree), [`mod@print`] (its text), [`mod@prune`] (removes unused
//! declarations), [`mod@fuse`] (fuses unrolled loops), [`lines`] (`#line` directives).
//!
//! Invariant: lowering builds trees. Only the printer (`print`, `print_expr`, `print_asm`) handles
//! precedence, line breaks, and the escaping that keeps comments and inline PTX from ending early.

pub mod ast;
pub mod fuse;
pub mod lines;
pub mod print;
mod print_asm;
mod print_expr;
pub mod prune;
