//! The rows that one architecture has.

use crate::arch::Arch;
use crate::row::Atom;
use crate::{
    binary, convert, convert_int, cp_async, fma, global, ldmatrix, mma, reduce, register, shared,
    shuffle, special, stmatrix, unary,
};

/// Every row of one architecture.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomTable {
    /// Whose.
    pub arch: Arch,
    rows: Vec<Atom>,
}

impl AtomTable {
    /// The table of `arch`.
    pub fn new(arch: Arch) -> Self {
        let families = [
            global::list(arch),
            shared::list(arch),
            cp_async::list(arch),
            ldmatrix::list(arch),
            stmatrix::list(arch),
            register::list(arch),
            convert::list(arch),
            convert_int::list(arch),
            unary::list(arch),
            special::list(arch),
            binary::list(arch),
            reduce::list(arch),
            shuffle::list(arch),
            fma::list(arch),
            mma::list(arch),
        ];
        let rows = families.into_iter().flatten().filter(|r| r.req.supports(arch)).collect();
        AtomTable { arch, rows }.measured()
    }

    pub(crate) fn row_mut(&mut self, name: &str) -> Option<&mut Atom> {
        self.rows.iter_mut().find(|r| r.name == name)
    }

    /// The row of that name.
    pub fn get(&self, name: &str) -> Option<&Atom> {
        self.rows.iter().find(|r| r.name == name)
    }

    /// Every row, by family.
    pub fn rows(&self) -> &[Atom] {
        &self.rows
    }

    /// The table with `row` in the place of the row of that name, or at the end where there is none.
    #[must_use]
    pub fn with(mut self, row: Atom) -> Self {
        match self.rows.iter_mut().find(|r| r.name == row.name) {
            Some(old) => *old = row,
            None => self.rows.push(row),
        }
        self
    }

    /// Up to three names that look most like `name`, the nearest first.
    pub fn nearest_names(&self, name: &str) -> Vec<&'static str> {
        let name: Vec<char> = name.chars().take(MAX_COMPARED).collect();
        let mut ranked: Vec<(usize, &'static str)> =
            self.rows.iter().map(|r| (distance(&name, r.name), r.name)).collect();
        ranked.sort_by_key(|(d, _)| *d);
        ranked.into_iter().take(3).map(|(_, n)| n).collect()
    }
}

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
