//! Builds the error messages for a leaf that no atom implements ([`no_atom`]), and for a leaf that
//! the atom of its `atom=` does not implement ([`not_by`]). The first one shows how the two nearest
//! atoms differ from the leaf, the second one how the named atom differs.

use super::Mismatch;
use crate::arch::Arch;
use crate::atom::Atom;
use crate::operand::AtomOperand;
use crate::table::AtomTable;
use crate::threads::executors;
use carbyne_ir::ast::{SpecKind, UnaryOp};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::program::{Operand, Program, Spec, SpecId, TensorId, show_levels};
use carbyne_ir::scalar::{Memory, Scalar};
use carbyne_ir::span::Span;

/// The error for a leaf that no atom implements. Its notes show the two nearest atoms, and the help
/// would fix the nearest.
pub fn no_atom(
    p: &Program,
    id: SpecId,
    table: &AtomTable,
    rejected: &[(&'static str, Mismatch)],
) -> Diagnostic {
    let spec = &p.specs[id];
    let mut sorted: Vec<&(&'static str, Mismatch)> = rejected.iter().collect();
    sorted.sort_by_key(|(_, m)| std::cmp::Reverse(m.nearness()));
    let message = format!("no {} atom implements this {}", table.arch, spec.kind);
    if let Some((t, n)) = not_spread(p, spec) {
        let (name, place) = (&p.buffer_of(t).name, p.buffer_of(t).span);
        let message = format!("{message}: each of {n} threads holds `%{name}` whole");
        let d = Diagnostic::new(Code::NoAtom, spec.span, message).label(describe(p, spec));
        return d
            .related(
                place,
                format!("`%{name}` is declared without `{{?}}`: each thread has its own"),
            )
            .help(format!(
                "write `{{?}}` after the `RF` of `%{name}`: then the {n} threads share its elements"
            ))
            .edit(Span { start: place.end, end: place.end }, "{?}");
    }
    let mut d = Diagnostic::new(Code::NoAtom, spec.span, message).label(describe(p, spec));
    for (name, mismatch) in sorted.iter().take(2) {
        d = d.note(format!("`{name}` rejected: {mismatch}"));
    }
    // If no atom takes the types, another number of threads does not help.
    let types = matches!(sorted.first(), Some((_, Mismatch::Scalar { .. })));
    // A conversion of the factors of a product keeps the result. A conversion of the operands of
    // another operation may change it.
    let is_product = spec.kind.is_product();
    if types
        && is_product
        && let Some((_, wider)) = sorted.iter().find(|(_, m)| converts(table, m))
    {
        return d.help(wider.help());
    }
    if let Some(elsewhere) = types.then(|| elsewhere(p, spec)).flatten() {
        return d.help(format!("compile for an architecture that has one: {elsewhere}"));
    }
    if let Some(n) = odd_group(p, spec, table).filter(|_| !types) {
        return d.help(format!(
            "execute the spec by consecutive whole warps, like `#cta[0..32]`: {n} threads are not \
             a multiple of 32"
        ));
    }
    match sorted.first() {
        Some((_, nearest)) => {
            d.help(narrow_swizzle(p, spec, nearest).unwrap_or_else(|| nearest.help()))
        }
        None => d.help("write a body of specs that have atoms; `carbyne atoms` lists the atoms"),
    }
}

/// Whether the architecture has a conversion without loss to the type that an atom needs.
fn converts(table: &AtomTable, m: &Mismatch) -> bool {
    let Mismatch::Scalar { want, found, holds: true, .. } = m else { return false };
    let (Ok(want), Ok(found)) = (want.parse::<Scalar>(), found.parse::<Scalar>()) else {
        return false;
    };
    table
        .implementing(SpecKind::Unary(UnaryOp::Cast))
        .any(|a| a.reads().all(|o| o.is_of(found)) && a.writes().all(|o| o.is_of(want)))
}

/// The architectures that have an atom for the types of a pointwise operation, a conversion or a
/// product.
fn elsewhere(p: &Program, spec: &Spec) -> Option<String> {
    let is_product = spec.kind.is_product();
    if !is_product
        && !matches!(spec.kind, SpecKind::Unary(_) | SpecKind::Binary(_) | SpecKind::Select)
    {
        return None;
    }
    let takes = |o: &AtomOperand, t: TensorId| o.elem.scalars_per_unit(p.scalar_of(t)).is_some();
    let fits = |a: &&Atom| {
        let Ok(operands) = super::fill(spec, a) else { return false };
        (is_product || a.group == 1)
            && a.operands.iter().zip(&operands).all(|(o, given)| match given {
                Operand::Tensor(t) => takes(o, *t),
                Operand::Number(_) => true,
            })
    };
    let has = |arch: &&Arch| AtomTable::new(**arch).implementing(spec.kind).any(|a| fits(&a));
    let all: Vec<&str> = Arch::ALL.iter().filter(has).map(|a| a.as_str()).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// The error for a leaf that the atom in its `atom=` does not implement.
pub fn not_by(p: &Program, id: SpecId, atom: &str, m: &Mismatch) -> Diagnostic {
    let spec = &p.specs[id];
    let message = format!("`{atom}` does not implement this {}", spec.kind);
    let help = match m {
        Mismatch::Op { .. } => {
            format!(
                "name an atom for {}: `carbyne atoms --spec {}` lists them",
                spec.kind, spec.kind
            )
        }
        m => narrow_swizzle(p, spec, m).unwrap_or_else(|| m.help()),
    };
    Diagnostic::new(Code::AtomMismatch, spec.span, message).label(m.to_string()).help(help)
}

/// The help for an access that is wider than the units which the swizzle of a tensor moves.
fn narrow_swizzle(p: &Program, spec: &Spec, m: &Mismatch) -> Option<String> {
    let Mismatch::Align { want, .. } = m else { return None };
    let mut buffers =
        spec.input_tensors().chain(spec.outputs.iter().copied()).map(|t| p.buffer_of(t));
    let of = |b: &carbyne_ir::program::Buffer| b.swizzle.filter(|s| 1 << s.base() < *want);
    let (name, swizzle) = buffers.find_map(|b| Some((&b.name, of(b)?)))?;
    Some(format!(
        "write `swizzle=({},{},{})` at `%{name}`: its swizzle moves units of {} bytes, and the \
         instruction accesses {want} bytes at once",
        swizzle.bits(),
        want.ilog2(),
        swizzle.shift(),
        1 << swizzle.base()
    ))
}

/// The number of threads of a group, if it is neither a multiple of a warp nor the group of any
/// atom.
fn odd_group(p: &Program, spec: &Spec, table: &AtomTable) -> Option<i64> {
    let threads = &p.threads[spec.exec?.threads];
    if threads.each.is_some() || threads.elect.is_some() {
        return None;
    }
    let n = threads.levels.last()?.to_fixed()?.size();
    let taken = table.atoms().iter().any(|a| a.group == n);
    (n > 1 && n % 32 != 0 && !taken).then_some(n)
}

/// A register tensor that each thread has for itself, in an operation of several threads on whole
/// tensors, and the number of these threads. Its author has probably forgotten `{?}`.
fn not_spread(p: &Program, spec: &Spec) -> Option<(TensorId, i64)> {
    let threads = &p.threads[spec.exec?.threads];
    let n = threads.concat().to_fixed()?.size();
    let several = threads.each.is_none() && threads.elect.is_none() && n > 1;
    let of_fragments = matches!(
        spec.kind,
        SpecKind::MatMul | SpecKind::MatMulSet | SpecKind::Shfl(_) | SpecKind::Generic
    );
    let own = |t: &TensorId| {
        let buffer = p.buffer_of(*t);
        // A view of one thread's part is intended.
        buffer.is_per_thread() && p.tensors[buffer.tensor].dist.is_none()
    };
    let mut tensors = spec.input_tensors().chain(spec.outputs.iter().copied());
    let found = tensors.find(own).filter(|_| several && !of_fragments)?;
    Some((found, n))
}

/// The operands and threads of a spec as a label: `f16 GL [8] -> f16 SH [8], by each thread`.
fn describe(p: &Program, spec: &Spec) -> String {
    let one = |t: TensorId| {
        let b = p.buffer_of(t);
        let memory = b.memory.map_or("", Memory::as_str);
        format!("{} {memory} {}", b.scalar, show_levels(&p.arena, &p.tensors[t].levels))
    };
    let ins: Vec<String> = spec
        .inputs
        .iter()
        .map(|o| match o {
            Operand::Tensor(t) => one(*t),
            Operand::Number(n) => n.to_string(),
        })
        .collect();
    let outs: Vec<String> = spec.outputs.iter().map(|t| one(*t)).collect();
    let who = spec.exec.map_or(String::new(), |e| format!(", by {}", executors(p, e.threads)));
    format!("{} -> {}{who}", ins.join(", "), outs.join(", "))
}
