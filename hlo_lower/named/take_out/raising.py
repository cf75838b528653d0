"""Raise a module: find its named ops, choose the largest where they overlap, and take each out (`outline`)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Function, Graph, Node
from hlo_lower.named.match.matches import Match, Matchers, NearMiss
from hlo_lower.named.match.terms import Term, Terms
from hlo_lower.named.take_out.listing import Listing, listing_of
from hlo_lower.named.take_out.outline import PREFIX, Outliner
from hlo_lower.named.take_out.region import BlockOrder, RawOperation, RawValue, Region, name_of, now, region_of
from hlo_lower.named.take_out.twins import Twins
from hlo_lower.ops.names import CASE, COMPOSITE, IF, WHILE
from hlo_lower.ops.purity import Functional


@dataclass(eq=False)
class Named:
    """A named op of a block, and those within it."""

    match: Match  # what was found
    region: Region  # what it covers
    call: RawOperation | None = None  # the call of which it is the whole function; None of others
    inner: "list[Named]" = field(default_factory=list["Named"])  # named ops within it


@dataclass(eq=False)
class NamedBlock:
    """A block, and the named ops in it that lie in no other."""

    order: BlockOrder  # the block
    function: Function  # the function that holds it
    roots: list[Named]  # the named ops
    is_within: bool = False  # whether the function is itself a named op, or called by nothing but such


@dataclass(eq=False)
class NamedModule:
    """The findings in a module: the named ops, block by block, the near misses, and the listings of functions."""

    graph: Graph
    blocks: list[NamedBlock]
    misses: list[NearMiss]
    listings: Mapping[str, Listing]

    def times(self, block: NamedBlock) -> int:
        """How often a block's function is called from public functions, each call counted."""
        return self._call_counts.get(block.function.name, 0)

    @cached_property
    def _call_counts(self) -> dict[str, int]:
        calls: dict[str, list[str]] = {}
        for node in self.graph.callers:
            calls.setdefault(self.graph.function_of(node).name, []).append(node.body_name)
        found: dict[str, int] = {}
        pending = [name for name, function in self.graph.functions.items() if function.is_public]
        while pending:
            name = pending.pop()
            found[name] = found.get(name, 0) + 1
            pending += calls.get(name, [])
        return found


def find_named(graph: Graph, matchers: Matchers, only: Collection[str] | None = None) -> NamedModule:
    """Find the named ops of a module, which is left as it is."""
    search = _Search(matchers, only, Terms(graph), Functional(graph))
    found: list[tuple[Function, BlockOrder, list[Named]]] = []
    misses: list[NearMiss] = []
    taken_whole: dict[str, Named] = {}
    listings: dict[str, Listing] = {}
    for function in _searched_functions(graph):
        for number, order in enumerate(_blocks(function)):
            operations = order.operations
            listing = None if number or len(operations) < LISTED else listing_of(function.node.raw, operations)
            if listing is not None:
                listings[function.name] = listing
            named, missed = search.in_block(order, listing)
            misses += missed
            found.append((function, order, named))
            whole = (
                None if function.is_public else next((one for one in named if _is_whole(function, order, one)), None)
            )
            if whole is not None and not graph.has_other_reference(function.name):
                taken_whole[function.name] = whole
                named.remove(whole)
    blocks: list[NamedBlock] = []
    within = _covered_functions(graph, taken_whole)
    for function, order, named in found:
        every = [*_whole_calls(graph, order, taken_whole), *named]
        if every:
            blocks.append(NamedBlock(order, function, _forest(every), function.name in within))
    return NamedModule(graph, blocks, misses, listings)


def raise_graph(graph: Graph, found: NamedModule) -> None:
    """Put composites in the place of the named ops of a module, in place."""
    outliner, is_function = Outliner(graph), Functional(graph)
    for block in found.blocks:
        moved: dict[RawValue, RawValue] = {}
        for named in block.roots:
            _raise(outliner, named, named.region, is_function, block.order, moved)
    outliner.finish()


def _raise(
    outliner: Outliner,
    named: Named,
    region: Region | None,
    is_function: Functional,
    order: BlockOrder,
    moved: dict[RawValue, RawValue],
) -> None:
    """Put a composite in the place of a named op that now covers a region, and of those within it in its function;
    `moved` learns what stands for values in the block then."""
    if region is None:
        return
    if named.call is not None:
        composite = outliner.name_call(named.call, named.match, order)
        moved.update(zip(region.results, composite.results, strict=True))
        return
    region.inputs = tuple([now(moved, value) for value in region.inputs])
    outlined = outliner.outline(region, order)
    if outlined is None:
        return
    if outlined.function is not None and named.inner:
        block = BlockOrder([op.operation for op in outlined.function.regions[0].blocks[0].operations])
        within = {**moved, **outlined.instead}
        for inner in named.inner:
            covered = inner.region if inner.call is not None else region_of(inner.match, block, is_function, within)
            _raise(outliner, inner, covered, is_function, block, within)
    moved.update(zip(region.results, outlined.composite.results, strict=True))


def _searched_functions(graph: Graph) -> list[Function]:
    """The functions to search for named ops: not the decompositions of named ops."""
    standing = {node.body_name for node in graph.callers if node.name == COMPOSITE and _is_ours(node)}
    return [f for f in graph.functions.values() if f.has_body and f.name not in standing]


def _is_ours(node: Node) -> bool:
    return mlir.symbol_name(node.raw.attributes["name"]).startswith(PREFIX)


def _blocks(function: Function) -> list[BlockOrder]:
    found: list[BlockOrder] = []
    pending = [mlir.body_of(function.node.raw)]
    while pending:
        operations = pending.pop()
        found.append(BlockOrder(operations))
        for operation in operations:
            if operation.name in _WITH_BLOCKS:
                blocks = [block for region in operation.regions for block in region.blocks]
                pending += [[inner.operation for inner in block.operations] for block in blocks]
    return found


_WITH_BLOCKS = frozenset({WHILE, CASE, IF})

LISTED = 64
"""Of a block of fewer ops each is looked at: it has no layers."""


IDENTITY = "identity "
"""How an anchor begins that is an op which does nothing, as a product with 1."""


@dataclass(frozen=True)
class _Search:
    # matchers, only: as in `find_named`
    matchers: Matchers
    only: Collection[str] | None
    terms: Terms  # of the module
    is_function: Functional  # whether an op is a function of its operands

    def in_block(self, order: BlockOrder, listing: Listing | None) -> tuple[list[Named], list[NearMiss]]:
        """The matches of a block whose regions can be taken out."""
        begun = {"func.call", *(name.removeprefix(IDENTITY) for name in self.matchers.by_anchor)}
        find = partial(self._match_at, order)
        if listing is None:
            seen = [one for op in order.operations if op.name in begun for one in find(op, self.terms)]
        else:
            seen = Twins(listing, order, self.terms).find_all(begun, find)
        named = [Named(one.match, one) for one in seen if isinstance(one, Region)]
        return named, [one for one in seen if isinstance(one, NearMiss)]

    def _match_at(self, order: BlockOrder, operation: RawOperation, terms: Terms) -> list[Region | NearMiss]:
        name, by_anchor = operation.name, self.matchers.by_anchor
        if not len(operation.results):  # a call that only checks something, or prints
            return []
        tried = by_anchor.get(name, [])
        if name == "func.call":  # what it gives may be what a larger op begins with
            made_by = _op_name(terms.of(operation.results[0]))
            tried = [*by_anchor.get(made_by, ()), *by_anchor.get(f"func.call {made_by}", ())]
        of_identity = by_anchor.get(f"{IDENTITY}{name}", [])
        if not tried and not of_identity:
            return []
        anchor = terms.of(operation.results[0])
        if anchor.surface != operation.results[0]:  # it does nothing, as maximum(x, -inf)
            tried, anchor = of_identity, Term(terms, operation.results[0], None, "", operation.results[0])
        wanted = [one for one in tried if self.only is None or set(self.only) & set(self.matchers.names[one])]
        seen: list[Region | NearMiss] = []
        for found in (matcher(anchor) for matcher in wanted):
            if isinstance(found, Match) and (self.only is None or found.name in self.only):
                region = region_of(found, order, self.is_function)
                seen += [] if region is None else [region]
            elif isinstance(found, NearMiss):
                seen.append(found)
        return seen


def _op_name(term: Term) -> str:
    return term.op if "." in term.op else f"stablehlo.{term.op}"


def _is_whole(function: Function, order: BlockOrder, named: Named) -> bool:
    """Whether a named op is all that a private function computes, of its arguments in their order."""
    region, operations = named.region, order.operations
    return (
        len(region.operations) == len(operations) - 1
        and operations[-1].name == "func.return"
        and list(region.inputs) == list(function.body.raw.arguments)
        and list(region.results) == list(operations[-1].operands)
    )


def _covered_functions(graph: Graph, whole: Mapping[str, Named]) -> set[str]:
    """The functions that are named ops, and those that only these call."""
    found = set(whole)
    pending = True
    while pending:
        pending = False
        for name, calls in graph.calls.items():
            if name not in found and all(graph.function_of(call).name in found for call in calls):
                found.add(name)
                pending = True
    return found


def _whole_calls(graph: Graph, order: BlockOrder, whole: Mapping[str, Named]) -> list[Named]:
    """A named op for each call of a function that is one."""
    found: list[Named] = []
    for name, named in whole.items():
        for call in graph.calls.get(name, ()):
            operation = call.raw
            if order.holds(operation):
                values = tuple(operation.operands), tuple(operation.results)
                place, known_by = int(order.place(operation)), name_of(operation)
                region = Region(named.match, (operation,), (known_by,), (place,), (True,), *values)
                found.append(Named(named.match, region, operation))
    return found


def _forest(named: Sequence[Named]) -> list[Named]:
    """The largest first, those that lie within another below it; of two that overlap the smaller is left out."""
    roots: list[Named] = []
    owners: dict[int, tuple[Named, int]] = {}
    firsts: dict[int, int] = {}
    for one in sorted(named, key=lambda n: -len(n.region.operations)):
        places = one.region.own_places
        around = {id(owner[0]): owner for place in places if (owner := owners.get(place)) is not None}
        if around and (len(around) > 1 or any(place not in owners for place in places)):
            continue
        outer = next(iter(around.values()), None)
        if not places or (outer is not None and outer[1] <= len(places)):
            continue
        firsts[id(one)] = min(places)
        (roots if outer is None else outer[0].inner).append(one)
        owners.update(dict.fromkeys(places, (one, len(places))))
    return sorted(roots, key=lambda n: firsts[id(n)])
