//! Makes the error message of an operation of the calculator that fails.
//!
//! Invariant: every error names the operation: in its message, or in its label if the layout
//! library refuses the operands. The help about wrong operands shows an example of a call.

use super::fault::Fault;
use super::operation::Operation;
use super::value::{Kind, Layout, Value};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::expr::ExprArena;
use carbyne_ir::layout::LayoutError;
use carbyne_ir::span::Span;

/// Maximum length of a quoted value or message, in bytes.
const MAX_QUOTED: usize = 400;

/// A call: the operation, its place, the operands and their places.
pub(crate) struct Call<'a> {
    pub(crate) cx: &'a ExprArena,
    pub(crate) op: &'static Operation,
    pub(crate) span: Span,
    pub(crate) args: &'a [Value],
    /// Empty if the operands do not come from an expression.
    pub(crate) spans: &'a [Span],
}

impl Fault {
    /// The diagnostic for this fault of `call`.
    pub(crate) fn diagnostic(&self, call: &Call<'_>) -> Box<Diagnostic> {
        let name = call.op.name;
        let form = format!("`{}`, as in `{}`", call.op.signature(), call.op.example.0);
        let usage = format!("write {form}");
        let place = |arg: usize| call.spans.get(arg).copied().unwrap_or(call.span);
        let found = |arg: usize| match call.args.get(arg) {
            Some(v) => format!("this is {}", quoted(call.cx, v)),
            None => "this is missing".to_owned(),
        };
        Box::new(match self {
            Fault::Refused(e) => refused(e, call.span)
                .label(format!("refused by `{name}`"))
                .note(operands(call.cx, call.args)),
            Fault::Count => {
                let n = call.args.len();
                let plural = |n: usize| if n == 1 { "argument" } else { "arguments" };
                let (least, most) = (call.op.required(), call.op.most());
                let wanted = match most {
                    None => format!("{least} {} or more", plural(least)),
                    Some(most) if most == least => format!("{most} {}", plural(most)),
                    Some(most) => format!("{least} to {most} arguments"),
                };
                let message = format!("`{name}` takes {wanted}, found {n}");
                Diagnostic::new(Code::CalcArguments, call.span, message)
                    .label(format!("{n} {} given", plural(n)))
                    .help(usage)
            }
            Fault::Type { arg, wanted } => {
                let is = call.args.get(*arg).map_or("nothing", Value::words);
                let param = call.op.param(*arg);
                let message = format!(
                    "argument {} of `{name}`, {param}, must be {}, found {is}",
                    arg + 1,
                    wanted.words()
                );
                let mut help = format!("write {} here: {form}", wanted.example());
                if let (Kind::Layout | Kind::Function | Kind::Any, Some(Ok(shape))) =
                    (wanted, call.args.get(*arg).map(Value::shape))
                    && let Ok(compact) = Layout::col_major_in(call.cx, shape.clone())
                {
                    let compact = quoted(call.cx, &Value::Layout(compact));
                    help =
                        format!("write {compact}, the column-major layout of this shape: {form}");
                }
                Diagnostic::new(Code::CalcArguments, place(*arg), message)
                    .label(found(*arg))
                    .help(help)
            }
            Fault::Range { arg, wanted } => {
                let message = format!("argument {} of `{name}` must be {wanted}", arg + 1);
                Diagnostic::new(Code::CalcArguments, place(*arg), message)
                    .label(found(*arg))
                    .help(usage)
            }
            Fault::TooLarge { values, limit } => {
                let message = format!("`{name}` would list {values} values, more than {limit}");
                Diagnostic::new(Code::CalcTooLarge, call.span, message)
                    .label("too many values")
                    .help("list a part: compose the layout with a smaller one first")
            }
        })
    }
}

/// The operands of an operation, quoted.
fn operands(cx: &ExprArena, args: &[Value]) -> String {
    let quoted: Vec<String> = args.iter().map(|v| quoted(cx, v)).collect();
    let verb = if quoted.len() == 1 { "operand is" } else { "operands are" };
    short(format!("the {verb} {}", quoted.join(" and ")))
}

/// The diagnostic for an error of the layout algebra, with the error's own code.
pub(super) fn refused(e: &LayoutError, span: Span) -> Diagnostic {
    let code = Code::ALL.iter().find(|(_, text, _)| *text == e.code());
    let code = code.map_or(Code::LayoutRefused, |(code, _, _)| *code);
    let d = Diagnostic::new(code, span, short(e.to_string()));
    d.help(short(e.help().unwrap_or_else(|| "choose other operands".to_owned())))
}

/// The value, quoted for messages.
pub(super) fn quoted(cx: &ExprArena, v: &Value) -> String {
    // A list may have as many values as the limit allows; convert no more than are quoted.
    let text = match v {
        Value::List(items) if items.len() > MAX_QUOTED => {
            Value::List(items[..MAX_QUOTED].to_vec()).text(cx)
        }
        other => other.text(cx),
    };
    format!("`{}`", short(text))
}

/// The text, cut to the maximum length.
pub(super) fn short(mut text: String) -> String {
    if text.len() > MAX_QUOTED {
        let mut end = MAX_QUOTED;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str("...");
    }
    text
}
