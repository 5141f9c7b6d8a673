"""Calls of programs on the simulator."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from ._arrays import library

if TYPE_CHECKING:
    from ._native import Function
    from ._program import Tensor


def simulate(function: Function, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What a call of the function does on a GPU, done by the simulator on tensors of the CPU."""
    given, symbols, results = function.bind(*arguments, **named)
    tensors = {tensor.name: tensor for tensor in function.decomposed.program.tensors}
    hosts = {name: _host(tensors[name], value) for name, value in given.items()}
    inputs = {name: array for name, array in hosts.items() if name not in results}
    run = function.decomposed.simulate(inputs, symbols=symbols)
    for name, tensor in tensors.items():
        if tensor.is_output and name in hosts:
            array = run[name].view(hosts[name].dtype)
            given[name] = library(type(given[name])).written(given[name], array)
    made = tuple(given[name] for name in results)
    return made if len(made) > 1 else made[0] if made else None


def _host(tensor: Tensor, value: Any) -> Any:
    """The memory of a tensor of the CPU, or a number."""
    if not tensor.extents:
        is_integer = tensor.scalar[0] in "iu" or tensor.scalar == "bool"
        return operator.index(value) if is_integer else float(value)
    array = library(type(value)).host(value)
    if tensor.scalar in ("i1", "i2", "i4", "u1", "u2", "u4") or array.ndim != len(tensor.extents):
        raise ValueError(
            f"`%{tensor.name}`: the simulator takes no tensor that is packed, or whose mode has several strides;"
            " give its elements by coordinates to `decomposed.simulate`"
        )
    return array
