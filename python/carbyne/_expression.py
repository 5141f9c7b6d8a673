"""Expressions of sizes in the syntax of the language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_FUNCTIONS = {"min": min, "max": max, "ceil_div": lambda a, b: -(-a // b), "__builtins__": {}}


def value_of(expression: str, sizes: Mapping[str, Any]) -> Any:
    """The value of an integer expression that carbyne has printed, for these values of its symbols."""

    def own(name: re.Match[str]) -> str:
        # A symbol may have the name of a function or of a Python keyword.
        return name[0] if name[0].endswith("(") and name[0][:-1] in _FUNCTIONS else f"_{name[0]}"

    text = re.sub(r"[A-Za-z_]\w*\(?", own, expression.replace("/", "//"))
    try:
        return eval(text, _FUNCTIONS, {f"_{name}": value for name, value in sizes.items()})
    except (SyntaxError, RecursionError, MemoryError):
        raise ValueError("an expression of sizes is nested too deeply: name parts of it by `constants`") from None
