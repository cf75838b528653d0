"""Intervals: each transfer function, a hit and a near miss, by a chain of producers of a function's result."""

import re

import pytest

from hlo_lower.base.causes import Code
from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.ranges.interval import Interval
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.reader import read

FULL = {"i8": (-128, 127), "ui8": (0, 255), "i32": (-(2**31), 2**31 - 1), "i64": (-(2**63), 2**63 - 1), "i1": (0, 1)}


def interval(lines: str, result: str, arguments: str = "%x: tensor<i32>", functions: str = "") -> Interval:
    """The interval of the value that a function with these lines returns; result is "%v : type"."""
    graph = read(
        f"func.func public @main({arguments}) -> {result.split(' : ')[1]} {{\n{lines}\nreturn {result}\n}}\n{functions}"
    )
    return IndexAnalysis(graph).of(Site(graph.main.body.terminator.operand(0)))


def hull(lines: str, element: str = "i32", arguments: str | None = None, shape: str = "") -> tuple[int, int]:
    """The hull of %r, a tensor of this element type; %x is an unknown argument of the same type."""
    told = f"tensor<{shape}{element}>"
    return interval(lines.replace("$t", told), f"%r : {told}", arguments or f"%x: {told}").hull()


def constant(name: str, value: int | str, element: str = "i32", shape: str = "") -> str:
    """A line that defines a constant."""
    return f"%{name} = stablehlo.constant dense<{value}> : tensor<{shape}{element}>\n"


def between(low: int, high: int, element: str = "i32", name: str = "y") -> str:
    """Lines that define a value in [low, high] from the unknown %x."""
    return (
        constant(f"{name}_lo", low, element)
        + constant(f"{name}_hi", high, element)
        + f"%{name} = stablehlo.clamp %{name}_lo, %x, %{name}_hi : tensor<{element}>\n"
    )


def binary(op: str) -> str:
    """%r = op %y, %c."""
    return f"%r = stablehlo.{op} %y, %c : $t\n"


def test_an_argument_of_a_public_function_is_anything():
    """Nothing is known of what the caller passes, and the evidence says so."""
    found = interval("", "%x : tensor<i32>")
    assert found.hull() == FULL["i32"]
    assert found.is_unbounded
    assert found.evidence.cause == Code.NOT_BOUNDED(Code.ARGUMENT(0, "main", None))


@pytest.mark.parametrize(
    ("lines", "element", "expected"),
    [
        (between(0, 7), "i32", (0, 7)),
        (between(2, 5) + constant("c", 3) + binary("add"), "i32", (5, 8)),
        (between(2, 5) + constant("c", 3) + binary("subtract"), "i32", (-1, 2)),
        (between(-2, 5) + constant("c", -3) + binary("multiply"), "i32", (-15, 6)),
        (between(-2, 5) + "%r = stablehlo.negate %y : $t\n", "i32", (-5, 2)),
        (between(-2, 9) + constant("c", 5) + binary("minimum"), "i32", (-2, 5)),
        (between(-2, 9) + constant("c", 5) + binary("maximum"), "i32", (5, 9)),
        (between(-9, 9) + constant("c", 4) + binary("remainder"), "i32", (-3, 3)),
        (between(0, 99) + constant("c", 4) + binary("remainder"), "i32", (0, 3)),
        (between(0, 2) + constant("c", 4) + binary("remainder"), "i32", (0, 2)),
        (between(0, 99) + constant("c", -4) + binary("remainder"), "i32", (0, 3)),
        (between(-9, 9) + constant("c", 7) + binary("and"), "i32", (0, 7)),
        (between(0, 3) + constant("c", 7) + binary("and"), "i32", (0, 3)),
        (between(0, 5, "ui8") + constant("c", 250, "ui8") + binary("add"), "ui8", (250, 255)),
        (between(-3, 3) + constant("c", 4) + binary("remainder"), "i32", (-3, 3)),
        (between(2, 3) + constant("c", 4) + binary("remainder"), "i32", (2, 3)),
        (constant("y", -7) + constant("c", 4) + binary("remainder"), "i32", (-3, -3)),
        (constant("y", 7) + constant("c", -4) + binary("remainder"), "i32", (3, 3)),
        (between(1, 3) + constant("c", 8) + binary("or"), "i32", (8, 15)),
        (between(1, 3) + constant("c", 8) + binary("xor"), "i32", (0, 15)),
        (between(0, 3) + "%r = stablehlo.not %y : $t\n", "i32", (-4, -1)),
        (between(0, 3, "ui8") + "%r = stablehlo.not %y : $t\n", "ui8", (252, 255)),
        (between(-1, 3) + constant("c", 1) + binary("shift_left"), "i32", (-2, 6)),
        (between(0, 7) + "%r = stablehlo.popcnt %y : $t\n", "i32", (0, 3)),
        (between(-1, 7) + "%r = stablehlo.popcnt %y : $t\n", "i32", (0, 32)),
        (between(0, 7, "ui8") + "%r = stablehlo.count_leading_zeros %y : $t\n", "ui8", (0, 8)),
    ],
    ids=lambda v: re.search(r"stablehlo\.(\w+) [^.]*$", v)[1] if isinstance(v, str) and "\n" in v else None,
)
def test_arithmetic_that_stays_in_its_type(lines, element, expected):
    """A result that cannot leave its type has the bounds of exact arithmetic."""
    if "%r =" not in lines:
        lines += "%r = stablehlo.reshape %y : ($t) -> $t\n"
    assert hull(lines, element) == expected


@pytest.mark.parametrize(
    ("lines", "element"),
    [
        (between(0, 100, "i8") + constant("c", 28, "i8") + binary("add"), "i8"),
        (between(0, 6, "ui8") + constant("c", 250, "ui8") + binary("add"), "ui8"),
        (between(0, 6, "ui8") + constant("c", 1, "ui8") + binary("subtract"), "ui8"),
        (between(-128, 0, "i8") + "%r = stablehlo.negate %y : $t\n", "i8"),
        (between(0, 1, "ui8") + "%r = stablehlo.negate %y : $t\n", "ui8"),
        (between(0, 65536) + constant("c", 65536) + binary("multiply"), "i32"),
        (between(0, 2**32, "i64") + constant("c", 2**31, "i64") + binary("multiply"), "i64"),
        (between(0, 9) + between(-1, 1, name="c") + binary("remainder"), "i32"),
        (between(-9, 9) + constant("c", -8) + binary("and"), "i32"),
        (between(-1, 3) + constant("c", 7) + binary("or"), "i32"),
        (between(-1, 3) + constant("c", 7) + binary("xor"), "i32"),
        (between(0, 64, "i8") + constant("c", 1, "i8") + binary("shift_left"), "i8"),
        (between(0, 3) + constant("c", 32) + binary("shift_left"), "i32"),
    ],
    ids=lambda v: re.search(r"stablehlo\.(\w+) [^.]*$", v)[1] if isinstance(v, str) and "\n" in v else None,
)
def test_arithmetic_that_may_leave_its_type(lines, element):
    """A result that may wrap around, or of an op that says nothing, may be anything in its type."""
    assert hull(lines, element) == FULL[element]


def test_only_the_elements_that_may_wrap_are_widened():
    """An iota plus a constant wraps in its last elements only (trap 41)."""
    lines = (
        "%i = stablehlo.iota dim = 0 : tensor<4xi8>\n"
        + constant("c", 125, "i8", "4x")
        + "%r = stablehlo.add %i, %c : $t\n"
    )
    found = interval(lines.replace("$t", "tensor<4xi8>"), "%r : tensor<4xi8>", "")
    assert (found.lo.tolist(), found.hi.tolist()) == ([125, 126, 127, -128], [125, 126, 127, 127])


def test_an_iota_longer_than_its_type_wraps():
    """The elements of an i8 iota behind 127 start again at -128."""
    found = interval("%r = stablehlo.iota dim = 0 : tensor<300xi8>", "%r : tensor<300xi8>", "")
    assert found.is_constant
    assert found.values[[127, 128, 255, 256, 299]].tolist() == [127, -128, -1, 0, 43]


@pytest.mark.parametrize(
    ("lines", "shape", "expected"),
    [
        ("%r = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<3xi32>) -> $t", "2x3", [[4, 5, 6]] * 2),
        ("%r = stablehlo.broadcast_in_dim %v, dims = [0] : (tensor<3xi32>) -> $t", "3x2", [[4] * 2, [5] * 2, [6] * 2]),
        ("%r = stablehlo.broadcast_in_dim %m, dims = [1, 0] : (tensor<2x2xi32>) -> $t", "2x2", [[1, 3], [2, 4]]),
        ("%r = stablehlo.reshape %m : (tensor<2x2xi32>) -> $t", "4", [1, 2, 3, 4]),
        ("%r = stablehlo.transpose %m, dims = [1, 0] : (tensor<2x2xi32>) -> $t", "2x2", [[1, 3], [2, 4]]),
        ("%r = stablehlo.slice %v [0:3:2] : (tensor<3xi32>) -> $t", "2", [4, 6]),
        ("%r = stablehlo.slice %m [1:2, 0:2] : (tensor<2x2xi32>) -> $t", "1x2", [[3, 4]]),
        (
            "%r = stablehlo.concatenate %v, %w, dim = 0 : (tensor<3xi32>, tensor<2xi32>) -> $t",
            "5",
            [4, 5, 6, 9, 9],
        ),
        ("%r = stablehlo.reverse %v, dims = [0] : $t", "3", [6, 5, 4]),
        ("%r = stablehlo.convert %b : (tensor<3xi1>) -> $t", "3", [1, 0, 1]),
        ("%s = stablehlo.select %b, %v, %k : tensor<3xi1>, tensor<3xi32>\n%r = stablehlo.negate %s : $t", "3",
         [-4, 7, -6]),
        ("%z = stablehlo.slice %v [1:1] : (tensor<3xi32>) -> tensor<0xi32>\n"
         "%r = stablehlo.concatenate %z, %w, dim = 0 : (tensor<0xi32>, tensor<2xi32>) -> $t", "2", [9, 9]),
    ],
)  # fmt: skip
def test_ops_that_move_elements_move_the_bounds(lines, shape, expected):
    """Broadcast, reshape, transpose, slice, concatenate, reverse, convert and select of constants are constants."""
    given = (
        constant("v", "[4, 5, 6]", shape="3x")
        + constant("m", "[[1, 2], [3, 4]]", shape="2x2x")
        + constant("w", 9, shape="2x")
        + constant("k", -7, shape="3x")
        + constant("b", "[true, false, true]", "i1", "3x")
    )
    found = interval(given + lines.replace("$t", f"tensor<{shape}xi32>"), f"%r : tensor<{shape}xi32>", "")
    assert found.is_constant
    assert found.values.tolist() == expected


def test_a_uniform_tensor_is_kept_as_one_element():
    """A broadcast scalar takes no more memory than the scalar."""
    found = interval(constant("c", 5, shape="1000x1000x"), "%c : tensor<1000x1000xi32>", "")
    assert (found.lo.size, found.hull()) == (1, (5, 5))


def test_a_tensor_that_is_too_large_is_not_tracked():
    """Beyond four million elements nothing is known, and the evidence says so."""
    found = interval("%r = stablehlo.iota dim = 0 : tensor<4194305xi32>", "%r : tensor<4194305xi32>", "")
    assert found.is_unbounded
    assert found.evidence.cause == Code.NOT_BOUNDED(Code.TOO_LARGE(4194304))


def test_a_chain_that_is_too_long_is_not_followed():
    """Beyond a hundred steps nothing is known; a shorter chain is followed."""

    def chain(steps):
        lines = constant("c0", 0) + "".join(f"%c{k + 1} = stablehlo.negate %c{k} : tensor<i32>\n" for k in range(steps))
        return interval(lines, f"%c{steps} : tensor<i32>", "").hull()

    assert ((0, 0), FULL["i32"]) == (chain(80), chain(150))


def test_dynamic_slice_is_some_element_of_its_operand():
    """A dynamic slice lies within the hull of what it is cut from, wherever it starts."""
    lines = constant("v", "[4, 9, 6]", shape="3x") + (
        "%r = stablehlo.dynamic_slice %v, %x, sizes = [1] : (tensor<3xi32>, tensor<i32>) -> tensor<1xi32>"
    )
    assert interval(lines, "%r : tensor<1xi32>").hull() == (4, 9)


@pytest.mark.parametrize(
    ("source", "low", "high", "target", "expected"),
    [
        ("i32", 0, 100, "i8", (0, 100)),
        ("i32", 0, 128, "i8", FULL["i8"]),
        ("i32", -1, 3, "ui8", FULL["ui8"]),
        ("i32", 0, 3, "i64", (0, 3)),
        ("ui8", 0, 255, "i8", FULL["i8"]),
        ("ui8", 0, 127, "i8", (0, 127)),
        ("i32", 1, 3, "i1", (1, 1)),
        ("i32", -1, 3, "i1", (0, 1)),
        ("i32", 0, 0, "i1", (0, 0)),
    ],
)
def test_convert(source, low, high, target, expected):
    """A convert keeps what fits the new type; to i1 it asks whether the value differs from zero."""
    lines = between(low, high, source) + f"%r = stablehlo.convert %y : (tensor<{source}>) -> tensor<{target}>\n"
    assert interval(lines, f"%r : tensor<{target}>", f"%x: tensor<{source}>").hull() == expected


def test_convert_from_float_says_nothing():
    """An index that was computed in floating point may be anything."""
    lines = "%f = stablehlo.constant dense<3.0> : tensor<f32>\n%r = stablehlo.convert %f : (tensor<f32>) -> tensor<i32>"
    assert interval(lines, "%r : tensor<i32>", "").is_unbounded


@pytest.mark.parametrize(
    ("direction", "limit", "expected"),
    [
        ("LT", 8, (1, 1)),
        ("LT", 7, (0, 1)),
        ("LT", 0, (0, 0)),
        ("LE", 7, (1, 1)),
        ("LE", -1, (0, 0)),
        ("GT", -1, (1, 1)),
        ("GT", 7, (0, 0)),
        ("GE", 0, (1, 1)),
        ("GE", 8, (0, 0)),
        ("EQ", 8, (0, 0)),
        ("EQ", 7, (0, 1)),
        ("NE", 8, (1, 1)),
        ("NE", 3, (0, 1)),
    ],
)
def test_compare(direction, limit, expected):
    """A comparison of a value in [0, 7] is known where its interval lies on one side."""
    lines = (
        between(0, 7) + constant("c", limit)
        + f"%r = stablehlo.compare {direction}, %y, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>"
    )  # fmt: skip
    assert interval(lines, "%r : tensor<i1>").hull() == expected


@pytest.mark.parametrize(
    ("op", "expected"),
    [("and", [0, 0, 0, 1]), ("or", [0, 1, 1, 1]), ("add", [0, 1, 1, 1]), ("multiply", [0, 0, 0, 1])],
)
def test_booleans(op, expected):
    """On i1, add is or and multiply is and (trap 25)."""
    lines = (
        constant("a", "[false, false, true, true]", "i1", "4x")
        + constant("b", "[false, true, false, true]", "i1", "4x")
        + f"%r = stablehlo.{op} %a, %b : tensor<4xi1>"
    )
    found = interval(lines, "%r : tensor<4xi1>", "")
    assert found.is_constant
    assert found.values.tolist() == expected


def test_not_of_booleans():
    """The negation of a known boolean is known."""
    lines = constant("a", "[false, true]", "i1", "2x") + "%r = stablehlo.not %a : tensor<2xi1>"
    assert interval(lines, "%r : tensor<2xi1>", "").values.tolist() == [1, 0]


def test_select_by_an_unknown_predicate_is_the_hull_of_both():
    """Whichever branch is taken, the result lies in one of them; a scalar predicate is broadcast."""
    lines = (
        constant("a", "[1, 2]", shape="2x") + constant("b", "[5, 0]", shape="2x")
        + "%r = stablehlo.select %p, %a, %b : tensor<i1>, tensor<2xi32>"
    )  # fmt: skip
    found = interval(lines, "%r : tensor<2xi32>", "%p: tensor<i1>")
    assert (found.lo.tolist(), found.hi.tolist()) == ([1, 0], [5, 2])


def test_clamp_by_scalars_and_by_tensors():
    """Clamp bounds may be scalars or tensors of the operand's shape; the evidence names the range."""
    scalars = (
        constant("a", 1)
        + constant("b", 6)
        + ("%r = stablehlo.clamp %a, %x, %b : (tensor<i32>, tensor<2xi32>, tensor<i32>) -> tensor<2xi32>")
    )
    tensors = constant("a", "[1, 2]", shape="2x") + constant("b", "[6, 3]", shape="2x") + (
        "%r = stablehlo.clamp %a, %x, %b : tensor<2xi32>"
    )  # fmt: skip
    found = interval(scalars, "%r : tensor<2xi32>", "%x: tensor<2xi32>")
    assert (found.hull(), found.evidence.cause) == ((1, 6), Code.CLAMPED(1, 6))
    found = interval(tensors, "%r : tensor<2xi32>", "%x: tensor<2xi32>")
    assert (found.lo.tolist(), found.hi.tolist()) == ([1, 2], [6, 3])


@pytest.mark.parametrize("scalar", ["low", "high"])
def test_clamp_by_a_scalar_and_a_tensor(scalar):
    """One bound may be a scalar while the other one is a tensor (spec, clamp, C1 and C2)."""
    low = constant("a", 1) if scalar == "low" else constant("a", "[1, 2]", shape="2x")
    high = constant("b", 6) if scalar == "high" else constant("b", "[6, 3]", shape="2x")
    types = ("tensor<i32>", "tensor<2xi32>", "tensor<2xi32>")
    lines = low + high + f"%r = stablehlo.clamp %a, %x, %b : ({', '.join(types if scalar == 'low' else types[::-1])})"
    found = interval(f"{lines} -> tensor<2xi32>", "%r : tensor<2xi32>", "%x: tensor<2xi32>")
    assert found.hull() == (1, 6)


def test_clamp_with_crossed_bounds_gives_the_upper_one():
    """Where low exceeds high, the result is high, as min(max(x, low), high) says."""
    assert hull(between(5, 2) + "%r = stablehlo.reshape %y : ($t) -> $t") == (2, 2)


@pytest.mark.parametrize("element", ["i64", "ui64"])
def test_64_bit_bounds_are_exact(element):
    """Bounds of 64-bit types do not overflow themselves."""
    high = {"i64": 2**63 - 1, "ui64": 2**64 - 1}[element]
    lines = between(high - 1, high, element) + constant("c", 1, element)
    assert hull(lines + binary("subtract"), element) == (high - 2, high - 1)
    low = {"i64": -(2**63), "ui64": 0}[element]
    assert hull(lines + binary("add"), element) == (low, high)


@pytest.mark.parametrize("element", ["i32", "i64", "ui64"])
def test_the_remainder_of_a_scalar(element):
    """The remainder by 16 is within 16 of 0, whatever holds the bounds of the type."""
    low = 0 if element == "ui64" else -15
    assert hull(constant("d", 16, element) + "%r = stablehlo.remainder %x, %d : $t", element) == (low, 15)
