//! Tests strategies. The built-in strategies compute the meaning of their specs for various sizes,
//! types and parameters (a normal run takes a random third of them). A user's strategy is chosen if
//! a pin names it or its estimate is the best one.

use crate::support::{run, run_drawn};
use carbyne_atoms::AtomTable;
use carbyne_decompose::{Options, Strategies, decompose_by};
use carbyne_ir::link::LoadError;
use carbyne_ir::{testing, text};
use carbyne_simulate::Inputs;
use carbyne_testkit::gate::{Subject, Verdict, judge};
use std::collections::BTreeMap;

fn table(arch: &str) -> AtomTable {
    AtomTable::new(arch.parse().expect("an architecture"))
}

/// Strategies that only pins of parameters select. They have no samples, but tests of their own.
const PINNED: [&str; 1] = ["wgmma_stream_k"];

#[test]
fn every_strategy_computes_what_it_means() {
    let all = Strategies::default();
    let names: Vec<String> = all.iter().map(|(def, _)| def.name.text.clone()).collect();
    // A file that does not parse would be left out.
    let files = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../decompose/strategies"))
        .expect("there");
    let texts = files.filter_map(|f| std::fs::read_to_string(f.ok()?.path()).ok());
    let written = texts.map(|t| t.lines().filter(|l| l.starts_with("strategy @")).count());
    assert_eq!(names.len(), written.sum::<usize>(), "{names:?}");
    for name in names.into_iter().filter(|name| testing::one_in(3, name)) {
        let mut right = 0;
        for arch in ["sm_80", "sm_70", "sm_90a"] {
            // Another architecture may have the instruction that one lacks.
            if right > 0 {
                break;
            }
            let rows = table(arch);
            // The first of its samples that has an instance, all of them where everything is run.
            let most = testing::count(1, usize::MAX);
            for sample in all.samples(&name, &rows, testing::count(3, 5)).expect("ours are small") {
                if right >= most {
                    break;
                }
                let module = text::parse(&sample.text).expect("a sample is a text");
                let mut options = Options::default();
                options.search.sms = Some(sample.sms as u32);
                let Ok(d) = decompose_by(&module, &sample.text, &rows, &options) else {
                    continue;
                };
                // One that leaves all kernels to others is not named in the text.
                let named = d.text.contains(&format!("by={}", sample.by));
                let chosen = d.rankings.first().and_then(|r| r.instances.first());
                let chosen = chosen.is_some_and(|i| i.by == sample.by);
                assert!(named || chosen, "{}\n{}", sample.by, d.text);
                run_drawn(&d.program, &rows, &sample.text)
                    .unwrap_or_else(|e| panic!("{}\n{e:?}\n{}", sample.text, d.text));
                // Several kernels are what the one was.
                if d.program.kernels.len() > 1 {
                    preserved(&sample.text, arch);
                }
                right += 1;
            }
        }
        assert_eq!(right > 0, !PINNED.contains(&name.as_str()), "samples of @{name} decompose");
    }
}

/// Decomposes a text; the result as a whole computes the meaning of the text.
fn preserved(text: &str, arch: &str) -> String {
    let arch = arch.parse().expect("an architecture");
    let (text, exact, inputs) = (text.to_owned(), vec![], Inputs::Seed(5));
    let (schedule, overflows, symbols) = (None, false, BTreeMap::new());
    let subject = Subject { text, arch, inputs, schedule, exact, overflows, symbols };
    match judge(&subject, &AtomTable::new(arch)) {
        Verdict::Preserved(d) => d.text,
        other => panic!("{}\n{other:?}", subject.text),
    }
}

const MINE: &str = "carbyne 2

// A whole matrix a block.
strategy @whole[M, N, E:type, T in (32, 64)] <<<#grid:[1], #cta:[T]>>>
    () -> (%Y:[M,N].E.GL) tile=(M,N) where M * N <= 64 * T means {
  @all () -> (%Y)
} {
  @all () -> (%Y.tile([M,N])[0, 0])
}
";

fn added(name: &str) -> Options {
    let mut strategies = Strategies::default();
    let text = MINE.replace("@whole", name);
    strategies.add(&text, "mine.cby", &mut |_, _| Err(LoadError::Missing)).expect("a strategy");
    Options { strategies, ..Options::default() }
}

#[test]
fn a_users_strategy_is_taken_by_name_and_in_the_place_of_ours() {
    let src =
        "carbyne 2\n%X:[16,32].f32.GL\n%Y:[16,32].f32.GL\nUnaryPointwise.relu @r (%X) -> (%Y)";
    let by = |options: &Options, pin: &str| {
        let src = format!("{src}{pin}\n");
        let module = text::parse(&src).expect("parses");
        let d = decompose_by(&module, &src, &table("sm_80"), options);
        let d = d.unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
        run(&d.program, &table("sm_80")).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
        d.text
    };
    assert!(by(&added("@whole"), " by=@whole").contains("by=@whole[T="));
    assert!(by(&added("@whole"), " by=@whole[T=64]").contains("by=@whole[T=64]"));
    assert!(by(&added("@map"), " by=@map").contains("by=@map[T="));
}

/// A file that is not ours.
const TWO_PASSES: &str = include_str!("../../../examples/strategies/two_passes.cby");

/// Columns without their mean, as a spec pinned so.
fn centered(m: i64, n: i64, by: &str) -> String {
    format!(
        "carbyne 2\n%X:[{m},{n}].f16.GL\n%Y:[{m},{n}].f16.GL\n\
         Spec @center (%X) -> (%Y) {by} means {{\n  \
         %Y = %X - sum(%X, axis=0) * (1.0 / {m})\n}}\n"
    )
}

#[test]
fn a_users_strategy_beats_ours_where_it_should() {
    let mut strategies = Strategies::default();
    strategies
        .add(TWO_PASSES, "two_passes.cby", &mut |_, _| Err(LoadError::Missing))
        .expect("a strategy");
    let options = Options { strategies, ..Options::default() };
    for arch in ["sm_75", "sm_80", "sm_90a"] {
        // Long columns are its; those of which a block keeps many are ours.
        for (m, n, its) in [(65536, 128, true), (32768, 64, true), (1024, 128, false)] {
            let src = centered(m, n, "");
            let module = text::parse(&src).expect("parses");
            let d = decompose_by(&module, &src, &table(arch), &options);
            let d = d.unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
            let ranking = d.rankings.iter().find(|r| r.kernel == "center").expect("a ranking");
            let first = &ranking.instances[0].by;
            assert_eq!(first.starts_with("@two_passes["), its, "{arch} {m}x{n}: {ranking:#?}");
            assert!(d.text.contains(&format!("by={first}")), "{}", d.text);
            // Both were compared.
            let both = [true, false].map(|own| {
                ranking.instances.iter().any(|i| i.by.starts_with("@two_passes[") == own)
            });
            assert_eq!(both, [true, true], "{ranking:#?}");
        }
    }
}

#[test]
fn what_a_users_strategy_gives_is_what_the_spec_means() {
    let strategy = TWO_PASSES.trim_start_matches(|c| c != '\n').to_owned();
    let own = strategy.split_once("carbyne 2\n").expect("a version").1;
    for (m, n, by, arch) in [
        (16384, 32, "", "sm_80"),
        (1024, 128, "by=@two_passes", "sm_90a"),
        (1024, 64, "by=@two_passes[BM=8, P=16]", "sm_75"),
    ] {
        let rest = centered(m, n, by);
        // First, as no name of the program is in scope there.
        let text = format!("carbyne 2\n{own}{}", rest.trim_start_matches("carbyne 2\n"));
        let decomposed = preserved(&text, arch);
        assert!(decomposed.contains("by=@two_passes["), "{decomposed}");
    }
}
