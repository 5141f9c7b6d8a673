//! Defines [`View`], a tensor that is ready for accesses: a function from the number of an element
//! to its offset in a buffer. Leaves access memory and registers through views.
//!
//! Elements are numbered column-major over the modes of all levels (the brackets of a shape such as
//! `[4].[8,2]`), and the modes of the outermost level vary fastest. In a partial tile, an element
//! beyond the end of its tensor has the offset [`OUTSIDE`]: a read of it gives zero, and a write
//! has no effect.
//!
//! A distributed register tensor is spread over the registers of several threads, and its elements
//! have no offsets. For it, [`Dist`] maps each element to the (thread, register) pairs that hold
//! it.

use super::{Checked, Site};
use crate::index::{BadIndex, Env, Index, Sizes};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::layout::Layout;
use carbyne_ir::program::TensorId;
use carbyne_ir::scalar::Scalar;

/// The buffer of a view; the number is an index into the kernel's list of such buffers.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    /// No memory: the value of an element is its offset.
    Index,
    /// Global memory through a tensor of coordinates: an index of [`super::Kernel::gathers`].
    Gathered(usize),
    /// A number of the caller, stored with global memory.
    Param(usize),
    /// Global memory.
    Global(usize),
    /// Shared memory.
    Shared(usize),
    /// Registers.
    Registers(usize),
}

/// The offset of an element that does not exist, in a partial tile: a read gives zero, and a write
/// has no effect.
pub(crate) const OUTSIDE: i64 = i64::MIN;

/// A tensor that is ready for accesses.
pub(crate) struct View {
    /// The tensor of the program.
    pub tensor: TensorId,
    /// The buffer.
    pub space: Space,
    /// The scalar type of its elements.
    pub scalar: Scalar,
    /// The offset of element zero, in scalars of the buffer.
    pub offset: Index,
    /// The block of the cluster in whose shared memory the view lies; none for its own block.
    pub peer: Option<Index>,
    /// The extent and stride of every leaf mode, first fastest.
    pub leaves: Vec<(i64, i64)>,
    /// The extent of every mode.
    pub modes: Vec<i64>,
    /// The number of elements.
    pub size: i64,
    /// The offsets of the elements from `offset`; empty for large views.
    table: Vec<i64>,
    /// The index of the thread-value layout, for a distributed tensor.
    pub dist: Option<usize>,
    /// The bounds; an element exists if it is inside of all bounds.
    bounds: Vec<Bound>,
    /// The start of the view, if it is constant.
    known: Option<Base>,
}

/// A mode beyond whose end the tiles of a view may reach.
pub(crate) struct Bound {
    /// The coordinate of element zero.
    offset: Index,
    /// The number of elements of the mode.
    extent: Index,
    /// The map from elements to coordinates, counted from `offset`.
    leaves: Vec<(i64, i64)>,
    /// The coordinates of all elements; empty for large views.
    table: Vec<i64>,
    /// The largest coordinate.
    last: i64,
}

/// The start of a view, for one thread at one statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Base {
    /// The offset of element zero, in scalars of the buffer.
    pub at: i64,
    /// For each of the view's bounds, the coordinate below which elements exist, counted from
    /// element zero; none if all elements exist.
    below: Option<Box<[i64]>>,
}

impl Base {
    /// The base of a view with all of its elements.
    pub(crate) fn whole(at: i64) -> Self {
        Base { at, below: None }
    }

    /// Whether the view may lack elements.
    #[inline]
    pub(crate) fn is_partial(&self) -> bool {
        self.below.is_some()
    }
}

/// Larger views compute their offsets at each access.
const MAX_TABLE: i64 = 1 << 16;

impl Bound {
    /// A bound for the elements of a view with these coordinates.
    pub(crate) fn new(offset: Index, extent: Index, coordinates: &Sizes) -> Self {
        let leaves = coordinates.leaves();
        let reach = |(n, d): &(i64, i64)| (n - 1).saturating_mul(*d).max(0);
        let last = leaves.iter().fold(0i64, |sum, l| sum.saturating_add(reach(l)));
        let table = tabulated(&leaves, coordinates.size);
        Bound { offset, extent, leaves, table, last }
    }

    /// The coordinate below which elements exist, counted from that of element zero.
    fn below(&self, env: &Env, thread: usize) -> Result<i64, BadIndex> {
        let offset = self.offset.at(self.offset.base(env)?, env, thread)?;
        let extent = self.extent.at(self.extent.base(env)?, env, thread)?;
        Ok(extent.saturating_sub(offset))
    }

    fn is_uniform(&self) -> bool {
        self.offset.is_uniform() && self.extent.is_uniform()
    }

    #[inline]
    fn coordinate(&self, e: usize) -> i64 {
        self.table.get(e).copied().unwrap_or_else(|| place_of(&self.leaves, e as i64))
    }
}

impl View {
    /// A view of constant shape.
    pub(crate) fn new(
        tensor: TensorId,
        space: Space,
        scalar: Scalar,
        offset: Index,
        sizes: &Sizes,
        dist: Option<usize>,
    ) -> Self {
        let leaves = sizes.leaves();
        let table = tabulated(&leaves, sizes.size);
        let known = offset.known().map(Base::whole);
        View {
            tensor,
            space,
            scalar,
            offset,
            peer: None,
            leaves,
            modes: sizes.extents(),
            size: sizes.size,
            table,
            dist,
            bounds: vec![],
            known,
        }
    }

    /// This view, restricted to the elements inside of these bounds.
    pub(crate) fn bounded(mut self, bounds: Vec<Bound>) -> Self {
        self.bounds = bounds;
        let known = |i: &Index| i.known().is_some();
        if !self.bounds.iter().all(|b| known(&b.offset) && known(&b.extent)) {
            self.known = None;
        }
        self.known = self.known.take().and_then(|b| self.within(b.at, &Env::none(), 0).ok());
        self
    }

    /// Whether elements may be missing.
    #[inline]
    pub(crate) fn is_bounded(&self) -> bool {
        !self.bounds.is_empty()
    }

    /// Whether an offset represents an element that does not exist.
    #[inline]
    pub(crate) fn is_outside(&self, at: i64) -> bool {
        at == OUTSIDE && self.is_bounded()
    }

    /// Whether the view is equal for all threads.
    pub(crate) fn is_uniform(&self) -> bool {
        self.offset.is_uniform() && self.bounds.iter().all(Bound::is_uniform)
    }

    /// The start of the view, if it is constant.
    pub(crate) fn known(&self) -> Option<&Base> {
        self.known.as_ref()
    }

    /// The start of the view for a thread, given the part of its offset that is uniform.
    ///
    /// # Errors
    /// [`BadIndex`].
    #[inline]
    pub(crate) fn base(&self, start: i64, env: &Env, thread: usize) -> Result<Base, BadIndex> {
        let at = self.offset.at(start, env, thread)?;
        if self.bounds.is_empty() { Ok(Base::whole(at)) } else { self.within(at, env, thread) }
    }

    /// The start of a view with bounds.
    #[cold]
    fn within(&self, at: i64, env: &Env, thread: usize) -> Result<Base, BadIndex> {
        let mut all = true;
        for bound in &self.bounds {
            all &= bound.last < bound.below(env, thread)?;
        }
        if all {
            return Ok(Base::whole(at));
        }
        let below = self.bounds.iter().map(|b| b.below(env, thread));
        Ok(Base { at, below: Some(below.collect::<Result<_, _>>()?) })
    }

    /// The offset of an element in the buffer, in scalars; [`OUTSIDE`] if the element does not
    /// exist.
    #[inline]
    pub(crate) fn place(&self, base: &Base, e: usize) -> i64 {
        match &base.below {
            None => base.at.saturating_add(self.element(e)),
            Some(below) => self.place_within(base.at, below, e),
        }
    }

    #[cold]
    fn place_within(&self, at: i64, below: &[i64], e: usize) -> i64 {
        match self.bounds.iter().zip(below).all(|(b, below)| b.coordinate(e) < *below) {
            true => at.saturating_add(self.element(e)).max(OUTSIDE + 1),
            false => OUTSIDE,
        }
    }

    /// The number of existing elements; all elements if the start of the view is not constant.
    pub(crate) fn n_known(&self) -> u64 {
        match &self.known {
            Some(base) if base.is_partial() => {
                (0..self.size).filter(|e| self.place(base, *e as usize) != OUTSIDE).count() as u64
            }
            _ => self.size.unsigned_abs(),
        }
    }

    /// The elements in the order of memory; empty if several elements share an address, or if there
    /// are too many.
    pub(crate) fn by_place(&self) -> Vec<u32> {
        let mut order: Vec<u32> = (0..self.table.len() as u32).collect();
        order.sort_by_key(|e| self.table[*e as usize]);
        match order.is_sorted_by(|a, b| self.table[*a as usize] < self.table[*b as usize]) {
            true => order,
            false => Vec::new(),
        }
    }

    /// The offset of an element below `size` from the view's own offset, in scalars; the element
    /// need not exist.
    #[inline]
    pub(crate) fn element(&self, e: usize) -> i64 {
        match self.table.get(e) {
            Some(offset) => *offset,
            None => place_of(&self.leaves, e as i64),
        }
    }
}

/// The places of all elements, unless there are too many.
fn tabulated(leaves: &[(i64, i64)], size: i64) -> Vec<i64> {
    match size <= MAX_TABLE {
        true => (0..size).map(|e| place_of(leaves, e)).collect(),
        false => vec![],
    }
}

fn place_of(leaves: &[(i64, i64)], e: i64) -> i64 {
    let mut rest = e;
    let mut at = 0i64;
    for (extent, stride) in leaves {
        at = at.wrapping_add((rest % extent).wrapping_mul(*stride));
        rest /= extent;
    }
    at
}

/// The coordinates of an element in these modes.
pub(crate) fn coordinates(modes: &[i64], e: i64) -> Vec<i64> {
    let mut rest = e;
    modes
        .iter()
        .map(|n| {
            // A mode without elements has no coordinates.
            let n = (*n).max(1);
            let c = rest % n;
            rest /= n;
            c
        })
        .collect()
}

/// The text `[3,5]`; empty for a scalar.
pub(crate) fn coordinates_text(coordinates: &[i64]) -> String {
    if coordinates.is_empty() {
        return String::new();
    }
    let list: Vec<String> = coordinates.iter().map(i64::to_string).collect();
    format!("[{}]", list.join(","))
}

/// The owners of the elements of a distributed register tensor. Each group of threads may have its
/// own tensor.
pub(crate) struct Dist {
    groups: Vec<Owners>,
    /// The group of each thread; empty for a single group.
    group_of: Vec<u16>,
    /// For each thread of the layout in order, group by group: the thread, and the element of each
    /// register.
    pub by_thread: Vec<(u16, Vec<u32>)>,
}

/// The (thread, register) pairs that hold each element.
struct Owners {
    starts: Vec<u32>,
    owners: Vec<(u16, u16)>,
}

impl Owners {
    fn of(&self, element: usize) -> &[(u16, u16)] {
        match (self.starts.get(element), self.starts.get(element + 1)) {
            (Some(a), Some(b)) => &self.owners[*a as usize..*b as usize],
            _ => &[],
        }
    }

    /// The owners of the elements at these places.
    fn at(&self, places: impl Iterator<Item = usize>, most: usize) -> Self {
        let (mut starts, mut owners) = (vec![0u32], Vec::new());
        for at in places {
            owners.extend(self.of(at).iter().take(most));
            starts.push(owners.len() as u32);
        }
        Owners { starts, owners }
    }
}

impl Dist {
    /// The distribution for a (T, V) layout onto `size` elements, over the threads that T counts;
    /// several groups have a tensor each.
    ///
    /// # Errors
    /// The errors of [`Dist::new`].
    pub(crate) fn of_groups(
        tv: &Layout<i64>,
        groups: &[Vec<u16>],
        size: i64,
        site: Site,
    ) -> Checked<Self> {
        let each = groups.iter().map(|threads| Dist::new(tv, threads, size, site));
        let mut each = each.collect::<Checked<Vec<Dist>>>()?.into_iter();
        let mut out = match each.next() {
            Some(first) => first,
            None => Dist::new(tv, &[], size, site)?,
        };
        let last = groups.iter().flatten().copied().max().unwrap_or(0);
        let mut group_of = vec![0; usize::from(last) + 1];
        for (dist, number) in each.zip(1u16..) {
            dist.by_thread.iter().for_each(|(t, _)| group_of[usize::from(*t)] = number);
            out.groups.extend(dist.groups);
            out.by_thread.extend(dist.by_thread);
        }
        Ok(Dist { group_of, ..out })
    }

    /// The distribution for a (T, V) layout onto `size` elements, over the threads that T counts.
    ///
    /// # Errors
    /// `V0215` if an element has no owner or the layout exceeds the tensor.
    pub(crate) fn new(tv: &Layout<i64>, threads: &[u16], size: i64, site: Site) -> Checked<Self> {
        let refuse = |why: String| {
            Box::new(
                Diagnostic::new(
                    Code::TvLayout,
                    site.span,
                    "a thread-value layout does not cover its tensor",
                )
                .label(why)
                .help("give each element an owner: compare `tv=` with the shape"),
            )
        };
        let (t, v) = match (tv.mode(0), tv.mode(1)) {
            (Ok(t), Ok(v)) if tv.rank() == 2 => (t, v),
            _ => return Err(refuse("it does not have two modes".to_owned())),
        };
        if t.size() != threads.len() as i64 {
            return Err(refuse(format!("it counts {} threads of {}", t.size(), threads.len())));
        }
        if v.size() > i64::from(u16::MAX) || size > 1 << 24 {
            return Err(refuse(format!("it gives each thread {} values", v.size())));
        }
        let mut owned: Vec<(u32, u16, u16)> = Vec::new();
        let mut by_thread = Vec::with_capacity(threads.len());
        for (i, thread) in threads.iter().enumerate() {
            let mut elements = Vec::new();
            for r in 0..v.size() {
                let e = t.at(i as i64).saturating_add(v.at(r));
                if !(0..size).contains(&e) {
                    return Err(refuse(format!("it reaches element {e} of {size}")));
                }
                owned.push((e as u32, *thread, r as u16));
                elements.push(e as u32);
            }
            by_thread.push((*thread, elements));
        }
        owned.sort_unstable();
        let mut starts = vec![0u32; size as usize + 1];
        owned.iter().for_each(|(e, ..)| starts[*e as usize + 1] += 1);
        if let Some(e) = starts[1..].iter().position(|n| *n == 0) {
            return Err(refuse(format!("element {e} has no owner")));
        }
        for e in 0..size as usize {
            starts[e + 1] += starts[e];
        }
        let owners = owned.into_iter().map(|(_, t, r)| (t, r)).collect();
        Ok(Dist { groups: vec![Owners { starts, owners }], group_of: vec![], by_thread })
    }

    /// The owners of the elements of a view that names positions of this tensor; this distribution
    /// without a view.
    pub(crate) fn part(self, view: Option<(i64, &Layout<i64>)>) -> Self {
        let Some((offset, layout)) = view else { return self };
        let size = self.groups.first().map_or(0, |g| g.starts.len().saturating_sub(1));
        let mut elements: Vec<Option<u32>> = vec![None; size];
        let place = |e| usize::try_from(offset.saturating_add(layout.at(e))).unwrap_or(usize::MAX);
        for e in 0..layout.size() {
            if let Some(element) = elements.get_mut(place(e)) {
                *element = Some(e as u32);
            }
        }
        let places = || (0..layout.size()).map(place);
        let groups = self.groups.iter().map(|g| g.at(places(), usize::MAX)).collect();
        let of = |regs: &[u32]| regs.iter().filter_map(|e| elements[*e as usize]).collect();
        let by_thread = self.by_thread.iter().map(|(t, regs)| (*t, of(regs))).collect();
        Dist { groups, group_of: self.group_of, by_thread }
    }

    /// The owners of a tensor's elements, with modes of extent 1 broadcast over `modes`.
    pub(crate) fn spread(&self, modes: &[i64], of: &[i64]) -> Self {
        let size = of.iter().product::<i64>();
        let place = |e: i64| {
            let (mut rest, mut at, mut weight) = (e, 0, 1);
            for (own, n) in modes.iter().zip(of) {
                at += (rest % n).min(own - 1) * weight;
                rest /= n;
                weight *= own;
            }
            at as usize
        };
        let groups = self.groups.iter().map(|g| g.at((0..size).map(place), 1)).collect();
        Dist { groups, group_of: self.group_of.clone(), by_thread: self.by_thread.clone() }
    }

    fn group(&self, thread: usize) -> usize {
        self.group_of.get(thread).map_or(0, |g| usize::from(*g))
    }

    /// The (thread, register) pairs that hold an element of the tensor of a thread's group, at
    /// least one.
    pub(crate) fn owners(&self, element: usize, thread: usize) -> &[(u16, u16)] {
        self.groups.get(self.group(thread)).map_or(&[], |g| g.of(element))
    }

    /// The threads that hold the tensor of a thread's group.
    pub(crate) fn holders(&self, thread: usize) -> impl Iterator<Item = u16> + '_ {
        let own = self.group(thread);
        let threads = self.by_thread.iter().map(|(t, _)| *t);
        threads.filter(move |t| self.group(usize::from(*t)) == own)
    }

    /// The number of groups that have a tensor each.
    pub(crate) fn n_groups(&self) -> usize {
        self.groups.len()
    }
}
