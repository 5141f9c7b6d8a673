//! Writes a probe, a test program that executes one atom, as statements of the text format:
//! declarations, loads of the operands, the atom, and stores of its results.

use super::choice::{Choice, Repeat};
use super::operand::{Passing, ProbeOperand};
use super::outcome::{NOT_A_SPEC, Unobservable};
use super::protocol::Protocol;
use crate::atom::{Atom, AtomOp, AtomOperand, Divisor, OperandAccess};
use crate::table::AtomTable;
use carbyne_ir::ast::*;
use carbyne_ir::build::statements::*;
use carbyne_ir::build::{Num, Tensor};
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::{Memory, Scalar};
use carbyne_ir::text;

/// Writes the statements of a program.
pub(super) struct Writer<'a> {
    pub(super) atom: &'a Atom,
    pub(super) table: &'a AtomTable,
    pub(super) choice: Choice,
    pub(super) threads: i64,
    pub(super) groups: i64,
}

impl Writer<'_> {
    /// The text of a program that executes the atom.
    pub(super) fn program(
        &self,
        kernel: &str,
        operands: &[ProbeOperand],
        repeat: Option<Repeat>,
    ) -> Result<String, Unobservable> {
        let mut protocol = Protocol::for_atom(self.atom);
        let warps = (self.threads + 31) / 32;
        let cycles = repeat.map(|_| "cycles");
        let cycles_of = |name| tensor(name, &[warps, 2], Scalar::I64, Some(Memory::Gl));
        let mut more: Vec<Stmt> = cycles.map(cycles_of).into_iter().collect();
        more.push(declare("grid", dims(&[self.choice.blocks], false), ThreadScalar::Block));

        let mut body = vec![
            threads("one", &[], &lanes("cta")),
            indices(&["@b"], View::of("grid")),
            indices(&["@t"], View::of("cta")),
        ];
        for o in operands {
            body.extend(allocated(o));
            body.extend(self.bring(o)?);
        }
        body.append(&mut protocol.brought);
        body.push(barrier(None));
        match repeat {
            None => body.extend(self.spec(operands, protocol)?),
            Some(repeat) => body.push(self.rounds(operands, repeat)),
        }
        body.push(barrier(None));
        for o in operands {
            body.extend(self.take(o)?);
        }
        let inputs = operands.iter().filter_map(|o| o.input.as_deref());
        let outputs = operands.iter().filter_map(|o| o.output.as_deref()).chain(cycles);
        let head = spec(SpecKind::Generic, &cta(), operands_of(inputs), views(outputs));
        Ok(self.module(operands, more, kernel, head, body))
    }

    /// The text of a module: the caller's tensors, `more` (which declares the grid), the block, and
    /// the kernel.
    pub(super) fn module(
        &self,
        operands: &[ProbeOperand],
        more: Vec<Stmt>,
        kernel: &str,
        head: Spec,
        body: Vec<Stmt>,
    ) -> String {
        let mut items: Vec<Stmt> = operands.iter().flat_map(ProbeOperand::declarations).collect();
        items.extend(more);
        items.push(declare("cta", dims(&[self.threads], false), ThreadScalar::Thread));
        let (name, body) = (Some(Name::new(kernel)), Some(block(body)));
        items.push(Stmt::new(StmtKind::Spec(Spec { name, body, ..head })));
        text::print(&Module { header: vec![], items, footer: vec![] })
    }

    /// The statements that load an operand from the caller's tensor.
    fn bring(&self, o: &ProbeOperand) -> Result<Vec<Stmt>, Unobservable> {
        let Some(input) = &o.input else { return Ok(vec![]) };
        let to = match o.passing {
            Passing::Registers { .. } => return Ok(vec![self.words(o, input, true)?]),
            Passing::Memory { memory: Memory::Gl, .. }
            | Passing::Whole
            | Passing::Number
            | Passing::Coordinate { .. } => return Ok(vec![]),
            Passing::Described { .. } => Tensor::of(o.name).then(compact(&[o.tile_size()])),
            Passing::Memory { .. } => Tensor::of(all(o)),
        };
        self.units(o, &tile(input, o), &to, (Memory::Gl, Memory::Sh))
    }

    /// The statements that store an operand to the caller's tensor.
    fn take(&self, o: &ProbeOperand) -> Result<Vec<Stmt>, Unobservable> {
        let Some(output) = &o.output else { return Ok(vec![]) };
        match o.passing {
            Passing::Registers { .. } => Ok(vec![self.words(o, output, false)?]),
            Passing::Memory { memory: Memory::Gl, .. }
            | Passing::Described { .. }
            | Passing::Whole
            | Passing::Number
            | Passing::Coordinate { .. } => Ok(vec![]),
            Passing::Memory { .. } => {
                let from = Tensor::of(all(o));
                self.units(o, &from, &tile(output, o), (Memory::Sh, Memory::Gl))
            }
        }
    }

    /// The statements that move the values of a thread, in the widest possible words.
    fn words(&self, o: &ProbeOperand, global: &str, load: bool) -> Result<Stmt, Unobservable> {
        let (n, bits) = (o.n_values(), o.scalar.bits());
        let all = n * bits;
        let word = [64, 32, 16].into_iter().find(|w| all % w == 0).unwrap_or(8);
        let (per, steps) = (word / bits, all / word);
        let i = if steps == 1 { Num::from(0) } else { Num::of("i") };
        let of_thread = index(&[Some("@b"), Some("@t"), None]);
        let thread = Tensor::of(global).then(of_thread).tile([per]).at([&i]);
        let own = mine(o).then(compact(&[n])).tile([per]).at([&i]);
        let (from, to, memories) = match load {
            true => (&thread, &own, (Memory::Gl, Memory::Rf)),
            false => (&own, &thread, (Memory::Rf, Memory::Gl)),
        };
        let atom = self.plain_move(memories.0, memories.1, word)?;
        let step = copy(&one(), from, to, atom);
        Ok(match steps {
            1 => step,
            _ => counted("i", (0, steps), Unroll::Full, vec![step]),
        })
    }

    /// The statements that move a tile through registers, one scalar per thread and step. Scalars
    /// narrower than a byte are moved bytewise.
    pub(super) fn units(
        &self,
        o: &ProbeOperand,
        from: &Tensor,
        to: &Tensor,
        (source, target): (Memory, Memory),
    ) -> Result<Vec<Stmt>, Unobservable> {
        let bits = o.scalar.bits().max(8);
        let per = bits / o.scalar.bits();
        let units = o.tile_size() / per;
        let load = self.plain_move(source, Memory::Rf, bits)?;
        let store = self.plain_move(Memory::Rf, target, bits)?;
        let (rounds, rest) = (units / self.threads, units % self.threads);
        let unit = format!("{}_{}", o.name, if source.is_global() { "in" } else { "out" });
        let mut stmts = vec![plain(&unit, &[per], o.scalar, Memory::Rf)];
        let (unit, t) = (Tensor::of(unit), Num::of("@t"));
        let step = |at: Num| {
            let (from, to) = (from.tile([per]).at([&at]), to.tile([per]).at([&at]));
            vec![copy(&one(), &from, &unit, load), copy(&one(), &unit, &to, store)]
        };
        if rounds > 0 {
            let at = Num::of("i") * self.threads + &t;
            stmts.push(counted("i", (0, rounds), Unroll::Default, step(at)));
        }
        if rest > 0 {
            // The condition alone would not give the index a known bound.
            let at = Num::from(rounds * self.threads) + t.clone().min(rest - 1);
            stmts.push(when(t.into_expr(), CmpOp::Lt, Expr::int(rest), step(at)));
        }
        Ok(stmts)
    }

    /// The threads that execute the atom.
    pub(super) fn who(&self) -> Tensor {
        match (self.atom.group, self.groups) {
            (1, _) => one(),
            (_, 1) => cta(),
            _ => {
                let group = layout_expr(&self.atom.thread_layout);
                cta().then(ViewOp::Tile(Tiler::Modes(vec![Some(group)])))
            }
        }
    }

    /// The spec that the atom implements, with the atom as its body.
    fn spec(
        &self,
        operands: &[ProbeOperand],
        protocol: Protocol,
    ) -> Result<Vec<Stmt>, Unobservable> {
        let kind = match self.choice.set {
            true => SpecKind::MatMulSet,
            false => self.atom.op.spec_kind().ok_or(NOT_A_SPEC)?,
        };
        // Pairs: operands of the spec, and the parts that one thread gives to the atom.
        let (mut reads, mut writes) = ((vec![], vec![]), (vec![], vec![]));
        let mut made = operands.iter();
        for o in &self.atom.operands {
            if let Some(n) = literal_of(self.atom, o) {
                let n = literal(&n.to_string());
                reads.0.push(n.clone());
                reads.1.push(n);
                continue;
            }
            let Some(p) = made.next() else { continue };
            let whole = Tensor::of(match p.passing {
                Passing::Number => p.input.as_deref().unwrap_or_default(),
                _ => p.name,
            });
            let part = match p.passing {
                Passing::Registers { .. } => mine(p),
                Passing::Memory { .. } | Passing::Coordinate { .. } => {
                    whole.then(ViewOp::Tv(layout_expr(&p.tv), Name::new("cta")))
                }
                Passing::Number | Passing::Described { .. } | Passing::Whole => whole.clone(),
            };
            if o.access == OperandAccess::Read {
                reads.0.push(Operand::View(whole.into()));
                reads.1.push(Operand::View(part.into()));
            } else {
                writes.0.push(whole.into());
                writes.1.push(part.into());
            }
        }
        let attrs = match self.atom.op {
            AtomOp::Reduction(_) => vec![number(Key::Axis, i64::from(self.groups > 1))],
            AtomOp::MatMul { .. } => {
                let acc = operands.iter().find(|o| o.access != OperandAccess::Read);
                acc.map(|o| word(Key::Acc, o.scalar.as_str())).into_iter().collect()
            }
            AtomOp::Move
            | AtomOp::Accumulate(_)
            | AtomOp::Unary(_)
            | AtomOp::Binary(_)
            | AtomOp::Select
            | AtomOp::Shfl(_)
            | AtomOp::Init
            | AtomOp::Sync(_)
            | AtomOp::Barrier(_)
            | AtomOp::Elect => vec![],
        };
        let valid = match (self.atom.number("valid"), operands.first()) {
            // Neighboring threads use different numbers of elements, so that every number occurs.
            (Some(_), Some(o)) => Some(Num::of("@t") % (o.n_values() + 1)),
            _ => None,
        };
        // These have no spec around them: their meaning is defined by the atom.
        let alone = matches!(self.atom.op, AtomOp::Shfl(_)) || valid.is_some();
        let mut own = own_attributes(self.atom.op);
        own.extend(valid.map(|n| value(Key::Valid, n.into_expr())));
        own.push(word(Key::Atom, self.atom.name));
        let leaf = Spec { attrs: own, ..spec(kind, &self.who(), reads.1, writes.1) };
        let mut body = protocol.before;
        body.push(Stmt::new(StmtKind::Spec(leaf)));
        body.extend(protocol.after);
        if alone {
            return Ok(body);
        }
        let head = spec(kind, &cta(), reads.0, writes.0);
        Ok(vec![Stmt::new(StmtKind::Spec(Spec { attrs, body: Some(block(body)), ..head }))])
    }

    /// The atom that moves this number of bits of one thread at once.
    pub(super) fn plain_move(
        &self,
        from: Memory,
        to: Memory,
        bits: i64,
    ) -> Result<&'static str, Unobservable> {
        let fits = |r: &&Atom| {
            let [s, d] = &r.operands[..] else { return false };
            let plain = r.op == AtomOp::Move && r.group == 1;
            plain
                && r.visibility.is_immediate()
                && (s.memory, d.memory) == (&[from][..], &[to][..])
                && s.bits_per_thread() == bits
        };
        let found = self.table.atoms().iter().find(fits);
        found.map(|r| r.name).ok_or(Unobservable::NoMove(from, to, bits))
    }
}

/// The statements that allocate the operand while the atom executes.
fn allocated(o: &ProbeOperand) -> Vec<Stmt> {
    let align = || TypeAttr::Align(Expr::int(128));
    let allocation =
        |name: &str, level, memory, attr| allocation(name, level, o.scalar, memory, vec![attr]);
    match &o.passing {
        Passing::Whole | Passing::Number => vec![],
        Passing::Coordinate { of } => {
            let of_block = Tensor::of(of).iota(1).then(index(&[Some("@b"), None, None]));
            vec![define(o.name, of_block.into())]
        }
        Passing::Registers { .. } => {
            let tv = TypeAttr::Tv(layout_expr(&o.tv), Name::new("cta"));
            vec![allocation(o.name, dims(&o.tile, false), Memory::Rf, tv)]
        }
        Passing::Memory { memory: Memory::Sh, layout } => vec![
            allocation(&all(o), dims(&[o.tile_size()], false), Memory::Sh, align()),
            define(o.name, Tensor::of(all(o)).then(reshape(&layout.modes())).into()),
        ],
        Passing::Described { layout, swizzle } => {
            let s = swizzle.swizzle();
            let attr = match s.is_none() {
                true => align(),
                false => {
                    TypeAttr::Swizzle(Expr::swizzle(s.bits(), s.base(), s.shift().unsigned_abs()))
                }
            };
            vec![allocation(o.name, laid_out(layout), Memory::Sh, attr)]
        }
        Passing::Memory { layout, .. } => {
            let from = o.output.as_ref().or(o.input.as_ref()).map_or("", String::as_str);
            let mut modes = layout.modes();
            if !o.is_apart() {
                return vec![define(o.name, tile(from, o).then(reshape(&modes)).into())];
            }
            // The run of each thread plus the unused scalar; the view is the run without it.
            let extents: Vec<Num> = modes.iter().map(|m| Num::from(m.size())).collect();
            if let Some(run) = modes.last_mut() {
                *run = Layout::new(o.n_values() + 1, 1).unwrap_or_else(|_| run.clone());
            }
            let first = index(&vec![Some("0"); extents.len()]);
            let view = tile(from, o).then(reshape(&modes)).tile(extents).then(first);
            vec![define(o.name, view.into())]
        }
    }
}

/// The name of the shared memory of an operand whose tile is a view of it.
fn all(o: &ProbeOperand) -> String {
    format!("{}_all", o.name)
}

/// The block's part of a tensor of the caller.
fn tile(of: &str, o: &ProbeOperand) -> Tensor {
    Tensor::of(of).tile([o.span()]).at([Num::of("@b")])
}

/// `%D.mine`
pub(super) fn mine(o: &ProbeOperand) -> Tensor {
    Tensor::of(o.name).then(ViewOp::Mine)
}

/// `#cta`, the block.
pub(super) fn cta() -> Tensor {
    Tensor::of("cta")
}

/// `#one`, each thread of the block for itself.
pub(super) fn one() -> Tensor {
    Tensor::of("one")
}

/// `#name.scalar()`, each thread for itself.
pub(super) fn lanes(name: &str) -> Tensor {
    Tensor::of(name).then(ViewOp::Scalar)
}

/// `#name:[..].thread = of`
pub(super) fn threads(name: &str, shape: &[i64], of: &Tensor) -> Stmt {
    stated_threads(name, &[shape], ThreadScalar::Thread, of.into())
}

/// `<<<#grid, #threads>>>`
pub(super) fn on(threads: &Tensor) -> (View, View) {
    (View::of("grid"), threads.into())
}

/// `kind <<<#grid, #threads>>> (..) -> (..)`
pub(super) fn spec(
    kind: SpecKind,
    threads: &Tensor,
    inputs: Vec<Operand>,
    outputs: Vec<View>,
) -> Spec {
    Spec { exec: Some(both(&on(threads))), inputs, outputs, ..Spec::new(kind) }
}

/// `Move <<<#grid, #threads>>> (from) -> (to) atom=atom`
pub(super) fn copy(threads: &Tensor, from: &Tensor, to: &Tensor, atom: &str) -> Stmt {
    leaf(SpecKind::Move, &on(threads), vec![from.into()], to.into(), vec![word(Key::Atom, atom)])
}

/// The tensors with these names.
pub(super) fn views<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<View> {
    names.into_iter().map(View::of).collect()
}

/// The tensors with these names, as operands.
pub(super) fn operands_of<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Operand> {
    views(names).into_iter().map(Operand::View).collect()
}

/// The attributes without which the leaf is incomplete.
pub(super) fn own_attributes(op: AtomOp) -> Vec<Attr> {
    match op {
        AtomOp::Shfl(_) => vec![number(Key::Lane, 3)],
        AtomOp::Move
        | AtomOp::Accumulate(_)
        | AtomOp::MatMul { .. }
        | AtomOp::Unary(_)
        | AtomOp::Binary(_)
        | AtomOp::Select
        | AtomOp::Reduction(_)
        | AtomOp::Init
        | AtomOp::Sync(_)
        | AtomOp::Barrier(_)
        | AtomOp::Elect => vec![],
    }
}

/// The literal that the program uses for the operand; `None` if the operand is a tensor.
#[must_use]
pub fn literal_of(atom: &Atom, o: &AtomOperand) -> Option<f64> {
    match o.divisor {
        Some(Divisor::PowerOfTwo) => Some(8.0),
        Some(Divisor::Any) => Some(11.0),
        // A number that every scalar type can represent.
        None => (atom.op == AtomOp::Init && o.access == OperandAccess::Read).then_some(1.0),
    }
}
