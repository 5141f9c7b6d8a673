//! Tests invalid and oversized inputs: texts that are too long or too deep, arbitrary bytes, and
//! trees that no text can express. Each gives a coded error or a module, and never a panic.

use carbyne_ir::ast::{
    Attr, AttrValue, BinOp, Block, CmpOp, Compare, Dims, Exec, Expr, LayoutExpr, Module, Name,
    Number, Operand, Spec, SpecKind, Stmt, StmtKind, SymDecl, SyncArg, SyncOp, TensorType,
    ThreadScalar, ThreadType, Tiler, TupleExpr, TypeAttr, Unroll, View, ViewOp,
};
use carbyne_ir::diag::Code;
use carbyne_ir::limits::{MAX_ERRORS, MAX_EXPR_OPERATORS, MAX_NESTING, MAX_TEXT_BYTES};
use carbyne_ir::resolve::resolve;
use carbyne_ir::scalar::{Memory, Scalar};
use carbyne_ir::span::Span;
use carbyne_ir::text::{parse, parse_bytes, print, well_formed};

/// A text of the maximal length: `head`, repetitions of `unit`, `tail`.
fn fill(head: &str, unit: &str, tail: &str) -> String {
    let n = (MAX_TEXT_BYTES - head.len() - tail.len()) / unit.len();
    format!("{head}{}{tail}", unit.repeat(n))
}

/// The code and place of the first error.
fn first_error(text: &str) -> (Code, (usize, usize)) {
    let errors = parse(text).expect_err("the text is wrong").into_vec();
    assert!(errors.len() <= MAX_ERRORS);
    for e in &errors {
        assert!(e.span.start <= e.span.end && e.span.end as usize <= text.len(), "{e:?}");
        assert!(e.message.len() < 300, "{e:?}");
    }
    (errors[0].code, errors[0].span.line_col(text))
}

/// Pseudo-random bytes, equal in every run.
fn noise(n: usize) -> impl Iterator<Item = u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    (0..n).map(move |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    })
}

#[test]
fn length() {
    let longest = fill("carbyne 2\n", " ", "");
    assert_eq!(longest.len(), MAX_TEXT_BYTES);
    assert!(parse(&longest).is_ok());
    let longer = longest + " ";
    let errors = parse(&longer).expect_err("one byte too long").into_vec();
    assert_eq!(errors[0].code, Code::TextTooLong);
    assert_eq!(errors[0].span.start as usize, MAX_TEXT_BYTES);
    let errors = parse_bytes(longer.as_bytes()).expect_err("one byte too long").into_vec();
    assert_eq!(errors[0].code, Code::TextTooLong);
}

#[test]
fn bytes() {
    let errors = parse_bytes(b"carbyne 2\nlet \xff = 3").expect_err("not UTF-8").into_vec();
    assert_eq!((errors[0].code, errors[0].span.start), (Code::NotUtf8, 14));
    assert_eq!(first_error("carbyne 2\nlet \0 = 3"), (Code::NulByte, (2, 5)));
    assert_eq!(first_error("carbyne 2\n// in a comment \0"), (Code::NulByte, (2, 17)));
    let random: Vec<u8> = noise(MAX_TEXT_BYTES).collect();
    assert!(parse_bytes(&random).is_err());
    assert!(parse_bytes(&vec![0; MAX_TEXT_BYTES]).is_err());
    let printable: String = noise(MAX_TEXT_BYTES).map(|b| char::from(b' ' + b % 95)).collect();
    assert_eq!(first_error(&printable).0, Code::Version);
    let signs = b"%#@()[]{}:=,.01aM+-*/<>\n _";
    for seed in [2, 3, 5] {
        let signs: String =
            noise(seed * 40_000).map(|b| char::from(signs[usize::from(b) % signs.len()])).collect();
        assert!(parse(&format!("carbyne 2\n{signs}")).is_err());
    }
}

#[test]
fn nesting() {
    let column = MAX_NESTING + 1;
    for bracket in ["(", "[", "{"] {
        assert_eq!(first_error(&fill("carbyne 2\n", bracket, "")), (Code::TooDeep, (2, column)));
        assert_eq!(first_error(&fill("", bracket, "")), (Code::TooDeep, (1, column)));
    }
    assert_eq!(first_error(&fill("carbyne 2\n", "%a:[", "")), (Code::TooDeep, (2, 4 * column)));
    assert_eq!(first_error(&fill("carbyne 2\n", "min(1,", "")).0, Code::TooDeep);
    assert_eq!(first_error(&fill("carbyne 2\n", "if (a < b) {\n", "")).0, Code::TooDeep);
    // Brackets in comments do not count, and unmatched closing brackets are harmless.
    assert!(parse(&fill("carbyne 2\n//", "(", "")).is_ok());
    assert_eq!(first_error(&fill("carbyne 2\n", "(}", "")).0, Code::Syntax);
    assert_eq!(first_error(&fill("carbyne 2\n", "if (a < b) { ] ", "")).0, Code::Syntax);
    assert_eq!(first_error(&fill("carbyne 2\n$", "{)", "")).0, Code::Syntax);
    assert_eq!(first_error(&fill("carbyne 2\n", "}", "")).0, Code::Syntax);
}

#[test]
fn the_deepest_nesting_works() {
    let n = MAX_NESTING;
    let deep = [
        format!("let x = {}1{}", "(".repeat(n), ")".repeat(n)),
        format!("let x = {}1{}", "min(1, ".repeat(n), ")".repeat(n)),
        format!("let x = {}1{}", "(1 - ".repeat(n), ")".repeat(n)),
        format!("%A:[{}1{}].f16", "(".repeat(n - 1), ")".repeat(n - 1)),
        format!("{}{}", "if (a < b) {".repeat(n), "}".repeat(n)),
        format!("{}{}", "Spec () -> () {".repeat(n), "}".repeat(n)),
    ];
    for text in deep {
        let module = parse(&format!("carbyne 2\n{text}")).expect("within the limits");
        let printed = print(&module);
        assert_eq!(parse(&printed).as_ref(), Ok(&module));
        assert_eq!(module.clone(), module);
    }
}

#[test]
fn operators() {
    let most = format!("carbyne 2\nlet x = 1{}", " + 1".repeat(MAX_EXPR_OPERATORS));
    let module = parse(&most).expect("as many as allowed");
    assert_eq!(parse(&print(&module)), Ok(module));
    assert_eq!(first_error(&(most + " + 1")), (Code::ExprTooLong, (2, 9)));
    assert_eq!(first_error(&fill("carbyne 2\nlet x = ", "1+", "1")), (Code::ExprTooLong, (2, 9)));
    assert_eq!(first_error(&fill("carbyne 2\nlet x = ", "(1)+", "1")).0, Code::ExprTooLong);
    // Parentheses do not hide operators: each group is below the limit, but their sum exceeds it.
    let group = format!("(1{})", " * 2".repeat(100));
    let text = format!("carbyne 2\nlet x = {group} + {group} + {group}");
    assert_eq!(first_error(&text), (Code::ExprTooLong, (2, 9)));
    // Each element of a tuple is an expression of its own.
    assert!(parse(&format!("carbyne 2\n%A:[{group},{group},{group}].f16")).is_ok());
    assert_eq!(first_error(&fill("carbyne 2\n", "1+", "")), (Code::Syntax, (2, 1)));
}

#[test]
fn long_words_and_lists() {
    assert_eq!(first_error(&fill("carbyne 2\nlet x = ", "9", "")), (Code::Number, (2, 9)));
    assert_eq!(first_error(&fill("carbyne 2\nlet x = ", "9", "a")).0, Code::Syntax);
    for (head, unit, tail) in [
        ("let x = ", "a", ""),
        ("Init (", "9", ") -> ()"),
        ("%A:[", "1,", "1].f16"),
        ("%A:[", "(),", "1].f16"),
        ("%A:", "[].", "f16"),
        ("%a = %b", "[]", ""),
        ("%a = %b", ".mine", ""),
        ("Move () -> ()", " a=b", ""),
        ("Move () -> () a=b", ".b", ""),
        ("let a=1", ",a=1", ""),
        ("let x = (3", "//\n", ")"),
        ("%A:[((((1", " ", ")))) ].f16"),
        ("", "if(a<b){}else{}", ""),
    ] {
        let text = fill(&format!("carbyne 2\n{head}"), unit, tail);
        let module = parse(&text).expect("long, but right");
        assert!(print(&module).ends_with('\n'));
    }
}

#[test]
fn unterminated() {
    for text in [
        "carbyne",
        "carbyne 2 %",
        "carbyne 2 %a:",
        "carbyne 2 %a:[",
        "carbyne 2 %a:[8].",
        "carbyne 2 %a:[8].f16{",
        "carbyne 2 %a = %b.",
        "carbyne 2 %a = %b.tile(",
        "carbyne 2 %a = %b[1,",
        "carbyne 2 Move",
        "carbyne 2 Move <<<",
        "carbyne 2 Move <<<#a, #b",
        "carbyne 2 Move (",
        "carbyne 2 Move (%a) -",
        "carbyne 2 Move (%a) -> (",
        "carbyne 2 Move (%a) -> () x=",
        "carbyne 2 Move (%a) -> () x=1 +",
        "carbyne 2 Move (%a) -> () x=\"",
        "carbyne 2 Move (%a) -> () x=\"a // b",
        "carbyne 2 Spec () -> () {",
        "carbyne 2 for (",
        "carbyne 2 for (k = 0; k < 1; k += 1) {",
        "carbyne 2 if (a < b) {} else",
        "carbyne 2 if (a < b) {} else {",
        "carbyne 2 let",
        "carbyne 2 let x = min(",
        "carbyne 2 sym K{",
        "carbyne 2 @",
        "carbyne 2 @m,",
        "carbyne 2 #",
        "carbyne 2 async",
        "carbyne 2 async.",
        "carbyne 2 Allocate",
        "carbyne 2 barrier(",
        "carbyne 2 let x = 1 %",
        "carbyne 2 /",
    ] {
        for tail in ["", "\n", " // comment", "\u{e9}"] {
            first_error(&format!("{text}{tail}"));
        }
    }
}

// Trees built in memory: those that no text can express are refused, and none overflows the stack.

fn module(items: Vec<StmtKind>) -> Module {
    let items = items.into_iter().map(Stmt::new).collect();
    Module { header: vec![], items, footer: vec![] }
}

fn spec(kind: SpecKind, body: Option<Vec<StmtKind>>) -> Spec {
    let body =
        body.map(|b| Block { stmts: b.into_iter().map(Stmt::new).collect(), footer: vec![] });
    Spec { body, ..Spec::new(kind) }
}

fn layout(shape: TupleExpr, stride: TupleExpr) -> LayoutExpr {
    LayoutExpr { shape, stride, span: Span::default() }
}

fn flat(e: Expr) -> LayoutExpr {
    layout(TupleExpr::Leaf(e), TupleExpr::Leaf(Expr::int(1)))
}

fn dims(modes: Vec<TupleExpr>, strides: Option<Vec<TupleExpr>>) -> Dims {
    Dims { modes, strides, span: Span::default() }
}

fn data(levels: Vec<Dims>, attrs: Vec<TypeAttr>) -> TensorType {
    let (scalar, memory) = (Scalar::F16, Some(Memory::Gl));
    TensorType { levels, scalar, memory, attrs, span: Span::default() }
}

fn attr(key: &str, value: AttrValue) -> StmtKind {
    let mut spec = spec(SpecKind::Move, None);
    spec.attrs = vec![Attr::named(Name::new(key), value)];
    StmtKind::Spec(spec)
}

fn view(ops: Vec<ViewOp>) -> StmtKind {
    let view = View { base: Name::new("A"), ops, span: Span::default() };
    StmtKind::DataDef { name: Name::new("B"), ty: None, view }
}

fn with_type(ty: TensorType) -> StmtKind {
    StmtKind::DataDecl { name: Name::new("A"), ty, range: None }
}

fn one() -> Expr {
    Expr::int(1)
}

fn eight() -> Vec<Dims> {
    vec![dims(vec![TupleExpr::Leaf(Expr::int(8))], None)]
}

/// Checks that a tree is refused exactly if no text can express it. Returns the code of the first
/// error.
fn agrees(m: &Module) -> Option<Code> {
    let errors = well_formed(m).into_vec();
    let printed = print(m);
    assert_eq!(parse(&printed).as_ref() == Ok(m), errors.is_empty(), "{printed}{errors:?}");
    let refused = resolve(m, "").err().is_some_and(|e| e.into_vec() == errors);
    assert!(errors.is_empty() || refused, "{errors:?}");
    for e in &errors {
        assert!(e.help.is_some() && !e.label.is_empty() && e.message.len() < 120, "{e:?}");
    }
    errors.first().map(|e| e.code)
}

/// Makes a statement with a name in a certain place.
type Place<'a> = &'a dyn Fn(&str) -> StmtKind;

#[test]
fn names_of_built_trees() {
    let expr = |n: &str| StmtKind::Let(vec![(Name::new("a"), Expr::name(n))]);
    let threads = |n: &str| Some(Exec::Both(View::of(n), View::of("cta")));
    let places: [(&str, Place<'_>); 23] = [
        ("let", &|n| StmtKind::Let(vec![(Name::new(n), one())])),
        ("expression", &expr),
        ("sum", &|n| {
            let sum = Expr::bin(BinOp::Mul, Expr::bin(BinOp::Add, one(), Expr::name(n)), one());
            StmtKind::Let(vec![(Name::new("a"), sum)])
        }),
        ("sym", &|n| {
            StmtKind::Sym(SymDecl { name: Name::new(n), min: None, max: Some(7), div: None })
        }),
        ("declared tensor", &|n| StmtKind::DataDecl {
            name: Name::new(n),
            ty: data(eight(), vec![]),
            range: None,
        }),
        ("view", &|n| StmtKind::DataDef { name: Name::new(n), ty: None, view: View::of("A") }),
        ("viewed tensor", &|n| StmtKind::DataDef {
            name: Name::new("a"),
            ty: None,
            view: View::of(n),
        }),
        ("declared threads", &|n| StmtKind::ThreadDecl {
            name: Name::new(n),
            ty: ThreadType { levels: eight(), scalar: ThreadScalar::Thread, span: Span::default() },
        }),
        ("threads", &|n| StmtKind::ThreadDef {
            name: Name::new(n),
            ty: None,
            view: View::of("cta"),
        }),
        ("index", &|n| StmtKind::Indices { names: vec![Name::new(n)], threads: View::of("cta") }),
        ("allocated", &|n| StmtKind::Allocate { name: Name::new(n), ty: data(eight(), vec![]) }),
        ("kernel", &|n| {
            StmtKind::Spec(Spec { name: Some(Name::new(n)), ..spec(SpecKind::Move, None) })
        }),
        ("executor", &|n| StmtKind::Spec(Spec { exec: threads(n), ..spec(SpecKind::Move, None) })),
        ("output", &|n| {
            StmtKind::Spec(Spec { outputs: vec![View::of(n)], ..spec(SpecKind::Move, None) })
        }),
        ("key", &|n| attr(n, AttrValue::Word("f32".into()))),
        ("word", &|n| attr("acc", AttrValue::Word(n.into()))),
        ("bar", &|n| attr("bar", AttrValue::View(View::of(n)))),
        ("text", &|n| attr("loc", AttrValue::Text(n.into()))),
        ("loop", &|n| StmtKind::For {
            var: Name::new(n),
            start: Expr::int(0),
            end: one(),
            also: vec![],
            step: one(),
            unroll: Unroll::Default,
            stages: None,
            body: Block::default(),
        }),
        ("tv", &|n| with_type(data(eight(), vec![TypeAttr::Tv(flat(one()), Name::new(n))]))),
        ("reuses", &|n| with_type(data(eight(), vec![TypeAttr::Reuses(Name::new(n))]))),
        (".tv", &|n| view(vec![ViewOp::Tv(flat(one()), Name::new(n))])),
        ("number", &|n| {
            let number = Operand::Number(Number { text: n.into(), span: Span::default() });
            StmtKind::Spec(Spec { inputs: vec![number], ..spec(SpecKind::Init, None) })
        }),
    ];
    let names = [
        "", " ", "a b", "%a", "#a", "@a", "@", "@@a", "@_", "@1", "a%", "1a", "12", "_", "__",
        "a.b", "a.", ".a", "1.5", "-1", "-1.5e-7", "1e", "1.", "+1", "0x1", "é", "a\n", "a//b",
        "a\0", "let", "sym", "for", "if", "else", "min", "ceil_div", "carbyne", "Move", "Spec",
        "barrier", "async", "inf", "-inf", "nan", "-nan", "over", "tile", "f16", "GL", "thread",
        "unroll", "tv", "A9_z", "\"", "a\"b", "a\\", "(", "}//",
    ];
    for (place, make) in places {
        let refused: Vec<&str> =
            names.into_iter().filter(|n| agrees(&module(vec![make(n)])).is_some()).collect();
        // A text in quotes accepts more than any name.
        let all = place != "text";
        assert!(refused.contains(&"a\0") && refused.contains(&"a\n"), "{place}: {refused:?}");
        assert!(!all || refused.contains(&"a b") && refused.contains(&""), "{place}: {refused:?}");
        // The text must not merge with a statement that follows.
        for n in names {
            agrees(&module(vec![make(n), expr("b"), make(n)]));
        }
    }
}

#[test]
fn lists_and_numbers_of_built_trees() {
    let (leaf, pair) = (
        || TupleExpr::Leaf(Expr::int(4)),
        || TupleExpr::Tuple(vec![TupleExpr::Leaf(one()), TupleExpr::Leaf(one())]),
    );
    let sym = |min| StmtKind::Sym(SymDecl { name: Name::new("n"), min, max: None, div: None });
    let index = |e: Expr| view(vec![ViewOp::Index(vec![Some(e)])]);
    let typed = |d: Dims| with_type(data(vec![d], vec![]));
    let good = [
        StmtKind::Let(vec![(Name::new("a"), one()), (Name::new("b"), one())]),
        sym(Some(0)),
        index(Expr::int(i64::MAX)),
        typed(dims(vec![], None)),
        typed(dims(vec![], Some(vec![]))),
        typed(dims(vec![leaf()], Some(vec![leaf()]))),
        typed(dims(vec![leaf()], Some(vec![pair()]))),
        typed(dims(vec![pair(), leaf()], Some(vec![leaf(), pair()]))),
        attr("tile", AttrValue::Tuple(pair())),
        attr("tile", AttrValue::Tuple(TupleExpr::Leaf(Expr::name("@i")))),
        attr("tile", AttrValue::Tuple(TupleExpr::Tuple(vec![]))),
        view(vec![ViewOp::Tile(Tiler::Modes(vec![]))]),
        view(vec![ViewOp::Reshape(layout(pair(), leaf()))]),
        StmtKind::Sync { op: SyncOp::ALL[0], args: vec![SyncArg::Number(one())] },
        StmtKind::Spec(spec(SpecKind::Generic, Some(vec![]))),
    ];
    for stmt in good {
        assert_eq!(agrees(&module(vec![stmt])), None);
    }
    let bad = [
        StmtKind::Let(vec![]),
        sym(Some(-1)),
        index(Expr::int(-1)),
        index(Expr::int(i64::MIN)),
        with_type(data(vec![], vec![])),
        typed(dims(vec![leaf()], Some(vec![]))),
        typed(dims(vec![leaf(), leaf()], Some(vec![pair()]))),
        attr("tile", AttrValue::Tuple(TupleExpr::Leaf(Expr::name("n")))),
        StmtKind::Indices { names: vec![], threads: View::of("cta") },
        StmtKind::If { cond: vec![], then: Block::default(), otherwise: None },
    ];
    for stmt in bad {
        assert_eq!(agrees(&module(vec![stmt.clone()])), Some(Code::Syntax), "{stmt:?}");
    }
    let comment = Module { header: vec!["a\0b".to_owned()], ..module(vec![]) };
    assert_eq!(agrees(&comment), Some(Code::NulByte));
}

/// Applies `f` `n` times.
fn times<T>(n: usize, first: T, f: impl Fn(T) -> T) -> T {
    (0..n).fold(first, |t, _| f(t))
}

/// Statements that nest `n` levels deep, by the nested construct.
fn nested(n: usize) -> Vec<(&'static str, StmtKind)> {
    let let_a = |e| StmtKind::Let(vec![(Name::new("a"), e)]);
    let block = |s: StmtKind| Block { stmts: vec![Stmt::new(s)], footer: vec![] };
    let compare = || Compare { lhs: one(), op: CmpOp::Lt, rhs: one() };
    let name = || Name::new("k");
    let tuple = || times(n, TupleExpr::Leaf(one()), |t| TupleExpr::Tuple(vec![t]));
    let right = || times(n, one(), |e| Expr::bin(BinOp::Sub, one(), e));
    let min = || times(n, one(), |e| Expr::bin(BinOp::Min, one(), e));
    vec![
        ("right", let_a(right())),
        (
            "mixed",
            let_a(times(n, one(), |e| {
                Expr::bin(BinOp::Mul, Expr::bin(BinOp::Add, one(), e), one())
            })),
        ),
        ("min", let_a(min())),
        ("index", view(vec![ViewOp::Index(vec![Some(min())])])),
        ("tile", view(vec![ViewOp::Tile(Tiler::Sizes(vec![Some(right())]))])),
        ("tiles", view(vec![ViewOp::Tile(Tiler::Modes(vec![Some(layout(tuple(), tuple()))]))])),
        ("reshape", view(vec![ViewOp::Reshape(layout(tuple(), tuple()))])),
        ("peer", view(vec![ViewOp::Peer(min())])),
        (
            "map",
            view(vec![ViewOp::TensorMap {
                sizes: vec![min()],
                swizzle: Some(Expr::swizzle(1, 2, 3)),
            }]),
        ),
        ("view tv", view(vec![ViewOp::Tv(layout(tuple(), tuple()), name())])),
        ("tuple", attr("tile", AttrValue::Tuple(tuple()))),
        ("type", with_type(data(vec![dims(vec![tuple()], None)], vec![]))),
        ("strides", with_type(data(vec![dims(vec![tuple()], Some(vec![tuple()]))], vec![]))),
        ("align", with_type(data(eight(), vec![TypeAttr::Align(min())]))),
        ("tv", with_type(data(eight(), vec![TypeAttr::Tv(layout(tuple(), tuple()), name())]))),
        ("sync", StmtKind::Sync { op: SyncOp::ALL[0], args: vec![SyncArg::Number(min())] }),
        (
            "spec",
            times(n, let_a(one()), |s| {
                StmtKind::Spec(Spec { body: Some(block(s)), ..spec(SpecKind::Generic, None) })
            }),
        ),
        (
            "for",
            times(n, let_a(one()), |s| StmtKind::For {
                var: name(),
                start: one(),
                end: one(),
                also: vec![],
                step: one(),
                unroll: Unroll::Full,
                stages: None,
                body: block(s),
            }),
        ),
        (
            "if",
            times(n, let_a(one()), |s| StmtKind::If {
                cond: vec![compare()],
                then: block(s),
                otherwise: Some(Block::default()),
            }),
        ),
        (
            "else",
            times(n, let_a(one()), |s| StmtKind::If {
                cond: vec![compare()],
                then: Block::default(),
                otherwise: Some(block(s)),
            }),
        ),
        (
            "elect",
            times(n, view(vec![ViewOp::Elect]), |s| {
                StmtKind::Spec(Spec { body: Some(block(s)), ..spec(SpecKind::Generic, None) })
            }),
        ),
        (
            "operand",
            times(n, StmtKind::Barrier(Some(View::of("cta"))), |s| {
                StmtKind::Spec(Spec { body: Some(block(s)), ..spec(SpecKind::Generic, None) })
            }),
        ),
        (
            "swizzle",
            times(
                n,
                with_type(data(eight(), vec![TypeAttr::Swizzle(Expr::swizzle(1, 2, 3))])),
                |s| StmtKind::Spec(Spec { body: Some(block(s)), ..spec(SpecKind::Generic, None) }),
            ),
        ),
    ]
}

#[test]
fn built_trees_nest_as_deep_as_texts() {
    let mut refused = 0;
    for n in MAX_NESTING - 4..=MAX_NESTING + 2 {
        for (what, stmt) in nested(n) {
            let code = agrees(&module(vec![stmt]));
            let mixed = what == "mixed" && code == Some(Code::ExprTooLong);
            assert!(code.is_none_or(|c| c == Code::TooDeep) || mixed, "{what}: {code:?}");
            assert!(n <= MAX_NESTING + 1 || code.is_some(), "{what} {n}");
            refused += usize::from(code.is_some());
        }
    }
    assert!(refused > 40);
    let sum = |n| times(n, one(), |e| Expr::bin(BinOp::Add, e, one()));
    let of = |e| module(vec![StmtKind::Let(vec![(Name::new("a"), e)])]);
    assert_eq!(agrees(&of(sum(MAX_EXPR_OPERATORS))), None);
    assert_eq!(agrees(&of(sum(MAX_EXPR_OPERATORS + 1))), Some(Code::ExprTooLong));
}

#[test]
fn built_trees_of_any_depth_are_refused_printed_and_dropped() {
    const DEEP: usize = 50_000;
    for (what, stmt) in nested(DEEP) {
        let module = module(vec![stmt]);
        let errors = resolve(&module, "").map(drop).expect_err("too deep").into_vec();
        let codes = [Code::TooDeep, Code::ExprTooLong];
        assert!(codes.contains(&errors[0].code), "{what}: {errors:?}");
        if matches!(what, "right" | "min" | "tuple" | "if" | "else") {
            // The indentation of lines is bounded.
            assert!(print(&module).len() < DEEP * 1000, "{what}");
        }
    }
    let sum = times(DEEP, one(), |e| Expr::bin(BinOp::Add, e, one()));
    let sum = module(vec![StmtKind::Let(vec![(Name::new("a"), sum)])]);
    let errors = resolve(&sum, "").map(drop).expect_err("too long").into_vec();
    assert_eq!(errors[0].code, Code::ExprTooLong);
    assert_eq!(print(&sum).len(), "carbyne 2\nlet a = 1\n".len() + DEEP * " + 1".len());
    drop(sum);
    // Wide and deep at the same time.
    let wide = times(2000, TupleExpr::Leaf(one()), |t| {
        TupleExpr::Tuple((0..100).map(|_| TupleExpr::Leaf(one())).chain([t]).collect())
    });
    drop(wide);
}

#[test]
fn built_trees_are_no_longer_than_texts() {
    let long = "a".repeat(MAX_TEXT_BYTES);
    for items in [
        vec![StmtKind::Let(vec![(Name::new(long.clone()), one())])],
        vec![view(vec![ViewOp::Mine; MAX_TEXT_BYTES + 1])],
        (0..=MAX_TEXT_BYTES / 64).map(|i| view(vec![ViewOp::Mine; 64 + i % 2])).collect(),
    ] {
        let errors = well_formed(&module(items)).into_vec();
        assert_eq!(errors.first().map(|e| e.code), Some(Code::TextTooLong));
        assert_eq!(errors.len(), 1);
    }
    let comment = Module { footer: vec![long + "a"], ..module(vec![]) };
    assert_eq!(well_formed(&comment).into_vec()[0].code, Code::TextTooLong);
}

#[test]
fn signs_nest_nothing() {
    let declared = "%B:[8].f32.GL\n";
    let around = [
        ("let A = ".to_owned(), "3"),
        ("let A = 2 * ".to_owned(), "3"),
        (format!("{declared}%A = %B["), "3]"),
        (format!("{declared}%A = "), "%B"),
    ];
    for (head, tail) in around {
        for sign in ["-", "- "] {
            let text = format!("carbyne 2\n{head}{}{tail}\n", sign.repeat(200_000));
            let errors = parse(&text).expect_err("too many operators");
            assert!(errors.iter().any(|d| d.code == Code::ExprTooLong), "{head}: {errors}");
        }
    }
}
