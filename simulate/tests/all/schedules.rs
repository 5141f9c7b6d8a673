//! Tests random schedules, because the order in which warps run and asynchronous copies arrive is
//! one of many. A program without races computes equal bits under each order, and a program that
//! lacks a synchronization is reported under each.

use crate::support::{self, program};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::program::Program;
use carbyne_simulate::{Inputs, Options, Report, simulate};

const RIGHT: [(&str, &str); 6] = [
    ("cp_async_double.cby", include_str!("../mutants/cp_async_double.cby")),
    ("mbarrier_ring.cby", include_str!("../mutants/mbarrier_ring.cby")),
    ("tma_ring.cby", include_str!("../mutants/tma_ring.cby")),
    ("tma_copy.cby", include_str!("../mutants/tma_copy.cby")),
    ("multicast.cby", include_str!("../mutants/multicast.cby")),
    ("wgmma.cby", include_str!("../mutants/wgmma.cby")),
];

fn under(program: &Program, schedule: Option<u64>) -> Result<Report, String> {
    let options = Options { schedule, inputs: Inputs::Seed(3), ..Options::default() };
    let done = simulate(program, &AtomTable::new(Arch::Sm90a), &options);
    done.map_err(|e| format!("{} {e}: {} {:?}", e.code.as_str(), e.label, e.related))
}

/// All results of a program, and some counts.
fn results(report: &Report) -> (Vec<Vec<u64>>, u64, Vec<u64>) {
    let arrays = report.outputs.names().filter_map(|n| report.outputs.get(n));
    let kernels = || report.kernels.iter();
    let waves = kernels().flat_map(|k| &k.leaves).map(|l| l.count.shared.wavefronts).collect();
    (arrays.map(|a| a.values).collect(), kernels().map(|k| k.multiply_adds).sum(), waves)
}

#[test]
fn right_programs_compute_the_same_under_all() {
    for (name, text) in RIGHT {
        let program = program(text);
        let usual = under(&program, None).unwrap_or_else(|e| panic!("{name}: {e}"));
        let usual = results(&usual);
        assert!(usual.0.iter().all(|a| a.iter().any(|v| *v != 0)), "{name} writes nothing");
        for seed in 0..12 {
            let other =
                under(&program, Some(seed)).unwrap_or_else(|e| panic!("{name} {seed}: {e}"));
            assert_eq!(results(&other), usual, "{name} under schedule {seed}");
        }
    }
}

/// Sixteen pairs of warps, in which one warp reads the writes of the other.
fn exchange(between: &str) -> String {
    format!(
        "carbyne 2
%A:[64].f32.GL
%B:[64].f32.GL
#grid:[16].block
#cta:[64].thread
Spec @k <<<#grid, #cta>>> (%A) -> (%B) {{
  @b = #grid.indices()
  @t = #cta.indices()
  #one:[].thread = #cta.scalar()
  #w:[2].[32].thread = #cta.tile([32])
  Allocate %s:[64].f32.SH
  Move <<<#grid, #one>>> (%A[@t]) -> (%s[@t])
  {between}
  if (@b == 0) {{
    Move <<<#grid, #one>>> (%s[63 - @t]) -> (%B[@t])
  }}
}}
"
    )
}

#[test]
fn a_missing_barrier_is_seen_under_all() {
    let (right, wrong) = (program(&exchange("barrier")), program(&exchange("")));
    for seed in 0..50 {
        assert!(under(&right, Some(seed)).is_ok(), "{seed}");
        let error = under(&wrong, Some(seed)).err().unwrap_or_default();
        // A warp that reads before the other has written reads undefined elements; otherwise the
        // error is a race.
        let fits = error.contains("S0502") || error.contains("S0503");
        assert!(fits, "{seed}: {error}");
    }
}

#[test]
fn schedules_differ_from_each_other() {
    // The first of two wrong accesses depends on the schedule, so schedules really differ.
    let wrong = program(&exchange(""));
    let mut errors: Vec<String> =
        (0..50).map(|seed| under(&wrong, Some(seed)).err().unwrap_or_default()).collect();
    errors.sort();
    errors.dedup();
    assert!(errors.len() > 2, "{errors:?}");
    let once = under(&wrong, Some(7)).err();
    assert_eq!(once, under(&wrong, Some(7)).err(), "the seed alone decides");
}

#[test]
fn groups_that_compute_one_output_are_compared_together() {
    // Each warp copies its half of a spec that is executed by both.
    let text = exchange("barrier").replace(
        "Move <<<#grid, #one>>> (%A[@t]) -> (%s[@t])",
        "Move <<<#grid, #w>>> (%A) -> (%s) {
    Move <<<#grid, #one>>> (%A[@t]) -> (%s[@t])
  }",
    );
    let program = program(&text);
    for seed in 0..30 {
        let report = under(&program, Some(seed)).unwrap_or_else(|e| panic!("{seed}: {e}"));
        assert_eq!(report.kernels[0].elements, 16 * 2 * 64, "{seed}");
    }
    // A warp that copies less is detected.
    let wrong = text.replace("(%A[@t]) -> (%s[@t])", "(%A[@t / 48]) -> (%s[@t])");
    let wrong = support::program(&wrong);
    for seed in 0..10 {
        assert!(under(&wrong, Some(seed)).is_err_and(|e| e.contains("S0501")), "{seed}");
    }
}
