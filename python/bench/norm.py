"""Compares a kernel that is written in Python with PyTorch: a residual, a normalization, and a cast to 8 bits with a scale for each row.

    python python/bench/norm.py

Times are medians of 50 launches, each after a write of more bytes than the GPU's cache holds. Results are compared first.
"""

import statistics
from collections.abc import Callable

import torch

import carbyne
from carbyne.language import Kernel, Size, assume, cast, e4m3, f16, f32, maximum, rsqrt, symbols

ROWS, COLUMNS, LAUNCHES, ROUNDS = 4096, 4096, 50, 3
M, columns = symbols("M N", M=ROWS, N=COLUMNS)


def norm_of(N: Size | int) -> Kernel:
    """The kernel for rows of a number of elements, or of a symbolic size."""

    @carbyne.kernel
    def norm(
        X: f16[M, N], R: f16[M, N], weight: f16[1, N]
    ) -> {"sum": f16[M, N], "Q": e4m3[M, N], "scale": f32[M, 1]}:
        assume(M <= 65536)
        if N is columns:
            assume(N > 0, N <= 8192, N % 8 == 0)
        total = cast(cast(X, f32) + cast(R, f32), f16)
        x = cast(total, f32)
        y = x * rsqrt((x * x).sum(axis=1) / N + 1e-6) * cast(weight, f32)
        scale = maximum(abs(y).max(axis=1), 1e-12) / 448
        return {"sum": total, "Q": cast(y / scale, e4m3), "scale": scale}

    return norm


def of_torch(x: torch.Tensor, r: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, ...]:
    total = (x.float() + r.float()).half()
    y = total.float()
    y = y * torch.rsqrt((y * y).mean(1, keepdim=True) + 1e-6) * w.float()
    scale = y.abs().amax(1, keepdim=True).clamp_min(1e-12) / 448
    return total, (y / scale).to(torch.float8_e4m3fn), scale


def microseconds(call: Callable[[], object]) -> float:
    # Long enough that the host launches the call before the GPU begins it.
    flushed = torch.empty(512 << 20, device="cuda", dtype=torch.int32)
    times = []
    for _ in range(LAUNCHES):
        flushed.zero_()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        torch.cuda.synchronize()
        times.append(1e3 * begin.elapsed_time(end))
    return statistics.median(times)


def main() -> None:
    x, r = (torch.randn(ROWS, COLUMNS, device="cuda", dtype=torch.float16) for _ in range(2))
    w = torch.randn(1, COLUMNS, device="cuda", dtype=torch.float16)
    calls = {
        "carbyne": norm_of(COLUMNS).as_op("carbyne_bench::norm"),
        "carbyne, any columns": norm_of(columns).as_op("carbyne_bench::norm_any"),
        "torch.compile": torch.compile(of_torch),
        "PyTorch": of_torch,
    }
    wanted = of_torch(x, r, w)
    for name, call in calls.items():
        total, q, scale = call(x, r, w)
        assert torch.equal(total, wanted[0]), name
        # PyTorch's compiler omits the rounding of the sum to halves.
        torch.testing.assert_close(scale, wanted[2], rtol=1e-5 if name.startswith("carbyne") else 1e-3, atol=0)
        assert (q.float() != wanted[1].float()).float().mean() < 1e-4, name
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {ROWS} rows of {COLUMNS}")
    for _ in range(ROUNDS):
        own = 0.0
        for name, call in calls.items():
            time = microseconds(lambda: call(x, r, w))
            own = own or time
            print(f"{name}: {time:.1f} µs ({time / own:.2f})")


if __name__ == "__main__":
    main()
