"""Layouts: laws, and the operands of Python."""

import pickle

import pytest

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
    assert Layout(a.shape, a.stride) == a and hash(Layout(text)) == hash(a)
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


def test_messages_are_not_about_requests() -> None:
    for wrong in [2**63, 2**64, (1,) * 10**5]:
        with pytest.raises(LayoutError) as caught:
            Layout(wrong)
        assert "object a line" not in str(caught.value)
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
