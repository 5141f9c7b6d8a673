//! Defines [`AtomNumber`], a number that an atom's text contains besides its operands, for example
//! the number of groups for which a wait waits, the parity of an mbarrier phase, or a mask of
//! lanes. It states the range of the number, and whether it may be computed at run time.

use crate::operand::AsmClass;
use std::fmt;

/// A number in a template: `{count}`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct AtomNumber {
    /// The name in the template. The template of an atom for exactly one number may omit it.
    pub name: &'static str,
    /// The smallest number that the instruction takes.
    pub least: i64,
    /// The largest number that the instruction takes.
    pub most: i64,
    /// A divisor: the number must be a multiple of it.
    pub multiple: i64,
    /// The form in which it is written.
    pub form: NumberForm,
}

/// The form in which a number is written.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum NumberForm {
    /// A constant in the text.
    Immediate,
    /// A register, so that the number may be computed.
    Register(AsmClass),
    /// A constant in the text if the number is constant, otherwise a register.
    Either(AsmClass),
}

impl AtomNumber {
    /// Whether the instruction takes every multiple of `div` from `lo` to `hi`. An unknown bound
    /// counts as fitting if the instruction takes computed numbers.
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
    fn numbers_that_an_instruction_takes() {
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
