//! Tests loops with roles: some warps fill the stages of a ring and others read them. The
//! decomposed program computes the results of the source text under several schedules of the warps,
//! and the order of its accesses is proved.

use crate::support::{decomposed, resolved};
use carbyne_atoms::AtomTable;
use carbyne_decompose::Decomposed;
use carbyne_ir::diag::Severity;
use carbyne_ir::testing;
use carbyne_simulate::{Inputs, Options, simulate};
use proptest::prelude::*;

/// The arguments that texts have, from A to B, in a block of so many threads.
fn text(threads: i64, body: &str) -> String {
    format!(
        "carbyne 2\n%A:[64,256].f16.GL\n%F:[64,256].f32.GL\n%B:[64,256].f16.GL\n\
         Spec @f <<<#grid:[1], #cta:[{threads}]>>> (%A, %F) -> (%B) {{\n{body}}}\n"
    )
}

/// Decomposes a text, and holds the result to it.
fn holds(src: &str, arch: &str) -> Decomposed {
    let table = AtomTable::new(arch.parse().expect("an architecture"));
    let d = decomposed(src, &table).unwrap_or_else(|e| panic!("{src}{e:?}"));
    for kernel in &d.program.kernels {
        let report = carbyne_sync::check(&d.program, *kernel, &table, &Default::default());
        let known = !src.contains("sym N");
        let found = carbyne_remedy::diagnostics(&report, &d.program, *kernel);
        let wrong = found.iter().any(|d| d.severity == Severity::Error);
        assert!(report.is_ordered() || !known && !wrong, "{arch}: {found:?}\n{}", d.text);
    }
    let sym = src.contains("sym N").then_some(5);
    let mut before = vec![];
    for (program, schedules) in
        [(&resolved(src), &[None][..]), (&d.program, &[None, Some(1), Some(7)])]
    {
        for schedule in schedules {
            let symbols = sym.map(|n| ("N".to_owned(), n)).into_iter().collect();
            let options = Options {
                inputs: Inputs::Seed(5),
                schedule: *schedule,
                symbols,
                ..Options::default()
            };
            let report = simulate(program, &table, &options).unwrap_or_else(|e| {
                panic!("{arch}, {schedule:?}: {e:?}\n{}\n{}", d.text, d.tile_level)
            });
            before.push(report.outputs.get("B").expect("all of B").values);
        }
    }
    for other in &before[1..] {
        assert!(*other == before[0], "{arch}\n{}", d.text);
    }
    d
}

const ARCHS: [&str; 3] = ["sm_75", "sm_80", "sm_90a"];

/// A body, how many threads its block has, and what it is decomposed to: arrivals by copies,
/// arrivals by threads (both of those that fill stages), barriers of the block.
type Case = (&'static str, i64, &'static str, (usize, usize, usize));

const CASES: [Case; 17] = [
    (
        "what a role copied before the loop it reads after it",
        96,
        "#c = #cta[0..64]
  #p = #cta[64..96]
  Move <<<#p>>> (%A.tile([64,16])[0, 15]) -> (%t:SH)
  for (k = 0; k < 15; k += 1) stages=3 {
    Move <<<#p>>> (%A.tile([64,16])[0, k]) -> (%s:SH)
    Move <<<#c>>> (%s) -> (%B.tile([64,16])[0, k])
  }
  Move <<<#p>>> (%t) -> (%B.tile([64,16])[0, 15])",
        (1, 0, 1),
    ),
    (
        "one role for each",
        96,
        "#c = #cta[0..64]
  #p = #cta[64..96]
  for (k = 0; k < 16; k += 1) stages=3 {
    Move <<<#p>>> (%A.tile([64,16])[0, k]) -> (%s:SH)
    Move <<<#c>>> (%s) -> (%B.tile([64,16])[0, k])
  }",
        (1, 0, 1),
    ),
    (
        "those who fill come first, one warp reads",
        96,
        "#p = #cta[0..64]
  #c = #cta[64..96]
  for (k = 0; k < 16; k += 1) stages=2 {
    Move <<<#p>>> (%A.tile([64,16])[0, k]) -> (%s:SH)
    Move <<<#c>>> (%s) -> (%B.tile([64,16])[0, k])
  }",
        (1, 0, 1),
    ),
    (
        "more stages than iterations",
        96,
        "#c = #cta[0..64]
  #p = #cta[64..96]
  for (k = 0; k < 4; k += 1) stages=7 {
    Move <<<#p>>> (%A.tile([64,64])[0, k]) -> (%s:SH)
    Move <<<#c>>> (%s) -> (%B.tile([64,64])[0, k])
  }",
        (1, 0, 1),
    ),
    (
        "a start and a step",
        96,
        "#c = #cta[0..64]
  #p = #cta[64..96]
  for (k = 1; k < 16; k += 2) stages=3 {
    Move <<<#p>>> (%A.tile([64,16])[0, k]) -> (%s:SH)
    Move <<<#c>>> (%s) -> (%B.tile([64,16])[0, k])
  }
  for (k = 0; k < 16; k += 2) stages=3 {
    Move <<<#p>>> (%A.tile([64,16])[0, k]) -> (%s:SH)
    Move <<<#c>>> (%s) -> (%B.tile([64,16])[0, k])
  }",
        (2, 0, 2),
    ),
    (
        "two groups read, each its half",
        96,
        "#c = #cta[0..32]
  #d = #cta[32..64]
  #p = #cta[64..96]
  for (k = 0; k < 16; k += 1) stages=3 {
    Move <<<#p>>> (%A.tile([64,16])[0, k]) -> (%s:SH)
    Move <<<#c>>> (%s.tile([32,16])[0, 0]) -> (%B.tile([32,16])[0, k])
    Move <<<#d>>> (%s.tile([32,16])[1, 0]) -> (%B.tile([32,16])[1, k])
  }",
        (1, 0, 1),
    ),
    (
        "two groups fill, each its half",
        128,
        "#c = #cta[0..64]
  #p = #cta[64..96]
  #q = #cta[96..128]
  for (k = 0; k < 16; k += 1) stages=3 {
    Allocate %s:[64,16].f16.SH{?}
    Move <<<#p>>> (%A.tile([32,16])[0, k]) -> (%s.tile([32,16])[0, 0])
    Move <<<#q>>> (%A.tile([32,16])[1, k]) -> (%s.tile([32,16])[1, 0])
    Move <<<#c>>> (%s) -> (%B.tile([64,16])[0, k])
  }",
        (2, 0, 1),
    ),
    (
        "two groups fill a tensor each",
        128,
        "#c = #cta[0..64]
  #p = #cta[64..96]
  #q = #cta[96..128]
  for (k = 0; k < 8; k += 1) stages=3 {
    Move <<<#p>>> (%A.tile([64,16])[0, k]) -> (%s:SH)
    Move <<<#q>>> (%A.tile([64,16])[0, k + 8]) -> (%t:SH)
    Move <<<#c>>> (%t) -> (%B.tile([64,16])[0, k + 8])
    Move <<<#c>>> (%s) -> (%B.tile([64,16])[0, k])
  }",
        (2, 0, 1),
    ),
    (
        "what is converted on the way threads write themselves",
        96,
        "#c = #cta[0..64]
  #p = #cta[64..96]
  for (k = 0; k < 16; k += 1) stages=3 {
    UnaryPointwise.cast <<<#p>>> (%F.tile([64,16])[0, k]) -> (%s:[64,16].f16.SH)
    Move <<<#c>>> (%s) -> (%B.tile([64,16])[0, k])
  }",
        (0, 1, 1),
    ),
    (
        "both",
        96,
        "#c = #cta[0..64]
  #p = #cta[64..96]
  for (k = 0; k < 8; k += 1) stages=3 {
    UnaryPointwise.cast <<<#p>>> (%F.tile([64,16])[0, k]) -> (%s:[64,16].f16.SH)
    Move <<<#p>>> (%A.tile([64,16])[0, k]) -> (%t:SH)
    Move <<<#c>>> (%s) -> (%B.tile([64,16])[0, k])
    Move <<<#c>>> (%t) -> (%B.tile([64,16])[0, k + 8])
  }",
        (1, 1, 1),
    ),
    (
        "from one to the next",
        128,
        "#p = #cta[0..32]
  #c = #cta[32..64]
  #d = #cta[64..128]
  for (k = 0; k < 16; k += 1) stages=3 {
    Move <<<#p>>> (%A.tile([64,16])[0, k]) -> (%s:SH)
    BinaryPointwise.add <<<#c>>> (%s, %s) -> (%t:SH)
    Move <<<#d>>> (%t) -> (%B.tile([64,16])[0, k])
  }",
        (1, 1, 1),
    ),
    (
        "a loop in a loop: the ring runs on",
        96,
        "#c = #cta[0..64]
  #p = #cta[64..96]
  for (j = 1; j < 5; j += 1) {
    for (k = 0; k < 4; k += 1) stages=3 {
      Move <<<#p>>> (%A.tile([64,64])[0, j - 1].tile([64,16])[0, k]) -> (%s:SH)
      Move <<<#c>>> (%s) -> (%B.tile([64,64])[0, j - 1].tile([64,16])[0, k])
    }
  }",
        (1, 0, 1),
    ),
    (
        "conditions and loops of the roles",
        96,
        "#c = #cta[0..64]
  #p = #cta[64..96]
  for (k = 0; k < 8; k += 1) stages=3 {
    Allocate %s:[64,32].f16.SH{?}
    %from = %A.tile([64,32])[0, k]
    for (i = 0; i < 2; i += 1) {
      Move <<<#p>>> (%from.tile([64,16])[0, i]) -> (%s.tile([64,16])[0, i])
    }
    if (k < 5) {
      Move <<<#c>>> (%s) -> (%B.tile([64,32])[0, k])
    } else {
      BinaryPointwise.add <<<#c>>> (%s, %s) -> (%B.tile([64,32])[0, k])
    }
  }",
        (1, 0, 1),
    ),
    (
        "a role that synchronizes itself",
        96,
        "#c = #cta[0..64]
  #p = #cta[64..96]
  for (k = 0; k < 4; k += 1) stages=2 {
    Move <<<#p>>> (%A.tile([64,64])[0, k]) -> (%s:SH)
    Allocate %t:[(64,64):(64,1)].f16.SH
    Move <<<#c>>> (%s) -> (%t)
    Move <<<#c>>> (%t.transpose()) -> (%B.tile([64,64])[0, k])
  }",
        (1, 0, 1),
    ),
    (
        "tensors of one role before, of another after",
        96,
        "#c = #cta[0..64]
  #p = #cta[64..96]
  Move <<<#p>>> (%A.tile([64,16])[0, 15]) -> (%w:SH)
  Allocate %x:[64,16].f16.SH{?}
  Move <<<#p>>> (%A.tile([64,16])[0, 14]) -> (%x)
  for (k = 0; k < 14; k += 1) stages=3 {
    Move <<<#p>>> (%A.tile([64,16])[0, k]) -> (%s:SH)
    BinaryPointwise.add <<<#c>>> (%s, %w) -> (%B.tile([64,16])[0, k])
  }
  Move <<<#c>>> (%w) -> (%B.tile([64,16])[0, 15])
  Move <<<#c>>> (%x) -> (%B.tile([64,16])[0, 14])",
        (1, 0, 1),
    ),
    (
        "two loops",
        96,
        "#c = #cta[0..64]
  #p = #cta[64..96]
  for (k = 0; k < 8; k += 1) stages=3 {
    Move <<<#p>>> (%A.tile([64,16])[0, k]) -> (%s:SH)
    Move <<<#c>>> (%s) -> (%B.tile([64,16])[0, k])
  }
  for (k = 8; k < 16; k += 1) stages=2 {
    Move <<<#c>>> (%A.tile([64,16])[0, k]) -> (%s:SH)
    Move <<<#p>>> (%s) -> (%B.tile([64,16])[0, k])
  }",
        (2, 0, 2),
    ),
    (
        "one stage at a time",
        96,
        "#c = #cta[0..64]
  #p = #cta[64..96]
  for (k = 0; k < 16; k += 1) {
    Move <<<#p>>> (%A.tile([64,16])[0, k]) -> (%s:SH)
    Move <<<#c>>> (%s) -> (%B.tile([64,16])[0, k])
  }",
        (0, 0, 2),
    ),
];

#[test]
fn whatever_roles_do() {
    for (what, threads, body, expected) in CASES {
        for &arch in testing::one_of(what, &ARCHS) {
            let d = holds(&text(threads, &format!("  {body}\n")), arch);
            let count = |what: &str| d.text.matches(what).count();
            let block = d.text.lines().filter(|l| l.trim() == "barrier").count();
            let found = (count("mbarrier.async_arrive"), count("mbarrier.arrive(%full"), block);
            let named = d.warnings.iter().any(|w| w.message.contains("advance together"));
            match arch {
                "sm_75" => assert_eq!(named, body.contains("stages="), "{what}: {:?}", d.warnings),
                _ => assert!(found == expected && !named, "{what}: {found:?}\n{}", d.text),
            }
        }
    }
}

/// The length of the loop is one that the caller knows.
#[test]
fn lengths_that_only_the_caller_knows() {
    let src = "carbyne 2
sym N{min=1, max=64}
%A:[16 * N,64].f16.GL
%B:[16 * N,64].f16.GL
Spec @copy <<<#grid:[1], #cta:[96]>>> (%A) -> (%B) {
  #c = #cta[0..64]
  #p = #cta[64..96]
  for (k = 0; k < N; k += 1) stages=3 {
    Move <<<#p>>> (%A.tile([16,64])[k, 0]) -> (%s:SH)
    Move <<<#c>>> (%s) -> (%B.tile([16,64])[k, 0])
  }
}
";
    for arch in ["sm_80", "sm_90a"] {
        let d = holds(src, arch);
        assert!(d.text.contains("mbarrier.wait(%full[k % 3], k / 3 % 2)"), "{}", d.text);
    }
}

/// A loop whose roles are drawn: who they are, what they fill and how, who reads which part of it.
#[derive(Clone, Debug)]
struct Drawn {
    /// Warps of each role, in the order of the block.
    warps: Vec<i64>,
    /// How many of the roles fill; they are drawn from the front or from the back.
    fillers: usize,
    front: bool,
    /// Rows and columns of a tile, and how many there are.
    tile: (i64, i64),
    trips: i64,
    stages: i64,
    start: i64,
    /// Of each filler, whether it converts.
    converts: Vec<bool>,
    /// Iterations of a loop around.
    around: i64,
    /// Whether those who fill do so in a loop of halves.
    halves: bool,
}

impl Drawn {
    fn text(&self) -> String {
        let threads: i64 = self.warps.iter().sum::<i64>() * 32;
        let (rows, cols) = self.tile;
        let (n, m) = (self.warps.len(), self.fillers);
        let readers: Vec<usize> = if self.front { (m..n).collect() } else { (0..n - m).collect() };
        let all = rows * readers.len() as i64;
        let wide = cols * self.trips * self.around * m as i64;
        let mut first = 0;
        let mut body = String::new();
        for (i, warps) in self.warps.iter().enumerate() {
            let last = first + warps * 32;
            body += &format!("  #r{i} = #cta[{first}..{last}]\n");
            first = last;
        }
        body += &format!("  for (o = 0; o < {}; o += 1) {{\n", self.around);
        let (start, end) = (self.start, self.start + self.trips);
        body += &format!("  for (k = {start}; k < {end}; k += 1) stages={} {{\n", self.stages);
        let at = |f: usize| format!("(o * {} + k - {start}) * {m} + {f}", self.trips);
        for f in 0..m {
            let role = if self.front { f } else { n - m + f };
            body += &format!("    Allocate %s{f}:[{all},{cols}].f16.SH{{?}}\n");
            let (from, kind) = match self.converts[f] {
                true => ("%F", "UnaryPointwise.cast"),
                false => ("%A", "Move"),
            };
            let from = format!("{from}.tile([{all},{cols}])[0, {}]", at(f));
            if self.halves {
                let half = all / 2;
                body += &format!(
                    "    for (i = 0; i < 2; i += 1) {{\n      {kind} <<<#r{role}>>> \
                     ({from}.tile([{half},{cols}])[i, 0]) \
                     -> (%s{f}.tile([{half},{cols}])[i, 0])\n    }}\n"
                );
            } else {
                body += &format!("    {kind} <<<#r{role}>>> ({from}) -> (%s{f})\n");
            }
        }
        for (part, role) in readers.iter().enumerate() {
            for f in 0..m {
                body += &format!(
                    "    BinaryPointwise.add <<<#r{role}>>> \
                     (%s{f}.tile([{rows},{cols}])[{part}, 0], \
                     %s{f}.tile([{rows},{cols}])[{part}, 0]) -> \
                     (%B.tile([{all},{cols}])[0, {}].tile([{rows},{cols}])[{part}, 0])\n",
                    at(f)
                );
            }
        }
        body += "  }\n  }\n";
        format!(
            "carbyne 2\n%A:[{all},{wide}].f16.GL\n%F:[{all},{wide}].f32.GL\n\
             %B:[{all},{wide}].f16.GL\n\
             Spec @f <<<#grid:[1], #cta:[{threads}]>>> (%A, %F) -> (%B) {{\n{body}}}\n"
        )
    }
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let roles = (proptest::collection::vec(1..=3i64, 2..=4), 1..=2usize, any::<bool>());
    let tiles = (prop_oneof![Just(16i64), Just(32)], prop_oneof![Just(16i64), Just(32)]);
    let loops = (1..=7i64, 2..=5i64, 0..=3i64, 1..=3i64);
    (roles, tiles, loops, proptest::collection::vec(any::<bool>(), 2), any::<bool>()).prop_map(
        |((warps, fillers, front), tile, (trips, stages, start, around), converts, halves)| Drawn {
            fillers: fillers.min(warps.len() - 1),
            warps,
            front,
            tile,
            trips,
            stages,
            start,
            converts,
            around,
            halves,
        },
    )
}

proptest! {
    #![proptest_config(testing::config_up_to(12, 1000))]

    #[test]
    fn roles_that_are_drawn(drawn in drawn()) {
        for arch in ["sm_75", "sm_80"] {
            let d = holds(&drawn.text(), arch);
            let parted = d.text.contains("mbarrier");
            let parts = arch != "sm_75" && drawn.trips * drawn.around > 1;
            prop_assert_eq!(parted, parts, "{}", d.text);
        }
    }
}

/// Arrivals are those of the kernel's own roles, whatever other kernels the file has.
#[test]
fn beside_other_kernels() {
    let src = "carbyne 2
%A:[64,256].f16.GL
%B:[64,256].f16.GL
%C:[64,256].f16.GL
Spec @twice <<<#grid:[1], #cta:[96]>>> (%A) -> (%B) {
  #users = #cta[0..64]
  #filler = #cta[64..96]
  for (k = 0; k < 16; k += 1) stages=3 {
    Move <<<#filler>>> (%A.tile([64,16])[0, k]) -> (%a:SH)
    BinaryPointwise.add <<<#users>>> (%a, %a) -> (%B.tile([64,16])[0, k])
  }
}
Move @copy (%B) -> (%C)
";
    let d = holds(src, "sm_80");
    assert!(d.text.contains("mbarrier.async_arrive"), "{}", d.text);
}

/// A role that writes what its copies read: nobody tells it that they are complete.
#[test]
fn what_copies_read_is_written_later() {
    let written = "  Init <<<#p>>> (0) -> (%A.tile([64,16])[0, 15])\n";
    let copies = "    Move <<<#p>>> (%A.tile([64,16])[0, k]) -> (%s:SH)
    Move <<<#c>>> (%s) -> (%B.tile([64,16])[0, k])\n";
    let roles = "  #c = #cta[0..64]\n  #p = #cta[64..96]\n";
    let head = "carbyne 2\n%A:[64,256].f16.GL\n%B:[64,256].f16.GL\n\
                Spec @f <<<#grid:[1], #cta:[96]>>> (%A) -> (%A, %B) {\n";
    let staged = "  for (k = 0; k < 16; k += 1) stages=3 {\n";
    for arch in ARCHS {
        for src in [
            format!("{head}{roles}{staged}{copies}  }}\n{written}}}\n"),
            format!("{head}{roles}{staged}{copies}  {written}  }}\n}}\n"),
            format!(
                "{head}{roles}  for (i = 0; i < 2; i += 1) {{\n\
                 {staged}{copies}  }}\n{written}  }}\n}}\n"
            ),
        ] {
            let d = holds(&src, arch);
            assert!(!d.text.contains("mbarrier"), "{}", d.text);
        }
    }
}
