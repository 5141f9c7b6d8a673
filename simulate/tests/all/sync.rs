//! Tests synchronization statements in the simulator: which accesses they order, when copies are
//! complete, and which misuse is an error. Most programs run in a correct and in wrong versions.

use crate::support;
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_simulate::{Options, Report, simulate};

/// Two warps pass values through shared memory; the second waits for the first.
fn hand_on(arrive: &str, wait: &str) -> String {
    format!(
        "carbyne 2
%in:[32].f32.GL
%out:[32].f32.GL
#grid:[1].block
#cta:[64].thread
Move @hand_on <<<#grid, #cta>>> (%in) -> (%out) {{
  #w:[2].[32].thread = #cta.tile([32])
  #first:[].thread = #w[0].scalar()
  #second:[].thread = #w[1].scalar()
  @t = #cta.indices()
  Allocate %s:[32].f32.SH
  Allocate %x:[1].f32.RF
  Allocate %full:[1].mbarrier.SH
  Spec <<<#grid, #cta[0]>>> (%full) -> () {{
    mbarrier.init(%full, 32)
  }}
  barrier
  Spec <<<#grid, #w[0]>>> (%in, %full) -> (%s) {{
    @lane = #w[0].indices()
    Move <<<#grid, #first>>> (%in[@lane]) -> (%s[@lane]) atom=cp.async.ca.b32
    {arrive}
  }}
  Spec <<<#grid, #w[1]>>> (%s, %full) -> (%out, %x) {{
    @lane = #w[1].indices()
    {wait}
    Move <<<#grid, #second>>> (%s[31 - @lane]) -> (%x)
    Move <<<#grid, #second>>> (%x) -> (%out[31 - @lane])
  }}
}}
"
    )
}

fn run(text: &str, arch: Arch) -> Result<Report, Box<Diagnostic>> {
    simulate(&support::program(text), &AtomTable::new(arch), &Options::default())
}

#[track_caller]
fn fails(text: &str, code: Code, part: &str) {
    let e = run(text, Arch::Sm90a).err().unwrap_or_else(|| panic!("it runs\n{text}"));
    let all = format!("{e} {} {:?}", e.label, e.help);
    assert!(e.code == code && all.contains(part), "{all}\n{text}");
}

#[test]
fn a_wait_comes_after_the_arrivals_and_their_copies() {
    let text = hand_on("mbarrier.async_arrive(%full)", "mbarrier.wait(%full, 0)");
    for arch in [Arch::Sm80, Arch::Sm90a] {
        let report = run(&text, arch).unwrap_or_else(|e| panic!("{e}: {}", e.label));
        assert_eq!(report.kernels[0].elements, 32);
    }
    let waited =
        hand_on("async.commit async.wait(0) mbarrier.arrive(%full)", "mbarrier.wait(%full[0], 0)");
    assert!(run(&waited, Arch::Sm80).is_ok());
}

#[test]
fn without_the_wait_it_is_a_race_or_too_early() {
    let arrive = "async.commit async.wait(0) mbarrier.arrive(%full)";
    fails(&hand_on(arrive, ""), Code::Race, "no barrier is between");
    fails(&hand_on("mbarrier.async_arrive(%full)", ""), Code::Race, "no barrier is between");
    // A new barrier passes parity 1, so this does not wait for the first phase.
    fails(&hand_on("", "mbarrier.wait(%full, 1)"), Code::Race, "no barrier is between");
    // An arrival alone does not complete the copies of its thread.
    fails(
        &hand_on("mbarrier.arrive(%full)", "mbarrier.wait(%full, 0)"),
        Code::Uninitialized,
        "an asynchronous copy to it is pending",
    );
}

#[test]
fn faults_of_barriers() {
    let arrive = "async.commit async.wait(0) mbarrier.arrive(%full)";
    let wait = "mbarrier.wait(%full, 0)";
    let right = hand_on(arrive, wait);
    run(&right, Arch::Sm90a).unwrap_or_else(|e| panic!("{e}: {}", e.label));
    let with = |from: &str, to: &str| right.replace(from, to);
    fails(&with("init(%full, 32)", "init(%full, 33)"), Code::UnmetWait, "lacks 1 of 33 arrivals");
    let by_lane = with("mbarrier.arrive(%full)", "mbarrier.arrive(%full, @lane)");
    fails(&by_lane, Code::NoSync, "count from 1 to 1048575");
    fails(
        &with("mbarrier.arrive(%full)", "mbarrier.arrive(%full, 5)"),
        Code::BarrierMisuse,
        "more arrivals",
    );
    fails(&with("mbarrier.init(%full, 32)", "fence.async"), Code::Uninitialized, "%full");
    fails(&with("  barrier\n", ""), Code::Race, "%full");
    fails(
        &with("<<<#grid, #cta[0]>>>", "<<<#grid, #w[0]>>>"),
        Code::BarrierMisuse,
        "initialized twice",
    );
}

#[test]
fn the_clusters_barrier_orders_all_threads() {
    let both = |before: &str, after: &str| {
        format!(
            "carbyne 2
%in:[64].f32.GL
%out:[64].f32.GL
#grid:[1].block
#cta:[64].thread
Move @swap <<<#grid, #cta>>> (%in) -> (%out) {{
  #one:[].thread = #cta.scalar()
  @t = #cta.indices()
  Allocate %s:[64].f32.SH
  Allocate %x:[1].f32.RF
  Move <<<#grid, #one>>> (%in[@t]) -> (%s[@t])
  {before}
  {after}
  Move <<<#grid, #one>>> (%s[63 - @t]) -> (%x)
  Move <<<#grid, #one>>> (%x) -> (%out[63 - @t])
}}
"
        )
    };
    run(&both("cluster.arrive", "cluster.wait"), Arch::Sm90).unwrap_or_else(|e| panic!("{e}"));
    let race = "no barrier is between";
    fails(&both("cluster.arrive_relaxed", "cluster.wait"), Code::Race, race);
    fails(&both("cluster.arrive", ""), Code::Race, race);
    fails(&both("", "cluster.wait"), Code::BarrierMisuse, "has not arrived");
    fails(&both("cluster.arrive", "cluster.arrive"), Code::BarrierMisuse, "without a wait between");
    let some = both("if (@t < 32) { cluster.arrive }", "if (@t < 32) { cluster.wait }");
    fails(&some, Code::Race, race);
    let half = both("cluster.arrive", "if (@t < 32) { cluster.wait } else { cluster.wait }");
    run(&half, Arch::Sm90).unwrap_or_else(|e| panic!("{e}"));
    let never = both("if (@t < 32) { cluster.arrive cluster.wait }", "barrier");
    fails(&never, Code::UnmetWait, "lacks 32 of 64 arrivals");
    let lanes = both("if (@t < 8) { cluster.arrive }", "");
    fails(&lanes, Code::Deadlock, "24 threads");
}

/// Warp 0 fills a ring of two slots, warp 1 empties it; both execute six iterations.
fn ring(empty_parity: &str, release: &str) -> String {
    format!(
        "carbyne 2
%in:[192].f32.GL
%out:[192].f32.GL
#grid:[1].block
#cta:[64].thread
Move @ring <<<#grid, #cta>>> (%in) -> (%out) {{
  #w:[2].[32].thread = #cta.tile([32])
  @t = #cta.indices()
  Allocate %s:[2].[32].f32.SH
  Allocate %full:[2].mbarrier.SH
  Allocate %empty:[2].mbarrier.SH
  Spec <<<#grid, #cta[0]>>> (%full, %empty) -> () {{
    mbarrier.init(%full, 32)
    mbarrier.init(%empty, 32)
  }}
  barrier
  Spec <<<#grid, #w[0]>>> (%in, %full, %empty) -> (%s) {{
    for (k = 0; k < 6; k += 1) {{
      mbarrier.wait(%empty[k % 2], {empty_parity})
      Move <<<#grid, #w[0].scalar()>>> (%in[k * 32 + @t % 32]) -> (%s[k % 2][@t % 32])
      mbarrier.arrive(%full[k % 2])
    }}
  }}
  Spec <<<#grid, #w[1]>>> (%s, %full, %empty) -> (%out) {{
    for (k = 0; k < 6; k += 1) {{
      mbarrier.wait(%full[k % 2], k / 2 % 2)
      Move <<<#grid, #w[1].scalar()>>> (%s[k % 2][31 - @t % 32]) -> (%out[k * 32 + 31 - @t % 32])
      {release}
    }}
  }}
}}
"
    )
}

#[test]
fn a_ring_of_slots() {
    let release = "mbarrier.arrive(%empty[k % 2])";
    let report = run(&ring("(k / 2 + 1) % 2", release), Arch::Sm90a);
    let report = report.unwrap_or_else(|e| panic!("{e}: {}", e.label));
    assert_eq!(report.kernels[0].elements, 192);
    // No thread waits for a slot to be empty again.
    fails(&ring("1 - 1 + (k / 2 + 1) % 2", ""), Code::UnmetWait, "32 arrivals");
    fails(&ring("k / 2 % 2", release), Code::UnmetWait, "32 arrivals");
}

/// Loads a box at the corner of a tensor of 20 by 24, and stores it to another.
fn corner(load: &str, after: &str) -> String {
    format!(
        "carbyne 2
%in:[20,24].f32.GL
%out:[16,16].f32.GL
%back:[20,24].f32.GL
#grid:[1].block
#cta:[32].thread
Spec @corner <<<#grid, #cta>>> (%in, %back) -> (%out, %back) {{
  #one:[].thread = #cta[0]
  %from = %in.tensormap([16,16], swizzle=(2,4,3))
  %to = %back.tensormap([16,16], swizzle=(2,4,3))
  Allocate %s:[16,16].f32.SH{{swizzle=(2,4,3)}}
  Allocate %full:[1].mbarrier.SH
  Spec <<<#grid, #one>>> () -> (%full) {{
    mbarrier.init(%full, 1)
    fence.async
  }}
  barrier
  Spec <<<#grid, #one>>> (%in, %full) -> (%s) {{
    {load}
    Move <<<#grid, #one>>> (%from[1, 1])
        -> (%s) bar=%full atom=cp.async.bulk.tensor.2d.shared.global
  }}
  {after}
  Move <<<#grid, #cta>>> (%s) -> (%out)
  Spec <<<#grid, #one>>> (%s) -> (%back) {{
    Move <<<#grid, #one>>> (%s) -> (%to[1, 1]) atom=cp.async.bulk.tensor.2d.global.shared
    bulk.commit
    bulk.wait_read(0)
  }}
}}
"
    )
}

#[test]
fn boxes_at_an_edge_read_zeros_and_write_nothing_outside() {
    let text = corner("mbarrier.expect(%full, 1024)", "mbarrier.wait(%full, 0)");
    let report = run(&text, Arch::Sm90a).unwrap_or_else(|e| panic!("{e}: {}", e.label));
    let get = |name: &str| report.outputs.get(name).expect("a tensor");
    let (input, out) = (get("in"), get("out"));
    for (i, j) in (0..16).flat_map(|i| (0..16).map(move |j| (i, j))) {
        let inside = i + 16 < 20 && j + 16 < 24;
        let want = if inside { input.values[(i + 16) * 24 + j + 16] } else { 0 };
        assert_eq!(out.values[i * 16 + j], want, "{i} {j}");
    }
}

#[test]
fn bytes_of_boxes_are_counted_and_seen_after_the_wait() {
    let (expect, wait) = ("mbarrier.expect(%full, 1024)", "mbarrier.wait(%full, 0)");
    // The box has 1024 bytes, independently of the elements outside of the tensor.
    fails(&corner("mbarrier.expect(%full, 1040)", wait), Code::UnmetWait, "lacks 16 bytes");
    fails(
        &corner("mbarrier.expect(%full, 512)", wait),
        Code::UnmetWait,
        "has 512 bytes more than it expects",
    );
    fails(&corner("", wait), Code::UnmetWait, "lacks 1 of 1 arrival, and has 1024 bytes more");
    fails(&corner(expect, "barrier"), Code::Uninitialized, "is pending");
}

#[test]
fn architectures_without_the_statement_say_which_have_it() {
    let text = hand_on("mbarrier.async_arrive(%full)", "mbarrier.wait(%full, 0)");
    let e = run(&text, Arch::Sm75).err().expect("no mbarriers there");
    assert_eq!(e.code, Code::NoSync);
    assert_eq!(e.help.unwrap(), "compile for `sm_80`, `sm_86`, `sm_89`, `sm_90`, `sm_90a`");
}

/// Pairs of blocks. Each block loads half of a tile for both with `load`, and arrives at their
/// mbarriers twice with `release`.
fn shared_tile(load: &str, release: &str) -> String {
    format!(
        "carbyne 2
%in:[4,2,64].f32.GL
%out:[4,2,128].f32.GL
#grid:[(2,4):(1,2)].block
#clusters:[1,4].[2,1].block = #grid.tile([2,1])
#cta:[32].thread
Spec @pairs <<<#clusters, #cta>>> (%in) -> (%out) {{
  #one:[].thread = #cta[0]
  @r, @c = #grid.indices()
  Allocate %s:[128].f32.SH
  Allocate %full:[1].mbarrier.SH
  Allocate %empty:[1].mbarrier.SH
  Spec <<<#grid, #one>>> () -> (%full, %empty) {{
    mbarrier.init(%full, 1)
    mbarrier.init(%empty, 2)
    fence.mbarrier_init
  }}
  cluster.arrive
  cluster.wait
  Spec <<<#grid, #one>>> (%in, %full, %empty) -> (%s) {{
    mbarrier.expect(%full, 512)
    Move <<<#grid, #one>>> (%in[@c, @r, _]) -> (%s.tile([64])[@r]) bar=%full {load}
    for (p = 0; p < 2; p += 1) {{
      {release}
    }}
  }}
  mbarrier.wait(%full, 0)
  mbarrier.wait(%empty, 0)
  Move <<<#grid, #cta>>> (%s) -> (%out[@c, @r, _])
}}
"
    )
}

#[test]
fn blocks_of_a_cluster_share_copies_and_arrive_at_each_other() {
    let load = "multicast=3 atom=cp.async.bulk.shared.global.multicast";
    let text = shared_tile(load, "mbarrier.arrive(%empty.peer(p))");
    let report = run(&text, Arch::Sm90a).unwrap_or_else(|e| panic!("{e}: {}", e.label));
    assert_eq!(report.kernels[0].blocks_run.len(), 8);
    let get = |name: &str| report.outputs.get(name).expect("a tensor");
    let (input, out) = (get("in"), get("out"));
    for c in 0..4 {
        for (rank, i) in (0..2).flat_map(|rank| (0..128).map(move |i| (rank, i))) {
            let at = c * 256 + rank * 128 + i;
            assert_eq!(out.values[at], input.values[c * 128 + i], "{c} {rank} {i}");
        }
    }
}

#[test]
fn misuse_by_other_blocks_is_named() {
    let both = "multicast=3 atom=cp.async.bulk.shared.global.multicast";
    let own = "atom=cp.async.bulk.shared.global";
    let arrive = "mbarrier.arrive(%empty.peer(p))";
    fails(&shared_tile(own, arrive), Code::UnmetWait, "256 bytes");
    fails(
        &shared_tile(both, "mbarrier.arrive(%empty.peer(1), 3)"),
        Code::BarrierMisuse,
        "more arrivals",
    );
    // Either block may arrive twice before the other has arrived once.
    let twice = shared_tile(both, "mbarrier.arrive(%empty.peer(0))");
    fails(&twice, Code::BarrierMisuse, "may count in that phase");
    let first = shared_tile(both, "if (@r == 0) { mbarrier.arrive(%empty.peer(0), 2) }");
    fails(&first, Code::UnmetWait, "phase 2");
    let nine = "multicast=9 atom=cp.async.bulk.shared.global.multicast";
    fails(&shared_tile(nine, arrive), Code::BarrierMisuse, "0b1001 of a cluster of 2");
}
