//! Statements that are written: by strategies, by rewrites, and for bodies of what is solved.

pub(crate) use carbyne_ir::build::statements::*;
