"""Driven inputs of a region: runs that aim at what its operations may get wrong.

Starts of windows go through the regimes of `hlo_lower.verify.drive.input_roles`, each as often as it takes to see its
places; a start that is one number takes every boundary value in turn. Other integers are small, wide, at the ends of
their type, and the constants of both pieces with their neighbours; floats are ordinary, then NaN, infinities and
signed zeros in half of the places, then large, of one sign, and the constants with their neighbours. A float that is
one number takes each of these in turn, several truth values all that they may be together, and small pieces have so
many more runs that their inputs meet all constants, also two at once. Loop counters take the loop's values.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type_of
from hlo_lower.verify.align.one_nan import NOT_COMPUTED
from hlo_lower.verify.bounds.compare import is_inexact
from hlo_lower.verify.bounds.matrices import IN_MATRICES, OF_SQUARES, at_the_edge, definite
from hlo_lower.verify.drive.input_roles import (
    MOST,
    REGIMES,
    SPECIAL_VALUES,
    Column,
    Role,
    Roles,
    Turn,
    Twins,
    ordinary,
    starts_in,
    turns_of,
    with_special_values,
)

Array = NDArray[Any]

PAYLOADS = ("ordinary", "special", "large", "named", "zeros", "positive", "negative")
"""What floats are drawn from: "named" ones are the constants of the pieces and their neighbours."""

LONE, LONE_VALUES = "lone", (np.nan, -np.nan, np.inf, -np.inf)
"""One special value alone, in half of an array's places or in all: a greatest float shows a negative NaN only where no
positive one is, and what it begins with only where all are negative infinity."""

TIED, TIED_VALUES = "tied", (1.0, -2.0)
"""Two numbers alone, so that elements of a matrix are equal which rounding makes no others. A transform sums such
numbers to 0 but for roundings, which no bound of an element covers."""

FINITE = {"special": "ordinary", LONE: "ordinary"}
"""What floats are drawn from where nothing says what becomes of NaN and infinities."""

MILD = 1 / 16
"""What "mild" floats are multiplied by, which are ordinary ones else. Of ordinary ones many layers make numbers so
large that rounding alone decides what is finite, and of a sum in another order nothing can be said then."""

NUMBERS = ("wide", "small", "ends", "ascending", "equal", "named", "high", "low")
"""What integers that place no window are drawn from: "high" ones lie at their type's upper end, all of them, so that
sums of them and of their products are as large as they may be, and odd."""

PLAIN_RUNS = 28
"""Runs of a region that places no windows."""

SMALL_WORK, SMALL_INPUTS, MORE_RUNS = 1 << 17, 1 << 12, 96
"""Elements that the operations of a small piece give at most, and its inputs; and further runs that such a one has for
its constants, at most, and as many for the truth values among its inputs."""

ODD = 0.1
"""The share of numbers at their type's end that lie one beside it."""

LISTED = 40
"""Values near each end of a start's range that are tried one after the other."""

FIRST_VALUES = 64
"""Values of a loop's counter of which half of the runs draw it: the end of a longer loop may not be a constant."""

MIXED, FEW = "mixed", 16
"""Each input of a run draws from something else; so do those of a piece that has fewer elements in all."""

SCALES = 1.0, 1024.0
"""What floats of one sign are multiplied by."""

SMALLEST = 1e-37
"""Numbers of a smaller magnitude are not taken for neighbours of a constant."""

POSITIVE = 0.5, 0.1, 0.0
"""Shares of zeros that are positive: a sum is -0.0 only where each of its terms is."""

DECADES = 12, 12, 12, 32
"""Powers of ten below which large floats lie, drawn for each: sums of them are finite, some of their squares not."""

BYTES = 1 << 31
"""Bytes of inputs, all runs together, up to which all runs are made."""

LEAST_RUNS = 4

VALUES = 1 << 32
"""Elements that the operations of a piece give, all runs of it together, beyond which no other run is made."""

LEAST_OF_LARGE = 2
"""Runs that are made however large a piece is: ordinary floats, then special ones; of one that places windows the first
is "mixed", in which each window is in a regime of its own."""


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
      aim: for a reader: the regime, or what is enumerated.
      arguments: one array for each input.
      is_special: whether floats hold NaN, infinities and signed zeros.
      is_large: whether they are so large that products of them overflow, so that the order of a sum may decide what
        is finite.
    """

    aim: str
    arguments: list[Array]
    is_special: bool
    is_large: bool = False


@dataclass(frozen=True)
class _Plan:
    aim: str
    regime: str
    turn: int
    payload: str
    numbers: str
    scalar: tuple[int, float] | None = None
    """An input that is one number, and the value that it takes."""
    truths: int | None = None
    """The truth values that inputs of one have, a bit for each."""
    twins: int | None = None
    """The constants that differ, at whose differing elements starts lie."""


def runs_of(
    roles: Roles, seed: Sequence[int], work: int = 0, *, mild: bool = False, meeting: bool = True
) -> Iterator[Run]:
    """The runs of a region.

    Args:
      roles: what its inputs are for.
      seed: of what is drawn.
      work: elements that its operations give in a run.
      mild: whether the first ordinary floats are mild ones.
      meeting: whether a small region has further runs, in which its inputs meet all constants.
    """
    plans = _plans(roles)
    if meeting and work <= SMALL_WORK and sum(prod(role.shape) for role in roles.inputs) <= SMALL_INPUTS:
        plans += _of_small(roles)
    if roles.not_said:
        plans = [replace(plan, payload=_finite(roles, plan.payload)) for plan in plans]
    needed = sum(prod(role.shape) * role.dtype.itemsize for role in roles.inputs)
    most = max(LEAST_RUNS, BYTES // max(needed, 1))
    if any(role.columns for role in roles.inputs) and len(plans) * work > VALUES:  # not all of them will be made
        plans = [
            _Plan("mixed", "mixed", 0, "ordinary", "small"),
            *sorted(plans, key=lambda plan: plan.regime != "mixed"),
        ]
    if len(plans) > most:  # of each regime some
        plans = [plans[(k * len(plans)) // most] for k in range(most)]
    first = next((k for k, plan in enumerate(plans) if plan.payload == "ordinary"), None)
    if mild and first is not None:
        plans[first] = replace(plans[first], payload="mild")
    for number, plan in enumerate(plans):
        rng = np.random.default_rng([*seed, number])
        arguments = [_draw_input(rng, roles, place, plan, seed) for place in range(len(roles.inputs))]
        pairs = zip(arguments, roles.inputs, strict=True)
        arguments = [_with_one_nan(array) if role.has_one_nan else array for array, role in pairs]
        yield Run(
            plan.aim, arguments, plan.payload in ("special", LONE, "zeros", MIXED), plan.payload in ("large", MIXED)
        )


def kept_within(run: Run, roles: Roles) -> Run:
    """A run whose counters of loops are values that these take."""
    given = zip(run.arguments, roles.inputs, strict=True)
    arguments = [a if role.values is None else _among(np.asarray(a), role.values) for a, role in given]
    return replace(run, arguments=arguments)


def _among(array: Array, values: Sequence[int]) -> Array:
    numbers: list[int] = array.reshape(-1).tolist()
    kept = [n if n in values or not len(values) else values[n % len(values)] for n in numbers]
    return np.asarray(kept, object).astype(array.dtype).reshape(array.shape)


def _plans(roles: Roles) -> list[_Plan]:
    elements = sum(prod(role.shape) for role in roles.inputs)
    plans: list[_Plan] = []
    if any(role.columns for role in roles.inputs):
        for regime in REGIMES:
            for turn in range(turns_of(regime, roles.positions, elements)):
                k = len(plans)
                plans.append(_Plan(regime, regime, turn, _payload(regime, turn, k), NUMBERS[k % len(NUMBERS)]))
        for payload in PAYLOADS[2:]:
            plans.append(_Plan("mixed", "mixed", 0, payload, NUMBERS[len(plans) % len(NUMBERS)]))
    elif roles.inputs:
        for k in range(PLAIN_RUNS):
            plans.append(_Plan("plain", "mixed", k, PAYLOADS[k % len(PAYLOADS)], NUMBERS[k % len(NUMBERS)]))
        if any(element_type_of(role.dtype).is_float for role in roles.inputs):
            plans += _of_lone_values()
    else:
        plans.append(_Plan("constant", "mixed", 0, "ordinary", "wide"))
    for place, role in enumerate(roles.inputs):
        if role.is_integer and prod(role.shape) == 1:
            for value in list_values(role, (*roles.integers, *roles.turning[0])):
                if roles.reach is not None and abs(value) > roles.reach:
                    continue
                numbers = NUMBERS[len(plans) % len(NUMBERS)]
                aim = f"input {place} = {value}"
                # Each is tried once: beside ordinary floats, of which no two are equal.
                plans.append(_Plan(aim, "in range", 0, "ordinary", numbers, (place, value)))
                if value in roles.integers:  # what treats it otherwise may do so for NaN and zeros alone
                    plans.extend(
                        _Plan(aim, "in range", 0, kind, numbers, (place, value)) for kind in ("special", "zeros")
                    )
    if any(role.columns for role in roles.inputs):
        for k, twins in enumerate(roles.twins):
            runs = -(-min(len(twins.at), MOST) // max(1, roles.positions))
            plans += [_Plan("where constants differ", "in range", turn, "ordinary", "wide", twins=k)
                      for turn in range(runs)]  # fmt: skip
    return plans


def _of_lone_values() -> list[_Plan]:
    """Runs in which floats hold one special value alone."""
    return [
        _Plan("one special value", "mixed", k, LONE, NUMBERS[k % len(NUMBERS)]) for k in range(2 * len(LONE_VALUES))
    ]


def _of_small(roles: Roles) -> list[_Plan]:
    """Further runs of a small piece: every constant at every input, two of them at once, all that truth values are."""
    plans: list[_Plan] = []
    for place, role in enumerate(roles.inputs):
        if prod(role.shape) == 1 and element_type_of(role.dtype).is_float:
            for value in dict.fromkeys((*_specials(role, roles), *_constants_of_type(role.dtype, roles)[1])):
                kinds = [("ordinary", "wide")]
                if not np.isfinite(value) or value == 0.0:
                    kinds.append(("special", "wide"))
                elif any(other.is_integer for other in roles.inputs):  # of a scale and a small number
                    kinds.append(("ordinary", "small"))
                for kind, numbers in kinds:
                    plans.append(_Plan(f"input {place} = {value}", "in range", 0, kind, numbers, (place, value)))
    pools = [
        (prod(role.shape), *map(len, _constants_of_type(role.dtype, roles)))
        for role in roles.inputs
        if role.values is None and prod(role.shape)
    ]
    turns = max((-(-2 * count // size) for size, _, count in pools), default=0)
    if len(pools) > 1:  # two constants meet in one place
        turns = max(turns, max(8 * exact**2 // size for size, exact, _ in pools))
    plans += [_Plan("named", "in range", k, "named", "named") for k in range(min(turns, MORE_RUNS))]
    if len(roles.inputs) > 1 or sum(prod(role.shape) for role in roles.inputs) < FEW:
        plans += [_Plan("each its own", "in range", k, MIXED, MIXED) for k in range(2 * PLAIN_RUNS)]
    count = sum(role.dtype == np.bool_ and prod(role.shape) == 1 for role in roles.inputs)
    if count > 1:
        step = max(1, (1 << count) // MORE_RUNS | 1)  # odd: all bits move
        truths = range(0, 1 << count, step)
        plans += [_Plan("truths", "in range", k, "ordinary", "wide", truths=t) for k, t in enumerate(truths)]
    return plans


def _payload(regime: str, turn: int, number: int) -> str:
    """The floats of a run: of each regime there is one with ordinary ones, which alone tell how a sum is rounded."""
    if turn == (1 if regime in SPECIAL_VALUES else 0):
        return "ordinary"
    return "special" if turn == 0 else PAYLOADS[number % len(PAYLOADS)]


def list_values(role: Role, named: Sequence[int]) -> list[int]:
    """The values to try for a single number: those near the ends of its bounds and of its type, and the pieces'
    constants with their neighbours."""
    info = np.iinfo(role.dtype)
    if role.dtype.itemsize == 1 and role.values is None:
        return list(range(int(info.min), int(info.max) + 1))
    found: dict[int, None] = {}
    if role.values is not None:
        found.update(dict.fromkeys((*role.values[:LISTED], *role.values[-LISTED:])))
    for column in role.columns:
        last, near = column.size - column.window, range(-2, LISTED)
        found.update(dict.fromkeys(near))
        found.update((last - k, None) for k in near)
        found.update((end + k, None) for end in (column.size, -column.size) for k in (-1, 0, 1))
    found.update(dict.fromkeys(_ends(role.dtype)))
    found.update((value + k, None) for value in named for k in (-1, 0, 1))
    return [value for value in found if value in (role.values or range(int(info.min), int(info.max) + 1))]


def _ends(dtype: np.dtype[Any]) -> list[int]:
    """The ends of an integer type, and of narrower ones where they lie in it."""
    info = np.iinfo(dtype)
    found = [0, 1, -1, 2, info.min, info.min + 1, info.max, info.max - 1]
    for bits in (7, 8, 15, 16, 31, 32, 63):
        found += [(1 << bits) - 1, 1 << bits, (1 << bits) + 1, -(1 << bits), -(1 << bits) - 1]
    return [int(v) for v in found if info.min <= v <= info.max]


def _finite(roles: Roles, payload: str) -> str:
    """What is drawn in the place of NaN and infinities; where NaN is not to be made either, no large numbers."""
    is_made = roles.not_said in (NOT_COMPUTED, OF_SQUARES) and payload == "large"
    if payload == LONE and roles.not_said in (IN_MATRICES, OF_SQUARES):
        return TIED
    return "ordinary" if is_made else FINITE.get(payload, payload)


def _with_one_nan(array: Array) -> Array:
    """The same floats with the positive NaN for each one."""
    return np.where(array != array, array.dtype.type(np.nan), array)


def _draw_input(rng: np.random.Generator, roles: Roles, place: int, plan: _Plan, seed: Sequence[int]) -> Array:
    role = roles.inputs[place]
    shape, dtype = role.shape, role.dtype
    if plan.payload == MIXED:
        kind = str(rng.choice((*PAYLOADS, "special", "special")))
        plan = replace(plan, payload=_finite(roles, kind) if roles.not_said else kind)
        plan = replace(plan, numbers=str(rng.choice(NUMBERS)))
    if plan.scalar is not None and plan.scalar[0] == place:
        return np.full(shape, plan.scalar[1], dtype)
    if role.values is not None:
        most = min(len(role.values), FIRST_VALUES) if rng.random() < 0.5 else len(role.values)
        places = rng.integers(max(most, 1), size=prod(shape))
        return np.asarray([(role.values or (0,))[k] for k in places], object).astype(dtype).reshape(shape)
    if role.is_integer and role.columns:
        if plan.twins is not None:
            before = [c for other in roles.inputs[:place] if other.is_integer for c in other.columns]
            return _reading(roles.twins[plan.twins], role, plan.turn, before)
        return _starts(rng, role, plan, seed)
    if dtype.kind in "iu":
        if plan.numbers == "named":
            drawn = _in_turn(plan.turn, [*seed, place], _constants_of_type(dtype, roles), shape, dtype)
        else:
            drawn = _integers(rng, plan.numbers, shape, dtype)
        return drawn if roles.reach is None else _within(drawn, roles.reach)
    if dtype == np.bool_:
        if plan.truths is not None and prod(shape) == 1:
            bit = sum(role.dtype == np.bool_ and prod(role.shape) == 1 for role in roles.inputs[:place])
            return np.full(shape, bool(plan.truths >> bit & 1))
        filled = {"special": True, "named": True, "zeros": False}.get(plan.payload)  # a mask may fill NaN in
        return ordinary(rng, shape, dtype) if filled is None else np.full(shape, filled)
    if plan.payload == "named" and (pools := _constants_of_type(dtype, roles))[1]:
        part, parts = (dtype, shape) if dtype.kind != "c" else (np.dtype(f"f{dtype.itemsize // 2}"), (*shape, 2))
        chosen = _in_turn(plan.turn, [*seed, place], pools, parts, part)
        if plan.turn % 2:
            chosen = np.where(rng.random(parts) < 0.5, chosen, ordinary(rng, parts, part))
        return chosen if dtype.kind != "c" else np.ascontiguousarray(chosen).view(dtype).reshape(shape)
    if role.is_definite and dtype.kind == "f" and plan.payload in ("ordinary", "mild", "large"):
        return definite(rng, shape, dtype)
    if role.is_definite and dtype.kind == "f" and plan.payload == TIED:
        return at_the_edge(rng, shape, dtype, plan.turn)
    if plan.payload == LONE and is_inexact(np.empty(0, dtype)) and dtype.kind != "c":
        turn, which = divmod(plan.turn, len(LONE_VALUES))
        is_there = np.ones(shape, bool) if turn % 2 else rng.random(shape) < 0.5
        return np.where(is_there, dtype.type(LONE_VALUES[which]), ordinary(rng, shape, dtype))
    return _floats(rng, plan.payload, shape, dtype)


def _starts(rng: np.random.Generator, role: Role, plan: _Plan, seed: Sequence[int]) -> Array:
    turn = Turn(plan.turn, np.random.default_rng([*seed, REGIMES.index(plan.regime)]))
    if role.vector_dim is not None and role.vector_dim < len(role.shape):
        others = tuple(n for d, n in enumerate(role.shape) if d != role.vector_dim)
        parts = [starts_in(rng, plan.regime, others, role.dtype, column, turn) for column in role.columns]
        return np.ascontiguousarray(np.stack(parts, axis=role.vector_dim))
    column: Column = role.columns[int(rng.integers(len(role.columns)))]
    return starts_in(rng, plan.regime, role.shape, role.dtype, column, turn)


def _reading(twins: Twins, role: Role, turn: int, before: Sequence[Column]) -> Array:
    """Starts at elements in which two constants differ, the next ones in turn.

    Args:
      twins: the constants.
      role: the starts' input.
      turn: of several runs.
      before: the columns of the inputs before it, which are other coordinates of the same elements.
    """
    count = prod(role.shape)
    if role.vector_dim is not None and role.vector_dim < len(role.shape):
        count //= max(1, role.shape[role.vector_dim])
    at = twins.at[: max(MOST, count)]
    chosen = at[(turn * count + np.arange(count)) % len(at)]
    taken, parts = [column.size for column in before], list[Array]()
    for column in role.columns:
        dims = [d for d, n in enumerate(twins.first.shape) if n == column.size]
        dim = dims[taken.count(column.size) % len(dims)] if dims else None
        taken.append(column.size)
        parts.append(np.zeros(count, np.int64) if dim is None else chosen[:, dim])
    if role.vector_dim is None or role.vector_dim == len(role.shape):
        told = [part for part, column in zip(parts, role.columns, strict=True) if column.size in twins.first.shape]
        return (told or parts)[0].astype(role.dtype).reshape(role.shape)
    others = [n for d, n in enumerate(role.shape) if d != role.vector_dim]
    return np.stack([part.reshape(others) for part in parts], axis=role.vector_dim).astype(role.dtype)


def _specials(role: Role, roles: Roles) -> list[float]:
    """NaN, infinities and signed zeros, where the type has them and something is known of them."""
    if roles.not_said:
        return []
    drawn = with_special_values(np.random.default_rng(0), np.zeros(16, role.dtype))
    return [float(v) for v in np.unique(drawn.view(f"u{role.dtype.itemsize}")).view(role.dtype)]


def _neighbours(value: Array) -> Array:
    """The floats next to one, of the same sign: their bits are next to each other."""
    bits = value.view(f"u{value.dtype.itemsize}")
    around = np.asarray([bits + bits.dtype.type(1), bits - bits.dtype.type(bool(value))], bits.dtype)
    found = around.view(value.dtype).astype(np.float64)
    return found[np.isfinite(found)]


def _constants_of_type(dtype: np.dtype[Any], roles: Roles) -> tuple[list[Any], list[Any]]:
    """The pieces' constants of a type, first alone, then with their neighbours; for a one-byte float every number."""
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        numbers = dict.fromkeys((*roles.integers, *roles.turning[0]))
        found = [[v for n in numbers if info.min <= (v := n + k) <= info.max] for k in (0, -1, 1)]
        return found[0], [v for one in found for v in one]
    dtype = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
    if not element_type_of(dtype).is_float:
        return [], []
    with np.errstate(all="ignore"):
        own = [float(v) for v in np.asarray(roles.floats, np.float64).astype(dtype) if np.isfinite(v)]
        exact = list(dict.fromkeys(v * s for v in own for s in (1.0, -1.0)))
        near = [float(w) for v in own for w in _neighbours(np.asarray(v, dtype))]
        turning = np.asarray(roles.turning[1], np.float64).astype(dtype)
        points = [float(w) for v in turning if np.isfinite(v) for w in (v, *_neighbours(np.asarray(v, dtype)))]
    near += [*(v + 1e-3 for v in exact), *(2.0 * v for v in own), *(v * s for v in points for s in (1.0, -1.0))]
    if dtype.itemsize == 1:
        every = np.unique(np.arange(256).astype(np.uint8).view(dtype).astype(np.float32))
        near = [float(v) for v in every if v == v]
    # No subnormal numbers: XLA's arithmetic on CPU flushes them to zero.
    return exact, [v for v in dict.fromkeys([*exact, *near]) if dtype.itemsize == 1 or v == 0.0 or abs(v) >= SMALLEST]


def _in_turn(
    turn: int,
    seed: Sequence[int],
    pools: tuple[Sequence[Any], Sequence[Any]],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Array:
    """The next ones of two pools in turn, in an order of the input's own: all of them come in the end."""
    pool, count = pools[turn % 2] or [0, 1], prod(shape)
    turn //= 2
    with np.errstate(all="ignore"):
        values = np.asarray(pool, object).astype(dtype)
    if count >= len(pool):  # each of them, wherever
        rng = np.random.default_rng([*seed, turn])
        order = rng.integers(len(pool), size=count)
        order[rng.permutation(count)[: len(pool)]] = np.arange(len(pool))
        return values[order].reshape(shape)
    rounds = range(turn * count // len(pool), (turn * count + count) // len(pool) + 1)
    order = np.concatenate([np.random.default_rng([*seed, r]).permutation(len(pool)) for r in rounds])
    start = turn * count - rounds[0] * len(pool)
    return values[order[start : start + count]].reshape(shape)


def _integers(rng: np.random.Generator, kind: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Integers that place no window."""
    info = np.iinfo(dtype)
    if kind == "small":
        return rng.integers(0, 4, size=shape).astype(dtype)
    if kind == "ascending":
        size = prod(shape)
        return (
            np.resize(np.arange(min(size, int(info.max) + 1)).astype(dtype), shape) if size else np.zeros(shape, dtype)
        )
    if kind in ("high", "low"):
        ends = (info.max, info.max - 1) if kind == "high" else (info.min, info.min + 1)
        return np.asarray(ends, dtype)[(rng.random(shape) < ODD).astype(int)]
    if kind == "ends":
        chosen = np.resize(rng.permutation(np.asarray(_ends(dtype), object)), prod(shape))
        if chosen.size > 1:  # both of them in each such run
            chosen[rng.permutation(chosen.size)[:2]] = info.min, info.max
        return chosen.astype(dtype).reshape(shape)
    wide = ordinary(rng, shape, dtype)
    return np.full(shape, wide.reshape(-1)[0] if wide.size else 0, dtype) if kind == "equal" else wide


def _within(numbers: Array, reach: int) -> Array:
    """Integers brought near 0, those that lie there as they are."""
    info = np.iinfo(numbers.dtype)
    low, high = max(-reach, int(info.min)), min(reach, int(info.max))
    if info.max == high:  # no number of the type is further
        return numbers
    is_near = (numbers >= low) & (numbers <= high)
    return np.where(is_near, numbers, numbers % (high + 1)).astype(numbers.dtype)


def _floats(rng: np.random.Generator, kind: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Floats and complex numbers."""
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        parts = [_floats(rng, kind, shape, part) for _ in ("real", "imaginary")]
        return np.ascontiguousarray(np.stack(parts, axis=-1)).view(dtype).reshape(shape)
    plain = ordinary(rng, shape, dtype)
    if not is_inexact(plain):  # narrow integers
        return plain
    if kind == "special":
        return with_special_values(rng, plain)
    if kind in ("positive", "negative"):  # in some runs so far from 0 that nothing near it is the least or the greatest
        signed = np.where((plain < 0) == (kind == "negative"), plain, -plain)
        return (signed * signed.dtype.type(rng.choice(SCALES))).astype(dtype)
    if kind == TIED:
        return rng.choice(TIED_VALUES, shape).astype(dtype)
    if kind == "mild":
        return (plain * MILD).astype(dtype)
    if kind == "zeros":
        positive = rng.random(shape) < rng.choice(POSITIVE)
        return np.where(positive, np.zeros((), dtype), -np.zeros((), dtype)).astype(dtype)
    if kind == "large":
        is_short = dtype.itemsize <= 2 and dtype.name != "bfloat16"
        decades = 6 if is_short else rng.choice(DECADES, size=shape)
        with np.errstate(all="ignore"):
            return (np.asarray(plain, np.float64) * 10.0 ** rng.integers(0, decades, size=shape)).astype(dtype)
    return plain
