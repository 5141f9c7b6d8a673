"""Calls of programs on the simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ._arrays import library

if TYPE_CHECKING:
    from ._native import Function


def simulate(function: Function, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """What a call of the function does on a GPU, done by the simulator on tensors of the CPU."""
    tensors, symbols, results = function.bind(*arguments, **named)
    hosts = {name: _host(tensor) for name, tensor in tensors.items()}
    written = {t.name for t in function.decomposed.program.tensors if t.is_output}
    inputs = {name: array for name, array in hosts.items() if name not in results}
    run = function.decomposed.simulate(inputs, symbols=symbols)
    for name in written & hosts.keys():
        np.copyto(hosts[name], run[name].view(hosts[name].dtype))
    made = tuple(tensors[name] for name in results)
    return made if len(made) > 1 else made[0] if made else None


def _host(tensor: Any) -> Any:
    """The memory of a tensor of the CPU; a number as it is."""
    return library(type(tensor)).host(tensor) if hasattr(tensor, "__dlpack__") else tensor
