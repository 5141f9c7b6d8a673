//! The text of a probe.

use super::operand::{Passing, ProbeOperand};
use super::protocol::Protocol;
use super::{Choice, NOT_A_SPEC, Repeat, Unobservable};
use crate::atom::{Atom, AtomOp, AtomOperand, OperandAccess, Visibility};
use crate::table::AtomTable;
use carbyne_ir::ast::SpecKind;
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::Memory;
use std::fmt::{self, Write};

/// Writes a program; statements are indented by the depth of bodies.
pub(super) struct Writer<'a> {
    pub(super) atom: &'a Atom,
    pub(super) table: &'a AtomTable,
    pub(super) choice: Choice,
    pub(super) threads: i64,
    pub(super) groups: i64,
    pub(super) repeat: Option<Repeat>,
    pub(super) text: String,
}

impl Writer<'_> {
    pub(super) fn line(&mut self, depth: usize, text: impl fmt::Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{:1$}{text}", "", 2 * depth);
    }

    pub(super) fn program(
        &mut self,
        kernel: &str,
        operands: &[ProbeOperand],
    ) -> Result<(), Unobservable> {
        let protocol = Protocol::of(self.atom);
        let newer =
            |o: &ProbeOperand| matches!(o.passing, Passing::Number | Passing::Coordinate { .. });
        self.line(0, if operands.iter().any(newer) { "carbyne 2" } else { "carbyne 1" });
        for tensor in operands.iter().flat_map(ProbeOperand::declarations) {
            self.line(0, tensor);
        }
        let (blocks, threads) = (self.choice.blocks, self.threads);
        if self.repeat.is_some() {
            self.line(0, format_args!("%cycles:[{},2].i64.GL", (threads + 31) / 32));
        }
        self.line(0, format_args!("#grid:[{blocks}].block"));
        self.line(0, format_args!("#cta:[{threads}].thread"));
        let list =
            |names: Vec<&str>| names.iter().map(|n| format!("%{n}")).collect::<Vec<_>>().join(", ");
        let inputs = list(operands.iter().filter_map(|o| o.input.as_deref()).collect());
        let cycles = self.repeat.map(|_| "cycles");
        let outputs = operands.iter().filter_map(|o| o.output.as_deref()).chain(cycles);
        let outputs = list(outputs.collect());
        self.line(0, format_args!("Spec @{kernel} <<<#grid, #cta>>> ({inputs}) -> ({outputs}) {{"));
        self.line(1, "#one:[].thread = #cta.scalar()");
        self.line(1, "@b = #grid.indices()");
        self.line(1, "@t = #cta.indices()");
        for o in operands {
            self.allocate(o);
            if o.input.is_some() {
                self.bring(o)?;
            }
        }
        for statement in protocol.brought {
            self.line(1, statement);
        }
        self.line(1, "barrier");
        match self.repeat {
            None => self.spec(operands, &protocol)?,
            Some(repeat) => self.rounds(operands, repeat),
        }
        self.line(1, "barrier");
        for o in operands {
            self.take(o)?;
        }
        self.line(0, "}");
        Ok(())
    }

    /// Where the operand is while the atom executes.
    fn allocate(&mut self, o: &ProbeOperand) {
        let (name, scalar) = (o.name, o.scalar);
        match o.passing {
            Passing::Whole | Passing::Number => {}
            Passing::Coordinate { ref of } => {
                self.line(1, format_args!("%{name} = %{of}.iota(1)[@b, _, _]"));
            }
            Passing::Registers { .. } => {
                let tile = format!("{:?}", o.tile).replace(' ', "");
                let tv = &o.tv;
                self.line(
                    1,
                    format_args!("Allocate %{name}:{tile}.{scalar}.RF{{tv={tv} over #cta}}"),
                );
            }
            Passing::Memory { memory: Memory::Sh, ref layout } => {
                let (n, modes) = (o.tile_size(), reshape(layout));
                self.line(1, format_args!("Allocate %{name}_all:[{n}].{scalar}.SH{{align=128}}"));
                self.line(1, format_args!("%{name} = %{name}_all.reshape({modes})"));
            }
            Passing::Described { ref layout, ref swizzle } => {
                let attributes =
                    if swizzle.is_empty() { "align=128".to_owned() } else { swizzle.clone() };
                self.line(
                    1,
                    format_args!("Allocate %{name}:[{layout}].{scalar}.SH{{{attributes}}}"),
                );
            }
            Passing::Memory { ref layout, .. } => {
                let (n, modes) = (o.tile_size(), reshape(layout));
                let from = o.output.as_ref().or(o.input.as_ref());
                let from = from.map_or("", String::as_str);
                self.line(1, format_args!("%{name} = %{from}.tile([{n}])[@b].reshape({modes})"));
            }
        }
    }

    /// From the caller to where the atom reads.
    fn bring(&mut self, o: &ProbeOperand) -> Result<(), Unobservable> {
        let (name, Some(input)) = (o.name, &o.input) else { return Ok(()) };
        match o.passing {
            Passing::Registers { .. } => self.words(o, input, true),
            Passing::Memory { memory: Memory::Gl, .. }
            | Passing::Whole
            | Passing::Number
            | Passing::Coordinate { .. } => Ok(()),
            Passing::Described { .. } => {
                let n = o.tile_size();
                let tile = format!("%{input}.tile([{n}])[@b]");
                let held = format!("%{name}.reshape([{n}]:[1])");
                self.units(o, &tile, &held, (Memory::Gl, Memory::Sh))
            }
            Passing::Memory { .. } => {
                let tile = format!("%{input}.tile([{}])[@b]", o.tile_size());
                self.units(o, &tile, &format!("%{name}_all"), (Memory::Gl, Memory::Sh))
            }
        }
    }

    /// From where the atom wrote to the caller.
    fn take(&mut self, o: &ProbeOperand) -> Result<(), Unobservable> {
        let (name, Some(output)) = (o.name, &o.output) else { return Ok(()) };
        match o.passing {
            Passing::Registers { .. } => self.words(o, output, false),
            Passing::Memory { memory: Memory::Gl, .. }
            | Passing::Described { .. }
            | Passing::Whole
            | Passing::Number
            | Passing::Coordinate { .. } => Ok(()),
            Passing::Memory { .. } => {
                let tile = format!("%{output}.tile([{}])[@b]", o.tile_size());
                self.units(o, &format!("%{name}_all"), &tile, (Memory::Sh, Memory::Gl))
            }
        }
    }

    /// Moves what a thread holds, in words as wide as there are.
    fn words(&mut self, o: &ProbeOperand, global: &str, load: bool) -> Result<(), Unobservable> {
        let (name, n, bits) = (o.name, o.n_values(), o.scalar.bits());
        let all = n * bits;
        let word = [64, 32, 16].into_iter().find(|w| all % w == 0).unwrap_or(8);
        let (per, steps) = (word / bits, all / word);
        let thread = format!("%{global}[@b, @t, _].tile([{per}])");
        let own = format!("%{name}.mine.reshape([{n}]:[1]).tile([{per}])");
        let i = if steps == 1 { "0" } else { "i" };
        let (from, to, memories) = match load {
            true => (&thread, &own, (Memory::Gl, Memory::Rf)),
            false => (&own, &thread, (Memory::Rf, Memory::Gl)),
        };
        let atom = self.plain_move(memories.0, memories.1, word)?;
        let depth = if steps == 1 { 1 } else { 2 };
        if steps > 1 {
            self.line(1, format_args!("for (i = 0; i < {steps}; i += 1) unroll {{"));
        }
        self.line(
            depth,
            format_args!("Move <<<#grid, #one>>> ({from}[{i}]) -> ({to}[{i}]) atom={atom}"),
        );
        if steps > 1 {
            self.line(1, "}");
        }
        Ok(())
    }

    /// Moves a tile through registers, one scalar (or one byte of narrower ones) a thread and step.
    pub(super) fn units(
        &mut self,
        o: &ProbeOperand,
        from: &str,
        to: &str,
        (source, target): (Memory, Memory),
    ) -> Result<(), Unobservable> {
        let bits = o.scalar.bits().max(8);
        let per = bits / o.scalar.bits();
        let units = o.tile_size() / per;
        let load = self.plain_move(source, Memory::Rf, bits)?;
        let store = self.plain_move(Memory::Rf, target, bits)?;
        let (name, scalar, threads) = (o.name, o.scalar, self.threads);
        let (rounds, rest) = (units / threads, units % threads);
        let unit = if source == Memory::Gl { "in" } else { "out" };
        self.line(1, format_args!("Allocate %{name}_{unit}:[{per}].{scalar}.RF"));
        let step = |writer: &mut Self, at: &str| {
            writer.line(2, format_args!("Move <<<#grid, #one>>> ({from}.tile([{per}])[{at}]) -> (%{name}_{unit}) atom={load}"));
            writer.line(2, format_args!("Move <<<#grid, #one>>> (%{name}_{unit}) -> ({to}.tile([{per}])[{at}]) atom={store}"));
            writer.line(1, "}");
        };
        if rounds > 0 {
            self.line(1, format_args!("for (i = 0; i < {rounds}; i += 1) {{"));
            step(self, &format!("i * {threads} + @t"));
        }
        if rest > 0 {
            self.line(1, format_args!("if (@t < {rest}) {{"));
            // The condition does not bound what the index is known to be.
            step(self, &format!("{} + min(@t, {})", rounds * threads, rest - 1));
        }
        Ok(())
    }

    /// The threads that execute the atom.
    pub(super) fn who(&self) -> String {
        match (self.atom.group, self.groups) {
            (1, _) => "#one".to_owned(),
            (_, 1) => "#cta".to_owned(),
            _ => format!("#cta.tile([{}])", self.atom.thread_layout),
        }
    }

    /// The spec that the atom implements, with the atom as its body.
    fn spec(&mut self, operands: &[ProbeOperand], protocol: &Protocol) -> Result<(), Unobservable> {
        let kind = match self.choice.set {
            true => SpecKind::MatMulSet,
            false => self.atom.op.spec_kind().ok_or(NOT_A_SPEC)?,
        };
        let (mut whole, mut parts) = ((vec![], vec![]), (vec![], vec![]));
        let mut made = operands.iter();
        for o in &self.atom.operands {
            if is_literal(self.atom, o) {
                whole.0.push(LITERAL.to_owned());
                parts.0.push(LITERAL.to_owned());
                continue;
            }
            let Some(p) = made.next() else { continue };
            let part = match p.passing {
                Passing::Registers { .. } => format!("%{}.mine", p.name),
                Passing::Memory { .. } | Passing::Coordinate { .. } => {
                    format!("%{}.tv({} over #cta)", p.name, p.tv)
                }
                Passing::Number => format!("%{}", p.input.as_deref().unwrap_or_default()),
                Passing::Described { .. } | Passing::Whole => format!("%{}", p.name),
            };
            let (whole, parts) = match o.access {
                OperandAccess::Read => (&mut whole.0, &mut parts.0),
                _ => (&mut whole.1, &mut parts.1),
            };
            whole.push(match p.passing {
                Passing::Number => part.clone(),
                _ => format!("%{}", p.name),
            });
            parts.push(part);
        }
        let attributes = match self.atom.op {
            AtomOp::Reduction(_) if self.groups > 1 => " axis=1".to_owned(),
            AtomOp::Reduction(_) => " axis=0".to_owned(),
            AtomOp::MatMul { .. } => operands
                .iter()
                .find(|o| o.access != OperandAccess::Read)
                .map_or(String::new(), |o| format!(" acc={}", o.scalar)),
            _ => String::new(),
        };
        let who = self.who();
        let (reads, writes) = (parts.0.join(", "), parts.1.join(", "));
        let valid = match (self.atom.number("valid"), operands.first()) {
            // Every number of elements, by neighboring threads.
            (Some(_), Some(o)) => format!(" valid=@t % {}", o.n_values() + 1),
            _ => String::new(),
        };
        let leaf = format!(
            "{kind} <<<#grid, {who}>>> ({reads}) -> ({writes}){}{valid} atom={}",
            own_attributes(self.atom.op),
            self.atom.name
        );
        if matches!(self.atom.op, AtomOp::Shfl(_)) || !valid.is_empty() {
            // They mean no more than themselves.
            let around = [protocol.before, &[&leaf], protocol.after];
            for statement in around.into_iter().flatten() {
                self.line(1, statement);
            }
            return Ok(());
        }
        let (reads, writes) = (whole.0.join(", "), whole.1.join(", "));
        self.line(
            1,
            format_args!("{kind} <<<#grid, #cta>>> ({reads}) -> ({writes}){attributes} {{"),
        );
        for statement in protocol.before {
            self.line(2, statement);
        }
        self.line(2, leaf);
        for statement in protocol.after {
            self.line(2, statement);
        }
        self.line(1, "}");
        Ok(())
    }

    /// The atom that moves so many bits of one thread at once.
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
                && r.visibility == Visibility::Immediate
                && (s.memory, d.memory) == (&[from][..], &[to][..])
                && s.bits_per_thread() == bits
        };
        let found = self.table.atoms().iter().find(fits);
        found.map(|r| r.name).ok_or(Unobservable::NoMove(from, to, bits))
    }
}

/// The literal of an Init: a number of every scalar type.
const LITERAL: &str = "1";

/// Attributes that the leaf needs to be complete.
pub(super) fn own_attributes(op: AtomOp) -> &'static str {
    match op {
        AtomOp::Shfl(_) => " lane=3",
        _ => "",
    }
}

/// `[(4,8),2]:[(2,8),1]`, a layout as the argument of `reshape`.
fn reshape(layout: &Layout) -> String {
    let modes: Vec<Layout> = (0..layout.rank()).filter_map(|i| layout.mode(i).ok()).collect();
    let list = |of: &dyn Fn(&Layout) -> String| modes.iter().map(of).collect::<Vec<_>>().join(",");
    format!("[{}]:[{}]", list(&|m| m.shape().to_string()), list(&|m| m.stride().to_string()))
}

/// Whether the operand is written into the program.
pub(super) fn is_literal(atom: &Atom, o: &AtomOperand) -> bool {
    atom.op == AtomOp::Init && o.access == OperandAccess::Read
}
