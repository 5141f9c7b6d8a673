"""A layer of BERT-large with kernels that are written in Python: linear layers, attention, GELU and norms.

    python python/examples/bert_layer.py               # on a GPU, with PyTorch: errors, and times of the layer and its parts
    python python/examples/bert_layer.py --simulate    # a small layer on the CPU, compared with NumPy; needs no PyTorch

Weights are random. The kernels of the products include bias, residual and GELU; that of attention includes softmax. PyTorch only creates views.
"""

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import carbyne
import layers
from carbyne import language as cl
from carbyne.language import cast, exp, f16, f32, gelu, rsqrt, sqrt


#: Queries and keys of a tile of attention.
TILE = 64


@dataclass(frozen=True)
class Config:
    """Sizes of a layer. The defaults are those of BERT-large (J. Devlin et al., arXiv 1810.04805, section 3), and the sequence length of its question answering."""

    batch: int = 1
    length: int = 384
    heads: int = 16
    head: int = 64
    inner: int = 4096

    def __post_init__(self) -> None:
        if self.length % TILE or not self.length:
            raise ValueError(f"attention has whole tiles: the length is a multiple of {TILE}, not {self.length}")

    @property
    def hidden(self) -> int:
        return self.heads * self.head

    @property
    def tokens(self) -> int:
        return self.batch * self.length


def kernels(c: Config) -> dict[str, Any]:
    """The kernels of a layer. Weights are `[outputs, inputs]`, as in PyTorch."""
    M, S, H, D, F, N = c.tokens, c.length, c.heads, c.head, c.inner, c.hidden

    @carbyne.kernel
    def qkv(X: f16[M, N], W: f16[3 * N, N], bias: f16[1, 3 * N]) -> {"Y": f16[M, 3 * N]}:
        return cast(X @ W.T + cast(bias, f32), f16)

    operand = f16[c.batch, H, S, D].strides(3 * S * N, D, 3 * N, 1)
    result = f16[c.batch, H, S, D].strides(S * N, D, N, 1)

    @carbyne.kernel
    def attends(Q: operand, K: operand, V: operand) -> {"O": result}:
        s = Q @ K.T / sqrt(D)
        p = exp(s - s.max(axis=3))
        return p / p.sum(axis=3) @ V

    B = TILE

    @carbyne.tile(grid={"i": S // B, "h": H, "b": c.batch}, threads=2 * B, means=attends)
    def attention(body, Q: operand, K: operand, V: operand) -> {"O": result}:
        i, h, b = body.at
        q = body.move(Q[b, h, :, :].tile([B, D])[i, 0])
        top = body.tensor(f32[B, 1], -math.inf)
        total = body.tensor(f32[B, 1], 0)
        o = body.tensor(f32[B, D], 0)
        with body.loop("t", S // B, stages=2) as t:
            k = body.move(K[b, h, :, :].tile([B, D])[t, 0], "SH")
            v = body.move(V[b, h, :, :].tile([B, D])[t, 0], "SH")
            s = q @ k.T / sqrt(D)
            new = cl.max(s.max(axis=1), top)
            old = exp(top - new, math="fast")
            o[...] = o * old
            p = exp(s - new)
            total[...] = total * old + p.sum(axis=1)
            body.matmul(cast(p, f16), v, o)
            top[...] = new
        # Through shared memory, to make wide stores.
        y = body.move(cast(o / total, f16), "SH")
        body.move(y, body["O"][b, h, :, :].tile([B, D])[i, 0])

    @carbyne.kernel
    def out(X: f16[M, N], W: f16[N, N], bias: f16[1, N], R: f16[M, N]) -> {"Y": f16[M, N]}:
        return cast(X @ W.T + cast(bias, f32) + cast(R, f32), f16)

    @carbyne.kernel
    def norm(X: f16[M, N], weight: f16[1, N], bias: f16[1, N]) -> {"Y": f16[M, N]}:
        x = cast(X, f32)
        centered = x - x.sum(axis=1) / N
        variance = (centered * centered).sum(axis=1) / N
        return cast(centered * rsqrt(variance + 1e-12) * cast(weight, f32) + cast(bias, f32), f16)

    @carbyne.kernel
    def widen(X: f16[M, N], W: f16[F, N], bias: f16[1, F]) -> {"Y": f16[M, F]}:
        return cast(gelu(X @ W.T + cast(bias, f32)), f16)

    @carbyne.kernel
    def narrow(X: f16[M, F], W: f16[N, F], bias: f16[1, N], R: f16[M, N]) -> {"Y": f16[M, N]}:
        return cast(X @ W.T + cast(bias, f32) + cast(R, f32), f16)

    return {k.__name__: k for k in (qkv, attention, out, norm, widen, narrow)}


def forward(c: Config, run: Mapping[str, Callable[..., Any]], w: Mapping[str, Any], x: Any) -> Any:
    """The layer, for tensors of PyTorch or arrays of NumPy, as `run` needs. Between kernels there are only views."""
    heads = run["qkv"](x, w["qkv"], w["qkv_bias"]).reshape(c.batch, c.length, 3, c.heads, c.head)
    q, k, v = (heads[:, :, n].swapaxes(1, 2) for n in range(3))
    o = run["attention"](q, k, v).swapaxes(1, 2).reshape(c.tokens, c.hidden)
    x = run["norm"](run["out"](o, w["out"], w["out_bias"], x), w["norm1"], w["norm1_bias"])
    y = run["narrow"](run["widen"](x, w["widen"], w["widen_bias"]), w["narrow"], w["narrow_bias"], x)
    return run["norm"](y, w["norm2"], w["norm2_bias"])


def weights(c: Config) -> dict[str, tuple[int, int]]:
    """Shapes of the weights."""
    N, F = c.hidden, c.inner
    matrices = {"qkv": (3 * N, N), "out": (N, N), "widen": (F, N), "narrow": (N, F), "norm1": (1, N), "norm2": (1, N)}
    return matrices | {f"{k}_bias": (1, n if k.startswith("norm") else m) for k, (m, n) in matrices.items()}


def tables(c: Config) -> tuple[()]:
    return ()


def of_numpy(c: Config) -> dict[str, Callable[..., Any]]:
    """The kernels in NumPy."""

    def attention(q, k, v):
        s = q @ k.swapaxes(2, 3) / math.sqrt(c.head)
        p = np.exp(s - s.max(3, keepdims=True))
        return p / p.sum(3, keepdims=True) @ v

    def norm(x, w, b):
        x = x - x.mean(1, keepdims=True)
        return x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-12) * w + b

    return {
        "qkv": lambda x, w, b: x @ w.T + b,
        "attention": attention,
        "out": lambda x, w, b, r: x @ w.T + b + r,
        "norm": norm,
        "widen": lambda x, w, b: np.vectorize(lambda y: y / 2 * math.erfc(-y / math.sqrt(2)))(x @ w.T + b),
        "narrow": lambda x, w, b, r: x @ w.T + b + r,
    }


def of_torch(c: Config) -> dict[str, Callable[..., Any]]:
    """The kernels in PyTorch, as models usually write them."""
    import torch.nn.functional as F

    return {
        "qkv": lambda x, w, b: F.linear(x, w, b[0]),
        "attention": F.scaled_dot_product_attention,
        "out": lambda x, w, b, r: F.linear(x, w, b[0]) + r,
        "norm": lambda x, w, b: F.layer_norm(x, (c.hidden,), w[0], b[0], 1e-12),
        "widen": lambda x, w, b: F.gelu(F.linear(x, w, b[0])),
        "narrow": lambda x, w, b, r: F.linear(x, w, b[0]) + r,
    }


if __name__ == "__main__":
    layers.main(__doc__, sys.modules[__name__], small=Config(batch=1, length=128, heads=2, inner=256), sizes=[Config(), Config(batch=16)])
