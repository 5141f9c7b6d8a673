//! The calculator for other programs: [`answer`] takes a line with a JSON request and returns the
//! JSON answer. `carbyne layout --json` calls it for each line of standard input.
//!
//! A request is `{"id":1,"op":"composition","args":["(6,2):(8,2)","(4,3):(3,1)"]}`. Strings are
//! expressions, arrays are tuples or tilers by mode, `null` is `_`. The answer is a string
//! (layouts), a number, a boolean, an array, `{"skip":true}` for an unknown operation, or
//! `{"error":true,"code":..,"message":..,"help":..,"span":..,"notes":..}`. Facts of one string
//! (`(M,4):(4,1) where M % 8 == 0`) hold for the whole request. A layout over symbols is answered
//! with its facts. Other values over symbols are answered without facts: `"M*4"`.
//!
//! Invariant: every line has exactly one answer, whatever the line contains.

use super::eval::{Session, apply_operation};
use super::ops;
use super::refusal::{Call, refused};
use super::value::Value;
use crate::panics;
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::Dim;
use carbyne_ir::limits::MAX_NESTING;
use carbyne_ir::span::Span;
use serde_json::{Map, Value as Json, json};

/// Maximum number of numbers and strings in a request.
const MAX_ITEMS: usize = 1 << 16;

/// The answer to a request.
pub(crate) fn answer(line: &str) -> Json {
    let (answered, _) = panics::caught(|| respond(line));
    match answered {
        Ok(Ok(answer)) => answer,
        Ok(Err(Refusal::Skip)) => json!({ "skip": true }),
        Ok(Err(Refusal::Error(d))) => error(&d),
        Err(what) => error(&Diagnostic::new(Code::Internal, Span::default(), what)),
    }
}

/// The JSON of an error.
pub(crate) fn error(d: &Diagnostic) -> Json {
    let span = (d.span.end > 0).then(|| json!([d.span.start, d.span.end]));
    json!({
        "error": true,
        "code": d.code.as_str(),
        "message": d.message,
        "help": d.help,
        "span": span,
        "notes": d.notes,
    })
}

enum Refusal {
    /// The operation is unknown.
    Skip,
    Error(Box<Diagnostic>),
}

fn respond(line: &str) -> Result<Json, Refusal> {
    let request = parse(line).map_err(Refusal::Error)?;
    let wrong = |message: &str| Refusal::Error(bad(Code::CalcSyntax, message.to_owned()));
    let Some(name) = request.get("op").and_then(Json::as_str) else {
        return Err(wrong("the request has no string field `op`"));
    };
    let Some(args) = request.get("args").and_then(Json::as_array) else {
        return Err(wrong("the request has no array field `args`"));
    };
    let Some(op) = ops::find(name) else {
        return Err(Refusal::Skip);
    };
    let (mut items, mut session) = (0, Session::default());
    session.assume(strings(args).into_iter()).map_err(Refusal::Error)?;
    let values = args.iter().enumerate().map(|(k, v)| {
        let within =
            |d: Box<Diagnostic>| Refusal::Error(Box::new(d.note(format!("in argument {}", k + 1))));
        value(v, &mut session, &mut items).map_err(within)
    });
    let values: Vec<Value> = values.collect::<Result<_, _>>()?;
    let cx = session.arena();
    let answer = apply_operation(cx, op, &values).map_err(|fault| {
        let call = Call { cx, op, span: Span::default(), args: &values, spans: &[] };
        Refusal::Error(fault.diagnostic(&call))
    })?;
    to_json(&session, &answer).map_err(Refusal::Error)
}

fn bad(code: Code, message: String) -> Box<Diagnostic> {
    let help = r#"write one object per line: {"id":1,"op":"size","args":["(4,8):(8,1)"]}"#;
    Box::new(Diagnostic::new(code, Span::default(), message).help(help))
}

fn parse(line: &str) -> Result<Map<String, Json>, Box<Diagnostic>> {
    if depth(line) >= MAX_NESTING {
        let message = format!("brackets nest deeper than {MAX_NESTING} levels");
        return Err(bad(Code::TooDeep, message));
    }
    match serde_json::from_str(line) {
        Ok(Json::Object(object)) => Ok(object),
        Ok(_) => Err(bad(Code::CalcSyntax, "the line is JSON, but not an object".to_owned())),
        Err(e) => {
            let message = format!("the line is not JSON at character {}", e.column());
            Err(bad(Code::CalcSyntax, message))
        }
    }
}

/// The maximum depth of brackets outside of strings.
fn depth(line: &str) -> usize {
    let (mut depth, mut deepest, mut quoted, mut escaped) = (0usize, 0, false, false);
    for byte in line.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'[' | b'{' if !quoted => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !quoted => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn value(v: &Json, session: &mut Session, items: &mut usize) -> Result<Value, Box<Diagnostic>> {
    *items += 1;
    if *items > MAX_ITEMS {
        let message = format!("the arguments have more than {MAX_ITEMS} items");
        return Err(bad(Code::CalcTooLarge, message));
    }
    match v {
        Json::Null => Ok(Value::Hole),
        Json::Bool(b) => Ok(Value::Bool(*b)),
        Json::Number(n) => n.as_i64().map(Value::from).ok_or_else(|| {
            // The number is quoted as given; it has about twenty digits at most.
            bad(Code::Number, format!("{n} is not a 64-bit integer"))
        }),
        Json::String(text) => {
            let worth = session.line(text)?;
            session.forget();
            let worth = worth.ok_or_else(|| {
                bad(Code::CalcSyntax, "a string argument contains no expression".to_owned())
            })?;
            *items += worth.cost();
            Ok(worth)
        }
        Json::Array(all) => {
            let all: Result<Vec<Value>, _> = all.iter().map(|v| value(v, session, items)).collect();
            Value::nested(all?, true).map_err(|e| Box::new(refused(&e, Span::default())))
        }
        Json::Object(_) => Err(bad(
            Code::CalcArguments,
            "an argument is an object; write a layout as a string, a tuple as an array".to_owned(),
        )),
    }
}

/// All strings in the arguments, from left to right.
fn strings(args: &[Json]) -> Vec<&str> {
    let (mut all, mut todo) = (vec![], args.iter().rev().collect::<Vec<_>>());
    while let Some(one) = todo.pop() {
        match one {
            Json::String(text) => all.push(&**text),
            Json::Array(items) => todo.extend(items.iter().rev()),
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::Object(_) => {}
        }
    }
    all
}

fn to_json(session: &Session, v: &Value) -> Result<Json, Box<Diagnostic>> {
    Ok(match v {
        Value::Int(Dim::Const(v)) => json!(v),
        Value::Bool(v) => json!(v),
        Value::Hole => Json::Null,
        Value::Tuple(items) | Value::List(items) => {
            items.iter().map(|item| to_json(session, item)).collect::<Result<_, _>>()?
        }
        Value::Layout(_) if !v.is_symbolic() => json!(v.text(session.arena())),
        Value::Layout(_) | Value::Coords(_) | Value::Composed(_) => {
            // The printed order of a sum's terms depends on earlier calculations. Read the layout
            // again in a fresh session, so that equal layouts have equal texts.
            let text = session.text(v);
            let mut fresh = Session::default();
            match fresh.line(&text)? {
                Some(again) => json!(fresh.text(&again)),
                None => json!(text),
            }
        }
        Value::Int(_) | Value::Swizzle(_) | Value::Basis(_) => json!(v.text(session.arena())),
    })
}
