//! The text format: [`parse`] reads it, [`print()`] writes it, `grammar.pest` defines it.
//!
//! Invariants:
//! - `parse(print(m)) == m` for every well-formed module `m`; `print(parse(s))` prints as itself
//!   again.
//! - Any input is answered with a module or with coded errors, in time and memory linear in its
//!   length; nothing panics. Lengths and nesting are bounded by [`crate::limits`].
//!
//! A module is well formed when it could have come from a text: names, words and numbers spelled as
//! the grammar says, integers not negative, no list empty that the grammar wants filled, strides as
//! many as modes, and comments without line breaks or blanks at their end. [`print()`] writes
//! something for the others, too, but not always what reads back to the same tree.
//! [`well_formed()`] says why a tree that was built in memory is none of them; [`crate::resolve`]
//! asks it, so that nothing else is ever looked at.

mod comments;
mod parse;
mod print;
mod scan;
mod well_formed;

#[cfg(feature = "proptest")]
#[doc(hidden)]
pub use parse::rules;
pub use parse::{parse, parse_bytes};
pub use print::{print, print_compare, print_number};
pub use well_formed::well_formed;
