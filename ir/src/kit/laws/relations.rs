//! Laws of the relations between shapes: congruent (equal nesting), weakly congruent (one nesting
//! refines the other) and compatible (one shape refines the other, with equal sizes).
//!
//! Invariant: each of the first three shapes of a case refines the one before, so the relations
//! hold along them.

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
