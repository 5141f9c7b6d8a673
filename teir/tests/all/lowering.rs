//! Tests lowered programs: each computes the results of its operation, as it was lowered and after
//! it was decomposed, for random schedules and for special ones. Also tests the operations that
//! cannot be lowered.

use crate::draw;
use carbyne_embed::{Arch, AtomTable};
use carbyne_teir::{
    Checked, Code, Lowered, Operation, Place, Program, Violation, Violations, compare, lower,
    lower_to_spec,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::collections::BTreeMap;

/// One of the two lowerings.
pub(crate) type Lower = fn(&Checked) -> Result<Lowered, Violations>;

/// Compares the program with the semantics, as it is lowered and as it is decomposed for some
/// architectures.
fn held(operation: &Operation, lower: Lower, archs: &[Arch]) -> Result<&'static str, Violation> {
    let operation = operation.check().unwrap();
    let first = |errors: Violations| errors.0.into_iter().next().unwrap();
    let lowered = lower(&operation).map_err(first)?;
    let table = AtomTable::new(Arch::Sm80);
    compare(&operation, &lowered, &lowered.program, &table, 1).map_err(first)?;
    for arch in archs {
        let table = AtomTable::new(*arch);
        let Ok(decomposed) = lowered.program.decompose(&table) else { return Ok("not decomposed") };
        let program = Program::new(&decomposed.text).unwrap();
        compare(&operation, &lowered, &program, &table, 2).map_err(first)?;
    }
    Ok("equal")
}

/// Counts the outcomes of lowering drawn schedules.
fn outcomes(cases: u32, lower: Lower) -> BTreeMap<&'static str, u32> {
    let mut runner = TestRunner::new(draw::config(cases));
    let counts = std::cell::RefCell::new(BTreeMap::new());
    let number = std::cell::Cell::new(0);
    let outcome = runner.run(&draw::operation(9), |operation| {
        number.set(number.get() + 1);
        let archs: &[Arch] = match number.get() % 4 {
            0 => &[Arch::Sm80],
            2 => &[Arch::Sm90a],
            _ => &[],
        };
        let found = match held(&operation, lower, archs) {
            Ok(found) => found,
            Err(e) if e.code == Code::SharedK || e.code == Code::Unsuited => e.code.as_str(),
            Err(e) => {
                let text = operation.to_text().unwrap();
                return Err(TestCaseError::fail(format!("{e}\n{text}")));
            }
        };
        *counts.borrow_mut().entry(found).or_default() += 1;
        Ok(())
    });
    outcome.unwrap_or_else(|e| panic!("{e}"));
    counts.into_inner()
}

#[test]
fn programs_mean_what_drawn_schedules_do() {
    let counts = outcomes(200, lower);
    let equal = counts.get("equal").copied().unwrap_or_default();
    let all: u32 = counts.values().sum();
    assert!(equal * 4 >= all * 3 && !counts.contains_key("not decomposed"), "{counts:?}");
}

#[test]
fn specs_mean_what_drawn_schedules_do() {
    let counts = outcomes(100, |operation| lower_to_spec(operation, true));
    let equal = counts.get("equal").copied().unwrap_or_default();
    let all: u32 = counts.values().sum();
    assert!(equal * 2 >= all, "{counts:?}");
}

/// An operation of these primitives and axes.
fn operation([data_type, first, main, last]: [&str; 4], axes: &str) -> Operation {
    let head =
        format!("data_type {data_type}\nprim_first {first}\nprim_main {main}\nprim_last {last}\n");
    Operation::from_text(&format!("{head}{axes}")).unwrap()
}

const ARCHS: &[Arch] = &[Arch::Sm80, Arch::Sm90a];

#[test]
fn blocks_add_along_a_shared_k() {
    let axes = "K seq 2 8 8 0\nM seq 2 64 0 64\nM prim 4 16 0 8\nN prim 8 0 32 1\nK prim 8 1 1 0\n\
                K shared 2 128 256 0";
    for data_type in ["FP32", "FP64"] {
        let given = operation([data_type, "None", "GEMM", "None"], axes);
        assert_eq!(held(&given, lower, ARCHS), Ok("equal"));
        let text = lower(&given.check().unwrap()).unwrap().program.text().to_owned();
        assert!(text.contains("Move.add (%sum)"), "{text}");
    }
}

#[test]
fn long_narrow_tiles_have_more_threads() {
    for (m, n) in [(3, 300), (500, 5), (1, 1)] {
        let axes = format!("M prim {m} 1 0 {n}\nN prim {n} 0 1 1\nK prim 3 {m} {n} 0");
        for data_type in ["FP32", "FP64"] {
            let given = operation([data_type, "ReLU", "GEMM", "ReLU"], &axes);
            assert_eq!(held(&given, lower, ARCHS), Ok("equal"), "{m} by {n}");
        }
    }
}

#[test]
fn tiles_end_within_two_k_axes() {
    let axes = "M prim 5 1 0 1\nN prim 6 0 45 5\nK prim 9 5 5 0\nK prim 8 46 271 0";
    for data_type in ["FP32", "FP64"] {
        let given = operation([data_type, "Zero", "BRGEMM", "None"], axes);
        assert_eq!(held(&given, lower, ARCHS), Ok("equal"));
    }
}

#[test]
fn deep_products_are_taken_in_parts() {
    for (m, n) in [(8, 8), (16, 32), (32, 32), (64, 64), (128, 64), (272, 16)] {
        for (data_type, k) in [("FP32", 2048), ("FP32", 505), ("FP64", 2048), ("FP64", 136)] {
            let axes = format!("M prim {m} {k} 0 {n}\nN prim {n} 0 1 1\nK prim {k} 1 {n} 0");
            if data_type == "FP64" && m * n > 128 * 64 {
                continue;
            }
            let given = operation([data_type, "Zero", "GEMM", "None"], &axes).check().unwrap();
            let program = lower(&given).unwrap().program;
            assert!(program.text().contains("for (part0"), "{}", program.text());
            for arch in ARCHS {
                let decomposed = program.decompose(&AtomTable::new(*arch));
                assert!(decomposed.is_ok(), "{m} {n} {k} {data_type} {arch}: {decomposed:?}");
            }
        }
    }
    let axes = "K seq 2 72 576 0\nM prim 9 144 0 8\nN prim 8 0 1 1\nK prim 72 1 8 0";
    for data_type in ["FP32", "FP64"] {
        let given = operation([data_type, "ReLU", "GEMM", "ReLU"], axes);
        assert_eq!(held(&given, lower, ARCHS), Ok("equal"));
    }
}

#[test]
fn parts_of_two_k_axes_divide_the_fastest_or_are_whole_ones() {
    for (fast, slow, part) in [
        (8, 9, 40),
        (9, 8, 63),
        (24, 5, 48),
        (40, 3, 40),
        (67, 2, 67),
        (257, 2, 1),
        (72, 2, 24),
        (100, 2, 50),
        (1, 90, 48),
        (90, 1, 48),
    ] {
        let axes = format!(
            "M prim 9 1 0 8\nN prim 8 0 1 1\nK prim {slow} {} {} 0\nK prim {fast} 10 9 0",
            fast * 10 + 3,
            fast * 9 + 1
        );
        for data_type in ["FP32", "FP64"] {
            let given = operation([data_type, "Zero", "BRGEMM", "None"], &axes);
            let text = lower(&given.check().unwrap()).unwrap().program.text().to_owned();
            assert!(text.contains(&format!(".tile([16,{part}])[0, part0]")), "{fast}: {text}");
            assert_eq!(held(&given, lower, &[Arch::Sm80]), Ok("equal"), "{fast} {slow}");
        }
    }
}

#[test]
fn strides_along_axes_of_size_1_are_not_used() {
    let most = u64::MAX;
    for axes in [
        format!("M prim 1 {most} 0 {most}\nN prim 5 0 1 1\nK prim 3 1 5 0\nK prim 1 {most} 0 0"),
        format!("M prim 4 1 0 1\nN prim 1 0 {most} {most}\nK prim 1 1 1 0\nK prim 1 {most} 0 0"),
        format!(
            "C seq 1 0 0 {most}\nM prim 2 1 0 1\nN prim 3 0 1 2\nK prim 1 {most} 1 0\n\
                 K prim 12 2 3 0\nK seq 1 {most} {most} 0\nM shared 1 {most} 0 {most}"
        ),
    ] {
        let given = operation(["FP32", "Zero", "BRGEMM", "None"], &axes);
        assert_eq!(held(&given, lower, ARCHS), Ok("equal"));
        assert_eq!(held(&given, |o| lower_to_spec(o, true), &[]), Ok("equal"));
    }
    let axes = format!("M prim 1 {most} 0 {most}\nM prim 1 7 0 7\nK seq 1 {most} 0 0");
    let given = operation(["FP32", "ReLU", "Copy", "ReLU"], &axes);
    assert_eq!(held(&given, lower, ARCHS), Ok("equal"));
    assert_eq!(held(&given, |o| lower_to_spec(o, true), ARCHS), Ok("equal"));
}

#[test]
fn specs_divide_k_where_powers_of_two_do() {
    for (prim, seq, first) in [(2, 5, 2), (5, 2, 2), (16, 8, 16), (8, 16, 16), (48, 32, 48)] {
        let axes = format!(
            "M prim 8 1000 0 8\nN prim 8 0 1 1\nK seq {seq} 1 1000 0\nK prim {prim} 50 2000 0"
        );
        let given = operation(["FP32", "Zero", "GEMM", "None"], &axes).check().unwrap();
        let text = lower_to_spec(&given, false).unwrap().program.text().to_owned();
        assert!(text.contains(&format!("%in0:[(8,({first},")), "{text}");
    }
    let axes = "M prim 16 300 0 16\nN prim 16 0 300 1\nK seq 8 1 16 0\nK prim 5 10 1 0";
    let given = operation(["FP32", "Zero", "GEMM", "None"], axes);
    assert_eq!(held(&given, |operation| lower_to_spec(operation, true), ARCHS), Ok("equal"));
}

#[test]
fn large_tiles_are_taken_in_parts() {
    let axes = "M prim 100 70 0 7\nN prim 7 0 1 1\nC prim 11 7000 0 700";
    for main in ["Copy", "None"] {
        let given = operation(["FP32", "ReLU", main, "None"], axes);
        assert_eq!(held(&given, lower, ARCHS), Ok("equal"));
        let text = lower(&given.check().unwrap()).unwrap().program.text().to_owned();
        assert!(text.contains("for (part"), "{text}");
    }
}

#[test]
fn specs_ask_for_the_tile_of_the_schedule() {
    let spec = |axes: &str, pins| {
        let given = operation(["FP32", "None", "GEMM", "None"], axes);
        let lowered = lower_to_spec(&given.check().unwrap(), pins).unwrap();
        (lowered.program.text().lines().last().unwrap().to_owned(), lowered.open.join(""))
    };
    let tile = "M prim 16 32 0 64\nN prim 8 0 1 1\nK prim 16 1 64 0\n";
    let axes = format!("M shared 2 512 0 1024\nN shared 4 0 8 8\nK seq 2 16 1024 0\n{tile}");
    let head = "MatMul @teir (%in0, %in1) -> (%out)";
    assert_eq!(spec(&axes, true), (format!("{head} tile=(16,8,16)"), String::new()));
    assert_eq!(spec(&axes, false), (head.to_owned(), String::new()));
    let open = |axes: &str| spec(axes, true).1;
    let said =
        "`tile=` is left to decompose: its tile of 4 along M is not a power of two from 8 to 128";
    assert_eq!(open(&axes.replace("M prim 16", "M prim 4")), said);
    let strided = "M shared 2 1 0 64\nM prim 16 2 0 128\nN prim 8 0 1 1\nK prim 16 32 64 0";
    let said = "`tile=` is left to decompose: its prim axis along M is not the fastest one";
    assert_eq!(open(strided), said);
}

#[test]
fn specs_set_their_output_or_add_to_it() {
    let axes = "M prim 16 16 0 16\nN prim 16 0 16 1\nK prim 16 1 1 0";
    for (first, last) in [("None", "ReLU"), ("ReLU", "None")] {
        let given = operation(["FP32", first, "GEMM", last], axes).check().unwrap();
        let found = lower_to_spec(&given, true).unwrap_err().0.remove(0);
        assert_eq!(
            (found.code, found.help.as_str()),
            (Code::Unsuited, "lower the operation to the tile level")
        );
    }
}

#[test]
fn specs_have_shared_k_axes() {
    let axes = "M prim 4 16 0 8\nN prim 8 0 16 1\nK prim 8 1 1 0\nK shared 2 8 8 0";
    let given = operation(["FP64", "Zero", "GEMM", "ReLU"], axes);
    assert_eq!(held(&given, |operation| lower_to_spec(operation, true), ARCHS), Ok("equal"));
}

/// The violation for which an operation of these primitives and axes is refused.
fn refused(primitives: [&str; 4], axes: &str) -> Violation {
    let operation = operation(primitives, axes).check().unwrap();
    lower(&operation).unwrap_err().0.into_iter().next().unwrap()
}

#[test]
fn blocks_that_share_tiles_only_add() {
    let axes = "M prim 4 8 0 8\nN prim 8 0 8 1\nK prim 8 1 1 0\nK shared 2 32 64 0";
    let found = refused(["FP32", "Zero", "GEMM", "None"], axes);
    let place = Place::Axis(3, carbyne_teir::Field::ExecTypes);
    assert_eq!((found.code, found.place), (Code::SharedK, place));
    assert_eq!(refused(["FP64", "None", "GEMM", "ReLU"], axes).code, Code::SharedK);
}

#[test]
fn what_suits_no_kernel_is_refused() {
    let gemm = ["FP32", "Zero", "GEMM", "None"];
    let large = "M prim 4096 64 0 4096\nN prim 4096 0 64 1\nK prim 64 1 1 0";
    assert_eq!(refused(gemm, large).code, Code::Unsuited);
    let grid = "M shared 4294967296 0 0 256\nM prim 16 16 0 16\nN prim 16 0 16 1\nK prim 16 1 1 0";
    assert_eq!(refused(gemm, grid).code, Code::Unsuited);
    let nothing = refused(["FP32", "None", "None", "None"], "M prim 16 16 0 16");
    assert_eq!(nothing.code, Code::Unsuited);
    let copy = ["FP32", "None", "Copy", "None"];
    let axes = "N seq 2 0 0 0\n".repeat(16).replace("2 0 0 0", "2 0 0 STRIDE");
    let axes = (0..16).fold(axes, |axes, i| axes.replacen("STRIDE", &(2 << i).to_string(), 1));
    assert_eq!(refused(copy, &format!("{axes}M prim 2 1 0 1")).code, Code::Unsuited);
    let sixteen = operation(copy, &format!("{axes}M prim 1 1 0 1")).check().unwrap();
    assert!(lower(&sixteen).is_ok() && lower_to_spec(&sixteen, true).is_ok());
    for (data_type, most) in [("FP32", 1u64 << 45), ("FP64", 1 << 44)] {
        let copy = [data_type, "None", "Copy", "None"];
        let axes = |stride| format!("M shared 2 1 0 {stride}\nM prim 1 1 0 1");
        let largest = operation(copy, &axes(most - 1)).check().unwrap();
        assert!(lower(&largest).is_ok() && lower_to_spec(&largest, true).is_ok());
        assert_eq!(refused(copy, &axes(most)).code, Code::Unsuited);
    }
}

#[test]
fn no_size_panics() {
    let sizes = [1, 2, 1 << 31, 1 << 62, u64::MAX - 1, u64::MAX];
    for size in sizes {
        for stride in [0, 1, 1 << 32, u64::MAX] {
            for exec in ["seq", "shared", "prim"] {
                for main in ["None", "Copy", "GEMM"] {
                    let text = format!(
                        "data_type FP32\nprim_first Zero\nprim_main {main}\nprim_last ReLU\n\
                         M prim 2 1 0 1\nN prim 2 0 1 2\nK prim 1 0 0 0\n\
                         M {exec} {size} 0 0 {stride}"
                    );
                    if let Ok(operation) = Operation::from_text(&text).unwrap().check() {
                        let _ = lower(&operation);
                    }
                }
            }
        }
    }
}
