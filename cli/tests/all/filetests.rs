//! Tests the texts under `cli/tests/filetests`, which state the errors and warnings that carbyne
//! must report.
//!
//! `// error[V0204]: 3 does not divide` at the end of a line expects an error on this line: its
//! code, and a part of its message, label, help or notes. `// warning[D0310]: threads` expects a
//! warning. Every error and warning must be expected, and every expectation must be met.
//! `// warning: repeated write` follows statements for which the report of a run warns that several
//! threads write equal values to one element.
//!
//! A file is checked with `carbyne check`, or with the command in its comment
//! `// run: simulate --ints`. Each diagnostic must have a help; if the help is an edit, the edit
//! must end the error. Every code needs an expectation in a file, or an entry in `ELSEWHERE`.

use crate::support::{Ran, carbyne, changed, none, root, shown, texts_under};
use carbyne_ir::diag::Code;
use rayon::prelude::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn every_file_has_the_errors_it_says() {
    let files = texts_under(&root().join("cli/tests/filetests"));
    assert!(files.len() > 20, "the filetests are gone");
    none(files.par_iter().filter_map(|f| one(f).err()).collect());
}

/// Applies the edits of each help and checks the text again, which must have one error of this code
/// less. Returns the failures.
fn ineffective(text: &str, ran: &Ran) -> Vec<String> {
    let said = |ran: &Ran| ran.errors().into_iter().chain(ran.warnings()).collect::<Vec<_>>();
    let of = |all: &[Value], code: &Value| all.iter().filter(|d| d["code"] == *code).count();
    let before = said(ran);
    let edited = before.iter().filter(|d| d["edits"].as_array().is_some_and(|e| !e.is_empty()));
    let stays = edited.filter(|d| {
        let mut args = command(text);
        args.extend(["-", "--message-format", "json"]);
        let after = said(&carbyne(&args, changed(text, &d["edits"])));
        of(&after, &d["code"]) >= of(&before, &d["code"])
    });
    stays.map(|d| format!("an edit does not end the error: {d}")).collect()
}

/// Typical mistakes. Each is reported on its line, and if the help is an edit, the edited text is
/// correct.
#[test]
fn mistakes_are_mended_by_their_edits() {
    let files = texts_under(&root().join("cli/tests/filetests/mistakes"));
    assert!(files.len() >= 50, "{} mistakes", files.len());
    let mut mended = 0;
    let mut wrong = vec![];
    for file in &files {
        let text = std::fs::read_to_string(file).expect("a readable file");
        let mut args = command(&text);
        args.extend(["-", "--message-format", "json"]);
        let errors = carbyne(&args, text.clone()).errors();
        let edits = errors.iter().filter_map(|d| d["edits"].as_array()).flatten().cloned();
        let edits: Vec<Value> = edits.collect();
        if edits.is_empty() {
            continue;
        }
        mended += 1;
        let after = carbyne(&args, changed(&text, &Value::Array(edits)));
        if !after.errors().is_empty() {
            wrong.push(format!("{} has {:?} after its edits", shown(file), after.errors()));
        }
    }
    assert!(mended >= 50, "{mended} mistakes carry an edit");
    none(wrong);
}

/// The command that checks a text, as arguments.
fn command(text: &str) -> Vec<&str> {
    let command = text.lines().find_map(|l| l.strip_prefix("// run: ")).unwrap_or("check");
    command.split_whitespace().collect()
}

/// Codes that no text can raise, or only a text that is too long or unusual for a file here, with
/// the tests for them.
const ELSEWHERE: &[(Code, &str)] = &[
    (Code::NulByte, "bad_input"),
    (Code::NotUtf8, "bad_input"),
    (Code::TextTooLong, "bad_input"),
    (Code::TooDeep, "bad_input"),
    (Code::NoThreads, "bad_input; depends on the machine"),
    (Code::BadInput, "numpy"),
    (Code::UnknownArch, "bad_input"),
    (Code::OutOfBounds, "no view can reach outside: tiles, reshapes and indices are proven to fit"),
    (Code::NoNvrtc, "depends on the machine"),
    (Code::NvrtcFailed, "carbyne-codegen, nvrtc"),
    (Code::NvrtcLacksArch, "carbyne-codegen, nvrtc"),
    (Code::NoDriver, "tests/gpu; depends on the machine"),
    (Code::NoGpu, "tests/gpu"),
    (Code::OldDriver, "tests/gpu"),
    (Code::WrongGpu, "tests/gpu"),
    (Code::GpuMemory, "tests/gpu"),
    (Code::LaunchFailed, "tests/gpu"),
    (Code::Unending, "tests/gpu"),
    (Code::WithoutGpu, "run"),
    (Code::BadBinary, "tests/gpu"),
    (Code::NoCublas, "tests/gpu"),
    (Code::CublasFailed, "tests/gpu"),
    (Code::WrongProduct, "tests/gpu"),
    (Code::BadTuned, "tuned"),
    (Code::StaleTuned, "tuned"),
    (Code::Internal, "no text is known that raises it"),
    (Code::LayoutOverflow, "calculator"),
    (Code::LayoutIncongruent, "calculator"),
    (Code::LayoutRank, "calculator"),
    (Code::LayoutText, "carbyne-ir, whose parser of layouts no command uses"),
    (Code::LayoutTooDeep, "calculator"),
    (Code::LayoutTooLarge, "calculator"),
    (Code::LayoutNeedsFact, "carbyne-ir; programs say L0101"),
    (Code::LayoutNotInjective, "calculator"),
    (Code::LayoutExtent, "calculator"),
    (Code::LayoutDivisor, "calculator"),
    (Code::LayoutNegativeStride, "calculator"),
    (Code::LayoutVariable, "carbyne-ir; programs say L0101"),
    (Code::LayoutSwizzle, "calculator"),
    (Code::LayoutTwoAxes, "calculator"),
    (Code::LayoutRecast, "calculator"),
    (Code::LayoutSwizzled, "calculator"),
    (Code::LayoutArgument, "calculator"),
    (Code::LayoutNoInverse, "calculator"),
    (Code::LayoutNotUnified, "calculator"),
    (Code::CalcSyntax, "calculator"),
    (Code::CalcName, "calculator"),
    (Code::CalcArguments, "calculator"),
    (Code::CalcTooLarge, "calculator"),
];

#[test]
fn every_code_has_a_file() {
    let files = texts_under(&root().join("cli/tests/filetests"));
    let texts: Vec<String> = files.iter().map(|f| std::fs::read_to_string(f).unwrap()).collect();
    let tested: BTreeSet<&str> = texts
        .iter()
        .flat_map(|t| t.lines())
        .flat_map(all_expected)
        .map(|(_, code, _)| code)
        .collect();
    for (code, text, summary) in Code::ALL {
        let elsewhere = ELSEWHERE.iter().any(|(c, _)| c == code);
        assert!(
            tested.contains(text) != elsewhere,
            "{text} ({summary}) needs a file in cli/tests/filetests, or an entry in `ELSEWHERE`; \
             not both"
        );
    }
}

/// The codes and texts that a line expects for diagnostics of a kind, `error` or `warning`.
fn expected<'a>(line: &'a str, kind: &'static str) -> impl Iterator<Item = Expected<'a>> {
    let mut parts = line.split("// ");
    parts.next();
    parts.filter_map(move |rest| {
        let (code, text) = rest.strip_prefix(kind)?.strip_prefix('[')?.split_once(']')?;
        Some((kind, code, text.strip_prefix(':').unwrap_or(text).trim()))
    })
}

/// The kind, the code and the text of an expectation.
type Expected<'a> = (&'static str, &'a str, &'a str);

fn all_expected(line: &str) -> impl Iterator<Item = Expected<'_>> {
    expected(line, "error").chain(expected(line, "warning"))
}

fn one(file: &Path) -> Result<(), String> {
    let name = shown(file);
    let text = std::fs::read_to_string(file).map_err(|e| format!("{name}: {e}"))?;
    let path = file.display().to_string();
    let mut args = command(&text);
    args.extend([path.as_str(), "--message-format", "json"]);
    let ran = carbyne(&args, "");

    let mut wanted: Vec<(usize, Expected<'_>)> = text
        .lines()
        .enumerate()
        .flat_map(|(i, l)| all_expected(l).map(move |e| (i + 1, e)))
        .collect();
    let mut wrong = vec![];
    for said in ran.errors().into_iter().chain(ran.warnings()) {
        if said["help"].as_str().is_none_or(str::is_empty) {
            wrong.push(format!("{} has no help: {said}", said["code"]));
        }
        let line = said["spans"][0]["start"]["line"].as_u64().unwrap_or(0) as usize;
        let at = wanted.iter().position(|(l, (kind, code, text))| {
            *l == line && said["kind"] == *kind && said["code"] == *code && says(&said, text)
        });
        match at {
            Some(at) => drop(wanted.remove(at)),
            None => wrong.push(format!("line {line} has {}: {}", said["code"], said)),
        }
    }
    wrong.extend(ineffective(&text, &ran));
    wrong.extend(
        wanted
            .iter()
            .map(|(l, (kind, code, text))| format!("line {l} lacks the {kind} {code}: {text}")),
    );
    let warned: BTreeSet<u64> = ran.repeated_writes().into_iter().collect();
    let lines = (1..).zip(text.lines());
    let warnings: BTreeSet<u64> =
        lines.filter(|(_, l)| l.ends_with("// warning: repeated write")).map(|(i, _)| i).collect();
    if warned != warnings {
        wrong.push(format!("repeated writes in lines {warned:?}, expected {warnings:?}"));
    }
    let code = i32::from(text.lines().any(|l| expected(l, "error").next().is_some()));
    if ran.code != code {
        wrong.push(format!("exit code {}, expected {code}", ran.code));
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{name}:\n  {}", wrong.join("\n  "))) }
}

/// Whether the error's message, a label, its help or a note contains the text.
fn says(error: &Value, text: &str) -> bool {
    let labels = error["spans"].as_array().into_iter().flatten().map(|s| &s["label"]);
    let notes = error["notes"].as_array().into_iter().flatten();
    [&error["message"], &error["help"]]
        .into_iter()
        .chain(labels)
        .chain(notes)
        .any(|v| v.as_str().is_some_and(|s| s.contains(text)))
}
