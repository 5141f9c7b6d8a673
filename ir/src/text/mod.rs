//! Reads and writes the text format of kernels (`.cby` files). [`parse`] reads it, [`print()`]
//! writes it, `grammar.pest` defines it. Before the parser, `scan` checks limits and finds
//! comments, and `comments` assigns these to statements.
//!
//! Invariants:
//! - `parse(print(m)) == m` for every well-formed module `m`. Printing `parse(print(parse(s)))`
//!   gives `print(parse(s))` again.
//! - Every input gives a module or coded errors, in time and memory linear in its length, without
//!   panics. [`crate::limits`] bounds lengths and nesting.
//!
//! A module is well formed if a text for it exists: names, words and numbers are spelled as in the
//! grammar, integers are not negative, required lists are not empty, each mode has a stride, and
//! comments contain no line breaks and end without blanks. [`print()`] accepts other modules, too,
//! but the output may not parse to an equal tree. [`well_formed()`] finds such defects of trees
//! that were built in memory, except those of comments. [`crate::resolve::resolve`] calls it for
//! such trees; trees from a text need no check. Later stages therefore only see modules that are
//! well formed but for their comments.

mod comments;
mod parse;
mod print;
mod scan;
mod well_formed;

#[cfg(feature = "proptest")]
#[doc(hidden)]
pub use parse::rules;
pub use parse::{parse, parse_bytes};
pub use print::{print, print_attribute, print_compare, print_number, print_view};
pub use well_formed::well_formed;
