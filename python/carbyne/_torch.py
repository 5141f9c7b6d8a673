"""Programs as PyTorch operators."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ._expression import value_of
from ._native import Function

if TYPE_CHECKING:
    from ._program import Program

#: Registered operators, which live as long as the process.
_LIBRARIES: list[Any] = []


def operator(
    program: Program, name: str, backward: Callable[..., Any] | None, saved: Callable[..., Any] | None, options: Mapping[str, Any]
) -> Any:
    """Registers a program: see :meth:`carbyne.Program.as_op`."""
    import torch

    if not re.fullmatch(r"[A-Za-z_]\w*::[A-Za-z_]\w*", name):
        raise ValueError(f"an operator has a name such as `mine::norm`, not {name!r}")
    tensors = [t for t in json.loads(program._native.tensors) if not t["is_handed_on"]]
    inputs = [t for t in tensors if not t["is_result"]]
    results = [t for t in tensors if t["is_result"]]
    for result in results:
        if result["strides"] is None:
            raise TypeError(f"`%{result['name']}` cannot be made as a tensor of PyTorch: its type is packed, or a mode has several strides")
    stated = {text for tensor in inputs for text in tensor["extents"]}
    if missing := [symbol for symbol in program.symbols if symbol not in stated]:
        raise ValueError(f"`{missing[0]}` is no extent of an argument: an operator finds sizes in shapes alone")
    functions: dict[Any, Function] = {}

    def place(arguments: tuple[Any, ...]) -> Any:
        return next((a.device for a in arguments if isinstance(a, torch.Tensor)), torch.device("cuda"))

    def run(*arguments: Any) -> Any:
        device = place(arguments)
        function = functions.get(device)
        if function is None:
            # The simulator accepts any architecture; the newest one has all types.
            of_cpu = {"arch": "sm_90a", **options}
            function = functions[device] = (
                program.jit("simulate", **of_cpu) if device.type == "cpu" else program.jit(f"cuda:{device.index or 0}", **options)
            )
        out = function(**dict(zip(names, arguments)))
        return tuple(out) if len(results) > 1 else out

    def fake(*arguments: Any) -> Any:
        sizes = _sizes(inputs, arguments)
        device, made = place(arguments), []
        for result in results:
            shape, strides = ([value_of(text, sizes) for text in result[key]] for key in ("extents", "strides"))
            dtype = getattr(torch, result["element"])
            made.append(torch.empty_strided(shape, strides, dtype=dtype, device=device))
        return tuple(made) if len(made) > 1 else made[0] if made else None

    names = [t["name"] for t in inputs]
    namespace, short = name.split("::")
    library = torch.library.Library(namespace, "FRAGMENT")
    library.define(f"{short}({', '.join(map(_parameter, inputs))}) -> {_returned(len(results))}")
    for key in ("CUDA", "CPU"):
        library.impl(short, run, key)
    torch.library.register_fake(name, fake, lib=library)
    if backward is not None:
        torch.library.register_autograd(name, backward, setup_context=saved or _saves_inputs, lib=library)
    _LIBRARIES.append(library)
    return getattr(getattr(torch.ops, namespace), short)


def _saves_inputs(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    """Saves all arguments for the backward pass."""
    import torch

    ctx.save_for_backward(*(x for x in inputs if isinstance(x, torch.Tensor)))


def _parameter(tensor: Mapping[str, Any]) -> str:
    name = tensor["name"]
    # Names in a text may be numbers or Python keywords.
    if not name.isidentifier() or keyword.iskeyword(name):
        name = f"_{name}"
    if tensor["extents"] or tensor["is_output"]:
        return f"Tensor{f'(a_{name}!)' if tensor['is_output'] else ''} {name}"
    element = tensor["element"]
    kind = "bool" if element == "bool" else "float" if "float" in element else "int"
    return f"{kind} {name}"


def _returned(count: int) -> str:
    return "()" if count == 0 else "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"


def _sizes(inputs: list[Any], arguments: tuple[Any, ...]) -> dict[str, Any]:
    """The values of symbols; each is an extent of an argument."""
    sizes: dict[str, Any] = {}
    for tensor, argument in zip(inputs, arguments):
        for text, extent in zip(tensor["extents"], getattr(argument, "shape", ())):
            if text.isidentifier():
                sizes.setdefault(text, extent)
    return sizes

