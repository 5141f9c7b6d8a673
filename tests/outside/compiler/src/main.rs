//! A compiler that has its kernels made by carbyne: it knows shapes, carbyne knows GPUs.
//!
//! `outside-compiler M N K` writes a matrix product of these extents, has it decomposed for sm_80, executes the
//! result on numbers of its own, and prints CUDA C++ with the launch.

use carbyne_embed::{Arch, Array, AtomTable, Checked, CudaKernel, Module, Options, Scalar, cuda};
use std::error::Error;

/// A kernel that is ready to be launched, and the numbers that it computed of the ones that it was tried on.
struct Compiled {
    /// As people read and edit it.
    text: String,
    /// Relations that were found to hold, which make the layouts right.
    certificates: usize,
    kernel: CudaKernel,
    product: Vec<f64>,
}

/// Extents of the matrix product, rows, columns and depth.
type Extents = (u64, u64, u64);

/// What is computed: nobody says how.
fn source((m, n, k): Extents) -> String {
    format!(
        "carbyne 1\n%A:[{m},{k}].f16.GL\n%B:[{k},{n}].f16.GL\n%C:[{m},{n}].f32.GL\n\
         MatMul.set @gemm (%A, %B) -> (%C) acc=f32\n"
    )
}

/// The same program as a tree, which a compiler builds in memory.
fn tree(extents: Extents) -> Result<Module, Box<dyn Error>> {
    Ok(Checked::new(&source(extents))?.module().clone())
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
    // What was decomposed is a program like any other, and is held to what it means while it runs.
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
        let wrong = Checked::new("carbyne 1\nMove (%A) -> (%B)\n").unwrap_err();
        assert!(wrong.iter().all(|diagnostic| !diagnostic.message.is_empty()));
    }
}
