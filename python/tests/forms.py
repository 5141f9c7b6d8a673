"""Examples of the repository as Python functions, each with the name of its file."""

from __future__ import annotations

from functools import partial

import carbyne
from carbyne import language as cl
from carbyne.language import (
    assume, block, cast, ceil_div, constants, exp, f16, f32, f64, group, i4, i32, matmul, mbarrier, move,
    relu, result, rsqrt, sqrt, symbols, tensor, thread, u8, where,
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


def gemm_staged_3():
    M, N, K = constants(M=256, N=256, K=128)
    BM, BN, BK = constants(BM=128, BN=128, BK=32)

    @carbyne.tile("MatMul.set", grid={"bm": M // BM, "bn": N // BN}, threads=128, acc=f32)
    def gemm(body, A: f16[M, K], B: f16[K, N]) -> {"C": f16[M, N]}:
        bm, bn = body.at
        Ab = A.tile([BM, BK])[bm, :]
        Bb = B.tile([BK, BN])[:, bn]
        a = body.allocate(f16[BM, BK].array(3), "SH", open=True)
        b = body.allocate(f16[BK, BN].array(3), "SH", open=True)
        c = body.tensor(f32[BM, BN], 0)
        with body.loop("s", 2) as s:
            body.move(Ab[s], a[s])
            body.move(Bb[s], b[s])
        with body.loop("k", K // BK) as k:
            with body.when(k + 2 < K // BK):
                body.move(Ab[k + 2], a[(k + 2) % 3])
                body.move(Bb[k + 2], b[(k + 2) % 3])
            body.matmul(a[k % 3], b[k % 3], c)
        body["C"].tile([BM, BN])[bm, bn] = cast(c, f16)

    return gemm


def gemm_scaled():
    M, N, K = constants(M=128, N=128, K=128)
    BM, BN, BK = constants(BM=64, BN=64, BK=32)
    grid = group("grid", block[M // BM, N // BN].strides(1, M // BM))
    cta = group("cta", thread[128].strides(1))

    @carbyne.kernel
    def means(alpha: f32, beta: f32, A: f16[M, K], B: f16[K, N], C: f32[M, N]) -> {"C": f32[M, N]}:
        product = A @ B
        return product * alpha + C * beta

    @carbyne.tile(grid=grid, threads=cta, means=means)
    def gemm_scaled(body, alpha: f32, beta: f32, A: f16[M, K], B: f16[K, N], C: f32[M, N]) -> {"C": f32[M, N]}:
        m, n = body.indices("m, n", grid)
        sum = body.tensor(f32[BM, BN], 0)
        with body.loop("k", K // BK) as k:
            a = body.move(A.tile([BM, BK])[m, k], "SH")
            b = body.move(B.tile([BK, BN])[k, n], "SH")
            body.matmul(a, b, sum)
        c = body.move(C.tile([BM, BN])[m, n])
        C.tile([BM, BN])[m, n] = sum * alpha + c * beta

    return gemm_scaled


def rmsnorm_eps():
    M, N, BM = constants(M=64, N=512, BM=8)
    grid = group("grid", block[M // BM].strides(1))
    cta = group("cta", thread[128].strides(1))

    @carbyne.kernel
    def means(X: f16[M, N], W: f16[1, N], eps: f32) -> {"Y": f16[M, N]}:
        squares = (X * X).sum(axis=1)
        return X * rsqrt(squares * (1.0 / N) + eps) * W

    @carbyne.tile(grid=grid, threads=cta, means=means)
    def rmsnorm(body, X: f16[M, N], W: f16[1, N], eps: f32) -> {"Y": f16[M, N]}:
        m = body.indices("m", grid)
        x = cast(X.tile([BM, N])[m, 0], f32)
        scale = rsqrt((x * x).sum(axis=1) * (1.0 / N) + eps)
        body["Y"].tile([BM, N])[m, 0] = cast(x * scale * cast(W, f32), f16)

    return rmsnorm


def sigmoid_attention_v():
    T, D, B = constants(T=128, D=64, B=64)
    grid = group("grid", block[T // B].strides(1))
    cta = group("cta", thread[128].strides(1))

    @carbyne.kernel
    def means(Q: f16[T, D], K: f16[T, D], G: f16[T, D], scale: f32, bias: f32) -> {"V": f32[T, D]}:
        s = Q @ K.T * scale + bias
        p = 1 / (exp(-s) + 1)
        return p.T @ G

    @carbyne.tile(grid=grid, threads=cta, means=means)
    def sigmoid_attention_v(body, Q: f16[T, D], K: f16[T, D], G: f16[T, D], scale: f32, bias: f32) -> {"V": f32[T, D]}:
        j = body.indices("j", grid)
        k = body.move(K.tile([B, D])[j, 0].T)
        v = body.tensor(f32[B, D], 0)
        with body.loop("i", T // B) as i:
            q = body.move(Q.tile([B, D])[i, 0], "SH")
            g = body.move(G.tile([B, D])[i, 0], "SH")
            s = q @ k * scale + bias
            p = cast(1 / (exp(-s) + 1), f16)
            body.matmul(p.T, g, v)
        body["V"].tile([B, D])[j, 0] = v

    return sigmoid_attention_v


def rope():
    T, D = constants(T=128, D=128)
    H, B = constants(H=D // 2, B=32)
    Y = tensor("Y", f16[T, D])
    halves = {"Y0": Y[:, 0:H], "Y1": Y[:, H:D]}
    grid = group("grid", block[T // B].strides(1))
    cta = group("cta", thread[128].strides(1))

    @carbyne.kernel
    def means(X: f16[T, D], cos: f32[T, H], sin: f32[T, H]) -> halves:
        x0, x1 = X[:, 0:H], X[:, H:D]
        return x0 * cos - x1 * sin, x1 * cos + x0 * sin

    @carbyne.tile(grid=grid, threads=cta, means=means)
    def rope(body, X: f16[T, D], cos: f32[T, H], sin: f32[T, H]) -> halves:
        t = body.indices("t", grid)
        x = cast(X.tile([B, D])[t, 0], f32)
        x0, x1 = x[:, 0:H], x[:, H:D]
        c = body.move(cos.tile([B, H])[t, 0])
        s = body.move(sin.tile([B, H])[t, 0])
        body["Y0"].tile([B, H])[t, 0] = cast(x0 * c - x1 * s, f16)
        body["Y1"].tile([B, H])[t, 0] = cast(x1 * c + x0 * s, f16)

    return rope


def rope_any():
    (T,) = symbols("T", T=8192)

    @carbyne.kernel
    def rope_any(X: f16[T, 8, 2, 64], C: f32[T, 64], S: f32[T, 64]) -> {"Y": f16[T, 8, 2, 64]}:
        assume(T > 0, T <= 1048576)
        x = cast(X, f32)
        a = x.tile([T, 8, 1, 64])[0, 0, 0, 0]
        b = x.tile([T, 8, 1, 64])[0, 0, 1, 0]
        c = C.reshape([T, 1, 1, 64], [1, 0, 0, T])
        s = S.reshape([T, 1, 1, 64], [1, 0, 0, T])
        return cast(where(result("Y").iota(2) < 1, a * c - b * s, b * c + a * s), f16)

    return rope_any


def vector_copy():
    N, T, V = constants(N=8192, T=128, V=4)

    @carbyne.tile("Move", grid={"b": N // (T * V)}, threads={"t": T})
    def vector_copy(body, in_: f32[N]) -> {"out": f32[N]}:
        b, t = body.at
        one = body.group("one", body.threads.scalar())
        src = in_.tile([T * V])[b].tile([V])
        dst = body["out"].tile([T * V])[b].tile([V])
        stage = body.allocate(f32[V].array(T), "SH")
        x = body.allocate(f32[V], "RF")
        y = body.allocate(f32[V], "RF")

        body.move(src[t], x, on=one, atom="ld.global.b128")
        body.move(x, stage[t], on=one, atom="st.shared.b128")
        body.barrier()
        body.move(stage[(t + T // 2) % T], y, on=one, atom="ld.shared.b128")
        body.move(y, dst[(t + T // 2) % T], on=one, atom="st.global.b128")

    return vector_copy


def bulk_copy():
    N, BLOCKS, CHUNK, STAGES, T = constants(N=16384, BLOCKS=4, CHUNK=512, STAGES=3, T=128)
    V, CHUNKS = constants(V=CHUNK // T, CHUNKS=N // BLOCKS // CHUNK)

    @carbyne.tile("UnaryPointwise.neg", grid={"b": BLOCKS}, threads={"t": T})
    def bulk_copy(body, A: f32[N]) -> {"B": f32[N]}:
        b, t = body.at
        B = body["B"]
        one = body.group("one", body.threads[0])
        each = body.group("each", body.threads.scalar())
        from_ = A.tile([N // BLOCKS])[b].tile([CHUNK])
        to = B.tile([N // BLOCKS])[b].tile([CHUNK])
        stage = body.allocate(f32[CHUNK].array(STAGES), "SH", align=128)
        full = body.allocate(mbarrier[STAGES], "SH")
        x = body.allocate(f32[V], "RF")

        with body.body([A], [full, stage], on=one):
            body.sync("mbarrier.init", full, 1)
            body.sync("fence.async")
            with body.loop("k", STAGES - 1) as k:
                body.sync("mbarrier.expect", full[k], CHUNK * 4)
                body.move(from_[k], stage[k], bar=full[k])
        body.barrier()

        with body.loop("k", CHUNKS) as k:
            with body.when(k + STAGES - 1 < CHUNKS):
                with body.body([A, full], [stage], on=one):
                    next = (k + STAGES - 1) % STAGES
                    body.sync("bulk.wait_read", 0)
                    body.sync("mbarrier.expect", full[next], CHUNK * 4)
                    body.move(from_[cl.min(k + STAGES - 1, CHUNKS - 1)], stage[next], bar=full[next])
            body.sync("mbarrier.wait", full[k % STAGES], k // STAGES % 2)
            mine = stage[k % STAGES].tile([V])[t]
            body.move(mine, x, on=each)
            with body.loop("i", V, unroll=True) as i:
                body.spec("UnaryPointwise.neg", [x[i]], [x[i]], on=each)
            body.move(x, mine, on=each)
            body.sync("fence.async")
            body.barrier()
            with body.body([stage], [B], on=one):
                body.move(stage[k % STAGES], to[k])
                body.sync("bulk.commit")
        with body.body([], [], on=one):
            body.sync("bulk.wait", 0)

    return bulk_copy


def multicast_copy():
    ROWS, N = constants(ROWS=8, N=256)
    (HALF,) = constants(HALF=N // 2)
    grid = group("grid", block[2, ROWS].strides(1, 2))
    pairs = group("pairs", grid.tile([2, 1]))

    @carbyne.tile("Move", grid=pairs, threads={"t": 64})
    def multicast_copy(body, A: f32[ROWS, 2, N].strides(N, 0, 1)) -> {"B": f32[ROWS, 2, N]}:
        (t,) = body.at
        rank, row = body.indices("rank, row", grid)
        one = body.group("one", body.threads[0])
        each = body.group("each", body.threads.scalar())
        x = body.allocate(f32[N], "SH", align=128)
        full = body.allocate(mbarrier[1], "SH")
        done = body.allocate(mbarrier[1], "SH")
        v = body.allocate(f32[4], "RF")

        with body.body([], [full, done], on=one):
            body.sync("mbarrier.init", full, 1)
            body.sync("mbarrier.init", done, 2)
            body.sync("fence.mbarrier_init")
        body.sync("cluster.arrive")
        body.sync("cluster.wait")

        with body.body([A, full], [x], on=one):
            body.sync("mbarrier.expect", full, N * 4)
            half = A[row, rank, :].tile([HALF])[rank]
            body.move(half, x.tile([HALF])[rank], bar=full, multicast=3)
        body.sync("mbarrier.wait", full, 0)
        body.move(x.tile([4])[t], v, on=each)
        body.move(v, body["B"][row, rank, :].tile([4])[t], on=each)

        with body.body([done], [], on=one):
            with body.loop("r", 2) as r:
                body.sync("mbarrier.arrive", done.peer(r))
        body.sync("mbarrier.wait", done, 0)

    return multicast_copy


def tma_transpose():
    M, N, T, WARPS = constants(M=128, N=96, T=32, WARPS=8)

    @carbyne.tile("Move", grid={"i": M // T, "j": N // T}, threads={"lane": T, "warp": WARPS})
    def tma_transpose(body, A: f32[M, N]) -> {"B": f32[M, N].strides(1, M)}:
        i, j, lane, warp = body.at
        one = body.group("one", body.threads[0, 0])
        each = body.group("each", body.threads.scalar())
        from_ = A.tensormap([T, T], swizzle=(3, 4, 3))
        tile = body.allocate(f32[T, T], "SH", swizzle=(3, 4, 3))
        full = body.allocate(mbarrier[1], "SH")
        x = body.allocate(f32[1], "RF")

        body.sync("prefetch", from_)
        with body.body([], [full], on=one):
            body.sync("mbarrier.init", full, 1)
            body.sync("fence.async")
        body.barrier()
        with body.body([A, full], [tile], on=one):
            body.sync("mbarrier.expect", full, T * T * 4)
            body.move(from_[i, j], tile, bar=full, cache="evict_first")
        body.sync("mbarrier.wait", full, 0)

        with body.loop("c", T // WARPS, unroll=True) as c:
            body.move(tile[lane, c * WARPS + warp], x[0], on=each)
            body.move(x[0], body["B"].tile([T, T])[i, j][lane, c * WARPS + warp], on=each)

    return tma_transpose


def graphene_fig1_ldmatrix():
    @carbyne.tile("Move", grid=group("3", block[1]), threads=group("4", thread[32]))
    def ldmatrix(body, in_: f16[16, 16]) -> {"out": f16[16, 16]}:
        warp = body.threads
        by_value = ((4, 8), (2, 2, 2)), ((32, 1), (16, 128, 8)), warp
        _1 = body.allocate(f16[16, 16], "SH")
        _2 = body.allocate(f16[16, 16], "RF", tv=by_value)

        # Fill shared memory: each thread moves half a row, 16 bytes.
        with body.body([in_], [_1], kind="Move"):
            rows = body.group("rows", warp.tile([1]).reshape([16, 2], [2, 1]))
            r, h = body.indices("r, h", rows)
            v = body.allocate(f16[8], "RF")
            body.move(in_.tile([1, 8])[r, h], v, on=warp.scalar(), atom="ld.global.b128")
            body.move(v, _1.tile([1, 8])[r, h], on=warp.scalar(), atom="st.shared.b128")
        body.barrier()

        with body.body([_1], [_2], kind="Move"):
            # Tile the warp into 2×2 groups of 8 threads.
            _5 = body.group("5", warp.tile([8]))
            _6 = body.group("6", _5.reshape([2, 2], [2, 1]))
            grp_m, grp_n = body.indices("grp_m, grp_n", _6)
            body.group("7", warp.tile([8]))
            # Tile the source into 8×8 tiles, one for each group, and those into rows, one for each thread.
            _8 = _1.tile([8, 8])
            _9 = _8[grp_m, grp_n]
            _10 = _9.tile([1, 8])
            _11 = body.group("11", warp.tile([4], [8]))
            row = body.indices("row", _11)
            _12 = _10[row, 0]
            body.move(_12, _2.mine, on=_6)

        # Write the registers out, two neighbors at a time.
        with body.body([_2], [body["out"]], kind="Move"):
            regs = _2.mine.reshape([2, 4], [1, 2])
            mine = body["out"].tv(((4, 8), (2, (2, 2))), ((32, 1), (16, (128, 8))), warp)
            with body.loop("i", 4, unroll=True) as i:
                body.move(regs[:, i], mine[:, i], on=warp.scalar(), atom="st.global.b32")

    return ldmatrix


def graphene_fig8_gemm():
    blocks = group("4", {"bid_m": 8, "bid_n": 8})
    threads = group("5", {"tid_m": 16, "tid_n": 16})

    @carbyne.tile("MatMul", grid=blocks, threads=threads)
    def graphene_kernel(body, _1: f16[1024, 1024], _2: f16[1024, 1024]) -> {"3": f16[1024, 1024]}:
        bid_m, bid_n, tid_m, tid_n = body.at
        loops = body.loop("k", 1024, unroll=True), body.loop("m", 8, unroll=True), body.loop("n", 8, unroll=True)
        with loops[0] as k, loops[1] as m, loops[2] as n:
            # Tile for thread blocks.
            _6 = _1.tile([128, None])
            _7 = _2.tile([None, 128])
            _8 = body["3"].tile([128, 128])
            _9, _10, _11 = _6[bid_m, 0], _7[0, bid_n], _8[bid_m, bid_n]
            # Tile for threads.
            _12 = _9.tile([8, None])
            _13 = _10.tile([None, 8])
            _14 = _11.tile([8, 8])
            _15, _16, _17 = _12[tid_m, 0], _13[0, tid_n], _14[tid_m, tid_n]
            # The scalar computation of one thread.
            _18, _19, _20 = _15[m, k], _16[k, n], _17[m, n]
            one_block = body.group("21", body.blocks.scalar())
            one_thread = body.group("22", body.threads.scalar())
            body.matmul(_18, _19, _20, on=(one_block, one_thread))

    return graphene_kernel


def layouts_fig3_fig4():
    # Figure 3a, and 4a: column-major. Figure 3d has two nested modes.
    a3 = f32[4, 8].strides(1, 4)
    d3_type = f32[(2, 2), (2, 4)].strides((2, 16), (1, 4))

    @carbyne.tile("Move", grid={}, threads=group("warp", thread[32]))
    def figures(body, A: a3) -> {"d3": d3_type}:
        warp, d3 = body.threads, body["d3"]
        # Figure 3b: row-major.
        b3 = body.allocate(f32[4, 8].strides(8, 1), "SH")
        # Figure 3c: two neighbors along a row are consecutive, then come the rows below, then the next two columns.
        c3 = body.allocate(f32[4, (2, 4)].strides(2, (1, 8)), "SH")

        # Figure 4b: two neighboring rows by four neighboring columns.
        of_b = f32[2, 4].strides(1, 4).array(2, 2, strides=(2, 16))
        B = A.tile([2, 4], [1, 1]).typed(of_b, "GL")
        # Figure 4c: every other row.
        of_c = f32[2, 4].strides(2, 4).array(2, 2, strides=(1, 16))
        C = A.tile([2, 4], [2, 1]).typed(of_c, "GL")
        # Figure 4d: every other row, and two neighboring columns twice, four apart.
        of_d = f32[2, (2, 2)].strides(2, (4, 16)).array(2, 2, strides=(1, 8))
        D = A.tile([2, (2, 2)], [2, (1, 4)]).typed(of_d, "GL")

        # A thread for each element: p and q name the tile, i and j the place in it.
        threads = warp.tile([1]).reshape([2, 2, 2, 4], [1, 2, 4, 8])
        each = body.group("each", threads, thread[1].array(2, 2, 2, 4, strides=(1, 2, 4, 8)))
        p, q, i, j = body.indices("p, q, i, j", each)
        one = body.group("one", warp.scalar(), thread[()])

        # From 3a to 3b by the tiles of 4b.
        with body.body([A], [b3], kind="Move"):
            to = b3.tile([2, 4], [1, 1]).typed(f32[2, 4].strides(8, 1).array(2, 2, strides=(16, 4)), "SH")
            x = body.allocate(f32[1].strides(1), "RF")
            body.move(B[p, q][i, j], x[0], on=one)
            body.move(x[0], to[p, q][i, j], on=one)
        body.barrier()

        # From 3b to 3c by the tiles of 4c.
        with body.body([b3], [c3], kind="Move"):
            from_ = b3.tile([2, 4], [2, 1]).typed(f32[2, 4].strides(16, 1).array(2, 2, strides=(8, 4)), "SH")
            to = c3.tile([2, 4], [2, 1]).typed(f32[2, (2, 2)].strides(4, (1, 8)).array(2, 2, strides=(2, 16)), "SH")
            x = body.allocate(f32[1].strides(1), "RF")
            body.move(from_[p, q][i, j], x[0], on=one)
            body.move(x[0], to[p, q][i, j], on=one)
        body.barrier()

        # From 3c to 3d by the tiles of 4d.
        with body.body([c3], [d3], kind="Move"):
            every_other = [2, (2, 2)], [2, (1, 4)]
            from_ = c3.tile(*every_other).typed(f32[2, (2, 2)].strides(4, (1, 16)).array(2, 2, strides=(2, 8)), "SH")
            to = d3.tile(*every_other).typed(f32[2, (2, 2)].strides(16, (1, 8)).array(2, 2, strides=(2, 4)), "GL")
            x = body.allocate(f32[1].strides(1), "RF")
            body.move(from_[p, q][i, j], x[0], on=one)
            body.move(x[0], to[p, q][i, j], on=one)

    return figures


def threads_fig5_fig6():
    # Figure 5a, and 6a: a warp.
    @carbyne.tile("Move", grid={}, threads=group("warp", thread[32]))
    def figures(body, in_: f16[16, 16]) -> {"out": f16[16, 16]}:
        warp, out = body.threads, body["out"]
        tile = body.allocate(f16[16, 16], "SH")
        one = body.group("one", warp.scalar(), thread[()])

        # Figure 5b: four groups of eight neighbors.
        four = body.group("four", warp.tile([8], [1]), thread[8].strides(1).array(4, strides=[8]))
        # Figure 5c: the groups as 2×2; the second mode is the faster one.
        groups = body.group("groups", four.reshape([2, 2], [2, 1]), thread[8].strides(1).array(2, 2, strides=(16, 8)))
        # Figure 6b: four quad-pairs; the first is threads 0 to 3 and 16 to 19.
        quad_pair = thread[(4, 2),].strides((1, 16))
        quadpairs = body.group("quadpairs", warp.tile([(4, 2)], [(1, 16)]), quad_pair.array(4, strides=[4]))

        # The other direction: the position of a thread in its group, and in its quad-pair.
        row = body.group("row", warp.tile([4], [8]), thread[4].strides(8).array(8, strides=[1]))
        member = body.group("member", warp.tile([4], [4]), thread[4].strides(4).array((4, 2), strides=[(1, 16)]))

        with body.body([in_], [tile], kind="Move"):
            m, n = body.indices("m, n", groups)
            r = body.indices("r", row)
            from_ = in_.tile([8, 8])[m, n].tile([1, 8])
            to = tile.tile([8, 8])[m, n].tile([1, 8])
            x = body.allocate(f16[8].strides(1), "RF")
            body.move(from_[r, 0], x, on=one)
            body.move(x, to[r, 0], on=one)
        body.barrier()

        # A quad-pair takes four rows: a quad the left halves, the other the right ones.
        with body.body([tile], [out], kind="Move"):
            q = body.indices("q", quadpairs)
            t = body.indices("t", member)
            from_ = tile.tile([4, 16])[q, 0].tile([1, 8])
            to = out.tile([4, 16])[q, 0].tile([1, 8])
            x = body.allocate(f16[8].strides(1), "RF")
            body.move(from_[t % 4, t // 4], x, on=one)
            body.move(x, to[t % 4, t // 4], on=one)

    return figures


def volta_quad_pairs():
    M, N, K = constants(M=32, N=32, K=32)

    @carbyne.tile("MatMul.set", grid={"bm": M // 16, "bn": N // 16}, threads=group("warp", thread[32]), acc=f32)
    def volta_quad_pairs(body, A: f16[M, K], B: f16[K, N]) -> {"C": f32[M, N]}:
        bm, bn = body.at
        warp = body.threads
        one = body.group("one", warp.scalar())
        # The quad-pairs as 2×2: the first mode is the faster one.
        quadpairs = body.group("quadpairs", warp.tile([(4, 2)], [(1, 16)]))
        tiles = body.group("tiles", quadpairs.reshape([2, 2], [1, 2]))
        qm, qn = body.indices("qm, qn", tiles)
        # The position among the eight threads of the quad-pair.
        member = body.group("member", warp.tile([4], [4]))
        t = body.indices("t", member)

        Ab = A.tile([16, K])[bm, 0]
        Bb = B.tile([K, 16])[0, bn]
        Cb = body["C"].tile([16, 16])[bm, bn]

        # Lanes count a quad, the row and the column of its quad-pair, then the other quad. Quad-pairs of one row
        # hold equal parts of A, those of one column equal parts of B: stride 0.
        a = body.allocate(f16[16, 4], "RF", tv=(((4, 2, 2, 2), 4), ((1, 8, 0, 4), 16), warp))
        b = body.allocate(f16[4, 16], "RF", tv=(((4, 2, 2, 2), 4), ((1, 0, 32, 16), 4), warp))
        c = body.allocate(f32[16, 16], "RF", tv=(((2, 2, 2, 2, 2), (2, 2, 2)), ((1, 32, 8, 128, 4), (16, 2, 64)), warp))

        with body.body([0], [c], kind="Init"), body.loop("i", 8, unroll=True) as i:
            body.spec("Init", [0], [c.mine.reshape([8], [1])[i]], on=one, atom="init.f32")
        with body.loop("k", K // 4) as k:
            with body.body([Ab.tile([16, 4])[0, k]], [a], kind="Move"):
                from_ = Ab.tile([1, 4])[qm * 8 + t, k]
                body.move(from_, a.mine, on=one, atom="ld.global.b64")
            with body.body([Bb.tile([4, 16])[k, 0]], [b], kind="Move"):
                from_ = Bb.tile([1, 4])[k * 4 + t % 4, qn * 2 + t // 4]
                body.move(from_, b.mine, on=one, atom="ld.global.b64")
            with body.body([a, b], [c], kind="MatMul"):
                body.matmul(a.mine, b.mine, c.mine, on=quadpairs, atom="mma.m8n8k4.row.row.f32.f16")

        # A thread has pairs of neighbors along n.
        with body.body([c], [Cb], kind="Move"):
            to = Cb.tv(((2, 2, 2, 2, 2), (2, (2, 2))), ((1, 32, 8, 128, 4), (16, (2, 64))), warp)
            with body.loop("i", 4, unroll=True) as i:
                body.move(c.mine.reshape([2, 4], [1, 2])[:, i], to[:, i], on=one, atom="st.global.b64")

    return volta_quad_pairs


def fill_rows(body, source, stage, threads, one, shape, count):
    """Copies a tile to shared memory, 8 elements per thread at a time. `shape` is the arrangement of threads along rows
    and columns, and `one` is a single thread."""
    rows_at_once, columns = shape
    with body.body([source], [stage], kind="Move"):
        rows = body.group("rows", threads.tile([1]).reshape([rows_at_once, columns], [columns, 1]))
        r, v = body.indices("r, v", rows)
        with body.loop("i", count, unroll=True) as i:
            from_ = source.tile([1, 8])[i * rows_at_once + r, v]
            to = stage.tile([1, 8])[i * rows_at_once + r, v]
            body.move(from_, to, on=one, atom="cp.async.cg.b128")


def ampere_gemm_by_hand():
    M, N, K = constants(M=256, N=256, K=128)
    BM, BN, BK = constants(BM=128, BN=128, BK=32)

    @carbyne.tile("MatMul.set", grid={"bm": M // BM, "bn": N // BN}, threads=128, acc=f32)
    def ampere_gemm(body, A: f16[M, K], B: f16[K, N]) -> {"C": f16[M, N]}:
        bm, bn = body.at
        cta = body.threads
        warps = body.group("warps", cta.tile([32]).reshape([2, 2], [1, 2]))
        wm, wn = body.indices("wm, wn", warps)
        one = body.group("one", cta.scalar())

        # This block reads and writes: tiles along K of A and B, one tile of C.
        Ab = A.tile([BM, BK])[bm, :]
        Bb = B.tile([BK, BN])[:, bn]
        Cb = body["C"].tile([BM, BN])[bm, bn]

        # Shared memory, both row-major; the swizzles spread eight rows over all banks.
        As = body.allocate(f16[BM, BK].strides(BK, 1), "SH", swizzle=(2, 4, 3))
        Bs = body.allocate(f16[BK, BN].strides(BN, 1), "SH", swizzle=(3, 4, 4))

        # Fragments: thread-value layouts of mma.m16n8k16, repeated over the warp's tiles, then over warps.
        of_a = ((4, 8, 2, 2), (2, 2, 2, 4)), ((256, 1, 64, 0), (128, 8, 1024, 16)), cta
        of_b = ((4, 8, 2, 2), (2, 2, 8)), ((2, 16, 0, 1024), (1, 8, 128)), cta
        of_c = ((4, 8, 2, 2), (2, 2, 4, 8)), ((256, 1, 64, 8192), (128, 8, 16, 1024)), cta
        a = body.allocate(f16[BM, 16], "RF", tv=of_a)
        b = body.allocate(f16[16, BN], "RF", tv=of_b)
        c = body.allocate(f32[BM, BN], "RF", tv=of_c)

        # One thread's view of its fragments: values of one instruction first, then the instructions.
        ar = a.mine.reshape([8, 4], [1, 8])
        br = b.mine.reshape([4, 8], [1, 4])
        cr = c.mine.reshape([4, 4, 8], [1, 4, 16])

        with body.body([0], [c], kind="Init"), body.loop("i", 128, unroll=True) as i:
            body.spec("Init", [0], [c.mine.reshape([128], [1])[i]], on=one, atom="init.f32")

        with body.loop("k", K // BK) as k:
            # No warp may overwrite the stage while another warp still reads it.
            body.barrier()

            # A: four threads fill a row of 32, the block 32 rows at a time.
            fill_rows(body, Ab[k], As, cta, one, (32, 4), BM // 32)

            # B: sixteen threads fill a row of 128, the block 8 rows at a time.
            fill_rows(body, Bb[k], Bs, cta, one, (8, 16), BK // 8)
            body.sync("async.commit")
            body.sync("async.wait", 0)
            body.barrier()

            with body.loop("s", BK // 16, unroll=True) as s:
                # A: a lane addresses row l % 16 of its warp's tile, at column 0 or 8.
                with body.body([As.tile([BM, 16])[0, s]], [a], kind="Move"):
                    lanes = body.group("lanes", cta.tile([4], [32]).reshape([2, 16], [16, 1]))
                    half, row = body.indices("half, row", lanes)
                    with body.loop("i", 4, unroll=True) as i:
                        from_ = As.tile([1, 8])[wm * 64 + i * 16 + row, s * 2 + half]
                        body.move(from_, ar[:, i], on=warps, atom="ldmatrix.x4.b16")

                # B: stored k by n, so transposed on the way; one ldmatrix brings two tiles of 16×8.
                with body.body([Bs.tile([16, BN])[s, 0]], [b], kind="Move"):
                    lanes = body.group("lanes", cta.tile([4], [32]).reshape([2, 16], [16, 1]))
                    half, row = body.indices("half, row", lanes)
                    with body.loop("j", 4, unroll=True) as j:
                        from_ = Bs.tile([1, 8])[s * 16 + row, wn * 8 + j * 2 + half]
                        to = b.mine.reshape([8, 4], [1, 8])[:, j]
                        body.move(from_, to, on=warps, atom="ldmatrix.x4.trans.b16")

                with body.body([a, b], [c], kind="MatMul"):
                    with body.loop("i", 4, unroll=True) as i, body.loop("j", 8, unroll=True) as j:
                        body.matmul(ar[:, i], br[:, j], cr[:, i, j], on=warps, atom="mma.m16n8k16.f32.f16")

        # Round to f16 and store: a thread owns pairs of neighbors along n.
        h = body.allocate(f16[BM, BN], "RF", tv=of_c)
        hr = h.mine.reshape([2, 64], [1, 2])
        with body.body([c], [h], kind="UnaryPointwise.cast"), body.loop("i", 64, unroll=True) as i:
            body.spec(
                "UnaryPointwise.cast", [c.mine.reshape([2, 64], [1, 2])[:, i]], [hr[:, i]],
                on=one, atom="cvt.f16x2.f32",
            )  # fmt: skip
        with body.body([h], [Cb], kind="Move"):
            to = Cb.tv(((4, 8, 2, 2), (2, (2, 4, 8))), ((256, 1, 64, 8192), (128, (8, 16, 1024))), cta)
            with body.loop("i", 64, unroll=True) as i:
                body.move(hr[:, i], to[:, i], on=one, atom="st.global.b32")

    return ampere_gemm


def ampere_gemm_roles_by_hand():
    M, N, K = constants(M=256, N=512, K=256)
    BM, BN, BK, ST = constants(BM=128, BN=256, BK=64, ST=3)

    @carbyne.tile("MatMul.set", grid={"bm": M // BM, "bn": N // BN}, threads=288, acc=f32)
    def ampere_gemm_roles(body, A: f16[M, K], B: f16[K, N]) -> {"C": f16[M, N]}:
        bm, bn = body.at
        C = body["C"]
        consumers = body.group("consumers", body.threads[0:256])
        producer = body.group("producer", body.threads[256:288])
        body.group("one", body.threads.scalar())

        Ab = A.tile([BM, BK])[bm, :]
        Bb = B.tile([BK, BN])[:, bn]
        Cb = C.tile([BM, BN])[bm, bn]

        # Row-major; the swizzles spread eight rows over all banks.
        As = body.allocate(f16[BM, BK].strides(BK, 1).array(ST), "SH", swizzle=(3, 4, 3))
        Bs = body.allocate(f16[BK, BN].strides(BN, 1).array(ST), "SH", swizzle=(3, 4, 5))
        full = body.allocate(mbarrier[ST], "SH")
        empty = body.allocate(mbarrier[ST], "SH")
        with body.body([], [full, empty], on=body.threads[0]):
            body.sync("mbarrier.init", full, 32)
            body.sync("mbarrier.init", empty, 8)
        body.barrier()

        with body.body([A, B, full, empty], [As, Bs], on=producer), body.loop("k", K // BK) as k:
            # A fresh barrier passes parity 1.
            body.sync("mbarrier.wait", empty[k % ST], (k // ST + 1) % 2)

            # Eight threads fill a row of A, 64 elements; all of them one of B, 256.
            fill_rows(body, Ab[k], As[k % ST], producer, producer.scalar(), (4, 8), BM // 4)
            with body.body([Bb[k]], [Bs[k % ST]], kind="Move"):
                v = body.indices("v", producer)
                with body.loop("i", BK, unroll=True) as i:
                    from_ = Bb[k].tile([1, 8])[i, v]
                    to = Bs[k % ST].tile([1, 8])[i, v]
                    body.move(from_, to, on=producer.scalar(), atom="cp.async.cg.b128")
            body.sync("mbarrier.async_arrive", full[k % ST])

        with body.body([As, Bs, full, empty], [C], on=consumers):
            warps = body.group("warps", consumers.tile([32]).reshape([4, 2], [1, 4]))
            wn, wm = body.indices("wn, wm", warps)
            each = body.group("each", consumers.scalar())
            leads = body.group("leads", consumers.tile([8], [32])[0])

            # Fragments: thread-value layouts of mma.m16n8k16, repeated over the warp's tiles, then over warps.
            of_a = ((4, 8, 4, 2), (2, 2, 2, 4)), ((256, 1, 0, 64), (128, 8, 1024, 16)), consumers
            of_b = ((4, 8, 4, 2), (2, 2, 8)), ((2, 16, 1024, 0), (1, 8, 128)), consumers
            of_c = ((4, 8, 4, 2), (2, 2, 4, 8)), ((256, 1, 8192, 64), (128, 8, 16, 1024)), consumers
            a = body.allocate(f16[BM, 16], "RF", tv=of_a)
            b = body.allocate(f16[16, BN], "RF", tv=of_b)
            c = body.allocate(f32[BM, BN], "RF", tv=of_c)
            ar = a.mine.reshape([8, 4], [1, 8])
            br = b.mine.reshape([4, 8], [1, 4])
            cr = c.mine.reshape([4, 4, 8], [1, 4, 16])

            with body.body([0], [c], kind="Init"), body.loop("i", 128, unroll=True) as i:
                body.spec("Init", [0], [c.mine.reshape([128], [1])[i]], on=each, atom="init.f32")

            with body.loop("k", K // BK) as k:
                body.sync("mbarrier.wait", full[k % ST], k // ST % 2)
                # Unrolled it would take more registers than nine warps leave.
                with body.loop("s", BK // 16, unroll=False) as s:
                    lanes = body.group("lanes", consumers.tile([8], [32]).reshape([2, 16], [16, 1]))
                    half, row = body.indices("half, row", lanes)

                    # A: a lane addresses row l % 16 of its warp's tile, at column 0 or 8.
                    with body.body([As[k % ST].tile([BM, 16])[0, s]], [a], kind="Move"):
                        with body.loop("i", 4, unroll=True) as i:
                            from_ = As[k % ST].tile([1, 8])[wm * 64 + i * 16 + row, s * 2 + half]
                            body.move(from_, ar[:, i], on=warps, atom="ldmatrix.x4.b16")

                    # B: stored k by n, so transposed on the way; one ldmatrix brings two tiles of 16×8.
                    with body.body([Bs[k % ST].tile([16, BN])[s, 0]], [b], kind="Move"):
                        with body.loop("j", 4, unroll=True) as j:
                            from_ = Bs[k % ST].tile([1, 8])[s * 16 + row, wn * 8 + j * 2 + half]
                            to = b.mine.reshape([8, 4], [1, 8])[:, j]
                            body.move(from_, to, on=warps, atom="ldmatrix.x4.trans.b16")

                    with body.body([a, b], [c], kind="MatMul"):
                        with body.loop("i", 4, unroll=True) as i, body.loop("j", 8, unroll=True) as j:
                            body.matmul(ar[:, i], br[:, j], cr[:, i, j], on=warps, atom="mma.m16n8k16.f32.f16")

                # One lane releases the stage that all lanes have read.
                body.barrier(warps[wn, wm])
                with body.body([empty], [], on=leads):
                    body.sync("mbarrier.arrive", empty[k % ST])

            # Round to f16. A warp sends its 64×64 of C in four parts of 16 rows, 16 bytes of a thread at a time.
            h = body.allocate(f16[BM, BN], "RF", tv=of_c)
            with body.body([c], [h], kind="UnaryPointwise.cast"), body.loop("i", 64, unroll=True) as i:
                pairs = [2, 64], [1, 2]
                body.spec(
                    "UnaryPointwise.cast", [c.mine.reshape(*pairs)[:, i]], [h.mine.reshape(*pairs)[:, i]],
                    on=each, atom="cvt.f16x2.f32",
                )  # fmt: skip
            Cs = body.allocate(f16[16, 64].strides(64, 1).array(4, 2), "SH", swizzle=(3, 4, 3))
            v = body.allocate(f16[8], "RF")
            quads = body.group("quads", consumers.tile([8], [32]).reshape([4, 8], [1, 4]))
            pair, line = body.indices("pair, line", quads)
            octs = body.group("octs", consumers.tile([8], [32]).reshape([8, 4], [1, 8]))
            part, quarter = body.indices("part, quarter", octs)
            with body.loop("i", 4, unroll=True) as i:
                with body.loop("j", 8, unroll=True) as j, body.loop("p", 2, unroll=True) as p:
                    body.move(
                        h.mine.reshape([2, 2, 4, 8], [1, 2, 4, 16])[:, p, i, j],
                        Cs[wn, wm].tile([1, 2])[p * 8 + line, j * 4 + pair],
                        on=each, atom="st.shared.b32",
                    )  # fmt: skip
                body.barrier(warps[wn, wm])
                with body.loop("q", 4, unroll=True) as q:
                    body.move(Cs[wn, wm].tile([1, 8])[q * 4 + quarter, part], v, on=each, atom="ld.shared.b128")
                    to = Cb.tile([64, 64])[wm, wn].tile([1, 8])[i * 16 + q * 4 + quarter, part]
                    body.move(v, to, on=each, atom="st.global.b128")
                body.barrier(warps[wn, wm])

    return ampere_gemm_roles


def hopper_wgmma():
    M, N, K = constants(M=128, N=256, K=192)
    BM, BN, BK = constants(BM=64, BN=128, BK=64)

    @carbyne.tile("MatMul.set", grid={"bm": M // BM, "bn": N // BN}, threads=128, acc=f32)
    def hopper_wgmma(body, A: f16[M, K], B: f16[K, N]) -> {"C": f16[M, N]}:
        bm, bn = body.at
        cta = body.threads
        one = body.group("one", cta.scalar())

        # This block reads and writes: tiles along K of A and B, one tile of C.
        Ab = A.tile([BM, BK])[bm, :]
        Bb = B.tile([BK, BN])[:, bn]
        Cb = body["C"].tile([BM, BN])[bm, bn]

        # Rows of 128 bytes; B has two blocks of 64 columns, one after the other.
        As = body.allocate(f16[BM, BK].strides(BK, 1), "SH", swizzle=(3, 4, 3))
        Bs = body.allocate(f16[BK, (64, 2)].strides(64, (1, 64 * BK)), "SH", swizzle=(3, 4, 3))

        # The accumulator of m64n128: 16 rows a warp, 16 blocks of 8 columns.
        of_c = ((4, 8, 4), (2, 2, 16)), ((128, 1, 16), (64, 8, 512)), cta
        c = body.allocate(f32[BM, BN], "RF", tv=of_c)
        with body.body([0], [c], kind="Init"), body.loop("i", 64, unroll=True) as i:
            body.spec("Init", [0], [c.mine.reshape([64], [1])[i]], on=one, atom="init.f32")

        with body.loop("k", K // BK) as k:
            # No warp may overwrite the stage while another warp still reads it.
            body.barrier()

            # A: eight threads fill a row of 64, the block 16 rows at a time.
            fill_rows(body, Ab[k], As, cta, one, (16, 8), BM // 16)

            # B: sixteen threads fill a row of 128, the block 8 rows at a time.
            fill_rows(body, Bb[k], Bs, cta, one, (8, 16), BK // 8)
            body.sync("async.commit")
            body.sync("async.wait", 0)
            body.sync("fence.async")
            body.barrier()

            with body.body([As, Bs], [c], kind="MatMul"):
                body.sync("wgmma.fence")
                with body.loop("s", BK // 16, unroll=True) as s:
                    factors = As.tile([BM, 16])[0, s], Bs.tile([16, BN])[s, 0]
                    body.matmul(*factors, c.mine, atom="wgmma.m64n128k16.f32.f16.ss")
                body.sync("wgmma.commit")
                body.sync("wgmma.wait", 0)

        # Round to f16 and store: a thread owns pairs of neighbors along n.
        h = body.allocate(f16[BM, BN], "RF", tv=of_c)
        hr = h.mine.reshape([2, 32], [1, 2])
        with body.body([c], [h], kind="UnaryPointwise.cast"), body.loop("i", 32, unroll=True) as i:
            body.spec(
                "UnaryPointwise.cast", [c.mine.reshape([2, 32], [1, 2])[:, i]], [hr[:, i]],
                on=one, atom="cvt.f16x2.f32",
            )  # fmt: skip
        with body.body([h], [Cb], kind="Move"):
            to = Cb.tv(((4, 8, 4), (2, (2, 16))), ((128, 1, 16), (64, (8, 512))), cta)
            with body.loop("i", 32, unroll=True) as i:
                body.move(hr[:, i], to[:, i], on=one, atom="st.global.b32")

    return hopper_wgmma


def hopper_gemm_by_hand():
    M, N, K = constants(M=512, N=512, K=256)
    BM, BN, BK, ST, BAND, G = constants(BM=128, BN=256, BK=64, ST=4, BAND=2, G=3)
    NK, TN = constants(NK=K // BK, TN=N // BN)
    (TILES,) = constants(TILES=M // BM * TN)

    def place(tile):
        """The rows and the columns of a tile of the result."""
        return tile // (BAND * TN) * BAND + tile % BAND, tile // BAND % TN

    @carbyne.tile("MatMul.set", grid={"b": G}, threads=256, acc=f32)
    def hopper_gemm_by_hand(body, A: f16[M, K], B: f16[K, N].strides(1, K)) -> {"C": f16[M, N]}:
        (b,) = body.at
        cta, C = body.threads, body["C"]
        each = body.group("each", cta.scalar())
        wg = body.group("wg", cta.tile([128]))
        g = body.indices("g", wg)
        warps = body.group("warps", cta.tile([32]))
        w = body.indices("w", warps)
        l = body.indices("l", cta.tile([8], [32]))
        lead = body.group("lead", warps[0].elect())
        leads = body.group("leads", warps.elect())

        mA = A.tensormap([BM, BK], swizzle=(3, 4, 3))
        mB = B.tensormap([BK, BN], swizzle=(3, 4, 3))
        mC = C.tensormap([16, 64], swizzle=(3, 4, 3))
        As = body.allocate(f16[BM, BK].strides(BK, 1).array(ST), "SH", swizzle=(3, 4, 3))
        Bs = body.allocate(f16[BK, BN].strides(1, BK).array(ST), "SH", swizzle=(3, 4, 3))
        Cs = body.allocate(f16[16, 64].strides(64, 1).array(8, 2), "SH", swizzle=(3, 4, 3))
        full = body.allocate(mbarrier[ST], "SH")
        empty = body.allocate(mbarrier[ST], "SH")

        with body.body([A, B], [full, empty, As, Bs], on=lead):
            body.sync("prefetch", mA)
            body.sync("prefetch", mB)
            body.sync("mbarrier.init", full, 1)
            body.sync("mbarrier.init", empty, 8)
            body.sync("fence.async")
            with body.loop("p", ST - 1) as p:
                t = body.let(t=b + p // NK * G)
                with body.when(t < TILES):
                    rows, columns = place(t)
                    bm, bn = body.let(bm=rows, bn=columns)
                    body.sync("mbarrier.expect", full[p], (BM + BN) * BK * 2)
                    body.move(mA[bm, p % NK], As[p], bar=full[p])
                    body.move(mB[p % NK, bn], Bs[p], bar=full[p])
        body.barrier()

        of_c = ((4, 8, 4, 2), (2, 2, BN // 8)), ((2 * BM, 1, 16, 64), (BM, 8, 8 * BM)), cta
        c = body.allocate(f32[BM, BN], "RF", tv=of_c)
        with body.loop("t", TILES, start=b, step=G) as t:
            rows, columns = place(t)
            bm, bn = body.let(bm=rows, bn=columns)
            body.spec("Init", [0], [c])

            with body.loop("k", NK) as k:
                # The current step of the ring, the requested step, and its tile.
                q = body.let(q=(t - b) // G * NK + k)
                p, u = body.let(p=q + ST - 1, u=t + (k + ST - 1) // NK * G)
                body.sync("mbarrier.wait", full[q % ST], q // ST % 2)
                body.sync("wgmma.fence")
                with body.loop("s", BK // 16, unroll=True) as s:
                    factors = As[q % ST].tile([64, 16])[g, s], Bs[q % ST].tile([16, BN])[s, 0]
                    body.matmul(*factors, c.mine.reshape([BN // 2], [1])[:], on=wg, acc=f32)
                body.sync("wgmma.commit")
                # While this step is multiplied, the stage of the previous step is free for step p.
                body.sync("wgmma.wait", 1)
                with body.when(q > 0), body.body([empty], [], on=leads):
                    body.sync("mbarrier.arrive", empty[p % ST])
                with body.when(u < TILES), body.body([A, B, full, empty], [As, Bs], on=lead):
                    rows, columns = place(u)
                    um, un = body.let(um=rows, un=columns)
                    # A fresh barrier passes parity 1.
                    body.sync("mbarrier.wait", empty[p % ST], (p // ST + 1) % 2)
                    body.sync("mbarrier.expect", full[p % ST], (BM + BN) * BK * 2)
                    body.move(mA[um, (k + ST - 1) % NK], As[p % ST], bar=full[p % ST])
                    body.move(mB[(k + ST - 1) % NK, un], Bs[p % ST], bar=full[p % ST])
            body.sync("wgmma.wait", 0)

            h = body.allocate(f16[BM, BN], "RF", tv=of_c)
            body.spec("UnaryPointwise.cast", [c], [h])
            # A warp sends its 16 rows 64 columns at a time.
            with body.loop("j", BN // 64, unroll=True) as j:
                with body.body([], [], on=leads):
                    body.sync("bulk.wait_read", 1)
                body.barrier(warps[w])
                # Of 8 columns, a thread has pairs of neighbors in two rows.
                with body.loop("i", 8, unroll=True) as i, body.loop("v", 2, unroll=True) as v:
                    body.move(
                        h.mine.reshape([2, 2, BN // 8], [1, 2, 4])[:, v, j * 8 + i],
                        Cs[w, j % 2].tile([1, 2])[v * 8 + l // 4, i * 4 + l % 4],
                        on=each,
                    )
                body.sync("fence.async")
                body.barrier(warps[w])
                with body.body([Cs], [C], on=leads):
                    row, col = body.let(row=bm * (BM // 16) + g * 4 + w % 4, col=bn * (BN // 64) + j)
                    body.move(Cs[w, j % 2], mC[row, col])
                    body.sync("bulk.commit")
        with body.body([], [], on=leads):
            body.sync("bulk.wait_read", 0)

    return hopper_gemm_by_hand


def hopper_gemm_roles():
    M, N, K, G, BAND = constants(M=512, N=768, K=384, G=3, BAND=2)
    BM, BN, BK, ST = constants(BM=128, BN=256, BK=64, ST=4)
    NK, TM, TN = constants(NK=K // BK, TM=M // BM, TN=N // BN)
    (TILES,) = constants(TILES=TM * TN)

    def place(tile):
        """The rows and the columns of a tile of the result."""
        return tile // (BAND * TN) * BAND + tile % BAND, tile // BAND % TN

    @carbyne.tile("MatMul.set", grid={"b": G}, threads=288, acc=f32)
    def hopper_gemm_roles(body, A: f16[M, K], B: f16[K, N].strides(1, K)) -> {"C": f16[M, N]}:
        (b,) = body.at
        C = body["C"]
        consumers = body.group("consumers", body.threads[0:256])
        producer = body.group("producer", body.threads[256:288].elect())

        mA = A.tensormap([BM, BK], swizzle=(3, 4, 3))
        mB = B.tensormap([BK, BN], swizzle=(3, 4, 3))
        mC = C.tensormap([16, 64], swizzle=(3, 4, 3))
        As = body.allocate(f16[BM, BK].strides(BK, 1).array(ST), "SH", swizzle=(3, 4, 3))
        Bs = body.allocate(f16[BK, BN].strides(1, BK).array(ST), "SH", swizzle=(3, 4, 3))
        Cs = body.allocate(f16[16, 64].strides(64, 1).array(8, 2), "SH", swizzle=(3, 4, 3))
        full = body.allocate(mbarrier[ST], "SH")
        empty = body.allocate(mbarrier[ST], "SH")

        with body.body([], [full, empty], on=producer):
            body.sync("prefetch", mA)
            body.sync("prefetch", mB)
            body.sync("mbarrier.init", full, 1)
            body.sync("mbarrier.init", empty, 8)
            body.sync("fence.async")
        body.barrier()

        with body.body([A, B, full, empty], [As, Bs], on=producer):
            with body.loop("t", TILES, start=b, step=G) as t:
                rows, columns = place(t)
                bm, bn = body.let(bm=rows, bn=columns)
                with body.loop("k", NK) as k:
                    # The step of the ring; a fresh barrier passes parity 1.
                    q = body.let(q=(t - b) // G * NK + k)
                    body.sync("mbarrier.wait", empty[q % ST], (q // ST + 1) % 2)
                    body.sync("mbarrier.expect", full[q % ST], (BM + BN) * BK * 2)
                    copy = {"bar": full[q % ST], "atom": "cp.async.bulk.tensor.2d.shared.global"}
                    body.move(mA[bm, k], As[q % ST], **copy)
                    body.move(mB[k, bn], Bs[q % ST], **copy)

        with body.body([As, Bs, full, empty], [C, Cs], on=consumers):
            each = body.group("each", consumers.scalar())
            wg = body.group("wg", consumers.tile([128]))
            g = body.indices("g", wg)
            warps = body.group("warps", consumers.tile([32]))
            w = body.indices("w", warps)
            leads = body.group("leads", warps.elect())
            lanes = body.group("lanes", consumers.tile([8], [32]).reshape([2, 16], [16, 1]))
            half, row = body.indices("half, row", lanes)

            of_c = ((4, 8, 4, 2), (2, 2, 32)), ((256, 1, 16, 64), (128, 8, 1024)), consumers
            c = body.allocate(f32[BM, BN], "RF", tv=of_c)
            h = body.allocate(f16[BM, BN], "RF", tv=of_c)
            with body.loop("t", TILES, start=b, step=G) as t:
                rows, columns = place(t)
                bm, bn = body.let(bm=rows, bn=columns)
                with body.body([0], [c], kind="Init"), body.loop("i", 128, unroll=True) as i:
                    body.spec("Init", [0], [c.mine.reshape([128], [1])[i]], on=each, atom="init.f32")

                with body.loop("k", NK) as k:
                    q = body.let(q=(t - b) // G * NK + k)
                    body.sync("mbarrier.wait", full[q % ST], q // ST % 2)
                    body.sync("wgmma.fence")
                    with body.loop("s", BK // 16, unroll=True) as s:
                        factors = As[q % ST].tile([64, 16])[g, s], Bs[q % ST].tile([16, BN])[s, 0]
                        body.matmul(*factors, c.mine, on=wg, acc=f32, atom="wgmma.m64n256k16.f32.f16.ss")
                    body.sync("wgmma.commit")
                    # While this step is multiplied, the stage of the previous step is released.
                    body.sync("wgmma.wait", 1)
                    with body.when(k > 0), body.body([empty], [], on=leads):
                        body.sync("mbarrier.arrive", empty[(q + ST - 1) % ST])
                body.sync("wgmma.wait", 0)
                with body.body([empty], [], on=leads):
                    body.sync("mbarrier.arrive", empty[((t - b) // G * NK + NK - 1) % ST])

                # Round to f16; each warp sends its 16 rows in four boxes by way of two slots.
                with body.body([c], [h], kind="UnaryPointwise.cast"), body.loop("i", 64, unroll=True) as i:
                    pairs = [2, 64], [1, 2]
                    body.spec(
                        "UnaryPointwise.cast", [c.mine.reshape(*pairs)[:, i]], [h.mine.reshape(*pairs)[:, i]],
                        on=each, atom="cvt.f16x2.f32",
                    )  # fmt: skip
                with body.loop("j", BN // 64, unroll=True) as j:
                    with body.body([], [], on=leads):
                        body.sync("bulk.wait_read", 1)
                    body.barrier(wg[g])
                    with body.loop("i", 4, unroll=True) as i:
                        to = Cs[w, j % 2].tile([1, 8])[row, i * 2 + half]
                        body.move(h.mine.reshape([8, 16], [1, 8])[:, j * 4 + i], to, on=warps, atom="stmatrix.x4.b16")
                    body.sync("fence.async")
                    body.barrier(wg[g])
                    with body.body([Cs], [C], on=leads):
                        box = {"atom": "cp.async.bulk.tensor.2d.global.shared"}
                        body.move(Cs[w, j % 2], mC[bm * 8 + w, bn * 4 + j], **box)
                        body.sync("bulk.commit")
            with body.body([], [], on=leads):
                body.sync("bulk.wait_read", 0)

    return hopper_gemm_roles


#: Functions that make a kernel, by names of examples.
FORMS = {name: made for name, made in globals().items() if getattr(made, "__module__", "") == __name__ and name not in ("copied", "fill_rows")}
for order in ("row", "column", "padded"):
    for bits, scalar in ((8, u8), (16, f16), (32, f32)):
        for memory in ("registers", "shared"):
            FORMS[f"copy_{order}_b{bits}_{memory}"] = partial(copied, order, scalar, memory)
