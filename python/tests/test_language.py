"""Kernels that are written in Python: their texts, their results, and errors."""

from __future__ import annotations

import re
from pathlib import Path

import carbyne
import forms
import numpy as np
import pytest
from carbyne import language as cl
from carbyne.language import (
    TensorType, assume, cast, ceil_div, constants, exp, f16, f32, gelu, i32, max, maximum, min, move, relu, rsqrt, sqrt, symbols, where,
)  # fmt: skip

EXAMPLES = Path(__file__).parents[2] / "examples"
M, N, K = symbols("M N K", M=4096, N=4096, K=4096)
B, H, S, T = symbols("B, H, S, T")


def meaning(example: str) -> str:
    """The declarations and the meaning of the spec of an example, without comments, facts and body."""
    text = re.sub(r"//.*", "", (EXAMPLES / f"{example}.cby").read_text())
    text = re.sub(r" *<<<.*?>>>\s*", " ", text)
    (means,) = re.findall(r"means \{(.*?)\n\}", text, re.S)
    return plain(means)


def means(kernel: carbyne.Kernel) -> str:
    (found,) = re.findall(r"means \{(.*?)\n\}", kernel.text(loc=False), re.S)
    return plain(found)


def test_kernels_mean_what_examples_mean():
    D = 64

    @carbyne.kernel
    def softmax_any(X: f16[M, N]) -> {"Y": f16[M, N]}:
        e = exp(X - X.max(axis=1))
        return e / e.sum(axis=1)

    @carbyne.kernel
    def layernorm_any(
        X: f16[M, N], weight: f16[1, N], bias: f16[1, N]
    ) -> {"Y": f16[M, N]}:
        d = X - X.sum(axis=1) / N
        variance = (d * d).sum(axis=1) / N
        return d * rsqrt(variance + 0.00001) * weight + bias

    @carbyne.kernel
    def attention_any(
        Q: f16[B, H, S, D], K: f16[B, H, T, D], V: f16[B, H, T, D]
    ) -> {"O": f16[B, H, S, D]}:
        s = Q @ K.T / sqrt(D)
        seen = where(s.iota(2) + (T - S) >= s.iota(3), s, -np.inf)
        p = exp(seen - seen.max(axis=3))
        return p / p.sum(axis=3) @ V

    @carbyne.kernel
    def add_any(A: f32[M, N], B: f32[M, N]) -> {"C": f32[M, N]}:
        return A + B

    @carbyne.kernel
    def gemm_bias_relu(A: f16[256, 128], B: f16[128, 256], b: f32[1, 256]) -> {"C": f16[256, 256]}:
        return relu(A @ B + b)

    @carbyne.kernel
    def moe_gemm(
        A: f16[1024, 128], rows: i32[256].within(0, 1024), B: f16[128, 256]
    ) -> {"C": f16[256, 256]}:
        return A[rows, :] @ B

    for kernel in (softmax_any, layernorm_any, add_any, gemm_bias_relu, moe_gemm):
        assert means(kernel) == meaning(kernel.__name__)
    # The root of a constant is computed by Python.
    assert means(attention_any) == meaning("attention_any").replace("sqrt(D)", "8.0")


def untyped(text: str) -> str:
    """A text without the types of views, which follow from the viewed tensors."""
    return re.sub(r"([%#]\w+):[^=\n]+ = *\n? *(?=[%#])", r"\1 = ", text)


def plain(text: str) -> str:
    """A text without comments and blank lines; `let` of numbers as numbers, and numbers as Python writes them."""
    text = re.sub(r"//.*", "", text)
    # Groups of one mode are declared with their stride.
    text = re.sub(r":1\]\.(thread|block)", r"].\1", text)
    # Consecutive names of numbers may be in one statement.
    while (merged := re.sub(r"^( *let [^\n]*)\n\s*let ", r"\1, ", text, flags=re.M)) != text:
        text = merged
    known: dict[str, int] = {}
    for name, value in re.findall(r"(\w+) = ([^,\n]+)", "\n".join(re.findall(r"^let .*", text, re.M))):
        known[name] = eval(value.replace("/", "//"), {}, known)
    lets = lambda m: "let " + ", ".join(f"{n} = {known[n]}" for n in re.findall(r"(\w+) =", m[0]))
    text = re.sub(r"\d+\.\d+(e-\d+)?|\d+e-\d+", lambda m: repr(float(m[0])), re.sub(r"^let .*", lets, text, flags=re.M))
    return " ".join(text.split())


@pytest.mark.parametrize("name", forms.FORMS)
def test_examples_are_printed_from_their_python_form(name: str):
    files = [*EXAMPLES.glob(f"{name}.cby"), *EXAMPLES.glob(f"tile/{name}.cby")]
    (example,) = files
    wanted = carbyne.Program(example.read_text()).fmt()
    found = forms.FORMS[name]().text(loc=False)
    # A form states the types of all views or of none.
    assert plain(found) == plain(wanted if untyped(found) != found else untyped(wanted))


def test_sizes_and_facts_are_declared():
    @carbyne.kernel
    def scaled(X: f32[M, N].strides(N + 8, 1), s: f32) -> f32[N, M]:
        assume(M > 0, N % 8 == 0, N <= 2 * M)
        assume(M > 0)
        return X.T * s / ceil_div(N, 3)

    text = scaled.text(loc=False)
    assert "sym M, N where M > 0, N % 8 == 0, N <= 2 * M typical M=4096, N=4096" in text
    assert "%X:[(M,N):(N + 8,1)].f32.GL" in text
    assert "%s:[].f32\n" in text
    assert "%out = %X.transpose() * %s / ceil_div(N, 3)" in text


def test_names_are_those_of_variables():
    @carbyne.kernel
    def twice(X: f32[8, 8]) -> f32[8, 8]:
        square = X * X
        X = square + square
        half = X / 2
        unused = exp(half)
        del unused
        return half * half + square

    lines = twice.text(loc=False).split("means {")[1].splitlines()[1:-1]
    assert lines == [
        "  %square = %X * %X",
        "  %X1 = %square + %square",
        "  %half = %X1 / 2",
        "  %out = %half * %half + %square",
    ]


def test_operators_bind_as_in_python():
    @carbyne.kernel
    def odd(X: f32[4, 4]) -> f32[4, 4]:
        return -(X - (X - 1)) * (X + 2) / (3 * X + 5) - 1 / (X + 7) - abs(X)

    x = np.random.default_rng(1).uniform(1, 2, (4, 4)).astype(np.float32)
    wanted = -(x - (x - 1)) * (x + 2) / (3 * x + 5) - 1 / (x + 7) - abs(x)
    np.testing.assert_allclose(odd(x), wanted, rtol=1e-5)


def test_results_may_be_several_and_views():
    @carbyne.kernel
    def parts(X: f32[4, 8]) -> {"top": f32[4, 1], "turned": f32[8, 4], "again": f32[4, 8]}:
        return {"turned": X.T, "top": X.max(axis=1), "again": X}

    @carbyne.kernel
    def pair(X: f32[4, 8]) -> (f32[4, 8], f32[4, 8]):
        y = X + 1
        return y, y

    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    top, turned, again = parts(x)
    assert (top[:, 0] == x.max(1)).all() and (turned == x.T).all() and (again == x).all()
    first, second = pair(x)
    assert (first == x + 1).all() and (second == x + 1).all()


def test_functions_are_shared_and_kernels_are_not():
    def normalized(x):
        return x * rsqrt((x * x).sum(axis=1) / 16 + 1e-6)

    @carbyne.kernel
    def block(X: f32[4, 16], R: f32[4, 16]) -> f32[4, 16]:
        return normalized(X + R) + R

    rng = np.random.default_rng(2)
    x, r = rng.standard_normal((2, 4, 16)).astype(np.float32)
    y = x + r
    wanted = y / np.sqrt((y * y).mean(1, keepdims=True) + 1e-6) + r
    np.testing.assert_allclose(block(x, r), wanted, rtol=1e-5)

    @carbyne.kernel
    def outer(X: f32[4, 16]) -> f32[4, 16]:
        return block(X, X)

    with refused("a kernel and has sizes of its own"):
        outer.text()


def test_views_are_of_what_was_computed_before():
    @carbyne.tile(grid={}, threads=128)
    def turned(body, X: f32[64, 64]) -> {"Y": f32[64, 64]}:
        x = body.move(X)
        view = [(x * 2).T]
        x[...] = x + 1
        body["Y"][...] = view[0]

    x = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)
    assert (turned(x) == 2 * x.T).all()


def test_sizes_of_one_name_are_one_size():
    (four,), (eight,) = constants(C=4), constants(C=8)

    @carbyne.kernel
    def two(X: f32[4, 4]) -> f32[4, 4]:
        return X * four + eight

    with refused("two different sizes are named `C`", ValueError):
        two.text()
    (thirds,) = constants(M=256)

    @carbyne.kernel
    def quotient(X: f32[4, 4]) -> f32[4, 4]:
        return X * (thirds // 3)

    assert (quotient(np.ones((4, 4), np.float32)) == 85).all()


def test_variables_end_with_their_blocks():
    def outside(body, X: f32[64]) -> {"Y": f32[64]}:
        with body.loop("k", 2) as first:
            pass
        with body.loop("k", 3), body.when(first < 1):
            body.move(X, body["Y"])

    def never(body, X: f32[64]) -> {"Y": f32[64]}:
        body.loop("k", 2).__enter__()

    def crossed(body, X: f32[64]) -> {"Y": f32[64]}:
        a, b = body.loop("k", 2), body.loop("m", 2)
        a.__enter__(), b.__enter__()
        a.__exit__(None, None, None)

    def returns(body, X: f32[64]) -> {"Y": f32[64]}:
        return body.move(X)

    def no_builder(X: f32[64], Z: f32[64]) -> {"Y": f32[64]}: ...

    def condition(body, X: f32[64]) -> {"Y": f32[64]}:
        with body.when(True):
            pass

    def changed(body, X: f32[64]) -> {"Y": f32[64]}:
        x = body.move(X)
        x += 1

    def local_fact(body, X: f32[64]) -> {"Y": f32[64]}:
        with body.loop("k", 2) as k:
            assume(k < 2)

    for function, kind, message in [
        (outside, ValueError, "a block that has ended"),
        (never, RuntimeError, "has not ended"),
        (crossed, RuntimeError, "another order"),
        (returns, TypeError, "returns nothing"),
        (no_builder, TypeError, "the builder of the body"),
        (condition, TypeError, "`when` compares sizes"),
        (changed, TypeError, "would make a new tensor"),
        (local_fact, ValueError, "about no symbol"),
    ]:
        with refused(message, kind):
            carbyne.tile(grid={}, threads=64)(function).text()


def test_a_meaning_has_the_arguments_of_its_body():
    @carbyne.kernel
    def other(B: f32[64], A: f32[64]) -> {"Y": f32[64]}:
        return B - A

    def body_of(body, A: f32[64], B: f32[64]) -> {"Y": f32[64]}:
        body["Y"][...] = A - B

    with refused("other arguments or results"):
        carbyne.tile(grid={}, threads=64, means=other)(body_of)


def test_equality_is_never_decided_by_python():
    def wrong(X: f32[8]) -> f32[8]:
        return X if (X > 3) == True else -X  # noqa: E712

    with refused("`==` is of traced tensors and numbers, not of True"):
        carbyne.kernel(wrong).text()
    with refused("is compared with sizes"):
        M == 8.0  # noqa: B015


def test_a_profiler_may_run():
    import cProfile

    @carbyne.kernel
    def plain(X: f32[8]) -> f32[8]:
        twice = X + X
        return twice * twice

    wanted = plain.text()
    with cProfile.Profile():
        assert plain.text() == wanted


def test_a_number_may_come_first():
    @carbyne.kernel
    def scaled(a: f32, X: f32[4, 4]) -> f32[4, 4]:
        return X * a

    assert (scaled(2.0, np.ones((4, 4), np.float32)) == 2).all()
    with refused("called with tensors"):
        scaled()


def test_operations_compute_what_numpy_does():
    @carbyne.kernel
    def many(X: f32[8, 16], Y: f32[8, 16]) -> {"a": f32[8, 16], "b": f32[8, 1], "c": f32[4, 16], "d": f32[8, 16]}:
        return {
            "a": where(X > Y, max(X, 0.0), min(Y, X) - 1),
            "b": (X * Y).min(axis=1) + Y.sum(axis=1) * 0.5,
            "c": X[2:6, :] + move(Y[0:4, :]),
            "d": cast(cast(X.iota(1), f32) * 2.5, f32) + maximum(X, Y),
        }

    x, y = np.random.default_rng(3).standard_normal((2, 8, 16)).astype(np.float32)
    a, b, c, d = many(x, y)
    np.testing.assert_allclose(a, np.where(x > y, np.maximum(x, 0), np.minimum(y, x) - 1), rtol=1e-6)
    np.testing.assert_allclose(b[:, 0], (x * y).min(1) + y.sum(1) * 0.5, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(c, x[2:6] + y[:4], rtol=1e-6)
    np.testing.assert_allclose(d, np.arange(16) * 2.5 + np.maximum(x, y), rtol=1e-6)


def test_errors_point_into_python():
    @carbyne.kernel
    def unfit(A: f16[64, 32], B: f16[16, 64]) -> f16[64, 64]:
        return gelu(A @ B)

    with pytest.raises(carbyne.Error) as error:
        unfit.program
    (first, *_) = error.value.diagnostics
    assert first.code == "V0208"
    assert re.search(r"test_language\.py:\d+", str(error.value))


def refused(message: str, kind: type[Exception] = TypeError):
    return pytest.raises(kind, match=message)


def test_wrong_functions_are_refused():
    X = f32[8, 8]

    def no_type(A) -> X: ...
    def no_result(A: X): ...
    def wrong_type(A: int) -> X: ...
    def many(*A: X) -> X: ...
    def nothing(A: X) -> X: ...
    def two(A: X) -> X:
        return A, A
    def branches(A: X) -> X:
        return A if A > 0 else -A
    def loops(A: X) -> X:
        return sum(A)
    def calls_numpy(A: X) -> X:
        return np.exp(A)
    def guesses(A: f32[M, 8]) -> f32[M, 8]:
        return A if M > 8 else -A
    def halves(A: f32[M, 8]) -> f32[M, 8]:
        return A * (M / 2)
    def negative(A: X) -> X:
        return A.sum(axis=-1)
    def clash(A: X) -> {"A": X}:
        return A
    def other_type(A: X) -> {"A": f16[8, 8]}:
        return cast(A, f16)
    def swapped(A: X, B: X) -> {"A": X, "B": X}:
        return B, A
    def late(A: X) -> {"A": X, "S": f32[8, 1]}:
        new = A + 1
        return new, A.sum(axis=1)

    for function, message in [
        (no_type, "`A` needs a type"),
        (no_result, "needs the type of its result"),
        (wrong_type, "has a type such as"),
        (many, "a parameter for each tensor"),
        (nothing, "returns None"),
        (two, "returns 2 results, and 1 types"),
        (branches, "no truth value: choose elements by `where"),
        (loops, "cannot be iterated over"),
        (calls_numpy, "NumPy's `exp` cannot compute"),
        (guesses, "has no value yet.*assume"),
        (halves, "divide them by `//`"),
        (clash, "returns `A` as it is"),
        (other_type, "has the name of an argument, and another type"),
        (swapped, "updated in place and read afterwards"),
        (late, "updated in place and read afterwards"),
    ]:
        with refused(message):
            carbyne.kernel(function).text()
    with refused("cannot be negative", ValueError):
        carbyne.kernel(negative).text()
    with refused("no kernel is traced", RuntimeError):
        assume(M > 0)
    with refused("cannot name a kernel", ValueError):
        carbyne.kernel(lambda A: A)
    with refused("is no name of a symbol", ValueError):
        symbols("M 2N")
    with refused("none of the symbols"):
        symbols("M", N=3)


def test_statements_of_bodies_are_those_of_the_language():
    @carbyne.tile(grid={}, threads={"t": 64})
    def many(body, X: f32[64], n: i32[2].within(0, 64)) -> {"Y": f32[64]}:
        (t,) = body.at
        one = body.group("one", body.threads.scalar())
        warps = body.threads.tile([32])
        w = body.indices("w", warps)
        first = body.number("first", n[0])
        half = body.let(half=(first + 64) // 2)
        s = body.allocate(f32[64], "SH", align=128)
        x = body.allocate(f32[1], "RF")
        with body.when(w < 1, half >= 0):
            body.move(X[t], x[0], on=one, atom="ld.global.b32")
        with body.otherwise():
            body.spec("Init", [1.5], [x], on=one)
        body.move(x[0], s[t], on=one, atom="st.shared.b32")
        body.barrier()
        body.barrier(warps[w])
        body.sync("async.wait", 0)
        with body.body([s], [x, body["Y"]], on=body.threads[0:64]):
            body.move(s[63 - t], x[0], on=one, atom="ld.shared.b32")
            body.move(x[0], body["Y"][t], on=one, atom="st.global.b32")

    statements = many.text(loc=False).split("-> (%Y) {\n")[1].splitlines()[:-1]
    assert [line.strip() for line in statements] == [
        "#one = #cta.scalar()",
        "@w = #cta.tile([32]).indices()",
        "@first = %n[0]",
        "let half = (@first + 64) / 2",
        "Allocate %s:[64].f32.SH{align=128}",
        "Allocate %x:[1].f32.RF",
        "if (@w < 1 && half >= 0) {",
        "Move <<<#one>>> (%X[@t]) -> (%x[0]) atom=ld.global.b32",
        "} else {",
        "Init <<<#one>>> (1.5) -> (%x)",
        "}",
        "Move <<<#one>>> (%x[0]) -> (%s[@t]) atom=st.shared.b32",
        "barrier",
        "barrier(#cta.tile([32])[@w])",
        "async.wait(0)",
        "Spec <<<#cta[0..64]>>> (%s) -> (%x, %Y) {",
        "Move <<<#one>>> (%s[63 - @t]) -> (%x[0]) atom=ld.shared.b32",
        "Move <<<#one>>> (%x[0]) -> (%Y[@t]) atom=st.global.b32",
        "}",
    ]


def test_long_chains_are_written_in_parts():
    @carbyne.kernel
    def chain(X: f32[8, 8]) -> f32[8, 8]:
        for _ in range(3000):
            X = X + 1
        return X

    assert chain.text(loc=False).count("+ 1") == 3000
    assert all(len(line) < 200 for line in chain.text(loc=False).splitlines())


def test_constants_are_declared_wherever_they_are_used():
    W, P = constants(W=32, P=2)
    (E,) = constants(E=16)

    @carbyne.tile(grid={}, threads=64)
    def used(body, X: f32[64]) -> {"Y": f32[64]}:
        warps = body.group("warps", body.threads.tile([W]))
        with body.loop("k", P, start=0) as k:
            with body.body([X], [body["Y"]], on=warps[k]):
                body.move(X.tile([32])[k], body["Y"].tile([32])[k])
        body.allocate(f32[E], "SH")

    text = used.text(loc=False)
    assert "let W = 32, P = 2" in text and "let E = 16" in text


def test_operations_stand_before_what_changes_their_operands():
    @carbyne.tile(grid={}, threads=128)
    def order(body, X: f32[64, 64]) -> {"Y": f32[64, 64]}:
        x = body.move(X)
        twice = [x * 2]
        x[...] = x + 1
        body["Y"][...] = twice[0] + x

    x = np.arange(4096, dtype=np.float32).reshape(64, 64)
    assert (order(x) == 3 * x + 1).all()


def test_a_body_needs_threads():
    def body_of(body, X: f32[64]) -> {"Y": f32[64]}:
        body.move(X, body["Y"])

    with refused("say how many threads"):
        carbyne.tile("Move")(body_of).text()


def test_wrong_bodies_are_refused():
    def body_of(function):
        return carbyne.tile(grid={}, threads=128)(function).text()

    def otherwise(body, X: f32[64]) -> {"Y": f32[64]}:
        with body.otherwise():
            pass

    def unknown(body, X: f32[64]) -> {"Y": f32[64]}:
        body["Z"]

    with refused("stands behind a `when`", RuntimeError):
        body_of(otherwise)
    with refused("there is no result `Z`", KeyError):
        body_of(unknown)

    @carbyne.kernel
    def stores(X: f32[64]) -> f32[64]:
        X[...] = X + 1
        return X

    with refused("stores nothing"):
        stores.text()


def test_tensors_of_another_kernel_are_refused():
    kept = []

    @carbyne.kernel
    def first(A: f32[8, 8]) -> f32[8, 8]:
        kept.append(A)
        return A

    @carbyne.kernel
    def second(A: f32[8, 8]) -> f32[8, 8]:
        return A + kept[0]

    first.text()
    with refused("of another kernel", ValueError):
        second.text()


def test_types_compare_by_what_they_say():
    assert f32[M, 8] == f32["M", 8] and f32[M, 8] != f32[N, 8]
    assert hash(f32[M, 8]) == hash(f32["M", 8])
    assert repr(i32[4].within(0, N, distinct=True)) == "TensorType([4].i32 in 0..N distinct)"
    assert isinstance(f32[8], TensorType)


def test_pins_stand_in_the_text():
    @carbyne.kernel(by="@ring[BM=128]")
    def pinned(A: f16[256, 64], B: f16[64, 256]) -> f16[256, 256]:
        return A @ B

    assert "by=@ring[BM=128] means {" in pinned.text()
    assert "by=@ring[" in pinned.decompose("sm_80").text


# Four hundred lines of single instructions, which are written as text.
ONLY_TEXT = {"hopper_attention_by_hand"}


def test_every_example_has_a_python_form():
    files = [*EXAMPLES.glob("*.cby"), *EXAMPLES.glob("tile/*.cby")]
    assert {file.stem for file in files} == set(forms.FORMS) | ONLY_TEXT


def test_errors_of_views_and_loops_name_their_line():
    @carbyne.kernel
    def view(X: f32[8, 8]) -> f32[8, 8]:
        return X.tile([4, 4])[0, 0, 0] + 1

    @carbyne.tile(grid={}, threads=64)
    def loop(body, X: f32[8, 8]) -> {"Y": f32[8, 8]}:
        with body.loop("k", 2, step=0):
            body.move(X, body["Y"])

    @carbyne.tile(grid={}, threads=64)
    def spec(body, X: f32[8, 8]) -> {"Y": f32[8, 8]}:
        body.move(X.T[0, :], body["Y"])

    for kernel, code, source in [
        (view, "V0203", "return X.tile([4, 4])[0, 0, 0] + 1"),
        (loop, "V0219", 'with body.loop("k", 2, step=0):'),
        (spec, "V0208", 'body.move(X.T[0, :], body["Y"])'),
    ]:
        with pytest.raises(carbyne.Error) as error:
            kernel.text()
        assert error.value.diagnostics[0].code == code
        assert re.search(r"test_language\.py:\d+$", error.value.diagnostics[0].notes[-1])
        assert source in str(error.value)


def test_help_speaks_python():
    from carbyne.language._errors import python_help

    for text, python in [
        ("give one index a mode; `_` keeps a mode", "give one index a mode; `:` keeps a mode"),
        ("write `%rows = %A[0..64, _]`", "write `rows = A[0:64, :]`"),
        ("write `%B.reshape([K,N]:[N,1])`", "write `B.reshape([K,N], [N,1])`"),
        ("write `%A.tile([64,_])[@i, 0].transpose()`", "write `A.tile([64,None])[i, 0].T`"),
        ("write `%m:f32 = select(%p, 1.0, 0.0)`", "write `m:f32 = where(p, 1.0, 0.0)`"),
        ("state `where M <= 65536`", "state `assume(M <= 65536)`"),
        ("ask with an `if (@i < 3 && @j < 2) {`", "ask with an `with body.when(i < 3, j < 2):`"),
        ("write `move(..)`", "write `move(..)`"),
    ]:
        assert python_help(text) == python


def test_operations_that_tensors_lack_say_what_to_write():
    X = f32[8, 8]
    forms_of = {
        "`where\\(p, where\\(q, a, b\\), b\\)`": lambda A: where((A > 0) & (A < 1), A, 0),
        "exchange what it chooses": lambda A: where(~(A > 0), A, 0),
        "in place of `if`, `and`, `or` and `not`": lambda A: A or A,
        "`A.shape\\[0\\]` of an argument": lambda A: A * len(A),
        "NumPy's `exp` cannot compute": lambda A: np.exp(A),
        "NumPy's `sum` cannot compute": lambda A: np.sum(A, axis=1),
        "make the array an argument": lambda A: np.ones((8, 8)) * A,
        "an array: make it an argument": lambda A: A + np.ones((8, 8)),
        "`sqrt\\(x\\)`": lambda A: A**0.5,
        "`exp2\\(x\\)`": lambda A: 2**A,
        "no `%`: write a remainder": lambda A: A % 3,
        "`\\+` is of traced tensors and numbers, not of None": lambda A: A + None,
        "not of 'a'": lambda A: "a" * A,
        "`tile` takes a list of sizes": lambda A: A.tile(8)[0, 0],
        "`cast` is of a traced tensor": lambda A: cast(3, f16),
        "`axis` is a mode": lambda A: A.sum(axis=True),
        "holds a number is known when": lambda A: 3 in A,
        "does not read `A`": lambda A: cl.result("out").iota(0),
        "has no elements yet": lambda A: cl.result("out") + A,
    }
    for message, formula in forms_of.items():

        def wrong(A: X) -> X:
            return formula(A)

        with refused(message):
            carbyne.kernel(wrong).text()
    for message, formula in {
        "only arguments and results have one": lambda A: A * (A + 1).shape[0],
        "write `A.sum\\(axis=1\\) / N`": lambda A: A.mean(axis=1),
    }.items():
        with refused(message, AttributeError):
            carbyne.kernel(wrong).text()
    with refused("at most 64 bits", ValueError):
        formula = lambda A: A * 10**5000
        carbyne.kernel(wrong).text()


def test_powers_and_shapes():
    @carbyne.kernel
    def cubes(X: f32[4, N]) -> f32[4, N]:
        return (X + 1) ** 3 * X.shape[0] - np.float32(2) * X

    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
    np.testing.assert_allclose(cubes(x), (x + 1) ** 3 * 4 - 2 * x, rtol=1e-5, atol=1e-6)


def test_long_chains_of_views_are_written_in_parts():
    @carbyne.kernel
    def turned(X: f32[8, 8]) -> f32[8, 8]:
        for _ in range(2001):
            X = X.T
        return X

    x = np.arange(64, dtype=np.float32).reshape(8, 8)
    assert turned.text(loc=False).count(".transpose()") == 2001
    assert (turned(x) == x.T).all()


def test_blocks_are_used_by_with():
    def no_with(body, X: f32[64]) -> {"Y": f32[64]}:
        body.loop("k", 2)
        body.move(X, body["Y"])

    def iterated(body, X: f32[64]) -> {"Y": f32[64]}:
        for _ in body.loop("k", 2):
            body.move(X, body["Y"])

    def entered_twice(body, X: f32[64]) -> {"Y": f32[64]}:
        loop = body.loop("k", 2)
        with loop:
            pass
        with loop:
            body.move(X, body["Y"])

    def after_error(body, X: f32[64]) -> {"Y": f32[64]}:
        try:
            with body.loop("k", 2):
                raise LookupError
        except LookupError:
            body.move(X, body["Y"])

    for function, kind, message in [
        (no_with, RuntimeError, r"does nothing without `with`: write `with b.loop\(..\):` \(test_language.py:\d+\)"),
        (iterated, TypeError, "no list of iterations"),
        (entered_twice, RuntimeError, "entered once"),
        (after_error, RuntimeError, "has not ended"),
    ]:
        with refused(message, kind):
            carbyne.tile(grid={}, threads=64)(function).text()


def test_tensors_and_threads_end_with_their_blocks():
    # Another block has a tensor or a group with an equal name, to which the text would refer.
    def tensors(body, X: f32[64], Z: f32[64]) -> {"Y": f32[64]}:
        kept = []
        with body.loop("k", 2):
            x = body.move(X)
            kept.append(x)
        with body.loop("k", 2):
            x = body.move(Z)
            body.move(kept[0], body["Y"])

    def threads(body, X: f32[64]) -> {"Y": f32[64]}:
        kept = []
        with body.loop("k", 2):
            kept.append(body.group("w", body.threads.tile([32])))
        with body.loop("k", 2):
            body.group("w", body.threads.tile([8]))
            body.barrier(kept[0])

    for function in (tensors, threads):
        with refused("a block that has ended", ValueError):
            carbyne.tile(grid={}, threads=64)(function).text()


def test_comparisons_keep_their_sides():
    L, P = constants(L=4, P=8)

    @carbyne.kernel
    def compared(X: f32[M, N]) -> f32[M, N]:
        assume(M + 1 < 2 * N, L < M, M > L, M + N >= P)
        return X * P

    assert "where M + 1 < 2 * N, L < M, M > L, M + N >= P" in compared.text()


def test_a_tensor_without_a_variable_is_stored_into():
    @carbyne.tile(grid={}, threads=64)
    def stored(body, X: f32[64]) -> {"Y": f32[64]}:
        kept = [X * 2]
        kept[0][...] = kept[0] + 1
        body["Y"][...] = kept[0]

    x = np.arange(64, dtype=np.float32)
    assert (stored(x) == 2 * x + 1).all()


def test_results_may_be_views_of_an_argument():
    Y = cl.tensor("Y", f32[4, 8])

    @carbyne.kernel
    def halves(X: f32[4, 4]) -> {"left": Y[:, 0:4], "right": Y[:, 4:8]}:
        return X, X + X

    assert "%left = %Y[_, 0..4]\n%right = %Y[_, 4..8]\n" in halves.text(loc=False)
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    y = np.zeros((4, 8), np.float32)
    halves(x, y)
    assert (y == np.hstack([x, 2 * x])).all()
    for wrong, message in [(Y + 1, "a view of `tensor"), (3, "has a type such as")]:

        def unfit(X: f32[4, 8]) -> {"Y": wrong}:
            return X

        with refused(message):
            carbyne.kernel(unfit)


def test_names_that_python_has_not():
    @carbyne.kernel
    def copied(in_: f32[4], _1: f32[4]) -> f32[4]:
        lambda_ = in_ + _1
        return lambda_ * lambda_

    text = copied.text(loc=False)
    assert "(%in, %1)" in text and "%lambda = %in + %1" in text
    one = np.ones(4, np.float32)
    assert (copied(in_=one, _1=one) == 4).all()


#: Messages that Python has for errors within a function.
OF_PYTHON = re.compile("object has no attribute|has no len|not iterable|expected str|unhashable")


def junk():
    """Values that a builder must refuse."""
    return [
        None, float("nan"), float("inf"), -1, 0, 10**30, 10**5000, 1.5, 1j, True, "x", "a b", "", b"x", [], (), {},
        [1, 2], (1, 2, 3), np.ones((2, 2)), np.int64(3), np.float32(1.5), object(), lambda: 0, slice(None), ..., f32, f32[4],
        symbols("Q")[0], constants(Z=0)[0],
    ]  # fmt: skip


METHODS = {
    "move": 2, "matmul": 3, "tensor": 2, "allocate": 2, "number": 2, "spec": 3, "body": 2, "loop": 2, "when": 1,
    "group": 2, "indices": 2, "barrier": 1, "sync": 2,
}  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_builders_refuse_junk_by_errors_of_their_own(method: str):
    fits = {
        "move": ("X", "SH"), "matmul": ("X", "X", f32[8, 8]), "tensor": (f32[8, 8], 0), "allocate": (f32[8], "SH"),
        "number": ("n", "n[0]"), "spec": ("Move", ["X"], ["SH"]), "body": (["X"], ["SH"]), "loop": ("k", 2),
        "when": ("k",), "group": ("g", "threads"), "indices": ("i", "threads"), "barrier": ("threads",),
        "sync": ("async.wait", 0),
    }  # fmt: skip
    for place in range(METHODS[method]):
        for value in junk():

            @carbyne.tile(grid={}, threads=64)
            def attacked(b, X: f32[8, 8], n: i32[4].within(0, 4)) -> {"Y": f32[8, 8]}:
                known = {"X": X, "n[0]": n[0], "threads": b.threads}
                lists = ([known.get(v, v) for v in a] if isinstance(a, list) else a for a in fits[method])
                given = [known.get(a, a) if isinstance(a, str) else a for a in lists]
                given[place] = value
                made = getattr(b, method)(*given)
                if isinstance(made, cl.Block):
                    with made:
                        b.move(X, b["Y"])

            try:
                attacked.text()
            except (carbyne.Error, ValueError, TypeError, RuntimeError) as error:
                assert not OF_PYTHON.search(str(error)), error


VIEWS = ["tile", "reshape", "permute", "iota", "plus", "pad", "tensormap", "tv", "sum", "cast", "named"]


@pytest.mark.parametrize("method", VIEWS)
def test_views_refuse_junk_by_errors_of_their_own(method: str):
    fits = {"reshape": ([8, 8], [1, 8]), "tv": (((8, 8), 1), ((1, 8), 0), None)}.get(method, (0,))
    for place in range(len(fits)):
        for value in junk():
            given = [*fits[:place], value, *fits[place + 1 :]]

            def attacked(X: f32[8, 8]) -> f32[8, 8]:
                return getattr(X * 2, method)(*given) + X

            try:
                carbyne.kernel(attacked).text()
            except (carbyne.Error, ValueError, TypeError) as error:
                assert not OF_PYTHON.search(str(error)), error


def test_a_wrong_result_of_a_body_names_the_line_of_its_store():
    @carbyne.kernel
    def meaning(X: f32[8, 64]) -> {"S": f32[8, 1]}:
        return X.sum(axis=1)

    @carbyne.tile(grid={}, threads=128, means=meaning)
    def split(b, X: f32[8, 64]) -> {"S": f32[8, 1]}:
        s = b.tensor(f32[8, 1], 0)
        with b.loop("k", 2) as k:
            x = b.move(X.tile([8, 32])[0, k])
            s[...] = x.sum(axis=1)
        b["S"][...] = s

    line = split._function.__code__.co_firstlineno + 6
    with pytest.raises(carbyne.Error, match="is `32`, the spec means `64`") as raised:
        split.jit("simulate")(np.ones((8, 64), np.float32))
    assert f"comes from test_language.py:{line} (`loc=` of this spec)" in raised.value.diagnostics[0].notes


def test_a_wrong_extent_is_named_before_the_stride_that_it_makes_wrong():
    @carbyne.kernel
    def rows(X: f32[M, 32]) -> {"Y": f32[M, 32]}:
        assume(M > 0, M <= 8192)
        return X + 1

    with pytest.raises(carbyne.ArgumentError, match="extent 1 of `%X` is 31, but must be 32"):
        rows.jit("simulate")(np.ones((3, 31), np.float32))


def test_quotients_of_constants_are_integers_everywhere():
    (L,) = constants(L=9)
    (H,) = constants(H=L // 2)
    T = f32[4, 4]
    for value, wanted in (
        (lambda A: A * (1.0 / (L // 2)), 0.25),
        (lambda A: A * (1.0 / H), 0.25),
        (lambda A: A * (1.0 / (H * 2)), 0.125),
        (lambda A: A * sqrt(L // 2), 2),
        (lambda A: A * sqrt(H * H), 4),
        (lambda A: A * H, 4),
    ):

        def scaled(A: T) -> {"Y": T}:
            return value(A)

        assert (carbyne.kernel(scaled)(np.ones((4, 4), np.float32)) == wanted).all()

    @carbyne.tile(grid={}, threads=32)
    def body(b, A: T) -> {"Y": T}:
        b["Y"][...] = b.spec("BinaryPointwise.mul", [b.move(A), L // 2], [None])

    assert (body(np.ones((4, 4), np.float32)) == 4).all()


def test_constants_may_have_any_name_and_no_endless_value():
    for name in ("True", "lambda", "None", "min", "in"):
        (c,) = constants(**{name: 8})
        (d,) = constants(d=cl.min(c // 2, 3))
        assert d.value == 3
    (s,) = constants(s=10**18)
    with pytest.raises(ValueError, match="characters: name parts of it by `constants`"):
        for _ in range(24):
            s = s * s
    with pytest.raises(ValueError, match="more than 64 bits"):
        constants(c=10**30)


def test_default_values_are_refused_where_they_are_written():
    with pytest.raises(TypeError, match="`b` has a default value"):

        @carbyne.kernel
        def scaled(A: f32[4], b: f32 = 3.0) -> {"Y": f32[4]}:
            return A * b
