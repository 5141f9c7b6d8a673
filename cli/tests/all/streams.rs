//! Tests the streams of the command line: files that are rewritten in place, results on standard
//! output, readers that close the stream, and lines in diagnostics.

use crate::support::{carbyne, scratch};
use std::io::{self, Write};

const UNFORMATTED: &str = "carbyne 2\n%A :[8 , 8].f16.GL\n";
const FORMATTED: &str = "carbyne 2\n%A:[8,8].f16.GL\n";

#[test]
fn fmt_rewrites_in_place() {
    let file = scratch("fmt").join("a.cby");
    let path = file.to_str().unwrap();
    std::fs::write(&file, UNFORMATTED).unwrap();
    let ran = carbyne(&["fmt", path, "--check"], "");
    assert_eq!(ran.code, 1);
    assert!(ran.text().contains("-%A :[8 , 8].f16.GL\n+%A:[8,8].f16.GL\n"), "{}", ran.text());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), UNFORMATTED);
    assert!(carbyne(&["fmt", path], "").ok().stdout.is_empty());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), FORMATTED);
    carbyne(&["fmt", path, "--check"], "").ok();
    assert_eq!(carbyne(&["fmt", path, "-o", "-", "--expand"], "").ok().text(), EXPANDED);
}

const EXPANDED: &str = "carbyne 2\n%A:[(8,8):(8,1)].f16.GL\n";

#[test]
fn fmt_prints_standard_input() {
    assert_eq!(carbyne(&["fmt", "-"], UNFORMATTED).ok().text(), FORMATTED);
    assert_eq!(carbyne(&["fmt", "-", "--expand"], UNFORMATTED).ok().text(), EXPANDED);
    let ran = carbyne(&["fmt", "-"], "carbyne 2\n%A\n");
    assert_eq!((ran.code, ran.stdout.len()), (1, 0));
}

/// A reader that has closed the stream.
struct Gone;

impl Write for Gone {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::BrokenPipe.into())
    }
}

/// A full disk.
struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::StorageFull.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_may_leave() {
    let args = ["carbyne", "atoms"];
    assert_eq!(carbyne::run(args, &mut io::empty(), &mut Gone, &mut Gone), 0);
    let args = ["carbyne", "check", "-"];
    assert_eq!(carbyne::run(args, &mut &b"x"[..], &mut Gone, &mut Gone), 1);
    assert_eq!(carbyne::run(["carbyne"], &mut io::empty(), &mut Gone, &mut Gone), 2);
}

#[test]
fn a_full_disk_is_reported() {
    let mut err = vec![];
    let args = ["carbyne", "atoms"];
    assert_eq!(carbyne::run(args, &mut io::empty(), &mut Full, &mut err), 2);
    assert!(String::from_utf8_lossy(&err).contains("standard output cannot be written"));
}

#[test]
fn json_counts_characters_and_bytes() {
    let text = "carbyne 2\n// é\n%A:[8].f16.GL // é\n%B = %é\n%C = %D\n";
    let ran = carbyne(&["check", "-", "--message-format", "json"], text);
    let errors = ran.errors();
    assert_eq!(errors[0]["file"], "<stdin>");
    let span = &errors[0]["spans"][0];
    assert_eq!(span["start"]["line"], 4, "{span}");
    assert_eq!(
        span["byte_start"].as_u64().map(|b| text[b as usize..].starts_with("%é")),
        Some(true)
    );
    assert_eq!(span["start"]["column"], 6, "{span}");
}

#[test]
fn human_reports_are_plain_without_a_terminal() {
    let ran = carbyne(&["check", "-"], "carbyne 2\n%A:[8].f16.GL\n%t = %B.tile([3])\n");
    expect_test::expect![[r#"
        V0201

          × `%B` is not defined here
           ╭─[<stdin>:3:6]
         2 │ %A:[8].f16.GL
         3 │ %t = %B.tile([3])
           ·      ─┬
           ·       ╰── unknown name
           ╰────
          help: define it above, in this body or an enclosing one
    "#]]
    .assert_eq(&ran.stderr);
}

/// A program with two roles, which `simulate --arch` decomposes.
const ROLES: &str = "carbyne 2
%A:[64,256].f16.GL
%B:[64,256].f16.GL
Spec @twice <<<#grid:[1], #cta:[96]>>> (%A) -> (%B) means {
  %B = %A + %A
} {
  #users = #cta[0..64]
  #filler = #cta[64..96]
  for (k = 0; k < 16; k += 1) stages=3 {
    Move <<<#filler>>> (%A.tile([64,16])[0, k]) -> (%a:SH)
    BinaryPointwise.add <<<#users>>> (%a, %a) -> (%B.tile([64,16])[0, k])
  }
}
";

#[test]
fn lines_are_those_of_the_given_text() {
    let ran = carbyne(&["simulate", "-", "--arch", "sm_80"], ROLES).ok();
    // Generated statements without a meaning of their own appear as one line of the report.
    assert_eq!(ran.stderr.matches("not compared").count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("  line 9: not compared"), "{}", ran.stderr);
    let ran =
        carbyne(&["simulate", "-", "--arch", "sm_80", "--message-format", "json"], ROLES).ok();
    assert!(ran.stderr.contains("\"lines_of_decomposed_text\":true"), "{}", ran.stderr);
    assert!(ran.stderr.contains("\"given_lines\":{"), "{}", ran.stderr);
    let wrong = ROLES.replace("%a, %a", "%a, 0");
    let ran = carbyne(&["simulate", "-", "--arch", "sm_80"], &wrong);
    let place = "<stdin>:4:1";
    assert!(ran.stderr.contains(place), "{}", ran.stderr);
    assert!(ran.stderr.contains(" 11 │     BinaryPointwise.add"), "{}", ran.stderr);
    assert!(ran.stderr.contains("generated line "), "{}", ran.stderr);
    assert!(ran.stderr.contains("last written here by thread 0, line 11"), "{}", ran.stderr);
}
