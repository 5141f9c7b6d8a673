//! Computes how threads hold parts of register tensors ([`part`]): transposed, permuted, or a tile
//! of the whole.
//!
//! A view names positions of the tensor that it is a part of. Where the threads hold the tensor by
//! F, they hold the view by G with L∘G = F on the positions that the view names: every value stays
//! in its thread and its register. G is a layout if every thread has as many values of the view as
//! any other, in the same registers.

use super::tv::{join, mode, tv};
use super::unfit::Unfit;
use crate::access::ops;
pub(crate) use crate::plan::part::Part;
use carbyne_ir::expr::Dim;
use carbyne_ir::layout::Layout;
use carbyne_ir::program::{Program, TensorId};

/// The largest tensor whose elements are looked at one by one.
const MAX_ELEMENTS: i64 = 1 << 20;

/// Whether the tensor is a view of registers that threads share.
pub(crate) fn is_part(p: &Program, t: TensorId) -> bool {
    p.tensors[t].dist.as_ref().is_some_and(|d| !d.ops.is_empty())
}

/// From elements of the view to positions in the tensor, and the first position.
pub(super) fn positions(p: &Program, t: TensorId) -> Option<(Layout, i64)> {
    match p.tensors[t].offset {
        Dim::Const(offset) => Some((ops::whole(p, t)?, offset)),
        Dim::Expr(_) => None,
    }
}

/// How threads hold a view, where they hold the whole tensor by `whole`; and in which registers.
///
/// # Errors
/// Where the view takes threads apart.
pub(super) fn part(p: &Program, t: TensorId, whole: &Layout) -> Result<(Layout, Part), Unfit> {
    let (l, offset) = positions(p, t).ok_or(Unfit::Extents)?;
    let size = declared(p, t).ok_or(Unfit::Extents)?;
    let (tm, vm) = (whole.mode(0)?, whole.mode(1)?);
    let (threads, values) = (tm.size(), vm.size());
    if size > MAX_ELEMENTS || threads.saturating_mul(values) > MAX_ELEMENTS {
        return Err(Unfit::TooLarge);
    }
    let mut elements: Vec<Option<i64>> = vec![None; usize::try_from(size).unwrap_or(0)];
    for e in 0..l.size() {
        let at = usize::try_from(offset.saturating_add(l.at(e))).ok();
        if let Some(element) = at.and_then(|at| elements.get_mut(at)) {
            *element = Some(e);
        }
    }
    let element = |t: i64, v: i64| -> Option<i64> {
        let at = usize::try_from(tm.at(t).checked_add(vm.at(v))?).ok()?;
        elements.get(at).copied().flatten()
    };
    let apart = || Unfit::SomeThreads;
    // Of all threads the same registers.
    let own: Vec<i64> = (0..values).filter(|v| element(0, *v).is_some()).collect();
    let (Some(first), true) = (own.first().copied(), !own.is_empty()) else { return Err(apart()) };
    let origin = element(0, first).ok_or_else(apart)?;
    let of_threads: Option<Vec<i64>> =
        (0..threads).map(|t| element(t, first).map(|e| e - origin)).collect();
    let of_values: Option<Vec<i64>> =
        own.iter().map(|v| element(0, *v).map(|e| e - origin)).collect();
    let (of_threads, of_values) = (of_threads.ok_or_else(apart)?, of_values.ok_or_else(apart)?);
    if origin != 0 {
        return Err(Unfit::First);
    }
    for t in 0..threads {
        let mut held = own.iter().zip(&of_values);
        let as_first = held.all(|(v, d)| element(t, *v) == Some(of_threads[t as usize] + d));
        let count = (0..values).filter(|v| element(t, *v).is_some()).count();
        if !as_first || count != own.len() {
            return Err(apart());
        }
    }
    let uneven = || Unfit::Irregular;
    let of_threads = fitted(&of_threads).ok_or_else(uneven)?;
    let of_values = fitted(&of_values).ok_or_else(uneven)?;
    let steps: Vec<i64> = own.iter().map(|v| v - first).collect();
    let registers = fitted(&steps).ok_or_else(uneven)?;
    let copies = registers.complement(values)?;
    let copy = (0..copies.size()).find(|c| copies.at(*c) == first).ok_or_else(uneven)?;
    if copies.size().checked_mul(registers.size()) != Some(values) {
        return Err(uneven());
    }
    let layout = tv(&of_threads, &of_values)?;
    Ok((layout, Part { of: p.buffer_of(t).name.clone(), all: values, registers, first, copy }))
}

/// A layout of the whole tensor by which threads hold the view by `own`; none where the rest of the
/// tensor is no copy of the view, or where threads would hold the same elements.
pub(super) fn whole(p: &Program, t: TensorId, own: &Layout) -> Option<Layout> {
    let (l, offset) = positions(p, t)?;
    let size = declared(p, t)?;
    let inside = l.compose(own).ok()?;
    let copies = l.complement(size).ok()?;
    if copies.size().checked_mul(l.size()) != Some(size) {
        return None;
    }
    (0..copies.size()).find(|c| copies.at(*c) == offset)?;
    let values = join(&[inside.mode(1).ok()?, copies]).ok()?;
    let threads = join(&[inside.mode(0).ok()?]).ok()?;
    if threads.size().checked_mul(values.size())? > size.max(threads.size()) {
        return None;
    }
    let all = tv(&threads, &values).ok()?;
    // The view is to be found in it again, as it was.
    let (again, _) = part(p, t, &all).ok()?;
    super::digits::same(&again, own).then_some(all)
}

/// Elements of the tensor that the view is a part of.
fn declared(p: &Program, t: TensorId) -> Option<i64> {
    ops::whole(p, p.buffer_of(t).tensor).map(|l| l.size())
}

/// Whether values side by side lie in registers side by side, `n` at a time from a multiple of `n`
/// on.
pub(super) fn side_by_side(part: &Part, n: i64) -> bool {
    let at = |v: i64| part.first + part.registers.at(v);
    (0..part.registers.size()).all(|v| {
        let of_unit = v - v % n;
        at(of_unit) % n == 0 && at(v) == at(of_unit) + v % n
    })
}

/// Whether two operands name elements of one tensor of registers, and not the same ones in the same
/// order.
pub(super) fn overlap(p: &Program, a: TensorId, b: TensorId) -> bool {
    let (x, y) = (&p.tensors[a], &p.tensors[b]);
    if x.buffer != y.buffer || !is_part(p, a) && !is_part(p, b) {
        return false;
    }
    let all = |t: TensorId| -> Option<Vec<i64>> {
        // Of the whole tensor all elements, in their order.
        if !is_part(p, t) {
            return Some((0..declared(p, t)?).collect());
        }
        let (l, offset) = positions(p, t)?;
        (l.size() <= MAX_ELEMENTS).then(|| (0..l.size()).map(|e| offset + l.at(e)).collect())
    };
    let (Some(first), Some(second)) = (all(a), all(b)) else { return true };
    if first == second {
        return false;
    }
    let first: std::collections::BTreeSet<i64> = first.into_iter().collect();
    second.iter().any(|e| first.contains(e))
}

/// The layout whose elements these are.
fn fitted(list: &[i64]) -> Option<Layout> {
    let (mut modes, mut step) = (vec![], 1usize);
    while step < list.len() {
        let stride = *list.get(step)?;
        let multiple = |n: usize| {
            let at = i64::try_from(n).ok().and_then(|n| n.checked_mul(stride));
            n * step < list.len() && at == Some(list[n * step])
        };
        let most = (2..=list.len() / step).take_while(|n| multiple(n - 1)).last()?;
        // Whole modes only.
        let n = (2..=most).rev().find(|n| (list.len() / step).is_multiple_of(*n))?;
        modes.push(mode(i64::try_from(n).ok()?, stride));
        step *= n;
    }
    let layout = join(&modes).ok()?;
    let is = |(i, v): (usize, &i64)| i64::try_from(i).is_ok_and(|i| layout.at(i) == *v);
    (layout.size() == list.len() as i64 && list.iter().enumerate().all(is)).then_some(layout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_layouts() {
        let show = |list: &[i64]| fitted(list).map(|l| l.to_string());
        assert_eq!(show(&[0]).as_deref(), Some("1:0"));
        assert_eq!(show(&[0, 1, 2, 3]).as_deref(), Some("4:1"));
        assert_eq!(show(&[0, 4, 1, 5]).as_deref(), Some("(2,2):(4,1)"));
        assert_eq!(show(&[0, 1, 4, 5, 8, 9]).as_deref(), Some("(2,3):(1,4)"));
        assert_eq!(show(&[0, 0, 1, 1]).as_deref(), Some("(2,2):(0,1)"));
        assert_eq!(show(&[0, 1, 3]), None);
        assert_eq!(show(&[1, 2]), None);
    }
}
