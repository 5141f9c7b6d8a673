//! Tests whole kernels: the CUDA C++ of a text equals a golden file and compiles without spills,
//! and its PTX contains the expected instructions. Other tests check waits, matrix descriptors and
//! register fences of `wgmma`.
//!
//! `UPDATE_EXPECT=1 cargo test -p carbyne-codegen` rewrites the golden files beside the kernels.

use crate::support;
use carbyne_atoms::{Arch, Descriptor, Major, SwizzleMode};
use carbyne_codegen::nvrtc::Emit;
use expect_test::expect_file;

/// Prints a kernel, compares it with `golden`, and compiles it for each architecture. The PTX must
/// contain the instructions.
fn check(text: &str, golden: &str, archs: &[Arch], instructions: &[&str]) {
    for (i, &arch) in archs.iter().enumerate() {
        let kernel = support::kernel(text, arch);
        if i == 0 {
            expect_file![golden].assert_eq(&kernel.source);
        }
        let Some(compiled) = support::compile(&kernel, arch) else { return };
        // ptxas reports only in its log that it ignores a directive.
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
    let text = include_str!("../kernels/fig8.cby");
    check(text, "../kernels/fig8.cu", Arch::ALL, &["fma.rn.f16"]);
}

#[test]
fn figure_1() {
    let instructions = [
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
        "cp.async.cg.shared.global",
        "cp.async.wait_group 0",
        "st.global.u32",
    ];
    let text = include_str!("../kernels/ldmatrix.cby");
    check(text, "../kernels/ldmatrix.cu", SINCE_AMPERE, &instructions);
}

#[test]
fn tensor_cores_and_roles() {
    let instructions = [
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
        "ldmatrix.sync.aligned.m8n8.x2.shared.b16",
        "st.global.v2",
        "bar.sync",
    ];
    let text = include_str!("../kernels/mma.cby");
    check(text, "../kernels/mma.cu", SINCE_AMPERE, &instructions);
}

#[test]
fn warpgroups() {
    let instructions = [
        "wgmma.fence.sync.aligned",
        "wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16",
        "wgmma.commit_group.sync.aligned",
        "wgmma.wait_group.sync.aligned 0",
        "fence.proxy.async.shared::cta",
    ];
    let text = include_str!("../kernels/wgmma.cby");
    check(text, "../kernels/wgmma.cu", &[Arch::Sm90a], &instructions);
}

/// The compiler accepts the program's waits, also if a group stays in flight, and reports missing
/// ones.
#[test]
fn waits_are_those_of_the_program() {
    let text = include_str!("../../../examples/hopper_wgmma.cby");
    let waits = "wgmma.wait(0)\n    }\n  }\n";
    assert!(text.contains(waits));
    let pipelined = text.replace(waits, "wgmma.wait(1)\n    }\n  }\n  wgmma.wait(0)\n");
    support::compile(&support::kernel(&pipelined, Arch::Sm90a), Arch::Sm90a);
    for missing in ["wgmma.fence\n", "wgmma.wait(0)\n"] {
        let kernel = support::kernel(&text.replace(missing, ""), Arch::Sm90a);
        let Some(compiled) = support::compile_as(&kernel, Arch::Sm90a, Emit::Cubin) else { return };
        assert!(!support::injected_waits(&compiled, &kernel.name).is_empty(), "{missing}");
    }
}

/// The compiler computes from the printed function the bits that the table states.
#[test]
fn descriptors_have_the_bits_of_the_table() {
    let text = include_str!("../../../examples/hopper_wgmma.cby");
    let kernel = support::kernel(text, Arch::Sm90a);
    let Some(compiled) = support::compile_as(&kernel, Arch::Sm90a, Emit::Ptx) else { return };
    let swizzle = SwizzleMode::B128;
    for (major, leading) in [(Major::K, 16), (Major::Mn, 8192)] {
        let bits = Descriptor { major, swizzle, leading, stride: 1024 }.bits();
        // The compiler may compose the descriptor from its two words.
        let uses = |n: u64| compiled.ptx.lines().any(|l| l.ends_with(&format!(", {n};")));
        let (low, high) = (bits & 0xffff_ffff, bits >> 32 << 32);
        assert!(uses(bits) || uses(low) && uses(high), "{major}\n{}", compiled.ptx);
    }
}

/// Fences keep registers from moving across a fence or a wait while they are in scope, and no
/// longer.
#[test]
fn registers_are_fenced_in_their_scope() {
    let text = include_str!("../kernels/wgmma.cby");
    let source = support::kernel(text, Arch::Sm90a).source;
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let at = |what: &str| lines.iter().position(|l| l.contains(what)).expect("it is printed");
    let (fence, wait) = (at("wgmma.fence"), at("wgmma.wait_group"));
    for around in [&lines[fence - 2..fence], &lines[wait + 1..wait + 3]] {
        assert_eq!(around, ["fence_registers<8>(a_u32);", "fence_registers<16>(c);"]);
    }
    // The accumulator's block ends before the last wait.
    let loop_head = "  for (x = 0; x < 1; x += 1) {\n  Allocate %c:[128,32]";
    let scoped = text.replace("  Allocate %c:[128,32]", loop_head);
    let scoped = scoped.trim_end().strip_suffix('}').expect("the kernel's").to_owned();
    let source = support::kernel(&(scoped + "}\nwgmma.wait(0)\n}\n"), Arch::Sm90a).source;
    let last = source.rfind("wgmma.wait_group").expect("it is printed");
    assert!(source[last..].contains("(a_u32)") && !source[last..].contains("(c)"), "{source}");
}

/// Registers are fenced in front of a loop with asynchronous MatMuls that may have no iteration.
#[test]
fn registers_are_fenced_before_a_loop_that_may_be_passed_by() {
    let text = include_str!("../../../cli/tests/filetests/sync/t0801_register_after.cby");
    let fenced = |text: &str| {
        let source = support::kernel(text, Arch::Sm90a).source;
        let (before, _) = source.rsplit_once("for (int k = 0; k < 5").expect("it is printed");
        let (_, between) = before.rsplit_once('}').expect("a loop stands before it");
        between.contains("fence_registers<32>(c);")
    };
    let head = "for (k = 0; k < 5; k += 1) {\n      mbarrier.wait(%full";
    assert!(text.contains(head) && !fenced(text));
    assert!(fenced(&text.replace(head, &head.replace("k < 5;", "k < 5 && k < 4;"))));
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
    let text = include_str!("../kernels/ring.cby");
    check(text, "../kernels/ring.cu", &[Arch::Sm90a], &instructions);
}

#[test]
fn printing_is_deterministic() {
    let text = include_str!("../kernels/mma.cby");
    let first = support::kernel(text, Arch::Sm80);
    for _ in 0..5 {
        assert_eq!(support::kernel(text, Arch::Sm80), first);
    }
}
