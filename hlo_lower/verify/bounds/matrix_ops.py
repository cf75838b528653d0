"""Factorizations, solves and transforms: which ops they are, how far LAPACK's results may be off, what drives them.

What bounds another way to compute them is how far LAPACK's own results move when its operands are moved a little
(`perturbed_matrices`): by 2 n units in the last place, at least 16.

Where the second piece computes otherwise what the first one asks LAPACK for, NaN and infinities in a matrix are not
compared: LAPACK does not say what it makes of them. Nor is what is not finite compared where its own results hold an
infinity: then a pivot was zero, or numbers were too large. The same holds of a Fourier transform: which results a NaN
or an infinity reaches, and as what, is up to the algorithm. What both pieces leave to the same operations is compared.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from hlo_lower.ir import mlir
from hlo_lower.verify.read.program import Op, Program, ops_within

LEAST_UNITS, UNITS_OF_EACH = 16, 2
"""Units in the last place: of the smallest matrices, and of each row or column of larger ones."""

OWN = frozenset({"stablehlo.cholesky", "stablehlo.triangular_solve"})
TRANSFORM = "stablehlo.fft"
DEFINITE = ("potrf", "cholesky")
"""What has results only of matrices that are positive definite."""

DIRECT = ("potrf", "getrf", "geqrf", "orgqr", "trsm")
"""Routines of LAPACK whose steps are counted."""

LINEAR = frozenset(
    f"stablehlo.{name}"
    for name in ("add", "multiply", "divide", "transpose", "convert", "reshape", "broadcast_in_dim", "select", "slice")
) | {"func.call"}
"""Ops behind which a matrix may still be positive definite."""


def is_matrix_op(op: mlir.RawOperation) -> bool:
    """Whether an op is a factorization or a solve: StableHLO's own, or a call to LAPACK."""
    return op.name in OWN or (op.name == "stablehlo.custom_call" and called(op).startswith("lapack_"))


def called(op: mlir.RawOperation) -> str:
    """What a custom call calls; the name of another op."""
    return mlir.call_target(op) or op.name


def units_of(op: mlir.RawOperation) -> int:
    """Units in the last place by which each element of a factorization's operands is moved."""
    sizes = [int(n or 0) for v in op.operands for n in list(mlir.tensor_shape(v.type))[-2:]]
    return max(LEAST_UNITS, UNITS_OF_EACH * max(sizes, default=1))


def not_said_of(first: Sequence[Op], second: Sequence[Op]) -> str:
    """What is not compared of NaN and infinities because nothing says what becomes of them; "" where all is."""
    own, other = (
        Counter(called(op.raw) for op in ops_within(ops) if is_matrix_op(op.raw) or op.name == TRANSFORM)
        for ops in (first, second)
    )
    left = {name for name, count in own.items() if count != other[name] or not _ends(name)}
    if left - {TRANSFORM}:
        return "NaN and infinities in matrices: LAPACK does not say what it makes of them"
    return "NaN and infinities in what is transformed: the algorithm decides where they go" if left else ""


def _ends(name: str) -> bool:
    """Whether what is called has so many steps, whatever the numbers: eigenvalues are iterated for, maybe for ever."""
    return name in OWN or name == TRANSFORM or any(direct in name for direct in DIRECT)


def definite_inputs(program: Program, ops: Sequence[Op], inputs: Iterable[int]) -> set[int]:
    """Which of these values become, by sums and products, what is factored as a positive definite matrix."""
    reach: dict[int, set[int]] = {value: {value} for value in inputs if _is_square(program, value)}
    found: set[int] = set()
    for op in ops:
        sources = set[int]().union(*(reach.get(value, set()) for value in op.inputs))
        if is_matrix_op(op.raw) and any(name in called(op.raw) for name in DEFINITE):
            found |= sources
        elif op.name in LINEAR:
            for result in op.results:
                reach[result] = sources
    return found


def _is_square(program: Program, value: int) -> bool:
    tensor = program.type_of(value)
    shape = tensor.shape if tensor is not None else ()
    return len(shape) >= 2 and shape[-1] == shape[-2]


def definite(rng: np.random.Generator, shape: Sequence[int], dtype: "np.dtype[np.generic]") -> NDArray[np.generic]:
    """Symmetric, positive definite matrices of a moderate condition."""
    n = shape[-1]
    drawn = rng.standard_normal((prod(shape[:-2]), n, n))
    found = drawn @ drawn.transpose(0, 2, 1) / max(n, 1) + 0.5 * np.eye(n)
    return found.reshape(tuple(shape)).astype(dtype)
