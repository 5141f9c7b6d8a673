//! Writes random kernels that are one operation without a body, such as
//! `MatMul @k (%A, %B) -> (%C)`: copies, reductions, products and pointwise functions, of types
//! that have instructions. Where needed, an operation raises the architecture of the program to the
//! first one with instructions for its types.

use super::Graph;
use super::writer::{Writer, entry, list};
use carbyne_atoms::Arch;
use carbyne_ir::scalar::Scalar::{
    self, Bf16, Bool, E4m3, E5m2, F16, F32, F64, I8, I32, I64, U8, U32,
};

/// Types of products: the factors, the result, the sums, and the first architecture with
/// instructions for them.
const PRODUCTS: [(Scalar, Scalar, Scalar, Arch); 16] = [
    (F16, F32, F32, Arch::Sm70),
    (F16, F16, F32, Arch::Sm70),
    (F16, F16, F16, Arch::Sm70),
    (F32, F32, F32, Arch::Sm70),
    (Bf16, F32, F32, Arch::Sm80),
    (Bf16, Bf16, F32, Arch::Sm80),
    (F64, F64, F64, Arch::Sm80),
    (I8, I32, I32, Arch::Sm75),
    (U8, I32, I32, Arch::Sm75),
    (E4m3, F32, F32, Arch::Sm90a),
    (E4m3, F16, F32, Arch::Sm90a),
    (E5m2, F32, F32, Arch::Sm90a),
    (F16, F32, F32, Arch::Sm70),
    (F16, F16, F32, Arch::Sm70),
    (F32, F32, F32, Arch::Sm70),
    (F16, F32, F32, Arch::Sm75),
];
const MOVED: [Scalar; 8] = [F32, F16, F64, I8, I32, U8, I64, Bool];
const UNARY: [&str; 13] = [
    "relu", "neg", "abs", "exp", "exp2", "log", "sqrt", "rsqrt", "rcp", "tanh", "sigmoid", "gelu",
    "silu",
];
const BINARY: [&str; 12] =
    ["add", "mul", "sub", "max", "min", "div", "lt", "le", "eq", "ne", "ge", "gt"];
const CASTS: [(Scalar, Scalar); 8] =
    [(F32, F16), (F16, F32), (I32, F32), (F32, I32), (I8, F16), (F64, F32), (F16, F64), (U8, I32)];
/// Operations of reductions, and the types that have them.
const REDUCTIONS: [(&str, &[Scalar]); 7] = [
    ("sum", &[F32, F16, F64, I32]),
    ("max", &[F32, F16, I32, U32]),
    ("min", &[F32, F16, I32, F64]),
    ("prod", &[F32, I32]),
    ("and", &[I32, U32]),
    ("or", &[I32]),
    ("xor", &[I32]),
];

/// The variant of `max` or `min` that propagates NaN, if requested for a float.
fn keeping_nan(name: &'static str, scalar: Scalar, keeps: bool) -> &'static str {
    match name {
        "max" if keeps && scalar.is_float() => "maximum",
        "min" if keeps && scalar.is_float() => "minimum",
        name => name,
    }
}

impl Writer {
    /// A kernel of one operation, named `@k`.
    pub(super) fn single(&mut self, g: &Graph, kind: u8, rank: u8, op: u8, how: u8) -> String {
        let extents = g.extents(1 + usize::from(rank % 4));
        match kind {
            0..=1 => self.copy(g, &extents, op, how),
            2..=3 => self.reduction(g, &extents, op, how),
            4..=5 => self.matmul(g, op, how),
            6 => self.unary(g, &extents, op, how),
            _ => self.binary(g, &extents, op, how),
        }
    }

    /// The spec; operands can be views.
    fn one(&self, head: &str, inputs: &[String], rest: &str) -> String {
        format!("{head} @k ({}) -> (%Y){rest}\n", inputs.join(", "))
    }

    fn copy(&mut self, g: &Graph, extents: &[i64], op: u8, how: u8) -> String {
        let adds = how == 15;
        self.features.insert(if adds { "Move.add" } else { "Move" });
        let scalar = if adds { entry(&[F32, I32], op) } else { entry(&MOVED, op) };
        let from = self.input(extents, scalar, &g.operands[0]);
        self.declare("%Y", extents, scalar, g.results[0].layout);
        self.one(if adds { "Move.add" } else { "Move" }, &[from], "")
    }

    fn reduction(&mut self, g: &Graph, extents: &[i64], op: u8, how: u8) -> String {
        self.features.insert("Reduction");
        let (name, types) = REDUCTIONS[usize::from(op % 16).min(12) % 7];
        let scalar = entry(types, op / 4);
        let name = keeping_nan(name, scalar, op >= 16);
        // A product of many numbers exceeds the range of its type.
        self.overflows |= name == "prod";
        let rank = extents.len();
        let axes: Vec<usize> = (0..rank).filter(|m| how >> m & 1 == 1).collect();
        let axes = if axes.is_empty() { vec![rank - 1] } else { axes };
        let kept = extents.iter().enumerate();
        let kept: Vec<i64> = kept.map(|(m, e)| if axes.contains(&m) { 1 } else { *e }).collect();
        let from = self.input(extents, scalar, &g.operands[0]);
        self.declare("%Y", &kept, scalar, g.results[0].layout);
        let axes: Vec<i64> = axes.iter().map(|m| *m as i64).collect();
        let axis = if axes.len() == 1 { list(&axes) } else { format!("({})", list(&axes)) };
        self.one(&format!("Reduction.{name}"), &[from], &format!(" axis={axis}"))
    }

    fn matmul(&mut self, g: &Graph, op: u8, how: u8) -> String {
        self.features.insert("MatMul");
        let (factor, out, acc, first) = entry(&PRODUCTS, op);
        self.since(first);
        let [batch, m, n, k] = self.sizes(g, how / 2, factor);
        let of_batch = |a, b| if batch > 1 { vec![batch, a, b] } else { vec![a, b] };
        let a = self.input(&of_batch(m, k), factor, &g.operands[0]);
        let b = self.input(&of_batch(k, n), factor, &g.operands[1]);
        self.declare("%Y", &of_batch(m, n), out, g.results[0].layout);
        let head = if how % 4 == 3 { "MatMul" } else { "MatMul.set" };
        self.one(head, &[a, b], &format!(" acc={acc}"))
    }

    fn unary(&mut self, g: &Graph, extents: &[i64], op: u8, how: u8) -> String {
        self.features.insert("UnaryPointwise");
        let (name, from, to) = match how {
            0..=4 => {
                let (from, to) = entry(&CASTS, op);
                ("cast", from, to)
            }
            _ => {
                let name = entry(&UNARY, op);
                self.rounds |= !matches!(name, "relu" | "neg" | "abs");
                let scalar = self.float(g.operands[0].scalar);
                (name, scalar, scalar)
            }
        };
        let x = self.input(extents, from, &g.operands[0]);
        self.declare("%Y", extents, to, g.results[0].layout);
        self.one(&format!("UnaryPointwise.{name}"), &[x], "")
    }

    fn binary(&mut self, g: &Graph, extents: &[i64], op: u8, how: u8) -> String {
        let scalar = entry(&[F32, F16, I32, F64], how);
        let narrow = |ones: u8| -> Vec<i64> {
            let all = extents.iter().enumerate();
            all.map(|(m, e)| if ones >> m & 1 == 1 { 1 } else { *e }).collect()
        };
        let (a, b) = (&g.operands[0], &g.operands[1]);
        // At most one operand is broadcast in each mode.
        let (left, right) = (narrow(a.ones), narrow(b.ones & !a.ones));
        if left != extents || right != extents {
            self.features.insert("broadcast");
        }
        if op > 27 {
            self.features.insert("Select");
            let cond = self.input(&narrow(0), Bool, &g.operands[2]);
            let (x, y) = (self.input(&left, scalar, a), self.input(&right, scalar, b));
            self.declare("%Y", extents, scalar, g.results[0].layout);
            return self.one("Select", &[cond, x, y], "");
        }
        self.features.insert("BinaryPointwise");
        let name = entry(&BINARY, op);
        let name = keeping_nan(name, scalar, how / 4 % 2 == 1);
        self.rounds |= name == "div" && scalar.is_float();
        let to = if BINARY[6..].contains(&name) { Bool } else { scalar };
        let (x, y) = (self.input(&left, scalar, a), self.input(&right, scalar, b));
        self.declare("%Y", extents, to, g.results[0].layout);
        self.one(&format!("BinaryPointwise.{name}"), &[x, y], "")
    }
}
