//! Whole kernels: text to CUDA C++, compared with goldens and compiled for real, without a spill.
//!
//! `UPDATE_EXPECT=1 cargo test -p carbyne-codegen` rewrites the goldens beside the kernels.

mod common;

use carbyne_atoms::Arch;
use expect_test::expect_file;

/// Prints, compares with `golden`, compiles for each architecture; the PTX holds the instructions.
fn check(text: &str, golden: &str, archs: &[Arch], instructions: &[&str]) {
    for (i, &arch) in archs.iter().enumerate() {
        let kernel = common::kernel(text, arch);
        if i == 0 {
            expect_file![golden].assert_eq(&kernel.source);
        }
        let Some(compiled) = common::compile(&kernel, arch) else { return };
        // What ptxas gives up it says in passing.
        assert!(!compiled.log.contains("ignored"), "{arch}: {}", compiled.log);
        let usage = compiled.usage(&kernel.name).unwrap_or_else(|| panic!("{}", compiled.log));
        let spilled = (usage.spill_loads, usage.spill_stores, usage.stack);
        assert_eq!(spilled, (0, 0, 0), "{arch}: {}", compiled.log);
        for instruction in instructions {
            assert!(compiled.ptx.contains(instruction), "{instruction}\n{}", compiled.ptx);
        }
    }
}

const SINCE_AMPERE: &[Arch] = &[Arch::Sm80, Arch::Sm86, Arch::Sm89, Arch::Sm90a];

#[test]
fn figure_8() {
    let text = include_str!("kernels/fig8.cby");
    check(text, "kernels/fig8.cu", Arch::ALL, &["fma.rn.f16"]);
}

#[test]
fn figure_1() {
    let instructions = [
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
        "cp.async.cg.shared.global",
        "cp.async.wait_group 0",
        "st.global.u32",
    ];
    let text = include_str!("kernels/ldmatrix.cby");
    check(text, "kernels/ldmatrix.cu", SINCE_AMPERE, &instructions);
}

#[test]
fn tensor_cores_and_roles() {
    let instructions = [
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16",
        "st.global.v2",
        "bar.sync",
    ];
    let text = include_str!("kernels/mma.cby");
    check(text, "kernels/mma.cu", SINCE_AMPERE, &instructions);
}

#[test]
fn roles_around_a_ring_in_a_cluster() {
    let instructions = [
        "elect.sync",
        "setmaxnreg.dec.sync.aligned.u32 40",
        "setmaxnreg.inc.sync.aligned.u32 232",
        "mbarrier.try_wait.parity.shared::cta.b64",
        "mbarrier.arrive.expect_tx.shared::cta.b64",
        "mbarrier::complete_tx::bytes.multicast::cluster",
        "mapa.shared::cluster.u32",
        "cp.async.bulk.wait_group.read 0",
        "barrier.cluster.arrive.aligned",
        "prefetch.tensormap",
    ];
    let text = include_str!("kernels/ring.cby");
    check(text, "kernels/ring.cu", &[Arch::Sm90a], &instructions);
}

#[test]
fn printing_is_deterministic() {
    let text = include_str!("kernels/mma.cby");
    let first = common::kernel(text, Arch::Sm80);
    for _ in 0..5 {
        assert_eq!(common::kernel(text, Arch::Sm80), first);
    }
}
