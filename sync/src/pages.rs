//! Defines [`Pages`], a sparse array with one cell per granule of global memory, for the accesses
//! of a block. Cells are allocated in pages. The granules that a block touches are close together,
//! so most lookups hit the last page.

use std::collections::BTreeMap;

/// The number of cells of a page.
const PAGE: i64 = 16;

/// A page, and a bit for each of its cells that has been touched.
#[derive(Clone, Debug)]
struct Page<T> {
    cells: Vec<T>,
    touched: u16,
}

/// Cells by index.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages<T> {
    index: BTreeMap<i64, usize>,
    pages: Vec<Page<T>>,
    last: (i64, usize),
    len: usize,
}

impl<T: Clone + Default> Pages<T> {
    /// The number of touched cells.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The cell of a granule, which becomes touched.
    #[inline]
    pub(crate) fn touch(&mut self, key: i64) -> Option<&mut T> {
        let (page, at) = (key.div_euclid(PAGE), key.rem_euclid(PAGE));
        if self.pages.is_empty() || self.last.0 != page {
            let next = self.pages.len();
            let i = *self.index.entry(page).or_insert(next);
            if i == next {
                self.pages.push(Page { cells: vec![T::default(); PAGE as usize], touched: 0 });
            }
            self.last = (page, i);
        }
        let page = self.pages.get_mut(self.last.1)?;
        self.len += usize::from(page.touched >> at & 1 == 0);
        page.touched |= 1 << at;
        page.cells.get_mut(at as usize)
    }

    /// The touched cells, by index.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, &T)> {
        let pages = self.index.iter().filter_map(|(page, i)| Some((page, self.pages.get(*i)?)));
        pages.flat_map(|(number, page)| {
            let touched = (0..PAGE).filter(|at| page.touched >> at & 1 == 1);
            touched.filter_map(move |at| Some((number * PAGE + at, page.cells.get(at as usize)?)))
        })
    }
}
