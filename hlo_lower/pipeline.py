"""The main job: read, classify, choose a rule for each scatter, lower, check, write."""

import gc
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache, cached_property

import jax.export

from hlo_lower import mlir
from hlo_lower.errors import NotLoweredError
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
from hlo_lower.plan import SCATTER, Options, Plan, plan_scatters, select_plans
from hlo_lower.registry import CompositeLoweringRegistry
from hlo_lower.scatter.record import ScatterRecord
from hlo_lower.targets import Target, target_named

SCATTER_ATTRIBUTES = frozenset({"scatter_dimension_numbers", "indices_are_sorted", "unique_indices"})


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
        return tuple(plan.record for plan in plan_scatters(graph, options, registry or _built_in_rules()))


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
    plans = plan_scatters(graph, options, registry or _built_in_rules())
    chosen = select_plans(plans, options, graph)
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


def _outcome(plan: Plan, *, asked: bool) -> ScatterRecord:
    """The record of what became of a scatter: lowered by its rule, or kept and why."""
    if not asked:
        return replace(plan.record, rule="", why="kept on request (--only, --skip)")
    if plan.error is not None:
        return replace(plan.record, rule="", why=f"kept, no lowering: {plan.error.what}")
    return plan.record


def _rewrite(graph: Graph, plan: Plan, target: Target) -> set[str]:
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
