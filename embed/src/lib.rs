//! What a program needs that embeds carbyne, in one place: a text or a tree is checked, decomposed
//! for an architecture, executed on the CPU with the caller's arrays, and printed as CUDA C++.
//!
//! ```
//! use carbyne_embed::{Arch, Array, AtomTable, Checked, Options, Scalar, cuda};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // What is computed; nobody has said how.
//! let program = Checked::new(
//!     "carbyne 2
//!      %A:[64,32].f16.GL
//!      %B:[32,64].f16.GL
//!      %C:[64,64].f16.GL
//!      MatMul.set @gemm (%A, %B) -> (%C) acc=f32",
//! )?;
//!
//! // How: layouts, swizzles and instructions, as text that can be read and edited.
//! let table = AtomTable::new(Arch::Sm80);
//! let decomposed = program.decompose(&table)?;
//! assert!(decomposed.text.contains("atom=ldmatrix.x4.b16"));
//!
//! // Executed thread by thread, and compared with what it means on the way.
//! let a = Array::from_numbers(Scalar::F16, &[64, 32], &[0.5; 64 * 32])?;
//! let b = Array::from_numbers(Scalar::F16, &[32, 64], &[2.0; 32 * 64])?;
//! let arrays = [("A".to_owned(), a), ("B".to_owned(), b)].into();
//! let report = program.simulate(&table, &Options { arrays, ..Options::default() })?;
//! let c = report.outputs.get("C").ok_or("nothing was written")?;
//! assert!(c.numbers().all(|x| x == 32.0));
//!
//! // For nvcc or NVRTC, with what a launch needs beside it.
//! let kernels = cuda(&decomposed, &table)?;
//! assert!(kernels[0].source.contains("__global__"));
//! # Ok(())
//! # }
//! ```
//!
//! Errors are [`Diagnostics`]: codes, places in the text, and what to do. What stands behind each
//! type is documented in the crate that it comes from.
//!
//! Invariant: everything here is another crate's; this one adds no behavior of its own.

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

/// Reports of kernels whose accesses are ordered, and warnings.
pub type Proved = (Vec<(SpecId, OrderReport)>, Vec<Diagnostic>);

/// A program that is well formed.
#[derive(Clone, Debug)]
pub struct Checked {
    text: String,
    module: Module,
    program: Program,
}

impl Checked {
    /// Reads a text.
    ///
    /// # Errors
    /// Its errors, in text order.
    pub fn new(source: &str) -> Result<Self, Diagnostics> {
        Checked::of_linked(text::parse(source)?, source)
    }

    /// Reads a text that may import files. `id` is that of its own file, and `loader` reads the
    /// others: see [`mod@carbyne_ir::link`].
    ///
    /// # Errors
    /// Its errors, in text order; V0238 for a file that cannot be imported.
    pub fn linked(source: &str, id: &str, loader: &mut Loader<'_>) -> Result<Self, Diagnostics> {
        Checked::of_linked(link(&text::parse(source)?, id, loader)?, source)
    }

    /// Takes the module of a text, in which its imports stand already: see
    /// [`mod@carbyne_ir::link`].
    ///
    /// # Errors
    /// Its errors, in text order.
    pub fn of_linked(module: Module, source: &str) -> Result<Self, Diagnostics> {
        let program = carbyne_decompose::checked(&module, source)?;
        Ok(Checked { text: source.to_owned(), module, program })
    }

    /// Takes a tree that was built in memory. Places in errors are those of its text, as it prints;
    /// statements keep their ids.
    ///
    /// # Errors
    /// Its errors, in text order.
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

    /// The text that places in errors refer to.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The tree.
    #[must_use]
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// Tensors, specs and threads, every name resolved.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Layouts, instructions and synchronization for an architecture, with certificates.
    ///
    /// # Errors
    /// What cannot be decomposed, and what would be needed.
    pub fn decompose(&self, table: &AtomTable) -> Result<Decomposed, Diagnostics> {
        carbyne_decompose::decompose(&self.module, &self.text, table)
    }

    /// Decomposes with options: the length of the search, the number of multiprocessors, strategies
    /// of one's own.
    ///
    /// # Errors
    /// As [`Checked::decompose`]; a budget that was too small.
    pub fn decompose_by(
        &self,
        table: &AtomTable,
        how: &Decomposition,
    ) -> Result<Decomposed, Diagnostics> {
        carbyne_decompose::decompose_by(&self.module, &self.text, table, how)
    }

    /// Which pairs of accesses are ordered by synchronization, of each kernel that says who
    /// accesses what; [`diagnostics`] says the rest as errors. A kernel whose layouts or
    /// instructions are open is left out: its synchronization is not planned yet.
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

    /// Executes the program as it stands, on the CPU, and compares it with what it means.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn simulate(&self, table: &AtomTable, options: &Options) -> Result<Report, Diagnostics> {
        Ok(carbyne_simulate::simulate(&self.program, table, options)?)
    }
}

/// The CUDA C++ of every kernel of a decomposed program, in text order.
///
/// # Errors
/// What cannot be printed.
pub fn cuda(decomposed: &Decomposed, table: &AtomTable) -> Result<Vec<CudaKernel>, Diagnostics> {
    let program = &decomposed.program;
    let print = |kernel| carbyne_codegen::print_kernel(program, kernel, table, None);
    program.kernels.iter().copied().map(print).collect()
}
