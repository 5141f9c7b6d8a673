"""The list of laws, and the decorator that registers a law."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis.strategies import SearchStrategy

from .._case import Case
from ..strategies import Bounds

#: Maximum number of coordinates of operands whose results are as large as both together.
SMALL = 24


@dataclass(frozen=True)
class Rule:
    """A registered law."""

    #: The name of the law; several laws may be about one operation.
    name: str
    #: The strategy of its operands.
    operands: Callable[[Bounds], SearchStrategy[Any]]
    #: Judges a case; its parameters have the names of the operands.
    body: Callable[..., None]
    #: Whether the library may refuse the operands.
    may_refuse: bool
    #: The property of the adapter that must be true to test the law.
    needs: str | None

    def names(self) -> list[str]:
        """The names of the operands."""
        return list(self.operand_types())

    def operand_types(self) -> dict[str, str]:
        """The names of the operands, with their types as written."""
        parameters = list(inspect.signature(self.body).parameters.values())[1:]
        return {parameter.name: parameter.annotation for parameter in parameters}


#: All laws by name, in the order of their modules.
RULES: dict[str, Rule] = {}

Body = TypeVar("Body", bound=Callable[..., None])


def law(
    name: str,
    operands: Callable[[Bounds], SearchStrategy[Any]],
    *,
    may_refuse: bool = False,
    small: bool = False,
) -> Callable[[Body], Body]:
    """Registers the decorated function as the law with this name."""
    needs = "has_large_layouts" if name.endswith("_large") else "has_negative_strides" if name.endswith("_negative") else None

    def register(body: Body) -> Body:
        drawn = (lambda bounds: operands(bounds.at_most(SMALL))) if small else operands
        RULES[name] = Rule(name, drawn, body, may_refuse, needs)
        return body

    return register


__all__ = ["RULES", "Case", "Rule", "law"]
