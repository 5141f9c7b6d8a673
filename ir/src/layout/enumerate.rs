//! Composes layouts by enumeration, for cases that the rules of divisibility in `compose.rs` do not
//! admit.
//!
//! Composition of constant layouts is decided completely for up to [`MAX_ENUMERATED`] coordinates,
//! by two facts. First, a function on `0..n` is a layout of size `n` in at most one coalesced way.
//! A greedy search finds it: the first mode must be as long as the values grow linearly. Second, a
//! layout whose nesting refines that of `b` is a sum of one function for each leaf of `b`. The
//! coordinates that move only one leaf determine its function.
//!
//! Example: `(2,2,2):(1,5,7) ∘ (2,2):(3,1)` is `(2,2):(6,1)`. A step of 3 moves the first two
//! digits of an index, and from index 1 it carries into the third digit; nevertheless it always
//! adds 6.

use super::profile::{Builder, Token};
use super::{Layout, Leaves, Stride};
use crate::leaf::Leaf;

/// The largest size of a right operand for enumeration.
pub(crate) const MAX_ENUMERATED: i64 = 1 << 14;

impl<L: Leaf, D: Stride<L>> Layout<L, D> {
    /// `self ∘ inner` if it is a layout, all numbers are constant, and the size is within the
    /// limit.
    #[cold]
    pub(crate) fn enumerated(&self, inner: &Layout<L>) -> Option<Self> {
        let constant = |leaves: &[(L, D)]| -> Option<Leaves<i64>> {
            leaves.iter().map(|(n, d)| Some((n.known()?, d.number()?))).collect()
        };
        let a = Layout { profile: self.profile.clone(), leaves: constant(&self.leaves)? };
        let leaves = inner.leaves.iter().map(|(n, d)| Some((n.known()?, d.known()?)));
        let b: Layout =
            Layout { profile: inner.profile.clone(), leaves: leaves.collect::<Option<_>>()? };
        if b.size() > MAX_ENUMERATED {
            return None;
        }
        let found = by_enumeration(&a, &b)?;
        let back = |(n, d): &(i64, i64)| (L::constant(*n), D::from_number(*d));
        Some(Layout {
            profile: found.profile.clone(),
            leaves: found.leaves.iter().map(back).collect(),
        })
    }
}

fn by_enumeration(a: &Layout, b: &Layout) -> Option<Layout> {
    let mut profile = Builder::default();
    let mut leaves = Leaves::new();
    let mut rest = b.leaves.iter();
    for token in b.profile.tokens() {
        match token {
            Token::Open => profile.open(),
            Token::Close => profile.close(),
            Token::Leaf => {
                let (extent, stride) = rest.next()?;
                let part = layout_of(*extent, |i| a.at(i * stride))?;
                profile.leaves(part.len());
                leaves.extend_from_slice(&part);
            }
        }
    }
    let result = Layout::checked(profile.done(), leaves).ok()?;
    (0..b.size()).all(|i| result.at(i) == a.at(b.at(i))).then_some(result)
}

/// The modes of the layout of size `n` that equals `f`, checked along each mode. `None` if no
/// layout does.
fn layout_of(n: i64, f: impl Fn(i64) -> i64) -> Option<Leaves<i64>> {
    let mut modes = Leaves::new();
    let mut done = 1;
    while done < n {
        let stride = f(done);
        let mut extent = 1;
        while done * extent < n && i64::checked_mul(extent, stride) == Some(f(done * extent)) {
            extent += 1;
        }
        // A shorter step is impossible: the next mode would continue it.
        done *= extent;
        if n % done != 0 {
            return None;
        }
        modes.push((extent, stride));
    }
    if modes.is_empty() {
        modes.push((1, 0));
    }
    Some(modes)
}
