"""Legalize a module: composites, then known custom calls, then `chlo` operations."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from hlo_lower import mlir
from hlo_lower.errors import NotLoweredError
from hlo_lower.graph import Builder, Graph, Node, erase_uncalled, replace_results
from hlo_lower.legalize.change import Change, Outcome, grouped
from hlo_lower.legalize.chlo import write_out
from hlo_lower.legalize.custom_calls import CUSTOM_CALL, KNOWN, NOTES, target_name, to_chlo
from hlo_lower.lowerings.composite import COMPOSITE, CompositeLowering, composite_facts
from hlo_lower.lowerings.sharding import keep_attributes
from hlo_lower.registry import CompositeLoweringRegistry, NoRuleError
from hlo_lower.targets import Target

EXPECTED = {"shape_assertion": "JAX checks a size with it; binding the sizes (--bind) checks and removes it"}
"""Custom calls of which more can be said than that nobody knows them."""

COMPOSITE_ATTRIBUTES = frozenset({"name", "composite_attributes", "decomposition", "version"})


@dataclass
class _Found:
    """What a module holds that is not plain StableHLO."""

    composites: list[Node] = field(default_factory=list[Node])
    custom_calls: list[Node] = field(default_factory=list[Node])
    chlo: dict[Node, list[Node]] = field(default_factory=dict[Node, list[Node]])

    @classmethod
    def within(cls, graph: Graph) -> "_Found":
        found = cls()

        def visit(raw: mlir.RawOperation) -> None:
            name = raw.name
            if name == COMPOSITE:
                found.composites.append(Node(raw))
            elif name == CUSTOM_CALL:
                found.custom_calls.append(Node(raw))
            elif name.startswith("chlo."):
                node = Node(raw)
                found.chlo.setdefault(graph.function_of(node).node, []).append(node)

        mlir.walk(graph.module.operation, visit)
        return found


def legalize(graph: Graph, target: Target, registry: CompositeLoweringRegistry) -> tuple[Change, ...]:
    """Make what is not plain StableHLO plain, in place, before scatters are planned.

    Functions keep their names, scatters and all other operations their order, places and attributes; a module without
    such operations stays as it is, byte for byte.

    Args:
      graph: the module.
      target: who reads it: what it takes whole, by `composites`, is kept.
      registry: the rules of composites, among others.

    Returns:
      What was changed, kept and left, grouped by kind; custom calls that nobody knows are told here, not refused.

    Raises:
      NotLoweredError: jaxlib's pass fails.
    """
    found = _Found.within(graph)
    if not (found.composites or found.custom_calls or found.chlo):
        return ()
    changes: list[Change] = []
    unnamed: set[str] = set()
    with mlir.active(graph.context):
        for node in found.composites:
            changes.append(_of_composite(graph, node, target, registry, unnamed))
        changes.extend(_of_custom_calls(graph, found.custom_calls, target))
        graph.forget()
        erase_uncalled(graph, unnamed)
        changes.extend(_of_chlo(graph, found, target))
    graph.forget()
    return grouped(changes)


def _of_composite(
    graph: Graph, node: Node, target: Target, registry: CompositeLoweringRegistry, unnamed: set[str]
) -> Change:
    """Lower one composite by its rule; decompositions that lost a reference are added to `unnamed`."""
    facts = composite_facts(graph, node, whole=target.composites)
    op, where = f'{COMPOSITE} "{facts.full_name}"', str(graph.location(node))
    try:
        rule = registry.select(COMPOSITE, facts, target).rule
    except NoRuleError:
        return Change(Outcome.LEFT, op, "no rule fits it", where)
    body, build = node.body_name, Builder.before(node)
    values = tuple(rule.lowering(CompositeLowering(node, facts, build)))
    if values == node.results:
        return Change(Outcome.KEPT, op, f"{target.name} takes it whole", where)
    values = keep_attributes(node, values, build, COMPOSITE_ATTRIBUTES)
    replace_results(node, values)
    node.raw.erase()
    unnamed.add(body)
    told = f"{rule.form} ({rule.name})"
    return Change(Outcome.LEGALIZED, op, f"{told}: {facts.claim}" if facts.claim else told, where)


def _of_custom_calls(graph: Graph, nodes: list[Node], target: Target) -> Iterator[Change]:
    for node in nodes:
        name = target_name(node)
        if name in NOTES:
            continue
        where = str(graph.location(node))
        reason = EXPECTED.get(name) or to_chlo(node)
        outcome = Outcome.LEGALIZED if reason is None else Outcome.LEFT
        became = "its chlo operation" if KNOWN.get(name) in target.composites else "its chlo operation, then StableHLO"
        yield Change(outcome, f"{CUSTOM_CALL} @{name}", reason or became, where)


def _of_chlo(graph: Graph, found: _Found, target: Target) -> Iterator[Change]:
    """Write the `chlo` operations out, those that custom calls became included; told are those that were there."""
    told: dict[str, list[str]] = {}
    for nodes in found.chlo.values():
        for node in nodes:
            told.setdefault(node.name, []).append(str(graph.location(node)))
    for function, nodes in _Found.within(graph).chlo.items():
        kept = [node for node in nodes if node.name in target.composites]
        if len(kept) == len(nodes):
            continue
        rest = [node for node in nodes if node.name not in target.composites]
        names = ", ".join(sorted({node.name for node in rest}))
        try:
            write_out(graph, function, rest, kept)
        except mlir.PassError as error:
            raise NotLoweredError(
                graph.name,
                f"jaxlib cannot write the chlo operations of a function out: {error}",
                facts=f"operations: {names}",
                next_step="--no-legalize leaves them",
            ) from None
    left = {node.name for nodes in _Found.within(graph).chlo.values() for node in nodes}
    for name, places in told.items():
        if name in target.composites:
            yield Change(Outcome.KEPT, name, f"{target.name} takes it whole", places[0], len(places))
        elif name in left:
            yield Change(Outcome.LEFT, name, "jaxlib has no StableHLO form for it", places[0], len(places))
        else:
            yield Change(Outcome.LEGALIZED, name, "jaxlib's StableHLO form", places[0], len(places))
