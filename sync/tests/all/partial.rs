//! Tests partial tiles, which reach over the end of a mode. The checker must record no access to
//! elements beyond the end, and every access to other elements.

use crate::support::{complaints, reports, right};
use carbyne_atoms::Arch;
use carbyne_sync::{Missing, Report, Verdict};

/// The complaints about the kernel of a text.
fn said(text: &str) -> Vec<String> {
    let program = right(text);
    let all = reports(&program, Arch::Sm80);
    all.iter().flat_map(|r| complaints(&program, r)).collect()
}

fn report(text: &str) -> Report {
    reports(&right(text), Arch::Sm80).remove(0)
}

/// Whether blocks certainly access the same element.
fn blocks_meet(text: &str) -> bool {
    let meet = |v: &Verdict| matches!(v, Verdict::Unordered(Missing::Blocks));
    report(text).pairs.iter().any(|pair| meet(&pair.verdict))
}

/// Each thread writes one element of its block's tile of a tensor.
fn tiles(head: &str, tensor: &str, grid: &str, at: &str) -> String {
    format!(
        "carbyne 2
{head}
%A:[1].f32.GL
%C:{tensor}.f32.GL
Spec @f <<<#grid:[{grid}], #cta:[@t < 64]>>> (%A) -> (%C) {{
  #one = #cta.scalar()
  Allocate %x:[1].f32.RF
  Init <<<#one>>> (0) -> (%x) atom=init.f32
  %tile = %C.tile([8,8])[{at}]
  Move <<<#one>>> (%x) -> (%tile.tile([1,1])[@t % 8, @t / 8]) atom=st.global.b32
}}
"
    )
}

const GRID: &str = "@i < ceil_div(M, 8), @j < ceil_div(N, 8)";

#[test]
fn tiles_at_the_end_of_a_mode_touch_no_others() {
    for (m, n) in [(20, 20), (17, 8), (8, 17), (5, 3), (23, 40), (1, 20), (9, 1), (1, 1)] {
        for tensor in ["[M,N]", "[(M,N):(1,M)]", "[(M,N):(N + 3,1)]"] {
            let text = tiles(&format!("let M = {m}, N = {n}"), tensor, GRID, "@i, @j");
            assert!(said(&text).is_empty(), "{:#?}\n{text}", said(&text));
        }
    }
}

#[test]
fn tiles_that_two_blocks_write_are_refused() {
    let head = "let M = 20, N = 20";
    let one_row = tiles(head, "[M,N]", GRID, "0, @j");
    assert!(blocks_meet(&one_row), "{:#?}\n{one_row}", said(&one_row));
    // The last tile of a row has few elements, but it has some.
    let last = tiles("let M = 17, N = 17", "[M,N]", GRID, "2, 2");
    assert!(blocks_meet(&last), "{:#?}\n{last}", said(&last));
    // Rows that overlap in memory share elements.
    let close = tiles(head, "[(M,N):(N - 1,1)]", GRID, "@i, @j");
    let program = carbyne_ir::text::parse(&close).ok();
    let program = program.and_then(|m| crate::support::program(&m, &close));
    assert!(program.is_none() || blocks_meet(&close), "{close}");
}

/// Accesses by threads of one block are compared in blocks with whole tiles, and only there.
#[test]
fn which_block_reaches_over_the_end_does_not_matter() {
    for at in ["2 - @b", "@b"] {
        let text = |more: &str| {
            format!(
                "carbyne 2
let N = 20
%A:[N].f32.GL
%C:[N].f32.GL
Spec @f <<<#grid:[@b < 3], #cta:[@t < 8]>>> (%A) -> (%C) {{
  #one = #cta.scalar()
  Allocate %x:[1].f32.RF
  Move <<<#one>>> (%A.tile([8])[{at}].tile([1])[@t]) -> (%x) atom=ld.global.b32
  Move <<<#one>>> (%x) -> (%C.tile([8])[{at}].tile([1])[@t]) atom=st.global.b32
{more}}}
"
            )
        };
        assert!(said(&text("")).is_empty(), "{:#?}", said(&text("")));
        // Other threads write the last four elements again.
        let again = |if_last: &str| {
            format!(
                "  if (@t < 4{if_last}) {{
    Move <<<#one>>> (%x) -> (%C.tile([8])[{at}].tile([1])[4 + @t]) atom=st.global.b32
  }}
"
            )
        };
        let lacks = |v: &Verdict| matches!(v, Verdict::Unordered(Missing::Order));
        let found = report(&text(&again("")));
        assert!(found.pairs.iter().any(|pair| lacks(&pair.verdict)), "{at}: {found:#?}");
        // The last tile does not have these elements.
        let of_last = text(&again(&format!(" && {at} == 2")));
        assert!(said(&of_last).is_empty(), "{:#?}\n{of_last}", said(&of_last));
    }
}

/// A block reads elements of another block's tile beyond the end of the tensor, which do not exist.
#[test]
fn elements_beyond_the_end_are_not_read() {
    let text = |n: i64, shift: i64| {
        format!(
            "carbyne 2
%A:[{n},8].f32.GL
%C:[{n},8].f32.GL
Spec @f <<<#grid:[@b < 2], #cta:[@t < 8]>>> (%A) -> (%C) {{
  #one = #cta.scalar()
  Allocate %x:[1].f32.RF
  Move <<<#one>>> (%C.tile([4,8])[1, 0].tile([1,1])[{shift}, @t]) -> (%x) atom=ld.global.b32
  Move <<<#one>>> (%x) -> (%C.tile([4,4])[0, @b].tile([1,1])[@t % 4, @t / 4]) atom=st.global.b32
}}
"
        )
    };
    assert!(said(&text(5, 1)).is_empty(), "{:#?}", said(&text(5, 1)));
    // Row 1 of the second tile exists, and no block writes it.
    assert!(said(&text(6, 1)).is_empty(), "{:#?}", said(&text(6, 1)));
}

/// Vectors of elements that either all exist or do not exist.
#[test]
fn vectors_at_the_end_are_whole_or_absent() {
    let text = |m: i64, n: i64, at: &str| {
        format!(
            "carbyne 2
let M = {m}, N = {n}
%A:[1].f32.GL
%C:[M,N].f32.GL
Spec @f <<<#grid:[@i < ceil_div(M, 8), @j < ceil_div(N, 32)], #cta:[@t < 64]>>> (%A) -> (%C) {{
  #one = #cta.scalar()
  Allocate %x:[1,4].f32.RF
  Init <<<#one>>> (0) -> (%x) atom=init.f32
  Move <<<#one>>> (%x) -> (%C.tile([8,32])[{at}].tile([1,4])[@t / 8, @t % 8]) atom=st.global.b128
}}
"
        )
    };
    for (m, n) in [(12, 40), (8, 36), (9, 100), (3, 4)] {
        let text = text(m, n, "@i, @j");
        assert!(said(&text).is_empty(), "{:#?}\n{text}", said(&text));
    }
    assert!(blocks_meet(&text(12, 40, "@i, 1")));
}

/// A kernel with symbolic sizes is tried with sizes that tiles do not divide.
#[test]
fn sizes_that_are_symbols_are_tried() {
    let head = "sym M, N, LDC where M > 0, N > 0, N <= LDC";
    let right = tiles(head, "[(M,N):(LDC,1)]", GRID, "@i, @j");
    let report = report(&right);
    assert_eq!(report.counts()[1], 0, "{:#?}", said(&right));
    assert!(report.faults.iter().all(|f| !f.is_certain), "{:#?}", said(&right));
    // All columns of blocks write the same tiles.
    let wrong = tiles(head, "[(M,N):(LDC,1)]", GRID, "@i, 0");
    assert!(blocks_meet(&wrong), "{:#?}", said(&wrong));
}

/// Only the extent of the tensor is a symbol.
#[test]
fn ends_that_are_symbols_are_decided_for_all_of_them() {
    let text = |at: &str| {
        format!(
            "carbyne 2
sym N{{min=25, max=32}}
%A:[1].f32.GL
%C:[N].f32.GL
Spec @f <<<#grid:[@b < 4], #cta:[@t < 8]>>> (%A) -> (%C) {{
  #one = #cta.scalar()
  Allocate %x:[1].f32.RF
  Init <<<#one>>> (0) -> (%x) atom=init.f32
  Move <<<#one>>> (%x) -> (%C.tile([8])[{at}].tile([1])[@t]) atom=st.global.b32
}}
"
        )
    };
    assert!(said(&text("@b")).is_empty(), "{:#?}", said(&text("@b")));
    assert!(blocks_meet(&text("0")), "{:#?}", said(&text("0")));
}

/// The number of elements that a block reads differs between blocks; the first block reads none.
#[test]
fn reads_of_other_blocks_are_seen() {
    let text = |valid: &str| {
        format!(
            "carbyne 2
%A:[1].f32.GL
%C:[2,8].f32.GL
Spec @f <<<#grid:[@b < 2], #cta:[@t < 2]>>> (%C) -> (%C) {{
  #one = #cta.scalar()
  Allocate %x:[4].f32.RF
  Move <<<#one>>> (%C[0, _].tile([4])[@t]) -> (%x) valid={valid} atom=ld.global.b128
  Move <<<#one>>> (%x) -> (%C[@b, _].tile([4])[@t]) atom=st.global.b128
}}
"
        )
    };
    assert!(said(&text("0")).is_empty(), "{:#?}", said(&text("0")));
    assert!(blocks_meet(&text("@b * 4")), "{:#?}", said(&text("@b * 4")));
}
