"""The main job: read, classify, choose a rule for each scatter, lower, check, write."""

import gc
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, cached_property
from typing import Literal

import jax.export

from hlo_lower import mlir
from hlo_lower.analysis import IndexAnalysis
from hlo_lower.errors import InputError, NotLoweredError
from hlo_lower.graph import (
    Builder,
    Graph,
    Node,
    Source,
    erase,
    erase_uncalled,
    read,
    to_bytecode,
    to_portable_artifact,
    to_text,
)
from hlo_lower.lowerings import default_registry
from hlo_lower.lowerings.context import ScatterLowering
from hlo_lower.registry import Choice, CompositeLoweringRegistry, NoRuleError
from hlo_lower.scatter.canonical import CanonicalScatter, NotCanonicalError, canonicalize
from hlo_lower.scatter.classify import classify as classify_scatter
from hlo_lower.scatter.describe import describe, describe_refused
from hlo_lower.scatter.facts import FloatMode, OutOfBounds, ScatterFacts
from hlo_lower.scatter.record import Rejection, ScatterRecord
from hlo_lower.targets import Target, target_named

SCATTER = "stablehlo.scatter"

SCATTER_ATTRIBUTES = frozenset({"scatter_dimension_numbers", "indices_are_sorted", "unique_indices"})


@dataclass(frozen=True)
class Options:
    """How to lower; the keywords of `lower` and the flags of `hlo-lower convert`.

    Attributes:
      target: name of the consumer.
      oob: "xla" drops whole windows that are out of bounds, "spec" single elements.
      float_mode: "exact" keeps the order of float reductions, "reassociate" allows another.
      trust_flags: take `unique_indices = true` as a proof.
      keep_unsupported: leave a scatter that no rule fits instead of failing.
      only, skip: lower only, or all but, the scatters whose location, scope, function or number ("#3") matches one of
        these patterns (`fnmatch`).
    """

    target: str = "stablehlo"
    oob: Literal["xla", "spec"] = "xla"
    float_mode: Literal["exact", "reassociate"] = "exact"
    trust_flags: bool = False
    keep_unsupported: bool = False
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Plan:
    """One scatter and what was decided for it."""

    node: Node
    record: ScatterRecord
    scatter: CanonicalScatter | None = None
    facts: ScatterFacts | None = None
    choice: Choice | None = None
    error: NotLoweredError | None = None


class Lowered:
    """A module after lowering.

    Attributes:
      graph: the rewritten module.
      records: one per scatter of the input, in program order.
      scatters_left: scatters that were not lowered (kept on request, or unsupported with `keep_unsupported`).
      op_count: operations in the input.
      options: how it was lowered.
    """

    def __init__(self, graph: Graph, records: tuple[ScatterRecord, ...], op_count: int, options: Options) -> None:
        self.options = options
        self.graph = graph
        self.records = records
        self.op_count = op_count
        self.scatters_left = sum(1 for record in records if not record.rule)

    @cached_property
    def text(self) -> str:
        """The module as text; with locations if the input had them."""
        return to_text(self.graph)

    def bytecode(self) -> bytes:
        """The module as MLIR bytecode, locations kept."""
        return to_bytecode(self.graph)

    def portable(self, version: str | None = None) -> bytes:
        """The module as a portable artifact of a StableHLO version, by default the current one."""
        return to_portable_artifact(self.graph, version)

    @cached_property
    def exported(self) -> jax.export.Exported:
        """The module as a callable `jax.export.Exported`.

        An `Exported` that was given keeps its calling convention (pytrees, names); a bare module gets flat arguments
        and results.
        """
        if self.graph.exported is not None:
            return replace(self.graph.exported, mlir_module_serialized=self.portable())
        from hlo_lower.verify.run import exported_from_module

        return exported_from_module(self.portable())


@contextmanager
def _collection_paused() -> Generator[None]:
    """Keep Python's cycle collector from running: each run walks all objects of JAX, and there are no cycles here."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@cache
def _built_in_rules() -> CompositeLoweringRegistry:
    """The built-in registry, built and checked once; nobody else adds to this one."""
    return default_registry()


def classify(
    graph: Graph, *, options: Options | None = None, registry: CompositeLoweringRegistry | None = None
) -> tuple[ScatterRecord, ...]:
    """One record per scatter, in program order, with the rule that would lower it.

    Args:
      graph: a module as `read` gives it.
      options: policy and target; only, skip and keep_unsupported do not matter.
      registry: the rules; by default the built-in ones.
    """
    options = options or Options()
    with _collection_paused():
        return tuple(plan.record for plan in _plan(graph, options, registry or _built_in_rules()))


def lower(
    source: Source | Graph,
    *,
    options: Options | None = None,
    name: str | None = None,
    registry: CompositeLoweringRegistry | None = None,
) -> Lowered:
    """Lower the scatters of a module.

    Args:
      source: whatever `read` takes, or a graph, which is left as it is.
      options: how; by default everything to plain StableHLO under XLA's out-of-bounds policy.
      name: name for messages and records.
      registry: the rules; by default the built-in ones.

    Raises:
      InputError: the input cannot be read, or a pattern of only or skip matches nothing.
      NotLoweredError: a scatter has no lowering.
    """
    with _collection_paused():
        return _lower(source, options or Options(), name, registry)


def _lower(
    source: Source | Graph, options: Options, name: str | None, registry: CompositeLoweringRegistry | None
) -> Lowered:
    graph = read(to_text(source), name or source.name) if isinstance(source, Graph) else read(source, name)
    if isinstance(source, Graph):
        graph.has_locations, graph.exported = source.has_locations, source.exported
    op_count = graph.op_count
    plans = _plan(graph, options, registry or _built_in_rules())
    chosen = _selected(plans, options, graph)
    for plan in chosen:
        if plan.error is not None and not options.keep_unsupported:
            raise plan.error
    target = target_named(options.target)
    uncalled: set[str] = set()
    with mlir.active(graph.context):
        for plan in chosen:
            uncalled |= _rewrite(graph, plan, target)
    erase_uncalled(graph, uncalled)
    problem = mlir.verify_module(graph.module)
    if problem is not None:
        raise NotLoweredError(graph.name, f"the lowered module does not verify: {problem}", next_step="report this")
    asked = {id(plan) for plan in chosen}
    records = tuple(_outcome(plan, asked=id(plan) in asked) for plan in plans)
    return Lowered(graph, records, op_count, options)


def _outcome(plan: _Plan, *, asked: bool) -> ScatterRecord:
    """The record of what became of a scatter: lowered by its rule, or kept and why."""
    if not asked:
        return replace(plan.record, rule="", why="kept on request (--only, --skip)")
    if plan.error is not None:
        return replace(plan.record, rule="", why=f"kept, no lowering: {plan.error.what}")
    return plan.record


# --- planning ---


def _plan(graph: Graph, options: Options, registry: CompositeLoweringRegistry) -> list[_Plan]:
    target = target_named(options.target)
    analysis = IndexAnalysis(graph)
    return [
        _plan_one(graph, number, node, analysis, options, registry, target)
        for number, node in enumerate(graph.scatters, start=1)
    ]


def _plan_one(
    graph: Graph,
    number: int,
    node: Node,
    analysis: IndexAnalysis,
    options: Options,
    registry: CompositeLoweringRegistry,
    target: Target,
) -> _Plan:
    try:
        scatter = canonicalize(node)
    except NotCanonicalError as error:
        record = describe_refused(graph, number, node, options.oob, str(error))
        return _Plan(node, record, error=_refused(graph, node, str(error)))
    facts = classify_scatter(
        graph,
        scatter,
        analysis,
        OutOfBounds(options.oob),
        FloatMode(options.float_mode),
        trust_flags=options.trust_flags,
    )
    record = describe(graph, number, scatter, facts)
    try:
        choice = registry.select(SCATTER, facts, target)
    except NoRuleError as error:
        return _Plan(node, record, scatter, facts, error=_no_rule(graph, number, node, facts, error, target))
    rejected = tuple(Rejection(rule.name, reason) for rule, reason in choice.rejected)
    rule = choice.rule.name.removeprefix("scatter_to_")
    why = f"{facts.subset.value} x {facts.combiner.value}, drops {facts.drops.value}: {choice.rule.form}"
    return _Plan(node, replace(record, rule=rule, why=why, why_not=rejected), scatter, facts, choice)


def _selected(plans: Sequence[_Plan], options: Options, graph: Graph) -> list[_Plan]:
    """The plans that only and skip leave."""
    chosen = list(plans)
    for patterns, keep in ((options.only, True), (options.skip, False)):
        if not patterns:
            continue
        matched = [p for p in plans if any(_matches(graph, p, pattern) for pattern in patterns)]
        for pattern in patterns:
            if not any(_matches(graph, p, pattern) for p in plans):
                places = ", ".join(sorted({p.record.location for p in plans})[:8]) or "none"
                raise InputError(
                    graph.name,
                    f"no scatter matches {pattern!r}",
                    facts=f"scatters are at {places}",
                    next_step=f"hlo-lower report --all {graph.name}",
                )
        ids = {id(p) for p in matched}
        chosen = [p for p in chosen if (id(p) in ids) is keep]
    return chosen


def _matches(graph: Graph, plan: _Plan, pattern: str) -> bool:
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


# --- rewriting ---


def _rewrite(graph: Graph, plan: _Plan, target: Target) -> set[str]:
    """Lower one scatter in place; the result names functions that may have lost their last call."""
    if plan.choice is None or plan.scatter is None or plan.facts is None:
        return set()
    node = plan.node
    build = Builder.before(node)
    values = plan.choice.rule.lowering(ScatterLowering(plan.scatter, plan.facts, graph, build))
    for op in sorted({built.name for built in build.built}):
        refusal = target.refusal(op)
        if refusal is not None:
            raise NotLoweredError(str(graph.location(node)), f"{SCATTER}: {plan.choice.rule.place} {refusal}")
    _keep_attributes(node, [value.node for value in values], build)
    for result, value in zip(node.results, values, strict=True):
        result.raw.replace_all_uses_with(value.raw)
    return erase(graph, node)


def _keep_attributes(scatter: Node, replacements: Sequence[Node | None], build: Builder) -> None:
    """Move attributes that are not the scatter's own (shardings) to the op that now gives its result (trap 30)."""
    extra = {k: v for k, v in mlir.attributes_of(scatter.raw).items() if k not in SCATTER_ATTRIBUTES}
    for node in replacements:
        if node is not None and node in build.built and len(node.results) == len(scatter.results):
            for name, value in extra.items():
                node.raw.attributes[name] = value


# --- errors ---


def _where(graph: Graph, node: Node) -> str:
    location = graph.location(node)
    if not location.line:
        return graph.name
    return f"{location.file}:{location.line}:{location.column}"


def _refused(graph: Graph, node: Node, reason: str) -> NotLoweredError:
    return NotLoweredError(
        _where(graph, node),
        f"{SCATTER}: {reason}",
        facts=f"operand {node.operands[0].raw.type}, {len(node.results)} result(s)",
        nearest=("every scatter of static shape and plain element type has a lowering",),
        next_step="refine the shapes before converting, or --keep-unsupported",
    )


def _no_rule(
    graph: Graph, number: int, node: Node, facts: ScatterFacts, error: NoRuleError, target: Target
) -> NotLoweredError:
    told = f"subset={facts.subset.value} combiner={facts.combiner.value} offsets={facts.offsets.value}"
    return NotLoweredError(
        _where(graph, node),
        f"{SCATTER}: no lowering for target {target.name}",
        facts=f"{told} in_bounds={facts.in_bounds.value} unique={facts.unique.value} oob={facts.oob.value}",
        nearest=tuple(f"{rule.name} ({rule.place}): {reason}" for rule, reason in error.nearest),
        next_step=f"hlo-lower report --explain {number} {graph.name}",
    )
