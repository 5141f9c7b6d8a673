//! Checks V0209 (a written tensor maps two coordinates to one element) for tensors of the caller
//! whose extents or strides contain symbols. `places.rs` and `storage.rs` check constant layouts.
//!
//! A tensor is refused if a search finds values of the symbols that satisfy all facts, and for
//! which two coordinates share an element. Most layouts need no search: their strides are the
//! products of the preceding extents, or facts prove that their modes do not overlap.

use super::extents::Value;
use super::state::Verifier;
use crate::diag::{Code, Diagnostic};
use crate::expr::Dim;
use crate::expr::prove::{self, Budget};
use crate::layout::Layout;
use crate::program::TensorId;
use crate::span::Span;

/// The maximal number of steps of one proof that a stride exceeds the reach of smaller ones.
const MAX_PROOF_STEPS: usize = 10_000;
/// The maximal number of modes that are sorted.
const MAX_MODES: usize = 8;
/// The maximal number of elements that are enumerated for given values of symbols.
const MAX_ENUMERATED: i64 = 1 << 12;

/// An extent and a stride.
type Mode = (Dim, Dim);

impl Verifier<'_> {
    /// V0209 for a whole tensor of the caller; reported once per tensor.
    pub(super) fn written_over_symbols(&mut self, t: TensorId, span: Span) {
        let p = self.p;
        let tensor = &p.tensors[t];
        let layout = tensor.concat();
        let is_whole = p.params.contains(&tensor.buffer)
            && layout == p.tensors[p.buffers[tensor.buffer].tensor].concat();
        if !is_whole || !self.questions.written.insert(tensor.buffer) {
            return;
        }
        let modes: Vec<Mode> = layout.leaves().to_vec();
        let modes: Vec<Mode> = modes.into_iter().filter(|(n, _)| *n != Dim::Const(1)).collect();
        if modes.len() > MAX_MODES || self.is_compact(&modes) || self.is_nested(&modes) {
            return;
        }
        let (extents, strides) = modes.iter().copied().unzip();
        let Some(values) = self.misfit(&[extents, strides], &[], &is_injective) else { return };
        let name = p.tensor_name(t);
        let said: Vec<String> =
            values.iter().map(|(v, n)| format!("{} = {n}", p.arena.var_info(*v).name)).collect();
        let message = format!(
            "two coordinates of {name} share an element, for example if {}",
            said.join(", ")
        );
        let own = "choose strides so that no two coordinates of a written tensor share an element";
        let help = match self.apart(modes, &values) {
            Some(fact) => format!("state `where {fact}`, or {own}"),
            None => own.to_owned(),
        };
        self.errors.push(
            Diagnostic::new(Code::NotInjective, span, message)
                .label(format!("{name} is written, with layout {}", layout.display_in(&p.arena)))
                .help(help),
        );
    }

    /// Whether each stride is the product of the extents of the modes with smaller strides.
    fn is_compact(&self, modes: &[Mode]) -> bool {
        let (mut left, mut next) = (modes.to_vec(), Dim::Const(1));
        while let Some(at) = left.iter().position(|(_, stride)| *stride == next) {
            let (extent, stride) = left.swap_remove(at);
            let Ok(reach) = self.p.arena.mul(extent, stride) else { return false };
            next = reach;
        }
        left.is_empty()
    }

    /// Whether facts prove that each stride exceeds the reach of the smaller ones, if strides
    /// increase from the last mode to the first, or from the first to the last.
    fn is_nested(&mut self, modes: &[Mode]) -> bool {
        let backwards: Vec<Mode> = modes.iter().rev().copied().collect();
        [&backwards, modes].into_iter().any(|modes| {
            let Some(first) = modes.first() else { return true };
            self.is_proven(Dim::Const(1), first.1)
                && modes.windows(2).all(|two| match self.p.arena.mul(two[0].0, two[0].1) {
                    Ok(reach) => self.is_proven(reach, two[1].1),
                    Err(_) => false,
                })
        })
    }

    fn is_proven(&mut self, less: Dim, more: Dim) -> bool {
        let p = self.p;
        let facts = self.questions.facts.get_or_insert_with(|| p.assumptions());
        prove::proves(&p.arena, (less, more, 0), facts, &mut Budget::new(MAX_PROOF_STEPS))
    }

    /// The first violated fact that would separate the modes, in order of increasing strides for
    /// these values. `None` if no value of the symbols satisfies the fact.
    fn apart(&mut self, mut modes: Vec<Mode>, values: &[Value]) -> Option<String> {
        let cx = &self.p.arena;
        let value = |d: Dim| {
            let of = |v| values.iter().find(|(own, _)| *own == v).map(|(_, n)| *n);
            cx.eval(d, &of).ok()
        };
        // For equal strides, later modes are the inner ones.
        modes.reverse();
        modes.sort_by_key(|(_, stride)| value(*stride));
        let mut reach = Dim::Const(1);
        for (extent, stride) in modes {
            if value(reach)? > value(stride)? {
                let always = cx.sub(reach, Dim::Const(1)).ok()?;
                let shown = format!("{} <= {}", cx.display(reach), cx.display(stride));
                return (!self.is_proven(stride, always)).then_some(shown);
            }
            reach = cx.mul(extent, stride).ok()?;
        }
        None
    }
}

/// Whether a layout of these extents and strides is injective. Layouts with too many elements count
/// as injective.
fn is_injective(shapes: &[Vec<i64>]) -> bool {
    let [extents, strides] = shapes else { return true };
    if extents.contains(&0) {
        return true;
    }
    let leaves: Vec<(i64, i64)> = extents.iter().copied().zip(strides.iter().copied()).collect();
    let Ok(layout) = Layout::from_leaves(&leaves) else { return true };
    let is_long = layout.size() > MAX_ENUMERATED && layout.size() <= layout.cosize();
    is_long || layout.is_injective() != Ok(false)
}
