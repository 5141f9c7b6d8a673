//! Every strategy of ours computes what it means, over sizes, types and parameters; those of users are chosen where they should be.

use crate::support::{run, run_random};
use carbyne_atoms::AtomTable;
use carbyne_decompose::{Options, Strategies, decompose_by};
use carbyne_ir::link::LoadError;
use carbyne_ir::text;

fn table(arch: &str) -> AtomTable {
    AtomTable::new(arch.parse().expect("an architecture"))
}

#[test]
fn every_strategy_computes_what_it_means() {
    let all = Strategies::default();
    let names: Vec<String> = all.iter().map(|(def, _)| def.name.text.clone()).collect();
    assert!(names.len() >= 15, "{names:?}");
    for name in names {
        let mut right = 0;
        for arch in ["sm_80", "sm_70", "sm_90a"] {
            // What one architecture has no instruction for another may have.
            if right > 0 {
                break;
            }
            for sample in all.samples(&name, 132, 5) {
                let module = text::parse(&sample.text).expect("a sample is a text");
                let options = Options::default();
                let Ok(d) = decompose_by(&module, &sample.text, &table(arch), &options) else {
                    continue;
                };
                assert!(d.text.contains(&format!("by={}", sample.by)), "{}\n{}", sample.by, d.text);
                for report in [run(&d.program, &table(arch)), run_random(&d.program, &table(arch))]
                {
                    report.unwrap_or_else(|e| panic!("{}\n{e:?}\n{}", sample.text, d.text));
                }
                right += 1;
            }
        }
        assert!(right > 0, "no sample of @{name} decomposes");
    }
}

const MINE: &str = "carbyne 2

// A whole matrix a block.
strategy @whole[M, N, E:type, T in (32, 64)] <<<#grid:[1], #cta:[T]>>> () -> (%Y:[M,N].E.GL) tile=(M,N)
    where M * N <= 64 * T means {
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

/// Rows of 65536 do not fit the registers of a block, which ours takes them to; a text of a user walks along them.
#[test]
fn a_users_strategy_is_better_than_ours_where_it_should_be() {
    let text = include_str!("../../../examples/strategies/softmax_long.cby");
    let mut strategies = Strategies::default();
    strategies.add(text, "long.cby", &mut |_, _| Err(LoadError::Missing)).expect("a strategy");
    let samples = strategies.samples("softmax_long", 132, 3);
    let with = Options { strategies, ..Options::default() };
    let table = table("sm_80");
    let found = |n: i64, pin: &str| {
        let src = format!(
            "carbyne 2\n%X:[64,{n}].f16.GL\n%Y:[64,{n}].f16.GL\nSpec @softmax (%X) -> (%Y){pin} means {{\n  \
             %e = exp(%X - max(%X, axis=1))\n  %Y = %e / sum(%e, axis=1)\n}}\n"
        );
        let module = text::parse(&src).expect("parses");
        let found = decompose_by(&module, &src, &table, &with);
        found.unwrap_or_else(|e| panic!("{:?}", e.into_vec()))
    };
    // By cost, where it should be and where it should not; by pins.
    let long = found(65536, "");
    assert!(long.text.contains("by=@softmax_long["), "{}", long.text);
    assert!(!found(2048, "").text.contains("by=@softmax_long["));
    assert!(found(65536, " by=@softmax_long[BN=4096]").text.contains("by=@softmax_long[BN=4096, "));
    let ours = found(65536, " by=@map");
    let (long, ours) = (long.estimates[0].1.cycles, ours.estimates[0].1.cycles);
    assert!(long < ours, "{long} {ours}");
    // It computes what it means.
    assert!(!samples.is_empty());
    for sample in samples {
        let module = text::parse(&sample.text).expect("a sample is a text");
        let Ok(d) = decompose_by(&module, &sample.text, &table, &with) else { continue };
        run_random(&d.program, &table).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
    }
}
