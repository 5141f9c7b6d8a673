//! Tests tensor types with an open layout (`?`): decomposition keeps everything that the type
//! states beside `?`, such as a swizzle, and replaces every `?`.

use crate::support::{decomposed, run, sm_80};
use carbyne_ir::diag::Code;

/// A copy by way of shared memory, whose type has these attributes.
fn through(attrs: &str) -> String {
    format!(
        "carbyne 2
%A:[64,64].f16.GL
%B:[(64,64):(1,64)].f16.GL
#grid:[1].block
#cta:[128].thread
Move @m <<<#grid, #cta>>> (%A) -> (%B) {{
  Allocate %s:[64,64].f16.SH{{{attrs}}}
  Allocate %r:[64,64].f16.RF{{?}}
  Move <<<#grid, #cta>>> (%A) -> (%s)
  Move <<<#grid, #cta>>> (%s) -> (%r)
  Move <<<#grid, #cta>>> (%r) -> (%B)
}}
"
    )
}

#[test]
fn a_swizzle_beside_an_open_layout_stays() {
    for swizzle in ["(3,4,3)", "(2,4,3)", "(1,4,6)"] {
        let src = through(&format!("?, swizzle={swizzle}"));
        let d = decomposed(&src, &sm_80()).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
        let line = d.text.lines().find(|l| l.contains("Allocate %s")).expect("the allocation");
        assert_eq!(line.matches("swizzle=").count(), 1, "{line}");
        assert!(line.contains(&format!("swizzle={swizzle}")) && !line.contains('?'), "{line}");
        run(&d.program, &sm_80()).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
    }
}

/// A swizzle that takes vectors apart leaves narrower accesses.
#[test]
fn a_swizzle_of_small_pieces_narrows_the_accesses() {
    let wide = decomposed(&through("?, swizzle=(3,4,3)"), &sm_80()).expect("decomposes").text;
    assert!(wide.contains("cp.async.cg.b128"), "{wide}");
    let d = decomposed(&through("?, swizzle=(3,2,5)"), &sm_80()).expect("decomposes");
    assert!(!d.text.contains("cp.async.cg.b128"), "{}", d.text);
    run(&d.program, &sm_80()).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
}

#[test]
fn a_swizzle_that_leaves_the_tensor_is_refused() {
    let found = decomposed(&through("?, swizzle=(3,11,3)"), &sm_80()).map(|d| d.text);
    let e = found.expect_err("it moves bytes within 16384, and has 8192").into_vec();
    assert!(e.iter().all(|d| d.code == Code::PinsConflict), "{e:?}");
}

#[test]
fn nothing_stays_open() {
    let src = through("?").replace(
        "  Allocate %r",
        "  Allocate %idle:[3].[24,40].f16.SH{?}\n  Allocate %own:[24,40].f32.RF{?}\n  Allocate %r",
    );
    let d = decomposed(&src, &sm_80()).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
    assert!(!d.text.contains('?'), "{}", d.text);
    assert!(d.program.buffers.iter().all(|(_, b)| !b.open));
    let lines: Vec<usize> = d.warnings.iter().map(|w| w.span.line_col(&src).0).collect();
    assert!(d.warnings.iter().all(|w| w.code == Code::Unused));
    assert_eq!(lines, [8, 9], "{:?}", d.warnings);
    run(&d.program, &sm_80()).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
}

/// Leaves of single threads access what the solver has laid out as it lies in the end.
#[test]
fn leaves_see_the_layouts_that_were_found() {
    let src = "carbyne 2
%A:[64,64].f16.GL
%B:[64,64].f16.GL
#grid:[1].block
#cta:[64].thread
Move @m <<<#grid, #cta>>> (%A) -> (%B) {
  @t = #cta.indices()
  Allocate %s:[64,64].f16.SH{?}
  Allocate %r:[8].f16.RF
  Move <<<#grid, #cta>>> (%A) -> (%s)
  for (k = 0; k < 8; k += 1) {
    Move <<<#grid, #cta.scalar()>>> (%s.tile([1,8])[@t, k][0, _]) -> (%r)
    Move <<<#grid, #cta.scalar()>>> (%r) -> (%B.tile([1,8])[@t, k][0, _])
  }
}
";
    let d = decomposed(src, &sm_80()).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
    assert!(d.text.contains("atom=ld.shared.b128"), "{}", d.text);
}
