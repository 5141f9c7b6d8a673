//! Tests that in every iteration a variable of `carried.rs` has the value of its expression, for
//! drawn starts and trip counts of the loop and an enclosing loop.

use super::kernel::body_of;
use crate::cpp::ast::{Assign, Binary, Expr, Stmt, StmtKind};
use crate::index_laws::{Value, checked, run};
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::program::Program;
use carbyne_ir::testing;
use carbyne_ir::{resolve, text};
use proptest::prelude::*;
use std::collections::HashMap;

/// A ring of `size`, entered at `k + shift + j * far`; the parity starts `flips` later.
#[derive(Clone, Debug)]
struct Ring {
    size: i64,
    shift: i64,
    far: i64,
    flips: i64,
}

fn rings() -> impl Strategy<Value = Vec<Ring>> {
    let ring = (2i64..8, -20i64..20, -5i64..6, 0i64..4);
    let ring = ring.prop_map(|(size, shift, far, flips)| Ring { size, shift, far, flips });
    prop::collection::vec(ring, 1..4)
}

fn program(rings: &[Ring], first: i64, more: i64) -> Program {
    let mut waits = String::new();
    for Ring { size, shift, far, flips } in rings {
        let x = format!("(k + ({shift}) + j * ({far}))");
        waits += &format!("mbarrier.wait(%full[{x} % {size}], ({x} / {size} + {flips}) % 2)\n");
    }
    let text = format!(
        "carbyne 2
sym F{{min=1, max=64}}
sym N{{min=1, max=64}}
%A:[1].f32.GL
Spec @k <<<#grid:[1], #cta:[32]>>> (%A) -> (%A) {{
  Allocate %full:[8].mbarrier.SH
  for (j = 0; j < 3; j += 1) {{
    for (k = F + ({first}); k < N + F + ({more}); k += 1) {{
{waits}    }}
  }}
}}
"
    );
    let module = text::parse(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    resolve::resolve(&module, &text).unwrap_or_else(|e| panic!("{e:?}\n{text}"))
}

/// The stage and parity of each wait, executing the statements as C++ does.
fn waits(stmts: &[Stmt], env: &mut HashMap<String, Value>, out: &mut Vec<(i128, i128)>) {
    for stmt in stmts {
        match &stmt.kind {
            StmtKind::Declare(d) => {
                if let Some(init) = d.init.as_ref().filter(|e| !matches!(e, Expr::Reinterpret(..)))
                {
                    let value = run(init, env);
                    env.insert(d.name.to_string(), value);
                }
            }
            StmtKind::For(f) => {
                let mut k = run(&f.start, env);
                while k.v < run(&f.end, env).v {
                    env.insert(f.var.to_string(), k);
                    waits(&f.body, env, out);
                    k = checked(k.v + i128::from(f.step), k.wide);
                }
            }
            StmtKind::If { cond: Expr::Binary(Binary::Eq, a, b), then, otherwise } => {
                let holds = run(a, env).v == run(b, env).v;
                waits(if holds { then } else { otherwise }, env, out);
            }
            StmtKind::Assign { to: Expr::Name(name), op, value } => {
                let (old, value) = (env[name.as_ref()], run(value, env));
                let v = match op {
                    Assign::Set => value.v,
                    Assign::Add => old.v + value.v,
                    Assign::Xor => old.v ^ value.v,
                };
                env.insert(name.to_string(), checked(v, old.wide));
            }
            StmtKind::Asm(asm) => {
                let Expr::Call(_, args) = &asm.inputs[0].1 else { panic!("{asm:?}") };
                let stage = args.get(1).map_or(0, |i| run(i, env).v);
                out.push((stage, run(&asm.inputs[1].1, env).v));
            }
            StmtKind::Comment(_) | StmtKind::Line { .. } => {}
            kind => panic!("{kind:?}"),
        }
    }
}

/// The body of a program's kernel, and the arguments of its waits for these values of symbols.
fn waited(p: &Program, symbols: [(&str, i64); 2]) -> (Vec<Stmt>, Vec<(i128, i128)>) {
    let body = body_of(p, p.kernels[0], &AtomTable::new(Arch::Sm90a)).unwrap();
    let builtin = [("threadIdx.x", 0), ("blockIdx.x", 0)];
    let value = |(name, v): (&str, i64)| (name.to_owned(), Value { v: v.into(), wide: false });
    let mut env: HashMap<String, Value> = symbols.into_iter().chain(builtin).map(value).collect();
    let mut found = vec![];
    waits(&body, &mut env, &mut found);
    (body, found)
}

fn divides(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|s| match &s.kind {
        StmtKind::For(f) => divides(&f.body),
        StmtKind::Asm(asm) => format!("{:?}", asm.inputs).contains("Rem"),
        _ => false,
    })
}

proptest! {
    #![proptest_config(testing::config(300))]

    #[test]
    fn carried_scalars_are_the_expressions(
        rings in rings(), first in -90i64..5, more in -5i64..9, f in 1i64..64, n in 1i64..20,
    ) {
        let p = program(&rings, first, more);
        let (body, found) = waited(&p, [("F", f), ("N", n)]);
        let mut wanted = vec![];
        for j in 0..3 {
            for k in f + first..n + f + more {
                for Ring { size, shift, far, flips } in &rings {
                    let x = k + shift + j * far;
                    let parity = (x.div_euclid(*size) + flips).rem_euclid(2);
                    wanted.push((x.rem_euclid(*size).into(), parity.into()));
                }
            }
        }
        prop_assert_eq!(found, wanted);
        // Positions that may be negative are carried, whatever the size.
        prop_assert!(first > -80 || !divides(&body));
    }

    #[test]
    fn sizes_known_at_run_time_are_carried_and_go_on(
        shift in 0i64..9, size in 2i64..7, flips in 0i64..3, n in 1i64..12, m in 1i64..5,
    ) {
        let text = format!(
            "carbyne 2
sym N{{min=1, max=64}}
sym M{{min=1, max=64}}
%A:[1].f32.GL
Spec @k <<<#grid:[1], #cta:[32]>>> (%A) -> (%A) {{
  Allocate %full:[64].mbarrier.SH
  for (j = 0; j < 3; j += 1) {{
    for (k = 0; k < N; k += 1) {{
      let q = j * N + k + {shift}, u = j + (k + {shift}) / N
      mbarrier.wait(%full[q % {size}], (q / {size} + {flips}) % 2)
      mbarrier.wait(%full[(k + {shift}) % N], u / M % 2)
      mbarrier.wait(%full[u % M], j / M % 2)
    }}
  }}
}}
"
        );
        let module = text::parse(&text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        let p = resolve::resolve(&module, &text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
        let (body, found) = waited(&p, [("N", n), ("M", m)]);
        let mut wanted = vec![];
        for j in 0..3 {
            for k in 0..n {
                let (q, u) = (j * n + k + shift, j + (k + shift) / n);
                wanted.push(((q % size).into(), ((q / size + flips) % 2).into()));
                wanted.push((((k + shift) % n).into(), (u / m % 2).into()));
                wanted.push(((u % m).into(), (j / m % 2).into()));
            }
        }
        prop_assert_eq!(found, wanted);
        let inner = |stmts: &[Stmt]| {
            stmts.iter().find_map(|s| match &s.kind {
                StmtKind::For(f) => Some(f.body.clone()),
                _ => None,
            })
        };
        let inside = inner(&inner(&body).unwrap()).unwrap();
        let divided = format!("{:?}", asms(&inside));
        prop_assert!(size.count_ones() == 1 || !divided.contains("Rem"), "{divided}");
    }
}

/// The inputs of the instructions of a block.
fn asms(stmts: &[Stmt]) -> Vec<String> {
    let inputs = stmts.iter().filter_map(|s| match &s.kind {
        StmtKind::Asm(asm) => Some(format!("{:?}", asm.inputs)),
        _ => None,
    });
    inputs.collect()
}
