"""Index facts: walk from an index tensor to what produces it, and say between which bounds its elements lie.

The walk follows the producers that exporters put around an index through function calls: the result
of a call is looked up in the callee with this call's arguments; an argument of a private function that is looked at
from inside holds only what it holds at every call site (trap 40). Everything else may be anything in its type.
"""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.element_types import type_range
from hlo_lower.facts.ranges.floats import compared_floats
from hlo_lower.facts.ranges.folds import reduction_range, running_bounds, scatter_range
from hlo_lower.facts.ranges.interval import Interval, greater, lesser, pick
from hlo_lower.facts.ranges.loop_ranges import loop_range, uniform
from hlo_lower.facts.ranges.predicate_refinement import refine_by, subjects
from hlo_lower.facts.ranges.transfer import ELEMENTWISE, LEADING_OPERANDS, TRANSFER, choose
from hlo_lower.facts.values.budget import RANGES, Budget
from hlo_lower.facts.values.evidence import Evidence, merge, plain_name, source_of
from hlo_lower.facts.values.provider import Provider
from hlo_lower.facts.values.site import Site
from hlo_lower.facts.values.sources import Carried, OneOf, Same, Sources, Unknown
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.ops.names import CONSTANT, SLICE
from hlo_lower.ops.spec import LAYOUT

MAX_ELEMENTS = 1 << 22
"""Largest tensor that is tracked element by element: 4 Mi elements, 64 MiB of bounds."""

UNIFORM = ELEMENTWISE | LAYOUT | {CONSTANT, SLICE}
"""Ops that give a tensor whose elements have the same bounds where those of their operands have, at any shape."""


class IndexAnalysis(Provider[Site, Interval]):
    """Value ranges of the integer tensors of static shape of one graph.

    Attributes:
      graph: the module.
      loop_ranges: whether a range that a loop keeps may be proved by induction; how often one runs is looked at anyway.
      assumed: for an analysis made by `assuming`, what is taken as told.
      sources: what the module's sites come from.
    """

    def __init__(self, graph: Graph, outer: "IndexAnalysis | None" = None, *, loop_ranges: bool = True) -> None:
        super().__init__(Budget.of(RANGES, graph.op_count) if outer is None else outer.budget)
        self.graph, self.loop_ranges = graph, loop_ranges
        self.sources = Sources(graph) if outer is None else outer.sources
        self.assumed: Mapping[Site, Interval] = {}
        self._outer = outer
        self._newly_assumed: tuple[Site, ...] = ()  # what the outer analysis does not assume

    def assuming(self, assumed: Mapping[Site, Interval]) -> "IndexAnalysis":
        """An analysis of the same module that assumes these intervals, for proofs by induction."""
        hypothetical = IndexAnalysis(self.graph, self, loop_ranges=self.loop_ranges)
        hypothetical.assumed = {**self.assumed, **assumed}
        hypothetical._newly_assumed = tuple(assumed)
        return hypothetical

    def _elsewhere(self, key: Site) -> Interval | None:
        """The interval assumed for a site; or the outer analysis's, where no assumption matters to it."""
        if self._outer is None:
            return None
        assumed = self.assumed.get(key)
        if assumed is not None or any(map(key.sees, self._newly_assumed)):
            return assumed
        return self._outer.of(key)

    def _trim(self, found: Interval) -> Interval:
        """The interval element by element as long as there is memory, then one range for the tensor."""
        size = found.lo.size if found.lo is found.hi else found.lo.size + found.hi.size
        if size <= 2 or self._outer is not None:  # what rests on an assumption goes with it
            return found
        if size > self.budget.kept:
            return uniform(found, found.hull()).because(found.evidence)
        self.budget.kept -= size
        return found

    def _unknown(self, key: Site, why: Cause, node: Node | None = None) -> Interval:
        cause = Code.NOT_BOUNDED(why)
        evidence = Evidence(cause) if node is None else Evidence.at(node, cause)
        return Interval.of_type(key.value.static_shape, key.value.element_type, evidence)

    def _compute(self, key: Site) -> Interval:
        if prod(key.value.static_shape) > MAX_ELEMENTS:
            known = None if key.node is None else self._uniform(key.node, key)
            return known or self._unknown(key, Code.TOO_LARGE(MAX_ELEMENTS))
        match self.sources.of(key):
            case Same(site):
                return self.of(site)
            case OneOf() as origin:
                return self._one_of(key, origin)
            case Unknown(why, node):
                return self._unknown(key, why, node)
            case Carried(loop=loop) as origin:
                result, is_result = Code.RESULT_OF("while"), origin.inside is None
                why = result if is_result else source_of(self.graph, key.value)
                return loop_range(self, origin) or self._unknown(key, why, loop)
            case node:
                known = self._op_result(node, key)
                return known or self._unknown(key, Code.RESULT_OF(plain_name(node.name)), node)

    def _op_result(self, node: Node, site: Site) -> Interval | None:
        """The interval of a result of an operation, or None where no rule applies."""
        match plain_name(node.name):
            case "select":
                return self._select(node, site)
            case "reduce":
                return reduction_range(self, node, site)
            case "reduce_window":
                return running_bounds(self, node, site) or reduction_range(self, node, site)
            case "scatter":
                return scatter_range(self, node, site)
            case "compare" if not is_tracked(node.operand(0)):
                return compared_floats(self, node, site)
            case "sort":
                return self._sort(node, site)
            case "chlo.top_k":
                return self._top_k(node, site)
            case _:
                return self._transfer(node, site)

    def _transfer(self, node: Node, site: Site, refined: Mapping[Value, Interval] | None = None) -> Interval | None:
        name = node.name
        transfer = TRANSFER.get(name)
        if transfer is None or not is_tracked(node.result()):
            return None
        operands = node.operands[: LEADING_OPERANDS.get(name)]
        if not all(map(is_tracked, operands)):
            return None
        if not refined:
            return transfer(node, [*map(self.of, map(site.to, operands))])
        return transfer(node, [refined.get(o) or self.of(site.to(o)) for o in operands])

    def _uniform(self, node: Node, site: Site) -> Interval | None:
        """The interval of a large tensor whose elements all have the same bounds: a splat, or made of such as are."""
        if node.name not in UNIFORM or (node.name == CONSTANT and not mlir.is_splat(node.raw)):
            return None
        operands = node.operands[: LEADING_OPERANDS.get(node.name)]
        if not all(map(is_tracked, operands)):
            return None
        known = [self.of(site.to(o)) for o in operands]
        return self._transfer(node, site) if all(t.lo.size == t.hi.size == 1 for t in known) else None

    def _one_of(self, key: Site, origin: OneOf) -> Interval:
        """The interval of a value that is one of several."""
        if not all(is_tracked(site.value) for site in origin.sites):
            return self._unknown(key, origin.why, origin.node)
        known = [self.of(site) for site in origin.sites]
        if len(known) == 1:
            return known[0]
        lo, hi = known[0].lo, known[0].hi
        for other in known[1:]:
            lo, hi = lesser(lo, other.lo), greater(hi, other.hi)
        location = None if origin.node is None else origin.node.raw.location
        return known[0].between(lo, hi).because(Evidence(origin.why, location, merge(tuple(t.evidence for t in known))))

    # --- reordering ---

    def _sort(self, node: Node, site: Site) -> Interval | None:
        """A sort moves elements along one dim, each operand's in the same way."""
        operand = node.operand(site.value.number)
        if not is_tracked(operand) or 0 in site.value.static_shape:
            return None
        known = self.of(site.to(operand))
        dim = -1 if node.attribute("dimension") is None else node.integer("dimension")
        lo = known.lo.min(axis=dim, keepdims=True)
        hi = known.hi.max(axis=dim, keepdims=True)
        return known.between(lo, hi).because(Evidence.at(node, Code.SORTED(), merge((known.evidence,))))

    def _top_k(self, node: Node, site: Site) -> Interval | None:
        """The second result of a top_k numbers elements of the operand's last dim."""
        operand, value = node.operand(0), site.value
        if not operand.is_static or 0 in operand.static_shape or not is_tracked(value):
            return None
        like = Interval.of_type(value.static_shape, value.element_type)
        if value.number == 1:
            count = operand.static_shape[-1]
            return uniform(like, (0, count - 1)).because(Evidence.at(node, Code.TOP_K_INDICES(count)))
        known = self.of(site.to(operand))
        return uniform(like, known.hull()).because(Evidence.at(node, Code.TOP_K(), merge((known.evidence,))))

    # --- negative-index normalisation ---

    def _select(self, node: Node, site: Site) -> Interval | None:
        """A select, each branch under what the predicate says of it: `select(i < 0, i + D, i)` with i in [-D, D-1]
        is in [0, D-1], because i + D is looked at for negative i alone, and i for the others."""
        if not (is_tracked(site.value) and is_tracked(node.operand(0))):
            return None
        operands = _caller_operands([site.to(operand) for operand in node.operands])
        predicate, *branches = operands
        condition = self.of(predicate)
        whole = choose(node, condition, *map(self.of, branches))
        best = whole
        for subject in map(predicate.to, subjects(predicate.value)):
            if is_tracked(subject.value) and any(_is_of(branch.value, subject.value) for branch in branches):
                known = self._select_by_subject(node, operands, condition, subject)
                if _width(known) < _width(best):
                    best = known
        least, greatest = best.hull()
        if best is whole or least < 0:  # it did not help: the branches' own evidence says why
            return best
        return best.because(Evidence.at(node, Code.NORMALISED(least, greatest), merge((best.evidence,))))

    def _select_by_subject(self, node: Node, operands: Sequence[Site], condition: Interval, subject: Site) -> Interval:
        """The interval of a select, each branch with the values of the subject for which it is chosen."""
        predicate, on_true, on_false = operands
        when_true, when_false = (refine_by(self, predicate.value, truth, subject) for truth in (True, False))
        branches = self._under(on_true, subject, when_true), self._under(on_false, subject, when_false)
        # Where the predicate leaves no value for a branch, the branch is not taken.
        condition = condition.between(
            pick(when_false.lo > when_false.hi, 1, condition.lo), pick(when_true.lo > when_true.hi, 0, condition.hi)
        )
        return choose(node, condition, *branches)

    def _under(self, branch: Site, subject: Site, refined: Interval) -> Interval:
        """A branch of a select where subject is known more closely: the subject itself or one op on it."""
        if branch.value.shape != subject.value.shape:
            return self.of(branch)
        if branch == subject:
            return refined
        node = branch.node
        empty = bool(np.any(refined.lo > refined.hi))
        # Element by element only: the predicate says nothing about the elements that a reverse or a slice moves.
        if node is not None and node.name in ELEMENTWISE and subject.value in node.operands and not empty:
            known = self._transfer(node, branch, {subject.value: refined})
            if known is not None:
                return known
        return self.of(branch)


def _caller_operands(operands: list[Site]) -> list[Site]:
    """The operands of a select as its function's caller sees them, if all of them are arguments.

    JAX puts `where` into a function of its own, so the relation of predicate and branches shows only in the caller."""
    while None not in (passed := [operand.caller_site for operand in operands]):
        operands = [operand for operand in passed if operand is not None]
    return operands


def _is_of(branch: Value, subject: Value) -> bool:
    """Whether a branch is the subject or one op on it."""
    node = branch.node
    return branch == subject or (node is not None and subject in node.operands)


def _width(known: Interval) -> int:
    least, greatest = known.hull()
    return greatest - least


def is_tracked(value: Value) -> bool:
    """Whether a value is an integer or boolean tensor of static shape."""
    tensor = value.tensor_type
    return tensor is not None and tensor.is_static and type_range(tensor.element_name) is not None
