"""Relations of four shapes: the second refines the first, the third refines the second, and the fourth is independent."""

from __future__ import annotations

from collections.abc import Callable

from .. import strategies as st
from .._plain import IntTuple, deepens, is_congruent, refines, text
from ._registry import Case, law


def _related(operation: str, wanted: Callable[[IntTuple, IntTuple], bool]) -> None:
    @law(operation, st.refinements)
    def body(case: Case, a: IntTuple, b: IntTuple, c: IntTuple, d: IntTuple) -> None:
        for one in (a, b, c, d):
            for other in (a, b, c, d):
                what = f"{operation}({text(one)}, {text(other)})"
                case.same(what, case.truth(operation, one, other), wanted(one, other))


_related("congruent", is_congruent)
_related("weakly_congruent", deepens)
_related("compatible", refines)
