"""Twins: integer tensors that are computed in the same way from the same values, as in each layer of a model.

What is known of one holds of all, so it is found once. An op that reads a state, as `stablehlo.rng` does, or that calls
what does, gives another value each time: it is a twin of itself only.

Only the places of twins differ: the trail of a value lists the locations of the operations that it is computed by, in
an order that is the same for twins, and so translates the evidence of one into that of another.
"""

from collections.abc import Hashable
from typing import NamedTuple

from hlo_lower.facts.ranges.index_facts import is_tracked
from hlo_lower.facts.values.budget import FORMS
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.ops.names import CONSTANT
from hlo_lower.ops.purity import FUNCTIONS, Functional

MAX_TRAIL = 2_000
"""Longest trail; a step of the evidence that lies beyond keeps the place of the twin."""

Trail = tuple[mlir.RawLocation, ...]


class Computed(NamedTuple):
    """How a value is computed; it holds nothing of the module, so the module may change.

    Attributes:
      number: the same for twins.
      location: of the operation whose result it is; None for a block's argument.
      operands: what that takes, as far as it is followed.
    """

    number: int
    location: mlir.RawLocation | None
    operands: tuple["Computed", ...]

    def trail(self) -> Trail:
        """The locations of what the value is computed by."""
        found: list[mlir.RawLocation] = []
        seen: set[int] = set()
        pending: list[Computed] = [self]
        while pending and len(found) < MAX_TRAIL:
            current = pending.pop()
            if current.number not in seen:
                seen.add(current.number)
                if current.location is not None:
                    found.append(current.location)
                    pending.extend(current.operands)
        return tuple(found)


class ValueNumbering:
    """Numbers for values and regions; twins have the same.

    Raw objects are looked at, not the view's: this is asked of every scatter.
    """

    def __init__(self, graph: Graph) -> None:
        self._is_function = Functional(graph)
        self._known: dict[mlir.RawValue, Computed] = {}
        self._classes: dict[Hashable, int] = {}
        self._is_followed: dict[mlir.RawType, bool] = {}

    def computation(self, value: Value) -> Computed:
        """How a value is computed."""
        return self._computation(value.raw, 0)

    def _computation(self, value: mlir.RawValue, depth: int) -> Computed:
        known = self._known.get(value)
        if known is not None:
            return known
        key, location, operands = value, None, ()
        raw = mlir.producer(value)
        if raw is not None:
            location, name, own_type = raw.location, raw.name, value.type
            is_followed = self._is_followed.get(own_type)
            if is_followed is None:
                is_followed = self._is_followed[own_type] = is_tracked(Value(value))
            if is_followed and name == CONSTANT:
                key = (name, raw.attributes["value"])
            # An op with regions may capture anything, and from other types than integers no fact follows.
            elif is_followed and depth <= FORMS.deepest and not len(raw.regions) and self._is_function_of(name, raw):
                operands = tuple([self._computation(operand, depth + 1) for operand in raw.operands])
                numbers = tuple([operand.number for operand in operands])
                key = (name, mlir.result_number(value), numbers, mlir.attribute_key(raw), own_type)
        known = self._known[value] = Computed(self._classes.setdefault(key, len(self._classes)), location, operands)
        return known

    def _is_function_of(self, name: str, raw: mlir.RawOperation) -> bool:
        return name in FUNCTIONS or self._is_function(Node(raw))

    def region(self, block: Block) -> int:
        """The number of a region of one block."""
        arguments = list(block.raw.arguments)
        names: dict[mlir.RawValue, Hashable] = {argument: ("argument", n) for n, argument in enumerate(arguments)}
        lines: list[Hashable] = [tuple(argument.type for argument in arguments)]
        for n, operation in enumerate(block.raw.operations):
            raw = operation.operation
            name = raw.name
            if name == CONSTANT or len(raw.regions) or not self._is_function_of(name, raw):
                lines.append(raw)
                continue
            operands = tuple(names.get(v) or ("captured", v) for v in raw.operands)
            results = list(raw.results)
            names.update({result: ("result", n, k) for k, result in enumerate(results)})
            lines.append((name, operands, mlir.attribute_key(raw), tuple(result.type for result in results)))
        return self._classes.setdefault(tuple(lines), len(self._classes))
