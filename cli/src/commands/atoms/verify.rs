//! `carbyne atoms verify --device`: executes atoms on a GPU and compares the results with the
//! simulator.
//!
//! An atom is executed with the code of every architecture that has the atom: as machine code if
//! the GPU runs that, otherwise as PTX, which the driver compiles for the GPU.
//! `carbyne_simulate::conformance` makes the inputs and compares the results. Guard bytes after
//! each tensor detect writes beyond its end. `--corrupt` gives the simulator one wrong atom, to
//! test that the comparison reports it.

use super::compile::{compile_text, compiled, outside, prebuilt};
use super::probes::{Batch, Probed, Probes, Variant};
use super::report::{Report, Verdict};
use crate::args::VerifyAtoms;
use crate::failure::{Failure, Outcome};
use crate::{Io, output, pipeline};
use carbyne_atoms::probe::{Unobservable, corrupted};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_codegen::Param;
use carbyne_codegen::nvrtc::{self, Emit};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::BufferId;
use carbyne_launch::{
    Arguments, Binary, Buffer, Fallible, Gpu, Launch, MapValues, Module, TensorMap,
};
use carbyne_simulate::Options;
use carbyne_simulate::conformance::{self, Arrays, Case, Compared, compare, unpack};
use carbyne_simulate::device::{POISON, Trial};
use std::collections::BTreeMap;
use std::time::Duration;

/// Bytes after every tensor that no atom may write.
const GUARD: usize = 256;

pub(super) fn run(args: &VerifyAtoms, io: &mut Io<'_>) -> Outcome {
    let gpu = Gpu::open(args.gpu).map_err(|d| outside(*d))?;
    let capability = gpu.info().capability;
    let wanted = match &args.atoms.arch {
        Some(name) => vec![pipeline::table(name)?.arch],
        None => Arch::ALL.to_vec(),
    };
    super::check_names::check_chosen(&args.atoms, &wanted)?;
    let (archs, others): (Vec<Arch>, Vec<Arch>) =
        wanted.into_iter().partition(|a| a.runs_on(capability, false));
    let emit = |arch: Arch| if arch.runs_on(capability, true) { Emit::Cubin } else { Emit::Ptx };
    let mut report = Report::new(gpu.info());
    for arch in others {
        let (name, (major, minor)) = (&gpu.info().name, capability);
        let why = format!("{name}, of compute capability {major}.{minor}, does not run it");
        report.add_absent(arch, &args.atoms.names, &why);
    }
    let probes = Probes::new(&args.atoms, &archs)?;
    let wrong = args.corrupt.as_deref().map(|name| Wrong::new(name, &probes)).transpose()?;
    let mut binaries = Binaries::new(args, &probes, emit, &mut report)?;
    for (name, arch, why_not) in &probes.without {
        let why = why_not.to_string();
        let verdict = match why_not {
            Unobservable::Statement(_) => Verdict::CompiledOnly(why),
            Unobservable::Shadowed(_)
            | Unobservable::NoMove(..)
            | Unobservable::Layout(_)
            | Unobservable::NoChain => Verdict::NotExecuted(why),
        };
        report.add(name, *arch, verdict);
    }
    let patience = Duration::from_secs(args.timeout.into());
    let mut device = Device { modules: BTreeMap::new(), gpu: Some(gpu), number: args.gpu };
    let mut hangs = None;
    'atoms: for (i, probed) in probes.list.iter().enumerate() {
        if probed.variants.is_empty() {
            continue;
        }
        for case in conformance::cases(&probed.atom) {
            let given = Given::new(probed, case, wrong.as_ref())?;
            for variant in &probed.variants {
                let binary = binaries.of(&probes, i, variant, emit);
                let done = match &binary {
                    Err(why) => Verdict::NotExecuted(why.clone()),
                    Ok(binary) => {
                        match device.executed(binary, probed, variant, &given, patience) {
                            Ok(found) => {
                                Verdict::Compared(binary.1.kind(), Box::new(given.compared(&found)))
                            }
                            Err(d) => {
                                let said = Verdict::Broken(d.to_string());
                                // This process cannot use the GPU anymore.
                                hangs = (d.code == Code::Unending).then_some(d);
                                said
                            }
                        }
                    }
                };
                report.add(probed.atom.name, variant.arch, done);
                if hangs.is_some() {
                    break 'atoms;
                }
            }
        }
    }
    let text = if args.json { report.json() } else { report.text() };
    output::write(None, text.as_bytes(), io)?;
    if let Some(path) = &args.markdown {
        output::write(Some(path), report.markdown().as_bytes(), io)?;
    }
    match hangs {
        Some(d) => Err(outside(d.note("later atoms were not executed"))),
        None if report.has_failed() => Err(Failure::Reported),
        None => Ok(()),
    }
}

/// The atom table with one wrong atom, for the simulator only. It tests the comparison.
struct Wrong {
    name: &'static str,
    table: AtomTable,
}

impl Wrong {
    fn new(name: &str, probes: &Probes) -> Result<Self, Failure> {
        let unknown = || Failure::usage(format!("no atom `{name}` is executed here"));
        let of_name = |p: &&Probed| p.atom.name == name && !p.variants.is_empty();
        let probed = probes.list.iter().find(of_name).ok_or_else(unknown)?;
        let arch = probed.variants.first().ok_or_else(unknown)?.arch;
        let case = conformance::cases(&probed.atom).first().copied().ok_or_else(unknown)?;
        let arrays = conformance::given(&probed.probe, case);
        let table = AtomTable::new(arch);
        let executes = |table: &AtomTable| {
            conformance::expected(&probed.program, &probed.probe, table, &arrays).is_ok()
        };
        let tables = corrupted(&probed.atom).into_iter().map(|atom| table.clone().with(atom));
        match tables.into_iter().find(executes) {
            Some(table) => Ok(Wrong { name: probed.atom.name, table }),
            None => Err(Failure::usage_help(
                format!("`{name}` has no two strides to exchange"),
                "choose an atom of several threads or values, such as `ldmatrix.x4.b16`",
            )),
        }
    }
}

/// A probe with its inputs, and its results in the simulator.
struct Given<'p> {
    probed: &'p Probed,
    case: Case,
    arrays: Arrays,
    expected: BTreeMap<String, Vec<Option<u64>>>,
    trial: Trial<'p>,
}

impl<'p> Given<'p> {
    fn new(probed: &'p Probed, case: Case, wrong: Option<&Wrong>) -> Result<Self, Failure> {
        let Probed { probe, program, .. } = probed;
        let arch = probed.variants.first().map_or(Arch::Sm90a, |v| v.arch);
        let table = AtomTable::new(arch);
        let simulated = wrong.filter(|w| w.name == probed.atom.name).map_or(&table, |w| &w.table);
        let arrays = conformance::given(probe, case);
        let about =
            |d: Box<Diagnostic>| outside(d.note(format!("in the probe of `{}`", probed.atom.name)));
        let expected = conformance::expected(program, probe, simulated, &arrays).map_err(about)?;
        let options = Options { arrays: arrays.clone(), ..Options::default() };
        let trial = Trial::new(program, &table, &options).map_err(about)?;
        Ok(Given { probed, case, arrays, expected, trial })
    }

    fn compared(&self, found: &BTreeMap<String, Vec<u64>>) -> Compared {
        let Probed { atom, probe, .. } = self.probed;
        compare(atom, probe, self.case, &self.arrays, &self.expected, found)
    }
}

/// A compiled batch or single probe, with an index of its own.
type Numbered = (usize, Binary);

/// Compiled batches; if a batch does not compile, single probes by (probe, architecture).
struct Binaries {
    batches: Vec<Result<Numbered, Unusable>>,
    alone: BTreeMap<(usize, &'static str), Result<Numbered, String>>,
    next: usize,
}

/// The reason why a batch is not available.
enum Unusable {
    /// No kernel of the batch can be compiled.
    Whole(String),
    /// One of the kernels does not compile.
    Part,
}

impl Binaries {
    fn new(
        args: &VerifyAtoms,
        probes: &Probes,
        emit: impl Fn(Arch) -> Emit + Sync,
        report: &mut Report,
    ) -> Result<Self, Failure> {
        let mut batches = vec![];
        let mut missing = false;
        for (i, batch) in probes.batches.iter().enumerate() {
            let found = match &args.prebuilt {
                Some(folder) => prebuilt(batch, folder)?,
                None => None,
            };
            missing |= found.is_none();
            batches.push(found.map(|b| (i, b)).ok_or(Unusable::Part));
        }
        if missing {
            match nvrtc::find() {
                Ok(nvrtc) => {
                    let (major, minor) = nvrtc.version();
                    report.compiler = Some(format!("NVRTC {major}.{minor}"));
                    let open = probes.batches.iter().zip(&batches);
                    let open: Vec<&Batch> =
                        open.filter(|(_, b)| b.is_err()).map(|(batch, _)| batch).collect();
                    let mut made = compiled(&open, nvrtc, emit).into_iter();
                    for (i, batch) in batches.iter_mut().enumerate().filter(|(_, b)| b.is_err()) {
                        *batch = match made.next() {
                            Some(Ok(binary)) => Ok((i, binary)),
                            Some(Err(d)) if d.code == Code::NvrtcLacksArch => {
                                Err(Unusable::Whole(d.to_string()))
                            }
                            _ => Err(Unusable::Part),
                        };
                    }
                }
                Err(d) => {
                    for batch in batches.iter_mut().filter(|b| b.is_err()) {
                        *batch = Err(Unusable::Whole(d.to_string()));
                    }
                }
            }
        }
        let next = batches.len();
        Ok(Binaries { batches, alone: BTreeMap::new(), next })
    }

    /// The binary that contains a probe.
    fn of(
        &mut self,
        probes: &Probes,
        probe: usize,
        variant: &Variant,
        emit: impl Fn(Arch) -> Emit,
    ) -> Result<&Numbered, String> {
        match &self.batches[variant.batch] {
            Ok(binary) => return Ok(binary),
            Err(Unusable::Whole(why)) => return Err(why.clone()),
            Err(Unusable::Part) => {}
        }
        let arch = variant.arch;
        let next = &mut self.next;
        let made = self.alone.entry((probe, arch.as_str())).or_insert_with(|| {
            let source = probes.alone(probe, arch).map_err(|_| "cannot be printed".to_owned())?;
            let nvrtc = nvrtc::find().map_err(|d| d.to_string())?;
            let made = compile_text(nvrtc, &source, arch, emit(arch));
            *next += 1;
            made.map(|b| (*next, b)).map_err(|d| format!("{d}: {}", d.notes.join("; ")))
        });
        made.as_ref().map_err(Clone::clone)
    }
}

/// The GPU and its loaded modules. Modules are dropped before the GPU.
struct Device {
    modules: BTreeMap<usize, Module>,
    gpu: Option<Gpu>,
    number: u32,
}

impl Device {
    /// Runs a probe and returns the tensors that it wrote. After an error, the GPU is opened again,
    /// because the error may have destroyed the context.
    fn executed(
        &mut self,
        binary: &Numbered,
        probed: &Probed,
        variant: &Variant,
        given: &Given<'_>,
        patience: Duration,
    ) -> Fallible<BTreeMap<String, Vec<u64>>> {
        let done = self.try_executed(binary, probed, variant, given, patience);
        if done.as_ref().is_err_and(|d| d.code != Code::Unending) {
            self.modules.clear();
            self.gpu = None;
        }
        done
    }

    fn try_executed(
        &mut self,
        (number, binary): &Numbered,
        probed: &Probed,
        variant: &Variant,
        given: &Given<'_>,
        patience: Duration,
    ) -> Fallible<BTreeMap<String, Vec<u64>>> {
        let gpu = match self.gpu.take() {
            Some(gpu) => self.gpu.insert(gpu),
            None => self.gpu.insert(Gpu::open(self.number)?),
        };
        if !self.modules.contains_key(number) {
            self.modules.insert(*number, gpu.load(binary)?);
        }
        let Some(module) = self.modules.get(number) else {
            return Err(internal("the module is not loaded"));
        };
        let (kernel, program) = (&variant.kernel, &probed.program);
        let mut buffers: BTreeMap<BufferId, (Buffer, bool)> = BTreeMap::new();
        for param in &kernel.params {
            let Param::Pointer { buffer, written, .. } = param else { continue };
            let Some(mut bytes) = given.trial.image(*buffer) else { continue };
            bytes.resize(bytes.len() + GUARD, POISON);
            let mut on_gpu = gpu.allocate(bytes.len())?;
            on_gpu.write(&bytes)?;
            buffers.insert(*buffer, (on_gpu, *written));
        }
        let address = |b| buffers.get(&b).map(|(b, _)| b.address());
        let encode = |map: &MapValues| TensorMap::encode(map).map(|map| map.words());
        let symbol = |v| given.trial.symbol(v);
        let number = |b| given.trial.image(b);
        let arguments =
            Arguments::for_kernel(kernel, &program.arena, address, number, symbol, encode)?;
        let launch = Launch::of_kernel(kernel, probed.probe.blocks)?;
        let function = module.function(kernel, launch)?;
        gpu.launch(&function, launch, &arguments, patience)?;
        let mut found = BTreeMap::new();
        for (id, (on_gpu, _)) in buffers.iter().filter(|(_, (_, written))| *written) {
            let mut bytes = vec![0; on_gpu.len()];
            on_gpu.read(&mut bytes)?;
            let guard = bytes.split_off(bytes.len() - GUARD);
            let buffer = &program.buffers[*id];
            if guard.iter().any(|b| *b != POISON) {
                let text = format!("it writes beyond `%{}`", buffer.name);
                let help = "report this: the probe or the atom accesses memory out of bounds";
                let d = Diagnostic::new(Code::SimOutOfBounds, buffer.span, text);
                return Err(Box::new(d.help(help)));
            }
            let of = |o: &&carbyne_atoms::probe::operand::ProbeOperand| {
                o.output.as_ref() == Some(&buffer.name)
            };
            let n: i64 =
                probed.probe.operands.iter().find(of).map_or(0, |o| o.extents().iter().product());
            found.insert(buffer.name.clone(), unpack(&bytes, buffer.scalar, n as usize));
        }
        Ok(found)
    }
}

fn internal(what: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::new(Code::Internal, Default::default(), what))
}
