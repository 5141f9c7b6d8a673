//! Tests `decompose --annotate` and `check --annotate`, which add a comment to each synchronization
//! statement that names the accesses ordered by it.

use crate::support::{carbyne, made, root, texts_under};
use carbyne_ir::ast::{Module, Stmt, StmtKind, SyncOp};
use carbyne_ir::text;
use std::path::PathBuf;

/// The text without the comments.
fn stripped(annotated: &str) -> String {
    let line = |l: &str| format!("{}\n", l.split(" // orders").next().unwrap_or(""));
    annotated.lines().map(line).collect()
}

/// Synchronization statements without a comment.
fn silent(module: &Module) -> Vec<String> {
    let mut out = vec![];
    let mut lists: Vec<&[Stmt]> = vec![&module.items];
    while let Some(list) = lists.pop() {
        for stmt in list {
            let is = match &stmt.kind {
                StmtKind::Barrier(_) => true,
                StmtKind::Sync { op, .. } => {
                    !matches!(op, SyncOp::Prefetch | SyncOp::RegistersInc | SyncOp::RegistersDec)
                }
                _ => false,
            };
            if is && !stmt.trailing.as_deref().is_some_and(carbyne_remedy::is_comment) {
                out.push(format!("{:?}", stmt.kind));
            }
            lists.extend(stmt.kind.bodies().map(|b| b.stmts.as_slice()));
        }
    }
    out
}

/// Texts to decompose, with their architectures.
fn cases() -> Vec<(PathBuf, &'static str)> {
    let mut files = texts_under(&root().join("examples/tile"));
    files.extend(["gemm.cby", "gemm_roles.cby"].map(|f| root().join("examples").join(f)));
    let archs = |file: PathBuf| {
        let src = std::fs::read_to_string(&file).unwrap();
        let line = src.lines().find_map(|l| l.trim().strip_prefix("// archs:"));
        let of = line.unwrap_or("").to_owned();
        let wanted = ["sm_80", "sm_90a"].into_iter();
        let named = wanted.filter(move |a| of.split_whitespace().any(|n| n == *a));
        named.map(|a| (file.clone(), a)).collect::<Vec<_>>()
    };
    files.into_iter().flat_map(archs).collect()
}

#[test]
fn what_was_derived_says_what_it_orders() {
    let all = cases();
    assert!(all.len() > 70, "{} texts", all.len());
    let mut said = 0;
    for (file, arch) in all {
        let path = file.display().to_string();
        let plain = made(&file, "decompose", arch).unwrap();
        let ran = carbyne(&["decompose", &path, "--arch", arch, "--annotate"], "").ok();
        let annotated = ran.text();
        assert_eq!(stripped(annotated), plain.text(), "{path} for {arch}");
        let module = text::parse(annotated).unwrap();
        assert_eq!(silent(&module), Vec::<String>::new(), "{path} for {arch}:\n{annotated}");
        said += annotated.matches(" // orders: ").count();
        // The comments keep the canonical form and are not part of the program.
        assert_eq!(text::print(&module), annotated, "{path} for {arch}");
        assert_eq!(text::print(&text::parse(&stripped(annotated)).unwrap()), plain.text());
        if annotated != plain.text() {
            carbyne(&["check", "-", "--arch", arch], annotated).ok();
        }
    }
    assert!(said > 150, "{said} comments");
}

#[test]
fn json_has_no_comments() {
    let path = root().join("examples/gemm_roles.cby").display().to_string();
    let args = ["decompose", &path, "--arch", "sm_80", "--emit", "json"];
    let with = [args.as_slice(), &["--annotate"]].concat();
    assert_eq!(carbyne(&args, "").ok().text(), carbyne(&with, "").ok().text());
}

/// A hand-written ring of two stages with one barrier too many.
const BY_HAND: &str = "carbyne 2
%in:[8,64].f32.GL
%out:[8,64].f32.GL
Spec @ring <<<#grid:[1], #cta:[@t < 64]>>> (%in) -> (%out) {
  #one = #cta.scalar()
  Allocate %s:[2].[64].f32.SH
  Allocate %x:[1].f32.RF
  for (k = 0; k < 8; k += 1) {
    Move <<<#one>>> (%in[k, @t]) -> (%s[k % 2][@t]) atom=cp.async.ca.b32
    async.commit
    async.wait(0) // ok
    barrier(
        #cta)
    barrier   // once more // orders nothing that is proved
    Move <<<#one>>> (%s[k % 2][63 - @t]) -> (%x[0]) atom=ld.shared.b32
    Move <<<#one>>> (%x[0]) -> (%out[k, @t]) atom=st.global.b32
  }
}
";

#[test]
fn texts_by_hand_keep_their_comments() {
    let ran = carbyne(&["check", "-", "--annotate"], BY_HAND).ok();
    let of_the_loop = |l| str::strip_prefix(l, "    ").unwrap_or(l);
    let lines: Vec<&str> = ran.text().lines().skip(8).take(7).map(of_the_loop).collect();
    expect_test::expect![[r#"
        Move <<<#one>>> (%in[k, @t]) -> (%s[k % 2][@t]) atom=cp.async.ca.b32
        async.commit // orders: what line 9 copies to %s, before line 15 reads it; and 2 more
        async.wait(0) // ok // orders: what line 9 copies to %s, before line 15 reads it; and 2 more
        barrier(
            #cta) // orders: what line 9 copies to %s, before line 15 reads it; and 1 more
        barrier   // once more // orders nothing that is proved
        Move <<<#one>>> (%s[k % 2][63 - @t]) -> (%x[0]) atom=ld.shared.b32"#]]
    .assert_eq(&lines.join("\n"));
    assert_eq!(ran.stderr, "");
    assert_eq!(ran.text().lines().count(), BY_HAND.lines().count());
    let again = carbyne(&["check", "-", "--annotate"], ran.text()).ok();
    assert_eq!(again.text(), ran.text());
}

#[test]
fn what_is_not_ordered_is_printed_and_refused() {
    let text =
        BY_HAND.replace("    barrier(\n        #cta)\n", "").replace("    barrier ", "    // ");
    let ran = carbyne(&["check", "-", "--annotate"], &text);
    assert_eq!(ran.code, 1, "{}", ran.text());
    assert!(ran.stderr.contains("T0801"), "{}", ran.stderr);
    assert!(
        ran.text().contains("async.commit // orders: what line 9 copies to %s"),
        "{}",
        ran.text()
    );
}

#[test]
fn what_says_not_who_accesses_what_stays_as_it_is() {
    let text = "carbyne 2
%A:[64,64].f16.GL
%B:[64,64].f16.GL
Move @copy <<<#grid:[1], #cta:[64]>>> (%A) -> (%B) {
  Move (%A) -> (%s:SH)
  barrier
  Move (%s) -> (%B)
}
";
    let ran = carbyne(&["check", "-", "--annotate"], text).ok();
    assert_eq!(
        (ran.text(), ran.stderr.as_str()),
        (
            text,
            "copy: the order of accesses is not checked, because the kernel has open specs; \
             `carbyne decompose` checks it\n"
        )
    );
}
