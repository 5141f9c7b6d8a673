//! Tests modules that Rust code builds: they print as a person would write them, and errors name
//! the place in the source program.

use carbyne_ir::ast::{
    BinaryOp, CmpOp, Expr, Key, Module, Name, ReduceOp, Spec, SpecKind, Stmt, StmtKind, SyncOp,
    ThreadScalar, TypeAttr, View, ViewOp,
};
use carbyne_ir::build::statements::*;
use carbyne_ir::build::{Builder, Compute, Num, Tensor, Value, exp};
use carbyne_ir::diag::{Code, Diagnostics};
use carbyne_ir::layout::Layout;
use carbyne_ir::resolve::elaborate;
use carbyne_ir::scalar::{Memory, Scalar};
use carbyne_ir::text;

/// A row of a softmax for each block.
fn softmax(scale: f64) -> Result<Builder, Diagnostics> {
    let mut m = Builder::new();
    let n = m.constant("N", 64);
    let (x, y) = (m.tensor("X", (32, &n), Scalar::F32), m.tensor("Y", (32, &n), Scalar::F16));
    m.kernel("softmax", [("i", 32)], 32, &[&x], &[&y], |k, [i]| {
        let row = k.copy("row", &x.tile((1, &n)).at((&i, 0)), Memory::Rf);
        let max = k.compute("max", row.reduce(ReduceOp::Max, 1));
        let p = k.compute("p", exp((&row - &max) * (Value::from(scale) * 1.0)));
        let sum = k.compute("sum", p.reduce(ReduceOp::Sum, 1));
        k.store(&y.tile((1, &n)).at((&i, 0)), (&p / &sum).cast(Scalar::F16));
    })?;
    Ok(m)
}

#[test]
fn a_kernel_prints_as_a_person_writes_it() {
    let module = softmax(0.125).unwrap().finish().unwrap();
    expect_test::expect![[r#"
        carbyne 2
        let N = 64
        %X:[32,N].f32.GL
        %Y:[32,N].f16.GL
        Spec @softmax <<<#grid:[@i < 32], #cta:[32]>>> (%X) -> (%Y) {
          %row:RF = move(%X.tile([1,N])[@i, 0])
          %max = max(%row, axis=1)
          %p = exp((%row - %max) * (0.125 * 1))
          %sum = sum(%p, axis=1)
          %Y.tile([1,N])[@i, 0] = cast(%p / %sum, f16)
        }
    "#]]
    .assert_eq(&text::print(&module));
    let src = text::print(&module);
    assert_eq!(text::parse(&src).unwrap(), module);
    elaborate(&module, &src).unwrap();
}

#[test]
fn every_statement_can_be_written() {
    let mut m = Builder::new();
    let a = m.tensor("A", [64, 64], Scalar::F16);
    let b = m.tensor("B", [64, 64], Scalar::F32);
    let alpha = m.scalar("alpha", Scalar::F32);
    let n = m.symbol("n", 64);
    let long = m.tensor("L", (n.clone(), 64), Scalar::F32);
    m.spec(SpecKind::MatMulSet, "gemm", &[&a, &a], &b, vec![word(Key::Acc, "f32")]).unwrap();
    m.kernel("all", [("i", n / 64)], 128, &[&a, &b, &long], &[&b], |k, [i]| {
        let tiles = k.constant("tiles", Num::from(64) / 32 * 2 - 2);
        let tile = k.view("tile", &b.tile([64, 64]).at([0, 0]));
        let shared = k.allocate("shared", [64, 32], Scalar::F16, Memory::Sh);
        let acc = k.fill("acc", [64, 64], Scalar::F32, Num::real(-0.5));
        k.staged(2, "k", &tiles, |k, step| {
            k.store(&shared, a.tile([64, 32]).at((0, &step)));
            k.matmul_add(&shared, &a.tile([32, 64]).at((&step, 0)), &acc);
            k.barrier();
        });
        let own = k.copy("own", &tile, Memory::Rf);
        let lower = own.iota(0).compare(BinaryOp::Le, own.iota(1));
        let masked = k.compute("masked", lower.select(&own + &acc, 0));
        k.repeat("r", 2, |k, r| {
            k.when(r + &i, CmpOp::Lt, 1, |k| {
                k.by(None, &[&masked], &[&tile], |k| k.store(&tile, &masked * 2.0));
            });
        });
        let _ = alpha;
    })
    .unwrap_or_else(|e| panic!("{e:#?}"));
    let module = m.finish().unwrap();
    let src = text::print(&module);
    assert_eq!(text::parse(&src).unwrap(), module, "{src}");
}

#[test]
fn errors_quote_the_text_and_name_their_origin() {
    let mut m = Builder::new();
    let a = m.tensor("A", [64, 64], Scalar::F32);
    let wrong = m.kernel("f", [("i", 2)], 32, &[&a], &[&a], |k, [i]| {
        k.loc("model.py:7");
        let x = k.copy("x", &a.tile([0, 64]).at((&i, 0)), Memory::Rf);
        k.store(&a.tile([0, 64]).at((&i, 0)), &x);
    });
    let errors = wrong.unwrap_err();
    let first = errors.iter().next().unwrap();
    assert_eq!(first.code, Code::TileDivides);
    assert!(
        first.notes.iter().any(|n| n.contains("in `%x:RF = move(%A.tile([0,64])[@i, 0]")),
        "{first:?}"
    );
    assert!(
        first.notes.iter().any(|n| n == "comes from model.py:7 (`loc=` of this spec)"),
        "{first:?}"
    );
    // The module is unchanged, and accepts further kernels.
    m.kernel("g", [("i", 1)], 32, &[&a], &[&a], |k, _| {
        let x = k.copy("x", &a, Memory::Rf);
        k.store(&a, &x + &x);
    })
    .unwrap();
    assert_eq!(m.finish().unwrap().items.len(), 2);
}

#[test]
fn what_cannot_be_written_is_an_error() {
    let mut m = Builder::new();
    let wrong = m.tensor("no name", [8], Scalar::F32);
    let errors = m.kernel("f", [("i", 1)], 32, &[&wrong], &[&wrong], |_, _| {}).unwrap_err();
    assert_eq!(errors.iter().next().unwrap().code, Code::Syntax);
    assert!(m.finish().is_err());
    let twice = {
        let mut m = Builder::new();
        m.tensor("A", [8], Scalar::F32);
        m.tensor("A", [8], Scalar::F32);
        m.finish().unwrap_err()
    };
    assert_eq!(twice.iter().next().unwrap().code, Code::Redefined);
    let unknown =
        Builder::new().kernel("f", [("i", i64::MIN)], 32, &[&Tensor::of("x")], &[], |_, _| {});
    assert!(unknown.is_err());
}

/// Statements without short forms print and parse to the same tree.
#[test]
fn statements_of_version_1_say_all_that_they_mean() {
    let exec = |threads: &str| (View::of("grid"), View::of(threads));
    let (t, gl) = (|| Num::of("@t"), Some(Memory::Gl));
    let line = Layout::new(16, 1).unwrap();
    let pairs: Layout = "(4,8):(8,1)".parse().unwrap();
    let full = || View::of("full");
    let one = |e: i64| Some(Expr::int(e));
    let own = Tensor::of("x").then(ViewOp::Tv(layout_expr(&line), Name::new("cta")));
    let waits = sync(SyncOp::MbarrierWait, Some(full()), one(0));
    let body = vec![
        stated_threads("one", &[&[]], ThreadScalar::Thread, View::of("cta").then(ViewOp::Scalar)),
        stated_threads(
            "w",
            &[&[2], &[16]],
            ThreadScalar::Thread,
            Tensor::of("cta").tile([16]).into(),
        ),
        indices(&["@t"], View::of("cta")),
        allocation(
            "x",
            laid_out(&pairs),
            Scalar::F16,
            Memory::Sh,
            vec![TypeAttr::Align(Expr::int(128))],
        ),
        allocation(
            "y",
            laid_out(&line),
            Scalar::F16,
            Memory::Sh,
            vec![TypeAttr::Swizzle(Expr::swizzle(1, 4, 3))],
        ),
        plain("r", &[1], Scalar::F16, Memory::Rf),
        plain("full", &[1], Scalar::Mbarrier, Memory::Sh),
        define("z", View::of("x").then(reshape(&pairs.modes()))),
        within(
            &exec("one"),
            vec![View::of("A")],
            vec![full()],
            vec![
                sync(SyncOp::MbarrierInit, Some(full()), one(32)),
                sync(SyncOp::FenceAsync, None, None),
            ],
        ),
        barrier(None),
        barrier(Some(Tensor::of("w").at([0]).into())),
        when((t() % 2).into_expr(), CmpOp::Lt, Expr::int(1), vec![waits]),
        spec(SpecKind::Init, Some(both(&exec("one"))), vec![literal("1.5")], View::of("r"), vec![]),
        leaf(
            SpecKind::Move,
            &exec("one"),
            vec![View::of("A")],
            own.into(),
            vec![
                view(Key::Bar, full()),
                value(Key::Valid, (t() % 3).into_expr()),
                number(Key::Multicast, 3),
                word(Key::Cache, "normal"),
            ],
        ),
    ];
    let items = vec![
        tensor("A", &[4, 8], Scalar::F16, gl),
        tensor("alpha", &[], Scalar::F32, None),
        declare("grid", dims(&[1], false), ThreadScalar::Block),
        declare("cta", dims(&[32], false), ThreadScalar::Thread),
        Stmt::new(StmtKind::Spec(Spec {
            name: Some(Name::new("all")),
            exec: Some(both(&exec("cta"))),
            body: Some(block(body)),
            ..Spec::new(SpecKind::Generic)
        })),
    ];
    let module = Module { header: vec![], items, footer: vec![] };
    let src = text::print(&module);
    expect_test::expect![[r#"
        carbyne 2
        %A:[4,8].f16.GL
        %alpha:[].f32
        #grid:[1].block
        #cta:[32].thread
        Spec @all <<<#grid, #cta>>> () -> () {
          #one:[].thread = #cta.scalar()
          #w:[2].[16].thread = #cta.tile([16])
          @t = #cta.indices()
          Allocate %x:[(4,8):(8,1)].f16.SH{align=128}
          Allocate %y:[16:1].f16.SH{swizzle=(1,4,3)}
          Allocate %r:[1].f16.RF
          Allocate %full:[1].mbarrier.SH
          %z = %x.reshape([4,8]:[8,1])
          Spec <<<#grid, #one>>> (%A) -> (%full) {
            mbarrier.init(%full, 32)
            fence.async
          }
          barrier
          barrier(#w[0])
          if (@t % 2 < 1) {
            mbarrier.wait(%full, 0)
          }
          Init <<<#grid, #one>>> (1.5) -> (%r)
          Move <<<#grid, #one>>>
              (%A)
              -> (%x.tv(16:1 over #cta)) bar=%full valid=@t % 3 multicast=3 cache=normal
        }
    "#]]
    .assert_eq(&src);
    assert_eq!(text::parse(&src).unwrap(), module);
}
