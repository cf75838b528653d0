"""What the integers of a loop's body are in each of its iterations, where they come of its counter and constants alone.

They are computed as they stand, for all iterations at once, so that nothing is assumed of how a place was written:
tiles by a multiplication, the last one moved back by a minimum, clamps, JAX's negative places. Numbers that would not
fit their type are not known, and neither are negative ones that an op reads without a sign.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node, Value

Numbers: TypeAlias = NDArray[np.int64]

LONGEST, DEEPEST = 1 << 22, 64
"""Iterations, and operations one upon the other, beyond which nothing is known."""

_CASTS = frozenset({"arith.index_cast", "arith.extsi", "arith.trunci", "tensor.from_elements", "tensor.extract"})
_UNSIGNED_CASTS = frozenset({"arith.index_castui", "arith.extui"})

_OPS: Mapping[str, Callable[[Any, Any], Any]] = {
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": np.maximum,
    "arith.minui": np.minimum,
}
_SIGNED = frozenset({*_OPS, "arith.cmpi", "arith.extsi", "arith.index_cast"})
_UNSIGNED = frozenset({"arith.maxui", "arith.minui"})

_COMPARED = (np.equal, np.not_equal, *(np.less, np.less_equal, np.greater, np.greater_equal) * 2)
"""By the number of `arith.cmpi`'s predicate; those from 6 on read no sign."""

ELEMENTWISE = frozenset({"linalg.map", "linalg.generic"})


@dataclass
class CounterValues:
    """The integers of a loop's body, one for each iteration.

    Attributes:
      counter: the loop's counter, an index.
      numbers: what it is, iteration by iteration.
    """

    counter: Value
    numbers: Numbers
    _known: dict[Value, Numbers | None] = field(default_factory=dict[Value, "Numbers | None"])

    @classmethod
    def of_range(cls, counter: Value, numbers: range) -> "CounterValues | None":
        """Those of a loop over these numbers; None where there are too many, or none."""
        if not 0 < len(numbers) <= LONGEST:
            return None
        return cls(counter, np.arange(numbers.start, numbers.stop, numbers.step, dtype=np.int64))

    def of(self, value: Value, depth: int = 0) -> Numbers | None:
        """An index, an integer, or the one element of a tensor without dims; None where it is not known."""
        if value == self.counter:
            return self.numbers
        if value not in self._known:
            found = self._found(value, depth) if depth < DEEPEST else None
            self._known[value] = found if found is None or _fits(found, value) else None
        return self._known[value]

    def _found(self, value: Value, depth: int) -> Numbers | None:
        node = value.node
        if node is None:
            block = value.block
            owner = None if block is None else block.owner
            if owner is None or owner.name not in ELEMENTWISE or not all(_is_scalar(v) for v in owner.operands):
                return None
            return self.of(owner.operand(value.number), depth + 1)
        if node.name in ELEMENTWISE and _is_scalar(value):
            return self.of(node.blocks[0].terminator.operand(value.number), depth + 1)
        if node.name == "arith.constant":
            return _constant(node, len(self.numbers))
        if node.name in _SIGNED and any(_range(operand) == (0, 1) for operand in node.operands):
            return None  # as a number with a sign true is -1
        if node.name in _CASTS or node.name in _UNSIGNED_CASTS:
            [*operands] = node.operands
            found = self.of(operands[0], depth + 1) if len(operands) == 1 and _is_scalar(operands[0]) else None
            return found if node.name in _CASTS or _is_positive(found) else None
        if node.name in _OPS or node.name in ("arith.cmpi", "arith.select"):
            return _computed(node, [self.of(operand, depth + 1) for operand in node.operands])
        return None


def _computed(node: Node, operands: list[Numbers | None]) -> Numbers | None:
    """An op on numbers of which none is unknown, and none wraps around in 64 bits."""
    given = [numbers for numbers in operands if numbers is not None]
    if len(given) < len(operands):
        return None
    if node.name == "arith.select":
        return np.where(given[0] != 0, given[1], given[2])
    predicate = node.integer("predicate") if node.name == "arith.cmpi" else 0
    if (node.name in _UNSIGNED or predicate >= 6) and not all(_is_positive(numbers) for numbers in given):
        return None
    if node.name == "arith.cmpi":
        return _COMPARED[predicate](*given).astype(np.int64)
    most = [max(abs(int(numbers.min())), abs(int(numbers.max())), 1) for numbers in given]
    return _OPS[node.name](*given) if most[0] * most[1] < 1 << 62 and sum(most) < 1 << 62 else None


def _constant(node: Node, count: int) -> Numbers | None:
    attribute = node.attribute("value")
    value = node.result()
    if attribute is None or not _is_scalar(value) or _range(value) is None:
        return None
    number = mlir.dense_integers(attribute)[0] if value.is_tensor else mlir.integer_of(attribute)
    return np.broadcast_to(np.int64(number), (count,))


def _is_positive(numbers: Numbers | None) -> bool:
    return numbers is not None and int(numbers.min()) >= 0


def _is_scalar(value: Value) -> bool:
    """Whether a value is no tensor, or one without dims."""
    return not value.is_tensor or value.shape == ()


def _range(value: Value) -> tuple[int, int] | None:
    """The range of an index or of an integer without a sign; None of anything else."""
    declared = element_type(value.element_type if value.is_tensor else str(value.raw.type))
    return None if declared.is_unsigned else declared.integer_range


def _fits(numbers: Numbers, value: Value) -> bool:
    """Whether numbers are such ones of a value's type: an i1 is 0 or 1, all others have a sign."""
    held = _range(value)
    return held is not None and held[0] <= int(numbers.min()) and int(numbers.max()) <= held[1]
