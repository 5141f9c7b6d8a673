//! Generates whole modules and their parts at random. The generators are proptest strategies, not
//! the strategies by which kernels are decomposed. Tests of parser and printer use them.
//!
//! The generated modules are well formed in the sense of [`carbyne_ir::text`]: the printed text
//! parses to an equal module. They may not verify, because names are drawn without regard to
//! definitions. Every rule of the grammar occurs with a minimum frequency; a test counts them.
//!
//! Every proptest strategy is boxed; otherwise its type would contain the types of all parts and
//! cost a minute of compilation. Sizes are small, so that shrinking ends soon: a few statements a
//! block, blocks three deep.

mod expr;
mod spec;
mod statement;
mod tensor;
mod tensors;
mod words;

pub use expr::{dims, expr, layout, tuple};
pub use spec::{spec, spec_kind};
pub use statement::{block, stmt};
pub use tensor::{data_view, result_type, tensor_type, thread_type, thread_view};
pub use tensors::tensors;
pub use words::{comment, ident, index_or_constant, number, tensor_name, word};

use carbyne_ir::ast::Module;
use proptest::prelude::*;

/// A module with fewer than eight statements at the top level.
pub fn module() -> impl Strategy<Value = Module> {
    (words::comments(), statement::stmts(8, 3), words::comments())
        .prop_map(|(header, items, footer)| Module { header, items, footer })
        .boxed()
}
