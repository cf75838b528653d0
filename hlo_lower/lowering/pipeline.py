"""The main job: read, legalize, classify, choose a rule for each scatter, lower, check, write."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax.export

from hlo_lower.base.arguments import shown
from hlo_lower.base.change import Change, Outcome
from hlo_lower.base.contained.status_board import lowering
from hlo_lower.base.errors import InputError, NotLoweredError
from hlo_lower.base.refused import RefusedOps
from hlo_lower.base.registry import CompositeLoweringRegistry
from hlo_lower.ir import mlir
from hlo_lower.ir.binding import bind
from hlo_lower.ir.reader import Source, read
from hlo_lower.ir.view import Graph
from hlo_lower.ir.writer import to_bytecode, to_portable_artifact, to_text
from hlo_lower.lowering.engine.context import Context
from hlo_lower.lowering.engine.foreign_attributes import remove_placement
from hlo_lower.lowering.engine.kind import Stage
from hlo_lower.lowering.engine.nested_slices import NestedSlices
from hlo_lower.lowering.engine.plugins import registry_of
from hlo_lower.lowering.engine.refused_ops import refused_ops
from hlo_lower.lowering.engine.stage import run_stage, run_to_the_end
from hlo_lower.lowering.integers64.demote import assume_nothing, demote_i64
from hlo_lower.lowering.integers64.demotion import Demotion
from hlo_lower.lowering.integers64.wrapper import with_original_signature
from hlo_lower.lowering.kinds import kinds_of
from hlo_lower.lowering.linalg.linalg_report import LinalgReport
from hlo_lower.lowering.linalg.lower import to_linalg
from hlo_lower.lowering.options import Options, other_floats_of
from hlo_lower.lowering.quirks.branch_captures import read_once
from hlo_lower.lowering.quirks.forms_of_ops import refuses_forms
from hlo_lower.lowering.quirks.kind import give_own_initial_values
from hlo_lower.lowering.quirks.known_starts import hide_starts
from hlo_lower.lowering.quirks.loops_of_calls import call_bodies, in_calls
from hlo_lower.lowering.quirks.one_number import reduce_one_number
from hlo_lower.lowering.quirks.overwritten import read_overwritten
from hlo_lower.lowering.ranks.kind import join_reshapes
from hlo_lower.lowering.scatter.scatters import LoweredScatters, lower_scatters
from hlo_lower.lowering.single_ops.kind import SHIFTS
from hlo_lower.lowering.single_ops.plain_op import PLAIN
from hlo_lower.lowering.sort.sorts import lower_sorts
from hlo_lower.lowering.types.carried.pairs import realize
from hlo_lower.lowering.types.storage import store, stored_lines, unmark
from hlo_lower.lowering.types.widen import float_lines, other_floats
from hlo_lower.named.naming import raise_named
from hlo_lower.ops.targets.refused_forms import RefusedForm
from hlo_lower.report.notebook import Records, notebook_html

MOST_FORMS = 8
"""More forms than any op stands in at once."""


@dataclass(frozen=True)
class PlainForm:
    """A module before its scatters are lowered, as text, and what was done to it.

    Attributes:
      text: the module, which is to be equal to the module as it was given.
      changes, demotion, floats: what was done, as in `Lowered`.
      with_floats: the module once its floats are others, which is what is lowered; "" where none are.
    """

    text: str
    changes: tuple[Change, ...]
    demotion: Demotion | None
    floats: Demotion | None = None
    with_floats: str = ""


@dataclass(eq=False, repr=False)
class Lowered:
    """A module after lowering.

    Attributes:
      graph: the rewritten module.
      scatters: what became of its scatters.
      op_count: operations in the input.
      options: how it was lowered.
      registry: the rules that were given; None where they were those that are installed.
      changes: what was legalized first, kept or left, beside scatters.
      demotion: what making 64-bit integers 32 bits wide rests on; None where that was not asked for.
      floats: what floats of another precision rest on; None where none were asked for, or there are none.
      storage: what values are stored in whose element type the target takes nowhere; None where there are none.
      given: what it was exported with before that, where it came as an `Exported`.
      scatters_left: scatters that were not lowered (kept on request, or unsupported with `keep_unsupported`).
      unsupported: those of them that no rule fits.
      kept: those of them that the target takes as they are.

    Example:
      >>> lowered = hl.lower("decode.mlir")
      >>> "stablehlo.scatter" in lowered.text, lowered.records[0].rule
      (False, 'guarded_dynamic_update_slice')
    """

    graph: Graph
    scatters: LoweredScatters
    op_count: int
    options: Options
    registry: CompositeLoweringRegistry | None = None
    changes: tuple[Change, ...] = ()
    demotion: Demotion | None = None
    storage: Demotion | None = None
    floats: Demotion | None = None
    given: jax.export.Exported | None = None

    def __post_init__(self) -> None:
        self.unsupported, self.kept = self.scatters.unsupported, self.scatters.kept
        self.scatters_left = self.scatters.left

    @cached_property
    def records(self) -> Records:
        """One per scatter of the input, in program order; written when they are first asked for."""
        return Records(self.scatters.records)

    def __repr__(self) -> str:
        return f"<Lowered {self._told()}>"

    def _repr_html_(self) -> str:
        """For notebooks: the line of the repr, the table of the scatters, the memory, and the notes."""
        from hlo_lower.facts.memory.memory_curve import curves_of

        return notebook_html(f"Lowered {self._told()}", self.records, self.notes, curves_of(self.graph))

    def _told(self) -> str:
        count, rules = len(self.records), dict.fromkeys(record.rule for record in self.records if record.rule)
        told = f"{count:,} scatter{'s' * (count != 1)}, {self.scatters_left:,} left"
        shown = f"; rules {', '.join(rules)}" if rules else ""
        return f"{self.graph.name} for {self.options.target.name}: {told}{shown}"

    @cached_property
    def _in_linalg(self) -> tuple[Graph, LinalgReport] | None:
        """The module in linalg, where the target reads that."""
        target, named = self.options.target, self.options.linalg_ops == "named"
        if target.dialect != "linalg":
            return None
        taken = {one.op for one in target.named} if named else set[str]()
        raised = raise_named(self.graph, target=target, only=taken) if taken else None
        is_written = raised is not None and any(one.composite for one in raised.spelled)
        graph = raised.graph if raised is not None and is_written else copied(self.graph)
        return graph, to_linalg(graph, named=named, parallel=self.options.linalg_loops == "forall")

    @cached_property
    def refused(self) -> tuple[RefusedOps, ...]:
        """What the target refuses of the module as it is now, scatters included; empty if it takes all of it."""
        return refused_ops(self.graph, self.options.target, self.records)

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
            told = "floats may be added in another order, and computed in other ways within stated bounds"
            lines.append(f"{told} (float mode reassociate)")
        if self.demotion is not None:
            lines += [f"narrowed: {self.demotion.summary()}"] if self.demotion.is_needed else []
            lines += [f"assumed, not checked: {assumption}" for assumption in self.demotion.assumptions]
            lines += [f"assumed, checked at run time: {assumption}" for assumption in self.demotion.tested]
        if not self.options.loop_ranges:
            lines.append("guards and clamps stay where only a range that a loop keeps shows that none is needed")
        if self.options.checked:
            lines.append("the last result of each public function, assumptions_hold: whether what is checked held")
        if self.floats is not None:
            lines += float_lines(self.floats)
        if self.storage is not None:
            lines += [f"stored: {line}" for line in stored_lines(self.storage)]
        return (*lines, *(self.linalg.lines() if self.linalg is not None else ()))

    @cached_property
    def text(self) -> str:
        """The module as text, in the target's dialect; with locations if the input had them."""
        return self.stablehlo if self._in_linalg is None else to_text(self._in_linalg[0])

    @cached_property
    def stablehlo(self) -> str:
        """The module as StableHLO text, whatever the target's dialect: what XLA runs."""
        return to_text(self.graph, is_verified=True)  # `lower` did that

    @cached_property
    def as_given(self) -> str:
        """The module as StableHLO text under the signature that it had before values were stored in other types."""
        return self.stablehlo if self.storage is None else with_original_signature(self.stablehlo, self.storage)

    def bytecode(self) -> bytes:
        """The module as MLIR bytecode, in the target's dialect, locations kept."""
        return to_bytecode(self.graph if self._in_linalg is None else self._in_linalg[0])

    def portable(self, version: str | None = None) -> bytes:
        """The module as a portable artifact of a StableHLO version, by default the current one.

        Raises:
          InputError: the target reads linalg, of which there is none; or it cannot be written for that version.
        """
        self._refuse_linalg("a portable artifact")
        asked: Any = version
        if not isinstance(asked, str | None) or not re.fullmatch(r"\d+\.\d+\.\d+", asked or "0.0.0"):
            told = f"{shown(version)} is no version of StableHLO"
            raise InputError("version", told, next_step='write version="1.0.0", or leave it out')
        try:
            return to_portable_artifact(self.graph, version)
        except ValueError as error:
            told = f"the module cannot be written for StableHLO {version}: {error}"
            raise InputError(self.graph.name, told, next_step="leave the version out, or ask for a newer one") from None

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

    @cached_property
    def exported_as_given(self) -> jax.export.Exported:
        """`exported` under the signature that the module had before values were stored in other types.

        Raises:
          InputError: as `exported`.
        """
        if self.storage is None or self.given is None:
            return self.exported
        return replace(self.given, mlir_module_serialized=to_portable_artifact(read(self.as_given, contained=False)))

    def _refuse_linalg(self, form: str) -> None:
        if self.options.target.dialect != "stablehlo":
            raise InputError(
                self.graph.name,
                f"{form} holds StableHLO, which is not what the target {self.options.target.name} reads",
                next_step="write it as text or bytecode (--emit), or choose another --target",
            )


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
    with lowering():
        return _lower(source, options or Options(), name, registry)


def _lower(
    source: Source | Graph, options: Options, name: str | None, registry: CompositeLoweringRegistry | None
) -> Lowered:
    graph = copied(source, name) if isinstance(source, Graph) else read(source, name)
    if options.bind:
        graph = bind(graph, dict(options.bind))
    op_count, slices = graph.op_count, NestedSlices(graph)
    known = registry_of(registry)
    changes, demotion = make_plain(Context(graph, options, known))
    floats = other_floats(graph, other_floats_of(options))
    became = lower_stages(graph, options, known)
    slices.clamp_built()
    problem = mlir.verify_module(graph.module)
    if problem is not None:
        raise NotLoweredError(graph.name, f"the lowered module does not verify: {problem}", next_step="report this")
    all_changes = (*changes, *became.changes)
    of_values = demotion, became.storage, floats, became.given
    return Lowered(graph, became.scatters, op_count, options, registry, all_changes, *of_values)


@dataclass(frozen=True)
class LoweredStages:
    """What became of a module that was plain, stage by stage.

    Attributes:
      scatters: what became of its scatters.
      changes: what became of other ops.
      storage: what values are stored in whose element type the target takes nowhere; None where there are none.
      given: what it was exported with, before values were stored in other types.
    """

    scatters: LoweredScatters
    changes: tuple[Change, ...]
    storage: Demotion | None
    given: jax.export.Exported | None


def lower_stages(
    graph: Graph, options: Options, registry: CompositeLoweringRegistry, *, is_trial: bool = False
) -> LoweredStages:
    """Lower a plain module in place, in the order of the stages: control flow, single ops, scatters, sorts, types.

    Args:
      graph, options, registry: the module, and how it is lowered.
      is_trial: whether what is lowered is thrown away, and records alone count.
    """
    changes = run_to_the_end(Context(graph, options, registry), kinds_of(Stage.FLATTENED))
    changes += run_stage(Context(graph, options, registry), kinds_of(Stage.LOWERED))
    scatters = lower_scatters(Context(graph, options, registry), is_trial=is_trial)
    changes += lower_sorts(Context(graph, options, registry))
    changes += _lower_forms(graph, options, registry)
    given = graph.exported
    more, storage = _lower_types(Context(graph, options, registry))
    changes = (*changes, *more, *_lower_ranks(Context(graph, options, registry)))
    if call_bodies(graph, options.target):
        changes = tuple(map(in_calls, changes))
    changes += remove_placement(graph, options.target)
    return LoweredStages(scatters, changes, storage, given)


def _lower_forms(graph: Graph, options: Options, registry: CompositeLoweringRegistry) -> tuple[Change, ...]:
    """Lower pads and convolutions in forms that the target refuses, in place: those that rules built as well.

    With them shifts that rules built. One may stand in several forms, each of which is lowered by itself; what is built
    has one form less.
    """
    lowered: tuple[Change, ...] = ()
    target, kinds = options.target, [kind for kind in kinds_of(Stage.LOWERED) if kind.name == PLAIN]
    may_be_more = refuses_forms(target) or any(target.refuses_op(op) is not None for op in SHIFTS)
    for _ in range(MOST_FORMS if may_be_more else 0):
        done = _lowered(run_stage(Context(graph, options, registry), kinds))
        lowered += done
        if not done:
            break
    return lowered


def _lower_ranks(context: Context) -> tuple[Change, ...]:
    """Do what has more dims than the target takes on fewer, in place."""
    changes = run_stage(context, kinds_of(Stage.RANKS))
    if changes:
        join_reshapes(context.graph)
    return changes


def _lower_types(context: Context) -> tuple[tuple[Change, ...], Demotion | None]:
    """Lower ops on element types that the target refuses, in place, and store what it has no room for.

    What cannot be computed on other types is made of other ops, where there is a rule; what that builds is looked at.
    Complex numbers come first: functions of their parts may be refused in their turn.
    """
    if RefusedForm.INFINITE.value in context.target.refused_forms:
        give_own_initial_values(context.graph)
    graph, options, registry = context.graph, context.options, context.registry
    of_parts = run_stage(context, kinds_of(Stage.COMPLEX))
    if of_parts:
        built = run_stage(Context(graph, options, registry), kinds_of(Stage.LOWERED))
        of_parts, context = (*of_parts, *_lowered(built)), Context(graph, options, registry)
    changes = run_stage(context, kinds_of(Stage.TYPES))
    if any(change.outcome is Outcome.LEFT for change in changes):
        carried = Context(graph, options, registry, is_carried=True)
        others = _lowered(run_stage(carried, kinds_of(Stage.LOWERED)))
        if others:
            again = run_stage(Context(graph, options, registry), kinds_of(Stage.TYPES))
            changes = (*_lowered(changes), *others, *again)
    storage = store(context.graph, context.target)
    read_once(context.graph, context.target)
    hide_starts(context.graph, context.target)
    read_overwritten(context.graph, context.target)
    reduce_one_number(context.graph, context.target)
    if changes or of_parts:
        realize(context.graph)
        unmark(context.graph)
    return (*of_parts, *changes), storage


def _lowered(changes: Sequence[Change]) -> tuple[Change, ...]:
    return tuple(change for change in changes if change.outcome is Outcome.LOWERED)


def copied(source: Graph, name: str | None = None) -> Graph:
    """A graph of its own, to be changed.

    Where a module names no source, its places are lines of its own text: bytecode keeps them, and another text would
    give others. Of places that it does name bytecode drops where a range ends.
    """
    form = to_text(source) if source.has_locations else to_bytecode(source)
    graph = read(form, name or source.name, contained=False)
    graph.has_locations, graph.exported = source.has_locations, source.exported
    return graph


def plain_form(source: Graph, options: Options, registry: CompositeLoweringRegistry | None) -> PlainForm:
    """What a module is before its scatters are lowered: legalized, and its 64-bit integers narrowed, as asked for.

    Raises:
      NotLoweredError: its integers cannot be narrowed, or its floats not be others.
    """
    graph = copied(source)
    changes, demotion = make_plain(Context(graph, options, registry_of(registry)))
    text = to_text(graph)
    floats = other_floats(graph, other_floats_of(options))
    return PlainForm(text, changes, demotion, floats, "" if floats is None else to_text(graph))


def make_plain(context: Context) -> tuple[tuple[Change, ...], Demotion | None]:
    """Legalize a graph and make its 64-bit integers narrower, in place, as far as that is asked for.

    In this order: what is demoted has to be plain StableHLO.
    """
    changes = run_stage(context, kinds_of(Stage.LEGALIZED)) if context.options.legalize else ()
    checked = context.options.checked
    if context.options.demote_i64:
        return changes, demote_i64(context.graph, checked=checked)
    if checked:
        assume_nothing(context.graph)
    return changes, None
