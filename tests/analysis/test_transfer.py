"""Intervals: each transfer function, a hit and a near miss, by a chain of producers of a function's result."""

import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.base.causes import Code
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.reader import read

FULL = {"i8": (-128, 127), "ui8": (0, 255), "i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1), "i1": (0, 1)}
PAIR = "%low = constant [1, 2] : 2xi32; %high = constant [6, 3] : 2xi32\n"


def interval(lines, arguments="%x: i32"):
    """The interval of %r, that these lines define."""
    graph = read(module(arguments, lines))
    return IndexAnalysis(graph).of(Site(graph.main.body.terminator.operand(0)))


def test_an_argument_of_a_public_function_is_anything():
    """Nothing is known of what the caller passes, and the evidence says so."""
    found = interval("return %x")
    assert (found.hull(), found.is_unbounded) == (FULL["i32"], True)
    assert found.evidence.cause == Code.NOT_BOUNDED(Code.ARGUMENT(0, "main", None))


@pytest.mark.parametrize(
    ("low", "high", "op", "element", "expected"),
    [
        # a result that cannot leave its type has the bounds of exact arithmetic
        (0, 7, "reshape %y -> i32", "i32", (0, 7)),
        (2, 5, "add %y, 3", "i32", (5, 8)),
        (2, 5, "subtract %y, 3", "i32", (-1, 2)),
        (-2, 5, "multiply %y, -3", "i32", (-15, 6)),
        (-2, 5, "negate %y", "i32", (-5, 2)),
        (-2, 9, "minimum %y, 5", "i32", (-2, 5)),
        (-2, 9, "maximum %y, 5", "i32", (5, 9)),
        (-9, 9, "remainder %y, 4", "i32", (-3, 3)),
        (0, 99, "remainder %y, 4", "i32", (0, 3)),
        (0, 2, "remainder %y, 4", "i32", (0, 2)),
        (0, 99, "remainder %y, -4", "i32", (0, 3)),
        (-3, 3, "remainder %y, 4", "i32", (-3, 3)),
        (2, 3, "remainder %y, 4", "i32", (2, 3)),
        (-7, -7, "remainder %y, 4", "i32", (-3, -3)),
        (7, 7, "remainder %y, -4", "i32", (3, 3)),
        (-9, 9, "and %y, 7", "i32", (0, 7)),
        (0, 3, "and %y, 7", "i32", (0, 3)),
        (0, 5, "add %y, 250", "ui8", (250, 255)),
        (1, 3, "or %y, 8", "i32", (8, 15)),
        (1, 3, "xor %y, 8", "i32", (0, 15)),
        (0, 3, "not %y", "i32", (-4, -1)),
        (0, 3, "not %y", "ui8", (252, 255)),
        (-1, 3, "shift_left %y, 1", "i32", (-2, 6)),
        (0, 7, "popcnt %y", "i32", (0, 3)),
        (-1, 7, "popcnt %y", "i32", (0, 32)),
        (0, 7, "count_leading_zeros %y", "ui8", (0, 8)),
        # one that may wrap around, or of an op that says nothing, may be anything in its type
        (0, 100, "add %y, 28", "i8", None),
        (0, 6, "add %y, 250", "ui8", None),
        (0, 6, "subtract %y, 1", "ui8", None),
        (-128, 0, "negate %y", "i8", None),
        (0, 1, "negate %y", "ui8", None),
        (0, 65536, "multiply %y, 65536", "i32", None),
        (0, 2**32, "multiply %y, 2147483648", "i64", None),
        (0, 9, "%c = clamp -1, %x, 1; %r = remainder %y, %c", "i32", None),
        (-9, 9, "and %y, -8", "i32", None),
        (-1, 3, "or %y, 7", "i32", None),
        (-1, 3, "xor %y, 7", "i32", None),
        (0, 64, "shift_left %y, 1", "i8", None),
        (0, 3, "shift_left %y, 32", "i32", None),
        # where low exceeds high, the result of a clamp is high, as min(max(x, low), high) says
        (5, 2, "reshape %y -> i32", "i32", (2, 2)),
        # bounds of 64-bit types do not overflow themselves
        (2**63 - 2, 2**63 - 1, "subtract %y, 1", "i64", (2**63 - 3, 2**63 - 2)),
        (2**63 - 2, 2**63 - 1, "add %y, 1", "i64", None),
        (2**64 - 2, 2**64 - 1, "subtract %y, 1", "ui64", (2**64 - 3, 2**64 - 2)),
        (2**64 - 2, 2**64 - 1, "add %y, 1", "ui64", (0, 2**64 - 1)),
        # the remainder by 16 is within 16 of 0, whatever holds the bounds of the type
        *((0, 1, "remainder %x, 16", element, (-15, 15)) for element in ("i32", "i64")),
        (0, 1, "remainder %x, 16", "ui64", (0, 15)),
        # a convert keeps what fits the new type; to i1 it asks whether the value differs from zero
        (0, 100, "convert %y -> i8", "i32", (0, 100)),
        (0, 128, "convert %y -> i8", "i32", FULL["i8"]),
        (-1, 3, "convert %y -> ui8", "i32", FULL["ui8"]),
        (0, 3, "convert %y -> i64", "i32", (0, 3)),
        (0, 255, "convert %y -> i8", "ui8", FULL["i8"]),
        (0, 127, "convert %y -> i8", "ui8", (0, 127)),
        (1, 3, "convert %y -> i1", "i32", (1, 1)),
        (-1, 3, "convert %y -> i1", "i32", (0, 1)),
        (0, 0, "convert %y -> i1", "i32", (0, 0)),
        # a comparison of a value in [0, 7] is known where its interval lies on one side
        (0, 7, "compare LT, %y, 8", "i32", (1, 1)),
        (0, 7, "compare LT, %y, 7", "i32", (0, 1)),
        (0, 7, "compare LT, %y, 0", "i32", (0, 0)),
        (0, 7, "compare LE, %y, 7", "i32", (1, 1)),
        (0, 7, "compare LE, %y, -1", "i32", (0, 0)),
        (0, 7, "compare GT, %y, -1", "i32", (1, 1)),
        (0, 7, "compare GT, %y, 7", "i32", (0, 0)),
        (0, 7, "compare GE, %y, 0", "i32", (1, 1)),
        (0, 7, "compare GE, %y, 8", "i32", (0, 0)),
        (0, 7, "compare EQ, %y, 8", "i32", (0, 0)),
        (0, 7, "compare EQ, %y, 7", "i32", (0, 1)),
        (0, 7, "compare NE, %y, 8", "i32", (1, 1)),
        (0, 7, "compare NE, %y, 3", "i32", (0, 1)),
    ],
)
def test_arithmetic(low, high, op, element, expected):
    """What is computed from a value in [low, high] lies where the table says; None is the whole type."""
    lines = f"%y = clamp {low}, %x, {high}; {op if ' = ' in op else f'%r = {op}'}"
    assert interval(lines, f"%x: {element}").hull() == (expected or FULL[element])


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("%r = broadcast_in_dim %v, dims = [1] -> 2x3xi32", [[4, 5, 6]] * 2),
        ("%r = broadcast_in_dim %v, dims = [0] -> 3x2xi32", [[4] * 2, [5] * 2, [6] * 2]),
        ("%r = broadcast_in_dim %m, dims = [1, 0] -> 2x2xi32", [[1, 3], [2, 4]]),
        ("%r = reshape %m -> 4xi32", [1, 2, 3, 4]),
        ("%r = transpose %m, dims = [1, 0]", [[1, 3], [2, 4]]),
        ("%r = slice %v [0:3:2]", [4, 6]),
        ("%r = slice %m [1:2, 0:2]", [[3, 4]]),
        ("%r = concatenate %v, %w, dim = 0", [4, 5, 6, 9, 9]),
        ("%r = reverse %v, dims = [0]", [6, 5, 4]),
        ("%r = convert %b -> 3xi32", [1, 0, 1]),
        ("%s = select %b, %v, -7; %r = negate %s", [-4, 7, -6]),
        ("%z = slice %v [1:1]; %r = concatenate %z, %w, dim = 0", [9, 9]),
        # on i1, add is or and multiply is and (trap 25)
        ("%r = not %b", [0, 1, 0]),
        ("%r = and %c, %d", [0, 0, 0, 1]),
        ("%r = or %c, %d", [0, 1, 1, 1]),
        ("%r = add %c, %d", [0, 1, 1, 1]),
        ("%r = multiply %c, %d", [0, 0, 0, 1]),
    ],
)
def test_ops_on_constants(lines, expected):
    """Ops that move elements move the bounds, and those of constants are constants."""
    constants = """%v = constant [4, 5, 6] : 3xi32; %m = constant [[1, 2], [3, 4]] : 2x2xi32; %w = constant 9 : 2xi32
        %b = constant [true, false, true] : 3xi1; %c = constant [false, false, true, true] : 4xi1
        %d = constant [false, true, false, true] : 4xi1
        """
    found = interval(constants + lines)
    assert found.is_constant
    assert found.values.tolist() == expected


@pytest.mark.parametrize(
    ("lines", "arguments", "low", "high"),
    [
        # an iota plus a constant wraps in its last elements only, which alone are widened (trap 41)
        ("%i = iota dim = 0 : 4xi8; %r = add %i, 125", "%x: i32", [125, 126, 127, -128], [125, 126, 127, 127]),
        # whichever branch an unknown predicate takes, the result lies in one of them
        (
            "%a = constant [1, 2] : 2xi32; %b = constant [5, 0] : 2xi32; %r = select %p, %a, %b",
            "%p: i1",
            [1, 0],
            [5, 2],
        ),
        (f"{PAIR}%r = clamp %low, %x, %high", "%x: 2xi32", [1, 2], [6, 3]),
        # clamp bounds may be scalars; a uniform tensor is kept as one element (spec, clamp, C1 and C2)
        ("%a = constant 1 : i32; %b = constant 6 : i32; %r = clamp %a, %x, %b", "%x: 2xi32", 1, 6),
        (f"{PAIR}%a = constant 1 : i32; %r = clamp %a, %x, %high", "%x: 2xi32", [1, 1], [6, 3]),
        (f"{PAIR}%b = constant 6 : i32; %r = clamp %low, %x, %b", "%x: 2xi32", [1, 2], [6, 6]),
        ("%r = constant 5 : 1000x1000xi32", "%x: i32", 5, 5),
        # a dynamic slice lies within the hull of what it is cut from, wherever it starts
        ("%v = constant [4, 9, 6] : 3xi32; %r = dynamic_slice %v, %x, sizes = [1]", "%x: i32", 4, 9),
    ],
)
def test_elements(lines, arguments, low, high):
    """Each element has bounds of its own; where all have the same, one is kept."""
    found = interval(lines, arguments)
    assert (np.squeeze(found.lo).tolist(), np.squeeze(found.hi).tolist()) == (low, high)


def test_an_iota_longer_than_its_type_wraps():
    """The elements of an i8 iota behind 127 start again at -128."""
    found = interval("%r = iota dim = 0 : 300xi8")
    assert found.is_constant
    assert found.values[[127, 128, 255, 256, 299]].tolist() == [127, -128, -1, 0, 43]


def test_what_is_not_tracked():
    """Beyond four million elements nothing is known, and of what was computed in floating point; a clamp is named."""
    found = interval("%r = iota dim = 0 : 4194305xi32")
    assert found.is_unbounded
    assert found.evidence.cause == Code.NOT_BOUNDED(Code.TOO_LARGE(4194304))
    assert interval("%f = constant 3.0 : f32; %r = convert %f -> i32").is_unbounded
    assert interval("%r = clamp 1, %x, 6").evidence.cause == Code.CLAMPED(1, 6)


def test_a_chain_that_is_too_long_is_not_followed():
    """Beyond a hundred steps nothing is known; a shorter chain is followed."""

    def chain(steps):
        lines = "".join(f"%c{k + 1} = negate %c{k}\n" for k in range(steps))
        return interval(f"%c0 = constant 0 : i32\n{lines}return %c{steps}").hull()

    assert ((0, 0), FULL["i32"]) == (chain(80), chain(150))
