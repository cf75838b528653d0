"""Slices of slices at starts that are known at run time only, of which XLA makes one: it adds the starts up, unclamped.

    %a = dynamic_slice %x, %s : 16 of 64;   %b = dynamic_slice %a, %i : 4 of 16   ->   %b = dynamic_slice %x, %s + %i

Right only where both starts are inside (jaxlib 0.10.2, on a CPU, at every level). A scatter that was lowered reads what
it writes to; where that is a slice of the module's own, or a gather of one window, the two are one slice then. So where
a rule built one of the two, the starts of both are clamped here: the ops do that themselves, nothing changes.
"""

from collections import Counter
from collections.abc import Iterable
from math import prod

from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops import names
from hlo_lower.ops.axes.parts import clamped_position, clamped_start
from hlo_lower.ops.purity import PLACEMENT_NOTES
from hlo_lower.ops.spec import ELEMENTWISE, LAYOUT

THROUGH = ELEMENTWISE | LAYOUT | {names.SLICE, names.PAD, names.CONCATENATE, names.TUPLE, names.GET_TUPLE_ELEMENT}
"""Ops that XLA may leave out, or exchange with a slice of their result."""


class NestedSlices:
    """The slices of slices that a module has before it is lowered, which are left as they are.

    Args:
      graph: the module.

    Attributes:
      has_parts: whether the module has a slice of which a rule may read a slice.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        moves = _Moves(graph)
        self.has_parts = moves.has_sources
        self._given = Counter(_place(reader) for reader in moves.readers)

    def clamp_built(self) -> None:
        """Clamp the starts of those that have come since, in place."""
        self._graph.forget()
        moves = _Moves(self._graph)
        places = Counter(_place(reader) for reader in moves.readers)
        built = [reader for reader in moves.readers if places[_place(reader)] > self._given[_place(reader)]]
        with mlir.active(self._graph.context):
            for source in moves.sources_of(built):
                _clamp(source, is_read=True)
            for reader in built:
                _clamp(reader, is_read=False)


class _Moves:
    """Where the elements of slices go, through ops, calls and control flow.

    Attributes:
      readers: the slices that they reach, in order.
      has_sources: whether there is a slice of which there may be a slice.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._from: dict[Value, list[Value]] = {}
        slices = graph.slices
        self._sources = {node.result(): node for node in slices if _is_part(node)}
        self.has_sources = bool(self._sources)
        pending = list(self._sources)
        while pending:
            value = pending.pop()
            for use in value.raw.uses:
                for target in self._holders(Node(use.owner.operation), use.operand_number):
                    if target not in self._from and target not in self._sources:
                        pending.append(target)
                    self._from.setdefault(target, []).append(value)
        self.readers = [node for node in slices if node.result() in self._from]

    def sources_of(self, readers: Iterable[Node]) -> list[Node]:
        """The slices that some read from."""
        found, pending = dict[Value, None](), [value for node in readers for value in self._from[node.result()]]
        while pending:
            value = pending.pop()
            if value not in found:
                found[value] = None
                pending += self._from.get(value, ())
        return [self._sources[value] for value in found if value in self._sources]

    def _holders(self, node: Node, number: int) -> Iterable[Value]:
        """The values that hold elements of an operand."""
        if node.name in THROUGH:
            return node.results
        if node.name in (names.DYNAMIC_SLICE, names.GATHER):
            return node.results if number == 0 and _is_one_window(node) else ()
        if node.name == names.CUSTOM_CALL:
            return node.results if mlir.call_target(node.raw) in PLACEMENT_NOTES else ()
        if node.name == names.WHILE:
            return [node.result(number), *(block.argument(number) for block in node.blocks)]
        if node.body_name:
            callee = self._graph.functions.get(node.body_name)
            return [callee.body.argument(number)] if callee is not None and callee.has_body else ()
        return self._holders_of_return(node, number) if node.name in ("func.return", names.RETURN) else ()

    def _holders_of_return(self, node: Node, number: int) -> Iterable[Value]:
        parent = node.parent
        if parent is None:
            return ()
        if parent.name == "func.func":
            name = mlir.symbol_name(parent.raw.attributes["sym_name"])
            return [call.result(number) for call in self._graph.callers if call.body_name == name]
        if parent.name == names.WHILE:  # of its condition nothing but a truth value, which no slice reads
            return [parent.result(number), *(block.argument(number) for block in parent.blocks)]
        return [parent.result(number)] if parent.name in (names.CASE, names.IF) else ()


def may_hold_part(node: Node) -> bool:
    """Whether what a rule built is, or calls a function that may hold, a slice of which there may be a slice."""
    return _is_part(node) if node.name in (names.DYNAMIC_SLICE, names.GATHER) else bool(node.body_name)


def _place(node: Node) -> str:
    """Where a slice comes from: one that a rule built has the place of what it lowered."""
    return str(node.raw.location)


def _is_one_window(node: Node) -> bool:
    """Whether a node reads one window, at one start in each dim."""
    if not all(value.is_static for value in (node.operand(0), node.result())):
        return False
    if node.name == names.DYNAMIC_SLICE:
        return True
    windows = mlir.gather_dimension_numbers(node.raw).offset_dims
    return prod(n for d, n in enumerate(node.result().static_shape) if d not in windows) == 1


def _is_part(node: Node) -> bool:
    """Whether a part of what it reads may be read, of more than one element, along a dim: of that, again, a part."""
    if not _is_one_window(node):
        return False
    sizes = node.integers("slice_sizes")
    return any(1 < size < extent for size, extent in zip(sizes, node.operand(0).static_shape, strict=True))


def _clamp(node: Node, *, is_read: bool) -> None:
    """Clamp the starts; of one that is read all but those along dims of one element, of which there is no part."""
    build, sizes = Builder.before(node), node.integers("slice_sizes")
    lasts = [extent - size for extent, size in zip(node.operand(0).static_shape, sizes, strict=True)]
    if node.name == names.GATHER:
        numbers = mlir.gather_dimension_numbers(node.raw)
        lasts = [lasts[dim] for dim in numbers.start_index_map]
        node.raw.operands[1] = clamped_position(build, node.operand(1), lasts, numbers.index_vector_dim).raw
        return
    for number, (last, size) in enumerate(zip(lasts, sizes, strict=True), 1):
        start = node.operand(number)
        if not _is_within(start, last) and not (is_read and size == 1):
            node.raw.operands[number] = clamped_start(build, start, last).raw


def _is_within(start: Value, last: int) -> bool:
    """Whether a start is seen to be in [0, last]: a constant, or clamped between constants."""
    node = start.node
    bounds = (start, start) if node is None or node.name != names.CLAMP else (node.operand(0), node.operand(2))
    low, high = (value.constant() for value in bounds)
    return low is not None and high is not None and bool(low >= 0) and bool(high <= last)
