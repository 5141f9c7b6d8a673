"""Judges one law for one set of operands: calls the library and compares its answers."""

from __future__ import annotations

import operator
import reprlib
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from typing import Any

from ._adapter import Adapter
from ._plain import MAX_POINTS, IntTuple, Plain, PlainTiler, is_congruent, text

#: Maximum nesting and maximum number of parts of an answer. Right answers are far smaller.
_MOST_DEPTH, _MOST_PARTS = 50, 1000
#: Maximum number of coordinates of a large result.
_MOST_SIZE = 1 << 63


class LawError(AssertionError):
    """A law that a library breaks, with a counterexample."""

    #: The law's name.
    law: str
    #: The smallest known operands, in the form of :func:`judge`.
    operands: tuple[Any, ...]
    #: The wrong answer, if any.
    result: str | None
    #: The compared part of the answer, with its coordinate.
    what: str
    #: The library's value.
    found: str
    #: The value that the law requires.
    wanted: str

    def __init__(
        self, law: str, library: str, operands: dict[str, Any], result: str | None, what: str, found: object, wanted: object
    ) -> None:
        self.law, self.operands, self.result, self.what = law, tuple(operands.values()), result, what
        self.found, self.wanted = shown(found), shown(wanted)
        lines = [f"law `{law}` is broken by {library}", *(f"  {name} = {text(value)}" for name, value in operands.items())]
        if result is not None:
            lines.append(f"  result = {result}")
        lines.append(f"  {what}: found {self.found}, wanted {self.wanted}")
        again = ", ".join([repr(law), *(repr(value) for value in self.operands)])
        lines.append(f"  again by: judge(adapter, {again})")
        super().__init__("\n".join(lines))


class Unsupported(Exception):
    """The library does not implement the operation."""


class Refused(Exception):
    """The library refused the operands, which is allowed."""


class Case:
    """A law, its operands, and the library under test."""

    def __init__(self, law: str, adapter: Adapter[Any], operands: dict[str, Any], may_refuse: bool) -> None:
        self.law, self.adapter, self.operands = law, adapter, operands
        #: Whether the operation may be refused without breaking the law.
        self.may_refuse = may_refuse
        self._result: str | None = None

    # Asking

    def ask(self, operation: str, *operands: Any) -> Any:
        """The library's answer, unchecked."""
        try:
            return getattr(self.adapter, operation)(*operands)
        except NotImplementedError:
            raise Unsupported(operation) from None
        except (Exception, SystemExit) as error:
            refuses = isinstance(error, self.adapter.refusals)
            if refuses and self.may_refuse and operation not in ("build", "shape", "stride"):
                raise Refused from None
            raised = f"{type(error).__name__}: {shown_text(error)}"
            raise self.broken(f"`{operation}` raised", Verbatim(raised), Verbatim("an answer")) from error

    def build(self, a: Plain) -> Any:
        """The library's layout for plain data."""
        return self.ask("build", a.shape, a.stride)

    def tiler(self, tiler: PlainTiler) -> Any:
        """The library's tiler for plain data."""
        if isinstance(tiler, list):
            return [self.tiler(mode) for mode in tiler]
        return None if tiler is None else self.build(tiler)

    def number(self, operation: str, *operands: Any) -> int:
        """An integer answer."""
        return self._integer(operation, self.ask(operation, *operands))

    def truth(self, operation: str, *operands: Any) -> bool:
        """A boolean answer."""
        answer = self.ask(operation, *operands)
        if type(answer).__name__ not in ("bool", "bool_"):
            raise self.broken(f"the answer of `{operation}`", answer, Verbatim("True or False"))
        return bool(answer)

    def read(self, operation: str, answer: Any, most: int = MAX_POINTS) -> Plain:
        """The answer as plain data; later errors show it as the result."""
        shape = self._tuple(f"the shape of the result of `{operation}`", self.ask("shape", answer))
        stride = self._tuple(f"the stride of the result of `{operation}`", self.ask("stride", answer))
        result = Plain(shape, stride)
        self._result = shown(result)
        if not is_congruent(shape, stride):
            raise self.broken("shape and stride", Verbatim("nested differently"), Verbatim("nested alike"))
        if min((e for e, _ in result.leaves()), default=1) < 1 or result.size() > most:
            wanted = "extents of 1 and more, and no more coordinates than all operands together"
            raise self.broken("the size", result.size(), Verbatim(wanted))
        return result

    def get(self, operation: str, *operands: Any) -> Plain:
        """The answer of an operation as plain data."""
        return self.read(operation, self.ask(operation, *operands))

    def large(self, operation: str, *operands: Any) -> Plain:
        """The answer of an operation as plain data of any size."""
        return self.read(operation, self.ask(operation, *operands), _MOST_SIZE)

    def _integer(self, what: str, value: Any) -> int:
        if isinstance(value, bool):
            raise self.broken(f"the answer of `{what}`", value, Verbatim("an integer"))
        try:
            return int(operator.index(value))
        except Exception as error:
            raise self.broken(f"the answer of `{what}`", value, Verbatim("an integer")) from error

    def _tuple(self, what: str, value: Any) -> IntTuple:
        parts = 0

        def walk(part: Any, depth: int) -> IntTuple:
            nonlocal parts
            parts += 1
            if depth > _MOST_DEPTH or parts > _MOST_PARTS or isinstance(part, bool):
                raise ValueError
            if isinstance(part, (tuple, list)):
                return tuple(walk(p, depth + 1) for p in part)
            return int(operator.index(part))

        try:
            return walk(value, 0)
        except Exception as error:
            raise self.broken(what, value, Verbatim("an integer or a nested tuple of integers")) from error

    # Comparing

    def broken(self, what: str, found: object, wanted: object) -> LawError:
        """The error for the broken law."""
        return LawError(self.law, self.adapter.name, self.operands, self._result, what, found, wanted)

    def same(self, what: str, found: object, wanted: object) -> None:
        """Requires equal values."""
        if found != wanted:
            raise self.broken(what, found, wanted)

    def holds(self, what: str, is_so: bool) -> None:
        """Requires that a statement is true."""
        self.same(what, is_so, True)

    def agree(self, what: str, found: Sequence[int], wanted: Sequence[int]) -> None:
        """Requires equal tables; the error names the first difference."""
        self.same(f"{what}: number of coordinates", len(found), len(wanted))
        for i, (one, other) in enumerate(zip(found, wanted)):
            if one != other:
                raise self.broken(f"{what} at {i}", one, other)

    def by_mode(
        self, result: Plain, whole: Plain, tilers: Sequence[Plain | None], judge: Callable[[Case, Plain, Plain, Plain], None]
    ) -> None:
        """Judges each mode of the result that has a tiler. The other modes must be those of `whole`."""
        for mode, part, tile in zip(result.modes(), whole.modes(), chain(tilers, repeat(None))):
            if tile is not None:
                judge(self, mode, part, tile)
            else:
                self.agree("a mode left alone", mode.values(), part.values())

    def points(self, what: str, at: Sequence[int], table: Sequence[int], wanted: Callable[[int], int]) -> None:
        """Requires that entry `at[i]` of a table equals `wanted(i)`."""
        for i, place in enumerate(at):
            if not 0 <= place < len(table):
                raise self.broken(f"{what} at {i}", place, Verbatim(f"a coordinate below {len(table)}"))
            self.same(f"{what} at {i}", table[place], wanted(i))


#: Shows the first parts of long and deep tuples.
_SHORT = reprlib.Repr()
_SHORT.maxtuple = _SHORT.maxlist = 12
_SHORT.maxlevel = 4


class Verbatim(str):
    """Words of a message that are not an answer."""


def shown(value: object) -> str:
    """The value as text of limited length, whatever its methods do."""
    if isinstance(value, Verbatim):
        return str(value)
    try:
        if isinstance(value, (tuple, list)):
            return _short(_SHORT.repr(value))
        told = text(value) if isinstance(value, (int, Plain)) else f"{value!r} of type {type(value).__name__}"
    except Exception:
        told = f"a value of type {type(value).__name__}"
    return _short(told)


def shown_text(error: BaseException) -> str:
    """The text of an exception, of limited length."""
    try:
        return _short(str(error))
    except Exception:
        return "(its text cannot be made)"


def _short(told: str) -> str:
    return told if len(told) <= 300 else f"{told[:297]}..."
