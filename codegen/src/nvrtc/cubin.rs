//! Counts the instructions of a kernel in machine code (a CUBIN), which is an ELF file with a
//! section for each kernel.

/// The number of instructions of a kernel, without padding; none if the file does not contain the
/// kernel. Supports architectures from sm_70 on, whose instructions have 16 bytes.
#[must_use]
pub fn n_instructions(cubin: &[u8], kernel: &str) -> Option<usize> {
    let number = |at: usize, n: usize| {
        let bytes = cubin.get(at..at.checked_add(n)?)?;
        bytes.iter().rev().try_fold(0usize, |v, b| Some(v.checked_mul(256)? + usize::from(*b)))
    };
    // 64-bit ELF: the section table, and the section with the names of sections.
    let (table, n_sections, names) = (number(0x28, 8)?, number(0x3c, 2)?, number(0x3e, 2)?);
    let section = |i: usize| table.checked_add(64 * i);
    let names = number(section(names)? + 0x18, 8)?;
    let wanted = format!(".text.{kernel}\0");
    let found = (0..n_sections).filter_map(section).find(|s| {
        let at = number(*s, 4).and_then(|n| names.checked_add(n));
        at.and_then(|at| cubin.get(at..)).is_some_and(|name| name.starts_with(wanted.as_bytes()))
    })?;
    let (from, bytes) = (number(found + 0x18, 8)?, number(found + 0x20, 8)?);
    let to = from.checked_add(bytes).filter(|to| *to <= cubin.len())?;
    // The opcode of NOP, which pads the section.
    let fills = |at: &usize| number(*at, 2).is_some_and(|n| n & 0xfff == 0x918);
    Some((from..to).step_by(16).filter(|at| !fills(at)).count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvrtc::{Emit, Options};
    use crate::testing::require_nvrtc;

    #[test]
    fn instructions_are_counted_by_kernel() {
        let Some(nvrtc) = require_nvrtc() else { return };
        let source = "extern \"C\" __global__ void one(float* x) { x[0] = 1.0f; }\n\
                      extern \"C\" __global__ void many(float* x) {\n\
                      x[0] = sinf(x[1]) + expf(x[2]); }\n";
        let made = nvrtc.compile(source, "sm_80", Emit::Cubin, &Options::default()).unwrap();
        let n = |kernel| n_instructions(&made.cubin, kernel);
        assert!(n("one").unwrap() >= 3 && n("many").unwrap() > 3 * n("one").unwrap());
        assert_eq!((n("none"), n_instructions(b"\x7fELF", "one")), (None, None));
        for n in 0..made.cubin.len().min(4096) {
            let _ = n_instructions(&made.cubin[..n], "one");
        }
    }
}
