//! `carbyne serve`: runs many commands in one process, for compilers that decompose many kernels
//! and would otherwise start a process for each. A request is one line of JSON, and so is its
//! answer:
//!
//! ```json
//! {"id": 1, "arguments": ["decompose", "-", "--arch", "sm_80"], "stdin": "carbyne 2\n.."}
//! {"exit": 0, "id": 1, "schema_version": 1, "stderr": "", "stdout": "carbyne 2\n.."}
//! ```
//!
//! The line `{"cancel": 2}` cancels the request with id 2, whether it waits or runs. The answer of
//! the request is then:
//!
//! ```json
//! {"cancelled": true, "id": 2, "schema_version": 1}
//! ```
//!
//! One thread reads lines, several threads run commands, and the calling thread writes answers,
//! each when its command has ended.
//!
//! Invariant: each request has exactly one answer. A request that fails, panics or is cancelled
//! does not affect other requests. A cancel has no answer of its own. Invariant: the requests that
//! no thread has begun take at most [`WAITING`] bytes; the answer to a request beyond that is an
//! error. At most [`ANSWERS`] answers wait; then threads and the reader of lines wait until the
//! caller reads answers. As long as the caller reads answers, lines are read even if all threads
//! are busy, so that a cancel never waits for a command.

use crate::args::{Args, Command, MessageFormat, Serve};
use crate::failure::{Failure, Outcome};
use crate::json::schema;
use crate::{Io, input, regular_file, run_parsed};
use carbyne_ir::cancel::{self, Cancelled, Token};
use carbyne_ir::parallel::{self, STACK};
use clap::Parser;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, Scope, scope};

/// Maximum number of bytes of all requests that wait for a thread.
const WAITING: usize = 256 << 20;
/// Bytes of a request besides its line: its references and its token.
const OVERHEAD: usize = 1 << 10;
/// Maximum number of answers that wait to be written.
const ANSWERS: usize = 16;
/// Maximum number of bytes of a line.
const MAX_LINE: usize = 16 << 20;
/// Maximum number of characters of a wrong key in messages.
const MAX_SHOWN: usize = 64;

/// The help for a line that is not a request.
const FORM: &str =
    "send {\"id\": ID, \"arguments\": [\"..\"], \"stdin\": \"..\"} or {\"cancel\": ID}";

/// A command to run.
struct Task {
    id: Value,
    arguments: Vec<String>,
    stdin: String,
    token: Token,
    /// An upper bound of the memory of this task.
    bytes: usize,
}

/// A line of the input.
enum Line {
    Run(Task),
    Cancel(Value),
}

/// An answer, or the error that ended reading.
type Said = io::Result<Value>;

/// Unanswered requests.
#[derive(Default)]
struct Requests {
    state: Mutex<State>,
    /// Notifies threads about a new request and about the end.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Requests that wait for a thread.
    waiting: VecDeque<Task>,
    /// The sum of the bytes of waiting requests.
    bytes: usize,
    /// The tokens of all unanswered requests, by their ids as text.
    tokens: BTreeMap<String, Token>,
    /// Whether the input has ended.
    ended: bool,
}

impl Requests {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request to the queue, or refuses it.
    fn add(&self, task: Task) -> Result<(), Value> {
        let mut state = self.state();
        let key = task.id.to_string();
        if state.tokens.contains_key(&key) {
            let what = "an unanswered request has the same id";
            return Err(error(task.id, what, "use another id"));
        }
        if state.bytes + task.bytes > WAITING {
            let what = format!("waiting requests take more than {} MiB", WAITING >> 20);
            return Err(error(task.id, &what, "send it again after some answers"));
        }
        state.bytes += task.bytes;
        state.tokens.insert(key, task.token.clone());
        state.waiting.push_back(task);
        self.changed.notify_one();
        Ok(())
    }

    /// Cancels a request. Returns the answer if no thread has started the request.
    fn cancel(&self, id: &Value) -> Option<Value> {
        let mut state = self.state();
        let key = id.to_string();
        // The request may have ended.
        state.tokens.get(&key)?.cancel();
        let at = state.waiting.iter().position(|task| task.id == *id)?;
        let task = state.waiting.remove(at)?;
        state.bytes -= task.bytes;
        state.tokens.remove(&key);
        Some(cancelled(task.id))
    }

    /// The next request to run; `None` at the end.
    fn next(&self) -> Option<Task> {
        let idle = |state: &mut State| state.waiting.is_empty() && !state.ended;
        let state = self.changed.wait_while(self.state(), idle);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let task = state.waiting.pop_front()?;
        state.bytes -= task.bytes;
        Some(task)
    }

    /// Makes the threads stop after all waiting requests.
    fn end(&self) {
        self.state().ended = true;
        self.changed.notify_all();
    }

    /// Cancels all requests.
    fn stop(&self) {
        let mut state = self.state();
        state.waiting.clear();
        state.tokens.values().for_each(Token::cancel);
        drop(state);
        self.end();
    }
}

/// Options that apply to all requests.
struct Defaults<'a> {
    format: MessageFormat,
    allow_import: &'a [PathBuf],
    strategies: &'a [PathBuf],
}

pub(super) fn run_all(args: &Serve, format: MessageFormat, io: &mut Io<'_>) -> Outcome {
    let Io { stdin, stdout, own_stdin, allow_import, strategies, .. } = io;
    let defaults = Defaults { format, allow_import, strategies };
    let requests = Arc::new(Requests::default());
    let (answer, answers) = sync_channel::<Said>(ANSWERS);
    scope(|threads| {
        let n = args.threads.map_or_else(parallel::cores, usize::from);
        let works = (0..n).filter(|_| start(threads, &defaults, &requests, answer.clone()));
        let works = works.count();
        let reader = Reader { requests: Arc::clone(&requests), answer };
        let reads = works > 0
            && match own_stdin {
                // This thread may wait for a line that never comes, so it is not joined.
                true => Builder::new().spawn(|| reader.read_all(io::stdin().lock())).is_ok(),
                false => {
                    let read = || reader.read_all(BufReader::new(stdin));
                    Builder::new().spawn_scoped(threads, read).is_ok()
                }
            };
        let ended = match reads {
            true => write_all(answers, &mut **stdout),
            false => Err(Failure::usage_help(
                "the system cannot start a thread",
                "allow more threads or memory: `ulimit -u`, `ulimit -v`",
            )),
        };
        requests.stop();
        ended
    })
}

/// Writes answers until all are written, or until writing fails.
fn write_all(answers: Receiver<Said>, stdout: &mut dyn Write) -> Outcome {
    let mut ended = Ok(());
    for said in answers {
        match said {
            Ok(answer) => writeln!(stdout, "{answer}")
                .and_then(|()| stdout.flush())
                .map_err(Failure::stdout)?,
            Err(e) => {
                let what = format!("standard input cannot be read: {}", input::reason(&e));
                ended = Err(Failure::usage_help(what, "send requests through a pipe or a file"));
            }
        }
    }
    ended
}

/// Starts a thread that runs commands. Returns false if the system cannot start a thread.
fn start<'s>(
    threads: &'s Scope<'s, '_>,
    defaults: &'s Defaults<'_>,
    requests: &'s Requests,
    answer: SyncSender<Said>,
) -> bool {
    let work = move || {
        regular_file::open_regular_files_only();
        while let Some(task) = requests.next() {
            let key = task.id.to_string();
            let said = done(task, defaults);
            requests.state().tokens.remove(&key);
            if answer.send(Ok(said)).is_err() {
                return;
            }
        }
    };
    Builder::new().stack_size(STACK).spawn_scoped(threads, work).is_ok()
}

/// Runs a command and returns the answer.
fn done(task: Task, defaults: &Defaults<'_>) -> Value {
    let Task { id, arguments, stdin, token, .. } = task;
    let mut all = vec![OsString::from("carbyne")];
    let own = arguments.iter().any(|a| a.starts_with("--message-format"));
    if defaults.format == MessageFormat::Json && !own {
        all.push("--message-format=json".into());
    }
    all.extend(arguments.into_iter().map(OsString::from));
    let parsed = Args::try_parse_from(&all);
    if let Ok(Args { command: Command::Serve(_), .. }) = parsed {
        return error(id, "a request cannot start `serve`", "send another command");
    }
    let (mut stdin, mut out, mut err) = (stdin.as_bytes(), vec![], vec![]);
    let mut io = Io {
        allow_import: defaults.allow_import.to_vec(),
        strategies: defaults.strategies.to_vec(),
        ..Io::plain(&mut stdin, &mut out, &mut err)
    };
    let exit = match cancel::run(&token, || run_parsed(&all, parsed, &mut io)) {
        Ok(exit) => exit,
        Err(Cancelled) => return cancelled(id),
    };
    match (String::from_utf8(out), String::from_utf8(err)) {
        (Ok(stdout), Ok(stderr)) => {
            answered(id, json!({ "exit": exit, "stdout": stdout, "stderr": stderr }))
        }
        _ => error(id, "the output is binary", "write the output to a file with `-o`"),
    }
}

/// Reads lines. When it is dropped, the input has ended.
struct Reader {
    requests: Arc<Requests>,
    answer: SyncSender<Said>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.requests.end();
    }
}

impl Reader {
    /// Reads lines to the end, or until no thread accepts answers.
    fn read_all(self, mut from: impl BufRead) {
        loop {
            let mut line = vec![];
            let read = from.by_ref().take(MAX_LINE as u64 + 1).read_until(b'\n', &mut line);
            // All requests may have been cancelled while this thread waited for a line.
            if self.requests.state().ended {
                return;
            }
            let said = match read {
                Ok(0) => return,
                Ok(_) if line.len() > MAX_LINE && !line.ends_with(b"\n") => {
                    let what = format!("a line is longer than {} MiB", MAX_LINE >> 20);
                    let said = error(Value::Null, &what, "put long texts into files");
                    let rest = from.skip_until(b'\n');
                    rest.map(|_| Some(said))
                }
                Ok(_) if line.trim_ascii().is_empty() => Ok(None),
                Ok(_) => Ok(self.take(&line)),
                Err(e) => Err(e),
            };
            let failed = said.is_err();
            if let Some(said) = said.transpose()
                && (self.answer.send(said).is_err() || failed)
            {
                return;
            }
        }
    }

    /// Processes a line. Returns the answer if it is known immediately.
    fn take(&self, line: &[u8]) -> Option<Value> {
        match asked(line) {
            Ok(Line::Run(task)) => self.requests.add(task).err(),
            Ok(Line::Cancel(id)) => self.requests.cancel(&id),
            Err(said) => Some(said),
        }
    }
}

/// Parses a line. An invalid line is an error with its answer.
fn asked(line: &[u8]) -> Result<Line, Value> {
    let nameless = |what: &str| error(Value::Null, what, FORM);
    let value = serde_json::from_slice(line).map_err(|e| match e.to_string() {
        e if e.starts_with("recursion limit") => nameless("a line is nested too deeply"),
        e => nameless(&format!("a line is not JSON: {e}")),
    })?;
    let Value::Object(mut keys) = value else { return Err(nameless("a line is not an object")) };
    let is_id = |id: &Value| id.is_string() || id.is_i64();
    let id = keys.get("id").filter(|id| is_id(id)).cloned().unwrap_or_default();
    let refused = |what: &str| Err(error(id.clone(), what, FORM));
    if members(line) > keys.len() {
        return refused("a key occurs twice in a line");
    }
    let (kind, known) = match keys.contains_key("cancel") {
        true => ("line that cancels", &["cancel"][..]),
        false => ("request", &["id", "arguments", "stdin"][..]),
    };
    if let Some(key) = keys.keys().find(|key| !known.contains(&key.as_str())) {
        let key: String = key.chars().take(MAX_SHOWN).collect();
        return refused(&format!("`{key}` is not a key of a {kind}"));
    }
    if let Some((key, _)) = keys.iter().find(|(key, id)| known[0] == key.as_str() && !is_id(id)) {
        let range = "from -2^63 to 2^63 - 1, without fraction and exponent";
        return refused(&format!("`{key}` is neither a string nor an integer {range}"));
    }
    if let Some(id) = keys.remove("cancel") {
        return Ok(Line::Cancel(id));
    }
    if id.is_null() {
        return refused("a request has no `id`");
    }
    let string = |value: Value| match value {
        Value::String(text) => Some(text),
        _ => None,
    };
    let strings = |value: Value| match value {
        Value::Array(list) => list.into_iter().map(string).collect::<Option<Vec<_>>>(),
        _ => None,
    };
    let Some(arguments) = keys.remove("arguments").and_then(strings) else {
        return refused("`arguments` is not a list of strings");
    };
    let Some(stdin) = keys.remove("stdin").map_or(Some(String::new()), string) else {
        return refused("`stdin` is not a string");
    };
    // The id is stored twice. Short strings take more memory than in the line.
    let bytes = OVERHEAD + 2 * line.len() + 32 * arguments.len();
    Ok(Line::Run(Task { id, arguments, stdin, token: Token::default(), bytes }))
}

/// The number of members of a JSON object, including duplicate keys.
fn members(json: &[u8]) -> usize {
    let (mut depth, mut quoted, mut n) = (0, false, 0);
    let mut bytes = json.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => _ = bytes.next(),
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b':' if depth == 1 => n += 1,
            _ => {}
        }
    }
    n
}

fn error(id: Value, what: &str, help: &str) -> Value {
    answered(id, json!({ "error": what, "help": help }))
}

fn cancelled(id: Value) -> Value {
    answered(id, json!({ "cancelled": true }))
}

/// Adds the id and the version to an answer.
fn answered(id: Value, mut answer: Value) -> Value {
    answer["schema_version"] = json!(schema::ANSWER);
    answer["id"] = id;
    answer
}
