"""Layout algebra: the operations of CuTe under its names."""

from __future__ import annotations

import functools
import json
import operator
from collections.abc import Iterator, Sequence
from typing import Any, Union

from . import _native

#: A number or a tuple of such: a shape, a stride, a coordinate, a profile. `None` is CuTe's `_`. A number over symbols, such as
#: `"M*4"`, is text, and so is a step along a coordinate, `"1@0"`.
IntTuple = Union[int, str, None, tuple["IntTuple", ...]]
#: A layout, a shape, or one of them for each mode; `None` leaves a mode alone.
Tiler = Union["Layout", IntTuple, list["Layout | IntTuple"]]


class LayoutError(ValueError):
    """An operation has no exact answer.

    >>> from carbyne import Layout, LayoutError
    >>> try:
    ...     Layout("(6,2):(8,2)").compose(Layout("5:3"))
    ... except LayoutError as error:
    ...     print(error.code, error.help)
    L0101 make the extent of `5:3` a multiple or a divisor of 2
    """

    #: Such as `L0103`; `carbyne explain` knows it.
    code: str
    #: An action that would mend it.
    help: str | None

    def __init__(self, message: str, code: str, help: str | None) -> None:
        super().__init__(message if help is None else f"{message}; {help}")
        self.code = code
        self.help = help

    def __reduce__(self) -> tuple[object, ...]:
        return _error, (str(self), self.code, self.help)


def _error(text: str, code: str, help: str | None) -> LayoutError:
    error = LayoutError(text, code, None)
    error.help = help
    return error


class Layout:
    """A layout: a function from coordinates to indices, `shape:stride`.

    >>> from carbyne import Layout
    >>> a = Layout("((2,2),8):((1,16),2)")
    >>> a == Layout(((2, 2), 8), ((1, 16), 2))
    True
    >>> a.size(), a.cosize(), a(5), a((1, 1), 3)
    (32, 32, 3, 23)
    >>> a.compose(Layout("8:4"))
    Layout('8:2')
    >>> a.right_inverse()
    Layout('(2,8,2):(1,4,2)')

    A stride that is left out is compact, the first mode fastest. A swizzled layout is `Sw<3,4,3> o 0 o (8,64):(64,1)`.

    Extents and strides may hold symbols, which facts describe. An answer then holds for all values that the facts allow. If the
    answer needs another fact, a :class:`LayoutError` names it.

    >>> m = Layout("(M,K):(K,1)", facts="M >= 1, K % 64 == 0")
    >>> m.size(), m(2, 3), m.shape
    ('K*M', 'K*2 + 3', ('M', 'K'))
    >>> m.zipped_divide([None, 64])
    Layout('((64),(M,K/64)):((1),(K,64)) where K % 64 == 0, M >= 1')
    >>> m.where(M=16, K=128)
    Layout('(16,128):(128,1)')

    A symbol is 1 or more, unless a fact states another lower bound. `==` compares layouts as they are written, :meth:`equivalent`
    as functions.
    """

    __slots__ = ("_text",)

    def __init__(
        self,
        shape: str | IntTuple | Layout,
        stride: IntTuple = None,
        *,
        facts: str | Sequence[str] = (),
    ) -> None:
        given = shape if stride is None else f"{_text(shape)}:{_text(stride)}"
        layout = _given(given, facts)
        compact = not (isinstance(layout, str) and ":" in layout)
        whole = calculate("col_major", layout) if compact else calculate("get", layout, [])
        self._text: str = whole._text

    @classmethod
    def _of(cls, text: str) -> Layout:
        out = cls.__new__(cls)
        out._text = text
        return out

    # Making layouts

    @staticmethod
    def make_layout(*modes: Layout) -> Layout:
        """The layout whose modes are these."""
        return calculate("make_layout", *modes)

    @staticmethod
    def col_major(shape: IntTuple, *, facts: str | Sequence[str] = ()) -> Layout:
        """The compact layout, the first mode fastest."""
        return Layout(shape, facts=facts)

    @staticmethod
    def row_major(shape: IntTuple, *, facts: str | Sequence[str] = ()) -> Layout:
        """The compact layout, the last mode fastest.

        >>> from carbyne import Layout
        >>> Layout.row_major((4, 8))
        Layout('(4,8):(8,1)')
        """
        return calculate("row_major", _given(shape, facts))

    @staticmethod
    def make_ordered_layout(shape: IntTuple, order: IntTuple) -> Layout:
        """The compact layout whose modes go from fast to slow as the order says."""
        return calculate("make_ordered_layout", shape, order)

    @staticmethod
    def make_layout_tv(threads: Layout, values: Layout) -> Layout:
        """(thread, value) to the coordinate in the tile that both make together."""
        return calculate("make_layout_tv", threads, values)

    def make_layout_like(self) -> Layout:
        """The compact layout of the same shape, with the strides in the same order."""
        return calculate("make_layout_like", self)

    # Measures

    def size(self) -> Any:
        """The number of coordinates: an integer, or the text of an expression over symbols."""
        return calculate("size", self)

    def cosize(self) -> Any:
        """One more than the distance between the lowest and the highest index, as :meth:`size`."""
        return calculate("cosize", self)

    def rank(self) -> int:
        """The number of modes."""
        return calculate("rank", self)

    def depth(self) -> int:
        """The levels of nesting."""
        return calculate("depth", self)

    @property
    def shape(self) -> IntTuple:
        """The extents.

        >>> from carbyne import Layout
        >>> Layout("(2,(2,2)):(4,(2,1))").shape
        (2, (2, 2))
        """
        return calculate("shape", self)

    @property
    def stride(self) -> IntTuple:
        """The strides, nested as the shape is."""
        return calculate("stride", self)

    @property
    def facts(self) -> str:
        """The facts about its symbols, as they stand behind `where`; empty if there are none.

        >>> from carbyne import Layout
        >>> Layout("(M,4):(4,1)", facts="M % 8 == 0").facts
        'M % 8 == 0'
        """
        return self._text.partition(" where ")[2]

    def where(self, **values: int) -> Layout:
        """The layout with numbers in the place of symbols. The facts must hold for the numbers.

        >>> from carbyne import Layout, LayoutError
        >>> m = Layout("(M,4):(4,1)", facts="M % 8 == 0")
        >>> m.where(M=16)
        Layout('(16,4):(4,1)')
        >>> try:
        ...     m.where(M=12)
        ... except LayoutError as error:
        ...     print(error)
        `12 % 8 == 0` never holds; remove it, or a fact that contradicts it
        """
        symbols = "; ".join(f"{name} = {operator.index(value)}" for name, value in values.items())
        return calculate("get", f"{symbols}; {self._text}" if values else self, [])

    def equivalent(self, other: Layout) -> bool:
        """Whether both are the same function of one-dimensional indices, for all values of their symbols.

        >>> from carbyne import Layout
        >>> a, b = Layout("(M,4):(4,1)", facts="M >= 1"), Layout("((M,2),2):((4,1),2)", facts="M >= 1")
        >>> a.equivalent(b), a == b
        (True, False)
        """
        return calculate("equivalent", self, other)

    def is_injective(self) -> bool:
        """Whether no two coordinates share an index."""
        return calculate("is_injective", self)

    def max_alignment(self) -> int:
        """How many consecutive elements start at a multiple of their number, wherever the layout is cut."""
        return calculate("max_alignment", self)

    # Indices

    def __call__(self, *coordinate: IntTuple) -> Any:
        """The index of a coordinate, or the layout of the modes that `None` leaves open.

        As in CuTe a coordinate beyond the extents is no error: the last mode goes on.

        >>> from carbyne import Layout
        >>> a = Layout("(4,8):(8,1)")
        >>> a(1, 2), a(9)
        (10, 10)
        >>> a(None, 2)
        Layout('(4):(8)')
        """
        at = coordinate[0] if len(coordinate) == 1 else coordinate
        if _is_open(at):
            return calculate("slice", at, self)
        return calculate("crd2idx", at, self)

    def indices(self) -> list[int]:
        """The indices of all coordinates, the first mode fastest; at most 65,536.

        >>> from carbyne import Layout
        >>> Layout("(2,3):(3,1)").indices()
        [0, 3, 1, 4, 2, 5]
        """
        return list(calculate("layout_eval", self))

    def __iter__(self) -> Iterator[int]:
        return iter(self.indices())

    def __reversed__(self) -> Iterator[int]:
        return reversed(self.indices())

    def __len__(self) -> int:
        size = self.size()
        if not isinstance(size, int):
            raise LayoutError(f"the size is `{size}`, no number", "L0113", "give symbols their values: `layout.where(M=16)`")
        return size

    def coordinate(self, index: int | str) -> IntTuple:
        """The coordinate of a one-dimensional index, the first mode fastest: CuTe's `idx2crd`."""
        return calculate("idx2crd", self._with_facts(index), self.shape)

    crd2idx, idx2crd = __call__, coordinate

    def slice_offset(self, coordinate: IntTuple) -> int:
        """The index of the coordinate with 0 for every `None`."""
        return calculate("slice_offset", coordinate, self)

    def dice(self, coordinate: IntTuple) -> Layout:
        """The layout of what the coordinate fixes."""
        return calculate("dice", coordinate, self)

    # Modes

    def __getitem__(self, mode: int | slice | tuple[int, ...]) -> Layout:
        """A mode, the mode that a path leads to, or the modes of a range.

        >>> from carbyne import Layout
        >>> a = Layout("(4,(3,6)):(1,(4,12))")
        >>> a[1, 0], a[-1], a[1:]
        (Layout('3:4'), Layout('(3,6):(4,12)'), Layout('((3,6)):((4,12))'))
        """
        if isinstance(mode, tuple):
            return functools.reduce(operator.getitem, mode, self)
        rank = self.rank()
        if isinstance(mode, slice):
            return self.select(*range(rank)[mode])
        at = operator.index(mode)
        if not -rank <= at < rank:
            raise IndexError(f"mode {at} of a layout of rank {rank}")
        return calculate("get", self, [at % rank])

    def select(self, *modes: int) -> Layout:
        """The chosen modes in the order given."""
        return calculate("select", self, [range(self.rank())[m] for m in modes])

    def take(self, begin: int, end: int) -> Layout:
        """The modes from `begin` to before `end`."""
        return calculate("take", self, begin, end)

    def group(self, begin: int, end: int) -> Layout:
        """The modes from `begin` to before `end` gathered into one."""
        return calculate("group", self, begin, end)

    def append(self, mode: Layout) -> Layout:
        """The layout with another mode at the end."""
        return calculate("append", self, mode)

    def prepend(self, mode: Layout) -> Layout:
        """The layout with another mode in front."""
        return calculate("prepend", self, mode)

    def replace(self, mode: int, by: Layout) -> Layout:
        """The layout with a mode exchanged for another."""
        return calculate("replace", self, range(self.rank())[mode], by)

    def flatten(self) -> Layout:
        """The same leaves without nesting."""
        return calculate("flatten", self)

    def with_shape(self, shape: IntTuple) -> Layout:
        """The same function of one-dimensional indices under another shape."""
        return calculate("with_shape", self, shape)

    # Simpler forms

    def coalesce(self, profile: IntTuple = None) -> Layout:
        """The same function with as few modes as there can be; with a profile, of each of its leaves.

        >>> from carbyne import Layout
        >>> Layout("(2,(1,6)):(1,(6,2))").coalesce()
        Layout('12:1')
        """
        return calculate("coalesce", self) if profile is None else calculate("coalesce_by", self, profile)

    def filter(self, profile: IntTuple = None) -> Layout:
        """Without strides and extents that make no difference to the set of indices."""
        return calculate("filter", self) if profile is None else calculate("filter_by", self, profile)

    def filter_zeros(self) -> Layout:
        """With extent 1 where the stride is 0."""
        return calculate("filter_zeros", self)

    # Algebra

    def compose(self, inner: Tiler) -> Layout:
        """`self` after `inner`: the layout `R` with `R(i) == self(inner(i))`. A list composes by mode.

        >>> from carbyne import Layout
        >>> Layout("(6,2):(8,2)").compose(Layout("(4,3):(3,1)"))
        Layout('((2,2),3):((24,2),8)')
        """
        return calculate("composition", self, inner)

    composition = compose

    def __matmul__(self, inner: Tiler) -> Layout:
        return self.compose(inner)

    def complement(self, cotarget: IntTuple = None) -> Layout:
        """A layout of indices that this one leaves out, with which it tiles the cotarget; it may end below it."""
        return calculate("complement", self, *([] if cotarget is None else [cotarget]))

    def right_inverse(self) -> Layout:
        """A layout `R` with `self(R(i)) == i`, as large as whole modes make it."""
        return calculate("right_inverse", self)

    def left_inverse(self) -> Layout:
        """A layout `R` with `self(R(self(i))) == self(i)`."""
        return calculate("left_inverse", self)

    def nullspace(self) -> Layout:
        """The layout of the one-dimensional indices that go to 0."""
        return calculate("nullspace", self)

    def logical_divide(self, tiler: Tiler) -> Layout:
        """Every tiled mode becomes (tile, rest).

        >>> from carbyne import Layout
        >>> Layout("(4,2,3):(2,1,8)").logical_divide(Layout("4:2"))
        Layout('((2,2),(2,3)):((4,1),(2,8))')
        """
        return calculate("logical_divide", self, tiler)

    def zipped_divide(self, tiler: Tiler) -> Layout:
        """((tiles), (rests))."""
        return calculate("zipped_divide", self, tiler)

    def tiled_divide(self, tiler: Tiler) -> Layout:
        """((tiles), rest, rest, ...)."""
        return calculate("tiled_divide", self, tiler)

    def flat_divide(self, tiler: Tiler) -> Layout:
        """(tile, tile, ..., rest, rest, ...)."""
        return calculate("flat_divide", self, tiler)

    def logical_product(self, tiler: Tiler) -> Layout:
        """Every tiled mode becomes (mode, copies)."""
        return calculate("logical_product", self, tiler)

    def zipped_product(self, tiler: Tiler) -> Layout:
        """((modes), (copies))."""
        return calculate("zipped_product", self, tiler)

    def tiled_product(self, tiler: Tiler) -> Layout:
        """((modes), copies, copies, ...)."""
        return calculate("tiled_product", self, tiler)

    def flat_product(self, tiler: Tiler) -> Layout:
        """(mode, mode, ..., copies, copies, ...)."""
        return calculate("flat_product", self, tiler)

    def blocked_product(self, tiler: Layout) -> Layout:
        """The block repeated as the tiler says, block by block."""
        return calculate("blocked_product", self, tiler)

    def raked_product(self, tiler: Layout) -> Layout:
        """The block repeated as the tiler says, element by element."""
        return calculate("raked_product", self, tiler)

    def tile_to_shape(self, shape: IntTuple, order: Sequence[int] | None = None) -> Layout:
        """This block repeated until it has the shape, along modes in the order given."""
        return calculate("tile_to_shape", self, shape, *([] if order is None else [tuple(order)]))

    def max_common_vector(self, other: Layout) -> int:
        """The size of :meth:`max_common_layout`: how many indices from 0 on both layouts have at the same coordinates.

        As in CuTe, all coordinates of `other` count, and `self` goes on beyond its extents there.

        >>> from carbyne import Layout
        >>> Layout("(8,4):(1,16)").max_common_vector(Layout("(8,4):(1,8)"))
        8
        >>> Layout("1:1").max_common_vector(Layout("(1,5,1):(1,1,1)"))
        5
        """
        return calculate("max_common_vector", self, other)

    def max_common_layout(self, other: Layout) -> Layout:
        """The layout `R` of one-dimensional coordinates with `self(R(i)) == other(R(i)) == i`, see :meth:`max_common_vector`."""
        return calculate("max_common_layout", self, other)

    # Other widths

    def upcast(self, n: int) -> Layout:
        """Over elements that are `n` times as wide."""
        return calculate("upcast", self, n)

    def downcast(self, n: int) -> Layout:
        """Over elements of the `n`-th part of the width."""
        return calculate("downcast", self, n)

    def recast(self, old_bits: int, new_bits: int) -> Layout:
        """Over elements of another width."""
        return calculate("recast", self, old_bits, new_bits)

    # Pictures

    def draw(self, tile: IntTuple = None) -> str:
        """An SVG of the indices; with a tile's shape, of a thread-value layout of that tile.

        >>> from carbyne import Layout
        >>> Layout("(4,8):(8,1)").draw()[:4]
        '<svg'
        >>> "<svg" in Layout("((4,8),2):((16,1),8)").draw(tile=(8, 8))
        True
        """
        return _native.draw(self._text, None if tile is None else _text(tile))

    def _repr_svg_(self) -> str | None:
        try:
            return self.draw()
        except ValueError:
            return None  # It is too large, or its strides are coordinates.

    # Values of Python

    def _with_facts(self, number: Any) -> Any:
        return f"{_text(number)} where {self.facts}" if self.facts else number

    def __reduce__(self) -> tuple[object, ...]:
        return Layout, (self._text,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._text == other._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Layout({self._text!r})"


def calculate(operation: str, *operands: Any) -> Any:
    """Any operation of the calculator, by its name; `carbyne layout --list` lists them.

    >>> import carbyne
    >>> carbyne.calculate("make_layout", "3:1", "4:3")
    Layout('(3,4):(1,3)')
    """
    try:
        args = [_operand(o) for o in operands]
        request = json.dumps({"op": operation, "args": args}, ensure_ascii=False)
    except RecursionError:
        raise LayoutError("an operand is nested too deeply", "K0601", None) from None
    answer = json.loads(_native.calculate(request))
    if isinstance(answer, str):
        # Numbers over symbols, steps along coordinates and swizzles have no stride.
        return Layout._of(answer) if ":" in answer else answer
    if isinstance(answer, dict):
        if "skip" in answer:
            raise LayoutError(f"there is no operation `{operation}`", "K0602", None)
        # Requests are ours, and so are mistakes in how they are written.
        help = None if '{"id":' in (answer["help"] or "") else answer["help"]
        raise LayoutError(answer["message"], answer["code"], help)
    return _tuple(answer)


def solve(f: Layout, p: Layout, q: Layout) -> Layout:
    """The layout `g` with `f∘p⁻¹ = g∘q⁻¹`: wherever `p(i) == q(j)`, `f(i) == g(j)`.

    An instruction holds the elements of its tile as `p` at its source and as `q` at its destination; `f` is the tensor at
    the source, by the same threads and values, and `g` the tensor at the destination (Hexcute, Fig. 19a). `p` must be one-to-one
    onto the numbers below its size, `f` must be at least as large as `p`, and `p` must have every element of `q`. If `p` and `q` are
    the same layout, the answer is `f`, and these conditions need not hold.

    >>> import carbyne
    >>> from carbyne import Layout
    >>> rows, fragment = Layout("(32,8):(1,32)"), Layout("((4,8),(2,4)):((64,1),(32,8))")
    >>> carbyne.solve(Layout("(32,8):(8,1)"), rows, fragment)
    Layout('((4,8),(2,4)):((2,8),(1,64))')
    """
    return calculate("solve", f, p, q)


def unify(shape: IntTuple, runs: Sequence[Layout], outer: int = 0) -> Layout:
    """The compact layout `m` of the shape under which every run is consecutive: `m(run(j)) == j`.

    A run is a layout whose indices are column-major indices of the shape (Hexcute, section V). The first
    `outer` modes lie outside of the others unless a run says otherwise. If runs contradict each other, a :class:`LayoutError` says how.

    >>> import carbyne
    >>> from carbyne import Layout, LayoutError
    >>> carbyne.unify((64, 64), [Layout("8:1"), Layout("(8,4):(1,16)")])
    Layout('((8,2,4),64):((1,32,8),64)')
    >>> try:
    ...     carbyne.unify((64, 64), [Layout("8:64"), Layout("8:1")])
    ... except LayoutError as error:
    ...     print(error)
    two directions of the tensor would both be consecutive (stride 1); remove a run, or let runs begin and end at the ends of modes
    """
    if isinstance(runs, Layout):
        raise TypeError("runs: found a layout, and a list of layouts is wanted")
    return calculate("unify", shape, list(runs), outer)


def _operand(value: Any) -> Any:
    if isinstance(value, Layout):
        return value._text
    if isinstance(value, (tuple, list)):
        return [_operand(v) for v in value]
    if value is None or isinstance(value, str):
        return value
    return operator.index(value)


def _given(value: Any, facts: str | Sequence[str]) -> Any:
    """A layout or a shape with facts as it is written."""
    if isinstance(value, Layout):
        value = value._text
    if not facts:
        return value
    stated = facts if isinstance(facts, str) else ", ".join(facts)
    text = _text(value)
    return f"{text}{', ' if ' where ' in text else ' where '}{stated}"


def _text(value: IntTuple) -> str:
    if isinstance(value, (tuple, list)):
        return f"({','.join(map(_text, value))})"
    if isinstance(value, str):
        return value  # A stride along a coordinate, `1@0`.
    return "_" if value is None else str(operator.index(value))


def _tuple(value: Any) -> IntTuple:
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def _is_open(value: Any) -> bool:
    try:
        return value is None or isinstance(value, (tuple, list)) and any(map(_is_open, value))
    except RecursionError:
        raise LayoutError("a coordinate is nested too deeply", "K0601", None) from None
