"""What was found, as data: for reports and programs, apart from the module."""

from dataclasses import dataclass
from typing import Any, cast

from hlo_lower.base.causes import Cause
from hlo_lower.ir.view import Graph, Node
from hlo_lower.named.flops import Flops
from hlo_lower.named.match.matches import NearMiss
from hlo_lower.named.match.terms import Term
from hlo_lower.named.take_out.raising import Named, NamedModule
from hlo_lower.named.take_out.region import RawValue


@dataclass(frozen=True)
class NamedRecord:
    """A named op."""

    name: str  # without "hl."
    place: str  # where it comes from ("llama.py:88")
    function: str  # the function that holds it
    times: int  # how often that is called from public functions
    ops: int  # how many ops it covers
    flops: int  # how many floating-point operations these are, each time
    inputs: dict[str, str]  # the types of its operands, by their roles
    attributes: dict[str, Any]  # its attributes
    further: int  # how many values in between are taken by others as well
    inner: tuple[str, ...] = ()  # the named ops within it

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {
            **self.__dict__,
            "inner": list(self.inner),
            "attributes": {k: _plain(v) for k, v in self.attributes.items()},
        }


@dataclass(frozen=True)
class NearMissRecord:
    """What was almost a named op, where, and what it lacked."""

    name: str
    place: str
    why: Cause

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        return {"name": self.name, "place": self.place, "why": self.why.to_json()}


@dataclass(frozen=True)
class NamedReport:
    """What a module holds of named ops."""

    file: str  # the module's name
    op_count: int  # how many ops it has
    flops: int  # how many floating-point operations its public functions are, a loop counted as one trip
    named: tuple[NamedRecord, ...]  # the named ops, those within others left out
    misses: tuple[NearMissRecord, ...]  # what was almost one
    error: str = ""  # why it could not be read; "" where it was

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        named, misses = [one.to_json() for one in self.named], [one.to_json() for one in self.misses]
        told: dict[str, Any] = {"error": self.error} if self.error else {}
        counted = {"ops": self.op_count, "flops": self.flops, "named": named, "near_misses": misses}
        return {"file": self.file, **told, **counted}


def report_of(found: NamedModule) -> NamedReport:
    """What was found in a module, before it is raised."""
    graph, recorder = found.graph, _Recorder(found)
    named: list[NamedRecord] = []
    for block in found.blocks:
        function, times = block.function.name, found.times(block)
        named += [] if block.is_within else [recorder.record(one, function, times) for one in block.roots]
    misses = tuple(NearMissRecord(miss.name, _place(graph, miss.at), miss.why) for miss in _telling(found.misses))
    public = (function for function in graph.functions.values() if function.is_public and function.has_body)
    flops = sum(recorder.flops.of_function(function, found.listings.get(function.name)) for function in public)
    return NamedReport(graph.name, graph.op_count, flops, tuple(named), misses)


def _telling(misses: list[NearMiss]) -> list[NearMiss]:
    seen: dict[tuple[str, RawValue], NearMiss] = {}
    for miss in misses:
        seen.setdefault((miss.name, miss.at.raw), miss)
    return list(seen.values())


class _Recorder:
    """Tells of named ops; what regions of one kind have in common is computed once."""

    def __init__(self, found: NamedModule) -> None:
        self.flops = Flops(found.graph)
        self._graph = found.graph
        self._sizes: dict[object, tuple[int, int, dict[str, str]]] = {}

    def record(self, one: Named, function: str, times: int) -> NamedRecord:
        """A named op of a function that is called so often."""
        ops, flops, types = self._size(one)
        return NamedRecord(
            one.match.name,
            str(self._graph.location(Node(one.region.operations[-1]))),
            function,
            times,
            ops,
            flops,
            dict(types),
            dict(one.match.attributes),
            len(one.region.results) - len(one.match.results),
            tuple(inner.match.name for inner in one.inner),
        )

    def _size(self, one: Named) -> tuple[int, int, dict[str, str]]:
        known = self._sizes.get(one.region.kind)
        if known is None:
            nodes = [Node(operation) for operation in one.region.operations]
            ops = len(nodes)
            if one.call is not None:
                ops = sum(1 for _ in self._graph.functions[nodes[0].callee].body.nodes) - 1
            types = {role: _type(term) for role, term in one.match.inputs.items()}
            known = self._sizes[one.region.kind] = ops, sum(map(self.flops.of, nodes)), types
        return known


def _type(term: Term) -> str:
    return str(term.raw.type).removeprefix("tensor<").removesuffix(">")


def _place(graph: Graph, term: Term) -> str:
    return str(graph.location(term.node)) if term.op != "argument" else graph.name


def _plain(value: Any) -> Any:
    return list(cast(tuple[Any, ...], value)) if isinstance(value, tuple) else value
