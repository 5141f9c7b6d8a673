//! Loops with two products.

use super::{Find, apply};
use crate::names::Names;
use crate::schedule::modulo::solve::{identity, solve};
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
    let by = (&table, &machine);
    let (tree, _) = apply(&module, &p, by, &mut Names::of(&module), find)?;
    let printed = text::print(&tree);
    crate::checked(&text::parse(&printed).expect("parses"), &printed)
        .unwrap_or_else(|e| panic!("{e:?}\n{printed}"));
    Some(printed)
}

#[test]
fn the_next_product_is_issued_first() {
    let found = rotated(ATTENTION, Arch::Sm90a, solve).expect("a loop");
    let body = &found[found.find("for (t").expect("the loop")..];
    let at = |what: &str| body.find(what).unwrap_or_else(|| panic!("{what}: {found}"));
    assert!(at("-> (%all)") < at("wgmma.wait(1)"), "{found}");
}

#[test]
fn a_text_in_its_own_order_is_left_alone() {
    assert_eq!(rotated(ATTENTION, Arch::Sm90a, |p, _| identity(p)), None);
    assert_eq!(rotated(ATTENTION, Arch::Sm80, solve), None);
}
