//! Tests specs whose extents contain symbols, with random extents and facts. For all small values
//! of the symbols, the test computes whether the operands fit. If they do not fit for some values,
//! the verifier must refuse the spec, with few exceptions; otherwise it must accept the spec. It
//! may refuse a product also if two symbols are not known to be equal. Other tests check that many
//! symbols or views take little time.

use carbyne_ir::diag::Code;
use carbyne_ir::testing;
use carbyne_ir::{resolve, text, verify};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::time::Instant;

/// The largest value of a symbol.
const MOST: i64 = 6;

/// An extent as text, and its value for values of M, N and L.
type Written = (&'static str, fn([i64; 3]) -> i64);

const EXTENTS: [Written; 10] = [
    ("M", |[m, _, _]| m),
    ("N", |[_, n, _]| n),
    ("L", |[_, _, l]| l),
    ("M + 1", |[m, _, _]| m + 1),
    ("N + 1", |[_, n, _]| n + 1),
    ("2 * M", |[m, _, _]| 2 * m),
    ("M + N", |[m, n, _]| m + n),
    ("M / 2", |[m, _, _]| m / 2),
    ("1", |_| 1),
    ("4", |_| 4),
];

/// A fact as text, and whether values of M, N and L satisfy it.
type Fact = (&'static str, fn([i64; 3]) -> bool);

const FACTS: [Fact; 9] = [
    ("M == N", |[m, n, _]| m == n),
    ("L == M + 1", |[m, _, l]| l == m + 1),
    ("M % 2 == 0", |[m, _, _]| m % 2 == 0),
    ("N == 2 * M", |[m, n, _]| n == 2 * m),
    ("M <= N", |[m, n, _]| m <= n),
    ("N <= M", |[m, n, _]| n <= m),
    ("L == 4", |[_, _, l]| l == 4),
    ("M > 0", |[m, _, _]| m > 0),
    ("N == 1", |[_, n, _]| n == 1),
];

/// Whether operands with these extents fit; the output is last.
fn fits(kind: &str, shapes: &[Vec<i64>]) -> bool {
    let out = shapes.last().expect("an output");
    let real = |s: &[i64]| s.iter().copied().filter(|n| *n != 1).collect::<Vec<_>>();
    let same = |a: &[i64]| {
        let (a, b) = (real(a), real(out));
        let size = |s: &[i64]| s.iter().product::<i64>();
        a == b || (a.len() <= 1 || b.len() <= 1) && size(&a) == size(&b)
    };
    let spread =
        |a: &[i64]| a.len() == out.len() && a.iter().zip(out).all(|(a, n)| a == n || *a == 1);
    let ins = &shapes[..shapes.len() - 1];
    match kind {
        "MatMul.set" => {
            let (a, b) = (&ins[0], &ins[1]);
            a[0] == out[0] && a[1] == b[0] && b[1] == out[1]
        }
        "UnaryPointwise.exp" => ins.iter().all(|i| same(i)),
        _ => ins.iter().all(|i| same(i) || spread(i)),
    }
}

const KINDS: [(&str, usize); 4] =
    [("Move", 1), ("UnaryPointwise.exp", 1), ("BinaryPointwise.add", 2), ("MatMul.set", 2)];

/// Whether the verifier reports that operands do not fit; `None` if it reports another error.
fn refused(text: &str) -> Option<bool> {
    let module = text::parse(text).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    let program = match resolve::resolve(&module, text) {
        Ok(program) => program,
        Err(_) => return None,
    };
    let errors = verify::verify(&program);
    assert!(errors.iter().all(|d| d.code == Code::ShapeMismatch), "{errors:?}\n{text}");
    Some(!errors.is_empty())
}

#[test]
fn what_is_refused_does_not_fit_for_some_values() {
    let mut runner = testing::runner(testing::config(600));
    let drawn = (
        0..KINDS.len(),
        proptest::collection::vec(0..EXTENTS.len(), 6),
        proptest::collection::vec(0..FACTS.len(), 0..3),
    );
    let (wrong, missed) = (Cell::new(0), RefCell::new(vec![]));
    runner
        .run(&drawn, |(kind, extents, facts)| {
            let (kind, n_in) = KINDS[kind];
            let shape = |i: usize| [extents[2 * i], extents[2 * i + 1]];
            let all: Vec<[usize; 2]> = (0..=n_in).map(shape).collect();
            let tensor = |(i, [a, b]): (usize, &[usize; 2])| {
                format!("%t{i}:[{},{}].f32.GL\n", EXTENTS[*a].0, EXTENTS[*b].0)
            };
            let said: Vec<&str> = facts.iter().map(|f| FACTS[*f].0).collect();
            let bounds = format!("M <= {MOST}, N <= {MOST}, L <= {MOST}");
            let facts_text = [&[&bounds[..]], &said[..]].concat().join(", ");
            let ins: Vec<String> = (0..n_in).map(|i| format!("%t{i}")).collect();
            let text = format!(
                "carbyne 2\nsym M, N, L where {facts_text}\n{}{kind} ({}) -> (%t{n_in}){}\n",
                all.iter().enumerate().map(tensor).collect::<String>(),
                ins.join(", "),
                if kind == "MatMul.set" { " acc=f32" } else { "" },
            );
            // Contradictory facts are a different error.
            let Some(refused) = refused(&text) else { return Ok(()) };
            let range = || 0..=MOST;
            let values =
                range().flat_map(|m| range().flat_map(move |n| range().map(move |l| [m, n, l])));
            let mut kept = values.filter(|v| facts.iter().all(|f| FACTS[*f].1(*v))).peekable();
            // The verifier does not detect all contradictions, such as `N == 1` and `N == 2 * M`.
            // Any result is correct then.
            if kept.peek().is_none() {
                return Ok(());
            }
            let misfit = kept.find(|v| {
                let shapes: Vec<Vec<i64>> =
                    all.iter().map(|s| s.iter().map(|e| EXTENTS[*e].1(*v)).collect()).collect();
                !fits(kind, &shapes)
            });
            // A product is also refused if two of its symbols are not known to be equal.
            prop_assert!(misfit.is_some() || !refused || kind == "MatMul.set", "refused:\n{text}");
            if misfit.is_some() {
                wrong.set(wrong.get() + 1);
                if !refused {
                    missed.borrow_mut().push(format!("with {misfit:?}:\n{text}"));
                }
            }
            Ok(())
        })
        .unwrap_or_else(|e| panic!("{e}"));
    assert!(wrong.get() > 100, "only {} of the drawn ones do not fit", wrong.get());
    // The verifier's search for values is bounded, so it may miss a few.
    let missed = missed.into_inner();
    assert!(
        missed.len() * 200 <= wrong.get(),
        "of {} these pass:\n{}",
        wrong.get(),
        missed.join("\n")
    );
}

/// The errors of a text, computed within a time limit.
fn soon(text: &str) -> Vec<Code> {
    let start = Instant::now();
    let module = text::parse(text).unwrap_or_else(|e| panic!("{e:?}"));
    let codes = match resolve::resolve(&module, text) {
        Ok(program) => verify::verify(&program).iter().map(|d| d.code).collect(),
        Err(errors) => errors.iter().map(|d| d.code).collect(),
    };
    let took = start.elapsed();
    assert!(took < testing::SOON, "it took {took:?}");
    codes
}

#[test]
fn many_symbols_and_specs_take_no_time() {
    let names: Vec<String> = (0..400).map(|i| format!("S{i}")).collect();
    let chain: Vec<String> = names.windows(2).map(|w| format!("{} <= {}", w[0], w[1])).collect();
    let tensors: String = names.iter().map(|n| format!("%t{n}:[{n}].f32.GL\n")).collect();
    let specs: String = names
        .windows(2)
        .flat_map(|w| std::iter::repeat_n(format!("  Move (%t{}) -> (%t{})\n", w[0], w[1]), 4))
        .collect();
    let all: Vec<String> = names.iter().map(|n| format!("%t{n}")).collect();
    let head =
        format!("Spec @s <<<#grid:[1], #cta:[32]>>> (%tS0) -> ({}) {{\n", all[1..].join(", "));
    for facts in [String::new(), format!(" where {}", chain.join(", "))] {
        let text =
            format!("carbyne 2\nsym {}{facts}\n{tensors}{head}{specs}}}\n", names.join(", "));
        let codes = soon(&text);
        assert!(codes.iter().all(|c| *c == Code::ShapeMismatch), "{codes:?}");
    }
    // Each extent is equal to the preceding one.
    let same: Vec<String> = names.windows(2).map(|w| format!("{} == {}", w[0], w[1])).collect();
    let facts = format!(" where {}", same.join(", "));
    let text = format!("carbyne 2\nsym {}{facts}\n{tensors}{head}{specs}}}\n", names.join(", "));
    assert_eq!(soon(&text), []);
}

/// A kernel with a view that applies an operation many times.
fn chained(n: usize, op: &str) -> String {
    let mut text = "carbyne 2\n%A:[64,4096].f16.GL\n%C:[64,64].f16.GL\n\
                    Spec @f <<<#grid:[@i < 64], #cta:[32]>>> (%A) -> (%C) {\n  \
                    %a0 = %A.tile([1,_])[@i, 0]\n"
        .to_owned();
    for i in 0..n {
        text += &format!("  %a{} = %a{i}{}\n", i + 1, op.replace("NEXT", &(4100 + i).to_string()));
    }
    text + &format!("  %C.tile([1,64])[@i, 0] = move(%a{n}.tile([1,64])[0, 0])\n}}\n")
}

#[test]
fn views_that_are_padded_or_tiled_many_times_have_few_bounds() {
    for op in [".pad([0,@i % 8])", ".pad([0,1])", ".tile([1,NEXT])[0, 0]"] {
        let text = chained(2000, op);
        assert_eq!(soon(&text), [], "{op}");
        let program = resolve::resolve(&text::parse(&text).expect("it parses"), &text).expect(op);
        let most = program.tensors.iter().map(|(_, t)| t.bounds.len()).max();
        assert!(most.is_some_and(|n| n <= 3), "{op}: {most:?} bounds");
    }
}
