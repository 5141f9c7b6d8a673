"""Explanations, pictures and data of programs; progress; decompositions in the cache."""

import json
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import carbyne
from carbyne import _native, cache
from samples import GEMM, TWICE

pytestmark = pytest.mark.usefixtures("place")


def test_a_diagnostic_without_edits_mends_nothing() -> None:
    text = "carbyne 2\n%A:[4503599627370496].f16.GL"
    with pytest.raises(carbyne.Error) as error:
        carbyne.Program(text)
    (first,) = error.value.diagnostics
    assert first.edits == () and first.help
    with pytest.raises(ValueError, match="X0007 has no edits: make the tensor smaller"):
        first.mend(text)


def test_why_an_instruction_was_taken_is_explained() -> None:
    program = carbyne.Program(GEMM)
    found = program.explain("sm_80")
    assert {leaf["line"] for leaf in found["leaves"]} == {5} and found["refused"] == []
    assert str(found).splitlines() and json.dumps(dict(found))
    assert found._repr_html_().startswith("<pre>")
    narrow = program.explain("sm_80", why="ldmatrix", at=5)
    assert all("ldmatrix" in c["atom"] for leaf in narrow["leaves"] for c in leaf["considered"])
    of_text = program.decompose("sm_80").explain(why="ldmatrix.x4.b16")
    assert any(c["matches"] for leaf in of_text["leaves"] for c in leaf["considered"])


def test_a_wrong_question_is_a_wrong_argument() -> None:
    program = carbyne.Program(GEMM)
    with pytest.raises(ValueError, match="use the nearest one: `at=5`"):
        program.explain("sm_80", at=2)
    with pytest.raises(ValueError, match="sm_1"):
        program.explain("sm_1")
    with pytest.raises(ValueError, match="has no tensor `%X`; use one of its tensors: %A, %B, %C"):
        program.draw("X")
    with pytest.raises(carbyne.Error, match="L0110"):
        program.draw("%A", tile="(0,3)")


def test_tensors_are_drawn() -> None:
    kernel = carbyne.Program(GEMM).decompose("sm_80")
    for picture in (carbyne.Program(GEMM).draw("%A"), kernel.draw("%sA", banks=True), kernel.draw("A", tile="(8,8)")):
        assert picture.startswith("<svg") and picture._repr_svg_() == picture
        assert repr(picture).startswith("<Picture of ")
    large = carbyne.Program("carbyne 2\n%A:[64,64].f16.GL").draw("%A")
    assert "`whole=True` draws all" in large and "--" not in large


def test_a_program_that_imports_is_explained_and_drawn(tmp_path: Path) -> None:
    (tmp_path / "part.cby").write_text("carbyne 2\n")
    main = tmp_path / "main.cby"
    main.write_text(GEMM.replace("carbyne 2\n", 'carbyne 2\nimport "part.cby"\n'))
    program = carbyne.Program.from_file(main)
    assert program.draw("%A").startswith("<svg")
    assert program.explain("sm_80")["leaves"]


def test_a_complete_program_has_an_abi() -> None:
    kernel = carbyne.Program(GEMM).decompose("sm_80")
    assert kernel.program.abi("sm_80")["kernels"] == kernel.abi()["kernels"]
    with pytest.raises(carbyne.Error):
        carbyne.Program(GEMM).abi()


def test_choices_and_order_are_data() -> None:
    kernel = carbyne.Program(GEMM).decompose("sm_80")
    assert any("mma." in choice["choice"] for choice in kernel.choices)
    assert kernel.estimates["cycles"] > 0 and "choices" not in kernel.estimates
    assert kernel.order[0]["pairs"]


def test_programs_are_equal_by_their_text_and_imports(tmp_path: Path) -> None:
    assert carbyne.Program(GEMM) == carbyne.Program(GEMM) != carbyne.Program(TWICE)
    assert len({carbyne.Program(GEMM), carbyne.Program(GEMM)}) == 1
    assert carbyne.Program(GEMM) != GEMM


def test_a_decomposition_is_pickled_as_a_text() -> None:
    kernel = carbyne.Program(GEMM).decompose("sm_80", forbid="ldmatrix.*")
    again = pickle.loads(pickle.dumps(kernel))
    assert again == kernel and hash(again) == hash(kernel) and again.warnings == kernel.warnings
    assert again.choices == kernel.choices and again.abi() == kernel.abi()
    ones = np.ones((64, 32), np.float16)
    assert (again.simulate(A=ones, B=ones.T)["C"] == 32).all()
    remade, (source, how, text, said) = kernel.__reduce__()  # type: ignore[misc]
    with pytest.raises(ValueError, match="not a decomposition"):
        remade(source, how, text.replace("barrier", "// barrier"), said)  # type: ignore[operator]


def test_progress_is_told() -> None:
    told: list[carbyne.Progress] = []
    program = carbyne.Program(GEMM.replace("64,32", "512,512").replace("32,64", "512,512").replace("64,64", "512,512"))
    program.decompose("sm_90a", progress=told.append)
    assert told and all(p.total is None or p.done <= p.total for p in told)
    assert told[-1] == carbyne.Progress("proving", 1, 1, "@gemm")
    assert len(set(told)) == len(told)
    program.decompose("sm_80", progress=True)
    with pytest.raises(TypeError, match="`progress` is int"):
        program.decompose("sm_80", progress=3)  # type: ignore[arg-type]


def test_an_exception_of_whoever_is_told_ends_the_work() -> None:
    class Enough(Exception):
        pass

    def stop(_: carbyne.Progress) -> None:
        raise Enough

    with pytest.raises(Enough):
        carbyne.Program(GEMM).decompose("sm_80", progress=stop)


def test_help_names_keywords_of_python() -> None:
    with pytest.raises(carbyne.Error) as raised:
        carbyne.Program(TWICE).decompose("sm_80").simulate()
    (first,) = raised.value.diagnostics
    assert first.code == "D0306" and "`symbols=" in str(first.help)
    assert "--sym" not in str(raised.value)


def test_jit_decomposes_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = np.ones(8, np.float32)
    assert (carbyne.Program(TWICE).jit("simulate")(one) == 2).all()
    (entry,) = place.iterdir()

    f = carbyne.Program(TWICE).jit("simulate")
    assert (f(one) == 2).all() and f.decomposed._native.is_restored
    assert f.decomposed.choices and f.decomposed == carbyne.Program(TWICE).decompose("sm_80")
    # Another program, architecture or option is another entry.
    carbyne.Program(TWICE.replace("N >= 1", "N >= 2")).jit("simulate")
    carbyne.Program(TWICE).jit("simulate", arch="sm_90")
    carbyne.Program(TWICE).jit("simulate", forbid="ld.global.b128")
    assert len(list(place.iterdir())) == 4 and entry in place.iterdir()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        b'["carbyne 2\\n", "[]"]',
        json.dumps([TWICE, "[]"]).encode(),
        json.dumps([carbyne.Program(GEMM).decompose("sm_80").text, "[]"]).encode(),
    ],
)
def test_an_entry_that_is_no_decomposition_is_made_again(place: Path, data: bytes) -> None:
    carbyne.Program(TWICE).jit("simulate")
    (path,) = place.iterdir()
    cache._write(path, data)
    f = carbyne.Program(TWICE).jit("simulate")
    assert (f(np.ones(8, np.float32)) == 2).all() and not f.decomposed._native.is_restored
    assert carbyne.Program(TWICE).jit("simulate").decomposed._native.is_restored


def test_a_full_disk_is_said_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_warned", False)
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("no space is left")))
    with pytest.warns(RuntimeWarning, match="nothing is kept: no space is left"):
        carbyne.Program(TWICE).jit("simulate")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        carbyne.Program(TWICE).jit("simulate")


def test_tuning_without_a_gpu_is_an_error_of_the_command(tmp_path: Path) -> None:
    try:
        _native.gpu(0)
    except carbyne.Error:
        pass
    else:
        pytest.skip("there is a GPU; test_card.py tunes on it")
    source = tmp_path / "gemm.cby"
    source.write_text(GEMM)
    command = [sys.executable, "-m", "carbyne", "--message-format", "json", "tune", str(source), "--device"]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=False).stderr)
    with pytest.raises(carbyne.Error) as raised:
        carbyne.Program(GEMM).tune(top=2, progress=lambda p: None)
    (first,) = raised.value.diagnostics
    assert (first.code, first.message, first.help) == (said["code"], said["message"], said["help"])
    with pytest.raises(ValueError, match=r"1\.\.=64"):
        carbyne.Program(GEMM).tune(top=1000)
