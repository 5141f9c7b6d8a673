//! Tests the checks of operations: each violation has its code, its place and a help. Every code
//! has an operation under `teir/tests/violations` with the expected message, or is listed in
//! `ELSEWHERE`.

use carbyne_teir::{Code, Field, Operation, Place, Violation, lower};
use std::collections::BTreeSet;
use std::path::Path;

/// Codes that no operation raises when it is read, checked and lowered, with where they are tested.
const ELSEWHERE: [(Code, &str); 4] = [
    (Code::TooLarge, "reference"),
    (Code::Tensors, "reference"),
    (Code::Refused, "no operation is known that carbyne refuses"),
    (Code::Differs, "no operation is known whose program differs"),
];

#[test]
fn every_violation_has_a_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/violations");
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "teir" || e == "json"));
    files.sort();
    let mut seen = BTreeSet::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let lowered = Operation::read(&text).and_then(|o| o.check()).and_then(|o| lower(&o));
        let Err(errors) = lowered else { panic!("{}: no violation", file.display()) };
        let stem = file.file_stem().unwrap().to_str().unwrap();
        let code = errors.0[0].code;
        assert!(stem.starts_with(&code.as_str().to_lowercase()), "{stem}: {errors}");
        seen.insert(code);
        expect_test::expect_file![file.with_extension("out")].assert_eq(&format!("{errors}\n"));
    }
    for code in Code::ALL {
        let elsewhere = ELSEWHERE.iter().any(|(c, _)| c == code);
        assert!(seen.contains(code) != elsewhere, "{code} needs a file in {}", folder.display());
    }
}

const GEMM: &str = "data_type FP32\nprim_first Zero\nprim_main GEMM\nprim_last None\n";

/// The violations of axes under these primitives.
fn wrong(primitives: &str, axes: &str) -> Vec<Violation> {
    let operation = Operation::from_text(&format!("{primitives}{axes}")).unwrap();
    let errors = operation.check().unwrap_err().0;
    assert!(errors.iter().all(|e| !e.help.is_empty() && !e.wanted.is_empty()));
    errors
}

fn only(primitives: &str, axes: &str, code: Code, place: Place) -> Violation {
    let errors = wrong(primitives, axes);
    let found: Vec<_> = errors.iter().map(|e| (e.code, e.place)).collect();
    assert_eq!(found, [(code, place)], "{errors:?}");
    errors.into_iter().next().unwrap()
}

fn primitives(first: &str, main: &str, last: &str) -> String {
    format!("data_type FP64\nprim_first {first}\nprim_main {main}\nprim_last {last}\n")
}

const TILE: &str = "M prim 4 4 0 8\nN prim 8 0 4 1\nK prim 4 1 1 0\n";

#[test]
fn a_gemm_is_well_formed() {
    let operation = Operation::from_text(&format!("{GEMM}{TILE}")).unwrap().check().unwrap();
    assert_eq!(operation.steps(), 128);
    assert_eq!(carbyne_teir::Tensor::ALL.map(|t| operation.span(t)), [16, 32, 32]);
}

#[test]
fn vectors_have_one_length() {
    let mut operation = Operation::from_text(&format!("{GEMM}{TILE}")).unwrap();
    operation.schedule.dim_sizes.pop();
    operation.schedule.strides_in1.push(7);
    let errors = operation.check().unwrap_err();
    assert_eq!(operation.to_text().unwrap_err(), errors);
    let found: Vec<_> = errors.0.iter().map(|e| (e.code, e.place, &*e.help)).collect();
    let sizes = (Code::Lengths, Place::Field(Field::DimSizes), "add 1 entry to dim_sizes");
    let strides =
        (Code::Lengths, Place::Field(Field::StridesIn1), "remove 1 entry from strides_in1");
    assert_eq!(found, [sizes, strides]);
}

#[test]
fn most_vectors_say_how_many_axes_there_are() {
    let lengths = |roles: usize, others: [usize; 5]| {
        let mut operation = Operation::from_text(&format!("{GEMM}{}", TILE.repeat(3))).unwrap();
        let schedule = &mut operation.schedule;
        schedule.dim_types.truncate(roles);
        schedule.exec_types.truncate(others[0]);
        schedule.dim_sizes.truncate(others[1]);
        schedule.strides_in0.truncate(others[2]);
        schedule.strides_in1.truncate(others[3]);
        schedule.strides_out.truncate(others[4]);
        let found = operation.check().unwrap_err().0;
        assert!(found.iter().all(|e| e.code == Code::Lengths));
        found.iter().map(|e| (e.place.to_string(), e.wanted.clone())).collect::<Vec<_>>()
    };
    let says = |field: &str, wanted: &str| (field.to_owned(), wanted.to_owned());
    let found = lengths(2, [3, 3, 3, 3, 3]);
    assert_eq!(found, [says("dim_types", "3, as many as exec_types has")]);
    let wanted = "2, as many as dim_types has";
    let found = lengths(2, [3, 2, 3, 2, 3]);
    assert_eq!(found, ["exec_types", "strides_in0", "strides_out"].map(|f| says(f, wanted)));
}

#[test]
fn at_most_100_violations_are_said() {
    let axes = "M seq 0 1 0 1\n".repeat(200);
    assert_eq!(wrong(GEMM, &axes).len(), 100);
    let lines = Operation::from_text(&"M seq x 1 0 1\n".repeat(200)).unwrap_err().0;
    assert_eq!((lines.len(), lines[99].place), (100, Place::Line(100)));
}

#[test]
fn there_are_axes() {
    only(&primitives("None", "None", "None"), "", Code::NoAxes, Place::Field(Field::DimTypes));
}

#[test]
fn sizes_are_positive() {
    let axes = format!("{TILE}K seq 0 1 1 0\n");
    only(GEMM, &axes, Code::Size, Place::Axis(3, Field::DimSizes));
}

#[test]
fn tensors_that_take_no_part_have_no_stride() {
    let place = |field| Place::Axis(3, field);
    for (axis, field) in [
        ("M seq 2 16 1 32", Field::StridesIn1),
        ("N seq 2 1 16 32", Field::StridesIn0),
        ("K seq 2 1 16 32", Field::StridesOut),
    ] {
        only(GEMM, &format!("{TILE}{axis}"), Code::Stride, place(field));
    }
    let found =
        only(GEMM, &format!("{TILE}M seq 2 16 1 32"), Code::Stride, place(Field::StridesIn1));
    assert_eq!(
        found.to_string(),
        "TEIR05 axis 3, strides_in1: found 1, wanted 0, since in1 has no M axes\n  \
         help: set the stride to 0, or give the axis another role"
    );
}

#[test]
fn r1_asks_for_a_tile() {
    for (first, main, last, field) in [
        ("None", "Copy", "None", Field::PrimMain),
        ("Zero", "None", "None", Field::PrimFirst),
        ("ReLU", "None", "None", Field::PrimFirst),
        ("None", "None", "ReLU", Field::PrimLast),
    ] {
        let given = primitives(first, main, last);
        only(&given, "M seq 4 1 0 1", Code::R1, Place::Field(field));
        for axis in ["C prim 4 1 1 1", "M prim 4 1 0 1", "N prim 4 0 1 1"] {
            let text = format!("{given}{axis}");
            assert!(Operation::from_text(&text).unwrap().check().is_ok());
        }
    }
}

#[test]
fn r2_is_one_m_one_n_one_k() {
    let exec = Place::Field(Field::ExecTypes);
    only(GEMM, &format!("{TILE}K prim 2 4 4 0"), Code::R2, exec);
    only(GEMM, &format!("{TILE}M prim 2 16 0 32"), Code::R2, exec);
    only(GEMM, "M prim 4 4 0 8\nN prim 8 0 4 1", Code::R2, exec);
    let axes = format!("{TILE}C prim 2 16 32 32");
    only(GEMM, &axes, Code::R2, Place::Axis(3, Field::ExecTypes));
}

#[test]
fn r3_is_one_m_one_n_two_k() {
    let given = primitives("Zero", "BRGEMM", "None");
    let text = format!("{given}{TILE}K prim 2 16 32 0");
    assert!(Operation::from_text(&text).unwrap().check().is_ok());
    only(&given, TILE, Code::R3, Place::Field(Field::ExecTypes));
    let axes = format!("{TILE}K prim 2 16 32 0\nC prim 2 32 64 32");
    only(&given, &axes, Code::R3, Place::Axis(4, Field::ExecTypes));
}

#[test]
fn products_of_sizes_and_strides_fit() {
    let most = u64::MAX;
    let axes = format!("{TILE}K seq {most} {most} 0 0");
    let found: Vec<_> = wrong(GEMM, &axes).iter().map(|e| (e.code, e.place)).collect();
    let strides = (Code::Overflow, Place::Axis(3, Field::StridesIn0));
    assert_eq!(found, [strides, (Code::Overflow, Place::Axis(3, Field::DimSizes))]);
    let axes = format!("{TILE}C seq 2 0 0 {most}");
    only(GEMM, &axes, Code::Overflow, Place::Axis(3, Field::StridesOut));
}

#[test]
fn elements_of_the_output_are_distinct() {
    let place = |i| Place::Axis(i, Field::StridesOut);
    let found = only(GEMM, &format!("{TILE}M seq 2 16 0 31"), Code::Alias, place(3));
    assert_eq!(found.help, "set the stride to 32 or more");
    only(GEMM, &format!("{TILE}M seq 2 16 0 0"), Code::Alias, place(3));
    // Along an axis of size 1 nothing is repeated; inputs may be read twice.
    for axis in ["M seq 1 16 0 0", "M seq 2 0 0 32"] {
        assert!(Operation::from_text(&format!("{GEMM}{TILE}{axis}")).unwrap().check().is_ok());
    }
}

#[test]
fn copies_along_k_have_an_order() {
    let given = primitives("None", "Copy", "None");
    let tile = "M prim 4 1 0 1\n";
    for exec in ["prim", "shared"] {
        let axes = format!("{tile}K {exec} 2 4 0 0");
        only(&given, &axes, Code::Copy, Place::Axis(1, Field::ExecTypes));
    }
    for axis in ["K seq 2 4 0 0", "K prim 1 4 0 0", "K shared 1 4 0 0"] {
        assert!(Operation::from_text(&format!("{given}{tile}{axis}")).unwrap().check().is_ok());
    }
}
