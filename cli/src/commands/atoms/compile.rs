//! `carbyne atoms compile`: compiles the probes of atoms, programs that execute one atom each, to
//! files. `carbyne atoms verify --prebuilt` loads these files, so that the machine with the GPU
//! needs no NVRTC. Both the parallel compilation and the loading of files are here.

use super::probes::{Batch, Probes};
use crate::args::CompileAtoms;
use crate::failure::{Failure, Outcome, Source};
use crate::{Io, input, output, pipeline};
use carbyne_atoms::Arch;
use carbyne_codegen::nvrtc::{self, Emit, Nvrtc};
use carbyne_ir::diag::Diagnostic;
use carbyne_ir::parallel;
use carbyne_launch::Binary;
#[cfg(feature = "gpu")]
use std::path::Path;

pub(super) fn run(args: &CompileAtoms, io: &mut Io<'_>) -> Outcome {
    let archs = match &args.atoms.arch {
        Some(name) => vec![pipeline::table(name)?.arch],
        None => Arch::ALL.to_vec(),
    };
    super::check_names::check_chosen(&args.atoms, &archs)?;
    let probes = Probes::new(&args.atoms, &archs)?;
    let nvrtc = nvrtc::find().map_err(|d| outside(*d))?;
    let emit = |_| if args.ptx { Emit::Ptx } else { Emit::Cubin };
    let folder = &args.output;
    std::fs::create_dir_all(folder).map_err(|e| {
        let why = input::reason(&e);
        Failure::usage(format!("`{}` cannot be created: {why}", folder.display()))
    })?;
    let (mut n_kernels, mut n_files) = (0, 0);
    let batches: Vec<&Batch> = probes.batches.iter().collect();
    for (batch, made) in batches.iter().zip(compiled(&batches, nvrtc, emit)) {
        let (extension, bytes) = match made.map_err(|d| outside(*d))? {
            Binary::Cubin(bytes) => ("cubin", bytes),
            Binary::Ptx(text) => ("ptx", text.into_bytes()),
        };
        let path = folder.join(format!("{}.{extension}", batch.name()));
        output::write(Some(&path), &bytes, io)?;
        (n_kernels, n_files) = (n_kernels + batch.n_kernels, n_files + 1);
    }
    let (major, minor) = nvrtc.version();
    let names: Vec<String> = archs.iter().map(Arch::to_string).collect();
    output::say(
        &format!(
            "{n_kernels} kernels for {} in {n_files} files, by NVRTC {major}.{minor}\n",
            names.join(", ")
        ),
        io,
    );
    Ok(())
}

/// An error of the machine, not of a program.
pub(super) fn outside(error: Diagnostic) -> Failure {
    Failure::one(
        &Source { name: "carbyne atoms".to_owned(), text: String::new(), ..Source::default() },
        error,
    )
}

/// Maximum number of parallel compilations.
const THREADS: usize = 8;

/// Compiles batches in parallel; the results are in the order of the batches.
pub(super) fn compiled(
    batches: &[&Batch],
    nvrtc: &Nvrtc,
    emit: impl Fn(Arch) -> Emit + Sync,
) -> Vec<Result<Binary, Box<Diagnostic>>> {
    parallel::map(batches, THREADS, |batch| {
        compile_text(nvrtc, &batch.source, batch.arch, emit(batch.arch))
    })
}

/// Compiles a source text.
pub(super) fn compile_text(
    nvrtc: &Nvrtc,
    source: &str,
    arch: Arch,
    emit: Emit,
) -> Result<Binary, Box<Diagnostic>> {
    let made = nvrtc.compile(source, arch.nvrtc_name(), emit, &nvrtc::Options::default())?;
    Ok(match emit {
        Emit::Ptx => Binary::Ptx(made.ptx),
        Emit::Cubin => Binary::Cubin(made.cubin),
    })
}

/// Loads a batch from a folder that [`run`] wrote.
#[cfg(feature = "gpu")]
pub(super) fn prebuilt(batch: &Batch, folder: &Path) -> Result<Option<Binary>, Failure> {
    let name = batch.name();
    for extension in ["cubin", "ptx"] {
        let path = folder.join(format!("{name}.{extension}"));
        if path.is_file() {
            let bytes = crate::commands::run::read(&path)?;
            // The file name identifies the content.
            let read = Binary::read(&path.display().to_string(), bytes, "probe");
            return read.map(Some).map_err(|d| outside(*d));
        }
    }
    Ok(None)
}
