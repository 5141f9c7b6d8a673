//! Inverts a layout: maps an offset in a buffer to the element at that offset, or to the first of
//! several elements. Names in errors (`%C[3,5]`) and the comparison of written elements need it.
//!
//! A layout is a sum of digits, each with an extent and a stride. Digits of equal stride are
//! combined into one digit with more values; examples are the window and the pixels of a
//! convolution. If every stride exceeds the reach of all smaller ones, the digits follow from the
//! offset, the largest stride first. Otherwise, as when a window moves by more than one pixel, a
//! digit has a few possible values that the smaller digits may complete, and all are tried. Where
//! there are too many of them, the elements of a small layout are listed instead, and a large
//! layout has no inverse.

use super::{OUTSIDE, View};

/// The map from an offset in a buffer to the element at that offset.
pub(crate) struct Inverse {
    /// The digits, the largest stride first.
    digits: Vec<Digit>,
    /// For each digit, the reach of the digit and all smaller ones; empty if every stride exceeds
    /// that reach.
    reach: Vec<i64>,
    /// If there are too many combinations of digits to try: sorted (offset, element).
    listed: Vec<(i64, i64)>,
    size: i64,
}

/// The modes of one stride.
struct Digit {
    stride: i64,
    extent: i64,
    /// The extent and the weight in the element's number of each mode, the smallest weight first.
    parts: Vec<(i64, i64)>,
}

/// The largest number of listed elements of a layout.
const MAX_LISTED: i64 = 1 << 20;
/// The largest number of combinations of digits that are tried for one offset.
const MAX_TRIED: i64 = 1 << 10;

impl Digit {
    /// The least contribution of a value to the element's number: modes of smaller weight are
    /// filled first.
    #[inline]
    fn element(&self, value: i64) -> i64 {
        if let [(_, weight)] = self.parts[..] {
            return value * weight;
        }
        let mut rest = value;
        let mut element = 0;
        for (extent, weight) in &self.parts {
            let here = rest.min(extent - 1);
            element += here * weight;
            rest -= here;
        }
        element
    }
}

impl Inverse {
    /// The inverse of the layout with these leaves (extent, stride), first fastest. None for a
    /// large layout with too many combinations to try.
    pub(crate) fn new(leaves: &[(i64, i64)]) -> Option<Self> {
        if leaves.iter().any(|(extent, _)| *extent == 0) {
            return Some(Inverse::listing(vec![]));
        }
        let mut weight = 1i64;
        let mut digits: Vec<Digit> = Vec::new();
        for &(extent, stride) in leaves {
            if extent > 1 && stride != 0 {
                match digits.iter_mut().find(|d| d.stride == stride) {
                    Some(digit) => {
                        digit.extent = digit.extent.checked_add(extent - 1)?;
                        digit.parts.push((extent, weight));
                    }
                    None => digits.push(Digit { stride, extent, parts: vec![(extent, weight)] }),
                }
            }
            weight = weight.checked_mul(extent)?;
        }
        digits.sort_unstable_by_key(|d| std::cmp::Reverse(d.stride));
        let (mut reach, mut below) = (vec![0; digits.len()], 0i64);
        let (mut nested, mut tried) = (true, 1i64);
        for (digit, reach) in digits.iter().zip(&mut reach).rev() {
            nested &= digit.stride > below;
            let values = below.checked_div(digit.stride)?.saturating_add(1).min(digit.extent);
            tried = if digit.stride > 0 { tried.saturating_mul(values) } else { i64::MAX };
            below = below.checked_add(digit.stride.checked_mul(digit.extent - 1)?)?;
            *reach = below;
        }
        if nested {
            reach.clear();
        }
        if nested || tried <= MAX_TRIED {
            return Some(Inverse { digits, reach, listed: Vec::new(), size: weight });
        }
        if weight > MAX_LISTED {
            return None;
        }
        let at = |e: i64| {
            let (mut rest, mut at) = (e, 0i64);
            for (extent, stride) in leaves {
                at = at.wrapping_add((rest % extent).wrapping_mul(*stride));
                rest /= extent;
            }
            at
        };
        Some(Inverse::listing((0..weight).map(|e| (at(e), e)).collect()))
    }

    /// The inverse for a view, and the offset from which it counts. If the start of a partial view
    /// is known, only its existing elements are included.
    pub(crate) fn of_view(view: &View) -> Option<(Self, i64)> {
        let Some(base) = view.known().filter(|base| base.is_partial()) else {
            return Some((Inverse::new(&view.leaves)?, view.known().map_or(0, |base| base.at)));
        };
        if view.size > MAX_LISTED {
            return None;
        }
        let places = (0..view.size).map(|e| (view.place(base, e as usize), e));
        let listed = places.filter(|(at, _)| *at != OUTSIDE).map(|(at, e)| (at - base.at, e));
        Some((Inverse::listing(listed.collect()), base.at))
    }

    /// The inverse that consists of these offsets and elements.
    fn listing(mut listed: Vec<(i64, i64)>) -> Self {
        listed.sort_unstable();
        listed.dedup_by_key(|(offset, _)| *offset);
        let size = listed.len() as i64;
        Inverse { digits: Vec::new(), reach: Vec::new(), listed, size }
    }

    /// The element at an offset; none in gaps.
    #[inline]
    pub(crate) fn element(&self, offset: i64) -> Option<i64> {
        if !self.listed.is_empty() {
            let i = self.listed.binary_search_by_key(&offset, |(o, _)| *o).ok()?;
            return Some(self.listed[i].1);
        }
        if !self.reach.is_empty() {
            return self.try_from(0, offset);
        }
        let (mut rest, mut element) = (offset, 0);
        for digit in &self.digits {
            let value = rest / digit.stride;
            if rest < 0 || value >= digit.extent {
                return None;
            }
            element += digit.element(value);
            rest -= value * digit.stride;
        }
        (rest == 0 && element < self.size).then_some(element)
    }

    /// The first element that the digits from `digit` on can form from the rest.
    fn try_from(&self, digit: usize, rest: i64) -> Option<i64> {
        let (Some(first), Some(reach)) = (self.digits.get(digit), self.reach.get(digit)) else {
            return (rest == 0).then_some(0);
        };
        if rest < 0 || rest > *reach {
            return None;
        }
        let below = self.reach.get(digit + 1).copied().unwrap_or(0);
        let least = (rest - below).max(0);
        let least = least / first.stride + i64::from(least % first.stride != 0);
        let most = (rest / first.stride).min(first.extent - 1);
        let of = |value: i64| {
            let others = self.try_from(digit + 1, rest - value * first.stride)?;
            Some(others + first.element(value))
        };
        (least..=most).filter_map(of).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(leaves: &[(i64, i64)]) {
        let inverse = Inverse::new(leaves).unwrap_or_else(|| panic!("{leaves:?}"));
        let size: i64 = leaves.iter().map(|(n, _)| n).product();
        let at = |e: i64| {
            let mut rest = e;
            leaves.iter().fold(0, |sum, (n, s)| {
                let digit = rest % n;
                rest /= n;
                sum + digit * s
            })
        };
        let mut first = std::collections::BTreeMap::new();
        for e in (0..size).rev() {
            first.insert(at(e), e);
        }
        for offset in -3..first.keys().next_back().map_or(0, |last| last + 5) {
            assert_eq!(inverse.element(offset), first.get(&offset).copied(), "{leaves:?} {offset}");
        }
    }

    #[test]
    fn inverses_find_every_element_and_no_gap() {
        let cases: [&[(i64, i64)]; 12] = [
            &[(4, 1), (8, 4)],
            &[(4, 8), (8, 1)],
            &[(3, 2), (5, 10)],
            &[(2, 1), (4, 16), (3, 2), (2, 8)],
            &[(4, 0), (3, 1)],
            &[(3, 2), (2, 3)], // 0 2 4 3 5 7: interleaved.
            &[],
            &[(1, 7)],
            // Windows of 3 that move by 1 and by 2, with holes, and in two dimensions.
            &[(6, 4), (4, 1), (3, 4)],
            &[(6, 8), (4, 1), (3, 4)],
            &[(6, 4), (4, 1), (3, 8)],
            &[(5, 2), (5, 28), (2, 1), (3, 2), (3, 14)],
        ];
        cases.into_iter().for_each(check);
    }

    #[test]
    fn layouts_without_elements_have_empty_inverses() {
        for leaves in [&[(0, 1)][..], &[(4, 1), (0, 4)], &[(6, 4), (4, 1), (0, 3)]] {
            let inverse = Inverse::new(leaves).unwrap();
            assert!((-2..20).all(|at| inverse.element(at).is_none()), "{leaves:?}");
        }
    }

    #[test]
    fn inverses_of_any_digits() {
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        let mut below = |n: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            ((random >> 11) % n) as i64
        };
        for _ in 0..400 {
            let leaves: Vec<(i64, i64)> =
                (0..below(5)).map(|_| (1 + below(4), below(12))).collect();
            check(&leaves);
        }
    }

    #[test]
    fn large_windows_have_inverses() {
        // An image of 8x66x66 pixels with 64 channels, with windows of 3x3: 19 million elements.
        let image = [(64, 64), (64, 66 * 64), (8, 66 * 66 * 64), (64, 1), (3, 64), (3, 66 * 64)];
        let inverse = Inverse::new(&image).unwrap();
        assert_eq!(inverse.element(0), Some(0));
        // Only the last place of the last window is at the pixel (65, 65).
        let last = 7 * 66 * 66 * 64 + (65 * 66 + 65) * 64 + 63;
        assert_eq!(inverse.element(last), Some(image.iter().map(|(n, _)| n).product::<i64>() - 1));
        assert_eq!(inverse.element(last + 1), None);
        // Two dozen digits that all overlap have too many combinations.
        let steps: Vec<(i64, i64)> = (0..24).map(|i| (2, 1000 + i)).collect();
        assert!(Inverse::new(&steps).is_none());
    }
}
