"""Programs as functions of tensors of PyTorch, CuPy and JAX, on a GPU. `card.sh` runs these."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import carbyne
from samples import ROOT, at_once

torch = pytest.importorskip("torch", reason="PyTorch is not installed: calls on its tensors were not tested")
if not torch.cuda.is_available():
    pytest.skip("there is no GPU: calls on its tensors were not tested", allow_module_level=True)

EXAMPLES = ROOT / "examples"
TWO = """\
carbyne 2
sym M, N where M >= 1, M <= 4096, N >= 1, N <= 4096
%A:[M,N].f32.GL
%B:[M,N].f32.GL
%C:[M,N].f32.GL
BinaryPointwise.add @first (%A, %A) -> (%B)
BinaryPointwise.mul @second (%B, %A) -> (%C)
"""


@pytest.fixture(scope="module")
def gemm() -> carbyne.Function:
    return carbyne.Program.from_file(EXAMPLES / "gemm_any.cby").jit()


def operands(m: int, n: int, k: int) -> tuple[object, object]:
    torch.manual_seed(0)
    a = torch.randn(m, k, device="cuda", dtype=torch.float16)
    b = torch.randn(n, k, device="cuda", dtype=torch.float16)
    return a, b.t()


def test_a_product_is_that_of_torch(gemm: carbyne.Function) -> None:
    for m, n, k in ((131, 77, 72), (512, 1024, 256), (1, 1, 8)):
        a, b = operands(m, n, k)
        c = gemm(a, b)
        wanted = a.float() @ b.float()
        assert c.shape == (m, n) and c.dtype == torch.float16 and c.device == a.device
        torch.testing.assert_close(c.float(), wanted, atol=0.1, rtol=1e-2)
        out = torch.empty_like(c)
        assert gemm(a, b, out) is None
        assert torch.equal(out, c)
        assert torch.equal(gemm(A=a, B=b), c)


def behind_work(call: Callable[[object], object], a: object) -> object:
    """Calls on a busy stream, with a copy of a tensor that the stream creates last. The call must not wait for the stream."""
    stream = torch.cuda.Stream()
    busy = torch.randn(4096, 4096, device="cuda")
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        late = torch.zeros_like(a)
        for _ in range(20):
            busy @ busy
        late.copy_(a)
        result = call(late)
    assert not stream.query()
    stream.synchronize()
    return result


def test_a_call_is_on_the_current_stream(gemm: carbyne.Function) -> None:
    a, b = operands(512, 512, 512)
    wanted = gemm(a, b)
    c = behind_work(lambda late: gemm(late, b), a)
    assert torch.equal(c, wanted)


def test_a_function_of_tvm_ffi_is_on_the_current_stream(gemm: carbyne.Function) -> None:
    pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed: calls by it were not tested")
    exported = gemm.tvm_ffi()
    a, b = operands(512, 512, 512)
    wanted = gemm(a, b)
    c = torch.empty_like(wanted)
    behind_work(lambda late: exported(late, b, c), a)
    assert torch.equal(c, wanted)
    with pytest.raises(ValueError, match="extent 0 of `%C` is 511, but must be 512"):
        exported(a, b, c[:511])
    with pytest.raises(ValueError, match="lie on the CPU"):
        exported(a.cpu(), b.cpu(), c.cpu())
    # Several kernels with a workspace.
    two = carbyne.Program(TWO).jit().tvm_ffi()
    x = torch.rand(40, 50, device="cuda")
    y = torch.empty_like(x)
    two(x, y)
    torch.testing.assert_close(y, 2 * x * x)


def test_a_printed_function_of_tvm_ffi_launches(gemm: carbyne.Function, tmp_path: Path) -> None:
    tvm_ffi = pytest.importorskip("tvm_ffi", reason="apache-tvm-ffi is not installed: printed functions were not tested")
    if not (nvcc := shutil.which("nvcc")):
        pytest.skip("there is no nvcc: printed functions of tvm-ffi were not compiled")
    from tvm_ffi import libinfo

    link = Path(libinfo.find_libtvm_ffi()).parent
    decomposed = gemm.decomposed
    programs = {"gemm": decomposed, "two": carbyne.Program(TWO).decompose(decomposed.arch)}
    for name, one in programs.items():
        source = tmp_path / f"{name}.cu"
        source.write_text(one.cuda(name, tvm_ffi=True))
        # `-arch=sm_90a` of some versions of nvcc compiles for sm_90, too.
        number = decomposed.arch.removeprefix("sm_")
        target = f"-gencode=arch=compute_{number},code=sm_{number}"
        command = [nvcc, "-std=c++17", target, "-shared", "-Xcompiler", "-fPIC", str(source)]
        command += [f"-I{libinfo.find_include_path()}", f"-I{libinfo.find_dlpack_include_path()}"]
        command += ["-o", str(tmp_path / f"{name}.so"), f"-L{link}", "-ltvm_ffi", "-lcuda"]
        ran = subprocess.run(command, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr[-4000:]
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        a, b = operands(131, 77, 72)
        c = torch.empty(131, 77, device="cuda", dtype=torch.float16)
        tvm_ffi.load_module(str(tmp_path / "gemm.so"))["gemm"](a, b, c)
        assert torch.equal(c, gemm(a, b))
        x = torch.rand(40, 50, device="cuda")
        y = torch.empty_like(x)
        two = tvm_ffi.load_module(str(tmp_path / "two.so"))["two"]
        two(x, y)
        torch.testing.assert_close(y, 2 * x * x)
        with pytest.raises(ValueError, match="extent 0 of `C` is 39, and 40 is wanted"):
            two(x, y[:39])


def test_a_graph_captures_a_call(gemm: carbyne.Function) -> None:
    two = carbyne.Program(TWO).jit()
    a, b = operands(256, 128, 64)
    c = torch.empty(256, 128, device="cuda", dtype=torch.float16)
    x = torch.rand(40, 50, device="cuda")
    gemm(a, b, c), two(x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        gemm(a, b, c)
        y = two(x)
    for seed in (1, 2):
        torch.manual_seed(seed)
        a.copy_(torch.randn_like(a)), x.copy_(torch.rand_like(x)), c.zero_()
        graph.replay()
        torch.testing.assert_close(c.float(), a.float() @ b.float(), atol=0.1, rtol=1e-2)
        torch.testing.assert_close(y[-1] if isinstance(y, tuple) else y, 2 * x * x)


def test_examples_are_what_torch_computes() -> None:
    softmax = carbyne.Program.from_file(EXAMPLES / "softmax_any.cby").jit()
    for shape in ((5, 512), (64, 1000)):
        kinds = {t.name: t for t in softmax.decomposed.program.tensors}
        kind = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[kinds["X"].scalar]
        x = torch.randn(*shape, device="cuda", dtype=kind)
        torch.testing.assert_close(softmax(x).float(), torch.softmax(x.float(), 1), atol=1e-2, rtol=1e-2)
    norm = carbyne.Program.from_file(EXAMPLES / "layernorm_any.cby").jit()
    kinds = {t.name: t.scalar for t in norm.decomposed.program.tensors}
    kind = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}
    x = torch.randn(37, 768, device="cuda", dtype=kind[kinds["X"]])
    w = torch.randn(1, 768, device="cuda", dtype=kind[kinds["weight"]])
    b = torch.randn(1, 768, device="cuda", dtype=kind[kinds["bias"]])
    wanted = torch.nn.functional.layer_norm(x.float(), (768,), w[0].float(), b[0].float(), 1e-5)
    torch.testing.assert_close(norm(x, w, b).float(), wanted, atol=3e-2, rtol=3e-2)


def test_an_argument_that_does_not_fit_is_named(gemm: carbyne.Function) -> None:
    a, b = operands(64, 64, 64)
    for wrong, said in (
        ((a.cpu(), b), "lies on"),
        ((a.cpu(), b.cpu()), "lie on the CPU"),
        ((a.float(), b), "elements of float32"),
        ((a, b.contiguous()), "stride 0 of `%B`"),
        ((a.to("meta"), b), ""),
        ((a, b, a), "shares memory"),
        ((torch.empty(64 * 64 + 1, device="cuda", dtype=torch.float16)[1:].view(64, 64), b), "multiple of 16"),
        ((a[:, :12].contiguous(), b.t()[:, :12].contiguous().t()), "K = 12"),
    ):
        with pytest.raises((TypeError, ValueError, BufferError, RuntimeError)) as raised:
            gemm(*wrong)
        assert said in str(raised.value), raised.value
    torch.cuda.synchronize()


def test_tensors_that_are_views_are_taken() -> None:
    text = "carbyne 2\nsym M, L where M >= 1, M <= 4096, L >= 64, L <= 4096, L % 8 == 0\n%A:[(M,64):(L,1)].f16.GL\n%B:[(M,64):(L,1)].f16.GL\nBinaryPointwise.add @f (%A, %A) -> (%B)\n"
    f = carbyne.Program(text).jit()
    x = torch.randn(100, 192, device="cuda", dtype=torch.float16)
    wanted = 2 * x[:, :64]
    f(x[:, :64], x[:, 128:])
    assert torch.equal(x[:, 128:], wanted)


def test_types_that_few_have_are_taken() -> None:
    text = "carbyne 2\n%A:[64,64].bf16.GL\n%B:[64,64].bf16.GL\nBinaryPointwise.add @f (%A, %A) -> (%B)\n"
    a = torch.randn(64, 64, device="cuda", dtype=torch.bfloat16)
    assert torch.equal(carbyne.Program(text).jit()(a), a + a)
    text = "carbyne 2\n%A:[64,64].e4m3.GL\n%B:[64,64].e4m3.GL\nMove @f (%A) -> (%B)\n"
    a = torch.randn(64, 64, device="cuda").to(torch.float8_e4m3fn)
    assert torch.equal(carbyne.Program(text).jit()(a).view(torch.uint8), a.view(torch.uint8))


def test_many_threads_call_at_once(gemm: carbyne.Function) -> None:
    failed = []

    def call(n: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            for i in range(50):
                a, b = operands(n, 64 + n, 64)
                c = gemm(a, b)
                torch.cuda.current_stream().synchronize()
                if (c.float() - a.float() @ b.float()).abs().max() > 0.1:
                    failed.append((n, i))

    at_once(call, (5, 64, 77, 300))
    assert not failed


def test_a_forked_process_is_told_so(gemm: carbyne.Function) -> None:
    a, b = operands(64, 64, 64)
    gemm(a, b)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            gemm(a, b)
            os.write(write, b"launched")
        except BaseException as error:
            os.write(write, str(error).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert b"spawn" in os.read(read, 10000)


def test_arrays_of_cupy_are_taken(gemm: carbyne.Function) -> None:
    cupy = pytest.importorskip("cupy")
    a = cupy.random.standard_normal((65, 72)).astype(cupy.float16)
    b = cupy.random.standard_normal((33, 72)).astype(cupy.float16).T
    with cupy.cuda.Stream(non_blocking=True) as stream:
        c = gemm(a, b)
        assert isinstance(c, cupy.ndarray) and c.shape == (65, 33)
        stream.synchronize()
    wanted = a.astype(cupy.float32) @ b.astype(cupy.float32)
    assert abs(c.astype(cupy.float32) - wanted).max() < 0.1


def test_arrays_of_jax_are_taken() -> None:
    jax = pytest.importorskip("jax")
    twice = carbyne.Program(TWO.replace("%C:[M,N].f32.GL\n", "").split("BinaryPointwise.mul")[0]).jit()
    a = jax.random.normal(jax.random.key(0), (40, 50))
    b = twice(a)
    assert isinstance(b, jax.Array) and (b == 2 * a).all()
    with pytest.raises(carbyne.ArgumentError, match="read-only"):
        twice(a, b)


@pytest.fixture(scope="module")
def norm() -> object:
    """A normalization of rows as an operator, with its gradient."""
    from carbyne.language import assume, f32, rsqrt, symbols

    M, N = symbols("M N", M=4096, N=1024)

    @carbyne.kernel
    def forward(X: f32[M, N], w: f32[1, N]) -> {"Y": f32[M, N], "scale": f32[M, 1]}:
        assume(N > 0, N <= 8192, N % 4 == 0)
        scale = rsqrt((X * X).sum(axis=1) / N + 1e-6)
        return {"Y": X * scale * w, "scale": scale}

    @carbyne.kernel
    def gradient(X: f32[M, N], w: f32[1, N], scale: f32[M, 1], G: f32[M, N]) -> {"D": f32[M, N]}:
        assume(N > 0, N <= 8192, N % 4 == 0)
        g = G * w * scale
        x = X * scale
        return g - x * ((g * x).sum(axis=1) / N)

    back = gradient.as_op("carbyne_test::norm_gradient")

    def setup(ctx: object, inputs: tuple, output: tuple) -> None:
        ctx.save_for_backward(*inputs, output[1])
        ctx.set_materialize_grads(True)

    def backward(ctx: object, g: object, _: object) -> tuple:
        x, w, scale = ctx.saved_tensors
        return back(x, w, scale, g.contiguous()), (g * x * scale).sum(0, keepdim=True)

    return forward.as_op("carbyne_test::norm", backward=backward, setup_context=setup)


def normalized(x: object, w: object) -> object:
    return x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6) * w


def test_an_operator_computes_and_has_gradients(norm: object) -> None:
    x = torch.randn(33, 256, device="cuda", requires_grad=True)
    w = torch.randn(1, 256, device="cuda", requires_grad=True)
    y, _ = norm(x, w)
    wanted = normalized(x, w)
    torch.testing.assert_close(y, wanted, rtol=1e-4, atol=1e-4)
    g = torch.randn_like(y)
    found = torch.autograd.grad(y, (x, w), g)
    for a, b in zip(found, torch.autograd.grad(wanted, (x, w), g)):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3)


def test_an_operator_passes_the_checks_of_torch(norm: object) -> None:
    for m, n in ((33, 256), (1, 4)):
        x = torch.randn(m, n, device="cuda", requires_grad=True)
        w = torch.randn(1, n, device="cuda", requires_grad=True)
        torch.library.opcheck(norm, (x, w))


def test_an_operator_is_compiled_and_exported_as_a_whole(norm: object) -> None:
    def model(x: object, w: object) -> object:
        return torch.relu(norm(x, w)[0] + 1)

    w = torch.randn(1, 256, device="cuda")
    compiled = torch.compile(model, fullgraph=True, dynamic=True)
    for m in (17, 40):
        x = torch.randn(m, 256, device="cuda")
        torch.testing.assert_close(compiled(x, w), torch.relu(normalized(x, w) + 1), rtol=1e-4, atol=1e-4)

    class Model(torch.nn.Module):
        def forward(self, x: object, w: object) -> object:
            return model(x, w)

    rows = torch.export.Dim("rows", min=2, max=4096)
    exported = torch.export.export(Model(), (x, w), dynamic_shapes={"x": {0: rows}, "w": None})
    assert "carbyne_test.norm" in str(exported.graph)
    torch.testing.assert_close(exported.module()(x, w), model(x, w))


def test_a_graph_captures_an_operator(norm: object) -> None:
    x, w = torch.randn(64, 256, device="cuda"), torch.randn(1, 256, device="cuda")
    norm(x, w)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y, _ = norm(x, w)
    x.copy_(torch.randn_like(x))
    graph.replay()
    torch.testing.assert_close(y, normalized(x, w), rtol=1e-4, atol=1e-4)


def test_an_operator_of_the_cpu_is_simulated(norm: object) -> None:
    x, w = torch.randn(4, 16), torch.randn(1, 16)
    torch.testing.assert_close(norm(x, w)[0], normalized(x, w), rtol=1e-4, atol=1e-4)


def test_an_operator_updates_tensors_in_place() -> None:
    append = carbyne.Program.from_file(EXAMPLES / "cache_append.cby").as_op("carbyne_test::append")
    k, v = (torch.randn(3, 1024, device="cuda", dtype=torch.float16) for _ in range(2))
    keys, values = (torch.zeros(8, 1024, device="cuda", dtype=torch.float16) for _ in range(2))
    slots = torch.tensor([5, 0, 2], device="cuda", dtype=torch.int32)
    append(k, v, slots, keys, values)
    assert torch.equal(keys[slots.long()], k) and torch.equal(values[slots.long()], v)
    assert not keys[1].any()
    torch.library.opcheck(append, (k, v, slots, keys, values))


def test_names_of_operators_are_checked() -> None:
    program = carbyne.Program(TWO)
    with pytest.raises(ValueError, match="mine::norm"):
        program.as_op("norm")
    sized = carbyne.Program("carbyne 2\nsym N where N > 0\n%A:[2 * N].f32.GL\n%B:[2 * N].f32.GL\nMove @copy (%A) -> (%B)")
    with pytest.raises(ValueError, match="`N` is no extent of an argument"):
        sized.as_op("carbyne_test::sized")
