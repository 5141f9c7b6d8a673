//! Tests operations of a tensor and a number literal. For narrow types such as f16, some atoms
//! process several elements at once and take no literal, so another atom must be chosen.

use crate::support::{decomposed, run_drawn};
use carbyne_atoms::AtomTable;
use carbyne_codegen::print_kernel;

#[test]
fn what_is_decomposed_with_a_literal_prints_and_runs() {
    let mut decomposed_ones = 0;
    for arch in ["sm_75", "sm_80", "sm_90a"] {
        let table = AtomTable::new(arch.parse().expect("an architecture"));
        for scalar in ["f16", "bf16", "f32", "i32", "f64"] {
            for op in ["mul", "add", "sub", "max", "min", "div"] {
                for operands in ["%a, 2", "2, %a"] {
                    let src = format!(
                        "carbyne 2
%A:[64,64].{scalar}.GL
%D:[64,64].{scalar}.GL
#grid:[1].block
#cta:[128].thread
Spec @scaled <<<#grid, #cta>>> (%A) -> (%D) {{
  Allocate %a:[64,64].{scalar}.RF{{?}}
  Move <<<#grid, #cta>>> (%A) -> (%a)
  BinaryPointwise.{op} <<<#grid, #cta>>> ({operands}) -> (%a)
  Move <<<#grid, #cta>>> (%a) -> (%D)
}}
"
                    );
                    let case = format!("{arch}, {op}.{scalar} ({operands})");
                    // sm_75 has no arithmetic on bf16.
                    let Ok(d) = decomposed(&src, &table) else {
                        assert_eq!((arch, scalar), ("sm_75", "bf16"), "{case}");
                        continue;
                    };
                    run_drawn(&d.program, &table, &case)
                        .unwrap_or_else(|e| panic!("{case}: {e:?}\n{}", d.text));
                    print_kernel(&d.program, d.program.kernels[0], &table, None)
                        .unwrap_or_else(|e| panic!("{case}: {e:?}\n{}", d.text));
                    decomposed_ones += 1;
                }
            }
        }
    }
    assert_eq!(decomposed_ones, 3 * 5 * 6 * 2 - 12);
}
