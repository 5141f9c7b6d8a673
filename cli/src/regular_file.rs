//! Follows symbolic links, and distinguishes regular files from pipes and devices. The commands of
//! `carbyne serve` open regular files only, because others may never end, or may be streams of the
//! process.

use std::cell::Cell;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of symbolic links that are followed in a chain, as in Linux.
const MAX_LINKS: usize = 40;

/// The reason why a pipe or a device is not opened.
pub(crate) const NO_FILE: &str = "it is not a regular file";

thread_local! {
    /// Whether this thread opens regular files only.
    static ORDINARY: Cell<bool> = const { Cell::new(false) };
}

/// Makes this thread open regular files only. Other files may never end, or may be streams of the
/// process.
pub(crate) fn open_regular_files_only() {
    ORDINARY.set(true);
}

/// Checks that this thread may open pipes and devices.
///
/// # Errors
/// This thread opens regular files only.
pub(crate) fn others_allowed() -> io::Result<()> {
    match ORDINARY.get() {
        true => Err(io::Error::other(NO_FILE)),
        false => Ok(()),
    }
}

/// Opens a file for reading.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if let Err(refused) = others_allowed()
        && regular(path)?.is_none()
    {
        return Err(refused);
    }
    File::open(path)
}

/// Follows links, and returns the path and the file there, if any; `None` if the file is not a
/// regular file.
pub(crate) fn regular(path: &Path) -> io::Result<Option<(PathBuf, Option<Metadata>)>> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        // A path that ends with a separator can only name a folder.
        let ends = path.as_os_str().as_encoded_bytes().last().copied().map(char::from);
        let (Some(name), false) = (path.file_name(), ends.is_some_and(std::path::is_separator))
        else {
            return Ok(None);
        };
        let file = parent(&path).canonicalize()?.join(name);
        // `/dev/stdout` and similar paths: a process has the file open and continues to write.
        if file.starts_with("/proc") || file.starts_with("/dev/fd") {
            return Ok(None);
        }
        match file.symlink_metadata() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Some((file, None))),
            Err(e) => return Err(e),
            Ok(at) if at.is_symlink() => path = parent(&file).join(file.read_link()?),
            Ok(at) if at.is_file() => return Ok(Some((file, Some(at)))),
            Ok(_) => return Ok(None),
        }
    }
    Ok(None)
}

/// The folder of a file.
pub(crate) fn parent(file: &Path) -> &Path {
    file.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
