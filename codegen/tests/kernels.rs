//! Whole kernels: text to CUDA C++, compared with goldens and compiled for real.
//!
//! `BLESS=1 cargo test -p carbyne-codegen` rewrites the goldens beside the kernels.

use carbyne_atoms::{Arch, AtomTable};
use carbyne_codegen::nvrtc::{Emit, Options};
use carbyne_codegen::testing::require_nvrtc;
use carbyne_codegen::{CudaKernel, print_kernel};
use carbyne_ir::program::Program;
use expect_test::expect_file;

fn resolve(text: &str) -> Program {
    let module = carbyne_ir::text::parse(text).unwrap_or_else(|e| panic!("{e:#?}"));
    let program = carbyne_ir::resolve::resolve(&module, text).unwrap_or_else(|e| panic!("{e:#?}"));
    let errors = carbyne_ir::verify::verify(&program);
    assert!(errors.is_empty(), "{errors:#?}");
    program
}

fn kernel(text: &str, arch: Arch) -> CudaKernel {
    let program = resolve(text);
    print_kernel(&program, program.kernels[0], &AtomTable::new(arch))
        .unwrap_or_else(|e| panic!("{e:#?}"))
}

/// Prints, compares with `golden`, compiles for each architecture; the PTX of the last.
fn check(text: &str, golden: &str, archs: &[Arch], spills: bool) -> Option<String> {
    let mut ptx = None;
    for (i, &arch) in archs.iter().enumerate() {
        let kernel = kernel(text, arch);
        if i == 0 {
            expect_file![golden].assert_eq(&kernel.source);
        }
        let nvrtc = require_nvrtc()?;
        let compiled = nvrtc
            .compile(&kernel.source, arch.as_str(), Emit::Cubin, &Options::default())
            .unwrap_or_else(|d| panic!("{arch}: {d}\n{}\n{}", d.notes.join("\n"), kernel.source));
        let usage = compiled.usage(&kernel.name).unwrap_or_else(|| panic!("{}", compiled.log));
        if !spills {
            let spilled = (usage.spill_loads, usage.spill_stores, usage.stack);
            assert_eq!(spilled, (0, 0, 0), "{arch}: {}", compiled.log);
        }
        // That sm_70 will go one day is no fault of the source.
        let warns = |l: &str| l.contains("warning") && !l.contains("Architectures prior");
        assert!(!compiled.log.lines().any(warns), "{arch}: {}", compiled.log);
        ptx = Some(compiled.ptx);
    }
    ptx
}

#[test]
fn figure_8() {
    let ptx = check(include_str!("kernels/fig8.cby"), "kernels/fig8.cu", Arch::ALL, false);
    if let Some(ptx) = ptx {
        assert!(ptx.contains("fma.rn.f16"));
    }
}

#[test]
fn figure_1() {
    let archs = [Arch::Sm80, Arch::Sm86, Arch::Sm89, Arch::Sm90a];
    let ptx = check(include_str!("kernels/ldmatrix.cby"), "kernels/ldmatrix.cu", &archs, false);
    if let Some(ptx) = ptx {
        assert!(ptx.contains("ldmatrix.sync.aligned.m8n8.x4.shared.b16"));
        assert!(ptx.contains("cp.async.cg.shared.global"));
        assert!(ptx.contains("st.global.u32"));
    }
}
