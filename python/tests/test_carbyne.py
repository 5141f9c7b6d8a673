"""The public interface of the package."""

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import carbyne
from samples import GEMM, ROOT, at_once, run_page


def test_a_program_is_decomposed_simulated_and_printed() -> None:
    program = carbyne.Program(GEMM)
    assert program.kernels == ["gemm"]
    assert [(t.name, t.extents, t.is_output) for t in program.tensors] == [
        ("A", ("64", "32"), False),
        ("B", ("32", "64"), False),
        ("C", ("64", "64"), True),
    ]
    kernel = program.decompose("sm_80")
    rng = np.random.default_rng(0)
    a = rng.standard_normal((64, 32)).astype(np.float16)
    b = rng.standard_normal((32, 64)).astype(np.float16)
    run = kernel.simulate(A=a, B=b)
    wanted = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(run["C"].astype(np.float32), wanted, rtol=2e-3, atol=2e-3)
    assert run.kernels[0]["complete"] and run.kernels[0]["multiply_adds"] == 64 * 64 * 32
    assert "__global__" in kernel.cuda("gemm") and "gemm(" in kernel.cuda("gemm")
    assert kernel.abi()["kernels"] and kernel.certificates
    # The decomposed text is a program with an equal result.
    again = carbyne.Program(kernel.text)
    assert again.decompose("sm_80").text == kernel.text
    assert again.check("sm_80")[0]["pairs"]


#: Where `cargo xtask setup` puts NVRTC, beside this environment.
NVRTC = sorted(
    (Path(sys.prefix).parent / "cuda").glob("lib/*/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.*")
)


@pytest.mark.skipif(not NVRTC, reason="NVRTC is not installed: `cargo xtask setup` does it")
def test_kernels_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARBYNE_NVRTC", str(NVRTC[0]))
    kernel = carbyne.Program(GEMM).decompose("sm_80")
    assert b".entry gemm" in kernel.compile("ptx")
    assert kernel.compile()[:4] == b"\x7fELF"
    with pytest.raises(ValueError, match="sass"):
        kernel.compile("sass")


def test_options_of_decompose_are_taken() -> None:
    program = carbyne.Program(GEMM)
    plain = program.decompose("sm_80")
    without = program.decompose("sm_80", forbid=["ldmatrix.*"])
    assert "ldmatrix" in plain.text and "ldmatrix" not in without.text
    assert len(program.decompose("sm_80", top=3).document["solutions"]) == 3
    with pytest.raises(ValueError, match="ldmatrx"):
        program.decompose("sm_80", forbid=["ldmatrx.x4.b16"])
    with pytest.raises(ValueError, match="sm_8"):
        program.decompose("sm_8")


def test_a_missing_barrier_is_an_error_with_an_edit() -> None:
    text = carbyne.Program(GEMM).decompose("sm_80").text
    lines = text.splitlines(keepends=True)
    barrier = next(i for i, line in enumerate(lines) if line.strip() == "barrier")
    wrong = "".join(lines[:barrier] + lines[barrier + 1 :])
    with pytest.raises(carbyne.Error) as caught:
        carbyne.Program(wrong).check("sm_80")
    first = caught.value.diagnostics[0]
    assert first.code == "T0801" and first.spans[0].line > 0
    with pytest.raises(carbyne.Error, match="S05"):
        carbyne.Program(wrong).simulate(arch="sm_80")


def test_errors_are_exceptions_with_places() -> None:
    with pytest.raises(carbyne.Error) as caught:
        carbyne.Program(GEMM.replace("f32", "f23"))
    error = caught.value
    assert error.diagnostics[0].spans[0].line == 5
    assert "gemm" in str(error) and error._repr_html_().startswith("<pre>")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.diagnostics == error.diagnostics
    layout_error = pytest.raises(carbyne.LayoutError, carbyne.Layout, "(4,8):(1").value
    assert str(pickle.loads(pickle.dumps(layout_error))) == str(layout_error)


def test_arrays_that_do_not_fit_are_refused() -> None:
    program = carbyne.Program(GEMM)
    with pytest.raises(ValueError, match="%A"):
        program.simulate(A=np.zeros((64, 32), np.float64))
    with pytest.raises(ValueError, match="%A.*64, 32"):
        program.simulate(A=np.zeros((32, 64), np.float16))
    # The array would have 4 GB.
    with pytest.raises(ValueError, match="%A"):
        program.simulate(A=np.broadcast_to(np.float16(1), (1 << 16, 1 << 15)))
    with pytest.raises(ValueError, match="%X"):
        program.simulate(X=np.zeros(3))
    zeros = np.zeros((64, 32), np.float16)
    for wrong in [np.array([None]), "x", np.ma.masked_array(zeros), np.zeros((64, 32), [("a", "f2")])]:
        with pytest.raises(TypeError, match="%A"):
            program.simulate(A=wrong)
    with pytest.raises(TypeError, match="twice"):
        program.simulate({"A": zeros}, A=zeros)
    with pytest.raises(ValueError, match="symbol `N`"):
        program.simulate(symbols={"N": 3})
    big_endian = program.simulate(A=np.ones((64, 32), ">f2"), B=np.ones((32, 64), np.float16))
    assert (big_endian["C"] == 32).all()
    # Layouts of NumPy do not matter.
    a = np.asfortranarray(np.arange(64 * 32).reshape(64, 32) % 7).astype(np.float16)
    eye = np.eye(32, 64, dtype=np.float16)
    np.testing.assert_array_equal(program.simulate(A=a[::-1], B=eye)["C"][:, :32], a[::-1])
    bits = np.zeros((64, 32), np.uint16)
    bf16 = carbyne.Program(GEMM.replace("f16", "bf16"))
    assert bf16.simulate(A=bits)["C"].dtype == np.uint16


def test_symbols_are_given_by_name() -> None:
    program = carbyne.Program.from_file(ROOT / "examples" / "add_any.cby")
    assert program.symbols
    sizes = {name: 128 for name in program.symbols}
    run = program.decompose("sm_80").simulate(symbols=sizes)
    assert all(run.kernels)


def test_programs_are_copied_and_pickled() -> None:
    program = carbyne.Program(GEMM)
    assert copy.deepcopy(program) is program
    assert pickle.loads(pickle.dumps(program)).text == GEMM
    kernel = program.decompose("sm_80", forbid="ldmatrix.*")
    assert copy.deepcopy(kernel) is kernel


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero")
def test_a_file_without_an_end_is_refused() -> None:
    with pytest.raises(carbyne.Error):
        carbyne.Program.from_file("/dev/zero")


def test_numbers_out_of_range_are_named() -> None:
    program = carbyne.Program(GEMM)
    for name, wrong in [("top", 0), ("sms", 0), ("sms", 2**40), ("budget", -1)]:
        with pytest.raises(ValueError, match=name):
            program.decompose("sm_80", **{name: wrong})
    for name, wrong in [("blocks", 0), ("schedule", -1), ("seed", -1), ("budget", 2**70)]:
        with pytest.raises(ValueError, match=name):
            program.simulate(**{name: wrong})
    with pytest.raises(TypeError, match="blocks"):
        program.simulate(blocks=1.5)
    any_size = carbyne.Program.from_file(ROOT / "examples" / "add_any.cby").decompose("sm_80")
    with pytest.raises(ValueError, match="symbols"):
        any_size.simulate(symbols={any_size.program.symbols[0]: 2**63})


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda p: p.decompose("sm_80", forbid=[1]), r"`forbid\[0\]` must be a string, not 1"),
        (lambda p: p.decompose("sm_80", forbid=1), "`forbid` must be a string or a list of strings, not 1"),
        (lambda p: p.decompose("sm_80", exhaustive="no"), "`exhaustive` is neither True nor False: 'no'"),
        (lambda p: p.decompose(80), "`arch` must be a string, not 80"),
        (lambda p: p.jit("simulate", exhaustive="no"), "`exhaustive` is neither"),
        (lambda p: p.jit("simulate", widths=3), "there is no option `widths`"),
        (lambda p: p.tune(symbols=3), "`symbols` must be a mapping of names to integers, not 3"),
        (lambda p: p.tune(symbols={"N": "x"}), r"`symbols\['N'\]` must be an integer, not 'x'"),
        (lambda p: p.simulate(symbols=3), "`symbols` must be a mapping"),
        (lambda p: p.draw(None), "`tensor` must be a string, not None"),
        (lambda p: p.draw("%A", tile=(4, 8)), r"`tile\[0\]` must be a string, not 4"),
    ],
)
def test_an_argument_of_another_type_is_named(call, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        call(carbyne.Program(GEMM))


def test_unknown_instructions_are_errors_with_places() -> None:
    text = carbyne.Program(GEMM).decompose("sm_80").text
    for arch in [None, "sm_80"]:
        with pytest.raises(carbyne.Error) as caught:
            carbyne.Program(text.replace("atom=mma.", "atom=mmx.", 1)).check(arch)
        first = caught.value.diagnostics[0]
        assert "mmx" in first.message and first.spans[0].line > 1


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_pipes_are_not_imported(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    main = tmp_path / "main.cby"
    main.write_text('carbyne 2\nimport "pipe"\n')
    with pytest.raises(carbyne.Error, match="V0238"):
        carbyne.Program.from_file(main)


def test_files_are_named_by_paths() -> None:
    with pytest.raises(TypeError):
        carbyne.Program.from_file(0)  # type: ignore[arg-type]
    with pytest.raises(OSError):
        carbyne.Program(GEMM).decompose("sm_80", strategies=b"none")  # type: ignore[arg-type]


def test_imports_stay_in_the_folder(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    inside.mkdir()
    (tmp_path / "secret.cby").write_text("carbyne 2\n")
    main = inside / "main.cby"
    main.write_text('carbyne 2\nimport "../secret.cby"\n')
    with pytest.raises(carbyne.Error, match="V0238"):
        carbyne.Program.from_file(main)


def test_long_work_releases_the_lock() -> None:
    program = carbyne.Program(GEMM.replace("64", "512").replace("32", "512", 0))
    turns, done = 0, threading.Event()

    def work() -> None:
        program.decompose("sm_90a", exhaustive=True)
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.wait(0.001):
        turns += 1
    thread.join()
    assert turns > 0


def test_many_threads_decompose_one_program() -> None:
    program = carbyne.Program(GEMM)
    texts: list[str] = []
    at_once(lambda _: texts.append(program.decompose("sm_80").text), range(4))
    assert len(set(texts)) == 1 and len(texts) == 4


def test_the_command_line_is_part_of_the_package() -> None:
    command = [sys.executable, "-m", "carbyne", "check", "-"]
    ran = subprocess.run(command, input=GEMM, text=True, capture_output=True, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")
    ran = subprocess.run(command, input="carbyne 2\n%", text=True, capture_output=True, check=False)
    assert ran.returncode == 1 and "P0001" in ran.stderr
    command = [sys.executable, "-m", "carbyne", "check", b"\xff.cby"]
    ran = subprocess.run(command, text=True, capture_output=True, check=False)
    assert ran.returncode == 2 and "Traceback" not in ran.stderr


@pytest.mark.parametrize("page", ["README.md", "python/README.md", "docs/python.md", "docs/tutorial.md"])
def test_examples_of_pages_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page)


def interrupted(work: str, after: float) -> float:
    """The seconds from Ctrl-C to the end of a process that does the work."""
    # A process that was started in the background ignores Ctrl-C, and so do those that it starts.
    script = f"import carbyne, signal, sys\nsignal.signal(signal.SIGINT, signal.default_int_handler)\nprint('on', flush=True)\ntry:\n    while True:\n        {work}\nexcept KeyboardInterrupt:\n    sys.exit(7)\n"
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=ROOT)
    try:
        assert process.stdout is not None and process.stdout.readline() == b"on\n"
        time.sleep(after)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 7
        return time.monotonic() - began
    finally:
        process.kill()  # Do not leave a hanging process behind.


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize("after", [0.3, 1.1])
@pytest.mark.parametrize(
    "work",
    [
        "carbyne.Program.from_file('examples/gemm_any.cby').decompose('sm_90a')",
        "carbyne.Program.from_file('examples/gemm.cby').decompose('sm_80', exhaustive=True)",
        "carbyne.Program.from_file('examples/hopper_gemm_by_hand.cby').check('sm_90a')",
        "carbyne.Program.from_file('examples/gemm.cby').decompose('sm_80').simulate()",
    ],
)
def test_ctrl_c_ends_long_work(work: str, after: float) -> None:
    assert interrupted(work, after) < 3  # Half a second on an idle machine.
