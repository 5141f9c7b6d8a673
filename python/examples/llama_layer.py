"""A layer of Llama-7B with kernels that are written in Python: norms, linear layers, rotary embedding and attention.

    python python/examples/llama_layer.py               # on a GPU, with PyTorch: errors, and times of the layer and its parts
    python python/examples/llama_layer.py --simulate    # a small layer on the CPU, compared with NumPy; needs no PyTorch

Weights are random. The kernel of a product also adds the residual after it. `silu` is a part of one product of the gate, the multiplication by it a part
of the other. Softmax is a part of attention. PyTorch only creates views.
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
from carbyne.language import cast, exp, f16, f32, rsqrt, silu, sqrt, where


@dataclass(frozen=True)
class Config:
    """Sizes of a layer. The defaults are those of Llama-7B (H. Touvron et al., arXiv 2302.13971, table 2); its context is 2048 tokens."""

    tokens: int = 2048
    heads: int = 32
    head: int = 128
    inner: int = 11008
    #: Queries and keys of a tile of attention.
    tile: int = 128

    def __post_init__(self) -> None:
        if self.tokens % self.tile or not self.tokens:
            raise ValueError(f"attention has whole tiles: tokens are a multiple of {self.tile}, not {self.tokens}")

    @property
    def hidden(self) -> int:
        return self.heads * self.head


def kernels(c: Config) -> dict[str, Any]:
    """The kernels of a layer. Weights are `[outputs, inputs]`, as in PyTorch."""
    T, H, D, F, N = c.tokens, c.heads, c.head, c.inner, c.hidden

    @carbyne.kernel
    def norm(X: f16[T, N], weight: f16[1, N]) -> {"Y": f16[T, N]}:
        x = cast(X, f32)
        return cast(x * rsqrt((x * x).sum(axis=1) / N + 1e-6) * cast(weight, f32), f16)

    @carbyne.kernel
    def qkv(X: f16[T, N], W: f16[3 * N, N]) -> {"Y": f16[T, 3 * N]}:
        return X @ W.T

    # Queries and keys are side by side in the rows of the preceding product, and so are the halves of each head.
    rotated = f16[T, 2 * H, 2, D // 2]
    of_product = rotated.strides(3 * N, D, D // 2, 1)

    @carbyne.kernel
    def rotation(X: of_product, cosine: f16[T, D // 2], sine: f16[T, D // 2]) -> {"Y": rotated}:
        x = cast(X, f32)
        a, b = x[:, :, 0:1, :], x[:, :, 1:2, :]
        c = cast(cosine, f32).reshape([T, 1, 1, D // 2], [1, 0, 0, T])
        s = cast(sine, f32).reshape([T, 1, 1, D // 2], [1, 0, 0, T])
        return cast(where(x.iota(2) < 1, a * c - b * s, b * c + a * s), f16)

    @carbyne.tile(grid={"t": T}, threads=512, means=rotation)
    def rotary(body, X: of_product, cosine: f16[T, D // 2], sine: f16[T, D // 2]) -> {"Y": rotated}:
        (t,) = body.at
        a = cast(X[t, :, 0, :], f32)
        b = cast(X[t, :, 1, :], f32)
        c = cast(cosine.tile([1, D // 2])[t, 0], f32)
        s = cast(sine.tile([1, D // 2])[t, 0], f32)
        body["Y"][t, :, 0, :] = cast(a * c - b * s, f16)
        body["Y"][t, :, 1, :] = cast(b * c + a * s, f16)

    query = f16[H, T, D].strides(D, 2 * N, 1)
    value = f16[H, T, D].strides(D, 3 * N, 1)
    result = f16[H, T, D].strides(D, N, 1)

    @carbyne.kernel
    def attends(Q: query, K: query, V: value) -> {"O": result}:
        s = Q @ K.T / sqrt(D)
        seen = where(s.iota(1) >= s.iota(2), s, -math.inf)
        p = exp(seen - seen.max(axis=2))
        return p / p.sum(axis=2) @ V

    B = c.tile

    @carbyne.tile(grid={"h": H, "j": T // B}, threads=2 * B, means=attends)
    def attention(body, Q: query, K: query, V: value) -> {"O": result}:
        h, j = body.at
        i = T // B - 1 - j  # Queries that attend to the most keys begin first.
        rows = body["O"][h, :, :].iota(0).tile([B, 1])[i, 0]
        q = body.move(Q[h, :, :].tile([B, D])[i, 0])
        top = body.tensor(f32[B, 1], -math.inf)
        total = body.tensor(f32[B, 1], 0)
        o = body.tensor(f32[B, D], 0)
        with body.loop("t", i + 1, stages=2) as t:
            k = body.move(K[h, :, :].tile([B, D])[t, 0], "SH")
            v = body.move(V[h, :, :].tile([B, D])[t, 0], "SH")
            columns = K[h, :, :].iota(0).tile([B, 1])[t, 0].T
            s = where(rows >= columns, q @ k.T / sqrt(D), -math.inf)
            new = cl.max(s.max(axis=1), top)
            old = exp(top - new, math="fast")
            o[...] = o * old
            p = exp(s - new)
            total[...] = total * old + p.sum(axis=1)
            body.matmul(cast(p, f16), v, o)
            top[...] = new
        # Through shared memory, to make wide stores.
        y = body.move(cast(o / total, f16), "SH")
        body.move(y, body["O"][h, :, :].tile([B, D])[i, 0])

    @carbyne.kernel
    def out(X: f16[T, N], W: f16[N, N], R: f16[T, N]) -> {"Y": f16[T, N]}:
        return cast(X @ W.T + cast(R, f32), f16)

    @carbyne.kernel
    def gate(X: f16[T, N], W: f16[F, N]) -> {"Y": f16[T, F]}:
        return cast(silu(X @ W.T), f16)

    @carbyne.kernel
    def up(X: f16[T, N], W: f16[F, N], G: f16[T, F]) -> {"Y": f16[T, F]}:
        return cast(X @ W.T * cast(G, f32), f16)

    @carbyne.kernel
    def down(X: f16[T, F], W: f16[N, F], R: f16[T, N]) -> {"Y": f16[T, N]}:
        return cast(X @ W.T + cast(R, f32), f16)

    return {k.__name__: k for k in (norm, qkv, rotary, attention, out, gate, up, down)}


def forward(c: Config, run: Mapping[str, Callable[..., Any]], w: Mapping[str, Any], x: Any, cosine: Any, sine: Any) -> Any:
    """The layer, for tensors of PyTorch or arrays of NumPy, as `run` needs. Between kernels there are only views."""
    T, H, D, N = c.tokens, c.heads, c.head, c.hidden
    qkv = run["qkv"](run["norm"](x, w["norm1"]), w["qkv"])
    turned = run["rotary"](qkv[:, : 2 * N].reshape(T, 2 * H, 2, D // 2), cosine, sine).reshape(T, 2 * H, D)
    q, k = turned[:, :H].swapaxes(0, 1), turned[:, H:].swapaxes(0, 1)
    v = qkv[:, 2 * N :].reshape(T, H, D).swapaxes(0, 1)
    o = run["attention"](q, k, v).swapaxes(0, 1).reshape(T, N)
    x = run["out"](o, w["out"], x)
    y = run["norm"](x, w["norm2"])
    return run["down"](run["up"](y, w["up"], run["gate"](y, w["gate"])), w["down"], x)


def weights(c: Config) -> dict[str, tuple[int, int]]:
    """Shapes of the weights."""
    N, F = c.hidden, c.inner
    return {"norm1": (1, N), "qkv": (3 * N, N), "out": (N, N), "norm2": (1, N), "gate": (F, N), "up": (F, N), "down": (N, F)}


def tables(c: Config) -> tuple[Any, Any]:
    """Cosines and sines of the angle of each token and pair of elements (J. Su et al., arXiv 2104.09864, section 3.3)."""
    angles = np.outer(np.arange(c.tokens), 10000.0 ** (-np.arange(c.head // 2) / (c.head // 2)))
    return np.cos(angles).astype(np.float16), np.sin(angles).astype(np.float16)


def of_numpy(c: Config) -> dict[str, Callable[..., Any]]:
    """The kernels in NumPy."""
    def rotary(x, cosine, sine):
        a, b, cosine, sine = x[:, :, 0], x[:, :, 1], cosine[:, None], sine[:, None]
        return np.stack((a * cosine - b * sine, b * cosine + a * sine), 2)

    def attention(q, k, v):
        s = q @ k.swapaxes(1, 2) / math.sqrt(c.head)
        s[:, np.triu_indices(c.tokens, 1)[0], np.triu_indices(c.tokens, 1)[1]] = -np.inf
        p = np.exp(s - s.max(2, keepdims=True))
        return p / p.sum(2, keepdims=True) @ v

    def gate(x, w):
        y = x @ w.T
        return y / (1 + np.exp(-y))

    return {
        "norm": lambda x, w: x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * w,
        "qkv": lambda x, w: x @ w.T,
        "rotary": rotary,
        "attention": attention,
        "out": lambda x, w, r: x @ w.T + r,
        "gate": gate,
        "up": lambda x, w, g: x @ w.T * g,
        "down": lambda x, w, r: x @ w.T + r,
    }


def of_torch(c: Config) -> dict[str, Callable[..., Any]]:
    """The kernels in PyTorch, as models usually write them."""
    import torch
    import torch.nn.functional as F

    def rotary(x, cosine, sine):
        a, b, cosine, sine = x[:, :, 0], x[:, :, 1], cosine[:, None], sine[:, None]
        return torch.stack((a * cosine - b * sine, b * cosine + a * sine), 2)

    def attention(q, k, v):
        return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0]

    return {
        "norm": lambda x, w: F.rms_norm(x, (c.hidden,), w[0], 1e-6),
        "qkv": F.linear,
        "rotary": rotary,
        "attention": attention,
        "out": lambda x, w, r: F.linear(x, w) + r,
        "gate": lambda x, w: F.silu(F.linear(x, w)),
        "up": lambda x, w, g: F.linear(x, w) * g,
        "down": lambda x, w, r: F.linear(x, w) + r,
    }


if __name__ == "__main__":
    layers.main(__doc__, sys.modules[__name__], small=Config(tokens=128, heads=2, head=64, inner=192, tile=64), sizes=[Config()])
