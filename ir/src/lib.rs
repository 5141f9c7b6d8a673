//! Implements the intermediate representation (IR) of carbyne: the layout algebra, and the tree,
//! text format, resolver and verifier of GPU tensor kernels.
//!
//! Read the modules in this order: [`mod@tuple`], [`layout`], `ast`, `program`. [`layout`] can be
//! used by itself. Other crates of carbyne also use [`cancel`], [`progress`], [`parallel`] and
//! [`testing`].
//!
//! # The layout algebra in ten examples
//!
//! **1. A layout is a function** from coordinates to indices, written `shape:stride`. A number can
//! stand for a coordinate; the first mode then varies fastest.
//!
//! ```
//! # use carbyne_ir::{layout::{Layout, LayoutError}, tuple::IntTuple};
//! let a: Layout = "(4,8):(8,1)".parse()?; // 4 rows of 8, row-major
//! assert_eq!(a.at_coord(&"(2,3)".parse()?)?, 19);
//! assert_eq!(a.at(1), 8); // coordinate (1,0)
//! # Ok::<(), LayoutError>(())
//! ```
//!
//! **2. Shapes nest.** `((2,2),8)` is a tile of tiles: 4 rows in two levels. `4` and `(4)` are
//! different.
//!
//! ```
//! # use carbyne_ir::layout::{Layout, LayoutError};
//! let a: Layout = "((2,2),8):((1,16),2)".parse()?;
//! assert_eq!((a.rank(), a.depth(), a.size(), a.cosize()), (2, 2, 32, 32));
//! assert_eq!(a.mode(0)?.to_string(), "(2,2):(1,16)");
//! # Ok::<(), LayoutError>(())
//! ```
//!
//! **3. Coalescing** gives an equal function with as few modes as possible.
//!
//! ```
//! # use carbyne_ir::layout::{Layout, LayoutError};
//! let a: Layout = "(2,(1,6)):(1,(7,2))".parse()?;
//! assert_eq!(a.coalesce().to_string(), "12:1");
//! # Ok::<(), LayoutError>(())
//! ```
//!
//! **4. Composition** is function composition: the second layout selects elements of the first.
//!
//! ```
//! # use carbyne_ir::layout::{Layout, LayoutError};
//! let (a, b): (Layout, Layout) = ("(6,2):(8,2)".parse()?, "(4,3):(3,1)".parse()?);
//! let c = a.compose(&b)?;
//! assert_eq!(c.to_string(), "((2,2),3):((24,2),8)");
//! assert!((0..12).all(|i| c.at(i) == a.at(b.at(i))));
//! # Ok::<(), LayoutError>(())
//! ```
//!
//! **5. An operation is exact or an error.** If the result is not a layout, the error names the
//! modes that do not fit, and a fix.
//!
//! ```
//! # use carbyne_ir::layout::{Layout, LayoutError};
//! let (a, b): (Layout, Layout) = ("(4,36):(4,64)".parse()?, "32:3".parse()?);
//! let error = a.compose(&b).unwrap_err();
//! assert_eq!(error.code(), "L0101");
//! assert_eq!(
//!     error.to_string(),
//!     "mode `32:3` splits mode `4:4` unevenly, so the result is not a layout",
//! );
//! assert!(error.help().is_some_and(|help| help.starts_with("make the stride of `32:3`")));
//! # Ok::<(), LayoutError>(())
//! ```
//!
//! **6. The complement** reaches the indices that a layout leaves out. **Division** pairs a tile
//! with its complement: (tile, tiles).
//!
//! ```
//! # use carbyne_ir::layout::{Layout, LayoutError, Tiler};
//! let tile: Layout = "4:2".parse()?; // every other element
//! assert_eq!(tile.complement(24)?.to_string(), "(2,3):(1,8)");
//! let a: Layout = "(8,24):(24,1)".parse()?;
//! let tiles = a.zipped_divide(Tiler::tile(&[4, 8])?)?;
//! assert_eq!(tiles.to_string(), "((4,8),(2,3)):((24,1),(96,8))");
//! # Ok::<(), LayoutError>(())
//! ```
//!
//! **7. Products** place copies of a block by another layout; `tile_to_shape` repeats a block until
//! a shape is full.
//!
//! ```
//! # use carbyne_ir::layout::{Layout, LayoutError};
//! let block: Layout = "(2,5):(5,1)".parse()?;
//! let copies: Layout = "(3,4):(1,3)".parse()?;
//! assert_eq!(block.blocked_product(&copies)?.to_string(), "((2,3),(5,4)):((5,10),(1,30))");
//! assert_eq!(block.tile_to_shape(&"(4,10)".parse()?, None)?.size(), 40);
//! # Ok::<(), LayoutError>(())
//! ```
//!
//! **8. Inverses** map indices to coordinates: which thread and which value hold element `i` of the
//! tile?
//!
//! ```
//! # use carbyne_ir::layout::{Layout, LayoutError};
//! let tv: Layout = "((4,8),(2,2)):((32,1),(16,8))".parse()?; // an accumulator of mma.m16n8k16
//! let owner = tv.right_inverse();
//! let at = owner.at(17); // row 1, column 1
//! assert_eq!((at % 32, at / 32), (4, 1)); // thread 4, value 1
//! # Ok::<(), LayoutError>(())
//! ```
//!
//! **9. Swizzles** spread memory over banks. **Recasting** views the memory as elements of another
//! width.
//!
//! ```
//! # use carbyne_ir::layout::{ComposedLayout, LayoutError};
//! let shared: ComposedLayout = "Sw<3,3,3> o 0 o (64,64):(64,1)".parse()?;
//! assert_eq!(shared.at_coord(&"(1,0)".parse()?)?, 72);
//! let vectors = shared.recast(16, 128)?; // eight halves at a time
//! assert_eq!(vectors.to_string(), "Sw<3,0,3> o 0 o (64,8):(8,1)");
//! # Ok::<(), LayoutError>(())
//! ```
//!
//! **10. Symbols** work in all operations, with their known ranges and divisors. If a fact is
//! missing, the error names it. Strides along axes (`1@0`) give coordinates instead of indices.
//!
//! ```
//! # use carbyne_ir::expr::{Dim, ExprArena, VarInfo};
//! # use carbyne_ir::layout::{CoordLayout, Layout, LayoutError, Tiler};
//! let arena = ExprArena::new();
//! let m = arena.var(VarInfo::size("M"))?;
//! let k = arena.var(VarInfo { div: 64, ..VarInfo::size("K") })?;
//! let a = Layout::row_major_in(&arena, vec![m, k])?;
//! let tiles = a.zipped_divide_in(&arena, Tiler::tile(&[Dim::Const(128), Dim::Const(64)])?)?;
//! assert_eq!(tiles.display_in(&arena), "((128,64),((M + 127)/128,K/64)):((K,1),(K*128,64))");
//! let error = a.upcast_in(&arena, 128).unwrap_err();
//! assert_eq!(error.to_string(), "cannot decide without knowing `K % 128 == 0`");
//!
//! let identity = CoordLayout::identity(vec![4, 5])?;
//! assert_eq!(identity.at_coord(&7.into())?.to_string(), "(3,1)");
//! # Ok::<(), LayoutError>(())
//! ```
//!
//! # Features
//!
//! - `text` (on by default): kernels. It adds the modules `ast`, `build`, `text`, `link`,
//!   `resolve`, `program`, `verify`, `expand`, `diag` and `span`. Without it this crate is the
//!   algebra ([`mod@tuple`], [`layout`] and [`expr`]) and small helpers, and depends on no crate
//!   for parsing or printing.
//! - `proptest`: the module `kit`, which tests any library of layouts by the laws of the layout
//!   algebra.
//!
//! Invariant: this crate knows no architecture and no atom.
//! Invariant: after `verify` accepts a program, later stages return; they do not panic.

#![cfg_attr(docsrs, feature(doc_cfg))]

// The code that pest generates uses the boxes of `alloc`. pest's own stack guard needs `std` and is
// off; `text::scan` bounds the nesting depth of a text instead.
#[cfg(feature = "text")]
extern crate alloc;

pub mod cancel;
pub mod expr;
mod fact;
#[cfg(any(test, feature = "proptest"))]
pub mod kit;
pub mod layout;
pub mod leaf;
pub mod limits;
pub mod parallel;
pub mod progress;
pub mod scalar;
pub mod testing;
pub mod tuple;

#[cfg(feature = "text")]
pub mod ast;
#[cfg(feature = "text")]
pub mod build;
#[cfg(feature = "text")]
pub mod diag;
#[cfg(feature = "text")]
pub mod expand;
#[cfg(feature = "text")]
pub mod link;
#[cfg(feature = "text")]
pub mod program;
#[cfg(feature = "text")]
pub mod resolve;
#[cfg(feature = "text")]
pub mod span;
#[cfg(feature = "text")]
pub mod text;
#[cfg(feature = "text")]
pub mod verify;
