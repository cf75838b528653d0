"""`hl.jit`: what `jax.jit` gives, bit for bit, without a scatter in what is compiled."""

import functools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlo_lower as hl


def step(state, row, pos, *, scale=1.0, mode="set"):
    """Write a row of a cache."""
    rows = state["cache"]
    rows = rows.at[pos].set(row * scale) if mode == "set" else rows.at[pos].add(row * scale)
    return {"cache": rows}, row * scale


def state(dtype=jnp.float32):
    """A fresh cache."""
    return {"cache": jnp.zeros((8, 4), dtype)}


ROW = jnp.arange(4.0) + 1


def same(actual, expected):
    """Equal in structure, values, element types and weak types."""
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(a, b)
        assert (a.dtype, a.weak_type, a.shape) == (b.dtype, b.weak_type, b.shape)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((ROW, 3), {}),
        ((ROW, jnp.int32(-1)), {"scale": 2.5}),
        ((ROW, np.int32(8)), {"mode": "add"}),
        ((2.0, 3), {}),
        ((), {"row": ROW, "pos": 7, "scale": jnp.bfloat16(3)}),
    ],
    ids=["python number", "array", "out of bounds", "scalar row", "names"],
)
def test_it_gives_what_jit_gives(args, kwargs):
    """Pytrees, keywords, defaults, Python numbers and static values go in, and the same comes out as of jax.jit."""
    fast = hl.jit(step, static_argnames="mode")
    same(fast(state(), *args, **kwargs), jax.jit(step, static_argnames="mode")(state(), *args, **kwargs))


def test_what_is_compiled_has_no_scatter():
    """The module under the call is the lowered one, and `.lowered` shows it: text, and records with source places."""
    fast = hl.jit(step)
    assert "stablehlo.scatter" not in jax.jit(lambda *args: fast(*args)).lower(state(), ROW, 3).as_text()
    lowered = fast.lowered(state(), ROW, 3)
    assert isinstance(lowered, hl.Lowered)
    assert lowered.scatters_left == 0
    [record] = lowered.records
    assert (record.file, record.writes.index) == ("step", ("pos", ":"))
    assert record.location.startswith("test_jit.py:")
    fast = hl.jit(step, static_argnames="mode")  # for `lowered` shapes are enough, and static arguments are values
    given = {"cache": jax.ShapeDtypeStruct((16, 4), "float32")}, jax.ShapeDtypeStruct((4,), "float32"), 3
    assert fast.lowered(*given, mode="add").records[0].combiner == "add"
    assert fast.lowered(*given).records[0].combiner == "assign"


@pytest.mark.parametrize(("donate", "named"), [({"donate_argnums": 0}, True), ({"donate_argnames": "state"}, False)])
def test_a_donated_buffer_is_written_in_place(donate, named):
    """The argument is gone after the call, and its bytes are those of the result; what is not donated stays."""
    fast = hl.jit(step, **donate)
    given = state()
    place = given["cache"].unsafe_buffer_pointer()
    result, _ = fast(state=given, row=ROW, pos=3) if named else fast(given, ROW, 3)
    assert given["cache"].is_deleted()
    assert result["cache"].unsafe_buffer_pointer() == place
    given = state()
    hl.jit(step)(given, ROW, 3)
    assert not given["cache"].any()


def test_it_is_lowered_once_for_a_signature():
    """Other values of the same types are the same compilation; not so of another type, static value or flag."""
    traced = []

    def fn(x, i, n):
        traced.append(n)
        return x.at[i].set(n)

    fast = hl.jit(fn, static_argnums=2)
    x, i = jnp.zeros(4), jnp.int32(0)
    for args in ((x, i, 1), (x + 1, i + 1, 1)):
        fast(*args)
    once = len(traced)
    for number, args in enumerate([(x, i, 2), (x, 0, 2), (x.astype(jnp.int8), i, 2), (jnp.zeros(5), i, 2)], start=2):
        fast(*args)
        fast(*args)
        assert len(traced) == number * once
    fast = hl.jit(lambda x: jnp.zeros(3).at[0].set(x))
    assert fast(1.0).dtype == np.float32
    with jax.enable_x64(True):
        assert fast(1.0).dtype == np.float64
    assert fast(1.0).dtype == np.float32


def test_it_is_called_within_other_functions():
    """Under jax.jit, in a loop, in a branch, in a scan, and in what is exported, it is a function like any other."""
    fast = hl.jit(lambda x, i: x.at[i].add(1.0))
    x = jnp.zeros(4)
    calls = {
        "jit": jax.jit(fast)(x, 1),
        "cond": jax.lax.cond(x[0] == 0, lambda x: fast(x, 1), lambda x: x, x),
        "scan": jax.lax.scan(lambda x, i: (fast(x, i), None), x, jnp.array([1]))[0],
        "loop": jax.lax.fori_loop(1, 2, lambda i, x: fast(x, i), x),
        "export": jax.export.export(jax.jit(lambda x: fast(x, 1)))(x).call(x),
        "itself": hl.jit(lambda x: fast(x, 1))(x),
    }
    for found in calls.values():
        assert found.tolist() == [0, 1, 0, 0]
    assert jax.eval_shape(fast, x, 1).shape == (4,)


def test_derivatives_and_batches_are_lowered_inside():
    """hl.jit(jax.grad(f)) and hl.jit(jax.vmap(f)) give what JAX gives; from outside they are refused."""
    loss = lambda table, tokens: (table[tokens] ** 2).sum()  # noqa: E731
    table, tokens = jnp.arange(8.0), jnp.array([1, 1, 2])
    gradient = hl.jit(jax.grad(loss))
    same(gradient(table, tokens), jax.jit(jax.grad(loss))(table, tokens))
    assert gradient.lowered(table, tokens).records[0].combiner == "add"
    batched = hl.jit(jax.vmap(lambda x, i: x.at[i].set(1.0)))
    assert batched(jnp.zeros((2, 3)), jnp.array([0, 2])).tolist() == [[1, 0, 0], [0, 0, 1]]
    outside = {
        "differentiated": lambda fast: jax.grad(lambda row: fast(state(), row, 3)[1].sum())(ROW),
        "batched": lambda fast: jax.vmap(lambda row: fast(state(), row, 3))(ROW[None]),
    }
    for what, call in outside.items():
        with pytest.raises(
            hl.InputError, match=f"step: a function under hl.jit cannot be {what} from outside"
        ) as error:
            call(hl.jit(step))
        assert "put it inside: hl.jit(jax." in error.value.next_step


def test_a_scatter_without_a_form_is_an_error():
    """The error is that of hl.lower, and says how to keep the scatter."""
    target = hl.Target("npu", refused={"stablehlo.select": "it does not select"})
    with pytest.raises(hl.NotLoweredError, match="no lowering for target npu") as error:
        hl.jit(step, target=target)(state(), ROW, 3)
    assert error.value.next_step == "keep_unsupported=True leaves what has no lowering as it is"
    kept = hl.jit(step, target=target, keep_unsupported=True)
    same(kept(state(), ROW, 3), jax.jit(step)(state(), ROW, 3))
    assert kept.lowered(state(), ROW, 3).scatters_left == 1


def test_what_export_does_not_take_is_told():
    """A callback and a captured tracer are errors that say what to do."""
    with pytest.raises(hl.InputError, match=r"<lambda>: jax\.export rejects the function: .*callback"):
        hl.jit(lambda x: jax.pure_callback(np.asarray, x, x))(ROW)
    with pytest.raises(hl.InputError, match="uses a traced value from outside") as error:
        jax.jit(lambda y: hl.jit(lambda x: x.at[0].set(y))(ROW))(1.0)
    assert error.value.next_step == "pass the value as an argument"


def test_it_looks_like_the_function():
    """Name, docstring and function are kept, as a decorator and a method; under jax.disable_jit nothing is lowered."""
    fast = hl.jit(step)
    assert (fast.__name__, fast.__doc__, fast.__wrapped__) == ("step", step.__doc__, step)

    class Model:
        @hl.jit(static_argnums=0)
        def write(self, x):
            return x.at[0].set(1.0)

    assert Model().write(jnp.zeros(2)).tolist() == [1, 0]
    partial = hl.jit(functools.partial(step, mode="add"))
    assert partial(state(), ROW, 0)[0]["cache"][0].tolist() == ROW.tolist()
    with jax.disable_jit():
        assert hl.jit(lambda x: x.at[int(x[0])].set(1.0))(jnp.zeros(2)).tolist() == [1, 0]
    with pytest.raises(LookupError, match="mine"):
        hl.jit(lambda x: {}["mine"])(ROW)


SHARDED = """
import os; os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
import hlo_lower as hl
write = lambda cache, pos, row: cache.at[:, pos].set(row)
for kind in (AxisType.Auto, AxisType.Explicit):
    mesh = jax.make_mesh((2,), ("x",), axis_types=(kind,))
    cache = jax.device_put(jnp.zeros((4, 8)), NamedSharding(mesh, P("x")))
    row = jax.device_put(jnp.ones(4), NamedSharding(mesh, P("x")))
    with jax.set_mesh(mesh):
        wanted = jax.jit(write)(cache, jnp.int32(3), row)
        found = hl.jit(write, donate_argnums=0)(cache, jnp.int32(3), row)
    assert (found == wanted).all() and cache.is_deleted()
    assert found.sharding.is_equivalent_to(wanted.sharding, 2), (found.sharding, wanted.sharding)
"""


def test_arrays_stay_where_they_are():
    """Arrays on several devices give a result on the same devices, on automatic and on explicit meshes."""
    done = subprocess.run([sys.executable, "-c", SHARDED], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
