"""Pictures and texts for notebooks."""

from __future__ import annotations

import html
import os
import re
from pathlib import Path


class Picture(str):
    """A picture as SVG text, which notebooks display.

    >>> import carbyne
    >>> picture = carbyne.Program("carbyne 2\\n%A:[4,8].f16.GL").draw("%A")
    >>> picture[:4]
    '<svg'
    >>> picture
    <Picture of 336 x 190>
    """

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture to a file."""
        Path(path).write_text(self, encoding="utf-8")

    def __repr__(self) -> str:
        size = re.search(r'width="([^"]*)" height="([^"]*)"', self)
        return f"<Picture of {size[1]} x {size[2]}>" if size else "<Picture>"

    def _repr_svg_(self) -> str:
        return str(self)


def pre(text: str) -> str:
    """HTML that displays a text."""
    return f"<pre>{html.escape(text)}</pre>"
