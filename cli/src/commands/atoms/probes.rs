//! Makes the probes of atoms: programs that execute one atom, decomposed and printed as CUDA C++.
//! `atoms verify` executes them on a GPU. One compilation contains many probes, which share the
//! time to compile CUDA's headers.
//!
//! A compilation is identified by its architecture and a hash of its source, so that files of
//! another version of carbyne are not used.

use crate::args::ChosenAtoms;
use crate::failure::{Failure, Source};
use crate::pipeline;
use carbyne_atoms::probe::operand::described;
use carbyne_atoms::probe::{self, Choice, Probe, Unobservable};
use carbyne_atoms::{Arch, Atom, AtomTable, docs};
use carbyne_codegen::{CudaKernel, print_kernels};
use carbyne_ir::program::Program;
use carbyne_simulate::conformance;

/// Kernels per compilation. More kernels share the cost of headers; fewer allow more parallelism.
const BATCH: usize = 24;

/// An atom's probe, and the architectures that have the atom in this form.
pub(super) struct Probed {
    pub(super) atom: Atom,
    pub(super) probe: Probe,
    pub(super) program: Program,
    pub(super) variants: Vec<Variant>,
}

/// A probe for one architecture.
#[cfg_attr(not(feature = "gpu"), expect(dead_code, reason = "for whoever executes it"))]
pub(super) struct Variant {
    pub(super) arch: Arch,
    pub(super) kernel: CudaKernel,
    /// The index of its compilation.
    pub(super) batch: usize,
}

/// A compilation.
pub(super) struct Batch {
    pub(super) arch: Arch,
    pub(super) source: String,
    pub(super) n_kernels: usize,
}

impl Batch {
    /// The file name without extension: `sm_80-0123456789abcdef`.
    pub(super) fn name(&self) -> String {
        // FNV-1a.
        let hash = self.source.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
            (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3)
        });
        format!("{}-{hash:016x}", self.arch)
    }
}

/// All probes to execute.
#[derive(Default)]
pub(super) struct Probes {
    pub(super) list: Vec<Probed>,
    pub(super) batches: Vec<Batch>,
    /// Atoms without a probe: name, architecture, reason.
    pub(super) without: Vec<(&'static str, Arch, Unobservable)>,
}

impl Probes {
    /// The probes of the atoms of these architectures.
    ///
    /// # Errors
    /// carbyne's compiler refuses a probe, which is a bug.
    pub(super) fn new(args: &ChosenAtoms, archs: &[Arch]) -> Result<Self, Failure> {
        let wanted = |name: &str| args.names.is_empty() || args.names.iter().any(|r| r == name);
        let mut probes = Probes::default();
        for table in archs.iter().map(|a| AtomTable::new(*a)) {
            let mut of_arch = vec![];
            let tables = [table.clone()];
            for series in docs::series(&tables) {
                for (i, atom) in series.atoms.iter().enumerate() {
                    for choice in choices(atom, i == 0) {
                        match probe::probe(atom, &table, choice) {
                            Ok(made) => of_arch.push((*atom, made)),
                            Err(e) if wanted(atom.name) => {
                                probes.without.push((atom.name, table.arch, e));
                            }
                            Err(_) => {}
                        }
                    }
                }
            }
            // Batches do not depend on the wanted atoms, so that files that contain all atoms can
            // be used.
            for chunk in of_arch.chunks(BATCH) {
                if chunk.iter().any(|(atom, _)| wanted(atom.name)) {
                    probes.batch(chunk, &table)?;
                }
            }
        }
        for probed in probes.list.iter_mut().filter(|p| !wanted(p.atom.name)) {
            probed.variants.clear();
        }
        Ok(probes)
    }

    /// Adds a probe and returns its index. Atoms that differ only in their costs share a probe.
    fn add(&mut self, atom: &Atom, made: &Probe, table: &AtomTable) -> Result<usize, Failure> {
        let same =
            |p: &Probed| p.probe == *made && Atom { cost: atom.cost, ..p.atom.clone() } == *atom;
        if let Some(i) = self.list.iter().position(same) {
            return Ok(i);
        }
        let source = Source {
            name: format!("probe of {}", atom.name),
            text: made.text.clone(),
            ..Source::default()
        };
        let program = pipeline::decomposed(&source, table)?.program;
        self.list.push(Probed {
            atom: atom.clone(),
            probe: made.clone(),
            program,
            variants: vec![],
        });
        Ok(self.list.len() - 1)
    }

    fn batch(&mut self, atoms: &[(&Atom, Probe)], table: &AtomTable) -> Result<(), Failure> {
        let probes: Vec<usize> = atoms
            .iter()
            .map(|(atom, made)| self.add(atom, made, table))
            .collect::<Result<_, _>>()?;
        let of = |i: &usize| {
            let program = &self.list[*i].program;
            program.kernels.first().map(|k| (program, *k))
        };
        let kernels: Vec<_> = probes.iter().filter_map(of).collect();
        let name = format!("probes for {}", table.arch);
        let source = Source { name, text: String::new(), ..Source::default() };
        let (text, kernels) =
            print_kernels(&kernels, table, None).map_err(|e| Failure::program(&source, e))?;
        let batch = self.batches.len();
        for (i, kernel) in probes.iter().zip(kernels) {
            self.list[*i].variants.push(Variant { arch: table.arch, kernel, batch });
        }
        self.batches.push(Batch { arch: table.arch, source: text, n_kernels: probes.len() });
        Ok(())
    }

    /// The source of a single probe.
    ///
    /// # Errors
    /// The errors of [`Probes::new`].
    #[cfg(feature = "gpu")]
    pub(super) fn alone(&self, probe: usize, arch: Arch) -> Result<String, Failure> {
        let program = &self.list[probe].program;
        let kernels: Vec<_> = program.kernels.first().map(|k| (program, *k)).into_iter().collect();
        let source =
            Source { name: format!("probe for {arch}"), text: String::new(), ..Source::default() };
        let printed = print_kernels(&kernels, &AtomTable::new(arch), None);
        Ok(printed.map_err(|e| Failure::program(&source, e))?.0)
    }
}

/// The variants of an atom's probe: operands in each possible memory and in each layout that a
/// descriptor can express, and accumulators set to zero where the atom allows this. In a series of
/// atoms that differ in the number of columns, only the first atom is executed in all variants.
fn choices(atom: &Atom, first: bool) -> Vec<Choice> {
    let ways = |o: &carbyne_atoms::AtomOperand| o.memory.len().max(described(o).len());
    let n = atom.operands.iter().map(ways).max().filter(|_| first).unwrap_or(1);
    let mut out: Vec<Choice> = (0..n).map(|pick| conformance::choice(atom, pick)).collect();
    if atom.sets && first {
        out.extend(out.clone().into_iter().map(|c| Choice { set: true, ..c }));
    }
    out
}
