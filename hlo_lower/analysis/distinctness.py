"""Whether elements of an index tensor differ from one position to the next, and whether they go up.

The walk goes from an element at a symbolic place to what holds it, as `affine` does: ops that move elements change the
place, calls are looked through with their own arguments. Where the element is a linear form, `along.of_form` tells; for
what makes distinct elements otherwise there is a rule each: in `sources` (sort, top_k, gather, scatter, running sums)
in `mapped` (arithmetic), in `chosen` (choices, remainders). What no rule speaks of is unknown. The flags of an op are
claims, and are not looked at.
"""

from collections.abc import Mapping
from math import prod

import numpy as np

from hlo_lower.analysis.affine import AffineAnalysis
from hlo_lower.analysis.along import (
    ONE,
    UNIFORM,
    UNKNOWN,
    Along,
    best,
    composed,
    count_of,
    of_bounds,
    of_form,
    one_of,
)
from hlo_lower.analysis.asked import Axes, Rule
from hlo_lower.analysis.chosen import CHOSEN
from hlo_lower.analysis.evidence import Evidence
from hlo_lower.analysis.frame import Frame
from hlo_lower.analysis.identity import is_identity
from hlo_lower.analysis.index_facts import IndexAnalysis, is_tracked
from hlo_lower.analysis.interval import Bounds
from hlo_lower.analysis.linear import Linear, Position, positions
from hlo_lower.analysis.mapped import MAPPED
from hlo_lower.analysis.places import MOVING, Place, after_start, moved
from hlo_lower.analysis.sources import SOURCES
from hlo_lower.causes import Code
from hlo_lower.graph import Graph, Node, Value

MAX_STEPS = 60
"""Longest chain of producers that is followed."""

MAX_WORK = 600
"""Most elements at places that one analysis looks at."""

MAX_CALLS = 8
"""Most calls of a function whose argument is looked at from inside."""

MAX_POSITIONS = 1 << 20
"""Most positions that are compared one by one: 1 Mi."""

FIRST_FRESH = 1 << 20
"""Numbers of positions that stand for none of the caller's: above every dim."""


class Distinctness:
    """What is known of elements along positions, for the integer tensors of one graph."""

    def __init__(self, graph: Graph, intervals: IndexAnalysis, affine: AffineAnalysis) -> None:
        self.graph = graph
        self.intervals = intervals
        self.affine = affine
        self._known: dict[tuple[Value, Place, Axes, Frame | None], Along] = {}
        self._work = 0
        self._counted_positions = 0
        self._fresh = FIRST_FRESH

    def along(self, value: Value, place: Place, axes: Axes, frame: Frame | None = None, depth: int = 0) -> Along:
        """What is known of an element of an integer tensor of static shape, while positions vary.

        Args:
          value: the tensor.
          place: a form for each of its dims.
          axes: the positions that vary, the slowest first; the others, and whatever else is in the place, stay.
          frame: the call through which the tensor's function is looked at; None stands for every call.
          depth: how many producers have been followed so far.
        """
        axes = tuple(axis for axis in axes if axis.size != 1)
        if not axes:
            return ONE
        if not is_tracked(value) or 0 in value.static_shape or count_of(axes) == 0:
            return UNKNOWN
        key = (value, place, axes, frame)
        known = self._known.get(key)
        if known is not None:
            return known
        self._work += 1
        if depth > MAX_STEPS or self._work > MAX_WORK:
            return UNKNOWN
        self._known[key] = UNKNOWN  # for what depends on itself
        found = self._known[key] = self._found(value, place, axes, frame, depth)
        return found

    def fresh(self, size: int) -> Position:
        """A position of its own, of this size."""
        self._fresh += 1
        return Position(self._fresh, size)

    def moves_with(self, value: Value, place: Place, axes: Axes, frame: Frame | None) -> Axes:
        """The axes that an element depends on, as far as is known; on no other one does it depend."""
        dims = positions([self.affine.element(value, place, frame)])
        return tuple(axis for axis in axes if axis.dim in dims)

    def hull(self, value: Value, frame: Frame | None) -> tuple[int, int]:
        """The least and the greatest value of any element of a tensor."""
        return self.intervals.interval(value, frame).hull()

    def whole_dim(
        self, value: Value, place: Place, dim: int, axes: Axes, frame: Frame | None, depth: int
    ) -> tuple[Along, Position] | None:
        """What is known of a tensor along one of its dims, at a place that moves along that one alone."""
        others = [c for d, c in enumerate(place) if d != dim]
        if positions(others) & {axis.dim for axis in axes}:
            return None
        row = self.fresh(value.static_shape[dim])
        at = (*place[:dim], Linear(0, {row: 1}) if row.size > 1 else Linear(0), *place[dim + 1 :])
        return self.along(value, at, (row,), frame, depth + 1), row

    def picked(self, whole: Along, coordinate: Linear, size: int, axes: Axes) -> Along:
        """What is known at a coordinate of a dim of this size, of which `whole` is known."""
        at = of_form(coordinate, axes, is_exact=True)
        return UNKNOWN if at is None else composed(whole, at, size, count_of(axes))

    # --- the walk ---

    def _found(self, value: Value, place: Place, axes: Axes, frame: Frame | None, depth: int) -> Along:
        counted = self._counted(value, place, axes, frame)
        form = self.affine.element(value, place, frame)
        if not positions([form]) & {axis.dim for axis in axes}:
            return best(UNIFORM, counted)
        told = of_form(form, axes, is_exact=self.affine.is_exact(form, value))
        if told is not None and told.gap and (told.order or told.covers):
            return best(told, counted)
        followed = self._followed(value, place, axes, frame, depth)
        return best(best(counted, told or UNKNOWN), followed)

    def _counted(self, value: Value, place: Place, axes: Axes, frame: Frame | None) -> Along:
        """What the bounds of single elements tell, for constants and for what is known element by element.

        The place is evaluated at every position; a place that is not made of positions alone is left.
        """
        told = self.intervals.interval(value, frame)
        if told.lo.size == 1 and told.hi.size == 1:
            return UNKNOWN
        found = {s.dim: s for c in place for s in c.terms if isinstance(s, Position)}
        if any(not isinstance(s, Position) or (s.size < 1) for c in place for s in c.terms):
            return UNKNOWN
        varying = {axis.dim for axis in axes}
        order = [s for dim, s in found.items() if dim not in varying] + list(axes)
        total = prod(s.size for s in order)
        self._counted_positions += total
        if total > MAX_POSITIONS or self._counted_positions > 4 * MAX_POSITIONS:
            return UNKNOWN
        grid: dict[Position, Bounds] = {
            s: np.arange(s.size, dtype=np.int64).reshape([-1 if t is s else 1 for t in order]) for s in order
        }
        at: list[Bounds] = []
        for coordinate, size in zip(place, told.shape, strict=True):
            number: Bounds = np.full([1] * len(order), coordinate.constant, np.int64)
            for symbol, stride in coordinate.terms.items():
                if isinstance(symbol, Position):
                    number = number + stride * grid[symbol]
            if number.min() < 0 or number.max() >= size:
                return UNKNOWN
            at.append(number)

        def taken(bounds: Bounds) -> Bounds:
            index = tuple(n if size > 1 else np.zeros_like(n) for n, size in zip(at, bounds.shape, strict=True))
            return np.broadcast_to(bounds[index], [s.size for s in order]).reshape(-1, count_of(axes))

        evidence = () if told.evidence is None else (told.evidence,)
        return of_bounds(taken(told.lo), taken(told.hi)).because(*evidence)

    def _followed(self, value: Value, place: Place, axes: Axes, frame: Frame | None, depth: int) -> Along:
        node = value.node
        if node is None:
            return self._argument(value, place, axes, frame, depth)
        name = node.name.removeprefix("stablehlo.")
        if name in MOVING:
            return self._moved(node, name, place, axes, frame, depth)
        if name == "func.call":
            body = self.intervals.callee(node)
            returned = None if body is None else body.terminator.operand(value.number)
            if returned is None or not returned.is_static:
                return UNKNOWN
            return self.along(returned, place, axes, self.intervals.enter(node, frame), depth + 1)
        if name in ("case", "if"):
            returned_by = (block.terminator.operand(value.number) for block in node.blocks)
            return one_of(self.along(v, place, axes, frame, depth + 1) for v in returned_by if v.is_static)
        if is_identity(node):
            return self.along(node.operand(value.number), place, axes, frame, depth + 1)
        rule = RULES.get(name)
        return UNKNOWN if rule is None else rule(self, value, node, place, axes, frame, depth)

    def _argument(self, value: Value, place: Place, axes: Axes, frame: Frame | None, depth: int) -> Along:
        """An argument holds what its call passes, or one of what all calls of a private function pass."""
        block = value.block
        if block is None or block.owner.name != "func.func":
            return UNKNOWN
        if frame is not None:
            return self.along(frame.call.operand(value.number), place, axes, frame.caller, depth + 1)
        function = self.graph.function_of(block.owner)
        if function.is_public or self.graph.has_other_reference(function.name):
            return UNKNOWN
        calls = self.graph.calls_of(function.name)
        if not calls or len(calls) > MAX_CALLS:
            return UNKNOWN
        return one_of(self.along(call.operand(value.number), place, axes, None, depth + 1) for call in calls)

    def _moved(self, node: Node, name: str, place: Place, axes: Axes, frame: Frame | None, depth: int) -> Along:
        if not all(operand.is_static for operand in node.operands):
            return UNKNOWN
        if name == "dynamic_slice":
            before = tuple(after_start(c, node, frame, d) for d, c in enumerate(place))
            return self.along(node.operand(0), before, axes, frame, depth + 1)
        source = moved(node, name, place)
        if source is not None:
            return self.along(source[0], source[1], axes, frame, depth + 1)
        if name == "reshape":
            return self._split(node, place, axes, frame, depth)
        return self._pieces(node, place, axes, frame, depth) if name == "concatenate" else UNKNOWN

    def _split(self, node: Node, place: Place, axes: Axes, frame: Frame | None, depth: int) -> Along:
        """A reshape to fewer dims: a position along the whole of a flattened dim is as many positions as it was made
        of, in the same order, so that one axis becomes several."""
        before, after = node.operand(0).static_shape, node.result().static_shape
        long = [d for d, size in enumerate(after) if size > 1]
        if len(long) != 1 or not (place[long[0]].constant == 0 and len(place[long[0]].terms) == 1):
            return UNKNOWN
        (axis, stride), *_ = place[long[0]].terms.items()
        if not isinstance(axis, Position) or axis not in axes or stride != 1 or axis.size != after[long[0]]:
            return UNKNOWN
        if any(axis.dim in positions([c]) for d, c in enumerate(place) if d != long[0]):
            return UNKNOWN
        digits = [self.fresh(size) for size in before]
        at = tuple(Linear(0, {digit: 1}) if digit.size > 1 else Linear(0) for digit in digits)
        number = axes.index(next(a for a in axes if a == axis))
        return self.along(node.operand(0), at, (*axes[:number], *digits, *axes[number + 1 :]), frame, depth + 1)

    def _pieces(self, node: Node, place: Place, axes: Axes, frame: Frame | None, depth: int) -> Along:
        """Slices of one tensor put together along a dim, as a roll does: if they overlap nowhere, their elements are
        different ones of that tensor, and all of them if they leave nothing out."""
        dim, source = node.integer("dimension"), None
        rows: list[int] = []
        for operand in node.operands:
            cut, own = operand.node, operand
            begin = 0
            if cut is not None and cut.name == "stablehlo.slice":
                own, begin = cut.operand(0), cut.integers("start_indices")[dim]
                strides, starts = cut.integers("strides"), cut.integers("start_indices")
                if any(s != 1 for s in strides) or any(s for d, s in enumerate(starts) if d != dim):
                    return UNKNOWN
            if source is not None and own != source:
                return UNKNOWN
            source = own
            rows += range(begin, begin + operand.static_shape[dim])
        if source is None or len(set(rows)) != len(rows) or len(rows) > MAX_POSITIONS:
            return UNKNOWN
        sides = zip(source.static_shape, node.result().static_shape, strict=True)
        if any(a != b for d, (a, b) in enumerate(sides) if d != dim):
            return UNKNOWN
        found = self.whole_dim(source, place, dim, axes, frame, depth)
        if found is None:
            return UNKNOWN
        whole, row = found
        is_whole = len(rows) == row.size
        moved_along = Along(1, (), is_whole, evidence=(Evidence.at(node, Code.SLICES_APART()),))
        at = of_form(place[dim], axes, is_exact=True)
        if at is None:
            return UNKNOWN
        return composed(whole, composed(moved_along, at, len(rows), count_of(axes)), row.size, count_of(axes))


RULES: Mapping[str, Rule] = {**SOURCES, **MAPPED, **CHOSEN}
