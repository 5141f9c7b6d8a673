//! Tests that the memory of a run depends on the blocks in flight, not on the grid, because inputs
//! are computed when they are read. The test measures the peak of a process, so this program starts
//! itself again for this test alone.

use carbyne_atoms::{Arch, AtomTable};
use carbyne_simulate::{Inputs, Options, simulate};

const GEMM: &str = include_str!("../../../examples/ampere_gemm_by_hand.cby");
const SIZES: &str = "let M = 256, N = 256, K = 128\n";

/// The peak memory of the process in bytes; none if the system does not provide it.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// Runs four blocks of a product of square matrices.
fn four_blocks(n: i64) {
    assert!(GEMM.contains(SIZES), "the example's sizes are written otherwise");
    let text = GEMM.replace(SIZES, &format!("let M = {n}, N = {n}, K = {n}\n"));
    let module = carbyne_ir::text::parse(&text).expect("parses");
    let program = carbyne_ir::resolve::resolve(&module, &text).expect("resolves");
    let options =
        Options { blocks: Some(4), check: false, inputs: Inputs::Seed(1), ..Options::default() };
    let report = simulate(&program, &AtomTable::new(Arch::Sm80), &options).expect("is right");
    let kernel = &report.kernels[0];
    let (blocks, tiles) = (kernel.blocks_run.len() as u64, (n / 128) as u64);
    assert_eq!((kernel.n_blocks as u64, blocks), (tiles * tiles, 4));
    assert_eq!(kernel.multiply_adds, 4 * 128 * 128 * n as u64);
}

/// The variable that is set in the process that runs this test alone.
const ALONE: &str = "CARBYNE_TEST_ALONE";

#[test]
#[expect(clippy::print_stdout, reason = "says what was measured")]
fn large_products_take_no_more_memory_than_their_blocks() {
    if std::env::var_os(ALONE).is_none() {
        let itself = std::env::current_exe().expect("the path of this program");
        let name = "memory::large_products_take_no_more_memory_than_their_blocks";
        let output = std::process::Command::new(itself)
            .args([name, "--exact", "--nocapture"])
            .env(ALONE, "1")
            .output()
            .expect("this program starts");
        let said = String::from_utf8_lossy(&output.stdout);
        println!("{said}");
        assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        assert!(said.contains("1 passed"), "no test has this name: {said}");
        return;
    }
    let Some(before) = peak() else {
        println!("not measured: this system has no /proc/self/status");
        return;
    };
    four_blocks(512);
    let small = peak().expect("as before");
    four_blocks(8192);
    let large = peak().expect("as before");
    println!("peak: {before} bytes at first, {small} behind 512³, {large} behind 8192³");
    // The matrices of the larger product alone have 384 MiB; the parts that four blocks access are
    // not stored.
    assert!(large < 1 << 30, "{large} bytes");
    assert!(large - small < 64 << 20, "{small} bytes for 512³, {large} for 8192³");
}
