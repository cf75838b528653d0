"""Driven inputs of a region: runs that aim at what its operations may get wrong.

Starts of windows go through the regimes of `hlo_lower.verify.index_regimes`, each as often as it takes to see its
places; a start that is one number takes every boundary value in turn. Other integers are small, wide, at the ends of
their type, and the constants of both pieces with their neighbours; floats are ordinary, then NaN, infinities and
signed zeros in half of the places, then large and the constants with their neighbours. Loop counters take the loop's
values.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.verify.compare import is_inexact
from hlo_lower.verify.index_regimes import (
    REGIMES,
    SPECIAL_VALUES,
    Column,
    Turn,
    ordinary,
    starts_in,
    turns_of,
    with_special_values,
)
from hlo_lower.verify.input_roles import Role, Roles
from hlo_lower.verify.matrix_ops import definite

Array = NDArray[Any]

PAYLOADS = ("ordinary", "special", "large", "named", "zeros")
"""What floats are drawn from: "named" ones are the constants of the pieces and their neighbours."""

FINITE = {"special": "ordinary"}
"""What floats are drawn from where nothing says what becomes of NaN and infinities."""

MILD = 1 / 16
"""What "mild" floats are multiplied by, which are ordinary ones else. Of ordinary ones many layers make numbers so
large that rounding alone decides what is finite, and of a sum in another order nothing can be said then."""

NUMBERS = ("wide", "small", "ends", "ascending", "equal", "named")
"""What integers that place no window are drawn from."""

PLAIN_RUNS = 24
"""Runs of a region that places no windows."""

LISTED = 40
"""Values near each end of a start's range that are tried one after the other."""

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
    scalar: tuple[int, int] | None = None
    """An input that is one number, and the value that it takes."""


def runs_of(roles: Roles, seed: Sequence[int], work: int = 0, *, mild: bool = False) -> Iterator[Run]:
    """The runs of a region.

    Args:
      roles: what its inputs are for.
      seed: of what is drawn.
      work: elements that its operations give in a run.
      mild: whether the first ordinary floats are mild ones.
    """
    plans = _plans(roles)
    if roles.not_said:
        plans = [replace(plan, payload=FINITE.get(plan.payload, plan.payload)) for plan in plans]
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
        arguments = [_drawn(rng, roles, place, plan, seed) for place in range(len(roles.inputs))]
        yield Run(plan.aim, arguments, plan.payload in ("special", "zeros"), plan.payload == "large")


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
            plans.append(_Plan("plain", "mixed", 0, PAYLOADS[k % len(PAYLOADS)], NUMBERS[k % len(NUMBERS)]))
    else:
        plans.append(_Plan("constant", "mixed", 0, "ordinary", "wide"))
    for place, role in enumerate(roles.inputs):
        if role.is_integer and prod(role.shape) == 1:
            for value in listed(role, roles.integers):
                if roles.reach is not None and abs(value) > roles.reach:
                    continue
                numbers = NUMBERS[len(plans) % len(NUMBERS)]
                aim = (
                    f"input {place} = {value}"  # each is tried once: beside ordinary floats, of which no two are equal
                )
                plans.append(_Plan(aim, "in range", 0, "ordinary", numbers, (place, value)))
                if value in roles.integers:  # what treats it otherwise may do so for NaN and zeros alone
                    plans.extend(
                        _Plan(aim, "in range", 0, kind, numbers, (place, value)) for kind in ("special", "zeros")
                    )
    return plans


def _payload(regime: str, turn: int, number: int) -> str:
    """The floats of a run: of each regime there is one with ordinary ones, which alone tell how a sum is rounded."""
    if turn == (1 if regime in SPECIAL_VALUES else 0):
        return "ordinary"
    return "special" if turn == 0 else PAYLOADS[number % len(PAYLOADS)]


def listed(role: Role, named: Sequence[int]) -> list[int]:
    """The values that a single number takes, one after the other: all near the ends of what is in bounds, those of its
    type, the constants of the pieces and their neighbours."""
    info = np.iinfo(role.dtype)
    if role.values is not None:
        return list(dict.fromkeys([*role.values[:LISTED], *role.values[-LISTED:]]))
    if role.dtype.itemsize == 1:
        return list(range(int(info.min), int(info.max) + 1))
    found: dict[int, None] = {}
    for column in role.columns:
        last, near = column.size - column.window, range(-2, LISTED)
        found.update(dict.fromkeys(near))
        found.update((last - k, None) for k in near)
        found.update((end + k, None) for end in (column.size, -column.size) for k in (-1, 0, 1))
    found.update(dict.fromkeys(_ends(role.dtype)))
    found.update((value + k, None) for value in named for k in (-1, 0, 1))
    return [value for value in found if info.min <= value <= info.max]


def _ends(dtype: np.dtype[Any]) -> list[int]:
    """The ends of an integer type, and of narrower ones where they lie in it."""
    info = np.iinfo(dtype)
    found = [0, 1, -1, 2, info.min, info.min + 1, info.max, info.max - 1]
    for bits in (7, 8, 15, 16, 31, 32, 63):
        found += [(1 << bits) - 1, 1 << bits, (1 << bits) + 1, -(1 << bits), -(1 << bits) - 1]
    return [int(v) for v in found if info.min <= v <= info.max]


def _drawn(rng: np.random.Generator, roles: Roles, place: int, plan: _Plan, seed: Sequence[int]) -> Array:
    role = roles.inputs[place]
    shape, dtype = role.shape, role.dtype
    if plan.scalar is not None and plan.scalar[0] == place:
        return np.full(shape, plan.scalar[1], dtype)
    if role.values is not None:
        chosen = np.asarray(role.values, object)[rng.integers(len(role.values), size=shape)] if role.values else 0
        return np.asarray(chosen, object).astype(dtype).reshape(shape)
    if role.is_integer and role.columns:
        return _starts(rng, role, plan, seed)
    if dtype.kind in "iu":
        drawn = _integers(rng, plan.numbers, shape, dtype, roles.integers)
        return drawn if roles.reach is None else _within(drawn, roles.reach)
    if dtype == np.bool_:
        filled = {"special": True, "named": True, "zeros": False}.get(plan.payload)  # a mask may fill NaN in
        return ordinary(rng, shape, dtype) if filled is None else np.full(shape, filled)
    if role.is_definite and dtype.kind == "f" and plan.payload in ("ordinary", "mild", "large"):
        return definite(rng, shape, dtype)
    return _floats(rng, plan.payload, shape, dtype, roles.floats)


def _starts(rng: np.random.Generator, role: Role, plan: _Plan, seed: Sequence[int]) -> Array:
    turn = Turn(plan.turn, np.random.default_rng([*seed, REGIMES.index(plan.regime)]))
    if role.vector_dim is not None and role.vector_dim < len(role.shape):
        others = tuple(n for d, n in enumerate(role.shape) if d != role.vector_dim)
        parts = [starts_in(rng, plan.regime, others, role.dtype, column, turn) for column in role.columns]
        return np.ascontiguousarray(np.stack(parts, axis=role.vector_dim))
    column: Column = role.columns[int(rng.integers(len(role.columns)))]
    return starts_in(rng, plan.regime, role.shape, role.dtype, column, turn)


def _integers(
    rng: np.random.Generator, kind: str, shape: tuple[int, ...], dtype: np.dtype[Any], named: Sequence[int]
) -> Array:
    """Integers that place no window."""
    info = np.iinfo(dtype)
    if kind == "small":
        return rng.integers(0, 4, size=shape).astype(dtype)
    if kind == "ascending":
        size = prod(shape)
        return (
            np.resize(np.arange(min(size, int(info.max) + 1)).astype(dtype), shape) if size else np.zeros(shape, dtype)
        )
    if kind in ("ends", "named"):
        values = _ends(dtype) if kind == "ends" else [v + k for v in named for k in (-1, 0, 1)]
        pool = [v for v in values if info.min <= v <= info.max] or [0, 1]
        chosen = np.resize(rng.permutation(np.asarray(pool, object)), prod(shape))
        if kind == "ends" and chosen.size > 1:  # both of them in each such run
            chosen[rng.permutation(chosen.size)[:2]] = info.min, info.max
        return chosen.astype(dtype).reshape(shape)
    wide = ordinary(rng, shape, dtype)
    return np.full(shape, wide.reshape(-1)[0] if wide.size else 0, dtype) if kind == "equal" else wide


def _within(numbers: Array, reach: int) -> Array:
    """Integers brought near 0, those that lie there as they are."""
    info = np.iinfo(numbers.dtype)
    low, high = max(-reach, int(info.min)), min(reach, int(info.max))
    is_near = (numbers >= low) & (numbers <= high)
    return np.where(is_near, numbers, numbers % (high + 1)).astype(numbers.dtype)


def _floats(
    rng: np.random.Generator, kind: str, shape: tuple[int, ...], dtype: np.dtype[Any], named: Sequence[float]
) -> Array:
    """Floats and complex numbers."""
    if dtype.kind == "c":
        part = np.dtype(f"f{dtype.itemsize // 2}")
        parts = [_floats(rng, kind, shape, part, named) for _ in ("real", "imaginary")]
        return np.ascontiguousarray(np.stack(parts, axis=-1)).view(dtype).reshape(shape)
    plain = ordinary(rng, shape, dtype)
    if not is_inexact(plain):  # narrow integers
        return plain
    if kind == "special":
        return with_special_values(rng, plain)
    if kind == "mild":
        return (plain * MILD).astype(dtype)
    if kind == "zeros":
        return np.where(rng.random(shape) < 0.5, np.zeros((), dtype), -np.zeros((), dtype)).astype(dtype)
    if kind == "large":
        is_short = dtype.itemsize <= 2 and dtype.name != "bfloat16"
        decades = 6 if is_short else rng.choice(DECADES, size=shape)
        with np.errstate(all="ignore"):
            return (np.asarray(plain, np.float64) * 10.0 ** rng.integers(0, decades, size=shape)).astype(dtype)
    if kind == "named" and named:
        pool = [v * s + d for v in named if np.isfinite(v) for s in (1.0, -1.0, 2.0) for d in (0.0, 1e-3)] or [0.0]
        chosen = np.asarray(pool)[rng.integers(len(pool), size=shape)]
        with np.errstate(all="ignore"):
            return np.where(rng.random(shape) < 0.5, chosen.astype(dtype), plain).astype(dtype)
    return plain
