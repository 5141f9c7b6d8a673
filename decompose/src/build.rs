//! Re-exports the constructors of statements of `carbyne_ir`, by which strategies, rewrites and
//! `emit` build bodies.

pub(crate) use carbyne_ir::build::statements::*;
