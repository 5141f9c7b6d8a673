//! Defines the scalar types ([`Scalar`]: `f16`, `i32`, ..) and memory spaces ([`Memory`]: `GL`,
//! `SH`, `RF`, ..) with their properties. A type has bits, a range, digits, and literals that it
//! takes. A memory has an owner of its tensors (caller, block or thread; none if elements are
//! computed), and threads can address or write it, or not. Rules about several types or memories
//! ask for these properties.

macro_rules! spelled {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$vmeta:meta])* $variant:ident = $text:literal),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vmeta])* $variant),* }

        impl $name {
            /// Every value, in declaration order.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            /// The spelling in the text format.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = ();
            fn from_str(s: &str) -> Result<Self, ()> {
                match s { $($text => Ok($name::$variant),)* _ => Err(()) }
            }
        }
    };
}
#[cfg(feature = "text")]
pub(crate) use spelled;

spelled! {
    /// The scalar type of a tensor's innermost elements.
    Scalar {
        /// IEEE 754 binary64.
        F64 = "f64",
        /// IEEE 754 binary32.
        F32 = "f32",
        /// 19 significant bits of a binary32, stored in 32.
        Tf32 = "tf32",
        /// IEEE 754 binary16.
        F16 = "f16",
        /// bfloat16.
        Bf16 = "bf16",
        /// 8-bit float, 4 exponent bits, no infinities.
        E4m3 = "e4m3",
        /// 8-bit float, 5 exponent bits.
        E5m2 = "e5m2",
        /// Signed integer, 64 bit.
        I64 = "i64", /// Signed integer, 32 bit.
        I32 = "i32", /// Signed integer, 16 bit.
        I16 = "i16", /// Signed integer, 8 bit.
        I8 = "i8", /// Signed integer, 4 bit.
        I4 = "i4", /// Signed integer, 2 bit.
        I2 = "i2", /// Signed integer, 1 bit.
        I1 = "i1",
        /// Unsigned integer, 64 bit.
        U64 = "u64", /// Unsigned integer, 32 bit.
        U32 = "u32", /// Unsigned integer, 16 bit.
        U16 = "u16", /// Unsigned integer, 8 bit.
        U8 = "u8", /// Unsigned integer, 4 bit.
        U4 = "u4", /// Unsigned integer, 2 bit.
        U2 = "u2", /// Unsigned integer, 1 bit.
        U1 = "u1",
        /// Boolean, stored in 8 bits.
        Bool = "bool",
        /// A barrier object in shared memory (PTX ISA, mbarrier). Only synchronization statements
        /// use it.
        Mbarrier = "mbarrier",
    }
}

/// The numbers that a floating-point type represents.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Float {
    /// Bits of the significand, including the leading one.
    pub digits: i32,
    /// The exponent of the smallest positive number.
    pub least: i32,
    /// One more than the exponent of the largest number.
    pub end: i32,
}

impl Float {
    /// The exponent of the smallest positive normal number.
    pub fn least_normal(self) -> i32 {
        self.least + self.digits - 1
    }
}

impl Scalar {
    /// Bits of one element as stored.
    pub fn bits(self) -> i64 {
        use Scalar::*;
        match self {
            F64 | I64 | U64 | Mbarrier => 64,
            F32 | Tf32 | I32 | U32 => 32,
            F16 | Bf16 | I16 | U16 => 16,
            E4m3 | E5m2 | I8 | U8 | Bool => 8,
            I4 | U4 => 4,
            I2 | U2 => 2,
            I1 | U1 => 1,
        }
    }

    /// Whether the type is a floating-point type.
    #[inline]
    pub fn is_float(self) -> bool {
        self.float().is_some()
    }

    /// The smallest and the largest value of an integer type; 0 and 1 for `bool`. `None` for other
    /// types.
    pub fn int_range(self) -> Option<(i128, i128)> {
        use Scalar::*;
        match self {
            F64 | F32 | Tf32 | F16 | Bf16 | E4m3 | E5m2 | Mbarrier => None,
            Bool => Some((0, 1)),
            I64 | I32 | I16 | I8 | I4 | I2 | I1 => {
                let end = 1i128 << (self.bits() - 1);
                Some((-end, end - 1))
            }
            U64 | U32 | U16 | U8 | U4 | U2 | U1 => Some((0, (1i128 << self.bits()) - 1)),
        }
    }

    /// Whether this type is a float that represents every value of another type. NaN and infinities
    /// do not count.
    pub fn holds(self, other: Scalar) -> bool {
        let Some(own) = self.float() else { return false };
        match (other.float(), other.int_range()) {
            (Some(f), _) => f.digits <= own.digits && f.least >= own.least && f.end <= own.end,
            // The largest value decides: the smallest signed value is a power of two.
            (None, Some((_, largest))) => {
                let digits = (128 - largest.leading_zeros()) as i32;
                digits <= own.digits && digits <= own.end
            }
            (None, None) => false,
        }
    }

    /// The parameters of a floating-point type. `None` for other types.
    #[inline]
    pub fn float(self) -> Option<Float> {
        use Scalar::*;
        let (digits, least, end) = match self {
            F64 => (53, -1074, 1024),
            F32 => (24, -149, 128),
            Tf32 => (11, -136, 128),
            F16 => (11, -24, 16),
            Bf16 => (8, -133, 128),
            E4m3 => (4, -9, 9),
            E5m2 => (3, -16, 16),
            I64 | I32 | I16 | I8 | I4 | I2 | I1 => return None,
            U64 | U32 | U16 | U8 | U4 | U2 | U1 | Bool | Mbarrier => return None,
        };
        Some(Float { digits, least, end })
    }

    /// The reason why a float type narrower than f64 cannot represent a finite literal: the nearest
    /// number is beyond the largest one, is 0, or is subnormal and has a larger relative error than
    /// normal numbers have. `None` if it can.
    #[cfg(feature = "text")]
    pub(crate) fn misses(self, number: f64) -> Option<&'static str> {
        let Float { digits, least, end } = self.float().filter(|_| self != Scalar::F64)?;
        if number == 0.0 || !number.is_finite() {
            return None;
        }
        let two_to = |exponent: i32| f64::from_bits(((1023 + exponent) as u64) << 52);
        let exponent = (number.to_bits() >> 52 & 0x7ff) as i32 - 1023;
        let unit = two_to((exponent + 1 - digits).max(least));
        let nearest = (number / unit).round_ties_even() * unit;
        let largest = match self {
            // The bit pattern of all ones is NaN.
            Scalar::E4m3 => 448.0,
            _ => two_to(end - digits) * (two_to(digits) - 1.0),
        };
        if nearest.abs() > largest {
            return Some("is too large");
        }
        if nearest == 0.0 {
            return Some("becomes 0");
        }
        let error = (nearest - number).abs();
        (error > number.abs() * two_to(-digits)).then_some("loses bits, because it is subnormal")
    }

    /// Whether a literal may stand for an element. A float takes any number and rounds it, an
    /// integer takes whole numbers within its range, a `bool` takes 0 and 1.
    pub fn takes(self, number: f64) -> bool {
        let within = |(lo, hi)| number.fract() == 0.0 && (lo..=hi).contains(&(number as i128));
        self.is_float() || self.int_range().is_some_and(within)
    }
}

spelled! {
    /// The memory space of a tensor.
    Memory {
        /// Global memory.
        Gl = "GL",
        /// Shared memory of a thread block.
        Sh = "SH",
        /// Registers of a thread.
        Rf = "RF",
        /// No memory: each element is its own position, a coordinate (`.iota(axis)`). It is
        /// read-only.
        Ix = "IX",
        /// A number that the caller passes to the kernel. It is read-only.
        Pm = "PM",
    }
}

/// The owner of a tensor in a memory.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Holder {
    /// The caller: all blocks share the tensor, and it outlives the kernel.
    Caller,
    /// Each block: its threads share the tensor.
    Block,
    /// Each thread.
    Thread,
    /// No owner: the elements are computed.
    Nobody,
}

/// A row of the table of memories. Only the methods of [`Memory`] read it, so no other code lists
/// memories.
struct Facts {
    /// The owner of a tensor there.
    holder: Holder,
    /// Whether threads address single elements.
    addressable: bool,
    /// Whether statements may write to the memory.
    writable: bool,
    /// The name in lists of memories: `SH` is "shared".
    words: &'static str,
}

impl Memory {
    /// The table of memories.
    fn facts(self) -> Facts {
        use Holder::*;
        let (holder, addressable, writable, words) = match self {
            Memory::Gl => (Caller, true, true, "global"),
            Memory::Sh => (Block, true, true, "shared"),
            Memory::Rf => (Thread, false, true, "the registers of the threads"),
            Memory::Ix => (Nobody, false, false, "coordinates"),
            Memory::Pm => (Caller, false, false, "a number of the caller"),
        };
        Facts { holder, addressable, writable, words }
    }

    /// Whether each thread owns its tensors there, as with registers.
    pub fn is_per_thread(self) -> bool {
        self.facts().holder == Holder::Thread
    }

    /// Whether each block owns its tensors there, shared by its threads.
    pub fn is_of_block(self) -> bool {
        self.facts().holder == Holder::Block
    }

    /// Whether the body of a kernel allocates tensors there, which belong to a block or a thread
    /// and end with the kernel.
    pub fn is_allocated(self) -> bool {
        self.is_of_block() || self.is_per_thread()
    }

    /// Whether threads address single elements.
    pub fn is_addressable(self) -> bool {
        self.facts().addressable
    }

    /// Whether the caller owns the tensors and they are addressable: all blocks access them, and
    /// they outlive the kernel.
    pub fn is_global(self) -> bool {
        self.facts().holder == Holder::Caller && self.is_addressable()
    }

    /// Whether the block owns the tensors and they are addressable: the memory has banks, its
    /// layouts can be swizzled, and other blocks of a cluster can read it (`.peer`).
    pub fn is_shared(self) -> bool {
        self.is_of_block() && self.is_addressable()
    }

    /// Whether the caller passes a plain number that has no address.
    pub fn is_number(self) -> bool {
        self.facts().holder == Holder::Caller && !self.is_addressable()
    }

    /// Whether elements are computed where they are read, without storage.
    pub fn is_computed(self) -> bool {
        self.facts().holder == Holder::Nobody
    }

    /// Whether statements may write to the memory.
    pub fn is_writable(self) -> bool {
        self.facts().writable
    }

    /// The name in lists of memories: `SH` is "shared".
    pub fn words(self) -> &'static str {
        self.facts().words
    }
}

#[cfg(all(test, feature = "text"))]
mod tests {
    use super::Scalar;

    #[test]
    fn literals_that_a_type_does_not_have() {
        let has = |scalar: Scalar, n: f64| assert_eq!(scalar.misses(n), None, "{scalar} {n}");
        let lacks = |scalar: Scalar, n: f64| assert!(scalar.misses(n).is_some(), "{scalar} {n}");
        use Scalar::{Bf16, E4m3, E5m2, F16, F32, F64, I8};
        for n in [0.0, -0.0, 0.1, 65519.9, -65504.0, f64::INFINITY, f64::NAN, 0.5f64.powi(24)] {
            has(F16, n);
        }
        for n in [65520.0, -1e300, 1e-8, 1e-300, f64::from_bits(1), 1e-5] {
            lacks(F16, n);
        }
        has(E4m3, 464.0);
        lacks(E4m3, 464.1);
        has(E5m2, 61439.0);
        lacks(E5m2, 61441.0);
        has(F32, 3.4028235e38);
        lacks(F32, 3.5e38);
        lacks(F32, 1e-40);
        has(Bf16, 1e-38);
        lacks(Bf16, 1e-39);
        has(F64, f64::from_bits(3));
        has(I8, 1e9);
    }
}
