//! Tests that fused loops compute the same as the statements in their original order. A small
//! interpreter executes random loops over integers.

use super::*;
use crate::cpp::ast::Declare;
use crate::cpp::ast::{Assign, Binary, Piece};
use crate::cpp::print;
use carbyne_ir::testing;
use proptest::prelude::*;

fn array(name: &str, ty: &'static str, n: i64) -> Stmt {
    Stmt::new(StmtKind::Declare(Declare {
        align: None,
        ty: Type::named(ty),
        name: name.to_owned().into(),
        array: Some(n),
        init: None,
        droppable: false,
    }))
}

fn name(text: &str) -> Expr {
    Expr::name(text.to_owned())
}

fn element(of: &str, i: Expr) -> Expr {
    name(of).at(i)
}

fn fixed_element(of: &str, i: i64) -> Expr {
    element(of, Expr::Int(i))
}

/// `to = a + b;`
fn sum(to: Expr, a: Expr, b: Expr) -> Stmt {
    let pieces = vec![
        Piece::Operand(to),
        Piece::Text(" = "),
        Piece::Operand(a),
        Piece::Text(" + "),
        Piece::Operand(b),
        Piece::Text(";"),
    ];
    Stmt { alone: true, ..Stmt::new(StmtKind::Filled(pieces)) }
}

fn unrolled(from: i64, to: i64, body: Vec<Stmt>) -> Stmt {
    Stmt::new(StmtKind::For(For {
        pragma: Some(UNROLL),
        ty: Type::named("int"),
        var: "i".into(),
        start: Expr::Int(from),
        end: Expr::Int(to),
        also: None,
        step: 1,
        body,
    }))
}

/// Executes statements over integers.
#[derive(Default, Clone, PartialEq, Debug)]
struct Machine {
    values: HashMap<(String, i64), i64>,
    vars: HashMap<String, i64>,
}

impl Machine {
    fn eval(&self, e: &Expr) -> i64 {
        match e {
            Expr::Int(n) => *n,
            Expr::Name(n) => self.vars[n.as_ref()],
            Expr::Index(of, i) => {
                let Expr::Name(of) = &**of else { panic!("{of:?}") };
                self.values.get(&(of.to_string(), self.eval(i))).copied().unwrap_or(7)
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.eval(a), self.eval(b));
                match op {
                    Binary::Add => a + b,
                    Binary::Sub => a - b,
                    Binary::Mul => a * b,
                    Binary::Div => a / b,
                    Binary::Rem => a % b,
                    Binary::Lt => i64::from(a < b),
                    _ => panic!("{op:?}"),
                }
            }
            _ => panic!("{e:?}"),
        }
    }

    fn set(&mut self, to: &Expr, value: i64) {
        let Expr::Index(of, i) = to else { panic!("{to:?}") };
        let Expr::Name(of) = &**of else { panic!("{of:?}") };
        self.values.insert((of.to_string(), self.eval(i)), value);
    }

    fn run(&mut self, stmts: &[Stmt]) {
        for s in stmts {
            match &s.kind {
                StmtKind::Filled(p) => {
                    let [Piece::Operand(to), _, Piece::Operand(a), _, Piece::Operand(b), _] =
                        &p[..]
                    else {
                        panic!("{p:?}")
                    };
                    // The operation is not commutative, so the order of accumulation shows.
                    let value = (self.eval(a) * 31 + self.eval(b)) % 1_000_003;
                    self.set(to, value);
                }
                StmtKind::For(f) => {
                    let (mut i, end) = (self.eval(&f.start), self.eval(&f.end));
                    while i < end {
                        self.vars.insert(f.var.to_string(), i);
                        self.run(&f.body);
                        i += f.step;
                    }
                    self.vars.remove(f.var.as_ref());
                }
                StmtKind::If { cond, then, otherwise } => {
                    let taken = if self.eval(cond) != 0 { then } else { otherwise };
                    self.run(taken);
                }
                StmtKind::Block(b) => self.run(b),
                StmtKind::Assign { to, op: Assign::Set, value } => {
                    let value = self.eval(value);
                    self.set(to, value);
                }
                StmtKind::Declare(_) | StmtKind::Comment(_) | StmtKind::Line { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

/// An operand of a random statement: an array, and the index as a factor of the loop variable and
/// an offset.
fn operand() -> impl Strategy<Value = (usize, i64, i64)> {
    (0usize..6, prop_oneof![Just(1i64), Just(1), Just(1), Just(-1), Just(0)], 0i64..2)
}

/// The last array is only read.
const ARRAYS: [&str; 7] = ["a", "b", "c", "s", "t", "G", "X"];

fn place((array, factor, offset): (usize, i64, i64), n: i64) -> Expr {
    let i = || name("i");
    let at = match (array, factor) {
        // Small arrays have two elements.
        (3 | 4, _) => Expr::Int(offset),
        (_, 1) => i().binary(Binary::Add, Expr::Int(offset)),
        (_, -1) => Expr::Int(n - 1).binary(Binary::Sub, i()),
        _ => Expr::Int(offset),
    };
    element(ARRAYS[array], at)
}

proptest! {
    #![proptest_config(testing::config(3000))]

    /// Fused loops compute the same as the original ones.
    #[test]
    fn the_order_of_dependent_statements_is_kept(
        all in prop::collection::vec(((operand(), operand(), operand()), 0u8..11, 0i64..2), 2..9),
        halves in any::<bool>(),
    ) {
        const N: i64 = 32;
        let mut stmts: Vec<Stmt> =
            ARRAYS[..3].iter().map(|a| array(a, "float", N + 1)).collect();
        stmts.extend([array("s", "float", 2), array("t", "float", 2)]);
        for ((to, a, b), kind, from) in all {
            // Some statements read only memory that nothing writes.
            let (a, b) = if kind > 7 { ((6, a.1, a.2), (6, b.1, b.2)) } else { (a, b) };
            let one = sum(place(to, N), place(a, N), place(b, N));
            let fixed = |s: &Stmt| {
                let mut s = s.clone();
                each_mut(&mut s, &mut |e| substitute(e, &"i".into(), &Expr::Int(from)));
                s
            };
            stmts.push(match kind {
                0 => fixed(&one),
                1 => Stmt::new(StmtKind::Block(vec![unrolled(from, N, vec![one])])),
                2 => Stmt::new(StmtKind::Block(vec![
                    array("o", "float", 1),
                    unrolled(from, N, vec![one.clone()]),
                    sum(fixed_element("o", 0), fixed_element("s", 0), fixed_element("a", 1)),
                    sum(fixed_element("t", 0), fixed_element("o", 0), fixed_element("s", 1)),
                ])),
                3 => {
                    let cond = name("i").binary(Binary::Lt, Expr::Int(N - 3));
                    let kept = StmtKind::If { cond, then: vec![one], otherwise: vec![] };
                    unrolled(from, N, vec![Stmt { alone: true, ..Stmt::new(kept) }])
                }
                4 if halves => unrolled(from, N / 2, vec![one]),
                _ => unrolled(from, N, vec![one]),
            });
        }
        let mut together = stmts.clone();
        let whole = Whole { var: "part".into(), leaves: true };
        statements(&mut together, &Scope::default(), &whole);
        let (mut apart, mut after) = (Machine::default(), Machine::default());
        apart.run(&stmts);
        after.run(&together);
        prop_assert_eq!(&apart.values, &after.values, "{}", print::statements(&together));
    }
}

fn printed(mut stmts: Vec<Stmt>) -> String {
    fuse(&mut stmts);
    print::statements(&stmts)
}

#[test]
fn loops_are_fused_part_by_part() {
    let i = || name("i");
    let text = printed(vec![
        array("a", "float", 16),
        array("s", "float", 1),
        unrolled(0, 16, vec![sum(element("a", i()), element("X", i()), Expr::Int(1))]),
        sum(element("s", Expr::Int(0)), element("a", Expr::Int(0)), Expr::Int(0)),
        unrolled(
            1,
            16,
            vec![sum(element("s", Expr::Int(0)), element("s", Expr::Int(0)), element("a", i()))],
        ),
        unrolled(0, 16, vec![sum(element("Y", i()), element("a", i()), Expr::Int(2))]),
    ]);
    assert_eq!(
        text.trim(),
        "float a[16];\nfloat s[1];\n\
         #pragma unroll\nfor (int i = 0; i < 4; i += 1) {\n  a[i] = X[i] + 1;\n}\n\
         s[0] = a[0] + 0;\n\
         #pragma unroll\nfor (int i = 1; i < 4; i += 1) {\n  s[0] = s[0] + a[i];\n}\n\
         #pragma unroll\nfor (int i = 0; i < 4; i += 1) {\n  Y[i] = a[i] + 2;\n}\n\
         #pragma unroll\nfor (int i = 4; i < 8; i += 1) {\n  a[i] = X[i] + 1;\n}\n\
         #pragma unroll\nfor (int part = 1; part < 4; part += 1) {\n  if (part + 1 < 4) {\n    \
         #pragma unroll\n    for (int i = part * 4 + 4; i < part * 4 + 4 + 4; i += 1) {\n      \
         a[i] = X[i] + 1;\n    }\n  }\n  \
         #pragma unroll\n  for (int i = part * 4; i < part * 4 + 4; i += 1) {\n    \
         s[0] = s[0] + a[i];\n  }\n  \
         #pragma unroll\n  for (int i = part * 4; i < part * 4 + 4; i += 1) {\n    \
         Y[i] = a[i] + 2;\n  }\n}",
    );
}

/// Loads of memory that nothing writes come one part before their use; computed values do not.
#[test]
fn loads_come_a_part_ahead() {
    let i = || name("i");
    let text = printed(vec![
        array("a", "float", 16),
        array("b", "float", 16),
        array("c", "float", 16),
        unrolled(0, 16, vec![sum(element("a", i()), element("X", i()), Expr::Int(0))]),
        unrolled(0, 16, vec![sum(element("b", i()), element("a", i()), Expr::Int(1))]),
        unrolled(0, 16, vec![sum(element("a", i()), element("X", i()), Expr::Int(3))]),
        unrolled(0, 16, vec![sum(element("c", i()), element("a", i()), element("b", i()))]),
        unrolled(0, 16, vec![sum(element("Y", i()), element("c", i()), Expr::Int(2))]),
    ]);
    let next = text.split("if (part + 1 < 4) {").nth(1).and_then(|t| t.split("\n  }\n").next());
    let first = |t: &str| t.contains("a[i] = X[i] + 0") && t.matches(';').count() == 3;
    assert!(next.is_some_and(first), "{text}");
}

#[test]
fn loops_that_read_across_parts_are_not_fused() {
    let i = || name("i");
    let back = Expr::Int(15).binary(Binary::Sub, i());
    let stmts = vec![
        array("a", "float", 16),
        array("b", "float", 16),
        unrolled(0, 16, vec![sum(element("a", i()), element("X", i()), Expr::Int(1))]),
        unrolled(0, 16, vec![sum(element("b", i()), element("a", back), Expr::Int(1))]),
    ];
    assert_eq!(printed(stmts.clone()), print::statements(&stmts));
}

/// A pointer into a tensor points to the tensor's memory.
#[test]
fn accesses_through_pointers_are_found() {
    let (i, zero) = (|| name("i"), || Expr::Int(0));
    let address = Expr::call("computed", [element("Y", name("l")).address()]);
    let mut stmts = vec![
        array("r", "float", 16),
        array("q", "float", 16),
        array("s", "float", 1),
        Stmt::variable(Type::pointer("float", false), "Y_at", address),
        unrolled(0, 16, vec![sum(element("r", i()), element("X", i()), zero())]),
        unrolled(0, 16, vec![sum(element("Y_at", i()), element("r", i()), zero())]),
        sum(element("s", zero()), element("Y", Expr::Int(3)), zero()),
        unrolled(0, 16, vec![sum(element("q", i()), element("s", zero()), element("r", i()))]),
        unrolled(0, 16, vec![sum(element("Z", i()), element("q", i()), zero())]),
    ];
    statements(&mut stmts, &Scope::default(), &Whole { var: "part".into(), leaves: true });
    let text = print::statements(&stmts);
    assert!(text.find("Y_at[i] =") < text.find("s[0] = Y[3]"), "{text}");
}
