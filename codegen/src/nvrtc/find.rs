//! Finds the library NVRTC and the headers of CUDA on this machine, and NVIDIA's disassembler for
//! tests.
//!
//! The search order is:
//!
//! 1. the file or folder named by `CARBYNE_NVRTC`; if this is set, nothing else is tried;
//! 2. the environment that `cargo xtask setup` made: a folder `cuda` in any folder above the
//!    running program, such as `target/cuda`;
//! 3. the toolkit at `CUDA_PATH` or `CUDA_HOME`;
//! 4. `/usr/local/cuda`;
//! 5. the search path of the dynamic loader.
//!
//! In the last case the library is opened by its name, else by its path.
//!
//! Invariant: no path depends on the working directory, unless one of these variables names a
//! relative path. So running in an untrusted folder does not load its libraries. (The dynamic
//! loader searches the working directory only if `LD_LIBRARY_PATH` includes it.)

use super::ffi::Functions;
use crate::Fallible;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::span::Span;
use std::path::{Path, PathBuf};

/// The environment variable that names the library, or a folder that contains it.
pub const NVRTC_VARIABLE: &str = "CARBYNE_NVRTC";

/// File names in the order of preference: CUDA 12 supports all architectures of carbyne, including
/// sm_70.
const SONAMES: [&str; 3] = ["libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so"];

/// A location of NVRTC and its headers.
struct SearchLocation {
    /// Files to try, in order.
    libraries: Vec<PathBuf>,
    /// Folders of headers; those that do not exist are dropped.
    includes: Vec<PathBuf>,
}

/// A usable NVRTC.
pub(super) struct Opened {
    pub(super) functions: Functions,
    pub(super) file: PathBuf,
    pub(super) version: (i32, i32),
    /// Folders of headers.
    pub(super) includes: Vec<PathBuf>,
}

/// Opens the first usable NVRTC.
pub(super) fn open() -> Fallible<Opened> {
    let mut tried = vec![];
    for location in locations() {
        for file in location.libraries {
            if file.is_absolute() && !file.exists() {
                tried.push(format!("`{}`: no such file", file.display()));
                continue;
            }
            match Functions::open(&file) {
                Ok((functions, version)) => {
                    let includes = location.includes.into_iter().filter(|p| p.is_dir()).collect();
                    return Ok(Opened { functions, file, version, includes });
                }
                Err(e) => tried.push(format!("`{}`: {e}", file.display())),
            }
        }
    }
    let mut d = Diagnostic::new(
        Code::NoNvrtc,
        Span::default(),
        "cannot find NVRTC, CUDA's run-time compiler",
    )
    .help(format!(
        "run `cargo xtask setup`, or set `{NVRTC_VARIABLE}` to the path of libnvrtc.so.12"
    ));
    d.notes = tried;
    Err(Box::new(d))
}

fn locations() -> Vec<SearchLocation> {
    if let Some(path) = variable(NVRTC_VARIABLE) {
        return vec![named(&path)];
    }
    let mut locations: Vec<SearchLocation> = environments().iter().map(|e| wheels(e)).collect();
    locations
        .extend(["CUDA_PATH", "CUDA_HOME"].iter().filter_map(|v| variable(v)).map(|p| toolkit(&p)));
    locations.push(toolkit(Path::new("/usr/local/cuda")));
    locations.push(SearchLocation {
        libraries: SONAMES.iter().map(PathBuf::from).collect(),
        includes: vec![PathBuf::from("/usr/local/cuda/include"), PathBuf::from("/usr/include")],
    });
    locations
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from)
}

/// A file, or a folder that contains one, with the header folders of toolkits and wheels.
fn named(path: &Path) -> SearchLocation {
    let (folder, libraries) = if path.is_dir() {
        (path.to_owned(), SONAMES.iter().map(|n| path.join(n)).collect())
    } else {
        (path.parent().unwrap_or(Path::new("")).to_owned(), vec![path.to_owned()])
    };
    let includes = vec![
        folder.join("../include"),
        folder.join("../../include"),
        folder.join("../../../include"),
        folder.join("../../cuda_runtime/include"),
        folder.join("../../cuda_cccl/include"),
    ];
    SearchLocation { libraries, includes }
}

/// The root of a CUDA toolkit.
fn toolkit(root: &Path) -> SearchLocation {
    let folders = ["lib64", "targets/x86_64-linux/lib", "lib"];
    SearchLocation {
        libraries: folders
            .iter()
            .flat_map(|f| SONAMES.iter().map(move |n| root.join(f).join(n)))
            .collect(),
        includes: vec![root.join("include"), root.join("targets/x86_64-linux/include")],
    }
}

/// A Python environment with NVIDIA's wheels.
fn wheels(environment: &Path) -> SearchLocation {
    let nvidia = nvidia(environment);
    SearchLocation {
        libraries: nvidia
            .iter()
            .flat_map(|n| SONAMES.iter().map(move |s| n.join("cuda_nvrtc/lib").join(s)))
            .filter(|f| f.exists())
            .collect(),
        includes: nvidia
            .iter()
            .flat_map(|n| [n.join("cuda_runtime/include"), n.join("cuda_cccl/include")])
            .collect(),
    }
}

/// The folders of NVIDIA's wheels in a Python environment.
fn nvidia(environment: &Path) -> Vec<PathBuf> {
    // The folder is named after Python's version; an environment has only one version.
    let pythons = entries(&environment.join("lib"));
    pythons.iter().map(|p| p.join("site-packages").join("nvidia")).collect()
}

/// The sorted entries of a folder; empty if it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = std::fs::read_dir(folder)
        .map(|entries| entries.filter_map(|e| Some(e.ok()?.path())).collect())
        .unwrap_or_default();
    all.sort();
    all
}

/// NVIDIA's disassembler, if `cargo xtask setup` has installed it for the running program.
pub fn disassembler() -> Option<PathBuf> {
    let file = format!("bin/nvdisasm{}", std::env::consts::EXE_SUFFIX);
    let wheels = environments().into_iter().flat_map(|e| nvidia(&e)).flat_map(|n| entries(&n));
    wheels.map(|w| w.join(&file)).find(|f| f.is_file())
}

/// The environments of `cargo xtask setup` that could belong to the running program: `cuda` in any
/// folder above the program. For a program built by Cargo, this is `target/cuda`.
pub fn environments() -> Vec<PathBuf> {
    let Ok(program) = std::env::current_exe() else { return vec![] };
    program
        .ancestors()
        .skip(1)
        .map(|a| a.join("cuda"))
        .filter(|p| p.join("pyvenv.cfg").exists())
        .collect()
}

/// Whether `cargo xtask setup` has finished for this build folder.
pub fn is_set_up() -> bool {
    environments().iter().any(|e| e.join("installed").exists())
}
