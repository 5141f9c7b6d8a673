//! Parses the text of a database of tuned pins. Errors state the line and column. [`pin`] parses a
//! single pin.

use super::database::{Database, Entry, FIRST, Key};
use carbyne_ir::ast::{AttrValue, Chosen, StmtKind};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::span::Span;
use carbyne_ir::text;

/// The names of the fields of a line in messages.
const FIELDS: [&str; 8] = [
    "the problem",
    "the architecture",
    "the card",
    "the fingerprint of the atoms",
    "the pin",
    "microseconds",
    "the pin of the model",
    "microseconds of the model's pin",
];

/// Parses all entries.
///
/// # Errors
/// [`Code::BadTuned`] for the first invalid line.
pub(super) fn read(text: &str) -> Result<Database, Box<Diagnostic>> {
    let mut database = Database::default();
    let mut start = 0;
    for (i, line) in text.split_inclusive('\n').enumerate() {
        let at = (start, line);
        start += line.len();
        if i == 0 && line.strip_suffix('\n') != Some(FIRST) {
            return Err(first_line(line));
        }
        let Some(line) = line.strip_suffix('\n') else {
            let what = "the last line is cut off".to_owned();
            return Err(bad(at.0..at.0 + line.len(), what));
        };
        if i == 0 {
            continue;
        }
        let (key, entry) = entry(start - at.1.len(), line)?;
        if database.entries.insert(key, entry).is_some() {
            let what = "an earlier line has the same problem, architecture, GPU and atoms";
            return Err(bad(at.0..at.0 + line.len(), what.to_owned()));
        }
    }
    match text.is_empty() {
        true => Err(first_line("")),
        false => Ok(database),
    }
}

/// The error for an invalid first line.
fn first_line(line: &str) -> Box<Diagnostic> {
    let end = line.trim_end_matches('\n').len().max(1);
    let d = bad(0..end, format!("a database of tuned pins begins with `{FIRST}`"));
    match line.starts_with("carbyne tuned ") {
        true => Box::new(d.help("another version of carbyne wrote it; tune into another file")),
        false => d,
    }
}

/// Parses a line without its line break; `start` is its offset.
fn entry(start: usize, line: &str) -> Result<(Key, Entry), Box<Diagnostic>> {
    let mut fields: Vec<(usize, &str)> = vec![];
    let mut at = start;
    for field in line.split('\t') {
        fields.push((at, field));
        at += field.len() + 1;
    }
    let whole = start..start + line.len().max(1);
    let Ok(fields) = <[(usize, &str); FIELDS.len()]>::try_from(fields.as_slice()) else {
        let n = fields.len();
        return Err(bad(whole, format!("an entry has {} fields, this one {n}", FIELDS.len())));
    };
    let wrong = |i: usize, what: &str| {
        let (at, field) = fields[i];
        bad(at..at + field.len().max(1), format!("{} {what}", FIELDS[i]))
    };
    for (i, (_, field)) in fields.iter().enumerate() {
        if field.is_empty() || field.trim() != *field {
            return Err(wrong(i, "is empty, or begins or ends with a blank"));
        }
        if field.chars().any(char::is_control) {
            return Err(wrong(i, "contains a control character"));
        }
    }
    let [problem, arch, card, atoms, by, own, model, model_us] = fields.map(|(_, field)| field);
    let digits = atoms.len() == 16 && atoms.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let atoms = u64::from_str_radix(atoms, 16).ok().filter(|_| digits);
    let atoms = atoms.ok_or_else(|| wrong(3, "must have 16 hexadecimal digits"))?;
    let pinned = |i: usize, by: &str| match pin(by) {
        Some(_) => Ok(by.to_owned()),
        None => Err(wrong(i, "must have the form `@strategy[NAME=NUMBER, ..]`")),
    };
    let took = |i: usize, us: &str| {
        nanoseconds(us).ok_or_else(|| wrong(i, "must be a number with three decimals"))
    };
    let key =
        Key { problem: problem.to_owned(), arch: arch.to_owned(), card: card.to_owned(), atoms };
    let (by, nanoseconds) = (pinned(4, by)?, took(5, own)?);
    let model = match (model, model_us) {
        ("-", "-") => None,
        (by, us) => Some((pinned(6, by)?, took(7, us)?)),
    };
    Ok((key, Entry { by, nanoseconds, model }))
}

/// Parses microseconds with exactly three decimals, such as `179.504`, to nanoseconds.
fn nanoseconds(us: &str) -> Option<u64> {
    let (whole, rest) = us.split_once('.')?;
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let plain = whole == "0" || !whole.starts_with('0');
    if !digits(whole) || !digits(rest) || rest.len() != 3 || !plain {
        return None;
    }
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(rest.parse().ok()?)
}

/// Parses a pin in the syntax of `by=`; `None` if the text is not a pin.
pub(crate) fn pin(by: &str) -> Option<Chosen> {
    // Allow only the characters of pins, so that the text cannot end the attribute.
    let plain = |c: char| c.is_ascii_alphanumeric() || "@[]_=, -".contains(c);
    if !by.starts_with('@') || !by.chars().all(plain) {
        return None;
    }
    let module = text::parse(&format!("carbyne 2\nMove @k (%a) -> (%b) by={by}\n")).ok()?;
    let [only] = module.items.as_slice() else { return None };
    let StmtKind::Spec(spec) = &only.kind else { return None };
    let [attr] = spec.attrs.as_slice() else { return None };
    match &attr.value {
        AttrValue::Chosen(chosen) => Some(chosen.clone()),
        // A name without parameters.
        AttrValue::Tuple(_) if !by.contains(['[', ' ', ',']) => {
            let name = carbyne_ir::ast::Name::new(&by[1..]);
            Some(Chosen { name: Some(name), values: vec![], span: Span::default() })
        }
        AttrValue::Tuple(_) | AttrValue::Word(_) | AttrValue::View(_) | AttrValue::Text(_) => None,
    }
}

fn bad(at: std::ops::Range<usize>, what: String) -> Box<Diagnostic> {
    let d = Diagnostic::new(Code::BadTuned, Span::new(at.start, at.end), what);
    Box::new(d.help("remove the line, or the file; `carbyne tune FILE --device` creates it again"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use carbyne_ir::testing;
    use proptest::prelude::*;

    /// A database with one entry, one of whose fields is replaced.
    fn with(i: usize, field: &str) -> String {
        let mut fields = ["MatMul.set ..", "sm_90a", "H100 80GB", "0123456789abcdef"].to_vec();
        fields.extend(["@ring[BM=128, S=3]", "179.504", "@map", "180.000"]);
        fields[i] = field;
        format!("{FIRST}\n{}\n", fields.join("\t"))
    }

    fn said(text: &str) -> (String, usize, usize) {
        let d = read(text).unwrap_err();
        assert_eq!(d.code, Code::BadTuned);
        assert!(d.help.is_some());
        let (line, column) = d.span.line_col(text);
        (d.message, line, column)
    }

    #[test]
    fn what_is_written_is_read() {
        let database = read(&with(0, "p")).unwrap();
        let (key, entry) = database.entries.first_key_value().unwrap();
        assert_eq!((key.problem.as_str(), key.atoms), ("p", 0x0123_4567_89ab_cdef));
        assert_eq!((entry.by.as_str(), entry.nanoseconds), ("@ring[BM=128, S=3]", 179_504));
        assert_eq!(entry.model, Some(("@map".to_owned(), 180_000)));
        assert_eq!(database.print(), with(0, "p"));
        let unmeasured = with(6, "-").replace("180.000", "-");
        assert_eq!(read(&unmeasured).unwrap().print(), unmeasured);
    }

    #[test]
    fn what_is_damaged_has_its_place() {
        for (text, part, place) in [
            (String::new(), "begins with", (1, 1)),
            ("x\n".to_owned(), "begins with", (1, 1)),
            ("carbyne tuned 2\n".to_owned(), "begins with", (1, 1)),
            (FIRST.to_owned(), "begins with", (1, 1)),
            (format!("{FIRST}\n\n"), "8 fields, this one 1", (2, 1)),
            (with(0, "p").trim_end().to_owned(), "cut off", (2, 1)),
            (with(0, "a\tb"), "this one 9", (2, 1)),
            (with(1, ""), "the architecture is empty", (2, 15)),
            (with(2, "x\0y"), "the card contains", (2, 22)),
            (with(3, "123"), "16 hexadecimal digits", (2, 32)),
            (with(3, "0123456789ABCDEF"), "16 hexadecimal digits", (2, 32)),
            (with(4, "@ring[BM=128] acc=f32"), "the pin must have", (2, 49)),
            (with(4, "ring"), "the pin must have", (2, 49)),
            (with(5, "1.5"), "microseconds must be", (2, 68)),
            (with(5, "01.500"), "microseconds must be", (2, 68)),
            (with(5, "99999999999999999999.000"), "microseconds must be", (2, 68)),
            (with(6, "-"), "the pin of the model must have", (2, 76)),
        ] {
            let (message, line, column) = said(&text);
            assert!(message.contains(part), "{text:?}: {message}");
            assert_eq!((line, column), place, "{text:?}: {message}");
        }
        let twice = format!("{}{}", with(0, "p"), with(0, "p").lines().nth(1).unwrap());
        assert!(said(&format!("{twice}\n")).0.contains("an earlier line"));
        let long = with(0, &"x".repeat(1 << 20));
        assert!(read(&long).is_ok());
        assert!(said(&long.replace("sm_90a", "")).0.contains("architecture"));
        assert!(said(&with(4, &format!("@{}", "[".repeat(1 << 16)))).0.contains("the pin"));
    }

    fn databases() -> impl Strategy<Value = Database> {
        let field = "[!-~]([ -~]{0,30}[!-~])?";
        let by = prop_oneof![
            Just("@map".to_owned()),
            ("[a-z_]{1,9}", 1..4096u32, 1..9u32)
                .prop_map(|(n, a, b)| format!("@x{n}[BM={a}, S={b}]")),
        ];
        let measured = (by.clone(), 0..u64::MAX / 1000);
        let entry = (measured.clone(), proptest::option::of(measured));
        let key = (field, "sm_[0-9]{2}a?", field, any::<u64>());
        let made = |(key, entry): ((String, String, String, u64), _)| {
            let ((by, nanoseconds), model) = entry;
            let (problem, arch, card, atoms) = key;
            (Key { problem, arch, card, atoms }, Entry { by, nanoseconds, model })
        };
        let entries = proptest::collection::vec((key, entry).prop_map(made), 0..9);
        entries.prop_map(|all| Database { entries: all.into_iter().collect() })
    }

    proptest! {
        #![proptest_config(testing::config(256))]

        #[test]
        fn printed_and_read_it_is_the_same(database in databases()) {
            prop_assert_eq!(read(&database.print()).ok(), Some(database));
        }

        #[test]
        fn nothing_panics_and_damage_is_found_or_harmless(
            database in databases(),
            at in any::<prop::sample::Index>(),
            with in "\\PC|\t|\n|\0",
        ) {
            let text = database.print();
            let at = at.index(text.len());
            let damaged = [&text[..at], &with, &text[at + 1..]].concat();
            if let Ok(read_again) = read(&damaged) {
                prop_assert_eq!(read(&read_again.print()).ok(), Some(read_again));
            }
            let _ = read(&text[..at]);
        }
    }
}
