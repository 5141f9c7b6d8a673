//! Tests imports on the command line: which files a text may import, and the expansion of imported
//! sub-specs (`def`: named statements that replace each use of the name).

use crate::support::{carbyne, scratch};
use std::path::{Path, PathBuf};

const PARTS: &str = "carbyne 2\nlet FACTOR = 2.5\n\
                     def @scale[N] (%x:[1,N].f32) -> (%y:[1,N].f32) {\n  \
    %y = %x * FACTOR\n}\n";

fn kernel(import: &str) -> String {
    format!(
        "carbyne 2\n// Sub-specs.\nimport \"{import}\"\n%A:[8,64].f32.GL\n%B:[8,64].f32.GL\n\n\
         Spec @k <<<#grid:[@i < 8], #cta:[32]>>> (%A) -> (%B) {{\n  \
         %a:RF = move(%A.tile([1,64])[@i, 0])\n  @scale[64] (%a) -> (%b)\n  \
         %B.tile([1,64])[@i, 0] = move(%b)\n}}\n"
    )
}

/// A folder with `here/main.cby`, and the sub-specs in `here/parts` and in `there`.
fn files(name: &str, import: &str) -> PathBuf {
    let folder = scratch(name);
    for (path, text) in [
        ("here/main.cby", kernel(import).as_str()),
        ("here/parts/scale.cby", PARTS),
        ("there/scale.cby", PARTS),
    ] {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn folders_are_allowed_by_name() {
    let folder = files("imports_allowed", "../there/scale.cby");
    let (main, there) = (shown(&folder.join("here/main.cby")), shown(&folder.join("there")));
    let refused = carbyne(&["check", &main], "");
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("--allow-import"), "{}", refused.stderr);
    carbyne(&["check", &main, "--allow-import", &there], "").ok();
    // Allowing another folder has no effect.
    let other = shown(&folder.join("here/parts"));
    assert_eq!(carbyne(&["check", &main, "--allow-import", &other], "").code, 1);
}

#[cfg(unix)]
#[test]
fn links_lead_nowhere_else() {
    let folder = files("imports_links", "link.cby");
    std::os::unix::fs::symlink(folder.join("there/scale.cby"), folder.join("here/link.cby"))
        .unwrap();
    let main = shown(&folder.join("here/main.cby"));
    let refused = carbyne(&["check", &main], "");
    assert!(refused.stderr.contains("outside of the folder"), "{}", refused.stderr);
    let there = shown(&folder.join("there"));
    carbyne(&["check", &main, "--allow-import", &there], "").ok();
}

#[test]
fn what_is_written_out_computes_the_same() {
    let folder = files("imports_expanded", "parts/scale.cby");
    let main = shown(&folder.join("here/main.cby"));
    // `fmt` keeps the import, `fmt --expand` inserts the sub-specs.
    let kept = carbyne(&["fmt", &main, "-o", "-"], "").ok();
    assert_eq!(kept.text(), kernel("parts/scale.cby"));
    let once = carbyne(&["fmt", "--expand", &main, "-o", "-"], "").ok();
    let text = once.text();
    for gone in ["import", "@scale", "#grid:[@i", " = move("] {
        assert!(!text.contains(gone), "`{gone}` in\n{text}");
    }
    assert!(text.contains("// Sub-specs.\n") && text.contains("(%a, 2.5) -> (%b)"), "{text}");
    let expanded = shown(&folder.join("expanded.cby"));
    std::fs::write(&expanded, text).unwrap();
    assert_eq!(carbyne(&["fmt", "--expand", &expanded, "-o", "-"], "").ok().text(), text);
    // Both compute equal results from equal inputs, also after decomposition.
    let runs = [(&main, &["--blocks", "all"][..]), (&expanded, &["--blocks", "all"])];
    let decomposed = [(&main, &["--blocks", "all", "--arch", "sm_80"][..])];
    let arrays: Vec<Vec<u8>> = runs
        .iter()
        .chain(&decomposed)
        .enumerate()
        .map(|(i, (file, args))| {
            let out = folder.join(format!("{i}.npy"));
            let to = format!("B={}", out.display());
            let args = [&["simulate", file.as_str()], *args, &["--out", &to]].concat();
            carbyne(&args, "").ok();
            std::fs::read(out).unwrap()
        })
        .collect();
    assert!(arrays[0].len() > 8 * 64 * 4);
    assert!(arrays[0] == arrays[1] && arrays[0] == arrays[2]);
}
