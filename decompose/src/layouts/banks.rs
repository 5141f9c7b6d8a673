//! Reports bank conflicts of copies from and to shared memory ([`conflicts`]), if the copies take
//! at least twice the wavefronts (passes over the banks) that are necessary. A layout that a user
//! wrote and for which a swizzle would halve them gets a warning; conflicts that no swizzle reduces
//! are listed. Layouts that a descriptor demands are not reported.

use super::shared;
use super::smem::{self, Access};
use super::state::Finished;
use crate::access::ops;
use crate::access::ops::Op;
use crate::plan::solution::{Placement, Wavefronts};
use carbyne_atoms::AtomTable;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::layout::{Layout, Swizzle};
use carbyne_ir::program::{BufferId, Program, SpecId};
use carbyne_ir::scalar::Memory;
use carbyne_ir::span::Span;
use std::collections::BTreeMap;

/// How many times the fewest wavefronts are worth a word.
const FACTOR: f64 = 2.0;
/// Bytes of the widest access of a lane.
const LANE_BYTES: i64 = 16;

/// The copies that take at least twice the wavefronts that they would without bank conflicts, and
/// warnings about layouts that a person wrote and that a swizzle would mend.
pub(super) fn conflicts(
    p: &Program,
    table: &AtomTable,
    ops: &[Op],
    found: &Finished,
) -> (Vec<(SpecId, Wavefronts)>, Vec<Diagnostic>) {
    let mut of: BTreeMap<BufferId, Vec<(SpecId, Access)>> = BTreeMap::new();
    for op in ops {
        let copy = found.solution.assignments.get(&op.spec).and_then(|a| a.how.copy());
        let (Some(c), Some((src, dst))) = (copy, shared::ends(p, op)) else { continue };
        for t in [src, dst] {
            let buffer = p.tensors[t].buffer;
            let (memory, bits) = (p.buffers[buffer].memory, p.buffers[buffer].scalar.bits());
            let access = (memory.is_some_and(Memory::is_shared))
                .then(|| shared::access(p, op, c, buffer, bits))
                .flatten()
                .filter(|a| a.bytes <= LANE_BYTES);
            if let Some(access) = access {
                of.entry(buffer).or_default().push((op.spec, access));
            }
        }
    }
    let (mut costly, mut warnings) = (vec![], vec![]);
    for (id, accesses) in of {
        let Some((layout, swizzle)) = placed(p, found, id) else { continue };
        let bits = p.buffers[id].scalar.bits();
        let banks = shared::banks(table);
        let of = |access: &Access| Wavefronts {
            taken: smem::wavefronts(&layout, swizzle, bits, std::slice::from_ref(access), banks),
            least: smem::ideal(access, banks),
        };
        let bad: Vec<(SpecId, Wavefronts)> = accesses
            .iter()
            .map(|(spec, access)| (*spec, of(access)))
            .filter(|(_, w)| w.least > 0.0 && w.taken >= FACTOR * w.least)
            .collect();
        let Some((first, _)) = bad.first() else { continue };
        if is_demanded(p, found, id) {
            continue;
        }
        let list: Vec<Access> = accesses.iter().map(|(_, access)| access.clone()).collect();
        let (better, n) = smem::best_swizzle(&layout, bits, &list, banks);
        let taken = smem::wavefronts(&layout, swizzle, bits, &list, banks);
        match better {
            Some(better) if taken >= FACTOR * n => {
                warnings.push(warning(p, (id, *first), better, (taken, n)));
            }
            // A swizzle has fewer, but not by much.
            _ if n < taken => {}
            _ => costly.extend(bad),
        }
    }
    (costly, warnings)
}

/// Where a shared tensor lies.
fn placed(p: &Program, found: &Finished, id: BufferId) -> Option<(Layout, Option<Swizzle>)> {
    if let Some(Placement::Shared { layout, swizzle }) = found.solution.placements.get(&id) {
        return Some((layout.clone(), *swizzle));
    }
    let whole = ops::whole(p, p.buffers[id].tensor)?;
    // The addresses of the accesses are those of the layout already.
    Some((super::tv::mode(whole.cosize().max(1), 1), p.buffers[id].swizzle))
}

/// Whether an instruction names the tensor by a descriptor, which demands its swizzle.
fn is_demanded(p: &Program, found: &Finished, id: BufferId) -> bool {
    let is_copy = |spec: SpecId| {
        found.solution.assignments.get(&spec).is_some_and(|a| a.how.copy().is_some())
    };
    let of = |t: &_| p.tensors[*t].buffer == id;
    p.specs.iter().any(|(spec, s)| {
        let touches = s.input_tensors().any(|t| of(&t)) || s.outputs.iter().any(of);
        touches && s.body.is_none() && !is_copy(spec)
    })
}

fn warning(
    p: &Program,
    (id, spec): (BufferId, SpecId),
    better: Swizzle,
    (taken, n): (f64, f64),
) -> Diagnostic {
    let (bits, base, shift) = (better.bits(), better.base(), better.shift());
    let message = format!(
        "bank conflicts: the accesses to `%{}` take {taken:.0} wavefronts where {n:.0} would do",
        p.buffers[id].name
    );
    let swizzle = format!("{{swizzle=({bits},{base},{shift})}}");
    let (name, place) = (&p.buffers[id].name, p.buffers[id].span);
    let d = Diagnostic::warning(Code::Banks, p.specs[spec].span, message)
        .label("lanes of one access use the same bank")
        .note(format!(
            "a swizzle is `(bits,base,shift)` of byte addresses, as in CuTe: this one combines \
             bits {base} to {} by exclusive or with the {bits} bits that lie {shift} higher",
            base + bits - 1
        ));
    match p.buffers[id].swizzle {
        None => d
            .related(place, format!("`%{name}` is declared here without a swizzle"))
            .help(format!("write `{swizzle}` after the `SH` of `%{name}`"))
            .edit(Span { start: place.end, end: place.end }, swizzle),
        Some(_) => d
            .related(place, format!("`%{name}` is declared here"))
            .help(format!("write `{swizzle}` in place of the swizzle of `%{name}`")),
    }
}
