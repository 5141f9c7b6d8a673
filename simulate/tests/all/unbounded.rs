//! Tests that asynchronous work without a wait, in a long loop, takes no more memory than the
//! limits allow: a run that would take more ends with an error.

use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_simulate::{Options, simulate};

fn run(text: &str) -> Result<(), Box<Diagnostic>> {
    simulate(&crate::support::program(text), &AtomTable::new(Arch::Sm90a), &Options::default())
        .map(drop)
}

/// MatMuls of a warp group in a loop, with `each` after each and `end` after all.
fn multiply(turns: u32, each: &str, end: &str) -> String {
    format!(
        "carbyne 2
%C:[64,8].f32.GL
#grid:[1].block
#cta:[128].thread
Spec @k <<<#grid, #cta>>> (%C) -> (%C) {{
  #one:[].thread = #cta.scalar()
  @t = #cta.indices()
  Allocate %A:[((8,8),(8,2)):((8,64),(1,512))].f16.SH{{align=128}}
  Allocate %B:[((8,2),(8,1)):((1,64),(8,64))].f16.SH{{align=128}}
  Allocate %D:[64,8].f32.RF{{tv=((4,8,4),(2,2,1)):((128,1,16),(64,8,512)) over #cta}}
  Init <<<#grid, #cta>>> (1) -> (%A)
  Init <<<#grid, #cta>>> (1) -> (%B)
  Init <<<#grid, #cta>>> (0) -> (%D)
  fence.async
  barrier
  wgmma.fence
  for (i = 0; i < {turns}; i += 1) {{
    MatMul <<<#grid, #cta>>> (%A, %B) -> (%D.mine) acc=f32 atom=wgmma.m64n8k16.f32.f16.ss
    {each}
  }}
  {end}
}}
"
    )
}

#[test]
fn multiplications_are_waited_for_now_and_then() {
    for each in ["wgmma.commit wgmma.wait(0)", "wgmma.commit wgmma.wait(7)"] {
        run(&multiply(1100, each, "wgmma.wait(0)")).unwrap_or_else(|e| panic!("{each}: {e}"));
    }
    for each in ["", "wgmma.commit"] {
        let e = run(&multiply(1100, each, "wgmma.commit wgmma.wait(0)")).expect_err(each);
        assert_eq!(e.code, Code::TooLarge, "{each}: {e}");
    }
    let e = run(&multiply(2, "wgmma.commit", "")).expect_err("no thread waits");
    assert!(e.code == Code::Race && e.message.contains("may end while an asynchronous MatMul"));
}

/// Bulk copies that add a tile in a loop, with `each` after each.
fn accumulate(turns: u32, each: &str) -> String {
    format!(
        "carbyne 2
%C:[4096].f32.GL
#grid:[1].block
#cta:[128].thread
Spec @k <<<#grid, #cta>>> (%C) -> (%C) {{
  #one:[].thread = #cta[0]
  Allocate %s:[4096].f32.SH{{align=128}}
  Init <<<#grid, #cta>>> (1) -> (%s)
  fence.async
  barrier
  Spec <<<#grid, #one>>> (%s) -> (%C) {{
    for (i = 0; i < {turns}; i += 1) {{
      Move.add <<<#grid, #one>>> (%s) -> (%C) atom=cp.reduce.async.bulk.global.shared.add.f32
      {each}
    }}
    bulk.commit
    bulk.wait(0)
  }}
}}
"
    )
}

#[test]
fn bulk_copies_are_waited_for_now_and_then() {
    run(&accumulate(530, "bulk.commit bulk.wait(1)")).unwrap_or_else(|e| panic!("{e}"));
    for (each, turns) in [("", 530), ("bulk.commit", 530), ("bulk.commit bulk.wait_read(0)", 1100)]
    {
        let e = run(&accumulate(turns, each)).expect_err(each);
        assert_eq!(e.code, Code::TooLarge, "{each}: {e}");
    }
}

#[test]
fn empty_groups_take_no_memory() {
    let text = "carbyne 2
%A:[32].f32.GL
#grid:[1].block
#cta:[32].thread
Spec @k <<<#grid, #cta>>> (%A) -> (%A) {
  Allocate %full:[1].mbarrier.SH
  Spec <<<#grid, #cta[0]>>> () -> (%full) {
    mbarrier.init(%full, 1)
  }
  barrier
  for (i = 0; i < 100000; i += 1) {
    async.commit
    bulk.commit
    Spec <<<#grid, #cta[0]>>> (%full) -> () {
      mbarrier.async_arrive(%full)
    }
  }
  async.wait(7)
  bulk.wait(7)
}
";
    run(text).unwrap_or_else(|e| panic!("{e}"));
}
