"""A block as the tiler reads it, of the entry point or of a loop: its nodes in order, who makes and uses a value."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import prod

import numpy as np

from hlo_lower.ir import mlir
from hlo_lower.ir.regions import used_by
from hlo_lower.ir.view import Block, Graph, Node, Value
from hlo_lower.ops.axes.cut import Boundary, OpAxes, SubsetRules
from hlo_lower.ops.axes.op_axes import ELEMENTWISE
from hlo_lower.ops.names import BROADCAST_IN_DIM, CONSTANT, IOTA, REDUCE, RESHAPE, WHILE
from hlo_lower.ops.purity import Functional
from hlo_lower.ops.spec import CONSTANTS, CONTROL

FUSED = ELEMENTWISE | CONSTANTS | {BROADCAST_IN_DIM, RESHAPE}
"""Ops that XLA computes where they are used, if one such op or a reduction uses them."""

WITH_BODIES = CONTROL
"""Ops whose regions are blocks of a program of their own."""

ENTERED = "loops are made within its bodies; what it stacks or returns stays whole"
"""Why such an op is not cut."""

MUCH = 8
"""How much larger a broadcast is than what it is of to be cheap."""


def size_of(value: Value) -> int:
    """Bytes of a value; 0 of what is not a tensor of static shape."""
    tensor = value.tensor_type
    if tensor is None or not tensor.is_static:
        return 0
    dtype = mlir.dtype_of(tensor.element_name)
    width = 4 if dtype is None else np.dtype(dtype).itemsize
    return prod(value.static_shape) * width


def type_of(value: Value) -> str:
    """The type of a value as a report shows it ("2048x512xf32")."""
    return str(value.raw.type).removeprefix("tensor<").removesuffix(">")


def is_of_integers(value: Value) -> bool:
    """Whether a value has integers or booleans."""
    dtype = mlir.dtype_of(value.element_type)
    return dtype is not None and dtype.kind in "iub"


def blocks_of(block: Block) -> Iterator[Block]:
    """A block, and those of the loops and branches in it."""
    yield block
    for node in block.nodes:
        for inner in node.blocks if node.name in WITH_BODIES else ():
            yield from blocks_of(inner)


def cheap_values(nodes: Sequence[Node]) -> set[Value]:
    """Values that cost nothing to make: iotas, constants of one value, broadcasts of what is much smaller, scalars
    aside what they are made of, and what is computed elementwise of nothing but such: masks."""
    found: set[Value] = set()
    for node in nodes:
        if len(node.results) != 1:
            continue
        if node.name == CONSTANT:
            is_cheap = mlir.is_splat(node.raw)
        elif node.name == BROADCAST_IN_DIM:
            small = size_of(node.operand(0)) * MUCH <= size_of(node.result())
            is_cheap = small or node.operand(0) in found
        else:
            of_cheap = all(value in found for value in node.operands)
            is_cheap = node.name == IOTA or (node.name in ELEMENTWISE and of_cheap)
        if is_cheap:
            found.add(node.result())
    return found


class _Sizes(dict[Value, int]):
    """Bytes of values; those from around the block are looked at when they are asked for."""

    def __missing__(self, value: Value) -> int:
        self[value] = size_of(value)
        return self[value]


class Dataflow:
    """A block, read once; it is not to be changed while this is used.

    Args:
      graph: the module.
      rules: the subset rules.
      block: by default the body of the entry point; or that of a loop. What it takes from around it is like arguments.

    Attributes:
      nodes: its nodes in order, the terminator left out.
      terminator: what returns.
      rules: the subset rules.
      is_function: whether a node is a function of its operands; others keep their order and are computed once.
    """

    def __init__(self, graph: Graph, rules: SubsetRules, block: Block | None = None) -> None:
        self.graph, self.rules = graph, rules
        self.block: Block = block or graph.main.body
        *self.nodes, self.terminator = self.block.nodes
        self.place = {node: number for number, node in enumerate(self.nodes)}
        self.place[self.terminator] = len(self.nodes)
        self.maker = {value: node for node in self.nodes for value in node.results}
        self.size = _Sizes({value: size_of(value) for value in (*self.block.arguments, *self.maker)})
        self.is_function = Functional(graph)
        self._axes: dict[Node, OpAxes | Boundary] = {}
        self._inner: dict[Node, tuple[Dataflow, ...]] = {}

    @cached_property
    def used_values(self) -> dict[Node, list[Value]]:
        """The values that each node uses, in its regions too."""
        return {node: used_by(node) for node in (*self.nodes, self.terminator)}

    @cached_property
    def users(self) -> dict[Value, list[Node]]:
        """The nodes that take a value, each once, the terminator too."""
        found: dict[Value, list[Node]] = {value: [] for value in self.size}
        for node, values in self.used_values.items():
            for value in dict.fromkeys(values):
                found.setdefault(value, []).append(node)
        return found

    def inner(self, node: Node) -> "tuple[Dataflow, ...]":
        """The bodies of a loop and the branches of a node, read; none of another op."""
        if node.name not in WITH_BODIES:
            return ()
        if node not in self._inner:
            blocks = node.blocks[1:] if node.name == WHILE else node.blocks
            self._inner[node] = tuple(Dataflow(self.graph, self.rules, block) for block in blocks)
        return self._inner[node]

    @cached_property
    def cheap(self) -> set[Value]:
        """See `cheap_values`."""
        return cheap_values(self.nodes)

    @cached_property
    def effect_before(self) -> dict[Node, Node]:
        """For each node that is not known to be a function of its operands the one before it: they keep their order."""
        ordered = [node for node in self.nodes if not self.is_function(node)]
        return dict(zip(ordered[1:], ordered, strict=False))

    @cached_property
    def outputs(self) -> frozenset[Value]:
        """The values that the block returns."""
        return frozenset(self.terminator.operands)

    def axes(self, node: Node) -> OpAxes | Boundary:
        """The axes of a node, by its subset rule; none of one that may do more than compute."""
        if node not in self._axes:
            found = Boundary(ENTERED) if node.name in WITH_BODIES else self.rules.of(node)
            if isinstance(found, OpAxes) and not self.is_function(node):
                found = Boundary(f"{node.name} may have side effects")
            self._axes[node] = found
        return self._axes[node]

    def is_fused(self, value: Value) -> bool:
        """Whether XLA most likely never stores a value: one elementwise op or reduction uses what another makes."""
        node, users = self.maker.get(value), self.users[value]
        if node is None or node.name not in FUSED or len(users) != 1:
            return False
        return users[0].name in FUSED or users[0].name == REDUCE

    def blocks(self) -> "Iterator[Dataflow]":
        """This block and those of the loops and branches in it, read."""
        yield self
        for node in self.nodes:
            for inner in self.inner(node):
                yield from inner.blocks()
