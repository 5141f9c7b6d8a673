//! Writes random kernels with bodies, and the operations that the whole block executes: copies,
//! functions, reductions, products. It passes other steps, such as loops and leaves of single
//! threads, to `control_flow`, `pipelined_loops` and `threads`.

use super::state::{Body, Code, Features, Owner, View};
use super::views::nth;
use super::{Contents, LOCAL, Writer, product};
use crate::gate::description::{Pick, Place, Step};
use crate::gate::exact::{Flow, Function, Source};
use carbyne_ir::ast::{BinaryOp, ReduceOp, UnaryOp};
use carbyne_ir::scalar::Scalar;

/// The maximum product of the trip counts of all enclosing loops.
pub(super) const MOST_TURNS: i64 = 12;

/// Functions of one operand; `None` is a cast. From [`SMOOTH`](crate::gate::description) on,
/// functions round.
const UNARY: [Option<UnaryOp>; 16] = [
    Some(UnaryOp::Neg),
    Some(UnaryOp::Relu),
    Some(UnaryOp::Abs),
    Some(UnaryOp::Neg),
    Some(UnaryOp::Relu),
    None,
    None,
    None,
    None,
    None,
    None,
    None,
    Some(UnaryOp::Exp),
    Some(UnaryOp::Tanh),
    Some(UnaryOp::Sigmoid),
    Some(UnaryOp::Exp),
];
const BINARY: [BinaryOp; 8] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Max,
    BinaryOp::Mul,
    BinaryOp::Add,
    BinaryOp::Min,
    BinaryOp::Add,
    BinaryOp::Mul,
];
/// Target types of casts.
const CAST: [Scalar; 8] = [
    Scalar::F32,
    Scalar::F16,
    Scalar::F32,
    Scalar::F16,
    Scalar::Bf16,
    Scalar::F64,
    Scalar::I32,
    Scalar::I8,
];

pub(super) fn tensor(v: &View) -> Source {
    Source::Tensor(v.slot)
}

impl Body {
    /// Writes a kernel.
    pub(super) fn kernel(w: &mut Writer, index: usize, writes: u8, steps: &[Step]) {
        let before = w.globals.len();
        let mut b = Body { index, writes, slots: w.slots.max(LOCAL), ..Body::default() };
        let mut code = b.steps(w, steps);
        b.results(w, &mut code);
        b.close(w);
        if b.outputs.is_empty() {
            return;
        }
        // The kernel may write only a part of an existing tensor; the rest keeps its value.
        b.inputs.extend(b.outputs.iter().filter(|g| **g < before));
        for g in b.inputs.clone() {
            w.reads(g);
            if b.outputs.contains(&g) {
                w.features.insert("an output that is an input");
            }
        }
        for g in &b.outputs {
            if w.globals[*g].contents == Contents::Untouched {
                w.globals[*g].contents = Contents::Partial;
            }
        }
        w.exact.follow(&b.head.flow);
        w.exact.follow(&code.flow);
        let names = |set: &std::collections::BTreeSet<usize>| {
            let all: Vec<String> = set.iter().map(|g| format!("%{}", w.globals[*g].name)).collect();
            all.join(", ")
        };
        let mut body = vec![match w.grid.1 {
            1 => "@i = #grid.indices()".to_owned(),
            _ => "@i, @j = #grid.indices()".to_owned(),
        }];
        if b.numbered {
            body.push("@t = #cta.indices()".to_owned());
            body.push("#one:[].thread = #cta.scalar()".to_owned());
        }
        body.append(&mut b.head.lines);
        body.append(&mut code.lines);
        let (inputs, outputs) = (names(&b.inputs), names(&b.outputs));
        let mut kernel = Code::default();
        let head = format!("Spec @k{index} <<<#grid, #cta>>> ({inputs}) -> ({outputs})");
        kernel.within(head, body);
        w.kernels.push(kernel.lines.join("\n") + "\n");
    }

    /// Copies the contents of registers and shared memory to tensors of the caller.
    fn results(&mut self, w: &mut Writer, code: &mut Code) {
        let mut left: Vec<View> = vec![];
        let mut registers = self.readable(w, Place::Registers, 0);
        registers.reverse();
        registers.truncate(2);
        left.extend(registers);
        left.extend(self.readable(w, Place::Shared, 0).pop());
        if left.is_empty()
            && let Some(from) = self.readable(w, Place::Global, 0).pop()
        {
            let to = self.allocate(false, Pick::default(), from.shape, from.scalar, code);
            self.moved(code, &from, &to, true);
            left.push(to);
        }
        if left.is_empty() {
            let to = self.allocate(false, Pick::default(), w.sizes, Scalar::F32, code);
            self.operation(code, ("Init", ""), &[(&to, Some(1.0))], &to, Function::Same);
            left.push(to);
        }
        for (n, from) in left.into_iter().enumerate() {
            let name = format!("O{}{n}", self.index);
            let form = self.writes.wrapping_add(n as u8);
            let g = w.output(name.clone(), from.scalar, from.shape, w.grid, form);
            let (r, c) = from.shape;
            let j = if w.grid.1 == 1 { "0" } else { "@j" };
            let to = View {
                text: format!("%{name}.tile([{r},{c}])[@i, {j}]"),
                owner: Owner::Global(g),
                slot: g,
                ..from.clone()
            };
            self.moved(code, &from, &to, true);
        }
    }

    pub(super) fn moved(&mut self, code: &mut Code, from: &View, to: &View, all: bool) {
        let text = format!("Move <<<#grid, #cta>>> ({}) -> ({})", from.text, to.text);
        self.block_touches(std::slice::from_ref(from), to);
        code.line(text);
        code.op(Function::Same, vec![tensor(from)], (to.slot, to.scalar), all);
    }

    /// Whether a view covers its whole tensor. Otherwise other stages and quarters keep their
    /// values.
    fn is_all(&self, view: &View) -> bool {
        let stages = match view.owner {
            Owner::Local(l) => self.locals[l].stages,
            _ => 1,
        };
        view.quarters == super::state::ALL && stages == 1
    }

    /// Writes an operation of the block.
    fn operation(
        &mut self,
        code: &mut Code,
        head: (&str, &str),
        inputs: &[(&View, Option<f64>)],
        to: &View,
        op: Function,
    ) {
        let operand =
            |(v, n): &(&View, Option<f64>)| n.map_or_else(|| v.text.clone(), |n| n.to_string());
        let source = |(v, n): &(&View, Option<f64>)| n.map_or_else(|| tensor(v), Source::Number);
        let texts: Vec<String> = inputs.iter().map(operand).collect();
        let sources = inputs.iter().map(source).collect();
        let (kind, attributes) = head;
        code.line(format!(
            "{kind} <<<#grid, #cta>>> ({}) -> ({}){attributes}",
            texts.join(", "),
            to.text
        ));
        let read: Vec<View> =
            inputs.iter().filter(|(_, n)| n.is_none()).map(|(v, _)| (*v).clone()).collect();
        self.block_touches(&read, to);
        let all = self.is_all(to);
        code.op(op, sources, (to.slot, to.scalar), all);
    }

    /// Writes steps.
    pub(super) fn steps(&mut self, w: &mut Writer, steps: &[Step]) -> Code {
        let mut code = Code::default();
        for step in steps {
            self.step(w, step, &mut code);
        }
        code
    }

    /// Writes the steps of a loop, a condition or a spec.
    pub(super) fn inside(&mut self, w: &mut Writer, steps: &[Step]) -> Code {
        let first = self.locals.len();
        self.depth += 1;
        let code = self.steps(w, steps);
        self.depth -= 1;
        self.locals[first..].iter_mut().filter(|l| l.inner).for_each(|l| l.visible = false);
        code
    }

    fn step(&mut self, w: &mut Writer, step: &Step, code: &mut Code) {
        match step {
            Step::Move { from, to, source, target } => {
                self.copy(w, (*from, *to), (*source, *target), code);
            }
            Step::Init { value, target } => {
                let of = Pick { part: 0, ..*target };
                let Some(like) = self.operand(w, of, &|v| v.scalar.bits() >= 8) else { return };
                let place = if target.part == 7 { Place::Shared } else { Place::Registers };
                let (shape, scalar) = (like.shape, like.scalar);
                let Some(to) = self.target(w, place, *target, shape, scalar, code) else { return };
                let n = [0.0, 1.0, 2.0, 3.0][usize::from(*value)];
                let op = Function::Same;
                self.operation(code, ("Init", ""), &[(&to.clone(), Some(n))], &to, op);
            }
            Step::Unary { op, source, target } => self.unary(w, *op, (*source, *target), code),
            Step::Binary { op, left, right, target } => {
                self.binary(w, *op, (*left, *right, *target), code);
            }
            Step::Reduce { op, axis, source, target } => {
                let axis = usize::from(*axis);
                let fits = |v: &View| {
                    let n = [v.shape.0, v.shape.1];
                    v.scalar.bits() >= 16 && n[axis] > 1
                };
                let Some(from) = self.operand(w, *source, &fits) else { return };
                let (r, c) = from.shape;
                let shape = if axis == 0 { (1, c) } else { (r, 1) };
                let place = Place::Registers;
                let Some(to) = self.target(w, place, *target, shape, from.scalar, code) else {
                    return;
                };
                let op =
                    [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Sum, ReduceOp::Min][usize::from(*op)];
                let what =
                    Function::Reduce { sum: op == ReduceOp::Sum, n: if axis == 0 { r } else { c } };
                let head = (format!("Reduction.{op}"), format!(" axis={axis}"));
                self.operation(code, (&head.0, &head.1), &[(&from, None)], &to, what);
                self.has(if axis == 0 { "reduction of axis 0" } else { "reduction of axis 1" });
            }
            Step::MatMul { set, left, right, target } => {
                self.matmul(w, *set, (*left, *right, *target), code);
            }
            Step::Select { op, left, right } => {
                let fits = |v: &View| v.scalar.bits() >= 16;
                let Some(a) = self.operand(w, *left, &fits) else { return };
                let same = |v: &View| v.scalar == a.scalar && v.shape == a.shape;
                let Some(b) = self.operand(w, *right, &same) else { return };
                let new = Pick::default();
                let p = self.allocate(false, new, a.shape, Scalar::Bool, code);
                let to = self.allocate(false, new, a.shape, a.scalar, code);
                let op = [
                    BinaryOp::Lt,
                    BinaryOp::Eq,
                    BinaryOp::Ge,
                    BinaryOp::Ne,
                    BinaryOp::Gt,
                    BinaryOp::Le,
                ][usize::from(*op)];
                let head = format!("BinaryPointwise.{op}");
                let what = Function::Binary(op);
                self.operation(code, (&head, ""), &[(&a, None), (&b, None)], &p, what);
                let all = [(&p, None), (&a, None), (&b, None)];
                self.operation(code, ("Select", ""), &all, &to, Function::Same);
                self.has("Select");
            }
            Step::For { trips, body } => {
                let around: i64 = self.loops.iter().map(|l| l.1).product();
                let trips = (1 + i64::from(*trips)).min(MOST_TURNS / around).max(1);
                let k = self.variable();
                let Some(turn) = self.turns(w, (&k, trips), &mut |b, w| b.inside(w, body)) else {
                    return;
                };
                if turn.lines.is_empty() {
                    return;
                }
                code.within(format!("for ({k} = 0; {k} < {trips}; {k} += 1)"), turn.lines);
                code.flow.push(Flow::Loop(trips, turn.flow));
                self.has(if self.loops.is_empty() { "loop" } else { "loop in a loop" });
            }
            Step::If { cond, then, otherwise } => self.either(w, *cond, (then, otherwise), code),
            Step::Stages { stages, source, late, by_hand, body } => {
                let how = (2 + usize::from(*stages), *late == 1, *by_hand == 3 && !self.diverged);
                self.stages(w, how, *source, body, code);
            }
            Step::Ahead { turns, sources, form, body } => {
                self.ahead(w, *turns, *sources, *form, body, code);
            }
            Step::Threads { what, tensor, width, shift, who } => {
                self.threads(w, *what, *tensor, (*width, *shift, *who), code);
            }
            Step::Group { body } => self.group(w, body, code),
            Step::Barrier if self.diverged => {}
            Step::Barrier => {
                code.line("barrier");
                self.since.clear();
                self.has("barrier by hand");
            }
        }
    }

    pub(super) fn variable(&mut self) -> String {
        self.variables += 1;
        format!("k{}", self.variables)
    }

    fn copy(&mut self, w: &mut Writer, at: (Place, Place), picks: (Pick, Pick), code: &mut Code) {
        let ((from, to), (source, target)) = (at, picks);
        let list = self.readable(w, from, source.part);
        let Some(from_view) = nth(&list, source.which) else { return };
        let (mut shape, scalar) = (from_view.shape, from_view.scalar);
        let vector = shape.0 == 1 || shape.1 == 1;
        if vector && (from == Place::Shared || to == Place::Shared) {
            return;
        }
        // A row or column is broadcast to a whole tile.
        if vector && target.part % 4 == 1 && to == Place::Registers && from == Place::Registers {
            shape = (
                if shape.0 == 1 { w.sizes.0 } else { shape.0 },
                if shape.1 == 1 { w.sizes.1 } else { shape.1 },
            );
            self.has("a row or column that stands for all");
        }
        let Some(to_view) = self.target(w, to, target, shape, scalar, code) else { return };
        if to_view.owner == from_view.owner && to == Place::Registers {
            return;
        }
        if let (Place::Global, Owner::Local(l), true) = (from, to_view.owner, to == Place::Shared) {
            self.locals[l].fills += 1;
            match self.locals[l].fills {
                1 => {}
                _ => self.has("several copies to one buffer"),
            }
            if self.ifs.0 > 0 {
                self.has("copy inside `if` on a loop");
            }
            if self.ifs.1 > 0 {
                self.has("copy inside `if` on a block");
            }
        }
        if from_view.quarters != super::state::ALL || to_view.quarters != super::state::ALL {
            self.has("overlapping tiles of a shared tensor");
        }
        if from_view.owner == to_view.owner {
            self.has("copy within one tensor");
        }
        let all = self.is_all(&to_view) && to != Place::Global && from_view.owner != to_view.owner;
        let one = matches!(to_view.owner, Owner::Local(l) if self.locals[l].stages == 1);
        self.moved(code, &from_view, &to_view, all && one);
        // A second copy to this place from another source.
        if let (Place::Global, Owner::Local(l), 7) = (from, to_view.owner, target.which)
            && to == Place::Shared
        {
            let like = |v: &View| (v.scalar, v.shape) == (from_view.scalar, from_view.shape);
            let list = self.readable(w, from, source.part.wrapping_add(5));
            let list: Vec<View> = list.into_iter().filter(like).collect();
            let Some(from_view) = nth(&list, source.which + 1) else { return };
            self.locals[l].fills += 1;
            self.has("several copies to one buffer");
            self.moved(code, &from_view, &to_view, all && one);
        }
    }

    fn unary(&mut self, w: &mut Writer, op: u8, picks: (Pick, Pick), code: &mut Code) {
        let op = UNARY[usize::from(op)].map_or(UnaryOp::Cast, |op| op);
        let casts = op == UnaryOp::Cast;
        let smooth = matches!(op, UnaryOp::Exp | UnaryOp::Tanh | UnaryOp::Sigmoid);
        let fits = |v: &View| match v.scalar {
            Scalar::F16 | Scalar::F32 => true,
            Scalar::Bf16 | Scalar::F64 => !smooth,
            Scalar::I32 => !smooth && op != UnaryOp::Relu,
            _ => casts,
        };
        let Some(from) = self.operand(w, picks.0, &fits) else { return };
        let scalar = match casts {
            true => CAST[usize::from(picks.1.part / 2 % 8)],
            false => from.scalar,
        };
        if casts && scalar == from.scalar {
            return;
        }
        let place = Place::Registers;
        let Some(to) = self.target(w, place, picks.1, from.shape, scalar, code) else { return };
        let head = format!("UnaryPointwise.{op}");
        self.operation(code, (&head, ""), &[(&from, None)], &to, Function::Unary(op));
        self.has(if casts { "cast" } else { "function of one operand" });
    }

    fn binary(&mut self, w: &mut Writer, op: u8, picks: (Pick, Pick, Pick), code: &mut Code) {
        let op = BINARY[usize::from(op)];
        let fits = |v: &View| v.scalar.bits() >= 16 && v.shape.0 > 1 && v.shape.1 > 1;
        let Some(a) = self.operand(w, picks.0, &fits) else { return };
        let (r, c) = a.shape;
        let same = |v: &View| v.scalar == a.scalar && v.shape == a.shape;
        let along = |v: &View| v.scalar == a.scalar && (v.shape == (1, c) || v.shape == (r, 1));
        let vector = (picks.1.part >= 10).then(|| self.operand(w, picks.1, &along)).flatten();
        let literal = picks.1.part == 9 && a.scalar.bits() >= 32;
        let b = match vector {
            Some(v) => {
                self.has("a row or column that stands for all");
                v
            }
            None => match self.operand(w, picks.1, &same) {
                Some(v) => v,
                None => return,
            },
        };
        let place = Place::Registers;
        let Some(to) = self.target(w, place, picks.2, a.shape, a.scalar, code) else { return };
        let head = format!("BinaryPointwise.{op}");
        let second = (&b, literal.then_some(2.0));
        self.operation(code, (&head, ""), &[(&a, None), second], &to, Function::Binary(op));
        self.has("function of two operands");
    }

    fn matmul(&mut self, w: &mut Writer, set: u8, picks: (Pick, Pick, Pick), code: &mut Code) {
        let full = |v: &View| v.shape.0 >= 16 && v.shape.1 >= 16;
        let fits = |v: &View| product(v.scalar).is_some() && full(v);
        let Some(a) = self.operand(w, picks.0, &fits) else { return };
        let right = |v: &View| v.scalar == a.scalar && v.shape.0 == a.shape.1 && full(v);
        let Some(b) = self.operand(w, picks.1, &right) else { return };
        let Some((mut out, mut acc)) = product(a.scalar) else { return };
        if a.scalar == Scalar::F16 && picks.2.part < 3 {
            (out, acc) = (Scalar::F16, if picks.2.part == 0 { Scalar::F16 } else { Scalar::F32 });
        }
        let (shape, k) = ((a.shape.0, b.shape.1), a.shape.1);
        let place = Place::Registers;
        let Some(to) = self.target(w, place, picks.2, shape, out, code) else { return };
        if to.owner == a.owner || to.owner == b.owner {
            self.has("MatMul onto a factor");
        }
        let Owner::Local(l) = to.owner else { return };
        // Accumulates to existing values, accumulates to zeros, or overwrites.
        let there = set == 1 && self.locals[l].is_written();
        let own = to.owner != a.owner && to.owner != b.owner;
        let zeros = !there && picks.2.which % 2 == 1 && out == acc && own;
        if zeros {
            self.operation(code, ("Init", ""), &[(&to, Some(0.0))], &to, Function::Same);
        }
        let set = !there && !zeros;
        let op = Function::MatMul { k, set, acc };
        let kind = if set { "MatMul.set" } else { "MatMul" };
        let attributes = if out == acc { String::new() } else { format!(" acc={acc}") };
        let of_product = |v: &View, s: &Features| s.contains("MatMul") && v.text.starts_with("%r");
        if of_product(&a, &self.features) || of_product(&b, &self.features) {
            self.has("MatMul after MatMul");
        }
        self.operation(code, (kind, &attributes), &[(&a, None), (&b, None)], &to, op);
        self.has("MatMul");
    }
}
