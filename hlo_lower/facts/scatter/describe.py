"""The record of a classified scatter: what reports tell of it, as data."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from hlo_lower.base.causes import Cause, Code
from hlo_lower.facts.scatter.canonical import CanonicalScatter
from hlo_lower.facts.scatter.dynamic import DynamicFacts, DynamicScatter, Positions, written_subset
from hlo_lower.facts.scatter.facts import ScatterFacts
from hlo_lower.facts.scatter.record import Fact, ScatterRecord, Written
from hlo_lower.facts.values.evidence import Evidence
from hlo_lower.facts.values.value_numbering import Computed
from hlo_lower.ir import mlir
from hlo_lower.ir.view import Graph, Node
from hlo_lower.ops.subset import Subset

Moved: TypeAlias = tuple[Computed, Computed]


@dataclass(frozen=True)
class ScatterPlace:
    """Where a scatter stands, kept from before it is lowered.

    Attributes:
      graph: the module.
      number: the scatter's number.
      function: the name of the function that holds it.
      location: as the module has it, to be read when somebody asks.
    """

    graph: Graph
    number: int
    function: str
    location: mlir.RawLocation

    @classmethod
    def of(cls, graph: Graph, number: int, node: Node) -> "ScatterPlace":
        """The place of a node."""
        return cls(graph, number, graph.function_of(node).name, node.raw.location)

    @property
    def record_fields(self) -> "dict[str, Any]":
        """Its fields in a record."""
        location = self.graph.place(self.location, self.function)
        own = self.graph.has_locations and location.line and location.file != self.graph.name
        told = {"number": self.number, "function": self.function, "location": str(location), "scope": location.scope}
        return {**told, "source": location.file if own else ""}  # "": the place is a line of the module itself


def of_equivalent(record: ScatterRecord, facts: ScatterFacts, place: ScatterPlace, moved: Moved) -> ScatterRecord:
    """The record of a scatter's twin: the same, but for its place and the places of its evidence.

    Args:
      record, facts: of the other one.
      place: of this one.
      moved: how the indices of the other one are computed, and those of this one: where the one's evidence lies, and
        the other's.
    """
    return replace(record, **place.record_fields, facts=_facts(place.graph, facts, moved))


def describe(graph: Graph, number: int, scatter: CanonicalScatter, facts: ScatterFacts) -> ScatterRecord:
    """The record of a scatter, without its rule.

    Args:
      graph: the module.
      number: the scatter's number.
      scatter, facts: the scatter and what is known of it.
    """
    return ScatterRecord(
        **ScatterPlace.of(graph, number, scatter.node).record_fields,
        file=graph.name,
        kind=facts.kind,
        subset=facts.subset.value,
        writes=_writes(graph, scatter, facts),
        combiner=", ".join(c.value for c in facts.region.combiners),
        operand_shape=scatter.operand_shape,
        indices_shape=scatter.indices.shape,
        updates_shape=scatter.updates[0].shape,
        dtype=", ".join(v.element_type for v in scatter.operands),
        oob=facts.oob.value,
        in_bounds=facts.in_bounds.value,
        bounds=_with_argument_name(graph, facts.bounds),
        unique=facts.unique.value,
        facts=_facts(graph, facts),
        claims=facts.claims,
    )


def _facts(graph: Graph, facts: ScatterFacts, moved: Moved | None = None) -> tuple[Fact, ...]:
    """The findings, then what else rules ask for; where their steps lie is looked up when somebody reads them."""
    found = [Fact(f.name, f.value, lambda f=f: tuple(_steps(graph, f.steps, moved))) for f in facts.findings]
    return (*found, *_constrained_facts(facts, found))


def _constrained_facts(facts: ScatterFacts | DynamicFacts, found: Iterable[Fact]) -> Iterator[Fact]:
    """The facts that rules constrain and that `found` lacks, so that the record has every fact that a message names."""
    names = {fact.name for fact in found}
    return (Fact(name, getattr(facts, name).value) for name in facts.domains if name not in names)


def _steps(graph: Graph, steps: Iterable[Cause | Evidence], moved: Moved | None) -> Iterator[Cause]:
    told: set[Cause] = set()
    # By their text: the bindings give another object each time that a location is asked for.
    trails = [computed.trail() for computed in moved or ()]
    places = {str(theirs): own for theirs, own in zip(*trails, strict=True)} if moved else {}
    for step in steps:
        for cause in (step,) if isinstance(step, Cause) else step.placed_causes(graph, places):
            if cause not in told:
                told.add(cause)
                yield cause


def describe_refused(graph: Graph, number: int, node: Node, oob: str, reason: Cause) -> ScatterRecord:
    """The record of a scatter that has no canonical form: general, with everything unknown but its types."""
    operand, indices, updates = (node.operands[i] for i in (0, len(node.results), len(node.results) + 1))
    return ScatterRecord(
        **ScatterPlace.of(graph, number, node).record_fields,
        file=graph.name,
        kind="general",
        subset="unknown",
        writes=Written(),
        combiner="unknown",
        operand_shape=operand.shape,
        indices_shape=indices.shape,
        updates_shape=updates.shape,
        dtype=", ".join(r.element_type for r in node.results),
        oob=oob,
        in_bounds="unknown",
        bounds=Code.NOT_KNOWN(),
        unique="unknown",
        why=reason,
    )


def describe_dynamic(graph: Graph, number: int, scatter: DynamicScatter, facts: DynamicFacts) -> ScatterRecord:
    """The record of a scatter of dynamic shape before a rule is chosen."""
    subset, kind = written_subset(facts, scatter)
    is_guarded = bool(facts.unproved)
    one = facts.positions is Positions.ONE
    bounds = Code.GUARDED(Code.SIZE_AT_RUN_TIME()) if is_guarded else Code.PROVED(None)
    found = (
        Fact.known("shape", "dynamic", Code.SIZES_AT_RUN_TIME()),
        Fact.known("subset", subset.value, Code.WITHOUT_SIZES()),
        Fact.known("combiner", ", ".join(c.value for c in facts.region.combiners), *facts.region.why),
        Fact.known("in_bounds", "unknown" if is_guarded else "always", *facts.why_inside),
    )
    return ScatterRecord(
        **ScatterPlace.of(graph, number, scatter.node).record_fields,
        file=graph.name,
        kind=kind,
        subset=subset.value,
        writes=Written((1,) if one else ()),
        combiner=", ".join(c.value for c in facts.region.combiners),
        operand_shape=scatter.operand_shape,
        indices_shape=scatter.indices.shape,
        updates_shape=scatter.updates_shape,
        dtype=", ".join(v.element_type for v in scatter.operands),
        oob=facts.oob.value,
        in_bounds="unknown" if is_guarded else "always",
        bounds=bounds,
        unique="proved" if one else "unknown",
        facts=(*found, *_constrained_facts(facts, found)),
    )


def _with_argument_name(graph: Graph, bounds: Cause) -> Cause:
    """Bounds that rest on an argument, with the argument's name if the module's locations give one."""
    if bounds.code is not Code.GUARDED or not graph.has_locations:
        return bounds
    source = bounds.cause("source")
    if source.code is not Code.ARGUMENT:
        return bounds
    number, function = source["number"], graph.functions.get(str(source["function"]))
    assert isinstance(number, int)
    own = None if function is None else mlir.value_name(function.body.argument(number).raw)
    return Code.GUARDED(source.with_("name", own or None))


def _writes(graph: Graph, scatter: CanonicalScatter, facts: ScatterFacts) -> Written:
    """How many windows are written, and where, in index notation."""
    runs = tuple(run.size for run in facts.layout.runs) if facts.subset is Subset.ROWS else ()
    index = tuple(_axis(graph, scatter, facts, dim) for dim in range(scatter.rank))
    return Written(runs or (facts.layout.positions,), index)


def _axis(graph: Graph, scatter: CanonicalScatter, facts: ScatterFacts, dim: int) -> str:
    size, window, offset = scatter.operand_shape[dim], facts.layout.window[dim], facts.offsets_known[dim]
    if dim in facts.layout.coordinates:
        return "b"
    if window == size and dim not in (*facts.guarded_dims, *facts.masked_dims):
        return ":"
    if dim not in scatter.index_dims:
        return f":{window}"
    if offset is not None:
        return str(offset) if window == 1 else f"{offset}:{offset + window}"
    name = "ijklmnpqrst"[scatter.index_dims.index(dim) % 11]
    if facts.subset in (Subset.TILE, Subset.POINT, Subset.ROWS) and _placed_dims(scatter, facts) == [dim]:
        name = _argument_name(graph, facts) or name
    return name if window == 1 else f"{name}:{name}+{window}"


def _placed_dims(scatter: CanonicalScatter, facts: ScatterFacts) -> list[int]:
    """The operand dims whose start is known only at run time."""
    return [dim for dim in scatter.index_dims if facts.offsets_known[dim] is None]


def _argument_name(graph: Graph, facts: ScatterFacts) -> str:
    """The name of the argument that bounds rest on, where it has one that reads like a variable's."""
    bounds = _with_argument_name(graph, facts.bounds)
    source = bounds.cause("source") if bounds.code is Code.GUARDED else bounds
    name = str(source["name"]) if source.code is Code.ARGUMENT and source["name"] else ""
    return name if name.isidentifier() else ""
