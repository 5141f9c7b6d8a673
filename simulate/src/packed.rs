//! Reads and writes scalars in bytes as the memory of a device has them. Scalars smaller than a
//! byte are packed: two `i4` share a byte, the first in the lower bits. `device` writes and
//! reads such bytes; `conformance` and `state/global.rs` read them.

use carbyne_ir::scalar::Scalar;

/// The scalar at an offset.
pub(crate) fn unpacked(bytes: &[u8], scalar: Scalar, at: i64) -> Option<u64> {
    let (at, bits) = (usize::try_from(at).ok()?, scalar.bits() as usize);
    if bits < 8 {
        let byte = *bytes.get(at * bits / 8)?;
        return Some(u64::from(byte >> (at * bits % 8)) & ((1 << bits) - 1));
    }
    let width = bits / 8;
    let found = bytes.get(at * width..(at + 1) * width)?;
    let mut le = [0; 8];
    le[..width].copy_from_slice(found);
    Some(u64::from_le_bytes(le))
}

pub(crate) fn pack(bytes: &mut [u8], scalar: Scalar, at: usize, raw: u64) {
    let bits = scalar.bits() as usize;
    if bits < 8 {
        let mask = ((1u32 << bits) - 1) as u8;
        let shift = at * bits % 8;
        if let Some(byte) = bytes.get_mut(at * bits / 8) {
            *byte = *byte & !(mask << shift) | (raw as u8 & mask) << shift;
        }
    } else if let Some(to) = bytes.get_mut(at * bits / 8..(at + 1) * bits / 8) {
        to.copy_from_slice(&raw.to_le_bytes()[..bits / 8]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::POISON;

    #[test]
    fn scalars_of_every_width_are_packed() {
        for scalar in Scalar::ALL {
            let bits = scalar.bits();
            let mut bytes = vec![POISON; 64];
            let value = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - bits);
            (0..8).for_each(|i| pack(&mut bytes, *scalar, i as usize, value(i)));
            for i in 0..8 {
                assert_eq!(unpacked(&bytes, *scalar, i), Some(value(i as u64)), "{scalar}");
            }
            let poison = u64::MAX >> (64 - bits);
            let last = 64 * 8 / bits - 1;
            let untouched = if last >= 8 { poison } else { value(last as u64) };
            assert_eq!(unpacked(&bytes, *scalar, last), Some(untouched), "{scalar}");
            assert_eq!(unpacked(&bytes, *scalar, last + 1), None);
            assert_eq!(unpacked(&bytes, *scalar, -1), None);
        }
    }
}
