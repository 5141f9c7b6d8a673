//! Tests loops with many iterations or an unknown trip count: iterations that the checker leaves
//! out must behave like those that it follows.

use crate::support::{complaints, right};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::program::Program;
use carbyne_ir::testing;
use carbyne_sync::{Limits, Report, check};
use std::sync::OnceLock;
use std::time::Instant;

fn reports(program: &Program, every_iteration: bool) -> Vec<Report> {
    let table = AtomTable::new(Arch::Sm90a);
    let limits = Limits { every_iteration, ..Limits::default() };
    program.kernels.iter().map(|k| check(program, *k, &table, &limits)).collect()
}

/// A ring of `cp.async` stages with trip count `n`; `sym` declares `n` if it is a symbol.
fn stages(n: &str, sym: &str, stages: usize, left: usize, barrier: &str) -> String {
    format!(
        "carbyne 2
{sym}
%in:[{n} + 8,64].f32.GL
%out:[64].f32.GL

Spec @stages <<<#grid:[1], #cta:[@t < 64]>>> (%in) -> (%out) {{
  #one = #cta.scalar()
  Allocate %s:[{stages}].[64].f32.SH
  Allocate %x:[1].f32.RF
  for (k = 0; k < {stages} - 1; k += 1) {{
    Move <<<#one>>> (%in[k, @t]) -> (%s[k][@t]) atom=cp.async.ca.b32
    async.commit
  }}
  for (k = 0; k < {n}; k += 1) {{
    if (k + {stages} - 1 < {n}) {{
      Move <<<#one>>> (%in[k + {stages} - 1, @t])
          -> (%s[(k + {stages} - 1) % {stages}][@t]) atom=cp.async.ca.b32
    }}
    async.commit
    async.wait({left})
    barrier
    Move <<<#one>>> (%s[k % {stages}][63 - @t]) -> (%x[0]) atom=ld.shared.b32
    {barrier}
  }}
  async.wait(0)
  Move <<<#one>>> (%x[0]) -> (%out[63 - @t]) atom=st.global.b32
}}
"
    )
}

/// A producer warp and a consumer warp with a ring of mbarriers.
fn roles(n: &str, sym: &str, ring: usize, parity: &str) -> String {
    format!(
        "carbyne 2
{sym}
%in:[{n} + 1,32].f32.GL
%out:[32].f32.GL

Spec @ring <<<#grid:[1], #cta:[@t < 64]>>> (%in) -> (%out) {{
  #w:[2].[32].thread = #cta.tile([32])
  Allocate %s:[{ring}].[32].f32.SH
  Allocate %x:[1].f32.RF
  Allocate %full:[{ring}].mbarrier.SH
  Allocate %empty:[{ring}].mbarrier.SH
  Spec <<<#cta[0]>>> () -> (%full, %empty) {{
    mbarrier.init(%full, 32)
    mbarrier.init(%empty, 32)
  }}
  barrier
  Spec <<<#w[0]>>> (%in, %empty, %full) -> (%s) {{
    for (k = 0; k < {n}; k += 1) {{
      mbarrier.wait(%empty[k % {ring}], {parity})
      Move <<<#w[0].scalar()>>> (%in[k, @t % 32]) -> (%s[k % {ring}][@t % 32]) atom=cp.async.ca.b32
      mbarrier.async_arrive(%full[k % {ring}])
    }}
  }}
  Spec <<<#w[1]>>> (%s, %empty, %full) -> (%out, %x) {{
    for (k = 0; k < {n}; k += 1) {{
      mbarrier.wait(%full[k % {ring}], k / {ring} % 2)
      Move <<<#w[1].scalar()>>> (%s[k % {ring}][31 - @t % 32]) -> (%x[0]) atom=ld.shared.b32
      mbarrier.arrive(%empty[k % {ring}])
    }}
    Move <<<#w[1].scalar()>>> (%x[0]) -> (%out[31 - @t % 32]) atom=st.global.b32
  }}
}}
"
    )
}

fn texts(n: &str, sym: &str) -> Vec<(String, bool)> {
    let mut out = vec![];
    for s in [2, 3, 4] {
        out.push((stages(n, sym, s, s - 1, "barrier"), true));
        // The wait leaves one group too many; without the barrier, a fast warp is an iteration
        // ahead.
        out.push((stages(n, sym, s, s, "barrier"), false));
        out.push((stages(n, sym, s, s - 1, ""), false));
    }
    for ring in [1, 2, 3, 5] {
        out.push((roles(n, sym, ring, &format!("(k / {ring} + 1) % 2")), true));
        out.push((roles(n, sym, ring, &format!("k / {ring} % 2")), false));
    }
    out
}

/// The kernel with blocks, each of which has its own trip count.
fn of_blocks(text: &str) -> String {
    text.replace("#grid:[1]", "#grid:[@b < 48]")
        .replace("%out:[64]", "%out:[48,64]")
        .replace("%out:[32]", "%out:[48,32]")
        .replace("(%out[", "(%out[@b, ")
        .replace("[@b + 8,", "[56,")
        .replace("[@b + 1,", "[56,")
}

/// Grids whose number of blocks is a symbol: errors within a block are refused, and correct kernels
/// are not.
#[test]
fn errors_for_one_value_of_a_symbol_are_refused() {
    for (text, is_right) in texts("12", "sym N{div=4}") {
        let text =
            of_blocks(&text).replace("[@b < 48]", "[@b < N]").replace("%out:[48,", "%out:[N,");
        let program = right(&text);
        let all = reports(&program, false);
        let refused = |r: &Report| r.counts()[1] > 0 || r.faults.iter().any(|f| f.is_certain);
        let said: Vec<String> = all.iter().flat_map(|r| complaints(&program, r)).collect();
        assert_eq!(all.iter().any(refused), !is_right, "{said:?}\n{text}");
    }
}

#[test]
fn blocks_that_differ_in_trip_counts_are_as_if_followed_one_by_one() {
    for (text, is_right) in texts("@b", "") {
        let text = of_blocks(&text);
        let program = right(&text);
        let (some, all) = (reports(&program, false), reports(&program, true));
        let said = |r: &[Report]| -> Vec<String> {
            r.iter().flat_map(|r| complaints(&program, r)).collect()
        };
        assert_eq!(some.iter().all(Report::is_ordered), is_right, "{:?}\n{text}", said(&some));
        let counts = |r: &[Report]| r.iter().map(Report::counts).collect::<Vec<_>>();
        assert_eq!(counts(&some), counts(&all), "{:?}\n{:?}\n{text}", said(&some), said(&all));
    }
}

#[test]
fn many_iterations_cost_as_much_as_a_dozen() {
    for (text, is_right) in texts("100000000", "") {
        let program = right(&text);
        let start = Instant::now();
        let reports = reports(&program, false);
        // An iteration takes some ten microseconds.
        assert!(start.elapsed() < testing::SOON, "{:?}\n{text}", start.elapsed());
        let said: Vec<String> = reports.iter().flat_map(|r| complaints(&program, r)).collect();
        assert_eq!(reports.iter().all(Report::is_ordered), is_right, "{said:?}\n{text}");
    }
}

#[test]
fn a_symbol_decides_nothing() {
    for (text, is_right) in texts("N", "sym N") {
        let program = right(&text);
        let reports = reports(&program, false);
        let said: Vec<String> = reports.iter().flat_map(|r| complaints(&program, r)).collect();
        assert_eq!(reports.iter().all(Report::is_ordered), is_right, "{said:?}\n{text}");
        let refused = |r: &Report| r.counts()[1] > 0 || r.faults.iter().any(|f| f.is_certain);
        assert_eq!(reports.iter().any(refused), !is_right, "{said:?}\n{text}");
    }
}

#[test]
fn iterations_that_are_left_out_are_like_the_rest() {
    for n in (0..12).chain([17, 31, 40, 61]) {
        for (text, _) in texts(&n.to_string(), "") {
            let program = right(&text);
            let (some, all) = (reports(&program, false), reports(&program, true));
            let said = |r: &[Report]| -> Vec<String> {
                r.iter().flat_map(|r| complaints(&program, r)).collect()
            };
            let counts = |r: &[Report]| r.iter().map(Report::counts).collect::<Vec<_>>();
            assert_eq!(counts(&some), counts(&all), "{:?}\n{:?}\n{text}", said(&some), said(&all));
            assert_eq!(said(&some), said(&all), "{text}");
        }
    }
}

/// The seed of program number `i`.
fn seeds(i: u64) -> u64 {
    static FIRST: OnceLock<u64> = OnceLock::new();
    FIRST.get_or_init(testing::seed).wrapping_mul(1 << 32).wrapping_add(i)
}

/// Pseudorandom numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn condition(&mut self, n: u64) -> String {
        let (a, b) = (2 + self.below(4), self.below(4));
        match self.below(6) {
            0 => format!("k % {a} == {}", b % a),
            1 => format!("k + {b} < {n}"),
            2 => format!("k > {}", self.below(n + 1)),
            3 => format!("k / {a} % 2 == {}", b % 2),
            4 => format!("(k + r * {n}) % {a} == 0"),
            _ => format!("k == {}", n.saturating_sub(1 + b)),
        }
    }

    fn index(&mut self, n: u64, ring: u64) -> String {
        match self.below(4) {
            0 => format!("(k + {}) % {ring}", self.below(ring)),
            1 => format!("k / {} % {ring}", 1 + self.below(3)),
            2 => format!("(k + r * {n}) % {ring}"),
            _ => self.below(ring).to_string(),
        }
    }

    fn body(&mut self, n: u64, ring: u64) -> String {
        let mut out = String::new();
        for _ in 0..2 + self.below(4) {
            let place = self.index(n, ring);
            let stmt = match self.below(5) {
                0 => format!("Move <<<#one>>> (%x[0]) -> (%s[{place}][@t]) atom=st.shared.b32"),
                1 => {
                    format!("Move <<<#one>>> (%s[{place}][63 - @t]) -> (%x[0]) atom=ld.shared.b32")
                }
                2 => format!(
                    "Move <<<#one>>> (%in[0, @t]) -> (%s[{place}][@t]) atom=cp.async.ca.b32\n      \
                     async.commit"
                ),
                3 => format!("async.wait({})", self.below(3)),
                _ => "barrier".to_owned(),
            };
            out.push_str(&match self.below(3) {
                0 => format!("      if ({}) {{\n      {stmt}\n      }}\n", self.condition(n)),
                _ => format!("      {stmt}\n"),
            });
        }
        out
    }
}

/// Nested loops with random statements, right or wrong.
#[test]
#[expect(clippy::print_stdout, reason = "says how many there are")]
fn random_loops_are_as_if_every_iteration_was_followed() {
    let all = testing::count(1000, 20_000);
    let (mut right_ones, mut wrong_ones) = (0, 0);
    for i in 0..all {
        let seed = seeds(i);
        let mut dice = Dice(seed.wrapping_mul(7919).wrapping_add(1));
        let (n, rounds, ring) = (1 + dice.below(40), 1 + dice.below(5), 1 + dice.below(4));
        let text = format!(
            "carbyne 2

%in:[1,64].f32.GL
%out:[64].f32.GL

Spec @loops <<<#grid:[1], #cta:[@t < 64]>>> (%in) -> (%out) {{
  #one = #cta.scalar()
  Allocate %s:[{ring}].[64].f32.SH
  Allocate %x:[1].f32.RF
  for (r = 0; r < {rounds}; r += 1) {{
    for (k = 0; k < {n}; k += 1) {{
{}    }}
{}  }}
  async.wait(0)
  Move <<<#one>>> (%x[0]) -> (%out[63 - @t]) atom=st.global.b32
}}
",
            dice.body(n, ring),
            if dice.below(2) == 0 { "    barrier\n" } else { "" },
        );
        let Ok(module) = carbyne_ir::text::parse(&text) else { panic!("{text}") };
        let Some(program) = crate::support::program(&module, &text) else { continue };
        let (some, all) = (reports(&program, false), reports(&program, true));
        let said = |r: &[Report]| -> Vec<String> {
            r.iter().flat_map(|r| complaints(&program, r)).collect()
        };
        assert_eq!(said(&some), said(&all), "seed {seed}\n{text}");
        match all.iter().all(Report::is_ordered) {
            true => right_ones += 1,
            false => wrong_ones += 1,
        }
    }
    println!("{right_ones} are right, {wrong_ones} wrong");
    assert!(right_ones * 20 > wrong_ones && wrong_ones > right_ones / 20);
}

/// Writes of a block to global memory in the iterations of a loop.
fn writes(dice: &mut Dice, n: u64) -> String {
    let mut out = String::new();
    for _ in 0..1 + dice.below(3) {
        let a = 1 + dice.below(4);
        let row = match dice.below(6) {
            0 | 1 => "k".to_owned(),
            2 => format!("k % {a}"),
            3 => format!("k / {a}"),
            4 => "@b".to_owned(),
            _ => format!("(k + @b) % {n}"),
        };
        let column = if dice.below(3) == 0 { "63 - @t" } else { "@t" };
        let stmt = match dice.below(6) {
            0 => format!("Move <<<#one>>> (%out[{row}, {column}]) -> (%x[0]) atom=ld.global.b32"),
            1 => "barrier".to_owned(),
            _ => format!("Move <<<#one>>> (%x[0]) -> (%out[{row}, {column}]) atom=st.global.b32"),
        };
        out.push_str(&match dice.below(4) {
            0 => format!(
                "    if ({}) {{\n      {stmt}\n    }}\n",
                dice.condition(n).replace("r *", "@b *")
            ),
            _ => format!("    {stmt}\n"),
        });
    }
    out
}

/// Elements that are written once are not followed. Repeated accesses are found, whether by another
/// iteration, another thread or another block.
#[test]
#[expect(clippy::print_stdout, reason = "says how many there are")]
fn random_writes_to_global_memory_are_as_if_every_iteration_was_followed() {
    let all = testing::count(1000, 20_000);
    let (mut right_ones, mut wrong_ones) = (0, 0);
    for i in 0..all {
        let seed = seeds(i);
        let mut dice = Dice(seed.wrapping_mul(104_729).wrapping_add(1));
        let (n, blocks) = (1 + dice.below(40), 1 + dice.below(4));
        let bounds = match dice.below(3) {
            0 => format!("k = 0; k < {n}; k += 1"),
            1 => format!("k = @b; k < {n}; k += {blocks}"),
            _ => format!("k = @b * {n} / {blocks}; k < {n}; k += 1"),
        };
        let text = format!(
            "carbyne 2

%in:[64].f32.GL
%out:[64,64].f32.GL

Spec @writes <<<#grid:[@b < {blocks}], #cta:[@t < 64]>>> (%in, %out) -> (%out) {{
  #one = #cta.scalar()
  Allocate %x:[1].f32.RF
  Move <<<#one>>> (%in[@t]) -> (%x[0]) atom=ld.global.b32
  for ({bounds}) {{
{}  }}
}}
",
            writes(&mut dice, n),
        );
        let Ok(module) = carbyne_ir::text::parse(&text) else { panic!("{text}") };
        let Some(program) = crate::support::program(&module, &text) else { continue };
        let (some, all) = (reports(&program, false), reports(&program, true));
        let said = |r: &[Report]| -> Vec<String> {
            r.iter().flat_map(|r| complaints(&program, r)).collect()
        };
        assert_eq!(said(&some), said(&all), "seed {seed}\n{text}");
        match all.iter().all(Report::is_ordered) {
            true => right_ones += 1,
            false => wrong_ones += 1,
        }
    }
    println!("{right_ones} are right, {wrong_ones} wrong");
    assert!(right_ones * 20 > wrong_ones && wrong_ones > right_ones / 20);
}

/// Rows that bulk copies store from two stages; each wait leaves `left` copies in flight.
fn stores(n: &str, left: usize, row: &str, last: &str) -> String {
    format!(
        "carbyne 2

%in:[64].f32.GL
%out:[64,64].f32.GL

Spec @stores <<<#grid:[1], #cta:[@t < 64]>>> (%in, %out) -> (%out) {{
  #one = #cta.scalar()
  Allocate %s:[2].[64].f32.SH{{align=128}}
  Allocate %x:[1].f32.RF
  Move <<<#one>>> (%in[@t]) -> (%x[0]) atom=ld.global.b32
  for (k = 0; k < {n}; k += 1) {{
    Spec <<<#cta[0]>>> () -> () {{
      bulk.wait_read({left})
    }}
    barrier
    Move <<<#one>>> (%x[0]) -> (%s[k % 2][@t]) atom=st.shared.b32
    fence.async
    barrier
    Spec <<<#cta[0]>>> (%s) -> (%out) {{
      Move (%s[k % 2]) -> (%out[{row}, _]) atom=cp.async.bulk.global.shared
      bulk.commit
    }}
  }}
  Spec <<<#cta[0]>>> () -> () {{
    {last}
  }}
  barrier
  Move <<<#one>>> (%out[0, 63 - @t]) -> (%x[0]) atom=ld.global.b32
}}
"
    )
}

#[test]
fn stores_in_flight_are_as_if_every_iteration_was_followed() {
    let (mut right_ones, mut wrong_ones) = (0, 0);
    for n in [1, 2, 3, 7, 20, 61] {
        for (left, row) in [(0, "k"), (1, "k"), (2, "k"), (1, "k % 3"), (0, "k / 2"), (1, "63 - k")]
        {
            for last in ["bulk.wait(0)", "bulk.wait(1)", "bulk.wait_read(0)"] {
                let text = stores(&n.to_string(), left, row, last);
                let program = right(&text);
                let (some, all) = (reports(&program, false), reports(&program, true));
                let said = |r: &[Report]| -> Vec<String> {
                    r.iter().flat_map(|r| complaints(&program, r)).collect()
                };
                assert_eq!(said(&some), said(&all), "{text}");
                match all.iter().all(Report::is_ordered) {
                    true => right_ones += 1,
                    false => wrong_ones += 1,
                }
            }
        }
    }
    assert!(right_ones > 20 && wrong_ones > 20, "{right_ones} are right, {wrong_ones} wrong");
}

/// The ring of [`roles`] over several tiles with the same trip count; `turn` is the number of an
/// iteration over all tiles.
fn tiles(ring: usize, turn: &str, parity: &str) -> String {
    roles("K", "sym N, K", ring, parity)
        .replace("%in:[K + 1,32]", "%in:[N * K + 1,32]")
        .replace("  for (k = 0;", "  for (t = 0; t < N; t += 1) {\n    for (k = 0;")
        .replace("k += 1) {\n", &format!("k += 1) {{\n      let q = {turn}\n"))
        .replace("%in[k,", "%in[t * K + k,")
        .replace(&format!("k % {ring}]"), &format!("q % {ring}]"))
        .replace(&format!("k / {ring}"), &format!("q / {ring}"))
        .replacen("    }\n  }\n  Spec <<<#w[1]>>>", "    }\n    }\n  }\n  Spec <<<#w[1]>>>", 1)
        .replacen("    }\n    Move <<<#w[1]", "    }\n    }\n    Move <<<#w[1]", 1)
}

#[test]
fn two_nested_trip_counts_are_proved() {
    let judged = |text: &str| {
        let program = right(text);
        let all = reports(&program, false);
        let refused = |r: &Report| r.counts()[1] > 0 || r.faults.iter().any(|f| f.is_certain);
        let said: Vec<String> = all.iter().flat_map(|r| complaints(&program, r)).collect();
        (all.iter().all(Report::is_ordered), all.iter().any(refused), said)
    };
    for ring in [2, 3] {
        let parity = format!("(k / {ring} + 1) % 2");
        let (proved, refused, said) = judged(&tiles(ring, "t * K + k", &parity));
        assert!(proved && !refused, "{said:?}");
        // Each tile begins with the first stage and the first phase.
        let (proved, _, said) = judged(&tiles(ring, "k", &parity));
        assert!(!proved, "{said:?}");
        // The parity of the round before.
        let wrong = format!("k / {ring} % 2");
        let (proved, refused, said) = judged(&tiles(ring, "t * K + k", &wrong));
        assert!(!proved && refused, "{said:?}");
    }
}

/// Rows of groups, whose numbers data determines, pass through a tile of shared memory.
fn groups(barrier: &str) -> String {
    format!(
        "carbyne 2
sym G, T where G > 0, T >= 0
%first:[G + 1].i32.GL splits T
%in:[T,64].f32.GL
%out:[T,64].f32.GL

Spec @groups <<<#grid:[1], #cta:[@t < 64]>>> (%first, %in) -> (%out) {{
  #one = #cta.scalar()
  Allocate %s:[64].f32.SH
  Allocate %x:[1].f32.RF
  for (g = 0; g < G; g += 1) {{
    @from = %first[g]
    @to = %first[g + 1]
    for (r = @from; r < @to; r += 1) {{
      {barrier}
      Move <<<#one>>> (%in[r, @t]) -> (%x[0]) atom=ld.global.b32
      Move <<<#one>>> (%x[0]) -> (%s[@t]) atom=st.shared.b32
      barrier
      Move <<<#one>>> (%s[63 - @t]) -> (%x[0]) atom=ld.shared.b32
      Move <<<#one>>> (%x[0]) -> (%out[r, @t]) atom=st.global.b32
    }}
  }}
}}
"
    )
}

#[test]
fn data_dependent_trip_counts_are_proved_together() {
    let program = right(&groups("barrier"));
    let said =
        |r: &[Report]| -> Vec<String> { r.iter().flat_map(|r| complaints(&program, r)).collect() };
    let all = reports(&program, false);
    assert!(all.iter().all(Report::is_ordered), "{:?}", said(&all));
    let wrong = right(&groups(""));
    assert!(!reports(&wrong, false).iter().all(Report::is_ordered));
}
