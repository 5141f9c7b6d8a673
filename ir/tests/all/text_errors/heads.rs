//! Tests the messages of syntax errors in the heads of specs, loops and conditions.

use super::check;
use expect_test::expect;

#[test]
fn loops_and_branches() {
    check(
        "for (k = 0; k <= 8; k += 1) { barrier }",
        expect![[r#"
            P0001 2:1 "for (k = 0; k <= 8; k +=" `for (k = 0; k <= 8; k += 1)` is not written so in
                carbyne
              help: write the loop as `for (k = 0; k < 8 + 1; k += 1)`
        "#]],
    );
    // The edit does not repeat an existing brace.
    for text in ["for k in range(4): {\n  barrier\n}", "for k in range(4) {\n  barrier\n}"] {
        let text = format!("carbyne 2\n{text}\n");
        let errors = carbyne_ir::text::parse(&text).expect_err("a loop of Python");
        let edit = &errors.iter().next().expect("an error").edits[0];
        let (start, end) = (edit.span.start as usize, edit.span.end as usize);
        let mended = format!("{}{}{}", &text[..start], edit.text, &text[end..]);
        assert!(carbyne_ir::text::parse(&mended).is_ok(), "{mended}");
    }
    // There is no edit if the resulting loop would not parse.
    check(
        "for (k = 0; k << 8; k += 1) { barrier }",
        expect![[r#"
        P0001 2:16 "<" expected a number, found `<`
          help: write a loop as `for (k = 0; k < 8; k += 1) {`
    "#]],
    );
    check(
        "for (k = 0; k < 8; k +== 1) { barrier }",
        expect![[r#"
        P0001 2:24 "=" expected a number, found `=`
          help: write a loop as `for (k = 0; k < 8; k += 1) {`
    "#]],
    );
    check(
        "for (k = 0; j < 8; k += 1) { barrier }",
        expect![[r#"
        P0001 2:13 "j" `j` is not the variable of this loop
          2:6 the loop's variable
          help: write `k` in all three places
    "#]],
    );
    check(
        "for (k = 0; k < 8; k++) {\n  barrier\n}\nlet = 3",
        expect![[r#"
            P0001 2:1 "for (k = 0; k < 8; k++)" `for (k = 0; k < 8; k++)` is not written so in
                carbyne
              help: write the loop as `for (k = 0; k < 8; k += 1)`
            P0001 5:5 "=" expected a name, found `=`
              help: write constants as `let M = 256, N = 2 * M`
        "#]],
    );
    check(
        "for (k = 0, k < 8, k += 1) {}",
        expect![[r#"
            P0001 2:11 "," expected an operator or `;`, found `,`
              help: write a loop as `for (k = 0; k < 8; k += 1) {`
        "#]],
    );
    check(
        "for (k = 0; k < 8; k += 1) unrol {}",
        expect![[r#"
            P0001 2:28 "unrol" expected `stages`, `unroll`, `nounroll` or `{`, found `unrol`
              help: did you mean `unroll`?
        "#]],
    );
    check(
        "for (k = 0; k < 8; k += 1)",
        expect![[r#"
            P0001 2:27 "" expected `stages`, `unroll`, `nounroll` or `{`, found the end of the text
              help: write a loop as `for (k = 0; k < 8; k += 1) {`
        "#]],
    );
    check(
        "if (k) {}",
        expect![[r#"
            P0001 2:6 ")" expected a comparison such as `<` or an operator, found `)`
              help: write a condition as `if (k < 8 && @t == 0) {`
        "#]],
    );
    check(
        "if (k < 8 || k > 3) {}",
        expect![[r#"
            P0001 2:11 "|" expected `&&`, an operator or `)`, found `|`
              help: write a condition as `if (k < 8 && @t == 0) {`
        "#]],
    );
    check(
        "if k < 8 {}",
        expect![[r#"
            P0001 2:4 "k" expected `(`, found `k`
              help: write a condition as `if (k < 8 && @t == 0) {`
        "#]],
    );
    check(
        "if (k < 8) {} else if (k < 9) {}",
        expect![[r#"
            P0001 2:20 "if" expected `{`, found `if`
              help: write the other branch as `} else {`
        "#]],
    );
    check(
        "else {}",
        expect![[r#"
        P0001 2:1 "else" `else` without `if`
          help: write `else` directly after the `}` of an `if`
    "#]],
    );
    check(
        "Spec () -> () {} else {}",
        expect![[r#"
        P0001 2:18 "else" `else` without `if`
          help: write `else` directly after the `}` of an `if`
    "#]],
    );
    check(
        "if (k < 8) {} else {} else {}",
        expect![[r#"
        P0001 2:23 "else" `else` without `if`
          help: write `else` directly after the `}` of an `if`
    "#]],
    );
}

#[test]
fn specs() {
    check(
        "Move (%a)",
        expect![[r#"
            P0001 2:10 "" expected `->`, found the end of the text
              help: write it as `Move <<<#grid, #cta>>> (%A) -> (%B)`
        "#]],
    );
    check(
        "Move %a -> %b",
        expect![[r#"
            P0001 2:6 "%a" expected `<<<`, `(` or a kernel's name such as `@gemm`, found `%a`
              help: write it as `Move <<<#grid, #cta>>> (%A) -> (%B)`
        "#]],
    );
    check(
        "Move (%a -> (%b)",
        expect![[r#"
            P0001 2:10 "->" expected `[`, `)`, `,` or `.`, found `->`
              help: write it as `Move <<<#grid, #cta>>> (%A) -> (%B)`
        "#]],
    );
    check(
        "Move (#a) -> (%b)",
        expect![[r##"
            P0001 2:7 "#a" expected a number, a tensor such as `%A`, a literal such as `0.0` or `)`,
                found `#a`
              help: write it as `Move <<<#grid, #cta>>> (%A) -> (%B)`
        "##]],
    );
    check(
        "Move (%a) -> (0.0)",
        expect![[r#"
            P0001 2:15 "0" expected a tensor such as `%A` or `)`, found `0`
              help: write it as `Move <<<#grid, #cta>>> (%A) -> (%B)`
        "#]],
    );
    check(
        "Move <<<#a>>> (%a) -> (%b)",
        expect![[r#"
            no error
        "#]],
    );
    check(
        "Move <<<#a, #b>> (%a) -> (%b)",
        expect![[r#"
            P0001 2:15 ">" expected `>>>`, `[` or `.`, found `>`
              help: write it as `Move <<<#grid, #cta>>> (%A) -> (%B)`
        "#]],
    );
    check(
        "Move (%a) -> (%b) acc",
        expect![[r#"
            P0001 2:19 "acc" expected a statement, found `acc`
              help: an attribute is written `key=value`
        "#]],
    );
    check(
        "Move (%a) -> (%b) acc=",
        expect![[r#"
            P0001 2:19 "acc" expected a statement, found `acc`
              help: an attribute is written `key=value`
        "#]],
    );
    check(
        "Move (%a) -> (%b) acc=f32.",
        expect![[r#"
            P0001 2:26 "." expected `means`, `{`, a name or the next statement, found `.`
              help: write it as `Move <<<#grid, #cta>>> (%A) -> (%B)`
        "#]],
    );
    check(
        "Move.fast (%a) -> (%b)",
        expect![[r#"
            P0001 2:1 "Move.fast" `Move` has no operation `fast`
              help: use `add`, `min` or `max`
        "#]],
    );
    check(
        "MatMul.add (%a) -> (%b)",
        expect![[r#"
        P0001 2:1 "MatMul.add" `MatMul` has no operation `add`
          help: use `set`
    "#]],
    );
    check(
        "UnaryPointwise (%a) -> (%b)",
        expect![[r#"
        P0001 2:1 "UnaryPointwise" `UnaryPointwise` needs an operation, as in
            `UnaryPointwise.cast`
          help: use `cast`, `neg`, `abs`, `exp`, `exp2`, `log`, `sqrt`, `rsqrt`, `rcp`, `tanh`,
            `sigmoid`, `relu`, `gelu` or `silu`
    "#]],
    );
    check(
        "UnaryPointwise.exq (%a) -> (%b)",
        expect![[r#"
        P0001 2:1 "UnaryPointwise.exq" `UnaryPointwise` has no operation `exq`
          help: did you mean `exp`?
    "#]],
    );
    check(
        "UnaryPointwise.frobnicate (%a) -> (%b)",
        expect![[r#"
        P0001 2:1 "UnaryPointwise.frobnicat" `UnaryPointwise` has no operation `frobnicate`
          help: use `cast`, `neg`, `abs`, `exp`, `exp2`, `log`, `sqrt`, `rsqrt`, `rcp`, `tanh`,
            `sigmoid`, `relu`, `gelu` or `silu`
    "#]],
    );
    check(
        "Init (.5) -> (%b)",
        expect![[r#"
            P0001 2:7 "." expected a number, a tensor such as `%A`, a literal such as `0.0` or `)`,
                found `.`
              help: write it as `Init <<<#grid, #cta>>> (0.0) -> (%x)`
        "#]],
    );
    check(
        "Init (1e) -> (%b)",
        expect![[r#"
            P0001 2:7 "1e" expected a number, a tensor such as `%A`, a literal such as `0.0` or `)`,
                found `1e`
              help: write it as `Init <<<#grid, #cta>>> (0.0) -> (%x)`
        "#]],
    );
}
