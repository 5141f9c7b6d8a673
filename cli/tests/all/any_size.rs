//! Kernels of any size: each is decomposed once, and simulated at sizes that are drawn, against what it means.

use crate::support::{carbyne, none, root, scratch};
use carbyne_ir::testing;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use rayon::prelude::*;

/// An example, its architectures, and its symbols, each with what divides it and the least that it is.
struct Kernel {
    name: &'static str,
    archs: &'static [&'static str],
    symbols: &'static [(&'static str, i64, i64)],
}

const KERNELS: [Kernel; 5] = [
    Kernel {
        name: "gemm_any",
        archs: &["sm_80", "sm_90a"],
        symbols: &[("M", 1, 0), ("N", 1, 0), ("K", 8, 0)],
    },
    Kernel {
        name: "softmax_any",
        archs: &["sm_80", "sm_90a"],
        symbols: &[("M", 1, 0), ("N", 8, 1)],
    },
    Kernel {
        name: "layernorm_any",
        archs: &["sm_80", "sm_90a"],
        symbols: &[("M", 1, 0), ("N", 8, 1)],
    },
    Kernel {
        name: "add_any",
        archs: &["sm_70", "sm_80", "sm_90a"],
        symbols: &[("M", 1, 0), ("N", 1, 0)],
    },
    Kernel {
        name: "attention_any",
        archs: &["sm_80", "sm_90a"],
        symbols: &[("S", 1, 1), ("T", 1, 1)],
    },
];

/// Sizes around those of tiles, primes, and any up to 300.
fn size() -> impl Strategy<Value = i64> {
    let around = [0, 1, 2, 7, 15, 16, 17, 31, 63, 64, 65, 127, 128, 129, 131, 191, 255, 257];
    prop_oneof![select(around.to_vec()), 1i64..=300]
}

impl Kernel {
    fn path(&self) -> String {
        root().join(format!("examples/{}.cby", self.name)).display().to_string()
    }

    /// Values that keep all facts.
    fn values(&self, drawn: &[i64]) -> Vec<(&'static str, i64)> {
        let fitted = |((name, by, least), n): (&(&'static str, i64, i64), &i64)| {
            (*name, ((n + by - 1) / by * by).max(*least * by))
        };
        let mut all: Vec<_> = self.symbols.iter().zip(drawn).map(fitted).collect();
        if self.name == "attention_any" {
            // The last query sees all keys.
            let (s, t) = (all[0].1.min(all[1].1), all[0].1.max(all[1].1));
            all = vec![("S", s), ("T", t), ("B", 1 + s % 2), ("H", 1 + t % 2)];
        }
        all
    }

    /// What is wrong with the kernel at sizes that are drawn.
    fn holds(&self, arch: &str) -> Result<(), String> {
        let text = carbyne(&["decompose", &self.path(), "--arch", arch], "").ok();
        let file = scratch(&format!("any_{}_{arch}", self.name)).join("kernel.cby");
        std::fs::write(&file, text.text()).expect("a file");
        let path = file.display().to_string();
        let mut seed = [0u8; 32];
        seed[..8].copy_from_slice(&testing::seed().to_le_bytes());
        let config = Config { cases: testing::count(1, 50), ..Config::default() };
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &seed);
        let mut runner = TestRunner::new_with_rng(config, rng);
        let ran = runner.run(&(size(), size(), size()), |(a, b, c)| {
            let values = self.values(&[a, b, c]);
            let mut args = vec!["simulate".to_owned(), path.clone()];
            for (name, n) in &values {
                args.extend(["--sym".to_owned(), format!("{name}={n}")]);
            }
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let ran = carbyne(&args, "");
            prop_assert_eq!(ran.code, 0, "{:?}: {}", values, ran.stderr);
            Ok(())
        });
        ran.map_err(|e| format!("{} for {arch}: {e}", self.name))
    }
}

#[test]
fn kernels_compute_what_they_mean_at_every_size() {
    let wrong = KERNELS.par_iter().flat_map(|k| {
        let archs = testing::one_of(&format!("any size of {}", k.name), k.archs);
        archs.iter().filter_map(|arch| k.holds(arch).err()).collect::<Vec<_>>()
    });
    none(wrong.collect());
}

#[test]
fn sizes_that_break_a_fact_are_refused_before_anything_runs() {
    let file = root().join("examples/gemm_any.cby").display().to_string();
    let refused = |m: &str, k: &str| {
        let args = ["simulate", &file, "--sym", m, "--sym", "N=8", "--sym", k];
        let ran = carbyne(&args, "");
        assert_ne!(ran.code, 0, "{m} {k}");
        ran.stderr
    };
    assert!(refused("M=8", "K=12").contains("S0514"));
    assert!(refused("M=32769", "K=8").contains("S0514"));
    assert!(refused("M=-1", "K=8").contains("S0514"));
    let beyond = refused("M=99999999999999999999", "K=8");
    assert!(!beyond.contains("I09"), "{beyond}");
}
