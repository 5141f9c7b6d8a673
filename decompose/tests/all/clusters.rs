//! Tests the strategies for products on sm_90a: clusters (`cluster=`), warp groups as producer and
//! consumers (`consumers=`), copies of factors with padded rows, and results that the copy engine
//! cannot store. In a cluster, one block copies tiles to the shared memory of others.
//!
//! The order of accesses is always proved. Small kernels also compute their meaning; of large ones
//! only the chosen strategy and the text are checked.

use crate::support::{decomposed, run};
use carbyne_atoms::AtomTable;
use carbyne_ir::diag::Code;
use carbyne_ir::testing;

fn sm_90a() -> AtomTable {
    AtomTable::new("sm_90a".parse().expect("an architecture"))
}

/// A product whose factors are consecutive along K.
fn product([m, n, k]: [i64; 3], by: &str) -> String {
    format!(
        "carbyne 2
%A:[{m},{k}].f16.GL
%B:[({k},{n}):(1,{k})].f16.GL
%C:[{m},{n}].f16.GL
MatMul.set @gemm (%A, %B) -> (%C) acc=f32 by={by}
"
    )
}

/// A product at the level of tiles, with a loop over tiles of C if `turns` is more than 1.
fn tiles(turns: i64, attrs: &str) -> String {
    let (m, grid) = (128, 2);
    let all = m * grid * turns;
    format!(
        "carbyne 2
%A:[{all},192].f16.GL
%B:[(192,64):(1,192)].f16.GL
%C:[{all},64].f16.GL
MatMul.set @gemm <<<#grid:[@b < {grid}], #cta:[128]>>> (%A, %B) -> (%C) acc=f32 {attrs} {{
  for (u = @b; u < {grid} * {turns}; u += {grid}) {{
    %c:[{m},64].f32 = 0
    for (k = 0; k < 3; k += 1) stages=2 {{
      Move (%A.tile([{m},64])[u, k]) -> (%sA:SH)
      Move (%B.tile([64,64])[k, 0]) -> (%sB:SH)
      MatMul (%sA, %sB) -> (%c) acc=f32
    }}
    %C.tile([{m},64])[u, 0] = cast(%c, f16)
  }}
}}
"
    )
}

/// Decomposes a text, and checks that the result computes its meaning in a proved order.
fn right(src: &str) -> String {
    let table = sm_90a();
    let d = decomposed(src, &table).unwrap_or_else(|e| panic!("{src}{:?}", e.into_vec()));
    run(&d.program, &table).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
    d.text
}

#[test]
fn blocks_of_a_cluster_copy_once_what_they_copy_alike() {
    // Both blocks of the only cluster read B; each asks for half of it.
    let text = right(&tiles(1, "cluster=2"));
    assert_eq!(text.matches("multicast=3").count(), 2, "{text}");
    assert!(text.contains("mbarrier.init(%empty, 8)"), "{text}");
    assert!(text.contains("cluster.arrive_relaxed"), "{text}");
    let alone = right(&tiles(1, ""));
    assert!(!alone.contains("multicast") && !alone.contains("cluster."), "{alone}");
    // The grid may be computed of constants.
    let computed = tiles(1, "cluster=2").replace("@b < 2", "@b < 2 * W");
    let text = right(&computed.replace("carbyne 2\n", "carbyne 2\nlet W = 2 / 2\n"));
    assert!(text.contains("multicast=3"), "{text}");
    // From tile to tile, too.
    let text = right(&tiles(2, "cluster=2"));
    assert!(text.contains("multicast=3"), "{text}");
    for by in ["@wgmma_tiles[W=1,BM=64,BN=64,CL=2]", "@wgmma_ring[BM=128,BN=64,G=4,CL=2]"] {
        let text = right(&product([256, 128, 192], by));
        assert!(text.contains("multicast=3"), "{text}");
    }
}

#[test]
fn a_producer_copies_for_one_group_or_for_two_that_take_turns() {
    let one = right(&tiles(2, "consumers=1"));
    assert!(one.contains("#producer"), "{one}");
    assert!(!one.contains("registers.dec"), "{one}");
    // Two groups of as many threads take tiles in turn; the registers of the producer are theirs.
    let two = right(&tiles(4, "consumers=2"));
    assert!(two.contains("registers.dec") && two.contains("registers.inc"), "{two}");
    let both = right(&tiles(4, "consumers=2 cluster=2"));
    assert!(both.contains("multicast=3"), "{both}");
}

#[test]
fn consumers_of_two_warp_groups_each_store_one_after_the_other() {
    // Boxes store a tile that all threads of a group stage.
    let staged = "    %h = cast(%c, f16)
    Move (%h) -> (%s:SH)
    Move (%s) -> (%C.tile([128,64])[u, 0])
";
    let text = tiles(4, "consumers=2").replace("#cta:[128]", "#cta:[256]");
    let text = text.replace("    %C.tile([128,64])[u, 0] = cast(%c, f16)\n", staged);
    let text = right(&text);
    assert!(text.contains("%spare"), "{text}");
}

#[test]
fn a_pin_replaces_what_a_parameter_usually_is() {
    let text = right(&product([256, 256, 256], "@wgmma_ring[P=1,G=2]"));
    assert!(text.contains("P=1") && text.contains("BN=256"), "{text}");
}

#[test]
fn what_a_block_reads_once_goes_first_from_the_cache() {
    let once = right(&product([128, 256, 128], "@wgmma_tiles[W=1,BM=64,BN=64,CL=1]"));
    assert!(once.contains("cache=evict_first"), "{once}");
    let again = right(&product([256, 256, 128], "@wgmma_ring[BM=128,BN=64,G=2,CL=1]"));
    assert!(!again.contains("evict_first"), "{again}");
}

#[test]
fn warp_groups_store_their_rows_on_their_own() {
    let text = right(&product([256, 128, 128], "@wgmma_tiles[W=2,BM=128,BN=128,CL=1]"));
    assert!(!text.contains("barrier(#cta)"), "{text}");
    assert!(text.contains("bulk.commit"), "{text}");
}

#[test]
fn factors_are_moved_before_where_warp_groups_do_not_take_them() {
    // B of tf32 is not consecutive along K.
    let src = "carbyne 2
%A:[128,64].tf32.GL
%B:[64,128].tf32.GL
%C:[128,128].f32.GL
MatMul.set @gemm (%A, %B) -> (%C) acc=f32 by=@wgmma_transposed
";
    let text = right(src);
    assert!(text.contains("Move @gemm_transpose"), "{text}");
}

/// A product whose factors lie by rows, or by columns.
fn odd([m, n, k]: [i64; 3], columns: [bool; 2], by: &str) -> String {
    let lies = |rows, all, columns| match columns {
        false => format!("[{rows},{all}]"),
        true => format!("[({rows},{all}):(1,{rows})]"),
    };
    let (a, b) = (lies(m, k, columns[0]), lies(k, n, columns[1]));
    format!(
        "carbyne 2\n%A:{a}.f16.GL\n%B:{b}.f16.GL\n%C:[{m},{n}].f16.GL\n\
         MatMul.set @gemm (%A, %B) -> (%C) acc=f32 {by}\n"
    )
}

#[test]
fn factors_whose_rows_begin_anywhere_are_copied_before() {
    for (size, columns, by, copy) in [
        ([130, 131, 136], [false, false], "@wgmma_padded", "%b:[(136,131):(192,1)]"),
        ([130, 131, 133], [false, true], "@wgmma_padded", "%b:[(133,131):(1,192)]"),
        ([130, 136, 133], [false, false], "@wgmma_padded_first", "%a:[(130,133):(192,1)]"),
        ([131, 136, 136], [true, false], "@wgmma_padded_first", "%a:[(131,136):(1,192)]"),
    ] {
        let text = right(&odd(size, columns, &format!("by={by}")));
        assert!(text.contains(&format!("{copy}.f16.GL")), "{text}");
    }
}

#[test]
fn large_products_whose_rows_begin_anywhere_are_of_copies() {
    let sm_90a = sm_90a();
    let decomposed = |size, columns| {
        let src = odd(size, columns, "");
        decomposed(&src, &sm_90a).unwrap_or_else(|e| panic!("{src}{:?}", e.into_vec()))
    };
    // One factor, and both.
    let one = decomposed([4095, 4097, 4104], [false, false]);
    assert!(one.rankings[0].instances[0].by.starts_with("@wgmma_padded["), "{:?}", one.rankings);
    let both = decomposed([4095, 4097, 4097], [false, true]).text;
    assert!(both.contains("%a:[(4095,4097):(4160,1)]"), "{both}");
    assert!(both.contains("%b:[(4097,4097):(1,4160)]"), "{both}");
    // A copy takes longer than what it saves.
    let small = [
        ([256, 257, 256], [false, false]),
        ([500, 501, 504], [false, false]),
        ([16, 4097, 4096], [false, true]),
    ];
    for &(size, columns) in testing::one_of("small copies", &small) {
        let small = decomposed(size, columns);
        assert!(!small.rankings[0].instances[0].by.starts_with("@wgmma_padded"), "{size:?}");
    }
}

#[test]
fn products_whose_results_no_box_holds_are_of_warp_groups() {
    let sm_90a = sm_90a();
    let products = [([4097, 4097, 4097], [true, true]), ([2049, 2047, 2050], [false, true])];
    for &(size, columns) in testing::one_of("no box", &products) {
        let src = odd(size, columns, "");
        let d = decomposed(&src, &sm_90a).unwrap_or_else(|e| panic!("{src}{:?}", e.into_vec()));
        assert!(d.text.contains("atom=wgmma."), "{}", d.text);
        assert!(d.estimates.iter().all(|(_, e)| !e.spills()), "{:?}", d.estimates);
    }
}

#[test]
fn small_products_of_any_size_have_small_tiles() {
    let src = "carbyne 2
sym M, N, K
    where M >= 0, N >= 0, K >= 0, M <= 65536, N <= 65536, K <= 65536, K % 8 == 0, N % 8 == 0
    typical M=1000, N=1000, K=1000
%A:[M,K].f16.GL
%B:[(K,N):(1,K)].f16.GL
%C:[M,N].f16.GL
MatMul.set @gemm (%A, %B) -> (%C) acc=f32
";
    let d = decomposed(src, &sm_90a()).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
    assert!(d.text.contains("by=@wgmma_small_pairs[BM=64, BN=128,"), "{}", d.text);
}

#[test]
fn small_products_whose_rows_begin_anywhere_in_lines_are_of_large_clusters() {
    let src = odd([1000, 1000, 1000], [false, true], "");
    let d = decomposed(&src, &sm_90a()).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
    assert!(d.text.contains("by=@wgmma_tile_clusters[W=1, BM=64, BN=144,"), "{}", d.text);
    assert!(d.text.contains("CL=8] {"), "{}", d.text);
    // Of nine slices of the tile of B each block copies one in every iteration, and the last one in
    // one of eight.
    assert!(d.text.contains("if (k % 8 == @rank) {"), "{}", d.text);
    // Rows of the result leave in boxes of 144 bytes: narrower ones take as long, and these begin
    // at different banks.
    assert!(d.text.contains(".tensormap([64,72])"), "{}", d.text);
    for pin in ["BM=64,BN=144,CL=8", "BM=64,BN=144,CL=4", "BM=64,BN=144,CL=2"] {
        let text = right(&product([500, 287, 136], &format!("@wgmma_tile_clusters[{pin}]")));
        assert!(text.contains("multicast="), "{pin}: {text}");
    }
    let text = right(&product([500, 380, 72], "@wgmma_tile_clusters[BM=64,BN=192,CL=8]"));
    assert!(text.contains("multicast=255"), "{text}");
    // One cluster: each block copies a quarter of the tile of B for all.
    let text = right(&product([250, 155, 72], "@wgmma_tile_clusters[BM=64,BN=160,CL=4]"));
    assert!(text.contains("multicast=15"), "{text}");
    // A result whose rows no box stores takes shared memory of its own.
    let text = right(&product([240, 354, 912], "@wgmma_tile_clusters[CL=4]"));
    assert!(text.contains("multicast=15"), "{text}");
}

#[test]
fn a_producer_begins_before_the_blocks_of_its_cluster_have_met() {
    // As many iterations as the ring has stages, and more.
    for k in [120, 200, 1208] {
        let text = right(&product([256, 288, k], "@wgmma_tile_clusters[BM=64,BN=144,CL=4]"));
        let (before, behind) = text.split_once("cluster.arrive_relaxed").expect("a cluster");
        // Its own factor needs no other block; what is copied for others waits until their
        // mbarriers are there.
        let early = "fence.async\n    for (k = 0; k < min(";
        assert!(before.contains(early) && before.contains("(%mA["), "{text}");
        assert!(!before.contains("multicast="), "{text}");
        let (producer, _) = behind.split_once("#leads").expect("consumers");
        let shared = producer.find("multicast=15").expect("copies for all");
        let own = producer.find("if (0 < k) {").expect("own copies");
        assert!(shared < own && producer.matches("(%mA[").count() == 1, "{text}");
    }
    // Where blocks take several tiles, and where a block copies for itself alone, nothing is early.
    let text = right(&tiles(2, "cluster=2 consumers=1"));
    assert!(!text.contains("if (0 < k) {"), "{text}");
    let text = right(&tiles(1, "consumers=1"));
    assert!(!text.contains("if (0 < k) {"), "{text}");
}

#[test]
fn rows_that_end_within_a_unit_of_the_copy_engine_are_stored_by_threads() {
    let product = |n: i64| {
        format!(
            "carbyne 2
%A:[1000,1000].f16.GL
%B:[(1000,{n}):(1,1000)].f16.GL
%C:[(1000,{n}):(1000,1)].f16.GL
MatMul.set @gemm (%A, %B) -> (%C) acc=f32
"
        )
    };
    let table = sm_90a();
    let text =
        |n| decomposed(&product(n), &table).unwrap_or_else(|e| panic!("{:?}", e.into_vec())).text;
    let (whole, cut) = (text(1000), text(999));
    assert!(whole.contains("cp.async.bulk.tensor.2d.global.shared"), "{whole}");
    assert!(!cut.contains("cp.async.bulk.tensor.2d.global.shared"), "{cut}");
    // It would write behind the ends of rows.
    let edited = whole.replace("%C:[(1000,1000):(1000,1)]", "%C:[(1000,999):(1000,1)]");
    let edited = edited.replace("%B:[(1000,1000):(1,1000)]", "%B:[(1000,999):(1,1000)]");
    let errors = decomposed(&edited, &table).map(drop).expect_err("it is refused").into_vec();
    let told = |d: &carbyne_ir::diag::Diagnostic| {
        d.code == Code::AtomMismatch && d.label.contains("rows of the tensor have 1998 bytes")
    };
    assert!(errors.iter().any(told), "{errors:?}");
}

#[test]
fn what_needs_too_much_memory_in_the_end_gives_way_to_the_next() {
    // Rows of the result are stored by threads, for which its tile has shared memory of its own.
    let src = product([253, 283, 1000], "@wgmma_tile_clusters[BM=64,BN=96,CL=4]");
    let src = src.replace("%C:[253,283]", "%C:[(253,283):(1,256)]");
    let src = src.replace("%A:[253,1000]", "%A:[(253,1000):(1,256)]");
    let d = decomposed(&src, &sm_90a()).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
    assert!(d.text.contains("ST=10, BAND=4, CL=4]"), "{}", d.text);
}

#[test]
fn copies_of_factors_may_have_sizes_that_are_known_at_launch() {
    let src = "carbyne 2
sym M, N, K
    where M >= 0, N >= 0, K >= 0, M <= 65536, N <= 65536, K <= 65536, K % 8 == 0
    typical M=4095, N=4097, K=4104
%A:[M,K].f16.GL
%B:[K,N].f16.GL
%C:[M,N].f16.GL
MatMul.set @gemm (%A, %B) -> (%C) acc=f32
";
    let d = decomposed(src, &sm_90a()).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
    assert!(d.text.contains("%b:[(K,N):(ceil_div(N, 64) * 64,1)].f16.GL"), "{}", d.text);
    assert!(d.text.contains("%b.tensormap("), "{}", d.text);
}

#[test]
fn boxes_are_of_tensors_whose_coordinates_fit_32_bits() {
    let deep = |k: i64| product([128, 128, k], "@wgmma_tiles");
    let text =
        |k| decomposed(&deep(k), &sm_90a()).unwrap_or_else(|e| panic!("{:?}", e.into_vec())).text;
    assert!(text((1 << 31) - 64).contains(".tensormap("));
    let text = text(1 << 31);
    assert!(!text.contains(".tensormap(") && text.contains("wgmma.m64"), "{text}");
    let by_hand = include_str!("../../../examples/tma_copy.cby").to_owned();
    let by_hand = [
        ("let M = 200, N = 136", "let M = 8, N = 2200000064"),
        (".f16.", ".u8."),
        ("BM * BN * 2", "BM * BN"),
        ("(3,4,3)", "(2,4,3)"),
    ]
    .iter()
    .fold(by_hand, |text, (from, to)| text.replace(from, to));
    assert!(by_hand.contains("2200000064"), "{by_hand}");
    let errors = decomposed(&by_hand, &sm_90a()).map(drop).unwrap_err().into_vec();
    let said = |d: &carbyne_ir::diag::Diagnostic| {
        d.notes.iter().any(|n| n.contains("coordinates of boxes have 32 bits"))
    };
    assert!(errors.iter().any(said), "{errors:?}");
}

#[test]
fn what_cannot_be_is_refused() {
    let table = sm_90a();
    let refused = |src: &str| decomposed(src, &table).map(drop).unwrap_err().into_vec();
    let odd = tiles(1, "cluster=2").replace("@b < 2", "@b < 3").replace("u < 2 * 1", "u < 2");
    let errors = refused(&odd);
    assert!(errors.iter().any(|d| d.code == Code::PinsConflict), "{errors:?}");
    for attrs in
        ["cluster=(2,2)", "cluster=0", "consumers=3", "consumers=(1,2)", "consumers=1000000"]
    {
        let errors = refused(&tiles(4, attrs));
        assert!(errors.iter().any(|d| d.code == Code::Attribute), "{attrs}: {errors:?}");
    }
}

#[test]
fn the_smallest_program_is_a_kernel_that_people_read() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/gemm.cby");
    let src = std::fs::read_to_string(folder).expect("an example");
    let d = decomposed(&src, &sm_90a()).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
    assert!(d.text.lines().count() < 155, "{}", d.text);
    for word in ["atom=wgmma.", "atom=cp.async.bulk.tensor.", "atom=stmatrix."] {
        assert!(d.text.contains(word), "{word}\n{}", d.text);
    }
}

#[test]
fn tiles_of_a_batch_can_be_pinned() {
    let src = "carbyne 2
%A:[2,128,64].f16.GL
%B:[(2,64,128):(8192,1,64)].f16.GL
%C:[2,128,128].f16.GL
MatMul.set @gemm (%A, %B) -> (%C) acc=f32 tile=(64,64,32)
";
    let table = AtomTable::new("sm_80".parse().expect("an architecture"));
    let d = decomposed(src, &table).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
    assert!(d.text.contains("BM=64, BN=64, BK=32"), "{}", d.text);
    run(&d.program, &table).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
}
