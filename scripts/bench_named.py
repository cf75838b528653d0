"""Time decoder steps with and without named ops on the consumers that have kernels for them, and print the table.

    python scripts/bench_named.py --on litert      # plain, written, each composite alone; XNNPACK, one thread
    python scripts/bench_named.py --on iree        # StableHLO, linalg generic, named, named without softmax
    python scripts/bench_named.py --on iree --length 32 --hidden 64 --heads 4 --prompt 8 --rounds 2   # whether it works

Two layers with a cache of `--length` positions, in two manners: as PyTorch exports them (heads before positions, keys
repeated for groups of queries, gelu), and as JAX projects write them (positions before heads, einsums, silu). Decode
takes one token, prefill `--prompt`. The versions of a step run in turn, in one process; a figure is the least
processor time of the rounds, in ms, since the machine may have other work; with it the ops of the file, and into how
many parts the delegate takes them. Results are held against the plain step's.

Exit code 1: a version gave other results, or was refused.
"""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import app, flags, logging
from benchmark.timing import CLOCK, interleave

import hlo_lower as hl
from hlo_lower.consumers import iree, litert
from hlo_lower.ops.targets import target_of

_ON = flags.DEFINE_enum("on", "litert", ["litert", "iree"], "The consumer.")
_HIDDEN = flags.DEFINE_integer("hidden", 1024, "Width.", lower_bound=4)
_HEADS = flags.DEFINE_integer("heads", 16, "Heads of queries; a quarter as many of keys.", lower_bound=4)
_LENGTH = flags.DEFINE_integer("length", 1024, "Positions of the caches.", lower_bound=1)
_PROMPT = flags.DEFINE_integer("prompt", 128, "Tokens of a prefill.", lower_bound=1)
_ROUNDS = flags.DEFINE_integer("rounds", 15, "Rounds of each measurement.", lower_bound=1)
_STEPS = flags.DEFINE_list(
    "steps", [f"{m}:{t}" for m in ("torch", "jax") for t in ("decode", "prefill")], "Which steps."
)
_JSON = flags.DEFINE_string("json", None, "Write the figures to this file too.")

Arrays = list[np.ndarray]
LAYERS, GROUPS, FAR = 2, 4, 2e-3


def norm(x: jax.Array, weight: jax.Array) -> jax.Array:
    """RMS norm."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * weight


def rope(x: jax.Array, angles: jax.Array) -> jax.Array:
    """Halves turned by angles [positions, half], x with positions ahead of its last axis."""
    a, b = jnp.split(x, 2, -1)
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    return jnp.concatenate([a * cos - b * sin, b * cos + a * sin], -1)


def torch_attention(q: jax.Array, k: jax.Array, v: jax.Array, seen: jax.Array) -> jax.Array:
    """[1, heads, tokens, size] with keys that are repeated for groups."""
    batch, kv, length, size = k.shape
    k, v = (
        jnp.broadcast_to(x[:, :, None], (batch, kv, GROUPS, length, size)).reshape(batch, -1, length, size)
        for x in (k, v)
    )
    scores = jnp.einsum("bnqh,bnkh->bnqk", q, k) / np.sqrt(size)
    out = jnp.einsum("bnqk,bnkh->bnqh", jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1), v)
    return out.transpose(0, 2, 1, 3).reshape(1, out.shape[2], -1)


def jax_attention(q: jax.Array, k: jax.Array, v: jax.Array, seen: jax.Array) -> jax.Array:
    """[1, tokens, heads, size], groups of queries as an axis."""
    tokens, heads, size = q.shape[1:]
    q = q.reshape(1, tokens, heads // GROUPS, GROUPS, size)
    scores = jnp.einsum("bqngh,bknh->bngqk", q, k) / np.sqrt(size)
    probabilities = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf), axis=-1)
    return jnp.einsum("bngqk,bknh->bqngh", probabilities, v).reshape(1, tokens, -1)


def step(manner: str, tokens: int) -> tuple[Callable[..., Any], list[tuple[int, ...]]]:
    """A step of a manner, and the shapes of what it takes: x, for each layer caches and weights; then a position."""
    hidden, heads, length = _HIDDEN.value, _HEADS.value, _LENGTH.value
    size, kv, ffn = hidden // heads, heads // GROUPS, 4 * hidden
    is_torch = manner == "torch"
    cache = (1, kv, length, size) if is_torch else (1, length, kv, size)
    layer = [cache, cache, (hidden,), (hidden, hidden), (hidden, kv * size), (hidden, kv * size), (hidden, hidden)]
    layer += [(hidden,), (hidden, ffn), (ffn, hidden)]

    def moved(x: jax.Array, count: int) -> jax.Array:
        x = x.reshape(1, tokens, count, size)
        return x.transpose(0, 2, 1, 3) if is_torch else x

    def function(x: jax.Array, *given: jax.Array) -> tuple[jax.Array, ...]:
        position, caches = given[-1], list[jax.Array]()
        rows = position + jnp.arange(tokens, dtype=jnp.int32)
        angles = rows[:, None] * (10000.0 ** -jnp.linspace(0, 1, size // 2, dtype=jnp.float32))
        angles = angles if is_torch else angles[:, None]
        seen = jnp.arange(length)[None] <= rows[:, None]
        for n in range(LAYERS):
            keys, values, ahead, wq, wk, wv, wo, behind, up, down = given[n * len(layer) : (n + 1) * len(layer)]
            h = norm(x, ahead)
            q, k, v = rope(moved(h @ wq, heads), angles), rope(moved(h @ wk, kv), angles), moved(h @ wv, kv)
            start = (0, 0, position, 0) if is_torch else (0, position, 0, 0)
            keys, values = (jax.lax.dynamic_update_slice(c, r, start) for c, r in ((keys, k), (values, v)))
            caches += [keys, values]
            x = x + (torch_attention if is_torch else jax_attention)(q, keys, values, seen) @ wo
            h = norm(x, behind) @ up
            x = x + (jax.nn.gelu(h, approximate=False) if is_torch else jax.nn.silu(h)) @ down
        return (x, *caches)

    return function, [(1, tokens, hidden), *layer * LAYERS]


def versions(text: str) -> Iterator[tuple[str, str]]:
    """The versions of a module, by their names."""
    if _ON.value == "litert":
        yield "plain", hl.lower(text, target="litert").text
        raised = hl.raise_named(text, target="litert")
        yield "written", hl.lower(raised.text, target="litert").text
        for op in sorted({one.name for one in raised.spelled if one.composite}):
            yield f"{op} alone", hl.lower(hl.raise_named(text, target="litert", only=[op]).text, target="litert").text
        return
    linalg = target_of("linalg")
    yield "StableHLO", hl.lower(text, target="iree").text
    yield "generic", hl.lower(text, target="linalg", linalg_ops="generic").text
    yield "named", hl.lower(text, target="linalg").text
    yield "named, no softmax", hl.lower(text, target=replace(linalg, named=(), composites=frozenset())).text


def runner(text: str) -> tuple[Callable[[Sequence[np.ndarray]], Arrays], str]:
    """A version compiled for one thread, and what is told of it."""
    if _ON.value == "litert":
        tensorflow: Any = import_module("tensorflow")
        binary, inputs, outputs = litert.convert_text(text)
        interpreter = tensorflow.lite.Interpreter(model_content=binary, num_threads=1)
        interpreter.allocate_tensors()  # the delegate takes its parts
        signature = interpreter.get_signature_runner(litert.SIGNATURE)
        names = [op["op_name"] for op in interpreter._get_ops_details()]
        taken, parts = set(signature.get_input_details()), names.count("DELEGATE")

        def run(arguments: Sequence[np.ndarray]) -> Arrays:
            told = signature(**{n: a for n, a in zip(inputs, arguments, strict=True) if n in taken})
            return [told[name] for name in outputs]

        return run, f"{len(names) - parts} ops, {parts} parts"
    compiler, runtime = import_module("iree.compiler.tools"), import_module("iree.runtime")
    binary = compiler.compile_str(text, input_type="auto", extra_args=list(iree.FLAGS))
    config = runtime.Config("local-sync")
    loaded = runtime.load_vm_module(runtime.VmModule.copy_buffer(config.vm_instance, binary), config)
    held = list[Any]()

    def run_there(arguments: Sequence[np.ndarray]) -> Arrays:
        if not held:  # weights and caches are on the device
            held.extend(runtime.asdevicearray(config.device, a) for a in arguments)
        return [np.asarray(result.to_host()) for result in loaded["main"](*held)[:1]]

    return run_there, ""


def measured(manner: str, tokens: int) -> Iterator[tuple[str, float, str, float]]:
    """For each version of a step its name, milliseconds, what is told of it, and how far its result is off."""
    function, shapes = step(manner, tokens)
    generator = np.random.default_rng(0)
    arguments = [generator.standard_normal(shape, np.float32) / np.sqrt(max(1, shape[-2:][0])) for shape in shapes]
    arguments = [a.astype(np.float32) for a in arguments] + [np.int32(_LENGTH.value // 2)]
    text = jax.jit(function).lower(*arguments).as_text()
    made = {name: runner(version) for name, version in versions(text)}
    wanted = jax.jit(function)(*arguments)[0]
    off = {name: float(np.max(np.abs(run(arguments)[0] - wanted))) for name, (run, _) in made.items()}
    calls = {name: (lambda run=run: run(arguments)) for name, (run, _) in made.items()}
    os.environ[CLOCK] = "processor"
    times = interleave(calls, _ROUNDS.value, sample=0.02)
    for name, (_, told) in made.items():
        yield name, times[name].low * 1e3, told, off[name]


def main(_: Sequence[str]) -> None:
    """Print a row for each version of each step."""
    logging.set_verbosity(logging.WARNING)
    rows = list[dict[str, Any]]()
    print(f"| step | version | ms | of {'plain' if _ON.value == 'litert' else 'generic'} | |\n|---|---|---|---|---|")
    for name_of_step in _STEPS.value:
        manner, kind = name_of_step.split(":")
        found = list(measured(manner, 1 if kind == "decode" else _PROMPT.value))
        first = next(ms for name, ms, _, _ in found if name in ("plain", "generic"))
        for name, ms, told, off in found:
            print(f"| {manner}, {kind} | {name} | {ms:.3f} | {ms / first:.2f} | {told} |", flush=True)
            rows.append({"step": name_of_step, "version": name, "ms": ms, "told": told, "off": off})
    if _JSON.value:
        with open(_JSON.value, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    if far := [row for row in rows if not row["off"] < FAR]:
        raise SystemExit(f"other results: {far}")


if __name__ == "__main__":
    app.run(main)
