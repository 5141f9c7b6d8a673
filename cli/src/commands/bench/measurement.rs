//! Measures one matrix product on the GPU. Kernels of carbyne and cuBLAS get the same factors,
//! their results are compared, and they are timed in turns. A kernel with a wrong result is an
//! error and is not timed.

use super::factors::{distance, drawn, width};
use super::problem::Problem;
use crate::args::{BenchGemm, Following};
use crate::commands::gpu::{self, Built, Clock, Loaded, Memory, Times, guarded, unguarded};
use crate::failure::{Failure, Source};
use carbyne_atoms::AtomTable;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::span::Span;
use carbyne_launch::{Buffer, Cublas, Epilogue, Gpu, Product, Sequence, Work};
use carbyne_simulate::Options;
use carbyne_simulate::device::{POISON, Trial};
use std::time::Duration;

/// A kernel of carbyne for a product.
pub(super) struct Ours {
    /// The requested pin; empty for none.
    pub(super) asked: String,
    pub(super) source: Source,
    pub(super) built: Built,
}

/// The measurements of a product.
pub(super) struct Measured {
    pub(super) problem: Problem,
    pub(super) cublas: Times,
    /// In the order of the requests.
    pub(super) ours: Vec<OursMeasured>,
    /// A second measurement of carbyne's first kernel. The deviation of their ratio from 1 is
    /// noise.
    pub(super) again: Times,
}

/// The measurements of a kernel of carbyne.
pub(super) struct OursMeasured {
    pub(super) ours: Ours,
    /// The distance of the result from cuBLAS's product.
    pub(super) distance: f64,
    pub(super) times: Times,
}

/// The environment of the measurements.
pub(super) struct Session<'a> {
    pub(super) args: &'a BenchGemm,
    pub(super) gpu: &'a Gpu,
    pub(super) cublas: &'a Cublas<'a>,
    pub(super) table: &'a AtomTable,
    pub(super) clock: Clock<'a>,
    pub(super) seed: u64,
}

/// The factors on the GPU.
struct Operands {
    a: Buffer,
    b: Buffer,
    bias: Option<Buffer>,
    /// The size of C in bytes.
    bytes: usize,
}

impl Session<'_> {
    /// Measures a product. A kernel whose result differs from cuBLAS's is not timed; its error, and
    /// errors of the driver about a single kernel, are added to `failures`.
    pub(super) fn measured(
        &mut self,
        problem: Problem,
        ours: Vec<Ours>,
        failures: &mut Vec<Failure>,
    ) -> Result<Option<Measured>, Failure> {
        let outside = |d: Box<Diagnostic>| outside(*d);
        let patience = Duration::from_secs(self.args.timeout.into());
        let operands = self.operands(&problem).map_err(outside)?;
        let poisoned = vec![POISON; operands.bytes];
        let reference = guarded(self.gpu, &poisoned).map_err(outside)?;
        let about = |d: Box<Diagnostic>| {
            Failure::one(&Source { name: problem.to_string(), ..Source::default() }, *d)
        };
        let theirs = self.theirs(&problem, &operands, &reference);
        let theirs = self.cublas.product(&theirs).map_err(about)?;
        self.gpu.run(&*theirs, patience).map_err(about)?;
        let wanted = unguarded(&reference, "cuBLAS", "C").map_err(about)?;
        // Each stage borrows from the next ones: memory, modules, functions, launches.
        let mut loaded = vec![];
        for ours in ours {
            let about = |d: Box<Diagnostic>| Failure::one(&ours.source, *d);
            let mut memory = Memory::default();
            let made = guarded(self.gpu, &poisoned).and_then(|c| {
                let given = |name: &str| match name {
                    "A" => Some(operands.a.address()),
                    "B" => Some(operands.b.address()),
                    "b" => operands.bias.as_ref().map(Buffer::address),
                    "C" => Some(c.address()),
                    _ => None,
                };
                let of = (&given as &dyn Fn(&str) -> Option<u64>, &mut memory);
                let program = &ours.built.program;
                let trial = Trial::new(program, self.table, &Options::default())?;
                Ok((Loaded::new(self.gpu, &ours.built, &trial, of)?, c))
            });
            match made.map_err(about) {
                Ok((kernels, c)) => loaded.push((ours, kernels, c, memory)),
                Err(failure) => failures.push(failure),
            }
        }
        let mut functions = vec![];
        for (ours, kernels, ..) in &loaded {
            let about = |d: Box<Diagnostic>| Failure::one(&ours.source, *d);
            functions.push(kernels.functions(&ours.built).map_err(about)?);
        }
        let mut right = vec![];
        for (i, ((ours, kernels, c, _), functions)) in loaded.iter().zip(&functions).enumerate() {
            let about = |d: Box<Diagnostic>| Failure::one(&ours.source, *d);
            let sequence = kernels.sequence(functions).map_err(about)?;
            self.gpu.run(&sequence, patience).map_err(about)?;
            let is = unguarded(c, "the kernel", "C").map_err(about)?;
            let columns = problem.size.0[1] as usize;
            let apart = distance(problem.c, columns, &is, &wanted);
            if apart <= problem.bound() {
                right.push((i, apart, sequence));
            } else {
                failures.push(wrong(ours, &problem, apart));
            }
        }
        if right.is_empty() {
            return Ok(None);
        }
        let sequences: Vec<&Sequence<'_>> = right.iter().map(|(_, _, s)| s).collect();
        let times = self.times(&*theirs, &sequences).map_err(about)?;
        let kept: Vec<(usize, f64)> = right.iter().map(|(i, apart, _)| (*i, *apart)).collect();
        drop(right);
        drop(functions);
        let mut ours: Vec<Option<Ours>> = loaded.into_iter().map(|(ours, ..)| Some(ours)).collect();
        let mut times = times.into_iter();
        let cublas = times.next().unwrap_or_default();
        let mut measured = vec![];
        for (i, distance) in kept {
            let (Some(ours), Some(times)) = (ours[i].take(), times.next()) else { continue };
            measured.push(OursMeasured { ours, distance, times });
        }
        let again = times.next().unwrap_or_default();
        Ok(Some(Measured { problem, cublas, ours: measured, again }))
    }

    /// The times of cuBLAS, of each kernel of carbyne, and again of carbyne's first kernel.
    fn times(
        &mut self,
        theirs: &dyn Work,
        sequences: &[&Sequence<'_>],
    ) -> carbyne_launch::Fallible<Vec<Times>> {
        let ours = sequences.iter().map(|s| *s as &dyn Work);
        let again = sequences.first().map(|s| *s as &dyn Work);
        let works: Vec<&dyn Work> = std::iter::once(theirs).chain(ours).chain(again).collect();
        let mut times = vec![Times::default(); works.len()];
        for _ in 0..self.args.rounds {
            self.clock.burst(&works, self.args.launches as usize, &mut times)?;
        }
        if self.args.sustain == 0 {
            return Ok(times);
        }
        for _ in 0..self.args.rounds {
            // The first kernel is not measured again here.
            for (work, times) in works[..=sequences.len()].iter().zip(&mut times) {
                self.clock.sustained(*work, self.args.sustain, times)?;
            }
        }
        Ok(times)
    }

    /// Draws the factors; each problem and each operand has its own seed.
    fn operands(&self, problem: &Problem) -> carbyne_launch::Fallible<Operands> {
        let [m, n, k] = problem.size.0.map(|n| n as usize);
        let [a, b] = problem.factors.0;
        let draw = |scalar, n: usize, which: u64| {
            guarded(self.gpu, &drawn(scalar, n, self.seed.wrapping_add(which << 32)))
        };
        Ok(Operands {
            a: draw(a, m * k, 1)?,
            b: draw(b, k * n, 2)?,
            bias: match problem.following {
                Following::None => None,
                Following::BiasRelu => Some(draw(problem.c, n, 3)?),
            },
            bytes: m * n * width(problem.c),
        })
    }

    /// The arguments of cuBLAS for the product.
    fn theirs(&self, problem: &Problem, operands: &Operands, c: &Buffer) -> Product {
        let [a, b] = problem.factors.0;
        Product {
            sizes: problem.size.0,
            transposed: problem.transposed(),
            types: [a, b, problem.c],
            sums: problem.sums,
            addresses: [operands.a.address(), operands.b.address(), c.address()],
            epilogue: match &operands.bias {
                Some(bias) => Epilogue::BiasRelu(bias.address()),
                None => Epilogue::None,
            },
        }
    }
}

/// The failure of a kernel of carbyne whose product differs from cuBLAS's.
fn wrong(ours: &Ours, problem: &Problem, apart: f64) -> Failure {
    let at = ours.source.text.find("@gemm").unwrap_or(0);
    let by = ours.built.chosen.first().map_or(String::new(), |(_, by)| format!(", by {by},"));
    let how = match apart.is_finite() {
        true => format!("the relative distance is {apart:.2e}"),
        false => "the result contains NaN or elements that were never written".to_owned(),
    };
    let text = format!(
        "the kernel{by} does not compute cuBLAS's product: {how}, at most {:.2e} is allowed",
        problem.bound()
    );
    let d = Diagnostic::new(Code::WrongProduct, Span::new(at, at + "@gemm".len()), text)
        .label("factors are standard normal random numbers")
        .help("save this text in a file; `carbyne run FILE --arch ARCH` names the element");
    Failure::one(&ours.source, d)
}

pub(super) const COMMAND: &str = "carbyne bench gemm";

/// An error of the machine, not of a program.
pub(super) fn outside(error: Diagnostic) -> Failure {
    gpu::outside(COMMAND, error)
}
