//! The rows that one architecture has.

use crate::arch::Arch;
use crate::row::{Atom, AtomOp, BarrierScope};
use crate::{
    binary, compare, convert, convert_int, convert_through, cp_async, cp_async_bulk, fma, global,
    ldmatrix, mma, red, reduce, register, shared, shuffle, special, stmatrix, sync, unary, wgmma,
};
use carbyne_ir::ast::{SpecKind, SyncOp};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::span::Span;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Every row of one architecture.
///
/// Rows are made once a process and shared by its tables, so that making a table and copying it are cheap.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomTable {
    /// Whose.
    pub arch: Arch,
    rows: Arc<Rows>,
}

/// Rows, and where to find them.
#[derive(Clone, Debug, PartialEq)]
struct Rows {
    list: Vec<Atom>,
    by_name: HashMap<&'static str, usize>,
    /// In the order of `list`.
    by_kind: HashMap<SpecKind, Vec<usize>>,
}

/// The rows of each architecture, in the order of [`Arch::ALL`].
static SHARED: [OnceLock<Arc<Rows>>; Arch::ALL.len()] =
    [const { OnceLock::new() }; Arch::ALL.len()];

impl Rows {
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
        let rows = families.into_iter().flatten().filter(|r| r.req.supports(arch));
        let mut out = Rows { list: vec![], by_name: HashMap::new(), by_kind: HashMap::new() };
        rows.for_each(|row| out.push(row));
        out
    }

    /// The first row of a name is the one that is found; the sweep refuses a second.
    fn push(&mut self, row: Atom) {
        let i = self.list.len();
        self.by_name.entry(row.name).or_insert(i);
        for kind in row.kinds() {
            self.by_kind.entry(kind).or_default().push(i);
        }
        self.list.push(row);
    }
}

impl AtomTable {
    /// The table of `arch`.
    pub fn new(arch: Arch) -> Self {
        let place = Arch::ALL.iter().position(|a| *a == arch).unwrap_or(0);
        let rows = SHARED[place]
            .get_or_init(|| AtomTable { arch, rows: Arc::new(Rows::of(arch)) }.measured().rows);
        AtomTable { arch, rows: rows.clone() }
    }

    pub(crate) fn row_mut(&mut self, name: &str) -> Option<&mut Atom> {
        let i = *self.rows.by_name.get(name)?;
        Arc::make_mut(&mut self.rows).list.get_mut(i)
    }

    /// The row of that name.
    pub fn get(&self, name: &str) -> Option<&Atom> {
        self.rows.by_name.get(name).map(|i| &self.rows.list[*i])
    }

    /// Every row, by family.
    pub fn rows(&self) -> &[Atom] {
        &self.rows.list
    }

    /// The table without the rows that `keep` refuses.
    #[must_use]
    pub fn filtered(&self, keep: impl Fn(&Atom) -> bool) -> Self {
        let mut kept = Rows { list: vec![], by_name: HashMap::new(), by_kind: HashMap::new() };
        self.rows.list.iter().filter(|row| keep(row)).for_each(|row| kept.push(row.clone()));
        AtomTable { arch: self.arch, rows: Arc::new(kept) }
    }

    /// The rows that implement specs of that kind, in the order of the table.
    pub fn implementing(&self, kind: SpecKind) -> impl Iterator<Item = &Atom> {
        self.rows.by_kind.get(&kind).into_iter().flatten().map(|i| &self.rows.list[*i])
    }

    /// The row of a synchronization statement whose number is known to be from `lo` to `hi` and a
    /// multiple of `div`; `remote` for an mbarrier of another block, whose `{rank}` the row takes. Of
    /// several rows the first that fits.
    ///
    /// # Errors
    /// Which architectures have the statement, or which numbers it takes.
    pub fn sync(
        &self,
        op: SyncOp,
        number: Option<(Option<i64>, Option<i64>, i64)>,
        remote: bool,
    ) -> Result<&Atom, NoSync> {
        let fits = |row: &&Atom| match (row.numbers.first(), number) {
            (Some(n), Some((lo, hi, div))) => n.takes(lo, hi, div),
            (None, None) => true,
            _ => false,
        };
        let has = |r: &Atom| r.op == AtomOp::Sync(op) && r.number("rank").is_some() == remote;
        let own = || self.rows().iter().filter(|r| has(r));
        own().find(fits).ok_or_else(|| NoSync {
            op,
            arch: self.arch,
            remote,
            takes: own().filter_map(|r| r.numbers.first()).map(|n| n.to_string()).collect(),
            archs: archs_with(&has),
        })
    }

    /// The row that elects one of so many threads.
    ///
    /// # Errors
    /// D0307 where the architecture elects none, V0214 where groups have another size.
    pub fn elect(&self, n_threads: Option<i64>, span: Span) -> Result<&Atom, Box<Diagnostic>> {
        let elects = |r: &Atom| r.op == AtomOp::Elect;
        let Some(row) = self.rows().iter().find(|r| elects(r)) else {
            let list: Vec<String> = archs_with(&elects).iter().map(|a| format!("`{a}`")).collect();
            let text = format!("{} elects no lane of a warp", self.arch);
            let help = format!("compile for {}, or name a thread", list.join(", "));
            return Err(Box::new(Diagnostic::new(Code::NoSync, span, text).help(help)));
        };
        if n_threads == Some(row.group) {
            return Ok(row);
        }
        let text = format!("a lane is elected of groups of {} threads", row.group);
        let help = format!("take tiles: `#cta.tile([{}])`", row.group);
        Err(Box::new(Diagnostic::new(Code::ThreadLayout, span, text).help(help)))
    }

    /// The row of a `barrier`.
    ///
    /// # Errors
    /// I0901 where the table has none: every architecture has barriers.
    pub fn barrier(&self, scope: BarrierScope) -> Result<&Atom, Box<Diagnostic>> {
        let found = self.rows().iter().find(|r| r.op == AtomOp::Barrier(scope));
        found.ok_or_else(|| {
            let text = format!("{} has no row for a barrier", self.arch);
            Box::new(Diagnostic::new(Code::Internal, Span::default(), text))
        })
    }

    /// The table with `row` in the place of the row of that name, or at the end where there is none.
    #[must_use]
    pub fn with(mut self, row: Atom) -> Self {
        let mut rows = self.rows.list.clone();
        match self.rows.by_name.get(row.name) {
            Some(i) => rows[*i] = row,
            None => rows.push(row),
        }
        let mut changed = Rows { list: vec![], by_name: HashMap::new(), by_kind: HashMap::new() };
        rows.into_iter().for_each(|row| changed.push(row));
        self.rows = Arc::new(changed);
        self
    }

    /// What to write for a name that the table does not have: where others have it, or names that are near.
    pub fn instead_of(&self, name: &str) -> String {
        let archs = archs_with(&|row| row.name == name);
        if !archs.is_empty() {
            let list: Vec<String> = archs.iter().map(|a| format!("`{a}`")).collect();
            return format!("compile for {}, which has it", list.join(" or "));
        }
        let near: Vec<String> = self.nearest_names(name).iter().map(|n| format!("`{n}`")).collect();
        format!("did you mean {}?", near.join(" or "))
    }

    /// Up to three names that begin with `name`, or as much of it as any does, or else those that look most
    /// like it, the nearest first.
    pub fn nearest_names(&self, name: &str) -> Vec<&'static str> {
        // As a person begins to write it: whole parts, as in `mma.m16n8k16` or `cp.async`.
        let begins = |r: &&Atom| {
            let rest = r.name.strip_prefix(name.trim_end_matches('.'));
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        if !name.is_empty() && self.rows.list.iter().any(|r| begins(&r)) {
            return self.rows.list.iter().filter(begins).map(|r| r.name).take(3).collect();
        }
        let name: Vec<char> = name.chars().take(MAX_COMPARED).collect();
        let mut ranked: Vec<(usize, &'static str)> =
            self.rows.list.iter().map(|r| (distance(&name, r.name), r.name)).collect();
        ranked.sort_by_key(|(d, _)| *d);
        ranked.into_iter().take(3).map(|(_, n)| n).collect()
    }
}

/// The architectures that have such a row, oldest first.
fn archs_with(has: &dyn Fn(&Atom) -> bool) -> Vec<Arch> {
    let one = |arch: &&Arch| AtomTable::new(**arch).rows().iter().any(has);
    Arch::ALL.iter().filter(one).copied().collect()
}

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

/// Insertions, deletions and replacements that turn `a` into `b`.
fn distance(a: &[char], b: &str) -> usize {
    let mut row: Vec<usize> = (0..=a.len()).collect();
    for (i, cb) in b.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, ca) in a.iter().enumerate() {
            let replaced = diagonal + usize::from(*ca != cb);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[a.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let d = |a: &str, b: &str| distance(&a.chars().collect::<Vec<_>>(), b);
        assert_eq!(d("kitten", "sitting"), 3);
        assert_eq!(d("", "abc"), 3);
        assert_eq!(d("abc", ""), 3);
        assert_eq!(d("abc", "abc"), 0);
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
    fn a_row_can_be_replaced() {
        let table = AtomTable::new(Arch::Sm80);
        let mut row = table.rows()[0].clone();
        row.cite = "changed";
        let changed = table.clone().with(row.clone());
        assert_eq!(changed.rows().len(), table.rows().len());
        assert_eq!(changed.get(row.name), Some(&row));
        row.name = "new.row";
        assert_eq!(table.clone().with(row).rows().len(), table.rows().len() + 1);
    }
}
