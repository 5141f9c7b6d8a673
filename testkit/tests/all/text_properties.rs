//! Tests properties of parser and printer: a printed module parses to an equal module, and parsing
//! answers any text, with an error inside of the text or with a module that prints as the text.

use carbyne_ir::ast::{Block, Module, Stmt};
use carbyne_ir::limits::MAX_ERRORS;
use carbyne_ir::testing;
use carbyne_ir::text::{parse, parse_bytes, print, well_formed};
use carbyne_testkit::generate;
use proptest::prelude::*;
use proptest::sample::{Index, select};

/// Parses a printed text.
fn reread(text: &str) -> Result<Module, TestCaseError> {
    parse(text).map_err(|e| TestCaseError::fail(format!("{:#?}\n{text}", e.into_vec())))
}

/// Parsing any text must answer. Errors must point into the text, and an accepted text must print
/// as itself.
fn answers(text: &str) -> Result<bool, TestCaseError> {
    match parse(text) {
        Ok(module) => {
            prop_assert!(well_formed(&module).is_empty(), "{:?}", well_formed(&module));
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

/// Removes the comments and empty lines from a module. Returns the comments in text order.
fn strip(module: &mut Module) -> Vec<String> {
    fn stmts(all: &mut Vec<String>, list: &mut [Stmt]) {
        for stmt in list {
            stmt.blank_above = false;
            all.append(&mut stmt.leading);
            all.extend(stmt.trailing.take());
            stmt.kind.blocks_mut().for_each(|b| block(all, b));
        }
    }
    fn block(all: &mut Vec<String>, block: &mut Block) {
        stmts(all, &mut block.stmts);
        all.append(&mut block.footer);
    }
    let mut all = std::mem::take(&mut module.header);
    stmts(&mut all, &mut module.items);
    all.append(&mut module.footer);
    all
}

/// Pieces of text that are likely to change the meaning of a text.
const PIECES: [&str; 43] = [
    "\"",
    "\"(//\"",
    "loc=\"a.py:1\"",
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

/// Texts that can replace a blank. A number is appended to each `//`.
const FILLINGS: [&str; 12] = [
    " ",
    " ",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\n\n",
    "\n\n\n",
    " //\n",
    "\n //\n",
    "\n//\n\n//\n",
    "\t//\r\n\n//\n",
];

/// A change of a text: its position, its length, and the new text.
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

/// The type of a cast is written without a name. In all other places `to=` keeps its name.
#[test]
fn the_type_of_a_cast_is_told_from_attributes() {
    for value in ["-add(%_, %0, to=A)", "exp(%0, to=f16)", "cast(%0, f16)", "cast(%0, f16, to=f32)"]
    {
        let text = format!("carbyne 2\n\nSpec @k (%0) -> (%_) {{\n  %1 = {value}\n}}\n");
        assert!(matches!(answers(&text), Ok(true)), "{value}");
        assert_eq!(print(&parse(&text).expect("a module")), text);
    }
}

proptest! {
    #![proptest_config(testing::config(1000))]

    #[test]
    fn what_is_printed_reads_back(module in generate::module()) {
        let text = print(&module);
        prop_assert!(text.ends_with('\n') && !text.contains(" \n"), "{}", text);
        let again = reread(&text)?;
        prop_assert_eq!(&again, &module, "{}", text);
        prop_assert_eq!(print(&again), text);
    }

    #[test]
    fn comments_may_stand_anywhere(
        module in generate::module(),
        fillings in proptest::collection::vec(select(&FILLINGS[..]), 1..50),
    ) {
        let mut plain = module;
        strip(&mut plain);
        let mut fillings = fillings.into_iter().cycle();
        let mut text = String::new();
        let mut comments = Vec::new();
        let mut quoted = false;
        for c in print(&plain).chars() {
            quoted ^= c == '"';
            if quoted || c != ' ' && c != '\n' {
                text.push(c);
                continue;
            }
            for part in fillings.next().expect("a cycle").split_inclusive("//") {
                text.push_str(part);
                if part.ends_with("//") {
                    let comment = comments.len().to_string();
                    text.push_str(&comment);
                    comments.push(comment);
                }
            }
        }
        let filled = reread(&text)?;
        let printed = print(&filled);
        let mut again = reread(&printed)?;
        prop_assert_eq!(&again, &filled, "{}", printed);
        prop_assert_eq!(strip(&mut again), comments, "{}", text);
        prop_assert_eq!(again, plain, "{}", text);
    }

    #[test]
    fn any_text_is_answered(text in "\\PC{0,200}") {
        answers(&text)?;
        answers(&format!("carbyne 2\n{text}"))?;
    }

    #[test]
    fn any_words_are_answered(words in proptest::collection::vec(select(&PIECES[..]), 0..60)) {
        answers(&format!("carbyne 2\n{}", words.concat()))?;
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
