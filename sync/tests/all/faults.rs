//! Tests errors in synchronization: waits that never end, arrivals without a wait, and barriers
//! that some threads do not reach. Each is refused, and an error about an mbarrier names a second
//! statement, too. Other tests count the races in small kernels of one block or of several blocks.

use crate::support::{reports, right};
use carbyne_atoms::Arch;
use carbyne_sync::Report;

/// A kernel of two warps that pass a row through shared memory, with these statements for the
/// warps.
fn kernel(init: &str, first: &str, second: &str) -> String {
    format!(
        "carbyne 2

%in:[4,32].f32.GL
%out:[4,32].f32.GL

Spec @pass <<<#grid:[1], #cta:[@t < 64]>>> (%in) -> (%out) {{
  #w:[2].[32].thread = #cta.tile([32])
  Allocate %s:[32].f32.SH
  Allocate %x:[1].f32.RF
  Allocate %full:[1].mbarrier.SH
  Allocate %empty:[1].mbarrier.SH
  Spec <<<#cta[0]>>> () -> (%full, %empty) {{
    {init}
  }}
  barrier
  Spec <<<#w[0]>>> (%in, %full, %empty) -> (%s, %x) {{
    Move <<<#w[0].scalar()>>> (%in[0, @t % 32]) -> (%x[0]) atom=ld.global.b32
    {first}
  }}
  Spec <<<#w[1]>>> (%s, %full, %empty) -> (%out, %x) {{
    {second}
    Move <<<#w[1].scalar()>>> (%x[0]) -> (%out[0, 31 - @t % 32]) atom=st.global.b32
  }}
}}
"
    )
}

const INIT: &str = "mbarrier.init(%full, 32)\n    mbarrier.init(%empty, 32)";
const PUT: &str = "Move <<<#w[0].scalar()>>> (%x[0]) -> (%s[@t % 32]) atom=st.shared.b32";
const GET: &str = "Move <<<#w[1].scalar()>>> (%s[31 - @t % 32]) -> (%x[0]) atom=ld.shared.b32";

/// The line with a mark.
fn line(text: &str, mark: &str) -> u32 {
    let at = text.lines().position(|l| l.contains(mark));
    at.map_or(0, |at| at as u32 + 1)
}

/// Expects that the fault of the statement marked `// here` contains `says` and names the statement
/// marked `// with`.
fn refused(text: &str, says: &str) {
    let program = right(text);
    let reports = reports(&program, Arch::Sm90a);
    let here = line(text, "// here");
    let all: Vec<_> = reports.iter().flat_map(|r| &r.faults).collect();
    let found = all.iter().find(|f| f.place.line == here && f.what.contains(says));
    let found =
        found.unwrap_or_else(|| panic!("nothing at line {here} says `{says}`: {all:#?}\n{text}"));
    assert!(found.is_certain, "{found:?}");
    assert_eq!(
        found.other.as_ref().map(|(at, _)| at.line),
        Some(line(text, "// with")),
        "{found:#?}\n{text}"
    );
}

#[test]
fn the_kernel_itself_is_right() {
    let second = format!("mbarrier.wait(%full[0], 0)\n    {GET}");
    let text = kernel(INIT, &format!("{PUT}\n    mbarrier.arrive(%full[0])"), &second);
    assert!(reports(&right(&text), Arch::Sm90a).iter().all(Report::is_ordered), "{text}");
}

#[test]
fn a_wait_on_which_nobody_arrives() {
    let init = "mbarrier.init(%full, 32) // with\n    mbarrier.init(%empty, 32)";
    let second = format!("mbarrier.wait(%full[0], 0) // here\n    {GET}");
    refused(&kernel(init, PUT, &second), "nothing ends this wait: no statement arrives on `%full`");
}

#[test]
fn a_wait_for_more_arrivals_than_come() {
    let init = "mbarrier.init(%full, 33) // with\n    mbarrier.init(%empty, 32)";
    let second = format!("mbarrier.wait(%full[0], 0) // here\n    {GET}");
    let first = format!("{PUT}\n    mbarrier.arrive(%full[0])");
    refused(&kernel(init, &first, &second), "32 of the 33 arrivals of its phase happen");
}

#[test]
fn a_wait_before_the_arrivals_of_the_same_threads() {
    let first = format!(
        "mbarrier.wait(%empty[0], 0) // here\n    {PUT}\n    mbarrier.arrive(%empty[0]) // with"
    );
    refused(&kernel(INIT, &first, GET), "none of the 32 arrivals of its phase happens");
}

#[test]
fn roles_that_wait_for_each_other() {
    let first =
        format!("mbarrier.wait(%empty[0], 0) // here\n    {PUT}\n    mbarrier.arrive(%full[0])");
    let second =
        format!("mbarrier.wait(%full[0], 0)\n    {GET}\n    mbarrier.arrive(%empty[0]) // with");
    refused(&kernel(INIT, &first, &second), "none of the 32 arrivals of its phase happens");
}

#[test]
fn a_wait_for_bytes_that_nobody_copies() {
    let first = format!("{PUT}\n    mbarrier.expect(%full[0], 128) // with");
    let second = format!("mbarrier.wait(%full[0], 0) // here\n    {GET}");
    refused(
        &kernel(INIT, &first, &second),
        "bytes fewer arrive in its phase than `mbarrier.expect` states",
    );
}

#[test]
fn arrivals_that_nobody_waits_for() {
    let init = "mbarrier.init(%full, 32) // with\n    mbarrier.init(%empty, 32)";
    let first = format!("{PUT}\n    mbarrier.arrive(%full[0]) // here");
    refused(&kernel(init, &first, GET), "no thread waits for");
    // Without a conflict there is nothing to wait for.
    let text = kernel(INIT, "mbarrier.arrive(%full[0])", "");
    assert!(reports(&right(&text), Arch::Sm90a).iter().all(|r| r.faults.is_empty()), "{text}");
}

/// The errors of the verifier, which refuses a barrier that some of its threads do not reach.
fn not_well_formed(text: &str) -> Vec<(u32, String)> {
    let module = carbyne_ir::text::parse(text).unwrap_or_else(|e| panic!("{e}"));
    let program = match carbyne_ir::resolve::resolve(&module, text) {
        Ok(program) => program,
        Err(e) => return vec![(0, e.to_string())],
    };
    let errors = carbyne_ir::verify::verify(&program);
    let line = |at: u32| text[..at as usize].lines().count() as u32;
    errors.iter().map(|e| (line(e.span.start + 1), e.message.clone())).collect()
}

#[test]
fn a_barrier_that_a_part_does_not_reach() {
    let text = kernel(INIT, "barrier(#cta) // here", GET);
    assert_eq!(not_well_formed(&text)[0].0, line(&text, "// here"), "{text}");
    let text = "carbyne 2

%out:[64].f32.GL

Spec @part <<<#grid:[1], #cta:[@t < 128]>>> () -> (%out) {
  #half:[2].[64].thread = #cta.tile([64])
  Spec <<<#half[0]>>> () -> () {
    if (@t < 32) {
      barrier(#half[0]) // here
    }
  }
}
";
    assert_eq!(not_well_formed(text)[0].0, line(text, "// here"), "{text}");
}

#[test]
fn a_wait_with_an_expression() {
    let text = |left: &str| {
        format!(
            "carbyne 2

%in:[8,64].f32.GL
%out:[64].f32.GL

Spec @drain <<<#grid:[1], #cta:[@t < 64]>>> (%in) -> (%out) {{
  #one = #cta.scalar()
  Allocate %s:[4].[64].f32.SH
  Allocate %x:[1].f32.RF
  for (k = 0; k < 4; k += 1) {{
    Move <<<#one>>> (%in[k, @t]) -> (%s[k][@t]) atom=cp.async.ca.b32
    async.commit
  }}
  for (k = 0; k < 4; k += 1) {{
    async.wait({left})
    barrier
    Move <<<#one>>> (%s[k][63 - @t]) -> (%x[0]) atom=ld.shared.b32
  }}
  Move <<<#one>>> (%x[0]) -> (%out[@t]) atom=st.global.b32
}}
"
        )
    };
    // Instructions take only constants.
    let said = not_well_formed(&text("3 - k"));
    assert!(said[0].1.contains("the number of groups is not a constant"), "{said:?}");
    for (left, is_right) in [("4 - 4", true), ("5 - 4", false)] {
        let all = reports(&right(&text(left)), Arch::Sm90a);
        assert_eq!(all.iter().all(Report::is_ordered), is_right, "{left}: {all:#?}");
    }
}

#[test]
fn a_part_of_a_warp_group_is_none() {
    for statement in ["wgmma.fence", "wgmma.commit", "wgmma.wait(0)", "registers.dec(40)"] {
        for threads in [32, 96, 128, 160, 256, 288] {
            let text = format!(
                "carbyne 2

%in:[{threads}].f32.GL
%out:[{threads}].f32.GL

Spec @copy <<<#grid:[1], #cta:[@t < {threads}]>>> (%in) -> (%out) {{
  {statement}
  Move <<<#cta.scalar()>>> (%in[@t]) -> (%out[@t])
}}
"
            );
            let refused = reports(&right(&text), Arch::Sm90a)
                .iter()
                .any(|r| r.faults.iter().any(|f| f.is_certain && f.what.contains("are absent")));
            assert_eq!(refused, threads % 128 != 0, "{text}");
        }
    }
}

#[test]
fn two_blocks_are_enough_to_refuse_a_race() {
    let text = "carbyne 2

%in:[128].f32.GL
%out:[128].f32.GL

Spec @k <<<#grid:[8000000], #cta:[@t < 128]>>> (%in) -> (%out) {
  Move <<<#cta.scalar()>>> (%in[@t]) -> (%out[@t])
}
";
    let all = reports(&right(text), Arch::Sm80);
    assert_eq!(all.iter().map(|r| r.counts()[1]).sum::<usize>(), 1, "{all:#?}");
    assert!(all.iter().all(|r| r.faults.is_empty()), "{all:#?}");
}

/// Two warps hand over a ring of three stages. The second warp gives back the stage that it read in
/// the iteration before.
fn ring(turns: u32, given_back: &str, parity: &str) -> String {
    let row = |text: &str| {
        let text = text.replace("[1].mbarrier", "[3].mbarrier").replace("%s:[32]", "%s:[3].[32]");
        text.replace("[4,32]", &format!("[{turns},32]"))
    };
    let init = "mbarrier.init(%full, 32)\n    mbarrier.init(%empty, 32)";
    let first = format!(
        "for (k = 0; k < {turns}; k += 1) {{
      mbarrier.wait(%empty[k % 3], {parity}) // wait
      Move <<<#w[0].scalar()>>> (%in[k, @t % 32]) -> (%x[0]) atom=ld.global.b32
      Move <<<#w[0].scalar()>>> (%x[0]) -> (%s[k % 3][@t % 32]) atom=st.shared.b32
      mbarrier.arrive(%full[k % 3])
    }}"
    );
    let second = format!(
        "for (k = 0; k < {turns}; k += 1) {{
      mbarrier.wait(%full[k % 3], k / 3 % 2)
      Move <<<#w[1].scalar()>>> (%s[k % 3][31 - @t % 32]) -> (%x[0]) atom=ld.shared.b32
      if (k > 0) {{
        mbarrier.arrive(%empty[{given_back}])
      }}
    }}"
    );
    row(&kernel(init, &first, &second))
}

#[test]
fn a_stage_that_is_given_back_too_early_can_hang_the_producer() {
    const PARITY: &str = "(k / 3 + 1) % 2";
    for turns in [5, 7, 12, 100] {
        let text = ring(turns, "(k + 2) % 3", PARITY);
        assert!(reports(&right(&text), Arch::Sm90a).iter().all(Report::is_ordered), "{text}");
        for early in ["(k + 1) % 3", "k % 3"] {
            let text = ring(turns, early, PARITY);
            let reports = reports(&right(&text), Arch::Sm90a);
            let certain = reports.iter().flat_map(|r| &r.faults).any(|f| f.is_certain);
            assert!(certain, "{text}\n{reports:#?}");
        }
    }
    let text = ring(5, "(k + 1) % 3", PARITY);
    let text = text
        .replace("// wait", "// here")
        .replace("%empty[(k + 1) % 3])", "%empty[(k + 1) % 3]) // with");
    refused(&text, "nothing ends this wait: none of the 32 arrivals of its phase happens");
}

#[test]
fn a_wait_that_comes_behind_the_phase_after_its_own() {
    let text = |arrivals: usize| {
        let first = format!(
            "if (@t == 0) {{\n{}    }}",
            "    mbarrier.arrive(%full[0])\n".repeat(arrivals)
        );
        let init = "mbarrier.init(%full, 1)\n    mbarrier.init(%empty, 32)";
        kernel(init, &first, "mbarrier.wait(%full[0], 0) // here")
    };
    let faults = |arrivals| {
        let reports = reports(&right(&text(arrivals)), Arch::Sm90a);
        reports.iter().flat_map(|r| r.faults.iter().map(|f| f.is_certain)).collect::<Vec<bool>>()
    };
    assert!(faults(1).is_empty());
    // With two phases, the second one hides the first; with three, one wait returns for either of
    // two.
    for arrivals in 2..=4 {
        assert!(faults(arrivals).contains(&true), "{:?}", faults(arrivals));
    }
}

#[test]
fn data_where_an_mbarrier_is_live() {
    const LIVE: &str = "data shares memory with a live mbarrier";
    let text = |reuses: &str, first: &str, second: &str| {
        let init = INIT.replace("(%full, 32)", "(%full, 32) // with");
        let second = format!("mbarrier.wait(%full[0], 0)\n    {second}");
        let text = kernel(&init, &format!("{first}\n    mbarrier.arrive(%full[0])"), &second);
        let s = "  Allocate %s:[32].f32.SH\n";
        let (head, tail) = text.split_once(s).unwrap_or_default();
        let at = "  Spec <<<#cta[0]>>> () -> (%full, %empty)";
        let s = format!("  Allocate %s:[32].f32.SH{{{reuses}}}\n{at}");
        format!("{head}{}", tail.replacen(at, &s, 1))
    };
    let put = format!("{PUT} // here");
    let is_right = |text: &str| {
        let reports = reports(&right(text), Arch::Sm90a);
        assert!(reports.iter().all(Report::is_ordered), "{text}\n{reports:#?}");
    };
    is_right(&text("align=128", PUT, GET));
    refused(&text("reuses=%full", &put, GET), LIVE);
    refused(&text("reuses=%full", "", &format!("{GET} // here")), LIVE);
    // By an asynchronous copy, and for some elements only.
    let copy = "Move <<<#w[0].scalar()>>> (%in[0, @t % 32]) -> (%s[@t % 32]) atom=cp.async.ca.b32";
    let waits = "\n    async.commit\n    async.wait(0)";
    is_right(&text("align=128", &format!("{copy}{waits}"), GET));
    refused(&text("reuses=%full", &format!("{copy} // here{waits}"), GET), LIVE);
    let some = |from: u32, mark: &str| {
        let part = |s: &str| format!("if (@t % 32 >= {from}) {{\n    {s}\n    }}");
        let get = part(&GET.replace("31 - @t % 32", "@t % 32"));
        text("reuses=%full", &part(&format!("{PUT}{mark}")), &get)
    };
    is_right(&some(2, ""));
    refused(&some(1, " // here"), LIVE);
    // An mbarrier may be initialized where data was before.
    let before = text("align=128", PUT, GET).replace(
        "  Allocate %full:[1].mbarrier.SH\n",
        "  Allocate %d:[32].f32.SH\n  Allocate %full:[1].mbarrier.SH{reuses=%d}\n",
    );
    let data = "  if (@t < 32) {
    Move <<<#cta.scalar()>>> (%in[0, @t]) -> (%x[0]) atom=ld.global.b32
    Move <<<#cta.scalar()>>> (%x[0]) -> (%d[@t]) atom=st.shared.b32
  }
  barrier
  Spec <<<#cta[0]>>>";
    let data = before.replace("  Spec <<<#cta[0]>>>", data);
    is_right(&data);
    let late = data.replacen(
        "  barrier\n  Spec <<<#w[0]>>>",
        "  barrier\n  if (@t < 32) {
    Move <<<#cta.scalar()>>> (%d[@t]) -> (%x[0]) atom=ld.shared.b32 // here
  }
  Spec <<<#w[0]>>>",
        1,
    );
    refused(&late, LIVE);
}

/// Expects that a kernel of one block is refused for exactly one pair. Threads of the block access
/// `%s` between two barriers.
fn races(threads: usize, body: &str) {
    let text = format!(
        "carbyne 2

%in:[64].i32.GL
%out:[64].i32.GL

Spec @k <<<#grid:[1], #cta:[@t < {threads}]>>> (%in) -> (%out) {{
  #one = #cta.scalar()
  Allocate %s:[64].i32.SH
  Allocate %x:[1].i32.RF
  Move <<<#one>>> (%in[@t]) -> (%x[0])
  Move <<<#one>>> (%x[0]) -> (%s[@t])
  barrier
{body}
  barrier
  Move <<<#one>>> (%s[@t]) -> (%x[0])
  Move <<<#one>>> (%x[0]) -> (%out[@t])
}}
"
    );
    let all = reports(&right(&text), Arch::Sm80);
    assert_eq!(all.iter().map(|r| r.counts()[1]).sum::<usize>(), 1, "{text}: {all:#?}");
}

#[test]
fn accumulations_by_two_operations_need_an_order() {
    let first = "  if (@t == 0) {
    Move.add <<<#one>>> (%x[0]) -> (%s[0])
    Move.max <<<#one>>> (%x[0]) -> (%s[0])
  }";
    let second = "  if (@t == 40) {
    Move.add <<<#one>>> (%x[0]) -> (%s[0])
  }";
    races(64, &format!("{first}\n{second}"));
}

#[test]
fn a_read_of_a_statement_is_told_from_those_of_the_next_one() {
    let read = "  Move <<<#one>>> (%s[(@t + 2) % 32]) -> (%x[0])";
    let write = "  Move <<<#one>>> (%s[(@t + 1) % 32]) -> (%s[@t])";
    races(32, &format!("{read}\n{write}"));
}

/// The numbers of ordered, unordered and undecided pairs of a kernel in which the threads of
/// several blocks access `%out`.
fn of_blocks(blocks: usize, body: &str) -> [usize; 3] {
    let text = format!(
        "carbyne 2

%out:[4096].i32.GL

Spec @k <<<#grid:[@b < {blocks}], #cta:[@t < 64]>>> () -> (%out) {{
  #one = #cta.scalar()
  Allocate %x:[1].i32.RF
  Init <<<#one>>> (0) -> (%x[0])
{body}
}}
"
    );
    let all = reports(&right(&text), Arch::Sm80);
    assert_eq!(all.len(), 1, "{text}");
    all[0].counts()
}

#[test]
fn a_block_reads_what_another_one_accumulates() {
    let body = "  if (@t == 0) {
    if (@b == 0) {
      Move <<<#one>>> (%out[0]) -> (%x[0])
    }
    Move.add <<<#one>>> (%x[0]) -> (%out[0])
  }";
    assert_eq!(of_blocks(2, body)[1], 1);
}

#[test]
fn threads_of_a_block_that_is_not_followed_meet() {
    let body = "  Move <<<#one>>> (%out[@t * (3 - @b) + 1000 * @b]) -> (%x[0])
  if (@t == 63) {
    Move <<<#one>>> (%x[0]) -> (%out[@t * (3 - @b) + 1000 * @b])
  }";
    assert_eq!(of_blocks(4, body)[2], 1);
}
