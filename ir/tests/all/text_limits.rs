//! Hostile texts: too long, too deep, not text at all. Each gets a coded error or a module, no panic.

use carbyne_ir::diag::Code;
use carbyne_ir::limits::{MAX_ERRORS, MAX_EXPR_OPERATORS, MAX_NESTING, MAX_TEXT_BYTES};
use carbyne_ir::text::{parse, parse_bytes, print};

/// `head`, as many `unit` as fit, `tail`: a text of the greatest length.
fn fill(head: &str, unit: &str, tail: &str) -> String {
    let n = (MAX_TEXT_BYTES - head.len() - tail.len()) / unit.len();
    format!("{head}{}{tail}", unit.repeat(n))
}

/// The first error's code and place.
fn first_error(text: &str) -> (Code, (usize, usize)) {
    let errors = parse(text).expect_err("the text is wrong").into_vec();
    assert!(errors.len() <= MAX_ERRORS);
    for e in &errors {
        assert!(e.span.start <= e.span.end && e.span.end as usize <= text.len(), "{e:?}");
        assert!(e.message.len() < 300, "{e:?}");
    }
    (errors[0].code, errors[0].span.line_col(text))
}

/// Bytes that look random; the same every time.
fn noise(n: usize) -> impl Iterator<Item = u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..n).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    })
}

#[test]
fn length() {
    let longest = fill("carbyne 1\n", " ", "");
    assert_eq!(longest.len(), MAX_TEXT_BYTES);
    assert!(parse(&longest).is_ok());
    let longer = longest + " ";
    let errors = parse(&longer).expect_err("one byte too long").into_vec();
    assert_eq!(errors[0].code, Code::TextTooLong);
    assert_eq!(errors[0].span.start as usize, MAX_TEXT_BYTES);
    let errors = parse_bytes(longer.as_bytes()).expect_err("one byte too long").into_vec();
    assert_eq!(errors[0].code, Code::TextTooLong);
}

#[test]
fn bytes() {
    let errors = parse_bytes(b"carbyne 1\nlet \xff = 3").expect_err("not UTF-8").into_vec();
    assert_eq!((errors[0].code, errors[0].span.start), (Code::NotUtf8, 14));
    assert_eq!(first_error("carbyne 1\nlet \0 = 3"), (Code::NulByte, (2, 5)));
    assert_eq!(first_error("carbyne 1\n// in a comment \0"), (Code::NulByte, (2, 17)));
    let random: Vec<u8> = noise(MAX_TEXT_BYTES).collect();
    assert!(parse_bytes(&random).is_err());
    assert!(parse_bytes(&vec![0; MAX_TEXT_BYTES]).is_err());
    let printable: String = noise(MAX_TEXT_BYTES).map(|b| char::from(b' ' + b % 95)).collect();
    assert_eq!(first_error(&printable).0, Code::Version);
    let signs = b"%#@()[]{}:=,.01aM+-*/<>\n _";
    for seed in [2, 3, 5] {
        let signs: String =
            noise(seed * 40_000).map(|b| char::from(signs[usize::from(b) % signs.len()])).collect();
        assert!(parse(&format!("carbyne 1\n{signs}")).is_err());
    }
}

#[test]
fn nesting() {
    let column = MAX_NESTING + 1;
    for bracket in ["(", "[", "{"] {
        assert_eq!(first_error(&fill("carbyne 1\n", bracket, "")), (Code::TooDeep, (2, column)));
        assert_eq!(first_error(&fill("", bracket, "")), (Code::TooDeep, (1, column)));
    }
    assert_eq!(first_error(&fill("carbyne 1\n", "%a:[", "")), (Code::TooDeep, (2, 4 * column)));
    assert_eq!(first_error(&fill("carbyne 1\n", "min(1,", "")).0, Code::TooDeep);
    assert_eq!(first_error(&fill("carbyne 1\n", "if (a < b) {\n", "")).0, Code::TooDeep);
    // Brackets in comments do not count; closing ones that fit nothing do no harm.
    assert!(parse(&fill("carbyne 1\n//", "(", "")).is_ok());
    assert_eq!(first_error(&fill("carbyne 1\n", "(}", "")).0, Code::Syntax);
    assert_eq!(first_error(&fill("carbyne 1\n", "if (a < b) { ] ", "")).0, Code::Syntax);
    assert_eq!(first_error(&fill("carbyne 1\n$", "{)", "")).0, Code::Syntax);
    assert_eq!(first_error(&fill("carbyne 1\n", "}", "")).0, Code::Syntax);
}

#[test]
fn the_deepest_nesting_works() {
    let n = MAX_NESTING;
    let deep = [
        format!("let x = {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("let x = {}1{}", "min(1, ".repeat(n), ")".repeat(n)),
        format!("let x = {}1{}", "(1 - ".repeat(n), ")".repeat(n)),
        format!("%A:[{}1{}].f16", "(".repeat(n - 1), ")".repeat(n - 1)),
        format!("{}{}", "if (a < b) {".repeat(n), "}".repeat(n)),
        format!("{}{}", "Spec () -> () {".repeat(n), "}".repeat(n)),
    ];
    for text in deep {
        let module = parse(&format!("carbyne 1\n{text}")).expect("within the limits");
        let printed = print(&module);
        assert_eq!(parse(&printed).as_ref(), Ok(&module));
        assert_eq!(module.clone(), module);
    }
}

#[test]
fn operators() {
    let most = format!("carbyne 1\nlet x = 1{}", " + 1".repeat(MAX_EXPR_OPERATORS));
    let module = parse(&most).expect("as many as allowed");
    assert_eq!(parse(&print(&module)), Ok(module));
    assert_eq!(first_error(&(most + " + 1")), (Code::ExprTooLong, (2, 9)));
    assert_eq!(first_error(&fill("carbyne 1\nlet x = ", "1+", "1")), (Code::ExprTooLong, (2, 9)));
    assert_eq!(first_error(&fill("carbyne 1\nlet x = ", "(1)+", "1")).0, Code::ExprTooLong);
    // Parentheses do not hide operators: each group is within the limit, all together are not.
    let group = format!("(1{})", " * 2".repeat(100));
    let text = format!("carbyne 1\nlet x = {group} + {group} + {group}");
    assert_eq!(first_error(&text), (Code::ExprTooLong, (2, 9)));
    // Each member of a tuple is an expression of its own.
    assert!(parse(&format!("carbyne 1\n%A:[{group},{group},{group}].f16")).is_ok());
    assert_eq!(first_error(&fill("carbyne 1\n", "1+", "")), (Code::Syntax, (2, 1)));
}

#[test]
fn long_words_and_lists() {
    assert_eq!(first_error(&fill("carbyne 1\nlet x = ", "9", "")), (Code::Number, (2, 9)));
    assert_eq!(first_error(&fill("carbyne 1\nlet x = ", "9", "a")).0, Code::Syntax);
    for (head, unit, tail) in [
        ("let x = ", "a", ""),
        ("Init (", "9", ") -> ()"),
        ("%A:[", "1,", "1].f16"),
        ("%A:[", "(),", "1].f16"),
        ("%A:", "[].", "f16"),
        ("%a = %b", "[]", ""),
        ("%a = %b", ".mine", ""),
        ("Move () -> ()", " a=b", ""),
        ("Move () -> () a=b", ".b", ""),
        ("let a=1", ",a=1", ""),
        ("let x = (3", "//\n", ")"),
        ("%A:[((((1", " ", ")))) ].f16"),
        ("", "if(a<b){}else{}", ""),
    ] {
        let text = fill(&format!("carbyne 1\n{head}"), unit, tail);
        let module = parse(&text).expect("long, but right");
        assert!(print(&module).ends_with('\n'));
    }
}

#[test]
fn unterminated() {
    for text in [
        "carbyne",
        "carbyne 1 %",
        "carbyne 1 %a:",
        "carbyne 1 %a:[",
        "carbyne 1 %a:[8].",
        "carbyne 1 %a:[8].f16{",
        "carbyne 1 %a = %b.",
        "carbyne 1 %a = %b.tile(",
        "carbyne 1 %a = %b[1,",
        "carbyne 1 Move",
        "carbyne 1 Move <<<",
        "carbyne 1 Move <<<#a, #b",
        "carbyne 1 Move (",
        "carbyne 1 Move (%a) -",
        "carbyne 1 Move (%a) -> (",
        "carbyne 1 Move (%a) -> () x=",
        "carbyne 1 Move (%a) -> () x=1 +",
        "carbyne 1 Spec () -> () {",
        "carbyne 1 for (",
        "carbyne 1 for (k = 0; k < 1; k += 1) {",
        "carbyne 1 if (a < b) {} else",
        "carbyne 1 if (a < b) {} else {",
        "carbyne 1 let",
        "carbyne 1 let x = min(",
        "carbyne 1 sym K{",
        "carbyne 1 @",
        "carbyne 1 @m,",
        "carbyne 1 #",
        "carbyne 1 async",
        "carbyne 1 async.",
        "carbyne 1 Allocate",
        "carbyne 1 barrier(",
        "carbyne 1 let x = 1 %",
        "carbyne 1 /",
    ] {
        for tail in ["", "\n", " // comment", "\u{e9}"] {
            first_error(&format!("{text}{tail}"));
        }
    }
}
