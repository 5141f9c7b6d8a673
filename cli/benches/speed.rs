//! Measures how fast carbyne checks texts, decomposes programs and simulates kernels:
//! `cargo bench --package carbyne`.
//!
//! A second column shows the bytes of text, or the multiply-adds, per second.

use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::program::Program;
use carbyne_ir::{resolve, text, verify};
use carbyne_simulate::{Options, simulate};
use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};

/// Written down to the atoms.
const BY_HAND: &str = include_str!("../../examples/ampere_gemm_by_hand.cby");
/// Nothing but a spec.
const KERNEL_LEVEL: &str = include_str!("../../examples/gemm.cby");

fn main() {
    divan::main();
}

/// A well-formed program.
fn program(source: &str) -> Program {
    let module = text::parse(source).expect("an example parses");
    let program = resolve::resolve(&module, source).expect("an example resolves");
    assert!(verify::verify(&program).is_empty(), "an example is well formed");
    program
}

fn sm_80() -> AtomTable {
    AtomTable::new("sm_80".parse::<Arch>().expect("a known architecture"))
}

#[divan::bench]
fn parse(bencher: Bencher<'_, '_>) {
    bencher.counter(BytesCount::of_str(BY_HAND)).bench(|| text::parse(black_box(BY_HAND)));
}

#[divan::bench]
fn parse_resolve_and_verify(bencher: Bencher<'_, '_>) {
    bencher.counter(BytesCount::of_str(BY_HAND)).bench(|| program(black_box(BY_HAND)));
}

#[divan::bench]
fn print(bencher: Bencher<'_, '_>) {
    let module = text::parse(BY_HAND).expect("an example parses");
    bencher.counter(BytesCount::of_str(BY_HAND)).bench(|| text::print(black_box(&module)));
}

#[divan::bench]
fn decompose_a_kernel_level_matmul(bencher: Bencher<'_, '_>) {
    let module = text::parse(KERNEL_LEVEL).expect("an example parses");
    let table = sm_80();
    bencher.bench(|| carbyne_decompose::decompose(black_box(&module), KERNEL_LEVEL, &table));
}

#[divan::bench]
fn print_cuda(bencher: Bencher<'_, '_>) {
    let (program, table) = (program(BY_HAND), sm_80());
    bencher.bench(|| {
        carbyne_codegen::print_kernel(black_box(&program), program.kernels[0], &table, None)
    });
}

/// All blocks, comparing every body with what it means, or not.
#[divan::bench(args = [true, false], sample_count = 10)]
fn simulate_tensor_cores(bencher: Bencher<'_, '_>, check: bool) {
    let (program, table) = (program(BY_HAND), sm_80());
    let options = Options { check, ..Options::default() };
    let report = simulate(&program, &table, &options).expect("an example is right");
    let multiply_adds: u64 = report.kernels.iter().map(|k| k.multiply_adds).sum();
    bencher
        .counter(ItemsCount::new(multiply_adds))
        .bench(|| simulate(black_box(&program), &table, &options).is_ok());
}
