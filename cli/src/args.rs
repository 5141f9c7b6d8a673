//! The command line as types; the doc comments are what `--help` prints.

mod bench;
mod given;
mod tune;

pub(crate) use bench::{Bench, BenchCommand};
#[cfg(feature = "gpu")]
pub(crate) use bench::{BenchGemm, Factors, Following, Majors, Size, Sums};
pub(crate) use given::Given;
pub(crate) use tune::Tune;

use clap::{Args as Group, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Checks, decomposes, simulates and prints GPU tensor kernels.
#[derive(Debug, Parser)]
#[command(name = "carbyne", version, color = clap::ColorChoice::Never)]
#[command(after_help = "FILE may be `-` for standard input. \
    Exit codes: 0 done, 1 the program has errors, 2 wrong usage, 3 a defect of carbyne.")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// How diagnostics and reports are written to standard error.
    #[arg(long, global = true, value_enum, default_value = "human", value_name = "FORMAT")]
    pub(crate) message_format: MessageFormat,

    /// Texts may import files of this folder and below, not only of their own; may be repeated.
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) allow_import: Vec<PathBuf>,

    /// Decompose kernels by the strategies of this file, too; may be repeated.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) strategy: Vec<PathBuf>,
}

/// How diagnostics are written.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MessageFormat {
    /// The source with labels under it.
    Human,
    /// One JSON object a line.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Parse a program and verify it.
    Check(Check),
    /// Rewrite a program in the canonical form.
    Fmt(Fmt),
    /// Fill in what the program leaves open, down to atoms.
    Decompose(Decompose),
    /// Decompose a program and print it as CUDA C++, PTX or machine code.
    Compile(Compile),
    /// Execute a program on the CPU, thread by thread, and compare it with what its specs mean.
    Simulate(Simulate),
    /// Run a program on a GPU, compare it with what its specs mean, and time it.
    Run(Run),
    /// Measure by which strategies the kernels of a program are fastest on a GPU, and keep that for
    /// `--tuned`.
    Tune(Tune),
    /// Measure what is decomposed beside NVIDIA's libraries.
    Bench(Bench),
    /// Draw a layout, a tensor of a program or the operands of an instruction.
    Draw(Draw),
    /// List the instructions of an architecture.
    Atoms(Atoms),
    /// List the strategies by which kernels get their dataflow, or test those of a file.
    Strategies(Strategies),
    /// Calculate with layouts.
    Layout(Layout),
    /// Run commands that come as lines of JSON, for compilers that decompose many kernels.
    Serve(Serve),
    /// Lower an operation in TEIR, the Tiled Execution IR, to a program.
    Teir(Teir),
    /// Explain an error code, or why a program is decomposed as it is.
    Explain(Explain),
}

#[derive(Debug, Group)]
pub(crate) struct Check {
    /// The program.
    pub(crate) file: PathBuf,
    /// The architecture whose atoms it names; without, any that has all of them.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// List the pairs of accesses, and what orders each.
    #[arg(long)]
    pub(crate) pairs: bool,
    /// Print the program with a comment at each statement of synchronization that says which
    /// accesses it orders.
    #[arg(long, conflicts_with = "pairs")]
    pub(crate) annotate: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Fmt {
    /// The program; rewritten in place, or printed if it is `-` or with `--expand`.
    pub(crate) file: PathBuf,
    /// Change nothing; print the difference and exit with 1 where there is one.
    #[arg(long, conflicts_with = "output")]
    pub(crate) check: bool,
    /// Print it with every type, every stride and all that short forms stand for.
    #[arg(long)]
    pub(crate) expand: bool,
    /// Write to this file instead; `-` prints.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Group)]
pub(crate) struct Decompose {
    /// The program.
    pub(crate) file: PathBuf,
    /// The architecture, such as `sm_80`.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: String,
    /// Choose by the costs of this file, which `carbyne atoms calibrate` wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) costs: Option<PathBuf>,
    /// Do without this instruction, `*` for any part of a name; may be repeated.
    #[arg(long, value_name = "ATOM")]
    pub(crate) forbid: Vec<String>,
    /// Take pins of kernels without one of their own from this file, which `carbyne tune` wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) tuned: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    /// What to print.
    #[arg(long, value_enum, default_value = "ir")]
    pub(crate) emit: Decomposition,
    /// Say at each statement of synchronization, in a comment, which accesses it orders.
    #[arg(long)]
    pub(crate) annotate: bool,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
}

/// What `decompose` prints.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Decomposition {
    /// The decomposed program.
    Ir,
    /// The decomposed program, what was chosen for each operation with its estimated cost, and the
    /// certificates, as JSON.
    Json,
}

/// How the solver searches, and what is said of it.
#[derive(Debug, Group)]
pub(crate) struct SearchArgs {
    /// Say the best so many solutions, with estimated cycles and what differs.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) top: Option<u16>,
    /// Look at this many choices at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) budget: Option<u64>,
    /// Look at choices that cannot be cheaper, too.
    #[arg(long)]
    pub(crate) exhaustive: bool,
    /// Say how far the search went.
    #[arg(long)]
    pub(crate) stats: bool,
    /// Say what each kernel is estimated to take, by resource.
    #[arg(long)]
    pub(crate) estimate: bool,
    /// Multiprocessors of the machine; those of the architecture's usual card without.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) sms: Option<u32>,
}

#[derive(Debug, Group)]
pub(crate) struct Teir {
    /// The operation, in JSON or as a text.
    pub(crate) file: PathBuf,
    /// The architecture, for what is decomposed.
    #[arg(long, value_name = "ARCH", default_value = "sm_80")]
    pub(crate) arch: String,
    /// The form of the output.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) emit: TeirEmit,
    /// The level of the program.
    #[arg(long, value_enum, default_value = "tile")]
    pub(crate) level: TeirLevel,
    /// Execute the program on the CPU, too, and compare it with what the schedule says.
    #[arg(long)]
    pub(crate) simulate: bool,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
}

/// The level of a program that `teir` makes.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TeirLevel {
    /// The tiles, loops and blocks of the schedule.
    Tile,
    /// A spec that says what is computed; carbyne finds loops and blocks.
    Kernel,
}

/// A form of the output of `teir`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TeirEmit {
    /// The program, for all other commands.
    Text,
    /// CUDA C++.
    Cuda,
    /// The data that a launcher needs, as JSON.
    Abi,
}

#[derive(Debug, Group)]
pub(crate) struct Strategies {
    /// Say all of this strategy.
    pub(crate) name: Option<String>,
    /// Only those for kernels with such a spec, such as `MatMul`, `Reduction` or `pointwise`.
    #[arg(long, value_name = "SPEC")]
    pub(crate) spec: Option<String>,
    /// Only those that have an instance on this architecture; that of the test, `sm_80` without.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Decompose and simulate samples of every strategy of this file, and compare them with what
    /// they mean.
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    pub(crate) test: Option<PathBuf>,
    /// So many samples of each strategy.
    #[arg(long, value_name = "N", default_value = "8", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) samples: u16,
}

#[derive(Debug, Group)]
pub(crate) struct Compile {
    /// The program.
    pub(crate) file: PathBuf,
    /// The architecture, such as `sm_80`.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: String,
    /// Choose by the costs of this file, which `carbyne atoms calibrate` wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) costs: Option<PathBuf>,
    /// Multiprocessors of the machine; those of the architecture's usual card without.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) sms: Option<u32>,
    /// Take pins of kernels without one of their own from this file, which `carbyne tune` wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) tuned: Option<PathBuf>,
    /// Only this kernel; without it, all that the program holds.
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Option<String>,
    /// What to print.
    #[arg(long, value_enum, default_value = "cuda")]
    pub(crate) emit: Emit,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// Compile to machine code whatever is printed, and say what ptxas says; knows `-v`.
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    pub(crate) ptxas_options: Option<String>,
}

/// What `compile` prints.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// The decomposed program.
    Ir,
    /// One self-contained CUDA C++ file: all kernels, and functions of the host, named after the
    /// file, that launch them in order and say how large their workspace is.
    Cuda,
    /// The file of `cuda` with a function of tvm-ffi, `__tvm_ffi_NAME`, which checks tensors and
    /// launches the kernels on them. The file is compiled with the headers of the Python package
    /// `apache-tvm-ffi`.
    TvmFfi,
    /// PTX of all kernels, made by NVRTC.
    Ptx,
    /// Machine code of all kernels, made by NVRTC.
    Cubin,
    /// What a launcher must know, as JSON: of all kernels in their order, or of `--kernel`, grid,
    /// block, shared memory and parameters in their order; tensors with extents, strides and who
    /// writes and reads them; symbols.
    Abi,
}

#[derive(Debug, Group)]
pub(crate) struct Simulate {
    /// The program.
    pub(crate) file: PathBuf,
    /// Decompose for this architecture first; without it, the program runs as it is written.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Take pins of kernels without one of their own from this file, which `carbyne tune` wrote.
    #[arg(long, value_name = "FILE", requires = "arch")]
    pub(crate) tuned: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
    /// Run this many blocks of the grid, spread evenly, or `all`. Without it as many with work as
    /// take about a second, of a program whose outputs are not written to files.
    #[arg(long, value_name = "N", value_parser = Blocks::parse)]
    pub(crate) blocks: Option<Blocks>,
    /// Refuse to take more steps than this; a step is an element moved or eight multiply-adds.
    #[arg(long, value_name = "N")]
    pub(crate) budget: Option<u64>,
    /// Print the program with what each line did: executions, sectors of global memory, wavefronts
    /// of shared memory. Before the file's name write `--report=text`.
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, default_missing_value = "text")]
    pub(crate) report: Option<ReportFormat>,
    /// The program that this one was edited from: what both write must be the same, but for
    /// rounding.
    #[arg(long, value_name = "PARENT")]
    pub(crate) against: Option<PathBuf>,
    /// Run without comparing bodies with what their specs mean.
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Compare only with the tolerances of the types: carry no shadows in binary64, and compare
    /// nothing with `means` blocks.
    #[arg(long)]
    pub(crate) no_shadow: bool,
    /// Let warps go on and asynchronous copies arrive in another order, drawn from this seed. The
    /// results of a program without races do not depend on it.
    #[arg(long, value_name = "SEED")]
    pub(crate) schedule: Option<u64>,
}

/// How many blocks of a grid are simulated.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// Every one.
    All,
    /// So many.
    Some(u64),
}

impl Blocks {
    fn parse(text: &str) -> Result<Blocks, String> {
        match text.parse() {
            _ if text == "all" => Ok(Blocks::All),
            Ok(n) if n > 0 => Ok(Blocks::Some(n)),
            _ => Err("it is neither `all` nor a number from 1".to_owned()),
        }
    }
}

/// How the report of a simulation is written to standard output.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// The program, annotated.
    Text,
    /// One JSON object.
    Json,
}

#[derive(Debug, Group)]
pub(crate) struct Run {
    /// The program.
    pub(crate) file: PathBuf,
    /// The architecture of the GPU, such as `sm_90a`.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: String,
    /// Take pins of kernels without one of their own from this file, which `carbyne tune` wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) tuned: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
    /// Measure so many launches of each kernel; 0 measures none.
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(..=100_000))]
    pub(crate) repeat: u32,
    /// Then launch it without a pause until times settle, for so many seconds at most; 0 does not.
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = clap::value_parser!(u32).range(..=600))]
    pub(crate) sustain: u32,
    /// Compare at most this many elements of each output, spread evenly.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) compare: Option<u64>,
    /// Load this machine code or PTX instead of compiling; for a program of one kernel.
    #[arg(long, value_name = "PATH", conflicts_with = "prebuilt")]
    pub(crate) cubin: Option<PathBuf>,
    /// Load `KERNEL.ARCH.cubin`, or `.ptx`, from this folder instead of compiling.
    #[arg(long, value_name = "DIR")]
    pub(crate) prebuilt: Option<PathBuf>,
    /// Which GPU, as the driver counts.
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) gpu: u32,
    /// Give up on a kernel after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) timeout: u32,
}

/// What a program is given, and what is kept of it.
#[derive(Debug, Group)]
pub(crate) struct Data {
    #[command(flatten)]
    pub(crate) given: Given,
    /// Write a tensor to a NumPy file afterwards; may be repeated.
    #[arg(long = "out", value_name = "NAME=FILE.npy")]
    pub(crate) outputs: Vec<String>,
}

#[derive(Debug, Group)]
#[command(args_conflicts_with_subcommands = true, subcommand_precedence_over_arg = true)]
pub(crate) struct Atoms {
    #[command(subcommand)]
    pub(crate) command: Option<AtomsCommand>,
    /// Only what this architecture has.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Only what implements this spec, such as `MatMul` or `UnaryPointwise.exp`.
    #[arg(long, value_name = "SPEC", conflicts_with = "name")]
    pub(crate) spec: Option<String>,
    /// Costs of this file, which `carbyne atoms calibrate` wrote, instead of the table's own.
    #[arg(long, value_name = "FILE", requires = "arch")]
    pub(crate) costs: Option<PathBuf>,
    /// Print the program that executes the instruction, as `verify` and the tests do.
    #[arg(long, requires = "name")]
    pub(crate) probe: bool,
    /// Print every instruction with its operands, costs and their sources, as Markdown.
    #[arg(long, conflicts_with_all = ["name", "spec", "probe"])]
    pub(crate) markdown: bool,
    /// Everything about one instruction, its operands drawn.
    pub(crate) name: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AtomsCommand {
    /// Execute instructions on a GPU and compare them, lane by lane, with the simulator.
    Verify(VerifyAtoms),
    /// Compile the programs that `verify` executes, for a machine whose NVRTC lacks an
    /// architecture.
    Compile(CompileAtoms),
    /// Measure issue and completion cycles of instructions on a GPU.
    Calibrate(CalibrateAtoms),
}

/// The atoms that a command is about.
#[derive(Debug, Group)]
pub(crate) struct ChosenAtoms {
    /// The architecture; all that the GPU runs where left out.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Only this instruction; may be repeated.
    #[arg(long = "row", value_name = "NAME")]
    pub(crate) names: Vec<String>,
}

#[derive(Debug, Group)]
pub(crate) struct VerifyAtoms {
    /// On the GPU of this machine.
    #[arg(long, required = true)]
    pub(crate) device: bool,
    #[command(flatten)]
    pub(crate) atoms: ChosenAtoms,
    /// Take what `carbyne atoms compile` wrote into this folder; what it lacks is compiled.
    #[arg(long, value_name = "DIR")]
    pub(crate) prebuilt: Option<PathBuf>,
    /// Print one JSON object per atom.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the table to this file as Markdown.
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// A test of the check itself: let the simulator execute this instruction with two strides of
    /// an operand's thread-value layout exchanged, which must be found.
    #[arg(long, value_name = "NAME")]
    pub(crate) corrupt: Option<String>,
    /// Which GPU, as the driver counts.
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) gpu: u32,
    /// Give up on an instruction after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) timeout: u32,
}

#[derive(Debug, Group)]
pub(crate) struct CalibrateAtoms {
    /// On the GPU of this machine.
    #[arg(long, required = true)]
    pub(crate) device: bool,
    #[command(flatten)]
    pub(crate) atoms: ChosenAtoms,
    /// Measure what no chain of an instruction tells instead: `wgmma`, copies by boxes, loads and
    /// stores, barriers.
    #[arg(long, conflicts_with = "names")]
    pub(crate) machine: bool,
    /// Write the costs to this file, which `--costs` reads; with `--machine`, what was measured.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Which GPU, as the driver counts.
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) gpu: u32,
    /// Give up on an instruction after so many seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) timeout: u32,
}

#[derive(Debug, Group)]
pub(crate) struct CompileAtoms {
    #[command(flatten)]
    pub(crate) atoms: ChosenAtoms,
    /// PTX, which the driver compiles for newer GPUs, instead of machine code.
    #[arg(long)]
    pub(crate) ptx: bool,
    /// The folder to write to.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Group)]
#[command(
    after_help = "`A = (4,8):(8,1); A o right_inverse(A)` binds a name; docs/layout.md says all."
)]
pub(crate) struct Layout {
    /// Such as `composition((6,2):(8,2), (4,3):(3,1))`; `-` answers every line of standard input.
    #[arg(required_unless_present_any = ["list", "json"], allow_negative_numbers = true)]
    pub(crate) expression: Option<String>,
    /// List the operations, each with an example.
    #[arg(long, conflicts_with_all = ["expression", "json", "table", "eval"])]
    pub(crate) list: bool,
    /// Print all values of the layout as a grid, mode 0 downward.
    #[arg(long, conflicts_with_all = ["eval", "json"])]
    pub(crate) table: bool,
    /// Print all values of the layout as a list.
    #[arg(long, conflicts_with = "json")]
    pub(crate) eval: bool,
    /// Answer requests, one JSON object a line of standard input, with one JSON value a line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
#[command(after_help = "`carbyne explain FILE --arch sm_90a --why wgmma` says why not wgmma.")]
pub(crate) struct Explain {
    /// A code such as `V0204`, or a program.
    #[arg(value_name = "CODE|FILE")]
    pub(crate) what: PathBuf,
    /// Explain how the program is decomposed for this architecture.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Only what is written on this line, or generated for it.
    #[arg(long, value_name = "LINE", requires = "arch", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) at: Option<u32>,
    /// Only instructions whose names hold this, `*` for anything: why not these?
    #[arg(long, value_name = "PATTERN", requires = "arch")]
    pub(crate) why: Option<String>,
    /// All that was compared: other choices, and every instruction with the reason why it does not
    /// match.
    #[arg(long, requires = "arch")]
    pub(crate) all: bool,
    /// Multiprocessors of the machine; those of the architecture's usual card without.
    #[arg(long, value_name = "N", requires = "arch", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) sms: Option<u32>,
    /// How the answer is written.
    #[arg(long, value_enum, default_value = "text", requires = "arch", value_name = "FORMAT")]
    pub(crate) format: ReportFormat,
}

#[derive(Debug, Group)]
#[command(
    after_help = "--message-format, --allow-import and --strategy hold for all requests. docs/json.md describes these."
)]
pub(crate) struct Serve {
    /// Commands that run at once; as many as there are cores without.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) threads: Option<u8>,
}

#[derive(Debug, Group)]
pub(crate) struct Draw {
    /// A layout such as `((2,2),8):((1,16),2)` or `Sw<3,4,3> o 0 o (8,64):(64,1)`, or a program.
    #[arg(value_name = "LAYOUT|FILE", required_unless_present = "atom", conflicts_with = "atom")]
    pub(crate) what: Option<String>,
    /// Which tensor (`%As`) or thread tensor (`#warps`) of the program.
    #[arg(long, value_name = "NAME")]
    pub(crate) tensor: Option<String>,
    /// The line that defines it, where several have the name.
    #[arg(long, value_name = "N", requires = "tensor")]
    pub(crate) line: Option<usize>,
    /// Draw the thread-value layouts of this instruction's operands.
    #[arg(long, value_name = "NAME")]
    pub(crate) atom: Option<String>,
    /// The instruction of this architecture; the first that has it where left out.
    #[arg(long, value_name = "ARCH", requires = "atom")]
    pub(crate) arch: Option<String>,
    /// The layout is a thread-value layout onto a tile of `--shape`.
    #[arg(long, requires = "shape", conflicts_with_all = ["tile", "banks", "tensor", "atom"])]
    pub(crate) tv: bool,
    /// The extents of the tile of `--tv`.
    #[arg(long, value_name = "M,N", requires = "tv")]
    pub(crate) shape: Option<String>,
    /// Outline tiles: `(4,8)`, or a tiler for each mode, `2:1,4:2`; again for tiles in tiles.
    #[arg(long, value_name = "TILE", conflicts_with_all = ["banks", "atom"])]
    pub(crate) tile: Vec<String>,
    /// Draw which banks of shared memory a warp's access touches, before and after the swizzle; of
    /// a tensor with several levels, one tile (one stage of a ring).
    #[arg(long, conflicts_with = "atom")]
    pub(crate) banks: bool,
    /// Bytes that each lane accesses for `--banks`: 1, 2, 4, 8 or 16.
    #[arg(long, value_name = "BYTES", requires = "banks", default_value_if("banks", "true", "16"))]
    pub(crate) access: Option<i64>,
    /// Where lanes begin for `--banks`: a layout from lanes to column-major indices of the tile.
    #[arg(long, value_name = "LAYOUT", requires = "banks")]
    pub(crate) lanes: Option<String>,
    /// What offsets count.
    #[arg(long, value_enum, default_value = "element")]
    pub(crate) unit: Unit,
    /// Bits of an element of a layout; a tensor has those of its type.
    #[arg(long, value_name = "N", default_value = "16", value_parser = clap::value_parser!(i64).range(1..=128))]
    pub(crate) bits: i64,
    /// Draw all of a large picture, also what repeats.
    #[arg(long)]
    pub(crate) whole: bool,
    /// How the picture is written; by the name of `--output` where left out, else text.
    #[arg(long, value_enum)]
    pub(crate) format: Option<PictureFormat>,
    /// Write to this file instead of standard output; `.svg` and `.html` choose the format.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
}

/// What offsets of a picture count.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unit {
    /// Elements.
    Element,
    /// Bytes.
    Byte,
}

/// How a picture is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PictureFormat {
    /// SVG, for light and dark screens.
    Svg,
    /// One page that names coordinate, offset, thread and bank of the cell pointed at.
    Html,
    /// Characters, in color on a terminal.
    Text,
}
