//! Defines [`AtomOperand`], an operand of an atom: which elements each thread holds or addresses,
//! in which memories, and whether through addresses or a matrix descriptor ([`Addressing`]).
//! [`Elem`] is the unit of an operand: one scalar of a type, or a number of bits of any type.
//! [`Divisor`] states the literals that an operand takes if it must be a literal. [`AsmClass`] is
//! the class of registers in inline PTX.
//!
//! [`crate::atom`] states the conventions.

use crate::descriptor::MatrixRule;
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::{Memory, Scalar};
use std::fmt;

/// One operand of an atom.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomOperand {
    /// The name in the template: `S`, `D`, `A`, `B`; `value` for the literal of an Init.
    pub name: &'static str,
    /// Whether it is read, written, or both.
    pub access: OperandAccess,
    /// The unit that `tv` counts.
    pub elem: Elem,
    /// The memories in which it may lie. A literal counts as a register.
    pub memory: &'static [Memory],
    /// The map from (T, V) to the column-major index in `tile`.
    pub tv: Layout,
    /// Extents of the operand's named modes. See the header of [`crate::atom`].
    pub tile: Vec<i64>,
    /// How the instruction addresses it.
    pub addressing: Addressing,
    /// Alignment in bytes of the address that each thread gives. 1 for operands that are always
    /// registers. An operand that may lie in registers or in memory must be aligned if it lies in
    /// memory.
    pub align: i64,
    /// For an operand that may begin at any element: the number of bytes of the aligned vectors
    /// that contain its values. The instruction reads whole vectors if they lie within the tensor.
    /// Otherwise the elements are copied one by one. 0 for other operands.
    pub around: i64,
    /// The number of bits of a thread's values that are adjacent in registers: the bits of one
    /// register, or of all registers that the atom accesses as one value.
    pub register_bits: i64,
    /// The C++ type through which a CUDA template accesses all values of one thread together:
    /// `uint4`, `__half2`. `None` if the template is PTX.
    pub cxx: Option<&'static str>,
    /// For an operand that must be a literal: the literals that it takes. All values of a thread
    /// are this number.
    pub divisor: Option<Divisor>,
}

/// The literals by whose reciprocals an atom multiplies. The reciprocal is computed at compile
/// time.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Divisor {
    /// Powers of two: the product equals the quotient, including its rounding.
    PowerOfTwo,
    /// Any number.
    Any,
}

impl Divisor {
    /// Whether `n` is such a literal, and both `n` and its reciprocal are normal numbers of the
    /// type.
    #[must_use]
    pub fn allows(self, n: f64, scalar: Scalar) -> bool {
        // The range of normal numbers with normal reciprocals.
        let Some(float) = scalar.float() else { return false };
        let largest = 2f64.powi(float.end - 2);
        let normal = (1.0 / largest..=largest).contains(&n.abs());
        let significand = n.to_bits() & ((1 << 52) - 1);
        normal && (self == Divisor::Any || significand == 0)
    }
}

impl fmt::Display for Divisor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Divisor::PowerOfTwo => "a literal that is a power of two",
            Divisor::Any => "a literal",
        })?;
        f.write_str(" with a normal reciprocal")
    }
}

impl AtomOperand {
    /// The number of threads that `tv` counts.
    pub fn n_threads(&self) -> i64 {
        self.tv.mode(0).map_or(1, |t| t.size())
    }

    /// The number of units that one thread holds or addresses.
    pub fn n_values(&self) -> i64 {
        self.tv.mode(1).map_or(1, |v| v.size())
    }

    /// The number of bits that one thread holds or addresses.
    pub fn bits_per_thread(&self) -> i64 {
        self.n_values() * self.elem.bits()
    }

    /// The number of bytes that one thread holds or addresses.
    pub fn bytes_per_thread(&self) -> i64 {
        (self.bits_per_thread() + 7) / 8
    }

    /// The number of scalars after a thread's last value that an access may read. A scalar has
    /// `bits` bits.
    pub fn reach(&self, bits: i64) -> i64 {
        let scalars = |bytes: i64| bytes.saturating_mul(8) / bits.max(1);
        (scalars(self.around) - 1).max(0)
    }

    /// The number of units in the whole tile.
    pub fn tile_size(&self) -> i64 {
        self.tile.iter().product()
    }

    /// Whether the operand may lie in `memory`.
    pub fn allows(&self, memory: Memory) -> bool {
        self.memory.contains(&memory)
    }

    /// Whether one unit is exactly one scalar of this type.
    pub fn is_of(&self, scalar: Scalar) -> bool {
        self.elem.scalars_per_unit(scalar) == Some(1)
    }

    /// The number of consecutive scalars of this type that one access in `memory` covers, if a
    /// thread has `n` of them.
    pub fn side_by_side(&self, memory: Memory, scalar: Scalar, n: i64) -> i64 {
        match memory.is_per_thread() {
            true => (self.register_bits / scalar.bits()).clamp(1, n.max(1)),
            // An address covers all of them.
            false => n,
        }
    }

    /// The rule for the layout of a tile that the instruction finds by a descriptor. `None` if the
    /// instruction takes no descriptor.
    pub fn matrix_rule(&self) -> Option<MatrixRule> {
        match self.addressing {
            Addressing::Thread => None,
            Addressing::Descriptor(rule) => Some(rule),
        }
    }

    /// The class of its registers in inline PTX; for an operand in memory, the class of the
    /// address. Values of at most 16 bits share 32-bit registers if a thread has more than 16 bits.
    pub fn asm_class(&self) -> AsmClass {
        match self.memory {
            _ if self.matrix_rule().is_some() => AsmClass::L,
            [Memory::Sh] => AsmClass::R,
            m if !m.contains(&Memory::Rf) => AsmClass::L,
            _ => match self.elem {
                Elem::Scalar(Scalar::F32) => AsmClass::F,
                Elem::Scalar(Scalar::F64) => AsmClass::D,
                _ if self.bits_per_thread() <= 16 => AsmClass::H,
                Elem::Bits(64) | Elem::Scalar(Scalar::I64 | Scalar::U64) => AsmClass::L,
                _ => AsmClass::R,
            },
        }
    }

    /// The number of registers of the class [`AtomOperand::asm_class`] that it occupies; 1 for an
    /// address.
    pub fn n_asm_registers(&self) -> i64 {
        if !self.allows(Memory::Rf) {
            return 1;
        }
        let bits = self.asm_class().bits();
        (self.bits_per_thread() + bits - 1) / bits
    }
}

/// The names of the memories as a message shows them: `GL or SH`.
pub(crate) fn memory_names(memory: &[Memory]) -> String {
    memory.iter().map(|m| m.as_str()).collect::<Vec<_>>().join(" or ")
}

/// How an instruction addresses an operand.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// In registers, or at an address that each thread gives.
    Thread,
    /// Through a descriptor of the whole tile, which is equal in all threads. See
    /// [`crate::descriptor`]. The values of the thread-value layout are the elements of the tile in
    /// its own order. Every thread has all of them (stride 0).
    Descriptor(MatrixRule),
}

/// How an operand is accessed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum OperandAccess {
    /// Read only.
    Read,
    /// Written only. The previous contents do not matter.
    Write,
    /// Read, then written, as an accumulator is.
    ReadWrite,
}

/// The unit of which an operand consists.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Elem {
    /// Elements of exactly this type.
    Scalar(Scalar),
    /// Units of this number of bits, of any type. A unit of n bits contains `n / scalar.bits()`
    /// consecutive values of a narrower type: scalar `j` of unit `u` has index
    /// `u * (n / bits) + j`.
    Bits(i64),
}

impl Elem {
    /// Bits of one unit.
    pub fn bits(self) -> i64 {
        match self {
            Elem::Scalar(s) => s.bits(),
            Elem::Bits(n) => n,
        }
    }

    /// Whether the unit's type can represent every value of the type `other`, so that a conversion
    /// to it loses nothing.
    pub fn holds(self, other: Scalar) -> bool {
        let Elem::Scalar(own) = self else { return false };
        let integers = || own.int_range().zip(other.int_range());
        own.holds(other) || integers().is_some_and(|(own, n)| own.0 <= n.0 && n.1 <= own.1)
    }

    /// The number of scalars of type `s` in one unit. `None` if they do not fill a unit exactly.
    pub fn scalars_per_unit(self, s: Scalar) -> Option<i64> {
        match self {
            Elem::Scalar(own) => (own == s).then_some(1),
            Elem::Bits(n) => (n % s.bits() == 0).then(|| n / s.bits()),
        }
    }
}

impl fmt::Display for Elem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Elem::Scalar(s) => write!(f, "{s}"),
            Elem::Bits(n) => write!(f, "b{n}"),
        }
    }
}

/// The class of a register in inline PTX.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum AsmClass {
    /// 16-bit integer.
    H,
    /// 32-bit integer.
    R,
    /// 64-bit integer.
    L,
    /// f32.
    F,
    /// f64.
    D,
}

impl AsmClass {
    /// The constraint letter in an asm statement.
    pub fn letter(self) -> char {
        match self {
            AsmClass::H => 'h',
            AsmClass::R => 'r',
            AsmClass::L => 'l',
            AsmClass::F => 'f',
            AsmClass::D => 'd',
        }
    }

    /// Bits of one register.
    pub fn bits(self) -> i64 {
        match self {
            AsmClass::H => 16,
            AsmClass::R | AsmClass::F => 32,
            AsmClass::L | AsmClass::D => 64,
        }
    }

    /// The C++ type of one register.
    pub fn cxx(self) -> &'static str {
        match self {
            AsmClass::H => "unsigned short",
            AsmClass::R => "unsigned",
            AsmClass::L => "unsigned long long",
            AsmClass::F => "float",
            AsmClass::D => "double",
        }
    }
}
