//! Defines the data by which instances of strategies are compared for a spec: the inputs of the
//! choice ([`Choosing`]), each instance ([`Candidate`]), the result of solving one ([`Trial`]), and
//! the list that users see ([`Ranking`]). `choose.rs` and `trials.rs` make the choice.

use super::atom::NoLeaf;
use super::library::{Strategies, Theirs};
use super::params::{Unmet, Unpinned};
use super::pattern::Unlike;
use super::sizes::Unsized;
use super::symbols::Symbols;
use super::write::{Instance, Refused};
use crate::cost::{Model, Refusal};
use crate::names::Names;
use crate::numbers::Numbers;
use carbyne_atoms::{Arch, AtomTable, Machine};
use carbyne_ir::ast::{AttrValue, Module, SyncOp};
use carbyne_ir::diag::Diagnostics;
use carbyne_ir::leaf::Fact;
use carbyne_ir::program::Program;
use carbyne_ir::scalar::Scalar;
use carbyne_ir::span::Span;
use std::collections::BTreeSet;

/// A module whose kernels have bodies, and what was looked at for each that had none.
pub(crate) type WithBodies = (Module, Vec<Ranking>);

/// What all kernels of a module share.
#[derive(Copy, Clone)]
pub(crate) struct Choosing<'a> {
    /// The module, without short forms: the kernel that is looked at, and what it names.
    pub module: &'a Module,
    pub src: &'a str,
    pub program: &'a Program,
    pub table: &'a AtomTable,
    pub machine: &'a Machine,
    pub model: &'a Model<'a>,
    pub strategies: &'a Strategies,
    /// Instances that are not looked at.
    pub left_out: &'a [String],
    /// Solves a module whose kernels have bodies; where that is asked for, accesses are ordered,
    /// too.
    pub solve: &'a dyn Fn(&Module, bool) -> Result<Trial, Diagnostics>,
    /// The module as it is, where numbers stand for its symbols in `module`.
    pub symbols: Option<(&'a Module, &'a Symbols)>,
    /// Why no numbers stand for its symbols, where it has some.
    pub unsized_for: Option<&'a Unsized>,
    /// Gives the kernels of a module that have no bodies theirs, in which no names are defined that
    /// are in use elsewhere.
    pub plan: &'a dyn Fn(&Module, &Names) -> Result<WithBodies, Diagnostics>,
}

/// What became of an instance whose layouts were solved.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Trial {
    /// Of all kernels.
    pub cycles: f64,
    /// Whether a thread needs more registers than it has.
    pub spills: bool,
    /// Bytes of shared memory that a block of one of the kernels needs, the most.
    pub shared: i64,
}

/// The instances that were compared for a kernel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranking {
    /// The kernel's name.
    pub kernel: String,
    /// The chosen strategy, if it is a user's.
    pub theirs: Option<Theirs>,
    /// The instances, best first.
    pub instances: Vec<Ranked>,
    /// Strategies without any instance, and the reasons.
    pub others: Vec<(String, String)>,
    /// Strategies among them whose meaning is another one.
    pub(crate) unlike: BTreeSet<String>,
    /// Tiles of the chosen strategy that are larger than the chosen one, and the reasons why they
    /// were not chosen.
    pub larger: Vec<(String, String)>,
    /// The number of instances that were enumerated, and the number of them whose layouts were
    /// solved.
    pub counts: (usize, usize),
    /// The place of the spec.
    pub span: Span,
    /// A better instance that is not written, because it is not possible for all sizes of the
    /// symbols.
    pub given_up: Option<GivenUp>,
}

/// An instance that is better than the written one, but not possible for all sizes of the symbols.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenUp {
    /// The strategy and its parameters.
    pub by: String,
    /// Estimated cycles, with numbers in place of the symbols.
    pub cycles: f64,
    /// Why the instance is not possible.
    pub why: String,
    /// Facts about symbols with which an equally good instance is written; they have been stated
    /// and tried. Empty if no such facts were found or looked for.
    pub facts: Vec<Fact>,
}

/// An instance of a strategy.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// The strategy and its parameters, in the form of `by=`.
    pub by: String,
    /// A lower bound of its cycles; `None` if it is not possible.
    pub bound: Option<f64>,
    /// Estimated cycles, if its layouts were solved.
    pub cycles: Option<f64>,
    /// Whether a thread holds more values at once than it has registers. Instances that do not
    /// spill come first.
    pub spills: bool,
    /// Whether the bound leaves out kernels that other strategies decompose. Such an instance is
    /// solved only if nothing else is left.
    pub partial: bool,
    /// Why it is not possible.
    pub refused: Option<String>,
}

/// Why an instance cannot be, or why a strategy has none.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum Reason {
    #[error(transparent)]
    Unlike(#[from] Unlike),
    #[error(transparent)]
    Unpinned(#[from] Unpinned),
    #[error("it has no values to choose")]
    NoValues,
    #[error("{}", .0.text)]
    Unmet(Unmet),
    #[error(transparent)]
    Unwritten(#[from] Refused),
    #[error(transparent)]
    NoLeaf(#[from] NoLeaf),
    #[error(transparent)]
    Unbound(#[from] Refusal),
    #[error("no instruction multiplies and waits as it does: {arch} has no `{op}`")]
    NoSync { arch: Arch, op: SyncOp },
    #[error("no instruction multiplies {0} and {1}")]
    NoProduct(Scalar, Scalar),
    #[error("no instruction multiplies {} and {} by groups of {group} threads", of.0, of.1)]
    NoGroup { of: (Scalar, Scalar), group: i64 },
    #[error(
        "nothing multiplies {}x{}x{} of {} and {} by groups of {group} threads",
        tile[0], tile[1], tile[2], of.0, of.1
    )]
    NoTile { tile: [i64; 3], of: (Scalar, Scalar), group: i64 },
    /// The first of the errors is named.
    #[error("{}", first(.0))]
    Errors(#[from] Diagnostics),
    #[error("its tiles do not divide the tensors for all sizes")]
    Parted,
    /// Written of symbols, it has errors, of which the first is named.
    #[error("{}", first(.0))]
    Symbolic(Diagnostics),
    #[error("a size that it computes depends on symbols")]
    SymbolicSize,
    #[error("with symbolic sizes a block needs more shared memory than there is")]
    SymbolicShared,
}

impl Reason {
    /// Whether more is compared with the text only after this.
    pub(super) fn is_early(&self) -> bool {
        matches!(self, Reason::Unwritten(Refused::Threads { .. }))
    }

    /// How much a user who has pinned something can do about it: the most at 0.
    pub(super) fn rank(&self) -> usize {
        match self {
            Reason::Unmet(unmet) if unmet.is_pinned => 0,
            Reason::Unpinned(Unpinned::NoAttribute(_)) | Reason::Unlike(_) => 2,
            _ => 1,
        }
    }

    /// Whether no instruction has the groups of threads, which are those of all instances.
    pub(super) fn is_hopeless(&self) -> bool {
        matches!(self, Reason::NoSync { .. } | Reason::NoProduct(..) | Reason::NoGroup { .. })
    }
}

/// An instance that can be ranked.
pub(super) struct Candidate {
    pub of: usize,
    pub numbers: Numbers,
    /// As a pin.
    pub by: String,
    pub bound: f64,
    /// Whether threads need more registers than they have.
    pub spills: bool,
    /// Whether all of its kernels are left to other strategies, so that little is known of what
    /// they take. Those of which one moves a factor before are planned to know it.
    pub unknown: bool,
}

/// The strategy and its parameters.
pub(super) fn shown(instance: &Instance<'_>) -> String {
    match &instance.by().value {
        AttrValue::Chosen(chosen) => {
            let name = chosen.name.as_ref().map_or("", |n| &n.text);
            let values = chosen.values.iter();
            let values: Vec<String> = values
                .map(|(n, e)| format!("{}={}", n.text, carbyne_ir::text::print_number(e)))
                .collect();
            match &values[..] {
                [] => format!("@{name}"),
                values => format!("@{name}[{}]", values.join(", ")),
            }
        }
        _ => String::new(),
    }
}

fn first(errors: &Diagnostics) -> String {
    errors.iter().next().map_or_else(String::new, |d| format!("{}: {}", d.code, d.message))
}
