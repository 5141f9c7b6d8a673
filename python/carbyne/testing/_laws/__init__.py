"""The laws of layout algebra, each a function of a case and plain operands.

Operands are built in the library, its results are read back as shape and stride, and judged by counting
(:meth:`carbyne.testing.Plain.values`), never by an algebra. A law asks of admissible operands an answer, and of every answer that
it is exact. Where libraries differ for good reasons (the nesting of a result, functions beyond their size), it asks nothing.
"""

from . import function, composition, inverse, division, product, modes, widths, relations, swizzles, large  # noqa: F401, I001
from ._registry import RULES, Rule

__all__ = ["RULES", "Rule"]
