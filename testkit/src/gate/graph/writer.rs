//! Writes the tensors of a random kernel without a body, and the views through which it reads them.
//! It chooses extents, layouts and types, within limits that keep the simulation short.

use super::{Graph, Operand};
use carbyne_atoms::Arch;
use carbyne_ir::scalar::Scalar;
use std::collections::BTreeSet;

/// Extents of modes: powers of two and others.
const EXTENTS: [i64; 32] = [
    32, 64, 16, 8, 128, 24, 48, 96, 4, 2, 3, 40, 32, 64, 16, 256, 1, 100, 7, 12, 80, 160, 36, 5,
    64, 32, 128, 512, 20, 6, 33, 11,
];
/// Extents of products.
const SIZES: [i64; 32] = [
    64, 32, 128, 16, 48, 96, 64, 32, 16, 80, 128, 64, 32, 16, 1, 128, 64, 160, 16, 32, 64, 48, 96,
    64, 32, 64, 24, 100, 32, 192, 256, 16,
];
/// The maximum number of elements of a tensor.
const ELEMENTS: i64 = 1 << 13;
/// The maximum number of multiplications of a product.
const PRODUCTS: i64 = 1 << 18;
/// The feature of a product that is not a whole number of tiles. The guide recommends padding.
pub const UNEVEN: &str = "a product that no tiles divide";

pub(super) fn entry<T: Copy>(table: &[T], i: u8) -> T {
    table[usize::from(i) % table.len()]
}

pub(super) fn list(all: &[i64]) -> String {
    all.iter().map(i64::to_string).collect::<Vec<_>>().join(",")
}

/// The tensor behind a view, and the view.
struct Seen {
    /// The extents of the tensor.
    extents: Vec<i64>,
    /// The view operations after its name.
    by: String,
}

impl Graph {
    /// `rank` extents with a limited number of elements.
    pub(super) fn extents(&self, rank: usize) -> Vec<i64> {
        let mut all = vec![1; rank];
        let mut room = ELEMENTS;
        for (i, e) in all.iter_mut().enumerate().rev() {
            *e = entry(&EXTENTS, self.extents[i]);
            // `room` is the number of elements left for the modes before.
            while *e > room || (rank > 2 && *e > 128) {
                *e = (*e + 1) / 2;
            }
            room /= *e;
        }
        all
    }
}

/// The state of the output.
pub(super) struct Writer {
    pub(super) arch: Arch,
    /// Declarations of tensors.
    pub(super) declared: Vec<String>,
    /// Names of the tensors that are read.
    pub(super) inputs: Vec<String>,
    /// Whether functions turn integers into other numbers.
    pub(super) rounds: bool,
    /// Whether numbers may exceed the range of their types.
    pub(super) overflows: bool,
    /// The features of the program.
    pub(super) features: BTreeSet<&'static str>,
}

impl Default for Writer {
    fn default() -> Self {
        Writer {
            arch: Arch::Sm80,
            declared: vec![],
            inputs: vec![],
            rounds: false,
            overflows: false,
            features: BTreeSet::new(),
        }
    }
}

impl Writer {
    /// Declares an input tensor. Returns the expression that reads it with these extents.
    pub(super) fn input(&mut self, extents: &[i64], scalar: Scalar, o: &Operand) -> String {
        let name = format!("%X{}", self.inputs.len());
        let seen = self.seen(extents, o.view);
        self.declare(&name, &seen.extents, scalar, o.layout);
        self.inputs.push(name.clone());
        format!("{name}{}", seen.by)
    }

    pub(super) fn declare(&mut self, name: &str, extents: &[i64], scalar: Scalar, layout: u8) {
        let ty = self.layout(extents, layout);
        self.declared.push(format!("{name}:[{ty}].{scalar}.GL"));
    }

    /// The text of extents and strides.
    fn layout(&mut self, extents: &[i64], layout: u8) -> String {
        let rank = extents.len();
        // The order of modes from the fastest one on, and the padding after it.
        let rows: Vec<usize> = (0..rank).rev().collect();
        let (order, gap) = match layout {
            7..=9 => ((0..rank).collect(), 0),
            10 => (rows[1..].iter().chain(&rows[..1]).copied().collect(), 0),
            11 if rank > 2 => {
                (rows[..1].iter().chain(rows[1..].iter().rev()).copied().collect(), 0)
            }
            12 | 13 => (rows, entry(&[8, 4], layout)),
            14 => (rows, 3),
            15 => ((0..rank).collect(), 8),
            _ => (rows, 0),
        };
        let mut strides = vec![0; rank];
        let mut step = if rank == 1 && layout == 15 { 2 } else { 1 };
        if step == 1 && (rank < 2 || gap == 0 && order.is_sorted_by(|a, b| a > b)) {
            return list(extents);
        }
        for (i, m) in order.iter().enumerate() {
            strides[*m] = step;
            step *= extents[*m] + if i == 0 { gap } else { 0 };
        }
        self.features.insert(if gap > 0 { "padded" } else { "modes in another order in memory" });
        format!("({}):({})", list(extents), list(&strides))
    }

    /// A tensor and a view of it that has these extents.
    fn seen(&mut self, extents: &[i64], view: u8) -> Seen {
        let rank = extents.len();
        let whole = vec!["_"; rank];
        let mut own = extents.to_vec();
        let (by, feature) = match view {
            1..=3 if rank > 1 => {
                own.swap(rank - 2, rank - 1);
                (".transpose()".to_owned(), "transpose()")
            }
            4..=6 if rank > 1 => {
                // Mode i of the view is mode (i + turn) of the tensor.
                let turn = 1 + usize::from(view) % (rank - 1).max(1);
                let order: Vec<usize> = (0..rank).map(|i| (i + turn) % rank).collect();
                order.iter().enumerate().for_each(|(i, m)| own[*m] = extents[i]);
                let order: Vec<i64> = order.iter().map(|m| *m as i64).collect();
                (format!(".permute([{}])", list(&order)), "permute()")
            }
            7 | 8 => {
                own.insert(0, 3);
                (format!("[1, {}]", whole.join(", ")), "a part of a tensor of more modes")
            }
            9 | 10 => {
                let m = usize::from(view) % rank;
                let mut parts: Vec<String> = whole.iter().map(|p| (*p).to_owned()).collect();
                own[m] *= 2;
                parts[m] = format!("{}..{}", extents[m], own[m]);
                (format!("[{}]", parts.join(", ")), "a range")
            }
            11 | 12 => {
                own[0] *= 2;
                let mut at = vec!["0"; rank];
                at[0] = "1";
                (format!(".tile([{}])[{}]", list(extents), at.join(", ")), "a tile")
            }
            13..=15 if extents.iter().filter(|e| **e > 1).count() == 1 => {
                let steps: Vec<i64> = extents.iter().map(|e| i64::from(*e > 1)).collect();
                own = vec![extents.iter().product()];
                (format!(".reshape([{}]:[{}])", list(extents), list(&steps)), "reshape()")
            }
            _ => return Seen { extents: own, by: String::new() },
        };
        self.features.insert(feature);
        Seen { extents: own, by }
    }

    /// The batch, M, N and K of a product with factors of this type.
    pub(super) fn sizes(&mut self, g: &Graph, batch: u8, factor: Scalar) -> [i64; 4] {
        let mut all = [0, 1, 2].map(|i| entry(&SIZES, g.extents[i]));
        let batch = [1, 1, 1, 1, 1, 2, 3, 4][usize::from(batch % 8)];
        while batch * all.iter().product::<i64>() > PRODUCTS {
            let most = (0..3).max_by_key(|i| all[*i]).unwrap_or(0);
            all[most] = all[most] / 32 * 16;
        }
        let [m, n, k] = all;
        if batch > 1 {
            self.features.insert("a product of a batch");
        }
        // The smallest tile of a matrix is 16 × 16 × 16, or has K = 32 for bytes. That of a vector
        // is 32 long.
        let (out, sum) = match (m, n) {
            (1, _) | (_, 1) => (32, 32),
            _ => (16, if factor.bits() == 8 { 32 } else { 16 }),
        };
        let fits = |n: i64, by: i64| n == 1 || n % by == 0;
        if !(fits(m, out) && fits(n, out) && k % sum == 0) {
            self.features.insert(UNEVEN);
        }
        [batch, m, n, k]
    }

    /// Raises the architecture of the program to at least `first`, because older ones lack the
    /// instructions.
    pub(super) fn since(&mut self, first: Arch) {
        let rank = |arch: Arch| Arch::ALL.iter().position(|a| *a == arch);
        if rank(self.arch) < rank(first) {
            self.arch = first;
        }
    }

    /// A floating-point type.
    pub(super) fn float(&mut self, i: u8) -> Scalar {
        match i % 16 {
            0..=5 => Scalar::F32,
            6..=13 => Scalar::F16,
            _ => {
                self.since(Arch::Sm80);
                Scalar::Bf16
            }
        }
    }
}
