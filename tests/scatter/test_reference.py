"""The NumPy scatter: by hand where the specification gives the answer, against XLA and the interpreter elsewhere."""

from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from untyped_mlir import SHORT_NUMBERS, module, of

from hlo_lower.verify.judges.definitions import ScatterNumbers, count_hits, scatter
from hlo_lower.verify.judges.interpreter import Interpreter
from hlo_lower.verify.run import Executable

F32 = (np.dtype(np.float32),)
I32 = np.dtype(np.int32)


def numbers(window=(), inserted=(), batching=(), indices_batching=(), to=(), ivd=1) -> ScatterNumbers:
    """Dimension numbers, empty where not given."""
    return ScatterNumbers(tuple(window), tuple(inserted), tuple(batching), tuple(indices_batching), tuple(to), ivd)


def assign(currents: list[Any], updates: list[Any]) -> list[Any]:
    """The update wins."""
    return updates


def add(currents: list[Any], updates: list[Any]) -> list[Any]:
    """Current plus update."""
    return [c + u for c, u in zip(currents, updates, strict=True)]


ROWS = numbers(window=[1], inserted=[0], to=[0])
POINTS = numbers(inserted=[0], to=[0])
TILE = numbers(window=[0], to=[0], ivd=0)
I64 = np.iinfo(np.int64)
EMPTY = np.zeros((3, 0), np.int32)
CASES = {
    "of two rows at one index the later one stays": (
        [[0, 0], [0, 0]], [[0], [0]], [[1, 2], [5, 6]], ROWS, assign, [[5, 6], [0, 0]],
    ),
    "two updates to one element are both added": ([0, 0, 4], [[1], [1]], [1, 2], POINTS, add, [0, 3, 4]),
    "K = 0: three updates to one place compound (trap 11)": (
        [0, 0], EMPTY, [1, 2, 3], numbers(inserted=[0]), add, [6, 0],
    ),
    "N = 0 writes nothing": ([1, 2], np.zeros((0, 1), np.int32), np.zeros(0), POINTS, assign, [1, 2]),
    "a window of extent 0 writes nothing (trap 10)": ([[1, 2]], [[0]], np.zeros((1, 0)), ROWS, assign, [[1, 2]]),
    "a rank-0 operand compounds N updates (trap 11)": (4, EMPTY, [1, 2, 3], numbers(), add, 10),
    "ivd = rank of the indices means vectors of one component": (
        [0, 0, 0, 0], [1, 3], [7, 9], POINTS, assign, [0, 7, 0, 9],
    ),
    "an index vector in front, its components permuted (traps 11, 12)": (
        np.zeros((3, 2)), [[0, 1], [1, 2]], [7, 9], numbers(inserted=[0, 1], to=[1, 0], ivd=0), assign,
        [[0, 0], [7, 0], [0, 9]],
    ),
    "an inserted dim without an index component is written at 0 (trap 12)": (
        np.zeros((2, 2)), [[1]], [7], numbers(inserted=[0, 1], to=[1]), assign, [[0, 7], [0, 0]],
    ),
    # two windows of three at 0 and 1: updates[w, n]
    "where window dims come first, a whole window is written before the next position (trap 45)": (
        np.zeros(4), [[0], [1]], [[1, 4], [2, 5], [3, 6]], numbers(window=[0], to=[0]), assign, [1, 4, 5, 6],
    ),
    # a batch coordinate is the position's
    **{
        f"batching dims count without the index vector at {ivd} (trap 13)": (
            np.zeros((2, 3)), np.moveaxis(np.asarray([[[2], [0]], [[1], [1]]]), 2, ivd), [[5, 6], [7, 8]],
            numbers([], [1], [0], [int(ivd == 0)], [1], ivd), add, [[6, 0, 5], [0, 15, 0]],
        )
        for ivd in (0, 1, 2)
    },
    # a negative index does not wrap, and the extremes of i64 do not overflow (traps 5, 9)
    **{
        f"an index of {index} is dropped": ([1, 2, 3], np.asarray([[index]]), [9], POINTS, assign, [1, 2, 3])
        for index in (-1, 3, I64.min, I64.max)
    },
    **{
        f"the largest {dtype.__name__} is far out, not -1 (trap 6)": (
            [1, 2, 3], np.asarray([np.iinfo(dtype).max], dtype), [7, 8], TILE, assign, [1, 2, 3],
        )
        for dtype in (np.uint8, np.uint32, np.uint64)
    },
}  # fmt: skip


def result(operand, indices, updates, dims, combine, oob):
    """The one result of a scatter of int32."""
    arrays = [np.asarray(a, np.int32) for a in (operand, updates)]
    [found] = scatter([arrays[0]], np.asarray(indices), [arrays[1]], dims, combine, [I32], oob=oob)
    return found.tolist()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_the_specification_says(case):
    """The answer by hand, which is one under both policies."""
    *given, expected = case
    assert [result(*given, oob) for oob in ("xla", "spec")] == [expected, expected]


@pytest.mark.parametrize(("oob", "expected"), [("xla", [1, 2, 3]), ("spec", [1, 2, 7])])
def test_an_overhanging_window(oob, expected):
    """The policies differ in an overhanging window, and only there (trap 1)."""
    assert expected == result([1, 2, 3], [2], [7, 8], TILE, assign, oob)


def test_swapped_currents_do_not_see_each_others_results():
    """A region that returns the two current values swapped swaps them, in new arrays: no result is read after it is
    written."""
    operands = [np.asarray([1, 2], np.int32), np.asarray([3, 4], np.int32)]
    updates = [np.zeros(1, np.int32), np.zeros(1, np.int32)]
    results = scatter(operands, np.asarray([[0]]), updates, POINTS, lambda c, _: [c[1], c[0]], [I32, I32], oob="xla")
    assert [r.tolist() for r in results] == [[3, 2], [1, 4]]
    assert [o.tolist() for o in operands] == [[1, 2], [3, 4]]


def test_a_promoting_region_converts_operands_and_updates():
    """Operand and updates are converted to the region's type before anything is added (trap 24)."""
    operand, updates = np.asarray([100], np.int8), np.asarray([100, 100], np.int8)
    [found] = scatter([operand], np.asarray([[0], [0]]), [updates], POINTS, add, [I32], oob="xla")
    assert (np.dtype(np.int32), [300]) == (found.dtype, found.tolist())


def test_hits_are_counted():
    """Windows are counted inside, overhanging and outside, and the most written element by whole windows."""
    dims = numbers(window=[1], to=[0])
    hits = count_hits((5,), np.asarray([[0], [1], [4], [-2], [-3], [5], [2**40]]), (7, 2), dims)
    assert (hits.inside, hits.overhanging, hits.outside, hits.most) == (2, 1, 4, 2)
    # repeated windows count each time; without positions or elements nothing is hit
    assert count_hits((4,), np.asarray([[1], [1], [1]]), (3,), POINTS).most == 3
    assert count_hits((4,), np.zeros((0, 1), np.int32), (0,), POINTS).most == 0
    assert count_hits((2, 0), np.asarray([[1], [2]]), (2, 0), ROWS).most == 0


# --- against XLA and the interpreter ---

LAYOUTS = {
    "points": ((7,), (5, 1), (5,), POINTS),
    "rows": ((7, 3), (5, 1), (5, 3), ROWS),
    "columns": ((3, 7), (5, 1), (3, 5), numbers(window=[0], inserted=[1], to=[1])),
    "tiles": ((6, 7), (4, 2), (4, 2, 3), numbers(window=[1, 2], to=[1, 0])),
    "one tile": ((6, 7), (2,), (2, 3), numbers(window=[0, 1], to=[0, 1], ivd=0)),
    "batched": ((2, 7, 3), (2, 4, 1), (2, 4, 3), numbers([2], [1], [0], [0], [1], 2)),
    "two batches": ((2, 7, 3), (3, 4, 2, 1), (3, 4, 2), numbers([], [1], [0, 2], [2, 0], [1], 3)),
    "pinned": ((3, 7), (5, 1), (5,), numbers(inserted=[0, 1], to=[1])),
    "implicit": ((7,), (2, 3), (2, 3), numbers(inserted=[0], to=[0], ivd=2)),
}
COMBINE = {"assign": assign, "add": add}
EACH = pytest.mark.parametrize(("layout", "combiner"), list(product(LAYOUTS, COMBINE)))


def cases(layout):
    """Arguments of a layout, with indices that reach 3 beyond the operand on both sides."""
    operand_shape, indices_shape, updates_shape, _ = LAYOUTS[layout]
    for seed in range(4):
        rng = np.random.default_rng(seed)
        operand = rng.standard_normal(operand_shape).astype(np.float32)
        indices = rng.integers(-3, 10, indices_shape).astype(np.int32)
        yield operand, indices, rng.standard_normal(updates_shape).astype(np.float32)


def in_jax(dims: ScatterNumbers, combiner: str, operand, indices, updates):
    """The same scatter by jax.lax, which has the index vector last."""
    explicit = indices[..., None] if dims.index_vector_dim == indices.ndim else indices
    fields = (dims.update_window_dims, dims.inserted_window_dims, dims.scatter_dims_to_operand_dims)
    batching = dims.input_batching_dims, dims.scatter_indices_batching_dims
    op = {"assign": jax.lax.scatter, "add": jax.lax.scatter_add}[combiner]
    mode = jax.lax.GatherScatterMode.FILL_OR_DROP
    return op(operand, explicit, updates, jax.lax.ScatterDimensionNumbers(*fields, *batching), mode=mode)


def as_module(layout: str, combiner: str, index: str = "i32") -> str:
    """A layout as a StableHLO module."""
    operand, indices, updates, dims = LAYOUTS[layout]
    fields = ((short, getattr(dims, name)) for short, name in SHORT_NUMBERS.items())
    told = ", ".join(f"{short}={value if short == 'ivd' else list(value)}" for short, value in fields if value != ())
    arguments = f"%o: {of(operand, 'f32')}, %i: {of(indices, index)}, %u: {of(updates, 'f32')}"
    return module(arguments, f"%r = scatter(%o, %i, %u) <{told}> {{{combiner}}}")


@EACH
def test_policy_xla_is_what_xla_does(layout, combiner):
    """Under policy "xla" every element is XLA's, bit for bit."""
    dims = LAYOUTS[layout][3]
    compiled = jax.jit(partial(in_jax, dims, combiner))
    for operand, indices, updates in cases(layout):
        [expected] = scatter([operand], indices, [updates], dims, COMBINE[combiner], F32, oob="xla")
        assert expected.tobytes() == np.asarray(compiled(jnp.asarray(operand), indices, updates)).tobytes()


@pytest.fixture(scope="module")
def interpreter():
    """One interpreter child for this file."""
    with Interpreter() as child:
        yield child


@EACH
def test_policy_spec_is_what_the_interpreter_does(layout, combiner, interpreter):
    """Under policy "spec" every element is the reference interpreter's, bit for bit."""
    for operand, indices, updates in cases(layout):
        [expected] = scatter([operand], indices, [updates], LAYOUTS[layout][3], COMBINE[combiner], F32, oob="spec")
        [actual] = interpreter.run(as_module(layout, combiner), [operand, indices, updates])
        assert expected.tobytes() == actual.tobytes()


def test_a_variadic_scatter_is_what_xla_does():
    """Two operands of different types, each combined in its own way, are XLA's bit for bit."""
    lines = """%s, %t = scatter(%a, %b, %i, %x, %y) <inserted=[0], to=[0], ivd=1> { %c, %d, %u, %v:
          %n = add %c, %u; %m = maximum %d, %v; return %n, %m
        }
        return %s, %t"""
    executable = Executable(module("%a: 7xf32, %b: 7xi32, %i: 5x1xi32, %x: 5xf32, %y: 5xi32", lines), "exact")
    for seed in range(4):
        rng = np.random.default_rng(seed)
        operands = [rng.standard_normal(7).astype(np.float32), rng.integers(-9, 9, 7).astype(np.int32)]
        updates = [rng.standard_normal(5).astype(np.float32), rng.integers(-9, 9, 5).astype(np.int32)]
        indices = rng.integers(-2, 9, (5, 1)).astype(np.int32)

        def combine(c, u):
            return [c[0] + u[0], np.maximum(c[1], u[1])]

        expected = scatter(operands, indices, updates, POINTS, combine, [*F32, I32], oob="xla")
        actual = executable.run([*operands, indices, *updates])
        assert [e.tobytes() for e in expected] == [a.tobytes() for a in actual]


@pytest.mark.parametrize("dtype", ["ui8", "ui32", "ui64"])
def test_unsigned_indices_are_what_xla_does(dtype):
    """Unsigned indices, the largest one too, are XLA's bit for bit."""
    operand_shape, indices_shape, updates_shape, dims = LAYOUTS["rows"]
    numpy_type = np.dtype(dtype.replace("ui", "uint"))
    largest = np.iinfo(numpy_type).max
    indices = np.asarray([0, largest, 6, 7, largest - 1], numpy_type).reshape(indices_shape)
    operand, updates = np.ones(operand_shape, np.float32), np.full(updates_shape, 3, np.float32)
    [expected] = scatter([operand], indices, [updates], dims, add, F32, oob="xla")
    [actual] = Executable(as_module("rows", "add", dtype), "exact").run([operand, indices, updates])
    assert expected.tobytes() == actual.tobytes()
