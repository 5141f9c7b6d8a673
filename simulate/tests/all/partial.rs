//! Tests partial tiles, which reach over the end of their tensors: elements outside read as zero
//! and are not written, for many kinds of access. Random tiles and random chains of operations on
//! tiles are among them.

use crate::support::{bad_with, good, run};
use carbyne_ir::diag::Code;
use carbyne_ir::scalar::Scalar;
use carbyne_ir::testing;
use carbyne_simulate::{Array, Inputs, Options, Report};
use proptest::prelude::*;

/// A matrix of floats from coordinates.
fn matrix(rows: i64, columns: i64, at: impl Fn(i64, i64) -> f32) -> Array {
    let all = (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c)));
    Array {
        scalar: Scalar::F32,
        shape: vec![rows as u64, columns as u64],
        values: all.map(|(r, c)| u64::from(at(r, c).to_bits())).collect(),
    }
}

fn with(arrays: &[(&str, Array)], symbols: &[(&str, i64)]) -> Options {
    Options {
        arrays: arrays.iter().map(|(n, a)| ((*n).to_owned(), a.clone())).collect(),
        symbols: symbols.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect(),
        inputs: Inputs::Seed(3),
        ..Options::default()
    }
}

/// An element of a tensor of floats.
fn at(report: &Report, name: &str, place: &[i64]) -> f32 {
    let bits = report.outputs.element(name, place);
    f32::from_bits(bits.unwrap_or_else(|| panic!("{name}{place:?} is undefined")) as u32)
}

/// Numbers that are all different and not zero.
fn number(r: i64, c: i64) -> f32 {
    (1 + r * 64 + c) as f32
}

const SYMBOLS: &str =
    "sym M, N where M >= 0, N >= 0 typical M=4096, N=4096\n%A:[M,N].f32.GL\n%B:[M,N].f32.GL\n";

/// A kernel over tiles of 16 by 8.
fn tiled(head: &str, body: &str) -> String {
    format!(
        "carbyne 2
let BM = 16, BN = 8
{head}
Move @k <<<#grid:[@i < ceil_div(M, BM), @j < ceil_div(N, BN)], #cta:[@t < 32]>>> (%A) -> (%B) {{
  %a = %A.tile([BM,BN])[@i, @j]
  %b = %B.tile([BM,BN])[@i, @j]
{body}}}
"
    )
}

fn constant(m: i64, n: i64) -> String {
    format!("let M = {m}, N = {n}\n%A:[M,N].f32.GL\n%B:[M,N].f32.GL\n")
}

/// Every way of moving a tile of 16 by 8 by 32 threads.
const BODIES: [&str; 6] = [
    "  Move (%a) -> (%x)\n  Move (%x) -> (%b)\n",
    "  Move (%a) -> (%x:SH)\n  Move (%x) -> (%y)\n  Move (%y) -> (%b)\n",
    "  for (p = 0; p < 4; p += 1) {
    for (q = 0; q < 2; q += 1) {
      Move (%a.tile([4,4])[p, q]) -> (%x)
      Move (%x) -> (%b.tile([4,4])[p, q])
    }
  }
",
    "  for (p = 0; p < 4; p += 1) {
    for (q = 0; q < 3; q += 1) {
      Move (%a.tile([5,3])[p, q]) -> (%x)
      Move (%x) -> (%b.tile([5,3])[p, q])
    }
  }
",
    "  #one:[].thread = #cta.scalar()
  Allocate %r:[4].f32.RF
  Move <<<#one>>> (%a.tv((32,4):(1,32) over #cta)) -> (%r)
  Move <<<#one>>> (%r) -> (%b.tv((32,4):(1,32) over #cta))
",
    "  #one:[].thread = #cta.scalar()
  Allocate %r:[1].f32.RF
  for (v = 0; v < 4; v += 1) {
    %from = %a.permute([1,0]).reshape([128]:[1]).tile([1])[v * 32 + @t]
    %to = %b.permute([1,0]).reshape([128]:[1]).tile([1])[v * 32 + @t]
    Move <<<#one>>> (%from) -> (%r) atom=ld.global.b32
    Move <<<#one>>> (%r) -> (%to) atom=st.global.b32
  }
",
];

#[test]
fn every_way_of_moving_a_tile_moves_existing_elements() {
    for body in BODIES {
        for (m, n) in [(100, 37), (131, 77), (16, 8), (17, 8), (1, 1), (15, 9)] {
            let arrays = [("A", matrix(m, n, number))];
            for (text, symbols) in [
                (tiled(&constant(m, n), body), vec![]),
                (tiled(SYMBOLS, body), vec![("M", m), ("N", n)]),
            ] {
                let report = good(&text, &with(&arrays, &symbols));
                assert!(report.kernels[0].checked && report.kernels[0].complete);
                for (r, c) in (0..m).flat_map(|r| (0..n).map(move |c| (r, c))) {
                    assert_eq!(at(&report, "B", &[r, c]), number(r, c), "{body} {m} {n}");
                }
            }
        }
    }
}

#[test]
fn nothing_is_written_behind_the_end() {
    // The matrices are corners of larger ones.
    let text = |body: &str| {
        tiled("let M = 21, N = 11\n%V:[48,24].f32.GL\n%W:[48,24].f32.GL\n", body)
            .replace("Move @k", "Spec @k")
            .replace(
                "(%A) -> (%B) {",
                "(%V, %W) -> (%W) {\n  %A = %V[0..M, 0..N]\n  %B = %W[0..M, 0..N]",
            )
    };
    for body in BODIES {
        let arrays = [("V", matrix(48, 24, number)), ("W", matrix(48, 24, |_, _| -1.0))];
        let report = good(&text(body), &with(&arrays, &[]));
        for (r, c) in (0..48).flat_map(|r| (0..24).map(move |c| (r, c))) {
            let wanted = if r < 21 && c < 11 { number(r, c) } else { -1.0 };
            assert_eq!(at(&report, "W", &[r, c]), wanted, "{body} {r} {c}");
        }
    }
}

#[test]
fn elements_outside_read_as_zero() {
    // Tiles of the matrix are moved to complete tiles.
    for body in BODIES {
        let text = tiled("let M = 20, N = 10\n%A:[M,N].f32.GL\n%Z:[32,16].f32.GL\n", body)
            .replace("-> (%B) {", "-> (%Z) {")
            .replace("Move @k", "Spec @k")
            .replace("%b = %B", "%b = %Z");
        if text.contains("tile([5,3])") {
            // These tiles do not divide 16 by 8, and do not reach into the next tile of Z.
            continue;
        }
        let report = good(&text, &with(&[("A", matrix(20, 10, number))], &[]));
        for (r, c) in (0..32).flat_map(|r| (0..16).map(move |c| (r, c))) {
            let wanted = if r < 20 && c < 10 { number(r, c) } else { 0.0 };
            assert_eq!(at(&report, "Z", &[r, c]), wanted, "{body} {r} {c}");
        }
    }
}

#[test]
fn only_existing_elements_are_compared() {
    let wrong = "  Move (%a) -> (%x)\n  %y = %x * 2\n  Move (%y) -> (%b)\n";
    let e = bad_with(&tiled(&constant(17, 9), wrong), Code::WrongElement, &Options::default());
    assert!(e.message.starts_with("%B["), "{e}");
    // The body of a nested spec writes its meaning to existing elements, and ones elsewhere.
    let text = "carbyne 2
let M = 3
%A:[M].f32.GL
%B:[M].f32.GL
Spec @k <<<#grid:[1], #cta:[32]>>> (%A) -> (%B) {
  #one:[].thread = #cta[0].scalar()
  Move <<<#one>>> (%A.tile([4])[0]) -> (%B.tile([4])[0]) {
    Allocate %r:[4].f32.RF
    Init <<<#one>>> (7) -> (%r)
    for (e = 0; e < 3; e += 1) {
      Move <<<#one>>> (%A.tile([1])[e]) -> (%r.tile([1])[e])
    }
    Move <<<#one>>> (%r) -> (%B.tile([4])[0])
  }
}
";
    let report = good(text, &Options::default());
    assert_eq!(report.kernels[0].specs, 1);
    assert_eq!(report.kernels[0].elements, 3);
}

#[test]
fn products_softmax_and_sums_of_partial_tiles() {
    let gemm = "carbyne 2
sym M, N, K where M >= 0, N >= 0, K >= 0 typical M=64, N=64, K=64
%A:[M,K].f16.GL
%B:[K,N].f16.GL
%C:[M,N].f32.GL
MatMul.set @gemm <<<#grid:[@i < ceil_div(M, 16), @j < ceil_div(N, 8)], #cta:[32]>>>
    (%A, %B) -> (%C) acc=f32 {
  %c:[16,8].f32 = 0
  for (k = 0; k < ceil_div(K, 16); k += 1) {
    Move (%A.tile([16,16])[@i, k]) -> (%a:SH)
    Move (%B.tile([16,8])[k, @j]) -> (%b:SH)
    MatMul (%a, %b) -> (%c)
  }
  Move (%c) -> (%C.tile([16,8])[@i, @j])
}
";
    for [m, n, k] in [[37, 19, 29], [1, 1, 1], [16, 8, 17], [5, 3, 0], [0, 3, 4], [0, 0, 0]] {
        let symbols = [("M", m), ("N", n), ("K", k)];
        let report = good(gemm, &Options { inputs: Inputs::Ints(1), ..with(&[], &symbols) });
        assert!(report.kernels[0].complete, "{symbols:?}");
        assert_eq!(report.kernels[0].n_blocks, (m + 15) / 16 * ((n + 7) / 8));
        assert_eq!(report.kernels[0].elements > 0, m * n > 0);
        if k == 0 {
            assert!((0..m * n).all(|e| at(&report, "C", &[e % m, e / m]) == 0.0));
        }
        assert!(report.outputs.get("C").is_some());
    }
    let softmax = "carbyne 2
let N = 1
sym M where M >= 0 typical M=64
%X:[M,N].f32.GL
%Y:[M,N].f32.GL
Spec @softmax <<<#grid:[@i < ceil_div(M, 8)], #cta:[32]>>> (%X) -> (%Y) means {
  %e = exp(%X - max(%X, axis=1))
  %Y = %e / sum(%e, axis=1)
} {
  Move (%X.tile([8,64])[@i, 0]) -> (%x)
  %in = select(%x.iota(1) < N, %x, -inf)
  %e = exp(%in - max(%in, axis=1))
  %y = %e / sum(%e, axis=1)
  Move (%y) -> (%Y.tile([8,64])[@i, 0])
}
";
    for (m, n) in [(13, 33), (8, 64), (1, 1), (0, 5)] {
        let text = softmax.replace("N = 1", &format!("N = {n}"));
        good(&text, &with(&[], &[("M", m)]));
    }
}

#[test]
fn asynchronous_copies_write_zeros_and_count_read_bytes() {
    let text = |n: i64| {
        format!(
            "carbyne 2
let N = {n}
%A:[N].f32.GL
%Z:[128].f32.GL
Spec @k <<<#grid:[1], #cta:[@t < 32]>>> (%A) -> (%Z) {{
  #one:[].thread = #cta.scalar()
  Allocate %s:[128].f32.SH
  %tile = %A.tile([128])[0].tile([4])[@t]
  Move <<<#one>>> (%tile) -> (%s.tile([4])[@t]) valid=4 atom=cp.async.cg.b128.zfill
  async.commit
  async.wait(0)
  Move <<<#one>>> (%s.tile([4])[@t]) -> (%Z.tile([4])[@t])
}}
"
        )
    };
    for n in [1, 4, 35, 126, 128] {
        for schedule in [None, Some(5)] {
            let report = good(&text(n), &Options { schedule, ..Options::default() });
            for e in 0..128 {
                let wanted = if e < n { at(&report, "A", &[e]) } else { 0.0 };
                assert_eq!(at(&report, "Z", &[e]), wanted, "{n} {e}");
            }
            let count = report.kernels[0].leaves[0].count;
            assert_eq!(count.global.bytes, 4 * n as u64, "{n}");
            assert_eq!(count.global.sectors, (n as u64).div_ceil(8), "{n}");
            assert_eq!(count.shared.bytes, 512, "zeros are written, too");
        }
    }
}

#[test]
fn atoms_access_existing_elements_only() {
    // Two blocks add to one tensor of 70 numbers; the second has threads without elements.
    let text = "carbyne 2
let N = 70
%A:[N].f32.GL
%S:[N].f32.GL
Spec @k <<<#grid:[@b < 2], #cta:[@t < 64]>>> (%A, %S) -> (%S) {
  #one:[].thread = #cta.scalar()
  Allocate %r:[1].f32.RF
  %from = %A.tile([64])[@b].tile([1])[@t]
  Move <<<#one>>> (%from) -> (%r) atom=ld.global.b32
  Move.add <<<#one>>> (%r) -> (%S.tile([64])[@b].tile([1])[@t]) atom=red.global.add.f32
}
";
    let report = good(text, &Options { inputs: Inputs::Ints(4), ..Options::default() });
    let [load, add] = &report.kernels[0].leaves[..] else { panic!("{:?}", report.kernels[0]) };
    assert_eq!((load.count.global.bytes, add.count.global.bytes), (4 * 70, 4 * 70));
    assert_eq!((load.count.global.sectors, add.count.global.sectors), (9, 9));
    // Vectors that are partly beyond the end need an aligned address, as all others do.
    let text = "carbyne 2
let N = 70
%A:[N].f32.GL
%Z:[128].f32.GL
Spec @k <<<#grid:[1], #cta:[@t < 32]>>> (%A) -> (%Z) {
  #one:[].thread = #cta.scalar()
  Allocate %r:[4].f32.RF
  Move <<<#one>>> (%A.tile([128])[0].tile([4])[@t]) -> (%r)
  Move <<<#one>>> (%r) -> (%Z.tile([4])[@t]) atom=st.global.b128
}
";
    let report = good(text, &Options::default());
    for e in 0..128 {
        let wanted = if e < 70 { at(&report, "A", &[e]) } else { 0.0 };
        assert_eq!(at(&report, "Z", &[e]), wanted);
    }
}

#[test]
fn elements_written_outside_are_not_read() {
    // Thread 5 writes elements that the others may read; for a tensor of 20 numbers, no thread may
    // move elements from 20 on.
    let text = |n: i64, atom: &str| {
        format!(
            "carbyne 2
let N = {n}
%B:[N].f32.GL
Spec @k <<<#grid:[1], #cta:[@t < 32]>>> () -> (%B) {{
  #one:[].thread = #cta.scalar()
  Allocate %s:[32].f32.SH
  if (@t < 20) {{
    Init <<<#one>>> (1) -> (%s[@t])
  }}
  Allocate %r:[1].f32.RF
  if (@t < 20) {{
    Init <<<#one>>> (1) -> (%r)
  }}
  Move <<<#one>>> (%s[@t]) -> (%B.tile([32])[0].tile([1])[@t])
  barrier
  Move <<<#one>>> (%r) -> (%B.tile([32])[0].tile([1])[@t]){atom}
}}
"
        )
    };
    for atom in ["", " atom=st.global.b32"] {
        let report = good(&text(20, atom), &Options::default());
        assert!((0..20).all(|e| at(&report, "B", &[e]) == 1.0));
        bad_with(&text(21, atom), Code::Uninitialized, &Options::default());
    }
}

#[test]
fn rows_behind_the_end_of_a_list_are_not_looked_up() {
    let text = "carbyne 2
let T = 40, M = 21, K = 12
%A:[T,K].f32.GL
%rows:[M].i32.GL in 0..T
%C:[M,K].f32.GL
Spec @gather <<<#grid:[@i < ceil_div(M, 8)], #cta:[32]>>> (%A, %rows) -> (%C) means {
  %C = move(%A[%rows, _])
} {
  %mine = %rows.tile([8])[@i]
  Move (%A[%mine, _]) -> (%part)
  Move (%part) -> (%C.tile([8,K])[@i, 0])
}
";
    let report = good(text, &Options::default());
    assert_eq!(report.kernels[0].elements, 21 * 12);
    let row = |r: i64| report.outputs.element("rows", &[r]).unwrap() as i64;
    for (r, c) in (0..21).flat_map(|r| (0..12).map(move |c| (r, c))) {
        assert_eq!(at(&report, "C", &[r, c]), at(&report, "A", &[row(r), c]));
    }
}

/// A matrix, its layout in memory, and the way its tiles are moved.
#[derive(Clone, Debug)]
struct Tiled {
    extents: [i64; 2],
    tile: [i64; 2],
    inner: [i64; 2],
    /// For the input and for the output: whether rows are the fastest, and the gaps after them.
    lies: [(bool, i64); 2],
    symbols: bool,
    way: usize,
    /// Whether the output is the corner of a larger matrix.
    corner: bool,
}

fn tiles() -> impl Strategy<Value = Tiled> {
    let size = || 1..=40i64;
    let lies = || (any::<bool>(), 0..5i64);
    (
        [size(), size()],
        [1..=20i64, 1..=20i64],
        [1..=7i64, 1..=7i64],
        [lies(), lies()],
        any::<bool>(),
        0..4usize,
        any::<bool>(),
    )
        .prop_map(|(extents, tile, inner, lies, symbols, way, corner)| Tiled {
            extents,
            tile,
            inner,
            lies,
            symbols,
            way,
            corner,
        })
}

impl Tiled {
    fn text(&self) -> String {
        let Tiled { extents: [m, n], tile: [bm, bn], inner: [tm, tn], .. } = *self;
        let lies = |(rows, gap): (bool, i64)| match rows {
            true => format!("(M,N):(1,M + {gap})"),
            false => format!("(M,N):(N + {gap},1)"),
        };
        let sizes = match self.symbols {
            true => "sym M, N where M > 0, N > 0 typical M=40, N=40".to_owned(),
            false => format!("let M = {m}, N = {n}"),
        };
        let body = match self.way {
            0 => "  Move (%a) -> (%x)\n  Move (%x) -> (%b)\n".to_owned(),
            1 => format!(
                "  for (p = 0; p < ceil_div({bm}, {tm}); p += 1) {{
    for (q = 0; q < ceil_div({bn}, {tn}); q += 1) {{
      Move (%a.tile([{tm},{tn}])[p, q]) -> (%x)
      Move (%x) -> (%b.tile([{tm},{tn}])[p, q])
    }}
  }}
"
            ),
            2 => format!(
                "  Allocate %r:[{bm}].f32.RF
  for (q = 0; q < {bn}; q += 1) {{
    if (@t == q % 32) {{
      Move <<<#cta.scalar()>>> (%a.permute([1,0])[q, _]) -> (%r)
      Move <<<#cta.scalar()>>> (%r) -> (%b[_, q])
    }}
  }}
"
            ),
            _ => format!(
                "  Allocate %r:[1].f32.RF
  for (e = 0; e < {bm} * {bn}; e += 32) {{
    if (e + @t < {bm} * {bn}) {{
      Move <<<#cta.scalar()>>> (%a.reshape([{0}]:[1])[e + @t]) -> (%r)
      Move <<<#cta.scalar()>>> (%r) -> (%b.reshape([{0}]:[1])[e + @t])
    }}
  }}
",
                bm * bn
            ),
        };
        let (head, output) = match self.corner {
            true => ("Spec @k", "(%A, %W) -> (%W) {\n  %B = %W[0..M, 0..N]"),
            false => ("Move @k", "(%A) -> (%B) {"),
        };
        let declared = match self.corner {
            true => "%W:[M + 5,N + 3].f32.GL".to_owned(),
            false => format!("%B:[{}].f32.GL", lies(self.lies[1])),
        };
        format!(
            "carbyne 2
{sizes}
%A:[{}].f32.GL
{declared}
{head} <<<#grid:[@i < ceil_div(M, {bm}), @j < ceil_div(N, {bn})], #cta:[@t < 32]>>> {output}
  %a = %A.tile([{bm},{bn}])[@i, @j]
  %b = %B.tile([{bm},{bn}])[@i, @j]
{body}}}
",
            lies(self.lies[0]),
        )
    }
}

proptest! {
    #![proptest_config(testing::config(200))]

    #[test]
    fn any_tiles_move_exactly_the_existing_elements(tiled in tiles()) {
        let [m, n] = tiled.extents;
        let symbols = if tiled.symbols { vec![("M", m), ("N", n)] } else { vec![] };
        let mut arrays = vec![("A", matrix(m, n, number))];
        let (name, rows, columns) = match tiled.corner {
            true => ("W", m + 5, n + 3),
            false => ("B", m, n),
        };
        if tiled.corner {
            arrays.push(("W", matrix(rows, columns, |_, _| -1.0)));
        }
        let report = good(&tiled.text(), &with(&arrays, &symbols));
        for (r, c) in (0..rows).flat_map(|r| (0..columns).map(move |c| (r, c))) {
            let wanted = if r < m && c < n { number(r, c) } else { -1.0 };
            prop_assert_eq!(at(&report, name, &[r, c]), wanted, "{} {}\n{}", r, c, tiled.text());
        }
        let (bm, bn) = (tiled.tile[0], tiled.tile[1]);
        prop_assert_eq!(report.kernels[0].n_blocks, (m + bm - 1) / bm * ((n + bn - 1) / bn));
    }
}

/// A step of a chain on a tile: its function of `x` and a number, in the kernel and in the meaning;
/// whether its result overwrites `x`; and whether the number is a tensor of one element or of as
/// many elements as the tile.
#[derive(Clone, Debug)]
struct ChainStep {
    op: usize,
    number: i8,
    in_place: bool,
    wide: Option<bool>,
}

/// The functions of `x` and `n`.
const STEPS: [&str; 9] = [
    "x - n",
    "x + n",
    "x * n",
    "n - x",
    "max(x, n)",
    "min(x, n)",
    "abs(x)",
    "x + x",
    "relu(x) * n",
];

fn chain_steps() -> impl Strategy<Value = (i64, usize, bool, Vec<ChainStep>)> {
    let step = (0..STEPS.len(), -2i8..=2, any::<bool>(), proptest::option::of(any::<bool>()));
    let step =
        step.prop_map(|(op, number, in_place, wide)| ChainStep { op, number, in_place, wide });
    (1i64..=64, 0usize..3, any::<bool>(), prop::collection::vec(step, 1..5))
}

/// A kernel that reduces the result of a chain on rows of `n` elements, in tiles of 64.
fn chain(n: i64, reduction: &str, shared: bool, steps: &[ChainStep]) -> String {
    let (mut means, mut body) = ("  %x0 = %X * 1.0\n".to_owned(), String::new());
    body.push_str(match shared {
        true => "  Move (%X.tile([1,64])[@i, 0]) -> (%x0:SH)\n",
        false => "  %x0 = move(%X.tile([1,64])[@i, 0])\n",
    });
    let mut own = "%x0".to_owned();
    for (i, step) in steps.iter().enumerate() {
        let (op, number) = (STEPS[step.op], format!("{}.0", step.number));
        let put = |x: &str, n: &str| {
            let of = |c: char| match c {
                'x' => x.to_owned(),
                'n' => n.to_owned(),
                c => c.to_string(),
            };
            // Names of functions are not operands.
            op.split_inclusive(['(', ' ', ',', ')']).fold(String::new(), |mut all, part| {
                match part.trim_end_matches(['(', ' ', ',', ')']) {
                    "x" | "n" => all.extend(part.chars().map(of)),
                    _ => all.push_str(part),
                }
                all
            })
        };
        means.push_str(&format!("  %x{} = {}\n", i + 1, put(&format!("%x{i}"), &number)));
        let operand = match step.wide {
            Some(wide) if op.contains('n') && !op.contains("min") || op.contains("min(x, n)") => {
                let extent = if wide { 64 } else { 1 };
                body.push_str(&format!("  %n{i}:[1,{extent}].f32 = {number}\n"));
                format!("%n{i}")
            }
            _ => number,
        };
        let to = if step.in_place { own.clone() } else { format!("%y{i}") };
        body.push_str(&format!("  {to} = {}\n", put(&own, &operand)));
        own = to;
    }
    let last = format!("%x{}", steps.len());
    format!(
        "carbyne 2
let N = {n}
%X:[2,N].f32.GL
%Y:[2,1].f32.GL
Spec @k <<<#grid:[@i < 2], #cta:[32]>>> (%X) -> (%Y) means {{
{means}  %Y = {reduction}({last}, axis=1)
}} {{
{body}  %Y.tile([1,1])[@i, 0] = {reduction}({own}, axis=1)
}}
"
    )
}

proptest! {
    #![proptest_config(testing::config(96))]

    /// The results of a chain outside of the tile do not affect the others, for any output of the
    /// chain.
    #[test]
    fn chains_of_partial_tiles_have_meaning((n, reduction, shared, steps) in chain_steps()) {
        let text = chain(n, ["sum", "max", "min"][reduction], shared, &steps);
        good(&text, &Options { inputs: Inputs::Ints(5), ..with(&[], &[]) });
    }
}

#[test]
fn combining_in_place_skips_elements_outside() {
    for in_place in [false, true] {
        for wide in [None, Some(false), Some(true)] {
            let step = ChainStep { op: 0, number: 1, in_place, wide };
            let text = chain(50, "sum", false, &[step.clone(), ChainStep { op: 8, ..step }]);
            good(&text, &with(&[], &[]));
        }
    }
}

/// Accumulators that begin as constants end with their tiles; elements chosen by coordinates are
/// chosen.
#[test]
fn accumulators_end_where_their_tiles_do() {
    for (what, text) in [
        (
            "columns that a product of partial tiles has not",
            "carbyne 2

%A:[16,40].f16.GL
%B:[40,13].f16.GL
%Y:[16,1].f32.GL

Spec @k <<<#grid:[1], #cta:[32]>>> (%A, %B) -> (%Y) means {
  %Y = sum(exp(matmul(%A, %B)), axis=1)
} {
  %c:[16,16].f32 = 0
  for (k = 0; k < 3; k += 1) {
    Move (%A.tile([16,16])[0, k]) -> (%a:SH)
    Move (%B.tile([16,16])[k, 0]) -> (%b:SH)
    MatMul (%a, %b) -> (%c)
  }
  %Y = sum(exp(%c), axis=1)
}
",
        ),
        (
            "a number with which a tile is combined in place",
            "carbyne 2

%X:[13,32].f32.GL
%Y:[1,16].f32.GL

Spec @k <<<#grid:[1], #cta:[64]>>> (%X) -> (%Y) means {
  %v2 = %X[_, 0..16] * %X[_, 0..16]
  %Y = min(%v2, axis=0)
} {
  %a:[16,16].f32 = 0
  %x = move(%X.tile([16,16])[0, 0])
  %a = %a + %x * %x
  %Y.tile([1,16])[0, 0] = min(%a, axis=0)
}
",
        ),
        (
            "maxima of tiles, combined from iteration to iteration",
            "carbyne 2

%X:[40,13].f32.GL
%Y:[1,1].f32.GL

Spec @k <<<#grid:[1], #cta:[32]>>> (%X) -> (%Y) means {
  %c = max(%X, axis=0)
  %Y = sum(%c, axis=1)
} {
  %c:[1,16].f32 = -inf
  for (k = 0; k < 3; k += 1) {
    %x = move(%X.tile([16,16])[k, 0])
    %c = max(%c, max(%x, axis=0))
  }
  %Y = sum(%c, axis=1)
}
",
        ),
        (
            "parts of a tile, chosen by hand",
            "carbyne 2

%X:[16,13].f32.GL
%Y:[16,1].f32.GL

Spec @k <<<#grid:[1], #cta:[32]>>> (%X) -> (%Y) means {
  %Y = sum(exp(%X), axis=1)
} {
  Allocate %s:[16,16].f32.SH{?}
  for (q = 0; q < 2; q += 1) {
    %s.tile([16,8])[0, q] = exp(%X.tile([16,8])[0, q])
  }
  %t = select(%s.iota(1) < 13, %s, 0.0)
  %Y = sum(%t, axis=1)
}
",
        ),
        (
            "branches, chosen by hand",
            "carbyne 2

%X:[16,13].f32.GL
%Y:[16,1].f32.GL

Spec @k <<<#grid:[@i < 2], #cta:[32]>>> (%X) -> (%Y) means {
  %v = select(%X.iota(0) < 8, %X + 1.0, %X * 3.0)
  %Y = max(%v, axis=1)
} {
  %x = move(%X.tile([8,16])[@i, 0])
  %v = %x + 0.0
  if (@i == 0) {
    %v = %v + 1.0
  } else {
    %v = %v * 3.0
  }
  %Y.tile([8,1])[@i, 0] = max(select(%v.iota(1) < 13, %v, -inf), axis=1)
}
",
        ),
        (
            "a tile in shared memory, carried through a loop",
            "carbyne 2

%X:[16,13].f32.GL
%Y:[16,13].f32.GL

Spec @k <<<#grid:[1], #cta:[32]>>> (%X) -> (%Y) means {
  %a = %X - max(%X, axis=1)
  %c = %a - max(%a, axis=1)
  %Y = %c + 0.0
} {
  Move (%X.tile([16,16])[0, 0]) -> (%x:SH)
  for (k = 0; k < 2; k += 1) {
    %x = %x - max(%x, axis=1)
  }
  %Y.tile([16,16])[0, 0] = %x + 0.0
}
",
        ),
    ] {
        let wrong = run(text, &with(&[], &[])).err();
        assert!(wrong.is_none(), "{what}: {wrong:?}");
    }
    // Sums of tiles that differ between iterations include all elements.
    let sums = "carbyne 2
%X:[16,40].f32.GL
%Y:[16,1].f32.GL
Spec @k <<<#grid:[1], #cta:[32]>>> (%X) -> (%Y) means {
  %Y = sum(%X, axis=1)
} {
  %a:[16,16].f32 = 0
  for (k = 0; k < 3; k += 1) {
    %x = move(%X.tile([16,16])[0, k])
    %a = %a + %x
  }
  %Y = sum(%a, axis=1)
}
";
    good(sums, &with(&[], &[]));
}
