//! Draws layouts, tensors and operands of atoms: offsets, thread-value layouts, tilings and bank
//! conflicts, as SVG, HTML or text.
//!
//! Reading order: [`picture`] (panels of cells) and [`field`] (the positions of elements); the
//! modules that create pictures ([`grid`], [`tiling`], [`tv`], [`banks`], [`tensor`]); [`elide`],
//! which removes repetitions from large pictures; and the writers ([`svg`], [`text`]). [`parse`]
//! reads tilers and shapes from the command line.
//!
//! Invariant: this crate computes no offset and no bank by itself. Offsets come from the layout
//! algebra, hardware facts from `carbyne-atoms`. Invariant: sizes are checked before a picture is
//! built, so that no input panics or exhausts memory. Invariant: the same input gives the same
//! bytes.

#![warn(missing_docs)]

pub mod banks;
pub mod elide;
pub mod error;
pub mod field;
pub mod grid;
pub mod palette;
pub mod parse;
pub mod picture;
pub mod svg;
pub mod tensor;
pub mod text;
pub mod tiling;
pub mod tv;

pub use error::DrawError;
pub use field::{Field, Unit};
pub use picture::Picture;
