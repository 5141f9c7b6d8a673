//! The worth of expressions.
//!
//! Invariant: a line makes at most [`MAX_OPERATIONS`] calls and handles values of at most [`MAX_COST`]
//! numbers in all, and what is bound costs no more, so memory and time are bounded.
//! Invariant: a line that fails binds nothing.

use super::fault::Fault;
use super::operation::{Args, Operation};
use super::ops;
use super::parse::{self, Expr, Kind, Step};
use super::refusal::{Call, quoted, refused, short};
use super::value::{Misfit, Value, composed, swizzle};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::layout::{Basis, ComposedLayout, CoordLayout, Layout, LayoutError};
use carbyne_ir::span::Span;
use std::collections::BTreeMap;

/// Most calls of operations in one line.
const MAX_OPERATIONS: usize = 256;
/// Most numbers of all values of a line together, and of all that is bound.
const MAX_COST: usize = 1 << 18;

type Worth<T = Value> = Result<T, Box<Diagnostic>>;

/// The names bound so far.
#[derive(Debug, Default)]
pub(crate) struct Session {
    names: BTreeMap<String, Value>,
    /// What the names hold, in numbers.
    kept: usize,
}

impl Session {
    /// The worth of a line's last expression; `None` for a blank line or a comment.
    pub(crate) fn line(&mut self, text: &str) -> Worth<Option<Value>> {
        let steps = parse::line(text)?;
        let (names, kept) = (&self.names, self.kept);
        let mut line = Line { names, bound: BTreeMap::new(), kept, calls: 0, cost: 0 };
        let mut last = None;
        for step in &steps {
            last = Some(line.step(step)?);
        }
        let Line { bound, kept, .. } = line;
        self.kept = kept;
        self.names.extend(bound);
        Ok(last)
    }
}

struct Line<'a> {
    names: &'a BTreeMap<String, Value>,
    bound: BTreeMap<String, Value>,
    kept: usize,
    calls: usize,
    cost: usize,
}

impl Line<'_> {
    fn step(&mut self, step: &Step) -> Worth {
        let value = self.value(&step.expr)?;
        let Some((name, span)) = &step.name else { return Ok(value) };
        if ops::find(name).is_some() || ["o", "Sw", "true", "false"].contains(&name.as_str()) {
            let d = Diagnostic::new(Code::CalcName, *span, format!("`{name}` cannot be bound"))
                .label("has a meaning already")
                .help("choose another name, such as `A`");
            return Err(Box::new(d));
        }
        let before = self.bound.get(name).or_else(|| self.names.get(name)).map_or(0, Value::cost);
        self.kept = self.kept.saturating_sub(before).saturating_add(value.cost());
        if self.kept > MAX_COST {
            return Err(too_large(*span, "the values bound to names are"));
        }
        self.bound.insert(name.clone(), value.clone());
        Ok(value)
    }

    fn value(&mut self, expr: &Expr) -> Worth {
        let value = self.value_within(expr)?;
        // What a tuple holds is counted already.
        let cost = match &expr.kind {
            Kind::Tuple(_) | Kind::List(_) => 1,
            _ => value.cost(),
        };
        self.cost = self.cost.saturating_add(cost);
        if self.cost > MAX_COST {
            return Err(too_large(expr.span, "the values of this line are"));
        }
        Ok(value)
    }

    fn value_within(&mut self, expr: &Expr) -> Worth {
        let refuse = |e: &LayoutError| Box::new(refused(e, expr.span).label("refused"));
        match &expr.kind {
            Kind::Int(v) => Ok(Value::Int(*v)),
            Kind::Bool(v) => Ok(Value::Bool(*v)),
            Kind::Hole => Ok(Value::Hole),
            Kind::Basis(scale, path) => {
                // In the text the innermost mode stands first.
                let path: Vec<usize> = path.iter().rev().map(|n| *n as usize).collect();
                Basis::along(*scale, &path).map(Value::Basis).map_err(|e| refuse(&e))
            }
            Kind::Tuple(items) => {
                // Parentheses around a layout only group; around a number they are a tuple of one.
                let mut values = self.all(items)?;
                if let ([only], true) = (&values[..], values.iter().all(is_whole)) {
                    let only = only.clone();
                    values.clear();
                    return Ok(only);
                }
                if let Some(k) = values.iter().position(is_whole) {
                    let message = format!("a tuple holds no {}", kind_of(&values[k]));
                    let d = Diagnostic::new(Code::CalcArguments, items[k].span, message)
                        .label(format!("this is {}", quoted(&values[k])))
                        .help(
                            "write `make_layout(4:1, 8:2)` to concatenate, `[4:1, 8:2]` for a tiler by mode",
                        );
                    return Err(Box::new(d));
                }
                Value::nested(values, false).map_err(|e| refuse(&e))
            }
            Kind::List(items) => Value::nested(self.all(items)?, true).map_err(|e| refuse(&e)),
            Kind::Pair(shape, stride) => self.pair(expr.span, shape, stride),
            Kind::Chain(all) => self.chain(all),
            Kind::Swizzle(fields) => swizzle(*fields).map(Value::Swizzle).map_err(|e| refuse(&e)),
            Kind::Name(name) => match self.lookup(name) {
                Some(value) => Ok(value),
                None => Err(unknown(name, expr.span, self.names.keys().chain(self.bound.keys()))),
            },
            Kind::Call(name, place, args) => self.call(expr.span, name, *place, args),
        }
    }

    fn lookup(&self, name: &str) -> Option<Value> {
        self.bound.get(name).or_else(|| self.names.get(name)).cloned()
    }

    fn all(&mut self, exprs: &[Expr]) -> Worth<Vec<Value>> {
        exprs.iter().map(|e| self.value(e)).collect()
    }

    fn pair(&mut self, span: Span, shape: &Expr, stride: &Expr) -> Worth {
        let (d, s) = (self.value(shape)?, self.value(stride)?);
        let tuple = |value: &Value, expr: &Expr, what: &str| match value.shape() {
            Ok(tuple) => Ok(tuple),
            Err(Misfit::Refused(e)) => Err(Box::new(refused(&e, expr.span).label("refused"))),
            Err(_) => {
                let message = format!("{what} is made of integers, found {}", value.words());
                let d = Diagnostic::new(Code::CalcArguments, expr.span, message)
                    .label(format!("this is {}", quoted(value)))
                    .help("write a shape, `:` and a stride: `(4,8):(8,1)`");
                Err(Box::new(d))
            }
        };
        let extents = tuple(&d, shape, "a shape")?;
        if has_basis(&s) {
            let refuse = |e| Box::new(refused(&e, span).label("refused"));
            let other = short(s.to_string());
            let wrong = LayoutError::Incongruent { shape: short(d.to_string()), other };
            let strides = s.basis().ok_or(wrong).map_err(refuse)?;
            return CoordLayout::with_strides(&extents, &strides)
                .map(Value::Coords)
                .map_err(refuse);
        }
        let strides = tuple(&s, stride, "a stride")?;
        Layout::new(extents, strides).map(Value::Layout).map_err(|e| {
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

    /// From the right: a swizzle takes the offset and the layout that follow it, layouts compose.
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
                (swizzled(swizzle.as_ref(), offset, &right, right_at)?, span)
            } else if matches!(left, Value::Swizzle(_)) {
                (swizzled(Some(&left), 0, &right, right_at)?, left_at.to(right_at))
            } else {
                let span = left_at.to(right_at);
                let args = vec![left, right];
                (self.apply(composition(span)?, span, args, &[left_at, right_at])?, span)
            };
            self.cost = self.cost.saturating_add(value.cost());
            values.push(value);
            spans.push(span);
        }
        // Not reached: a chain has two members at least.
        Ok(Value::Hole)
    }

    fn call(&mut self, span: Span, name: &str, place: Span, args: &[Expr]) -> Worth {
        if let Some(layout) = self.lookup(name) {
            // `A(1,2)`: the index of a coordinate, `A(1,_)`: a slice.
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
            let message = format!("the line has more than {MAX_OPERATIONS} operations");
            let d = Diagnostic::new(Code::CalcTooLarge, span, message)
                .label("one too many")
                .help("split the calculation into several lines");
            return Err(Box::new(d));
        }
        let call = Call { op, span, args: &args, spans };
        apply(op, &args).map_err(|fault| fault.diagnostic(&call))
    }
}

/// The answer of an operation to these operands.
pub(super) fn apply(op: &'static Operation, args: &[Value]) -> Result<Value, Fault> {
    if args.len() < op.required() || op.most().is_some_and(|most| args.len() > most) {
        return Err(Fault::Count);
    }
    for (k, arg) in args.iter().enumerate() {
        let wanted = op.kind(k);
        arg.fits(wanted).map_err(|misfit| misfit.of(k, wanted))?;
    }
    (op.run)(&Args::new(args))
}

fn swizzled(swizzle: Option<&Value>, offset: i64, layout: &Value, at: Span) -> Worth {
    match (swizzle, layout) {
        (Some(Value::Swizzle(swizzle)), Value::Layout(layout)) => {
            let composed = composed(*swizzle, offset, layout.clone());
            composed
                .map(|c| Value::Composed(Box::new(c)))
                .map_err(|e| Box::new(refused(&e, at).label("refused")))
        }
        (Some(Value::Swizzle(swizzle)), Value::Composed(inner)) => {
            // Every index must fit, also behind the offset.
            let refuse = |e| Box::new(refused(&e, at).label("refused"));
            let reach = inner.reach().map_err(refuse)?;
            if offset.checked_add(reach).is_none() || offset.checked_sub(reach).is_none() {
                let what = "an index after the offset";
                return Err(refuse(LayoutError::Overflow { what }));
            }
            let twisted = ComposedLayout::twisted(*swizzle, offset, inner);
            twisted.map(|c| Value::Composed(Box::new(c))).map_err(refuse)
        }
        (_, other) => {
            let message =
                format!("a swizzle is applied to a layout of integers, found {}", other.words());
            let d = Diagnostic::new(Code::CalcArguments, at, message)
                .label(format!("this is {}", quoted(other)))
                .help("write `Sw<3,4,3> o 0 o (8,64):(64,1)`: swizzle, offset, layout");
            Err(Box::new(d))
        }
    }
}

fn composition(span: Span) -> Worth<&'static Operation> {
    ops::find("composition").ok_or_else(|| unknown("composition", span, [].iter()))
}

fn unknown<'a>(name: &str, span: Span, bound: impl Iterator<Item = &'a String>) -> Box<Diagnostic> {
    let d =
        Diagnostic::new(Code::CalcName, span, format!("there is no operation or name `{name}`"))
            .label("neither an operation nor bound");
    let help = match ops::nearest(name, bound) {
        Some(near) => format!("did you mean `{near}`? `carbyne layout --list` names all"),
        None => "choose one that `carbyne layout --list` names".to_owned(),
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

/// Whether the value is no part of a tuple.
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

/// Where this number stands.
fn leaf(expr: &Expr, number: i64) -> Option<Span> {
    match &expr.kind {
        Kind::Int(v) if *v == number => Some(expr.span),
        Kind::Tuple(items) | Kind::List(items) => items.iter().find_map(|e| leaf(e, number)),
        _ => None,
    }
}
