//! Compares the results of a device with the simulator's results, element by element, after both
//! have executed the probe of an atom. If the atom leaves the rounding open, the exact results
//! replace those of the simulator, and the device may differ from them by an allowed error. It
//! counts the wrong elements and describes the first few: block, thread, value, coordinates and,
//! for an elementwise function, operands.

use super::{Arrays, Case, Data, is_exact, keeps_bits, only_read};
use crate::denote::{Computed, Meaning, tolerance};
use crate::exec::value_text;
use crate::num::{decode, encode};
use crate::packed::unpacked;
use carbyne_atoms::probe::operand::{Element, ProbeOperand};
use carbyne_atoms::probe::{Probe, literal_of};
use carbyne_atoms::{Atom, AtomOp, OperandAccess};
use carbyne_ir::ast::SpecKind;
use carbyne_ir::scalar::Scalar;
use std::collections::BTreeMap;
use std::fmt;

/// The comparison of a device's results with the simulator's.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compared {
    /// The number of compared elements.
    pub elements: u64,
    /// The number of elements for whose operands the atom states no error.
    pub skipped: u64,
    /// The number of wrong elements.
    pub n_wrong: u64,
    /// The first few wrong elements, in the order of operands and of memory.
    pub first: Vec<Difference>,
    /// The largest ratio of the difference from the exact result to the allowed difference, if a
    /// difference is allowed.
    pub max_ratio: f64,
    /// The element with that ratio.
    pub worst: Option<Difference>,
}

/// The largest number of stored differences.
const MAX_KEPT: usize = 8;

/// A wrong element.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The operand.
    pub operand: &'static str,
    /// The position: block, thread, value, coordinates.
    pub element: Element,
    /// The result of the device.
    pub found: String,
    /// The result of the simulator; if a difference is allowed, the exact result.
    pub wanted: String,
    /// For an elementwise function, the operands of the element.
    pub from: Vec<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { operand, element, found, wanted, from } = self;
        write!(f, "{operand}: {element}: found {found}, wanted {wanted}")?;
        if from.is_empty() { Ok(()) } else { write!(f, ", from {}", from.join(", ")) }
    }
}

impl Compared {
    /// Adds the comparison of another execution.
    pub fn merge(&mut self, other: Compared) {
        self.elements += other.elements;
        self.skipped += other.skipped;
        self.n_wrong += other.n_wrong;
        if other.max_ratio > self.max_ratio {
            (self.max_ratio, self.worst) = (other.max_ratio, other.worst);
        }
        self.first.extend(other.first);
        self.first.truncate(MAX_KEPT);
    }
}

/// The scalars in bytes of a device's memory.
#[must_use]
pub fn unpack(bytes: &[u8], scalar: Scalar, n: usize) -> Vec<u64> {
    (0..n as i64).map_while(|i| unpacked(bytes, scalar, i)).collect()
}

/// Compares the results of a device with the expected ones, element by element in the order of
/// memory.
#[must_use]
pub fn compare(
    atom: &Atom,
    probe: &Probe,
    case: Case,
    arrays: &Arrays,
    expected: &BTreeMap<String, Vec<Option<u64>>>,
    found: &BTreeMap<String, Vec<u64>>,
) -> Compared {
    let mut compared = Compared::default();
    let none = vec![];
    for o in &probe.operands {
        let Some(name) = &o.output else { continue };
        let (expected, found) = (expected.get(name).unwrap_or(&none), found.get(name));
        let exact = is_exact(atom, case) || o.access == OperandAccess::Read;
        let meaning = if exact { None } else { Reference::new(atom, probe, o, arrays) };
        for (i, (element, want)) in o.elements().into_iter().zip(expected).enumerate() {
            let raw = found.and_then(|f| f.get(i)).copied();
            let judged = match &meaning {
                Some(reference) => reference.judge(atom, o.scalar, case, &element, raw),
                None => bits(atom, o.scalar, *want, raw),
            };
            let (ratio, wanted) = match judged {
                Judged::Right => (0.0, None),
                Judged::Unstated => {
                    compared.skipped += 1;
                    continue;
                }
                Judged::Within(wanted) => (wanted.ratio(), Some(wanted)),
                Judged::Wrong(wanted) => {
                    compared.n_wrong += 1;
                    (wanted.ratio(), Some(wanted))
                }
            };
            let is_wrong = matches!(judged, Judged::Wrong(_));
            let kept = is_wrong && compared.first.len() < MAX_KEPT;
            let is_worst = ratio > compared.max_ratio;
            if let Some(wanted) = wanted.filter(|_| kept || is_worst) {
                let text = |r| format!("{} ({r:#x})", value_text(o.scalar, r));
                let difference = Difference {
                    operand: o.name,
                    found: raw.map_or("nothing".to_owned(), text),
                    wanted: wanted.text(o.scalar),
                    from: operands_of(atom, probe, arrays, &element),
                    element,
                };
                if is_worst {
                    (compared.max_ratio, compared.worst) = (ratio, Some(difference.clone()));
                }
                if kept {
                    compared.first.push(difference);
                }
            }
            compared.elements += 1;
        }
    }
    compared
}

/// The comparison of an element.
#[derive(Copy, Clone)]
enum Judged {
    Right,
    /// The result differs from the exact one by an allowed amount.
    Within(Wanted),
    Wrong(Wanted),
    /// The atom states no error.
    Unstated,
}

/// The expected value of an element.
#[derive(Copy, Clone)]
enum Wanted {
    /// These bits; none if the element must not be written.
    Bits(Option<u64>),
    /// This number, with the allowed difference, and the actual difference if it is a number.
    Near { exact: f64, allowed: f64, error: f64 },
}

impl Wanted {
    /// The ratio of the difference to the allowed difference.
    fn ratio(self) -> f64 {
        match self {
            Wanted::Near { allowed, error, .. } if allowed > 0.0 && error.is_finite() => {
                error / allowed
            }
            _ => 0.0,
        }
    }

    fn text(self, scalar: Scalar) -> String {
        match self {
            Wanted::Bits(None) => "nothing written".to_owned(),
            Wanted::Bits(Some(raw)) => format!("{} ({raw:#x})", value_text(scalar, raw)),
            Wanted::Near { exact, allowed, .. } => format!("{exact:e} ± {allowed:.2e}"),
        }
    }
}

/// Compares bit by bit.
fn bits(atom: &Atom, scalar: Scalar, want: Option<u64>, found: Option<u64>) -> Judged {
    let poison = u64::MAX >> (64 - scalar.bits());
    let wanted = want.unwrap_or(poison);
    let nans = |raw: u64| scalar.is_float() && decode(scalar, raw).is_nan();
    // Only the upper bits of a tf32 count; the other bits of a result are unspecified.
    let counted = |raw: u64| match scalar {
        Scalar::Tf32 if !keeps_bits(atom) => raw & !0x1fff,
        _ => raw,
    };
    let same = |raw: u64| counted(raw) == counted(wanted);
    let alike = |raw: u64| same(raw) || (!keeps_bits(atom) && nans(raw) && nans(wanted));
    match found {
        Some(raw) if alike(raw) => Judged::Right,
        _ => Judged::Wrong(Wanted::Bits(want)),
    }
}

/// The exact results of an operand, block by block.
struct Reference {
    meaning: Meaning,
    blocks: Vec<Computed>,
    /// The last read operand, block by block.
    last: Vec<Vec<f64>>,
}

impl Reference {
    fn new(atom: &Atom, probe: &Probe, out: &ProbeOperand, arrays: &Arrays) -> Option<Self> {
        let blocks = usize::try_from(probe.blocks).ok()?;
        let mut made = only_read(probe);
        let (mut modes, mut inputs): (Vec<&[i64]>, Vec<Vec<Vec<f64>>>) = (vec![], vec![]);
        for o in atom.operands.iter().filter(|o| o.access == OperandAccess::Read) {
            if let Some(n) = literal_of(atom, o) {
                inputs.push(vec![vec![n]; blocks]);
                continue;
            }
            let o = made.next()?;
            modes.push(&o.tile);
            inputs.push(numbers(probe, o, arrays)?);
        }
        let kind = if probe.set { SpecKind::MatMulSet } else { atom.op.spec_kind()? };
        let meaning = Meaning::new(kind, &[], out.scalar, &modes, &[&out.tile]).ok()?;
        let before = numbers(probe, out, arrays).unwrap_or_default();
        let n_out = usize::try_from(out.tile_size()).ok()?;
        let of_block = |b: usize| {
            let inputs: Vec<Vec<f64>> = inputs.iter().map(|i| i[b].clone()).collect();
            meaning.compute(&inputs, before.get(b).map_or(&[], |v| v), n_out)
        };
        let blocks = (0..blocks).map(of_block).collect();
        let last = inputs.last().cloned().unwrap_or_default();
        Some(Reference { meaning, blocks, last })
    }

    fn judge(
        &self,
        atom: &Atom,
        scalar: Scalar,
        case: Case,
        element: &Element,
        found: Option<u64>,
    ) -> Judged {
        let (block, index) = (element.block as usize, element.index as usize);
        let computed = &self.blocks[block];
        let (exact, magnitude) = (computed.values[index], computed.magnitudes[index]);
        let bound = atom.error_bound();
        if let Some(bound) = bound
            && let Some(x) = self.last.get(block).and_then(|l| l.get(index))
            && !bound.covers(*x)
        {
            return Judged::Unstated;
        }
        let ints = case.data == Data::SmallIntegers && computed.integers;
        let stated = bound.as_slice();
        let allowed = tolerance(&self.meaning, scalar, exact, magnitude, ints, stated);
        let near = |error: f64| Wanted::Near { exact, allowed, error };
        let either =
            |right: bool| if right { Judged::Right } else { Judged::Wrong(near(f64::NAN)) };
        let Some(raw) = found else { return either(false) };
        let is = decode(scalar, raw);
        if exact.is_nan() || is.is_nan() {
            return either(exact.is_nan() && is.is_nan());
        }
        if is.is_infinite() || exact.is_infinite() {
            // An overflow is allowed if an allowed result overflows the type.
            let rounded = |v: f64| decode(scalar, encode(scalar, v));
            let overflows = is.is_infinite() && rounded(exact + allowed.copysign(exact)) == is;
            return either(overflows || (exact.is_infinite() && rounded(exact) == is));
        }
        match (is - exact).abs() {
            0.0 => Judged::Right,
            error if error <= allowed => Judged::Within(near(error)),
            error => Judged::Wrong(near(error)),
        }
    }
}

/// The numbers of an operand by element of its tile, block by block.
fn numbers(probe: &Probe, o: &ProbeOperand, arrays: &Arrays) -> Option<Vec<Vec<f64>>> {
    let array = arrays.get(o.input.as_ref()?)?;
    let (blocks, size) =
        (usize::try_from(probe.blocks).ok()?, usize::try_from(o.tile_size()).ok()?);
    let mut out = vec![vec![0.0; size]; blocks];
    for (element, raw) in o.elements().iter().zip(&array.values) {
        let (block, index) = (element.block as usize, element.index as usize);
        *out.get_mut(block)?.get_mut(index)? = decode(o.scalar, *raw);
    }
    Some(out)
}

/// The operands of an elementwise function for one element.
fn operands_of(atom: &Atom, probe: &Probe, arrays: &Arrays, at: &Element) -> Vec<String> {
    let elementwise =
        matches!(atom.op, AtomOp::Unary(_) | AtomOp::Binary(_) | AtomOp::Accumulate(_));
    if !elementwise && atom.group > 1 {
        return vec![];
    }
    let of = |o: &ProbeOperand| {
        let array = arrays.get(o.input.as_ref()?)?;
        let same = |e: &Element| (e.block, e.index) == (at.block, at.index);
        let i = o.elements().iter().position(same)?;
        let raw = *array.values.get(i)?;
        Some(format!("{} = {} ({raw:#x})", o.name, value_text(o.scalar, raw)))
    };
    probe.operands.iter().filter_map(of).collect()
}
