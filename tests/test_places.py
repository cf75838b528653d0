"""Places of scatters: functions, loops, branches, reductions, composites, chains; and regions of any pure ops.

Each module is lowered, has no scatter left, and computes what the original does on XLA; where XLA cannot run the
original, or is known to err on it, StableHLO's interpreter or a value by hand decides.
"""

import re

import jax
import numpy as np
import pytest
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.base.causes import Code
from hlo_lower.facts.scatter.shardings import spread_dims
from hlo_lower.verify.bounds.compare import first_difference
from hlo_lower.verify.judges.interpreter import shared_interpreter
from hlo_lower.verify.run import Executable

POLICIES = pytest.mark.parametrize("oob", ["xla", "spec"])
ARGUMENTS = "%op: 6xf32, %i: 1xi32, %up: 2xf32"
FUNCTIONS = {
    "add_at": "%r = ADD(%op, %i)",
    "set_at": "%r = SET(%op, %i)",
    "deep": """%zero = constant 0 : i32
      %w:2 = while(%n = %zero, %c = %op) cond {%p = compare LT, %n, 3; return %p} do {
        %flat = reshape %i -> i32; %moved = add %flat, %n; %at = reshape %moved -> 1xi32
        %next = case(%n) {%s = SET(%c, %at); return %s} {%s = ADD(%c, %at); return %s}
        %m = add %n, 1
        return %m, %next
      }
      %r = negate %w#1""",
    "outer": '%s = ADD(%op, %i); %r = composite "test.add" %s, %i, %up {decomposition = @add_at} -> 6xf32',
}


def module_of(body):
    """A module of a body, in which SET(%op, %i) writes updates and ADD adds them, and of functions that it names."""

    def full(text):
        made = r"scatter(\2, %up) <window=[0], to=[0]> {\1}"
        return re.sub(r"(SET|ADD)\((.*?)\)", made, text).replace("{SET}", "{assign}").replace("{ADD}", "{add}")

    own = [name for name in FUNCTIONS if f"@{name}" in body]  # in a comment as well
    private = "".join(function(f"private @{name}", ARGUMENTS, full(FUNCTIONS[name])) for name in own)
    return module(ARGUMENTS, full(re.sub("//.*", "", body)), more=private)


X, UPDATES = np.asarray([3, 1, 4, 0, 5, 9], np.float32), np.asarray([10, 20], np.float32)


def writers(oob):
    """A window set, and one added, by hand under a policy."""

    def written(x, start, updates, *, add):
        result, is_inside = x.copy(), 0 <= start <= len(x) - len(updates)
        for k, update in enumerate(updates):
            if is_inside or (oob == "spec" and 0 <= start + k < len(x)):
                result[start + k] = update + (x[start + k] if add else 0)
        return result

    return [lambda x, start, updates=UPDATES, add=add: written(x, start, updates, add=add) for add in (False, True)]


def deep(put, add, x, i):
    """Three iterations of the case: the first branch at 0, the last one otherwise; negated."""
    return -add(add(put(x, i), i + 1), i + 2)


# The body, and the results by hand, of what sets and what adds, and the start.
PLACES = {
    "a function called with different facts": (
        """%j = constant 2 : 1xi32; %a = call @set_at(%op, %j, %up) -> 6xf32
        %b = call @set_at(%a, %i, %up) -> 6xf32; return %a, %b""",
        lambda put, add, i: [put(X, 2), put(put(X, 2), i)],
    ),
    "a case in a while in a function called twice": (
        "%a = call @deep(%op, %i, %up) -> 6xf32; %b = call @deep(%a, %i, %up) -> 6xf32; return %a, %b",
        lambda put, add, i: [deep(put, add, X, i), deep(put, add, deep(put, add, X, i), i)],
    ),
    "a composite in a composite": (
        '%a = composite "test.outer" %op, %i, %up {decomposition = @outer} -> 6xf32; return %a  // @add_at',
        lambda put, add, i: [add(add(X, i), i)],
    ),
    "results that are used several times, and not at all": (
        "%a = ADD(%op, %i); %b = multiply %a, %a; %c = SET(%op, %i); %d = SET(%a, %i); return %a, %b, %c, %op",
        lambda put, add, i: [add(X, i), add(X, i) ** 2, put(X, i), X],
    ),
    "an operand that is also the updates": (
        """%f = constant 0 : 1xi32
        %a = scatter(%op, %i, %op) <window=[0], to=[0]> {add}; %b = scatter(%op, %f, %op) <window=[0], to=[0]> {add}
        return %b, %a""",
        lambda put, add, i: [add(X, 0, X), add(X, i, X)],
    ),
    "a function that is never called": ("// @set_at\nreturn %op", lambda put, add, i: [X]),
    "a result that is the next index": (
        """%n = convert %op -> 6xi32; %j = slice %n [0:1]; %a = SET(%op, %j)
        %m = convert %a -> 6xi32; %l = slice %m [2:3]; %b = ADD(%a, %l); return %b""",
        lambda put, add, i: [add(y := put(X, int(X[0])), int(y[2]))],
    ),
}


@pytest.mark.few(8)
@POLICIES
@pytest.mark.parametrize("name", PLACES)
def test_a_scatter_in_each_place(name, oob):
    """The scatter is lowered where it is; the module computes what it did, by hand, and as XLA runs its own policy."""
    body, by_hand = PLACES[name]
    text = module_of(body)
    lowered = hl.lower(text, oob=oob)
    assert (len(lowered.records), "stablehlo.scatter" in lowered.text) == (text.count('"stablehlo.scatter"('), False)
    after, before = Executable(lowered.text, "exact"), Executable(text, "exact")
    for start in (-3, -1, 0, 3, 4, 5, 7):
        arguments = [X, np.asarray([start], np.int32), UPDATES]
        actual = after.run(arguments)
        for expected in (by_hand(*writers(oob), start), before.run(arguments) if oob == "xla" else actual):
            found = first_difference(expected, actual)
            assert found is None, f"start {start}: {found}"


BODY = "{%a, %b: %none = constant [] : 0xi32; %s = scatter(%a, %none, %b) <ivd=0> {add}; return %s}"
SORTS = "%s = scatter(%a, %none, %b) <ivd=0> {assign}; %t = compare GT, %a, %s; return %t}"
IN_BODIES = {
    "a reduction": (f"reduce(%op, %z) <dimensions = array<i64: 0>> {BODY} -> f32", np.sum),
    "a reduction over windows": (
        f"reduce_window(%op, %z) <window_dimensions = array<i64: 3>> {BODY} -> 4xf32",
        lambda x: (x[:-2] + x[1:-1]) + x[2:],
    ),
    "a comparator": (f"sort(%op) <dimension = 0 : i64> {BODY.partition('%s')[0]}{SORTS}", lambda x: np.sort(x)[::-1]),
    "a map": (f"map(%op, %op) <dimensions = array<i64: 0>> {BODY}", lambda x: x + x),
}


@POLICIES
@pytest.mark.parametrize(("line", "by_hand"), IN_BODIES.values(), ids=IN_BODIES)
def test_a_scatter_in_a_body_of_scalars(line, by_hand, oob):
    """A scatter into a scalar, in the region of a reduction, a sort or a map, is lowered there."""
    lowered = hl.lower(module("%op: 6xf32", f"%z = constant 0.0 : f32; %r = {line}"), oob=oob)
    assert (len(lowered.records), "stablehlo.scatter" in lowered.text) == (1, False)
    [actual] = Executable(lowered.text, "exact").run([X])
    assert actual.tolist() == by_hand(X).tolist()


def test_a_function_that_a_custom_call_names():
    """A scatter in a called computation is lowered, and the function stays; nothing is known of its arguments."""
    body = """%j = constant 2 : 1xi32; %a = call @add_at(%op, %j, %up) -> 6xf32
      %r = custom_call @other(%a, %i, %up) {called_computations = [@add_at]} -> 6xf32"""
    lowered = hl.lower(module_of(body))
    assert [record.in_bounds for record in lowered.records] == ["unknown"]
    assert ("stablehlo.scatter" in lowered.text, "func.func private @add_at" in lowered.text) == (False, True)


def test_donated_caches_stay_in_place_through_every_place():
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
    lowered = hl.lower(source)
    assert "stablehlo.scatter" not in lowered.text
    assert lowered.text.count("tf.aliasing_output") == source.as_text().count("tf.aliasing_output") == 2
    compiled = jax.jit(lowered.exported.call, donate_argnums=(0, 1)).lower(*lowered.exported.in_avals).compile()
    memory = compiled.memory_analysis()
    assert memory.alias_size_in_bytes == 2 * cache.nbytes
    assert memory.temp_size_in_bytes < cache.nbytes // 16
    expected = jax.jit(step)(*arguments)
    for mine, native in zip(Executable(lowered.text, "exact").run(arguments), expected, strict=True):
        assert (mine == np.asarray(native)).all()


ADDED = "scatter(%o, %i, %u) <inserted=[0], to=[0], ivd=1>"
CALLED = [
    function(
        "private @adds",
        "%x: f32, %y: f32",
        f"""%i = constant 0 : 2x1xi32
        %o = broadcast_in_dim %x, dims = [] -> 3xf32; %u = broadcast_in_dim %y, dims = [] -> 2xf32
        %w = {ADDED} {{add}}; %s = slice %w [0:1]; %r = reshape %s -> f32""",
    ),
    function("private @through", "%x: f32, %y: f32", "%r = call @adds(%x, %y) -> f32"),
]
NESTED_CALLS = {
    "call": "call @adds(%cur, %new) -> f32",
    "composite": 'composite "own.adds" %cur, %new {decomposition = @adds} -> f32',
    "call of a call": "call @through(%cur, %new) -> f32",
}
first_or_last = pytest.mark.parametrize("inner_is_first", [True, False])


def scatter_calls_scatter(how, *, inner_is_first):
    """A module with a scatter whose update computation calls a function that scatters."""
    body = f"{{%cur, %new: %sum = {NESTED_CALLS[how]}; return %sum}}"
    functions = [module("%o: 5xf32, %i: 2x1xi32, %u: 2xf32", f"%r = {ADDED} {body}"), *CALLED]
    return "".join(functions[::-1] if inner_is_first else functions)


@first_or_last
@pytest.mark.parametrize("how", NESTED_CALLS)
def test_a_scatter_in_a_function_that_a_region_calls(how, inner_is_first):
    """The called function's scatter is lowered before the one that calls it, wherever the function stands."""
    lowered = hl.lower(scatter_calls_scatter(how, inner_is_first=inner_is_first))
    assert ("stablehlo.scatter" in lowered.text, lowered.scatters_left) == (False, 0)
    main = lowered.text[lowered.text.index("  func.func public @main") :]
    alone = main[: main.index("\n  }\n") + len("\n  }\n")]  # the interpreter runs the first function
    arguments = [np.arange(5, dtype=np.float32), np.array([[3], [3]], np.int32), np.array([1, 10], np.float32)]
    [result] = shared_interpreter().run(f"module {{\n{alone}}}", arguments)
    assert np.array_equal(result, [0, 1, 2, 3 + 2 + 20, 4])


@first_or_last
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
    text = module("%o: 5xf32, %i: 2x1xi32, %u: 2xf32", f"%r = {ADDED} {{add}}", more='sdy.mesh @mesh = <["x"=2]>\n')
    text = f"module attributes {{mhlo.num_partitions = 2 : i32}} {{\n{text}}}"
    of_argument = f'%o: tensor<5xf32> {{sdy.sharding = #sdy.sharding<{mesh}, [{{"x"}}]>}}'
    of_result = f'}}) {{sdy.sharding = #sdy.sharding_per_value<[<{mesh}, [{{"x"}}]>]>}} : (tensor<5xf32>'
    for place, sharded in (("%o: tensor<5xf32>", of_argument), ("}) : (tensor<5xf32>", of_result)):
        graph = hl.read(text.replace(place, sharded, 1))
        assert spread_dims(graph.scatters[0].raw) == {0}, place
