"""Explanations of the choice of instructions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from ._picture import pre


class Explanation(Mapping[str, Any]):
    """The result of :meth:`Program.explain`: a mapping of plain data. `str` returns a text for people.

    `leaves` lists the statements that one instruction implements, with the `considered` instructions. An instruction matches, or has a `mismatch` with a
    `help`. `choices` lists the choices of the search with their costs, `rankings` the strategies of kernels, and `refused` the errors of a program that
    cannot be decomposed. See `docs/explain.md`.

    >>> import carbyne
    >>> program = carbyne.Program("carbyne 2\\n%A:[32,8].f16.GL\\n%B:[32,8].f16.GL\\nMove @copy (%A) -> (%B)")
    >>> found = program.explain("sm_80", why="ld.global.b128")
    >>> found["leaves"][0]["considered"][0]["atom"]
    'ld.global.b128'
    >>> "uses ld.global.b128" in str(found)
    True
    """

    def __init__(self, document: str) -> None:
        self._data: dict[str, Any] = json.loads(document)
        self._text: str = self._data.pop("rendered").rstrip()

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Explanation of {self['file']} for {self['arch']}>"

    def _repr_html_(self) -> str:
        return pre(self._text)
