//! The kernels of a program as a function of tensors, without a word about who calls it.

use crate::simulator::Simulator;
use carbyne_codegen::CudaKernel;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::VarId;
use carbyne_ir::scalar::Scalar;
use carbyne_launch::call::{Cache, Call, Given, Parameter, Place, Plan, Word};
use carbyne_launch::{Binary, Devices};
use smallvec::SmallVec;
use std::collections::BTreeMap;

/// The device of a function that the simulator executes.
const SIMULATE: &str = "simulate";

/// One thing for each of a few parameters.
pub(crate) type List<T> = SmallVec<[T; 8]>;

/// A call with the kernels that it launches.
pub(crate) struct Kernels {
    pub(crate) calls: Cache,
    pub(crate) runs_on: RunsOn,
    /// `cuda:0` and so on, or `simulate`.
    pub(crate) device: String,
    /// The program that runs, in which facts stand.
    text: String,
}

/// What executes kernels.
pub(crate) enum RunsOn {
    Gpus(Devices),
    Simulator(Box<Simulator>),
}

impl Kernels {
    /// Of machine code for a GPU of that number.
    pub(crate) fn on_gpu(call: Call, text: String, binary: Binary, gpu: u32) -> Kernels {
        let runs_on = RunsOn::Gpus(Devices::new(binary));
        Kernels { calls: Cache::new(call), runs_on, device: format!("cuda:{gpu}"), text }
    }

    /// Of a program that the simulator executes.
    pub(crate) fn on_simulator(call: Call, text: String, simulator: Simulator) -> Kernels {
        let runs_on = RunsOn::Simulator(Box::new(simulator));
        Kernels { calls: Cache::new(call), runs_on, device: SIMULATE.to_owned(), text }
    }

    /// Loads the kernels on a device.
    pub(crate) fn load(&self, device: u32) -> Result<(), Box<Diagnostic>> {
        match &self.runs_on {
            RunsOn::Gpus(devices) => devices.load(device, self.calls.call().kernels()),
            RunsOn::Simulator(_) => Ok(()),
        }
    }

    pub(crate) fn parameters(&self) -> &[Parameter] {
        self.calls.call().parameters()
    }

    /// The call as a person writes it, such as `f(A, B[, C])`.
    pub(crate) fn signature(&self) -> String {
        let shown =
            |p: &Parameter| if p.is_result { format!("[{}]", p.name) } else { p.name.clone() };
        format!("f({})", self.parameters().iter().map(shown).collect::<Vec<_>>().join(", "))
    }

    /// Errors of a call as the text for people and as JSON.
    pub(crate) fn shown(&self, errors: &[Diagnostic]) -> (String, String) {
        // A fact stands in the text; an argument does not.
        let text = if errors.iter().all(|e| e.span.end == 0) { "" } else { &self.text };
        crate::error::shown("<program>", text, errors)
    }

    /// Checks arguments, and executes the kernels on the simulator. Values of sizes are taken from shapes, or are those of `symbols`.
    pub(crate) fn simulate(
        &self,
        simulator: &Simulator,
        given: &[Given<'_>],
        words: &[Word],
        symbols: &BTreeMap<VarId, i64>,
    ) -> Result<(), Vec<Diagnostic>> {
        // Others may call meanwhile: the simulation does not hold the plan.
        let sizes = self
            .calls
            .with(given, symbols, |plan| plan.check(words).map(|()| plan.sizes().to_vec()));
        let sizes = sizes.map_err(|e| vec![*e])?;
        let sizes = sizes.into_iter().map(|(var, n)| (self.calls.call().name(var), n)).collect();
        simulator.run(self.parameters(), given, words, sizes)
    }
}

/// Whether an error is about arguments, and not about the program or the GPU.
pub(crate) fn is_about_arguments(errors: &[Diagnostic]) -> bool {
    let first = errors.first().map(|e| e.code);
    matches!(first, Some(Code::BadInput | Code::SymbolValue | Code::Symbolic))
}

/// The bytes of an integer; none if the type does not hold it.
pub(crate) fn word_of_integer(scalar: Scalar, value: i128) -> Option<Word> {
    let (least, most) = scalar.int_range()?;
    let fits = (least..=most).contains(&value);
    fits.then_some(value as u64 & (u64::MAX >> (64 - scalar.bits().max(8))))
}

/// The bytes of a floating-point number, rounded to the type.
pub(crate) fn word_of_number(scalar: Scalar, value: f64) -> Word {
    carbyne_simulate::num::encode(scalar, value)
}

/// Launches the kernels of a plan on the stream of a device.
#[expect(unsafe_code, reason = "launches kernels on memory of others")]
pub(crate) fn launched(
    devices: &Devices,
    plan: &mut Plan,
    kernels: &[CudaKernel],
    words: &[Word],
    place: Place,
) -> Result<(), Box<Diagnostic>> {
    // SAFETY: the plan is that of the tensors, which their libraries keep until work on the stream is done: they free memory in
    // the order of the stream.
    unsafe { devices.launch(plan, kernels, words, place) }
}
