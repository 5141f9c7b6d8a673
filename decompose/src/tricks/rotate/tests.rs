//! Tests the rewrite of loops with two products.

use super::apply;
use crate::names::Names;
use crate::schedule::solve::{identity, solve};
use crate::schedule::{Find, Scheduler};
use carbyne_atoms::{Arch, AtomTable, machine};
use carbyne_ir::{resolve, text};

const ATTENTION: &str = "\
carbyne 2

let S = 1024, D = 128
let BS = 64, BT = 64

%Q:[S,D].f16.GL
%K:[S,D].f16.GL
%V:[S,D].f16.GL
%O:[S,D].f16.GL

Spec @attention <<<#grid:[@i < S / BS], #cta:[128]>>> (%Q, %K, %V) -> (%O) {
  Move (%Q.tile([BS,D])[@i, 0]) -> (%q)
  %max:[BS,1].f32 = -inf
  %sum:[BS,1].f32 = 0
  %o:[BS,D].f32 = 0
  for (t = 0; t < @i + 1; t += 1) stages=2 {
    Move (%K.tile([BT,D])[t, 0]) -> (%k:SH)
    Move (%V.tile([BT,D])[t, 0]) -> (%v:SH)
    %s = matmul(%q, %k.transpose()) / sqrt(D)
    %top = max(max(%s, axis=1), %max)
    %p = exp(%s - %top)
    %old = exp(%max - %top)
    %sum = %sum * %old + sum(%p, axis=1)
    %o = %o * %old
    %half = cast(%p, f16)
    MatMul (%half, %v) -> (%o)
    %max = move(%top)
  }
  %O.tile([BS,D])[@i, 0] = cast(%o / %sum, f16)
}
";

/// The text in which bodies begin with products of the next iteration.
fn rotated(src: &str, arch: Arch, find: Find) -> Option<String> {
    let module = text::parse(src).expect("parses");
    let module = resolve::elaborate(&module, src).expect("is well-formed");
    let p = crate::checked(&module, src).expect("is well-formed");
    let (table, machine) = (AtomTable::new(arch), machine(arch));
    let by = Scheduler { target: crate::tricks::target(&table, &machine), find };
    let (tree, _) = apply(&module, &super::find(&p, by), &mut Names::of(&module))?;
    let printed = text::print(&tree);
    crate::checked(&text::parse(&printed).expect("parses"), &printed)
        .unwrap_or_else(|e| panic!("{e:?}\n{printed}"));
    Some(printed)
}

/// The statements of the loop in which each of these stands, in the order of the text.
fn in_order(text: &str, all: &[&str]) {
    let from = text.find("for (t").expect("a loop");
    let mut rest = &text[from..];
    for what in all {
        let at = rest.find(what).unwrap_or_else(|| panic!("{what} is not there in time: {text}"));
        rest = &rest[at + what.len()..];
    }
}

#[test]
fn the_next_product_is_issued_before_threads_are_done_with_the_last() {
    let found = rotated(ATTENTION, Arch::Sm90a, solve).expect("a loop");
    in_order(
        &found,
        &[
            "min(t + 1, @i + 1 - 1)",
            "%V.tile([BT,D])[t, 0]",
            "(%q, %k.transpose()) -> (%s)",
            "UnaryPointwise.exp <<<#grid, #cta>>> (%p)",
            "(%half, %v) -> (%o)",
            "wgmma.wait(1)",
            "BinaryPointwise.div <<<#grid, #cta>>> (%s",
            "wgmma.wait(0)",
            "}",
        ],
    );
    // As the schedule says of a loop in which another product waits, too.
    let copies = found.matches("(%q, %k").count();
    assert_eq!(copies, 2, "{found}");
}

#[test]
fn a_text_in_its_own_order_is_left_alone() {
    assert_eq!(rotated(ATTENTION, Arch::Sm90a, |p, _| identity(p)), None);
}

#[test]
fn what_may_be_in_the_way_leaves_the_loop_alone() {
    // Products that threads wait for by themselves.
    assert_eq!(rotated(ATTENTION, Arch::Sm80, solve), None);
    let without = |from: &str, to: &str| {
        let src = ATTENTION.replace(from, to);
        assert_ne!(src, ATTENTION);
        assert_eq!(rotated(&src, Arch::Sm90a, solve), None, "{src}");
    };
    without(" stages=2", "");
    // Nothing says how many iterations lie between steps.
    without("t < @i + 1; t += 1", "t < @i + 1; t += 2");
    // Threads read what the copy engine would fill.
    without("    %top =", "    %w = cast(%k, f32)\n    %sum = %sum + sum(%w, axis=1)\n    %top =");
    // The product reads what the iteration before has computed last.
    without("%s = matmul(%q,", "%q = cast(%o, f16)\n    %s = matmul(%q,");
}
