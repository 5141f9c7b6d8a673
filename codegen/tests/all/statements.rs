//! Tests printed statements (control flow, guards, barriers, symbols): short kernels have the
//! expected C++ body beside them, and compile.

use crate::support;
use carbyne_atoms::Arch;
use expect_test::{Expect, expect};

const HEAD: &str = "carbyne 2
%A:[4096].f32.GL
%B:[4096].f32.GL
#grid:[4].block
#cta:[128].thread
Spec @k <<<#grid, #cta>>> (%A) -> (%B) {
";

/// Prints a kernel with this body, compares the text between its braces, and compiles it.
fn check(body: &str, want: Expect) {
    let text = format!("{HEAD}{body}\n}}\n");
    let kernel = support::kernel(&text, Arch::Sm80);
    support::compile(&kernel, Arch::Sm80);
    let (_, inside) = kernel.source.split_once(") {\n").unwrap();
    let inside = inside.strip_suffix("}\n").unwrap();
    let lines = inside.lines().map(|l| format!("{}\n", l.strip_prefix("  ").unwrap_or(l)));
    want.assert_eq(&lines.collect::<String>());
}

#[test]
fn contiguous_parts() {
    check(
        "#w:[4].[32].thread = #cta.tile([32])
        #a:[32].thread = #w[0]
        #b:[32].thread = #w[2]
        Init <<<#grid.scalar(), #a.scalar()>>> (0.0) -> (%B[0]) atom=init.f32
        Init <<<#grid.scalar(), #b.scalar()>>> (1.0) -> (%B[1]) atom=init.f32
        Init <<<#grid.scalar(), #cta[5]>>> (2.0) -> (%B[2]) atom=init.f32
        Spec <<<#grid[1], #cta.tile([64])[1]>>> (%A) -> (%B) {
          Spec <<<#grid[1], #w[3]>>> (%A) -> (%B) {
            Init <<<#grid[1], #w[3].scalar()>>> (3.0) -> (%B[3]) atom=init.f32
          }
        }",
        expect![[r#"
              if (threadIdx.x < 32) {
                B[0] = 0.0f;  // line 10
              }
              if (threadIdx.x >= 64 && threadIdx.x < 96) {
                B[1] = 1.0f;  // line 11
              }
              if (threadIdx.x == 5) {
                B[2] = 2.0f;  // line 12
              }
              if (blockIdx.x == 1 && threadIdx.x >= 64) {  // line 13: Spec (%A) -> (%B)
                if (threadIdx.x >= 96) {  // line 14: Spec (%A) -> (%B)
                  B[3] = 3.0f;  // line 15
                }
              }
        "#]],
    );
}

#[test]
fn scattered_parts_and_loops_over_parts() {
    check(
        "#quads = #cta.tile([(4,4):(1,32)])
        Init <<<#grid.scalar(), #quads[2].scalar()>>> (0.0) -> (%B[0]) atom=init.f32
        #w:[4].[32].thread = #cta.tile([32])
        for (i = 0; i < 4; i += 1) {
          Init <<<#grid.scalar(), #w[i].scalar()>>> (7.0) -> (%B[i]) atom=init.f32
        }",
        expect![[r#"
              if ((threadIdx.x / 4) % 8 == 2) {
                B[0] = 0.0f;  // line 8
              }
              for (int i = 0; i < 4; i += 1) {  // line 10
                if (threadIdx.x / 32 == i) {
                  B[i] = 7.0f;  // line 11
                }
              }
        "#]],
    );
}

#[test]
fn conditions() {
    check(
        "@b = #grid.indices()
        @t = #cta.indices()
        for (k = 0; k < 8; k += 2) unroll {
          if (@t < 100 && @t - k >= 3) {
            Init <<<#grid.scalar(), #cta.scalar()>>> (2.0)
              -> (%B[@b * 1024 + @t * 8 + k]) atom=init.f32
          } else {
            Init <<<#grid.scalar(), #cta.scalar()>>> (-1.5)
              -> (%B[@b * 1024 + @t * 8 + k]) atom=init.f32
          }
        }",
        expect![[r#"
              const int b = blockIdx.x;  // line 7
              const int t = threadIdx.x;  // line 8
              #pragma unroll
              for (int k = 0; k < 8; k += 2) {  // line 9
                if (t < 100 && t - k >= 3) {  // line 10
                  B[b * 1024 + t * 8 + k] = 2.0f;  // line 11
                } else {
                  B[b * 1024 + t * 8 + k] = -1.5f;  // line 14
                }
              }
        "#]],
    );
}

#[test]
fn barriers() {
    check(
        "#w:[4].[32].thread = #cta.tile([32])
        #half:[64].thread = #cta.tile([64])[1]
        barrier
        Spec <<<#grid, #half>>> (%A) -> (%B) {
          barrier(#half)
          barrier(#half)
        }
        Spec <<<#grid, #w[0]>>> (%A) -> (%B) {
          barrier(#w[0])
        }
        Spec <<<#grid, #cta.tile([8])[1]>>> (%A) -> (%B) {
          barrier(#cta.tile([8])[1])
        }",
        expect![[r#"
              __syncthreads();  // line 9
              if (threadIdx.x >= 64) {  // line 10: Spec (%A) -> (%B)
                asm volatile("bar.sync 1, 64;\n" ::: "memory");  // line 11
                asm volatile("bar.sync 1, 64;\n" ::: "memory");  // line 12
              }
              if (threadIdx.x < 32) {  // line 14: Spec (%A) -> (%B)
                __syncwarp();  // line 15
              }
              if (threadIdx.x >= 8 && threadIdx.x < 16) {  // line 17: Spec (%A) -> (%B)
                __syncwarp(0x0000ff00u);  // line 18
              }
        "#]],
    );
}

#[test]
fn names_stay_apart() {
    check(
        "@tid = #cta.indices()
        Allocate %float:[4].f32.RF
        Allocate %smem:[4].f32.RF
        Spec <<<#grid, #cta>>> (%A) -> (%float) {
          Allocate %A_1:[4].f32.RF
          Move <<<#grid.scalar(), #cta.scalar()>>> (%A[@tid]) -> (%A_1[1]) atom=ld.global.b32
          Move <<<#grid.scalar(), #cta.scalar()>>> (%A_1[1]) -> (%float[1]) atom=mov.b32
        }
        Spec <<<#grid, #cta>>> (%A) -> (%smem) {
          Allocate %A_1:[4].f32.RF
          Move <<<#grid.scalar(), #cta.scalar()>>> (%A[@tid]) -> (%A_1[2]) atom=ld.global.b32
          Move <<<#grid.scalar(), #cta.scalar()>>> (%A_1[2]) -> (%smem[2]) atom=mov.b32
        }
        Move <<<#grid.scalar(), #cta.scalar()>>> (%float[1]) -> (%B[@tid]) atom=st.global.b32
        Move <<<#grid.scalar(), #cta.scalar()>>> (%smem[2]) -> (%B[@tid]) atom=st.global.b32",
        expect![[r#"
              const int tid = threadIdx.x;  // line 7
              alignas(16) float float_1[4];  // line 8
              alignas(16) float smem_1[4];  // line 9
              {  // line 10: Spec (%A) -> (%float)
                alignas(16) float A_1[4];  // line 11
                A_1[1] = A[tid];  // line 12
                float_1[1] = A_1[1];  // line 13
              }
              {  // line 15: Spec (%A) -> (%smem)
                alignas(16) float A_1[4];  // line 16
                A_1[2] = A[tid];  // line 17
                smem_1[2] = A_1[2];  // line 18
              }
              B[tid] = float_1[1];  // line 20
              B[tid] = smem_1[2];  // line 21
        "#]],
    );
}

#[test]
fn symbols_are_parameters_and_large_indices_are_wide() {
    let text = "carbyne 2
let N = 4096
sym K{min=64, max=1048576, div=4}
%A:[N,K].f32.GL
%B:[N].f32.GL
#grid:[N / 128].block
#cta:[128].thread
Spec @rows <<<#grid, #cta>>> (%A) -> (%B) {
  @b = #grid.indices()
  @t = #cta.indices()
  %row = %A.tile([128,_])[@b,0][@t,_]
  for (k = 0; k < 64; k += 1) {
    Allocate %r:[1].f32.RF
    Move <<<#grid.scalar(), #cta.scalar()>>> (%row[k]) -> (%r) atom=ld.global.b32
    Move <<<#grid.scalar(), #cta.scalar()>>> (%r)
      -> (%B.tile([128])[@b].tile([1])[@t]) atom=st.global.b32
  }
}
";
    let kernel = support::kernel(text, Arch::Sm80);
    support::compile(&kernel, Arch::Sm80);
    let (_, inside) = kernel.source.split_once("__launch_bounds__(128)\n").unwrap();
    expect![[r#"
        rows(const float* __restrict__ A, float* __restrict__ B, const int K) {
          const int b = blockIdx.x;  // line 9
          const int t = threadIdx.x;  // line 10
          for (int k = 0; k < 64; k += 1) {  // line 12
            float r[1];  // line 13
            r[0] = A[(long long)(K * b) * 128 + K * t + k];  // line 14
            B[b * 128 + t] = r[0];  // line 15
          }
        }
    "#]]
    .assert_eq(inside);
}

#[test]
fn shared_buffers_follow_each_other_past_what_is_pinned() {
    let text = format!(
        "{HEAD}
  Allocate %a:[100].f16.SH
  Allocate %b:[256].f16.SH{{swizzle=(3,4,3)}}
  Allocate %c:[64].f32.SH{{at=256}}
  Allocate %d:[64].f32.SH{{reuses=%b}}
  Allocate %e:[3].f32.SH{{align=64}}
  Init <<<#grid.scalar(), #cta.scalar()>>> (0.0) -> (%a[0]) atom=init.f16
  Init <<<#grid.scalar(), #cta.scalar()>>> (0.0) -> (%b[64]) atom=init.f16
  Init <<<#grid.scalar(), #cta.scalar()>>> (0.0) -> (%c[0]) atom=init.f32
  Init <<<#grid.scalar(), #cta.scalar()>>> (0.0) -> (%d[0]) atom=init.f32
  Init <<<#grid.scalar(), #cta.scalar()>>> (0.0) -> (%e[0]) atom=init.f32
}}
"
    );
    let kernel = support::kernel(&text, Arch::Sm80);
    support::compile(&kernel, Arch::Sm80);
    let lines = kernel.source.lines().filter(|l| l.contains(" = "));
    let shown: String = lines.map(|l| format!("{}\n", l.trim())).collect();
    expect![[r#"
        __half* a = reinterpret_cast<__half*>(smem);  // line 8
        __half* b = reinterpret_cast<__half*>(smem + 1024);  // line 9
        float* c = reinterpret_cast<float*>(smem + 256);  // line 10
        float* d = reinterpret_cast<float*>(smem + 1024);  // line 11
        float* e = reinterpret_cast<float*>(smem + 1536);  // line 12
        a[0] = __float2half(0.0f);  // line 13
        b[72] = __float2half(0.0f);  // line 14
        c[0] = 0.0f;  // line 15
        d[0] = 0.0f;  // line 16
        e[0] = 0.0f;  // line 17
        1548 bytes
    "#]]
    .assert_eq(&format!("{shown}{} bytes\n", kernel.smem_bytes));
}

#[test]
fn groups_that_wait_each_for_itself() {
    check(
        "#w = #cta.tile([32])
        @w = #w.indices()
        #oct = #cta.tile([8])
        @o = #oct.indices()
        #two = #cta.tile([64])
        @g = #two.indices()
        barrier(#w[@w])
        barrier(#oct[@o])
        barrier(#two[1 - (1 - @g)])
        if (@g == 1) {
          barrier(#two[1])
          barrier(#two[@g])
        }",
        expect![[r#"
            const int o = threadIdx.x / 8;  // line 10
            const int g = threadIdx.x / 64;  // line 12
            __syncwarp();  // line 13
            __syncwarp(0x000000ffu << (o % 4 * 8));  // line 14
            // line 15
            asm volatile(
                "bar.sync %0, 64;\n"
                :
                : "r"(g + 1)
                : "memory");
            if (g == 1) {  // line 16
              asm volatile("bar.sync 2, 64;\n" ::: "memory");  // line 17
              // line 18
              asm volatile(
                  "bar.sync %0, 64;\n"
                  :
                  : "r"(g + 1)
                  : "memory");
            }
        "#]],
    );
}

/// Among the vectors of a row that begins anywhere, only the first and the last may reach over the
/// ends.
#[test]
fn conditions_are_those_of_iterations_in_which_they_may_not_hold() {
    let row = |t: &str| {
        format!(
            "%{t}.tile([1,_])[@i, 0].pad([0,@i * 1003 % 8]).tile([1,1024])[0, 0]\
             .tv((32,(8,4)):(8,(1,256)) over #cta)"
        )
    };
    let text = format!(
        "carbyne 2
%X:[64,1003].f16.GL
%Y:[64,1003].f16.GL

#grid:[64].block
#cta:[32].thread
Move @k <<<#grid, #cta>>> (%X) -> (%Y) {{
  @i = #grid.indices()
  Allocate %x:[1,1024].f16.RF{{tv=(32,(8,4)):(8,(1,256)) over #cta}}
  %s = {}
  %m = %x.mine.reshape([8,4]:[1,8])
  for (v = 0; v < 4; v += 1) unroll {{
    Move <<<#cta.scalar()>>> (%s[_, v]) -> (%m[_, v]) atom=ld.global.b128
  }}
  %d = {}
  for (v = 0; v < 4; v += 1) unroll {{
    Move <<<#cta.scalar()>>> (%m[_, v]) -> (%d[_, v]) atom=st.global.b128
  }}
}}
",
        row("X"),
        row("Y"),
    );
    let source = support::kernel(&text, Arch::Sm80).source;
    let conditions: Vec<&str> =
        source.lines().filter(|l| l.contains("||")).map(str::trim).collect();
    assert_eq!(conditions.len(), 2, "{source}");
    for condition in conditions {
        assert!(condition.contains("(v >= 1 || "), "{condition}");
        assert!(condition.contains("(v < 3 || "), "{condition}");
    }
}

/// Registers that hold several coordinates one after another imply nothing about any of them.
#[test]
fn coordinates_that_others_follow_are_compared() {
    let text = |at: &str| {
        format!(
            "carbyne 2
%Y:[8].i32.GL

#grid:[1].block
#cta:[1].thread
Spec @k <<<#grid, #cta>>> () -> (%Y) {{
  Allocate %r:[8].i32.RF
  Allocate %t:[8].bool.RF
  Allocate %z:[8].i32.RF
  @n = #cta.indices()
  for (i = 0; i < 8; i += 1) unroll {{
    Move <<<#cta.scalar()>>> (%Y.iota(0)[i]) -> (%r[{at}]) atom=index.i32
    BinaryPointwise.ge <<<#cta.scalar()>>> (%r[{at}], 5) -> (%t[i]) atom=setp.ge.s32
    Init <<<#cta.scalar()>>> (1) -> (%z[i]) atom=init.i32
    Select <<<#cta.scalar()>>> (%t[i], %z[i], %r[{at}]) -> (%z[i]) atom=selp.s32
    Move <<<#cta.scalar()>>> (%z[i]) -> (%Y[i]) atom=st.global.b32
  }}
}}
"
        )
    };
    let known = support::kernel(&text("i"), Arch::Sm80).source;
    assert!(known.contains("t[i] = i >= 5 || r[i] >= 5;"), "{known}");
    for at in ["i % 2", "(i * @n) % 8"] {
        let unknown = support::kernel(&text(at), Arch::Sm80).source;
        assert!(!unknown.contains("||") && !unknown.contains("true"), "{unknown}");
    }
}

/// A loop with further conditions may end early, so that it does not leave the stage of the next
/// row.
#[test]
fn stages_of_loops_that_end_early() {
    check(
        "Allocate %x:[1].f32.RF
        for (i = 0; i < 4; i += 1) {
          for (k = 0; k < 4 && k < i + 1; k += 1) {
            Move <<<#grid.scalar(), #cta.scalar()>>>
                (%A[(i * 4 + k) % 3]) -> (%x[0]) atom=ld.global.b32
            Move <<<#grid.scalar(), #cta.scalar()>>> (%x[0]) -> (%B[k]) atom=st.global.b32
          }
        }",
        expect![[r#"
            float x[1];  // line 7
            for (int i = 0; i < 4; i += 1) {  // line 8
              int stage = i % 3;
              for (int k = 0; k < 4 && k < i + 1; k += 1) {  // line 9
                x[0] = A[stage];  // line 10
                B[k] = x[0];  // line 12
                stage += 1;
                if (stage == 3) {
                  stage = 0;
                }
              }
            }
        "#]],
    );
}
