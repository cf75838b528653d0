"""The NumPy scatter: by hand where the specification gives the answer, against XLA and the interpreter elsewhere."""

from functools import partial
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from hlo_lower.verify.judges.definitions import ScatterNumbers, count_hits, scatter
from hlo_lower.verify.judges.interpreter import Interpreter
from hlo_lower.verify.run import Executable

F32 = (np.dtype(np.float32),)
I32 = np.dtype(np.int32)


def numbers(window=(), inserted=(), batching=(), indices_batching=(), to_operand=(), ivd=1) -> ScatterNumbers:
    """Dimension numbers, empty where not given."""
    return ScatterNumbers(
        tuple(window), tuple(inserted), tuple(batching), tuple(indices_batching), tuple(to_operand), ivd
    )


def assign(currents: list[Any], updates: list[Any]) -> list[Any]:
    """The update wins."""
    return updates


def add(currents: list[Any], updates: list[Any]) -> list[Any]:
    """Current plus update."""
    return [c + u for c, u in zip(currents, updates, strict=True)]


def of(operand, indices, updates, dims, combine=assign, oob="xla"):
    """The one result of a scatter of int32."""
    arrays = [np.asarray(a, np.int32) for a in (operand, updates)]
    [result] = scatter([arrays[0]], np.asarray(indices), [arrays[1]], dims, combine, [I32], oob=oob)
    return result.tolist()


ROWS = numbers(window=[1], inserted=[0], to_operand=[0])
POINTS = numbers(inserted=[0], to_operand=[0])
TILE = numbers(window=[0], to_operand=[0], ivd=0)


def test_rows_are_written_in_order_and_the_last_one_wins():
    """Of two rows at one index the later one stays."""
    assert of([[0, 0], [0, 0]], [[0], [0]], [[1, 2], [5, 6]], ROWS) == [[5, 6], [0, 0]]


def test_addition_compounds():
    """Two updates to one element are both added."""
    assert of([0, 0, 4], [[1], [1]], [1, 2], POINTS, add) == [0, 3, 4]


@pytest.mark.parametrize(("oob", "expected"), [("xla", [1, 2, 3]), ("spec", [1, 2, 7])])
def test_an_overhanging_window(oob, expected):
    """The policies differ in an overhanging window, and only there (trap 1)."""
    assert expected == of([1, 2, 3], [2], [7, 8], TILE, oob=oob)


@pytest.mark.parametrize("oob", ["xla", "spec"])
@pytest.mark.parametrize("index", [-1, 3, np.iinfo(np.int64).min, np.iinfo(np.int64).max])
def test_an_index_outside_is_dropped(index, oob):
    """A negative index does not wrap, and the extremes of i64 do not overflow (traps 5, 9)."""
    assert of([1, 2, 3], np.asarray([[index]], np.int64), [9], POINTS, oob=oob) == [1, 2, 3]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64])
def test_unsigned_indices_are_unsigned(dtype):
    """The largest unsigned index is far out, not -1 (trap 6)."""
    largest = np.asarray([np.iinfo(dtype).max], dtype)
    assert of([1, 2, 3], largest, [7, 8], TILE, oob="spec") == [1, 2, 3]


def test_an_empty_index_vector_puts_all_windows_at_0():
    """K = 0: three updates to one place compound (trap 11)."""
    assert of([0, 0], np.zeros((3, 0), np.int32), [1, 2, 3], numbers(inserted=[0], ivd=1), add) == [6, 0]


def test_no_position_leaves_the_operand():
    """N = 0 writes nothing."""
    assert of([1, 2], np.zeros((0, 1), np.int32), np.zeros(0), POINTS) == [1, 2]


def test_an_empty_window_writes_nothing():
    """A window of extent 0 writes nothing, wherever it is (trap 10)."""
    assert of([[1, 2]], [[0]], np.zeros((1, 0)), ROWS) == [[1, 2]]


def test_a_scalar_operand_takes_every_update():
    """A rank-0 operand with N updates compounds them (trap 11)."""
    assert of(4, np.zeros((3, 0), np.int32), [1, 2, 3], numbers(ivd=1), add) == 10


def test_an_implicit_index_vector():
    """index_vector_dim = rank of the indices means index vectors of one component."""
    assert of([0, 0, 0, 0], [1, 3], [7, 9], numbers(inserted=[0], to_operand=[0], ivd=1)) == [0, 7, 0, 9]


def test_an_index_vector_in_front():
    """index_vector_dim = 0, with the components permuted by scatter_dims_to_operand_dims (traps 11, 12)."""
    dims = numbers(inserted=[0, 1], to_operand=[1, 0], ivd=0)
    assert of(np.zeros((3, 2)), [[0, 1], [1, 2]], [7, 9], dims) == [[0, 0], [7, 0], [0, 9]]


def test_an_inserted_dim_that_is_not_indexed_is_pinned_at_0():
    """An inserted dim without an index component is written at 0 (trap 12)."""
    dims = numbers(inserted=[0, 1], to_operand=[1], ivd=1)
    assert of(np.zeros((2, 2)), [[1]], [7], dims) == [[0, 7], [0, 0]]


@pytest.mark.parametrize("ivd", [0, 1, 2])
def test_batching_dims_count_without_the_index_vector(ivd):
    """A batch coordinate is the position's, wherever the index vector lies (trap 13)."""
    vectors = np.moveaxis(np.asarray([[[2], [0]], [[1], [1]]]), 2, ivd)  # [batch, n, k]
    batch_dim = 1 if ivd == 0 else 0
    dims = numbers(inserted=[1], batching=[0], indices_batching=[batch_dim], to_operand=[1], ivd=ivd)
    assert of(np.zeros((2, 3)), vectors, [[5, 6], [7, 8]], dims, add) == [[6, 0, 5], [0, 15, 0]]


def test_swapped_currents_do_not_see_each_others_results():
    """A region that returns the two current values swapped swaps them: no result is read after it is written."""
    operands = [np.asarray([1, 2], np.int32), np.asarray([3, 4], np.int32)]
    updates = [np.zeros(1, np.int32), np.zeros(1, np.int32)]
    results = scatter(operands, np.asarray([[0]]), updates, POINTS, lambda c, _: [c[1], c[0]], [I32, I32], oob="xla")
    assert [r.tolist() for r in results] == [[3, 2], [1, 4]]


def test_the_inputs_stay_as_they_are():
    """A scatter returns new arrays."""
    operand = np.zeros(2, np.int32)
    scatter([operand], np.asarray([[0]]), [np.ones(1, np.int32)], POINTS, assign, [I32], oob="xla")
    assert operand.tolist() == [0, 0]


def test_a_promoting_region_converts_operands_and_updates():
    """Operand and updates are converted to the region's type before anything is added (trap 24)."""
    operand, updates = np.asarray([100], np.int8), np.asarray([100, 100], np.int8)
    [result] = scatter([operand], np.asarray([[0], [0]]), [updates], POINTS, add, [I32], oob="xla")
    assert (np.dtype(np.int32), [300]) == (result.dtype, result.tolist())


def test_windows_before_positions_go_position_by_position():
    """Where window dims come first, a whole window is written before the next position (trap 45)."""
    dims = numbers(window=[0], to_operand=[0], ivd=1)
    # two windows of three at 0 and 1: updates[w, n]
    assert of(np.zeros(4), [[0], [1]], [[1, 4], [2, 5], [3, 6]], dims) == [1, 4, 5, 6]


def test_hits_are_counted():
    """Windows are counted inside, overhanging and outside, and the most written element by whole windows."""
    dims = numbers(window=[1], to_operand=[0], ivd=1)
    hits = count_hits((5,), np.asarray([[0], [1], [4], [-2], [-3], [5], [2**40]]), (7, 2), dims)
    assert (hits.inside, hits.overhanging, hits.outside, hits.most) == (2, 1, 4, 2)


# --- against XLA and the interpreter ---

LAYOUTS = {
    "points": ((7,), (5, 1), (5,), POINTS),
    "rows": ((7, 3), (5, 1), (5, 3), ROWS),
    "columns": ((3, 7), (5, 1), (3, 5), numbers(window=[0], inserted=[1], to_operand=[1])),
    "tiles": ((6, 7), (4, 2), (4, 2, 3), numbers(window=[1, 2], to_operand=[1, 0])),
    "one tile": ((6, 7), (2,), (2, 3), numbers(window=[0, 1], to_operand=[0, 1], ivd=0)),
    "batched": ((2, 7, 3), (2, 4, 1), (2, 4, 3), numbers([2], [1], [0], [0], [1], 2)),
    "two batches": ((2, 7, 3), (3, 4, 2, 1), (3, 4, 2), numbers([], [1], [0, 2], [2, 0], [1], 3)),
    "pinned": ((3, 7), (5, 1), (5,), numbers(inserted=[0, 1], to_operand=[1])),
    "implicit": ((7,), (2, 3), (2, 3), numbers(inserted=[0], to_operand=[0], ivd=2)),
}
COMBINE = {"assign": assign, "add": add}


def case(layout: str, seed: int, spread: int):
    """Arguments of a layout, with indices that reach `spread` beyond the operand on both sides."""
    operand_shape, indices_shape, updates_shape, dims = LAYOUTS[layout]
    rng = np.random.default_rng(seed)
    operand = rng.standard_normal(operand_shape).astype(np.float32)
    indices = rng.integers(-spread, 7 + spread, indices_shape).astype(np.int32)
    return operand, indices, rng.standard_normal(updates_shape).astype(np.float32), dims


def in_jax(dims: ScatterNumbers, combiner: str, operand, indices, updates):
    """The same scatter by jax.lax, which has the index vector last."""
    explicit = indices[..., None] if dims.index_vector_dim == indices.ndim else indices
    jax_dims = jax.lax.ScatterDimensionNumbers(
        dims.update_window_dims,
        dims.inserted_window_dims,
        dims.scatter_dims_to_operand_dims,
        dims.input_batching_dims,
        dims.scatter_indices_batching_dims,
    )
    op = {"assign": jax.lax.scatter, "add": jax.lax.scatter_add}[combiner]
    return op(operand, explicit, updates, jax_dims, mode=jax.lax.GatherScatterMode.FILL_OR_DROP)


@pytest.mark.parametrize(("layout", "combiner"), list(product(LAYOUTS, COMBINE)))
def test_policy_xla_is_what_xla_does(layout, combiner):
    """Under policy "xla" every element is XLA's, bit for bit."""
    compiled = jax.jit(partial(in_jax, LAYOUTS[layout][3], combiner))
    for seed in range(4):
        operand, indices, updates, dims = case(layout, seed, 3)
        [expected] = scatter([operand], indices, [updates], dims, COMBINE[combiner], F32, oob="xla")
        actual = np.asarray(compiled(jnp.asarray(operand), indices, updates))
        assert expected.tobytes() == actual.tobytes()


@pytest.fixture(scope="module")
def interpreter():
    """One interpreter child for this file."""
    with Interpreter() as child:
        yield child


def as_module(layout: str, combiner: str) -> str:
    """A layout as a StableHLO module."""
    operand, indices, updates, d = LAYOUTS[layout]
    tensors = [
        f"tensor<{'x'.join(map(str, s))}x{t}>" for s, t in ((operand, "f32"), (indices, "i32"), (updates, "f32"))
    ]
    fields = [
        f"{name} = {list(getattr(d, name))}"
        for name in (
            "update_window_dims",
            "inserted_window_dims",
            "input_batching_dims",
            "scatter_indices_batching_dims",
            "scatter_dims_to_operand_dims",
        )
        if getattr(d, name)
    ]
    body = {"assign": "stablehlo.return %u", "add": "%s = stablehlo.add %c, %u : tensor<f32> stablehlo.return %s"}
    return f"""
    func.func @main(%o: {tensors[0]}, %i: {tensors[1]}, %v: {tensors[2]}) -> {tensors[0]} {{
      %r = "stablehlo.scatter"(%o, %i, %v) <{{
        scatter_dimension_numbers = #stablehlo.scatter<{", ".join(fields)}, index_vector_dim = {d.index_vector_dim}>
      }}> ({{
      ^bb0(%c: tensor<f32>, %u: tensor<f32>):
        {body[combiner]} : tensor<f32>
      }}) : ({", ".join(tensors)}) -> {tensors[0]}
      return %r : {tensors[0]}
    }}"""


@pytest.mark.parametrize(("layout", "combiner"), list(product(LAYOUTS, COMBINE)))
def test_policy_spec_is_what_the_interpreter_does(layout, combiner, interpreter):
    """Under policy "spec" every element is the reference interpreter's, bit for bit."""
    for seed in range(4):
        operand, indices, updates, dims = case(layout, seed, 3)
        [expected] = scatter([operand], indices, [updates], dims, COMBINE[combiner], F32, oob="spec")
        [actual] = interpreter.run(as_module(layout, combiner), [operand, indices, updates])
        assert expected.tobytes() == actual.tobytes()


def test_a_variadic_scatter_is_what_xla_does():
    """Two operands of different types, each combined in its own way, are XLA's bit for bit."""
    text = """
    func.func @main(%a: tensor<7xf32>, %b: tensor<7xi32>, %i: tensor<5x1xi32>, %x: tensor<5xf32>, %y: tensor<5xi32>)
        -> (tensor<7xf32>, tensor<7xi32>) {
      %r:2 = "stablehlo.scatter"(%a, %b, %i, %x, %y) <{scatter_dimension_numbers = #stablehlo.scatter<
        inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
        ^bb0(%c: tensor<f32>, %d: tensor<i32>, %u: tensor<f32>, %v: tensor<i32>):
          %s = stablehlo.add %c, %u : tensor<f32>
          %t = stablehlo.maximum %d, %v : tensor<i32>
          stablehlo.return %s, %t : tensor<f32>, tensor<i32>
      }) : (tensor<7xf32>, tensor<7xi32>, tensor<5x1xi32>, tensor<5xf32>, tensor<5xi32>)
        -> (tensor<7xf32>, tensor<7xi32>)
      return %r#0, %r#1 : tensor<7xf32>, tensor<7xi32>
    }"""
    executable = Executable(text, "exact")
    for seed in range(4):
        rng = np.random.default_rng(seed)
        operands = [rng.standard_normal(7).astype(np.float32), rng.integers(-9, 9, 7).astype(np.int32)]
        updates = [rng.standard_normal(5).astype(np.float32), rng.integers(-9, 9, 5).astype(np.int32)]
        indices = rng.integers(-2, 9, (5, 1)).astype(np.int32)
        expected = scatter(
            operands,
            indices,
            updates,
            POINTS,
            lambda c, u: [c[0] + u[0], np.maximum(c[1], u[1])],
            [*F32, I32],
            oob="xla",
        )
        actual = executable.run([*operands, indices, *updates])
        assert [e.tobytes() for e in expected] == [a.tobytes() for a in actual]


@pytest.mark.parametrize("dtype", ["ui8", "ui32", "ui64"])
def test_unsigned_indices_are_what_xla_does(dtype):
    """Unsigned indices, the largest one too, are XLA's bit for bit."""
    operand_shape, indices_shape, updates_shape, dims = LAYOUTS["rows"]
    executable = Executable(as_module("rows", "add").replace("xi32>", f"x{dtype}>"), "exact")
    numpy_type = np.dtype(dtype.replace("ui", "uint"))
    largest = np.iinfo(numpy_type).max
    indices = np.asarray([0, largest, 6, 7, largest - 1], numpy_type).reshape(indices_shape)
    operand, updates = np.ones(operand_shape, np.float32), np.full(updates_shape, 3, np.float32)
    [expected] = scatter([operand], indices, [updates], dims, add, F32, oob="xla")
    [actual] = executable.run([operand, indices, updates])
    assert expected.tobytes() == actual.tobytes()


def test_hits_of_repeated_and_empty_windows():
    """Repeated windows count each time; without positions or elements nothing is hit."""
    assert count_hits((4,), np.asarray([[1], [1], [1]]), (3,), POINTS).most == 3
    assert count_hits((4,), np.zeros((0, 1), np.int32), (0,), POINTS).most == 0
    empty = count_hits((2, 0), np.asarray([[1], [2]]), (2, 0), ROWS)
    assert empty.most == 0
