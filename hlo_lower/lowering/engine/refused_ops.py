"""What a target refuses of a whole module, whatever wrote it: each op and element type, how often, and where."""

from collections import Counter
from collections.abc import Iterator, Sequence

from hlo_lower.base.causes import AS_IT_IS, Cause, Code
from hlo_lower.base.change import BY_TARGET, SCATTER, RefusedOps
from hlo_lower.facts.scatter.record import ScatterRecord
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Block, Graph, Location, Node
from hlo_lower.lowering.engine.legality import RETURNS, dtypes_on, type_refusal
from hlo_lower.lowering.ranks import refused_rank
from hlo_lower.ops.names import COMPOSITE, CUSTOM_CALL
from hlo_lower.ops.refused_forms import is_taken_in_its_form, refused_form
from hlo_lower.ops.targets.target import Target

PLACES = 3
"""As many places are told of one thing that is refused."""

TAKEN = AS_IT_IS | {Code.KEPT_ON_REQUEST, Code.TAKEN_WHOLE}
"""Why an op without a rule stays, and is no refusal."""


def refused_ops(graph: Graph, target: Target, records: Sequence[ScatterRecord] = ()) -> tuple[RefusedOps, ...]:
    """What a target refuses of a module as it stands, the most frequent first.

    Args:
      graph: the module after lowering.
      target: the target.
      records: those of its scatters, which say why one was left and that another is kept as it is.
    """
    counts: Counter[tuple[str, Cause]] = Counter()
    places: dict[tuple[str, Cause], list[str]] = {}
    found = [(op, reason, place) for record in records for op, reason, place in _of_record(record, target)]
    if not target.restricts_only_scatter:
        found += ((op, reason, str(place_of(graph, node))) for node, op, reason in _find_refused(graph, target))
    for op, reason, place in found:
        counts[op, reason] += 1
        known = places.setdefault((op, reason), [])
        if place not in known and len(known) < PLACES:
            known.append(place)
    return tuple(
        RefusedOps(op, reason, count, tuple(places[op, reason]))
        for (op, reason), count in sorted(counts.items(), key=lambda item: (-item[1], item[0][0]))
    )


def place_of(graph: Graph, node: Node) -> Location:
    """The source place of an op; of one in a library's function, which names no file, that of its call."""
    place = graph.location(node)
    while graph.has_locations and place.file == graph.name and (callers := _callers(graph, node)):
        node = callers[0]
        place = graph.location(node)
    return place


def _callers(graph: Graph, node: Node) -> Sequence[Node]:
    """The calls of the function that an op is in; none of what is in no function, as a mesh."""
    try:
        return graph.calls.get(graph.function_of(node).name, ())
    except ValueError:
        return ()


def _of_record(record: ScatterRecord, target: Target) -> Iterator[tuple[str, Cause, str]]:
    if record.rule or record.why is None or record.why.code in TAKEN:
        return
    refusals = [reason for rejection in record.why_not for reason in rejection.reasons if reason.code in BY_TARGET]
    why = record.why.cause("reason") if record.why.code is Code.KEPT_UNSUPPORTED else record.why
    if target.refuses_op(SCATTER) is not None:
        yield SCATTER, refusals[0] if refusals and why.code is Code.NO_LOWERING else why, record.location


def _find_refused(graph: Graph, target: Target) -> Iterator[tuple[Node, str, Cause]]:
    """The refused ops besides scatters, in functions reachable from public ones."""
    seen: dict[tuple[str, frozenset[str]], Cause | None] = {}
    for node in (*map(Node, mlir.meshes(graph.module.operation)), *_reachable_nodes(graph, target)):
        if node.name == SCATTER:
            continue
        if (quirk := refused_form(graph, target, node)) is not None:
            yield node, node.name, Code.REFUSES_OPS(target.name, (node.name,), f"not in the form {quirk.word!r}")
        if (ranks := refused_rank(target, node)) is not None:
            yield (
                node,
                node.name,
                Code.REFUSES_OPS(target.name, (node.name,), "on {} dims, more than {}".format(*ranks)),
            )
        if is_taken_in_its_form(graph, target, node):
            continue
        key = (node.name, dtypes_on(node) if target.restricts_dtypes else frozenset[str]())
        if key not in seen:
            seen[key] = type_refusal(target, *key) or target.refusal(*key)
        if (reason := seen[key]) is not None:
            is_type = reason.code is Code.REFUSES_DTYPE and reason["op"] is None
            yield node, "" if is_type else node_label(node), reason


def _reachable_nodes(graph: Graph, target: Target) -> Iterator[Node]:
    """The ops that a consumer reads; composites that it accepts whole, it does not look into."""
    functions = [function for function in graph.functions.values() if function.is_public and function.has_body]
    known = {function.name for function in functions}

    def below(block: Block) -> Iterator[Node]:
        for node in block.nodes:
            if node.name in RETURNS or target.takes_whole(_target_name(node) or node.name, dtypes_on(node)):
                continue
            if node.name == "func.call":
                callee = graph.functions.get(node.callee)
                if callee is not None and callee.has_body and callee.name not in known:
                    known.add(callee.name)
                    functions.append(callee)
                continue
            yield node
            if node.has_regions:
                for inner in node.blocks:
                    yield from below(inner)

    for function in functions:  # which grows
        yield from below(function.body)


def _target_name(node: Node) -> str:
    """The name that a composite or a custom call gives; "" for other ops."""
    attribute = node.attribute({COMPOSITE: "name", CUSTOM_CALL: "call_target_name"}.get(node.name, ""))
    return "" if attribute is None else mlir.symbol_name(attribute)


def node_label(node: Node) -> str:
    """The name of an op, and of a composite or a custom call what it calls."""
    called = _target_name(node)
    return f"{node.name} @{called}" if called else node.name
