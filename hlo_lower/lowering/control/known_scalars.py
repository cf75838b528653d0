"""Integer and boolean scalars that follow from constants: what an op gives of scalars that are known, in wrapping
arithmetic of the op's own type. Whatever else there is, is not known."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hlo_lower.base.element_types import element_type
from hlo_lower.facts.ranges.transfer.booleans import comparison_of
from hlo_lower.ir.view import Node
from hlo_lower.ops import names
from hlo_lower.ops.knowledge import LOGIC, NUMPY

Scalar = np.generic


def known_constant(node: Node) -> Scalar | None:
    """The value of a constant that is an integer or boolean scalar."""
    result = node.result()
    array: Any = node.constant() if result.shape == () and _dtype(result.element_type) is not None else None
    return None if array is None else array[()]


def known_result(node: Node, operands: Sequence[Scalar | None]) -> Scalar | None:
    """The result of an op of one result, if it is a scalar that follows from operands that are known.

    Args:
      node: the op.
      operands: for each operand its value, None where that is not known.
    """
    if node.name == names.CONSTANT:
        return known_constant(node)
    if node.has_regions or len(node.raw.results) != 1 or node.result().shape != ():
        return None
    dtype = _dtype(node.result().element_type)
    if dtype is None:
        return None
    if node.name == names.SELECT and operands[0] is not None:
        return operands[1 if operands[0] else 2]
    if any(operand is None for operand in operands):
        return None
    with np.errstate(all="ignore"):
        found = _computed(node, operands, dtype)
    scalar: Any = None if found is None else np.asarray(found).astype(dtype)[()]
    return scalar


def _computed(node: Node, operands: Sequence[Any], dtype: np.dtype[Any]) -> Any:
    if node.name == names.COMPARE:
        return comparison_of(node)(*operands)
    if node.name == names.CONVERT:
        return operands[0] != 0 if dtype == np.bool_ else operands[0]
    if node.name == names.RESHAPE:
        return operands[0]
    if node.name in NUMPY and (dtype != np.bool_ or node.name in LOGIC):
        return NUMPY[node.name](*operands)
    return None


def _dtype(element: str) -> np.dtype[Any] | None:
    """The NumPy type of integers of 8 bits and more and of booleans."""
    declared = element_type(element)
    return declared.dtype if element == "i1" or (declared.is_integer and declared.bits >= 8) else None
