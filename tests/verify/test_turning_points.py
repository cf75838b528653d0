"""Numbers at which results turn: roundings, exact integers, divisions and tables that differ where few inputs lie."""

import numpy as np
import pytest
from untyped_mlir import module

from hlo_lower.verify import verify


def both_differ(first, second):
    """Whether two modules are told to differ, whichever comes first."""
    return all(verify(*texts, level="regions").differs for texts in ((first, second), (second, first)))


def converted(*names, size=64):
    """A function that converts numbers from one type to the next ones."""
    lines = [f"%{k + 1} = convert %{k} -> {size}x{name}" for k, name in enumerate(names[1:])]
    return module(f"%x: {size}x{names[0]}", "\n".join(lines).replace("%0 ", "%x "), f"%{len(lines)}")


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
    assert both_differ(converted(names[0], names[-1]), converted(*names))


@pytest.mark.parametrize("names", [("i16", "f32", "bf16"), ("f16", "f32", "f64", "bf16"), ("i32", "f64", "bf16")])
def test_what_is_exact_in_between_is_rounded_once(names):
    """XLA itself rounds an i32 and an f64 twice on their way to bf16."""
    assert verify(converted(names[0], names[-1]), converted(*names), level="regions").ok


@pytest.mark.parametrize(("format_", "narrow"), [("e5m10", "f16"), ("e5m2", "f8E5M2"), ("e4m3", "f8E4M3")])
def test_a_reduced_precision_is_not_a_narrower_type(format_, narrow):
    """It has no subnormal numbers."""
    reduced = module("%x: 16xf32", f"%r = reduce_precision %x, format = {format_}")
    assert both_differ(reduced, converted("f32", narrow, "f32", size=16))


def product_of_bytes(terms, through):
    """A product of matrices of i8, computed in a type."""
    body = f"""%u = convert %x -> 2x{terms}x{through}; %v = convert %y -> {terms}x2x{through}
    %f = dot_general %u, %v, contracting_dims = [1] x [0]; %r = convert %f -> 2x2xi32"""
    returned = "%f" if through == "i32" else "%r"
    return module(f"%x: 2x{terms}xi8, %y: {terms}x2xi8", body, returned)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("terms", "through", "is_exact"),
    [(64, "f32", True), (1024, "f32", True), (1040, "f32", False), (2048, "f32", False), (64, "f64", True),
     (9, "bf16", False)],
)  # fmt: skip
def test_integers_in_floats_are_exact_as_far_as_the_mantissa_reaches(terms, through, is_exact):
    """2^24 is reached by 1024 products of -128; what is beyond is right in some runs, and in none for sure."""
    first, second = product_of_bytes(terms, "i32"), product_of_bytes(terms, through)
    assert verify(first, second, level="regions").ok == is_exact
    assert verify(second, first, level="regions").ok == is_exact


def quotient(divisor, bits, magic, shift):
    """A division of unsigned integers by a constant, and a multiplication and a shift."""
    kind, wide = f"16xui{bits}", f"16xui{2 * bits}"
    first = f"%d = constant {divisor} : {kind}; %r = divide %x, %d"
    second = f"""%a = convert %x -> {wide}; %m = constant {magic} : {wide}; %s = constant {shift} : {wide}
    %p = multiply %a, %m; %q = shift_right_logical %p, %s; %r = convert %q -> {kind}"""
    return [module(f"%x: {kind}", body) for body in (first, second)]


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("divisor", "bits", "shift"), [(1000003, 32, 40), (643, 32, 40), (7, 32, 34), (10, 16, 18), (1000, 16, 24)]
)
@pytest.mark.parametrize("is_above", [True, False])
def test_a_division_by_multiplication_and_a_shift_is_wrong_at_large_multiples(divisor, bits, shift, is_above):
    """The number is some units too large or too small, or has too few bits."""
    assert both_differ(*quotient(divisor, bits, (1 << shift) // divisor + is_above, shift))


def test_a_multiplication_that_is_exact_is_a_division():
    """641 times the number is 2^40 + 2^8, the most by which it may be beyond."""
    assert verify(*quotient(641, 32, (1 << 40) // 641 + 1, 40), level="regions").ok


READING = {
    "row": ("%p: i32", "%z = constant 0 : i32; %r = dynamic_slice %t, %p, %z, sizes = [1, 4]"),
    "rows": (
        "%p: 3x1xi32",
        """%r = gather(%t, %p) <dimension_numbers = #stablehlo.gather<offset_dims = [1],
        collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
        slice_sizes = array<i64: 1, 4>> -> 3x4xf32""",
    ),
    "element": ("%p: i32, %q: i32", "%r = dynamic_slice %t, %p, %q, sizes = [1, 1]"),
    "hidden": (  # which row is read is computed from the input in a way that is not undone
        "%p: i32",
        """%k = constant 48271 : i32; %h = multiply %p, %k; %g = xor %h, %p; %z = constant 0 : i32
        %r = dynamic_slice %t, %g, %z, sizes = [1, 4]""",
    ),
}


def table(reading, changed=()):
    """A function that reads a row of a large table, in which some elements are others."""
    numbers = (np.arange(2048 * 4) % 251 + 1).astype(np.float32).reshape(2048, 4)
    for at in changed:
        numbers[at] += 0.25
    arguments, read = READING[reading]
    return module(arguments, f'%t = constant "0x{numbers.tobytes().hex()}" : 2048x4xf32\n{read}')


@pytest.mark.few(3)
@pytest.mark.parametrize("reading", ["row", "rows", "element"])
@pytest.mark.parametrize("changed", [[(1000, 2)], [(1999, 0), (77, 3)], [(k, 1) for k in range(300, 400)]])
def test_a_table_that_differs_is_read_where_it_does(reading, changed):
    """Rows in the middle of a large table, read by one start, by vectors of them, or by two starts."""
    assert both_differ(table(reading), table(reading, changed))


def test_a_table_whose_difference_no_run_reads_is_only_run():
    """Which row is read is computed from the input in a way that is not undone."""
    assert not verify(table("hidden"), table("hidden", [(1000, 2)]), level="regions").ok
