"""Plan a lowering: classify each scatter of a module and choose its rule, or say why there is none."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from math import prod
from typing import Literal

from hlo_lower import english, mlir
from hlo_lower.analysis import IndexAnalysis
from hlo_lower.analysis.twins import Twins
from hlo_lower.causes import Cause, Code
from hlo_lower.errors import InputError, NotLoweredError, RegistryError
from hlo_lower.graph import Graph, Node
from hlo_lower.legality import ScatterTarget
from hlo_lower.native import kept_by
from hlo_lower.preference import Preference
from hlo_lower.registry import Choice, CompositeLoweringRegistry, NoRuleError, Without
from hlo_lower.scatter.canonical import CanonicalScatter, NotCanonicalError, canonicalize
from hlo_lower.scatter.classify import classify as classify_scatter
from hlo_lower.scatter.describe import describe, describe_dynamic, describe_refused, describe_twin
from hlo_lower.scatter.dynamic import DYNAMIC_SCATTER, DynamicFacts, DynamicScatter, classify_dynamic, read_dynamic
from hlo_lower.scatter.effects import refuse_side_effects
from hlo_lower.scatter.facts import Dialect, FloatMode, OutOfBounds, ScatterFacts
from hlo_lower.scatter.record import Rejection, ScatterRecord
from hlo_lower.scatter.spread import spread_dims
from hlo_lower.scatter.unfold import unfolded
from hlo_lower.scatter.uniform import constant_dims
from hlo_lower.scatter.unreduced import mesh_of, unreduced_scatters
from hlo_lower.targets import STABLEHLO, Target

SCATTER = "stablehlo.scatter"


@dataclass(frozen=True)
class Options:
    """How to lower; the keywords of `lower` and the flags of `hlo-lower convert`.

    Attributes:
      target: the consumer.
      oob: "xla" drops whole windows that are out of bounds, "spec" single elements.
      float_mode: "exact" keeps the order of float reductions, "reassociate" allows another; "" becomes the target's, or
        "exact" where it has none.
      trust_flags: take `unique_indices = true` as a proof.
      keep_unsupported: leave a scatter that no rule fits instead of failing.
      only, skip: lower only, or all but, the scatters whose location, scope, function or number ("#3") matches one of
        these patterns (`fnmatch`).
      sizes: symbolic sizes that are bound before lowering (see `hlo_lower.graph.bind`).
      prefer: rules that are taken wherever they are right ("last_writer"), and entries of the target's table of sizes
        with other values ("few_windows=64").
      legalize: make chlo, known mhlo custom calls and composites plain StableHLO first; None: as the target says.
      demote_i64: make 64-bit integers 32 bits wide first; None: as the target says.
      linalg_ops: for a target that reads linalg: "named" ops where there are any, or all "generic".
    """

    target: Target = STABLEHLO
    oob: Literal["xla", "spec"] = "xla"
    float_mode: Literal["exact", "reassociate", ""] = ""
    trust_flags: bool = False
    keep_unsupported: bool = False
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    sizes: tuple[tuple[str, int], ...] = ()
    prefer: tuple[str, ...] = ()
    legalize: bool | None = None
    demote_i64: bool | None = None
    linalg_ops: Literal["named", "generic"] = "named"

    def __post_init__(self) -> None:
        """Take what the target says where nothing is given."""
        object.__setattr__(self, "float_mode", self.float_mode or self.target.float_mode or "exact")
        for name in ("legalize", "demote_i64"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, getattr(self.target, name))


@dataclass(frozen=True)
class Plan:
    """One scatter and what was decided for it.

    Attributes:
      node: the scatter.
      record: what is told about it, the chosen rule included.
      scatter, facts, choice: its canonical form, what is known of it, and its rule; None as far as it did not get.
      kept: whether it has no rule because the target takes it as it is.
      error: why it has no rule, to be raised unless unsupported scatters are kept.
      op: the name under which its rules are registered.
      told: the facts that select the rule, for an error.
      without: rules that were chosen before and built what the target refuses, each with the reason.
    """

    node: Node
    record: ScatterRecord
    scatter: CanonicalScatter | DynamicScatter | None = None
    facts: ScatterFacts | DynamicFacts | None = None
    choice: Choice | None = None
    error: NotLoweredError | None = None
    kept: bool = False
    op: str = SCATTER
    told: str = ""
    without: Without = ()


class Planner:
    """Plans scatters; what was decided for one holds for its twins, which differ from it only in where they stand."""

    def __init__(self, graph: Graph, options: Options, registry: CompositeLoweringRegistry) -> None:
        self._graph = graph
        self._options = options
        self._registry = registry
        self._preference = Preference.of(options.prefer, options.target.sizes, registry.rules(SCATTER))
        self._analysis = IndexAnalysis(graph)
        self._narrows = options.target.index_type == "i32"
        self._twins = Twins(graph)
        self._first: dict[Hashable, Plan] = {}
        self.unreduced = unreduced_scatters(graph)

    def all(self) -> list[Plan]:
        """One plan per scatter, in program order; nothing is changed yet, so a fact about one holds for all of them."""
        return [self.plan(number, node) for number, node in enumerate(self._graph.scatters, start=1)]

    def again(self, plan: Plan, reason: Cause) -> Plan:
        """Another plan for a scatter whose rule built what the target refuses."""
        assert plan.choice is not None
        without = (*plan.without, (plan.choice.rule.name, reason))
        return self._chosen(replace(plan, choice=None, without=without))

    def plan(self, number: int, node: Node) -> Plan:
        """The plan of one scatter."""
        said = self.unreduced.get(node)
        if said is not None and mesh_of(said) is None:
            record = describe_refused(self._graph, number, node, self._options.oob, Code.UNREDUCED())
            return Plan(node, record, error=_unreduced(self._graph, node, said))
        indices = node.operand(len(node.raw.results))
        types = tuple(operand.type for operand in node.raw.operands)
        same = (types, self._twins.number(indices), self._twins.region(node.blocks[0]))
        several = indices.is_static and prod(indices.static_shape) > 1
        updates = list(node.raw.operands)[len(types) // 2 + 1 :] if several else ()
        alike = tuple(map(constant_dims, updates))
        key = (*same, alike, spread_dims(node.raw), tuple(mlir.attributes_of(node.raw).items()))
        if key in self._first:
            return self._as_twin(number, node, self._first[key])
        if not all(operand.is_static for operand in node.operands):
            return self._of_dynamic_shape(number, node)
        plan = self._anew(number, node)
        if plan.choice is not None or plan.kept:
            self._first[key] = plan
        return plan

    def _as_twin(self, number: int, node: Node, twin: Plan) -> Plan:
        assert twin.scatter is not None
        assert isinstance(twin.facts, ScatterFacts)
        other, trail = (self._twins.trail(n.operand(len(n.raw.results))) for n in (twin.node, node))
        record = describe_twin(self._graph, number, node, twin.facts, twin.record, (other, trail))
        return replace(twin, node=node, scatter=replace(twin.scatter, node=node), record=record)

    def _anew(self, number: int, node: Node) -> Plan:
        graph, options = self._graph, self._options
        try:
            refuse_side_effects(graph, node.blocks[0])
            scatter = canonicalize(node)
            if self._narrows and scatter.has_wide_indices:
                interval = self._analysis.interval(scatter.indices)
                scatter = replace(scatter, narrowed=True, index_range=interval.hull())
        except NotCanonicalError as error:
            record = describe_refused(graph, number, node, options.oob, error.cause)
            return Plan(node, record, error=_refused(graph, node, error.cause))
        scatter = unfolded(graph, scatter, self._analysis)
        facts = classify_scatter(
            graph,
            scatter,
            self._analysis,
            OutOfBounds(options.oob),
            FloatMode(options.float_mode),
            trust_flags=options.trust_flags,
            sizes=self._preference.sizes,
        )
        facts = replace(facts, dialect=Dialect(options.target.dialect))
        record = describe(graph, number, scatter, facts)
        told = f"subset={facts.subset.value} combiner={facts.combiner.value} dtype={record.dtype}"
        told += f" offsets={facts.offsets.value} in_bounds={facts.in_bounds.value} unique={facts.unique.value}"
        plan = Plan(node, record, scatter, facts, told=f"{told} oob={facts.oob.value}")
        if kept := kept_by(options.target, scatter, facts, "always"):
            return _kept(plan, kept)
        return self._chosen(plan)

    def _of_dynamic_shape(self, number: int, node: Node) -> Plan:
        graph, options = self._graph, self._options
        try:
            refuse_side_effects(graph, node.blocks[0])
            scatter = read_dynamic(node, narrowed=self._narrows)
        except NotCanonicalError as error:
            record = describe_refused(graph, number, node, options.oob, error.cause)
            return Plan(node, record, error=_refused(graph, node, error.cause))
        oob, float_mode = OutOfBounds(options.oob), FloatMode(options.float_mode)
        facts = classify_dynamic(graph, scatter, self._analysis, oob, float_mode)
        record = describe_dynamic(graph, number, scatter, facts)
        told = f"combiner={facts.combiner.value} positions={facts.positions.value} dtype={record.dtype}"
        told += f" window_sizes={facts.window_sizes.value} drops={facts.drops.value}"
        told += f" oob={facts.oob.value}"
        return self._chosen(Plan(node, record, scatter, facts, op=DYNAMIC_SCATTER, told=told))

    def _chosen(self, plan: Plan) -> Plan:
        """The plan with its rule, or why there is none."""
        graph, options, record = self._graph, self._options, plan.record
        assert plan.scatter is not None
        assert plan.facts is not None
        try:
            target = ScatterTarget.of(options.target, graph, plan.scatter, plan.facts)
            facts, choice = self._preference.choose(self._registry, plan.op, plan.facts, target, plan.without)
        except NoRuleError as error:
            if kept := _last_resort(plan, options.target):
                return _kept(plan, kept)
            nearest = tuple(Rejection(rule.name, reasons) for rule, reasons in error.nearest)
            refused = _no_rule(graph, record, plan.node, plan.told, error, options.target)
            record = replace(record, why=Code.NO_LOWERING(options.target.name), why_not=nearest)
            return replace(plan, record=record, error=refused)
        except RegistryError as error:
            raise _ambiguous(graph, plan.node, error, options.target) from None
        rejected = tuple(Rejection(rule.name, reasons) for rule, reasons in choice.rejected)
        regime = facts.regime.value if isinstance(facts, ScatterFacts) and facts.forms else None
        why = Code.CHOSEN(facts.drops.value, regime, choice.rule.place if choice.rule.origin else None)
        record = replace(record, rule=choice.rule.short_name, form=choice.rule.form, why=why, why_not=rejected)
        return replace(plan, record=record, facts=facts, choice=choice)


def _last_resort(plan: Plan, target: Target) -> Cause | None:
    """Why a scatter that has no lowering is kept; None where it is not."""
    if isinstance(plan.scatter, CanonicalScatter) and isinstance(plan.facts, ScatterFacts):
        return kept_by(target, plan.scatter, plan.facts, "no_lowering")
    return None


def _kept(plan: Plan, why: Cause) -> Plan:
    """The plan of a scatter that the target takes as it is."""
    return replace(plan, record=replace(plan.record, why=why), kept=True)


def check_preference(options: Options, registry: CompositeLoweringRegistry) -> None:
    """Check that what is preferred exists.

    Raises:
      InputError: there is no such rule or size.
    """
    Preference.of(options.prefer, options.target.sizes, registry.rules(SCATTER))


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


def _refused(graph: Graph, node: Node, reason: Cause) -> NotLoweredError:
    return NotLoweredError(
        where_of(graph, node),
        f"{SCATTER}: {english.told(reason)}",
        facts=f"operand {node.operands[0].raw.type}, {len(node.results)} result(s)",
        nearest=("every scatter of ranked tensors of plain element type has a lowering",),
        next_step="--keep-unsupported converts all but these",
    )


def _unreduced(graph: Graph, node: Node, said: str) -> NotLoweredError:
    return NotLoweredError(
        where_of(graph, node),
        f"{SCATTER}: its result is unreduced, a part of the sum on each device; a lowering gives each the whole",
        facts=said,
        nearest=("unreduced results are lowered where Shardy says so: sdy.sharding, sdy.sharding_constraint",),
        next_step="--keep-unsupported leaves it a scatter, or take `unreduced` out of the sharding",
    )


def _ambiguous(graph: Graph, node: Node, error: RegistryError, target: Target) -> NotLoweredError:
    return NotLoweredError(
        where_of(graph, node),
        f"{SCATTER}: no one rule for target {target.name}",
        facts=str(error),
        next_step="constrain one of the two rules further, or add one that is more specific than both",
    )


def _no_rule(
    graph: Graph, record: ScatterRecord, node: Node, told: str, error: NoRuleError, target: Target
) -> NotLoweredError:
    return NotLoweredError(
        where_of(graph, node),
        f"{SCATTER}: no lowering for target {target.name}",
        facts=told,
        nearest=tuple(f"{rule.name} ({rule.place}): {english.listed(told)}" for rule, told in error.nearest),
        next_step=f"hlo-lower report --explain {record.number} {graph.name}",
    )
