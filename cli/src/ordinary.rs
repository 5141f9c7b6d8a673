//! Ordinary files, and others: pipes, devices, streams of the process.

use std::cell::Cell;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

/// Symbolic links that are followed from one to the next, as many as Linux follows.
const MAX_LINKS: usize = 40;

/// Why a pipe or a device is not opened.
pub(crate) const NO_FILE: &str = "it is no file";

thread_local! {
    /// Whether this thread opens ordinary files alone.
    static ORDINARY: Cell<bool> = const { Cell::new(false) };
}

/// From now on this thread opens ordinary files alone. Others may never end, or are the streams of
/// the process.
pub(crate) fn open_ordinary_alone() {
    ORDINARY.set(true);
}

/// Whether this thread may open pipes, devices and the like.
///
/// # Errors
/// It may not.
pub(crate) fn others_allowed() -> io::Result<()> {
    match ORDINARY.get() {
        true => Err(io::Error::other(NO_FILE)),
        false => Ok(()),
    }
}

/// Opens a file to read.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    if let Err(refused) = others_allowed()
        && regular(path)?.is_none()
    {
        return Err(refused);
    }
    File::open(path)
}

/// Where links lead, and the file that is there, if any; none for what is not an ordinary file.
pub(crate) fn regular(path: &Path) -> io::Result<Option<(PathBuf, Option<Metadata>)>> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        // A path that ends with a separator can only be a folder.
        let ends = path.as_os_str().as_encoded_bytes().last().copied().map(char::from);
        let (Some(name), false) = (path.file_name(), ends.is_some_and(std::path::is_separator))
        else {
            return Ok(None);
        };
        let file = parent(&path).canonicalize()?.join(name);
        // `/dev/stdout` and its like: a file that somebody has open and goes on writing to.
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
