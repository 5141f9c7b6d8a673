//! Placeholder essay.

#![warn(missing_docs)]

pub mod array;
pub mod denote;
mod exec;
mod index;
mod inputs;
mod launch;
pub mod num;
mod options;
mod plan;
mod report;
mod root;
mod state;

pub use array::{Array, ArrayError};
pub use inputs::Inputs;
pub use launch::simulate;
pub use options::{DEFAULT_BUDGET, Options};
pub use report::{KernelReport, Outputs, Report};
pub use state::banks::BankCount;
