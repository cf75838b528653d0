"""Blocks copied in front of an op, with loops unrolled whose trips are known, and branches taken that are.

What is known are integer and boolean scalars that follow from constants: counters, what is compared with them, and
flags. They are computed here and become constants where something else takes them. Every other op is copied as it
stands, regions included, in the order in which it would run, so effects keep their order, too.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.element_types import element_type_of
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.lowering.control.known_scalars import Scalar, known_constant, known_result
from hlo_lower.ops.names import CASE, IF, WHILE

Item: TypeAlias = Value | Scalar
"""What a value of a block became: a value in front of the op, or a number that is known."""


class NotFlatError(Exception):
    """A loop whose trips are not known, or more ops than are allowed.

    Attributes:
      why: the reason.
    """

    def __init__(self, why: Cause) -> None:
        """Raised for a reason."""
        super().__init__(why)
        self.why = why


class FlatCopy:
    """Copies of blocks, one after the other.

    Attributes:
      size: ops copied, and trips of loops, so far.
    """

    def __init__(self, most: int, place: Node | None = None, build: Builder | None = None) -> None:
        """Copy in front of a node, or only count.

        Args:
          most: ops and trips beyond which it is given up.
          place, build: the node, and what builds in front of it; None: nothing is built.
        """
        self.size = 0
        self._most = most
        self._place, self._build = place, build
        self._became: dict[Value, Item] = {}
        self._nodes: dict[Block, list[Node]] = {}
        self._reads: dict[Node, tuple[list[Value], int]] = {}

    def loop(self, node: Node) -> list[Item]:
        """What a `stablehlo.while` returns.

        Raises:
          NotFlatError: its condition does not follow from constants in each trip, or it is too large.
        """
        condition, body = node.blocks
        carried = [self._item(value) for value in node.operands]
        while self._holds(node, condition, carried):
            self._count(1)
            self._bind(body.arguments, carried)
            carried = self.block(body)
        return carried

    def block(self, block: Block) -> list[Item]:
        """What a block returns; its arguments, if it has any, are bound before.

        Raises:
          NotFlatError: as `loop`.
        """
        if block not in self._nodes:
            self._nodes[block] = list(block.nodes)
        *nodes, end = self._nodes[block]
        for node in nodes:
            self._run(node)
        return [self._item(value) for value in end.operands]

    def taken(self, node: Node) -> Block | None:
        """The branch that a `stablehlo.case` or `stablehlo.if` takes, if that is known."""
        index, branches = self._item(node.operand(0)), node.blocks
        if not isinstance(index, np.generic):
            return None
        if node.name == IF:
            return branches[0 if index else 1]
        return branches[int(index)] if 0 <= int(index) < len(branches) else branches[-1]

    def value(self, item: Item) -> Value:
        """The value of what is returned; a number becomes a constant."""
        assert self._build is not None
        if isinstance(item, Value):
            return item
        return self._build.constant(int(item), (), element_type_of(item.dtype).name)

    # --- one op ---

    def _run(self, node: Node) -> None:
        known = self._known(node)
        if known is not None:
            self._became[node.result()] = known
        elif node.name == WHILE:
            self._bind(node.results, self.loop(node))
        elif node.name in (CASE, IF) and (branch := self.taken(node)) is not None:
            self._bind(node.results, self.block(branch))
        else:
            self._copy(node)

    def _copy(self, node: Node) -> None:
        reads, size = self._reads_of(node)
        self._count(size)
        results = node.results
        if self._build is None or self._place is None:
            self._bind(results, results)
            return
        replaced = {value: self.value(self._became[value]) for value in reads if value in self._became}
        self._bind(results, self._build.repeat_before(self._place, node, replaced).results)

    def _reads_of(self, node: Node) -> tuple[list[Value], int]:
        """The values that a node and what stands in its regions take, and how many ops these are."""
        if node not in self._reads:
            walked = mlir.walked(node.raw) if node.has_regions else [node.raw]
            self._reads[node] = [Value(raw) for op in walked for raw in op.operands], len(walked)
        return self._reads[node]

    def _count(self, more: int) -> None:
        self.size += more
        if self.size > self._most:
            raise NotFlatError(Code.UNROLLED_TOO_LARGE(self._most))

    # --- what is known ---

    def _holds(self, node: Node, condition: Block, carried: Sequence[Item]) -> bool:
        self._bind(condition.arguments, carried)
        if condition not in self._nodes:
            self._nodes[condition] = list(condition.nodes)
        *nodes, end = self._nodes[condition]
        for inner in nodes:
            known = self._known(inner)
            if known is not None:
                self._became[inner.result()] = known
            else:
                self._bind(inner.results, inner.results)
        answer = self._item(end.operand(0))
        if not isinstance(answer, np.generic):
            raise NotFlatError(Code.TRIPS_NOT_KNOWN())
        return bool(answer)

    def _known(self, node: Node) -> Scalar | None:
        items = [self._became.get(value, value) for value in node.operands]
        return known_result(node, [item if isinstance(item, np.generic) else self._constant(item) for item in items])

    def _constant(self, value: Value) -> Scalar | None:
        """The number that a value from around the op is."""
        node = value.node
        return None if node is None else known_constant(node)

    def _item(self, value: Value) -> Item:
        found = self._became.get(value, value)
        if isinstance(found, Value) and (number := self._constant(found)) is not None:
            return number
        return found

    def _bind(self, values: Sequence[Value], items: Sequence[Item]) -> None:
        self._became.update(zip(values, items, strict=True))
