//! Runs the bodies of the fuzz targets about layouts on committed inputs, damaged inputs and random
//! bytes.

use carbyne_ir::kit::oracles::{algebra_against_brute_force, layout_text_never_panics};
use carbyne_ir::testing;
use proptest::collection::vec;
use proptest::prelude::*;

/// Committed input texts, by topic.
const TEXTS: &[&str] = &[
    "8:1",
    "(8):(1)",
    "((2,2),8):((1,16),2)",
    "():()",
    "(1,(),2):(3,(),4)",
    " ( 4 , 2 ) : ( 2 , -1 ) ",
    "(9223372036854775807,1):(1,9223372036854775807)",
    "(2,3):(-9223372036854775808,0)",
    "(4294967296,4294967296):(0,0)",
    "(2,2):(9223372036854775807,-9223372036854775808)",
    "((((((((1))))))):1",
    "4:2:1",
    "0:1",
    "1@0",
];

/// Bytes that once caused failures, or that reach rare cases.
const BYTES: &[&[u8]] = &[
    &[],
    &[6, 2, 3, 0, 0, 5, 1, 14, 0, 1, 0, 2, 3, 3, 0, 0, 12, 0, 0, 4, 1, 1],
    &[16, 3, 7, 2, 9, 4, 1, 10, 3, 0, 0, 0, 2, 0, 1, 1, 1, 4, 3, 0, 0, 0, 0, 0, 3, 1, 1],
    &[19, 2, 4, 1, 9, 5, 0, 10, 0, 2, 3, 3, 3, 4, 4, 4, 0, 0, 3, 3, 0, 0, 12, 0, 0, 3, 1, 1],
    &[200, 2, 250, 255, 2, 0, 3, 255, 255, 255, 255, 255, 255, 255, 127, 1, 1, 250, 1, 130],
];

#[test]
fn committed_inputs() {
    for text in TEXTS {
        assert_eq!(layout_text_never_panics(text.as_bytes()), Ok(()), "{text}");
    }
    for bytes in BYTES {
        assert_eq!(algebra_against_brute_force(bytes), Ok(()), "{bytes:?}");
    }
}

#[test]
fn damaged_texts() {
    for text in TEXTS {
        for at in 0..text.len() {
            for with in *b"0(),:-" {
                let mut bytes = text.as_bytes().to_vec();
                bytes[at] = with;
                assert_eq!(layout_text_never_panics(&bytes), Ok(()), "{bytes:?}");
            }
        }
    }
}

#[test]
fn every_operation_is_reached() {
    for operation in 0..=255u8 {
        for fill in 0..=255u8 {
            let mut bytes = vec![operation];
            bytes.extend((0..40u8).map(|k| k.wrapping_mul(fill).wrapping_add(fill >> 3)));
            assert_eq!(algebra_against_brute_force(&bytes), Ok(()), "{bytes:?}");
        }
    }
}

proptest! {
    #![proptest_config(testing::config(2000))]

    #[test]
    fn random_bytes(bytes in vec(any::<u8>(), 0..80)) {
        prop_assert_eq!(algebra_against_brute_force(&bytes), Ok(()));
        prop_assert_eq!(layout_text_never_panics(&bytes), Ok(()));
    }

    #[test]
    fn text_of_the_alphabet(text in "[0-9(),: -]{0,60}") {
        prop_assert_eq!(layout_text_never_panics(text.as_bytes()), Ok(()));
    }
}
