//! Measures how fast five operations of the layout algebra are over constants, and how often they
//! allocate: `cargo bench --package carbyne-ir --bench layout`.
//!
//! The columns of the allocator count allocations and bytes of one call.

use carbyne_ir::layout::Layout;
use divan::{AllocProfiler, Bencher, black_box};

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

/// From a number to eight leaves, four modes at most.
const LAYOUTS: [&str; 5] = [
    "64:1",
    "(8,16):(16,1)",
    "((4,2),(8,4)):((1,128),(4,32))",
    "(4,(2,4),8,2):(8,(4,64),256,2)",
    "((2,2),(4,2),(2,4),(2,2)):((1,16),(2,64),(8,128),(32,512))",
];

fn main() {
    divan::main();
}

fn layout(text: &str) -> Layout {
    text.parse().expect("a layout")
}

#[divan::bench(args = LAYOUTS)]
fn composition(bencher: Bencher<'_, '_>, text: &str) {
    let a = layout(text);
    // Halves of the domain, in the other order: every layout above composes with it.
    let tile = Layout::new(vec![a.size() / 4, 4], vec![4, 1]).expect("a layout");
    let inner = if a.compose(&tile).is_ok() { tile } else { layout("(2,4):(1,2)") };
    bencher.bench_local(|| black_box(&a).compose(black_box(&inner)));
}

#[divan::bench(args = LAYOUTS)]
fn complement(bencher: Bencher<'_, '_>, text: &str) {
    let a = layout(text);
    bencher.bench_local(|| black_box(&a).complement(black_box(4096)));
}

#[divan::bench(args = LAYOUTS)]
fn right_inverse(bencher: Bencher<'_, '_>, text: &str) {
    let a = layout(text);
    bencher.bench_local(|| black_box(&a).right_inverse());
}

#[divan::bench(args = LAYOUTS)]
fn left_inverse(bencher: Bencher<'_, '_>, text: &str) {
    let a = layout(text);
    bencher.bench_local(|| black_box(&a).left_inverse());
}

#[divan::bench(args = LAYOUTS)]
fn coalesce(bencher: Bencher<'_, '_>, text: &str) {
    let a = layout(text);
    bencher.bench_local(|| black_box(&a).coalesce());
}
