"""Written shapes and constraints as symbolic dims of JAX.

JAX has a notation of its own: no parentheses around a sum, `mod(a, b)` for `a % b`, functions of two arguments. An
expression is therefore computed on JAX's dims, which its operators know, and what that prints is in JAX's notation. The
constraints are given to the scope in it; they come first because a scope reads them when it is made.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.export

from hlo_lower.ir.export.user_code import one_line
from hlo_lower.ir.shapes.expressions import Expression, rewritten
from hlo_lower.ir.shapes.tokens import ExpressionError
from hlo_lower.ir.shapes.written_shapes import COMPARISONS, KeptDim, WrittenConstraint, WrittenShape


class SymbolicDims:
    """The symbols of several shapes, with what constrains them.

    Args:
      shapes: the shapes, which are read later; their symbols are needed now.
      constraints: what holds for the symbols. An equation replaces its left side by its right one, as in JAX.

    Raises:
      ExpressionError: a constraint cannot hold, or is none that JAX takes; a divisor may be zero.
    """

    def __init__(self, shapes: Iterable[WrittenShape], constraints: Sequence[WrittenConstraint]) -> None:
        written = [dim for shape in shapes for dim in shape.dims if isinstance(dim, Expression)]
        sides = [side for constraint in constraints for side in (constraint.left, constraint.right)]
        names = sorted({name for found in (*written, *sides) for name in found.symbols})
        # Dims of a scope without constraints: an equation would rewrite the dims that state it.
        self._free = jax.export.SymbolicScope()
        self._symbols: Mapping[str, Any] = {n: self._dim(n, self._free) for n in names}
        self._scope = jax.export.SymbolicScope()
        shaped = {name for found in written for name in found.symbols}
        for side in sides:
            for name in sorted(set(side.symbols) - shaped):
                raise side.part(name).error(f"{name} is in no shape", "a constraint is about names of the shapes")
        taken: list[str] = []
        for constraint in constraints:
            taken += self._new_constraints(constraint, taken)
        for found in (*sides, *written):
            for divisor in found.divisors():
                self._check_divisor(divisor)

    def dims_of(self, shape: WrittenShape, like: Sequence[Any] | None) -> tuple[Any, ...]:
        """The dims of a shape, numbers or dims of JAX.

        Args:
          shape: the shape as written.
          like: the dims of the argument that it is for, which "_" and "..." keep; None where there is no argument.

        Raises:
          ExpressionError: the shape does not fit the argument, or a dim is negative.
        """
        dims: list[Any] = []
        for written in shape.dims:
            if isinstance(written, KeptDim):
                dims += _kept_dims(written, like, len(dims))
            else:
                dims.append(self._checked_dim(written, like, len(dims)))
        if like is not None and len(dims) != len(like):
            told = "more" if len(dims) > len(like) else "fewer"
            what = f"{len(dims)} dims, {told} than the {len(like)} that the argument has"
            raise shape.error(what, 'give each dim, "_" for one that stays and "..." for all the others')
        return tuple(dims)

    def _checked_dim(self, written: Expression, like: Sequence[Any] | None, place: int) -> Any:
        dim = self._in_scope(written)
        if _holds(dim, 0, "<"):
            raise written.error("a size cannot be below 0", f"this is {rewritten(str(dim))}, below 0 for all sizes")
        if isinstance(dim, int) and like is not None and place < len(like) and dim != like[place]:
            what = f"dim {place} of the argument is {like[place]}, not {dim}"
            raise written.error(what, '"_" keeps it, a name leaves it open')
        return dim

    def _new_constraints(self, constraint: WrittenConstraint, before: Sequence[str]) -> list[str]:
        """Make the scope anew with a constraint, and return what that adds to the constraints."""
        left, right = (self._free_value(side) for side in (constraint.left, constraint.right))
        if _never(left, constraint.comparison, right):
            raise constraint.error("this never holds", "every name is a size of 1 or more")
        reason = ""
        for candidates in _in_jax(constraint, left, right):
            try:
                self._scope = jax.export.SymbolicScope([*before, *candidates])
                if self._is_settled():
                    return candidates
            except Exception as error:  # JAX has no class for it
                reason = reason or one_line(error)
        if constraint.comparison == "==":
            hint = "one side is a name or a product, and each occurs in one equation only"
            raise constraint.error("this equation contradicts the others", hint)
        raise constraint.error("JAX rejects this constraint", reason)

    def _is_settled(self) -> bool:
        """Whether what stands for each symbol, an equation's right side perhaps, is not replaced in its turn."""
        values = [str(self._dim(name, self._scope)) for name in self._symbols]
        return values == [str(self._dim(value, self._scope)) for value in values]

    def _check_divisor(self, divisor: Expression) -> None:
        value = self._in_scope(divisor)
        if isinstance(value, int) and value == 0:
            raise divisor.error("this divisor is zero")
        if not (_holds(value, 1, ">=") or _holds(value, -1, "<=")):
            raise divisor.error("this divisor may be zero", f'add the constraint "{divisor} >= 1"')

    def _free_value(self, written: Expression) -> Any:
        """The value as a dim of the scope without constraints."""
        try:
            return written.value(self._symbols, self._least, self._greatest)
        except ExpressionError:
            raise
        except Exception as error:  # JAX's own, on what it does not know
            raise written.error("JAX rejects this expression", one_line(error)) from None

    def _in_scope(self, written: Expression) -> Any:
        """The value as a dim of the scope with the constraints."""
        try:
            return self._dim(str(self._free_value(written)), self._scope)
        except ExpressionError:
            raise
        except Exception as error:
            raise written.error("JAX rejects this expression", one_line(error)) from None

    def _least(self, a: Any, b: Any) -> Any:
        return self._dim(f"min({a}, {b})", self._free)

    def _greatest(self, a: Any, b: Any) -> Any:
        return self._dim(f"max({a}, {b})", self._free)

    @staticmethod
    def _dim(text: str, scope: jax.export.SymbolicScope) -> Any:
        return jax.export.symbolic_shape(text, scope=scope)[0]


def _kept_dims(written: KeptDim, like: Sequence[Any] | None, place: int) -> Sequence[Any]:
    if like is None:
        what = f"{written.token.letters} keeps what an argument has, and no arguments are given"
        raise written.error(what, "write the dims")
    if not written.is_rest and place >= len(like):
        raise written.error(f"the argument has only {len(like)} dims", "give fewer dims")
    return like[place:] if written.is_rest else like[place : place + 1]


def _in_jax(constraint: WrittenConstraint, left: Any, right: Any) -> list[list[str]]:
    """A constraint in JAX's notation: the ways to say it, each one constraint or two."""
    match constraint.comparison:
        case ">":
            return [[f"{left} >= {right + 1}"]]
        case "<":
            return [[f"{left} <= {right - 1}"]]
        case "==":
            straight, turned = f"{left} == {right}", f"{right} == {left}"
            if mirrored := _with_negative_divisor(constraint.left, left, right):
                return [[straight, mirrored], [straight]]
            is_named = isinstance(constraint.right.node, ast.Name) and not isinstance(constraint.left.node, ast.Name)
            return [[turned], [straight]] if is_named else [[straight], [turned]]  # a name goes rather than a product
        case comparison:
            return [[f"{left} {comparison} {right}"]]


def _with_negative_divisor(written: Expression, left: Any, right: Any) -> str:
    """The same divisibility with the divisor's sign turned; "" where the left side is no remainder of 0.

    `reshape(-1, 16)` asks whether `mod(s, -16)` is 0, and JAX does not conclude that from `mod(s, 16) == 0`.
    """
    match written.node:
        case (
            ast.BinOp(op=ast.Mod(), right=ast.Constant(value=int(divisor)))
            | ast.Call(func=ast.Name(id="mod"), args=[_, ast.Constant(value=int(divisor))])
        ) if right == 0 and divisor > 0:
            text = str(left)
            return text.removesuffix(f"{divisor})") + f"-{divisor}) == 0" if text.endswith(f", {divisor})") else ""
        case _:
            return ""


def _never(left: Any, comparison: str, right: Any) -> bool:
    """Whether a comparison is false for all sizes, as far as JAX can tell."""
    opposite = {"==": ("<", ">"), ">=": ("<",), "<=": (">",), ">": ("<=",), "<": (">=",)}
    return any(_holds(left, right, one) for one in opposite[comparison])


def _holds(left: Any, right: Any, comparison: str) -> bool:
    """Whether a comparison is known to hold for all sizes."""
    try:
        return bool(COMPARISONS[comparison](left, right))
    except Exception:  # inconclusive: JAX's class for it is private
        return False
