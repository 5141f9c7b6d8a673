//! Tests the rotation of loops with two dependent products on sm_90a, as in attention. A rotated
//! iteration issues the first product of the next iteration before its own second one is complete,
//! so that the tensor cores work while threads compute exponentials.

use crate::support::{decomposed, run_random};
use carbyne_atoms::AtomTable;
use carbyne_decompose::{Options, decompose_by};
use carbyne_ir::program::Program;
use carbyne_ir::text;

fn sm_90a() -> AtomTable {
    AtomTable::new("sm_90a".parse().expect("an architecture"))
}

/// Attention in which the block of query tile i sees `keys` tiles of keys.
fn attention(rows: i64, depth: i64, keys: &str, stages: i64) -> String {
    format!(
        "carbyne 2
let S = {rows}, T = S, D = {depth}
%Q:[S,D].f16.GL
%K:[T,D].f16.GL
%V:[T,D].f16.GL
%O:[S,D].f16.GL
Spec @attention <<<#grid:[@i < S / 64], #cta:[128]>>> (%Q, %K, %V) -> (%O) means {{
  %s = matmul(%Q, %K.transpose()) / sqrt(D)
  %seen = select(%s.iota(0) >= %s.iota(1), %s, -inf)
  %p = exp(%seen - max(%seen, axis=1))
  %O = matmul(%p / sum(%p, axis=1), %V)
}} {{
  %query = %O.iota(0).tile([64,1])[@i, 0]
  Move (%Q.tile([64,D])[@i, 0]) -> (%q)
  %max:[64,1].f32 = -inf
  %sum:[64,1].f32 = 0
  %o:[64,D].f32 = 0
  for (t = 0; t < {keys}; t += 1) stages={stages} {{
    Move (%K.tile([64,D])[t, 0]) -> (%k:SH)
    Move (%V.tile([64,D])[t, 0]) -> (%v:SH)
    %key = %K.iota(0).tile([64,1])[t, 0].transpose()
    %all = matmul(%q, %k.transpose()) / sqrt(D)
    %s = select(%query >= %key, %all, -inf)
    %top = max(max(%s, axis=1), %max)
    %p = exp(%s - %top)
    %old = exp(%max - %top)
    %sum = %sum * %old + sum(%p, axis=1)
    %o = %o * %old
    %half = cast(%p, f16)
    MatMul (%half, %v) -> (%o)
    %max = move(%top)
  }}
  %O.tile([64,D])[@i, 0] = cast(%o / %sum, f16)
}}
"
    )
}

/// The statements of the loop over keys, one a line, without bodies.
fn body(text: &str) -> Vec<&str> {
    let loops = text.lines().skip_while(|l| !l.trim_start().starts_with("for (t "));
    let inside = loops.skip(1).take_while(|l| l.starts_with("    "));
    inside.filter(|l| !l.starts_with("     ")).map(str::trim).collect()
}

fn at(body: &[&str], what: &str) -> usize {
    body.iter().position(|l| l.contains(what)).unwrap_or_else(|| panic!("{what} in {body:#?}"))
}

/// The next product is under way while threads exponentiate and issue the other one.
fn is_rotated(text: &str) -> bool {
    let body = body(text);
    let next = at(&body, "(%q, ");
    let between = &body[next..];
    let Some(wait) = between.iter().position(|l| *l == "wgmma.wait(1)") else { return false };
    let meanwhile = |what: &str| between[..wait].iter().any(|l| l.contains(what));
    meanwhile("UnaryPointwise.exp2 (%p") && meanwhile("MatMul (%half,")
}

#[test]
fn attention_computes_what_it_means_at_any_number_of_iterations() {
    for (rows, depth, stages) in [(64, 64, 2), (128, 64, 2), (192, 64, 3), (256, 64, 2)] {
        let src = attention(rows, depth, "@i + 1", stages);
        let table = sm_90a();
        let d = decomposed(&src, &table).unwrap_or_else(|e| panic!("{src}{:?}", e.into_vec()));
        assert!(is_rotated(&d.text), "{}", d.text);
        run_random(&d.program, &table).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
    }
    // As many for all blocks, of which the last sees all keys at once.
    let src = attention(256, 64, "S / 64", 2);
    let table = sm_90a();
    let d = decomposed(&src, &table).unwrap_or_else(|e| panic!("{src}{:?}", e.into_vec()));
    assert!(is_rotated(&d.text), "{}", d.text);
    run_random(&d.program, &table).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
}

#[test]
fn without_a_schedule_products_are_awaited_in_the_order_of_the_text() {
    let src = attention(128, 64, "@i + 1", 2);
    let module = text::parse(&src).expect("parses");
    let table = sm_90a();
    let options = Options { as_written: true, ..Options::default() };
    let d = decompose_by(&module, &src, &table, &options).expect("decomposes");
    assert!(!is_rotated(&d.text), "{}", d.text);
    assert!(!d.text.contains("wgmma.wait(1)"), "{}", d.text);
    run_random(&d.program, &table).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
}

#[test]
fn a_prologue_that_does_not_fit_beside_the_rings_is_given_up() {
    // 14 stages are 224 KiB; one tile more is too much.
    let table = sm_90a();
    let text = |stages| decomposed(&attention(128, 64, "@i + 1", stages), &table).map(|d| d.text);
    assert!(is_rotated(&text(13).expect("fits")));
    assert!(!is_rotated(&text(14).expect("fits")));
}

#[test]
fn the_same_text_gives_the_same_bytes() {
    let src = attention(128, 64, "@i + 1", 2);
    let text = || decomposed(&src, &sm_90a()).map(|d| d.text).expect("decomposes");
    assert_eq!(text(), text());
}

#[test]
fn a_product_is_left_under_way_where_a_schedule_says_so() {
    let src = "carbyne 2
%A:[256,256].f16.GL
%B:[(256,256):(1,256)].f16.GL
%C:[256,256].f16.GL
MatMul.set @gemm <<<#grid:[@i < 2, @j < 4], #cta:[128]>>> (%A, %B) -> (%C) acc=f32 {
  %c:[128,64].f32 = 0
  for (k = 0; k < 4; k += 1) stages=3 {
    Move (%A.tile([128,64])[@i, k]) -> (%sA:SH)
    Move (%B.tile([64,64])[k, @j]) -> (%sB:SH)
    MatMul (%sA, %sB) -> (%c) acc=f32
  }
  %C.tile([128,64])[@i, @j] = cast(%c, f16)
}
";
    let module = text::parse(src).expect("parses");
    let table = sm_90a();
    let found = |as_written: bool| {
        let options = Options { as_written, ..Options::default() };
        let d = decompose_by(&module, src, &table, &options).expect("decomposes");
        run_random(&d.program, &table).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
        d.text
    };
    // Copies are two iterations ahead, and the last product is under way when the next one begins.
    let scheduled = found(false);
    assert!(
        scheduled.contains("wgmma.wait(1)") && scheduled.contains("if (k + 2 < 4)"),
        "{scheduled}"
    );
    // Each product is awaited, and its stage is filled at once.
    let written = found(true);
    assert!(!written.contains("wgmma.wait(1)") && written.contains("if (k + 3 < 4)"), "{written}");
}

#[test]
fn any_first_and_last_iteration() {
    for (start, end) in [("0", "4"), ("1", "4"), ("@i", "4"), ("0", "@i"), ("@i", "@i + 1")] {
        let src = format!(
            "carbyne 2
let F = 256, D = 64
%X:[128,D].f16.GL
%W1:[F,D].f16.GL
%W2:[F,D].f16.GL
%Y:[128,D].f16.GL
Spec @mlp <<<#grid:[@i < 2], #cta:[128]>>> (%X, %W1, %W2) -> (%Y) {{
  Move (%X.tile([64,D])[@i, 0]) -> (%x:SH)
  %o:[64,D].f32 = 0
  for (t = {start}; t < {end}; t += 1) stages=2 {{
    Move (%W1.tile([64,D])[t, 0]) -> (%a:SH)
    Move (%W2.tile([64,D])[t, 0]) -> (%b:SH)
    %h = matmul(%x, %a.transpose())
    %g = %h * %h
    %half = cast(%g, f16)
    MatMul (%half, %b) -> (%o)
  }}
  %Y.tile([64,D])[@i, 0] = cast(%o, f16)
}}
"
        );
        let table = sm_90a();
        let d = decomposed(&src, &table).unwrap_or_else(|e| panic!("{src}{:?}", e.into_vec()));
        assert!(d.text.contains("wgmma.wait(1)"), "{}", d.text);
        let options = Options { as_written: true, ..Options::default() };
        let module = text::parse(&src).expect("parses");
        let plain = decompose_by(&module, &src, &table, &options).expect("decomposes");
        let outputs = |p: &Program, text: &str| {
            let report = run_random(p, &table).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
            report.outputs.get("Y").expect("all of Y").values
        };
        assert!(!plain.text.contains("wgmma.wait(1)"), "{}", plain.text);
        let same = outputs(&d.program, &d.text) == outputs(&plain.program, &plain.text);
        assert!(same, "from {start} to {end}: {}", d.text);
    }
}

/// Another kernel, whose loop may have no iteration, has an index that is not known to lie within
/// the keys.
#[test]
fn a_loop_that_cannot_be_rotated_leaves_others_their_rotation() {
    let first = attention(128, 64, "@i + 1", 2);
    let (_, kernel) = first.split_once("Spec ").expect("a kernel");
    let second = kernel.replace("t < @i + 1", "t < @i").replace("@attention ", "@before ");
    let (_, body) = second.split_once("{\n  %query").expect("a body");
    let second = format!(
        "%P:[S,D].f16.GL\nSpec @before <<<#grid:[@i < S / 64], #cta:[128]>>> \
         (%Q, %K, %V) -> (%P) {{\n  %query{}",
        body.replace("%O", "%P")
    );
    let table = sm_90a();
    for src in [format!("{first}{second}"), first] {
        let d = decomposed(&src, &table).unwrap_or_else(|e| panic!("{src}{:?}", e.into_vec()));
        assert!(is_rotated(&d.text), "{}", d.text);
        run_random(&d.program, &table).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
    }
}
