//! Tests users' strategies that are wrong or too large. The errors name the strategy and its line,
//! and are not internal errors.

use crate::support::{Ran, carbyne, scratch};

const SOFTMAX: &str = "carbyne 2
%X:[64,512].f32.GL
%Y:[64,512].f32.GL
Spec @s (%X) -> (%Y) means {
  %e = exp(%X - max(%X, axis=1))
  %Y = %e / sum(%e, axis=1)
}
";

/// A strategy with one row per block and additional parameters, conditions and statements.
fn strategy(params: &str, conditions: &str, body: &str) -> String {
    format!(
        "carbyne 2
strategy @mine[M, N, E:type, T in (32, 64){params}] <<<#grid:[@i < M], #cta:[T]>>>
    () -> (%Y:[M,N].E.GL) tile=(1,N) warps=T / 32 where N <= 64 * T{conditions}
    usually N >= 4 * T means {{
  @all () -> (%Y)
}} {{
{body}}}
"
    )
}

const OWN_ROW: &str = "  @all () -> (%Y.tile([1,N])[@i, 0])\n";
const ROW_0: &str = "  @all () -> (%Y.tile([1,N])[0, 0])\n";

/// `n` parameters with these values.
fn params(n: usize, values: &str) -> String {
    (0..n).map(|i| format!(", P{i} in {values}")).collect()
}

/// The sum of `n` parameters.
fn sum(n: usize) -> String {
    (0..n).map(|i| format!("P{i}")).collect::<Vec<_>>().join(" + ")
}

/// Decomposes a program with a strategy of a file, then tests the strategy.
fn both(name: &str, text: &str) -> [Ran; 2] {
    let file = scratch(name).join("mine.cby").display().to_string();
    std::fs::write(&file, text).expect("a file");
    [
        carbyne(&["decompose", "--arch", "sm_80", "--strategy", &file, "-"], SOFTMAX),
        carbyne(&["strategies", "--test", &file, "--samples", "2"], ""),
    ]
}

#[test]
fn a_strategy_whose_blocks_meet_is_named_by_every_command() {
    let file = scratch("blocks_meet").join("mine.cby").display().to_string();
    std::fs::write(&file, strategy("", "", ROW_0)).expect("a file");
    let commands: [(&[&str], &str); 3] = [
        (&["decompose"], "T0801"),
        (&["compile", "--emit", "cuda"], "T0801"),
        (&["simulate"], "S0502"),
    ];
    for (command, code) in commands {
        let args = [command, &["--arch", "sm_80", "--strategy", &file, "-"]].concat();
        let ran = carbyne(&args, SOFTMAX);
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        let said = ran.stderr.replace('\n', " ");
        assert!(said.contains(code) && said.contains("`@mine` at line 2 of"), "{}", ran.stderr);
    }
    let ran = carbyne(&["strategies", "--test", &file, "--samples", "2"], "");
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.text().contains("the strategy `@mine` at line 2 of"), "{}", ran.text());
}

#[test]
fn a_strategy_in_the_text_that_is_decomposed_is_named_by_its_line() {
    let own = strategy("", "", ROW_0);
    let text = format!("{own}{}", SOFTMAX.trim_start_matches("carbyne 2\n"));
    let ran = carbyne(&["decompose", "--arch", "sm_80", "-"], text);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("the strategy `@mine` at line 2"), "{}", ran.stderr);
}

#[test]
fn parameters_that_nothing_reads_are_named() {
    for text in [
        strategy(&params(200, "(0, 1)"), "", OWN_ROW),
        strategy(&params(20, "0..1000"), "", OWN_ROW),
    ] {
        for ran in both("unread", &text) {
            assert_eq!(ran.code, 1, "{}", ran.stderr);
            assert!(ran.stderr.contains("V0234") && ran.stderr.contains("`P0`"), "{}", ran.stderr);
        }
    }
}

#[test]
fn combinations_of_parameters_are_bounded() {
    let any = format!(", {} >= 0", sum(20));
    let never = format!(", {} < 0", sum(20));
    let many: String = (0..2000).map(|i| format!(", P{i} >= 0")).collect();
    let body = "  @all () -> (%Y.tile([1 + P0 * P1 * 0,N])[@i, 0])\n";
    let texts = [
        strategy(&params(20, "0..1000"), &any, OWN_ROW),
        strategy(&params(20, "0..1000"), &never, OWN_ROW),
        strategy(&params(2000, "(0, 1)"), &many, OWN_ROW),
        strategy(&params(2, "0..9223372036854775807"), "", body),
    ];
    for text in texts {
        for ran in both("combinations", &text) {
            assert_eq!(ran.code, 1, "{}", ran.stderr);
            let said = ran.stderr.replace('\n', " ");
            assert!(said.contains("X0010") && said.contains("`@mine` at line 2"), "{}", ran.stderr);
            assert!(said.contains("`P0`") || said.contains("by=@mine"), "{}", ran.stderr);
        }
    }
}

#[test]
fn strategies_of_thousands_of_statements_are_refused() {
    let text = strategy("", "", &OWN_ROW.repeat(3000));
    // A sub-spec with as many statements is refused, too.
    let sub = format!(
        "carbyne 2\ndef @zero[N, E:type] () -> (%y:[1,N].E.GL) {{\n{}}}\n",
        "  Init (0) -> (%y)\n".repeat(3000)
    );
    let own = strategy(
        "",
        "",
        "  @zero[N, E] () -> (%Y.tile([1,N])[@i, 0])\n  @all () -> (%Y.tile([1,N])[@i, 0])\n",
    );
    let by_sub = format!("{sub}{}", own.trim_start_matches("carbyne 2\n"));
    for ran in both("statements", &text) {
        assert_eq!(ran.code, 1, "{}", ran.stderr);
        assert!(ran.stderr.contains("X0010") && ran.stderr.contains("3001 statements"));
    }
    let [decomposed, _] = both("statements_of_a_sub_spec", &by_sub);
    assert_eq!(decomposed.code, 1, "{}", decomposed.stderr);
    assert!(decomposed.stderr.contains("X0010"), "{}", decomposed.stderr);
}

#[test]
fn a_condition_that_never_holds_leaves_the_others() {
    let text = strategy(&params(20, "0..1000"), &format!(", 1 < 0, {} >= 0", sum(20)), OWN_ROW);
    let [decomposed, tested] = both("never", &text);
    assert_eq!(decomposed.code, 0, "{}", decomposed.stderr);
    assert!(tested.text().contains("no sizes up to 4096"), "{}", tested.text());
}
