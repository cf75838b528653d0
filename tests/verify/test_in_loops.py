"""What is known in a loop: its condition, what it carries unchanged, and the integers that its turns meet."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from two_programs import names, numbers, regions
from untyped_mlir import module

import hlo_lower as hl
from hlo_lower.verify import verify

COMPARED = "%p = compare LT, %a, %n"


def loop(chosen="", returned="%s", condition=COMPARED, behind="", result="%r#1"):
    """A loop that doubles a counter, and overwrites a value with the square root of that."""
    body = f"""%one = constant 1.0 : f32
    %r:2 = while(%i = %one, %a = %x) cond {{ {condition}; return %p }} do {{
      %j = add %i, %i; %s = sqrt %j; {chosen}; return %j, {returned} }}
    {behind}"""
    return module("%x: f32, %n: f32", body, f"%r#0, {result}")


def choice(predicate=COMPARED, on_true="%s", on_false="%a"):
    """A choice by a predicate that is computed in the body."""
    return f"{predicate}; %c = select %p, {on_true}, {on_false}"


CHOSEN = loop(choice(), "%c")


def test_a_choice_by_the_condition_is_what_it_takes():
    """Both have one number; where what is chosen is computed otherwise, that alone is the region."""
    assert regions(loop(), CHOSEN) == []
    [first, second] = numbers(loop(), CHOSEN)
    assert first == second
    [region] = regions(loop(), CHOSEN.replace("stablehlo.sqrt %j", "stablehlo.cbrt %j"))
    assert names(region) == (["sqrt"], ["cbrt"])


OTHER, AROUND = "%p = compare LE, %a, %n", "%p = compare LT, %x, %n"
WRONG = (COMPARED, "%a", "%s"), ("%p = compare LT, %s, %n",), ("%p = compare LE, %n, %a",), (COMPARED, "%j")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        *((loop(), loop(choice(*how), "%c")) for how in WRONG),
        (loop(condition=OTHER), loop(choice(), "%c", OTHER)),  # the condition of another loop
        # what holds in an inner loop, around it
        (loop(condition=AROUND), loop(condition=AROUND, behind=choice(AROUND, "%r#1", "%x"), result="%c")),
    ],
)
def test_another_choice_is_not(before, after):
    """Swapped, by another predicate, of another value, or where the condition does not hold: it is a region."""
    assert regions(before, after)
    first, second = numbers(before, after)
    assert first != second


BODY = """%zero = constant 0 : i32; %three = constant 3 : i32; %five = constant 5 : i32; %first = reshape %three -> i32
%r:4 = while(%i = %zero, %k = %first, %m = %five, %v = %x) cond {{
  %four = constant 4 : i32; %go = compare LT, %i, %four; return %go }} do {{
  %one = constant 1 : i32; %next = add %i, %one; %more = add %k, %one; %square = multiply %v, %v
  %four = constant 4 : i32; %p = compare LT, %k, %four; %chosen = select %p, %square, %v
  %copy = reshape %k -> i32; %again = convert %copy -> i32; return %next, {}, {}, {} }}"""


def looped(result, kept):
    """A loop of four turns that carries two integers, and a vector whose next value is named."""
    return module("%x: 4xf32", BODY.format(kept, "%k" if kept == "%m" else "%m", result), "%r#3")


@pytest.mark.parametrize(
    ("kept", "is_known"),
    [
        *((kept, True) for kept in ("%k", "%again")),
        ("%next", True),  # 3 in the first turn, then 1, 2 and 3: the turns alone decide
        *((kept, False) for kept in ("%more", "%m")),  # 3 in the first turn, 4 or more later
    ],
)
def test_what_is_carried_unchanged_is_known_in_the_body(kept, is_known):
    """The choice by it is made in each turn, so the loop without it is the same one; the other choice is not."""
    assert hl.verify(looped("%chosen", kept), looped("%square", kept), runs=1).ok == is_known
    if is_known:
        assert hl.verify(looped("%chosen", kept), looped("%v", kept), runs=1).differs


RIGHT = "%s@ = multiply %i@, %i@; %p@ = xor %q@, %s@"
BELOW_FOUR = "%m@ = constant 3 : i32; %j@ = minimum %i@, %m@; %s@ = multiply %j@, %j@; %p@ = xor %q@, %s@"
"""The same for the first four values of the counter."""
LOOP = """%z@ = constant 0 : i32
%w@:2 = while(%i@ = %z@, %q@ = %x@) cond { %e@ = constant END : i32; %t@ = compare LT, %i@, %e@; return %t@ } do {
  %o@ = constant 1 : i32; %k@ = add %i@, %o@; STEP; return %k@, %p@ }
"""


def two_loops(ends: tuple[int, int], step: str) -> str:
    """Two loops one after the other, with the same body."""
    turns = LOOP.replace("STEP", step)
    loops = (turns.replace("END", str(end)).replace("@", name) for name, end in zip("ab", ends, strict=True))
    return module("%xa: i32, %xb: i32", "".join(loops), "%wa#1, %wb#1")


@pytest.mark.parametrize(("ends", "is_equal"), [((4, 4), True), ((4, 9), False), ((9, 4), False)])
def test_a_body_that_is_right_in_a_short_loop_is_judged_again_in_a_longer_one(ends, is_equal):
    """Two bodies of one text are alike only if their counters take the same values."""
    verdict = verify(two_loops(ends, RIGHT), two_loops(ends, BELOW_FOUR), level="regions")
    assert (verdict.ok, verdict.differs) == (is_equal, not is_equal), verdict.lines()
    if is_equal:
        assert [region.count for region in verdict.regions] == [2]


ROWS = "stablehlo.constant dense<3> : tensor<i32>"
"""How often the outer loop of `triangle` turns."""


def triangle(x):
    """A write to x[j, j - 1 - i] for each i below j, for j of 1, 2 and 3."""

    def row(j, x):
        def column(state):
            i, x = state
            return i + 1, x.at[j, j - 1 - i].set(7.0, mode="promise_in_bounds")

        return lax.while_loop(lambda state: state[0] < j, column, (jnp.int32(0), x))[1]

    return lax.fori_loop(1, 4, row, x)


@pytest.mark.sweep
@pytest.mark.parametrize(("rows", "is_inside"), [(3, True), (4, False)])
def test_an_index_between_two_counters_is_known(rows, is_inside):
    """A write without a guard is right in rows 1 to 3 of four, and is not in a row 4, which one more turn meets."""
    given = jax.jit(triangle).lower(jnp.zeros((4, 4))).as_text()
    unguarded = hl.lower(given).text
    assert "stablehlo.select" not in unguarded.split("dynamic_update_slice")[0].rsplit("concatenate", 1)[1]
    assert given.count(ROWS) == unguarded.count(ROWS) == 1
    turned = [text.replace(ROWS, ROWS.replace("<3>", f"<{rows}>")) for text in (given, unguarded)]
    assert hl.verify(*turned, level="regions").ok == is_inside
