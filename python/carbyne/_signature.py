"""Signatures of functions of tensors, for :func:`inspect.signature`."""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._native import Function


def of(function: Function) -> Signature:
    """Tensors and numbers in order; results and sizes are optional."""
    results = set(function.results)
    inputs = [
        Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in function.names if name not in results
    ]
    # A positional call gives either all results or none, in the order of the text.
    follow = function.names[len(inputs) :] == function.results
    kind = Parameter.POSITIONAL_OR_KEYWORD if follow else Parameter.KEYWORD_ONLY
    made = [Parameter(name, kind, default=None) for name in function.results]
    sizes = function.decomposed.program.symbols
    known = [Parameter(name, Parameter.KEYWORD_ONLY, default=None) for name in sizes]
    return Signature([*inputs, *made, *known])
