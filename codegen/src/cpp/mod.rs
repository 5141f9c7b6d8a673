//! CUDA C++ as a tree, and its text.
//!
//! Reading order: [`ast`], [`mod@print`], [`mod@prune`], [`mod@fuse`].
//!
//! Invariant: lowering builds trees and never text; only [`mod@print`] knows precedence, line
//! breaks and how a comment or a string is kept from ending early.

pub mod ast;
pub mod fuse;
pub mod print;
mod print_asm;
mod print_expr;
pub mod prune;
