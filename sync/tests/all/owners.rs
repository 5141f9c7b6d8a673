//! Tests `owners`, the proof from the formula of an offset that no two threads access the same
//! element of global memory. Some of the kernels must not be proved.

use crate::support::{reports, right};
use carbyne_atoms::Arch;
use carbyne_ir::diag::Severity;

/// A kernel in which each thread stores one number at an offset that `body` states.
fn stores(grid: &str, body: &str) -> String {
    format!(
        "carbyne 2
let BM = 16, BN = 128
sym M, N where M > 0, M <= 4096, N > 0, N <= 4096
%X:[64].f32.GL
%Y:[M,N].f32.GL
Spec @k <<<#grid:[{grid}], #cta:[@t < 128]>>> (%X) -> (%Y) {{
  let TM = ceil_div(M, BM), TN = ceil_div(N, BN)
  Allocate %x:[1].f32.RF
  Move <<<#cta.scalar()>>> (%X[0]) -> (%x[0]) atom=ld.global.b32
{body}}}
"
    )
}

fn store(place: &str) -> String {
    format!("Move <<<#cta.scalar()>>> (%x[0]) -> ({place}) atom=st.global.b32")
}

/// `proved`, `refused` or `undecided`.
fn verdict(text: &str) -> &'static str {
    let program = right(text);
    let all = reports(&program, Arch::Sm80);
    let said: Vec<_> = program
        .kernels
        .iter()
        .zip(&all)
        .flat_map(|(k, r)| carbyne_remedy::diagnostics(r, &program, *k))
        .collect();
    match said.iter().map(|d| d.severity).max_by_key(|s| *s == Severity::Error) {
        None => "proved",
        Some(Severity::Error) => "refused",
        Some(_) => "undecided",
    }
}

/// The loop of a block over every `step`-th tile; `at` states the coordinates of the tile.
fn tiles(step: i64, at: &str) -> String {
    format!(
        "  for (u = @b; u < TM * TN; u += {step}) {{
    for (r = 0; r < BM; r += 1) {{
      {}
    }}
  }}\n",
        store(&format!("%Y.tile([BM,BN])[{at}].tile([1,1])[r, @t][0, 0]"))
    )
}

#[test]
fn threads_of_a_role_are_below_its_end() {
    let text = |threads: u32, role: &str| {
        format!(
            "carbyne 2
sym M where M > 0, M <= 64
%C:[64,128].f32.GL
Spec @k <<<#grid:[@b < M], #cta:[{threads}]>>> () -> (%C) {{
  #c = {role}
  Spec <<<#c>>> () -> (%C) {{
    @p = #c.indices()
    Allocate %x:[1].f32.RF
    Init <<<#c.scalar()>>> (0) -> (%x[0])
    Move <<<#c.scalar()>>> (%x[0]) -> (%C[@b, @p]) atom=st.global.b32
  }}
}}
"
        )
    };
    assert_eq!(verdict(&text(128, "#cta[0..128]")), "proved");
    assert_eq!(verdict(&text(160, "#cta[0..128]")), "proved");
    assert_eq!(verdict(&text(160, "#cta[32..160]")), "proved");
    // All blocks store the same row.
    let one = text(160, "#cta[32..160]").replace("[@b, @p]", "[0, @p]");
    assert_eq!(verdict(&one), "refused");
}

#[test]
fn places_that_decide_who_accesses_them_are_proved_apart() {
    let rows = |row: &str| {
        format!(
            "  for (c = 0; c < TN; c += 1) {{\n    {}\n  }}\n",
            store(&format!("%Y.tile([1,BN])[{row}, c].tile([1,1])[0, @t][0, 0]"))
        )
    };
    let proved = [
        ("@b < M", rows("@b")),
        ("@b < 4", tiles(4, "u / TN, u % TN")),
        ("@b < 7", tiles(7, "u % TM, u / TM")),
        // Bands of rows, the last of which may be lower.
        (
            "@b < 3",
            tiles(
                3,
                "min(u / (8 * TN) * 8 \
                 + u % (8 * TN) % max(min(TM - u / (8 * TN) * 8, 8), 1), TM - 1), \
                 min(u % (8 * TN) / max(min(TM - u / (8 * TN) * 8, 8), 1), TN - 1)",
            ),
        ),
    ];
    for (grid, body) in proved {
        assert_eq!(verdict(&stores(grid, &body)), "proved", "{}", stores(grid, &body));
    }
    // Each of these differs from a correct kernel in one token, and has a race.
    let racy = [
        ("@b < M", rows("@b / 2")),
        ("@b < M + 1", rows("min(@b, M - 1)")),
        ("@b < 4", tiles(3, "u / TN, u % TN")),
        ("@b < 4", tiles(4, "min(u / TN, 1), u % TN")),
        ("@b < 4", tiles(4, "u / (TN + 1), u % TN")),
        ("@b < 7", tiles(7, "u % TM, u / (TM + 1)")),
        ("@b < 3", tiles(2, "u / TN, u % TN")),
    ];
    for (grid, body) in racy {
        assert_ne!(verdict(&stores(grid, &body)), "proved", "{}", stores(grid, &body));
    }
}

#[test]
fn threads_that_share_an_element_are_not_proved_apart() {
    let rows = |thread: &str| {
        format!("  {}\n", store(&format!("%Y.tile([1,BN])[@b, 0].tile([1,1])[0, {thread}][0, 0]")))
    };
    assert_eq!(verdict(&stores("@b < M", &rows("@t"))), "proved");
    for thread in ["@t / 2", "@t % 64", "@t * 0", "min(@t, 126)"] {
        assert_ne!(verdict(&stores("@b < M", &rows(thread))), "proved", "{thread}");
    }
    // One thread at a time, but a different one in each iteration.
    let turns = |threads: &str| {
        format!(
            "  for (i = 0; i < 64; i += 1) {{
    Move <<<{threads}>>> (%x[0]) -> (%Y.tile([1,1])[@b, 0][0, 0]) atom=st.global.b32
  }}\n"
        )
    };
    assert_eq!(verdict(&stores("@b < M", &turns("#cta[0]"))), "proved");
    assert_ne!(verdict(&stores("@b < M", &turns("#cta[i]"))), "proved");
}
