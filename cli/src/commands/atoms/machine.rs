//! `carbyne atoms calibrate --machine --device`: measures costs on a GPU that do not show if one
//! warp executes a single atom repeatedly.
//!
//! The measurements are: `wgmma` by the number of columns and the memory of the first factor, bulk
//! tensor copies, loads and stores by width and memory, reductions in memory, barriers. Each kernel
//! is a text of the folder `machine` with `let` statements for its parameters, and is decomposed as
//! usual. It has one loop that is not unrolled; every warp reads the clock before and after the
//! loop. Two kernels with different numbers of iterations are timed. Their difference counts, for
//! the median block in the fastest launch.

use super::compile::{compile_text, outside};
use super::fastest_launch::fastest_cycles;
use super::report::today;
use crate::args::CalibrateAtoms;
use crate::failure::{Failure, Outcome, Source};
use crate::{Io, output, pipeline};
use carbyne_atoms::AtomTable;
use carbyne_codegen::nvrtc::{self, Emit};
use carbyne_codegen::{CudaKernel, Param, print_clocked};
use carbyne_ir::program::Program;
use carbyne_launch::{Arguments, Fallible, Gpu, Launch, MapValues, Module, TensorMap};
use serde_json::json;
use std::fmt::Write;
use std::time::Duration;

/// Launches of a kernel; the fastest counts.
const LAUNCHES: usize = 5;
/// The ratio of the iterations of the longer and the shorter kernel.
const LONGER: i64 = 4;

const WGMMA_SHARED: &str = include_str!("machine/wgmma_shared.cby");
const WGMMA_REGISTERS: &str = include_str!("machine/wgmma_registers.cby");
const BOXES: &str = include_str!("machine/boxes.cby");
const LOADS: &str = include_str!("machine/loads.cby");
const STORES: &str = include_str!("machine/stores.cby");
const SUMS: &str = include_str!("machine/sums.cby");
const SHARED_LOADS: &str = include_str!("machine/shared_loads.cby");
const SHARED_STORES: &str = include_str!("machine/shared_stores.cby");
const BARRIER: &str = include_str!("machine/barrier.cby");
const MBARRIER: &str = include_str!("machine/mbarrier.cby");

/// The quantity that is measured per iteration.
#[derive(Copy, Clone, Debug)]
enum Unit {
    /// Cycles per execution; the number of executions per iteration.
    Cycles(f64),
    /// Bytes per cycle of a multiprocessor; the number of bytes per iteration.
    Bytes(f64),
}

/// A measurement.
#[derive(Clone, Debug)]
struct Part {
    name: String,
    /// The text without parameters.
    text: &'static str,
    numbers: Vec<(&'static str, i64)>,
    /// Iterations of the shorter kernel.
    rounds: i64,
    unit: Unit,
}

impl Part {
    /// The source of the kernel with this number of iterations and this name.
    fn source(&self, rounds: i64, name: &str) -> Source {
        let numbers = self.numbers.iter().copied().chain([("ROUNDS", rounds)]);
        let lets: Vec<String> = numbers.map(|(name, n)| format!("{name} = {n}")).collect();
        let named = self.text.replacen("Spec @", &format!("Spec @{name}_"), 1);
        let text = format!("carbyne 2\nlet {}\n{named}", lets.join(", "));
        Source { name: self.name.clone(), text, ..Source::default() }
    }
}

const KIB: i64 = 1024;

/// All measurements for a GPU with `sms` multiprocessors.
fn parts(sms: i64) -> Vec<Part> {
    let mut out = vec![];
    let mut part = |name: String, text, numbers: &[(&'static str, i64)], rounds, unit| {
        out.push(Part { name, text, numbers: numbers.to_vec(), rounds, unit });
    };
    for (place, text) in [("shared", WGMMA_SHARED), ("registers", WGMMA_REGISTERS)] {
        for n in [8, 16, 32, 64, 96, 128, 160, 192, 224, 256] {
            let numbers = [("B", 1), ("N", n), ("TIMES", 4), ("LEFT", 1)];
            let name = format!("wgmma m64n{n}k16 f16, first factor in {place}");
            part(name, text, &numbers, 64, Unit::Cycles(4.0));
        }
    }
    for n in [8, 64, 128, 256] {
        let numbers = [("B", 1), ("N", n), ("TIMES", 1), ("LEFT", 0)];
        let name = format!("wgmma m64n{n}k16 f16 until its sums are there");
        part(name, WGMMA_SHARED, &numbers, 64, Unit::Cycles(1.0));
    }
    for rows in [8, 16, 32, 64, 128, 256] {
        let bytes = rows * 128;
        // 128 KiB for each block; the same 128 KiB for all; more than the L2 cache holds.
        let places =
            [("L2", sms, 128 * KIB), ("L2, the same", 1, 128 * KIB), ("DRAM", sms, 2048 * KIB)];
        for (place, regions, region) in places {
            let numbers = [
                ("B", sms),
                ("ROWS", rows),
                ("DEPTH", 4),
                ("REGIONS", regions),
                ("W", region / bytes),
            ];
            let rounds = (512 * KIB / bytes).max(32);
            let name = format!("box of {rows} rows of 128 bytes from {place}");
            part(name, BOXES, &numbers, rounds, Unit::Bytes(bytes as f64));
        }
        let numbers = [("B", 1), ("ROWS", rows), ("DEPTH", 1), ("REGIONS", 1), ("W", 4)];
        let name = format!("box of {rows} rows of 128 bytes until it is there");
        part(name, BOXES, &numbers, 32, Unit::Cycles(1.0));
    }
    for values in [1, 2, 4] {
        let (bits, round) = (32 * values, 8 * 1024 * 4 * values);
        // Two blocks read the same 512 KiB, which do not fit the L1 cache; more than the L2 cache
        // holds.
        for (place, regions, region) in [("L2", sms / 2, 512 * KIB), ("DRAM", sms, 2048 * KIB)] {
            let numbers = [
                ("B", sms),
                ("REGIONS", regions.max(1)),
                ("V", values),
                ("T", 1024),
                ("J", 8),
                ("W", region / round),
            ];
            let name = format!("ld.global.b{bits} from {place}");
            part(name, LOADS, &numbers, 64, Unit::Bytes(round as f64));
        }
        for (name, text, region) in [
            (format!("st.global.b{bits} to L2"), STORES, 256 * KIB),
            (format!("st.global.b{bits} to DRAM"), STORES, 2048 * KIB),
            (format!("sums of {values} f32 a thread in L2"), SUMS, 256 * KIB),
        ] {
            let numbers = [("B", sms), ("V", values), ("T", 1024), ("J", 8), ("W", region / round)];
            part(name, text, &numbers, 64, Unit::Bytes(round as f64));
        }
        let numbers = |j| [("B", 1), ("V", values), ("T", 1024), ("J", j)];
        let name = format!("ld.shared.b{bits}");
        part(name, SHARED_LOADS, &numbers(8), 64, Unit::Bytes(round as f64));
        let name = format!("st.shared.b{bits}");
        part(name, SHARED_STORES, &numbers(4), 64, Unit::Bytes(round as f64 / 2.0));
    }
    for threads in [64, 128, 256, 512, 1024] {
        let numbers = [("B", 1), ("T", threads)];
        part(format!("barrier of {threads} threads"), BARRIER, &numbers, 64, Unit::Cycles(4.0));
        let name = format!("mbarrier: arrival and wait of {threads} threads");
        part(name, MBARRIER, &numbers, 64, Unit::Cycles(1.0));
    }
    out
}

pub(super) fn run(args: &CalibrateAtoms, gpu: &Gpu, table: &AtomTable, io: &mut Io<'_>) -> Outcome {
    let nvrtc = nvrtc::find().map_err(|d| outside(*d))?;
    let patience = Duration::from_secs(args.timeout.into());
    let (mut rows, mut text) = (vec![], String::new());
    for (i, part) in parts(gpu.info().multiprocessors.into()).iter().enumerate() {
        // Writing to a string cannot fail.
        let _ = match measured(gpu, nvrtc, table, (part, i), patience) {
            Ok(value) => {
                let unit = match part.unit {
                    Unit::Cycles(_) => "cycles",
                    Unit::Bytes(_) => "bytes per cycle and multiprocessor",
                };
                rows.push(json!({"name": part.name, "value": value, "unit": unit}));
                writeln!(text, "{}: {value} {unit}", part.name)
            }
            Err(why) => writeln!(text, "{}: not measured: {why}", part.name),
        };
    }
    output::write(None, text.as_bytes(), io)?;
    let Some(path) = &args.output else { return Ok(()) };
    let info = gpu.info();
    let file = json!({
        "format": 1,
        "device": info.name,
        "driver": format!("{}.{}", info.driver.0, info.driver.1),
        "date": today(),
        "parts": rows,
    });
    let text = serde_json::to_string_pretty(&file).map_err(|e| Failure::usage(e.to_string()))?;
    output::write(Some(path), format!("{text}\n").as_bytes(), io)
}

/// The result of a measurement, rounded to two decimals, or the reason why it failed.
fn measured(
    gpu: &Gpu,
    nvrtc: &nvrtc::Nvrtc,
    table: &AtomTable,
    (part, i): (&Part, usize),
    patience: Duration,
) -> Result<f64, String> {
    let mut programs = vec![];
    for rounds in [part.rounds, part.rounds * LONGER] {
        let source = part.source(rounds, &format!("part_{i}_{rounds}"));
        let found = pipeline::decomposed(&source, table).map_err(|e| match e {
            Failure::Program { list, .. } if !list.is_empty() => list[0].to_string(),
            _ => format!("{} has no such instructions", table.arch),
        })?;
        programs.push(found.program);
    }
    let kernels: Vec<_> =
        programs.iter().filter_map(|p| p.kernels.first().map(|k| (p, *k))).collect();
    let (text, kernels) = print_clocked(&kernels, table).map_err(|e| e.to_string())?;
    let binary = compile_text(nvrtc, &text, table.arch, Emit::Cubin).map_err(|d| d.to_string())?;
    let module = gpu.load(&binary).map_err(|d| d.to_string())?;
    let mut cycles = vec![];
    for (program, kernel) in programs.iter().zip(&kernels) {
        cycles.push(timed(gpu, &module, program, kernel, patience).map_err(|d| d.to_string())?);
    }
    let [short, long] = cycles[..] else { return Err("a kernel is missing".to_owned()) };
    let each = (long - short) / (part.rounds * (LONGER - 1)) as f64;
    if each < 0.01 {
        return Err("the longer loop takes no longer".to_owned());
    }
    let value = match part.unit {
        Unit::Cycles(times) => each / times,
        Unit::Bytes(bytes) => bytes / each,
    };
    Ok((100.0 * value).round() / 100.0)
}

/// The cycles of the median block from the start of its first warp to the end of its last warp, in
/// the fastest launch.
fn timed(
    gpu: &Gpu,
    module: &Module,
    program: &Program,
    kernel: &CudaKernel,
    patience: Duration,
) -> Fallible<f64> {
    let mut buffers = vec![];
    let mut clocks = None;
    for param in &kernel.params {
        let (Param::Pointer { buffer, .. } | Param::TensorMap { buffer, .. }) = param else {
            continue;
        };
        if buffers.iter().any(|(id, _)| id == buffer) {
            continue;
        }
        let of = &program.buffers[*buffer];
        let bits = of.cosize.as_const().unwrap_or(0).saturating_mul(of.scalar.bits());
        if of.name == "cycles" {
            clocks = Some(buffers.len());
        }
        buffers.push((*buffer, gpu.allocate(usize::try_from(bits / 8).unwrap_or(0))?));
    }
    let address = |b| buffers.iter().find(|(id, _)| *id == b).map(|(_, on)| on.address());
    let encode = |map: &MapValues| TensorMap::encode(map).map(|map| map.words());
    let arguments =
        Arguments::for_kernel(kernel, &program.arena, address, |_| None, |_| None, encode)?;
    let launch = Launch::of_kernel(kernel, kernel.grid.as_const().unwrap_or(1))?;
    let function = module.function(kernel, launch)?;
    let clocks = clocks.and_then(|i| buffers.get(i)).map(|(_, on_gpu)| on_gpu);
    let launched = || gpu.launch(&function, launch, &arguments, patience);
    fastest_cycles(LAUNCHES, launched, clocks, kernel.block / 32)
}
