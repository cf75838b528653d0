"""Ops in whose place the judge puts what a function of JAX computes of their operand."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax

from hlo_lower.base.element_types import element_type
from hlo_lower.ir import mlir

_jax: Any = jax


def put_in_place(op: mlir.RawOperation, function: Callable[[Any], Any]) -> None:
    """Let an op's results be those of a function of its one operand, whose operations are put before it.

    Args:
      op: of a static shape.
      function: one for all ops that compute the same, of operations that call nothing.
    """
    operand = op.operands[0].type
    text = _text_of(function, mlir.static_shape(operand), mlir.tensor_element_name(operand))
    made = mlir.parse_module(text, op.context)  # which holds the function
    [body] = made.body.operations
    mlir.replace_results(op, mlir.inline_template(body.operation, [op.operands[0]], op)[1])
    op.erase()


@lru_cache(maxsize=256)
def _text_of(function: Callable[[Any], Any], shape: tuple[int, ...], element: str) -> str:
    with mlir.plain_jax():
        return _jax.jit(function).lower(jax.ShapeDtypeStruct(shape, element_type(element).dtype)).as_text()
