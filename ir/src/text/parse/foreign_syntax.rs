//! Recognizes statements in the syntax of Python and C, such as `for k in range(4):`, and layouts
//! whose shape and strides are lists. For each it makes a help with an edit that converts it to the
//! syntax of carbyne.

use super::functions::FUNCTIONS;
use super::generated::{Grammar, Rule};
use crate::diag::Edit;
use crate::scalar::Scalar;
use crate::span::Span;
use pest::Parser;

/// The help and the edit for a step that begins at `base` and has an error at `at`.
pub(super) fn mended(
    text: &str,
    base: usize,
    at: usize,
    rules: &[Rule],
    in_body: bool,
) -> Option<(String, Edit)> {
    let (step, rest) = (text.get(base..at)?, text.get(at..)?);
    let line = without_comment(&text[base..]);
    let p = Place { text, base, at, step, rest, line };
    let other = p.division().or_else(|| p.for_loop()).or_else(|| p.define());
    let other = other.or_else(|| p.constant()).or_else(|| p.barrier()).or_else(|| p.layout());
    let other = other.or_else(|| p.fact()).or_else(|| p.counter()).or_else(|| p.call());
    if other.is_some() {
        return other;
    }
    if word_of(line) == "if" {
        return p.choice();
    }
    if at == base && rest.starts_with("@ ") {
        return p.product();
    }
    if !step.starts_with(['%', 'M', 'U', 'B', 'R', 'S']) {
        return None;
    }
    match rest.chars().next()? {
        '.' => p.method(),
        ':' => p.range(),
        '[' if !rules.is_empty() => p.tensor_type(in_body),
        _ => None,
    }
}

/// A step and the position of its error.
struct Place<'a> {
    text: &'a str,
    /// The start of the step.
    base: usize,
    /// The position of the error.
    at: usize,
    /// The text from `base` to `at`.
    step: &'a str,
    /// The text from `at` on.
    rest: &'a str,
    /// The first line of the step, without its comment.
    line: &'a str,
}

impl Place<'_> {
    /// `(M // 2)`
    fn division(&self) -> Option<(String, Edit)> {
        let from = self.base + division(self.step)?;
        let help = "`//` begins a comment: write a division of numbers as `/`";
        Some((help.to_owned(), edit(from, from + 2, "/".to_owned())))
    }

    /// `for k in range(4):`
    fn for_loop(&self) -> Option<(String, Edit)> {
        let (len, head) = loop_head(self.line).filter(|(_, head)| is_loop_head(head))?;
        let help = format!("write the loop as `{}`", head.trim_end_matches(" {"));
        Some((help, edit(self.base, self.base + len, head)))
    }

    /// `#define N 4`
    fn define(&self) -> Option<(String, Edit)> {
        let (name, value) = self.line.strip_prefix("#define ")?.trim().split_once(' ')?;
        let let_ = format!("let {name} = {}", value.trim());
        let help = format!("write it as `{let_}`");
        Some((help, edit(self.base, self.base + self.line.len(), let_)))
    }

    /// `const int n = 4`
    fn constant(&self) -> Option<(String, Edit)> {
        let word = word_of(self.line);
        if word == "let" || self.at > self.base + word.len() + 1 {
            return None;
        }
        let len = constant(self.line)?;
        let help = "write a constant as `let M = 256`".to_owned();
        Some((help, edit(self.base, self.base + len, "let ".to_owned())))
    }

    /// `__syncthreads();`, which may parse as an attribute of the statement before.
    fn barrier(&self) -> Option<(String, Edit)> {
        let start = self.text[..self.at].rfind('\n').map_or(0, |n| n + 1);
        let line = without_comment(&self.text[start..]);
        let (start, line) = (start + line.len() - line.trim_start().len(), line.trim_start());
        let barrier = ["__syncthreads", "syncthreads"].iter().find(|w| word_of(line) == **w)?;
        let len = line[barrier.len()..].find(')').map_or(barrier.len(), |n| barrier.len() + n + 1);
        let len = len + usize::from(line[len..].starts_with(';'));
        let help = "write it as `barrier`".to_owned();
        Some((help, edit(start, start + len, "barrier".to_owned())))
    }

    /// `%y = %a if %p else %b`, whose error is at `if`.
    fn choice(&self) -> Option<(String, Edit)> {
        let line_start = self.line_start();
        let whole = without_comment(&self.text[line_start..]);
        let choice = choice(whole)?;
        let value = line_start + whole.find('=')? + 1;
        let help = format!("write a choice as `{choice}`");
        Some((help, edit(value, line_start + whole.len(), format!(" {choice}"))))
    }

    /// `%a @ %b`
    fn product(&self) -> Option<(String, Edit)> {
        let name = |s: &str| s.starts_with('%') && s.len() > 1 && is_word(&s[1..]);
        let line_start = self.line_start();
        let left = self.text[line_start..self.base].trim_end();
        let left_at = left.rfind(' ').map_or(0, |n| n + 1);
        let left = &left[left_at..];
        let right = self.rest[2..].split_whitespace().next()?;
        if !name(left) || !name(right) {
            return None;
        }
        let product = format!("matmul({left}, {right})");
        let end = self.at + 2 + self.rest[2..].find(right)? + right.len();
        let help = format!("write a product of matrices as `{product}`");
        Some((help, edit(line_start + left_at, end, product)))
    }

    /// `np.exp(..)` and `exp(..).sum()`
    fn method(&self) -> Option<(String, Edit)> {
        let before = self.step.trim_end();
        if let Some(module) = MODULES.iter().find(|m| before.ends_with(**m)) {
            let from = self.base + before.len() - module.len();
            let called = word_of(&self.rest[1..]);
            if FUNCTIONS.contains(&called) {
                let help = format!("write it as `{called}(..)`, without `{module}.`");
                return Some((help, edit(from, self.at + 1, String::new())));
            }
        }
        let call = call_before(before).filter(|_| self.step.contains('='))?;
        let name = (1..).map(|n| if n == 1 { "%v".into() } else { format!("%v{n}") });
        let name: String = name.take(100).find(|n: &String| !has_name(self.text, n))?;
        let indent = &self.text[self.line_start()..self.base];
        let value = &before[call..];
        let rewritten = format!("{name} = {value}\n{indent}{}{name}", &before[..call]);
        let help = format!("name the value first: `{name} = {value}`, and write `{name}` here");
        Some((help, edit(self.base, self.base + before.len(), rewritten)))
    }

    /// `%A[0:64]`
    fn range(&self) -> Option<(String, Edit)> {
        let before = self.step.trim_end();
        let number = before.ends_with(|c: char| c.is_ascii_alphanumeric());
        (number && open_bracket(before)).then(|| {
            ("write a range as `0..64`".to_owned(), edit(self.at, self.at + 1, "..".to_owned()))
        })
    }

    /// `%A:[8,16:16,1].f16.GL`
    fn layout(&self) -> Option<(String, Edit)> {
        let open = self.step.rfind('[')?;
        let is_type = self.step[..open].ends_with([':', '.']);
        let close = self.at + self.rest.lines().next()?.find(']')?;
        let (shape, stride) = self.text[self.base + open + 1..close].split_once(':')?;
        if !is_type || stride.contains(':') {
            return None;
        }
        let layout = format!("[{}:{}]", tuple(shape), tuple(stride));
        let help = format!("write shape and strides as tuples, `{layout}`");
        Some((help, edit(self.base + open, close + 1, layout)))
    }

    /// `where N = 0`
    fn fact(&self) -> Option<(String, Edit)> {
        let facts = self.line.strip_prefix("where ").filter(|_| self.at == self.base)?;
        let mut from = self.at + self.line.len() - facts.len();
        for fact in facts.split(" typical ").next()?.split(',') {
            let equal = fact
                .split_once('=')
                .filter(|(a, b)| !a.ends_with(['<', '>', '!', '=']) && !b.starts_with('='));
            if let Some((a, b)) = equal {
                let new = format!("{} == {}", a.trim(), b.trim());
                let start = from + fact.len() - fact.trim_start().len();
                let help = format!("write the fact with `==`: `{new}`");
                return Some((help, edit(start, start + fact.trim().len(), new)));
            }
            from += fact.len() + 1;
        }
        None
    }

    /// `@q++`, `--@q`, `@q -= 3`, `counter q = 4` and `counter @q`
    fn counter(&self) -> Option<(String, Edit)> {
        // A sign at the start of a line continues the statement before.
        let start = self.text[..self.at].rfind('\n').map_or(0, |n| n + 1);
        let own = without_comment(&self.text[start..]);
        let (base, line) = match own.trim_start() {
            line if line.starts_with("++") || line.starts_with("--") => {
                (start + own.len() - line.len(), line)
            }
            _ => (self.base, self.line),
        };
        let whole = |new: String, why: &str| {
            let help = format!("write it as `{new}`{why}");
            Some((help, edit(base, base + line.len(), new)))
        };
        if let Some(declared) = line.strip_prefix("counter ") {
            let name = word_of(declared.trim_start().trim_start_matches(['@', '%', '#']));
            let (_, rest) = declared.split_once(name).filter(|_| !name.is_empty())?;
            return match rest.trim_start().strip_prefix('=').map(str::trim) {
                None if rest.trim().is_empty() => {
                    whole(format!("counter @{name} = 0"), ", with a first value")
                }
                Some(value) if !declared.trim_start().starts_with('@') => {
                    whole(format!("counter @{name} = {value}"), ": a counter begins with `@`")
                }
                _ => None,
            };
        }
        let step = line.trim_end_matches([';', ' ']);
        let ends = |sign| step.strip_prefix(sign).or_else(|| step.strip_suffix(sign));
        let by = |sign| step.split_once(sign);
        let one = |sign| ends(sign).map(|name| (name, "1"));
        let set = [
            ("+=", one("++")),
            ("-=", one("--")),
            ("+=", by("+=")),
            ("-=", by("-=")),
            ("*=", by("*=")),
        ];
        let (sign, (name, value)) = set.into_iter().find_map(|(sign, set)| Some((sign, set?)))?;
        // A step by `+=` that is wrong has a wrong value.
        let is_step = sign == "+=" && name.starts_with('@') && step.contains("+=");
        let (name, value) = (name.trim().trim_start_matches('@'), value.trim());
        if name.is_empty() || !is_word(name) || is_step {
            return None;
        }
        let part = match value.chars().all(|c| c.is_ascii_alphanumeric() || "_@".contains(c)) {
            true => value.to_owned(),
            false => format!("({value})"),
        };
        match sign {
            "+=" => whole(format!("@{name} += {value}"), ""),
            "-=" => whole(
                format!("@{name} = max(0, @{name} - {part})"),
                ": a counter is never negative",
            ),
            _ => whole(format!("@{name} = @{name} * {part}"), ""),
        }
    }

    /// `exp %x`
    fn call(&self) -> Option<(String, Edit)> {
        let before = self.step.trim_end();
        let called = before.rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
        let operand = self.rest.split([' ', ',', ')', '\n']).next()?;
        let is_operand = operand.starts_with('%');
        if before.len() == self.step.len() || !FUNCTIONS.contains(&called) || !is_operand {
            return None;
        }
        let new = format!("{called}({operand})");
        let start = self.base + before.len() - called.len();
        Some((format!("write it as `{new}`"), edit(start, self.at + operand.len(), new)))
    }

    /// `%A: f16[8,8]`
    fn tensor_type(&self, in_body: bool) -> Option<(String, Edit)> {
        let (name, scalar) = self.step.trim_end().split_once(':')?;
        let (name, scalar) = (name.trim(), scalar.trim().parse::<Scalar>().ok()?);
        let end = self.rest.lines().next()?.find(']')?;
        let memory = if in_body { "" } else { ".GL" };
        let ty = format!("{name}:{}.{scalar}{memory}", &self.rest[..=end]);
        Some((format!("write it as `{ty}`"), edit(self.base, self.at + end + 1, ty)))
    }

    /// The start of the line in which the step begins.
    fn line_start(&self) -> usize {
        self.text[..self.base].rfind('\n').map_or(0, |n| n + 1)
    }
}

fn edit(from: usize, to: usize, new: String) -> Edit {
    Edit { span: Span::new(from, to), text: new }
}

/// The first line of a text, without its comment.
pub(super) fn without_comment(text: &str) -> &str {
    let line = text.lines().next().unwrap_or("");
    line.split(" //").next().unwrap_or("").trim_end()
}

/// Modules of functions in other languages.
const MODULES: [&str; 6] = ["np", "torch", "math", "jnp", "tl", "std"];

fn is_word(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn word_of(text: &str) -> &str {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or("")
}

fn has_name(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(i, _)| {
        !text[i + name.len()..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Whether a `[` is open at the end.
fn open_bracket(text: &str) -> bool {
    text.rfind('[').is_some_and(|open| !text[open..].contains(']'))
}

/// The position of a `//` within a parenthesis, where it is meant as a division.
fn division(step: &str) -> Option<usize> {
    let at = step.find("//")?;
    let line = step[..at].rsplit('\n').next().unwrap_or("").trim_end();
    let operand = line.ends_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ')'));
    let depth = step[..at].bytes().fold(0i32, |n, b| {
        n + i32::from(matches!(b, b'(' | b'[')) - i32::from(matches!(b, b')' | b']'))
    });
    (operand && depth > 0).then_some(at)
}

/// The length of the words before the name of a constant in C, JavaScript and other languages:
/// `const int `.
fn constant(line: &str) -> Option<usize> {
    const WORDS: [&str; 14] = [
        "const",
        "constexpr",
        "static",
        "auto",
        "var",
        "int",
        "unsigned",
        "long",
        "size_t",
        "uint32_t",
        "int32_t",
        "int64_t",
        "uint64_t",
        "val",
    ];
    let mut rest = line;
    while WORDS.contains(&word_of(rest)) {
        rest = rest[word_of(rest).len()..].trim_start();
    }
    let name = word_of(rest);
    let value = rest[name.len()..].trim_start();
    (rest.len() < line.len() && !name.is_empty() && value.starts_with('='))
        .then_some(line.len() - rest.len())
}

/// Whether the grammar accepts a loop head, with or without its brace.
fn is_loop_head(head: &str) -> bool {
    let whole = format!("{} {{", head.trim_end_matches(" {"));
    Grammar::parse(Rule::for_head, &whole).is_ok()
}

/// Converts `for k in range(a, b, c)` and `for (int k = a; k < b; k++)`: the length, and the head
/// in carbyne's syntax.
fn loop_head(line: &str) -> Option<(usize, String)> {
    let inner = line.strip_prefix("for")?.trim_start();
    if let Some((name, values)) = inner.split_once(" in ").filter(|(n, _)| is_word(n.trim())) {
        let values = values.trim_start().strip_prefix("range")?.trim_start().strip_prefix('(')?;
        let close = closing(values)?;
        let values: Vec<&str> = values[..close].split(',').map(str::trim).collect();
        let (from, to, by) = match *values.as_slice() {
            [to] => ("0", to, "1"),
            [from, to] => (from, to, "1"),
            [from, to, by] => (from, to, by),
            _ => return None,
        };
        let name = name.trim();
        let end = line.find(" in ")? + line[line.find(" in ")?..].find('(')? + 1;
        let mut end = end + closing(&line[end..])? + 1;
        let colon = line[end..].trim_start().starts_with(':');
        let mut head = format!("for ({name} = {from}; {name} < {to}; {name} += {by})");
        if colon {
            end += line[end..].find(':')? + 1;
            if !line[end..].trim_start().starts_with('{') {
                head.push_str(" {");
            }
        }
        return Some((end, head));
    }
    let open = line.find('(')?;
    let parts = &line[open + 1..];
    let close = closing(parts)?;
    let [start, bound, step] =
        <[&str; 3]>::try_from(parts[..close].split(';').collect::<Vec<_>>()).ok()?;
    let (name, from) = start.split_once('=')?;
    let name = name.split_whitespace().last().filter(|n| is_word(n))?;
    let (counted, to) = bound.split_once('<').filter(|(n, _)| n.trim() == name)?;
    let to = match to.strip_prefix('=') {
        Some(last) => format!("{} + 1", last.trim()),
        None => to.trim().to_owned(),
    };
    let step: String = step.split_whitespace().collect();
    let by = if step == format!("{name}++") || step == format!("++{name}") {
        "1"
    } else {
        step.strip_prefix(counted.trim())?.strip_prefix("+=")?
    };
    let head = format!("for ({name} = {}; {name} < {to}; {name} += {by})", from.trim());
    (head != line[..open + close + 2]).then_some((open + close + 2, head))
}

/// A list in parentheses.
fn tuple(list: &str) -> String {
    let list = list.trim();
    let inner = list.strip_prefix('(');
    match inner.is_some_and(|inner| closing(inner) == Some(inner.len() - 1)) {
        true => list.to_owned(),
        false => format!("({list})"),
    }
}

/// The position of the `)` that closes the parenthesis around the text.
fn closing(text: &str) -> Option<usize> {
    unmatched(text.char_indices(), '(', ')')
}

/// The first `end` without a matching `begin` before it.
fn unmatched(
    mut chars: impl Iterator<Item = (usize, char)>,
    begin: char,
    end: char,
) -> Option<usize> {
    let mut depth = 0;
    let is_unmatched = |(_, c): &(usize, char)| {
        let found = *c == end && depth == 0;
        depth += i32::from(*c == begin) - i32::from(*c == end);
        found
    };
    chars.find(is_unmatched).map(|(i, _)| i)
}

/// Converts `= a if p else b` to a `select`.
fn choice(line: &str) -> Option<String> {
    let (_, value) = line.split_once(" = ")?;
    let (yes, rest) = value.split_once(" if ")?;
    let (asked, no) = rest.split_once(" else ")?;
    let no = no.trim();
    Some(format!("select({}, {}, {no})", asked.trim(), yes.trim()))
}

/// The start of the function call that ends with this text.
fn call_before(text: &str) -> Option<usize> {
    let inside = text.strip_suffix(')')?;
    let open = unmatched(inside.char_indices().rev(), ')', '(')?;
    let word = inside[..open].rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
    FUNCTIONS.contains(&word).then_some(open - word.len())
}
