//! Arrays travel to and from NumPy, and NumPy computes the same.
//!
//! Needs the environment of `cargo xtask setup`; without it the tests say that they are skipped.

use crate::support::{carbyne, scratch};
use carbyne_codegen::nvrtc;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment's Python.
fn python() -> Option<PathBuf> {
    let found = nvrtc::environments().iter().map(|e| e.join("bin/python")).find(|p| p.exists());
    assert!(
        found.is_some() || !nvrtc::is_set_up(),
        "`cargo xtask setup` has run, and yet: no Python"
    );
    #[expect(clippy::print_stderr, reason = "a skipped test must say so")]
    if found.is_none() {
        eprintln!("NumPy absent: skipped");
    }
    found
}

/// Runs a script in a folder.
fn script(python: &Path, folder: &Path, text: &str) {
    let ran =
        Command::new(python).current_dir(folder).args(["-c", text]).output().expect("Python runs");
    assert!(ran.status.success(), "{}\n{text}", String::from_utf8_lossy(&ran.stderr));
}

/// `NAME=folder/file`
fn named(folder: &Path, name: &str, file: &str) -> String {
    format!("{name}={}", folder.join(file).display())
}

const MATMUL: &str = "\
carbyne 1
%A:[48,32].f16.GL
%B:[(32,24):(1,32)].f16.GL
%C:[48,24].f32.GL
#grid:[(3,3):(1,3)].block
#cta:[(16,8):(1,16)].thread
MatMul.set @matmul <<<#grid, #cta>>> (%A, %B) -> (%C) acc=f32 {
  @bm, @bn = #grid.indices()
  @tm, @tn = #cta.indices()
  Allocate %c:[1].f32.RF
  Init <<<#grid, #cta.scalar()>>> (0) -> (%c[0])
  for (k = 0; k < 32; k += 1) {
    %a = %A.tile([16,_])[@bm, 0][@tm, k]
    %b = %B.tile([_,8])[0, @bn][k, @tn]
    MatMul <<<#grid, #cta.scalar()>>> (%a, %b) -> (%c[0])
  }
  Move <<<#grid, #cta.scalar()>>> (%c[0]) -> (%C.tile([16,8])[@bm, @bn][@tm, @tn])
}
";

#[test]
fn a_product_is_that_of_numpy() {
    let Some(python) = python() else { return };
    let folder = scratch("numpy_matmul");
    script(
        &python,
        &folder,
        "import numpy as np\n\
         r = np.random.default_rng(1)\n\
         np.save('A.npy', r.uniform(-1, 1, (48, 32)).astype('f2'))\n\
         np.save('B.npy', np.asfortranarray(r.uniform(-1, 1, (32, 24)).astype('f2')))\n",
    );
    let (a, b) = (named(&folder, "A", "A.npy"), named(&folder, "%B", "B.npy"));
    let c = named(&folder, "C", "C.npy");
    let ran = carbyne(&["simulate", "-", "--in", &a, "--in", &b, "--out", &c], MATMUL).ok();
    assert!(ran.stderr.contains("all 9 blocks ran"), "{}", ran.stderr);
    // Each product of halves is exact in f32, so 32 sums err by at most 32 units of the magnitude.
    script(
        &python,
        &folder,
        "import numpy as np\n\
         A, B, C = (np.load(n + '.npy').astype('f8') for n in 'ABC')\n\
         assert C.shape == (48, 24) and np.load('C.npy').dtype == np.dtype('f4')\n\
         limit = 32 * 2.0 ** -24 * (np.abs(A) @ np.abs(B))\n\
         assert (np.abs(C - A @ B) <= limit).all(), np.abs(C - A @ B).max()\n\
         assert np.abs(C).min() > 0\n",
    );
}

#[test]
fn every_type_comes_back_as_it_went() {
    let Some(python) = python() else { return };
    let folder = scratch("numpy_types");
    let types = [
        ("f64", "f8"),
        ("f32", "f4"),
        ("f16", "f2"),
        ("bf16", "u2"),
        ("e4m3", "u1"),
        ("i64", "i8"),
        ("i32", "i4"),
        ("i16", "i2"),
        ("i8", "i1"),
        ("u32", "u4"),
        ("u8", "u1"),
    ];
    let names: Vec<&str> = types.iter().map(|(_, numpy)| *numpy).collect();
    script(
        &python,
        &folder,
        &format!(
            "import numpy as np\n\
             for t in {names:?}:\n\
             \x20 np.save(t + '.npy', (np.arange(24) % 7 - (3 if t[0] != 'u' else 0)).astype(t).reshape(4, 6))\n"
        ),
    );
    for (ours, numpy) in types {
        // A kernel without a body is executed by its meaning.
        let text = format!(
            "carbyne 1\n%A:[4,6].{ours}.GL\n%B:[(4,6):(1,4)].{ours}.GL\nMove @f (%A) -> (%B)\n"
        );
        let a = named(&folder, "A", &format!("{numpy}.npy"));
        let b = named(&folder, "B", &format!("{ours}.npy"));
        carbyne(&["simulate", "-", "--in", &a, "--out", &b], text).ok();
        script(
            &python,
            &folder,
            &format!(
                "import numpy as np\n\
                 a, b = np.load('{numpy}.npy'), np.load('{ours}.npy')\n\
                 assert a.dtype == b.dtype and a.tobytes() == b.tobytes(), (a, b)\n"
            ),
        );
    }
}

#[test]
fn arrays_that_do_not_fit_are_refused() {
    let Some(python) = python() else { return };
    let folder = scratch("numpy_misfits");
    script(
        &python,
        &folder,
        "import numpy as np\n\
         np.save('shape.npy', np.ones((32, 48), 'f2'))\n\
         np.save('type.npy', np.ones((48, 32), 'f4'))\n\
         np.save('objects.npy', np.array([{}], dtype=object))\n\
         open('cut.npy', 'wb').write(open('shape.npy', 'rb').read()[:200])\n\
         open('text.npy', 'w').write('no array')\n",
    );
    for file in ["shape.npy", "type.npy", "objects.npy", "cut.npy", "text.npy"] {
        let a = named(&folder, "A", file);
        let ran = carbyne(&["simulate", "-", "--in", &a, "--message-format", "json"], MATMUL);
        assert_eq!(
            (ran.code, ran.errors()[0]["code"].as_str()),
            (1, Some("S0507")),
            "{}",
            ran.stderr
        );
        assert_eq!(ran.errors()[0]["spans"][0]["start"]["line"], 2, "{}", ran.stderr);
    }
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let refused = |args: &[&str], says: &str| {
        let mut all = vec!["simulate", "-"];
        all.extend(args);
        let ran = carbyne(&all, MATMUL);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(says), "{args:?}: {}", ran.stderr);
    };
    refused(&["--in", "D=x.npy"], "it has `%A`, `%B`, `%C`");
    refused(&["--out", "D=x.npy"], "it has `%A`, `%B`, `%C`");
    refused(&["--in", "A"], "is not NAME=VALUE");
    refused(&["--in", "A=no/such/file.npy"], "there is no such file");
    refused(&["--in", "A=."], "it is a directory");
    refused(&["--sym", "K=1"], "no symbol `K`");
    refused(&["--blocks", "0"], "--blocks");
    refused(&["--seed", "1", "--ints"], "cannot be used with");
    refused(&["--blocks", "1", "--out", "C=x.npy"], "leave out `--blocks`");
}
