//! Tests kernels without a body: pins are kept, an output may overwrite an input, and the chosen
//! parameters need no more registers than a block has. Other tests check long rows, conversions of
//! integers, and kernels that are split.

use crate::support::{MatMul, decomposed, run, sm_80};
use carbyne_atoms::{AtomTable, limits};
use carbyne_decompose::{check_named, checked};
use carbyne_ir::program::Program;
use carbyne_ir::scalar::Scalar;
use carbyne_ir::{testing, text};
use carbyne_simulate::{Array, Options, simulate};

/// The atoms of all leaves of a kind.
fn atoms(p: &Program, kind: &str) -> Vec<String> {
    let all = p.specs.iter().filter(|(_, s)| s.body.is_none() && s.kind.to_string() == kind);
    let mut names: Vec<String> = all.filter_map(|(_, s)| s.atom.clone()).collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn a_pinned_instruction_is_the_one_that_is_taken() {
    for atom in ["mma.m16n8k16.f32.f16", "mma.m16n8k8.f32.f16"] {
        let src = MatMul { pins: format!("atom={atom}"), ..MatMul::default() }.text();
        let d = decomposed(&src, &sm_80()).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
        assert_eq!(atoms(&d.program, "MatMul"), [atom], "{}", d.text);
        run(&d.program, &sm_80()).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
    }
    for (atom, to) in [
        ("ld.global.b32", "[64,64].f16.GL"),
        ("st.global.b64", "[64,64].f16.GL"),
        ("st.shared.b128", "[(64,64):(1,64)].f16.GL"),
    ] {
        let src =
            format!("carbyne 2\n%A:[64,64].f16.GL\n%B:{to}\nMove @m (%A) -> (%B) atom={atom}\n");
        let d = decomposed(&src, &sm_80()).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
        let all = atoms(&d.program, "Move");
        let (kind, _) = atom.rsplit_once('.').expect("a width");
        let same: Vec<&String> = all.iter().filter(|a| a.starts_with(kind)).collect();
        assert_eq!(same, [atom], "{}", d.text);
        run(&d.program, &sm_80()).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
    }
}

#[test]
fn reading_where_one_writes_is_right_where_it_is_accepted() {
    let half = "reshape([(2,32),64]:[(1,2),64]).reshape([2,32,64]:[1,2,64])";
    for (from, to) in [
        ("%A".to_owned(), "%A".to_owned()),
        ("%A.tile([32,64])[0, 0]".to_owned(), "%A.tile([32,64])[1, 0]".to_owned()),
        (format!("%A.{half}[0, _, _]"), format!("%A.{half}[1, _, _]")),
    ] {
        let src = format!("carbyne 2\n%A:[64,64].f32.GL\nMove @m ({from}) -> ({to})\n");
        let d = decomposed(&src, &sm_80()).unwrap_or_else(|e| panic!("{src}{:?}", e.into_vec()));
        run(&d.program, &sm_80()).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
    }
}

#[test]
fn no_choice_needs_more_registers_than_a_block_has() {
    let mut kernels = 0;
    for arch in ["sm_75", "sm_80", "sm_90a"] {
        let table = AtomTable::new(arch.parse().expect("an architecture"));
        let limits = limits(table.arch);
        for (factors, out, acc) in
            [("f16", "f16", "f32"), ("i8", "i32", "i32"), ("f64", "f64", "f64")]
        {
            let orders = [[false; 3], [false, true, false]];
            for &transposed in testing::one_of(&format!("{arch} {factors}"), &orders) {
                let name = format!("{arch} {factors} {transposed:?}");
                let sizes = [(4096, 4096, 4096), (512, 512, 2048), (128, 8192, 64)];
                for &size in testing::one_of(&name, &sizes) {
                    let case = MatMul { size, factors, out, acc, transposed, ..MatMul::default() };
                    let Ok(d) = decomposed(&case.text(), &table) else { continue };
                    let kernel = d.program.kernels[0];
                    let exec = d.program.specs[kernel].exec.expect("decomposed");
                    let threads = d.program.threads[exec.threads].concat().to_fixed();
                    let threads = threads.expect("known").size();
                    let most = limits.regs_per_thread.min(limits.regs_per_sm / threads);
                    // Registers that its tensors take at once.
                    let own = d.leaves.first().expect("a choice").estimate.registers;
                    assert!(own < most, "{arch}: {own} of {most}\n{}", d.text);
                    kernels += 1;
                }
            }
        }
    }
    assert!(kernels > testing::count(6, 40), "{kernels}");
}

/// An instruction and groups of threads that are both named, at kernel level and in a body with a
/// pipeline.
#[test]
fn an_instruction_and_groups_of_threads() {
    let arguments = "%A:[256,256].f16.GL\n%B:[256,256].f16.GL\n%C:[256,256].f16.GL\n";
    for (atom, warps) in [
        ("mma.m16n8k8.f32.f16", ""),
        ("mma.m16n8k16.f32.f16", " warps=(4,1)"),
        ("mma.m16n8k8.f32.f16", " warps=(2,2)"),
    ] {
        let pins = format!("atom={atom}{warps}");
        let kernel = format!("MatMul.set @gemm (%A, %B) -> (%C) acc=f32 {pins}\n");
        let body = format!(
            "MatMul.set @gemm <<<#grid:[@i < 2, @j < 2], #cta:[128]>>> (%A, %B) -> (%C) acc=f32 {{
  %c:[128,128].f32 = 0
  for (k = 0; k < 8; k += 1) stages=3 {{
    Move (%A.tile([128,32])[@i, k]) -> (%a:SH)
    Move (%B.tile([32,128])[k, @j]) -> (%b:SH)
    MatMul (%a, %b) -> (%c) {pins}
  }}
  %h = cast(%c, f16)
  Move (%h) -> (%C.tile([128,128])[@i, @j])
}}
"
        );

        for rest in [kernel, body] {
            let src = format!("carbyne 2\n{arguments}{rest}");
            let d = decomposed(&src, &sm_80()).unwrap_or_else(|e| panic!("{src}{e:?}"));
            let found = atoms(&d.program, "MatMul");
            assert!(found.iter().all(|a| a == atom), "{found:?}");
            run(&d.program, &sm_80()).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
            let module = text::parse(&src).expect("parses");
            let errors = check_named(&checked(&module, &src).expect("well formed"), Some(&sm_80()));
            assert!(errors.is_empty(), "{errors:?}");
        }
    }
}

#[test]
fn pinning_all_that_was_chosen_changes_nothing() {
    // Short modes, which a strategy may be laid over in more than one way.
    let table = sm_80();
    for (x, y, means) in [
        ("[2,256].f32", "[(2,256):(257,1)].bf16", "%Y = cast(exp2(%X) + %X, bf16)"),
        ("[2,64,32].f32", "[(2,64,32):(1,64,2)].f32", "%Y = max(%X * %X, 3) + %X"),
        ("[64,1024].f16", "[64,1024].f16", "%Y = %X / sum(%X, axis=1)"),
        ("[12,10,8].f32", "[8,12,10].f32", "%Y = move(%X.permute([2,0,1]))"),
    ] {
        let text = |by: &str| {
            format!(
                "carbyne 2\n%X:{x}.GL\n%Y:{y}.GL\n\
                 Spec @k (%X) -> (%Y){by} means {{\n  {means}\n}}\n"
            )
        };
        let free = decomposed(&text(""), &table).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
        let from = free.text.find(" by=").expect("what was chosen");
        let by = &free.text[from..=from + free.text[from..].find(']').expect("its parameters")];
        let pinned = decomposed(&text(by), &table).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
        assert_eq!(pinned.text, free.text);
    }
}

#[test]
fn what_registers_would_not_hold_of_long_rows_is_computed_again() {
    let table = AtomTable::new("sm_90a".parse().expect("an architecture"));
    let of = |n: i64, by: &str| {
        let src = format!(
            "carbyne 2
%X:[3,{n}].f16.GL
%w:[1,{n}].f16.GL
%Y:[3,{n}].f16.GL
Spec @norm (%X, %w) -> (%Y) {by} means {{
  %d = %X - sum(%X, axis=1) / {n}
  %Y = %d * rsqrt(sum(%d * %d, axis=1) / {n} + 1e-5) * %w
}}
"
        );
        let d = decomposed(&src, &table).unwrap_or_else(|e| panic!("{src}{:?}", e.into_vec()));
        run(&d.program, &table).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
        d.text.matches("UnaryPointwise.cast (%s").count()
    };
    // A value that is written before a Reduction and read only behind it is computed behind it.
    let src = "carbyne 2
%X:[3,33001].f16.GL
%Y:[3,33001].f16.GL
Spec @gated (%X) -> (%Y) by=@map_ahead[T=1024,R=1] means {
  %t = tanh(%X)
  %s = sum(%X, axis=1)
  %Y = %t * %s
}
";
    let d = decomposed(src, &table).unwrap_or_else(|e| panic!("{src}{:?}", e.into_vec()));
    run(&d.program, &table).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
    // Rows that begin anywhere, and at vectors.
    for n in [33001, 33008] {
        assert_eq!(of(n, "by=@map_ahead[T=1024,R=0]"), 1);
        assert_eq!(of(n, "by=@map_ahead[T=1024,R=1]"), 3);
    }
}

#[test]
fn integers_become_floats_in_one_rounding() {
    // By way of f32, which drops the 1, half way between two numbers of bf16 is rounded to the even
    // one.
    let value = (1i64 << 30) + (1 << 22) + 1;
    let (rounded, next): (f32, f32) = (1_082_130_432.0, 1.0);
    let bits = u64::from(rounded.to_bits() >> 16);
    let one = u64::from(next.to_bits() >> 16);
    let kernel = |computed: &str| {
        format!(
            "carbyne 2\n%X:[64].i32.GL\n%Y:[64].bf16.GL\n\
             Spec @k (%X) -> (%Y) means {{\n  {computed}\n}}\n"
        )
    };
    // As it is, and with something else computed of the float.
    for (computed, wanted) in [
        ("%Y = cast(%X, bf16)", bits),
        ("%f = cast(%X, bf16)\n  %Y = %f / %f", one),
        ("%Y = abs(cast(%X, bf16))", bits),
    ] {
        for arch in ["sm_75", "sm_80", "sm_90a"] {
            let table = AtomTable::new(arch.parse().expect("an architecture"));
            let found = decomposed(&kernel(computed), &table).expect("decomposes");
            let x = Array { scalar: Scalar::I32, shape: vec![64], values: vec![value as u64; 64] };
            let arrays = [("X".to_owned(), x)].into_iter().collect();
            let options = Options { arrays, ..Options::default() };
            let report = simulate(&found.program, &table, &options).expect("runs");
            let got = report.outputs.element("Y", &[7]);
            assert_eq!(got, Some(wanted), "{arch}: {computed}");
        }
    }
}

#[test]
fn an_unread_input_of_a_split_kernel_stays_an_input() {
    let sum = "%O:[32,64].f32.GL\nSpec @f (%X, %Y) -> (%O) means {\n  \
         %a = sum(%X, axis=1) + %X\n  %O = %a.transpose()\n}\n";
    let two = "%O:[4096,1].f32.GL\n%P:[1,2048].f32.GL\nSpec @f (%X, %Y) -> (%O, %P) means {\n  \
         %O = sum(%X, axis=1)\n  %P = sum(%X, axis=0)\n}\n";
    for (shape, kernel) in [("[64,32]", sum), ("[4096,2048]", two)] {
        let source = format!("carbyne 2\n%X:{shape}.f32.GL\n%Y:{shape}.f32.GL\n{kernel}");
        let found = decomposed(&source, &sm_80()).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
        let heads: Vec<&str> = found.text.lines().filter(|l| l.contains("by=@")).collect();
        assert!(heads.len() > 1, "{heads:?}");
        let passed = found.text.lines().filter(|l| l.contains("(%X, %Y)"));
        assert_eq!(passed.count(), 1, "{heads:?}");
    }
}

#[test]
fn a_result_in_place_is_the_only_one_of_its_kernel() {
    // A store before the other result has read the old value, no store at all, and blocks that
    // share an element.
    for (of, other, means) in [
        ("[4096]", "[4096]", "  %Y = move(%A)\n  %A = %B * 2\n"),
        ("[1,4096]", "[1,4096]", "  %n = %A + 1\n  %Y = %n * 2\n  %A = move(%n)\n"),
        ("[64,1]", "[64,64]", "  %A = %A + 1\n  %Y = %B * 2\n"),
    ] {
        let source = format!(
            "carbyne 2\n%A:{of}.f32.GL\n%B:{other}.f32.GL\n%Y:{other}.f32.GL\n\
             Spec @k (%A, %B) -> (%A, %Y) means {{\n{means}}}\n"
        );
        let Err(errors) = decomposed(&source, &sm_80()) else { panic!("accepted: {source}") };
        let found = errors.into_vec();
        assert!(found[0].message.contains("in place by a kernel with another result"), "{found:?}");
    }
}
