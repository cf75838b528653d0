"""What was found at an op, found again at its twins: in the next layers the same ops stand in the same places.

Why it is the same. A matcher is a function of what its terms were asked: ops, what these take, and who takes what they
make. The first time it is given terms of its own (`Terms`), which know afterwards what that was. From it follows a
stretch of the block around the op: the smallest that holds the op, and with each op that was looked at those that were
looked at next to it, by near values. At another op whose stretch reads the same (`Listing.lines`) each question has the
same answer, moved along, if

- what was looked at outside of the stretch is the same for both: it is taken by far values, which are told by which
  they are, it takes nothing of the stretch, and who takes it was not asked where that is in the stretch;
- no far value is made within the stretch.

So the matches are the same, moved along. For that it does not matter in which order the users of a value were given:
what is a match in any order is one.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

from hlo_lower.ir import mlir
from hlo_lower.named.match.matches import Match, NearMiss
from hlo_lower.named.match.terms import Term, Terms
from hlo_lower.named.take_out.listing import Listing
from hlo_lower.named.take_out.region import BlockOrder, RawOperation, RawValue, Region

MOST = 16
"""How many stretches are remembered for one op; then there are no twins, but ops that happen to be alike."""

FEW = 3
"""Where nothing was found at an op, and fewer are left that read the same: these are looked at, too."""

Role = TypeVar("Role")

Seen: TypeAlias = list[Region | NearMiss]
"""What was found at an op."""


class Spot(NamedTuple):
    """A value of the block."""

    raw: RawValue  # the value
    place: int | None = None  # of the op in the stretch by which it is told; None where it is the same for twins
    number: int = 0  # which of its results, or operands
    is_taken: bool = False  # whether that takes it: an argument


class Copied(NamedTuple):
    """A finding, with the spots to move it to a twin; the last three are empty for a near miss."""

    one: Region | NearMiss  # what was found
    # inputs, results: of the region
    inputs: Sequence[Spot] = ()
    results: Sequence[Spot] = ()
    given: Mapping[int, Term] = {}  # what the match gives, by number


@dataclass(frozen=True)
class Stretch:
    """The ops on which depends what was found at one of them."""

    place: int  # of that op
    # first, last: of the stretch
    first: int
    last: int
    # before, behind: how many ops there are before that op, and from it on
    before: int
    behind: int
    lines: list[int]  # of the ops
    seen: list[Copied]  # what was found
    spots: dict[RawValue, Spot]  # the values in it


class Twins:
    """Findings of a block, each found once and moved to its twins."""

    def __init__(self, listing: Listing, order: BlockOrder, terms: Terms) -> None:
        self._listing = listing
        self._order = order
        self._terms = terms
        self._operations = listing.operations

    def find_all(self, begun: Collection[str], find: Callable[[RawOperation, Terms], Seen]) -> Seen:
        """All that `find` finds in the block at ops of the names `begun`."""
        lines, kinds, operations = self._listing.lines, self._listing.kinds, self._operations
        left, is_begun = Counter(lines), dict[int, bool]()
        known: dict[int, list[Stretch]] = {}
        found: Seen = []
        for place, line in enumerate(lines):
            if line not in known:
                kind = kinds[place]
                if kind not in is_begun:
                    is_begun[kind] = operations[place].name in begun
                if not is_begun[kind]:
                    continue
                known[line] = []
            left[line] -= 1
            for stretch in known[line]:
                first, behind = place - stretch.before, place + stretch.behind
                if stretch.lines == lines[first:behind]:
                    found += [self._move(copied, stretch, place - stretch.place) for copied in stretch.seen]
                    break
            else:
                is_last = not left[line] or len(known[line]) == MOST
                terms = self._terms if is_last else self._terms.apart()
                seen = find(operations[place], terms)
                found += seen
                is_worth = not is_last and (bool(seen) or left[line] >= FEW)
                if is_worth and (stretch := self._stretch(place, terms, seen)) is not None:
                    known[line].append(stretch)
        return found

    # --- what was looked at -------------------------------------------------------------------------------------

    def _stretch(self, place: int, terms: Terms, seen: Seen) -> Stretch | None:
        """The stretch around an op; None where it cannot identify twins."""
        looked_at = {place, *self._places(terms.visited_values)}
        looked_at.update(self._place(operation) for operation in terms.ends if self._order.holds(operation))
        looked_at.discard(len(self._operations) - 1)  # of the end of the block only that it takes a value is seen
        own = set[int]()
        for region in seen:
            if isinstance(region, Region):
                own.update(range(min(region.own_places), max(region.own_places) + 1))
                looked_at.update(region.places, self._places(region.inputs))
        looked_at |= own
        inside = self._joined_places(place, looked_at)
        first, last = min(inside), max(inside)
        values = [self._value_number(raw) for raw in terms.asked]
        if (
            any(self._takes_of(at, first, last) for at in looked_at - inside)
            or any(self._takes_far(at, first, last) for at in inside)
            or any(value is None or self._is_asked_across(value, first, last) for value in values)
            or any(not first <= place <= last for place in own)
        ):
            return None
        spots = {raw: self._spot(raw, first, last) for one in seen for raw in _values_of(one)}
        lines, copied = self._listing.lines[first : last + 1], [_to_copied(one, spots) for one in seen]
        return Stretch(place, first, last, place - first, last + 1 - place, lines, copied, spots)

    def _joined_places(self, place: int, looked_at: set[int]) -> set[int]:
        """The places among `looked_at` that near values join to an op, and those between."""
        inside, pending = set[int](), [place]
        while pending:
            at = pending.pop()
            if at in inside:
                continue
            inside.add(at)
            pending += [other for other in self._next_to(at) if other in looked_at]
            if not pending:
                first, last = min(inside), max(inside)
                pending = [other for other in looked_at - inside if first < other < last]
        return inside

    def _next_to(self, place: int) -> Iterator[int]:
        listing = self._listing
        for value in listing.operands_of(place):
            if listing.is_near[value]:
                yield from (listing.places[value],) if listing.places[value] >= 0 else listing.users(value)
        for value in listing.results_of(place):
            if listing.is_near[value]:
                yield from listing.users(value)

    def _takes_of(self, place: int, first: int, last: int) -> bool:
        return any(self._is_of(value, first, last) for value in self._listing.operands_of(place))

    def _takes_far(self, place: int, first: int, last: int) -> bool:
        """Whether an op takes a far value that is made in a stretch."""
        listing = self._listing
        return any(not listing.is_near[v] and first <= listing.places[v] <= last for v in listing.operands_of(place))

    def _is_asked_across(self, value: int, first: int, last: int) -> bool:
        """Whether a value that is the same for twins is taken in a stretch."""
        listing = self._listing
        moves = listing.is_near[value] and self._is_of(value, first, last)
        return not moves and any(first <= user <= last for user in listing.users(value))

    def _is_of(self, value: int, first: int, last: int) -> bool:
        """Whether a value is made in a stretch, or is an argument that is near and taken there."""
        listing = self._listing
        if listing.places[value] >= 0:
            return first <= listing.places[value] <= last
        return listing.is_near[value] and any(first <= user <= last for user in listing.users(value))

    def _place(self, operation: RawOperation) -> int:
        return int(self._order.place(operation))

    def _places(self, values: Iterable[RawValue]) -> list[int]:
        places = (self._order.place_of(value) for value in values)
        return [int(place) for place in places if place is not None]

    def _value_number(self, raw: RawValue) -> int | None:
        place = self._order.place_of(raw)
        if place is not None:
            return self._listing.results_of(int(place))[mlir.result_number(raw)]
        is_argument = mlir.is_block_argument(raw) and raw.owner == mlir.block_of(self._operations[0])
        return mlir.argument_number(raw) if is_argument else None

    def _spot(self, raw: RawValue, first: int, last: int) -> Spot:
        value, listing = self._value_number(raw), self._listing
        if value is None or not listing.is_near[value] or not self._is_of(value, first, last):
            return Spot(raw)
        place = listing.places[value]
        if place >= 0:
            return Spot(raw, place, mlir.result_number(raw))
        place = next(user for user in listing.users(value) if first <= user <= last)
        return Spot(raw, place, list(self._operations[place].operands).index(raw), is_taken=True)

    # --- moved along --------------------------------------------------------------------------------------------

    def _move(self, copied: Copied, stretch: Stretch, by: int) -> Region | NearMiss:
        one, move = copied.one, partial(self._term, stretch.spots, by)
        if isinstance(one, NearMiss):
            return NearMiss(one.name, one.why, move(one.at))
        first, last, operations, names = stretch.first, stretch.last, self._operations, self._order.names
        places = [place + by if first <= place <= last else place for place in one.places]
        match, spots, value = one.match, stretch.spots, self._value
        return Region(
            Match(match.name, Moved(match.inputs, move), Moved(copied.given, move).values(), match.attributes),
            tuple([operations[place] for place in places]),
            tuple([names[place] for place in places]),
            tuple(places),
            one.are_own,
            tuple([value(spot, by) for spot in copied.inputs]),
            tuple([value(spot, by) for spot in copied.results]),
            one.has_early,
            one.aliases and {value(spots[other], by): value(spots[same], by) for other, same in one.aliases.items()},
            one.kind,
        )

    def _value(self, spot: Spot, by: int) -> RawValue:
        """The twin's value at a spot."""
        raw, place, number, is_taken = spot
        if place is None:
            return raw
        if not number and not is_taken:
            return self._order.names[place + by]
        operation = self._operations[place + by]
        return (operation.operands if is_taken else operation.results)[number]

    def _term(self, spots: Mapping[RawValue, Spot], by: int, old: Term) -> Term:
        if old.surface is None:
            return old
        surface = self._value(spots[old.surface], by)
        if old.frame is not None:
            new = self._terms.of(surface)
        else:
            raw = surface if old.raw is old.surface else self._value(spots[old.raw], by)
            new = Term(self._terms, raw, None, old.op, surface, old.is_beneath)
        others = [other.surface for other in old.others if other.surface is not None]
        new.others += [self._terms.of(self._value(spots[other], by)) for other in others]
        return new


def _to_copied(one: Region | NearMiss, spots: Mapping[RawValue, Spot]) -> Copied:
    if isinstance(one, NearMiss):
        return Copied(one)
    inputs, results = ([spots[raw] for raw in values] for values in (one.inputs, one.results))
    return Copied(one, inputs, results, dict(enumerate(one.match.results)))


@dataclass(eq=False)
class Moved(Mapping[Role, Term]):
    """Terms moved along once they are asked for: of most twins nobody asks."""

    terms: Mapping[Role, Term]  # of that of which it is a twin
    move: Callable[[Term], Term]  # moves one
    _known: dict[Role, Term] = field(default_factory=dict[Role, Term])

    def __getitem__(self, role: Role) -> Term:
        if role not in self._known:
            self._known[role] = self.move(self.terms[role])
        return self._known[role]

    def __iter__(self) -> Iterator[Role]:
        return iter(self.terms)

    def __len__(self) -> int:
        return len(self.terms)


def _values_of(one: Region | NearMiss) -> Iterator[RawValue]:
    if isinstance(one, NearMiss):
        terms = [one.at]
    else:
        yield from (*one.inputs, *one.results, *one.aliases, *one.aliases.values())
        terms = [*one.match.inputs.values(), *one.match.results]
    for term in terms:
        for at in (term, *term.others):
            if at.surface is not None:
                yield at.surface
            if at.surface is not None and at.frame is None:
                yield at.raw
