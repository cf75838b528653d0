"""Float tensors that are known, and what comparing them gives: masks that were made of ones and zeros.

`jnp.tril_indices` asks where `tril(ones)` is not 0. Only what moves and chooses known numbers is followed, no float
arithmetic; so the numbers are those of the constants, and comparing them is exact.
"""

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.causes import Code
from hlo_lower.base.element_types import WIDE_FLOATS
from hlo_lower.facts.ranges.interval import Interval
from hlo_lower.facts.ranges.transfer import comparison_of, spread
from hlo_lower.facts.values.budget import FOLLOWED
from hlo_lower.facts.values.evidence import Evidence
from hlo_lower.facts.values.provider import Ranges
from hlo_lower.facts.values.site import Site
from hlo_lower.facts.values.sources import Same
from hlo_lower.ir.view import Node
from hlo_lower.ops import names

MAX_ELEMENTS = 1 << 16
"""Largest float tensor that is known element by element."""

Known: TypeAlias = dict[Site, NDArray[np.float64] | None]


def compared_floats(ranges: Ranges, node: Node, site: Site) -> Interval | None:
    """The result of a float `compare` whose operands are known, or None.

    NumPy compares as IEEE 754 does, and so does compare_type FLOAT; a total order differs from it on zeros and NaN, so
    it is left.
    """
    kind = node.attribute("compare_type")
    if node.operand(0).element_type not in WIDE_FLOATS or (kind is not None and "TOTALORDER" in str(kind)):
        return None
    known: Known = {}
    left, right = (known_floats(ranges, site.to(operand), FOLLOWED, known) for operand in node.operands)
    if left is None or right is None:
        return None
    result = comparison_of(node)(left, right)
    return Interval.exactly(result.astype(np.int64), "i1", Evidence.at(node, Code.KNOWN_FLOATS()))


def known_floats(ranges: Ranges, site: Site, left: int, found: Known) -> NDArray[np.float64] | None:
    """The elements of a float tensor of static shape that is made of constants, as 64-bit floats; or None.

    Args:
      ranges: gives the intervals of predicates.
      site: the tensor.
      left: how many more producers may be followed.
      found: what has been found on the way, each once: a value may be reached in many ways.
    """
    if site not in found:
        found[site] = _known_floats(ranges, site, left, found) if left else None
    return found[site]


def _known_floats(ranges: Ranges, site: Site, left: int, found: Known) -> NDArray[np.float64] | None:
    value = site.value
    if not value.is_static or value.element_type not in WIDE_FLOATS or np.prod(value.static_shape) > MAX_ELEMENTS:
        return None
    node = ranges.sources.of(site)
    if isinstance(node, Same):
        return known_floats(ranges, node.site, left - 1, found)
    if not isinstance(node, Node):
        return None

    def of_operand(number: int) -> NDArray[np.float64] | None:
        return known_floats(ranges, site.to(node.operand(number)), left - 1, found)

    shape = value.static_shape
    match node.name:
        case names.CONSTANT:
            values = node.constant()
            return None if values is None else np.asarray(values, np.float64)
        case names.BROADCAST_IN_DIM:
            operand = of_operand(0)
            return None if operand is None else np.broadcast_to(spread(node, operand), shape)
        case names.RESHAPE:
            operand = of_operand(0)
            return None if operand is None else operand.reshape(shape)
        case names.SELECT:
            mask = ranges.of(site.to(node.operand(0)))
            on_true, on_false = of_operand(1), of_operand(2)
            if not mask.is_constant or on_true is None or on_false is None:
                return None
            return np.where(np.asarray(mask.values, np.bool_), on_true, on_false)
        case _:
            return None
