"""Decomposed programs and compiled kernels on disk, so that :meth:`Program.jit` decomposes and compiles a program only once.

The name of an entry is a hash of all its sources. For a decomposed program, these are the text with its imports, the architecture and its atom table, the
options, the strategies, and this build of the package; for machine code, the CUDA C++ of the kernels and the version of NVRTC. A decomposed program from
the cache is parsed and checked like any text, and the order of its accesses is proved again.

The environment variable `CARBYNE_CACHE` sets the folder; the default is `~/.cache/carbyne`. If the variable is empty, nothing is stored. Processes may
share the folder. Truncated or damaged entries are deleted. Anyone who can write to the folder determines the executed code, so share it only with people
whom you trust. If the folder is not writable, one warning is given and nothing is stored.

>>> import carbyne
>>> carbyne.cache.clear()
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

from . import _native

__all__ = ["clear", "folder"]

#: Maximum number of bytes of all entries; the least recently used entries are removed.
_MOST = 1 << 30
_NAME = re.compile(r"[0-9a-f]{64}\.(cubin|json|cby)")


def folder() -> Path | None:
    """The folder of the cache, which may not exist yet. None if nothing is stored."""
    given = os.environ.get("CARBYNE_CACHE")
    if given is not None:
        return Path(given) if given else None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "carbyne"
    except RuntimeError:  # There is no home folder.
        return None


def clear() -> None:
    """Removes all entries."""
    for entry in _entries():
        with contextlib.suppress(OSError):
            entry.unlink()


class Entry:
    """An entry of the cache. `parts` are all its sources; `suffix` is `.cubin` or `.json`."""

    def __init__(self, parts: tuple[object, ...], suffix: str) -> None:
        place = folder()
        key = hashlib.sha256(repr((_build(), *parts)).encode()).hexdigest()
        self._path = place and place / (key + suffix)

    def read(self) -> bytes | None:
        """The content; None if the entry does not exist."""
        return self._path and _read(self._path)

    def write(self, data: bytes) -> None:
        """Stores the data, if there is a folder."""
        if self._path is not None:
            _write(self._path, data)

    def keep_text(self, text: str) -> Path | None:
        """A file beside the entry with a text that people read. None if nothing is kept."""
        if self._path is None:
            return None
        path = self._path.with_suffix(".cby")
        if not path.is_file():
            _write(path, text.encode(), is_plain=True)
        return path if path.is_file() else None

    def fetch(self, make: Callable[[], bytes]) -> bytes:
        """The content, which is created and stored if it does not exist."""
        if (found := self.read()) is None:
            found = make()
            self.write(found)
        return found


def _build() -> tuple[object, ...]:
    """An identity of this build. Another build of the same version may choose other instructions."""
    said = os.stat(_native.__file__)
    return _native.__version__, said.st_size, said.st_mtime_ns


def _read(path: Path) -> bytes | None:
    """The content of an entry, if it is complete and undamaged."""
    try:
        said = os.stat(path)
        # A pipe or a device may never end.
        if not stat.S_ISREG(said.st_mode) or said.st_size > _MOST:
            return None
        data = path.read_bytes()
    except OSError:
        return None
    size = hashlib.sha256().digest_size
    if hashlib.sha256(data[size:]).digest() != data[:size]:
        with contextlib.suppress(OSError):
            path.unlink()
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return data[size:]


def _write(path: Path, data: bytes, *, is_plain: bool = False) -> None:
    """Writes a temporary file in the folder and renames it, so that readers see the complete entry or none."""
    written = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            written = file.name
            file.write(data if is_plain else hashlib.sha256(data).digest() + data)
        os.replace(written, path)
    except OSError as error:  # The disk is full, or the folder is not writable.
        if written is not None:
            with contextlib.suppress(OSError):
                os.unlink(written)
        _warn(path.parent, error)
        return
    _make_room(path)


_warned = False


def _warn(place: Path, error: OSError) -> None:
    """Warns once that nothing is stored."""
    global _warned
    if not _warned:
        _warned = True
        text = f"`{place}` cannot be written, and nothing is kept: {error}; `CARBYNE_CACHE` names another folder, or none"
        warnings.warn(text, RuntimeWarning, stacklevel=2)


def _make_room(kept: Path) -> None:
    """Removes the least recently used entries, if there are too many."""
    used = []
    for entry in _entries():
        with contextlib.suppress(OSError):
            said = entry.stat()
            used.append((said.st_mtime, said.st_size, entry))
    total = sum(size for _, size, _ in used)
    for _, size, entry in sorted(used, key=lambda e: e[0]):
        if total <= _MOST:
            return
        if entry != kept:
            with contextlib.suppress(OSError):
                entry.unlink()
            total -= size


def _entries() -> list[Path]:
    place = folder()
    try:
        return [] if place is None else sorted(p for p in place.iterdir() if _NAME.fullmatch(p.name))
    except OSError:
        return []
