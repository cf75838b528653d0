"""Loops of one version that are written out in the other one are read as their trips, whatever stands in them."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.ir import mlir
from hlo_lower.verify.align.loops import trips_of, written_out
from hlo_lower.verify.read.program import Program

pytest.importorskip("z3")


def while_text(first, last, step, test):
    """A loop of one counter."""
    body = f"""%first = constant {first} : i32; %last = constant {last} : i32; %step = constant {step} : i32
    %r:2 = while(%i = %first, %v = %x) cond {{ %go = compare {test}, %i, %last; return %go }} do {{
      %next = add %i, %step; %w = tanh %v; return %next, %w }}"""
    return module("%x: 4xf32", body, "%r#1")


def walk(x, trips, *, in_a_loop, last=None, ends=False):
    """Each trip writes at the least place, or, where it `ends`, goes on in a loop until it meets a zero."""

    def trip(k, x):
        more = jnp.sin(x[k % 5])
        if not ends:
            return x.at[jnp.argmin(x)].add(more)

        def follow(state):
            at, x = state
            return jnp.argmin(x) + 1, x.at[at].add(more)

        return lax.while_loop(lambda state: x[state[0]] != 0, follow, (jnp.int32(0), x))[1]

    if in_a_loop:
        return lax.fori_loop(0, trips, trip, x)
    for k in range(trips):
        x = trip(k if last is None or k + 1 < trips else last, x)
    return x


def texts(trips, **how):
    """`walk` in a loop, and written out."""
    x = jnp.zeros(8)
    return [
        jax.jit(lambda x, kw=kw, n=n: walk(x, n, **kw)).lower(x).as_text()
        for n, kw in ((3, {**how, "in_a_loop": True}), (trips, {**how, "in_a_loop": False}))
    ]


@pytest.mark.parametrize(("ends", "order"), [(False, 1), (True, 1), (True, -1)])
def test_trips_are_derived_one_by_one(ends, order):
    """The loop in each trip has no counter, and what is written there is never judged by a run."""
    found = hl.verify(*texts(3, ends=ends)[::order], level="regions")
    assert found.ok
    assert {region.how for region in found.regions} <= {"derived"}, found


@pytest.mark.few(2)
@pytest.mark.parametrize("other", [{"trips": 2}, {"trips": 4}, {"trips": 3, "last": 1}])
def test_another_trip_is_not_equal(other):
    """A trip less, a trip more, and a last trip that reads another place."""
    assert not hl.verify(*texts(**other), level="regions").ok


@pytest.mark.parametrize(
    ("loop", "trips"),
    [
        *(((0, 5, 1, "LT"), 5), ((0, 5, 1, "LE"), 6), ((1, 6, 2, "LT"), 3), ((1, 7, 2, "LE"), 4)),
        *(((-3, 1, 1, "LT"), 4), ((5, 5, 1, "LT"), 0), ((0, 5, 1, "NE"), 0)),
        ((5, 0, -1, "GT"), 0),  # it counts down: left as it is
        ((0, 2147483647, 1, "LE"), 0),  # it does not end
    ],
)
def test_trips_are_as_many_as_the_loop_makes(loop, trips):
    """Each trip is one tanh; a loop that is none of those that count stays a loop."""
    raw = mlir.parse_module(while_text(*loop))
    [op] = (op for op in Program(raw).entries["main"].ops if op.name == "stablehlo.while")
    assert trips_of(Program(raw), op) == trips
    ops = [op.short_name for op in Program(raw, written_out(frozenset({1}))).entries["main"].ops]
    assert ops.count("tanh") == trips
    assert ops.count("while") == (not trips)
    assert written_out(frozenset()) is None


def test_an_argument_that_a_function_gives_back_is_kept():
    """A body that is a call returns what it was given where the function does, and not where it returns another one."""
    vectors = "%a: 4xf32, %b: 4xf32, %c: 4xf32"
    text = module(
        "%n: i32, %x: 4xf32, %y: 4xf32",
        """%r:4 = while(%i = %n, %a = %x, %b = %y, %c = %x) cond { %go = compare LT, %i, %n; return %go } do {
          %s:4 = call @body(%i, %a, %b, %c) -> (i32, 4xf32, 4xf32, 4xf32); return %s#0, %s#1, %s#2, %s#3 }""",
        "%r#1",
        function("private @body", f"%i: i32, {vectors}", "%j = add %i, %i", "%j, %a, %c, %b"),
    )
    program = Program(mlir.parse_module(text))
    [loop] = program.entries["main"].ops
    body = loop.bodies[1]
    assert [given in loop.inputs for given in body.returned] == [False, True, False, False]


# --- regions of loops are derived within what their counters are, however many turns there are ---

LOOP = """%zero = constant 0 : i32; %one = constant 1 : i32
%w:2 = while(%k = %zero, %v = %x) cond { %c = compare LT, %k, %n, SIGNED; return %c } do {
  %next = add %k, %one; %f = convert %k -> f32; %g = broadcast_in_dim %f, dims = [] -> 3xf32; OP; return %next, %r }"""


def test_a_counter_of_two_billion_turns_costs_nothing():
    """What an open loop's counter may be is known by its ends."""
    difference, turned = (
        module("%n: i32, %x: 3xf32", LOOP.replace("OP", op), "%w#1")
        for op in ("%r = subtract %v, %g", "%m = negate %g; %r = add %m, %v")
    )
    verdict = hl.verify(difference, turned, require="derived", level="regions")
    assert (verdict.ok, verdict.counts()) == (True, {"derived": 1})


def test_what_is_only_tested_does_not_count_as_derived():
    """Its exit code is 4, and 1 where it differs."""
    bodies = "%a = abs %x; %r = sqrt %a", "%n = negate %x; %a = maximum %n, %x; %r = sqrt %a"
    texts = [module("%x: 4xf32", body) for body in bodies]
    assert [hl.verify(*texts, require=which, level="regions").exit_code for which in ("tested", "derived")] == [0, 4]


# --- what stands around a body says what a region in it needs ---


def in_a_branch(written, most):
    """Numbers that are written in a branch, at places that are made before it."""
    places = f"%most = constant {most} : 6x1xi32; %k = iota dim = 0 : 6x1xi32; %m = maximum %n, %k"
    places += "; %few = minimum %k, %most; %i = minimum %m, %few"
    body = f"{places}; %r = if(%p) {{ {written}; return %s }} {{ return %z }}"
    return module("%p: i1, %z: 6xf32, %u: 6xf32, %n: 6x1xi32", body)


SCATTERED = "%s = scatter(%z, %i, %u) <inserted=[0], to=[0], ivd=1> {add}"


@pytest.mark.parametrize(("most", "is_equal"), [(5, True), (4, False)])
def test_a_region_in_a_branch_is_derived_with_what_stands_before_the_branch(most, is_equal):
    """One number goes to each place, as is said outside; else two go to one."""
    verdict = hl.verify(in_a_branch(SCATTERED, most), in_a_branch("%s = add %z, %u", most), level="regions")
    assert verdict.ok == is_equal
    assert (verdict.counts() == {"derived": 1}) == is_equal
