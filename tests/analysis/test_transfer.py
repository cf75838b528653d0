"""Intervals: each transfer function, a hit and a near miss; and no chain of ops gives a value out of its interval."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from untyped_mlir import function, module

from hlo_lower.base.causes import Code
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.reader import read

FULL = {"i8": (-128, 127), "ui8": (0, 255), "i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1), "i1": (0, 1)}
PAIR = "%low = constant [1, 2] : 2xi32; %high = constant [6, 3] : 2xi32\n"
CALLED = function("private @f", "%x: 4xi32", "%r = clamp 0, %x, 7")
LT, GE = "%p = compare LT, %y, 0; ", "%p = compare GE, %y, 0; "
UP, DOWN = "%up = add %y, 10; %r = select %p, %up, %y", "%up = add %y, 10; %r = select %p, %y, %up"


def interval(lines, arguments="%x: i32"):
    """The interval of %r, that these lines define."""
    graph = read(module(arguments, lines) + CALLED)
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
        (0, 99, "remainder %y, -4", "i32", (0, 3)),
        (-7, -7, "remainder %y, 4", "i32", (-3, -3)),
        (-9, 9, "and %y, 7", "i32", (0, 7)),
        (0, 5, "add %y, 250", "ui8", (250, 255)),
        (1, 3, "or %y, 8", "i32", (8, 15)),
        (1, 3, "xor %y, 8", "i32", (0, 15)),
        (0, 3, "not %y", "i32", (-4, -1)),
        (-1, 3, "shift_left %y, 1", "i32", (-2, 6)),
        (0, 7, "popcnt %y", "i32", (0, 3)),
        (0, 7, "count_leading_zeros %y", "ui8", (0, 8)),
        # one that may wrap around, or of an op that says nothing, may be anything in its type
        (0, 100, "add %y, 28", "i8", None),
        (0, 6, "subtract %y, 1", "ui8", None),
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
        (0, 1, "remainder %x, 16", "ui64", (0, 15)),
        # a convert keeps what fits the new type; to i1 it asks whether the value differs from zero
        (0, 127, "convert %y -> i8", "i32", (0, 127)),
        (0, 128, "convert %y -> i8", "i32", FULL["i8"]),
        (-1, 3, "convert %y -> ui8", "i32", FULL["ui8"]),
        (0, 3, "convert %y -> i64", "i32", (0, 3)),
        (0, 255, "convert %y -> i8", "ui8", FULL["i8"]),
        (1, 3, "convert %y -> i1", "i32", (1, 1)),
        (0, 0, "convert %y -> i1", "i32", (0, 0)),
        # a comparison of a value in [0, 7] is known where its interval lies on one side
        (0, 7, "compare LT, %y, 8", "i32", (1, 1)),
        (0, 7, "compare LT, %y, 7", "i32", (0, 1)),
        (0, 7, "compare LT, %y, 0", "i32", (0, 0)),
        (0, 7, "compare GT, %y, -1", "i32", (1, 1)),
        (0, 7, "compare GE, %y, 0", "i32", (1, 1)),
        (0, 7, "compare EQ, %y, 8", "i32", (0, 0)),
        (0, 7, "compare NE, %y, 8", "i32", (1, 1)),
        # select(i < 0, i + D, i) with i in [-D, D-1] is in [0, D-1]; other bounds, directions and choices are not
        (-10, 9, LT + UP, "i32", (0, 9)),
        (-10, 9, GE + DOWN, "i32", (0, 9)),
        (-11, 9, LT + UP, "i32", (-1, 9)),
        (-10, 11, LT + UP, "i32", (0, 11)),
        (-10, 9, "%p = compare GT, %y, 0; " + UP, "i32", (-10, 19)),
        (-10, 9, LT + DOWN, "i32", (-10, 19)),
        (-10, 9, "%p = compare EQ, %y, 0; " + UP, "i32", (-10, 10)),
        (*FULL["i32"], LT + UP, "i32", (10 - 2**31, 2**31 - 1)),
        (-10, 9, GE + "%r = select %p, %y, 10", "i32", (0, 10)),
        # only the subject and one op on it are looked at under the predicate
        (-10, 9, LT + "%up = add %y, 10; %more = add %up, 10; %r = select %p, %more, %y", "i32", (0, 29)),
        # an arithmetic shift of unsigned integers repeats the highest bit: of 200 it is 228
        (200, 250, "shift_right_arithmetic %y, 1", "ui8", None),
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
        ("%r = broadcast_in_dim %m, dims = [1, 0] -> 2x2xi32", [[1, 3], [2, 4]]),
        ("%r = reshape %m -> 4xi32", [1, 2, 3, 4]),
        ("%r = transpose %m, dims = [1, 0]", [[1, 3], [2, 4]]),
        ("%r = slice %v [0:3:2]", [4, 6]),
        ("%r = concatenate %v, %w, dim = 0", [4, 5, 6, 9, 9]),
        ("%r = reverse %v, dims = [0]", [6, 5, 4]),
        ("%s = select %b, %v, -7; %r = negate %s", [-4, 7, -6]),
        ("%z = slice %v [1:1]; %r = concatenate %z, %w, dim = 0", [9, 9]),
        # on i1, add is or and multiply is and (trap 25)
        ("%r = not %b", [0, 1, 0]),
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
        ("%a = constant [1, 2] : 2xi32; %b = constant [5, 0] : 2xi32; %r = select %q, %a, %b", "%q: i1",
         [1, 0], [5, 2]),
        ("%r = if(%p) { %a = constant 1 : i32; return %a } { %b = constant 5 : i32; return %b }", "%p: i1", 1, 5),
        ("%r = call @f(%x) -> 4xi32", "%x: 4xi32", 0, 7),
        # reverse(y) under y >= 0 may be any y: the predicate speaks of other elements
        ("%y = clamp -10, %x, 9; %p = compare GE, %y, 0; %b = reverse %y, dims = [0]; %r = select %p, %b, 10",
         "%x: 4xi32", -10, 10),
        (f"{PAIR}%r = clamp %low, %x, %high", "%x: 2xi32", [1, 2], [6, 3]),
        # clamp bounds may be scalars; a uniform tensor is kept as one element (spec, clamp, C1 and C2)
        (f"{PAIR}%a = constant 1 : i32; %r = clamp %a, %x, %high", "%x: 2xi32", [1, 1], [6, 3]),
        (f"{PAIR}%b = constant 6 : i32; %r = clamp %low, %x, %b", "%x: 2xi32", [1, 2], [6, 6]),
        ("%r = constant 5 : 1000x1000xi32", "%x: i32", 5, 5),
        # a dynamic slice lies within the hull of what it is cut from, wherever it starts
        ("%v = constant [4, 9, 6] : 3xi32; %r = dynamic_slice %v, %x, sizes = [1]", "%x: i32", 4, 9),
    ],
)  # fmt: skip
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


UNARY = ("negate", "sign", "abs")
# StableHLO has no sign and no abs of unsigned integers; of their arithmetic shift there is a test of its own.
UNSIGNED = {"sign": "negate", "abs": "negate", "shift_right_arithmetic": "shift_right_logical"}
NUMPY = {"i8": np.int8, "i32": np.int32, "ui8": np.uint8}


def exact(compute):
    """An op on pairs of Python integers, of arrays."""
    return lambda a, b, c, dtype: np.array([compute(x, y, np.iinfo(dtype)) for x, y in zip(a, b, strict=True)], object)


def sign(x):
    """-1, 0 or 1."""
    return (x > 0) - (x < 0)


def shift(x, by, info, is_arithmetic):
    """Bits moved right, with the sign's bit behind them if arithmetic; beyond the width all of them are."""
    bits = x % 2**info.bits
    if is_arithmetic:
        bits = (x + 2 ** (info.bits - 1)) % 2**info.bits - 2 ** (info.bits - 1)
    return bits >> min(by % 2**info.bits, info.bits)


EXACT = {
    "add": lambda a, b, c, _: a + b,
    "subtract": lambda a, b, c, _: a - b,
    "multiply": lambda a, b, c, _: a * b,
    "minimum": lambda a, b, c, _: np.minimum(a, b),
    "maximum": lambda a, b, c, _: np.maximum(a, b),
    "remainder": exact(lambda x, y, _: sign(x) * (abs(x) % abs(y))),
    "divide": exact(lambda x, y, _: sign(x) * sign(y) * (abs(x) // abs(y))),
    "and": lambda a, b, c, _: a & b,
    "or": lambda a, b, c, _: a | b,
    "select": lambda a, b, c, _: np.where(a < b, c, b),
    "negate": lambda a, b, c, _: -a,
    "clamp": lambda a, b, c, _: np.minimum(np.maximum(b, a), c),
    "reverse": lambda a, b, c, _: a[::-1],
    "sign": lambda a, b, c, _: np.sign(a),
    "abs": lambda a, b, c, _: abs(a),
    "shift_right_arithmetic": exact(lambda x, y, info: shift(x, y, info, True)),
    "shift_right_logical": exact(lambda x, y, info: shift(x, y, info, False)),
    "sort": lambda a, b, c, _: np.sort(a),
    "pad": lambda a, b, c, _: np.concatenate([b[:1], a[:3]]),
    "gather": lambda a, b, c, _: a[[min(max(x, 0), 3) for x in b]],
    "sum": lambda a, b, c, _: np.full(4, sum(a), object),
    "largest": lambda a, b, c, _: np.full(4, max(*a, 0), object),
}
"""What each op computes of three arrays of Python integers, before it wraps into its type."""

FOLD = """%z{n} = constant 0 : $e; %f{n} = reduce({x} init: %z{n}) applies stablehlo.OP across dimensions = [0]
{r} = broadcast_in_dim %f{n}, dims = [] -> 4x$e"""
LINES = {
    "select": "%p{n} = compare LT, {x}, {y}; {r} = select %p{n}, {z}, {y}",
    "reverse": "{r} = reverse {x}, dims = [0]",
    "sort": "{r} = sort({x}) <dimension = 0> {{LT}}",
    "pad": "%h{n} = slice {y} [0:1]; %k{n} = reshape %h{n} -> $e\n"
    "{r} = pad {x}, %k{n}, low = [1], high = [-1], interior = [0] -> 4x$e",
    "gather": "%g{n} = reshape {y} -> 4x1x$e\n"
    "{r} = gather({x}, %g{n}) <dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], "
    "start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>> -> 4x$e",
    "sum": FOLD.replace("OP", "add"),
    "largest": FOLD.replace("OP", "maximum"),
    "clamp": "{r} = clamp {x}, {y}, {z}",
}


@st.composite
def chains(draw):
    """An element type, the values of two arguments, constants, and a chain of ops on earlier values."""
    element = draw(st.sampled_from(sorted(NUMPY)))
    info = np.iinfo(NUMPY[element])
    edges = [v for v in (info.min, info.min + 1, -4, -1, 0, 1, 2, 3, 5, 100, info.max - 1, info.max) if v >= info.min]
    vectors = st.lists(st.sampled_from(edges), min_size=4, max_size=4)
    values = draw(st.lists(vectors, min_size=4, max_size=4))
    steps = []
    for n in range(draw(st.integers(1, 6))):
        position = st.integers(0, 3 + n)
        steps.append((draw(st.sampled_from(list(EXACT))), draw(position), draw(position), draw(position)))
    return element, values, steps


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(chains())
def test_a_computed_value_lies_in_its_interval(chain):
    """For any chain of ops on i8, ui8 and i32, wrap-around included, each computed value lies in its interval."""
    element, given_values, steps = chain
    info = np.iinfo(NUMPY[element])
    lines = [f"%v{k} = constant {given_values[k]} : 4x{element}" for k in (2, 3)]
    values = [np.array(v, object) for v in given_values]
    for op, a, b, c in steps:
        if op in ("remainder", "divide") and 0 in values[b].tolist():
            op = "add"
        if element == "ui8":
            op = UNSIGNED.get(op, op)
        computed = EXACT[op](values[a], values[b], values[c], NUMPY[element])
        line = LINES.get(op, f"{{r}} = {op} {{x}}" + ", {y}" * (op not in UNARY)).replace("$e", element)
        lines.append(line.format(r=f"%v{len(values)}", n=len(values), x=f"%v{a}", y=f"%v{b}", z=f"%v{c}"))
        values.append((computed - info.min) % (info.max - info.min + 1) + info.min)
    lines.append(f"return {', '.join(f'%v{k}' for k in range(len(values)))}")
    graph = read(module(f"%v0: 4x{element}, %v1: 4x{element}", "\n".join(lines)))
    analysis = IndexAnalysis(graph)
    for value, concrete in zip(graph.main.body.terminator.operands, values, strict=True):
        lo, hi = analysis.of(Site(value)).full()
        assert np.all((lo <= concrete) & (concrete <= hi)), (value.raw, concrete, lo, hi)
