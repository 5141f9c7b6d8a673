//! Defines [`Binary`], a compiled kernel as bytes that the driver can load: machine code (an ELF
//! file) or PTX (a text with `.target`). The contents of a file tell which of the two it is. A file
//! that is neither, or without the name of the kernel, is refused.

use crate::Fallible;
use carbyne_ir::diag::{Code, Diagnostic};

/// A compiled kernel that the driver can load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binary {
    /// Machine code of one architecture.
    Cubin(Vec<u8>),
    /// PTX text, which the driver compiles.
    Ptx(String),
}

impl Binary {
    /// Takes the contents of a file. `name` is the file's name in messages.
    ///
    /// # Errors
    /// [`Code::BadBinary`] if the contents are neither machine code nor PTX, or do not contain the
    /// kernel.
    pub fn read(name: &str, bytes: Vec<u8>, kernel: &str) -> Fallible<Binary> {
        let holds = bytes.windows(kernel.len().max(1)).any(|w| w == kernel.as_bytes());
        let binary = if bytes.starts_with(b"\x7fELF") {
            Binary::Cubin(bytes)
        } else {
            match String::from_utf8(bytes) {
                Ok(text) if !text.contains('\0') && text.contains(".target") => Binary::Ptx(text),
                _ => return Err(bad(format!("`{name}` is neither machine code nor PTX"))),
            }
        };
        match holds {
            true => Ok(binary),
            false => Err(bad(format!("`{name}` does not contain the kernel `{kernel}`"))),
        }
    }

    /// The kind as a word: `cubin` or `ptx`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Binary::Cubin(_) => "cubin",
            Binary::Ptx(_) => "ptx",
        }
    }
}

fn bad(message: String) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::new(Code::BadBinary, Default::default(), message)
            .help("make it with `carbyne compile FILE --arch ARCH --emit cubin -o PATH`"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_distinguished() {
        let read = |bytes: &[u8]| Binary::read("f", bytes.to_vec(), "gemm");
        assert_eq!(read(b"\x7fELF..gemm\0").map(|b| b.kind()), Ok("cubin"));
        assert_eq!(read(b".target sm_80\n.entry gemm()").map(|b| b.kind()), Ok("ptx"));
        for bytes in [&b""[..], b"\x7fELF", b"text", b".target\0gemm", b"\xff\xfe gemm"] {
            assert_eq!(read(bytes).map_err(|d| d.code), Err(Code::BadBinary), "{bytes:?}");
        }
    }
}
