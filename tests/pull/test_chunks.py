"""A list that is gone through in chunks is gone through once: scatters of sorted updates, and near misses."""

from collections import Counter
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import z3
from mutants import mutant
from small_tiles import by_hand
from untyped_mlir import module

from hlo_lower.tile.find import moved_links
from hlo_lower.verify import Assumed, verify
from hlo_lower.verify.pull import derive
from hlo_lower.verify.pull.chunks import Sum, _is_gone_through  # pyright: ignore[reportPrivateUsage]
from hlo_lower.verify.pull.parts import terms_anew
from hlo_lower.verify.run import CannotRunError, Executable

ROWS, UPDATES = 20, 12


def pair(monkeypatch, element="f32", chunk=2, size=4, op="add"):
    """A scatter of updates that are computed, and loops over tiles of its rows and chunks of the updates of each."""
    monkeypatch.setattr(moved_links, "LEAST_CHUNK", chunk)
    text = module(
        f"%x: {ROWS}x2x{element}, %y: {UPDATES}x2x{element}, %ids: {UPDATES}x1xi32",
        f"""%e = add %x, %x; %f = multiply %y, %y
        %r = scatter(%e, %ids, %f) <window=[1], inserted=[0], to=[0], ivd=1> {{{op}}}; %s = negate %r""",
        "%s",
    )
    line = max(k for k, told in enumerate(text.splitlines(), 1) if "stablehlo.negate" in told)
    return text, by_hand(text, line, 0, size)


def derived(first, second, seconds=4.0):
    """Whether two modules are equal, sums of floats in any order."""
    return bool(derive(first, second, seconds=seconds, reassociated=True))


def given(seed):
    """Small whole numbers, whose sums are exact, and rows of which some are out of bounds, most met twice."""
    rng = np.random.default_rng(seed)
    values = [rng.integers(-9, 9, (n, 2)).astype(np.float32) for n in (ROWS, UPDATES)]
    return [*values, rng.integers(-2, (ROWS + 2, 5)[seed % 2], (UPDATES, 1)).astype(np.int32)]


def agree(first, second, seeds=range(4)):
    """Whether two modules give the same, or a second one that does not run."""
    try:
        runs = [Executable(version, "quick") for version in (first, second)]
        return all(np.array_equal(*(run.run(given(seed))[0] for run in runs)) for seed in seeds)
    except (CannotRunError, ValueError):
        return False


@pytest.mark.parametrize(("element", "chunk", "size"), [("f32", 2, 4), ("f32", 4, 10), ("i32", 2, 4)], ids=str)
def test_a_scatter_in_chunks_is_derived(element, chunk, size, monkeypatch):
    """Chunks that divide the updates and that do not."""
    assert derived(*pair(monkeypatch, element, chunk, size), 8)


def test_a_scatter_in_chunks_needs_no_run(monkeypatch):
    """Where sums may be in any order; where results are compared bit for bit, chunks in another order are others."""
    before, after = pair(monkeypatch)
    [region] = verify(before, after, Assumed(reassociated=True), level="regions").regions
    assert (region.how, region.runs) == ("derived", 0)
    assert "chunks of a list" in region.laws


@pytest.mark.sweep
def test_the_last_writer_of_chunks_is_no_sum(monkeypatch):
    """Updates that are assigned count in their order."""
    assert not derived(*pair(monkeypatch, op="assign"))


FIRST_OF_CHUNK = "%c_22 = stablehlo.constant dense<3> : tensor<i32>"
WRONG = {
    "chunks overlap": (FIRST_OF_CHUNK, FIRST_OF_CHUNK.replace("<3", "<2")),
    "updates between chunks are missed": (FIRST_OF_CHUNK, FIRST_OF_CHUNK.replace("<3", "<4")),
    "the last chunk counts twice what the one before it had": ("compare GE, %30, %31", "compare GE, %30, %28"),
    "a chunk is missed": ("%c_7 = stablehlo.constant dense<2>", "%c_7 = stablehlo.constant dense<0>"),
    "at most three chunks": ("stablehlo.minimum %19, %c_5", "stablehlo.minimum %19, %c_8"),
    "it begins behind the last update": ("stablehlo.add %iterArg_14, %25", "stablehlo.add %iterArg_15, %25"),
    "the last row of a tile is missed": (
        "%12 = stablehlo.add %5, %c_5 : tensor<i32>",
        "%k = stablehlo.constant dense<3> : tensor<i32> %12 = stablehlo.add %5, %k : tensor<i32>",
    ),
    "rows are in falling order": ("compare LT, %arg3, %arg4, SIGNED", "compare GT, %arg3, %arg4, SIGNED"),
    "rows are in order of their updates": ("stablehlo.or %5, %8", "stablehlo.or %7, %8"),
    "updates as they are given": ("stablehlo.dynamic_slice %iterArg_13, %27", "stablehlo.dynamic_slice %iota, %27"),
}
"""What is wrong, and which text becomes which."""


@pytest.mark.few(3)
@pytest.mark.parametrize("name", WRONG)
def test_wrong_chunks_are_not_derived(name, monkeypatch):
    """And give other numbers."""
    before, after = pair(monkeypatch)
    old, new = WRONG[name]
    assert old in after
    wrong = after.replace(old, new)
    if "%iota" in new:
        wrong = wrong.replace("%28 = ", f"%iota = stablehlo.iota dim = 0 : tensor<{UPDATES}xi32>\n %28 = ", 1)
    assert agree(before, after)
    assert not agree(before, wrong, range(12))
    assert not derived(before, wrong, 0.8)


@pytest.mark.sweep
@pytest.mark.parametrize("seed", range(24))
def test_no_wrong_mutant_of_chunks_is_derived(seed, monkeypatch):
    """Changed somewhere: what is derived gives the same."""
    rng = np.random.default_rng(seed)
    before, after = pair(monkeypatch, chunk=int(rng.integers(2, 5)))
    for found in (mutant(after, rng) for _ in range(6)):
        if found is not None and derived(before, found, 1):
            assert agree(before, found, range(12)), found


LENGTH = 7


def random_chunks(rng):
    """Terms of a loop over chunks: where one begins, what is tested, how many there are; most as they should be."""

    def one_of(right, *wrong):
        return right if rng.integers(8) else wrong[rng.integers(len(wrong))]

    size, low, high = int(rng.integers(2, 5)), z3.BitVec("low", 32), z3.BitVec("high", 32)
    t, c = z3.BitVec(f"t of {LENGTH}", 32), z3.BitVec(f"c of {size}", 32)
    begin = one_of(low, low + 1, z3.BitVecVal(0, 32)) + t * one_of(size, size - 1, size + 1)
    last = one_of(LENGTH - size, LENGTH - size - 1, LENGTH)
    start = z3.If(begin <= last, begin, z3.BitVecVal(last, 32)) if rng.integers(3) else begin
    place = start + c
    trips = (high - low + one_of(size - 1, 0, size)) / one_of(size, size + 1)
    tests = [place >= begin, place < high, t < trips]
    kept = [test for test in tests if rng.integers(8)] or tests
    return size, (low, high), (t, c), z3.simplify(place), [z3.simplify(test) for test in kept]


def places_met(size, ends, variables, place, tests):
    """How often each place is met, for all ends."""
    which = z3.If(z3.And(tests), place, z3.BitVecVal(-1, 32))
    for low, high in product(range(LENGTH + 1), repeat=2):
        own = z3.substitute(which, *((e, z3.BitVecVal(v, 32)) for e, v in zip(ends, (low, high), strict=True)))
        met = Counter[int]()
        for numbers in product(range(LENGTH), range(size)):
            at = [(name, z3.BitVecVal(value, 32)) for name, value in zip(variables, numbers, strict=True)]
            met[z3.simplify(z3.substitute(own, *at)).as_signed_long()] += 1
        del met[-1]
        yield low, high, met


def is_accepted(seed):
    """Whether a random loop over chunks, most nearly right, is accepted: where it is, each place from low to high is
    met once, and no other one."""
    rng = np.random.default_rng(seed)
    with terms_anew():
        size, ends, (t, c), place, tests = random_chunks(rng)

        def same(pairs):
            solver = z3.Solver()
            solver.add(z3.Or([a != b for a, b in pairs]))
            return solver.check() == z3.unsat

        at, given = SimpleNamespace(prover=SimpleNamespace(same=same)), Sum(t, c, LENGTH, size, (), place)
        is_one = _is_gone_through(at, given, tests, (place, LENGTH), ends)  # pyright: ignore[reportArgumentType]
        for low, high, met in places_met(size, ends, (t, c), place, tests) if is_one else ():
            assert met == Counter(range(low, high)), (tests, low, high)
        return is_one


@pytest.mark.parametrize("seeds", [range(12), pytest.param(range(12, 300), marks=pytest.mark.sweep)], ids=str)
def test_what_is_gone_through_is_met_once(seeds):
    """Some are accepted, and some are not."""
    accepted = Counter(map(is_accepted, seeds))
    assert min(accepted[True], accepted[False]) > 0, accepted
