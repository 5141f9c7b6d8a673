//! Pictures of layouts: offsets, thread-value layouts, tilings and bank conflicts, as SVG, HTML or
//! text.
//!
//! Reading order: [`picture`] (what a picture is), [`field`] (where elements are), then what makes
//! pictures ([`grid`], [`tiling`], [`tv`], [`banks`], [`tensor`]), what leaves out what repeats
//! ([`elide`]) and what writes them ([`svg`], [`text`]).
//!
//! Invariant: drawing decides nothing. Offsets come from the layout algebra, hardware facts from
//! `carbyne-atoms`; a picture is what those say. Invariant: sizes are checked before anything is
//! made of them; no input panics or exhausts memory. Invariant: the same input gives the same
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
