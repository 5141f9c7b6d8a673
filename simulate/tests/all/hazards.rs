//! Tests errors that appear on hardware only occasionally. Most programs run in a correct and in a
//! wrong version, under the default schedule and under random ones, and the wrong version is
//! reported under all of them.

use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_simulate::{Inputs, Options, simulate};

const SCHEDULES: u64 = 8;

fn under(text: &str, schedule: Option<u64>) -> Result<(), Box<Diagnostic>> {
    let options = Options { schedule, inputs: Inputs::Seed(5), ..Options::default() };
    simulate(&crate::support::program(text), &AtomTable::new(Arch::Sm90a), &options).map(drop)
}

fn schedules() -> impl Iterator<Item = Option<u64>> {
    std::iter::once(None).chain((0..SCHEDULES).map(Some))
}

#[track_caller]
fn right(text: &str) {
    for schedule in schedules() {
        if let Err(e) = under(text, schedule) {
            panic!("{schedule:?}: {} {e}: {} {:?}\n{text}", e.code.as_str(), e.label, e.related);
        }
    }
}

/// Checks that a text is reported with this code and these words, and under random schedules with
/// any code of the simulator.
#[track_caller]
fn wrong(text: &str, code: Code, part: &str) -> Box<Diagnostic> {
    for schedule in schedules().skip(1) {
        let e = under(text, schedule).expect_err(text);
        assert!(e.code.as_str().starts_with("S05"), "{schedule:?}: {e}\n{text}");
    }
    let e = under(text, None).expect_err(text);
    let all = format!("{e} {} {:?} {:?}", e.label, e.related, e.help);
    assert!(e.code == code && all.contains(part), "{} {all}\n{text}", e.code.as_str());
    e
}

/// One thread writes to shared memory and one reads, both of one warp.
fn elected(writer: &str, reader: &str) -> String {
    format!(
        "carbyne 2
%A:[64].f32.GL
%B:[64].f32.GL
#grid:[1].block
#cta:[64].thread
Spec @k <<<#grid, #cta>>> (%A, %B) -> (%B) {{
  #writer:[].thread = {writer}
  #reader:[].thread = {reader}
  Allocate %s:[1].f32.SH
  Spec <<<#grid, #writer>>> (%A) -> (%s) {{
    Allocate %x:[1].f32.RF
    Move <<<#grid, #writer>>> (%A[0]) -> (%x[0])
    Move <<<#grid, #writer>>> (%x[0]) -> (%s[0])
  }}
  Spec <<<#grid, #reader>>> (%s) -> (%B) {{
    Allocate %x:[1].f32.RF
    Move <<<#grid, #reader>>> (%s[0]) -> (%x[0])
    Move <<<#grid, #reader>>> (%x[0]) -> (%B[0])
  }}
}}
"
    )
}

#[test]
fn the_elected_lane_is_unspecified() {
    let first = "#cta.tile([32])[0].elect()";
    right(&elected(first, first));
    let e = wrong(&elected(first, "#cta[0]"), Code::Race, "thread 31 writes %s[0]");
    assert!(e.message.contains("thread 0 reads"), "{e}");
    // Relying on the last lane is wrong as well.
    let text = elected(first, "#cta[31]");
    let found = (0..SCHEDULES).filter(|seed| under(&text, Some(*seed)).is_err()).count();
    assert!(found + 2 > SCHEDULES as usize, "only {found} of {SCHEDULES} schedules elect another");
    // The numbers of its threads in the tensor do not matter.
    let turned = "#cta.tile([32])[0].reshape([2,16]:[16,1]).elect()";
    right(&elected(turned, first));
}

#[test]
fn the_elected_lane_that_waits_must_have_issued() {
    let text = |waiter: &str| {
        format!(
            "carbyne 2
%A:[64].f32.GL
%B:[64].f32.GL
#grid:[1].block
#cta:[64].thread
Move @k <<<#grid, #cta>>> (%A) -> (%B) {{
  #one:[].thread = #cta.scalar()
  @t = #cta.indices()
  Allocate %s:[64].f32.SH{{align=128}}
  Allocate %x:[1].f32.RF
  Move <<<#grid, #one>>> (%A[@t]) -> (%x[0])
  Move <<<#grid, #one>>> (%x[0]) -> (%s[@t])
  fence.async
  barrier
  Spec <<<#grid, #cta.tile([32])[0].elect()>>> (%s) -> (%B) {{
    Move <<<#grid, #cta.tile([32])[0].elect()>>> (%s) -> (%B) atom=cp.async.bulk.global.shared
    bulk.commit
  }}
  Spec <<<#grid, {waiter}>>> () -> () {{
    bulk.wait_read(0)
  }}
}}
"
        )
    };
    right(&text("#cta.tile([32])[0].elect()"));
    wrong(&text("#cta[0]"), Code::Race, "may end while");
}

#[test]
fn only_the_low_five_bits_of_a_lane_count() {
    let text = |lane: i64| {
        format!(
            "carbyne 2
%A:[64].i32.GL
%B:[64].i32.GL
#grid:[1].block
#cta:[64].thread
Spec @k <<<#grid, #cta>>> (%A) -> (%B) {{
  @t = #cta.indices()
  Allocate %x:[1].i32.RF
  Allocate %y:[1].i32.RF
  Move <<<#grid, #cta.scalar()>>> (%A[@t]) -> (%x[0])
  Shfl.bfly <<<#grid, #cta.tile([32])>>> (%x) -> (%y) lane={lane} atom=shfl.bfly.b32
  Move <<<#grid, #cta.scalar()>>> (%y[0]) -> (%B[@t])
}}
"
        )
    };
    right(&text(8));
    let report = crate::support::unverified(&text(40)).unwrap_or_else(|e| panic!("{e}"));
    let get = |name| report.outputs.get(name).map(|a| a.values).unwrap_or_default();
    let (a, b) = (get("A"), get("B"));
    assert!((0..64).all(|t| b[t] == a[t ^ 8]), "{a:?} {b:?}");
}

#[test]
fn a_live_mbarrier_is_no_place_for_data() {
    let text = |reuses: &str, early: &str| {
        format!(
            "carbyne 2
%A:[64].f32.GL
%B:[64].f32.GL
#grid:[1].block
#cta:[64].thread
Spec @k <<<#grid, #cta>>> (%A) -> (%B) {{
  #one:[].thread = #cta.scalar()
  @t = #cta.indices()
  Allocate %full:[2].mbarrier.SH
  Allocate %s:[64].f32.SH{{{reuses}}}
  Allocate %x:[1].f32.RF
  {early}
  Spec <<<#grid, #cta[0]>>> () -> (%full) {{
    mbarrier.init(%full, 64)
  }}
  barrier
  Move <<<#grid, #one>>> (%A[@t]) -> (%x[0])
  Move <<<#grid, #one>>> (%x[0]) -> (%s[@t])
  mbarrier.arrive(%full[1])
  mbarrier.wait(%full[1], 0)
  Move <<<#grid, #one>>> (%s[63 - @t]) -> (%x[0])
  Move <<<#grid, #one>>> (%x[0]) -> (%B[@t])
}}
"
        )
    };
    right(&text("align=128", ""));
    let e = wrong(
        &text("reuses=%full", ""),
        Code::BarrierMisuse,
        "its bytes belong to the live mbarrier %full[0]",
    );
    assert!(e.message.starts_with("%s[0]"), "{e}");
    let copy = "Move <<<#grid, #one>>> (%A[@t]) -> (%s[@t]) atom=cp.async.ca.b32
  async.commit
  async.wait(0)";
    // An mbarrier may use the bytes of data that are no longer needed.
    let before = format!("{copy}\n  barrier");
    let reused = text("", &before).replace("Allocate %full:[2].mbarrier.SH\n", "").replace(
        "  Allocate %x:",
        "  Allocate %full:[2].mbarrier.SH{reuses=%s}\n  Allocate %more:[64].f32.SH\n  Allocate %x:",
    );
    let (head, tail) = reused.split_once("mbarrier.init").unwrap_or_default();
    right(&format!("{head}mbarrier.init{}", tail.replace("%s[", "%more[")));
    wrong(&reused, Code::BarrierMisuse, "live");
}

#[test]
fn lanes_beside_the_one_that_inits_an_mbarrier_wait_for_it() {
    let text = |between: &str| {
        format!(
            "carbyne 2
%A:[32].f32.GL
#grid:[1].block
#cta:[32].thread
Spec @k <<<#grid, #cta>>> (%A) -> (%A) {{
  Allocate %full:[1].mbarrier.SH
  Spec <<<#grid, #cta[0]>>> () -> (%full) {{
    mbarrier.init(%full, 1)
  }}
  {between}
  mbarrier.wait(%full, 1)
}}
"
        )
    };
    right(&text("barrier"));
    wrong(&text(""), Code::Race, "no barrier is between");
}

/// A ring of two stages from one warp to another; `consume` reads a stage and releases it.
fn ring(consume: &str, count: u32) -> String {
    format!(
        "carbyne 2
%in:[6,32].f32.GL
%out:[6,32].f32.GL
#grid:[1].block
#cta:[64].thread
Spec @ring <<<#grid, #cta>>> (%in) -> (%out) {{
  #w:[2].[32].thread = #cta.tile([32])
  #first:[].thread = #w[0].scalar()
  #second:[].thread = #w[1].scalar()
  @t = #cta.indices()
  Allocate %s:[2].[32].f32.SH
  Allocate %full:[2].mbarrier.SH
  Allocate %empty:[2].mbarrier.SH
  Spec <<<#grid, #cta[0]>>> () -> (%full, %empty) {{
    mbarrier.init(%full, 32)
    mbarrier.init(%empty, {count})
  }}
  barrier
  Spec <<<#grid, #w[0]>>> (%in, %full, %empty) -> (%s) {{
    Allocate %x:[1].f32.RF
    for (k = 0; k < 6; k += 1) {{
      mbarrier.wait(%empty[k % 2], (k / 2 + 1) % 2)
      Move <<<#grid, #first>>> (%in[k, @t % 32]) -> (%x[0])
      Move <<<#grid, #first>>> (%x[0]) -> (%s[k % 2][@t % 32])
      mbarrier.arrive(%full[k % 2])
    }}
  }}
  Spec <<<#grid, #w[1]>>> (%s, %full, %empty) -> (%out) {{
    Allocate %y:[1].f32.RF
    for (k = 0; k < 6; k += 1) {{
      mbarrier.wait(%full[k % 2], k / 2 % 2)
      {consume}
      Move <<<#grid, #second>>> (%y[0]) -> (%out[k, @t % 32])
    }}
  }}
}}
"
    )
}

#[test]
fn each_lane_releases_its_own_reads() {
    let read = "Move <<<#grid, #second>>> (%s[k % 2][31 - @t % 32]) -> (%y[0])";
    let arrive = "mbarrier.arrive(%empty[k % 2])";
    let low = format!("if (@t % 32 < 16) {{ {arrive} }}");
    let high = format!("if (@t % 32 >= 16) {{ {arrive} }}");
    right(&ring(&format!("{read} {arrive}"), 32));
    right(&ring(&format!("{read} {low} {high}"), 32));
    right(&ring(&format!("{read} {high} {low}"), 32));
    // Half of the lanes report their reads too early.
    let e = wrong(&ring(&format!("{low} {read} {high}"), 32), Code::Race, "thread 47 reads");
    assert!(e.message.contains("%s[0,16]"), "{e}");
    wrong(&ring(&format!("{high} {read} {low}"), 32), Code::Race, "no barrier is between");
    // Each half reads for itself, equal elements or different ones, and releases them at once.
    let both = |index: &str| {
        let read = read.replace("31 - @t % 32", index);
        format!("if (@t % 32 < 16) {{ {read} {arrive} }} else {{ {read} {arrive} }}")
    };
    right(&ring(&both("31 - @t % 32"), 32));
    right(&ring(&both("@t % 16"), 32));
    right(&ring(&both("0"), 32));
    // Half of the lanes read a stage, and half of the lanes release it.
    let half = |of: &str| {
        let read = read.replace("31 - @t % 32", of);
        format!("Init <<<#grid, #second>>> (0) -> (%y[0]) if (@t % 32 < 16) {{ {read} {arrive} }}")
    };
    right(&ring(&half("@t % 2"), 16));
    let late =
        format!("Init <<<#grid, #second>>> (0) -> (%y[0]) if (@t % 32 < 16) {{ {arrive} {read} }}");
    wrong(&ring(&late, 16), Code::Race, "no barrier is between");
}

/// A ring of two stages from one warp to two others, which both read every stage.
fn two_readers(arrive: &str) -> String {
    format!(
        "carbyne 2
%in:[5,32].f32.GL
%out:[2,5,32].f32.GL
#grid:[1].block
#cta:[96].thread
Spec @ring <<<#grid, #cta>>> (%in) -> (%out) {{
  #w:[3].[32].thread = #cta.tile([32])
  @t = #cta.indices()
  Allocate %s:[2].[32].f32.SH
  Allocate %full:[2].mbarrier.SH
  Allocate %empty:[2].mbarrier.SH
  Spec <<<#grid, #cta[0]>>> () -> (%full, %empty) {{
    mbarrier.init(%full, 32)
    mbarrier.init(%empty, 64)
  }}
  barrier
  Spec <<<#grid, #w[0]>>> (%in, %full, %empty) -> (%s) {{
    Allocate %x:[1].f32.RF
    for (k = 0; k < 5; k += 1) {{
      mbarrier.wait(%empty[k % 2], (k / 2 + 1) % 2)
      Move <<<#grid, #w[0].scalar()>>> (%in[k, @t % 32]) -> (%x[0])
      Move <<<#grid, #w[0].scalar()>>> (%x[0]) -> (%s[k % 2][@t % 32])
      mbarrier.arrive(%full[k % 2])
    }}
  }}
  Spec <<<#grid, #w[1]>>> (%s, %full, %empty) -> (%out) {{
    Allocate %x:[1].f32.RF
    for (k = 0; k < 5; k += 1) {{
      mbarrier.wait(%full[k % 2], k / 2 % 2)
      Move <<<#grid, #w[1].scalar()>>> (%s[k % 2][31 - @t % 32]) -> (%x[0])
      Move <<<#grid, #w[1].scalar()>>> (%x[0]) -> (%out[0, k, 31 - @t % 32])
      mbarrier.arrive(%empty[k % 2])
    }}
  }}
  Spec <<<#grid, #w[2]>>> (%s, %full, %empty) -> (%out) {{
    Allocate %x:[1].f32.RF
    for (k = 0; k < 5; k += 1) {{
      mbarrier.wait(%full[k % 2], k / 2 % 2)
      Move <<<#grid, #w[2].scalar()>>> (%s[k % 2][31 - @t % 32]) -> (%x[0])
      Move <<<#grid, #w[2].scalar()>>> (%x[0]) -> (%out[1, k, 31 - @t % 32])
      {arrive}
    }}
  }}
}}
"
    )
}

#[test]
fn an_arrival_counts_in_one_phase_only() {
    right(&two_readers("mbarrier.arrive(%empty[k % 2])"));
    // At k = 1 one reader arrives in place of the other, which may still read the stage.
    let text = two_readers("mbarrier.arrive(%empty[k / 2 % 2])");
    let e = wrong(&text, Code::BarrierMisuse, "may count in that phase");
    assert!(e.message.starts_with("%empty[0]") && e.label.contains("k = 1"), "{e} {}", e.label);
    assert_eq!(e.related.len(), 1, "{e}");
    // Two arrivals of both at one barrier cause this error, too.
    wrong(
        &two_readers(
            "if (k < 2) { mbarrier.arrive(%empty[0]) } else { mbarrier.arrive(%empty[1]) }",
        ),
        Code::BarrierMisuse,
        "may count in that phase",
    );
}

/// Threads of a warp arrive, and the other warp may wait.
fn alone(count: u32, arrivals: &str, wait: &str) -> String {
    format!(
        "carbyne 2
%A:[64].f32.GL
%B:[64].f32.GL
#grid:[1].block
#cta:[64].thread
Spec @k <<<#grid, #cta>>> (%A, %B) -> (%B) {{
  #w:[2].[32].thread = #cta.tile([32])
  Allocate %s:[32].f32.SH
  Allocate %full:[1].mbarrier.SH
  Spec <<<#grid, #cta[0]>>> () -> (%full) {{
    mbarrier.init(%full, {count})
  }}
  barrier
  Spec <<<#grid, #w[0]>>> (%A, %full) -> (%s) {{
    @lane = #w[0].indices()
    {arrivals}
  }}
  Spec <<<#grid, #w[1]>>> (%full) -> () {{
    let waits = 1
    {wait}
  }}
}}
"
    )
}

#[test]
fn arrivals_of_one_thread_are_ordered() {
    let arrive = "mbarrier.arrive(%full)";
    let first = |what: &str| format!("Spec <<<#grid, #cta[0]>>> (%full) -> () {{ {what} }}");
    right(&alone(1, &first(arrive), ""));
    right(&alone(1, &first(&format!("{arrive} {arrive} {arrive}")), ""));
    right(&alone(2, &first("mbarrier.arrive(%full, 2) mbarrier.arrive(%full, 2)"), ""));
    // The lanes of a warp are ordinary threads.
    right(&alone(32, arrive, ""));
    right(&alone(32, &format!("{arrive} barrier(#w[0]) {arrive}"), ""));
    let early = "may count in that phase";
    wrong(&alone(32, &format!("{arrive} {arrive}"), ""), Code::BarrierMisuse, early);
    wrong(&alone(16, arrive, ""), Code::BarrierMisuse, early);
    // Arrivals of the hardware at the completion of copies are not ordered after later statements
    // of the thread.
    let copy = "Move <<<#grid, #w[0].scalar()>>> (%A[@lane]) -> (%s[@lane]) atom=cp.async.ca.b32";
    let both = format!("{copy} mbarrier.async_arrive(%full)");
    right(&alone(32, &both, "mbarrier.wait(%full, 0)"));
    wrong(&alone(32, &format!("{both} barrier(#w[0]) {arrive}"), ""), Code::BarrierMisuse, early);
}

#[test]
fn warps_may_be_partial() {
    // The last warp of a block has 16 threads.
    let text = |threads: u32, arrivals: &str| {
        format!(
            "carbyne 2
%A:[48].f32.GL
#grid:[1].block
#cta:[{threads}].thread
Spec @k <<<#grid, #cta>>> (%A) -> (%A) {{
  #last:[].thread = #cta[{}]
  Allocate %full:[2].mbarrier.SH
  Spec <<<#grid, #cta[0]>>> () -> (%full) {{
    mbarrier.init(%full[0], 1)
    mbarrier.init(%full[1], {threads})
  }}
  barrier
  {arrivals}
}}
",
            threads - 1
        )
    };
    let last = "Spec <<<#grid, #last>>> (%full) -> () { mbarrier.arrive(%full[0]) \
                mbarrier.arrive(%full[0]) mbarrier.async_arrive(%full[0]) \
                mbarrier.async_arrive(%full[0]) }";
    let turn = |p: u32| format!("mbarrier.arrive(%full[1]) mbarrier.wait(%full[1], {p})\n  ");
    for threads in [1, 16, 48] {
        right(&text(threads, last));
        right(&text(threads, &format!("{}{}{}", turn(0), turn(1), turn(0))));
        right(&text(threads, "mbarrier.arrive(%full[1]) barrier mbarrier.arrive(%full[1])"));
    }
    let twice = text(48, "mbarrier.arrive(%full[1]) mbarrier.arrive(%full[1])");
    wrong(&twice, Code::BarrierMisuse, "may count in that phase");
}

#[test]
fn a_wait_is_for_one_phase_only() {
    // The second warp releases the first into the second phase, and waits for that phase.
    let text = |wait: &str| {
        format!(
            "carbyne 2
%A:[32].f32.GL
#grid:[1].block
#cta:[64].thread
Spec @k <<<#grid, #cta>>> (%A) -> (%A) {{
  #w:[2].[32].thread = #cta.tile([32])
  Allocate %full:[1].mbarrier.SH
  Allocate %seen:[1].mbarrier.SH
  Spec <<<#grid, #cta[0]>>> () -> (%full, %seen) {{
    mbarrier.init(%full, 32)
    mbarrier.init(%seen, 32)
  }}
  barrier
  Spec <<<#grid, #w[0]>>> (%full, %seen) -> () {{
    mbarrier.arrive(%full)
    mbarrier.wait(%seen, 0)
    mbarrier.arrive(%full)
  }}
  Spec <<<#grid, #w[1]>>> (%full, %seen) -> () {{
    {wait}
    mbarrier.arrive(%seen)
    mbarrier.wait(%full, 1)
  }}
}}
"
        )
    };
    right(&text("mbarrier.wait(%full, 0)"));
    // In this schedule the wait is too late to return at once; in others it is not.
    let e = under(&text(""), None).expect_err("it may pass at once");
    let other_lanes = e.message.contains("two phases early") || e.message.contains("may count");
    assert!(e.code == Code::BarrierMisuse && other_lanes, "{e}");
}

/// `copy` copies a row to shared memory and back to another place, and its source is overwritten.
fn overwritten(copy: &str, before: &str, between: &str, index: &str) -> String {
    format!(
        "carbyne 2
%A:[64].f32.GL
%B:[64].f32.GL
#grid:[1].block
#cta:[64].thread
Spec @k <<<#grid, #cta>>> (%A, %B) -> (%A, %B) {{
  #one:[].thread = #cta.scalar()
  @t = #cta.indices()
  Allocate %s:[64].f32.SH{{align=128}}
  Allocate %zero:[1].f32.RF
  Allocate %x:[1].f32.RF
  Allocate %full:[1].mbarrier.SH
  Spec <<<#grid, #cta[0]>>> () -> (%full) {{
    mbarrier.init(%full, 64)
    fence.async
  }}
  barrier
  Init <<<#grid, #one>>> (0) -> (%zero[0]) atom=init.f32
  {copy}
  {before}
  Move <<<#grid, #one>>> (%zero[0]) -> (%A[{index}]) atom=st.global.b32
  {between}
  Move <<<#grid, #one>>> (%s[@t]) -> (%x[0]) atom=ld.shared.b32
  Move <<<#grid, #one>>> (%x[0]) -> (%B[@t]) atom=st.global.b32
}}
"
    )
}

#[test]
fn sources_of_copies_are_overwritten_after_their_wait() {
    let busy = "%A[0] is overwritten while an asynchronous instruction may still read it";
    let copy = "Move <<<#grid, #one>>> (%A[@t]) -> (%s[@t]) atom=cp.async.ca.b32";
    let wait = "async.commit async.wait(0)";
    // By the issuing thread.
    right(&overwritten(copy, wait, "", "@t"));
    wrong(&overwritten(copy, "", wait, "@t"), Code::Race, busy);
    wrong(&overwritten(copy, "async.commit", "async.wait(0)", "@t"), Code::Race, busy);
    // By another thread, which needs a barrier after the wait.
    right(&overwritten(copy, "async.commit async.wait(0) barrier", "", "63 - @t"));
    let text = overwritten(copy, "async.commit barrier async.wait(0)", "", "63 - @t");
    wrong(&text, Code::Race, "no barrier is between");
    let text = overwritten(copy, "async.commit barrier", "async.wait(0)", "63 - @t");
    wrong(&text, Code::Race, "while an asynchronous instruction may still read it");
    // Or with an mbarrier that counts the copy.
    let counted = "mbarrier.async_arrive(%full) mbarrier.wait(%full, 0)";
    right(&overwritten(copy, counted, "", "63 - @t"));
    let (arrive, pass) = ("mbarrier.async_arrive(%full)", "mbarrier.wait(%full, 0)");
    wrong(&overwritten(copy, arrive, pass, "@t"), Code::Race, busy);
    // Elements that the copy does not read may be overwritten.
    let few = "Move <<<#grid, #one>>> (%A.tile([1])[@t]) -> (%s.tile([1])[@t]) \
               atom=cp.async.ca.b32.zfill valid=0";
    right(&overwritten(few, "", wait, "@t"));
    let all = few.replace("valid=0", "valid=1");
    wrong(&overwritten(&all, "", wait, "@t"), Code::Race, busy);
}

#[test]
fn sources_of_bulk_copies_are_overwritten_after_their_phase() {
    let copy = "mbarrier.expect(%full, 4)
  Spec <<<#grid, #cta[0]>>> (%A, %full) -> (%s) {
    Move <<<#grid, #cta[0]>>> (%A) -> (%s) bar=%full atom=cp.async.bulk.shared.global
  }";
    let wait = "mbarrier.wait(%full, 0)";
    right(&overwritten(copy, wait, "", "@t"));
    right(&overwritten(copy, wait, "", "63 - @t"));
    wrong(&overwritten(copy, "", wait, "@t"), Code::Race, "may still read it");
    wrong(&overwritten(copy, "barrier", wait, "@t"), Code::Race, "may still read it");
    // A thread that has not waited does not see the completion, although another thread has waited.
    let first = "Spec <<<#grid, #cta.tile([32])[0]>>> (%full) -> () { mbarrier.wait(%full, 0) }";
    wrong(&overwritten(copy, first, wait, "@t"), Code::Race, "may still read it");
    right(&overwritten(copy, &format!("{first} barrier"), "", "@t"));
}

/// A bulk copy stores a row, and `then` accesses it.
fn stored(wait: &str, then: &str, end: &str) -> String {
    format!(
        "carbyne 2
%A:[64].f32.GL
%B:[64].f32.GL
#grid:[1].block
#cta:[64].thread
Spec @k <<<#grid, #cta>>> (%A) -> (%B) {{
  #one:[].thread = #cta.scalar()
  #first:[].thread = #cta[0]
  @t = #cta.indices()
  Allocate %s:[64].f32.SH{{align=128}}
  Allocate %x:[1].f32.RF
  Move <<<#grid, #one>>> (%A[@t]) -> (%x[0]) atom=ld.global.b32
  Move <<<#grid, #one>>> (%x[0]) -> (%s[@t]) atom=st.shared.b32
  fence.async
  barrier
  Spec <<<#grid, #first>>> (%s) -> (%B) {{
    Move <<<#grid, #first>>> (%s) -> (%B) atom=cp.async.bulk.global.shared
    {wait}
  }}
  {then}
  Spec <<<#grid, #first>>> () -> () {{
    let at_the_end = 1
    {end}
  }}
}}
"
    )
}

#[test]
fn destinations_of_bulk_stores_are_there_after_the_full_wait() {
    let read = "Move <<<#grid, #one>>> (%B[@t]) -> (%x[0]) atom=ld.global.b32";
    let write = "Move <<<#grid, #one>>> (%x[0]) -> (%B[@t]) atom=st.global.b32";
    let (full, source) = ("bulk.commit bulk.wait(0)", "bulk.commit bulk.wait_read(0)");
    for touch in [read, write] {
        right(&stored(full, &format!("barrier {touch}"), ""));
        let code = if touch == read { Code::Uninitialized } else { Code::Race };
        let e = wrong(&stored(source, &format!("barrier {touch}"), full), code, "bulk.wait(0)");
        assert!(e.message.contains("while an asynchronous copy to it is pending"), "{e}");
        wrong(&stored("bulk.commit", &format!("barrier {touch}"), "bulk.wait(0)"), code, "%B[0]");
        wrong(&stored("bulk.commit bulk.wait(1)", &format!("barrier {touch}"), full), code, "%B");
        wrong(&stored(full, touch, ""), Code::Race, "no barrier is between");
    }
    // A wait for the read of the source is enough for the source, and for the end of the block.
    let over = "Move <<<#grid, #one>>> (%x[0]) -> (%s[@t]) atom=st.shared.b32";
    right(&stored(source, &format!("barrier {over}"), ""));
    wrong(&stored("bulk.commit", &format!("barrier {over}"), source), Code::Race, "may still read");
    right(&stored(source, "", ""));
    // A second copy to the same place must be ordered after the first.
    let again = "Spec <<<#grid, #first>>> (%s) -> (%B) {
    Move <<<#grid, #first>>> (%s) -> (%B) atom=cp.async.bulk.global.shared
  }";
    right(&stored(full, again, source));
    wrong(&stored(source, again, source), Code::Race, "overwritten while an asynchronous copy");
}

#[test]
fn bulk_copies_that_add_do_not_wait_for_each_other() {
    let add = "Spec <<<#grid, #first>>> (%s) -> (%B) {
    Move.add <<<#grid, #first>>> (%s) -> (%B) atom=cp.reduce.async.bulk.global.shared.add.f32
  }";
    let source = "bulk.commit bulk.wait_read(0)";
    let text = |wait: &str, then: &str| {
        let text = stored(wait, then, source)
            .replace("(%A) -> (%B) {\n  #one", "(%A, %B) -> (%B) {\n  #one");
        text.replacen(
            "Move <<<#grid, #first>>> (%s) -> (%B) atom=cp.async.bulk.global.shared",
            "Move.add <<<#grid, #first>>> (%s) -> (%B) \
             atom=cp.reduce.async.bulk.global.shared.add.f32",
            1,
        )
    };
    right(&text(source, add));
    let red = "Move.add <<<#grid, #one>>> (%x[0]) -> (%B[@t]) atom=red.global.add.f32";
    right(&text(source, &format!("barrier {red}")));
    let read = "Move <<<#grid, #one>>> (%B[@t]) -> (%x[0]) atom=ld.global.b32";
    wrong(&text(source, &format!("barrier {read}")), Code::Uninitialized, "bulk.wait(0)");
    right(&text("bulk.commit bulk.wait(0)", &format!("barrier {read}")));
    wrong(&text("bulk.commit bulk.wait(0)", read), Code::Race, "no barrier is between");
}

#[test]
fn a_block_does_not_end_before_its_copies() {
    let text = |copy: &str, end: &str| {
        format!(
            "carbyne 2
%A:[64].f32.GL
%B:[64].f32.GL
#grid:[1].block
#cta:[64].thread
Move @k <<<#grid, #cta>>> (%A) -> (%B) {{
  #one:[].thread = #cta.scalar()
  @t = #cta.indices()
  Allocate %s:[64].f32.SH{{align=128}}
  Allocate %full:[1].mbarrier.SH
  Spec <<<#grid, #cta[0]>>> () -> (%full) {{
    mbarrier.init(%full, 64)
    fence.async
  }}
  barrier
  {copy}
  Move <<<#grid, #one>>> (%A[@t]) -> (%B[@t])
  {end}
}}
"
        )
    };
    let ends = "the block may end while an asynchronous copy to its shared memory is pending";
    let copy = "Move <<<#grid, #one>>> (%A[@t]) -> (%s[@t]) atom=cp.async.ca.b32";
    right(&text(copy, "async.commit async.wait(0)"));
    wrong(&text(copy, ""), Code::Race, ends);
    wrong(&text(copy, "async.commit"), Code::Race, ends);
    wrong(&text(copy, "async.commit async.wait(1)"), Code::Race, ends);
    wrong(&text(copy, "async.wait(0)"), Code::Race, ends);
    let arrive = "mbarrier.async_arrive(%full)";
    right(&text(copy, &format!("{arrive} mbarrier.wait(%full, 0)")));
    wrong(&text(copy, arrive), Code::Race, ends);
    let bulk = "mbarrier.expect(%full, 4)
  Spec <<<#grid, #cta[0]>>> (%A, %full) -> (%s) {
    Move <<<#grid, #cta[0]>>> (%A) -> (%s) bar=%full atom=cp.async.bulk.shared.global
  }";
    right(&text(bulk, "mbarrier.wait(%full, 0)"));
    wrong(&text(bulk, ""), Code::Race, ends);
}

/// `fence.async` applies to shared memory: the copy engine does not see writes of threads to global
/// memory within a kernel.
#[test]
fn copies_do_not_see_global_writes_of_threads() {
    let text = |tensor: &str| {
        format!(
            "carbyne 2
%A:[64].f32.GL
%L:[64].f32.GL
%M:[64].f32.GL
%B:[64].f32.GL
#grid:[1].block
#cta:[64].thread
Spec @k <<<#grid, #cta>>> (%A, %L) -> (%L, %M, %B) {{
  #one:[].thread = #cta.scalar()
  @t = #cta.indices()
  Allocate %s:[64].f32.SH{{align=128}}
  Allocate %x:[1].f32.RF
  Allocate %full:[1].mbarrier.SH
  Move <<<#grid, #one>>> (%A[@t]) -> (%x[0]) atom=ld.global.b32
  Move <<<#grid, #one>>> (%x[0]) -> (%{tensor}[@t]) atom=st.global.b32
  fence.async
  Spec <<<#grid, #cta[0]>>> () -> (%full) {{
    mbarrier.init(%full, 1)
    fence.async
  }}
  barrier
  Spec <<<#grid, #cta[0]>>> (%L, %full) -> (%s) {{
    fence.async
    mbarrier.expect(%full, 256)
    Move <<<#grid, #cta[0]>>> (%L) -> (%s) bar=%full atom=cp.async.bulk.shared.global
  }}
  mbarrier.wait(%full, 0)
  Move <<<#grid, #one>>> (%s[@t]) -> (%x[0]) atom=ld.shared.b32
  Move <<<#grid, #one>>> (%x[0]) -> (%B[@t]) atom=st.global.b32
}}
"
        )
    };
    right(&text("M"));
    wrong(&text("L"), Code::MissingFence, "%L[0]");
}

/// A kernel of two warps with shared tensors of 64 elements, and these statements.
fn in_shared(stmts: &str) -> String {
    format!(
        "carbyne 2
%A:[64].f32.GL
%B:[64].f32.GL
Spec @k <<<#grid:[1], #cta:[@t < 64]>>> (%A) -> (%B) {{
  #one:[].thread = #cta.scalar()
  Allocate %x:[1].f32.RF
  Move <<<#one>>> (%A[@t]) -> (%x[0])
{stmts}
  Move <<<#one>>> (%x[0]) -> (%B[@t])
}}
"
    )
}

#[test]
fn bytes_written_as_another_tensor_are_undefined() {
    const GIVE: &str = "  Move <<<#one>>> (%x[0]) -> (%s[@t])
  barrier
";
    const TAKE: &str = "  Move <<<#one>>> (%s[63 - @t]) -> (%x[0])
";
    const OTHER: &str = "  barrier
  Move <<<#one>>> (%x[0]) -> (%r[@t])
  barrier
  Move <<<#one>>> (%r[63 - @t]) -> (%x[0])
";
    let text = |extent: u32, stmts: &[&str]| {
        let allocate = format!(
            "  Allocate %s:[64].f32.SH
  Allocate %r:[{extent}].f32.SH{{reuses=%s}}
"
        );
        in_shared(&(allocate + &stmts.concat()))
    };
    const WHAT: &str = "its bytes were last written as another tensor";
    right(&text(64, &[GIVE, TAKE, OTHER]));
    let e = wrong(&text(64, &[GIVE, TAKE, OTHER, TAKE]), Code::Uninitialized, WHAT);
    assert!(e.message.starts_with("%s["), "{e}");
    right(&text(64, &[GIVE, TAKE, OTHER, "  barrier\n", GIVE, TAKE]));
    // Reading the bytes through the other tensor is not possible.
    let first = TAKE.replace("%s", "%r");
    let e = wrong(&text(64, &[GIVE, &first]), Code::Uninitialized, WHAT);
    assert!(e.message.starts_with("%r["), "{e}");
    // A part that the other tensor does not overlap is unchanged.
    let part = |from: u32| {
        let write = "  if (@t < 8) {\n    Move <<<#one>>> (%x[0]) -> (%r[@t])\n  }\n  barrier\n";
        let read = format!("  if (@t >= {from}) {{\n  {TAKE}  }}\n").replace("63 - @t", "@t");
        text(8, &[GIVE, TAKE, "  barrier\n", write, &read])
    };
    right(&part(8));
    wrong(&part(7), Code::Uninitialized, WHAT);
    // Also with asynchronous copies, and across iterations of a loop.
    let copied = "  Move <<<#one>>> (%A[@t]) -> (%r[@t]) atom=cp.async.ca.b32
  async.commit
  async.wait(0)
  barrier
  Move <<<#one>>> (%r[63 - @t]) -> (%x[0])
";
    let turns = |stmts: &[&str]| {
        let body = stmts.concat();
        text(64, &[GIVE, TAKE, "  for (i = 0; i < 2; i += 1) {\n  barrier\n", &body, "  }\n"])
    };
    right(&turns(&[copied, "  barrier\n", GIVE, TAKE]));
    wrong(&turns(&[TAKE, "  barrier\n", copied]), Code::Uninitialized, WHAT);
    wrong(&turns(&[copied, TAKE]), Code::Uninitialized, WHAT);
}

#[test]
fn shared_memory_begins_undefined_in_each_turn_that_allocates_it() {
    const WHAT: &str = "no thread wrote it since this iteration of the loop allocated it";
    let text = |before: &str, in_loop: &str, when: &str| {
        in_shared(&format!(
            "  {before}
  for (i = 0; i < 3; i += 1) {{
    {in_loop}
    if ({when}) {{
      Move <<<#one>>> (%x[0]) -> (%s[@t])
    }}
    barrier
    Move <<<#one>>> (%s[63 - @t]) -> (%x[0])
    barrier
  }}"
        ))
    };
    const ALLOCATE: &str = "Allocate %s:[64].f32.SH";
    right(&text("", ALLOCATE, "i >= 0"));
    right(&text(ALLOCATE, "", "i == 0"));
    let e = wrong(&text("", ALLOCATE, "i == 0"), Code::Uninitialized, WHAT);
    assert!(e.related.iter().any(|r| r.1.contains("written here")), "{e:?}");
    wrong(&text("", ALLOCATE, "i % 2 == 0"), Code::Uninitialized, WHAT);
    // Only some threads write; others are ahead if they need not wait.
    wrong(&text("", ALLOCATE, "i < 2 - @t / 63"), Code::Uninitialized, WHAT);
    let nested = |outer: &str, inner: &str, when: &str| {
        in_shared(&format!(
            "  for (i = 0; i < 2; i += 1) {{
    {outer}
    for (j = 0; j < 2; j += 1) {{
      {inner}
      if ({when}) {{
        Move <<<#one>>> (%x[0]) -> (%s[@t])
      }}
      barrier
      Move <<<#one>>> (%s[63 - @t]) -> (%x[0])
      barrier
    }}
  }}"
        ))
    };
    right(&nested(ALLOCATE, "", "j == 0"));
    right(&nested("", ALLOCATE, "j >= 0"));
    wrong(&nested(ALLOCATE, "", "i == 0"), Code::Uninitialized, WHAT);
    wrong(&nested("", ALLOCATE, "j == 0"), Code::Uninitialized, WHAT);
    wrong(&nested("", ALLOCATE, "i == 0"), Code::Uninitialized, WHAT);
    // A copy that one iteration issues does not provide data for the next one.
    let ahead = |before: &str, in_loop: &str| {
        in_shared(&format!(
            "  {before}
  for (i = 0; i < 3; i += 1) {{
    {in_loop}
    if (i > 0) {{
      async.wait(0)
      barrier
      Move <<<#one>>> (%s[63 - @t]) -> (%x[0])
      barrier
    }}
    Move <<<#one>>> (%A[@t]) -> (%s[@t]) atom=cp.async.ca.b32
    async.commit
  }}
  async.wait(0)"
        ))
    };
    right(&ahead(ALLOCATE, ""));
    wrong(&ahead("", ALLOCATE), Code::Uninitialized, WHAT);
}

#[test]
fn threads_ahead_by_an_iteration_keep_the_tensor_of_others() {
    // A barrier at the start of each iteration precedes the writes, so slow threads may still read
    // the tensor of the previous iteration.
    right(&in_shared(
        "  for (i = 0; i < 4; i += 1) {
    Allocate %s:[64].f32.SH
    barrier
    Move <<<#one>>> (%x[0]) -> (%s[@t])
    barrier
    Move <<<#one>>> (%s[63 - @t]) -> (%x[0])
  }",
    ));
    // Two warps hand over a stage, each in its own loop.
    right(&in_shared(
        "  #w:[2].[32].thread = #cta.tile([32])
  for (i = 0; i < 2; i += 1) {
    Allocate %s:[32].f32.SH
    Spec <<<#w[0]>>> (%x) -> (%s) {
      Move <<<#w[0].scalar()>>> (%x[0]) -> (%s[@t % 32])
    }
    barrier
    Spec <<<#w[1]>>> (%s) -> (%x) {
      Move <<<#w[1].scalar()>>> (%s[31 - @t % 32]) -> (%x[0])
    }
    barrier
  }",
    ));
}
