//! Prints and compiles the kernels of these tests, and finds faults in compiled code.

use carbyne_atoms::{Arch, AtomTable};
use carbyne_codegen::nvrtc::{Compiled, Emit, Options};
use carbyne_codegen::testing::{require_nvrtc, wgmma_faults};
use carbyne_codegen::{CudaKernel, print_kernel};
use carbyne_ir::diag::Diagnostics;
use carbyne_ir::program::Program;

/// The program of a text without errors.
pub(crate) fn resolve(text: &str) -> Program {
    let module = carbyne_ir::text::parse(text).unwrap_or_else(|e| panic!("{e:#?}"));
    let program = carbyne_ir::resolve::resolve(&module, text).unwrap_or_else(|e| panic!("{e:#?}"));
    let errors = carbyne_ir::verify::verify(&program);
    assert!(errors.is_empty(), "{errors:#?}");
    program
}

/// The printed first kernel of a text.
pub(crate) fn print(text: &str, arch: Arch) -> Result<CudaKernel, Diagnostics> {
    let program = resolve(text);
    print_kernel(&program, program.kernels[0], &AtomTable::new(arch), None)
}

/// The first kernel of a text, which must print.
pub(crate) fn kernel(text: &str, arch: Arch) -> CudaKernel {
    print(text, arch).unwrap_or_else(|e| panic!("{e:#?}"))
}

/// Compiles a kernel to machine code. Fails on warnings, and on calls that make the kernel wrong.
pub(crate) fn compile(kernel: &CudaKernel, arch: Arch) -> Option<Compiled> {
    let compiled = compile_as(kernel, arch, Emit::Cubin)?;
    // The announced removal of sm_70 is not an error of the source.
    let warns = |l: &str| l.contains("warning") && !l.contains("Architectures prior");
    assert!(!compiled.log.lines().any(warns), "{arch}: {}\n{}", compiled.log, kernel.source);
    assert_eq!(injected_waits(&compiled, &kernel.name), [""; 0], "{}", kernel.source);
    assert_eq!(faults(&compiled), [""; 0], "{}", kernel.source);
    Some(compiled)
}

/// The waits and fences for `wgmma` that ptxas inserted into kernels whose names begin with `name`
/// (its messages C75..). It does so if registers are touched too early.
pub(crate) fn injected_waits(compiled: &Compiled, name: &str) -> Vec<String> {
    let function = format!("in function '{name}");
    let of = |l: &&str| l.contains("(C75") && l.contains(&function);
    compiled.log.lines().filter(of).map(str::to_owned).collect()
}

/// Faults in compiled machine code that make kernels with `wgmma` wrong or slow.
pub(crate) fn faults(compiled: &Compiled) -> Vec<String> {
    wgmma_faults(&compiled.ptx, &compiled.cubin, &compiled.log)
}

/// Compiles a kernel.
pub(crate) fn compile_as(kernel: &CudaKernel, arch: Arch, emit: Emit) -> Option<Compiled> {
    let nvrtc = require_nvrtc()?;
    let compiled = nvrtc
        .compile(&kernel.source, arch.nvrtc_name(), emit, &Options::default())
        .unwrap_or_else(|d| panic!("{arch}: {d}\n{}\n{}", d.notes.join("\n"), kernel.source));
    Some(compiled)
}
