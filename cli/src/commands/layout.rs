//! `carbyne layout`: evaluates expressions of layout algebra with the [`calculator`]. They come
//! from the command line or, one per line, from standard input. With `--json`, each line is a
//! request and has an answer in JSON.

use crate::args::{Layout, MessageFormat};
use crate::calculator::{self, Session, json, table};
use crate::failure::{Failure, Outcome, Source};
use crate::stdin_lines::{Line, Lines};
use crate::{Io, human, output, panics};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_ir::limits::MAX_TEXT_BYTES;
use carbyne_ir::span::Span;

pub(super) fn run(args: &Layout, format: MessageFormat, io: &mut Io<'_>) -> Outcome {
    if args.list {
        return output::write(None, calculator::list().as_bytes(), io);
    }
    let mut session = Session::default();
    match args.expression.as_deref() {
        None => requests(io),
        Some("-") if args.json => requests(io),
        Some(_) if args.json => Err(Failure::usage_help(
            "requests are read from standard input",
            "remove the expression, or `--json`",
        )),
        Some("-") => lines(args, &mut session, format, io),
        Some(text) => {
            let source = Source {
                name: "<expression>".to_owned(),
                text: text.to_owned(),
                ..Source::default()
            };
            let d = match text.len() > MAX_TEXT_BYTES {
                true => Err(too_long()),
                false => answer(args, &mut session, text),
            };
            let d =
                d.and_then(|answer| if answer.is_empty() { Err(nothing()) } else { Ok(answer) });
            let answer = d.map_err(|d| Failure::one(&source, *d))?;
            output::write(None, answer.as_bytes(), io)
        }
    }
}

/// Answers every line of standard input. After an erroneous line, prints its error and continues.
fn lines(args: &Layout, session: &mut Session, format: MessageFormat, io: &mut Io<'_>) -> Outcome {
    let (mut input, mut number, mut failed) = (Lines::default(), 0usize, false);
    while let Some(line) = input.next(&mut *io.stdin)? {
        number += 1;
        let ends = line != Line::TooLong { ends: false };
        let (text, answered) = match line_text(line) {
            Ok(text) => {
                let (answered, _) = panics::caught(|| answer(args, session, &text));
                let defect =
                    |what| Err(Box::new(Diagnostic::new(Code::Internal, Span::default(), what)));
                (text, answered.unwrap_or_else(defect))
            }
            Err(d) => (String::new(), Err(d)),
        };
        match answered {
            // A blank line has a blank answer, so that line numbers match.
            Ok(answer) if answer.is_empty() => output::write(None, b"\n", io)?,
            Ok(answer) => output::write(None, answer.as_bytes(), io)?,
            Err(d) => {
                failed = true;
                output::write(None, format!("error {}\n", d.code).as_bytes(), io)?;
                let source =
                    Source { name: format!("<stdin>:{number}"), text, ..Source::default() };
                let failure = Failure::one(&source, *d);
                // If standard error is closed, only the answer reports the error.
                let _ = match format {
                    MessageFormat::Human => human::failure(&failure, io),
                    MessageFormat::Json => crate::json::failure(&failure, io),
                };
            }
        }
        io.stdout.flush().map_err(Failure::stdout)?;
        if !ends {
            break;
        }
    }
    if failed { Err(Failure::Reported) } else { Ok(()) }
}

/// Answers every request of standard input. A refused operation has an answer, too.
fn requests(io: &mut Io<'_>) -> Outcome {
    let mut input = Lines::default();
    while let Some(line) = input.next(&mut *io.stdin)? {
        let ends = line != Line::TooLong { ends: false };
        let answer = match line_text(line) {
            Ok(text) => json::answer(&text),
            Err(d) => json::error(&d),
        };
        output::write(None, format!("{answer}\n").as_bytes(), io)?;
        io.stdout.flush().map_err(Failure::stdout)?;
        if !ends {
            break;
        }
    }
    Ok(())
}

/// The answer to a line; empty for a blank line.
fn answer(args: &Layout, session: &mut Session, text: &str) -> Result<String, Box<Diagnostic>> {
    match session.line(text)? {
        None => Ok(String::new()),
        Some(value) if args.table => table::grid(session.arena(), &value, text),
        Some(value) if args.eval => table::eval(session.arena(), &value, text),
        Some(value) => Ok(format!("{}\n", session.text(&value))),
    }
}

/// The text of the line, or the error of an unreadable line.
fn line_text(line: Line) -> Result<String, Box<Diagnostic>> {
    match line {
        Line::Text(text) => Ok(text),
        Line::NotUtf8(at) => {
            let d = Diagnostic::new(Code::NotUtf8, Span::new(at, at + 1), "the line is not UTF-8")
                .label(format!("byte {at} is not part of a character"))
                .help("write the line as UTF-8");
            Err(Box::new(d))
        }
        Line::TooLong { .. } => Err(too_long()),
    }
}

fn too_long() -> Box<Diagnostic> {
    let span = Span::new(MAX_TEXT_BYTES, MAX_TEXT_BYTES + 1);
    let message = format!("the line is longer than {MAX_TEXT_BYTES} bytes");
    let d = Diagnostic::new(Code::TextTooLong, span, message)
        .label("too long from here on")
        .help("bind parts of the expression to names on separate lines");
    Box::new(d)
}

fn nothing() -> Box<Diagnostic> {
    let d = Diagnostic::new(Code::CalcSyntax, Span::default(), "there is no expression")
        .label("expected a layout, a tuple, a number or an operation")
        .help("write an expression such as `composition((6,2):(8,2), (4,3):(3,1))`");
    Box::new(d)
}
