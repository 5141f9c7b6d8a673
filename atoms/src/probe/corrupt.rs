//! Atoms that are wrong on purpose: the self-test of whoever checks atoms.

use crate::atom::Atom;
use carbyne_ir::layout::Layout;

/// The atom with two strides of one operand's thread-value layout exchanged, for every operand and
/// pair that make it another function; none for an atom of one thread and value.
#[must_use]
pub fn corrupted(atom: &Atom) -> Vec<Atom> {
    let mut atoms = vec![];
    // A literal is the same for every value.
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
