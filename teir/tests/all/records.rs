//! Operations from and to JSON and the short text.

use crate::draw;
use carbyne_teir::{Code, Operation};
use proptest::prelude::*;

proptest! {
    #![proptest_config(draw::config(200))]

    #[test]
    fn json_and_text_come_back(operation in draw::operation(9)) {
        prop_assert_eq!(&Operation::from_json(&operation.to_json()).unwrap(), &operation);
        let text = operation.to_text().unwrap();
        prop_assert_eq!(&Operation::from_text(&text).unwrap(), &operation);
        prop_assert_eq!(&Operation::read(&text).unwrap(), &operation);
        prop_assert_eq!(&Operation::read(&operation.to_json()).unwrap(), &operation);
    }

    #[test]
    fn no_text_panics(
        text in "\\PC*",
        words in "((data_type|prim_main|M|seq|prim|[0-9]{1,21}|FP32|GEMM)[ \n])*",
    ) {
        for text in [text, words] {
            if let Ok(operation) = Operation::read(&text) {
                let _ = operation.check();
            }
        }
    }
}

/// The code and the place of what is wrong with a text.
fn wrong(text: &str) -> String {
    let errors = Operation::read(text).unwrap_err();
    assert_eq!(errors.0[0].code, Code::Syntax);
    errors.to_string()
}

#[test]
fn errors_of_texts_name_lines() {
    let axis = wrong("data_type FP32\nM seq 4 1");
    assert!(axis.starts_with("TEIR01 line 2: found 4 words"), "{axis}");
    let size = wrong("M seq 18446744073709551616 1 1 1");
    assert!(size.starts_with("TEIR01 line 1: found `18446744073709551616`"), "{size}");
    let word = wrong("prim_main GEMV");
    let wanted = "line 1: found `GEMV`, wanted None, Copy, GEMM or BRGEMM";
    assert!(word.contains(wanted), "{word}");
    assert!(wrong("data_type FP32\ndata_type FP32").contains("line 2: found a second one"));
    assert!(wrong("data_type FP32").contains("found no `prim_first`"));
    assert!(wrong("{\"schedule\": {}}").contains("missing field `dim_types`"));
    assert!(wrong("{\"plan\": {}}").contains("unknown field `plan`"));
}
