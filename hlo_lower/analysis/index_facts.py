"""Index facts: walk from an index tensor to what produces it, and say between which bounds its elements lie.

The walk follows the producers that exporters put around an index (DESIGN section 4) through function calls: the result
of a call is looked up in the callee with this call's arguments; an argument of a private function that is looked at
from inside holds only what it holds at every call site (trap 40). Everything else may be anything in its type.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from hlo_lower.analysis.evidence import Evidence, merge
from hlo_lower.analysis.interval import Interval, greater, lesser, pick, type_range
from hlo_lower.analysis.transfer import ELEMENTWISE, TRANSFER, choose, comparison_direction
from hlo_lower.graph import Graph, Node, Value

MAX_STEPS = 100
"""Longest chain of producers that is followed, by recursion. Beyond it nothing is known, and the evidence says so."""

MAX_ELEMENTS = 1 << 22
"""Largest tensor that is tracked element by element: 4 Mi elements, 64 MiB of bounds."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The call through which a function's body is looked at; calls nest."""

    call: Node
    caller: "Frame | None"


class IndexAnalysis:
    """Value ranges of the integer tensors of one graph, each computed once."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._known: dict[tuple[Value, Frame | None], Interval] = {}

    def interval(self, value: Value, frame: Frame | None = None, depth: int = 0) -> Interval:
        """The interval of an integer tensor of static shape.

        Args:
          value: the tensor.
          frame: the call through which its function is looked at; None stands for every call.
          depth: how many producers have been followed so far.
        """
        key = (value, frame)
        known = self._known.get(key)
        if known is None:
            self._known[key] = self._unknown(value, "a value that depends on itself")
            known = self._compute(value, frame, depth)
            self._known[key] = known
        return known

    def _unknown(self, value: Value, why: str, node: Node | None = None) -> Interval:
        text = f"not bounded: {why}"
        evidence = Evidence(text) if node is None else Evidence.at(node, text)
        return Interval.of_type(value.static_shape, value.element_type, evidence)

    def _compute(self, value: Value, frame: Frame | None, depth: int) -> Interval:
        if depth > MAX_STEPS:
            return self._unknown(value, f"more than {MAX_STEPS} steps from its source")
        if prod(value.static_shape) > MAX_ELEMENTS:
            return self._unknown(value, f"more than {MAX_ELEMENTS} elements")
        node = value.node
        if node is None:
            return self._argument(value, frame, depth)
        name = node.name
        if name == "func.call":
            return self._call_result(value, node, frame, depth)
        if name == "stablehlo.select":
            return self._select(node, frame, depth)
        return self._transfer(node, {}, frame, depth) or self._unknown(value, _plain(name), node)

    def _transfer(self, node: Node, refined: dict[Value, Interval], frame: Frame | None, depth: int) -> Interval | None:
        name = node.name
        transfer = TRANSFER.get(name)
        if transfer is None or not _is_tracked(node.result()):
            return None
        operands = node.operands[:1] if name == "stablehlo.dynamic_slice" else node.operands
        if not all(map(_is_tracked, operands)):
            return None
        return transfer(node, [refined.get(o) or self.interval(o, frame, depth + 1) for o in operands])

    # --- through calls ---

    def _argument(self, value: Value, frame: Frame | None, depth: int) -> Interval:
        block = value.block
        assert block is not None
        owner = block.owner
        if owner.name != "func.func":
            return self._unknown(value, f"carried by {_plain(owner.name)}", owner)
        function = self._graph.function_of(block.terminator)
        if frame is not None:
            return self.interval(frame.call.operands[value.number], frame.caller, depth + 1)
        name = function.name
        if function.is_public or self._graph.has_other_reference(name):
            return self._unknown(value, f"argument {value.number} of @{name}")
        calls = self._graph.calls_of(name)
        if not calls:
            return self._unknown(value, f"@{name} is never called")
        sites = [self.interval(call.operands[value.number], None, depth + 1) for call in calls]
        if len(sites) == 1:
            return sites[0]
        lo, hi = sites[0].lo, sites[0].hi
        for site in sites[1:]:
            lo, hi = lesser(lo, site.lo), greater(hi, site.hi)
        why = Evidence(f"holds at each of {len(sites)} calls of @{name}", None, merge(tuple(s.evidence for s in sites)))
        return sites[0].between(lo, hi).because(why)

    def _call_result(self, value: Value, call: Node, frame: Frame | None, depth: int) -> Interval:
        callee = self._graph.functions.get(call.callee)
        if callee is None or not callee.has_body:
            return self._unknown(value, f"result of @{call.callee}", call)
        returned = callee.body.terminator.operands[value.number]
        if not returned.is_static:
            return self._unknown(value, f"result of @{call.callee}", call)
        return self.interval(returned, Frame(call, frame), depth + 1)

    # --- negative-index normalisation ---

    def _select(self, node: Node, frame: Frame | None, depth: int) -> Interval:
        """A select, each branch under what the predicate says of it: `select(i < 0, i + D, i)` with i in [-D, D-1]
        is in [0, D-1], because i + D is looked at for negative i alone, and i for the others."""
        predicate, on_true, on_false = node.operands
        value = node.result()
        if not (_is_tracked(value) and _is_tracked(predicate)):
            return self._unknown(value, "select", node)
        condition = self.interval(predicate, frame, depth + 1)
        refined = self._refinements(predicate, frame, depth)
        if refined is None:
            whole = (self.interval(on_true, frame, depth + 1), self.interval(on_false, frame, depth + 1))
            return choose(node, condition, *whole)
        subject, when_true, when_false = refined
        branches = (
            self._under(on_true, subject, when_true, frame, depth),
            self._under(on_false, subject, when_false, frame, depth),
        )
        # Where the predicate leaves no value for a branch, the branch is not taken.
        condition = condition.between(
            pick(when_false.lo > when_false.hi, 1, condition.lo),
            pick(when_true.lo > when_true.hi, 0, condition.hi),
        )
        chosen = choose(node, condition, *branches)
        least, greatest = chosen.hull()
        if least < 0:  # it did not help: the branches' own evidence says why
            return chosen
        return chosen.because(Evidence.at(node, f"normalised to [{least}, {greatest}]", merge((chosen.evidence,))))

    def _refinements(
        self, predicate: Value, frame: Frame | None, depth: int
    ) -> tuple[Value, Interval, Interval] | None:
        """For a predicate `compare(x, bound)`: x, and what x is where the predicate is true and where it is false."""
        node = predicate.node
        if node is None or node.name != "stablehlo.compare":
            return None
        x, bound = node.operands
        direction = comparison_direction(node)
        if direction in ("EQ", "NE") or not _is_tracked(x):
            return None
        told, limit = self.interval(x, frame, depth + 1), self.interval(bound, frame, depth + 1)
        strict = 1 if direction in ("LT", "GE") else 0
        below = told.between(told.lo, lesser(told.hi, limit.hi - strict))
        above = told.between(greater(told.lo, limit.lo + (1 - strict)), told.hi)
        return (x, below, above) if direction in ("LT", "LE") else (x, above, below)

    def _under(self, branch: Value, subject: Value, refined: Interval, frame: Frame | None, depth: int) -> Interval:
        """A branch of a select where subject is known more closely: the subject itself or one op on it."""
        if branch.shape != subject.shape:
            return self.interval(branch, frame, depth + 1)
        if branch == subject:
            return refined
        node = branch.node
        empty = bool(np.any(refined.lo > refined.hi))
        # Element by element only: the predicate says nothing about the elements that a reverse or a slice moves.
        if node is not None and node.name in ELEMENTWISE and subject in node.operands and not empty:
            told = self._transfer(node, {subject: refined}, frame, depth)
            if told is not None:
                return told
        return self.interval(branch, frame, depth + 1)


def _is_tracked(value: Value) -> bool:
    """Whether a value is an integer or boolean tensor of static shape."""
    tensor = value.tensor_type
    return tensor is not None and tensor.is_static and type_range(tensor.element_name) is not None


def _plain(name: str) -> str:
    return name.removeprefix("stablehlo.")
