//! Lowers leaves: prints the CUDA text of the atom, with the operands of the spec in its
//! placeholders. `ptx` fills in the atoms whose text is PTX.
//!
//! If a tile may reach over the end of its tensor, the statement stands under conditions: elements
//! that do not exist are not written, and are zero where they are read. If only a part of a vector
//! exists, its elements are copied one by one.

use super::access::Values;
use super::descriptor::Described;
use super::helper::Helper;
use super::known_conditions::Known;
use super::state::Lowering;
use super::stmts::line_comment;
use crate::cpp::ast::{Assign, Binary, Declare, Expr, Piece, Stmt, StmtKind, Type};
use crate::scalars::{BF16, FP16, literal, storage};
use crate::{Fallible, errors};
use carbyne_atoms::bind::{self, Accesses, Parts};
use carbyne_atoms::{Atom, AtomOp, AtomOperand, Elem, Part, Template};
use carbyne_ir::ast::{CmpOp, SpecKind};
use carbyne_ir::diag::Code;
use carbyne_ir::expr::Dim;
use carbyne_ir::program::{Operand, Spec, SpecId, TensorId};

/// The argument for an operand of an atom.
pub(super) enum Filled {
    Values(Values),
    Described(Described),
    Number(f64),
}

impl Lowering<'_> {
    /// The statement of a spec without a body.
    pub(super) fn leaf(&mut self, id: SpecId) -> Fallible<Stmt> {
        let spec = &self.p.specs[id];
        let Some(name) = &spec.atom else {
            return Err(errors::new(
                Code::NotDecomposed,
                spec.span,
                format!("this {} has neither a body nor an atom", spec.kind),
                "write `atom=`, or decompose the program first",
            ));
        };
        let atom = self.atoms.find(name).map_err(|e| Box::new(e.diagnostic(spec)))?;
        let bound = bind::bind(self.p, id, atom)
            .map_err(|m| Box::new(bind::not_by(self.p, id, name, &m)))?;
        if let Some(copy) = bound.bulk {
            let mut stmt = self.bulk(atom, copy).map_err(errors::with_span(spec.span))?;
            stmt.comment = line_comment(spec.line, atom.name);
            return Ok(stmt);
        }
        let accesses = bind::accesses(self.p, spec, atom)
            .map_err(|m| Box::new(bind::not_by(self.p, id, name, &m)))?;
        let filled = self.fill(atom, &bound.operands).map_err(errors::with_span(spec.span))?;
        self.headers_of(atom);
        let stmt = match atom.template {
            Template::Cuda(_) => self.cuda(atom, &filled, spec.lane()),
            Template::Ptx(_) | Template::PtxScalar(_) => {
                let bytes = match atom.counts() {
                    true => {
                        self.valid_bytes(spec, &accesses).map_err(errors::with_span(spec.span))?
                    }
                    false => None,
                };
                let given = bytes.map(|bytes| ("valid", ("r".to_owned(), bytes)));
                let given = given.into_iter().collect();
                self.ptx(atom, &filled, &[], given, spec.kind != SpecKind::MatMulSet)
            }
        };
        let mut stmt = stmt.map_err(errors::with_span(spec.span))?;
        // Inline PTX takes several lines, so its comment names the atom.
        let what = if atom.template.is_ptx() { atom.name } else { "" };
        stmt.comment = line_comment(spec.line, what);
        let stmt = self.compared(spec, stmt).map_err(errors::with_span(spec.span))?;
        self.note_coordinates(spec);
        let stmt =
            self.where_inside(spec, atom, stmt, &accesses).map_err(errors::with_span(spec.span))?;
        let alone = atom.group == 1 && atom.visibility.is_immediate();
        Ok(Stmt { alone, ..stmt })
    }

    /// Restricts the statement of an atom to existing elements, for tiles that reach over the end
    /// of a mode.
    fn where_inside(
        &mut self,
        spec: &Spec,
        atom: &Atom,
        stmt: Stmt,
        accesses: &Accesses,
    ) -> Fallible<Stmt> {
        let source = if atom.counts() { None } else { self.all_less_but_known(&accesses.source)? };
        let mut stmt = stmt;
        if let Some(parts) = &accesses.parts
            && let Some(cond) = self.all_less_but_known(&parts.whole)?
        {
            // An atom with a byte count handles other bounds by the count; the copy of single
            // elements needs conditions.
            let around = if atom.counts() { &accesses.source[..] } else { &[] };
            let otherwise = self.one_by_one(spec, parts, around)?;
            stmt = Stmt::new(StmtKind::If { cond, then: vec![stmt], otherwise });
        }
        if let Some(cond) = source {
            let mut zeros = vec![];
            for &t in &spec.outputs {
                zeros.extend(self.zeros(t)?);
            }
            stmt = Stmt::new(StmtKind::If { cond, then: vec![stmt], otherwise: zeros });
        }
        if let Some(cond) = self.all_less_but_known(&accesses.executed)? {
            stmt = Stmt::new(StmtKind::If { cond, then: vec![stmt], otherwise: vec![] });
        }
        Ok(stmt)
    }

    /// Copies each existing element separately, and writes zero for sources that do not exist. The
    /// conditions `around` must hold for each source, too. All elements are read before the first
    /// one is written; otherwise each load would be waited for.
    fn one_by_one(
        &mut self,
        spec: &Spec,
        parts: &Parts,
        around: &[(Dim, Dim)],
    ) -> Fallible<Vec<Stmt>> {
        let (Some(Operand::Tensor(from)), Some(&to)) = (spec.inputs.first(), spec.outputs.first())
        else {
            return Ok(vec![]);
        };
        let (from, to) = (self.values(*from)?, self.values(to)?);
        let zero = literal(0.0, to.stored.scalar)
            .ok_or_else(|| errors::unprintable("a type without a zero", "take another type"))?;
        let mut sources = vec![];
        for (v, &source) in from.at.iter().enumerate() {
            let source = self.element(&from.stored, source)?;
            let own = parts.source.get(v).map_or(&[][..], |p| p);
            let cond = self.all_less(&[around, own].concat())?;
            sources.push(match cond {
                Some(cond) => cond.choose(source, zero.clone()),
                None => source,
            });
        }
        self.namer.open();
        let name = self.namer.admit("part", "e");
        self.namer.close();
        let assign = |to, value| Stmt::new(StmtKind::Assign { to, op: Assign::Set, value });
        let mut stmts = vec![];
        if !from.stored.memory.is_per_thread() && !to.stored.memory.is_per_thread() {
            stmts.push(Stmt::new(StmtKind::Declare(Declare {
                align: None,
                ty: Type::named(to.stored.storage.cxx),
                name: name.clone().into(),
                array: Some(sources.len() as i64),
                init: None,
                droppable: true,
            })));
            for (v, source) in sources.iter_mut().enumerate() {
                let part = Expr::name(name.clone()).at(Expr::Int(v as i64));
                stmts.push(assign(part.clone(), std::mem::replace(source, part)));
            }
        }
        for (v, (source, &at)) in sources.into_iter().zip(&to.at).enumerate() {
            let mut stmt = assign(self.element(&to.stored, at)?, source);
            if let Some(cond) = self.all_less(parts.executed.get(v).map_or(&[], |p| p))? {
                stmt = Stmt::new(StmtKind::If { cond, then: vec![stmt], otherwise: vec![] });
            }
            stmts.push(stmt);
        }
        Ok(stmts)
    }

    /// `i < M && j < N`; none without pairs.
    fn all_less(&mut self, pairs: &[(Dim, Dim)]) -> Fallible<Option<Expr>> {
        let all: Vec<Expr> =
            pairs.iter().map(|(a, b)| self.compare(*a, CmpOp::Lt, *b)).collect::<Result<_, _>>()?;
        Ok(all.into_iter().reduce(|a, b| a.binary(Binary::And, b)))
    }

    /// The condition of [`Lowering::all_less`], without the iterations in which it is known to
    /// hold.
    fn all_less_but_known(&mut self, pairs: &[(Dim, Dim)]) -> Fallible<Option<Expr>> {
        let mut all = vec![];
        for &(coordinate, extent) in pairs {
            let known = match self.known_less(coordinate, extent) {
                Known::Always => continue,
                Known::Where(known) => Some(known),
                Known::Nothing => None,
            };
            let one = self.compare(coordinate, CmpOp::Lt, extent)?;
            all.extend(known.into_iter().chain([one]).reduce(|a, b| a.binary(Binary::Or, b)));
        }
        Ok(all.into_iter().reduce(|a, b| a.binary(Binary::And, b)))
    }

    /// Sets all registers of a tensor to zero.
    fn zeros(&mut self, t: TensorId) -> Fallible<Vec<Stmt>> {
        let values = self.values(t)?;
        let stored = &values.stored;
        let zero = literal(0.0, stored.scalar)
            .ok_or_else(|| errors::unprintable("a type without a zero", "take another type"))?;
        let packed = stored.storage.packed.max(1) as usize;
        let mut stmts = vec![];
        for &at in values.at.iter().step_by(packed) {
            let to = self.element(stored, at)?;
            stmts.push(Stmt::new(StmtKind::Assign { to, op: Assign::Set, value: zero.clone() }));
        }
        Ok(stmts)
    }

    /// The argument for each operand.
    fn fill(&self, atom: &Atom, given: &[Operand]) -> Fallible<Vec<Filled>> {
        let one = |(operand, given): (&AtomOperand, &Operand)| match given {
            Operand::Tensor(t) if operand.matrix_rule().is_some() => {
                self.described(*t, operand).map(Filled::Described)
            }
            Operand::Tensor(t) => self.values(*t).map(Filled::Values),
            Operand::Number(n) => Ok(Filled::Number(*n)),
        };
        atom.operands.iter().zip(given).map(one).collect()
    }

    /// The number of bytes that an atom with a byte count reads: the bytes of existing elements
    /// among those of `valid=`.
    fn valid_bytes(&mut self, spec: &Spec, accesses: &Accesses) -> Fallible<Option<Expr>> {
        let Some(Operand::Tensor(t)) = spec.inputs.first() else { return Ok(None) };
        let cx = &self.p.arena;
        let bits = self.p.scalar_of(*t).bits();
        if bits % 8 != 0 {
            return Err(errors::unprintable(
                "an atom cannot count elements smaller than a byte",
                "move elements of whole bytes, or use an `if`",
            ));
        }
        let all = self.p.tensors[*t].concat().size_in(cx).map_err(errors::layout)?;
        let mut count = spec.valid.unwrap_or(all);
        if !accesses.leading.is_empty() {
            for left in &accesses.leading {
                count = cx.min(count, *left).map_err(errors::layout)?;
            }
            count = cx.max(count, Dim::Const(0)).map_err(errors::layout)?;
        }
        let bytes = cx.mul(count, Dim::Const(bits / 8)).map_err(errors::layout)?;
        let printed = self.indices.print(bytes)?;
        let mut bytes = match printed.wide {
            true => Expr::Cast(Type::named("int"), Box::new(printed.expr)),
            false => printed.expr,
        };
        // In most iterations of an unrolled loop, all elements exist.
        if let ([left], None, Some(n)) = (&accesses.leading[..], spec.valid, all.as_const()) {
            match self.known_less(Dim::Const(n - 1), *left) {
                Known::Always => bytes = Expr::Int(n * bits / 8),
                Known::Where(cond) => bytes = cond.choose(Expr::Int(n * bits / 8), bytes),
                Known::Nothing => {}
            }
        }
        Ok(Some(match self.all_less(&accesses.source)? {
            Some(cond) => cond.choose(bytes, Expr::Int(0)),
            None => bytes,
        }))
    }

    fn headers_of(&mut self, atom: &Atom) {
        for operand in &atom.operands {
            if let Elem::Scalar(s) = operand.elem {
                self.headers.extend(storage(s).header);
            }
            // The type of the access, such as `__half2`, needs a header, too.
            let cxx = operand.cxx.unwrap_or("");
            self.headers.extend(cxx.starts_with("__half").then_some(FP16));
            self.headers.extend(cxx.starts_with("__nv_bfloat").then_some(BF16));
        }
    }

    /// `{D} = {S};`
    fn cuda(&mut self, atom: &Atom, filled: &[Filled], lane: Option<i64>) -> Fallible<Stmt> {
        if atom.begins_anywhere() {
            self.helpers.insert(Helper::LoadUnaligned);
        }
        if atom.op == AtomOp::Select {
            self.helpers.insert(Helper::Choose);
        }
        let plain = is_plain(atom, filled);
        let mut pieces = vec![];
        for part in atom.template.parts() {
            pieces.push(match part {
                Part::Text(text) => Piece::Text(text),
                Part::Operand("lane") if matches!(atom.op, AtomOp::Shfl(_)) => {
                    Piece::Operand(Expr::Int(lane.ok_or_else(|| {
                        errors::unprintable(
                            "the `lane=` of a Shfl is not a constant",
                            "write a number or a `let` constant",
                        )
                    })?))
                }
                Part::Operand(name) => {
                    let (operand, value) = named(atom, filled, name)?;
                    Piece::Operand(match value {
                        Filled::Values(v) if plain => self.element(&v.stored, v.at[0])?,
                        Filled::Values(v) => self.lvalue(v, operand)?,
                        Filled::Number(n) => number(*n, operand)?,
                        Filled::Described(_) => return Err(not_cuda(atom)),
                    })
                }
                Part::Array(name) | Part::At(name) | Part::Before(name) => {
                    let (operand, Filled::Values(v)) = named(atom, filled, name)? else {
                        return Err(not_cuda(atom));
                    };
                    let &first = v.at.first().ok_or_else(|| errors::valueless(&v.text))?;
                    Piece::Operand(match part {
                        Part::Array(_) => Expr::name(v.stored.name.clone()),
                        Part::At(_) => self.position(&v.stored, first)?,
                        _ => {
                            let n = operand.around * 8 / v.stored.scalar.bits().max(1);
                            let rest = self.p.arena.rem(first, Dim::Const(n.max(1)));
                            self.index(rest.map_err(errors::layout)?)?
                        }
                    })
                }
                Part::Reciprocal(name) => {
                    let (operand, value) = named(atom, filled, name)?;
                    let (Elem::Scalar(scalar), Filled::Number(n)) = (operand.elem, value) else {
                        return Err(not_cuda(atom));
                    };
                    Piece::Operand(literal(1.0 / n, scalar).ok_or_else(|| not_cuda(atom))?)
                }
                Part::Register(..) | Part::Major(_) | Part::Accumulate => {
                    return Err(not_cuda(atom));
                }
            });
        }
        Ok(Stmt::new(StmtKind::Filled(pieces)))
    }
}

/// Whether an atom that moves bits of any type moves one value of one C++ type, so that no cast is
/// needed.
fn is_plain(atom: &Atom, filled: &[Filled]) -> bool {
    let bits = |o: &AtomOperand| matches!(o.elem, Elem::Bits(_));
    let mut cxx = filled.iter().map(|f| match f {
        Filled::Values(v) if v.at.len() == 1 => Some(v.stored.storage.cxx),
        Filled::Values(_) | Filled::Described(_) | Filled::Number(_) => None,
    });
    let first = cxx.next().flatten();
    atom.op == AtomOp::Move
        && atom.operands.iter().all(bits)
        && first.is_some()
        && cxx.all(|c| c == first)
}

/// The operand with a name, and its argument.
pub(super) fn named<'a>(
    atom: &'a Atom,
    filled: &'a [Filled],
    name: &str,
) -> Fallible<(&'a AtomOperand, &'a Filled)> {
    let found = atom.operands.iter().zip(filled).find(|(o, _)| o.name == name);
    found.ok_or_else(|| {
        errors::unprintable(
            format!("the text of `{}` names no operand {{{name}}}", atom.name),
            "correct the template of the atom",
        )
    })
}

/// C++ templates have no descriptors, and reciprocals only of literals. The checks of the atom
/// table reject other templates.
fn not_cuda(atom: &Atom) -> Box<carbyne_ir::diag::Diagnostic> {
    errors::unprintable(
        format!("the C++ template of `{}` has a placeholder for PTX", atom.name),
        "correct the template of the atom",
    )
}

pub(super) fn number(n: f64, operand: &AtomOperand) -> Fallible<Expr> {
    let scalar = match operand.elem {
        Elem::Scalar(s) if operand.n_values() == 1 => s,
        _ => {
            return Err(errors::unprintable(
                format!(
                    "operand {} is {}, for which there is no literal",
                    operand.name, operand.elem
                ),
                "set a register with Init, and use the register",
            ));
        }
    };
    literal(n, scalar).ok_or_else(|| {
        errors::unprintable(
            format!("`{scalar}` does not hold the number {n}"),
            "write a number of the type, or take a wider type",
        )
    })
}
