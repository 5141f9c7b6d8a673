//! The atoms that one architecture has.

use crate::arch::Arch;
use crate::atom::{Atom, AtomOp, BarrierScope, Cost, Rate};
use crate::threads;
use crate::{
    binary, compare, convert, convert_int, convert_through, cp_async, cp_async_bulk, fma, global,
    ldmatrix, mma, red, reduce, register, shared, shuffle, special, stmatrix, sync, unary, wgmma,
};
use carbyne_ir::ast::{Key, SpecKind, SyncOp};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Program, Spec, ThreadsId};
use carbyne_ir::span::Span;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Every atom of one architecture.
///
/// Atoms are made once a process and shared by its tables, so that making a table and copying it
/// are cheap.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomTable {
    /// The architecture whose atoms these are.
    pub arch: Arch,
    atoms: Arc<Atoms>,
}

/// Atoms, and where to find them.
#[derive(Clone, Debug, PartialEq)]
struct Atoms {
    list: Vec<Atom>,
    by_name: HashMap<&'static str, usize>,
    /// In the order of `list`.
    by_kind: HashMap<SpecKind, Vec<usize>>,
}

/// The atoms of each architecture, in the order of [`Arch::ALL`].
static SHARED: [OnceLock<Arc<Atoms>>; Arch::ALL.len()] =
    [const { OnceLock::new() }; Arch::ALL.len()];

impl Atoms {
    fn of(arch: Arch) -> Self {
        let families = [
            global::list(arch),
            shared::list(arch),
            cp_async::list(arch),
            cp_async_bulk::list(arch),
            ldmatrix::list(arch),
            stmatrix::list(arch),
            red::list(arch),
            register::list(arch),
            convert::list(arch),
            convert_int::list(arch),
            convert_through::list(arch),
            unary::list(arch),
            special::list(arch),
            binary::list(arch),
            compare::list(arch),
            reduce::list(arch),
            shuffle::list(arch),
            fma::list(arch),
            mma::list(arch),
            wgmma::list(arch),
            sync::list(arch),
        ];
        let atoms = families.into_iter().flatten().filter(|r| r.req.supports(arch));
        let mut out = Atoms { list: vec![], by_name: HashMap::new(), by_kind: HashMap::new() };
        atoms.for_each(|atom| out.push(atom));
        out
    }

    /// The first atom of a name is the one that is found; the sweep refuses a second.
    fn push(&mut self, atom: Atom) {
        let i = self.list.len();
        self.by_name.entry(atom.name).or_insert(i);
        for kind in atom.kinds() {
            self.by_kind.entry(kind).or_default().push(i);
        }
        self.list.push(atom);
    }
}

impl AtomTable {
    /// The table of `arch`.
    pub fn new(arch: Arch) -> Self {
        let place = Arch::ALL.iter().position(|a| *a == arch).unwrap_or(0);
        let atoms = SHARED[place]
            .get_or_init(|| AtomTable { arch, atoms: Arc::new(Atoms::of(arch)) }.measured().atoms);
        AtomTable { arch, atoms: atoms.clone() }
    }

    pub(crate) fn atom_mut(&mut self, name: &str) -> Option<&mut Atom> {
        let i = *self.atoms.by_name.get(name)?;
        Arc::make_mut(&mut self.atoms).list.get_mut(i)
    }

    /// The atom of that name.
    pub fn get(&self, name: &str) -> Option<&Atom> {
        self.atoms.by_name.get(name).map(|i| &self.atoms.list[*i])
    }

    /// The atom of that name.
    ///
    /// # Errors
    /// None has it: what to write instead.
    pub fn find(&self, name: &str) -> Result<&Atom, NoAtom> {
        self.get(name).ok_or_else(|| {
            let archs = archs_with(&|atom| atom.name == name);
            let near = if archs.is_empty() { self.nearest_names(name) } else { vec![] };
            let shown = name.chars().take(MAX_COMPARED).collect();
            NoAtom { arch: self.arch, name: shown, archs, near }
        })
    }

    /// Every atom, by family.
    pub fn atoms(&self) -> &[Atom] {
        &self.atoms.list
    }

    /// A number for what the atoms of the table are, the same on every machine and another one
    /// where one of them is added, removed or changed. What they cost is left out.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let none = Cost {
            issue_cycles: 0.0,
            completion_cycles: 0.0,
            per_sm_per_cycle: Rate::Ops(0.0),
            emulated: false,
            source: "",
        };
        // FNV-1a.
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        for atom in &self.atoms.list {
            let text = format!("{:?}\n", Atom { cost: none, ..atom.clone() });
            for byte in text.bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        hash
    }

    /// The table without the atoms that `keep` refuses.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&Atom) -> bool) -> Self {
        let mut kept = Atoms { list: vec![], by_name: HashMap::new(), by_kind: HashMap::new() };
        self.atoms.list.iter().filter(|atom| keep(atom)).for_each(|atom| kept.push(atom.clone()));
        AtomTable { arch: self.arch, atoms: Arc::new(kept) }
    }

    /// The atoms that implement specs of that kind, in the order of the table.
    pub fn implementing(&self, kind: SpecKind) -> impl Iterator<Item = &Atom> {
        self.atoms.by_kind.get(&kind).into_iter().flatten().map(|i| &self.atoms.list[*i])
    }

    /// The atom of a synchronization statement whose number is known to be from `lo` to `hi` and a
    /// multiple of `div`; `remote` for an mbarrier of another block, whose `{rank}` the atom takes.
    /// Of several atoms the first that fits.
    ///
    /// # Errors
    /// Which architectures have the statement, or which numbers it takes.
    pub fn sync(
        &self,
        op: SyncOp,
        number: Option<(Option<i64>, Option<i64>, i64)>,
        remote: bool,
    ) -> Result<&Atom, NoSync> {
        let fits = |atom: &&Atom| match (atom.numbers.first(), number) {
            (Some(n), Some((lo, hi, div))) => n.takes(lo, hi, div),
            (None, None) => true,
            _ => false,
        };
        let has = |r: &Atom| r.op == AtomOp::Sync(op) && r.number("rank").is_some() == remote;
        let own = || self.atoms().iter().filter(|r| has(r));
        own().find(fits).ok_or_else(|| {
            // Several atoms may take the same.
            let mut takes: Vec<String> = vec![];
            for number in own().filter_map(|r| r.numbers.first()).map(ToString::to_string) {
                if !takes.contains(&number) {
                    takes.push(number);
                }
            }
            NoSync { op, arch: self.arch, remote, takes, archs: archs_with(&has) }
        })
    }

    /// The atom that elects one thread of each of these groups.
    ///
    /// # Errors
    /// D0307 where the architecture elects none, V0214 where groups have another size or begin
    /// elsewhere than those that it elects of.
    pub fn elect(
        &self,
        p: &Program,
        groups: ThreadsId,
        span: Span,
    ) -> Result<&Atom, Box<Diagnostic>> {
        let groups = &p.threads[groups];
        let n_threads = groups.levels.last().and_then(|l| l.to_fixed()).map(|l| l.size());
        let elects = |r: &Atom| r.op == AtomOp::Elect;
        let Some(atom) = self.atoms().iter().find(|r| elects(r)) else {
            let list: Vec<String> = archs_with(&elects).iter().map(|a| format!("`{a}`")).collect();
            let text = format!("{} elects no lane of a warp", self.arch);
            let help = format!("compile for {}, or name a thread", list.join(", "));
            return Err(Box::new(Diagnostic::new(Code::NoSync, span, text).help(help)));
        };
        if n_threads == Some(atom.group) {
            if threads::placed(p, groups, 1, atom) {
                return Ok(atom);
            }
            let text = format!(
                "a lane is elected of groups that are not known to begin at a multiple of {} threads",
                atom.group
            );
            let help = format!("take whole warps: `#cta.tile([{}])`", atom.group);
            return Err(Box::new(Diagnostic::new(Code::ThreadLayout, span, text).help(help)));
        }
        let text = format!("a lane is elected of groups of {} threads", atom.group);
        let help = format!("take tiles: `#cta.tile([{}])`", atom.group);
        Err(Box::new(Diagnostic::new(Code::ThreadLayout, span, text).help(help)))
    }

    /// The atom of a `barrier`.
    ///
    /// # Errors
    /// I0901 where the table has none: every architecture has barriers.
    pub fn barrier(&self, scope: BarrierScope) -> Result<&Atom, Box<Diagnostic>> {
        let found = self.atoms().iter().find(|r| r.op == AtomOp::Barrier(scope));
        found.ok_or_else(|| {
            let text = format!("{} has no atom for a barrier", self.arch);
            Box::new(Diagnostic::new(Code::Internal, Span::default(), text))
        })
    }

    /// The table with `atom` in the place of the atom of that name, or at the end where there is
    /// none.
    #[must_use]
    pub fn with(mut self, atom: Atom) -> Self {
        let mut atoms = self.atoms.list.clone();
        match self.atoms.by_name.get(atom.name) {
            Some(i) => atoms[*i] = atom,
            None => atoms.push(atom),
        }
        let mut changed = Atoms { list: vec![], by_name: HashMap::new(), by_kind: HashMap::new() };
        atoms.into_iter().for_each(|atom| changed.push(atom));
        self.atoms = Arc::new(changed);
        self
    }

    /// Up to three names that begin with `name`, or as much of it as any does, or else those that
    /// look most like it, the nearest first.
    pub fn nearest_names(&self, name: &str) -> Vec<&'static str> {
        // As a person begins to write it: whole parts, as in `mma.m16n8k16` or `cp.async`.
        let begins = |r: &&Atom| {
            let rest = r.name.strip_prefix(name.trim_end_matches('.'));
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        if !name.is_empty() && self.atoms.list.iter().any(|r| begins(&r)) {
            return self.atoms.list.iter().filter(begins).map(|r| r.name).take(3).collect();
        }
        let name: String = name.chars().take(MAX_COMPARED).collect();
        let mut ranked: Vec<(usize, &'static str)> =
            self.atoms.list.iter().map(|r| (strsim::levenshtein(&name, r.name), r.name)).collect();
        ranked.sort_by_key(|(d, _)| *d);
        // Names that are farther away are not meant where one differs by a letter or two.
        let least = ranked.first().map_or(0, |(d, _)| *d);
        let is_near = |d: usize| least > MAX_TYPOS || d == least;
        ranked.into_iter().filter(|(d, _)| is_near(*d)).take(3).map(|(_, n)| n).collect()
    }
}

/// The architectures that have such an atom, oldest first.
fn archs_with(has: &dyn Fn(&Atom) -> bool) -> Vec<Arch> {
    let one = |arch: &&Arch| AtomTable::new(**arch).atoms().iter().any(has);
    Arch::ALL.iter().filter(one).copied().collect()
}

/// A name that no atom of an architecture has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAtom {
    /// Where it was sought.
    pub arch: Arch,
    /// The name, or as much of it as a message holds.
    pub name: String,
    /// Architectures that have it, oldest first.
    archs: Vec<Arch>,
    /// Where none has, names that look like it, the nearest first.
    near: Vec<&'static str>,
}

impl NoAtom {
    /// What to do instead: an action.
    pub fn help(&self) -> String {
        let quoted = |names: &mut dyn Iterator<Item = &str>| -> String {
            names.map(|n| format!("`{n}`")).collect::<Vec<_>>().join(" or ")
        };
        match &self.archs[..] {
            [] => format!("did you mean {}?", quoted(&mut self.near.iter().copied())),
            archs => {
                let archs = quoted(&mut archs.iter().map(|a| a.as_str()));
                format!("compile for {archs}, which has it")
            }
        }
    }

    /// The error about a spec that names it.
    pub fn diagnostic(&self, spec: &Spec) -> Diagnostic {
        let d = Diagnostic::new(Code::UnknownAtom, spec.span, self.to_string()).help(self.help());
        match (&self.near[..], spec.word(Key::Atom)) {
            ([only], Some(word)) => d.edit(word, *only),
            _ => d,
        }
    }
}

impl fmt::Display for NoAtom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has no atom `{}`", self.arch, self.name)
    }
}

impl std::error::Error for NoAtom {}

/// A synchronization statement that an architecture does not have, or not with this number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSync {
    /// The statement.
    pub op: SyncOp,
    /// Where it was sought.
    pub arch: Arch,
    /// Whether it was asked for an mbarrier of another block.
    pub remote: bool,
    /// The numbers that it takes there; empty where it is not there at all, or takes none.
    pub takes: Vec<String>,
    /// Which architectures have it.
    pub archs: Vec<Arch>,
}

impl NoSync {
    /// The error about the statement at `span`.
    pub fn diagnostic(&self, span: Span) -> Diagnostic {
        let NoSync { op, arch, remote: _, takes, archs } = self;
        let d = Diagnostic::new(Code::NoSync, span, self.to_string());
        if archs.contains(arch) {
            return d
                .label(format!("it takes {}", takes.join(", or ")))
                .help("write such a number, or one whose range is known to fit");
        }
        if archs.is_empty() {
            return d
                .label("no architecture does this to an mbarrier of another block")
                .help("remove `.peer`, and let the other block do it");
        }
        let list: Vec<String> = archs.iter().map(|a| format!("`{a}`")).collect();
        d.label(format!("`{op}` is unknown there")).help(format!("compile for {}", list.join(", ")))
    }
}

impl fmt::Display for NoSync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoSync { op, arch, remote, archs, takes: _ } = self;
        let of = if *remote { " of another block's mbarrier" } else { "" };
        match archs.contains(arch) {
            true => write!(f, "{arch} has no `{op}`{of} with this number"),
            false => write!(f, "{arch} has no `{op}`{of}"),
        }
    }
}

impl std::error::Error for NoSync {}

/// Characters of an unknown name that are looked at: it may be as long as a file.
const MAX_COMPARED: usize = 64;

/// Letters of a name that are taken to be wrong by mistake.
const MAX_TYPOS: usize = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_tell_what_atoms_are_and_not_what_they_cost() {
        let print = |arch| AtomTable::new(arch).fingerprint();
        assert_ne!(print(Arch::Sm80), print(Arch::Sm90a));
        let mut table = AtomTable::new(Arch::Sm80);
        let before = table.fingerprint();
        table.atom_mut("mma.m16n8k16.f32.f16").unwrap().cost.issue_cycles += 1.0;
        assert_eq!(table.fingerprint(), before);
        table.atom_mut("mma.m16n8k16.f32.f16").unwrap().group = 64;
        assert_ne!(table.fingerprint(), before);
        assert_ne!(table.filtered(|a| a.name != "mov.b128").fingerprint(), before);
    }

    #[test]
    fn names_are_found_and_guessed() {
        let table = AtomTable::new(Arch::Sm80);
        assert!(table.get("mma.m16n8k16.f32.f16").is_some());
        assert_eq!(table.nearest_names("ldmatrx.x4.b16")[0], "ldmatrix.x4.b16");
        assert_eq!(table.nearest_names(&"x".repeat(1 << 20)).len(), 3);
        assert!(AtomTable::new(Arch::Sm70).get("ldmatrix.x4.b16").is_none());
    }

    #[test]
    fn an_atom_can_be_replaced() {
        let table = AtomTable::new(Arch::Sm80);
        let mut atom = table.atoms()[0].clone();
        atom.cite = "changed";
        let changed = table.clone().with(atom.clone());
        assert_eq!(changed.atoms().len(), table.atoms().len());
        assert_eq!(changed.get(atom.name), Some(&atom));
        atom.name = "new.atom";
        assert_eq!(table.clone().with(atom).atoms().len(), table.atoms().len() + 1);
    }
}
