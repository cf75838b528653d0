"""`stablehlo.scatter`: how one is read, of static and of dynamic shape, and whether a target keeps it."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from math import prod
from typing import Any

from hlo_lower.base import english
from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.errors import NotLoweredError
from hlo_lower.base.registry import Rule
from hlo_lower.facts.scatter.canonical import CanonicalScatter, NotCanonicalError, canonicalize
from hlo_lower.facts.scatter.classify import classify
from hlo_lower.facts.scatter.combine import constant_dims
from hlo_lower.facts.scatter.describe import ScatterPlace, describe, describe_dynamic, describe_refused, of_equivalent
from hlo_lower.facts.scatter.dynamic import (
    DYNAMIC_SCATTER,
    DynamicFacts,
    Positions,
    WindowSizes,
    classify_dynamic,
    read_dynamic,
)
from hlo_lower.facts.scatter.facts import (
    Dialect,
    Drops,
    FloatMode,
    InBounds,
    OutOfBounds,
    ScatterFacts,
    Strategy,
    Unique,
    Windows,
)
from hlo_lower.facts.scatter.layout import unfold_positions
from hlo_lower.facts.scatter.record import ScatterRecord
from hlo_lower.facts.scatter.shardings import mesh_of, spread_dims
from hlo_lower.facts.values.region import ASSIGNING, Combiner, refuse_side_effects
from hlo_lower.facts.values.site import Site
from hlo_lower.facts.values.value_numbering import Computed
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.lowering.engine.kind import (
    Candidate,
    Context,
    Kept,
    Kind,
    Refused,
    ScatterLowering,
    Stage,
    Subject,
    values_of,
)
from hlo_lower.lowering.scatter import constant, dynamic_shape, many_windows, numbered_rows, one_window, safe_scatter
from hlo_lower.lowering.scatter.dynamic_shape import DynamicScatterLowering
from hlo_lower.lowering.scatter.one_window import READING
from hlo_lower.lowering.single_ops.updates import BUILT
from hlo_lower.lowering.sort import sorts_by_top_k
from hlo_lower.ops.names import DYNAMIC_UPDATE_SLICE, SCATTER, SORT
from hlo_lower.ops.subset import Tile
from hlo_lower.ops.targets.native_scatter import NativeScatter
from hlo_lower.ops.targets.target import Target

FAMILIES = (one_window.rules, many_windows.rules, constant.rules, numbered_rows.rules, safe_scatter.rules)
"""The rules of `stablehlo.scatter`: each canonical form is a function under the facts that it is for."""

OWNED = frozenset({"scatter_dimension_numbers", "indices_are_sorted", "unique_indices"})


@dataclass(frozen=True, kw_only=True)
class ScatterSubject(Subject):
    """A scatter as it is read.

    Attributes:
      number: in program order, from 1.
      describe: gives what is told of it, before what became of it; it may be gone by then.
      decided: what is certain of it without any rule.
      last_resort: gives what becomes of it where there is no rule, if the target takes it then.
    """

    number: int
    describe: Callable[[], ScatterRecord]
    decided: Kept | Refused | None = None
    last_resort: Callable[[], Kept | None] = lambda: None


@dataclass(frozen=True, eq=False)
class _Read:
    """What is known of a scatter and of its twins, and what is told of the first one, where the evidence lies."""

    scatter: CanonicalScatter
    facts: ScatterFacts
    candidates: Sequence[Candidate]
    told: str
    kept: Kept | None
    record: ScatterRecord
    computed: Computed


class ScatterKind(Kind):
    """Scatters of static shape."""

    name = op = SCATTER
    stage = Stage.SCATTERS
    domains = ScatterFacts.domains
    families = FAMILIES
    owned = OWNED

    def read(self, context: Context, node: Node) -> ScatterSubject | None:
        """What is known of it; what is known of a scatter is known of its twins, which differ in where they stand."""
        operands = list(node.raw.operands)
        types = tuple([operand.type for operand in operands])
        if not all(map(mlir.is_static, types)):
            return None
        if (refused := refused_as_unreduced(self, context, node)) is not None:
            return refused
        indices = Value(operands[len(types) // 2])
        computed = context.numbering.computation(indices)
        updates = operands[len(types) // 2 + 1 :] if prod(indices.static_shape) > 1 else ()
        key = (
            types,
            computed.number,
            context.numbering.region(node.blocks[0]),
            tuple(map(constant_dims, updates)),
            spread_dims(node.raw) if context.is_partitioned else frozenset[int](),
            mlir.attribute_key(node.raw),
            context.unreduced_nodes.get(node),
        )
        known = context.read.get(key)
        if isinstance(known, _Read):
            place = ScatterPlace.of(context.graph, context.numbers[node], node)
            told = partial(of_equivalent, known.record, known.facts, place, (known.computed, computed))
            return self._subject(context, node, known, told)
        try:
            scatter = _canonical(context, node)
        except NotCanonicalError as error:
            return refused_as_it_stands(self, context, node, error.cause)
        read = context.read[key] = _read(context, scatter, _classify(context, scatter), computed)
        record = read.record
        return self._subject(context, node, read, lambda: record)

    def nodes_to_judge(self, target: Target, built: Sequence[Node]) -> Sequence[Node]:
        """All that a rule built, but for the scatter of a target that has a safe one, for updates of slices where the
        target has none and takes what they become next, and for sorts where its top_k takes their place."""
        is_safe = any(native.when == "safe" for native in target.keep)
        next_ones = {SCATTER} if is_safe else set[str]()
        if sorts_by_top_k(target):
            next_ones.add(SORT)
        if target.refuses_op(DYNAMIC_UPDATE_SLICE) is not None and not target.refusals(BUILT):
            next_ones.add(DYNAMIC_UPDATE_SLICE)
        return [node for node in built if node.name not in next_ones] if next_ones else built

    def _subject(
        self, context: Context, node: Node, read: _Read, describe: Callable[[], ScatterRecord]
    ) -> ScatterSubject:
        return ScatterSubject(
            kind=self,
            node=node,
            label=SCATTER,
            candidates=read.candidates,
            given=partial(_lowering_of, context.graph, read.scatter, node),
            told=read.told,
            equivalence=read,
            number=context.numbers[node],
            describe=describe,
            decided=read.kept,
            last_resort=partial(_last_resort, context.target, read, node),
            **about(context, node),
        )

    def title(self, rule: Rule) -> str:
        return class_name(rule)


def _lowering_of(
    graph: Graph, scatter: CanonicalScatter, node: Node, facts: ScatterFacts, build: Builder
) -> ScatterLowering:
    """The argument of a rule for a scatter or for its twin."""
    return ScatterLowering(replace(scatter, node=node), facts, graph, build)


def _last_resort(target: Target, read: _Read, node: Node) -> Kept | None:
    kept = kept_by(target, replace(read.scatter, node=node), read.facts, "no_lowering")
    return Kept(kept) if kept else None


def _read(context: Context, scatter: CanonicalScatter, facts: ScatterFacts, computed: Computed) -> _Read:
    """What is told of a scatter and of its twins, while nothing of the module is changed."""
    dtype = ", ".join(v.element_type for v in scatter.operands)
    told = f"subset={facts.subset.value} combiner={facts.combiner.value} dtype={dtype}"
    told += f" offsets={facts.offsets.value} in_bounds={facts.in_bounds.value} unique={facts.unique.value}"
    kept = kept_by(context.target, scatter, facts, "always")
    if kept is None and facts.strategy is Strategy.MANY and not (context.options.lower_all or context.options.prefer):
        kept = kept_by(context.target, scatter, facts, "loop")
    return _Read(
        scatter,
        facts,
        candidates=context.preference.candidates(facts),
        told=f"{told} oob={facts.oob.value}",
        kept=Kept(kept) if kept else None,
        record=describe(context.graph, context.numbers[scatter.node], scatter, facts),
        computed=computed,
    )


def _canonical(context: Context, node: Node) -> CanonicalScatter:
    """The canonical form.

    Raises:
      NotCanonicalError: it has none, or its region has a side effect.
    """
    refuse_side_effects(context.graph, node.blocks[0])
    scatter = canonicalize(node)
    if context.target.index_type == "i32" and scatter.has_wide_indices:
        interval = context.analysis.of(Site(scatter.indices))
        scatter = replace(scatter, narrowed=True, index_range=interval.hull())
    return unfold_positions(scatter, context.analysis)


def _classify(context: Context, scatter: CanonicalScatter) -> ScatterFacts:
    options = context.options
    facts = classify(
        scatter,
        context.analysis,
        OutOfBounds(options.oob),
        FloatMode(options.float_mode),
        trust_flags=options.trust_flags,
        costs=context.preference.costs,
        has_own=partial(has_safe_rows, options.target, scatter),
    )
    return replace(facts, dialect=Dialect(options.target.dialect))


# --- what scatters of any shape have in common ---


def about(context: Context, node: Node) -> dict[str, Any]:
    """What is said to the user of a scatter, and of what its result is part."""
    number, said = context.numbers[node], context.unreduced_nodes.get(node)
    return {
        "next_step": f"hlo-lower report --explain {number} {context.graph.name}",
        "otherwise": f"--skip '#{number}' leaves this scatter",
        "mesh": None if said is None else mesh_of(said),
    }


def refused_as_it_stands(kind: Kind, context: Context, node: Node, reason: Cause) -> ScatterSubject:
    """A scatter that cannot be lowered, whatever rules there are."""
    error = NotLoweredError(
        context.place(node),
        f"{SCATTER}: {english.phrase(reason)}",
        facts=f"operand {node.operands[0].raw.type}, {len(node.results)} result(s)",
        nearest=("every scatter of ranked tensors of plain element type has a lowering",),
        next_step="--keep-unsupported converts all but these",
    )
    return _without_forms(kind, context, node, reason, error)


def refused_as_unreduced(kind: Kind, context: Context, node: Node) -> ScatterSubject | None:
    """A scatter whose result is said to be unreduced in a language that has no way to say it of part of one."""
    said = context.unreduced_nodes.get(node)
    if said is None or mesh_of(said) is not None:
        return None
    error = NotLoweredError(
        context.place(node),
        f"{SCATTER}: its result is unreduced, a part of the sum on each device; a lowering gives each the whole",
        facts=said,
        nearest=("unreduced results are lowered where Shardy says so: sdy.sharding, sdy.sharding_constraint",),
        next_step="--keep-unsupported leaves it a scatter; or remove `unreduced` from the sharding",
    )
    return _without_forms(kind, context, node, Code.UNREDUCED(), error)


def _without_forms(kind: Kind, context: Context, node: Node, reason: Cause, error: NotLoweredError) -> ScatterSubject:
    number = context.numbers[node]
    record = describe_refused(context.graph, number, node, context.options.oob, reason)
    return ScatterSubject(
        kind=kind,
        node=node,
        label=SCATTER,
        candidates=(),
        given=lambda _facts, _build: None,
        number=number,
        describe=lambda: record,
        decided=Refused(error, reason),
    )


# --- of a shape that is known at run time only ---


class DynamicScatterKind(Kind):
    """Scatters of dynamic shape."""

    name = DYNAMIC_SCATTER
    op = SCATTER
    stage = Stage.SCATTERS
    domains = DynamicFacts.domains
    families = (dynamic_shape.rules,)
    owned = OWNED

    def read(self, context: Context, node: Node) -> ScatterSubject | None:
        """What is known of it."""
        if all(operand.is_static for operand in node.operands):
            return None
        if (refused := refused_as_unreduced(self, context, node)) is not None:
            return refused
        graph, options, number = context.graph, context.options, context.numbers[node]
        try:
            refuse_side_effects(graph, node.blocks[0])
            scatter = read_dynamic(node, narrowed=options.target.index_type == "i32")
        except NotCanonicalError as error:
            return refused_as_it_stands(self, context, node, error.cause)
        oob, float_mode = OutOfBounds(options.oob), FloatMode(options.float_mode)
        facts = classify_dynamic(scatter, context.analysis, oob, float_mode)
        record = describe_dynamic(graph, number, scatter, facts)

        dtype = ", ".join(v.element_type for v in scatter.operands)
        told = f"combiner={facts.combiner.value} positions={facts.positions.value} dtype={dtype}"
        told += f" window_sizes={facts.window_sizes.value} drops={facts.drops.value}"
        return ScatterSubject(
            kind=self,
            node=node,
            label=SCATTER,
            candidates=(Candidate(facts),),
            given=lambda told, build: DynamicScatterLowering(scatter, told, graph, build),
            told=f"{told} oob={facts.oob.value}",
            number=number,
            describe=lambda: record,
            **about(context, node),
        )

    def title(self, rule: Rule) -> str:
        return class_name(rule)


# --- whether a target takes a scatter as it is, and gives the right numbers for it: then it is kept ---


def kept_by(target: Target, scatter: CanonicalScatter, facts: ScatterFacts, when: str) -> Cause | None:
    """Why a scatter is kept: the target takes its combiner on its element type; None where it is not.

    A variadic scatter, one whose region promotes and one whose region does more than its combiner says are never kept.

    Args:
      target: the target.
      scatter, facts: the scatter, and what is known of it.
      when: "always"; "loop" where its cheapest form is a loop; "no_lowering" where there is none that the target takes.
    """
    if not target.keep:
        return None
    element = scatter.operands[0].element_type
    if _is_plain(scatter, facts.combiner) and any(
        n.when == when and _is_as_said(n, scatter, facts, element) for n in target.keep
    ):
        if when == "loop":
            return Code.KEPT_AS_FASTER(facts.combiner.value, element)
        return Code.KEPT(target.name, facts.combiner.value, element, when == "no_lowering")
    return None


def has_native_form(context: Context, node: Node) -> bool:
    """Whether the target's compiler takes a scatter, going by its form: bounds show when it runs."""
    try:
        scatter = _canonical(context, node)
    except NotCanonicalError:
        return False
    combiner, element = _classify(context, scatter).combiner, scatter.operands[0].element_type
    return _is_plain(scatter, combiner) and any(
        combiner.value in native.combiners
        and _is_among(element, native.dtypes)
        and _is_among(scatter.indices.element_type, native.index_dtypes)
        and _has_form(native.form, scatter)
        for native in context.target.keep
    )


def has_safe_rows(target: Target, scatter: CanonicalScatter, combiner: Combiner, unique: Unique) -> bool:
    """Whether the target's own scatter is right for rows that are all in bounds, with the region of this one.

    Args:
      target: the target.
      scatter: the scatter.
      combiner: what its region does.
      unique: whether no row is written twice.
    """
    found = [native for native in target.keep if native.when == "safe"]
    if not found or not _is_plain(scatter, combiner):
        return False
    return any(
        combiner.value in native.combiners
        and _is_among(scatter.operands[0].element_type, native.dtypes)
        and (native.unique == "any" or unique is Unique.PROVED)
        for native in found
    )


def _is_plain(scatter: CanonicalScatter, combiner: Combiner) -> bool:
    """Whether a scatter has one operand, and a region that is its combiner, on the operand's type, and nothing else."""
    is_promoted = str(scatter.region_types[0]) != scatter.operands[0].element_type
    return scatter.arity == 1 and not is_promoted and _is_bare(scatter, combiner)


def _is_bare(scatter: CanonicalScatter, combiner: Combiner) -> bool:
    """Whether the region is one operation of both arguments, or returns the update as it is: "assign" is any region
    that does not read the current value."""
    *inner, end = scatter.region.nodes
    if combiner is Combiner.ASSIGN:
        return not inner and end.operands == scatter.region.arguments[1:]
    return len(inner) == 1


def _is_as_said(native: NativeScatter, scatter: CanonicalScatter, facts: ScatterFacts, element: str) -> bool:
    inside = facts.windows is Windows.INSIDE
    # What XLA drops is what the target drops; where elements are dropped one by one, the target would drop more.
    dropped = native.in_bounds == "any" and facts.drops is not Drops.ELEMENTS
    return (
        facts.combiner.value in native.combiners
        and _is_among(element, native.dtypes)
        and _is_among(scatter.indices.element_type, native.index_dtypes)
        and _has_form(native.form, scatter)
        and (inside or dropped)
        and (native.unique == "any" or facts.unique is Unique.PROVED)
    )


def _is_among(name: str, names: Collection[str] | None) -> bool:
    return names is None or name in names


def _has_form(form: str, scatter: CanonicalScatter) -> bool:
    """Whether the dimension numbers are of a form of `NativeScatter`, in the order of a `scatter_nd`."""
    if form == "any":
        return True
    indexed, rank = len(scatter.index_dims), scatter.rank
    return (
        not scatter.batching
        and scatter.index_dims == tuple(range(indexed))
        and scatter.window_dims == tuple(range(indexed, rank))
        and scatter.window[indexed:] == scatter.operand_shape[indexed:]
        and scatter.update_permutation == tuple(range(len(scatter.update_permutation)))
        and scatter.index_vector_dim == len(scatter.indices.shape) - 1
        and (form == "rows" or indexed == rank)
    )


# --- what a rule is for, for a reader ---

_NAMES: dict[frozenset[Enum], str] = {
    frozenset(Tile): "Tile",
    frozenset(many_windows.WRITTEN): "anything",
    frozenset(ASSIGNING): "assign",
    frozenset(READING): "any other combiner",
    frozenset({InBounds.ALWAYS}): "in bounds",
    frozenset({InBounds.UNKNOWN}): "",
    frozenset({Drops.WINDOWS}): "whole windows may be dropped",
    frozenset({Drops.ELEMENTS}): "single elements may be dropped",
    frozenset({Dialect.LINALG}): "for linalg",
    frozenset({Positions.ONE}): "one window",
    frozenset({WindowSizes.STATIC}): "window extents known",
    frozenset({WindowSizes.RUNTIME}): "window extents at run time",
    dynamic_shape.WRITING: "",
}


def class_name(rule: Rule) -> str:
    """What a rule for scatters is for, for a reader: "Tile x assign, in bounds"."""
    constraints = rule.constraints
    told = {fact: _NAMES.get(values, values_of(values)) for fact, values in constraints.items()}
    whole = "dynamic shape" if rule.op == DYNAMIC_SCATTER else "anything"
    subset, combiner = told.pop("subset", whole), told.pop("combiner", "")
    return ", ".join(filter(None, (f"{subset} x {combiner}" if combiner else subset, *told.values())))
