//! Tests that typical texts are parsed and printed as expected: line breaks, parentheses, comments,
//! and every word of the grammar's tables.

use carbyne_ir::ast::{BinOp, BinaryOp, CmpOp, Dims, Expr, Module, Name, ReduceOp, ShflOp, Stmt};
use carbyne_ir::ast::{StmtKind, ThreadScalar, ThreadType, TupleExpr, UnaryOp, Unroll};
use carbyne_ir::scalar::{Memory, Scalar};
use carbyne_ir::span::Span;
use carbyne_ir::text::{parse, print};
use carbyne_ir::tuple::IntTuple;
use expect_test::{Expect, expect};

fn check(text: &str, printed: Expect) {
    let module = parse(text).unwrap_or_else(|e| panic!("{e:#?}"));
    let once = print(&module);
    printed.assert_eq(&once);
    let again = parse(&once).unwrap_or_else(|e| panic!("{e:#?}\n{once}"));
    assert_eq!(again, module);
    assert_eq!(print(&again), once);
}

#[test]
fn every_statement() {
    check(
        "// head
carbyne 2
// comment
let M = 256, N = 2 * M
sym K{min=64, max=4096, div=64}

%A:[M,K].f16.GL
%B:[(K,N):(1,K)].f16.GL{align=16} // trailing
#grid:[(2,2):(1,2)].block
#cta:[128].thread
MatMul.set @gemm <<<#grid, #cta>>> (%A, %B) -> (%C) acc=f32 tile=(96,160,16) { // open

  @bm, @bn = #grid.indices()
  #w:[2,2].[32].thread = #cta.tile([32]).reshape([2,2]:[2,1])

  // above
  %t:[2,2].[8,8].f16.SH = %1.tile([8,8])
  %u = %A.tile([2:2], _, [(2,2):(1,4)])[@bm, _, 3]
  Allocate %As:[128,32].f16.SH{?}
  Allocate %acc:[128,128].f32.RF{tv=((4,8),(2,2)):((16,1),(8,64)) over #cta}
  Init <<<#grid, #cta.scalar()>>> (0.0) -> (%acc.mine)
  for (k = 0; k < K / 32; k += 1) unroll {
    Move <<<#grid, #cta>>> (%u) // inside
      -> (%As) atom=cp.async.16
    async.commit
    async.wait(0)
    barrier
    // footer
  } // behind
  if (@bm < 1 && k == 0) { barrier(#w) } else { let Q = (M + 1) * 2 - (3 - k % 2) }
}
// end",
        expect![[r#"
            // head
            carbyne 2
            // comment
            let M = 256, N = 2 * M
            sym K{min=64, max=4096, div=64}

            %A:[M,K].f16.GL
            %B:[(K,N):(1,K)].f16.GL{align=16} // trailing
            #grid:[(2,2):(1,2)].block
            #cta:[128].thread
            MatMul.set @gemm <<<#grid, #cta>>> (%A, %B) -> (%C) acc=f32 tile=(96,160,16) { // open
              @bm, @bn = #grid.indices()
              #w:[2,2].[32].thread = #cta.tile([32]).reshape([2,2]:[2,1])

              // above
              %t:[2,2].[8,8].f16.SH = %1.tile([8,8])
              %u = %A.tile([2:2], _, [(2,2):(1,4)])[@bm, _, 3]
              Allocate %As:[128,32].f16.SH{?}
              Allocate %acc:[128,128].f32.RF{tv=((4,8),(2,2)):((16,1),(8,64)) over #cta}
              Init <<<#grid, #cta.scalar()>>> (0.0) -> (%acc.mine)
              for (k = 0; k < K / 32; k += 1) unroll {
                // inside
                Move <<<#grid, #cta>>> (%u) -> (%As) atom=cp.async.16
                async.commit
                async.wait(0)
                barrier
                // footer
                // behind
              }
              if (@bm < 1 && k == 0) {
                barrier(#w)
              } else {
                let Q = (M + 1) * 2 - (3 - k % 2)
              }
            }
            // end
        "#]],
    );
}

#[test]
fn long_heads_break_at_operands() {
    check(
        "carbyne 2
Spec () -> () {
  MatMul.set @a_kernel_with_a_name <<<#grid.tile([2,2])[0, 1], #cta.tile([32])>>> (%A, %B) \
    -> (%C) a=1
  Move <<<#grid.tile([2,2])[0, 1], #cta.tile([32]).reshape([2,2]:[2,1])>>> (%A) \
    -> (%C) acc=f32 tile=(96,160,16) {
  }
  Spec <<<#g, #c>>> (%an_operand_with_a_name.tile([64,64])[@bm, _], %other.tile([64,64])[_, @bn], \
    %C) -> (%D) acc=f32 atom=mma.m16n8k16.f32.f16 tile=(96,160,16) where=a.word.of.parts \
    more=another.long.word stages=4 order=(1,0) {
  }
  %view_with_a_long_name:[(2,2):(1,2)].[(8,8):(8,1)].f16.SH = \
    %As.tile([2:2], _, [(2,2):(1,4)]).reshape([2,2]:[2,1])
  let first = 1000000 + 2000000 * third, second = 1000000 + 2000000 * third, \
    third = ceil_div(1000000, 2000000)
  for (iterator = first * second; iterator < first * second + 1000000; \
    iterator += ceil_div(first, second)) nounroll {
  }
  if (first * second + 1000000 < third && second % 2000000 == third - 1 && \
    ceil_div(first, second) >= third) {
  }
}
",
        expect![[r#"
            carbyne 2
            Spec () -> () {
              MatMul.set @a_kernel_with_a_name <<<#grid.tile([2,2])[0, 1], #cta.tile([32])>>>
                  (%A, %B)
                  -> (%C) a=1
              Move <<<#grid.tile([2,2])[0, 1], #cta.tile([32]).reshape([2,2]:[2,1])>>>
                  (%A)
                  -> (%C) acc=f32 tile=(96,160,16) {
              }
              Spec <<<#g, #c>>>
                  (%an_operand_with_a_name.tile([64,64])[@bm, _], %other.tile([64,64])[_, @bn], %C)
                  -> (%D) acc=f32 atom=mma.m16n8k16.f32.f16 tile=(96,160,16) where=a.word.of.parts
                  more=another.long.word stages=4 order=(1,0) {
              }
              %view_with_a_long_name:[(2,2):(1,2)].[(8,8):(8,1)].f16.SH =
                  %As.tile([2:2], _, [(2,2):(1,4)]).reshape([2,2]:[2,1])
              let first = 1000000 + 2000000 * third, second = 1000000 + 2000000 * third,
                  third = ceil_div(1000000, 2000000)
              for (iterator = first * second; iterator < first * second + 1000000;
                  iterator += ceil_div(first, second)) nounroll {
              }
              if (first * second + 1000000 < third && second % 2000000 == third - 1 &&
                  ceil_div(first, second) >= third) {
              }
            }
        "#]],
    );
}

#[test]
fn parentheses_are_as_few_as_can_be() {
    check(
        "carbyne 2
let a = ((1 + (2)) + 3), b = 1 + (2 + 3), c = (1 * 2) + 3, d = 1 * (2 + 3), e = 1 - (2 - 3) - 4
let f = (8 / 4) / 2, g = 8 / (4 / 2), h = 8 % (4 * 2), i = min((1 + 2), (max(3, 4))), j = (((k)))
%t:[(1 + M) * 2, (1, (M)), (), (M + 1)].f16
Spec () -> () x=(3) y=k % 3 z=(k) w=@k
",
        expect![[r#"
            carbyne 2
            let a = 1 + 2 + 3, b = 1 + (2 + 3), c = 1 * 2 + 3, d = 1 * (2 + 3), e = 1 - (2 - 3) - 4
            let f = 8 / 4 / 2, g = 8 / (4 / 2), h = 8 % (4 * 2), i = min(1 + 2, max(3, 4)), j = k
            %t:[(1 + M) * 2,(1,(M)),(),(M + 1)].f16
            Spec () -> () x=(3) y=k % 3 z=(k) w=@k
        "#]],
    );
}

#[test]
fn levels_and_layouts() {
    check(
        "carbyne 2
%a:[].[8].[8,(2,2)].[8:1].[(8):(1)].[(8,8):(8,1)].[((8,8)):((8,1))].[():()].f16
%b = %a.reshape((2,2):(1,2)).reshape([4]:[1]).reshape(4:1)
%c = %b.tile().tile([]).tile(_).tile([_])[]
",
        expect![[r#"
            carbyne 2
            %a:[].[8].[8,(2,2)].[8:1].[8:1].[(8,8):(8,1)].[((8,8)):((8,1))].[():()].f16
            %b = %a.reshape([2,2]:[1,2]).reshape([4]:[1]).reshape(4:1)
            %c = %b.tile().tile([]).tile(_).tile([_])[]
        "#]],
    );
}

#[test]
fn comments_and_empty_lines() {
    check(
        "//no blank
//   three blanks

carbyne 2 // behind the version


// above

// above, too
let a = 1 // behind
barrier barrier // behind the last on its line
//
if (a < b) // behind the condition
{ // behind the brace

  // in an empty body
} // behind the first brace
// above else
else // behind else
{ // behind the second brace
  barrier } // at the very end",
        expect![[r#"
            // no blank
            //   three blanks
            // behind the version
            carbyne 2

            // above
            // above, too
            let a = 1 // behind
            barrier
            barrier // behind the last on its line
            //
            // behind the condition
            if (a < b) { // behind the brace
              // in an empty body
              // behind the first brace
              // above else
              // behind else
            } else {
              // behind the second brace
              barrier
              // at the very end
            }
        "#]],
    );
}

#[test]
fn every_word_of_every_table() {
    let mut text = String::from("carbyne 2\n");
    let mut line = |s: String| text.push_str(&(s + "\n"));
    Scalar::ALL.iter().for_each(|s| line(format!("%a:[8].{s}")));
    Memory::ALL.iter().for_each(|m| line(format!("%a:[8].f16.{m}")));
    ThreadScalar::ALL.iter().for_each(|s| line(format!("#a:[8].{s}")));
    UnaryOp::ALL.iter().for_each(|op| line(format!("UnaryPointwise.{op} () -> ()")));
    BinaryOp::ALL.iter().for_each(|op| line(format!("BinaryPointwise.{op} () -> ()")));
    ReduceOp::ALL.iter().for_each(|op| line(format!("Reduction.{op} () -> ()")));
    ShflOp::ALL.iter().for_each(|op| line(format!("Shfl.{op} () -> ()")));
    for word in ["Move", "MatMul", "MatMul.set", "Init", "Spec"] {
        line(format!("{word} () -> ()"));
    }
    for op in BinOp::ALL {
        match op {
            BinOp::Min | BinOp::Max | BinOp::CeilDiv => line(format!("let x = {op}(a, b)")),
            _ => line(format!("let x = a {op} b")),
        }
    }
    CmpOp::ALL.iter().for_each(|op| line(format!("if (a {op} b) {{\n}}")));
    for unroll in Unroll::ALL {
        let gap = if *unroll == Unroll::Default { "" } else { " " };
        line(format!("for (k = 0; k < 8; k += 1){gap}{unroll} {{\n}}"));
    }
    let module = parse(&text).expect("all words are known");
    assert_eq!(print(&module), text);
}

#[test]
fn spans_name_their_words() {
    let text = "carbyne 2
Move @copy <<<#g, #c>>> (%a.tile([8]) // comment
  ) -> (%b ) acc = f32 // behind
{ // brace
  let x = (M + 1) // comment
      * 2
  %v:[8] .f16 = %a [ 3 ]
}
";
    let module = parse(text).expect("right");
    let word = |span: Span| &text[span.start as usize..span.end as usize];
    let StmtKind::Spec(spec) = &module.items[0].kind else { panic!("a spec") };
    assert!(
        word(module.items[0].span).starts_with("Move @copy")
            && word(module.items[0].span).ends_with('}')
    );
    assert!(word(spec.span).starts_with("Move @copy") && word(spec.span).ends_with("acc = f32"));
    assert_eq!(spec.name.as_ref().map(|n| word(n.span)), Some("@copy"));
    assert_eq!(word(spec.outputs[0].span), "%b");
    assert_eq!(word(spec.attrs[0].name.span), "acc");
    let body = spec.body.as_ref().expect("a body");
    let StmtKind::Let(bindings) = &body.stmts[0].kind else { panic!("a let") };
    assert_eq!(word(bindings[0].0.span), "x");
    assert_eq!(word(bindings[0].1.span), "(M + 1) // comment\n      * 2");
    let StmtKind::DataDef { ty: Some(ty), view, .. } = &body.stmts[1].kind else {
        panic!("a view")
    };
    assert_eq!(word(ty.span), "[8] .f16");
    assert_eq!(word(view.span), "%a [ 3 ]");
}

/// Trees that no text produces, printed as texts with the same meaning.
#[test]
fn numbers_below_zero_print_as_differences() {
    let value = Expr::bin(BinOp::Sub, Expr::int(1), Expr::int(-3));
    let binding = (Name::new("x"), value);
    let least = (Name::new("y"), Expr::int(i64::MIN));
    let levels = vec![Dims {
        modes: vec![TupleExpr::constant(&IntTuple::Leaf(-3)), TupleExpr::Leaf(Expr::int(2))],
        strides: None,
        span: Span::default(),
    }];
    let ty = ThreadType { levels, scalar: ThreadScalar::Block, span: Span::default() };
    let name = Name::new("t");
    let module = Module {
        header: vec!["two\nlines".to_owned()],
        items: vec![
            Stmt::new(StmtKind::Let(vec![binding, least])),
            Stmt::new(StmtKind::ThreadDecl { name, ty }),
        ],
        footer: vec![],
    };
    let text = print(&module);
    expect![[r#"
        // two
        // lines
        carbyne 2
        let x = 1 - (0 - 3), y = 0 - 9223372036854775807 - 1
        #t:[0 - 3,2].block
    "#]]
    .assert_eq(&text);
    assert_eq!(print(&parse(&text).expect("prints what parses")), text);
}
