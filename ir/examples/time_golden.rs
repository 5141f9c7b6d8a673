//! Times the layout algebra on lines of golden vectors, for `bench/pycute.py`.
//!
//! `cargo run --release -p carbyne-ir --example time_golden FILE` prints one line for each case
//! that is answered: the number of its line and the median time of a call in nanoseconds. Operands
//! are built before the measurement; dropping the results is part of it.

#![expect(clippy::print_stdout, reason = "an example prints")]

use carbyne_ir::layout::{Layout, LayoutError, Tiler};
use carbyne_ir::tuple::IntTuple;
use serde_json::Value;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Batches of which the median is taken, and how long each is at least.
const BATCHES: usize = 21;
const BATCH: Duration = Duration::from_micros(300);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which file?")?;
    for (number, line) in std::fs::read_to_string(path)?.lines().enumerate() {
        let line: Value = serde_json::from_str(line)?;
        if let Some(nanoseconds) = time(&line) {
            println!("{number} {nanoseconds:.1}");
        }
    }
    Ok(())
}

/// The time of one case; `None` where it is no case of ours or is refused.
fn time(line: &Value) -> Option<f64> {
    let (op, args) = (line["op"].as_str()?, line["args"].as_array()?);
    let a: Layout = args.first()?.as_str()?.parse().ok()?;
    match op {
        "right_inverse" => Some(median(|| drop(black_box(black_box(&a).right_inverse())))),
        "left_inverse" => measured(|| black_box(&a).left_inverse()),
        "complement" => {
            let target = args.get(1).map_or(Some(IntTuple::Leaf(1)), tuple)?.size().ok()?;
            measured(|| black_box(&a).complement(black_box(target)))
        }
        "composition" | "logical_divide" => {
            let tiler = tiler(args.get(1)?)?;
            match (&tiler, op) {
                (Tiler::Layout(b), "composition") => {
                    measured(|| black_box(&a).compose(black_box(b)))
                }
                (_, "composition") => {
                    measured(|| black_box(&a).compose_by_mode(black_box(&tiler).clone()))
                }
                _ => measured(|| black_box(&a).logical_divide(black_box(&tiler).clone())),
            }
        }
        _ => None,
    }
}

fn measured(mut run: impl FnMut() -> Result<Layout, LayoutError>) -> Option<f64> {
    run().ok()?;
    Some(median(|| drop(black_box(run()))))
}

/// Nanoseconds of one call.
fn median(mut run: impl FnMut()) -> f64 {
    let mut n = 1u32;
    let mut batch = |n: u32| {
        let start = Instant::now();
        (0..n).for_each(|_| run());
        start.elapsed()
    };
    while batch(n) < BATCH && n < 1 << 20 {
        n *= 2;
    }
    let mut times: Vec<Duration> = (0..BATCHES).map(|_| batch(n)).collect();
    times.sort_unstable();
    times[BATCHES / 2].as_nanos() as f64 / f64::from(n)
}

fn tuple(value: &Value) -> Option<IntTuple> {
    match value {
        Value::Number(n) => Some(IntTuple::Leaf(n.as_i64()?)),
        Value::Array(modes) => {
            Some(IntTuple::Tuple(modes.iter().map(tuple).collect::<Option<_>>()?))
        }
        _ => None,
    }
}

fn tiler(value: &Value) -> Option<Tiler> {
    match value {
        Value::Null => Some(Tiler::Keep),
        Value::Number(n) => Some(Tiler::Layout(Layout::new(n.as_i64()?, 1).ok()?)),
        Value::String(text) => Some(Tiler::Layout(text.parse().ok()?)),
        Value::Array(modes) => Some(Tiler::Modes(modes.iter().map(tiler).collect::<Option<_>>()?)),
        _ => None,
    }
}
