"""What comes before the sorts that a target refuses: `top_k` as a sort, and calls of sorts inlined.

`jnp.sort(x)[:k]` is a slice of a call: the sort stands in a function of its own, and does not show that k rows are all.
"""

from collections.abc import Iterator

from hlo_lower.base.change import Change
from hlo_lower.facts.sort.canonical_sort import rows_read
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.legality import dtypes_on
from hlo_lower.lowering.engine.stage import run_stage
from hlo_lower.lowering.sort.top_k import TopKCompositeKind, TopKKind
from hlo_lower.ops.cleanup import erase, erase_uncalled
from hlo_lower.ops.names import SORT
from hlo_lower.ops.targets.target import Target

MOST_NODES = 64
"""A function of more operations is not inlined."""


def top_k_to_sorts(context: Context) -> tuple[Change, ...]:
    """Write each `top_k` that the target would have as a sort, which it refuses, as one, in place; what became of each.

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
    """Put copies of what a function holds in the place of a call."""
    found = Builder.before(call).inline_before(call, graph.functions[call.callee].body, call.operands)
    for result, value in zip(call.results, found, strict=True):
        result.raw.replace_all_uses_with(value.raw)
    erase(graph, call)
