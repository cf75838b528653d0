"""An op on carriers: what the table says that it needs, for any op, and for the ops of its regions."""

from collections.abc import Mapping, Sequence
from math import prod

from hlo_lower.base.element_types import element_type
from hlo_lower.base.registry import DoesNotApply
from hlo_lower.ir import mlir
from hlo_lower.ir.builder import Builder
from hlo_lower.ir.view import Block, Node, Value
from hlo_lower.lowering.types.carried.bits import BY_BITS
from hlo_lower.lowering.types.carried.carrier import Carrier, Carrying, Form
from hlo_lower.lowering.types.carried.complex_ops import on_parts
from hlo_lower.lowering.types.carried.exactness import TABLE, How
from hlo_lower.lowering.types.carried.halves import fold_of
from hlo_lower.lowering.types.carried.on_halves import EACH, is_by_known_amount, on_halves
from hlo_lower.lowering.types.carried.pairs import erase_unread
from hlo_lower.lowering.types.carried.written_ops import ON_SIGNED, ON_WIDER, clamped_index, convert_carried
from hlo_lower.ops import names

SUMS = ("add", "multiply")
ORDERED = ("minimum", "maximum")

NOT_AS_F32 = {(names.EXPONENTIAL_MINUS_ONE, "f16")}
"""Functions that XLA computes otherwise on a type than as f32 and rounded."""

PREDICATES = {"add": "maximum", "or": "maximum", "multiply": "minimum", "and": "minimum"}
"""On predicates as 0 and 1."""

BY_ORDER = {names.AND: "minimum", names.OR: "maximum", names.XOR: ""}
"""Bit operations on numbers that are 0 or 1; of `xor` whether they differ."""

Carried = tuple[list[Value], bool]
"""Results on their carriers, and whether each is a number of its own type (a float may be still to be rounded)."""


def lower_on_carriers(node: Node, c: Carrying) -> list[Value]:
    """Build an op on carriers, of its operands and results in their own types.

    Raises:
      DoesNotApply: it has no form that is exact on them.
    """
    is_shift = is_by_known_amount(node) and c.is_on(node.operand(0), Form.HALVES)
    read = node.operands[:1] if is_shift else node.operands
    results, is_exact = on_carriers(node, [c.to(value) for value in read], c)
    pairs = zip(results, node.results, strict=True)
    found = [c.back(value, result.element_type, is_exact=is_exact) for value, result in pairs]
    if any(carrier.form is Form.PARTS for carrier in c.scheme.values()):
        erase_unread(c.build, found)
    return found


def on_carriers(node: Node, operands: Sequence[Value], c: Carrying) -> Carried:
    """Build an op of operands that are on their carriers.

    Raises:
      DoesNotApply: it has no form that is exact on them.
    """
    carrier, name = _main(node, c), node.name
    entry = TABLE.get(name)
    how = How.NONE if entry is None else entry.on(carrier.form)
    if entry is None or how is How.NONE or (name, carrier.before) in NOT_AS_F32 or _is_summed_otherwise(node, c):
        raise DoesNotApply(f"{name} on {carrier.before} is not exact on {carrier.after}")
    if any(c.carrier(value) is not None and not c.is_on(value, Form.ITSELF) for value in _always_predicates(node)):
        raise DoesNotApply(f"{name} has a predicate, which is of i1 by definition")
    if name == names.CONSTANT:
        return [c.to(node.result())], True
    if carrier.form is Form.PARTS:
        return on_parts(c, node, _with_indices(node, operands, entry.moved, c), _body), True
    is_written = how is How.WRITTEN or (c.is_nested and name.removeprefix("stablehlo.") in EACH)
    if is_written and (carrier.form is Form.HALVES or c.is_on(node.result(), Form.HALVES)):
        return on_halves(c, node, operands, _body), True
    if name == names.CONVERT:
        value, is_exact = convert_carried(c, node, operands[0])
        return [value], is_exact
    if node.has_regions:
        return _with_region(node, operands, c, carrier)
    if carrier.before == "i1" and (found := _predicate(node, operands, c)) is not None:
        return [found], True
    if name in BY_BITS and not c.takes(name.removeprefix("stablehlo."), carrier.after):
        if not element_type(carrier.after).is_signed:
            raise DoesNotApply("unsigned, which is carried in a signed type")
        if c.are_truths and name in BY_ORDER:
            return [_on_truths(name, operands, c)], True
        if c.are_apart and name in (names.OR, names.XOR):
            return [c.add(*operands)], True
        return [BY_BITS[name](c, carrier, operands)], True
    if how is How.WRITTEN:
        return [(ON_SIGNED if carrier.form is Form.SIGNED else ON_WIDER)[name](c, carrier, operands)], True
    operands = _with_indices(node, operands, entry.moved, c)
    if how is How.FLIPPED and _is_ordered(node):
        return _same_on_flipped(node, operands, c), True
    results = _same(node, operands, c)
    if how is How.SETTLED and carrier.form is Form.FLOAT:
        return results, False
    return [
        _settle(value, r, c) for value, r in zip(results, node.results, strict=True)
    ] if how is How.SETTLED else results, True


def _is_summed_otherwise(node: Node, c: Carrying) -> bool:
    """Whether it is a product whose sums are not rounded to what is carried: XLA adds them in another order then."""
    is_float = node.name in (names.DOT_GENERAL, names.CONVOLUTION) and c.is_on(node.operand(0), Form.FLOAT)
    return is_float and not c.reassociated and c.carrier(node.result()) is None


def _always_predicates(node: Node) -> Sequence[Value]:
    """What is of i1 by the definition of an op, whatever its other types are."""
    if node.name == names.SELECT:
        return node.operands[:1]
    return node.results if node.name in (names.COMPARE, names.IS_FINITE) else ()


def _main(node: Node, c: Carrying) -> Carrier:
    """The carrier that decides what an op needs: that of what is two, of an operand, else of a result."""
    found = [c.carrier(value) for value in (*node.operands, *node.results)]
    carriers = sorted((carrier for carrier in found if carrier is not None), key=lambda one: one.shape_of(()) == ())
    carrier = next(iter(carriers), None)
    if carrier is None:
        raise DoesNotApply("no operand or result is carried")
    return carrier


def _with_indices(node: Node, operands: Sequence[Value], moved: Sequence[int] | None, c: Carrying) -> list[Value]:
    """Operands as they are, and indices whose carrier has fewer numbers."""
    carriers = [c.carrier(value) for value in node.operands]
    is_index = [moved is not None and i not in moved and carrier is not None for i, carrier in enumerate(carriers)]
    return [
        clamped_index(c, value, carrier) if carrier is not None and at else value
        for value, carrier, at in zip(operands, carriers, is_index, strict=True)
    ]


def _same(node: Node, operands: Sequence[Value], c: Carrying) -> list[Value]:
    attributes = mlir.attributes_of(node.raw)
    if node.name == names.COMPARE:
        attributes = {**attributes, **_signed_comparison(operands[0])}
    types = [c.carried_type(result.raw.type) for result in node.results]
    return list(c.build.op(node.name, operands, types, attributes).results)


def _signed_comparison(operand: Value) -> Mapping[str, mlir.RawAttribute]:
    if not operand.element.is_integer:
        return {}
    return {"compare_type": mlir.parse_attribute("#stablehlo<comparison_type SIGNED>")}


def _is_ordered(node: Node) -> bool:
    """Whether an op depends on the order of its operands; a comparison for equality does not."""
    direction = node.attribute("comparison_direction")
    return direction is None or mlir.enum_value(direction) not in ("EQ", "NE")


def _same_on_flipped(node: Node, operands: Sequence[Value], c: Carrying) -> list[Value]:
    results = _same(node, [c.flip(value) for value in operands], c)
    return [
        c.flip(value) if c.carrier(r) is not None else value for value, r in zip(results, node.results, strict=True)
    ]


def _settle(value: Value, result: Value, c: Carrying) -> Value:
    return c.settle(value, result.element_type) if c.carrier(result) is not None else value


def _predicate(node: Node, operands: Sequence[Value], c: Carrying) -> Value | None:
    """A logical op on 0 and 1; None where the table says what is needed."""
    name = node.name.removeprefix("stablehlo.")
    if name in PREDICATES:
        return c.build.elementwise(PREDICATES[name], *operands)
    if name == "not":
        return c.subtract(c.number(1, operands[0]), operands[0])
    return _on_truths(node.name, operands, c) if node.name == names.XOR else None


def _on_truths(name: str, operands: Sequence[Value], c: Carrying) -> Value:
    """A bit operation on numbers that are 0 or 1."""
    if name == names.XOR:
        return c.choose(c.holds(operands[0], "NE", operands[1]), 1, c.number(0, operands[0]))
    return c.build.elementwise(BY_ORDER[name], *operands)


# --- regions ---


def _with_region(node: Node, operands: Sequence[Value], c: Carrying, carrier: Carrier) -> Carried:
    """An op with a body: the body on carriers; where it is one op, what it needs is done once, outside."""
    [body] = node.blocks
    fold = fold_of(body) if len(node.results) == 1 and node.name != names.SORT else ""
    if fold in ORDERED and carrier.form is Form.SIGNED:
        flipped = [c.flip(value) for value in operands]
        return [c.flip(value) for value in _rebuilt(node, flipped, c, fold)], True
    if carrier.form is Form.WIDER and (c.is_extreme or (fold in ("maximum", "minimum") and node.name == names.REDUCE)):
        operands = _from_end(node, operands, c, carrier, fold)
    if not fold:
        return _rebuilt(node, operands, c, ""), True
    results = _rebuilt(node, operands, c, PREDICATES.get(fold, fold) if carrier.before == "i1" else fold)
    if fold not in SUMS or carrier.before == "i1":
        return results, True
    if carrier.form is Form.FLOAT:
        return results, not c.reassociated
    return [_settle(value, r, c) for value, r in zip(results, node.results, strict=True)], True


def _from_end(node: Node, operands: Sequence[Value], c: Carrying, carrier: Carrier, fold: str) -> list[Value]:
    """The operands of a reduction to an extreme, its start the carrier's end where it was the type's: some targets take
    no other.

    Equal where at least one element is folded, which is in the range of the type; its first place is that of an element
    also where all are the end of the type, as the start has the place 0.
    """
    [value, *_], start = node.operands, node.operand(len(node.results))
    values = start.constant()
    count = prod(value.static_shape[d] for d in node.integers("dimensions")) if value.is_static else 0
    before, after = (element_type(name) for name in (carrier.before, carrier.after))
    ends = {before.least: after.least} if fold == "maximum" else {before.most: after.most}
    ends = ends if fold else {before.least: after.least, before.most: after.most}  # of a place it is the right one
    end = ends.get(int(values)) if values is not None else None
    if end is None or not count:
        return list(operands)
    found = list(operands)
    found[len(node.results)] = c.number(int(end), found[len(node.results)])
    return found


def _rebuilt(node: Node, operands: Sequence[Value], c: Carrying, fold: str) -> list[Value]:
    """The op with its body on carriers: one op, or each op of the body by itself."""
    types = [c.carried_type(result.raw.type) for result in node.results]
    made = c.build.op(node.name, operands, types, mlir.attributes_of(node.raw), regions=1)
    [body] = node.blocks
    scalars = [c.carried_type(argument.raw.type) for argument in body.arguments]

    def inside(build: Builder, arguments: tuple[Value, ...]) -> Sequence[Value]:
        if fold:
            folded = build.elementwise(fold, *arguments)
            return [c.inside(build).round_to_type(folded, body.arguments[0]) if fold in SUMS else folded]
        return _body(body, arguments, c.inside(build))

    c.build.region(made, 0, scalars, inside)
    return list(made.results)


def _body(body: Block, arguments: Sequence[Value], c: Carrying) -> list[Value]:
    """What a body returns, each of its ops on carriers.

    Raises:
      DoesNotApply: an op has no form, or would have to be rounded.
    """
    values = dict(zip(body.arguments, arguments, strict=True))

    def of(value: Value) -> Value:
        return values[value] if value in values else c.to(value)

    *inner, end = body.nodes
    for node in inner:
        operands = [of(value) for value in node.operands]
        if any(c.carrier(value) is not None for value in (*node.operands, *node.results)):
            results, is_exact = on_carriers(node, operands, c)
            if not is_exact:
                raise DoesNotApply(f"{node.name} in a region would have to be rounded")
        elif node.has_regions:
            raise DoesNotApply(f"{node.name} in a region")
        else:
            results = list(c.build.clone(node, operands, [r.raw.type for r in node.results]).results)
        values.update(zip(node.results, results, strict=True))
    return [of(value) for value in end.operands]
