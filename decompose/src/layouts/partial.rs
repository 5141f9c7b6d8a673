//! Tells how the elements that one instruction moves end in a partial tile ([`ends`]): all are
//! inside or none is, only the first so many are inside, or any of them may be.

use crate::access::matching::Mismatch;
use crate::access::ops;
use carbyne_atoms::bind::{Why, keeps_together};
use carbyne_ir::expr::ExprArena;
use carbyne_ir::layout::Layout;
use carbyne_ir::leaf::Fact;
use carbyne_ir::program::{Bound, Program, TensorId};

/// How the elements of one instruction end.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Ends {
    /// All are inside, or none is.
    Together,
    /// The first so many are inside.
    Counted,
    /// Any of them may be.
    Apart,
}

/// How the elements that one instruction moves of a tensor end: `inst` are their column-major
/// indices, and `whole_tv` those of all threads and instructions.
pub(super) fn ends(
    p: &Program,
    t: TensorId,
    inst: &Layout,
    whole_tv: &Layout,
) -> Result<Ends, Mismatch> {
    let mut found = Ends::Together;
    for bound in &p.tensors[t].bounds {
        let cut = || {
            let why = Why::Cut { n: inst.size(), fact: None };
            Mismatch::Partial { tensor: p.tensor_name(t), why }
        };
        let coordinates = ops::constant_strides(p, &bound.concat()).ok_or_else(cut)?;
        let of = |l: &Layout| coordinates.compose(l).map_err(|_| cut());
        let at = of(inst)?;
        let along: Vec<i64> = (0..at.size()).map(|i| at.at(i)).collect();
        let last = along.iter().copied().max().unwrap_or(0);
        let all = of(whole_tv)?;
        let instructions = all.mode(1).and_then(|v| v.mode(1));
        let steps: Vec<(i64, i64)> = [all.mode(0), instructions]
            .into_iter()
            .flatten()
            .flat_map(|part| part.leaves().to_vec())
            .filter(|(extent, step)| *extent > 1 && *step != 0)
            .collect();
        let is_up = along.iter().all(|c| *c >= 0);
        if along.iter().all(|c| *c == 0) || is_up && keeps_together(&p.arena, bound, last, &steps) {
            continue;
        }
        let is_first = along.into_iter().eq(0..at.size()) && found != Ends::Apart;
        found = if is_first { Ends::Counted } else { Ends::Apart };
    }
    Ok(found)
}

/// What elements that are counted lack to be inside as a whole.
pub(super) fn cut(p: &Program, t: TensorId, n: i64) -> Mismatch {
    let facts = p.tensors[t].bounds.iter().filter_map(|bound| fact(&p.arena, bound, n));
    let why = Why::Cut { n, fact: facts.last() };
    Mismatch::Partial { tensor: p.tensor_name(t), why }
}

fn fact(cx: &ExprArena, bound: &Bound, n: i64) -> Option<Fact> {
    let power = u64::try_from(n).ok().filter(|n| n.is_power_of_two());
    let symbolic = bound.extent.as_const().is_none() && cx.divisor(bound.extent) % n != 0;
    let value = cx.display(bound.extent);
    power.filter(|_| symbolic).map(|n| Fact::Divides { divisor: n.to_string(), value })
}
