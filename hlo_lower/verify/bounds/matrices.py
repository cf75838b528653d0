"""Factorizations, solves and transforms: which ops they are, how far LAPACK's results may be off, what drives them.

What bounds another way to compute them is how far LAPACK's own results move when its operands are moved a little
(`perturbed_matrices`): by 2 n units in the last place, at least 16.

Where the second piece computes otherwise what the first one asks LAPACK for, NaN and infinities in a matrix are not
compared: LAPACK does not define the results. Nor is what is not finite compared where its own results hold an
infinity: then a pivot was zero, or numbers were too large. The same holds of a Fourier transform: which results a NaN
or an infinity reaches, and as what, is up to the algorithm. What both pieces leave to the same operations is compared.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum
from functools import partial
from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir
from hlo_lower.ops import names
from hlo_lower.ops.spec import RESHAPING, Role, ops_with
from hlo_lower.verify.read.program import Op, Program, ops_within

_jax: Any = jax  # its annotations leave jit and lax partly unknown

LEAST_UNITS, UNITS_OF_EACH = 16, 2
"""Units in the last place: of the smallest matrices, and of each row or column of larger ones."""

OWN = ops_with(role=Role.MATRIX)
TRANSFORM = names.FFT
DEFINITE = ("potrf", "cholesky")
"""What has results only of matrices that are positive definite."""

REFLECTING = ("geqrf", "Qr")
"""What makes what stands below a diagonal zero, by reflections."""

OF_XLA = frozenset({"Qr", "ProductOfElementaryHouseholderReflectors", "Eigh"})
"""Custom calls that XLA expands by itself, for every device."""

DIRECT = ("potrf", "getrf", "geqrf", "orgqr", "trsm", "Qr", "ProductOfElementaryHouseholderReflectors")
"""Routines whose steps are counted."""

ITERATED = ("syevd", "gesdd", "Eigh")
"""Routines whose results are near those of a matrix that differs from the given one by a part of its norm."""

VECTORS = {"syevd": (0,), "gesdd": (2, 3), "Eigh": (0,)}
"""The results of these that are vectors, of which the signs are open, by number."""

LINEAR = RESHAPING | {names.SLICE, names.SELECT, names.CONVERT, names.ADD, names.MULTIPLY, names.DIVIDE, "func.call"}
"""Ops behind which a matrix may still be positive definite."""


def is_matrix_op(op: mlir.RawOperation) -> bool:
    """Whether an op is a factorization or a solve: StableHLO's own, a call to LAPACK, or XLA's own."""
    name = callee_or_name(op)
    return op.name in OWN or (op.name == names.CUSTOM_CALL and (name.startswith("lapack_") or name in OF_XLA))


def callee_or_name(op: mlir.RawOperation) -> str:
    """The target of a custom call; for any other op its name."""
    return mlir.call_target(op) or op.name


def vector_results(op: mlir.RawOperation) -> tuple[int, ...]:
    """The numbers of the results of an op that are eigenvectors or singular vectors."""
    found = (numbers for name, numbers in VECTORS.items() if name in callee_or_name(op))
    return next(found, ()) if op.name == names.CUSTOM_CALL else ()


def units_of(op: mlir.RawOperation) -> int:
    """Units in the last place by which each element of a factorization's operands is moved."""
    sizes = [n for v in op.operands for n in mlir.static_shape(v.type)[-2:]]
    return max(LEAST_UNITS, UNITS_OF_EACH * max(sizes, default=1))


IN_MATRICES = "NaN and infinities in matrices: LAPACK does not define the results"
"""What is not compared where there are factorizations."""

OF_SQUARES = "NaN, infinities and floats whose squares overflow: XLA's Eigh ends early there"
"""What is not compared besides where XLA sums squares to know when it is done."""


def not_said_of(first: Sequence[Op], second: Sequence[Op]) -> str:
    """What is not compared of NaN and infinities because nothing says what becomes of them; "" where all is."""
    own, other = (
        Counter(callee_or_name(op.raw) for op in ops_within(ops) if is_matrix_op(op.raw) or op.name == TRANSFORM)
        for ops in (first, second)
    )
    left = {name for name, count in own.items() if count != other[name] or not _ends(name)}
    if left - {TRANSFORM}:
        return OF_SQUARES if "Eigh" in left else IN_MATRICES
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
        if is_matrix_op(op.raw) and any(name in callee_or_name(op.raw) for name in DEFINITE):
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


def at_the_edge(
    rng: np.random.Generator, shape: Sequence[int], dtype: "np.dtype[np.generic]", turn: int
) -> NDArray[np.generic]:
    """Symmetric matrices of which one pivot is 0, the last one in the first turn, and those before it are positive.

    They are products of small whole numbers with pivots of powers of two, so that no way of factoring them rounds.
    """
    n, count = shape[-1], prod(shape[:-2])
    lower = np.tril(rng.integers(-1, 2, (count, n, n)), -1)
    pivots = rng.integers(1, 3, (count, n))
    pivots[:, n - 1 - turn % n] = 0
    lower += pivots[:, :, None] * np.eye(n, dtype=int)
    return (lower @ lower.transpose(0, 2, 1)).reshape(tuple(shape)).astype(dtype)


# --- columns that are done or not ---
#
# A reflection is left out where nothing stands below the diagonal. Where that is no more than rounding makes, another
# way may find nothing there, or other noise, and what is computed of the column from its diagonal on is another: a row
# of R with the other sign, or whatever the direction of the noise says. There a disturbed QR gives NaN.


def reflects(op: mlir.RawOperation) -> bool:
    """Whether an op makes what stands below a diagonal zero, by reflections."""
    return any(name in callee_or_name(op) for name in REFLECTING)


def decided_function(name: str, matrix: mlir.RawType, factors: mlir.RawType, units: int) -> str:
    """The text of a function that takes a matrix, its reflections and their factors, and returns the latter two.

    Both are NaN from the first row and column on that rounding decides.
    """
    noise = units * element_type(mlir.tensor_element_name(matrix)).epsilon
    return mlir.function_text(partial(_mark_undecided, noise=noise), (matrix, matrix, factors), name)


def _mark_undecided(a: Array, reflections: Array, factors: Array, *, noise: float) -> tuple[Array, Array]:
    """Replace everything from the first reflection that rounding can flip by NaN."""
    lax = _jax.lax  # what jnp has would become functions of their own
    rows, columns = (lax.broadcasted_iota("int32", a.shape, d) for d in (a.ndim - 2, a.ndim - 1))
    sizes, none = lax.abs(reflections), lax.full_like(a, 0)

    def largest(values: Array) -> Array:
        return lax.reduce_max(values, (a.ndim - 2,))[..., : factors.shape[-1]]

    below = largest(lax.select(rows > columns, sizes, none)) * largest(lax.select(rows == columns, sizes, none))
    below = below * lax.abs(factors)  # v[k] is 1, and v is the column divided by -tau * R[k, k]
    is_undecided: Any = (below > 0) & (below <= largest(lax.abs(a)) * noise)
    places = lax.broadcasted_iota("int32", factors.shape, factors.ndim - 1)
    first = lax.reduce_min(lax.select(is_undecided, places, lax.full_like(places, a.shape[-1])), (factors.ndim - 1,))

    def mark_from(values: Array, place: Array) -> Array:
        begin = lax.broadcast_in_dim(first, values.shape, range(first.ndim))
        return lax.select(place >= begin, lax.full_like(values, jnp.nan), values)

    return mark_from(reflections, lax.min(rows, columns)), mark_from(factors, places)


# --- moved operands ---
#
# How the operands of a factorization are moved, so that its results show how far LAPACK's own may be off.
#
# LAPACK's results are exact for other matrices, near the given ones:
#
# - of a triangular system, a Cholesky factor and reflections: element by element, relative to the element;
# - of LU and QR: column by column, relative to the largest element of the column (what |L| |U| and the norm of a column
#   are, up to the growth of partial pivoting and to sqrt(m));
# - of eigenvalues and singular values: relative to the largest element of the matrix (to its norm, up to n).
#
# Vectors are orthogonal relative to 1: each of their elements is moved relative to the largest one, besides.
#
# So each element is moved by a hash of its place, by up to `units_of` units in the last place, of itself or
# of the largest one in its column or matrix. Zeros stay, but where the matrix counts as a whole: what is zero by
# structure (a triangle) is so in every computation, but rotations fill it. Of LU
# the first column is moved by magnitude instead, because nothing has been rounded when its pivot is looked for:
# candidates that are equal stay so, and the first of them it has to be.


IRRATIONAL = ("0.6180339", "1.7320508", "0.4142135", "2.2360679")
"""Of each dim, one after the other, the distance between the numbers of places, so that no two are the same."""


class Movement(Enum):
    """What an element is moved beside."""

    ITSELF = "itself"
    COLUMN = "column"
    MATRIX = "matrix"
    FIRST_ALIKE = "first_alike"


def movement_of(op: mlir.RawOperation) -> Movement:
    """How a factorization's operands are moved."""
    name = callee_or_name(op)
    if any(routine in name for routine in ITERATED):
        return Movement.MATRIX
    return Movement.FIRST_ALIKE if "getrf" in name else Movement.COLUMN if reflects(op) else Movement.ITSELF


def type_suffix(raw_type: mlir.RawType) -> str:
    """The element type and sizes, as in the name of a function."""
    return "_".join([mlir.tensor_element_name(raw_type), *(str(size) for size in mlir.tensor_shape(raw_type))])


def matrix_functions(name: str, raw_type: mlir.RawType) -> str:
    """The function of this name: the numbers of places, the magnitudes, or a movement of matrices.

    A movement takes the matrices, the moved numbers of places, these numbers, and `FIRST_ALIKE` the moved magnitudes.
    """
    shape, element = list(mlir.static_shape(raw_type)), mlir.tensor_element_name(raw_type)
    kind = name.split("_", 1)[1].removesuffix(f"_{type_suffix(raw_type)}")
    of = str(raw_type)
    if kind == "places":
        return _places(name, of, shape)
    if kind == "sizes":
        return _function(name, of, 1, [f"  %r = stablehlo.abs %v0 : {of}"])
    flags = f"tensor<{'x'.join(map(str, [*shape, 'i1']))}>"
    still = "%beside" if kind == Movement.MATRIX.value else "%v0"  # what is 0 stays so
    lines = [
        f"  %zero = stablehlo.constant dense<0.0> : {of}",
        f"  %one = stablehlo.constant dense<1.0> : {of}",
        f"  %each = stablehlo.divide %v1, %v2 : {of}",
        f"  %by = stablehlo.subtract %each, %one : {of}",
        *_beside(kind, of, shape, element),
        f"  %more = stablehlo.multiply %beside, %by : {of}",
        f"  %moved = stablehlo.add %v0, %more : {of}",
        f"  %none = stablehlo.compare EQ, {still}, %zero : ({of}, {of}) -> {flags}",
        f"  %kept = stablehlo.select %none, %v0, %moved : {flags}, {of}",
    ]
    if kind != Movement.FIRST_ALIKE.value:
        return _function(name, of, 3, lines, "%kept")
    lines += [
        f"  %negative = stablehlo.compare LT, %v0, %zero : ({of}, {of}) -> {flags}",
        f"  %minus = stablehlo.negate %v3 : {of}",
        f"  %alike = stablehlo.select %negative, %minus, %v3 : {flags}, {of}",
        f"  %column = stablehlo.iota dim = {len(shape) - 1} : {of}",
        f"  %first = stablehlo.compare LT, %column, %one : ({of}, {of}) -> {flags}",
        f"  %r = stablehlo.select %first, %alike, %kept : {flags}, {of}",
    ]
    return _function(name, of, 4, lines)


def _function(name: str, of: str, count: int, lines: list[str], returned: str = "%r") -> str:
    arguments = ", ".join(f"%v{k}: {of}" for k in range(count))
    return "\n".join([f"func.func private @{name}({arguments}) -> {of} {{", *lines, f"  return {returned} : {of}", "}"])


def _places(name: str, of: str, shape: list[int]) -> str:
    """A number for each place, from 1 on."""
    lines = [f"  %p0 = stablehlo.constant dense<1.37> : {of}"]
    for d in range(len(shape)):
        lines += [
            f"  %i{d} = stablehlo.iota dim = {d} : {of}",
            f"  %w{d} = stablehlo.constant dense<{IRRATIONAL[d % len(IRRATIONAL)]}> : {of}",
            f"  %s{d} = stablehlo.multiply %i{d}, %w{d} : {of}",
            f"  %p{d + 1} = stablehlo.add %p{d}, %s{d} : {of}",
        ]
    return _function(name, of, 0, [*lines, f"  %r = stablehlo.add %p{len(shape)}, %p0 : {of}"])


def _beside(kind: str, of: str, shape: list[int], element: str) -> list[str]:
    """What an element is moved in units of: itself, or the largest one of its column or matrix."""
    if kind == Movement.ITSELF.value:
        return [f"  %beside = stablehlo.add %v0, %zero : {of}"]
    rank = len(shape)
    across = [rank - 2, rank - 1] if kind == Movement.MATRIX.value else [rank - 2]
    dims = [d for d in range(rank) if d not in across]
    columns = f"tensor<{'x'.join([*(str(shape[d]) for d in dims), element])}>"
    return [
        f"  %sizes = stablehlo.abs %v0 : {of}",
        f"  %least = stablehlo.constant dense<0.0> : tensor<{element}>",
        f"  %largest = stablehlo.reduce(%sizes init: %least) applies stablehlo.maximum across dimensions = {across}"
        f" : ({of}, tensor<{element}>) -> {columns}",
        f"  %beside = stablehlo.broadcast_in_dim %largest, dims = {dims} : ({columns}) -> {of}",
    ]
