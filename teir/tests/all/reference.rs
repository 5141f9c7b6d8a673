//! Tests the executor of TEIR operations: its results equal those of an einsum (a sum of products
//! over indices) that this file computes element by element, without a schedule. It also tests the
//! limit of iterations and the checks of the tensors.

use crate::draw;
use carbyne_teir::{
    Axis, Checked, Code, DataType, Dim, Element, First, Last, Main, Operation, Tensor, execute,
};
use proptest::prelude::*;

/// Small integers, of which sums of products are exact.
fn numbers(n: u64, salt: u64) -> Vec<f64> {
    (0..n).map(|i| ((i * 7 + salt) % 11) as f64 - 5.0).collect()
}

/// Coordinates of number `at` among these axes.
fn coordinates(axes: &[Axis], mut at: u64) -> Vec<u64> {
    axes.iter()
        .map(|axis| {
            let i = at % axis.size;
            at /= axis.size;
            i
        })
        .collect()
}

fn offset(axes: &[Axis], at: &[u64], tensor: Tensor) -> usize {
    axes.iter().zip(at).map(|(axis, i)| axis.stride(tensor) * i).sum::<u64>() as usize
}

/// Each element of the output by itself: what it begins with, all products, and what it ends with.
fn einsum(operation: &Checked, in0: &[f64], in1: &[f64], out: &mut [f64]) {
    let (sums, elements): (Vec<Axis>, Vec<Axis>) =
        operation.axes().iter().partition(|a| a.dim == Dim::K);
    let count = |axes: &[Axis]| axes.iter().map(|a| a.size).product::<u64>();
    let primitives = operation.primitives();
    for number in 0..count(&elements) {
        let at = coordinates(&elements, number);
        let [a, b, c] = Tensor::ALL.map(|t| offset(&elements, &at, t));
        let mut value = match primitives.prim_first {
            First::None => out[c],
            First::Zero => 0.0,
            First::Relu => out[c].max(0.0),
        };
        match primitives.prim_main {
            Main::None => {}
            Main::Copy => {
                let last: Vec<u64> = sums.iter().map(|a| a.size - 1).collect();
                value = in0[a + offset(&sums, &last, Tensor::In0)];
            }
            Main::Gemm | Main::Brgemm => {
                for k in 0..count(&sums) {
                    let k = coordinates(&sums, k);
                    let x = in0[a + offset(&sums, &k, Tensor::In0)];
                    value += x * in1[b + offset(&sums, &k, Tensor::In1)];
                }
            }
        }
        out[c] = if primitives.prim_last == Last::Relu { value.max(0.0) } else { value };
    }
}

fn executed<T: Element>(
    operation: &Checked,
    drawn: &[Vec<f64>; 3],
    narrow: fn(f64) -> T,
    widen: fn(T) -> f64,
) -> Vec<f64> {
    let [in0, in1, mut out] =
        drawn.each_ref().map(|all| all.iter().map(|x| narrow(*x)).collect::<Vec<T>>());
    execute(operation, &in0, &in1, &mut out).unwrap();
    out.into_iter().map(widen).collect()
}

proptest! {
    #![proptest_config(draw::config(200))]

    #[test]
    fn schedules_compute_what_an_einsum_does(operation in draw::operation(4)) {
        let operation = operation.check().unwrap();
        let mut salt = 0;
        let drawn = Tensor::ALL.map(|tensor| {
            salt += 3;
            numbers(operation.span(tensor), salt)
        });
        let found = match operation.primitives().data_type {
            DataType::Fp32 => executed(&operation, &drawn, |x| x as f32, f64::from),
            DataType::Fp64 => executed(&operation, &drawn, |x| x, |x: f64| x),
        };
        let [in0, in1, mut wanted] = drawn;
        einsum(&operation, &in0, &in1, &mut wanted);
        prop_assert_eq!(found, wanted);
    }
}

fn checked(axes: &str) -> Checked {
    let head = "data_type FP32\nprim_first Zero\nprim_main Copy\nprim_last None\n";
    Operation::from_text(&format!("{head}{axes}")).unwrap().check().unwrap()
}

#[test]
fn long_executions_are_refused() {
    let operation = checked("M seq 4294967296 0 0 2\nM prim 2 1 0 1");
    let errors = execute::<f32>(&operation, &[], &[], &mut []).unwrap_err();
    assert_eq!(errors.0[0].code, Code::TooLarge);
}

#[test]
fn many_axes_of_size_1_take_no_time() {
    let axes = format!("M seq 65536 0 0 2\n{}M prim 2 1 0 1", "K seq 1 1 1 0\n".repeat(20_000));
    let mut out = vec![0_f32; 131_072];
    execute(&checked(&axes), &[1.0, 2.0], &[], &mut out).unwrap();
    assert_eq!(out[131_070..], [1.0, 2.0]);
}

#[test]
fn tensors_suit() {
    let operation = checked("M prim 2 1 0 1");
    let code = |found: Result<(), carbyne_teir::Violations>| found.unwrap_err().0[0].code;
    assert_eq!(code(execute(&operation, &[0_f64; 2], &[], &mut [0_f64; 2])), Code::Tensors);
    assert_eq!(code(execute(&operation, &[0_f32; 1], &[], &mut [0_f32; 2])), Code::Tensors);
    assert_eq!(code(execute(&operation, &[0_f32; 2], &[], &mut [0_f32; 1])), Code::Tensors);
    let mut out = [5_f32; 2];
    execute(&operation, &[1.0, 2.0], &[], &mut out).unwrap();
    assert_eq!(out, [1.0, 2.0]);
}

#[test]
fn the_last_copy_along_k_stays() {
    let operation = checked("K seq 3 2 0 0\nM prim 2 1 0 1");
    let mut out = [0_f32; 2];
    execute(&operation, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[], &mut out).unwrap();
    assert_eq!(out, [5.0, 6.0]);
}
