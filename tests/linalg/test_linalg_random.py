"""Random windows, convolutions and products: what has its name reads the elements that jaxlib's generic op read."""

import random
import re
from contextlib import suppress
from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

import hlo_lower as hl
from hlo_lower.lowering.linalg import lower, structured_ops
from hlo_lower.ops.targets import target_of

pytestmark = pytest.mark.sweep
ir, passes = (pytest.importorskip(f"iree.compiler.{name}") for name in ("ir", "passmanager"))

PLAIN = replace(target_of("linalg"), named=(), composites=())
MAP = re.compile(r"affine_map<\([^)]*\) -> \(([^>]*)\)>")


def generics(text):
    """Generic ops after MLIR's own generalization: maps up to the names of loops, kinds of loops, regions, types."""
    with ir.Context():
        module = ir.Module.parse(text)
        passes.PassManager.parse("builtin.module(linalg-generalize-named-ops)").run(module.operation)
        found, pending = [], [module.operation]
        while pending:
            op = pending.pop()
            found += [canonical(op)] if op.name == "linalg.generic" else []
            pending += [inner.operation for region in op.regions for block in region for inner in block.operations]
        return found


def canonical(op):
    """Loops are numbered as the result has them; those that are summed come behind, in their own order."""
    maps = [MAP.search(str(one))[1].split(", ") for one in op.attributes["indexing_maps"]]
    kinds = ["reduction" in str(one) for one in op.attributes["iterator_types"]]
    kept = [int(dim) for dim in re.findall(r"d(\d+)", ", ".join(maps[-1]))]
    order = [*kept, *(dim for dim in range(len(kinds)) if dim not in kept)]
    renamed = [
        [sorted(re.sub(r"d(\d+)", lambda m: f"l{order.index(int(m[1]))}", t) for t in i.split(" + ")) for i in one]
        for one in maps
    ]
    region = [inner.operation.name for inner in op.regions[0].blocks[0].operations]
    return renamed, [kinds[dim] for dim in order], region, [str(value.type) for value in op.operands]


def convolution(rng):
    """A convolution with axes in any order."""
    spatial = "XYZ"[: rng.choice([1, 2, 3])]
    letters = [first + spatial for first in ("NC", "OI", "NC")]
    letters = ["".join(rng.sample(one, len(one))) if rng.random() < 0.5 else one for one in letters]
    groups = rng.choice([1, 1, 2])
    sizes = {"N": 2, "C": 4, "O": 4, "I": 4 // groups, **{axis: rng.choice([6, 7, 9]) for axis in spatial}}
    kernel = {**sizes, **{axis: rng.choice([1, 2, 3]) for axis in spatial}}
    steps, dilations = ([rng.choice([1, 2]) for _ in spatial] for _ in range(2))

    def function(a, b):
        how = {"rhs_dilation": dilations, "dimension_numbers": tuple(letters), "feature_group_count": groups}
        return jax.lax.conv_general_dilated(a, b, steps, "VALID", **how)

    return function, [[sizes[axis] for axis in letters[0]], [kernel[axis] for axis in letters[1]]]


def pooling(rng):
    """Windows along spatial axes, channels first or last."""
    op, first = rng.choice([(jax.lax.max, -jnp.inf), (jax.lax.min, jnp.inf), (jax.lax.add, 0.0)])
    rank, first_axis = rng.choice([3, 4, 5]), rng.choice([1, 2])
    axes = range(first_axis, rank - 2 + first_axis)
    window, steps, dilations = (
        [rng.choice(of) if d in axes else 1 for d in range(rank)] for of in ((2, 3), (1, 2), (1, 2))
    )
    return (
        lambda a: jax.lax.reduce_window(a, first, op, window, steps, "VALID", window_dilation=dilations),
        [[rng.choice([6, 7]) for _ in range(rank)]],
    )


def product(rng):
    """An einsum of two operands."""
    left = rng.sample("abcd", rng.choice([2, 3, 4]))
    common = rng.sample(left, rng.choice([1, 2]))
    right = [*common, *rng.sample("ghi", rng.choice([0, 1, 2]))]
    rng.shuffle(right)
    result = [axis for axis in dict.fromkeys([*left, *right]) if axis not in common or rng.random() < 0.5]
    rng.shuffle(result)
    spec = f"{''.join(left)},{''.join(right)}->{''.join(result)}"
    return lambda a, b: jnp.einsum(spec, a, b), [["abcdghi".index(axis) + 2 for axis in one] for one in (left, right)]


def both(program, monkeypatch):
    """The generic ops of a program as jaxlib has them, and of its named form; whether these differ in their texts."""
    function, shapes = program
    source = jax.jit(function).lower(*(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes)).as_text()
    named = hl.lower(source, target=PLAIN).text
    with monkeypatch.context() as patched:
        patched.setattr(lower, "specialize", lambda graph: None)
        plain = hl.lower(source, target=PLAIN).text
    return generics(plain), generics(named), plain != named


@pytest.mark.parametrize("made", [convolution, pooling, product])
def test_a_name_changes_no_element_and_no_order(made, monkeypatch):
    """Maps, summed loops in their order, and regions are those of jaxlib's ops, up to the names of loops."""
    rng, count = random.Random(1), 0
    for _ in range(40):
        plain, named, is_other = both(made(rng), monkeypatch)
        assert plain == named
        count += is_other
    assert count >= 5


def test_a_wrong_name_is_found(monkeypatch):
    """The comparison can fail: strides and dilations in each other's place."""
    steps = structured_ops.Windowed.steps
    monkeypatch.setattr(structured_ops.Windowed, "steps", lambda *given: (found := steps(*given)) and found[::-1])
    rng, wrong = random.Random(1), 0
    for _ in range(20):
        with suppress(hl.NotLoweredError):  # where the sizes tell already
            plain, named, _ = both(pooling(rng), monkeypatch)
            wrong += plain != named
    assert wrong
