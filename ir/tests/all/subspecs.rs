//! Tests the expansion of sub-specs (specs with parameters, used like functions): names, operands,
//! parameters and comments, and the bound on its size.

use carbyne_ir::diag::Code;
use carbyne_ir::resolve::elaborate;
use carbyne_ir::{limits, text};
use std::fmt::Write;

/// The expanded text of a module. Checks that expanding it again does not change it.
fn written_out(src: &str) -> String {
    let module = text::parse(src).unwrap();
    assert_eq!(text::parse(&text::print(&module)).unwrap(), module, "prints as it reads");
    let written = text::print(&elaborate(&module, src).unwrap_or_else(|e| panic!("{e}")));
    let again = text::parse(&written).unwrap();
    assert_eq!(text::print(&elaborate(&again, &written).unwrap()), written);
    written
}

/// The code and message of the first error of a module.
fn refused(src: &str) -> (Code, String) {
    let errors = text::parse(src).and_then(|m| elaborate(&m, src).map(|_| ())).unwrap_err();
    let first = errors.iter().next().unwrap();
    assert!(first.help.is_some(), "{first}");
    (first.code, first.message.clone())
}

/// A kernel of 32 threads with this body, after these definitions.
fn kernel(defs: &str, body: &str) -> String {
    format!(
        "carbyne 2\n%A:[8,64].f32.GL\n%B:[8,64].f32.GL\n{defs}\n\
         Spec @k <<<#grid:[@i < 8], #cta:[32]>>> (%A) -> (%B) {{\n{body}\n}}\n"
    )
}

const ROW: &str = "%a:RF = move(%A.tile([1,64])[@i, 0])\n";
const BACK: &str = "%B.tile([1,64])[@i, 0] = move(%b)";

#[test]
fn names_in_scope_are_not_hidden() {
    let defs = "def @f[N] (%x) -> (%y:[1,N].f32) {\n\
                %b = %x * 2.0\n#w = #all.tile([4])\nfor (@i = 0; @i < N; @i += 64) {\n\
                let k = @i + 1\n%y = %b * 0.5\n}\n}";
    let src = format!("#all:[32].thread\n{defs}");
    let body = format!("{ROW}let k = 3\n@f[k * 21 + 1] (%a) -> (%b)\n{BACK}");
    let written = written_out(&kernel(&src, &body));
    for line in [
        "Allocate %b:[1,64].f32.RF{?}",
        "Spec <<<#grid, #cta>>> (%a) -> (%b) {",
        "Allocate %b_2:[1,64].f32.RF{?}",
        "BinaryPointwise.mul <<<#grid, #cta>>> (%a, 2) -> (%b_2)",
        "for (@i_2 = 0; @i_2 < 64; @i_2 += 64) {",
        "let k_2 = @i_2 + 1",
        "BinaryPointwise.mul <<<#grid, #cta>>> (%b_2, 0.5) -> (%b)",
        "#w = #all.tile([4])",
    ] {
        assert!(written.lines().any(|l| l.trim() == line), "`{line}` in\n{written}");
    }
}

#[test]
fn operands_are_exchanged_at_once() {
    // The formal operands have the names of the operands, exchanged.
    let defs = "def @f[N, M] (%a, %c) -> (%y:[N,M].f32) { %y = %c - %a }\n\
                def @g[M, N] (%c, %a) -> (%y:[M,N].f32) { @f[M, N] (%a, %c) -> (%y) }";
    let body = format!("{ROW}%c = %a * 2.0\n@g[1, 64] (%a, %c) -> (%b)\n{BACK}");
    let written = written_out(&kernel(defs, &body));
    let line = "BinaryPointwise.sub <<<#grid, #cta>>> (%a, %c) -> (%b)";
    assert!(written.contains(line), "{written}");
}

#[test]
fn types_and_numbers_are_given() {
    let defs = "def @f[N, F, T:type] (%x:[1,N].f32, %s) -> (%y:[1,N].T) {\n\
                Allocate %t:[1,N].T.RF{?}\n%t = cast(%x * %s + F, T)\n\
                %u:T = move(%t)\n%y = %u * %t\n}";
    let body = format!(
        "{ROW}@f[64, 1.0 / 4, f16] (%a, -2.0) -> (%c)\n@f[64, -1, f32] (%a, 8) -> (%b)\n\
                 %d = cast(%c, f32)\n%b = %b + %d\n{BACK}"
    );
    let written = written_out(&kernel(defs, &body));
    for part in [
        "Allocate %t:[1,64].f16.RF{?}",
        "Allocate %u:[1,64].f16.RF{?}",
        "%a, -2)",
        ", 0.25)",
        ", -1)",
    ] {
        assert!(written.contains(part), "`{part}` in\n{written}");
    }
    // A cast to the type of its operand becomes a move.
    assert_eq!(written.matches("UnaryPointwise.cast").count(), 2, "{written}");
}

#[test]
fn views_of_what_has_a_meaning_get_names() {
    let defs = "def @f[N] (%x) -> (%y) means { %y = %x * (1.0 / N) }\n{ %y = %x * (1.0 / N) }\n\
                def @g (%x) -> (%y) means { %y = %x + 1.0 }";
    let body = "@g (%A.tile([1,64])[@i, 0]) -> (%B.tile([1,64])[@i, 0])";
    let written = written_out(&kernel(defs, body));
    assert!(written.contains("%x_1 = %A.tile([1,64])[@i, 0]"), "{written}");
    assert!(
        written
            .contains("(%x_1) -> (%y_1) means {\n    BinaryPointwise.add (%x_1, 1) -> (%y_1)\n  }"),
        "{written}"
    );
}

#[test]
fn comments_of_definitions_are_kept() {
    let src = kernel(
        "// above\ndef @f (%x) -> (%y) { // behind\n  // within\n  %y = %x + 1.0\n}",
        &format!("{ROW}%b = %a + 1.0\n// use\n@f (%a) -> (%b)\n{BACK}"),
    );
    let written = written_out(&src);
    for comment in ["// above", "// behind", "  // use\n  Spec", "    // within"] {
        assert!(written.contains(comment), "`{comment}` in\n{written}");
    }
}

#[test]
fn unused_definitions_are_checked() {
    let message = |defs: &str| refused(&kernel(defs, &format!("{ROW}%b = %a + 1.0\n{BACK}")));
    assert_eq!(message("def @f (%x) -> (%y) { %y = %z + 1.0 }").0, Code::UnknownName);
    assert_eq!(message("def @f (%x) -> (%x) { %x = %x + 1.0 }").0, Code::Redefined);
    assert_eq!(message("def @f (%A) -> (%y) { %y = %A + 1.0 }").0, Code::Redefined);
    assert_eq!(message("def @f (%x) -> (%y) { }").0, Code::EmptyBody);
    assert_eq!(message("def @f (%x) -> (%y) { %y = %x }").0, Code::Redefined);
    assert_eq!(message("def @f[T] (%x:[8].T) -> (%y) { %y = -%x }").0, Code::Syntax);
    assert_eq!(message("def @f (%x) -> (%y) { %y = cast(%x, T) }").0, Code::Syntax);
    assert_eq!(message("def @f[f16:type] (%x) -> (%y) { %y = -%x }").0, Code::Syntax);
    assert_eq!(message("def @f (%x:[8].f16.SH{?}) -> (%y) { %y = -%x }").0, Code::SubSpec);
    let inner = "def @f (%x) -> (%y) { def @g (%z) -> (%w) { %w = -%z }\n%y = -%x }";
    assert_eq!(message(inner).0, Code::Placement);
}

#[test]
fn what_is_written_out_is_bounded() {
    // Each sub-spec uses the preceding one twice.
    let mut defs = "def @f0 (%x) -> (%y) { %y = %x + 1.0\n%y = %y + %x }\n".to_owned();
    for i in 1..30 {
        let j = i - 1;
        let _ =
            writeln!(defs, "def @f{i} (%x) -> (%y) {{ @f{j} (%x) -> (%y)\n@f{j} (%x) -> (%y) }}");
    }
    let body = format!("{ROW}%b = %a + 1.0\n@f29 (%a) -> (%b)\n{BACK}");
    let (code, message) = refused(&kernel(&defs, &body));
    assert_eq!(code, Code::SubSpec, "{message}");
    // Numbers that double.
    let mut defs =
        "def @f0[N] (%x) -> (%y) { %y = %x.tile([1,64 + (N - N)])[0, 0] + 1.0 }\n".to_owned();
    for i in 1..30 {
        let j = i - 1;
        let _ = writeln!(defs, "def @f{i}[N] (%x) -> (%y) {{ @f{j}[N * N + N] (%x) -> (%y) }}");
    }
    let body = format!("{ROW}%b = %a + 1.0\n@f29[@i] (%a) -> (%b)\n{BACK}");
    assert!(matches!(
        refused(&kernel(&defs, &body)).0,
        Code::ExprTooLong | Code::Overflow | Code::SubSpec
    ));
    // A long chain of uses.
    let mut defs = "def @f0 (%x) -> (%y) { %y = %x + 1.0 }\n".to_owned();
    for i in 1..=limits::MAX_CALLS {
        let j = i - 1;
        let _ = writeln!(defs, "def @f{i} (%x) -> (%y) {{ @f{j} (%x) -> (%y) }}");
    }
    let body = |i: usize| format!("{ROW}%b = %a + 1.0\n@f{i} (%a) -> (%b)\n{BACK}");
    assert_eq!(refused(&kernel(&defs, &body(limits::MAX_CALLS))).0, Code::TooDeep);
    written_out(&kernel(&defs, &body(limits::MAX_CALLS - 1)));
}

#[test]
fn heads_declare_threads_for_their_kernel() {
    let one = |name: &str, n: u32, more: &str| {
        format!(
            "Spec @{name} <<<#grid:[@i < {n}, 2], #cta:[32]>>> (%A) -> (%B) {{\n\
             #w = #cta.tile([8])\n\
             {more}%t = %A * 2.0\n%B = cast(%t, f16)\nMove <<<#grid, #cta>>> (%B) -> (%B)\n}}\n"
        )
    };
    let head = "carbyne 2\n%A:[8,64].f32.GL\n%B:[8,64].f16.GL\n";
    let src = format!("{head}{}{}{}", one("a", 8, ""), one("b", 4, ""), "#cta_2:[64].thread\n");
    let written = written_out(&src);
    for part in [
        "#grid:[(8,2):(1,8)].block\n#cta:[32].thread\nSpec @a <<<#grid, #cta>>>",
        "#grid_2:[(4,2):(1,4)].block\n#cta_3:[32].thread\nSpec @b <<<#grid_2, #cta_3>>>",
        "@i, @grid_1 = #grid_2.indices()",
        "#w = #cta_3.tile([8])",
    ] {
        assert!(written.contains(part), "`{part}` in\n{written}");
    }
    // A head's threads are unknown after its kernel, and its body cannot hide them.
    let behind = format!("{head}{}Move <<<#grid, #cta>>> (%A) -> (%A)\n", one("a", 8, ""));
    assert_eq!(refused(&behind).0, Code::UnknownName);
    let twice = one("b", 8, "#grid = #cta.tile([4])\n");
    let (code, message) = refused(&format!("{head}{}{twice}", one("a", 8, "")));
    assert_eq!((code, message.as_str()), (Code::Redefined, "`#grid` is defined twice"));
    // A head cannot hide declarations of the top level, either.
    let top = format!("{head}#grid:[8].block\n{}", one("a", 8, ""));
    assert_eq!(refused(&top).0, Code::Redefined);
}
