"""Plan a lowering: classify each scatter of a module and choose its rule, or say why there is none."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal

from hlo_lower import mlir
from hlo_lower.analysis import IndexAnalysis
from hlo_lower.analysis.twins import Trail, Twins
from hlo_lower.errors import InputError, NotLoweredError, RegistryError
from hlo_lower.graph import Graph, Node
from hlo_lower.legality import ScatterTarget
from hlo_lower.registry import Choice, CompositeLoweringRegistry, NoRuleError
from hlo_lower.scatter.canonical import CanonicalScatter, NotCanonicalError, canonicalize
from hlo_lower.scatter.classify import classify as classify_scatter
from hlo_lower.scatter.describe import describe, describe_refused, describe_twin
from hlo_lower.scatter.facts import FloatMode, OutOfBounds, ScatterFacts
from hlo_lower.scatter.record import Rejection, ScatterRecord
from hlo_lower.targets import STABLEHLO, Target

SCATTER = "stablehlo.scatter"


@dataclass(frozen=True)
class Options:
    """How to lower; the keywords of `lower` and the flags of `hlo-lower convert`.

    Attributes:
      target: the consumer.
      oob: "xla" drops whole windows that are out of bounds, "spec" single elements.
      float_mode: "exact" keeps the order of float reductions, "reassociate" allows another.
      trust_flags: take `unique_indices = true` as a proof.
      keep_unsupported: leave a scatter that no rule fits instead of failing.
      only, skip: lower only, or all but, the scatters whose location, scope, function or number ("#3") matches one of
        these patterns (`fnmatch`).
    """

    target: Target = STABLEHLO
    oob: Literal["xla", "spec"] = "xla"
    float_mode: Literal["exact", "reassociate"] = "exact"
    trust_flags: bool = False
    keep_unsupported: bool = False
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """One scatter and what was decided for it.

    Attributes:
      node: the scatter.
      record: what is told about it, the chosen rule included.
      scatter, facts, choice: its canonical form, what is known of it, and its rule; None as far as it did not get.
      error: why it has no rule, to be raised unless unsupported scatters are kept.
    """

    node: Node
    record: ScatterRecord
    scatter: CanonicalScatter | None = None
    facts: ScatterFacts | None = None
    choice: Choice | None = None
    error: NotLoweredError | None = None


def plan_scatters(graph: Graph, options: Options, registry: CompositeLoweringRegistry) -> list[Plan]:
    """One plan per scatter, in program order; nothing is changed yet, so a fact about one holds for all of them."""
    planner = _Planner(graph, options, registry)
    return [planner.plan(number, node) for number, node in enumerate(graph.scatters, start=1)]


class _Planner:
    """Plans scatters; what was decided for one holds for its twins, which differ from it only in where they stand."""

    def __init__(self, graph: Graph, options: Options, registry: CompositeLoweringRegistry) -> None:
        self._graph = graph
        self._options = options
        self._registry = registry
        self._analysis = IndexAnalysis(graph)
        self._twins = Twins()
        self._first: dict[Hashable, tuple[Plan, Trail]] = {}

    def plan(self, number: int, node: Node) -> Plan:
        """The plan of one scatter."""
        indices = node.operand(len(node.raw.results))
        types = tuple(operand.type for operand in node.raw.operands)
        same = (types, self._twins.number(indices), self._twins.region(node.blocks[0]))
        key = (*same, tuple(mlir.attributes_of(node.raw).items()))
        trail = self._twins.trail(indices)
        if key in self._first:
            return self._as_twin(number, node, trail, *self._first[key])
        plan = self._anew(number, node)
        if plan.choice is not None:
            self._first[key] = (plan, trail)
        return plan

    def _as_twin(self, number: int, node: Node, trail: Trail, twin: Plan, other: Trail) -> Plan:
        assert twin.scatter is not None
        assert twin.facts is not None
        record = describe_twin(self._graph, number, node, twin.facts, twin.record, (other, trail))
        return replace(twin, node=node, scatter=replace(twin.scatter, node=node), record=record)

    def _anew(self, number: int, node: Node) -> Plan:
        graph, options = self._graph, self._options
        try:
            scatter = canonicalize(node)
        except NotCanonicalError as error:
            record = describe_refused(graph, number, node, options.oob, str(error))
            return Plan(node, record, error=_refused(graph, node, str(error)))
        facts = classify_scatter(
            graph,
            scatter,
            self._analysis,
            OutOfBounds(options.oob),
            FloatMode(options.float_mode),
            trust_flags=options.trust_flags,
        )
        record = describe(graph, number, scatter, facts)
        try:
            choice = self._registry.select(SCATTER, facts, ScatterTarget.of(options.target, graph, scatter))
        except NoRuleError as error:
            nearest = tuple(Rejection(rule.name, reason) for rule, reason in error.nearest)
            refused = _no_rule(graph, record, node, facts, error, options.target)
            record = replace(record, why=f"no lowering for target {options.target.name}", why_not=nearest)
            return Plan(node, record, scatter, facts, error=refused)
        except RegistryError as error:
            raise _ambiguous(graph, node, error, options.target) from None
        rejected = tuple(Rejection(rule.name, reason) for rule, reason in choice.rejected)
        rule = choice.rule.name.removeprefix("scatter_to_")
        why = f"{facts.subset.value} x {facts.combiner.value}, drops {facts.drops.value}: {choice.rule.form}"
        if choice.rule.origin:
            why = f"{why}, by {choice.rule.place}"
        return Plan(node, replace(record, rule=rule, why=why, why_not=rejected), scatter, facts, choice)


def select_plans(plans: Sequence[Plan], options: Options, graph: Graph) -> list[Plan]:
    """The plans that only and skip leave.

    Raises:
      InputError: a pattern matches no scatter.
    """
    chosen = list(plans)
    for patterns, keep in ((options.only, True), (options.skip, False)):
        if not patterns:
            continue
        matched = [p for p in plans if any(_matches(graph, p, pattern) for pattern in patterns)]
        for pattern in patterns:
            if not any(_matches(graph, p, pattern) for p in plans):
                places = ", ".join(sorted({p.record.location for p in plans})[:8]) or "none"
                scopes = ", ".join(sorted({p.record.scope for p in plans if p.record.scope})[:4])
                raise InputError(
                    graph.name,
                    f"no scatter matches {pattern!r}",
                    facts=f"scatters are at {places}" + (f"; scopes are {scopes}" if scopes else ""),
                    next_step=f"hlo-lower report --all {graph.name}",
                )
        ids = {id(p) for p in matched}
        chosen = [p for p in chosen if (id(p) in ids) is keep]
    return chosen


def _matches(graph: Graph, plan: Plan, pattern: str) -> bool:
    location = graph.location(plan.node)
    names = (
        plan.record.location,
        f"{plan.record.location}:{location.column}",
        f"{location.file}:{location.line}",
        plan.record.scope,
        plan.record.function,
        f"#{plan.record.number}",
    )
    return any(fnmatchcase(name, pattern) for name in names)


# --- errors ---


def where_of(graph: Graph, node: Node) -> str:
    location = graph.location(node)
    if not location.line:
        return graph.name
    return f"{location.file}:{location.line}:{location.column}"


def _refused(graph: Graph, node: Node, reason: str) -> NotLoweredError:
    return NotLoweredError(
        where_of(graph, node),
        f"{SCATTER}: {reason}",
        facts=f"operand {node.operands[0].raw.type}, {len(node.results)} result(s)",
        nearest=("every scatter of static shape and plain element type has a lowering",),
        next_step="refine the shapes before converting, or --keep-unsupported",
    )


def _ambiguous(graph: Graph, node: Node, error: RegistryError, target: Target) -> NotLoweredError:
    return NotLoweredError(
        where_of(graph, node),
        f"{SCATTER}: no one rule for target {target.name}",
        facts=str(error),
        next_step="constrain one of the two rules further, or add one that is more specific than both",
    )


def _no_rule(
    graph: Graph, record: ScatterRecord, node: Node, facts: ScatterFacts, error: NoRuleError, target: Target
) -> NotLoweredError:
    told = f"subset={facts.subset.value} combiner={facts.combiner.value} dtype={record.dtype}"
    told += f" offsets={facts.offsets.value}"
    return NotLoweredError(
        where_of(graph, node),
        f"{SCATTER}: no lowering for target {target.name}",
        facts=f"{told} in_bounds={facts.in_bounds.value} unique={facts.unique.value} oob={facts.oob.value}",
        nearest=tuple(f"{rule.name} ({rule.place}): {reason}" for rule, reason in error.nearest),
        next_step=f"hlo-lower report --explain {record.number} {graph.name}",
    )
