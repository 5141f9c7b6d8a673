//! Reads and writes elements of the types that the fake driver and the fake cuBLAS multiply. Each
//! of the two computes its products itself, from its own description.
#![allow(dead_code, reason = "each of them uses a part")]

/// An element type.
#[derive(Copy, Clone, PartialEq)]
pub enum Type {
    F16,
    F32,
    I8,
    I32,
    E4m3,
}

impl Type {
    pub fn named(name: &str) -> Type {
        match name {
            "f16" => Type::F16,
            "i8" => Type::I8,
            "i32" => Type::I32,
            "e4m3" => Type::E4m3,
            _ => Type::F32,
        }
    }

    /// The type with this number in `cudaDataType`.
    pub fn of_cuda(number: i32) -> Type {
        match number {
            2 => Type::F16,
            3 => Type::I8,
            10 => Type::I32,
            28 => Type::E4m3,
            _ => Type::F32,
        }
    }

    /// Reads element `i`.
    pub unsafe fn read(self, at: u64, i: usize) -> f64 {
        let at: *const u8 = std::ptr::with_exposed_provenance(at as usize);
        unsafe {
            match self {
                Type::F16 => small(u32::from(at.cast::<u16>().add(i).read_unaligned()), 5, 10),
                Type::E4m3 => small(u32::from(at.add(i).read()), 4, 3),
                Type::F32 => f64::from(at.cast::<f32>().add(i).read_unaligned()),
                Type::I8 => f64::from(at.cast::<i8>().add(i).read()),
                Type::I32 => f64::from(at.cast::<i32>().add(i).read_unaligned()),
            }
        }
    }

    pub unsafe fn write(self, at: u64, i: usize, value: f64) {
        let at: *mut u8 = std::ptr::with_exposed_provenance_mut(at as usize);
        unsafe {
            match self {
                Type::F16 => at.cast::<u16>().add(i).write_unaligned(half(value)),
                Type::F32 => at.cast::<f32>().add(i).write_unaligned(value as f32),
                Type::I32 => at.cast::<i32>().add(i).write_unaligned(value as i32),
                Type::I8 | Type::E4m3 => at.add(i).write(value as u8),
            }
        }
    }
}

/// Decodes a finite float of few bits.
fn small(raw: u32, exponent_bits: u32, bits: u32) -> f64 {
    let bias = (1 << (exponent_bits - 1)) - 1;
    let sign = if raw >> (exponent_bits + bits) == 0 { 1.0 } else { -1.0 };
    let (exponent, rest) = (raw >> bits & ((1 << exponent_bits) - 1), raw & ((1 << bits) - 1));
    let unit = 0.5f64.powi(bits as i32);
    match exponent {
        0 => sign * f64::from(rest) * unit * 2f64.powi(1 - bias),
        e => sign * (1.0 + f64::from(rest) * unit) * 2f64.powi(e as i32 - bias),
    }
}

/// Encodes a number that half precision represents exactly.
fn half(value: f64) -> u16 {
    let sign = if value < 0.0 { 0x8000 } else { 0 };
    let size = value.abs();
    let exponent = size.log2().floor().clamp(-14.0, 15.0) as i32;
    let units = (size / 2f64.powi(exponent - 10)).round_ties_even() as u16;
    sign | if size == 0.0 { 0 } else { units + ((exponent + 14) as u16) * 1024 }
}
