"""LAPACK's routines, as JAX calls them, XLA's own (`Qr`), `stablehlo.cholesky` and `stablehlo.triangular_solve`, for
targets without."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import prod
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from hlo_lower.base.causes import Cause, Code
from hlo_lower.base.registry import FactsByName, RuleList
from hlo_lower.ir import mlir
from hlo_lower.ir.axes import slice_along
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.lowering.engine.kind import OpLowering
from hlo_lower.lowering.engine.traced import build_traced
from hlo_lower.lowering.loops import StructuredLoop
from hlo_lower.lowering.single_ops.plain_op import Numbers
from hlo_lower.ops.names import CHOLESKY, CUSTOM_CALL
from hlo_lower.ops.purity import FUNCTIONS

# --- which routine an op is: LAPACK's, as JAX calls them on a CPU, and StableHLO's own two ---
#
#     %1:3 = stablehlo.custom_call @lapack_sgetrf_ffi(%0) {operand_layouts = [dense<[0, 1]> : ...], ...}
#
# LAPACK reads columns one after the other, so the layouts of such a call say that it means the matrices as they are;
# with any other layout it would read the transposed ones, and is not known, nor one with an attribute that is not read.
# XLA's own calls, which it expands for every device, give what LAPACK gives. They read rows one after the other.


LINEAR_ALGEBRA = "linear algebra"
"""The name under which rules for these ops are registered."""


BEGINS, ENDS = "lapack_", "_ffi"


class Routine(Enum):
    """What is computed."""

    CHOLESKY = "cholesky"
    LU = "lu"
    TRIANGULAR_SOLVE = "triangular solve"
    TRIDIAGONAL_SOLVE = "tridiagonal solve"
    QR = "qr"
    ORTHOGONAL = "q of qr"
    EIGENVALUES = "eigenvalues"
    SINGULAR_VALUES = "singular values"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class MatrixFacts(FactsByName):
    """The facts of one op of linear algebra.

    Attributes:
      routine, numbers: the facts that rules constrain; numbers is whether floats may be rounded otherwise.
      named: the op, or what it calls.
      flags: what it is asked for ("lower": True).
      why: why it is not known what it computes, or has no rule; None where it has one.
    """

    routine: Routine
    numbers: Numbers
    named: str
    flags: Mapping[str, bool] = field(default_factory=dict[str, bool])
    why: Cause | None = None


MatrixLowering = OpLowering[MatrixFacts]


@dataclass(frozen=True)
class _Signature:
    """What a routine of LAPACK takes and gives.

    Attributes:
      routine: what it is.
      operands, results: "m" for a matrix, "v" for a vector, "s" for a number, of each matrix of a batch.
      flags: for each key of its configuration the name of the flag, and for each letter whether that holds.
      vectors: the results that are defined up to their signs, and as a whole where their values are equal.
      is_listed: whether its configuration is a list in a text, as that of XLA's `Eigh`.
      left: the results that hold what is left of operands, for which there is no rule.
    """

    routine: Routine
    operands: str
    results: str
    flags: Mapping[str, tuple[str, Mapping[str, bool]]] = field(
        default_factory=dict[str, tuple[str, Mapping[str, bool]]]
    )
    vectors: tuple[int, ...] = ()
    is_listed: bool = False
    left: tuple[int, ...] = ()


UPLO = ("lower", {"L": True, "U": False})

SIGNATURES: Mapping[str, _Signature] = {
    "potrf": _Signature(Routine.CHOLESKY, "m", "ms", {"uplo": UPLO}),
    "getrf": _Signature(Routine.LU, "m", "mvs"),
    "geqrf": _Signature(Routine.QR, "m", "mv"),
    "orgqr": _Signature(Routine.ORTHOGONAL, "mv", "m"),
    "syevd": _Signature(
        Routine.EIGENVALUES, "m", "mvs", {"uplo": UPLO, "mode": ("vectors", {"V": True, "N": False})}, vectors=(0,)
    ),
    "gesdd": _Signature(
        Routine.SINGULAR_VALUES,
        "m",
        "mvmms",
        {"mode": ("vectors", {"A": True, "S": True, "N": False})},
        vectors=(2, 3),
        left=(0,),
    ),
    "gtsv": _Signature(Routine.TRIDIAGONAL_SOLVE, "vvvm", "vvvms", left=(0, 1, 2)),
    "trsm": _Signature(
        Routine.TRIANGULAR_SOLVE,
        "mm",
        "m",
        {
            "uplo": UPLO,
            "side": ("left", {"L": True, "R": False}),
            "trans_x": ("transposed", {"N": False, "T": True, "C": True}),
            "diag": ("unit", {"U": True, "N": False}),
        },
    ),
}
"""The routines that are known, by their names without the letter of the element type."""

OF_XLA: Mapping[str, _Signature] = {
    "Qr": SIGNATURES["geqrf"],
    "ProductOfElementaryHouseholderReflectors": SIGNATURES["orgqr"],
    "Eigh": _Signature(Routine.EIGENVALUES, "m", "mv", vectors=(0,), is_listed=True),
}
"""XLA's own calls, by their whole names."""

NEAR_ENOUGH = 16
"""Units in the last place, up to which the tolerance of an iteration is none beside rounding."""

LETTERS = {"s": "f32", "d": "f64"}

SAID = frozenset(
    {"call_target_name", "backend_config", "mhlo.backend_config", "mhlo.frontend_attributes", "api_version"}
    | {"operand_layouts", "result_layouts", "output_operand_aliases", "has_side_effect", "called_computations"}
    | {"sdy.sharding_rule", "mhlo.sharding", "sdy.sharding"}
)
"""Attributes of a call that are read, or say nothing of what is computed."""


def is_lapack(name: str) -> bool:
    """Whether a custom call is JAX's to LAPACK, or XLA's own of that kind, by its name."""
    return name in OF_XLA or (name.startswith(BEGINS) and name.endswith(ENDS))


def matrix_facts(node: Node, numbers: Numbers) -> MatrixFacts:
    """The facts of a call to LAPACK, a `stablehlo.cholesky` or a `stablehlo.triangular_solve` of static shape."""
    if node.name == CUSTOM_CALL:
        return _of_call(node, numbers)
    attributes = mlir.attributes_of(node.raw)
    if node.operand(0).element_type not in LETTERS.values():
        return MatrixFacts(Routine.UNKNOWN, numbers, node.name, why=Code.NAME_IN_DOUBT("element type"))
    flags = {"lower": mlir.is_true(node.raw, "lower")}
    if node.name == CHOLESKY:
        return MatrixFacts(Routine.CHOLESKY, numbers, node.name, flags)
    flags["left"], flags["unit"] = (mlir.is_true(node.raw, name) for name in ("left_side", "unit_diagonal"))
    flags["transposed"] = mlir.enum_value(attributes["transpose_a"]) != "NO_TRANSPOSE"
    return MatrixFacts(Routine.TRIANGULAR_SOLVE, numbers, node.name, flags)


def _of_call(node: Node, numbers: Numbers) -> MatrixFacts:
    name = mlir.call_target(node.raw)
    called = name[len(BEGINS) + 1 : -len(ENDS)]
    signature = OF_XLA.get(name) or SIGNATURES.get(called)
    if signature is None or any(_is_read(node.result(k)) for k in signature.left if k < len(node.results)):
        return MatrixFacts(Routine.UNKNOWN, numbers, name, why=Code.ROUTINE_LEFT(called))
    flags: dict[str, bool] = {}
    why = _why_unknown(node, name, signature) or _read_flags(node, signature, flags)
    if why:
        return MatrixFacts(Routine.UNKNOWN, numbers, name, why=why)
    are_read = any(_is_read(node.result(k)) for k in signature.vectors)
    if are_read and not flags["vectors"]:
        return MatrixFacts(Routine.UNKNOWN, numbers, name, why=Code.ROUTINE_LEFT(called))
    if signature.vectors:
        flags["vectors"] = are_read
    return MatrixFacts(signature.routine, numbers, name, flags)


def _is_read(value: Value) -> bool:
    """Whether anything reads a value, other than functions of which nothing reads the results; a return does."""
    return any(
        user.name not in FUNCTIONS or not user.results or any(_is_read(result) for result in user.results)
        for user in value.users
    )


def _why_unknown(node: Node, name: str, signature: _Signature) -> Cause | None:
    """Why a call may be something else than its name says; None where it is what it says."""
    attributes, is_of_xla = mlir.attributes_of(node.raw), name in OF_XLA
    more = sorted(set(attributes) - SAID)
    if more:
        return Code.NAME_IN_DOUBT(more[0])
    element = node.operand(0).element_type if is_of_xla else LETTERS.get(name[len(BEGINS)])
    if element not in LETTERS.values():
        return Code.ROUTINE_LEFT("complex")
    if mlir.is_true(node.raw, "has_side_effect") or str(attributes.get("called_computations", "[]")) != "[]":
        return Code.NAME_IN_DOUBT("effect")
    sides = (
        (node.operands, signature.operands, "operand_layouts"),
        (node.results, signature.results, "result_layouts"),
    )
    batch = len(node.operand(0).static_shape) - {"m": 2, "v": 1}[signature.operands[0]]
    for values, kinds, key in sides:
        ranks = [batch + {"m": 2, "v": 1, "s": 0}[kind] for kind in kinds]
        if [len(value.static_shape) for value in values] != ranks:
            return Code.NAME_IN_DOUBT("signature")
        known = [mlir.dense_integers(one) for one in attributes[key]] if key in attributes else None
        meant = [_layout("s" if is_of_xla else kind, rank) for kind, rank in zip(kinds, ranks, strict=True)]
        if known != meant and not (is_of_xla and known is None):
            return Code.NAME_IN_DOUBT(key)
    floats = [v.element_type for v in (*node.operands, *node.results) if not v.element.is_integer]
    return None if set(floats) == {element} else Code.NAME_IN_DOUBT("element type")


def _layout(kind: str, rank: int) -> tuple[int, ...]:
    """The dims from the one that varies fastest: the rows of a matrix, the last dim of others."""
    dims = tuple(reversed(range(rank)))
    return (dims[1], dims[0], *dims[2:]) if kind == "m" else dims


def _read_flags(node: Node, signature: _Signature, flags: dict[str, bool]) -> Cause | None:
    """Read the configuration into flags; why that cannot be done, None where it is."""
    attributes = mlir.attributes_of(node.raw)
    if signature.is_listed:
        return _read_list(node, flags)
    given: dict[str, mlir.RawAttribute] = {}
    for key in ("backend_config", "mhlo.backend_config"):
        if key in attributes and str(attributes[key]).startswith("{"):
            given.update(mlir.entries_of(attributes[key]))
    if set(given) != set(signature.flags):
        return Code.NAME_IN_DOUBT("configuration")
    for key, (flag, meanings) in signature.flags.items():
        letter = chr(mlir.integer_of(given[key]))
        if letter not in meanings:
            return Code.NAME_IN_DOUBT(key)
        flags[flag] = meanings[letter]
    return None


def _read_list(node: Node, flags: dict[str, bool]) -> Cause | None:
    """Read "lower, in order, sweeps, tolerance" of XLA's `Eigh`: eigenvalues in order, as near as rounding allows."""
    found = _LISTED.fullmatch(str(mlir.attributes_of(node.raw).get("backend_config", "")))
    if found is None or float(found[2]) > NEAR_ENOUGH * node.operand(0).element.epsilon:
        return Code.NAME_IN_DOUBT("configuration")
    flags |= {"lower": found[1] == "1", "vectors": True}
    return None


_LISTED = re.compile(r'"([01]),1,[1-9]\d+,([\d.]+(?:[eE][-+]?\d+)?)"')


# --- factors of matrices and triangular systems, column by column: Cholesky, LU with partial pivoting, QR ---


COUNTER = "i32"


def flat(build: Builder, value: Value, rank: int) -> Value:
    """A value whose last `rank` dims are those of one matrix or vector, its batch dims as one, if there are any."""
    split = len(value.static_shape) - rank
    sizes, own = value.static_shape[:split], value.static_shape[split:]
    return build.reshape(value, (*((prod(sizes),) if sizes else ()), *own))


def transpose_matrices(build: Builder, matrices: Value) -> Value:
    """The transposed matrices."""
    *batch, row, column = range(len(matrices.static_shape))
    return build.transpose(matrices, [*batch, column, row])


def steps(build: Builder, count: int, carried: Sequence[Value], step: Callable[..., Any], **given: Any) -> list[Value]:
    """What is carried after so many steps, each a function of its number and of what is carried."""
    if count == 1:
        return build_traced(build, step, build.constant(0, (), COUNTER), *carried, **given)

    def body(inner: Builder, number: Value, values: tuple[Value, ...], _: tuple[Value, ...]) -> Sequence[Value]:
        return build_traced(inner, step, number, *values, **given)

    return StructuredLoop(count, COUNTER).emit_while(build, carried, (), body) if count else list(carried)


def places(count: int) -> Array:
    """The numbers of rows or columns."""
    return lax.iota(jnp.int32, count)


def part(x: Array, number: Array, axis: int = -1) -> Array:
    """What stands at a place along an axis, without that axis: a column of a matrix, an element of a vector."""
    starts = [jnp.int32(0)] * x.ndim
    starts[axis] = number
    sizes = list(x.shape)
    sizes[axis] = 1
    return lax.squeeze(lax.dynamic_slice(x, starts, sizes, allow_negative_indices=False), (axis,))


def outer(left: Array, right: Array) -> Array:
    """The products of the elements of two vectors: rows are the first one's."""
    return left[..., :, None] * right[..., None, :]


rules = RuleList()


@rules.lowers(
    LINEAR_ALGEBRA,
    routine={Routine.CHOLESKY},
    numbers={Numbers.BOUNDED},
    form="column by column: a root, a division, an outer product",
)
def cholesky_to_columns(op: MatrixLowering) -> Sequence[Value]:
    """Compute the factor column by column, each taken from what stands right of it.

        for k:  l[i] = a[i, k] / sqrt(a[k, k]);  a[i, j] -= l[i] * l[j]  for j > k;  a[:, k] = l

    Equal up to rounding: both are the exact factor of a matrix that differs from the given one by at most about
    n * eps of its norm (Higham, theorem 10.3). Only the triangle that is asked for is read; the other one is given back
    as it was, as LAPACK does, and is zero in `stablehlo.cholesky`, as XLA gives it. `info` is the number of the first
    pivot that is not above zero (NaN is not), 0 where there is none. Then LAPACK leaves the rest unfinished, and here
    that is NaN: JAX replaces all of both by NaN. Costs n steps over the matrix.
    """
    build, node, lower = op.build, op.node, op.facts.flags["lower"]
    given = flat(build, node.operand(0), 2)
    a = given if lower else transpose_matrices(build, given)
    info = build.constant(0, given.static_shape[:-2], COUNTER)
    a, info = steps(build, given.static_shape[-1], [a, info], _cholesky_column)
    a = a if lower else transpose_matrices(build, a)
    if node.name == CHOLESKY:
        found = build_traced(build, _alone, a, info, lower=lower)
    else:
        found = [*build_traced(build, _beside, a, given, lower=lower), info]
    return [build.reshape(v, r.static_shape) for v, r in zip(found, node.results, strict=True)]


def _beside(factor: Array, other: Array | float, *, lower: bool) -> Array:
    rows, columns = places(factor.shape[-1])[:, None], places(factor.shape[-1])
    return jnp.where(rows >= columns if lower else rows <= columns, factor, other)


def _alone(factor: Array, info: Array, *, lower: bool) -> Array:
    return jnp.where((info != 0)[..., None, None], jnp.nan, _beside(factor, 0.0, lower=lower))


def _cholesky_column(k: Array, a: Array, info: Array) -> tuple[Array, Array]:
    """One column of the factor, and what is left right of it."""
    numbers, column = places(a.shape[-1]), part(a, k)
    pivot = part(column, k)
    root = jnp.sqrt(pivot)[..., None]
    factor = jnp.where(numbers == k, root, jnp.where(numbers > k, column / root, 0.0))
    a = jnp.where(numbers > k, a - outer(factor, factor), a)
    a = jnp.where(numbers == k, factor[..., None], a)
    return a, jnp.where(pivot > 0.0, info, jnp.where(info == 0, k + 1, info))


@rules.lowers(
    LINEAR_ALGEBRA,
    routine={Routine.TRIANGULAR_SOLVE},
    numbers={Numbers.BOUNDED},
    form="row by row: a division, an outer product subtracted from the other rows",
)
def triangular_solve_to_rows(op: MatrixLowering) -> Sequence[Value]:
    """Solve op(A) X = B for lower triangular op(A) from the first row on, for upper from the last.

        for k:  x[k] = b[k] / a[k, k];  b[i] -= a[i, k] * x[k]  for the rows i that are left

    Equal up to rounding: both are the exact solution for a matrix each of whose elements differs by at most about n *
    eps of itself (Higham, theorem 8.5). X op(A) = B is the transposed system. The other triangle is not read, nor is
    the diagonal where it is ones. A zero on it gives infinities and NaN, as everywhere. Costs n steps over B.
    """
    flags, build = op.facts.flags, op.build
    a, b = (flat(build, operand, 2) for operand in op.node.operands)
    lower, is_turned = flags["lower"], flags["transposed"]
    if not flags["left"]:
        b, is_turned = transpose_matrices(build, b), not is_turned
    if is_turned:
        a, lower = transpose_matrices(build, a), not lower
    _, x = steps(build, a.static_shape[-1], [a, b], _row, is_lower=lower, is_unit=flags["unit"])
    return [build.reshape(x if flags["left"] else transpose_matrices(build, x), op.node.result(0).static_shape)]


def _row(number: Array, a: Array, b: Array, *, is_lower: bool, is_unit: bool) -> tuple[Array, Array]:
    k = number if is_lower else a.shape[-1] - 1 - number
    rows, column, row = places(a.shape[-1])[:, None], part(a, k), part(b, k, -2)
    if not is_unit:
        row = row / part(column, k)[..., None]
    b = jnp.where(rows > k if is_lower else rows < k, b - outer(column, row), b)
    return a, jnp.where(rows == k, row[..., None, :], b)


@rules.lowers(
    LINEAR_ALGEBRA,
    routine={Routine.LU},
    numbers={Numbers.BOUNDED},
    form="column by column: a pivot, two rows exchanged, an outer product",
)
def lu_to_columns(op: MatrixLowering) -> Sequence[Value]:
    """Eliminate column by column, each by the first of its largest elements.

        for k:  p = the first i >= k of the largest |a[i, k]|;  exchange rows k and p
                l[i] = a[i, k] / a[k, k];  a[i, j] -= l[i] * a[k, j]  for i, j > k

    Equal up to rounding: both are exact for a matrix that differs by at most about n * eps of |L| |U| (Higham, theorem
    9.3), with the same pivots but where two candidates are as near as that. Pivots count from 1. A column of zeros is
    left as it is and `info` is the number of the first one, 0 where there is none. Which row NaN or infinity in a
    column makes the pivot, LAPACK does not say. Costs min(m, n) steps over the matrix.
    """
    node, build = op.node, op.build
    a = flat(build, node.operand(0), 2)
    *batch, m, n = a.static_shape
    pivots, info = (build.constant(0, (*batch, *own), COUNTER) for own in ((min(m, n),), ()))
    found = steps(build, min(m, n), [a, pivots, info], _lu_column)
    return [build.reshape(v, r.static_shape) for v, r in zip(found, node.results, strict=True)]


def _lu_column(k: Array, a: Array, pivots: Array, info: Array) -> tuple[Array, Array, Array]:
    """One column of L and one row of U, and what is left right of and below them."""
    rows, columns = places(a.shape[-2])[:, None], places(a.shape[-1])
    pivot = _first_largest(k, part(a, k))
    # Row k and the pivot's are exchanged.
    is_pivot = rows == pivot[..., None, None]
    row = jnp.sum(jnp.where(is_pivot, a, 0.0), -2)
    a = jnp.where(is_pivot, part(a, k, -2)[..., None, :], a)
    a = jnp.where(rows == k, row[..., None, :], a)
    divisor, column = part(row, k), part(a, k)
    is_zero = divisor == 0.0
    factors = jnp.where(is_zero[..., None], column, column / divisor[..., None])
    left = jnp.where(columns > k, a - outer(factors, row), a)
    a = jnp.where(rows > k, jnp.where(columns == k, factors[..., None], left), a)
    pivots = jnp.where(places(pivots.shape[-1]) == k, (pivot + 1)[..., None], pivots)
    return a, pivots, jnp.where(is_zero, jnp.where(info == 0, k + 1, info), info)


def _first_largest(k: Array, column: Array) -> Array:
    """Of each column the first place from k on of its largest magnitude; k where that is NaN."""
    rows, none = places(column.shape[-1]), column.shape[-1]
    sizes = jnp.where(rows >= k, jnp.abs(column), -1.0)
    first = jnp.min(jnp.where(sizes == jnp.max(sizes, -1)[..., None], rows, none), -1)
    return jnp.where(first == none, k, first)


@rules.lowers(
    LINEAR_ALGEBRA,
    routine={Routine.TRIDIAGONAL_SOLVE},
    numbers={Numbers.BOUNDED},
    form="row by row: a pivot of two, a row subtracted from the next one; then back",
)
def tridiagonal_to_rows(op: MatrixLowering) -> Sequence[Value]:
    """Eliminate what stands below the diagonal row by row, and solve from the last row on.

        for k:  exchange rows k and k + 1 where |below[k + 1]| > |diagonal[k]|
                subtract row k, times below[k + 1] / diagonal[k], from row k + 1
        for k from the last:  x[k] = (b[k] - above[k] * x[k + 1] - second[k] * x[k + 2]) / diagonal[k]

    Equal up to rounding: LAPACK takes the same steps, and both are exact for a matrix that differs by a few eps of its
    norm (Higham, section 9.6). What stands before the first row and behind the last one is not read. `info` is the
    number of the first pivot that is 0, 0 where there is none; then LAPACK leaves the rest unfinished, and here it is
    no number, or infinite: JAX replaces all of it by NaN. Costs 2 n steps over the diagonals and right sides.
    """
    node, build = op.node, op.build
    below, diagonal, above = (flat(build, node.operand(k), 1) for k in range(3))
    right = flat(build, node.operand(3), 2)
    count = diagonal.static_shape[-1]
    given = build_traced(build, _tridiagonal, diagonal, above, right)
    *_, diagonal, above, second, right, info = steps(
        build, max(count - 1, 0), [below, diagonal, *given], _eliminate_below
    )
    [info, solved] = build_traced(build, _unsolved, diagonal, right, info)
    *_, solved = steps(build, count, [diagonal, above, second, right, solved], _solve_row)
    solved = slice_along(build, solved, len(solved.static_shape) - 2, 0, count)
    return [
        *node.operands[:3],
        build.reshape(solved, node.result(3).static_shape),
        build.reshape(info, node.result(4).static_shape),
    ]


def _tridiagonal(diagonal: Array, above: Array, right: Array) -> tuple[Array, Array, Array, Array]:
    """The upper diagonal without what stands behind the last row, an empty one above it, right sides, and `info`."""
    above = jnp.where(places(above.shape[-1]) == above.shape[-1] - 1, above.dtype.type(0), above)
    return above, lax.full_like(diagonal, 0), right, lax.full(diagonal.shape[:-1], 0, jnp.int32)


def _eliminate_below(
    k: Array, below: Array, diagonal: Array, above: Array, second: Array, right: Array, info: Array
) -> tuple[Array, ...]:
    """Make the element below a pivot zero, with the larger one of the two as the pivot."""
    first = [part(one, k) for one in (diagonal, above)] + [part(right, k, -2)]
    under = [part(one, k + 1) for one in (below, diagonal, above)] + [part(right, k + 1, -2)]
    is_kept = jnp.abs(first[0]) >= jnp.abs(under[0])
    zero = lax.full_like(first[0], 0)
    # A row from the pivot on: three elements, and its right sides.
    pair = ([first[0], first[1], zero, first[2]], under)
    upper = [_either(is_kept, a, b) for a, b in zip(*pair, strict=True)]
    lower = [_either(is_kept, b, a) for a, b in zip(*pair, strict=True)]
    is_zero = upper[0] == 0.0
    factor = jnp.where(is_zero, zero, lower[0] / upper[0])
    left = [a - _over(factor, b) * b for a, b in zip(lower[1:], upper[1:], strict=True)]
    diagonal, above, second = (
        _put(one, k, value) for one, value in zip((diagonal, above, second), upper[:3], strict=True)
    )
    diagonal, above = _put(diagonal, k + 1, left[0]), _put(above, k + 1, left[1])
    rows = places(right.shape[-2])[:, None]
    right = jnp.where(rows == k, upper[3][..., None, :], jnp.where(rows == k + 1, left[2][..., None, :], right))
    return below, diagonal, above, second, right, jnp.where(is_zero & (info == 0), k + 1, info)


def _over(number: Array, of: Array) -> Array:
    """A number of each matrix beside what there is of each of them."""
    return number if number.ndim == of.ndim else number[..., None]


def _either(is_first: Array, first: Array, second: Array) -> Array:
    return jnp.where(_over(is_first, first), first, second)


def _put(vector: Array, k: Array, value: Array) -> Array:
    return jnp.where(places(vector.shape[-1]) == k, value[..., None], vector)


def _unsolved(diagonal: Array, right: Array, info: Array) -> tuple[Array, Array]:
    """`info` with the last pivot, and room for the solutions, with two rows of zeros behind the last one."""
    count = diagonal.shape[-1]
    last = lax.index_in_dim(diagonal, count - 1, diagonal.ndim - 1, keepdims=False)  # `[..., -1]` is dynamic in jax 0.9
    is_zero = (last == 0.0) & (info == 0)
    rows = (*right.shape[:-2], count + 2, right.shape[-1])
    return jnp.where(is_zero, count, info), lax.full(rows, 0, right.dtype)


def _solve_row(
    number: Array, diagonal: Array, above: Array, second: Array, right: Array, solved: Array
) -> tuple[Array, ...]:
    """Solve the next row, the last one first."""
    k = diagonal.shape[-1] - 1 - number
    left = part(right, k, -2)
    for factors, ahead in ((above, 1), (second, 2)):
        left = left - part(factors, k)[..., None] * part(solved, k + ahead, -2)
    found = left / part(diagonal, k)[..., None]
    rows = places(solved.shape[-2])[:, None]
    return diagonal, above, second, right, jnp.where(rows == k, found[..., None, :], solved)


@rules.lowers(
    LINEAR_ALGEBRA,
    routine={Routine.QR},
    numbers={Numbers.BOUNDED},
    form="column by column: a reflection that zeroes the column below the diagonal",
)
def qr_to_reflections(op: MatrixLowering) -> Sequence[Value]:
    """Reflect column by column, each onto its diagonal element.

        for k:  beta = -sign(a[k, k]) * |a[k:, k]|;  tau = (beta - a[k, k]) / beta;  v = a[k:, k] / (a[k, k] - beta)
                v[k] = 1;  a -= tau * v (v' a)  right of column k;  a[k, k] = beta, and v stands below it

    Equal up to rounding, with LAPACK's signs: beta's is the opposite of a[k, k]'s, tau is 0 and the column stays where
    nothing stands below the diagonal. Both are exact for a matrix whose columns differ by at most about m n * eps of
    their norms (Higham, theorem 19.4). Norms are of what is divided by its largest element, so their squares do not
    overflow; LAPACK's further scaling of columns near the smallest normal number is left out. Costs min(m, n) steps.
    """
    node, build = op.node, op.build
    a = flat(build, node.operand(0), 2)
    *batch, m, n = a.static_shape
    taus = build.float_splat(0.0, (*batch, min(m, n)), a.element_type)
    found = steps(build, min(m, n), [a, taus], reflect_column)
    return [build.reshape(v, r.static_shape) for v, r in zip(found, node.results, strict=True)]


def reflect_column(k: Array, a: Array, taus: Array) -> tuple[Array, Array]:
    """Make what stands below the diagonal zero in a column: see `qr_to_reflections`."""
    rows, columns, column = places(a.shape[-2]), places(a.shape[-1]), part(a, k)
    is_below, alpha = rows > k, part(column, k)
    beta, is_done = _reflected_norm(alpha, jnp.where(is_below, column, 0.0))
    tau = jnp.where(is_done, 0.0, (beta - alpha) / beta)
    scaled = jnp.where(is_done[..., None], column, column / (alpha - beta)[..., None])
    vector = jnp.where(is_below, scaled, _one_at(k, column))
    right = jnp.where(columns > k, _apply_reflector(vector, tau, a), a)
    beta = jnp.where(is_done, alpha, beta)[..., None]
    own = jnp.where(rows == k, beta, jnp.where(is_below, scaled, column))
    a = jnp.where(columns == k, own[..., None], right)
    return a, jnp.where(places(taus.shape[-1]) == k, tau[..., None], taus)


def _one_at(k: Array, column: Array) -> Array:
    """1 at a place, 0 elsewhere."""
    return jnp.where(places(column.shape[-1]) == k, 1.0, column.dtype.type(0))


def _reflected_norm(alpha: Array, below: Array) -> tuple[Array, Array]:
    """-sign(alpha) times the norm of alpha and what stands below it, and whether nothing stands there."""
    largest = jnp.max(jnp.abs(below), -1)
    size = jnp.maximum(largest, jnp.abs(alpha))
    size = jnp.where(size == 0.0, 1.0, size)
    scaled, first = below / size[..., None], alpha / size
    norm = size * jnp.sqrt(jnp.sum(scaled * scaled, -1) + first * first)
    is_negative = jnp.minimum(alpha, 1.0 / alpha) < 0.0  # -0 is, too
    return jnp.where(is_negative, norm, -norm), largest == 0.0


def _apply_reflector(vector: Array, tau: Array, a: Array) -> Array:
    """a - tau * v (v' a)."""
    products = jnp.sum(vector[..., None] * a, -2)
    return a - outer(vector, tau[..., None] * products)


@rules.lowers(
    LINEAR_ALGEBRA,
    routine={Routine.ORTHOGONAL},
    numbers={Numbers.BOUNDED},
    form="the reflections applied to the identity, the last one first",
)
def reflections_to_q(op: MatrixLowering) -> Sequence[Value]:
    """Multiply the reflections out.

        q = 1 on the diagonal;  for k from the last to 0:  v = (0, ..., 1, a[k+1:, k]);  q -= tau[k] * v (v' q)

    Equal up to rounding: both differ from the product of the exact reflections by at most about m n * eps (Higham,
    lemma 19.3). What stands on and above the diagonal is not read. Costs as many steps over the matrix as there are
    reflections.
    """
    node, build = op.node, op.build
    a, taus = flat(build, node.operand(0), 2), flat(build, node.operand(1), 1)
    count = taus.static_shape[-1]
    [q] = build_traced(build, identity_beside, a, width=a.static_shape[-1])
    return [build.reshape(steps(build, count, [a, taus, q], apply_next_reflector)[2], node.result(0).static_shape)]


def identity_beside(a: Array, *, width: int) -> Array:
    """The first columns of the identity, as high as these matrices are."""
    diagonal = places(a.shape[-2])[:, None] == places(width)
    return jnp.broadcast_to(jnp.where(diagonal, 1.0, a.dtype.type(0)), (*a.shape[:-1], width))


def apply_next_reflector(number: Array, a: Array, taus: Array, q: Array) -> tuple[Array, Array, Array]:
    """Reflect by the next of the vectors that stand below the diagonal of a matrix, the last one first."""
    k = taus.shape[-1] - 1 - number
    column = part(a, k)
    vector = jnp.where(places(column.shape[-1]) > k, column, _one_at(k, column))
    return a, taus, _apply_reflector(vector, part(taus, k), q)
