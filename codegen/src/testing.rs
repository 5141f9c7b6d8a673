//! What tests of every crate share: a compiler where there is one, and no silent skip where there
//! should be one.

use crate::nvrtc::{self, Nvrtc};

/// The NVRTC to test with. Without one the caller skips, and says so in the log of the test.
///
/// # Panics
/// Where `cargo xtask setup` has run for this build folder: there a skipped test is a failure.
#[expect(clippy::print_stderr, reason = "a skipped test must say so")]
pub fn require_nvrtc() -> Option<&'static Nvrtc> {
    match nvrtc::find() {
        Ok(nvrtc) => Some(nvrtc),
        Err(d) if nvrtc::is_set_up() => {
            panic!("`cargo xtask setup` has run, and yet: {d}\n{}", d.notes.join("\n"))
        }
        Err(_) => {
            eprintln!("NVRTC absent: skipped");
            None
        }
    }
}
