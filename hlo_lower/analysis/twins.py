"""Twins: integer tensors that are computed in the same way from the same values, as in each layer of a model.

What is known of one holds of all, so it is found once. An op that reads a state, as `stablehlo.rng` does, or that calls
what does, gives another value each time: it is a twin of itself only.

Only the places of twins differ: the trail of a value lists the locations of the operations that it is computed by, in
an order that is the same for twins, and so translates the evidence of one into that of another.
"""

from collections.abc import Hashable

from hlo_lower import mlir
from hlo_lower.analysis.index_facts import is_tracked
from hlo_lower.graph import Block, Functional, Graph, Node, Value

MAX_STEPS = 100
"""Longest chain of producers that is compared; beyond it, a value is a twin of itself only."""

MAX_TRAIL = 2_000
"""Longest trail; a step of the evidence that lies beyond keeps the place of the twin."""

Trail = tuple[mlir.RawLocation, ...]


class Twins:
    """Numbers for values and regions; twins have the same.

    Raw objects are looked at, not the view's: this is asked of every scatter.
    """

    def __init__(self, graph: Graph) -> None:
        self._is_function = Functional(graph)
        self._numbers: dict[mlir.RawValue, int] = {}
        self._producers: dict[mlir.RawValue, tuple[mlir.RawLocation, tuple[mlir.RawValue, ...]] | None] = {}
        self._classes: dict[Hashable, int] = {}
        self._is_tracked: dict[mlir.RawType, bool] = {}

    def number(self, value: Value) -> int:
        """The number of a value."""
        return self._number(value.raw, 0)

    def _number(self, value: mlir.RawValue, depth: int) -> int:
        known = self._numbers.get(value)
        if known is None:
            key, raw = value, mlir.producer(value)
            operands: tuple[mlir.RawValue, ...] = ()
            # An op with regions may capture anything, and from other types than integers no fact follows.
            if raw is not None and depth <= MAX_STEPS and len(raw.regions) == 0 and self._follows(value, raw):
                operands = tuple(raw.operands)
                numbers = tuple(self._number(operand, depth + 1) for operand in operands)
                key = (raw.name, mlir.result_number(value), numbers, _attributes(raw), value.type)
            known = self._numbers[value] = self._classes.setdefault(key, len(self._classes))
            self._producers[value] = None if raw is None else (raw.location, operands)
        return known

    def _follows(self, value: mlir.RawValue, raw: mlir.RawOperation) -> bool:
        """Whether a value is one that facts are about, and a function of the operands of what computes it."""
        tracked = self._is_tracked.get(value.type)
        if tracked is None:
            tracked = self._is_tracked[value.type] = is_tracked(Value(value))
        return tracked and self._is_function(Node(raw))

    def trail(self, value: Value) -> Trail:
        """The locations of what a value is computed by."""
        found: list[mlir.RawLocation] = []
        seen: set[int] = set()
        pending = [value.raw]
        while pending and len(found) < MAX_TRAIL:
            current = pending.pop()
            number = self._number(current, 0)
            if number not in seen:
                seen.add(number)
                made = self._producers[current]
                if made is not None:
                    found.append(made[0])
                    pending.extend(made[1])
        return tuple(found)

    def region(self, block: Block) -> int:
        """The number of a region of one block."""
        arguments = list(block.raw.arguments)
        names: dict[mlir.RawValue, Hashable] = {argument: ("argument", n) for n, argument in enumerate(arguments)}
        lines: list[Hashable] = [tuple(argument.type for argument in arguments)]
        for n, operation in enumerate(block.raw.operations):
            raw = operation.operation
            if len(raw.regions) or raw.name == "stablehlo.constant" or not self._is_function(Node(raw)):
                lines.append(raw)
                continue
            operands = tuple(names.get(v) or ("captured", v) for v in raw.operands)
            results = list(raw.results)
            names.update({result: ("result", n, k) for k, result in enumerate(results)})
            lines.append((raw.name, operands, _attributes(raw), tuple(result.type for result in results)))
        return self._classes.setdefault(tuple(lines), len(self._classes))


def _attributes(raw: mlir.RawOperation) -> Hashable:
    return tuple(mlir.attributes_of(raw).items())
