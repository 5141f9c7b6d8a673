//! Recognizes common mistakes in texts that do not parse, such as a `;` at the end, an open
//! parenthesis or a function of another language, and gives a help in words for each.
//! `foreign_syntax` recognizes mistakes that an edit can fix.

use super::Rule;
use super::foreign_syntax::without_comment;
use super::functions::FUNCTIONS;

/// The help for a function of another language that carbyne does not have.
pub(super) fn foreign_function_help(word: &str) -> Option<&'static str> {
    FOREIGN_FUNCTIONS.iter().find(|(names, _)| names.contains(&word)).map(|(_, help)| *help)
}

/// Functions of other languages, each with a help.
const FOREIGN_FUNCTIONS: [(&[&str], &str); 12] = [
    (&["log2"], "write it as `log(%x) * 1.4426950408889634`"),
    (&["log10"], "write it as `log(%x) * 0.4342944819032518`"),
    (&["log1p"], "write it as `log(%x + 1.0)`"),
    (&["expm1"], "write it as `exp(%x) - 1.0`"),
    (&["exp10"], "write it as `exp(%x * 2.302585092994046)`"),
    (&["where"], "write a choice as `select(%condition, %x, %y)`"),
    (&["clamp", "clip"], "write it as `min(max(%x, -1.0), 1.0)`"),
    (&["mean"], "write it as `sum(%x, axis=1) / N`"),
    (&["square", "pow"], "write a square as `%x * %x`"),
    (&["sinh", "cosh"], "write it with `exp(%x)` and `exp(-%x)`"),
    (&["atanh", "asinh", "acosh"], "write it with `log` and `sqrt`"),
    (
        &["sin", "cos", "tan", "asin", "acos", "atan", "erf"],
        "compute it outside of the kernel, or approximate it with products and `select`",
    ),
];

/// The help for a common mistake at `at`, in the step that begins at `base`.
pub(super) fn mistake_help(text: &str, base: usize, at: usize, rules: &[Rule]) -> Option<String> {
    let (step, rest) = (text.get(base..at)?, text.get(at..)?);
    let said = |help: &str| Some(help.to_owned());
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let word = rest.split(|c| !is_word(c)).next().unwrap_or("");
    let before = step.trim_end();
    if rules.contains(&Rule::rparen)
        && (step[before.len()..].contains('\n') || rest.is_empty())
        && let Some(open) = unclosed(before)
    {
        let line = text[..base + open].matches('\n').count() + 1;
        return Some(format!("close the `(` of line {line}"));
    }
    if rest.starts_with(';') && !step.starts_with("for") {
        return said("remove the `;`: a statement ends without one");
    }
    // An operand of a spec is a view; the result of a function is not.
    let called = before.rsplit(|c| !is_word(c)).next().unwrap_or("");
    if rest.starts_with('(') && FUNCTIONS.contains(&called) && step.starts_with(char::is_uppercase)
    {
        return Some(format!("compute the value first: `%x = {called}(...)`, and write `%x` here"));
    }
    if !step.starts_with('%') {
        return None;
    }
    if before.ends_with('.') && rules.contains(&Rule::method) {
        return match word {
            "T" | "t" => said("write `.transpose()`"),
            _ if FUNCTIONS.contains(&word) => Some(format!("write it as a function: `{word}(%x)`")),
            _ => None,
        };
    }
    if before.ends_with(['[', ',']) && rest.starts_with("..") {
        let end = rest.trim_start_matches('.').split([']', ',']).next().unwrap_or("");
        return Some(format!("write the start of the range: `0..{end}`"));
    }
    if before.ends_with("..") && rest.starts_with([']', ',']) {
        let start = before.trim_end_matches('.').rsplit(['[', ',', ' ']).next().unwrap_or("");
        return Some(format!("write the end of the range, such as `{start}..64`"));
    }
    if before.ends_with(['[', ',']) && rest.starts_with(':') {
        return said("write `_` for a whole mode, `0..64` for a part of it");
    }
    if matches!(word, "and" | "or") || rest.starts_with("&&") || rest.starts_with("||") {
        return said(BOTH);
    }
    if rest.starts_with('?') || word == "if" {
        return said("write a choice as `select(%p, %a, %b)`");
    }
    let set = without_comment(rest).split_once('=');
    if let Some((sign, value)) = set.filter(|(sign, _)| ["+", "-", "*", "/"].contains(sign)) {
        let value = value.trim();
        let product = "`MatMul (%a, %b) -> (%c)` adds a product to `%c`";
        return Some(format!("write `{before} = {before} {sign} {value}`; {product}"));
    }
    if rest.starts_with('*') && before.ends_with('*') {
        let base = before.trim_end_matches(['*', ' ']).rsplit([' ', '(']).next().unwrap_or("");
        return Some(format!("write a power as a product, `{base} * {base}`"));
    }
    // The start of a number, or the rest of one.
    let number = rest.starts_with(|c: char| c.is_ascii_digit())
        || step.ends_with(|c: char| c.is_ascii_digit()) && rest.starts_with('.');
    let digit = |c: char| c.is_ascii_digit();
    let tail = rest.trim_start_matches(digit);
    let tail = tail.strip_prefix('.').unwrap_or(tail).trim_start_matches(digit);
    if number && tail.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return said("remove the suffix: the type of a number follows from the tensors beside it");
    }
    let value = step.split_once('=').map(|(_, value)| value.trim_start());
    if value.is_some_and(|value| value.starts_with('@')) {
        return said("write the use of a sub-spec as a statement: `@part[64] (%x) -> (%y)`");
    }
    if rest.starts_with('@') && value.is_some() {
        return said("write a product of matrices as `matmul(%a, %b)`");
    }
    None
}

/// The help for combined conditions on tensors.
pub(super) const BOTH: &str =
    "nest conditions on tensors: `select(%x > 0.0, select(%x < 1.0, %x, 0.0), 0.0)`";

/// The position of the last parenthesis that is not closed.
fn unclosed(step: &str) -> Option<usize> {
    let mut open = vec![];
    for (i, c) in step.char_indices() {
        match c {
            '(' => open.push(i),
            ')' => drop(open.pop()),
            _ => {}
        }
    }
    open.pop()
}
