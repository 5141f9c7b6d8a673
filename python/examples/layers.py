"""Runs a layer of a model with carbyne, in the simulator with NumPy, or on a GPU with PyTorch. See `llama_layer.py` and `bert_layer.py`."""

import argparse
import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

Functions = Mapping[str, Callable[..., Any]]

#: Allowed error of a layer relative to PyTorch in binary32 or NumPy in binary64, in the Euclidean norm.
TOLERANCE = 2e-3
ROUNDS = 100


class Layer(Protocol):
    """A layer: its parts in carbyne, NumPy and PyTorch, and the calls of the parts."""

    def weights(self, c: Any) -> dict[str, tuple[int, int]]: ...
    def tables(self, c: Any) -> Sequence[Any]: ...
    def kernels(self, c: Any) -> Functions: ...
    def of_numpy(self, c: Any) -> Functions: ...
    def of_torch(self, c: Any) -> Functions: ...
    def forward(self, c: Any, run: Functions, w: Mapping[str, Any], x: Any, *tables: Any) -> Any: ...


def main(about: str, layer: Layer, small: Any, sizes: Sequence[Any]) -> None:
    options = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--simulate", action="store_true", help="a small layer on the CPU")
    if options.parse_args().simulate:
        print(f"{small}: error {simulate(layer, small):.1e} relative to NumPy in binary64")
    else:
        for c in sizes:
            beside_torch(layer, c)


def drawn(layer: Layer, c: Any) -> tuple[Any, dict[str, Any]]:
    """Random input, and random weights that preserve the magnitude of values."""
    draw = np.random.default_rng(0)
    w = {
        name: (draw.standard_normal(shape) / (8 if shape[0] == 1 else math.sqrt(shape[1])) + (name in ("norm1", "norm2"))).astype(np.float16)
        for name, shape in layer.weights(c).items()
    }
    return draw.standard_normal((c.tokens, c.hidden)).astype(np.float16), w


def simulate(layer: Layer, c: Any) -> float:
    """Runs a layer on the CPU. Returns its error."""
    x, w = drawn(layer, c)
    tables = layer.tables(c)
    run = {name: kernel.jit("simulate", arch="sm_90a") for name, kernel in layer.kernels(c).items()}
    found = layer.forward(c, run, w, x, *tables).astype(np.float64)
    exact = [a.astype(np.float64) for a in (x, *tables)]
    wanted = layer.forward(c, layer.of_numpy(c), {k: v.astype(np.float64) for k, v in w.items()}, *exact)
    error = float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))
    assert error < TOLERANCE, error
    return error


def beside_torch(layer: Layer, c: Any) -> None:
    """Prints the errors and times of a layer and its parts on the GPU of this machine."""
    import torch

    x, w = drawn(layer, c)
    x, *tables = (torch.from_numpy(a).cuda() for a in (x, *layer.tables(c)))
    w = {k: torch.nn.Parameter(torch.from_numpy(v).cuda(), requires_grad=False) for k, v in w.items()}

    class Module(torch.nn.Module):
        """The layer as a PyTorch module with replaceable parts."""

        def __init__(self, run: Functions):
            super().__init__()
            self.run, self.w, self.tables = run, torch.nn.ParameterDict(w), tables

        def forward(self, x: Any) -> Any:
            return layer.forward(c, self.run, self.w, x, *self.tables)

    namespace = f"{Path(layer.__file__).stem}_{c.tokens}"
    operators = {part: kernel.as_op(f"{namespace}::{part}") for part, kernel in layer.kernels(c).items()}
    eager = layer.of_torch(c)
    modules = {"carbyne": Module(operators), "eager": Module(eager)}
    modules["torch.compile"] = torch.compile(modules["eager"], fullgraph=True)
    calls: dict[str, tuple[Any, ...]] = {}

    def noted(part: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            calls[part] = arguments
            return operators[part](*arguments)

        return call

    with torch.no_grad():
        torch.backends.cuda.matmul.allow_tf32 = False
        wanted = layer.forward(c, eager, {k: v.float() for k, v in w.items()}, x.float(), *(t.float() for t in tables))
        layer.forward(c, {part: noted(part) for part in operators}, w, x, *tables)
        for part, arguments in calls.items():
            error = difference(operators[part](*arguments), eager[part](*(a.float() for a in arguments)))
            assert error < TOLERANCE, f"{part}: {error}"
        # The fastest attention of PyTorch here.
        for other in ("flash", "mem_efficient", "math"):
            getattr(torch.backends.cuda, f"enable_{other}_sdp")(False)
        errors = {name: difference(module(x), wanted) for name, module in modules.items()}
        assert torch.equal(torch.compile(modules["carbyne"], fullgraph=True)(x), modules["carbyne"](x))
        assert errors["carbyne"] < TOLERANCE, errors
        rows = [("the layer", medians({name: lambda m=m: m(x) for name, m in modules.items()}))]
        for part, arguments in calls.items():
            torch._dynamo.reset()
            runs = {"carbyne": operators[part], "eager": eager[part], "torch.compile": torch.compile(eager[part], fullgraph=True)}
            rows.append((part, medians({name: lambda f=f: f(*arguments) for name, f in runs.items()})))
        torch.backends.cuda.enable_math_sdp(True)
    print(f"\n{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {c}\n")
    print(", ".join(f"{k} {e:.1e}" for k, e in errors.items()), "is the error relative to PyTorch in binary32\n")
    print("| | carbyne, µs | eager, µs | `torch.compile`, µs |\n| --- | ---: | ---: | ---: |")
    for part, times in rows:
        own = times["carbyne"]
        print(f"| {part} | {own:.1f} | " + " | ".join(f"{times[k]:.1f} ({times[k] / own:.2f})" for k in ("eager", "torch.compile")) + " |")


def difference(found: Any, wanted: Any) -> float:
    return ((found.float() - wanted).norm() / wanted.norm()).item()


def medians(calls: Functions) -> dict[str, float]:
    """Microseconds of each call. A CUDA graph contains only this call and is launched after a write of more bytes than the cache holds, in random order."""
    import torch

    flushed = torch.empty(256 << 20, device="cuda", dtype=torch.int8)
    graphs, times = {}, {name: [] for name in calls}
    for name, call in calls.items():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                call()
        torch.cuda.current_stream().wait_stream(side)
        graphs[name] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[name]):
            call()
    for turn in range(ROUNDS + 5):
        for name in random.sample(list(graphs), len(graphs)):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            flushed.zero_()
            begin.record()
            graphs[name].replay()
            end.record()
            torch.cuda.synchronize()
            if turn >= 5:
                times[name].append(1e3 * begin.elapsed_time(end))
    return {name: statistics.median(all) for name, all in times.items()}
