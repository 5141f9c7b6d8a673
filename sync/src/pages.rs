//! Cells of global memory, in pages: what a block touches lies together, and is found without much looking.

use crate::memory::Cell;
use std::collections::BTreeMap;

/// Cells of a page.
const PAGE: i64 = 64;

/// Cells by their number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages {
    index: BTreeMap<i64, usize>,
    pages: Vec<Vec<Cell>>,
    last: (i64, usize),
    len: usize,
}

impl Pages {
    /// How many cells have been touched.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A cell that is going to be touched.
    #[inline]
    pub(crate) fn touch(&mut self, key: i64) -> Option<&mut Cell> {
        let (page, at) = (key.div_euclid(PAGE), key.rem_euclid(PAGE));
        if self.pages.is_empty() || self.last.0 != page {
            let next = self.pages.len();
            let i = *self.index.entry(page).or_insert(next);
            if i == next {
                self.pages.push(vec![Cell::default(); PAGE as usize]);
            }
            self.last = (page, i);
        }
        let cell = self.pages.get_mut(self.last.1)?.get_mut(at as usize)?;
        self.len += usize::from(cell.is_untouched());
        Some(cell)
    }

    /// Those that have been touched, by their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, &Cell)> {
        let pages = self.index.iter().filter_map(|(page, i)| Some((page, self.pages.get(*i)?)));
        pages.flat_map(|(page, cells)| {
            let all = cells.iter().zip(page * PAGE..);
            all.filter(|(cell, _)| !cell.is_untouched()).map(|(cell, key)| (key, cell))
        })
    }
}
