//! Writes random loops with `stages=`, in which decomposition may let copies from global to shared
//! memory run ahead.

use super::Writer;
use super::state::{ALL, Body, Code, Local, Owner, View};
use super::steps::{MOST_TURNS, tensor};
use super::views::nth;
use crate::gate::description::{Pick, Place, Step};
use crate::gate::exact::Flow;
use crate::gate::exact::Function;
use carbyne_ir::ast::BinaryOp;

/// A shared tensor that each iteration fills, and the registers that read it.
struct Fill {
    from: View,
    to: View,
    held: View,
    /// Registers that accumulate the tiles, if sums of the type do not wrap.
    sum: Option<View>,
}

impl Body {
    /// Writes a loop with stages. `turns` are the stages, the trip count, the start and the step.
    pub(super) fn ahead(
        &mut self,
        w: &mut Writer,
        turns: (u8, u8, u8, u8),
        sources: (Pick, Pick),
        form: u8,
        body: &[Step],
        code: &mut Code,
    ) {
        let around: i64 = self.loops.iter().map(|l| l.1).product();
        let stages = 2 + i64::from(turns.0 % 3);
        let start = [0, 0, 1, 3][usize::from(turns.2 % 4)];
        let step = [1, 1, 2, 3][usize::from(turns.3 % 4)];
        let trips = (1 + i64::from(turns.1)).min(MOST_TURNS / around).max(1);
        let (last, many) = (start + (trips - 1) * step, !form.is_multiple_of(4));
        // The end is beyond the last value by at most a step.
        let end = last + 1 + i64::from(turns.0 / 3) % step;
        let k = self.variable();
        let before = self.locals.len();
        let turn = self.turns(w, (&k, end), &mut |b, w| {
            let mut code = Code::default();
            b.depth += 1;
            let outside = form / 4 % 8 == 1;
            let first = b.fill(w, sources.0, None, outside, &mut code);
            if form % 4 == 1 {
                // The lifetime of the first tensor ends before that of the second one begins.
                b.used(first.as_ref(), &mut code);
            }
            let other = first.as_ref().filter(|_| many);
            let second = other.and_then(|f| b.fill(w, sources.1, Some(f), false, &mut code));
            if form % 4 == 3 {
                b.used(second.as_ref(), &mut code);
            }
            if form % 4 != 1 {
                b.used(first.as_ref(), &mut code);
            }
            if form % 4 != 3 {
                b.used(second.as_ref(), &mut code);
            }
            code.append(b.steps(w, body));
            b.depth -= 1;
            let inner = |l: &&mut Local| l.inner;
            b.locals[before..].iter_mut().filter(inner).for_each(|l| l.visible = false);
            code
        });
        let Some(turn) = turn.filter(|t| !t.lines.is_empty()) else { return };
        let head = format!("for ({k} = {start}; {k} < {end}; {k} += {step}) stages={stages}");
        code.within(head, turn.lines);
        code.flow.push(Flow::Loop(trips, turn.flow));
        self.has("`stages=`");
        if trips < stages {
            self.has("`stages=` of more than the turns");
        }
        if start > 0 || step > 1 {
            self.has("`stages=` with a start or a step");
        }
        if many {
            self.has(match form % 4 {
                1 => "`stages=` of tensors one after the other",
                _ => "`stages=` of tensors at the same time",
            });
        }
    }

    /// Writes a copy to a new shared tensor.
    fn fill(
        &mut self,
        w: &Writer,
        pick: Pick,
        other: Option<&Fill>,
        outside: bool,
        code: &mut Code,
    ) -> Option<Fill> {
        let list = self.readable(w, Place::Global, pick.part);
        let full = |v: &View| v.shape.0 > 1 && v.shape.1 > 1;
        let list: Vec<View> = list.into_iter().filter(full).collect();
        let bytes = |v: &View| v.shape.0 * v.shape.1 * v.scalar.bits();
        // Prefers a tile of another size than the other copy has.
        let differs = |v: &&View| other.is_some_and(|o| bytes(v) != bytes(&o.from));
        let unlike: Vec<View> = list.iter().filter(differs).cloned().collect();
        let from = nth(&unlike, pick.which).or_else(|| nth(&list, pick.which))?;
        // The layout is open or stated, and the declaration is inside of the loop or before it.
        let part = match (outside, pick.part) {
            (true, _) => 0,
            (_, 14) => 3,
            (_, 13) => 7,
            _ => 15,
        };
        let new = Pick { part, ..Pick::default() };
        let to = self.allocate(true, new, from.shape, from.scalar, code);
        let registers = Pick::default();
        let held = self.allocate(false, registers, from.shape, from.scalar, code);
        let sum = (from.scalar.bits() >= 16 && pick.new > 1).then(|| {
            let sum = self.allocate(false, registers, from.shape, from.scalar, code);
            let Owner::Local(l) = sum.owner else { return sum };
            // The Init precedes all other statements.
            let (slot, scalar) = (sum.slot, sum.scalar);
            self.head.line(format!("Init <<<#grid, #cta>>> (0) -> ({})", sum.text));
            let zero = vec![crate::gate::exact::Source::Number(0.0)];
            self.head.op(Function::Same, zero, (slot, scalar), true);
            self.locals[l].written.fill(ALL);
            sum
        });
        self.moved(code, &from, &to, true);
        Some(Fill { from, to, held, sum })
    }

    /// Writes a use of the copied tile.
    fn used(&mut self, fill: Option<&Fill>, code: &mut Code) {
        let Some(Fill { to, held, sum, .. }) = fill else { return };
        if to.scalar.bits() < 16 || sum.is_none() {
            return self.moved(code, to, held, true);
        }
        let Some(sum) = sum else { return };
        let inputs = vec![tensor(sum), tensor(to)];
        self.block_touches(&[sum.clone(), to.clone()], sum);
        let names = format!("({}, {}) -> ({})", sum.text, to.text, sum.text);
        code.line(format!("BinaryPointwise.add <<<#grid, #cta>>> {names}"));
        let op = Function::Binary(BinaryOp::Add);
        code.op(op, inputs, (sum.slot, sum.scalar), true);
    }
}
