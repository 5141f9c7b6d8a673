//! Tests that every spec of the guide can be decomposed as a kernel without a body, and computes
//! its meaning. This holds on every architecture that has instructions for the spec.
//!
//! A run tests a random fifth of the specs, each for a random architecture; with `CARBYNE_ALL=1` it
//! tests all of them for four architectures.

use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::testing;
use carbyne_simulate::Inputs;
use carbyne_testkit::gate::{Subject, Verdict, judge};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// From the oldest to the newest.
const ARCHS: [&str; 4] = ["sm_70", "sm_75", "sm_80", "sm_90a"];

/// Programs, and the first architecture that has instructions for it.
#[derive(Default)]
struct Programs(Vec<(String, &'static str, String)>);

impl Programs {
    fn push(&mut self, name: impl Into<String>, since: &'static str, text: impl AsRef<str>) {
        self.0.push((name.into(), since, format!("carbyne 2\n{}\n", text.as_ref())));
    }

    /// A kernel of one spec: operands by name and type.
    fn spec(&mut self, since: &'static str, head: &str, inputs: &[&str], output: &str, rest: &str) {
        let mut text = String::new();
        let mut names = vec![];
        for (name, ty) in ["A", "B", "C", "D"].iter().zip(inputs) {
            let _ = writeln!(text, "%{name}:{ty}");
            names.push(format!("%{name}"));
        }
        let _ = write!(text, "%Y:{output}\n{head} @k ({}) -> (%Y){rest}", names.join(", "));
        self.push(format!("{head} {} -> {output}{rest}", inputs.join(" ")), since, text);
    }

    /// A chain of specs.
    fn chain(&mut self, since: &'static str, operands: &[&str], means: &str) {
        let mut text = String::new();
        let names: Vec<&str> = operands.iter().filter_map(|o| Some(o.split_once(':')?.0)).collect();
        for operand in operands {
            let _ = writeln!(text, "{operand}");
        }
        let inputs = names.iter().filter(|n| !n.starts_with("%Y"));
        let inputs: Vec<String> = inputs.map(|n| (*n).to_owned()).collect();
        let outputs: Vec<&str> = names.iter().copied().filter(|n| n.starts_with("%Y")).collect();
        let (inputs, outputs) = (inputs.join(", "), outputs.join(", "));
        let _ = write!(text, "Spec @k ({inputs}) -> ({outputs}) means {{\n{means}\n}}");
        self.push(format!("{} {means}", operands.join(" ")), since, text);
    }

    /// Failures of a drawn fifth of the programs, each on a drawn architecture with a drawn kind of
    /// inputs.
    fn wrong(&self) -> Vec<String> {
        let mut wrong = vec![];
        let mut tables: Vec<Option<AtomTable>> = ARCHS.iter().map(|_| None).collect();
        for (name, since, text) in self.0.iter().filter(|(name, ..)| testing::one_in(5, name)) {
            let first = ARCHS.iter().position(|a| a == since).expect("an architecture");
            let archs: Vec<usize> = (first..ARCHS.len()).collect();
            for &number in testing::one_of(name, &archs) {
                let arch: Arch = ARCHS[number].parse().expect("an architecture");
                let table = tables[number].get_or_insert_with(|| AtomTable::new(arch));
                let inputs = [Inputs::Ints(3), Inputs::Seed(5)];
                let failed = testing::one_of(text, &inputs).iter().find_map(|inputs| {
                    let (text, exact, inputs) = (text.clone(), vec![], *inputs);
                    let (schedule, overflows, symbols) = (None, false, BTreeMap::new());
                    let subject =
                        Subject { text, arch, inputs, schedule, exact, overflows, symbols };
                    failure(&subject, table)
                });
                wrong.extend(failed.map(|why| format!("{arch}: {name}\n{text}{why}\n")));
            }
        }
        wrong
    }

    fn check(&self) {
        let wrong = self.wrong();
        assert!(wrong.is_empty(), "{} of {}\n{}", wrong.len(), self.0.len(), wrong.join("\n"));
    }
}

/// Why a program does not decompose, or what else it computes.
fn failure(subject: &Subject, table: &AtomTable) -> Option<String> {
    match judge(subject, table) {
        Verdict::Preserved(_) => None,
        Verdict::Discarded(d) => Some(format!("{d}: {}", d.label)),
        Verdict::Refused(all) => {
            let all = all.iter().map(|d| format!("{d}: {}\n{}", d.label, d.notes.join("\n")));
            Some(all.collect::<Vec<_>>().join("\n"))
        }
        Verdict::Failed(f) => {
            Some(format!("{}: {}\n{}", f.kind, f.what, f.decomposed.unwrap_or_default()))
        }
    }
}

fn row(m: i64, n: i64, ty: &str) -> String {
    format!("[{m},{n}].{ty}.GL")
}

fn column(m: i64, n: i64, ty: &str) -> String {
    format!("[({m},{n}):(1,{m})].{ty}.GL")
}

#[test]
fn products_of_every_type_and_major() {
    let mut all = Programs::default();
    for (since, factor, out, acc) in [
        ("sm_70", "f16", "f32", "f32"),
        ("sm_70", "f16", "f16", "f32"),
        ("sm_70", "f16", "f16", "f16"),
        ("sm_80", "bf16", "bf16", "f32"),
        ("sm_80", "bf16", "f32", "f32"),
        ("sm_70", "f32", "f32", "f32"),
        ("sm_80", "f64", "f64", "f64"),
        ("sm_75", "i8", "i32", "i32"),
        ("sm_75", "u8", "i32", "i32"),
        ("sm_90a", "e4m3", "f32", "f32"),
        ("sm_90a", "e4m3", "f16", "f32"),
        ("sm_90a", "e5m2", "f32", "f32"),
    ] {
        for majors in 0..8 {
            let of = |bit: i32, m, n, ty| match majors >> bit & 1 {
                0 => row(m, n, ty),
                _ => column(m, n, ty),
            };
            let (a, b, c) = (of(0, 64, 64, factor), of(1, 64, 128, factor), of(2, 64, 128, out));
            all.spec(since, "MatMul.set", &[&a, &b], &c, &format!(" acc={acc}"));
        }
    }
    all.check();
}

#[test]
fn products_of_every_form() {
    let mut all = Programs::default();
    let s = "sm_70";
    // Onto what is there.
    all.spec(s, "MatMul", &["[64,32].f16.GL", "[32,64].f16.GL"], "[64,64].f32.GL", " acc=f32");
    // Batched, and strided.
    all.spec(
        s,
        "MatMul.set",
        &["[3,64,32].f16.GL", "[3,32,64].f16.GL"],
        "[3,64,64].f32.GL",
        " acc=f32",
    );
    all.spec(
        s,
        "MatMul.set",
        &["[(64,32):(40,1)].f16.GL", "[(32,64):(72,1)].f16.GL"],
        "[(64,64):(80,1)].f32.GL",
        " acc=f32",
    );
    all.spec(
        s,
        "MatMul.set",
        &["[(3,64,32):(32,96,1)].f16.GL", "[(3,32,64):(64,192,1)].f16.GL"],
        "[(3,64,64):(64,192,1)].f32.GL",
        " acc=f32",
    );
    // A vector on either side, in both majors.
    for ty in ["f16", "f32", "f64"] {
        let acc = if ty == "f64" { "f64" } else { "f32" };
        let rest = format!(" acc={acc}");
        for (a, b, c) in [
            (row(64, 256, ty), row(256, 1, ty), row(64, 1, ty)),
            (column(64, 256, ty), row(256, 1, ty), row(64, 1, ty)),
            (row(1, 256, ty), row(256, 64, ty), row(1, 64, ty)),
            (row(1, 256, ty), column(256, 64, ty), row(1, 64, ty)),
            // Skinny.
            (row(256, 64, ty), row(64, 8, ty), row(256, 8, ty)),
            (row(8, 64, ty), row(64, 256, ty), row(8, 256, ty)),
            (row(16, 64, ty), row(64, 64, ty), row(16, 64, ty)),
            // A long K.
            (row(32, 2048, ty), row(2048, 32, ty), row(32, 32, ty)),
        ] {
            all.spec(s, "MatMul.set", &[&a, &b], &c, &rest);
        }
    }
    all.spec(
        "sm_75",
        "MatMul.set",
        &["[64,256].i8.GL", "[256,1].i8.GL"],
        "[64,1].i32.GL",
        " acc=i32",
    );
    all.spec(
        "sm_75",
        "MatMul.set",
        &["[16,64].i8.GL", "[(64,64):(1,64)].i8.GL"],
        "[16,64].i32.GL",
        " acc=i32",
    );
    all.check();
}

#[test]
fn products_with_chains_before_and_behind() {
    let mut all = Programs::default();
    let s = "sm_70";
    let (a, b) = ("%A:[64,64].f16.GL", "%B:[64,64].f16.GL");
    for (y, more, means) in [
        ("f16", "", "%Y = relu(matmul(%A, %B))"),
        ("f32", "%bias:[1,64].f32.GL", "%Y = relu(matmul(%A, %B) + %bias)"),
        ("f16", "%bias:[64,1].f16.GL", "%Y = gelu(matmul(%A, %B) + %bias)"),
        ("f16", "%alpha:[].f32", "%Y = matmul(%A, %B) * %alpha"),
        ("f32", "%R:[64,64].f32.GL", "%Y = matmul(%A, %B) * 0.5 + %R"),
        ("f16", "", "%Y = matmul(%A, %B.transpose())"),
        ("f16", "", "%Y = matmul(%A.transpose(), %B)"),
        ("f16", "%bias:[64].f16.GL", "%Y = matmul(%A, %B) + %bias.reshape([1,64]:[0,1])"),
        ("f32", "", "%Y = matmul(relu(%A), %B)"),
        ("f32", "%v:[1,64].f16.GL", "%Y = matmul(%A * %v, %B)"),
        ("f32", "%v:[64,1].f16.GL", "%Y = silu(matmul(%A, %B * %v))"),
        ("f32", "", "%t = matmul(%A, %B)\n%Y = exp(%t - max(%t, axis=1))"),
        ("f32", "", "%Y = sum(matmul(%A, %B), axis=1) + matmul(%A, %B)"),
    ] {
        let y = format!("%Y:[64,64].{y}.GL");
        let operands: Vec<&str> = [a, b, more, &y].into_iter().filter(|o| !o.is_empty()).collect();
        all.chain(s, &operands, means);
    }
    let (a, b, y) = ("%A:[3,64,64].f16.GL", "%B:[3,64,64].f16.GL", "%Y:[3,64,64].f16.GL");
    all.chain(s, &[a, b, y], "%Y = relu(matmul(%A, %B))");
    all.chain(s, &[a, b, y, "%bias:[1,1,64].f32.GL"], "%Y = matmul(%A, %B.transpose()) + %bias");
    all.chain(
        "sm_80",
        &["%A:[64,64].f32.GL", "%B:[64,64].f32.GL", "%Y:[64,64].f32.GL"],
        "%Y = matmul(cast(%A, tf32), cast(%B, tf32))",
    );
    all.chain(
        s,
        &["%A:[64,64].f32.GL", "%B:[64,64].f32.GL", "%Y:[64,64].f32.GL"],
        "%Y = matmul(relu(%A), %B)",
    );
    all.chain(
        s,
        &["%A:[64,64].i8.GL", "%B:[64,64].f16.GL", "%Y:[64,64].f16.GL"],
        "%Y = matmul(cast(%A, f16), %B)",
    );
    all.chain(
        s,
        &["%A:[64,256].f16.GL", "%x:[256,1].f16.GL", "%Y:[64,1].f16.GL", "%b:[64,1].f16.GL"],
        "%Y = relu(matmul(%A, %x) + %b)",
    );
    all.chain(
        s,
        &["%A:[1,256].f16.GL", "%W:[256,64].f16.GL", "%Y:[1,64].f16.GL", "%b:[1,64].f16.GL"],
        "%Y = silu(matmul(%A, %W) + %b)",
    );
    all.check();
}

#[test]
fn moves_of_every_kind() {
    let mut all = Programs::default();
    let s = "sm_70";
    for ty in ["f16", "f32", "f64", "i8", "i32", "u8", "i64", "bf16", "bool"] {
        for (m, n) in [(64, 64), (96, 40), (1, 128), (128, 1)] {
            all.spec(s, "Move", &[&row(m, n, ty)], &row(m, n, ty), "");
            all.spec(s, "Move", &[&row(m, n, ty)], &column(m, n, ty), "");
        }
    }
    for (from, to) in [
        ("[100].f32.GL", "[100].f32.GL"),
        ("[(100):(2)].f32.GL", "[100].f32.GL"),
        ("[1].f32.GL", "[1].f32.GL"),
        ("[7,5,3].f32.GL", "[7,5,3].f32.GL"),
        ("[8,16,32].f16.GL", "[(8,16,32):(1,8,128)].f16.GL"),
        ("[8,16,32].f16.GL", "[(8,16,32):(16,1,128)].f16.GL"),
        ("[8,16,32].f16.GL", "[(8,16,32):(512,1,16)].f16.GL"),
        ("[2,3,16,32].f32.GL", "[(2,3,16,32):(1536,32,96,1)].f32.GL"),
        ("[2,3,16,32].f32.GL", "[(2,3,16,32):(1,2,6,96)].f32.GL"),
        ("[2,4,2,8,16].f32.GL", "[(2,4,2,8,16):(1,32,128,256,2)].f32.GL"),
        ("[1,64].f32.GL", "[32,64].f32.GL"),
        ("[64,1].f32.GL", "[64,32].f32.GL"),
        ("[4096,3].u8.GL", "[(4096,3):(1,4096)].u8.GL"),
        ("[(64,(8,8)):(64,(1,8))].f16.GL", "[64,64].f16.GL"),
    ] {
        all.spec(s, "Move", &[from], to, "");
    }
    for (from, to) in [
        ("[64,64].f32.GL", "[64,64].f32.GL"),
        ("[64,64].i32.GL", "[64,64].i32.GL"),
        ("[256].f32.GL", "[256].f32.GL"),
        ("[4,16,32].f32.GL", "[4,16,32].f32.GL"),
    ] {
        all.spec(s, "Move.add", &[from], to, "");
    }
    all.spec("sm_75", "Move.add", &["[64,64].f16.GL"], "[64,64].f16.GL", "");
    all.spec("sm_90a", "Move.add", &["[64,64].bf16.GL"], "[64,64].bf16.GL", "");
    all.chain(s, &["%A:[64,96].f16.GL", "%Y:[96,64].f16.GL"], "%Y = move(%A.transpose())");
    all.chain(s, &["%A:[4,8,96].f16.GL", "%Y:[96,4,8].f16.GL"], "%Y = move(%A.permute([2,0,1]))");
    all.chain(s, &["%A:[64,64].f16.GL", "%Y:[32,16].f16.GL"], "%Y = move(%A.tile([32,16])[1, 2])");
    all.chain(s, &["%A:[64,64].f16.GL", "%Y:[32,64].f16.GL"], "%Y = move(%A[0..32, _])");
    all.chain(
        s,
        &["%A:[64,64].f16.GL", "%Y:[64,32,2].f16.GL"],
        "%Y = move(%A.reshape([64,32,2]:[1,128,64]))",
    );
    let gather = "%A:[64,128].f32.GL
%rows:[32].i32.GL in 0..64
%Y:[32,128].f32.GL
Spec @k (%A, %rows) -> (%Y) means {
%Y = move(%A[%rows, _])
}";
    all.push("gather", s, gather);
    let scaled = "%A:[64,128].f16.GL
%rows:[32].i32.GL in 0..64
%w:[32,1].f16.GL
%Y:[32,128].f16.GL
Spec @k (%A, %rows, %w) -> (%Y) means {
%Y = %A[%rows, _] * %w
}";
    all.push("gather of halves, scaled", s, scaled);
    for (ty, n) in [("f32", "0"), ("f16", "1"), ("i32", "7"), ("u8", "3"), ("f64", "2.5")] {
        all.push(format!("Init {ty}"), s, format!("%Y:[48,40].{ty}.GL\nInit @k ({n}) -> (%Y)"));
    }
    all.push("Init of one", s, "%Y:[1].f32.GL\nInit @k (-inf) -> (%Y)");
    all.check();
}

#[test]
fn pointwise_of_every_function() {
    let mut all = Programs::default();
    let s = "sm_70";
    let of = |ty: &str| format!("[32,96].{ty}.GL");
    for op in [
        "exp", "exp2", "log", "sqrt", "rsqrt", "rcp", "tanh", "sigmoid", "relu", "gelu", "silu",
        "abs", "neg",
    ] {
        for ty in ["f32", "f16"] {
            all.spec(s, &format!("UnaryPointwise.{op}"), &[&of(ty)], &of(ty), "");
        }
    }
    all.spec("sm_80", "UnaryPointwise.exp", &[&of("bf16")], &of("bf16"), "");
    all.spec(s, "UnaryPointwise.neg", &[&of("i32")], &of("i32"), "");
    all.spec(s, "UnaryPointwise.abs", &[&of("f64")], &of("f64"), "");
    for (from, to) in [
        ("f32", "f16"),
        ("f16", "f32"),
        ("i32", "f32"),
        ("f32", "i32"),
        ("i8", "f16"),
        ("f64", "f32"),
        ("f16", "f64"),
        ("u8", "i32"),
    ] {
        all.spec(s, "UnaryPointwise.cast", &[&of(from)], &of(to), "");
    }
    all.spec("sm_80", "UnaryPointwise.cast", &[&of("f32")], &of("bf16"), "");
    all.spec("sm_80", "UnaryPointwise.cast", &[&of("bf16")], &of("f32"), "");
    all.spec("sm_90a", "UnaryPointwise.cast", &[&of("f32")], &of("e4m3"), "");
    all.spec("sm_90a", "UnaryPointwise.cast", &[&of("e4m3")], &of("f16"), "");
    for op in ["add", "sub", "mul", "div", "min", "max"] {
        for ty in ["f32", "f16", "i32", "f64"] {
            all.spec(s, &format!("BinaryPointwise.{op}"), &[&of(ty), &of(ty)], &of(ty), "");
        }
    }
    for op in ["lt", "le", "eq", "ne", "ge", "gt"] {
        for ty in ["f32", "f16", "i32"] {
            all.spec(s, &format!("BinaryPointwise.{op}"), &[&of(ty), &of(ty)], &of("bool"), "");
        }
    }
    for ty in ["f32", "f16", "i32"] {
        all.spec(s, "Select", &[&of("bool"), &of(ty), &of(ty)], &of(ty), "");
    }
    // Broadcasts, ranks, orders.
    for (a, b, y) in [
        ("[32,1].f32.GL", "[32,96].f32.GL", "[32,96].f32.GL"),
        ("[1,96].f32.GL", "[32,96].f32.GL", "[32,96].f32.GL"),
        ("[32,1].f32.GL", "[1,96].f32.GL", "[32,96].f32.GL"),
        ("[1,1].f32.GL", "[32,96].f32.GL", "[32,96].f32.GL"),
        ("[512].f32.GL", "[512].f32.GL", "[512].f32.GL"),
        ("[4,8,48].f32.GL", "[4,8,48].f32.GL", "[4,8,48].f32.GL"),
        ("[4,1,48].f32.GL", "[1,8,48].f32.GL", "[4,8,48].f32.GL"),
        ("[2,4,8,16].f32.GL", "[1,4,1,16].f32.GL", "[2,4,8,16].f32.GL"),
        ("[2,1,8,1].f32.GL", "[1,4,1,16].f32.GL", "[2,4,8,16].f32.GL"),
        ("[(32,96):(1,32)].f32.GL", "[32,96].f32.GL", "[32,96].f32.GL"),
        ("[(32,96):(104,1)].f32.GL", "[32,96].f32.GL", "[(32,96):(1,32)].f32.GL"),
        ("[(4,8,48):(1,4,32)].f32.GL", "[4,8,48].f32.GL", "[4,8,48].f32.GL"),
        ("[7,11].f32.GL", "[7,11].f32.GL", "[7,11].f32.GL"),
        ("[1].f32.GL", "[1].f32.GL", "[1].f32.GL"),
    ] {
        all.spec(s, "BinaryPointwise.add", &[a, b], y, "");
    }
    all.check();
}

#[test]
fn reductions_of_every_operation_and_set_of_modes() {
    let mut all = Programs::default();
    let s = "sm_70";
    for (op, types) in [
        ("sum", &["f32", "f16", "f64", "i32"][..]),
        ("prod", &["f32", "i32"]),
        ("min", &["f32", "f16", "i32", "f64"]),
        ("max", &["f32", "f16", "i32", "u32"]),
        ("and", &["i32", "u32"]),
        ("or", &["i32"]),
        ("xor", &["i32"]),
    ] {
        for ty in types {
            for (y, axes) in
                [("[32,1]", "1"), ("[1,64]", "0"), ("[1,1]", "(0,1)"), ("[32]", "1"), ("[64]", "0")]
            {
                let rest = format!(" axis={axes}");
                let head = format!("Reduction.{op}");
                all.spec(s, &head, &[&row(32, 64, ty)], &format!("{y}.{ty}.GL"), &rest);
            }
        }
    }
    // Every set of modes of three and four.
    let extents = [4, 6, 8, 16];
    for rank in 3..=4usize {
        for set in 1..1usize << rank {
            let own = &extents[..rank];
            let axes: Vec<usize> = (0..rank).filter(|m| set >> m & 1 == 1).collect();
            let kept = own.iter().enumerate().map(|(m, e)| if axes.contains(&m) { 1 } else { *e });
            let list = |all: Vec<String>| all.join(",");
            let from = list(own.iter().map(ToString::to_string).collect());
            let to = list(kept.map(|e| e.to_string()).collect());
            let axes = match &axes[..] {
                [one] => one.to_string(),
                many => format!("({})", list(many.iter().map(ToString::to_string).collect())),
            };
            all.spec(
                s,
                "Reduction.sum",
                &[&format!("[{from}].f32.GL")],
                &format!("[{to}].f32.GL"),
                &format!(" axis={axes}"),
            );
        }
    }
    for (from, y, axes) in [
        ("[(32,64):(1,32)].f32.GL", "[32,1].f32.GL", "1"),
        ("[(32,64):(1,32)].f32.GL", "[1,64].f32.GL", "0"),
        ("[1000].f32.GL", "[1].f32.GL", "0"),
        ("[7,13].f32.GL", "[7,1].f32.GL", "1"),
        ("[2,20000].f32.GL", "[2,1].f32.GL", "1"),
        ("[20000,2].f32.GL", "[1,2].f32.GL", "0"),
        ("[65536].f32.GL", "[1].f32.GL", "0"),
    ] {
        all.spec(s, "Reduction.sum", &[from], y, &format!(" axis={axes}"));
        all.spec(s, "Reduction.max", &[from], y, &format!(" axis={axes}"));
    }
    all.check();
}

#[test]
fn chains_of_several() {
    let mut all = Programs::default();
    let s = "sm_70";
    for ty in ["f32", "f16"] {
        let of = |name: &str, extents: &str| format!("%{name}:[{extents}].{ty}.GL");
        for extents in ["16,128", "2,8,128", "128,64", "8,1000"] {
            let rank = extents.split(',').count();
            let (last, n) = (rank - 1, extents.rsplit(',').next().expect("an extent"));
            let row = format!("{}{n}", "1,".repeat(last));
            let (x, y) = (of("X", extents), of("Y", extents));
            let (g, b) = (of("g", &row), of("b", &row));
            all.chain(
                s,
                &[&x, &y],
                &format!("%e = exp(%X - max(%X, axis={last}))\n%Y = %e / sum(%e, axis={last})"),
            );
            all.chain(
                s,
                &[&x, &g, &b, &y],
                &format!(
                    "%m = sum(%X, axis={last}) / {n}.0\n%d = %X - %m\n\
                     %v = sum(%d * %d, axis={last}) / {n}.0\n\
                     %Y = %d * rsqrt(%v + 0.00001) * %g + %b"
                ),
            );
            all.chain(
                s,
                &[&x, &g, &y],
                &format!("%Y = %X * rsqrt(sum(%X * %X, axis={last}) / {n}.0 + 0.00001) * %g"),
            );
        }
        let (x, y, z) = (of("X", "64,64"), of("Y", "64,64"), of("Z", "64,64"));
        all.chain(s, &[&x, &z, &y], "%Y = silu(%X) * %Z");
        all.chain(s, &[&x, &z, &y], "%Y = select(%X < %Z, %X, %Z * 2.0)");
        all.chain(s, &[&x, &y], "%Y = select(%X.iota(0) >= %X.iota(1), %X, -inf)");
        all.chain(s, &[&x, &y], "%Y = %X + %X.transpose()");
        all.chain(s, &[&x, &z, &y, &of("Y2", "64,64")], "%Y = %X + %Z\n%Y2 = %X - %Z");
        all.chain(
            s,
            &[&x, &y, &of("Y2", "64,1")],
            "%s = sum(%X, axis=1)\n%Y = %X / %s\n%Y2 = %s * 1.0",
        );
        all.chain(
            s,
            &[&x, &y],
            "%Y = exp(%X - max(%X, axis=0)) / sum(exp(%X - max(%X, axis=0)), axis=0)",
        );
        all.chain(s, &[&x, &of("Y", "64,1")], "%Y = sum(%X * %X, axis=1)");
        all.chain(s, &[&x, &of("Y", "64,1")], "%Y = sqrt(sum(%X * %X, axis=1)) * 0.5");
        all.chain(s, &[&x, &of("Y", "1,64")], "%Y = max(abs(%X), axis=0)");
        all.chain(s, &[&x, &of("Y", "1,1")], "%Y = sum(%X * %X, axis=(0,1)) / 4096.0");
        all.chain(s, &[&of("X", "4,16,64"), &of("Y", "4,1,64")], "%Y = sum(%X, axis=1) / 16.0");
        all.chain(
            s,
            &[&of("X", "4,16,64"), &of("Y", "1,16,1")],
            "%Y = sum(%X, axis=(0,2)) / 256.0",
        );
        all.chain(
            s,
            &[&of("X", "2,4,8,16"), &of("Y", "1,4,1,1")],
            "%Y = sum(%X * %X, axis=(0,2,3))",
        );
        all.chain(s, &[&of("X", "2,4,8,16"), &of("Y", "1,4,1,16")], "%Y = max(%X, axis=(0,2))");
        all.chain(
            s,
            &[&of("X", "16,8192"), &of("Y", "16,8192")],
            "%e = exp(%X - max(%X, axis=1))\n%Y = %e / sum(%e, axis=1)",
        );
    }
    all.check();
}
