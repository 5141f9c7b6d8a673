//! Compares symbolic arithmetic with brute force. For all values of the variables, a simplified
//! expression has the value of the original one, and its range and divisor hold. Simplifying twice
//! has no further effect.

use carbyne_ir::expr::{Dim, ExprArena, Node, VarId, VarInfo};
use carbyne_ir::leaf::{Decision, Leaf};
use carbyne_ir::testing;
use proptest::prelude::*;

/// An expression before simplification.
#[derive(Clone, Debug)]
enum Raw {
    Var(usize),
    Const(i64),
    Op(Op, Box<Raw>, Box<Raw>),
}

#[derive(Copy, Clone, Debug)]
enum Op {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    CeilDiv,
    Min,
    Max,
}

fn apply<L: Leaf>(cx: &L::Cx, op: Op, a: L, b: L) -> Option<L> {
    match op {
        Op::Add => L::add(cx, a, b),
        Op::Sub => L::sub(cx, a, b),
        Op::Mul => L::mul(cx, a, b),
        Op::Div => L::div(cx, a, b),
        Op::Rem => L::rem(cx, a, b),
        Op::CeilDiv => L::ceil_div(cx, a, b),
        Op::Min => <L as Leaf>::min(cx, a, b),
        Op::Max => <L as Leaf>::max(cx, a, b),
    }
    .ok()
}

fn value(raw: &Raw, at: &[i64]) -> Option<i64> {
    match raw {
        Raw::Var(v) => Some(at[*v]),
        Raw::Const(c) => Some(*c),
        Raw::Op(op, a, b) => apply::<i64>(&(), *op, value(a, at)?, value(b, at)?),
    }
}

fn build(arena: &ExprArena, vars: &[Dim], raw: &Raw) -> Option<Dim> {
    match raw {
        Raw::Var(v) => Some(vars[*v]),
        Raw::Const(c) => Some(Dim::Const(*c)),
        Raw::Op(op, a, b) => {
            apply::<Dim>(arena, *op, build(arena, vars, a)?, build(arena, vars, b)?)
        }
    }
}

/// Rebuilds the expression from its parts.
fn rebuild(arena: &ExprArena, dim: Dim) -> Option<Dim> {
    let Dim::Expr(id) = dim else { return Some(dim) };
    let (op, a, b) = match arena.node(id) {
        Node::Var(_) => return Some(dim),
        Node::Linear { terms, constant } => {
            let mut total = Dim::Const(constant);
            for &(term, coef) in terms.iter() {
                let term = rebuild(arena, Dim::Expr(term))?;
                total = arena.add(total, arena.mul(term, Dim::Const(coef)).ok()?).ok()?;
            }
            return Some(total);
        }
        Node::Mul(a, b) => (Op::Mul, a, b),
        Node::Div(a, b) => (Op::Div, a, b),
        Node::Mod(a, b) => (Op::Rem, a, b),
        Node::CeilDiv(a, b) => (Op::CeilDiv, a, b),
        Node::Min(a, b) => (Op::Min, a, b),
        Node::Max(a, b) => (Op::Max, a, b),
    };
    apply(arena, op, rebuild(arena, a)?, rebuild(arena, b)?)
}

fn raw() -> impl Strategy<Value = Raw> {
    let constant = prop_oneof![-3i64..20, Just(4), Just(8), Just(16)];
    let leaf = prop_oneof![3 => (0usize..3).prop_map(Raw::Var), 2 => constant.prop_map(Raw::Const)];
    let op = prop_oneof![
        3 => Just(Op::Add), 1 => Just(Op::Sub), 3 => Just(Op::Mul), 4 => Just(Op::Div),
        4 => Just(Op::Rem), 1 => Just(Op::CeilDiv), 1 => Just(Op::Min), 1 => Just(Op::Max),
    ];
    let join = |op, a, b| Raw::Op(op, Box::new(a), Box::new(b));
    let factor = prop_oneof![Just(2i64), Just(3), Just(4), Just(6), Just(8), Just(16), Just(32)];
    let scale = prop_oneof![Just(Op::Mul), Just(Op::Div), Just(Op::Rem)];
    leaf.prop_recursive(6, 32, 2, move |inner| {
        // Index arithmetic consists mostly of sums of scaled digits; other operations are rare.
        prop_oneof![
            4 => (scale.clone(), inner.clone(), factor.clone())
                .prop_map(move |(op, a, k)| join(op, a, Raw::Const(k))),
            3 => (inner.clone(), inner.clone()).prop_map(move |(a, b)| join(Op::Add, a, b)),
            2 => (op.clone(), inner.clone(), inner).prop_map(move |(op, a, b)| join(op, a, b)),
        ]
    })
}

fn infos() -> impl Strategy<Value = Vec<VarInfo>> {
    let info = (-2i64..4, 0i64..7, prop_oneof![Just(1i64), Just(2), Just(4), Just(8)]).prop_map(
        |(lo, more, div)| {
            let hi = Some(lo * div + more * div);
            VarInfo { name: String::new(), lo: lo * div, hi, div }
        },
    );
    prop::collection::vec(info, 3).prop_map(|mut infos| {
        for (info, name) in infos.iter_mut().zip(["x", "y", "z"]) {
            info.name = name.to_owned();
        }
        infos
    })
}

fn arena_of(infos: &[VarInfo]) -> (ExprArena, Vec<Dim>) {
    let arena = ExprArena::new();
    let vars = infos.iter().map(|info| arena.var(info.clone()).unwrap()).collect();
    (arena, vars)
}

fn for_all(infos: &[VarInfo], mut f: impl FnMut(&[i64; 3])) {
    let values = |info: &VarInfo| {
        let step = info.div as usize;
        (info.lo..=info.hi.unwrap()).step_by(step).collect::<Vec<_>>()
    };
    for &x in &values(&infos[0]) {
        for &y in &values(&infos[1]) {
            for &z in &values(&infos[2]) {
                f(&[x, y, z]);
            }
        }
    }
}

fn eval(arena: &ExprArena, vars: &[Dim], dim: Dim, at: &[i64]) -> Option<i64> {
    let ids: Vec<VarId> = vars.iter().map(|&v| arena.var_id(v).unwrap()).collect();
    let found = |var| ids.iter().position(|&id| id == var).map(|at_var| at[at_var]);
    arena.eval(dim, &found).ok()
}

proptest! {
    #![proptest_config(testing::config(3000))]

    #[test]
    fn simplification_is_exact(raw in raw(), infos in infos()) {
        let (arena, vars) = arena_of(&infos);
        let dim = build(&arena, &vars, &raw);
        let mut wrong = None;
        for_all(&infos, |at| {
            let Some(want) = value(&raw, at) else { return };
            let got = dim.and_then(|dim| eval(&arena, &vars, dim, at));
            if got != Some(want) {
                wrong = Some((*at, want, got));
            }
        });
        let text = dim.map(|dim| arena.display(dim));
        prop_assert!(wrong.is_none(), "{text:?}: at, want, got {wrong:?}");
    }

    #[test]
    fn ranges_and_divisors_hold(raw in raw(), infos in infos()) {
        let (arena, vars) = arena_of(&infos);
        let Some(dim) = build(&arena, &vars, &raw) else { return Ok(()) };
        let ((lo, hi), div) = (arena.range(dim), arena.divisor(dim));
        let mut wrong = None;
        for_all(&infos, |at| {
            let Some(v) = eval(&arena, &vars, dim, at) else { return };
            let divides = if div == 0 { v == 0 } else { v % div == 0 };
            if !divides || lo.is_some_and(|lo| v < lo) || hi.is_some_and(|hi| v > hi) {
                wrong = Some((*at, v));
            }
        });
        let text = arena.display(dim);
        prop_assert!(wrong.is_none(), "{text} in {lo:?}..={hi:?}, {div}: {wrong:?}");
    }

    #[test]
    fn simplification_is_idempotent_and_text_is_stable(raw in raw(), infos in infos()) {
        let (arena, vars) = arena_of(&infos);
        let Some(dim) = build(&arena, &vars, &raw) else { return Ok(()) };
        let text = arena.display(dim);
        let again = rebuild(&arena, dim).map(|dim| arena.display(dim));
        prop_assert_eq!(Some(&text), again.as_ref());
        let (other, vars) = arena_of(&infos);
        let same = build(&other, &vars, &raw).map(|dim| other.display(dim));
        prop_assert_eq!(Some(&text), same.as_ref());
    }

    #[test]
    fn decisions_hold(a in raw(), b in raw(), infos in infos()) {
        let (arena, vars) = arena_of(&infos);
        let (Some(x), Some(y)) = (build(&arena, &vars, &a), build(&arena, &vars, &b)) else {
            return Ok(());
        };
        let decided = [
            Dim::lt(&arena, x, y),
            <Dim as Leaf>::eq(&arena, x, y),
            Dim::divides(&arena, x, y),
        ];
        let mut wrong = None;
        for_all(&infos, |at| {
            let (Some(p), Some(q)) = (value(&a, at), value(&b, at)) else { return };
            let truth = [p < q, p == q, i64::divides(&(), p, q).is_true()];
            for (decision, truth) in decided.iter().zip(truth) {
                if matches!(decision, Decision::Known(answer) if *answer != truth) {
                    wrong = Some((*at, p, q));
                }
            }
        });
        prop_assert!(wrong.is_none(), "{decided:?}: {wrong:?}");
    }
}

/// An arena with `tid` below 256, `i` below 1024, sizes `M` and `N`, and `K`, a multiple of 64.
struct Names {
    arena: ExprArena,
}

impl Names {
    fn new() -> (Self, [Dim; 5]) {
        let arena = ExprArena::new();
        let tid = arena.var(VarInfo::index("tid", 256)).unwrap();
        let i = arena.var(VarInfo::index("i", 1024)).unwrap();
        let m = arena.var(VarInfo::size("M")).unwrap();
        let n = arena.var(VarInfo::size("N")).unwrap();
        let k = arena.var(VarInfo { div: 64, ..VarInfo::size("K") }).unwrap();
        (Names { arena }, [tid, i, m, n, k])
    }
    fn add(&self, a: Dim, b: Dim) -> Dim {
        self.arena.add(a, b).unwrap()
    }
    fn mul(&self, a: Dim, b: impl Into<Dim>) -> Dim {
        self.arena.mul(a, b.into()).unwrap()
    }
    fn div(&self, a: Dim, b: impl Into<Dim>) -> Dim {
        self.arena.div(a, b.into()).unwrap()
    }
    fn rem(&self, a: Dim, b: impl Into<Dim>) -> Dim {
        self.arena.rem(a, b.into()).unwrap()
    }
    fn is(&self, dim: Dim, text: &str) {
        assert_eq!(self.arena.display(dim), text);
    }
}

#[test]
fn known_simplifications() {
    let (e, [tid, i, m, n, k]) = Names::new();
    e.is(e.rem(tid, 256), "tid");
    e.is(e.div(tid, 256), "0");
    e.is(e.div(e.div(i, 4), 8), "i/32");
    e.is(e.rem(e.rem(i, 64), 8), "i % 8");
    e.is(e.div(e.rem(i, 64), 8), "i/8 % 8");
    let (low, high) = (e.rem(tid, 8), e.div(tid, 8));
    e.is(e.add(e.mul(high, 8), low), "tid");
    e.is(e.add(e.mul(e.rem(high, 2), 8), low), "tid % 16");
    let three = e.add(e.mul(e.rem(high, 4), 8), e.mul(e.div(tid, 32), 32));
    e.is(e.add(three, low), "tid");
    e.is(e.div(e.add(e.mul(i, 16), low), 16), "i");
    e.is(e.rem(e.add(e.mul(i, 16), low), 16), "tid % 8");
    e.is(e.div(e.add(e.mul(i, 8), low), 16), "i/2");
    e.is(e.rem(e.add(e.mul(i, 8), low), 16), "tid % 8 + i % 2*8");
    e.is(e.mul(e.div(k, 64), 64), "K");
    e.is(e.rem(k, 32), "0");
    e.is(e.arena.ceil_div(k, Dim::Const(64)).unwrap(), "K/64");
    e.is(e.arena.ceil_div(m, Dim::Const(64)).unwrap(), "(M + 63)/64");
    let flat = e.add(e.mul(m, n), e.rem(i, n));
    e.is(e.div(flat, n), "M");
    e.is(e.rem(flat, n), "i % N");
    e.is(e.add(e.mul(e.div(i, n), n), e.rem(i, n)), "i");
    e.is(e.mul(e.add(m, 1.into()), n), "N + M*N");
    e.is(e.arena.sub(i, e.mul(e.div(i, 8), 8)).unwrap(), "i % 8");
    e.is(e.arena.min(i, tid).unwrap(), "min(tid, i)");
    e.is(e.arena.min(tid, Dim::Const(256)).unwrap(), "tid");
}

#[test]
fn substitution_simplifies() {
    let (e, [tid, i, m, n, _]) = Names::new();
    let index = e.add(e.mul(e.div(i, n), n), e.add(tid, m));
    let vars: Vec<usize> = e.arena.vars_of(index).iter().map(|var| var.index()).collect();
    assert_eq!(vars, [0, 1, 2, 3]);
    let is_n = |var| Some(var) == e.arena.var_id(n);
    let put = e.arena.substitute(index, &|var| is_n(var).then_some(Dim::Const(8))).unwrap();
    e.is(put, "tid + M + i/8*8");
}

#[test]
fn missing_facts_are_named() {
    let (e, [_, i, m, _, k]) = Names::new();
    let fact = |decision| match decision {
        Decision::Needs(fact) => fact.to_string(),
        Decision::Known(answer) => answer.to_string(),
    };
    assert_eq!(fact(Dim::divides(&e.arena, Dim::Const(128), k)), "K % 128 == 0");
    assert_eq!(fact(Dim::divides(&e.arena, Dim::Const(64), k)), "true");
    let sum = e.add(m, 1.into());
    assert_eq!(fact(Dim::divides(&e.arena, Dim::Const(2), sum)), "(M + 1) % 2 == 0");
    assert_eq!(fact(Dim::lt(&e.arena, i, m)), "i < M");
    assert_eq!(fact(<Dim as Leaf>::eq(&e.arena, m, k)), "M == K");
}

#[test]
fn limits_are_errors() {
    let arena = ExprArena::new();
    let x = arena.var(VarInfo::size("x")).unwrap();
    let mut grown = x;
    let error = loop {
        let Ok(next) = arena.min(grown, x) else { break None };
        grown = match arena.mul(next, x).and_then(|p| arena.rem(p, Dim::Const(97))) {
            Ok(next) => next,
            Err(error) => break Some(error.code()),
        };
    };
    assert!(matches!(error, Some("L0106" | "L0107")));
    let huge = arena.mul(x, Dim::Const(i64::MAX)).unwrap();
    assert_eq!(arena.mul(huge, Dim::Const(2)).unwrap_err().code(), "L0102");
    let id = arena.var_id(x);
    let at_two = arena.eval(huge, &|var| (Some(var) == id).then_some(2));
    assert_eq!(at_two.unwrap_err().code(), "L0102");
    assert_eq!(arena.div(x, Dim::Const(0)).unwrap_err().code(), "L0111");
    let empty = VarInfo { name: "e".into(), lo: 1, hi: Some(7), div: 8 };
    assert_eq!(arena.var(empty).unwrap_err().code(), "L0113");
    let bounds = VarInfo { name: "w".into(), lo: i64::MIN, hi: Some(i64::MAX), div: 1 };
    let wide = arena.var(bounds).unwrap();
    for op in [ExprArena::add, ExprArena::sub, ExprArena::mul, ExprArena::div, ExprArena::rem] {
        for v in [i64::MIN, -1, 0, 1, i64::MAX] {
            let _ = op(&arena, wide, Dim::Const(v)).map(|dim| arena.display(dim));
            let _ = op(&arena, Dim::Const(v), wide).map(|dim| arena.display(dim));
            let _ = op(&arena, Dim::Const(v), Dim::Const(-1));
        }
    }
}
