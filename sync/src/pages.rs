//! What is known of granules of global memory, in pages: what a block touches lies together, and is
//! found without much looking.

use std::collections::BTreeMap;

/// Cells of a page.
const PAGE: i64 = 16;

/// A page, and which of its cells have been touched, a bit each.
#[derive(Clone, Debug)]
struct Page<T> {
    cells: Vec<T>,
    touched: u16,
}

/// Cells by their number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages<T> {
    index: BTreeMap<i64, usize>,
    pages: Vec<Page<T>>,
    last: (i64, usize),
    len: usize,
}

impl<T: Clone + Default> Pages<T> {
    /// How many cells have been touched.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A cell that is going to be touched.
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

    /// Those that have been touched, by their numbers.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i64, &T)> {
        let pages = self.index.iter().filter_map(|(page, i)| Some((page, self.pages.get(*i)?)));
        pages.flat_map(|(number, page)| {
            let touched = (0..PAGE).filter(|at| page.touched >> at & 1 == 1);
            touched.filter_map(move |at| Some((number * PAGE + at, page.cells.get(at as usize)?)))
        })
    }
}
