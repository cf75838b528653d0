"""Adapters of norms: the sizes of the last axes in the place of axes, and channels last."""

from math import prod

import numpy as np

from hlo_lower.causes import Cause, Code
from hlo_lower.spelling.adapted import Adapted, Found
from hlo_lower.targets.named_op import NamedOp


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
    order = [role.strip("[]") for role in entry.operands if role.strip("[]") in found.operands]
    wanted = {role: x if role == "x" else tuple(sizes) for role in order}
    at = {role: number for number, role in enumerate(order)}
    return Adapted(
        [lambda build, role=role: build.reshape(found.operands[role], wanted[role]) for role in order],
        lambda build, given: [build.reshape(given[at[role]], shapes[role]) for role in found.operands],
        attributes={"axes": tuple(sizes)},
    )


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
    order = [role.strip("[]") for role in entry.operands if role.strip("[]") in found.operands]
    at = {role: number for number, role in enumerate(order)}
    return Adapted(
        [
            (lambda build: build.transpose(found.operands["x"], there))
            if role == "x"
            else (lambda build, role=role: build.reshape(found.operands[role], [channels]))
            for role in order
        ],
        lambda build, given: [
            build.transpose(given[at[role]], back) if role == "x" else build.reshape(given[at[role]], shapes[role])
            for role in found.operands
        ],
        lambda build, value: build.transpose(value, there),
        lambda build, value: build.transpose(value, back),
        {"channel_axis": len(shape) - 1},
    )
