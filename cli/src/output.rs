//! Writes a result to standard output or to a file, and warnings about the result to standard
//! error.
//!
//! A new file is written to the same folder and then renamed. Therefore readers see the complete
//! old text or the complete new text, and a full disk destroys nothing. If the folder does not
//! permit this, the old file is extended first and then overwritten. Devices and pipes are written
//! directly.

use crate::args::MessageFormat;
use crate::failure::{Failure, Outcome, Source};
use crate::input::{is_stdin, reason};
use crate::regular_file::{others_allowed, parent, regular};
use crate::{Io, human, json};
use carbyne_ir::diag::Diagnostic;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use tempfile::NamedTempFile;

/// Writes `bytes` to the file, or to standard output for `None` and `-`.
pub(crate) fn write(to: Option<&Path>, bytes: &[u8], io: &mut Io<'_>) -> Outcome {
    match to.filter(|p| !is_stdin(p)) {
        None => io.stdout.write_all(bytes).map_err(Failure::stdout),
        Some(path) => save(path, bytes).map_err(|e| {
            Failure::usage_help(
                format!("`{}` cannot be written: {}", path.display(), reason(&e)),
                "use another file, or `-` for standard output",
            )
        }),
    }
}

/// Prints warnings about a result to standard error. A closed stream is not an error.
pub(crate) fn warn(source: &Source, list: &[Diagnostic], format: MessageFormat, io: &mut Io<'_>) {
    let _ = match format {
        MessageFormat::Human => human::diagnostics(source, list, io),
        MessageFormat::Json => json::diagnostics(source, list, io),
    };
}

/// Prints text about a result to standard error. A closed stream is not an error.
pub(crate) fn say(text: &str, io: &mut Io<'_>) {
    let _ = io.stderr.write_all(text.as_bytes());
}

/// Replaces the content of the file by `bytes`, or leaves the file unchanged on errors. Devices and
/// pipes are written directly.
fn save(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let Some((file, old)) = regular(path)? else {
        others_allowed()?;
        return std::fs::write(path, bytes);
    };
    if old.is_some() {
        // Do not replace a write-protected file.
        OpenOptions::new().write(true).open(&file)?;
    }
    let mut new = match beside(&file, old.as_ref()) {
        Ok(new) => new,
        Err(_) if old.is_some() => return overwrite(&file, bytes),
        Err(e) => return Err(e),
    };
    new.write_all(bytes)?;
    // Some file systems report a full disk only here.
    new.as_file().sync_all()?;
    match new.persist(&file) {
        Ok(_) => Ok(()),
        // A file that is a mount point, as in a container, cannot be replaced by renaming.
        Err(_) if old.is_some() => overwrite(&file, bytes),
        Err(e) => Err(e.error),
    }
}

/// Creates an empty file in the folder of `file` with the permissions and the owner of the old
/// file. The new file is removed when dropped.
fn beside(file: &Path, old: Option<&Metadata>) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".carbyne-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // The umask limits these permissions, as for any new file.
        let mode = old.map_or(0o666, |old| old.permissions().mode());
        builder.permissions(std::fs::Permissions::from_mode(mode));
    }
    let new = builder.tempfile_in(parent(file))?;
    if let Some(old) = old {
        keep_owner(new.as_file(), old)?;
        new.as_file().set_permissions(old.permissions())?;
    }
    Ok(new)
}

/// Gives `new` the owner and group of `old`.
#[cfg(unix)]
fn keep_owner(new: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let at = new.metadata()?;
    if (at.uid(), at.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    fchown(new, Some(old.uid()), Some(old.gid()))
}

/// On other systems, the owner of a new file is not changed.
#[cfg(not(unix))]
fn keep_owner(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
}

/// Overwrites a file in place, if no file can be created beside it or renamed to it. First extends
/// the file, because extending may fail on a full disk; then overwrites the old content, which
/// needs no more space.
fn overwrite(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(file)?;
    let old = file.metadata()?.len();
    let (over, more) =
        bytes.split_at(usize::try_from(old).map_or(bytes.len(), |n| n.min(bytes.len())));
    let grown = file
        .seek(SeekFrom::Start(old))
        .and_then(|_| file.write_all(more))
        .and_then(|()| file.sync_all());
    if let Err(e) = grown {
        file.set_len(old)?;
        return Err(e);
    }
    file.rewind()?;
    file.write_all(over)?;
    file.set_len(bytes.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overwriting_grows_and_shrinks() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("a");
        for (old, new) in
            [("", "abc"), ("abc", "abcdef"), ("abcdef", "xy"), ("xy", ""), ("ab", "cd")]
        {
            std::fs::write(&file, old).expect("writable");
            overwrite(&file, new.as_bytes()).expect("writable");
            assert_eq!(std::fs::read_to_string(&file).expect("readable"), new);
        }
        assert!(overwrite(&folder.path().join("b"), b"").is_err());
    }
}
