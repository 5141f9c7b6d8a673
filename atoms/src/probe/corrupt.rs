//! Makes wrong atoms from an atom: two strides of one thread-value layout are exchanged. Tests
//! and `carbyne atoms verify --corrupt` execute them, to show that the comparison of a probe's
//! results on a GPU with those in the simulator finds such a mistake.

use crate::atom::Atom;
use carbyne_ir::layout::Layout;

/// Copies of the atom in which two strides of one operand's thread-value layout are exchanged: one
/// for every operand and every pair of strides that changes the function. Empty for an atom of one
/// thread and value.
#[must_use]
pub fn corrupted(atom: &Atom) -> Vec<Atom> {
    let mut atoms = vec![];
    // A literal is equal for all values.
    let tensors = atom.operands.iter().enumerate().filter(|(_, o)| o.divisor.is_none());
    for (i, operand) in tensors {
        for tv in exchanged(&operand.tv) {
            let mut wrong = atom.clone();
            wrong.operands[i].tv = tv;
            atoms.push(wrong);
        }
    }
    atoms
}

fn exchanged(tv: &Layout) -> Vec<Layout> {
    let strides = tv.stride().flatten();
    let mut out = vec![];
    for i in 0..strides.len() {
        for j in 0..i {
            let mut new = strides.clone();
            new.swap(i, j);
            let mut next = new.into_iter();
            let stride = tv.stride().map(&mut |_| next.next().unwrap_or(0));
            let Ok(layout) = Layout::new(tv.shape().clone(), stride) else { continue };
            if (0..tv.size()).any(|e| layout.at(e) != tv.at(e)) {
                out.push(layout);
            }
        }
    }
    out
}
