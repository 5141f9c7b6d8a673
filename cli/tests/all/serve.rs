//! `carbyne serve`: lines of JSON in, lines of JSON out.

use serde_json::{Value, json};

const GEMM: &str = "carbyne 2
%A:[64,32].f16.GL
%B:[32,64].f16.GL
%C:[64,64].f16.GL
MatMul.set @gemm (%A, %B) -> (%C) acc=f32
";

/// The exit code of a run on these lines, and its answers.
fn served(lines: &[String]) -> (i32, Vec<Value>) {
    let input = lines.join("\n");
    let (mut out, mut err) = (vec![], vec![]);
    let arguments = ["carbyne", "serve", "--threads", "2"];
    let code = carbyne::run(arguments, &mut input.as_bytes(), &mut out, &mut err);
    assert!(err.is_empty(), "{}", String::from_utf8_lossy(&err));
    let out = String::from_utf8(out).unwrap();
    (code, out.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
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
        json!({ "cancel": 99 }).to_string(),
        long,
        request(9, &["fmt", "-"], GEMM),
        // The last line has no end.
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
    // The first thread works on what never ends soon, the second one on all others.
    let forever = ["simulate", "-", "--budget", "2000000000"];
    let large = "carbyne 2\n%A:[4096,4096].f16.GL\n%B:[4096,4096].f16.GL\n%C:[4096,4096].f16.GL\nMatMul.set @gemm (%A, %B) -> (%C) acc=f32\n";
    let whole = "carbyne 2\n%A:[65536,4096].f32.GL\n%B:[65536,4096].f32.GL\nBinaryPointwise.add @f (%A, %A) -> (%B)\n";
    let mut lines = vec![
        request(
            0,
            &["decompose", "-", "--arch", "sm_90a", "--exhaustive", "--budget", "100000000"],
            large,
        ),
        request("slow", &forever, whole),
    ];
    lines.extend((1..5).map(|id| request(id, &["fmt", "-"], GEMM)));
    lines.push(json!({ "cancel": 0 }).to_string());
    lines.push(json!({ "cancel": "slow" }).to_string());
    lines.push(request(0, &["fmt", "-"], GEMM));
    let (code, answers) = served(&lines);
    assert_eq!(code, 0);
    for id in 1..5 {
        assert_eq!(answer(&answers, id)["stdout"], GEMM, "{id}");
    }
    let of_first: Vec<&Value> = answers.iter().filter(|a| a["id"] == 0).collect();
    // The id is taken, or free again.
    assert_eq!(of_first.len(), 2, "{of_first:?}");
    assert!(of_first.iter().any(|a| a["cancelled"] == true), "{of_first:?}");
}

/// After many requests the process has no more memory than after the first ones: of 1,000, of 100,000 with `--all`.
#[test]
#[cfg(target_os = "linux")]
fn memory_stays_what_it_is() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    let text = include_str!("../../../examples/tile/gemm_staged.cby");
    let all = std::env::var_os("CARBYNE_ALL").is_some();
    let mut process = Command::new(env!("CARGO_BIN_EXE_carbyne"))
        .args(["serve", "--threads", "2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = process.stdin.take().unwrap();
    let mut from = BufReader::new(process.stdout.take().unwrap()).lines();
    let mut run = |n: usize| -> u64 {
        let mut waiting = 0;
        for id in 0..n {
            let arguments = ["decompose", "-", "--arch", "sm_80"];
            writeln!(to, "{}", request(id, &arguments, text)).unwrap();
            waiting += 1;
            while waiting > 4 || (id + 1 == n && waiting > 0) {
                let answer: Value = serde_json::from_str(&from.next().unwrap().unwrap()).unwrap();
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
