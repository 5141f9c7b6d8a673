"""Programs as functions of tensors in the simulator. These tests need no GPU."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import carbyne
from samples import GEMM_ANY, SCALED, TWICE, Described, aligned, at_once


@pytest.fixture(scope="module")
def gemm() -> carbyne.Function:
    return carbyne.Program(GEMM_ANY).jit("simulate")


@pytest.fixture(scope="module")
def twice() -> carbyne.Function:
    return carbyne.Program(TWICE).jit("simulate")


def arrays(m: int, n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, k)).astype(np.float16)
    b = rng.standard_normal((n, k)).astype(np.float16)
    return a, b.T


def test_sizes_come_from_shapes_and_results_are_made(gemm: carbyne.Function) -> None:
    assert gemm.signature == "f(A, B, [C])"
    for m, n, k in ((33, 17, 40), (1, 1, 8)):
        a, b = arrays(m, n, k)
        wanted = a.astype(np.float32) @ b.astype(np.float32)
        c = gemm(a, b)
        assert c.dtype == np.float16 and c.shape == (m, n)
        assert np.allclose(c, wanted, atol=0.05)
        given = np.empty((m, n), np.float16)
        assert gemm(a, b, given) is None
        assert (given == c).all()
        assert (gemm(B=b, A=a) == c).all()
        gemm(a, C=given, B=b)


def test_tensors_without_elements_are_taken(gemm: carbyne.Function) -> None:
    a, b = arrays(0, 5, 8)
    assert gemm(a, b).shape == (0, 5)
    a, b = arrays(4, 5, 0)
    assert (gemm(a, b) == 0).all()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda a, b: (a.astype(np.float32), b), "`%A` has elements of float32"),
        (lambda a, b: (a[0], b), "`%A` has the shape [M,K], but the tensor has [40]"),
        (lambda a, b: (a[:, :16].copy(), b), "extent 0 of `%B` is 40, but must be 16: `K` is 16 because of extent 1 of `%A`"),
        (lambda a, b: (a[:, ::2], b[::2]), "but must be"),
        (lambda a, b: (a, np.ascontiguousarray(b)), "stride 0 of `%B` is 17, but must be 1"),
        (lambda a, b: (a[:, ::-1], b), "negative stride"),
        (lambda a, b: (np.ones((33, 39), np.float16), np.ones((17, 39), np.float16).T), "`K % 8 == 0` does not hold where K = 39"),
        (lambda a, b: (np.ones((4097, 40), np.float16), b), "`M <= 4096` does not hold where M = 4097"),
        (lambda a, b: (np.ones((4097, 40), np.float16), b), "`M` is 4097 because of extent 0 of `%A`"),
    ],
)
def test_an_argument_that_does_not_fit_is_named(gemm, change, said) -> None:
    a, b = arrays(33, 17, 40)
    with pytest.raises(carbyne.ArgumentError) as raised:
        gemm(*change(a, b))
    assert said in str(raised.value)
    assert raised.value.diagnostics[0].help
    assert isinstance(raised.value, ValueError)
    copied = pickle.loads(pickle.dumps(raised.value))
    assert type(copied) is carbyne.ArgumentError and str(copied) == str(raised.value)


def test_a_tensor_that_is_missing_is_said_how_to_give(twice: carbyne.Function) -> None:
    with pytest.raises(carbyne.ArgumentError) as raised:
        twice(None)
    assert raised.value.diagnostics[0].help == "pass a tensor for it, by position or by name"


def test_an_extent_that_no_size_gives_is_named() -> None:
    text = "carbyne 2\nsym N where N >= 1, N <= 64\n%A:[2*N+1].f32.GL\n%B:[2*N+1].f32.GL\nBinaryPointwise.add @f (%A, %A) -> (%B)\n"
    f = carbyne.Program(text).jit("simulate")
    assert f(np.ones(7, np.float32)).shape == (7,)
    with pytest.raises(carbyne.ArgumentError, match="extent 0 of `%A` is 8, but no `N` makes `.*` equal to it"):
        f(np.ones(8, np.float32))


@pytest.mark.parametrize(
    ("size", "error", "said"),
    [
        ("x", TypeError, "`N` is str, and an integer is wanted"),
        (1.5, TypeError, "`N` is float, and an integer is wanted"),
        (2**70, ValueError, "`N` does not fit 64 bits"),
    ],
)
def test_a_size_of_another_type_is_refused_in_words(twice, size, error, said) -> None:
    with pytest.raises(error, match=said):
        twice(np.ones(8, np.float32), N=size)


def test_devices_are_named_with_their_numbers(twice: carbyne.Function) -> None:
    a, b = aligned(8, dtype=np.float32), aligned(8, dtype=np.float32)
    with pytest.raises(carbyne.ArgumentError, match="lies on cpu:1, but `%A` on the CPU"):
        twice(Described(a), Described(b, (1, 1)))
    with pytest.raises(carbyne.ArgumentError, match="`%A` lies on cuda:3, but the simulator"):
        twice(Described(a, (2, 3)), Described(b, (2, 3)))


def test_a_function_has_a_signature_and_is_copied_and_pickled(gemm: carbyne.Function) -> None:
    assert str(inspect.signature(gemm)) == "(A, B, C=None, *, M=None, N=None, K=None)"
    inspect.signature(gemm).bind(1, 2, M=3)
    assert copy.copy(gemm) is gemm and copy.deepcopy(gemm) is gemm
    again = pickle.loads(pickle.dumps(gemm))
    a, b = arrays(33, 17, 40)
    assert again.device == "simulate" and (again(a, b) == gemm(a, b)).all()


@pytest.mark.parametrize(
    ("arguments", "named", "said"),
    [
        ((), {}, "0 arguments do not fit; call it as `f(A, [B])`"),
        ((1, 2, 3), {}, "3 arguments do not fit"),
        ((), {"A": np.ones(3, np.float32), "X": 1}, "there is no argument `X`"),
        (([1.0, 2.0],), {}, "`A` is list, and a tensor is wanted"),
        ((None,), {}, "`%A` is missing"),
        ((3.5,), {}, "`A` is float, and a tensor is wanted"),
    ],
)
def test_a_call_of_another_form_shows_the_signature(twice, arguments, named, said) -> None:
    with pytest.raises((TypeError, ValueError), match=".*") as raised:
        twice(*arguments, **named)
    assert said in str(raised.value)


def test_hostile_arrays_are_refused(twice: carbyne.Function) -> None:
    one = np.ones(8, np.float32)
    frozen = np.empty(8, np.float32)
    frozen.flags.writeable = False
    for a, b, said in (
        (np.array([None] * 8), np.empty(8, np.float32), "cannot be read by DLPack"),
        (np.array(["x"] * 8), np.empty(8, np.float32), "cannot be read by DLPack"),
        (one.astype(">f4"), np.empty(8, np.float32), "cannot be read by DLPack"),
        (one, frozen, "read-only"),
        (one, one, "`%B` is written, but shares memory with `%A`"),
        (one, np.empty(9, np.float32), "extent 0 of `%B` is 9, but must be 8"),
    ):
        with pytest.raises(ValueError, match=".*") as raised:
            twice(a, b)
        assert said in str(raised.value), raised.value
    memory = np.empty(16, np.float32)
    with pytest.raises(ValueError, match="shares memory"):
        twice(memory[:12], memory[4:])
    with pytest.raises(ValueError, match="multiple of 16"):
        twice(np.ones(9, np.float32)[1:])
    twice(memory[:8], memory[8:])


def test_an_input_may_be_read_only(twice: carbyne.Function) -> None:
    a = np.arange(8, dtype=np.float32)
    a.flags.writeable = False
    assert (twice(a) == 2 * a).all()


def test_columns_of_one_matrix_are_apart() -> None:
    text = "carbyne 2\n%A:[(8,16):(64,1)].f32.GL\n%B:[(8,16):(64,1)].f32.GL\nBinaryPointwise.add @f (%A, %A) -> (%B)\n"
    f = carbyne.Program(text).jit("simulate")
    matrix = np.ones((8, 64), np.float32)
    f(matrix[:, :16], matrix[:, 16:32])
    assert (matrix[:, 16:32] == 2).all() and (matrix[:, 32:] == 1).all()
    f(matrix[:, 16:32], matrix[:, :16])
    assert (matrix[:, :16] == 4).all()
    with pytest.raises(ValueError, match="shares memory"):
        f(matrix[:, :16], matrix[:, 12:28])


def test_numbers_are_given_as_numbers() -> None:
    f = carbyne.Program(SCALED).jit("simulate")
    assert f.signature == "f(A, alpha, [B])"
    a = np.ones((64, 64), np.float32)
    assert (f(a, 2.5) == 2.5).all()
    assert (f(a, np.float32(3)) == 3).all()
    assert (f(a, 4) == 4).all()
    for wrong in ("x", None, a, 1j):
        with pytest.raises((TypeError, ValueError)):
            f(a, wrong)


def test_a_size_that_no_shape_states_is_given_by_name() -> None:
    text = "carbyne 2\nsym N, L where N >= 1, N <= 64, L >= 64, L <= 128\n%A:[(N,32):(L,1)].f32.GL\n%B:[N,32].f32.GL\nBinaryPointwise.add @f (%A, %A) -> (%B)\n"
    f = carbyne.Program(text).jit("simulate")
    wide = np.ones((4, 96), np.float32)
    assert (f(wide[:, :32]) == 2).all()
    # A row alone has no stride.
    with pytest.raises(carbyne.ArgumentError, match="no shape determines the size `L`"):
        f(wide[:1, :32])
    assert (f(wide[:1, :32], L=96) == 2).all()
    with pytest.raises(carbyne.ArgumentError, match="does not hold where L = 3"):
        f(wide[:1, :32], L=3)


def test_many_threads_call_at_once(twice: carbyne.Function) -> None:
    failed = []

    def call(n: int) -> None:
        for _ in range(3):
            a = np.arange(n, dtype=np.float32)
            if not (twice(a) == 2 * a).all():
                failed.append(n)

    at_once(call, (5, 64, 77, 1000))
    assert not failed


def test_a_device_is_named_as_it_is() -> None:
    program = carbyne.Program(TWICE)
    for wrong in ("gpu", "cuda:x", "cuda:-1", "", None):
        with pytest.raises(ValueError, match="device is"):
            program.jit(wrong)
    with pytest.raises(carbyne.Error):
        program.jit("cuda:999999999")


def test_numbers_of_any_library_are_taken() -> None:
    f = carbyne.Program(SCALED).jit("simulate")
    a = np.ones((64, 64), np.float32)
    for number in (np.float64(2.5), np.array(2.5), np.float16(2.5)):
        assert (f(a, number) == 2.5).all()


def test_types_that_numpy_lacks_are_given_by_their_bits() -> None:
    text = "carbyne 2\n%A:[64,64].bf16.GL\n%B:[64,64].bf16.GL\nBinaryPointwise.add @f (%A, %A) -> (%B)\n"
    f = carbyne.Program(text).jit("simulate")
    ones = np.full((64, 64), 0x3F80, np.uint16)
    assert (f(ones) == 0x4000).all()


def test_a_result_begins_where_the_program_says() -> None:
    text = "carbyne 2\n%A:[64].f32.GL{align=128}\n%B:[64].f32.GL{align=128}\nBinaryPointwise.add @f (%A, %A) -> (%B)\n"
    f = carbyne.Program(text).jit("simulate")
    memory = np.ones(128, np.float32)
    begin = -memory.ctypes.data % 128 // 4
    for _ in range(8):
        assert (f(memory[begin : begin + 64]) == 2).all()


def test_packed_and_nested_tensors_are_refused_in_words() -> None:
    packed = "carbyne 2\n%A:[64].u4.GL\n%B:[64].u4.GL\nMove @f (%A) -> (%B)\n"
    nested = "carbyne 2\n%A:[((2,2),8):((1,16),2)].f32.GL\n%B:[4,8].f32.GL\nMove @f (%A) -> (%B)\n"
    for text, array in ((packed, np.zeros(32, np.uint8)), (nested, np.zeros(32, np.float32))):
        with pytest.raises(ValueError, match="is packed or has a mode of several strides"):
            carbyne.Program(text).jit("simulate")(array)


def test_a_masked_array_is_no_tensor(twice: carbyne.Function) -> None:
    with pytest.raises(TypeError, match="masked"):
        twice(np.ma.masked_array(np.ones(8, np.float32), [True] * 8))


class Wrong:
    """An object whose `__dlpack__` raises."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **_: object) -> object:
        raise self.error


def test_what_ends_a_program_is_not_swallowed(twice: carbyne.Function) -> None:
    with pytest.raises(KeyboardInterrupt):
        twice(Wrong(KeyboardInterrupt()))
    with pytest.raises(ValueError, match="cannot be read by DLPack: OSError: gone"):
        twice(Wrong(OSError("gone")))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"shape": None}, "without extents"),
        ({"rank": -1}, "has -1 modes"),
        ({"rank": 1_000_000}, "has 1000000 modes"),
        ({"rank": 2**31 - 1}, "has 2147483647 modes"),
        ({"data": None}, "without memory"),
    ],
)
def test_a_tensor_that_is_none_is_refused(twice: carbyne.Function, wrong: dict[str, object], said: str) -> None:
    a, b = aligned(8, dtype=np.float32), aligned(8, dtype=np.float32)
    twice(Described(a, strides=None), b)
    with pytest.raises(ValueError, match=said):
        twice(Described(a, strides=None, **wrong), b)
