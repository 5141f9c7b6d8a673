//! Tests that the files of a crate do not import each other in a circle, so that each can be read
//! after the files that it imports. `PARENTS` lists the exceptions. Items that two files need
//! belong in a third file that imports neither. A second test checks that folders of `decompose`
//! import only from lower ones.

mod imports;

use imports::{Imports, imports};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Files that import items of their child modules while the children import the file, sorted, with
/// reasons. Imports of such a file by files in its folder are not counted.
const PARENTS: &[(&str, &str)] = &[
    ("ir/src/ast.rs", "statements hold short forms, and short forms hold statements"),
    (
        "ir/src/resolve/mod.rs",
        "the resolver holds what its parts keep, and the parts are its methods",
    ),
    (
        "simulate/src/exec/mod.rs",
        "the runner holds what its parts keep, and the parts are its methods",
    ),
    ("simulate/src/state/mod.rs", "a block holds mbarriers and arrays, which look at the block"),
    (
        "testkit/src/gate/render.rs",
        "the writer holds what its parts keep, and the parts are its methods",
    ),
];

/// The folders of `decompose/src` in floors, the lowest first. A file imports files of its own
/// folder and of lower floors, and those beside the folders. Folders of one floor do not know each
/// other.
const FLOORS: &[&[&str]] = &[
    &["access"],
    &["certify"],
    &["cost"],
    &["plan"],
    &["layouts", "lower", "order", "schedule"],
    &["tricks"],
    &["emit"],
    &["strategies"],
    &["driver"],
    &["explain"],
];

/// The groups of files in which each file imports every other, directly or indirectly.
fn circles(imports: &Imports) -> Vec<BTreeSet<&str>> {
    let mut next = BTreeMap::<&str, Vec<&str>>::new();
    for (from, to) in imports.keys() {
        next.entry(from).or_default().push(to);
    }
    let reached = |from: &str| {
        let (mut seen, mut open) = (BTreeSet::new(), next.get(from).cloned().unwrap_or_default());
        while let Some(file) = open.pop() {
            if seen.insert(file) {
                open.extend(next.get(file).into_iter().flatten());
            }
        }
        seen
    };
    let all: BTreeMap<_, _> = next.keys().map(|file| (*file, reached(file))).collect();
    let around = |file: &str| -> BTreeSet<&str> {
        all[file]
            .iter()
            .filter(|f| all.get(**f).is_some_and(|r| r.contains(file)))
            .copied()
            .collect()
    };
    let groups: BTreeSet<_> = next.keys().map(|file| around(file)).collect();
    groups.into_iter().filter(|group| !group.is_empty()).collect()
}

/// One line for each import within a circle.
fn lines(circle: &BTreeSet<&str>, imports: &Imports) -> String {
    let mut text = format!("{} files import each other in a circle:\n", circle.len());
    for ((from, to), names) in imports {
        if circle.contains(from.as_str()) && circle.contains(to.as_str()) {
            let names = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            text += &format!("  {from} -> {to}: {names}\n");
        }
    }
    text
}

/// The root files of the crates of a workspace.
fn roots(workspace: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(workspace).unwrap().map(|e| e.unwrap().path());
    let sources = folders.filter(|f| f.join("Cargo.toml").is_file()).map(|f| f.join("src"));
    let mut roots: Vec<_> = sources
        .flat_map(|s| [s.join("lib.rs"), s.join("main.rs")])
        .filter(|f| f.is_file())
        .collect();
    roots.sort();
    roots
}

/// Whether a file is in the folder of the parent's children.
fn is_child(file: &str, parent: &str) -> bool {
    let of_folder = ["mod.rs", "lib.rs", "main.rs"].iter().find_map(|n| parent.strip_suffix(n));
    match of_folder {
        Some(folder) => file.starts_with(folder) && file != parent,
        None => parent
            .strip_suffix(".rs")
            .is_some_and(|stem| file.strip_prefix(stem).is_some_and(|rest| rest.starts_with('/'))),
    }
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let shown = |file: &Path| {
        let inside = file.strip_prefix(workspace).unwrap_or(file);
        inside.display().to_string().replace('\\', "/")
    };
    let roots = roots(workspace);
    assert!(roots.len() > 10, "{roots:?}");
    let parents: BTreeSet<&str> = PARENTS.iter().map(|(file, _)| *file).collect();
    let mut unneeded_parents = parents.clone();
    let mut found = vec![];
    for root in roots {
        let all = imports(&root, &shown).unwrap();
        for circle in circles(&all) {
            for (from, to) in all.keys().filter(|(from, to)| is_child(from, to)) {
                if circle.contains(from.as_str()) && circle.contains(to.as_str()) {
                    unneeded_parents.remove(to.as_str());
                }
            }
        }
        let mut counted = all;
        counted.retain(|(from, to), _| !(parents.contains(to.as_str()) && is_child(from, to)));
        for circle in circles(&counted) {
            found.push(lines(&circle, &counted));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(unneeded_parents.is_empty(), "no exceptions anymore: {unneeded_parents:#?}");
}

/// The floor of a file of `decompose`: 0 beside the folders, and `None` for the root of the crate.
fn floor(file: &str) -> Option<usize> {
    match file.split_once('/') {
        None if file == "lib.rs" => None,
        None => Some(0),
        Some((folder, _)) => {
            let floor = FLOORS.iter().position(|floor| floor.contains(&folder));
            Some(1 + floor.unwrap_or_else(|| panic!("the folder `{folder}` has no floor")))
        }
    }
}

#[test]
fn files_of_decompose_import_from_lower_floors() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let sources = workspace.join("decompose/src");
    let shown =
        |file: &Path| file.strip_prefix(&sources).unwrap().display().to_string().replace('\\', "/");
    let all = imports(&sources.join("lib.rs"), &shown).unwrap();
    assert!(all.len() > 300, "{}", all.len());
    let is_down = |from: &str, to: &str| {
        let is_same = from.split_once('/').map(|f| f.0) == to.split_once('/').map(|f| f.0);
        floor(from).is_none_or(|from| is_same || floor(to).is_some_and(|to| to < from))
    };
    let up = all.iter().filter(|((from, to), _)| !is_down(from, to));
    let up: Vec<String> =
        up.map(|((from, to), names)| format!("{from} -> {to}: {names:?}")).collect();
    assert!(up.is_empty(), "imports upward or across:\n{}", up.join("\n"));
}

#[test]
fn exceptions_are_sorted() {
    assert!(PARENTS.is_sorted());
}

/// The circles of a crate with these files.
fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let file = folder.path().join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let shown = |file: &Path| file.strip_prefix(folder.path()).unwrap().display().to_string();
    let imports = imports(&folder.path().join("lib.rs"), &shown).unwrap();
    circles(&imports).iter().map(|c| lines(c, &imports)).collect()
}

#[test]
fn files_that_import_down_are_no_circle() {
    let found = circles_of(&[
        ("lib.rs", "mod a; mod b; mod low; pub use a::A;"),
        ("a.rs", "use crate::b; use crate::low::Low; pub struct A(Low, b::B);"),
        ("b.rs", "pub(crate) struct B(super::low::Low);"),
        (
            "low.rs",
            "//! For `crate::a::A`.\npub struct Low;\n\
             #[cfg(test)] mod tests { use crate::a::A; fn f(_: A) {} }",
        ),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn a_parent_hands_names_on_without_a_circle() {
    let found = circles_of(&[
        ("lib.rs", "mod parent;"),
        ("parent/mod.rs", "mod a; mod b; pub(crate) use a::A; pub(crate) struct P;"),
        ("parent/a.rs", "use super::P; pub(crate) struct A(P);"),
        ("parent/b.rs", "pub(crate) struct B(crate::parent::A);"),
    ]);
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn circles_are_found() {
    let circle = |text: &str| {
        circles_of(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", text),
            ("b.rs", "use super::a::A; pub(crate) struct B(A); pub(crate) fn f() {}"),
        ])
    };
    for text in [
        "use crate::b::{self, B}; pub(crate) struct A;",
        "pub(crate) struct A(Option<super::b::B>);",
        "pub(crate) use crate::b::B; pub(crate) struct A(B);",
        "use crate::b::*; pub(crate) struct A(B);",
        "pub(crate) struct A; fn g() { use crate::b::f as h; h() }",
        "pub(crate) struct A; fn g() { drop(vec![(1, crate::b::f())]) }",
        "use super::b; pub(crate) struct A; mod within { fn g() { super::b::f() } }",
    ] {
        assert_eq!(circle(text).len(), 1, "{text}");
    }
    assert_eq!(
        circle("use crate::b::{B, f}; pub(crate) struct A;"),
        ["2 files import each other in a circle:\n  a.rs -> b.rs: B, f\n  b.rs -> a.rs: A\n"]
    );
}

#[test]
fn a_child_that_needs_its_parent_closes_a_circle() {
    let found = circles_of(&[
        ("lib.rs", "mod parent;"),
        ("parent.rs", "mod child; use child::C; pub(crate) struct P(C);"),
        ("parent/child.rs", "use super::*; pub(crate) struct C(Box<P>);"),
    ]);
    assert_eq!(found.len(), 1);
}
