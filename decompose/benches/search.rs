//! Measures how long the complete search takes, and prints what it finds:
//! `cargo bench --package carbyne-decompose --bench search`. With `-- problems` it takes only
//! kernel-level problems, with `-- products` only products of 4096x4096x4096.
//!
//! The times include planning, search over every row of the architecture, synchronization,
//! certificates and their check, and printing, parsing and verifying the atomic text. They do not
//! include compilation to machine code.

#[path = "../tests/all/moves.rs"]
mod moves;

use carbyne_atoms::AtomTable;
use carbyne_decompose::Search;
use carbyne_decompose::{Decomposed, decompose, decompose_with};
use carbyne_ir::text;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// That of the `carbyne` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Block tiles and warps, one configuration a line.
const TILES: &str = include_str!("tiles.txt");

/// The kernel-level product.
const GEMM: &str = include_str!("../../examples/gemm.cby");

fn main() {
    let mut out = String::new();
    let only = |name: &str| std::env::args().any(|a| a == name);
    if only("products") {
        products(&mut out);
        let _ = std::io::stdout().write_all(out.as_bytes());
        return;
    }
    if !only("problems") {
        products(&mut out);
        one_kernel(&mut out);
        configurations(&mut out);
        exhaustive(&mut out);
        table(&mut out);
    }
    problems(&mut out);
    // Nobody is left to tell that standard output is closed.
    let _ = std::io::stdout().write_all(out.as_bytes());
}

fn sm_80() -> AtomTable {
    AtomTable::new("sm_80".parse().expect("an architecture"))
}

fn found(src: &str, table: &AtomTable) -> Decomposed {
    let module = text::parse(src).expect("parses");
    decompose(&module, src, table).unwrap_or_else(|e| panic!("{e:?}"))
}

/// The median of 25 runs.
fn median(run: impl FnMut()) -> Duration {
    median_of(25, run)
}

fn median_of(runs: usize, mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[times.len() / 2]
}

fn one_kernel(out: &mut String) {
    let table = sm_80();
    for name in ["gemm_staged", "gemm_staged_3", "hexcute_fig15_gemm", "attention"] {
        let src = &moves::examples()[name];
        let s = found(src, &table).searched;
        let time = median(|| drop(found(src, &table)));
        let _ = writeln!(
            out,
            "{name}, sm_80, one core: {:.1} ms; {} leaves costed, {} branches pruned, {} dead",
            time.as_secs_f64() * 1e3,
            s.leaves,
            s.pruned,
            s.dead
        );
    }
}

/// The staged GEMM with other tiles.
fn tiled(line: &str) -> String {
    let n: Vec<i64> = line.split_whitespace().map(|w| w.parse().expect("a number")).collect();
    let [bm, bn, bk, warps] = n[..] else { panic!("four numbers a line") };
    let src = &moves::examples()["gemm_staged"];
    src.replace(
        "let M = 256, N = 256, K = 128",
        &format!("let M = {}, N = {}, K = 128", 2 * bm, 2 * bn),
    )
    .replace("let BM = 128, BN = 128, BK = 32", &format!("let BM = {bm}, BN = {bn}, BK = {bk}"))
    .replace("#cta:[128].thread", &format!("#cta:[{}].thread", 32 * warps))
}

fn configurations(out: &mut String) {
    let table = sm_80();
    let all: Vec<String> = TILES.lines().filter(|l| !l.starts_with('#')).map(tiled).collect();
    let next = AtomicUsize::new(0);
    let leaves = AtomicUsize::new(0);
    let start = Instant::now();
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                while let Some(src) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let n = found(src, &table).searched.leaves as usize;
                    leaves.fetch_add(n, Ordering::Relaxed);
                }
            });
        }
    });
    let _ = writeln!(
        out,
        "{} tile configurations, sm_80, two threads: {:.2} s; {} leaves costed",
        all.len(),
        start.elapsed().as_secs_f64(),
        leaves.into_inner()
    );
}

fn exhaustive(out: &mut String) {
    let table = sm_80();
    for (name, src) in moves::examples() {
        let module = text::parse(&src).expect("parses");
        let search = Search { exhaustive: true, budget: 200_000, ..Search::default() };
        let pruned = found(&src, &table);
        match decompose_with(&module, &src, &table, search) {
            Ok(all) => {
                let of = |d: &Decomposed| d.leaves.first().map_or(0.0, |l| l.estimate.cycles);
                let _ = writeln!(
                    out,
                    "{name}: {:.0} cycles of {} leaves; exhaustively {:.0} of {}",
                    of(&pruned),
                    pruned.searched.leaves,
                    of(&all),
                    all.searched.leaves
                );
            }
            Err(_) => {
                let _ = writeln!(out, "{name}: too large to search exhaustively");
            }
        }
    }
}

fn table(out: &mut String) {
    for arch in ["sm_75", "sm_80", "sm_90a"] {
        let table = AtomTable::new(arch.parse().expect("an architecture"));
        let _ =
            writeln!(out, "\n{arch}: Move, atom, bytes, ways (least over swizzles and paddings)");
        for (name, src) in moves::examples() {
            for r in moves::moves(&found(&src, &table), &table) {
                let ways = match (r.ways, r.least) {
                    (Some(w), Some(l)) => format!("{w:.2} ({l:.2})"),
                    _ => "-".to_owned(),
                };
                let _ = writeln!(out, "{name:30} {:34} {:24} {:3} {ways}", r.name, r.atom, r.bytes);
            }
        }
    }
}

/// Kernel-level problems, each after a line `== half: name`.
const PROBLEMS: &str = include_str!("../../bench/problems.txt");

/// Kernel-level problems on one core: strategies, the choice among their instances, and all that
/// follows.
fn problems(out: &mut String) {
    for arch in ["sm_80", "sm_90a"] {
        let table = AtomTable::new(arch.parse().expect("an architecture"));
        let mut longest = (Duration::ZERO, "");
        for problem in PROBLEMS.split("\n== ").skip(1) {
            let (title, kernel) = problem.split_once('\n').expect("a kernel");
            let name = title.split_once(": ").expect("a name").1;
            let src = format!("carbyne 2\n{kernel}\n");
            let module = text::parse(&src).expect("parses");
            let time = median_of(3, || {
                drop(decompose(&module, &src, &table).unwrap_or_else(|e| panic!("{name}: {e:?}")));
            });
            let _ = writeln!(out, "{arch}, kernel level, {name}: {} ms", time.as_millis());
            longest = longest.max((time, name));
        }
        let _ = writeln!(
            out,
            "{arch}, kernel level: {} ms at most, {}",
            longest.0.as_millis(),
            longest.1
        );
    }
}

/// Products on one core: `examples/gemm.cby` for every architecture, then other types for Hopper,
/// whose factors lie along K or the second one not. What is printed is the time to the atomic text,
/// and that of the proof that its accesses are ordered.
fn products(out: &mut String) {
    for arch in ["sm_70", "sm_75", "sm_80", "sm_89", "sm_90a"] {
        product(out, arch, "gemm", GEMM);
    }
    for (types, acc) in
        [("e4m3 f16", "f32"), ("i8 i32", "i32"), ("tf32 f32", "f32"), ("f64 f64", "f64")]
    {
        let (of, sum) = types.split_once(' ').expect("two types");
        for (what, second) in [("along K", "[(4096,4096):(1,4096)]"), ("as written", "[4096,4096]")]
        {
            let src = format!(
                "carbyne 2\n%A:[4096,4096].{of}.GL\n%B:{second}.{of}.GL\n%C:[4096,4096].{sum}.GL\n\
                 MatMul.set @gemm (%A, %B) -> (%C) acc={acc}\n"
            );
            product(out, "sm_90a", &format!("{of}, {what}"), &src);
        }
    }
}

fn product(out: &mut String, arch: &str, name: &str, src: &str) {
    let table = AtomTable::new(arch.parse().expect("an architecture"));
    let module = text::parse(src).expect("parses");
    let run = || decompose(&module, src, &table).unwrap_or_else(|e| panic!("{name}: {e:?}"));
    let found = run();
    let time = median_of(3, || drop(run()));
    let limits = carbyne_sync::Limits::default();
    let proof = median_of(3, || {
        let kernels = &found.program.kernels;
        kernels.iter().for_each(|k| drop(carbyne_sync::check(&found.program, *k, &table, &limits)));
    });
    let (time, proof) = (time.as_millis(), proof.as_millis());
    let by = found.rankings.first().and_then(|r| r.instances.first()).map_or("", |best| &best.by);
    let _ = writeln!(out, "{arch}, {name}: {time} ms, order {proof} ms; {by}");
}
