"""Eigenvectors and singular vectors: of one region what is told of them, in the place of the vectors themselves.

Their signs are open, and where values are equal, so is which vectors stand for them: LAPACK promises that they are
orthogonal and belong to the values. So both pieces return, for vectors V of a symmetric matrix A, V' A V and V' V,
which are the values on a diagonal and the identity, whatever V is chosen; for U and V' of any matrix U' A V, U' U and
V' V, of one of the two alone its own and that of A A' or A' A. They are compared as other floats are, within how far
LAPACK's own move.

What else is computed of vectors has no one value. A region that computes it is not judged, nor is a module run of which
a result depends on them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
from jax import Array

from hlo_lower.ir import mlir
from hlo_lower.verify.align.align import Region
from hlo_lower.verify.bounds.matrices import vector_results
from hlo_lower.verify.read.program import Body, Op, ValueId
from hlo_lower.verify.run import CannotRunError

_jax: Any = jax  # its annotations leave jit partly unknown

OPEN = "the signs of eigenvectors and singular vectors are open"


def vectors_of(op: Op) -> tuple[ValueId, ...]:
    """The results of an op that are vectors."""
    return tuple(op.results[k] for k in vector_results(op.raw))


def calls_for_vectors(body: Body) -> int:
    """How many calls give vectors that a function's results depend on."""
    ops = body.live()
    read = {*body.returned, *(value for op in ops for value in op.reads)}
    return sum(bool(read.intersection(vectors_of(op))) for op in ops)


@dataclass(frozen=True)
class Told:
    """What is told of the vectors of one matrix, in the place of outputs of a region.

    Attributes:
      matrices: the matrix in each piece.
      triangle: which triangle of a symmetric matrix counts: "L" or "U"; "" of any matrix.
      left, right: the places of outputs that are vectors: as columns on the left of the matrix, as rows on the right.
    """

    matrices: tuple[ValueId, ValueId]
    triangle: str
    left: int | None
    right: int | None = None


def told_of(region: Region) -> list[Told]:
    """What is told of the vectors among the outputs of a region's first piece; nothing where both leave them to LAPACK.

    Raises:
      CannotRunError: more is computed of vectors, or of what they are vectors is no input.
    """
    if sum(bool(vectors_of(op)) for op in region.first) == sum(bool(vectors_of(op)) for op in region.second):
        return []
    side, other_side = region.pair.first, region.pair.second
    places = {output.first: k for k, output in enumerate(region.outputs)}
    read = {value for op in region.first for value in op.reads}
    found: list[Told] = []
    for op in region.first:
        values = vectors_of(op)
        if read.intersection(values):
            raise CannotRunError(f"{OPEN}, and something is computed of them")
        left, right = ([*(places.get(value) for value in values), None][:2]) if values else (None, None)
        if left is None and right is None:
            continue
        number = side.numbers[op.inputs[0]]
        other = other_side.value_of.get(number)
        maker = None if other is None else other_side.program.makers[other]
        if other is None or (number not in region.inputs and maker not in region.second):
            raise CannotRunError(f"{OPEN}, and one piece does not hold their matrix")
        found.append(Told((op.inputs[0], other), _triangle(op), left, right))
    return found


def _triangle(op: Op) -> str:
    attributes = mlir.attributes_of(op.raw)
    if mlir.call_target(op.raw) == "Eigh":  # a list in a text, which begins with whether the lower one counts
        return "L" if str(attributes["backend_config"]).startswith('"1') else "U"
    for key in ("mhlo.backend_config", "backend_config"):
        if key in attributes and str(attributes[key]).startswith("{"):
            uplo = mlir.entries_of(attributes[key]).get("uplo")
            if uplo is not None:
                return chr(mlir.integer_of(uplo))
    return ""


def with_what_is_told(
    module: mlir.RawModule,
    block: mlir.RawBlock,
    values: Sequence[mlir.RawValue],
    told: Sequence[tuple[Told, mlir.RawValue]],
) -> list[mlir.RawValue]:
    """The outputs of a piece, with what is told of vectors for these, computed at the end of its block.

    Args:
      module, block: what the piece is written into.
      values: the outputs.
      told: what is told, and the matrix.
    """
    found = list(values)
    for number, (one, matrix) in enumerate(told):
        given = [matrix, *(values[k] for k in (one.left, one.right) if k is not None)]
        function = partial(_tell, triangle=one.triangle, has_left=one.left is not None, has_right=one.right is not None)
        name = f"told_of_vectors_{number}"
        made = mlir.parse_module(mlir.function_text(function, [v.type for v in given], name), module.context)
        functions = [op.operation for op in made.body.operations]
        for inner in functions:
            module.body.append(inner.clone())
        results = [r.type for r in _returned(functions[0])]
        call = mlir.create_operation(
            "func.call",
            given,
            results,
            {"callee": mlir.parse_attribute(f"@{name}")},
            location=mlir.unknown_location(module.context),
            insertion_point=mlir.insert_at_end(block),
        )
        for place, result in zip((k for k in (one.left, one.right) if k is not None), call.results, strict=True):
            found[place] = result
    return found


def _returned(function: mlir.RawOperation) -> Iterator[mlir.RawValue]:
    block = function.regions[0].blocks[0]
    return iter(list(block.operations)[-1].operation.operands)


def _tell(a: Array, *vectors: Array, triangle: str, has_left: bool, has_right: bool) -> list[Array]:
    """What is told of vectors: products that are diagonal, over products that are the identity."""
    if triangle:
        rows, columns = (_jax.lax.broadcasted_iota("int32", a.shape, a.ndim - d) for d in (2, 1))
        kept = rows >= columns if triangle == "L" else rows <= columns
        a = _jax.lax.select(kept, a, _turned(a))
        [v] = vectors
        return [_over(_product(_turned(v), _product(a, v)), _product(_turned(v), v))]
    if has_left and has_right:
        u, vt = vectors
        values = _product(_turned(u), _product(a, _turned(vt)))
        return [_over(values, _product(_turned(u), u), 1), _product(vt, _turned(vt))]
    x = vectors[0] if has_left else _turned(vectors[0])
    b = a if has_left else _turned(a)
    y = _product(_turned(x), b)
    return [_over(_product(y, _turned(y)), _product(_turned(x), x))]


def _turned(a: Array) -> Array:
    *batch, row, column = range(a.ndim)
    return _jax.lax.transpose(a, (*batch, column, row))


def _product(a: Array, b: Array) -> Array:
    batch = tuple(range(a.ndim - 2))
    return _jax.lax.dot_general(a, b, (((a.ndim - 1,), (a.ndim - 2,)), (batch, batch)))


def _over(a: Array, b: Array, axis: int = 2) -> Array:
    return _jax.lax.concatenate([a, b], a.ndim - axis)
