"""Constants by value: what is folded is what XLA computes, and a splat is never stored element by element."""

import numpy as np
import pytest
from two_programs import main, programs

from hlo_lower.ops import names
from hlo_lower.ops.spec import COMBINING, OPS
from hlo_lower.verify.align.align import Side
from hlo_lower.verify.read.meanings import INTEGERS, is_splat
from hlo_lower.verify.read.numbering import Table
from hlo_lower.verify.run import Executable

A = "%a = stablehlo.constant dense<[[1, -2, 3], [2147483647, 5, -2147483648]]> : tensor<2x3xi32>\n"
B = "%b = stablehlo.constant dense<[[7, -2, 0], [1, 6, -1]]> : tensor<2x3xi32>\n"
T = "tensor<2x3xi32>"


def known(body: str, kind: str) -> np.ndarray | None:
    """The folded value of %r."""
    [program] = programs(main("", body, "%r", kind))
    table = Table()
    side = Side(program, program.entries["main"], 0, {}, table)
    return table.known.get(side.numbers[side.roots[0]])


CASES = {
    **{
        name: (f"%r = stablehlo.{name} %a, %b : {T}", T)
        for name in ("add", "subtract", "multiply", "minimum", "maximum")
    },
    **{name: (f"%r = stablehlo.{name} %a, %b : {T}", T) for name in ("and", "or", "xor")},
    "not": (f"%r = stablehlo.not %a : {T}", T),
    "clamp": (f"%r = stablehlo.clamp %b, %a, %b : {T}", T),
    "compare": (f"%r = stablehlo.compare LE, %a, %b : ({T}, {T}) -> tensor<2x3xi1>", "tensor<2x3xi1>"),
    "convert": (f"%r = stablehlo.convert %a : ({T}) -> tensor<2x3xi8>", "tensor<2x3xi8>"),
    "convert to f64": (f"%r = stablehlo.convert %a : ({T}) -> tensor<2x3xf64>", "tensor<2x3xf64>"),
    **{
        f"convert to {e}": (f"%r = stablehlo.convert %b : ({T}) -> tensor<2x3x{e}>", f"tensor<2x3x{e}>")
        for e in ("f16", "bf16", "f32")
    },
    "convert a splat": (
        "%c = stablehlo.constant dense<-127> : tensor<i32>\n%r = stablehlo.convert %c : (tensor<i32>) -> tensor<f32>",
        "tensor<f32>",
    ),
    "bits": (f"%r = stablehlo.bitcast_convert %b : ({T}) -> tensor<2x3xf32>", "tensor<2x3xf32>"),
    "bits of a splat": (
        "%c = stablehlo.constant dense<-8388608> : tensor<i32>\n"
        "%r = stablehlo.bitcast_convert %c : (tensor<i32>) -> tensor<f32>",
        "tensor<f32>",
    ),
    "transpose": (f"%r = stablehlo.transpose %a, dims = [1, 0] : ({T}) -> tensor<3x2xi32>", "tensor<3x2xi32>"),
    "reshape": (f"%r = stablehlo.reshape %a : ({T}) -> tensor<6xi32>", "tensor<6xi32>"),
    "reverse": (f"%r = stablehlo.reverse %a, dims = [1] : {T}", T),
    "slice": (f"%r = stablehlo.slice %a [0:2, 0:3:2] : ({T}) -> tensor<2x2xi32>", "tensor<2x2xi32>"),
    "concatenate": (f"%r = stablehlo.concatenate %a, %b, dim = 1 : ({T}, {T}) -> tensor<2x6xi32>", "tensor<2x6xi32>"),
    "broadcast": (
        f"%r = stablehlo.broadcast_in_dim %a, dims = [1, 2] : ({T}) -> tensor<2x2x3xi32>",
        "tensor<2x2x3xi32>",
    ),
    "iota": ("%r = stablehlo.iota dim = 1 : tensor<2x3xui8>", "tensor<2x3xui8>"),
    "select": (
        f"%p = stablehlo.compare LT, %a, %b : ({T}, {T}) -> tensor<2x3xi1>\n"
        f"%r = stablehlo.select %p, %a, %b : tensor<2x3xi1>, {T}",
        T,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_folded_is_what_xla_computes(name):
    """Integers that are computed and numbers that are moved, wrap-around and the ends of the type included."""
    body, kind = CASES[name]
    value = known(A + B + body, kind)
    assert value is not None
    [expected] = Executable(main("", A + B + body, "%r", kind), "quick").run([])
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
    made = f"tensor<{given[0].size}x{kind}>"
    arguments = ", ".join(f"%a{k}: {made}" for k in range(len(given)))
    line = f"%r = {name} {', '.join(f'%a{k}' for k in range(len(given)))} : {made}"
    [expected] = Executable(main(arguments, line, "%r", made), "quick").run(given)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.asarray(INTEGERS[name](*given)).astype(dtype), expected)


def test_division_by_zero_is_not_folded():
    """Its result is left open, so two programs that divide by 0 in two ways are not one."""
    zeros = "%z = stablehlo.constant dense<0> : tensor<2x3xi32>\n"
    for op in ("divide", "remainder"):
        assert known(A + zeros + f"%r = stablehlo.{op} %a, %z : {T}", T) is None
        assert known(A + f"%r = stablehlo.{op} %a, %a : {T}", T) is not None


def test_floats_are_not_computed_but_moved():
    """No float is added here, so nothing rounds; where it goes is known."""
    one = "%a = stablehlo.constant dense<1.5> : tensor<3xf32>\n"
    assert known(f"{one}%r = stablehlo.add %a, %a : tensor<3xf32>", "tensor<3xf32>") is None
    moved = known(f"{one}%r = stablehlo.reshape %a : (tensor<3xf32>) -> tensor<3x1xf32>", "tensor<3x1xf32>")
    assert moved is not None
    assert moved.tolist() == [[1.5], [1.5], [1.5]]


def test_a_splat_is_never_materialised():
    """A tensor of 2^40 equal integers is one of them with a shape, through arithmetic and reshapes."""
    large = "tensor<1048576x1048576xi32>"
    body = f"%a = stablehlo.constant dense<3> : {large}\n%b = stablehlo.add %a, %a : {large}\n"
    value = known(
        f"{body}%r = stablehlo.reshape %b : ({large}) -> tensor<1099511627776xi32>", "tensor<1099511627776xi32>"
    )
    assert value is not None
    assert (value.shape, value.strides, int(value[0]), is_splat(value)) == ((1 << 40,), (0,), 6, True)


def test_a_large_tensor_of_several_values_is_not_known():
    """An iota beyond the limit is not listed; within it is."""
    assert known("%r = stablehlo.iota dim = 0 : tensor<100000xi32>", "tensor<100000xi32>") is None
    assert known("%r = stablehlo.iota dim = 0 : tensor<1000xi32>", "tensor<1000xi32>") is not None
