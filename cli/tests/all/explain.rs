//! Tests `carbyne explain FILE`: in the examples, it has an answer for every leaf with an atom (a
//! normal run takes a random half of the examples). Other tests check the answers to questions,
//! such as why an instruction was not chosen, or which fact makes a copy wider. Also tests options
//! of `decompose` that concern choices, such as `--forbid` and `--top`.

use crate::support::{carbyne, none, root, shown, texts_under};
use carbyne_ir::testing;
use serde_json::Value;

/// A copy by the whole block, which several instructions implement.
const COPY: &str = "carbyne 2\n%A:[512,512].f16.GL\n%B:[512,512].f16.GL\nMove @m (%A) -> (%B)\n";

fn explained(file: &str, arch: &str, more: &[&str]) -> Value {
    let mut args = vec!["explain", file, "--arch", arch, "--format", "json"];
    args.extend(more);
    let ran = carbyne(&args, COPY).ok();
    serde_json::from_str(ran.text()).unwrap_or_else(|e| panic!("{file}: {e}"))
}

/// The error of the answer for one file, if any.
fn wrong(file: &str, arch: &str) -> Option<String> {
    let answer = explained(file, arch, &[]);
    let list = |v: &Value| v.as_array().cloned().unwrap_or_default();
    let leaves = list(&answer["leaves"]);
    let Some(text) = answer["decomposed"].as_str() else {
        let refused = list(&answer["refused"]);
        return refused.is_empty().then(|| "neither decomposed nor refused".to_owned());
    };
    let named = text.matches(" atom=").count();
    if leaves.len() != named {
        return Some(format!("{} of {named} leaves are answered", leaves.len()));
    }
    leaves.iter().find_map(|leaf| {
        let rows = list(&leaf["considered"]);
        let own = rows.iter().find(|r| r["atom"] == leaf["atom"]);
        let said = rows.iter().all(|r| r["matches"] == true || r["mismatch"].is_string());
        let fine = said && own.is_some_and(|r| r["matches"] == true);
        (!fine).then(|| format!("line {}: {}", leaf["line"], leaf["spec"]))
    })
}

#[test]
fn every_leaf_of_every_example_is_answered() {
    let mut failures = vec![];
    for file in texts_under(&root().join("examples")) {
        if !testing::one_in(2, &shown(&file)) {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("readable");
        let archs = text.lines().find_map(|l| l.strip_prefix("// archs:")).unwrap_or_default();
        let archs: Vec<&str> = archs.split_whitespace().collect();
        for arch in testing::one_of(&shown(&file), &archs) {
            let path = file.display().to_string();
            failures.extend(
                wrong(&path, arch).map(|why| format!("{} for {arch}: {why}", shown(&file))),
            );
        }
    }
    none(failures);
}

#[test]
fn a_line_and_a_pattern_narrow_the_answer() {
    let all = explained("-", "sm_80", &[]);
    let one = explained("-", "sm_80", &["--at", "4", "--why", "ld.global.b32"]);
    let count = |v: &Value| v["leaves"].as_array().map_or(0, Vec::len);
    assert!(count(&one) > 0 && count(&one) <= count(&all));
    let rows = &one["leaves"][0]["considered"];
    assert_eq!(rows.as_array().map(Vec::len), Some(1), "{rows}");
    let none = carbyne(&["explain", "-", "--arch", "sm_80", "--at", "2"], COPY);
    assert_eq!(none.code, 2, "{}", none.stderr);
}

#[test]
fn why_not_says_which_architectures_have_it() {
    let ran = carbyne(&["explain", "-", "--arch", "sm_80", "--why", "wgmma"], COPY);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("sm_90a"), "{}", ran.stderr);
}

#[test]
fn a_program_without_architecture_asks_for_one() {
    let file = root().join("examples/gemm.cby").display().to_string();
    let ran = carbyne(&["explain", &file], "");
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("--arch"), "{}", ran.stderr);
}

#[test]
fn forbidden_instructions_are_not_taken() {
    let free = carbyne(&["decompose", "-", "--arch", "sm_80"], COPY).ok();
    let atom = free.text().split("atom=ld").nth(1).expect("a load").split_whitespace().next();
    let atom = format!("ld{}", atom.expect("a name"));
    let args = ["decompose", "-", "--arch", "sm_80", "--forbid", atom.as_str()];
    let without = carbyne(&args, COPY).ok();
    assert!(!without.text().contains(&format!("atom={atom}\n")), "{}", without.text());
    let all = carbyne(&["decompose", "-", "--arch", "sm_80", "--forbid", "ld.global.*"], COPY);
    assert_eq!(all.code, 1, "{}", all.stderr);
    assert!(all.stderr.contains("leave out `--forbid ld.global.*`"), "{}", all.stderr);
    let unknown = carbyne(&["decompose", "-", "--arch", "sm_80", "--forbid", "ld.globl.b32"], COPY);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("V0225") && unknown.stderr.contains("`ld.global.b32`"));
}

#[test]
fn the_best_solutions_are_listed() {
    let args = ["decompose", "-", "--arch", "sm_80", "--top", "3", "--exhaustive"];
    let ran = carbyne(&args, COPY).ok();
    assert!(
        ran.stderr.contains("solutions costed") && ran.stderr.contains("\n3: "),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("instead of"), "{}", ran.stderr);
    // The note explains the numbers, and why the first solution may have more cycles.
    for words in ["fills the GPU", "`--estimate`", "2 % count as equal", "`xN`", "`of N`"] {
        assert!(ran.stderr.contains(words), "{words}: {}", ran.stderr);
    }
    let quiet = carbyne(&["decompose", "-", "--arch", "sm_80"], COPY).ok();
    assert_eq!(quiet.stderr, "");
    assert!(
        carbyne(&["decompose", "-", "--arch", "sm_80", "--stats"], COPY).stderr.contains("pruned")
    );
}

#[test]
fn estimates_are_said_by_resource() {
    let args = ["decompose", "-", "--arch", "sm_80", "--estimate"];
    let said = carbyne(&args, COPY).ok().stderr;
    for words in ["A100", "108 multiprocessors", "waves", "device memory", "share"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let one = carbyne(&[&args[..], &["--sms", "1"]].concat(), COPY).ok().stderr;
    assert!(one.contains("with 1 multiprocessors"), "{one}");
    let json = [&args[..], &["--message-format", "json"]].concat();
    let said = carbyne(&json, COPY).ok().stderr;
    let report: serde_json::Value = serde_json::from_str(&said).expect("one object");
    let estimate = &report["estimates"][0];
    assert_eq!(estimate["resources"].as_array().map(Vec::len), Some(8));
    assert!(estimate["cycles"].as_f64() > Some(0.0), "{estimate}");
    assert_eq!(carbyne(&[&args[..], &["--sms", "0"]].concat(), COPY).code, 2);
}

/// A product with a small result. Blocks share its K.
const SPLIT: &str = "carbyne 2\n%A:[128,16384].f16.GL\n%B:[16384,128].f16.GL\n%C:[128,128].f16.GL\n\
                     MatMul.set @g (%A, %B) -> (%C) acc=f32 by=@split_k\n";

#[test]
fn each_kernel_has_its_own_shared_memory() {
    let args = ["decompose", "-", "--arch", "sm_80", "--estimate", "--message-format", "json"];
    let said = carbyne(&args, SPLIT).ok().stderr;
    let report: serde_json::Value = serde_json::from_str(&said).expect("one object");
    let all = report["estimates"].as_array().cloned().unwrap_or_default();
    let of = |name: &str, key: &str| {
        let one = all.iter().find(|e| e["kernel"] == name);
        one.unwrap_or_else(|| panic!("no {name}: {report}"))[key].as_i64().expect("a number")
    };
    assert!(of("g_partial", "shared_bytes") > 0, "{report}");
    for other in ["g_zero", "g_rest"] {
        assert_eq!(of(other, "shared_bytes"), 0, "{other}: {report}");
        assert!(
            of(other, "blocks_per_multiprocessor") > of("g_partial", "blocks_per_multiprocessor"),
            "{other}: {report}"
        );
    }
}

fn product(k: usize) -> String {
    format!(
        "carbyne 2\n%A:[256,{k}].f16.GL\n%B:[{k},256].f16.GL\n%C:[256,256].f16.GL\n\
         Spec @g (%A, %B) -> (%C) means {{\n  %C = exp(matmul(%A, %B))\n}}\n"
    )
}

#[test]
fn a_strategy_that_has_the_instruction_is_named_and_its_pin_takes_it() {
    let src = product(256);
    let args = ["explain", "-", "--arch", "sm_90a", "--why", "wgmma", "--format", "json"];
    let answer: Value = serde_json::from_str(carbyne(&args, &src).ok().text()).expect("an object");
    let way = &answer["ways"][0];
    assert!(way["by"].as_str().is_some_and(|by| by.starts_with("@wgmma_")), "{answer}");
    assert!(way["cycles"].as_f64() >= way["chosen_cycles"].as_f64(), "{way}");
    let edit = &way["fix"]["edits"][0];
    let at = usize::try_from(edit["byte_start"].as_u64().expect("a place")).expect("small");
    let mut fixed = src.clone();
    fixed.insert_str(at, edit["text"].as_str().expect("a text"));
    let decomposed = carbyne(&["decompose", "-", "--arch", "sm_90a"], &fixed).ok();
    assert!(decomposed.text().contains("atom=wgmma."), "{fixed}");
    // As text. No help says that a change of the text is impossible.
    let said = carbyne(&args[..6], &src).ok();
    assert!(said.text().contains("to use the other, write `by=@wgmma_ring`"), "{}", said.text());
    assert!(!said.text().contains("makes decompose choose it"), "{}", said.text());
    // The chosen strategy needs no other pin.
    let answer = carbyne(&args, &fixed).ok();
    let answer: Value = serde_json::from_str(answer.text()).expect("an object");
    assert_eq!(answer["ways"].as_array().map(Vec::len), Some(0), "{answer}");
}

#[test]
fn a_strategy_that_could_have_the_instruction_says_why_it_has_not() {
    let said = carbyne(&["explain", "-", "--arch", "sm_90a", "--why", "wgmma"], product(272)).ok();
    let words = "no @wgmma_split_k, which may use it: no values of its parameters \
                 satisfy `K % (1024 / E * SPLIT) == 0`; here K = 320";
    assert!(said.text().contains(words), "{}", said.text());
}

#[test]
fn a_budget_that_is_too_small_is_said() {
    let file = root().join("examples/tile/gemm_staged.cby").display().to_string();
    let ran = carbyne(&["decompose", &file, "--arch", "sm_80", "--budget", "1"], "");
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("D0309"), "{}", ran.stderr);
}

/// The byte ranges of the strides of the thread-value layout on a line, if any.
fn strides(line: &str) -> Option<Vec<(usize, usize)>> {
    let start = [line.find("tv=("), line.find(".tv((")].into_iter().flatten().min()?;
    let from = start + line[start..].find("):(").map(|i| i + 2)?;
    let to = from + line[from..].find(" over")?;
    let mut out: Vec<(usize, usize)> = vec![];
    for (i, c) in line[from..to].char_indices().filter(|(_, c)| c.is_ascii_digit()) {
        match out.last_mut() {
            Some(last) if last.1 == from + i => last.1 += c.len_utf8(),
            _ => out.push((from + i, from + i + 1)),
        }
    }
    Some(out)
}

#[test]
fn check_refuses_every_exchange_of_two_strides() {
    let mut tried = 0;
    let mut failures = vec![];
    for name in ["hexcute_fig15_gemm", "transpose", "copy_row_b16_shared"] {
        let file = root().join(format!("examples/tile/{name}.cby")).display().to_string();
        let ran = carbyne(&["decompose", &file, "--arch", "sm_80"], "").ok();
        let text = ran.text();
        for line in text.lines() {
            let Some(places) = strides(line) else { continue };
            let pairs = (0..places.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
            for (i, j) in pairs {
                let ((a, b), (c, d)) = (places[i], places[j]);
                if line[a..b] == line[c..d] {
                    continue;
                }
                let (one, other) = (&line[a..b], &line[c..d]);
                let wrong = format!("{}{other}{}{one}{}", &line[..a], &line[b..c], &line[d..]);
                tried += 1;
                if carbyne(&["check", "-"], text.replacen(line, &wrong, 1)).code != 1 {
                    failures.push(format!("{name}: {wrong}"));
                }
            }
        }
    }
    assert!(tried > 100, "{tried}");
    none(failures);
}

/// A question without an answer is an error that names the nearest line with an answer.
#[test]
fn nothing_to_explain() {
    let tensor = "carbyne 2\n%A:[8].f32.GL\n";
    for (text, more, message, help) in [
        (tensor, &[][..], "`<stdin>` has no specs", "add a spec"),
        (tensor, &["--at", "2"], "`<stdin>` has no specs", "add a spec"),
        (tensor, &["--why", "mma*"], "`<stdin>` has no specs", "add a spec"),
        (COPY, &["--at", "2"], "no spec begins on line 2", "--at 4"),
        (COPY, &["--at", "9", "--why", "mma*"], "no spec begins on line 9", "--at 4"),
        (COPY, &["--at", "4", "--why", "nothing*"], "named `nothing*`", "carbyne atoms"),
    ] {
        let mut args = vec!["explain", "-", "--arch", "sm_80"];
        args.extend(more);
        let ran = carbyne(&args, text);
        assert_eq!(ran.code, 2, "{more:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(message) && ran.stderr.contains(help), "{}", ran.stderr);
    }
}

/// A spec with a body has no answer. The error names a line that has an answer.
#[test]
fn the_line_that_is_named_is_that_of_a_leaf() {
    let text = carbyne(&["decompose", "-", "--arch", "sm_80"], COPY);
    let text = text.ok().text().to_owned();
    let body = |l: &str| l.trim_start().starts_with("Move (") && l.ends_with('{');
    let line = text.lines().position(body).expect("a Move with a body") + 1;
    let asked = |at: &str| carbyne(&["explain", "-", "--arch", "sm_80", "--at", at], text.clone());
    let ran = asked(&line.to_string());
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let message = format!("the spec on line {line} has a body, and no instruction of its own");
    assert!(ran.stderr.contains(&message), "{}", ran.stderr);
    let named = ran.stderr.split("`--at ").nth(1).and_then(|s| s.split('`').next());
    let ran = asked(named.expect("a line"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

/// A pattern matches eight hundred instructions. The answer has one line for instructions that
/// differ in a number, the nearest first, and gives the reason, not a change without effect.
#[test]
fn why_not_wgmma_is_said_in_a_page() {
    let gemm = std::fs::read_to_string(root().join("examples/gemm.cby")).expect("an example");
    let gemm = gemm.replace("acc=f32", "acc=f32 by=@ring");
    let ran = carbyne(&["explain", "-", "--arch", "sm_90a", "--why", "wgmma*"], &gemm).ok();
    let text = ran.text();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() < 60, "{} lines", lines.len());
    assert!(lines.iter().skip(1).all(|l| l.len() < 170), "{text}");
    assert!(lines[1].contains("loads both factors to registers"), "{text}");
    assert_eq!(lines[2].trim(), "wgmma.m64nNk16.f32.f16.ss, N = 8, 16 to 256");
    assert!(text.contains("a multiple of 128 threads") && !text.contains("to SH first"), "{text}");
    // A hand-written leaf can be changed.
    let by_hand = "carbyne 2
%A:[64,16].f16.GL
#grid:[1].block
#cta:[128].thread
Spec @f <<<#grid, #cta>>> (%A) -> (%A) {
  Allocate %a:[64,16].f16.SH{swizzle=(1,4,3)}
  Allocate %b:[16].f16.RF
  Allocate %c:[4].f32.RF
  MatMul <<<#grid, #cta>>> (%a, %b) -> (%c)
}
";
    let why = ["explain", "-", "--arch", "sm_90a", "--why", "wgmma.m64n8k16.f32.f16.ss"];
    let ran = carbyne(&why, by_hand).ok();
    assert!(ran.text().contains("operand B must lie in SH, but lies in RF"), "{}", ran.text());
}

#[test]
fn what_decompose_warns_of_is_said() {
    let rows = "carbyne 2
%X:[4,1000].f32.GL
%Y:[4,1000].f32.GL
#grid:[4].block
#cta:[128].thread
Move @f <<<#grid, #cta>>> (%X) -> (%Y) {
  @i = #grid.indices()
  Allocate %x:[1,1000].f32.RF{?}
  Move <<<#grid, #cta>>> (%X.tile([1,1000])[@i, 0]) -> (%x)
  Move <<<#grid, #cta>>> (%x) -> (%Y.tile([1,1000])[@i, 0])
}
";
    let ran = carbyne(&["explain", "-", "--arch", "sm_80"], rows).ok();
    assert!(ran.text().starts_with("warning: D0310"), "{}", ran.text());
    let ran = carbyne(&["explain", "-", "--arch", "sm_80", "--format", "json"], rows).ok();
    let answer: Value = serde_json::from_str(ran.text()).expect("JSON");
    assert_eq!(answer["warnings"][0]["code"], "D0310");
    // The warning appears in all commands that decompose the program.
    for command in ["decompose", "compile", "simulate"] {
        let args = [command, "-", "--arch", "sm_80"];
        let human = carbyne(&args, rows).ok();
        assert!(human.stderr.contains("D0310") && human.stderr.contains('⚠'), "{}", human.stderr);
        let ran = carbyne(&[&args[..], &["--message-format", "json"]].concat(), rows).ok();
        assert_eq!(ran.warnings().len(), 1, "{command}: {}", ran.stderr);
    }
}

#[test]
fn a_search_that_ended_early_is_told_of() {
    let args = ["decompose", "-", "--arch", "sm_80", "--budget", "3", "--top", "2", "--stats"];
    let ran = carbyne(&args, COPY).ok();
    assert!(ran.stderr.contains("D0309"), "{}", ran.stderr);
    assert!(ran.stderr.contains("dead; stopped at the budget"), "{}", ran.stderr);
    let ran = carbyne(&[&args[..], &["--message-format", "json"]].concat(), COPY).ok();
    assert_eq!(ran.warnings()[0]["code"], "D0309");
    let report = ran.stderr.lines().last().expect("a report");
    let report: Value = serde_json::from_str(report).expect("JSON");
    assert_eq!(report["ended_at_budget"], true);
    assert!(report["solutions"].as_array().is_some_and(|s| s.len() == 2), "{report}");
    let complete = carbyne(&["decompose", "-", "--arch", "sm_80", "--stats"], COPY).ok();
    assert!(!complete.stderr.contains("budget"), "{}", complete.stderr);
}

/// Sizes that are known at launch, without facts that allow vectors.
const ANY: &str = "carbyne 2\nsym M, N where M > 0, M <= 8192, N > 0, N <= 8192\n\
                   %A:[M,N].f16.GL\n%B:[M,N].f16.GL\n\
                   Spec @f (%A) -> (%B) means {\n  %B = relu(%A)\n}\n";

#[test]
fn the_fact_with_which_a_copy_is_wider_is_named_and_makes_it_so() {
    let ran = carbyne(&["explain", "-", "--arch", "sm_90a"], ANY).ok();
    for row in ["ld.global.b128", "st.global.b128"] {
        let words = format!("with `where N % 8 == 0` this is a 16-byte copy, {row}");
        assert!(ran.text().contains(&words), "{}", ran.text());
    }
    assert!(ran.text().starts_with("line 5: with `where N % 8 == 0`: @"), "{}", ran.text());
    let stated = ANY.replace("N <= 8192", "N <= 8192, N % 8 == 0");
    for (src, wide) in [(ANY, false), (&stated, true)] {
        let said = carbyne(&["decompose", "-", "--arch", "sm_90a"], src).ok();
        assert_eq!(said.text().contains("atom=ld.global.b128"), wide, "{}", said.text());
    }
    // Known facts are not requested again.
    let ran = carbyne(&["explain", "-", "--arch", "sm_90a"], &stated).ok();
    assert!(!ran.text().contains("% 8 == 0"), "{}", ran.text());
    let answer = explained_text(ANY, "sm_90a");
    let wider = |c: &Value| c["wider"]["facts"] == serde_json::json!(["N % 8 == 0"]);
    assert_eq!(
        answer["choices"].as_array().map(|all| all.iter().filter(|c| wider(c)).count()),
        Some(2)
    );
    let faster = &answer["faster"][0];
    assert!(faster["cycles"].as_f64() < faster["instead_of_cycles"].as_f64(), "{faster}");
}

fn explained_text(src: &str, arch: &str) -> Value {
    let ran = carbyne(&["explain", "-", "--arch", arch, "--format", "json"], src).ok();
    serde_json::from_str(ran.text()).expect("an object")
}

#[test]
fn a_leaf_that_lacks_a_fact_names_it_as_its_fix() {
    let src = "carbyne 2\nsym N where N >= 256, N <= 4096\n%A:[8,N].f16.GL\n%B:[8,N].f16.GL\n\
               Spec @f <<<#grid:[@b < 8], #cta:[32]>>> (%A) -> (%B) {\n  @t = #cta.indices()\n  \
               Allocate %x:[8].f16.RF\n  Move <<<#cta.scalar()>>> (%A[@b, _].tile([8])[@t]) -> \
               (%x)\n  \
               Move <<<#cta.scalar()>>> (%x) -> (%B[@b, _].tile([8])[@t])\n}\n";
    let answer = explained_text(src, "sm_80");
    // Loads may have any alignment, stores may not.
    let load = &answer["leaves"][0]["considered"][0];
    assert_eq!(load["atom"], "ld.global.b128.unaligned", "{load}");
    let leaf = &answer["leaves"][1]["considered"][0];
    assert_eq!(leaf["atom"], "st.global.b128", "{leaf}");
    assert_eq!(leaf["facts"], serde_json::json!(["N % 8 == 0"]), "{leaf}");
    assert_eq!(leaf["fix"]["steps"], serde_json::json!(["state `where N % 8 == 0`"]), "{leaf}");
    let edit = &leaf["fix"]["edits"][0];
    let at = usize::try_from(edit["byte_start"].as_u64().expect("a place")).expect("small");
    let mut fixed = src.to_owned();
    fixed.insert_str(at, edit["text"].as_str().expect("a text"));
    let said = carbyne(&["decompose", "-", "--arch", "sm_80"], &fixed).ok();
    assert!(said.text().contains("atom=ld.global.b128"), "{}", said.text());
    let refused = carbyne(&["decompose", "-", "--arch", "sm_80"], src);
    assert!(
        refused.stderr.contains("N <= 4096, N % 8 == 0` if this always holds"),
        "{}",
        refused.stderr
    );
}

/// The explained choice is the written choice, even if the best instance is impossible for some
/// sizes.
#[test]
fn the_choice_that_is_explained_is_that_which_decompose_writes() {
    let files = root().join("cli/tests/filetests/decompose");
    for name in testing::one_of("explained", &["d0314_given_up", "d0314_copied_first"]) {
        let file = files.join(format!("{name}.cby")).display().to_string();
        let said = explained(&file, "sm_90a", &[]);
        let by =
            said["rankings"].as_array().expect("rankings").iter().map(|r| &r["ranked"][0]["by"]);
        let written = carbyne(&["decompose", &file, "--arch", "sm_90a"], "").ok();
        let all: Vec<&str> = by.filter_map(Value::as_str).collect();
        // Instances that leave all kernels to other strategies do not appear in the text.
        let apart = |by: &&str| by.starts_with("@wgmma_padded");
        let own: Vec<&&str> = all.iter().filter(|by| !apart(by)).collect();
        assert!(!own.is_empty(), "{said}");
        for by in own {
            assert!(
                written.text().contains(&format!("by={by}")),
                "{name}: {by}\n{}",
                written.text()
            );
        }
        assert_eq!(said["warnings"][0]["code"], "D0314", "{said}");
    }
}

#[test]
fn an_explanation_is_a_page() {
    for (name, arch) in [
        ("gemm", "sm_80"),
        ("gemm_any", "sm_90a"),
        ("softmax_any", "sm_80"),
        ("attention_causal", "sm_90a"),
    ] {
        let file = root().join(format!("examples/{name}.cby")).display().to_string();
        let page = carbyne(&["explain", &file, "--arch", arch], "").ok();
        let all = carbyne(&["explain", &file, "--arch", arch, "--all"], "").ok();
        let lines = |text: &str| text.lines().count();
        assert!(lines(page.text()) < 60, "{name}: {}", page.text());
        assert!(lines(all.text()) > 2 * lines(page.text()), "{name}");
        assert!(page.text().ends_with("`--why ATOM` for an instruction\n"), "{}", page.text());
    }
}
