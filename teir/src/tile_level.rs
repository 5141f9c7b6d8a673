//! Lowers an operation of TEIR (the Tiled Execution IR) to the tile level: one kernel with the
//! tiles, loops and blocks of the schedule. An axis of the schedule is `prim` (inside of the tile),
//! `shared` (iterations in parallel) or `seq` (one iteration after the other).
//!
//! - A tensor has a mode for each axis that is not `prim`, with its stride, then the modes of its
//!   tile. A BRGEMM, a sum of products of matrices, has two `prim` K axes; they are one
//!   hierarchical mode, so that it is one `MatMul`.
//! - `shared` axes are the grid, outside of all loops. A block then owns its output tiles, unless
//!   the axis is a K. The grid changes neither which accesses of a tile come first and last, nor
//!   the order in which its products are added.
//! - `seq` axes are loops in their order. If the loops along K are the innermost ones, the tile
//!   stays in registers. Otherwise each iteration loads it and stores it, and the primitives of
//!   first and last accesses stand under conditions.
//! - Along a `shared` K axis, blocks add to one output (`Move.add`). An operation with primitives
//!   of first or last accesses is then refused.
//! - Without a product each element is written once: of copies along K only the last one stays, and
//!   no primitive of first and last accesses depends on K. So there are no loops along K.
//! - The prim K of a product is taken in parts of at most 64, or of at most 256 if no smaller part
//!   fits, in the innermost loop.
//! - Axes of size 1 are no loops and no modes, unless a tile has no others. If instructions need
//!   another size, the tile is larger and reaches over the end of the axis.

use crate::check::Checked;
use crate::lowered::{Lowered, Modes, NAME, declare, entry, refused, signed};
use crate::record::{Axis, Dim, Exec, First, Last, Main, Tensor};
use crate::tiles::{Mode, admit, elements, products};
use crate::violation::{Code, Field, Place, Violation, Violations};
use carbyne_embed::build::{Body, Builder, Num, Tensor as View, Value, relu};
use carbyne_embed::{Checked as Program, CmpOp, Memory, Scalar, SpecKind};
use carbyne_ir::ast::{AccumulateOp, ViewOp};

/// Lowers an operation to a program at the tile level: a kernel [`NAME`] of the tensors `in0`,
/// `in1` and `out`, as far as it uses them, with the tiles, loops and blocks of the schedule.
///
/// # Errors
/// `TEIR14` for blocks that share output tiles and do more than add to them, `TEIR15` for
/// an operation that no kernel suits, `TEIR16` for what carbyne refuses.
pub fn lower(operation: &Checked) -> Result<Lowered, Violations> {
    let plan = Plan::of(operation)?;
    let mut builder = Builder::new();
    let tensors = Tensor::ALL.map(|tensor| match operation.uses(tensor) {
        true => declare(&mut builder, tensor, &plan.modes(tensor), plan.scalar),
        false => View::of(tensor.as_str()),
    });
    let reads: Vec<&View> = plan.reads().map(|t| &tensors[t as usize]).collect();
    let writes = [&tensors[Tensor::Out as usize]];
    let grid = [("b", signed(plan.blocks()))];
    let program = builder
        .kernel(NAME, grid, signed(plan.threads), &reads, &writes, |body, [block]| {
            plan.write(body, &tensors, &block);
        })
        .and_then(|()| Program::of_module(&builder.finish()?));
    let program = program.map_err(|errors| refused(&errors))?;
    Ok(Lowered { program, modes: Tensor::ALL.map(|tensor| plan.modes(tensor)), open: vec![] })
}

/// An axis that is not prim, larger than 1.
struct Outer {
    axis: Axis,
    /// The variable of its loop, if it is one.
    name: String,
}

/// How an operation becomes a kernel.
struct Plan<'a> {
    operation: &'a Checked,
    scalar: Scalar,
    outer: Vec<Outer>,
    /// Modes of the tile of each tensor.
    tiles: [Vec<Mode>; 3],
    threads: u64,
    /// Whether blocks add to output tiles that they share.
    adds: bool,
}

impl<'a> Plan<'a> {
    fn of(operation: &'a Checked) -> Result<Self, Violation> {
        let axes = operation.axes();
        let product = operation.primitives().prim_main.multiplies();
        admit(operation)?;
        let outer = axes.iter().enumerate().filter(|(_, a)| a.exec != Exec::Prim && a.size > 1);
        let name = |(i, axis): (usize, &Axis)| {
            let name = format!("{}{i}", axis.dim.as_str().to_lowercase());
            Outer { axis: *axis, name }
        };
        let outer: Vec<Outer> = outer.map(name).collect();
        let (tiles, threads) = if product { products(operation)? } else { elements(axes) };
        let scalar = operation.primitives().data_type.scalar();
        let mut plan = Plan { operation, scalar, outer, tiles, threads, adds: false };
        plan.adds = plan.shares()?;
        Ok(plan)
    }

    /// Whether blocks share output tiles. They may add to them, and nothing else.
    fn shares(&self) -> Result<bool, Violation> {
        let primitives = self.operation.primitives();
        let shared = |a: &Axis| a.dim == Dim::K && a.exec == Exec::Shared && a.size > 1;
        let Some(axis) = self.operation.axes().iter().position(shared) else { return Ok(false) };
        if !primitives.prim_main.multiplies() {
            return Ok(false);
        }
        if (primitives.prim_first, primitives.prim_last) == (First::None, Last::None) {
            return Ok(true);
        }
        let found = format!(
            "a shared K axis with prim_first {} and prim_last {}",
            primitives.prim_first, primitives.prim_last
        );
        let wanted = "None and None: no block knows when the others are done with a tile";
        let help = "make the axis seq, or apply these primitives in operations before and behind";
        let place = Place::Axis(axis, Field::ExecTypes);
        Err(Violation::new(Code::SharedK, place, found, wanted, help))
    }

    /// Whether an axis is a loop or a part of the grid.
    fn runs(&self, axis: &Axis) -> bool {
        axis.dim != Dim::K || self.operation.primitives().prim_main.multiplies()
    }

    fn shared(&self) -> impl DoubleEndedIterator<Item = &Outer> {
        self.outer.iter().filter(|o| o.axis.exec == Exec::Shared && self.runs(&o.axis))
    }

    fn blocks(&self) -> u64 {
        // Below the product of all sizes.
        self.shared().map(|o| o.axis.size).product()
    }

    /// Tensors that the kernel reads.
    fn reads(&self) -> impl Iterator<Item = Tensor> {
        let out = !self.adds && self.reads_output();
        let inputs = [Tensor::In0, Tensor::In1].into_iter().filter(|t| self.operation.uses(*t));
        inputs.chain(out.then_some(Tensor::Out))
    }

    fn reads_output(&self) -> bool {
        let primitives = self.operation.primitives();
        match primitives.prim_main {
            Main::Copy => false,
            Main::None => primitives.prim_first != First::Zero,
            Main::Gemm | Main::Brgemm => {
                primitives.prim_first != First::Zero || !self.loops().1.is_empty()
            }
        }
    }

    /// Loops: those around the tile, of these those along K, and those along K inside of it.
    fn loops(&self) -> (Vec<&Outer>, Vec<&Outer>, Vec<&Outer>) {
        let seq = |o: &&Outer| o.axis.exec == Exec::Seq && self.runs(&o.axis);
        let mut around: Vec<&Outer> = self.outer.iter().filter(seq).collect();
        let last = around.iter().rposition(|o| o.axis.dim != Dim::K);
        let inside = around.split_off(last.map_or(0, |i| i + 1));
        let revisits = around.iter().copied().filter(|o| o.axis.dim == Dim::K).collect();
        (around, revisits, inside)
    }

    fn modes(&self, tensor: Tensor) -> Modes {
        if !self.operation.uses(tensor) {
            return vec![];
        }
        let entry = |axis: &Axis| entry(axis, tensor);
        let outer = self.outer.iter().filter(|o| o.axis.dim.has(tensor));
        let outer = outer.map(|o| vec![entry(&o.axis)]);
        let tile = self.tiles[tensor as usize].iter();
        outer.chain(tile.map(|mode| mode.axes.iter().map(entry).collect())).collect()
    }

    // ---- Statements ---------------------------------------------------------------------------

    /// The coordinate of an axis that is not prim.
    fn coordinate(&self, outer: &Outer, block: &Num) -> Num {
        let axis = &outer.axis;
        if !self.runs(axis) {
            // The last copy along K stays.
            return Num::from(signed(axis.size - 1));
        }
        if axis.exec == Exec::Seq {
            return Num::of(&outer.name);
        }
        let behind = self.shared().rev().take_while(|o| o.name != outer.name);
        let within: u64 = behind.map(|o| o.axis.size).product();
        let first = self.shared().next().is_some_and(|o| o.name == outer.name);
        let at = if within == 1 { block.clone() } else { block / signed(within) };
        if first { at } else { at % signed(axis.size) }
    }

    /// A tile of a tensor, or of the tile the part at these coordinates.
    fn tile(&self, tensor: Tensor, of: &View, block: &Num, part: &[Num]) -> View {
        let modes = &self.tiles[tensor as usize];
        let axes = self.outer.iter().filter(|o| o.axis.dim.has(tensor));
        let mut index: Vec<_> = axes.map(|o| Some(self.coordinate(o, block).into_expr())).collect();
        let mut view = of.clone();
        if !index.is_empty() {
            index.extend(modes.iter().map(|_| None));
            view = view.then(ViewOp::Index(index));
        }
        if modes.iter().all(|m| m.size() == m.extent) {
            return view;
        }
        let at = part.iter().cloned().chain(modes[part.len()..].iter().map(|_| Num::from(0)));
        view.tile(extents(modes)).at(at.collect::<Vec<_>>())
    }

    fn write(&self, body: &mut Body, tensors: &[View; 3], block: &Num) {
        let view = |tensor, part: &[Num]| self.tile(tensor, &tensors[tensor as usize], block, part);
        let (around, revisits, inside) = self.loops();
        if self.operation.primitives().prim_main.multiplies() {
            nest(body, &around, &mut |body| {
                self.product(body, &view, &revisits, &inside);
            });
        } else {
            nest(body, &around, &mut |body| {
                let modes = &self.tiles[Tensor::Out as usize];
                parts(body, modes, &mut vec![], &mut |body, part| {
                    let [in0, out] = [Tensor::In0, Tensor::Out].map(|t| view(t, part));
                    self.element(body, &in0, &out);
                });
            });
        }
    }

    /// A product: what is accessed first and last in a tile, and the loops along K between.
    fn product(
        &self,
        body: &mut Body,
        view: &dyn Fn(Tensor, &[Num]) -> View,
        revisits: &[&Outer],
        inside: &[&Outer],
    ) {
        let primitives = self.operation.primitives();
        let out = &view(Tensor::Out, &[]);
        let shape = || extents(&self.tiles[Tensor::Out as usize]);
        let stays = revisits.is_empty();
        let sum = if self.adds || (stays && primitives.prim_first == First::Zero) {
            body.fill("sum", shape(), self.scalar, 0)
        } else {
            if !stays {
                let at_first: Vec<_> = revisits.iter().map(|o| (o.name.as_str(), 0)).collect();
                match primitives.prim_first {
                    First::None => {}
                    First::Zero => when(body, &at_first, &mut |body| {
                        let zero = body.fill("zero", shape(), self.scalar, 0);
                        body.store(out, &zero);
                    }),
                    First::Relu => when(body, &at_first, &mut |body| body.store(out, relu(out))),
                }
            }
            match stays && primitives.prim_first == First::Relu {
                true => body.compute("sum", relu(out)),
                false => body.copy("sum", out, Memory::Rf),
            }
        };
        let depth = &self.tiles[Tensor::In1 as usize][..1];
        nest(body, inside, &mut |body| {
            parts(body, depth, &mut vec![], &mut |body, part| {
                let rows = [Num::from(0), part[0].clone()];
                let a = body.copy("a", &view(Tensor::In0, &rows), Memory::Sh);
                let b = body.copy("b", &view(Tensor::In1, part), Memory::Sh);
                body.matmul_add(&a, &b, &sum);
            });
        });
        if self.adds {
            body.spec(SpecKind::Accumulate(AccumulateOp::Add), &[&sum], out, vec![]);
            return;
        }
        let rectifies = primitives.prim_last == Last::Relu;
        let value = if rectifies && stays { relu(&sum) } else { Value::from(&sum) };
        body.store(out, value);
        if rectifies && !stays {
            let last = revisits.iter().map(|o| (o.name.as_str(), signed(o.axis.size - 1)));
            when(body, &last.collect::<Vec<_>>(), &mut |body| body.store(out, relu(out)));
        }
    }

    /// One part of a tile without products.
    fn element(&self, body: &mut Body, in0: &View, out: &View) {
        let primitives = self.operation.primitives();
        let value = match (primitives.prim_main, primitives.prim_first) {
            (Main::Copy, _) => Value::from(in0),
            (_, First::Zero) => {
                let shape = extents(&self.tiles[Tensor::Out as usize]);
                Value::from(&body.fill("zero", shape, self.scalar, 0))
            }
            // Twice is once.
            _ => return body.store(out, relu(out)),
        };
        match (primitives.prim_last, primitives.prim_main) {
            (Last::Relu, Main::Copy) => body.store(out, relu(value)),
            _ => body.store(out, value),
        }
    }
}

fn extents(modes: &[Mode]) -> Vec<Num> {
    modes.iter().map(|m| Num::from(signed(m.extent))).collect()
}

/// Loops around what is written inside.
fn nest(body: &mut Body, loops: &[&Outer], inside: &mut dyn FnMut(&mut Body)) {
    match loops {
        [] => inside(body),
        [first, rest @ ..] => {
            let n = signed(first.axis.size);
            body.repeat(&first.name, n, |body, _| nest(body, rest, inside));
        }
    }
}

/// Loops over the parts of a tile.
fn parts(
    body: &mut Body,
    modes: &[Mode],
    at: &mut Vec<Num>,
    inside: &mut dyn FnMut(&mut Body, &[Num]),
) {
    let Some(mode) = modes.get(at.len()) else { return inside(body, at) };
    if mode.parts() == 1 {
        at.push(Num::from(0));
        parts(body, modes, at, inside);
    } else {
        let name = format!("part{}", at.len());
        body.repeat(&name, signed(mode.parts()), |body, part| {
            at.push(part);
            parts(body, modes, at, inside);
        });
    }
    at.pop();
}

/// Conditions around what is written inside.
fn when(body: &mut Body, equal: &[(&str, i64)], inside: &mut dyn FnMut(&mut Body)) {
    match equal {
        [] => inside(body),
        [(name, value), rest @ ..] => {
            body.when(Num::of(*name), CmpOp::Eq, *value, |body| when(body, rest, inside));
        }
    }
}
