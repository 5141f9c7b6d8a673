//! Tests casts in kernels without a body: the decomposed kernel stores bit for bit the numbers that
//! its meaning states. An additional or omitted rounding would change them.

use crate::support::decomposed;
use carbyne_atoms::AtomTable;
use carbyne_decompose::checked;
use carbyne_ir::program::Program;
use carbyne_ir::scalar::Scalar;
use carbyne_ir::text;
use carbyne_simulate::{Array, Inputs, Options, simulate};
use std::collections::BTreeMap;

fn outputs(p: &Program, table: &AtomTable, options: &Options, names: &[&str]) -> Vec<Array> {
    let report = simulate(p, table, options).unwrap_or_else(|e| panic!("{e}: {}", e.label));
    names.iter().map(|name| report.outputs.get(name).expect("all of it")).collect()
}

/// Compares outputs of what is decomposed with those of the meaning, for inputs of which all
/// numbers are computed alike.
fn same(arch: &str, src: &str, options: &Options, names: &[&str]) -> Vec<Array> {
    let table = AtomTable::new(arch.parse().expect("an architecture"));
    let module = text::parse(src).expect("a module");
    let meant = checked(&module, src).expect("a program");
    let found = decomposed(src, &table).unwrap_or_else(|e| panic!("{arch}: {src}{e}"));
    let options = Options { blocks: Some(u64::MAX), ..options.clone() };
    let wanted = outputs(&meant, &table, &options, names);
    let got = outputs(&found.program, &table, &options, names);
    assert_eq!(wanted, got, "{arch}: {}", found.text);
    got
}

#[test]
fn a_residue_is_what_the_cast_rounds_away() {
    let src = "carbyne 2
%A:[32,64].f32.GL
%H:[32,64].bf16.GL
%L:[32,64].bf16.GL
%Q:[32,64].f32.GL
Spec @split (%A) -> (%H, %L, %Q) means {
  %H = cast(%A, bf16)
  %L = cast(%A - cast(cast(%A, bf16), f32), bf16)
  %Q = cast(cast(%A * 1024.0, e4m3), f32)
}
";
    let all = same("sm_90a", src, &Options::default(), &["H", "L", "Q"]);
    assert!(all[1].values.iter().filter(|v| **v & 0x7fff != 0).count() > 2000);
    let largest = all[2].values.iter().map(|v| f32::from_bits(*v as u32).abs()).fold(0.0, f32::max);
    assert_eq!(largest, 448.0);
}

#[test]
fn casts_round_before_and_behind_products_and_reductions() {
    let operands = "carbyne 2
%A:[64,64].f32.GL
%B:[64,64].f16.GL
%Y:[64,64].f32.GL
%R:[64,1].f32.GL
";
    // Of small integers every sum is exact, whatever its order.
    let ints = Options { inputs: Inputs::Ints(7), ..Options::default() };
    for (arch, output, means) in [
        ("sm_80", "Y", "%Y = matmul(cast(cast(%A + 1000.0, bf16), f16), %B)"),
        ("sm_90a", "Y", "%Y = matmul(cast(cast(%A + 9.0, e4m3), f16), %B)"),
        ("sm_80", "Y", "%Y = cast(cast(matmul(cast(%A, f16), %B) * 9.0, bf16), f32) + 1.0"),
        ("sm_90a", "Y", "%Y = cast(cast(matmul(cast(%A, f16), %B) * 9.0, bf16), f32) + 1.0"),
        ("sm_80", "R", "%R = sum(cast(cast(%A * 129.0, bf16), f32), axis=1)"),
        ("sm_75", "R", "%R = max(cast(cast(%A * 1025.0, f16), f32), axis=1)"),
    ] {
        let src = format!("{operands}Spec @k (%A, %B) -> (%{output}) means {{\n  {means}\n}}\n");
        same(arch, &src, &ints, &[output]);
    }
}

#[test]
fn integers_are_rounded_once() {
    let src = "carbyne 2
%X:[1024].i32.GL
%Y:[1024].bf16.GL
Spec @k (%X) -> (%Y) means {
  %Y = cast(%X, bf16)
}
";
    // Half way between two numbers of bf16, and a little more: f32 rounds the little away.
    let x = Array {
        scalar: Scalar::I32,
        shape: vec![1024],
        values: vec![(1 << 30) + (1 << 22) + 1; 1024],
    };
    let options = Options { arrays: BTreeMap::from([("X".into(), x)]), ..Options::default() };
    for arch in ["sm_80", "sm_90a"] {
        let all = same(arch, src, &options, &["Y"]);
        assert!(all[0].values.iter().all(|v| *v == 0x4e81), "{:x?}", &all[0].values[..2]);
    }
}
