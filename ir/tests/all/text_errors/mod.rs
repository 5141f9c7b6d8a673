//! Tests the messages of syntax errors: code, place, headline and help.

mod heads;
mod tensors;

use carbyne_ir::limits::MAX_ERRORS;
use carbyne_ir::text::parse;
use expect_test::{Expect, expect};
use std::fmt::Write;

/// Compares the errors of `text`: code, place, quoted text, message; then related places and the
/// help, each on a line of its own.
fn check_whole(text: &str, expected: Expect) {
    let mut out = String::new();
    match parse(text) {
        Ok(_) => out.push_str("no error\n"),
        Err(errors) => {
            for e in errors.iter() {
                let (line, column) = e.span.line_col(text);
                let found = &text[e.span.start as usize..e.span.end as usize];
                let found: String = found.chars().take(24).collect();
                let headline = format!("{} {line}:{column} {found:?} {}", e.code, e.message);
                let related = e.related.iter().map(|(span, why)| {
                    let (line, column) = span.line_col(text);
                    format!("  {line}:{column} {why}")
                });
                let help = e.help.iter().map(|help| format!("  help: {help}"));
                for line in std::iter::once(headline).chain(related).chain(help) {
                    let _ = writeln!(out, "{}", wrapped(&line));
                }
            }
        }
    }
    expected.assert_eq(&out);
}

/// Breaks a line at blanks, so that no line has more than 88 columns.
fn wrapped(line: &str) -> String {
    let (mut out, mut columns) = (String::new(), 0);
    for (i, word) in line.split(' ').enumerate() {
        let width = word.chars().count();
        if i > 0 {
            let is_full = columns + 1 + width > 88;
            out.push_str(if is_full { "\n    " } else { " " });
            columns = if is_full { 4 } else { columns + 1 };
        }
        out.push_str(word);
        columns += width;
    }
    out
}

/// [`check_whole`], after a version line.
fn check(text: &str, expected: Expect) {
    check_whole(&format!("carbyne 2\n{text}"), expected);
}

#[test]
fn version() {
    check_whole(
        "",
        expect![[r#"
            P0002 1:1 "" the text is empty
              help: begin it with `carbyne 2`; if a command wrote it, see its errors
        "#]],
    );
    check_whole(
        "// only a comment\n",
        expect![[r#"
            P0002 2:1 "" the text does not begin with a format version
              help: write `carbyne 2` above the first statement
        "#]],
    );
    check_whole(
        "let M = 3\n",
        expect![[r#"
            P0002 1:1 "let" the text does not begin with a format version
              help: write `carbyne 2` above the first statement
        "#]],
    );
    check_whole(
        "carbyne 2\nlet = 3",
        expect![[r#"
            P0001 2:5 "=" expected a name, found `=`
              help: write constants as `let M = 256, N = 2 * M`
        "#]],
    );
    check_whole(
        "carbyne one\n",
        expect![[r#"
            P0002 1:1 "carbyne" the text does not begin with a format version
              help: write `carbyne 2` in its place
        "#]],
    );
    check_whole(
        "Carbyne 1\n",
        expect![[r#"
            P0002 1:1 "Carbyne" the text does not begin with a format version
              help: write `carbyne 2` in its place
        "#]],
    );
    check_whole(
        "carbyne 1000000000000000000000000000000000000000000000000000000000\n",
        expect![[r#"
            P0002 1:9 "100000000000000000000000" this build does not read format version
                `10000000000000000000000000000000…`
              help: write `carbyne 2` in its place, or use the version of carbyne that wrote the
                text
        "#]],
    );
    check_whole(
        "carbyne 1\nlet x = 3",
        expect![[r#"
            P0002 1:9 "1" this build does not read texts of version 1: see docs/version1.md
              help: write `carbyne 2` in its place
        "#]],
    );
    check_whole(
        "\u{feff}carbyne 2\nlet x = 3",
        expect![[r#"
        no error
    "#]],
    );
}

#[test]
fn statements() {
    check(
        "lett M = 3",
        expect![[r#"
        P0001 2:1 "lett" expected a statement, found `lett`
          help: did you mean `let`?
    "#]],
    );
    check(
        "Mvoe (%a) -> (%b)",
        expect![[r#"
            P0001 2:1 "Mvoe" expected a statement, found `Mvoe`
              help: did you mean `Move`?
        "#]],
    );
    check(
        "let M = 3\nMvoe (%a) -> (%b)\nlet = 3",
        expect![[r#"
            P0001 3:1 "Mvoe" expected a statement, found `Mvoe`
              help: did you mean `Move`?
            P0001 4:5 "=" expected a name, found `=`
              help: write constants as `let M = 256, N = 2 * M`
        "#]],
    );
    check(
        "let M = 3 $",
        expect![[r#"
            P0001 2:11 "$" expected an operator, `,` or the next statement, found `$`
              help: write constants as `let M = 256, N = 2 * M`
        "#]],
    );
    check(
        "let M 3",
        expect![[r#"
            P0001 2:7 "3" expected `=`, found `3`
              help: write constants as `let M = 256, N = 2 * M`
        "#]],
    );
    check(
        "let 3 = M",
        expect![[r#"
            P0001 2:5 "3" expected a name, found `3`
              help: write constants as `let M = 256, N = 2 * M`
        "#]],
    );
    check(
        "let M = ",
        expect![[r#"
            P0001 2:9 "" expected a number, found the end of the text
              help: write constants as `let M = 256, N = 2 * M`
        "#]],
    );
    check(
        "let _ = 3",
        expect![[r#"
            P0001 2:5 "_" expected a name, found `_`
              help: write constants as `let M = 256, N = 2 * M`
        "#]],
    );
    check(
        "sym K{min=64, most=3}",
        expect![[r#"
            P0001 2:15 "most" a symbol has no `most`
              help: use `min`, `max` or `div`
        "#]],
    );
    check(
        "sym K{min=64, min=3}",
        expect![[r#"
            P0001 2:15 "min" `min` is given twice
              help: remove one of them
        "#]],
    );
    check(
        "sym K{min=-1}",
        expect![[r#"
        P0001 2:11 "-" expected a number, found `-`
          help: write a negative number as `0 - 3`
    "#]],
    );
    check(
        "%A",
        expect![[r#"
            P0001 2:3 "" expected `[`, `:`, `.` or `=`, found the end of the text
              help: write a tensor as `%A:[8,8].f16.GL`, a view as `%a = %A.tile([8,8])[0, 0]`
        "#]],
    );
    check(
        "%A [8]",
        expect![[r#"
            P0001 2:7 "" expected `[`, `.` or `=`, found the end of the text
              help: write a tensor as `%A:[8,8].f16.GL`, a view as `%a = %A.tile([8,8])[0, 0]`
        "#]],
    );
    check(
        "#t:[8].warp",
        expect![[r#"
        P0001 2:8 "warp" unknown kind of thread `warp`
          help: use `thread` or `block`
    "#]],
    );
    check(
        "@m = %A.indices()",
        expect![[r#"
            P0001 2:9 "indices" expected something else, found `indices`
              help: write coordinates as `@m, @n = #grid.indices()`
        "#]],
    );
    check(
        "@m, n = #A.indices()",
        expect![[r#"
            P0001 2:5 "n" expected an index such as `@m`, found `n`
              help: write coordinates as `@m, @n = #grid.indices()`
        "#]],
    );
    check(
        "@m = #A",
        expect![[r#"
            P0001 2:8 "" expected `[` or `.`, found the end of the text
              help: write coordinates as `@m, @n = #grid.indices()`
        "#]],
    );
    check(
        "Allocate A:[8].f16",
        expect![[r#"
            P0001 2:10 "A" expected a tensor such as `%A`, found `A`
              help: write an allocation as `Allocate %s:[128,32].f16.SH{align=128}`
        "#]],
    );
    check(
        "async.comit",
        expect![[r#"
            P0001 2:1 "async.comit" unknown synchronization `async.comit`
              help: did you mean `async.commit`?
        "#]],
    );
    check(
        "async.wait",
        expect![[r#"
            no error
        "#]],
    );
    check(
        "barrier(%A)",
        expect![[r#"
            P0001 2:9 "%A" expected a thread tensor such as `#cta`, found `%A`
              help: write a barrier as `barrier` or `barrier(#w)`
        "#]],
    );
}

#[test]
fn numbers() {
    check(
        "let x = -3",
        expect![[r#"
            no error
        "#]],
    );
    check(
        "let x = 3 + -3",
        expect![[r#"
            no error
        "#]],
    );
    check(
        "let x = y %z",
        expect![[r#"
            P0001 2:13 "" expected `[`, `:`, `.` or `=`, found the end of the text
              help: for a remainder put a space behind `%`
        "#]],
    );
    check(
        "let x = y %3",
        expect![[r#"
            P0001 2:13 "" expected `[`, `:`, `.` or `=`, found the end of the text
              help: for a remainder put a space behind `%`
        "#]],
    );
    check(
        "let x = (3, 4)",
        expect![[r#"
            P0001 2:9 "(3, 4)" expected a number, found a tuple
              help: write one number; tuples are allowed in shapes, strides and tile sizes
        "#]],
    );
    check(
        "let x = ()",
        expect![[r#"
            P0001 2:9 "()" expected a number, found a tuple
              help: write one number; tuples are allowed in shapes, strides and tile sizes
        "#]],
    );
    check(
        "let x = (3",
        expect![[r#"
            P0001 2:11 "" expected an operator, `)` or `,`, found the end of the text
              help: close the `(` of line 2
        "#]],
    );
    check(
        "let x = 3)",
        expect![[r#"
            P0001 2:10 ")" expected an operator, `,` or the next statement, found `)`
              help: write constants as `let M = 256, N = 2 * M`
        "#]],
    );
    check(
        "let x = min(3)",
        expect![[r#"
            P0001 2:14 ")" expected an operator or `,`, found `)`
              help: write it as `min(a, b)`
        "#]],
    );
    check(
        "let x = 12ab",
        expect![[r#"
            P0001 2:9 "12ab" expected a number, found `12ab`
              help: write constants as `let M = 256, N = 2 * M`
        "#]],
    );
    check(
        "let x = 3.5",
        expect![[r#"
            no error
        "#]],
    );
    check(
        "let x = 9223372036854775807",
        expect![[r#"
        no error
    "#]],
    );
    check(
        "let x = 9223372036854775808",
        expect![[r#"
            P0004 2:9 "9223372036854775808" `9223372036854775808` does not fit 64 bits
              help: write a number up to 9223372036854775807
        "#]],
    );
    check(
        "let x = é",
        expect![[r#"
            P0001 2:9 "é" expected a number, found `é`
              help: write constants as `let M = 256, N = 2 * M`
        "#]],
    );
    check(
        "let x = \u{1}",
        expect![[r#"
            P0001 2:9 "\u{1}" expected a number, found `\u{1}`
              help: write constants as `let M = 256, N = 2 * M`
        "#]],
    );
}

#[test]
fn bodies() {
    check(
        "Spec () -> () {\n  barrier\n",
        expect![[r#"
        P0001 2:15 "{" this body is not closed
          4:1 the text ends here
          help: add `}`
    "#]],
    );
    check(
        "Spec () -> () {\n  barrier\n}\n}\n",
        expect![[r#"
        P0001 5:1 "}" `}` without a `{`
          help: remove it, or add the missing `{`
    "#]],
    );
    check(
        "Spec () -> () {\n  let = 3\n  barrier\n",
        expect![[r#"
            P0001 3:7 "=" expected a name, found `=`
              help: write constants as `let M = 256, N = 2 * M`
        "#]],
    );
    check(
        "Spec () -> () { } }\nlet = 3\n}",
        expect![[r#"
            P0001 2:19 "}" `}` without a `{`
              help: remove it, or add the missing `{`
            P0001 3:5 "=" expected a name, found `=`
              help: write constants as `let M = 256, N = 2 * M`
        "#]],
    );
}

#[test]
fn a_body_is_closed_behind_the_text_with_its_line_ends() {
    for (text, end) in [
        ("carbyne 2\nSpec () -> () {\n  barrier", "\n}\n"),
        ("carbyne 2\nSpec () -> () {\n  barrier\n", "}\n"),
        ("carbyne 2\r\nSpec () -> () {\r\n  barrier", "\r\n}\r\n"),
    ] {
        let errors = parse(text).expect_err("the body is open");
        let edit = &errors.iter().next().expect("an error").edits[0];
        assert_eq!(edit.span.start as usize, text.len());
        assert_eq!(edit.text, end);
        assert!(parse(&format!("{text}{end}")).is_ok());
    }
}

#[test]
fn reading_goes_on() {
    check(
        "let = 3
Move (%a,
  %b %c,
  %d) -> (%e) {
  let y == 4
  %x = %A.foo
  %y:[8].f16 = // a comment } with a brace {
  for (k = 0; k < ; k += 1) {
    barriers
    if (k < 3) { barrier( }
  }
  let z = 1
}
let q = 1 +
sym 3
Init (1) -> (%a)
",
        expect![[r#"
            P0001 2:5 "=" expected a name, found `=`
              help: write constants as `let M = 256, N = 2 * M`
            P0001 4:6 "%c" expected `[`, `)`, `,` or `.`, found `%c`
              help: write it as `Move <<<#grid, #cta>>> (%A) -> (%B)`
            P0001 6:9 "==" expected `=`, found `==`
              help: write constants as `let M = 256, N = 2 * M`
            P0001 7:11 "foo" expected `tile`, `reshape`, `transpose`, `permute`, `iota`, `mine`,
                `tv`, `scalar`, `elect`, `tensormap` or `peer`, found `foo`
              help: write a tensor as `%A:[8,8].f16.GL`, a view as `%a = %A.tile([8,8])[0, 0]`
            P0001 9:7 "(" expected an operator or the next statement, found `(`
              help: write a tensor as `%A:[8,8].f16.GL`, a view as `%a = %A.tile([8,8])[0, 0]`
            P0001 11:27 "}" expected a thread tensor such as `#cta`, found `}`
              help: write a barrier as `barrier` or `barrier(#w)`
            P0001 16:5 "3" expected an operator, `,` or the next statement, found `3`
              help: write constants as `let M = 256, N = 2 * M`
        "#]],
    );
    let many: String = (0..30).map(|i| format!("let {i}\n")).collect();
    let errors = parse(&format!("carbyne 2\n{many}")).expect_err("no name is a number");
    assert_eq!(errors.iter().count(), MAX_ERRORS);
}
