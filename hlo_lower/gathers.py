"""Lower the gathers of a module that the target does not take as they are, before its scatters are planned."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hlo_lower import english, mlir
from hlo_lower.analysis import IndexAnalysis
from hlo_lower.causes import Cause
from hlo_lower.gather import GatherForm, Taken, gather_facts, read_gather
from hlo_lower.gather.facts import GATHER
from hlo_lower.graph import Builder, Graph, Node, Value, erase, erase_built, replace_results
from hlo_lower.legality import dtypes_on, refused_of
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
    known = [_read(node, analysis, target) for node in gathers_of(graph)]
    with mlir.active(graph.context):
        found = [_lowered(graph, gather, target, registry) for gather in known if gather is not None]
    graph.forget()
    return grouped(change for change in found if change is not None)


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
      forms: its facts in each form that may do, the best first, the one that always does last; none where it has none.
      given: what a rule is given, from the facts that it was chosen by and a builder.
      left: why it is left where no rule fits, in other words than the registry's; or "".
    """

    node: Node
    op: str
    forms: Sequence[Facts]
    given: Callable[[Any, Builder], object]
    left: str = ""


def _read(node: Node, analysis: IndexAnalysis, target: Target) -> _Gather | None:
    """What is known of a gather; None where it has no canonical form and needs none."""
    refused = target.refusal(GATHER, dtypes_on(node)) is not None
    takes = Taken.NOT if refused else Taken.IN_BOUNDS if target.gather else Taken.WHOLE
    if not all(value.is_static for value in (*node.operands, *node.results)):
        told = "of dynamic shape, which is only clamped: --bind gives the sizes"
        forms = (DynamicGatherFacts(takes),)
        return _Gather(node, DYNAMIC_GATHER, forms, lambda _, build: DynamicGatherLowering(node, build), told)
    gather = read_gather(node)
    if gather is None and takes is Taken.WHOLE:
        return None
    if gather is None:
        return _Gather(node, GATHER, (), lambda _, build: None, "its element type, or an empty window, is not lowered")
    facts = gather_facts(gather, analysis, takes=takes, sizes=target.sizes)
    otherwise = replace(facts, taken=Taken.NOT)
    forms = tuple(map(otherwise.in_form, (*facts.forms, GatherForm.MANY)))
    if facts.taken is not Taken.NOT:
        forms = (facts, *forms)
    return _Gather(node, GATHER, forms, lambda told, build: GatherLowering(gather, told, build))


def _lowered(graph: Graph, gather: _Gather, target: Target, registry: CompositeLoweringRegistry) -> Change | None:
    """Lower one gather; what became of it, or None where its rule leaves it."""
    node = gather.node
    where, without = str(graph.location(node)), tuple[tuple[str, Cause], ...]()
    while True:
        try:
            told, choice = _chosen(gather, target, registry, without)
        except NoRuleError as error:
            nearest = "; ".join(f"{rule.short_name}: {english.listed(told)}" for rule, told in error.nearest[:1])
            return Change(Outcome.LEFT, GATHER, gather.left or f"{target.name} takes no form of it; {nearest}", where)
        build = Builder.before(node)
        values: Sequence[Value] = tuple(choice.rule.lowering(gather.given(told, build)))
        if values == node.results:
            return None
        refusal = refused_of(target, graph, build.built)
        if refusal is None:
            break
        erase_built(build.built, node)
        without = (*without, (choice.rule.name, refusal.reason))
    made = values[0].node
    if made is None or made.name != GATHER:  # a clamped one has all attributes already
        values = keep_attributes(node, values, build, GATHER_ATTRIBUTES)
    replace_results(node, values)
    erase(graph, node)
    return Change(Outcome.LOWERED, GATHER, f"{choice.rule.form} ({choice.rule.short_name})", where)


def _chosen(
    gather: _Gather, target: Target, registry: CompositeLoweringRegistry, without: Without
) -> tuple[Facts, Choice]:
    """The rule of the best form that has one of its own, else the one for every size.

    Raises:
      NoRuleError: the target takes none.
    """
    for told in gather.forms[:-1]:
        try:
            choice = registry.select(gather.op, told, target, without)
        except NoRuleError:
            continue
        if "size" in choice.rule.constraints or told["taken"] is not Taken.NOT:
            return told, choice
    if not gather.forms:
        raise NoRuleError(gather.op, ())
    return gather.forms[-1], registry.select(gather.op, gather.forms[-1], target, without)
