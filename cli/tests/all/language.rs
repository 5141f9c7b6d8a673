//! Tests the programs of the language in `docs/language.md`, `docs/linalg.md` and `README.md`: they
//! are well formed and formatted, and the commands that the pages name for them succeed.

use crate::support::{carbyne, none, root};

/// The programs of a page: the line where each begins, the command before it, its text.
fn programs(guide: &str) -> Vec<(usize, String, String)> {
    let lines: Vec<&str> = guide.lines().collect();
    let mut found = vec![];
    let mut at = 0;
    while at < lines.len() {
        let command = lines[at].strip_prefix("<!-- ").and_then(|l| l.strip_suffix(" -->"));
        if let (Some(command), Some(&"```text")) = (command, lines.get(at + 1)) {
            let body: Vec<&str> =
                lines[at + 2..].iter().take_while(|l| **l != "```").copied().collect();
            found.push((at + 3, command.to_owned(), body.join("\n") + "\n"));
            at += body.len();
        }
        at += 1;
    }
    found
}

/// Lists the programs of a page that fail. The page has at least `least` programs.
fn wrong(page: &str, least: usize) -> Vec<String> {
    let guide = std::fs::read_to_string(root().join(page)).expect("the page");
    let programs = programs(&guide);
    assert!(programs.len() >= least, "{page}: {} programs", programs.len());
    let fenced = guide.matches("```text\ncarbyne").count();
    assert_eq!(programs.len(), fenced, "{page}: a program without its command");
    let wrong = programs.iter().filter_map(|(line, command, text)| {
        let mut runs = vec![vec!["fmt", "-", "--check"], vec!["check", "-"]];
        // `decompose` is for programs of unknown sizes.
        if command == "decompose" {
            runs.push(vec!["decompose", "-", "--arch", "sm_80"]);
        }
        // `simulate`, or `simulate sm_90` if older architectures lack an instruction.
        if let Some(arch) = command.strip_prefix("simulate") {
            let arch = if arch.is_empty() { "sm_80" } else { arch.trim() };
            runs.push(vec!["simulate", "-"]);
            runs.push(vec!["decompose", "-", "--arch", arch]);
        }
        let failed = runs.iter().find_map(|args| {
            let ran = carbyne(args, text.as_str());
            (ran.code != 0).then(|| {
                format!(
                    "{}: {}{}",
                    args.join(" "),
                    String::from_utf8_lossy(&ran.stdout),
                    ran.stderr
                )
            })
        });
        failed.map(|why| format!("{page}:{line}: {why}"))
    });
    wrong.collect()
}

#[test]
fn programs_of_the_guide_do_what_is_said() {
    none(wrong("docs/language.md", 8));
}

#[test]
fn the_program_of_the_readme_does_what_is_said() {
    none(wrong("README.md", 1));
}

#[test]
fn programs_for_linalg_do_what_is_said() {
    none(wrong("docs/linalg.md", 4));
}
