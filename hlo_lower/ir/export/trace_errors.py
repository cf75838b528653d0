"""What JAX refuses while it traces, told in the words of the shapes that were asked for.

Some refusals come from symbolic shapes, and JAX has no public class for them: sizes that cannot be computed from the
arguments' shapes, and comparisons of sizes that hold for some sizes and not for others. They are known by their text;
any other error is told in its own words.
"""

import ast
import re
from collections.abc import Sequence

from hlo_lower.base.errors import InputError
from hlo_lower.ir.export.user_code import one_line
from hlo_lower.ir.shapes.expressions import Expression, rewritten
from hlo_lower.ir.shapes.tokens import ExpressionError, PointedError
from hlo_lower.ir.shapes.written_shapes import WrittenShape, read_written

_UNSOLVED = re.compile(r"Cannot solve for values of dimension variables \{(.*?)\}")
_REPLACED = re.compile(r"Encountered dimension variable '(.*?)' that is not appearing in the shapes")
_INCONCLUSIVE = re.compile(r"Symbolic dimension comparison '(.*?)' (>=|<=|==|>|<) '(.*?)' is inconclusive")
_REMAINDER = re.compile(r"The remainder (.*) should be 0")


def tracing_error(error: Exception, label: str, where: str, facts: str, shapes: Sequence[str]) -> InputError:
    """What is told of an error that tracing raised.

    Args:
      error: the error.
      label: the name of the function.
      where: the line of the user's file, or the name of the function.
      facts: what the function was traced with.
      shapes: the symbolic shapes and constraints that were asked for.
    """
    text = str(error)
    if unsolved := _UNSOLVED.search(text):
        return _unsolved_error(label, facts, re.findall(r"\w+", unsolved[1]), shapes)
    if replaced := _REPLACED.search(text):
        return InputError(
            where=label,
            what=f"{replaced[1]} is in no argument's shape any more: an equation replaced the dim that it stood in",
            facts=facts,
            next_step=f"give {replaced[1]} as a dim of an argument",
        )
    wanted = ""
    if compared := _INCONCLUSIVE.search(text):
        wanted = f"{_in_our_notation(compared[1])} {compared[2]} {_in_our_notation(compared[3])}"
    elif remainder := _REMAINDER.search(text):
        # reshape(-1, 16) asks for mod(s, -16), which is 0 where mod(s, 16) is
        wanted = _in_our_notation(re.sub(r", - (\d+)\)$", r", \1)", remainder[1])) + " == 0"
    return InputError(
        where=where,
        what=f"tracing {label} failed: {one_line(error)}",
        facts=facts,
        next_step=f'if that holds for all sizes, say so: add the constraint "{wanted}" to the shapes' if wanted else "",
    )


def _unsolved_error(label: str, facts: str, names: Sequence[str], shapes: Sequence[str]) -> InputError:
    """The error for sizes that no argument's shape gives; it shows the first dim that uses them."""
    told = " and ".join(sorted(names))
    what = f"{told} cannot be computed from the arguments' shapes"
    next_step = (
        f"give {told if len(names) == 1 else f'each of {told}'} as a dim of an argument, alone or times a number"
    )
    for number, shape in enumerate(s for s in map(read_written, shapes) if isinstance(s, WrittenShape)):
        for dim in shape.dims:
            if not (isinstance(dim, Expression) and set(names) & set(dim.symbols)):
                continue
            if factor := _other_factor(dim, names):
                next_step += f'; or write n for {dim}, with the constraint "n % {factor} == 0"'
            place = dim.error(what)
            return PointedError(
                label,
                f"argument {number}: {what}",
                facts=facts,
                next_step=next_step,
                text=place.text,
                column=place.column,
                width=place.width,
            )
    return InputError(label, what, facts=facts, next_step=next_step)


def _other_factor(dim: Expression, names: Sequence[str]) -> str | None:
    """What a dim is a multiple of, where it is the product of one unknown size and what is known."""
    match dim.node:
        case ast.BinOp(left=ast.Name(id=name), op=ast.Mult(), right=other) if [name] == list(names):
            pass
        case ast.BinOp(left=other, op=ast.Mult(), right=ast.Name(id=name)) if [name] == list(names):
            pass
        case _:
            return None
    if any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(other)):
        return None  # b*b: a multiple of what is not known
    return ast.unparse(other) if isinstance(other, (ast.Name, ast.Constant)) else f"({ast.unparse(other)})"


def _in_our_notation(text: str) -> str:
    """An expression of JAX's in the notation of the shapes; as it is where that cannot be read."""
    try:
        return rewritten(text)
    except ExpressionError:
        return text
