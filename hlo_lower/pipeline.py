"""The main job: read, legalize, classify, choose a rule for each scatter, lower, check, write."""

import gc
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax.export

from hlo_lower import english, mlir
from hlo_lower.causes import Code
from hlo_lower.containment import lowering
from hlo_lower.errors import InputError, NotLoweredError
from hlo_lower.gathers import lower_gathers
from hlo_lower.graph import (
    Builder,
    Graph,
    Node,
    Source,
    Value,
    bind,
    erase,
    erase_built,
    erase_uncalled,
    read,
    replace_results,
    to_bytecode,
    to_portable_artifact,
    to_text,
)
from hlo_lower.graph.nested import Nested, inner_first
from hlo_lower.graph.sizes import retyped
from hlo_lower.legality import refused_of
from hlo_lower.legalize import Change, Demotion, demote_i64, legalize
from hlo_lower.linalg import LinalgReport, to_linalg
from hlo_lower.lowerings.context import ScatterLowering
from hlo_lower.lowerings.dynamic_shape import DynamicScatterLowering
from hlo_lower.lowerings.sharding import keep_attributes
from hlo_lower.plan import SCATTER, Options, Plan, Planner, select_plans, where_of
from hlo_lower.plugins import installed_registry
from hlo_lower.registry import CompositeLoweringRegistry, Rule
from hlo_lower.scatter.dynamic import DynamicFacts, DynamicScatter
from hlo_lower.scatter.facts import ScatterFacts
from hlo_lower.scatter.record import ScatterRecord
from hlo_lower.scatter.unreduced import mesh_of
from hlo_lower.targets import Target

SCATTER_ATTRIBUTES = frozenset({"scatter_dimension_numbers", "indices_are_sorted", "unique_indices"})


@dataclass(frozen=True)
class PlainForm:
    """A module before its scatters are lowered, as text, and what was done to it."""

    text: str
    changes: tuple[Change, ...]
    demotion: Demotion | None


class Lowered:
    """A module after lowering.

    Attributes:
      graph: the rewritten module.
      records: one per scatter of the input, in program order.
      scatters_left: scatters that were not lowered (kept on request, or unsupported with `keep_unsupported`).
      unsupported: those of them that no rule fits.
      kept: those of them that the target takes as they are.
      op_count: operations in the input.
      options: how it was lowered.
      registry: the rules that were given; None where they were those that are installed.
      changes: what was legalized first, kept or left, beside scatters.
      demotion: what making 64-bit integers 32 bits wide rests on; None where that was not asked for.
    """

    def __init__(
        self,
        graph: Graph,
        records: tuple[ScatterRecord, ...],
        op_count: int,
        options: Options,
        *,
        unsupported: int = 0,
        kept: int = 0,
        registry: CompositeLoweringRegistry | None = None,
        changes: tuple[Change, ...] = (),
        demotion: Demotion | None = None,
    ) -> None:
        self.options = options
        self.changes = changes
        self.demotion = demotion
        self.registry = registry
        self.unsupported, self.kept = unsupported, kept
        self.graph = graph
        self.records = records
        self.op_count = op_count
        self.scatters_left = sum(1 for record in records if not record.rule)

    @cached_property
    def _in_linalg(self) -> tuple[Graph, LinalgReport] | None:
        """The module in linalg, where the target reads that."""
        if self.options.target.dialect != "linalg":
            return None
        graph = _copied(self.graph)
        return graph, to_linalg(graph, named=self.options.linalg_ops == "named")

    @property
    def linalg(self) -> LinalgReport | None:
        """How the module left in linalg; None for a target that reads StableHLO.

        Raises:
          NotLoweredError: jaxlib's pass fails.
        """
        return None if self._in_linalg is None else self._in_linalg[1]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done beside the scatters, and what the result rests on, a line each."""
        lines = [str(change) for change in self.changes]
        if self.options.float_mode == "reassociate":
            lines.append("float sums and products of scatters may be in another order (float mode reassociate)")
        if self.demotion is not None:
            lines += [f"narrowed: {self.demotion.summary()}"] if self.demotion.is_needed else []
            lines += [f"assumed, not checked: {assumption}" for assumption in self.demotion.assumptions]
        return (*lines, *(self.linalg.lines() if self.linalg is not None else ()))

    @cached_property
    def text(self) -> str:
        """The module as text, in the target's dialect; with locations if the input had them."""
        return self.stablehlo if self._in_linalg is None else to_text(self._in_linalg[0])

    @cached_property
    def stablehlo(self) -> str:
        """The module as StableHLO text, whatever the target's dialect: what XLA runs."""
        return to_text(self.graph)

    def bytecode(self) -> bytes:
        """The module as MLIR bytecode, in the target's dialect, locations kept."""
        return to_bytecode(self.graph if self._in_linalg is None else self._in_linalg[0])

    def portable(self, version: str | None = None) -> bytes:
        """The module as a portable artifact of a StableHLO version, by default the current one.

        Raises:
          InputError: the target reads linalg, of which there is none.
        """
        self._refuse_linalg("a portable artifact")
        return to_portable_artifact(self.graph, version)

    @cached_property
    def exported(self) -> jax.export.Exported:
        """The module as a callable `jax.export.Exported`.

        An `Exported` that was given keeps its calling convention (pytrees, names); a bare module gets flat arguments
        and results.

        Raises:
          InputError: the signature of a bare module has no form in JAX, it is partitioned over several devices, or the
            target reads linalg.
        """
        self._refuse_linalg("a jax.export.Exported")
        if self.graph.exported is not None:
            return replace(self.graph.exported, mlir_module_serialized=self.portable())
        from hlo_lower.verify.run import CannotRunError, exported_from_module

        try:
            return exported_from_module(self.portable())
        except CannotRunError as error:
            raise InputError(
                self.graph.name,
                f"the module cannot become a jax.export.Exported: {error}",
                next_step="write it as text, bytecode or a portable artifact",
            ) from None

    def _refuse_linalg(self, form: str) -> None:
        if self.options.target.dialect != "stablehlo":
            raise InputError(
                self.graph.name,
                f"{form} holds StableHLO, which is not what the target {self.options.target.name} reads",
                next_step="write it as text or bytecode (--emit), or choose another --target",
            )


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


def classify(
    graph: Graph, *, options: Options | None = None, registry: CompositeLoweringRegistry | None = None
) -> tuple[ScatterRecord, ...]:
    """One record per scatter, in program order, with the rule that would lower it.

    Args:
      graph: a module as `read` gives it.
      options: policy and target; only, skip and keep_unsupported do not matter.
      registry: the rules; by default the built-in ones and those of installed plug-ins.
    """
    options = options or Options()
    known = registry or installed_registry()
    with lowering(), _collection_paused():
        if options.legalize or options.demote_i64:
            graph = _copied(graph)
            _make_plain(graph, options, known)
        return tuple(plan.record for plan in Planner(graph, options, known).all())


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
      registry: the rules; by default the built-in ones and those of installed plug-ins.

    Raises:
      InputError: the input cannot be read, or a pattern of only or skip matches nothing.
      NotLoweredError: a scatter has no lowering.
    """
    with lowering(), _collection_paused():
        return _lower(source, options or Options(), name, registry)


def _lower(
    source: Source | Graph, options: Options, name: str | None, registry: CompositeLoweringRegistry | None
) -> Lowered:
    graph = _copied(source, name) if isinstance(source, Graph) else read(source, name)
    if options.sizes:
        graph = bind(graph, dict(options.sizes))
    op_count = graph.op_count
    known = registry or installed_registry()
    changes, demotion = _make_plain(graph, options, known)
    changes = (*changes, *lower_gathers(graph, options.target, known))
    planner = Planner(graph, options, known)
    plans = planner.all()
    chosen = select_plans(plans, options, graph)
    _raise_first(chosen, options)
    plans, chosen = _in_order(graph, plans, chosen, options.target)
    _raise_first(chosen, options)
    uncalled: set[str] = set()
    done: dict[int, Plan] = {}  # by identity: a plan's node is gone once it is lowered
    with mlir.active(graph.context):
        for plan in chosen:
            called, done[id(plan)] = _rewrite(graph, plan, planner, options.target)
            uncalled |= called
    erase_uncalled(graph, uncalled)
    problem = mlir.verify_module(graph.module)
    if problem is not None:
        raise NotLoweredError(graph.name, f"the lowered module does not verify: {problem}", next_step="report this")
    records = tuple(_outcome(done.get(id(plan), plan), asked=id(plan) in done) for plan in plans)
    unsupported = sum(plan.error is not None for plan in done.values())
    kept = sum(bool(plan.kept) for plan in done.values())
    made_plain: dict[str, Any] = {"changes": changes, "demotion": demotion}
    counts = {"unsupported": unsupported, "kept": kept}
    return Lowered(graph, records, op_count, options, registry=registry, **counts, **made_plain)


def _copied(source: Graph, name: str | None = None) -> Graph:
    """A graph of its own, to be changed."""
    graph = read(to_text(source), name or source.name)
    graph.has_locations, graph.exported = source.has_locations, source.exported
    return graph


def plain_form(source: Graph, options: Options, registry: CompositeLoweringRegistry | None) -> PlainForm:
    """What a module is before its scatters are lowered: legalized, and its 64-bit integers narrowed, as asked for.

    Raises:
      NotLoweredError: its integers cannot be narrowed.
    """
    graph = _copied(source)
    changes, demotion = _make_plain(graph, options, registry or installed_registry())
    return PlainForm(to_text(graph), changes, demotion)


def _make_plain(
    graph: Graph, options: Options, registry: CompositeLoweringRegistry
) -> tuple[tuple[Change, ...], Demotion | None]:
    """Legalize a graph and make its 64-bit integers narrower, in place, as far as that is asked for.

    In this order: what is demoted has to be plain StableHLO.
    """
    changes = legalize(graph, options.target, registry) if options.legalize else ()
    return changes, demote_i64(graph) if options.demote_i64 else None


def _raise_first(plans: Sequence[Plan], options: Options) -> None:
    """Raise the error of the first plan that has one, unless such scatters are kept."""
    error = next((plan.error for plan in plans if plan.error is not None), None)
    if error is not None and not options.keep_unsupported:
        raise error


def _in_order(graph: Graph, plans: list[Plan], chosen: list[Plan], target: Target) -> tuple[list[Plan], list[Plan]]:
    """All plans, and those that were chosen in the order in which they are lowered: inner ones first.

    A lowering copies the update computation, so a scatter that stands in it or in a function that it calls has to be
    lowered before. A plan is given up where such a scatter is kept and the target refuses it.
    """
    asked = {plan.node for plan in chosen}
    kept = {plan.node for plan in plans if plan.choice is None or plan.node not in asked}
    if len(graph.functions) == 1 and not kept:
        return plans, chosen[::-1]  # in one function what stands in the region of a scatter comes behind it
    nested = Nested(graph, SCATTER)
    within = {plan.node: nested.within(plan.node)[::-1] for plan in plans}
    by_node = {plan.node: plan for plan in plans}
    order = [by_node[node] for node in inner_first([plan.node for plan in plans], lambda node: within[node])]
    for k, plan in enumerate(order):
        held = next((by_node[n] for n in reversed(within[plan.node]) if n in kept), None)
        if held is not None and plan.choice is not None and target.refuses_op(SCATTER) is not None:
            if plan.node in asked:
                why = Code.HOLDS_KEPT(held.record.number, held.record.location)
                record = replace(plan.record, why=why)
                error = _holds(graph, plan, held)
                order[k] = by_node[plan.node] = replace(plan, choice=None, record=record, error=error)
            kept.add(plan.node)
    return [by_node[plan.node] for plan in plans], [plan for plan in order if plan.node in asked]


def _holds(graph: Graph, plan: Plan, held: Plan) -> NotLoweredError:
    """A scatter cannot be lowered because one that is kept stands in its update computation."""
    number, inner = plan.record.number, held.record.number
    return NotLoweredError(
        where_of(graph, plan.node),
        f"{SCATTER}: {english.told(Code.HOLDS_KEPT(inner, held.record.location))}",
        facts="a lowering copies the update computation",
        next_step=f"lower #{inner}, too, or leave both: --skip '#{number}' --skip '#{inner}'",
    )


def _outcome(plan: Plan, *, asked: bool) -> ScatterRecord:
    """The record of what became of a scatter: lowered by its rule, or kept and why."""
    if not asked:
        return replace(plan.record, rule="", form="", why=Code.KEPT_ON_REQUEST())
    if plan.error is not None:
        assert plan.record.why is not None
        return replace(plan.record, rule="", form="", why=Code.KEPT_UNSUPPORTED(plan.record.why))
    return plan.record


def _rewrite(graph: Graph, plan: Plan, planner: Planner, target: Target) -> tuple[set[str], Plan]:
    """Lower one scatter in place: by its rule, or, where that builds what the target refuses, by the next best one.

    Returns:
      The functions that may have lost their last call, and the plan that was carried out.
    """
    if plan.choice is None:
        return set(), plan
    node, rule = plan.node, plan.choice.rule
    build = Builder.before(node)
    try:
        values = tuple(rule.lowering(_given(graph, plan, build)))
        values = _in_result_types(node, values, build)
        given = [value.raw.type for value in values]
    except Exception as error:
        if not rule.origin:
            raise  # a mistake of our own
        told = (str(error).splitlines() or [""])[0]
        raise _broken(graph, plan, rule, f"raised {type(error).__name__}: {told}") from error
    wanted = [result.raw.type for result in node.results]
    if given != wanted:
        told = [", ".join(map(str, types)) or "nothing" for types in (given, wanted)]
        raise _broken(graph, plan, rule, f"gives {told[0]} instead of {told[1]}")
    refusal = refused_of(target, graph, build.built)
    if refusal is not None:
        erase_built(build.built, node)
        other = planner.again(plan, refusal.reason)
        if other.choice is None and not other.kept:
            raise _built_illegally(graph, plan, rule, refusal.op, english.told(refusal.reason))
        return _rewrite(graph, other, planner, target)
    said = planner.unreduced.get(node)
    values = keep_attributes(node, values, build, SCATTER_ATTRIBUTES, mesh=None if said is None else mesh_of(said))
    replace_results(node, values)
    return erase(graph, node), plan


def _in_result_types(node: Node, values: Sequence[Value], build: Builder) -> tuple[Value, ...]:
    """The values in the types of a scatter's results, which may know other sizes than its operands."""
    found = list(values)
    for k, (value, result) in enumerate(zip(values, node.results, strict=False)):
        same = value.element_type == result.element_type and len(value.shape) == len(result.shape)
        pairs = zip(value.shape, result.shape, strict=False)
        if same and all(a == b or None in (a, b) for a, b in pairs):
            found[k] = retyped(build, value, result.raw.type)
    return tuple(found)


def _given(graph: Graph, plan: Plan, build: Builder) -> ScatterLowering | DynamicScatterLowering:
    """What the rule is given."""
    if isinstance(plan.scatter, DynamicScatter):
        assert isinstance(plan.facts, DynamicFacts)
        return DynamicScatterLowering(plan.scatter, plan.facts, graph, build)
    assert plan.scatter is not None
    assert isinstance(plan.facts, ScatterFacts)
    return ScatterLowering(plan.scatter, plan.facts, graph, build)


def _broken(graph: Graph, plan: Plan, rule: Rule, what: str) -> NotLoweredError:
    """A rule did not give what replaces the scatter."""
    return NotLoweredError(
        where_of(graph, plan.node),
        f"{SCATTER}: the rule {rule.name} {what}",
        facts=f"the rule is at {rule.place}",
        next_step=f"report it to whoever wrote the rule; --skip '#{plan.record.number}' leaves this scatter",
    )


def _built_illegally(graph: Graph, plan: Plan, rule: Rule, op: str, reason: str) -> NotLoweredError:
    """A rule built what the target does not take, although it was a candidate."""
    declared = f"it declares {', '.join(rule.emits) or 'nothing'}"
    next_step = f"--skip '#{plan.record.number}' leaves this scatter"
    if op not in rule.emits:
        next_step = f"add {op} to what the rule emits, so that it is no candidate here; {next_step}"
    return NotLoweredError(
        where_of(graph, plan.node),
        f"{SCATTER}: the rule {rule.name} {reason}",
        facts=f"the rule is at {rule.place}; {declared}",
        next_step=next_step,
    )
