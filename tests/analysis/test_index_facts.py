"""Index facts through selects and calls, and that no chain of operations ever gives a value out of its interval."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from untyped_mlir import function, module

from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.reader import read

I32 = (-(2**31), 2**31 - 1)
LT, GE = "%p = compare LT, %i, 0\n", "%p = compare GE, %i, 0\n"
UP, DOWN = "%r = select %p, %up, %i", "%r = select %p, %i, %up"


def hull(lines, functions="", arguments="%x: 4xi32"):
    """The hull of %r, that these lines define."""
    graph = read(module(arguments, lines) + functions)
    return IndexAnalysis(graph).of(Site(graph.main.body.terminator.operand(0))).hull()


def clamped(low, high, lines):
    """%i = %x clamped to [low, high], %up = %i + 10, and these lines."""
    return f"%i = clamp {low}, %x, {high}; %up = add %i, 10\n{lines}"


@pytest.mark.parametrize(
    ("low", "high", "choice", "expected"),
    [
        (-10, 9, LT + UP, (0, 9)),
        (-10, 9, GE + DOWN, (0, 9)),
        (-10, 9, "%p = compare LE, %i, 0\n" + UP, (0, 10)),
        (-11, 9, LT + UP, (-1, 9)),
        (-10, 11, LT + UP, (0, 11)),
        (0, 9, LT + UP, (0, 9)),
        (-10, -1, LT + UP, (0, 9)),
        (-10, 9, "%p = compare GT, %i, 0\n" + UP, (-10, 19)),
        (-10, 9, LT + DOWN, (-10, 19)),
        (-10, 9, "%p = compare EQ, %i, 0\n" + UP, (-10, 10)),
        (*I32, LT + UP, (I32[0] + 10, I32[1])),
        # reverse(i) under i < 0 may be any i: the predicate speaks of other elements
        (-10, 9, LT + "%back = reverse %i, dims = [0]; %r = select %p, %back, 10", (-10, 10)),
        (-10, 9, LT + "%r = select %p, %i, 10", (-10, 10)),
        (-10, 9, GE + "%back = reverse %i, dims = [0]; %r = select %p, %back, 10", (-10, 10)),
        (-10, 9, GE + "%r = select %p, %i, 10", (0, 10)),
        # only the subject and one op on it are looked at under the predicate
        (-10, 9, LT + "%more = add %up, 10; %r = select %p, %more, %i", (0, 29)),
        # an absent dimension of a sort is the last one
        (3, 5, "%r = sort(%i) <dimension = 0> {LT}", (3, 5)),
    ],
)
def test_negative_index_normalisation(low, high, choice, expected):
    """select(i < 0, i + D, i) with i in [-D, D-1] is in [0, D-1]; other bounds, directions and choices are not."""
    assert hull(clamped(low, high, choice)) == expected


CLAMP = function("private @f", "%x: 4xi32", "%r = clamp 0, %x, 7")
SAME = function("private @f", "%x: 4xi32", "return %x")


def test_calls():
    """What a callee clamps is clamped at the call, and a call is looked at with its own arguments."""
    assert hull("%r = call @f(%x) -> 4xi32", CLAMP) == (0, 7)
    lines = clamped(3, 5, "%r = call @f(%i) -> 4xi32; %other = call @f(%x) -> 4xi32; return RESULT")
    assert [hull(lines.replace("RESULT", result), SAME) for result in ("%r", "%other")] == [(3, 5), I32]


ONE, MORE, ANY = (f"%{name} = call @f(%{name}) -> 4xi32\n".replace("%", "%c_", 1) for name in ("i", "up", "x"))


@pytest.mark.parametrize(
    ("calls", "visibility", "expected"),
    [
        (ONE, "private", (3, 5)),
        (ONE + MORE, "private", (3, 15)),
        (ONE + ANY, "private", I32),
        # a public function, one that is never called and one that a composite names may be given anything
        (ONE, "public", I32),
        ("", "private", I32),
        (ONE + '%b = composite "my.f" %x {decomposition = @f} -> 4xi32\n', "private", I32),
    ],
)
def test_a_fact_holds_inside_of_a_function_only_if_it_holds_at_every_call(calls, visibility, expected):
    """One call site that passes more makes the argument more (trap 40)."""
    text = module("%x: 4xi32", clamped(3, 5, calls + "return %x"))
    graph = read(text + SAME.replace("private", visibility))
    assert IndexAnalysis(graph).of(Site(graph.functions["f"].body.argument(0))).hull() == expected


def test_a_value_that_a_loop_does_not_change_is_what_it_was_before():
    """A body that returns its argument as it is leaves the value; what loops change is in test_carried.py."""
    loop = "%r = while(%i = %n) cond { %p = compare LT, %i, %n; return %p } do { return %i }"
    assert hull(f"%n = constant 0 : i32; {loop}") == (0, 0)


def test_an_arithmetic_shift_of_unsigned_integers_repeats_the_highest_bit():
    """200 as ui8 shifted right by one is 228, as XLA and the interpreter compute it, not 100."""
    lines = "%c = clamp 200, %x, 250; %r = shift_right_arithmetic %c, 1"
    low, high = hull(lines, arguments="%x: ui8")
    assert low <= 228 <= high


# --- soundness ---

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
