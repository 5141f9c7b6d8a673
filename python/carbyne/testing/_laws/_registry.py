"""The list of laws, and the decorator that puts a law there."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis.strategies import SearchStrategy

from .._case import Case
from ..strategies import Bounds

#: The most coordinates of operands whose results are as large as both together.
SMALL = 24


@dataclass(frozen=True)
class Rule:
    """A law as it is written down."""

    #: Its name; several laws may be about one operation.
    name: str
    #: The strategy of its operands.
    operands: Callable[[Bounds], SearchStrategy[Any]]
    #: Judges a case; its parameters name the operands.
    body: Callable[..., None]
    #: Whether the library may refuse the operands.
    may_refuse: bool
    #: The property of the adapter that must be true for the law to be asked.
    needs: str | None

    def names(self) -> list[str]:
        """The names of the operands."""
        return list(self.operand_types())

    def operand_types(self) -> dict[str, str]:
        """The names of the operands, with their types as they are written."""
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
    """Puts the decorated function into the list as the law of this name."""
    needs = "has_large_layouts" if name.endswith("_large") else "has_negative_strides" if name.endswith("_negative") else None

    def register(body: Body) -> Body:
        drawn = (lambda bounds: operands(bounds.at_most(SMALL))) if small else operands
        RULES[name] = Rule(name, drawn, body, may_refuse, needs)
        return body

    return register


__all__ = ["RULES", "Case", "Rule", "law"]
