//! An operand of an atom: which elements each thread holds or addresses, where, and through what.
//!
//! The conventions are those of [`crate::atom`].

use crate::descriptor::MatrixRule;
use carbyne_ir::layout::Layout;
use carbyne_ir::scalar::{Memory, Scalar};
use std::fmt;

/// One operand of an atom.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomOperand {
    /// As in the template: `S`, `D`, `A`, `B`; `value` for the literal of an Init.
    pub name: &'static str,
    /// Read, written, or both.
    pub access: OperandAccess,
    /// What `tv` counts.
    pub elem: Elem,
    /// Memories it may lie in: any of these. A literal counts as a register.
    pub memory: &'static [Memory],
    /// (T, V) to the column-major index in `tile`.
    pub tv: Layout,
    /// Extents of the operand's named modes; see the head of [`crate::atom`].
    pub tile: Vec<i64>,
    /// How the instruction finds it.
    pub addressing: Addressing,
    /// Alignment in bytes of the address that each thread gives; 1 for operands that are always
    /// registers. Operands that may be either have to keep it where they lie in memory.
    pub align: i64,
    /// Of an operand that begins anywhere, bytes of the aligned vectors that hold its values, which
    /// are read whole where they lie within the tensor; where they do not, its elements are copied
    /// one by one. 0 of others.
    pub around: i64,
    /// Bits of a thread's values that lie side by side where the operand is in registers: those of
    /// one register, or all that are accessed as one value.
    pub register_bits: i64,
    /// The C++ type through which a CUDA template accesses the operand's values of one thread
    /// together: `uint4`, `__half2`. None where the template is PTX.
    pub cxx: Option<&'static str>,
    /// Of an operand that a literal must fill, which literals do. All values of a thread are that
    /// number.
    pub divisor: Option<Divisor>,
}

/// Literals by whose reciprocals, computed at compile time, an atom multiplies.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Divisor {
    /// Powers of two: the product is the quotient, rounded as that is.
    PowerOfTwo,
    /// Any number.
    Any,
}

impl Divisor {
    /// Whether `n` is one, and it and its reciprocal are normal numbers of the type.
    #[must_use]
    pub fn allows(self, n: f64, scalar: Scalar) -> bool {
        // The exponents of normal numbers whose reciprocals are normal.
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
    /// Threads that `tv` counts.
    pub fn n_threads(&self) -> i64 {
        self.tv.mode(0).map_or(1, |t| t.size())
    }

    /// Units that one thread holds or addresses.
    pub fn n_values(&self) -> i64 {
        self.tv.mode(1).map_or(1, |v| v.size())
    }

    /// Bits that one thread holds or addresses.
    pub fn bits_per_thread(&self) -> i64 {
        self.n_values() * self.elem.bits()
    }

    /// Bytes that one thread holds or addresses.
    pub fn bytes_per_thread(&self) -> i64 {
        (self.bits_per_thread() + 7) / 8
    }

    /// How many scalars behind the last value of a thread an access may read, of scalars of so many
    /// bits.
    pub fn reach(&self, bits: i64) -> i64 {
        let scalars = |bytes: i64| bytes.saturating_mul(8) / bits.max(1);
        (scalars(self.around) - 1).max(0)
    }

    /// Units of the whole tile.
    pub fn tile_size(&self) -> i64 {
        self.tile.iter().product()
    }

    /// Whether the operand may lie in `memory`.
    pub fn allows(&self, memory: Memory) -> bool {
        self.memory.contains(&memory)
    }

    /// Whether a scalar of this type is one unit.
    pub fn is_of(&self, scalar: Scalar) -> bool {
        self.elem.scalars_per_unit(scalar) == Some(1)
    }

    /// How many consecutive scalars of this type, of the `n` that a thread has, each access covers
    /// in `memory`.
    pub fn side_by_side(&self, memory: Memory, scalar: Scalar, n: i64) -> i64 {
        match memory.is_per_thread() {
            true => (self.register_bits / scalar.bits()).clamp(1, n.max(1)),
            // All that an address covers.
            false => n,
        }
    }

    /// What the instruction's descriptor demands, where it takes one.
    pub fn matrix_rule(&self) -> Option<MatrixRule> {
        match self.addressing {
            Addressing::Thread => None,
            Addressing::Descriptor(rule) => Some(rule),
        }
    }

    /// The class of its registers in inline PTX; of the address, for an operand in memory.
    /// 16-bit and smaller values share 32-bit registers where a thread has more than 16 bits.
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

    /// How many registers of [`AtomOperand::asm_class`] it takes; 1 for an address.
    pub fn n_asm_registers(&self) -> i64 {
        if !self.allows(Memory::Rf) {
            return 1;
        }
        let bits = self.asm_class().bits();
        (self.bits_per_thread() + bits - 1) / bits
    }
}

/// `GL or SH`
pub(crate) fn places(memory: &[Memory]) -> String {
    memory.iter().map(|m| m.as_str()).collect::<Vec<_>>().join(" or ")
}

/// How an instruction finds an operand.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Addressing {
    /// In registers, or at an address that each thread gives.
    Thread,
    /// Through a descriptor of the whole tile, the same in every thread: see [`crate::descriptor`].
    /// The values of the thread-value layout are the tile in its own order, and every thread has
    /// all of them (stride 0).
    Descriptor(MatrixRule),
}

/// How an operand is accessed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum OperandAccess {
    /// Read only.
    Read,
    /// Written only: what it held before does not matter.
    Write,
    /// Read, then written: an accumulator.
    ReadWrite,
}

/// What an operand consists of.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Elem {
    /// Elements of this type, and of no other.
    Scalar(Scalar),
    /// Units of so many bits, whatever their type. A narrower scalar packs `n / scalar.bits()`
    /// consecutive values into each: scalar `j` of unit `u` has index `u * (n / bits) + j`.
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

    /// Whether every value of a type is one of the unit's: nothing is lost by a conversion to it.
    pub fn holds(self, other: Scalar) -> bool {
        let Elem::Scalar(own) = self else { return false };
        let integers = || own.int_range().zip(other.int_range());
        own.holds(other) || integers().is_some_and(|(own, n)| own.0 <= n.0 && n.1 <= own.1)
    }

    /// How many scalars of type `s` make one unit; none where they do not fit.
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
    /// The constraint letter of an asm statement.
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
