//! Runs the laws of the kit for a second implementation of layouts, as plain data. Most operations
//! that regroup, merge or evaluate leaves, and complements, are written out leaf by leaf.
//! Composition, inverses, division, products and the operations that are built from them call the
//! crate's own layouts; for these, the laws test no independent implementation. A law about a
//! written-out operation fails here if only the crate's form of the result satisfies it.

use carbyne_ir::kit::{Answer, Bits, LayoutLike, Plain, Tiling, layout_laws};
use carbyne_ir::layout::Layout;
use carbyne_ir::tuple::IntTuple;

/// A layout of this crate, for operations that need algebra. Operations that regroup leaves use
/// plain data.
#[derive(Clone, Debug)]
struct Naive(Plain);

fn ours(p: &Plain) -> Layout {
    Layout::new(p.shape.clone(), p.stride.clone()).expect("a layout")
}

fn plain(answer: Answer<Layout>) -> Answer<Naive> {
    answer.map(|a| Naive(LayoutLike::plain(&a)))
}

fn tiling(t: &Tiling<Naive>) -> Tiling<Layout> {
    match t {
        Tiling::Layout(a) => Tiling::Layout(ours(&a.0)),
        Tiling::Modes(modes) => Tiling::Modes(modes.iter().map(tiling).collect()),
        Tiling::Keep => Tiling::Keep,
    }
}

fn got(p: Plain) -> Answer<Naive> {
    Answer::Got(Naive(p))
}

impl Naive {
    /// Changes the leaves and keeps the nesting.
    fn leafwise(&self, f: impl Fn(i64, i64) -> (i64, i64)) -> Answer<Naive> {
        let mut leaves = self.0.leaves().into_iter().map(|(d, s)| f(d, s));
        let mut strides = vec![];
        let shape = self.0.shape.map(&mut |_| {
            let (extent, stride) = leaves.next().expect("a leaf");
            strides.push(stride);
            extent
        });
        let mut strides = strides.into_iter();
        let stride = shape.map(&mut |_| strides.next().expect("a leaf"));
        got(Plain { shape, stride })
    }

    /// The modes ((first), rest...) of a zipped result, or (first..., rest...).
    fn unzipped(zipped: Answer<Naive>, flat: bool) -> Answer<Naive> {
        zipped.map(|z| {
            let halves = z.0.modes();
            let mut modes = if flat { halves[0].modes() } else { vec![halves[0].clone()] };
            modes.extend(halves[1].modes());
            Naive(Plain::concat(&modes))
        })
    }

    fn interleaved(&self, tiler: &Naive, block_first: bool) -> Answer<Naive> {
        let product = ours(&self.0).logical_product(ours(&tiler.0));
        Answer::from(product).map(|p| {
            let halves = LayoutLike::plain(&p).modes();
            // A single number may have become several leaves; they remain one mode.
            let copies =
                if tiler.0.shape.is_leaf() { vec![halves[1].clone()] } else { halves[1].modes() };
            let blocks = halves[0].modes();
            let one = Plain::new(1, 0);
            let pair = |k: usize| {
                let (b, c) = (blocks.get(k).unwrap_or(&one), copies.get(k).unwrap_or(&one));
                let (b, c) = (b.clone(), c.clone());
                Plain::concat(&if block_first { [b, c] } else { [c, b] })
            };
            Naive(Plain::concat(&(0..blocks.len().max(copies.len())).map(pair).collect::<Vec<_>>()))
        })
    }

    fn picked(&self, coord: &IntTuple<Option<i64>>, open: bool) -> Answer<Naive> {
        fn walk(a: &Plain, c: &IntTuple<Option<i64>>, open: bool, to: &mut Vec<Plain>) {
            match c {
                IntTuple::Leaf(c) if c.is_none() == open => to.push(a.clone()),
                IntTuple::Leaf(_) => {}
                IntTuple::Tuple(cs) => {
                    a.modes().iter().zip(cs).for_each(|(a, c)| walk(a, c, open, to));
                }
            }
        }
        let mut modes = vec![];
        walk(&self.0, coord, open, &mut modes);
        got(Plain::concat(&modes))
    }

    fn by_profile(&self, profile: &IntTuple) -> Plain {
        match profile {
            IntTuple::Leaf(_) => LayoutLike::plain(&ours(&self.0).coalesce()),
            IntTuple::Tuple(profiles) => {
                let modes = self.0.modes().into_iter().zip(profiles);
                Plain::concat(&modes.map(|(a, p)| Naive(a).by_profile(p)).collect::<Vec<_>>())
            }
        }
    }
}

/// Whether both have the same nesting. `below` decides whether `a` may have a number where `b` has
/// a tuple.
fn alike(a: &IntTuple, b: &IntTuple, below: &impl Fn(&IntTuple, &IntTuple) -> bool) -> bool {
    match (a, b) {
        (IntTuple::Leaf(_), IntTuple::Leaf(_)) => true,
        (IntTuple::Tuple(x), IntTuple::Tuple(y)) => {
            x.len() == y.len() && x.iter().zip(y).all(|(a, b)| alike(a, b, below))
        }
        (IntTuple::Leaf(_), _) => below(a, b),
        _ => false,
    }
}

impl LayoutLike for Naive {
    fn build(shape: &IntTuple, stride: &IntTuple) -> Answer<Self> {
        got(Plain::new(shape.clone(), stride.clone()))
    }
    fn shape(&self) -> IntTuple {
        self.0.shape.clone()
    }
    fn stride(&self) -> IntTuple {
        self.0.stride.clone()
    }
    fn eval(&self, mut i: i64) -> Answer<i64> {
        let mut index = 0;
        for (extent, stride) in self.0.leaves() {
            index += i % extent * stride;
            i /= extent;
        }
        Answer::Got(index)
    }
    fn eval_at(&self, coord: &IntTuple) -> Answer<i64> {
        let part = |a: &Plain, c: &IntTuple| Naive(a.clone()).eval_at(c);
        match coord {
            IntTuple::Leaf(i) => self.eval(*i),
            IntTuple::Tuple(parts) => {
                let parts = self.0.modes().into_iter().zip(parts);
                let sum = parts.map(|(a, c)| match part(&a, c) {
                    Answer::Got(index) => index,
                    other => panic!("{other:?}"),
                });
                Answer::Got(sum.sum())
            }
        }
    }
    fn coalesce(&self) -> Answer<Self> {
        let mut merged: Vec<(i64, i64)> = vec![];
        for (extent, stride) in self.0.leaves() {
            match merged.last_mut() {
                _ if extent == 1 => {}
                Some(last) if last.0 * last.1 == stride => last.0 *= extent,
                _ => merged.push((extent, stride)),
            }
        }
        got(match merged.as_slice() {
            [] => Plain::new(1, 0),
            [(extent, stride)] => Plain::new(*extent, *stride),
            leaves => Plain::flat(leaves),
        })
    }
    fn filter(&self) -> Answer<Self> {
        let mut kept = self.0.leaves();
        kept.retain(|&(extent, stride)| extent > 1 && stride != 0);
        Naive(Plain::flat(&kept)).coalesce()
    }
    fn flatten(&self) -> Answer<Self> {
        got(Plain::flat(&self.0.leaves()))
    }
    fn complement(&self, cotarget: i64) -> Answer<Self> {
        let mut leaves = self.0.leaves();
        leaves.retain(|&(extent, stride)| extent > 1 && stride != 0);
        leaves.sort_by_key(|&(_, stride)| stride);
        let (mut gaps, mut reach) = (vec![], 1);
        for (extent, stride) in leaves {
            if stride < reach || stride % reach != 0 {
                return Answer::Refused(format!("{extent}:{stride} does not nest"));
            }
            gaps.push((stride / reach, reach));
            reach = extent * stride;
        }
        gaps.push(((cotarget + reach - 1) / reach, reach));
        Naive(Plain::flat(&gaps)).coalesce()
    }
    fn left_inverse(&self) -> Answer<Self> {
        plain(LayoutLike::left_inverse(&ours(&self.0)))
    }
    fn with_shape(&self, shape: &IntTuple) -> Answer<Self> {
        let mut next = 1;
        let stride = shape.map(&mut |&extent| {
            next *= extent;
            next / extent
        });
        self.composition(&Tiling::Layout(Naive(Plain::new(shape.clone(), stride))))
    }
    fn group(&self, begin: usize, end: usize) -> Answer<Self> {
        let modes = self.0.modes();
        let (low, rest) = modes.split_at(begin);
        let (middle, high) = rest.split_at(end - begin);
        got(Plain::concat(&[low, &[Plain::concat(middle)], high].concat()))
    }
    fn concat(modes: &[Self]) -> Answer<Self> {
        let modes: Vec<Plain> = modes.iter().map(|mode| mode.0.clone()).collect();
        got(Plain::concat(&modes))
    }
    fn congruent(a: &IntTuple, b: &IntTuple) -> Answer<bool> {
        Answer::Got(alike(a, b, &|_, _| false))
    }
    fn weakly_congruent(a: &IntTuple, b: &IntTuple) -> Answer<bool> {
        Answer::Got(alike(a, b, &|_, _| true))
    }
    fn compatible(a: &IntTuple, b: &IntTuple) -> Answer<bool> {
        let size = |t: &IntTuple| t.flatten().iter().product::<i64>();
        let fits = |a: &IntTuple, b: &IntTuple| size(a) == size(b);
        fn walk(a: &IntTuple, b: &IntTuple, fits: &impl Fn(&IntTuple, &IntTuple) -> bool) -> bool {
            match (a, b) {
                (IntTuple::Leaf(_), _) => fits(a, b),
                (IntTuple::Tuple(x), IntTuple::Tuple(y)) => {
                    x.len() == y.len() && x.iter().zip(y).all(|(a, b)| walk(a, b, fits))
                }
                _ => false,
            }
        }
        Answer::Got(walk(a, b, &fits))
    }
    fn swizzle(s: Bits, index: i64) -> Answer<i64> {
        let bit = |k: u32| index >> k & 1;
        let flip = |k: u32| (bit(s.base + s.shift + k)) << (s.base + k);
        Answer::Got(index ^ (0..s.bits).map(flip).sum::<i64>())
    }
    fn swizzled_eval(&self, swizzle: Bits, offset: i64, i: i64) -> Answer<i64> {
        match self.eval(i) {
            Answer::Got(index) => Naive::swizzle(swizzle, offset + index),
            other => other,
        }
    }
    fn swizzled_composition(
        &self,
        swizzle: Bits,
        offset: i64,
        inner: &Self,
        i: i64,
    ) -> Answer<i64> {
        match inner.eval(i) {
            Answer::Got(at) => self.swizzled_eval(swizzle, offset, at),
            other => other,
        }
    }
    fn swizzle_recast(s: Bits, old_bits: u32, new_bits: u32) -> Answer<Bits> {
        let base = s.base as i32 + old_bits.ilog2() as i32 - new_bits.ilog2() as i32;
        match u32::try_from(base) {
            Ok(base) => Answer::Got(Bits { base, ..s }),
            Err(_) => Answer::Refused("tears elements apart".to_owned()),
        }
    }
    fn has_negative_strides() -> bool {
        true
    }
    fn coalesce_by(&self, profile: &IntTuple) -> Answer<Self> {
        got(self.by_profile(profile))
    }
    fn right_inverse(&self) -> Answer<Self> {
        plain(LayoutLike::right_inverse(&ours(&self.0)))
    }
    fn composition(&self, inner: &Tiling<Self>) -> Answer<Self> {
        plain(LayoutLike::composition(&ours(&self.0), &tiling(inner)))
    }
    fn nullspace(&self) -> Answer<Self> {
        let mut prefix = 1;
        let mut zeros = vec![];
        for (extent, stride) in self.0.leaves() {
            if stride == 0 {
                zeros.push((extent, prefix));
            }
            prefix *= extent;
        }
        got(Plain::flat(&zeros))
    }
    fn logical_divide(&self, t: &Tiling<Self>) -> Answer<Self> {
        plain(LayoutLike::logical_divide(&ours(&self.0), &tiling(t)))
    }
    fn zipped_divide(&self, t: &Tiling<Self>) -> Answer<Self> {
        plain(LayoutLike::zipped_divide(&ours(&self.0), &tiling(t)))
    }
    fn tiled_divide(&self, t: &Tiling<Self>) -> Answer<Self> {
        Naive::unzipped(self.zipped_divide(t), false)
    }
    fn flat_divide(&self, t: &Tiling<Self>) -> Answer<Self> {
        Naive::unzipped(self.zipped_divide(t), true)
    }
    fn logical_product(&self, t: &Tiling<Self>) -> Answer<Self> {
        plain(LayoutLike::logical_product(&ours(&self.0), &tiling(t)))
    }
    fn zipped_product(&self, t: &Tiling<Self>) -> Answer<Self> {
        plain(LayoutLike::zipped_product(&ours(&self.0), &tiling(t)))
    }
    fn tiled_product(&self, t: &Tiling<Self>) -> Answer<Self> {
        Naive::unzipped(self.zipped_product(t), false)
    }
    fn flat_product(&self, t: &Tiling<Self>) -> Answer<Self> {
        Naive::unzipped(self.zipped_product(t), true)
    }
    fn blocked_product(&self, tiler: &Self) -> Answer<Self> {
        self.interleaved(tiler, true)
    }
    fn raked_product(&self, tiler: &Self) -> Answer<Self> {
        self.interleaved(tiler, false)
    }
    fn tile_to_shape(&self, shape: &IntTuple) -> Answer<Self> {
        let blocks = self.0.shape.flatten();
        let times: Vec<i64> = shape.flatten().iter().zip(blocks).map(|(d, b)| d / b).collect();
        match Layout::col_major(times) {
            Ok(copies) => self.blocked_product(&Naive(LayoutLike::plain(&copies))),
            Err(error) => Answer::Refused(error.to_string()),
        }
    }
    fn max_common_layout(&self, other: &Self) -> Answer<Self> {
        let [a, b] = [&self.0, &other.0].map(|p| p.values().expect("a small layout"));
        if self.0 == other.0 {
            return self.right_inverse();
        }
        let at = |i: i64| a.iter().zip(&b).position(|(&x, &y)| x == i && y == i);
        // The common run of one stride at the beginning of both.
        let Some(step) = at(1) else { return got(Plain::new(1, 0)) };
        let run = (0..).take_while(|&i| at(i) == Some(i as usize * step)).count();
        got(Plain::new(run as i64, step as i64))
    }
    fn max_common_vector(&self, other: &Self) -> Answer<i64> {
        let [a, b] = [&self.0, &other.0].map(|p| p.values().expect("a small layout"));
        let met = |i: i64| a.iter().zip(&b).any(|(&x, &y)| x == i && y == i);
        Answer::Got((0..).take_while(|&i| met(i)).count() as i64)
    }
    fn upcast(&self, n: i64) -> Answer<Self> {
        self.leafwise(|extent, stride| match stride {
            0 => (extent, 0),
            _ if stride % n == 0 => (extent, stride / n),
            _ => ((extent / (n / stride)).max(1), 1),
        })
    }
    fn downcast(&self, n: i64) -> Answer<Self> {
        self.leafwise(|d, s| if s == 1 { (d * n, 1) } else { (d, s * n) })
    }
    fn recast(&self, old: i64, new: i64) -> Answer<Self> {
        if new >= old { self.upcast(new / old) } else { self.downcast(old / new) }
    }
    fn slice(&self, coord: &IntTuple<Option<i64>>) -> Answer<Self> {
        self.picked(coord, true)
    }
    fn dice(&self, coord: &IntTuple<Option<i64>>) -> Answer<Self> {
        self.picked(coord, false)
    }
}

layout_laws!(Naive);
