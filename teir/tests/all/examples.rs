//! Tests the operations under `teir/examples`: each, in FP32 and in FP64, is lowered in both ways,
//! decomposed and printed for two architectures, and its results equal the results of the
//! operation. A file has the expected program of one of them.

use crate::lowering::Lower;
use carbyne_embed::{Arch, AtomTable, cuda};
use carbyne_teir::{Operation, Program, compare, lower, lower_to_spec};
use std::path::Path;

/// Reads an example, in the type that it names or in the other one.
fn example(name: &str, data_type: &str) -> Operation {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for line in lines.iter_mut().filter(|line| line.starts_with("data_type")) {
        *line = format!("data_type {data_type}");
    }
    Operation::from_text(&lines.join("\n")).unwrap()
}

fn judged(name: &str) {
    let lowerings: [Lower; 2] = [lower, |operation| lower_to_spec(operation, true)];
    for (data_type, lower) in ["FP32", "FP64"].into_iter().flat_map(|t| lowerings.map(|l| (t, l))) {
        let operation = example(name, data_type).check().unwrap();
        let lowered = lower(&operation).unwrap();
        for arch in [Arch::Sm80, Arch::Sm90a] {
            let table = AtomTable::new(arch);
            assert!(compare(&operation, &lowered, &lowered.program, &table, 3).unwrap() > 0);
            let decomposed = lowered.program.decompose(&table).unwrap();
            let kernels = cuda(&decomposed, &table).unwrap();
            assert!(kernels.len() == 1 && kernels[0].source.contains("__global__"));
            let program = Program::new(&decomposed.text).unwrap();
            assert!(compare(&operation, &lowered, &program, &table, 4).unwrap() > 0);
        }
    }
}

#[test]
fn gemm() {
    judged("gemm.teir");
}

#[test]
fn brgemm() {
    judged("brgemm.teir");
}

#[test]
fn copy_permuted() {
    judged("copy_permuted.teir");
}

#[test]
fn contraction_relu() {
    judged("contraction_relu.teir");
}

#[test]
fn the_program_of_the_gemm() {
    let operation = example("gemm.teir", "FP32").check().unwrap();
    expect_test::expect_file!["gemm.cby"].assert_eq(lower(&operation).unwrap().program.text());
}
