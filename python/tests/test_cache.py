"""Compiled kernels on disk."""

import hashlib
import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest

import carbyne
from carbyne import cache
from samples import TWICE

pytestmark = pytest.mark.usefixtures("place")


def fetch(parts: tuple[str, ...], make) -> bytes:
    return cache.Entry(parts, ".cubin").fetch(make)


def made(data: bytes = b"code" * 100):
    calls = []

    def make() -> bytes:
        calls.append(1)
        return data

    return make, calls


def test_an_entry_is_made_once(place: Path) -> None:
    make, calls = made()
    assert fetch(("a", "b"), make) == fetch(("a", "b"), make)
    assert len(calls) == 1
    fetch(("ab", ""), make)
    assert len(calls) == 2
    assert len(list(place.iterdir())) == 2
    assert place.stat().st_mode & 0o077 == 0
    cache.clear()
    assert not list(place.iterdir())


@pytest.mark.parametrize("spoil", [lambda d: d[:-1], lambda d: b"", lambda d: d[:40] + b"X" + d[41:], lambda d: d + b"."])
def test_an_entry_that_was_changed_is_made_again(place: Path, spoil) -> None:
    make, calls = made()
    fetch(("a",), make)
    (entry,) = place.iterdir()
    entry.write_bytes(spoil(entry.read_bytes()))
    assert fetch(("a",), make) == make()
    assert len(calls) == 3
    fetch(("a",), make)
    assert len(calls) == 3


def test_a_folder_that_cannot_be_used_is_none(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, calls = made()
    for wrong in ("", "/dev/null/x", "/proc/none", "x" * 5000):
        monkeypatch.setenv("CARBYNE_CACHE", wrong)
        assert fetch(("a",), make) == b"code" * 100
        cache.clear()
    assert len(calls) == 4
    monkeypatch.setenv("CARBYNE_CACHE", str(place))
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("the disk is full")))
    assert fetch(("a",), make) == b"code" * 100
    assert not list(place.iterdir())


def test_the_oldest_entries_make_room(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MOST", 3000)
    for i in range(6):
        fetch((str(i),), made(b"x" * 1000)[0])
        for entry in place.iterdir():
            os.utime(entry, (entry.stat().st_mtime - 10,) * 2)
    assert len(list(place.iterdir())) == 2
    make, calls = made()
    fetch(("5",), make)
    assert not calls


def _write(n: int) -> None:
    for i in range(50):
        data = bytes([i]) * 10_000
        assert fetch((str(i),), lambda: data) == data


def test_processes_write_at_once(place: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_write, args=(n,)) for n in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(list(place.iterdir())) == 50


def test_files_of_others_stay(place: Path) -> None:
    place.mkdir()
    other = place / "important.json"
    other.write_text("{}")
    cache.Entry(("kept",), ".json").write(b"data")
    assert len(list(place.iterdir())) == 2
    cache.clear()
    assert list(place.iterdir()) == [other]


def test_an_entry_that_is_no_file_holds_nothing(place: Path) -> None:
    place.mkdir()
    entry = cache.Entry(("pipe",), ".json")
    os.mkfifo(entry._path)
    assert entry.read() is None


@pytest.mark.parametrize("entry", [b"[" * 100_000, b"{}", b'["", "null"]', b'["", "{not json"]', b"[1, 2]"])
def test_entries_that_make_no_sense_are_made_again(entry: bytes, place: Path) -> None:
    program = carbyne.Program(TWICE)
    program.jit("simulate")
    (kept,) = place.iterdir()
    kept.write_bytes(hashlib.sha256(entry).digest() + entry)
    x = np.arange(77, dtype=np.float32)
    assert (carbyne.Program(TWICE).jit("simulate")(x) == 2 * x).all()
