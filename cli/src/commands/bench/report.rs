//! Writes the report of `carbyne bench gemm`, as text, JSON and Markdown.

use super::measurement::{Measured, OursMeasured};
use super::problem::Problem;
use crate::args::{BenchGemm, Following};
use crate::commands::atoms::today;
use crate::commands::gpu::{Times, driver};
use carbyne_atoms::AtomTable;
use carbyne_codegen::nvrtc::Nvrtc;
use carbyne_launch::{CublasLibrary, DeviceInfo, Gpu};
use serde_json::{Value, json};
use std::fmt::Write;

/// All measurements.
pub(super) struct Report<'a> {
    args: &'a BenchGemm,
    info: &'a DeviceInfo,
    table: &'a AtomTable,
    library: &'a CublasLibrary,
    nvrtc: &'a Nvrtc,
    seed: u64,
    date: String,
    all: Vec<Measured>,
}

/// The geometric mean of the ratios of products that differ only in their sizes.
struct Mean {
    what: String,
    n: usize,
    ratio: f64,
    sustained: Option<f64>,
}

impl<'a> Report<'a> {
    pub(super) fn new(
        args: &'a BenchGemm,
        (gpu, table): (&'a Gpu, &'a AtomTable),
        (library, nvrtc): (&'a CublasLibrary, &'a Nvrtc),
        seed: u64,
    ) -> Self {
        let (info, date) = (gpu.info(), today());
        Report { args, info, table, library, nvrtc, seed, date, all: vec![] }
    }

    pub(super) fn add(&mut self, measured: Measured) {
        self.all.push(measured);
    }

    /// The GPU and the versions, in one line.
    fn versions(&self) -> String {
        let ((major, minor), (a, b, c)) = (self.nvrtc.version(), self.library.version());
        format!(
            "{} ({} multiprocessors), {}, NVRTC {major}.{minor}, cuBLAS {a}.{b}.{c}, carbyne {} \
             for {}, {}",
            self.info.name,
            self.info.multiprocessors,
            driver(self.info),
            env!("CARGO_PKG_VERSION"),
            self.table.arch,
            self.date,
        )
    }

    /// A description of the measurement.
    fn how(&self) -> String {
        let args = self.args;
        let times = |n: u32| if n == 1 { "once".to_owned() } else { format!("{n} times") };
        let mut text = format!(
            "Medians of {} launches in turns, {}, with the L2 cache flushed before each launch. \
             The ratio is cuBLAS's time divided by carbyne's: above 1, carbyne is faster. \
             Quartiles are of the ratios of each turn. `twice` is the ratio of two measurements \
             of the first kernel.",
            args.launches,
            times(args.rounds),
        );
        if args.sustain > 0 {
            let (seconds, rounds) = (args.sustain, times(args.rounds));
            let _ = write!(
                text,
                " Sustained: each kernel alone for {seconds} s without a pause, {rounds}; the \
                 second half counts."
            );
        }
        text
    }

    /// A description of the types of a problem.
    fn types(&self, p: &Problem) -> String {
        let by = if p.is_by_lt() { "cublasLtMatmul" } else { "cublasGemmEx" };
        let fast = if p.is_eight() { ", fast accumulation on" } else { "" };
        let bias = match p.following {
            Following::None => "",
            Following::BiasRelu => ", bias and relu",
        };
        format!("{}: C {}, accumulators {}{bias}; cuBLAS uses {by}{fast}", p.factors, p.c, p.sums)
    }

    /// The text above the rows.
    pub(super) fn head(&self) -> String {
        let mut out = format!("{}\n{}\nseed {}, ", self.versions(), self.how(), self.seed);
        let _ = writeln!(out, "cuBLAS is `{}`", self.library.file().display());
        let _ = writeln!(
            out,
            "{:<20} {:<9} {:<2} {:>9} {:>9} {:>7} {:<15} {:>6} {:>9} {:>8}  chosen",
            "product",
            "types",
            "",
            "ours us",
            "cuBLAS us",
            "ratio",
            "",
            "twice",
            "sustained",
            "TFLOP/s"
        );
        out
    }

    /// One line for each kernel of carbyne.
    pub(super) fn rows(&self, m: &Measured) -> String {
        let mut out = String::new();
        for (i, ours) in m.ours.iter().enumerate() {
            let ratio = ours.times.ratio(&m.cublas);
            let twice = twice(m, i).map_or(String::new(), |r| format!("{r:.3}"));
            let sustained = ours.times.sustained_ratio(&m.cublas);
            let median = ours.times.all().median();
            let _ = writeln!(
                out,
                "{:<20} {:<9} {:<2} {:>9.2} {:>9.2} {:>7.3} {:<15} {twice:>6} {:>9} {:>8.1}  {}",
                m.problem.size.to_string(),
                m.problem.factors.to_string(),
                m.problem.majors.to_string(),
                1e6 * median,
                1e6 * m.cublas.all().median(),
                ratio.medians,
                format!("({:.3}..{:.3})", ratio.quartiles.0, ratio.quartiles.1),
                sustained.map_or(String::new(), |r| format!("{r:.3}")),
                rate(&m.problem, median) / 1e12,
                chosen(ours),
            );
        }
        out
    }

    /// The text below the rows.
    pub(super) fn foot(&self) -> String {
        let mut out = String::new();
        for mean in self.means() {
            let sustained = mean.sustained.map_or(String::new(), |s| format!(", sustained {s:.3}"));
            let Mean { what, n, ratio, .. } = mean;
            let _ = writeln!(out, "geometric mean of {n}, {what}: {ratio:.3}{sustained}");
        }
        for types in self.all_types() {
            let _ = writeln!(out, "{types}");
        }
        out
    }

    /// The descriptions of all types, each once.
    fn all_types(&self) -> Vec<String> {
        let mut out: Vec<String> = vec![];
        for types in self.all.iter().map(|m| self.types(&m.problem)) {
            if !out.contains(&types) {
                out.push(types);
            }
        }
        out
    }

    fn means(&self) -> Vec<Mean> {
        // The logarithms of ratios and of sustained ratios, which are averaged.
        let mut groups: Vec<(String, Vec<f64>, Vec<f64>)> = vec![];
        for m in &self.all {
            for ours in &m.ours {
                let asked = match ours.ours.asked.as_str() {
                    "" => String::new(),
                    pin => format!(" by {pin}"),
                };
                let what = format!("{} {}{asked}", m.problem.factors, m.problem.majors);
                let at = groups.iter().position(|(w, ..)| *w == what).unwrap_or_else(|| {
                    groups.push((what, vec![], vec![]));
                    groups.len() - 1
                });
                let (_, ratios, sustained) = &mut groups[at];
                ratios.push(libm::log(ours.times.ratio(&m.cublas).medians));
                sustained.extend(ours.times.sustained_ratio(&m.cublas).map(libm::log));
            }
        }
        let mean = |logs: &[f64]| libm::exp(logs.iter().sum::<f64>() / logs.len() as f64);
        let of = |(what, ratios, sustained): (String, Vec<f64>, Vec<f64>)| Mean {
            what,
            n: ratios.len(),
            ratio: mean(&ratios),
            sustained: (!sustained.is_empty()).then(|| mean(&sustained)),
        };
        groups.into_iter().map(of).collect()
    }

    /// A section of a Markdown page.
    pub(super) fn markdown(&self) -> String {
        let mut out = format!("{}.\n\n{}\n\n", self.versions(), self.how());
        let types = self.all_types();
        if !types.is_empty() {
            let _ = writeln!(out, "{}.\n", types.join(". "));
        }
        out.push_str(
            "| product | types | | chosen | ours, us | cuBLAS, us | ratio | quartiles | sustained \
             | TFLOP/s |\n\
             | --- | --- | --- | --- | ---: | ---: | ---: | --- | ---: | ---: |\n",
        );
        for m in &self.all {
            for ours in &m.ours {
                let ratio = ours.times.ratio(&m.cublas);
                let sustained = ours.times.sustained_ratio(&m.cublas);
                let median = ours.times.all().median();
                let _ = writeln!(
                    out,
                    "| {} | {} | {} | `{}` | {:.1} | {:.1} | {:.3} | {:.3} to {:.3} | {} | {:.0} |",
                    m.problem.size,
                    m.problem.factors,
                    m.problem.majors,
                    chosen(ours),
                    1e6 * median,
                    1e6 * m.cublas.all().median(),
                    ratio.medians,
                    ratio.quartiles.0,
                    ratio.quartiles.1,
                    sustained.map_or(String::new(), |r| format!("{r:.3}")),
                    rate(&m.problem, median) / 1e12,
                );
            }
        }
        for mean in self.means() {
            let sustained = mean.sustained.map_or(String::new(), |s| format!("{s:.3}"));
            let Mean { what, n, ratio, .. } = mean;
            let _ = writeln!(
                out,
                "| geometric mean of {n} | {what} | | | | | {ratio:.3} | | {sustained} | |"
            );
        }
        out
    }

    /// All measurements as JSON.
    pub(super) fn json(&self) -> String {
        let (info, args, (a, b, c)) = (self.info, self.args, self.library.version());
        let mean = |m: Mean| {
            json!({
                "of": m.what,
                "products": m.n,
                "ratio": m.ratio,
                "sustained_ratio": m.sustained,
            })
        };
        let value = json!({
            "format": 1,
            "carbyne": env!("CARGO_PKG_VERSION"),
            "arch": self.table.arch.as_str(),
            "gpu": info.name,
            "compute_capability": [info.capability.0, info.capability.1],
            "multiprocessors": info.multiprocessors,
            "driver": driver(info),
            "nvrtc": format!("{}.{}", self.nvrtc.version().0, self.nvrtc.version().1),
            "cublas": format!("{a}.{b}.{c}"),
            "cublas_file": self.library.file().display().to_string(),
            "date": self.date,
            "seed": self.seed,
            "launches": args.launches,
            "rounds": args.rounds,
            "sustain_seconds": args.sustain,
            "products": self.all.iter().map(product).collect::<Vec<_>>(),
            "geometric_means": self.means().into_iter().map(mean).collect::<Vec<_>>(),
        });
        format!("{value:#}\n")
    }
}

/// The chosen strategy with its parameters.
fn chosen(ours: &OursMeasured) -> &str {
    ours.ours.built.chosen.first().map_or("", |(_, by)| by)
}

/// The ratio of the two measurements of the first kernel; `None` for other kernels.
fn twice(m: &Measured, which: usize) -> Option<f64> {
    let first = m.ours.first().filter(|_| which == 0)?;
    Some(first.times.ratio(&m.again).medians)
}

/// Floating-point operations per second.
fn rate(problem: &Problem, seconds: f64) -> f64 {
    if seconds > 0.0 { problem.operations() / seconds } else { 0.0 }
}

fn times(t: &Times) -> Value {
    let all = t.all();
    let median = |rounds: &[Vec<f64>]| -> Vec<f64> {
        let of = |round: &Vec<f64>| 1e6 * carbyne_launch::Timing::new(round.clone()).median();
        rounds.iter().map(of).collect()
    };
    json!({
        "median_us": 1e6 * all.median(),
        "first_quartile_us": 1e6 * all.quantile(0.25),
        "third_quartile_us": 1e6 * all.quantile(0.75),
        "min_us": 1e6 * all.min(),
        "launches": all.n_launches(),
        "medians_us_by_round": median(&t.burst),
        "sustained_median_us": t.sustained().map(|s| 1e6 * s),
        "sustained_medians_us_by_round": median(&t.sustained),
    })
}

fn product(m: &Measured) -> Value {
    let p = &m.problem;
    let [a, b] = p.factors.0.map(|s| s.as_str());
    let ours = |(i, o): (usize, &OursMeasured)| {
        let ratio = o.times.ratio(&m.cublas);
        let built = &o.ours.built;
        json!({
            "asked": o.ours.asked,
            "chosen": chosen(o),
            "kernels": built.kernels.iter().map(|k| &k.kernel.name).collect::<Vec<_>>(),
            "estimated_us": built.estimate,
            "registers": built.registers(),
            "spill_bytes": built.spills(),
            "relative_error": o.distance,
            "times": times(&o.times),
            "ratio": ratio.medians,
            "ratio_first_quartile": ratio.quartiles.0,
            "ratio_third_quartile": ratio.quartiles.1,
            "ratio_with_itself": twice(m, i),
            "sustained_ratio": o.times.sustained_ratio(&m.cublas),
            "tflops": rate(p, o.times.all().median()) / 1e12,
        })
    };
    json!({
        "m": p.size.0[0],
        "n": p.size.0[1],
        "k": p.size.0[2],
        "a": a,
        "b": b,
        "c": p.c.as_str(),
        "sums": p.sums.as_str(),
        "majors": p.majors.to_string(),
        "epilogue": match p.following {
            Following::None => "none",
            Following::BiasRelu => "bias_relu",
        },
        "relative_error_allowed": p.bound(),
        "cublas_function": if p.is_by_lt() { "cublasLtMatmul" } else { "cublasGemmEx" },
        "fast_accumulation": p.is_eight().then_some(true),
        "cublas": times(&m.cublas),
        "cublas_tflops": rate(p, m.cublas.all().median()) / 1e12,
        "ours": m.ours.iter().enumerate().map(ours).collect::<Vec<_>>(),
        "ours_again": times(&m.again),
    })
}
