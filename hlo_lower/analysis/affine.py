"""Affine index facts: walk from an element of an index tensor to what it is made of, as a linear form.

The walk asks what the element at a symbolic place is. Ops that move elements (broadcast, reshape, transpose, slice,
concatenate, reverse) change the place, sums change the form, and whatever cannot be looked into becomes a symbol. A
symbol that does not depend on a position is a base: the same runtime number for every row of a run. So `base + iota`
is recognised wherever the base comes from, and an unknown op in the middle costs only what it touches.
"""

from collections.abc import Hashable

import numpy as np

from hlo_lower.analysis.budget import Budget
from hlo_lower.analysis.evenly import of_constant
from hlo_lower.analysis.evidence import Evidence, merge, plain_name, source_of
from hlo_lower.analysis.frame import Frame
from hlo_lower.analysis.identity import is_identity
from hlo_lower.analysis.index_facts import IndexAnalysis, is_tracked
from hlo_lower.analysis.interval import type_range, wrapped_number
from hlo_lower.analysis.linear import Element, Linear, Normalized, Position, Start, Symbol, origin, positions, width_of
from hlo_lower.analysis.memo import Memo
from hlo_lower.analysis.places import MOVING, Place, after_start, moved
from hlo_lower.analysis.transfer import ELEMENTWISE, comparison_direction
from hlo_lower.causes import Cause, Code
from hlo_lower.graph import Graph, Node, Value

MAX_STEPS = 100
"""Longest chain of producers that is followed; what lies beyond is not looked into."""

MAX_WORK = 4_000
"""Most elements at places that are looked at to answer one question."""

MAX_WORK_IN_ALL = 8_000
"""Most of them that one analysis looks at: that of one scatter."""

MAX_TERMS = 64
"""Most symbols of a form; what is the sum of more is a symbol itself."""

MAX_ASSUMED = 3
"""Most values of loops that are looked into one within the other; another one is a symbol."""


class AffineAnalysis:
    """Linear forms of the elements of integer tensors of one graph."""

    def __init__(self, graph: Graph, intervals: IndexAnalysis) -> None:
        self._graph = graph
        self._intervals = intervals
        self._pending: list[Value] = []
        self._memo = Memo[Hashable, Linear | bool]()
        self._inner: dict[Linear, Linear] = {}
        self.budget = Budget(MAX_WORK_IN_ALL, MAX_WORK)

    def element(self, value: Value, place: Place, frame: Frame | None = None, depth: int = 0) -> Linear:
        """The element of an integer tensor of static shape at a place.

        Args:
          value: the tensor.
          place: a form for each of its dims.
          frame: the call through which its function is looked at; None stands for every call.
          depth: how many producers have been followed so far.
        """
        if depth > MAX_STEPS:
            return self._opaque(value, place, frame, Code.TOO_FAR(MAX_STEPS))
        key = (value, place, frame)
        known = self._memo.get(key)
        if isinstance(known, Linear):
            return known
        cuts = self.budget.cuts
        if not self.budget.begin():
            return self._opaque(value, place, frame, Code.OUT_OF_BUDGET())
        self._memo.begin()
        found = self._found(value, place, frame, depth)
        self.budget.end()
        if cuts == self.budget.cuts or not self.budget.is_asked:
            self._memo.keep(key, found)
        else:
            self._memo.drop()
        return found

    def _found(self, value: Value, place: Place, frame: Frame | None, depth: int) -> Linear:
        node = value.node
        if node is None:
            found = self._argument(value, place, frame, depth)
            why = None
        else:
            found = self._result(value, node, place, frame, depth)
            why = Code.RESULT_OF(plain_name(node.name))
            if found is None and node.name in ELEMENTWISE:
                place = self._narrowed(node, place, frame, depth)
        if found is not None and len(found.terms) > MAX_TERMS:
            found, why = None, Code.TOO_MANY_TERMS(MAX_TERMS)
        return found or self._opaque(value, place, frame, why or source_of(self._graph, value))

    def _narrowed(self, node: Node, place: Place, frame: Frame | None, depth: int) -> Place:
        """The place at position 0 of the dims along which the operands of an elementwise op, and so it, do not move."""
        if not all(is_tracked(operand) for operand in node.operands):
            return place
        operands = (self.element(o, place if o.shape else (), frame, depth + 1) for o in node.operands)
        moving = positions(operands)
        return tuple(origin(c) if not positions([c]) & moving else c for c in place)

    def _opaque(self, value: Value, place: Place, frame: Frame | None, why: Cause) -> Linear:
        node = value.node
        if is_tracked(value):
            told = self._intervals.interval(value, frame)
            low, high = told.hull()
            if low == high:
                return Linear(low, {}, width_of(value), evidence=told.evidence)
        source = None if node is None else Evidence.at(node, why)
        symbol = Element(value, frame, place, why, source)
        return Linear(0, {symbol: 1}, width_of(value), evidence=source)

    # --- what an operation gives ---

    def _result(self, value: Value, node: Node, place: Place, frame: Frame | None, depth: int) -> Linear | None:
        name = node.name.removeprefix("stablehlo.")
        if name == "constant":
            return of_constant(node, place)
        if name == "iota":
            dim = node.integer("iota_dimension")
            step = Evidence.at(node, Code.IOTA(value.static_shape[dim] - 1))
            return place[dim].in_width(width_of(value)).because(step)
        if name in MOVING and not all(o.is_static for o in node.operands if o.is_tensor):
            return None
        source = moved(node, name, place)
        if source is not None:
            return self.element(source[0], source[1], frame, depth + 1)
        match name:
            case "dynamic_slice":
                before = [after_start(c, node, frame, d) for d, c in enumerate(place)]
                return self.element(node.operand(0), tuple(before), frame, depth + 1)
            case "add" | "subtract":
                return self._sum(node, place, frame, depth, 1 if name == "add" else -1)
            case "negate":
                inner = self.element(node.operand(0), place, frame, depth + 1)
                return inner.times(-1) if inner.width in (0, width_of(value)) else None
            case "multiply":
                return self._product(node, place, frame, depth)
            case "convert":
                return self._convert(node, place, frame, depth)
            case "select":
                return self._select(node, place, frame, depth)
            case "clamp" | "minimum" | "maximum":
                kept = self._unclamped(node, name, frame)
                return None if kept is None else self.element(kept, place, frame, depth + 1)
            case "func.call":
                body = self._intervals.callee(node)
                if body is None:
                    return None
                returned = body.terminator.operand(value.number)
                if not returned.is_static:
                    return None
                return self.element(returned, place, self._intervals.enter(node, frame), depth + 1)
            case "case" | "if":
                branches = [block.terminator.operand(value.number) for block in node.blocks]
                return self._agreed(value, [(b, frame) for b in branches], place, frame, depth)
            case "while":
                return self._carried(value, node, place, frame, depth)
            case _:
                if is_identity(node):
                    return self.element(node.operand(value.number), place, frame, depth + 1)
                return None

    def _sum(self, node: Node, place: Place, frame: Frame | None, depth: int, sign: int) -> Linear | None:
        a = self.element(node.operand(0), place, frame, depth + 1)
        b = self.element(node.operand(1), place, frame, depth + 1)
        width = width_of(node.result())
        if width <= 1:
            return None
        narrow = [f for f in (a, b) if f.terms and 0 < f.width < width]
        if not narrow:
            return a.plus(b, sign).in_width(width)
        # What wrapped around in a narrower type stays in that type's range; only constants may be added to it.
        if a in narrow and b.is_constant:
            return a.drifted(b.times(sign))
        if b in narrow and a.is_constant and sign == 1:
            return b.drifted(a)
        return None

    def _product(self, node: Node, place: Place, frame: Frame | None, depth: int) -> Linear | None:
        a, b = (self.element(o, place, frame, depth + 1) for o in node.operands)
        width = width_of(node.result())
        factor, form = (a, b) if a.is_constant else (b, a)
        if not factor.is_constant or width <= 1 or (form.terms and 0 < form.width < width):
            return None
        return form.times(factor.constant).in_width(width)

    def _convert(self, node: Node, place: Place, frame: Frame | None, depth: int) -> Linear | None:
        """To fewer bits the form holds modulo those; to more it holds as long as nothing has wrapped around.

        An element that is not looked into holds a number of its own type, and so may have wrapped around as well where
        the operand's type is another: i32 to i8 to i32 is the identity only for what fits in i8.
        """
        operand, result = node.operand(0), node.result()
        before, after = type_range(operand.element_type), type_range(result.element_type)
        if before is None or after is None or result.element_type == "i1":
            return None
        inner = self.element(operand, place, frame, depth + 1)
        old, new = width_of(operand), width_of(result)
        is_wider = after[0] <= before[0] and before[1] <= after[1]
        if inner.is_constant:
            constant = wrapped_number(inner.constant, *before)
            return Linear(wrapped_number(constant, *after), {}, new, evidence=inner.evidence)
        if not is_wider:
            return inner.in_width(new) if new <= old else None
        if self.is_exact(inner, operand):
            return Linear(inner.constant, inner.terms, new, 0, inner.evidence)
        # What was added after an earlier conversion must not have wrapped around in its turn.
        stays = inner.width == old or (inner.width and (1 << (inner.width - 1)) + inner.drift <= 1 << (old - 1))
        return inner if before[0] < 0 and stays else None

    def _select(self, node: Node, place: Place, frame: Frame | None, depth: int) -> Linear | None:
        predicate, on_true, on_false = node.operands
        condition = self._intervals.interval(predicate, frame)
        if bool(np.all(condition.lo == 1)):
            return self.element(on_true, place, frame, depth + 1)
        if bool(np.all(condition.hi == 0)):
            return self.element(on_false, place, frame, depth + 1)
        a, b = (self.element(v, place, frame, depth + 1) for v in (on_true, on_false))
        if a == b:
            return a
        if predicate.shape != on_true.shape or not positions([self.element(predicate, place, frame, depth + 1)]):
            return self._agreed(node.result(), [(on_true, frame), (on_false, frame)], place, frame, depth)
        compared = self._compared_with_zero(predicate, on_true.element_type, place, frame, depth)
        if compared is None:
            return None
        subject, is_negative_true = compared
        raised, kept = (a, b) if is_negative_true else (b, a)
        width, whole = width_of(node.result()), type_range(node.result().element_type)
        offset = raised.above(kept, width)
        if offset is None or whole is None or whole[0] == 0 or subject != kept:
            return None
        offset = wrapped_number(offset, *whole)
        if offset <= 0:
            return None
        step = Evidence.at(node, Code.MOVED_UP(offset), merge((kept.evidence,)))
        # Its value is a number of the type, so whatever wrapped around inside is settled.
        inner = self._inner.setdefault(kept, kept)  # one object, so that equal forms are compared by identity
        return Linear(0, {Normalized(inner, offset, width): 1}, width, evidence=step)

    def _compared_with_zero(
        self, predicate: Value, element_type: str, place: Place, frame: Frame | None, depth: int
    ) -> tuple[Linear, bool] | None:
        """For `x < 0` or `x >= 0` of elements of a type: x, and whether the predicate is true where x is negative."""
        node = predicate.node
        if node is None or node.name != "stablehlo.compare" or node.operand(0).element_type != element_type:
            return None
        direction = comparison_direction(node)
        if direction not in ("LT", "GE"):
            return None
        x, bound = (self.element(v, place, frame, depth + 1) for v in node.operands)
        if not bound.is_constant or bound.constant != 0:
            return None
        return x, direction == "LT"

    def _unclamped(self, node: Node, name: str, frame: Frame | None) -> Value | None:
        """The operand of a clamp, minimum or maximum that changes nothing; an index that may be cut is no run."""

        def hull(value: Value) -> tuple[int, int]:
            return self._intervals.interval(value, frame).hull()

        if name == "clamp":
            low, x, high = node.operands
            return x if hull(low)[1] <= hull(x)[0] and hull(x)[1] <= hull(high)[0] else None
        a, b = node.operands
        for x, bound in ((a, b), (b, a)):
            if (hull(x)[1] <= hull(bound)[0]) if name == "minimum" else (hull(x)[0] >= hull(bound)[1]):
                return x
        return None

    # --- through functions, branches and loops ---

    def _argument(self, value: Value, place: Place, frame: Frame | None, depth: int) -> Linear | None:
        block = value.block
        assert block is not None
        owner = block.owner
        if owner.name == "stablehlo.while":
            return self._carried(value, owner, place, frame, depth)
        if owner.name != "func.func":
            return None
        if frame is not None:
            return self.element(frame.call.operand(value.number), place, frame.caller, depth + 1)
        function = self._graph.function_of(block.owner)
        if function.is_public or self._graph.has_other_reference(function.name):
            return None
        calls = self._graph.calls_of(function.name)
        return self._agreed(value, [(call.operand(value.number), None) for call in calls], place, None, depth)

    def _agreed(
        self,
        value: Value,
        sources: list[tuple[Value, Frame | None]],
        place: Place,
        frame: Frame | None,
        depth: int,
    ) -> Linear | None:
        """The form of a value that is one of several (trap 40): what depends on the position has to be the same in all
        of them, and be nothing but the position; the rest is a base of its own, the value's element at position 0.

        Where a narrower type may have wrapped around, all have to have had the same added since: then
        `wrap_w(rest - m + moving) + m` is `wrap_w(base - m + moving) + m`, for each of them."""
        forms = [self.element(v, place, f, depth + 1) for v, f in sources if v.is_static]
        if not forms or len(forms) < len(sources):
            return None
        if all(form == forms[0] for form in forms):
            return forms[0]
        moving, _ = forms[0].split()
        width, moved = forms[0].width, forms[0].moved
        if any(form.split()[0] != moving for form in forms) or any((f.width, f.moved) != (width, moved) for f in forms):
            return None
        if not all(isinstance(symbol, Position) for symbol in moving):
            return None
        base = Element(value, frame, tuple(map(origin, place)))
        return Linear(0, {**moving, base: 1}, width, moved, forms[0].evidence)

    def _carried(self, value: Value, loop: Node, place: Place, frame: Frame | None, depth: int) -> Linear | None:
        """A value that a while carries: the same as before the loop where the body returns it as it is; where it adds
        the same number to all elements, their distances stay."""
        number = value.number
        inside = loop.blocks[1].argument(number)
        initial = self.element(loop.operand(number), place, frame, depth + 1)
        if loop.blocks[1].terminator.operand(number) == inside:
            return initial
        moving, _ = initial.split()
        width = width_of(value)
        if not all(isinstance(symbol, Position) for symbol in moving) or initial.width not in (0, width):
            return None
        if not self._keeps_distances(inside, loop, place, frame, depth):
            return None
        base = Element(value, frame, tuple(map(origin, place)))
        return Linear(0, {**moving, base: 1}, width, evidence=initial.evidence)

    def _keeps_distances(self, inside: Value, loop: Node, place: Place, frame: Frame | None, depth: int) -> bool:
        """Whether a loop's body adds the same number to an element of a value at all positions.

        Found once, for the value in the body as for the loop's result. Meanwhile the value is a symbol of its own.
        """
        key = ("keeps distances", inside, place, frame)
        known = self._memo.get(key)
        if known is not None:
            return known is True
        if depth > MAX_STEPS // 2:
            return False
        if inside in self._pending or len(self._pending) >= MAX_ASSUMED:
            # Looked into once what is assumed is settled: what is found until then rests on it.
            self._memo.note(self._pending.index(inside) + 1 if inside in self._pending else self._memo.level)
            return False
        cuts = self.budget.cuts
        self._memo.begin()
        self._memo.assume()
        self._pending.append(inside)
        following = self.element(loop.blocks[1].terminator.operand(inside.number), place, frame, depth + 1)
        self._pending.pop()
        self._memo.settle()
        step = following.plus(Linear(0, {Element(inside, frame, place): 1}, following.width), -1)
        keeps = step.width in (0, width_of(inside)) and not positions([step])
        if cuts == self.budget.cuts:
            self._memo.keep(key, keeps)
        else:
            self._memo.drop()
        return keeps

    # --- ranges ---

    def is_exact(self, form: Linear, value: Value) -> bool:
        """Whether a form of elements of a value holds in whole numbers, too: no sum can leave the type."""
        allowed = type_range(value.element_type)
        if allowed is None or form.width not in (0, width_of(value)):
            return False
        low = high = form.constant
        for symbol, coefficient in form.terms.items():
            told = self._range(symbol)
            if told is None:
                return False
            ends = (coefficient * told[0], coefficient * told[1])
            low, high = low + min(ends), high + max(ends)
        return allowed[0] <= low and high <= allowed[1]

    def _range(self, symbol: Symbol) -> tuple[int, int] | None:
        match symbol:
            case Position():
                return 0, symbol.size - 1
            case Element():
                return self._intervals.interval(symbol.value, symbol.frame).hull()
            case Start():
                return 0, symbol.node.operand(0).static_shape[symbol.dim] - symbol.node.result().static_shape[
                    symbol.dim
                ]
            case Normalized():
                return -(1 << (symbol.width - 1)), (1 << (symbol.width - 1)) - 1
