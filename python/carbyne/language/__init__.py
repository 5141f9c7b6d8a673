"""The vocabulary of kernels that are written in Python: types, sizes, and functions of traced tensors.

>>> import carbyne
>>> from carbyne.language import f16, f32, relu
>>> @carbyne.kernel
... def linear(A: f16[64, 32], B: f16[32, 64], bias: f32[1, 64]) -> f16[64, 64]:
...     return relu(A @ B + bias)
>>> linear.program.kernels
['linear']

Tensors support the operators `+ - * / @`, comparisons, reductions such as `A.max(axis=1)`, and views such as `A.T` and
`A[0:32, :]`: see :class:`Value`. Reductions keep their modes with extent 1. :func:`where` selects elements by a condition.
"""

from ._functions import (
    assume, cast, exp, exp2, gelu, log, matmul, max, maximum, min, minimum, move, rcp, relu, result, rsqrt, sigmoid,
    silu, sqrt, tanh, where,
)  # fmt: skip
from ._kernel import Kernel, kernel
from ._sizes import Condition, Constant, Size, Symbol, ceil_div, constants, symbols
from ._tile import Block, Builder, New, Threads, Tile, group, tile
from ._trace import tensor
from ._types import (
    Scalar, TensorType, bf16, block, bool_, e4m3, e5m2, f16, f32, f64, i1, i2, i4, i8, i16, i32, i64, mbarrier, tf32,
    thread, u1, u2, u4, u8, u16, u32, u64,
)  # fmt: skip
from ._values import Value

__all__ = [
    "Block", "Builder", "Condition", "Constant", "Kernel", "New", "Scalar", "Size", "Symbol", "TensorType", "Threads",
    "Tile", "Value", "assume", "bf16", "block", "bool_", "cast", "ceil_div", "constants", "e4m3", "e5m2", "exp",
    "exp2", "f16", "f32", "f64", "gelu", "group", "i1", "i16", "i2", "i32", "i4", "i64", "i8", "kernel", "log",
    "matmul", "max", "mbarrier", "maximum", "min", "minimum", "move", "rcp", "relu", "result", "rsqrt", "sigmoid",
    "silu", "sqrt", "symbols", "tanh", "tensor", "tf32", "thread", "tile", "u1", "u16", "u2", "u32", "u4", "u64",
    "u8", "where",
]  # fmt: skip
