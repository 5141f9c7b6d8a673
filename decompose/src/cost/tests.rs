//! Tests the cost model against amounts that were computed by hand for sm_80. It has 4 schedulers,
//! and 128 bytes of shared memory a cycle; an `mma.m16n8k16` keeps a scheduler's matrix unit busy
//! for 8 cycles (2048 multiply-adds at 256 a cycle), an `ex2` its special unit for 8.

use crate::cost::*;
use carbyne_atoms::{Arch, machine};
use carbyne_ir::text;

fn bounded(src: &str) -> Result<Estimate, Refusal> {
    let module = text::parse(src).unwrap_or_else(|e| panic!("{e:?}"));
    let module = carbyne_ir::resolve::elaborate(&module, src).unwrap_or_else(|e| panic!("{e:?}"));
    let p = crate::checked(&module, src).unwrap_or_else(|e| panic!("{e:?}"));
    bound(&p, p.kernels[0], &AtomTable::new(Arch::Sm80), &machine(Arch::Sm80))
}

fn gemm(tile: (i64, i64, i64), threads: i64, stages: i64, more: &str) -> String {
    let (bm, bn, bk) = tile;
    format!(
        "carbyne 2
let M = 4096, N = 4096, K = 4096
let BM = {bm}, BN = {bn}, BK = {bk}
%A:[M,K].f16.GL
%B:[K,N].f16.GL
%C:[M,N].f16.GL
MatMul.set @gemm <<<#grid:[@bm < M / BM, @bn < N / BN], #cta:[{threads}]>>>
    (%A, %B) -> (%C) acc=f32 {{
  %c:[BM,BN].f32 = 0
  for (k = 0; k < K / BK; k += 1) stages={stages} {{
    Move (%A.tile([BM,BK])[@bm, k]) -> (%a:SH)
    Move (%B.tile([BK,BN])[k, @bn]) -> (%b:SH)
    MatMul (%a, %b) -> (%c) {more}
  }}
  %C.tile([BM,BN])[@bm, @bn] = cast(%c, f16)
}}
"
    )
}

#[test]
fn a_product_of_matrices() {
    let e = bounded(&gemm((128, 128, 32), 128, 3, "")).unwrap();
    assert_eq!((e.blocks, e.threads), (Some(1024), 128));
    // Three stages of 128·32 and 32·128 halves.
    assert_eq!(e.shared_bytes, 3 * 16_384);
    // 8·16·256 instructions a block.
    let blocks = 1024.0;
    assert_eq!(e[Resource::Matrix].amount, blocks * 32_768.0 * 8.0);
    // 128 steps of a stage, and C.
    assert_eq!(e[Resource::L2].amount, blocks * (128.0 * 16_384.0 + 32_768.0));
    // A stage is written once, and read twice by 2·2 warps; C leaves by lines of 128 bytes.
    assert_eq!(e[Resource::Shared].amount, blocks * (128.0 * (128.0 + 256.0) + 256.0));
    // 128 registers for sums, 16 for each factor of a step, which a thread holds beside its results
    // as halves or not at all.
    assert!((128 + 32..=128 + 64 + 32).contains(&e.registers), "{}", e.registers);
    // The three matrices fit into 40 MiB but for a part.
    let once = 3.0 * 4096.0 * 4096.0 * 2.0;
    assert!((once..1.5 * once).contains(&e[Resource::Dram].amount), "{e:?}");
    // No faster than the matrix units, and not many times slower.
    let peak = 4096f64.powi(3) / 1024.0 / 108.0;
    assert!((peak..2.0 * peak).contains(&e.cycles), "{} {peak}", e.cycles);
}

#[test]
fn warps_read_what_they_share_of_a_factor_once_each() {
    let wavefronts =
        |more: &str| bounded(&gemm((128, 128, 32), 128, 3, more)).unwrap()[Resource::Shared].amount;
    // (gn + gm) times 64 wavefronts of a factor, and 128 to write both; 256 lines of C.
    let by = |n: f64| 1024.0 * (128.0 * (128.0 + 64.0 * n) + 256.0);
    assert_eq!(wavefronts("warps=(2,2)"), by(4.0));
    assert_eq!(wavefronts("warps=(1,4)"), by(5.0));
    assert_eq!(wavefronts("warps=(4,1)"), by(5.0));
}

#[test]
fn larger_tiles_and_more_stages_take_less() {
    let cycles = |tile, threads, stages| {
        bounded(&gemm(tile, threads, stages, "")).unwrap_or_else(|e| panic!("{e}")).cycles
    };
    let best = cycles((128, 128, 32), 128, 3);
    assert!(cycles((32, 32, 32), 128, 3) > 1.5 * best);
    assert!(cycles((128, 128, 32), 128, 1) > best);
    assert!(cycles((32, 64, 32), 32, 3) > best);
}

#[test]
fn what_no_block_can_hold_is_refused() {
    let refused = |tile, threads, stages| bounded(&gemm(tile, threads, stages, "")).unwrap_err();
    assert_eq!(
        refused((128, 256, 64), 256, 4),
        Refusal::Shared { bytes: 4 * 49_152, most: 166_912 }
    );
    // 256·256 sums over 128 threads; over 512, of which each has 128 registers at most.
    let registers = |n, most| Refusal::Registers { name: "c".to_owned(), registers: n, most };
    assert_eq!(refused((256, 256, 32), 128, 2), registers(512, 255));
    assert_eq!(refused((512, 256, 16), 512, 2), registers(256, 128));
}

#[test]
fn a_copy() {
    let src = "carbyne 2
let M = 8192, N = 8192, BM = 4, BN = 1024
%A:[M,N].f16.GL
%B:[M,N].f16.GL
Move @copy <<<#grid:[@i < M / BM, @j < N / BN], #cta:[128]>>> (%A) -> (%B) {
  Move (%A.tile([BM,BN])[@i, @j]) -> (%x)
  Move (%x) -> (%B.tile([BM,BN])[@i, @j])
}
";
    let e = bounded(src).unwrap();
    let bytes = 2.0 * 8192.0 * 8192.0 * 2.0;
    assert_eq!((e[Resource::L2].amount, e[Resource::Dram].amount), (bytes, bytes));
    // 4096 halves, 8 an access, 32 accesses an instruction; once to read and once to write.
    assert_eq!(e.instructions, 2.0 * 16.0);
    assert_eq!(e[Resource::Barriers].amount, 0.0);
    // Four accesses of four registers a thread.
    assert_eq!(e.registers, 16);
    // 12 blocks of 40 registers and 128 threads.
    assert_eq!(e.blocks_per_sm, 12);
    let least =
        machine(Arch::Sm80).microseconds(bytes / machine(Arch::Sm80).dram_bytes_per_cycle());
    assert!((least..1.5 * least).contains(&e.microseconds), "{} {least}", e.microseconds);
    // Columns of single elements take one sector each, and as many instructions.
    let columns = src.replace("%B:[M,N].f16.GL", "%B:[(M,N):(1,M)].f16.GL");
    let e = bounded(&columns).unwrap();
    assert_eq!(e[Resource::L2].amount, bytes / 2.0 + bytes / 2.0 * 4.0);
}

#[test]
fn a_softmax() {
    let src = "carbyne 2
let M = 4096, N = 1024, BM = 4
%X:[M,N].f32.GL
%Y:[M,N].f32.GL
Spec @softmax <<<#grid:[@i < M / BM], #cta:[128]>>> (%X) -> (%Y) {
  Move (%X.tile([BM,N])[@i, 0]) -> (%x)
  %e = exp(%x - max(%x, axis=1))
  %Y.tile([BM,N])[@i, 0] = %e / sum(%e, axis=1)
}
";
    let e = bounded(src).unwrap();
    let bytes = 2.0 * 4096.0 * 1024.0 * 4.0;
    assert_eq!((e[Resource::L2].amount, e[Resource::Dram].amount), (bytes, bytes));
    // An exponential of each element, 32 an instruction; a quotient may be a product by a
    // reciprocal.
    let table = AtomTable::new(Arch::Sm80);
    let cheapest = |kind| {
        let rows = table.implementing(kind);
        let f32s =
            rows.filter(|a| a.operands.iter().all(|o| o.is_of(carbyne_ir::scalar::Scalar::F32)));
        f32s.map(|a| a.cost.issue_cycles).fold(f64::INFINITY, f64::min)
    };
    use carbyne_ir::ast::{SpecKind, UnaryOp};
    let each = cheapest(SpecKind::Unary(UnaryOp::Exp));
    assert_eq!(e[Resource::Special].amount, 4096.0 * 1024.0 / 32.0 * each);
    // Two Reductions: 32 lanes a row exchange 5 times, once for each of a warp's rows; and lines of
    // 128 bytes.
    assert_eq!(e[Resource::Shared].amount, 2.0 * 4096.0 * 5.0 + bytes / 128.0);
    assert!(e.shared_bytes == 0 && e.registers >= 32);
}

#[test]
fn every_example_has_a_bound() {
    for dir in ["examples", "examples/tile"] {
        let path = format!("{}/../{dir}", env!("CARGO_MANIFEST_DIR"));
        for entry in std::fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|e| e != "cby") {
                continue;
            }
            let src = std::fs::read_to_string(&path).unwrap();
            let Ok(module) = text::parse(&src) else { continue };
            let Ok(module) = carbyne_ir::resolve::elaborate(&module, &src) else { continue };
            let p = crate::checked(&module, &src).unwrap();
            let arch = Arch::Sm90a;
            let (table, machine) = (AtomTable::new(arch), machine(arch));
            for kernel in &p.kernels {
                match bound(&p, *kernel, &table, &machine) {
                    Ok(e) => {
                        let all = Resource::ALL.map(|r| e[r]);
                        let finite = all.iter().all(|u| u.amount.is_finite() && u.cycles >= 0.0);
                        assert!(finite && e.cycles > 0.0 && e.cycles < 1e9, "{path:?}: {e:?}");
                    }
                    Err(Refusal::Open) => assert!(p.specs[*kernel].body.is_none(), "{path:?}"),
                    Err(other) => panic!("{path:?}: {other}"),
                }
            }
        }
    }
}
