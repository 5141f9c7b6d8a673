//! Decomposes and compiles many texts in parallel, and proves that their accesses are ordered, for
//! commands that measure many kernels.

use crate::failure::{Failure, Source};
use crate::tuned::{self, Notes, Tuning};
use crate::{access_order, pipeline};
use carbyne_atoms::AtomTable;
use carbyne_codegen::nvrtc::{self, Nvrtc, Usage};
use carbyne_codegen::{CudaKernel, print_kernel};
use carbyne_decompose::Search;
use carbyne_ir::cancel;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::parallel::STACK;
use carbyne_ir::program::{Program, SpecId};
use carbyne_ir::progress::Stage;
use carbyne_launch::{Binary, Gpu};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuildError, ThreadPoolBuilder};
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// The options of decomposing and compiling.
pub(in crate::commands) struct Builder<'a> {
    pub(in crate::commands) table: &'a AtomTable,
    pub(in crate::commands) nvrtc: &'a Nvrtc,
    /// Multiprocessors.
    pub(in crate::commands) sms: u32,
    /// Pins for specs without a pin.
    pub(in crate::commands) tuning: Option<Tuning>,
}

/// A compiled program.
pub(in crate::commands) struct Built {
    pub(in crate::commands) program: Program,
    /// In text order.
    pub(in crate::commands) kernels: Vec<Compiled>,
    /// The name of each kernel-level spec, and its strategy with parameters.
    pub(in crate::commands) chosen: Vec<(String, String)>,
    /// The estimated time of all kernels, in microseconds.
    pub(in crate::commands) estimate: f64,
    /// Names of the tensors that the text declares. Strategies may have added others.
    pub(in crate::commands) given: BTreeSet<String>,
    /// Notes about tuned pins.
    pub(in crate::commands) notes: Notes,
}

/// A compiled kernel.
pub(in crate::commands) struct Compiled {
    pub(in crate::commands) spec: SpecId,
    pub(in crate::commands) kernel: CudaKernel,
    pub(in crate::commands) binary: Binary,
    /// The resources that ptxas reports.
    pub(in crate::commands) usage: Usage,
}

impl Built {
    /// The maximum number of registers per thread of all kernels.
    pub(in crate::commands) fn registers(&self) -> u32 {
        self.kernels.iter().map(|k| k.usage.registers).max().unwrap_or(0)
    }

    /// The number of bytes that threads of all kernels spill and reload.
    pub(in crate::commands) fn spills(&self) -> u32 {
        let of = |usage: &Usage| usage.spill_stores.saturating_add(usage.spill_loads);
        self.kernels.iter().map(|k| of(&k.usage)).fold(0, u32::saturating_add)
    }
}

impl<'a> Builder<'a> {
    /// A builder for a GPU.
    pub(in crate::commands) fn new(
        command: &str,
        gpu: &Gpu,
        table: &'a AtomTable,
    ) -> Result<Builder<'a>, Failure> {
        let outside = |d: Box<Diagnostic>| super::outside(command, *d);
        let nvrtc = nvrtc::find().map_err(outside)?;
        gpu.runs_code_of(nvrtc.version()).map_err(outside)?;
        Ok(Builder { table, nvrtc, sms: gpu.info().multiprocessors.max(1), tuning: None })
    }

    /// The limits of the search and the target machine.
    pub(in crate::commands) fn search(&self) -> Search {
        Search { sms: Some(self.sms), ..Search::default() }
    }

    /// Decomposes a text, proves that its accesses are ordered, and compiles its kernels.
    pub(in crate::commands) fn built(&self, source: &Source) -> Result<Built, Failure> {
        let module = pipeline::parsed(source)?;
        let options = pipeline::options(source, self.search())?;
        let (table, tuning) = (self.table, self.tuning.as_ref());
        let (found, notes) = tuned::decomposed(source, &module, table, &options, tuning)
            .map_err(|e| Failure::program(source, e))?;
        pipeline::has_kernel(source, &found.program)?;
        access_order::checked(&source.text, &found, self.table)
            .map_err(|e| Failure::program(source, e))?;
        let about = |d: Box<Diagnostic>| Failure::one(source, *d);
        let mut kernels = vec![];
        for spec in &found.program.kernels {
            let kernel = print_kernel(&found.program, *spec, self.table, None);
            // Spans point into the decomposed text.
            let kernel = kernel.map_err(|e| {
                let name = format!("{} for {}", source.name, self.table.arch);
                let text = found.text.clone();
                Failure::program(&Source { name, text, ..Source::default() }, e)
            })?;
            let (emit, options) = (nvrtc::Emit::Cubin, nvrtc::Options::default());
            let arch = self.table.arch.nvrtc_name();
            let made = self.nvrtc.compile(&kernel.source, arch, emit, &options).map_err(about)?;
            let usage = made.usage(&kernel.name).unwrap_or_default();
            let binary = Binary::Cubin(made.cubin);
            kernels.push(Compiled { spec: *spec, kernel, binary, usage });
        }
        let chosen = found
            .rankings
            .iter()
            .filter_map(|r| Some((r.kernel.clone(), r.instances.first()?.by.clone())));
        Ok(Built {
            chosen: chosen.collect(),
            estimate: found.estimates.iter().map(|(_, e)| e.microseconds).sum(),
            program: found.program,
            kernels,
            given: pipeline::declared(&module),
            notes,
        })
    }
}

/// The thread pool for parallel work.
fn pool() -> &'static Result<ThreadPool, ThreadPoolBuildError> {
    static POOL: OnceLock<Result<ThreadPool, ThreadPoolBuildError>> = OnceLock::new();
    POOL.get_or_init(|| ThreadPoolBuilder::new().stack_size(STACK).build())
}

/// Runs parallel work in the thread pool.
pub(in crate::commands) fn in_parallel<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    match pool() {
        Ok(pool) => pool.install(f),
        Err(_) => f(),
    }
}

/// Applies a function to many values in parallel; the results are in the order of the values.
///
/// # Errors
/// [`Code::NoThreads`].
pub(in crate::commands) fn side_by_side<T: Sync, R: Send>(
    command: &str,
    all: &[T],
    stage: &Stage,
    f: impl Fn(&T) -> R + Sync,
) -> Result<Vec<R>, Failure> {
    let pool = pool().as_ref().map_err(|why| {
        let d = Diagnostic::new(
            Code::NoThreads,
            Default::default(),
            "the system cannot start a thread",
        );
        let d =
            d.label(why.to_string()).help("allow more threads or memory: `ulimit -u`, `ulimit -v`");
        super::outside(command, d)
    })?;
    let token = cancel::current();
    let one = |of: &T| {
        let done = cancel::under(token.as_ref(), || f(of));
        stage.step();
        done
    };
    Ok(pool.install(|| all.par_iter().map(one).collect()))
}
