"""A composite on other operands, whose decomposition computes what the first one's did, bit for bit.

    %r = composite "hl.x" %a, %b {decomposition = @f}
->
    %a2, %b2 = operands(%a, %b)                             before it
    %r2 = composite "target.x" %a2, %b2 {decomposition = @g}
    %r  = restore_result(%r2)                               behind it

    @g(%a2, %b2) = convert_result(@f(recover(%a2, %b2)))

Both are equal, because `recover` is the inverse of `operands`, and `restore_result` that of `convert_result`:
transposes and reshapes with their inverses, a mask that is added and the predicate that it stands for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np

from hlo_lower.base.causes import Cause, Code
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Graph, Node, Value
from hlo_lower.named.match.terms import Terms
from hlo_lower.ops.names import COMPOSITE
from hlo_lower.ops.targets.named_op import NamedOp, Plain

OneValue: TypeAlias = Callable[[Builder, Value], Value]

Attribute: TypeAlias = Plain | tuple[int, ...] | tuple[str, ...]


def identity(_: Builder, value: Value) -> Value:
    """A value as it is."""
    return value


@dataclass(frozen=True, eq=False)
class Found:
    """A composite of ours."""

    # graph, terms: the module
    graph: Graph
    terms: Terms
    node: Node  # the composite
    name: str  # of the op, without "hl."
    operands: dict[str, Value]  # by their roles, in order
    attributes: dict[str, Attribute]  # its attributes, those that it leaves out with their defaults

    @property
    def function(self) -> mlir.RawOperation:
        """Its decomposition."""
        return self.graph.functions[self.node.body_name].node.raw


@dataclass(frozen=True, eq=False)
class Adapted:
    """How a composite becomes the target's."""

    operands: Sequence[Callable[[Builder], Value]]  # build the operands of the target's, in order, before the composite
    # the operands of ours, from the arguments of the new decomposition
    recover: Callable[[Builder, Sequence[Value]], list[Value]]
    convert_result: OneValue = identity  # the result of the target's, from that of ours
    restore_result: OneValue = identity  # the result of ours, from that of the target's
    # ours, where an adapter changes them: sizes in the place of axes
    attributes: dict[str, Attribute] = field(default_factory=dict[str, Attribute])


Adapter: TypeAlias = Callable[[Found, NamedOp], Adapted | Cause]


def by_roles(
    found: Found,
    entry: NamedOp,
    there: Mapping[str, OneValue] | None = None,
    back: Mapping[str, OneValue] | None = None,
    **rest: Any,
) -> Adapted:
    """The operands that the target takes, in its order; `there` changes those of some roles, and `back` is the
    inverse."""
    there, back = there or {}, back or {}
    order = [role for role in entry.roles if role in found.operands]

    def operand_of(role: str) -> Callable[[Builder], Value]:
        return lambda build: there.get(role, identity)(build, found.operands[role])

    def recover(build: Builder, given: Sequence[Value]) -> list[Value]:
        by_role = dict(zip(order, given, strict=True))
        return [back.get(role, identity)(build, by_role[role]) for role in found.operands]

    return Adapted([operand_of(role) for role in order], recover, **rest)


def replace(found: Found, adapted: Adapted, composite: str, attributes: mlir.RawAttribute, name: str) -> Node:
    """Put the target's composite, of these attributes in its spelling and this decomposition, in the place of ours."""
    node = found.node
    build = Builder.before(node)
    operands = [make(build) for make in adapted.operands]
    result = node.results[0]
    types = _function(found, adapted, operands, name)
    raw = mlir.create_operation(
        COMPOSITE,
        [value.raw for value in operands],
        types,
        {
            "name": mlir.string_attribute(composite),
            "composite_attributes": attributes,
            "decomposition": mlir.parse_attribute(f'@"{name}"'),
        },
        location=node.raw.location,
        insertion_point=mlir.insert_before(node.raw),
    )
    result.raw.replace_all_uses_with(adapted.restore_result(build, Value(raw.results[0])).raw)
    node.raw.erase()
    return Node(raw)


def _function(found: Found, adapted: Adapted, operands: Sequence[Value], name: str) -> list[mlir.RawType]:
    """Make the new decomposition, and return its result types."""
    location = found.node.raw.location
    taken = [value.raw.type for value in operands]
    function, block = mlir.private_function(found.graph.module, name, taken, location)
    build = Builder(mlir.insert_at_end(block), location)
    given = adapted.recover(build, [Value(argument) for argument in block.arguments])
    last = mlir.create_operation("func.return", [], [], location=location, insertion_point=mlir.insert_at_end(block))
    _, inner = mlir.inline_template(found.function, [value.raw for value in given], last)
    build = Builder(mlir.insert_before(last), location)
    results = [adapted.convert_result(build, Value(value)).raw for value in inner]
    last.erase()
    mlir.create_operation("func.return", results, [], location=location, insertion_point=mlir.insert_at_end(block))
    types = [value.type for value in results]
    mlir.set_signature(function)
    return types


# --- adapters of norms: the sizes of the last axes in the place of axes, and channels last ---


def normalized_shape(found: Found, entry: NamedOp) -> Adapted | Cause:
    """A norm over the last axes; `normalized_shape` has their sizes, and weight and bias those axes alone.

    A weight with axes of one before these is reshaped; `weight = "none"` is one without the operand.
    """
    x = found.operands["x"].static_shape
    axes = found.attributes["axes"]
    if not isinstance(axes, tuple) or axes != tuple(range(len(x) - len(axes), len(x))):
        return Code.NAMED_OP_LACKS("a norm over the last axes")
    sizes = x[len(x) - len(axes) :]
    long = tuple(size for size in sizes if size != 1)
    shapes = {role: value.static_shape for role, value in found.operands.items()}
    for role, shape in shapes.items():
        if role != "x" and (prod(shape) != prod(sizes) or tuple(s for s in shape if s != 1) != long):
            return Code.NAMED_OP_LACKS("weights of the axes of the norm")
    weights = {role: shape for role, shape in shapes.items() if role != "x"}
    there = {role: reshape_to(sizes) for role in weights}
    back = {role: reshape_to(shape) for role, shape in weights.items()}
    return by_roles(found, entry, there, back, attributes={"axes": tuple(sizes)})


def reshape_to(shape: Sequence[int]) -> OneValue:
    """A function that reshapes a value."""
    return lambda build, value: build.reshape(value, shape)


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
        {"x": transpose_to(there), **{role: reshape_to([channels]) for role in weights}},
        {"x": transpose_to(back), **{role: reshape_to(size) for role, size in weights.items()}},
        convert_result=transpose_to(there),
        restore_result=transpose_to(back),
        attributes={"channel_axis": len(shape) - 1},
    )


def transpose_to(order: Sequence[int]) -> OneValue:
    """A function that transposes a value."""
    return lambda build, value: build.transpose(value, order)
