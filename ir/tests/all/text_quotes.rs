//! Tests that the content of quotes, as in `loc="model.py:12"`, is neither a comment nor a bracket,
//! and never hides one.

use carbyne_ir::ast::{AttrValue, StmtKind};
use carbyne_ir::diag::Code;
use carbyne_ir::limits::MAX_NESTING;
use carbyne_ir::resolve::resolve;
use carbyne_ir::text::{parse, print};
use carbyne_ir::verify::verify;

#[test]
fn signs_in_quotes_are_text() {
    for inside in ["", "a b", "//", "http://x/y.py:3", "((((", "}}}", "%a = %b", "é"] {
        let src = format!("carbyne 2\nMove () -> () loc=\"{inside}\" acc=f32 // \"said\"\n");
        let module = parse(&src).unwrap_or_else(|e| panic!("{src}{e}"));
        let StmtKind::Spec(spec) = &module.items[0].kind else { panic!("a spec") };
        assert_eq!(spec.attrs[0].value, AttrValue::Text(inside.to_owned()));
        assert_eq!((spec.loc(), spec.attrs.len()), (Some(inside), 2));
        assert_eq!(module.items[0].trailing.as_deref(), Some("\"said\""));
        assert_eq!(print(&module), src);
    }
}

#[test]
fn texts_that_do_not_end() {
    for (value, found) in [("\"", ""), ("\"a", ""), ("\"a\\\"", ""), ("\"a\nb\"", "")] {
        let src = format!("carbyne 2\nMove () -> () loc={value}\nbarrier\n");
        let errors = parse(&src).expect_err(found);
        let first = errors.iter().next().expect("an error");
        assert_eq!((first.code, first.span.line_col(&src).0), (Code::Syntax, 2), "{src}{first}");
        let help = first.help.as_deref().unwrap_or_default();
        assert!(help.starts_with("end the text with"), "{help}");
    }
    let errors = parse("carbyne 2\n%a = \"b\"\n").expect_err("no view");
    let help = errors.iter().next().and_then(|e| e.help.clone()).unwrap_or_default();
    assert!(help.contains("loc=\"model.py:12\""), "{help}");
}

/// If the scanner takes brackets as text, the parser must not see them as brackets, wherever it
/// resumes after an error.
#[test]
fn quotes_hide_no_depth() {
    let deep = "(".repeat(200_000);
    for src in [
        format!("carbyne 2\nlet a = \"{deep}\"\n"),
        format!("carbyne 2\nlet a = \" }} let b = {deep}\"\n"),
        format!("carbyne 2\n\"\n}} let b = {deep}\n\""),
        format!("carbyne 2\nlet \" }}\n let b = \"{deep}1\n"),
        format!("carbyne 2\nMove () -> () loc=\"a\\\" let b = {deep}\"\n"),
        format!("carbyne 2\n}} \" Move {deep} \" let b = 1\n"),
    ] {
        assert!(parse(&src).is_err());
    }
    let fits = "(".repeat(MAX_NESTING + 1);
    assert!(parse(&format!("carbyne 2\nMove () -> () loc=\"{fits}\"\n")).is_ok());
}

#[test]
fn errors_say_where_a_spec_comes_from() {
    let head = "carbyne 2\n%a:[4].f32.GL\n%b:[8].f32.GL\n#g:[1].block\n#t:[4].thread\n";
    let said = |body: &str| {
        let src = format!("{head}{body}");
        let module = parse(&src).expect("parses");
        let errors = match resolve(&module, &src) {
            Ok(program) => verify(&program),
            Err(errors) => errors,
        };
        let notes = errors.iter().map(|e| e.notes.join(", ")).collect::<Vec<_>>();
        (errors.iter().map(|e| e.code).collect::<Vec<_>>(), notes)
    };
    // Errors of the verifier, of the resolver, and with the `loc=` of an enclosing spec.
    let of = |loc: &str| vec![format!("comes from {loc} (`loc=` of this spec)")];
    assert_eq!(
        said("Move @k (%a) -> (%b) loc=\"m.py:1\"\n"),
        (vec![Code::ShapeMismatch], of("m.py:1"))
    );
    assert_eq!(
        said("Move @k (%c) -> (%b) loc=\"m.py:2\"\n"),
        (vec![Code::UnknownName], of("m.py:2"))
    );
    let body = |own: &str| {
        format!(
            "Spec @k <<<#g, #t>>> (%a) -> (%b) loc=\"m.py:3\" {{\n\
             Move <<<#g, #t>>> (%a) -> (%b) {own}\n}}\n"
        )
    };
    assert_eq!(said(&body("")), (vec![Code::ShapeMismatch], of("m.py:3")));
    assert_eq!(said(&body("loc=\"m.py:4\"")), (vec![Code::ShapeMismatch], of("m.py:4")));
    assert_eq!(said("Move @k (%a) -> (%b)\n"), (vec![Code::ShapeMismatch], vec![String::new()]));
    // `loc=` takes a text, and only `loc=` does.
    assert_eq!(said("Move @k (%a) -> (%a) loc=here\n").0, [Code::Attribute]);
    assert_eq!(said("Move @k (%a) -> (%a) acc=\"f32\"\n").0, [Code::Attribute]);
}
