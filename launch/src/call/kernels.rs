//! The kernels of a program as one function of tensors, which GPUs or the simulator execute.

use super::simulator::Simulator;
use super::{Cache, Call, Given, Parameter, Place, Word};
use crate::{Binary, Devices, Fallible};
use carbyne_atoms::AtomTable;
use carbyne_ir::diag::Diagnostic;
use carbyne_ir::expr::VarId;
use std::collections::BTreeMap;

/// A call with the kernels that it runs. Threads may call it at once.
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
    /// Takes the code of the kernels. `text` is the program that runs.
    #[must_use]
    pub fn on_gpus(call: Call, text: String, code: Binary) -> Kernels {
        Kernels { calls: Cache::new(call), runs_on: RunsOn::Gpus(Devices::new(code)), text }
    }

    /// Takes the table of the program's instructions. `text` is the program that runs.
    #[must_use]
    pub fn on_simulator(call: Call, text: String, table: AtomTable) -> Kernels {
        let runs_on = RunsOn::Simulator(Simulator::new(table));
        Kernels { calls: Cache::new(call), runs_on, text }
    }

    /// Loads the kernels on a GPU. On the simulator there is nothing to load.
    ///
    /// # Errors
    /// Those of [`Devices::load`].
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

    /// Plans of the call.
    #[must_use]
    pub fn calls(&self) -> &Cache {
        &self.calls
    }

    /// Parameters in the order of the text.
    #[must_use]
    pub fn parameters(&self) -> &[Parameter] {
        self.call().parameters()
    }

    /// The executor: see [`Kernels::launch`] and [`Kernels::simulate`].
    #[must_use]
    pub fn runs_on(&self) -> &RunsOn {
        &self.runs_on
    }

    /// The text in which the place of an error lies. A fact stands in the program; an argument
    /// stands in no text.
    #[must_use]
    pub fn text_of(&self, error: &Diagnostic) -> &str {
        if error.span.end == 0 { "" } else { &self.text }
    }

    /// Checks arguments, and puts the kernels into a stream of a GPU. They are not waited for.
    /// `devices` are those of [`Kernels::runs_on`].
    ///
    /// # Safety
    /// Tensors lie where they say and stay until the kernels are done; nothing else uses them in a
    /// way that the kernels do not expect. The stream is alive.
    ///
    /// # Errors
    /// Those of [`Call::plan`] and of [`Devices::launch`].
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
            // SAFETY: the plan is that of the tensors, and the caller states the rest.
            unsafe { devices.launch(plan, kernels, words, place) }
        })
    }

    /// Checks arguments, and executes the kernels on the CPU. Results are there when it returns.
    /// `simulator` is that of [`Kernels::runs_on`].
    ///
    /// # Safety
    /// Tensors lie where they say, and nothing else uses them meanwhile.
    ///
    /// # Errors
    /// Those of [`Call::plan`]; [`Code::BadInput`](carbyne_ir::diag::Code::BadInput) for a tensor
    /// that the simulator does not take; those of [`carbyne_simulate::simulate`].
    #[expect(unsafe_code, reason = "reads and writes memory of others")]
    pub unsafe fn simulate(
        &self,
        simulator: &Simulator,
        given: &[Given<'_>],
        words: &[Word],
        symbols: &BTreeMap<VarId, i64>,
    ) -> Fallible<()> {
        // Others may call meanwhile: the simulation does not hold the plan.
        let sizes = self
            .calls
            .with(given, symbols, |plan| plan.check(words).map(|()| plan.sizes().to_vec()))?;
        let sizes = sizes.into_iter().map(|(var, n)| (self.call().name(var), n)).collect();
        // SAFETY: the tensors fit the program, and the caller states the rest.
        unsafe { simulator.run(self.call(), given, words, sizes) }
    }
}
