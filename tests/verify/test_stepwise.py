"""The first piece by definition: scatters and gathers in NumPy, XLA between, and where windows lay is counted."""

import numpy as np
import pytest
from two_programs import main, programs

from hlo_lower.verify.align.align import Assumption, BodyPair, Region, Side
from hlo_lower.verify.judges import stepwise
from hlo_lower.verify.judges.stepwise import NoReferenceError, Stepwise
from hlo_lower.verify.read.numbering import Table
from hlo_lower.verify.run import Executable

ASSIGN = "stablehlo.return %d : tensor<f32>"
ADD = "%s = stablehlo.add %c, %d : tensor<f32> stablehlo.return %s : tensor<f32>"
ARGUMENTS = "%o: tensor<8x4xf32>, %i: tensor<3x2xi32>, %u: tensor<3x2x2xf32>"
KIND = "tensor<8x4xf32>"


def scatter(result, operand, body=ASSIGN):
    """Three windows of two by two."""
    return f"""{result} = "stablehlo.scatter"({operand}, %i, %u) <{{scatter_dimension_numbers = #stablehlo.scatter<
  update_window_dims = [1, 2], scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>}}> ({{
  ^bb0(%c: tensor<f32>, %d: tensor<f32>): {body}
  }}) : ({KIND}, tensor<3x2xi32>, tensor<3x2x2xf32>) -> {KIND}"""


def gather(result, operand):
    """Three windows of two by two, flat, laid into a corner of zeros."""
    return f"""{result}g = "stablehlo.gather"({operand}, %i) <{{dimension_numbers = #stablehlo.gather<
  offset_dims = [1, 2], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 2, 2>}}> :
  ({KIND}, tensor<3x2xi32>) -> tensor<3x2x2xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %flat = stablehlo.reshape {result}g : (tensor<3x2x2xf32>) -> tensor<3x4xf32>
  {result} = stablehlo.pad %flat, %zero, low = [0, 0], high = [5, 0], interior = [0, 0] :
  (tensor<3x4xf32>, tensor<f32>) -> {KIND}"""


def whole(text):
    """The first module's body, as a region from the arguments to what is returned."""
    first, second = programs(text, text.replace(ASSIGN, "stablehlo.return %c : tensor<f32>"))
    table = Table()
    sides = [Side(p, p.entries["main"], 0, {}, table) for p in (first, second)]
    outputs = tuple(Assumption(x, y) for x, y in zip(sides[0].roots, sides[1].roots, strict=True))
    opened = frozenset(number for side in sides for number in side.numbers.values())
    return Region(BodyPair(*sides, ("main",), None), outputs, opened)


def arguments(region, values):
    """The values of the module's arguments, as the region takes them."""
    side = region.pair.first
    given = {side.numbers[v]: values[k] for k, v in enumerate(side.body.arguments)}
    return [given[number] for number in region.inputs]


def drawn(starts, seed=0):
    """Arguments with these starts."""
    rng = np.random.default_rng(seed)
    shapes = (8, 4), (3, 2, 2)
    operand, updates = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    return [operand, np.asarray(starts, np.int32), updates]


INSIDE = [[0, 0], [6, 2], [3, 1]]
TWICE = [[3, 1], [3, 1], [3, 2]]
OVERHANGING = [[0, 3], [7, 0], [2, 1]]
OUTSIDE = [[8, 0], [-2, -2], [2, 1]]

BODIES = {
    "a scatter": scatter("%r", "%o"),
    "an adding scatter": scatter("%r", "%o", ADD),
    "two scatters with arithmetic between": "\n".join(
        [scatter("%p", "%o"), f"%q = stablehlo.add %p, %o : {KIND}", scatter("%r", "%q", ADD)]
    ),
    "a gather of what was scattered": "\n".join([scatter("%p", "%o"), gather("%r", "%p")]),
    "arithmetic before and behind": "\n".join(
        [f"%p = stablehlo.negate %o : {KIND}", scatter("%q", "%p"), f"%r = stablehlo.abs %q : {KIND}"]
    ),
}


@pytest.mark.parametrize("starts", [INSIDE, TWICE, OVERHANGING, OUTSIDE])
@pytest.mark.parametrize("name", BODIES)
def test_it_gives_what_xla_gives(name, starts):
    """Under XLA's policy the two are the same bit for bit, wherever the windows lie."""
    text = main(ARGUMENTS, BODIES[name], "%r", KIND)
    region, values = whole(text), drawn(starts)
    [found] = Stepwise(region, "xla").run(arguments(region, values)).results
    [expected] = Executable(text, "exact").run(values)
    assert found.tobytes() == np.asarray(expected).tobytes()


def test_under_the_specification_single_elements_are_dropped():
    """The part of an overhanging window that is inside is written, where XLA writes nothing of it."""
    region, values = whole(main(ARGUMENTS, BODIES["a scatter"], "%r", KIND)), drawn(OVERHANGING)
    [found] = Stepwise(region, "spec").run(arguments(region, values)).results
    expected = values[0].copy()
    expected[0:2, 3] = values[2][0, :, 0]
    expected[7, 0:2] = values[2][1, 0]
    expected[2:4, 1:3] = values[2][2]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("starts", "counts"),
    [(INSIDE, (3, 0, 0, 1)), (TWICE, (3, 0, 0, 3)), (OVERHANGING, (1, 2, 0, 1)), (OUTSIDE, (1, 0, 2, 1))],
)
def test_where_windows_lay_is_counted(starts, counts):
    """Inside, overhanging, outside, and how often the most often written element was: for each scatter its own."""
    region = whole(main(ARGUMENTS, BODIES["two scatters with arithmetic between"], "%r", KIND))
    hits = Stepwise(region, "xla").run(arguments(region, drawn(starts))).hits
    assert [(h.inside, h.overhanging, h.outside, h.most) for h in hits] == [counts, counts]


IN_A_BRANCH = f"""%p = stablehlo.constant dense<true> : tensor<i1>
%b = stablehlo.compare EQ, %k, %p : (tensor<i1>, tensor<i1>) -> tensor<i1>
%r = "stablehlo.if"(%b) ({{
  {scatter("%x", "%o")}
  stablehlo.return %x : {KIND} }}, {{ stablehlo.return %o : {KIND} }}) : (tensor<i1>) -> {KIND}"""


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"%r = stablehlo.negate %o : {KIND}", "no scatter or gather in it"),
        (IN_A_BRANCH, "in a region of another operation"),
    ],
)
def test_what_it_does_not_know_is_refused(body, reason):
    """Without a scatter there is nothing to step over; one in a branch is not reached."""
    other = f"{main(ARGUMENTS + ', %k: tensor<i1>', body, '%r', KIND)}"
    region = whole(other)
    with pytest.raises(NoReferenceError, match=reason):
        Stepwise(region, "xla")


def test_too_many_positions_are_refused(monkeypatch):
    """A Python loop over more positions than the limit is not begun; at the limit it is."""
    region = whole(main(ARGUMENTS, BODIES["a scatter"], "%r", KIND))
    monkeypatch.setattr(stepwise, "MAX_POSITIONS", 3)
    Stepwise(region, "xla")
    monkeypatch.setattr(stepwise, "MAX_POSITIONS", 2)
    with pytest.raises(NoReferenceError, match="more than 2 positions"):
        Stepwise(region, "xla")
