//! Records the elements of global memory that asynchronous copies read or write, from their issue
//! to their completion. In that time, a write to a source and any access to a destination are
//! errors. Memory that the kernel does not write needs no record.

use super::Runner;
use super::errors::{self, ElementAccess};
use crate::plan::{BoundAtom, BoundBulk, Checked, Slot, Source, Space};
use crate::state::{Failure, GlobalElement};

impl Runner<'_> {
    /// Records that a thread's copies read these elements of a view of global memory, by buffer and
    /// offset, until `n_copies` copies are complete. Elements that the kernel does not write are
    /// omitted.
    pub(super) fn read_until_complete(
        &mut self,
        site: u32,
        thread: usize,
        (view, elements): (usize, &[(usize, i64)]),
        n_copies: usize,
    ) -> Checked<Vec<GlobalElement>> {
        let mut kept = Vec::new();
        for (buffer, at) in elements {
            let global = &mut self.blocks[self.rank].global[*buffer];
            for _ in 0..n_copies {
                match global.begin_read(*at, site) {
                    Ok(false) => return Ok(kept),
                    Ok(true) => {}
                    Err(denied) => {
                        let access = ElementAccess { view, at: *at, write: false, thread };
                        return self.denied(site, &access, &denied.into());
                    }
                }
            }
            kept.push(self.global_element(*buffer, *at));
        }
        Ok(kept)
    }

    /// Records that a thread's copy writes these elements until it is complete.
    pub(super) fn written_until_complete(
        &mut self,
        site: u32,
        thread: usize,
        (copy, elements): (&BoundBulk, &[(usize, i64)]),
    ) -> Checked<Vec<GlobalElement>> {
        let mut kept = Vec::with_capacity(elements.len());
        for (buffer, at) in elements {
            let global = &mut self.blocks[self.rank].global[*buffer];
            if let Err(denied) = global.begin_write(*at, site, copy.adds) {
                let access = ElementAccess { view: copy.target, at: *at, write: true, thread };
                return self.denied(site, &access, &denied.into());
            }
            kept.push(self.global_element(*buffer, *at));
        }
        Ok(kept)
    }

    /// Records the sources of an asynchronous copy by an atom. In memory that the kernel writes,
    /// the copy reads them until a wait for its group.
    pub(super) fn keep_sources(
        &mut self,
        atom: &BoundAtom,
        thread: usize,
        site: u32,
    ) -> Checked<()> {
        let kernel = self.kernel;
        for operand in &atom.reads {
            let Source::View(index) = operand.source else { continue };
            let view = &kernel.views[index];
            let Space::Global(buffer) = view.space else { continue };
            if !kernel.globals[buffer].written {
                continue;
            }
            let base = self.base(view, thread, site)?;
            let valid = atom.valid.as_ref().map(|v| self.index(v, thread, site)).transpose()?;
            let is_read = |slot: &&Slot| valid.is_none_or(|n| i64::from(slot.element) < n);
            let at = |slot: &Slot| view.place(&base, usize::from(slot.element));
            let places = operand.reads.iter().filter(is_read).map(at);
            let elements: Vec<(usize, i64)> =
                places.filter(|at| !view.is_outside(*at)).map(|at| (buffer, at)).collect();
            let sources = self.read_until_complete(site, thread, (index, &elements), 1)?;
            self.blocks[self.rank].copies[thread].open.sources.extend(sources);
        }
        Ok(())
    }

    fn global_element(&self, buffer: usize, at: i64) -> GlobalElement {
        GlobalElement { rank: self.rank as u16, buffer: buffer as u16, at }
    }

    fn denied<T>(&self, site: u32, access: &ElementAccess, failure: &Failure) -> Checked<T> {
        let mut who = self.who(access.thread / 32, site);
        who.thread = access.thread as u16;
        errors::failed(self.kernel, self.env.block, &who, access, failure)
    }
}
