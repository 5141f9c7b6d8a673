//! Tests the data behind `carbyne explain`: the reasons why an atom was chosen or not. A reason may
//! come with an edit; after the edit, the atom is possible.

use crate::support::{MatMul, sm_80};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_decompose::Mismatch;
use carbyne_decompose::explain::{Considered, Explanation, Fix, Question, explain, matches};
use carbyne_ir::span::Span;
use carbyne_ir::text;

fn answer(src: &str, table: &AtomTable, line: Option<usize>, why: &str) -> Explanation {
    let module = text::parse(src).expect("parses");
    let why = Some(why.to_owned()).filter(|w| !w.is_empty());
    let question = Question { line, why, ..Question::default() };
    explain(&module, src, table, &question).unwrap_or_else(|e| panic!("{src}\n{:?}", e.into_vec()))
}

/// The row, compared with the only leaf of the line.
fn row(src: &str, line: usize, atom: &str) -> Considered {
    let found = answer(src, &sm_80(), Some(line), atom);
    let leaf = found.leaves.first().unwrap_or_else(|| panic!("no leaf on line {line} of\n{src}"));
    leaf.considered.iter().find(|c| c.atom == atom).expect("is considered").clone()
}

/// A copy by way of registers and shared memory, each thread its row.
const LEAVES: &str = "carbyne 2
%A:[128,8].f16.GL
%B:[128,8].f16.GL
#grid:[1].block
#cta:[128].thread
Move @copy <<<#grid, #cta>>> (%A) -> (%B) {
  @t = #cta.indices()
  Allocate %r:[8].f16.RF
  Allocate %q:[8].f16.RF
  Allocate %s:[(128,8):(9,1)].f16.SH{align=8}
  Allocate %w:[(128,8):(8,1)].f16.SH{align=16, swizzle=(2,3,3)}
  Allocate %c:[(128,8):(1,128)].f16.SH{align=16}
  Allocate %f:[8].f32.RF
  Move <<<#grid, #cta>>> (%A[@t,_]) -> (%r)
  Move <<<#grid, #cta.scalar()>>> (%r) -> (%s[@t,_])
  Move <<<#grid, #cta.scalar()>>> (%r) -> (%w[@t,_])
  Move <<<#grid, #cta.scalar()>>> (%r) -> (%c[@t,_])
  Move <<<#grid, #cta.scalar()>>> (%s[@t,_]) -> (%q)
  UnaryPointwise.cast <<<#grid, #cta.scalar()>>> (%q) -> (%f)
  Move <<<#grid, #cta.scalar()>>> (%q) -> (%B[@t,_])
}
";

#[test]
fn a_fix_makes_the_row_match() {
    let kind = |m: &Mismatch| match m {
        Mismatch::Scalar { .. } => "scalar",
        Mismatch::Memory { .. } => "memory",
        Mismatch::Threads { .. } => "threads",
        Mismatch::Values { .. } => "values",
        Mismatch::Order { .. } => "order",
        Mismatch::Align { .. } => "align",
        _ => "other",
    };
    for (line, atom, wrong) in [
        (14, "ld.global.b128", "threads"),
        (14, "ld.global.b32", "threads"),
        (14, "cp.async.cg.b128", "memory"),
        (15, "st.shared.b128", "align"),
        (16, "st.shared.b128", "align"),
        (17, "st.shared.b128", "order"),
        (17, "st.shared.b32", "values"),
        (18, "ld.shared.b128", "align"),
        (19, "cvt.f32.f16x2", "values"),
        (19, "cvt.f32.bf16", "scalar"),
        (20, "st.global.b64", "values"),
    ] {
        let before = row(LEAVES, line, atom);
        let mismatch = before.mismatch.unwrap_or_else(|| panic!("{atom} matches on line {line}"));
        assert_eq!(kind(&mismatch), wrong, "line {line}, {atom}: {mismatch}");
        let fix = before.fix.unwrap_or_else(|| panic!("line {line}, {atom}: {mismatch}: no fix"));
        let fixed = fix.apply(LEAVES).expect("is of the text");
        let after = row(&fixed, line, atom);
        assert_eq!(after.mismatch, None, "{:?}\n{fixed}", fix.steps);
    }
}

#[test]
fn edits_of_another_text_are_refused() {
    let edits =
        vec![carbyne_decompose::explain::Edit { span: Span::new(90, 95), text: "x".into() }];
    assert_eq!(Fix { steps: vec![], edits }.apply("short"), None);
}

/// A decomposed MatMul with two strides of a thread-value layout exchanged.
#[test]
fn a_wrong_thread_value_layout_is_put_right() {
    let src = MatMul::default().text();
    let module = text::parse(&src).expect("parses");
    let d = carbyne_decompose::decompose(&module, &src, &sm_80()).expect("decomposes");
    let mut tried = 0;
    for (n, line) in d.text.lines().enumerate() {
        let Some((_, tv)) = line.split_once("{tv=(") else { continue };
        // The first two strides of the values.
        let Some((_, strides)) = tv.split_once("):((") else { continue };
        let Some((_, values)) = strides.split_once("),(") else { continue };
        let mut two = values.split([',', ')']);
        let (Some(a), Some(b)) = (two.next(), two.next()) else { continue };
        let changed = line.replacen(&format!("),({a},{b}"), &format!("),({b},{a}"), 2);
        let wrong = d.text.replacen(line, &changed, 1);
        let Ok(module) = text::parse(&wrong) else { continue };
        let ask = Question { why: Some("*matrix.*".into()), ..Question::default() };
        let Ok(found) = explain(&module, &wrong, &sm_80(), &ask) else { continue };
        for leaf in found.leaves.iter().filter(|l| l.atom.is_some()) {
            let Some(own) = leaf.considered.iter().find(|c| Some(c.atom) == leaf.atom.as_deref())
            else {
                continue;
            };
            if let Some(Mismatch::Relation { detail }) = &own.mismatch {
                assert!(detail.contains('↦'), "{detail}");
                let fix = own.fix.as_ref().unwrap_or_else(|| panic!("line {n}: {detail}"));
                assert_eq!(fix.apply(&wrong).as_deref(), Some(d.text.as_str()), "{:?}", fix.steps);
                tried += 1;
            }
        }
    }
    assert!(tried > 0, "no layout of\n{}", d.text);
}

#[test]
fn why_not_wgmma_is_answered() {
    let src = MatMul::default().text();
    let hopper = AtomTable::new("sm_90a".parse::<Arch>().expect("an architecture"));
    let found = answer(&src, &hopper, None, "wgmma");
    let leaf = found.leaves.first().expect("the MatMul");
    assert!(leaf.considered.iter().all(|c| c.atom.contains("wgmma") && c.mismatch.is_some()));
    let found = answer(&src, &sm_80(), None, "wgmma");
    assert!(found.leaves.is_empty());
    assert!(found.elsewhere.contains(&hopper.arch));
}

#[test]
fn choices_come_with_what_they_cost() {
    let src = "carbyne 2\n%A:[512,512].f16.GL\n%B:[512,512].f16.GL\nMove @m (%A) -> (%B)\n";
    let found = answer(src, &sm_80(), None, "");
    let first = found.choices.first().expect("the load");
    assert!(!first.others.is_empty());
    assert!(first.others.iter().all(|(_, cycles)| *cycles >= first.cycles), "{first:?}");
}

#[test]
fn every_leaf_has_the_row_that_implements_it() {
    let src = MatMul::default().text();
    let found = answer(&src, &sm_80(), None, "");
    assert!(found.refused.is_empty() && found.leaves.len() > 5);
    for leaf in &found.leaves {
        let own = leaf.considered.iter().find(|c| Some(c.atom) == leaf.atom.as_deref());
        assert!(own.is_some_and(|c| c.mismatch.is_none()), "{}", leaf.text);
        assert_eq!(leaf.origin.line_col(&src).0, 5, "{}", leaf.text);
    }
}

#[test]
fn patterns_hold_parts_in_order() {
    for (pattern, name, is) in [
        ("wgmma", "wgmma.m64n8k16", true),
        ("ld.*b128", "ld.global.b128", true),
        ("b128*ld", "ld.global.b128", false),
        ("", "anything", true),
    ] {
        assert_eq!(matches(pattern, name), is, "{pattern}");
    }
}
