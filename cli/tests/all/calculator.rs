//! Tests the calculator for layout algebra, `carbyne layout`: expressions, places of errors,
//! sequences of lines, and the JSON protocol for programs.
//!
//! Tests beside the operation table, in `carbyne::calculator`, check the examples of the table.

use crate::support::{carbyne, none};
use carbyne_ir::limits::MAX_TEXT_BYTES;
use carbyne_ir::testing;
use serde_json::{Value, json};
use std::time::Instant;

/// The value of an expression.
fn worth(expression: &str) -> String {
    carbyne(&["layout", expression], "").ok().text().trim_end().to_owned()
}

/// The code of the error, the text at its place, and the error.
fn error(expression: &str) -> (String, String, Value) {
    let start = Instant::now();
    let ran = carbyne(&["layout", expression, "--message-format", "json"], "");
    assert!(start.elapsed() < testing::SOON, "{:?}", start.elapsed());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let [error] = &ran.errors()[..] else { panic!("{}", ran.stderr) };
    let span = &error["spans"][0];
    let byte = |name: &str| span[name].as_u64().unwrap() as usize;
    let place = expression.get(byte("byte_start")..byte("byte_end")).unwrap_or("").to_owned();
    assert!(error["help"].is_string() && !span["label"].as_str().unwrap().is_empty(), "{error}");
    assert!(ran.stderr.len() < 10_000, "a report of {} bytes", ran.stderr.len());
    let human = carbyne(&["layout", expression], "").stderr;
    assert!(human.len() < 10_000, "a report of {} bytes", human.len());
    (error["code"].as_str().unwrap().to_owned(), place, error.clone())
}

#[test]
fn expressions_nest_and_names_are_bound() {
    let cases = [
        ("composition((6,2):(8,2), (4,3):(3,1))", "((2,2),3):((24,2),8)"),
        ("logical_divide(coalesce((2,4):(1,2)), 2)", "(2,4):(1,2)"),
        ("size(complement(8:1, (3,5,32)))", "64"),
        ("A = (4,8):(8,1); composition(A, right_inverse(A))", "(8,4):(1,8)"),
        ("A = (4,8):(8,1); B = A o 2:2; B o 2;", "2:16"),
        ("(4,8):(8,1) ∘ (2,2):(1,2)", "(2,2):(8,16)"),
        ("o(8:2, 4:2)", "4:4"),
        ("A = (4,8):(8,1); A(1,2)", "10"),
        ("A = (4,8):(8,1); A(9)", "10"),
        ("(_4,_8):(_8,_1) // as CuTe prints it", "(4,8):(8,1)"),
        ("((4,8):(8,1)) o (2:1)", "2:8"),
        ("8:-1", "8:-1"),
        ("(1,(_,_3),)", "(1,(_,3))"),
        ("(4)", "(4)"),
        ("[8, 4:2, _, [2]]", "[8,4:2,_,[2]]"),
        ("Sw<3,4,3>", "Sw<3,4,3>"),
        ("Sw<2,0,3> o _0 o (_8,_8):(_8,_1) o 4:8", "Sw<2,0,3> o 0 o 4:1"),
        ("Sw<2,0,3> o (8,8):(8,1)", "Sw<2,0,3> o 0 o (8,8):(8,1)"),
        ("crd2idx((1,0), Sw<2,0,3> o 0 o (8,8):(8,1))", "9"),
        ("size((4,5):(1@0,2@1@0))", "20"),
        ("(4,5):(1@0,2@1@0)", "(4,5):(1@0,2@1@0)"),
        ("((size(4:1), 2), rank(8:1))", "((4,2),1)"),
        ("weakly_congruent((4,6), (1,(2,3)))", "true"),
        ("composition((8,8):(8,1), [2:1, _])", "(2,8):(8,1)"),
        ("-1", "-1"),
        ("8 - 2*3 - 1", "1"),
        ("(7/2, -7/2, -7 % 4, 2-1, -(3))", "(3,-4,1,1,-3)"),
        ("size((4,8):(8,1)) / 4 + 1", "9"),
        ("(size(4:1)*2,2):(2,1)", "(8,2):(2,1)"),
        ("size((M,K):(K,1)) where K % 64 == 0, M >= 1", "K*M where K % 64 == 0, M >= 1"),
        ("A = (M,4):(4,1); A(1,2) where M >= 1, N >= 1", "6"),
        (
            "A = (M,4):(4,1); A(i,2) where M >= 1, i >= 0, i < M",
            "i*4 + 2 where M >= 1, i < M, i >= 0",
        ),
        ("M = 16; (M,4):(4,1) where M % 8 == 0", "(16,4):(4,1)"),
        ("M = 16; (M,K):(K,1) where M % 8 == 0, K >= M", "(16,K):(K,1) where K >= 16"),
        ("((M + 127)/128,4):(4,1) where M >= 1", "((M + 127)/128,4):(4,1) where M >= 1"),
        ("min(M, 64) where M >= 1, M < 8", "M where M < 8, M >= 1"),
        ("equivalent((M,4):(4,1), ((M,2),2):((4,1),2)) where M >= 1", "true"),
    ];
    none(
        cases
            .iter()
            .map(|(expression, want)| (expression, want, worth(expression)))
            .filter(|(_, want, got)| got != *want)
            .map(|(expression, want, got)| format!("{expression}: want {want}, got {got}"))
            .collect(),
    );
}

#[test]
fn errors_have_codes_and_places() {
    let cases = [
        ("composition((8,8):(8,1), 4:3)", "L0101", "composition((8,8):(8,1), 4:3)"),
        ("size(compositon(8:1, 2))", "K0602", "compositon"),
        ("size(A)", "K0602", "A"),
        ("size = 3", "K0602", "size"),
        ("1 + composition(8:1)", "K0603", "composition(8:1)"),
        ("1 + (4,8):(8,1)", "K0603", "(4,8)"),
        ("1 + 8:1 o", "K0601", "o"),
        ("1 + (4,8)", "K0603", "(4,8)"),
        ("1 + * 2", "K0601", "*"),
        ("4/0", "L0111", "4/0"),
        ("9223372036854775807 + 1", "L0102", "9223372036854775807 + 1"),
        ("(M,4):(4,1)", "K0602", "M"),
        ("(M,4):(4,1) where", "K0601", "where"),
        ("4:1 where M >= 1, 3", "P0001", "where M >= 1, 3"),
        ("4:1 where M > 8, M < 4", "V0240", "where M > 8, M < 4"),
        ("M = 3; M:1 where M % 8 == 0", "V0240", "M = 3"),
        ("M = -3; M:1 where M >= 0", "K0603", "-3"),
        ("size:1 where size >= 1", "K0602", "where size >= 1"),
        ("M:1 where M >= 1 typical M=4", "K0601", "where M >= 1 typical M=4"),
        ("(M,8):(1,64) o 4:1 where M >= 1", "L0108", "(M,8):(1,64) o 4:1"),
        ("is_injective(M:1) where M >= 1", "L0113", "is_injective(M:1)"),
        ("shape_div(6, 0)", "L0111", "shape_div(6, 0)"),
        ("solve(4:1, 8:1, 4:1)", "L0118", "solve(4:1, 8:1, 4:1)"),
        ("solve(8:1, (4,2):(1,0), 8:1)", "L0119", "solve(8:1, (4,2):(1,0), 8:1)"),
        ("unify((4,4), [4:1, 4:4])", "L0120", "unify((4,4), [4:1, 4:4])"),
        ("rank(composition(8:1))", "K0603", "composition(8:1)"),
        ("composition((8,8), 4:3)", "K0603", "(8,8)"),
        ("group((4,8):(8,1), 0, 2:1)", "K0603", "2:1"),
        ("take((4,8):(8,1), 0, 3)", "L0104", "take((4,8):(8,1), 0, 3)"),
        ("complement(8:1, (0,3))", "K0603", "(0,3)"),
        ("(4:1, 8:2)", "K0603", "4:1"),
        ("Sw<1,0,2> o 0 o Sw<1,0,2>", "K0603", "Sw<1,0,2>"),
        ("Sw<3,0,-2>", "L0114", "Sw<3,0,-2>"),
        (
            "Sw<9223372036854775807,4294967295,63> o 8:1",
            "L0114",
            "Sw<9223372036854775807,4294967295,63>",
        ),
        ("Sw<1,0,2> o 9223372036854775807 o 8:1", "L0102", "8:1"),
        ("(4,(2,0)):(1,(4,8))", "L0110", "0"),
        ("size((4,-3):(1,4))", "L0110", "-3"),
        ("(4,8):(8,(1,2))", "L0103", "(4,8):(8,(1,2))"),
        ("(4,8):(1@0,(1@1,1@2))", "L0103", "(4,8):(1@0,(1@1,1@2))"),
        ("get(8:1, [1])", "L0104", "get(8:1, [1])"),
        ("idx2crd(7, (0,2))", "L0111", "idx2crd(7, (0,2))"),
        ("complement((4,4):(1,2), 32)", "L0109", "complement((4,4):(1,2), 32)"),
        ("(4,4):(4,1) o (2,2):(1@0,1)", "L0115", "(4,4):(4,1) o (2,2):(1@0,1)"),
        ("upcast(3:1, 2)", "L0116", "upcast(3:1, 2)"),
        ("right_inverse(Sw<2,0,3> o 1 o 64:1)", "L0117", "right_inverse(Sw<2,0,3> o 1 o 64:1)"),
        ("upcast(4:1, 0)", "L0118", "upcast(4:1, 0)"),
        ("(4611686018427387904,4):(1,1)", "L0102", "(4611686018427387904,4):(1,1)"),
        ("layout_eval(4611686018427387904:1)", "K0604", "layout_eval(4611686018427387904:1)"),
        ("9223372036854775808", "P0004", "9223372036854775808"),
        ("((4,8):(8,1)", "K0601", ")"),
        ("(4,8):", "K0601", ":"),
        ("(4,8)):(8,1)", "K0601", ")"),
        ("(4 8)", "K0601", "8"),
        ("4:2:1", "K0601", ":"),
        ("é", "K0601", "é"),
        ("", "K0601", ""),
        ("// nothing", "K0601", ""),
    ];
    let found = cases.iter().map(|(text, code, place)| (text, code, place, error(text)));
    none(
        found
            .filter(|(_, code, place, (c, p, _))| (c, p) != (&code.to_string(), &place.to_string()))
            .map(|(text, code, place, got)| format!("{text}: want {code} at {place}, got {got:?}"))
            .collect(),
    );
    // A composition of negative strides may have an answer.
    let ran = carbyne(&["layout", "complement(8:-1, 16)"], "");
    assert!(ran.stderr.contains("L0112"), "{}", ran.stderr);
}

#[test]
fn help_says_what_to_do() {
    let help = |text: &str| error(text).2["help"].as_str().unwrap().to_owned();
    assert!(help("compositon(8:1, 2)").contains("`composition`"));
    assert!(help("B = 8:1; Bx").contains("--list"));
    assert!(help("Blocked = 8:1; Blcked").contains("`Blocked`"));
    assert!(help("rank()").contains("rank((2,(2,2)):(4,(2,1)))"));
    assert!(help("coalesce((4,8))").contains("(4,8):(1,4)"));
    assert!(help("(4,8").contains("complete the expression"));
    expect_test::expect![[r#"
        K0603

          × argument 3 of `group`, end, must be an integer, found a layout
           ╭─[<expression>:1:23]
         1 │ group((4,8):(8,1), 0, 2:1)
           ·                       ─┬─
           ·                        ╰── this is `2:1`
           ╰────
          help: write `4` here: `group(L, begin, end)`, as in `group((2,3,5,7):(1,2,6,30), 0, 2)`
    "#]]
    .assert_eq(&carbyne(&["layout", "group((4,8):(8,1), 0, 2:1)"], "").stderr);
}

#[test]
fn input_at_the_edge_is_refused_soon() {
    let ones = |n: usize| vec!["1"; n].join(",");
    let deep = |n: usize| format!("{}1{}", "(".repeat(n), ")".repeat(n));
    let calls = |n: usize| format!("{}8:1{}", "coalesce(".repeat(n), ")".repeat(n));
    let cases = [
        (format!("({}):({})", ones(10_000), ones(10_000)), "L0107"),
        (format!("[{}]", ones(70_000)), "K0604"),
        (deep(10_000), "X0002"),
        (deep(129), "X0002"),
        ("[".repeat(1_000_000), "X0002"),
        (calls(10_000), "X0002"),
        (format!("8:1{}", " o 8:1".repeat(300)), "K0604"),
        (format!("A = 8:1{}", "; coalesce(A)".repeat(300)), "K0604"),
        (format!("A = layout_eval(65536:1); [{}]", vec!["A"; 20_000].join(",")), "K0604"),
        (format!("A = layout_eval(65536:1){}", "; B = A".repeat(20_000)), "K0604"),
        (format!("A = {}; B = {}; ({})", deep(100), deep(1), "A,".repeat(9)), ""),
        (format!("A = {}; {}A{}", deep(100), "(".repeat(100), ")".repeat(100)), "L0106"),
        ("a".repeat(MAX_TEXT_BYTES), "K0601"),
        (" ".repeat(MAX_TEXT_BYTES + 1), "X0001"),
        (format!("1{}", "@1".repeat(100_000)), "K0604"),
        (format!("A = 1{}", ";A = 1".repeat(60_000)), ""),
        (format!("make_layout({})", "8:1,".repeat(5_000)), "L0107"),
    ];
    for (text, code) in &cases {
        let name: String = text.chars().take(40).collect();
        match code {
            &"" => assert_eq!(carbyne(&["layout", text], "").ok().code, 0, "{name}"),
            code => assert_eq!(error(text).0, *code, "{name}"),
        }
    }
    let deep = deep(128);
    assert_eq!(worth(&deep), deep);
    // An endless line, and a line that is not UTF-8.
    let (mut out, mut err) = (vec![], vec![]);
    let args = ["carbyne", "layout", "-"];
    assert_eq!(carbyne::run(args, &mut std::io::repeat(b'('), &mut out, &mut err), 1);
    assert_eq!(out, b"error X0001\n");
    assert_eq!(carbyne(&["layout", "-"], b"\xff\n8:1\n").text(), "error P0005\n8:1\n");
}

#[test]
fn lines_are_answered_one_by_one() {
    let ran = carbyne(&["layout", "-"], "A = 8:2\nsize(A)\n\nB = 1; bad(\ncosize(A) // x\nB\n");
    assert_eq!(ran.text(), "8:2\n8\n\nerror K0601\n15\nerror K0602\n");
    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("<stdin>:4"), "{}", ran.stderr);
    let ran = carbyne(&["layout", "-"], "8:2\n4").ok();
    assert_eq!((ran.text(), &*ran.stderr), ("8:2\n4\n", ""));
    assert_eq!(carbyne(&["layout", "-"], "").ok().text(), "");
    let ran = carbyne(&["layout", "-", "--eval"], "3:2\n(2,2):(2,1)\n").ok();
    assert_eq!(ran.text(), "[0,2,4]\n[0,2,1,3]\n");
}

#[test]
fn symbols_last_for_the_lines_that_follow() {
    let lines = "A = (M,K):(K,1) where M >= 1, K % 8 == 0\nsize(A)\nN:1 where N >= M\nA(0,8)\n\
                 M = 4\nA\nsize(A)\nM = 3:1\nK\n";
    let ran = carbyne(&["layout", "-"], lines);
    let want = "(M,K):(K,1) where K % 8 == 0, M >= 1\nM*K where K % 8 == 0, M >= 1\n\
                N:1 where M >= 1, N >= M\n8\n4\n(4,K):(K,1) where K % 8 == 0\n\
                K*4 where K % 8 == 0\n\
                error K0603\nK where K % 8 == 0\n";
    assert_eq!(ran.text(), want, "{}", ran.stderr);
}

#[test]
fn values_as_a_grid() {
    expect_test::expect![[r"
          |  0  1  2  3
        --+------------
        0 |  0  1  2  3
        1 |  8  9 10 11
    "]]
    .assert_eq(carbyne(&["layout", "--table", "(2,4):(8,1)"], "").ok().text());
    expect_test::expect![[r"
          | 0 1 2
        --+------
        0 | 0 2 4
    "]]
    .assert_eq(carbyne(&["layout", "--table", "3:2"], "").ok().text());
    for (text, code) in [("4", 0), ("(4,8)", 1), ("65537:1", 1), ("()", 1)] {
        assert_eq!(carbyne(&["layout", "--table", text], "").code, code, "{text}");
    }
}

#[test]
fn usage() {
    let list = carbyne(&["layout", "--list"], "").ok();
    assert!(list.text().contains("  complement(L, [cotarget])\n"), "{}", list.text());
    assert!(list.text().contains("composition((6,2):(8,2), (4,3):(3,1)) = ((2,2),3):((24,2),8)"));
    for args in [&["layout"][..], &["layout", "--json", "8:1"], &["layout", "--list", "8:1"]] {
        assert_eq!(carbyne(args, "").code, 2, "{args:?}");
    }
}

/// The answers to these lines, one per line.
pub(crate) fn answers(lines: &str) -> Vec<Value> {
    let ran = carbyne(&["layout", "--json"], lines).ok();
    assert_eq!(ran.stderr, "");
    ran.text().lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

#[test]
fn requests_are_answered_with_values() {
    let cases = [
        (json!({"id": 1, "op": "size", "args": ["(4,8):(8,1)"]}), json!(32)),
        (json!({"op": "crd2idx", "args": [[1, [1, 2]], "(3,(2,3)):(3,(12,1))"]}), json!(17)),
        (json!({"op": "idx2crd", "args": [4, [3, [2, 3]]]}), json!([1, [1, 0]])),
        (json!({"op": "o", "args": ["(6,2):(8,2)", "(4,3):(3,1)"]}), json!("((2,2),3):((24,2),8)")),
        (
            json!({"op": "zipped_divide", "args": ["(8,24):(1,8)", [4, 8]]}),
            json!("((4,8),(2,3)):((1,8),(4,64))"),
        ),
        (
            json!({"op": "composition", "args": ["(8,8):(8,1)", ["2:1", null]]}),
            json!("(2,8):(8,1)"),
        ),
        (json!({"op": "compatible", "args": [24, [4, 6]]}), json!(true)),
        (
            json!({"op": "with_shape", "args": ["Sw<1,0,2> o 0 o 8:1", [2, 4]]}),
            json!("Sw<1,0,2> o 0 o (2,4):(1,2)"),
        ),
        (json!({"op": "nonesuch", "args": []}), json!({"skip": true})),
    ];
    let lines: String = cases.iter().map(|(request, _)| format!("{request}\n")).collect();
    let got = answers(&lines);
    assert_eq!(got, cases.iter().map(|(_, want)| want.clone()).collect::<Vec<_>>());
}

#[test]
fn bad_requests_have_coded_answers() {
    let deep =
        format!(r#"{{"op":"product","args":[{}1{}]}}"#, "[".repeat(10_000), "]".repeat(10_000));
    let within =
        format!(r#"{{"op":"depth","args":["{}1{}"]}}"#, "(".repeat(10_000), ")".repeat(10_000));
    let wide = json!({"op": "product", "args": [vec![1; 10_000]]}).to_string();
    let wider = json!({"op": "product", "args": [vec![1; 100_000]]}).to_string();
    let long = format!(r#"{{"op":"size","args":["{}"]}}"#, " ".repeat(MAX_TEXT_BYTES));
    let cases = [
        ("", "K0601"),
        ("{", "K0601"),
        ("[1]", "K0601"),
        ("not JSON", "K0601"),
        (r#"{"op":"size"}"#, "K0601"),
        (r#"{"op":3,"args":[]}"#, "K0601"),
        (r#"{"op":"size","args":["(4,8:1"]}"#, "K0601"),
        (r#"{"op":"size","args":[""]}"#, "K0601"),
        (r#"{"op":"size","args":["A"]}"#, "K0602"),
        (r#"{"op":"size","args":[]}"#, "K0603"),
        (r#"{"op":"size","args":[[4,8]]}"#, "K0603"),
        (r#"{"op":"size","args":[true]}"#, "K0603"),
        (r#"{"op":"size","args":[{"a":1}]}"#, "K0603"),
        (r#"{"op":"product","args":[[1,null]]}"#, "K0603"),
        (r#"{"op":"product","args":[1.5]}"#, "P0004"),
        (r#"{"op":"product","args":[18446744073709551615]}"#, "P0004"),
        (r#"{"op":"product","args":[[4611686018427387904,4]]}"#, "L0102"),
        (r#"{"op":"layout_eval","args":["4611686018427387904:1"]}"#, "K0604"),
        (r#"{"op":"size","args":["(0):(1)"]}"#, "L0110"),
        (r#"{"op":"compact_col_major","args":[[4,-8]]}"#, "L0110"),
        (r#"{"op":"composition","args":["(8,8):(8,1)","4:3"]}"#, "L0101"),
        (&deep, "X0002"),
        (&within, "X0002"),
        (&wide, "L0107"),
        (&wider, "K0604"),
        (&long, "X0001"),
    ];
    let lines: String = cases.iter().map(|(line, _)| format!("{line}\n")).collect();
    let start = Instant::now();
    let got = answers(&lines);
    assert!(start.elapsed() < testing::SOON, "{:?}", start.elapsed());
    assert_eq!(got.len(), cases.len());
    for ((line, code), got) in cases.iter().zip(got) {
        let line: String = line.chars().take(60).collect();
        assert_eq!((&got["error"], &got["code"]), (&json!(true), &json!(code)), "{line}: {got}");
        assert!(got["message"].is_string() && got["help"].is_string(), "{line}: {got}");
    }
}

/// Facts about the symbols that the next test uses, and values that satisfy the facts.
const FACTS: &str = "M >= 1, K % 8 == 0, K >= 8, N % 4 == 0, N >= 4";
const VALUES: [[i64; 3]; 3] = [[1, 8, 4], [2, 16, 12], [5, 24, 8]];

/// Pseudorandom numbers from a fixed start.
struct Draws(u64);

impl Draws {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    fn layout(&mut self) -> String {
        let n = 1 + self.below(3);
        let extents: Vec<&str> =
            (0..n).map(|_| self.of(&["2", "4", "8", "1", "M", "K", "N", "M*2", "K/8"])).collect();
        let strides: Vec<&str> = (0..n)
            .map(|_| self.of(&["1", "2", "4", "8", "0", "M", "K", "N", "K*M", "N*2"]))
            .collect();
        format!("({}):({})", extents.join(","), strides.join(","))
    }

    fn request(&mut self) -> (&'static str, Vec<Value>) {
        let small = ["4:1", "2:1", "(2,4):(1,2)", "(2,2):(4,1)", "N:1", "4:2"];
        let one = json!(self.layout());
        let op = self.below(22);
        let tiler = json!(self.of(&small));
        match op {
            0 => ("size", vec![one]),
            1 => ("cosize", vec![one]),
            2 => ("coalesce", vec![one]),
            3 => ("flatten", vec![one]),
            4 => ("filter", vec![one]),
            5 => ("complement", vec![tiler, json!(self.of(&["K", "N*8", "64"]))]),
            6 => ("right_inverse", vec![one]),
            7 => ("left_inverse", vec![one]),
            8 => ("composition", vec![one, json!(self.layout())]),
            9 => ("composition", vec![one, tiler]),
            10 => ("logical_divide", vec![one, tiler]),
            11 => ("zipped_divide", vec![one, tiler]),
            12 => ("logical_product", vec![one, tiler]),
            13 => ("raked_product", vec![one, tiler]),
            14 => ("crd2idx", vec![json!(self.of(&["3", "M", "K - 1", "N*2"])), one]),
            15 => ("shape", vec![one]),
            16 => ("stride", vec![one]),
            17 => ("nullspace", vec![one]),
            18 => ("solve", vec![one, json!(self.layout()), tiler]),
            19 => ("max_common_vector", vec![one, json!(self.layout())]),
            20 => ("make_layout_tv", vec![one, tiler]),
            _ => ("equivalent", vec![one, json!(self.layout())]),
        }
    }
}

fn line(op: &str, args: &[Value]) -> String {
    format!("{}\n", json!({ "op": op, "args": args }))
}

/// The operand with facts, and with numbers substituted for symbols.
fn at(value: &Value, symbols: &str, facts: &str) -> Value {
    match value {
        Value::String(text) => {
            let (text, _) = text.split_once(" where ").unwrap_or((text, ""));
            json!(format!("{symbols}{text} where {facts}"))
        }
        Value::Array(items) => items.iter().map(|item| at(item, symbols, facts)).collect(),
        other => other.clone(),
    }
}

#[test]
fn answers_over_symbols_are_those_over_their_values() {
    let mut draws = Draws(carbyne_ir::testing::seed());
    let requests: Vec<_> = (0..carbyne_ir::testing::cases(1500)).map(|_| draws.request()).collect();
    let with = |symbols: &str, args: &[Value]| -> Vec<Value> {
        args.iter().map(|arg| at(arg, symbols, FACTS)).collect()
    };
    let lines: String = requests.iter().map(|(op, args)| line(op, &with("", args))).collect();
    let symbolic = answers(&lines);
    let (mut wrong, mut checked) = (vec![], 0);
    for [m, k, n] in VALUES {
        let symbols = format!("M = {m}; K = {k}; N = {n}; ");
        let numbers: String =
            requests.iter().map(|(op, args)| line(op, &with(&symbols, args))).collect();
        let numbers = answers(&numbers);
        // Compare both as lists of numbers: layouts as their indices, numbers and tuples divided
        // by 1.
        let as_list = |value: &Value| match value {
            Value::String(text) if text.contains(':') => {
                line("layout_eval", &[at(value, &symbols, FACTS)])
            }
            other => line("shape_div", &[at(other, &symbols, FACTS), json!(1)]),
        };
        let left = answers(&symbolic.iter().map(as_list).collect::<String>());
        let right = answers(&numbers.iter().map(as_list).collect::<String>());
        for (i, (op, args)) in requests.iter().enumerate() {
            let refused = |answer: &Value| answer.get("error").is_some();
            if refused(&symbolic[i]) {
                let code = symbolic[i]["code"].as_str().unwrap();
                let known = ["L0101", "L0102", "L0108", "L0109", "L0112", "L0118", "L0119"];
                if !known.contains(&code) {
                    wrong.push(format!("{op} {args:?}: {}", symbolic[i]));
                }
                continue;
            }
            // The list is too long for an answer.
            if left[i]["code"] == json!("K0604") || right[i]["code"] == json!("K0604") {
                continue;
            }
            checked += 1;
            let same = match &symbolic[i] {
                Value::Bool(_) => symbolic[i] == numbers[i],
                // Outside of the image, a left inverse is arbitrary.
                _ if *op == "left_inverse" => {
                    let (a, b) = (left[i].as_array().unwrap(), right[i].as_array().unwrap());
                    a.iter().zip(b).all(|(a, b)| a == b)
                }
                _ => left[i] == right[i] && !refused(&left[i]),
            };
            if !same {
                let (got, want) = (&symbolic[i], &numbers[i]);
                wrong.push(format!("{op} {args:?} with {symbols}: {got}, but {want}"));
            }
        }
    }
    none(wrong);
    assert!(checked > 1500, "{checked}");
}
