//! Defines the command line as Rust types ([`Args`]), which the crate `clap` parses. `--help`
//! prints their doc comments. The files of the folder `args` hold the options of some commands.

mod bench;
mod inputs;
mod tune;

pub(crate) use bench::{Bench, BenchCommand};
#[cfg(feature = "gpu")]
pub(crate) use bench::{BenchGemm, Factors, Following, Majors, Size, Sums};
pub(crate) use inputs::InputArgs;
pub(crate) use tune::Tune;

use clap::{Args as Group, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Checks, decomposes, simulates and prints GPU tensor kernels.
#[derive(Debug, Parser)]
#[command(name = "carbyne", version, color = clap::ColorChoice::Never)]
#[command(after_help = "FILE may be `-` for standard input. Exit codes: 0 success, \
    1 the program has errors, 2 wrong usage or a missing file or device, 3 a bug in carbyne.")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// The format of diagnostics and reports on standard error.
    #[arg(long, global = true, value_enum, default_value = "human", value_name = "FORMAT")]
    pub(crate) message_format: MessageFormat,

    /// Allow imports from this folder and its subfolders, too; may be repeated.
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) allow_import: Vec<PathBuf>,

    /// Use the strategies of this file in addition to the built-in ones; may be repeated.
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) strategy: Vec<PathBuf>,
}

/// A format of diagnostics.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MessageFormat {
    /// Source lines with labels below them.
    Human,
    /// One JSON object per line.
    Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Parse a program and verify it.
    Check(Check),
    /// Rewrite a program in canonical form.
    Fmt(Fmt),
    /// Choose layouts, loops and atoms that the program leaves open.
    Decompose(Decompose),
    /// Decompose a program and print it as CUDA C++, PTX or machine code.
    Compile(Compile),
    /// Execute a program on the CPU, thread by thread, and compare the results with its meaning.
    Simulate(Simulate),
    /// Run a program on a GPU, compare the results with its meaning, and measure it.
    Run(Run),
    /// Measure which strategies make the kernels of a program fastest on a GPU, and store their
    /// pins for `--tuned`.
    Tune(Tune),
    /// Measure decomposed kernels and NVIDIA's libraries side by side.
    Bench(Bench),
    /// Draw a layout, a tensor of a program or the operands of an instruction.
    Draw(Draw),
    /// List the instructions of an architecture.
    Atoms(Atoms),
    /// List the strategies that decompose kernels, or test the strategies of a file.
    Strategies(Strategies),
    /// Calculate with layouts.
    Layout(Layout),
    /// Run commands from JSON requests, one per line, for compilers that decompose many kernels.
    Serve(Serve),
    /// Lower an operation in TEIR (Tiled Execution IR) to a program.
    Teir(Teir),
    /// Explain an error code, or how a program is decomposed and why.
    Explain(Explain),
}

#[derive(Debug, Group)]
pub(crate) struct Check {
    /// The program.
    pub(crate) file: PathBuf,
    /// The architecture whose atoms the program uses; default: any that has all of them.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// List the pairs of dependent accesses and the statement that orders each pair.
    #[arg(long)]
    pub(crate) pairs: bool,
    /// Print the program with a comment at each synchronization statement that names the
    /// accesses ordered by the statement.
    #[arg(long, conflicts_with = "pairs")]
    pub(crate) annotate: bool,
}

#[derive(Debug, Group)]
pub(crate) struct Fmt {
    /// The program; it is rewritten in place, or printed for `-` and with `--expand`.
    pub(crate) file: PathBuf,
    /// Change nothing; print the difference, and exit with 1 if there is a difference.
    #[arg(long, conflicts_with = "output")]
    pub(crate) check: bool,
    /// Print the program with all types and strides, and with all short forms expanded.
    #[arg(long)]
    pub(crate) expand: bool,
    /// Write to this file instead of the program's file; `-` is standard output.
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
    /// Use the instruction costs of this file, which `carbyne atoms calibrate` wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) costs: Option<PathBuf>,
    /// Do not use this instruction; `*` matches any part of a name; may be repeated.
    #[arg(long, value_name = "ATOM")]
    pub(crate) forbid: Vec<String>,
    /// For kernels without a pin, take pins from this file, which `carbyne tune` wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) tuned: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    /// The output to print.
    #[arg(long, value_enum, default_value = "ir")]
    pub(crate) emit: Decomposition,
    /// Add a comment to each synchronization statement that names the accesses it orders.
    #[arg(long)]
    pub(crate) annotate: bool,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
}

/// An output of `decompose`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Decomposition {
    /// The decomposed program.
    Ir,
    /// The decomposed program, the choice for each operation with its estimated cost, and the
    /// certificates, as JSON.
    Json,
}

/// Limits of the solver's search, and reports about the search.
#[derive(Debug, Group)]
pub(crate) struct SearchArgs {
    /// Report the N best solutions with their estimated cycles and their differences.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) top: Option<u16>,
    /// Examine at most N choices.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) budget: Option<u64>,
    /// Examine also choices that cannot be cheaper.
    #[arg(long)]
    pub(crate) exhaustive: bool,
    /// Report how many choices the search examined.
    #[arg(long)]
    pub(crate) stats: bool,
    /// Report the estimated cycles of each kernel, by resource.
    #[arg(long)]
    pub(crate) estimate: bool,
    /// Multiprocessors of the GPU; default: those of the architecture's usual GPU.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) sms: Option<u32>,
}

#[derive(Debug, Group)]
pub(crate) struct Teir {
    /// The operation, as JSON or as text.
    pub(crate) file: PathBuf,
    /// The architecture to decompose for.
    #[arg(long, value_name = "ARCH", default_value = "sm_80")]
    pub(crate) arch: String,
    /// The form of the output.
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) emit: TeirEmit,
    /// The level of the program.
    #[arg(long, value_enum, default_value = "tile")]
    pub(crate) level: TeirLevel,
    /// Also execute the program on the CPU and compare the results with the schedule.
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
    /// A program that all other commands read.
    Text,
    /// CUDA C++.
    Cuda,
    /// The data that a launcher needs, as JSON.
    Abi,
}

#[derive(Debug, Group)]
pub(crate) struct Strategies {
    /// Show everything about this strategy.
    pub(crate) name: Option<String>,
    /// Only strategies for kernels with this spec, such as `MatMul`, `Reduction` or `pointwise`.
    #[arg(long, value_name = "SPEC")]
    pub(crate) spec: Option<String>,
    /// Only strategies that have an instance on this architecture; with `--test`, the
    /// architecture to decompose for, default `sm_80`.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Decompose and simulate samples of every strategy of this file, and compare the results
    /// with the meaning of the specs.
    #[arg(long, value_name = "FILE", conflicts_with = "name")]
    pub(crate) test: Option<PathBuf>,
    /// The number of samples of each strategy.
    #[arg(long, value_name = "N", default_value = "8")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) samples: u16,
}

#[derive(Debug, Group)]
pub(crate) struct Compile {
    /// The program.
    pub(crate) file: PathBuf,
    /// The architecture, such as `sm_80`.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: String,
    /// Use the instruction costs of this file, which `carbyne atoms calibrate` wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) costs: Option<PathBuf>,
    /// Multiprocessors of the GPU; default: those of the architecture's usual GPU.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) sms: Option<u32>,
    /// For kernels without a pin, take pins from this file, which `carbyne tune` wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) tuned: Option<PathBuf>,
    /// Compile only this kernel; default: all kernels of the program.
    #[arg(long, value_name = "NAME")]
    pub(crate) kernel: Option<String>,
    /// Do not check the order of accesses in kernels that name all their atoms.
    #[arg(long)]
    pub(crate) no_check: bool,
    /// The output to print.
    #[arg(long, value_enum, default_value = "cuda")]
    pub(crate) emit: Emit,
    /// Write to this file instead of standard output.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// Print `#line` directives that name this file, which holds the decomposed program: profilers
    /// and debuggers then show its lines.
    #[arg(long, value_name = "FILE")]
    pub(crate) lines: Option<PathBuf>,
    /// Compile to machine code whatever `--emit` prints, and report the messages of ptxas; only
    /// `-v` is supported.
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true)]
    pub(crate) ptxas_options: Option<String>,
}

/// An output of `compile`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// The decomposed program.
    Ir,
    /// One self-contained CUDA C++ file: all kernels, and host functions that launch them in
    /// order and return the size of their workspace. The functions are named after the file.
    Cuda,
    /// The output of `cuda` with a tvm-ffi function, `__tvm_ffi_NAME`, that checks tensors and
    /// launches the kernels on them. Compile this file with the headers of the Python package
    /// `apache-tvm-ffi`.
    TvmFfi,
    /// PTX of all kernels, compiled by NVRTC.
    Ptx,
    /// Machine code of all kernels, compiled by NVRTC.
    Cubin,
    /// The data that a launcher needs, as JSON. For all kernels in launch order, or for
    /// `--kernel`: grid, block, shared memory, and parameters in order; for tensors: extents,
    /// strides, and the kernels that read and write them; the symbols.
    Abi,
}

#[derive(Debug, Group)]
pub(crate) struct Simulate {
    /// The program.
    pub(crate) file: PathBuf,
    /// Decompose for this architecture first; default: execute the program without changes.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// For kernels without a pin, take pins from this file, which `carbyne tune` wrote.
    #[arg(long, value_name = "FILE", requires = "arch")]
    pub(crate) tuned: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
    /// Run N blocks of the grid, evenly spaced, or `all`. Default: as many blocks with work as
    /// take about one second, or all blocks if outputs are written to files.
    #[arg(long, value_name = "N", value_parser = Blocks::parse)]
    pub(crate) blocks: Option<Blocks>,
    /// Refuse to execute more than N steps. A step moves one element or does eight
    /// multiply-adds.
    #[arg(long, value_name = "N")]
    pub(crate) budget: Option<u64>,
    /// Print the program with the work of each line: executions, sectors of global memory,
    /// wavefronts of shared memory. In front of FILE, write `--report=text`.
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, default_missing_value = "text")]
    pub(crate) report: Option<ReportFormat>,
    /// Compare the outputs with those of PARENT, the program before an edit. They may differ by
    /// rounding only.
    #[arg(long, value_name = "PARENT")]
    pub(crate) against: Option<PathBuf>,
    /// Do not compare the results of bodies with the meaning of their specs.
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Compare with the tolerances of the types only. Carry no binary64 shadow values, and do
    /// not check `means` blocks.
    #[arg(long)]
    pub(crate) no_shadow: bool,
    /// Execute warps and complete asynchronous copies in a random order from this seed. The
    /// order does not change the results of a program without races.
    #[arg(long, value_name = "SEED")]
    pub(crate) schedule: Option<u64>,
}

/// The number of blocks of a grid to simulate.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Blocks {
    /// All blocks.
    All,
    /// This number of blocks.
    Some(u64),
}

impl Blocks {
    fn parse(text: &str) -> Result<Blocks, String> {
        match text.parse() {
            _ if text == "all" => Ok(Blocks::All),
            Ok(n) if n > 0 => Ok(Blocks::Some(n)),
            _ => Err("expected `all` or an integer of at least 1".to_owned()),
        }
    }
}

/// A format of the simulation report on standard output.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// The program, with annotated lines.
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
    /// For kernels without a pin, take pins from this file, which `carbyne tune` wrote.
    #[arg(long, value_name = "FILE")]
    pub(crate) tuned: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) data: Data,
    /// Write the decomposed program to this file, whose lines profilers then show.
    #[arg(long, value_name = "FILE")]
    pub(crate) keep: Option<PathBuf>,
    /// Measure N launches of each kernel; 0 measures none.
    #[arg(long, value_name = "N", default_value = "20")]
    #[arg(value_parser = clap::value_parser!(u32).range(..=100_000))]
    pub(crate) repeat: u32,
    /// Then launch each kernel without a pause until the times are stable, for at most N
    /// seconds; 0 skips this measurement.
    #[arg(long, value_name = "SECONDS", default_value = "2")]
    #[arg(value_parser = clap::value_parser!(u32).range(..=600))]
    pub(crate) sustain: u32,
    /// Compare at most N elements of each output, evenly spaced.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) compare: Option<u64>,
    /// Load this machine code or PTX instead of compiling; the program must have one kernel.
    #[arg(long, value_name = "PATH", conflicts_with = "prebuilt")]
    pub(crate) cubin: Option<PathBuf>,
    /// Load `KERNEL.ARCH.cubin`, or `.ptx`, from this folder instead of compiling.
    #[arg(long, value_name = "DIR")]
    pub(crate) prebuilt: Option<PathBuf>,
    /// The index of the GPU, as the driver counts.
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) gpu: u32,
    /// Stop a kernel that takes longer than N seconds.
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) timeout: u32,
}

/// The inputs of a program and the outputs to write.
#[derive(Debug, Group)]
pub(crate) struct Data {
    #[command(flatten)]
    pub(crate) given: InputArgs,
    /// Write a tensor to a NumPy file after the run; may be repeated.
    #[arg(long = "out", value_name = "NAME=FILE.npy")]
    pub(crate) outputs: Vec<String>,
}

#[derive(Debug, Group)]
#[command(args_conflicts_with_subcommands = true, subcommand_precedence_over_arg = true)]
pub(crate) struct Atoms {
    #[command(subcommand)]
    pub(crate) command: Option<AtomsCommand>,
    /// Only instructions that this architecture has.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Only instructions that implement this spec, such as `MatMul` or `UnaryPointwise.exp`.
    #[arg(long, value_name = "SPEC", conflicts_with = "name")]
    pub(crate) spec: Option<String>,
    /// Show the costs of this file, which `carbyne atoms calibrate` wrote.
    #[arg(long, value_name = "FILE", requires = "arch")]
    pub(crate) costs: Option<PathBuf>,
    /// Print the program that executes the instruction in `verify` and in the tests.
    #[arg(long, requires = "name")]
    pub(crate) probe: bool,
    /// Print all instructions with their operands, costs and sources, as Markdown.
    #[arg(long, conflicts_with_all = ["name", "spec", "probe"])]
    pub(crate) markdown: bool,
    /// Show everything about this instruction, with drawings of its operands.
    pub(crate) name: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AtomsCommand {
    /// Execute instructions on a GPU and compare the results with the simulator, lane by lane.
    Verify(VerifyAtoms),
    /// Compile the programs of `verify` in advance, for a machine whose NVRTC does not support
    /// an architecture.
    Compile(CompileAtoms),
    /// Measure issue and completion cycles of instructions on a GPU.
    Calibrate(CalibrateAtoms),
}

/// The atoms that a command processes.
#[derive(Debug, Group)]
pub(crate) struct ChosenAtoms {
    /// The architecture; default: all that the GPU supports.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Only this instruction; may be repeated.
    #[arg(long = "row", value_name = "NAME")]
    pub(crate) names: Vec<String>,
}

#[derive(Debug, Group)]
pub(crate) struct VerifyAtoms {
    /// Use the GPU of this machine.
    #[arg(long, required = true)]
    pub(crate) device: bool,
    #[command(flatten)]
    pub(crate) atoms: ChosenAtoms,
    /// Load the programs that `carbyne atoms compile` wrote to this folder; compile the others.
    #[arg(long, value_name = "DIR")]
    pub(crate) prebuilt: Option<PathBuf>,
    /// Print one JSON object per atom.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the table to this file as Markdown.
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Test the verification: exchange two strides of an operand's thread-value layout when the
    /// simulator executes this instruction. The comparison must report the difference.
    #[arg(long, value_name = "NAME")]
    pub(crate) corrupt: Option<String>,
    /// The index of the GPU, as the driver counts.
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) gpu: u32,
    /// Stop an instruction that takes longer than N seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) timeout: u32,
}

#[derive(Debug, Group)]
pub(crate) struct CalibrateAtoms {
    /// Use the GPU of this machine.
    #[arg(long, required = true)]
    pub(crate) device: bool,
    #[command(flatten)]
    pub(crate) atoms: ChosenAtoms,
    /// Measure costs that a chain of one instruction does not show: `wgmma`, bulk tensor copies,
    /// loads and stores, barriers.
    #[arg(long, conflicts_with = "names")]
    pub(crate) machine: bool,
    /// Write the costs to this file, which `--costs` reads; with `--machine`, the measurements.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// The index of the GPU, as the driver counts.
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) gpu: u32,
    /// Stop an instruction that takes longer than N seconds.
    #[arg(long, value_name = "SECONDS", default_value = "10")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub(crate) timeout: u32,
}

#[derive(Debug, Group)]
pub(crate) struct CompileAtoms {
    #[command(flatten)]
    pub(crate) atoms: ChosenAtoms,
    /// Write PTX, which the driver compiles for newer GPUs, instead of machine code.
    #[arg(long)]
    pub(crate) ptx: bool,
    /// The folder to write to.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

#[derive(Debug, Group)]
#[command(after_help = "`A = (4,8):(8,1); A o right_inverse(A)` binds a name; see docs/layout.md.")]
pub(crate) struct Layout {
    /// An expression such as `composition((6,2):(8,2), (4,3):(3,1))`; `-` evaluates each line of
    /// standard input.
    #[arg(required_unless_present_any = ["list", "json"], allow_negative_numbers = true)]
    pub(crate) expression: Option<String>,
    /// List the operations with examples.
    #[arg(long, conflicts_with_all = ["expression", "json", "table", "eval"])]
    pub(crate) list: bool,
    /// Print all values of the layout as a grid, with mode 0 downward.
    #[arg(long, conflicts_with_all = ["eval", "json"])]
    pub(crate) table: bool,
    /// Print all values of the layout as a list.
    #[arg(long, conflicts_with = "json")]
    pub(crate) eval: bool,
    /// Read one JSON request per line of standard input, and print one JSON value per line.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Group)]
#[command(after_help = "`carbyne explain FILE --arch sm_90a --why wgmma`: why no wgmma?")]
pub(crate) struct Explain {
    /// An error code such as `V0204`, or a program.
    #[arg(value_name = "CODE|FILE")]
    pub(crate) what: PathBuf,
    /// Explain how the program is decomposed for this architecture.
    #[arg(long, value_name = "ARCH")]
    pub(crate) arch: Option<String>,
    /// Only choices of statements on this line, or generated for it.
    #[arg(long, value_name = "LINE", requires = "arch")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) at: Option<u32>,
    /// Explain why instructions with these names are not used; `*` matches any part of a name.
    #[arg(long, value_name = "PATTERN", requires = "arch")]
    pub(crate) why: Option<String>,
    /// Show all candidates: other choices, and the reason why each instruction does not match.
    #[arg(long, requires = "arch")]
    pub(crate) all: bool,
    /// Multiprocessors of the GPU; default: those of the architecture's usual GPU.
    #[arg(long, value_name = "N", requires = "arch")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) sms: Option<u32>,
    /// The format of the answer.
    #[arg(long, value_enum, default_value = "text", requires = "arch", value_name = "FORMAT")]
    pub(crate) format: ReportFormat,
}

#[derive(Debug, Group)]
#[command(after_help = "--message-format, --allow-import and --strategy apply to all requests. \
    docs/json.md describes the requests.")]
pub(crate) struct Serve {
    /// The number of commands that run at the same time; default: the number of cores.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) threads: Option<u8>,
}

#[derive(Debug, Group)]
pub(crate) struct Draw {
    /// A layout such as `((2,2),8):((1,16),2)` or `Sw<3,4,3> o 0 o (8,64):(64,1)`, or a program.
    #[arg(value_name = "LAYOUT|FILE", required_unless_present = "atom", conflicts_with = "atom")]
    pub(crate) what: Option<String>,
    /// The tensor (`%As`) or thread tensor (`#warps`) of the program to draw.
    #[arg(long, value_name = "NAME")]
    pub(crate) tensor: Option<String>,
    /// The line that defines the tensor, if several have this name.
    #[arg(long, value_name = "N", requires = "tensor")]
    pub(crate) line: Option<usize>,
    /// Draw the thread-value layouts of this instruction's operands.
    #[arg(long, value_name = "NAME")]
    pub(crate) atom: Option<String>,
    /// The architecture of the instruction; default: the first that has it.
    #[arg(long, value_name = "ARCH", requires = "atom")]
    pub(crate) arch: Option<String>,
    /// Draw a thread-value layout that maps to a tile of `--shape`.
    #[arg(long, requires = "shape", conflicts_with_all = ["tile", "banks", "tensor", "atom"])]
    pub(crate) tv: bool,
    /// The extents of the tile of `--tv`.
    #[arg(long, value_name = "M,N", requires = "tv")]
    pub(crate) shape: Option<String>,
    /// Outline tiles: `(4,8)`, or a tiler per mode, `2:1,4:2`; repeat for tiles within tiles.
    #[arg(long, value_name = "TILE", conflicts_with_all = ["banks", "atom"])]
    pub(crate) tile: Vec<String>,
    /// Draw the banks of shared memory that one access of a warp touches, before and after the
    /// swizzle. Of a tensor with several levels, draw one tile (one stage of a ring).
    #[arg(long, conflicts_with = "atom")]
    pub(crate) banks: bool,
    /// The number of bytes that each lane accesses for `--banks`: 1, 2, 4, 8 or 16.
    #[arg(long, value_name = "BYTES", requires = "banks", default_value_if("banks", "true", "16"))]
    pub(crate) access: Option<i64>,
    /// The first element of each lane for `--banks`: a layout from lanes to column-major indices
    /// of the tile.
    #[arg(long, value_name = "LAYOUT", requires = "banks")]
    pub(crate) lanes: Option<String>,
    /// The unit of offsets.
    #[arg(long, value_enum, default_value = "element")]
    pub(crate) unit: Unit,
    /// The number of bits per element of a layout; a tensor has those of its type.
    #[arg(long, value_name = "N", default_value = "16")]
    #[arg(value_parser = clap::value_parser!(i64).range(1..=128))]
    pub(crate) bits: i64,
    /// Draw a large picture completely, including repeated parts.
    #[arg(long)]
    pub(crate) whole: bool,
    /// The format of the picture; default: from the name of `--output`, else text.
    #[arg(long, value_enum)]
    pub(crate) format: Option<PictureFormat>,
    /// Write to this file instead of standard output; `.svg` and `.html` choose the format.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
}

/// A unit of offsets.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unit {
    /// Elements.
    Element,
    /// Bytes.
    Byte,
}

/// A format of pictures.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PictureFormat {
    /// SVG, for light and dark screens.
    Svg,
    /// An HTML page that shows coordinate, offset, thread and bank of the cell under the pointer.
    Html,
    /// Characters, in color on a terminal.
    Text,
}
