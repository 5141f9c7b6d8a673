//! Compiles printed kernels with NVRTC to PTX or CUBIN, and returns the log and the resource usage
//! that ptxas reports.
//!
//! NVRTC is not linked: [`find`] opens it at run time. Errors: C0402 if there is no NVRTC; C0403 if
//! NVRTC rejects a source, with its log as notes; C0404 if this version of NVRTC lacks the
//! architecture.

mod cubin;
mod ffi;
mod find;
mod usage;

pub use cubin::n_instructions;
pub use find::{NVRTC_VARIABLE, disassembler, environments, is_set_up};
pub use usage::Usage;

use crate::Fallible;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::span::Span;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// An open NVRTC.
pub struct Nvrtc {
    functions: ffi::Functions,
    file: PathBuf,
    version: (i32, i32),
    includes: Vec<PathBuf>,
}

/// The output of a compilation.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Emit {
    /// PTX text. ptxas does not run, so there is no [`Usage`].
    Ptx,
    /// Machine code for exactly this architecture, and the PTX from which it was made.
    Cubin,
}

/// Compiler options beyond those of every compilation.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The most registers of a thread (`--maxrregcount`).
    pub max_registers: Option<u32>,
    /// Source lines in the machine code (`--generate-line-info`).
    pub line_info: bool,
    /// Additional folders of headers.
    pub includes: Vec<PathBuf>,
}

/// The results of a compilation.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// PTX text.
    pub ptx: String,
    /// Machine code; empty for [`Emit::Ptx`].
    pub cubin: Vec<u8>,
    /// Messages of the compiler and of ptxas.
    pub log: String,
    kernels: String,
}

impl Compiled {
    /// The resource usage of a kernel; none for [`Emit::Ptx`].
    pub fn usage(&self, kernel: &str) -> Option<Usage> {
        usage::read(&self.kernels, kernel)
    }
}

/// The NVRTC of this machine, opened once.
///
/// # Errors
/// [`Code::NoNvrtc`], with all paths that were tried.
pub fn find() -> Fallible<&'static Nvrtc> {
    static FOUND: OnceLock<Fallible<Nvrtc>> = OnceLock::new();
    FOUND.get_or_init(Nvrtc::open).as_ref().map_err(Clone::clone)
}

/// Compiles with the NVRTC of this machine. `arch` is spelled as in NVRTC: `sm_80`, `sm_90a`.
///
/// # Errors
/// [`Code::NoNvrtc`], [`Code::NvrtcFailed`], [`Code::NvrtcLacksArch`].
pub fn compile(source: &str, arch: &str, emit: Emit, options: &Options) -> Fallible<Compiled> {
    find()?.compile(source, arch, emit, options)
}

impl Nvrtc {
    fn open() -> Fallible<Nvrtc> {
        let find::Opened { functions, file, version, includes } = find::open()?;
        Ok(Nvrtc { functions, file, version, includes })
    }

    /// The file from which NVRTC was opened.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The major and minor version, which are those of the CUDA toolkit.
    pub fn version(&self) -> (i32, i32) {
        self.version
    }

    /// Compiles a source text.
    ///
    /// # Errors
    /// [`Code::NvrtcFailed`], [`Code::NvrtcLacksArch`].
    pub fn compile(
        &self,
        source: &str,
        arch: &str,
        emit: Emit,
        options: &Options,
    ) -> Fallible<Compiled> {
        let arguments = self.arguments(arch, emit, options)?;
        let source = c_string(source, "the source")?;
        let outputs = self
            .functions
            .run(&source, c"kernel.cu", &arguments)
            .map_err(|f| refused(arch, &f.status, ""))?;
        if let Err(f) = outputs.result {
            return Err(match lacks_arch(arch, &outputs.log) {
                true => self.lacks(arch),
                false => refused(arch, &f.status, &outputs.log),
            });
        }
        let ptx = String::from_utf8_lossy(&outputs.ptx).trim_end_matches('\0').to_owned();
        Ok(Compiled { ptx, cubin: outputs.cubin, kernels: outputs.log.clone(), log: outputs.log })
    }

    /// CUDA 13 dropped sm_70; old versions lack new architectures.
    fn lacks(&self, arch: &str) -> Box<Diagnostic> {
        let (major, minor) = self.version;
        let text = format!("NVRTC {major}.{minor} does not support `{arch}`");
        Box::new(
            Diagnostic::new(Code::NvrtcLacksArch, Span::default(), text)
                .note(format!("the library is `{}`", self.file.display()))
                .help(format!(
                    "set `{NVRTC_VARIABLE}` to a version that supports it: CUDA 12.9 supports \
                     sm_70 to sm_90a"
                )),
        )
    }

    fn arguments(&self, arch: &str, emit: Emit, options: &Options) -> Fallible<Vec<CString>> {
        let number = arch
            .strip_prefix("sm_")
            .filter(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_alphanumeric()))
            .ok_or_else(|| refused(arch, "the architecture is not spelled like `sm_80`", ""))?;
        let mut arguments = vec!["--std=c++17".to_owned()];
        arguments.push(match emit {
            Emit::Ptx => format!("--gpu-architecture=compute_{number}"),
            Emit::Cubin => format!("--gpu-architecture=sm_{number}"),
        });
        if emit == Emit::Cubin {
            arguments.push("--ptxas-options=-v".to_owned());
        }
        if options.line_info {
            arguments.push("--generate-line-info".to_owned());
        }
        arguments.extend(options.max_registers.map(|n| format!("--maxrregcount={n}")));
        for folder in self.includes.iter().chain(&options.includes) {
            arguments.push(format!("--include-path={}", folder.display()));
        }
        arguments.iter().map(|a| c_string(a, "an option")).collect()
    }
}

fn c_string(text: &str, what: &str) -> Fallible<CString> {
    CString::new(text).map_err(|_| {
        let message = format!("{what} contains a NUL byte");
        let help = "remove the NUL byte from the name or path";
        Box::new(Diagnostic::new(Code::NvrtcFailed, Span::default(), message).help(help))
    })
}

/// Whether NVRTC complains about a well-spelled architecture.
fn lacks_arch(arch: &str, log: &str) -> bool {
    let known = ["70", "75", "80", "86", "89", "90", "90a", "100", "100a", "103a", "120", "120a"];
    arch.strip_prefix("sm_").is_some_and(|n| known.contains(&n))
        && log.contains("gpu-architecture")
        && (log.contains("invalid value") || log.contains("unsupported"))
}

fn refused(arch: &str, status: &str, log: &str) -> Box<Diagnostic> {
    let mut d = Diagnostic::new(
        Code::NvrtcFailed,
        Span::default(),
        format!("NVRTC refused the program for `{arch}`: {status}"),
    );
    d.notes = log.lines().map(str::to_owned).collect();
    Box::new(d.help(
        "report this with the kernel: code that carbyne prints should compile; \
         `--emit cuda` shows the code",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::require_nvrtc;

    const SOURCE: &str = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuda_fp8.h>\n\
        extern \"C\" __global__ void twice(__half* x) {\n\
        x[threadIdx.x] = x[threadIdx.x] + x[threadIdx.x]; }\n";

    #[test]
    fn compiles_for_every_architecture_of_the_table() {
        let Some(nvrtc) = require_nvrtc() else { return };
        for arch in ["sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90a"] {
            let compiled = nvrtc.compile(SOURCE, arch, Emit::Cubin, &Options::default());
            let compiled = compiled.unwrap_or_else(|d| panic!("{arch}: {d}\n{:#?}", d.notes));
            let usage = compiled.usage("twice").unwrap_or_else(|| panic!("{}", compiled.log));
            assert!(usage.registers > 0 && usage.spill_stores == 0, "{usage:?}");
            assert!(compiled.ptx.contains(".entry twice") && !compiled.cubin.is_empty(), "{arch}");
        }
    }

    #[test]
    fn an_architecture_that_is_lacking_is_told_from_a_bad_program() {
        // The answer of NVRTC 13.0 for sm_70.
        let log = "nvrtc: error: invalid value for --gpu-architecture (-arch)\n";
        assert!(lacks_arch("sm_70", log) && !lacks_arch("sm_1", log) && !lacks_arch("sm_70", ""));
        let Some(nvrtc) = require_nvrtc() else { return };
        assert_eq!(nvrtc.lacks("sm_70").code, Code::NvrtcLacksArch);
        let refusal = nvrtc.compile(SOURCE, "sm_1", Emit::Ptx, &Options::default()).unwrap_err();
        assert!(
            refusal.notes.iter().any(|n| n.contains("gpu-architecture")),
            "{:?}",
            refusal.notes
        );
    }

    #[test]
    fn ptx_needs_no_machine_code() {
        let Some(nvrtc) = require_nvrtc() else { return };
        let compiled = nvrtc.compile(SOURCE, "sm_90a", Emit::Ptx, &Options::default()).unwrap();
        assert!(compiled.ptx.contains(".target sm_90a"), "{}", compiled.ptx);
        assert!(compiled.usage("twice").is_none());
    }

    #[test]
    fn refusals_carry_the_log() {
        let Some(nvrtc) = require_nvrtc() else { return };
        let d = nvrtc.compile("int x = ;", "sm_80", Emit::Ptx, &Options::default()).unwrap_err();
        assert_eq!(d.code, Code::NvrtcFailed);
        assert!(d.notes.iter().any(|n| n.contains("expected an expression")), "{:?}", d.notes);
        for arch in ["", "sm_", "80", "sm_80 -I", "sm_1"] {
            let d = nvrtc.compile(SOURCE, arch, Emit::Ptx, &Options::default()).unwrap_err();
            assert_eq!(d.code, Code::NvrtcFailed, "{arch}");
        }
        let d = nvrtc.compile("a\0b", "sm_80", Emit::Ptx, &Options::default()).unwrap_err();
        assert!(d.message.contains("NUL"), "{d}");
    }
}
