"""Fixtures of several tests."""

from pathlib import Path

import pytest


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the test's own. The folder does not exist yet."""
    monkeypatch.setenv("CARBYNE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
