"""What is asked of each 64-bit integer of a module, and where its elements come from."""

from collections.abc import Iterator, Mapping, Sequence
from enum import Flag
from math import prod

import numpy as np

from hlo_lower.base.element_types import type_range
from hlo_lower.facts.ranges.index_facts import IndexAnalysis, is_tracked
from hlo_lower.facts.ranges.interval import Interval
from hlo_lower.facts.values.site import Site
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block, Function, Graph, Node, Value
from hlo_lower.lowering.integers64.demotion import NARROWER
from hlo_lower.lowering.plain.custom_call import NOTES
from hlo_lower.ops import names
from hlo_lower.ops.spec import COMBINING, CONTROL, MANUAL, OPS, WITH_BODY

# --- what each operation does with 64-bit integers when they are made 32 bits wide ---
#
# Two things can be asked of a narrowed value whose original is some integer v:
#
# - LOW: it is v modulo 2^32. Sums, products and bit operations of such values are such values again. - NEAREST: it is
# the 32-bit integer nearest to v. Minima, maxima and clamps of such values are such values again.
#
# Where v fits in 32 bits both say the same, that it is v; and only then is a comparison, a quotient, a conversion to a
# float or an index right.


class Narrowing(Flag):
    """What is asked of a narrowed value; both together: that its original fits."""

    NOTHING = 0
    LOW = 1
    NEAREST = 2
    BOTH = 3


RING = COMBINING - {names.MINIMUM, names.MAXIMUM} | {
    names.SUBTRACT,
    names.NEGATE,
    names.NOT,
    names.DOT_GENERAL,
    names.DOT,
    names.CONVOLUTION,
}
"""The low half of the result depends on the low halves of the operands alone."""

ORDERED = frozenset({names.MINIMUM, names.MAXIMUM, names.CLAMP})
"""Monotone in every operand, so that they commute with taking the nearest value."""

EXACT = frozenset({names.DIVIDE, names.REMAINDER, names.ABS, names.SIGN, names.POWER})
"""Right where the operands fit; the result may not."""

WITHIN = frozenset({names.REMAINDER, names.SIGN, names.SHIFT_RIGHT_ARITHMETIC, names.SHIFT_RIGHT_LOGICAL, names.POPCNT})
"""Operations whose result fits where the operands do."""

SHIFTS = frozenset({names.SHIFT_LEFT, names.SHIFT_RIGHT_ARITHMETIC, names.SHIFT_RIGHT_LOGICAL})

ASKING = frozenset({names.COMPARE, names.IS_FINITE, names.DYNAMIC_IOTA, "chlo.top_k"})
"""Operations on integers that fit, with results of another kind."""

_MOVING = {
    name: op for name, op in OPS.items() if op.moved != () and name not in (names.CONCATENATE, names.BITCAST_CONVERT)
}
"""A concatenate moves any number of operands; a bitcast of integers is refused."""

MOVED: dict[str, tuple[int, ...]] = {
    **{name: op.moved or tuple(range(op.arity or 1)) for name, op in _MOVING.items()},
    names.SELECT: (1, 2),
    **dict.fromkeys(("sdy.sharding_constraint", "sdy.reshard", "chlo.top_k"), (0,)),
}
"""Operations whose result is made of elements of these operands; all other operands are indices or sizes."""

SIDE_BY_SIDE = frozenset({names.OPTIMIZATION_BARRIER, names.SORT, "func.call", names.COMPOSITE})
"""Operations that have a result for each operand, or a body that is looked up by name."""

REFUSED = {
    names.BITCAST_CONVERT: "it reads the bits of a 64-bit integer",
    names.RNG_BIT_GENERATOR: "it draws 64-bit random bits",
    names.RNG: "it draws 64-bit random numbers",
    names.COUNT_LEADING_ZEROS: "it counts the zeros of 64 bits",
}
"""Operations that have no 32-bit form."""


# --- where the elements of a value come from, where an operation only moves them: through regions, calls and loops ---


FOLDING = frozenset({names.REDUCE, names.REDUCE_WINDOW})
COLLECTIVE = frozenset({names.ALL_REDUCE, names.REDUCE_SCATTER})
BRANCHING = frozenset({names.CASE, names.IF})
WITH_REGIONS = WITH_BODY | CONTROL | {MANUAL}
"""Operations whose regions' arguments and results are known."""


class MovedSources:
    """The sources of values of one graph.

    Args:
      graph: the module.
      callers: for each function the nodes that call it or, as composites, name it.
    """

    def __init__(self, graph: Graph, callers: Mapping[str, Sequence[Node]]) -> None:
        self._functions = graph.functions
        self._callers = callers

    def of(self, value: Value) -> list[Value] | None:
        """The values whose elements a value consists of; None where it is computed, or given from outside."""
        node = value.node
        if node is None:
            block = value.block
            return None if block is None else self._of_argument(block, value.number)
        return self._of_result(node, value.number)

    def _of_result(self, node: Node, number: int) -> list[Value] | None:
        name = node.name
        if name in MOVED:
            return [node.operand(i) for i in MOVED[name]] if number == 0 else None
        if name == names.CONCATENATE:
            return list(node.operands)
        if name in (names.OPTIMIZATION_BARRIER, names.SORT):
            return [node.operand(number)]
        if name == names.CUSTOM_CALL:
            return [node.operand(number)] if mlir.call_target(node.raw) in NOTES else None
        if node.body_name:
            function = self._functions.get(node.body_name)
            return None if function is None or not function.has_body else [function.body.terminator.operand(number)]
        if name not in WITH_REGIONS:
            return None
        if name in BRANCHING:
            return [block.terminator.operand(number) for block in node.blocks]
        if name == names.WHILE:
            return [node.operand(number), node.blocks[1].terminator.operand(number)]
        returned = node.blocks[-1].terminator.operand(number)
        count = len(node.results)
        if name in FOLDING:
            return [node.operand(number), node.operand(count + number), returned]
        if name == names.SELECT_AND_SCATTER:
            return [node.operand(2), returned]
        if name in (names.MAP, MANUAL):
            return [returned]
        return [node.operand(number), returned]  # a scatter, a collective reduction

    def _of_argument(self, block: Block, number: int) -> list[Value] | None:
        owner = block.owner
        name = owner.name
        if name == "func.func":
            function = Function(owner)
            callers = self._callers.get(function.name, ())
            return None if function.is_public else [call.operand(number) for call in callers]
        if name == names.WHILE:
            return [owner.operand(number), owner.blocks[1].terminator.operand(number)]
        if name == names.SORT:
            return [owner.operand(number // 2)]
        if name in (names.MAP, MANUAL):
            return [owner.operand(number)]
        if name == names.SELECT_AND_SCATTER:
            if block == owner.blocks[0]:
                return [owner.operand(0)]
            return [owner.operand(1), owner.operand(2), block.terminator.operand(0)]
        count = len(owner.results)
        k = number % count
        returned = block.terminator.operand(k)
        if name in FOLDING:
            return [owner.operand(k), owner.operand(count + k), returned]
        if name == names.SCATTER:
            return [owner.operand(k), returned] if number < count else [owner.operand(count + 1 + k)]
        return [owner.operand(k), returned] if name in COLLECTIVE else None


# --- what is asked of each 64-bit integer of a module, from what its users need back to where it comes from ---
#
# Each operation asks something of its operands whatever becomes of its result (`roles`). Where a value is not proved to
# fit, what is asked of it is passed on: of a value that only moves to what it is made of, of a constant to the choice
# of its narrow form, of a sum to an assumption, which is told. What cannot be had at all is refused.


RETURNS = frozenset({names.RETURN, "func.return", "sdy.return"})
SHAPE_ASSERTION = "shape_assertion"


OTHERS = frozenset(
    {names.CONSTANT, names.CONVERT, names.IOTA, names.CONCATENATE, names.GET_DIMENSION_SIZE, "func.func"}
)
"""Operations that ask nothing, or what they ask is found where they are looked at."""

FITTING = EXACT | WITHIN
KNOWN = RING | ORDERED | FITTING | ASKING | MOVED.keys() | SIDE_BY_SIDE | WITH_REGIONS | RETURNS | OTHERS
"""All operations of which it is known what they do with 64-bit integers."""


def is_wide(value: Value) -> bool:
    """Whether a value is a tensor of 64-bit integers."""
    tensor = value.tensor_type
    return tensor is not None and tensor.element_name in NARROWER


def bounds_after(value: Value) -> tuple[int, int]:
    """The range of the type that a wide value gets."""
    found = type_range(NARROWER[value.element_type])
    assert found is not None
    return found


class Demand:
    """What is asked of the wide values of a graph, and what that leads to.

    Attributes:
      assumed: for each operation whose result is assumed to fit, the operation.
      refusals: nodes that stand in the way, each with the reason.
      nearest: constants that become the nearest 32-bit integers; others become their low halves.
      decided: comparisons and shifts that come out the same for all values that fit, each with the one outcome.
    """

    def __init__(self, graph: Graph, nodes: Sequence[Node], callers: Mapping[str, Sequence[Node]]) -> None:
        self._graph = graph
        self._sources = MovedSources(graph, callers)
        self._analysis = IndexAnalysis(graph).assuming(
            {Site(value): _in_range(value) for value in entry_arguments(graph) if is_wide(value) and value.is_static}
        )
        self._asked: dict[Value, Narrowing] = {}
        self._fits: dict[Value, bool] = {}
        self.assumed: dict[Node, None] = {}
        self.refusals: dict[Node, str] = {}
        self.nearest: set[Node] = set()
        self.decided: dict[Node, int] = {}
        for node in nodes:
            self._visit(node)

    def fits(self, value: Value) -> bool:
        """Whether a value is proved to fit in its narrower type, where all that is assumed holds."""
        return self._is_within(value)

    def sources_of(self, value: Value) -> Sequence[Value] | None:
        """The values whose elements a value consists of; None where it is computed, or given from outside."""
        return self._sources.of(value)

    # --- what operations ask ---

    def _visit(self, node: Node) -> None:
        reason = self._cannot(node)
        if reason:
            self.refusals.setdefault(node, reason)
            return
        for value, narrowing in self._asks(node):
            if is_wide(value):
                self._ask(value, narrowing)

    def _cannot(self, node: Node) -> str:
        name = node.name
        if name in REFUSED:
            return REFUSED[name]
        if name == names.CUSTOM_CALL:
            called = mlir.call_target(node.raw)
            known = called in NOTES or called == SHAPE_ASSERTION
            return "" if known else f"@{called} has 64-bit integers as operands or results, and nothing is known of it"
        if name in SHIFTS:
            return self._cannot_shift(node)
        if name == names.POPCNT and self._least(node.operand(0)) < 0:
            return "it counts the bits of a 64-bit integer that may be negative"
        if name == names.CONVERT and is_wide(node.result()) and type_range(node.operand(0).element_type) is None:
            return self._cannot_convert(node)
        return "" if name in KNOWN else "what it does with 64-bit integers is not known"

    def _cannot_shift(self, node: Node) -> str:
        least, most = self._hull(node.operand(1))
        if node.name == names.SHIFT_RIGHT_LOGICAL and self._least(node.operand(0)) < 0:
            return "it shifts the sign of a 64-bit integer to the right"
        if least < 0 or (most > 31 and not self._is_shifted_out(node)):
            return f"it shifts by {least if least == most else 'an amount that may be more than 31'}"
        return ""

    def _is_shifted_out(self, node: Node) -> bool:
        """Whether a shift to the right leaves 0 of every number that fits, as of the counter of JAX's random bits."""
        return node.name == names.SHIFT_RIGHT_LOGICAL and node.is_static and self._hull(node.operand(1))[0] > 31

    def _cannot_convert(self, node: Node) -> str:
        """Of a conversion from floats only a constant is known beforehand."""
        given = node.operand(0).node
        values = given.constant() if given is not None and given.name == names.CONSTANT else None
        if values is None or values.dtype.kind == "c":
            return ""
        low, high = bounds_after(node.result())
        with np.errstate(all="ignore"):
            truncated = np.trunc(np.asarray(values, np.float64))
        outside = ~((truncated >= low) & (truncated <= high))
        return f"it converts {values[outside].flat[0]}, which does not fit" if bool(outside.any()) else ""

    def _asks(self, node: Node) -> Iterator[tuple[Value, Narrowing]]:
        """What an operation asks of its operands, whatever is asked of its results."""
        name, operands = node.name, node.operands
        if name in RING:
            yield from ((operand, Narrowing.LOW) for operand in operands)
        elif name in ORDERED:
            yield from ((operand, Narrowing.NEAREST) for operand in operands)
        elif name == names.SHIFT_LEFT:
            yield from zip(operands, (Narrowing.LOW, Narrowing.BOTH), strict=True)
        elif name == names.CONVERT:
            result = node.result()
            is_integer = result.element_type != "i1" and type_range(result.element_type) is not None
            yield operands[0], Narrowing.LOW if is_integer else Narrowing.BOTH
            if is_wide(result) and type_range(operands[0].element_type) is None and result.is_used:
                self.assumed[node] = None
        elif name == names.COMPARE:  # before ASKING, which it belongs to
            outcome = self._outcome(node)
            if outcome is not None:
                self.decided[node] = outcome
            else:
                yield from ((operand, Narrowing.BOTH) for operand in operands)
        elif name == names.SHIFT_RIGHT_LOGICAL:
            if self._is_shifted_out(node):
                self.decided[node] = 0
            yield from ((operand, Narrowing.BOTH) for operand in operands)
        elif name == "func.return":
            if self._graph.function_of(node).is_public:
                yield from ((operand, Narrowing.BOTH) for operand in operands)
        elif name in ASKING or (node.body_name and self._is_public(node.body_name)):
            yield from ((operand, Narrowing.BOTH) for operand in operands)
        elif name in MOVED:
            yield from ((v, Narrowing.BOTH) for i, v in enumerate(operands) if i not in MOVED[name])
        elif name == names.SCATTER:
            yield operands[len(node.results)], Narrowing.BOTH
        elif name in (names.CASE, names.IF):
            yield operands[0], Narrowing.BOTH
        elif name in FITTING or (name == names.CUSTOM_CALL and mlir.call_target(node.raw) not in NOTES):
            yield from ((operand, Narrowing.BOTH) for operand in operands)

    def _is_public(self, name: str) -> bool:
        """Whether a function may be called from outside, so that its arguments are assumed to fit."""
        function = self._graph.functions.get(name)
        return function is not None and function.is_public

    def _outcome(self, node: Node) -> bool | None:
        """What a comparison comes out as for all values, where an operand is not known to fit."""
        if all(map(self._is_within, node.operands)) or not is_tracked(node.result()):
            return None
        least, most = self._analysis.of(Site(node.result())).hull()
        return bool(least) if least == most else None

    # --- what is passed on ---

    def _ask(self, value: Value, narrowing: Narrowing) -> None:
        pending = [(value, narrowing)]
        while pending:
            current, narrowing = pending.pop()
            known = self._asked.get(current, Narrowing.NOTHING)
            if narrowing in known or not is_wide(current):
                continue
            self._asked[current] = narrowing | known
            if not self._is_within(current):
                pending.extend((source, narrowing | known) for source in self._passed_on(current, narrowing | known))

    def _passed_on(self, value: Value, narrowing: Narrowing) -> Sequence[Value]:
        """The values of which the same is asked; what needs an assumption, or cannot be had, is noted."""
        node = value.node
        if node is not None and node.name == names.CONSTANT:
            self._choose(node, narrowing)
            return ()
        sources = self._sources.of(value)
        if sources is not None:
            return sources
        if node is None:
            return ()  # an argument of a public function: assumed to fit
        if node.name in ORDERED:
            return node.operands if Narrowing.LOW in narrowing else ()
        if node.name in WITHIN or (node.name == names.DIVIDE and self._quotient_is_within(node)):
            return ()
        if Narrowing.NEAREST in narrowing and node not in self.refusals:
            self.assumed[node] = None
        return ()

    def _choose(self, node: Node, narrowing: Narrowing) -> None:
        if narrowing == Narrowing.BOTH:
            low, high = bounds_after(node.result())
            values = node.constant()
            outside = None if values is None else values[(values < low) | (values > high)]
            told = "" if outside is None else f" {int(outside.flat[0])}"
            self.refusals[node] = f"the constant{told} does not fit, and its value matters"
        elif narrowing == Narrowing.NEAREST:
            self.nearest.add(node)

    def _quotient_is_within(self, node: Node) -> bool:
        """Whether no operands give a quotient that leaves the type: the least one by -1, or an unsigned one by 0."""
        dividend, divisor = node.operands
        low, high = self._hull(divisor)
        if node.result().element.is_unsigned:
            return low > 0
        return low > -1 or high < -1 or self._least(dividend) > bounds_after(dividend)[0]

    # --- what is known ---

    def _is_within(self, value: Value) -> bool:
        if not is_wide(value):
            return True
        known = self._fits.get(value)
        if known is None:
            known = self._fits[value] = self._prove(value)
        return known

    def _prove(self, value: Value) -> bool:
        node = value.node
        low, high = bounds_after(value)
        if node is not None and node.name == names.IOTA and value.is_static:
            return value.static_shape[node.integer("iota_dimension")] - 1 <= high
        if node is not None and node.name == names.CONSTANT:
            values = node.constant()
            return values is not None and (not values.size or bool(values.min() >= low and values.max() <= high))
        if not is_tracked(value):
            return False
        if node is not None and node.name == names.REDUCE and self._is_bounded_fold(node, low, high):
            return True
        told = self._analysis.of(Site(value))
        return not prod(value.static_shape) or bool(np.all(told.lo >= low) and np.all(told.hi <= high))

    def _is_bounded_fold(self, node: Node, low: int, high: int) -> bool:
        """Whether a reduction is the minimum or maximum of elements that fit and of a start that is beyond them."""
        if len(node.results) != 1 or not node.operand(0).is_static or 0 in node.operand(0).static_shape:
            return False
        body = node.blocks[0]
        combiner = body.terminator.operand(0).node
        if combiner is None or set(combiner.operands) != set(body.arguments) or not self._is_within(node.operand(0)):
            return False
        least, most = self._hull(node.operand(1))
        return (combiner.name == names.MINIMUM and least >= low) or (combiner.name == names.MAXIMUM and most <= high)

    def _hull(self, value: Value) -> tuple[int, int]:
        if is_tracked(value):
            return self._analysis.of(Site(value)).hull()
        return type_range(value.element_type) or (0, 0)

    def _least(self, value: Value) -> int:
        return self._hull(value)[0]


def entry_arguments(graph: Graph) -> Iterator[Value]:
    """The arguments of all public functions: those of the entry point, and of any other that may be called."""
    for function in graph.functions.values():
        if function.is_public and function.has_body:
            yield from function.body.arguments


def function_arguments(function: Function) -> Iterator[tuple[int, Value]]:
    """The wide arguments of a function by number."""
    yield from ((i, value) for i, value in enumerate(function.body.arguments) if is_wide(value))


def _in_range(value: Value) -> Interval:
    told = Interval.of_type(value.static_shape, value.element_type)
    low, high = bounds_after(value)
    return told.between(np.full_like(told.lo, low), np.full_like(told.hi, high))
