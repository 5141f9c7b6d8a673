//! Computes the extents and strides of a tensor from the values of its symbols. In contrast to a
//! layout, an extent may be 0: `[M,64]` has no elements if a launch passes `M = 0`.

use carbyne_ir::expr::{Dim, ExprArena, VarId};
use carbyne_ir::layout::{Layout, LayoutError};

/// The modes of a tensor with known sizes. In contrast to a layout, extents may be 0.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sizes {
    /// The extent and the stride of the leaves of each mode, first fastest.
    modes: Vec<Vec<(i64, i64)>>,
    /// The number of elements.
    pub size: i64,
}

impl From<&Layout<i64>> for Sizes {
    fn from(layout: &Layout<i64>) -> Self {
        let modes = layout.modes().iter().map(|mode| mode.leaves().to_vec()).collect();
        Sizes { modes, size: layout.size() }
    }
}

impl Sizes {
    /// The sizes of a layout whose symbols have these values.
    ///
    /// # Errors
    /// The errors of [`Layout::eval`], except for an extent of 0.
    pub(crate) fn eval(
        layout: &Layout<Dim>,
        arena: &ExprArena,
        value: &dyn Fn(VarId) -> Option<i64>,
    ) -> Result<Self, LayoutError> {
        match layout.eval(arena, value) {
            Ok(layout) => return Ok(Sizes::from(&layout)),
            Err(LayoutError::Extent { extent: 0 }) => {}
            Err(e) => return Err(e),
        }
        let mut modes = Vec::new();
        for mode in layout.modes() {
            let mut leaves = Vec::new();
            for (extent, stride) in mode.leaves() {
                leaves.push((arena.eval(*extent, value)?, arena.eval(*stride, value)?));
            }
            modes.push(leaves);
        }
        Sizes::new(modes)
    }

    fn new(modes: Vec<Vec<(i64, i64)>>) -> Result<Self, LayoutError> {
        let overflow = || LayoutError::Overflow { what: "the size of a tensor" };
        let mut size = 1i64;
        for mode in &modes {
            let mut of_mode = 1i64;
            for (extent, _) in mode {
                if *extent < 0 {
                    return Err(LayoutError::Extent { extent: *extent });
                }
                of_mode = of_mode.checked_mul(*extent).ok_or_else(overflow)?;
            }
            size = size.checked_mul(of_mode).ok_or_else(overflow)?;
        }
        Ok(Sizes { modes, size })
    }

    /// The extent and the stride of all leaves, first fastest.
    pub(crate) fn leaves(&self) -> Vec<(i64, i64)> {
        self.modes.concat()
    }

    /// The extent of each mode.
    pub(crate) fn extents(&self) -> Vec<i64> {
        self.modes.iter().map(|mode| mode.iter().map(|(n, _)| n).product()).collect()
    }

    /// The sizes with modes of extent 1 broadcast over the modes `over`; a single element is
    /// broadcast over all of them.
    ///
    /// # Errors
    /// A size beyond 64 bits.
    pub(crate) fn spread(&self, over: &[i64]) -> Result<Self, LayoutError> {
        let wide = |(own, n): (Option<&Vec<(i64, i64)>>, &i64)| match own {
            Some(mode) if mode.iter().map(|(n, _)| n).product::<i64>() == *n => mode.clone(),
            _ => vec![(*n, 0)],
        };
        let own = self.modes.iter().map(Some).chain(std::iter::repeat(None));
        Sizes::new(own.zip(over).map(wide).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use carbyne_ir::expr::VarInfo;

    fn sizes(text: &str) -> Sizes {
        let layout: Layout = text.parse().unwrap();
        Sizes::from(&layout)
    }

    #[test]
    fn modes_of_one_element_are_spread() {
        let rows = sizes("(1,(2,4)):(3,(1,8))");
        let wide = rows.spread(&[5, 8]).unwrap();
        assert_eq!((wide.size, wide.extents()), (40, vec![5, 8]));
        assert_eq!(wide.leaves(), [(5, 0), (2, 1), (4, 8)]);
        let none = rows.spread(&[0, 8]).unwrap();
        assert_eq!((none.size, none.extents()), (0, vec![0, 8]));
        assert!(rows.spread(&[i64::MAX, 8]).is_err());
    }

    #[test]
    fn extents_may_be_zero_and_no_less() {
        let arena = ExprArena::new();
        let layout = |n: i64| {
            let info = VarInfo { name: "M".to_owned(), lo: -9, hi: None, div: 1 };
            let m = arena.var(info).unwrap();
            let var = arena.var_id(m).unwrap();
            let leaf = Dim::Const;
            let modes = [Layout::of_mode(m, leaf(1)), Layout::of_mode(leaf(4), leaf(9))];
            let modes: Vec<Layout<Dim>> = modes.into_iter().map(Result::unwrap).collect();
            let all = Layout::concat(&modes).unwrap();
            Sizes::eval(&all, &arena, &|v| (v == var).then_some(n))
        };
        assert_eq!(layout(0).map(|s| (s.size, s.extents())), Ok((0, vec![0, 4])));
        assert_eq!(layout(2).map(|s| (s.size, s.leaves())), Ok((8, vec![(2, 1), (4, 9)])));
        assert_eq!(layout(-1), Err(LayoutError::Extent { extent: -1 }));
    }
}
