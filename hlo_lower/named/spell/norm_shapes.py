"""Adapters of norms: the sizes of the last axes in the place of axes, and channels last."""

from collections.abc import Sequence
from math import prod

import numpy as np

from hlo_lower.base.causes import Cause, Code
from hlo_lower.named.spell.adapters import Adapted, Found, OneValue, by_roles
from hlo_lower.ops.targets.named_op import NamedOp


def normalized_shape(found: Found, entry: NamedOp) -> Adapted | Cause:
    """A norm over the last axes; `normalized_shape` has their sizes, and weight and bias those axes alone.

    A weight with axes of one before these is reshaped; `weight = "none"` is one without the operand.
    """
    x = found.operands["x"].static_shape
    axes = found.attributes["axes"]
    if not isinstance(axes, tuple) or axes != tuple(range(len(x) - len(axes), len(x))):
        return Code.NAMED_OP_LACKS("a norm over the last axes")
    sizes = x[len(x) - len(axes) :]
    shapes = {role: value.static_shape for role, value in found.operands.items()}
    for role, shape in shapes.items():
        if role != "x" and (prod(shape) != prod(sizes) or tuple(s for s in shape if s != 1) != _long(sizes)):
            return Code.NAMED_OP_LACKS("weights of the axes of the norm")
    weights = {role: shape for role, shape in shapes.items() if role != "x"}
    there = {role: reshaped(sizes) for role in weights}
    back = {role: reshaped(shape) for role, shape in weights.items()}
    return by_roles(found, entry, there, back, attributes={"axes": tuple(sizes)})


def reshaped(shape: Sequence[int]) -> OneValue:
    """What gives a value this shape."""
    return lambda build, value: build.reshape(value, shape)


def _long(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for size in sizes if size != 1)


def channels_last(found: Found, entry: NamedOp) -> Adapted | Cause:
    """A group norm whose channels are the last axis: what has them elsewhere is transposed, and back behind it."""
    axis = found.attributes["channel_axis"]
    shape = found.operands["x"].static_shape
    if not isinstance(axis, int) or not 0 <= axis < len(shape):
        return Code.NAMED_OP_LACKS("an axis of channels")
    there = [d for d in range(len(shape)) if d != axis] + [axis]
    back = [int(d) for d in np.argsort(there)]
    shapes = {role: value.static_shape for role, value in found.operands.items()}
    channels = shape[axis]
    if any(role != "x" and prod(size) != channels for role, size in shapes.items()):
        return Code.NAMED_OP_LACKS("a weight for each channel")
    weights = {role: size for role, size in shapes.items() if role != "x"}
    return by_roles(
        found,
        entry,
        {"x": transposed(there), **{role: reshaped([channels]) for role in weights}},
        {"x": transposed(back), **{role: reshaped(size) for role, size in weights.items()}},
        handed=transposed(there),
        taken=transposed(back),
        attributes={"channel_axis": len(shape) - 1},
    )


def transposed(order: Sequence[int]) -> OneValue:
    """What gives the axes of a value this order."""
    return lambda build, value: build.transpose(value, order)
