//! `cargo xtask ci`: runs the checks of the repository (format, tidy, clippy, tests, documentation,
//! packages and others). A check that fails does not end the run. Each check prints one closing
//! line: whether it passed, its time and its CPU time. The command fails if a check has failed.
//! `cargo xtask ci format tidy` runs only the named checks.

use crate::process::{Run, Step, cargo, program, root, say};
use crate::{setup, tidy};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A step and its name.
type Named<'a> = (&'static str, Box<dyn Fn() -> Step + 'a>);

/// Options that all building steps share, so that a step reuses the builds of other steps. All
/// steps select all packages, so that dependencies have equal features.
struct Build {
    /// Whether tests run their complete corpora.
    all: bool,
    /// Whether to compile incrementally. In a fresh clone this costs time and several times the
    /// disk space; in a clone where somebody works it is kept.
    incremental: bool,
}

impl Build {
    fn cargo(&self, arguments: &[&str]) -> Run {
        let run = cargo(arguments);
        if self.incremental { run } else { run.env("CARGO_INCREMENTAL", "0") }
    }

    fn clippy(&self) -> Step {
        let lint = ["clippy", "--workspace", "--quiet"];
        let deny = ["--", "-D", "warnings"];
        // Libraries without the feature `gpu`. Selecting a test gives dependencies the features of
        // tests, so that most libraries are checked once. Some packages have this test only for
        // long runs.
        self.cargo(&lint).args(&["--lib", "--bins", "--test", "all"]).args(&deny).done("")?;
        // `--all-targets` would check unit tests twice: here and in the package `tests`.
        let all = ["--lib", "--bins", "--tests", "--examples", "--benches"];
        let features: &[&str] = if LINUX { &GPU } else { &[] };
        self.cargo(&lint).args(&all).args(features).args(&deny).done("")?;
        Ok("no warnings".to_owned())
    }

    /// The layout algebra without a parser: alone, with its test kit, and with its tests.
    fn features(&self) -> Step {
        // Tests, examples and benchmarks enable the kit.
        let choices: [&[&str]; 2] = [&[], &["--lib", "--test", "all", "--examples", "--benches"]];
        for choice in choices {
            self.cargo(&["clippy", "--quiet", "--package", "carbyne-ir", "--no-default-features"])
                .args(choice)
                .args(&["--", "-D", "warnings"])
                .done("")?;
        }
        Ok("the layout algebra and its kit need no parser".to_owned())
    }

    fn test(&self) -> Step {
        let mut run = self.cargo(&["test", "--workspace", "--no-fail-fast"]);
        let given = std::env::var("CARBYNE_SEED").ok();
        let corpora = if self.all {
            // Print the seed first, because the run may be interrupted.
            let seed = given.unwrap_or_else(fresh_seed);
            say(&format!("random tests use CARBYNE_SEED={seed}"));
            run = run.env("CARBYNE_ALL", "1").env("CARBYNE_CASES", "10000");
            run = run.env("CARBYNE_SEED", &seed);
            format!(
                "complete corpora; random tests used seed {seed}, `CARBYNE_SEED={seed}` repeats \
                 them"
            )
        } else {
            let seed = given.unwrap_or("0".to_owned());
            format!(
                "parts of long corpora, random tests with seed {seed}; `--all` runs complete \
                 corpora with a new seed"
            )
        };
        run.done(&format!("all tests passed, generated pages are up to date; {corpora}"))
    }

    /// The tests of the feature `gpu`, which need neither CUDA nor a GPU.
    fn gpu(&self) -> Step {
        if !LINUX {
            return Ok("the feature `gpu` is for Linux: skipped".to_owned());
        }
        self.cargo(&["test", "--workspace", "--test", "gpu"])
            .args(&GPU)
            .done("it links without CUDA, and runs kernels on a fake GPU")
    }

    /// The Python wheel, installed into a separate environment, with the tests and examples of the
    /// Python package.
    fn python(&self) -> Step {
        const PACKAGES: &[&str] = &[
            "maturin>=1.9,<2",
            "numpy>=1.26,<3",
            "pytest>=8,<9",
            "pytest-xdist>=3,<4",
            "hypothesis>=6,<7",
            "jsonschema-rs>=0.30,<1",
            "nbclient>=0.11,<1",
            "ipykernel>=7,<8",
            "apache-tvm-ffi==0.1.15.post2",
        ];
        let environment = setup::environment("python", PACKAGES)?;
        let python = setup::python(&environment);
        // This package contains NVIDIA's pycute, which needs none of its dependencies.
        const PYCUTE: &str = "nvidia-cutlass>=4.2,<5";
        program(&python, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(&["--no-deps", PYCUTE])
            .done("")?;
        let wheels = environment.join("wheels");
        // Remove wheels of other versions, which would be installed, too.
        let _ = std::fs::remove_dir_all(&wheels);
        let target = setup::target()?;
        let build = ["-m", "maturin", "build", "--profile", "dev", "--quiet"];
        // The features of pyproject.toml, and one feature that allows reuse of the dependencies
        // compiled for the tests.
        let features = ["--features", "pyo3/extension-module,gpu,as-tested"];
        program(&python, &build)
            .args(&features)
            .args(&["--manifest-path", "python/Cargo.toml", "--compatibility", "linux"])
            .args(&["--out", &wheels.to_string_lossy()])
            .env("CARGO_TARGET_DIR", &target.to_string_lossy())
            .env("CARGO_INCREMENTAL", "0")
            .done("")?;
        let wheel = std::fs::read_dir(&wheels).ok().and_then(|mut all| all.next()?.ok());
        let wheel = wheel.ok_or("no wheel was built")?.path();
        program(&python, &["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
            .args(&["--force-reinstall", "--no-deps", &wheel.to_string_lossy()])
            .done("")?;
        program(&python, &["-m", "pytest", "--quiet", "--doctest-modules", "--pyargs", "carbyne"])
            .args(&["python/tests", "--numprocesses", "auto"])
            .done("the wheel imports without CUDA, its tests and all its examples pass")
    }

    /// The packages of all published crates. Each is compiled from its packaged files and from the
    /// packages of the others.
    fn publish(&self) -> Step {
        const WANTED: (u32, u32) = (1, 90);
        let version = cargo_version()?;
        if version < WANTED {
            return Err(format!(
                "checking packages that depend on each other needs Cargo {}.{}, this is {}.{}: \
                 run `rustup update stable`",
                WANTED.0, WANTED.1, version.0, version.1
            ));
        }
        let target = setup::target()?;
        let (packages, folder) = (target.join("package"), target.join("publish"));
        for old in [&packages, &folder] {
            let _ = std::fs::remove_dir_all(old);
        }
        let mut package = cargo(&["package", "--workspace", "--no-verify", "--allow-dirty"]);
        for name in &unpublished()? {
            package = package.args(&["--exclude", name]);
        }
        let (ok, log) = package
            .args(&["--quiet"])
            .env("CARGO_TARGET_DIR", &target.to_string_lossy())
            .errors()?;
        // The log contains one intended message per package about omitted tests.
        if !ok {
            return Err(format!("`cargo package --workspace`:\n{log}"));
        }
        let manifest = unpacked(&packages, &folder)?;
        self.cargo(&["check", "--workspace", "--quiet"])
            .args(&["--manifest-path", &manifest.to_string_lossy()])
            .env("CARGO_TARGET_DIR", &target.to_string_lossy())
            .done("every package compiles from its packaged files")
    }

    /// Packages of another workspace that depend on carbyne as a stranger's packages would. Each is
    /// built separately, so that the one with the kit gets no parser.
    fn outside(&self) -> Step {
        let target = setup::target()?;
        let manifest = "tests/outside/Cargo.toml";
        let cargo = |arguments: &[&str]| {
            self.cargo(arguments).env("CARGO_TARGET_DIR", &target.to_string_lossy())
        };
        cargo(&["fmt", "--all", "--check", "--manifest-path", manifest]).done("")?;
        for package in ["outside-layouts", "outside-compiler"] {
            let arguments = ["test", "--quiet", "--manifest-path", manifest];
            cargo(&arguments).args(&["--package", package]).done("")?;
        }
        cargo(&["run", "--quiet", "--manifest-path", manifest])
            .args(&["--package", "outside-compiler", "--", "64", "32", "16"])
            .output()?;
        Ok("a compiler and a layout library in another workspace use the facade and the kit"
            .to_owned())
    }

    fn doc(&self) -> Step {
        // With all documented features; the feature `gpu` adds only types of `launch`.
        self.cargo(&["doc", "--workspace", "--no-deps", "--quiet"])
            .args(&["--features", "carbyne-ir/proptest"])
            .env("RUSTDOCFLAGS", "-D warnings")
            .done("the documentation has no warnings")
    }
}

/// The names of unpublished packages of the workspace.
fn unpublished() -> Result<Vec<String>, String> {
    let folders = std::fs::read_dir(root()).map_err(|e| format!("the workspace: {e}"))?;
    let manifests = folders.flatten().map(|folder| folder.path().join("Cargo.toml"));
    let texts = manifests.filter_map(|path| std::fs::read_to_string(path).ok());
    let name = |text: &str| Some(text.split_once("name = \"")?.1.split_once('"')?.0.to_owned());
    Ok(texts.filter(|t| t.contains("\npublish = false")).filter_map(|t| name(&t)).collect())
}

/// Unpacks packages into one workspace where they depend on each other. Returns its manifest.
fn unpacked(packages: &Path, folder: &Path) -> Result<PathBuf, String> {
    let failed = |e: std::io::Error| format!("`{}`: {e}", setup::shown(folder));
    std::fs::create_dir_all(folder).map_err(failed)?;
    let mut manifest =
        "[workspace]\nresolver = \"3\"\nmembers = [\"carbyne*\"]\n[patch.crates-io]\n".to_owned();
    let entries = std::fs::read_dir(packages).map_err(failed)?;
    let mut all: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    all.retain(|path| path.extension().is_some_and(|e| e == "crate"));
    all.sort();
    for package in all {
        let (path, into) = (package.to_string_lossy(), folder.to_string_lossy());
        program("tar", &["-xzf", &path, "-C", &into]).done("")?;
        let stem = package.file_stem().unwrap_or_default().to_string_lossy();
        let (name, _) = stem.rsplit_once('-').ok_or_else(|| format!("`{stem}` has no version"))?;
        manifest += &format!("{name} = {{ path = \"{stem}\" }}\n");
    }
    let lock = root().join("Cargo.lock");
    std::fs::copy(lock, folder.join("Cargo.lock")).map_err(failed)?;
    // The profiles of this workspace, so that other dependencies are compiled only once.
    let ours = std::fs::read_to_string(root().join("Cargo.toml")).map_err(failed)?;
    manifest += ours.find("[profile.dev]").map_or("", |at| &ours[at..]);
    std::fs::write(folder.join("Cargo.toml"), manifest).map_err(failed)?;
    Ok(folder.join("Cargo.toml"))
}

/// A seed that no earlier run used.
fn fresh_seed() -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(1, |t| t.as_secs()).to_string()
}

/// The major and minor version of the Cargo that runs this program.
fn cargo_version() -> Result<(u32, u32), String> {
    let said = cargo(&["--version"]).output()?;
    let mut numbers = said.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok());
    match (numbers.next(), numbers.next()) {
        (Some(major), Some(minor)) => Ok((major, minor)),
        _ => Err(format!("`cargo --version` prints no version: {said}")),
    }
}

const GPU: [&str; 2] = ["--features", "carbyne/gpu,carbyne-capi/gpu"];
const LINUX: bool = cfg!(target_os = "linux");

/// Whether somebody compiles incrementally in this clone, with `cargo test` or `cargo build`.
fn is_worked_in() -> bool {
    let folder = setup::target().map(|target| target.join("debug").join("incremental"));
    let entries = folder.ok().and_then(|folder| std::fs::read_dir(folder).ok());
    let ours = |e: std::io::Result<std::fs::DirEntry>| {
        e.is_ok_and(|e| e.file_name().to_string_lossy().starts_with("carbyne"))
    };
    entries.into_iter().flatten().any(ours)
}

/// The CPU seconds of this program and its child processes; `None` on systems other than Linux. On
/// a busy machine, they say more than elapsed time.
fn cpu() -> Option<f64> {
    const TICKS: f64 = 100.0; // per second, on every Linux
    let status = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name of the program ends here; it may contain blanks.
    let fields = status.rsplit_once(") ")?.1.split(' ');
    let used = fields.skip(11).take(4).map(|ticks| ticks.parse::<f64>().ok());
    Some(used.sum::<Option<f64>>()? / TICKS)
}

/// Runs a step. Returns whether it passed, and its closing line.
fn timed((name, step): &Named<'_>) -> (bool, String) {
    let (began, before) = (Instant::now(), cpu());
    let ended = step();
    let seconds = began.elapsed().as_secs_f64();
    let used =
        before.zip(cpu()).map_or(String::new(), |(a, b)| format!("{:6.1} s of CPU  ", b - a));
    let (mark, said) = match &ended {
        Ok(said) => ("ok", said),
        Err(said) => ("FAILED", said),
    };
    (ended.is_ok(), format!("{mark:6} {name:8} {seconds:6.1} s  {used}{said}"))
}

/// Runs the steps with these names, or all steps.
pub(crate) fn ci(all: bool, only: &[String]) -> Step {
    let build = Build { all, incremental: is_worked_in() };
    let steps: [Named<'_>; 11] = [
        (
            "format",
            Box::new(|| cargo(&["fmt", "--all", "--check"]).done("all sources are formatted")),
        ),
        ("tidy", Box::new(tidy::tidy)),
        ("setup", Box::new(setup::setup)),
        ("clippy", Box::new(|| build.clippy())),
        ("features", Box::new(|| build.features())),
        ("test", Box::new(|| build.test())),
        ("gpu", Box::new(|| build.gpu())),
        ("python", Box::new(|| build.python())),
        ("outside", Box::new(|| build.outside())),
        ("doc", Box::new(|| build.doc())),
        ("publish", Box::new(|| build.publish())),
    ];
    if let Some(unknown) = only.iter().find(|o| !steps.iter().any(|(name, _)| name == *o)) {
        let names: Vec<_> = steps.iter().map(|(name, _)| *name).collect();
        return Err(format!("there is no step `{unknown}`; the steps are {}", names.join(", ")));
    }
    let chosen = |name: &str| only.is_empty() || only.iter().any(|o| o == name);
    let start = Instant::now();
    let mut closing = vec![];
    let mut n_failed = 0;
    for step in steps.iter().filter(|(name, _)| chosen(name)) {
        say(&format!("== {}", step.0));
        let (ended, line) = timed(step);
        say(&line);
        closing.push(line);
        n_failed += usize::from(!ended);
    }
    say("");
    closing.iter().for_each(|line| say(line));
    let seconds = start.elapsed().as_secs_f64();
    let used = cpu().map_or(String::new(), |used| format!(", {used:.0} s of CPU"));
    match n_failed {
        0 => Ok(format!("ci passed in {seconds:.0} s{used}")),
        n => Err(format!("{n} of {} steps failed, after {seconds:.0} s{used}", closing.len())),
    }
}
