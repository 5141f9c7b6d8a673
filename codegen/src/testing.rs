//! Helps tests of all crates: [`require_nvrtc`] finds the compiler NVRTC, [`calls`] finds calls in
//! machine code by nvdisasm, and [`wgmma_faults`] finds constructs that make kernels with `wgmma`
//! wrong (a call beside a `wgmma` with A in registers) or slow (`wgmma`s that ptxas serializes).
//!
//! If a tool is absent, a message says so, and the caller skips the checks that need it. If
//! `cargo xtask setup` has finished for this build folder, the test fails instead.

use crate::nvrtc::{self, Nvrtc};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The NVRTC for tests. If there is none, prints a message; the caller skips the test.
///
/// # Panics
/// If `cargo xtask setup` has run for this build folder but there is no NVRTC.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
pub fn require_nvrtc() -> Option<&'static Nvrtc> {
    match nvrtc::find() {
        Ok(nvrtc) => Some(nvrtc),
        Err(d) if nvrtc::is_set_up() => {
            panic!("`cargo xtask setup` has run, and yet: {d}\n{}", d.notes.join("\n"))
        }
        Err(_) => {
            eprintln!("NVRTC absent: skipped");
            None
        }
    }
}

/// The functions of machine code that contain a call, each with its first call as printed by
/// nvdisasm. If there is no nvdisasm, prints a message; the caller skips the test.
///
/// nvdisasm 13.5 reads the output of NVRTC 12.9 for sm_75 and later.
///
/// # Panics
/// If `cargo xtask setup` has run for this build folder but there is no nvdisasm, or if nvdisasm
/// cannot read the machine code.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
pub fn calls(cubin: &[u8]) -> Option<BTreeMap<String, String>> {
    let Some(program) = nvrtc::disassembler() else {
        assert!(!nvrtc::is_set_up(), "nvdisasm is absent: run `cargo xtask setup` again");
        eprintln!("nvdisasm absent: calls are not looked for");
        return None;
    };
    let text = disassembled(&program, cubin);
    let mut calls = BTreeMap::new();
    let (mut function, mut n_functions) = ("", 0);
    for line in text.lines() {
        let section = line.trim_start().strip_prefix(".section");
        if let Some(section) = section.and_then(|s| s.trim_start().strip_prefix(".text.")) {
            function = section.split(',').next().unwrap_or(section);
            n_functions += 1;
        }
        // `/*0450*/    CALL.REL.NOINC `($name) ;`
        let instruction = line.split("*/").nth(1).unwrap_or("").trim();
        let mut words = instruction.split_whitespace().skip_while(|w| w.starts_with('@'));
        if words.next().is_some_and(|w| w == "CALL" || w.starts_with("CALL.")) {
            calls.entry(function.to_owned()).or_insert_with(|| instruction.to_owned());
        }
    }
    assert!(n_functions > 0, "nvdisasm writes no function:\n{text}");
    Some(calls)
}

/// The output of nvdisasm, which reads only files.
fn disassembled(program: &Path, cubin: &[u8]) -> String {
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("carbyne-{}-{number}.cubin", std::process::id());
    let file = std::env::temp_dir().join(name);
    std::fs::write(&file, cubin).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let ran = Command::new(program).arg(&file).output();
    let _ = std::fs::remove_file(&file);
    let ran = ran.unwrap_or_else(|e| panic!("{}: {e}", program.display()));
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "nvdisasm does not read the machine code: {said}");
    String::from_utf8_lossy(&ran.stdout).into_owned()
}

/// Finds faults that make kernels with `wgmma` wrong or slow, in machine code, in the PTX from
/// which it was made, and in the messages of ptxas:
///
/// - a call in a kernel with a `wgmma` that takes A from registers: ptxas may reuse A's registers
///   after the call;
/// - `wgmma`s that ptxas serializes (its messages C7510 to C7520, except for C7519, which reports
///   an inserted fence).
pub fn wgmma_faults(ptx: &str, cubin: &[u8], log: &str) -> Vec<String> {
    let mut faults: Vec<String> =
        log.lines().filter(|l| is_serialized(l)).map(str::to_owned).collect();
    let kernels = with_a_in_registers(ptx);
    if kernels.is_empty() {
        return faults;
    }
    let calls = calls(cubin).unwrap_or_default();
    let of_kernels = calls.iter().filter(|(function, _)| kernels.contains(function.as_str()));
    faults.extend(of_kernels.map(|(function, call)| {
        format!("`{function}` calls beside a `wgmma` whose A is in registers: {call}")
    }));
    faults
}

fn is_serialized(line: &str) -> bool {
    let number = line.split("(C").nth(1).and_then(|l| l.split(')').next()?.parse::<u32>().ok());
    number.is_some_and(|n| (7510..=7520).contains(&n) && n != 7519)
}

/// The kernels of a PTX text with a `wgmma` that takes A from registers. In PTX, A follows the list
/// of D's registers: as a list of registers, or as one descriptor for A in shared memory (PTX ISA,
/// Asynchronous Multiply-and-Accumulate Instruction: wgmma.mma_async).
fn with_a_in_registers(ptx: &str) -> BTreeSet<&str> {
    let mut kernels = BTreeSet::new();
    for entry in ptx.split(".entry ").skip(1) {
        let name = entry.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("");
        let takes_registers = |instruction: &str| {
            let operands = instruction.split(';').next()?;
            let (_, behind_d) = operands.split_once('}')?;
            Some(behind_d.trim_start_matches([',', ' ', '\t']).starts_with('{'))
        };
        if entry.split("wgmma.mma_async").skip(1).any(|i| takes_registers(i) == Some(true)) {
            kernels.insert(name);
        }
    }
    kernels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvrtc::{Emit, Options};

    const WGMMA: &str = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, ";

    #[test]
    fn a_in_registers_is_told_from_a_in_memory() {
        let ptx = format!(
            ".visible .entry memory(\n{{ {WGMMA}%rd1, %rd2, p, 1, 1, 0, 0; }}\n\
             .visible .entry both(\n{{ {WGMMA}%rd1, %rd2, p, 1, 1, 0, 0;\n\
             {WGMMA}{{%r1, %r2, %r3, %r4}}, %rd2, p, 1, 1, 0; }}\n\
             .visible .entry none()\n{{ ret; }}"
        );
        assert_eq!(with_a_in_registers(&ptx).into_iter().collect::<Vec<_>>(), ["both"]);
    }

    #[test]
    fn messages_of_waits_are_told_from_those_of_fences() {
        for (number, is) in [(7509, false), (7510, true), (7512, true), (7519, false), (7520, true)]
        {
            let line = format!("ptxas info    : (C{number}) Potential Performance Loss: wgmma");
            assert_eq!(wgmma_faults("", &[], &line).len(), usize::from(is), "{number}");
        }
    }

    #[test]
    fn calls_are_found_by_function() {
        let Some(nvrtc) = require_nvrtc() else { return };
        let source = "extern \"C\" __global__ void divides(float* x) { x[0] = x[1] / x[2]; }\n\
                      extern \"C\" __global__ void adds(float* x) { x[0] = x[1] + x[2]; }\n";
        for arch in ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90a"] {
            let made = nvrtc.compile(source, arch, Emit::Cubin, &Options::default()).unwrap();
            let Some(calls) = calls(&made.cubin) else { return };
            assert_eq!(calls.keys().collect::<Vec<_>>(), ["divides"], "{arch}");
            assert!(calls["divides"].starts_with("CALL"), "{calls:?}");
            // Simulates a `wgmma` in the same kernel.
            let ptx = format!(
                ".entry divides() {{ {WGMMA}{{%r1}}, %rd1; }} \
                 .entry adds() {{ {WGMMA}{{%r1}}, %rd1; }}"
            );
            assert_eq!(wgmma_faults(&ptx, &made.cubin, "").len(), 1, "{arch}");
            assert_eq!(wgmma_faults("", &made.cubin, "").len(), 0, "{arch}");
        }
    }
}
