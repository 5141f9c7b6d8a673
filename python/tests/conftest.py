"""Fixtures that several tests use."""

from pathlib import Path

import pytest


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for one test. The folder does not exist yet."""
    monkeypatch.setenv("CARBYNE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
