"""Float tensors that are known, and what comparing them gives: masks that were made of ones and zeros.

`jnp.tril_indices` asks where `tril(ones)` is not 0. Only what moves and chooses known numbers is followed, no float
arithmetic; so the numbers are those of the constants, and comparing them is exact.
"""

from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlo_lower.analysis.evidence import Evidence
from hlo_lower.analysis.frame import Frame
from hlo_lower.analysis.interval import Interval
from hlo_lower.analysis.transfer import comparison_direction
from hlo_lower.causes import Code
from hlo_lower.graph import Block, Node, Value

MAX_ELEMENTS = 1 << 16
"""Largest float tensor that is known element by element."""

MAX_FOLLOWED = 40
"""Longest chain of producers that is followed."""

FLOATS = ("f16", "bf16", "f32", "f64")
"""Element types whose numbers are exact in 64 bits."""

_COMPARED = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


Known: TypeAlias = dict[tuple[Value, Frame | None], NDArray[np.float64] | None]


class Analysis(Protocol):
    """What gives intervals: `IndexAnalysis`."""

    def interval(self, value: Value, frame: Frame | None = None, depth: int = 0) -> Interval: ...

    def callee(self, call: Node) -> Block | None: ...

    def enter(self, call: Node, caller: Frame | None) -> Frame: ...


def compared_floats(analysis: Analysis, node: Node, frame: Frame | None, depth: int) -> Interval | None:
    """The result of a float `compare` whose operands are known, or None.

    NumPy compares as IEEE 754 does, and so does compare_type FLOAT; a total order differs from it on zeros and NaN, so
    it is left.
    """
    kind = node.attribute("compare_type")
    if node.operand(0).element_type not in FLOATS or (kind is not None and "TOTALORDER" in str(kind)):
        return None
    known: Known = {}
    left, right = (known_floats(analysis, operand, frame, depth, MAX_FOLLOWED, known) for operand in node.operands)
    if left is None or right is None:
        return None
    result = _COMPARED[comparison_direction(node)](left, right)
    return Interval.exactly(result.astype(np.int64), "i1", Evidence.at(node, Code.KNOWN_FLOATS()))


def known_floats(
    analysis: Analysis, value: Value, frame: Frame | None, depth: int, left: int, found: Known
) -> NDArray[np.float64] | None:
    """The elements of a float tensor of static shape that is made of constants, as 64-bit floats; or None.

    Args:
      analysis: gives the intervals of predicates.
      value: the tensor.
      frame: the call through which it is looked at.
      depth: how many producers have been followed before.
      left: how many more may be followed.
      found: what has been found on the way, each once: a value may be reached in many ways.
    """
    key = (value, frame)
    if key not in found:
        found[key] = _known_floats(analysis, value, frame, depth, left, found) if left else None
    return found[key]


def _known_floats(
    analysis: Analysis, value: Value, frame: Frame | None, depth: int, left: int, found: Known
) -> NDArray[np.float64] | None:
    if not value.is_static or value.element_type not in FLOATS or np.prod(value.static_shape) > MAX_ELEMENTS:
        return None
    node = value.node
    if node is None:
        block = value.block
        if frame is None or block is None or block.owner.name != "func.func":
            return None
        return known_floats(analysis, frame.call.operand(value.number), frame.caller, depth, left - 1, found)

    def known(number: int) -> NDArray[np.float64] | None:
        return known_floats(analysis, node.operand(number), frame, depth, left - 1, found)

    shape = value.static_shape
    match node.name:
        case "stablehlo.constant":
            values = node.constant()
            return None if values is None else np.asarray(values, np.float64)
        case "func.call":
            body = analysis.callee(node)
            if body is None:
                return None
            entered, returned = analysis.enter(node, frame), body.terminator.operand(value.number)
            return known_floats(analysis, returned, entered, depth, left - 1, found)
        case "stablehlo.broadcast_in_dim":
            operand = known(0)
            if operand is None:
                return None
            dims = node.integers("broadcast_dimensions")
            order = sorted(range(len(dims)), key=lambda i: dims[i])
            sizes = [1] * len(shape)
            for i, dim in enumerate(dims):
                sizes[dim] = operand.shape[i]
            return np.broadcast_to(operand.transpose(order).reshape(sizes), shape)
        case "stablehlo.reshape":
            operand = known(0)
            return None if operand is None else operand.reshape(shape)
        case "stablehlo.select":
            mask = analysis.interval(node.operand(0), frame, depth + 1)
            on_true, on_false = known(1), known(2)
            if not mask.is_constant or on_true is None or on_false is None:
                return None
            return np.where(np.asarray(mask.values, np.bool_), on_true, on_false)
        case _:
            return None
