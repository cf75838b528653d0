"""`hl.install`: what JAX compiles is lowered first, and gives what it gave; what nothing refuses is left alone."""

import re
import subprocess
import sys
import threading
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import hlo_lower as hl
from hlo_lower.api import jax_plugin
from hlo_lower.ir import jax_compile
from hlo_lower.lowering.engine.traced import jaxpr_of
from hlo_lower.ops.targets.native_scatter import NativeScatter
from hlo_lower.testing import refusing

NPU = hl.Target("npu", refused={"stablehlo.scatter": "no kernel", "stablehlo.sort": "no kernel"})
ROWS = jnp.array([2, 0, 2])
X, V = jnp.arange(24.0).reshape(4, 6) % 7, jnp.array([3.0, 1.0, 2.0])


STRICT = {
    "ranks": lambda: jax.numpy_rank_promotion("raise"),
    "mesh": lambda: jax.set_mesh(jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Explicit,))),
}


@pytest.mark.parametrize("setting", STRICT)
def test_rules_are_traced_as_they_are_meant(setting):
    """The user's settings and mesh, under which a program is compiled, are not those of the rules' own functions."""
    if not hasattr(jax, "set_mesh"):
        pytest.skip("this release sets a mesh in another way")
    x = X[:, :4] @ X[:, :4].T + 9 * jnp.eye(4)
    expected = jnp.linalg.cholesky(x)
    jaxpr_of.cache_clear()
    with STRICT[setting](), hl.installed("tt"), warnings.catch_warnings():
        warnings.simplefilter("error", hl.InstallWarning)
        found = jax.jit(jnp.linalg.cholesky)(x)
    assert hl.stats().changed
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.fixture
def npu():
    """hl.install for a backend that refuses scatters and sorts, on JAX that raises what such a backend raises."""
    with refusing(NPU):
        hl.install(NPU, platform="cpu")
        yield
        hl.uninstall()


def put(x):
    return x.at[ROWS].add(1.5)


def counted(x):
    return jax.lax.scan(lambda c, k: (c.at[k].set(k + 0.5), c.sum()), x[0], jnp.arange(4))


def reported(x):
    jax.debug.callback(lambda _: None, x[0, 0])
    return put(x)


PROGRAMS = {
    "jit": jax.jit(put),
    "op by op": put,
    "grad": jax.grad(lambda x: (x[ROWS] ** 2).sum()),
    "vmap": jax.vmap(lambda x: x.at[jnp.array([1, 1])].mul(2.0)),
    "scan": jax.jit(counted),
    "cond": lambda x: jax.lax.cond(x.sum() > 1, put, lambda x: x * 2, x),
    "while": lambda x: jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, put(s[1])), (0, x))[1],
    "remat": jax.grad(jax.checkpoint(lambda x: jnp.sin(put(x)).sum())),
    "sort": lambda x: (jnp.sort(x, axis=1), jnp.argsort(x[0])),
    "random": lambda _: jax.random.permutation(jax.random.key(1), 12),
    "callback": jax.jit(reported),
    "pure callback": lambda x: put(jax.pure_callback(lambda a: np.asarray(a) * 2, x, x)),
    "donation": lambda x: jax.jit(put, donate_argnums=0)(x + 0),
    "compiled ahead": lambda x: jax.jit(put).lower(x).compile()(x),
    "exported": lambda x: jax.jit(jax.export.export(jax.jit(put))(x).call)(x),
    "pmap": lambda x: jax.pmap(put)(x[None]),
    "shard_map": lambda x: jax.shard_map(put, mesh=jax.make_mesh((1,), ("d",)), in_specs=jax.P(), out_specs=jax.P())(x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_a_backend_refuses_runs_and_gives_the_same(name, request):
    expected = jax.tree.map(np.asarray, PROGRAMS[name](X))
    with refusing(NPU), pytest.raises(jax.errors.JaxRuntimeError, match=r"npu rejects (a|1) stablehlo\.(scatter|sort)"):
        PROGRAMS[name](X)
    request.getfixturevalue("npu")
    jax.tree.map(np.testing.assert_array_equal, PROGRAMS[name](X), expected)
    assert hl.stats().changed >= 1


@pytest.mark.parametrize(("target", "dtype"), [("coreml", "uint32"), ("tt", "int8")])
def test_arguments_and_results_keep_their_types_where_the_target_stores_others(target, dtype):
    """Without that JAX would be given the bits of ui32 as i32, silently, or buffers of another size."""
    x = jnp.asarray(np.array([3, 2**31 + 5, 7, 100]).astype(dtype))
    program = jax.jit(lambda x: (x * 3, x.at[jnp.array([1, 1])].add(100)))
    expected = program(x)
    with hl.installed(target):
        found = program(x)
        assert hl.stats().changed == 1
    for before, after in zip(expected, found, strict=True):
        assert before.dtype == after.dtype
        np.testing.assert_array_equal(before, after)


def test_random_numbers_are_drawn_where_there_are_no_64_bit_integers():
    """JAX counts in ui64 within the program."""
    draw = jax.jit(lambda: jax.random.bits(jax.random.key(7), (3, 5), "uint32"))
    expected = draw()
    with refusing("tt"):
        with pytest.raises(jax.errors.JaxRuntimeError, match="ui64"):
            draw()
        with hl.installed("tt"):
            np.testing.assert_array_equal(draw(), expected)


def test_a_program_of_which_nothing_is_refused_is_handed_on_untouched(monkeypatch):
    handed: list[object] = []
    plain = jax_compile._compiler().compile_or_get_cached
    monkeypatch.setattr(
        jax_compile._compiler(), jax_compile.FUNCTION, lambda b, m, *r, **n: (handed.append(m), plain(b, m, *r, **n))[1]
    )
    with hl.installed(NPU):
        for fn in (jnp.sin, put):
            lowered = jax.jit(fn).lower(X)
            module = lowered.compiler_ir()
            lowered.compile()
            assert (handed[-1] is module) is (fn is jnp.sin)
        assert (hl.stats().programs, hl.stats().changed) == (2, 1)


def test_what_was_compiled_before_is_compiled_anew_and_uninstall_gives_it_back():
    step = jax.jit(put)
    step(X)
    with refusing(NPU):
        with hl.installed(NPU):
            with hl.installed("xla"):
                pass
            step(X)
            assert hl.stats().changed == 1
        with pytest.raises(jax.errors.JaxRuntimeError):
            step(X)
    step(X)
    assert not jax_compile._changes
    assert jax_compile._compiler().compile_or_get_cached is not jax_compile._compile


def test_a_refusing_backend_goes_by_the_form_of_a_scatter_and_the_name_of_a_call():
    """It takes what its target keeps and what JAX writes for CPUs alone, refuses the rest, and ends as it began."""
    refused = {"stablehlo.scatter": "no kernel", "stablehlo.custom_call": "none is known"}
    kept = hl.Target("rows", refused=refused, keep=(NativeScatter(form="rows"),))
    with refusing(kept):
        none = hl.Target("none", refused=refused)
        with refusing(none), pytest.raises(jax.errors.JaxRuntimeError, match="none rejects"):
            jax.jit(lambda x: x.at[ROWS].set(1.5))(X)
        jax.jit(lambda x: x.at[ROWS].set(1.5))(X)
        jnp.linalg.cholesky(jnp.eye(3))
        with pytest.raises(jax.errors.JaxRuntimeError, match=r"rows rejects 1 stablehlo\.custom_call @none"):
            jax.jit(lambda x: jax.ffi.ffi_call("none", x)(x))(X)
        for scatter in (put, lambda x: x.at[:, ROWS].set(1.5), lambda x: x.at[ROWS].max(3)):
            with pytest.raises(jax.errors.JaxRuntimeError, match=r"rows rejects a stablehlo\.scatter"):
                jax.jit(scatter)(X)


def test_only_programs_of_the_platform_are_lowered():
    with hl.installed(NPU, platform="mps"):
        jax.jit(put)(X)
    assert hl.stats().programs == 0


def test_threads_compile_at_once(npu):
    results: dict[int, np.ndarray] = {}

    def run(k):
        results[k] = np.asarray(jax.jit(lambda x: x.at[k % 4].set(k * 1.0))(X))

    threads = [threading.Thread(target=run, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((results[k][k % 4] == k).all() for k in range(8))
    assert hl.stats().changed == 8


def test_what_no_rule_lowers_is_left_and_named():
    target = hl.Target("none", refused={"stablehlo.scatter": "no kernel", "stablehlo.fft": "no kernel"})
    with hl.installed(target):
        jax.jit(lambda x: jax.lax.fft(put(x).astype(complex), "fft", (6,)))(X)
        told = str(hl.stats())
    assert "1 program, 1 lowered" in told
    assert "left: 1 stablehlo.fft: no kernel; at test_install.py:" in told


def test_a_program_that_cannot_be_lowered_is_compiled_as_it_is(monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr("hlo_lower.api.install.lower", fail)
    with hl.installed(NPU), pytest.warns(hl.InstallWarning, match="jit_put is compiled as it is: RuntimeError: a mist"):
        np.testing.assert_array_equal(jax.jit(put)(X), put(X))
    assert "jit_put" in hl.stats().failed[0]


def test_each_program_is_verified_where_that_is_asked_for(monkeypatch):
    with hl.installed(NPU, verify="regions"):
        jax.jit(put)(X)
        right = hl.lower

        def wrong(graph, **named):
            return right(hl.read(hl.read(str(graph.module)).module.__str__().replace("1.5", "2.5")), **named)

        monkeypatch.setattr("hlo_lower.api.install.lower", wrong)
        with pytest.raises(hl.DifferenceError, match="computes something else"):
            jax.jit(lambda x: x.at[ROWS].add(1.5))(X)


def test_a_native_version_stays_native_where_it_is_compared():
    text = jax.jit(put).lower(X).as_text()
    wrong = hl.lower(text).text.replace("1.5", "2.5")
    with hl.installed(NPU), refusing(NPU):  # the native scatter would be refused if it were seen
        assert hl.verify(text, hl.lower(text)).ok
        assert hl.verify(text, wrong).differs


def test_the_environment_installs_and_jax_keeps_the_lowered_program_in_its_persistent_cache(tmp_path):
    code = f"""
import sys, jax, jax.numpy as jnp
jax.config.update("jax_compilation_cache_dir", {str(tmp_path)!r})
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
hits = []
jax.monitoring.register_event_listener(lambda e, **_: hits.append(e) if e.endswith("cache_hits") else None)
x = jnp.arange(8.0)
hits.clear()
y = jax.jit(lambda x: x.at[jnp.array([0, 2])].set(1.0))(x)
print(len(hits), y.sum(), "hlo_lower.api.install" in sys.modules)
"""
    environment = {"JAX_PLATFORMS": "cpu", "PYTHONPATH": ":".join(filter(None, sys.path)), "HLO_LOWER_STATS": "1"}
    seen, told = {}, {}
    for name, target in (("native", ""), ("first", "iree"), ("again", "iree")):
        variables = {**environment, "HLO_LOWER_TARGET": target}
        done = subprocess.run([sys.executable, "-c", code], env=variables, check=True, capture_output=True, text=True)
        seen[name], told[name] = done.stdout.split(), "1 lowered in" in done.stderr
    assert seen == {"native": ["0", "28.0", "False"], "first": ["0", "28.0", "True"], "again": ["1", "28.0", "True"]}
    assert told == {"native": False, "first": True, "again": True}


@pytest.fixture
def begin(monkeypatch):
    """A function that starts JAX's plug-in where these variables are set."""

    def initialize(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(f"HLO_LOWER_{name}", value)
        jax_plugin.initialize()

    yield initialize
    hl.uninstall()


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"TARGET": "irx"}, "HLO_LOWER_TARGET=irx: no target named 'irx'"),
        ({"TARGET": "iree", "VERIFY": "all"}, "HLO_LOWER_TARGET=iree: verify: 'all' is not one of its values"),
    ],
)
def test_a_variable_with_a_wrong_value_is_an_error_of_each_program(begin, variables, told):
    begin(**variables)
    for number in range(2):
        with pytest.raises(hl.InputError, match=re.escape(told)):
            jax.jit(lambda x, number=number: x + number)(X)


def test_programs_of_another_platform_than_the_environment_names_are_left(begin):
    begin(TARGET="iree", PLATFORM="mps")
    jax.jit(put)(X)
    assert hl.stats().programs == 0


def test_a_release_of_jax_without_the_way_in_is_an_error_that_says_so(monkeypatch):
    monkeypatch.delattr(jax_compile._compiler(), jax_compile.FUNCTION)
    with pytest.raises(hl.InputError, match=r"it has no jax\._src\.compiler\.compile_or_get_cached"):
        hl.install(NPU)
    assert not jax_compile._changes


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"target": "linalg"}, "reads linalg, and a backend of JAX StableHLO"),
        ({"target": NPU, "checked": True}, "one more result"),
        ({"target": NPU, "verify": "all"}, "verify: 'all'"),
        ({"target": NPU, "platform": 3}, "platform: 3 is neither"),
        ({"target": NPU, "jobs": 3}, "jobs"),
    ],
)
def test_what_cannot_be_installed_is_an_error_and_nothing_is_installed(wrong, told):
    with pytest.raises((hl.InputError, TypeError), match=told):
        hl.install(**wrong)
    assert not jax_compile._changes


def test_nothing_warns_where_all_goes_well(npu):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.jit(put)(X)


def test_programs_over_several_devices_run_and_give_the_same():
    code = """
import jax, jax.numpy as jnp, numpy as np, hlo_lower as hl
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
mesh = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))
x = jax.device_put(jnp.arange(32.0).reshape(8, 4), NamedSharding(mesh, P("d")))
rows = jnp.array([1, 6, 1])
spread = jax.jit(lambda x: x.at[rows].add(2.0) @ x.T)
body = lambda x: jax.lax.psum(x.at[jnp.array([0, 0])].mul(2.0), "d")
mapped = jax.shard_map(body, mesh=mesh, in_specs=P("d"), out_specs=P())
replicated = jax.pmap(lambda x: jax.lax.psum(x.at[0].set(3.0), "i"), axis_name="i")
for run in (lambda: spread(x), lambda: mapped(x), lambda: replicated(x.reshape(4, 2, 4))):
    expected = run()
    with hl.installed(hl.Target("npu", refused={"stablehlo.scatter": "no kernel"})):
        found = run()
        assert found.sharding == expected.sharding and hl.stats().changed == 1 and not hl.stats().left, str(hl.stats())
        np.testing.assert_array_equal(found, expected)
"""
    environment = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "4", "PYTHONPATH": ":".join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.stderr == ""
