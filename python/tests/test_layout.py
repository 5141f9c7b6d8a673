"""Layouts: laws, and the operands of Python."""

import pickle
import random

import pytest

import carbyne
from carbyne import Layout, LayoutError, calculate

LAYOUTS = ["8:1", "(4,8):(8,1)", "((2,2),8):((1,16),2)", "(2,(2,2)):(4,(2,1))", "(3,5):(0,7)"]


@pytest.mark.parametrize("text", LAYOUTS)
def test_functions_agree_with_their_tables(text: str) -> None:
    a = Layout(text)
    table = a.indices()
    assert len(a) == a.size() == len(table)
    assert [a(i) for i in range(len(a))] == table == list(a)
    assert [a(a.coordinate(i)) for i in range(len(a))] == table
    assert a.cosize() == max(table) - min(table) + 1
    assert a.coalesce().indices() == table == a.flatten().indices()
    assert Layout(a.shape, a.stride) == a and a.equivalent(a.coalesce()) and hash(Layout(text)) == hash(a)
    assert eval(repr(a)) == a


@pytest.mark.parametrize("text", LAYOUTS[:4])
def test_inverses_and_complements(text: str) -> None:
    a = Layout(text)
    r = a.right_inverse()
    assert [a(r(i)) for i in range(r.size())] == list(range(r.size()))
    both = calculate("make_layout", a, a.complement(a.cosize()))
    assert both.is_injective()


def test_composition_is_a_composition() -> None:
    a, b = Layout("(6,2):(8,2)"), Layout("(4,3):(3,1)")
    assert a.compose(b) == a @ b
    assert (a @ b).indices() == [a(b(i)) for i in range(b.size())]
    tiled = Layout("(8,8)").compose([Layout("4:2"), None])
    assert tiled.shape == (4, 8)


def test_swizzled_layouts_are_layouts() -> None:
    a = Layout("Sw<3,4,3> o 0 o (8,64):(64,1)")
    assert sorted(a.indices()) == list(range(512)) and a.shape == (8, 64)


def test_modes_are_items() -> None:
    a = Layout("(4,(3,6)):(1,(4,12))")
    assert a[0] == Layout("4:1") and a[-1] == a[1] and a[1, 1] == Layout("6:12")
    assert a[-1, 0] == a[1, 0] and a.select(-1) == a.select(1)
    with pytest.raises(IndexError):
        a[2]
    with pytest.raises(IndexError):
        a.select(2)


def test_indices_go_both_ways() -> None:
    a = Layout("4:2")
    assert list(reversed(a)) == [6, 4, 2, 0] and 4 in a and 3 not in a


def test_strides_along_coordinates_are_strides() -> None:
    b = Layout("(4,8):(1@0,1@1)")
    assert Layout(b.shape, b.stride) == b and b(1, 2) == (1, 2)
    assert all(pickle.loads(pickle.dumps(b, protocol)) == b for protocol in range(5))


@pytest.mark.parametrize("text", ["4:1@0", "(4):(1@0)", "((4,2),3):((1@0,2@1@0),0)", "4:2@1"])
def test_one_step_along_a_coordinate_is_a_stride(text: str) -> None:
    b = Layout(text)
    assert Layout(b.shape, b.stride) == b and not isinstance(b.stride, Layout)


def test_division_by_zero_is_an_error() -> None:
    for divisor in [0, -2]:
        with pytest.raises(LayoutError) as caught:
            calculate("shape_div", 6, divisor)
        assert caught.value.code == "L0111"


def test_layouts_over_symbols_are_values() -> None:
    a = Layout("(M,K):(K,1)", facts=["K % 64 == 0", "M >= 1"])
    assert a == Layout(("M", "K"), ("K", 1), facts="M >= 1, K % 64 == 0") and hash(a) == hash(Layout(str(a)))
    assert eval(repr(a)) == a and a.facts == "K % 64 == 0, M >= 1"
    assert Layout(a.shape, a.stride, facts=a.facts) == a == Layout.row_major(("M", "K"), facts=a.facts)
    assert all(pickle.loads(pickle.dumps(a, protocol)) == a for protocol in range(5))
    assert a.where() == a and a.where(M=3).where(K=64) == Layout("(3,64):(64,1)") == a.where(K=64, M=3)
    assert a.where(M=3).facts == "K % 64 == 0"
    with pytest.raises(LayoutError, match="no number"):
        len(a)
    for wrong in [{"K": 65}, {"M": 0}, {"M": -1}]:
        with pytest.raises(LayoutError):
            a.where(**wrong)
    with pytest.raises(LayoutError, match="`N`"):
        Layout("(M,N):(N,1)", facts="M >= 1")
    with pytest.raises(LayoutError) as caught:
        Layout("(M,8):(1,64)", facts="M >= 1").compose(Layout("4:1"))
    assert caught.value.code == "L0108" and "M % 4 == 0" in str(caught.value)
    i = Layout("(M,8):(8,1)", facts="i >= 0, i < M")
    assert i(("i", 3)) == "i*8 + 3" and i.where(M=4).facts == ""


def _layouts(draw: random.Random) -> Layout:
    modes = [(draw.choice(["2", "4", "M", "K", "K/8"]), draw.choice(["1", "4", "0", "M", "K*M"])) for _ in range(draw.randint(1, 3))]
    shape, stride = zip(*modes)
    return Layout(shape, stride, facts="M >= 1, K % 8 == 0, K >= 8")


def test_answers_over_symbols_are_those_over_their_values() -> None:
    draw, answered = random.Random(0), 0
    operations = [
        lambda a, b, k: a.compose(b),
        lambda a, b, k: a.coalesce(),
        lambda a, b, k: a.logical_divide(Layout("(2,4):(1,2)")),
        lambda a, b, k: a.zipped_divide(Layout("2:1")),
        lambda a, b, k: a.logical_product(Layout("(2,2):(4,1)")),
        lambda a, b, k: a.right_inverse(),
        lambda a, b, k: Layout("4:2").complement(k),
        lambda a, b, k: carbyne.solve(a, b, Layout("4:1")),
        lambda a, b, k: a.select(*reversed(range(a.rank()))),
    ]
    for _ in range(300):
        a, b = _layouts(draw), _layouts(draw)
        operation = draw.choice(operations)
        try:
            symbolic = operation(a, b, "K")
        except LayoutError:
            continue
        for values in [{"M": 1, "K": 8}, {"M": 3, "K": 16}]:
            put = symbolic.where(**values)
            if symbolic.facts == "":
                continue
            number = operation(a.where(**values), b.where(**values), values["K"])
            assert put.indices() == number.indices(), (a, b, values)
            answered += 1
    assert answered > 100


def test_copies_are_solved() -> None:
    f, p, q = Layout("(32,8):(8,1)"), Layout("(32,8):(1,32)"), Layout("((4,8),(2,4)):((64,1),(32,8))")
    g = carbyne.solve(f, p, q)
    of = {p(i): f(i) for i in range(p.size())}
    assert [of[q(j)] for j in range(q.size())] == g.indices()
    with pytest.raises(LayoutError) as caught:
        carbyne.solve(f, Layout("(32,8):(0,1)"), q)
    assert caught.value.code == "L0119"


def test_runs_are_unified() -> None:
    runs = [Layout("8:1"), Layout("(8,4):(1,16)")]
    m = carbyne.unify((64, 64), runs)
    assert all(m(run(j)) == j for run in runs for j in range(run.size()))
    assert sorted(m.indices()) == list(range(64 * 64))
    assert carbyne.unify((2, 8), [], outer=1) == Layout("(2,8):(8,1)")
    with pytest.raises(LayoutError) as caught:
        carbyne.unify((64, 64), [Layout("8:1"), Layout("8:64")])
    assert caught.value.code == "L0120"


def test_messages_are_not_about_requests() -> None:
    for wrong in [2**63, 2**64, (1,) * 10**5]:
        with pytest.raises(LayoutError) as caught:
            Layout(wrong)
        assert "object per line" not in str(caught.value)
    with pytest.raises(UnicodeEncodeError):
        Layout("\ud800")


@pytest.mark.parametrize("wrong", ["", "(4,8):(1", "4:2:1", (4, (5,), "x"), [4, 2.5], "(4,-8)", "(" * 9999, None, b"8:1", 2**63])
def test_wrong_layouts_are_errors(wrong: object) -> None:
    with pytest.raises((LayoutError, TypeError)):
        Layout(wrong)  # type: ignore[arg-type]


def test_nests_without_an_end_are_refused() -> None:
    nest: object = (1,)
    for _ in range(5000):
        nest = (nest,)
    with pytest.raises(LayoutError):
        Layout(nest)  # type: ignore[arg-type]
    with pytest.raises(LayoutError):
        Layout("(4,8):(8,1)")(nest)  # type: ignore[arg-type]


def test_unknown_operations_are_errors() -> None:
    with pytest.raises(LayoutError, match="no operation"):
        calculate("complemnt", "4:1")
