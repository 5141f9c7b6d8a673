//! Compiles C programs with the system's compiler, and runs them with the library that Cargo has
//! built for this test: the example of `docs/c.md`, and a program that tests errors, wrong calls,
//! cancellation, threads, and that memory does not grow. Also checks that the header is valid C++.

use crate::own;
use std::path::PathBuf;
use std::process::Command;

/// Number of cycles in which memory must not grow. With `CARBYNE_ALL` there are more.
const CYCLES: &str = "100";

/// The compiler that the environment variable names, or the usual one. `None`, with a message, if
/// it does not run.
fn compiler(variable: &str, usual: &str) -> Option<Command> {
    let name = std::env::var(variable).unwrap_or_else(|_| usual.to_owned());
    let runs = Command::new(&name).arg("--version").output().is_ok_and(|o| o.status.success());
    #[expect(clippy::print_stderr, reason = "a test that cannot run must say so")]
    if !runs {
        eprintln!("`{name}` does not run, name a compiler in {variable}: not run");
    }
    runs.then(|| Command::new(name))
}

/// The folder of this package's library: that of this test.
fn library() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().to_owned()
}

/// Compiles a program. `None` without a compiler.
fn compiled(source: &str) -> Option<Command> {
    let mut cc = compiler("CC", "cc")?;
    let name = source.rsplit('/').next().unwrap().trim_end_matches(".c");
    let to = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("capi_{name}"));
    let folder = library();
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"])
        .args(["-D_POSIX_C_SOURCE=200809L", "-pthread", "-I"])
        .arg(own("include"))
        .arg(own(source))
        .arg("-L")
        .arg(&folder)
        .arg("-lcarbyne_c")
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .arg("-o")
        .arg(&to);
    let output = cc.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(Command::new(to))
}

/// The output of a program, which must succeed.
fn ran(mut program: Command) -> String {
    let output = program.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {}: {said}", program.get_program(), output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_example_computes_a_product() {
    let Some(example) = compiled("examples/gemm.c") else { return };
    let printed = ran(example);
    assert!(printed.contains("__global__") && printed.contains("gemm_launch"), "{printed}");
    assert!(printed.contains("\"kernels\""), "{printed}");
}

#[test]
fn the_border_holds() {
    let Some(mut border) = compiled("tests/c/border.c") else { return };
    let all = std::env::var_os("CARBYNE_ALL").is_some();
    border.arg(if all { "10000" } else { CYCLES }).arg(own("../examples/gemm_any.cby"));
    border.arg(own("../examples/grouped_gemm.cby"));
    let printed = ran(border);
    assert!(printed.contains("all is as it should be"), "{printed}");
}

#[test]
fn the_header_is_one_of_cpp_too() {
    let Some(mut cpp) = compiler("CXX", "c++") else { return };
    let flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only"];
    let output = cpp.args(flags).args(["-x", "c++"]).arg(own("include/carbyne.h")).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
