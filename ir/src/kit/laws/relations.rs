//! Checks laws of the relations between shapes, for any layout library. `congruent` (equal nesting)
//! is an equivalence. `weakly_congruent` (the second shape nests at least as deeply as the first
//! one) is a preorder. `compatible` (the second shape splits extents of the first one and keeps its
//! sizes, as (4,6) does with 24) is a partial order.
//!
//! A case has four shapes. A law compares the library's answers for all 16 ordered pairs with those
//! of a recursive definition, and then tests the properties of the relation.
//! `strategies::refinements` draws the shapes: the second refines the first, the third refines the
//! second, and the fourth is independent of them.

use super::composition::refines;
use crate::kit::error::{LawResult, judge};
use crate::kit::like::LayoutLike;
use crate::tuple::IntTuple;

type Shape = IntTuple<i64>;

/// Whether every tuple of `a` has a counterpart of the same rank in `b`.
fn deepens(a: &Shape, b: &Shape) -> bool {
    match (a, b) {
        (IntTuple::Leaf(_), _) => true,
        (IntTuple::Tuple(a), IntTuple::Tuple(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| deepens(a, b))
        }
        _ => false,
    }
}

/// Compatibility is a partial order that holds from a shape to its refinements: it is reflexive and
/// transitive, and holds both ways only between equal shapes.
pub fn law_compatible<T: LayoutLike>(shapes: &[Shape; 4]) -> LawResult {
    related("compatible", shapes, T::compatible, refines, |a, b| a == b)
}

/// Weak congruence is a preorder that holds from a shape to its refinements. Both ways it is
/// congruence.
pub fn law_weakly_congruent<T: LayoutLike>(shapes: &[Shape; 4]) -> LawResult {
    let both = |a: &Shape, b: &Shape| deepens(a, b) && deepens(b, a);
    related("weakly_congruent", shapes, T::weakly_congruent, deepens, both)
}

/// Congruence is an equivalence: weak congruence both ways.
pub fn law_congruent<T: LayoutLike>(shapes: &[Shape; 4]) -> LawResult {
    let both = |a: &Shape, b: &Shape| deepens(a, b) && deepens(b, a);
    related("congruent", shapes, T::congruent, both, both)
}

fn related(
    law: &'static str,
    shapes: &[Shape; 4],
    ask: impl Fn(&Shape, &Shape) -> crate::kit::Answer<bool>,
    wanted: impl Fn(&Shape, &Shape) -> bool,
    both: impl Fn(&Shape, &Shape) -> bool,
) -> LawResult {
    let [a, b, c, d] = shapes;
    judge(law, &[("a", a), ("b", b), ("c", c), ("d", d)], |case| {
        let mut holds = [[false; 4]; 4];
        for (i, left) in shapes.iter().enumerate() {
            for (j, right) in shapes.iter().enumerate() {
                holds[i][j] = case.must(law, ask(left, right))?;
                let what = format!("of shapes {i} and {j}");
                case.same(&what, &holds[i][j], &wanted(left, right))?;
            }
        }
        for (i, row) in holds.iter().enumerate() {
            case.holds("reflexive", row[i])?;
            for (j, &to) in row.iter().enumerate() {
                case.same("both ways", &(to && holds[j][i]), &both(&shapes[i], &shapes[j]))?;
                let on = |k: usize| !(to && holds[j][k]) || row[k];
                case.holds("transitive", (0..4).all(on))?;
            }
        }
        Ok(())
    })
}
