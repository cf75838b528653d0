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
from hlo_lower.graph import Block, Functional, Graph, Node, Value

MAX_TRAIL = 2_000
"""Longest trail; a step of the evidence that lies beyond keeps the place of the twin."""

Trail = tuple[mlir.RawLocation, ...]


class Twins:
    """Numbers for values and regions; twins have the same."""

    def __init__(self, graph: Graph) -> None:
        self._is_function = Functional(graph)
        self._numbers: dict[Value, int] = {}
        self._producers: dict[Value, Node | None] = {}
        self._operands: dict[Node, tuple[Value, ...]] = {}
        self._classes: dict[Hashable, int] = {}
        self._trails: dict[Value, Trail] = {}

    def number(self, value: Value, depth: int = 0) -> int:
        """The number of a value."""
        known = self._numbers.get(value)
        if known is None:
            node = self._producers[value] = value.node
            # An op with regions may capture anything, and from other types than integers no fact follows.
            if node is None or depth > FORMS.deepest or node.has_regions or not is_tracked(value):
                key: Hashable = value
            elif not self._is_function(node):
                key = value
            else:
                operands = self._operands[node] = node.operands
                numbers = tuple(self.number(operand, depth + 1) for operand in operands)
                key = (node.name, value.number, numbers, _attributes(node), value.raw.type)
            known = self._classes.setdefault(key, len(self._classes))
            self._numbers[value] = known
        return known

    def trail(self, value: Value) -> Trail:
        """The locations of what a value is computed by."""
        known = self._trails.get(value)
        if known is None:
            known = self._trails[value] = self._trail(value)
        return known

    def _trail(self, value: Value) -> Trail:
        found: list[mlir.RawLocation] = []
        seen: set[int] = set()
        pending = [value]
        while pending and len(found) < MAX_TRAIL:
            current = pending.pop()
            number = self.number(current)
            if number not in seen:
                seen.add(number)
                node = self._producers[current]
                if node is not None:
                    found.append(node.raw.location)
                    pending.extend(self._operands.get(node, ()))
        return tuple(found)

    def region(self, block: Block) -> int:
        """The number of a region of one block."""
        names: dict[Value, Hashable] = {argument: ("argument", n) for n, argument in enumerate(block.arguments)}
        lines: list[Hashable] = [tuple(argument.raw.type for argument in block.arguments)]
        for n, node in enumerate(block.nodes):
            if node.has_regions or node.name == "stablehlo.constant" or not self._is_function(node):
                lines.append(node)
                continue
            operands = tuple(names.get(v) or ("captured", v) for v in node.operands)
            results = node.results
            names.update({result: ("result", n, k) for k, result in enumerate(results)})
            lines.append((node.name, operands, _attributes(node), tuple(result.raw.type for result in results)))
        return self._classes.setdefault(tuple(lines), len(self._classes))


def _attributes(node: Node) -> Hashable:
    return tuple(mlir.attributes_of(node.raw).items())
