//! Tests kernels whose accesses depend on integers in the caller's memory, such as a list of rows.
//! The checker tries such kernels with drawn values.

use crate::support::{complaints, reports, right};
use carbyne_atoms::Arch;
use carbyne_sync::{Missing, Report, Verdict};

fn report(text: &str) -> Report {
    reports(&right(text), Arch::Sm80).remove(0)
}

/// Whether a pair has such a verdict.
fn lacks(text: &str, what: fn(&Verdict) -> bool) -> bool {
    report(text).pairs.iter().any(|pair| what(&pair.verdict))
}

fn is_free(text: &str) {
    let found = report(text);
    let program = right(text);
    assert_eq!(found.counts()[1], 0, "{:#?}\n{text}", complaints(&program, &found));
    assert!(found.faults.iter().all(|f| !f.is_certain), "{:#?}", complaints(&program, &found));
}

/// Each block writes the rows of one part.
fn parts(head: &str, end: &str) -> String {
    format!(
        "carbyne 2
{head}
%offsets:[G + 1].i32.GL splits T
%C:[T,32].f32.GL
Spec @f <<<#grid:[@g < G], #cta:[@t < 32]>>> (%offsets) -> (%C) {{
  #one = #cta.scalar()
  Allocate %x:[1].f32.RF
  Init <<<#one>>> (0) -> (%x) atom=init.f32
  @first = %offsets[@g]
  @last = %offsets[@g + 1]
  %c = %C[@first..{end}, _]
  for (i = 0; i < {end} - @first; i += 1) {{
    Move <<<#one>>> (%x) -> (%c[i, @t..@t + 1]) atom=st.global.b32
  }}
}}
"
    )
}

#[test]
fn blocks_write_parts_that_do_not_meet() {
    let of_blocks = |v: &Verdict| matches!(v, Verdict::Unordered(Missing::Blocks));
    for head in ["let G = 3, T = 10", "let G = 4, T = 0 + 9", "sym G, T where G > 0, T >= 0"] {
        is_free(&parts(head, "@last"));
        // All rows from the beginning of the part on.
        let wrong = parts(head, "T");
        assert!(lacks(&wrong, of_blocks), "{wrong}");
    }
}

/// Blocks write the rows that a list names. No two blocks write the same row if the elements of the
/// list are distinct.
#[test]
fn rows_of_a_list_whose_elements_differ_do_not_meet() {
    let text = |are: &str, first: &str, row: &str| {
        format!(
            "carbyne 2
sym B, P where B >= 1, P >= B
%slots:[B].i32.GL in 0..P{are}
%C:[P,32].f32.GL
{first}Spec @f <<<#grid:[@b < B], #cta:[@t < 32]>>> (%slots) -> (%C) {{
  #one = #cta.scalar()
  Allocate %x:[1].f32.RF
  Init <<<#one>>> (0) -> (%x) atom=init.f32
  @slot = %slots[@b]
  @other = %slots[0]
  Move <<<#one>>> (%x) -> (%C[{row}, @t..@t + 1]) atom=st.global.b32
}}
"
        )
    };
    let writes = "Spec @number <<<#grid:[@b < B], #cta:[@t < 1]>>> () -> (%slots) {
  Init <<<#cta.scalar()>>> (0) -> (%slots[@b]) atom=init.i32
}
";
    let proved = |text: &str| reports(&right(text), Arch::Sm80).pop().expect("one").is_ordered();
    assert!(proved(&text(" distinct", "", "@slot")));
    for (are, first, row) in [
        ("", "", "@slot"),
        // All blocks name the same element.
        (" distinct", "", "@other"),
        // An earlier kernel writes the list, and nothing checks that its elements are distinct.
        (" distinct", writes, "@slot"),
        // Distinct elements may be neighbors.
        (" distinct", "", "@slot / 2"),
    ] {
        let text = text(are, first, row);
        assert!(!proved(&text), "{text}");
    }
    let wrong = text(" distinct", "", "@slot").replace(
        "  @other",
        "  Move <<<#one>>> (%x) -> (%C[@first, @t..@t + 1]) atom=st.global.b32
  @other",
    );
    let wrong = wrong.replace("  @slot =", "  @first = %slots[0]\n  @slot =");
    assert!(!proved(&wrong), "{wrong}");
}

/// Each iteration of a loop with a data-dependent end overwrites elements that other threads have
/// read in the iteration before.
#[test]
fn data_dependent_trip_counts_are_followed() {
    let text = |barrier: &str| {
        format!(
            "carbyne 2
let G = 4
%n:[G].i32.GL in 0..100
%A:[G,100,64].f32.GL
%C:[G,100,64].f32.GL
Spec @f <<<#grid:[@g < G], #cta:[@t < 64]>>> (%n, %A) -> (%C) {{
  #one = #cta.scalar()
  Allocate %s:[64].f32.SH
  Allocate %x:[1].f32.RF
  Allocate %y:[1].f32.RF
  @n = %n[@g]
  for (i = 0; i < @n; i += 1) {{
    Move <<<#one>>> (%A[@g, i, @t..@t + 1]) -> (%x) atom=ld.global.b32
    Move <<<#one>>> (%x) -> (%s[@t..@t + 1]) atom=st.shared.b32
    barrier
    Move <<<#one>>> (%s[63 - @t..64 - @t]) -> (%y) atom=ld.shared.b32
    Move <<<#one>>> (%y) -> (%C[@g, i, @t..@t + 1]) atom=st.global.b32
    {barrier}
  }}
}}
"
        )
    };
    is_free(&text("barrier"));
    let order = |v: &Verdict| matches!(v, Verdict::Unordered(Missing::Order));
    assert!(lacks(&text(""), order));
}

/// Two slots are written alternately, provided that all parts have the same trip count. Each
/// iteration of the outer loop reads the trip count again.
#[test]
fn a_trip_count_that_each_iteration_reads_again_has_no_single_value() {
    let text = |number: &str| {
        format!(
            "carbyne 2
sym G where G > 0, G <= 64
%n:[G].i32.GL in 0..100
%A:[G,100,64].f32.GL
%C:[G,100,64].f32.GL
Spec @f <<<#grid:[1], #cta:[@t < 64]>>> (%n, %A) -> (%C) {{
  #one = #cta.scalar()
  Allocate %s:[2].[64].f32.SH
  Allocate %x:[1].f32.RF
  Allocate %y:[1].f32.RF
  for (g = 0; g < 8; g += 1) {{
    @n = %n[{number}]
    for (i = 0; i < @n; i += 1) {{
      let slot = (g * @n + i) % 2
      Move <<<#one>>> (%A[0, i, @t..@t + 1]) -> (%x) atom=ld.global.b32
      Move <<<#one>>> (%x) -> (%s[slot][@t..@t + 1]) atom=st.shared.b32
      barrier
      Move <<<#one>>> (%s[slot][63 - @t..64 - @t]) -> (%y) atom=ld.shared.b32
      Move <<<#one>>> (%y) -> (%C[0, i, @t..@t + 1]) atom=st.global.b32
    }}
  }}
}}
"
        )
    };
    assert!(!report(&text("min(g, G - 1)")).is_ordered());
    is_free(&text("0"));
}
