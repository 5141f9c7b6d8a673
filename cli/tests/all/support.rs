//! Runs the command line inside a test, and compares outputs with files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

/// The exit code and output of a run.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ran {
    /// Standard output as text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("text")
    }

    /// Fails the test unless the run succeeded.
    pub(crate) fn ok(self) -> Ran {
        assert_eq!(self.code, 0, "{}", self.stderr);
        self
    }

    /// The diagnostics of a run with `--message-format json`.
    pub(crate) fn errors(&self) -> Vec<serde_json::Value> {
        self.said().filter(|v| v["kind"] == "error").collect()
    }

    /// The warnings of a run with `--message-format json`.
    pub(crate) fn warnings(&self) -> Vec<serde_json::Value> {
        self.said().filter(|v| v["kind"] == "warning").collect()
    }

    /// The lines with repeated writes in the reports of a simulation.
    pub(crate) fn repeated_writes(&self) -> Vec<u64> {
        let lines =
            |v: serde_json::Value| v["repeated_writes"].as_array().cloned().unwrap_or_default();
        self.said().flat_map(lines).filter_map(|line| line.as_u64()).collect()
    }

    fn said(&self) -> impl Iterator<Item = serde_json::Value> {
        self.stderr.lines().map(|l| serde_json::from_str(l).unwrap_or_else(|e| panic!("{e}: {l}")))
    }
}

/// Runs `carbyne` with these arguments and this standard input.
pub(crate) fn carbyne(args: &[&str], stdin: impl AsRef<[u8]>) -> Ran {
    let (mut stdout, mut stderr) = (vec![], vec![]);
    let all = std::iter::once("carbyne").chain(args.iter().copied());
    let code = carbyne::run(all, &mut stdin.as_ref(), &mut stdout, &mut stderr);
    Ran { code, stdout, stderr: String::from_utf8(stderr).expect("diagnostics are UTF-8") }
}

/// Runs a command on a file. Returns its messages if it fails.
pub(crate) fn run(file: &Path, args: &[&str]) -> Result<Ran, String> {
    let path = file.display().to_string();
    let mut all = vec![args[0], path.as_str()];
    all.extend(&args[1..]);
    let ran = carbyne(&all, "");
    let command = format!("{} {}", shown(file), args.join(" "));
    match ran.code {
        0 => Ok(ran),
        code => Err(format!("{command}: exit code {code}\n{}", ran.stderr)),
    }
}

/// The output of `carbyne decompose` or `carbyne compile` for an example and an architecture. All
/// tests share one run of the command.
pub(crate) fn made(file: &Path, command: &'static str, arch: &str) -> Result<Arc<Ran>, String> {
    type Made = Arc<OnceLock<Result<Arc<Ran>, String>>>;
    static MADE: Mutex<BTreeMap<(&str, PathBuf, String), Made>> = Mutex::new(BTreeMap::new());
    let key = (command, file.to_owned(), arch.to_owned());
    let made = MADE.lock().expect("no test panics here").entry(key).or_default().clone();
    made.get_or_init(|| run(file, &[command, "--arch", arch]).map(Arc::new)).clone()
}

/// The root of the workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("cli/ has a parent").to_owned()
}

/// The `.cby` files in a folder and its subfolders, sorted.
pub(crate) fn texts_under(folder: &Path) -> Vec<PathBuf> {
    let mut out = vec![];
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("a readable folder").path();
        if path.is_dir() {
            out.extend(texts_under(&path));
        } else if path.extension().is_some_and(|e| e == "cby") {
            out.push(path);
        }
    }
    out.sort();
    out
}

/// A path relative to the root of the workspace, as in messages.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// A new empty folder for a test.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("the build folder is writable");
    folder
}

/// Compares `actual` with the file at `path`, and returns the difference. With `BLESS=1`, writes
/// the file instead.
pub(crate) fn golden(path: &Path, actual: &str) -> Result<(), String> {
    let name = shown(path);
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    if expected == actual {
        return Ok(());
    }
    let only = std::env::var("BLESS_ONLY").unwrap_or_default();
    if std::env::var_os("BLESS").is_some_and(|v| v == "1") && name.contains(&only) {
        std::fs::write(path, actual).unwrap_or_else(|e| panic!("{name}: {e}"));
        return Ok(());
    }
    let diff = carbyne::unified_diff::diff(&name, "the current output", &expected, actual);
    Err(format!("{diff}\nIf the change is intended, run cargo xtask bless {name}"))
}

/// Fails with all collected failures.
pub(crate) fn none(failures: Vec<String>) {
    assert!(failures.is_empty(), "{} failures\n\n{}", failures.len(), failures.join("\n\n"));
}

/// The text after the edits of a diagnostic.
pub(crate) fn changed(text: &str, edits: &serde_json::Value) -> String {
    let mut edits: Vec<&serde_json::Value> = edits.as_array().into_iter().flatten().collect();
    let at = |edit: &serde_json::Value, key: &str| edit[key].as_u64().expect("an offset") as usize;
    edits.sort_by_key(|edit| std::cmp::Reverse(at(edit, "byte_start")));
    edits.iter().fold(text.to_owned(), |mut text, edit| {
        let new = edit["text"].as_str().expect("a text");
        text.replace_range(at(edit, "byte_start")..at(edit, "byte_end"), new);
        text
    })
}
