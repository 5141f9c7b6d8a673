//! [`Unwritten`] is the reason why a chain cannot be written.

use carbyne_ir::ast::ReduceOp;

/// Why a chain cannot be written where the strategy uses it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unwritten {
    #[error("`@{0}` is not used on a tile of the strategy's operands")]
    NoTile(String),
    #[error(
        "a Reduction along mode {mode} needs all {extent} elements in one tile, but a tile has \
         {tile}"
    )]
    Reduces { mode: usize, extent: i64, tile: i64 },
    #[error(
        "a Reduction along mode {mode} needs all elements in one tile, but their number has no \
         known bound"
    )]
    Unbounded { mode: usize },
    #[error("`@{0}` is used with a wrong number of operands")]
    Operands(String),
    #[error("no pointwise operation combines partial results of {0}")]
    Combines(ReduceOp),
    #[error("the modes of an operand differ from those of the tile")]
    Modes,
    #[error("the declaration of `%{0}` does not state its type")]
    Untyped(String),
}
