"""Partitioned modules: shardings are kept, results are the same, no cache is gathered that was not before (trap 30).

The programs run on eight CPU devices, in a process of their own (`on_eight_devices.py`).
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import jax
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from untyped_mlir import function, module

import hlo_lower as hl
from hlo_lower.base import child as answering_child
from hlo_lower.verify.read import partitions

DRIVER = Path(__file__).parent / "on_eight_devices.py"

IN_PLACE = (
    *(f"decode over {axes}" for axes in ("heads", "batch", "both")),
    *(f"prefill over {axes}" for axes in ("heads", "batch", "both")),
    "clipped decode over length",
    *(f"ragged {how} over {axes}" for how in ("rows", "vmap") for axes in ("heads", "batch", "both", "length")),
    *("paged over heads", "gradient over hidden"),
    # A compare with an iota over rows that are spread is made where they are.
    *("paged over slots by last_writer", "gradient over vocab by one_hot_dot", "gradient over vocab by compare_reduce"),
)
"""Programs whose lowered form moves nothing between devices that the original does not move."""

CACHE, SLOTS, TABLE = "all-gather f32[8,8,64,16]", "all-gather f32[512,8,16]", "all-gather s32[256,64]"
GATHERING = {
    # A guard reads the old rows at a runtime place in a dim that is spread.
    **{f"{what} over length": {CACHE: 1} for what in ("decode", "prefill")},
    # A loop over points in a dim that is spread: each iteration writes on one of the devices.
    "paged over slots by while": {SLOTS: 1},
    "gradient over vocab by while": {TABLE: 1},
    # The original sums on each device and then over them, in another order; the lowered form keeps the order.
    "gradient over tokens by while": {"all-gather s32[32,1,64]": 1, "all-gather s32[32,1]": 1},
}
"""Programs whose lowered form gathers what the original does not, and what it gathers."""

JIT, UNREDUCED = "jit over heads", "unreduced sum/shardy/xla"

QUICK = [
    *("decode over heads/shardy/xla", "prefill over heads/shardy/xla", "ragged vmap over batch/shardy/xla"),
    *("paged over slots by while/shardy/xla", "paged over slots by last_writer/shardy/xla"),
    *("decode over heads/gspmd/xla", f"{JIT}/shardy/xla"),
]
EVERY = [
    *(f"{p}/{by}/{oob}" for p in (*IN_PLACE, *GATHERING) for by in ("shardy", "gspmd") for oob in ("xla", "spec")),
    f"{JIT}/shardy/xla",
]
CASES = [name if name in QUICK else pytest.param(name, marks=pytest.mark.sweep) for name in EVERY]


@cache
def _all_of(names):
    environment = {k: v for k, v in os.environ.items() if k not in ("XLA_FLAGS", "JAX_NUM_CPU_DEVICES")}
    command = [sys.executable, str(DRIVER), *names]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def seen(name):
    """What a case showed; all quick ones run together."""
    quick = (*QUICK, UNREDUCED)
    return _all_of(quick if name in quick else (name,))[name]


@pytest.mark.parametrize("name", CASES)
def test_a_partitioned_program_computes_the_same_and_stays_in_its_places(name):
    """Same bits in the same places on eight devices, shardings kept, and only the stated collectives added."""
    found, program = seen(name), name.split("/")[0]
    assert (found["equal"], found["placed"]) == (True, True)
    assert all(found["rules"])
    if program in (*IN_PLACE, *GATHERING):
        assert (found["devices"], found["shardings"]) == (8, True)
        assert found["annotations"][0] == found["annotations"][1]
    added = Counter(found["after"]) - Counter(found["before"])
    gathered = {what: n for what, n in added.items() if what.startswith("all-gather")}
    assert gathered == GATHERING.get(program, {})
    if program not in GATHERING:
        assert not added


def test_trap_50_an_unreduced_result_adds_up_to_the_sum():
    """The parts that eight devices hold add up to what those of the original do, the operand counted once."""
    found = seen(UNREDUCED)
    assert found["sums"] == [[109, 112, 115, 136]] * 2
    assert found["unreduced"] == [True, True]
    assert all(found["rules"])


UNREDUCED_HERE = '<@mesh, [{}], unreduced={"x"}>'
HELD = f"%r = sdy.sharding_constraint %q {UNREDUCED_HERE}"
OPEN = r"(%\w+) = sdy.sharding_constraint %\w+(?:#\d)? <@mesh, \[\{\?\}\]>"
SPREAD = 'mhlo.num_partitions = 4 : i32} {\nsdy.mesh @mesh = <["x"=4]>'


def partial(behind="return %s", attribute="", result=""):
    """A sum, what stands behind it, and what is said of it and of the function's result."""
    sharding = "{sdy.sharding = #sdy.sharding<@mesh, [%s]>}"
    indices, updates = (sharding % spread for spread in ('{"x"}, {}', '{"x"}'))
    arguments = f"%o: 4xi32, %i: 8x1xi32 {indices}, %u: 8xi32 {updates}"
    body = f"%s = scatter(%o, %i, %u) <inserted=[0], to=[0], ivd=1> {{add}}\n{behind}"
    text = module(arguments, body, more=function("private @same", "%r: 4xi32", ""))
    text = text.replace("}) : (", f"}}) {attribute} : (").replace(
        "-> tensor<4xi32> {", f"-> (tensor<4xi32> {result}) {{", 1
    )
    return f"module attributes {{{SPREAD}\n{text}}}"


PLACES = {
    "a constraint": {"behind": HELD.replace("%q", "%s")},
    "the function's result": {"result": f"{{sdy.sharding = #sdy.sharding{UNREDUCED_HERE}}}"},
    "the scatter": {"attribute": f"{{sdy.sharding = #sdy.sharding_per_value<[{UNREDUCED_HERE}]>}}"},
    "behind a reshape": {"behind": f"%p = reshape %s -> 2x2xi32; %q = reshape %p -> 4xi32\n{HELD}"},
    "behind a call": {"behind": f"%q = call @same(%s) -> 4xi32\n{HELD}"},
    "behind a loop": {
        "behind": f"%q = while(%v = %s) cond {{%f = constant false : i1; return %f}} do {{return %v}}\n{HELD}"
    },
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("rule", ["chosen", "while"])
def test_trap_50_what_says_unreduced_does_not_reach_what_was_lowered(place, rule):
    """Between the lowered form and the place that says so stands a constraint that names no such axis."""
    text = hl.lower(partial(**PLACES[place]), prefer=("while",) if rule == "while" else ()).text
    [held] = re.findall(OPEN, text)
    assert "stablehlo.scatter" not in text
    assert len(re.findall(re.escape(held) + r"\b", text)) == 2  # where it is made, and its one use
    assert text.count("unreduced") == 1


def test_what_is_not_unreduced_is_not_held():
    """Nothing is added where no sharding says so, nor to a scatter whose sums another operation uses up."""
    for behind in ("return %s", f"%q = add %s, %s\n{HELD}"):
        assert not re.findall(OPEN, hl.lower(partial(behind)).text)


def test_unreduced_in_another_language_is_refused():
    """GSPMD has no constraint that says no more than that: such a scatter is an error, or kept on request."""
    text = partial(attribute='{mhlo.sharding = "{unreduced}"}')
    with pytest.raises(hl.NotLoweredError) as error:
        hl.lower(text, name="m.mlir")
    assert str(error.value).splitlines() == [
        "m.mlir:4:6: stablehlo.scatter: its result is unreduced, a part of the sum on each device; "
        "a lowering gives each the whole",
        '  facts:   "{unreduced}"',
        "  nearest: unreduced results are lowered where Shardy says so: sdy.sharding, sdy.sharding_constraint",
        "  next:    --keep-unsupported leaves it a scatter; or remove `unreduced` from the sharding",
    ]
    kept = hl.lower(text, keep_unsupported=True)
    assert kept.text.count('"stablehlo.scatter"(') == 1


def sharded(attribute, form, kinds=("f32",)):
    """A module of a scatter, of a tensor of each element type, with an attribute; and how it is lowered."""
    windows, numbers = ("20x", "window=[1], ivd=1") if form == "loop" else ("", "window=[0]")

    def each(text):
        return ", ".join(text.format(n=n, kind=kind) for n, kind in enumerate(kinds))

    arguments = f"{each('%o{n}: 8x4x{kind}')}, %i: {windows}1xi32, {each(f'%u{{n}}: {windows}4x{{kind}}')}"
    scattered, currents = f"{each('%o{n}')}, %i, {each('%u{n}')}", each("%c{n}")
    region = f"{currents}, {each('%d{n}')}: return {currents}" if form == "operand" else "assign"
    line = f"%r:{len(kinds)} = scatter({scattered}) <{numbers}, inserted=[0], to=[0]> {{{region}}}"
    text = module(arguments, line, each("%r#{n}")).replace("}) : (", f"}}) {{{attribute}}} : (")
    head = 'module attributes {mhlo.num_partitions = 8 : i32} {\nsdy.mesh @mesh = <["x"=4, "y"=2]>\n'
    return hl.lower(f"{head}{text}}}", prefer=("while",) if form == "loop" else ()).text


INNER = '<@mesh, [{}, {"x", ?}p1], replicated={"y"}>'
SHARDINGS = {
    "shardy": (f"sdy.sharding = #sdy.sharding_per_value<[{INNER}]>", f"sdy.sharding_constraint VALUE {INNER}"),
    "gspmd": ('mhlo.sharding = "{devices=[1,8]<=[8]}"', "stablehlo.custom_call @Sharding(VALUE)"),
    "shardy in hlo": (
        r'mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@mesh, [{}, {\22x\22}]>]>"}',
        "stablehlo.custom_call @Sharding(VALUE)",
    ),
}


def annotated(text):
    """The lines of a module that speak of shardings, without the mesh."""
    return [line.strip() for line in text.splitlines() if "sharding" in line.lower()]


@pytest.mark.parametrize("language", SHARDINGS)
@pytest.mark.parametrize("form", ["one operation", "loop", "operand"])
def test_trap_30_the_sharding_of_a_scatter_moves_to_what_gives_its_result(form, language):
    """It is an attribute of the operation that gives the result, or a constraint on it where none does alone."""
    attribute, constraint = SHARDINGS[language]
    text = sharded(attribute, form)
    [line] = annotated(text)
    if form == "one operation":
        assert "= stablehlo.dynamic_update_slice " in line
        assert attribute in line
    else:
        value = "%arg0" if form == "operand" else re.search(r" = .*?(%\w+(#\d+)?)", line)[1]
        assert constraint.replace("VALUE", value) in line
        assert language == "shardy" or attribute in line
    assert f"return {line.split(' = ')[0]} " in text
    assert "sdy.mesh @mesh" in text


EACH = {
    "shardy": (
        'sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>, <@mesh, [{"y"}, {}]>]>',
        *('<@mesh, [{}, {"x"}]>', '<@mesh, [{"y"}, {}]>'),
    ),
    "gspmd": (
        'mhlo.sharding = "{{devices=[1,8]<=[8]}, {devices=[8,1]<=[2,4]T(1,0)}}"',
        *('"{devices=[1,8]<=[8]}"', '"{devices=[8,1]<=[2,4]T(1,0)}"'),
    ),
    "gspmd, one for both": ('mhlo.sharding = "{replicated}"', '"{replicated}"', '"{replicated}"'),
    "shardy in hlo": (
        r'mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding_per_value<[<@mesh, [{}, {\22x\22}]>,'
        r' <@mesh, [{\22y\22}, {}]>]>"}',
        *(r"[<@mesh, [{}, {\22x\22}]>]>", r"[<@mesh, [{\22y\22}, {}]>]>"),
    ),
}


@pytest.mark.parametrize("form", ["one operation", "loop"])
@pytest.mark.parametrize("language", EACH)
def test_each_result_of_a_variadic_scatter_gets_its_own_sharding(form, language):
    """The list of shardings is taken apart: the first result's to the first value, the second's to the second."""
    attribute, *own = EACH[language]
    text = sharded(attribute, form, ("f32", "i32"))
    returned = [line for line in text.splitlines() if "return %" in line][-1]
    names = returned.split("return ")[1].split(" : ")[0].split(", ")
    lines = annotated(text)
    assert len(lines) == 2
    for name, line, sharding in zip(names, lines, own, strict=True):
        assert line.startswith(f"{name} = ")
        assert sharding in line


MESH = AbstractMesh((8,), ("x",), axis_types=(AxisType.Auto,))


def spec(shape, *axes, dtype="float32"):
    """A sharded spec, without a device."""
    return jax.ShapeDtypeStruct(shape, dtype, sharding=NamedSharding(MESH, PartitionSpec(*axes)))


def by_hand(cache, rows, position):
    """A cache write within shard_map, and a sum over all devices."""

    def own(cache, rows, position):
        written = cache.at[:, :, position].set(rows)
        return written, jax.lax.psum(written.sum(), "x")

    places = PartitionSpec(None, "x")
    specs = {"in_specs": (places, places, PartitionSpec()), "out_specs": (places, PartitionSpec())}
    return jax.shard_map(own, mesh=MESH, **specs)(cache, rows, position)


@pytest.fixture(scope="module")
def exported_by_hand():
    """The export of `by_hand`."""
    specs = (spec((2, 8, 16, 4), None, "x"), spec((2, 8, 4), None, "x"), spec((), dtype="int32"))
    return jax.export.export(jax.jit(by_hand))(*specs)


def test_a_scatter_inside_a_manual_computation(exported_by_hand):
    """It is lowered where it stands, on the shard's own shape, and the text around it stays."""
    lowered = hl.lower(exported_by_hand)
    assert [record.operand_shape for record in lowered.records] == [(2, 1, 16, 4)]
    before, after = exported_by_hand.mlir_module(), lowered.text
    for kept in (r"sdy\.mesh @mesh = <.*?>", r"in_shardings=.*? manual_axes=[^ ]+", r"replica_groups = dense<.*?>"):
        assert re.findall(kept, before) == re.findall(kept, after) != []
    assert "stablehlo.scatter" not in lowered.text
    assert lowered.exported.nr_devices == 8


@pytest.mark.usefixtures("judged_by_runs")
def test_trap_30_a_sharding_constraint_in_a_region_is_no_part_of_what_it_computes():
    """`shard_map` over one of two axes constrains the scalars of the region: it is a sum, and verified."""
    mesh = AbstractMesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    add = lambda table, places, rows: table.at[places].add(rows, mode="drop")  # noqa: E731
    rows, whole = PartitionSpec("x"), NamedSharding(mesh, PartitionSpec("x"))
    specs = [jax.ShapeDtypeStruct(s, d, sharding=whole) for s, d in (((6, 3), "f4"), ((4,), "i4"), ((4, 3), "f4"))]
    sharded = jax.shard_map(add, mesh=mesh, in_specs=(rows,) * 3, out_specs=rows, axis_names={"x"})
    exported = jax.export.export(jax.jit(sharded))(*specs)
    text = exported.mlir_module()
    region = text[text.index("stablehlo.scatter") :].split("})")[0]
    assert "sdy.sharding_constraint" in region
    lowered = hl.lower(exported)
    assert [(record.kind, record.combiner) for record in lowered.records] == [("reduction_add", "add")]
    verdict = hl.verify(exported, lowered, level="regions")
    assert verdict.ok, verdict.lines()
    assert {"XLA", "reference"} <= {judge for region in verdict.regions for judge in region.judges}


def test_a_part_for_one_device_has_no_program_on_one(exported_by_hand):
    """Collectives and manual computations cannot be run on one device; shardings alone can be left out."""
    assert partitions.on_one_device(exported_by_hand.mlir_module()) is None
    spread = spec((4, 8), None, "x")
    constrained = jax.jit(lambda c: jax.lax.with_sharding_constraint(c.at[0].add(c[1]), spread.sharding))
    text = jax.export.export(constrained)(spread).mlir_module()
    alone = partitions.on_one_device(text)
    assert ("sdy" in text, "sdy" in alone, "num_partitions" in alone) == (True, False, False)
    assert alone.count('"stablehlo.scatter"(') == 1
    groups = "<{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) ->"
    sum_over = f'"stablehlo.cross-replica-sum"(%x) {groups}'
    text = module("%x: 4xf32", "%r = abs %x").replace("stablehlo.abs %x :", sum_over)
    assert partitions.on_one_device(text) is None  # the older op is of several devices as all_reduce is


def verified(fn, *specs, change=None):
    """The verdict on an export and its lowering, or a changed lowering."""
    exported = jax.export.export(jax.jit(fn))(*specs)
    lowered = hl.lower(exported)
    return hl.verify(exported, change(lowered.text) if change else lowered, runs=1)


ROW_AT = (spec((16, 8), None, "x"), spec((8,), "x"), spec((), dtype="int32"))


def test_a_partitioned_module_is_run_on_all_of_its_devices():
    """It is run whole on one device for the bits, and on eight within a bound."""
    verdict = verified(lambda cache, row, position: cache.at[position].set(row), *ROW_AT)
    assert (verdict.ok, verdict.module.status) == (True, "equal")
    assert verdict.module.how == "bit for bit on one device, and one on 8 devices within a bound"


@pytest.mark.sweep
def test_a_module_written_for_one_of_its_devices_is_run_on_all_of_them(exported_by_hand):
    """There is no program on one device, so the bits are compared on eight."""
    verdict = hl.verify(exported_by_hand, hl.lower(exported_by_hand), runs=1)
    assert (verdict.ok, verdict.module.status) == (True, "equal")
    assert verdict.module.how == "bit for bit on 8 devices"
    assert "module: equal in 1 run, bit for bit on 8 devices" in verdict.lines()


@pytest.mark.sweep
def test_a_wrong_partitioned_module_differs():
    """A second version that writes another row is caught by running it, and its scatter named."""
    changed = lambda text: text.replace("dense<16> : tensor<i32>", "dense<15> : tensor<i32>")  # noqa: E731
    verdict = verified(lambda cache, row, at: cache.at[at - 17].set(row), *ROW_AT, change=changed)
    assert (verdict.ok, verdict.module.status) == (False, "differs")
    assert [place.number for place in verdict.module.on_path] == [1]


def test_a_module_that_cannot_run_on_its_devices_says_so(monkeypatch):
    """Where the child dies the bits are compared on one device, and the verdict says what was not run, and why."""
    monkeypatch.setattr(answering_child.sys, "executable", "/bin/false")
    answering_child._of_process.cache_clear()
    try:
        verdict = verified(lambda cache, row, position: cache.at[position].set(row), *ROW_AT)
    finally:
        answering_child._of_process.cache_clear()
    assert (verdict.ok, verdict.module.how) == (True, "bit for bit")
    [told] = verdict.module.not_exercised
    assert told == "the module on 8 devices: the process that ran it on 8 devices died"


@pytest.mark.sweep
def test_a_sum_over_devices_is_not_taken_for_a_difference():
    """XLA sums the updates of each device first and so rounds differently; a right lowering verifies all the same."""
    specs = (spec((64, 8)), spec((32,), "x", dtype="int32"), spec((32, 8), "x"))
    assert verified(lambda table, tokens, rows: table.at[tokens].add(rows), *specs).ok
