//! Tests the solver's search in a body whose parts share no open tensor: it searches the parts one
//! after another, not all their combinations. A search that exceeds its budget ends with a warning
//! or an error.

use crate::support::{decomposed, run, sm_80};
use carbyne_decompose::Search;
use carbyne_decompose::{Decomposed, decompose_with};
use carbyne_ir::diag::{Code, Severity};
use carbyne_ir::text;
use std::fmt::Write;

/// So many MatMuls of one factor with others, each with tensors of its own.
fn matmuls(n: usize) -> String {
    let mut out = format!(
        "carbyne 2
%X:[64,64].f16.GL
%W:[{n},64,64].f16.GL
%Y:[{n},64,64].f32.GL
#grid:[1].block
#cta:[128].thread
Spec @each <<<#grid, #cta>>> (%X, %W) -> (%Y) {{
"
    );
    for i in 0..n {
        let _ = write!(
            out,
            "  Allocate %a{i}:[64,64].f16.RF{{?}}
  Allocate %s{i}:[64,64].f16.SH{{?}}
  Allocate %w{i}:[64,64].f16.RF{{?}}
  Allocate %y{i}:[64,64].f32.RF{{?}}
  Move <<<#grid, #cta>>> (%X) -> (%a{i})
  Move <<<#grid, #cta>>> (%W[{i}, _, _]) -> (%s{i})
  Move <<<#grid, #cta>>> (%s{i}) -> (%w{i})
  MatMul.set <<<#grid, #cta>>> (%a{i}, %w{i}) -> (%y{i})
  Move <<<#grid, #cta>>> (%y{i}) -> (%Y[{i}, _, _])
"
        );
    }
    out.push_str("}\n");
    out
}

fn searched(src: &str, search: Search) -> Decomposed {
    let module = text::parse(src).expect("parses");
    decompose_with(&module, src, &sm_80(), search).unwrap_or_else(|e| panic!("{:?}", e.into_vec()))
}

#[test]
fn parts_add_up_and_do_not_multiply() {
    let one = searched(&matmuls(1), Search::default()).searched;
    assert!(one.leaves > 3 && !one.cut_off, "{one:?}");
    for n in [2, 6] {
        let d = searched(&matmuls(n), Search::default());
        // A part that is settled may prune leaves of others, and adds none.
        assert!(d.searched.leaves <= n as u64 * one.leaves, "{:?}", d.searched);
        assert!(!d.searched.cut_off && d.warnings.is_empty(), "{:?}", d.warnings);
    }
    let d = searched(&matmuls(2), Search::default());
    run(&d.program, &sm_80()).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
}

#[test]
fn each_part_is_spread_as_if_it_were_alone() {
    let layouts = |src: &str, of: usize| -> Vec<String> {
        let d = decomposed(src, &sm_80()).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
        let own = |l: &&str| {
            ["%a", "%s", "%w", "%y"].iter().any(|n| l.contains(&format!("Allocate {n}{of}:")))
        };
        // Where it lies beside others is no matter of its layout.
        let lines = d.text.lines().filter(own);
        lines.map(|l| l.replace("reuses=%s0, ", "").split(':').skip(1).collect()).collect()
    };
    let alone = layouts(&matmuls(1), 0);
    assert_eq!(alone.len(), 4);
    for of in 0..3 {
        assert_eq!(layouts(&matmuls(3), of), alone);
    }
}

#[test]
fn the_best_choices_are_those_of_all_parts_together() {
    let d = searched(&matmuls(2), Search { top: 5, ..Search::default() });
    assert_eq!(d.leaves.len(), 5);
    let choices = |i: usize| d.leaves[i].choices.len();
    assert!((1..5).all(|i| choices(i) == choices(0)), "{:?}", d.leaves);
    assert!(
        d.leaves.windows(2).skip(1).all(|w| w[0].estimate.cycles <= 1.03 * w[1].estimate.cycles)
    );
}

#[test]
fn a_search_that_ends_at_its_budget_says_so() {
    let src = matmuls(1);
    let all = searched(&src, Search::default()).searched;
    let mut refused = 0;
    for budget in 1..200 {
        let module = text::parse(&src).expect("parses");
        match decompose_with(&module, &src, &sm_80(), Search { budget, ..Search::default() }) {
            Ok(d) => {
                let said = d.warnings.iter().filter(|w| w.code == Code::Budget);
                let said = said.filter(|w| w.severity == Severity::Warning).count();
                assert_eq!(said, usize::from(d.searched.cut_off), "budget {budget}");
                let complete = (d.searched.leaves, d.searched.pruned) == (all.leaves, all.pruned);
                assert_eq!(d.searched.cut_off, !complete, "budget {budget}: {:?}", d.searched);
            }
            Err(e) => {
                let all: Vec<_> = e.into_vec();
                assert!(all.iter().all(|d| d.code == Code::Budget), "budget {budget}: {all:?}");
                refused += 1;
            }
        }
    }
    assert!((1..150).contains(&refused), "{refused}");
}
