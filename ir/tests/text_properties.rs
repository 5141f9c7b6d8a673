//! What holds for every module and for every text.

use carbyne_ir::ast::Module;
use carbyne_ir::generate;
use carbyne_ir::limits::MAX_ERRORS;
use carbyne_ir::text::{parse, parse_bytes, print};
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Reads what was printed.
fn reread(text: &str) -> Result<Module, TestCaseError> {
    parse(text).map_err(|e| TestCaseError::fail(format!("{:#?}\n{text}", e.into_vec())))
}

/// Whatever the text, parsing answers; errors point into it, and what is accepted prints as itself.
fn answers(text: &str) -> Result<bool, TestCaseError> {
    match parse(text) {
        Ok(module) => {
            let printed = print(&module);
            let again = reread(&printed)?;
            prop_assert_eq!(&again, &module, "{}", printed);
            prop_assert_eq!(print(&again), printed);
            Ok(true)
        }
        Err(errors) => {
            let errors = errors.into_vec();
            prop_assert!(!errors.is_empty() && errors.len() <= MAX_ERRORS);
            for e in errors {
                let (start, end) = (e.span.start as usize, e.span.end as usize);
                prop_assert!(start <= end && text.get(start..end).is_some(), "{:?}", e);
                prop_assert!(!e.message.is_empty() && !e.message.ends_with('.'), "{:?}", e);
                prop_assert!(e.code.as_str() != "I0901", "{:?}", e);
            }
            Ok(false)
        }
    }
}

/// Pieces that are likely to make or break something.
const PIECES: [&str; 40] = [
    "%",
    "#",
    "@",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    ".",
    "=",
    "+",
    "-",
    "*",
    "/",
    "% ",
    "->",
    "<<<",
    ">>>",
    "//",
    "\n",
    " ",
    "_",
    "0",
    "9223372036854775808",
    "let ",
    "for ",
    "if ",
    "else ",
    "Move ",
    "MatMul.set",
    "barrier",
    ".tile(",
    ".mine",
    "tv=",
    "é",
    "\u{feff}",
    "\r",
];

/// A change of a text: where, how much, and what to put there.
#[derive(Clone, Debug)]
enum Edit {
    Delete(Index, usize),
    Repeat(Index, usize),
    Insert(Index, &'static str),
    Replace(Index, usize, &'static str),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = any::<Index>;
    let piece = || select(&PIECES[..]);
    prop_oneof![
        (at(), 1usize..40).prop_map(|(at, n)| Edit::Delete(at, n)),
        (at(), 1usize..40).prop_map(|(at, n)| Edit::Repeat(at, n)),
        (at(), piece()).prop_map(|(at, piece)| Edit::Insert(at, piece)),
        (at(), 1usize..10, piece()).prop_map(|(at, n, piece)| Edit::Replace(at, n, piece)),
    ]
}

fn apply(text: &mut String, edit: &Edit) {
    let range = |at: &Index, n: usize| {
        let floor = |mut i: usize| {
            while !text.is_char_boundary(i) {
                i -= 1;
            }
            i
        };
        let start = floor(at.index(text.len() + 1));
        start..floor((start + n).min(text.len())).max(start)
    };
    match edit {
        Edit::Delete(at, n) => text.replace_range(range(at, *n), ""),
        Edit::Repeat(at, n) => {
            let range = range(at, *n);
            let chunk = text[range.clone()].to_owned();
            text.insert_str(range.end, &chunk);
        }
        Edit::Insert(at, piece) => text.insert_str(range(at, 0).start, piece),
        Edit::Replace(at, n, piece) => text.replace_range(range(at, *n), piece),
    }
}

/// At least a thousand cases; more by the variable `PROPTEST_CASES`.
fn config() -> ProptestConfig {
    let config = ProptestConfig::default();
    ProptestConfig { cases: config.cases.max(1000), ..config }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_printed_reads_back(module in generate::module()) {
        let text = print(&module);
        prop_assert!(text.ends_with('\n') && !text.contains(" \n"), "{}", text);
        let again = reread(&text)?;
        prop_assert_eq!(&again, &module, "{}", text);
        prop_assert_eq!(print(&again), text);
    }

    #[test]
    fn any_text_is_answered(text in "\\PC{0,200}") {
        answers(&text)?;
        answers(&format!("carbyne 1\n{text}"))?;
    }

    #[test]
    fn any_words_are_answered(words in proptest::collection::vec(select(&PIECES[..]), 0..60)) {
        answers(&format!("carbyne 1\n{}", words.concat()))?;
    }

    #[test]
    fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = parse_bytes(&bytes);
    }

    #[test]
    fn a_damaged_text_is_answered(
        module in generate::module(),
        edits in proptest::collection::vec(edit(), 1..5),
    ) {
        let mut text = print(&module);
        for edit in &edits {
            apply(&mut text, edit);
        }
        answers(&text)?;
    }
}
