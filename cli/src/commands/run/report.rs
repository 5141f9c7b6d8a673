//! Writes the report of `carbyne run` about a kernel: the comparison of its results, its times and
//! its rates.

use crate::args::MessageFormat;
use carbyne_atoms::AtomTable;
use carbyne_codegen::CudaKernel;
use carbyne_codegen::nvrtc::Usage;
use carbyne_launch::{Gpu, Launch, Sustained, Timing};
use carbyne_simulate::device::{Images, Judged};
use serde_json::json;

/// A kernel that ran.
pub(super) struct Ran {
    pub(super) launch: Launch,
    pub(super) usage: Usage,
    /// Whether `usage` includes spills: ptxas reports them, the driver does not.
    pub(super) spills_known: bool,
    /// The kind of the loaded binary.
    pub(super) kind: &'static str,
    pub(super) timing: Option<Timing>,
    /// Launches without a pause.
    pub(super) sustained: Option<Sustained>,
    /// The tensors after the kernel.
    pub(super) after: Images,
    pub(super) multiply_adds: u64,
    pub(super) bytes_moved: u64,
}

impl Ran {
    /// Floating-point operations per second, and necessary bytes per second.
    fn rates(&self, seconds: f64) -> (f64, f64) {
        let per_second = |n: u64| if seconds > 0.0 { n as f64 / seconds } else { 0.0 };
        (2.0 * per_second(self.multiply_adds), per_second(self.bytes_moved))
    }

    /// The rates for launches of this duration, as text.
    fn rate(&self, seconds: f64) -> String {
        let (flops, bytes) = self.rates(seconds);
        match () {
            () if self.multiply_adds > 0 => format!(", {:.1} TFLOP/s", flops / 1e12),
            () if self.bytes_moved > 0 => format!(", {:.0} GB/s", bytes / 1e9),
            () => String::new(),
        }
    }
}

/// The report about a kernel as text or as a JSON object; `judged` is the comparison of its output.
pub(super) fn text(
    format: MessageFormat,
    kernel: &CudaKernel,
    table: &AtomTable,
    gpu: &Gpu,
    ran: &Ran,
    judged: Option<&Judged>,
) -> String {
    match format {
        MessageFormat::Human => human(kernel, table, gpu, ran, judged),
        MessageFormat::Json => json(kernel, table, gpu, ran, judged),
    }
}

fn human(
    kernel: &CudaKernel,
    table: &AtomTable,
    gpu: &Gpu,
    ran: &Ran,
    judged: Option<&Judged>,
) -> String {
    let (info, launch, usage) = (gpu.info(), ran.launch, &ran.usage);
    let mut text = format!(
        "{}: {} on {}, CUDA {}.{}; grid {}, block {}, shared memory {} bytes, {} registers",
        kernel.name,
        table.arch,
        info.name,
        info.driver.0,
        info.driver.1,
        launch.grid,
        launch.block,
        u64::from(launch.shared) + u64::from(usage.static_smem),
        usage.registers,
    );
    if ran.spills_known {
        text.push_str(&match (usage.spill_stores, usage.spill_loads) {
            (0, 0) => ", no spills".to_owned(),
            (stores, loads) => format!(", spills {stores} bytes out, {loads} bytes in"),
        });
    }
    text.push('\n');
    match judged {
        None => {}
        Some(j) if j.compared == 0 => {
            text.push_str("  none of its outputs can be compared\n");
        }
        Some(j) => {
            let with = match j.by_meaning {
                true => "the meaning",
                false => "the simulator, because the kernel states no meaning",
            };
            text.push_str(&match j.compared == j.elements {
                true => format!("  compared with {with}: all {} elements", j.elements),
                false => {
                    format!("  compared with {with}: {} of {} elements", j.compared, j.elements)
                }
            });
            text.push_str(&match j.max_error {
                0.0 => "; no difference\n".to_owned(),
                e => format!(
                    "; largest difference {e:.3e}: {}\n",
                    crate::commands::line_report::judged(j.max_ratio)
                ),
            });
        }
    }
    if let Some(timing) = &ran.timing {
        text.push_str(&format!(
            "  {} launches, L2 flushed: median {:.2} us, min {:.2} us{}\n",
            timing.n_launches(),
            1e6 * timing.median(),
            1e6 * timing.min(),
            ran.rate(timing.median()),
        ));
        if let Some(s) = &ran.sustained {
            let (own, burst) = (s.timing.median(), timing.median());
            let more = if burst > 0.0 { 100.0 * (own / burst - 1.0) } else { 0.0 };
            let settled =
                if s.settled { "" } else { "; times are not stable yet, raise `--sustain`" };
            text.push_str(&format!(
                "  after {:.1} s without a pause: median {:.2} us{}, {more:+.1} %{settled}\n",
                s.seconds,
                1e6 * own,
                ran.rate(own),
            ));
        }
    }
    text
}

fn json(
    kernel: &CudaKernel,
    table: &AtomTable,
    gpu: &Gpu,
    ran: &Ran,
    judged: Option<&Judged>,
) -> String {
    let (info, usage) = (gpu.info(), &ran.usage);
    let mut object = json!({
        "kind": "report",
        "kernel": kernel.name,
        "arch": table.arch.as_str(),
        "gpu": info.name,
        "compute_capability": [info.capability.0, info.capability.1],
        "driver": [info.driver.0, info.driver.1],
        "multiprocessors": info.multiprocessors,
        "loaded": ran.kind,
        "grid": ran.launch.grid,
        "block": ran.launch.block,
        "dynamic_shared_bytes": ran.launch.shared,
        "static_shared_bytes": usage.static_smem,
        "registers": usage.registers,
        "stack_bytes": usage.stack,
        "multiply_adds": ran.multiply_adds,
        "bytes_moved": ran.bytes_moved,
        "right": judged.is_some(),
    });
    if ran.spills_known {
        object["spill_store_bytes"] = json!(usage.spill_stores);
        object["spill_load_bytes"] = json!(usage.spill_loads);
    }
    if let Some(j) = judged {
        object["elements"] = json!(j.elements);
        object["elements_compared"] = json!(j.compared);
        object["compared_with"] = json!(if j.by_meaning { "meaning" } else { "simulator" });
        object["max_error"] = json!(j.max_error);
        object["max_error_of_allowed"] = json!(j.max_ratio);
    }
    if let Some(timing) = &ran.timing {
        let (flops, bytes) = ran.rates(timing.median());
        object["launches"] = json!(timing.n_launches());
        object["median_seconds"] = json!(timing.median());
        object["min_seconds"] = json!(timing.min());
        object["flops_per_second"] = json!(flops);
        object["bytes_per_second"] = json!(bytes);
    }
    if let Some(s) = &ran.sustained {
        object["sustained_median_seconds"] = json!(s.timing.median());
        object["sustained_for_seconds"] = json!(s.seconds);
        object["settled"] = json!(s.settled);
    }
    format!("{object}\n")
}
