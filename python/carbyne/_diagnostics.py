"""Errors and warnings of programs."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ._picture import pre


@dataclass(frozen=True)
class Span:
    """A place in a text. Lines and columns count from 1, columns count characters; `start` and `end` are byte offsets."""

    start: int
    end: int
    line: int
    column: int
    #: A description of the place, or its relation to the error.
    label: str


@dataclass(frozen=True)
class Edit:
    """A change of a text that corrects an error: the bytes from `start` to `end` become `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Diagnostic:
    """An error or a warning."""

    #: `error` or `warning`.
    severity: str
    #: A code such as `V0208`; `carbyne explain V0208` describes it.
    code: str
    message: str
    #: The place of the error, followed by related places.
    spans: tuple[Span, ...]
    #: An action that corrects the error.
    help: str | None
    #: The help as edits, to be applied together. Empty if the help is not a change of the text.
    edits: tuple[Edit, ...]
    notes: tuple[str, ...]

    def mend(self, text: str) -> str:
        """The text with all edits applied.

        Raises `ValueError` if the diagnostic has no edits: then only `help` says what to do.
        """
        if not self.edits:
            raise ValueError(f"{self.code} has no edits: {self.help or self.message}")
        out = text.encode()
        for edit in sorted(self.edits, key=lambda e: e.start, reverse=True):
            out = out[: edit.start] + edit.text.encode() + out[edit.end :]
        return out.decode()

    def __str__(self) -> str:
        place = f"line {self.spans[0].line}: " if self.spans else ""
        return f"{place}{self.code}: {self.message}"


class Error(Exception):
    """A text has errors.

    >>> import carbyne
    >>> program = "carbyne 2\\n%A:[64].f61.GL"
    >>> try:
    ...     program = carbyne.Program(program)
    ... except carbyne.Error as error:
    ...     print(error.diagnostics[0])
    ...     print(error.diagnostics[0].help)
    ...     print(error.diagnostics[0].mend(program))
    line 2: P0001: unknown scalar type `f61`
    did you mean `f64`?
    carbyne 2
    %A:[64].f64.GL
    """

    #: All errors, in the order of the text.
    diagnostics: tuple[Diagnostic, ...]

    def __init__(self, rendered: str, documents: str) -> None:
        super().__init__(rendered)
        self.diagnostics = diagnostics(documents)

    def __reduce__(self) -> tuple[object, ...]:
        return rebuilt, (type(self), str(self), self.diagnostics)

    def _repr_html_(self) -> str:
        return pre(str(self))


class ArgumentError(Error, ValueError):
    """An argument of a call does not fit the program. Nothing was launched."""


def rebuilt(kind: type[Error], rendered: str, found: tuple[Diagnostic, ...]) -> Error:
    """An error with this text and these diagnostics."""
    error = kind(rendered, "[]")
    error.diagnostics = found
    return error


def diagnostics(documents: str) -> tuple[Diagnostic, ...]:
    """Parses diagnostics from JSON."""
    return tuple(map(_read, json.loads(documents)))


def _read(d: dict) -> Diagnostic:
    spans = tuple(
        Span(s["byte_start"], s["byte_end"], s["start"]["line"], s["start"]["column"], s["label"])
        for s in d["spans"]
    )
    edits = tuple(Edit(e["byte_start"], e["byte_end"], e["text"]) for e in d["edits"])
    return Diagnostic(
        d["kind"], d["code"], d["message"], spans, d["help"], edits, tuple(d["notes"])
    )
