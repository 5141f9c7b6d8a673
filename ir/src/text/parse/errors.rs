//! Makes the messages of syntax errors from the errors of the parser generator. A message names the
//! expected and the found text and a fix; some fixes are edits. The file also suggests known words
//! for misspelled and foreign ones.

use super::Rule;
use super::common_mistakes::mistake_help;
use super::foreign_syntax::mended;
use crate::ast::{SpecKind, SyncOp};
use crate::diag::{Code, Diagnostic, Edit, nearest};
use crate::span::Span;
use pest::error::{Error, ErrorVariant, InputLocation};

/// The text at a place.
pub(super) struct Found {
    /// A description: "`foo`", "the end of the text".
    pub(super) words: String,
    /// The place in the text.
    pub(super) span: Span,
}

/// The word or sign at `at`.
pub(super) fn found(text: &str, at: usize) -> Found {
    let rest = text.get(at..).unwrap_or("");
    let Some(first) = rest.chars().next() else {
        return Found { words: "the end of the text".to_owned(), span: Span::new(at, at) };
    };
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    let sigil = usize::from(matches!(first, '%' | '#' | '@'));
    let word = rest.bytes().skip(sigil).take_while(|&b| is_word(b)).count();
    let sign = ["<<<", ">>>", "->", "&&", "+=", "==", "!=", "<=", ">="]
        .into_iter()
        .find(|sign| rest.starts_with(sign))
        .map_or(first.len_utf8(), str::len);
    let len = if word > 0 { sigil + word } else { sign };
    Found { words: format!("`{}`", short(&rest[..len])), span: Span::new(at, at + len) }
}

/// `text`, shortened for a headline, with unprintable characters escaped.
pub(super) fn short(text: &str) -> String {
    const LONGEST: usize = 32;
    let mut short: String = text
        .chars()
        .take(LONGEST)
        .flat_map(|c| {
            let escape = c.is_control();
            let plain = (!escape).then_some(c);
            plain.into_iter().chain(c.escape_unicode().take(if escape { 12 } else { 0 }))
        })
        .collect();
    if text.chars().nth(LONGEST).is_some() {
        short.push('…');
    }
    short
}

/// Names of types and memories in other languages, in lower case.
const ELSEWHERE: [(&str, &str); 27] = [
    ("smem", "SH"),
    ("shared", "SH"),
    ("shm", "SH"),
    ("gmem", "GL"),
    ("global", "GL"),
    ("gm", "GL"),
    ("rmem", "RF"),
    ("reg", "RF"),
    ("regs", "RF"),
    ("register", "RF"),
    ("registers", "RF"),
    ("local", "RF"),
    ("half", "f16"),
    ("float16", "f16"),
    ("bfloat16", "bf16"),
    ("float", "f32"),
    ("float32", "f32"),
    ("double", "f64"),
    ("float64", "f64"),
    ("int", "i32"),
    ("int32", "i32"),
    ("int32_t", "i32"),
    ("int8", "i8"),
    ("int8_t", "i8"),
    ("uint8", "u8"),
    ("int64", "i64"),
    ("uint32", "u32"),
];

/// The known word for a word of another language.
pub(super) fn called_here<'a>(
    word: &str,
    mut known: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let (_, here) = ELSEWHERE.iter().find(|(name, _)| name.eq_ignore_ascii_case(word))?;
    known.find(|k| k == here)
}

/// Suggests the known word that is nearest to the word at the place, or lists all.
pub(super) fn one_of<'a>(
    d: Diagnostic,
    word: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> Diagnostic {
    let meant = called_here(word, known.clone()).or_else(|| nearest(word, known.clone()));
    if let Some(near) = meant {
        return d.did_you_mean(near);
    }
    let all: Vec<_> = known.map(|k| format!("`{k}`")).collect();
    d.help(format!("use {}", or(&all)))
}

/// Joins with commas and a last "or".
fn or(items: &[String]) -> String {
    match items {
        [] => "something else".to_owned(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// Words that begin a statement.
fn starts() -> impl Iterator<Item = &'static str> {
    let words = ["let", "sym", "for", "if", "barrier", "Allocate"].into_iter();
    let syncs = SyncOp::ALL.iter().map(|op| op.as_str());
    words.chain(SpecKind::words()).chain(["else"]).chain(syncs)
}

/// Converts pest's error for the step that begins at `base`.
pub(super) fn syntax(text: &str, base: usize, error: Error<Rule>, in_body: bool) -> Diagnostic {
    let at = base
        + match error.location {
            InputLocation::Pos(p) | InputLocation::Span((p, _)) => p,
        };
    let found = found(text, at);
    let rules = match error.variant {
        ErrorVariant::ParsingError { positives, .. } => positives,
        // Only pest's stack guard reports this; `scan` bounds the nesting far below it.
        ErrorVariant::CustomError { message } => {
            return Diagnostic::new(Code::TooDeep, found.span, message)
                .help("read the text on a thread with a larger stack");
        }
    };
    let mut wanted: Vec<String> = Vec::new();
    for &rule in &rules {
        // `else` and a body may only follow a brace. If one stands alone, the help says so.
        let behind_brace = matches!(rule, Rule::kw_else | Rule::body_head);
        if rule == Rule::block_end && !in_body || at == base && behind_brace {
            continue;
        }
        // Only one attribute takes a string; the help says so.
        if rule == Rule::string {
            continue;
        }
        let words = describe(rule).to_owned();
        if !wanted.contains(&words) {
            wanted.push(words);
        }
    }
    // Continuations of this statement come first, then the start of the next statement.
    wanted.sort_by_key(|words| words == describe(Rule::follow));
    let wanted = or(&wanted);
    let d = Diagnostic::new(
        Code::Syntax,
        found.span,
        format!("expected {wanted}, found {}", found.words),
    )
    .label("not expected here");
    let as_is = |help| (help, None);
    let mended = mended(text, base, at, &rules, in_body);
    let d = match &mended {
        // The parser skips the comment and finds the error after it, but the `//` itself is wrong.
        Some((_, edit)) if edit.text == "/" => Diagnostic::new(
            Code::Syntax,
            edit.span,
            "`//` begins a comment in the middle of an expression",
        )
        .label("the parser ignores the text after it"),
        // The edit replaces text of another language.
        Some((help, edit)) if edit.span.start < edit.span.end && !help.starts_with("name") => {
            let written = text[edit.span.start as usize..edit.span.end as usize].trim();
            let line = short(written.lines().next().unwrap_or(""));
            Diagnostic::new(
                Code::Syntax,
                edit.span,
                format!("`{line}` is not written so in carbyne"),
            )
            .label("syntax of another language")
        }
        _ => d,
    };
    let mended = mended.map(|(help, edit)| (help, Some(edit)));
    let meant = mended
        .or_else(|| mistake_help(text, base, at, &rules).map(as_is))
        .or_else(|| help(text, base, at, &rules));
    let (help, edit) = meant.unwrap_or_else(|| as_is(form(&text[base..], at - base)));
    Diagnostic { edits: edit.into_iter().collect(), ..d.help(help) }
}

/// Parts of a statement with brackets: their start, and their form.
const PARTS: [(&str, &str); 9] = [
    (".tile(", "write tiles as `.tile([8,_])`, strided ones as `.tile([2:2], _)`"),
    (".reshape(", "write a reshape as `.reshape([2,2]:[2,1])`"),
    (".tv(", "write it as `.tv(((4,8),2):((2,8),1) over #w)`"),
    (".tensormap(", "write it as `.tensormap([128,64], swizzle=(3,4,3))`"),
    (".peer(", "write it as `.peer(@r + 1)`"),
    ("tv=", "write it as `tv=((4,8),2):((2,8),1) over #cta`"),
    ("swizzle=(", "write it as `swizzle=(3,4,3)`"),
    ("min(", "write it as `min(a, b)`"),
    ("max(", "write it as `max(a, b)`"),
];

/// The form of the statement part at `at`, or of the whole statement.
fn form(step: &str, at: usize) -> String {
    let before = step.get(..at).unwrap_or("");
    let open = |part: &str| {
        let inside = before.rfind(part)? + part.len();
        let mut depth = 0;
        let closed = before[inside..].chars().any(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth < 0 || matches!(c, '{' | '}')
        });
        (!closed).then_some(inside)
    };
    let part = PARTS.iter().filter_map(|(part, form)| Some((open(part)?, form))).max();
    if let Some((_, form)) = part {
        return (*form).to_owned();
    }
    let word = step.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.').next();
    let word = word.unwrap_or("");
    let written = |what: &str, example: &str| format!("write {what} as `{example}`");
    match step.chars().next() {
        Some('%') => {
            return "write a tensor as `%A:[8,8].f16.GL`, a view as `%a = %A.tile([8,8])[0, 0]`"
                .into();
        }
        Some('#') => {
            return "write threads as `#cta:[128].thread`, a view as `#w = #cta.tile([32])`".into();
        }
        Some('@') => return written("coordinates", "@m, @n = #grid.indices()"),
        _ => {}
    }
    let of_word = |first: &str| {
        let outside = |kind: &SpecKind| *kind != SpecKind::Iota;
        SpecKind::all().filter(outside).find(|kind| kind.word() == first)
    };
    match word.split('.').next().unwrap_or("") {
        "let" => written("constants", "let M = 256, N = 2 * M"),
        "counter" => written("a counter", "counter @q = 0"),
        "sym" => {
            written("a symbol", "sym K{min=64, max=4096, div=64}` or `sym M, N where M % 8 == 0")
        }
        "where" | "typical" => written(
            "facts about symbols",
            "sym M, N where M % 8 == 0, M > 0, N <= 4096 typical M=4096, N=1000",
        ),
        "for" => written("a loop", "for (k = 0; k < 8; k += 1) {"),
        "if" => written("a condition", "if (k < 8 && @t == 0) {"),
        "else" => written("the other branch", "} else {"),
        "barrier" => written("a barrier", "barrier` or `barrier(#w)"),
        "Allocate" => written("an allocation", "Allocate %s:[128,32].f16.SH{align=128}"),
        "Init" => written("it", "Init <<<#grid, #cta>>> (0.0) -> (%x)"),
        "Spec" => written("it", "Spec @name <<<#grid, #cta>>> (%A) -> (%B) {"),
        "Select" => written("it", "Select <<<#grid, #cta>>> (%p, %a, %b) -> (%d)"),
        first => match (of_word(first), word.parse::<SyncOp>()) {
            (Some(kind), _) => {
                let axis = if kind.has_axis() { " axis=1" } else { "" };
                written("it", &format!("{word} <<<#grid, #cta>>> {}{axis}", kind.operands()))
            }
            (None, Ok(op)) => written("it", &op.usage()),
            (None, Err(())) => {
                "begin a statement with `%A`, `#cta`, `@i`, `let`, `for`, `if`, `Allocate` or a \
                 spec such as `Move`"
                    .to_owned()
            }
        },
    }
}

/// The help for a syntax error at `at` in the step that begins at `base`, with its edits.
fn help(text: &str, base: usize, at: usize, rules: &[Rule]) -> Option<(String, Option<Edit>)> {
    let rest = text.get(at..)?;
    let edit = |len: usize, text: &str| {
        Some(Edit { span: Span::new(at, at + len), text: text.to_owned() })
    };
    let say = |help: &str| Some((help.to_owned(), None));
    if let Some(comment) = rest.strip_prefix('#')
        && !comment.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
    {
        return Some(("begin a comment with `//`".to_owned(), edit(1, "//")));
    }
    let meant = |known: &[&'static str]| {
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let word = rest.split(|c| !letter(c)).next()?;
        let dotted = rest.split(|c| !letter(c) && c != '.').next()?;
        let (near, word) = [dotted, word]
            .into_iter()
            .find_map(|word| Some((nearest(word, known.iter().copied())?, word)))?;
        Some((format!("did you mean `{near}`?"), edit(word.len(), near)))
    };
    if rest.starts_with('"') {
        return say("write a text in quotes only as the value of `loc`: `loc=\"model.py:12\"`");
    }
    if let Some(help) = counter_help(text, base, at) {
        return say(&help);
    }
    if rules.contains(&Rule::compare_op) && rest.starts_with('=') {
        return Some(("compare with `==`".to_owned(), edit(1, "==")));
    }
    let remainder = || say("for a remainder put a space behind `%`");
    let first = rest.chars().next();
    if rules.contains(&Rule::op) && first == Some('%') {
        return remainder();
    }
    if rules.contains(&Rule::less) && ["<=", ">", "=="].iter().any(|op| rest.starts_with(op)) {
        return say("write the condition of a loop with `<`: `for (k = 0; k < 8; k += 1)`");
    }
    if rules.contains(&Rule::method) {
        return meant(&[
            "tile",
            "reshape",
            "transpose",
            "permute",
            "iota",
            "mine",
            "tv",
            "scalar",
            "elect",
            "tensormap",
            "peer",
            "indices",
        ]);
    }
    if rules.contains(&Rule::type_attr) {
        return meant(&["tv", "swizzle", "align", "at", "reuses"]);
    }
    if rules.contains(&Rule::unroll) {
        return meant(&["unroll", "nounroll", "stages"]);
    }
    // The text before the step on its first line belongs to the statement before.
    let before = text[..base].rsplit('\n').next().unwrap_or("").trim_end();
    if text[base..].starts_with('%') && before.ends_with(|c: char| c.is_ascii_alphanumeric()) {
        return remainder();
    }
    if at == base {
        let word = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let value = word.trim_start().strip_prefix('=').map(str::trim_start);
        if word.len() < rest.len() && value.is_some_and(|v| v.starts_with('"')) {
            return say("end the text with `\"` on the same line, without `\\` in it");
        }
        if before.ends_with(')') {
            return say("an attribute is written `key=value`");
        }
        let starts: Vec<&str> = starts().collect();
        return meant(&starts);
    }
    if first == Some('-') && !rest.starts_with("->") {
        return say("write a negative number as `0 - 3`");
    }
    None
}

/// The help for a counter that is stepped by data.
fn counter_help(text: &str, base: usize, at: usize) -> Option<String> {
    let (name, _) = text.get(base..at)?.strip_prefix('@')?.split_once("+=")?;
    text.get(at..)?.starts_with('%').then(|| {
        format!(
            "a counter adds numbers: read an integer of the caller first, `@n = %sizes[0]`, and \
             write `@{} += @n`",
            name.trim()
        )
    })
}

/// A description of a rule for messages.
pub(super) fn describe(rule: Rule) -> &'static str {
    match rule {
        Rule::step | Rule::statement => "a statement",
        Rule::follow | Rule::EOI => "the next statement",
        Rule::version => "the format version",
        Rule::block_end | Rule::rbrace => "`}`",
        Rule::else_head | Rule::kw_else => "`else`",
        Rule::let_stmt | Rule::kw_let => "`let`",
        Rule::binding | Rule::ident => "a name",
        Rule::sym_stmt | Rule::kw_sym => "`sym`",
        Rule::sym_facts | Rule::type_attrs | Rule::lbrace | Rule::body_open | Rule::body_head => {
            "`{`"
        }
        Rule::sym_fact => "`min`, `max` or `div`",
        Rule::typical | Rule::kw_typical => "`typical`",
        Rule::usual => "a value such as `M=4096`",
        Rule::data_stmt | Rule::data_name | Rule::data_view => "a tensor such as `%A`",
        Rule::thread_stmt | Rule::thread_name | Rule::thread_view => {
            "a thread tensor such as `#cta`"
        }
        Rule::data_def | Rule::thread_def | Rule::equals => "`=`",
        Rule::indices | Rule::element | Rule::step_stmt | Rule::index_name => {
            "an index such as `@m`"
        }
        Rule::counter | Rule::kw_counter => "`counter`",
        Rule::kw_indices => "`indices`",
        Rule::allocate | Rule::kw_allocate => "`Allocate`",
        Rule::for_head | Rule::kw_for => "`for`",
        Rule::unroll => "`unroll`, `nounroll`",
        Rule::if_head | Rule::kw_if => "`if`",
        Rule::compare | Rule::value | Rule::part | Rule::int | Rule::name | Rule::group => {
            "a number"
        }
        Rule::call | Rule::function => "a number",
        Rule::compare_op => "a comparison such as `<`",
        Rule::and => "`&&`",
        Rule::store | Rule::tensor_part | Rule::tensors => "a tensor such as `%A`",
        Rule::tensor_neg | Rule::neg | Rule::minus => "`-`",
        Rule::tensor_call | Rule::tensor_function => "a function such as `exp`",
        Rule::tensor_group => "`(`",
        Rule::tensor_arg => "an operand",
        Rule::tensor_op => "an operator",
        Rule::blank => "white space",
        Rule::data_range | Rule::kw_in => "`in`",
        Rule::kw_distinct => "`distinct`",
        Rule::kw_splits => "`splits`",
        Rule::until => "`..`",
        Rule::stages | Rule::kw_stages => "`stages`",
        Rule::executor | Rule::new_group => "a thread tensor such as `#cta`",
        Rule::extent => "an extent",
        Rule::literal => "a literal such as `0.0`",
        Rule::output => "a tensor such as `%A`",
        Rule::def_head | Rule::kw_def => "`def`",
        Rule::strategy_head | Rule::kw_strategy => "`strategy`",
        Rule::choices => "`in`",
        Rule::choice_step | Rule::kw_step => "`step`",
        Rule::conditions | Rule::kw_where => "`where`",
        Rule::habits | Rule::kw_usually => "`usually`",
        Rule::choice_param | Rule::chosen_value => "a name",
        Rule::chosen => "a strategy such as `@ring[S=3]`",
        Rule::params | Rule::choice_params | Rule::call_args => "`[`",
        Rule::param => "a name",
        Rule::kw_type => "`type`",
        Rule::formals => "`(`",
        Rule::formal => "a tensor such as `%x`",
        Rule::call_stmt => "a sub-spec such as `@scale[2] (%a) -> (%b)`",
        Rule::import_stmt | Rule::kw_import => "`import`",
        Rule::short_type => "a part of a type such as `f32`",
        Rule::permute | Rule::kw_permute => "`permute`",
        Rule::transpose | Rule::kw_transpose => "`transpose`",
        Rule::plus | Rule::kw_plus => "`plus`",
        Rule::pad | Rule::kw_pad => "`pad`",
        Rule::iota | Rule::kw_iota => "`iota`",
        Rule::pick => "a number or `_`",
        Rule::range => "a range such as `0..64`",
        Rule::root | Rule::kw_sqrt => "`sqrt`",
        Rule::real | Rule::exponent => "a number",
        Rule::barrier | Rule::kw_barrier => "`barrier`",
        Rule::barrier_of | Rule::sync_args | Rule::inputs | Rule::outputs | Rule::lparen => "`(`",
        Rule::sync | Rule::sync_op | Rule::sync_family => {
            "a synchronization such as `async.commit`"
        }
        Rule::sync_arg => "a tensor or a number",
        Rule::spec | Rule::spec_kind | Rule::spec_name => "a spec",
        Rule::exec => "`<<<`",
        Rule::exec_end => "`>>>`",
        Rule::operand => "a tensor or a literal",
        Rule::number => "a literal such as `0.0`",
        Rule::arrow => "`->`",
        Rule::means_open | Rule::kw_means => "`means`",
        Rule::attr => "an attribute such as `acc=f32`",
        Rule::lone_word | Rule::word => "a word",
        Rule::string => "a text in quotes",
        Rule::data_type => "a tensor type such as `[8,8].f16.GL`",
        Rule::thread_type => "a thread type such as `[32].thread`",
        Rule::scalar => "a scalar type such as `f16`",
        Rule::memory => "`GL`, `SH` or `RF`",
        Rule::thread_scalar => "`thread` or `block`",
        Rule::level | Rule::modes_list | Rule::index | Rule::sizes => "`[`",
        Rule::level_rest | Rule::colon => "`:`",
        Rule::type_attr => "a type attribute",
        Rule::open => "`?`",
        Rule::tv_attr | Rule::tv | Rule::kw_tv => "`tv`",
        Rule::kw_over => "`over`",
        Rule::swizzle | Rule::kw_swizzle => "`swizzle`",
        Rule::align | Rule::kw_align => "`align`",
        Rule::at | Rule::kw_at => "`at`",
        Rule::reuses | Rule::kw_reuses => "`reuses`",
        Rule::after | Rule::kw_after => "`after`",
        Rule::view_op => "an operation on the tensor",
        Rule::method => {
            "`tile`, `reshape`, `transpose`, `permute`, `iota`, `mine`, `tv`, `scalar`, `elect`, \
             `tensormap` or `peer`"
        }
        Rule::tile | Rule::kw_tile => "`tile`",
        Rule::modes | Rule::mode => "tile sizes such as `[8,8]`",
        Rule::keep => "`_`",
        Rule::reshape | Rule::kw_reshape => "`reshape`",
        Rule::side | Rule::layout => "a layout such as `(4,8):(8,1)`",
        Rule::mine => "`mine`",
        Rule::scalar_op | Rule::kw_scalar => "`scalar`",
        Rule::tensormap | Rule::kw_tensormap => "`tensormap`",
        Rule::peer | Rule::kw_peer => "`peer`",
        Rule::elect | Rule::kw_elect => "`elect`",
        Rule::entries | Rule::entry => "a number or `_`",
        Rule::op => "an operator",
        Rule::kernel_name => "a kernel's name such as `@gemm`",
        Rule::kw_carbyne => "`carbyne`",
        Rule::rparen => "`)`",
        Rule::rbracket => "`]`",
        Rule::comma => "`,`",
        Rule::semicolon => "`;`",
        Rule::dot => "`.`",
        Rule::less => "`<`",
        Rule::added | Rule::plus_equals => "`+=`",
        Rule::word_char | Rule::first => "a letter",
        Rule::WHITESPACE | Rule::COMMENT => "white space",
    }
}
