//! Takes thread-value layouts apart into digits that each lie in one mode of the tensor
//! ([`digits()`]). Digits tell which values a reduction projects away ([`project`]), which ones a
//! broadcast repeats, and in which register a value lies in another order ([`reordered`]).

use super::tv::{join, mode, tv};
use super::unfit::Unfit;
use carbyne_ir::layout::Layout;

/// A digit of T or V.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Digit {
    /// How many threads or values it counts.
    pub extent: i64,
    /// Threads or values from one to the next.
    pub step: i64,
    /// The mode of the tensor that it runs along and the step in it; none where all of them name
    /// one element.
    pub along: Option<(usize, i64)>,
}

/// The digits of T or of V. `layout` names elements by the column-major index in `extents`.
///
/// # Errors
/// Where a leaf leaves its mode at a place that it does not divide.
pub(crate) fn digits(layout: &Layout, extents: &[i64]) -> Result<Vec<Digit>, Unfit> {
    let mut out = vec![];
    let mut step = 1;
    for &(n, s) in layout.leaves() {
        let (mut n, mut s) = (n, s);
        if n > 1 && s == 0 {
            out.push(Digit { extent: n, step, along: None });
            step *= n;
            continue;
        }
        while n > 1 {
            let mut unit = 1;
            let m = extents.iter().position(|e| {
                unit *= e;
                s < unit
            });
            let Some(m) = m else { return Err(Unfit::Leaves(s)) };
            let (extent, unit) = (extents[m], unit / extents[m]);
            let at = s / unit;
            let here = extent / at.max(1);
            let take = n.min(here);
            if s % unit != 0 || take < 2 || n % take != 0 || (take < n && extent % at != 0) {
                return Err(Unfit::Crosses { digit: (n, s), of: extent });
            }
            out.push(Digit { extent: take, step, along: Some((m, at)) });
            (n, s, step) = (n / take, s * take, step * take);
        }
    }
    Ok(out)
}

/// Where a value of a tensor that is read again and again lies, and with which threads: what the
/// layout of a tensor with modes `from` becomes in one with modes `to`, where modes that `keep`
/// leaves out are gone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Projection {
    /// The thread-value layout of the smaller tensor.
    pub tv: Layout,
    /// Digits of the threads.
    pub t: Vec<Digit>,
    /// Digits of the values of the larger tensor.
    pub v: Vec<Digit>,
    /// For each of `v`, the step between registers of the smaller tensor; none for what is gone.
    pub registers: Vec<Option<i64>>,
}

/// Projects a layout of a tensor with modes `extents` to the modes that are kept.
///
/// # Errors
/// Where the layout does not come apart into modes.
pub(crate) fn project(
    layout: &Layout,
    extents: &[i64],
    kept: &[bool],
) -> Result<Projection, Unfit> {
    let (t, v) = (digits(&layout.mode(0)?, extents)?, digits(&layout.mode(1)?, extents)?);
    let mut units = vec![];
    let mut next = 1;
    for (e, k) in extents.iter().zip(kept) {
        units.push(next);
        next *= if *k { *e } else { 1 };
    }
    let stride = |d: &Digit| match d.along {
        Some((m, at)) if kept.get(m) == Some(&true) => Some(at * units[m]),
        _ => None,
    };
    let threads: Vec<Layout> = t.iter().map(|d| mode(d.extent, stride(d).unwrap_or(0))).collect();
    let mut values = vec![];
    let mut registers = vec![];
    let mut register = 1;
    for d in &v {
        match stride(d) {
            Some(s) => {
                values.push(mode(d.extent, s));
                registers.push(Some(register));
                register *= d.extent;
            }
            // Several values of one thread that are one element stay apart.
            None if d.along.is_none() => {
                values.push(mode(d.extent, 0));
                registers.push(Some(register));
                register *= d.extent;
            }
            None => registers.push(None),
        }
    }
    let tv = tv(&join(&threads)?, &join(&values)?)?;
    Ok(Projection { tv, t, v, registers })
}

/// Whether two layouts are one function.
pub(crate) fn same_function(a: &Layout, b: &Layout) -> bool {
    a.size() == b.size()
        && (a.coalesce() == b.coalesce() || (0..a.size()).all(|i| a.at(i) == b.at(i)))
}

/// Whether two thread-value layouts are one function.
pub(crate) fn same(a: &Layout, b: &Layout) -> bool {
    (0..2).all(|i| match (a.mode(i), b.mode(i)) {
        (Ok(a), Ok(b)) => same_function(&a, &b),
        _ => false,
    })
}

/// Where the values that `wanted` names lie among those that `known` names, if every thread has the
/// same elements in both: value of `wanted` to value of `known`.
pub(crate) fn reordered(known: &Layout, wanted: &Layout) -> Option<Layout> {
    let (kt, kv) = (known.mode(0).ok()?, known.mode(1).ok()?);
    let (wt, wv) = (wanted.mode(0).ok()?, wanted.mode(1).ok()?);
    if !same_function(&kt, &wt) || kv.size() != wv.size() {
        return None;
    }
    if same_function(&kv, &wv) {
        return Some(wv.compose_identity());
    }
    // Digits of the known values: (extent, stride in the tensor, register).
    let mut have = vec![];
    let mut register = 1;
    for &(n, s) in kv.leaves() {
        if n > 1 {
            have.push((n, s, register));
        }
        register *= n;
    }
    let place = |n: i64, s: i64| -> Option<Vec<Layout>> {
        let (mut n, mut s, mut out) = (n, s, vec![]);
        while n > 1 {
            let &(e, unit, r) =
                have.iter().find(|(e, unit, _)| *unit > 0 && s % unit == 0 && s / unit < *e)?;
            let at = s / unit;
            let take = n.min(e / at);
            if take < 2 || n % take != 0 {
                return None;
            }
            out.push(mode(take, r * at));
            (n, s) = (n / take, s * take);
        }
        Some(out)
    };
    let mut modes = vec![];
    for m in wv.modes() {
        let mut parts = vec![];
        for &(n, s) in m.leaves().iter().filter(|(n, _)| *n > 1) {
            parts.extend(place(n, s)?);
        }
        modes.push(join(&parts).ok()?);
    }
    let map = Layout::concat(&modes).ok()?;
    (0..wv.size()).all(|v| kv.at(map.at(v)) == wv.at(v)).then_some(map)
}

trait Compact {
    fn compose_identity(&self) -> Layout;
}

impl Compact for Layout {
    /// The same modes with column-major strides.
    fn compose_identity(&self) -> Layout {
        let mut next = 1;
        let modes: Vec<Layout> = self
            .modes()
            .iter()
            .map(|m| {
                let l = mode(m.size(), next);
                next *= m.size();
                l
            })
            .collect();
        Layout::concat(&modes).unwrap_or_else(|_| mode(self.size(), 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn l(text: &str) -> Layout {
        text.parse().expect("a layout")
    }

    #[test]
    fn accumulators_reduced_along_n_keep_their_rows() {
        // C of mma.m16n8k16, twice along N.
        let c = l("((4,8),(2,2,2)):((32,1),(16,8,128))");
        let p = project(&c, &[16, 16], &[true, false]).expect("comes apart");
        assert_eq!(p.tv, l("((4,8),2):((0,1),8)"));
        assert_eq!(p.registers, [None, Some(1), None]);
        let over_m = project(&c, &[16, 16], &[false, true]).expect("comes apart");
        assert_eq!(over_m.tv, l("((4,8),(2,2)):((2,0),(1,8))"));
    }

    #[test]
    fn leaves_that_cross_a_mode_are_split() {
        let d = digits(&l("32:4"), &[16, 8]).expect("divides");
        assert_eq!(d.len(), 2);
        assert_eq!(d[0], Digit { extent: 4, step: 1, along: Some((0, 4)) });
        assert_eq!(d[1], Digit { extent: 8, step: 4, along: Some((1, 1)) });
        assert!(digits(&l("6:4"), &[16, 8]).is_err());
        assert!(digits(&l("2:128"), &[16, 8]).is_err());
    }

    #[test]
    fn values_of_another_order_are_found() {
        // C of two instructions along M and two along N is A of two instructions along M.
        let c = l("((4,8),(2,2,2,2)):((64,1),(32,8,16,256))");
        let a = l("((4,8),((2,2,2),2)):((64,1),((32,8,256),16))");
        let map = reordered(&c, &a).expect("the same elements");
        assert_eq!(map.to_string(), "((2,2,2),2):((1,2,8),4)");
        let other = l("((4,8),(2,2,2,2)):((32,1),(64,8,16,256))");
        assert!(reordered(&c, &other).is_none());
    }
}
