"""Align two modules: match what both compute alike, and cut the rest into regions.

Values are numbered structurally (`hlo_lower.verify.read.numbering`), body by body. What both modules have is matched.
Below a difference nothing would match any more, so equalities are *assumed* there: value x of the first module and y
of the second are taken as equal where the same operation reads them at the same place beside operands that are equal,
or where both modules return them. Each assumed equality is the output of a region: the operations behind x and behind
y, back to matched values. Who judges the regions (`hlo_lower.verify.regions`) proves or drops the assumptions.

Sound: if each region's two pieces are the same function of the region's inputs, all assumed equalities hold, by
induction over the first module's order: an input that both pieces read stands before x and before y; what only one
piece reads may be anything, as that piece gives the same for all of it.

An operation with regions whose operands match and whose bodies do not is aligned body by body, with equal arguments;
if the bodies are equal functions so are the operations, by induction over the iterations of a loop.
"""

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Literal, NamedTuple, TypeAlias

from hlo_lower.ops import names
from hlo_lower.ops.spec import CONTROL, ELEMENTWISE, LAYOUT, MANUAL
from hlo_lower.verify.align.looks import Looks, behind_conversions, has_float_conversions, is_widening, loose_type
from hlo_lower.verify.patience import patience
from hlo_lower.verify.read.numbering import Number, Table
from hlo_lower.verify.read.program import Body, Op, Program, ValueId, ops_within

_ALIGNED_WITHIN = CONTROL | {MANUAL}
"""Operations whose bodies are aligned: those of others hold a few operations for each element."""


JOINED = 32
"""Operations up to which outputs that share only cheap ones are one region."""

CHEAP = ELEMENTWISE | LAYOUT
"""Operations that may be computed again in each of several regions."""

BEHIND = 6
"""Steps in which it is looked at what two values are computed from, to choose between several counterparts."""

ENDS: "Mapping[_How, int]" = {"behind": 6, "far behind": 20}
"""Steps from what is matched to a value that is the only end of it. First few: of a chain of scatters each has its own
end, and in many steps only the last one. A scatter may become twenty ops."""

MOST_BEHIND = 256
"""Operations behind what is matched among which an end is looked for; among more there is hardly one."""

MOST_ONWARDS = 64
"""Operations between an end and what is matched that are looked at for another end."""


@dataclass(eq=False)
class Side:
    """One module's body while it is aligned.

    Attributes:
      around: the body around it.
      numbers: of all values that are visible, those around the body included.
      assumed: the number that is assumed for a value, in the place of its own.
      kept: the own number of a value that another one was assumed to have.
      alike: values that have the number of one of these, as they are computed alike from the same numbers.
      live: the operations that matter.
      count: how many values of the body have a number.
    """

    program: Program
    body: Body
    depth: int
    numbers: dict[ValueId, Number]
    table: Table
    around: "Side | None" = None
    assumed: dict[ValueId, Number] = field(default_factory=dict[ValueId, Number])
    kept: dict[ValueId, Number] = field(default_factory=dict[ValueId, Number])
    alike: dict[ValueId, ValueId] = field(default_factory=dict[ValueId, ValueId])
    live: list[Op] = field(default_factory=list[Op])
    count: "Counter[Number]" = field(default_factory=lambda: Counter[Number]())
    users: dict[ValueId, list[Op]] = field(default_factory=dict[ValueId, list[Op]])
    root_places: dict[ValueId, list[int]] = field(default_factory=dict[ValueId, list[int]])
    _around: frozenset[Number] = frozenset()
    _true: frozenset[Number] = frozenset()
    _effects: dict[Op, int] = field(default_factory=dict[Op, int])
    _own: dict[ValueId, Number] = field(default_factory=dict[ValueId, Number])
    _held: dict[Number, ValueId] = field(default_factory=dict[Number, ValueId])
    _values: defaultdict[Number, dict[ValueId, None]] = field(default_factory=lambda: defaultdict(dict))

    def __post_init__(self) -> None:
        self._around = frozenset(self.numbers.values())
        self._true = self.table.true_in(self.program, self.body, self.numbers, self.depth)
        for value, number in self.numbers.items():
            self._values[number][value] = None
        for place, argument in enumerate(self.body.arguments):
            self.numbers[argument] = self.table.argument(self.depth, place, self.program.types[argument])
            self.count[self.numbers[argument]] += 1
            self._values[self.numbers[argument]][argument] = None
        self.live = self.body.live()
        for op in self.live:
            for value in dict.fromkeys(op.reads):
                self.users.setdefault(value, []).append(op)
        self._effects = {op: place for place, op in enumerate(op for op in self.live if op.has_effects)}
        for op in self.live:
            self._renumber(op)
        for place, value in enumerate(self.roots):
            self.root_places.setdefault(value, []).append(place)

    def has(self, number: Number) -> bool:
        """Whether a value of this number is visible in the body."""
        return self.count[number] > 0 or number in self._around

    def is_own(self, value: ValueId) -> bool:
        """Whether a value is of this body, and not of one around it."""
        return self.program.homes[value] is self.body

    def is_read(self, value: ValueId) -> bool:
        """Whether an operation reads a value, or it is returned. LAPACK's calls give some that nobody reads."""
        return value in self.users or value in self.root_places

    def may_take_another(self, value: ValueId) -> bool:
        """Whether a value may be given another's number: an operation of the body, without effects, makes it."""
        maker = self.program.makers[value]
        return (
            maker is not None
            and not maker.has_effects
            and self.is_own(value)
            and value not in self.assumed
            and value not in self.kept
        )

    @cached_property
    def value_of(self) -> dict[Number, ValueId]:
        """A visible value of each number; asked for when the body is aligned."""
        found: dict[Number, ValueId] = {}
        for value, number in self.numbers.items():
            found.setdefault(number, value)
        return found

    @property
    def roots(self) -> list[ValueId]:
        """What the body returns, and what its operations with effects read."""
        return [*map(self._resolve_choice, self.body.returned), *(v for op in self._effects for v in op.inputs)]

    def _resolve_choice(self, value: ValueId) -> ValueId:
        """The branch that a select takes if its condition holds wherever the body is run; any other value itself."""
        while (maker := self.program.makers[value]) is not None and self._is_chosen(maker) and self.is_own(value):
            value = maker.inputs[1]
        return value

    def _is_chosen(self, op: Op) -> bool:
        """Whether an operation is another name for what it chooses by a predicate that holds."""
        return op.name == names.SELECT and self.numbers.get(op.inputs[0]) in self._true

    @property
    def effects(self) -> list[Op]:
        """The operations with effects, in order."""
        return list(self._effects)

    def place_of_effect(self, op: Op) -> int | None:
        """The place of an operation among those with effects; None of one without."""
        return self._effects.get(op)

    def assume(self, value: ValueId, number: Number) -> None:
        """Give a value the number of another one, and what is computed from it or is computed like it the numbers that
        follow."""
        alike = [other for other in self._values[self.numbers[value]] if self.may_take_another(other)]
        self.assumed[value] = number
        self._hold(value)
        makers = {maker: None for v in (value, *alike) if (maker := self.program.makers[v]) is not None}
        waiting = [(maker.order, maker) for maker in makers]
        heapq.heapify(waiting)
        entered = set(makers)
        while waiting:
            _, op = heapq.heappop(waiting)
            entered.discard(op)
            for changed in self._renumber(op):
                for user in self.users.get(changed, ()):
                    if user not in entered:
                        entered.add(user)
                        heapq.heappush(waiting, (user.order, user))

    def _hold(self, value: ValueId, own: Number | None = None) -> None:
        """Note the number of a value that is assumed or kept by what it is computed from: others of it are equal."""
        if own is None:
            maker = self.program.makers[value]
            assert maker is not None
            own = self.own_numbers(maker)[maker.results.index(value)]
        before = self._own.get(value)
        if before is not None and self._held.get(before) == value:
            del self._held[before]
        self._own[value] = own
        self._held.setdefault(own, value)

    def _find_like(self, own: Number) -> tuple[ValueId, Number] | None:
        """The value, of this body or one around it, that is computed alike and is assumed to have another number, and
        that number."""
        side: Side | None = self
        while side is not None and own not in side._held:
            side = side.around
        if side is None:
            return None
        value = side._held[own]
        return value, side.assumed[value] if value in side.assumed else side.kept[value]

    def readers_of_number(self, number: Number) -> list[Op]:
        """The operations of the body that read a value of a number."""
        return [user for value in self._values.get(number, ()) for user in self.users.get(value, ())]

    def makers_of_number(self, number: Number) -> list[Op]:
        """The operations of the body that give a value of a number."""
        makers = (self.program.makers[value] for value in self._values.get(number, ()))
        return [op for op in makers if op is not None and op.parent is self.body]

    def readers_of(self, op: Op | None) -> set[Op]:
        """The operations of the body that are computed from what an operation gives; none of an argument."""
        found, waiting = set[Op](), [op] if op is not None else []
        while waiting:
            for value in waiting.pop().results:
                new = [user for user in self.users.get(value, ()) if user not in found]
                found.update(new)
                waiting += new
        return found

    def keep(self, value: ValueId) -> None:
        """Leave a value the number that it has, whatever is assumed before it: another one has that, too."""
        if self.may_take_another(value):
            self.kept[value] = self.numbers[value]
            self._hold(value)

    def own_numbers(self, op: Op) -> list[Number]:
        """The numbers of an operation's results by what it reads, whatever is assumed of them."""
        return self.table.results(self.program, op, self.numbers, self.depth, self._effects.get(op), self._true)

    def _renumber(self, op: Op) -> list[ValueId]:
        """Number an operation's results anew; those whose number changes."""
        own = self.own_numbers(op)
        changed: list[ValueId] = []
        for value, number in zip(op.results, own, strict=True):
            self.alike.pop(value, None)
            taken = self.assumed.get(value, self.kept.get(value))
            if taken is not None:
                self._hold(value, number)
            elif (like := self._find_like(number)) is not None:
                value_like, taken = like
                self.alike |= {value: value_like} if taken != number else {}
            number = number if taken is None else taken
            before = self.numbers.get(value)
            if before != number:
                if before is not None:
                    self._values[before].pop(value, None)
                self._values[number][value] = None
                if not self._is_chosen(op):
                    if before is not None:
                        self.count[before] -= 1
                    self.count[number] += 1
                self.numbers[value] = number
                changed.append(value)
        return changed


@dataclass(frozen=True)
class Assumption:
    """Two values that are taken as equal; `root` names them where both modules return them ("result 0")."""

    first: ValueId
    second: ValueId
    root: str = ""


@dataclass(eq=False)
class BodyPair:
    """Two bodies, aligned.

    Attributes:
      first, second: the two.
      where: the way to them, the function first: ("main", "while 2").
      around: the pair of bodies that they stand in, and the two operations that hold them.
      assumptions: what was assumed.
      within: pairs of operations that are equal but for their bodies.
    """

    first: Side
    second: Side
    where: tuple[str, ...]
    around: "tuple[BodyPair, Op, Op] | None"
    assumptions: list[Assumption] = field(default_factory=list[Assumption])
    within: list[tuple[Op, Op]] = field(default_factory=list[tuple[Op, Op]])

    def other(self, side: Side) -> Side:
        """The side that is not this one."""
        return self.second if side is self.first else self.first

    def is_told(self, op: Op) -> bool:
        """Whether the second body has what an operation of the first one gives: what that reads it need not have."""
        return all(self.second.has(self.first.numbers[result]) for result in op.results)

    def is_matched(self, side: Side, value: ValueId) -> bool:
        """Whether the other module has a value of the same number, or it stands around the body."""
        return self.other(side).has(side.numbers[value]) or not side.is_own(value)


_How: TypeAlias = Literal["look", "readers", "behind", "far behind", "several", "guess"]
"""How a counterpart is found: by its look; as the only value that is read beside what is equal; as the only end of what
is computed from the same in a few steps, or in more; as the first of several that are read beside what is equal; or as
one that is read beside some that is equal, and by chance alone."""

Dropped = frozenset[tuple[ValueId, ValueId]]
"""Assumptions that turned out wrong."""


class Plan(NamedTuple):
    """How a public function of two modules is aligned.

    Attributes:
      name: the function.
      written_out: the loops of either module that are read as their trips (`hlo_lower.verify.align.loops`).
      dropped: equalities that are not to be assumed again.
      forced: equalities that are assumed before any other.
    """

    name: str
    written_out: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())
    dropped: Dropped = frozenset()
    forced: tuple[tuple[ValueId, ValueId], ...] = ()


class Aligner:
    """Align the bodies of two programs of one context.

    Args:
      first, second: the programs.
      dropped: equalities that are not to be assumed again.
      forced: equalities that are assumed before any other: values that were seen to be the same on runs.
    """

    def __init__(self, first: Program, second: Program, dropped: Dropped, forced: dict[ValueId, ValueId]) -> None:
        self._programs = first, second
        self._dropped, self._forced = dropped, forced
        self._table = Table()
        self.pairs: list[BodyPair] = []

    def align(self, name: str) -> list[BodyPair]:
        """The pairs of bodies that differ somewhere, of one public function of both modules.

        Raises:
          LateError: the deadline of the verification is over.
        """
        first, second = (program.entries[name] for program in self._programs)
        self.pairs = []
        self._bodies(first, second, {}, {}, 0, (name,), None)
        return self.pairs

    def _bodies(
        self,
        first: Body,
        second: Body,
        numbers: dict[ValueId, Number],
        others: dict[ValueId, Number],
        depth: int,
        where: tuple[str, ...],
        around: tuple[BodyPair, Op, Op] | None,
    ) -> None:
        sides = (
            Side(self._programs[0], first, depth, numbers, self._table, around and around[0].first),
            Side(self._programs[1], second, depth, others, self._table, around and around[0].second),
        )
        pair = BodyPair(*sides, where, around)
        self._assume(pair)
        self.pairs.append(pair)
        for number, (op, other) in enumerate(pair.within, start=1):
            for place, (inner, its) in enumerate(zip(op.bodies, other.bodies, strict=True)):
                if self._differ(pair, inner, its):
                    told = f"{op.short_name} {number}" + (f" body {place}" if len(op.bodies) > 1 else "")
                    self._bodies(
                        inner,
                        its,
                        dict(pair.first.numbers),
                        dict(pair.second.numbers),
                        depth + 1,
                        (*where, told),
                        (pair, op, other),
                    )

    def _differ(self, pair: BodyPair, first: Body, second: Body) -> bool:
        keys = [
            self._table.region(side.program, body, side.numbers, side.depth + 1)
            for side, body in ((pair.first, first), (pair.second, second))
        ]
        return keys[0] != keys[1]

    # --- what is assumed ---

    def _assume(self, pair: BodyPair) -> None:
        """Assume equalities until everything that is returned matches: sure ones first, one guess at a time."""
        index = _Readers(pair)
        while any(self._swept(pair, index, how) for how in index.ways):
            patience().deadline.check()
        for place, (x, y) in enumerate(zip(pair.first.roots, pair.second.roots, strict=False)):
            if pair.first.numbers[x] != pair.second.numbers[y]:
                self._equate(pair, x, y, _root_name(pair, place))
        pair.assumptions = [each for each in pair.assumptions if not _follows(pair, each)]

    def _swept(self, pair: BodyPair, index: "_Readers", how: "_How") -> bool:
        """Go through the first body once and assume what is told.

        Of what is not sure the first one only, and pairs of the same two ops that are computed from these: one layer
        after another.
        """
        found, alike = how == "several" and self._captured_alike(pair), None
        index.look()
        for op in pair.first.live:
            patience().deadline.check()
            if op.results and pair.is_told(op) and not _is_guessed(pair, op):
                continue
            if self._within(pair, op) or (how == "several" and self._copies_within(pair, op, pair.second.live)):
                found = True
                continue
            # What a call gives is chosen by its `info`, its last result: once that is told, the others may be.
            for x in op.results * (2 if op.name == names.CUSTOM_CALL else 1):
                if pair.second.has(pair.first.numbers[x]) or not pair.first.is_read(x):
                    continue
                if how in ENDS and (ends := _ends_alike(pair, x, ENDS[how])) is not None and self._may_be(pair, *ends):
                    found = self._equate(pair, *ends, "") or found
                    continue
                counterpart = self._counterpart(pair, index, x, how)
                if counterpart is None:
                    continue
                other = pair.second.program.makers[counterpart[0]]
                if alike is not None and (op, other) not in alike:
                    continue
                if other is not None and self._copies_within(pair, op, [other]):
                    found = True
                    break
                if self._equate(pair, x, *counterpart):
                    found = True
                    if how == "guess" and alike is None:
                        alike = _Alike(pair, op, other)
        return found

    def _within(self, pair: BodyPair, op: Op) -> bool:
        """Match an operation whose bodies differ with one of the same operands; its results are taken as equal."""
        if op.name not in _ALIGNED_WITHIN or any(op is known for known, _ in pair.within):
            return False
        first, second = pair.first, pair.second
        taken = {other for _, other in pair.within}
        for other in second.live:
            both = dict(zip(op.results, other.results, strict=False))
            if (
                other.name == op.name
                and other not in taken
                and _is_alike(first, op, second, other)
                and [first.numbers[v] for v in op.inputs] == [second.numbers[v] for v in other.inputs]
                and all(each not in self._dropped for each in both.items())
                and first.place_of_effect(op) == second.place_of_effect(other)
                and (not both or any(not first.has(second.numbers[y]) or y in second.assumed for y in both.values()))
                and all(both.get(each.first) == each.second for each in _guessed(pair, op, other))
            ):
                pair.within.append((op, other))
                pair.assumptions = [each for each in pair.assumptions if each.first not in both]
                for x, y in both.items():
                    second.assume(y, first.numbers[x])
                return True
        return False

    def _copies_within(self, pair: BodyPair, op: Op, others: Sequence[Op]) -> bool:
        """Take what an operation with bodies reads as equal to what one of others reads, where some of it is: that one
        reads copies, as of a value that a target's loops carry once only."""
        if op.name not in _ALIGNED_WITHIN or any(op is known for known, _ in pair.within):
            return False
        first, second = pair.first, pair.second
        taken = {other for _, other in pair.within}
        for other in others:
            if other in taken or not _is_alike(first, op, second, other):
                continue
            both = zip(op.inputs, other.inputs, strict=True)
            apart = [(x, y) for x, y in both if first.numbers[x] != second.numbers[y]]
            if 0 < len(apart) < len(op.inputs) and all(self._may_be(pair, x, y) for x, y in apart):
                for x, y in apart:
                    self._equate(pair, x, y, "")
                return True
        return False

    def _captured_alike(self, pair: BodyPair) -> bool:
        """Take what the bodies of matched operations read from around them as equal where the same operations there
        read it, the first one of several."""
        first, second, found = pair.first, pair.second, False
        for op, other in pair.within:
            mine = {first.numbers[x] for x in op.captured.values()}
            theirs = {second.numbers[y] for y in other.captured.values()}
            left = [y for y in other.captured.values() if second.numbers[y] not in mine]
            for x in op.captured.values() if left else ():
                if first.numbers[x] not in theirs:
                    reads = _reads_within(op, x)
                    its = (
                        y for y in left if self._may_be(pair, x, y) and not reads.isdisjoint(_reads_within(other, y))
                    )
                    y = next(its, None)
                    if y is not None:
                        left.remove(y)
                        found = self._equate(pair, x, y, "") or found
        return found

    def _counterpart(self, pair: BodyPair, index: "_Readers", x: ValueId, how: "_How") -> tuple[ValueId, str] | None:
        """The value of the second body that is to be taken as equal to one of the first, and its name as a root."""
        forced = self._forced.get(x)
        if forced is not None and pair.second.is_own(forced) and self._may_be(pair, x, forced):
            return forced, ""
        places = pair.first.root_places.get(x, ())
        roots = pair.second.roots if places else ()
        for place in places:
            if place < len(roots) and self._may_be(pair, x, roots[place]):
                return roots[place], _root_name(pair, place)
        if how == "look":
            return next(((y, "") for y in index.that_look_like(x) if self._may_be(pair, x, y)), None)
        if how in ENDS:
            return None
        agrees, found = index.is_guess if how == "guess" else index.is_sure, dict[ValueId, None]()
        users = pair.first.users.get(x, ())
        is_of_root = any(result in pair.first.root_places for user in users for result in user.results)
        for user in users:
            if len(user.inputs) == 1 and (how != "guess" or pair.is_told(user)):
                continue  # nothing is read beside it
            for other, place in index.alike(user, x, is_sure=how != "guess"):
                if agrees(user, other, place):
                    y = index.read(other, place, x)
                    if y is not None and self._may_be(pair, x, y):
                        if _gives_same_root(pair, user, other):
                            return y, ""
                        found[y] = None
                        if how == "readers" and len(found) > 1 and not is_of_root:
                            return None  # it may be one of several
        if not found or (how == "readers" and len(found) > 1):
            return None
        return (max(found, key=partial(_shared, pair, x)) if len(found) > 1 else next(iter(found))), ""

    def _may_be(self, pair: BodyPair, x: ValueId, y: ValueId) -> bool:
        """Whether two values may be taken as equal: what depends on no input is none that does."""
        first, second = pair.first, pair.second
        constants = first.table.known  # of two different constants nothing needs to be judged
        return (
            (x, y) not in self._dropped
            and not (first.numbers[x] in constants and second.numbers[y] in constants)
            and first.program.types[x] == second.program.types[y]
            and (x in first.program.varying) == (y in second.program.varying)
            and first.numbers[x] != second.numbers[y]
            and x not in first.assumed
            and y not in second.assumed
            and (first.may_take_another(x) or second.may_take_another(y))
        )

    def _equate(self, pair: BodyPair, x: ValueId, y: ValueId, root: str) -> bool:
        """Take two values as equal; False where they are equal already. Of two that the same op moves its operand into
        the operands: they are equal if and only if the results are."""
        first, second = pair.first, pair.second
        if first.numbers[x] == second.numbers[y]:
            return False
        while (before := _moved_alike(pair, x, y)) is not None and self._may_be(pair, *before):
            x, y = before
        mine, theirs = first.numbers[x], second.numbers[y]
        pair.assumptions.append(Assumption(x, y, root))
        first_may, second_may = first.may_take_another(x), second.may_take_another(y)
        if second_may and not (first_may and first.has(theirs)):
            second.assume(y, mine)
            first.keep(x)
        elif first_may:
            first.assume(x, theirs)
            second.keep(y)
        return True


class _Alike:
    """Pairs of operations that are the same as those of one pair, and are computed from these."""

    def __init__(self, pair: BodyPair, op: Op, other: Op | None) -> None:
        self._kinds = _kind_of(op), _kind_of(other)
        self._behind = pair.first.readers_of(op), pair.second.readers_of(other)

    def __contains__(self, ops: tuple[Op, Op | None]) -> bool:
        return tuple(map(_kind_of, ops)) == self._kinds and all(
            op in behind for op, behind in zip(ops, self._behind, strict=True)
        )


def _kind_of(op: Op | None) -> Hashable:
    """What an operation is, but for what it reads; None of an argument."""
    return None if op is None else (op.name, op.attributes)


def _reads_within(op: Op, value: ValueId) -> set[Hashable]:
    """What the bodies of an operation do with a value from around them: which operations read it, and where, and the
    places at which it is returned."""
    inner = (user for body in op.bodies for user in ops_within(body.ops))
    found: set[Hashable] = {(_kind_of(user), p) for user in inner for p, v in enumerate(user.inputs) if v == value}
    return found.union((k, p) for k, body in enumerate(op.bodies) for p, v in enumerate(body.returned) if v == value)


def _shared(pair: BodyPair, x: ValueId, y: ValueId) -> int:
    """How many of the matched values that stand a few operations behind one of two values stand behind both."""
    return len(_matched_behind(pair, pair.first, x) & _matched_behind(pair, pair.second, y))


def _matched_behind(pair: BodyPair, side: Side, value: ValueId) -> set[Number]:
    """The numbers of the matched values from which a value is computed in a few steps; its own where it is one."""
    found, now = set[Number](), [value]
    for _ in range(BEHIND + 1):
        found.update(side.numbers[v] for v in now if pair.is_matched(side, v))
        makers = [side.program.makers[v] for v in now if side.is_own(v) and not pair.is_matched(side, v)]
        now = list(dict.fromkeys(read for maker in makers if maker is not None for read in maker.reads))
    return found - pair.first.table.known.keys()


def _ends_alike(pair: BodyPair, x: ValueId, steps: int) -> tuple[ValueId, ValueId] | None:
    """A value of each body: the ends of what is computed from some matched values, as a scatter's result and that of
    the ops in its place, where the first one is computed from `x` or is it; or what the same ops make these ends of.

    None where that is not one value each.
    """
    behind = _closed(pair, pair.first, x, steps)
    if not behind or not behind[0]:
        return None
    if _end_of(pair, pair.first, x, behind[0], steps) != x:
        return None
    first, second = x, _end_of(pair, pair.second, x, behind[0], steps)
    if second is None:
        return None
    # Of one value many things are made in many steps.
    is_one_of_few = (steps <= BEHIND or len(behind[0]) > 1) and _goes_on_alike(pair, x, second, behind[0])
    if not is_one_of_few and not _is_last_of_type(pair, second):
        return None
    while (before := _made_alike(pair, first, second)) is not None:
        first, second = before
    return first, second


def _made_alike(pair: BodyPair, x: ValueId, y: ValueId) -> tuple[ValueId, ValueId] | None:
    """The one operand of each that is not equal, where the same op makes two values; the second one may be matched."""
    op, other = pair.first.program.makers[x], pair.second.program.makers[y]
    if op is None or other is None or op.name not in ELEMENTWISE or not _is_alike(pair.first, op, pair.second, other):
        return None
    both = zip(op.inputs, other.inputs, strict=True)
    apart = dict.fromkeys((a, b) for a, b in both if pair.first.numbers[a] != pair.second.numbers[b])
    [found] = apart if len(apart) == 1 else [None]
    return None if found is None or pair.is_matched(pair.first, found[0]) else found


def _moved_alike(pair: BodyPair, x: ValueId, y: ValueId) -> tuple[ValueId, ValueId] | None:
    """What the same op moves all elements of, into two values of the bodies; None where it gives no element."""
    op, other = pair.first.program.makers[x], pair.second.program.makers[y]
    if op is None or other is None or op.name not in LAYOUT or not _is_alike(pair.first, op, pair.second, other):
        return None
    return None if 0 in pair.first.program.shape_of(x) else (op.inputs[0], other.inputs[0])


def _closed(
    pair: BodyPair, side: Side, value: ValueId, steps: int, within: set[Number] | None = None
) -> tuple[set[Number], set[ValueId]] | None:
    """The numbers of the matched values from which a value is computed, and what is not matched between; None where
    that is more than so many steps, another number than these, or too many values."""
    found, between, now = set[Number](), set[ValueId](), [value]
    known = pair.first.table.known.keys()
    for _ in range(steps):
        made = dict.fromkeys(read for v in now if (op := side.program.makers[v]) is not None for read in op.reads)
        matched = {v for v in made if pair.is_matched(side, v)}
        found.update(number for v in matched if (number := side.numbers[v]) not in known)
        if within is not None and not found <= within:
            return None
        now = [v for v in made if v not in matched and v not in between]
        between.update(now)
        if not now:
            return found, between
        if len(between) > MOST_BEHIND:
            break
    return None


def _goes_on_alike(pair: BodyPair, x: ValueId, y: ValueId, behind: set[Number]) -> bool:
    """Whether what the second version computes of an end, and of what is behind it alone, is of ops that the first one
    has there: else the end is further on, in more steps."""
    side, known = pair.second, behind | pair.first.table.known.keys()
    names_there = {op.name for op in pair.first.users.get(x, ())}
    return all(
        op.name in names_there
        or not all(read == y or (pair.is_matched(side, read) and side.numbers[read] in known) for read in op.reads)
        for op in side.users.get(y, ())
    )


def _is_last_of_type(pair: BodyPair, y: ValueId) -> bool:
    """Whether nothing of its type is computed of a value of the second version until what is matched, in few ops."""
    side, seen, now = pair.second, set[Op](), [y]
    while now and len(seen) <= MOST_ONWARDS:
        further = {op for value in now for op in side.users.get(value, ())} - seen
        seen |= further
        now = [v for op in further for v in op.results if not pair.is_matched(side, v)]
        if any(side.program.types[v] == side.program.types[y] for v in now):
            return False
    return not now


def _end_of(pair: BodyPair, side: Side, like: ValueId, behind: set[Number], steps: int) -> ValueId | None:
    """The one value of a type that is computed from some matched values alone, and from all others of which that
    holds."""
    raw_type = pair.first.program.types[like]
    now, seen = min((side.readers_of_number(number) for number in behind), key=len), set[Op]()
    found = dict[ValueId, set[ValueId]]()
    for _ in range(steps):
        now = [op for op in dict.fromkeys(now) if op not in seen]
        seen.update(now)
        own = [v for op in now for v in op.results if side.is_read(v) and not pair.is_matched(side, v)]
        for value in own:
            closed = _closed(pair, side, value, steps, behind) if side.program.types[value] == raw_type else None
            if closed is not None and closed[0] == behind:
                found[value] = closed[1]
        now = [user for value in own for user in side.users.get(value, ())]
        if len(seen) > MOST_BEHIND:
            return None
    ends = [value for value, between in found.items() if found.keys() - {value} <= between]
    return ends[0] if len(ends) == 1 else None


def _guessed(pair: BodyPair, op: Op, other: Op | None = None) -> list[Assumption]:
    """What is assumed of the results of an operation, or of one of the second body."""
    theirs = () if other is None else other.results
    return [each for each in pair.assumptions if each.first in op.results or each.second in theirs]


def _is_guessed(pair: BodyPair, op: Op) -> bool:
    """Whether results of an operation with bodies were taken as equal one by one, before its operands were."""
    return op.name in _ALIGNED_WITHIN and bool(_guessed(pair, op)) and all(op is not known for known, _ in pair.within)


def _follows(pair: BodyPair, assumption: Assumption) -> bool:
    """Whether two values are equal without being assumed to be, as all that they are computed from is by now."""
    found: list[Number] = []
    for side, value in ((pair.first, assumption.first), (pair.second, assumption.second)):
        op = side.program.makers[value]
        if op is None or not side.is_own(value):
            return False
        found.append(side.own_numbers(op)[op.results.index(value)])
    return found[0] == found[1]


def _gives_same_root(pair: BodyPair, op: Op, other: Op) -> bool:
    """Whether both bodies return what these give at one place, so that they read the same of several."""
    roots = pair.first.root_places, pair.second.root_places
    return any(
        not set(roots[0].get(x, ())).isdisjoint(roots[1].get(y, ()))
        for x, y in zip(op.results, other.results, strict=False)
    )


def _root_name(pair: BodyPair, place: int) -> str:
    count = len(pair.first.body.returned)
    return f"result {place}" if place < count else f"operand of effect {place - count}"


def _argument_types(side: Side, op: Op) -> list[list[Hashable]]:
    """The types of the arguments of each body."""
    return [[side.program.types[a] for a in body.arguments] for body in op.bodies]


def _is_alike(first: Side, op: Op, second: Side, other: Op) -> bool:
    """Whether two operations are the same but for operands and bodies."""
    return (
        op.name == other.name
        and op.attributes == other.attributes
        and len(op.inputs) == len(other.inputs)
        and _argument_types(first, op) == _argument_types(second, other)
        and [first.program.types[v] for v in op.results] == [second.program.types[v] for v in other.results]
    )


class _Readers:
    """The ops of the second body, by what they are, to be found by what is read alike.

    Where a body converts floats to floats, both bodies are looked at through these conversions.
    """

    def __init__(self, pair: BodyPair) -> None:
        self._pair = pair
        sides = (pair.first, pair.second)
        self._is_loose = any(has_float_conversions(side.program, side.body) for side in sides)
        self._looks = [Looks(s.program, s.live, s.numbers, s.table) for s in sides] if self._is_loose else []
        self._seen = (-1, -1)
        self._open: dict[int, list[Op]] = {}
        self._kinds: dict[Op, int] = {}
        self._ids: dict[Hashable, int] = {}
        self._behind: dict[tuple[ValueId, Hashable], ValueId | None] = {}
        self._ops: dict[int, list[Op]] = defaultdict(list)
        for op in pair.second.live:
            self._ops[self._kind(pair.second, op)].append(op)

    @property
    def ways(self) -> "tuple[_How, ...]":
        """How counterparts are found, the surest way first."""
        surest: tuple[_How, ...] = ("look",) if self._is_loose else ()
        return (*surest, "readers", *ENDS, "several", "guess")

    def look(self) -> None:
        """Look at both bodies with what is assumed by now."""
        state = len(self._pair.assumptions), len(self._pair.within)
        if state == self._seen:
            return
        self._seen = state
        self._open.clear()
        matched: dict[Hashable, Hashable] = {}
        for looks, side in zip(self._looks, (self._pair.first, self._pair.second), strict=False):
            looks.look(partial(self._pair.is_matched, side), matched)

    def alike(self, user: Op, value: ValueId, *, is_sure: bool) -> Iterator[tuple[Op, int]]:
        """Ops of the same kind that the first body has not, with each place at which the value is read; where it has
        to be sure, those alone that read something that is equal beside it. Of a user that is told those that give the
        same."""
        kind = self._kind(self._pair.first, user)
        if self._pair.is_told(user):
            others = self._give_the_same(user, kind)
        else:
            others = self._beside_equal(user, value, kind) if is_sure and not self._is_loose else None
            if others is None:
                if kind not in self._open:
                    self._open[kind] = [other for other in self._ops.get(kind, ()) if self._is_open(other)]
                others = self._open[kind]
            others = filter(self._is_open, others)
        for other in others:
            for place, read in enumerate(user.inputs):
                if read == value:
                    yield other, place

    def _give_the_same(self, user: Op, kind: int) -> list[Op]:
        """The ops of a kind whose results are told to be those of one of the first body."""
        second = self._pair.second
        makers = second.makers_of_number(self._pair.first.numbers[user.results[0]]) if user.results else []
        return [op for op in makers if self._kind(second, op) == kind]

    def _beside_equal(self, user: Op, value: ValueId, kind: int) -> list[Op] | None:
        """The ops of a kind, in order, that read something of the number of what is read beside a value the most
        seldom; None where nothing else is read."""
        second, numbers = self._pair.second, self._pair.first.numbers
        beside = {numbers[read] for read in user.inputs if read != value}
        readers = [second.readers_of_number(number) for number in beside]
        if not readers:
            return None
        found = {op for op in min(readers, key=len) if self._kind(second, op) == kind}
        return sorted(found, key=lambda op: op.order)

    def _is_open(self, other: Op) -> bool:
        """Whether the first body has not all that an op of the second one gives."""
        first, second = self._pair.first, self._pair.second
        return any(not first.has(second.numbers[r]) for r in other.results)

    def read(self, other: Op, place: int, like: ValueId) -> ValueId | None:
        """What an op of the second body reads at a place, as a value of the type of one of the first body."""
        value, raw_type = other.inputs[place], self._pair.first.program.types[like]
        if not self._is_loose:
            return value
        if (value, raw_type) not in self._behind:
            self._behind[value, raw_type] = behind_conversions(self._pair.second.program, value, raw_type)
        return self._behind[value, raw_type]

    def is_sure(self, user: Op, other: Op, place: int) -> bool:
        """Whether two readers read what is equal beside the operand at a place, and something at all."""
        return len(user.inputs) > 1 and all(self._beside(user, other, place))

    def is_guess(self, user: Op, other: Op, place: int) -> bool:
        """Whether two readers read some that is equal beside the operand at a place, but not all; or nothing."""
        return len(user.inputs) == 1 or (any(self._beside(user, other, place)) and not self.is_sure(user, other, place))

    def _beside(self, user: Op, other: Op, place: int) -> Iterator[bool]:
        """Of each operand of two readers but that at a place: whether it is equal, or looks alike."""
        first, second = self._pair.first.numbers, self._pair.second.numbers
        for i, (a, b) in enumerate(zip(user.inputs, other.inputs, strict=True)):
            if i != place:
                yield first[a] == second[b] or (self._is_loose and self._looks[0].of(a) == self._looks[1].of(b))

    def that_look_like(self, value: ValueId) -> Sequence[ValueId]:
        """The values of the second body that look like one of the first, of the same type, in order."""
        key = self._looks[0].of(value), self._pair.first.program.types[value]
        return self._looks[1].values.get(key, ())

    def _kind(self, side: Side, op: Op) -> int:
        found = self._kinds.get(op)
        if found is None:
            types = (loose_type(side.program, r) if self._is_loose else side.program.types[r] for r in op.results)
            kind = op.name, op.attributes, len(op.inputs), tuple(types)
            found = self._kinds[op] = self._ids.setdefault(kind, len(self._ids))
        return found


# --- regions ---


def _depth(body: Body) -> int:
    depth = 0
    while body.owner is not None:
        body, depth = body.owner.parent, depth + 1
    return depth


@dataclass(eq=False)
class Region:
    """A piece of the first body and a piece of the second between matched values.

    Attributes:
      pair: the bodies.
      outputs: the values that are assumed to be equal.
      opened: numbers of matched values that are computed within, not taken as inputs.
      first, second: the operations of the two pieces, in order.
      inputs: the numbers of the values that the pieces take.
    """

    pair: BodyPair
    outputs: tuple[Assumption, ...]
    opened: frozenset[Number]
    first: list[Op] = field(default_factory=list[Op])
    second: list[Op] = field(default_factory=list[Op])
    inputs: list[Number] = field(default_factory=list[Number])

    def __post_init__(self) -> None:
        ordered: dict[Number, None] = {}
        starts = [o.first for o in self.outputs], [o.second for o in self.outputs]
        cuts = {o.first for o in self.outputs}, {o.second for o in self.outputs}
        pieces: list[list[Op]] = []
        self._read: list[list[Number]] = []
        for side, values, own in zip((self.pair.first, self.pair.second), starts, cuts, strict=True):
            ops, reached = self._behind(side, values, own)
            pieces.append(ops)
            self._read.append(reached)
            ordered.update(dict.fromkeys(reached))
        self.first, self.second = pieces
        self.inputs = list(ordered)

    def _behind(self, side: Side, starts: list[ValueId], own: set[ValueId]) -> tuple[list[Op], list[Number]]:
        """The operations behind some values, back to what is matched and not opened; and what that is.

        What an operation with effects gives is one of its inputs: no two of them give the same.
        """
        known = self.pair.first.table.known
        found: set[Op] = set()
        reached: dict[Number, None] = {}
        pending = list(starts)
        while pending:
            value = pending.pop()
            number, maker = side.numbers[value], side.program.makers[value]
            is_needed = not self.pair.is_matched(side, value) or (value in own and not self._is_given(side, value))
            is_inside = number in known or number in self.opened or (side.is_own(value) and is_needed)
            if maker is None or maker.has_effects or not is_inside:
                reached[number] = None
            elif maker not in found:
                found.add(maker)
                pending.extend(reversed(maker.reads))
        return sorted(found, key=lambda op: (_depth(op.parent), op.order)), list(reached)

    def _is_given(self, side: Side, value: ValueId) -> bool:
        """Whether an output is matched without the assumptions of this region."""
        if value in side.assumed:
            return False
        other, number = self.pair.other(side), side.numbers[value]
        theirs = {o.first if other is self.pair.first else o.second for o in self.outputs}
        theirs |= {v for v, like in other.alike.items() if like in theirs}
        return other.count[number] > sum(1 for v in theirs if other.numbers[v] == number)

    @property
    def is_doubtful(self) -> bool:
        """Whether outputs are most likely not equal: one is an input, too, as both bodies have it and one of them has
        something that is taken as equal to it; or both pieces read something, and not one thing that both read."""
        mine, theirs = map(set, self._read)
        is_apart = bool(mine) and bool(theirs) and mine.isdisjoint(theirs)
        return is_apart or any(self.pair.first.numbers[output.first] in self.inputs for output in self.outputs)

    @property
    def sides(self) -> tuple[tuple[Side, list[Op]], tuple[Side, list[Op]]]:
        """Both bodies, each with the operations of its piece."""
        return (self.pair.first, self.first), (self.pair.second, self.second)

    @property
    def where(self) -> str:
        """Where the pieces stand: the way to their bodies."""
        return " > ".join(self.pair.where)


def regions_of(pairs: Iterable[BodyPair]) -> list[Region]:
    """The regions of aligned bodies, outputs that share an operation of the first body together.

    Many that share only what is cheap stay apart, as in the rounds of a cipher: a chain of regions is easier to judge.
    """
    found: list[Region] = []
    for pair in pairs:
        groups: list[tuple[list[Assumption], set[Op]]] = []
        opened = _widenings(pair)
        for assumption in pair.assumptions:
            inner = Region(pair, (assumption,), opened).first
            ops = {op for op in inner if op.inputs and not {pair.first.numbers.get(r) for r in op.results} & opened}
            joined = [group for group in groups if _are_one(group[1], ops)]
            merged = ([a for group in joined for a in group[0]] + [assumption], ops.union(*(g[1] for g in joined)))
            groups = [*(group for group in groups if group not in joined), merged]
        found.extend(_with_known_indices(Region(pair, tuple(outputs), opened)) for outputs, _ in groups)
    return found


def _are_one(first: set[Op], second: set[Op]) -> bool:
    """Whether the operations behind outputs make one region."""
    shared = first & second
    return bool(shared) and (len(first | second) <= JOINED or any(op.name not in CHEAP for op in shared))


def _widenings(pair: BodyPair) -> frozenset[Number]:
    """The numbers of narrow floats in a wider type: a piece computes them, so that it knows what they are."""
    sides = (pair.first, pair.second)
    return frozenset(s.numbers[op.results[0]] for s in sides for op in s.live if is_widening(s.program, op))


def _with_known_indices(region: Region) -> Region:
    """A region, with indices of its scatters and gathers that are put together of some that are known, as those of
    `x.at[i, 3].set(u)` are."""
    known, found = region.pair.first.table.known.keys(), set[Number]()
    for side, ops in region.sides:
        indices = [op.inputs[1] for op in ops if op.name in (names.SCATTER, names.GATHER)]
        makers = [(value, side.program.makers[value]) for value in indices if side.numbers[value] in region.inputs]
        for value, op in makers:
            if (
                op is not None
                and op.name == names.CONCATENATE
                and not known.isdisjoint(side.numbers[v] for v in op.inputs)
            ):
                found.add(side.numbers[value])
    return Region(region.pair, region.outputs, region.opened | found) if found else region


# --- counterparts ---
#
# Which operation of the first version one of the second version stands for: the one of the same number.
#
# The numbers (`hlo_lower.verify.read.numbering`) are those of a table that leaves out what is compared beside what is
# computed, flags and requests, so that operations that differ in these alone have one number.


class Numbered(NamedTuple):
    """Operations of a body, and the numbers of all values that they read and give; `own` says those that they give by
    what they read, where another may be assumed."""

    program: Program
    ops: Sequence[Op]
    numbers: Mapping[ValueId, Number]
    depth: int
    own: Callable[[Op], Sequence[Number]] | None = None


def aligned_body(side: Side) -> Numbered:
    """A body as it was aligned."""
    return Numbered(side.program, side.live, side.numbers, side.depth, side.own_numbers)


def counterparts(
    table: Table, first: Numbered, second: Numbered, wanted: Callable[[Op], bool]
) -> Iterator[tuple[list[Op], Op]]:
    """Operations of the second body, those in regions too, each with those of the first one of the same number."""
    by_number: dict[tuple[Number, ...], list[Op]] = defaultdict(list)
    for op in first.ops:
        by_number[_number(first, op)].append(op)
    for op in second.ops:
        mine = by_number.get(_number(second, op), []) if op.results else []
        if wanted(op):
            yield mine, op
        for k, body in enumerate(op.bodies):
            held = [inner for inner in ops_within(body.ops) if wanted(inner)]
            if held and mine:
                yield from counterparts(table, _body(table, first, mine, k), _body(table, second, [op], k), wanted)
            else:
                yield from (([], inner) for inner in held)


def _number(side: Numbered, op: Op) -> tuple[Number, ...]:
    return tuple(side.own(op)) if side.own else tuple(side.numbers[result] for result in op.results)


def _body(table: Table, around: Numbered, owners: Sequence[Op], place: int) -> Numbered:
    """The bodies of operations of one number at a place, as one."""
    numbers: dict[ValueId, Number] = {}
    for owner in owners:
        numbers |= table.within(around.program, owner.bodies[place], around.numbers, around.depth + 1)[0]
    inner = [op for owner in owners for op in owner.bodies[place].ops]
    return Numbered(around.program, inner, _Behind(numbers, around.numbers), around.depth + 1)


class _Behind(dict[ValueId, Number]):
    """Numbers, and behind them others."""

    def __init__(self, own: Mapping[ValueId, Number], around: Mapping[ValueId, Number]) -> None:
        super().__init__(own)
        self._around = around

    def __missing__(self, value: ValueId) -> Number:
        return self._around[value]


class _Given(dict[ValueId, Number]):
    """Numbers of a piece, and behind them those that what it takes has in the alignment."""

    def __init__(self, table: Table, given: Mapping[ValueId, Number]) -> None:
        super().__init__()
        self._table, self._given = table, given

    def __missing__(self, value: ValueId) -> Number:
        return self._table.of(("given", self._given[value]))


def number_piece(table: Table, side: Side, ops: Sequence[Op]) -> Numbered:
    """Number the values of a piece of a region: its inputs and what is known already keep the numbers of the
    alignment."""
    numbers = _Given(table, side.numbers)
    for op in ops:
        if any(side.numbers.get(result) not in side.table.known for result in op.results):
            found = table.results(side.program, op, numbers, side.depth, side.place_of_effect(op))
            numbers.update(zip(op.results, found, strict=True))
    return Numbered(side.program, ops, numbers, side.depth)
