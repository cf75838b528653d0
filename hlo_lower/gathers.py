"""Lower the gathers of a module that the target does not take as they are, before its scatters are planned."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hlo_lower import mlir
from hlo_lower.analysis import IndexAnalysis
from hlo_lower.gather import GatherForm, Taken, gather_facts, read_gather
from hlo_lower.gather.facts import GATHER
from hlo_lower.graph import Builder, Graph, Node, Value, erase, erase_built
from hlo_lower.legality import refused_of
from hlo_lower.legalize.change import Change, Outcome, grouped
from hlo_lower.lowerings.dynamic_gather import DYNAMIC_GATHER, DynamicGatherFacts, DynamicGatherLowering
from hlo_lower.lowerings.gather import GatherLowering
from hlo_lower.lowerings.sharding import keep_attributes
from hlo_lower.registry import Choice, CompositeLoweringRegistry, Facts, NoRuleError, Without
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
    known = [(node, _read(node, analysis, target)) for node in gathers_of(graph)]
    with mlir.active(graph.context):
        changes = [change for node, gather in known if (change := _lowered(graph, node, gather, target, registry))]
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


@dataclass(frozen=True)
class _Gather:
    """A gather and what is known of it.

    Attributes:
      op: the name under which its rules are registered.
      taken: how the target takes it.
      forms: its facts in each form that its sizes allow, the cheapest first.
      given: what a rule is given, from the facts that it was chosen by and a builder.
    """

    node: Node
    op: str
    taken: Taken
    forms: Sequence[Facts]
    given: Callable[[Any, Builder], object]


def _read(node: Node, analysis: IndexAnalysis, target: Target) -> _Gather | None:
    """What is known of a gather; None where it is of a quantized type."""
    refused = target.refusal(GATHER, (mlir.tensor_element_name(node.operand(0).raw.type),)) is not None
    takes = Taken.NOT if refused else Taken.IN_BOUNDS if target.gather else Taken.WHOLE
    if not all(value.is_static for value in (*node.operands, *node.results)):
        forms = (DynamicGatherFacts(takes),)
        return _Gather(node, DYNAMIC_GATHER, takes, forms, lambda _, build: DynamicGatherLowering(node, build))
    gather = read_gather(node)
    if gather is None:
        return None
    facts = gather_facts(gather, analysis, takes=takes, sizes=target.sizes)
    forms = tuple(map(facts.in_form, (*facts.forms, GatherForm.MANY)))
    return _Gather(node, GATHER, facts.taken, forms, lambda told, build: GatherLowering(gather, told, build))


def _lowered(
    graph: Graph, node: Node, gather: _Gather | None, target: Target, registry: CompositeLoweringRegistry
) -> Change | None:
    """Lower one gather; what became of it, or None where it stays because it is taken."""
    where = str(graph.location(node))
    if gather is None:
        return Change(Outcome.LEFT, GATHER, "of a quantized element type", where)
    without: Without = ()
    while True:
        try:
            told, choice = _chosen(gather, target, registry, without)
        except NoRuleError as error:
            rule, reason = error.nearest[0]
            why = f"{target.name} takes no form of it; {rule.short_name}: {reason}"
            if gather.op is DYNAMIC_GATHER:
                why = "of dynamic shape, which is only clamped: --bind gives the sizes"
            return Change(Outcome.LEFT, GATHER, why, where)
        build = Builder.before(node)
        values: Sequence[Value] = tuple(choice.rule.lowering(gather.given(told, build)))
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
    gather: _Gather, target: Target, registry: CompositeLoweringRegistry, without: Without
) -> tuple[Facts, Choice]:
    """The rule of the cheapest form that has one of its own, else the one for every size.

    Raises:
      NoRuleError: the target takes none.
    """
    for told in gather.forms[:-1]:
        try:
            choice = registry.select(gather.op, told, target, without)
        except NoRuleError:
            continue
        if "size" in choice.rule.constraints or gather.taken is not Taken.NOT:
            return told, choice
    return gather.forms[-1], registry.select(gather.op, gather.forms[-1], target, without)
