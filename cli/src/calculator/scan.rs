//! Splits an expression of the calculator into tokens (here: signs): words, numbers, marks.
//!
//! Invariant: spans are byte ranges of whole characters.

use carbyne_ir::ast::BinOp;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::span::Span;
use std::fmt;

/// Maximum length of a name.
const MAX_NAME: usize = 64;

/// A word, a number or a mark.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Sign {
    Word(String),
    Int(i64),
    /// `_`
    Hole,
    /// `(`, `[` or `<`
    Open(char),
    /// `)`, `]` or `>`
    Close(char),
    Comma,
    Colon,
    Semicolon,
    /// `@`
    At,
    /// `=`
    Is,
    /// `∘`
    Ring,
    /// `+`, `-`, `*`, `/` or `%`
    Op(BinOp),
    End,
}

impl fmt::Display for Sign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sign::Word(w) => write!(f, "`{w}`"),
            Sign::Int(v) => write!(f, "`{v}`"),
            Sign::Hole => f.write_str("`_`"),
            Sign::Open(c) | Sign::Close(c) => write!(f, "`{c}`"),
            Sign::Comma => f.write_str("`,`"),
            Sign::Colon => f.write_str("`:`"),
            Sign::Semicolon => f.write_str("`;`"),
            Sign::At => f.write_str("`@`"),
            Sign::Is => f.write_str("`=`"),
            Sign::Ring => f.write_str("`∘`"),
            Sign::Op(op) => write!(f, "`{}`", op.as_str()),
            Sign::End => f.write_str("the end"),
        }
    }
}

/// The current sign of a text, its place, and the place of the sign before.
#[derive(Clone)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    pub(super) sign: Sign,
    pub(super) span: Span,
    pub(super) before: Span,
}

impl<'a> Scanner<'a> {
    /// A scanner at the first sign of the text.
    pub(super) fn new(text: &'a str) -> Result<Self, Box<Diagnostic>> {
        let span = Span::new(0, 0);
        let mut scanner = Scanner { text, at: 0, sign: Sign::End, span, before: span };
        scanner.advance()?;
        Ok(scanner)
    }

    /// The text after the current sign, up to the end or a comment, and its place.
    pub(super) fn rest(&self) -> (&'a str, Span) {
        let rest = &self.text[self.at..];
        let end = [rest.find('#'), rest.find("//")].into_iter().flatten().min();
        let rest = rest[..end.unwrap_or(rest.len())].trim_end();
        (rest, Span::new(self.span.start as usize, self.at + rest.len()))
    }

    /// The sign after the current one.
    pub(super) fn peek(&self) -> Result<Sign, Box<Diagnostic>> {
        let mut ahead = self.clone();
        // An error there is reported when the scanner reaches that sign.
        Ok(ahead.advance().map_or(Sign::End, |()| ahead.sign))
    }

    /// Goes to the next sign.
    pub(super) fn advance(&mut self) -> Result<(), Box<Diagnostic>> {
        let rest = &self.text[self.at..];
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
        let start = self.at + blanks;
        let rest = &self.text[start..];
        self.before = self.span;
        let mut chars = rest.chars();
        let first = chars.next();
        let second = chars.next();
        // After an operand, `-` is the operator; elsewhere it is the sign of a number.
        let behind = match &self.sign {
            Sign::Word(word) => word != "o",
            sign => matches!(sign, Sign::Int(_) | Sign::Hole | Sign::Close(_)),
        };
        let digits =
            |from: usize| from + rest[from..].bytes().take_while(u8::is_ascii_digit).count();
        let (sign, length) = match (first, second) {
            (None, _) | (Some('#'), _) | (Some('/'), Some('/')) => (Sign::End, 0),
            (Some('_'), Some('0'..='9')) => number(&rest[1..digits(1)], 1, start)?,
            (Some('_'), Some('-')) if digits(2) > 2 => number(&rest[1..digits(2)], 1, start)?,
            (Some('_'), _) => (Sign::Hole, 1),
            (Some('0'..='9'), _) => number(&rest[..digits(0)], 0, start)?,
            (Some('-'), Some('0'..='9')) if !behind => number(&rest[..digits(1)], 0, start)?,
            (Some(c @ ('(' | '[' | '<')), _) => (Sign::Open(c), 1),
            (Some(c @ (')' | ']' | '>')), _) => (Sign::Close(c), 1),
            (Some(','), _) => (Sign::Comma, 1),
            (Some(':'), _) => (Sign::Colon, 1),
            (Some(';'), _) => (Sign::Semicolon, 1),
            (Some('@'), _) => (Sign::At, 1),
            (Some('='), _) => (Sign::Is, 1),
            (Some('+'), _) => (Sign::Op(BinOp::Add), 1),
            (Some('-'), _) => (Sign::Op(BinOp::Sub), 1),
            (Some('*'), _) => (Sign::Op(BinOp::Mul), 1),
            (Some('/'), _) => (Sign::Op(BinOp::Div), 1),
            (Some('%'), _) => (Sign::Op(BinOp::Mod), 1),
            (Some('∘'), _) => (Sign::Ring, '∘'.len_utf8()),
            (Some('a'..='z' | 'A'..='Z'), _) => word(rest, start)?,
            (Some(c), _) => {
                let span = Span::new(start, start + c.len_utf8());
                let d = Diagnostic::new(Code::CalcSyntax, span, "unknown character")
                    .label("not part of a layout expression")
                    .help("use names, numbers and `( ) [ ] < > , : ; = @ _ + - * / %`");
                return Err(Box::new(d));
            }
        };
        self.sign = sign;
        self.span = Span::new(start, start + length);
        self.at = start + length;
        Ok(())
    }
}

fn word(rest: &str, start: usize) -> Result<(Sign, usize), Box<Diagnostic>> {
    let length = rest.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
    if length > MAX_NAME {
        let span = Span::new(start, start + length);
        let message = format!("a name has {length} characters");
        let d = Diagnostic::new(Code::CalcSyntax, span, message)
            .label(format!("the maximum is {MAX_NAME}"))
            .help("shorten the name");
        return Err(Box::new(d));
    }
    Ok((Sign::Word(rest[..length].to_owned()), length))
}

/// The integer with these digits, after a mark of `mark` bytes.
fn number(digits: &str, mark: usize, start: usize) -> Result<(Sign, usize), Box<Diagnostic>> {
    let length = mark + digits.len();
    match digits.parse() {
        Ok(v) => Ok((Sign::Int(v), length)),
        Err(_) => {
            let span = Span::new(start, start + length);
            let d = Diagnostic::new(Code::Number, span, "the integer does not fit 64 bits")
                .label("too large")
                .help("write an integer from -9223372036854775808 to 9223372036854775807");
            Err(Box::new(d))
        }
    }
}
