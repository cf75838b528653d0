"""The predicates of claims: each holds of indices that are what is claimed, and fails of a near miss."""

from dataclasses import fields

import numpy as np
import pytest

from hlo_lower.facts.scatter.predicates import PREDICATES, Claims, RunClaim, apply, broken
from hlo_lower.verify.judges.definitions import ScatterNumbers

ROW = ScatterNumbers((), (0,), (), (), (0,), 1)
"""Points of a vector of 8."""
WIDE = ScatterNumbers((1,), (), (), (), (0,), 1)
"""Windows of 3 in a vector of 8."""
PAIR = ScatterNumbers((), (0, 1), (), (), (0, 1), 2)
"""Points of 4 x 8 at positions of 4 x 2: two columns."""


def rows(*values):
    """Index vectors of one component."""
    return np.asarray(values, np.int64)[:, None]


def pair(first, second):
    """Index vectors of two components at positions of 4 x 2."""
    return np.stack([np.broadcast_to(np.asarray(v), (4, 2)) for v in (first, second)], axis=-1)


def judged(numbers, indices, updates=None, **claims):
    """The claims that fail."""
    shape = {ROW: (8,), WIDE: (8,), PAIR: (4, 8)}[numbers]
    positions = indices.shape[:-1]
    updates_shape = (*positions, 3) if numbers is WIDE else positions
    given = {"oob": "xla", "positions": positions, **claims}
    applied = apply(numbers, shape, updates_shape, indices)
    return broken(Claims(**given), applied, () if updates is None else (np.asarray(updates),))


UP, TO = np.arange(4)[:, None], np.arange(2)
RUN, REVERSED = RunClaim(0, 0), RunClaim(0, 0, is_reversed=True)
WRAPPED, ALIGNED = RunClaim(0, 0, is_wrapped=True), RunClaim(0, 0, is_aligned=True)
FLAT = {"placed": (0, 1)}

CASES = [
    ("in_bounds", ROW, {"in_bounds": "always"}, rows(0, 7), rows(0, 8)),
    ("in_bounds", WIDE, {"in_bounds": "always"}, rows(0, 5), rows(0, 6)),
    ("in_bounds", WIDE, {"in_bounds": "never"}, rows(-1, 6), rows(-1, 5)),
    ("in_bounds", WIDE, {"in_bounds": "never", "oob": "spec"}, rows(-3, 8), rows(-3, 7)),
    ("windows", WIDE, {"windows": "inside"}, rows(0, 5), rows(0, 6)),
    ("windows", WIDE, {"windows": "outside"}, rows(-3, 8), rows(-3, 7)),
    ("windows", WIDE, {"windows": "whole"}, rows(-3, 5), rows(-2, 5)),
    ("windows", WIDE, {"windows": "overhangs"}, rows(-2, 5), rows(-3, 5)),
    ("inside", PAIR, {"inside": (0,)}, pair(3, 9), pair(4, 0)),
    ("ranges", ROW, {"ranges": ((-3, 9),)}, rows(-3, 9), rows(-3, 10)),
    ("runs", ROW, {"runs": (RUN,)}, rows(6, 7, 8, 9), rows(6, 7, 0, 1)),
    ("runs", ROW, {"runs": (RUN,)}, rows(7, 8, -120, -119), rows(125, 126, 0, 1)),
    ("runs", PAIR, {"runs": (RUN,)}, pair(UP, TO), pair(UP, UP)),
    ("runs", ROW, {"runs": (REVERSED,)}, rows(3, 2, 1, 0), rows(0, 1, 2, 3)),
    ("runs", ROW, {"runs": (WRAPPED,)}, rows(6, 7, 0, 1), rows(6, 7, 1, 2)),
    ("runs", ROW, {"runs": (ALIGNED,)}, rows(4, 5, 6, 7), rows(6, 7, 8, 9)),
    ("coordinates", PAIR, {"coordinates": ((0, 0),)}, pair(UP, 5), pair(UP - 256 * (UP > 2), 5)),
    ("repeated", PAIR, {"repeated": (1,)}, pair(UP, 5), pair(UP, TO)),
    ("starts", ROW, {"starts": (3,)}, rows(3, 4), rows(4, 3)),
    ("starts", ROW, {"starts": (3,), "runs": (REVERSED,)}, rows(4, 3), rows(3, 2)),
    ("is_full", ROW, {"is_full": True}, rows(*range(8)), rows(*range(7), 8)),
    ("is_unique", ROW, {"is_unique": True}, rows(3, 1, 8, 8), rows(3, 1, 3)),
    ("is_unique", WIDE, {"is_unique": True}, rows(0, 3), rows(0, 2)),
    ("is_unique", WIDE, {"is_unique": True}, rows(5, 7), rows(5, 3)),
    ("is_permutation", ROW, {"is_permutation": True, "placed": (0,)}, rows(*range(7, -1, -1)), rows(*range(7), 8)),
    ("is_sorted", ROW, {"is_sorted": True, "placed": (0,)}, rows(0, 3, 3, 7), rows(0, 3, 2)),
    ("is_sorted", ROW, {"is_sorted": True, "placed": (0,)}, rows(0, 3, 7), rows(0, 3, 8)),
    # a row that repeats under a run makes the numbers go down
    ("is_sorted", PAIR, {"is_sorted": True, **FLAT}, pair(UP, TO), pair(UP // 2, TO)),
    # and so does a run that stands before the rows
    ("is_sorted", PAIR, {"is_sorted": True, **FLAT}, pair(UP, TO), pair(TO, UP)),
    ("is_sorted", PAIR, {"is_sorted": True, "placed": (1,), "batch": ((0, 0),)}, pair(UP, TO), pair(UP, 1 - TO)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "numbers", "claims", "hit", "miss"), CASES, ids=[f"{n}-{c[0]}" for n, c in enumerate(CASES)]
)
def test_a_hit_and_a_near_miss(name, numbers, claims, hit, miss):
    """The claim holds of the first indices and fails of the second ones."""
    assert judged(numbers, hit, **claims) == ()
    assert name in judged(numbers, miss, **claims)


def test_uniform_updates_are_compared_bit_for_bit():
    """All rows of all updates are the same; 0.0 and -0.0 differ, and NaN is itself."""
    for updates, expected in (([2.0, 2.0], ()), ([np.nan, np.nan], ()), ([0.0, -0.0], ("is_uniform",))):
        assert judged(ROW, rows(1, 2), updates, is_uniform=True, placed=(0,)) == expected
    window = [[1, 1, 1], [1, 1, 2]]
    assert judged(WIDE, rows(1, 2), window, is_uniform=True, placed=(0,)) == ("is_uniform",)


def test_ends_of_types_and_no_positions():
    """An unsigned index is no negative one, and sums with the ends of a type are exact; where nothing is written there
    are no index vectors to look at, of however many components."""
    top = np.asarray([[2**64 - 1]], np.uint64)
    assert (judged(ROW, top, in_bounds="never"), judged(ROW, top, in_bounds="always")) == ((), ("in_bounds",))
    assert judged(WIDE, rows(2**63 - 1, -(2**63)), windows="outside", is_unique=True, runs=(RUN,)) == ()
    assert judged(PAIR, np.zeros((0, 1, 2), np.int64), in_bounds="always", is_unique=True) == ()
    batched = ScatterNumbers((), (1,), (0,), (0,), (1,), 2)
    assert apply(batched, (2, 5), (2, 0), np.zeros((2, 0), np.int32)).starts.shape == (0, 2)


def test_every_claim_has_a_predicate():
    """What is claimed is either judged or says what another claim is about."""
    named = {field.name for field in fields(Claims)}
    assert named == {*PREDICATES, "is_uniform", "oob", "positions", "batch", "placed"}
    assert set(PREDICATES) == {case[0] for case in CASES}
