//! Tests that the C++ expression of an index has the same value as in the arena. Random expressions
//! are evaluated in the arithmetic of C++: 32-bit unless cast, quotients truncated, overflow an
//! error.

use crate::cpp::ast::{Binary, Expr, Unary};
use crate::index::Indices;
use carbyne_ir::expr::{Dim, ExprArena, VarInfo};
use carbyne_ir::leaf::Leaf;
use carbyne_ir::testing;
use proptest::prelude::*;
use std::collections::HashMap;

/// A value with its type.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Value {
    pub(crate) v: i128,
    pub(crate) wide: bool,
}

pub(crate) fn checked(v: i128, wide: bool) -> Value {
    let fits = if wide { i64::try_from(v).is_ok() } else { i32::try_from(v).is_ok() };
    assert!(fits, "{v} overflows {} bits", if wide { 64 } else { 32 });
    Value { v, wide }
}

/// Evaluates an expression as C++ does.
pub(crate) fn run(e: &Expr, variables: &HashMap<String, Value>) -> Value {
    match e {
        Expr::Name(n) => variables[n.as_ref()],
        Expr::Int(v) => checked((*v).into(), i32::try_from(*v).is_err()),
        Expr::Literal(t) => checked(t.strip_suffix("LL").unwrap().parse().unwrap(), true),
        Expr::Cast(ty, e) => {
            // A narrowed value must fit.
            let wide = ty.name == "long long";
            assert!(wide || ty.name == "int", "{ty:?}");
            checked(run(e, variables).v, wide)
        }
        Expr::Unary(Unary::Neg, e) => {
            let e = run(e, variables);
            checked(-e.v, e.wide)
        }
        Expr::Binary(op, a, b) => {
            let (a, b) = (run(a, variables), run(b, variables));
            let v = match op {
                Binary::Add => a.v + b.v,
                Binary::Sub => a.v - b.v,
                Binary::Mul => a.v * b.v,
                Binary::Div => a.v / b.v,
                Binary::Rem => a.v % b.v,
                _ => panic!("no comparison stands in an index"),
            };
            checked(v, a.wide || b.wide)
        }
        Expr::Call(f, args) => {
            let (a, b) = (run(&args[0], variables), run(&args[1], variables));
            assert_eq!(a.wide, b.wide, "the two arguments of `{f}` have one type");
            let v = match f.as_ref() {
                "min" => a.v.min(b.v),
                "max" => a.v.max(b.v),
                "floor_div" => a.v.div_euclid(b.v),
                "floor_mod" => a.v.rem_euclid(b.v),
                f => panic!("no function `{f}` stands in an index"),
            };
            checked(v, a.wide)
        }
        e => panic!("no {e:?} stands in an index"),
    }
}

/// Ranges of variables. The last three are positive.
const RANGES: [(i64, Option<i64>); 6] = [
    (0, Some(1023)),
    (-8, Some(8)),
    (0, Some(i32::MAX as i64)),
    (1, Some(64)),
    (1, Some(1 << 20)),
    (1, None),
];

proptest! {
    #![proptest_config(testing::config(2000))]

    #[test]
    fn printed_indices_have_the_arenas_value(
        steps in prop::collection::vec((0u8..8, any::<u16>(), any::<u16>(), -70i64..3000), 1..12),
        seeds in prop::collection::vec(any::<u32>(), 6),
    ) {
        let arena = ExprArena::new();
        let mut indices = Indices::new(&arena);
        let mut variables = HashMap::new();
        let mut values = HashMap::new();
        let mut pool = vec![];
        for (i, ((lo, hi), seed)) in RANGES.iter().zip(&seeds).enumerate() {
            let name = format!("v{i}");
            let dim = arena.var(VarInfo { name: name.clone(), lo: *lo, hi: *hi, div: 1 }).unwrap();
            let span = hi.map_or(1 << 24, |hi| hi - lo + 1);
            // Arithmetic overflows at bounds.
            let value = match seed % 3 {
                0 => *lo,
                1 => hi.unwrap_or(lo + span),
                _ => lo + i64::from(*seed) % span,
            };
            let wide = !indices.is_narrow(dim);
            indices.bind(arena.var_id(dim).unwrap(), name.clone(), wide);
            variables.insert(name, Value { v: value.into(), wide });
            values.insert(arena.var_id(dim).unwrap(), value);
            pool.push(dim);
        }
        for (op, a, b, c) in steps {
            let x = pool[a as usize % pool.len()];
            let y = if b % 3 == 0 { Dim::Const(c) } else { pool[b as usize % pool.len()] };
            // Sizes stay far below 64 bits, as `resolve` requires of every index.
            let small = |d: Dim| {
                let (lo, hi) = arena.range(d);
                lo.is_some_and(|l| l > -(1 << 24)) && hi.is_none_or(|h| h < 1 << 31)
            };
            let made = match op {
                0 | 1 => arena.add(x, y),
                2 => arena.sub(x, y),
                3 if small(x) && small(y) => arena.mul(x, y),
                4 => Dim::div(&arena, x, y),
                5 => Dim::rem(&arena, x, y),
                6 => Dim::ceil_div(&arena, x, y),
                7 if c % 2 == 0 => arena.min(x, y),
                _ => arena.max(x, y),
            };
            pool.extend(made);
        }
        let value = |v| values.get(&v).copied();
        for dim in pool {
            let Ok(want) = arena.eval(dim, &value) else { continue };
            let Ok(printed) = indices.print(dim) else { continue };
            let got = run(&printed.expr, &variables);
            prop_assert_eq!(got.v, i128::from(want), "{}", arena.display(dim));
            prop_assert_eq!(got.wide, printed.wide, "{}", arena.display(dim));
        }
    }
}
