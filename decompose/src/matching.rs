//! Does an atom implement a leaf spec, and if not, why not.
//!
//! An atom implements a leaf where threads, memories, scalar types, the number of values, their order
//! in memory and their alignment agree with the row. The operand's *function* (t,v) to address is
//! compared, never its spelling. Where the enclosing Move says which elements correspond, the relation
//! f∘p⁻¹ = g∘q⁻¹ is evaluated too (see [`crate::relation`]).
//!
//! Invariant: no decision depends on an atom's name.

pub(crate) use crate::mismatch::Mismatch;

use crate::relation;
use carbyne_atoms::bulk::{BulkMismatch, bulk_copy};
use carbyne_atoms::descriptor;
use carbyne_atoms::threads::{ThreadsMismatch, executed_by, executors};
use carbyne_atoms::{Atom, AtomOperand, AtomTable, Elem, Extent, OperandAccess, Template};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::Dim;
use carbyne_ir::program::{Operand, Program, Spec, SpecId, TensorId};
use carbyne_ir::scalar::Memory;

/// An atom that implements a spec, and which tensor fills which operand of its row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Match {
    /// The row's name.
    pub atom: &'static str,
    /// One entry an operand of the row; none for a literal.
    pub operands: Vec<Option<TensorId>>,
}

/// Compares one row with one leaf spec.
///
/// # Errors
/// The first difference.
pub(crate) fn match_atom(
    p: &Program,
    id: SpecId,
    enclosing: &[SpecId],
    atom: &Atom,
) -> Result<Match, Mismatch> {
    let spec = &p.specs[id];
    op_fits(spec, atom)?;
    let tensors = fill(spec, atom);
    let filled = || atom.operands.iter().zip(&tensors).filter_map(|(o, t)| Some((o, (*t)?)));
    filled().try_for_each(|(operand, t)| scalar_fits(p, t, operand))?;
    filled().try_for_each(|(operand, t)| memory_fits(p, t, operand))?;
    literals_fit(spec, atom)?;
    executed_by(p, spec, atom)
        .map_err(|ThreadsMismatch { want, found }| Mismatch::Threads { want, found })?;
    if atom.extent != Extent::Tile {
        bulk_copy(p, spec, atom).map_err(Mismatch::Bulk)?;
        return Ok(Match { atom: atom.name, operands: tensors });
    }
    if spec.bar.is_some() || spec.multicast.is_some() || spec.cache != atom.cache {
        let asked = if spec.bar.is_some() {
            BulkMismatch::Bar(false)
        } else if spec.multicast.is_some() {
            BulkMismatch::Multicast(false)
        } else {
            BulkMismatch::Cache(atom.cache)
        };
        return Err(Mismatch::Bulk(asked));
    }
    let zeros = atom.number("valid").is_some();
    if zeros != spec.valid.is_some() {
        return Err(Mismatch::Bulk(BulkMismatch::Valid(zeros)));
    }
    if tensors.iter().flatten().any(|t| p.tensors[*t].peer.is_some()) {
        return Err(Mismatch::Bulk(BulkMismatch::Peer));
    }
    if tensors.iter().flatten().any(|t| p.tensors[*t].map.is_some()) {
        return Err(Mismatch::Bulk(BulkMismatch::Box(false)));
    }
    for (operand, tensor) in atom.operands.iter().zip(&tensors) {
        if let Some(t) = tensor {
            values_fit(p, *t, operand)?;
        }
    }
    for (operand, tensor) in atom.operands.iter().zip(&tensors) {
        match tensor {
            Some(t) if operand.matrix_rule().is_some() => described(p, spec, *t, operand, atom)?,
            Some(t) => {
                order_fits(p, *t, operand, atom)?;
                align_fits(p, *t, operand)?;
            }
            None => {}
        }
    }
    relation::check(p, id, enclosing, atom)?;
    if !atom.implements(spec.kind) {
        return Err(Mismatch::Accumulates);
    }
    Ok(Match { atom: atom.name, operands: tensors })
}

/// The best matching row, or every row's mismatch. Among matches the one with the smallest stated error
/// wins, then the cheapest; the order of the table breaks ties. A faster approximation is named by hand.
pub(crate) fn match_any(
    p: &Program,
    id: SpecId,
    enclosing: &[SpecId],
    table: &AtomTable,
) -> Result<Match, Vec<(&'static str, Mismatch)>> {
    let mut best: Option<((f64, f64), Match)> = None;
    let mut rejected = vec![];
    for atom in table.implementing(compared(p.specs[id].kind)) {
        match match_atom(p, id, enclosing, atom) {
            Ok(m) => {
                // Of a result near 1, of an operand near 1.
                let error = atom.error_bound().map_or(0.0, |b| b.at(1.0, 1.0));
                let rank = (error, atom.cost.issue_cycles);
                if best.as_ref().is_none_or(|(least, _)| rank < *least) {
                    best = Some((rank, m));
                }
            }
            Err(e) => rejected.push((atom.name, e)),
        }
    }
    match best {
        Some((_, m)) => Ok(m),
        None => Err(rejected),
    }
}

/// The error for a leaf that no row implements: the two nearest rows, and what would fix the nearest.
pub(crate) fn no_atom(
    p: &Program,
    id: SpecId,
    table: &AtomTable,
    rejected: &[(&'static str, Mismatch)],
) -> Diagnostic {
    let spec = &p.specs[id];
    let mut sorted: Vec<&(&'static str, Mismatch)> = rejected.iter().collect();
    sorted.sort_by_key(|(_, m)| std::cmp::Reverse(m.nearness()));
    let mut d = Diagnostic::new(
        Code::NoAtom,
        spec.span,
        format!("no {} atom implements this {}", table.arch, spec.kind),
    )
    .label(describe(p, spec));
    for (name, mismatch) in sorted.iter().take(2) {
        d = d.note(format!("`{name}` rejected: {mismatch}"));
    }
    if let Some(t) = not_spread(p, spec) {
        let name = p.tensor_name(t);
        return d.help(format!(
            "write `{{?}}` behind the `RF` of {name}, and the threads share it; without it each has all of it"
        ));
    }
    match sorted.first() {
        Some((_, nearest)) => d.help(nearest.help()),
        None => d.help("write its body of specs that have atoms; `carbyne atoms` lists them"),
    }
}

/// A register tensor of each thread for itself, in an operation of several threads on whole tensors.
fn not_spread(p: &Program, spec: &Spec) -> Option<TensorId> {
    let threads = &p.threads[spec.exec?.threads];
    let several = threads.each.is_none()
        && threads.elect.is_none()
        && threads.concat().to_fixed().is_some_and(|l| l.size() > 1);
    let of_fragments = matches!(
        spec.kind,
        SpecKind::MatMul | SpecKind::MatMulSet | SpecKind::Shfl(_) | SpecKind::Generic
    );
    let own = |t: &TensorId| {
        let buffer = p.buffer_of(*t);
        // A view of one thread's part is meant so.
        buffer.memory == Some(Memory::Rf) && p.tensors[buffer.tensor].dist.is_none()
    };
    let mut tensors = spec.input_tensors().chain(spec.outputs.iter().copied());
    tensors.find(own).filter(|_| several && !of_fragments)
}

/// The error for a leaf that the row which it names does not implement.
pub(crate) fn not_by(p: &Program, id: SpecId, atom: &str, m: &Mismatch) -> Diagnostic {
    let spec = &p.specs[id];
    let message = format!("`{atom}` does not implement this {}", spec.kind);
    let help = match m {
        Mismatch::Op { .. } => {
            format!("name one of {}: `carbyne atoms --spec {}` lists them", spec.kind, spec.kind)
        }
        m => m.help(),
    };
    Diagnostic::new(Code::AtomMismatch, spec.span, message).label(m.to_string()).help(help)
}

/// The error for an atom of a spec that several instructions implement, whatever they are.
pub(crate) fn many(p: &Program, id: SpecId, atom: &str) -> Diagnostic {
    let spec = &p.specs[id];
    let message =
        format!("this {} of a block is not one instruction, `{atom}` or another", spec.kind);
    Diagnostic::new(Code::AtomMismatch, spec.span, message)
        .label("each thread combines its own values, then threads exchange theirs")
        .help("remove `atom=`; write the body where the instruction matters")
}

/// `f16 GL [8] -> f16 SH [8], by each thread`
fn describe(p: &Program, spec: &Spec) -> String {
    let one = |t: TensorId| {
        let b = p.buffer_of(t);
        let memory = b.memory.map_or("", Memory::as_str);
        format!(
            "{} {memory} {}",
            b.scalar,
            carbyne_ir::program::show_levels(&p.arena, &p.tensors[t].levels)
        )
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

/// The kind whose rows are compared with a spec: those that only add are near to setting.
pub(crate) fn compared(kind: SpecKind) -> SpecKind {
    if kind == SpecKind::MatMulSet { SpecKind::MatMul } else { kind }
}

fn op_fits(spec: &Spec, atom: &Atom) -> Result<(), Mismatch> {
    if atom.op.spec_kind() == Some(compared(spec.kind)) {
        Ok(())
    } else {
        Err(Mismatch::Op { want: atom.op.to_string() })
    }
}

/// Inputs fill the operands that are only read, in order; outputs the written ones.
fn fill(spec: &Spec, atom: &Atom) -> Vec<Option<TensorId>> {
    let mut inputs = spec.inputs.iter();
    let mut outputs = spec.outputs.iter();
    atom.operands
        .iter()
        .map(|o| match o.access {
            OperandAccess::Read => match inputs.next() {
                Some(Operand::Tensor(t)) => Some(*t),
                Some(Operand::Number(_)) | None => None,
            },
            OperandAccess::Write | OperandAccess::ReadWrite => outputs.next().copied(),
        })
        .collect()
}

/// A literal is one value: an operand of several takes a tensor.
pub(crate) fn literals_fit(spec: &Spec, atom: &Atom) -> Result<(), Mismatch> {
    let reads = atom.operands.iter().filter(|o| o.access == OperandAccess::Read);
    for (operand, input) in reads.zip(&spec.inputs) {
        let one = matches!(operand.elem, Elem::Scalar(_)) && operand.n_values() == 1;
        if matches!(input, Operand::Number(_)) && !one {
            return Err(Mismatch::Literal { operand: operand.name, want: operand.n_values() });
        }
    }
    Ok(())
}

fn scalar_fits(p: &Program, t: TensorId, operand: &AtomOperand) -> Result<(), Mismatch> {
    let found = p.scalar_of(t);
    if operand.elem.scalars_per_unit(found).is_some() {
        return Ok(());
    }
    Err(Mismatch::Scalar {
        operand: operand.name,
        want: operand.elem.to_string(),
        found: found.to_string(),
        apart: (operand.elem.bits() - found.bits()).abs(),
    })
}

fn memory_fits(p: &Program, t: TensorId, operand: &AtomOperand) -> Result<(), Mismatch> {
    let found = p.buffer_of(t).memory;
    if found.is_some_and(|m| operand.allows(m)) {
        return Ok(());
    }
    let want: Vec<&str> = operand.memory.iter().map(|m| m.as_str()).collect();
    Err(Mismatch::Memory {
        operand: operand.name,
        want: want.join(" or "),
        found: found.map_or("no memory", Memory::as_str).to_owned(),
    })
}

/// Scalars that one thread gives to the operand.
fn n_scalars(p: &Program, t: TensorId, operand: &AtomOperand) -> i64 {
    operand.n_values() * operand.elem.scalars_per_unit(p.scalar_of(t)).unwrap_or(1)
}

fn values_fit(p: &Program, t: TensorId, operand: &AtomOperand) -> Result<(), Mismatch> {
    let want = n_scalars(p, t, operand);
    let found = p.tensors[t].concat().size_in(&p.arena).ok().and_then(Dim::as_const).unwrap_or(-1);
    let private = p.tensors[t].dist.is_none();
    if want == found && private {
        return Ok(());
    }
    Err(Mismatch::Values { operand: operand.name, want, found })
}

fn order_fits(
    p: &Program,
    t: TensorId,
    operand: &AtomOperand,
    atom: &Atom,
) -> Result<(), Mismatch> {
    let scalar = p.scalar_of(t);
    let memory = p.buffer_of(t).memory;
    let n = n_scalars(p, t, operand);
    // How many values must lie side by side: all that an address covers; the whole of a C++ access;
    // those that share an assembly register.
    let run = if memory != Some(Memory::Rf) || operand.cxx.is_some() {
        n
    } else {
        match (operand.elem, &atom.template) {
            (Elem::Bits(b), Template::Cuda(_)) => b / scalar.bits(),
            _ => (32 / scalar.bits()).clamp(1, n),
        }
    };
    if run <= 1 {
        return Ok(());
    }
    let tensor = &p.tensors[t];
    let layout = tensor.concat();
    let wrong = |found: String| Mismatch::Order {
        operand: operand.name,
        want: format!("runs of {run} consecutive elements, `{run}:1`"),
        found,
    };
    let Some(fixed) = layout.to_fixed() else { return Err(wrong(layout.display_in(&p.arena))) };
    let runs = (0..fixed.size()).all(|i| fixed.at(i) == fixed.at(i - i % run) + i % run);
    if !runs {
        return Err(wrong(fixed.to_string()));
    }
    if memory == Some(Memory::Rf) {
        // A run must also start where a register of that width starts.
        let starts = (0..fixed.size()).step_by(run as usize).all(|i| fixed.at(i) % run == 0);
        let base = p.arena.divisor(tensor.offset) % run == 0;
        if !starts || !base {
            return Err(wrong(format!("{fixed}, not starting at a multiple of {run}")));
        }
    }
    Ok(())
}

fn align_fits(p: &Program, t: TensorId, operand: &AtomOperand) -> Result<(), Mismatch> {
    let buffer = p.buffer_of(t);
    if operand.align <= 1 || buffer.memory == Some(Memory::Rf) {
        return Ok(());
    }
    let bits = buffer.scalar.bits();
    let offset = match p.arena.divisor(p.tensors[t].offset) {
        0 => operand.align, // Offset zero is aligned to anything.
        d => power_of_two(d.saturating_mul(bits) / 8),
    };
    let mut found = offset.min(buffer.align);
    if let Some(sw) = buffer.swizzle {
        found = found.min(1 << sw.base().min(30));
    }
    if found >= operand.align {
        Ok(())
    } else {
        Err(Mismatch::Align { operand: operand.name, want: operand.align, found })
    }
}

/// A descriptor names the operand, the same one for every thread of a group.
fn described(
    p: &Program,
    spec: &Spec,
    t: TensorId,
    operand: &AtomOperand,
    atom: &Atom,
) -> Result<(), Mismatch> {
    descriptor::of_operand(p, t, operand)
        .map_err(|why| Mismatch::Descriptor { operand: operand.name, why })?;
    // Evaluated with loops and blocks at their first values; the simulator looks at all of them.
    let offset = p.tensors[t].offset;
    let Some(threads) = spec.exec.map(|e| &p.threads[e.threads]) else { return Ok(()) };
    let (Dim::Const(first), Some(layout)) = (threads.offset, threads.concat().to_fixed()) else {
        return Ok(());
    };
    for i in 0..layout.size() {
        let thread = first + layout.at(i);
        let of = |thread| relation::eval(p, offset, thread);
        if of(thread) != of(thread - thread % atom.group) {
            let thread = thread % atom.group;
            return Err(Mismatch::Uniform { operand: operand.name, thread });
        }
    }
    Ok(())
}

/// The largest power of two that divides `n`.
fn power_of_two(n: i64) -> i64 {
    if n <= 0 { 1 } else { 1 << n.trailing_zeros().min(30) }
}
