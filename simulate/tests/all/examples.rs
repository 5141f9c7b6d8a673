//! Tests three of the examples in the simulator: their bodies compute their meanings. One of them
//! runs only its first block.

use crate::support::good;
use carbyne_simulate::{Inputs, Options};

fn example(name: &str) -> String {
    let path = format!("{}/../examples/{name}.cby", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn vector_copy() {
    let report = good(&example("vector_copy"), &Options::default());
    assert!(report.kernels[0].complete && report.kernels[0].checked);
    assert_eq!(report.kernels[0].elements, 8192);
    let (from, to) = (report.outputs.get("in").unwrap(), report.outputs.get("out").unwrap());
    assert_eq!(from.values, to.values);
}

#[test]
fn ampere_gemm_by_hand() {
    let text = example("ampere_gemm_by_hand");
    for inputs in [Inputs::Seed(1), Inputs::Ints(1)] {
        let report = good(&text, &Options { inputs, ..Options::default() });
        let kernel = &report.kernels[0];
        assert!(kernel.complete && kernel.checked && kernel.unchecked.is_empty());
        assert_eq!(kernel.multiply_adds, 256 * 256 * 128);
        if inputs == Inputs::Ints(1) {
            assert_eq!(kernel.max_error, 0.0);
        } else {
            assert!(kernel.max_error > 0.0 && kernel.max_ratio <= 1.0);
        }
    }
}

#[test]
fn graphene_fig8() {
    let options = Options { blocks: Some(1), ..Options::default() };
    let report = good(&example("graphene_fig8_gemm"), &options);
    assert_eq!(report.kernels[0].blocks_run, [0]);
}
