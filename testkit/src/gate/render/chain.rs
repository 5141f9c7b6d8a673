//! Writes kernels without bodies: a `means` block with a chain of operations on whole tensors, from
//! a drawn description. Operands are chosen among the tensors and earlier values that fit; an
//! operation without one is omitted. Each value has an upper bound of its magnitude, so that
//! exponentials do not overflow and the size of results is known.

use super::super::description::Operation;
use super::super::exact::{Flow, Function, Source};
use super::{Tensor, Writer, product};

/// A mode: the extent of a tile, and the number of tiles.
type Mode = (i64, i64);

/// The maximum argument of an exponential.
const MOST_EXPONENT: f64 = 8.0;
/// An upper bound of elements that an earlier kernel writes.
const UNKNOWN: f64 = 1e6;

/// A computed value.
#[derive(Clone, Debug)]
struct Value {
    /// Its name, or a view.
    text: String,
    modes: [Mode; 2],
    /// An upper bound of magnitudes.
    most: f64,
    /// The caller's tensor, if the value is one.
    tensor: Option<usize>,
}

impl Value {
    fn extents(&self) -> [i64; 2] {
        self.modes.map(|(tile, tiles)| tile * tiles)
    }
}

/// The modes of the broadcast of both values, if they fit.
fn broadcast(a: &Value, b: &Value) -> Option<[Mode; 2]> {
    let (ea, eb) = (a.extents(), b.extents());
    let one = |m: usize| match (ea[m], eb[m]) {
        (x, y) if x == y => Some(a.modes[m]),
        (1, _) => Some(b.modes[m]),
        (_, 1) => Some(a.modes[m]),
        _ => None,
    };
    Some([one(0)?, one(1)?])
}

impl Writer {
    /// Writes a chain of operations as a kernel without a body.
    pub(super) fn graph(&mut self, i: usize, first: u8, nodes: &[Operation], form: u8) {
        let floats: Vec<usize> = (0..self.globals.len())
            .filter(|g| self.globals[*g].readable() && self.globals[*g].scalar.is_float())
            .collect();
        if floats.is_empty() {
            return self.whole_kernel(i, 0, (first, 0), form);
        }
        let a = floats[usize::from(first) % floats.len()];
        let mut chain = Chain::new(&self.globals, &floats, a);
        for (k, node) in nodes.iter().enumerate() {
            chain.node(k, *node, &mut self.features);
        }
        let Chain { lines, read, now, .. } = chain;
        let tensors: Vec<usize> = floats.iter().copied().filter(|g| read.contains(g)).collect();
        tensors.iter().for_each(|g| self.reads(*g));
        let [rows, columns] = now.modes;
        // The result is at least as wide as the inputs, so that no number exceeds its range
        // unnoticed.
        let scalar = match form / 4 {
            0 => self.globals[a].scalar,
            _ => super::F[1],
        };
        let (tile, tiles) = ((rows.0, columns.0), (rows.1, columns.1));
        let o = self.output(format!("W{i}"), scalar, tile, tiles, form);
        let op = Function::Chain { most: now.most };
        let inputs = tensors.iter().map(|g| Source::Tensor(*g)).collect();
        self.exact.follow(&[Flow::Op { op, inputs, output: (o, scalar), all: true }]);
        let names: Vec<String> =
            tensors.iter().map(|g| format!("%{}", self.globals[*g].name)).collect();
        self.kernels.push(format!(
            "Spec @k{i} ({}) -> (%W{i}) means {{\n{}  %W{i} = move({})\n}}\n",
            names.join(", "),
            lines.concat(),
            now.text
        ));
        self.features.insert("kernel-level chain");
    }
}

/// A chain under construction.
struct Chain<'a> {
    globals: &'a [Tensor],
    lines: Vec<String>,
    /// Possible operands and computed values.
    values: Vec<Value>,
    /// The caller's tensors that it reads.
    read: Vec<usize>,
    now: Value,
    multiplied: bool,
}

impl<'a> Chain<'a> {
    fn new(globals: &'a [Tensor], floats: &[usize], a: usize) -> Self {
        let of = |g: usize| {
            let t = &globals[g];
            let modes = [(t.tile.0, t.tiles.0), (t.tile.1, t.tiles.1)];
            // Inputs of an exponential are drawn up to eight. Results of earlier kernels may have
            // any size.
            let most = if t.contents == super::Contents::Untouched { 8.0 } else { UNKNOWN };
            Value { text: format!("%{}", t.name), modes, most, tensor: Some(g) }
        };
        let mut values: Vec<Value> = floats.iter().map(|g| of(*g)).collect();
        let transposed: Vec<Value> = values
            .iter()
            .map(|v| Value {
                text: format!("{}.transpose()", v.text),
                modes: [v.modes[1], v.modes[0]],
                ..v.clone()
            })
            .collect();
        values.extend(transposed);
        let (lines, read) = (vec![], vec![a]);
        Chain { globals, lines, values, read, now: of(a), multiplied: false }
    }

    fn node(&mut self, k: usize, node: Operation, features: &mut super::Features) {
        let Operation { op, which, form } = node;
        let now = self.now.clone();
        let x = now.text.as_str();
        let of = |fits: &dyn Fn(&Value) -> bool| -> Option<Value> {
            let all: Vec<&Value> = self.values.iter().filter(|v| fits(v)).collect();
            let at = usize::from(which) % all.len().max(1);
            all.get(at).copied().cloned()
        };
        let unary = |text: String, most: f64| Some((text, now.modes, most, None));
        let extents = now.extents();
        let axis = usize::from(form % 2);
        let made = match op {
            0 => unary(format!("relu({x})"), now.most),
            1 => unary(format!("-{x}"), now.most),
            2 => unary(format!("abs({x})"), now.most),
            3 => unary(format!("tanh({x})"), 1.0),
            4 => unary(format!("sigmoid({x})"), 1.0),
            5 if now.most <= MOST_EXPONENT => unary(format!("exp({x})"), libm::exp(now.most)),
            5 | 6 => unary(format!("{x} * 0.5"), now.most * 0.5),
            7 => unary(format!("{x} + 1.0"), now.most + 1.0),
            8..=13 => of(&|v| broadcast(&now, v).is_some()).and_then(|v| {
                let modes = broadcast(&now, &v)?;
                let y = v.text.as_str();
                let (text, most) = match op {
                    8 => (format!("{x} + {y}"), now.most + v.most),
                    9 => (format!("{x} - {y}"), now.most + v.most),
                    10 => (format!("{x} * {y}"), now.most * v.most),
                    11 => (format!("max({x}, {y})"), now.most.max(v.most)),
                    12 => (format!("min({x}, {y})"), now.most.max(v.most)),
                    _ => (format!("select({x} < {y}, {x}, {y})"), now.most.max(v.most)),
                };
                Some((text, modes, most, v.tensor))
            }),
            14 | 15 if extents[axis] > 1 => {
                let (name, most) = match op {
                    14 => ("sum", now.most * extents[axis] as f64),
                    _ => ("max", now.most),
                };
                let mut modes = now.modes;
                modes[axis] = (1, 1);
                features.insert("a reduction in a chain");
                Some((format!("{name}({x}, axis={axis})"), modes, most, None))
            }
            16.. if !self.multiplied => {
                let kind = |v: &Value| v.tensor.map(|g| self.globals[g].scalar);
                let first = self.globals[self.read[0]].scalar;
                let fits = |v: &Value| {
                    let same = kind(v) == Some(first) && product(first).is_some();
                    same && v.extents()[0] == extents[1] && extents[1] > 1
                };
                of(&fits).map(|v| {
                    let most = now.most * v.most * extents[1] as f64;
                    features.insert("a product in a chain");
                    (format!("matmul({x}, {})", v.text), [now.modes[0], v.modes[1]], most, v.tensor)
                })
            }
            _ => None,
        };
        let Some((text, modes, most, operand)) = made else { return };
        self.multiplied |= text.starts_with("matmul");
        self.read.extend(operand);
        self.lines.push(format!("  %v{k} = {text}\n"));
        self.now = Value { text: format!("%v{k}"), modes, most, tensor: None };
        self.values.push(self.now.clone());
    }
}
