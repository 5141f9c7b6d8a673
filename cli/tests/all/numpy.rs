//! Tests the exchange of arrays with NumPy by `.npy` files, and compares results with NumPy's
//! results.
//!
//! They need the environment of `cargo xtask setup`. Without it, the tests report that they are
//! skipped.

use crate::support::{carbyne, root, scratch};
use carbyne_codegen::nvrtc;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The Python of the environment.
fn python() -> Option<PathBuf> {
    let found = nvrtc::environments().iter().map(|e| e.join("bin/python")).find(|p| p.exists());
    assert!(
        found.is_some() || !nvrtc::is_set_up(),
        "`cargo xtask setup` has run, but there is no Python"
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
carbyne 2
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
    // Each product of halves is exact in f32, so the error of 32 sums is at most 32 units of the
    // magnitude.
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
             \x20 np.save(t + '.npy', (np.arange(24) % 7 - \
             (3 if t[0] != 'u' else 0)).astype(t).reshape(4, 6))\n"
        ),
    );
    for (ours, numpy) in types {
        // A kernel without a body is executed by its meaning.
        let text = format!(
            "carbyne 2\n%A:[4,6].{ours}.GL\n%B:[(4,6):(1,4)].{ours}.GL\nMove @f (%A) -> (%B)\n"
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
    refused(&["--in", "D=x.npy"], "use one of its tensors: `%A`, `%B`, `%C`");
    refused(&["--out", "D=x.npy"], "use one of its tensors: `%A`, `%B`, `%C`");
    refused(&["--in", "A"], "is not NAME=VALUE");
    refused(&["--in", "A=no/such/file.npy"], "there is no such file");
    refused(&["--in", "A=."], "is a directory");
    refused(&["--sym", "K=1"], "no symbol `K`");
    refused(&["--blocks", "0"], "--blocks");
    refused(&["--seed", "1", "--ints"], "cannot be used with");
    refused(&["--blocks", "1", "--out", "C=x.npy"], "remove `--blocks`");
}

/// An example of the tile level, its inputs in NumPy, its output, and the allowed error.
struct Tile {
    file: &'static str,
    inputs: &'static [(&'static str, &'static str)],
    output: &'static str,
    /// `want` and `limit`, computed from the inputs in binary64.
    means: &'static str,
}

/// The rounding error is at most 2^-11 of the magnitude or 2^-25 for halves, 2^-24 for single
/// precision.
const TILES: &[Tile] = &[
    Tile {
        file: "softmax",
        inputs: &[("X", "r.uniform(-4, 4, (64, 512)).astype('f4')")],
        output: "Y",
        means: "e = np.exp(X - X.max(1, keepdims=True))\n\
                want = e / e.sum(1, keepdims=True)\n\
                limit = (8 + 512) * 2.0**-24 * want",
    },
    Tile {
        file: "layernorm",
        inputs: &[
            ("X", "r.uniform(-1, 1, (64, 512)).astype('f2')"),
            ("w", "r.uniform(-1, 1, (1, 512)).astype('f4')"),
            ("b", "r.uniform(-1, 1, (1, 512)).astype('f4')"),
        ],
        output: "Y",
        means: "n = (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5)\n\
                want = n * w + b\n\
                limit = 2.0**-25 + 2.0**-11 * np.abs(want) + 1024 * 2.0**-24 * (np.abs(n * w) + \
                np.abs(b) + np.abs(w))",
    },
    Tile {
        file: "rmsnorm",
        inputs: &[
            ("X", "r.uniform(-1, 1, (64, 512)).astype('f2')"),
            ("w", "r.uniform(-1, 1, (1, 512)).astype('f4')"),
        ],
        output: "Y",
        means: "want = X / np.sqrt((X * X).mean(1, keepdims=True) + 1e-5) * w\n\
                limit = (2.0**-11 + 1024 * 2.0**-24) * np.abs(want) + 2.0**-25",
    },
    Tile {
        file: "gemm_bias_relu",
        inputs: &[
            ("A", "r.uniform(-1, 1, (256, 128)).astype('f2')"),
            ("B", "r.uniform(-1, 1, (128, 256)).astype('f2')"),
            ("b", "r.uniform(-4, 4, (1, 256)).astype('f4')"),
        ],
        output: "C",
        means: "want = np.maximum(A @ B + b, 0)\n\
                limit = 2.0**-25 + 2.0**-11 * want + 130 * 2.0**-24 * (np.abs(A) @ np.abs(B) + \
                np.abs(b))",
    },
    Tile {
        file: "int4_gemm",
        inputs: &[
            ("A", "r.uniform(-1, 1, (128, 128)).astype('f2')"),
            ("B", "r.integers(-8, 8, (128, 256)).astype('i1')"),
        ],
        output: "C",
        means: "want = A @ B\n\
                limit = 2.0**-25 + 2.0**-11 * np.abs(want) + 130 * 2.0**-24 * (np.abs(A) @ \
                np.abs(B))",
    },
    Tile {
        file: "attention",
        inputs: &[
            ("Q", "r.uniform(-2, 2, (128, 64)).astype('f2')"),
            ("K", "r.uniform(-2, 2, (64, 256)).astype('f2')"),
            ("V", "r.uniform(-1, 1, (256, 64)).astype('f2')"),
        ],
        output: "O",
        means: "e = np.exp((Q @ K) / 8 - ((Q @ K) / 8).max(1, keepdims=True))\n\
                p = e / e.sum(1, keepdims=True)\n\
                want = p @ V\n\
                limit = 2.0**-25 + 2.0**-11 * np.abs(want) + (2.0**-11 + 2.0**-14) * (p @ \
                np.abs(V))",
    },
    Tile {
        file: "hexcute_fig9_gemms",
        inputs: &[
            ("Q", "r.uniform(0, 1, (128, 64)).astype('f2')"),
            ("K", "r.uniform(0, 1, (64, 64)).astype('f2')"),
            ("V", "r.uniform(-1, 1, (64, 64)).astype('f2')"),
        ],
        output: "O",
        means: "p = (Q @ K) / (Q @ K).sum(1, keepdims=True)\n\
                want = p @ V\n\
                limit = 2.0**-25 + 2.0**-11 * np.abs(want) + (2.0**-11 + 2.0**-14) * (p @ \
                np.abs(V))",
    },
];

#[test]
fn tile_level_examples_compute_what_numpy_does() {
    let Some(python) = python() else { return };
    for tile in TILES {
        let folder = scratch(&format!("numpy_{}", tile.file));
        let given: String =
            tile.inputs.iter().map(|(n, v)| format!("np.save('{n}.npy', {v})\n")).collect();
        let start = "import numpy as np\nr = np.random.default_rng(1)\n";
        script(&python, &folder, &format!("{start}{given}"));
        let places =
            ["examples", "examples/tile"].map(|d| root().join(format!("{d}/{}.cby", tile.file)));
        let place = places.iter().find(|p| p.exists()).expect("an example");
        let path = place.display().to_string();
        let of = |name: &str| named(&folder, name, &format!("{name}.npy"));
        let inputs: Vec<String> = tile.inputs.iter().map(|(n, _)| of(n)).collect();
        let output = of(tile.output);
        let mut args = vec!["simulate", path.as_str(), "--out", &output];
        inputs.iter().for_each(|i| args.extend(["--in", i]));
        carbyne(&args, "").ok();
        let load: String = tile
            .inputs
            .iter()
            .map(|(n, _)| format!("{n} = np.load('{n}.npy').astype('f8')\n"))
            .collect();
        let check = format!(
            "import numpy as np\n{load}{}\nfound = np.load('{}.npy').astype('f8')\n\
             worst = (np.abs(found - want) / (limit + 1e-300)).max()\n\
             assert found.shape == want.shape and worst <= 1, ('{}', worst)\n",
            tile.means, tile.output, tile.file
        );
        script(&python, &folder, &check);
    }
}
