"""Run partitioned programs on eight CPU devices, before and after lowering, and say as JSON what was seen.

Not a test itself: `test_shardings.py` starts it in a process of its own, because how many devices a CPU is has to be
said before JAX starts. The arguments are names of cases, each "PROGRAM/PARTITIONER/POLICY", or with the rule that is
preferred, "PROGRAM by RULE/PARTITIONER/POLICY".
"""

import json
import os
import re
import sys

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlo_lower as hl

BATCH, HEADS, LENGTH, DIM, ROWS = 8, 8, 64, 16, 8
SLOTS, HIDDEN = 512, 64
TABLE = (256, HIDDEN)
COLLECTIVE = re.compile(r"= (\S+?)(?:\{[\d,]*\})? (all-gather|all-to-all|collective-permute|all-reduce)(?:-start)?\(")


CACHE, ROW, RUN = (BATCH, HEADS, LENGTH, DIM), (BATCH, HEADS, DIM), (BATCH, HEADS, ROWS, DIM)
AXES = {"heads": (None, "x"), "batch": ("x",), "both": ("y", "z"), "length": (None, None, "x")}
WRITES = {  # what is written into a cache of keys, the shape of its rows, and whether each sequence has a position
    "decode": (lambda cache, rows, at: cache.at[:, :, at].set(rows), ROW, False),
    "clipped decode": (lambda cache, rows, at: cache.at[:, :, at].set(rows, mode="clip"), ROW, False),
    "ragged rows": (lambda cache, rows, at: cache.at[jnp.arange(len(cache)), :, at].set(rows), ROW, True),
    "ragged vmap": (jax.vmap(lambda cache, rows, at: cache.at[:, at].set(rows)), ROW, True),
    "prefill": (lambda cache, rows, start: cache.at[:, :, start + jnp.arange(rows.shape[2])].set(rows), RUN, False),
}


paged, gradient = (lambda slots, rows, at: slots.at[at].set(rows)), (lambda table, rows, at: table.at[at].add(rows))
"""Rows at numbered slots; rows added to a table, some of them several times: of integers, whose sums have no order."""

f32, i32 = (lambda shape, *axes, kind=kind: (shape, axes, kind) for kind in ("float32", "int32"))
"""Floats or integers of a shape, spread over axes of the mesh."""


def write_over(name, over):
    """A write into a cache that is spread so."""
    (fn, rows, per_sequence), axes = WRITES[name], AXES[over]
    own = axes[:2] if over != "length" else ()
    return fn, f32(CACHE, *axes), f32(rows, *own), i32((BATCH,), *axes[:1]) if per_sequence else i32(())


PROGRAMS = {
    **{f"{name} over {over}": write_over(name, over) for name in WRITES for over in AXES},
    "paged over heads": (paged, f32((SLOTS, *ROW[1:]), None, "x"), f32((32, *ROW[1:]), None, "x"), i32((32,))),
    "paged over slots": (paged, f32((SLOTS, *ROW[1:]), "x"), f32((32, *ROW[1:])), i32((32,))),
    "gradient over hidden": (gradient, i32(TABLE, None, "x"), i32((32, HIDDEN), None, "x"), i32((32,), None)),
    "gradient over vocab": (gradient, i32(TABLE, "x"), i32((32, HIDDEN)), i32((32,))),
    "gradient over tokens": (gradient, i32(TABLE), i32((32, HIDDEN), "x"), i32((32,), "x")),
}


def specs_of(program):
    """A program's arguments as sharded specs, the eight devices in a line or as a grid."""
    sizes, names = ((2, 4), ("y", "z")) if "y" in program[1][1] else ((8,), ("x",))
    mesh = jax.make_mesh(sizes, names, axis_types=(AxisType.Auto,) * len(sizes))
    return [jax.ShapeDtypeStruct(s, d, sharding=NamedSharding(mesh, P(*axes))) for s, axes, d in program[1:]]


def arguments_of(specs, seed):
    """Arguments in their places; integers without dims or of the last argument are positions in and out of bounds."""
    rng = np.random.default_rng(seed)
    size = specs[0].shape[2] if len(specs[0].shape) == 4 else specs[0].shape[0]
    arrays = []
    for number, spec in enumerate(specs):
        if number == len(specs) - 1:
            array = rng.integers(-size - 2, size + 2, spec.shape).astype(spec.dtype)
        elif np.dtype(spec.dtype).kind == "i":
            array = rng.integers(-(2**31), 2**31, spec.shape).astype(spec.dtype)
        else:
            array = rng.standard_normal(spec.shape).astype(spec.dtype)
        arrays.append(jax.device_put(array, spec.sharding))
    return arrays


def compare(call, lowered_call, specs):
    """Whether two calls give the same, in the same places; their collectives; if not, once more at level 0."""
    lowerings = [jax.jit(f).lower(*specs) for f in (call, lowered_call)]
    compiled = [lowering.compile() for lowering in lowerings]
    equal, placed = same(compiled, specs)
    if not equal:
        still = {"xla_backend_optimization_level": 0, "xla_disable_hlo_passes": "algsimp,fusion"}
        equal, placed = same([lowering.compile(compiler_options=still) for lowering in lowerings], specs)
    before, after = (sorted(f"{kind} {shape}" for shape, kind in COLLECTIVE.findall(c.as_text())) for c in compiled)
    return {"equal": equal, "placed": placed, "before": before, "after": after}


def same(compiled, specs):
    """Whether the results of two compiled functions have the same bits, and lie in the same places."""
    equal = placed = True
    for seed in range(2):
        results = [jax.tree.leaves(c(*arguments_of(specs, seed))) for c in compiled]
        equal &= all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in zip(*results, strict=True))
        placed &= all(a.sharding.is_equivalent_to(b.sharding, a.ndim) for a, b in zip(*results, strict=True))
    return equal, placed


def run(name):
    """One case."""
    program, partitioner, oob = name.split("/")
    if program == "jit over heads":
        return run_jit()
    if program == "unreduced sum":
        return run_unreduced()
    program, _, preferred = program.partition(" by ")
    fn, *_ = PROGRAMS[program]
    specs = specs_of(PROGRAMS[program])
    jax.config.update("jax_use_shardy_partitioner", partitioner == "shardy")
    jitted = jax.jit(fn, donate_argnums=0, out_shardings=specs[0].sharding)
    exported = jax.export.export(jitted)(*specs)
    jax.config.update("jax_use_shardy_partitioner", True)  # called so, XLA goes by what the module holds
    lowered = hl.lower(exported, oob=oob, prefer=(preferred,) if preferred else ())
    return {
        "rules": [record.rule for record in lowered.records],
        "devices": lowered.exported.nr_devices,
        "shardings": [str(s) for s in lowered.exported.in_shardings_hlo] == [str(s) for s in exported.in_shardings_hlo],
        "annotations": [exported.mlir_module().count("sharding"), lowered.text.count("sharding")],
        **compare(exported.call, lowered.exported.call, specs),
    }


def run_jit():
    """A cache write under hl.jit, of sharded arguments, its result constrained inside."""
    specs = specs_of(PROGRAMS["decode over heads"])

    def held(*args):
        return jax.lax.with_sharding_constraint(WRITES["decode"][0](*args), specs[0].sharding)

    fast = hl.jit(held)
    return {"rules": [r.rule for r in fast.lowered(*specs).records], **compare(held, fast, specs)}


def run_unreduced():
    """A sum of rows that are spread, left as a part on each device: what the parts add up to, before and after."""
    mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Explicit,))
    numbers, places = np.arange(16, dtype=np.int32) - 3, (np.arange(16) % 5 - 1).astype(np.int32)

    def total(numbers, places):
        table = jnp.full((4,), 100, numbers.dtype)
        return table.at[places].add(numbers, mode="drop", out_sharding=P(None, unreduced={"x"}))

    with jax.set_mesh(mesh):
        spread = NamedSharding(mesh, P("x"))
        specs = [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=spread) for a in (numbers, places)]
        exported = jax.export.export(jax.jit(total))(*specs)
        lowered = hl.lower(exported)
        arrays = [jax.device_put(a, spread) for a in (numbers, places)]
        results = [jax.jit(call)(*arrays) for call in (exported.call, lowered.exported.call)]
    sums = [sum(np.asarray(shard.data).astype(int) for shard in r.addressable_shards).tolist() for r in results]
    return {
        "rules": [record.rule for record in lowered.records],
        "sums": sums,
        "unreduced": ["unreduced={'x'}" in str(r.sharding.spec) for r in results],
    }


if __name__ == "__main__":
    print(json.dumps({name: run(name) for name in sys.argv[1:]}))
