"""Examples of the repository as functions of Python, each by the name of its file."""

from __future__ import annotations

from functools import partial

import carbyne
from carbyne import language as cl
from carbyne.language import (
    assume, cast, ceil_div, constants, exp, f16, f32, f64, i4, i32, matmul, mbarrier, move, relu, rsqrt, sqrt, symbols, u8, where,
)  # fmt: skip

INF = float("inf")


def add_any():
    BM, BN = constants(BM=4, BN=256)
    M, N = symbols("M, N", M=4096, N=4096)

    @carbyne.kernel
    def means(A: f32[M, N], B: f32[M, N]) -> {"C": f32[M, N]}:
        assume(M >= 0, M <= 65536, N >= 0, N <= 65536)
        return A + B

    @carbyne.tile(grid={"j": ceil_div(N, BN), "i": ceil_div(M, BM)}, threads=128, means=means)
    def add_any(body, A: f32[M, N], B: f32[M, N]) -> {"C": f32[M, N]}:
        j, i = body.at
        a = body.move(A.tile([BM, BN])[i, j])
        b = body.move(B.tile([BM, BN])[i, j])
        body["C"].tile([BM, BN])[i, j] = a + b

    return add_any


def layernorm_any():
    M, N = symbols("M, N", M=32768, N=4096)

    @carbyne.kernel
    def layernorm_any(X: f16[M, N], weight: f16[1, N], bias: f16[1, N]) -> {"Y": f16[M, N]}:
        assume(M >= 0, M <= 1048576, N > 0, N <= 4096, N % 8 == 0)
        d = X - X.sum(axis=1) / N
        variance = (d * d).sum(axis=1) / N
        return d * rsqrt(variance + 0.00001) * weight + bias

    return layernorm_any


def softmax_any():
    M, N = symbols("M, N", M=32768, N=4096)

    @carbyne.kernel
    def softmax_any(X: f16[M, N]) -> {"Y": f16[M, N]}:
        assume(M >= 0, M <= 1048576, N > 0, N <= 4096, N % 8 == 0)
        e = exp(X - X.max(axis=1))
        return e / e.sum(axis=1)

    return softmax_any


def gemm_bias_relu():
    M, N, K = constants(M=256, N=256, K=128)
    BM, BN, BK = constants(BM=128, BN=128, BK=32)

    @carbyne.kernel
    def means(A: f16[M, K], B: f16[K, N], b: f32[1, N]) -> {"C": f16[M, N]}:
        return relu(A @ B + b)

    @carbyne.tile(grid={"i": M // BM, "j": N // BN}, threads=128, means=means)
    def gemm_bias_relu(body, A: f16[M, K], B: f16[K, N], b: f32[1, N]) -> {"C": f16[M, N]}:
        i, j = body.at
        c = body.tensor(f32[BM, BN], 0)
        with body.loop("k", K // BK) as k:
            sa = body.move(A.tile([BM, BK])[i, k], "SH")
            sb = body.move(B.tile([BK, BN])[k, j], "SH")
            body.matmul(sa, sb, c)
        y = relu(c + b.tile([1, BN])[0, j])
        body["C"].tile([BM, BN])[i, j] = cast(y, f16)

    return gemm_bias_relu


def moe_gemm():
    T, M, N, K = constants(T=1024, M=256, N=256, K=128)
    BM, BN, BK = constants(BM=128, BN=128, BK=32)

    @carbyne.kernel
    def means(A: f16[T, K], rows: i32[M].within(0, T), B: f16[K, N]) -> {"C": f16[M, N]}:
        return A[rows, :] @ B

    @carbyne.tile(grid={"i": M // BM, "j": N // BN}, threads=128, means=means)
    def moe_gemm(b, A: f16[T, K], rows: i32[M].within(0, T), B: f16[K, N]) -> {"C": f16[M, N]}:
        i, j = b.at
        mine = rows.tile([BM])[i]
        c = b.tensor(f32[BM, BN], 0)
        with b.loop("k", K // BK) as k:
            sa = b.move(A[mine, :].tile([BM, BK])[0, k], "SH")
            sb = b.move(B.tile([BK, BN])[k, j], "SH")
            b.matmul(sa, sb, c)
        b["C"].tile([BM, BN])[i, j] = cast(c, f16)

    return moe_gemm


def gemm_roles():
    M, N, K = constants(M=256, N=512, K=256)
    BM, BN, BK = constants(BM=128, BN=256, BK=64)

    @carbyne.tile("MatMul.set", grid={"bm": M // BM, "bn": N // BN}, threads=288, acc=f32)
    def gemm_roles(body, A: f16[M, K], B: f16[K, N]) -> {"C": f16[M, N]}:
        bm, bn = body.at
        consumers = body.group("consumers", body.threads[0:256])
        producer = body.group("producer", body.threads[256:288])
        c = body.spec("Init", [0], [f32[BM, BN]], on=consumers)
        with body.loop("k", K // BK, stages=3) as k:
            a = body.move(A.tile([BM, BK])[bm, k], "SH", on=producer)
            b = body.move(B.tile([BK, BN])[k, bn], "SH", on=producer)
            with body.loop("s", BK // 16, unroll=False) as s:
                body.matmul(a.tile([BM, 16])[0, s], b.tile([16, BN])[s, 0], c, on=consumers)
        body.spec("UnaryPointwise.cast", [c], [body["C"].tile([BM, BN])[bm, bn]], on=consumers)

    return gemm_roles


def attention_causal():
    B, H, S, T, D = constants(B=2, H=16, S=4096, T=4096, D=128)
    BS, BT = constants(BS=64, BT=64)

    @carbyne.kernel
    def means(
        Q: f16[B, H, S, D], K: f16[B, H, T, D], V: f16[B, H, T, D]
    ) -> {"O": f16[B, H, S, D]}:
        s = Q @ K.T / sqrt(D)
        seen = where(s.iota(2) >= s.iota(3), s, -INF)
        p = exp(seen - seen.max(axis=3))
        return p / p.sum(axis=3) @ V

    @carbyne.tile(grid={"i": S // BS, "h": H, "b": B}, threads=128, means=means)
    def attention_causal(
        body, Q: f16[B, H, S, D], K: f16[B, H, T, D], V: f16[B, H, T, D]
    ) -> {"O": f16[B, H, S, D]}:
        i, h, b = body.at
        query = body["O"][b, h, :, :].iota(0).tile([BS, 1])[i, 0]
        q = body.move(Q[b, h, :, :].tile([BS, D])[i, 0])
        max = body.tensor(f32[BS, 1], -INF)
        sum = body.tensor(f32[BS, 1], 0)
        o = body.tensor(f32[BS, D], 0)
        with body.loop("t", (i + 1) * BS // BT, stages=2) as t:
            k = body.move(K[b, h, :, :].tile([BT, D])[t, 0], "SH")
            v = body.move(V[b, h, :, :].tile([BT, D])[t, 0], "SH")
            key = K[b, h, :, :].iota(0).tile([BT, 1])[t, 0].T
            all = q @ k.T / sqrt(D)
            s = where(query >= key, all, -INF)
            top = cl.max(s.max(axis=1), max)
            old = exp(max - top, math="fast")
            o[...] = o * old
            p = exp(s - top)
            sum[...] = sum * old + p.sum(axis=1)
            half = cast(p, f16)
            body.matmul(half, v, o)
            max[...] = top
        body["O"][b, h, :, :].tile([BS, D])[i, 0] = cast(o / sum, f16)

    return attention_causal


def cache_append():
    (D,) = constants(D=1024)
    B, P = symbols("B, P", B=64, P=8192)

    @carbyne.tile(grid={"b": B}, threads=128)
    def cache_append(
        body, k: f16[B, D], v: f16[B, D], slots: i32[B].within(0, P, distinct=True), keys: f16[P, D], values: f16[P, D]
    ) -> {"keys": f16[P, D], "values": f16[P, D]}:
        assume(B >= 0, B <= 8192, P >= B, P >= 1, P <= 65536)
        (b,) = body.at
        slot = body.number("slot", slots[b])
        body.move(k[b, :], keys[slot, :])
        body.move(v[b, :], values[slot, :])

    return cache_append


def int4_gemm():
    M, N, K = constants(M=128, N=256, K=128)
    BM, BN, BK = constants(BM=64, BN=128, BK=64)
    packed_type = i4[(2, 4, 2, K // 16), (8, 2, N // 16)].strides((1, 8, 2, 32), (2 * K, 4, 16 * K))

    @carbyne.kernel
    def means(A: f16[M, K], B: packed_type) -> {"C": f16[M, N]}:
        return matmul(A, cast(B, f16))

    @carbyne.tile(grid={"bm": M // BM, "bn": N // BN}, threads=128, means=means)
    def int4_gemm(body, A: f16[M, K], B: packed_type) -> {"C": f16[M, N]}:
        bm, bn = body.at
        c = body.tensor(f32[BM, BN], 0)
        with body.loop("k", K // BK) as k:
            a = body.move(A.tile([BM, BK])[bm, k], "SH")
            packed = body.move(B.tile([BK, BN])[k, bn], "SH")
            b = cast(packed, f16)
            body.matmul(a, b, c)
        body["C"].tile([BM, BN])[bm, bn] = cast(c, f16)

    return int4_gemm


def gemm():
    @carbyne.tile("MatMul.set", acc=f32)
    def gemm(body, A: f16[4096, 4096], B: f16[4096, 4096]) -> {"C": f16[4096, 4096]}: ...

    return gemm


def gemm_any():
    M, N, K = symbols("M, N, K", M=4096, N=4096, K=4096)

    @carbyne.tile("MatMul.set", acc=f32)
    def gemm_any(body, A: f16[M, K], B: f16[K, N].strides(1, K)) -> {"C": f16[M, N]}:
        assume(M >= 0, M <= 32768, N >= 0, N <= 32768, K >= 0, K <= 32768, K % 8 == 0)

    return gemm_any


def copy_rows():
    @carbyne.tile("Move")
    def copy_rows(body, A: f16[512, 1024]) -> {"B": f16[512, 1024]}: ...

    return copy_rows


def row_sum():
    @carbyne.tile("Reduction.sum", axis=1)
    def row_sum(body, X: f32[512, 1024]) -> {"Y": f32[512, 1]}: ...

    return row_sum


def transpose():
    M, N = constants(M=256, N=256)
    BM, BN = constants(BM=64, BN=64)

    @carbyne.tile("Move", grid={"i": M // BM, "j": N // BN}, threads=128)
    def transpose(body, A: f16[M, N]) -> {"B": f16[M, N].strides(1, M)}:
        i, j = body.at
        rows = body.move(A.tile([BM, BN])[i, j])
        shared = body.move(rows, "SH")
        columns = body.move(shared)
        body.move(columns, body["B"].tile([BM, BN])[i, j])

    return transpose


def row_sum_tiled():
    M, N = constants(M=128, N=1024)
    BM, BN = constants(BM=32, BN=128)

    @carbyne.tile("Reduction.sum", grid={"i": M // BM}, threads=128, axis=1)
    def row_sum(body, X: f32[M, N]) -> {"Y": f32[M, 1]}:
        (i,) = body.at
        sum = body.tensor(f32[BM, 1], 0)
        with body.loop("k", N // BN) as k:
            sum[...] = sum + X.tile([BM, BN])[i, k].sum(axis=1)
        body.move(sum, body["Y"].tile([BM, 1])[i, 0])

    return row_sum


def softmax():
    M, N, BM = constants(M=64, N=512, BM=16)

    @carbyne.kernel
    def means(X: f32[M, N]) -> {"Y": f32[M, N]}:
        e = exp(X - X.max(axis=1))
        return e / e.sum(axis=1)

    @carbyne.tile(grid={"i": M // BM}, threads=128, means=means)
    def softmax(body, X: f32[M, N]) -> {"Y": f32[M, N]}:
        (i,) = body.at
        x = body.move(X.tile([BM, N])[i, 0])
        e = exp(x - x.max(axis=1))
        body["Y"].tile([BM, N])[i, 0] = e / e.sum(axis=1)

    return softmax


def rmsnorm():
    M, N = constants(M=64, N=512)
    (BM,) = constants(BM=16)

    @carbyne.kernel
    def means(X: f16[M, N], w: f32[1, N]) -> {"Y": f16[M, N]}:
        return X * rsqrt((X * X).sum(axis=1) / N + 1e-5) * w

    @carbyne.tile(grid={"i": M // BM}, threads=128, means=means)
    def rmsnorm(body, X: f16[M, N], w: f32[1, N]) -> {"Y": f16[M, N]}:
        (i,) = body.at
        x = cast(X.tile([BM, N])[i, 0], f32)
        scale = rsqrt((x * x).sum(axis=1) / N + 1e-5)
        body["Y"].tile([BM, N])[i, 0] = cast(x * scale * w, f16)

    return rmsnorm


def layernorm():
    M, N = constants(M=64, N=512)
    (BM,) = constants(BM=16)

    @carbyne.kernel
    def means(X: f16[M, N], w: f32[1, N], b: f32[1, N]) -> {"Y": f16[M, N]}:
        x = X - X.sum(axis=1) / N
        scale = rsqrt((x * x).sum(axis=1) / N + 1e-5)
        return x * scale * w + b

    @carbyne.tile(grid={"i": M // BM}, threads=128, means=means)
    def layernorm(body, X: f16[M, N], w: f32[1, N], b: f32[1, N]) -> {"Y": f16[M, N]}:
        (i,) = body.at
        x = cast(X.tile([BM, N])[i, 0], f32)
        x[...] = x - x.sum(axis=1) / N
        scale = rsqrt((x * x).sum(axis=1) / N + 1e-5)
        body["Y"].tile([BM, N])[i, 0] = cast(x * scale * w + b, f16)

    return layernorm


def cast_chain():
    M, N = constants(M=256, N=256)
    BM, BN = constants(BM=64, BN=64)

    @carbyne.tile("Move", grid={"i": M // BM, "j": N // BN}, threads=128)
    def cast_chain(body, X: f16[M, N]) -> {"Y": f16[M, N]}:
        i, j = body.at
        single = cast(X.tile([BM, BN])[i, j], f32)
        body["Y"].tile([BM, BN])[i, j] = cast(single, f16)

    return cast_chain


def gemm_staged():
    M, N, K = constants(M=256, N=256, K=128)
    BM, BN, BK = constants(BM=128, BN=128, BK=32)

    @carbyne.tile("MatMul.set", grid={"bm": M // BM, "bn": N // BN}, threads=128, acc=f32)
    def gemm(body, A: f16[M, K], B: f16[K, N]) -> {"C": f16[M, N]}:
        bm, bn = body.at
        c = body.tensor(f32[BM, BN], 0)
        with body.loop("k", K // BK, stages=3) as k:
            a = body.move(A.tile([BM, BK])[bm, k], "SH")
            b = body.move(B.tile([BK, BN])[k, bn], "SH")
            body.matmul(a, b, c)
        body["C"].tile([BM, BN])[bm, bn] = cast(c, f16)

    return gemm


def gemm_hopper():
    M, N, K = constants(M=512, N=512, K=512)
    BM, BN, BK = constants(BM=128, BN=256, BK=64)

    @carbyne.tile("MatMul.set", grid={"bm": M // BM, "bn": N // BN}, threads=256, acc=f32)
    def gemm_hopper(body, A: f16[M, K], B: f16[K, N].strides(1, K)) -> {"C": f16[M, N]}:
        bm, bn = body.at
        c = body.spec("Init", [0], [f32[BM, BN]])
        with body.loop("k", K // BK, stages=4) as k:
            a = body.move(A.tile([BM, BK])[bm, k], "SH")
            b = body.move(B.tile([BK, BN])[k, bn], "SH")
            body.matmul(a, b, c)
        body.spec("UnaryPointwise.cast", [c], [body["C"].tile([BM, BN])[bm, bn]])

    return gemm_hopper


def copy_transposed():
    @carbyne.tile("Move")
    def copy_transposed(body, A: f16[512, 1024]) -> {"B": f16[512, 1024].strides(1, 512)}: ...

    return copy_transposed


def copied(order, scalar, memory):
    M, N = constants(M=128, N=256)
    BM, BN = constants(BM=64, BN=64)
    of = {"row": lambda t: t, "column": lambda t: t.strides(1, M), "padded": lambda t: t.strides(N + 4, 1)}
    matrix = of[order](scalar[M, N])

    @carbyne.tile("Move", grid={"i": M // BM, "j": N // BN}, threads=128)
    def copy(body, A: matrix) -> {"B": matrix}:
        i, j = body.at
        if memory == "shared":
            s = body.move(A.tile([BM, BN])[i, j], "SH")
            r = body.move(s)
        else:
            r = body.move(A.tile([BM, BN])[i, j])
        body.move(r, body["B"].tile([BM, BN])[i, j])

    return copy


def rearrange():
    M, D = constants(M=64, D=32)
    (BM,) = constants(BM=16)

    @carbyne.kernel
    def means(A: f64[M, D], B: f64[D, D], C: f64[D, D]) -> {"O": f64[M, D]}:
        return A @ B @ C

    @carbyne.tile(grid={"i": M // BM}, threads=32, means=means)
    def rearrange(body, A: f64[M, D], B: f64[D, D], C: f64[D, D]) -> {"O": f64[M, D]}:
        (i,) = body.at
        a = body.move(A.tile([BM, D])[i, 0])
        b = body.move(B)
        c = body.move(C)
        body["O"].tile([BM, D])[i, 0] = a @ b @ c

    return rearrange


def hexcute_fig15_gemm():
    M, N, K = constants(M=128, N=128, K=64)
    BM, BN, BK = constants(BM=64, BN=64, BK=16)

    @carbyne.tile("MatMul.set", grid={"bm": M // BM, "bn": N // BN}, threads=128, acc=f32)
    def gemm(body, A: f16[M, K], B: f16[K, N].strides(1, K)) -> {"C": f16[M, N]}:
        bm, bn = body.at
        c = body.tensor(f32[BM, BN], 0)
        with body.loop("k", K // BK) as k:
            a = body.move(A.tile([BM, BK])[bm, k])
            b = body.move(B.tile([BK, BN])[k, bn])
            body.matmul(a, b, c)
        half = cast(c, f16)
        shared = body.move(half, "SH")
        rows = body.move(shared)
        body.move(rows, body["C"].tile([BM, BN])[bm, bn])

    return gemm


def hexcute_fig9_gemms():
    S, T, D = constants(S=128, T=64, D=64)
    (BS,) = constants(BS=64)

    @carbyne.kernel
    def means(Q: f16[S, D], K: f16[D, T].strides(1, D), V: f16[T, D]) -> {"O": f16[S, D]}:
        qk = Q @ K
        return qk / qk.sum(axis=1) @ V

    @carbyne.tile(grid={"i": S // BS}, threads=128, means=means)
    def gemms(body, Q: f16[S, D], K: f16[D, T].strides(1, D), V: f16[T, D]) -> {"O": f16[S, D]}:
        (i,) = body.at
        q = body.move(Q.tile([BS, D])[i, 0])
        qk = q @ K
        p = cast(qk / qk.sum(axis=1), f16)
        body["O"].tile([BS, D])[i, 0] = cast(p @ V, f16)

    return gemms


def attention():
    S, T, D = constants(S=128, T=256, D=64)
    BS, BT = constants(BS=64, BT=64)

    @carbyne.kernel
    def means(Q: f16[S, D], K: f16[D, T].strides(1, D), V: f16[T, D]) -> {"O": f16[S, D]}:
        s = Q @ K / sqrt(D)
        p = exp(s - s.max(axis=1))
        return p / p.sum(axis=1) @ V

    @carbyne.tile(grid={"i": S // BS}, threads=128, means=means)
    def attention(body, Q: f16[S, D], K: f16[D, T].strides(1, D), V: f16[T, D]) -> {"O": f16[S, D]}:
        (i,) = body.at
        q = body.move(Q.tile([BS, D])[i, 0])
        max = body.tensor(f32[BS, 1], -INF)
        sum = body.tensor(f32[BS, 1], 0)
        o = body.tensor(f32[BS, D], 0)
        with body.loop("t", T // BT) as t:
            k = body.move(K.tile([D, BT])[0, t], "SH")
            v = body.move(V.tile([BT, D])[t, 0], "SH")
            s = q @ k / sqrt(D)
            top = cl.max(s.max(axis=1), max)
            p = exp(s - top)
            old = exp(max - top)
            sum[...] = sum * old + p.sum(axis=1)
            o[...] = o * old
            half = cast(p, f16)
            body.matmul(half, v, o)
            max[...] = top
        body["O"].tile([BS, D])[i, 0] = cast(o / sum, f16)

    return attention


def attention_ragged():
    D, BS, BT = constants(D=64, BS=64, BT=64)
    B, H, S, T = symbols("B, H, S, T", B=2, H=16, S=4096, T=4096)

    @carbyne.kernel
    def means(
        Q: f16[B, H, S, D], K: f16[B, H, T, D], V: f16[B, H, T, D], lengths: i32[B].within(1, T + 1)
    ) -> {"O": f16[B, H, S, D]}:
        assume(B >= 0, B <= 1024, H > 0, H <= 256, S > 0, S <= 65536, T > 0, T <= 65536)
        s = Q @ K.T / sqrt(D)
        n = lengths.reshape([B, 1, 1, 1], [1, 0, 0, 0])
        seen = where(s.iota(3) < n, s, -INF)
        p = exp(seen - seen.max(axis=3))
        return p / p.sum(axis=3) @ V

    @carbyne.tile(grid={"i": ceil_div(S, BS), "h": H, "b": B}, threads=128, means=means)
    def attention_ragged(
        body, Q: f16[B, H, S, D], K: f16[B, H, T, D], V: f16[B, H, T, D], lengths: i32[B].within(1, T + 1)
    ) -> {"O": f16[B, H, S, D]}:
        i, h, b = body.at
        n = body.number("n", lengths[b])
        keys = K[b, h, 0:n, :]
        values = V[b, h, 0:n, :]
        q = body.move(Q[b, h, :, :].tile([BS, D])[i, 0])
        max = body.tensor(f32[BS, 1], -INF)
        sum = body.tensor(f32[BS, 1], 0)
        o = body.tensor(f32[BS, D], 0)
        with body.loop("t", ceil_div(n, BT), stages=2) as t:
            k = body.move(keys.tile([BT, D])[t, 0], "SH")
            v = body.move(values.tile([BT, D])[t, 0], "SH")
            s = q @ k.T / sqrt(D)
            top = cl.max(s.max(axis=1), max)
            p = exp(s - top)
            old = exp(max - top)
            sum[...] = sum * old + p.sum(axis=1)
            o[...] = o * old
            half = cast(p, f16)
            body.matmul(half, v, o, warps=(4, 1))
            max[...] = top
        body["O"][b, h, :, :].tile([BS, D])[i, 0] = cast(o / sum, f16)

    return attention_ragged


def gemm_split_k():
    @carbyne.tile("MatMul", grid={}, threads=128, acc=f32)
    def gemm_split_k(body, A: f16[16, 256], B: f16[256, 16]) -> {"C": f32[16, 16]}:
        a = body.move(A)
        b = body.move(B)
        c = body.move(body["C"])
        body.matmul(a, b, c)
        body.move(c, body["C"])

    return gemm_split_k


def attention_any():
    D, BS, BT = constants(D=64, BS=64, BT=64)
    B, H, S, T = symbols("B, H, S, T", B=2, H=16, S=4096, T=4096)

    @carbyne.kernel
    def means(
        Q: f16[B, H, S, D], K: f16[B, H, T, D], V: f16[B, H, T, D]
    ) -> {"O": f16[B, H, S, D]}:
        assume(B >= 0, B <= 1024, H > 0, H <= 256, S > 0, S <= 65536, T <= 65536, S <= T)
        s = Q @ K.T / sqrt(D)
        seen = where(s.iota(2) + (T - S) >= s.iota(3), s, -INF)
        p = exp(seen - seen.max(axis=3))
        return p / p.sum(axis=3) @ V

    @carbyne.tile(grid={"i": ceil_div(S, BS), "h": H, "b": B}, threads=128, means=means)
    def attention_any(
        body, Q: f16[B, H, S, D], K: f16[B, H, T, D], V: f16[B, H, T, D]
    ) -> {"O": f16[B, H, S, D]}:
        i, h, b = body.at
        query = body["O"][b, h, :, :].iota(0).tile([BS, 1])[i, 0].plus(T - S)
        q = body.move(Q[b, h, :, :].tile([BS, D])[i, 0])
        max = body.tensor(f32[BS, 1], -INF)
        sum = body.tensor(f32[BS, 1], 0)
        o = body.tensor(f32[BS, D], 0)
        with body.loop("t", ceil_div(cl.min((i + 1) * BS + T - S, T), BT), stages=2) as t:
            k = body.move(K[b, h, :, :].tile([BT, D])[t, 0], "SH")
            v = body.move(V[b, h, :, :].tile([BT, D])[t, 0], "SH")
            key = K[b, h, :, :].iota(0).tile([BT, 1])[t, 0].T
            all = q @ k.T / sqrt(D)
            s = where(query >= key, all, -INF)
            top = cl.max(s.max(axis=1), max)
            p = exp(s - top)
            half = cast(p, f16)
            old = exp(max - top)
            sum[...] = sum * old + p.sum(axis=1)
            o[...] = o * old
            body.matmul(half, v, o, warps=(4, 1))
            max[...] = top
        body["O"][b, h, :, :].tile([BS, D])[i, 0] = cast(o / sum, f16)

    return attention_any


def attention_paged():
    D, PS, G = constants(D=64, PS=64, G=16)
    B, H, NP, P = symbols("B, H, NP, P", B=32, H=8, NP=64, P=2048)

    @carbyne.kernel
    def means(
        Q: f16[B, H, G, D], K: f16[P, H, PS, D], V: f16[P, H, PS, D],
        table: i32[B, NP].within(0, P), lengths: i32[B].within(1, PS * NP + 1),
    ) -> {"O": f16[B, H, G, D]}:  # fmt: skip
        assume(B >= 0, B <= 1024, H > 0, H <= 256, NP > 0, NP <= 4096, P > 0, P <= 65536)
        pages = table.reshape([B * NP], [1])
        shape, steps = [B, H, (PS, NP), D], [1, B * NP, (B * NP * H, B), B * NP * H * PS]
        k = K[pages, :, :, :].reshape(shape, steps)
        v = V[pages, :, :, :].reshape(shape, steps)
        s = Q @ k.T / sqrt(D)
        n = lengths.reshape([B, 1, 1, 1], [1, 0, 0, 0])
        seen = where(s.iota(3) < n, s, -INF)
        p = exp(seen - seen.max(axis=3))
        return p / p.sum(axis=3) @ v

    @carbyne.tile(grid={"h": H, "b": B}, threads=128, means=means)
    def attention_paged(
        body, Q: f16[B, H, G, D], K: f16[P, H, PS, D], V: f16[P, H, PS, D],
        table: i32[B, NP].within(0, P), lengths: i32[B].within(1, PS * NP + 1),
    ) -> {"O": f16[B, H, G, D]}:  # fmt: skip
        h, b = body.at
        n = body.number("n", lengths[b])
        q = body.move(Q[b, h, :, :])
        max = body.tensor(f32[G, 1], -INF)
        sum = body.tensor(f32[G, 1], 0)
        o = body.tensor(f32[G, D], 0)
        with body.loop("t", ceil_div(n, PS), stages=2) as t:
            page = body.number("page", table[b, t])
            k = body.move(K[page, h, :, :], "SH")
            v = body.move(V[page, h, :, :], "SH")
            a = q @ k.T / sqrt(D)
            s = where(a.iota(1) + t * PS < n, a, -INF)
            top = cl.max(s.max(axis=1), max)
            p = exp(s - top)
            old = exp(max - top)
            sum[...] = sum * old + p.sum(axis=1)
            o[...] = o * old
            half = cast(p, f16)
            body.matmul(half, v, o)
            max[...] = top
        body["O"][b, h, :, :] = cast(o / sum, f16)

    return attention_paged


def accumulate():
    N, T = constants(N=1024, T=128)

    @carbyne.tile("Move.add", grid={"part": N // T}, threads={"t": T})
    def accumulate(body, A: f32[N]) -> {"C": f32[N]}:
        part, t = body.at
        one = body.group("one", body.threads.scalar())
        v = body.allocate(f32[1], "RF")
        body.move(A.tile([T])[part].tile([1])[t], v, on=one)
        body.spec("Move.add", [v], [body["C"].tile([T])[part].tile([1])[t]], on=one)

    return accumulate


def tma_copy():
    M, N, BM, BN = constants(M=200, N=136, BM=64, BN=64)

    @carbyne.tile("Move", grid={"i": ceil_div(M, BM), "j": ceil_div(N, BN)}, threads=128)
    def tma_copy(body, A: f16[M, N]) -> {"B": f16[M, N]}:
        i, j = body.at
        one = body.group("one", body.threads.tile([32])[0].elect())
        boxes = A.tensormap([BM, BN], swizzle=(3, 4, 3)).named("from")
        to = body["B"].tensormap([BM, BN], swizzle=(3, 4, 3))
        tile = body.allocate(f16[BM, BN], "SH", swizzle=(3, 4, 3))
        full = body.allocate(mbarrier[1], "SH")
        with body.body([], [full], on=one):
            body.sync("mbarrier.init", full, 1)
            body.sync("fence.async")
        body.barrier()
        with body.body([A, full], [tile], on=one):
            body.sync("mbarrier.expect", full, BM * BN * 2)
            body.move(boxes[i, j], tile, bar=full)
        body.sync("mbarrier.wait", full, 0)
        with body.body([tile], [body["B"]], on=one):
            body.move(tile, to[i, j])
            body.sync("bulk.commit")
            body.sync("bulk.wait", 0)

    return tma_copy


def grouped_gemm():
    BM, BN, BK, P = constants(BM=128, BN=128, BK=64, P=132)
    T, G, N, K = symbols("T, G, N, K", T=8192, G=8, N=4096, K=4096)
    matrices = f16[G, N, K].strides(N * K, K, 1)

    @carbyne.kernel
    def means(A: f16[T, K], offsets: i32[G + 1].splits(T), B: matrices) -> {"C": f16[T, N]}:
        assume(T >= 0, T <= 131072, G > 0, G <= 1024, N >= 0, N <= 32768, N % 8 == 0, K > 0, K <= 32768, K % 8 == 0)
        ends = offsets[1 : G + 1].reshape([1, G], [0, 1])
        column = A[:, 0:1]
        before = cast(column.iota(0) >= ends, i32).sum(axis=1)
        group = cl.min(before, G - 1)
        of = group.reshape([T], [1])
        own = B[of, :, :]
        each = A.reshape([T, 1, K], [1, 0, T]) @ own.T
        return move(each[:, 0, :])

    @carbyne.tile(grid={"b": P}, threads=256, means=means)
    def grouped_gemm(body, A: f16[T, K], offsets: i32[G + 1].splits(T), B: matrices) -> {"C": f16[T, N]}:
        (b,) = body.at
        TN = body.let(TN=ceil_div(N, BN))
        with body.loop("g", G) as g:
            first = body.number("first", offsets[g])
            last = body.number("last", offsets[g + 1])
            a = A[first:last, :]
            c = body["C"][first:last, :]
            before = body.let(before=(first // BM + g) * TN)
            rows = ceil_div(last - first, BM) * TN
            with body.loop("t", rows, start=(b + P - before % P) % P, step=P) as t:
                i, j = body.let(i=t // TN, j=t % TN)
                sum = body.tensor(f32[BM, BN], 0)
                with body.loop("k", ceil_div(K, BK), stages=3) as k:
                    x = body.move(a.tile([BM, BK])[i, k], "SH")
                    y = body.move(B[g, :, :].tile([BN, BK])[j, k], "SH")
                    body.matmul(x, y.T, sum)
                c.tile([BM, BN])[i, j] = cast(sum, f16)

    return grouped_gemm


#: Functions that make a kernel, by names of examples.
FORMS = {name: made for name, made in globals().items() if getattr(made, "__module__", "") == __name__ and name != "copied"}
for order in ("row", "column", "padded"):
    for bits, scalar in ((8, u8), (16, f16), (32, f32)):
        for memory in ("registers", "shared"):
            FORMS[f"copy_{order}_b{bits}_{memory}"] = partial(copied, order, scalar, memory)
