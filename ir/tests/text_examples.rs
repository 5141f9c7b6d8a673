//! Texts as people write them, and how they print.

use carbyne_ir::text::{parse, print};
use expect_test::{Expect, expect};

fn check(text: &str, printed: Expect) {
    let module = parse(text).unwrap_or_else(|e| panic!("{e:#?}"));
    let once = print(&module);
    printed.assert_eq(&once);
    let again = parse(&once).unwrap_or_else(|e| panic!("{e:#?}\n{once}"));
    assert_eq!(again, module);
    assert_eq!(print(&again), once);
}

#[test]
fn every_statement() {
    check(
        "// head
carbyne 1
// comment
let M = 256, N = 2 * M
sym K{min=64, max=4096, div=64}

%A:[M,K].f16.GL
%B:[(K,N):(1,K)].f16.GL{align=16} // trailing
#grid:[(2,2):(1,2)].block
#cta:[128].thread
MatMul.set @gemm <<<#grid, #cta>>> (%A, %B) -> (%C) acc=f32 tile=(96,160,16) { // open

  @bm, @bn = #grid.indices()
  #w:[2,2].[32].thread = #cta.tile([32]).reshape([2,2]:[2,1])

  // above
  %t:[2,2].[8,8].f16.SH = %1.tile([8,8])
  %u = %A.tile([2:2], _, [(2,2):(1,4)])[@bm, _, 3]
  Allocate %As:[128,32].f16.SH{?}
  Allocate %acc:[128,128].f32.RF{tv=((4,8),(2,2)):((16,1),(8,64)) over #cta}
  Init <<<#grid, #cta.scalar()>>> (0.0) -> (%acc.mine)
  for (k = 0; k < K / 32; k += 1) unroll {
    Move <<<#grid, #cta>>> (%u) // inside
      -> (%As) atom=cp.async.16
    async.commit
    async.wait(0)
    barrier
    // footer
  } // behind
  if (@bm < 1 && k == 0) { barrier(#w) } else { let Q = (M + 1) * 2 - (3 - k % 2) }
}
// end",
        expect![[r#"
            // head
            carbyne 1
            // comment
            let M = 256, N = 2 * M
            sym K{min=64, max=4096, div=64}

            %A:[M,K].f16.GL
            %B:[(K,N):(1,K)].f16.GL{align=16} // trailing
            #grid:[(2,2):(1,2)].block
            #cta:[128].thread
            MatMul.set @gemm <<<#grid, #cta>>> (%A, %B) -> (%C) acc=f32 tile=(96,160,16) { // open
              @bm, @bn = #grid.indices()
              #w:[2,2].[32].thread = #cta.tile([32]).reshape([2,2]:[2,1])

              // above
              %t:[2,2].[8,8].f16.SH = %1.tile([8,8])
              %u = %A.tile([2:2], _, [(2,2):(1,4)])[@bm, _, 3]
              Allocate %As:[128,32].f16.SH{?}
              Allocate %acc:[128,128].f32.RF{tv=((4,8),(2,2)):((16,1),(8,64)) over #cta}
              Init <<<#grid, #cta.scalar()>>> (0.0) -> (%acc.mine)
              for (k = 0; k < K / 32; k += 1) unroll {
                // inside
                Move <<<#grid, #cta>>> (%u) -> (%As) atom=cp.async.16
                async.commit
                async.wait(0)
                barrier
                // footer
                // behind
              }
              if (@bm < 1 && k == 0) {
                barrier(#w)
              } else {
                let Q = (M + 1) * 2 - (3 - k % 2)
              }
            }
            // end
        "#]],
    );
}
