"""The prover's definitions of scatter and gather are those of the NumPy references, on every form of the families."""

from itertools import product

import numpy as np
import pytest

pytest.importorskip("z3")

from test_operations import as_known

from hlo_lower.ir import mlir
from hlo_lower.ir.mlir import GatherNumbers, ScatterNumbers
from hlo_lower.testing.prove.gathers import _CLAMPS_NOT, gather_case, shapes
from hlo_lower.testing.prove.scatters import BODIES, forms, runtime, scatter_case
from hlo_lower.verify.judges.definitions import combine_of, scatter
from hlo_lower.verify.judges.definitions import gather as reference
from hlo_lower.verify.proof.world import World
from hlo_lower.verify.read.program import Program

SUBTRACT = next(body for body in BODIES if body.name == "subtract i8")
FORMS = list(forms())
SHAPES = list(shapes())


def indices_like(rng, shape, dtype):
    """Indices in, at and beyond the bounds."""
    info = np.iinfo(dtype)
    near = rng.integers(max(-2, info.min), 5, shape)
    return np.where(rng.random(shape) < 0.9, near, rng.choice([info.min, info.max], shape)).astype(dtype)


def scattered(form, oob, rng):
    """The prover's result and the reference's, of one draw."""
    case = scatter_case(next(runtime(form, "i8")), SUBTRACT, "i8", oob, {})
    module = mlir.parse_module(case.text)
    node = next(op.operation for op in module.body.operations).regions[0].blocks[0].operations[0].operation
    raw = mlir.scatter_dimension_numbers(node)
    numbers = ScatterNumbers(
        tuple(raw.update_window_dims), tuple(raw.inserted_window_dims), tuple(raw.input_batching_dims),
        tuple(raw.scatter_indices_batching_dims), tuple(raw.scattered_dims_to_operand_dims), int(raw.index_vector_dim),
    )  # fmt: skip
    operand, updates = (rng.integers(-128, 128, shape).astype(np.int8) for shape in (form.operand, form.updates))
    indices = indices_like(rng, form.indices, np.int8)
    [found] = as_known(Program(module), World(60, oob), [operand, updates, indices])
    [expected] = scatter([operand], indices, [updates], numbers, combine_of(node, {}), [np.dtype(np.int8)], oob=oob)
    return found, expected


def check_scatters(chosen):
    """Every chosen form under both policies."""
    rng = np.random.default_rng(0)
    for form, oob in product(chosen, ("xla", "spec")):
        for _ in range(3):
            found, expected = scattered(form, oob, rng)
            np.testing.assert_array_equal(found.astype(np.int8), expected, f"{form}, {oob}")


def test_scatters_are_those_of_the_reference():
    """Some forms of each kind under both policies, with a region that depends on the order."""
    check_scatters(FORMS[::11])


@pytest.mark.sweep
def test_all_scatters_are_those_of_the_reference():
    """Every form of the family."""
    check_scatters(FORMS)


def test_gathers_are_those_of_the_reference():
    """Gathers of each kind, with signed and unsigned indices, in bounds and beyond."""
    rng = np.random.default_rng(0)
    for shape, index in product(SHAPES[::4], ("i8", "ui8")):
        case = gather_case(shape, index, "i8", _CLAMPS_NOT, is_clamped=False)
        dtype = mlir.dtype_of(index)
        operand = rng.integers(-128, 128, shape.operand).astype(np.int8)
        indices = indices_like(rng, shape.indices, dtype)
        [found] = as_known(Program(mlir.parse_module(case.text)), World(60), [operand, indices])
        batching, first = ((0,) if shape.is_batched else ()), len(shape.positions)
        offsets = tuple(first + k for k in range(len(shape.offsets)))
        numbers = GatherNumbers(offsets, shape.collapsed, batching, batching, shape.indexed, first)
        expected = reference(operand, indices, numbers, shape.window)
        np.testing.assert_array_equal(found.astype(np.int8), expected, case.name)
