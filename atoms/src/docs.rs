//! Writes atom tables as a Markdown page, with a section for each atom or for several similar ones.
//! `carbyne atoms --markdown` prints the result of [`atoms_markdown`], `carbyne atoms NAME` that of
//! [`atom_markdown`] with a drawing.
//!
//! MatMul atoms that differ only in the number n of columns share one section, as a [`Series`].
//!
//! Invariant: the text depends on the tables alone.

use crate::arch::Arch;
use crate::atom::{
    Addressing, Atom, AtomKind, AtomOperand, Extent, Handover, OperandAccess, Rate, Visibility,
};
use crate::descriptor::{Major, MatrixRule, SwizzleMode, canonical};
use crate::table::AtomTable;
use indexmap::IndexMap;
use std::collections::HashSet;
use std::fmt::Write;

/// Atoms whose names differ only in the number of columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Series<'t> {
    /// The name. If there are several atoms, `N` stands for the number of columns.
    pub title: String,
    /// The atoms of the series, in the order of the table.
    pub atoms: Vec<&'t Atom>,
}

impl<'t> Series<'t> {
    /// The atom whose layouts and costs represent the series: the last one, which has the most
    /// columns.
    pub fn largest(&self) -> &'t Atom {
        self.atoms[self.atoms.len() - 1]
    }

    /// The operation of the atoms: `MatMul 64xNx16`.
    pub fn op(&self) -> String {
        let op = self.largest().op.to_string();
        match columns(self.largest()) {
            Some(n) if self.atoms.len() > 1 => op.replacen(&format!("x{n}x"), "xNx", 1),
            _ => op,
        }
    }

    /// The numbers of columns, if there are several atoms: `8, 16 to 256`.
    pub fn columns(&self) -> Option<String> {
        let all: Vec<i64> = self.atoms.iter().filter_map(|r| columns(r)).collect();
        (self.atoms.len() > 1).then(|| runs(&all))
    }
}

/// All atoms of the tables as series, in the order of the tables. Each atom appears once.
pub fn series(tables: &[AtomTable]) -> Vec<Series<'_>> {
    series_of(tables.iter().flat_map(AtomTable::atoms))
}

/// The atoms as series, in the order of the first atom of each series. Each atom appears once.
pub fn series_of<'t>(atoms: impl Iterator<Item = &'t Atom>) -> Vec<Series<'t>> {
    let mut names = HashSet::new();
    let mut of_title: IndexMap<String, Vec<&'t Atom>> = IndexMap::new();
    for atom in atoms.filter(|atom| names.insert(atom.name)) {
        of_title.entry(title(atom)).or_default().push(atom);
    }
    let series = of_title.into_iter().map(|(title, atoms)| Series { title, atoms });
    let mut all: Vec<Series<'_>> = series.collect();
    // A series of one atom has the name of the atom.
    for only in all.iter_mut().filter(|s| s.atoms.len() == 1) {
        only.title = only.atoms[0].name.to_owned();
    }
    all
}

fn columns(atom: &Atom) -> Option<i64> {
    atom.op.matmul_extents().map(|(_, _, n, _)| n)
}

/// The title of the atom's series: `wgmma.m64nNk16.f32.f16.ss` for `wgmma.m64n8k16.f32.f16.ss`.
fn title(atom: &Atom) -> String {
    match columns(atom) {
        Some(n) => atom.name.replacen(&format!("n{n}k"), "nNk", 1),
        None => atom.name.to_owned(),
    }
}

/// Ascending numbers as text. Of four or more equidistant numbers it shows the first two and the
/// last.
fn runs(all: &[i64]) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut rest = all;
    while let [first, tail @ ..] = rest {
        let step = tail.first().map_or(0, |next| next - first);
        let run = 1 + rest.windows(2).take_while(|pair| pair[1] - pair[0] == step).count();
        match run {
            ..=3 => {
                out.push(first.to_string());
                rest = tail;
            }
            _ => {
                out.push(format!("{first}, {} to {}", tail[0], rest[run - 1]));
                rest = &rest[run..];
            }
        }
    }
    out.join(", ")
}

const DESCRIBED: &str = "
An operand *by descriptor* is a whole tile in shared memory. All threads of the group have the same
descriptor. The tile has one of the canonical layouts of the PTX ISA (Asynchronous Warpgroup Level
Matrix Shared Memory Layout), either dense as below or with gaps between groups of rows. The tile
may be part of a tensor. A K-major tile may begin within the first row of a swizzle's pattern.

| major | A [64,16] of 16 bits | B [16,128] of 16 bits |
| --- | --- | --- |
";

/// All atoms of these tables as Markdown.
///
/// ```
/// use carbyne_atoms::{Arch, AtomTable, docs};
/// let page = docs::atoms_markdown(&[AtomTable::new(Arch::Sm80)]);
/// assert!(page.contains("## `ldmatrix.x4.b16`"));
/// ```
pub fn atoms_markdown(tables: &[AtomTable]) -> String {
    let mut page = String::from(HEAD);
    described_tiles(&mut page);
    for of in series(tables) {
        page.push('\n');
        section(&mut page, &of, tables);
    }
    page
}

/// The section about the atom with this name, or about the series with this title. `None` if
/// neither exists.
pub fn atom_markdown(name: &str, tables: &[AtomTable]) -> Option<String> {
    let alone = |atom| Series { title: name.to_owned(), atoms: vec![atom] };
    let atom = tables.iter().find_map(|t| t.get(name)).map(alone);
    let of = atom.or_else(|| series(tables).into_iter().find(|s| s.title == name))?;
    let mut page = String::new();
    section(&mut page, &of, tables);
    Some(page)
}

const HEAD: &str = "\
# Atoms

A thread-value layout maps (thread, value) to the column-major index in the operand's tile, in units
of the operand. `bN` stands for any scalar types that fill N bits. Costs are cycles of one warp. For
an *emulated* atom the architecture has no unit and executes a sequence of other instructions, which
is many times slower. Of the memories, PM is a number that the caller passes to the kernel by value,
and IX is a computed coordinate.
";

/// Writes the canonical layouts of tiles of 16-bit factors.
fn described_tiles(page: &mut String) {
    page.push_str(DESCRIBED);
    for (major, mode) in
        [Major::K, Major::Mn].into_iter().flat_map(|m| SwizzleMode::ALL.map(|mode| (m, mode)))
    {
        let of = |tile: [i64; 2], k_mode| {
            let rule = MatrixRule { k_mode, majors: &[Major::K, Major::Mn] };
            canonical(&tile, 16, &rule, major, mode).map(|c| c.to_string()).unwrap_or_default()
        };
        let _ = writeln!(page, "| {major} | {} | {} |", of([64, 16], 1), of([16, 128], 0));
    }
}

/// Writes the section about a series, for all architectures that have it.
fn section(page: &mut String, of: &Series<'_>, tables: &[AtomTable]) {
    let atom = of.largest();
    let atoms: Vec<(Arch, &Atom)> =
        tables.iter().filter_map(|t| t.get(atom.name).map(|r| (t.arch, r))).collect();
    // Writing to a string cannot fail.
    let _ = write!(page, "## `{}`\n\n", of.title);
    let threads = if atom.group == 1 {
        "one thread".to_owned()
    } else {
        format!("{} threads `{}`", atom.group, atom.thread_layout)
    };
    let _ = writeln!(page, "{}, {}, {}. {}.", of.op(), atom.req, threads, atom.cite);
    if let AtomKind::Sequence { formula, error } = atom.kind {
        let _ = writeln!(page, "Several instructions: {formula}; error: {error}.");
    }
    if atom.contracts {
        page.push_str(
            "The CUDA compiler may contract a product and the sum or difference that is its only \
             reader to one fused multiply-add.\n",
        );
    }
    if atoms.iter().any(|(_, atom)| atom.calls) {
        page.push_str(
            "ptxas compiles a part of it to a call. A kernel with this atom must have no `wgmma` \
             with a factor in registers.\n",
        );
    }
    if let Some(bound) = atom.error_bound() {
        let _ = writeln!(page, "The error against the exact result y is at most {bound}.");
    }
    if let (Some(all), Some(most)) = (of.columns(), columns(atom)) {
        let _ = writeln!(page, "N is {all}. The text and tables below are for N = {most}.");
    }
    visibility(page, atom);
    let _ = write!(page, "\n```\n{}\n```\n\n", atom.template.text());
    match atom.extent {
        Extent::Tile => {}
        Extent::Vector => {
            page.push_str("It moves a contiguous vector of any number of units.\n\n");
        }
        Extent::Box(n) => {
            let _ = writeln!(page, "It moves a box of a tensor map of {n} modes.\n");
        }
    }
    let done = match atom.visibility {
        Visibility::Immediate => "",
        Visibility::AsyncGroup => {
            "Its results are available after a wait for the thread's group.\n\n"
        }
        Visibility::Mbarrier => {
            "Its results are available after a wait for the mbarrier `bar`.\n\n"
        }
        Visibility::BulkGroup => "It is complete after a wait for the thread's bulk group.\n\n",
        Visibility::WgmmaGroup => {
            "Its results are available after a wait for the group of the warp group.\n\n"
        }
    };
    page.push_str(done);
    for number in &atom.numbers {
        let _ = writeln!(page, "It takes {number}.\n");
    }
    if !atom.operands.is_empty() {
        page.push_str(
            "| operand | access | elements | memory | tile | thread-value layout | align |\n",
        );
        page.push_str("| --- | --- | --- | --- | --- | --- | --- |\n");
    }
    for operand in &atom.operands {
        operand_line(page, operand);
    }
    let gap = if atom.operands.is_empty() { "" } else { "\n" };
    page.push_str(gap);
    for operand in atom.operands.iter().filter(|o| o.around > 0) {
        let (name, n) = (operand.name, operand.around);
        let _ = writeln!(
            page,
            "{name} may begin at any element: the one or two aligned vectors of {n} bytes that \
             contain it are read. If they reach over the end of the tensor, the elements are read \
             one by one. `{{{name}.array}}` is the array that contains it, `{{{name}.at}}` its \
             index there, and `{{{name}.before}}` the number of elements from the beginning of the \
             first vector to it.\n"
        );
    }
    for (name, divisor) in atom.operands.iter().filter_map(|o| Some((o.name, o.divisor?))) {
        let _ = writeln!(
            page,
            "{name} is {divisor}. `{{{name}.reciprocal}}` is the reciprocal, rounded once.\n"
        );
    }
    page.push_str("| architecture | issue | completion | rate per SM and cycle | source |\n");
    page.push_str("| --- | --- | --- | --- | --- |\n");
    let mut rest = atoms.as_slice();
    while let Some((first, atom)) = rest.first() {
        let n = rest.iter().take_while(|(_, r)| r.cost == atom.cost).count();
        let last = rest[n - 1].0;
        let archs = if n == 1 { first.to_string() } else { format!("{first} to {last}") };
        let rate = match atom.cost.per_sm_per_cycle {
            Rate::Bytes(v) => format!("{v} bytes"),
            Rate::Ops(v) => format!("{v} results"),
        };
        let (issue, completion) = (atom.cost.issue_cycles, atom.cost.completion_cycles);
        let emulated = if atom.cost.emulated { "emulated; " } else { "" };
        let source = atom.cost.source;
        let _ =
            writeln!(page, "| {archs} | {issue} | {completion} | {rate} | {emulated}{source} |");
        rest = &rest[n..];
    }
}

/// Writes when the outputs are available, and the meaning of placeholders other than operands.
fn visibility(page: &mut String, atom: &Atom) {
    match atom.handover {
        Some(Handover::ToAtoms) => page.push_str("It hands registers to later `wgmma`.\n"),
        Some(Handover::ToThreads) => page.push_str("It hands the registers of `wgmma` back.\n"),
        None => {}
    }
    let text = match atom.visibility {
        Visibility::Immediate => return,
        Visibility::AsyncGroup => "D is available after `async.commit` and `async.wait(n)`.",
        Visibility::Mbarrier => {
            "D is available after a wait for the phase of the mbarrier that `bar=` names."
        }
        Visibility::BulkGroup => {
            "S may be overwritten after `bulk.commit` and `bulk.wait_read(n)`. D is available \
             after `bulk.wait(n)`."
        }
        Visibility::WgmmaGroup => {
            "`wgmma.fence` hands registers to it. After `wgmma.commit` and `wgmma.wait(n)` D is \
             available, and operands may be overwritten."
        }
    };
    let _ = writeln!(page, "{text}");
    if atom.sets {
        let _ = writeln!(page, "`{{accumulate}}` is 1 in a MatMul and 0 in a MatMul.set.");
    }
}

fn operand_line(page: &mut String, operand: &AtomOperand) {
    let access = match operand.access {
        OperandAccess::Read => "read",
        OperandAccess::Write => "written",
        OperandAccess::ReadWrite => "read and written",
    };
    let memory: Vec<&str> = operand.memory.iter().map(|m| m.as_str()).collect();
    let found = match operand.addressing {
        Addressing::Thread => "",
        Addressing::Descriptor(rule) if rule.majors == [Major::K] => ", by descriptor, K-major",
        Addressing::Descriptor(_) => ", by descriptor",
    };
    let tile: Vec<String> = operand.tile.iter().map(i64::to_string).collect();
    let _ = writeln!(
        page,
        "| {} | {access} | {} | {} | [{}] | `{}` | {} |",
        operand.name,
        operand.elem,
        memory.join(", ") + found,
        tile.join(","),
        operand.tv,
        operand.align,
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_atom_is_on_the_page_once() {
        let tables: Vec<AtomTable> = Arch::ALL.iter().map(|a| AtomTable::new(*a)).collect();
        let page = atoms_markdown(&tables);
        assert_eq!(page, atoms_markdown(&tables));
        let all = series(&tables);
        for atom in tables.iter().flat_map(AtomTable::atoms) {
            let of: Vec<&Series<'_>> =
                all.iter().filter(|s| s.atoms.iter().any(|r| r.name == atom.name)).collect();
            assert_eq!(of.len(), 1, "{}", atom.name);
            let heading = format!("\n## `{}`\n", of[0].title);
            assert_eq!(page.matches(&heading).count(), 1, "{}", atom.name);
            let alone = atom_markdown(atom.name, &tables).expect("it is in the table");
            assert!(alone.contains(atom.template.text()), "{}", atom.name);
        }
        assert_eq!(atom_markdown("mma.m16nNk8.f32.f16", &tables), None);
    }

    #[test]
    fn numbers_of_columns_are_shortened() {
        assert_eq!(runs(&[8, 16, 24, 32, 40]), "8, 16 to 40");
        assert_eq!(runs(&[8, 16, 24, 32, 48, 64, 80]), "8, 16 to 32, 48, 64, 80");
        assert_eq!(runs(&[8, 16]), "8, 16");
        let table = [AtomTable::new(Arch::Sm90a)];
        let all = series(&table);
        let find = |title: &str| all.iter().find(|s| s.title == title).expect("the series exists");
        assert_eq!(find("wgmma.m64nNk16.f32.f16.ss").columns().as_deref(), Some("8, 16 to 256"));
        let integers = find("wgmma.m64nNk32.i32.i8.u8.rs");
        assert_eq!(integers.columns().as_deref(), Some("8, 16 to 32, 48, 64 to 256"));
        assert_eq!(find("mma.m16n8k16.f32.f16").columns(), None);
    }
}
