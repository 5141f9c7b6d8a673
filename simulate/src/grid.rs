//! Merges the writes of the blocks of a grid, and detects races between blocks. Nothing orders
//! blocks: two blocks that access one element, at least one of them with a write, are a race, which
//! is an error. Blocks that only accumulate into an element, with one atomic operation, do not
//! race; here they accumulate in the order of blocks. Two more errors are found here: a write
//! outside of the kernel's outputs, and, if all blocks ran, an element of an output that no block
//! wrote.

use crate::exec::{Finished, accumulated};
use crate::kernel_results::offset;
use crate::plan::{
    Checked, GlobalBuffer, Inverse, Kernel, Space, View, coordinates, coordinates_text, line_text,
};
use crate::state::{PAGE, Page, Pages, Value, Written};
use carbyne_ir::ast::AccumulateOp;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{BufferId, Spec};
use carbyne_ir::scalar::Scalar;
use carbyne_ir::span::Span;
use std::collections::BTreeMap;

/// The largest number of stored pages of all blocks together.
pub(crate) const MAX_PAGES: usize = 1 << 19;

/// The most statements that an error shows.
const MOST_SHOWN: usize = 3;

/// The writes of all blocks, and the reads of elements that the reader did not write.
pub(crate) struct Grid {
    written: Vec<BTreeMap<u64, GridPage>>,
    shadows: bool,
    /// The number of pages of all buffers.
    pub(crate) n_pages: usize,
}

struct GridPage {
    values: Written,
    /// The block that wrote each element; the number of a block is below 2^31.
    writers: [u32; PAGE],
    /// For each element that blocks only accumulated into, the operation.
    sums: BTreeMap<usize, AccumulateOp>,
    /// For each element, one more than the last block that read it without writing it; none without
    /// such reads.
    readers: Option<Box<[u32; PAGE]>>,
}

impl Grid {
    /// A grid before any block has run.
    pub(crate) fn new(kernel: &Kernel<'_>, shadows: bool) -> Self {
        let written = kernel.globals.iter().map(|_| BTreeMap::new()).collect();
        Grid { written, shadows, n_pages: 0 }
    }

    /// Adds a block's pages; an element that another block also accessed may be a race.
    pub(crate) fn add(
        &mut self,
        kernel: &Kernel<'_>,
        block: i64,
        finished: Finished,
    ) -> Checked<()> {
        let shadows = self.shadows;
        let scalar = |g: &GlobalBuffer| kernel.program.buffers[g.buffer].scalar;
        let scalars: Vec<Scalar> = kernel.globals.iter().map(scalar).collect();
        for (i, (all, pages)) in self.written.iter_mut().zip(finished.pages).enumerate() {
            for (number, page) in pages {
                let n_pages = &mut self.n_pages;
                let to = all.entry(number).or_insert_with(|| {
                    *n_pages += 1;
                    GridPage {
                        values: Written::new(shadows),
                        writers: [0; PAGE],
                        sums: BTreeMap::new(),
                        readers: None,
                    }
                });
                for e in 0..PAGE {
                    let at = (number * PAGE as u64) as i64 + e as i64;
                    let wrote = page.written.has(e);
                    if !wrote && page.any_read(e).is_none() {
                        continue;
                    }
                    let sum = page.only_sum(e);
                    if let Some(sum) = sum
                        && to.sums.get(&e) == Some(&sum.op)
                        && let Some(before) = to.values.get(e)
                    {
                        let put = |old, value: &Value| {
                            accumulated(sum.op, scalars[i], old, *value, shadows)
                        };
                        to.values.set(e, sum.values.iter().fold(before, put));
                        to.writers[e] = block as u32;
                        continue;
                    }
                    let reader = to.readers.as_ref().map_or(0, |r| r[e]);
                    let other = if to.values.has(e) {
                        Some((i64::from(to.writers[e]), "writes"))
                    } else if wrote && reader > 0 {
                        Some((i64::from(reader) - 1, "reads"))
                    } else {
                        None
                    };
                    if let Some((first, verb)) = other {
                        return Err(block_race(kernel, i, at, (first, verb), block, &page, e));
                    }
                    if let Some(value) = page.written.get(e) {
                        to.values.set(e, value);
                        to.writers[e] = block as u32;
                        to.sums.extend(sum.map(|s| (e, s.op)));
                    } else {
                        to.readers.get_or_insert_with(|| Box::new([0; PAGE]))[e] = block as u32 + 1;
                    }
                }
            }
        }
        Ok(())
    }

    /// The elements of a buffer that blocks only accumulate into, and their values.
    pub(crate) fn sums(&self, buffer: usize) -> impl Iterator<Item = (i64, Value)> {
        let pages = self.written.get(buffer).into_iter().flatten();
        pages.flat_map(|(number, page)| {
            let at = move |e: usize| (number * PAGE as u64) as i64 + e as i64;
            page.sums.keys().filter_map(move |e| Some((at(*e), page.values.get(*e)?)))
        })
    }

    /// The elements of an output of the kernel that no block has written, ascending.
    pub(crate) fn unwritten(
        &self,
        kernel: &Kernel<'_>,
        output: usize,
    ) -> impl Iterator<Item = i64> {
        let view = &kernel.views[output];
        let pages = match view.space {
            Space::Global(i) => self.written.get(i),
            _ => None,
        };
        let missing = move |pages: &BTreeMap<u64, GridPage>, e: i64| {
            let at = offset(view, e);
            if view.is_outside(at) {
                return false;
            }
            let page = pages.get(&(at as u64 / PAGE as u64));
            page.is_none_or(|p| !p.values.has(at as usize % PAGE))
        };
        let all = pages.into_iter().flat_map(move |p| (0..view.size).map(move |e| (p, e)));
        all.filter(move |(p, e)| missing(p, *e)).map(|(_, e)| e)
    }

    /// Checks that the kernel wrote only outputs of its spec.
    pub(crate) fn only_outputs(&self, kernel: &Kernel<'_>) -> Checked<()> {
        for (i, (global, pages)) in kernel.globals.iter().zip(&self.written).enumerate() {
            let views = kernel.outputs.iter().map(|(v, _)| &kernel.views[*v]);
            let views: Vec<&View> = views.filter(|v| v.space == Space::Global(i)).collect();
            let p = kernel.program;
            let whole = p.tensors[p.buffers[global.buffer].tensor].concat().to_fixed();
            let is_whole =
                |v: &&View| !v.is_bounded() && whole.as_ref().is_some_and(|w| w.size() == v.size);
            if views.iter().any(is_whole) {
                continue;
            }
            let inverses: Option<Vec<(Inverse, i64)>> =
                views.iter().map(|v| Inverse::of_view(v)).collect();
            let Some(inverses) = inverses else { continue };
            for (number, page) in pages {
                for e in (0..PAGE).filter(|e| page.values.has(*e)) {
                    let at = (number * PAGE as u64) as i64 + e as i64;
                    if inverses.iter().any(|(inverse, base)| inverse.element(at - base).is_some()) {
                        continue;
                    }
                    let name = global.names.element(at);
                    let message = format!(
                        "{name} is written, but is not an element of an output of this spec"
                    );
                    let mut d =
                        Diagnostic::new(Code::WrongElement, p.specs[kernel.spec].span, message)
                            .label(format!("block {} writes it", page.writers[e]))
                            .help(
                                "remove the statement that writes it, or correct its index; or \
                                 list the tensor among the outputs",
                            );
                    for statement in self.writes(kernel, global.buffer).take(MOST_SHOWN) {
                        let tensor = &p.buffers[global.buffer].name;
                        d = d.related(statement, format!("writes elements of `%{tensor}`"));
                    }
                    return Err(Box::new(d));
                }
            }
        }
        Ok(())
    }

    /// The leaves of the kernel that write elements of a tensor.
    fn writes<'p>(
        &self,
        kernel: &'p Kernel<'_>,
        buffer: BufferId,
    ) -> impl Iterator<Item = Span> + 'p {
        let p = kernel.program;
        let leaves = p.walk_body(kernel.spec).specs().map(|id| &p.specs[id]);
        let writes = move |s: &&Spec| {
            s.body.is_none() && s.outputs.iter().any(|t| p.tensors[*t].buffer == buffer)
        };
        leaves.filter(writes).map(|s| s.span)
    }

    /// The number of written elements of the tensor that an output belongs to.
    pub(crate) fn n_written(&self, kernel: &Kernel<'_>, output: usize) -> u64 {
        let Space::Global(i) = kernel.views[output].space else { return 0 };
        let pages = self.written.get(i).into_iter().flatten();
        pages.map(|(_, page)| u64::from(page.values.n_written())).sum()
    }

    /// Checks that every element of an output of the kernel was written.
    pub(crate) fn all_written(&self, kernel: &Kernel<'_>, output: usize) -> Checked<()> {
        let view = &kernel.views[output];
        // Only outputs are written.
        let of_one = kernel.outputs.iter().filter(|(v, _)| kernel.views[*v].space == view.space);
        if of_one.count() == 1 && self.n_written(kernel, output) == view.n_known() {
            return Ok(());
        }
        let Some(e) = self.unwritten(kernel, output).next() else { return Ok(()) };
        let label = "the body of this spec does not compute all of its output";
        Err(self.never_written(kernel, output, e, label))
    }

    /// `S0501` for an element that no block writes.
    pub(crate) fn never_written(
        &self,
        kernel: &Kernel<'_>,
        output: usize,
        e: i64,
        label: &str,
    ) -> Box<Diagnostic> {
        let view = &kernel.views[output];
        let name = kernel.view_name(output);
        let at = coordinates_text(&coordinates(&view.modes, e));
        let span = kernel.program.specs[kernel.spec].span;
        Box::new(
            Diagnostic::new(Code::WrongElement, span, format!("{name}{at} is never written"))
                .label(label)
                .help(
                    "compare the tiles that blocks and threads write with the output's shape; if a \
                     tile does not divide the shape, use `ceil_div(M, BM)` tiles",
                ),
        )
    }

    /// The written elements, by buffer of the kernel. After a partial run, elements that blocks
    /// only accumulate into are omitted.
    pub(crate) fn into_written(self, complete: bool) -> impl Iterator<Item = Pages> {
        let whole = move |mut page: GridPage| {
            let parts = page.sums.keys().filter(|_| !complete);
            parts.for_each(|e| page.values.remove(*e));
            page.values
        };
        let of = move |pages: BTreeMap<u64, GridPage>| -> Pages {
            pages.into_iter().map(|(n, p)| (n, whole(p))).collect()
        };
        self.written.into_iter().map(of)
    }
}

fn block_race(
    kernel: &Kernel<'_>,
    global: usize,
    at: i64,
    (first, verb): (i64, &str),
    block: i64,
    page: &Page,
    e: usize,
) -> Box<Diagnostic> {
    let wrote = page.history.last_write(e).filter(|_| page.written.has(e));
    let sum = page.history.any_sum(e);
    let site = wrote.map(|w| w.site).or(sum).or_else(|| page.any_read(e)).unwrap_or(0);
    let place = &kernel.sites[site as usize];
    let element = kernel.globals[global].names.element(at);
    let does = if wrote.is_some() || sum.is_some() { "writes" } else { "reads" };
    Box::new(
        Diagnostic::new(
            Code::Race,
            place.span,
            format!(
                "block {first} {verb} {element}, block {block} {does} it ({}), and nothing orders \
                 blocks",
                line_text(place)
            ),
        )
        .label(format!("block {block} {does} it here"))
        .help("let one block own each element, or split the kernel in two"),
    )
}
