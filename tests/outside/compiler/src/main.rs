//! Generates kernels with carbyne, as an example of a compiler: the compiler states shapes, and
//! carbyne chooses layouts and instructions for a GPU.
//!
//! `outside-compiler M N K` builds a matrix product of these extents, decomposes it for sm_80,
//! executes the decomposed text in the simulator on example matrices, and prints the text and its
//! CUDA C++ with the launch configuration.
//!
//! The package is outside of the workspace, so that it depends on carbyne as other projects do.

use carbyne_embed::build::{Builder, statements::word};
use carbyne_embed::{
    Arch, Array, AtomTable, Checked, CudaKernel, Key, Module, Options, Scalar, SpecKind, cuda,
};
use std::error::Error;

/// A kernel that is ready to be launched, and the results of a trial execution.
struct Compiled {
    /// The decomposed text.
    text: String,
    /// The number of certificates, all of which hold.
    certificates: usize,
    kernel: CudaKernel,
    product: Vec<f64>,
}

/// Extents of the matrix product: rows, columns and depth.
type Extents = (u64, u64, u64);

/// The matrix product as a tree at kernel level.
fn tree((m, n, k): Extents) -> Result<Module, Box<dyn Error>> {
    let [m, n, k] = [i64::try_from(m)?, i64::try_from(n)?, i64::try_from(k)?];
    let mut module = Builder::new();
    let a = module.tensor("A", [m, k], Scalar::F16);
    let b = module.tensor("B", [k, n], Scalar::F16);
    let c = module.tensor("C", [m, n], Scalar::F32);
    module.spec(SpecKind::MatMulSet, "gemm", &[&a, &b], &c, vec![word(Key::Acc, "f32")])?;
    Ok(module.finish()?)
}

fn compile(extents: Extents) -> Result<Compiled, Box<dyn Error>> {
    let (m, n, k) = extents;
    let table = AtomTable::new(Arch::Sm80);
    let decomposed = Checked::of_module(&tree(extents)?)?.decompose(&table)?;
    for certificate in &decomposed.certificates {
        certificate.check().map_err(|wrong| format!("{wrong:?}"))?;
    }
    let ones = Array::from_numbers(Scalar::F16, &[m, k], &vec![1.0; (m * k) as usize])?;
    let columns: Vec<f64> = (0..k * n).map(|i| (i % n % 8) as f64).collect();
    let columns = Array::from_numbers(Scalar::F16, &[k, n], &columns)?;
    let arrays = [("A".to_owned(), ones), ("B".to_owned(), columns)].into();
    // The result of the decomposition is a program like any other. The simulator compares it with
    // the meaning of the spec.
    let program = Checked::new(&decomposed.text)?;
    let report = program.simulate(&table, &Options { arrays, ..Options::default() })?;
    let product = report.outputs.get("C").ok_or("nothing was written")?.numbers().collect();
    let kernel = cuda(&decomposed, &table)?.pop().ok_or("no kernel")?;
    let certificates = decomposed.certificates.len();
    Ok(Compiled { text: decomposed.text, certificates, kernel, product })
}

fn main() -> Result<(), Box<dyn Error>> {
    let extents: Vec<u64> =
        std::env::args().skip(1).map(|a| a.parse()).collect::<Result<_, _>>()?;
    let [m, n, k] = extents[..] else { return Err("which M, N and K?".into()) };
    let Compiled { text, certificates, kernel, product } = compile((m, n, k))?;
    println!("{text}");
    println!(
        "// {certificates} certificates hold; the last element on trial is {:?}",
        product.last()
    );
    let blocks = kernel.grid.as_const().ok_or("no number of blocks")?;
    println!("// launch: {blocks} blocks of {} threads", kernel.block);
    println!("{}", kernel.source);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_compiled() {
        let compiled = compile((64, 32, 16)).unwrap();
        assert!(compiled.text.contains("atom=mma.m16n8k16.f32.f16"), "{}", compiled.text);
        assert!(compiled.certificates > 0);
        assert!(compiled.kernel.source.contains("__global__"));
        // A row of ones times column j, which holds j mod 8 sixteen times.
        let wrong =
            compiled.product.iter().enumerate().find(|(i, x)| **x != (i % 32 % 8 * 16) as f64);
        assert_eq!((compiled.product.len(), wrong), (64 * 32, None));
    }

    #[test]
    fn errors_are_errors() {
        let error = compile((64, 32, 0)).err().expect("no kernel is as deep as nothing");
        assert!(!error.to_string().is_empty());
        let wrong = Checked::new("carbyne 2\nMove (%A) -> (%B)\n").unwrap_err();
        assert!(wrong.iter().all(|diagnostic| !diagnostic.message.is_empty()));
    }
}
