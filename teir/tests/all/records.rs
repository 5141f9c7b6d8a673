//! Tests that operations are written to JSON and to the short text and read back unchanged, and
//! that errors in either form name their line or field.

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
    let all = wrong("M seq\nprim_main GEMV\nN prim 4 0 1 1\nprim_last no");
    let lines: Vec<&str> = all.lines().filter(|l| l.starts_with("TEIR01 line")).collect();
    assert!(
        lines.len() == 3 && lines[1].contains("line 2") && lines[2].contains("line 4"),
        "{all}"
    );
    let long = wrong(&format!("prim_main {}", "x".repeat(1000)));
    assert!(long.contains(&format!("found `{}..`", "x".repeat(64))), "{long}");
}

#[test]
fn texts_have_a_byte_order_mark_and_an_end() {
    let text = "data_type FP32\nprim_first Zero\nprim_main None\nprim_last None\nM prim 4 1 0 1";
    let operation = Operation::read(text).unwrap();
    assert_eq!(Operation::read(&format!("\u{feff}{text}")).as_ref(), Ok(&operation));
    let json = format!("\u{feff}{}", operation.to_json());
    assert_eq!(Operation::read(&json).as_ref(), Ok(&operation));
    for begin in ["", "{"] {
        let large = wrong(&format!("{begin}{}", " ".repeat(2 << 20) + text));
        assert!(large.starts_with("TEIR01 the operation: found more than 2097152"), "{large}");
    }
}

#[test]
fn errors_of_json_name_fields() {
    let good = r#"{"schedule": {"dim_types": ["M"], "exec_types": ["prim"], "dim_sizes": [4],
        "strides_in0": [1], "strides_in1": [0], "strides_out": [1]},
        "primitives": {"data_type": "FP32", "prim_first": "Zero", "prim_main": "None",
        "prim_last": "None"}}"#;
    assert!(Operation::read(good).is_ok());
    for (from, to, said) in [
        (r#"["M"]"#, r#"[{"M": null}]"#, "axis 0, dim_types: found an object, wanted C, M, N or K"),
        (r#"["M"]"#, r#""M""#, "dim_types: found `M`, wanted a list with an entry for each axis"),
        (
            "[4]",
            "[-4]",
            "axis 0, dim_sizes: found `-4`, wanted a number from 0 to 18446744073709551615",
        ),
        ("[4]", "[4.0]", "axis 0, dim_sizes: found `4.0`, wanted a number"),
        ("[4]", "[\"4\"]", "axis 0, dim_sizes: found `4`, wanted a number"),
        ("[4]", "[[4]]", "axis 0, dim_sizes: found a list, wanted a number"),
        (r#""FP32""#, "[0]", "data_type: found a list, wanted FP32 or FP64"),
        (
            r#""prim_last": "None""#,
            r#""prim_end": "None""#,
            "the operation: found `prim_end` in primitives",
        ),
        (r#""prim_last": "None""#, r#""prim_first": "None""#, "prim_first: found a second one"),
        (r#", "strides_out": [1]"#, "", "strides_out: found no `strides_out`"),
        (
            r#""primitives": {"#,
            r#""primitives": [], "x": {"#,
            "the operation: found a list for primitives",
        ),
        (r#"{"schedule": "#, r#"[{"schedule": "#, "line 4: found EOF while parsing a list"),
    ] {
        assert!(good.contains(from), "{from}");
        let found = wrong(&good.replace(from, to));
        assert!(found.contains(&format!("TEIR01 {said}")), "{to}: {found}");
    }
    let array = wrong(r#"[["M"]]"#);
    assert!(array.starts_with("TEIR01 the operation: found a list for an operation"), "{array}");
    let many = wrong(&good.replace("[4]", &format!("[{}]", vec!["-1"; 300].join(","))));
    assert_eq!(many.lines().count(), 200);
}
