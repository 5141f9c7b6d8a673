"""Programs as operators of PyTorch."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ._native import Function

if TYPE_CHECKING:
    from ._program import Program

#: Types of PyTorch by those of carbyne.
_TYPES = {
    "f64": "float64", "f32": "float32", "tf32": "float32", "f16": "float16", "bf16": "bfloat16", "e4m3": "float8_e4m3fn",
    "e5m2": "float8_e5m2", "bool": "bool", "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "u64": "uint64",
    "u32": "uint32", "u16": "uint16", "u8": "uint8",
}  # fmt: skip

#: Operators that have been registered, which live as long as the process.
_LIBRARIES: list[Any] = []


def operator(
    program: Program, name: str, backward: Callable[..., Any] | None, saved: Callable[..., Any] | None, options: Mapping[str, Any]
) -> Any:
    """Registers a program: see :meth:`carbyne.Program.as_op`."""
    import torch

    if not re.fullmatch(r"[A-Za-z_]\w*::[A-Za-z_]\w*", name):
        raise ValueError(f"the name of an operator is such as `mine::norm`, not {name!r}")
    tensors = [t for t in json.loads(program._native.tensors) if not t["is_handed_on"]]
    inputs = [t for t in tensors if not t["is_result"]]
    results = [t for t in tensors if t["is_result"]]
    for result in results:
        if result["strides"] is None or result["scalar"] not in _TYPES:
            raise TypeError(f"`%{result['name']}` cannot be made as a tensor of PyTorch: its type is packed, or a mode has several strides")
    stated = {text for tensor in inputs for text in tensor["extents"]}
    if missing := [symbol for symbol in program.symbols if symbol not in stated]:
        raise ValueError(f"`{missing[0]}` is no extent of an argument: an operator finds sizes in shapes alone")
    functions: dict[Any, Function] = {}

    def run(*arguments: Any) -> Any:
        device = next((a.device for a in arguments if isinstance(a, torch.Tensor)), torch.device("cuda"))
        function = functions.get(device)
        if function is None:
            where = "simulate" if device.type == "cpu" else f"cuda:{device.index or 0}"
            function = functions[device] = program.jit(where, **options)
        out = function(**dict(zip(names, arguments)))
        return tuple(out) if len(results) > 1 else out

    def fake(*arguments: Any) -> Any:
        sizes = _sizes(inputs, arguments)
        device = next((a.device for a in arguments if isinstance(a, torch.Tensor)), torch.device("cuda"))
        made = []
        for result in results:
            shape, strides = ([_number(text, sizes) for text in result[key]] for key in ("extents", "strides"))
            dtype = getattr(torch, _TYPES[result["scalar"]])
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
    """Keeps all arguments for the backward pass."""
    import torch

    ctx.save_for_backward(*(x for x in inputs if isinstance(x, torch.Tensor)))


def _parameter(tensor: Mapping[str, Any]) -> str:
    if tensor["extents"] or tensor["is_output"]:
        return f"Tensor{'(a_' + tensor['name'] + '!)' if tensor['is_output'] else ''} {tensor['name']}"
    kind = "float" if tensor["scalar"][0] in "fbet" and tensor["scalar"] != "bool" else "int"
    return f"{'bool' if tensor['scalar'] == 'bool' else kind} {tensor['name']}"


def _returned(count: int) -> str:
    return "()" if count == 0 else "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"


def _sizes(inputs: list[Any], arguments: tuple[Any, ...]) -> dict[str, Any]:
    """The values of symbols: each is an extent of an argument."""
    sizes: dict[str, Any] = {}
    for tensor, argument in zip(inputs, arguments):
        for text, extent in zip(tensor["extents"], getattr(argument, "shape", ())):
            if text.isidentifier():
                sizes.setdefault(text, extent)
    return sizes


def _number(text: str, sizes: Mapping[str, Any]) -> Any:
    """An extent or a stride for sizes."""
    known = {"min": min, "max": max, "ceil_div": lambda a, b: -(-a // b), "__builtins__": {}}
    return eval(text.replace("/", "//"), known, dict(sizes))
