//! Searches the machine for the library cuBLAS.
//!
//! If `CARBYNE_CUBLAS` is set, only the file or folder that it names is used. Otherwise the order
//! is: the toolkit at `CUDA_PATH` or `CUDA_HOME`; `/usr/local/cuda`; NVIDIA's wheels in the Python
//! environment of `VIRTUAL_ENV`, or of the first `python3` on `PATH`; those in `~/.local`; the
//! library that the dynamic loader finds by name. `libcublasLt` is searched beside `libcublas`.
//!
//! Invariant: except for `CARBYNE_CUBLAS` only absolute paths and bare file names are opened, so
//! that running in a stranger's folder does not load a library of that folder. (The dynamic loader
//! searches the current folder for a bare name only if `LD_LIBRARY_PATH` includes it.)

use super::ffi::{Functions, LtFunctions};
use crate::{Fallible, refused};
use carbyne_ir::diag::Code;
use std::path::{Path, PathBuf};

/// The environment variable with the path of the library, or of a folder that contains it.
pub const CUBLAS_VARIABLE: &str = "CARBYNE_CUBLAS";

/// Suffixes of file names, the newest version first.
const VERSIONS: [&str; 4] = [".so.13", ".so.12", ".so.11", ".so"];
const NAME: &str = "libcublas";
const LT_NAME: &str = "libcublasLt";

/// An opened cuBLAS with its version: major, minor and patch.
pub(super) struct Opened {
    pub(super) functions: Functions,
    pub(super) lt: LtFunctions,
    pub(super) file: PathBuf,
    pub(super) version: (i32, i32, i32),
}

/// A place where cuBLAS is searched.
enum Place {
    /// A file.
    File(PathBuf),
    /// A folder that may contain it.
    Folder(PathBuf),
    /// The search path of the dynamic loader.
    Loader,
}

impl Place {
    /// The files of both libraries, in the order in which they are tried.
    fn files(&self) -> Vec<(PathBuf, PathBuf)> {
        let both = |folder: &Path| {
            let of =
                |v: &str| (folder.join(NAME.to_owned() + v), folder.join(LT_NAME.to_owned() + v));
            VERSIONS.iter().map(|v| of(v)).collect()
        };
        match self {
            Place::File(file) => {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                let lt = file.with_file_name(name.replacen(NAME, LT_NAME, 1));
                vec![(file.clone(), lt)]
            }
            Place::Folder(folder) => {
                let mut all: Vec<(PathBuf, PathBuf)> = both(folder);
                all.retain(|(file, _)| file.exists());
                all
            }
            Place::Loader => both(Path::new("")),
        }
    }
}

/// Opens the first usable cuBLAS.
pub(super) fn open() -> Fallible<Opened> {
    let mut tried = vec![];
    for place in places() {
        let files = place.files();
        if let (Place::Folder(folder), true) = (&place, files.is_empty()) {
            let all = VERSIONS.map(|v| format!("{NAME}{v}"));
            tried.push(format!("`{}`: no {}", folder.display(), all.join(", ")));
        }
        for (file, lt) in files {
            // `libcublasLt` first, because the dynamic loader may not search this folder.
            let opened = LtFunctions::open(&lt).map_err(|e| (lt, e)).and_then(|lt| {
                Functions::open(&file).map(|f| (f, lt)).map_err(|e| (file.clone(), e))
            });
            match opened {
                Ok(((functions, version), lt)) => {
                    return Ok(Opened { functions, lt, file, version });
                }
                Err((file, e)) => tried.push(format!("`{}`: {e}", file.display())),
            }
        }
    }
    let help = format!("set `{CUBLAS_VARIABLE}` to the path of libcublas.so or to its folder");
    let d = refused(Code::NoCublas, "NVIDIA's library cuBLAS was not found", &help);
    Err(Box::new(tried.into_iter().fold(*d, |d, note| d.note(note))))
}

fn places() -> Vec<Place> {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty());
    if let Some(path) = variable(CUBLAS_VARIABLE).map(PathBuf::from) {
        return vec![if path.is_dir() { Place::Folder(path) } else { Place::File(path) }];
    }
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|p| p.is_absolute());
    let named = ["CUDA_PATH", "CUDA_HOME"].iter().filter_map(|name| absolute(name));
    let toolkits = named.chain([PathBuf::from("/usr/local/cuda")]).flat_map(|root| {
        ["lib64", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib", "lib"].map(|f| root.join(f))
    });
    let path = variable("PATH").unwrap_or_default();
    let python = absolute("VIRTUAL_ENV").or_else(|| environment_of(std::env::split_paths(&path)));
    let mut pythons: Vec<PathBuf> = vec![];
    for root in python.iter().chain(&absolute("HOME").map(|home| home.join(".local"))) {
        pythons.push(root.clone());
        pythons.push(root.join("local"));
    }
    let wheels = pythons.iter().flat_map(|root| packages(root)).flat_map(|packages| {
        ["cu13", "cublas"].map(|name| packages.join("nvidia").join(name).join("lib"))
    });
    let mut folders: Vec<PathBuf> = vec![];
    for folder in toolkits.chain(wheels).filter(|f| f.is_dir()) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders.into_iter().map(Place::Folder).chain([Place::Loader]).collect()
}

/// The Python environment of the first `python3` in these folders.
fn environment_of(folders: impl Iterator<Item = PathBuf>) -> Option<PathBuf> {
    let mut absolute = folders.filter(|f| f.is_absolute());
    let bin = absolute.find(|f| f.join("python3").is_file())?;
    Some(bin.parent()?.to_owned())
}

/// The folders of packages of an environment, sorted by names of Python versions.
fn packages(root: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(root.join("lib")) else { return vec![] };
    let mut pythons: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
    pythons.retain(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("python3")));
    pythons.sort();
    let names = ["site-packages", "dist-packages"];
    pythons.iter().flat_map(|p| names.map(|name| p.join(name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_libraries_are_in_one_folder() {
        let named = Place::File(PathBuf::from("/a/libcublas.so.12")).files();
        let both = (PathBuf::from("/a/libcublas.so.12"), PathBuf::from("/a/libcublasLt.so.12"));
        assert_eq!(named, [both]);
        let loader = Place::Loader.files();
        assert_eq!(loader[0].1, PathBuf::from("libcublasLt.so.13"));
        assert_eq!(Place::Folder(PathBuf::from("/nowhere")).files(), []);
    }

    #[test]
    fn relative_folders_are_not_searched_for_python() {
        let folders = ["", "bin", "."].map(PathBuf::from);
        assert_eq!(environment_of(folders.into_iter()), None);
    }
}
