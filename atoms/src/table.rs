//! Defines [`AtomTable`], all atoms of one architecture, with lookup by name, by kind of spec and
//! by synchronization statement, and the errors for an atom or a statement that the architecture
//! lacks.

use crate::arch::Arch;
use crate::atom::{Atom, AtomOp, AtomOperand, BarrierScope, Cost, NumberForm, Rate};
use crate::threads;
use crate::{
    binary, compare, convert, convert_int, convert_through, cp_async, cp_async_bulk, fma, global,
    ldmatrix, mma, red, reduce, register, shared, shuffle, special, stmatrix, sync, unary, wgmma,
};
use carbyne_ir::ast::{Key, SpecKind, SyncOp};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Program, Spec, Sync, ThreadsId};
use carbyne_ir::span::Span;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Every atom of one architecture.
///
/// All atoms are made once per process, and all tables of an architecture share them. To make or to
/// copy a table is cheap.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomTable {
    /// The architecture whose atoms these are.
    pub arch: Arch,
    atoms: Arc<Atoms>,
}

/// A list of atoms with two indices.
#[derive(Clone, Debug, PartialEq)]
struct Atoms {
    list: Vec<Atom>,
    by_name: HashMap<&'static str, usize>,
    /// Indices of `list`, in ascending order.
    by_kind: HashMap<SpecKind, Vec<usize>>,
}

/// The atoms of each architecture, in the order of [`Arch::ALL`].
static SHARED: [OnceLock<Arc<Atoms>>; Arch::ALL.len()] =
    [const { OnceLock::new() }; Arch::ALL.len()];

impl Atoms {
    fn for_arch(arch: Arch) -> Self {
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

    /// Appends an atom. A lookup by name finds the first atom with the name; the tests in
    /// `sweep.rs` refuse a second.
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
        let atoms = SHARED[place].get_or_init(|| {
            AtomTable { arch, atoms: Arc::new(Atoms::for_arch(arch)) }.measured().atoms
        });
        AtomTable { arch, atoms: atoms.clone() }
    }

    pub(crate) fn atom_mut(&mut self, name: &str) -> Option<&mut Atom> {
        let i = *self.atoms.by_name.get(name)?;
        Arc::make_mut(&mut self.atoms).list.get_mut(i)
    }

    /// The atom with this name.
    pub fn get(&self, name: &str) -> Option<&Atom> {
        self.atoms.by_name.get(name).map(|i| &self.atoms.list[*i])
    }

    /// The atom with this name.
    ///
    /// # Errors
    /// No atom has the name. The error holds architectures that have it, or similar names.
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

    /// A hash of all fields of all atoms except their costs. It is equal on every machine, and
    /// differs if an atom is added, removed or changed.
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

    /// The table without the atoms for which `keep` returns false.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&Atom) -> bool) -> Self {
        let mut kept = Atoms { list: vec![], by_name: HashMap::new(), by_kind: HashMap::new() };
        self.atoms.list.iter().filter(|atom| keep(atom)).for_each(|atom| kept.push(atom.clone()));
        AtomTable { arch: self.arch, atoms: Arc::new(kept) }
    }

    /// The atoms that implement specs of this kind, in the order of the table.
    pub fn implementing(&self, kind: SpecKind) -> impl Iterator<Item = &Atom> {
        self.atoms.by_kind.get(&kind).into_iter().flatten().map(|i| &self.atoms.list[*i])
    }

    /// The atom of a synchronization statement; the first one if several fit. `number` gives the
    /// known bounds of the statement's number and a divisor: (`lo`, `hi`, `div`).
    ///
    /// # Errors
    /// The architecture does not have the statement, or the statement does not take this number.
    pub fn sync(
        &self,
        op: SyncOp,
        number: Option<(Option<i64>, Option<i64>, i64)>,
        form: SyncForm,
    ) -> Result<&Atom, NoSync> {
        let fits = |atom: &&Atom| match (atom.numbers.first(), number) {
            (Some(n), Some((lo, hi, div))) => n.takes(lo, hi, div),
            (None, None) => true,
            _ => false,
        };
        let has = |r: &Atom| r.op == AtomOp::Sync(op) && SyncForm::of(r) == form;
        let own = || self.atoms().iter().filter(|r| has(r));
        own().find(fits).ok_or_else(|| {
            // Several atoms may take the same numbers.
            let mut takes: Vec<String> = vec![];
            for number in own().filter_map(|r| r.numbers.first()) {
                let is_constant =
                    number.form == NumberForm::Immediate && number.least < number.most;
                let text = format!("{}{number}", if is_constant { "a constant " } else { "" });
                if !takes.contains(&text) {
                    takes.push(text);
                }
            }
            let found = match number {
                Some((Some(lo), Some(hi), _)) if lo == hi => format!("{lo}"),
                Some((Some(lo), Some(hi), _)) => format!("a number from {lo} to {hi}"),
                Some(_) => "a number without bounds".to_owned(),
                None => "no number".to_owned(),
            };
            NoSync { op, arch: self.arch, form, found, takes, archs: archs_with(&has) }
        })
    }

    /// The atom that elects one thread of each of these groups.
    ///
    /// # Errors
    /// D0307 if the architecture has no such atom. V0214 if the groups have another size than the
    /// atom's group, or do not begin at a multiple of this size.
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
            let text = format!("{} has no instruction that elects a thread (`elect`)", self.arch);
            let help = format!("compile for {}, or name a thread by its index", list.join(", "));
            return Err(Box::new(Diagnostic::new(Code::NoSync, span, text).help(help)));
        };
        if n_threads == Some(atom.group) {
            if threads::placed(p, groups, 1, atom) {
                return Ok(atom);
            }
            let text = format!(
                "`elect` needs groups that begin at a multiple of {} threads, but these groups are \
                 not known to do so",
                atom.group
            );
            let help = format!("use whole warps: `#cta.tile([{}])`", atom.group);
            return Err(Box::new(Diagnostic::new(Code::ThreadLayout, span, text).help(help)));
        }
        let text = format!(
            "`elect` needs groups of {} threads, but these groups have another size",
            atom.group
        );
        let help = format!("use tiles of {} threads: `#cta.tile([{0}])`", atom.group);
        Err(Box::new(Diagnostic::new(Code::ThreadLayout, span, text).help(help)))
    }

    /// The atom of a `barrier`.
    ///
    /// # Errors
    /// I0901 if the table has none. Every architecture has barriers.
    pub fn barrier(&self, scope: BarrierScope) -> Result<&Atom, Box<Diagnostic>> {
        let found = self.atoms().iter().find(|r| r.op == AtomOp::Barrier(scope));
        found.ok_or_else(|| {
            let text = format!("{} has no atom for a barrier", self.arch);
            Box::new(Diagnostic::new(Code::Internal, Span::default(), text))
        })
    }

    /// Replaces the atom with the same name, or appends `atom` if the table has no such name.
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

    /// Up to three similar names for a message. These are names of which `name` is a prefix that
    /// ends at a dot. If there are none, the names with the smallest edit distance follow, the
    /// nearest first.
    pub fn nearest_names(&self, name: &str) -> Vec<&'static str> {
        // A partly written name: whole parts, as in `mma.m16n8k16` or `cp.async`.
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
        // If a name differs by a letter or two only, names farther away are not meant.
        let least = ranked.first().map_or(0, |(d, _)| *d);
        let is_near = |d: usize| least > MAX_TYPOS || d == least;
        ranked.into_iter().filter(|(d, _)| is_near(*d)).take(3).map(|(_, n)| n).collect()
    }
}

/// The architectures that have an atom for which `has` holds, oldest first.
fn archs_with(has: &dyn Fn(&Atom) -> bool) -> Vec<Arch> {
    let one = |arch: &&Arch| AtomTable::new(**arch).atoms().iter().any(has);
    Arch::ALL.iter().filter(one).copied().collect()
}

/// The error for a name that no atom of an architecture has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAtom {
    /// The architecture.
    pub arch: Arch,
    /// The name, or its first characters.
    pub name: String,
    /// The architectures that have an atom with this name, oldest first.
    archs: Vec<Arch>,
    /// Similar names, the nearest first, if no architecture has the name.
    near: Vec<&'static str>,
}

impl NoAtom {
    /// The help of the message: an action.
    pub fn help(&self) -> String {
        let quoted = |names: &mut dyn Iterator<Item = &str>| -> String {
            names.map(|n| format!("`{n}`")).collect::<Vec<_>>().join(" or ")
        };
        match &self.archs[..] {
            [] => format!("did you mean {}?", quoted(&mut self.near.iter().copied())),
            [oldest, _, ..] if Arch::ALL.ends_with(&self.archs) => {
                format!("compile for `{oldest}` or a later architecture, which have it")
            }
            archs => {
                let archs = quoted(&mut archs.iter().map(|a| a.as_str()));
                format!("compile for {archs}, which has it")
            }
        }
    }

    /// The error about a spec that names the atom.
    pub fn diagnostic(&self, spec: &Spec) -> Diagnostic {
        let at = spec.word(Key::Atom).unwrap_or(spec.span);
        let d = Diagnostic::new(Code::UnknownAtom, at, self.to_string());
        let d = match &self.archs[..] {
            [] => d.label("no architecture has an atom of this name").help(self.help()),
            _ => d
                .label("an atom of another architecture")
                .help(format!("remove `atom=`, so that decompose chooses, or {}", self.help())),
        };
        match (&self.near[..], spec.word(Key::Atom)) {
            ([only], Some(word)) => d.edit(word, *only),
            _ => d,
        }
    }
}

impl fmt::Display for NoAtom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.archs[..] {
            [] => write!(f, "there is no atom `{}`", self.name),
            _ => write!(f, "{} has no atom `{}`", self.arch, self.name),
        }
    }
}

impl std::error::Error for NoAtom {}

/// The form of a synchronization statement, by which atoms of one operation differ.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncForm {
    /// Whether it names an mbarrier of another block, whose rank in the cluster is `{rank}` in the
    /// template.
    pub remote: bool,
    /// Whether it has `after=`, the operand `{X}` of the template.
    pub after: bool,
}

impl SyncForm {
    /// The form of a statement of a program.
    pub fn of_stmt(p: &Program, sync: &Sync) -> Self {
        let remote = sync.tensor.is_some_and(|t| p.tensors[t].peer.is_some());
        SyncForm { remote, after: sync.after.is_some() }
    }

    /// The form of a synchronization statement that an atom implements.
    pub fn of(atom: &Atom) -> Self {
        let is_register = |o: &AtomOperand| o.memory.iter().all(|m| m.is_per_thread());
        let is_sync = matches!(atom.op, AtomOp::Sync(_));
        let after = is_sync && atom.operands.iter().any(is_register);
        SyncForm { remote: atom.number("rank").is_some(), after }
    }
}

/// The error for a synchronization statement that an architecture does not have, or that does not
/// take this number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSync {
    /// The statement.
    pub op: SyncOp,
    /// The architecture.
    pub arch: Arch,
    /// The form of the statement.
    pub form: SyncForm,
    /// The number of the statement: `2`, `a number from 0 to 2`.
    pub found: String,
    /// The numbers that the statement takes on this architecture. Empty if the architecture does
    /// not have the statement, or if the statement takes no number.
    pub takes: Vec<String>,
    /// The architectures that have the statement.
    pub archs: Vec<Arch>,
}

impl NoSync {
    /// The error about the statement at `span`.
    pub fn diagnostic(&self, span: Span) -> Diagnostic {
        let NoSync { op, arch, form, takes, archs, found: _ } = self;
        let d = Diagnostic::new(Code::NoSync, span, self.to_string());
        if archs.contains(arch) {
            return d
                .label(format!("it takes {}", takes.join(", or ")))
                .help("write a number in this range, or an expression that stays in it: `k % 2`");
        }
        if archs.is_empty() && form.after {
            return d
                .label("no architecture has this statement with `after=` for another block")
                .help("remove `after=`");
        }
        if archs.is_empty() {
            return d
                .label("no architecture has this statement for an mbarrier of another block")
                .help("remove `.peer` and write this statement in the other block");
        }
        let list: Vec<String> = archs.iter().map(|a| format!("`{a}`")).collect();
        d.label(format!("`{op}` does not exist there"))
            .help(format!("compile for {}", list.join(", ")))
    }
}

impl fmt::Display for NoSync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NoSync { op, arch, form, found, archs, takes: _ } = self;
        let of = match form {
            SyncForm { remote: true, .. } => " for an mbarrier of another block",
            SyncForm { after: true, .. } => " with `after=`",
            SyncForm { .. } => "",
        };
        match archs.contains(arch) {
            true => write!(f, "`{op}`{of} does not take {found}"),
            false => write!(f, "{arch} has no `{op}`{of}"),
        }
    }
}

impl std::error::Error for NoSync {}

/// The number of characters of an unknown name that are compared and shown: the name may be as long
/// as a file.
const MAX_COMPARED: usize = 64;

/// The largest edit distance that counts as a typing error.
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
