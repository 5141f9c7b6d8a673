//! Tests `--tuned`, which takes pins from a database of measurements: pins that are used, pins that
//! are no longer possible, and damaged databases. Without the feature `gpu`, `tune` and `bench` say
//! how to get it.

use crate::support::{carbyne, root};

/// A file with this text, for `--tuned`.
fn database(name: &str, text: &[u8]) -> String {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

fn decompose(tuned: &str) -> crate::support::Ran {
    let gemm = root().join("examples/gemm.cby").display().to_string();
    let args = ["--arch", "sm_80", "--emit", "ir", "--message-format", "json"];
    carbyne(&[&["compile", gemm.as_str(), "--tuned", tuned][..], &args].concat(), "")
}

/// An entry for `examples/gemm.cby`.
fn entry(by: &str) -> String {
    let atoms = carbyne_atoms::AtomTable::new(carbyne_atoms::Arch::Sm80).fingerprint();
    let n = "[(4096,4096):(4096,1)].f16";
    format!(
        "carbyne tuned 1\nMatMul.set (%0:{n}, %1:{n}) -> (%2:{n}) \
         acc=f32\tsm_80\tA100\t{atoms:016x}\t{by}\t300.000\t-\t-\n"
    )
}

#[test]
fn pins_are_taken_where_they_can_be() {
    let plain = decompose(&database("none.tuned", b"carbyne tuned 1\n"));
    assert_eq!((plain.code, plain.stderr.contains("tuned")), (0, false), "{}", plain.stderr);
    let by = "@ring[BM=64, BN=64, BK=32, KS=16, WM=2, WN=2, S=3]";
    let taken = decompose(&database("taken.tuned", entry(by).as_bytes()));
    assert_eq!(taken.code, 0, "{}", taken.stderr);
    assert!(String::from_utf8_lossy(&taken.stdout).contains(&format!("by={by}")));
    assert!(taken.stderr.contains(r#""kind":"note""#), "{}", taken.stderr);
    assert!(taken.warnings().is_empty());
    for (name, by, part) in [
        ("gone", "@gone[BM=64]", "there is no such strategy"),
        ("without", "@ring[BM=60]", ""),
        ("parameter", "@ring[NOPE=60]", "NOPE"),
        ("unlike", "@fold_rows", ""),
    ] {
        let ran = decompose(&database(&format!("{name}.tuned"), entry(by).as_bytes()));
        assert_eq!((ran.code, &ran.stdout), (0, &plain.stdout), "{name}: {}", ran.stderr);
        let warnings = ran.warnings();
        assert_eq!((warnings.len(), &warnings[0]["code"]), (1, &"R0714".into()), "{}", ran.stderr);
        assert!(
            ran.stderr.contains(part) && !ran.stderr.contains(r#""kind":"note""#),
            "{}",
            ran.stderr
        );
    }
}

/// The database on the page can be read.
#[test]
fn the_page_shows_what_is_read() {
    let page = std::fs::read_to_string(root().join("docs/tune.md")).unwrap();
    let from = page.find("<!-- tested: database -->").expect("the mark");
    let shown = page[from..].split("```").nth(1).and_then(|code| code.strip_prefix("text\n"));
    let atoms = carbyne_atoms::AtomTable::new(carbyne_atoms::Arch::Sm80).fingerprint();
    let text = shown.expect("a block").replace("0123456789abcdef", &format!("{atoms:016x}"));
    let ran = decompose(&database("page.tuned", text.as_bytes()));
    assert!(ran.code == 0 && ran.warnings().is_empty(), "{}", ran.stderr);
    assert!(
        ran.stderr.contains(r#""microseconds":2.0,"microseconds_without":3.0"#),
        "{}",
        ran.stderr
    );
    for field in ["the problem", "the fingerprint of the atoms", "microseconds of the model's pin"]
    {
        assert!(page.contains(&format!("| {field} |")), "{field}");
    }
}

#[test]
fn damaged_databases_are_errors_with_a_place() {
    let long = format!("carbyne tuned 1\n{}\n", "x\t".repeat(1 << 18));
    let one = entry("@ring");
    let twice = format!("{one}{}\n", one.lines().nth(1).unwrap());
    for (name, text, line) in [
        ("empty", &b""[..], 0),
        ("other", b"something else\n", 1),
        ("version", b"carbyne tuned 2\n", 1),
        ("cut", b"carbyne tuned 1\na\tb", 2),
        ("nul", b"carbyne tuned 1\n\0\n", 2),
        ("long", long.as_bytes(), 2),
        ("twice", twice.as_bytes(), 3),
    ] {
        let ran = decompose(&database(&format!("{name}.tuned"), text));
        let errors = ran.errors();
        assert_eq!((ran.code, &errors[0]["code"]), (2, &"R0713".into()), "{name}: {}", ran.stderr);
        assert!(errors[0]["help"].is_string(), "{name}");
        let at = &errors[0]["spans"][0]["start"]["line"];
        assert!(line == 0 || *at == line, "{name}: {}", errors[0]);
    }
    let ran = decompose(&database("binary.tuned", b"\xff\xfe"));
    assert_eq!((ran.code, &ran.errors()[0]["code"]), (2, &"P0005".into()), "{}", ran.stderr);
    let ran = decompose("nowhere/nothing.tuned");
    assert!(ran.code == 2 && ran.stderr.contains("cannot be read"), "{}", ran.stderr);
    let gemm = root().join("examples/gemm.cby").display().to_string();
    assert_eq!(carbyne(&["simulate", &gemm, "--tuned", "x"], "").code, 2);
}

#[cfg(not(feature = "gpu"))]
#[test]
fn without_the_feature_they_say_how_to_get_it() {
    for command in [&["tune", "x.cby", "--device"][..], &["bench", "gemm", "--device"]] {
        let ran = carbyne(&[command, &["--message-format", "json"]].concat(), "");
        assert_eq!((ran.code, &ran.errors()[0]["code"]), (2, &"R0708".into()), "{}", ran.stderr);
    }
}
