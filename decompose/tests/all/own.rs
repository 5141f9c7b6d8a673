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
