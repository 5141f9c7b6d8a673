//! Simulates a program with the atoms of sm_80. Prints the report of each kernel, the seconds that
//! the simulation took, and multiply-adds per second:
//! `cargo run --release -p carbyne-simulate --example time -- FILE [BLOCKS]`.
#![allow(clippy::print_stdout, reason = "this is a program")]

use carbyne_atoms::{Arch, AtomTable};
use carbyne_simulate::{Options, simulate};

fn main() {
    let mut args = std::env::args().skip(1);
    let text = std::fs::read_to_string(args.next().expect("a file")).expect("readable");
    let blocks = args.next().and_then(|n| n.parse().ok());
    let module = carbyne_ir::text::parse(&text).expect("parses");
    let program = carbyne_ir::resolve::resolve(&module, &text).expect("resolves");
    let start = std::time::Instant::now();
    let options = Options { blocks, ..Options::default() };
    match simulate(&program, &AtomTable::new(Arch::Sm80), &options) {
        Ok(report) => {
            let seconds = start.elapsed().as_secs_f64();
            for k in &report.kernels {
                println!("{k:#?}");
                println!("{seconds:.3} s, {:.1} M/s", k.multiply_adds as f64 / seconds / 1e6);
            }
        }
        Err(e) => {
            println!("{e} at line {}: {}", e.span.line_col(&text).0, e.label);
            for (span, why) in &e.related {
                println!("  line {}: {why}", span.line_col(&text).0);
            }
        }
    }
}
