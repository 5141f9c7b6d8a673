"""Expressions of sizes, as the language writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FUNCTIONS = {"min": min, "max": max, "ceil_div": lambda a, b: -(-a // b), "__builtins__": {}}


def value_of(expression: str, sizes: Mapping[str, Any]) -> Any:
    """The value of an expression of integers that carbyne has printed, for values of its symbols."""
    return eval(expression.replace("/", "//"), _FUNCTIONS, dict(sizes))
