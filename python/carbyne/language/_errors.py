"""Converts errors of a kernel's text to errors of its Python source."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Sequence
from dataclasses import replace

from .._diagnostics import Error, rebuilt

#: A file and a line.
Place = tuple[str, int]


def in_python(error: Error, places: Sequence[Place]) -> Error:
    """An error with lines of the Python source, and with helps in Python syntax. `places` has one place per line of the
    text."""
    found, lines = [], []
    for diagnostic in error.diagnostics:
        notes, at = diagnostic.notes, diagnostic.spans[0].line - 1 if diagnostic.spans else len(places)
        if at < len(places):
            file, line = places[at]
            notes += (f"comes from {os.path.basename(file)}:{line}",)
            lines.append(f"{diagnostic.code} comes from {file}:{line}\n    {linecache.getline(file, line).strip()}")
        help = None if diagnostic.help is None else python_help(diagnostic.help)
        found.append(replace(diagnostic, notes=notes, help=help, edits=()))
    return rebuilt(type(error), "\n".join([_with_python_help(str(error)), *dict.fromkeys(lines)]), tuple(found))


def python_help(help: str) -> str:
    """A help with views and operations in Python syntax."""
    return re.sub(r"`([^`\n]+)`", lambda code: f"`{_code(code[1])}`", help)


def _with_python_help(rendered: str) -> str:
    is_help, lines = False, []
    for line in rendered.splitlines():
        is_help = line.startswith("  help:") or is_help and line.startswith("        ")
        lines.append(python_help(line) if is_help else line)
    return "\n".join(lines)


def _code(code: str) -> str:
    # Facts and conditions.
    if fact := re.fullmatch(r"where (.+)", code):
        return f"assume({_code(fact[1])})"
    if condition := re.fullmatch(r"if \((.+)\) \{", code):
        return f"with body.when({_code(condition[1]).replace(' && ', ', ')}):"
    # Methods of the builder correspond to statements and types; the documentation lists them.
    if "->" in code or re.search(r"\w:\[|^[A-Za-z]+ [({%]", code):
        return code
    code = re.sub(r"(\.tile\(\[[^\]]*)\b_\b", r"\1None", code)
    code = re.sub(r"(\.reshape\(\[[^\]]*\]):", r"\1, ", code)
    code = re.sub(r"%(\d+)\b", r"_\1", code)
    code = re.sub(r"[%@#](?=\w)", "", code)
    if "[" in code or code == "_":
        code = re.sub(r"(?<!\w)_(?!\w)", ":", code).replace("..", ":")
    return code.replace(".transpose()", ".T").replace("select(", "where(")
