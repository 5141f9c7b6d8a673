//! Tests texts and options that no command can process, such as endless streams, deep nesting, or
//! bytes that are not UTF-8. A wrong text gets its error code with a place; no command panics or
//! waits endlessly.

use crate::support::{carbyne, scratch};
use carbyne_ir::limits::{MAX_NESTING, MAX_TEXT_BYTES};

/// Checks that the text has exactly this error with a place, as a file and as standard input.
fn check(text: impl AsRef<[u8]>, code: &str, exit: i32) {
    let ran = carbyne(&["check", "-", "--message-format", "json"], text.as_ref());
    let errors = ran.errors();
    let codes: Vec<_> = errors.iter().map(|e| e["code"].as_str().unwrap_or("none")).collect();
    assert_eq!(codes, [code], "{}", ran.stderr);
    assert_eq!(ran.code, exit);
    let span = &errors[0]["spans"][0];
    assert!(span["byte_end"].as_u64() >= span["byte_start"].as_u64(), "{}", ran.stderr);
    let human = carbyne(&["check", "-"], text.as_ref());
    assert!(human.stderr.contains(code), "{}", human.stderr);
    assert!(human.stderr.len() < 20_000, "a report of {} bytes", human.stderr.len());
}

#[test]
fn too_long() {
    let exact = format!("carbyne 2\n//{}\n", "x".repeat(MAX_TEXT_BYTES - 13));
    assert_eq!(exact.len(), MAX_TEXT_BYTES);
    assert_eq!(carbyne(&["check", "-"], &exact).code, 0);
    check(exact + "\n", "X0001", 1);

    let file = scratch("too_long").join("long.cby");
    std::fs::write(&file, vec![b' '; 3 * MAX_TEXT_BYTES]).unwrap();
    let ran = carbyne(&["check", file.to_str().unwrap(), "--message-format", "json"], "");
    assert_eq!((ran.code, ran.errors()[0]["code"].as_str()), (1, Some("X0001")));
}

#[test]
fn an_endless_stream_is_refused() {
    let (mut out, mut err) = (vec![], vec![]);
    let args = ["carbyne", "check", "-"];
    assert_eq!(carbyne::run(args, &mut std::io::repeat(b' '), &mut out, &mut err), 1);
    assert!(String::from_utf8_lossy(&err).contains("X0001"));
}

#[test]
fn too_deep() {
    let nested = |open: &str, close: &str, n: usize| {
        format!("carbyne 2\nlet X = {}1{}\n", open.repeat(n), close.repeat(n))
    };
    assert_eq!(carbyne(&["check", "-"], nested("(", ")", MAX_NESTING)).code, 0);
    check(nested("(", ")", MAX_NESTING + 1), "X0002", 1);
    check(nested("(", ")", 500_000), "X0002", 1);
    check(format!("carbyne 2\n{}", "[".repeat(1_000_000)), "X0002", 1);
}

#[test]
fn bytes_that_are_no_text() {
    check("carbyne 2\n\0", "P0003", 1);
    check(b"carbyne 2\n// \xff\xfe\n", "P0005", 2);
    check("", "P0002", 1);
    check("carbyne 99\n", "P0002", 1);
    check("carbyne 2\nlet X = 99999999999999999999\n", "P0004", 1);
}

#[test]
fn numbers_at_the_edge() {
    let tensor = |dims: &str| format!("carbyne 2\n%A:{dims}.f32.GL\n");
    check(tensor("[4294967296,4294967296]"), "V0223", 1);
    check(tensor("[(2,2):(9223372036854775807,1)]"), "L0101", 1);
    check(tensor("[1125899906842624]"), "X0007", 1);
    check(tensor("[0]"), "V0208", 1);
    check("carbyne 2\nlet X = 9223372036854775807 + 1\n", "V0223", 1);
    check("carbyne 2\nlet X = 1 / 0\n", "V0223", 1);
    check("carbyne 2\n#t:[2048].thread\n", "X0005", 1);
}

#[test]
fn names_are_words() {
    for name in ["%a;system(\"x\")", "%a\"", "%a\\", "%a/**/", "%a\u{202e}", "%é", "%a\x1b[31m"] {
        let text = format!("carbyne 2\n{name}:[8].f32.GL\n");
        let ran = carbyne(&["check", "-", "--message-format", "json"], &text);
        assert_eq!(ran.code, 1, "{name}");
        assert_eq!(ran.errors()[0]["code"], "P0001", "{name}");
        let human = carbyne(&["check", "-"], &text).stderr;
        assert!(!human.contains(['\x1b', '\u{202e}']), "{human:?}");
    }
}

#[test]
fn long_lines_and_many_errors_make_short_reports() {
    let line = format!("carbyne 2\n{}\n", "%a = %b ".repeat(100_000));
    let ran = carbyne(&["check", "-"], &line);
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.len() < 50_000, "a report of {} bytes", ran.stderr.len());
    let lines = format!("carbyne 2\n{}", "%a = %b\n".repeat(100_000));
    let ran = carbyne(&["check", "-", "--message-format", "json"], &lines);
    assert_eq!(ran.errors().len(), carbyne_ir::limits::MAX_ERRORS);
}

#[test]
fn places_that_are_no_files() {
    let folder = scratch("places");
    for path in [folder.to_str().unwrap(), "no/such/file.cby", ""] {
        let ran = carbyne(&["check", path, "--message-format", "json"], "");
        assert_eq!(ran.code, 2, "{path}: {}", ran.stderr);
        assert!(ran.errors()[0]["code"].is_null());
    }
    let ran = carbyne(&["check", "-", "extra"], "");
    assert_eq!(ran.code, 2);
    assert_eq!(carbyne(&[], "").code, 2);
    assert_eq!(carbyne(&["--help"], "").code, 0);
}

#[test]
fn unknown_architectures_and_codes_name_the_known_ones() {
    let ran = carbyne(&["decompose", "-", "--arch", "sm_99"], "carbyne 2\n");
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("V0226") && ran.stderr.contains("sm_80"), "{}", ran.stderr);
    let ran = carbyne(&["explain", "V9999"], "");
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("V0204"));
    let ran = carbyne(&["atoms", "--arch", "sm_80", "ldmatrx.x4"], "");
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("ldmatrix.x4.b16"));
}

/// Without enough memory or threads, the simulator reports this or uses fewer; no internal error.
#[cfg(target_os = "linux")]
#[test]
fn a_machine_without_threads() {
    let example = crate::support::root().join("examples/vector_copy.cby");
    let mut ended = std::collections::BTreeSet::new();
    for kilobytes in [14, 15, 16, 17, 18, 20, 24, 40, 60, 80, 100, 150, 200, 400].map(|n| n * 1000)
    {
        let command = format!("ulimit -v {kilobytes}; exec \"$0\" simulate \"$1\" --arch sm_80");
        let ran = std::process::Command::new("sh")
            .args(["-c", &command, env!("CARGO_BIN_EXE_carbyne")])
            .arg(&example)
            .env("RAYON_NUM_THREADS", "64")
            .output()
            .expect("a shell");
        let said = String::from_utf8_lossy(&ran.stderr);
        // A failed allocation ends any program. The limit may be too low for loading the program.
        let starved = ran.status.code().is_none_or(|c| c == 127 || c == 134);
        let refused = ran.status.code() == Some(2) && said.contains("X0009");
        assert!(ran.status.success() || starved || refused, "{kilobytes}: {said}");
        assert!(!said.contains("internal error"), "{kilobytes}: {said}");
        ended.insert(ran.status.success());
    }
    assert!(ended.contains(&true));
}

#[test]
fn numbers_of_the_command_line_fit_their_types() {
    let text = "carbyne 2
%n:[].i32
%on:[].bool
%C:[64].i32.GL
#grid:[1].block
#cta:[64].thread
Spec @k <<<#grid, #cta>>> (%n, %on) -> (%C) means {
  Move (%n) -> (%C)
} {
  Move (%n) -> (%C)
}
";
    let run = |value: &str| carbyne(&["simulate", "-", "--in", value], text);
    for right in ["n=-2147483648", "n=7", "on=1"] {
        assert_eq!(run(right).code, 0, "{right}: {}", run(right).stderr);
    }
    for (wrong, why) in [
        ("n=2147483648", "2147483648 is not a valid i32"),
        ("n=2.5", "2.5 is not a valid i32"),
        ("n=two", "`two` is neither a number nor an existing file"),
        ("on=2", "2 is not a valid bool"),
        ("m=2", "the program has no tensor `%m`"),
    ] {
        let ran = run(wrong);
        assert_ne!(ran.code, 0, "{wrong}");
        assert!(ran.stderr.contains(why), "{wrong}: {}", ran.stderr);
    }
}

#[test]
fn a_file_is_read_as_far_as_its_tensor_goes() {
    let text = "carbyne 2

%A:[64].f32.GL
%B:[64].f32.GL

Move @k (%A) -> (%B)
";
    let symbolic = text.replace("[64]", "[N]").replacen('%', "sym N\n%", 1);
    // This file is endless.
    for (text, more) in [(text, &[][..]), (&symbolic, &["--sym", "N=64"][..])] {
        let args = [&["simulate", "-", "--in", "A=/dev/zero"], more].concat();
        let ran = carbyne(&args, text);
        assert_ne!(ran.code, 0);
        assert!(ran.stderr.contains("more than 64 elements, the maximum"), "{}", ran.stderr);
    }
}
