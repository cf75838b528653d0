"""Numbers at which results turn: roundings, exact integers, divisions and tables that differ where few inputs lie."""

import itertools

import numpy as np
import pytest

from hlo_lower.verify import verify


def function(body, arguments, returned, kinds):
    """A module of one public function."""
    return f"func.func public @main({arguments}) -> ({kinds}) {{\n{body}\nreturn {returned} : {kinds}\n}}\n"


def converted(*names, kind="64x"):
    """A function that converts numbers from one type to the next ones."""
    lines = [
        f"%{k + 1} = stablehlo.convert %{k} : (tensor<{kind}{a}>) -> tensor<{kind}{b}>"
        for k, (a, b) in enumerate(itertools.pairwise(names))
    ]
    body = "\n".join(lines).replace("%0 ", "%x ")
    return function(body, f"%x: tensor<{kind}{names[0]}>", f"%{len(lines)}", f"tensor<{kind}{names[-1]}>")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "names",
    [
        *(("f64", "f32", "bf16"), ("f64", "f32", "f16"), ("f32", "f16", "f8E5M2"), ("f32", "bf16", "f8E4M3FN")),
        *(("i64", "f64", "f32"), ("i32", "f32", "bf16"), ("ui64", "f64", "bf16"), ("i16", "f16", "f8E5M2")),
    ],
)
def test_a_number_that_is_rounded_twice_is_not_one_rounded_once(names):
    """The middle of two numbers of the narrow type, and one that only the widest tells from it."""
    once, twice = converted(names[0], names[-1]), converted(*names)
    for first, second in ((once, twice), (twice, once)):
        assert verify(first, second, level="regions").differs


@pytest.mark.parametrize("names", [("i16", "f32", "bf16"), ("f16", "f32", "f64", "bf16"), ("i32", "f64", "bf16")])
def test_what_is_exact_in_between_is_rounded_once(names):
    """XLA itself rounds an i32 and an f64 twice on their way to bf16."""
    assert verify(converted(names[0], names[-1]), converted(*names), level="regions").ok


@pytest.mark.parametrize(("format_", "narrow"), [("e5m10", "f16"), ("e5m2", "f8E5M2"), ("e4m3", "f8E4M3")])
def test_a_reduced_precision_is_not_a_narrower_type(format_, narrow):
    """It has no subnormal numbers."""
    kind = "tensor<16xf32>"
    first = function(f"%r = stablehlo.reduce_precision %x, format = {format_} : {kind}", f"%x: {kind}", "%r", kind)
    second = converted("f32", narrow, "f32", kind="16x")
    assert verify(first, second, level="regions").differs
    assert verify(second, first, level="regions").differs


def product_of_bytes(terms, through=""):
    """A product of matrices of i8, computed in a float type or not."""
    left, right = f"2x{terms}x", f"{terms}x2x"
    lines = [f"%u = stablehlo.convert %x : (tensor<{left}i8>) -> tensor<{left}{through or 'i32'}>",
             f"%v = stablehlo.convert %y : (tensor<{right}i8>) -> tensor<{right}{through or 'i32'}>",
             f"%f = stablehlo.dot_general %u, %v, contracting_dims = [1] x [0] : (tensor<{left}{through or 'i32'}>, "
             f"tensor<{right}{through or 'i32'}>) -> tensor<2x2x{through or 'i32'}>"]  # fmt: skip
    if through:
        lines.append(f"%r = stablehlo.convert %f : (tensor<2x2x{through}>) -> tensor<2x2xi32>")
    arguments = f"%x: tensor<{left}i8>, %y: tensor<{right}i8>"
    return function("\n".join(lines), arguments, "%r" if through else "%f", "tensor<2x2xi32>")


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("terms", "through", "is_exact"),
    [(64, "f32", True), (1024, "f32", True), (1040, "f32", False), (2048, "f32", False), (64, "f64", True),
     (9, "bf16", False)],
)  # fmt: skip
def test_integers_in_floats_are_exact_as_far_as_the_mantissa_reaches(terms, through, is_exact):
    """2^24 is reached by 1024 products of -128; what is beyond is right in some runs, and in none for sure."""
    first, second = product_of_bytes(terms), product_of_bytes(terms, through)
    assert verify(first, second, level="regions").ok == is_exact
    assert verify(second, first, level="regions").ok == is_exact


def quotient(divisor, bits, magic, shift):
    """A division of unsigned integers by a constant, and a multiplication and a shift."""
    kind, wide = f"tensor<16xui{bits}>", f"tensor<16xui{2 * bits}>"
    first = f"%d = stablehlo.constant dense<{divisor}> : {kind}\n%r = stablehlo.divide %x, %d : {kind}"
    second = f"""%a = stablehlo.convert %x : ({kind}) -> {wide}
%m = stablehlo.constant dense<{magic}> : {wide}
%s = stablehlo.constant dense<{shift}> : {wide}
%p = stablehlo.multiply %a, %m : {wide}
%q = stablehlo.shift_right_logical %p, %s : {wide}
%r = stablehlo.convert %q : ({wide}) -> {kind}"""
    return [function(body, f"%x: {kind}", "%r", kind) for body in (first, second)]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("divisor", "bits", "shift"), [(1000003, 32, 40), (643, 32, 40), (7, 32, 34), (10, 16, 18), (1000, 16, 24)]
)
@pytest.mark.parametrize("is_above", [True, False])
def test_a_division_by_multiplication_and_a_shift_is_wrong_at_large_multiples(divisor, bits, shift, is_above):
    """The number is some units too large or too small, or has too few bits."""
    first, second = quotient(divisor, bits, (1 << shift) // divisor + is_above, shift)
    assert verify(first, second, level="regions").differs
    assert verify(second, first, level="regions").differs


def test_a_multiplication_that_is_exact_is_a_division():
    """641 times the number is 2^40 + 2^8, the most by which it may be beyond."""
    assert verify(*quotient(641, 32, (1 << 40) // 641 + 1, 40), level="regions").ok


def table(rows, columns, changed=(), reading="row"):
    """A function that reads a row of a large table, in which some elements are others."""
    numbers = (np.arange(rows * columns) % 251 + 1).astype(np.float32).reshape(rows, columns)
    for at in changed:
        numbers[at] += 0.25
    kind, made = f"tensor<{rows}x{columns}xf32>", f"tensor<1x{columns}xf32>"
    lines = [f'%t = stablehlo.constant dense<"0x{numbers.tobytes().hex()}"> : {kind}']
    if reading == "row":
        lines.append("%z = stablehlo.constant dense<0> : tensor<i32>")
        lines.append(f"%r = stablehlo.dynamic_slice %t, %p, %z, sizes = [1, {columns}] : "
                     f"({kind}, tensor<i32>, tensor<i32>) -> {made}")  # fmt: skip
        return function("\n".join(lines), "%p: tensor<i32>", "%r", made)
    if reading == "element":
        lines.append("%r = stablehlo.dynamic_slice %t, %p, %q, sizes = [1, 1] : "
                     f"({kind}, tensor<i32>, tensor<i32>) -> tensor<1x1xf32>")  # fmt: skip
        return function("\n".join(lines), "%p: tensor<i32>, %q: tensor<i32>", "%r", "tensor<1x1xf32>")
    if reading == "hidden":  # only a loop's worth of hashing tells which row is read
        lines.append("%k = stablehlo.constant dense<48271> : tensor<i32>")
        lines.append("%h = stablehlo.multiply %p, %k : tensor<i32>\n%g = stablehlo.xor %h, %p : tensor<i32>")
        lines.append("%z = stablehlo.constant dense<0> : tensor<i32>")
        lines.append(f"%r = stablehlo.dynamic_slice %t, %g, %z, sizes = [1, {columns}] : "
                     f"({kind}, tensor<i32>, tensor<i32>) -> {made}")  # fmt: skip
        return function("\n".join(lines), "%p: tensor<i32>", "%r", made)
    sizes = f"array<i64: 1, {columns}>"
    numbers = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
    made = f"tensor<3x{columns}xf32>"
    lines.append(f'%r = "stablehlo.gather"(%t, %p) <{{dimension_numbers = #stablehlo.gather<{numbers}>, '
                 f"slice_sizes = {sizes}}}> : ({kind}, tensor<3x1xi32>) -> {made}")  # fmt: skip
    return function("\n".join(lines), "%p: tensor<3x1xi32>", "%r", made)


@pytest.mark.few(3)
@pytest.mark.parametrize("reading", ["row", "rows", "element"])
@pytest.mark.parametrize("changed", [[(1000, 2)], [(1999, 0), (77, 3)], [(k, 1) for k in range(300, 400)]])
def test_a_table_that_differs_is_read_where_it_does(reading, changed):
    """Rows in the middle of a large table, read by one start, by vectors of them, or by two starts."""
    first, second = table(2048, 4, reading=reading), table(2048, 4, changed, reading)
    assert verify(first, second, level="regions").differs
    assert verify(second, first, level="regions").differs


def test_a_table_whose_difference_no_run_reads_is_only_run():
    """Which row is read is computed from the input in a way that is not undone."""
    first, second = (table(2048, 4, changed, "hidden") for changed in ((), [(1000, 2)]))
    assert not verify(first, second, level="regions").ok
