//! Tests kernels whose sizes are symbols. Each kernel is decomposed once, simulated at random
//! sizes, and compared with its meaning. Other tests check which sizes are refused, and which facts
//! an error asks for.

use crate::support::{carbyne, none, root, scratch};
use carbyne_ir::testing;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::TestRunner;
use rayon::prelude::*;
use std::fmt::Display;

/// An example, its architectures, and its symbols, each with its divisor and its minimum.
struct Kernel {
    name: &'static str,
    archs: &'static [&'static str],
    symbols: &'static [(&'static str, i64, i64)],
}

const KERNELS: [Kernel; 8] = [
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
    Kernel {
        name: "attention_ragged",
        archs: &["sm_80", "sm_90a"],
        symbols: &[("S", 1, 1), ("T", 1, 1)],
    },
    Kernel {
        name: "attention_paged",
        archs: &["sm_80", "sm_90a"],
        symbols: &[("NP", 1, 1), ("P", 1, 1)],
    },
    Kernel {
        name: "grouped_gemm",
        archs: &["sm_80", "sm_90a"],
        symbols: &[("T", 1, 0), ("N", 8, 0), ("K", 8, 1)],
    },
];

/// Rows of different lengths, which a tensor gives.
const LONGEST: &str = "\
carbyne 2

let BN = 64
sym B, N where B >= 0, B <= 1024, N > 0, N <= 65536 typical B=64, N=4096

%X:[B,N].f32.GL
%lengths:[B].i32.GL in 0..N + 1
%Y:[B,1].f32.GL

Spec @longest <<<#grid:[@b < B], #cta:[64]>>> (%X, %lengths) -> (%Y) means {
  %n = %lengths.reshape([B,1]:[1,0])
  %Y = max(select(%X.iota(1) < %n, %X, -inf), axis=1)
} {
  @n = %lengths[@b]
  %row = %X[@b..@b + 1, 0..@n]
  %most:[1,1].f32 = -inf
  for (t = 0; t < ceil_div(@n, BN); t += 1) {
    %x = move(%row.tile([1,BN])[0, t])
    %most = max(max(%x, axis=1), %most)
  }
  %Y.tile([1,1])[@b, 0] = move(%most)
}
";

/// Matrix products whose numbers of rows a tensor gives, followed by zeros.
const PADDED_GROUPS: &str = "\
carbyne 2

let BM = 64, BN = 64, BK = 32
sym G, M, N, K
    where G >= 0, G <= 64, M >= 0, M <= 4096, N >= 0, N <= 4096, K >= 0, K <= 4096,
        N % 8 == 0, K % 8 == 0
    typical G=8, M=1024, N=1024, K=1024

%A:[G,M,K].f16.GL
%sizes:[G].i32.GL in 0..M + 1
%B:[G,K,N].f16.GL
%C:[G,M,N].f16.GL

Spec @padded_groups <<<#grid:[@j < ceil_div(N, BN), @g < G], #cta:[128]>>>
    (%A, %sizes, %B) -> (%C) means {
  %n = %sizes.reshape([G,1,1]:[1,0,0])
  %all = matmul(%A, %B)
  %C = select(%C.iota(1) < %n, %all, 0.0)
} {
  @n = %sizes[@g]
  %a = %A[@g, 0..@n, _]
  %c = %C[@g, _, _]
  for (i = 0; i < ceil_div(@n, BM); i += 1) {
    %sum:[BM,BN].f32 = 0
    for (k = 0; k < ceil_div(K, BK); k += 1) stages=2 {
      Move (%a.tile([BM,BK])[i, k]) -> (%x:SH)
      Move (%B[@g, _, _].tile([BK,BN])[k, @j]) -> (%y:SH)
      MatMul (%x, %y) -> (%sum)
    }
    %c.tile([BM,BN])[i, @j] = cast(%sum, f16)
  }
  for (i = ceil_div(@n, BM); i < ceil_div(M, BM); i += 1) {
    %zero:[BM,BN].f16 = 0
    %c.tile([BM,BN])[i, @j] = move(%zero)
  }
}
";

/// Rows with any alignment, moved as vectors: from the element before the first one to the element
/// after the last one.
const UNALIGNED: &str = "\
carbyne 2

sym M, N where M >= 0, M <= 512, N > 0, N <= 505 typical M=512, N=500

%X:[M,N].f16.GL
%Y:[M,N].f16.GL

Spec @softmax <<<#grid:[@r < M], #cta:[64]>>> (%X) -> (%Y) means {
  %e = exp(%X - max(%X, axis=1))
  %Y = %e / sum(%e, axis=1)
} {
  Move (%X.tile([1,_])[@r, 0].pad([0,@r * N % 8]).tile([1,512])[0, 0]) -> (%s:SH)
  %x = cast(%s, f32)
  %e = exp(%x - max(%x, axis=1))
  %Y.tile([1,_])[@r, 0].pad([0,@r * N % 8]).tile([1,512])[0, 0] = cast(%e / sum(%e, axis=1), f16)
}
";

/// A symbol, its divisor, and its minimum as a multiple of the divisor.
type Symbol = (&'static str, i64, i64);

const RAGGED: [(&str, &str, &[Symbol]); 2] = [
    ("longest", LONGEST, &[("N", 1, 1)]),
    ("padded_groups", PADDED_GROUPS, &[("M", 1, 0), ("N", 8, 0), ("K", 8, 0)]),
];

/// Sizes near tile sizes, primes, and any size up to 300.
fn size() -> impl Strategy<Value = i64> {
    let around = [0, 1, 2, 7, 15, 16, 17, 31, 63, 64, 65, 127, 128, 129, 131, 191, 255, 257];
    prop_oneof![select(around.to_vec()), 1i64..=300]
}

/// A runner for a fraction of the cases, or for all cases.
fn runner(part: u32, whole: u32) -> TestRunner {
    let cases = testing::count(part, whole);
    testing::runner(testing::config_up_to(cases, cases))
}

/// A file with the decomposition of a text.
fn decomposed(name: &str, text: &str, arch: &str) -> String {
    let folder = scratch(&format!("{name}_{arch}"));
    let (file, source) = (folder.join("kernel.cby"), folder.join("source.cby"));
    std::fs::write(&source, text).expect("a file");
    let decomposed = carbyne(&["decompose", &source.display().to_string(), "--arch", arch], "");
    std::fs::write(&file, decomposed.ok().text()).expect("a file");
    file.display().to_string()
}

/// Simulates all blocks of a decomposed text with these values of its symbols.
fn simulates<N: Display>(path: &str, values: &[(N, i64)]) -> Result<(), TestCaseError> {
    let values: Vec<String> = values.iter().map(|(name, n)| format!("{name}={n}")).collect();
    let mut args = vec!["simulate", path, "--blocks", "all"];
    // The budget counts the maximum number of iterations of data-dependent loops.
    args.extend(["--budget", "1000000000000"]);
    values.iter().for_each(|v| args.extend(["--sym", v]));
    let ran = carbyne(&args, "");
    prop_assert_eq!(ran.code, 0, "{:?}: {}", values, ran.stderr);
    Ok(())
}

impl Kernel {
    fn path(&self) -> String {
        root().join(format!("examples/{}.cby", self.name)).display().to_string()
    }

    /// Values that satisfy all facts.
    fn values(&self, drawn: &[i64]) -> Vec<(&'static str, i64)> {
        let fitted = |((name, by, least), n): (&(&'static str, i64, i64), &i64)| {
            (*name, ((n + by - 1) / by * by).max(*least * by))
        };
        let mut all: Vec<_> = self.symbols.iter().zip(drawn).map(fitted).collect();
        let several = 1 + drawn.iter().sum::<i64>() % 5;
        match self.name {
            "attention_paged" => {
                // A page has 64 rows, so a few pages contain many keys.
                all.iter_mut().for_each(|(_, n)| *n = 1 + *n % 6);
                all.extend([("B", several), ("H", 1)]);
            }
            "attention_ragged" => {
                all.extend([("B", several), ("H", 1)]);
            }
            "grouped_gemm" => all.push(("G", several)),
            _ => {}
        }
        if self.name == "attention_any" {
            // The last query attends to all keys.
            let (s, t) = (all[0].1.min(all[1].1), all[0].1.max(all[1].1));
            all = vec![("S", s), ("T", t), ("B", 1 + s % 2), ("H", 1 + t % 2)];
        }
        all
    }

    /// Simulates the kernel at random sizes.
    fn holds(&self, arch: &str) -> Result<(), String> {
        let text = carbyne(&["decompose", &self.path(), "--arch", arch], "").ok();
        let file = scratch(&format!("any_{}_{arch}", self.name)).join("kernel.cby");
        std::fs::write(&file, text.text()).expect("a file");
        let path = file.display().to_string();
        let drawn = (size(), size(), size());
        let ran = runner(1, 50).run(&drawn, |(a, b, c)| simulates(&path, &self.values(&[a, b, c])));
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
fn rows_that_begin_anywhere_are_moved_as_vectors() {
    for arch in ["sm_80", "sm_90a"] {
        let file = decomposed("unaligned", UNALIGNED, arch);
        let text = std::fs::read_to_string(&file).expect("a file");
        for atom in ["cp.async.cg.b128.zfill", "st.global.b128"] {
            assert!(text.contains(&format!("atom={atom}")), "{arch} without {atom}: {text}");
        }
        let kernel = Kernel { name: "unaligned", archs: &[], symbols: &[("N", 1, 1)] };
        let ran = runner(6, 100).run(&(size(), 0..10i64), |(n, m)| {
            let mut values = kernel.values(&[n]);
            values.push(("M", m));
            simulates(&file, &values)
        });
        ran.unwrap_or_else(|e| panic!("{arch}: {e}"));
    }
}

/// Tiles with elements outside of their tensor whose addresses are those of other elements.
const CROSSING: &str = "\
carbyne 2

%X:[1,15].i32.GL
%Y:[15,1].i32.GL
Spec @k <<<#grid:[1], #cta:[128]>>> (%X) -> (%Y) means {
  %Y = move(%X.transpose())
} {
  Move (%X.pad([0,1]).tile([16,64])[0, 0]) -> (%x:SH)
  %Y.transpose().pad([0,1]).tile([16,64])[0, 0] = move(%x)
}
";

#[test]
fn what_is_written_of_padded_tiles_is_accepted() {
    for arch in ["sm_70", "sm_80"] {
        let file = decomposed("crossing", CROSSING, arch);
        let checked = carbyne(&["check", &file, "--arch", arch], "");
        assert_eq!(checked.code, 0, "{arch}: {}", checked.stderr);
        simulates::<&str>(&file, &[]).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn elements_that_are_copied_alone_keep_the_bounds_of_other_modes() {
    let source = scratch("row_bound").join("source.cby");
    let text = "carbyne 2\n%X:[13,64].f16.GL\n%Y:[16,64].f16.GL\n\
                Spec @k <<<#grid:[1], #cta:[64]>>> (%X) -> (%Y) {\n  \
                Move (%X[_, 3..64].pad([0,3]).tile([16,64])[0, 0]) -> (%x:SH)\n  %Y = move(%x)\n\
                }\n";
    std::fs::write(&source, text).expect("a file");
    let path = source.display().to_string();
    let printed = carbyne(&["compile", &path, "--arch", "sm_80", "--emit", "cuda"], "");
    let printed = printed.ok().text().to_owned();
    let elements: Vec<&str> =
        printed.split("part[").skip(1).filter(|s| s.contains(" ? ")).collect();
    assert_eq!(elements.len(), 8, "{printed}");
    for element in elements {
        assert!(element.contains("< 13"), "{element} of {printed}");
    }
}

#[test]
fn rows_of_which_data_says_how_many_compute_what_they_mean() {
    for (name, text, symbols) in RAGGED {
        let arch = ["sm_80", "sm_90a"][testing::seed() as usize % 2];
        let file = decomposed(name, text, arch);
        let kernel = Kernel { name, archs: &[], symbols };
        let drawn = (size(), size(), size(), 0..5i64);
        let ran = runner(3, 50).run(&drawn, |(a, b, c, n)| {
            let mut values = kernel.values(&[a, b, c]);
            values.push((if name == "longest" { "B" } else { "G" }, n));
            simulates(&file, &values)
        });
        ran.unwrap_or_else(|e| panic!("{name}: {e}"));
    }
}

/// A product of any sizes: single or batched, with these consecutive modes and known facts.
struct Product {
    batch: bool,
    /// Whether A, B and C are stored by rows.
    rows: [bool; 3],
    /// Whether the stride of rows or columns is larger than their length.
    padded: bool,
    /// Whether rows or columns begin at multiples of 16 bytes.
    aligned: bool,
}

impl Product {
    /// All single or all batched products: each order of modes, with and without padding. Single
    /// products also without facts.
    fn all(batch: bool) -> Vec<Product> {
        let kinds = [(false, true), (true, true), (false, false)];
        let kinds = kinds.into_iter().filter(|(_, aligned)| *aligned || !batch);
        let orders = (0..8).map(|n| [n & 1 == 0, n & 2 == 0, n & 4 == 0]);
        let of = |(padded, aligned)| {
            orders.clone().map(move |rows| Product { batch, rows, padded, aligned })
        };
        kinds.flat_map(of).collect()
    }

    fn name(&self) -> String {
        let order: String = self.rows.iter().map(|r| if *r { 'r' } else { 'c' }).collect();
        let said = |what, name: &'static str| if what { name } else { "" };
        let (batch, padded) = (said(self.batch, "_batch"), said(self.padded, "_padded"));
        format!("product_{order}{batch}{padded}{}", said(!self.aligned, "_unaligned"))
    }

    /// The name, the modes and the consecutive mode of each factor and of the result.
    fn tensors(&self) -> [(&'static str, [&'static str; 2], &'static str); 3] {
        let modes = [("A", ["M", "K"]), ("B", ["K", "N"]), ("C", ["M", "N"])];
        std::array::from_fn(|i| {
            let (name, modes) = modes[i];
            (name, modes, modes[usize::from(self.rows[i])])
        })
    }

    fn text(&self) -> String {
        let mut symbols = vec!["M".to_owned(), "N".to_owned(), "K".to_owned()];
        let mut facts: Vec<String> =
            symbols.iter().map(|n| format!("{n} >= 0, {n} <= 16384")).collect();
        let mut typical: Vec<String> = symbols.iter().map(|n| format!("{n}=2048")).collect();
        if self.batch {
            symbols.push("Bt".to_owned());
            facts.push("Bt >= 0, Bt <= 64".to_owned());
            typical.push("Bt=8".to_owned());
        }
        let mut declared = String::new();
        for (name, [rows, columns], consecutive) in self.tensors() {
            let step = if self.padded { format!("LD{name}") } else { consecutive.to_owned() };
            if self.padded {
                symbols.push(step.clone());
                facts.push(format!("{step} >= {consecutive}, {step} <= 32768"));
                typical.push(format!("{step}=2048"));
            }
            let aligned = format!("{step} % 8 == 0");
            if self.aligned && !facts.contains(&aligned) {
                facts.push(aligned);
            }
            let by_rows = consecutive == columns;
            let strides = if by_rows { format!("{step},1") } else { format!("1,{step}") };
            let many = if by_rows { rows } else { columns };
            let ty = match self.batch {
                true => format!("(Bt,{rows},{columns}):({many} * {step},{strides})"),
                false => format!("({rows},{columns}):({strides})"),
            };
            declared.push_str(&format!("%{name}:[{ty}].f16.GL\n"));
        }
        format!(
            "carbyne 2\nsym {}\n    where {}\n    typical {}\n{declared}\
             MatMul.set @product (%A, %B) -> (%C) acc=f32\n",
            symbols.join(", "),
            facts.join(", "),
            typical.join(", ")
        )
    }

    /// Values that satisfy all facts.
    fn values(&self, drawn: [i64; 3], batch: i64, gaps: [i64; 3]) -> Vec<(String, i64)> {
        let up = |n: i64| (n + 7) / 8 * 8;
        let mut all: Vec<(String, i64)> = ["M", "N", "K"]
            .into_iter()
            .zip(drawn)
            .map(|(name, n)| {
                let step = self.tensors().iter().any(|t| t.2 == name);
                (name.to_owned(), if step && self.aligned && !self.padded { up(n) } else { n })
            })
            .collect();
        if self.padded {
            for ((name, _, consecutive), gap) in self.tensors().into_iter().zip(gaps) {
                let n = all.iter().find(|(n, _)| n == consecutive).map_or(0, |v| v.1);
                all.push((format!("LD{name}"), up(n) + 8 * gap));
            }
        }
        if self.batch {
            all.push(("Bt".to_owned(), batch));
        }
        all
    }

    /// Decomposes and simulates the product at random sizes.
    fn holds(&self, arch: &str) -> Result<(), String> {
        let name = format!("{}_{arch}", self.name());
        let folder = scratch(&name);
        let (file, source) = (folder.join("kernel.cby"), folder.join("source.cby"));
        std::fs::write(&source, self.text()).expect("a file");
        let source = source.display().to_string();
        let ran = carbyne(&["decompose", &source, "--arch", arch], "");
        if ran.code != 0 {
            return Err(format!("{name}: {}\n{}", ran.stderr, self.text()));
        }
        std::fs::write(&file, ran.text()).expect("a file");
        let drawn = ([size(), size(), size()], 0..4i64, [0..3i64, 0..3i64, 0..3i64]);
        let ran = runner(1, 10).run(&drawn, |(drawn, batch, gaps)| {
            simulates(&file.display().to_string(), &self.values(drawn, batch, gaps))
        });
        ran.map_err(|e| format!("{name}: {e}\n{}", self.text()))
    }
}

#[test]
fn products_of_every_order_of_modes_compute_what_they_mean_at_every_size() {
    let (single, batches) = (Product::all(false), Product::all(true));
    let drawn = ["sm_80", "sm_90a"].into_iter().flat_map(|arch| {
        let of = |kind, all| testing::one_of(&format!("{kind} for {arch}"), all);
        of("a product", &single).iter().chain(of("a batch", &batches)).map(move |p| (p, arch))
    });
    let drawn: Vec<_> = drawn.collect();
    none(drawn.par_iter().filter_map(|(p, arch)| p.holds(arch).err()).collect());
}

/// A fact about the sizes M and N, and two sizes that satisfy the fact.
const SAID: [(&str, i64, i64); 16] = [
    ("M == N", 100, 100),
    ("M == 130", 130, 33),
    ("M == 1", 1, 77),
    ("M == N, N == 64", 64, 64),
    ("M <= N, N <= 4096", 5, 70),
    ("M <= N, N <= 4096 typical M=4096, N=4096", 1, 77),
    ("M <= N, N <= M", 7, 7),
    ("M < N, N <= 3", 1, 2),
    ("M == 2 * N + 1", 21, 10),
    ("M == 64 * N", 128, 2),
    ("M % 64 == 1", 65, 70),
    ("M % 6 == 1, M % 4 == 3, N % 8 == 0", 7, 16),
    ("M >= 0 typical M=100000000000, N=100000000000", 3, 300),
    ("M <= 1, N <= 1", 1, 0),
    ("M * N == 5000", 50, 100),
    ("M + N == 10, M >= 1, N >= 9", 1, 9),
];

/// A pinned atom needs a fact.
#[test]
fn an_atom_that_is_pinned_names_the_fact_that_it_lacks() {
    let text = |fact: &str| {
        format!(
            "carbyne 2\nsym M, K where M > 0, M <= 8192, K > 0, K <= 8192{fact}\n\
             %A:[M,K].f16.GL\n%B:[M,K].f16.GL\n\
             Spec @k <<<#grid:[@i < ceil_div(M, 64), @k < ceil_div(K, 32)], #cta:[128]>>> (%A) -> \
             (%B) {{\n  \
             Move (%A.tile([64,32])[@i, @k]) -> (%a:SH) atom=cp.async.cg.b128.zfill\n  \
             %B.tile([64,32])[@i, @k] = move(%a)\n}}\n"
        )
    };
    let ran = carbyne(&["decompose", "-", "--arch", "sm_80"], text(""));
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("K > 0, K <= 8192, K % 8 == 0`"), "{}", ran.stderr);
    carbyne(&["decompose", "-", "--arch", "sm_80"], text(", K % 8 == 0")).ok();
}

/// Expressions over a size, and comparisons of coordinates with a size.
const COMPUTED: [&str; 9] = [
    "%X * ((M - M % 2) / 2)",
    "%X * ((M - M % 64) / 64)",
    "%X * ((M - M % 2) / 2 + 1)",
    "%X * (M * 6 / 2)",
    "%X * (M - M % 2)",
    "%X * (M % 40)",
    "%X * whole",
    "select(%X.iota(0) < M / 2, %X, 0.0)",
    "select(%X.iota(0) < whole, %X * ((M - M % 3) / 3), %X + whole)",
];

#[test]
fn what_is_computed_of_sizes_rounds_down_at_every_size() {
    let wrong = COMPUTED.par_iter().enumerate().filter_map(|(i, of)| {
        let text = format!(
            "carbyne 2\nsym M where M > 0, M <= 65536 typical M=4096\n\
             let half = M / 2, whole = (M - M % 2) / 2\n\
             %X:[M].f32.GL\n%Y:[M].f32.GL\nSpec @k (%X) -> (%Y) means {{ %Y = {of} }}\n"
        );
        let arch = testing::one_of(of, &["sm_80", "sm_90a"]);
        let arch = arch.first()?;
        let path = decomposed(&format!("computed_{i}"), &text, arch);
        let sizes = [1, 2, 7, 64, 129, 1001];
        sizes
            .iter()
            .find_map(|m| simulates(&path, &[("M", *m)]).err())
            .map(|e| format!("{of}: {e}"))
    });
    none(wrong.collect());
}

#[test]
fn sizes_are_found_whatever_is_said_of_them() {
    let wrong = SAID.par_iter().enumerate().filter_map(|(i, (facts, m, n))| {
        let text = format!(
            "carbyne 2\nsym M, N where {facts}\n%A:[M,N].f16.GL\n%B:[M,N].f16.GL\n\
             Spec @twice (%A) -> (%B) means {{ %B = %A + %A }}\n"
        );
        let arch = testing::one_of(facts, &["sm_80", "sm_90a"]);
        arch.iter().find_map(|arch| {
            let ran = carbyne(&["decompose", "-", "--arch", arch], &text);
            if ran.code != 0 {
                return Some(format!("{text}{}", ran.stderr));
            }
            let file = scratch(&format!("said_{i}_{arch}")).join("kernel.cby");
            std::fs::write(&file, ran.text()).expect("a file");
            let held = simulates(&file.display().to_string(), &[("M", *m), ("N", *n)]);
            held.err().map(|e| format!("{text}{e}"))
        })
    });
    none(wrong.collect());
}

#[test]
fn many_sizes_of_which_nothing_is_said_are_found() {
    let mut text = "carbyne 2\nsym S0".to_owned();
    (1..300).for_each(|i| text.push_str(&format!(", S{i}")));
    text.push_str("\n%A:[S0].f32.GL\n%B:[S0].f32.GL\nUnaryPointwise.exp @e (%A) -> (%B)\n");
    let ran = carbyne(&["decompose", "-", "--arch", "sm_80"], &text);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

#[test]
fn long_rows_need_no_typical_size() {
    for most in [9001, 33000, 50257] {
        let text = format!(
            "carbyne 2
sym M, N where M <= 100000, N > 0, N <= {most}
%X:[M,N].f16.GL
%Y:[M,N].f16.GL
Spec @softmax (%X) -> (%Y) means {{
  %e = exp(%X - max(%X, axis=1))
  %Y = %e / sum(%e, axis=1)
}}
"
        );
        for arch in ["sm_80", "sm_90a"] {
            let path = decomposed("long_rows", &text, arch);
            simulates(&path, &[("M", 2), ("N", 1001)]).unwrap_or_else(|e| panic!("{most}: {e}"));
        }
    }
}

#[test]
fn what_is_computed_of_symbols_is_a_size() {
    let text = "carbyne 2\nsym M, N where M <= 65536, N <= 4096\n\
                %A:[M,2 * N].f32.GL\n%B:[M,1].f32.GL\n\
                Spec @mean (%A) -> (%B) means { %B = sum(%A, axis=1) / (N * 2) }\n";
    for arch in ["sm_80", "sm_90a"] {
        let ran = carbyne(&["decompose", "-", "--arch", arch], text);
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let file = scratch(&format!("computed_{arch}")).join("kernel.cby");
        std::fs::write(&file, ran.text()).expect("a file");
        let held = simulates(&file.display().to_string(), &[("M", 5), ("N", 33)]);
        assert!(held.is_ok(), "{held:?}");
    }
}

#[test]
fn sizes_that_no_number_stands_for_are_refused_with_the_reason() {
    let text = "carbyne 2\nsym M, N where M >= 4294967296, N >= 4294967296\n\
                %A:[M,N].f16.GL\n%B:[M,N].f16.GL\nUnaryPointwise.exp @e (%A) -> (%B)\n";
    let ran = carbyne(&["decompose", "-", "--arch", "sm_80"], text);
    assert!(ran.stderr.contains("no sizes can be tried for the symbols"), "{}", ran.stderr);
    assert!(ran.stderr.contains("typical M=4096"), "{}", ran.stderr);
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
