//! Parses lines of the calculator to syntax trees. Their grammar is:
//!
//! ```text
//! line  = [step {";" step}] [";"] ["where" FACTS]
//! step  = [NAME "="] chain                 chain = pair {"o" pair}
//! pair  = sum [":" sum]                    sum  = item {OPERATOR item}
//! item  = "-" item | INT {"@" INT} | "_" | "Sw" "<" INT "," INT "," INT ">" | "true" | "false"
//!       | "(" [chain {"," chain}] ")" | "[" [chain {"," chain}] "]"
//!       | NAME | NAME "(" [chain {"," chain}] ")"
//! ```
//! `_4` means `4`, `∘` means `o`. Operators, their precedence and FACTS are as in program texts. A
//! comment begins with `//` or `#`.
//!
//! Invariant: nesting is limited to [`MAX_NESTING`] levels and the number of items to
//! [`MAX_ITEMS`] before anything is built. No text exhausts the stack or memory.

use super::scan::{Scanner, Sign};
use carbyne_ir::ast::BinOp;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::limits::{MAX_EXPR_OPERATORS, MAX_NESTING};
use carbyne_ir::span::Span;

/// Maximum number of items in one line.
const MAX_ITEMS: usize = 1 << 16;

/// A part of an expression and its place.
#[derive(Debug)]
pub(super) struct Expr {
    pub(super) span: Span,
    pub(super) kind: Kind,
}

/// The kind of a part.
#[derive(Debug)]
pub(super) enum Kind {
    Int(i64),
    Bool(bool),
    Hole,
    Basis(i64, Vec<u32>),
    Tuple(Vec<Expr>),
    List(Vec<Expr>),
    /// Shape and stride.
    Pair(Box<Expr>, Box<Expr>),
    /// At least two parts with `o` between them.
    Chain(Vec<Expr>),
    /// An operator and its two operands.
    Bin(BinOp, Box<Expr>, Box<Expr>),
    /// The three parameters of a swizzle.
    Swizzle([i64; 3]),
    Name(String),
    /// A name, its place, and the arguments.
    Call(String, Span, Vec<Expr>),
}

/// An expression, and the name that the line binds to its value, if any.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) name: Option<(String, Span)>,
    pub(super) expr: Expr,
}

/// A parsed line.
#[derive(Debug)]
pub(super) struct Line<'a> {
    /// Empty for a blank line or a comment.
    pub(super) steps: Vec<Step>,
    /// The facts after `where`, and the place of the clause.
    pub(super) facts: (&'a str, Span),
}

type Parsed<T> = Result<T, Box<Diagnostic>>;

/// Parses a line.
pub(super) fn line(text: &str) -> Parsed<Line<'_>> {
    let mut parser = Parser { scan: Scanner::new(text)?, items: 0 };
    let mut steps = vec![];
    while !parser.at(&Sign::End) && !parser.at_where() {
        let name = match (parser.scan.sign.clone(), parser.scan.peek()?) {
            (Sign::Word(name), Sign::Is) => {
                let span = parser.scan.span;
                parser.advance()?;
                parser.advance()?;
                Some((name, span))
            }
            _ => None,
        };
        steps.push(Step { name, expr: parser.chain(0)? });
        if !parser.eat(&Sign::Semicolon)? && !parser.at(&Sign::End) && !parser.at_where() {
            return Err(parser.unexpected("`;`, `o`, `:`, `where` or the end"));
        }
    }
    let mut facts = ("", Span::default());
    if parser.at_where() {
        facts = parser.scan.rest();
        if facts.0.trim().is_empty() {
            parser.advance()?;
            return Err(parser.unexpected("a fact such as `M >= 1`"));
        }
    }
    Ok(Line { steps, facts })
}

struct Parser<'a> {
    scan: Scanner<'a>,
    items: usize,
}

impl Parser<'_> {
    fn chain(&mut self, depth: usize) -> Parsed<Expr> {
        let first = self.pair(depth)?;
        if !self.at_o() {
            return Ok(first);
        }
        let mut span = first.span;
        let mut all = vec![first];
        while self.at_o() {
            self.advance()?;
            let next = self.pair(depth)?;
            span = span.to(next.span);
            all.push(next);
        }
        Ok(Expr { span, kind: Kind::Chain(all) })
    }

    fn at_o(&self) -> bool {
        matches!(&self.scan.sign, Sign::Word(w) if w == "o") || self.at(&Sign::Ring)
    }

    fn at_where(&self) -> bool {
        matches!(&self.scan.sign, Sign::Word(w) if w == "where")
    }

    fn pair(&mut self, depth: usize) -> Parsed<Expr> {
        let shape = self.sum(depth)?;
        if !self.eat(&Sign::Colon)? {
            return Ok(shape);
        }
        let stride = self.sum(depth)?;
        let span = shape.span.to(stride.span);
        Ok(Expr { span, kind: Kind::Pair(Box::new(shape), Box::new(stride)) })
    }

    fn sum(&mut self, depth: usize) -> Parsed<Expr> {
        let first = self.item(depth)?;
        let mut left = MAX_EXPR_OPERATORS;
        let next = || {
            let Sign::Op(op) = self.scan.sign else { return Ok(None) };
            left = left.checked_sub(1).ok_or_else(|| {
                let message = format!("more than {MAX_EXPR_OPERATORS} operators in one expression");
                let d = Diagnostic::new(Code::ExprTooLong, self.scan.span, message);
                Box::new(d.label("one too many").help("bind parts of the expression to names"))
            })?;
            self.advance()?;
            Ok(Some((op, self.item(depth)?)))
        };
        BinOp::grouped(first, next, |op, a, b| {
            let span = a.span.to(b.span);
            Expr { span, kind: Kind::Bin(op, Box::new(a), Box::new(b)) }
        })
    }

    fn item(&mut self, depth: usize) -> Parsed<Expr> {
        let (first, mut negative) = (self.scan.span, false);
        while self.eat(&Sign::Op(BinOp::Sub))? {
            self.count()?;
            negative = !negative;
        }
        let mut item = self.unsigned(depth)?;
        if negative {
            let zero = Expr { span: first, kind: Kind::Int(0) };
            let span = first.to(item.span);
            item = Expr { span, kind: Kind::Bin(BinOp::Sub, Box::new(zero), Box::new(item)) };
        }
        Ok(item)
    }

    fn unsigned(&mut self, depth: usize) -> Parsed<Expr> {
        self.count()?;
        let start = self.scan.span;
        let kind = match self.scan.sign.clone() {
            Sign::Int(scale) => {
                self.advance()?;
                let mut path = vec![];
                while self.eat(&Sign::At)? {
                    let (n, span) = self.int("the number of a mode after `@`")?;
                    path.push(u32::try_from(n).map_err(|_| wrong(span, "a mode's number", &n))?);
                    self.count()?;
                }
                if path.is_empty() { Kind::Int(scale) } else { Kind::Basis(scale, path) }
            }
            Sign::Hole => {
                self.advance()?;
                Kind::Hole
            }
            Sign::Open(open @ ('(' | '[')) => {
                let items = self.items(depth)?;
                if open == '(' { Kind::Tuple(items) } else { Kind::List(items) }
            }
            Sign::Word(word) => {
                self.advance()?;
                match (word.as_str(), &self.scan.sign) {
                    ("Sw", Sign::Open('<')) => Kind::Swizzle(self.swizzle()?),
                    ("true", _) => Kind::Bool(true),
                    ("false", _) => Kind::Bool(false),
                    (_, Sign::Open('(')) => Kind::Call(word, start, self.items(depth)?),
                    _ => Kind::Name(word),
                }
            }
            _ => return Err(self.unexpected("a layout, a tuple, a number or an operation")),
        };
        Ok(Expr { span: start.to(self.scan.before), kind })
    }

    /// Counts one more item, up to the limit.
    fn count(&mut self) -> Parsed<()> {
        self.items += 1;
        if self.items <= MAX_ITEMS {
            return Ok(());
        }
        let message = format!("the line has more than {MAX_ITEMS} items");
        let d = Diagnostic::new(Code::CalcTooLarge, self.scan.span, message)
            .label("too many items from here on")
            .help("split the calculation into several lines");
        Err(Box::new(d))
    }

    /// The items in parentheses or brackets.
    fn items(&mut self, depth: usize) -> Parsed<Vec<Expr>> {
        let open = self.scan.span;
        if depth >= MAX_NESTING {
            let message = format!("brackets nest deeper than {MAX_NESTING} levels");
            let d = Diagnostic::new(Code::TooDeep, open, message)
                .label("one level too many")
                .help("bind the inner part to a name first: `A = ...; size(A)`");
            return Err(Box::new(d));
        }
        let close = if self.at(&Sign::Open('(')) { ')' } else { ']' };
        self.advance()?;
        let mut items = vec![];
        while !self.eat(&Sign::Close(close))? {
            items.push(self.chain(depth + 1)?);
            if !self.eat(&Sign::Comma)? && !self.at(&Sign::Close(close)) {
                let mut d = self.unexpected(&format!("`,` or `{close}`"));
                *d = d.related(open, "opened here");
                return Err(d);
            }
        }
        Ok(items)
    }

    fn swizzle(&mut self) -> Parsed<[i64; 3]> {
        let mut fields = [0; 3];
        for (i, field) in fields.iter_mut().enumerate() {
            let (sign, wanted) =
                if i == 0 { (Sign::Open('<'), "`<`") } else { (Sign::Comma, "`,`") };
            if !self.eat(&sign)? {
                return Err(self.unexpected(wanted));
            }
            *field = self.int("one of the three numbers of a swizzle")?.0;
        }
        if self.eat(&Sign::Close('>'))? { Ok(fields) } else { Err(self.unexpected("`>`")) }
    }

    fn int(&mut self, wanted: &str) -> Parsed<(i64, Span)> {
        let Sign::Int(v) = self.scan.sign else { return Err(self.unexpected(wanted)) };
        let span = self.scan.span;
        self.advance()?;
        Ok((v, span))
    }

    fn at(&self, sign: &Sign) -> bool {
        self.scan.sign == *sign
    }

    fn eat(&mut self, sign: &Sign) -> Parsed<bool> {
        let here = self.at(sign);
        if here {
            self.advance()?;
        }
        Ok(here)
    }

    fn advance(&mut self) -> Parsed<()> {
        self.scan.advance()
    }

    fn unexpected(&self, wanted: &str) -> Box<Diagnostic> {
        let found = self.scan.sign.to_string();
        // The end of the line has no characters, so show the last sign.
        let span = if self.at(&Sign::End) { self.scan.before } else { self.scan.span };
        let message = format!("expected {wanted}, found {found}");
        let d = Diagnostic::new(Code::CalcSyntax, span, message);
        let help = match &self.scan.sign {
            Sign::Close(_) => "add the opening bracket, or remove this bracket",
            Sign::Is => {
                "write a binding as a name, `=` and an expression: `A = (4,8):(8,1); size(A)`"
            }
            Sign::End => "complete the expression",
            _ => "write an expression such as `composition((6,2):(8,2), (4,3):(3,1))`",
        };
        let after = if self.at(&Sign::End) { " after this" } else { "" };
        Box::new(d.label(format!("expected {wanted}{after}")).help(help))
    }
}

fn wrong(span: Span, what: &str, found: &i64) -> Box<Diagnostic> {
    let message = format!("{found} is not {what}");
    let d = Diagnostic::new(Code::CalcSyntax, span, message).label("out of range");
    Box::new(d.help("count modes from 0: `1@0` is the stride along mode 0"))
}
