//! Tests the host functions that `compile --emit cuda` prints to launch kernels. They are compiled
//! with the headers of `tests/host/include`, which record launches, and are run. Also tests the
//! function of tvm-ffi that `--emit tvm-ffi` adds.

use crate::support::{carbyne, golden, root, scratch};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The parts of a printed file.
pub(crate) struct Parts {
    /// Headers, helpers and kernels, as NVRTC reads them.
    pub(crate) device: String,
    /// The file for the host's compiler, with empty kernel bodies.
    pub(crate) host: String,
}

impl Parts {
    pub(crate) fn of(text: &str) -> Parts {
        let (mut device, mut host) = (String::new(), String::new());
        let (mut in_host, mut in_head) = (false, false);
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            if line == "#ifndef __CUDACC_RTC__" {
                in_host = true;
            } else if line.starts_with("#endif") && in_host {
                in_host = false;
                lines.next_if_eq(&"");
            } else if in_host {
                host += &format!("{line}\n");
            } else {
                device += &format!("{line}\n");
                in_head |= line.starts_with("extern \"C\" __global__");
                if in_head {
                    host += &format!("{line}{}\n", if line.ends_with('{') { "}" } else { "" });
                    in_head = !line.ends_with('{');
                }
            }
        }
        Parts { device: device.trim_end().to_owned() + "\n", host }
    }
}

fn folder() -> PathBuf {
    root().join("cli/tests/host")
}

/// Compiles C++ for the host. Returns the messages of the compiler on errors.
///
/// # Panics
/// Panics if the machine has no C++ compiler.
pub(crate) fn compiled(args: &[&str]) -> Result<(), String> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let mut command = Command::new(&compiler);
    command.args([
        "-std=c++17",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-unused-parameter",
        "-Wno-psabi",
        "-I",
    ]);
    let ran = command.arg(folder().join("include")).args(args).output();
    let ran = ran.unwrap_or_else(|e| {
        panic!(
            "this test needs a C++ compiler, and `{compiler}` does not run: install a compiler, or \
             set CXX: {e}"
        )
    });
    match ran.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&ran.stderr).into_owned()),
    }
}

/// Prints `tests/host/NAME.cby`, compiles its host functions with `tests/host/NAME.cpp`, which
/// checks their launches, and runs the program. Returns the printed file.
fn checked(name: &str, file: &Path, arch: &str) -> String {
    let printed = carbyne(&["compile", &file.display().to_string(), "--arch", arch], "").ok();
    let out = scratch(&format!("host_{name}"));
    std::fs::write(out.join("printed.h"), Parts::of(printed.text()).host).expect("writable");
    let path = |p: PathBuf| p.display().to_string();
    let (source, program) = (path(folder().join(format!("{name}.cpp"))), path(out.join("check")));
    compiled(&[&source, "-I", &path(out), "-o", &program]).unwrap_or_else(|e| panic!("{e}"));
    let ran = Command::new(&program).output().expect("it runs");
    assert!(ran.status.success(), "{name}: {}", String::from_utf8_lossy(&ran.stderr));
    printed.text().to_owned()
}

#[test]
fn kernels_are_launched_in_order_and_hand_on_their_workspace() {
    let text = checked("two", &folder().join("two.cby"), "sm_80");
    golden(&folder().join("two.sm_80.cu"), &text).unwrap_or_else(|e| panic!("{e}"));
}

/// `python/tests/test_tvm_ffi.py` compiles such files with the headers of tvm-ffi and calls them.
#[test]
fn a_function_of_tvm_ffi_checks_what_the_host_function_takes_for_granted() {
    let file = folder().join("two.cby").display().to_string();
    let ran = carbyne(&["compile", &file, "--arch", "sm_80", "--emit", "tvm-ffi"], "").ok();
    let cuda = carbyne(&["compile", &file, "--arch", "sm_80"], "").ok();
    assert_eq!(Parts::of(ran.text()).device, Parts::of(cuda.text()).device);
    assert!(ran.text().contains("return \"M + N <= 65600\";"), "{}", ran.text());
    let begin = ran.text().find("// two(X, Y) as a function").expect("it is there");
    golden(&folder().join("two.tvm_ffi.cu"), &ran.text()[begin..])
        .unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn what_a_strategy_adds_lies_in_the_workspace() {
    checked("split", &folder().join("split.cby"), "sm_80");
}

#[test]
fn tensor_maps_are_encoded_from_sizes() {
    checked("gemm_any", &root().join("examples/gemm_any.cby"), "sm_90a");
}

#[test]
fn a_chosen_kernel_is_given_all_its_tensors() {
    let file = folder().join("two.cby").display().to_string();
    let ran = carbyne(&["compile", &file, "--arch", "sm_80", "--kernel", "rows"], "").ok();
    let head = "extern \"C\" cudaError_t rows_launch(\n    const float* H,\n    \
                float* Y,\n    long long M,\n    long long N,";
    assert!(ran.text().contains(head), "{}", ran.text());
    assert!(!ran.text().contains("powers"), "{}", ran.text());
}

#[test]
fn a_tensor_that_is_added_to_stays_the_callers() {
    let text = "carbyne 2

%X:[64,64].f32.GL
%H:[64,64].f32.GL
%Y:[64,1].f32.GL
Spec @add <<<#grid:[@b < 64], #cta:[64]>>> (%X) -> (%H) means {
  %H = %H + %X
} {
  Move (%X.tile([1,64])[@b, 0]) -> (%x)
  Move.add (%x) -> (%H.tile([1,64])[@b, 0])
}
Reduction.sum @rows (%H) -> (%Y) axis=1
";
    let ran = carbyne(&["compile", "-", "--arch", "sm_80"], text).ok();
    let head = "extern \"C\" cudaError_t carbyne_launch(\n    const float* X,\n    \
                float* H,\n    float* Y,\n    void* workspace,";
    assert!(ran.text().contains(head), "{}", ran.text());
}

#[test]
fn names_of_a_program_hide_none_of_the_hosts() {
    let text = "carbyne 2

%up:[64,64].f32.GL
%error:[64,64].f32.GL
%stream:[64,64].f32.GL
UnaryPointwise.exp @launch_kernel (%up) -> (%error)
UnaryPointwise.exp @up (%error) -> (%stream)
";
    let ran = carbyne(&["compile", "-", "--arch", "sm_80"], text).ok();
    let unit = scratch("host_names").join("unit.cpp");
    std::fs::write(&unit, Parts::of(ran.text()).host).expect("writable");
    compiled(&["-fsyntax-only", &unit.display().to_string()]).unwrap_or_else(|e| panic!("{e}"));
    for said in ["launch_kernel(launch_kernel_1, ", "launch_kernel(up, ", "const float* up_1,"] {
        assert!(ran.text().contains(said), "{said}\n{}", ran.text());
    }
}

#[test]
fn modules_hold_all_kernels() {
    if carbyne_codegen::testing::require_nvrtc().is_none() {
        return;
    }
    let file = folder().join("two.cby").display().to_string();
    let ran = carbyne(&["compile", &file, "--arch", "sm_80", "--emit", "ptx"], "").ok();
    for kernel in ["powers", "rows"] {
        assert!(ran.text().contains(&format!(".entry {kernel}(")), "{}", ran.text());
        let line = ran.stderr.lines().find(|l| l.starts_with(&format!("{kernel}: sm_80, ")));
        assert!(line.is_some_and(|l| l.contains(" registers, no spills")), "{}", ran.stderr);
    }
}
