"""The tour as a notebook. `python/examples/tour.py` is its source, and the notebook beside it shows the outputs.

`BLESS=1 cargo xtask ci python` writes the notebook.
"""

import difflib
import os
from pathlib import Path

import pytest
from samples import ROOT

nbformat = pytest.importorskip("nbformat", reason="the tour is executed by nbclient and ipykernel: pip install 'carbyne[test]'")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

SOURCE = ROOT / "python/examples/tour.py"
NOTEBOOK = SOURCE.with_suffix(".ipynb")


def notebook_of(script: str) -> nbformat.NotebookNode:
    """The notebook of a script. `# %%` begins a cell of code, and `# %% [markdown]` a cell of text in comments."""
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": kernel})
    for i, cell in enumerate(script.split("# %%")[1:]):
        kind, _, text = cell.partition("\n")
        if kind.strip() == "[markdown]":
            lines = (line.removeprefix("#").removeprefix(" ") for line in text.strip().splitlines())
            notebook.cells.append(nbformat.v4.new_markdown_cell("\n".join(lines), id=f"cell-{i}"))
        else:
            notebook.cells.append(nbformat.v4.new_code_cell(text.strip(), id=f"cell-{i}"))
    return notebook


def test_the_tour_shows_what_happens(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Ignore settings of users, and write no history.
    for folder in ["IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"]:
        monkeypatch.setenv(folder, str(tmp_path / folder))
    notebook = notebook_of(SOURCE.read_text(encoding="utf-8"))
    # An exception of a cell raises an error that shows the cell.
    nbclient.NotebookClient(notebook, timeout=120, record_timing=False, coalesce_streams=True).execute()
    # The version of Python does not matter.
    notebook.metadata.pop("language_info", None)
    fresh = nbformat.writes(notebook) + "\n"
    if os.environ.get("BLESS") == "1":
        NOTEBOOK.write_text(fresh, encoding="utf-8")
    shown = NOTEBOOK.read_text(encoding="utf-8")
    changes = list(difflib.unified_diff(shown.splitlines(), fresh.splitlines(), "committed", "executed", lineterm=""))
    help = "`BLESS=1 cargo xtask ci python` writes python/examples/tour.ipynb; look at `git diff`"
    assert not changes, "\n".join([help, *changes[:40]])
