"""Operations in TEIR, beside NumPy's einsum."""

from __future__ import annotations

import copy
import pickle
import random
import string
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from carbyne import teir

EXAMPLES = sorted((Path(__file__).parents[2] / "teir/examples").glob("*.teir"))


def drawn(rng: random.Random) -> dict[str, Any]:
    """A schedule of a product, with gaps in its tensors, and its primitives."""
    main = rng.choice(["GEMM", "BRGEMM"])
    tile = ["M", "N", "K"] + ["K"] * (main == "BRGEMM")
    outer = [rng.choice("CMNK") for _ in range(rng.randint(0, 4))]
    axes = [(role, "prim") for role in tile] + [(role, rng.choice(["seq", "shared"])) for role in outer]
    rng.shuffle(axes)
    sizes = [rng.randint(1, 4) for _ in axes]
    strides: dict[str, list[int]] = {}
    for tensor, roles in {"in0": "CMK", "in1": "CNK", "out": "CMN"}.items():
        strides[tensor] = [0] * len(axes)
        order = [i for i, (role, _) in enumerate(axes) if role in roles]
        rng.shuffle(order)
        stride = 1
        for i in order:
            stride += rng.randint(0, 1)
            strides[tensor][i] = stride
            stride *= sizes[i]
    return {
        "schedule": {
            "dim_types": [role for role, _ in axes],
            "exec_types": [kind for _, kind in axes],
            "dim_sizes": sizes,
            **{f"strides_{tensor}": all_ for tensor, all_ in strides.items()},
        },
        "primitives": {
            "data_type": rng.choice(["FP32", "FP64"]),
            "prim_first": rng.choice(["None", "Zero", "ReLU"]),
            "prim_main": main,
            "prim_last": rng.choice(["None", "ReLU"]),
        },
    }


def einsum(given: dict[str, Any], in0: np.ndarray, in1: np.ndarray, out: np.ndarray) -> np.ndarray:
    """The output by `numpy.einsum` on strided views."""
    schedule, primitives = given["schedule"], given["primitives"]
    out = out.copy()
    terms, views = [], []
    for tensor, array, roles in (("in0", in0, "CMK"), ("in1", in1, "CNK"), ("out", out, "CMN")):
        axes = [i for i, role in enumerate(schedule["dim_types"]) if role in roles]
        shape = [schedule["dim_sizes"][i] for i in axes]
        steps = [schedule[f"strides_{tensor}"][i] * array.itemsize for i in axes]
        terms.append("".join(string.ascii_letters[i] for i in axes))
        views.append(as_strided(array, shape, steps))
    result = views[2]
    first = {"None": result.copy(), "Zero": np.zeros_like(result), "ReLU": np.maximum(result, 0)}
    value = first[primitives["prim_first"]] + np.einsum(f"{terms[0]},{terms[1]}->{terms[2]}", views[0], views[1])
    result[...] = np.maximum(value, 0) if primitives["prim_last"] == "ReLU" else value
    return out


@pytest.mark.parametrize("seed", range(50))
def test_execute_is_einsum(seed: int) -> None:
    given = drawn(random.Random(seed))
    operation = teir.Operation(given)
    assert operation.to_dict() == given
    assert teir.Operation(operation.text).to_dict() == given
    numbers = np.random.default_rng(seed)
    in0, in1, out = (numbers.integers(-2, 3, n).astype(operation.dtype) for n in operation.spans)
    np.testing.assert_array_equal(operation.execute(in0, in1, out), einsum(given, in0, in1, out))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
@pytest.mark.parametrize("level", ["tile", "kernel"])
def test_examples_are_decomposed(path: Path, level: Any) -> None:
    program = teir.Operation(path.read_text()).lower(level)
    assert "atom=" in program.decompose("sm_90a").text


def test_violations_are_errors() -> None:
    with pytest.raises(teir.Error, match="TEIR04 axis 0, dim_sizes") as found:
        teir.Operation("data_type FP32\nprim_first Zero\nprim_main None\nprim_last None\nM prim 0 1 0 1")
    (violation,) = found.value.violations
    assert violation.help == "give the axis a size, or leave it out"
    assert pickle.loads(pickle.dumps(found.value)).violations == (violation,)
    with pytest.raises(teir.Error, match="TEIR14"):
        text = "data_type FP32\nprim_first Zero\nprim_main GEMM\nprim_last None\n"
        teir.Operation(text + "K shared 2 1 1 0\nM prim 4 2 0 4\nN prim 4 0 2 1\nK prim 1 1 1 0").lower()


def test_arrays_suit() -> None:
    operation = teir.Operation("data_type FP32\nprim_first None\nprim_main Copy\nprim_last None\nM prim 4 1 0 1")
    one, none = np.ones(4, np.float32), np.zeros(0, np.float32)
    with pytest.raises(teir.Error, match="TEIR13"):
        operation.execute(one[:3], none, one)
    with pytest.raises(ValueError, match="float64"):
        operation.execute(one.astype(np.float64), none, one)
    with pytest.raises(TypeError, match="`out`: a masked array"):
        operation.execute(one, none, np.ma.masked_array(one))
    with pytest.raises(TypeError, match="`in0` must be an array of NumPy, not list"):
        operation.execute([1.0] * 4, none, one)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="level"):
        operation.lower("thread")  # type: ignore[arg-type]


def test_operations_are_values() -> None:
    given = drawn(random.Random(1))
    operation = teir.Operation(given)
    assert operation == teir.Operation(operation.text) != teir.Operation(drawn(random.Random(2)))
    assert operation != operation.text
    assert len({operation, teir.Operation(given)}) == 1
    assert pickle.loads(pickle.dumps(operation)) == operation == copy.deepcopy(operation)


def test_sources_are_texts_or_mappings() -> None:
    given = drawn(random.Random(1))
    sizes = [np.int64(size) for size in given["schedule"]["dim_sizes"]]
    schedule = MappingProxyType({**given["schedule"], "dim_sizes": sizes})
    assert teir.Operation(MappingProxyType({**given, "schedule": schedule})).to_dict() == given
    for source in (None, 1, b"", []):
        with pytest.raises(TypeError, match="`source` must be a string or a mapping"):
            teir.Operation(source)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="set is neither"):
        teir.Operation({"schedule": {"dim_sizes": {1, 2}}})


def test_errors_of_json_name_fields() -> None:
    given = drawn(random.Random(1))
    given["schedule"]["dim_sizes"][0] = 1.5
    with pytest.raises(teir.Error, match="TEIR01 axis 0, dim_sizes: found `1.5`, wanted a number from 0"):
        teir.Operation(given)
    with pytest.raises(teir.Error, match="TEIR01 the operation: found a list"):
        teir.Operation("[]")
