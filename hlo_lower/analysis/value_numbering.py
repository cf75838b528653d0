"""Twins: integer tensors that are computed in the same way from the same values, as in each layer of a model.

What is known of one holds of all, so it is found once. An op that reads a state, as `stablehlo.rng` does, or that calls
what does, gives another value each time: it is a twin of itself only.

Only the places of twins differ: the trail of a value lists the locations of the operations that it is computed by, in
an order that is the same for twins, and so translates the evidence of one into that of another.
"""

from collections.abc import Hashable

from hlo_lower import mlir
from hlo_lower.analysis.budget import FORMS
from hlo_lower.analysis.index_facts import is_tracked
from hlo_lower.graph import FUNCTIONS, Block, Functional, Graph, Node, Value

MAX_TRAIL = 2_000
"""Longest trail; a step of the evidence that lies beyond keeps the place of the twin."""

Trail = tuple[mlir.RawLocation, ...]


class ValueNumbering:
    """Numbers for values and regions; twins have the same.

    Raw objects are looked at, not the view's: this is asked of every scatter.
    """

    def __init__(self, graph: Graph) -> None:
        self._is_function = Functional(graph)
        self._numbers: dict[mlir.RawValue, int] = {}
        self._made: dict[mlir.RawValue, tuple[mlir.RawOperation, tuple[mlir.RawValue, ...]]] = {}
        self._classes: dict[Hashable, int] = {}
        self._is_tracked: dict[mlir.RawType, bool] = {}

    def number(self, value: Value) -> int:
        """The number of a value."""
        return self._number(value.raw, 0)

    def _number(self, value: mlir.RawValue, depth: int) -> int:
        known = self._numbers.get(value)
        if known is not None:
            return known
        key, raw, operands = value, mlir.producer(value), ()
        # An op with regions may capture anything, and from other types than integers no fact follows.
        if raw is not None and depth <= FORMS.deepest:
            name, own_type = raw.name, value.type
            if self._is_followed(own_type, value) and not len(raw.regions) and self._is_function_of(name, raw):
                operands = tuple(raw.operands)
                numbers = tuple([self._number(operand, depth + 1) for operand in operands])
                key = (name, mlir.result_number(value), numbers, mlir.attribute_key(raw), own_type)
        known = self._numbers[value] = self._classes.setdefault(key, len(self._classes))
        if raw is not None:
            self._made[value] = raw, operands
        return known

    def _is_followed(self, own_type: mlir.RawType, value: mlir.RawValue) -> bool:
        """Whether a value is of a type that facts are about."""
        found = self._is_tracked.get(own_type)
        if found is None:
            found = self._is_tracked[own_type] = is_tracked(Value(value))
        return found

    def _is_function_of(self, name: str, raw: mlir.RawOperation) -> bool:
        return name in FUNCTIONS or self._is_function(Node(raw))

    def trail(self, value: Value) -> Trail:
        """The locations of what a value is computed by; before anything of that is changed."""
        self._number(value.raw, 0)
        found: list[mlir.RawLocation] = []
        seen: set[int] = set()
        pending = [value.raw]
        while pending and len(found) < MAX_TRAIL:
            current = pending.pop()
            number = self._numbers[current]
            if number not in seen:
                seen.add(number)
                made = self._made.get(current)
                if made is not None:
                    found.append(made[0].location)
                    pending.extend(made[1])
        return tuple(found)

    def region(self, block: Block) -> int:
        """The number of a region of one block."""
        arguments = list(block.raw.arguments)
        names: dict[mlir.RawValue, Hashable] = {argument: ("argument", n) for n, argument in enumerate(arguments)}
        lines: list[Hashable] = [tuple(argument.type for argument in arguments)]
        for n, operation in enumerate(block.raw.operations):
            raw = operation.operation
            name = raw.name
            if name == "stablehlo.constant" or len(raw.regions) or not self._is_function_of(name, raw):
                lines.append(raw)
                continue
            operands = tuple(names.get(v) or ("captured", v) for v in raw.operands)
            results = list(raw.results)
            names.update({result: ("result", n, k) for k, result in enumerate(results)})
            lines.append((name, operands, mlir.attribute_key(raw), tuple(result.type for result in results)))
        return self._classes.setdefault(tuple(lines), len(self._classes))
