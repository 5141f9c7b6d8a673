//! Tests `check --pairs`, which names the statement that orders each pair of dependent accesses.

use crate::support::carbyne;

const TILE_LEVEL: &str = "carbyne 2
%A:[64,64].f16.GL
%B:[64,64].f16.GL
Move @copy <<<#grid:[1], #cta:[64]>>> (%A) -> (%B) {
  Move (%A) -> (%s:SH)
  Move (%s) -> (%B)
}
";

#[test]
fn what_is_not_decomposed_has_nothing_to_check() {
    let ran = carbyne(&["check", "-", "--pairs"], TILE_LEVEL).ok();
    let said = "copy: not decomposed; no order of accesses to check\n";
    assert_eq!((ran.text(), ran.stderr.as_str()), ("", said));
    assert_eq!(carbyne(&["check", "-"], TILE_LEVEL).ok().stderr, "");
}

#[test]
fn a_barrier_is_named_with_its_threads() {
    let text = "carbyne 2
%in:[64].f32.GL
%out:[64].f32.GL
Spec @f <<<#grid:[1], #cta:[@t < 64]>>> (%in) -> (%out) {
  #one = #cta.scalar()
  #warps:[2].[32].thread = #cta.tile([32])
  @w = #warps.indices()
  Allocate %s:[64].f32.SH
  Allocate %x:[1].f32.RF
  Move <<<#one>>> (%in[@t]) -> (%x[0]) atom=ld.global.b32
  Move <<<#one>>> (%x[0]) -> (%s[@t]) atom=st.shared.b32
  barrier(#warps[@w])
  Move <<<#one>>> (%s[@t / 32 * 32 + 31 - @t % 32]) -> (%x[0]) atom=ld.shared.b32
  Move <<<#one>>> (%x[0]) -> (%out[@t]) atom=st.global.b32
}
";
    let ran = carbyne(&["check", "-", "--pairs"], text).ok();
    let says = "line 11 writes %s, line 13 reads %s: barrier(#warps[@w]) (line 12)";
    assert!(ran.text().contains(says), "{}", ran.text());
    let ran = carbyne(&["check", "-", "--pairs", "--message-format", "json"], text).ok();
    assert!(ran.text().contains("\"what\":\"barrier(#warps[@w])\""), "{}", ran.text());
}

#[test]
fn blocks_that_write_the_same_are_the_texts_own() {
    let text = "carbyne 2
%A:[256,64].f16.GL
%C:[256,64].f16.GL
Move @k <<<#grid:[@b < 4], #cta:[128]>>> (%A) -> (%C) {
  for (t = @b; t < 4; t += 3) {
    Move (%A.tile([64,64])[t, 0]) -> (%h)
    Move (%h) -> (%C.tile([64,64])[t, 0])
  }
}
";
    let ran = carbyne(&["decompose", "-", "--arch", "sm_90a"], text);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("T0801") && !ran.stderr.contains("I0901"), "{}", ran.stderr);
    assert!(ran.stderr.contains("let each block write its own elements"), "{}", ran.stderr);
}
