"""The laws of layout algebra. Each law is a function of a case and plain operands.

Operands are built in the library. Its results are read as shape and stride, and judged by counting
(:meth:`carbyne.testing.Plain.values`), never by an algebra. A law requires an answer for admissible operands, and requires every
answer to be exact. Differences of libraries with good reasons are allowed: the nesting of a result, and functions beyond their size.
"""

from . import function, composition, inverse, division, product, modes, widths, relations, swizzles, large  # noqa: F401, I001
from ._registry import RULES, Rule

__all__ = ["RULES", "Rule"]
