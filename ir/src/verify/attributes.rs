//! Checks that attributes of specs do not contradict the body or the type of the output: V0207
//! (scalar types do not fit the spec, here those of `acc=` and the output) and V0218 (the value of
//! an attribute does not fit).
//!
//! A body fixes how a spec is decomposed. At a spec with a body, `tile=` and `warps=` only record
//! the choices of a strategy, and `acc=` is part of the meaning. The body must agree with all
//! three. Attributes that only an instruction uses, such as `atom=`, are an error there: they must
//! stand at the leaf. At a leaf that accumulates in registers, `acc=` must be the type of the
//! registers, or a wider one if the solver still has to choose the instruction of a block.

use super::state::Verifier;
use crate::ast::{Key, Role, SpecKind};
use crate::diag::{Code, Diagnostic, count};
use crate::expr::Dim;
use crate::layout::Layout;
use crate::program::walk::Step;
use crate::program::{Program, Spec, SpecId, Stmt, StmtKind, Tensor, TensorId, ThreadsId};
use crate::scalar::Scalar;
use crate::span::Span;

impl Verifier<'_> {
    pub(super) fn attributes(&mut self, id: SpecId) {
        let spec = &self.p.specs[id];
        let Some(body) = &spec.body else { return self.accumulates(spec) };
        for key in Key::with(Role::OfLeaf) {
            if let Some(span) = at(spec, key) {
                self.errors.push(
                    Diagnostic::new(
                        Code::Attribute,
                        span,
                        format!("`{key}=` is not allowed at a {} with a body", spec.kind),
                    )
                    .label("the body determines the instructions")
                    .help(match key {
                        Key::Atom => "remove the body, or write `atom=` at the leaves of the body",
                        _ => "write it at the Moves of the body",
                    }),
                );
            }
        }
        self.warps(spec, body);
        self.tiles(spec);
        if let (Some(span), Some(acc)) = (at(spec, Key::Acc), spec.acc)
            && let Some((other, found)) = other_acc(self.p, spec, acc, body)
        {
            let d = Diagnostic::new(
                Code::Attribute,
                span,
                format!("`acc={acc}` contradicts the body, which accumulates in {found}"),
            )
            .label(format!("this states {acc}"))
            .related(other, format!("accumulates in {found}"))
            .help(format!("write `acc={found}`, or accumulate in {acc} in the body"));
            self.errors.push(match spec.word(Key::Acc) {
                Some(word) => d.edit(word, found.as_str()),
                None => d,
            });
        }
    }

    /// The accumulator of a leaf. Leaves of single threads that accumulate in registers use the
    /// type of the registers. Leaves of a block may accumulate in a wider type and round to the
    /// type of the output, but not in a narrower one.
    fn accumulates(&mut self, spec: &Spec) {
        let (Some(span), Some(acc), Some(&out)) =
            (at(spec, Key::Acc), spec.acc, spec.outputs.first())
        else {
            return;
        };
        let found = self.p.scalar_of(out);
        let registers = self.p.buffer_of(out).is_per_thread();
        let one = self.p.is_private(out) && spec.atom.is_some();
        let adds = registers && (spec.kind == SpecKind::MatMul || one);
        let by_threads = spec.atom.is_some() || self.p.is_private(out);
        if adds && acc != found && (by_threads || !is_wider(acc, found)) {
            let name = self.p.tensor_name(out);
            self.errors.push(
                Diagnostic::new(
                    Code::ScalarMismatch,
                    span,
                    format!(
                        "`acc={acc}` contradicts {name}, in which the MatMul accumulates: it has \
                         type {found}"
                    ),
                )
                .label(format!("this states {acc}"))
                .help(format!(
                    "write `acc={found}`, or allocate {name} with type {acc} and cast it later"
                )),
            );
        }
    }

    /// `warps=` must be the number of groups of threads. Groups are warps, unless leaves of a
    /// MatMul name an instruction that other groups execute.
    fn warps(&mut self, spec: &Spec, body: &[Stmt]) {
        let (Some(span), Some(warps)) = (at(spec, Key::Warps), spec.ints(Key::Warps)) else {
            return;
        };
        let Some(n) = spec.exec.and_then(|e| n_threads(self.p, e.threads)) else { return };
        let said = warps.iter().fold(1i64, |n, w| n.saturating_mul(*w));
        let group = match spec.kind.is_product() {
            true => leaf_group(self.p, body),
            false => Some(32),
        };
        let (fits, found) = match group {
            // No instruction is chosen yet. An instruction that is named for all the threads may
            // consist of ones for smaller groups.
            None => (divides(said, n), format!("{n} threads execute it")),
            Some(g) if g == n => (divides(said, n), format!("{n} threads execute it together")),
            Some(1) => (n == said, format!("{n} threads execute it, each for itself")),
            Some(g) => {
                ((n + g - 1) / g == said, format!("{n} threads execute it, in groups of {g}"))
            }
        };
        if fits {
            return;
        }
        let written = tuple(warps);
        self.errors.push(
            Diagnostic::new(
                Code::Attribute,
                span,
                format!(
                    "`warps={written}` is {said} groups of threads, which contradicts the body"
                ),
            )
            .label(found)
            .help("correct or remove `warps=`: the body determines the groups"),
        );
    }

    /// `tile=` must be the extents of tiles that the body takes of the operands.
    fn tiles(&mut self, spec: &Spec) {
        if spec.kind == SpecKind::Generic {
            // The `tile=` of a generic spec belongs to the product or reduction inside it.
            return;
        }
        let (Some(span), Some(tile)) = (at(spec, Key::Tile), spec.ints(Key::Tile)) else { return };
        let written = tuple(tile);
        let wrong = |label: String| {
            let message = format!("`tile={written}` contradicts the body");
            Diagnostic::new(Code::Attribute, span, message)
                .label(label)
                .help("correct or remove `tile=`: the body determines the tiles")
        };
        let wrong_count = |wanted: String| {
            let message = format!("`tile={written}` does not fit {}", spec.kind.with_article());
            Diagnostic::new(Code::Attribute, span, message)
                .label(format!("{}, but {wanted}", count(tile.len(), "number")))
                .help("write one number for each mode, such as `tile=(64,64)`")
        };
        let ins: Vec<TensorId> = spec.input_tensors().collect();
        let operands: Vec<(TensorId, Vec<i64>)> = match (spec.kind, &ins[..], &spec.outputs[..]) {
            (SpecKind::MatMul | SpecKind::MatMulSet, &[a, b], &[c]) => {
                let &[m, n, k] = tile else {
                    let d = wrong_count("a MatMul has three: m, n and k".to_owned());
                    return self
                        .errors
                        .push(d.help("write three numbers, such as `tile=(64,64,32)`"));
                };
                vec![(a, vec![m, k]), (b, vec![k, n]), (c, vec![m, n])]
            }
            (SpecKind::Reduction(_), &[from], _) => vec![(from, tile.to_vec())],
            (_, _, &[to]) => vec![(to, tile.to_vec())],
            _ => return,
        };
        for (t, tile) in operands {
            let Some(extents) = extents(self.p, &self.p.tensors[t].concat()) else { continue };
            let name = self.p.tensor_name(t);
            if extents.len() != tile.len() {
                let d = wrong_count(format!("{name} has {}", count(extents.len(), "mode")));
                return self.errors.push(d);
            }
            let label = if !self.tiles_of(t, &tile) {
                format!("the body takes no tile of {} of {name}", tuple(&tile))
            } else {
                continue;
            };
            return self.errors.push(wrong(label));
        }
    }

    /// Whether a view of the tensor's buffer has these extents in its innermost level, or is a box
    /// that divides such a tile.
    fn tiles_of(&mut self, t: TensorId, tile: &[i64]) -> bool {
        let p = self.p;
        let buffer = p.tensors[t].buffer;
        let is_part = |view: &Tensor| {
            let extents = || extents(p, view.levels.last()?);
            let divides = |own: Vec<i64>| {
                own.len() == tile.len()
                    && tile.iter().zip(&own).all(|(n, by)| *by > 0 && n % by == 0)
            };
            view.buffer == buffer && view.map.is_some() && extents().is_some_and(divides)
        };
        if p.tensors.iter().any(|(_, view)| is_part(view)) {
            return true;
        }
        let tiles = self.tiles.get_or_insert_with(|| {
            let inner = p
                .tensors
                .iter()
                .filter_map(|(_, t)| Some((t.buffer, extents(p, t.levels.last()?)?)));
            inner.collect()
        });
        tiles.contains(&(p.tensors[t].buffer, tile.to_vec()))
    }
}

/// The place of an attribute in the text.
fn at(spec: &Spec, key: Key) -> Option<Span> {
    spec.attr(key).map(|attr| attr.name.span)
}

/// The result of looking at one spec of a body.
enum Look<T> {
    Found(T),
    /// Not this spec, but possibly one inside it.
    Inside,
    /// Neither this spec nor one inside it.
    Past,
}

/// The first match among the specs of a body, in text order; a spec precedes the specs inside it.
fn look_for<T>(p: &Program, body: &[Stmt], look: impl Fn(&Spec) -> Look<T>) -> Option<T> {
    let mut walk = p.walk(body);
    while let Some(step) = walk.next() {
        let Step::Enter(Stmt { kind: StmtKind::Spec(id), .. }) = step else { continue };
        match look(&p.specs[*id]) {
            Look::Found(it) => return Some(it),
            Look::Inside => {}
            Look::Past => walk.skip_inside(),
        }
    }
    None
}

/// A MatMul of the same factor types that implements a part of `spec` and accumulates in another
/// type.
fn other_acc(p: &Program, spec: &Spec, acc: Scalar, body: &[Stmt]) -> Option<(Span, Scalar)> {
    let factors = |s: &Spec| s.input_tensors().map(|t| p.scalar_of(t)).collect::<Vec<_>>();
    let wanted = factors(spec);
    look_for(p, body, |inner| {
        if !inner.kind.is_product() {
            return Look::Inside;
        }
        // `accumulates` reports leaves that contradict their own output.
        let leaf = inner.body.is_none();
        let into = |out: &TensorId| leaf && p.scalar_of(*out) == acc;
        if inner.outputs.first().is_some_and(into) || factors(inner) != wanted {
            return Look::Past;
        }
        match inner.acc.filter(|found| *found != acc) {
            Some(found) => Look::Found((inner.span, found)),
            None => Look::Past,
        }
    })
}

/// Whether a type is wider than another one of the same kind: it has more bits.
fn is_wider(one: Scalar, other: Scalar) -> bool {
    one.is_float() == other.is_float() && one.bits() > other.bits()
}

/// The number of threads of a thread tensor; `None` if it depends on symbols.
fn n_threads(p: &Program, id: ThreadsId) -> Option<i64> {
    let threads = &p.threads[id];
    match threads.each {
        Some(_) => Some(1),
        None => threads.concat().to_fixed().map(|l| l.size()),
    }
}

/// Whether the threads divide evenly into this number of groups.
fn divides(groups: i64, threads: i64) -> bool {
    groups > 0 && threads % groups == 0
}

/// The number of threads that execute together one MatMul leaf of the body, if known.
fn leaf_group(p: &Program, body: &[Stmt]) -> Option<i64> {
    let group = look_for(p, body, |spec| {
        if spec.body.is_some() || !spec.kind.is_product() {
            return Look::Inside;
        }
        let Some(exec) = spec.exec else { return Look::Found(None) };
        let threads = &p.threads[exec.threads];
        if threads.each.is_some() {
            return Look::Found(Some(1));
        }
        if spec.atom.is_none() {
            return Look::Inside;
        }
        let innermost = threads.levels.last().and_then(|level| level.to_fixed());
        Look::Found(innermost.map(|level| level.size()))
    });
    group.flatten()
}

/// Constant extents of the modes.
fn extents(p: &Program, level: &Layout<Dim>) -> Option<Vec<i64>> {
    let size = |m: &Layout<Dim>| m.size_in(&p.arena).ok().and_then(Dim::as_const);
    level.modes().iter().map(size).collect()
}

/// A tuple as text: `(128,64)`, or `4`.
fn tuple(list: &[i64]) -> String {
    match list {
        [one] => one.to_string(),
        _ => format!("({})", list.iter().map(i64::to_string).collect::<Vec<_>>().join(",")),
    }
}
