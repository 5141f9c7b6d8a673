//! Tests that programs that cannot be printed are refused, with a code, the text at fault and a
//! help.

use crate::support;
use carbyne_atoms::{Arch, AtomTable};
use carbyne_codegen::print_kernel;
use carbyne_ir::diag::Diagnostics;
use expect_test::{Expect, expect};

const HEAD: &str = "carbyne 2
%A:[4096].f16.GL
%B:[4096].f16.GL
#grid:[4].block
#cta:[128].thread
Spec @k <<<#grid, #cta>>> (%A) -> (%B) {
  @t = #cta.indices()
";

/// The errors of a kernel with this body, each as its text, code and message, and label.
fn check(body: &str, want: Expect) {
    let text = format!("{HEAD}{body}\n}}\n");
    let errors = support::print(&text, Arch::Sm80).expect_err("it must not print");
    want.assert_eq(&show(&errors, &text));
}

fn show(errors: &Diagnostics, text: &str) -> String {
    let one = |d: &carbyne_ir::diag::Diagnostic| {
        let place = text.get(d.span.start as usize..d.span.end as usize).unwrap_or("");
        assert!(!place.is_empty(), "{d:?} has no place");
        assert!(d.help.is_some(), "{d:?} shows no way out");
        let label = if d.label.is_empty() { String::new() } else { format!("\n    {}", d.label) };
        format!("{place}\n  {d}{label}\n")
    };
    errors.iter().map(one).collect()
}

#[test]
fn leaves_must_name_an_atom_that_exists() {
    check(
        "Move <<<#grid.scalar(), #cta.scalar()>>> (%A[@t]) -> (%B[@t])
        Move <<<#grid.scalar(), #cta.scalar()>>> (%A[@t]) -> (%B[@t]) atom=ldmatrx.x4.b16",
        expect![[r#"
            Move <<<#grid.scalar(), #cta.scalar()>>> (%A[@t]) -> (%B[@t])
              D0305: this Move has neither a body nor an atom
                left without a body
            ldmatrx.x4.b16
              V0225: there is no atom `ldmatrx.x4.b16`
                no architecture has an atom of this name
        "#]],
    );
}

#[test]
fn atoms_must_fit() {
    check(
        "Allocate %r:[8].f16.RF
        Allocate %f:[8].f32.RF
        Move <<<#grid.scalar(), #cta.scalar()>>> (%A[@t]) -> (%B[@t]) atom=mov.b16
        Move <<<#grid.scalar(), #cta.scalar()>>> (%A.tile([8])[@t]) -> (%r) atom=ld.global.b64
        Init <<<#grid.scalar(), #cta.scalar()>>> (1.0) -> (%f[0]) atom=init.f16
        Move <<<#grid.scalar(), #cta.scalar()>>> (%A[@t]) -> (%r[0]) atom=fma.f16",
        expect![[r#"
            Move <<<#grid.scalar(), #cta.scalar()>>> (%A[@t]) -> (%B[@t]) atom=mov.b16
              D0302: `mov.b16` does not implement this Move
                operand S must lie in RF, but lies in GL
            Move <<<#grid.scalar(), #cta.scalar()>>> (%A.tile([8])[@t]) -> (%r) atom=ld.global.b64
              D0302: `ld.global.b64` does not implement this Move
                operand S needs 4 values per thread, found 8
            Init <<<#grid.scalar(), #cta.scalar()>>> (1.0) -> (%f[0]) atom=init.f16
              D0302: `init.f16` does not implement this Init
                operand D must be f16, but is f32
            Move <<<#grid.scalar(), #cta.scalar()>>> (%A[@t]) -> (%r[0]) atom=fma.f16
              D0302: `fma.f16` does not implement this Move
                computes MatMul 1x1x1
        "#]],
    );
}

#[test]
fn vectors_must_be_aligned_neighbors() {
    check(
        "Allocate %r:[8].f16.RF
        Move <<<#grid.scalar(), #cta.scalar()>>> (%A.reshape([8,512]:[1,8])[_,@t])
            -> (%r) atom=ld.global.b128
        Move <<<#grid.scalar(), #cta.scalar()>>> (%A.reshape([8,512]:[512,1])[_,@t])
            -> (%r) atom=ld.global.b128
        Move <<<#grid.scalar(), #cta.scalar()>>> (%A.tile([2])[@t])
            -> (%r.reshape([2,4]:[1,2])[_,1]) atom=ld.global.b32
        Move <<<#grid.scalar(), #cta.scalar()>>> (%A.reshape([2,2048]:[1,1])[_,@t])
            -> (%r.tile([2])[1]) atom=ld.global.b32",
        expect![[r#"
            Move <<<#grid.scalar(), #cta.scalar()>>> (%A.reshape([8,512]:[512,1])[_,@t])
                        -> (%r) atom=ld.global.b128
              D0302: `ld.global.b128` does not implement this Move
                values of operand S must be runs of 8 consecutive elements, `8:1`, but are (8):(512)
            Move <<<#grid.scalar(), #cta.scalar()>>> (%A.reshape([2,2048]:[1,1])[_,@t])
                        -> (%r.tile([2])[1]) atom=ld.global.b32
              D0302: `ld.global.b32` does not implement this Move
                operand S must be aligned to 4 bytes, but is known to be aligned to 2 only
        "#]],
    );
}

#[test]
fn swizzles_must_keep_vectors_together() {
    check(
        "Allocate %s:[1024].f16.SH{swizzle=(3,3,3)}
        Allocate %r:[8].f16.RF
        Move <<<#grid.scalar(), #cta.scalar()>>> (%s.tile([8])[@t]) -> (%r) atom=ld.shared.b128",
        expect![[r#"
            Move <<<#grid.scalar(), #cta.scalar()>>> (%s.tile([8])[@t]) -> (%r) atom=ld.shared.b128
              D0302: `ld.shared.b128` does not implement this Move
                operand S must be aligned to 16 bytes, but is known to be aligned to 8 only
        "#]],
    );
}

#[test]
fn shared_memory_has_a_limit() {
    check(
        "Allocate %s:[65536].f16.SH
        Allocate %t:[65536].f16.SH
        Init <<<#grid.scalar(), #cta.scalar()>>> (0.0) -> (%t[@t]) atom=init.f16",
        expect![[r#"
            [65536].f16.SH
              X0004: the block needs 262144 bytes of shared memory, but sm_80 allows at most 166912
                `%s` takes 131072 bytes
        "#]],
    );
}

#[test]
fn open_layouts_and_unplaced_values_are_for_the_solver() {
    check(
        "Allocate %s:[8,8].f16.SH{?}
        Allocate %r:[16,8].f32.RF{?}
        Allocate %v:[16,8].f32",
        expect![[r#"
            [8,8].f16.SH{?}
              V0216: the layout of `%s` is still open
                this statement
            [16,8].f32.RF{?}
              V0216: the layout of `%r` is still open
                this statement
            [16,8].f32
              D0305: `%v` has no memory yet
                left without a body
        "#]],
    );
}

#[test]
fn a_kernel_must_be_configured() {
    let text = "carbyne 2\n%A:[8].f16.GL\n%B:[8].f16.GL\nMove @k (%A) -> (%B)\n";
    let errors = support::print(text, Arch::Sm80).unwrap_err();
    expect![[r#"
        Move @k (%A) -> (%B)
          D0305: the kernel Move is not configured
            left without a body
    "#]]
    .assert_eq(&show(&errors, text));
}

#[test]
fn names_of_builders_cannot_inject_code() {
    let text = format!(
        "{HEAD}Init <<<#grid.scalar(), #cta.scalar()>>> (0.0) -> (%B[@t]) atom=init.f16\n}}\n"
    );
    let mut program = support::resolve(&text);
    let evil = "x;} asm(\"trap;\"); /*\n#include \"/etc/passwd\"\n*/ {\\";
    for &id in &program.params.clone() {
        program.buffers[id].name = evil.to_owned();
    }
    for i in 0..program.tensors.len() {
        program.tensors[carbyne_ir::program::TensorId::from(i)].name = Some(evil.to_owned());
    }
    let kernel = program.kernels[0];
    program.specs[kernel].name = Some(evil.to_owned());
    let printed = print_kernel(&program, kernel, &AtomTable::new(Arch::Sm80), None).unwrap();
    let code: Vec<&str> =
        printed.source.lines().map(|l| l.split("//").next().unwrap_or("")).collect();
    let code = code.join("\n");
    for bad in ["asm(", "trap;", "/*", "passwd\"", "\\"] {
        assert!(!code.contains(bad), "{}", printed.source);
    }
    support::compile(&printed, Arch::Sm80);
}
