"""The ops that a match covers: all that lies between its inputs and its results, and whether they can be taken out.

They can where they stand in one block, take nothing from outside but the inputs and constants, and no input depends on
one of them. What else is used outside becomes a further result; a constant, or a constant broadcast, is copied.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import compress
from operator import not_
from typing import NamedTuple, TypeAlias

from hlo_lower.ir import mlir
from hlo_lower.ir.view import Node
from hlo_lower.named.match.axis_atoms import LAYOUT
from hlo_lower.named.match.matches import Match
from hlo_lower.ops.names import CONSTANT, CONVERT, IOTA
from hlo_lower.ops.purity import Functional
from hlo_lower.ops.spec import RESHAPING

RawOperation = mlir.RawOperation
RawValue = mlir.RawValue

Name: TypeAlias = RawValue | RawOperation
"""By what an operation is known: its first result, itself where it has none."""

CHEAP = frozenset({CONSTANT, IOTA})
"""Ops that are copied where others use them as well."""

MOVES = RESHAPING | {CONVERT}
"""Ops at the rim of a match that stay outside where others use them as well."""


BROADCAST = frozenset({"weight", "bias", "cos", "sin", "rotation", "mean", "variance"})
"""Operands that may have axes of 1, or lack axes, that the first one has."""


class BlockOrder:
    """The operations of one block in program order, kept while some are taken out and moved.

    They are known by their first results: the bindings hash an operation by what it takes, which changes.

    Attributes:
      names: by what those are known that stood there at first.
    """

    def __init__(self, operations: Sequence[RawOperation]) -> None:
        self.names = list(map(name_of, operations))
        self._places: dict[Name, float] = dict(zip(self.names, range(len(operations)), strict=True))
        self._standing: dict[float, RawOperation] = dict(enumerate(operations))
        self._ascending: list[float] = list(range(len(operations)))  # at some of them nothing stands any more

    @property
    def operations(self) -> list[RawOperation]:
        """Those that stand there now."""
        return self.between(0, len(self.names))

    def holds(self, operation: RawOperation) -> bool:
        """Whether an operation stands in the block itself."""
        return name_of(operation) in self._places

    def place(self, operation: RawOperation) -> float:
        """A number that grows along the block; of those that stood there at first how many stood before."""
        return self._places[name_of(operation)]

    def place_of_name(self, name: Name) -> float:
        """The same of one by what it is known."""
        return self._places[name]

    def place_of(self, value: RawValue) -> float | None:
        """The place of the operation that makes a value; None where that stands elsewhere, and of an argument."""
        place = self._places.get(value)
        if place is None and (producer := mlir.producer(value)) is not None:
            place = self._places.get(name_of(producer))
        return place

    def between(self, first: float, last: float) -> list[RawOperation]:
        """Those whose places lie between two, the two included."""
        places = self._ascending[bisect_left(self._ascending, first) : bisect_right(self._ascending, last)]
        return [operation for operation in map(self._standing.get, places) if operation is not None]

    def remove_all(self, names: Iterable[Name]) -> None:
        """Those that are known by these are about to be taken out."""
        for name in names:
            del self._standing[self._places.pop(name)]

    def put(self, place: float, operation: RawOperation, behind: Sequence[RawOperation] = ()) -> None:
        """An operation stands at a place that was left, and before what follows it others that stood elsewhere."""
        self.remove_all(map(name_of, behind))
        at = bisect_right(self._ascending, place)
        following = self._ascending[at] if at < len(self._ascending) else place + 1
        places = [place + (following - place) * number / (len(behind) + 1) for number in range(len(behind) + 1)]
        self._ascending[at:at] = places[1:]
        for own, other in zip(places, (operation, *behind), strict=True):
            self._places[name_of(other)], self._standing[own] = own, other


def name_of(operation: RawOperation) -> Name:
    """By what an operation is known: its first result, itself where it has none."""
    try:
        return operation.results[0]
    except IndexError:
        return operation


@dataclass(eq=False)
class Region:
    """The ops of a named op, to be taken out of a block."""

    match: Match  # whose
    # those that it covers, in program order; constants that others use, too, are among them
    operations: tuple[RawOperation, ...]
    names: tuple[Name, ...]  # by what these are known
    places: tuple[int, ...]  # where these stand in the block, as it was when they were found
    are_own: tuple[bool, ...]  # for each of these whether it is taken out; others stay where they are as well
    inputs: tuple[RawValue, ...]  # what they take
    results: tuple[RawValue, ...]  # what is taken of them: of the match, then others
    has_early: bool = False  # whether one of these is made before the last of the operations
    # values that are inputs computed once more, and the inputs
    aliases: Mapping[RawValue, RawValue] = field(default_factory=dict[RawValue, RawValue])
    # the same of regions that were seen to be the same but for where they stand
    kind: object = field(default_factory=object)

    def holds(self, operation: RawOperation) -> bool:
        """Whether an operation is one of its own, or stands in a region of one."""
        return name_of(operation) in self.name_set or _is_within(operation, self.name_set)

    @cached_property
    def name_set(self) -> frozenset[Name]:
        """By what its operations are known."""
        return frozenset(self.names)

    @property
    def own(self) -> list[RawOperation]:
        """Those of its operations that are taken out."""
        return list(compress(self.operations, self.are_own))

    @property
    def own_names(self) -> Iterable[Name]:
        """By what these are known."""
        return compress(self.names, self.are_own)

    @property
    def own_places(self) -> list[int]:
        """The places of these."""
        return list(compress(self.places, self.are_own))

    @property
    def kept(self) -> dict[Name, RawOperation]:
        """Those of its operations that also stay in place, by what they are known."""
        if all(self.are_own):
            return {}
        return dict(compress(zip(self.names, self.operations, strict=True), map(not_, self.are_own)))


def now(moved: Mapping[RawValue, RawValue], value: RawValue) -> RawValue:
    """The value that replaces another one now."""
    while value in moved:
        value = moved[value]
    return value


def region_of(
    match: Match, order: BlockOrder, is_function: Functional, moved: Mapping[RawValue, RawValue] | None = None
) -> Region | None:
    """The region of a match in a block; None where it cannot be taken out. `moved`: what stands for a value since
    the match was found."""
    moved = moved or {}
    results = [term.surface for term in match.results]
    given = [term.surface for term in match.inputs.values()]
    if any(value is None for value in (*given, *results)):
        return None
    results = [now(moved, value) for value in results]
    inputs = _nearest(match, given, results, order) if not moved else [now(moved, value) for value in given]
    aliases = _aliases(match, inputs, moved)
    covered = _between([*inputs, *aliases], results, order)
    if covered is None and _compare_siblings(match):
        aliases = _aliases(match, inputs, moved)
        covered = _between([*inputs, *aliases], results, order)
    if covered is None:
        return None
    inputs = _rim(match, inputs, covered)
    names = tuple(sorted(covered, key=order.place_of_name))
    operations = {name: covered[name].raw for name in names}
    if not operations or not all(map(is_function, map(Node, operations.values()))):
        return None
    made = [list(operation.results) for operation in operations.values()]
    outside = {value for values in made for value in values if _is_used_outside(value, covered)}
    copied = _shared_constants(operations, outside, results)
    are_own = tuple([name not in copied for name in names])
    own = [value for values in compress(made, are_own) for value in values]
    if not set(own).isdisjoint(inputs):  # another result of its op is covered
        return None
    results += [value for value in own if value in outside and value not in results]
    aliases = {o: value for o, value in aliases.items() if any(o in op.operands for op in operations.values())}
    places = tuple([int(order.place_of_name(name)) for name in names])
    has_early, values = any(value not in made[-1] for value in results), (tuple(inputs), tuple(results))
    region = Region(match, tuple(operations.values()), names, places, are_own, *values, has_early, aliases)
    after = operations_to_move(region, order)
    if after is None or not all(is_function(Node(operation)) for operation in after):
        return None
    return region


def _aliases(match: Match, inputs: Sequence[RawValue], moved: Mapping[RawValue, RawValue]) -> dict[RawValue, RawValue]:
    """The values that compute an input once more, each with that input."""
    return {
        now(moved, other.surface): value
        for term, value in zip(match.inputs.values(), inputs, strict=True)
        for other in term.others
        if other.surface is not None
    }


def _compare_siblings(match: Match) -> bool:
    """Look whether an input is computed once more from the same operand (`x.T` twice); whether one may be."""
    moves = [term for term in match.inputs.values() if term.op in LAYOUT]
    are_same = [user.is_same(term) for term in moves for user in term.operands[0].users if user is not term]
    return any(are_same)  # all of them are compared


def _nearest(match: Match, given: Sequence[RawValue], results: Sequence[RawValue], order: BlockOrder) -> list[RawValue]:
    """The inputs as the results take them: behind products with 1 and calls that give them back, where that is one
    value; so what others take as well stays outside."""
    if not any(term.is_beneath for term in match.inputs.values()):
        return list(given)
    terms = {id(term): n for n, term in enumerate(match.inputs.values())}
    known = next(iter(match.results)).terms.known_term
    hits: list[dict[RawValue, None]] = [{} for _ in given]
    pending, seen = list(results), set[RawValue]()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        term = known(value)
        number = None if term is None or value in results else terms.get(id(term))
        if number is not None:
            hits[number][value] = None
            continue
        producer = mlir.producer(value)
        if producer is None or not order.holds(producer):
            continue
        pending += mlir.taken_by(producer)
    return [next(iter(hit)) if len(hit) == 1 else value for hit, value in zip(hits, given, strict=True)]


class Covered(NamedTuple):
    """An op between values, and what it takes."""

    raw: RawOperation
    taken: list[RawValue]  # `mlir.taken_by`


def _between(inputs: Iterable[RawValue], results: Iterable[RawValue], order: BlockOrder) -> dict[Name, Covered] | None:
    """The ops of the block between values, by their first results; None where something else comes in."""
    given, covered = set(inputs), dict[Name, Covered]()
    pending = [value for value in results if value not in given]
    while pending:
        value = pending.pop()
        if value in covered:
            continue
        producer = mlir.producer(value)
        if producer is None or not order.holds(producer):
            return None
        name = name_of(producer)
        if name in covered:
            continue
        taken = mlir.taken_by(producer)
        covered[name] = Covered(producer, taken)
        pending += [operand for operand in taken if operand not in given]
    return covered


def _rim(match: Match, inputs: Sequence[RawValue], covered: dict[Name, Covered]) -> list[RawValue]:
    """The inputs, or what a move makes of one, where that is used outside: then the move stays outside.

    Only tables, weights and the like may get another shape by that: attributes count the axes of all others.
    """
    takers: dict[RawValue, list[RawOperation]] = {}
    for operation in covered.values():
        for value in operation.taken:
            takers.setdefault(value, []).append(operation.raw)
    found: list[RawValue] = []
    for role, value in zip(match.inputs, inputs, strict=True):
        is_shaped = role not in BROADCAST or "layout" in match.attributes
        at, chain = value, list[RawOperation]()
        while len(users := takers.get(at, ())) == 1 and users[0].name in MOVES:
            chain.append(users[0])
            at = users[0].results[0]
            if is_shaped and users[0].name != CONVERT:
                break
            if _is_used_outside(at, covered):
                for move in chain:
                    covered.pop(name_of(move), None)  # two inputs may be one value
                value, chain = at, []
        found.append(value)
    return found


def _is_used_outside(value: RawValue, covered: Collection[Name]) -> bool:
    for use in value.uses:
        operation = use.owner.operation
        if name_of(operation) not in covered and not _is_within(operation, covered):
            return True
    return False


def _is_within(operation: RawOperation, covered: Collection[Name]) -> bool:
    parent = operation.parent
    while parent is not None and parent.operation.name not in ("func.func", "builtin.module"):
        if name_of(parent.operation) in covered:
            return True
        parent = parent.operation.parent
    return False


def _shared_constants(
    operations: Mapping[Name, RawOperation], outside: Collection[RawValue], results: Collection[RawValue]
) -> set[Name]:
    """Among the covered ops the constants that have users outside, alone or broadcast, with the ops that make them."""
    cheap, found = set[Name](), set[Name]()
    for name, operation in operations.items():
        kind = operation.name
        if kind in CHEAP or (kind in MOVES and operation.operands[0] in cheap):
            cheap.add(name)
            if name in outside and name not in results:
                pending = [name]
                while pending:
                    found.add(current := pending.pop())
                    pending += [taken for taken in operations[current].operands if taken in operations]
    return found


def operations_to_move(region: Region, order: BlockOrder) -> tuple[RawOperation, ...] | None:
    """The ops between those of a region that depend on them, and so have to move behind it.

    None where an input of the region depends on them: then they cannot be one op. Only the results of a region have
    users outside, and the users of its last op stand behind it already: so none depends on it before the first of its
    results is made.
    """
    if not region.has_early:
        return ()
    made = [place for value in region.results if (place := order.place_of(value)) is not None]
    tainted = set(region.results)
    after: list[RawOperation] = []
    for operation in order.between(min(made), order.place(region.operations[-1])):
        if name_of(operation) in region.name_set:
            continue
        if any(value in tainted for value in mlir.taken_by(operation)):
            after.append(operation)
            tainted.update(operation.results)
    return None if any(value in tainted for value in region.inputs) else tuple(after)
