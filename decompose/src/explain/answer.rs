//! Defines a [`Question`] about a decomposition, and its answer, the [`Explanation`].
//! `explain/mod.rs` computes the answer.

use super::edit::Fix;
use crate::access::matching::Mismatch;
use crate::driver::wider::Width;
use crate::plan::solution::Wavefronts;
use crate::strategies::candidates::Ranking;
use crate::strategies::library::Strategies;
use carbyne_atoms::Arch;
use carbyne_ir::ast::NodeId;
use carbyne_ir::diag::Diagnostic;
use carbyne_ir::leaf::Fact;
use carbyne_ir::program::SpecId;
use carbyne_ir::span::Span;

/// A question about a program.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Only leaves that were written on, or generated for, this line of the text; the first line is
    /// 1.
    pub line: Option<usize>,
    /// Only rows whose name contains this pattern, in which `*` stands for any text: why were they
    /// not chosen?
    pub why: Option<String>,
    /// The number of multiprocessors. `None` stands for the usual card of the architecture.
    pub sms: Option<u32>,
    /// The strategies that give kernel-level specs their dataflow.
    pub strategies: Strategies,
}

/// The answer to a [`Question`].
#[derive(Clone, Debug)]
pub struct Explanation {
    /// The architecture.
    pub arch: Arch,
    /// The leaves, in text order.
    pub leaves: Vec<Explained>,
    /// The choices of the solver, and their alternatives.
    pub choices: Vec<Choice>,
    /// Specs that would be faster if more facts about symbols were stated.
    pub faster: Vec<Faster>,
    /// The strategies that could decompose kernels, and reasons why others were not taken.
    pub rankings: Vec<Ranking>,
    /// Strategies that use a wanted instruction and were not chosen.
    pub ways: Vec<Way>,
    /// Strategies that could use a wanted instruction but have no instance, and the reasons.
    pub without: Vec<Without>,
    /// Errors, if the program cannot be decomposed.
    pub refused: Vec<Diagnostic>,
    /// Warnings of the decomposition.
    pub warnings: Vec<Diagnostic>,
    /// The decomposed text, to which generated leaves refer.
    pub decomposed: Option<String>,
    /// Architectures that have the wanted rows, if this one has none.
    pub elsewhere: Vec<Arch>,
}

/// A leaf and the rows that were compared with it.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The first line of the leaf.
    pub text: String,
    /// The place in the user's text for which the leaf was written or generated.
    pub origin: Span,
    /// The place of the leaf itself: in the decomposed text if it is generated.
    pub span: Span,
    /// Whether the leaf is not in the user's text. Its fixes are then changes of the decomposed
    /// text.
    pub generated: bool,
    /// The number of the spec in its own text, as counted by resolving.
    pub spec: SpecId,
    /// The statement, in the explained module or in the decomposed one.
    pub node: NodeId,
    /// Whether the solver has written the leaf for an operation in `choices`.
    pub chosen: bool,
    /// The row that implements the leaf.
    pub atom: Option<String>,
    /// All rows for specs of this kind: first those that match, then the nearest ones.
    pub considered: Vec<Considered>,
}

/// A row that was compared with a leaf.
#[derive(Clone, Debug)]
pub struct Considered {
    /// The name of the row.
    pub atom: &'static str,
    /// Cycles from one issue to the next.
    pub issue: f64,
    /// Cycles until the result is available.
    pub completion: f64,
    /// The first condition that fails; `None` if the row matches.
    pub mismatch: Option<Mismatch>,
    /// A change of the text after which the row matches.
    pub fix: Option<Fix>,
}

/// A choice of the solver.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The operation, in the user's text.
    pub origin: Span,
    /// The operation's head in the tile-level text.
    pub text: String,
    /// The choice.
    pub chosen: String,
    /// The alternatives, each with the cycles of the best kernel that has it.
    pub others: Vec<(String, f64)>,
    /// Cycles of the kernel as it was chosen.
    pub cycles: f64,
    /// For a copy from or to global memory: why it does not move more bytes at once, if a row
    /// would.
    pub wider: Option<Width>,
    /// Wavefronts in shared memory, if bank conflicts at least double them and no swizzle of the
    /// layout avoids that.
    pub conflicts: Option<Wavefronts>,
}

/// Facts about symbols that would make a kernel-level spec faster. They have been stated and tried.
#[derive(Clone, Debug, PartialEq)]
pub struct Faster {
    /// The spec.
    pub origin: Span,
    /// The facts.
    pub facts: Vec<Fact>,
    /// The facts in the words of the text: `where N % 8 == 0`.
    pub said: String,
    /// The choice with the facts, and its cycles.
    pub with: (String, Option<f64>),
    /// The choice without the facts, and its cycles.
    pub without: (String, Option<f64>),
}

/// Whether a name contains a pattern, in which `*` stands for any text.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut rest = name;
    pattern.split('*').all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// A strategy that decomposes a kernel-level spec to a wanted instruction which was not chosen.
#[derive(Clone, Debug)]
pub struct Way {
    /// The spec.
    pub origin: Span,
    /// The strategy and its parameters.
    pub by: String,
    /// Its instructions that were asked for.
    pub atoms: Vec<String>,
    /// Estimated cycles.
    pub cycles: Option<f64>,
    /// The chosen strategy, and its cycles.
    pub chosen: (String, Option<f64>),
    /// The pin. It has been applied, and decompose then chooses the strategy.
    pub fix: Fix,
}

/// A strategy whose text has an operation for a wanted instruction, but which has no instance.
#[derive(Clone, Debug)]
pub struct Without {
    /// The spec.
    pub origin: Span,
    /// The name of the strategy.
    pub strategy: String,
    /// The reason.
    pub why: String,
}
