"""The arguments of the suite's modules: four sets of indices, and data whose results do not depend on rounding.

Data are small whole numbers, whose sums and products every type of the suite holds: whatever order a consumer adds in,
its results are to be the same bit for bit. Where positions repeat, assignments and 3 c - u depend on the order of the
updates, which StableHLO leaves open: what is right is then what XLA does on a CPU, one after the other.
"""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hlo_lower.consumers import ConsumerRun
from hlo_lower.testing.conformance.suite import SuiteModule
from hlo_lower.testing.fuzz.case_arguments import Arguments
from hlo_lower.testing.fuzz.case_forms import CaseForm
from hlo_lower.testing.fuzz.drawn_types import TYPES
from hlo_lower.testing.fuzz.sensitivity import Policy, reference

Array = NDArray[Any]

INDICES = ("distinct", "duplicates", "out of bounds", "far out")
"""In bounds, and no two windows overlap; in bounds, and windows repeat; up to one extent beyond both ends, windows that
overhang included; the ends of the index type and of 32 bits. In the last two every other window is a distinct one."""


def runs_of(module: SuiteModule, oob: Policy) -> tuple[ConsumerRun, ...]:
    """A run for each of `INDICES`, with the results by definition under a policy."""
    return tuple(_run(module, indices, number, oob) for number, indices in enumerate(INDICES))


def _run(module: SuiteModule, indices: str, number: int, oob: Policy) -> ConsumerRun:
    case, form = module.case, module.case.form
    rng = np.random.default_rng([number, len(module.name)])
    operand, updates = (_whole(rng, shape, module) for shape in (form.operand, form.updates))
    starts = _starts(rng, form, indices, TYPES[module.index_type].dtype)
    arguments = Arguments((operand,), (updates,), (starts,), (), starts)
    return ConsumerRun(arguments.all, tuple(reference(case, arguments, oob)), indices)


def _whole(rng: np.random.Generator, shape: tuple[int, ...], module: SuiteModule) -> Array:
    """Small whole numbers; for a product no zeros, whose sign would depend on the order."""
    element = TYPES[module.element]
    if element.kind == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    if module.combiner == "multiply":
        return np.asarray(rng.choice([1, 2, -1, -2], size=shape)).astype(element.dtype)
    low = 0 if element.kind == "unsigned" else -4
    return np.asarray(rng.integers(low, 5, size=shape)).astype(element.dtype)


def _starts(rng: np.random.Generator, form: CaseForm, indices: str, dtype: "np.dtype[Any]") -> Array:
    """The index tensor; a batching dim stands first, and each of its positions has starts of its own."""
    batches = prod(form.positions[: len(form.batching)])
    count = prod(form.positions[len(form.batching) :])
    extents = [form.extent(column) for column in form.columns]
    cells = np.stack(np.meshgrid(*(np.arange(0, size - w + 1, w) for size, w in extents), indexing="ij"), -1)
    cells = cells.reshape(-1, len(extents)).astype(object)
    vectors = np.concatenate([cells[rng.permutation(len(cells))[:count]] for _ in range(batches)])
    if indices == "duplicates":
        vectors = vectors[rng.integers(min(2, len(vectors)), size=len(vectors))]
    elif indices != "distinct":
        _moved_out(rng, vectors, extents, indices, dtype)
    starts = vectors.astype(dtype).reshape((*form.positions, len(extents)))
    return starts[..., 0] if form.implicit else np.ascontiguousarray(np.moveaxis(starts, -1, form.index_vector_dim))


def _moved_out(
    rng: np.random.Generator, vectors: Array, extents: list[tuple[int, int]], indices: str, dtype: "np.dtype[Any]"
) -> None:
    """Put one component of every other vector out of bounds, as far as the type holds it."""
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    for n in range(0, len(vectors), 2):
        k = int(rng.integers(len(extents)))
        size, window = extents[k]
        near = [-1, size - window + 1, size, -window, -size, 2 * size - 1]
        far = [low, high, high - 1, low + 1, min(high, 2**31 - 1), max(low, -(2**31))]
        pool = [v for v in (near if indices == "out of bounds" else far) if low <= v <= high]
        pool = [v for v in pool if not 0 <= v <= size - window] or [high]
        vectors[n, k] = pool[(n // 2) % len(pool)]
