//! Tests sequential tile-level bodies on sm_90a. A MatMul of factors in shared memory is executed
//! by `wgmma`. In loops with `stages=`, the copy engine fills the ring, and mbarriers tell
//! consumers that a tile has arrived. Bodies that `wgmma` or the copy engine cannot execute get
//! other instructions. No statement that orders accesses can be left out.

use crate::support::{decomposed, run, run_random};
use carbyne_atoms::AtomTable;
use carbyne_decompose::checked;
use carbyne_ir::program::Program;
use carbyne_ir::testing;
use carbyne_ir::text;

fn sm_90a() -> AtomTable {
    AtomTable::new("sm_90a".parse().expect("an architecture"))
}

/// A product of two by two tiles and `turns` of them along K.
#[derive(Copy, Clone, Debug)]
struct Ring<'a> {
    /// Of A and B, of C, of sums.
    types: [&'a str; 3],
    /// Whether rows of A and columns of B are consecutive, as K is.
    along_k: [bool; 2],
    tile: [i64; 3],
    turns: i64,
    threads: i64,
    stages: i64,
    /// The statements behind the MatMul of an iteration.
    then: &'a str,
}

const USUAL: Ring<'_> = Ring {
    types: ["f16", "f16", "f32"],
    along_k: [true, true],
    tile: [128, 64, 64],
    turns: 4,
    threads: 128,
    stages: 3,
    then: "",
};

impl Ring<'_> {
    fn text(&self) -> String {
        let Ring { types: [ty, out, acc], tile: [m, n, k], turns, threads, stages, then, .. } =
            self;
        let (all_m, all_n, all_k) = (2 * m, 2 * n, turns * k);
        let a = if self.along_k[0] { format!("({all_k},1)") } else { format!("(1,{all_m})") };
        let b = if self.along_k[1] { format!("(1,{all_k})") } else { format!("({all_n},1)") };
        let last = if out == acc { "move(%c)".to_owned() } else { format!("cast(%c, {out})") };
        format!(
            "carbyne 2
%A:[({all_m},{all_k}):{a}].{ty}.GL
%B:[({all_k},{all_n}):{b}].{ty}.GL
%C:[{all_m},{all_n}].{out}.GL
MatMul.set @gemm <<<#grid:[@i < 2, @j < 2], #cta:[{threads}]>>> (%A, %B) -> (%C) acc={acc} {{
  %c:[{m},{n}].{acc} = 0
  for (k = 0; k < {turns}; k += 1) stages={stages} {{
    Move (%A.tile([{m},{k}])[@i, k]) -> (%sA:[{m},{k}].{ty}.SH)
    Move (%B.tile([{k},{n}])[k, @j]) -> (%sB:[{k},{n}].{ty}.SH)
    MatMul (%sA, %sB) -> (%c) acc={acc}
{then}  }}
  %C.tile([{m},{n}])[@i, @j] = {last}
}}
"
        )
    }
}

/// Atoms of leaves of a kind, without their sizes, each once.
fn families(p: &Program, kind: &str) -> Vec<String> {
    let all = p.specs.iter().filter(|(_, s)| s.body.is_none() && s.kind.to_string() == kind);
    let family = |a: &String| a.split('.').next().unwrap_or_default().to_owned();
    let mut names: Vec<String> = all.filter_map(|(_, s)| s.atom.as_ref().map(family)).collect();
    names.sort();
    names.dedup();
    names
}

/// Decomposes a text, and checks that the result computes its meaning in a proved order.
fn right(src: &str) -> (String, Program) {
    let table = sm_90a();
    let d = decomposed(src, &table).unwrap_or_else(|e| panic!("{src}{:?}", e.into_vec()));
    run(&d.program, &table).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
    (d.text, d.program)
}

/// Checks and returns the result like [`right`], and runs it with random numbers, too.
fn right_in_any_case(src: &str) -> String {
    let (text, program) = right(src);
    run_random(&program, &sm_90a()).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    text
}

#[test]
fn every_type_and_major() {
    let tiles = [
        ([128, 128, 64], 256, 2),
        ([64, 96, 32], 128, 3),
        ([128, 64, 64], 128, 4),
        ([64, 128, 128], 128, 2),
        ([256, 64, 32], 512, 3),
    ];
    let types = [
        ["f16", "f16", "f32"],
        ["f16", "f16", "f16"],
        ["bf16", "f32", "f32"],
        ["i8", "i32", "i32"],
        ["u8", "i32", "i32"],
        ["e4m3", "f16", "f32"],
        ["e5m2", "f32", "f32"],
        ["tf32", "f32", "f32"],
    ];
    let mut next = tiles.iter().cycle();
    for types in types {
        for along_k in [[true, true], [true, false], [false, true], [false, false]] {
            let (tile, threads, stages) = *next.next().expect("endless");
            if !testing::one_in(4, &format!("{types:?} {along_k:?}")) {
                continue;
            }
            let (text, p) = right(&Ring { types, along_k, tile, threads, stages, ..USUAL }.text());
            // Descriptors of types that do not take 16 bits know factors with K consecutive only.
            if along_k == [true, true] || matches!(types[0], "f16" | "bf16") {
                assert_eq!(families(&p, "MatMul"), ["wgmma"], "{text}");
                assert!(text.contains("atom=cp.async.bulk.tensor.2d.shared.global"), "{text}");
                assert!(!text.contains("atom=cp.async.c"), "{text}");
            } else {
                assert!(!families(&p, "MatMul").is_empty(), "{text}");
            }
        }
    }
}

#[test]
fn any_depth_and_number_of_iterations() {
    for stages in 2..=4 {
        for turns in [2, 3, 4, 7] {
            let (text, p) = right(&Ring { stages, turns, ..USUAL }.text());
            assert_eq!(families(&p, "MatMul"), ["wgmma"], "{text}");
        }
    }
}

#[test]
fn a_product_runs_on_while_the_next_iteration_begins() {
    let (text, _) = right(&USUAL.text());
    assert!(text.contains("wgmma.wait(1)") && text.contains("wgmma.wait(0)"), "{text}");
    assert_eq!(text.lines().filter(|l| l.trim() == "barrier").count(), 1, "{text}");
    // Its sums are read within the iteration.
    let then = "    %c = %c * 0.5\n";
    let src = Ring { then, ..USUAL }
        .text()
        .replace("MatMul.set @gemm", "Spec @gemm")
        .replace(" acc=f32 {\n  %c:", " {\n  %c:");
    let (text, p) = right(&src);
    assert!(!text.contains("wgmma.wait(1)"), "{text}");
    assert_eq!(families(&p, "MatMul"), ["wgmma"], "{text}");
    assert!(text.contains("atom=cp.async.bulk.tensor"), "{text}");
}

#[test]
fn a_staged_tile_leaves_by_boxes() {
    let last = "%C.tile([128,64])[@i, @j] = cast(%c, f16)";
    let staged =
        "%h = cast(%c, f16)\n  Move (%h) -> (%s:SH)\n  Move (%s) -> (%C.tile([128,64])[@i, @j])";
    let store = "atom=cp.async.bulk.tensor.2d.global.shared";
    // Where a multiprocessor holds as many blocks the tile has a place of its own.
    for (stages, reuses) in [(2, true), (3, true), (4, false), (8, false)] {
        let src = Ring { stages, turns: 8, ..USUAL }.text().replace(last, staged);
        let (text, _) = right(&src);
        assert!(text.contains(store) && text.contains("bulk.wait_read(0)"), "{text}");
        assert!(text.contains("atom=stmatrix"), "{text}");
        assert_eq!(text.contains("reuses=%sA"), reuses, "{stages}\n{text}");
    }
    // Columns of C that are consecutive, and rows that do not begin at multiples of 16 bytes.
    for (c, boxed) in [
        ("[(256,128):(1,256)]", true),
        ("[(256,128):(136,1)]", true),
        ("[(256,128):(132,1)]", false),
    ] {
        let src = USUAL.text().replace(last, staged).replace("%C:[256,128]", &format!("%C:{c}"));
        let (text, _) = right(&src);
        assert_eq!(text.contains(store), boxed, "{text}");
    }
    // Another reader of the tile.
    let twice = format!("{staged}\n  Move (%s) -> (%C.tile([128,64])[@i, @j])");
    let (text, _) = right(&USUAL.text().replace(last, &twice));
    assert!(!text.contains(store), "{text}");
    // Every statement that orders accesses of the tile is needed.
    let (text, _) = right(&USUAL.text().replace(last, staged));
    let from = text.find("wgmma.wait(0)").expect("the end of the loop");
    for line in ["  fence.async\n", "  barrier\n", "    bulk.commit\n", "    bulk.wait_read(0)\n"] {
        let at = from + text[from..].find(line).unwrap_or_else(|| panic!("{line}{text}"));
        refuted(&format!("{}{}", &text[..at], &text[at + line.len()..]), line);
    }
}

/// A text that the checker of the order of accesses refuses, or the simulator.
fn refuted(text: &str, what: &str) {
    let table = sm_90a();
    let Ok(module) = text::parse(text) else { return };
    let Ok(p) = checked(&module, text) else { return };
    let kernel = p.kernels[0];
    let report = carbyne_sync::check(&p, kernel, &table, &carbyne_sync::Limits::default());
    let said = carbyne_remedy::diagnostics(&report, &p, kernel);
    let refuted = said.iter().any(|d| d.severity == carbyne_ir::diag::Severity::Error);
    assert!(refuted || run(&p, &table).is_err(), "without `{}`:\n{text}", what.trim());
}

#[test]
fn a_slice_of_a_batch_is_a_box() {
    let src = "carbyne 2
let T = 64
%A:[2,128,256].f16.GL
%B:[2,256,128].f16.GL
%C:[2,128,128].f32.GL
Spec @batch <<<#grid:[@i < 2, @j < 2, @b < 2], #cta:[128]>>> (%A, %B) -> (%C) {
  %c:[T,T].f32 = 0
  for (k = 0; k < 256 / T; k += 1) stages=3 {
    Move (%A[@b, _, _].tile([T,T])[@i, k]) -> (%sA:[T,T].f16.SH)
    Move (%B[@b, _, _].tile([T,T])[k, @j]) -> (%sB:[T,T].f16.SH)
    MatMul (%sA, %sB) -> (%c)
  }
  Move (%c) -> (%C[@b, _, _].tile([T,T])[@i, @j])
}
";
    let (text, p) = right(src);
    assert_eq!(families(&p, "MatMul"), ["wgmma"], "{text}");
    assert!(text.contains("atom=cp.async.bulk.tensor.3d"), "{text}");
}

#[test]
fn a_batch_of_columns_is_a_map_of_transposed_slices() {
    // Of B neither the first nor the last mode is contiguous.
    let src = "carbyne 2
%A:[2,128,256].f16.GL
%B:[(2,256,128):(32768,1,256)].f16.GL
%C:[(2,128,128):(16384,1,128)].f16.GL
Spec @batch <<<#grid:[@i < 2, @j < 2, @b < 2], #cta:[128]>>> (%A, %B) -> (%C) {
  %c:[64,64].f32 = 0
  for (k = 0; k < 4; k += 1) stages=3 {
    Move (%A[@b, _, _].tile([64,64])[@i, k]) -> (%sA:SH)
    Move (%B[@b, _, _].tile([64,64])[k, @j]) -> (%sB:SH)
    MatMul (%sA, %sB) -> (%c)
  }
  %h = cast(%c, f16)
  Move (%h) -> (%s:SH)
  Move (%s) -> (%C[@b, _, _].tile([64,64])[@i, @j])
}
";
    let (text, p) = right(src);
    assert_eq!(families(&p, "MatMul"), ["wgmma"]);
    assert!(text.contains("%B.transpose().tensormap([1,64,64]"), "{text}");
    assert!(text.contains("%C.transpose().tensormap([1,64,64]"), "{text}");
    assert!(text.contains("bulk.tensor.3d.global.shared"), "{text}");
}

#[test]
fn what_is_in_the_way_is_left_to_other_instructions() {
    // Threads that are no warp groups, and rows that descriptors have none of.
    for (threads, tile) in [(96, [96, 64, 32]), (64, [64, 64, 64]), (128, [32, 64, 64])] {
        let (text, p) = right(&Ring { threads, tile, ..USUAL }.text());
        assert_eq!(families(&p, "MatMul"), ["mma"], "{text}");
        assert!(!text.contains("mbarrier"), "{text}");
    }
    // One stage has nothing that runs ahead.
    let (text, p) = right(&USUAL.text().replace(" stages=3", ""));
    assert_eq!(families(&p, "MatMul"), ["wgmma"], "{text}");
    assert!(!text.contains("mbarrier"), "{text}");
    // Another reader of a ring.
    let then = "    %s = %s + sum(move(%sA), axis=1)\n";
    let src = Ring { then, ..USUAL }
        .text()
        .replace("MatMul.set @gemm", "Spec @gemm")
        .replace(" acc=f32 {\n", " {\n  %s:[128,1].f16 = 0\n");
    let (text, _) = right(&src);
    assert!(!text.contains("mbarrier"), "{text}");
}

/// Leaves out each line that orders accesses, of which there are at least so many: each text is
/// refuted.
fn each_is_needed(text: &str, orders: &[&str], least: usize) {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = 0;
    for (i, line) in lines.iter().enumerate() {
        if !orders.iter().any(|o| line.trim().starts_with(o)) {
            continue;
        }
        let without: Vec<&str> =
            lines.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, l)| *l).collect();
        found += 1;
        refuted(&without.join("\n"), &format!("line {}: {line}", i + 1));
    }
    assert!(found >= least, "{found} of\n{text}");
}

#[test]
fn nothing_that_orders_accesses_can_be_left_out() {
    let (text, _) = right(&USUAL.text());
    let orders = ["wgmma.fence", "wgmma.wait", "mbarrier.", "fence.async", "barrier"];
    each_is_needed(&text, &orders, 10);
}

#[test]
fn layouts_of_rings_are_checked_after_edits() {
    let table = sm_90a();
    let (text, _) = right(&USUAL.text());
    for (from, to) in [
        ("swizzle=(3,4,3)}\n  Allocate %sB", "swizzle=(2,4,3)}\n  Allocate %sB"),
        (".tensormap([128,64], swizzle=(3,4,3))", ".tensormap([128,64], swizzle=(2,4,3))"),
        ("mbarrier.expect(%full[s], 24576)", "mbarrier.expect(%full[s], 24560)"),
        ("mbarrier.init(%empty, 4)", "mbarrier.init(%empty, 3)"),
    ] {
        let edited = text.replacen(from, to, 1);
        assert_ne!(edited, text, "{from}");
        let Ok(module) = text::parse(&edited) else { continue };
        let Ok(p) = checked(&module, &edited) else { continue };
        assert!(run(&p, &table).is_err(), "{from} -> {to}");
    }
}

/// Tiles of a product that blocks take in turn.
#[derive(Copy, Clone, Debug)]
struct Turns {
    blocks: i64,
    /// Along M and N.
    tiles: [i64; 2],
    /// Tiles along M that follow each other.
    band: i64,
    tile: [i64; 2],
    /// Along K, of each tile.
    turns: i64,
    stages: i64,
    threads: i64,
}

const IN_TURN: Turns =
    Turns { blocks: 3, tiles: [4, 2], band: 4, tile: [64, 64], turns: 3, stages: 3, threads: 128 };

impl Turns {
    fn text(&self) -> String {
        let Turns { blocks, tiles: [tm, tn], band, tile: [m, n], turns, stages, threads } = self;
        let (all_m, all_n, all_k, tiles) = (tm * m, tn * n, turns * 64, tm * tn);
        format!(
            "carbyne 2
%A:[{all_m},{all_k}].f16.GL
%B:[({all_k},{all_n}):(1,{all_k})].f16.GL
%C:[{all_m},{all_n}].f16.GL
MatMul.set @gemm <<<#grid:[@b < {blocks}], #cta:[{threads}]>>> (%A, %B) -> (%C) acc=f32 {{
  let BAND = {band}, TN = {tn}
  for (t = @b; t < {tiles}; t += {blocks}) {{
    let bm = t / (BAND * TN) * BAND + t % BAND, bn = t / BAND % TN
    %c:[{m},{n}].f32 = 0
    for (k = 0; k < {turns}; k += 1) stages={stages} {{
      Move (%A.tile([{m},64])[bm, k]) -> (%sA:SH)
      Move (%B.tile([64,{n}])[k, bn]) -> (%sB:SH)
      MatMul (%sA, %sB) -> (%c)
    }}
    UnaryPointwise.cast (%c) -> (%h:[{m},{n}].f16)
    Move (%h) -> (%s:SH)
    Move (%s) -> (%C.tile([{m},{n}])[bm, bn])
  }}
}}
"
        )
    }
}

#[test]
fn rings_run_on_from_tile_to_tile() {
    for (blocks, band, turns, stages) in
        [(3, 4, 3, 3), (1, 1, 1, 4), (5, 2, 2, 5), (4, 2, 4, 2), (2, 1, 3, 6), (7, 4, 1, 2)]
    {
        let of = Turns { blocks, band, turns, stages, ..IN_TURN };
        let (text, p) = right(&of.text());
        assert_eq!(families(&p, "MatMul"), ["wgmma"], "{of:?}");
        // One initialization, before the loop over tiles; loads and stores by boxes.
        assert_eq!(text.matches("mbarrier.init").count(), 2, "{of:?}: {text}");
        assert!(text.find("mbarrier.init") < text.find("for (t = @b"), "{of:?}: {text}");
        assert!(text.contains("let q = "), "{of:?}: {text}");
        assert!(text.contains("bulk.tensor.2d.global.shared"), "{of:?}: {text}");
    }
}

#[test]
fn a_loop_of_one_tile_needs_no_more() {
    let (text, p) = right(&Turns { blocks: 8, ..IN_TURN }.text());
    assert_eq!(families(&p, "MatMul"), ["wgmma"]);
    assert!(!text.contains("let q ="), "{text}");
    assert!(text.contains("bulk.tensor.2d.shared.global"), "{text}");
}

#[test]
fn a_tile_that_does_not_fit_beside_the_ring_is_staged_in_parts() {
    let of = Turns {
        tile: [128, 256],
        tiles: [2, 2],
        band: 2,
        threads: 256,
        stages: 4,
        turns: 2,
        ..IN_TURN
    };
    let (text, _) = right(&of.text());
    assert_eq!(text.matches("bulk.commit").count(), 2, "{text}");
    assert!(text.contains("%h.tile([128,128])[0, 1]"), "{text}");
}

#[test]
fn nothing_that_orders_accesses_from_tile_to_tile_can_be_left_out() {
    let (text, _) = right(&Turns { blocks: 2, ..IN_TURN }.text());
    let orders = ["wgmma.fence", "wgmma.wait", "mbarrier.", "fence.async", "barrier", "bulk."];
    each_is_needed(&text, &orders, 15);
}

#[test]
fn a_tile_that_has_room_beside_the_ring_takes_the_place_of_none() {
    // Of what the kernel has in shared memory the ring is a part, though it stands before the loop.
    let (text, _) = right(&Turns { blocks: 8, turns: 5, stages: 5, ..IN_TURN }.text());
    assert!(text.contains("bulk.tensor.2d.global.shared"), "{text}");
    assert!(!text.contains("reuses="), "{text}");
}

/// The copy engine does not read a tensor that threads of its kernel write: `fence.async` does not
/// order these accesses.
#[test]
fn threads_copy_what_their_kernel_has_written() {
    let text = |written: &str| {
        format!(
            "carbyne 2
%Q:[64,64].f16.GL
%V:[256,64].f16.GL
%L:[64,256].f16.GL
%M:[64,256].f16.GL
%O:[64,64].f32.GL
Spec @k <<<#grid:[@i < 1], #cta:[128]>>> (%Q, %V, %L) -> (%{written}, %O) {{
  %o:[64,64].f32 = 0
  Move (%Q.tile([64,64])[@i, 0]) -> (%q)
  for (t = 0; t < 4; t += 1) {{
    %{written}.tile([64,64])[@i, t] = move(%q)
  }}
  for (t = 0; t < 4; t += 1) stages=2 {{
    Move (%L.tile([64,64])[@i, t]) -> (%l:SH)
    Move (%V.tile([64,64])[t, 0]) -> (%v:SH)
    MatMul (%l, %v) -> (%o)
  }}
  %O.tile([64,64])[@i, 0] = move(%o)
}}
"
        )
    };
    for (written, boxes) in [("L", false), ("M", true)] {
        let text = right_in_any_case(&text(written));
        assert_eq!(text.contains("%L.tensormap"), boxes, "{text}");
    }
}

/// Nor does the copy engine write after threads what they have written.
#[test]
fn threads_store_where_their_kernel_has_written() {
    let text = |written: &str| {
        format!(
            "carbyne 2
%A:[256,256].f16.GL
%B:[(256,256):(1,256)].f16.GL
%C:[256,256].f16.GL
%D:[256,256].f16.GL
Spec @gemm <<<#grid:[@i < 2, @j < 2], #cta:[256]>>> (%A, %B) -> (%C{written}) {{
  %z:[128,128].f16 = 0
  Move (%z) -> (%{to}.tile([128,128])[@i, @j])
  %c:[128,128].f32 = 0
  for (k = 0; k < 4; k += 1) stages=3 {{
    Move (%A.tile([128,64])[@i, k]) -> (%sA:SH)
    Move (%B.tile([64,128])[k, @j]) -> (%sB:SH)
    MatMul (%sA, %sB) -> (%c) acc=f32
  }}
  %h = cast(%c, f16)
  Move (%h) -> (%s:SH)
  Move (%s) -> (%C.tile([128,128])[@i, @j])
}}
",
            to = if written.is_empty() { "C" } else { "D" },
        )
    };
    for (written, boxes) in [("", false), (", %D", true)] {
        let text = right_in_any_case(&text(written));
        assert!(text.contains("%A.tensormap"), "{text}");
        assert_eq!(text.contains("%C.tensormap"), boxes, "{text}");
    }
}

/// Parts of the last wave's tiles are added by several blocks, from a ring that runs on from part
/// to part.
#[test]
fn stream_k_computes_what_it_means() {
    for (m, n, k, blocks, split) in
        [(256, 384, 512, 4, 2), (384, 384, 512, 5, 4), (256, 384, 256, 5, 2)]
    {
        let src = format!(
            "carbyne 2
%A:[{m},{k}].f16.GL
%B:[({k},{n}):(1,{k})].f16.GL
%C:[{m},{n}].f16.GL
MatMul.set @gemm (%A, %B) -> (%C) acc=f32 by=@wgmma_stream_k[BM=128,BN=128,SPLIT={split},G={blocks}]
"
        );
        let text = right_in_any_case(&src);
        assert!(text.contains("%A.tensormap") && text.contains("red.global.add"), "{text}");
        assert!(text.contains("wgmma.wait(1)"), "{text}");
    }
}

/// Nothing stands between sums of several iterations, whose order does not count.
#[test]
fn sums_of_one_kind_need_no_barrier() {
    let text = |second: &str| {
        format!(
            "carbyne 2
%w:[64,64].i32.GL
Spec @sums <<<#grid:[@b < 1], #cta:[128]>>> () -> (%w) {{
  %x:[64,64].i32 = 1
  for (r = 0; r < 4; r += 1) {{
    Move.add (%x) -> (%w)
    {second} (%x) -> (%w.transpose())
  }}
}}
"
        )
    };
    let found = |second: &str| {
        let d = decomposed(&text(second), &sm_90a());
        d.map(|d| d.text.contains("barrier")).map_err(|e| format!("{:?}", e.into_vec()))
    };
    assert_eq!(found("Move.add"), Ok(false));
    assert_eq!(found("Move.max"), Ok(true));
}

/// `tile=` is a pin of a strategy's parameters, whose body may copy a tile in several boxes.
#[test]
fn tiles_that_are_copied_in_boxes_may_be_pinned() {
    let text = |(a, b): (&str, &str), pins: &str| {
        format!(
            "carbyne 2
%A:[(256,128):{a}].f16.GL
%B:[(128,256):{b}].f16.GL
%C:[256,256].f16.GL
MatMul.set @gemm (%A, %B) -> (%C) acc=f32 {pins}
"
        )
    };
    let pins = ["tile=(128,128,64) by=@wgmma_ring", "by=@wgmma_ring[BM=128,BN=128] warps=(2,1)"];
    for majors in [("(128,1)", "(256,1)"), ("(128,1)", "(1,128)"), ("(1,256)", "(256,1)")] {
        for pins in pins {
            let text = right_in_any_case(&text(majors, pins));
            assert!(text.contains("tensormap([") && text.contains("wgmma.wait(1)"), "{text}");
        }
    }
}
