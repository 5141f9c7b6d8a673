//! Tests `carbyne serve`, which answers JSON requests, one per line: cancellation, invalid
//! requests, limits of memory, and streams that close.

use crate::support::{carbyne, scratch};
use serde_json::{Value, json};
use std::io::{self, Read};

/// Maximum number of bytes of a line.
const MAX_LINE: usize = 16 << 20;

const GEMM: &str = "carbyne 2
%A:[64,32].f16.GL
%B:[32,64].f16.GL
%C:[64,64].f16.GL
MatMul.set @gemm (%A, %B) -> (%C) acc=f32
";

/// The exit code and the answers for these lines.
fn served(lines: &[String]) -> (i32, Vec<Value>) {
    served_by(&["--threads", "2"], lines)
}

fn served_by(options: &[&str], lines: &[String]) -> (i32, Vec<Value>) {
    let input = lines.join("\n");
    let (mut out, mut err) = (vec![], vec![]);
    let all = ["carbyne", "serve"].iter().chain(options);
    let code = carbyne::run(all, &mut input.as_bytes(), &mut out, &mut err);
    assert!(err.is_empty(), "{}", String::from_utf8_lossy(&err));
    (code, answers(&out))
}

fn answers(out: &[u8]) -> Vec<Value> {
    let lines = out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// A kernel of 2^37 operations.
const LARGE: &str = "carbyne 2
%A:[4096,4096].f16.GL
%B:[4096,4096].f16.GL
%C:[4096,4096].f16.GL
MatMul.set @gemm (%A, %B) -> (%C) acc=f32
";

/// A request that takes hours.
fn endless(id: impl Into<Value>) -> String {
    let all = ["--blocks", "all", "--budget", "1000000000000"];
    request(id, &[&["simulate", "-", "--arch", "sm_80"], &all[..]].concat(), LARGE)
}

fn cancel(id: impl Into<Value>) -> String {
    json!({ "cancel": id.into() }).to_string()
}

fn request(id: impl Into<Value>, arguments: &[&str], stdin: &str) -> String {
    json!({ "id": id.into(), "arguments": arguments, "stdin": stdin }).to_string()
}

fn answer(answers: &[Value], id: impl Into<Value>) -> &Value {
    let id = id.into();
    let mut of = answers.iter().filter(|a| a["id"] == id);
    let found = of.next().unwrap_or_else(|| panic!("{id} has no answer: {answers:?}"));
    assert!(of.next().is_none(), "{id} has two answers");
    found
}

#[test]
fn requests_are_answered_as_commands_are() {
    let arguments = ["decompose", "-", "--arch", "sm_80"];
    let (code, answers) = served(&[
        request(1, &arguments, GEMM),
        request("two", &["check", "-", "--message-format", "json"], "carbyne 2\n%A:[64].f61.GL"),
        String::new(),
        request(3, &["layout", "(2,3):(3,1)"], ""),
    ]);
    assert_eq!((code, answers.len()), (0, 3));
    let (mut out, mut err) = (vec![], vec![]);
    let all = ["carbyne"].iter().chain(&arguments);
    assert_eq!(
        carbyne::run(all.copied().map(str::to_owned), &mut GEMM.as_bytes(), &mut out, &mut err),
        0
    );
    assert_eq!(answer(&answers, 1)["stdout"], String::from_utf8(out).unwrap());
    assert_eq!(answer(&answers, 1)["exit"], 0);
    assert!(answers.iter().all(|a| a["schema_version"] == 1), "{answers:?}");
    let wrong = answer(&answers, "two");
    assert_eq!(wrong["exit"], 1);
    assert!(wrong["stderr"].as_str().unwrap().contains("P0001"), "{wrong}");
    assert!(answer(&answers, 3)["stdout"].as_str().unwrap().starts_with("(2,3)"), "{answers:?}");
}

#[test]
fn wrong_lines_harm_no_others() {
    let long = format!("\"{}\"", "x".repeat(17 << 20));
    let (code, answers) = served(&[
        "{".to_owned(),
        "[1, 2]".to_owned(),
        "7".to_owned(),
        json!({ "id": 4, "arguments": "check" }).to_string(),
        json!({ "id": 5, "arguments": ["check", 1] }).to_string(),
        request(6, &["serve"], ""),
        request(7, &["nothing"], ""),
        request(8, &[], ""),
        cancel(99),
        long,
        request(9, &["fmt", "-"], GEMM),
        // The last line has no line break.
        request(10, &["fmt", "-"], GEMM),
    ]);
    assert_eq!(code, 0);
    for id in [4, 5, 6] {
        assert!(answer(&answers, id)["error"].is_string(), "{id}");
    }
    for id in [7, 8] {
        assert_eq!(answer(&answers, id)["exit"], 2, "{id}");
    }
    for id in [9, 10] {
        assert_eq!(answer(&answers, id)["stdout"], GEMM, "{id}");
    }
    let nameless = answers.iter().filter(|a| a["id"].is_null());
    let nameless: Vec<_> = nameless.map(|a| a["error"].as_str().unwrap_or_default()).collect();
    assert_eq!(nameless.len(), 4, "{nameless:?}");
    assert!(nameless.iter().any(|text| text.contains("longer than 16 MiB")), "{nameless:?}");
}

#[test]
fn a_cancelled_request_ends_alone() {
    // Both threads are busy with long requests.
    let mut lines = vec![
        request(
            0,
            &["decompose", "-", "--arch", "sm_90a", "--exhaustive", "--budget", "100000000"],
            LARGE,
        ),
        endless("slow"),
    ];
    lines.extend((1..5).map(|id| request(id, &["fmt", "-"], GEMM)));
    lines.extend([cancel(0), cancel("slow")]);
    lines.push(request(0, &["fmt", "-"], GEMM));
    let (code, answers) = served(&lines);
    assert_eq!(code, 0);
    for id in 1..5 {
        assert_eq!(answer(&answers, id)["stdout"], GEMM, "{id}");
    }
    let of_first: Vec<&Value> = answers.iter().filter(|a| a["id"] == 0).collect();
    // The id is in use, or free again.
    assert_eq!(of_first.len(), 2, "{of_first:?}");
    assert!(of_first.iter().any(|a| a["cancelled"] == true), "{of_first:?}");
}

#[test]
fn a_line_that_is_no_request_says_why() {
    let deep = format!("{{\"id\":{}{}}}", "[".repeat(200), "]".repeat(200));
    for (line, id, why) in [
        (
            r#"{"id":1,"arguments":[],"cancel":1}"#,
            json!(1),
            "`arguments` is not a key of a line that",
        ),
        (r#"{"id":1,"cancel":1}"#, json!(1), "`id` is not a key of a line that cancels"),
        (r#"{"id":1,"arguments":[],"more":1}"#, json!(1), "`more` is not a key of a request"),
        (r#"{"id":1,"arguments":[],"stdin":"","stdin":"\":"}"#, json!(1), "occurs twice"),
        (r#"{"cancel":1,"cancel":1}"#, Value::Null, "occurs twice"),
        (r#"{"arguments":["--version"]}"#, Value::Null, "no `id`"),
        (r#"{"id":1}"#, json!(1), "`arguments` is not a list of strings"),
        (r#"{"id":1,"arguments":[],"stdin":null}"#, json!(1), "`stdin` is not a string"),
        (r#"{"id":null,"arguments":[]}"#, Value::Null, "`id` is neither a string nor an integer"),
        (r#"{"id":[1],"arguments":[]}"#, Value::Null, "`id` is neither a string nor an integer"),
        (r#"{"id":1.0,"arguments":[]}"#, Value::Null, "without fraction and exponent"),
        (r#"{"id":1e2,"arguments":[]}"#, Value::Null, "without fraction and exponent"),
        (r#"{"id":9223372036854775808,"arguments":[]}"#, Value::Null, "to 2^63 - 1"),
        (r#"{"cancel":1.5}"#, Value::Null, "`cancel` is neither a string nor an integer"),
        (r#"{"cancel":null}"#, Value::Null, "`cancel` is neither a string nor an integer"),
        (r#"["id"]"#, Value::Null, "not an object"),
        (r#"{"id":1,"arguments":[]"#, Value::Null, "not JSON"),
        (&deep, Value::Null, "nested too deeply"),
    ] {
        let (code, answers) = served(&[line.to_owned(), request("next", &["--version"], "")]);
        assert_eq!((code, answers.len()), (0, 2), "{line}: {answers:?}");
        assert_eq!(answer(&answers, "next")["exit"], 0, "{line}");
        let refused = answer(&answers, id);
        assert!(refused["error"].as_str().unwrap().contains(why), "{line}: {refused}");
        assert!(refused["help"].is_string(), "{line}: {refused}");
    }
}

#[test]
fn ids_come_back_as_they_were_given() {
    let ids = [json!(i64::MIN), json!(i64::MAX), json!(0), json!("0"), json!(""), json!("\0\"é")];
    let lines: Vec<_> = ids.iter().map(|id| request(id.clone(), &["--version"], "")).collect();
    let (_, answers) = served(&lines);
    assert_eq!(answers.len(), ids.len(), "{answers:?}");
    for id in ids {
        assert_eq!(answer(&answers, id)["exit"], 0);
    }
}

#[test]
fn the_longest_line_is_read() {
    let empty = request(1, &["--version"], "");
    let longest = request(1, &["--version"], &"x".repeat(MAX_LINE - empty.len()));
    assert_eq!(longest.len(), MAX_LINE);
    let longer = request(2, &["--version"], &"x".repeat(MAX_LINE + 1 - empty.len()));
    let (_, answers) = served(&[longest, longer, request(3, &["--version"], "")]);
    assert_eq!(answers.len(), 3);
    for id in [1, 3] {
        assert_eq!(answer(&answers, id)["exit"], 0, "{id}");
    }
    let refused = answer(&answers, Value::Null);
    assert!(refused["error"].as_str().unwrap().contains("longer than 16 MiB"), "{refused}");
}

#[test]
fn serve_is_refused_wherever_it_stands() {
    let nested = request(7, &["--version"], "") + "\n";
    let (_, answers) = served(&[
        request(1, &["--message-format", "json", "serve"], &nested),
        request(2, &["--strategy=serve", "serve", "--threads", "3"], &nested),
        request(3, &["check", "serve"], ""),
    ]);
    assert_eq!(answers.len(), 3, "{answers:?}");
    for id in [1, 2] {
        let refused = answer(&answers, id);
        assert!(refused["error"].as_str().unwrap().contains("`serve`"), "{refused}");
    }
    // A file name is not a command.
    assert_eq!(answer(&answers, 3)["exit"], 2, "{answers:?}");
}

#[test]
fn options_of_serve_hold_for_all_requests() {
    let folder = scratch("serve_options");
    for (path, text) in [
        ("here/main.cby", "carbyne 2\nimport \"../there/part.cby\"\n"),
        ("there/part.cby", "carbyne 2\nlet X = 1\n"),
        (
            "other/main.cby",
            "carbyne 2\nimport \"../more/part.cby\"\nimport \"../there/part.cby\"\n",
        ),
        ("more/part.cby", "carbyne 2\nlet Y = 1\n"),
    ] {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let path = |name: &str| folder.join(name).display().to_string();
    let (here, there) = (path("here/main.cby"), path("there"));
    let (other, more) = (path("other/main.cby"), path("more"));
    let wrong = "carbyne 2\n%A:[64].f61.GL";
    let options =
        ["--message-format", "json", "--allow-import", &there, "--strategy", "no strategy"];
    let (code, answers) = served_by(
        &options,
        &[
            request(1, &["check", "-"], wrong),
            request(2, &["nothing"], ""),
            request(3, &["--message-format", "human", "check", "-"], wrong),
            request(4, &["check", "-", "--message-format=human"], wrong),
            request(5, &["check", &here], ""),
            request(6, &["check", &other], ""),
            request(7, &["check", &other, "--allow-import", &more], ""),
            request(8, &["decompose", "-", "--arch", "sm_80"], GEMM),
        ],
    );
    assert_eq!((code, answers.len()), (0, 8));
    let said = |id: u32| answer(&answers, id)["stderr"].as_str().unwrap();
    for id in [1, 2] {
        assert!(said(id).starts_with('{'), "{id}: {}", said(id));
    }
    for id in [3, 4] {
        assert!(said(id).starts_with("P0001"), "{id}: {}", said(id));
    }
    for (id, exit) in [(5, 0), (6, 1), (7, 0), (8, 2)] {
        assert_eq!(answer(&answers, id)["exit"], exit, "{id}: {}", said(id));
    }
    assert!(said(8).contains("`no strategy` cannot be read"), "{}", said(8));
    // Without these options, the commands fail.
    assert_eq!(carbyne(&["check", &here], "").code, 1);
}

#[test]
fn a_cancel_is_read_behind_many_requests() {
    let mut lines = vec![endless(0)];
    lines.extend((1..1000).map(|id| request(id, &["--version"], "")));
    // A waiting request is cancelled immediately.
    lines.extend([cancel(500), cancel(0)]);
    let (code, answers) = served_by(&["--threads", "1"], &lines);
    assert_eq!((code, answers.len()), (0, 1000));
    for id in 0..1000 {
        let key = if id % 500 == 0 { "cancelled" } else { "exit" };
        assert!(answer(&answers, id).get(key).is_some(), "{id}");
    }
    assert_eq!(answers[0]["id"], 500);
}

#[test]
fn too_many_requests_are_refused() {
    let long = " ".repeat(15 << 20);
    let mut lines = vec![endless(0)];
    // Each request counts as 30 MiB of 256 MiB.
    lines.extend((1..=10).map(|id| request(id, &["--version"], &long)));
    // A cancelled request does not count anymore.
    lines.extend([cancel(3), request(11, &["--version"], &long), cancel(0)]);
    let (code, answers) = served_by(&["--threads", "1"], &lines);
    assert_eq!((code, answers.len()), (0, 12));
    for id in [9, 10] {
        let refused = answer(&answers, id);
        let error = refused["error"].as_str().unwrap();
        assert!(error.starts_with("waiting requests take more"), "{refused}");
    }
    for id in [1, 2, 4, 5, 6, 7, 8, 11] {
        assert_eq!(answer(&answers, id)["exit"], 0, "{id}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn other_files_than_ordinary_ones_are_refused() {
    let folder = scratch("serve_files");
    let path = |name: &str| folder.join(name).display().to_string();
    let (pipe, link, new) = (path("pipe"), path("link"), path("new.cby"));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::os::unix::fs::symlink("pipe", &link).unwrap();
    let (input, to_pipe) = (format!("A={pipe}"), format!("C={pipe}"));
    let decompose = ["decompose", "-", "--arch", "sm_80"];
    let simulate = ["simulate", "-", "--seed", "1"];
    let refused = [
        vec!["check", &pipe],
        vec!["check", &link],
        vec!["check", "/dev/stdin"],
        vec!["check", "/dev/fd/0"],
        vec!["check", "/proc/self/fd/0"],
        vec!["check", "/dev/zero"],
        [&decompose[..], &["--costs", &pipe]].concat(),
        [&decompose[..], &["--tuned", &pipe]].concat(),
        [&decompose[..], &["--strategy", &pipe]].concat(),
        [&simulate[..], &["--against", &pipe]].concat(),
        [&simulate[..], &["--in", &input]].concat(),
        [&simulate[..], &["--out", &to_pipe]].concat(),
        vec!["fmt", "-", "-o", &pipe],
        vec!["fmt", "-", "-o", "/dev/stdout"],
        vec!["fmt", "-", "-o", "/dev/null"],
    ];
    let mut lines: Vec<_> = (0..).zip(&refused).map(|(id, r)| request(id, r, GEMM)).collect();
    lines.push(request("new", &["fmt", "-", "-o", &new], GEMM));
    lines.push(request("old", &["fmt", "-", "-o", &new], GEMM));
    lines.push(request("none", &["check", &path("none")], ""));
    let (code, answers) = served_by(&["--threads", "1"], &lines);
    assert_eq!(code, 0);
    for (id, request) in refused.iter().enumerate() {
        let answer = answer(&answers, id);
        assert_eq!(answer["exit"], 2, "{request:?}: {answer}");
        assert!(
            answer["stderr"].as_str().unwrap().contains("it is not a regular file"),
            "{answer}"
        );
    }
    for id in ["new", "old"] {
        assert_eq!(answer(&answers, id)["exit"], 0, "{answers:?}");
    }
    assert_eq!(std::fs::read_to_string(new).unwrap(), GEMM);
    let none = answer(&answers, "none")["stderr"].as_str().unwrap();
    assert!(none.contains("there is no such file"), "{none}");
}

/// A stream that fails.
struct Broken;

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

#[test]
fn an_error_of_reading_is_said_when_all_is_answered() {
    let line = request(1, &["--version"], "") + "\n";
    let (mut out, mut err) = (vec![], vec![]);
    let mut input = line.as_bytes().chain(Broken);
    assert_eq!(carbyne::run(["carbyne", "serve"], &mut input, &mut out, &mut err), 2);
    assert_eq!(answer(&answers(&out), 1)["exit"], 0);
    let said = String::from_utf8(err).unwrap();
    assert!(said.contains("standard input cannot be read: permission is denied"), "{said}");
}

/// Tests with processes, whose input may stay open.
#[cfg(unix)]
mod process {
    use super::{GEMM, endless, request};
    use crate::support::scratch;
    use serde_json::Value;
    use std::fs::File;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    /// `carbyne serve` with two threads.
    fn serve(stdin: Stdio, stdout: Stdio) -> Child {
        Command::new(env!("CARGO_BIN_EXE_carbyne"))
            .args(["serve", "--threads", "2"])
            .stdin(stdin)
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Waits for a process that ends soon. Returns its exit code and standard error.
    fn ends(process: &mut Child) -> (Option<i32>, String) {
        let start = Instant::now();
        let status = loop {
            match process.try_wait().unwrap() {
                Some(status) => break status,
                None if start.elapsed() < Duration::from_secs(60) => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                None => {
                    process.kill().unwrap();
                    panic!("it does not end");
                }
            }
        };
        let mut said = String::new();
        process.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (status.code(), said)
    }

    #[test]
    fn a_command_line_may_read_a_pipe() {
        let mut check = Command::new(env!("CARGO_BIN_EXE_carbyne"))
            .args(["check", "/dev/stdin"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        check.stdin.take().unwrap().write_all(GEMM.as_bytes()).unwrap();
        assert!(check.wait().unwrap().success());
    }

    /// After many requests, the process needs no more memory than after the first ones: after 1,000
    /// requests, or after 100,000 with `--all`.
    #[test]
    #[cfg(target_os = "linux")]
    fn memory_stays_what_it_is() {
        let text = include_str!("../../../examples/tile/copy_row_b16_shared.cby");
        let all = std::env::var_os("CARBYNE_ALL").is_some();
        let mut process = serve(Stdio::piped(), Stdio::piped());
        let mut to = process.stdin.take().unwrap();
        let mut from = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut run = |n: usize| -> u64 {
            let mut waiting = 0;
            for id in 0..n {
                let arguments = ["decompose", "-", "--arch", "sm_80"];
                writeln!(to, "{}", request(id, &arguments, text)).unwrap();
                waiting += 1;
                while waiting > 4 || (id + 1 == n && waiting > 0) {
                    let answer: Value =
                        serde_json::from_str(&from.next().unwrap().unwrap()).unwrap();
                    assert_eq!(answer["exit"], 0);
                    waiting -= 1;
                }
            }
            let said = std::fs::read_to_string(format!("/proc/{}/statm", process.id())).unwrap();
            said.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
        };
        let before = run(100);
        let after = run(if all { 100_000 } else { 900 });
        assert!(after < before + (16 << 20), "{before} bytes became {after}");
        drop(to);
        assert!(process.wait().unwrap().success());
    }

    #[test]
    fn a_folder_is_no_input() {
        let folder = File::open(scratch("serve_folder")).unwrap();
        let (code, said) = ends(&mut serve(folder.into(), Stdio::null()));
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("standard input cannot be read: it is a directory"), "{said}");
    }

    #[test]
    fn a_reader_who_leaves_ends_all() {
        let mut process = serve(Stdio::piped(), Stdio::piped());
        drop(process.stdout.take());
        // The input stays open until the process has ended.
        let mut to = process.stdin.take().unwrap();
        for line in [endless(1), request(2, &["--version"], "")] {
            writeln!(to, "{line}").unwrap();
        }
        assert_eq!(ends(&mut process), (Some(0), String::new()));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_disk_ends_all() {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let mut process = serve(Stdio::piped(), full.into());
        let mut to = process.stdin.take().unwrap();
        for line in [endless(1), request(2, &["--version"], "")] {
            writeln!(to, "{line}").unwrap();
        }
        let (code, said) = ends(&mut process);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("standard output cannot be written"), "{said}");
    }

    /// Threads wait with their answers: 300 answers of one MiB each do not fill the memory.
    #[test]
    #[cfg(target_os = "linux")]
    fn answers_that_nobody_reads_are_bounded() {
        const N: usize = 300;
        let mut process = serve(Stdio::piped(), Stdio::piped());
        let mut to = process.stdin.take().unwrap();
        for id in 0..N {
            writeln!(to, "{}", request(id, &["atoms", "--markdown"], "")).unwrap();
        }
        drop(to);
        let stat = |name: &str| std::fs::read_to_string(format!("/proc/{}/{name}", process.id()));
        // User time, during which the process works.
        let worked = || stat("stat").unwrap().split(' ').nth(13).unwrap().to_owned();
        let mut before = String::new();
        while worked() != before {
            before = worked();
            std::thread::sleep(Duration::from_secs(1));
        }
        let pages = stat("statm").unwrap().split(' ').nth(1).unwrap().parse::<u64>().unwrap();
        assert!(pages * 4096 < 150 << 20, "{pages} pages");
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        assert_eq!(lines.filter(|line| line.as_ref().is_ok_and(|l| l.len() > 1 << 19)).count(), N);
        assert!(process.wait().unwrap().success());
    }
}
