//! CUDA C++ as a syntax tree, passes over the tree, and the printer that makes text of it.
//!
//! Reading order: [`ast`], [`mod@print`], [`mod@prune`], [`mod@fuse`].
//!
//! Invariant: lowering builds trees and never text. Only [`mod@print`] handles precedence, line
//! breaks, and the escaping that keeps comments and strings from ending early.

pub mod ast;
pub mod fuse;
pub mod lines;
pub mod print;
mod print_asm;
mod print_expr;
pub mod prune;
