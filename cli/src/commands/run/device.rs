//! Runs a program on a GPU: decompose, compile or load, launch, compare, time.
//!
//! The kernels run in text order; each reads the results of the earlier ones. A kernel is compared
//! with the results of its first launch and timed afterwards, because further launches may change
//! tensors that it adds to. Guard bytes after each tensor detect kernels that write beyond its end.

use super::report::{self, Ran};
use super::{Diagnostic, elsewhere};
use crate::args::{MessageFormat, Run};
use crate::commands::gpu::{blocks_of, runs};
use crate::failure::{Failure, Outcome};
use crate::pipeline::How;
use crate::tuned::Tuning;
use crate::{Io, data, input, output, pipeline, regular_file};
use carbyne_atoms::AtomTable;
use carbyne_codegen::nvrtc::{self, Usage};
use carbyne_codegen::{CudaKernel, Param, print_kernel};
use carbyne_ir::diag::Code;
use carbyne_ir::program::{BufferId, Program, SpecId};
use carbyne_launch::{Arguments, Binary, Buffer, Gpu, Launch, MapValues, Sequence, TensorMap};
use carbyne_simulate::Decisions;
use carbyne_simulate::device::{Images, POISON, Trial};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes after every tensor that no kernel may write.
const GUARD: usize = 256;
/// Maximum number of bytes of a compiled kernel.
const MAX_BINARY: u64 = 1 << 28;

pub(in crate::commands) fn run(args: &Run, format: MessageFormat, io: &mut Io<'_>) -> Outcome {
    let table = pipeline::table(&args.arch)?;
    let source = input::read(&args.file, io)?;
    let outside = |d: Box<Diagnostic>| elsewhere(args, *d);
    // Tuned pins depend on the GPU, so open the GPU first.
    let mut opened = None;
    let mut tuning = None;
    if let Some(path) = &args.tuned {
        let gpu = opened.insert(Gpu::open(args.gpu).map_err(outside)?);
        tuning = Tuning::from_file(Some(path), Some(&gpu.info().name))?;
    }
    // Pins were measured for the number of multiprocessors of the GPU.
    let sms = opened.as_ref().map(|gpu| gpu.info().multiprocessors);
    let how = How { sms, tuning: tuning.as_ref(), ..How::default() };
    let decomposed = pipeline::ordered(&source, &table, how)?;
    output::warn(&source, &decomposed.warnings, format, io);
    decomposed.notes.say(&source, format, io);
    let decisions = Decisions::of(&pipeline::verified(&source)?.1);
    let lines = match &args.keep {
        Some(path) => {
            output::write(Some(path), decomposed.source.text.as_bytes(), io)?;
            path.display().to_string()
        }
        None if decomposed.source.text == source.text => args.file.display().to_string(),
        None => decomposed.source.name.clone(),
    };
    let (source, program) = (decomposed.source, decomposed.program);
    let mut options = data::options(&args.data.given, &program, &source)?;
    options.decisions = Some(decisions);
    let wanted = data::wanted(&args.data, &program)?;
    let mut kernels = vec![];
    for id in &program.kernels {
        let kernel = print_kernel(&program, *id, &table, Some(&lines));
        kernels.push((*id, kernel.map_err(|e| Failure::program(&source, e))?));
    }
    if args.cubin.is_some() && kernels.len() != 1 {
        return Err(Failure::usage_help(
            format!("`--cubin` needs a program of one kernel, this one has {}", kernels.len()),
            "put the kernels into a folder, and use `--prebuilt` with this folder",
        ));
    }
    let about = |d: Box<Diagnostic>| Failure::one(&source, *d);
    let gpu = opened.map_or_else(|| Gpu::open(args.gpu).map_err(outside), Ok)?;
    let mut trial = Trial::new(&program, &table, &options).map_err(about)?;
    let mut memory = Memory::default();
    for (id, kernel) in &kernels {
        let (binary, usage) = binary(args, kernel, &table, &gpu)?;
        let mut session = Session { args, gpu: &gpu, program: &program, memory: &mut memory };
        let mut ran = session.launched(*id, kernel, &binary, &mut trial)?;
        if let Some(usage) = usage {
            (ran.usage, ran.spills_known) = (usage, true);
        }
        let judged = trial.judge(*id, &ran.after, args.compare);
        let judged = match judged {
            Ok(judged) => judged,
            Err(d) => {
                output::say(&report::text(format, kernel, &table, &gpu, &ran, None), io);
                return Err(about(d));
            }
        };
        output::say(&report::text(format, kernel, &table, &gpu, &ran, Some(&judged)), io);
        trial.advance(ran.after);
    }
    let outputs = trial.into_outputs();
    wanted.iter().try_for_each(|(name, path)| data::save(&outputs, true, name, path, io))
}

/// The compiled kernel: from a file, or from NVRTC, with the resources that ptxas reports.
fn binary(
    args: &Run,
    kernel: &CudaKernel,
    table: &AtomTable,
    gpu: &Gpu,
) -> Result<(Binary, Option<Usage>), Failure> {
    let outside = |d: Box<Diagnostic>| elsewhere(args, *d);
    let (binary, usage) = match prebuilt(args, kernel, table)? {
        Some(path) => {
            let shown = path.display().to_string();
            let bytes = read(&path)?;
            (Binary::read(&shown, bytes, &kernel.name).map_err(outside)?, None)
        }
        None => {
            // Check this before compiling, which takes a while.
            runs(table, gpu, true).map_err(outside)?;
            let nvrtc = nvrtc::find().map_err(outside)?;
            gpu.runs_code_of(nvrtc.version()).map_err(outside)?;
            let name = table.arch.nvrtc_name();
            let options = nvrtc::Options { line_info: true, ..nvrtc::Options::default() };
            let made = nvrtc
                .compile(&kernel.source, name, nvrtc::Emit::Cubin, &options)
                .map_err(outside)?;
            let usage = made.usage(&kernel.name);
            (Binary::Cubin(made.cubin), usage)
        }
    };
    runs(table, gpu, matches!(binary, Binary::Cubin(_))).map_err(outside)?;
    Ok((binary, usage))
}

/// The file of the kernel, if a precompiled one is requested.
fn prebuilt(
    args: &Run,
    kernel: &CudaKernel,
    table: &AtomTable,
) -> Result<Option<PathBuf>, Failure> {
    if let Some(path) = &args.cubin {
        return Ok(Some(path.clone()));
    }
    let Some(folder) = &args.prebuilt else { return Ok(None) };
    let (name, arch) = (&kernel.name, table.arch);
    let names = [
        format!("{name}.{arch}.cubin"),
        format!("{name}.cubin"),
        format!("{name}.{arch}.ptx"),
        format!("{name}.ptx"),
    ];
    match names.iter().map(|n| folder.join(n)).find(|p| p.is_file()) {
        Some(path) => Ok(Some(path)),
        None => Err(Failure::usage_help(
            format!("`{}` does not contain the kernel `{name}`", folder.display()),
            format!("add the file {}", names.map(|n| format!("`{n}`")).join(" or ")),
        )),
    }
}

/// The bytes of the file of a compiled kernel.
pub(in crate::commands) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let shown = path.display();
    let refused = |what: String| Failure::usage(format!("`{shown}` cannot be read: {what}"));
    if path.is_dir() {
        return Err(refused("it is a directory".to_owned()));
    }
    let mut bytes = vec![];
    let file = regular_file::open(path).map_err(|e| refused(input::reason(&e)))?;
    file.take(MAX_BINARY + 1).read_to_end(&mut bytes).map_err(|e| refused(input::reason(&e)))?;
    match bytes.len() as u64 > MAX_BINARY {
        true => Err(refused(format!("it is longer than {} MiB", MAX_BINARY >> 20))),
        false => Ok(bytes),
    }
}

/// Tensors in GPU memory.
#[derive(Default)]
struct Memory {
    buffers: BTreeMap<BufferId, Buffer>,
}

struct Session<'a> {
    args: &'a Run,
    gpu: &'a Gpu,
    program: &'a Program,
    memory: &'a mut Memory,
}

impl Session<'_> {
    /// Launches a kernel once and reads the tensors that it wrote; then times the kernel.
    fn launched(
        &mut self,
        id: SpecId,
        kernel: &CudaKernel,
        binary: &Binary,
        trial: &mut Trial<'_>,
    ) -> Result<Ran, Failure> {
        let outside = |d: Box<Diagnostic>| elsewhere(self.args, *d);
        let patience = Duration::from_secs(self.args.timeout.into());
        let pointers = kernel.params.iter().filter_map(|p| match p {
            Param::Pointer { buffer, written, .. } => Some((*buffer, *written)),
            Param::Scalar { .. } | Param::Symbol { .. } | Param::TensorMap { .. } => None,
        });
        let pointers: Vec<(BufferId, bool)> = pointers.collect();
        // Refill all tensors: timed launches may have changed the results of earlier kernels.
        for (buffer, _) in &pointers {
            let Some(mut bytes) = trial.image(*buffer) else { continue };
            bytes.resize(bytes.len() + GUARD, POISON);
            if !self.memory.buffers.contains_key(buffer) {
                let made = self.gpu.allocate(bytes.len()).map_err(outside)?;
                self.memory.buffers.insert(*buffer, made);
            }
            if let Some(on_gpu) = self.memory.buffers.get_mut(buffer) {
                on_gpu.write(&bytes).map_err(outside)?;
            }
        }
        let buffers = &self.memory.buffers;
        let address = |b| buffers.get(&b).map(Buffer::address);
        let encode = |map: &MapValues| TensorMap::encode(map).map(|map| map.words());
        let arena = &self.program.arena;
        let number = |b| trial.image(b);
        let arguments =
            Arguments::for_kernel(kernel, arena, address, number, |v| trial.symbol(v), encode);
        let arguments = arguments.map_err(outside)?;
        let blocks = blocks_of(trial, kernel, id).map_err(outside)?;
        let launch = Launch::of_kernel(kernel, blocks).map_err(outside)?;
        let module = self.gpu.load(binary).map_err(outside)?;
        let function = module.function(kernel, launch).map_err(outside)?;
        self.gpu.launch(&function, launch, &arguments, patience).map_err(outside)?;
        let mut after = Images::new();
        for (buffer, _) in pointers.iter().filter(|(_, written)| *written) {
            let Some(on_gpu) = buffers.get(buffer) else { continue };
            let mut bytes = vec![0; on_gpu.len()];
            on_gpu.read(&mut bytes).map_err(outside)?;
            let guard = bytes.split_off(bytes.len() - GUARD);
            if guard.iter().any(|b| *b != POISON) {
                let buffer = &self.program.buffers[*buffer];
                let text = format!("the kernel `{}` writes beyond `%{}`", kernel.name, buffer.name);
                let d = Diagnostic::new(Code::SimOutOfBounds, Default::default(), text);
                let d = d.help("run `carbyne simulate`, which names the access");
                return Err(elsewhere(self.args, d));
            }
            after.insert(*buffer, bytes);
        }
        let (mut timing, mut sustained) = (None, None);
        if self.args.repeat > 0 {
            let flush = self.gpu.flush_buffer().map_err(outside)?;
            let n = self.args.repeat as usize;
            let work = Sequence::new(&function, launch, &arguments).map_err(outside)?;
            let timed = self.gpu.time(&work, n, &flush, patience).map_err(outside)?;
            if self.args.sustain > 0 {
                let about = (timed.median(), Duration::from_secs(self.args.sustain.into()));
                let longer = self.gpu.sustain(&work, about, &flush, patience);
                sustained = Some(longer.map_err(outside)?);
            }
            timing = Some(timed);
        }
        Ok(Ran {
            launch,
            usage: function.usage().clone(),
            spills_known: false,
            kind: binary.kind(),
            timing,
            sustained,
            after,
            multiply_adds: trial.multiply_adds(id),
            bytes_moved: trial.bytes_moved(id),
        })
    }
}
