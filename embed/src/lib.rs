//! Offers all of carbyne as one library, for compilers and other programs that generate kernels. A
//! program checks a text or a syntax tree, decomposes it for an architecture, proves that its
//! accesses are ordered, executes it on the CPU with its own arrays, and prints it as CUDA C++.
//!
//! ```
//! use carbyne_embed::{Arch, Array, AtomTable, Checked, Options, Scalar, cuda};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A kernel-level text: it names neither tiles nor threads.
//! let program = Checked::new(
//!     "carbyne 2
//!      %A:[64,32].f16.GL
//!      %B:[32,64].f16.GL
//!      %C:[64,64].f16.GL
//!      MatMul.set @gemm (%A, %B) -> (%C) acc=f32",
//! )?;
//!
//! // Choose layouts, swizzles and instructions. The result is a text that can be read and edited.
//! let table = AtomTable::new(Arch::Sm80);
//! let decomposed = program.decompose(&table)?;
//! assert!(decomposed.text.contains("atom=ldmatrix.x4.b16"));
//!
//! // Execute it thread by thread. The simulator also compares bodies with what their specs mean.
//! let a = Array::from_numbers(Scalar::F16, &[64, 32], &[0.5; 64 * 32])?;
//! let b = Array::from_numbers(Scalar::F16, &[32, 64], &[2.0; 32 * 64])?;
//! let arrays = [("A".to_owned(), a), ("B".to_owned(), b)].into();
//! let report = program.simulate(&table, &Options { arrays, ..Options::default() })?;
//! let c = report.outputs.get("C").ok_or("nothing was written")?;
//! assert!(c.numbers().all(|x| x == 32.0));
//!
//! // Print it for nvcc or NVRTC, with the configuration of the launch.
//! let kernels = cuda(&decomposed, &table)?;
//! assert!(kernels[0].source.contains("__global__"));
//! # Ok(())
//! # }
//! ```
//!
//! Errors are [`Diagnostics`]: codes, places in the text, and helps. The crate of each re-exported
//! type documents it.
//!
//! Invariant: this crate only calls the other crates and exports their types. Every result and
//! every error comes from one of them.

pub use carbyne_atoms::{Arch, AtomTable};
pub use carbyne_codegen::CudaKernel;
pub use carbyne_decompose::Decomposed;
pub use carbyne_decompose::certificate::{Certificate, Relation};
pub use carbyne_decompose::{Options as Decomposition, Search, Strategies};
pub use carbyne_ir::ast::{BinaryOp, CmpOp, Key, Module, ReduceOp, SpecKind};
pub use carbyne_ir::build;
pub use carbyne_ir::diag::{Code, Diagnostic, Diagnostics, Severity};
pub use carbyne_ir::link::{File, LoadError, Loader};
pub use carbyne_ir::program::Program;
pub use carbyne_ir::scalar::{Memory, Scalar};
pub use carbyne_remedy::diagnostics;
pub use carbyne_simulate::{Array, ArrayError, Inputs, Options, Report};
pub use carbyne_sync::Report as OrderReport;

use carbyne_ir::link::link;
use carbyne_ir::program::SpecId;
use carbyne_ir::text;
use carbyne_sync::Limits;

/// The reports of kernels with ordered accesses, and warnings.
pub type Proved = (Vec<(SpecId, OrderReport)>, Vec<Diagnostic>);

/// A well-formed program.
#[derive(Clone, Debug)]
pub struct Checked {
    text: String,
    module: Module,
    program: Program,
}

impl Checked {
    /// Checks a text.
    ///
    /// # Errors
    /// The errors of the text, in text order.
    pub fn new(source: &str) -> Result<Self, Diagnostics> {
        Checked::of_linked(text::parse(source)?, source)
    }

    /// Checks a text that may import files. `id` identifies the text's own file. `loader` reads the
    /// others; see [`mod@carbyne_ir::link`].
    ///
    /// # Errors
    /// The errors of the text, in text order. V0238 for a file that cannot be imported.
    pub fn linked(source: &str, id: &str, loader: &mut Loader<'_>) -> Result<Self, Diagnostics> {
        Checked::of_linked(link(&text::parse(source)?, id, loader)?, source)
    }

    /// Checks the module of a text whose imports are already resolved; see
    /// [`mod@carbyne_ir::link`].
    ///
    /// # Errors
    /// The errors of the text, in text order.
    pub fn of_linked(module: Module, source: &str) -> Result<Self, Diagnostics> {
        let program = carbyne_decompose::checked(&module, source)?;
        Ok(Checked { text: source.to_owned(), module, program })
    }

    /// Checks a tree that was built in memory. Places in errors refer to its printed text.
    /// Statements keep their ids.
    ///
    /// # Errors
    /// The errors of the tree, in text order.
    pub fn of_module(module: &Module) -> Result<Self, Diagnostics> {
        let text = text::print(module);
        let mut read = text::parse(&text)?;
        if read == *module {
            read.take_ids(module);
            read.separate();
        }
        let program = carbyne_decompose::checked(&read, &text)?;
        Ok(Checked { text, module: read, program })
    }

    /// The text to which places in errors refer.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The tree.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The program: tensors, specs and threads, with all names resolved.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Decomposes the program for an architecture: chooses layouts, instructions and
    /// synchronization, with certificates.
    ///
    /// # Errors
    /// The specs that cannot be decomposed, and the reasons.
    pub fn decompose(&self, table: &AtomTable) -> Result<Decomposed, Diagnostics> {
        carbyne_decompose::decompose(&self.module, &self.text, table)
    }

    /// Decomposes the program with options: limits of the search, the number of multiprocessors,
    /// strategies of the caller.
    ///
    /// # Errors
    /// The errors of [`Checked::decompose`], and a search budget that is too small.
    pub fn decompose_by(
        &self,
        table: &AtomTable,
        how: &Decomposition,
    ) -> Result<Decomposed, Diagnostics> {
        carbyne_decompose::decompose_by(&self.module, &self.text, table, how)
    }

    /// For each kernel: the pairs of accesses that synchronization orders. [`diagnostics`] converts
    /// the report of the others to errors. A kernel with open layouts or instructions is left out,
    /// because its synchronization is not planned yet.
    #[must_use]
    pub fn order(&self, table: &AtomTable) -> Vec<(SpecId, OrderReport)> {
        let program = &self.program;
        let atomic = program.kernels.iter().filter(|k| carbyne_sync::is_atomic(program, **k));
        let of = |k: &SpecId| (*k, carbyne_sync::check(program, *k, table, &Limits::default()));
        atomic.map(of).collect()
    }

    /// Proves that accesses are ordered. Returns the reports of [`Checked::order`], and warnings.
    ///
    /// # Errors
    /// Accesses that are not ordered.
    pub fn proved(&self, table: &AtomTable) -> Result<Proved, Diagnostics> {
        let reports = self.order(table);
        let said = reports.iter().flat_map(|(id, r)| diagnostics(r, &self.program, *id));
        let (errors, warnings): (Vec<_>, Vec<_>) =
            said.partition(|d| d.severity == Severity::Error);
        match errors.is_empty() {
            true => Ok((reports, warnings)),
            false => Err(errors.into_iter().collect()),
        }
    }

    /// Executes the program on the CPU, and compares bodies with what their specs mean.
    ///
    /// # Errors
    /// The first error of the execution.
    pub fn simulate(&self, table: &AtomTable, options: &Options) -> Result<Report, Diagnostics> {
        Ok(carbyne_simulate::simulate(&self.program, table, options)?)
    }
}

/// The CUDA C++ of every kernel of a decomposed program, in text order.
///
/// # Errors
/// A kernel that cannot be printed.
pub fn cuda(decomposed: &Decomposed, table: &AtomTable) -> Result<Vec<CudaKernel>, Diagnostics> {
    let program = &decomposed.program;
    let print = |kernel| carbyne_codegen::print_kernel(program, kernel, table, None);
    program.kernels.iter().copied().map(print).collect()
}
