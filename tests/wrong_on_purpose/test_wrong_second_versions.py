"""Second versions that nobody lowered, wrong in one way each, as tools that write modules go wrong.

`pytest -k last_row_of_many` runs one of them. Verification has nothing but the two texts.
"""

from dataclasses import dataclass

import jax
import numpy as np
import pytest
from jax import lax
from jax import numpy as jnp
from untyped_mlir import function, module

from hlo_lower.verify import Assumed, Effort, verify
from hlo_lower.verify.module_runs import verify_module

F8, I8, L8, B8, INT, F = ("float32", 8), ("int32", 8), ("int64", 8), ("uint8", 8), ("int32",), ("float32",)


@dataclass(frozen=True)
class Pair:
    """Two versions of a module, and whether the second one is wrong beside what it computes."""

    before: str
    after: str
    is_interface: bool = False


PAIRS = {}


def written(function, *types):
    """The module of a function of arrays: (element type, sizes)."""
    with jax.enable_x64(True):
        return jax.jit(function, keep_unused=True).lower(*(jax.ShapeDtypeStruct(t[1:], t[0]) for t in types)).as_text()


def pair(name, before, after, *types):
    """Write a pair of functions down."""
    PAIRS[name] = Pair(written(before, *types), written(after, *types))


def behind(name, mistake, kind=F8):
    """Write down a difference, and that with a mistake written behind."""
    pair(name, lambda a, b: a - b, lambda a, b: mistake(a - b), kind, kind)


def where(condition, yes, no):
    """A choice between numbers, of which one may be a Python number."""
    like = no if hasattr(no, "shape") else yes
    yes, no = (v if hasattr(v, "shape") else lax.full_like(like, v) for v in (yes, no))
    return lax.select(condition, yes, no)


POINT = lax.ScatterDimensionNumbers((), (0,), (0,))


def put(o, i, u, scatter=lax.scatter, numbers=POINT):
    """Updates written to rows; those outside are dropped."""
    return scatter(o, i, u, numbers, mode="drop")


def index_wrong(name, rows, change, index="int32"):
    """Write down a module that writes a number to a row, and one that changes the index before."""
    pair(name, put, lambda o, i, u: put(o, change(i), u), ("float32", rows), (index, 1), F)


def through(kind, back="int32"):
    """Converted to a type and back."""
    return lambda i: lax.convert_element_type(lax.convert_element_type(i, kind), back)


index_wrong("one_row_of_eight", 8, lambda i: where(i == 5, i + 1, i))  # row 5 is written to row 6
index_wrong("one_row_of_many", 100_000, lambda i: where(i == 54_321, i + 1, i))
index_wrong("last_row_of_eight", 8, lambda i: lax.min(i, lax.full_like(i, 6)))  # the last row is never written
index_wrong("last_row_of_many", 100_000, lambda i: lax.min(i, lax.full_like(i, 99_998)))
index_wrong("index_through_i16", 100_000, through("int16"))  # rows from 32,768 on
index_wrong("index_through_bf16", 5_000, through(jnp.bfloat16))  # rows from 257 on, not all
index_wrong("index_above_2_31", 8, through("int32", "int64"), "int64")  # an index of 2^32 + k is row k
index_wrong("index_clamped", 8, lambda i: lax.clamp(np.int32(0), i, np.int32(7)))  # to the ends
index_wrong("far_index_wraps", 8, lambda i: i & 131071)  # modulo 2^17

POINTS, PLACES = ("int32", 6), ("int32", 6, 1)


def added(o, i, u):
    """Updates added to rows."""
    return put(o, i, u, lax.scatter_add)


def late_lost(count):
    """Of the updates of one row those behind the first so many are lost."""

    def function(o, i, u):
        flat = lax.reshape(i, (6,))
        same = lax.broadcast_in_dim(flat, (6, 6), (0,)) == lax.broadcast_in_dim(flat, (6, 6), (1,))
        before = lax.broadcasted_iota("int32", (6, 6), 0) > lax.broadcasted_iota("int32", (6, 6), 1)
        earlier = lax.reduce(lax.convert_element_type(same & before, "int32"), np.int32(0), lax.add, (1,))
        return added(o, i, where(earlier >= count, 0, u))

    return function


def at_flat_place(o, i, u):
    """By row * 4 + column alone: a column outside is one of a neighbouring row."""
    return lax.reshape(put(lax.reshape(o, (32,)), i[0:1] * 4 + i[1:2], u), (8, 4))


def reversed_writes(o, i, u):
    """Of two updates of one row the first one stays."""
    return put(o, lax.rev(i, (0,)), lax.rev(u, (0,)))


def without_last(u):
    """The last update is that of the one before."""
    return lax.concatenate([lax.slice(u, (0,), (5,)), lax.slice(u, (4,), (5,))], 0)


pair("third_duplicate", added, late_lost(2), I8, PLACES, POINTS)
pair("fifth_duplicate", added, late_lost(4), I8, PLACES, POINTS)
pair("first_writer_wins", put, reversed_writes, I8, PLACES, POINTS)
pair("last_update_lost", put, lambda o, i, u: put(o, i, without_last(u)), F8, PLACES, ("float32", 6))
AT_PAIR = lax.ScatterDimensionNumbers((), (0, 1), (0, 1))
OF_PAIR = ("float32", 8, 4), ("int32", 2), F
pair("column_leaks_into_the_next_row", lambda o, i, u: put(o, i, u, numbers=AT_PAIR), at_flat_place, *OF_PAIR)


def sliced(start):
    """Three elements from a start."""
    return lambda o, i: lax.dynamic_slice(o, (start(i),), (3,), allow_negative_indices=False)


pair("negative_start_wraps", sliced(lambda i: i), sliced(lambda i: where(i < 0, i + 8, i)), F8, INT)


def branches(last):
    """A choice between three ops."""
    return lambda k, a, b: lax.switch(k, [lax.add, lax.sub, last], a, b)


def rare(number, difference):
    """A branch that is taken for one number."""
    return module(
        "%k: i32, %a: 8xf32, %b: 8xf32",
        f"""%n = constant {number} : i32; %is = compare EQ, %k, %n
        %r = if(%is) {{%x = subtract {difference}; return %x}} {{%x = add %a, %b; return %x}}""",
    )


def less(compare):
    """A choice by order."""
    return lambda a, b: lax.select(compare(a, b), -a, b)


RARE = rare(123456, "%a, %b")
pair("last_branch", branches(lax.max), branches(lax.min), INT, F8, F8)
PAIRS["rare_branch"] = Pair(RARE, rare(123456, "%b, %a"))
PAIRS["branch_for_another_number"] = Pair(RARE, rare(123457, "%a, %b"))
pair("selected_rarely", lax.neg, lambda a: where(a > 1e6, 1e6, -a), F8)
pair("ties_of_floats", less(lax.lt), less(lax.le), F8, F8)
pair("ties_of_integers", less(lax.lt), less(lax.le), I8, I8)

LARGER, SMALLER = (lambda a, b, last=last: (a + b, a * b, last(a, b)) for last in (lax.max, lax.min))
pair("one_of_three_results", LARGER, SMALLER, F8, F8)
pair("results_exchanged", lambda a, b: (a + b, a * b), lambda a, b: (a * b, a + b), F8, F8)


def step(k, x, y):
    """An iteration."""
    return x - y, lax.max(x, y)


def loop(body=step, start=0, end=4):
    """A loop of four iterations that carries two values."""

    def function(a, b):
        trip = lambda state: (state[0] + 1, *body(*state))  # noqa: E731
        return lax.while_loop(lambda state: state[0] < end, trip, (jnp.int32(start), a, b))[1]

    return function


def lazy(k, x, y):
    """In the second iteration nothing is subtracted."""
    return where(lax.broadcast(k == 1, (8,)), x, x - y), lax.max(x, y)


pair("second_iteration", loop(), loop(lazy), F8, F8)
pair("an_iteration_short", loop(), loop(end=3), F8, F8)
pair("carried_values_exchanged", loop(), loop(lambda *state: step(*state)[::-1]), F8, F8)
pair("other_start", loop(), loop(start=1), F8, F8)  # with the second iteration

ALIAS, DONOR = "{tf.aliasing_output = 0 : i32}", "{jax.buffer_donor = true}"
SHARDED, ELSEWHERE = (f'{{mhlo.sharding = "{{{where}}}"}}' for where in ("replicated", "maximal device=0"))


def with_attributes(a, b=DONOR, result=""):
    """A module with attributes on its arguments and its first result."""
    text = module(f"%a: 8xf32 {a}, %b: 8xf32 {b}", "%x = add %a, %b; return %x, %a")
    return text.replace("-> (tensor<8xf32>", f"-> (tensor<8xf32> {result}", 1)


def composite(name="my.op", scale="2.0", op="add"):
    """A module of a composite."""
    says = f"{{composite_attributes = {{scale = {scale} : f32}}, decomposition = @own}}"
    own = function("private @own", "%a: 8xf32", f"%r = {op} %a, %a")
    return module("%a: 8xf32", f'%r = composite "{name}" %a {says} -> 8xf32', more=own)


BESIDE = {
    "aliasing_lost": (with_attributes(ALIAS), with_attributes("")),
    "another_alias": (with_attributes(ALIAS), with_attributes(ALIAS.replace("0", "1"))),
    "donor_lost": (with_attributes(ALIAS), with_attributes(ALIAS, "")),
    "donor_gained": (with_attributes(""), with_attributes(DONOR)),
    "sharded_otherwise": (with_attributes(SHARDED), with_attributes(ELSEWHERE)),
    "result_sharded_otherwise": (with_attributes("", result=SHARDED), with_attributes("", result=ELSEWHERE)),
    "composite_attribute": (composite(), composite(scale="3.0")),
    "another_composite": (composite(), composite("my.other")),
}
PAIRS |= {name: Pair(*texts, is_interface=True) for name, texts in BESIDE.items()}
PAIRS["decomposition"] = Pair(composite(), composite(op="subtract"))
MOST = np.finfo(np.float32).max


def without_what_overflows(y):
    """What overflows when it is squared becomes 0."""
    return where(~lax.is_finite(y * y) & lax.is_finite(y), 0.0, y)


def mean(kind):
    """The mean of bytes, whose sum is of a type."""
    wide = lambda v: lax.convert_element_type(v, kind)  # noqa: E731
    half = lambda v: lax.shift_right_logical(v, lax.full_like(v, 1))  # noqa: E731
    return lambda a, b: lax.convert_element_type(half(wide(a) + wide(b)), "uint8")


def last_of_many(a):
    """The last element of a large tensor is not negated."""
    return where(lax.iota("int32", a.size) == a.size - 1, a, -a)


behind("minus_zero_lost", lambda y: y + 0.0)
behind("above_1e4_lost", lambda y: lax.min(y, lax.full_like(y, 1e4)))
behind("nan_lost", lambda y: where(y != y, 0.0, y))
behind("infinity_lost", lambda y: lax.clamp(-MOST, y, MOST))
behind("large_lost", lambda y: where(lax.abs(y) > 1e30, 0.0, y))
behind("squares_overflow", without_what_overflows)
behind("one_half_lost", lambda y: where(y == 0.5, -y, y))
behind("rounded", through("float16", "float32"))
behind("least_integer", lambda y: lax.max(y, lax.full_like(y, -(2**31) + 1)), I8)
behind("above_2_40", lambda y: lax.min(y, lax.full_like(y, 2**40)), L8)
pair("halved", lambda a: lax.div(a, np.int32([2] * 8)), lambda a: a >> 1, I8)  # a negative odd number
pair("remainder", lambda a: lax.rem(a, np.int32([8] * 8)), lambda a: a & 7, I8)  # of a negative number
pair("narrow_sum", mean("uint16"), mean("uint8"), B8, B8)
pair("last_of_many", lax.neg, last_of_many, ("float32", 131072))
pair("order_of_a_sum", lambda a, b, c: (a + b) + c, lambda a, b, c: a + (b + c), F8, F8, F8)
pair(  # -0.0 stays -0.0, for 7 alone
    "a_zero_s_sign_for_one_number",
    lambda k, a: 0.0 - (-a),
    lambda k, a: lax.select(k == 7, a, 0.0 + a),
    *(INT, F8),
)


FOUND_BY_THE_MODULE = {
    *("last_row_of_eight", "last_row_of_many", "index_through_i16", "index_through_bf16", "index_clamped"),
    *("third_duplicate", "fifth_duplicate", "first_writer_wins", "last_update_lost", "last_of_many", "last_branch"),
    *("column_leaks_into_the_next_row", "ties_of_integers", "one_of_three_results", "results_exchanged"),
    *("second_iteration", "an_iteration_short", "index_above_2_31", "far_index_wraps", "carried_values_exchanged"),
    *("other_start", "decomposition", "rounded", "order_of_a_sum"),
}
"""What three runs of the whole module find without the regions."""


@pytest.mark.few(11)
@pytest.mark.parametrize("name", PAIRS)
def test_a_wrong_second_version_is_caught_by_its_regions(name):
    """What is wrong beside what is computed is told as such; the rest is a region that differs, none is left open."""
    case = PAIRS[name]
    verdict = verify(case.before, case.after, level="regions")
    assert (verdict.ok, verdict.differs, verdict.exit_code) == (False, True, 1)
    assert bool(verdict.interface) == case.is_interface
    if not case.is_interface:
        assert {region.status for region in verdict.regions} == {"differs"}
        assert all(f"differs: {region.difference}" in "\n".join(verdict.lines()) for region in verdict.regions)


@pytest.mark.sweep
@pytest.mark.parametrize("name", PAIRS)
def test_what_the_module_s_runs_alone_find(name):
    """More than half of the wrong versions pass three runs of the whole module, which is why there are regions."""
    module = verify_module(PAIRS[name].before, PAIRS[name].after, Assumed(), Effort())
    assert (module.status == "differs") == (name in FOUND_BY_THE_MODULE)


@pytest.mark.parametrize("name", ["third_duplicate", "second_iteration", "nan_lost", "aliasing_lost"])
def test_the_first_version_is_itself(name):
    """The first version against itself has no region, and no difference beside: it is the change that is caught."""
    verdict = verify(PAIRS[name].before, PAIRS[name].before, level="regions")
    assert (verdict.ok, verdict.regions, verdict.interface) == (True, (), ())
