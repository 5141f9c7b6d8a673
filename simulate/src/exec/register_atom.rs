//! Executes atoms of one thread that access only the thread's own registers, a fast path of
//! [`super::atom`]. Most statements of a kernel without tensor cores are such atoms. No other
//! thread sees these registers, so each thread reads, computes and writes before the next thread
//! does.
//!
//! Invariant: errors, such as an undefined register or an index beyond 64 bits, are not reported
//! here. [`super::atom`] executes the leaf again and reports the error.

use super::Runner;
use super::atom::{Scratch, compute};
use crate::index::Index;
use crate::num::{encode, fma};
use crate::plan::{BoundAtom, BoundOp, BoundOperand, Kernel, Mask, Slot, Source, Space, View};
use crate::state::{Tile, Value};
use carbyne_ir::scalar::Scalar::{F32, F64};

/// The registers of an operand, for the threads of one execution.
struct RegisterOperand<'k> {
    view: &'k View,
    registers: usize,
    offset: &'k Index,
    /// The part of the offset that is equal for all threads.
    base: i64,
}

impl<'k> RegisterOperand<'k> {
    fn register(&self, at: i64, slot: Slot) -> i64 {
        at.saturating_add(self.view.element(usize::from(slot.element)))
    }

    fn of(runner: &Runner<'k>, operand: &BoundOperand) -> Option<Self> {
        let Source::View(index) = operand.source else { return None };
        let kernel: &'k Kernel<'k> = runner.kernel;
        let view = &kernel.views[index];
        let Space::Registers(registers) = view.space else { return None };
        let base = view.offset.base(&runner.env).ok()?;
        Some(RegisterOperand { view, registers, offset: &view.offset, base })
    }
}

impl Runner<'_> {
    /// Executes an atom with [`BoundAtom::private`] for the active threads. None if a thread fails.
    pub(super) fn register_atom(
        &mut self,
        atom: &BoundAtom,
        site: u32,
        active: &Mask,
        scratch: &mut Scratch,
    ) -> Option<()> {
        match atom.op {
            BoundOp::MatMul { extents: [1, 1, 1, 1], from: [a, b], to }
                if a == b && to.is_float() =>
            {
                let zero = Value { bits: encode(to, 0.0), shadow: 0.0 };
                // With known types, this compiles to one instruction of the host.
                match (a, to) {
                    (F32, F32) => self
                        .multiply_add(atom, site, active, zero, |x, y, z| fma(F32, F32, x, y, z)),
                    (F64, F64) => self
                        .multiply_add(atom, site, active, zero, |x, y, z| fma(F64, F64, x, y, z)),
                    _ => self.multiply_add(atom, site, active, zero, |x, y, z| fma(a, to, x, y, z)),
                }
            }
            _ => self.tile_by_tile(atom, site, active, scratch),
        }
    }

    /// One multiply-add for each thread. Shadows are products and sums of floats.
    fn multiply_add(
        &mut self,
        atom: &BoundAtom,
        site: u32,
        active: &Mask,
        zero: Value,
        fma: impl Fn(u64, u64, u64) -> u64,
    ) -> Option<()> {
        let ([a, b], [d]) = (&atom.reads[..], &atom.writes[..]) else { return None };
        let reads_output = !d.reads.is_empty();
        let (a, b, d) = (
            (RegisterOperand::of(self, a)?, *a.reads.first()?),
            (RegisterOperand::of(self, b)?, *b.reads.first()?),
            (RegisterOperand::of(self, d)?, d.writes.first()?.0),
        );
        let (env, block, on) = (&self.env, &mut self.blocks[self.rank], self.mode.shadows);
        let mut nan = false;
        for thread in active.threads() {
            let register = |(place, slot): &(RegisterOperand<'_>, Slot)| -> Option<i64> {
                Some(place.register(place.offset.at(place.base, env, thread).ok()?, *slot))
            };
            let x = block.registers[a.0.registers].get(thread, register(&a)?)?;
            let y = block.registers[b.0.registers].get(thread, register(&b)?)?;
            let (to, output) = (register(&d)?, &mut block.registers[d.0.registers]);
            let z = if reads_output { output.get(thread, to)? } else { zero };
            let shadow = if on { x.shadow * y.shadow + z.shadow } else { 0.0 };
            let value = Value { bits: fma(x.bits, y.bits, z.bits), shadow };
            nan |= shadow.is_nan();
            output.set(thread, to, value, site)?;
        }
        self.counts.first_nan = self.counts.first_nan.or(nan.then_some(site));
        Some(())
    }

    /// Executes any atom: reads a thread's tiles, computes, and writes the results.
    fn tile_by_tile(
        &mut self,
        atom: &BoundAtom,
        site: u32,
        active: &Mask,
        scratch: &mut Scratch,
    ) -> Option<()> {
        let on = self.mode.shadows;
        scratch.tiles.resize_with(atom.reads.len(), Tile::default);
        let mut places = Vec::with_capacity(atom.reads.len());
        for operand in &atom.reads {
            places.push(match operand.source {
                Source::View(_) => Ok(RegisterOperand::of(self, operand)?),
                Source::Number(literal) => Err(literal),
            });
        }
        let written = atom.writes.first()?;
        let to = RegisterOperand::of(self, written)?;
        let (env, block) = (&self.env, &mut self.blocks[self.rank]);
        let mut nan = false;
        for thread in active.threads() {
            for ((operand, place), tile) in atom.reads.iter().zip(&places).zip(&mut scratch.tiles) {
                tile.clear();
                let place = match place {
                    Ok(place) => place,
                    Err(literal) => {
                        for _ in &operand.reads {
                            tile.push(Value::literal(literal), on);
                        }
                        continue;
                    }
                };
                let at = place.offset.at(place.base, env, thread).ok()?;
                for slot in &operand.reads {
                    let register = place.register(at, *slot);
                    tile.push(block.registers[place.registers].get(thread, register)?, on);
                }
            }
            let at = to.offset.at(to.base, env, thread).ok()?;
            let output = &mut block.registers[to.registers];
            scratch.output.clear();
            for slot in &written.reads {
                scratch.output.push(output.get(thread, to.register(at, *slot))?, on);
            }
            compute(atom, scratch, on);
            for (slot, from) in &written.writes {
                let value = scratch.output.get(*from as usize);
                nan |= value.shadow.is_nan();
                output.set(thread, to.register(at, *slot), value, site)?;
            }
        }
        self.counts.first_nan = self.counts.first_nan.or(nan.then_some(site));
        Some(())
    }
}
