"""`chlo.top_k`, and the composite of that name, written out as a sort for a target that refuses sorts, or in f32.

The sort is lowered then. A top_k is looked at after scatters, whose indices it may be told to be distinct by. It is not
a kind of its own: its rules are those of its op.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from hlo_lower.base.change import Change
from hlo_lower.facts.sort.canonical_sort import rows_read
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.engine.engine import run_stage
from hlo_lower.lowering.engine.kind import Context, Subject
from hlo_lower.lowering.engine.legality import Refusal, dtypes_on, refused_by_name
from hlo_lower.lowering.plain.chlo import ChloFacts, ChloKind, TakenChlo
from hlo_lower.lowering.plain.composite import (
    CompositeKind,
    TakenComposite,
    composite_facts,
    is_taken_in_f32,
    is_top_k_in_f32,
)
from hlo_lower.lowering.sort import TOP_K, becomes_sort
from hlo_lower.ops.cleanup import erase, erase_uncalled
from hlo_lower.ops.names import SORT
from hlo_lower.ops.targets.target import Target


class TopKCompositeKind(CompositeKind):
    """Composites of that name: calls of their decompositions.

    Attributes:
      called: the decompositions that are called then.
    """

    def __init__(self) -> None:
        self.called: set[str] = set()

    def read(self, context: Context, node: Node) -> Subject | None:
        """None where the target takes it, or sorts."""
        if mlir.symbol_name(node.raw.attributes["name"]) != TOP_K:
            return None
        facts = composite_facts(context.graph, node, whole=())
        if is_top_k_in_f32(context.target, node, facts):
            facts = replace(facts, taken=TakenComposite.IN_F32)
        elif becomes_sort(context.target, node):
            self.called.add(node.body_name)
        else:
            return None
        return self.subject(context, node, facts, label=f'{self.op} "{TOP_K}"')


class TopKKind(ChloKind):
    """Ops of that name."""

    op = TOP_K  # pyright: ignore[reportAssignmentType] (rules stand under "chlo.")

    def __init__(self, within: Collection[str] = ()) -> None:
        """Args: within: functions in which none is taken whole."""
        self._within = within

    def read(self, context: Context, node: Node) -> Subject | None:
        """None where the target takes it, or sorts."""
        is_within = context.graph.function_of(node).name in self._within
        if not is_within and is_taken_in_f32(context.target, node, TOP_K):
            return self.subject(context, node, ChloFacts(TakenChlo.IN_F32, TOP_K))
        if not is_within and not becomes_sort(context.target, node):
            return None
        return self.subject(context, node, ChloFacts(TakenChlo.WRITTEN_OUT, TOP_K))

    def refusal(self, target: Target, graph: Graph, built: Sequence[Node]) -> Refusal | None:
        """Sorts are what is lowered next."""
        within = {inner for node in built if node.name == SORT for inner in mlir.operations_within(node.raw)}
        return refused_by_name(target, graph, [node for node in built if node.raw not in within])


# --- what comes before the sorts that a target refuses: `top_k` as a sort, and calls of sorts inlined ---
#
# `jnp.sort(x)[:k]` is a slice of a call: the sort stands in a function of its own, and does not show that k rows are
# all.


MOST_NODES = 64
"""A function of more operations is not inlined."""


def top_k_to_sorts(context: Context) -> tuple[Change, ...]:
    """Write each `top_k` that the target would have as a sort, which it rejects, as one, in place; what became of each.

    Raises:
      NotLoweredError: a rule is broken, or two contradict each other.
    """
    composites = TopKCompositeKind()
    changes = run_stage(context, [composites])
    return changes + run_stage(context.afresh(), [TopKKind(composites.called)])


def inline_sorts(graph: Graph, target: Target) -> None:
    """Inline functions that return what a sort gives which the target refuses, where a part of it is read, in place."""
    with mlir.active(graph.context):
        calls = [call for function in _sorting(graph, target) for call in _read_in_part(graph, *function)]
        for call in calls:
            _inline(graph, call)
        if calls:
            graph.forget()
            erase_uncalled(graph, {name for name in graph.functions if not graph.calls_of(name)})
            graph.forget()


def _sorting(graph: Graph, target: Target) -> Iterator[tuple[str, Node]]:
    """The private functions that return what a sort gives which the target refuses, and the sort."""
    for name, function in graph.functions.items():
        if function.is_public or not function.has_body:
            continue
        nodes = list(function.body.nodes)
        for node in nodes if len(nodes) <= MOST_NODES else ():
            if node.name == SORT and target.refusal(SORT, dtypes_on(node)) is not None:
                users = {user for result in node.results for user in result.users}
                if users == {function.body.terminator}:
                    yield name, node


def _read_in_part(graph: Graph, name: str, sort: Node) -> Iterator[Node]:
    """The calls of a function of whose sorted results only a part is read."""
    returned = graph.functions[name].body.terminator.operands
    places = [k for k, value in enumerate(returned) if value.node == sort]
    for call in graph.calls_of(name):
        is_plain = set(mlir.attributes_of(call.raw)) == {"callee"}  # no sharding, which would be lost
        results = [call.result(k) for k in places]
        if is_plain and sort.operand(0).is_static and rows_read(call, results, sort) is not None:
            yield call


def _inline(graph: Graph, call: Node) -> None:
    found = Builder.before(call).inline(graph.functions[call.callee].body, call.operands)
    mlir.replace_results(call.raw, [value.raw for value in found])
    erase(graph, call)
