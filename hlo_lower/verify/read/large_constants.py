"""Constants that are too large to be run: nothing that a verdict needs may be many times as large as the module.

Whatever runs a module, or a piece of one, holds its constants several times: as text, parsed, as an artifact, as HLO
and in the executable, of both versions. That was measured to take some twelve times as much memory as they have.
"""

from collections.abc import Iterable
from math import prod

from hlo_lower.ir import mlir

MEMORY_BUDGET = 2 << 30
"""Bytes up to which the whole module is run by default, and up to which a region's pieces are."""

COPIES = 12


def over_budget(operations: Iterable[mlir.RawOperation], budget: int = MEMORY_BUDGET) -> str:
    """Why the constants among operations are too large to be run, "" where they are not; splats are small."""
    size = sum(_bytes_of(op) for op in operations if op.name == "stablehlo.constant" and not mlir.is_splat(op))
    if size * COPIES <= budget:
        return ""
    return f"{size / 2**30:.1f} GiB of constants, of which a run takes {COPIES} times, more than {budget / 2**30:.1f}"


def module_over_budget(module: mlir.RawModule, budget: int = MEMORY_BUDGET) -> str:
    """The same of all constants of a module."""
    return over_budget(mlir.named(module.operation, {"stablehlo.constant"})[0], budget)


def _bytes_of(constant: mlir.RawOperation) -> int:
    tensor = mlir.read_tensor_type(constant.results[0].type)
    dtype = None if tensor is None else mlir.dtype_of(tensor.element_name)
    return 0 if tensor is None else prod(size or 0 for size in tensor.shape) * (1 if dtype is None else dtype.itemsize)
