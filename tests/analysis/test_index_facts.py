"""Index facts through selects and calls, and that no chain of operations ever gives a value out of its interval."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hlo_lower.facts.ranges.index_facts import IndexAnalysis
from hlo_lower.facts.values.site import Site
from hlo_lower.ir.reader import read

I32 = (-(2**31), 2**31 - 1)
T = "tensor<4xi32>"


def hull(lines, functions="", arguments=f"%x: {T}", result=f"%r : {T}"):
    """The hull of what a function with these lines returns."""
    graph = read(
        f"func.func public @main({arguments}) -> {result.split(' : ')[1]} {{\n{lines}\nreturn {result}\n}}\n{functions}"
    )
    return IndexAnalysis(graph).of(Site(graph.main.body.terminator.operand(0))).hull()


def clamped(low, high):
    """%i = %x clamped to [low, high], and the constants 0 and 10."""
    return f"""%lo = stablehlo.constant dense<{low}> : {T}
%hi = stablehlo.constant dense<{high}> : {T}
%i = stablehlo.clamp %lo, %x, %hi : {T}
%zero = stablehlo.constant dense<0> : {T}
%ten = stablehlo.constant dense<10> : {T}
%wrapped = stablehlo.add %i, %ten : {T}
"""


def select(direction="LT", bound="%zero", on_true="%wrapped", on_false="%i"):
    """%r = select(%i < 0, %i + 10, %i) unless told otherwise."""
    return f"""%p = stablehlo.compare {direction}, %i, {bound} : ({T}, {T}) -> tensor<4xi1>
%r = stablehlo.select %p, {on_true}, {on_false} : tensor<4xi1>, {T}"""


@pytest.mark.parametrize(
    ("low", "high", "choice", "expected"),
    [
        (-10, 9, select(), (0, 9)),
        (-10, 9, select("GE", on_true="%i", on_false="%wrapped"), (0, 9)),
        (-10, 9, select("LE"), (0, 10)),
        (-11, 9, select(), (-1, 9)),
        (-10, 11, select(), (0, 11)),
        (0, 9, select(), (0, 9)),
        (-10, -1, select(), (0, 9)),
        (-10, 9, select("GT"), (-10, 19)),
        (-10, 9, select(on_true="%i", on_false="%wrapped"), (-10, 19)),
        (-10, 9, select("EQ"), (-10, 10)),
    ],
)
def test_negative_index_normalisation(low, high, choice, expected):
    """select(i < 0, i + D, i) with i in [-D, D-1] is in [0, D-1]; other bounds and directions are not."""
    assert hull(clamped(low, high) + choice) == expected


def test_normalisation_of_anything_is_not_bounded():
    """An index of which nothing is known may be anything after normalisation but for what i < 0 says."""
    assert hull(clamped(*I32) + select()) == (I32[0] + 10, I32[1])


def test_a_branch_that_moves_elements_is_not_refined():
    """reverse(i) under i < 0 may be any i: the predicate speaks of other elements."""
    lines = clamped(-10, 9) + f"%back = stablehlo.reverse %i, dims = [0] : {T}\n"
    assert hull(lines + select(on_true="%back", on_false="%ten")) == (-10, 10)
    assert hull(clamped(-10, 9) + select(on_true="%i", on_false="%ten")) == (-10, 10)
    assert hull(lines + select("GE", on_true="%back", on_false="%ten")) == (-10, 10)
    assert hull(clamped(-10, 9) + select("GE", on_true="%i", on_false="%ten")) == (0, 10)


def test_two_operations_behind_the_predicate_are_not_refined():
    """Only the subject and one op on it are looked at under the predicate."""
    lines = clamped(-10, 9) + f"%more = stablehlo.add %wrapped, %ten : {T}\n"
    assert hull(lines + select(on_true="%more")) == (0, 29)


CLAMP = f"""func.func private @f(%x: {T}) -> {T} {{
  %lo = stablehlo.constant dense<0> : {T}
  %hi = stablehlo.constant dense<7> : {T}
  %r = stablehlo.clamp %lo, %x, %hi : {T}
  return %r : {T}
}}"""
SAME = f"func.func private @f(%x: {T}) -> {T} {{\n  return %x : {T}\n}}"


def test_a_fact_comes_out_of_a_call():
    """What a callee clamps is clamped at the call."""
    assert hull(f"%r = call @f(%x) : ({T}) -> {T}", CLAMP) == (0, 7)


def test_a_fact_goes_into_a_call_and_comes_back():
    """A call is looked at with its own arguments, whatever other calls pass."""
    lines = clamped(3, 5) + f"%r = call @f(%i) : ({T}) -> {T}\n%other = call @f(%x) : ({T}) -> {T}"
    assert hull(lines, SAME) == (3, 5)
    assert hull(lines.replace("@f(%i)", "@f(%x)").replace("%other = call @f(%x)", "%other = call @f(%i)"), SAME) == I32


def inside(calls, functions="", visibility="private"):
    """The hull of the argument of @f, looked at from inside of @f."""
    graph = read(
        f"func.func public @main(%x: {T}) -> {T} {{\n{clamped(3, 5)}{calls}\nreturn %x : {T}\n}}\n"
        + SAME.replace("private", visibility)
        + functions
    )
    return IndexAnalysis(graph).of(Site(graph.functions["f"].body.argument(0))).hull()


def test_a_fact_holds_inside_of_a_function_only_if_it_holds_at_every_call():
    """One call site that passes more makes the argument more (trap 40)."""
    one, more = f"%a = call @f(%i) : ({T}) -> {T}\n", f"%b = call @f(%wrapped) : ({T}) -> {T}\n"
    assert inside(one) == (3, 5)
    assert inside(one + more) == (3, 15)
    assert inside(one + f"%c = call @f(%x) : ({T}) -> {T}\n") == I32


def test_a_function_that_others_may_call_is_not_bounded():
    """A public function, one that is never called and one that a composite names may be given anything."""
    one = f"%a = call @f(%i) : ({T}) -> {T}\n"
    composite = f'%b = stablehlo.composite "my.f" %x {{decomposition = @f}} : ({T}) -> {T}\n'
    assert inside(one, visibility="public") == I32
    assert inside("") == I32
    assert inside(one + composite) == I32


def test_a_value_that_a_loop_does_not_change_is_what_it_was_before():
    """A body that returns its argument as it is leaves the value from before the loop; what loops change is in
    test_carried.py."""
    lines = """%n = stablehlo.constant dense<0> : tensor<i32>
%r = stablehlo.while(%i = %n) : tensor<i32>
cond {
  %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
} do {
  stablehlo.return %i : tensor<i32>
}"""
    assert hull(lines, result="%r : tensor<i32>") == (0, 0)


def test_an_arithmetic_shift_of_unsigned_integers_repeats_the_highest_bit():
    """200 as ui8 shifted right by one is 228, as XLA and the interpreter compute it, not 100."""
    lines = """%lo = stablehlo.constant dense<200> : tensor<ui8>
%hi = stablehlo.constant dense<250> : tensor<ui8>
%one = stablehlo.constant dense<1> : tensor<ui8>
%c = stablehlo.clamp %lo, %x, %hi : tensor<ui8>
%r = stablehlo.shift_right_arithmetic %c, %one : tensor<ui8>"""
    low, high = hull(lines, arguments="%x: tensor<ui8>", result="%r : tensor<ui8>")
    assert low <= 228 <= high


def test_a_sort_without_a_dimension_sorts_along_the_last():
    """An absent dimension is the last one."""
    lines = (
        clamped(3, 5)
        + f"""%r = "stablehlo.sort"(%i) ({{
^bb0(%a: tensor<i32>, %b: tensor<i32>):
  %p = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
}}) : ({T}) -> {T}"""
    )
    assert hull(lines) == (3, 5)


# --- soundness ---

OPS = ("add", "subtract", "multiply", "minimum", "maximum", "remainder", "and", "or", "select", "negate", "clamp",
       "reverse", "divide", "sign", "abs", "shift_right_arithmetic", "shift_right_logical", "sort", "pad", "gather",
       "sum", "largest")  # fmt: skip
UNARY = ("negate", "sign", "abs")
# StableHLO has no sign and no abs of unsigned integers; of their arithmetic shift there is a test of its own.
UNSIGNED = {"sign": "negate", "abs": "negate", "shift_right_arithmetic": "shift_right_logical"}
NUMPY = {"i8": np.int8, "i32": np.int32, "ui8": np.uint8}


def remainder(a, b):
    """The remainder with the dividend's sign, in Python integers."""
    return np.array([int(np.sign(x)) * (abs(x) % abs(y)) for x, y in zip(a.tolist(), b.tolist(), strict=True)], object)


def quotient(a, b):
    """The quotient rounded towards zero, in Python integers."""
    return np.array([int(np.sign(x) * np.sign(y)) * (abs(x) // abs(y)) for x, y in zip(a, b, strict=True)], object)


def shifted(a, by, dtype, op):
    """Bits moved right, with the sign's bit behind them if arithmetic; beyond the width all of them are."""
    info = np.iinfo(dtype)
    signed = np.array([(x + 2 ** (info.bits - 1)) % 2**info.bits - 2 ** (info.bits - 1) for x in a], object)
    bits = signed if op == "shift_right_arithmetic" else np.array([x % 2**info.bits for x in a], object)
    return np.array([x >> min(y % 2**info.bits, info.bits) for x, y in zip(bits, by, strict=True)], object)


def apply(op, values, dtype):
    """One op on arrays of Python integers, wrapped into the type."""
    a, b, c = values
    info = np.iinfo(dtype)
    exact = {
        "add": lambda: a + b,
        "subtract": lambda: a - b,
        "multiply": lambda: a * b,
        "minimum": lambda: np.minimum(a, b),
        "maximum": lambda: np.maximum(a, b),
        "remainder": lambda: remainder(a, b),
        "and": lambda: a & b,
        "or": lambda: a | b,
        "select": lambda: np.where(a < b, c, b),
        "negate": lambda: -a,
        "clamp": lambda: np.minimum(np.maximum(b, a), c),
        "reverse": lambda: a[::-1],
        "divide": lambda: quotient(a, b),
        "sign": lambda: np.sign(a),
        "abs": lambda: abs(a),
        "shift_right_arithmetic": lambda: shifted(a, b, dtype, op),
        "shift_right_logical": lambda: shifted(a, b, dtype, op),
        "sort": lambda: np.sort(a),
        "pad": lambda: np.concatenate([b[:1], a[:3]]),
        "gather": lambda: a[[min(max(x, 0), 3) for x in b]],
        "sum": lambda: np.full(4, sum(a), object),
        "largest": lambda: np.full(4, max(*a, 0), object),
    }[op]()
    return (exact - info.min) % (info.max - info.min + 1) + info.min


FOLD = """%z{n} = stablehlo.constant dense<0> : tensor<{e}>
%f{n} = stablehlo.reduce({x} init: %z{n}) across dimensions = [0] : ({t}, tensor<{e}>) -> tensor<{e}>
reducer(%a: tensor<{e}>, %b: tensor<{e}>) {{
  %s = stablehlo.OP %a, %b : tensor<{e}>
  stablehlo.return %s : tensor<{e}>
}}
{r} = stablehlo.broadcast_in_dim %f{n}, dims = [] : (tensor<{e}>) -> {t}"""
MOVING = {
    "sort": """{r} = "stablehlo.sort"({x}) <{{dimension = 0 : i64}}> ({{
^bb0(%a: tensor<{e}>, %b: tensor<{e}>):
  %p = stablehlo.compare LT, %a, %b : (tensor<{e}>, tensor<{e}>) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
}}) : ({t}) -> {t}""",
    "pad": """%h{n} = stablehlo.slice {y} [0:1] : ({t}) -> tensor<1x{e}>
%k{n} = stablehlo.reshape %h{n} : (tensor<1x{e}>) -> tensor<{e}>
{r} = stablehlo.pad {x}, %k{n}, low = [1], high = [-1], interior = [0] : ({t}, tensor<{e}>) -> {t}""",
    "gather": """%g{n} = stablehlo.reshape {y} : ({t}) -> tensor<4x1x{e}>
{r} = "stablehlo.gather"({x}, %g{n}) <{{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0],
  start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}}> : ({t}, tensor<4x1x{e}>) -> {t}""",
    "sum": FOLD.replace("OP", "add"),
    "largest": FOLD.replace("OP", "maximum"),
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
        steps.append((draw(st.sampled_from(OPS)), draw(position), draw(position), draw(position)))
    return element, values, steps


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(chains())
def test_a_computed_value_lies_in_its_interval(chain):
    """For any chain of ops on i8, ui8 and i32, wrap-around included, each computed value lies in its interval."""
    element, given_values, steps = chain
    t = f"tensor<4x{element}>"
    lines = [f"%v{k} = stablehlo.constant dense<{given_values[k]}> : {t}" for k in (2, 3)]
    values = [np.array(v, object) for v in given_values]
    for op, a, b, c in steps:
        if op in ("remainder", "divide") and 0 in values[b].tolist():
            op = "add"
        if element == "ui8":
            op = UNSIGNED.get(op, op)
        r, x, y, z = f"%v{len(values)}", f"%v{a}", f"%v{b}", f"%v{c}"
        values.append(apply(op, (values[a], values[b], values[c]), NUMPY[element]))
        if op == "select":
            lines.append(f"%p{r[2:]} = stablehlo.compare LT, {x}, {y} : ({t}, {t}) -> tensor<4xi1>")
            lines.append(f"{r} = stablehlo.select %p{r[2:]}, {z}, {y} : tensor<4xi1>, {t}")
        elif op == "reverse":
            lines.append(f"{r} = stablehlo.reverse {x}, dims = [0] : {t}")
        elif op in MOVING:
            lines.append(MOVING[op].format(r=r, x=x, y=y, n=r[2:], e=element, t=t))
        else:
            operands = {**dict.fromkeys(UNARY, x), "clamp": f"{x}, {y}, {z}"}.get(op, f"{x}, {y}")
            lines.append(f"{r} = stablehlo.{op} {operands} : {t}")
    names = [f"%v{k}" for k in range(len(values))]
    types = ", ".join([t] * len(names))
    text = f"func.func public @main(%v0: {t}, %v1: {t}) -> ({types}) {{\n"
    graph = read(text + "\n".join(lines) + f"\nreturn {', '.join(names)} : {types}\n}}\n")
    analysis = IndexAnalysis(graph)
    for value, concrete in zip(graph.main.body.terminator.operands, values, strict=True):
        lo, hi = analysis.of(Site(value)).full()
        assert np.all((lo <= concrete) & (concrete <= hi)), (value.raw, concrete, lo, hi)
