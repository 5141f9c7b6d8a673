//! Warns about loops with `stages=` in which nothing runs ahead ([`nothing`]), and about single
//! copies that wait ([`some`]), and says what a user can do about it.

use crate::access::staged_loops::{Waiting, Why};
use carbyne_ir::ast::Stmt;
use carbyne_ir::diag::{Code, Diagnostic};
use std::collections::BTreeSet;

impl Why {
    /// In words.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Why::Outside => "its tensor is declared outside of the loop",
            Why::ToRegisters => "it copies to registers",
            Why::Stated => "`at=` or `reuses=` states the place of its tensor",
            Why::Levels => "its tensor has several levels",
            Why::Shadowed => "the name of its tensor is defined twice in the loop",
            Why::FilledAgain => "its tensor is filled again after it was read",
            Why::Parts => "no group of threads executes it as a whole",
            Why::Written => "the loop writes what it reads",
            Why::OtherThreads => "other threads fill a part of its tensor",
            Why::AlsoWritten => "something else writes its tensor, too",
            Why::Computed => "the index that it reads at is computed in the loop",
            Why::Rolled => "copies from SH to RF run ahead only in unrolled loops",
            Why::Nothing => "`stages=` says how far ahead its copies may run",
            Why::Once => "it has one iteration",
            Why::Unknown => "its number of slices is not known",
            Why::Slices => "it has too many slices to be written out",
            Why::Variable => "its variable is defined again in its body",
            Why::Large => "the loop is too large to be written out",
        }
    }

    /// What would let it run ahead; none where nothing would.
    fn action(self) -> Option<&'static str> {
        Some(match self {
            Why::Outside => "declare the tensor in the loop",
            Why::ToRegisters => "copy to a tensor in SH that is declared in the loop",
            Why::Stated => "remove `reuses=` and `at=` of its tensor",
            Why::Levels => "declare its tensor with one level",
            Why::Shadowed => "give each tensor of the loop a name of its own",
            Why::FilledAgain => "copy to a tensor of its own",
            Why::Parts => {
                "let all threads of the block, or a part of whole warps, execute the copy, without \
                 a body"
            }
            Why::Written => "let the loop write to another tensor than the one that it copies from",
            Why::OtherThreads => "let the same threads copy all of the tensor",
            Why::AlsoWritten => "let the loop write its results to another tensor",
            Why::Computed => {
                "let the place that it reads depend only on the loop's variable and on values from \
                 before the loop"
            }
            Why::Rolled => "write `unroll` before `stages=`",
            Why::Nothing => {
                "copy from GL to a tensor in SH that is declared in the loop (in an unrolled loop \
                 also from SH to one in RF)"
            }
            Why::Unknown => "give the loop known bounds",
            Why::Slices => "divide the loop into two",
            Why::Variable => "give the inner definition another name",
            Why::Large => "make the loop's body smaller",
            Why::Once => return None,
        })
    }
}

/// The warning for a loop in which nothing runs ahead.
pub(crate) fn nothing(stmt: &Stmt, why: Why, waiting: &[Waiting]) -> Diagnostic {
    let message = "no copy in this loop runs ahead";
    let mut d = Diagnostic::warning(Code::Stages, stmt.span, message).label(why.words());
    let mut causes = BTreeSet::new();
    // One iteration has nothing to run ahead of, whatever it copies.
    if why != Why::Once {
        for w in waiting {
            causes.insert(w.why);
            d = d.related(w.copy, format!("this copy waits for its turn: {}", w.why.words()));
            d = w.at.into_iter().fold(d, |d, at| d.related(at, "here"));
        }
    }
    if causes.is_empty() || why != Why::Nothing {
        causes.insert(why);
    }
    d.help(help(&causes))
}

/// The warnings for copies that wait where others run ahead.
pub(crate) fn some(waiting: &[Waiting]) -> Vec<Diagnostic> {
    let one = |w: &Waiting| {
        let message = "this copy does not run ahead, but others of its loop do";
        let d = Diagnostic::warning(Code::Stages, w.copy, message).label(w.why.words());
        let d = w.at.into_iter().fold(d, |d, at| d.related(at, "here"));
        d.help(w.why.action().unwrap_or("remove `stages=`"))
    };
    waiting.iter().filter(|w| w.why != Why::ToRegisters).map(one).collect()
}

/// What would mend all of these.
fn help(causes: &BTreeSet<Why>) -> String {
    let mut all: Vec<&str> = causes.iter().filter_map(|w| w.action()).collect();
    all.push("remove `stages=`");
    match all.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{}, or {last}", rest.join("; ")),
        None => String::new(),
    }
}
