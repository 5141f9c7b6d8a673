"""Tuning with the fakes of NVIDIA's driver and NVRTC that the tests of the command use."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from samples import ROOT

RUSTC = shutil.which(os.environ.get("RUSTC", "rustc"))
SCRIPT = """\
import carbyne, json, sys
program = carbyne.Program('''carbyne 2
%A:[64,64].f16.GL
%B:[(64,64):(1,64)].f16.GL
%C:[64,64].f16.GL
MatMul.set @one (%A, %B) -> (%C) acc=f32
''')
stages = []
tuned = program.tune(top=3, launches=25, tuned=sys.argv[1], progress=lambda p: stages.append((p.stage, p.done, p.total)))
print(json.dumps([tuned.text, tuned.figures, tuned.decomposed.text, stages]))
class Enough(Exception): pass
def stop(progress): raise Enough
try:
    program.tune(top=3, progress=stop)
except Enough:
    print("ended")
"""


@pytest.mark.skipif(RUSTC is None, reason="the libraries are compiled by rustc, which is not installed")
@pytest.mark.skipif(sys.platform != "linux", reason="kernels are launched on Linux only")
def test_the_fastest_candidate_is_decomposed(tmp_path: Path) -> None:
    for name, library in (("fake_driver", "libcuda.so.1"), ("fake_nvrtc", "libnvrtc.so.12")):
        options = ["--edition=2024", "--crate-type=cdylib", "--crate-name", name, "--check-cfg=cfg(lacking)"]
        source = ROOT / "cli" / "tests" / "gpu" / f"{name}.rs"
        command = [RUSTC, *options, "--cap-lints=allow", "-Copt-level=2", "-o", tmp_path / library, source]
        subprocess.run(command, check=True)  # type: ignore[arg-type]
    place = {"LD_LIBRARY_PATH": str(tmp_path), "CARBYNE_NVRTC": str(tmp_path), "FAKE_GEMM": "64,64,64,nt,f16,f16"}
    database = tmp_path / "carbyne.tuned"
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, database], env={**os.environ, **place}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    first, ended = ran.stdout.splitlines()
    text, figures, decomposed, stages = json.loads(first)
    candidates = figures["kernels"][0]["candidates"]
    assert "3 of 3 candidates measured on Fake GPU" in text and len(candidates) == 3
    assert f"by={candidates[0]['by']}" in decomposed or candidates[0]["by"] in database.read_text()
    assert candidates[0]["median_us"] == min(c["median_us"] for c in candidates)
    assert {stage for stage, _, _ in stages} >= {"measuring"}
    assert all(total is None or done <= total for _, done, total in stages)
    assert ended == "ended"
