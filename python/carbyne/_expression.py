"""Expressions of sizes, as the language writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_FUNCTIONS = {"min": min, "max": max, "ceil_div": lambda a, b: -(-a // b), "__builtins__": {}}


def value_of(expression: str, sizes: Mapping[str, Any]) -> Any:
    """The value of an expression of integers that carbyne has printed, for values of its symbols."""

    def own(name: re.Match[str]) -> str:
        # A symbol may be called as a function, or as a keyword of Python.
        return name[0] if name[0].endswith("(") and name[0][:-1] in _FUNCTIONS else f"_{name[0]}"

    text = re.sub(r"[A-Za-z_]\w*\(?", own, expression.replace("/", "//"))
    try:
        return eval(text, _FUNCTIONS, {f"_{name}": value for name, value in sizes.items()})
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError("an expression of sizes is nested too deeply: name parts of it by `constants`") from None
