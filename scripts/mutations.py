"""Inputs for `fuzz_inputs.py`: damaged copies of real modules in every form that is read, and made-up extremes."""

import gzip
import random
import re
from collections.abc import Sequence
from pathlib import Path

import jax
import jax.numpy as jnp

from hlo_lower.ir import mlir
from hlo_lower.ir.export.load import load_function
from hlo_lower.ir.export.trace import export
from hlo_lower.ir.reader import read
from hlo_lower.ir.writer import to_bytecode, to_portable_artifact

NUMBERS = (b"-1", b"0", b"1", b"7", b"?", b"2147483648", b"9223372036854775807", b"18446744073709551616")
NUMBERS += (b"1000000000000", b"9" * 30)
TOKEN = re.compile(rb'[%#@!^]?[A-Za-z_][\w.$-]*|\d+|"[^"\n]*"|\S')
STEPS = (1, 1, 1, 2, 3, 6, 20)
LENGTHS = (1, 1, 2, 4, 16, 64)
DEPTH = 100_000

Forms = dict[str, bytes]


def forms_of(name: str, exported: "jax.export.Exported") -> Forms:
    """A function in every form, by "name.form"."""
    graph = read(exported)
    forms = {
        "pretty": mlir.print_module(graph.module).encode(),
        "located": mlir.print_module(graph.module, locations=True).encode(),
        "generic": mlir.print_module(graph.module, generic=True).encode(),
        "bytecode": to_bytecode(graph),
        "portable": to_portable_artifact(graph),
        "exported": bytes(exported.serialize()),
    }
    return {f"{name}.{form}": data for form, data in forms.items()}


def small_seeds() -> Forms:
    """Three small functions: a row written, a sum in a loop, a product beside a sort and a branch."""
    table, row, numbers = (jax.ShapeDtypeStruct(*a) for a in (((8, 4), "float32"), ((4,), "float32"), ((3,), "int32")))

    def write(cache: jax.Array, new: jax.Array, position: jax.Array) -> jax.Array:
        return cache.at[position].set(new).sum()

    def loop(x: jax.Array, indices: jax.Array, new: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda carry, i: (carry.at[i].add(new), i), x, indices)[0]

    def branch(x: jax.Array, i: jax.Array) -> jax.Array:
        return jnp.sort(x.at[i].mul(2.0)) + jax.lax.cond(i[0] > 0, lambda a: a, lambda a: a * 2, x)

    position = jax.ShapeDtypeStruct((), "int32")
    forms = forms_of("write", export(write, table, row, position))
    return (
        forms | forms_of("loop", export(loop, table, numbers, row)) | forms_of("branch", export(branch, row, numbers))
    )


def model_seeds(names: Sequence[str]) -> Forms:
    """Models, each as FILE.py:FN."""
    forms: Forms = {}
    for name in names:
        forms |= forms_of(Path(name).name, load_function(name).export(None))
    return forms


def mutated(seed: int, seeds: Forms) -> tuple[str, bytes]:
    """One input: what it is made of, and its bytes. Equal seeds give equal inputs."""
    rng = random.Random(seed)
    extremes = EXTREMES
    if rng.random() < 0.05:
        name = rng.choice(sorted(extremes))
        return name, extremes[name]
    names = sorted(seeds)
    name = rng.choice(names)
    data = bytearray(seeds[name])
    for _ in range(rng.choice(STEPS)):
        if data:
            _damage(rng, data, seeds[rng.choice(names)])
    return name, bytes(data)


def _damage(rng: random.Random, data: bytearray, other: bytes) -> None:
    """One change: of a bit, a byte, a span, or a token."""
    at, length = rng.randrange(len(data)), rng.choice(LENGTHS)
    kind = rng.randrange(10)
    if kind == 0:
        data[at] ^= 1 << rng.randrange(8)
    elif kind == 1:
        data[at] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
    elif kind == 2:
        del data[at : at + length]
    elif kind == 3:
        data[at:at] = data[at : at + length] * rng.choice((1, 1, 2, 50))
    elif kind == 4:
        start = rng.randrange(max(len(other), 1))
        data[at : at + length] = other[start : start + rng.choice((1, 8, 64, 512))]
    elif kind == 5:
        del data[at:]
    elif kind == 6:
        data[at:at] = rng.randbytes(length)
    else:
        _damage_token(rng, data, kind)


def _damage_token(rng: random.Random, data: bytearray, kind: int) -> None:
    window = rng.randrange(max(len(data) - 4096, 1))  # of a large module a part: finding all tokens takes long
    found = [match.span() for match in TOKEN.finditer(bytes(data), window, window + 4096)]
    numbers = [(start, end) for start, end in found if data[start:end].isdigit()]
    if kind == 7 and numbers:
        start, end = rng.choice(numbers)
        data[start:end] = rng.choice(NUMBERS)
    elif kind == 8 and found:
        (start, end), (first, last) = rng.choice(found), rng.choice(found)
        data[start:end] = data[first:last]
    elif found:
        start, end = rng.choice(found)
        del data[start:end]


def _around(body: str, type_: str = "f32") -> bytes:
    arguments = f"%x: tensor<4xf32>, %y: {type_}"
    return (
        f"func.func public @main({arguments}) -> tensor<4xf32> {{\n{body}\n  return %x : tensor<4xf32>\n}}\n".encode()
    )


def _attribute(value: str) -> bytes:
    return _around(f'  "stablehlo.optimization_barrier"() {{a = {value}}} : () -> ()')


def _located(location: str) -> bytes:
    return _around("").replace(b"return %x : tensor<4xf32>", f"return %x : tensor<4xf32> loc({location})".encode())


def _extremes() -> Forms:
    n = DEPTH
    return {
        "deep_parentheses": b"(" * n,
        "deep_modules": b"module { " * n + b"} " * n,
        "deep_regions": _around('"stablehlo.case"(%i) ({ ' * n),
        "deep_tensors": _around("", "tensor<" * n + "f32" + ">" * n),
        "deep_tuples": _around("", "tuple<" * n + "f32" + ">" * n),
        "deep_lists": _attribute("[" * n + "]" * n),
        "deep_dictionaries": _attribute("{a=" * n + "1" + "}" * n),
        "deep_dense": _around(f"  %c = stablehlo.constant dense<{'[' * n}1.0{']' * n}> : tensor<4xf32>"),
        "deep_locations": _located('"x"(' * n + '"x"' + ")" * n),
        "deep_call_sites": _located('callsite("x" at ' * n + '"x"' + ")" * n),
        "deep_affine": _attribute(f"affine_map<(d0) -> ({'-' * n}d0)>"),
        "deep_function_types": _attribute("(" * n + ") -> f32" * n),
        "chained_aliases": "".join(f"#a{i} = [{f'#a{i - 1}' if i else 1}]\n" for i in range(n)).encode()
        + _attribute(f"#a{n - 1}"),
        "location_of_bytes": _located(r'"\FF":1:1'),
        "name_of_bytes": _around("").replace(b"@main", rb'@"\FF"'),
        "huge_dim": _around("", f"tensor<{'1' * 400}xf32>"),
        "many_elements": _around("  %c = stablehlo.constant dense<0.0> : tensor<1000000000000xf32>"),
        "wide_integer": _around("  %c = stablehlo.constant dense<0> : tensor<100000xi16777215>"),
        "own_call": _around("  %r = call @main(%x, %y) : (tensor<4xf32>, f32) -> tensor<4xf32>"),
        "missing_callee": _around("  %r = call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>"),
        "no_main": b"module { func.func private @f() { return } }",
        "two_mains": _around("") * 2,
        "resource_cut_off": _around("") + b"\n{-# dialect_resources: {",
        "resource_of_bad_size": _around("  %c = stablehlo.constant dense_resource<w> : tensor<4xf32>")
        + b'{-# dialect_resources: { builtin: { w: "0x0300000000" } } #-}',
        "unknown_op": _around('  "torch.aten.add"() : () -> ()'),
        "nothing": b"",
        "zeros": bytes(1000),
        "ones": b"\xff" * 1000,
        "bytecode_of_ones": b"ML\xefR" + b"\xff" * 1000,
        "bytecode_of_zeros": b"ML\xefR" + bytes(1000),
        "portable_of_no_version": b"ML\xefR\x0d\x05StableHLO_v\0" + bytes(50),
        "compressed": gzip.compress(_around("")),
        "utf_16": _around("").decode().encode("utf-16"),
    }


EXTREMES = _extremes()
"""Inputs that no mutation finds: nesting, sizes and names beyond what a parser expects."""
