//! Writes the `means` block of a [`Graph`], a randomly generated kernel of the gate (the test of
//! decomposition on random programs). The writer tracks the least and the greatest value that the
//! elements of each tensor can have, limits large values by `tanh`, and keeps divisors and the
//! arguments of functions such as `log` inside their domains. So no number becomes infinite or NaN,
//! for which a kernel could not be compared with its meaning.

use super::writer::{Writer, entry};
use super::{Graph, Node};
use crate::gate::description::Pick;
use carbyne_ir::scalar::Scalar;
use std::collections::BTreeMap;

/// The type of a value.
#[derive(Copy, Clone, Debug, PartialEq)]
enum Kind {
    /// A real number.
    Float,
    /// An `i32`.
    Int,
    /// A boolean.
    Bool,
}

/// A value of the block.
#[derive(Clone, Debug)]
struct Value {
    /// The expression that reads the value.
    text: String,
    /// The statement that defines the value. `None` for a tensor of the caller.
    made: Option<usize>,
    kind: Kind,
    /// A bit for each mode that has extent 1 and is broadcast.
    ones: u8,
    /// The minimum and the maximum of the elements.
    range: (f64, f64),
}

/// Values with larger magnitudes are limited by `tanh` before further use.
const LARGE: f64 = 4096.0;
/// The minimum magnitude of a divisor.
const APART: f64 = 0.25;
/// The range of inputs.
const INPUT: (f64, f64) = (-2.0, 2.0);

/// A `means` block under construction.
pub(super) struct Means<'a> {
    w: &'a mut Writer,
    graph: &'a Graph,
    /// The extents of the values.
    extents: Vec<i64>,
    /// The mode of reductions.
    pub(super) axis: usize,
    /// The values in the order of their creation.
    values: Vec<Value>,
    /// The values of the graph's operands in this block.
    seen: BTreeMap<usize, Value>,
    /// The statements, as name and expression.
    stmts: Vec<(String, String)>,
}

impl<'a> Means<'a> {
    pub(super) fn new(w: &'a mut Writer, graph: &'a Graph, extents: Vec<i64>) -> Self {
        Means { w, graph, extents, axis: 0, values: vec![], seen: BTreeMap::new(), stmts: vec![] }
    }

    /// Writes a chain as a kernel.
    pub(super) fn chain(mut self) -> String {
        self.w.features.insert("a chain");
        self.w.features.insert(["", "rank 1", "rank 2", "rank 3", "rank 4"][self.extents.len()]);
        if self.values.is_empty() {
            let value = self.operand(0);
            self.push(format!("move({})", value.text), value);
        }
        self.kernel()
    }

    /// Writes a product as a kernel.
    pub(super) fn product(
        w: &'a mut Writer,
        graph: &'a Graph,
        batch: u8,
        [left, right, steps]: [&[Node]; 3],
    ) -> String {
        w.features.insert("a product");
        let factor = w.float(graph.operands[0].scalar);
        let [batch, m, n, k] = w.sizes(graph, batch, factor);
        let of_batch = |a, b| if batch > 1 { vec![batch, a, b] } else { vec![a, b] };
        let mut all = Means::new(w, graph, of_batch(m, k));
        let a = all.factor(0, left);
        all.extents = of_batch(k, n);
        let b = all.factor(1, right);
        all.extents = of_batch(m, n);
        all.seen.clear();
        all.values.clear();
        let most = magnitude(a.range) * magnitude(b.range) * k as f64;
        let product = Value { kind: Kind::Float, ones: 0, range: (-most, most), ..a.clone() };
        all.push(format!("matmul({}, {})", a.text, b.text), product);
        all.steps(steps);
        if !steps.is_empty() {
            all.w.features.insert("a chain behind a product");
        }
        all.kernel()
    }

    /// Writes a factor of a product: an operand and a chain of operations on it.
    fn factor(&mut self, which: usize, steps: &[Node]) -> Value {
        self.seen.clear();
        self.values.clear();
        // Factors have the type of the first operand. A product has no broadcast factors.
        let mut o = self.graph.operands[which].clone();
        o.scalar = self.graph.operands[0].scalar;
        let scalar = self.w.float(o.scalar);
        let text = self.w.input(&self.extents.clone(), scalar, &o);
        let value = Value { text, made: None, kind: Kind::Float, ones: 0, range: INPUT };
        self.values.push(value.clone());
        for step in steps {
            self.node(step);
        }
        if !steps.is_empty() {
            self.w.features.insert("a chain before a product");
        }
        // Only values without broadcast modes can be factors.
        let whole = self.values.iter().rev().find(|v| v.ones == 0 && v.kind == Kind::Float);
        let whole = whole.cloned().unwrap_or(value);
        self.tame(whole)
    }

    pub(super) fn steps(&mut self, steps: &[Node]) {
        steps.iter().for_each(|s| self.node(s));
    }

    /// Writes the kernel. Its results are the last value and possibly the first one.
    fn kernel(mut self) -> String {
        let mut outputs = vec![];
        let last = self.values.last().cloned();
        let more = (self.graph.results[1].ones % 8 == 7).then(|| self.values.first().cloned());
        for (value, name) in last.into_iter().chain(more.flatten()).zip(["%Y", "%Z"]) {
            if outputs.contains(&(value.made, value.text.clone())) {
                continue;
            }
            outputs.push((value.made, value.text.clone()));
            let o = &self.graph.results[outputs.len() - 1];
            let scalar = match value.kind {
                Kind::Int => Scalar::I32,
                Kind::Bool => Scalar::Bool,
                Kind::Float if magnitude(value.range) > LARGE => Scalar::F32,
                Kind::Float => self.w.float(o.scalar),
            };
            let extents = self.shape(value.ones);
            self.w.declare(name, &extents, scalar, o.layout);
            let again = self.stmts.iter().any(|(_, by)| reads(by, &value.text));
            match value.made {
                Some(made) if !again => self.stmts[made].0 = name.to_owned(),
                _ => self.stmts.push((name.to_owned(), format!("move({})", value.text))),
            }
        }
        if outputs.len() > 1 {
            self.w.features.insert("two results");
        }
        let names = ["%Y", "%Z"][..outputs.len()].to_vec();
        self.without_unread(&names);
        let body: Vec<String> =
            self.stmts.iter().map(|(n, by)| format!("  {n} = {by}\n")).collect();
        let (inputs, outputs) = (self.w.inputs.join(", "), names.join(", "));
        format!("Spec @k ({inputs}) -> ({outputs}) means {{\n{}}}\n", body.concat())
    }

    /// Removes statements and tensors of the caller that no result needs.
    fn without_unread(&mut self, results: &[&str]) {
        let mut all: Vec<(String, String)> = vec![];
        for (name, by) in self.stmts.drain(..).rev() {
            if results.contains(&name.as_str()) || all.iter().any(|(_, by)| reads(by, &name)) {
                all.push((name, by));
            }
        }
        all.reverse();
        self.stmts = all;
        let read = |name: &str| self.stmts.iter().any(|(_, by)| reads(by, name));
        self.w.inputs.retain(|name| read(name));
        let named =
            |d: &String| d.split(':').next().is_some_and(|n| read(n) || results.contains(&n));
        self.w.declared.retain(named);
    }

    fn shape(&self, ones: u8) -> Vec<i64> {
        let all = self.extents.iter().enumerate();
        all.map(|(m, e)| if ones >> m & 1 == 1 { 1 } else { *e }).collect()
    }

    /// Adds a statement. Returns its value.
    fn push(&mut self, by: String, like: Value) -> Value {
        let (text, made) = (format!("%v{}", self.stmts.len()), Some(self.stmts.len()));
        self.stmts.push((text.clone(), by));
        let value = Value { text, made, ..like };
        self.values.push(value.clone());
        value
    }

    /// An operand of the graph as a value with the current extents.
    fn operand(&mut self, which: u8) -> Value {
        let i = usize::from(which) % self.graph.operands.len();
        if let Some(value) = self.seen.get(&i) {
            return value.clone();
        }
        let o = self.graph.operands[i].clone();
        let ones = (0..self.extents.len()).filter(|m| o.ones >> m & 1 == 1);
        // A mode of extent 1 is not broadcast.
        let ones = ones.filter(|m| self.extents[*m] > 1).fold(0, |all, m| all | 1 << m);
        if ones > 0 {
            self.w.features.insert("broadcast");
        }
        let extents = self.shape(ones);
        let scalar = match o.scalar {
            28 => Scalar::I32,
            29 => Scalar::I8,
            30 => Scalar::U8,
            31 => Scalar::F64,
            n => self.w.float(n),
        };
        let text = self.w.input(&extents, scalar, &o);
        let value = Value { text, made: None, kind: Kind::Float, ones, range: INPUT };
        let value = match scalar {
            Scalar::I32 => Value { kind: Kind::Int, ..value },
            Scalar::I8 | Scalar::U8 => {
                self.w.features.insert("integers");
                let text = format!("cast({}, f32)", value.text);
                self.push(text, Value { range: (-2.0, 3.0), ..value })
            }
            _ => value,
        };
        self.seen.insert(i, value.clone());
        value
    }

    fn pick(&mut self, pick: Pick) -> Value {
        let n = self.values.len();
        match n {
            0 => self.operand(pick.part),
            _ if pick.new == 0 => self.operand(pick.part),
            _ => self.values[n - 1 - usize::from(pick.which) % n].clone(),
        }
    }

    /// A value converted to a float.
    fn float(&mut self, pick: Pick) -> Value {
        let value = self.pick(pick);
        self.as_float(value)
    }

    fn as_float(&mut self, value: Value) -> Value {
        match value.kind {
            Kind::Float => self.tame(value),
            Kind::Int => {
                let value = self.push(
                    format!("cast({}, f32)", value.text),
                    Value { kind: Kind::Float, ..value },
                );
                self.tame(value)
            }
            Kind::Bool => {
                let by = format!("select({}, 1.0, 0.5)", value.text);
                self.push(by, Value { kind: Kind::Float, range: (0.5, 1.0), ..value })
            }
        }
    }

    /// The value, limited to magnitudes up to [`LARGE`].
    fn tame(&mut self, value: Value) -> Value {
        if magnitude(value.range) <= LARGE {
            return value;
        }
        self.w.rounds = true;
        self.push(format!("tanh({})", value.text), Value { range: (-1.0, 1.0), ..value })
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Unary { op, source } => self.unary(*op, *source),
            Node::Binary { op, left, right } => self.binary(*op, *left, *right),
            Node::Select { op, left, right } => self.select(*op, *left, *right),
            Node::Reduce { op, axis, source } => self.reduce(*op, *axis, *source),
            Node::Norm { op, source } => self.norm(*op, *source),
        }
    }

    fn unary(&mut self, op: u8, source: Pick) {
        let value = self.pick(source);
        if value.kind == Kind::Int && op < 24 {
            let op = entry(&["neg", "abs", "relu"], op);
            let by = if op == "neg" {
                format!("-{}", value.text)
            } else {
                format!("{op}({})", value.text)
            };
            let most = magnitude(value.range);
            self.push(by, Value { range: (-most, most), ..value });
            return;
        }
        if value.kind == Kind::Int && op == 24 {
            self.w.features.insert("a cast that rounds");
            let by = format!("cast({}, bf16)", value.text);
            self.push(by, Value { kind: Kind::Float, ..value });
            return;
        }
        let value = self.as_float(value);
        let (lo, hi) = value.range;
        let most = magnitude(value.range);
        let x = &value.text;
        // If the value may leave the domain of a function, an argument inside of the domain is
        // used.
        let inside = if lo > 1e-3 { x.clone() } else { format!("(abs({x}) + {APART})") };
        let (least, root) = if lo > 1e-3 { (lo, hi) } else { (APART, most + APART) };
        let (by, range) = match op {
            0..=2 => (format!("relu({x})"), (0.0, hi.max(0.0))),
            3 => (format!("-{x}"), (-hi, -lo)),
            4 => (format!("abs({x})"), (0.0, most)),
            // The simulator draws inputs of an exponential up to eight times as large.
            5..=8 if most <= 8.0 => (format!("exp({x})"), (0.0, libm::exp(8.0 * hi.max(1.0)))),
            9 if most <= 8.0 => (format!("exp2({x})"), (0.0, libm::exp2(8.0 * hi.max(1.0)))),
            10..=11 => (format!("log({inside})"), (libm::log(least), libm::log(root))),
            12..=13 => (format!("sqrt({inside})"), (least.sqrt(), root.sqrt())),
            14..=15 => (format!("rsqrt({inside})"), (root.sqrt().recip(), least.sqrt().recip())),
            16..=17 => (format!("rcp({inside})"), (root.recip(), least.recip())),
            18..=19 => (format!("silu({x})"), (-0.3, hi.max(0.0))),
            20 => (format!("gelu({x})"), (-0.2, hi.max(0.0))),
            // The rounding error of a cast.
            21 => (format!("{x} - cast({x}, bf16)"), (-most / 256.0, most / 256.0)),
            22..=23 => (format!("sigmoid({x})"), (0.0, 1.0)),
            24 => (format!("cast({x}, f16)"), (lo, hi)),
            25 => (format!("cast({x}, bf16)"), (lo, hi)),
            26 => (format!("move({x})"), (lo, hi)),
            _ => (format!("tanh({x})"), (-1.0, 1.0)),
        };
        self.w.rounds |= !matches!(op, 0..=4 | 21 | 24..=26);
        if matches!(op, 21 | 24 | 25) {
            self.w.features.insert("a cast that rounds");
        }
        self.push(by, Value { range, ..value });
    }

    fn binary(&mut self, op: u8, left: Pick, right: Pick) {
        let a = self.pick(left);
        if right.new == 3 && right.part > 7 {
            return self.scaled(op, a, right.part);
        }
        let b = self.pick(right);
        let (a, b) = match (a.kind, b.kind) {
            (Kind::Int, Kind::Int) if magnitude(a.range) * magnitude(b.range) < 1e6 => (a, b),
            _ => (self.as_float(a), self.as_float(b)),
        };
        self.combine(op, &a, &b);
    }

    /// Writes an operation on a value and a number.
    fn scaled(&mut self, op: u8, a: Value, which: u8) {
        let a = self.as_float(a);
        let number: f64 = entry(&[2.0, 0.5, 1.0, 3.0, -1.5, 0.125, 10.0, -0.75], which);
        let text = format!("{number:?}");
        if op > 11 {
            self.w.features.insert("a division by a constant");
            // A quotient by a power of two is exact.
            self.w.rounds |= number.to_bits() << 12 != 0;
            let (p, q) = (a.range.0 / number, a.range.1 / number);
            let by = format!("{} / {text}", a.text);
            self.push(by, Value { range: (p.min(q), p.max(q)), ..a });
            return;
        }
        let b =
            Value { text, range: (number, number), made: None, ones: a.ones, kind: Kind::Float };
        self.combine(if op > 9 { op - 6 } else { op }, &a, &b);
    }

    fn combine(&mut self, op: u8, a: &Value, b: &Value) {
        let ((p, q), (r, s)) = (a.range, b.range);
        let (x, y) = (&a.text, &b.text);
        let products = [p * r, p * s, q * r, q * s];
        let least = products.iter().copied().fold(f64::INFINITY, f64::min);
        let most = products.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (by, range) = match op {
            0..=3 => (format!("{x} + {y}"), (p + r, q + s)),
            4..=5 => (format!("{x} - {y}"), (p - s, q - r)),
            6..=9 => (format!("{x} * {y}"), (least, most)),
            10 => (format!("min({x}, {y})"), (p.min(r), q.min(s))),
            11 => (format!("max({x}, {y})"), (p.max(r), q.max(s))),
            12..=14 if a.kind == Kind::Float => {
                self.w.rounds = true;
                let most = magnitude(a.range) / APART;
                if r > 0.05 {
                    (format!("{x} / {y}"), (-magnitude(a.range) / r, magnitude(a.range) / r))
                } else {
                    (format!("{x} / (abs({y}) + {APART})"), (-most, most))
                }
            }
            _ => {
                let op = entry(&["<", "<=", ">", ">=", "==", "!="], op);
                let value = Value { kind: Kind::Bool, ones: a.ones & b.ones, ..a.clone() };
                self.push(format!("{x} {op} {y}"), value);
                return;
            }
        };
        self.push(by, Value { range, ones: a.ones & b.ones, ..a.clone() });
    }

    fn select(&mut self, op: u8, left: Pick, right: Pick) {
        let (a, b) = (self.float(left), self.float(right));
        let test = entry(&["<", "<=", ">", ">="], op);
        let ones = a.ones & b.ones;
        let range = (a.range.0.min(b.range.0), a.range.1.max(b.range.1));
        // Coordinates of two modes, if there are two.
        let rank = self.extents.len();
        if op > 9 && a.ones == 0 {
            self.w.features.insert("iota");
            let m = usize::from(op) % rank;
            let cond = match rank {
                1 => format!("{}.iota(0) {test} {}", a.text, self.extents[0] / 2),
                _ => format!("{0}.iota({m}) {test} {0}.iota({1})", a.text, (m + 1) % rank),
            };
            let range = (range.0.min(0.0), range.1.max(0.0));
            let value = Value { ones: 0, range, ..a.clone() };
            // Coordinates need a tensor with a name and without a view.
            if a.text.bytes().skip(1).all(|c| c.is_ascii_alphanumeric()) {
                self.push(format!("select({cond}, {}, 0.0)", a.text), value);
                return;
            }
        }
        let by = format!("select({} {test} {}, {}, {})", a.text, b.text, a.text, b.text);
        self.push(by, Value { ones, range, ..a });
    }

    fn reduce(&mut self, op: u8, axis: u8, source: Pick) {
        let value = self.pick(source);
        let value = if value.kind == Kind::Int { value } else { self.as_float(value) };
        let rank = self.extents.len();
        let axis = match axis {
            // Most reductions of a kernel are along one mode.
            28.. => usize::from(axis) % rank,
            _ => self.axis % rank,
        };
        if value.ones >> axis & 1 == 1 {
            return;
        }
        self.w.features.insert("a reduction in a chain");
        self.reduced(op, axis, &value);
    }

    fn reduced(&mut self, op: u8, axis: usize, value: &Value) -> Value {
        let n = self.extents[axis] as f64;
        let (lo, hi) = value.range;
        let (op, range) = match op % 4 {
            0 | 1 => ("sum", (lo * n, hi * n)),
            2 => ("max", (lo, hi)),
            _ => ("min", (lo, hi)),
        };
        let like = Value { ones: value.ones | 1 << axis, range, ..value.clone() };
        self.push(format!("{op}({}, axis={axis})", value.text), like)
    }

    fn norm(&mut self, op: u8, source: Pick) {
        let value = self.float(source);
        let axis = self.axis % self.extents.len();
        if value.ones >> axis & 1 == 1 {
            return;
        }
        self.w.rounds = true;
        self.w.features.insert("a norm");
        let n = self.extents[axis];
        let x = value.text.clone();
        match op {
            0 if magnitude(value.range) > 8.0 => {}
            0 => {
                let top = self.reduced(2, axis, &value);
                let like = Value { range: (0.0, 1.0), ..value };
                let e = self.push(format!("exp({x} - {})", top.text), like.clone());
                let sum = self.reduced(0, axis, &e);
                self.push(format!("{} / {}", e.text, sum.text), like);
            }
            1 => {
                let squares = magnitude(value.range).powi(2);
                let by = format!("{x} * {x}");
                let square = self.push(by, Value { range: (0.0, squares), ..value.clone() });
                let sum = self.reduced(0, axis, &square);
                let most = (n as f64).sqrt();
                let by = format!("{x} * rsqrt({} / {n}.0 + 0.001)", sum.text);
                self.push(by, Value { range: (-most, most), ..value });
            }
            _ => {
                let sum = self.reduced(0, axis, &value);
                let most = 2.0 * magnitude(value.range);
                let by = format!("{x} - {} / {n}.0", sum.text);
                self.push(by, Value { range: (-most, most), ..value });
            }
        }
    }
}

/// Whether an expression reads a name.
fn reads(by: &str, name: &str) -> bool {
    by.split(|c: char| c != '%' && !c.is_ascii_alphanumeric()).any(|word| word == name)
}

fn magnitude((lo, hi): (f64, f64)) -> f64 {
    lo.abs().max(hi.abs())
}
