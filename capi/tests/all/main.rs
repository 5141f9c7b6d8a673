//! The header matches the sources, the page shows the example, and programs of C work with the
//! library.

mod header;
mod programs;

use std::path::{Path, PathBuf};

/// A path of this package.
fn own(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
