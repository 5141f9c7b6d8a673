//! Writes a random program of one to three kernels, given as a tree of drawn choices
//! ([`super::description`]), as a text that runs cleanly as written. A defect after decomposition
//! is then a defect of decomposition.
//!
//! Whole blocks execute statements one after the other. Leaves of single threads are ordered by
//! barriers, which the writer inserts exactly where the source needs them. Every element that is
//! read was written before, on every path through the enclosing loops and conditions. No block
//! writes an element that several blocks access.
//!
//! This file writes the caller's tensors and kernels of one operation. `steps` writes kernels with
//! bodies, with `views` (operands), `control_flow`, `pipelined_loops` and `threads`; `state` tracks
//! what is known; `roles` gives statements to parts of the block; `chain` writes `means` blocks.

mod chain;
mod control_flow;
mod pipelined_loops;
mod roles;
mod state;
mod steps;
mod threads;
mod views;

use super::description::{Case, Global, Kernel};
use super::exact::{Exact, Flow, Function, Source};
use carbyne_ir::ast::ReduceOp;
use carbyne_ir::scalar::Scalar;
use state::{Body, Features};

/// A program and its known properties.
#[derive(Clone, Debug)]
pub(super) struct Rendered {
    /// The text. Empty if the description yields no program.
    pub(super) text: String,
    /// The caller's tensors whose bits are fully determined.
    pub(super) exact: Vec<String>,
    /// Whether numbers may exceed the range of their types.
    pub(super) overflows: bool,
    /// The features of the program.
    pub(super) features: Features,
}

/// Extents of tiles. Each is a multiple of 16, so that halves have whole vectors.
const SIZES: [i64; 16] = [32, 32, 64, 16, 32, 64, 32, 16, 64, 32, 16, 32, 64, 48, 64, 32];
/// Numbers of threads of a block.
const THREADS: [i64; 16] =
    [128, 128, 64, 32, 128, 256, 128, 64, 32, 128, 64, 256, 128, 96, 128, 64];
const F: [Scalar; 4] = [Scalar::F16, Scalar::F32, Scalar::Bf16, Scalar::F64];
/// Types of the caller's tensors.
const SCALARS: [Scalar; 16] = [
    F[0],
    F[1],
    F[0],
    F[1],
    F[0],
    F[1],
    F[0],
    F[1],
    F[0],
    F[2],
    Scalar::I32,
    Scalar::I8,
    F[0],
    Scalar::I32,
    Scalar::U8,
    F[3],
];

/// A tensor of the caller.
#[derive(Clone, Debug)]
struct Tensor {
    name: String,
    scalar: Scalar,
    /// The shape of a tile.
    tile: (i64, i64),
    /// The number of tiles along each mode.
    tiles: (i64, i64),
    strides: u8,
    /// Whether kernels may read the tensor, and whether elements may be unwritten.
    contents: Contents,
}

#[derive(Copy, Clone, Debug, PartialEq)]
enum Contents {
    /// No kernel has accessed the tensor. The first one that reads it gets an input.
    Untouched,
    /// Every element is written.
    Whole,
    /// Some elements may be unwritten.
    Partial,
}

impl Tensor {
    fn extents(&self) -> (i64, i64) {
        (self.tile.0 * self.tiles.0, self.tile.1 * self.tiles.1)
    }

    /// Whether two coordinates share an element.
    fn repeats(&self) -> bool {
        let (m, n) = self.extents();
        self.strides == 12 && m > 1 || self.strides == 13 && n > 1
    }

    fn readable(&self) -> bool {
        self.contents != Contents::Partial
    }

    fn declaration(&self) -> String {
        let (m, n) = self.extents();
        let ty = match self.strides {
            6..=8 => format!("[({m},{n}):(1,{m})]"),
            9 => format!("[({m},{n}):({},1)]", n + 8),
            10 => format!("[({m},{n}):({},1)]", n + 4),
            11 => format!("[({m},{n}):(1,{})]", m + 8),
            12 => format!("[({m},{n}):(0,1)]"),
            13 => format!("[({m},{n}):(1,0)]"),
            14 if m % 2 == 0 => format!("[((2,{}),{n}):(({},{n}),1)]", m / 2, m / 2 * n),
            15 if n % 4 == 0 => format!("[({m},(4,{})):(4,(1,{}))]", n / 4, 4 * m),
            _ => format!("[{m},{n}]"),
        };
        format!("%{}:{ty}.{}.GL", self.name, self.scalar)
    }

    /// The mode that is consecutive in memory in whole tiles.
    fn consecutive(&self) -> Option<usize> {
        match self.strides {
            0..=5 | 9 => Some(1),
            6..=8 | 11 => Some(0),
            _ => None,
        }
    }
}

/// The state of the output.
struct Writer {
    sizes: (i64, i64),
    threads: i64,
    grid: (i64, i64),
    globals: Vec<Tensor>,
    kernels: Vec<String>,
    exact: Exact,
    features: Features,
    /// The number of [`Exact`] slots in use, beyond those of the caller's tensors.
    slots: usize,
}

/// The first slot of local tensors.
const LOCAL: usize = 1 << 16;

/// Writes the program of a description.
pub(super) fn render(case: &Case) -> Rendered {
    let size = |i: u8| entry(&SIZES, i);
    let (p, q) = case.sizes;
    let sizes = (size(p), if q < 10 { size(p) } else { size(q) });
    let grid = (1 + i64::from(case.grid.0 % 3), 1 + i64::from(case.grid.1 / 3 % 2));
    let threads = entry(&THREADS, case.threads);
    let mut w = Writer {
        sizes,
        threads,
        grid,
        globals: vec![],
        kernels: vec![],
        exact: Exact::new(!case.has_numbers()),
        features: Features::default(),
        slots: LOCAL,
    };
    for (i, g) in case.globals.iter().enumerate() {
        w.global(i, g);
    }
    for (i, kernel) in case.kernels.iter().enumerate() {
        match kernel {
            Kernel::Tile { writes, steps } => Body::kernel(&mut w, i, *writes, steps),
            Kernel::Whole { what, operands, form } => w.whole_kernel(i, *what, *operands, *form),
            Kernel::Graph { first, nodes, form } => w.graph(i, *first, nodes, *form),
        }
    }
    if w.kernels.len() > 1 {
        w.features.insert("several kernels");
    }
    let mut text = String::new();
    if !w.kernels.is_empty() {
        text.push_str("carbyne 2\n");
        for g in &w.globals {
            text.push_str(&format!("{}\n", g.declaration()));
        }
        let (m, n) = grid;
        match n {
            1 => text.push_str(&format!("#grid:[{m}].block\n")),
            _ => text.push_str(&format!("#grid:[({m},{n}):(1,{m})].block\n")),
        }
        // Leaves of single threads name threads by their numbers in the block.
        let alone = w
            .kernels
            .iter()
            .any(|k| k.contains("#one") || !k.contains('{') || k.contains(" means {"));
        let parts = roles::Parts::from_choice(case.roles, threads).filter(|_| !alone);
        let all = parts.as_ref().map_or(threads, |p| p.threads());
        text.push_str(&format!("#cta:[{all}].thread\n"));
        match parts {
            None => w.kernels.iter().for_each(|k| text.push_str(k)),
            Some(parts) => {
                w.features.insert("roles");
                w.kernels.iter().for_each(|k| text.push_str(&parts.given(k)));
            }
        }
    }
    let exact = w.globals.iter().enumerate().filter(|(i, _)| w.exact.is_exact(*i));
    let exact = exact.map(|(_, g)| g.name.clone()).collect();
    Rendered { text, exact, overflows: w.exact.overflows, features: w.features }
}

fn entry<T: Copy>(table: &[T], i: u8) -> T {
    table[usize::from(i) % table.len()]
}

impl Writer {
    fn global(&mut self, i: usize, g: &Global) {
        let (p, q) = self.sizes;
        let tile = match g.tile {
            0..=5 => (p, q),
            6..=8 => (q, p),
            9 => (p, p),
            10 => (q, q),
            11 | 12 => (1, q),
            _ => (p, 1),
        };
        let (m, n) = self.grid;
        let wide = if n == 1 { 1 + i64::from(g.tiles) } else { n };
        let tiles = match tile {
            (1, _) => (1, wide),
            (_, 1) => (m, 1),
            _ => (m, wide),
        };
        self.globals.push(Tensor {
            name: ["A", "B", "C", "D", "E", "F", "G", "H"]
                .get(i)
                .map_or_else(|| format!("X{i}"), |n| (*n).to_owned()),
            // Most tensors have one type, so that copies between them are possible.
            scalar: match (g.scalar, self.globals.first()) {
                (0..10, Some(first)) => first.scalar,
                (n, _) => entry(&SCALARS, n),
            },
            tile,
            tiles,
            strides: if tile.0 == 1 || tile.1 == 1 { 0 } else { g.strides },
            contents: Contents::Untouched,
        });
    }

    /// A new result tensor. Every element will be written.
    fn output(
        &mut self,
        name: String,
        scalar: Scalar,
        tile: (i64, i64),
        tiles: (i64, i64),
        form: u8,
    ) -> usize {
        let strides =
            if tile.0 > 1 && tile.1 > 1 { [0, 6, 0, 9][usize::from(form % 4)] } else { 0 };
        let contents = Contents::Whole;
        self.globals.push(Tensor { name, scalar, tile, tiles, strides, contents });
        self.globals.len() - 1
    }

    /// Records that a kernel reads one of the caller's tensors.
    fn reads(&mut self, g: usize) {
        let t = &mut self.globals[g];
        if t.contents == Contents::Untouched {
            t.contents = Contents::Whole;
            self.exact.input(g, t.scalar);
        } else {
            self.features.insert("a kernel reads what another wrote");
        }
        if t.repeats() {
            self.features.insert("stride-0 input");
        }
    }

    /// Writes a kernel without a body.
    fn whole_kernel(&mut self, i: usize, what: u8, operands: (u8, u8), form: u8) {
        let readable: Vec<usize> =
            (0..self.globals.len()).filter(|g| self.globals[*g].readable()).collect();
        let nth =
            |list: &[usize], k: u8| (!list.is_empty()).then(|| list[usize::from(k) % list.len()]);
        let Some(a) = nth(&readable, operands.0) else { return };
        let ta = self.globals[a].clone();
        let (m, k) = ta.extents();
        let one = |op, inputs, output, all| vec![Flow::Op { op, inputs, output, all }];
        let fits = |g: &usize| {
            let t = &self.globals[*g];
            t.scalar == ta.scalar && t.extents().0 == k
        };
        let rights: Vec<usize> = readable.iter().copied().filter(fits).collect();
        let axis = usize::from(form % 2);
        // Falls back to a copy if the operands do not fit.
        let what = match what {
            1 if product(ta.scalar).is_none() || rights.is_empty() || ta.tile.0 == 1 || k == 1 => 0,
            2 if [m, k][axis] == 1 || !matches!(ta.scalar.bits(), 16..) => 0,
            what => what,
        };
        match what {
            0 => {
                self.reads(a);
                let o = self.output(format!("W{i}"), ta.scalar, ta.tile, ta.tiles, form);
                self.exact.follow(&one(
                    Function::Same,
                    vec![Source::Tensor(a)],
                    (o, ta.scalar),
                    true,
                ));
                self.kernels.push(format!("Move @k{i} (%{}) -> (%W{i})\n", ta.name));
                self.features.insert("kernel-level Move");
            }
            1 => {
                let Some((out, acc)) = product(ta.scalar) else { return };
                let Some(b) = nth(&rights, operands.1) else { return };
                let tb = self.globals[b].clone();
                let n = tb.extents().1;
                let sums = |g: &usize| {
                    let t = &self.globals[*g];
                    t.scalar == out && t.extents() == (m, n) && !t.repeats() && *g != a && *g != b
                };
                let sum = readable.iter().copied().find(sums).filter(|_| form % 2 == 1);
                self.reads(a);
                self.reads(b);
                let o = match sum {
                    Some(o) => {
                        self.reads(o);
                        self.features.insert("an output that is an input");
                        o
                    }
                    None => {
                        let (tile, tiles) = ((ta.tile.0, tb.tile.1), (ta.tiles.0, tb.tiles.1));
                        self.output(format!("W{i}"), out, tile, tiles, form / 2)
                    }
                };
                let set = sum.is_none();
                let inputs = vec![Source::Tensor(a), Source::Tensor(b)];
                let op = Function::MatMul { k, set, acc };
                self.exact.follow(&one(op, inputs, (o, out), set));
                let kind = if set { "MatMul.set" } else { "MatMul" };
                let to = &self.globals[o].name;
                self.kernels.push(format!(
                    "{kind} @k{i} (%{}, %{}) -> (%{to}) acc={acc}\n",
                    ta.name, tb.name
                ));
                self.features.insert("kernel-level MatMul");
            }
            _ => {
                let reduce =
                    [ReduceOp::Sum, ReduceOp::Max, ReduceOp::Min][usize::from(form / 2) % 3];
                self.reads(a);
                let (tile, tiles) = match axis {
                    0 => ((1, ta.tile.1), (1, ta.tiles.1)),
                    _ => ((ta.tile.0, 1), (ta.tiles.0, 1)),
                };
                let o = self.output(format!("W{i}"), ta.scalar, tile, tiles, 0);
                let op = Function::Reduce { sum: reduce == ReduceOp::Sum, n: [m, k][axis] };
                self.exact.follow(&one(op, vec![Source::Tensor(a)], (o, ta.scalar), true));
                self.kernels.push(format!(
                    "Reduction.{reduce} @k{i} (%{}) -> (%W{i}) axis={axis}\n",
                    ta.name
                ));
                self.features.insert("kernel-level Reduction");
            }
        }
    }
}

/// The result type and the summation type of a product with factors of this type.
fn product(scalar: Scalar) -> Option<(Scalar, Scalar)> {
    match scalar {
        Scalar::F16 | Scalar::Bf16 | Scalar::F32 => Some((Scalar::F32, Scalar::F32)),
        Scalar::F64 => Some((Scalar::F64, Scalar::F64)),
        Scalar::I8 | Scalar::U8 => Some((Scalar::I32, Scalar::I32)),
        _ => None,
    }
}
