"""Pairs of modules as text of which the second one is wrong in one way, as tools that write modules go wrong.

Nobody lowered them: whoever wrote the second version, verification has nothing but the two texts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp
from rewrites import main

Function = Callable[..., Any]
F8, I8, L8, B8, INT, F = ("float32", 8), ("int32", 8), ("int64", 8), ("uint8", 8), ("int32",), ("float32",)
T8 = "tensor<8xf32>"


@dataclass(frozen=True)
class Pair:
    """Two versions of a module.

    Attributes:
      before, after: the two.
      is_interface: whether the second one is wrong beside what it computes.
    """

    before: str
    after: str
    is_interface: bool = False


PAIRS: dict[str, Pair] = {}


def written(function: Function, *types: tuple[Any, ...]) -> str:
    """The module of a function of arrays: (element type, sizes)."""
    with jax.enable_x64(True):
        return jax.jit(function, keep_unused=True).lower(*(jax.ShapeDtypeStruct(t[1:], t[0]) for t in types)).as_text()


def pair(name: str, before: Function, after: Function, *types: tuple[Any, ...]) -> None:
    """Write a pair of functions down."""
    PAIRS[name] = Pair(written(before, *types), written(after, *types))


def behind(name: str, mistake: Function, kind: tuple[Any, ...] = F8) -> None:
    """Write down a difference, and that with a mistake written behind."""
    pair(name, lambda a, b: a - b, lambda a, b: mistake(a - b), kind, kind)


def where(condition: Any, yes: Any, no: Any) -> Any:
    """A choice between numbers, of which one may be a Python number."""
    like = no if hasattr(no, "shape") else yes
    yes, no = (v if hasattr(v, "shape") else lax.full_like(like, v) for v in (yes, no))
    return lax.select(condition, yes, no)


# --- one index, written wrongly for some of its values ---

POINT = lax.ScatterDimensionNumbers((), (0,), (0,))


def put(o: Any, i: Any, u: Any, scatter: Function = lax.scatter, numbers: Any = POINT) -> Any:
    """Updates written to rows; those outside are dropped."""
    return scatter(o, i, u, numbers, mode="drop")


def index_wrong(name: str, rows: int, change: Function, index: str = "int32") -> None:
    """Write down a module that writes a number to a row, and one that changes the index before."""
    pair(name, put, lambda o, i, u: put(o, change(i), u), ("float32", rows), (index, 1), F)


def through(kind: Any, back: str = "int32") -> Function:
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

# --- several indices ---

POINTS, PLACES = ("int32", 6), ("int32", 6, 1)


def added(o: Any, i: Any, u: Any) -> Any:
    """Updates added to rows."""
    return put(o, i, u, lax.scatter_add)


def late_lost(count: int) -> Function:
    """Of the updates of one row those behind the first so many are lost."""

    def function(o: Any, i: Any, u: Any) -> Any:
        flat = lax.reshape(i, (6,))
        same = lax.broadcast_in_dim(flat, (6, 6), (0,)) == lax.broadcast_in_dim(flat, (6, 6), (1,))
        before = lax.broadcasted_iota("int32", (6, 6), 0) > lax.broadcasted_iota("int32", (6, 6), 1)
        earlier = lax.reduce(lax.convert_element_type(same & before, "int32"), np.int32(0), lax.add, (1,))
        return added(o, i, where(earlier >= count, 0, u))

    return function


def at_flat_place(o: Any, i: Any, u: Any) -> Any:
    """By row * 4 + column alone: a column outside is one of a neighbouring row."""
    return lax.reshape(put(lax.reshape(o, (32,)), i[0:1] * 4 + i[1:2], u), (8, 4))


def reversed_writes(o: Any, i: Any, u: Any) -> Any:
    """Of two updates of one row the first one stays."""
    return put(o, lax.rev(i, (0,)), lax.rev(u, (0,)))


def without_last(u: Any) -> Any:
    """The last update is that of the one before."""
    return lax.concatenate([lax.slice(u, (0,), (5,)), lax.slice(u, (4,), (5,))], 0)


pair("third_duplicate", added, late_lost(2), I8, PLACES, POINTS)
pair("fifth_duplicate", added, late_lost(4), I8, PLACES, POINTS)
pair("first_writer_wins", put, reversed_writes, I8, PLACES, POINTS)
pair("last_update_lost", put, lambda o, i, u: put(o, i, without_last(u)), F8, PLACES, ("float32", 6))
AT_PAIR = lax.ScatterDimensionNumbers((), (0, 1), (0, 1))
OF_PAIR = ("float32", 8, 4), ("int32", 2), F
pair("column_leaks_into_the_next_row", lambda o, i, u: put(o, i, u, numbers=AT_PAIR), at_flat_place, *OF_PAIR)


def sliced(start: Function) -> Function:
    """Three elements from a start."""
    return lambda o, i: lax.dynamic_slice(o, (start(i),), (3,), allow_negative_indices=False)


pair("negative_start_wraps", sliced(lambda i: i), sliced(lambda i: where(i < 0, i + 8, i)), F8, INT)

# --- branches ---


def branches(last: Function) -> Function:
    """A choice between three ops."""
    return lambda k, a, b: lax.switch(k, [lax.add, lax.sub, last], a, b)


def rare(number: int, op: str) -> str:
    """A branch that is taken for one number."""
    branch = f"{{ %x = stablehlo.{op} : {T8} stablehlo.return %x : {T8} }}"
    other = f"{{ %x = stablehlo.add %a, %b : {T8} stablehlo.return %x : {T8} }}"
    body = f"""%n = stablehlo.constant dense<{number}> : tensor<i32>
  %is = stablehlo.compare EQ, %k, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %r = "stablehlo.if"(%is) ({branch}, {other}) : (tensor<i1>) -> {T8}"""
    return main(f"%k: tensor<i32>, %a: {T8}, %b: {T8}", body, f"%r : {T8}")


def less(compare: Function) -> Function:
    """A choice by order."""
    return lambda a, b: lax.select(compare(a, b), -a, b)


RARE = rare(123456, "subtract %a, %b")
pair("last_branch", branches(lax.max), branches(lax.min), INT, F8, F8)
PAIRS["rare_branch"] = Pair(RARE, rare(123456, "subtract %b, %a"))
PAIRS["branch_for_another_number"] = Pair(RARE, rare(123457, "subtract %a, %b"))
pair("selected_rarely", lax.neg, lambda a: where(a > 1e6, 1e6, -a), F8)
pair("ties_of_floats", less(lax.lt), less(lax.le), F8, F8)
pair("ties_of_integers", less(lax.lt), less(lax.le), I8, I8)

# --- several results, loops ---

pair(
    "one_of_three_results",
    lambda a, b: (a + b, a * b, lax.max(a, b)),
    lambda a, b: (a + b, a * b, lax.min(a, b)),
    F8,
    F8,
)
pair("results_exchanged", lambda a, b: (a + b, a * b), lambda a, b: (a * b, a + b), F8, F8)


def step(k: Any, x: Any, y: Any) -> Any:
    """An iteration."""
    return x - y, lax.max(x, y)


def loop(body: Function = step, start: int = 0, end: int = 4) -> Function:
    """A loop of four iterations that carries two values."""

    def function(a: Any, b: Any) -> Any:
        trip = lambda state: (state[0] + 1, *body(*state))  # noqa: E731
        return lax.while_loop(lambda state: state[0] < end, trip, (jnp.int32(start), a, b))[1]

    return function


def lazy(k: Any, x: Any, y: Any) -> Any:
    """In the second iteration nothing is subtracted."""
    return where(lax.broadcast(k == 1, (8,)), x, x - y), lax.max(x, y)


pair("second_iteration", loop(), loop(lazy), F8, F8)
pair("an_iteration_short", loop(), loop(end=3), F8, F8)
pair("carried_values_exchanged", loop(), loop(lambda *state: step(*state)[::-1]), F8, F8)
pair("other_start", loop(), loop(start=1), F8, F8)  # with the second iteration

# --- attributes ---

ALIAS, DONOR, SHARDED = (
    "{tf.aliasing_output = 0 : i32}",
    "{jax.buffer_donor = true}",
    '{mhlo.sharding = "{replicated}"}',
)


def with_attributes(a: str, b: str = DONOR, result: str = "") -> str:
    """A module with attributes on its arguments and its first result."""
    text = main(f"%a: {T8} {a}, %b: {T8} {b}", f"%x = stablehlo.add %a, %b : {T8}", f"%x, %a : {T8}, {T8}")
    return text.replace(f"-> ({T8}", f"-> ({T8} {result}", 1)


def composite(name: str = "my.op", scale: str = "2.0", op: str = "add") -> str:
    """A module of a composite."""
    own = f"func.func private @own(%a: {T8}) -> {T8} {{ %r = stablehlo.{op} %a, %a : {T8} return %r : {T8} }}\n"
    told = f"{{composite_attributes = {{scale = {scale} : f32}}, decomposition = @own}}"
    return own + main(f"%a: {T8}", f'%r = stablehlo.composite "{name}" %a {told} : ({T8}) -> {T8}', f"%r : {T8}")


ELSEWHERE = '{mhlo.sharding = "{maximal device=0}"}'
PAIRS |= {
    "aliasing_lost": Pair(with_attributes(ALIAS), with_attributes(""), is_interface=True),
    "another_alias": Pair(with_attributes(ALIAS), with_attributes(ALIAS.replace("0", "1")), is_interface=True),
    "donor_lost": Pair(with_attributes(ALIAS), with_attributes(ALIAS, ""), is_interface=True),
    "donor_gained": Pair(with_attributes(""), with_attributes(DONOR), is_interface=True),
    "sharded_otherwise": Pair(with_attributes(SHARDED), with_attributes(ELSEWHERE), is_interface=True),
    "result_sharded_otherwise": Pair(
        with_attributes("", result=SHARDED), with_attributes("", result=ELSEWHERE), is_interface=True
    ),
    "composite_attribute": Pair(composite(), composite(scale="3.0"), is_interface=True),
    "another_composite": Pair(composite(), composite("my.other"), is_interface=True),
    "decomposition": Pair(composite(), composite(op="subtract")),
}

# --- small mistakes in what is returned ---

MOST = np.finfo(np.float32).max


def without_what_overflows(y: Any) -> Any:
    """What overflows when it is squared becomes 0."""
    return where(~lax.is_finite(y * y) & lax.is_finite(y), 0.0, y)


def mean(kind: str) -> Function:
    """The mean of bytes, whose sum is of a type."""
    wide = lambda v: lax.convert_element_type(v, kind)  # noqa: E731
    half = lambda v: lax.shift_right_logical(v, lax.full_like(v, 1))  # noqa: E731
    return lambda a, b: lax.convert_element_type(half(wide(a) + wide(b)), "uint8")


def last_of_many(a: Any) -> Any:
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
