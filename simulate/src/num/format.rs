//! Describes small binary floating-point formats, such as f16 and e4m3, and converts between their
//! bits and numbers in binary64.
//!
//! Invariant: [`Format::encode`] rounds once, to nearest, ties to even, including subnormal
//! results.

/// A format with a sign bit on top, then the exponent, then the fraction.
#[derive(Copy, Clone)]
pub(super) struct Format {
    exponent_bits: u32,
    fraction_bits: u32,
    /// Whether the largest exponent is for infinity and NaN, as in IEEE 754.
    infinities: bool,
    /// Whether overflow gives the largest finite number.
    saturates: bool,
}

impl Format {
    pub(super) const F16: Format =
        Format { exponent_bits: 5, fraction_bits: 10, infinities: true, saturates: false };
    pub(super) const BF16: Format =
        Format { exponent_bits: 8, fraction_bits: 7, infinities: true, saturates: false };
    pub(super) const TF32: Format =
        Format { exponent_bits: 8, fraction_bits: 10, infinities: true, saturates: false };
    pub(super) const E5M2: Format =
        Format { exponent_bits: 5, fraction_bits: 2, infinities: true, saturates: true };
    /// All exponents are finite; only the all-ones pattern is NaN.
    pub(super) const E4M3: Format =
        Format { exponent_bits: 4, fraction_bits: 3, infinities: false, saturates: true };

    fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    /// The largest finite magnitude, as bits.
    fn largest(self) -> u64 {
        let all = (1u64 << (self.exponent_bits + self.fraction_bits)) - 1;
        if self.infinities { all - (1 << self.fraction_bits) } else { all - 1 }
    }

    pub(super) fn encode(self, value: f64) -> u64 {
        let width = self.exponent_bits + self.fraction_bits;
        let sign = (value.to_bits() >> 63) << width;
        if value.is_nan() {
            return sign | if self.infinities { (1 << width) - 1 } else { self.largest() + 1 };
        }
        let infinity = if self.saturates { self.largest() } else { self.largest() + 1 };
        if value.is_infinite() {
            return sign | infinity;
        }
        let bits = value.to_bits() & !(1 << 63);
        let (field, fraction) = ((bits >> 52) as i32, bits & 0xf_ffff_ffff_ffff);
        if field == 0 {
            return sign; // A subnormal binary64 is far below half of any smallest number here.
        }
        let significand = fraction | 1 << 52;
        let exponent = field - 1023 + self.bias();
        // The number of low bits of the significand that are rounded away; more below the normal
        // range.
        let drop = 52 - self.fraction_bits as i32 + (1 - exponent).max(0);
        if drop > 54 {
            return sign;
        }
        let kept = significand >> drop;
        let rest = significand & ((1 << drop) - 1);
        let half = 1u64 << (drop - 1);
        let up = rest > half || (rest == half && kept & 1 == 1);
        // For normal numbers `kept` contains the hidden one, which increments the exponent field.
        let magnitude =
            kept + u64::from(up) + (((exponent - 1).max(0) as u64) << self.fraction_bits);
        sign | if magnitude > self.largest() { infinity } else { magnitude }
    }

    pub(super) fn decode(self, raw: u64) -> f64 {
        let width = self.exponent_bits + self.fraction_bits;
        let sign = if raw >> width & 1 == 1 { -1.0 } else { 1.0 };
        let magnitude = raw & ((1 << width) - 1);
        if magnitude > self.largest() {
            let infinite = self.infinities && magnitude == self.largest() + 1;
            return sign * if infinite { f64::INFINITY } else { f64::NAN };
        }
        let exponent = (magnitude >> self.fraction_bits) as i32;
        let fraction = (magnitude & ((1 << self.fraction_bits) - 1)) as f64;
        let one = (1u64 << self.fraction_bits) as f64;
        let significand = if exponent == 0 { fraction } else { one + fraction };
        sign * significand * 2f64.powi(exponent.max(1) - self.bias() - self.fraction_bits as i32)
    }
}
