"""The first piece by definition: scatters and gathers in NumPy, XLA between, and where windows lay is counted."""

import numpy as np
import pytest
from two_programs import programs
from untyped_mlir import module

from hlo_lower.verify.align.align import Assumption, BodyPair, Region, Side
from hlo_lower.verify.judges import stepwise
from hlo_lower.verify.judges.stepwise import NoReferenceError, Stepwise
from hlo_lower.verify.read.numbering import Table
from hlo_lower.verify.run import Executable

ARGUMENTS = "%o: 8x4xf32, %i: 3x2xi32, %u: 3x2x2xf32"
ASSIGN = "scatter(%o, %i, %u) <window=[1, 2], to=[0, 1], ivd=1> {%c, %d: return %d}"
ADD = "scatter(%o, %i, %u) <window=[1, 2], to=[0, 1], ivd=1> {add}"
GATHER = """%g = gather(%p, %i) <dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0, 1],
  index_vector_dim = 1>, slice_sizes = array<i64: 2, 2>> -> 3x2x2xf32
%zero = constant 0.0 : f32; %flat = reshape %g -> 3x4xf32
%r = pad %flat, %zero, low = [0, 0], high = [5, 0], interior = [0, 0] -> 8x4xf32"""
"""Three windows of two by two, flat, laid into a corner of zeros."""

BODIES = {
    "a scatter": f"%r = {ASSIGN}",
    "two scatters with arithmetic between": f"%p = {ASSIGN}; %q = add %p, %o; %r = {ADD.replace('%o', '%q')}",
    "a gather of what was scattered": f"%p = {ASSIGN}\n{GATHER}",
}


def whole(body, arguments=ARGUMENTS):
    """A module, and its body as a region from the arguments to what is returned."""
    text = module(arguments, body)
    first, second = programs(text, text.replace("stablehlo.return %d", "stablehlo.return %c"))
    table = Table()
    sides = [Side(p, p.entries["main"], 0, {}, table) for p in (first, second)]
    outputs = tuple(Assumption(x, y) for x, y in zip(sides[0].roots, sides[1].roots, strict=True))
    opened = frozenset(number for side in sides for number in side.numbers.values())
    return text, Region(BodyPair(*sides, ("main",), None), outputs, opened)


def run_of(region, values, oob="xla"):
    """What is computed of the values of the module's arguments."""
    side = region.pair.first
    given = {side.numbers[v]: values[k] for k, v in enumerate(side.body.arguments)}
    return Stepwise(region, oob).run([given[number] for number in region.inputs])


def drawn(starts):
    """Arguments with these starts."""
    rng = np.random.default_rng(0)
    operand, updates = (rng.standard_normal(shape).astype(np.float32) for shape in ((8, 4), (3, 2, 2)))
    return [operand, np.asarray(starts, np.int32), updates]


INSIDE, TWICE = [[0, 0], [6, 2], [3, 1]], [[3, 1], [3, 1], [3, 2]]
OVERHANGING, OUTSIDE = [[0, 3], [7, 0], [2, 1]], [[8, 0], [-2, -2], [2, 1]]


@pytest.mark.parametrize(
    ("starts", "counts"),
    [(INSIDE, (3, 0, 0, 1)), (TWICE, (3, 0, 0, 3)), (OVERHANGING, (1, 2, 0, 1)), (OUTSIDE, (1, 0, 2, 1))],
)
@pytest.mark.parametrize("name", BODIES)
def test_it_gives_what_xla_gives_and_counts_where_windows_lay(name, starts, counts):
    """Bit for bit; inside, overhanging, outside, and how often one element was written: for each scatter its own."""
    (text, region), values = whole(BODIES[name]), drawn(starts)
    ran, [expected] = run_of(region, values), Executable(text, "exact").run(values)
    assert ran.results[0].tobytes() == np.asarray(expected).tobytes()
    if name.startswith("two scatters"):
        assert [(h.inside, h.overhanging, h.outside, h.most) for h in ran.hits] == [counts, counts]


def test_under_the_specification_single_elements_are_dropped():
    """The part of an overhanging window that is inside is written, where XLA writes nothing of it."""
    values = drawn(OVERHANGING)
    [found] = run_of(whole(BODIES["a scatter"])[1], values, "spec").results
    expected = values[0].copy()
    expected[0:2, 3] = values[2][0, :, 0]
    expected[7, 0:2] = values[2][1, 0]
    expected[2:4, 1:3] = values[2][2]
    np.testing.assert_array_equal(found, expected)


IN_A_BRANCH = f"""%p = constant true : i1; %b = compare EQ, %k, %p
%r = if(%b) {{ %x = {ASSIGN}; return %x }} {{ return %o }}"""


@pytest.mark.parametrize(
    ("body", "reason"),
    [("%r = negate %o", "no scatter or gather in it"), (IN_A_BRANCH, "in a region of another operation")],
)
def test_what_it_does_not_know_is_refused(body, reason):
    """Without a scatter there is nothing to step over; one in a branch is not reached."""
    with pytest.raises(NoReferenceError, match=reason):
        Stepwise(whole(body, f"{ARGUMENTS}, %k: i1")[1], "xla")


def test_too_many_positions_are_refused(monkeypatch):
    """A Python loop over more positions than the limit is not begun; at the limit it is."""
    _, region = whole(BODIES["a scatter"])
    monkeypatch.setattr(stepwise, "MAX_POSITIONS", 3)
    Stepwise(region, "xla")
    monkeypatch.setattr(stepwise, "MAX_POSITIONS", 2)
    with pytest.raises(NoReferenceError, match="more than 2 positions"):
        Stepwise(region, "xla")
