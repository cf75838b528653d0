"""Attention in the order of axes that `scaled_dot_product_attention` has: batch, positions, heads, elements.

    query [B, T, N*G, H], key [B, S, N, H], value [B, S, N, H], mask [1 or B, 1 or heads, 1 or T, S] -> [B, T, N*G, H]

N heads of keys, each for G heads of queries that lie side by side. What ours takes in another order is transposed and
reshaped, and back behind it. The mask is one that is added:

- an additive mask as it is; with `empty_rows = "zero"` only where its values are known to be 0 and -inf. Then the least
  float is added in the place of -inf, which gives a row that sees nothing finite numbers, and the result is multiplied
  by exp(max(mask)) of its row: by 1 where something is seen, which changes no bit, and by 0 where nothing is;
- a boolean one becomes 0 where it lets see, elsewhere what the decomposition hides with: -inf, or the least float for a
  finite number, which like that number makes all places of a row that sees nothing equal;
- a proved causal mask is made of positions. There is no flag for it: a consumer's flag would make it ignore the mask.

Which letter is a head and which a position does not change what is computed: positions are the query's own letters that
are no part of a product with a head's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from hlo_lower import mlir
from hlo_lower.causes import Cause, Code
from hlo_lower.graph import Builder, Node, Value
from hlo_lower.graph.axes import reduce_along
from hlo_lower.spelling.adapted import Adapted, Found
from hlo_lower.spelling.axis_letters import ELEMENTS, KEYS, ROWS, SHARED, VALUES, AxisLetters, Layout, read_layout
from hlo_lower.spelling.mask_values import low_of_selects, values_of
from hlo_lower.targets.named_op import NamedOp

LEAST = float(np.finfo(np.float32).min)
"""Added to a score it gives itself, whatever the score is, unless that is as large."""


@dataclass(frozen=True)
class Order:
    """The letters of the target's axes: batch, query positions, heads of keys, groups, key positions, elements."""

    batch: str
    rows: str
    heads: str
    groups: str
    keys: str
    elements: str
    values: str

    @property
    def query(self) -> tuple[str, ...]:
        return self.batch, self.rows, self.heads + self.groups, self.elements

    @property
    def key(self) -> tuple[str, ...]:
        return self.batch, self.keys, self.heads, self.elements

    @property
    def value(self) -> tuple[str, ...]:
        return self.batch, self.keys, self.heads, self.values

    @property
    def result(self) -> tuple[str, ...]:
        return self.batch, self.rows, self.heads + self.groups, self.values


@dataclass(frozen=True)
class Move:
    """A tensor in another order of axes: split by letters, transposed, joined.

    Attributes:
      shape: before.
      split: by letters, in the order that it has.
      order: of these, the places of the transpose.
      joined: the shape behind.
    """

    shape: tuple[int, ...]
    split: tuple[int, ...]
    order: tuple[int, ...]
    joined: tuple[int, ...]

    @classmethod
    def of(cls, layout: Layout, axes: AxisLetters, wanted: Sequence[str], shape: Sequence[int]) -> "Move":
        letters = axes.letters
        order = tuple(letters.index(letter) for axis in wanted for letter in axis)
        sizes = tuple(layout.sizes[letter] for letter in letters)
        return cls(tuple(shape), sizes, order, tuple(layout.size(axis) for axis in wanted))

    @property
    def is_reshape(self) -> bool:
        """Whether nothing is moved: axes of one place lie anywhere."""
        real = [place for place in self.order if self.split[place] != 1]
        return real == sorted(real)

    def __call__(self, build: Builder, value: Value) -> Value:
        if self.is_reshape:
            return build.reshape(value, self.joined)
        return build.reshape(build.transpose(build.reshape(value, self.split), self.order), self.joined)

    def back(self, build: Builder, value: Value) -> Value:
        """The inverse."""
        if self.is_reshape:
            return build.reshape(value, self.shape)
        moved = build.reshape(value, [self.split[place] for place in self.order])
        return build.reshape(build.transpose(moved, list(np.argsort(self.order))), self.shape)


def attention(found: Found, entry: NamedOp) -> Adapted | Cause:
    """Adapt an attention; why it cannot be where it cannot."""
    text = found.attributes["layout"]
    masks = [role for role in found.operands if role not in ("query", "key", "value", "causal_mask")]
    shapes = [found.operands[role].static_shape for role in ("query", "key", "value", *masks)]
    result = found.node.results[0].static_shape
    layout = read_layout(text, shapes, result) if isinstance(text, str) else None
    order = None if layout is None else _order(layout, is_causal=bool(found.attributes["causal"]))
    if layout is None or order is None:
        return Code.NAMED_OP_LACKS("a layout with one axis of positions and one of heads")
    if layout.size(order.values) != layout.size(order.elements):
        return Code.NAMED_OP_LACKS("values that are as long as keys")
    if layout.size(order.heads) == 1 and layout.size(order.batch) > 1:
        return Code.NAMED_OP_LACKS("more heads of keys, or a batch of one")
    moves = [
        Move.of(layout, axes, wanted, shape)
        for axes, wanted, shape in zip(
            (*layout.operands[:3], layout.result), (order.query, order.key, order.value, order.result),
            (*shapes[:3], result), strict=True,
        )
    ]  # fmt: skip
    if entry.gains and not _gains(found, entry, layout, order, moves):
        return Code.NAMED_OP_LACKS("keys and values in the target's order, or plain ops that repeat them")
    mask = _mask(found, layout, order, masks)
    if isinstance(mask, Cause):
        return mask
    return _adapted(found, moves, mask)


def _order(layout: Layout, *, is_causal: bool) -> Order | None:
    """Which letters are which axes of the target's; None where a letter is missing from an operand."""
    query, key, value = layout.operands[:3]
    shared = [letter for letter in key.letters if letter in SHARED]
    rows = [letter for letter in query.letters if letter in ROWS]
    keys, elements = _of(key, KEYS), _of(key, ELEMENTS)
    values = _of(value, VALUES)
    tensors = ((query, shared + rows + [*elements]), (key, [*shared, *keys, *elements]))
    tensors = (*tensors, (value, [*shared, *keys, *values]), (layout.result, shared + rows + [*values]))
    if any(sorted(tensor.letters) != sorted(letters) for tensor, letters in tensors) or not elements:
        return None
    grouped = [r for r in rows if any(r in axis and set(axis) & set(SHARED) for axis in query.axes)]
    own = [r for r in rows if r not in grouped]
    if len(own) > 1:
        masked = [r for r in own if any(r in mask.letters for mask in layout.operands[3:])]
        if len(masked) != 1 or is_causal:
            return None
        grouped, own = [r for r in rows if r not in masked], masked
    if not own and is_causal:
        return None
    behind = [letter for letter in shared if key.letters.index(letter) > key.letters.index(keys[0])] if keys else []
    heads = "".join(behind or shared[-1:])
    batch = "".join(letter for letter in shared if letter not in heads)
    return Order(batch, "".join(own), heads, "".join(grouped), keys, elements, values)


def _of(axes: AxisLetters, role: str) -> str:
    return "".join(letter for letter in axes.letters if letter in role)


def _gains(found: Found, entry: NamedOp, layout: Layout, order: Order, moves: list[Move]) -> bool:
    """Whether it is faster there than its plain ops, as the entry says."""
    in_place = moves[1].is_reshape and moves[2].is_reshape
    repeated = layout.size(order.groups) > 1 and _repeats(found)
    return ("keys_in_place" in entry.gains and in_place) or ("keys_repeated" in entry.gains and repeated)


def _repeats(found: Found) -> bool:
    """Whether the decomposition broadcasts something of the size of keys or values to a larger one."""
    size = prod(found.operands["key"].static_shape)
    for op in mlir.walked(found.function):
        if op.name == "stablehlo.broadcast_in_dim":
            before, after = (prod(mlir.static_shape(value.type)) for value in (op.operands[0], op.results[0]))
            if size <= before < after:
                return True
    return False


def _mask(found: Found, layout: Layout, order: Order, masks: Sequence[str]) -> "tuple[_Mask, ...] | Cause":
    """The mask, if there is one."""
    is_causal, empty = bool(found.attributes["causal"]), found.attributes["empty_rows"]
    if len(masks) > 1 or (masks and is_causal):
        return Code.NAMED_OP_LACKS("a single mask")
    if is_causal:
        return (_Mask.causal(found, layout, order),)
    if not masks:
        return ()
    [role] = masks
    value, axes = found.operands[role], layout.operands[3]
    wanted = _mask_axes(layout, order, axes)
    if wanted is None:
        return Code.NAMED_OP_LACKS("a mask of whole axes")
    move = Move.of(layout, axes, wanted, value.static_shape)
    if found.attributes["mask"] == "additive":
        term = found.terms.of(value.raw)
        known = values_of(term)
        if empty == "nan":
            return (_Mask(role, move, "added"),)
        if known is None or not known <= {0.0, -np.inf}:
            return Code.NAMED_OP_LACKS("a mask of which it is known that it is 0 or -inf")
        return (_Mask(role, move, "zero_rows"),)
    low = low_of_selects(found.terms, found.function.regions[0].blocks[0])
    if low is None or empty != "nan":
        return Code.NAMED_OP_LACKS("one number that hides")
    hidden = -np.inf if np.isinf(low) else LEAST
    return (_Mask(role, move, "boolean", hidden, bool(found.attributes.get("mask_hides", False))),)


def _mask_axes(layout: Layout, order: Order, axes: AxisLetters) -> tuple[str, ...] | None:
    """The mask's letters by the target's axes, each with all of them or none; None where that is not so."""
    wanted = (order.batch, order.heads + order.groups, order.rows, order.keys)
    taken = ["".join(x for x in axis if x in axes.letters) for axis in wanted]
    whole = all(layout.size(have) in (1, layout.size(axis)) for have, axis in zip(taken, wanted, strict=True))
    is_grouped = layout.size(order.groups) > 1 and layout.size(taken[1]) > 1
    if not whole or is_grouped or layout.size(taken[3]) != layout.size(order.keys):
        return None
    return tuple(taken) if sorted("".join(taken)) == sorted(axes.letters) else None


@dataclass(frozen=True)
class _Mask:
    """A mask as the target adds it.

    Attributes:
      role: the operand that it stands for; "" of a causal one.
      move: to four axes.
      kind: "added", "zero_rows", "boolean" or "causal".
      hidden: what is added where a position is hidden.
      hides: of a boolean one, whether it is true there.
      shape: of a causal one, queries and keys; `window` as in the vocabulary.
    """

    role: str
    move: Move | None
    kind: str
    hidden: float = LEAST
    hides: bool = False
    shape: tuple[int, int] = (0, 0)
    window: int = 0

    @classmethod
    def causal(cls, found: Found, layout: Layout, order: Order) -> "_Mask":
        window = found.attributes.get("window", 0)
        shape = layout.size(order.rows), layout.size(order.keys)
        return cls("", None, "causal", shape=shape, window=window if isinstance(window, int) else 0)

    def made(self, build: Builder, value: Value | None) -> Value:
        """The mask that is added, with four axes."""
        if self.kind == "causal":
            return self._of_positions(build)
        assert value is not None
        assert self.move is not None
        if self.kind == "added":
            return self.move(build, value)
        if self.kind == "zero_rows":
            least = build.float_splat(LEAST, value.static_shape, "f32")
            return self.move(build, build.elementwise("maximum", value, least))
        return self.move(build, self._chosen(build, value))

    def recovered(self, build: Builder, value: Value) -> Value:
        """The operand of ours, from that."""
        assert self.move is not None
        back = self.move.back(build, value)
        shape = back.static_shape
        if self.kind == "added":
            return back
        zero = build.float_splat(0.0, shape, "f32")
        if self.kind == "boolean":
            return build.compare(back, "NE" if self.hides else "EQ", zero)
        infinite = build.broadcast(build.infinity(mlir.parse_type("f32"), is_negative=True), shape)
        return build.select(build.compare(back, "EQ", zero), back, infinite)

    def _chosen(self, build: Builder, seen: Value) -> Value:
        shape = seen.static_shape
        zero = build.float_splat(0.0, shape, "f32")
        low = build.float_splat(self.hidden, shape, "f32")
        return build.select(seen, low, zero) if self.hides else build.select(seen, zero, low)

    def _of_positions(self, build: Builder) -> Value:
        shape = (1, 1, *self.shape)
        row, key = build.iota(shape, 2, "i32"), build.iota(shape, 3, "i32")
        seen = build.compare(key, "LE", row)
        if self.window:
            first = build.elementwise("subtract", row, build.constant(self.window, shape, "i32"))
            seen = build.elementwise("and", seen, build.compare(key, "GT", first))
        return self._chosen(build, seen)


def _adapted(found: Found, moves: list[Move], masks: "tuple[_Mask, ...]") -> Adapted | Cause:
    roles = [role for role in found.operands if role != "causal_mask"]
    constant = _made_of_constants(found) if "causal_mask" in found.operands else []
    if constant is None:
        return Code.NAMED_OP_LACKS("a causal mask that is made of constants alone")
    last: list[Value] = []

    def mask_of(build: Builder) -> Value:
        mask = masks[0]
        last.append(mask.made(build, found.operands.get(mask.role)))
        return last[-1]

    def recovered(build: Builder, given: Sequence[Value]) -> list[Value]:
        values = {role: move.back(build, value) for role, move, value in zip(roles[:3], moves, given, strict=False)}
        if masks and masks[0].role:
            values[masks[0].role] = masks[0].recovered(build, given[3])
        if constant:
            values["causal_mask"] = _copied(build, constant, found.operands["causal_mask"])
        return [values[role] for role in found.operands]

    def taken(build: Builder, value: Value) -> Value:
        if masks and masks[0].kind == "zero_rows":
            value = _without_empty_rows(build, value, last[-1])
        return moves[3].back(build, value)

    made = [_moved(found.operands[role], move) for role, move in zip(roles[:3], moves, strict=False)]
    return Adapted([*made, *([mask_of] if masks else [])], recovered, moves[3], taken)


def _moved(value: Value, move: Move) -> Callable[[Builder], Value]:
    """What makes an operand in the target's order."""
    return lambda build: move(build, value)


def _without_empty_rows(build: Builder, value: Value, mask: Value) -> Value:
    """The result, 0 in rows whose mask hides all: [B, T, N, H] times exp(max) of [B, N, T, S]."""
    most = reduce_along(build, mask, build.infinity(mlir.parse_type("f32"), is_negative=True), 3, "maximum")
    seen = build.elementwise("exponential", most)  # [1 or B, 1 or heads, 1 or T]
    batch, heads, rows = seen.static_shape
    shape = value.static_shape
    moved = build.reshape(build.transpose(seen, [0, 2, 1]), [batch, rows, heads])
    return build.elementwise("multiply", value, _stretched(build, moved, shape))


def _stretched(build: Builder, value: Value, shape: Sequence[int]) -> Value:
    """A value of the first three axes along all of a shape; axes of one place are repeated."""
    sizes = value.static_shape
    kept = [d for d in range(3) if sizes[d] != 1]
    return build.broadcast(build.reshape(value, [sizes[d] for d in kept]), shape, kept)


def _made_of_constants(found: Found) -> "list[mlir.RawOperation] | None":
    """The ops that make the causal mask, in program order; None where they take anything else."""
    ops: dict[mlir.RawOperation, None] = {}
    pending = [found.operands["causal_mask"].raw]
    seen: set[mlir.RawValue] = set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        producer = mlir.producer(value)
        if producer is None or len(producer.regions) or len(ops) > 60 or producer.name == "stablehlo.composite":
            return None
        ops[producer] = None
        pending += producer.operands
    block = mlir.block_of(found.node.raw)
    return [op.operation for op in block.operations if op.operation in ops]


def _copied(build: Builder, constant: Sequence[mlir.RawOperation], mask: Value) -> Value:
    """The mask, made once more."""
    copies: dict[Value, Value] = {}
    for raw in constant:
        node = Node(raw)
        types = [result.raw.type for result in node.results]
        copy = build.clone(node, [copies[operand] for operand in node.operands], types)
        copies.update(zip(node.results, copy.results, strict=True))
    return copies[mask]
