"""Places of scatters: functions, loops, branches, reductions, composites, chains; and regions of any pure ops.

Each module is lowered under both policies, has no scatter left, and computes what the original does on XLA; where XLA
cannot run the original, or is known to err on it, StableHLO's interpreter or a value by hand decides.
"""

from dataclasses import dataclass

import jax
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.base.causes import Code
from hlo_lower.facts.scatter.shardings import spread_dims
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.judges.interpreter import shared_interpreter
from hlo_lower.verify.run import Executable

V = "tensor<6xf32>"
WRITE = """"stablehlo.scatter"({operand}, {index}, {update}) <{{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}}> ({{
      ^bb0(%cur: tensor<f32>, %new: tensor<f32>):
        {body}
    }}) : (tensor<6xf32>, tensor<1xi32>, tensor<2xf32>) -> tensor<6xf32>"""
SET = "stablehlo.return %new : tensor<f32>"
ADD = """%sum = stablehlo.add %cur, %new : tensor<f32>
        stablehlo.return %sum : tensor<f32>"""
RANK_0 = """"stablehlo.scatter"({operand}, %none, {update}) <{{scatter_dimension_numbers = #stablehlo.scatter<
      index_vector_dim = 0>}}> ({{
      ^bb0(%cur: tensor<f32>, %new: tensor<f32>):
        {body}
    }}) : (tensor<f32>, tensor<0xi32>, tensor<f32>) -> tensor<f32>"""
NONE = "%none = stablehlo.constant dense<> : tensor<0xi32>"


def write(operand, index, update="%up", body=SET):
    """A window of two elements written at a place."""
    return WRITE.format(operand=operand, index=index, update=update, body=body)


def scalar_write(operand, update, body=ADD):
    """A scatter of one number into one number, the only one that fits where all tensors are scalars."""
    return RANK_0.format(operand=operand, update=update, body=body)


HEAD = f"func.func public @main(%op: {V}, %i: tensor<1xi32>, %up: tensor<2xf32>, %k: tensor<i32>)"


def function(name, body, index="%i"):
    """A private function (operand, index, update) -> result."""
    return f"""
  func.func private @{name}(%op: {V}, {index}: tensor<1xi32>, %up: tensor<2xf32>) -> {V} {{
    {body}
    return %r : {V}
  }}"""


def call(name, operand="%op", index="%i"):
    """A call of such a function."""
    return f"func.call @{name}({operand}, {index}, %up) : ({V}, tensor<1xi32>, tensor<2xf32>) -> {V}"


ADD_AT = function("add_at", f"%r = {write('%op', '%i', body=ADD)}")
SET_AT = function("set_at", f"%r = {write('%op', '%i')}")
COUNTER = """%zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>"""


def loop(body, operand="%op"):
    """A while of three iterations over %c, its next value %next, the counter %n."""
    return f"""{COUNTER}
    %w:2 = stablehlo.while(%n = %zero, %c = {operand}) : tensor<i32>, {V}
      cond {{
        %p = stablehlo.compare LT, %n, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }} do {{
        {body}
        %m = stablehlo.add %n, %one : tensor<i32>
        stablehlo.return %m, %next : tensor<i32>, {V}
      }}"""


MOVED = """%at0 = stablehlo.reshape %i : (tensor<1xi32>) -> tensor<i32>
        %at1 = stablehlo.add %at0, %n : tensor<i32>
        %at = stablehlo.reshape %at1 : (tensor<i32>) -> tensor<1xi32>"""


def case_of(first, second):
    """A case with two branches, each of which defines %r."""
    branches = ", ".join(f"{{\n{body}\n      stablehlo.return %r : {V}\n    }}" for body in (first, second))
    return f'"stablehlo.case"(%k) ({branches}) : (tensor<i32>) -> {V}'


@dataclass(frozen=True)
class Hand:
    """A window written by hand, under a policy."""

    oob: str

    def set(self, operand, start, updates=None):
        """The operand with the updates written from a start, as far as the policy lets them."""
        return self._written(operand, start, updates, add=False)

    def add(self, operand, start, updates=None):
        """The operand with the updates added."""
        return self._written(operand, start, updates, add=True)

    def _written(self, operand, start, updates, *, add):
        updates = UPDATES if updates is None else updates
        result = operand.copy()
        for k, update in enumerate(updates):
            inside = 0 <= start + k < len(operand)
            whole = start >= 0 and start + len(updates) <= len(operand)
            if inside and (whole or self.oob == "spec"):
                result[start + k] = update + (operand[start + k] if add else 0)
        return result


def by_hand_deep(hand, x, start):
    """Three iterations of the case: the first branch at 0, the last one otherwise; negated."""
    for n in range(3):
        x = hand.set(x, start + n) if n == 0 else hand.add(x, start + n)
    return -x


def by_hand_loop(hand, x, start):
    """Three assignments, each a place further."""
    for n in range(3):
        x = hand.set(x, start + n)
    return x


def by_hand_indices(hand, x):
    """The place of a write is read from the operand, and that of the next one from the result."""
    y = hand.set(x, int(x[0]))
    return [hand.add(y, int(y[2]))]


PLACES = {
    "a function called twice": (
        f"%a = {call('add_at')}\n    %b = {call('add_at', '%a')}\n    return %a, %b : {V}, {V}",
        ADD_AT,
        2,
        1,
    ),
    "a function called with different facts": (
        f"""%j = stablehlo.constant dense<2> : tensor<1xi32>
    %a = {call("set_at", "%op", "%j")}
    %b = {call("set_at", "%a")}
    return %b : {V}""",
        SET_AT,
        1,
        1,
    ),
    "a while": (f"{loop(f'{MOVED}{chr(10)}        %next = ' + write('%c', '%at'))}\n    return %w#1 : {V}", "", 1, 1),
    "a case": (
        f"""%x = {case_of(f"%r = {write('%op', '%i')}", f"%r = {write('%op', '%i', body=ADD)}")}
    return %x : {V}""",
        "",
        1,
        2,
    ),
    "an if in a loop": (
        loop(f"""{MOVED}
        %odd = stablehlo.remainder %n, %three : tensor<i32>
        %q = stablehlo.compare EQ, %odd, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %next = "stablehlo.if"(%q) ({{
          %s = {write("%c", "%at", body=ADD)}
          stablehlo.return %s : {V}
        }}, {{
          stablehlo.return %c : {V}
        }}) : (tensor<i1>) -> {V}""")
        + f"\n    return %w#1 : {V}",
        "",
        1,
        1,
    ),
    "a case in a while in a function called twice": (
        f"%a = {call('deep')}\n    %b = {call('deep', '%a', '%i')}\n    return %a, %b : {V}, {V}",
        function(
            "deep",
            loop(f"""{MOVED}
        %next = {case_of(f"%r = {write('%c', '%at')}", f"%r = {write('%c', '%at', body=ADD)}").replace("%k", "%n")}""")
            + f"\n    %r = stablehlo.negate %w#1 : {V}",
        ),
        2,
        2,
    ),
    "a composite": (
        f"""%a = stablehlo.composite "test.add" %op, %i, %up {{decomposition = @add_at}}
      : ({V}, tensor<1xi32>, tensor<2xf32>) -> {V}
    return %a : {V}""",
        ADD_AT,
        1,
        1,
    ),
    "a composite in a composite": (
        f"""%a = stablehlo.composite "test.outer" %op, %i, %up {{decomposition = @outer}}
      : ({V}, tensor<1xi32>, tensor<2xf32>) -> {V}
    return %a : {V}""",
        function(
            "outer",
            f"""%s = {write("%op", "%i", body=ADD)}
    %r = stablehlo.composite "test.add" %s, %i, %up {{decomposition = @add_at}}
      : ({V}, tensor<1xi32>, tensor<2xf32>) -> {V}""",
        )
        + ADD_AT,
        1,
        2,
    ),
    "a chain on one cache": (
        f"""%a = {write("%op", "%i")}
    %b = {write("%a", "%i", body=ADD)}
    %c = {write("%b", "%i", body=ADD)}
    return %c : {V}""",
        "",
        1,
        3,
    ),
    "barriers in the chain": (
        f"""%o, %u = stablehlo.optimization_barrier %op, %up : {V}, tensor<2xf32>
    %a = {write("%o", "%i", "%u", ADD)}
    %b = stablehlo.optimization_barrier %a : {V}
    %c = {write("%b", "%i", "%u", ADD)}
    return %c : {V}""".replace("%o, %u =", "%o:2 =")
        .replace("(%o,", "(%o#0,")
        .replace("%u)", "%o#1)"),
        "",
        1,
        2,
    ),
    "a result used many times": (
        f"""%a = {write("%op", "%i", body=ADD)}
    %b = stablehlo.multiply %a, %a : {V}
    %c = stablehlo.add %b, %a : {V}
    %d = stablehlo.subtract %a, %op : {V}
    return %a, %c, %d, %op : {V}, {V}, {V}, {V}""",
        "",
        4,
        1,
    ),
    "a result that is not used": (f"%a = {write('%op', '%i')}\n    return %op : {V}", "", 1, 1),
    "two scatters on one operand": (
        f"%a = {write('%op', '%i')}\n    %b = {write('%op', '%i', body=ADD)}\n    return %a, %b : {V}, {V}",
        "",
        2,
        2,
    ),
    "an operand that is also the updates": (
        f"""%f = stablehlo.constant dense<0> : tensor<1xi32>
    %a = {write("%op", "%i", "%op", ADD).replace("tensor<2xf32>", V)}
    %b = {write("%op", "%f", "%op", ADD).replace("tensor<2xf32>", V)}
    return %a, %b : {V}, {V}""",
        "",
        2,
        2,
    ),
    "a function that is never called": (f"return %op : {V}", SET_AT, 1, 1),
    "a result that is the next index": (
        f"""%n = stablehlo.convert %op : ({V}) -> tensor<6xi32>
    %j = stablehlo.slice %n [0:1] : (tensor<6xi32>) -> tensor<1xi32>
    %a = {write("%op", "%j")}
    %m = stablehlo.convert %a : ({V}) -> tensor<6xi32>
    %l = stablehlo.slice %m [2:3] : (tensor<6xi32>) -> tensor<1xi32>
    %b = {write("%a", "%l", body=ADD)}
    return %b : {V}""",
        "",
        1,
        2,
    ),
}
IN_BODIES = {
    "a reduction": f"""%r = stablehlo.reduce(%op init: %init) across dimensions = [0]
      : ({V}, tensor<f32>) -> tensor<f32>
      reducer(%a: tensor<f32>, %b: tensor<f32>) {{
        {NONE}
        %s = {scalar_write("%a", "%b")}
        stablehlo.return %s : tensor<f32>
      }}
    return %r : tensor<f32>""",
    "a reduction over windows": f"""%r = "stablehlo.reduce_window"(%op, %init) <{{
        window_dimensions = array<i64: 3>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        {NONE}
        %s = {scalar_write("%a", "%b")}
        stablehlo.return %s : tensor<f32>
      }}) : ({V}, tensor<f32>) -> tensor<4xf32>
    return %r : tensor<4xf32>""",
    "a comparator": f"""%r = "stablehlo.sort"(%op) <{{dimension = 0 : i64}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        {NONE}
        %s = {scalar_write("%a", "%b", SET)}
        %p = stablehlo.compare GT, %a, %s : (tensor<f32>, tensor<f32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }}) : ({V}) -> {V}
    return %r : {V}""",
    "a map": f"""%r = "stablehlo.map"(%op, %op) <{{dimensions = array<i64: 0>}}> ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        {NONE}
        %s = {scalar_write("%a", "%b")}
        stablehlo.return %s : tensor<f32>
      }}) : ({V}, {V}) -> {V}
    return %r : {V}""",
}
BY_HAND = {
    "a function called twice": lambda h, x, i, k: [h.add(x, i), h.add(h.add(x, i), i)],
    "a function called with different facts": lambda h, x, i, k: [h.set(h.set(x, 2), i)],
    "a while": lambda h, x, i, k: [by_hand_loop(h, x, i)],
    "a case": lambda h, x, i, k: [h.add(x, i) if k else h.set(x, i)],
    "an if in a loop": lambda h, x, i, k: [h.add(x, i + 1)],
    "a case in a while in a function called twice": lambda h, x, i, k: [
        by_hand_deep(h, x, i),
        by_hand_deep(h, by_hand_deep(h, x, i), i),
    ],
    "a composite": lambda h, x, i, k: [h.add(x, i)],
    "a composite in a composite": lambda h, x, i, k: [h.add(h.add(x, i), i)],
    "a chain on one cache": lambda h, x, i, k: [h.add(h.add(h.set(x, i), i), i)],
    "barriers in the chain": lambda h, x, i, k: [h.add(h.add(x, i), i)],
    "a result used many times": lambda h, x, i, k: [
        h.add(x, i),
        h.add(x, i) * h.add(x, i) + h.add(x, i),
        h.add(x, i) - x,
        x,
    ],
    "a result that is not used": lambda h, x, i, k: [x],
    "two scatters on one operand": lambda h, x, i, k: [h.set(x, i), h.add(x, i)],
    "an operand that is also the updates": lambda h, x, i, k: [h.add(x, i, x), h.add(x, 0, x)],
    "a function that is never called": lambda h, x, i, k: [x],
    "a result that is the next index": lambda h, x, i, k: by_hand_indices(h, x),
}
BODIES_BY_HAND = {
    "a reduction": lambda op: op.sum(dtype=np.float32),
    "a reduction over windows": lambda op: (op[:-2] + op[1:-1]) + op[2:],
    "a comparator": lambda op: np.sort(op)[::-1],
    "a map": lambda op: op + op,
}
OPERAND, UPDATES = np.asarray([3, 1, 4, 0, 5, 9], np.float32), np.asarray([10, 20], np.float32)
STARTS = (-3, -1, 0, 3, 4, 5, 7)
POLICIES = pytest.mark.parametrize("oob", ["xla", "spec"])


def module(body, functions, results):
    """The module of a place."""
    return f"module {{\n  {HEAD} -> ({', '.join([V] * results)}) {{\n    {body}\n  }}{functions}\n}}"


@pytest.mark.few(8)
@POLICIES
@pytest.mark.parametrize("name", PLACES)
def test_a_scatter_in_each_place(name, oob):
    """The scatter is lowered where it is, and the module computes what it did: by hand, and under its own policy as
    XLA runs it."""
    body, functions, results, scatters = PLACES[name]
    text = module(body, functions, results)
    lowered = hl.lower(text, oob=oob)
    assert (len(lowered.records), "stablehlo.scatter" in lowered.text) == (scatters, False)
    after, before = Executable(lowered.text, "exact"), Executable(text, "exact")
    for start in STARTS:
        for which in (0, 1):
            arguments = [OPERAND, np.asarray([start], np.int32), UPDATES, np.asarray(which, np.int32)]
            actual = after.run(arguments)
            expectations = [BY_HAND[name](Hand(oob), OPERAND, start, which)]
            if oob == "xla":
                expectations.append(before.run(arguments))
            for expected in expectations:
                found = first_difference(expected, actual)
                assert found is None, f"start {start}, branch {which}: {found}"


@POLICIES
@pytest.mark.parametrize("name", IN_BODIES)
def test_a_scatter_in_a_body_of_scalars(name, oob):
    """A scatter into a scalar, in the region of a reduction, a sort or a map, is lowered there."""
    body = IN_BODIES[name]
    result = body.rsplit(": ", 1)[1].strip()
    zero = "%init = stablehlo.constant dense<0.0> : tensor<f32>"
    text = f"module {{\n  {HEAD} -> {result} {{\n    {zero}\n    {body}\n  }}\n}}"
    lowered = hl.lower(text, oob=oob)
    assert (len(lowered.records), "stablehlo.scatter" in lowered.text) == (1, False)
    arguments = [OPERAND, np.asarray([0], np.int32), UPDATES, np.asarray(0, np.int32)]
    [actual] = Executable(lowered.text, "exact").run(arguments)
    assert actual.tolist() == BODIES_BY_HAND[name](OPERAND).tolist()


def test_functions_that_call_themselves_are_refused():
    """A cycle of calls has no meaning in StableHLO, and is told as such."""
    ping = function("ping", f"%s = {write('%op', '%i')}\n    %r = {call('pong', '%s')}")
    pong = function("pong", f"%r = {call('ping')}")
    with pytest.raises(hl.InputError, match="call themselves"):
        hl.lower(module(f"%a = {call('ping')}\n    return %a : {V}", ping + pong, 1))


def test_a_function_that_a_custom_call_names():
    """A scatter in a called computation is lowered, and the function stays; nothing is known of its arguments."""
    body = f"""%j = stablehlo.constant dense<2> : tensor<1xi32>
    %a = {call("add_at", "%op", "%j")}
    %b = "stablehlo.custom_call"(%a, %i, %up) <{{call_target_name = "other", called_computations = [@add_at]}}>
      : ({V}, tensor<1xi32>, tensor<2xf32>) -> {V}
    return %b : {V}"""
    lowered = hl.lower(module(body, ADD_AT, 1))
    assert [record.in_bounds for record in lowered.records] == ["unknown"]
    assert ("stablehlo.scatter" in lowered.text, "func.func private @add_at" in lowered.text) == (False, True)


@POLICIES
def test_donated_caches_stay_in_place_through_every_place(oob):
    """Two donated caches that a function, a loop and a branch write are updated where they are: each aliases its
    result, and the temporary memory is far smaller than one of them."""

    @jax.jit
    def write_row(cache, pos, row):
        return cache.at[:, pos].set(row)

    def step(keys, values, pos, row, which):
        keys = write_row(write_row(keys, pos, row), pos + 1, row * 2)
        values = jax.lax.fori_loop(0, 3, lambda n, c: c.at[:, pos + n].add(row), values)
        values = jax.lax.cond(which, lambda c: c.at[:, pos].multiply(row), lambda c: c.at[:, pos].max(row), values)
        return keys, values

    cache, row = np.ones((2, 4096, 64), np.float32), np.full((2, 64), 3, np.float32)
    arguments = cache, cache, np.int32(7), row, np.asarray(True)
    source = jax.jit(step, donate_argnums=(0, 1)).lower(*arguments)
    lowered = hl.lower(source, oob=oob)
    assert "stablehlo.scatter" not in lowered.text
    assert lowered.text.count("tf.aliasing_output") == source.as_text().count("tf.aliasing_output") == 2
    compiled = jax.jit(lowered.exported.call, donate_argnums=(0, 1)).lower(*lowered.exported.in_avals).compile()
    memory = compiled.memory_analysis()
    assert memory.alias_size_in_bytes == 2 * cache.nbytes
    assert memory.temp_size_in_bytes < cache.nbytes // 16
    expected = jax.jit(step)(*arguments)
    for mine, native in zip(Executable(lowered.text, "exact").run(arguments), expected, strict=True):
        assert (mine == np.asarray(native)).all()


POINTS = """<{scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}>"""
ADDS = f"""func.func private @adds(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {{
    %at = stablehlo.constant dense<0> : tensor<2x1xi32>
    %o = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %u = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f32>) -> tensor<2xf32>
    %w = "stablehlo.scatter"(%o, %at, %u) {POINTS} ({{
    ^bb0(%cur: tensor<f32>, %new: tensor<f32>):
      {ADD}
    }}) : (tensor<3xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<3xf32>
    %s = stablehlo.slice %w [0:1] : (tensor<3xf32>) -> tensor<1xf32>
    %r = stablehlo.reshape %s : (tensor<1xf32>) -> tensor<f32>
    return %r : tensor<f32>
  }}"""
CALLS_ADDS = f"""func.func public @main(%o: tensor<5xf32>, %i: tensor<2x1xi32>, %u: tensor<2xf32>) -> tensor<5xf32> {{
    %r = "stablehlo.scatter"(%o, %i, %u) {POINTS} ({{
    ^bb0(%cur: tensor<f32>, %new: tensor<f32>):
      %k = CALL
      stablehlo.return %k : tensor<f32>
    }}) : (tensor<5xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<5xf32>
    return %r : tensor<5xf32>
  }}"""
SCALARS = "(tensor<f32>, tensor<f32>) -> tensor<f32>"
NESTED_CALLS = {
    "call": f"func.call @adds(%cur, %new) : {SCALARS}",
    "composite": f'stablehlo.composite "own.adds" %cur, %new {{decomposition = @adds}} : {SCALARS}',
    "call of a call": f"func.call @through(%cur, %new) : {SCALARS}",
}
THROUGH = f"""func.func private @through(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {{
    %r = func.call @adds(%x, %y) : {SCALARS}
    return %r : tensor<f32>
  }}"""


def scatter_calls_scatter(how, *, inner_is_first):
    """A module with a scatter whose update computation calls a function that scatters."""
    main = CALLS_ADDS.replace("CALL", NESTED_CALLS[how])
    functions = [f"{ADDS}\n  {THROUGH}", main] if inner_is_first else [main, f"{THROUGH}\n  {ADDS}"]
    return "module {\n  " + "\n  ".join(functions) + "\n}"


@pytest.mark.parametrize("inner_is_first", [True, False])
@pytest.mark.parametrize("how", NESTED_CALLS)
def test_a_scatter_in_a_function_that_a_region_calls(how, inner_is_first):
    """The called function's scatter is lowered before the one that calls it, wherever the function stands."""
    text = scatter_calls_scatter(how, inner_is_first=inner_is_first)
    lowered = hl.lower(text)
    assert ("stablehlo.scatter" in lowered.text, lowered.scatters_left) == (False, 0)
    operand, index = np.arange(5, dtype=np.float32), np.array([[3], [3]], np.int32)
    main = lowered.text[lowered.text.index("  func.func public @main") :]
    alone = main[: main.index("\n  }\n") + len("\n  }\n")]  # the interpreter runs the first function
    result = shared_interpreter().run(f"module {{\n{alone}}}", [operand, index, np.array([1, 10], np.float32)])
    assert np.array_equal(result[0], [0, 1, 2, 3 + 2 + 20, 4])


@pytest.mark.parametrize("inner_is_first", [True, False])
def test_a_scatter_is_not_lowered_around_one_that_is_kept(inner_is_first):
    """What the update computation holds is lowered, too, or neither is; the error says so and blames no rule."""
    text = scatter_calls_scatter("call", inner_is_first=inner_is_first)
    inner, outer = ("#1", "#2") if inner_is_first else ("#2", "#1")
    for only, skip in (((), (inner,)), ((outer,), ())):
        with pytest.raises(hl.NotLoweredError) as error:
            hl.lower(text, only=only, skip=skip)
        assert f"its update computation holds scatter {inner}" in str(error.value)
        assert "the rule" not in str(error.value)
    kept = hl.lower(text, skip=(inner,), keep_unsupported=True)
    assert kept.scatters_left == 2
    assert Code.HOLDS_KEPT in {r.why.cause("reason").code for r in kept.records if r.why.code is Code.KEPT_UNSUPPORTED}
    assert hl.lower(text, skip=(outer,)).scatters_left == 1


def test_a_mesh_that_stands_in_the_sharding():
    """A sharding whose mesh is written out spreads the same dims as one that names its mesh."""
    argument = """module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  """ + CALLS_ADDS.replace("CALL", "stablehlo.add %cur, %new : tensor<f32>")
    argument += "\n}"
    for mesh in ("@mesh", 'mesh<["x"=2]>', 'mesh<["x"=2], device_ids=[1, 0]>'):
        sharding = f'{{sdy.sharding = #sdy.sharding<{mesh}, [{{"x"}}]>}}'
        per_value = f'{{sdy.sharding = #sdy.sharding_per_value<[<{mesh}, [{{"x"}}]>]>}}'
        for text in (
            argument.replace("%o: tensor<5xf32>", f"%o: tensor<5xf32> {sharding}"),
            argument.replace("}) : (tensor<5xf32>", f"}}) {per_value} : (tensor<5xf32>"),
        ):
            graph = hl.read(text)
            assert spread_dims(graph.scatters[0].raw) == {0}, (mesh, text)
