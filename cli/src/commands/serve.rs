//! `carbyne serve`: commands one after another in one process, for compilers that decompose many kernels. A request and its answer
//! are a line of JSON each.
//!
//! ```json
//! {"id": 1, "arguments": ["decompose", "-", "--arch", "sm_80"], "stdin": "carbyne 2\n.."}
//! {"exit": 0, "id": 1, "schema_version": 1, "stderr": "", "stdout": "carbyne 2\n.."}
//! {"cancel": 1}
//! {"cancelled": true, "id": 1, "schema_version": 1}
//! ```
//!
//! Invariant: an answer is given to each request, whatever other requests do. A request that fails, panics or is cancelled ends
//! alone.
//! Invariant: at most [`WAITING`] requests wait; then no further line is read until one is done.

use crate::args::Serve;
use crate::failure::{Failure, Outcome};
use crate::json::schema;
use crate::{Io, run};
use carbyne_ir::cancel::{self, Cancelled, Token};
use carbyne_ir::parallel::{self, STACK};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, Scope, scope};

/// Requests that wait for a thread.
const WAITING: usize = 256;
/// Bytes of a line.
const MAX_LINE: u64 = 16 << 20;

/// A command that is to be run.
struct Task {
    id: Value,
    arguments: Vec<String>,
    stdin: String,
    token: Token,
}

/// Tokens of requests without an answer yet, by their ids as text.
type Running = Mutex<HashMap<String, Token>>;

pub(super) fn run_all(args: &Serve, io: &mut Io<'_>) -> Outcome {
    let Io { stdin, stdout, .. } = io;
    let running = Running::default();
    let (answer, answers) = channel::<Value>();
    let (give, tasks) = sync_channel::<Task>(WAITING);
    let tasks = Mutex::new(tasks);
    scope(|threads| {
        let n = args.threads.map_or_else(parallel::cores, usize::from);
        let works = (0..n).filter(|_| start(threads, &tasks, &running, answer.clone()));
        let refused = || {
            let help = "allow more threads or memory: `ulimit -u`, `ulimit -v`";
            Failure::usage_help("the machine starts no thread", help)
        };
        if works.count() == 0 {
            return Err(refused());
        }
        let running = &running;
        // The threads end when nothing is given anymore, and the answers when they have ended.
        let read = move || read_all(BufReader::new(stdin), &give, running, &answer);
        Builder::new().spawn_scoped(threads, read).map_err(|_| refused())?;
        for value in answers {
            // A reader who went away gets no more answers.
            writeln!(stdout, "{value}").and_then(|()| stdout.flush()).map_err(Failure::written)?;
        }
        Ok(())
    })
}

/// Starts a thread that runs commands. False if the machine starts none.
fn start<'s>(
    threads: &'s Scope<'s, '_>,
    tasks: &'s Mutex<Receiver<Task>>,
    running: &'s Running,
    answer: Sender<Value>,
) -> bool {
    let work = move || {
        loop {
            let next = tasks.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(task) = next else { return };
            let id = task.id.clone();
            let said = done(task);
            running.lock().unwrap_or_else(PoisonError::into_inner).remove(&id.to_string());
            // Where nobody reads answers, requests are still taken, so that nobody waits to give one.
            let _ = answer.send(said);
        }
    };
    Builder::new().stack_size(STACK).spawn_scoped(threads, work).is_ok()
}

/// Runs a command, and says how it ended.
fn done(task: Task) -> Value {
    let Task { id, arguments, stdin, token } = task;
    let (mut out, mut err) = (vec![], vec![]);
    let all = std::iter::once("carbyne".to_owned()).chain(arguments);
    let ended = cancel::run(&token, || run(all, &mut stdin.as_bytes(), &mut out, &mut err));
    let exit = match ended {
        Ok(exit) => exit,
        Err(Cancelled) => return answered(id, json!({ "cancelled": true })),
    };
    match (String::from_utf8(out), String::from_utf8(err)) {
        (Ok(stdout), Ok(stderr)) => {
            answered(id, json!({ "exit": exit, "stdout": stdout, "stderr": stderr }))
        }
        _ => error(id, "the output is no text: write it to a file with `-o`"),
    }
}

fn read_all(
    mut from: impl BufRead,
    give: &SyncSender<Task>,
    running: &Running,
    answer: &Sender<Value>,
) {
    loop {
        let mut line = vec![];
        match from.by_ref().take(MAX_LINE + 1).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if line.len() as u64 > MAX_LINE => {
                let text = format!("a line is longer than {} MiB", MAX_LINE >> 20);
                let skipped = skip(&mut from);
                if answer.send(error(Value::Null, &text)).is_err() || !skipped {
                    return;
                }
                continue;
            }
            Ok(_) => {}
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Err(said) = take(&line, give, running)
            && answer.send(said).is_err()
        {
            return;
        }
    }
}

/// Reads to the end of a line that is too long. False at the end of all.
fn skip(from: &mut impl BufRead) -> bool {
    from.skip_until(b'\n').is_ok_and(|n| n > 0)
}

/// Takes a line, or says what is wrong with it.
fn take(line: &[u8], give: &SyncSender<Task>, running: &Running) -> Result<(), Value> {
    let parsed: Value = serde_json::from_slice(line)
        .map_err(|e| error(Value::Null, &format!("a line is no JSON: {e}")))?;
    if let Some(id) = parsed.get("cancel") {
        // It may have ended already.
        let running = running.lock().unwrap_or_else(PoisonError::into_inner);
        running.get(&id.to_string()).into_iter().for_each(Token::cancel);
        return Ok(());
    }
    let id = parsed.get("id").cloned().unwrap_or(Value::Null);
    let strings = |list: &Value| -> Option<Vec<String>> {
        list.as_array()?.iter().map(|a| a.as_str().map(str::to_owned)).collect()
    };
    let arguments = parsed.get("arguments").and_then(strings);
    let stdin = parsed.get("stdin").map_or(Some(""), Value::as_str).map(str::to_owned);
    let (Some(arguments), Some(stdin)) = (arguments, stdin) else {
        let wanted = "a request is {\"id\": .., \"arguments\": [\"..\"], \"stdin\": \"..\"}, or {\"cancel\": ID}";
        return Err(error(id, wanted));
    };
    if arguments.first().is_some_and(|a| a == "serve") {
        return Err(error(id, "`serve` serves already: name another command"));
    }
    let token = Token::default();
    {
        let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
        if running.contains_key(&id.to_string()) {
            return Err(error(
                id,
                "another request of this id is not answered yet: choose another",
            ));
        }
        running.insert(id.to_string(), token.clone());
    }
    // Without threads that take it nothing is read anymore.
    let _ = give.send(Task { id, arguments, stdin, token });
    Ok(())
}

fn error(id: Value, text: &str) -> Value {
    answered(id, json!({ "error": text }))
}

/// The answer to the request of that id.
fn answered(id: Value, mut answer: Value) -> Value {
    answer["schema_version"] = json!(schema::ANSWER);
    answer["id"] = id;
    answer
}
