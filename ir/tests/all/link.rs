//! Tests imports: sub-specs come once, constants stay private, and errors point at the `import` or
//! the use. The files are entries of a table in memory.

use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::link::{File, LoadError, link};
use carbyne_ir::{resolve, text};

/// The module `main` of these files, linked and expanded.
fn linked(files: &[(&str, &str)]) -> Result<String, Box<Diagnostic>> {
    let of = |id: &str| files.iter().find(|(name, _)| *name == id).map(|(_, text)| *text);
    let src = of("main").unwrap();
    let module = text::parse(src).unwrap();
    let mut read = vec![];
    let mut loader = |path: &str, _from: &str| match (path, of(path)) {
        ("outside", _) => Err(LoadError::Outside),
        ("pipe", _) => Err(LoadError::Unreadable("it is no file".to_owned())),
        (_, None) => Err(LoadError::Missing),
        (id, Some(text)) => {
            read.push(id.to_owned());
            Ok(File { id: id.to_owned(), text: text.to_owned() })
        }
    };
    let first = |e: carbyne_ir::diag::Diagnostics| Box::new(e.into_iter().next().unwrap());
    let module = link(&module, "main", &mut loader).map_err(first)?;
    let written = resolve::elaborate(&module, src).map_err(first)?;
    let written = text::print(&written);
    let again = text::parse(&written).unwrap();
    assert_eq!(text::print(&resolve::elaborate(&again, &written).unwrap()), written);
    Ok(written)
}

const KERNEL: &str = "%A:[8,64].f32.GL\n%B:[8,64].f32.GL\nlet N = 3\n\
    Spec @k <<<#grid:[@i < 8], #cta:[32]>>> (%A) -> (%B) {\n\
    %a:RF = move(%A.tile([1,64])[@i, 0])\n%b = %a * N\n@f (%a) -> (%b)\n\
    %B.tile([1,64])[@i, 0] = move(%b)\n}\n";

#[test]
fn sub_specs_of_files_are_brought_once() {
    let main = format!("carbyne 2\n// why\nimport \"f\"\nimport \"g\"\n{KERNEL}");
    let f = "carbyne 2\n// of f\nimport \"g\"\nlet M = 2, N = M + 3, O = 7\n\
             def @f (%x) -> (%y) { @g[N] (%x) -> (%y) }\n";
    let g = "carbyne 2\nlet N = 4.5\ndef @g[K] (%x) -> (%y) { %y = %x * N + K }\n";
    let written = linked(&[("main", &main), ("f", f), ("g", g)]).unwrap();
    for part in ["// why\n", "(%a, 4.5) -> (%b_1)", "(%b_1, 5) -> (%b)", "let N = 3\n"] {
        assert!(written.contains(part), "`{part}` in\n{written}");
    }
    // Unused constants are not imported.
    assert!(!written.contains('7') && !written.contains("of f"), "{written}");
}

#[test]
fn constants_of_files_are_their_own() {
    let file = "carbyne 2\nlet M = 2\ndef @f (%x) -> (%y) { %y = %x + M }\n";
    let use_of = |name: &str| {
        let main = format!("carbyne 2\nimport \"f\"\nlet K = {name}\n{KERNEL}");
        linked(&[("main", &main), ("f", file)]).map_err(|d| d.code)
    };
    assert_eq!(use_of("M").unwrap_err(), Code::UnknownName);
    // Their new names are not in scope either.
    assert_eq!(use_of("M_f").unwrap_err(), Code::UnknownName);
    assert!(use_of("5").is_ok());
}

#[test]
fn wrong_files_are_errors_at_their_import() {
    let error = |files: &[(&str, &str)], path: &str| {
        let main = format!("carbyne 2\nimport \"{path}\"\n{KERNEL}");
        let all: Vec<(&str, &str)> = files.iter().copied().chain([("main", &main[..])]).collect();
        let d = linked(&all).unwrap_err();
        assert_eq!(d.span.line_col(&main), (2, 8), "{d}");
        assert!(d.code == Code::Import && d.help.is_some(), "{d}");
        format!("{} {}", d.message, d.notes.join(" "))
    };
    assert_eq!(error(&[], "x").trim(), "there is no file `x`");
    assert!(error(&[], "outside").contains("is outside of the folder"));
    assert!(error(&[], "pipe").contains("cannot be read: it is no file"));
    assert!(error(&[], "main").contains("`main` is the importing file itself"));
    let circle = [("a", "carbyne 2\nimport \"b\"\n"), ("b", "carbyne 2\nimport \"a\"\n")];
    let said = error(&circle, "a");
    assert!(said.contains("a:2: V0238: `b` has errors b:2: V0238: `a` imports itself"), "{said}");
    let syntax = [("a", "carbyne 2\n\ndef @f (%x) -> (%y) { %y = %x + }\n")];
    assert!(error(&syntax, "a").contains("a:3: P0001"));
    let names = [("a", "carbyne 2\ndef @f (%x) -> (%y) {\n%y = %x + %z\n}\n")];
    assert!(error(&names, "a").contains("a:3: V0201: `%z` is not defined here"));
    let more = [("a", "carbyne 2\n%A:[8].f32.GL\n")];
    assert!(error(&more, "a").contains("a:2: V0238: an imported file has more than"));
    let deep: Vec<(String, String)> =
        (0..40).map(|i| (format!("f{i}"), format!("carbyne 2\nimport \"f{}\"\n", i + 1))).collect();
    let deep: Vec<(&str, &str)> = deep.iter().map(|(a, b)| (&a[..], &b[..])).collect();
    assert!(error(&deep, "f0").contains("more than 32 files import"));
}

#[test]
fn without_a_loader_an_import_is_an_error() {
    let src = format!("carbyne 2\nimport \"f\"\n{KERNEL}");
    let module = text::parse(&src).unwrap();
    assert_eq!(text::parse(&text::print(&module)).unwrap(), module);
    let errors = resolve::resolve(&module, &src).unwrap_err();
    assert_eq!(errors.iter().next().unwrap().code, Code::Import);
}

#[test]
fn errors_in_what_is_brought_point_at_its_use() {
    let main = format!("carbyne 2\nimport \"f\"\n{KERNEL}");
    let f =
        "carbyne 2\n\n\n\n\n\n\n\n\n\n\ndef @f (%x) -> (%y) { %y = %x.tile([1,48])[0, 0] + 1.0 }\n";
    let d = linked(&[("main", &main), ("f", f)]).unwrap_err();
    assert_eq!((d.code, d.span.line_col(&main).0), (Code::TileDivides, 9), "{d:?}");
    assert!(d.notes.iter().any(|n| n.contains("`@f`, which is imported")), "{d:?}");
}
