//! Tests output files: after an error such as a full disk, a file has its previous contents; a file
//! that is replaced keeps its permissions; links are followed; streams and devices are written in
//! place.
#![cfg(unix)]

use crate::support::{carbyne, root, scratch};
use std::fs::Permissions;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

const UNFORMATTED: &str = "carbyne 2\n%A :[8 , 8].f16.GL\n";
const FORMATTED: &str = "carbyne 2\n%A:[8,8].f16.GL\n";

/// Runs a bash script in a folder. `$C` is the carbyne binary.
fn shell(script: &str, folder: &Path) -> Output {
    Command::new("bash")
        .args(["-c", script])
        .env("C", env!("CARGO_BIN_EXE_carbyne"))
        .env("ROOT", root())
        .current_dir(folder)
        .output()
        .expect("bash starts")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let name = |e: std::io::Result<std::fs::DirEntry>| e.expect("readable").file_name();
    let mut names: Vec<String> =
        entries.map(|e| name(e).into_string().expect("our names are UTF-8")).collect();
    names.sort();
    names
}

/// A text of some KiB that `fmt` changes.
fn long() -> String {
    let lines = (0..400).map(|k| format!("%T{k} :[8 , 8].f16.GL\n"));
    format!("carbyne 2\n{}", lines.collect::<String>())
}

#[test]
fn a_full_disk_takes_nothing_away() {
    let folder = scratch("outputs_full");
    let gemm = "$ROOT/examples/softmax.cby --arch sm_80";
    let layout = "'(64,64):(64,1)' --format svg";
    let simulated = "$ROOT/examples/vector_copy.cby --blocks all --out";
    let commands = [
        "fmt a.cby".to_owned(),
        "fmt a.cby -o out".to_owned(),
        format!("decompose {gemm} -o out"),
        format!("compile {gemm} --emit cuda -o out"),
        format!("draw {layout} -o out"),
        format!("simulate {simulated} out=out.npy"),
    ];
    for command in commands {
        for there in [true, false] {
            let output = if command.ends_with(".npy") { "out.npy" } else { "out" };
            let _ = std::fs::remove_file(folder.join(output));
            std::fs::write(folder.join("a.cby"), long()).expect("writable");
            if there {
                std::fs::write(folder.join(output), "before").expect("writable");
            }
            let before = names(&folder);
            // Limit files to one KiB; exceeding the limit does not kill the process.
            let ran = shell(&format!("ulimit -f 1; trap '' XFSZ; $C {command}"), &folder);
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            assert_eq!(ran.status.code(), Some(2), "{command}: {said}");
            assert!(said.contains("cannot be written: the file would be too large"), "{said}");
            assert_eq!(names(&folder), before, "{command}");
            let text = std::fs::read_to_string(folder.join("a.cby")).expect("still there");
            assert!(text == long(), "{command}");
            if there {
                let text = std::fs::read_to_string(folder.join(output)).expect("still there");
                assert_eq!(text, "before", "{command}");
            }
        }
    }
}

#[test]
fn rights_are_kept() {
    let folder = scratch("outputs_rights");
    let (file, path) = (folder.join("a.cby"), folder.join("a.cby").display().to_string());
    for mode in [0o600, 0o640, 0o755] {
        std::fs::write(&file, UNFORMATTED).expect("writable");
        std::fs::set_permissions(&file, Permissions::from_mode(mode)).expect("ours");
        carbyne(&["fmt", &path], "").ok();
        assert_eq!(std::fs::read_to_string(&file).expect("readable"), FORMATTED);
        assert_eq!(file.metadata().expect("there").mode() & 0o777, mode);
    }
    // A new file has the default permissions.
    let (new, other) = (folder.join("new"), folder.join("other"));
    std::fs::write(&other, "").expect("writable");
    carbyne(&["fmt", &path, "-o", &new.display().to_string()], "").ok();
    let mode = |file: &Path| file.metadata().expect("there").mode();
    assert_eq!(mode(&new), mode(&other));
    assert_eq!(names(&folder), ["a.cby", "new", "other"]);
}

#[test]
fn protected_files_are_refused() {
    let folder = scratch("outputs_protected");
    let (file, path) = (folder.join("a.cby"), folder.join("a.cby").display().to_string());
    std::fs::write(&file, UNFORMATTED).expect("writable");
    std::fs::set_permissions(&file, Permissions::from_mode(0o444)).expect("ours");
    let ran = carbyne(&["fmt", &path], "");
    if file.metadata().expect("there").uid() == 0 {
        // root may write to every file.
        assert_eq!(std::fs::read_to_string(&file).expect("readable"), FORMATTED);
    } else {
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        assert_eq!(std::fs::read_to_string(&file).expect("readable"), UNFORMATTED);
    }
    assert_eq!(file.metadata().expect("there").mode() & 0o777, 0o444);
}

#[test]
fn links_are_followed() {
    let folder = scratch("outputs_links");
    std::fs::create_dir(folder.join("there")).expect("writable");
    let file = folder.join("there/a.cby");
    std::fs::write(&file, UNFORMATTED).expect("writable");
    symlink("there/a.cby", folder.join("first")).expect("writable");
    symlink(folder.join("first"), folder.join("second")).expect("writable");
    symlink("there/new.cby", folder.join("dangling")).expect("writable");
    symlink("loop", folder.join("loop")).expect("writable");
    let path = |name: &str| folder.join(name).display().to_string();
    carbyne(&["fmt", &path("second")], "").ok();
    assert_eq!(std::fs::read_to_string(&file).expect("readable"), FORMATTED);
    carbyne(&["fmt", &path("second"), "-o", &path("dangling")], "").ok();
    assert_eq!(std::fs::read_to_string(folder.join("there/new.cby")).expect("made"), FORMATTED);
    for link in ["first", "second", "dangling"] {
        assert!(folder.join(link).symlink_metadata().expect("there").is_symlink(), "{link}");
    }
    assert_eq!(carbyne(&["fmt", "-", "-o", &path("loop")], FORMATTED).code, 2);
    assert_eq!(names(&folder.join("there")), ["a.cby", "new.cby"]);
}

#[test]
fn streams_and_devices_are_written_as_they_are() {
    let folder = scratch("outputs_streams");
    std::fs::write(folder.join("a.cby"), UNFORMATTED).expect("writable");
    let piped = shell("$C fmt a.cby -o /dev/stdout | cat", &folder);
    assert_eq!(String::from_utf8_lossy(&piped.stdout), FORMATTED);
    // The shell continues to write to the opened file.
    let ran = shell("{ $C fmt a.cby -o /dev/stdout; echo end >&2; } > out 2>> out", &folder);
    assert!(ran.status.success());
    let text = std::fs::read_to_string(folder.join("out")).expect("made");
    assert_eq!(text, format!("{FORMATTED}end\n"));
    let ran = shell("mkfifo pipe; cat pipe > got & $C fmt a.cby -o pipe; wait", &folder);
    assert!(ran.status.success());
    assert_eq!(std::fs::read_to_string(folder.join("got")).expect("made"), FORMATTED);
    assert!(folder.join("pipe").metadata().expect("there").file_type().is_fifo());
    assert!(shell("$C fmt a.cby -o /dev/null", &folder).status.success());
    assert!(Path::new("/dev/null").metadata().expect("there").file_type().is_char_device());
    for (to, why) in
        [(".", "it is a directory"), ("new/", "it is a directory"), ("no/a", "no such")]
    {
        let ran = shell(&format!("$C fmt a.cby -o {to}"), &folder);
        assert_eq!(ran.status.code(), Some(2));
        let said = String::from_utf8_lossy(&ran.stderr);
        assert!(said.contains("cannot be written") && said.contains(why), "{to}: {said}");
    }
    assert_eq!(names(&folder), ["a.cby", "got", "out", "pipe"]);
}
