//! Tests the tutorial: writes its files, runs its commands, compares their outputs with those of
//! the page, and compiles its C++. `cargo xtask bless docs/tutorial` writes the outputs.
#![cfg(unix)]

use crate::host::{Parts, compiled};
use crate::support::{golden, none, root, scratch};
use std::path::Path;
use std::process::Command;

/// The standard output and standard error of a command line, as a shell in this folder gives it.
fn output(command: &str, folder: &Path) -> String {
    let binary = Path::new(env!("CARGO_BIN_EXE_carbyne"));
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&folders);
    let first = binary.parent().expect("a binary lies in a folder").to_owned();
    let path = std::env::join_paths(std::iter::once(first).chain(folders)).expect("a path");
    let ran = Command::new("sh")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .env("PATH", path)
        .env("NO_COLOR", "1")
        .current_dir(folder)
        .output()
        .expect("sh starts");
    String::from_utf8(ran.stdout).expect("text")
}

/// The page with fresh outputs: `<!-- file: NAME -->` names the file that the next block is, and a
/// block of the console has commands behind `$`, each with its output.
fn run(page: &str, folder: &Path) -> String {
    let mut fresh = String::new();
    let mut lines = page.lines();
    let mut file = None;
    while let Some(line) = lines.next() {
        fresh += &format!("{line}\n");
        if let Some(name) = line.strip_prefix("<!-- file: ").and_then(|l| l.strip_suffix(" -->")) {
            file = Some(name);
        } else if let Some(name) = file.filter(|_| line == "```text") {
            let body: Vec<&str> = lines.by_ref().take_while(|l| *l != "```").collect();
            let text = body.join("\n") + "\n";
            std::fs::write(folder.join(name), &text).expect("the folder is writable");
            fresh += &format!("{text}```\n");
            file = None;
        } else if line == "```console" {
            for line in lines.by_ref().take_while(|l| *l != "```") {
                if let Some(command) = line.strip_prefix("$ ") {
                    fresh += &format!("{line}\n{}", output(command, folder));
                }
            }
            fresh += "```\n";
        }
    }
    fresh
}

#[test]
fn commands_of_the_tutorial_print_what_it_shows() {
    let path = root().join("docs/tutorial.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let folder = scratch("tutorial");
    let fresh = run(&page, &folder);
    assert!(fresh.matches("\n$ carbyne ").count() >= 12, "too few commands:\n{fresh}");
    none(golden(&path, &fresh).err().into_iter().collect());

    // The C++ of the page declares the host function as it is printed, and calls it.
    let code = page.split("```c++\n").nth(1).and_then(|l| l.split("```").next());
    let printed = std::fs::read_to_string(folder.join("norm.cu")).expect("a command prints it");
    let host = Parts::of(&printed).host;
    let code = code.expect("a block of C++").replace("#include <cuda_fp16.h>\n", "");
    let source = folder.join("caller.cpp").display().to_string();
    std::fs::write(&source, host + &code).expect("the folder is writable");
    let object = folder.join("caller.o").display().to_string();
    compiled(&["-c", &source, "-o", &object]).unwrap_or_else(|e| panic!("{e}"));
}
