//! Tests shared tensors that occupy the same place in shared memory (`reuses=`): the place is as
//! large as the largest of them.

use crate::support::{decomposed, run_with};
use carbyne_atoms::AtomTable;

/// A large tensor takes the place of a small one beside which another is live: the place is as
/// large as the larger.
#[test]
fn a_place_is_as_large_as_its_largest_tensor() {
    let src = "carbyne 2
%B:[64,64].f32.GL
%O8:[64,16].f32.GL
%O9:[64,32].f32.GL
%O16:[64,64].f32.GL
Spec @f <<<#grid:[1], #cta:[64]>>> (%B) -> (%O8, %O9, %O16) means {
  Move (%B.tile([64,16])[0, 1]) -> (%O8)
  Move (%B.tile([64,32])[0, 1]) -> (%O9)
  BinaryPointwise.add (%B, %B) -> (%O16)
} {
  Move (%B.tile([64,16])[0, 0]) -> (%s2:SH)
  Move (%B.tile([64,32])[0, 1]) -> (%s7:SH)
  Move (%s2) -> (%O8)
  Move (%s7) -> (%O9)
  Move (%B.tile([64,16])[0, 1]) -> (%t11:SH)
  Move (%B) -> (%s14:SH)
  Move (%B) -> (%s15:SH)
  BinaryPointwise.add (%s14, %s15) -> (%y)
  Move (%y) -> (%O16)
  Move (%t11) -> (%O8)
}
";
    for arch in ["sm_75", "sm_80", "sm_90a"] {
        let table = AtomTable::new(arch.parse().expect("an architecture"));
        let d = decomposed(src, &table).unwrap_or_else(|e| panic!("{e:?}"));
        assert!(arch == "sm_75" || d.text.contains("reuses="), "{}", d.text);
        run_with(&d.program, &table, &[]).unwrap_or_else(|e| panic!("{e:?}\n{}", d.text));
    }
}
