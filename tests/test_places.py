"""Places of scatters: functions, loops, branches, reductions, composites, chains; and regions of any pure ops.

Each module is lowered under both policies, has no scatter left, and computes what the original does on XLA; where XLA
cannot run the original, or is known to err on it, StableHLO's interpreter or a value by hand decides.
"""

import re
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

# The modules are written short: VEC is a type, and `%r = SET(%op, %i, %up)`, ADD(...), `CALL name(%op, %i)` are ops.
VEC = "tensor<6xf32>"
BODIES = {
    "SET": "stablehlo.return %new : tensor<f32>",
    "ADD": "%sum = stablehlo.add %cur, %new : tensor<f32>\n        stablehlo.return %sum : tensor<f32>",
}
REGION = "({\n      ^bb0(%cur: tensor<f32>, %new: tensor<f32>):\n        BODY\n      })"
WINDOW = """"stablehlo.scatter"({1}, {2}, {3}) <{{scatter_dimension_numbers = #stablehlo.scatter<
      update_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 0>}}> REGION
      : (VEC, tensor<1xi32>, {4}) -> VEC"""
SCALAR = """"stablehlo.scatter"({1}, %none, {2}) <{{scatter_dimension_numbers = #stablehlo.scatter<
      index_vector_dim = 0>}}> REGION : (tensor<f32>, tensor<0xi32>, tensor<f32>) -> tensor<f32>"""


def written_out(text):
    """The text with its short forms written out."""

    def scatter(match):
        form, *operands = match.groups()
        kind = "VEC" if operands[-1] == "%op" else "tensor<2xf32>"
        filled = (SCALAR if operands[-1] is None else WINDOW).format(form, *operands, kind)
        return filled.replace("REGION", REGION.replace("BODY", BODIES[form]))

    text = re.sub(r"(SET|ADD)\((%\w+), (%\w+)(?:, (%[\w#]+))?\)", scatter, text)
    call = r"func.call @\1(\2, %up) : (VEC, tensor<1xi32>, tensor<2xf32>) -> VEC"
    return re.sub(r"CALL (\w+)\((%\w+, %\w+)\)", call, text).replace("VEC", VEC)


def case(which, operand, index):
    """A write in the first branch of a case, a sum in the other."""
    first, second = (
        f"{{\n%r = {form}({operand}, {index}, %up)\nstablehlo.return %r : VEC\n}}" for form in ("SET", "ADD")
    )
    return f'"stablehlo.case"({which}) ({first}, {second}) : (tensor<i32>) -> VEC'


def loop(body):
    """A while of three iterations over %c, from which the body makes %next; %n counts, %at is %i + %n."""
    return f"""%zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %w:2 = stablehlo.while(%n = %zero, %c = %op) : tensor<i32>, VEC
      cond {{
        %p = stablehlo.compare LT, %n, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }} do {{
        %at0 = stablehlo.reshape %i : (tensor<1xi32>) -> tensor<i32>
        %at1 = stablehlo.add %at0, %n : tensor<i32>
        %at = stablehlo.reshape %at1 : (tensor<i32>) -> tensor<1xi32>
        {body}
        %m = stablehlo.add %n, %one : tensor<i32>
        stablehlo.return %m, %next : tensor<i32>, VEC
      }}"""


FUNCTIONS = {
    "add_at": "%r = ADD(%op, %i, %up)",
    "set_at": "%r = SET(%op, %i, %up)",
    "ping": "%s = SET(%op, %i, %up)\n    %r = CALL pong(%s, %i)",
    "pong": "%r = CALL ping(%op, %i)",
    "deep": loop(f"%next = {case('%n', '%c', '%at')}") + "\n    %r = stablehlo.negate %w#1 : VEC",
    "outer": """%s = ADD(%op, %i, %up)
    %r = stablehlo.composite "test.add" %s, %i, %up {decomposition = @add_at}
      : (VEC, tensor<1xi32>, tensor<2xf32>) -> VEC""",
}


def module(body, result=None):
    """A module of a body and of the functions that it, or a comment in it, names; results are vectors by default."""
    result = result or ", ".join(["VEC"] * (body.rsplit("return", 1)[1].count(",") + 1))
    private = "".join(
        f"\n  func.func private @{name}(%op: VEC, %i: tensor<1xi32>, %up: tensor<2xf32>) -> VEC {{\n"
        f"    {FUNCTIONS[name]}\n    return %r : VEC\n  }}"
        for name in FUNCTIONS
        if re.search(rf"\b{name}\b", body)
    )
    head = "func.func public @main(%op: VEC, %i: tensor<1xi32>, %up: tensor<2xf32>, %k: tensor<i32>)"
    return written_out(f"module {{\n  {head} -> ({result}) {{\n    {body} : {result}\n  }}{private}\n}}")


@dataclass(frozen=True)
class Hand:
    """A window written by hand, under a policy."""

    oob: str

    def set(self, operand, start):
        """The operand with the updates written from a start, as far as the policy lets them."""
        return self._written(operand, start, UPDATES, add=False)

    def add(self, operand, start, updates=None):
        """The operand with the updates added."""
        return self._written(operand, start, UPDATES if updates is None else updates, add=True)

    def _written(self, operand, start, updates, *, add):
        result = operand.copy()
        for k, update in enumerate(updates):
            inside = 0 <= start + k < len(operand)
            whole = start >= 0 and start + len(updates) <= len(operand)
            if inside and (whole or self.oob == "spec"):
                result[start + k] = update + (operand[start + k] if add else 0)
        return result

    def add_twice(self, operand, start):
        """The updates added, and once more."""
        return self.add(self.add(operand, start), start)

    def loop(self, x, start):
        """Three writes, each a place further."""
        for n in range(3):
            x = self.set(x, start + n)
        return x

    def deep(self, x, start):
        """Three iterations of the case: the first branch at 0, the last one otherwise; negated."""
        for n in range(3):
            x = self.set(x, start + n) if n == 0 else self.add(x, start + n)
        return -x

    def used(self, x, start):
        """A result that is used many times."""
        a = self.add(x, start)
        return [a, a * a + a, a - x, x]

    def indices(self, x):
        """The place of a write is read from the operand, and that of the next one from the result."""
        y = self.set(x, int(x[0]))
        return [self.add(y, int(y[2]))]


# name: (body, results by hand of the policy, the operand, the start and the branch)
PLACES = {
    "a function called twice": (
        "%a = CALL add_at(%op, %i)\n    %b = CALL add_at(%a, %i)\n    return %a, %b",
        lambda h, x, i, k: [h.add(x, i), h.add_twice(x, i)],
    ),
    "a function called with different facts": (
        """%j = stablehlo.constant dense<2> : tensor<1xi32>
    %a = CALL set_at(%op, %j)
    %b = CALL set_at(%a, %i)
    return %b""",
        lambda h, x, i, k: [h.set(h.set(x, 2), i)],
    ),
    "a while": (
        loop("%next = SET(%c, %at, %up)") + "\n    return %w#1",
        lambda h, x, i, k: [h.loop(x, i)],
    ),
    "a case": (
        f"%x = {case('%k', '%op', '%i')}\n    return %x",
        lambda h, x, i, k: [h.add(x, i) if k else h.set(x, i)],
    ),
    "an if in a loop": (
        loop("""%q = stablehlo.compare EQ, %n, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %next = "stablehlo.if"(%q) ({
          %s = ADD(%c, %at, %up)
          stablehlo.return %s : VEC
        }, {
          stablehlo.return %c : VEC
        }) : (tensor<i1>) -> VEC""")
        + "\n    return %w#1",
        lambda h, x, i, k: [h.add(x, i + 1)],
    ),
    "a case in a while in a function called twice": (
        "%a = CALL deep(%op, %i)\n    %b = CALL deep(%a, %i)\n    return %a, %b",
        lambda h, x, i, k: [h.deep(x, i), h.deep(h.deep(x, i), i)],
    ),
    "a composite in a composite": (
        """// outer holds add_at
    %a = stablehlo.composite "test.outer" %op, %i, %up {decomposition = @outer}
      : (VEC, tensor<1xi32>, tensor<2xf32>) -> VEC
    return %a""",
        lambda h, x, i, k: [h.add_twice(x, i)],
    ),
    "a chain on one cache": (
        "%a = SET(%op, %i, %up)\n    %b = ADD(%a, %i, %up)\n    %c = ADD(%b, %i, %up)\n    return %c",
        lambda h, x, i, k: [h.add_twice(h.set(x, i), i)],
    ),
    "barriers in the chain": (
        """%o, %u = stablehlo.optimization_barrier %op, %up : VEC, tensor<2xf32>
    %a = ADD(%o, %i, %u)
    %b = stablehlo.optimization_barrier %a : VEC
    %c = ADD(%b, %i, %u)
    return %c""",
        lambda h, x, i, k: [h.add_twice(x, i)],
    ),
    "a result used many times": (
        """%a = ADD(%op, %i, %up)
    %b = stablehlo.multiply %a, %a : VEC
    %c = stablehlo.add %b, %a : VEC
    %d = stablehlo.subtract %a, %op : VEC
    return %a, %c, %d, %op""",
        lambda h, x, i, k: h.used(x, i),
    ),
    "a result that is not used": ("%a = SET(%op, %i, %up)\n    return %op", lambda h, x, i, k: [x]),
    "two scatters on one operand": (
        "%a = SET(%op, %i, %up)\n    %b = ADD(%op, %i, %up)\n    return %a, %b",
        lambda h, x, i, k: [h.set(x, i), h.add(x, i)],
    ),
    "an operand that is also the updates": (
        """%f = stablehlo.constant dense<0> : tensor<1xi32>
    %a = ADD(%op, %i, %op)
    %b = ADD(%op, %f, %op)
    return %a, %b""",
        lambda h, x, i, k: [h.add(x, i, x), h.add(x, 0, x)],
    ),
    "a function that is never called": ("// set_at is never called\n    return %op", lambda h, x, i, k: [x]),
    "a result that is the next index": (
        """%n = stablehlo.convert %op : (VEC) -> tensor<6xi32>
    %j = stablehlo.slice %n [0:1] : (tensor<6xi32>) -> tensor<1xi32>
    %a = SET(%op, %j, %up)
    %m = stablehlo.convert %a : (VEC) -> tensor<6xi32>
    %l = stablehlo.slice %m [2:3] : (tensor<6xi32>) -> tensor<1xi32>
    %b = ADD(%a, %l, %up)
    return %b""",
        lambda h, x, i, k: h.indices(x),
    ),
}
OPERAND, UPDATES = np.asarray([3, 1, 4, 0, 5, 9], np.float32), np.asarray([10, 20], np.float32)
POLICIES = pytest.mark.parametrize("oob", ["xla", "spec"])


@pytest.mark.few(8)
@POLICIES
@pytest.mark.parametrize("name", PLACES)
def test_a_scatter_in_each_place(name, oob):
    """The scatter is lowered where it is; the module computes what it did, by hand, and as XLA runs its own policy."""
    body, by_hand = PLACES[name]
    text = module(body)
    lowered = hl.lower(text, oob=oob)
    assert (len(lowered.records), "stablehlo.scatter" in lowered.text) == (text.count('"stablehlo.scatter"('), False)
    after, before = Executable(lowered.text, "exact"), Executable(text, "exact")
    for start in (-3, -1, 0, 3, 4, 5, 7):
        for which in (0, 1):
            arguments = [OPERAND, np.asarray([start], np.int32), UPDATES, np.asarray(which, np.int32)]
            actual = after.run(arguments)
            expectations = [by_hand(Hand(oob), OPERAND, start, which)]
            if oob == "xla":
                expectations.append(before.run(arguments))
            for expected in expectations:
                found = first_difference(expected, actual)
                assert found is None, f"start {start}, branch {which}: {found}"


REDUCTION = '"stablehlo.reduce"(%op, %init) <{dimensions = array<i64: 0>}>'
REDUCE_WINDOW = '"stablehlo.reduce_window"(%op, %init) <{window_dimensions = array<i64: 3>}>'
COMPARES = "%t = stablehlo.compare GT, %a, %s : (tensor<f32>, tensor<f32>) -> tensor<i1>"
# name: (op, its operands, its result, how the body of (%a, %b) begins and what it returns, the value by hand)
IN_BODIES = {
    "a reduction": (REDUCTION, "VEC, tensor<f32>", "tensor<f32>", "ADD", "", lambda x: x.sum(dtype=np.float32)),
    "a reduction over windows": (
        *(REDUCE_WINDOW, "VEC, tensor<f32>", "tensor<4xf32>", "ADD", ""),
        lambda x: (x[:-2] + x[1:-1]) + x[2:],
    ),
    "a comparator": (
        *('"stablehlo.sort"(%op) <{dimension = 0 : i64}>', "VEC", "VEC", "SET", COMPARES),
        lambda x: np.sort(x)[::-1],
    ),
    "a map": (
        *('"stablehlo.map"(%op, %op) <{dimensions = array<i64: 0>}>', "VEC, VEC", "VEC", "ADD", ""),
        lambda x: x + x,
    ),
}


@POLICIES
@pytest.mark.parametrize("name", IN_BODIES)
def test_a_scatter_in_a_body_of_scalars(name, oob):
    """A scatter into a scalar, in the region of a reduction, a sort or a map, is lowered there."""
    op, operands, result, form, compares, by_hand = IN_BODIES[name]
    text = f"""%init = stablehlo.constant dense<0.0> : tensor<f32>
    %r = {op} ({{
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %none = stablehlo.constant dense<> : tensor<0xi32>
        %s = {form}(%a, %b)
        {compares}
        stablehlo.return {"%t : tensor<i1>" if compares else "%s : tensor<f32>"}
      }}) : ({operands}) -> {result}
    return %r"""
    lowered = hl.lower(module(text, result=result), oob=oob)
    assert (len(lowered.records), "stablehlo.scatter" in lowered.text) == (1, False)
    arguments = [OPERAND, np.asarray([0], np.int32), UPDATES, np.asarray(0, np.int32)]
    [actual] = Executable(lowered.text, "exact").run(arguments)
    assert actual.tolist() == by_hand(OPERAND).tolist()


def test_functions_that_call_themselves_are_refused():
    """A cycle of calls has no meaning in StableHLO, and is told as such."""
    with pytest.raises(hl.InputError, match="call themselves"):
        hl.lower(module("// ping calls pong\n    %a = CALL ping(%op, %i)\n    return %a"))


def test_a_function_that_a_custom_call_names():
    """A scatter in a called computation is lowered, and the function stays; nothing is known of its arguments."""
    body = """%j = stablehlo.constant dense<2> : tensor<1xi32>
    %a = CALL add_at(%op, %j)
    %b = "stablehlo.custom_call"(%a, %i, %up) <{call_target_name = "other", called_computations = [@add_at]}>
      : (VEC, tensor<1xi32>, tensor<2xf32>) -> VEC
    return %b"""
    lowered = hl.lower(module(body))
    assert [record.in_bounds for record in lowered.records] == ["unknown"]
    assert ("stablehlo.scatter" in lowered.text, "func.func private @add_at" in lowered.text) == (False, True)


@POLICIES
def test_donated_caches_stay_in_place_through_every_place(oob):
    """Caches that a function, a loop and a branch write alias their results, with temporaries far smaller than they."""

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


SCALARS = "(tensor<f32>, tensor<f32>) -> tensor<f32>"


def points(operand, index, updates, size, sum_of="stablehlo.add %cur, %new : tensor<f32>"):
    """A scatter of two numbers."""
    return f"""%w = "stablehlo.scatter"({operand}, {index}, {updates}) <{{
      scatter_dimension_numbers = #stablehlo.scatter<
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
    ^bb0(%cur: tensor<f32>, %new: tensor<f32>):
      %sum = {sum_of}
      stablehlo.return %sum : tensor<f32>
    }}) : (tensor<{size}xf32>, tensor<2x1xi32>, tensor<2xf32>) -> tensor<{size}xf32>"""


def main_of_points(sum_of="stablehlo.add %cur, %new : tensor<f32>"):
    """A function of one scatter."""
    return f"""func.func public @main(%o: tensor<5xf32>, %i: tensor<2x1xi32>, %u: tensor<2xf32>) -> tensor<5xf32> {{
    {points("%o", "%i", "%u", 5, sum_of)}
    return %w : tensor<5xf32>
  }}"""


CALLED = f"""func.func private @adds(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {{
    %at = stablehlo.constant dense<0> : tensor<2x1xi32>
    %o = stablehlo.broadcast_in_dim %x, dims = [] : (tensor<f32>) -> tensor<3xf32>
    %u = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f32>) -> tensor<2xf32>
    {points("%o", "%at", "%u", 3)}
    %s = stablehlo.slice %w [0:1] : (tensor<3xf32>) -> tensor<1xf32>
    %r = stablehlo.reshape %s : (tensor<1xf32>) -> tensor<f32>
    return %r : tensor<f32>
  }}
  func.func private @through(%x: tensor<f32>, %y: tensor<f32>) -> tensor<f32> {{
    %r = func.call @adds(%x, %y) : {SCALARS}
    return %r : tensor<f32>
  }}"""
NESTED_CALLS = {
    "call": f"func.call @adds(%cur, %new) : {SCALARS}",
    "composite": f'stablehlo.composite "own.adds" %cur, %new {{decomposition = @adds}} : {SCALARS}',
    "call of a call": f"func.call @through(%cur, %new) : {SCALARS}",
}


def scatter_calls_scatter(how, *, inner_is_first):
    """A module with a scatter whose update computation calls a function that scatters."""
    functions = [main_of_points(NESTED_CALLS[how]), CALLED]
    return "module {\n  " + "\n  ".join(functions[::-1] if inner_is_first else functions) + "\n}"


@pytest.mark.parametrize("inner_is_first", [True, False])
@pytest.mark.parametrize("how", NESTED_CALLS)
def test_a_scatter_in_a_function_that_a_region_calls(how, inner_is_first):
    """The called function's scatter is lowered before the one that calls it, wherever the function stands."""
    lowered = hl.lower(scatter_calls_scatter(how, inner_is_first=inner_is_first))
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


@pytest.mark.parametrize("mesh", ["@mesh", 'mesh<["x"=2]>', 'mesh<["x"=2], device_ids=[1, 0]>'])
def test_a_mesh_that_stands_in_the_sharding(mesh):
    """A sharding whose mesh is written out spreads the same dims as one that names its mesh."""
    head = 'module attributes {mhlo.num_partitions = 2 : i32} {\n  sdy.mesh @mesh = <["x"=2]>\n  '
    text = f"{head}{main_of_points()}\n}}"
    of_argument = f'%o: tensor<5xf32> {{sdy.sharding = #sdy.sharding<{mesh}, [{{"x"}}]>}}'
    of_result = f'}}) {{sdy.sharding = #sdy.sharding_per_value<[<{mesh}, [{{"x"}}]>]>}} : (tensor<5xf32>'
    for place, sharded in (("%o: tensor<5xf32>", of_argument), ("}) : (tensor<5xf32>", of_result)):
        graph = hl.read(text.replace(place, sharded))
        assert spread_dims(graph.scatters[0].raw) == {0}, place
