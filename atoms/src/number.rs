//! Numbers that an atom's text takes besides its operands: counts, parities, masks.

use crate::operand::AsmClass;
use std::fmt;

/// A number in a template: `{count}`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct AtomNumber {
    /// As in the template. An atom for one number only may leave it out there.
    pub name: &'static str,
    /// The smallest that the instruction takes.
    pub least: i64,
    /// The largest.
    pub most: i64,
    /// What divides it.
    pub multiple: i64,
    /// How it is written.
    pub form: NumberForm,
}

/// How a number is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum NumberForm {
    /// As a constant of the text.
    Immediate,
    /// As a register: it may be computed.
    Register(AsmClass),
    /// As a constant of the text where it is one, else as a register.
    Either(AsmClass),
}

impl AtomNumber {
    /// Whether the instruction takes every number from `lo` to `hi` that `div` divides. A bound
    /// that is not known is taken to fit, where the number may be computed at all.
    pub fn takes(&self, lo: Option<i64>, hi: Option<i64>, div: i64) -> bool {
        let one = lo.is_some() && lo == hi;
        lo.is_none_or(|lo| lo >= self.least)
            && hi.is_none_or(|hi| hi <= self.most)
            && (if one { lo.unwrap_or(0) } else { div }) % self.multiple == 0
            && (one || self.form != NumberForm::Immediate && self.least < self.most)
    }
}

impl fmt::Display for AtomNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AtomNumber { name, least, most, multiple, form: _ } = self;
        match (least == most, *multiple) {
            (true, _) => write!(f, "{name} {least}"),
            (false, 1) => write!(f, "{name} from {least} to {most}"),
            (false, m) => write!(f, "{name} from {least} to {most}, a multiple of {m}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_instruction_takes() {
        let registers = AtomNumber {
            name: "registers",
            least: 24,
            most: 256,
            multiple: 8,
            form: NumberForm::Immediate,
        };
        let constant = |n| registers.takes(Some(n), Some(n), n);
        assert!(constant(24) && constant(40) && constant(256));
        assert!(!constant(16) && !constant(25) && !constant(264));
        assert!(!registers.takes(Some(24), Some(32), 8), "it must be a constant");
        assert_eq!(registers.to_string(), "registers from 24 to 256, a multiple of 8");
        let parity = AtomNumber {
            name: "parity",
            least: 0,
            most: 1,
            multiple: 1,
            form: NumberForm::Register(AsmClass::R),
        };
        assert!(parity.takes(Some(0), Some(1), 1) && parity.takes(Some(0), None, 1));
        assert!(!parity.takes(Some(0), Some(2), 1) && !parity.takes(Some(-1), Some(0), 1));
    }
}
