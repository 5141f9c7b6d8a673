"""Runs laws for operands that Hypothesis generates."""

from __future__ import annotations

import contextlib
import difflib
import math
import signal
import threading
import time
import unittest
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import hypothesis
from hypothesis import errors

from ._adapter import Adapter
from ._case import Case, LawError, Refused, Unsupported, Verbatim
from ._laws import RULES, Rule
from ._plain import Swizzle, is_operand
from .strategies import DEFAULT, Bounds

#: Time limit of a library for one set of operands, in seconds.
TIME_LIMIT = 5.0

Outcome = Literal["holds", "refused", "not implemented"]


class LawsBroken(AssertionError):
    """Laws that a library breaks."""

    #: One error for each broken law.
    errors: list[LawError]

    def __init__(self, text: str, errors: list[LawError]) -> None:
        super().__init__(text)
        self.errors = errors


def _laws(n: int, one: str, many: str) -> str:
    return f"{n} law {one}" if n == 1 else f"{n} laws {many}"


def _everything(*_operands: Any) -> bool:
    return True


@dataclass(frozen=True)
class Deviation:
    """A law that a library is known to break.

    The example must break the law: if the deviation is gone, the law fails until the deviation is removed from the list. The law is
    still tested for operands that `covers` excludes.
    """

    law: str
    #: The reason why the library breaks the law, in one line.
    reason: str
    #: Operands that break the law.
    example: tuple[Any, ...]
    #: Whether the deviation covers these operands; by default, all.
    covers: Callable[..., bool] = _everything


@dataclass
class Result:
    """The result of a law that is not broken."""

    law: str
    #: The number of sets of operands for which the law held.
    held: int = 0
    #: The number of sets of operands that the library refused.
    refused: int = 0
    #: The number of sets of operands that a known deviation covers.
    known: int = 0
    #: Missing operations, with the number of sets of operands that needed them.
    missing: Counter[str] = field(default_factory=Counter)

    @property
    def is_asked(self) -> bool:
        """False if the library lacks an operation for every set of operands."""
        return bool(self.held or self.refused or self.known)

    @property
    def is_covered(self) -> bool:
        """Whether known deviations cover every set of operands: the law was seen broken, and never held."""
        return bool(self.known) and not (self.held or self.refused)

    def __str__(self) -> str:
        parts = [f"held for {self.held}" if self.is_asked else "not implemented"]
        parts += [f"refused {self.refused}"] if self.refused else []
        parts += [f"{self.known} of a known deviation"] if self.known else []
        parts += [f"`{operation}` is not implemented for {times}" for operation, times in self.missing.items()]
        return f"law {self.law}: {', '.join(parts)}"


@dataclass
class Report:
    """The results of a library that breaks no law."""

    library: str
    results: list[Result]

    @property
    def held(self) -> list[str]:
        """The laws that hold, apart from known deviations."""
        return [r.law for r in self.results if r.is_asked and not r.is_covered]

    @property
    def covered(self) -> list[str]:
        """The laws that known deviations cover for all operands."""
        return [r.law for r in self.results if r.is_covered]

    @property
    def not_implemented(self) -> list[str]:
        """The laws that were not tested, because the library lacks the operation."""
        return [r.law for r in self.results if not r.is_asked]

    def __str__(self) -> str:
        text = f"{self.library}: {_laws(len(self.held), 'holds', 'hold')}"
        if self.covered:
            text += f"\n  covered by known deviations: {', '.join(self.covered)}"
        if self.not_implemented:
            text += f"\n  not implemented, so not asked: {', '.join(self.not_implemented)}"
        return text


@dataclass(frozen=True)
class Law:
    """A law to be tested on a library; call it in a test.

    The call raises :class:`LawError` if the law is broken, and `unittest.SkipTest`, which pytest reports as a skipped test, if the
    library lacks the operation.
    """

    name: str
    adapter: Adapter[Any]
    settings: hypothesis.settings | None
    bounds: Bounds
    deviations: tuple[Deviation, ...]
    time_limit: float | None

    def __str__(self) -> str:
        return self.name

    def __call__(self) -> None:
        result = self.run()
        if not result.is_asked:
            raise unittest.SkipTest(f"not implemented by {self.adapter.name}: {', '.join(result.missing)}")

    def run(self) -> Result:
        """Tests the law like a call, and returns the result."""
        rule, result = RULES[self.name], Result(self.name)
        if rule.needs and not getattr(self.adapter, rule.needs):
            result.missing[rule.needs] += 1
            return result
        self._deviates()
        broken: list[LawError] = []
        hung: list[tuple[tuple[Any, ...], LawError]] = []
        causes: dict[int, BaseException | None] = {}

        def case(drawn: Any) -> None:
            operands = drawn if isinstance(drawn, tuple) and not isinstance(drawn, Swizzle) else (drawn,)
            if hung:  # Do not search for smaller operands: each would take as long.
                if operands == hung[0][0]:
                    raise hung[0][1]
                return
            if any(d.covers(*operands) for d in self.deviations):
                result.known += 1
                return
            try:
                outcome, missing = _judged(rule, self.adapter, operands, self.time_limit)
            except LawError as error:
                broken.append(error)
                if isinstance(error, _Hung):
                    hung.append((operands, error))
                # Hypothesis distinguishes failures by tracebacks, and tracebacks of an endless recursion always differ.
                causes[id(error)], error.__cause__, error.__context__ = error.__cause__, None, None
                failure = error.with_traceback(None)
                raise failure from None
            result.held += outcome == "holds"
            result.refused += outcome == "refused"
            if missing:
                result.missing[missing] += 1

        # Hypothesis stores examples by the name of the test.
        case.__name__ = f"{type(self.adapter).__name__}_{self.name}"
        given = hypothesis.given(rule.operands(self.bounds))(case)
        chosen = self.settings or hypothesis.settings()
        settings = hypothesis.settings(
            chosen,
            deadline=None,
            phases=[phase for phase in chosen.phases if phase is not hypothesis.Phase.explain],
            report_multiple_bugs=False,
            verbosity=hypothesis.Verbosity.quiet,
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        try:
            settings(given)()
        except LawError as error:
            # The useful part of the traceback is that of the library: the cause.
            raise error.with_traceback(None) from causes.get(id(error))
        except errors.Flaky as error:
            operands = broken[-1].operands if broken else ()
            raise self._broken(operands, "the same operands once more", "another answer", "the same") from error
        return result

    def _broken(self, operands: tuple[Any, ...], what: str, found: str, wanted: str) -> LawError:
        named = dict(zip(RULES[self.name].names(), operands))
        return LawError(self.name, self.adapter.name, named, None, what, Verbatim(found), Verbatim(wanted))

    def _deviates(self) -> None:
        for deviation in self.deviations:
            try:
                judge(self.adapter, self.name, *deviation.example, time_limit=self.time_limit)
            except LawError:
                continue
            what = f"the deviation `{deviation.reason}` (take it from the list)"
            raise self._broken(deviation.example, what, "gone", "a broken law")


def law_names() -> list[str]:
    """The names of all laws.

    >>> from carbyne.testing import law_names
    >>> law_names()[:4]
    ['build_negative', 'build', 'at_negative', 'at']
    """
    return list(RULES)


def laws(
    adapter: Adapter[Any],
    *,
    settings: hypothesis.settings | None = None,
    bounds: Bounds = DEFAULT,
    only: Collection[str] | None = None,
    skip: Collection[str] = (),
    deviations: Sequence[Deviation] = (),
    time_limit: float | None = TIME_LIMIT,
) -> list[Law]:
    """The laws to be tested on a library, one per test.

    `settings` are settings of Hypothesis; the default is the loaded profile, and their deadline is not used. `only` and `skip` are names
    of laws. A library that does not answer for a set of operands within `time_limit` seconds breaks the law; the limit applies in the
    main thread on POSIX.

    >>> import pytest
    >>> from carbyne.testing import Carbyne, laws
    >>> @pytest.mark.parametrize("law", laws(Carbyne()), ids=str)
    ... def test_law(law):
    ...     law()
    """
    if not isinstance(adapter, Adapter):
        hint = f"`{adapter.__name__}()`" if isinstance(adapter, type) else "a class derived from it"
        raise TypeError(f"{adapter!r} is no instance of carbyne.testing.Adapter; give {hint}")
    for option, names in (("only", only), ("skip", skip)):
        if isinstance(names, str):
            raise TypeError(f"`{option}` is a list of names of laws; give [{names!r}]")
    _check_limit(time_limit)
    for name in [*(only or ()), *skip, *(d.law for d in deviations)]:
        _rule(name)
    chosen = [name for name in RULES if (only is None or name in only) and name not in skip]
    return [
        Law(name, adapter, settings, bounds, tuple(d for d in deviations if d.law == name), time_limit) for name in chosen
    ]


def check(adapter: Adapter[Any], **options: Any) -> Report:
    """Tests all laws on a library, with the options of :func:`laws`. Raises :class:`LawsBroken` with all broken laws.

    >>> from carbyne.testing import Carbyne, check
    >>> print(check(Carbyne(), only=["coalesce", "composition"]))
    carbyne: 2 laws hold
    """
    results: list[Result] = []
    broken: list[LawError] = []
    for law in laws(adapter, **options):
        try:
            results.append(law.run())
        except LawError as error:
            broken.append(error)
    report = Report(adapter.name, results)
    if broken:
        texts = "\n".join(map(str, broken))
        raise LawsBroken(f"{texts}\n{_laws(len(broken), 'is broken', 'are broken')}; {report}", broken)
    if not (report.held or report.covered):
        raise LawsBroken(f"no law was asked; {report}", [])
    return report


def judge(adapter: Adapter[Any], law: str, *operands: Any, time_limit: float | None = TIME_LIMIT) -> Outcome:
    """Judges a law for given operands. A broken law prints this call, so that it can be kept as a test.

    >>> from carbyne.testing import Carbyne, Plain, judge
    >>> judge(Carbyne(), "complement", Plain(2, 2), 2)
    'holds'
    """
    rule = _rule(law)
    if len(operands) != len(rule.names()):
        raise TypeError(f"law `{law}` is about ({', '.join(rule.names())}), given were {len(operands)} operands")
    for (name, kind), operand in zip(rule.operand_types().items(), operands):
        if not is_operand(kind, operand):
            raise TypeError(f"operand `{name}` of law `{law}` is {operand!r}, and {kind} is wanted")
    _check_limit(time_limit)
    return _judged(rule, adapter, operands, time_limit)[0]


def _rule(name: str) -> Rule:
    if name in RULES:
        return RULES[name]
    near = difflib.get_close_matches(name, RULES, 1)
    hint = f"did you mean `{near[0]}`?" if near else "carbyne.testing.law_names() lists them"
    raise ValueError(f"there is no law `{name}`; {hint}")


def _check_limit(seconds: float | None) -> None:
    """Refuses 0 seconds, because such a timer never fires."""
    if seconds is not None and not (isinstance(seconds, (int, float)) and 0 < seconds < math.inf):
        raise ValueError(f"`time_limit` is {seconds!r}; give a positive number of seconds, or None for no limit")


class _Hung(LawError):
    """The library did not answer in time."""


class _TimeIsUp(BaseException):
    """Not an `Exception`, so that a library does not catch it accidentally."""


def _judged(rule: Rule, adapter: Adapter[Any], operands: tuple[Any, ...], limit: float | None) -> tuple[Outcome, str | None]:
    """The outcome of a law for these operands, and the missing operation, if any."""
    named = dict(zip(rule.names(), operands))
    case = Case(rule.name, adapter, named, rule.may_refuse)
    try:
        with _ends_after(limit):
            rule.body(case, *operands)
    except Unsupported as missing:
        return "not implemented", str(missing)
    except Refused:
        return "refused", None
    except _TimeIsUp:
        raise _Hung(
            rule.name, adapter.name, named, None, "the answer", Verbatim(f"none within {limit} s"), Verbatim("one")
        ) from None
    return "holds", None


@contextlib.contextmanager
def _ends_after(seconds: float | None) -> Iterator[None]:
    """Raises :class:`_TimeIsUp` in the body after this number of seconds, if signals permit this."""
    in_main = threading.current_thread() is threading.main_thread()
    if seconds is None or not hasattr(signal, "setitimer") or not in_main:
        yield
        return
    is_on = True

    def ring(*_: object) -> None:
        if is_on:
            raise _TimeIsUp

    handler = signal.signal(signal.SIGALRM, ring)
    # The timer fires again, in case the library catches all exceptions.
    left, interval = signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    began = time.monotonic()
    try:
        try:
            yield
        finally:
            is_on = False  # The timer may fire before this, hence the outer `finally`.
    finally:
        is_on = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if handler is None else handler)
        if left:  # Restart the timer of other code.
            signal.setitimer(signal.ITIMER_REAL, max(left - (time.monotonic() - began), 1e-3), interval)
