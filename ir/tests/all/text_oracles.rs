//! Runs the bodies of the fuzz targets about texts on damaged kernels and on random bytes.

use carbyne_ir::kit::oracles::{parse_never_panics, print_parse_identity};
use carbyne_ir::testing;
use proptest::collection::vec;
use proptest::prelude::*;

/// Kernels at two levels: one for the solver, and one written in full down to the last instruction.
const KERNELS: [&str; 2] = [
    include_str!("../../../examples/gemm.cby"),
    include_str!("../../../examples/graphene_fig1_ldmatrix.cby"),
];

#[test]
fn damaged_kernels() {
    for kernel in KERNELS {
        assert_eq!(print_parse_identity(kernel.as_bytes()), Ok(()));
        for at in (0..kernel.len()).step_by(7) {
            for with in *b"(}{0 @\n\xff" {
                let mut bytes = kernel.as_bytes().to_vec();
                bytes[at] = with;
                assert_eq!(parse_never_panics(&bytes), Ok(()));
                assert_eq!(print_parse_identity(&bytes), Ok(()));
            }
        }
    }
}

proptest! {
    #![proptest_config(testing::config(2000))]

    #[test]
    fn random_bytes(bytes in vec(any::<u8>(), 0..80)) {
        prop_assert_eq!(parse_never_panics(&bytes), Ok(()));
    }
}
