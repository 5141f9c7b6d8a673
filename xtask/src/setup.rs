//! `cargo xtask setup`: installs NVRTC with its headers, NVIDIA's disassembler and NumPy into a
//! Python environment at `cuda` in the build folder. Tests use them to compile kernels, to read
//! machine code, and to compare results. [`environment`] makes other environments for `ci`.
//!
//! The file `installed` of an environment lists its packages and is written last. If the list
//! equals [`PACKAGES`], setup does nothing. Without the file, tests that need the environment are
//! skipped. With it, they fail if something is missing.

use crate::process::{Step, program, root};
use std::path::{Path, PathBuf};

/// NVRTC of CUDA 12.9 is the newest that supports sm_70. The disassembler is available as a package
/// only for CUDA 13; it reads machine code of 12.9 from sm_75 on.
const PACKAGES: &[&str] = &[
    "nvidia-cuda-nvrtc-cu12==12.9.86",
    "nvidia-cuda-runtime-cu12==12.9.79",
    "nvidia-cuda-nvdisasm==13.5.37",
    "numpy>=1.26,<3",
];

/// Attempts of an installation, because networks fail.
const TRIES: usize = 3;

pub(crate) fn setup() -> Step {
    let environment = environment("cuda", PACKAGES)?;
    Ok(format!("NVRTC, nvdisasm and NumPy are in `{}`", shown(&environment)))
}

/// Creates a Python environment in the build folder with these packages.
pub(crate) fn environment(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let environment = target()?.join(name);
    let stamp = environment.join("installed");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|s| s == wanted) {
        return Ok(environment);
    }
    let python = python(&environment);
    if !python.exists() {
        let path = environment.to_string_lossy();
        program("python3", &["-m", "venv", &path])
            .done("")
            .map_err(|e| format!("{e}; setup needs Python 3 with venv and pip"))?;
    }
    let mut arguments = vec!["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    arguments.extend(packages);
    let mut installed = Err(String::new());
    for _ in 0..TRIES {
        installed = program(&python, &arguments).done("");
        if installed.is_ok() {
            break;
        }
    }
    installed?;
    std::fs::write(&stamp, wanted)
        .map_err(|e| format!("`{}` cannot be written: {e}", shown(&stamp)))?;
    Ok(environment)
}

/// The Python interpreter of an environment.
pub(crate) fn python(environment: &Path) -> PathBuf {
    environment.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}

/// The build folder, which contains this program.
pub(crate) fn target() -> Result<PathBuf, String> {
    let program =
        std::env::current_exe().map_err(|e| format!("the build folder is unknown: {e}"))?;
    let profile = program.parent().and_then(Path::parent);
    profile.map(Path::to_owned).ok_or_else(|| "the build folder is unknown".to_owned())
}

/// The path relative to the workspace.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}
