"""Compiled kernels on disk, so that a program is compiled once.

An entry is machine code by what it was made from: the CUDA C++ of the kernels, the architecture, and the versions of NVRTC and of this package. The
environment variable `CARBYNE_CACHE` names the folder, which is `~/.cache/carbyne` otherwise; if it is empty, nothing is kept. Processes may share
the folder. An entry that was cut short or changed is thrown away, and a folder that cannot be written to is none.

>>> import carbyne
>>> carbyne.cache.clear()
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

__all__ = ["clear", "folder"]

#: Bytes of all entries; those that were not used for the longest time make room.
_MOST = 1 << 30
_SUFFIX = ".cubin"


def folder() -> Path | None:
    """The folder of the cache, which need not exist yet. None if nothing is kept."""
    given = os.environ.get("CARBYNE_CACHE")
    if given is not None:
        return Path(given) if given else None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "carbyne"
    except RuntimeError:  # There is no home.
        return None


def clear() -> None:
    """Removes all entries."""
    for entry in _entries():
        with contextlib.suppress(OSError):
            entry.unlink()


def fetch(parts: tuple[str, ...], make: Callable[[], bytes]) -> bytes:
    """The entry of these parts. It is made and kept if there is none."""
    place = folder()
    if place is None:
        return make()
    key = hashlib.sha256(repr(parts).encode()).hexdigest()
    path = place / (key + _SUFFIX)
    if (found := _read(path)) is not None:
        return found
    made = make()
    _write(path, made)
    return made


def _read(path: Path) -> bytes | None:
    """What an entry holds, if it is what was written."""
    try:
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


def _write(path: Path, data: bytes) -> None:
    """Writes an entry beside its place, then renames it: a reader sees all of it or nothing."""
    written = None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            written = file.name
            file.write(hashlib.sha256(data).digest() + data)
        os.replace(written, path)
    except OSError:  # The disk is full, or the folder is not ours.
        if written is not None:
            with contextlib.suppress(OSError):
                os.unlink(written)
        return
    _make_room(path)


def _make_room(kept: Path) -> None:
    """Removes the entries that were not used for the longest time, if there are too many."""
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
        return [] if place is None else sorted(place.glob("*" + _SUFFIX))
    except OSError:
        return []
