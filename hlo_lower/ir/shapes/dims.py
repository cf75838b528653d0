"""Symbolic dims as Python values, and shapes made of them, which become the texts that `written_shapes` reads.

b, h = hl.dims("b, h")
hl.export(fn, shapes=[(b * h + 1, 4), (b,), (h, "_", ...), b % 16 == 0])
"""

import ast
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import jax.export

from hlo_lower.base.arguments import short_repr
from hlo_lower.base.errors import InputError
from hlo_lower.ir.shapes.expressions import Expression, expression_text
from hlo_lower.ir.shapes.tokens import ExpressionError, PointedError
from hlo_lower.ir.shapes.written_shapes import WrittenShape, read_written


@dataclass(frozen=True, eq=False, repr=False)
class Constraint:
    """What is said of sizes: it stands among the shapes."""

    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<Constraint {self}>"

    def __bool__(self) -> bool:
        raise InputError(
            self.text,
            "a comparison of symbolic dims is neither true nor false: it holds for some sizes",
            next_step='put it among the shapes, or write it as a text; so are min and max: "min(b, 4)"',
        )


@dataclass(frozen=True, eq=False, repr=False)
class Dim:
    """A dim whose size is open: arithmetic gives dims, a comparison a constraint."""

    node: ast.expr

    __hash__ = None  # pyright: ignore[reportAssignmentType]  # == gives a constraint, so no dictionary finds one

    def __str__(self) -> str:
        return expression_text(self.node)

    def __repr__(self) -> str:
        return f"<Dim {self}>"

    def __add__(self, other: "Dim | int") -> "Dim":
        return _binary_dim(self, ast.Add(), other)

    def __radd__(self, other: int) -> "Dim":
        return _binary_dim(other, ast.Add(), self)

    def __sub__(self, other: "Dim | int") -> "Dim":
        return _binary_dim(self, ast.Sub(), other)

    def __rsub__(self, other: int) -> "Dim":
        return _binary_dim(other, ast.Sub(), self)

    def __mul__(self, other: "Dim | int") -> "Dim":
        return _binary_dim(self, ast.Mult(), other)

    def __rmul__(self, other: int) -> "Dim":
        return _binary_dim(other, ast.Mult(), self)

    def __floordiv__(self, other: "Dim | int") -> "Dim":
        return _binary_dim(self, ast.FloorDiv(), other)

    def __rfloordiv__(self, other: int) -> "Dim":
        return _binary_dim(other, ast.FloorDiv(), self)

    def __mod__(self, other: "Dim | int") -> "Dim":
        return _binary_dim(self, ast.Mod(), other)

    def __rmod__(self, other: int) -> "Dim":
        return _binary_dim(other, ast.Mod(), self)

    def __pow__(self, other: int) -> "Dim":
        return _binary_dim(self, ast.Pow(), other)

    def __neg__(self) -> "Dim":
        return Dim(ast.UnaryOp(ast.USub(), self.node))

    def __eq__(self, other: object) -> Any:
        return _constraint(self, "==", other)

    def __ge__(self, other: "Dim | int") -> Constraint:
        return _constraint(self, ">=", other)

    def __gt__(self, other: "Dim | int") -> Constraint:
        return _constraint(self, ">", other)

    def __le__(self, other: "Dim | int") -> Constraint:
        return _constraint(self, "<=", other)

    def __lt__(self, other: "Dim | int") -> Constraint:
        return _constraint(self, "<", other)


Shape: TypeAlias = str | Sequence[Any] | Constraint
"""A shape or a constraint: a text, or a tuple of dims, whole numbers, texts ("_", "min(b, 4)") and `...`."""


def dims(text: str) -> tuple[Dim, ...]:
    """Symbolic dims, for shapes of `hl.export`.

    Arithmetic of dims and whole numbers gives dims (`b * h + 1`, `h // 2`), a comparison a constraint (`b % 16 == 0`).

    Args:
      text: their names, "b, h".

    Returns:
      As many dims as names, always as a tuple.

    Raises:
      InputError: it is not a list of names.

    Example:
      >>> b, h = hl.dims("b, h")
      >>> hl.export(lambda x, y: x + 1, shapes=[(b * h + 1, 4), (b, h), b >= 2]).in_avals[0].shape
      (b*h + 1, 4)
    """
    try:
        written = read_written(cast(Any, text)) if isinstance(text, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
    except ExpressionError as error:
        raise PointedError("hl.dims", error.what, text=error.text, column=error.column, width=error.width) from None
    found = written.dims if isinstance(written, WrittenShape) and not written.element else ()
    nodes = [dim.node for dim in found if isinstance(dim, Expression) and isinstance(dim.node, ast.Name)]
    if not nodes or len(nodes) < len(found):
        raise InputError("hl.dims", f"{short_repr(text)} is not a list of names", next_step='write hl.dims("b, h")')
    return tuple(map(Dim, nodes))


def as_texts(label: str, shapes: object) -> list[str]:
    """Shapes and constraints as texts, those that stand with dims of `jax.export.symbolic_shape` included.

    Raises:
      InputError: they are none; label says whose they are.
    """
    if not isinstance(shapes, Sequence):
        raise InputError(
            label, f"shapes is {short_repr(shapes)}", next_step='write a list of shapes: shapes=["b, 64", "b"]'
        )
    if isinstance(shapes, str):
        raise InputError(label, "shapes is one text", next_step=f"write a list of shapes: shapes=[{shapes!r}]")
    told: list[str] = []
    scopes: dict[str, None] = {}
    for shape in cast(Sequence[object], shapes):
        if isinstance(shape, str | Constraint):
            told.append(str(shape))
        elif isinstance(shape, tuple | list):
            listed = cast(Sequence[object], shape)
            told.append(f"({', '.join(_dim_text(label, dim) for dim in listed)})")
            scopes |= dict.fromkeys(str(cast(Any, dim).scope) for dim in listed if _is_of_jax(dim))
        else:
            is_dim = isinstance(shape, Dim) or _is_of_jax(shape)
            what = f"{shape} is a dim and no shape" if is_dim else f"{shape!r} is not text"
            raise InputError(label, what, next_step='write a shape as a text, "b, 2*s + 1, 64", or a tuple of dims')
    return [*told, *_constraints(scopes)]


def _constraints(scopes: Iterable[str]) -> list[str]:
    """What scopes of JAX say of their sizes."""
    lines = [line.strip() for scope in scopes for line in scope.partition(" with constraints:")[2].splitlines()]
    return list(filter(None, lines))


def _is_of_jax(dim: object) -> bool:
    return jax.export.is_symbolic_dim(cast(Any, dim))


def _dim_text(label: str, dim: object) -> str:
    if isinstance(dim, Dim | str) or _is_of_jax(dim):
        return str(dim)
    if dim is ...:
        return "..."
    if (node := _node(dim)) is not None:
        return expression_text(node)
    told = "dims are whole numbers, those of hl.dims or jax.export.symbolic_shape, texts and ..."
    raise InputError(label, f"{short_repr(dim)} is not a dim", facts=told, next_step='b, h = hl.dims("b, h")')


def _node(value: object) -> ast.expr | None:
    """A dim, or a whole number, NumPy's too, as part of an expression; None for anything else."""
    if isinstance(value, Dim):
        return value.node
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    number = operator.index(cast(Any, value))
    return ast.Constant(number) if number >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-number))


def _binary_dim(left: Dim | int, op: ast.operator, right: Dim | int) -> Dim:
    nodes = _node(left), _node(right)
    return NotImplemented if nodes[0] is None or nodes[1] is None else Dim(ast.BinOp(nodes[0], op, nodes[1]))


def _constraint(left: Dim, comparison: str, right: object) -> Any:
    node = _node(right)
    return NotImplemented if node is None else Constraint(f"{left} {comparison} {expression_text(node)}")
