//! Tests views of shared tensors and of register tensors that begin and end at any element: ranges,
//! transposes, and ranges of transposes.

use crate::support::{decomposed, run, sm_80};
use crate::views::checked_on;
use carbyne_atoms::AtomTable;
use carbyne_ir::testing;
use proptest::prelude::*;

/// A view of a tensor of these extents, and the extents of the view.
fn view(extents: [i64; 2], depth: u32) -> BoxedStrategy<(String, [i64; 2])> {
    let [m, n] = extents;
    let range = |n: i64| {
        let any = (0..n).prop_flat_map(move |from| (Just(from), from + 1..=n));
        prop_oneof![2 => Just((0, n)), 3 => any]
    };
    let part = (range(m), range(n)).prop_map(|(r, c)| {
        (format!("[{}..{}, {}..{}]", r.0, r.1, c.0, c.1), [r.1 - r.0, c.1 - c.0])
    });
    let one = prop_oneof![
        3 => part,
        1 => Just((".transpose()".to_owned(), [n, m])),
    ];
    if depth == 1 {
        return one.boxed();
    }
    let more = move |(first, extents): (String, [i64; 2])| {
        view(extents, depth - 1)
            .prop_map(move |(next, extents)| (format!("{first}{next}"), extents))
    };
    prop_oneof![one.clone(), one.prop_flat_map(more)].boxed()
}

/// A tensor's extents, type, strides and memory; a view of it to read; threads.
#[derive(Clone, Debug)]
struct Case {
    extents: [i64; 2],
    scalar: &'static str,
    column_major: bool,
    memory: &'static str,
    read: (String, [i64; 2]),
    threads: i64,
    arch: &'static str,
}

fn cases() -> impl Strategy<Value = Case> {
    let extent = || prop::sample::select(vec![1i64, 3, 4, 5, 8, 12, 16, 20, 28, 32]);
    let of = |(extents, scalar, column_major, memory, threads, arch)| {
        view(extents, 3).prop_map(move |read| Case {
            extents,
            scalar,
            column_major,
            memory,
            read,
            threads,
            arch,
        })
    };
    (
        [extent(), extent()],
        prop::sample::select(vec!["f32", "f16", "u8", "f64"]),
        any::<bool>(),
        prop::sample::select(vec!["SH", "RF"]),
        prop::sample::select(vec![32i64, 64, 128, 256]),
        prop::sample::select(vec!["sm_80", "sm_80", "sm_80", "sm_75", "sm_90a"]),
    )
        .prop_flat_map(of)
}

impl Case {
    fn text(&self) -> String {
        let ([m, n], (read, [rows, columns])) = (self.extents, &self.read);
        let (scalar, memory, threads) = (self.scalar, self.memory, self.threads);
        let from = match self.column_major {
            true => format!("({m},{n}):(1,{m})"),
            false => format!("{m},{n}"),
        };
        format!(
            "carbyne 2
%X:[{from}].{scalar}.GL
%Y:[{rows},{columns}].{scalar}.GL
Spec @read <<<#grid:[1], #cta:[{threads}]>>> (%X) -> (%Y) means {{
  %Y = move(%X{read})
}} {{
  Move (%X) -> (%x:{memory})
  %Y = move(%x{read})
}}
"
        )
    }
}

/// Whatever a view begins with, it is decomposed, and its vectors are aligned: the simulator looks
/// at each access.
#[test]
fn views_that_begin_anywhere_are_read() {
    let mut runner = testing::runner(testing::config_up_to(400, 10_000));
    let judged = runner.run(&cases(), |case| {
        checked_on(&case.text(), &AtomTable::new(case.arch.parse().expect("an architecture")));
        Ok(())
    });
    judged.unwrap_or_else(|e| panic!("{e}"));
}

/// The widest instruction on shared memory, in bits.
fn widest(text: &str, of: &str) -> i64 {
    let widths = text.lines().filter_map(|l| l.split_once(&format!("atom={of}.shared.b")));
    widths.filter_map(|(_, w)| w.trim().parse().ok()).max().unwrap_or(0)
}

#[test]
fn vectors_are_as_wide_as_the_offset_allows() {
    let read = |rows: &str| {
        let text = format!(
            "carbyne 2
%X:[(32,16):(1,32)].f32.GL
%Y:[(16,16):(1,16)].f32.GL
Spec @read <<<#grid:[1], #cta:[64]>>> (%X) -> (%Y) means {{
  %Y = move(%X[{rows}, _])
}} {{
  Move (%X) -> (%x:SH)
  %Y = move(%x[{rows}, _])
}}
"
        );
        widest(&checked_on(&text, &sm_80()).text, "ld")
    };
    assert_eq!(["0..16", "8..24", "6..22", "3..19"].map(read), [128, 128, 64, 32]);
}

#[test]
fn offsets_of_loops_and_stages_keep_their_vectors() {
    let text = "carbyne 2
%X:[6,16,32].f16.GL
%Y:[6,16,16].f16.GL
Spec @stages <<<#grid:[1], #cta:[32]>>> (%X) -> (%Y) {
  Allocate %s:[3,16,32].f16.SH{?}
  for (j = 0; j < 6; j += 1) {
    Move (%X[j, _, _]) -> (%s[j % 3, _, _])
    Move (%s[j % 3, _, 8..24]) -> (%Y[j, _, _])
  }
}
";
    let d = decomposed(text, &sm_80()).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
    run(&d.program, &sm_80()).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
    assert_eq!(widest(&d.text, "ld"), 128, "{}", d.text);
    assert!(d.text.contains("atom=cp.async.cg.b128"), "{}", d.text);
}

/// A range of two tensors, reduced along each mode, beside what it is a part of.
#[test]
fn ranges_of_all_extents_are_reduced() {
    for n in [1, 2, 3, 5, 7] {
        for (axis, at) in [(1, format!("[_, 3..{}]", 3 + n)), (0, format!("[3..{}, _]", 3 + n))] {
            let text = format!(
                "carbyne 2
%X:[64,64].f32.GL
%Y:[64,64].f32.GL
Spec @k <<<#grid:[1], #cta:[64]>>> (%X) -> (%Y) means {{
  %Y = %X * sum(%X{at}, axis={axis})
}} {{
  %Y = %X * sum(%X{at}, axis={axis})
}}
"
            );
            checked_on(&text, &sm_80());
        }
    }
}

/// No instruction of 4 bytes or more ends where the rows of 5 elements of 2 bytes do.
#[test]
fn copies_to_shared_memory_go_through_registers_where_vectors_do_not_fit() {
    let text = "carbyne 2
%X:[(5,20):(1,5)].f16.GL
%Y:[(2,8):(1,2)].f16.GL
Spec @k <<<#grid:[1], #cta:[64]>>> (%X) -> (%Y) means {
  %Y = move(%X[3..5, 0..8])
} {
  Move (%X) -> (%x:SH)
  %Y = move(%x[3..5, 0..8])
}
";
    checked_on(text, &sm_80());
}
