//! Measures the candidates (instances of strategies) for one spec on the GPU: compares their
//! results with the meaning of the spec, and times them in turns.

use crate::args::Tune;
use crate::commands::gpu::{Built, Clock, Loaded, Memory, Times, guarded, refill, unguarded};
use crate::failure::{Failure, Outcome, Source};
use crate::tuned::Entry;
use carbyne_atoms::AtomTable;
use carbyne_codegen::Param;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::progress::Stage;
use carbyne_launch::{Buffer, Function, Gpu, Sequence, Work};
use carbyne_simulate::Options;
use carbyne_simulate::device::{Images, Trial};
use std::collections::BTreeMap;
use std::time::Duration;

/// Launches of each candidate between two updates of the best candidate.
const ROUND: usize = 20;

/// An instance of a strategy.
pub(super) struct Candidate {
    /// The instance as a pin.
    pub(super) by: String,
    pub(super) source: Source,
    /// The compiled program; `None` if the instance is impossible, see `refused`.
    pub(super) built: Option<Built>,
    pub(super) refused: Option<String>,
    /// The error, if the results are wrong.
    pub(super) wrong: Option<Failure>,
    pub(super) times: Option<Times>,
}

impl Candidate {
    pub(super) fn new(by: String, source: Source, built: Result<Built, Failure>) -> Self {
        let (built, refused) = match built {
            Ok(built) => (Some(built), None),
            Err(failure) => (None, Some(reason(&failure))),
        };
        Candidate { by, source, built, refused, wrong: None, times: None }
    }

    /// Returns the value of `made`, or stores its error.
    fn unless<T>(&mut self, made: carbyne_launch::Fallible<T>) -> Option<T> {
        made.map_err(|d| self.wrong = Some(Failure::one(&self.source, *d))).ok()
    }

    /// The median of all launches, in seconds.
    pub(super) fn median(&self) -> Option<f64> {
        self.times.as_ref().map(|t| t.all().median())
    }
}

/// The message of a failure.
fn reason(failure: &Failure) -> String {
    match failure {
        Failure::Program { list, .. } => {
            list.first().map_or_else(String::new, |d| format!("{}: {}", d.code, d.message))
        }
        Failure::Usage { message, .. } => message.clone(),
        Failure::Panic { what, .. } => what.clone(),
        Failure::Reported | Failure::Closed => String::new(),
    }
}

/// The environment of the measurements.
pub(super) struct Session<'a> {
    pub(super) args: &'a Tune,
    pub(super) gpu: &'a Gpu,
    pub(super) table: &'a AtomTable,
    /// Inputs and symbols.
    pub(super) options: Options,
    pub(super) clock: Clock<'a>,
}

/// GPU memory of tensors that all candidates share, by name, each with guard bytes.
type Shared = BTreeMap<String, Buffer>;

impl Session<'_> {
    /// Compares and times all compiled candidates. Calls `keep` with the best candidate whenever it
    /// changes.
    pub(super) fn measured(
        &mut self,
        candidates: &mut [Candidate],
        stage: &Stage,
        keep: &mut dyn FnMut(Entry) -> Outcome,
    ) -> Outcome {
        let mut shared = Shared::new();
        // Each stage borrows from the next ones: memory, modules, functions, launches.
        let loaded: Vec<Option<(Loaded, Memory)>> = candidates
            .iter_mut()
            .map(|c| {
                let made = self.loaded(c.built.as_ref()?, &mut shared);
                c.unless(made)
            })
            .collect();
        let functions: Vec<Option<Vec<Function<'_>>>> = candidates
            .iter_mut()
            .zip(&loaded)
            .map(|(c, loaded)| {
                let (kernels, _) = loaded.as_ref()?;
                let made = kernels.functions(c.built.as_ref()?);
                c.unless(made)
            })
            .collect();
        let mut right: Vec<(usize, Sequence<'_>)> = vec![];
        for (i, candidate) in candidates.iter_mut().enumerate() {
            stage.says(&candidate.by);
            stage.step();
            let (Some(built), Some((kernels, memory)), Some(functions)) =
                (&candidate.built, &loaded[i], &functions[i])
            else {
                continue;
            };
            let checked = self.checked(built, (functions, kernels, memory), &mut shared);
            let sequence = checked.and_then(|()| kernels.sequence(functions));
            if let Some(sequence) = candidate.unless(sequence) {
                right.push((i, sequence));
            }
            if candidate.wrong.is_some() && !self.gpu.is_usable() {
                return candidate.wrong.take().map_or(Ok(()), Err);
            }
        }
        let works: Vec<&dyn Work> = right.iter().map(|(_, s)| s as &dyn Work).collect();
        if works.is_empty() {
            return Ok(());
        }
        let mut times = vec![Times::default(); works.len()];
        let (mut left, mut kept) = (self.args.launches as usize, None);
        while left > 0 {
            let round = left.min(ROUND);
            left -= round;
            stage.says(&format!("{left} turns left"));
            let timed = self.clock.burst(&works, round, &mut times);
            timed.map_err(|d| Failure::one(&candidates[right[0].0].source, *d))?;
            for ((i, _), times) in right.iter().zip(&times) {
                candidates[*i].times = Some(times.clone());
            }
            let entry = entry(candidates);
            if entry.is_some() && entry != kept {
                kept = entry;
                kept.clone().map_or(Ok(()), &mut *keep)?;
            }
        }
        Ok(())
    }

    /// Loads a candidate. All candidates share the tensors that the program declares.
    fn loaded(
        &self,
        built: &Built,
        shared: &mut Shared,
    ) -> carbyne_launch::Fallible<(Loaded, Memory)> {
        let trial = Trial::new(&built.program, self.table, &self.options)?;
        let params = built.kernels.iter().flat_map(|k| &k.kernel.params);
        for param in params {
            let Param::Pointer { buffer, .. } = param else { continue };
            let name = &built.program.buffers[*buffer].name;
            let Some(bytes) = trial.image(*buffer).filter(|_| !shared.contains_key(name)) else {
                continue;
            };
            if built.given.contains(name) {
                shared.insert(name.clone(), guarded(self.gpu, &bytes)?);
            }
        }
        let mut memory = Memory::default();
        let given = |name: &str| shared.get(name).map(Buffer::address);
        let kernels = Loaded::new(self.gpu, built, &trial, (&given, &mut memory))?;
        Ok((kernels, memory))
    }

    /// Launches the kernels of a candidate once in order, and compares the results of each with its
    /// meaning.
    fn checked(
        &self,
        built: &Built,
        (functions, kernels, memory): (&[Function<'_>], &Loaded, &Memory),
        shared: &mut Shared,
    ) -> carbyne_launch::Fallible<()> {
        let patience = Duration::from_secs(self.args.timeout.into());
        let program = &built.program;
        let mut trial = Trial::new(program, self.table, &self.options)?;
        // Restore the initial data.
        for param in built.kernels.iter().flat_map(|k| &k.kernel.params) {
            let Param::Pointer { buffer, written: true, .. } = param else { continue };
            let name = &program.buffers[*buffer].name;
            if let (Some(bytes), Some(to)) = (trial.image(*buffer), shared.get_mut(name)) {
                refill(to, &bytes)?;
            }
        }
        let all = built.kernels.iter().zip(functions).zip(kernels.calls());
        for ((compiled, function), (launch, arguments)) in all {
            self.gpu.launch(function, *launch, arguments, patience)?;
            let mut after = Images::new();
            for param in &compiled.kernel.params {
                let Param::Pointer { buffer, written: true, .. } = param else { continue };
                let name = &program.buffers[*buffer].name;
                let Some(on_gpu) = shared.get(name).or_else(|| memory.buffer(*buffer)) else {
                    continue;
                };
                after.insert(*buffer, unguarded(on_gpu, &compiled.kernel.name, name)?);
            }
            let judged = trial.judge(compiled.spec, &after, self.args.compare);
            // Spans point into the decomposed text, not into the candidate's.
            judged.map_err(|d| Diagnostic { span: Default::default(), related: vec![], ..*d })?;
            trial.advance(after);
        }
        match functions.is_empty() {
            false => Ok(()),
            true => {
                let d = Diagnostic::new(Code::BadBinary, Default::default(), "no kernel is loaded");
                Err(Box::new(d.help("compile the kernel again")))
            }
        }
    }
}

/// The database entry of the best candidate.
fn entry(candidates: &[Candidate]) -> Option<Entry> {
    let nanoseconds = |c: &Candidate| c.median().map(|s| (1e9 * s).round() as u64);
    let all = candidates.iter().filter_map(|c| Some((c, nanoseconds(c)?)));
    // Among equal candidates, take the one that is ranked first.
    let (best, own) = all.min_by_key(|(_, ns)| *ns)?;
    let model = candidates.first().and_then(|c| Some((c.by.clone(), nanoseconds(c)?)));
    Some(Entry { by: best.by.clone(), nanoseconds: own, model })
}
