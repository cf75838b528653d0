"""A module as the judge reads it: calls inlined, values numbered by what matters to them, constants folded."""

import re

import numpy as np
import pytest
from two_programs import numbers, programs
from untyped_mlir import function, module

from hlo_lower.ops import names
from hlo_lower.ops.spec import COMBINING, OPS
from hlo_lower.verify.align.align import Side
from hlo_lower.verify.read.meanings import INTEGERS, is_splat
from hlo_lower.verify.read.numbering import Table
from hlo_lower.verify.run import Executable


def read(body, returned, more="", arguments="%a: 8xf32"):
    """A module as it is read, and its entry."""
    [program] = programs(module(arguments, body, returned, more))
    return program, program.entries["main"]


def called(name, body):
    """A private function of %x that returns %y."""
    return function(f"private @{name}", "%x: 8xf32", body, "%y")


NEGATED = called("f", "%y = negate %x")
CALL = "%{0} = call @f(%{1}) -> 8xf32; "


def test_calls_are_inlined_and_the_same_one_once():
    """Two calls on one value are one operation, one on another value is another."""
    _, entry = read(CALL.format("p", "a") + CALL.format("q", "a") + CALL.format("r", "p"), "%p, %q, %r", NEGATED)
    assert [op.short_name for op in entry.ops] == ["negate", "negate"]
    assert entry.returned[0] == entry.returned[1] != entry.returned[2]


GIVEN = "%p: i1, %a: 8xf32, %b: 8xf32, %m: 8x1xf32, %e: 8x0xf32, %t: 8x2xf32"
X, Y, LAST = "%x = add %a, %b", "%y = multiply %a, %b", "%r = subtract %x, %y"
CONSTANT, SPLAT = "%k = constant 1.0 : 8xf32", "%s = constant 1.0 : f32; %k = broadcast_in_dim %s, dims = [] -> 8xf32"
IF = "%r = if(%p) {{ %{0} = add %a, %b; return %{0} }} {{ return {1} }}"
SORT = """%r = sort({0}) <dimension = {1} : i64, is_stable = true> {{
  %x, %y: %q = compare LT, %x, %y, FLOAT; return %q}}"""


def both(first, second):
    """The numbers of what two modules return."""
    return numbers(*(module(GIVEN, body) for body in (first, second)))


BARRIER = "%w:2 = optimization_barrier %a, %b"


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        # order, the operands of a sum, duplicates, dead code, and how a constant is made do not matter
        (f"{X}; {Y}; {LAST}", f"{Y}; {X}; {LAST}", True),
        (f"{X}; {Y}; {LAST}", f"{X}; {Y}; {LAST}".replace("%a, %b", "%b, %a"), True),
        (f"{X}; %r = subtract %x, %x", f"{X}; %y = add %a, %b; {LAST}", True),
        ("%r = negate %a", f"{X}; %r = negate %a", True),
        (f"{CONSTANT}; %r = add %a, %k", f"{SPLAT}; %r = add %a, %k", True),
        # the operands of a difference, another operation, an attribute and the sign of a zero do
        ("%r = subtract %a, %b", "%r = subtract %b, %a", False),
        ("%r = add %a, %b", "%r = maximum %a, %b", False),
        ("%r = reverse %a, dims = [0]", "%r = reverse %a, dims = []", False),
        (*(f"%k = constant {zero} : 8xf32; %r = add %a, %k" for zero in ("0.0", "-0.0")), False),
        # a < b is b > a, and not b < a unless the comparison is symmetric
        *(
            (f"%r = compare {one}, %a, %b", f"%r = compare {other}, %b, %a", True)
            for one, other in (("LT", "GT"), ("LE", "GE"), ("NE", "NE"))
        ),
        *((f"%r = compare {how}, %a, %b", f"%r = compare {how}, %b, %a", False) for how in ("LT", "LE")),
        # the same branches on the same captures are one, other captures another
        (IF.format("x", "%a"), IF.format("y", "%a"), True),
        (IF.format("x", "%a"), IF.format("x", "%b"), False),
        # along a dim of size 1 or 0 there is nothing to sort, whatever compares; along one of 2 there is
        (SORT.format("%m", -1), "return %m", True),
        (SORT.format("%e", 1), "return %e", True),
        (SORT.format("%t", 1), "return %t", False),
        # a barrier gives each operand, in order
        ("%r = subtract %a, %b", f"{BARRIER}; %r = subtract %w#0, %w#1", True),
        ("%r = subtract %a, %b", f"{BARRIER}; %r = subtract %w#1, %w#0", False),
    ],
)
def test_what_matters_and_what_does_not(first, second, is_same):
    one, other = both(first, second)
    assert (one == other) == is_same


RNG = "rng %lo, %hi, %n, distribution = UNIFORM -> 8xf32"
DRAWS = "%n = constant 8 : 1xi64; %lo = constant 0.0 : f32; %hi = constant 1.0 : f32; "
TOLD = "custom_call @f(%a) {has_side_effect = EFFECT} -> 8xf32"


@pytest.mark.parametrize("drawn", [RNG, TOLD.replace("EFFECT", "true"), TOLD.replace("EFFECT", "false")])
def test_what_has_an_effect_is_not_its_twin(drawn):
    """A draw or effect is numbered by its place, alike in both modules; a call without an effect is its twin."""
    first, second = both(*[f"{DRAWS}%x = {drawn}; %y = {drawn}; return %x, %y"] * 2)
    assert first == second
    assert (first[0] == first[1]) == ("false" in drawn)


AB = """%a = constant [[1, -2, 3], [2147483647, 5, -2147483648]] : 2x3xi32
%b = constant [[7, -2, 0], [1, 6, -1]] : 2x3xi32
"""


def known(body):
    """The folded value of %r."""
    [program] = programs(module("", body, "%r"))
    table = Table()
    side = Side(program, program.entries["main"], 0, {}, table)
    return table.known.get(side.numbers[side.roots[0]])


BINARY = "add", "subtract", "multiply", "minimum", "maximum", "and", "or", "xor"
FOLDED = [
    *(f"%r = {name} %a, %b" for name in BINARY),
    *("%r = not %a", "%r = clamp %b, %a, %b", "%r = compare LE, %a, %b"),
    *("%r = convert %a -> 2x3xi8", "%r = convert %a -> 2x3xf64", "%r = convert %b -> 2x3xf16"),
    *("%r = convert %b -> 2x3xbf16", "%r = convert %b -> 2x3xf32", "%c = constant -127 : i32; %r = convert %c -> f32"),
    *("%r = bitcast_convert %b -> 2x3xf32", "%c = constant -8388608 : i32; %r = bitcast_convert %c -> f32"),
    *("%r = transpose %a, dims = [1, 0]", "%r = reshape %a -> 6xi32", "%r = reverse %a, dims = [1]"),
    *("%r = slice %a [0:2, 0:3:2]", "%r = concatenate %a, %b, dim = 1 -> 2x6xi32"),
    *("%r = broadcast_in_dim %a, dims = [1, 2] -> 2x2x3xi32", "%r = iota dim = 1 : 2x3xui8"),
    "%p = compare LT, %a, %b; %r = select %p, %a, %b",
]


def test_what_is_folded_is_what_xla_computes():
    """Integers that are computed and numbers that are moved, wrap-around and the ends of the type included."""
    values = [known(AB + body) for body in FOLDED]
    lines = "\n".join(re.sub("%([cpr])", rf"%\g<1>{k}", body) for k, body in enumerate(FOLDED))
    returned = ", ".join(f"%r{k}" for k in range(len(FOLDED)))
    found = Executable(module("", AB + lines, returned), "quick").run([])
    for body, value, expected in zip(FOLDED, values, found, strict=True):
        assert value is not None, body
        assert (value.dtype, value.shape) == (expected.dtype, expected.shape), body
        assert value.tobytes() == np.asarray(expected).tobytes(), body


OF_KIND = {
    "i8": (np.arange(-128, 128, dtype=np.int8), set(INTEGERS)),
    "ui8": (np.arange(256, dtype=np.uint8), INTEGERS.keys() - {names.ABS, names.SIGN}),
    "i1": (np.asarray([False, True]), {*COMBINING, names.NOT}),
}


@pytest.mark.parametrize("kind", OF_KIND)
def test_meanings_are_those_of_xla(kind):
    """On all pairs of bytes and of truth values, with a third operand for a clamp: division by 0 and -1 included."""
    values, known_names = OF_KIND[kind]
    first, second = (np.ravel(part) for part in np.meshgrid(values, values, indexing="ij"))
    given = [first, second, second.reshape(len(values), -1)[::-1].ravel()]
    lines, found = [], sorted(known_names)
    for k, name in enumerate(found):
        lines.append(f"%r{k} = {name} {', '.join(['%a', '%b', '%c'][: OPS[name].arity])}")
    arguments = ", ".join(f"%{a}: {first.size}x{kind}" for a in "abc")
    returned = ", ".join(f"%r{k}" for k in range(len(found)))
    results = Executable(module(arguments, "\n".join(lines), returned), "quick").run(given)
    with np.errstate(all="ignore"):
        for name, expected in zip(found, results, strict=True):
            actual = np.asarray(INTEGERS[name](*given[: OPS[name].arity])).astype(values.dtype)
            np.testing.assert_array_equal(actual, expected, name)


@pytest.mark.parametrize(
    ("body", "is_known"),
    [
        *((f"{AB}%z = constant 0 : 2x3xi32; %r = {op} %a, %z", False) for op in ("divide", "remainder")),  # left open
        *((f"{AB}%r = {op} %a, %a", True) for op in ("divide", "remainder")),
        ("%a = constant 1.5 : 3xf32; %r = add %a, %a", False),  # no float is added here, so nothing rounds
        ("%r = iota dim = 0 : 100000xi32", False),  # beyond the limit
        ("%r = iota dim = 0 : 1000xi32", True),
    ],
)
def test_what_is_not_folded(body, is_known):
    assert (known(body) is not None) == is_known


def test_floats_are_moved():
    """Where a float goes is known."""
    assert known("%a = constant 1.5 : 3xf32; %r = reshape %a -> 3x1xf32").tolist() == [[1.5], [1.5], [1.5]]


def test_a_splat_is_never_materialised():
    """A tensor of 2^40 equal integers is one of them with a shape, through arithmetic and reshapes."""
    value = known("%a = constant 3 : 1048576x1048576xi32; %b = add %a, %a; %r = reshape %b -> 1099511627776xi32")
    assert (value.shape, value.strides, int(value[0]), is_splat(value)) == ((1 << 40,), (0,), 6, True)


RULED = """%r = custom_call @solve(%a) {backend_config = "" RULE} -> 8xf32"""


@pytest.mark.parametrize(("attributes", "is_same"), [("", True), ("mhlo.num_partitions = 2 : i32", False)])
def test_a_sharding_rule_says_nothing_on_one_device(attributes, is_same):
    """A target without Shardy takes calls without: they are the same calls."""
    rule = ", sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=8}>"
    texts = [module("%a: 8xf32", RULED.replace("RULE", given)) for given in (rule, "")]
    if attributes:
        texts = [f"module attributes {{{attributes}}} {{\n{text}\n}}" for text in texts]
    first, second = numbers(*texts)
    assert (first == second) is is_same
