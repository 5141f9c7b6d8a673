//! Shows how a compiler uses carbyne as a library. The example writes one program as a text and
//! another as a tree, decomposes both, executes the results on its own arrays, and compares them
//! with numbers that it computes itself. It generates CUDA C++ for the first program.
//!
//! `cargo run --package carbyne-embed --example embed`

use carbyne_embed::build::{Builder, Compute, relu};
use carbyne_embed::{
    Arch, Array, AtomTable, Checked, Diagnostics, Memory, Module, Options, Scalar, cuda,
};
use std::error::Error;

const M: u64 = 64;
const N: u64 = 128;

/// RMS norm: scales each row of a matrix to a mean square of one. `means` states the computation,
/// and the body states the algorithm of a block.
const RMSNORM: &str = "carbyne 2
let M = 64, N = 128
%X:[M,N].f32.GL
%Y:[M,N].f32.GL
#grid:[M / 16].block
#cta:[128].thread
Spec @rmsnorm <<<#grid, #cta>>> (%X) -> (%Y) means {
  BinaryPointwise.mul (%X, %X) -> (%square)
  Reduction.sum (%square) -> (%sum) axis=1
  BinaryPointwise.mul (%sum, 0.0078125) -> (%mean)
  UnaryPointwise.rsqrt (%mean) -> (%scale)
  BinaryPointwise.mul (%X, %scale) -> (%Y)
} {
  @i = #grid.indices()
  Allocate %x:[16,N].f32.RF{?}
  Allocate %square:[16,N].f32.RF{?}
  Allocate %scale:[16,1].f32.RF{?}
  Move <<<#grid, #cta>>> (%X.tile([16,N])[@i, 0]) -> (%x)
  BinaryPointwise.mul <<<#grid, #cta>>> (%x, %x) -> (%square)
  Reduction.sum <<<#grid, #cta>>> (%square) -> (%scale) axis=1
  BinaryPointwise.mul <<<#grid, #cta>>> (%scale, 0.0078125) -> (%scale)
  UnaryPointwise.rsqrt <<<#grid, #cta>>> (%scale) -> (%scale)
  BinaryPointwise.mul <<<#grid, #cta>>> (%x, %scale) -> (%x)
  Move <<<#grid, #cta>>> (%x) -> (%Y.tile([16,N])[@i, 0])
}
";

/// A matrix product with bias and relu, as a tree. A block computes a tile of 64 by 64.
fn gemm() -> Result<Module, Diagnostics> {
    let mut m = Builder::new();
    let (a, b) = (m.tensor("A", [128, 64], Scalar::F16), m.tensor("B", [64, 128], Scalar::F16));
    let (bias, c) =
        (m.tensor("bias", [1, 128], Scalar::F32), m.tensor("C", [128, 128], Scalar::F16));
    m.kernel("gemm", [("i", 2), ("j", 2)], 128, &[&a, &b, &bias], &[&c], |k, [i, j]| {
        let acc = k.fill("acc", [64, 64], Scalar::F32, 0);
        k.repeat("k", 64 / 32, |k, step| {
            let a = k.copy("a", &a.tile([64, 32]).at([&i, &step]), Memory::Sh);
            let b = k.copy("b", &b.tile([32, 64]).at([&step, &j]), Memory::Sh);
            k.matmul_add(&a, &b, &acc);
        });
        let bias = k.copy("bias_row", &bias.tile([1, 64]).at((0, &j)), Memory::Rf);
        k.store(&c.tile([64, 64]).at([&i, &j]), relu(&acc + &bias).cast(Scalar::F16));
    })?;
    m.finish()
}

/// Decomposes the product, executes it, and compares all elements with the result of a computation
/// here.
fn product(table: &AtomTable) -> Result<(), Box<dyn Error>> {
    let decomposed = Checked::of_module(&gemm()?)?.decompose(table)?;
    let array = |shape: [u64; 2], of: f64| {
        Array::from_numbers(Scalar::F16, &shape, &vec![of; (shape[0] * shape[1]) as usize])
    };
    let columns: Vec<f64> = (0..128).map(|j| f64::from(j) - 64.0).collect();
    let bias = Array::from_numbers(Scalar::F32, &[1, 128], &columns)?;
    let arrays = [("A", array([128, 64], 0.5)?), ("B", array([64, 128], 1.0)?), ("bias", bias)];
    let arrays = arrays.map(|(name, array)| (name.to_owned(), array)).into();
    let options = Options { arrays, ..Options::default() };
    let report = Checked::new(&decomposed.text)?.simulate(table, &options)?;
    let c = report.outputs.get("C").ok_or("%C is not complete")?;
    let wrong = c.numbers().zip(columns.iter().cycle()).find(|(c, j)| *c != (32.0 + **j).max(0.0));
    match wrong {
        Some((c, j)) => Err(format!("{c} where the bias is {j}").into()),
        None => Ok(()),
    }
}

/// Runs the example.
///
/// # Errors
/// An error of carbyne, or a number that differs from the one that is computed here.
#[expect(clippy::print_stdout, reason = "an example shows what it does")]
pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let table = AtomTable::new(Arch::Sm80);
    let decomposed = Checked::new(RMSNORM)?.decompose(&table)?;
    // The result of the decomposition is a program like any other.
    let program = Checked::new(&decomposed.text)?;
    let numbers: Vec<f64> = (0..M * N).map(|i| (i % 37) as f64 - 18.0).collect();
    let x = Array::from_numbers(Scalar::F32, &[M, N], &numbers)?;
    let options = Options { arrays: [("X".to_owned(), x)].into(), ..Options::default() };
    let report = program.simulate(&table, &options)?;
    let y = report.outputs.get("Y").ok_or("%Y is not complete")?;
    for (row, found) in y.numbers().collect::<Vec<_>>().chunks(N as usize).enumerate() {
        let own = &numbers[row * N as usize..][..N as usize];
        let mean = own.iter().map(|v| v * v).sum::<f64>() / N as f64;
        let wrong = own.iter().zip(found).find(|(v, y)| (*v / mean.sqrt() - *y).abs() > 1e-5);
        if let Some((v, y)) = wrong {
            return Err(format!("row {row}: {v} became {y}").into());
        }
    }
    product(&table)?;
    for kernel in cuda(&decomposed, &table)? {
        let lines = kernel.source.lines().count();
        println!("{}: {lines} lines of CUDA C++, block {}", kernel.name, kernel.block);
    }
    Ok(())
}
