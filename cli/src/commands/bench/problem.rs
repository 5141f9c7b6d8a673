//! Defines the matrix products that `bench` measures ([`Problem`]): their sizes and types, their
//! texts for carbyne, and the allowed distance between the results of carbyne and of cuBLAS.

use crate::args::{BenchGemm, Factors, Following, Majors, Size, Sums};
use crate::failure::Failure;
use carbyne_ir::scalar::Scalar;
use carbyne_launch::Transposed;
use carbyne_simulate::num::unit_roundoff;
use std::fmt;

/// A product C = A B.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub(super) size: Size,
    pub(super) majors: Majors,
    pub(super) factors: Factors,
    /// The type of C.
    pub(super) c: Scalar,
    /// The type of the accumulators.
    pub(super) sums: Scalar,
    pub(super) following: Following,
}

impl Problem {
    /// All products of the command line.
    pub(super) fn all(args: &BenchGemm) -> Result<Vec<Problem>, Failure> {
        let mut out = vec![];
        for factors in &args.types {
            for majors in &args.majors {
                for size in &args.sizes {
                    let problem = Problem::new(*size, *majors, *factors, args)?;
                    if !out.contains(&problem) {
                        out.push(problem);
                    }
                }
            }
        }
        Ok(out)
    }

    fn new(
        size: Size,
        majors: Majors,
        factors: Factors,
        args: &BenchGemm,
    ) -> Result<Problem, Failure> {
        use Scalar::*;
        let (c, sums) = match (factors.0[0], args.acc) {
            (F16, Some(Sums::F16)) => (F16, F16),
            (other, Some(Sums::F16)) => {
                return Err(Failure::usage_help(
                    format!("cuBLAS has no products of {other} with f16 accumulators"),
                    "remove `--acc`, or use `--types f16`",
                ));
            }
            (F64, _) => (F64, F64),
            (I8, _) => (I32, I32),
            (Bf16, _) => (Bf16, F32),
            (Tf32 | F32, _) => (F32, F32),
            // cuBLAS has f16 and bf16 outputs for 8-bit floats; f16 rounds less.
            _ => (F16, F32),
        };
        let problem = Problem { size, majors, factors, c, sums, following: args.epilogue };
        match problem.not_there() {
            None => Ok(problem),
            Some((what, help)) => Err(Failure::usage_help(what, help)),
        }
    }

    /// The reason why cuBLAS does not have this product, and how to avoid the problem.
    fn not_there(&self) -> Option<(String, &'static str)> {
        let factors = self.factors;
        if self.is_eight() && self.majors != Majors([false, true]) {
            let what = format!("cuBLAS has products of {factors} only for the majors nt");
            return Some((what, "use `--majors nt`"));
        }
        if factors.0 == [Scalar::E5m2, Scalar::E5m2] {
            let what = "cuBLAS has no products of e5m2 with e5m2".to_owned();
            return Some((what, "use `--types e4m3xe5m2` or `--types e5m2xe4m3`"));
        }
        let with_bias = matches!(self.c, Scalar::F16 | Scalar::Bf16 | Scalar::F32);
        if self.following == Following::BiasRelu && !with_bias {
            let what = format!("cuBLAS has no products of {factors} with a bias");
            return Some((what, "remove `--epilogue`, or use other types"));
        }
        None
    }

    /// Whether the factors are 8-bit floats.
    pub(super) fn is_eight(&self) -> bool {
        self.factors.0.iter().all(|s| s.is_float() && s.bits() == 8)
    }

    /// Whether cuBLAS computes the product with `cublasLtMatmul`.
    pub(super) fn is_by_lt(&self) -> bool {
        self.is_eight() || self.following != Following::None
    }

    pub(super) fn transposed(&self) -> [Transposed; 2] {
        self.majors.0.map(|t| if t { Transposed::Yes } else { Transposed::No })
    }

    /// The number of multiplications and additions.
    pub(super) fn operations(&self) -> f64 {
        self.size.0.iter().fold(2.0, |all, n| all * f64::from(*n))
    }

    /// The text of the product, with the pin, if not empty.
    pub(super) fn text(&self, by: &str) -> String {
        let [m, n, k] = self.size.0;
        let lies = |t: bool, rows: u32, columns: u32| match t {
            false => format!("[{rows},{columns}]"),
            true => format!("[({rows},{columns}):(1,{rows})]"),
        };
        let ([ta, tb], [a, b]) = (self.majors.0, self.factors.0);
        let (c, sums) = (self.c, self.sums);
        let by = if by.is_empty() { String::new() } else { format!(" by={by}") };
        let mut text =
            format!("carbyne 2\n%A:{}.{a}.GL\n%B:{}.{b}.GL\n", lies(ta, m, k), lies(tb, k, n));
        match self.following {
            Following::None => text.push_str(&format!(
                "%C:[{m},{n}].{c}.GL\nMatMul.set @gemm (%A, %B) -> (%C) acc={sums}{by}\n"
            )),
            Following::BiasRelu => {
                let (bias, result) = match c == sums {
                    true => ("%b".to_owned(), "relu(%t)".to_owned()),
                    false => (format!("cast(%b, {sums})"), format!("cast(relu(%t), {c})")),
                };
                text.push_str(&format!(
                    "%b:[1,{n}].{c}.GL\n%C:[{m},{n}].{c}.GL\n\
                     Spec @gemm (%A, %B, %b) -> (%C){by} means {{\n  \
                     %t = matmul(%A, %B, acc={sums}) + {bias}\n  %C = {result}\n}}\n"
                ));
            }
        }
        text
    }

    /// The allowed relative distance of two results, as root mean square. Each result rounds its
    /// elements to the type of C. A sum of K terms with random signs grows with the square root of
    /// K. If each addition is rounded, the error is sqrt(K) units of the accumulator type. If each
    /// instruction truncates its sum toward zero, the error is as many units as half of the number
    /// of instructions.
    pub(super) fn bound(&self) -> f64 {
        if self.sums == Scalar::I32 {
            return 0.0;
        }
        // Tensor cores keep 13 fraction bits in sums of 8-bit floats.
        let unit = if self.is_eight() { 0.5f64.powi(13) } else { 2.0 * unit_roundoff(self.sums) };
        let k = f64::from(self.size.0[2]);
        let terms = 256.0 / self.factors.0[0].bits() as f64;
        2.0 * unit_roundoff(self.c) + 2.0 * unit * (k.sqrt() + k / (2.0 * terms))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.size, self.factors, self.majors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn problems(more: &[&str]) -> Result<Vec<Problem>, String> {
        let all = [&["carbyne", "bench", "gemm", "--device"], more].concat();
        let args = crate::args::Args::try_parse_from(all).map_err(|e| e.to_string())?;
        let crate::args::Command::Bench(bench) = args.command else { return Ok(vec![]) };
        let crate::args::BenchCommand::Gemm(args) = bench.command;
        Problem::all(&args).map_err(|e| format!("{e:?}"))
    }

    #[test]
    fn what_is_asked_for() {
        let usual = problems(&[]).unwrap();
        assert_eq!(usual.len(), 10);
        assert_eq!(usual[9].to_string(), "16x4096x4096 f16 nt");
        let all = ["--sizes", "64,16x32x128", "--types", "bf16,tf32,i8", "--majors", "nn,tt"];
        let some = problems(&all).unwrap();
        assert_eq!(some.len(), 12);
        assert_eq!((some[0].c, some[4].c, some[8].sums), (Scalar::Bf16, Scalar::F32, Scalar::I32));
        for (wrong, part) in [
            (&["--sizes", "64x64"][..], "MxNxK"),
            (&["--sizes", "0"], "MxNxK"),
            (&["--sizes", "4294967297"], "MxNxK"),
            (&["--majors", "n"], "nn, nt"),
            (&["--types", "u8"], "e4m3xe5m2"),
            (&["--types", "f16xbf16"], "e4m3xe5m2"),
            (&["--types", "e4m3", "--majors", "nn"], "majors nt"),
            (&["--types", "e5m2"], "e5m2 with e5m2"),
            (&["--types", "bf16", "--acc", "f16"], "f16 accumulators"),
            (&["--types", "i8", "--epilogue", "bias_relu"], "with a bias"),
        ] {
            let said = problems(wrong).unwrap_err();
            assert!(said.contains(part), "{wrong:?}: {said}");
        }
    }

    #[test]
    fn texts_are_programs_and_bounds_find_a_lost_product() {
        let types = "f16,bf16,tf32,f32,f64,e4m3,e4m3xe5m2";
        for more in
            [&["--types", types, "--sizes", "64,128x192x256"][..], &["--epilogue", "bias_relu"]]
        {
            for p in problems(more).unwrap() {
                let text = p.text("@ring");
                let module = carbyne_ir::text::parse(&text).unwrap();
                carbyne_decompose::checked(&module, &text)
                    .unwrap_or_else(|e| panic!("{text}\n{e:?}"));
                // The relative error of omitting one of K products is 1 / sqrt(K).
                let lost = 1.0 / f64::from(p.size.0[2]).sqrt();
                assert!(p.is_eight() || p.bound() < lost / 2.0, "{p}: {} {lost}", p.bound());
            }
        }
    }
}
