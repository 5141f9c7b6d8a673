//! `carbyne compile`: decomposes a program and prints it as IR, CUDA C++ (on request with a
//! function for tvm-ffi), PTX or machine code, or prints the data that a launcher needs (`abi`).
//!
//! The launch configuration (grid, block, shared memory) and, if the assembler ptxas ran, registers
//! and spills are printed on standard error.

use super::abi;
use crate::args::{Compile, Emit, MessageFormat};
use crate::failure::{Failure, Outcome, Source};
use crate::pipeline::How;
use crate::tuned::Tuning;
use crate::{Io, input, output, pipeline};
use carbyne_atoms::AtomTable;
use carbyne_codegen::nvrtc::{self, Compiled, Usage};
use carbyne_codegen::{CudaKernel, Host, print_kernels, print_program, print_tvm_ffi};
use carbyne_ir::diag::{Diagnostic, Severity};
use serde_json::json;
use std::path::Path;

pub(super) fn run(args: &Compile, format: MessageFormat, io: &mut Io<'_>) -> Outcome {
    let verbose = match args.ptxas_options.as_deref() {
        None => false,
        Some("-v" | "--verbose") => true,
        Some(other) => {
            let shown: String = other.chars().take(64).collect();
            return Err(Failure::usage(format!(
                "ptxas option `{shown}` is not supported; use `-v`"
            )));
        }
    };
    let table = pipeline::costed(&args.arch, args.costs.as_deref())?;
    let source = input::read(&args.file, io)?;
    let tuning = Tuning::from_file(args.tuned.as_deref(), None)?;
    let how = How { sms: args.sms, tuning: tuning.as_ref(), given: !args.no_check };
    let decomposed = pipeline::ordered(&source, &table, how)?;
    output::warn(&source, &decomposed.warnings, format, io);
    decomposed.notes.say(&source, format, io);
    let to = args.output.as_deref();
    let (errors, given): (Vec<Diagnostic>, Vec<Diagnostic>) =
        decomposed.given.iter().cloned().partition(|d| d.severity == Severity::Error);
    let in_order = || match errors.is_empty() {
        true => Ok(()),
        false => Err(Failure::program(&decomposed.source, errors.iter().cloned().collect())),
    };
    output::warn(&decomposed.source, &given, format, io);
    if args.emit == Emit::Ir && !verbose {
        in_order()?;
        return output::write(to, decomposed.source.text.as_bytes(), io);
    }
    let program = &decomposed.program;
    if args.emit != Emit::Abi {
        pipeline::has_kernel(&source, program)?;
    }
    let ids = match args.kernel.as_deref() {
        None => program.kernels.clone(),
        Some(name) => vec![pipeline::kernel(&source, program, name)?],
    };
    let lines = args.lines.as_ref().map(|path| path.display().to_string());
    let printed = if matches!(args.emit, Emit::Cuda | Emit::TvmFfi) {
        let declared = pipeline::declared(&pipeline::parsed(&source)?);
        let name = args.kernel.as_deref().unwrap_or_else(|| stem(&args.file));
        let print = if args.emit == Emit::Cuda { print_program } else { print_tvm_ffi };
        let lines = lines.as_deref();
        print(program, &ids, &table, Host { name, declared: &declared, lines })
    } else {
        let all: Vec<_> = ids.iter().map(|id| (program, *id)).collect();
        print_kernels(&all, &table, lines.as_deref())
    };
    let (text, kernels) = printed.map_err(|e| Failure::program(&decomposed.source, e))?;
    in_order()?;
    let compiled = match args.emit {
        Emit::Ir | Emit::Cuda | Emit::TvmFfi | Emit::Abi if !verbose => None,
        _ => Some(compiled(&text, &table, &source, lines.is_some())?),
    };
    let abi = || match (args.kernel.as_deref(), &kernels[..]) {
        (Some(_), [only]) => abi::json(only, program, &table),
        _ => abi::module(&kernels, program, &table),
    };
    let bytes = match (args.emit, &compiled) {
        (Emit::Abi, _) => abi().into_bytes(),
        (Emit::Ir, _) => decomposed.source.text.clone().into_bytes(),
        (Emit::Ptx, Some(c)) => c.ptx.clone().into_bytes(),
        (Emit::Cubin, Some(c)) => c.cubin.clone(),
        _ => text.into_bytes(),
    };
    output::write(to, &bytes, io)?;
    if args.emit == Emit::Abi && args.kernel.is_none() && !verbose {
        return Ok(());
    }
    for kernel in &kernels {
        let usage = compiled.as_ref().and_then(|c| c.usage(&kernel.name));
        let grid = program.arena.display(kernel.grid);
        let report = match format {
            MessageFormat::Human => human(kernel, &grid, &table, usage.as_ref()),
            MessageFormat::Json => json(kernel, &grid, &table, usage.as_ref()),
        };
        output::say(&report, io);
    }
    if let Some(c) = compiled.filter(|_| verbose && format == MessageFormat::Human) {
        output::say(&c.log, io);
    }
    Ok(())
}

/// The name of a file's functions, if no kernel was selected.
fn stem(file: &Path) -> &str {
    let stem = file.file_stem().and_then(|s| s.to_str());
    stem.filter(|_| !input::is_stdin(file)).unwrap_or("carbyne")
}

/// Compiles to machine code, which includes PTX.
fn compiled(
    text: &str,
    table: &AtomTable,
    source: &Source,
    line_info: bool,
) -> Result<Compiled, Failure> {
    let name = table.arch.nvrtc_name();
    let options = nvrtc::Options { line_info, ..nvrtc::Options::default() };
    nvrtc::compile(text, name, nvrtc::Emit::Cubin, &options)
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
