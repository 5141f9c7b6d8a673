//! Defines [`Kernels`]: the kernels of a program as one function of tensors, together with the GPUs
//! or the simulator that execute them. The C interface and the Python package build their functions
//! on it.

use super::simulator::Simulator;
use super::{Cache, Call, Given, Parameter, Place, Word};
use crate::{Binary, Devices, Fallible};
use carbyne_atoms::AtomTable;
use carbyne_ir::diag::Diagnostic;
use carbyne_ir::expr::VarId;
use std::collections::BTreeMap;

/// A call with its executor. Several threads may call it at once.
pub struct Kernels {
    calls: Cache,
    runs_on: RunsOn,
    text: String,
}

/// The executor of kernels.
pub enum RunsOn {
    /// CUDA devices.
    Gpus(Devices),
    /// The CPU, thread by thread.
    Simulator(Simulator),
}

impl Kernels {
    /// Kernels that run on GPUs. `code` is their compiled code, `text` the program that runs.
    #[must_use]
    pub fn on_gpus(call: Call, text: String, code: Binary) -> Kernels {
        Kernels { calls: Cache::new(call), runs_on: RunsOn::Gpus(Devices::new(code)), text }
    }

    /// Kernels that run on the simulator. `table` contains the program's atoms, `text` is the
    /// program that runs.
    #[must_use]
    pub fn on_simulator(call: Call, text: String, table: AtomTable) -> Kernels {
        let runs_on = RunsOn::Simulator(Simulator::new(table));
        Kernels { calls: Cache::new(call), runs_on, text }
    }

    /// Loads the kernels on a GPU. Does nothing for the simulator.
    ///
    /// # Errors
    /// The errors of [`Devices::load`].
    pub fn load(&self, gpu: u32) -> Fallible<()> {
        match &self.runs_on {
            RunsOn::Gpus(devices) => devices.load(gpu, self.call().kernels()),
            RunsOn::Simulator(_) => Ok(()),
        }
    }

    /// The call.
    #[must_use]
    pub fn call(&self) -> &Call {
        self.calls.call()
    }

    /// The call with its cached plans.
    #[must_use]
    pub fn calls(&self) -> &Cache {
        &self.calls
    }

    /// The parameters in the order of the text.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        self.call().parameters()
    }

    /// The executor: see [`Kernels::launch`] and [`Kernels::simulate`].
    #[must_use]
    pub fn runs_on(&self) -> &RunsOn {
        &self.runs_on
    }

    /// The text to which the place of an error belongs: the program for errors about facts, none
    /// for errors about arguments.
    #[must_use]
    pub fn text_of(&self, error: &Diagnostic) -> &str {
        if error.span.end == 0 { "" } else { &self.text }
    }

    /// Checks arguments, and enqueues the kernels in a stream of a GPU without waiting for them.
    /// `devices` are those of [`Kernels::runs_on`].
    ///
    /// # Safety
    /// Tensors lie at their addresses until the kernels are complete. Nothing else accesses them in
    /// a way that conflicts with the kernels. The stream is alive.
    ///
    /// # Errors
    /// The errors of [`Call::plan`] and of [`Devices::launch`].
    #[expect(unsafe_code, reason = "launches kernels on memory of others")]
    pub unsafe fn launch(
        &self,
        devices: &Devices,
        given: &[Given<'_>],
        words: &[Word],
        symbols: &BTreeMap<VarId, i64>,
        place: Place,
    ) -> Fallible<()> {
        let kernels = self.call().kernels();
        self.calls.with(given, symbols, |plan| {
            // SAFETY: the plan fits the tensors, and the caller guarantees the rest.
            unsafe { devices.launch(plan, kernels, words, place) }
        })
    }

    /// Checks arguments, and executes the kernels on the CPU. The results are written when it
    /// returns. `simulator` is that of [`Kernels::runs_on`].
    ///
    /// # Safety
    /// Tensors lie at their addresses, and nothing else accesses them until it returns.
    ///
    /// # Errors
    /// The errors of [`Call::plan`]; [`Code::BadInput`](carbyne_ir::diag::Code::BadInput) for a
    /// tensor that the simulator does not support; those of [`carbyne_simulate::simulate`].
    #[expect(unsafe_code, reason = "reads and writes memory of others")]
    pub unsafe fn simulate(
        &self,
        simulator: &Simulator,
        given: &[Given<'_>],
        words: &[Word],
        symbols: &BTreeMap<VarId, i64>,
    ) -> Fallible<()> {
        // The simulation does not hold the lock of the plans, so that other threads can call.
        let sizes = self
            .calls
            .with(given, symbols, |plan| plan.check(words).map(|()| plan.sizes().to_vec()))?;
        let sizes = sizes.into_iter().map(|(var, n)| (self.call().name(var), n)).collect();
        // SAFETY: the tensors fit the program, and the caller guarantees the rest.
        unsafe { simulator.run(self.call(), given, words, sizes) }
    }
}
