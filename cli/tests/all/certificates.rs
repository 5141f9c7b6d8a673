//! Tests `decompose --emit json`: from the JSON alone, a program can build the certificates again,
//! pass them to the checker (`carbyne_decompose::checker`), and find the operations that they are
//! about.

use crate::support::{carbyne, root};
use carbyne_decompose::certificate::Relation;
use carbyne_decompose::checker;
use carbyne_ir::layout::Layout;
use serde_json::Value;

/// The decomposition of an example, as data and as text.
fn decomposed(file: &str, options: &[&str]) -> (Value, String) {
    let path = root().join("examples").join(file).display().to_string();
    let usual = ["decompose", &path, "--arch", "sm_80"];
    let text = carbyne(&usual, "");
    assert_eq!(text.code, 0, "{}", text.stderr);
    let ran = carbyne(&[&usual[..], &["--emit", "json"], options].concat(), "");
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = String::from_utf8(text.stdout).expect("a text");
    (serde_json::from_slice(&ran.stdout).expect("JSON"), text)
}

fn layout(value: &Value) -> Layout {
    value.as_str().expect("a text").parse().expect("a layout")
}

fn list<T>(value: &Value, item: impl Fn(&Value) -> T) -> Vec<T> {
    value.as_array().expect("a list").iter().map(item).collect()
}

fn layouts<const N: usize>(value: &Value) -> [Layout; N] {
    list(value, layout).try_into().expect("so many layouts")
}

fn number(value: &Value) -> i64 {
    value.as_i64().expect("a number")
}

fn three(value: &Value) -> (i64, i64, i64) {
    (number(&value[0]), number(&value[1]), number(&value[2]))
}

/// Parses the relation as another program would.
fn relation(certificate: &Value) -> Relation {
    let p = &certificate["parts"];
    let numbers = |value: &Value| list(value, number);
    match certificate["relation"].as_str().expect("a name") {
        "copy" => Relation::Copy {
            p: layout(&p["p"]),
            q: layout(&p["q"]),
            f: layout(&p["f"]),
            g: layout(&p["g"]),
        },
        "gemm" => Relation::Gemm {
            inst: three(&p["inst"]),
            block: three(&p["block"]),
            groups: three(&p["groups"]),
            row: layouts(&p["row"]),
            tensors: layouts(&p["tensors"]),
            maps: layouts(&p["maps"]),
        },
        "pointwise" => Relation::Pointwise {
            extents: list(&p["extents"], numbers),
            layouts: list(&p["layouts"], layout),
            n: number(&p["n"]),
            loops: numbers(&p["loops"]),
            steps: list(&p["steps"], numbers),
        },
        "reduction" => Relation::Reduction {
            extents: numbers(&p["extents"]),
            axes: list(&p["axes"], |axis| number(axis) as usize),
            layouts: layouts(&p["layouts"]),
            values: layouts(&p["values"]),
            masks: numbers(&p["masks"]),
            through: list(&p["through"], layouts),
        },
        "part" => Relation::Part {
            f: layout(&p["f"]),
            g: layout(&p["g"]),
            view: layout(&p["view"]),
            offset: number(&p["offset"]),
            registers: layout(&p["registers"]),
            first: number(&p["first"]),
        },
        "exchange" => Relation::Exchange {
            f: layout(&p["f"]),
            g: layout(&p["g"]),
            map: layout(&p["map"]),
            steps: list(&p["steps"], |step| (number(&step[0]), number(&step[1]))),
        },
        other => panic!("`{other}` is no relation"),
    }
}

#[test]
fn certificates_are_evaluated_again() {
    let mut kinds = std::collections::BTreeMap::new();
    for file in ["gemm.cby", "softmax.cby", "tile/rope.cby"] {
        let (found, text) = decomposed(file, &[]);
        assert_eq!(found["text"], text);
        let certificates = found["certificates"].as_array().expect("a list");
        for certificate in certificates {
            let name = certificate["relation"].as_str().expect("a name").to_owned();
            *kinds.entry(name).or_insert(0) += 1;
            checker::check(&relation(certificate))
                .unwrap_or_else(|e| panic!("{certificate}: {e:?}"));
        }
    }
    assert!(
        ["copy", "gemm", "pointwise", "reduction", "part"].iter().all(|k| kinds.contains_key(*k))
    );
    // A wrong stride must be detected.
    let (mut found, _) = decomposed("gemm.cby", &[]);
    let certificates = found["certificates"].as_array_mut().expect("a list");
    let copy = certificates.iter_mut().find(|c| c["relation"] == "copy").expect("a copy");
    let f: Layout = layout(&copy["parts"]["f"]);
    let text = f.to_string();
    let (shape, stride) = text.split_once(':').expect("a layout");
    let doubled = Layout::new(
        shape.parse::<carbyne_ir::tuple::IntTuple>().expect("a shape"),
        stride.parse::<carbyne_ir::tuple::IntTuple>().expect("a stride").map(&mut |s| s * 2),
    );
    copy["parts"]["f"] = doubled.expect("a layout").to_string().into();
    assert!(checker::check(&relation(copy)).is_err(), "{copy}");
}

#[test]
fn lines_lead_to_the_operations() {
    let (found, _) = decomposed("gemm.cby", &["--top", "2"]);
    let tile_level = found["tile_level"].as_str().expect("a text");
    for certificate in found["certificates"].as_array().expect("a list") {
        let line = certificate["tile_level_line"].as_u64().expect("a line") as usize;
        let line = tile_level.lines().nth(line - 1).expect("a line of the text");
        let wanted = match certificate["relation"].as_str() {
            Some("gemm") => "MatMul",
            Some("copy") => "Move",
            _ => continue,
        };
        assert!(line.trim_start().starts_with(wanted), "{certificate}: {line}");
    }
    let solutions = found["solutions"].as_array().expect("a list");
    assert_eq!(solutions.len(), 2);
    assert!(solutions[0]["cycles"].as_f64() <= solutions[1]["cycles"].as_f64());
    // The only operation of the file is on its last line.
    let choices = solutions[0]["choices"].as_array().expect("a list");
    assert!(
        !choices.is_empty() && choices.iter().all(|choice| choice["line"] == 10),
        "{choices:?}"
    );
    assert_eq!(found["arch"], "sm_80");
    assert_eq!(found["search"]["ended_at_budget"], false);
}
