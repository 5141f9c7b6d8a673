"""Property tests of layouts: strategies for Hypothesis, and the laws of layout algebra for any library of layouts.

>>> from carbyne.testing import Carbyne, check
>>> print(check(Carbyne(), only=["complement", "right_inverse"]))
carbyne: 2 laws hold

:mod:`carbyne.testing.strategies` generates operands. A library is tested through an :class:`Adapter`, with :func:`laws` in pytest and
with :func:`check` elsewhere. Laws judge answers by counting, never by layout algebra.
"""

try:
    import hypothesis as _hypothesis  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name != "hypothesis":
        raise
    raise ModuleNotFoundError(
        "carbyne.testing needs Hypothesis: pip install 'carbyne[testing]', or pip install 'hypothesis>=6,<7'", name="hypothesis"
    ) from None

from . import strategies
from ._adapter import Adapter, Tiler
from ._case import LawError
from ._plain import IntTuple, OpenCoordinate, Plain, PlainTiler, Swizzle, ThreadValue
from ._suite import Deviation, Law, LawsBroken, Report, Result, check, judge, law_names, laws
from .adapters import Carbyne, Pycute
from .strategies import Bounds

__all__ = [
    "Adapter",
    "Bounds",
    "Carbyne",
    "Deviation",
    "IntTuple",
    "Law",
    "LawError",
    "LawsBroken",
    "OpenCoordinate",
    "Plain",
    "PlainTiler",
    "Pycute",
    "Report",
    "Result",
    "Swizzle",
    "ThreadValue",
    "Tiler",
    "check",
    "judge",
    "law_names",
    "laws",
    "strategies",
]
