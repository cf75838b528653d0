"""Which arguments of a block its results are made of, through calls and regions."""

from collections.abc import Callable, Iterable

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block, Function, Graph, Node, Value

CALL = "func.call"

Numbers = frozenset[int] | None


class MadeOf:
    """What the results of blocks are made of: numbers of the block's arguments; None where that is not known.

    Attributes:
      graph: the module.
      around: what a value from around a block counts as.
    """

    def __init__(self, graph: Graph, around: Callable[[Value], Numbers]) -> None:
        self._graph, self._around = graph, around
        self._called: dict[str, tuple[Numbers, ...]] = {}

    def by(self, block: Block) -> tuple[Numbers, ...]:
        """For each value that a block returns."""
        made: dict[Value, Numbers] = {value: frozenset({number}) for number, value in enumerate(block.arguments)}

        def of(value: Value) -> Numbers:
            return made[value] if value in made else self._around(value)

        for node in block.nodes:
            if node.name == CALL and (callee := self._graph.functions[node.callee]).has_body:
                given = [of(value) for value in node.operands]
                inner = self._by_function(callee)
                found = [None if read is None else _union(given[number] for number in read) for read in inner]
                made.update(zip(node.results, found, strict=True))
            else:
                made.update(dict.fromkeys(node.results, _union(of(value) for value in all_read(node))))
        return tuple(of(value) for value in block.terminator.operands)

    def _by_function(self, function: Function) -> tuple[Numbers, ...]:
        if function.name not in self._called:
            self._called[function.name] = self.by(function.body)
        return self._called[function.name]


def all_read(node: Node) -> list[Value]:
    """What a node reads, from around its regions too."""
    if not node.has_regions:
        return list(node.operands)
    walked = [Node(raw) for raw in mlir.walked(node.raw)]
    own = {value for inner in walked for value in inner.results}
    own |= {argument for inner in walked if inner.has_regions for block in inner.blocks for argument in block.arguments}
    return [value for inner in walked for value in inner.operands if value not in own]


def _union(parts: Iterable[Numbers]) -> Numbers:
    joined = frozenset[int]()
    for part in parts:
        if part is None:
            return None
        joined |= part
    return joined
