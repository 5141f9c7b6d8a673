"""carbyne reads, decomposes, checks and simulates GPU tensor kernels.

>>> import carbyne
>>> program = carbyne.Program('''
... carbyne 2
... %A:[64,32].f16.GL
... %B:[32,64].f16.GL
... %C:[64,64].f16.GL
... MatMul.set @gemm (%A, %B) -> (%C) acc=f32
... ''')
>>> kernel = program.decompose("sm_80")
>>> "atom=ldmatrix.x4.b16" in kernel.text
True

A :class:`Program` is a well-formed text. :meth:`Program.decompose` finds layouts and instructions. The result, a :class:`Decomposed`,
is a text again, which you can simulate, print as CUDA C++ and compile. :class:`Layout` is layout algebra with CuTe's names. Errors
of a text are an :class:`Error` with their places and helps.
"""

from . import cache, teir
from ._diagnostics import ArgumentError, Diagnostic, Edit, Error, Span
from ._explained import Explanation
from ._layout import Layout, LayoutError, calculate, solve, unify
from ._native import Function, __version__, architectures
from ._picture import Picture
from ._program import Decomposed, Program, Progress, Run, Tensor, Tuned
from .language import Kernel, Tile, kernel, tile

__all__ = [
    "ArgumentError",
    "Decomposed",
    "Diagnostic",
    "Edit",
    "Error",
    "Explanation",
    "Function",
    "Kernel",
    "Layout",
    "LayoutError",
    "Picture",
    "Program",
    "Progress",
    "Run",
    "Span",
    "Tensor",
    "Tile",
    "Tuned",
    "__version__",
    "architectures",
    "cache",
    "calculate",
    "kernel",
    "solve",
    "teir",
    "tile",
    "unify",
]
