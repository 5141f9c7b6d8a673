//! Tests reports and the messages made of them: certificates are valid, one defect is one error,
//! and help takes existing statements into account.

use crate::support::{reports, right, root};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::text;
use carbyne_sync::{Limits, Missing, Pair, Report, Verdict, check};

/// The decomposed text of a tile-level program.
fn decomposed(src: &str) -> String {
    let module = text::parse(src).unwrap_or_else(|e| panic!("{e}\n{src}"));
    let found = carbyne_decompose::decompose(&module, src, &AtomTable::new(Arch::Sm80));
    found.unwrap_or_else(|e| panic!("{e}\n{src}")).text
}

fn staged() -> String {
    decomposed(
        "carbyne 2
%A:[64,256].f16.GL
%B:[256,64].f16.GL
%C:[64,64].f32.GL
Spec @f <<<#grid:[1], #cta:[128]>>> (%A, %B) -> (%C) {
  Init (0) -> (%c:[64,64].f32)
  for (k = 0; k < 8; k += 1) stages=3 {
    Move (%A.tile([64,32])[0, k]) -> (%a:SH)
    Move (%B.tile([32,64])[k, 0]) -> (%b:SH)
    MatMul (%a, %b) -> (%c) acc=f32
  }
  Move (%c) -> (%C)
}
",
    )
}

fn ring() -> String {
    let path = root().join("examples/gemm_roles.cby");
    decomposed(&std::fs::read_to_string(path).expect("the example"))
}

/// The text with one replacement, which must be possible.
fn changed(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}\n{text}");
    text.replacen(from, to, 1)
}

fn said(text: &str) -> Vec<Diagnostic> {
    let program = right(text);
    let all = reports(&program, Arch::Sm80);
    program
        .kernels
        .iter()
        .zip(&all)
        .flat_map(|(k, r)| carbyne_remedy::diagnostics(r, &program, *k))
        .collect()
}

/// The number of the line that begins with a text, after spaces.
fn line(text: &str, begins: &str) -> usize {
    let at = text.lines().position(|l| l.trim_start().starts_with(begins));
    at.map_or(0, |at| at + 1)
}

/// The only error of a text.
fn error(text: &str) -> Diagnostic {
    let all = said(text);
    let [one] = all.as_slice() else { panic!("not one error: {all:#?}\n{text}") };
    one.clone()
}

fn help(d: &Diagnostic) -> &str {
    d.help.as_deref().unwrap_or_default()
}

#[test]
fn labels_name_the_loops_around_a_statement() {
    let text = "carbyne 2
%A:[4,32].f32.GL
%B:[4,32].f32.GL
Spec @f <<<#grid:[1], #cta:[@t < 32]>>> (%A) -> (%B) {
  Allocate %s:[32].f32.SH
  Allocate %x:[1].f32.RF
  #one = #cta.scalar()
  for (i = 0; i < 4; i += 1) {
    for (j = 0; j < 2; j += 1) {
      Init <<<#one>>> (0) -> (%x) atom=init.f32
    }
    for (q = 0; q < 3; q += 1) {
      Move <<<#one>>> (%A[i, _].tile([1])[@t]) -> (%x) atom=ld.global.b32
      barrier
    }
    Move <<<#one>>> (%x) -> (%s.tile([1])[@t]) atom=st.shared.b32
    Move <<<#one>>> (%s.tile([1])[31 - @t]) -> (%x) atom=ld.shared.b32
    Move <<<#one>>> (%x) -> (%B[i, _].tile([1])[@t]) atom=st.global.b32
  }
}
";
    assert_eq!(error(text).label, "thread 0 reads `%s` here, i = 0");
}

#[test]
fn one_missing_barrier_is_one_error() {
    let text = staged();
    let d = error(&changed(&text, "      barrier\n", ""));
    assert_eq!(d.code, Code::Unordered);
    let note = d.notes.join("\n");
    assert!(note.starts_with("5 more pairs probably lack the same"), "{d:#?}");
}

#[test]
fn help_names_the_wait_that_stands_there() {
    let text = staged();
    let d = error(&changed(&text, "async.wait(1)", "async.wait(2)"));
    let wait = line(&text, "async.wait(1)");
    let says = format!(
        "line {wait} leaves 2 groups in flight, but at most 1 may be: write `async.wait(1)`"
    );
    assert!(help(&d).starts_with(&says), "{d:#?}");
    let d = error(&changed(&text, "[k % 3].tv", "[(k + 1) % 3].tv"));
    let says = format!("line {wait} leaves 1 group in flight, but at most 0 may be");
    assert!(help(&d).starts_with(&says), "{d:#?}");
    // Removes the commit of the loop, which is the last one.
    let at = text.rfind("    async.commit\n").expect("a commit");
    let without = format!("{}{}", &text[..at], &text[at + "    async.commit\n".len()..]);
    let d = error(&without);
    let says = format!("so that `async.wait` in line {wait} waits for it");
    assert!(
        help(&d).starts_with("put `async.commit` after line ") && help(&d).ends_with(&says),
        "{d:#?}"
    );
}

#[test]
fn help_in_a_ring_is_about_its_mbarriers() {
    let text = ring();
    let arrive = line(&text, "mbarrier.async_arrive(%full");
    let d = error(&changed(&text, "mbarrier.async_arrive(%full", "mbarrier.arrive(%full"));
    let says = format!("replace `mbarrier.arrive` in line {arrive} by `mbarrier.async_arrive`");
    assert!(help(&d).starts_with(&says), "{d:#?}");
    // Removes the wait of the consumer.
    let without = changed(&text, "mbarrier.wait(%full[k % 3], k / 3 % 2)", "");
    let all = said(&without);
    let d = all.iter().find(|d| d.code == Code::Unordered).expect("an error");
    let says =
        format!("put `mbarrier.wait` for the phase that line {arrive} arrives in before line ");
    assert!(help(d).starts_with(&says), "{all:#?}");
    assert!(all.iter().all(|d| !help(d).contains("async.commit")), "{all:#?}");
}

#[test]
fn a_count_that_is_too_small_is_named() {
    let text = two_consumers(1);
    let all = said(&text);
    let init = line(&text, "mbarrier.init(%empty");
    let says = format!("line {init} initializes `%empty` for 1 arrivals, but 2 threads may arrive");
    assert!(all.iter().any(|d| d.message.contains(&says)), "{all:#?}");
    assert!(said(&two_consumers(2)).is_empty(), "{:#?}", said(&two_consumers(2)));
}

/// One warp produces and two consume; one thread of each consumer arrives.
fn two_consumers(count: i64) -> String {
    let consumer = |w: usize| {
        format!(
            "  Spec <<<#w[{w}]>>> (%s, %full, %empty) -> (%out, %x) {{
    for (k = 0; k < 8; k += 1) {{
      mbarrier.wait(%full[k % 2], k / 2 % 2)
      Move <<<#w[{w}].scalar()>>> (%s[k % 2][31 - @t % 32]) -> (%x[0]) atom=ld.shared.b32
      Move <<<#w[{w}].scalar()>>> (%x[0]) -> (%out[{w}, k, 31 - @t % 32]) atom=st.global.b32
      barrier(#w[{w}])
      Spec <<<#w[{w}][0]>>> (%empty) -> () {{
        mbarrier.arrive(%empty[k % 2])
      }}
    }}
  }}
"
        )
    };
    format!(
        "carbyne 2

%in:[8,32].f32.GL
%out:[3,8,32].f32.GL

Spec @ring <<<#grid:[1], #cta:[@t < 96]>>> (%in) -> (%out) {{
  #w:[3].[32].thread = #cta.tile([32])
  Allocate %s:[2].[32].f32.SH
  Allocate %x:[1].f32.RF
  Allocate %full:[2].mbarrier.SH
  Allocate %empty:[2].mbarrier.SH
  Spec <<<#cta[0]>>> () -> (%full, %empty) {{
    mbarrier.init(%full, 32)
    mbarrier.init(%empty, {count})
  }}
  barrier
  Spec <<<#w[0]>>> (%in, %empty, %full) -> (%s) {{
    for (k = 0; k < 8; k += 1) {{
      mbarrier.wait(%empty[k % 2], (k / 2 + 1) % 2)
      Move <<<#w[0].scalar()>>> (%in[k, @t % 32]) -> (%s[k % 2][@t % 32]) atom=cp.async.ca.b32
      mbarrier.async_arrive(%full[k % 2])
    }}
  }}
{}{}}}
",
        consumer(1),
        consumer(2)
    )
}

/// For each pair, the lines of its certificates.
fn certificates(text: &str) -> Vec<(String, Vec<Vec<u32>>)> {
    let program = right(text);
    let mut out = vec![];
    for pair in reports(&program, Arch::Sm80).iter().flat_map(|r| &r.pairs) {
        let Verdict::Ordered(ways) = &pair.verdict else { panic!("{pair:#?}") };
        let name = |b| &program.buffers[b].name;
        let what = format!(
            "{} {}, {}",
            name(pair.first.buffer),
            pair.first.kind.verb(),
            pair.second.place.what
        );
        let lines = ways.iter().map(|w| w.steps.iter().map(|s| s.line).collect());
        out.push((what, lines.collect()));
    }
    out
}

#[test]
fn certificates_list_what_holds() {
    let text = two_consumers(2);
    let found = certificates(&text);
    let barrier = line(&text, "barrier") as u32;
    let (full, empty) = ("mbarrier.wait(%full", "mbarrier.wait(%empty");
    let [wait, refill] = [full, empty].map(|l| line(&text, l) as u32);
    let counted = line(&text, "mbarrier.async_arrive") as u32;
    let (own, arrive) =
        (line(&text, "barrier(#w[1])") as u32, line(&text, "mbarrier.arrive") as u32);
    for (what, ways) in &found {
        assert!(!ways.is_empty() && ways.iter().all(|w| !w.is_empty()), "{what}: {ways:?}\n{text}");
        // Any use of an mbarrier is ordered after its init by the barrier that follows the init,
        // and by nothing else.
        if what.contains("mbarrier") {
            assert_eq!(ways, &vec![vec![barrier]], "{what}\n{text}");
        }
        // A wait of a warp after its read cannot order a write before that read.
        if what == "s writes, Move" {
            let reads: Vec<&Vec<u32>> = ways.iter().filter(|w| w.len() == 2).collect();
            assert!(reads.iter().all(|w| w[0] == counted && !w.contains(&own)), "{ways:?}\n{text}");
        }
        if what == "s reads, Move" {
            let known = |w: &Vec<u32>| w.last() == Some(&refill) && w.len() <= 3;
            assert!(ways.iter().all(known), "{ways:?}\n{text}");
        }
    }
    let all: Vec<&Vec<u32>> = found.iter().flat_map(|(_, ways)| ways).collect();
    assert!(all.contains(&&vec![counted, wait]), "{found:#?}");
    assert!(all.contains(&&vec![own, arrive, refill]), "{found:#?}");
}

/// The fence hands registers of an asynchronous MatMul over, and the wait hands them back.
#[test]
fn certificates_of_registers_name_their_fences() {
    let path = root().join("examples/hopper_gemm_roles.cby");
    let src = std::fs::read_to_string(&path).expect("the example");
    let program = right(&src);
    let all = reports(&program, Arch::Sm90a);
    let mut named = vec![];
    for pair in all.iter().flat_map(|r| &r.pairs) {
        let Verdict::Ordered(ways) = &pair.verdict else { panic!("{pair:#?}") };
        assert!(ways.iter().all(|w| !w.steps.is_empty()), "{pair:#?}");
        named.extend(ways.iter().flat_map(|w| &w.steps).map(|s| s.what.clone()));
    }
    assert!(named.iter().any(|what| what == "wgmma.fence"), "{named:?}");
}

/// A kernel of several blocks whose output index is bounded by a symbolic trip count.
fn symbolic(blocks: usize, index: &str) -> String {
    format!(
        "carbyne 2
sym N{{min=1, max=8}}
%A:[64].f32.GL
%O:[4,8,64].f32.GL
Spec @f <<<#grid:[@b < {blocks}], #cta:[@t < 64]>>> (%A) -> (%O) {{
  Allocate %x:[1].f32.RF
  Move <<<#cta.scalar()>>> (%A[@t]) -> (%x[0]) atom=ld.global.b32
  for (k = 0; k < N; k += 1) {{
    Move <<<#cta.scalar()>>> (%x[0]) -> (%O[{index}, k, @t]) atom=st.global.b32
  }}
}}
"
    )
}

#[test]
fn trip_counts_of_symbols_are_decided_across_blocks() {
    assert!(said(&symbolic(1, "0")).is_empty(), "{:#?}", said(&symbolic(1, "0")));
    assert!(said(&symbolic(4, "@b")).is_empty(), "{:#?}", said(&symbolic(4, "@b")));
    let d = error(&symbolic(4, "0"));
    assert!(d.message.contains("different blocks make them"), "{d:#?}");
    // Also with many values of the symbol.
    let many = |at| symbolic(4, at).replace("max=8", "max=256").replace("[4,8,64]", "[4,256,64]");
    assert!(said(&many("@b")).is_empty(), "{:#?}", said(&many("@b")));
    let d = error(&many("0"));
    assert!(d.message.contains("different blocks make them"), "{d:#?}");
}

/// Two roles that hand over a tile in nested loops with these trip counts.
fn nested(outer: i64, inner: i64) -> String {
    decomposed(&format!(
        "carbyne 2
%A:[64,64].f16.GL
%B:[64,64].f16.GL
Spec @f <<<#grid:[1], #cta:[96]>>> (%A) -> (%B) {{
  #u = #cta[0..64]
  #p = #cta[64..96]
  Init <<<#u>>> (0) -> (%c:[64,16].f16)
  for (j = 0; j < {outer}; j += 1) {{
    for (k = 0; k < {inner}; k += 1) stages=3 {{
      Move <<<#p>>> (%A.tile([64,16])[0, k % 4]) -> (%a:SH)
      BinaryPointwise.add <<<#u>>> (%a, %c) -> (%c)
    }}
  }}
  Move <<<#u>>> (%c) -> (%B.tile([64,16])[0, 0])
}}
"
    ))
}

#[test]
fn long_loops_end_in_an_answer() {
    let one = |text: &str, accesses: u64| -> Report {
        let program = right(text);
        let limits = Limits { accesses, ..Limits::default() };
        check(&program, program.kernels[0], &AtomTable::new(Arch::Sm80), &limits)
    };
    // A single loop is followed until its iterations repeat, whatever its trip count.
    let report = one(&nested(1, i64::MAX), 1 << 23);
    assert!(report.is_ordered(), "{report:#?}");
    let report = one(&nested(1_000_000_000, 1_000_000_000), 1 << 23);
    let [fault] = report.faults.as_slice() else { panic!("{:#?}", report.faults) };
    assert!(!fault.is_certain && fault.what.contains("takes more steps"), "{fault:#?}");
}

#[test]
fn a_ring_that_runs_on_from_tile_to_tile_is_proved_at_its_size() {
    let path = root().join("examples/hopper_gemm_by_hand.cby");
    let src = std::fs::read_to_string(path).expect("the example");
    let src = changed(&src, "let M = 512, N = 512, K = 256", "let M = 8192, N = 8192, K = 8192");
    let src = changed(&src, "BAND = 2, G = 3", "BAND = 16, G = 132");
    let module = text::parse(&src).expect("a program");
    let table = AtomTable::new(Arch::Sm90a);
    let found = carbyne_decompose::decompose(&module, &src, &table).expect("atoms");
    let kernel = found.program.kernels[0];
    let report = check(&found.program, kernel, &table, &Limits::default());
    let said = carbyne_remedy::diagnostics(&report, &found.program, kernel);
    assert!(said.is_empty(), "{said:#?}");
}

/// `fence.async` is for shared memory: the copy engine does not see data that threads of its kernel
/// have written to global memory.
#[test]
fn copies_of_what_threads_wrote_to_global_memory_are_refused() {
    let text = |tensor: &str| {
        format!(
            "carbyne 2
%A:[64].f32.GL
%L:[64].f32.GL
%M:[64].f32.GL
Spec @k <<<#grid:[1], #cta:[@t < 64]>>> (%A, %L) -> (%{tensor}) {{
  #one = #cta.scalar()
  Allocate %s:[64].f32.SH{{align=128}}
  Allocate %x:[1].f32.RF
  Allocate %full:[1].mbarrier.SH
  Move <<<#one>>> (%A[@t]) -> (%x[0]) atom=ld.global.b32
  Move <<<#one>>> (%x[0]) -> (%{tensor}[@t]) atom=st.global.b32
  fence.async
  Spec <<<#cta[0]>>> () -> (%full) {{
    mbarrier.init(%full, 1)
    fence.async
  }}
  barrier
  Spec <<<#cta[0]>>> (%L, %full) -> (%s) {{
    fence.async
    mbarrier.expect(%full, 256)
    Move (%L) -> (%s) bar=%full atom=cp.async.bulk.shared.global
  }}
  mbarrier.wait(%full, 0)
}}
"
        )
    };
    let missing = |tensor: &str| -> Vec<Missing> {
        let pairs = reports(&right(&text(tensor)), Arch::Sm90a).remove(0).pairs;
        let lacks = |pair: &Pair| match pair.verdict {
            Verdict::Unordered(missing) => Some(missing),
            _ => None,
        };
        pairs.iter().filter_map(lacks).collect()
    };
    assert_eq!(missing("M"), []);
    assert_eq!(missing("L"), [Missing::Fence]);
}
