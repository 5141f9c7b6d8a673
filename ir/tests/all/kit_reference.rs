//! The laws of every operation hold for a plain implementation of it, written leaf by leaf: a law that
//! could not hold would be found here, whatever operations this crate's layouts have.

use carbyne_ir::kit::{Answer, LayoutLike, Plain, Tiling, layout_laws};
use carbyne_ir::layout::Layout;
use carbyne_ir::tuple::IntTuple;

/// This crate's layouts where an operation needs algebra, plain data where it regroups leaves.
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
    /// The leaves changed, the nesting kept.
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

    /// ((first), rest...) of a zipped result, or (first..., rest...).
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
            // A single number may have become several leaves; it is one mode still.
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
        // The run of one stride that both begin with.
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
