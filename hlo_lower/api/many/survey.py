"""What would become of a module: the records of its scatters, and what a target refuses of it then, with remedies."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from hlo_lower.api.many.remedies import Remedies, Remedy
from hlo_lower.base.change import Change, Outcome, RefusedOps, with_remedies
from hlo_lower.base.contained.status_board import lowering
from hlo_lower.base.errors import EXIT_NOT_LOWERED, EXIT_OK, NotLoweredError
from hlo_lower.base.memory import MemoryCurve
from hlo_lower.base.registry import CompositeLoweringRegistry
from hlo_lower.facts.scatter.record import ScatterRecord
from hlo_lower.ir.binding import bind
from hlo_lower.ir.mlir import print_module
from hlo_lower.ir.reader import copy_graph
from hlo_lower.ir.shapes.bind import instances
from hlo_lower.ir.shapes.specification import specification_of
from hlo_lower.ir.view import Graph
from hlo_lower.lowering.engine.refused_ops import refused_ops
from hlo_lower.lowering.kinds import installed_registry, registry_of
from hlo_lower.lowering.options import Options, other_floats_of
from hlo_lower.lowering.passes import Run
from hlo_lower.lowering.pipeline import trial_of
from hlo_lower.lowering.scatter.scatters import classify_scatters, lower_scatters
from hlo_lower.lowering.types.storage import stored_lines
from hlo_lower.lowering.types.widen import float_lines
from hlo_lower.report.built_text import LONGEST, built_texts
from hlo_lower.report.module import NO_RULE, ModuleReport, rule_of
from hlo_lower.report.neighbourhood import neighbourhoods


class Survey(NamedTuple):
    """What would become of a module."""

    records: tuple[ScatterRecord, ...]  # one for each scatter
    refused: tuple[RefusedOps, ...]  # what the target would refuse of the module then, each with its remedy
    # the ops besides scatters that would be lowered, by which rule, those that would be left, and why, and what types
    # would change, a line each
    notes: tuple[str, ...]
    changes: tuple[Change, ...]  # those ops as data
    memory: tuple[MemoryCurve, ...]  # what is live over the program order, as given, and then, where that is built
    # the lines that would be built for each scatter, by its number, where they are asked for
    built: Mapping[int, tuple[str, ...]]
    # what stands around each scatter, as a drawing, likewise
    around: Mapping[int, str]
    best_options: tuple[str, ...]  # the fewest options under which the target takes most of the module
    exit_code: int  # that of a conversion whose result is verified


def surveyed_report(graph: Graph, file: str, options: Options, *, with_texts: bool = False) -> ModuleReport:
    """A report of a module and of what would become of it, with the text that would be built for each scatter if
    asked for."""
    found = survey(graph, options=options, with_texts=with_texts)
    return ModuleReport(file, graph.op_count, target=options.target.name, oob=options.oob, **found._asdict())


def classify(
    graph: Graph, *, options: Options | None = None, registry: CompositeLoweringRegistry | None = None
) -> tuple[ScatterRecord, ...]:
    """One record per scatter, in program order, with the rule that would lower it.

    Where the target refuses more than scatters, that is found by lowering a copy: which rule builds what it takes shows
    once it is built. Options only, skip and keep_unsupported do not matter.
    """
    options = options or Options()
    if options.bind:
        graph = bind(graph, dict(options.bind))
    with lowering():
        return _trial(graph, options, registry_of(registry)).records


def survey(
    graph: Graph,
    *,
    options: Options | None = None,
    registry: CompositeLoweringRegistry | None = None,
    with_texts: bool = False,
) -> Survey:
    """What `classify` gives, what the target would refuse of the module then, and what would be lowered beside.

    Remedies are found by trying: the module is lowered again under each option that may help.
    """
    options, known = options or Options(), registry_of(registry)
    if options.bind:
        graph = bind(graph, dict(options.bind))
    from hlo_lower.facts.memory.liveness import curves_of  # what only classifies does not import it

    with lowering():
        found = _trial(graph, options, known, measure=curves_of, with_texts=with_texts)
        refused = found.refused
        if not refused:
            return found
        remedies = Remedies(options, lambda other: _refusals_under(graph, other, known))
        left = remedies.each(refused)
        if (bound := _bound(graph)) is not None:
            left.append(("--bind", _trial(bound, options, known).refused))
        found = found._replace(refused=tuple(with_remedies(refused, left)))
        best = remedies.best(refused)
        if best is None:
            return found
        return found._replace(notes=(*found.notes, f"try: {best}"), best_options=best.options)


def remedy_of(graph: Graph, options: Options) -> Remedy | None:
    """The fewest options under which the target takes most of a module; None where it takes all, or none helps."""
    known = installed_registry()
    with lowering():
        refused = _refusals_under(graph, options, known)
        return Remedies(options, lambda other: _refusals_under(graph, other, known)).best(refused or ())


def _refusals_under(graph: Graph, options: Options, known: CompositeLoweringRegistry) -> tuple[RefusedOps, ...] | None:
    """What the target refuses of a module under these options; None if its integers cannot be narrowed under them."""
    with suppress(NotLoweredError):
        return _trial(graph, options, known).refused
    return None


def _bound(graph: Graph) -> Graph | None:
    """A module of dynamic shape at some sizes that fit it; None for others."""
    specification = specification_of(graph.module)
    if specification is None or not specification.is_dynamic:
        return None
    sizes = instances(specification, graph.module, 1)
    return bind(graph, sizes[0]) if sizes else None


def _trial(
    graph: Graph,
    options: Options,
    known: CompositeLoweringRegistry,
    measure: Callable[[Graph], tuple[MemoryCurve, ...]] = lambda graph: (),
    with_texts: bool = False,
) -> Survey:
    """The same without remedies: of scatters what they would be, of the rest what is left once it is lowered."""
    options = replace(options, only=(), skip=(), keep_unsupported=True)
    changes, memory = tuple[Change, ...](), measure(graph)
    around: Mapping[int, str] = neighbourhoods(graph) if with_texts else {}
    is_built = not options.target.restricts_only_scatter
    is_changed = options.one_device or options.legalize or options.demote_i64 or options.checked or known.declarations
    if is_built or is_changed or other_floats_of(options):
        graph = copy_graph(graph)
    run = trial_of(graph, options, known).up_to("floats")
    notes = tuple(map(str, run.variants_left))
    notes += () if run.floats is None else tuple(float_lines(run.floats))
    built: Mapping[int, tuple[str, ...]] = {}
    if not is_built:
        records, built = _classify(run, with_texts)
    else:
        records = run.to_the_end().scatters.records
        memory += measure(graph)
        changes = tuple(one for one in run.all_changes if one.outcome in (Outcome.LOWERED, Outcome.LEFT))
        notes += tuple(map(str, changes))
        notes += () if run.storage is None else tuple(f"stored: {line}" for line in stored_lines(run.storage))
        if with_texts:
            built = _texts_of(graph, records)
    refused = refused_ops(graph, options.target, records)
    is_left = refused or run.variants_left or any(rule_of(record) == NO_RULE for record in records)
    code = EXIT_NOT_LOWERED if is_left else EXIT_OK
    return Survey(records, refused, notes, changes, memory, built, around, (), code)


def _classify(run: Run, with_texts: bool) -> tuple[tuple[ScatterRecord, ...], Mapping[int, tuple[str, ...]]]:
    """The records of scatters, and with texts what a lowered copy builds for each.

    If lowering fails, `convert` reports why.
    """
    if with_texts and run.graph.scatters:
        with suppress(NotLoweredError):
            copy = run.context.afresh(copy_graph(run.graph))
            records = lower_scatters(copy, is_trial=True).records
            return records, _texts_of(copy.graph, records)
    return classify_scatters(run.context), {}


def _texts_of(graph: Graph, records: tuple[ScatterRecord, ...]) -> Mapping[int, tuple[str, ...]]:
    return built_texts(print_module(graph.module, locations=True, longest=LONGEST), records)
