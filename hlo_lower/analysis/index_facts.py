"""Index facts: walk from an index tensor to what produces it, and say between which bounds its elements lie.

The walk follows the producers that exporters put around an index through function calls: the result
of a call is looked up in the callee with this call's arguments; an argument of a private function that is looked at
from inside holds only what it holds at every call site (trap 40). Everything else may be anything in its type.
"""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from hlo_lower import mlir
from hlo_lower.analysis.budget import Budget
from hlo_lower.analysis.carried import carried
from hlo_lower.analysis.evidence import Evidence, merge, plain_name, source_of
from hlo_lower.analysis.floats import compared_floats
from hlo_lower.analysis.frame import Frame, Frames
from hlo_lower.analysis.given import given, subjects
from hlo_lower.analysis.identity import is_identity
from hlo_lower.analysis.interval import Interval, greater, lesser, pick, type_range
from hlo_lower.analysis.reduced import reduced
from hlo_lower.analysis.running import running_bounds
from hlo_lower.analysis.scattered import scattered
from hlo_lower.analysis.transfer import ELEMENTWISE, LEADING_OPERANDS, TRANSFER, choose
from hlo_lower.causes import Cause, Code
from hlo_lower.graph import Block, Graph, Node, Value

MAX_STEPS = 100
"""Longest chain of producers that is followed, by recursion. Beyond it nothing is known, and the evidence says so."""

MAX_ELEMENTS = 1 << 22
"""Largest tensor that is tracked element by element: 4 Mi elements, 64 MiB of bounds."""

MAX_WORK = 2_000
"""Most values that are looked at to answer one question."""

MAX_WORK_IN_ALL = 50_000
"""Most values that are looked at for the first questions about a module, of any size."""

WORK_AN_OPERATION = 20
"""And for each of its operations: so the time that all questions take grows with the module and no faster."""

UNIFORM = ELEMENTWISE | {
    f"stablehlo.{name}" for name in ("constant", "broadcast_in_dim", "reshape", "slice", "transpose", "reverse")
}
"""Ops that give a tensor whose elements have the same bounds where those of their operands have, at any shape."""


class IndexAnalysis:
    """Value ranges of the integer tensors of one graph, each computed once.

    Attributes:
      assumed: for an analysis made by `assuming`, what is taken as told.
      budget: the steps that are left, for this analysis and all that it assumes for a proof.
      frames: the calls through which functions are looked at.
    """

    def __init__(self, graph: Graph, outer: "IndexAnalysis | None" = None) -> None:
        self._graph = graph
        self._outer = outer
        self._known: dict[tuple[Value, Frame | None], Interval] = {}
        self._pending: set[tuple[Value, Frame | None]] = set()
        self.assumed: Mapping[tuple[Value, Frame | None], Interval] = {}
        self._newly_assumed: tuple[tuple[Value, Frame | None], ...] = ()  # what the outer analysis does not assume
        if outer is None:
            self.budget = Budget(MAX_WORK_IN_ALL + WORK_AN_OPERATION * graph.op_count, MAX_WORK)
            self.frames = Frames(graph)
        else:
            self.budget, self.frames = outer.budget, outer.frames

    def interval(self, value: Value, frame: Frame | None = None, depth: int = 0) -> Interval:
        """The interval of an integer tensor of static shape.

        Args:
          value: the tensor.
          frame: the call through which its function is looked at; None stands for every call.
          depth: how many producers have been followed so far.
        """
        key = (value, frame)
        known = self._known.get(key)
        if known is not None:
            return known
        if self._outer is not None and not self._rests_on_assumed(value, frame):
            return self._outer.interval(value, frame, depth)
        if key in self._pending:
            return self._unknown(value, Code.NOT_KNOWN())  # it depends on itself
        cuts = self.budget.cuts
        if not self.budget.begin():
            return self._unknown(value, Code.OUT_OF_BUDGET())
        self._pending.add(key)
        known = self._compute(value, frame, depth)
        self._pending.discard(key)
        self.budget.end()
        if cuts == self.budget.cuts or not self.budget.is_asked:
            self._known[key] = known
        return known

    def _rests_on_assumed(self, value: Value, frame: Frame | None) -> bool:
        """Whether what is assumed may matter to a value; what it does not matter to is known without it, and once.

        The argument of a region is seen inside of the op that holds the region, and in what is called there.
        """
        return any(is_seen_by(argument, own, value, frame) for argument, own in self._newly_assumed)

    def _unknown(self, value: Value, source: Cause, node: Node | None = None) -> Interval:
        cause = Code.NOT_BOUNDED(source)
        evidence = Evidence(cause) if node is None else Evidence.at(node, cause)
        return Interval.of_type(value.static_shape, value.element_type, evidence)

    def _compute(self, value: Value, frame: Frame | None, depth: int) -> Interval:
        if depth > MAX_STEPS:
            return self._unknown(value, Code.TOO_FAR(MAX_STEPS))
        node = value.node
        if prod(value.static_shape) > MAX_ELEMENTS:
            told = None if node is None else self._uniform(node, frame, depth)
            return told or self._unknown(value, Code.TOO_LARGE(MAX_ELEMENTS))
        if node is None:
            return self._argument(value, frame, depth)
        match plain_name(node.name):
            case "func.call":
                return self._call_result(value, node, frame, depth)
            case "select":
                return self._select(node, frame, depth)
            case "case" | "if":
                branches = [(block.terminator.operand(value.number), frame) for block in node.blocks]
                return self._one_of(value, branches, depth, Code.BRANCHES(len(branches)), node)
            case "while":
                told = carried(self, node, value.number, frame, depth)
            case "reduce":
                told = reduced(self, node, value.number, frame, depth)
            case "reduce_window":
                told = running_bounds(self, node, frame, depth) or reduced(self, node, value.number, frame, depth)
            case "scatter":
                told = scattered(self, node, value.number, frame, depth)
            case "compare" if not is_tracked(node.operand(0)):
                told = compared_floats(self, node, frame, depth)
            case "sort":
                told = self._sorted(value, node, frame, depth)
            case "chlo.top_k":
                told = self._top_k(value, node, frame, depth)
            case _:
                if is_identity(node):
                    return self.interval(node.operand(value.number), frame, depth + 1)
                told = self._transfer(node, {}, frame, depth)
        return told or self._unknown(value, Code.RESULT_OF(plain_name(node.name)), node)

    def assuming(self, assumed: Mapping[tuple[Value, Frame | None], Interval]) -> "IndexAnalysis":
        """An analysis of the same module in which these are taken as told: for proofs by induction."""
        hypothetical = IndexAnalysis(self._graph, self)
        hypothetical.assumed = {**self.assumed, **assumed}
        hypothetical._newly_assumed = tuple(assumed)
        hypothetical._known.update(hypothetical.assumed)
        return hypothetical

    def _transfer(self, node: Node, refined: dict[Value, Interval], frame: Frame | None, depth: int) -> Interval | None:
        name = node.name
        transfer = TRANSFER.get(name)
        if transfer is None or not is_tracked(node.result()):
            return None
        operands = node.operands[: LEADING_OPERANDS.get(name)]
        if not all(map(is_tracked, operands)):
            return None
        return transfer(node, [refined.get(o) or self.interval(o, frame, depth + 1) for o in operands])

    def _uniform(self, node: Node, frame: Frame | None, depth: int) -> Interval | None:
        """The interval of a large tensor whose elements all have the same bounds: a splat, or made of such as are."""
        if node.name not in UNIFORM or (node.name == "stablehlo.constant" and not mlir.is_splat(node.raw)):
            return None
        if not all(is_tracked(operand) for operand in node.operands[: LEADING_OPERANDS.get(node.name)]):
            return None
        told = [self.interval(o, frame, depth + 1) for o in node.operands[: LEADING_OPERANDS.get(node.name)]]
        return self._transfer(node, {}, frame, depth) if all(t.lo.size == t.hi.size == 1 for t in told) else None

    # --- through calls ---

    def _argument(self, value: Value, frame: Frame | None, depth: int) -> Interval:
        block = value.block
        assert block is not None
        owner = block.owner
        if owner.name == "stablehlo.while":
            told = carried(self, owner, value.number, frame, depth, inside=block)
            return told or self._unknown(value, source_of(self._graph, value), owner)
        if owner.name != "func.func":
            return self._unknown(value, source_of(self._graph, value), owner)
        function = self._graph.function_of(owner)
        if frame is not None:
            return self.interval(frame.call.operands[value.number], frame.caller, depth + 1)
        name = function.name
        if function.is_public or self._graph.has_other_reference(name):
            return self._unknown(value, source_of(self._graph, value))
        calls = self._graph.calls_of(name)
        if not calls:
            return self._unknown(value, Code.NEVER_CALLED(name))
        sites: list[tuple[Value, Frame | None]] = [(call.operands[value.number], None) for call in calls]
        return self._one_of(value, sites, depth, Code.AT_EACH_CALL(len(sites), name))

    def _one_of(
        self,
        value: Value,
        sources: Sequence[tuple[Value, Frame | None]],
        depth: int,
        why: Cause,
        node: Node | None = None,
    ) -> Interval:
        """The interval of a value that is one of several."""
        if not all(is_tracked(source) for source, _ in sources):
            return self._unknown(value, why, node)
        told = [self.interval(source, frame, depth + 1) for source, frame in sources]
        if len(told) == 1:
            return told[0]
        lo, hi = told[0].lo, told[0].hi
        for other in told[1:]:
            lo, hi = lesser(lo, other.lo), greater(hi, other.hi)
        parents = merge(tuple(t.evidence for t in told))
        return told[0].between(lo, hi).because(Evidence(why, None if node is None else node.raw.location, parents))

    def callee(self, call: Node) -> Block | None:
        """The body of the function that a call names, or None where it has none."""
        function = self._graph.functions.get(call.callee)
        return function.body if function is not None and function.has_body else None

    def enter(self, call: Node, caller: Frame | None) -> Frame:
        """The frame of a call."""
        return self.frames.enter(call, caller)

    def _call_result(self, value: Value, call: Node, frame: Frame | None, depth: int) -> Interval:
        body = self.callee(call)
        returned = None if body is None else body.terminator.operands[value.number]
        if returned is None or not returned.is_static:
            return self._unknown(value, Code.RESULT_OF_CALL(call.callee), call)
        return self.interval(returned, self.enter(call, frame), depth + 1)

    # --- reordering ---

    def _sorted(self, value: Value, node: Node, frame: Frame | None, depth: int) -> Interval | None:
        """A sort moves elements along one dim, each operand's in the same way."""
        operand = node.operand(value.number)
        if not is_tracked(operand) or 0 in value.static_shape:
            return None
        told = self.interval(operand, frame, depth + 1)
        dim = -1 if node.attribute("dimension") is None else node.integer("dimension")
        lo = told.lo.min(axis=dim, keepdims=True)
        hi = told.hi.max(axis=dim, keepdims=True)
        return told.between(lo, hi).because(Evidence.at(node, Code.SORTED(), merge((told.evidence,))))

    def _top_k(self, value: Value, node: Node, frame: Frame | None, depth: int) -> Interval | None:
        """The second result of a top_k numbers elements of the operand's last dim."""
        operand = node.operand(0)
        if not operand.is_static or 0 in operand.static_shape or not is_tracked(value):
            return None
        if value.number == 1:
            last = operand.static_shape[-1] - 1
            told = Interval.of_type(value.static_shape, value.element_type)
            zero = np.zeros_like(told.lo)
            return told.between(zero, zero + last).because(Evidence.at(node, Code.TOP_K_INDICES(last + 1)))
        told = self.interval(operand, frame, depth + 1)
        low, high = told.hull()
        told = Interval.of_type(value.static_shape, value.element_type)
        zero = np.zeros_like(told.lo)
        return told.between(zero + low, zero + high).because(Evidence.at(node, Code.TOP_K(), merge((told.evidence,))))

    # --- negative-index normalisation ---

    def _select(self, node: Node, frame: Frame | None, depth: int) -> Interval:
        """A select, each branch under what the predicate says of it: `select(i < 0, i + D, i)` with i in [-D, D-1]
        is in [0, D-1], because i + D is looked at for negative i alone, and i for the others."""
        value = node.result()
        if not (is_tracked(value) and is_tracked(node.operand(0))):
            return self._unknown(value, Code.RESULT_OF("select"), node)
        operands, frame = self._passed(node.operands, frame)
        predicate, on_true, on_false = operands
        condition = self.interval(predicate, frame, depth + 1)
        whole = choose(node, condition, *(self.interval(v, frame, depth + 1) for v in (on_true, on_false)))
        best = whole
        for subject in subjects(predicate):
            if is_tracked(subject) and any(self._is_of(branch, subject) for branch in (on_true, on_false)):
                told = self._chosen_under(node, operands, condition, subject, frame, depth)
                if _width(told) < _width(best):
                    best = told
        least, greatest = best.hull()
        if best is whole or least < 0:  # it did not help: the branches' own evidence says why
            return best
        return best.because(Evidence.at(node, Code.NORMALISED(least, greatest), merge((best.evidence,))))

    def _passed(self, operands: tuple[Value, ...], frame: Frame | None) -> tuple[tuple[Value, ...], Frame | None]:
        """The operands of a select as its function's caller sees them, where all of them come from there: JAX puts
        `where` into a function of its own, and what the predicate says of a branch shows only outside of it."""
        while frame is not None and all(_is_passed(operand) for operand in operands):
            operands = tuple(frame.call.operand(operand.number) for operand in operands)
            frame = frame.caller
        return operands, frame

    def _chosen_under(
        self,
        node: Node,
        operands: tuple[Value, ...],
        condition: Interval,
        subject: Value,
        frame: Frame | None,
        depth: int,
    ) -> Interval:
        """A select where each branch is looked at for those values of the subject with which it is taken."""
        predicate, on_true, on_false = operands
        when_true, when_false = (given(self, predicate, truth, subject, frame, depth) for truth in (True, False))
        branches = (
            self._under(on_true, subject, when_true, frame, depth),
            self._under(on_false, subject, when_false, frame, depth),
        )
        # Where the predicate leaves no value for a branch, the branch is not taken.
        condition = condition.between(
            pick(when_false.lo > when_false.hi, 1, condition.lo),
            pick(when_true.lo > when_true.hi, 0, condition.hi),
        )
        return choose(node, condition, *branches)

    @staticmethod
    def _is_of(branch: Value, subject: Value) -> bool:
        """Whether a branch is the subject or one op on it."""
        node = branch.node
        return branch == subject or (node is not None and subject in node.operands)

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


def is_seen_by(argument: Value, own: Frame | None, value: Value, frame: Frame | None) -> bool:
    """Whether a value may depend on an argument of a block, each looked at through its frame."""
    block = argument.block
    if block is None or block.owner.name == "func.func":
        return True  # a function's argument is seen wherever its function calls
    at = value.node or (value.block and value.block.owner)
    while frame is not own:
        if frame is None:
            return False
        at, frame = frame.call, frame.caller
    while at is not None and at != block.owner:
        at = at.parent
    return at is not None


def _width(told: Interval) -> int:
    least, greatest = told.hull()
    return greatest - least


def _is_passed(value: Value) -> bool:
    """Whether a value is an argument of a function."""
    block = value.block
    return block is not None and block.owner.name == "func.func"


def is_tracked(value: Value) -> bool:
    """Whether a value is an integer or boolean tensor of static shape."""
    tensor = value.tensor_type
    return tensor is not None and tensor.is_static and type_range(tensor.element_name) is not None
