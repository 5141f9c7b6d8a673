//! Tests `wgmma`: warp groups that multiply tiles in shared memory. Each wrong tile, missing
//! barrier or layout without a descriptor must be reported.

use crate::support;
use carbyne_atoms::{Arch, AtomTable};
use carbyne_ir::diag::{Code, Diagnostic};
use carbyne_simulate::{Inputs, Options, Report, simulate};

/// Two warp groups, A in registers, B in two stages along k.
const KERNEL: &str = include_str!("../../../codegen/tests/kernels/wgmma.cby");

fn run(text: &str, inputs: Inputs) -> Result<Report, Box<Diagnostic>> {
    let options = Options { inputs, ..Options::default() };
    simulate(&support::program(text), &AtomTable::new(Arch::Sm90a), &options)
}

/// The error of the kernel with `from` replaced by `to`.
#[track_caller]
fn broken(from: &str, to: &str) -> Diagnostic {
    assert!(KERNEL.contains(from), "{from}");
    match run(&KERNEL.replace(from, to), Inputs::Ints(3)) {
        Ok(_) => panic!("`{to}` is not noticed"),
        Err(e) => *e,
    }
}

#[test]
fn warp_groups_compute_the_meaning() {
    for inputs in [Inputs::Ints(3), Inputs::Seed(3)] {
        let report = run(KERNEL, inputs).unwrap_or_else(|e| panic!("{e}: {}", e.label));
        assert_eq!(report.kernels[0].unchecked.len(), 0);
    }
}

#[test]
fn every_warp_reads_the_described_tile() {
    let e = broken("  fence.async\n  barrier\n", "  fence.async\n");
    assert_eq!(e.code, Code::Race, "{e}");
    // Each warp group waits for itself, but also reads the writes of the other.
    let alone = |g: i64| {
        format!(
            "Spec <<<#grid, #groups[{g}]>>> (%Bs) -> () {{ fence.async barrier(#groups[{g}]) }}\n"
        )
    };
    let e = broken("  fence.async\n  barrier\n", &(alone(0) + &alone(1)));
    assert_eq!(e.code, Code::Race, "{e}");
}

#[test]
fn wrong_tiles_show_in_values() {
    let e = broken("(%ar[_, 1], %Bs[1])", "(%ar[_, 1], %Bs[0])");
    assert_eq!(e.code, Code::WrongElement, "{e}");
    let e = broken("(%ar[_, 1], %Bs[1]) -> (%c.mine)", "(%ar[_, 0], %Bs[1]) -> (%c.mine)");
    assert_eq!(e.code, Code::WrongElement, "{e}");
    // The accumulator has no previous elements.
    let e = broken("MatMul.set <<<#grid, #groups>>>", "MatMul <<<#grid, #groups>>>");
    assert_eq!(e.code, Code::Uninitialized, "{e}");
}

#[test]
fn tiles_without_a_descriptor_are_refused() {
    let e = broken("swizzle=(1,4,3)", "swizzle=(2,4,3)");
    assert_eq!(e.code, Code::AtomMismatch, "{e}");
    assert!(e.label.contains("rows of 32 bytes need 32B swizzle"), "{}", e.label);
    // Warps of one group name different stages.
    let e = broken("(%ar[_, 1], %Bs[1])", "(%ar[_, 1], %Bs[@k % 2])");
    assert_eq!(e.code, Code::AtomMismatch, "{e}");
    assert!(e.label.contains("begins elsewhere for thread 1"), "{}", e.label);
    // Different groups may name different stages.
    run(&KERNEL.replace("%Bs[1]) -> (%c.mine)", "%Bs[1 + @n / 32]) -> (%c.mine)"), Inputs::Ints(3))
        .unwrap_or_else(|e| panic!("{e}: {}", e.label));
}
