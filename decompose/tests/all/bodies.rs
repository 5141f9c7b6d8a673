//! Tests tile-level bodies like the bodies of real kernels. Each is decomposed for every
//! architecture in its line `// archs:`. The result must compute the meaning of the body, and
//! CUDA's compiler (NVRTC) must accept it (in a normal run, a random quarter of the results is
//! compiled).
//!
//! The bodies are `decompose/tests/tile/*.cby`, and products and reductions of many types and
//! storage orders, whose texts are generated here. Other tests check which instructions replace
//! operations: approximate ones if a cast hides their error, and fused multiply-adds.

use crate::support::{decomposed, run_drawn};
use carbyne_atoms::AtomTable;
use carbyne_codegen::nvrtc::{Emit, Options};
use carbyne_codegen::testing::require_nvrtc;
use carbyne_decompose::Decomposed;
use carbyne_ir::testing;
use std::path::Path;

/// The architectures that the head of a text names.
fn archs(text: &str) -> Vec<String> {
    let line = text.lines().find_map(|l| l.strip_prefix("// archs: ")).expect("`// archs:`");
    line.split_whitespace().map(str::to_owned).collect()
}

/// Decomposes for an architecture and compares; what is wrong, if anything is.
fn one(name: &str, text: &str, arch: &str) -> Result<Decomposed, String> {
    let table = AtomTable::new(arch.parse().map_err(|_| format!("no architecture {arch}"))?);
    let title = format!("{name} for {arch}");
    let d = decomposed(text, &table).map_err(|e| format!("{title}: {:?}", e.into_vec()))?;
    run_drawn(&d.program, &table, &title).map_err(|e| format!("{title}: {e:?}\n{}", d.text))?;
    if testing::one_in(4, &title)
        && let Some(nvrtc) = require_nvrtc()
    {
        for &kernel in &d.program.kernels {
            let printed = carbyne_codegen::print_kernel(&d.program, kernel, &table, None)
                .map_err(|errors| format!("{title}: {errors:?}"))?;
            nvrtc
                .compile(&printed.source, table.arch.nvrtc_name(), Emit::Ptx, &Options::default())
                .map_err(|e| format!("{title}: {e}\n{}", e.notes.join("\n")))?;
        }
    }
    Ok(d)
}

/// All texts, each for its architectures; what is wrong with any.
fn all(texts: &[(String, String)]) {
    let mut wrong = vec![];
    for (name, text) in texts {
        for arch in archs(text) {
            wrong.extend(one(name, text, &arch).err());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// A text under `tests/tile`.
fn text(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../decompose/tests/tile").join(name);
    std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()))
}

#[test]
fn bodies_of_many_sorts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../decompose/tests/tile");
    let files = std::fs::read_dir(folder).expect("a folder of bodies");
    let mut names: Vec<String> = files
        .map(|f| f.expect("a file").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".cby"))
        .collect();
    names.sort();
    assert!(names.len() > 20, "{names:?}");
    let texts: Vec<_> = names.into_iter().map(|name| (name.clone(), text(&name))).collect();
    all(&texts);
}

/// A product of tiles with factors of a type in an order, in two stages through shared memory.
fn product(types: [&str; 3], depth: i64, by_columns: [bool; 2], archs: &str) -> (String, String) {
    let [factors, out, acc] = types;
    let ty = |m: &str, n: &str, columns: bool| match columns {
        true => format!("[({m},{n}):(1,{m})].{factors}.GL"),
        false => format!("[{m},{n}].{factors}.GL"),
    };
    let (a, b) = (ty("M", "K", by_columns[0]), ty("K", "N", by_columns[1]));
    let done = if out == acc { "move(%c)".to_owned() } else { format!("cast(%c, {out})") };
    let text = format!(
        "// archs: {archs}
carbyne 2
let M = 64, N = 128, K = {}, BM = 64, BN = 64, BK = {depth}
%A:{a}
%B:{b}
%C:[M,N].{out}.GL
MatMul.set @gemm <<<#grid:[@i < M / BM, @j < N / BN], #cta:[128]>>> (%A, %B) -> (%C) acc={acc} {{
  %c:[BM,BN].{acc} = 0
  for (k = 0; k < K / BK; k += 1) stages=2 {{
    Move (%A.tile([BM,BK])[@i, k]) -> (%a:SH)
    Move (%B.tile([BK,BN])[k, @j]) -> (%b:SH)
    MatMul (%a, %b) -> (%c)
  }}
  %C.tile([BM,BN])[@i, @j] = {done}
}}
",
        2 * depth
    );
    (format!("{factors} {by_columns:?}"), text)
}

#[test]
fn products_of_every_type_in_every_order() {
    let types = [
        (["f16", "f16", "f32"], 32, "sm_70 sm_75 sm_80 sm_90a"),
        (["f16", "f16", "f16"], 32, "sm_70 sm_80"),
        (["bf16", "bf16", "f32"], 32, "sm_80 sm_90a"),
        (["tf32", "f32", "f32"], 32, "sm_80 sm_90a"),
        (["f64", "f64", "f64"], 16, "sm_80 sm_90a"),
        (["i8", "i32", "i32"], 64, "sm_75 sm_80 sm_90a"),
        (["e4m3", "f32", "f32"], 64, "sm_89 sm_90a"),
        (["e5m2", "f16", "f32"], 64, "sm_89 sm_90a"),
        (["f32", "f32", "f32"], 16, "sm_70 sm_75 sm_80"),
    ];
    let orders = [[false, false], [true, true], [false, true], [true, false]];
    let each = types.iter().flat_map(|(types, depth, archs)| {
        let drawn = testing::one_of(&format!("{types:?}"), &orders);
        drawn.iter().map(move |order| product(*types, *depth, *order, archs))
    });
    all(&each.collect::<Vec<_>>());
}

/// A Reduction of all of a tensor by one block.
fn reduction(
    op: &str,
    scalar: &str,
    extents: &[i64],
    axes: &[i64],
    archs: &str,
) -> (String, String) {
    let list = |l: &[i64]| l.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
    let left: Vec<i64> =
        (0..).zip(extents).map(|(i, e)| if axes.contains(&i) { 1 } else { *e }).collect();
    let (from, to, axis) = (list(extents), list(&left), list(axes));
    let text = format!(
        "// archs: {archs}
carbyne 2
%X:[{from}].{scalar}.GL
%Y:[{to}].{scalar}.GL
Reduction.{op} @r <<<#grid:[1], #cta:[128]>>> (%X) -> (%Y) axis=({axis}) {{
  Reduction.{op} (%X) -> (%Y) axis=({axis})
}}
"
    );
    (format!("{op} of {scalar} [{from}] over {axis}"), text)
}

#[test]
fn reductions_of_every_sort_over_every_mode() {
    const ALL: &str = "sm_70 sm_80 sm_90a";
    let mut texts = vec![];
    for axes in [&[0][..], &[1], &[0, 1]] {
        for op in ["sum", "prod", "min", "max"] {
            texts.extend(
                ["f32", "f16", "i32"].map(|scalar| reduction(op, scalar, &[32, 64], axes, ALL)),
            );
        }
        for op in ["and", "or", "xor"] {
            texts.extend(["i32", "u32"].map(|scalar| reduction(op, scalar, &[32, 64], axes, ALL)));
        }
    }
    for axes in [&[0][..], &[1], &[2], &[0, 1], &[0, 2], &[1, 2], &[0, 1, 2]] {
        texts.push(reduction("sum", "f32", &[8, 16, 32], axes, ALL));
        texts.push(reduction("max", "f16", &[8, 16, 32], axes, ALL));
    }
    texts.push(reduction("sum", "bf16", &[32, 64], &[1], "sm_80 sm_90a"));
    texts.push(reduction("sum", "f64", &[32, 64], &[1], ALL));
    texts.push(reduction("sum", "f32", &[1024], &[0], ALL));
    texts.push(reduction("sum", "f32", &[2, 8192], &[1], ALL));
    texts.push(reduction("sum", "f32", &[10, 48], &[1], ALL));
    all(&texts);
}

/// The atoms of a text that hold a part of a name.
fn atoms(d: &Decomposed) -> Vec<&str> {
    let specs = d.program.specs.iter().filter(|(_, s)| s.body.is_none());
    specs.filter_map(|(_, s)| s.atom.as_deref()).collect()
}

/// Softmax of rows to a type, with what stands behind the name of the kernel and behind the
/// argument of `exp`.
fn softmax(out: &str, kernel: &str, exp: &str) -> String {
    let done = if out == "f32" {
        "%e / sum(%e, axis=1)".to_owned()
    } else {
        format!("cast(%e / sum(%e, axis=1), {out})")
    };
    format!(
        "// archs: sm_80
carbyne 2
%X:[8,256].f32.GL
%Y:[8,256].{out}.GL
Spec @softmax <<<#grid:[1], #cta:[128]>>> (%X) -> (%Y) {kernel} means {{
  %e = exp(%X - max(%X, axis=1))
  %Y = %e / sum(%e, axis=1)
}} {{
  %x = move(%X)
  %e = exp(%x - max(%x, axis=1){exp})
  %Y = {done}
}}
"
    )
}

#[test]
fn approximations_stand_where_a_cast_hides_their_error() {
    for (out, kernel, exp, want) in [
        ("f16", "", "", ["exp.approx.ftz.f32", "div.full.f32"]),
        ("bf16", "", "", ["exp.approx.ftz.f32", "div.full.f32"]),
        ("f32", "", "", ["exp.f32", "div.f32"]),
        ("f16", "math=exact", "", ["exp.f32", "div.f32"]),
        ("f16", "", ", math=exact", ["exp.f32", "div.full.f32"]),
        ("f16", "math=exact", ", math=fast", ["exp.approx.ftz.f32", "div.f32"]),
        ("f32", "", ", math=fast", ["exp.approx.ftz.f32", "div.f32"]),
    ] {
        let text = softmax(out, kernel, exp);
        let d = one("softmax", &text, "sm_80").unwrap_or_else(|e| panic!("{e}"));
        for atom in want {
            assert!(atoms(&d).contains(&atom), "{atom} in\n{text}{}", d.text);
        }
    }
}

#[test]
fn products_and_sums_fuse() {
    for (steps, fused) in [
        ("%y = %x * %x + 1.0", true),
        ("%y = %x - %x * %x", true),
        ("%z = %x * %x\n  %y = %z + %z", false),
        ("%z = %x * %x\n  %y = (%z + 1.0) * %z", false),
        ("%z = mul(%x, %x, math=exact)\n  %y = %z + 1.0", false),
        ("%y = max(%x * %x, 1.0)", false),
        ("%m = sum(%x, axis=1)\n  %y = %x + %m * 0.5", false),
    ] {
        let text = chain(steps);
        let d = one("chain", &text, "sm_80").unwrap_or_else(|e| panic!("{text}{e}"));
        let found = atoms(&d).iter().filter(|a| a.contains("contract")).count();
        assert_eq!(found, if fused { 2 } else { 0 }, "{text}{}", d.text);
        let (Some(nvrtc), Some(&kernel)) = (require_nvrtc(), d.program.kernels.first()) else {
            continue;
        };
        let table = AtomTable::new("sm_80".parse().expect("an architecture"));
        let printed =
            carbyne_codegen::print_kernel(&d.program, kernel, &table, None).expect("prints");
        let arch = table.arch.nvrtc_name();
        let made = nvrtc.compile(&printed.source, arch, Emit::Ptx, &Options::default());
        let ptx = made.expect("compiles").ptx;
        // The assembler may fuse instructions that name no rounding (PTX ISA, Floating Point
        // Instructions: mul, add, sub).
        assert_eq!(!ptx.contains("mul.rn.f32"), fused, "{text}{ptx}");
    }
}

/// One operation after another on f32, then a cast to f16, in a loop or not.
fn chain(steps: &str) -> String {
    format!(
        "// archs: sm_80
carbyne 2
%X:[8,128].f32.GL
%Y:[8,128].f16.GL
Spec @chain <<<#grid:[1], #cta:[128]>>> (%X) -> (%Y) {{
  %x = move(%X)
  {steps}
  %Y = cast(%y, f16)
}}
"
    )
}

#[test]
fn errors_are_followed_to_the_cast() {
    for (steps, exact) in [
        ("%y = exp(%x)", false),
        ("%e = exp(%x)\n  %y = %e * %x", false),
        ("%e = exp(%x)\n  %y = %e + 1.0", false),
        ("%e = exp(%x)\n  %y = max(%e, %x)", false),
        ("%e = exp(%x)\n  %y = rsqrt(%e)", false),
        ("%e = exp(%x)\n  Move (%e) -> (%s:SH)\n  %y = %s * %x", false),
        // These may amplify the error.
        ("%e = exp(%x)\n  %y = %e - 1.0", true),
        ("%e = exp(%x)\n  %y = %e + %x", true),
        ("%e = exp(%x)\n  %y = tanh(%e)", true),
        ("%e = exp(%x)\n  %d = %e * %x\n  %y = sum(%d, axis=1) * %x", true),
        ("%e = exp(%x)\n  %y = select(%e < 1.0, %x, 0.0)", true),
        // A loop multiplies on and on.
        (
            "%y:[8,128].f32 = 1
  for (i = 0; i < 4; i += 1) {
    %e = exp(%x)
    %y = %y * %e
  }",
            true,
        ),
        (
            "%y:[8,128].f32 = 0
  for (i = 0; i < 4; i += 1) {
    %e = exp(%x)
    %y = %y + %e
  }",
            false,
        ),
    ] {
        let text = chain(steps);
        let d = one("chain", &text, "sm_80").unwrap_or_else(|e| panic!("{text}{e}"));
        let found = atoms(&d).contains(&"exp.f32");
        assert_eq!(found, exact, "{text}{}", d.text);
    }
}
