//! Tests certificates, the data that prove the solver's choices. The checker accepts the
//! certificates of five decomposed programs, among which each kind of relation occurs. It refuses
//! each certificate about two or more layouts after a change of one stride.

use crate::support::{MatMul, decomposed, sm_80};
use carbyne_decompose::certificate::Relation;
use carbyne_ir::layout::Layout;
use carbyne_ir::tuple::IntTuple;

/// A row-wise softmax without its maximum: every kind of relation but that of a MatMul.
const SOFTMAX: &str = "carbyne 2
%A:[256,64].f32.GL
%B:[256,64].f32.GL
#grid:[4].block
#cta:[128].thread
Spec @g <<<#grid, #cta>>> (%A) -> (%B) {
  @b = #grid.indices()
  Allocate %x:[64,64].f32.RF{?}
  Allocate %e:[64,64].f32.RF{?}
  Allocate %s:[64,1].f32.RF{?}
  Allocate %y:[64,64].f32.RF{?}
  Move <<<#grid, #cta>>> (%A.tile([64,64])[@b, 0]) -> (%x)
  UnaryPointwise.exp <<<#grid, #cta>>> (%x) -> (%e)
  Reduction.sum <<<#grid, #cta>>> (%e) -> (%s) axis=1
  BinaryPointwise.div <<<#grid, #cta>>> (%e, %s) -> (%y)
  Move <<<#grid, #cta>>> (%y) -> (%B.tile([64,64])[@b, 0])
}
";

/// A MatMul whose K is spread over warps.
const SPLIT_K: &str = include_str!("../../../examples/tile/gemm_split_k.cby");

/// Registers exchanged between lanes.
const EXCHANGE: &str = "carbyne 2
%A:[256].f32.GL
%B:[256].f32.GL
#grid:[1].block
#cta:[32].thread
Move @g <<<#grid, #cta>>> (%A) -> (%B) {
  Allocate %x:[256].f32.RF{tv=(32,8):(1,32) over #cta}
  Allocate %y:[256].f32.RF{tv=((8,4),(4,2)):((1,32),(8,128)) over #cta}
  Move <<<#grid, #cta>>> (%A) -> (%x)
  Move <<<#grid, #cta>>> (%x) -> (%y)
  Move <<<#grid, #cta>>> (%y) -> (%B)
}
";

/// The second half of each row, turned.
const PART: &str = "carbyne 2
%A:[16,32].f32.GL
%B:[16,16].f32.GL
#grid:[1].block
#cta:[32].thread
Spec @part <<<#grid, #cta>>> (%A) -> (%B) means {
  Move (%A[_, 16..32].transpose()) -> (%B)
} {
  Allocate %x:[16,32].f32.RF{tv=((16,2),(8,2)):((1,16),(32,256)) over #cta}
  Allocate %y:[16,16].f32.RF{?}
  Move (%A) -> (%x)
  Move (%x[_, 16..32].transpose()) -> (%y)
  Move (%y) -> (%B)
}
";

#[test]
fn every_relation_has_a_certificate_that_checks() {
    let mut found = [0; 6];
    for src in [&MatMul::default().text(), SOFTMAX, SPLIT_K, EXCHANGE, PART] {
        let d = decomposed(src, &sm_80()).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
        for c in &d.certificates {
            c.check().expect("holds");
            found[match c.relation {
                Relation::Copy { .. } => 0,
                Relation::Gemm { .. } => 1,
                Relation::Pointwise { .. } => 2,
                Relation::Reduction { .. } => 3,
                Relation::Exchange { .. } => 4,
                Relation::Part { .. } => 5,
            }] += 1;
        }
    }
    // That no operation is without one is checked where they are made.
    assert!(found.iter().all(|n| *n > 0), "{found:?}");
}

/// The layout with one stride changed, for every leaf whose stride counts.
fn changed(l: &Layout) -> Vec<Layout> {
    let leaves = l.leaves().to_vec();
    (0..leaves.len())
        .filter(|i| leaves[*i].0 > 1)
        .map(|i| {
            let mut n = 0;
            let stride: IntTuple<i64> = l.stride().map(&mut |s| {
                n += 1;
                s + i64::from(n == i + 1)
            });
            Layout::new(l.shape(), stride).expect("a layout")
        })
        .collect()
}

fn layouts(r: &mut Relation) -> Vec<&mut Layout> {
    match r {
        Relation::Copy { p, q, f, g } => vec![p, q, f, g],
        Relation::Gemm { row, tensors, maps, .. } => {
            row.iter_mut().chain(tensors).chain(maps).collect()
        }
        Relation::Pointwise { layouts, .. } => layouts.iter_mut().collect(),
        Relation::Reduction { layouts, values, .. } => layouts.iter_mut().chain(values).collect(),
        Relation::Exchange { f, g, map, .. } => vec![f, g, map],
        Relation::Part { f, g, view, registers, .. } => vec![f, g, view, registers],
    }
}

#[test]
fn every_changed_stride_fails_the_check() {
    let mut n = 0;
    for src in [&MatMul::default().text(), SOFTMAX, SPLIT_K, EXCHANGE, PART] {
        let d = decomposed(src, &sm_80()).unwrap_or_else(|e| panic!("{:?}", e.into_vec()));
        for c in &d.certificates {
            let mut copy = c.clone();
            let originals: Vec<Layout> =
                layouts(&mut copy.relation).into_iter().map(|l| l.clone()).collect();
            // An Init has one operand, and any spread of it is right.
            if originals.len() < 2 {
                continue;
            }
            for (i, original) in originals.iter().enumerate() {
                for wrong in changed(original) {
                    let mut copy = c.clone();
                    *layouts(&mut copy.relation)[i] = wrong.clone();
                    assert!(copy.check().is_err(), "{}: {i}: {original} to {wrong}", c.atom);
                    n += 1;
                }
            }
        }
    }
    assert!(n > 100, "{n}");
}
