//! Tests that every program under `examples/` works as the comments at its beginning state.
//!
//! - `// archs: sm_80 sm_90a`: the architectures to decompose, print, compile and simulate for.
//! - `// simulate: --blocks 1`: options of the simulation.
//! - `// cuda: sm_80`: the architectures whose CUDA C++ is stored beside the example, as
//!   `NAME.sm_80.cu`; default: all. `// cuda: none`: none.
//!
//! In a normal run, slow tests draw examples, architectures and inputs (`carbyne_ir::testing`).
//! Other tests check `carbyne strategies`, with the strategies under `examples/` and with wrong
//! ones.

use crate::host::{Parts, compiled};
use crate::support::{Ran, carbyne, golden, made, none, root, run, scratch, shown, texts_under};
use carbyne_codegen::nvrtc::{Emit, Options, Usage};
use carbyne_codegen::testing::{require_nvrtc, wgmma_faults};
use carbyne_ir::testing;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A program and the options in its comments.
struct Example {
    file: PathBuf,
    archs: Vec<String>,
    /// The architectures with stored CUDA C++.
    cuda: Vec<String>,
    /// Whether a kernel is a generic spec, which is not compared as a whole.
    generic: bool,
    simulate: Vec<String>,
    /// Whether the program contains a matrix product.
    multiplies: bool,
    /// Whether a kernel has no body. Such a program can be decomposed, but it runs without a
    /// decomposition only if it is small.
    kernel_level: bool,
}

fn examples() -> Vec<Example> {
    let (all, strategies) = (texts_under(&root().join("examples")), strategies());
    let all: Vec<Example> =
        all.into_iter().filter(|f| !strategies.contains(f)).map(example).collect();
    assert!(!all.is_empty(), "there are no examples");
    all
}

/// Files of strategies, which contain no kernels.
fn strategies() -> Vec<PathBuf> {
    texts_under(&root().join("examples/strategies"))
}

#[test]
fn strategies_compute_what_they_mean() {
    for file in strategies() {
        let path = file.display().to_string();
        carbyne(&["check", &path], "").ok();
        carbyne(&["fmt", "--check", &path], "").ok();
        let ran = carbyne(&["strategies", "--test", &path], "").ok();
        assert!(ran.text().contains(" samples compute their meaning"), "{}", ran.text());
    }
}

/// Writes a strategy with an error to a file, and tests it.
fn tested(name: &str, text: &str, args: &[&str]) -> Ran {
    let file = scratch(name).join("mine.cby");
    std::fs::write(&file, text).expect("a file");
    let path = file.display().to_string();
    let mut all = vec!["strategies", "--test", &path];
    all.extend(args);
    carbyne(&all, "")
}

/// Blocks that process several tiles each. A wrong step omits every second tile.
const STRIDES: &str = "carbyne 2

strategy @scale[N, E:type, BN in (256), T in (64,128), G in (SMS, 2 * SMS)]
    <<<#grid:[@b < G], #cta:[T]>>>
    (%a:[].E, %x:[N].E.GL) -> (%z:[N].E.GL) tile=(BN) warps=T / 32
    where N % BN == 0, BN >= 2 * T
    means {
  %z = %a * %x
} {
  for (k = @b; k < N / BN; k += STEP) {
    Move (%x.tile([BN])[k]) -> (%p)
    %z.tile([BN])[k] = %a * %p
  }
}
";

#[test]
fn a_strategy_that_leaves_out_tiles_of_a_block_is_found() {
    let right = tested("strides", &STRIDES.replace("STEP", "G"), &[]).ok();
    assert!(right.text().contains("@scale: 8 of 8 samples compute"), "{}", right.text());
    let wrong = tested("strides_wrong", &STRIDES.replace("STEP", "2 * G"), &[]);
    assert_ne!(wrong.code, 0);
    assert!(wrong.text().contains("is never written"), "{}", wrong.text());
}

/// Two kernels; the second one reads the result of the first: partial sums of columns.
const IN_TWO: &str = "carbyne 2

strategy @sums[M, N, E:type, P in (16), BM in (8), BN in (64,128), T in (64)]
    (%X:[M,N].E.GL) -> (%s:[1,N].E.GL)
    where M % (P * BM) == 0, N % BN == 0, E == 32
    means {
  %s = sum(%X, axis=0)
} {
  %parts:[P,N].f32.GL
  Spec @parts <<<#grid:[@j < N / BN, @p < P], #cta:[T]>>> (%X) -> (%parts) means {
    %w = sum(%X.reshape([M / P,P,N]:[1,M / P,M]), axis=0)
    %parts = move(%w.reshape([P,N]:[1,P]))
  } {
    %t:[BM,BN].f32 = 0
    for (k = 0; k < M / (P * BM); k += 1) {
      %t = %t + %X.tile([M / P,BN])[@p, @j].tile([BM,BN])[k, 0]
    }
    %parts.tile([1,BN])[@p, @j] = sum(%t, axis=0)
  }
  Reduction.LAST @whole (%parts) -> (%s) axis=0
}
";

#[test]
fn a_strategy_of_kernels_that_are_right_apart_and_wrong_together_is_found() {
    let right = tested("in_two", &IN_TWO.replace("LAST", "sum"), &[]).ok();
    assert!(right.text().contains(" samples compute their meaning"), "{}", right.text());
    let wrong = tested("in_two_wrong", &IN_TWO.replace("LAST", "max"), &[]);
    assert_ne!(wrong.code, 0);
    assert!(wrong.text().contains("@sums: 0 of 8 samples"), "{}", wrong.text());
    assert!(wrong.text().contains("the original program means"), "{}", wrong.text());
}

#[test]
fn kernels_of_one_spec_are_compared_with_it_as_a_whole() {
    let kernel = "%X:[128,64].f32.GL\n%s:[1,64].f32.GL\nReduction.sum @columns (%X) -> (%s) \
                  by=@sums axis=0\n";
    let text = |last: &str| format!("{}\n{kernel}", IN_TWO.replace("LAST", last));
    let right = carbyne(&["simulate", "--arch", "sm_80", "-"], text("sum")).ok();
    assert!(right.stderr.contains(": 64 elements of %s"), "{}", right.stderr);
    let wrong = carbyne(&["simulate", "--arch", "sm_80", "-"], text("max"));
    assert!(wrong.code == 1 && wrong.stderr.contains("S0501"), "{}", wrong.stderr);
}

#[test]
fn a_body_that_is_no_program_fails_the_test_of_its_strategy() {
    let body = STRIDES.replace("STEP", "G").replace("= %a * %p", "= %a * %q");
    let ran = tested("unknown", &body, &[]);
    assert_ne!(ran.code, 0, "{}{}", ran.text(), ran.stderr);
}

#[test]
fn strategies_are_listed_by_spec_and_architecture() {
    let all = carbyne(&["strategies", "--arch", "sm_80", "--spec", "MatMul"], "").ok();
    assert!(all.text().contains("@ring: MatMul"), "{}", all.text());
    assert!(all.text().contains("not for sm_80: @ring_quads"), "{}", all.text());
    let none = carbyne(&["strategies", "--spec", "MatMull"], "");
    assert!(none.code != 0 && none.stderr.contains("did you mean `MatMul`?"), "{}", none.stderr);
}

fn example(file: PathBuf) -> Example {
    let text = std::fs::read_to_string(&file).expect("a readable example");
    let words = |key: &str| -> Vec<String> {
        let lines = text.lines().take_while(|l| l.starts_with("//"));
        let found = lines.filter_map(|l| l.strip_prefix("// ")?.strip_prefix(key));
        found.flat_map(str::split_whitespace).map(str::to_owned).collect()
    };
    let archs = words("archs:");
    let cuda = match words("cuda:") {
        all if all.is_empty() => archs.clone(),
        some => some.into_iter().filter(|a| a != "none").collect(),
    };
    let module =
        carbyne_ir::text::parse(&text).unwrap_or_else(|e| panic!("{}: {e:?}", shown(&file)));
    let kernel_level = module.items.iter().any(|s| match &s.kind {
        carbyne_ir::ast::StmtKind::Spec(spec) => spec.body.is_none(),
        _ => false,
    });
    let generic = module.items.iter().any(|s| match &s.kind {
        carbyne_ir::ast::StmtKind::Spec(spec) => spec.kind == carbyne_ir::ast::SpecKind::Generic,
        _ => false,
    });
    let multiplies = text.to_lowercase().contains("matmul");
    Example { archs, cuda, generic, simulate: words("simulate:"), multiplies, file, kernel_level }
}

/// Fails with the errors that `f` reports for any example.
fn each(f: impl Fn(&Example) -> Result<(), String> + Sync) {
    none(examples().par_iter().filter_map(|e| f(e).err()).collect());
}

/// Fails with the errors that `f` reports for any example and any architecture that `archs`
/// selects.
fn each_on(
    archs: impl Fn(&Example) -> &[String] + Sync,
    f: impl Fn(&Example, &str) -> Result<(), String> + Sync,
) {
    each(|e| {
        let wrong: Vec<String> = archs(e).iter().filter_map(|a| f(e, a).err()).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n\n")) }
    });
}

/// All architectures of an example.
fn every_arch(e: &Example) -> &[String] {
    &e.archs
}

/// One random architecture of an example; all in a run of all tests.
fn drawn_arch(e: &Example) -> &[String] {
    testing::one_of(&shown(&e.file), &e.archs)
}

#[test]
fn they_are_well_formed_and_formatted() {
    each(|e| {
        run(&e.file, &["check"])?;
        run(&e.file, &["fmt", "--check"])?;
        if e.archs.is_empty() { Err(format!("{}: no `// archs:`", shown(&e.file))) } else { Ok(()) }
    });
}

#[test]
fn they_run_as_written() {
    each(|e| {
        if e.kernel_level {
            return Ok(());
        }
        let mut args = vec!["simulate", "--ints"];
        args.extend(e.simulate.iter().map(String::as_str));
        match run(&e.file, &args) {
            // A leaf of several threads on plain registers has no meaning before an atom is chosen.
            Err(why) if why.contains("S0506") => Ok(()),
            other => other.map(|_| ()),
        }
    });
}

#[test]
fn they_compute_what_they_mean() {
    each_on(drawn_arch, |e, arch| {
        let name = format!("{} for {arch}", shown(&e.file));
        if !testing::one_in(2, &name) {
            return Ok(());
        }
        for inputs in testing::one_of(&name, &["--seed=1", "--ints=1", "--schedule=5"]) {
            let mut args = vec!["simulate", "--arch", arch, inputs];
            args.extend(e.simulate.iter().map(String::as_str));
            let ran = run(&e.file, &args)?;
            let compared = match e.generic {
                true => !ran.stderr.contains("compared with the meaning: 0"),
                false => ran.stderr.contains("compared with the meaning: the elements that the"),
            };
            if !compared {
                return Err(format!("{name}: nothing was compared\n{}", ran.stderr));
            }
        }
        Ok(())
    });
}

#[test]
fn what_is_decomposed_decomposes_to_itself() {
    each_on(every_arch, |e, arch| {
        let once = made(&e.file, "decompose", arch)?;
        let again = carbyne(&["decompose", "-", "--arch", arch], &once.stdout);
        let name = format!("{} for {arch}", shown(&e.file));
        if again.code != 0 {
            return Err(format!("{name}: the decomposed text is refused\n{}", again.stderr));
        }
        let formatted = carbyne(&["fmt", "-", "--check"], &once.stdout);
        let change = carbyne::unified_diff::diff("once", "twice", once.text(), again.text());
        if change.is_empty() && formatted.code == 0 {
            return Ok(());
        }
        Err(format!("{name}\n{change}{}", formatted.text()))
    });
}

#[test]
fn their_cuda_is_as_expected() {
    each_on(every_arch, |e, arch| {
        if !e.cuda.iter().any(|a| a == arch) {
            return Ok(());
        }
        let printed = made(&e.file, "compile", arch)?;
        golden(&beside(&e.file, arch), &Parts::of(printed.text()).device)
    });
}

/// A random architecture, and the architecture with `wgmma` for products.
fn compiled_archs(e: &Example) -> Vec<String> {
    let drawn = drawn_arch(e).iter().chain(arch_of_wgmma(e));
    drawn.collect::<BTreeSet<_>>().into_iter().cloned().collect()
}

/// The printed files compile: NVRTC compiles the device part to machine code with all arrays in
/// registers, the host's compiler compiles the host part.
#[test]
fn they_are_whole_files() {
    let (nvrtc, hosts) = (require_nvrtc(), Mutex::new(BTreeMap::new()));
    let one = |e: &Example, arch: &str| {
        let name = format!("{} for {arch}", shown(&e.file));
        let printed = made(&e.file, "compile", arch)?;
        let stem = e.file.file_stem().and_then(|s| s.to_str()).expect("a name");
        for of in ["launch", "workspace_bytes"] {
            if !printed.text().contains(&format!(" {stem}_{of}(")) {
                return Err(format!("{name}: no function `{stem}_{of}`"));
            }
        }
        if let Some(nvrtc) = nvrtc {
            let made = nvrtc.compile(printed.text(), arch, Emit::Cubin, &Options::default());
            let made = made.map_err(|d| format!("{name}: {d}\n{}", d.notes.join("\n")))?;
            if made.ptx.contains("__local_depot") {
                return Err(format!("{name}: arrays that should be registers are in memory"));
            }
            let kernels = made.ptx.split(".entry ").skip(1);
            for kernel in kernels.filter_map(|text| text.split('(').next()) {
                match made.usage(kernel.trim()) {
                    Some(Usage { spill_stores: 0, spill_loads: 0, .. }) => {}
                    other => return Err(format!("{name}: {kernel}: {other:?}")),
                }
            }
            let faults = wgmma_faults(&made.ptx, &made.cubin, &made.log);
            if !arch_of_wgmma(e).is_empty() && !faults.is_empty() {
                return Err(format!("{name}: {}", faults.join("\n")));
            }
        }
        hosts.lock().expect("no test panics here").insert(name, Parts::of(printed.text()).host);
        Ok(())
    };
    each(|e| compiled_archs(e).iter().try_for_each(|arch| one(e, arch)));
    let unit = scratch("whole_files").join("host.cpp");
    std::fs::write(&unit, in_namespaces(&hosts.into_inner().expect("no test panics here")))
        .expect("writable");
    compiled(&["-fsyntax-only", &unit.display().to_string()]).unwrap_or_else(|e| panic!("{e}"));
}

/// One unit with the host parts of all files, because the standard headers take longer to compile
/// than what follows them. Each part has a namespace of its own, and errors name its file.
fn in_namespaces(hosts: &BTreeMap<String, String>) -> String {
    let is_include = |line: &&str| line.starts_with("#include ");
    let headers: BTreeSet<&str> =
        hosts.values().flat_map(|host| host.lines().filter(is_include)).collect();
    let mut unit: String = headers.iter().map(|line| format!("{line}\n")).collect();
    for (i, (name, host)) in hosts.iter().enumerate() {
        let body = host.lines().map(|line| if is_include(&line) { "" } else { line });
        // Functions of C are the same ones in all namespaces.
        let body = body.collect::<Vec<_>>().join("\n").replace("extern \"C\" ", "");
        unit += &format!("namespace file_{i} {{\n#line 1 \"{name}\"\n{body}\n}}\n");
    }
    unit
}

/// The file for a CUDA C++ text: `examples/gemm.sm_80.cu` for `examples/gemm.cby`.
fn beside(file: &Path, arch: &str) -> PathBuf {
    file.with_extension(format!("{arch}.cu"))
}

#[test]
fn no_golden_is_left_over() {
    let wanted: Vec<PathBuf> = examples()
        .iter()
        .flat_map(|e| {
            let printed = e.cuda.iter();
            printed.map(|a| beside(&e.file, a)).collect::<Vec<_>>()
        })
        .collect();
    let folders = ["examples", "examples/tile"].map(|f| root().join(f));
    let files = folders.iter().flat_map(|f| std::fs::read_dir(f).expect("a folder of examples"));
    let stray = files
        .map(|f| f.expect("a readable folder").path())
        .filter(|f| f.extension().is_some_and(|x| x == "cu") && !wanted.contains(f));
    none(stray.map(|f| format!("{} belongs to no example", shown(&f))).collect());
}

/// sm_90a, if the program contains matrix products, which may use `wgmma` there.
fn arch_of_wgmma(e: &Example) -> &[String] {
    let at = e.archs.iter().position(|a| a == "sm_90a" && e.multiplies);
    at.map_or(&[], |at| &e.archs[at..=at])
}

/// The decomposed text can be compiled again; for one example in four, or for all in a run of all
/// tests.
#[test]
fn their_decomposed_texts_compile() {
    if require_nvrtc().is_none() {
        return;
    }
    each_on(drawn_arch, |e, arch| {
        let name = format!("{} for {arch}", shown(&e.file));
        if !testing::one_in(4, &name) {
            return Ok(());
        }
        let decomposed = made(&e.file, "decompose", arch)?;
        let compiled = |emit: &str| {
            let args = ["compile", "-", "--arch", arch, "--emit", emit];
            let ran = carbyne(&args, &decomposed.stdout);
            if ran.code == 0 { Ok(ran) } else { Err(format!("{name}: {}", ran.stderr)) }
        };
        let (ptx, cubin) = (compiled("ptx")?, compiled("cubin")?);
        if !ptx.text().contains(".entry") || !cubin.stdout.starts_with(b"\x7fELF") {
            return Err(format!("{name}: no PTX or no machine code"));
        }
        if cubin.stderr.contains("no spills") {
            Ok(())
        } else {
            Err(format!("{name}: {}", cubin.stderr))
        }
    });
}

/// A stage is released to the wrong mbarrier. In text order, no thread waits long enough to expose
/// the error.
#[test]
fn stages_that_are_handed_over_wrongly_are_noticed() {
    let file = root().join("examples/gemm_roles.cby").display().to_string();
    let ran = carbyne(&["decompose", &file, "--arch", "sm_90a"], "").ok();
    let decomposed = ran.text();
    assert_eq!(carbyne(&["simulate", "-", "--blocks", "1"], decomposed).code, 0);
    let right = "mbarrier.arrive(%empty[k % 3])";
    assert!(decomposed.contains(right), "{decomposed}");
    let wrong = decomposed.replace(right, "mbarrier.arrive(%empty[(k + 2) % 3])");
    let ran = carbyne(&["simulate", "-", "--blocks", "1"], &wrong);
    assert!(ran.stderr.contains("S0509"), "{}", ran.stderr);
}
