"""Adapters of libraries: carbyne's own layouts, and NVIDIA's pycute as an example of another library."""

from __future__ import annotations

import importlib
import re
from typing import Any

from .. import Layout, calculate
from ._adapter import Adapter
from ._plain import IntTuple, OpenCoordinate, Plain, Swizzle, text

__all__ = ["Carbyne", "Pycute"]


class Carbyne(Adapter[Layout]):
    """:class:`carbyne.Layout`. Each operation is one call."""

    has_negative_strides = True

    @property
    def name(self) -> str:
        # A derived class that replaces operations is another library.
        return "carbyne" if type(self) is Carbyne else type(self).__name__

    def build(self, shape: IntTuple, stride: IntTuple) -> Layout:
        return Layout(str(Plain(shape, stride)))

    def shape(self, a: Layout) -> Any:
        return a.shape

    def stride(self, a: Layout) -> Any:
        return a.stride

    def at(self, a: Layout, coordinate: IntTuple) -> int:
        return calculate("crd2idx", coordinate, a)  # type: ignore[no-any-return]

    def coalesce(self, a: Layout, profile: IntTuple | None) -> Layout:
        return a.coalesce(profile)

    def filter(self, a: Layout) -> Layout:
        return a.filter()

    def flatten(self, a: Layout) -> Layout:
        return a.flatten()

    def composition(self, outer: Layout, inner: Any) -> Layout:
        return outer.compose(inner)

    def complement(self, a: Layout, cotarget: int) -> Layout:
        return a.complement(cotarget)

    def right_inverse(self, a: Layout) -> Layout:
        return a.right_inverse()

    def left_inverse(self, a: Layout) -> Layout:
        return a.left_inverse()

    def nullspace(self, a: Layout) -> Layout:
        return a.nullspace()

    def logical_divide(self, whole: Layout, tiler: Any) -> Layout:
        return whole.logical_divide(tiler)

    def zipped_divide(self, whole: Layout, tiler: Any) -> Layout:
        return whole.zipped_divide(tiler)

    def tiled_divide(self, whole: Layout, tiler: Any) -> Layout:
        return whole.tiled_divide(tiler)

    def flat_divide(self, whole: Layout, tiler: Any) -> Layout:
        return whole.flat_divide(tiler)

    def logical_product(self, block: Layout, tiler: Any) -> Layout:
        return block.logical_product(tiler)

    def zipped_product(self, block: Layout, tiler: Any) -> Layout:
        return block.zipped_product(tiler)

    def tiled_product(self, block: Layout, tiler: Any) -> Layout:
        return block.tiled_product(tiler)

    def flat_product(self, block: Layout, tiler: Any) -> Layout:
        return block.flat_product(tiler)

    def blocked_product(self, block: Layout, tiler: Layout) -> Layout:
        return block.blocked_product(tiler)

    def raked_product(self, block: Layout, tiler: Layout) -> Layout:
        return block.raked_product(tiler)

    def with_shape(self, a: Layout, shape: IntTuple) -> Layout:
        return a.with_shape(shape)

    def tile_to_shape(self, block: Layout, shape: IntTuple) -> Layout:
        return block.tile_to_shape(shape)

    def max_common_vector(self, a: Layout, b: Layout) -> int:
        return a.max_common_vector(b)

    def max_common_layout(self, a: Layout, b: Layout) -> Layout:
        return a.max_common_layout(b)

    def upcast(self, a: Layout, n: int) -> Layout:
        return a.upcast(n)

    def downcast(self, a: Layout, n: int) -> Layout:
        return a.downcast(n)

    def recast(self, a: Layout, old_bits: int, new_bits: int) -> Layout:
        return a.recast(old_bits, new_bits)

    def group(self, a: Layout, begin: int, end: int) -> Layout:
        return a.group(begin, end)

    def concat(self, modes: list[Layout]) -> Layout:
        return calculate("make_layout", *modes)  # type: ignore[no-any-return]

    def slice(self, a: Layout, coordinate: OpenCoordinate) -> Layout:
        return calculate("slice", coordinate, a)  # type: ignore[no-any-return]

    def dice(self, a: Layout, coordinate: OpenCoordinate) -> Layout:
        return a.dice(coordinate)

    # The calculator has relations and swizzles, which `Layout` lacks.

    def congruent(self, a: IntTuple, b: IntTuple) -> bool:
        return calculate("congruent", text(a), text(b))  # type: ignore[no-any-return]

    def weakly_congruent(self, a: IntTuple, b: IntTuple) -> bool:
        return calculate("weakly_congruent", text(a), text(b))  # type: ignore[no-any-return]

    def compatible(self, a: IntTuple, b: IntTuple) -> bool:
        return calculate("compatible", text(a), text(b))  # type: ignore[no-any-return]

    def swizzle(self, swizzle: Swizzle, index: int) -> int:
        return calculate("swizzle", *swizzle, index)  # type: ignore[no-any-return]

    def swizzled_at(self, swizzle: Swizzle, offset: int, a: Layout, i: int) -> int:
        return _swizzled(swizzle, offset, a)(i)  # type: ignore[no-any-return]

    def swizzled_composition_at(self, swizzle: Swizzle, offset: int, outer: Layout, inner: Layout, i: int) -> int:
        return _swizzled(swizzle, offset, outer).compose(inner)(i)  # type: ignore[no-any-return]

    def swizzle_recast(self, swizzle: Swizzle, old_bits: int, new_bits: int) -> Swizzle:
        # A swizzled layout is recast together with its swizzle. A swizzle without bits disappears.
        found = str(_swizzled(swizzle, 0, Layout(1 << 20)).recast(old_bits, new_bits))
        fields = re.match(r"Sw<(\d+),(\d+),(\d+)>", found)
        return Swizzle(*map(int, fields.groups())) if fields else Swizzle(0, 0, 0)


def _swizzled(swizzle: Swizzle, offset: int, a: Layout) -> Layout:
    return Layout(f"{swizzle} o {offset} o {a}")


class Pycute(Adapter[Any]):
    """NVIDIA's pycute, a part of the package `nvidia-cutlass`."""

    # pycute checks some operands by `assert`, and trusts all others.
    refusals = (AssertionError,)
    has_negative_strides = True

    def __init__(self) -> None:
        try:
            self._cute: Any = importlib.import_module("pycute.layout")
            self._tuples: Any = importlib.import_module("pycute.int_tuple")
            self._swizzle: Any = importlib.import_module("pycute.swizzle")
        except ImportError as error:
            help = "`pip install --no-deps nvidia-cutlass` has it; the package `pycute` is another one"
            raise ImportError(f"NVIDIA's pycute is not installed: {help}") from error

    @property
    def name(self) -> str:
        return "pycute"

    def build(self, shape: IntTuple, stride: IntTuple) -> Any:
        return self._cute.Layout(shape, stride)

    def shape(self, a: Any) -> Any:
        return a.shape

    def stride(self, a: Any) -> Any:
        return a.stride

    def at(self, a: Any, coordinate: IntTuple) -> Any:
        return a(coordinate)

    def coalesce(self, a: Any, profile: IntTuple | None) -> Any:
        return self._cute.coalesce(a, profile)

    def filter(self, a: Any) -> Any:
        return self._cute.filter(a)

    def composition(self, outer: Any, inner: Any) -> Any:
        return self._cute.composition(outer, _tuple(inner))

    def complement(self, a: Any, cotarget: int) -> Any:
        return self._cute.complement(a, cotarget)

    def right_inverse(self, a: Any) -> Any:
        return self._cute.right_inverse(a)

    def left_inverse(self, a: Any) -> Any:
        return self._cute.left_inverse(a)

    def logical_divide(self, whole: Any, tiler: Any) -> Any:
        return self._cute.logical_divide(whole, _tuple(tiler))

    def zipped_divide(self, whole: Any, tiler: Any) -> Any:
        return self._cute.zipped_divide(whole, _tuple(tiler))

    def tiled_divide(self, whole: Any, tiler: Any) -> Any:
        return self._cute.tiled_divide(whole, _tuple(tiler))

    def logical_product(self, block: Any, tiler: Any) -> Any:
        return self._cute.logical_product(block, _tuple(tiler))

    def zipped_product(self, block: Any, tiler: Any) -> Any:
        return self._cute.zipped_product(block, _tuple(tiler))

    def tiled_product(self, block: Any, tiler: Any) -> Any:
        return self._cute.tiled_product(block, _tuple(tiler))

    def concat(self, modes: list[Any]) -> Any:
        return self._cute.make_layout(modes)

    def slice(self, a: Any, coordinate: OpenCoordinate) -> Any:
        return self._cute.slice_and_offset(coordinate, a)[0]

    def swizzle(self, swizzle: Swizzle, index: int) -> Any:
        return self._swizzle.Swizzle(*swizzle)(index)

    def swizzled_at(self, swizzle: Swizzle, offset: int, a: Any, i: int) -> Any:
        return self._swizzle.ComposedLayout(self._swizzle.Swizzle(*swizzle), offset, a)(i)


def _tuple(tiler: Any) -> Any:
    """Converts to a tuple, which pycute uses as a tiler by mode."""
    return tuple(map(_tuple, tiler)) if isinstance(tiler, list) else tiler
