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

A :class:`Program` is a text that is well formed. :meth:`Program.decompose` finds layouts and instructions; the result,
:class:`Decomposed`, is a text again, and is simulated, printed as CUDA C++ and compiled. :class:`Layout` is layout algebra under
CuTe's names. What is wrong with a text is an :class:`Error`, with the place and what to do.
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
