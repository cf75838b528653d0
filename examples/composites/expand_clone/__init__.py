"""Rules for `acme.expand_clone`, a composite that copies the rows of a matrix in one of four ways, on two targets.

stack       [rows, columns] -> [copies, rows, columns], each a copy
tile        [rows, columns] -> [copies * rows, columns], one copy after the other
interleave  [rows, columns] -> [rows * copies, columns], each row so often
mirror      [rows, columns] -> [copies * rows, columns], every second copy upside down
"""

from collections.abc import Iterator, Sequence
from enum import Enum
from functools import partial
from itertools import product

from hlo_lower.plugin import OpLowering, RuleList, Value, VariantFacts, When

EXPAND_CLONE = "acme.expand_clone"


class Mode(Enum):
    """How rows are copied: the attribute `mode` of the composite."""

    STACK = "stack"
    TILE = "tile"
    INTERLEAVE = "interleave"
    MIRROR = "mirror"


def copied(x, *, mode, copies):
    """What the composite means: rows stacked, repeated, or one after the other."""
    from jax import numpy as jnp

    if mode == "stack":
        return jnp.stack([x] * copies)
    if mode == "interleave":
        return jnp.repeat(x, copies, axis=0)
    return jnp.concatenate([x[::-1] if mode == "mirror" and k % 2 else x for k in range(copies)])


def modules() -> Iterator[str]:
    """Small modules that hold a variant each, for `hlo-lower prove`."""
    from jax import ShapeDtypeStruct, jit, lax

    for mode, copies, rows, columns in product(Mode, (1, 2, 3), (1, 4), (1, 5)):
        clone = partial(lax.composite(copied, EXPAND_CLONE), mode=mode.value, copies=copies)
        yield jit(clone).lower(ShapeDtypeStruct((rows, columns), "float32")).as_text()


rules = RuleList()
rules.declare(
    EXPAND_CLONE,
    mode=Mode,
    copies=int,
    target={"npu_rows", "npu_tiles"},
    defaults={"mode": Mode.TILE},
    examples=modules,
)


@rules.composite(
    EXPAND_CLONE,
    mode={Mode.STACK, Mode.TILE, Mode.INTERLEAVE},
    target="npu_tiles",
    form="reshape(broadcast_in_dim(x))",
)
def expand_clone_to_broadcast(op: OpLowering[VariantFacts]) -> Sequence[Value]:
    """Read the matrix once for each copy, along a dim of its own, and let that dim become part of the rows.

        %b = broadcast_in_dim %x, dims = [1, 2] : [copies, rows, columns]     (of an interleave [0, 2])
        %r = reshape %b

    Equal: element [k, i, j] of the broadcast is x[i, j]; in row-major order that is row k * rows + i of a tile. For an
    interleave the new dim comes behind the rows, so it is row i * copies + k. Nothing is computed, so no bit changes.
    """
    (x,), copies = op.node.operands, op.facts["copies"]
    rows, columns = x.static_shape
    if op.facts["mode"] is Mode.INTERLEAVE:
        spread = op.build.broadcast(x, (rows, copies, columns), (0, 2))
    else:
        spread = op.build.broadcast(x, (copies, rows, columns), (1, 2))
    return [op.build.reshape(spread, op.node.result().static_shape)]


@rules.composite(
    EXPAND_CLONE,
    mode={Mode.STACK, Mode.TILE, Mode.INTERLEAVE},
    target="npu_tiles",
    when=When("one copy", lambda facts: facts["copies"] == 1),
    form="reshape(x)",
)
def expand_clone_to_reshape(op: OpLowering[VariantFacts]) -> Sequence[Value]:
    """Give one copy without reading it.

    Equal: with one copy each of these modes has the rows of x in their order; only the shape of a stack is another.
    """
    return [op.build.reshape(op.node.operand(0), op.node.result().static_shape)]


@rules.composite(EXPAND_CLONE, mode={Mode.STACK, Mode.TILE}, target="npu_rows", form="concatenate(x, x, ...)")
def expand_clone_to_concatenate(op: OpLowering[VariantFacts]) -> Sequence[Value]:
    """Put whole copies one behind the other.

    Equal: row k * rows + i of the concatenation is row i of copy k; a stack is the same in three dims.
    """
    copies = [op.node.operand(0)] * op.facts["copies"]
    return [op.build.reshape(op.build.concatenate(copies, 0), op.node.result().static_shape)]


@rules.composite(EXPAND_CLONE, mode=Mode.INTERLEAVE, target="npu_rows", form="reshape(concatenate along columns)")
def expand_clone_to_wide_rows(op: OpLowering[VariantFacts]) -> Sequence[Value]:
    """Put copies beside each other, so that each row holds its copies, and cut the rows.

    Equal: row i of the concatenation is row i of x, copies times; in row-major order these are rows i * copies + k.
    """
    copies = [op.node.operand(0)] * op.facts["copies"]
    return [op.build.reshape(op.build.concatenate(copies, 1), op.node.result().static_shape)]


@rules.composite(EXPAND_CLONE, mode=Mode.MIRROR, target="npu_rows", form="concatenate(x, reverse(x), x, ...)")
def expand_clone_to_mirrored(op: OpLowering[VariantFacts]) -> Sequence[Value]:
    """Put copies one behind the other, every second one with its rows in the opposite order.

    Equal: the first copy stands as it is, and the next ones take turns, as in the decomposition.
    """
    x = op.node.operand(0)
    copies = [op.build.reverse(x, [0]) if k % 2 else x for k in range(op.facts["copies"])]
    return [op.build.concatenate(copies, 0)]
