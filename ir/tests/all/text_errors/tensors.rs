//! Tests the messages of syntax errors in types and views.

use super::check;
use expect_test::expect;

#[test]
fn types_and_views() {
    check(
        "%A:[8].f17.GL",
        expect![[r#"
        P0001 2:8 "f17" unknown scalar type `f17`
          help: did you mean `f16`?
    "#]],
    );
    check(
        "%A:[8].f16.SM",
        expect![[r#"
            P0001 2:12 "SM" unknown memory `SM`
              help: use `GL`, `SH` or `RF`
        "#]],
    );
    check(
        "%A:[8]",
        expect![[r#"
            P0001 2:7 "" expected `.`, found the end of the text
              help: write a tensor as `%A:[8,8].f16.GL`, a view as `%a = %A.tile([8,8])[0, 0]`
        "#]],
    );
    check(
        "%A:f16.GL",
        expect![[r#"
            P0001 2:1 "%A:f16.GL" this declaration has only a part of a type
              help: write the extents, too: `%A:[8,8].f16.GL`
        "#]],
    );
    check(
        "%A:[8,].f16",
        expect![[r#"
            P0001 2:7 "]" expected a number, found `]`
              help: write a tensor as `%A:[8,8].f16.GL`, a view as `%a = %A.tile([8,8])[0, 0]`
        "#]],
    );
    check(
        "%A:[8",
        expect![[r#"
            P0001 2:6 "" expected `:`, an operator, `]` or `,`, found the end of the text
              help: write a tensor as `%A:[8,8].f16.GL`, a view as `%a = %A.tile([8,8])[0, 0]`
        "#]],
    );
    check(
        "%A:[8,8:1,8].f16",
        expect![[r#"
            P0001 2:4 "[8,8:1,8]" `[8,8:1,8]` is not written so in carbyne
              help: write shape and strides as tuples, `[(8,8):(1,8)]`
        "#]],
    );
    check(
        "%A:[(8,8):(1,8,3)].f16",
        expect![[r#"
        P0001 2:4 "[(8,8):(1,8,3)]" shape and strides do not match
          2:11 the stride is a tuple of 3
          help: give every mode one stride: `[8:1]`, `[(8,8):(8,1)]`
    "#]],
    );
    check(
        "%A:[(8,8):1].f16",
        expect![[r#"
        P0001 2:4 "[(8,8):1]" shape and strides do not match
          2:11 the stride is a number
          help: give every mode one stride: `[8:1]`, `[(8,8):(8,1)]`
    "#]],
    );
    check(
        "%A:[8].f16.SH{swizle=(3,4,3)}",
        expect![[r#"
            P0001 2:15 "swizle" expected a type attribute or `}`, found `swizle`
              help: did you mean `swizzle`?
        "#]],
    );
    check(
        "%A:[8].f16.SH{swizzle=(3,4)}",
        expect![[r#"
            P0001 2:27 ")" expected an operator or `,`, found `)`
              help: write it as `swizzle=(3,4,3)`
        "#]],
    );
    check(
        "%A:[8].f16.SH{swizzle=(3,4,4294967296)}",
        expect![[r#"
            no error
        "#]],
    );
    check(
        "%A:[8].f16.RF{tv=(4,8) over #w}",
        expect![[r#"
            P0001 2:24 "over" expected an operator or `:`, found `over`
              help: write it as `tv=((4,8),2):((2,8),1) over #cta`
        "#]],
    );
    check(
        "%A:[8].f16.RF{tv=4:8}",
        expect![[r#"
            P0001 2:21 "}" expected `over` or an operator, found `}`
              help: write it as `tv=((4,8),2):((2,8),1) over #cta`
        "#]],
    );
    check(
        "%a = A",
        expect![[r#"
            no error
        "#]],
    );
    check(
        "%a = %A.tiel([8])",
        expect![[r#"
            P0001 2:9 "tiel" expected `tile`, `reshape`, `transpose`, `permute`, `iota`, `mine`,
                `tv`, `scalar`, `elect`, `tensormap` or `peer`, found `tiel`
              help: did you mean `tile`?
        "#]],
    );
    check(
        "%a = %A.tile(8)",
        expect![[r#"
            P0001 2:14 "8" expected `[`, `_` or `)`, found `8`
              help: write tiles as `.tile([8,_])`, strided ones as `.tile([2:2], _)`
        "#]],
    );
    check(
        "%a = %A.tile([8], [4:1])",
        expect![[r#"
            P0001 2:16 "]" expected an operator, `,` or `:`, found `]`
              help: write tiles as `.tile([8,_])`, strided ones as `.tile([2:2], _)`
        "#]],
    );
    check(
        "%a = %A.reshape([8])",
        expect![[r#"
            P0001 2:20 ")" expected `:`, found `)`
              help: write a reshape as `.reshape([2,2]:[2,1])`
        "#]],
    );
    check(
        "%a = %A.frob()",
        expect![[r#"
            P0001 2:9 "frob" expected `tile`, `reshape`, `transpose`, `permute`, `iota`, `mine`,
                `tv`, `scalar`, `elect`, `tensormap` or `peer`, found `frob`
              help: write a tensor as `%A:[8,8].f16.GL`, a view as `%a = %A.tile([8,8])[0, 0]`
        "#]],
    );
    check(
        "%a = %A.mines",
        expect![[r#"
            P0001 2:9 "mines" expected `tile`, `reshape`, `transpose`, `permute`, `iota`, `mine`,
                `tv`, `scalar`, `elect`, `tensormap` or `peer`, found `mines`
              help: did you mean `mine`?
        "#]],
    );
    check(
        "%a = %A[",
        expect![[r#"
            P0001 2:9 "" expected `_`, a number, a tensor such as `%A` or `]`, found the end of the
                text
              help: write a tensor as `%A:[8,8].f16.GL`, a view as `%a = %A.tile([8,8])[0, 0]`
        "#]],
    );
    check(
        "%a = %A[(1,2)]",
        expect![[r#"
            P0001 2:9 "(1,2)" expected a number, found a tuple
              help: write one number; tuples are allowed in shapes, strides and tile sizes
        "#]],
    );
}
