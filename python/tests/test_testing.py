"""carbyne.testing: laws of carbyne's layouts and of pycute, wrong libraries, and misbehaving libraries."""

import ast
import os
import re
import subprocess
import sys
import time
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hypothesis", reason="laws are asked by Hypothesis: pip install 'carbyne[testing]'")

from hypothesis import HealthCheck, Phase, find, given, settings  # noqa: E402
from hypothesis import strategies as hyp  # noqa: E402

from carbyne import testing  # noqa: E402
from carbyne.testing import Adapter, Bounds, Carbyne, Deviation, LawError, Plain, Swizzle, judge, strategies  # noqa: E402
from carbyne.testing._laws import RULES  # noqa: E402
from samples import ROOT, run_page  # noqa: E402

ALL = "CARBYNE_ALL" in os.environ
# Machines may be busy: examples of the page are drawn by this profile, too.
settings.register_profile("busy", deadline=None, derandomize=True, database=None, max_examples=20)
settings.load_profile("busy")


def examples(n: int) -> settings:
    """Settings for a few examples, equal in every run, or for many fresh ones."""
    phases = [Phase.generate, Phase.shrink]
    free = settings(database=None, phases=phases, deadline=None, suppress_health_check=[HealthCheck.too_slow])  # Machines may be busy.
    return settings(free, max_examples=50 * n) if ALL else settings(free, max_examples=n, derandomize=True)


# carbyne's layouts


@pytest.mark.parametrize("law", testing.laws(Carbyne(), settings=examples(12)), ids=str)
def test_our_layouts_obey(law: testing.Law) -> None:
    law()


def test_all_operations_are_ours() -> None:
    own = {name for name in vars(Adapter) if not name.startswith("_") and callable(getattr(Adapter, name))}
    assert own - set(vars(Carbyne)) == set()


# NVIDIA's pycute

#: Known deviations of pycute, each with operands that show it.
PYCUTE_DEVIATIONS = [
    Deviation(
        "composition_any",
        "composition drops coordinates where an extent does not divide what is left",
        (Plain((4, 2), (1, 8)), Plain((2, 3), (1, 2))),
    ),
    Deviation(
        "complement_any",
        "the complement of strides that do not nest has extents of 0",
        (Plain((2, 2), (1, 1)), 1),
        covers=lambda a, cotarget: a.gaps() is None,
    ),
    Deviation(
        "left_inverse_any",
        "left_inverse gives up at a stride of 0, and does not refuse strides that do not nest",
        (Plain((2, 2), (1, 0)),),
        covers=lambda a: a.gaps() is None or a.kept() != [leaf for leaf in a.leaves() if leaf[0] > 1],
    ),
    *(
        Deviation(law, "a swizzle of shift 0 calls itself without end", operands, covers=lambda swizzle, *_: swizzle.shift == 0)
        for law, operands in [
            ("swizzle", (Swizzle(0, 0, 0), 0)),
            ("swizzle_bijection", (Swizzle(0, 0, 0), 0)),
            ("swizzled_at", (Swizzle(0, 0, 0), 0, Plain(1, 0))),
        ]
    ),
]
#: The operations of carbyne that pycute lacks.
PYCUTE_LACKS = {
    "blocked_product", "compatible", "congruent", "dice", "downcast", "flat_divide", "flat_product", "flatten", "group",
    "max_common_layout", "max_common_vector", "nullspace", "raked_product", "recast", "swizzle_recast", "swizzled_composition_at",
    "tile_to_shape", "upcast", "weakly_congruent", "with_shape",
}  # fmt: skip


def pycute() -> Adapter[Any]:
    pytest.importorskip("pycute.layout", reason="NVIDIA's pycute comes with `pip install --no-deps nvidia-cutlass`")
    return testing.Pycute()


@pytest.mark.parametrize("law", testing.law_names())
def test_pycute_obeys_but_for_known_deviations(law: str) -> None:
    known = [d for d in PYCUTE_DEVIATIONS if d.law == law]
    for one in testing.laws(pycute(), settings=examples(12), only=[law], deviations=known):
        result = one.run()
        assert result.is_asked or set(result.missing) <= PYCUTE_LACKS


def test_a_deviation_that_is_gone_fails() -> None:
    gone = Deviation("coalesce", "it is wrong", (Plain((2, 2), (1, 2)),))
    with pytest.raises(testing.LawsBroken, match=r"it is wrong.*take it from the list.*gone"):
        testing.check(Carbyne(), only=["coalesce"], settings=examples(5), deviations=[gone])


def test_a_law_that_a_deviation_covers_wholly_does_not_hold() -> None:
    wrong = Mutant("coalesce", lambda right, a, profile: right.build(a.size(), 7))
    known = [Deviation("coalesce", "it is wrong", (Plain((2, 2), (1, 2)),))]
    report = testing.check(wrong, only=["coalesce", "flatten"], settings=examples(5), deviations=known)
    assert report.held == ["flatten"] and report.covered == ["coalesce"] and report.not_implemented == []
    assert str(report) == "Mutant: 1 law holds\n  covered by known deviations: coalesce"
    testing.check(wrong, only=["coalesce"], settings=examples(5), deviations=known)


def test_the_operands_of_all_laws_have_the_types_of_their_parameters() -> None:
    for law in testing.law_names():
        operands = find(RULES[law].operands(Bounds()), lambda _: True, settings=examples(5))
        several = operands if isinstance(operands, tuple) and not isinstance(operands, Swizzle) else (operands,)
        judge(Carbyne(), law, *several)


# Libraries that are wrong


class Mutant(Carbyne):
    """carbyne's layouts with one operation replaced."""

    def __init__(self, operation: str, wrong: Callable[..., Any]) -> None:
        setattr(self, operation, lambda *operands: wrong(Carbyne(), *operands))


def halves_exchanged(operation: str) -> Callable[..., Any]:
    def wrong(right: Carbyne, a: Any, tiler: Any) -> Any:
        found = getattr(right, operation)(a, tiler)
        return right.concat([found[k] for k in reversed(range(found.rank()))])

    return wrong


def mutant(law: str, wrong: Callable[..., Any], operation: str | None = None) -> Any:
    return pytest.param(law, operation or law, wrong, id=law if operation is None else f"{law}-{operation}")


def reversed_tuple(shape: Any) -> Any:
    return tuple(reversed(shape)) if isinstance(shape, tuple) else shape


MUTANTS = [
    mutant("build", lambda right, shape, stride: right.build(shape, reversed_tuple(stride)) if shape != stride else 0),
    mutant("build", lambda right, a: reversed_tuple(a.shape), "shape"),
    mutant("build", lambda right, a: reversed_tuple(a.stride), "stride"),
    mutant("at", lambda right, a, c: right.at(a, reversed_tuple(c))),
    mutant("at_negative", lambda right, a, c: abs(right.at(a, c)), "at"),
    mutant("at_large", lambda right, a, c: right.at(a, c) & 0xFFFFFFFF, "at"),
    mutant("coalesce", lambda right, a, profile: a),
    mutant("coalesce", lambda right, a, profile: right.coalesce(a, profile)[0]),
    mutant("coalesce_by", lambda right, a, profile: right.coalesce(a, None), "coalesce"),
    mutant("filter", lambda right, a: right.coalesce(a, None)),
    mutant("flatten", lambda right, a: right.coalesce(a, None)),
    mutant("composition", lambda right, a, b: right.composition(b, a)),
    mutant("composition", lambda right, a, b: a),
    mutant("composition_any", lambda right, a, b: right.with_shape(a, b.shape), "composition"),
    mutant("composition_by_mode", lambda right, a, b: right.composition(a, b[:1]), "composition"),
    mutant("complement", lambda right, a, n: right.complement(a, max(1, n - 1))),
    mutant("complement", lambda right, a, n: right.complement(right.filter(a), n + a.cosize())[0]),
    mutant("right_inverse", lambda right, a: right.right_inverse(a)[0]),
    mutant("right_inverse_bijection", lambda right, a: a, "right_inverse"),
    mutant("left_inverse", lambda right, a: right.right_inverse(a)),
    mutant("nullspace", lambda right, a: right.build(1, 0)),
    mutant("logical_divide", halves_exchanged("logical_divide")),
    mutant("logical_divide_by_mode", lambda right, a, t: right.zipped_divide(a, t), "logical_divide"),
    mutant("zipped_divide", halves_exchanged("zipped_divide")),
    mutant("zipped_divide_by_mode", lambda right, a, t: right.logical_divide(a, t), "zipped_divide"),
    mutant("tiled_divide", halves_exchanged("tiled_divide")),
    mutant("flat_divide", halves_exchanged("flat_divide")),
    mutant("logical_product", halves_exchanged("logical_product")),
    mutant("logical_product", lambda right, a, t: right.concat([a, t])),
    mutant("zipped_product", halves_exchanged("zipped_product")),
    mutant("tiled_product", halves_exchanged("tiled_product")),
    mutant("flat_product", halves_exchanged("flat_product")),
    mutant("blocked_product", lambda right, a, b: right.raked_product(a, b)),
    mutant("raked_product", lambda right, a, b: right.blocked_product(a, b)),
    mutant("with_shape", lambda right, a, shape: right.build(shape, Plain(shape, shape).shape)),
    mutant("tile_to_shape", lambda right, a, shape: right.build(shape, testing.strategies.column_major(shape).stride)),
    mutant("max_common_vector", lambda right, a, b: right.max_common_vector(a, b) + 1),
    mutant("max_common_layout", lambda right, a, b: right.right_inverse(a)),
    mutant("upcast", lambda right, a, n: right.build(a.shape, a.stride)),
    mutant("downcast", lambda right, a, n: right.downcast(a, n + 1)),
    mutant("recast", lambda right, a, old, new: right.recast(a, new, old)),
    mutant("group", lambda right, a, begin, end: a),
    mutant("concat", lambda right, modes: right.flatten(Carbyne().concat(modes))),
    mutant("slice", lambda right, a, c: right.dice(a, c)),
    mutant("dice", lambda right, a, c: right.slice(a, c)),
    mutant("congruent", lambda right, a, b: right.weakly_congruent(a, b)),
    mutant("weakly_congruent", lambda right, a, b: right.congruent(a, b)),
    mutant("compatible", lambda right, a, b: right.weakly_congruent(a, b)),
    mutant("swizzle", lambda right, sw, i: i ^ (i >> sw.shift)),
    mutant("swizzle_bijection", lambda right, sw, i: i | right.swizzle(sw, i), "swizzle"),
    mutant("swizzled_at", lambda right, sw, offset, a, i: offset + right.swizzle(sw, right.at(a, i))),
    mutant("swizzled_composition", lambda right, sw, o, a, b, i: right.swizzled_at(sw, o, a, i), "swizzled_composition_at"),
    mutant("swizzle_recast", lambda right, sw, old, new: sw),
]


@pytest.mark.parametrize(("law", "operation", "wrong"), MUTANTS)
def test_mutants_are_caught(law: str, operation: str, wrong: Callable[..., Any]) -> None:
    quick = settings(examples(200), phases=[Phase.generate])
    (only,) = testing.laws(Mutant(operation, wrong), only=[law], settings=quick)
    with pytest.raises(LawError) as caught:
        only()
    # The message contains a call that repeats the judgment.
    call = re.search(r"again by: (judge\(.*\))", str(caught.value))
    assert call is not None
    with pytest.raises(LawError):
        eval(call[1], {**vars(testing), "adapter": only.adapter})


def test_each_operation_has_a_mutant() -> None:
    assert {one.values[1] for one in MUTANTS} == {n for n in vars(Carbyne) if not n.startswith(("_", "has", "name"))}


def test_a_counterexample_is_small_and_shows_both_sides() -> None:
    wrong = Mutant("complement", lambda right, a, n: right.build(n, a.cosize() + 1))
    with pytest.raises(testing.LawsBroken) as caught:
        testing.check(wrong, only=["complement", "coalesce"], settings=examples(20))
    text = str(caught.value)
    assert re.match(r"law `complement` is broken by Mutant\n  a = \S+\n  cotarget = \d+\n  result = \S+\n  sums of both at", text)
    assert "wanted no hole\n  again by: judge(adapter, 'complement', Plain(" in text
    assert text.endswith("1 law is broken; Mutant: 1 law holds")
    assert caught.value.errors[0].operands[0].size() <= 4


# Libraries that misbehave


class Pairs(Adapter[Any]):
    """A library of tuples with the `coalesce` of a test."""

    def __init__(self, coalesce: Callable[[Any], Any]) -> None:
        self.answer = coalesce

    def build(self, shape: Any, stride: Any) -> Any:
        return (shape, stride)

    def shape(self, a: Any) -> Any:
        return a[0]

    def stride(self, a: Any) -> Any:
        return a[1]

    def coalesce(self, a: Any, profile: Any) -> Any:
        return self.answer(a)


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def cyclic() -> Any:
    endless: list[Any] = []
    endless += [endless, endless]
    return endless


def recursion(a: Any) -> Any:
    return recursion(a)


def raises(error: BaseException) -> Callable[[Any], Any]:
    def answer(_: Any) -> Any:
        raise error

    return answer


def stubborn(_: Any) -> Any:
    while True:
        try:
            for _ in range(1 << 60):
                pass
        except Exception:
            pass


MISBEHAVIOR = [
    (lambda a: None, "`shape` raised: found TypeError"),
    (lambda a: 7, "`shape` raised: found TypeError"),
    (lambda a: ("(2,3)", "(1,2)"), "found '(2,3)' of type str, wanted an integer or a nested tuple"),
    (lambda a: (2.0, 1), "found 2.0 of type float, wanted an integer"),
    (lambda a: (True, 1), "found True, wanted an integer"),
    (lambda a: ({2}, 1), "wanted an integer"),
    (lambda a: (Unprintable(), 1), "found a value of type Unprintable"),
    (lambda a: (cyclic(), 1), "wanted an integer or a nested tuple"),
    (lambda a: ((1,) * 10**6, 1), "wanted an integer or a nested tuple"),
    (lambda a: ((2, 3), 1), "found nested differently, wanted nested alike"),
    (lambda a: (0, 1), "the size: found 0, wanted extents of 1 and more"),
    (lambda a: (-3, 1), "the size: found -3"),
    (lambda a: (1 << 62, 1), "wanted extents of 1 and more, and no more coordinates"),
    (lambda a: (1 << 10**6, 1), "wanted extents of 1 and more, and no more coordinates"),
    (raises(KeyError("x")), "`coalesce` raised: found KeyError: 'x', wanted an answer"),
    (raises(ValueError("no")), "`coalesce` raised: found ValueError: no, wanted an answer"),
    (raises(UnprintableError()), "UnprintableError: (its text cannot be made)"),
    (raises(SystemExit(3)), "`coalesce` raised: found SystemExit: 3"),
    (raises(MemoryError()), "`coalesce` raised: found MemoryError"),
    (recursion, "`coalesce` raised: found RecursionError"),
]


@pytest.mark.parametrize(("answer", "message"), MISBEHAVIOR, ids=range(len(MISBEHAVIOR)))
def test_misbehavior_is_a_broken_law(answer: Callable[[Any], Any], message: str) -> None:
    quick = settings(examples(10), phases=[Phase.generate])
    with pytest.raises(testing.LawsBroken) as caught:
        testing.check(Pairs(answer), only=["coalesce"], settings=quick)
    assert message in str(caught.value) and len(str(caught.value)) < 3000


@pytest.mark.skipif(sys.platform == "win32", reason="time is limited by signals of POSIX")
@pytest.mark.parametrize("answer", [stubborn, lambda a: time.sleep(1000)])
def test_a_library_that_does_not_answer_is_ended(answer: Callable[[Any], Any]) -> None:
    began = time.monotonic()
    with pytest.raises(testing.LawsBroken, match=r"the answer: found none within 0\.2 s, wanted one"):
        testing.check(Pairs(answer), only=["coalesce"], settings=examples(10), time_limit=0.2)
    assert time.monotonic() - began < 10  # No search for smaller operands.


@pytest.mark.skipif(sys.platform == "win32", reason="time is limited by signals of POSIX")
def test_a_timer_of_others_goes_on() -> None:
    import signal

    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        judge(Carbyne(), "coalesce", Plain((2, 2), (1, 2)))
        deadline = time.monotonic() + 5
        while not rung and time.monotonic() < deadline:
            time.sleep(0.05)
        assert rung == [1]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_answers_that_change_are_a_broken_law() -> None:
    calls = iter(range(10**9))
    moody = Mutant("coalesce", lambda right, a, profile: None if next(calls) == 8 else right.coalesce(a, profile))
    with pytest.raises(testing.LawsBroken, match="found another answer, wanted the same"):
        testing.check(moody, only=["coalesce"], settings=examples(20))


def test_ctrl_c_goes_through() -> None:
    with pytest.raises(KeyboardInterrupt):
        testing.check(Pairs(raises(KeyboardInterrupt())), only=["coalesce"], settings=examples(10))


def test_a_refusal_is_one_where_the_operands_are_out_of_the_blue() -> None:
    def refuse(right: Carbyne, outer: Any, inner: Any) -> Any:
        raise ValueError("never")

    report = testing.check(Mutant("composition", refuse), only=["composition_any"], settings=examples(10))
    assert report.results[0].refused == 10 and report.results[0].held == 0
    with pytest.raises(testing.LawsBroken, match="`composition` raised: found ValueError: never, wanted an answer"):
        testing.check(Mutant("composition", refuse), only=["composition"], settings=examples(10))


def test_what_is_not_implemented_is_skipped_and_reported() -> None:
    class Few(Pairs):
        coalesce = Adapter.coalesce

    few = Few(lambda a: a)
    report = testing.check(few, only=["build", "coalesce", "slice", "at_negative"], settings=examples(5))
    assert str(report) == "Few: 1 law holds\n  not implemented, so not asked: at_negative, coalesce, slice"
    (law,) = testing.laws(few, only=["slice"], settings=examples(5))
    with pytest.raises(unittest.SkipTest, match="not implemented by Few: slice"):
        law()
    with pytest.raises(testing.LawsBroken, match="no law was asked"):
        testing.check(few, only=["slice"], settings=examples(5))


def test_mistakes_of_callers_are_told() -> None:
    with pytest.raises(TypeError, match=r"give `Carbyne\(\)`"):
        testing.laws(Carbyne)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a class derived from it"):
        testing.laws(object())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no law `composit`; did you mean `composition`"):
        testing.laws(Carbyne(), only=["composit"])
    with pytest.raises(TypeError, match=r"law `composition` is about \(outer, inner\), given were 1 operands"):
        judge(Carbyne(), "composition", Plain(1, 0))
    with pytest.raises(TypeError, match=r"`only` is a list of names of laws; give \['coalesce'\]"):
        testing.laws(Carbyne(), only="coalesce")
    with pytest.raises(TypeError, match="`skip` is a list"):
        testing.check(Carbyne(), skip="coalesce")
    for limit in (-1, 0, float("nan"), float("inf"), "1"):
        with pytest.raises(ValueError, match="`time_limit` is .*; give a positive number of seconds, or None"):
            testing.laws(Carbyne(), time_limit=limit)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="`time_limit` is"):
            judge(Carbyne(), "coalesce", Plain(1, 0), time_limit=limit)  # type: ignore[arg-type]
    for law, operands, said in (
        ("coalesce", (5,), "operand `a` of law `coalesce` is 5, and Plain is wanted"),
        ("complement", (Plain(2, 2), "2"), "operand `cotarget` .* is '2', and int is wanted"),
        ("composition_by_mode", (Plain((2,), (1,)), [3]), r"operand `tiler` .*, and list\[Plain \| None\] is wanted"),
        ("logical_divide", (Plain(2, 1), [3]), "operand `tiler` .*, and PlainTiler is wanted"),
        ("slice", (Plain((2,), (1,)), ("x",)), "operand `coordinate` .*, and OpenCoordinate is wanted"),
        ("with_shape", (Plain(2, 1), (None,)), "operand `shape` .*, and IntTuple is wanted"),
        ("swizzle", ((1, 0, 1), 0), "operand `swizzle` .*, and Swizzle is wanted"),
        ("thread_value", (Plain(2, 1),), "operand `thread_value` .*, and ThreadValue is wanted"),
    ):
        with pytest.raises(TypeError, match=said):
            judge(Carbyne(), law, *operands)
    with pytest.raises(TypeError, match="abstract"):
        type("Nothing", (Adapter,), {})()
    with pytest.raises(ValueError, match="1 <= size"):
        Bounds(size=0)


def test_without_hypothesis_the_import_says_what_to_install() -> None:
    script = "import sys; sys.modules['hypothesis'] = None; import carbyne; import carbyne.testing"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert ran.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: carbyne.testing needs Hypothesis: "
        "pip install 'carbyne[testing]', or pip install 'hypothesis>=6,<7'"
    )


# Strategies


def fits(a: Plain, bounds: Bounds) -> bool:
    return a.size() <= bounds.size and len(a.modes()) <= bounds.rank and depth(a.shape) <= bounds.depth


def depth(shape: Any) -> int:
    return 0 if isinstance(shape, int) else 1 + max(map(depth, shape), default=0)


@pytest.mark.parametrize("bounds", [Bounds(), Bounds(rank=2, depth=1, extent=64), Bounds(size=9, depth=0), Bounds(rank=1, depth=2)])
def test_layouts_keep_their_bounds(bounds: Bounds) -> None:
    pairs = hyp.one_of(strategies.layout_pairs(bounds), strategies.compositions(bounds), strategies.divisions(bounds))

    @settings(examples(100))
    @given(pairs)
    def keep(pair: tuple[Plain, Plain]) -> None:
        outer, inner = pair
        assert fits(outer, bounds)
        assert len(inner.modes()) <= bounds.rank and depth(inner.shape) <= bounds.depth
        for a in pair:
            assert max(e for e, _ in outer.leaves()) <= bounds.extent and len(a.values()) == a.size()

    keep()


def shrunk(strategy: Any, wanted: Callable[[Any], bool], seen: Callable[[Any], None]) -> Any:
    """The smallest wanted value; `seen` is called with all values on the way."""

    def look(value: Any) -> bool:
        seen(value)
        return wanted(value)

    return find(strategy, look, settings=settings(max_examples=200, derandomize=True, database=None))


def test_shrinking_keeps_what_is_admissible() -> None:
    def compose(pair: Any) -> None:
        assert judge(Carbyne(), "composition", *pair) == "holds"

    pair = shrunk(strategies.compositions(), lambda p: p[1].size() >= 4 and len(p[0].kept()) >= 2, compose)
    assert all(len(a.leaves()) <= 3 for a in pair) and pair[1].size() <= 6

    def divide(pair: Any) -> None:
        assert judge(Carbyne(), "logical_divide", *pair) == "holds"

    whole, tile = shrunk(strategies.divisions(), lambda p: p[1].size() >= 3, divide)
    assert whole.size() <= 4 and tile.size() <= 4


def test_shrinking_ends_at_something_simple() -> None:
    none = lambda value: None  # noqa: E731
    assert shrunk(strategies.layouts(), lambda a: a.cosize() > 5, none).size() <= 6
    assert shrunk(strategies.layouts(), lambda a: True, none) == Plain(1, 0)
    assert shrunk(strategies.swizzles(), lambda sw: sw.bits > 0, none) == Swizzle(1, 0, 1)
    tv = shrunk(strategies.thread_values(), lambda tv: all(m.size() > 1 for m in tv.layout.modes()), none)
    assert tv.layout.size() == 4


@settings(examples(100))
@given(strategies.thread_values(), strategies.replicated_thread_values())
def test_thread_value_layouts_cover_their_tile(once: testing.ThreadValue, several: testing.ThreadValue) -> None:
    size = Plain(once.tile, once.tile).size()
    assert sorted(once.layout.values()) == list(range(size)) and len(once.layout.modes()) == 2
    assert len(set(several.layout.values())) == Plain(several.tile, several.tile).size() < several.layout.size()


@settings(examples(100))
@given(strategies.int_tuples(), hyp.data())
def test_tilers_divide(shape: Any, data: Any) -> None:
    whole = strategies.column_major(shape)
    tiler = data.draw(strategies.tilers(whole))
    law = "logical_divide_by_mode" if isinstance(tiler, list) else "logical_divide"
    assert judge(Carbyne(), law, whole, tiler) == "holds"


def test_large_layouts_are_large() -> None:
    assert find(strategies.large_layouts(), lambda a: a.cosize() > 1 << 50, settings=examples(1000)).cosize() <= (1 << 60) + 1


# The code and the pages


def test_laws_do_not_know_our_algebra() -> None:
    folder = Path(testing.__file__).parent
    for file in folder.rglob("*.py"):
        depth = len(file.relative_to(folder).parts)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            above = isinstance(node, ast.ImportFrom) and node.level > depth
            by_name = isinstance(node, (ast.Import, ast.ImportFrom)) and "carbyne" in ast.unparse(node)
            assert not (above or by_name) or file.name == "adapters.py", f"{file}: {ast.unparse(node)}"


def test_the_laws_are_those_of_the_kit() -> None:
    text = (ROOT / "ir/src/kit/suite.rs").read_text(encoding="utf-8")
    kit = set(re.findall(r"^    (\w+): (?:s::|\()", text, re.MULTILINE))
    renamed = {"eval": "at", "eval_at": "at", "swizzled_eval": "swizzled_at", "swizzle_involution": "swizzle"}
    renamed |= {"cast_large": "upcast_large", "eval_large": "at_large", "eval_at_large": "at_large"}
    renamed |= {"eval_negative": "at_negative", "eval_at_negative": "at_negative"}
    expected = {renamed.get(law, law) for law in kit if not law.endswith("_symbolic")} | {"downcast_large"}
    assert expected == set(testing.law_names())


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = run_page("docs/property-testing.md")
    for law in names["test_law"].pytestmark[0].args[1]:
        try:
            names["test_law"](law)
        except unittest.SkipTest:
            continue
