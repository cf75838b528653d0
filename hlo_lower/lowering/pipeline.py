"""The pipeline: the passes that a module goes through, in order, and what is asked of it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hlo_lower.base.change import Change, Outcome
from hlo_lower.base.contained.status_board import lowering
from hlo_lower.base.errors import NotLoweredError
from hlo_lower.base.registry import CompositeLoweringRegistry
from hlo_lower.ir import mlir
from hlo_lower.ir.binding import bind
from hlo_lower.ir.reader import Source, copy_graph, read
from hlo_lower.ir.view import Graph
from hlo_lower.ir.writer import to_text
from hlo_lower.lowering.engine.attributes import remove_placement
from hlo_lower.lowering.engine.engine import UNTIL_DONE, run_stage
from hlo_lower.lowering.engine.kind import Stage
from hlo_lower.lowering.engine.nested_slices import NestedSlices
from hlo_lower.lowering.integers64.demote import assume_nothing, demote_i64, demote_what_fits
from hlo_lower.lowering.integers64.demotion import NARROWER, Demotion
from hlo_lower.lowering.kinds import VARIANTS, VARIANTS_LEFT, kinds_of, registry_of
from hlo_lower.lowering.lowered import Lowered
from hlo_lower.lowering.one_device import is_rejected_alone, to_one_device
from hlo_lower.lowering.options import Options, other_floats_of
from hlo_lower.lowering.passes import (
    KEPT,
    NOTHING,
    SIGNATURE,
    Pass,
    Run,
    Wanted,
    Where,
    cures,
    has_left,
    has_met,
    in_order,
    kinds,
    over,
)
from hlo_lower.lowering.plain.stated import Stated
from hlo_lower.lowering.ranks import join_reshapes, most_dims, pass_in_rows
from hlo_lower.lowering.scatter.assumed import Assumption, clamp_indices, release_indices
from hlo_lower.lowering.scatter.scatters import lower_scatters
from hlo_lower.lowering.single_ops.kind import BUILT
from hlo_lower.lowering.single_ops.plain_op import PLAIN
from hlo_lower.lowering.top_k import inline_sorts, top_k_to_sorts
from hlo_lower.lowering.types.carried.pairs import realize
from hlo_lower.lowering.types.storage import store, unmark
from hlo_lower.lowering.types.widen import other_floats
from hlo_lower.ops.names import COMPOSITE
from hlo_lower.ops.quirks.quirk import Place
from hlo_lower.ops.refused_forms import refuses_forms

MOST_FORMS = 8
"""More forms than any op stands in at once."""


# --- what passes do that is more than one call ---


def _note_slices(run: Run) -> None:
    run.slices = NestedSlices(run.graph)


def _variants(run: Run) -> Iterable[Change]:
    changes = run_stage(run.context, [VARIANTS])
    is_any_left = any(change.outcome is Outcome.LEFT for change in changes)
    called = Stated(run.registry, run.options.target).call(run.graph) if is_any_left else ()
    left = run_stage(run.context.afresh(), [VARIANTS_LEFT]) if is_any_left else ()
    return *(change for change in changes if change.outcome is not Outcome.LEFT), *called, *left


def _narrow(run: Run) -> None:
    run.demotion = demote_i64(run.graph, checked=run.options.checked)


def _narrow_what_fits(run: Run) -> None:
    run.demotion = demote_what_fits(run.graph)


def _floats(run: Run) -> None:
    run.floats = other_floats(run.graph, other_floats_of(run.options))


def _assume(run: Run) -> None:
    run.assumed = clamp_indices(run.context)


def _release(run: Run) -> None:
    assert run.assumed is not None
    if run.assumed.scatters:
        run.assumed = replace(run.assumed, text=to_text(run.graph))
        if run.options.target.dialect == "stablehlo":
            release_indices(run.graph)


def _scatters(run: Run) -> None:
    run.scatters = lower_scatters(run.context, is_trial=run.is_trial)


def _top_k(run: Run) -> Iterable[Change]:
    return top_k_to_sorts(run.context)


def _inline(run: Run) -> None:
    inline_sorts(run.graph, run.options.target)


def _store(run: Run) -> None:
    run.given, run.storage = run.graph.exported, store(run.graph, run.options.target)


def _join_pairs(run: Run) -> None:
    realize(run.graph)
    unmark(run.graph)


def _rows(run: Run) -> None:
    most = most_dims(run.options.target)
    assert most is not None
    pass_in_rows(run.graph, most)
    join_reshapes(run.graph, most)


def _placement(run: Run) -> Iterable[Change]:
    return remove_placement(run.graph, run.options.target)


def _one_device(run: Run) -> Iterable[Change]:
    if not run.options.one_device and not is_rejected_alone(run.graph, run.options.target):
        return ()
    return to_one_device(run.graph, run.options.max_unroll)


def _clamp(run: Run) -> None:
    assert run.slices is not None
    run.slices.clamp_built()


def _may_nest_slices(run: Run) -> bool:
    """Whether a look is worth its walk: not where lowered scatters are all that changed, and no slice is of a part."""
    if run.slices is None:
        return False
    return run.slices.has_parts or run.scatters.builds_parts or not run.done.keys() <= {"note-slices", "scatters"}


def _check(run: Run) -> None:
    problem = mlir.verify_module(run.graph.module)
    if problem is not None:
        told = f"the lowered module does not verify: {problem}"
        raise NotLoweredError(run.graph.name, told, next_step="report this")


# --- which options and targets want them ---


def _refuses_sorts(options: Options) -> bool:
    return any(kind.concerns(options) for kind in kinds_of(Stage.SORTED))


def _refuses_forms(options: Options) -> bool:
    of_rules = any(refuses_forms(options.target, kind.name) for kind in kinds_of(Stage.LOWERED))
    return of_rules or any(options.target.refuses_op(op) is not None for op in BUILT)


def _refuses_composites(options: Options) -> bool:
    return options.target.refuses_op(COMPOSITE) is not None


def _refuses_types(options: Options) -> bool:
    return options.target.dtypes is not None or bool(options.target.refused_dtypes)


def _has_no_64_bits(options: Options) -> bool:
    return not options.demote_i64 and all(options.target.refuses_dtype(dtype) is not None for dtype in NARROWER)


LEGALIZES = Wanted(lambda options: options.legalize, "--legalize is not given")
CALLS = Wanted(lambda options: not options.legalize and _refuses_composites(options), "{target} reads composites")
NARROWS = Wanted(lambda options: options.demote_i64, "--demote-i64 is not given")
FITS = Wanted(_has_no_64_bits, "{target} accepts 64-bit integers, or you gave --demote-i64")
CHECKS = Wanted(lambda options: options.checked and not options.demote_i64, "--checked alone is not given")
FLOATS = Wanted(lambda options: bool(other_floats_of(options)), "neither --widen nor --demote-f64 is given")
ASSUMES = Wanted(lambda options: options.assume_in_bounds, "--assume-in-bounds is not given")
SORTS = Wanted(_refuses_sorts, "{target} accepts all sorts")
FORMS = Wanted(_refuses_forms, "{target} accepts all forms of single ops, shifts and updates of slices")
TYPES = Wanted(_refuses_types, "{target} accepts all element types")
DIMS = Wanted(lambda options: most_dims(options.target) is not None, "{target} accepts values of all dims")
MESHES = Wanted(lambda options: options.target.refuses_op(mlir.MESH) is not None, "{target} reads shardings")
DECLARED = Where(lambda run: bool(run.registry.declarations), "where rules declare any")
NESTED = Where(_may_nest_slices, "where rules may have built any", ("note-slices", "scatters"))
ON_OTHER_TYPES = ("complex", "types", "carried", "types-again")
"""Passes that compute ops on other element types."""

ALONE = Wanted(lambda options: options.one_device or MESHES.holds(options), "--one-device is not given")
PIPELINE = in_order(
    Pass("one-device", "takes a module for several devices to one", _one_device, ALONE),
    Pass("note-slices", "notes the module's own slices of slices", _note_slices, where=KEPT, may_change=NOTHING),
    Pass("variants", "lowers composites with declared parameters", _variants, where=DECLARED),
    kinds("call", Stage.LEGALIZED, "calls the decomposition of rejected composites", wanted=CALLS, only=COMPOSITE),
    kinds("legalize", Stage.LEGALIZED, "expands composites, custom calls and chlo", wanted=LEGALIZES),
    Pass("narrow", "computes 64-bit integers in 32 bits", _narrow, NARROWS, after=("legalize",), may_change=SIGNATURE),
    Pass("say-true", "adds the result of --checked, true", over(assume_nothing), CHECKS, may_change=SIGNATURE),
    Pass("floats", "computes floats in another precision", _floats, FLOATS, after=("narrow",), may_change=SIGNATURE),
    Pass("assume", "clamps indices that are assumed to lie inside", _assume, ASSUMES, after=("floats",)),
    Pass("narrow-what-fits", "computes integers that fit in 32 bits", _narrow_what_fits, FITS, after=("assume",)),
    kinds("control", Stage.FLATTENED, "unrolls loops, computes branches, solves matrices", repeat=UNTIL_DONE),
    kinds("ops", Stage.LOWERED, "lowers gathers, reverses and single ops", after=("control",)),
    Pass("scatters", "lowers scatters", _scatters, after=("ops",)),
    Pass("top-k", "writes each top_k as a sort", _top_k, SORTS, after=("scatters",)),
    Pass("inline-sorts", "inlines functions that sort for few rows", _inline, SORTS, after=("top-k",)),
    kinds("sorts", Stage.SORTED, "lowers sorts", after=("inline-sorts",)),
    kinds("forms", Stage.LOWERED, "lowers forms that rules built", FORMS, only=PLAIN, repeat=MOST_FORMS, again=True),
    *cures(Place.BEFORE_TYPES),
    kinds("complex", Stage.COMPLEX, "computes complex numbers on their parts", after=("forms",)),
    kinds("parts", Stage.LOWERED, "lowers ops on such parts", again=True, where=has_met("complex")),
    kinds("types", Stage.TYPES, "computes rejected element types in others", after=("own-starts", "complex")),
    kinds("carried", Stage.LOWERED, "lowers ops that fit no type", again=True, carried=True, where=has_left("types")),
    kinds("types-again", Stage.TYPES, "does it for the new ops", instead_of="types", where=has_met("carried")),
    Pass("store", "stores values in types that the target has", _store, TYPES, after=("types",), may_change=SIGNATURE),
    kinds("forms-again", Stage.LOWERED, "lowers new forms", FORMS, only=PLAIN, again=True, where=has_met("types")),
    *cures(Place.AFTER_TYPES),
    Pass("join-pairs", "joins values in two parts, unmarks casts", _join_pairs, where=has_met(*ON_OTHER_TYPES)),
    kinds("ranks", Stage.RANKS, "computes tensors of many dims in fewer", after=("store",)),
    Pass("rows", "passes values of many dims on in one", _rows, DIMS, after=("ranks",)),
    Pass("join-reshapes", "merges pairs of reshapes", over(join_reshapes), where=has_met("ranks")),
    *cures(Place.LAST),
    Pass("remove-placement", "removes shardings for one device", _placement, MESHES),
    Pass("clamp-slices", "clamps slices of slices that rules built", _clamp, where=NESTED),
    Pass("release", "removes the clamps of assumed indices", _release, ASSUMES, KEPT, after=("assume",)),
    Pass("check", "lets MLIR check the module", _check, where=KEPT, may_change=NOTHING),
)
"""What happens to a module, in order."""


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
        run = start_run(source, options or Options(), name, registry)
        op_count = run.graph.op_count
        run.to_the_end()
    of_values = run.demotion, run.storage, run.floats, run.given, sum(change.count for change in run.variants_left)
    return Lowered(
        run.graph, run.scatters, op_count, run.options, registry, run.all_changes, *of_values, assumed=run.assumed
    )


def start_run(
    source: Source | Graph,
    options: Options,
    name: str | None = None,
    registry: CompositeLoweringRegistry | None = None,
    *,
    is_counted: bool = False,
) -> Run:
    """A module before the first pass, its symbolic sizes bound as options say.

    Args:
      source, options, name, registry: as of `lower`.
      is_counted: whether the ops are counted that each pass builds.
    """
    graph = copy_graph(source, name) if isinstance(source, Graph) else read(source, name)
    if options.bind:
        graph = bind(graph, dict(options.bind))
    return Run(PIPELINE, graph, options, registry_of(registry), is_counted=is_counted)


def trial_of(graph: Graph, options: Options, registry: CompositeLoweringRegistry | None) -> Run:
    """A module before the first pass that is not kept: it is only asked what would become of it."""
    return Run(PIPELINE, graph, options, registry_of(registry), is_trial=True)


@dataclass(frozen=True)
class PlainForm:
    """A module before its scatters are lowered, as text, and what was done to it.

    Attributes:
      text: the module, which is to be equal to the module as it was given.
      changes, demotion, floats, assumed: what was done, as in `Lowered`.
      given: the module once its floats are others and indices clamped that are assumed to lie inside, which is what is
        lowered; "" where neither was asked for.
    """

    text: str
    changes: tuple[Change, ...]
    demotion: Demotion | None
    floats: Demotion | None = None
    assumed: Assumption | None = None
    given: str = ""


def plain_form(source: Graph, options: Options, registry: CompositeLoweringRegistry | None) -> PlainForm:
    """What a module is before its scatters are lowered: legalized, and its 64-bit integers narrowed, as asked for.

    Raises:
      NotLoweredError: its integers cannot be narrowed, or its floats not be others.
    """
    run = trial_of(copy_graph(source), options, registry).up_to("say-true")
    text = to_text(run.graph)
    run.up_to("assume")
    given = "" if run.floats is None and run.assumed is None else to_text(run.graph)
    return PlainForm(text, run.all_changes, run.demotion, run.floats, run.assumed, given)
