"""Comparisons in f64 of numbers that are of f32, as PyTorch writes one of a float with a number of Python."""

import numpy as np

from hlo_lower.base.registry import DoesNotApply
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.ops.names import COMPARE, CONSTANT, CONVERT

FROM_BELOW, FROM_ABOVE = ("GT", "LE"), ("LT", "GE")
"""How what is compared with a constant that f32 does not hold tells it from the number below it, or above it."""


def compares_widened(node: Node) -> bool:
    """Whether an op compares floats of at most 32 bits that were widened, by number, with others or with a constant."""
    if node.name != COMPARE or mlir.enum_value(node.attribute("compare_type")) == "TOTALORDER":
        return False
    makers = [maker for operand in node.operands if (maker := operand.node) is not None]
    widened, constants = sum(map(_is_widening, makers)), sum(maker.name == CONSTANT for maker in makers)
    return widened > 0 and widened + constants == len(node.operands)


def _is_widening(node: Node) -> bool:
    before = node.operand(0).element if node.name == CONVERT else None
    return before is not None and before.is_float and before.bits <= 32


def narrowed(build: Builder, value: Value, direction: str) -> Value:
    """A number of f64 as one of f32 to which each number of f32 stands likewise.

    Args:
      build: where to build.
      value: of f64, what was widened or a constant.
      direction: how what is compared with it is asked to stand to it.

    Raises:
      DoesNotApply: a constant cannot be read, or is a subnormal number of f32.
    """
    node = value.node
    if node is not None and node.name == CONVERT:
        return build.convert(node.operand(0), "f32")
    wide = None if node is None else mlir.constant_value(node.raw)
    if node is None or wide is None:
        raise DoesNotApply("a constant that cannot be read")
    wide = wide.reshape(-1)[:1] if mlir.is_splat(node.raw) else wide
    with np.errstate(all="ignore"):
        near = wide.astype(np.float32)
        if direction in FROM_BELOW:
            near = np.where(near > wide, np.nextafter(near, np.float32(-np.inf)), near)
        elif direction in FROM_ABOVE:
            near = np.where(near < wide, np.nextafter(near, np.float32(np.inf)), near)
        else:
            near = np.where(near == wide, near, np.float32(np.nan))
    if np.any((near != 0) & (np.abs(near) < np.finfo(np.float32).tiny)):
        raise DoesNotApply("compared with a subnormal number of f32, which a processor may take for 0")
    raw_type = mlir.tensor_type(value.shape, "f32")
    return build.op(CONSTANT, [], [raw_type], {"value": mlir.dense_attribute(near, raw_type)}).result()
