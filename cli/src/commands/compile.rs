//! `carbyne compile`: the decomposed program as IR, CUDA C++, PTX or machine code.
//!
//! What a launcher needs (grid, block, shared memory) and, where ptxas has run, registers and spills
//! are said on standard error.

use super::abi;
use crate::args::{Compile, Emit, MessageFormat};
use crate::failure::{Failure, Outcome, Source};
use crate::pipeline::How;
use crate::tuned::Tuning;
use crate::{Io, input, output, pipeline};
use carbyne_atoms::AtomTable;
use carbyne_codegen::nvrtc::{self, Compiled, Usage};
use carbyne_codegen::{CudaKernel, print_kernel};
use carbyne_ir::diag::Diagnostics;
use carbyne_ir::program::SpecId;
use serde_json::json;

pub(super) fn run(args: &Compile, format: MessageFormat, io: &mut Io<'_>) -> Outcome {
    let verbose = match args.ptxas_options.as_deref() {
        None => false,
        Some("-v" | "--verbose") => true,
        Some(other) => {
            let shown: String = other.chars().take(64).collect();
            return Err(Failure::usage(format!("`{shown}` is no known option of ptxas; `-v` is")));
        }
    };
    let table = pipeline::costed(&args.arch, args.costs.as_deref())?;
    let source = input::read(&args.file, io)?;
    let tuning = Tuning::of(args.tuned.as_deref(), None)?;
    let how = How { sms: args.sms, tuning: tuning.as_ref() };
    let decomposed = pipeline::ordered(&source, &table, how)?;
    output::warn(&source, &decomposed.warnings, format, io);
    decomposed.notes.say(&source, format, io);
    let to = args.output.as_deref();
    if args.emit == Emit::Ir && !verbose {
        return output::write(to, decomposed.source.text.as_bytes(), io);
    }
    let program = &decomposed.program;
    if args.emit == Emit::Abi && args.kernel.is_none() {
        let print = |id: &SpecId| print_kernel(program, *id, &table);
        let kernels: Result<Vec<CudaKernel>, Diagnostics> =
            program.kernels.iter().map(print).collect();
        let kernels = kernels.map_err(|e| Failure::program(&decomposed.source, e))?;
        return output::write(to, abi::module(&kernels, program, &table).as_bytes(), io);
    }
    let id = pipeline::kernel(&source, program, args.kernel.as_deref())?;
    let kernel =
        print_kernel(program, id, &table).map_err(|e| Failure::program(&decomposed.source, e))?;
    let compiled = match args.emit {
        Emit::Ir | Emit::Cuda | Emit::Abi if !verbose => None,
        _ => Some(compiled(&kernel, &table, &source)?),
    };
    let abi = abi::json(&kernel, program, &table);
    let bytes = match (args.emit, &compiled) {
        (Emit::Abi, _) => abi.as_bytes(),
        (Emit::Ir, _) => decomposed.source.text.as_bytes(),
        (Emit::Ptx, Some(c)) => c.ptx.as_bytes(),
        (Emit::Cubin, Some(c)) => &c.cubin,
        _ => kernel.source.as_bytes(),
    };
    output::write(to, bytes, io)?;
    let usage = compiled.as_ref().and_then(|c| c.usage(&kernel.name));
    let grid = program.arena.display(kernel.grid);
    let report = match format {
        MessageFormat::Human => human(&kernel, &grid, &table, usage.as_ref()),
        MessageFormat::Json => json(&kernel, &grid, &table, usage.as_ref()),
    };
    output::say(&report, io);
    if let Some(c) = compiled.filter(|_| verbose && format == MessageFormat::Human) {
        output::say(&c.log, io);
    }
    Ok(())
}

/// Compiles to machine code, which includes PTX.
fn compiled(kernel: &CudaKernel, table: &AtomTable, source: &Source) -> Result<Compiled, Failure> {
    let name = table.arch.nvrtc_name();
    nvrtc::compile(&kernel.source, name, nvrtc::Emit::Cubin, &nvrtc::Options::default())
        .map_err(|d| Failure::one(&Source { text: String::new(), ..source.clone() }, *d))
}

fn human(k: &CudaKernel, grid: &str, table: &AtomTable, usage: Option<&Usage>) -> String {
    let (block, bytes) = (k.block, k.smem_bytes);
    let mut line = format!(
        "{}: {}, grid {grid}, block {block}, shared memory {bytes} bytes",
        k.name, table.arch
    );
    if let Some(u) = usage {
        line.push_str(&format!(", {} registers, ", u.registers));
        line.push_str(&match (u.spill_stores, u.spill_loads) {
            (0, 0) => "no spills".to_owned(),
            (stores, loads) => format!("spills {stores} bytes out, {loads} bytes in"),
        });
    }
    line.push('\n');
    line
}

fn json(k: &CudaKernel, grid: &str, table: &AtomTable, usage: Option<&Usage>) -> String {
    let mut object = json!({
        "kind": "report",
        "kernel": k.name,
        "arch": table.arch.as_str(),
        "grid": grid,
        "block": k.block,
        "dynamic_shared_bytes": k.smem_bytes,
    });
    if let Some(u) = usage {
        object["registers"] = json!(u.registers);
        object["spill_store_bytes"] = json!(u.spill_stores);
        object["spill_load_bytes"] = json!(u.spill_loads);
        object["stack_bytes"] = json!(u.stack);
        object["static_shared_bytes"] = json!(u.static_smem);
    }
    format!("{object}\n")
}
