"""Constants by value: what is folded is what XLA computes, and a splat is never stored element by element."""

import numpy as np
import pytest
from two_programs import programs
from untyped_mlir import module

from hlo_lower.ops import names
from hlo_lower.ops.spec import COMBINING, OPS
from hlo_lower.verify.align.align import Side
from hlo_lower.verify.read.meanings import INTEGERS, is_splat
from hlo_lower.verify.read.numbering import Table
from hlo_lower.verify.run import Executable

AB = """%a = constant [[1, -2, 3], [2147483647, 5, -2147483648]] : 2x3xi32
%b = constant [[7, -2, 0], [1, 6, -1]] : 2x3xi32
"""


def known(body):
    """The folded value of %r."""
    [program] = programs(module("", body))
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


@pytest.mark.parametrize("body", FOLDED)
def test_what_is_folded_is_what_xla_computes(body):
    """Integers that are computed and numbers that are moved, wrap-around and the ends of the type included."""
    value = known(AB + body)
    assert value is not None
    [expected] = Executable(module("", AB + body), "quick").run([])
    assert (value.dtype, value.shape) == (expected.dtype, expected.shape)
    assert value.tobytes() == np.asarray(expected).tobytes()


OF_KIND = {"i8": set(INTEGERS), "ui8": INTEGERS.keys() - {names.ABS, names.SIGN}, "i1": {*COMBINING, names.NOT}}


@pytest.mark.few(9)
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, found in OF_KIND.items() for name in sorted(found)])
def test_meanings_are_those_of_xla(kind, name):
    """On all pairs of bytes and of truth values, with a third operand for a clamp: division by 0 and -1 included."""
    values = {"i8": np.arange(-128, 128), "ui8": np.arange(256), "i1": np.arange(2)}[kind]
    pairs = np.meshgrid(values, values, indexing="ij")
    dtype = {"i8": np.int8, "ui8": np.uint8, "i1": np.bool_}[kind]
    given = [np.ravel(part).astype(dtype) for part in (*pairs, pairs[1][::-1])][: OPS[name].arity]
    operands = [f"%a{k}" for k in range(len(given))]
    arguments = ", ".join(f"{a}: {given[0].size}x{kind}" for a in operands)
    [expected] = Executable(module(arguments, f"%r = {name} {', '.join(operands)}"), "quick").run(given)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.asarray(INTEGERS[name](*given)).astype(dtype), expected)


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
