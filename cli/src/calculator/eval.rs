//! Evaluates expressions of the calculator, and keeps the names and symbols that lines bind.
//!
//! Arithmetic is as in program texts: [`BinOp`] over an [`ExprArena`].
//!
//! Invariant: memory and time are bounded. A line calls at most [`MAX_OPERATIONS`] operations and
//! computes values of at most [`MAX_COST`] numbers in total; all bound values have at most
//! [`MAX_COST`] numbers. Invariant: a line that fails binds nothing.

use super::fault::Fault;
use super::operation::{Args, Operation};
use super::ops;
use super::parse::{self, Expr, Kind, Step};
use super::refusal::{Call, quoted, refused, short};
use super::scope::{self, Scope};
use super::value::{self, Basis, ComposedLayout, CoordLayout, Layout, Misfit, Value};
use carbyne_ir::ast::BinOp;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::{Dim, ExprArena};
use carbyne_ir::layout::{LayoutError, Swizzle};
use carbyne_ir::span::Span;
use std::collections::BTreeMap;

/// Maximum number of operation calls in one line.
const MAX_OPERATIONS: usize = 256;
/// Maximum number of numbers in all values of a line, and in all bound values.
const MAX_COST: usize = 1 << 18;

type Worth<T = Value> = Result<T, Box<Diagnostic>>;

/// The symbols and the names that are bound so far.
#[derive(Debug, Default)]
pub(crate) struct Session {
    scope: Scope,
    names: BTreeMap<String, Value>,
    /// The number of numbers in all bound values.
    kept: usize,
}

impl Session {
    /// The value of a line's last expression; `None` for a blank line or a comment.
    pub(crate) fn line(&mut self, text: &str) -> Worth<Option<Value>> {
        let parsed = parse::line(text)?;
        let known = self.known(&parsed)?;
        let (scope, names) = known.as_ref().map_or((&self.scope, &self.names), |(s, n)| (s, n));
        let mut line = Line::new(scope, names, self.kept);
        let last = line.steps(&parsed.steps)?;
        let Line { bound, kept, .. } = line;
        self.kept = kept;
        if let Some((scope, names)) = known {
            (self.scope, self.names) = (scope, names);
        }
        self.names.extend(bound);
        Ok(last)
    }

    /// Adds the facts of all lines before the lines are evaluated, so that a name is one symbol in
    /// all lines.
    pub(super) fn assume<'a>(&mut self, lines: impl Iterator<Item = &'a str>) -> Worth<()> {
        for text in lines {
            // Errors of a line are reported when the line is evaluated.
            let Ok(line) = parse::line(text) else { continue };
            if let Some((scope, names)) = self.known(&line)? {
                (self.scope, self.names) = (scope, names);
            }
        }
        Ok(())
    }

    /// Removes all names except symbols.
    pub(super) fn forget(&mut self) {
        (self.names, self.kept) = (BTreeMap::new(), 0);
    }

    /// The value as an expression that evaluates to this value.
    pub(crate) fn text(&self, value: &Value) -> String {
        self.scope.text(value)
    }

    /// The arena of the symbols.
    pub(crate) fn arena(&self) -> &ExprArena {
        &self.scope.arena
    }

    /// The symbols and names after a line; `None` if the line neither states new facts nor gives a
    /// symbol a value.
    fn known(&self, line: &parse::Line<'_>) -> Worth<Option<(Scope, BTreeMap<String, Value>)>> {
        let (facts, span) = line.facts;
        let stated = self.scope.with(facts, &BTreeMap::new(), span)?;
        let symbols = stated.as_ref().unwrap_or(&self.scope);
        let mut values = BTreeMap::new();
        let mut place = span;
        for step in &line.steps {
            let Some((name, at)) = &step.name else { continue };
            if symbols.symbol(name).is_none() {
                continue;
            }
            let Kind::Int(value @ 0..) = step.expr.kind else {
                let message = format!("the value of the symbol `{name}` is not an integer >= 0");
                let d = Diagnostic::new(Code::CalcArguments, step.expr.span, message);
                let help = format!("write its value, as in `{name} = 16`, or choose another name");
                return Err(Box::new(d.label("not a symbol value").help(help)));
            };
            values.insert(name.clone(), value);
            place = at.to(step.expr.span);
        }
        let scope = match values.is_empty() {
            true => stated,
            false => self.scope.with(facts, &values, place)?,
        };
        let Some(scope) = scope else { return Ok(None) };
        if let Some(name) = self.names.keys().find(|name| scope.symbol(name).is_some()) {
            return Err(scope::not_bindable(name, span));
        }
        // Values over symbols belong to the old arena, so parse their texts again in the new one.
        let none = BTreeMap::new();
        let mut names = BTreeMap::new();
        for (name, value) in &self.names {
            let again = if value.is_symbolic() {
                let text = value.text(&self.scope.arena);
                Line::new(&scope, &none, 0).steps(&parse::line(&text)?.steps)?
            } else {
                None
            };
            names.insert(name.clone(), again.unwrap_or_else(|| value.clone()));
        }
        Ok(Some((scope, names)))
    }
}

struct Line<'a> {
    scope: &'a Scope,
    names: &'a BTreeMap<String, Value>,
    bound: BTreeMap<String, Value>,
    kept: usize,
    calls: usize,
    cost: usize,
}

impl<'a> Line<'a> {
    fn new(scope: &'a Scope, names: &'a BTreeMap<String, Value>, kept: usize) -> Self {
        Line { scope, names, bound: BTreeMap::new(), kept, calls: 0, cost: 0 }
    }

    /// The value of the last step; `None` if there are no steps.
    fn steps(&mut self, steps: &[Step]) -> Worth<Option<Value>> {
        let mut last = None;
        for step in steps {
            last = Some(self.step(step)?);
        }
        Ok(last)
    }

    fn step(&mut self, step: &Step) -> Worth {
        let value = self.value(&step.expr)?;
        let Some((name, span)) = &step.name else { return Ok(value) };
        if !scope::may_be_bound(name) {
            return Err(scope::not_bindable(name, *span));
        }
        if self.scope.symbol(name).is_some() {
            return Ok(value);
        }
        let before = self.bound.get(name).or_else(|| self.names.get(name)).map_or(0, Value::cost);
        self.kept = self.kept.saturating_sub(before).saturating_add(value.cost());
        if self.kept > MAX_COST {
            return Err(too_large(*span, "the values bound to names have"));
        }
        self.bound.insert(name.clone(), value.clone());
        Ok(value)
    }

    fn value(&mut self, expr: &Expr) -> Worth {
        let value = self.value_within(expr)?;
        // The items of a tuple have been counted.
        let cost = match &expr.kind {
            Kind::Tuple(_) | Kind::List(_) => 1,
            _ => value.cost(),
        };
        self.cost = self.cost.saturating_add(cost);
        if self.cost > MAX_COST {
            return Err(too_large(expr.span, "the values of this line have"));
        }
        Ok(value)
    }

    fn value_within(&mut self, expr: &Expr) -> Worth {
        let refuse = |e: &LayoutError| Box::new(refused(e, expr.span).label("refused"));
        match &expr.kind {
            Kind::Int(v) => Ok(Value::from(*v)),
            Kind::Bin(op, a, b) => self.binary(expr.span, *op, a, b),
            Kind::Bool(v) => Ok(Value::Bool(*v)),
            Kind::Hole => Ok(Value::Hole),
            Kind::Basis(scale, path) => {
                // In the text, the innermost mode comes first.
                let path: Vec<usize> = path.iter().rev().map(|n| *n as usize).collect();
                Basis::along(Dim::Const(*scale), &path).map(Value::Basis).map_err(|e| refuse(&e))
            }
            Kind::Tuple(items) => {
                // Parentheses around a layout group; around a number they make a tuple.
                let mut values = self.all(items)?;
                if let ([only], true) = (&values[..], values.iter().all(is_whole)) {
                    let only = only.clone();
                    values.clear();
                    return Ok(only);
                }
                if let Some(k) = values.iter().position(is_whole) {
                    let message = format!("a tuple cannot contain a {}", kind_of(&values[k]));
                    let d = Diagnostic::new(Code::CalcArguments, items[k].span, message)
                        .label(format!("this is {}", quoted(&self.scope.arena, &values[k])))
                        .help(
                            "write `make_layout(4:1, 8:2)` to concatenate, or `[4:1, 8:2]` for a \
                             tiler by mode",
                        );
                    return Err(Box::new(d));
                }
                Value::nested(values, false).map_err(|e| refuse(&e))
            }
            Kind::List(items) => Value::nested(self.all(items)?, true).map_err(|e| refuse(&e)),
            Kind::Pair(shape, stride) => self.pair(expr.span, shape, stride),
            Kind::Chain(all) => self.chain(all),
            Kind::Swizzle([bits, base, shift]) => {
                Swizzle::of_fields(*bits, *base, *shift).map(Value::Swizzle).map_err(|e| refuse(&e))
            }
            Kind::Name(name) => match self.lookup(name) {
                Some(value) => Ok(value),
                None => Err(unknown(name, expr.span, self.names.keys().chain(self.bound.keys()))),
            },
            Kind::Call(name, place, args) => self.call(expr.span, name, *place, args),
        }
    }

    fn lookup(&self, name: &str) -> Option<Value> {
        if let Some(symbol) = self.scope.symbol(name) {
            return Some(Value::Int(symbol));
        }
        self.bound.get(name).or_else(|| self.names.get(name)).cloned()
    }

    fn binary(&mut self, span: Span, op: BinOp, a: &Expr, b: &Expr) -> Worth {
        let mut number = |expr: &Expr| {
            let mut value = self.value(expr)?;
            // `(x)` is `x` if a number is expected.
            while let Value::Tuple(mut items) = value {
                if items.len() != 1 {
                    value = Value::Tuple(items);
                    break;
                }
                value = items.remove(0);
            }
            value.number().map_err(|_| {
                let message = format!("`{}` needs numbers, found {}", op.as_str(), value.words());
                let d = Diagnostic::new(Code::CalcArguments, expr.span, message)
                    .label(format!("this is {}", quoted(&self.scope.arena, &value)))
                    .help("write numbers on both sides: `M*4 + 1`");
                Box::new(d)
            })
        };
        let (a, b) = (number(a)?, number(b)?);
        let result = op.apply(&self.scope.arena, a, b);
        result.map(Value::Int).map_err(|e| Box::new(refused(&e, span).label("refused")))
    }

    fn all(&mut self, exprs: &[Expr]) -> Worth<Vec<Value>> {
        exprs.iter().map(|e| self.value(e)).collect()
    }

    fn pair(&mut self, span: Span, shape: &Expr, stride: &Expr) -> Worth {
        let (d, s) = (self.value(shape)?, self.value(stride)?);
        let cx = &self.scope.arena;
        let tuple = |value: &Value, expr: &Expr, what: &str| match value.shape() {
            Ok(tuple) => Ok(tuple),
            Err(Misfit::Refused(e)) => Err(Box::new(refused(&e, expr.span).label("refused"))),
            Err(_) => {
                let message = format!("{what} consists of integers, found {}", value.words());
                let d = Diagnostic::new(Code::CalcArguments, expr.span, message)
                    .label(format!("this is {}", quoted(cx, value)))
                    .help("write a shape, `:` and a stride: `(4,8):(8,1)`");
                Err(Box::new(d))
            }
        };
        let extents = tuple(&d, shape, "a shape")?;
        if has_basis(&s) {
            let refuse = |e| Box::new(refused(&e, span).label("refused"));
            let other = short(s.text(cx));
            let wrong = LayoutError::Incongruent { shape: short(d.text(cx)), other };
            let strides = s.basis().ok_or(wrong).map_err(refuse)?;
            return CoordLayout::with_strides(&extents, &strides)
                .map(Value::Coords)
                .map_err(refuse);
        }
        let strides = tuple(&s, stride, "a stride")?;
        Layout::new_in(cx, extents, strides).map(Value::Layout).map_err(|e| {
            let (at, label) = match &e {
                LayoutError::Extent { extent } => {
                    (leaf(shape, *extent).unwrap_or(shape.span), "below 1")
                }
                LayoutError::Incongruent { .. } => (span, "nested differently"),
                _ => (span, "refused"),
            };
            Box::new(refused(&e, at).label(label))
        })
    }

    /// Evaluates from right to left: a swizzle applies to the offset and the layout that follow,
    /// layouts compose.
    fn chain(&mut self, all: &[Expr]) -> Worth {
        let mut values = self.all(all)?;
        let mut spans: Vec<Span> = all.iter().map(|e| e.span).collect();
        while let (Some(right), Some(right_at)) = (values.pop(), spans.pop()) {
            let (Some(left), Some(left_at)) = (values.pop(), spans.pop()) else {
                return Ok(right);
            };
            let offset = match &left {
                Value::Int(v) if matches!(values.last(), Some(Value::Swizzle(_))) => Some(*v),
                _ => None,
            };
            let (value, span) = if let Some(offset) = offset {
                let swizzle = values.pop();
                let span = spans.pop().unwrap_or(left_at).to(right_at);
                (self.swizzled(swizzle.as_ref(), offset, &right, right_at)?, span)
            } else if matches!(left, Value::Swizzle(_)) {
                (self.swizzled(Some(&left), Dim::Const(0), &right, right_at)?, left_at.to(right_at))
            } else {
                let span = left_at.to(right_at);
                let args = vec![left, right];
                (self.apply(composition(span)?, span, args, &[left_at, right_at])?, span)
            };
            self.cost = self.cost.saturating_add(value.cost());
            values.push(value);
            spans.push(span);
        }
        // Unreachable: a chain has at least two members.
        Ok(Value::Hole)
    }

    fn call(&mut self, span: Span, name: &str, place: Span, args: &[Expr]) -> Worth {
        if let Some(layout) = self.lookup(name) {
            // `A(1,2)` is the index of a coordinate, `A(1,_)` is a slice.
            let values = self.all(args)?;
            let coord = match <[Value; 1]>::try_from(values) {
                Ok([one]) => one,
                Err(values) => Value::nested(values, false)
                    .map_err(|e| Box::new(refused(&e, span).label("refused")))?,
            };
            let name = if has_hole(&coord) { "slice" } else { "crd2idx" };
            let Some(op) = ops::find(name) else { return Err(unknown(name, place, [].iter())) };
            let inside = args.first().zip(args.last());
            let inside = inside.map_or(span, |(first, last)| first.span.to(last.span));
            return self.apply(op, span, vec![coord, layout], &[inside, place]);
        }
        let Some(op) = ops::find(name) else {
            return Err(unknown(name, place, self.names.keys().chain(self.bound.keys())));
        };
        let spans: Vec<Span> = args.iter().map(|e| e.span).collect();
        let values = self.all(args)?;
        self.apply(op, span, values, &spans)
    }

    fn apply(
        &mut self,
        op: &'static Operation,
        span: Span,
        args: Vec<Value>,
        spans: &[Span],
    ) -> Worth {
        self.calls += 1;
        if self.calls > MAX_OPERATIONS {
            let message = format!("the line calls more than {MAX_OPERATIONS} operations");
            let d = Diagnostic::new(Code::CalcTooLarge, span, message)
                .label("one too many")
                .help("split the calculation into several lines");
            return Err(Box::new(d));
        }
        let cx = &self.scope.arena;
        let call = Call { cx, op, span, args: &args, spans };
        apply_operation(cx, op, &args).map_err(|fault| fault.diagnostic(&call))
    }

    fn swizzled(&self, swizzle: Option<&Value>, offset: Dim, layout: &Value, at: Span) -> Worth {
        let cx = &self.scope.arena;
        let inner = match layout {
            Value::Layout(layout) => Some(ComposedLayout::from(layout.clone())),
            Value::Composed(inner) => Some((**inner).clone()),
            _ => None,
        };
        let (Some(Value::Swizzle(swizzle)), Some(inner)) = (swizzle, inner) else {
            let found = layout.words();
            let message = format!("a swizzle applies to a layout of integers, found {found}");
            let d = Diagnostic::new(Code::CalcArguments, at, message)
                .label(format!("this is {}", quoted(cx, layout)))
                .help("write swizzle, offset, layout: `Sw<3,4,3> o 0 o (8,64):(64,1)`");
            return Err(Box::new(d));
        };
        value::swizzled(cx, *swizzle, offset, &inner)
            .map(|c| Value::Composed(Box::new(c)))
            .map_err(|e| Box::new(refused(&e, at).label("refused")))
    }
}

/// Applies an operation to operands.
pub(super) fn apply_operation(
    cx: &ExprArena,
    op: &'static Operation,
    args: &[Value],
) -> Result<Value, Fault> {
    if args.len() < op.required() || op.most().is_some_and(|most| args.len() > most) {
        return Err(Fault::Count);
    }
    for (k, arg) in args.iter().enumerate() {
        let wanted = op.kind(k);
        arg.fits(cx, wanted).map_err(|misfit| misfit.fault(k, wanted))?;
    }
    (op.run)(&Args::new(cx, args))
}

fn composition(span: Span) -> Worth<&'static Operation> {
    ops::find("composition").ok_or_else(|| unknown("composition", span, [].iter()))
}

fn unknown<'a>(name: &str, span: Span, bound: impl Iterator<Item = &'a String>) -> Box<Diagnostic> {
    let d =
        Diagnostic::new(Code::CalcName, span, format!("there is no operation or name `{name}`"))
            .label("neither an operation nor bound");
    let help = match ops::nearest(name, bound) {
        Some(near) => format!("did you mean `{near}`? `carbyne layout --list` lists all names"),
        None => {
            let symbol = "or, for a symbol, state a fact";
            format!("use a name from `carbyne layout --list`, {symbol}: `where {name} >= 1`")
        }
    };
    Box::new(d.help(help))
}

fn too_large(span: Span, what: &str) -> Box<Diagnostic> {
    let message = format!("{what} more than {MAX_COST} numbers");
    let d = Diagnostic::new(Code::CalcTooLarge, span, message)
        .label("too much")
        .help("split the calculation, and list fewer values");
    Box::new(d)
}

/// Whether the value cannot be an item of a tuple.
fn is_whole(v: &Value) -> bool {
    matches!(
        v,
        Value::Layout(_)
            | Value::Coords(_)
            | Value::Composed(_)
            | Value::Swizzle(_)
            | Value::List(_)
            | Value::Bool(_)
    )
}

fn kind_of(v: &Value) -> &'static str {
    v.words().split_once(' ').map_or("such value", |(_, noun)| noun)
}

fn has_basis(v: &Value) -> bool {
    match v {
        Value::Basis(_) => true,
        Value::Tuple(items) | Value::List(items) => items.iter().any(has_basis),
        _ => false,
    }
}

fn has_hole(v: &Value) -> bool {
    match v {
        Value::Hole => true,
        Value::Tuple(items) | Value::List(items) => items.iter().any(has_hole),
        _ => false,
    }
}

/// The place of this number in the expression.
fn leaf(expr: &Expr, number: i64) -> Option<Span> {
    match &expr.kind {
        Kind::Int(v) if *v == number => Some(expr.span),
        Kind::Tuple(items) | Kind::List(items) => items.iter().find_map(|e| leaf(e, number)),
        _ => None,
    }
}
