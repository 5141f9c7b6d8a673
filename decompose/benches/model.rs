//! Compares the cost model with measurements: prints the rank correlation of each problem, and how
//! much slower the model's first choice is than the best one.
//!
//! ```text
//! cargo bench -p carbyne-decompose --bench model                  # the table
//! cargo bench -p carbyne-decompose --bench model -- --fit         # values for `FITTED`
//! cargo bench -p carbyne-decompose --bench model -- --write DIR   # the kernels, to be measured
//! ```
//!
//! `bench/model.sh` measures the kernels that `--write` wrote; its output is `bench/model.tsv`:
//! problem, parameters, microseconds.

use carbyne_atoms::{Arch, AtomTable, Machine, machine};
use carbyne_decompose::Resource;
use carbyne_decompose::internals::{FITTED, Fitted, Model};
use carbyne_ir::program::Program;
use carbyne_ir::{resolve, text};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;

const MEASURED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/model.tsv");

/// A problem, its parameters, and the text of the kernel.
struct Instance {
    problem: String,
    parameters: String,
    text: String,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--write", dir] => write(dir),
        ["--fit"] => {
            let fitted = |r: &Row| !HELD_OUT.contains(&r.problem.as_str());
            fit(&rows().into_iter().filter(fitted).collect::<Vec<_>>());
        }
        _ => {
            let rows = rows();
            let root = error(&rows, &FITTED).sqrt();
            let out = table(&rows, &FITTED, true);
            say(&format!("{out}root of the mean square of the logarithms: {root:.3}\n"));
        }
    }
}

/// Nobody is left to tell that standard output is closed.
fn say(text: &str) {
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Tile m, n, k, warps along m and n, stages, and whether the next slice is loaded while one is
/// multiplied.
type Gemm = (i64, i64, i64, i64, i64, i64, bool);

const GEMMS: [Gemm; 16] = [
    (128, 256, 64, 2, 4, 4, true),
    (256, 128, 64, 4, 2, 3, true),
    (128, 256, 32, 2, 4, 4, true),
    (128, 128, 32, 2, 2, 4, true),
    (128, 128, 64, 2, 2, 3, true),
    (128, 128, 64, 2, 4, 3, true),
    (128, 128, 32, 2, 2, 2, false),
    (128, 128, 32, 4, 2, 1, false),
    (64, 128, 64, 2, 2, 3, true),
    (128, 64, 32, 2, 2, 4, false),
    (64, 64, 64, 2, 2, 4, true),
    (64, 64, 32, 1, 2, 2, false),
    (64, 256, 32, 1, 4, 4, true),
    (32, 64, 64, 2, 2, 3, false),
    (32, 32, 64, 1, 2, 2, false),
    (256, 64, 32, 4, 1, 4, true),
];

/// Problems that the constants were not fitted to.
const HELD_OUT: [&str; 4] =
    ["gemm 3072x3072x3072", "gemm 512x8192x2048", "copy 4096x2048", "rmsnorm 4096x8192"];

fn instances() -> Vec<Instance> {
    let mut out = vec![];
    let mut add = |problem: &str, parameters: String, text: String| {
        out.push(Instance { problem: problem.to_owned(), parameters, text });
    };
    gemms(&mut add);
    copies(&mut add);
    transposes(&mut add);
    row_sums(&mut add);
    silus(&mut add);
    softmaxes(&mut add);
    norms(&mut add);
    out
}

/// Adds an instance: its problem, its parameters, and its text.
type Add<'a> = &'a mut dyn FnMut(&str, String, String);

fn gemms(add: Add<'_>) {
    for (m, n, k) in [
        (1024, 1024, 1024),
        (2048, 2048, 2048),
        (4096, 4096, 4096),
        (1024, 4096, 512),
        (3072, 3072, 3072),
        (512, 8192, 2048),
    ] {
        for (i, g) in GEMMS.iter().enumerate() {
            // The first of each and every third of the others that its neighbors leave out.
            if (i + m as usize / 1024) % 4 == 3 && i > 1 {
                continue;
            }
            let (bm, bn, bk, wm, wn, s, ahead) = *g;
            let parameters = format!(
                "tile=({bm},{bn},{bk}) warps=({wm},{wn}) stages={s}{}",
                if ahead { " ahead" } else { "" }
            );
            add(&format!("gemm {m}x{n}x{k}"), parameters, gemm((m, n, k), *g));
        }
    }
}

fn copies(add: Add<'_>) {
    for (m, n, tiles) in [
        (
            8192,
            8192,
            [(1, 1024, 128), (4, 1024, 128), (8, 2048, 256), (1, 256, 32), (2, 8192, 512)],
        ),
        (4096, 2048, [(1, 1024, 128), (8, 512, 128), (8, 2048, 256), (2, 128, 32), (1, 2048, 64)]),
    ] {
        for (bm, bn, threads) in tiles {
            let (gm, gn) = (m / bm, n / bn);
            let text = format!(
                "carbyne 2\n%A:[{m},{n}].f16.GL\n%B:[{m},{n}].f16.GL\n\
                 Move @copy <<<#grid:[@j < {gn}, @i < {gm}], #cta:[{threads}]>>> \
                 (%A) -> (%B) {{\n  \
                 Move (%A.tile([{bm},{bn}])[@i, @j]) -> (%x)\n  \
                 Move (%x) -> (%B.tile([{bm},{bn}])[@i, @j])\n}}\n"
            );
            add(&format!("copy {m}x{n}"), format!("tile=({bm},{bn}) threads={threads}"), text);
        }
    }
}

fn transposes(add: Add<'_>) {
    for (b, c, threads) in
        [(64, 64, 128), (32, 32, 64), (64, 64, 256), (128, 64, 256), (128, 128, 256)]
    {
        let text = format!(
            "carbyne 2\n%A:[4096,4096].f16.GL\n%B:[(4096,4096):(1,4096)].f16.GL\n\
             Move @transpose <<<#grid:[@i < {}, @j < {}], #cta:[{threads}]>>> (%A) -> (%B) {{\n  \
             Move (%A.tile([{b},{c}])[@i, @j]) -> (%r)\n  \
             Move (%r) -> (%s:SH)\n  Move (%s) -> (%q)\n  \
             Move (%q) -> (%B.tile([{b},{c}])[@i, @j])\n}}\n",
            4096 / b,
            4096 / c
        );
        add("transpose 4096x4096", format!("tile=({b},{c}) threads={threads}"), text);
    }
}

fn row_sums(add: Add<'_>) {
    for (b, c, threads) in
        [(1, 8192, 256), (1, 2048, 128), (4, 1024, 128), (16, 256, 128), (8, 4096, 512)]
    {
        let text = format!(
            "carbyne 2\n%X:[8192,8192].f32.GL\n%Y:[8192,1].f32.GL\n\
             Reduction.sum @rows <<<#grid:[@i < {}], #cta:[{threads}]>>> (%X) -> (%Y) axis=1 {{\n  \
             %y:[{b},1].f32 = 0\n  for (k = 0; k < {}; k += 1) {{\n    \
             %y = %y + sum(%X.tile([{b},{c}])[@i, k], axis=1)\n  }}\n  \
             Move (%y) -> (%Y.tile([{b},1])[@i, 0])\n}}\n",
            8192 / b,
            8192 / c
        );
        add("row sum 8192x8192", format!("tile=({b},{c}) threads={threads}"), text);
    }
}

fn silus(add: Add<'_>) {
    for (b, c, threads) in
        [(1, 1024, 128), (4, 1024, 256), (1, 4096, 256), (2, 256, 64), (8, 4096, 1024)]
    {
        let text = format!(
            "carbyne 2\n%X:[8192,4096].f16.GL\n%Z:[8192,4096].f16.GL\n%Y:[8192,4096].f16.GL\n\
             Spec @silu_mul <<<#grid:[@j < {}, @i < {}], #cta:[{threads}]>>> \
             (%X, %Z) -> (%Y) means {{\n  \
             %Y = silu(%X) * %Z\n}} {{\n  %x = cast(%X.tile([{b},{c}])[@i, @j], f32)\n  \
             %z = cast(%Z.tile([{b},{c}])[@i, @j], f32)\n  \
             %Y.tile([{b},{c}])[@i, @j] = cast(silu(%x) * %z, f16)\n}}\n",
            4096 / c,
            8192 / b
        );
        add("silu and product 8192x4096", format!("tile=({b},{c}) threads={threads}"), text);
    }
}

fn softmaxes(add: Add<'_>) {
    for (b, threads) in [(1, 128), (4, 128), (1, 256), (8, 256), (1, 512), (2, 64)] {
        let text = format!(
            "carbyne 2\n%X:[16384,2048].f16.GL\n%Y:[16384,2048].f16.GL\n\
             Spec @softmax <<<#grid:[@i < {}], #cta:[{threads}]>>> (%X) -> (%Y) means {{\n  \
             %e = exp(%X - max(%X, axis=1))\n  %Y = %e / sum(%e, axis=1)\n}} {{\n  \
             %x = cast(%X.tile([{b},2048])[@i, 0], f32)\n  %e = exp(%x - max(%x, axis=1))\n  \
             %Y.tile([{b},2048])[@i, 0] = cast(%e / sum(%e, axis=1), f16)\n}}\n",
            16384 / b
        );
        add("softmax 16384x2048", format!("rows={b} threads={threads}"), text);
    }
}

fn norms(add: Add<'_>) {
    for (m, n) in [(16384, 2048), (4096, 8192)] {
        for (b, threads) in [(1, 128), (4, 128), (1, 256), (8, 256), (2, 64)] {
            // A row of 8192 takes four times the registers.
            let (b, threads) = if n > 2048 { (b.min(2), threads * 2) } else { (b, threads) };
            let blocks = m / b;
            let text = format!(
                "carbyne 2\n%X:[{m},{n}].f16.GL\n%w:[1,{n}].f32.GL\n%Y:[{m},{n}].f16.GL\n\
                 Spec @rmsnorm <<<#grid:[@i < {blocks}], #cta:[{threads}]>>> \
                 (%X, %w) -> (%Y) means {{\n  \
                 %s = rsqrt(sum(%X * %X, axis=1) / {n} + 1e-5)\n  %Y = %X * %s * %w\n}} {{\n  \
                 %x = cast(%X.tile([{b},{n}])[@i, 0], f32)\n  \
                 %s = rsqrt(sum(%x * %x, axis=1) / {n} + 1e-5)\n  \
                 %Y.tile([{b},{n}])[@i, 0] = cast(%x * %s * %w, f16)\n}}\n"
            );
            add(&format!("rmsnorm {m}x{n}"), format!("rows={b} threads={threads}"), text);
        }
    }
}

fn gemm((m, n, k): (i64, i64, i64), (bm, bn, bk, wm, wn, stages, ahead): Gemm) -> String {
    let (gm, gn) = (m / bm, n / bn);
    let grid = match gm > 16 && gm % 16 == 0 {
        true => format!("((16,{}),{gn}):((1,{}),16)", gm / 16, 16 * gn),
        false => format!("({gm},{gn}):(1,{gm})"),
    };
    let stages = if stages > 1 { format!(" stages={stages}") } else { String::new() };
    let slices = if ahead { " stages=2" } else { "" };
    format!(
        "carbyne 2
%A:[{m},{k}].f16.GL
%B:[{k},{n}].f16.GL
%C:[{m},{n}].f16.GL
#grid:[{grid}].block
#cta:[{threads}].thread
MatMul.set @gemm <<<#grid, #cta>>> (%A, %B) -> (%C) acc=f32 {{
  @i, @j = #grid.indices()
  %c:[{bm},{bn}].f32 = 0
  for (k = 0; k < {steps}; k += 1){stages} {{
    Move (%A.tile([{bm},{bk}])[@i, k]) -> (%a:SH)
    Move (%B.tile([{bk},{bn}])[k, @j]) -> (%b:SH)
    for (s = 0; s < {slice}; s += 1) unroll{slices} {{
      Move (%a.tile([{bm},16])[0, s]) -> (%ra)
      Move (%b.tile([16,{bn}])[s, 0]) -> (%rb)
      MatMul (%ra, %rb) -> (%c) warps=({wm},{wn})
    }}
  }}
  %half = cast(%c, f16)
  Move (%half) -> (%out:SH)
  Move (%out) -> (%C.tile([{bm},{bn}])[@i, @j])
}}
",
        threads = 32 * wm * wn,
        steps = k / bk,
        slice = bk / 16,
    )
}

fn write(dir: &str) {
    let mut list = String::new();
    for (i, instance) in instances().iter().enumerate() {
        std::fs::write(format!("{dir}/{i:03}.cby"), &instance.text).expect("a folder to write to");
        let _ = writeln!(list, "{i:03}\t{}\t{}", instance.problem, instance.parameters);
    }
    std::fs::write(format!("{dir}/list.tsv"), list).expect("a folder to write to");
}

/// A measured instance.
struct Row {
    problem: String,
    parameters: String,
    measured: f64,
    /// As it is written, and as it is solved.
    program: Program,
}

fn table_of() -> (AtomTable, Machine) {
    (AtomTable::new(Arch::Sm90a), machine(Arch::Sm90a))
}

fn rows() -> Vec<Row> {
    let measured = std::fs::read_to_string(MEASURED).expect("bench/model.tsv");
    let texts: BTreeMap<(String, String), String> =
        instances().into_iter().map(|i| ((i.problem, i.parameters), i.text)).collect();
    let mut out = vec![];
    for line in measured.lines().filter(|l| !l.starts_with('#')) {
        let [problem, parameters, us] = line.split('\t').collect::<Vec<_>>()[..] else { continue };
        let (problem, parameters) = (problem.to_owned(), parameters.to_owned());
        let Ok(measured) = us.parse() else { continue };
        let Some(text) = texts.get(&(problem.clone(), parameters.clone())) else { continue };
        let module = text::parse(text).expect("parses");
        let module = resolve::elaborate(&module, text).expect("elaborates");
        let program = carbyne_decompose::checked(&module, text).expect("resolves");
        out.push(Row { problem, parameters, measured, program });
    }
    out
}

/// Microseconds that the model expects.
fn bounds(rows: &[Row], fitted: &Fitted) -> Vec<f64> {
    let (table, machine) = table_of();
    let model = Model::new(&table, &machine).with(*fitted);
    let of = |r: &Row| {
        model.bound(&r.program, r.program.kernels[0]).map_or(f64::INFINITY, |e| e.microseconds)
    };
    rows.iter().map(of).collect()
}

fn table(rows: &[Row], fitted: &Fitted, all: bool) -> String {
    let mut out = String::new();
    let expected = bounds(rows, fitted);
    let (table, machine) = table_of();
    let model = Model::new(&table, &machine).with(*fitted);
    let mut problems: Vec<&str> = rows.iter().map(|r| r.problem.as_str()).collect();
    problems.dedup();
    let (mut loss, mut n) = (0.0, 0.0);
    for problem in problems {
        let own: Vec<usize> = (0..rows.len()).filter(|i| rows[*i].problem == problem).collect();
        let measured: Vec<f64> = own.iter().map(|i| rows[*i].measured).collect();
        let bound: Vec<f64> = own.iter().map(|i| expected[*i]).collect();
        let best = measured.iter().copied().fold(f64::INFINITY, f64::min);
        let first = (0..own.len()).min_by(|a, b| bound[*a].total_cmp(&bound[*b])).unwrap_or(0);
        let lost = measured[first] / best;
        (loss, n) = (loss + libm::log(lost), n + 1.0);
        let _ = writeln!(
            out,
            "{problem}{}: rank correlation {:.2}, first choice {:.1} % slower than the best",
            if HELD_OUT.contains(&problem) { " (held out)" } else { "" },
            spearman(&measured, &bound),
            100.0 * (lost - 1.0)
        );
        if !all {
            continue;
        }
        let mut order: Vec<usize> = own.clone();
        order.sort_by(|a, b| rows[*a].measured.total_cmp(&rows[*b].measured));
        for i in order {
            let r = &rows[i];
            let _ = write!(
                out,
                "  {:44} {:8.1} us, model {:8.1}",
                r.parameters, r.measured, expected[i]
            );
            if let Ok(e) = model.bound(&r.program, r.program.kernels[0]) {
                let _ = write!(
                    out,
                    "  {} a multiprocessor, {:.2} waves, {} registers:",
                    e.blocks_per_sm, e.waves, e.registers
                );
                for resource in Resource::ALL {
                    let name: String = resource.as_str().chars().take(6).collect();
                    let _ = write!(out, " {name} {:.1}", machine.microseconds(e[resource].cycles));
                }
            }
            out.push('\n');
        }
    }
    let _ = writeln!(
        out,
        "geometric mean of what first choices lose: {:.1} %",
        100.0 * (libm::exp(loss / n) - 1.0)
    );
    out
}

/// The correlation of the ranks.
fn spearman(a: &[f64], b: &[f64]) -> f64 {
    let ranks = |v: &[f64]| -> Vec<f64> {
        let rank = |x: f64| {
            let less = v.iter().filter(|y| **y < x).count() as f64;
            let same = v.iter().filter(|y| **y == x).count() as f64;
            less + (same - 1.0) / 2.0
        };
        v.iter().map(|x| rank(*x)).collect()
    };
    let (a, b) = (ranks(a), ranks(b));
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let dot = |x: &[f64], y: &[f64]| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mean) * (y - mean)).sum()
    };
    dot(&a, &b) / (dot(&a, &a) * dot(&b, &b)).sqrt().max(1e-9)
}

/// The mean of the squares of the logarithms of model over measured. What is the same for all
/// instances of a problem counts by a tenth, since instances are chosen by the rest; so do
/// instances that are twice as slow as the best of their problem.
fn error(rows: &[Row], fitted: &Fitted) -> f64 {
    let expected = bounds(rows, fitted);
    let mut of: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    rows.iter().enumerate().for_each(|(i, r)| of.entry(&r.problem).or_default().push(i));
    let (mut sum, mut all) = (0.0, 0.0);
    for own in of.values() {
        let best = own.iter().map(|i| rows[*i].measured).fold(f64::INFINITY, f64::min);
        let weight = |i: usize| libm::pow(best / rows[i].measured, 3.3);
        let off = |i: usize| libm::log(expected[i] / rows[i].measured);
        let weights: f64 = own.iter().map(|i| weight(*i)).sum();
        let mean = own.iter().map(|i| weight(*i) * off(*i)).sum::<f64>() / weights;
        sum += own.iter().map(|i| weight(*i) * (off(*i) - mean).powi(2)).sum::<f64>();
        sum += weights * 0.1 * mean * mean;
        all += weights;
    }
    sum / all
}

type Field = (&'static str, fn(&mut Fitted) -> &mut f64, f64, f64);

/// Constants, and from where to where they are sought.
const FIELDS: [Field; 8] = [
    ("unhidden", |f| &mut f.unhidden, 0.0, 0.6),
    ("loaded", |f| &mut f.loaded, 1.0, 8.0),
    ("meeting", |f| &mut f.meeting, 20.0, 200.0),
    ("block", |f| &mut f.block, 0.0, 400.0),
    ("start", |f| &mut f.start, 0.0, 4000.0),
    ("launch_us", |f| &mut f.launch_us, 0.5, 6.0),
    ("apart", |f| &mut f.apart, 0.0, 1.0),
    ("dram", |f| &mut f.dram, 0.7, 1.0),
];

/// One constant after the other, by ever smaller steps.
fn fit(rows: &[Row]) {
    let mut best = FITTED;
    let mut least = error(rows, &best);
    let mut step = 0.25;
    while step > 0.004 {
        let before = least;
        for (_, field, lo, hi) in FIELDS {
            for sign in [-1.0, 1.0] {
                let mut next = best;
                let v = field(&mut next);
                *v = (*v + sign * step * (hi - lo)).clamp(lo, hi);
                let found = error(rows, &next);
                if found < least {
                    (best, least) = (next, found);
                }
            }
        }
        if least > before * 0.9999 {
            step /= 2.0;
        }
    }
    let root = least.sqrt();
    let out = table(rows, &best, false);
    say(&format!("{out}root of the mean square of the logarithms: {root:.3}\n{best:#?}\n"));
}
