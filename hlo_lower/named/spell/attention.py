"""Attention in the layout of a target's `scaled_dot_product_attention`, as its entry writes it:

    bq(ng)h,bknh,bknh,b(ng)qk->bq(ng)h     LiteRT: positions before heads; groups of queries beside their head of keys
    b(ng)qh,bnkh,bnkh,b(ng)qk->b(ng)qh     PyTorch's, tt-mlir's
    bn(gq)h,bnkh,bnkv,bn(gq)k->bn(gq)v     Core ML: a head of queries for each of keys; groups are further positions

    b batch, q positions, n heads of keys, g groups of queries that share one, k positions of keys, h elements, v those
    of values; where a layout has no v, values are as long as keys. The fourth is the mask, of which an axis may be 1.

What ours takes in another order is transposed and reshaped, and back behind it. The mask is one that is added, of the
query's element type:

- an additive mask as it is; with `empty_rows = "zero"` only where its values are known to be 0 and -inf. Then a least
  number is added in the place of -inf, which gives a row that sees nothing finite numbers, and the result is multiplied
  by exp(max(mask)) of its row: by 1 where something is seen, which changes no bit, and by 0 where nothing is;
- a boolean one becomes 0 where it lets see, elsewhere what the decomposition hides with: -inf, or the least number for
  a finite one, which like that number makes all places of a row that sees nothing equal;
- a proved causal mask is made of positions. There is no flag for it: a consumer's flag would make it ignore the mask.

Under a causal mask q is the position. Else which letter is a head and which a position does not change what is
computed: positions are the query's own letters that are no part of a product with a head's.
"""

from collections.abc import Callable, Sequence
from math import prod

from hlo_lower.base.causes import Cause, Code
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Node, Value
from hlo_lower.named.spell.adapters import Adapted, Found
from hlo_lower.named.spell.added_mask import AddedMask, mask_there
from hlo_lower.named.spell.axis_letters import (
    ELEMENTS,
    KEYS,
    ROWS,
    SHARED,
    VALUES,
    AxisLetters,
    Layout,
    Move,
    read_layout,
    read_tensors,
)
from hlo_lower.ops.names import BROADCAST_IN_DIM, COMPOSITE
from hlo_lower.ops.targets.named_op import NamedOp

ATTENDED = ("query", "key", "value")


def attention(found: Found, entry: NamedOp) -> Adapted | Cause:
    """Adapt an attention; why it cannot be where it cannot."""
    text = found.attributes["layout"]
    masks = [role for role in found.operands if role not in (*ATTENDED, "causal_mask")]
    shapes = [found.operands[role].static_shape for role in (*ATTENDED, *masks)]
    result = found.node.results[0].static_shape
    layout = read_layout(text, shapes, result) if isinstance(text, str) else None
    there = read_tensors(entry.layout)
    roles = None if layout is None else _roles(layout, there, is_causal=bool(found.attributes["causal"]))
    if layout is None or roles is None:
        return Code.NAMED_OP_LACKS("a layout with one axis of positions and one of heads")
    if lack := _lack(found, entry, layout, roles):
        return Code.NAMED_OP_LACKS(lack)
    moves = [
        Move.of(layout, axes, ["".join(own[letter] for letter in axis) for axis in wanted.axes], shape)
        for axes, wanted, own, shape in zip(
            (*layout.operands[:3], layout.result),
            (*there[:3], there[4]),
            (roles, roles, *[roles if "v" in entry.layout else roles | {"h": roles["v"]}] * 2),
            (*shapes[:3], result),
            strict=True,
        )
    ]
    if entry.gains and not _gains(found, entry, layout, roles, moves):
        return Code.NAMED_OP_LACKS("keys and values in the target's order, or plain ops that repeat them")
    if len(masks) + bool(found.attributes["causal"]) > 1:
        return Code.NAMED_OP_LACKS("a single mask")
    mask = mask_there(found, layout, roles, there, masks)
    return mask if isinstance(mask, Cause) else _adapt(found, moves, mask)


def _roles(layout: Layout, there: Sequence[AxisLetters], *, is_causal: bool) -> dict[str, str] | None:
    """Our letters for each of the target's; None where a letter is missing from an operand."""
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
    if is_causal:
        grouped, own = [r for r in rows if r != "q"], [r for r in rows if r == "q"]
    elif any({"g", "q"} <= set(axis) for axis in there[0].axes):
        grouped, own = [], rows  # one axis there
    elif len(own) > 1:
        masked = [r for r in own if any(r in mask.letters for mask in layout.operands[3:])]
        own = masked or [max(own, key=layout.size)]
        grouped = [r for r in rows if r not in own]
    if not own and is_causal:
        return None
    behind = [letter for letter in shared if key.letters.index(letter) > key.letters.index(keys[0])] if keys else []
    heads = behind or shared[-1:]
    batch = [letter for letter in shared if letter not in heads]
    named = {"b": batch, "q": own, "n": heads, "g": grouped, "k": keys, "h": elements, "v": values}
    return {letter: "".join(letters) for letter, letters in named.items()}


def _of(axes: AxisLetters, role: str) -> str:
    return "".join(letter for letter in axes.letters if letter in role)


def _lack(found: Found, entry: NamedOp, layout: Layout, roles: dict[str, str]) -> str:
    if len({found.operands[role].element_type for role in ATTENDED}) > 1:
        return "one element type of query, key and value"
    if "v" not in entry.layout and layout.size(roles["v"]) != layout.size(roles["h"]):
        return "values that are as long as keys"
    if "one head in a batch" in entry.refuses and layout.size(roles["n"]) == 1 and layout.size(roles["b"]) > 1:
        return "more heads of keys, or a batch of one"
    is_of_heads = any(
        layout.size("".join(x for x in mask.letters if x in roles["n"] + roles["g"])) > 1
        for mask in layout.operands[3:]
    )
    if "mask of grouped heads" in entry.refuses and layout.size(roles["g"]) > 1 and is_of_heads:
        return "a mask for all heads"
    return ""


def _gains(found: Found, entry: NamedOp, layout: Layout, roles: dict[str, str], moves: list[Move]) -> bool:
    """Whether it is faster there than its plain ops, as the entry says."""
    in_place = moves[1].is_reshape and moves[2].is_reshape
    repeated = layout.size(roles["g"]) > 1 and _repeats(found)
    return ("keys_in_place" in entry.gains and in_place) or ("keys_repeated" in entry.gains and repeated)


def _repeats(found: Found) -> bool:
    """Whether the decomposition broadcasts something of the size of keys or values to a larger one."""
    size = prod(found.operands["key"].static_shape)
    for op in mlir.operations_within(found.function):
        if op.name == BROADCAST_IN_DIM:
            before, after = (prod(mlir.static_shape(value.type)) for value in (op.operands[0], op.results[0]))
            if size <= before < after:
                return True
    return False


def _adapt(found: Found, moves: list[Move], mask: AddedMask | None) -> Adapted | Cause:
    roles = [role for role in found.operands if role != "causal_mask"]
    constant = _made_of_constants(found) if "causal_mask" in found.operands else []
    if constant is None:
        return Code.NAMED_OP_LACKS("a causal mask of constants alone")
    last: list[Value] = []

    def mask_of(build: Builder) -> Value:
        assert mask is not None
        last.append(mask.build_mask(build, found.operands.get(mask.role)))
        return last[-1]

    def recover(build: Builder, given: Sequence[Value]) -> list[Value]:
        values = {role: move.back(build, value) for role, move, value in zip(roles[:3], moves, given, strict=False)}
        if mask is not None and mask.role:
            values[mask.role] = mask.recover(build, given[3])
        if constant:
            values["causal_mask"] = _rebuild_mask(build, constant, found.operands["causal_mask"])
        return [values[role] for role in found.operands]

    def restore_result(build: Builder, value: Value) -> Value:
        if mask is not None and mask.kind == "zero_rows":
            value = mask.without_empty_rows(build, value, last[-1])
        return moves[3].back(build, value)

    made = [_mover(found.operands[role], move) for role, move in zip(roles[:3], moves, strict=False)]
    return Adapted([*made, *([mask_of] if mask is not None else [])], recover, moves[3], restore_result)


def _mover(value: Value, move: Move) -> Callable[[Builder], Value]:
    return lambda build: move(build, value)


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
        if producer is None or len(producer.regions) or len(ops) > 60 or producer.name == COMPOSITE:
            return None
        ops[producer] = None
        pending += producer.operands
    block = mlir.block_of(found.node.raw)
    return [op.operation for op in block.operations if op.operation in ops]


def _rebuild_mask(build: Builder, constant: Sequence[mlir.RawOperation], mask: Value) -> Value:
    """Build the mask again from its constants."""
    copies: dict[Value, Value] = {}
    for raw in constant:
        node = Node(raw)
        types = [result.raw.type for result in node.results]
        copy = build.clone(node, [copies[operand] for operand in node.operands], types)
        copies.update(zip(node.results, copy.results, strict=True))
    return copies[mask]
