//! Checks laws of complements, of left and right inverses, and of the nullspace (the coordinates
//! along modes of stride 0).
//!
//! Invariant: inverses are only checked on the image, the indices that the layout reaches.
//! Elsewhere libraries choose differently.

use crate::kit::error::{Demand, LawResult, judge, judge_as};
use crate::kit::like::LayoutLike;
use crate::kit::plain::{Plain, distinct};

/// The complement is ordered, and its image shares only 0 with the image of the layout. All sums of
/// one index of each are different. If the strides nest, the sums cover all indices below
/// `cotarget`.
pub fn law_complement<T: LayoutLike>(a: &Plain, cotarget: i64, demand: Demand) -> LawResult {
    judge_as("complement", demand, &[("a", a), ("cotarget", &cotarget)], |case| {
        let built: T = case.build(a)?;
        let (_, rest) = case.table("complement", built.complement(cotarget))?;
        for (i, pair) in rest.windows(2).enumerate() {
            if pair[0] >= pair[1] {
                let wanted = format!("more than {}", pair[0]);
                let at = Some((i + 1).to_string());
                return Err(case.broken("the order of the complement", at, &pair[1], &wanted));
            }
        }
        let mut image = case.values(a)?;
        image.sort_unstable();
        image.dedup();
        if image.len() * rest.len() > crate::kit::MAX_POINTS {
            return Ok(()); // Too many sums to enumerate; only the order is checked.
        }
        let mut sums: Vec<i64> =
            rest.iter().flat_map(|r| image.iter().map(move |i| i + r)).collect();
        sums.sort_unstable();
        if let Some(pair) = sums.windows(2).find(|pair| pair[0] == pair[1]) {
            let at = Some(format!("index {}", pair[0]));
            return Err(case.broken("sums of both", at, &"twice", &"once at most"));
        }
        if a.nests() {
            let hole = (0..cotarget).zip(&sums).find(|(wanted, sum)| wanted != *sum);
            let missing = hole.map(|(wanted, _)| wanted);
            let end = sums.len() as i64;
            if let Some(hole) = missing.or((end < cotarget).then_some(end)) {
                let at = Some(format!("index {hole}"));
                return Err(case.broken("sums of both", at, &"a hole", &"no hole"));
            }
        }
        Ok(())
    })
}

/// `a(r(i)) == i` for every `i`. For a bijection, `r` is the full inverse.
pub fn law_right_inverse<T: LayoutLike>(a: &Plain) -> LawResult {
    judge("right_inverse", &[("a", a)], |case| {
        let built: T = case.build(a)?;
        let (_, inverse) = case.table("right_inverse", built.right_inverse())?;
        let values = case.values(a)?;
        for (i, &at) in inverse.iter().enumerate() {
            let found = usize::try_from(at).ok().and_then(|at| values.get(at));
            let Some(&found) = found else {
                let wanted = format!("below {}", values.len());
                return Err(case.broken("the inverse", Some(i.to_string()), &at, &wanted));
            };
            case.point("a(result(i))", || i.to_string(), found, i as i64)?;
        }
        if a.cosize() == values.len() as i64 && distinct(&values) {
            case.same("the size of a bijection's inverse", &inverse.len(), &values.len())?;
        }
        Ok(())
    })
}

/// `a(l(a(i))) == a(i)` for every `i`: `l` inverts an injective layout.
pub fn law_left_inverse<T: LayoutLike>(a: &Plain, demand: Demand) -> LawResult {
    judge_as("left_inverse", demand, &[("a", a)], |case| {
        let built: T = case.build(a)?;
        let (l, inverse) = case.table("left_inverse", built.left_inverse())?;
        let values = case.values(a)?;
        for (i, &index) in values.iter().enumerate() {
            let at = match usize::try_from(index).ok().and_then(|index| inverse.get(index)) {
                Some(&at) => Some(at),
                // The last mode continues beyond the table.
                None => l.at(&crate::tuple::IntTuple::Leaf(index)),
            };
            let found = at.and_then(|at| values.get(usize::try_from(at).ok()?)).copied();
            case.point("a(result(a(i)))", || i.to_string(), found.unwrap_or(-1), index)?;
        }
        Ok(())
    })
}

/// The nullspace consists of different coordinates, all with index 0, one for each choice of the
/// stride-0 leaves.
pub fn law_nullspace<T: LayoutLike>(a: &Plain) -> LawResult {
    judge("nullspace", &[("a", a)], |case| {
        let built: T = case.build(a)?;
        let (_, null) = case.table("nullspace", built.nullspace())?;
        let values = case.values(a)?;
        for (i, &at) in null.iter().enumerate() {
            let found = usize::try_from(at).ok().and_then(|at| values.get(at)).copied();
            case.point("a(result(i))", || i.to_string(), found.unwrap_or(-1), 0)?;
        }
        case.holds("all coordinates are different", distinct(&null))?;
        let zeros = a.leaves().into_iter().filter(|&(_, stride)| stride == 0);
        let wanted: i64 = zeros.map(|(extent, _)| extent).product();
        case.same("the number of coordinates", &(null.len() as i64), &wanted)
    })
}
