"""The search for NVRTC."""

import importlib.util
import os
from pathlib import Path


def find_nvrtc() -> None:
    """Selects the NVRTC of NVIDIA's Python packages, unless another one is selected."""
    package = importlib.util.find_spec("nvidia")
    if "CARBYNE_NVRTC" in os.environ or package is None:
        return
    folders = [Path(folder) for folder in package.submodule_search_locations or ()]
    found = sorted(path for folder in folders for path in folder.glob("*/lib/libnvrtc.so.*"))
    if found:
        os.environ["CARBYNE_NVRTC"] = str(found[-1])
