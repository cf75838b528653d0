"""Lower the gathers of a module that the target does not take as they are, before its scatters are planned."""

from collections.abc import Sequence

from hlo_lower import mlir
from hlo_lower.analysis import IndexAnalysis
from hlo_lower.gather import GatherFacts, GatherForm, Taken, gather_facts, read_gather
from hlo_lower.gather.canonical import CanonicalGather
from hlo_lower.gather.facts import GATHER
from hlo_lower.graph import Builder, Graph, Node, Value, erase, erase_built
from hlo_lower.legality import refused_of
from hlo_lower.legalize.change import Change, Outcome, grouped
from hlo_lower.lowerings.gather import GatherLowering
from hlo_lower.lowerings.sharding import keep_attributes
from hlo_lower.registry import Choice, CompositeLoweringRegistry, NoRuleError, Without
from hlo_lower.targets import Target

GATHER_ATTRIBUTES = frozenset({"dimension_numbers", "slice_sizes", "indices_are_sorted"})


def lower_gathers(graph: Graph, target: Target, registry: CompositeLoweringRegistry) -> tuple[Change, ...]:
    """Lower gathers in place, each by the rule that its facts and the target select.

    A target takes gathers as they are unless it refuses `stablehlo.gather`, on all element types or on some, or says
    that it takes those in bounds only (`Target.gather`). For one that takes all of them nothing is looked at.

    Args:
      graph: the module.
      target: who reads it.
      registry: the rules, of gathers among others.

    Returns:
      What was lowered and what was left, grouped by kind; what needs nothing is not told.
    """
    if not restricts_gathers(target):
        return ()
    analysis = IndexAnalysis(graph)
    known = [(node, _facts(node, analysis, target)) for node in gathers_of(graph)]
    with mlir.active(graph.context):
        changes = [change for node, found in known if (change := _lowered(graph, node, found, target, registry))]
    graph.forget()
    return grouped(changes)


def restricts_gathers(target: Target) -> bool:
    """Whether there is a gather that the target does not take as it is."""
    return bool(target.gather) or target.refuses_op(GATHER) is not None or target.restricts_dtypes


def gathers_of(graph: Graph) -> list[Node]:
    """The gathers of a module, in program order."""
    found: list[Node] = []

    def visit(raw: mlir.RawOperation) -> None:
        if raw.name == GATHER:
            found.append(Node(raw))

    mlir.walk(graph.module.operation, visit)
    return found


def _facts(node: Node, analysis: IndexAnalysis, target: Target) -> tuple[CanonicalGather, GatherFacts] | None:
    gather = read_gather(node)
    if gather is None:
        return None
    refused = target.refusal(GATHER, (gather.operand.element_type,)) is not None
    takes = Taken.NOT if refused else Taken.IN_BOUNDS if target.gather else Taken.WHOLE
    return gather, gather_facts(gather, analysis, takes=takes, sizes=target.sizes)


def _lowered(
    graph: Graph,
    node: Node,
    found: tuple[CanonicalGather, GatherFacts] | None,
    target: Target,
    registry: CompositeLoweringRegistry,
) -> Change | None:
    """Lower one gather; what became of it, or None where it stays because it is taken."""
    where = str(graph.location(node))
    if found is None:
        return Change(Outcome.LEFT, GATHER, "of dynamic shape: --bind gives the sizes", where)
    gather, facts = found
    without: Without = ()
    while True:
        try:
            told, choice = _chosen(facts, target, registry, without)
        except NoRuleError as error:
            rule, reason = error.nearest[0]
            return Change(
                Outcome.LEFT, GATHER, f"{target.name} takes no form of it; {rule.short_name}: {reason}", where
            )
        build = Builder.before(node)
        values: Sequence[Value] = tuple(choice.rule.lowering(GatherLowering(gather, told, build)))
        if tuple(values) == node.results:
            return None
        refusal = refused_of(target, graph, build.built)
        if refusal is None:
            break
        erase_built(build.built, node)
        without = (*without, (choice.rule.name, refusal.reason))
    values = keep_attributes(node, values, build, GATHER_ATTRIBUTES)
    for result, value in zip(node.results, values, strict=True):
        result.raw.replace_all_uses_with(value.raw)
    erase(graph, node)
    return Change(Outcome.LOWERED, GATHER, f"{choice.rule.form} ({choice.rule.short_name})", where)


def _chosen(
    facts: GatherFacts, target: Target, registry: CompositeLoweringRegistry, without: Without
) -> tuple[GatherFacts, Choice]:
    """The rule of the cheapest form that has one of its own, else the one for every size.

    Raises:
      NoRuleError: the target takes none.
    """
    forms = (*facts.forms, GatherForm.MANY)
    for told in map(facts.in_form, forms):
        try:
            choice = registry.select(GATHER, told, target, without)
        except NoRuleError:
            continue
        if "size" in choice.rule.constraints or told.size is GatherForm.MANY or facts.taken is not Taken.NOT:
            return told, choice
    return facts, registry.select(GATHER, facts, target, without)
