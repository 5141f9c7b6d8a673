//! Tests the C interface: the header matches the sources, `docs/c.md` shows the example, and C
//! programs work with the library.

mod header;
mod programs;

use std::path::{Path, PathBuf};

/// A path within this package.
fn own(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
