"""Modules for several devices on one (`--one-device`): shardings go, what is written for one device is run for all."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

import hlo_lower as hl
from hlo_lower.api.many.survey import survey
from hlo_lower.lowering.lockstep import tiles_of
from hlo_lower.verify.judges.devices import compile_anywhere
from hlo_lower.verify.read.partitions import on_one_device

P = PartitionSpec


def mesh_of(**axes):
    """A mesh without devices."""
    return AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


LINE, GRID = mesh_of(x=8), mesh_of(x=4, y=2)


def spec(shape, *axes, mesh=LINE, dtype="float32"):
    """A sharded spec."""
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(mesh, P(*axes)))


def mapped(own, given, returned, mesh=LINE, **how):
    """A function of what each device has."""
    return jax.shard_map(own, mesh=mesh, in_specs=given, out_specs=returned, check_vma=False, **how)


def exported(fn, *specs):
    """The export of a function for several devices."""
    return jax.export.export(jax.jit(fn))(*specs)


RING = [(k, (k + 1) % 8) for k in range(8)]
ROWS, SQUARE, ON_GRID = spec((16, 4), "x"), spec((16, 16), "x"), spec((16, 4), "x", mesh=GRID)


def _around(x):
    """A ring: what each device has goes once around, within a loop."""
    turn = lambda c, _: (jax.lax.ppermute(c, "x", RING) * 2 + x, c.sum())  # noqa: E731
    return jax.lax.scan(turn, x, None, length=4)


def _constrained(x, w):
    hidden = jax.lax.with_sharding_constraint(x @ w, NamedSharding(GRID, P("x", "y")))
    return hidden.at[3].set(0.5), jax.lax.with_sharding_constraint(hidden.sum(0), NamedSharding(GRID, P()))


def _chosen(x):
    """A branch that all devices take, with a sum in it."""
    total = jax.lax.psum(x.sum(), "x")
    return jax.lax.cond(total > 0, lambda x: x + jax.lax.pmax(x, "x"), lambda x: x * 2, x)


def _within(x):
    """A computation along one axis in one along the other, which numbers the devices along both."""
    inner = mapped(lambda x: x + jax.lax.axis_index("y") * 100, P("y"), P("y"), None, axis_names={"y"})
    return inner(x * 2) + jax.lax.axis_index("x")


PROGRAMS = {
    "constraints": (_constrained, spec((16, 8), "x", mesh=GRID), spec((8, 32), None, "y", mesh=GRID)),
    "own": (mapped(lambda x: jnp.sin(x) * 2, P("x"), P("x")), ROWS),
    "sum": (mapped(lambda x: jax.lax.psum(x.sum(0), "x"), P("x"), P()), ROWS),
    "gather": (mapped(lambda x: jax.lax.all_gather(x, "x", tiled=True), P("x", "y"), P(None, "y"), GRID), ON_GRID),
    "scatter": (mapped(lambda x: jax.lax.psum_scatter(x, "x", tiled=True), P(None, "x"), P("x")), SQUARE),
    "exchange": (mapped(lambda x: jax.lax.all_to_all(x, "x", 1, 0, tiled=True), P("x"), P("x")), SQUARE),
    "number": (mapped(lambda x: x + jax.lax.axis_index("y"), P("x", "y"), P("x", "y"), GRID), ON_GRID),
    "ends": (mapped(lambda x: jax.lax.ppermute(x, "x", RING[:-1]), P("x"), P("x")), ROWS),
    "some axes": (mapped(lambda x: x * jax.lax.psum(x, "x"), P("x"), P("x"), GRID, axis_names={"x"}), ON_GRID),
    "within": (mapped(_within, P("x"), P("x"), GRID, axis_names={"x"}), ON_GRID),
    "ring": (mapped(_around, P("x"), (P("x"), P("x"))), ROWS),
    "branch": (mapped(_chosen, P("x"), P("x")), ROWS),
}
ON_ONE = ("sdy.", "sharding", "Sharding", "SPMD", "all_reduce", "all_gather", "all_to_all", "reduce_scatter")
ON_ONE += ("collective", "partition_id", "num_partitions = 8")


def arrays(*specs, seed=0):
    """Arguments."""
    rng = np.random.default_rng(seed)
    return [(rng.standard_normal(one.shape) * 4).astype(one.dtype) for one in specs]


def same(before, after, given, most=0.0):
    """Whether two modules, each on as many devices as it is for, give the same."""
    first, second = compile_anywhere([(before, "exact"), (after, "exact")])
    pairs = zip(first.run(given), second.run(given), strict=True)
    return all(np.array_equal(a, b) or np.allclose(a, b, rtol=most, atol=most) for a, b in pairs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_for_eight_devices_gives_the_same_on_one(name):
    """Nothing of several devices is left, and one device gives what eight give."""
    fn, *specs = PROGRAMS[name]
    if name == "within" and jax.__version_info__ < (0, 10):
        pytest.skip("JAX itself does not export it")
    source = exported(fn, *specs)
    lowered = hl.lower(source, one_device=True)
    assert not [word for word in ON_ONE if word in lowered.text]
    most = 1e-5 if name == "constraints" else 0.0  # XLA sums a product otherwise in parts
    assert same(source.mlir_module(), lowered.text, arrays(*specs), most)


def drawn(seed):
    """A random program of collectives over random axes, on what each device has; and its mesh."""
    rng = np.random.default_rng(seed)
    sizes = [(8,), (4, 2), (2, 4), (2, 2, 2)][rng.integers(4)]
    axes = "xyz"[: len(sizes)]
    count = dict(zip(axes, sizes, strict=True))
    steps = [(rng.integers(7), *rng.permutation(list(axes)), *rng.integers(2, size=2)) for _ in range(4)]
    perms = [rng.permutation(size)[: rng.integers(1, size + 1)] for size in (8, 4, 2) for _ in range(4)]

    def own(x):
        for kind, *names, dim, other in steps:
            axis, several = str(names[0]), tuple(map(str, names[: 1 + int(dim)]))
            size = count[axis]
            if kind == 0:
                x = x + jax.lax.psum(x, several)
            elif kind == 1 and x.shape[dim] < 64:
                x = jax.lax.all_gather(x, axis, axis=int(dim), tiled=True)
            elif kind == 2 and x.shape[dim] % size == 0:
                x = jax.lax.psum_scatter(x, axis, scatter_dimension=int(dim), tiled=True)
            elif kind == 3 and x.shape[dim] % size == 0:
                x = jax.lax.all_to_all(x, axis, int(dim), int(other), tiled=True)
            elif kind == 4:
                targets = next(perm for perm in perms[int(other) :] if len(perm) <= size and max(perm) < size)
                x = jax.lax.ppermute(x, axis, [(k, int(to)) for k, to in enumerate(targets)]) - x
            elif kind == 5:
                x = x * 3 + jax.lax.axis_index(several)
            else:
                x = jax.lax.fori_loop(0, 3, lambda k, x, axis=axis: x * 2 - jax.lax.pmax(x, axis) + k, x)
        return x

    places = [None, axes[0], tuple(axes), tuple(reversed(axes))]
    given = (
        P(*(places[rng.integers(1, 4)], None)) if rng.integers(2) else P(axes[0], axes[-1] if len(axes) > 1 else None)
    )
    mesh = mesh_of(**count)
    return mapped(own, given, P(tuple(axes)), mesh), spec((16, 16), mesh=mesh, dtype="int32")


@pytest.mark.sweep
@pytest.mark.parametrize("block", range(4))
def test_random_programs_for_eight_devices_give_the_same_on_one(block):
    """Collectives over one axis or several, in loops, with parts of what each device has."""
    for seed in range(25 * block, 25 * block + 25):
        fn, given = drawn(seed)

        source = exported(fn, given)
        assert same(source.mlir_module(), hl.lower(source, one_device=True).text, arrays(given, seed=seed)), seed


# --- GSPMD, as torch_xla and JAX before Shardy write it ---


def spread(sharding, own="2x4", back=None, body="%r = stablehlo.negate %own", count=8, more=""):
    """A module of GSPMD that negates the parts of a 16 x 4 tensor."""
    back, part = back or sharding, f"tensor<{own}xf32>"
    called = "%c = call @own(%m) : (PART) -> PART".replace("PART", part)
    return f"""module @m attributes {{mhlo.num_partitions = {count} : i32, mhlo.num_replicas = 1 : i32{more}}} {{
      func.func public @main(%x: tensor<16x4xf32> {{mhlo.sharding = "{sharding}", tf.aliasing_output = 0 : i32}}) ->
          (tensor<16x4xf32> {{mhlo.sharding = "{back}"}}) {{
        %s = stablehlo.custom_call @Sharding(%x) {{mhlo.sharding = "{sharding}"}}
          : (tensor<16x4xf32>) -> tensor<16x4xf32>
        %m = stablehlo.custom_call @SPMDFullToShardShape(%s) {{mhlo.sharding = "{{manual}}"}}
          : (tensor<16x4xf32>) -> {part}
        {called}
        %n = stablehlo.custom_call @Sharding(%c) {{mhlo.sharding = "{{manual}}"}} : ({part}) -> {part}
        %r = stablehlo.custom_call @SPMDShardToFullShape(%n) {{mhlo.sharding = "{back}"}}
          : ({part}) -> tensor<16x4xf32>
        return %r : tensor<16x4xf32>
      }}
      func.func private @own(%own: {part}) -> {part} {{
        {body} : {part}
        return %r : {part}
      }}
    }}"""


NUMBERED = """%p = stablehlo.partition_id : tensor<ui32>
        %q = stablehlo.convert %p : (tensor<ui32>) -> tensor<f32>
        %b = stablehlo.broadcast_in_dim %q, dims = [] : (tensor<f32>) -> tensor<4x2xf32>
        %r = stablehlo.add %own, %b"""
TILINGS = {
    "rows": spread("{devices=[8,1]<=[8]}"),
    "grid": spread("{devices=[4,2]<=[8]}", "4x2", body=NUMBERED),
    "turned": spread("{devices=[4,2]<=[2,4]T(1,0)}", "4x2", body=NUMBERED),
    "listed": spread("{devices=[4,2]0,2,4,6,1,3,5,7}", "4x2", body=NUMBERED),
    "some the same": spread("{devices=[4,1,2]<=[8] last_tile_dim_replicate}", "4x4"),
}


@pytest.mark.parametrize("name", TILINGS)
def test_what_gspmd_spreads_gives_the_same_on_one(name):
    """The parts between its two calls are run for all devices, each with its own number."""
    lowered = hl.lower(TILINGS[name], one_device=True)
    assert not [word for word in ON_ONE if word in lowered.text]
    assert "tf.aliasing_output = 0" in lowered.text
    given = arrays(jax.ShapeDtypeStruct((16, 4), "float32"))
    assert same(TILINGS[name].replace(", tf.aliasing_output = 0 : i32", ""), lowered.text, given)


def test_notes_of_torch_xla_are_removed():
    """Shardings of arguments, of the module and of custom calls go; donation stays, and the version is derived."""
    text = spread("{devices=[8,1]<=[8]}", more=', mhlo.spmd_output_sharding = "{replicated}"')
    noted = text.replace("@SPMDFullToShardShape", "@Sharding").replace("@SPMDShardToFullShape", "@Sharding")
    noted = noted.replace("2x4x", "16x4x")
    lowered = hl.lower(noted, one_device=True, target="iree")
    assert not [word for word in (*ON_ONE, "spmd") if word in lowered.text]
    assert "tf.aliasing_output = 0" in lowered.text
    verdict = hl.verify(noted, lowered)
    assert verdict.ok, verdict.lines()
    assert not lowered.refused


@pytest.mark.parametrize(
    "text",
    [
        "{manual}",
        "{devices=[2,4]<=[8] last_tile_dims={manual}}",
        "{maximal device=0}",
        "{devices=[8]<=[8]}",
        "{{replicated}}",
    ],
)
def test_tilings_that_are_not_read(text):
    """Parts that are manual, one device, another rank and tuples are none."""
    assert tiles_of(text, 2, 8) is None


# --- what is rejected ---


def module_of(body, *, axes='"x"=2', attributes="mhlo.num_partitions = 2 : i32", result="tensor<4xf32>"):
    """A module of one argument, whose body is StableHLO."""
    return f"""module @m attributes {{{attributes}}} {{
      sdy.mesh @mesh = <[{axes}]>
      func.func public @main(%x: tensor<4xf32>) -> {result} {{
        {body}
        return %r : {result}
      }}
    }}"""


SUM = """"stablehlo.all_reduce"(%NAME) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
  replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32> }) : (TYPE) -> TYPE"""


def summed(name, kind="tensor<2xf32>"):
    """An all_reduce."""
    return SUM.replace("NAME", name).replace("TYPE", kind)


def own(body, dims='{"x"}', back='{"x"}', axes='"x"'):
    """A computation for one device along an axis."""
    return f"""%r = sdy.manual_computation(%x) in_shardings=[<@mesh, [{dims}]>] out_shardings=[<@mesh, [{back}]>]
      manual_axes={{{axes}}} (%own: tensor<2xf32>) {{
        {body}
        sdy.return %t : tensor<2xf32>
      }} : (tensor<4xf32>) -> tensor<4xf32>"""


UNEQUAL = f"""%i = stablehlo.constant dense<0.0> : tensor<f32>
  %first = stablehlo.slice %own [0:1] : (tensor<2xf32>) -> tensor<1xf32>
  %most = stablehlo.reshape %first : (tensor<1xf32>) -> tensor<f32>
  %k, %t = stablehlo.while(%k0 = %i, %c = %own) : tensor<f32>, tensor<2xf32>
  cond {{ %p = stablehlo.compare LT, %k0, %most : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1> }}
  do {{ %one = stablehlo.constant dense<1.0> : tensor<f32>
    %k1 = stablehlo.add %k0, %one : tensor<f32>
    %d = {summed("c")}
    stablehlo.return %k1, %d : tensor<f32>, tensor<2xf32> }}"""
NUMBER = """%p = stablehlo.partition_id : tensor<ui32>
  %q = stablehlo.convert %p : (tensor<ui32>) -> tensor<f32>
  %t = stablehlo.broadcast_in_dim %q, dims = [] : (tensor<f32>) -> tensor<2xf32>"""
REPLICAS = "mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 2 : i32"
REJECTED = {
    "of one device": (
        module_of(f"%r = {summed('x', 'tensor<4xf32>')}"),
        "stablehlo.all_reduce: not taken to one device: the module is written for one of 2 devices, and has that one's "
        "arguments",
    ),
    "of replicas": (
        module_of(f"%r = {summed('x', 'tensor<4xf32>')}", attributes=REPLICAS),
        "stablehlo.all_reduce: not taken to one device: the module runs in 2 replicas, each with arguments of its own",
    ),
    "turns differ": (
        module_of(own(UNEQUAL)),
        "stablehlo.while: not taken to one device: devices may leave the loop at different turns",
    ),
    "some axes": (
        module_of(own(NUMBER), axes='"x"=2, "y"=2', attributes="mhlo.num_partitions = 4 : i32"),
        "stablehlo.partition_id: not taken to one device: its device is known along some axes only",
    ),
    "other axes": (
        module_of(own(f"%t = {summed('own')}"), axes='"x"=2, "y"=2', attributes="mhlo.num_partitions = 4 : i32"),
        "stablehlo.all_reduce: not taken to one device: its groups have devices for which the program is not written",
    ),
    "order of devices": (
        module_of(own("%t = stablehlo.negate %own : tensor<2xf32>"), axes='"x"=2], device_ids=[1, 0'),
        "sdy.manual_computation: not taken to one device: its mesh has devices in another order",
    ),
    "some axes of gspmd": (
        spread("{devices=[8,1]<=[8]}")
        .replace('"{manual}"} : (tensor<2', '"{manual}"} : (tensor<2')
        .replace(
            'Shape(%s) {mhlo.sharding = "{manual}"}',
            'Shape(%s) {mhlo.sharding = "{devices=[1,1,8]<=[8] last_tile_dims={manual}}"}',
        ),
        "stablehlo.custom_call @SPMDFullToShardShape: not taken to one device: it is written for one device along some "
        "axes only",
    ),
    "padded": (
        spread("{devices=[8,1]<=[8]}", "3x4"),
        "stablehlo.custom_call @SPMDFullToShardShape: not taken to one device: its parts are padded: tensor<3x4xf32>",
    ),
    "another op of Shardy": (
        module_of('%r = sdy.all_slice [{"x"}] %x out_sharding=<@mesh, [{"x"}]> : tensor<4xf32>'),
        "sdy.all_slice: not taken to one device: its meaning on one device is not known",
    ),
}


@pytest.mark.parametrize("name", REJECTED)
def test_what_has_no_meaning_on_one_device_is_rejected(name):
    """The error names the op, its place, the reason and what to do."""
    text, told = REJECTED[name]
    with pytest.raises(hl.NotLoweredError) as error:
        hl.lower(text, name="m.mlir", one_device=True)
    where, next_step = str(error.value).splitlines()
    assert where.split(": ", 1)[1] == told
    assert where.startswith("m.mlir:")
    assert next_step == "  next:    export the module for one device, or run it on its devices with jax.jit"


def test_more_ops_than_asked_for_are_rejected():
    """Copies for all devices count as those of a loop do."""
    source = exported(*PROGRAMS["own"])
    assert hl.lower(source, one_device=True, max_unroll=18).text  # a constant, its broadcast; eight times two ops
    with pytest.raises(hl.NotLoweredError, match="more than 17 ops\n  next:    --max-unroll allows more"):
        hl.lower(source, one_device=True, max_unroll=17)


# --- the verdict ---


def test_a_wrong_version_for_one_device_differs():
    """Of one part the sign is turned; the right version is equal in runs on eight devices and on one."""
    source = exported(*PROGRAMS["sum"])
    lowered = hl.lower(source, one_device=True)
    verdict = hl.verify(source, lowered, runs=1)
    assert verdict.ok, verdict.lines()
    assert verdict.plain.how == "bit for bit, on 8 devices and on one, integers below 8"
    assert "the same operations" in verdict.summary()
    wrong = lowered.text.replace("[14:16, 0:4]", "[13:15, 0:4]")
    assert wrong != lowered.text
    assert hl.verify(source, wrong, one_device=True, level="regions", runs=1).differs


def test_a_version_without_shardings_is_compared_as_a_program_for_all_devices():
    """It is derived, run on one device and on eight, and a wrong one differs; without the option it lost shardings."""
    source = exported(*PROGRAMS["constraints"])
    lowered = hl.lower(source, one_device=True)
    verdict = hl.verify(source, lowered, runs=1)
    assert verdict.ok, verdict.lines()
    assert verdict.module.how == "bit for bit on one device, and one on 8 devices within a bound"
    assert hl.verify(source, lowered.text.replace("dense<3>", "dense<2>"), one_device=True, level="regions").differs
    assert "loses sdy.sharding" in str(hl.verify(source, lowered.text, level="regions").lines())


ALONE = """%d = stablehlo.add %own, %own : tensor<4xf32>
  %sum = SUM
  %p = stablehlo.partition_id : tensor<ui32>
  %q = stablehlo.convert %p : (tensor<ui32>) -> tensor<f32>
  %b = stablehlo.broadcast_in_dim %q, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %t = stablehlo.subtract %sum, %b : tensor<4xf32>"""


def test_a_computation_for_one_device_is_taken_out_where_a_target_rejects_it():
    """A mesh of one device: no option is needed, the judge reads it as what stands in it, and a wrong one differs."""
    body = ALONE.replace("SUM", summed("d", "tensor<4xf32>"))
    body = body.replace("[[0, 1]]> : tensor<1x2xi64>", "0> : tensor<1x1xi64>")
    one = "mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32"
    source = module_of(own(body).replace("tensor<2xf32>", "tensor<4xf32>"), axes='"x"=1', attributes=one)
    lowered = hl.lower(source, target="iree")
    assert not [word for word in ON_ONE if word in lowered.text]
    assert not lowered.refused
    verdict = hl.verify(source, lowered.text, level="regions")
    assert (verdict.ok, verdict.summary()) == (True, "the same operations")
    assert hl.verify(source, lowered.text.replace("subtract", "add"), level="regions").differs
    assert "sdy.manual_computation" in hl.lower(source).text
    replicas = source.replace("num_replicas = 1", "num_replicas = 2")
    assert "stablehlo.all_reduce" in [one.op for one in hl.lower(replicas, target="iree").refused]


def test_what_the_judge_takes_for_one_device_is_for_one():
    """Groups of several devices stay, also where no count is said, and so does a number where none is."""
    for text in (module_of(own(f"%t = {summed('own')}")), module_of(own(NUMBER))):
        assert on_one_device(text) is None
    for attributes in ("", "mhlo.num_partitions = 1 : i32"):
        text = module_of(f"%r = {summed('x', 'tensor<4xf32>')}", attributes=attributes)
        assert on_one_device(text) is None
        alone = on_one_device(text.replace("dense<[[0, 1]]> : tensor<1x2xi64>", "dense<0> : tensor<1x1xi64>"))
        assert alone is not None
        assert "all_reduce" not in alone
        number = module_of("%r = stablehlo.partition_id : tensor<ui32>", attributes=attributes, result="tensor<ui32>")
        assert (on_one_device(number) is None) == (not attributes)


def test_an_exported_for_several_devices_becomes_one_for_one():
    """It is called without a mesh, and gives what the function gives."""
    fn, given = PROGRAMS["sum"]
    one = hl.lower(exported(fn, given), one_device=True).exported
    [x] = arrays(given)
    assert one.nr_devices == 1
    assert np.allclose(one.call(x), x.reshape(8, 2, 4).sum(1).sum(0), rtol=1e-5)


@pytest.mark.sweep
def test_iree_runs_a_program_of_eight_devices_on_one(tmp_path):
    """It gives what XLA gives of the original."""
    pytest.importorskip("iree.compiler")
    built = hl.build(exported(*PROGRAMS["exchange"]), tmp_path / "m.vmfb", target="iree", one_device=True)
    assert built.on.ok
    assert "right in" in built.on.summary()


@pytest.mark.parametrize("source", [exported(*PROGRAMS["sum"]), TILINGS["grid"]], ids=["shardy", "gspmd"])
def test_a_report_names_the_option(source):
    """Where it is all that a target asks for."""
    assert survey(hl.read(source), options=hl.Options("iree")).best_options == ("--one-device",)
    alone = survey(hl.read(source), options=hl.Options("iree", one_device=True))
    assert alone.refused == ()
    assert any("for all of them on one" in note for note in alone.notes)
