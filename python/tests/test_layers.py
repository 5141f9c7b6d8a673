"""Compares small layers of `python/examples` in the simulator with NumPy. `card.sh` compares large ones with PyTorch."""

import subprocess
import sys

import pytest

from samples import ROOT


@pytest.mark.parametrize("layer", ["llama_layer", "bert_layer"])
def test_a_layer_is_that_of_numpy(layer: str) -> None:
    command = [sys.executable, ROOT / "python" / "examples" / f"{layer}.py", "--simulate"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert "relative to NumPy in binary64" in ran.stdout
